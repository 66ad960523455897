package httpapi_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"vogt/internal/api"
	"vogt/internal/authoritytest"
)

// send opens a connection and writes the begin of a call with what it has of a
// body; it does not wait for an answer.
func send(t *testing.T, c *authoritytest.Client, method, path string, length int, body string) (net.Conn, *bufio.Reader) {
	t.Helper()
	host := strings.TrimPrefix(c.S.URL, "http://")
	conn, err := net.Dial("tcp", host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	head := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: %s\r\n", method, path, host)
	if c.Bearer != "" {
		head += "Authorization: Bearer " + c.Bearer + "\r\n"
	}
	if length > 0 {
		head += fmt.Sprintf("Content-Type: application/json\r\nContent-Length: %d\r\n", length)
	}
	if _, err := io.WriteString(conn, head+"\r\n"+body); err != nil {
		t.Fatal(err)
	}
	return conn, bufio.NewReader(conn)
}

// until repeats a call until its answer has the status.
func until(t *testing.T, what string, status int, call func() authoritytest.Answer) authoritytest.Answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for {
		a := call()
		if a.Status == status {
			return a
		}
		if ctx.Err() != nil {
			t.Fatalf("%s: still %d %.300s, want %d", what, a.Status, a.Body, status)
		}
	}
}

// TestStreamsAreCounted: one principal's streams of events end nobody else's,
// and a place that is given back can be taken again.
func TestStreamsAreCounted(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t)
	owner := s.Owner()
	agent := s.Agent(owner, "helper")
	stream := func(c *authoritytest.Client) (net.Conn, *http.Response) {
		t.Helper()
		conn, r := send(t, c, "GET", api.PathEvents, 0, "")
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		return conn, resp
	}
	var open []net.Conn
	for {
		conn, resp := stream(&agent.Client)
		if resp.StatusCode != 200 {
			if resp.StatusCode != 429 || resp.Header.Get("Retry-After") == "" {
				t.Errorf("after %d streams: %d %v", len(open), resp.StatusCode, resp.Header)
			}
			break
		}
		if open = append(open, conn); len(open) > 100 {
			t.Fatal("an agent opens 100 streams")
		}
	}
	if _, resp := stream(&owner.Client); resp.StatusCode != 200 {
		t.Errorf("the owner's stream: %d", resp.StatusCode)
	}
	// Waiting for one's own request is another budget.
	agent.Get(authoritytest.GrantPath(agent.Ask("ls").ID) + "?wait=0").Want(200)
	open[0].Close()
	for {
		if _, resp := stream(&agent.Client); resp.StatusCode == 200 {
			return
		}
	}
}

// TestCallsAreCounted: an agent that holds calls open is refused more of them,
// and nobody else is.
func TestCallsAreCounted(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t)
	owner := s.Owner()
	agent, other := s.Agent(owner, "helper"), s.Agent(owner, "other")
	var held []net.Conn
	hold := func() {
		conn, _ := send(t, &agent.Client, "POST", api.PathGrants, 1000, "{")
		held = append(held, conn)
	}
	for range 64 {
		hold()
	}
	a := until(t, "one more call", 429, func() authoritytest.Answer {
		a := agent.Get(api.PathWhoAmI)
		if a.Status == 200 {
			hold() // one of the others may have come while this call was counted
		}
		return a
	})
	if a.Problem(429); a.Header.Get("Retry-After") == "" {
		t.Errorf("no Retry-After: %v", a.Header)
	}
	other.Ask("ls")
	for _, c := range held {
		c.Close()
	}
	until(t, "after they ended", 200, func() authoritytest.Answer { return agent.Get(api.PathWhoAmI) })
	// All agents together leave people their calls.
	for i := range 9 {
		a := s.Agent(owner, fmt.Sprint("many", i))
		for range 64 {
			send(t, &a.Client, "POST", api.PathGrants, 1000, "{")
		}
	}
	until(t, "another agent's call", 503, func() authoritytest.Answer {
		a := other.Get(api.PathWhoAmI)
		if a.Status == 200 {
			send(t, &other.Client, "POST", api.PathGrants, 1000, "{")
		}
		return a
	})
	owner.Post(api.PathPanic, api.Panic{}).Want(200)
}

// TestStrangersBodies: what strangers send is small, and together it takes no
// more than its share.
func TestStrangersBodies(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t)
	owner := s.Owner()
	s.Stranger().Post(api.PathChallenge, api.ChallengeRequest{ID: owner.Email}).Want(200)
	large := `{"id":"` + strings.Repeat("x", 64<<10) + `"}`
	for _, path := range []string{api.PathChallenge, api.PathAuthenticate, api.PathTrust, "/api/auth/enroll", "/api/agent/authenticate"} {
		s.Stranger().Post(path, large).Problem(413)
	}
	owner.Post(api.PathGrants, `{"reason":"`+strings.Repeat("x", 64<<10)+`"}`).Problem(400)

	var held []net.Conn
	hold := func() {
		conn, _ := send(t, s.Stranger(), "POST", api.PathChallenge, 64000, strings.Repeat("x", 63999))
		held = append(held, conn)
	}
	for range 130 {
		hold()
	}
	a := until(t, "one more body", 503, func() authoritytest.Answer {
		a := s.Stranger().Post(api.PathChallenge, api.ChallengeRequest{ID: owner.Email})
		if a.Status == 200 {
			hold() // those that were refused while they grew have made room
		}
		return a
	})
	if a.Problem(503); a.Header.Get("Retry-After") == "" {
		t.Errorf("no Retry-After: %v", a.Header)
	}
	owner.Post(api.PathGrants, authoritytest.Request("ls")).Want(201)
	owner.Post(api.PathPanic, api.Panic{}).Want(200)
	for _, c := range held {
		c.Close()
	}
	until(t, "after they ended", 200, func() authoritytest.Answer {
		return s.Stranger().Post(api.PathChallenge, api.ChallengeRequest{ID: owner.Email})
	})
}
