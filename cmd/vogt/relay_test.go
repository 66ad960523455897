package main

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestToAuthority(t *testing.T) {
	for address, want := range map[string]route{
		"http://127.0.0.1:8648":       {port: "8648", address: "127.0.0.1", targets: []string{"127.0.0.1:8648"}},
		"http://127.0.0.2:80":         {port: "80", address: "127.0.0.2", targets: []string{"127.0.0.2:80"}},
		"http://127.0.0.1":            {port: "80", address: "127.0.0.1", targets: []string{"127.0.0.1:80"}},
		"https://[::1]":               {port: "443", address: "::1", targets: []string{"[::1]:443"}},
		"http://[::ffff:127.0.0.1]:9": {port: "9", address: "127.0.0.1", targets: []string{"127.0.0.1:9"}},
		"http://localhost:8648":       {port: "8648", address: "127.0.0.1", targets: []string{"127.0.0.1:8648", "[::1]:8648"}},
		"http://vogt.localhost:8648":  {port: "8648", address: "127.0.0.1", targets: []string{"127.0.0.1:8648", "[::1]:8648"}},
		"https://vogt.example.com":    {host: "vogt.example.com:443"},
		"https://192.168.1.2:8648":    {host: "192.168.1.2:8648"},
	} {
		if got, err := toAuthority(address); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v, want %+v", address, got, err, want)
		}
	}
	if _, err := toAuthority("http://[::1"); err == nil {
		t.Error("what is no address has a way")
	}
}

func listen(t *testing.T, address string) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// TestRelayFull holds all connections of a relay: the next one is answered.
func TestRelayFull(t *testing.T) {
	authority, box := listen(t, "127.0.0.1:0"), listen(t, "127.0.0.1:0")
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		relayTo(box, []string{authority.Addr().String()})
	}()
	accepted := make(chan net.Conn, maxRelayed)
	go func() {
		for {
			c, err := authority.Accept()
			if err != nil {
				close(accepted)
				return
			}
			accepted <- c
		}
	}()
	var held []net.Conn
	for range maxRelayed {
		c, err := net.Dial("tcp", box.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, c, <-accepted)
	}
	next, err := net.Dial("tcp", box.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if err := next.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(next, "POST /api/grants HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(next), nil)
	if err != nil {
		t.Fatal(err)
	}
	var problem struct {
		Status int
		Detail string
	}
	if err := json.NewDecoder(response.Body).Decode(&problem); err != nil || response.StatusCode != 503 || problem.Status != 503 || !strings.Contains(problem.Detail, "try again") {
		t.Errorf("%s, %+v, %v", response.Status, problem, err)
	}
	next.Close()

	// When one ends, there is room again.
	held[0].Close()
	if _, err := held[1].Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the end of a connection is not passed on: %v", err)
	}
	held[1].Close()
	for {
		c, err := net.Dial("tcp", box.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		answered := make(chan struct{})
		go func() { defer close(answered); _, _ = c.Read(make([]byte, 1)) }()
		select {
		case a := <-accepted:
			a.Close()
			c.Close()
			<-answered
		case <-answered: // the place was not free yet
			c.Close()
			continue
		}
		break
	}
	for _, c := range held {
		c.Close()
	}
	box.Close()
	<-ended
}

// TestRelayTargets reaches an authority on whichever address it listens.
func TestRelayTargets(t *testing.T) {
	for _, address := range []string{"[::1]:0", "127.0.0.2:0"} {
		authority, box := listen(t, address), listen(t, "127.0.0.1:0")
		go relayTo(box, []string{"127.0.0.1:1", authority.Addr().String()})
		c, err := net.Dial("tcp", box.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		to, err := authority.Accept()
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
		to.Close()
	}
}
