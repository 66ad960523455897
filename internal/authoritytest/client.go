package authoritytest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"testing"

	"vogt/internal/api"
)

// Client calls the interface as a program does, with a bearer or without one.
type Client struct {
	S      *Server
	Bearer string // "" sends no Authorization header
}

// Stranger calls without any login.
func (s *Server) Stranger() *Client { return &Client{S: s} }

// Manager calls with the management token.
func (s *Server) Manager() *Client { return &Client{S: s, Bearer: ManagementToken} }

// Answer is what came back.
type Answer struct {
	T      testing.TB
	Call   string // method and path, for messages
	Status int
	Header http.Header
	Body   []byte
}

// Do sends body as JSON, or nothing for nil, and headers given as pairs. Like
// the clients in use it names JSON as content type on every call that carries
// a bearer. No answer fails the test.
func (c *Client) Do(method, path string, body any, headers ...string) Answer {
	c.S.T.Helper()
	a, err := c.Try(method, path, body, headers...)
	if err != nil {
		c.S.T.Fatalf("%s %s: %v", method, path, err)
	}
	return a
}

// Try is [Client.Do] for calls that may get no answer and for goroutines other
// than the test's own: it returns what went wrong.
func (c *Client) Try(method, path string, body any, headers ...string) (Answer, error) {
	a := Answer{T: c.S.T, Call: method + " " + path}
	var content []byte
	switch b := body.(type) {
	case nil:
	case []byte:
		content = b
	case string:
		content = []byte(b)
	default:
		var err error
		if content, err = json.Marshal(body); err != nil {
			return a, err
		}
	}
	req, err := http.NewRequest(method, c.S.URL+path, bytes.NewReader(content))
	if err != nil {
		return a, err
	}
	if c.Bearer != "" {
		req.Header.Set("Authorization", "Bearer "+c.Bearer)
	}
	if c.Bearer != "" || len(content) > 0 {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		switch headers[i] {
		case "Host":
			req.Host = headers[i+1]
		default:
			req.Header.Set(headers[i], headers[i+1])
		}
		if headers[i+1] == "" {
			req.Header.Del(headers[i])
		}
	}
	resp, err := c.S.http.Do(req)
	if err != nil {
		return a, err
	}
	defer resp.Body.Close()
	a.Status, a.Header = resp.StatusCode, resp.Header
	if a.Body, err = io.ReadAll(resp.Body); err != nil {
		return a, err
	}
	if err := c.S.compare(method, path, req.Host, a); err != nil {
		return a, err
	}
	if h := resp.Header.Get(api.CheckpointHeader); h != "" {
		text, err := base64.StdEncoding.DecodeString(h)
		if err != nil {
			return a, fmt.Errorf("%s: %w", api.CheckpointHeader, err)
		}
		c.S.see(string(text))
	}
	return a, nil
}

// Get reads path.
func (c *Client) Get(path string) Answer { c.S.T.Helper(); return c.Do("GET", path, nil) }

// Post sends body to path.
func (c *Client) Post(path string, body any, headers ...string) Answer {
	c.S.T.Helper()
	return c.Do("POST", path, body, headers...)
}

// Want fails the test unless the answer has the status.
func (a Answer) Want(status int) Answer {
	a.T.Helper()
	if a.Status != status {
		a.T.Fatalf("%s: status %d, want %d\n%.1000s", a.Call, a.Status, status, a.Body)
	}
	return a
}

// Into decodes the body of a 2xx answer.
func (a Answer) Into(v any) Answer {
	a.T.Helper()
	if a.Status/100 != 2 {
		a.T.Fatalf("%s: status %d, want success\n%s", a.Call, a.Status, a.Body)
	}
	if err := json.Unmarshal(a.Body, v); err != nil {
		a.T.Fatalf("%s: %v\n%s", a.Call, err, a.Body)
	}
	return a
}

// Problem decodes a problem document and fails the test unless it is one with
// the status.
func (a Answer) Problem(status int) api.Problem {
	a.T.Helper()
	a.Want(status)
	if t := a.Header.Get("Content-Type"); t != "application/problem+json" {
		a.T.Fatalf("%s: content type %q, want a problem document\n%s", a.Call, t, a.Body)
	}
	var p api.Problem
	if err := json.Unmarshal(a.Body, &p); err != nil {
		a.T.Fatalf("%s: %v\n%s", a.Call, err, a.Body)
	}
	if p.Status != status || p.Title == "" || p.Detail == "" || p.Type == "" {
		a.T.Fatalf("%s: the problem document lacks something: %+v", a.Call, p)
	}
	return p
}

// GrantPath is the address of a grant or, with a verb, of something done to
// it.
func GrantPath(id string, verb ...string) string {
	p := api.PathGrants + "/" + url.PathEscape(id)
	for _, v := range verb {
		p += "/" + v
	}
	return p
}
