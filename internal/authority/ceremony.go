package authority

import (
	"sync"
	"time"

	"golang.org/x/time/rate"

	"vogt/internal/token"
)

// ceremonies holds state that is used once and lives for minutes: login
// challenges and passkey ceremonies. It is memory on purpose, because anyone
// may start one and nobody should be able to fill the disk that way; a
// restart ends them all, and their owners start again.
type ceremonies struct {
	mu  sync.Mutex
	all map[string]ceremony
}

type ceremony struct {
	purpose string
	subject string
	data    []byte
	ends    time.Time
}

// maxCeremonies bounds the memory that strangers can occupy.
const maxCeremonies = 4096

func newCeremonies() *ceremonies { return &ceremonies{all: map[string]ceremony{}} }

// start keeps c under id. When the table is full the one that ends first
// makes room: a flood delays logins but cannot grow.
func (c *ceremonies) start(id string, n ceremony) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.all) >= maxCeremonies {
		var first string
		for k, v := range c.all {
			if first == "" || v.ends.Before(c.all[first].ends) {
				first = k
			}
		}
		delete(c.all, first)
	}
	c.all[id] = n
}

// take removes and returns a ceremony of the purpose that has not ended.
// Whoever gets it is the only one, also when the use then fails.
func (c *ceremonies) take(id, purpose string, now time.Time) (ceremony, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, ok := c.all[id]
	if !ok || n.purpose != purpose {
		return ceremony{}, false
	}
	delete(c.all, id)
	return n, now.Before(n.ends)
}

// look returns a ceremony as take does, and leaves it there.
func (c *ceremonies) look(id, purpose string, now time.Time) (ceremony, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, ok := c.all[id]
	return n, ok && n.purpose == purpose && now.Before(n.ends)
}

func (c *ceremonies) sweep(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, n := range c.all {
		if !now.Before(n.ends) {
			delete(c.all, id)
		}
	}
}

// rates limits how fast requests are created, per agent and per owner, and
// how fast anybody else makes the log grow without a person.
type rates struct {
	mu     sync.Mutex
	limits Limits
	all    map[string]*rate.Limiter
}

func newRates(l Limits) *rates { return &rates{limits: l, all: map[string]*rate.Limiter{}} }

// allow takes one creation by agent from its own and its owner's budget.
func (r *rates) allow(agent, owner string, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	factor := float64(r.limits.OwnerFactor)
	own, all := r.limiter("a:"+agent, r.limits.Creations), r.limiter("o:"+owner, r.limits.Creations*factor)
	if own.TokensAt(now) < 1 || all.TokensAt(now) < 1 {
		return false
	}
	return own.AllowN(now, 1) && all.AllowN(now, 1)
}

// try takes one of what costs the log a line and nobody an answer: a refused
// attempt, a login, a prepared change.
func (r *rates) try(what string, now time.Time) bool { return r.tryMore(what, 1, now) }

// tryMore is try at factor times the rate.
func (r *rates) tryMore(what string, factor float64, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.limiter(what, factor*r.limits.Creations).AllowN(now, 1)
}

func (r *rates) limiter(key string, perSecond float64) *rate.Limiter {
	l := r.all[key]
	if l == nil {
		l = rate.NewLimiter(rate.Limit(perSecond), max(1, int(perSecond)))
		r.all[key] = l
	}
	return l
}

// sweep forgets limiters now and then; a forgotten one starts full again.
func (r *rates) sweep() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.all) > 1024 {
		clear(r.all)
	}
}

// logins remembers tokens whose signature held and who holds them. An entry
// counts only for the version of trust that it was read under: every change
// to people, keys, tokens or epochs raises the version before its caller is
// answered, so a cached login never outlives a revocation.
type logins struct {
	mu  sync.Mutex
	all map[[32]byte]login
}

type login struct {
	claims  token.Login
	actor   Actor
	version uint64
}

const maxLogins = 4096

func newLogins() *logins { return &logins{all: map[[32]byte]login{}} }

func (l *logins) get(key [32]byte) (login, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	v, ok := l.all[key]
	return v, ok
}

func (l *logins) put(key [32]byte, v login) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.all) >= maxLogins {
		clear(l.all)
	}
	l.all[key] = v
}
