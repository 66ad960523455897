package authority

import (
	"sync"

	"vogt/internal/grant"
)

// hub tells waiting calls of grants that changed. It only ever says "look
// again": what a waiter then sees it reads from the database itself.
type hub struct {
	mu   sync.Mutex
	subs map[*Subscription]struct{}
}

func newHub() *hub { return &hub{subs: map[*Subscription]struct{}{}} }

// Subscription receives the grants that its filter admits. C holds the newest
// ones; when the reader is slow the oldest are dropped and Lost says so once.
type Subscription struct {
	C      chan grant.Grant
	filter func(grant.Grant) bool
	hub    *hub
	leave  func() // gives its place back; nil where none was taken
	lost   bool
}

func (h *hub) subscribe(filter func(grant.Grant) bool) *Subscription {
	s := &Subscription{C: make(chan grant.Grant, 64), filter: filter, hub: h}
	h.mu.Lock()
	h.subs[s] = struct{}{}
	h.mu.Unlock()
	return s
}

// Close ends the subscription; it may be called twice.
func (s *Subscription) Close() {
	s.hub.mu.Lock()
	_, open := s.hub.subs[s]
	delete(s.hub.subs, s)
	s.hub.mu.Unlock()
	if open && s.leave != nil {
		s.leave()
	}
}

// Lost reports, once, whether changes were dropped since the last call.
func (s *Subscription) Lost() bool {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	lost := s.lost
	s.lost = false
	return lost
}

// publish never blocks: it runs while the writer waits.
func (h *hub) publish(g grant.Grant) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for s := range h.subs {
		if !s.filter(g) {
			continue
		}
		for {
			select {
			case s.C <- g:
			default:
				select {
				case <-s.C:
					s.lost = true
				default:
				}
				continue
			}
			break
		}
	}
}

// waits counts the calls that one principal keeps open.
type waits struct {
	mu    sync.Mutex
	limit int
	open  map[string]int
}

func newWaits(limit int) *waits { return &waits{limit: limit, open: map[string]int{}} }

// enter takes a place for name, or reports that all are taken.
func (w *waits) enter(name string) (leave func(), ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.open[name] >= w.limit {
		return nil, false
	}
	w.open[name]++
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.open[name]--; w.open[name] <= 0 {
			delete(w.open, name)
		}
	}, true
}
