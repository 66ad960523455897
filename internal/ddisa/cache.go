package ddisa

import (
	"container/list"
	"context"
	"sync"
	"time"
)

const (
	found   = 300 * time.Second // for which what was found is remembered
	absent  = 60 * time.Second  // and for which that there is nothing
	maxKept = 1024              // entries; those not used for longest go first
	atOnce  = 16                // lookups; others wait
)

// cache remembers answers, bounded in number and time, and lets several who ask the
// same at once share one lookup. Errors are not remembered.
type cache[V any] struct {
	now    func() time.Time
	most   int
	places chan struct{}

	mu      sync.Mutex
	entries map[string]*list.Element // of *entry[V]
	order   list.List                // the one used last is in front
	running map[string]*lookup[V]
}

type entry[V any] struct {
	key   string
	value V
	until time.Time
}

// lookup is one that is under way.
type lookup[V any] struct {
	done      chan struct{}
	value     V
	err       error
	abandoned bool // whoever made it gave up, which says nothing to the others
}

func newCache[V any](now func() time.Time) *cache[V] {
	return &cache[V]{
		now: now, most: maxKept, places: make(chan struct{}, atOnce),
		entries: make(map[string]*list.Element), running: make(map[string]*lookup[V]),
	}
}

// get returns what is remembered of key, or what load says and for how long it may be
// remembered.
func (c *cache[V]) get(ctx context.Context, key string, load func(context.Context) (V, time.Duration, error)) (V, error) {
	for {
		c.mu.Lock()
		if value, ok := c.remembered(key); ok {
			c.mu.Unlock()
			return value, nil
		}
		other, ok := c.running[key]
		if !ok {
			own := &lookup[V]{done: make(chan struct{})}
			c.running[key] = own
			c.mu.Unlock()
			return c.perform(ctx, key, own, load)
		}
		c.mu.Unlock()
		select {
		case <-other.done:
			if !other.abandoned {
				return other.value, other.err
			}
		case <-ctx.Done():
			var none V
			return none, context.Cause(ctx)
		}
	}
}

// remembered needs c.mu.
func (c *cache[V]) remembered(key string) (V, bool) {
	var none V
	el, ok := c.entries[key]
	if !ok {
		return none, false
	}
	e := el.Value.(*entry[V])
	if !c.now().Before(e.until) {
		c.order.Remove(el)
		delete(c.entries, key)
		return none, false
	}
	c.order.MoveToFront(el)
	return e.value, true
}

func (c *cache[V]) perform(ctx context.Context, key string, l *lookup[V], load func(context.Context) (V, time.Duration, error)) (V, error) {
	var keep time.Duration
	l.abandoned = true // unless load returns
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.running, key)
		if l.err == nil && !l.abandoned && keep > 0 {
			c.keep(&entry[V]{key: key, value: l.value, until: c.now().Add(keep)})
		}
		close(l.done)
	}()
	select {
	case c.places <- struct{}{}:
		defer func() { <-c.places }()
	case <-ctx.Done():
		l.err = context.Cause(ctx)
		return l.value, l.err
	}
	l.value, keep, l.err = load(ctx)
	l.abandoned = l.err != nil && ctx.Err() != nil
	return l.value, l.err
}

// keep needs c.mu.
func (c *cache[V]) keep(e *entry[V]) {
	if old, ok := c.entries[e.key]; ok {
		c.order.Remove(old)
	}
	c.entries[e.key] = c.order.PushFront(e)
	for c.order.Len() > c.most {
		last := c.order.Back()
		c.order.Remove(last)
		delete(c.entries, last.Value.(*entry[V]).key)
	}
}
