package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"vogt/internal/api"
	"vogt/internal/authoritytest"
)

func TestMostConnections(t *testing.T) {
	for files, want := range map[int]int{1: 1, 64: 32, 256: 128, 512: 256, 1024: 768, 1 << 20: maxConnections} {
		if got := mostConnections(files); got != want {
			t.Errorf("with %d files %d connections, want %d", files, got, want)
		}
	}
}

// flooded serves a real authority with room for a few connections only.
func flooded(t *testing.T, most int) (s, behind *authoritytest.Server, addr string) {
	t.Helper()
	s = authoritytest.Start(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = serveHTTP(ctx, l, s.Handler(), most, slog.New(slog.DiscardHandler))
	}()
	t.Cleanup(func() { stop(); <-ended })
	return s, authoritytest.Remote(t, s.URL, s.Pages, l.Addr().String()), l.Addr().String()
}

// TestFlood: who fills the server with connections that say nothing, or half of
// something, keeps nobody out, and ends no stream of a person.
func TestFlood(t *testing.T) {
	const most = 16
	s, behind, addr := flooded(t, most)
	owner := s.Owner()
	agent := s.Agent(owner, "helper")
	person := &authoritytest.Client{S: behind, Bearer: owner.Bearer}

	stream, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	if err := stream.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	host := strings.TrimPrefix(s.URL, "http://")
	fmt.Fprintf(stream, "GET %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n\r\n", api.PathEvents, host, owner.Bearer)
	resp, err := http.ReadResponse(bufio.NewReader(stream), nil)
	if err != nil || resp.StatusCode != 200 {
		t.Fatalf("the stream: %v %v", resp, err)
	}
	events := bufio.NewScanner(resp.Body)
	if !events.Scan() {
		t.Fatal("the stream says nothing")
	}

	for name, text := range map[string]string{
		"silence":       "",
		"half a call":   "POST /api/auth/challenge HTTP/1.1\r\nHost: ",
		"half a body":   "POST /api/auth/challenge HTTP/1.1\r\nHost: " + host + "\r\nContent-Type: application/json\r\nContent-Length: 60000\r\n\r\n{",
		"a whole call":  "GET /api/health HTTP/1.1\r\nHost: " + host + "\r\n\r\n",
		"a wrong login": "GET /api/events HTTP/1.1\r\nHost: " + host + "\r\nAuthorization: Bearer x\r\n\r\n",
		// Whoever was known for one call is not for the next.
		"an agent's half": "GET /api/health HTTP/1.1\r\nHost: " + host + "\r\nAuthorization: Bearer " + agent.Bearer + "\r\n\r\nGET /",
	} {
		for range 3 * most {
			conn, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			defer conn.Close()
			_, _ = io.WriteString(conn, text) // it may be closed already
		}
		behind.Disconnect()
		if a := person.Post(api.PathPanic, api.Panic{Reason: name}); a.Status != 200 {
			t.Errorf("%s: a panic is answered %d %s", name, a.Status, a.Body)
		}
		agent.Bearer = ""
		owner.Change(api.TrustAgentResume, nil)
		agent.Login()
	}
	agent.Ask("after the flood")
	for events.Scan() {
		if strings.HasPrefix(events.Text(), "event: ") {
			return
		}
	}
	t.Errorf("the person's stream ended: %v", events.Err())
}

// TestFullOfKnown: when everybody is at work, the newcomer waits its turn.
func TestFullOfKnown(t *testing.T) {
	const most = 4
	s, _, addr := flooded(t, most)
	owner := s.Owner()
	host := strings.TrimPrefix(s.URL, "http://")
	open := func() (net.Conn, error) {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n\r\n", api.PathEvents, host, owner.Bearer)
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err == nil && resp.StatusCode != 200 {
			err = fmt.Errorf("status %d", resp.StatusCode)
		}
		return conn, err
	}
	var first net.Conn
	for i := range most {
		conn, err := open()
		if err != nil {
			t.Fatalf("stream %d: %v", i, err)
		}
		if first == nil {
			first = conn
		}
	}
	if _, err := open(); err == nil {
		t.Fatal("there was room for one more")
	}
	first.Close()
	for {
		if _, err := open(); err == nil {
			return
		}
	}
}
