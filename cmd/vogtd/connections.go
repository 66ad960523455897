package main

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"

	"vogt/internal/httpapi"
)

const (
	// maxConnections bounds what the connections of strangers take: memory, and
	// the descriptors that the database needs.
	maxConnections = 1024
	// reservedFiles are the descriptors for everything else.
	reservedFiles = 256
)

// mostConnections is the limit of a server in a process that may open that many
// files.
func mostConnections(files int) int {
	return min(maxConnections, max(files-reservedFiles, files/2, 1))
}

// connections knows what each connection of a server is doing, and keeps their
// number below a limit. Whoever comes always gets in, in place of another:
// first goes what nobody proved an identity on and is idle, then the oldest of
// those, then what waits for its holder's next call. A call of somebody known,
// such as a person's stream of events, never goes. So a flood of connections
// costs the strangers, and a person's no gets through.
type connections struct {
	most    int
	mu      sync.Mutex
	last    uint64 // counts openings and changes, in place of a clock
	all     map[net.Conn]*connection
	changed chan struct{} // has room for one: something changed
}

type connection struct {
	standing *httpapi.Standing
	state    http.ConnState
	opened   uint64
	since    uint64 // of the state
}

func newConnections(most int) *connections {
	return &connections{most: most, all: map[net.Conn]*connection{}, changed: make(chan struct{}, 1)}
}

// open is the server's ConnContext hook, which comes first.
func (c *connections) open(ctx context.Context, conn net.Conn) context.Context {
	ctx, standing := httpapi.WithStanding(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.all) >= c.most {
		c.evict(conn)
	}
	c.last++
	c.all[conn] = &connection{standing: standing, state: http.StateNew, opened: c.last, since: c.last}
	return ctx
}

// evict closes the connection that is missed least; the newcomer itself if
// every other is at work for somebody known.
func (c *connections) evict(newcomer net.Conn) {
	victim, rank, age := newcomer, 3, uint64(0)
	for conn, is := range c.all {
		r, a := 1, is.opened
		idle := is.state == http.StateIdle
		switch known := is.standing.Known(); {
		case known && !idle:
			continue
		case known:
			r, a = 2, is.since
		case idle:
			r, a = 0, is.since
		}
		if r < rank || r == rank && a < age {
			victim, rank, age = conn, r, a
		}
	}
	delete(c.all, victim)
	victim.Close() // the server notices by itself
}

// note is the server's ConnState hook.
func (c *connections) note(conn net.Conn, s http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if is := c.all[conn]; is != nil {
		switch s {
		case http.StateClosed, http.StateHijacked:
			delete(c.all, conn)
		case http.StateActive:
			is.standing.Forget() // a new call begins
			fallthrough
		default:
			c.last++
			is.state, is.since = s, c.last
		}
	}
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

func (c *connections) count(s http.ConnState) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, is := range c.all {
		if is.state == s {
			n++
		}
	}
	return n
}

// drain waits until every call has been answered, but no longer than limit. A
// connection on which nothing has come yet may bring its call until patience is
// over; browsers open some that they never use.
func (c *connections) drain(patience, limit time.Duration) {
	soon, late := time.NewTimer(patience), time.NewTimer(limit)
	defer soon.Stop()
	defer late.Stop()
	for patient := true; c.count(http.StateActive) > 0 || patient && c.count(http.StateNew) > 0; {
		select {
		case <-c.changed:
		case <-soon.C:
			patient = false
		case <-late.C:
			return
		}
	}
}
