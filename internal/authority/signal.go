package authority

import "sync"

// signal wakes everybody who waits for a change of something small.
type signal struct {
	mu sync.Mutex
	ch chan struct{}
}

// wait returns a channel that closes at the next announcement. It is taken
// before the state is read, so that no change falls between.
func (s *signal) wait() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ch == nil {
		s.ch = make(chan struct{})
	}
	return s.ch
}

func (s *signal) announce() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ch != nil {
		close(s.ch)
		s.ch = nil
	}
}
