package httpapi

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"vogt/internal/authority"
)

// TestSlowBody: a body that does not arrive ends its call, and one that did
// leaves the call all the time that it needs.
func TestSlowBody(t *testing.T) {
	t.Parallel()
	s := &server{bodies: newBodies()}
	s.bodies.limit = 50 * time.Millisecond
	free := s.bodies.strangers.free
	results := make(chan error, 1)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := &call{ResponseWriter: w, Request: r, s: s}
		_, err := c.readBody()
		if err == nil {
			select {
			case <-r.Context().Done():
				err = errors.New("the call was ended while it waited")
			case <-time.After(4 * s.bodies.limit):
			}
		}
		for _, end := range c.ends {
			end()
		}
		results <- err
	}))
	defer web.Close()
	for body, status := range map[string]int{"half": 408, strings.Repeat("x", 100): 0} {
		conn, err := net.Dial("tcp", web.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := io.WriteString(conn, fmt.Sprintf("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n%s", body)); err != nil {
			t.Fatal(err)
		}
		err = <-results
		var e *authority.Error
		if errors.As(err, &e); status == 0 && err != nil || status != 0 && (e == nil || e.Status != status) {
			t.Errorf("a body of %d of 100 bytes: %v", len(body), err)
		}
	}
	if s.bodies.strangers.free != free {
		t.Errorf("%d bytes are free, want %d", s.bodies.strangers.free, free)
	}
}
