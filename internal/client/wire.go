package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"vogt/internal/api"
)

// Limits of one exchange.
const (
	dialLimit     = 5 * time.Second
	exchangeLimit = 30 * time.Second
	maxAnswer     = 32 << 20 // a page of grants can hold commands of 1 MiB
	maxProblem    = 64 << 10

	// A request that was turned away for its rate is sent again at most twice.
	maxBusyTries = 3
	maxBusyWait  = 12 * time.Second
)

// wire is the connection to one authority. It follows no redirect, keeps one
// connection, uses no state of package http, and sends nothing in clear text
// over a network.
type wire struct {
	base  string // scheme://host[:port]
	http  *http.Client
	sleep func(context.Context, time.Duration) error
}

// parseAuthority checks an authority's address and brings it into the form in
// which issuers are compared.
func parseAuthority(address string) (*url.URL, error) {
	fail := func(detail string) (*url.URL, error) {
		return nil, &Error{Kind: Invalid, Where: address, Detail: detail, Hint: "an authority's address is like http://127.0.0.1:8648 or https://vogt.example.com"}
	}
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return fail("it is not a URL")
	case u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return fail("it does not begin with http:// or https:// and a host")
	case u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return fail("it must be scheme, host and port alone")
	case u.Scheme == "http" && !loopback(u.Hostname()):
		return fail("it would leave this machine without encryption")
	}
	return &url.URL{Scheme: u.Scheme, Host: strings.ToLower(u.Host)}, nil
}

// loopback reports whether a host is this machine by definition (RFC 6761,
// section 6.3, for the names).
func loopback(host string) bool {
	if localName(host) {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}

func localName(host string) bool {
	host = strings.ToLower(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
}

func newWire(address string, sleep func(context.Context, time.Duration) error) (*wire, error) {
	u, err := parseAuthority(address)
	if err != nil {
		return nil, err
	}
	dialer := &net.Dialer{Timeout: dialLimit}
	transport := &http.Transport{
		MaxIdleConns:        1,
		MaxConnsPerHost:     2, // a stream, and a call beside it
		IdleConnTimeout:     90 * time.Second,
		TLSHandshakeTimeout: dialLimit,
		TLSClientConfig:     &tls.Config{MinVersion: tls.VersionTLS12},
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			return dialer.DialContext(ctx, network, address)
		},
	}
	if !loopback(u.Hostname()) {
		transport.Proxy = http.ProxyFromEnvironment
	} else if localName(u.Hostname()) {
		// No name server is asked where "localhost" is.
		transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			_, port, err := net.SplitHostPort(address)
			if err != nil {
				return nil, err
			}
			conn, err := dialer.DialContext(ctx, network, net.JoinHostPort("127.0.0.1", port))
			if err != nil {
				if six, sixErr := dialer.DialContext(ctx, network, net.JoinHostPort("::1", port)); sixErr == nil {
					return six, nil
				}
			}
			return conn, err
		}
	}
	return &wire{
		base: u.String(),
		http: &http.Client{
			Transport:     transport,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		sleep: sleep,
	}, nil
}

// call is one request and where its answer goes.
type call struct {
	method string
	path   string // with leading slash, escaped
	query  url.Values
	bearer string
	header map[string]string
	body   any           // sent as JSON; nil for none
	answer any           // filled from JSON; nil when the body does not matter
	limit  time.Duration // of the whole exchange; 0 for exchangeLimit
}

// send makes the exchange and returns the answer's header. A 429 is repeated
// when the authority says that a short wait helps (RFC 6585, section 4).
func (w *wire) send(ctx context.Context, c call) (http.Header, error) {
	for try := 1; ; try++ {
		header, err := w.once(ctx, c)
		e, ok := errors.AsType[*Error](err)
		if !ok || e.Status != http.StatusTooManyRequests || try == maxBusyTries {
			return header, err
		}
		seconds, parseErr := strconv.Atoi(header.Get("Retry-After"))
		wait := time.Duration(seconds) * time.Second
		if parseErr != nil || seconds < 0 || wait > maxBusyWait {
			return header, err
		}
		if err := w.sleep(ctx, max(wait, 100*time.Millisecond)); err != nil {
			return nil, err
		}
	}
}

func (w *wire) once(ctx context.Context, c call) (http.Header, error) {
	limit := c.limit
	if limit == 0 {
		limit = exchangeLimit
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	resp, err := w.open(limited, c)
	if err != nil {
		return nil, w.lost(ctx, err, limit)
	}
	defer resp.Body.Close()
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return resp.Header, w.refused(resp)
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return nil, w.lost(ctx, err, limit)
	}
	if len(data) > maxAnswer {
		return nil, &Error{Kind: Malformed, Where: w.base, Detail: fmt.Sprintf("%s %s: the answer is longer than %d MiB", c.method, c.path, maxAnswer>>20)}
	}
	switch answer := c.answer.(type) {
	case nil:
	case *[]byte:
		*answer = data
	default:
		if err := json.Unmarshal(data, answer); err != nil {
			return nil, &Error{Kind: Malformed, Where: w.base, Detail: c.method + " " + c.path, Err: err,
				Hint: "is this the address of a Vogt authority?"}
		}
	}
	return resp.Header, nil
}

// open sends the request and returns the answer with its body unread.
func (w *wire) open(ctx context.Context, c call) (*http.Response, error) {
	var body io.Reader
	if c.body != nil {
		data, err := json.Marshal(c.body)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(data)
	}
	address := w.base + c.path
	if len(c.query) > 0 {
		address += "?" + c.query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, c.method, address, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "vogt")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.bearer != "" {
		req.Header.Set("Authorization", "Bearer "+c.bearer)
	}
	for name, value := range c.header {
		req.Header.Set(name, value)
	}
	return w.http.Do(req)
}

// lost explains an exchange that ended without an answer. An end that the
// caller brought about is the caller's error.
func (w *wire) lost(ctx context.Context, err error, limit time.Duration) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	e := &Error{Kind: Unreachable, Where: w.base, Err: err}
	if ue, ok := errors.AsType[*url.Error](err); ok {
		e.Err = ue.Err // the address is said already
	}
	if errors.Is(err, context.DeadlineExceeded) {
		e.Err, e.Detail = nil, fmt.Sprintf("no answer within %s", limit)
	}
	return e
}

// refused reads an answer that is no success.
func (w *wire) refused(resp *http.Response) error {
	if resp.StatusCode >= 300 && resp.StatusCode <= 399 {
		return &Error{Kind: Distrusted, Where: w.base, Status: resp.StatusCode,
			Detail: fmt.Sprintf("it redirects to %.200q, which is never followed", resp.Header.Get("Location")),
			Hint:   "use the address that the authority calls itself by"}
	}
	var p api.Problem
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxProblem))
	if err != nil || json.Unmarshal(data, &p) != nil {
		p = api.Problem{} // whatever it is, the status tells
	}
	var oauth api.OAuthError
	if p.Title == "" && p.Detail == "" && json.Unmarshal(data, &oauth) == nil {
		p.Detail = oauth.Description
	}
	return problemError(w.base, resp.StatusCode, p)
}
