package httpapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"vogt/internal/authority"
)

const (
	// maxBody bounds a request body: an argument list of 1 MiB, twice, escaped.
	maxBody = 8 << 20
	// maxStrangersBody bounds it for callers who have not logged in.
	maxStrangersBody = 64 << 10

	// maxCalls is how many calls one agent may have in progress, and
	// maxAgentCalls all agents together. People are not counted: their no, and
	// their panic, get through whatever the agents do.
	maxCalls      = 64
	maxAgentCalls = 512

	// bodyLimit is the time that a body has to arrive in.
	bodyLimit = 15 * time.Second
)

// Standing tells of a connection whether the call that it carries, or carried
// last, was made by somebody who proved who it is. A server that is short of
// connections ends others first.
type Standing struct{ known atomic.Bool }

type standingKey struct{}

// WithStanding returns a context for the calls of one connection and what they
// say of it.
func WithStanding(ctx context.Context) (context.Context, *Standing) {
	s := new(Standing)
	return context.WithValue(ctx, standingKey{}, s), s
}

// Known reports whether somebody proved who it is.
func (s *Standing) Known() bool { return s.known.Load() }

// Forget is for the begin of the connection's next call.
func (s *Standing) Forget() { s.known.Store(false) }

func markKnown(r *http.Request) {
	if s, ok := r.Context().Value(standingKey{}).(*Standing); ok {
		s.known.Store(true)
	}
}

// markPages marks the connection of a browser that is signed in. The pages find
// that out for themselves, but know nothing of connections; their cookie has
// the one name over HTTP and the other over TLS.
func (s *server) markPages(r *http.Request) {
	standing, ok := r.Context().Value(standingKey{}).(*Standing)
	if !ok {
		return
	}
	for _, c := range r.Cookies() {
		if c.Name != "vogt_session" && c.Name != "__Host-vogt_session" {
			continue
		}
		if _, err := s.Authority.AuthenticateSession(r.Context(), c.Value); err == nil {
			standing.known.Store(true)
		}
	}
}

// calls counts the calls in progress of each agent.
type calls struct {
	mu  sync.Mutex
	all int
	of  map[string]int
}

func newCalls() *calls { return &calls{of: map[string]int{}} }

func (c *calls) enter(agent string) (leave func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.of[agent] >= maxCalls:
		return nil, &authority.Error{
			Status: 429, Title: "Too many calls at once", Detail: fmt.Sprintf("%s has %d calls in progress.", agent, maxCalls),
			Hint: "Let some of them end first.", Retry: 3,
		}
	case c.all >= maxAgentCalls:
		return nil, &authority.Error{
			Status: 503, Title: "The authority is busy", Detail: fmt.Sprintf("The agents have %d calls in progress.", maxAgentCalls),
			Hint: "Try again in a moment.", Retry: 3,
		}
	}
	c.all++
	c.of[agent]++
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.all--
		if c.of[agent]--; c.of[agent] <= 0 {
			delete(c.of, agent)
		}
	}, nil
}

// bodies is the memory that request bodies take, by who sent them: strangers
// cannot take what agents need, nor agents what people need.
type bodies struct {
	limit                     time.Duration // in which a body must arrive
	strangers, agents, people memory
}

func newBodies() *bodies {
	return &bodies{limit: bodyLimit, strangers: memory{free: 8 << 20}, agents: memory{free: 40 << 20}, people: memory{free: 16 << 20}}
}

func (b *bodies) of(a authority.Actor) *memory {
	switch {
	case a.Person(), a.Means == authority.Management, a.Means == authority.Administrator:
		return &b.people
	case a.Agent():
		return &b.agents
	}
	return &b.strangers
}

// memory is a number of bytes that calls share.
type memory struct {
	mu   sync.Mutex
	free int
}

func (m *memory) take(n int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.free < n {
		return false
	}
	m.free -= n
	return true
}

func (m *memory) give(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.free += n
}

// readBody reads the whole body. What it takes of the shared memory is given
// back when the call ends, and is taken piece by piece, so that nobody holds
// what it only announced.
func (c *call) readBody() ([]byte, error) {
	if c.read {
		return c.raw, nil
	}
	limit := int64(maxBody)
	if c.actor.Means == authority.Anonymous {
		limit = maxStrangersBody
	}
	timed := http.NewResponseController(c.ResponseWriter)
	// Where no deadline can be set there is no connection to hold.
	_ = timed.SetReadDeadline(time.Now().Add(c.s.bodies.limit))
	pool := c.s.bodies.of(c.actor)
	var b []byte
	src := http.MaxBytesReader(c.ResponseWriter, c.Body, limit)
	for {
		if len(b) == cap(b) {
			grown := min(max(4<<10, 2*cap(b)), int(limit)+512)
			if !pool.take(grown - cap(b)) {
				return nil, &authority.Error{
					Status: 503, Title: "The authority is busy", Detail: "Too many large requests arrive at once.",
					Hint: "Try again in a moment.", Retry: 3,
				}
			}
			taken := grown - cap(b)
			c.ends = append(c.ends, func() { pool.give(taken) })
			b = append(make([]byte, 0, grown), b...)
		}
		n, err := src.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if errors.Is(err, io.EOF) {
			// What the call waits for now may take longer than its body.
			_ = timed.SetReadDeadline(time.Time{})
			return b, nil
		}
		if err != nil {
			var large *http.MaxBytesError
			if errors.As(err, &large) {
				return nil, &authority.Error{Status: 413, Title: "The body is too large", Detail: fmt.Sprintf("The limit is %d bytes.", limit)}
			}
			if errors.Is(err, os.ErrDeadlineExceeded) {
				return nil, &authority.Error{Status: 408, Title: "The body took too long", Detail: fmt.Sprintf("It must arrive within %v.", c.s.bodies.limit)}
			}
			return nil, &authority.Error{Status: 400, Title: "The body could not be read", Detail: "The connection ended early."}
		}
	}
}
