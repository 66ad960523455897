package authoritytest

import (
	"context"
	"net"
	"net/http"
	"testing"
	"time"
)

// Remote returns the half of a Server that makes calls, for an authority that
// another process runs: issuer and pages are the names that it goes by, addr
// is where it listens. Authority, DB, Clock and Dir are unset, and so only
// what is done by calls can be done.
func Remote(t testing.TB, issuer, pages, addr string) *Server {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	}
	s := &Server{T: t, URL: issuer, Pages: pages, seen: map[string]bool{}, http: &http.Client{
		Transport:     &http.Transport{MaxIdleConnsPerHost: 64, DialContext: dial},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		// Above the longest wait that a call may ask for.
		Timeout: 2 * time.Minute,
	}}
	t.Cleanup(s.Disconnect)
	return s
}

// Disconnect closes the connections that wait for a next call, as they are of
// no use once their process has ended.
func (s *Server) Disconnect() { s.http.CloseIdleConnections() }
