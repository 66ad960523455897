package main

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"
)

// route is how a box reaches the authority: by a port of the box that is relayed, for
// one on this machine, or by a host that the proxy has to let through.
type route struct {
	host string // to be let through, with its port; empty with a relay

	port    string
	address string // of the loopback on which the box finds it
	targets []string
}

// toAuthority is the way to the authority at an address.
func toAuthority(address string) (route, error) {
	u, err := url.Parse(address)
	if err != nil {
		return route{}, err
	}
	host, port := u.Hostname(), u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	if ip, err := netip.ParseAddr(host); err == nil && ip.Unmap().IsLoopback() {
		at := ip.Unmap().String()
		return route{port: port, address: at, targets: []string{net.JoinHostPort(at, port)}}, nil
	}
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		// It listens on either; in the box the name is that of both.
		return route{port: port, address: "127.0.0.1", targets: []string{net.JoinHostPort("127.0.0.1", port), net.JoinHostPort("::1", port)}}, nil
	}
	return route{host: net.JoinHostPort(host, port)}, nil
}

// maxRelayed is how many connections of a box to the authority there can be at a
// time, and maxTold how many more are told that there are too many.
const (
	maxRelayed = 64
	maxTold    = 16
)

// relayTo passes connections on until the listener is closed.
func relayTo(l net.Listener, targets []string) {
	var group sync.WaitGroup
	defer group.Wait()
	slots, told := make(chan struct{}, maxRelayed), make(chan struct{}, maxTold)
	for {
		from, err := l.Accept()
		if err != nil {
			return
		}
		serve, taken := relay, slots
		select {
		case slots <- struct{}{}:
		default:
			serve, taken = tooMany, told
			select {
			case told <- struct{}{}:
			default:
				from.Close()
				continue
			}
		}
		group.Go(func() {
			defer func() { <-taken }()
			defer from.Close()
			serve(from, targets)
		})
	}
}

// relay passes the bytes of a connection on, to the first target that answers.
func relay(from net.Conn, targets []string) {
	var to net.Conn
	var err error
	for _, target := range targets {
		if to, err = net.Dial("tcp", target); err == nil {
			break
		}
	}
	if err != nil {
		return // the client sees the end of the connection
	}
	defer to.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(to, from)
		if t, ok := to.(*net.TCPConn); ok {
			_ = t.CloseWrite()
		}
	}()
	_, _ = io.Copy(from, to)
	from.Close() // ends the other direction
	<-done
}

// tellTime bounds how long a client is waited for that is told something.
const tellTime = 5 * time.Second

// tooMany answers a request in the authority's stead. What speaks TLS does not
// understand it, and sees that it was answered.
func tooMany(from net.Conn, _ []string) {
	if err := from.SetDeadline(time.Now().Add(tellTime)); err != nil {
		return
	}
	// A connection that is closed with bytes unread may take the answer with it.
	r := bufio.NewReader(io.LimitReader(from, 64<<10))
	request, err := http.ReadRequest(r)
	const body = `{"type":"about:blank","title":"Too many connections","status":503,"detail":"this box has ` +
		`64 connections to the authority at once, and can have no more: end some, and try again"}` + "\n"
	head := "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/problem+json\r\nRetry-After: 1\r\nConnection: close\r\n\r\n"
	if _, err := io.WriteString(from, head+body); err != nil {
		return
	}
	if t, ok := from.(*net.TCPConn); ok {
		_ = t.CloseWrite()
	}
	if err == nil {
		_, _ = io.Copy(io.Discard, request.Body)
	}
	_, _ = io.Copy(io.Discard, r)
}
