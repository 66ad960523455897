package httpapi

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"vogt/internal/api"
	"vogt/internal/authority"
)

// Rates are how many calls a minute are answered; so many may also come at
// once. Zero fields are those of DefaultRates.
type Rates struct {
	Strict     int // of one address: passkey ceremonies, registration, recovery
	Strangers  int // of one address: anything else without a login, failed logins included
	Logins     int // of one identity that has logged in from the address before
	Management int // of one address with the management token
	Principal  int // of one principal; what a person takes away is not counted
	// Local is how many times as much this machine's own addresses may, which all
	// of its users and agents share.
	Local int
}

// DefaultRates are the documented ones. The wire's reference answers 10, 120 and
// 60; a principal has far more here, since one agent's calls take no other's.
func DefaultRates() Rates {
	return Rates{Strict: 10, Strangers: 120, Logins: 60, Management: 60, Principal: 60_000, Local: 10}
}

func (r Rates) complete() Rates {
	d := DefaultRates()
	for _, f := range []struct{ have, missing *int }{
		{&r.Strict, &d.Strict}, {&r.Strangers, &d.Strangers}, {&r.Logins, &d.Logins},
		{&r.Management, &d.Management}, {&r.Principal, &d.Principal}, {&r.Local, &d.Local},
	} {
		if *f.have <= 0 {
			*f.have = *f.missing
		}
	}
	return r
}

// A class of calls has buckets of its own.
type class uint8

const (
	strictClass class = iota + 1
	strangerClass
	loginClass
	managementClass
	principalClass
	classes
)

const (
	// maxBuckets bounds each class: what comes when all are in use shares one.
	maxBuckets = 8192
	// wider is how many times as much the /48 of an IPv6 address may, as one
	// /64 of it, and as many as share the last bucket of a class.
	wider  = 16
	minute = time.Minute
)

// rates counts calls. It is memory only: a restart forgives.
type rates struct {
	Rates
	mu      sync.Mutex
	buckets [classes]map[string]int64 // when the bucket is full again, Unix ns
	swept   [classes]int64
}

func newRates(r Rates) *rates {
	out := &rates{Rates: r.complete()}
	for i := range out.buckets {
		out.buckets[i] = map[string]int64{}
	}
	return out
}

// quota is what came of one call.
type quota struct {
	limit, left  int
	reset, after time.Duration // until all may come again, and until one may
	refused      bool
}

// take takes one call from a bucket (generic cell rate algorithm, as in ATM
// Forum TM 4.0).
func (r *rates) take(c class, key string, limit int, now int64) quota {
	r.mu.Lock()
	defer r.mu.Unlock()
	full, known := r.buckets[c][key]
	if !known && !r.room(c, now) {
		key, limit = "", limit*wider
		full = r.buckets[c][key]
	}
	each := int64(minute) / int64(limit)
	if full = max(full, now); full > now+int64(minute) {
		full = now // the clock was set back
	}
	q := quota{limit: limit}
	if full+each-now > int64(minute) {
		q.refused, q.after, q.reset = true, time.Duration(full+each-now-int64(minute)), time.Duration(full-now)
		return q
	}
	full += each
	r.buckets[c][key] = full
	q.left, q.reset = int((int64(minute)-(full-now))/each), time.Duration(full-now)
	return q
}

// room makes a place for another bucket. Full ones need none.
func (r *rates) room(c class, now int64) bool {
	b := r.buckets[c]
	if len(b) < maxBuckets {
		return true
	}
	if now-r.swept[c] < int64(time.Second) && now >= r.swept[c] {
		return false // it was looked through a moment ago
	}
	r.swept[c] = now
	for k, full := range b {
		if full <= now {
			delete(b, k)
		}
	}
	return len(b) < maxBuckets
}

// seen reports whether the bucket is in use, which tells that somebody has.
func (r *rates) seen(c class, key string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, ok := r.buckets[c][key]
	return ok
}

// byAddress takes one call of an address. Of IPv6 a subscriber has a /64 at
// least, and often a /48, so each of them counts as one.
func (r *rates) byAddress(c class, a netip.Addr, limit int, now int64) quota {
	if !a.IsValid() || a.IsLoopback() {
		limit *= r.Local
	}
	if a.Is4() || !a.IsValid() || a.IsLoopback() {
		return r.take(c, a.String(), limit, now)
	}
	subnet, _ := a.Prefix(64) // of a valid IPv6 address there is one
	site, _ := a.Prefix(48)
	q := r.take(c, subnet.String(), limit, now)
	if q.refused {
		return q // and takes nothing from its neighbours
	}
	if all := r.take(c, site.String(), limit*wider, now); all.refused {
		return all
	}
	return q
}

func seconds(d time.Duration) int { return int((d + time.Second - 1) / time.Second) }

func (q quota) headers(h http.Header) {
	h.Set("X-RateLimit-Limit", strconv.Itoa(q.limit))
	h.Set("X-RateLimit-Remaining", strconv.Itoa(q.left))
	h.Set("X-RateLimit-Reset", strconv.Itoa(seconds(q.reset)))
}

func (q quota) problem(who string) *authority.Error {
	return &authority.Error{
		Status: http.StatusTooManyRequests, Kind: "rate_limited", Title: "Too many calls",
		Detail: fmt.Sprintf("From %s at most %d such calls a minute are answered.", who, q.limit),
		Hint:   "Wait as long as Retry-After says; the operator sets the limits in vogtd.toml.", Retry: max(1, seconds(q.after)),
	}
}

// strict are the addresses at which people sign in or ask for a way in.
func strict(path string) bool {
	for _, prefix := range []string{
		"/api/webauthn/login/", "/api/webauthn/register/", "/api/register", "/api/recovery/", "/api/session/login",
		"/p/login/", "/p/register/", "/p/setup/options", "/p/setup/verify", "/p/recover/",
	} {
		if strings.HasPrefix(path, prefix) {
			return true
		}
	}
	return false
}

// admit counts a call by its address, before anything else is done for it, and
// reports whether it goes on. Calls with a bearer are counted by its holder
// instead, so that one address's strangers do not lock out its agents; logins by
// key are counted where their identity is known.
func (s *server) admit(w http.ResponseWriter, r *http.Request) bool {
	path := r.URL.Path
	_, carries := bearer(r)
	c, limit := strangerClass, s.rates.Strangers
	switch {
	case strings.HasPrefix(path, "/api/auth/"), strings.HasPrefix(path, "/api/agent/"), strings.HasPrefix(path, "/.well-known/"):
		return true
	case r.Method == http.MethodPost && strict(path):
		c, limit = strictClass, s.rates.Strict
	case carries && !overlooked(path), strings.EqualFold(r.Host, s.pagesHost):
		return true
	}
	a := s.Proxies.client(r)
	q := s.rates.byAddress(c, a, limit, s.Authority.Now().UnixNano())
	q.headers(w.Header())
	switch {
	case q.refused && overlooked(path), q.refused && path == api.PathUserInfo:
		s.failOAuth(w, r, q.problem(nameOf(a))) // in the form that their clients read
	case q.refused:
		writeProblem(w, q.problem(nameOf(a)))
	}
	return !q.refused
}

// overlooked reports whether nobody reads a bearer at the address, so that one
// which is sent along counts for nobody.
func overlooked(path string) bool { return path == api.PathToken || path == api.PathRevoke }

func nameOf(a netip.Addr) string {
	if !a.IsValid() {
		return "this machine"
	}
	return a.String()
}

// admitLogin counts a call of a login by key. Who has logged in from this address
// before has a bucket of its own first, so that neither strangers at the address
// nor another agent there keep it out.
func (s *server) admitLogin(c *call, identity string) error {
	a, now := s.Proxies.client(c.Request), s.Authority.Now().UnixNano()
	if key := loginKey(a, identity); s.rates.seen(loginClass, key) {
		if q := s.rates.take(loginClass, key, s.rates.Logins, now); !q.refused {
			q.headers(c.Header())
			return nil
		}
	}
	q := s.rates.byAddress(strangerClass, a, s.rates.Strangers, now)
	q.headers(c.Header())
	if q.refused {
		return q.problem(nameOf(a))
	}
	return nil
}

func loginKey(a netip.Addr, identity string) string {
	return a.String() + " " + strings.ToLower(identity)
}

// loggedIn notes that identity has logged in from where the call comes from.
func (s *server) loggedIn(c *call, identity string) {
	s.rates.take(loginClass, loginKey(s.Proxies.client(c.Request), identity), s.rates.Logins, s.Authority.Now().UnixNano())
}

// failedBearer counts a bearer that is none: when there were too many from an
// address, this answers instead of what was wrong with it.
func (s *server) failedBearer(r *http.Request, why error) error {
	var public *authority.Error
	var oauth *authority.OAuthError
	if !(errors.As(why, &public) && public.Status < 500 || errors.As(why, &oauth) && oauth.Status < 500) {
		return why
	}
	a := s.Proxies.client(r)
	if q := s.rates.byAddress(strangerClass, a, s.rates.Strangers, s.Authority.Now().UnixNano()); q.refused {
		return q.problem(nameOf(a))
	}
	return why
}

// admitPrincipal counts a call by who makes it. What a person takes away is
// always let through.
func (s *server) admitPrincipal(c *call) error {
	var q quota
	now := s.Authority.Now().UnixNano()
	who := c.actor.Name()
	switch {
	case c.actor.Means == authority.Management:
		q = s.rates.byAddress(managementClass, s.Proxies.client(c.Request), s.rates.Management, now)
		who = nameOf(s.Proxies.client(c.Request))
	case c.actor.Person() && narrows(c.Request):
		return nil
	default:
		q = s.rates.take(principalClass, who, s.rates.Principal, now)
	}
	q.headers(c.Header())
	if q.refused {
		return q.problem(who)
	}
	return nil
}

// narrows reports whether a call takes something away.
func narrows(r *http.Request) bool {
	path := r.URL.Path
	return r.Method == http.MethodDelete || strings.HasSuffix(path, "/deny") || strings.HasSuffix(path, "/revoke") || strings.HasSuffix(path, "/panic")
}
