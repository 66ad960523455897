package httpapi_test

import (
	"net/netip"
	"strconv"
	"testing"
	"time"

	"vogt/internal/api"
	"vogt/internal/authoritytest"
	"vogt/internal/httpapi"
)

// limited counts calls, and takes this machine for a proxy, so that a test can
// say where a call comes from.
func limited(r httpapi.Rates) authoritytest.Option {
	return authoritytest.WithAPI(func(c *httpapi.Config) {
		c.Rates = r
		c.Proxies = httpapi.Proxies{Trusted: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}}
	})
}

func many(n int, call func() authoritytest.Answer) (passed int, last authoritytest.Answer) {
	for range n {
		if last = call(); last.Status != 429 {
			passed++
		}
	}
	return passed, last
}

// TestRateLimits: what is counted by address, what the answers say, and that
// nobody's flood keeps others out.
func TestRateLimits(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t, authoritytest.WithPages(noPages), limited(httpapi.Rates{Strict: 5, Strangers: 20, Logins: 10, Management: 60, Principal: 30, Local: 1}))
	owner := s.Owner()
	agent, other := s.Agent(owner, "helper"), s.Agent(owner, "other")
	from := func(address string) []string { return []string{"X-Forwarded-For", address} }
	register := func(forwarded string) func() authoritytest.Answer {
		return func() authoritytest.Answer {
			return s.Stranger().Do("POST", "/api/recovery/request", map[string]string{"email": "a@example.com"}, from(forwarded)...)
		}
	}
	passed, last := many(12, register("192.0.2.1"))
	if passed != 5 {
		t.Errorf("%d of 12 passed", passed)
	}
	if p := last.Problem(429); p.Type != "https://openape.org/errors/rate_limited" || p.Hint == "" {
		t.Errorf("%+v", p)
	}
	if retry, err := strconv.Atoi(last.Header.Get("Retry-After")); err != nil || retry != 12 {
		t.Errorf("Retry-After %q", last.Header.Get("Retry-After"))
	}
	for header, want := range map[string]string{"X-RateLimit-Limit": "5", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "60"} {
		if got := last.Header.Get(header); got != want {
			t.Errorf("%s: %q, want %q", header, got, want)
		}
	}
	// What a client writes before the proxy's own word is no other address.
	n := 0
	forging := func() authoritytest.Answer {
		n++
		return register("198.51.100." + strconv.Itoa(n) + ", 192.0.2.1")()
	}
	if passed, _ := many(5, forging); passed != 0 {
		t.Errorf("%d forged calls passed", passed)
	}
	if passed, _ := many(12, register("192.0.2.9")); passed != 5 {
		t.Errorf("another address: %d", passed)
	}
	s.Clock.Advance(12 * time.Second)
	if passed, _ := many(5, register("192.0.2.1")); passed != 1 {
		t.Errorf("after Retry-After %d passed", passed)
	}

	// Strangers, and those who make up logins, from the agents' own address.
	at := from("192.0.2.50")
	guess := func() authoritytest.Answer {
		return (&authoritytest.Client{S: s, Bearer: "made.up.token"}).Do("GET", api.PathGrants, nil, at...)
	}
	if passed, _ := many(50, guess); passed != 20 {
		t.Errorf("%d made-up logins were answered", passed)
	}
	if passed, _ := many(5, func() authoritytest.Answer { return s.Stranger().Do("GET", api.PathHealth, nil, at...) }); passed != 0 {
		t.Errorf("%d more calls of strangers", passed)
	}
	agent.Do("GET", api.PathGrants, nil, at...).Want(200)
	s.Stranger().Do("GET", api.PathDiscovery, nil, at...).Want(200)

	// One agent uses up its own calls, nobody else's.
	flood := func() authoritytest.Answer { return agent.Get(api.PathGrants) }
	passed, last = many(100, flood)
	if passed >= 100 || last.Status != 429 || last.Header.Get("X-RateLimit-Limit") != "30" {
		t.Errorf("%d passed, the last is %d %v", passed, last.Status, last.Header)
	}
	other.Get(api.PathGrants).Want(200)
	owner.Get(api.PathGrants).Want(200)
	// A person's no gets through whatever came before.
	g := other.Ask("ls")
	many(100, func() authoritytest.Answer { return owner.Get(api.PathGrants) })
	owner.Get(api.PathGrants).Problem(429)
	owner.Post(authoritytest.GrantPath(g.ID, "deny"), nil).Want(200)
	owner.Post(api.PathPanic, api.Panic{}).Want(200)
}

// TestLoginsAreNotStarved: agents that log in often keep doing so, whoever else
// calls from their address, strangers under their names included.
func TestLoginsAreNotStarved(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t, limited(httpapi.Rates{Strict: 5, Strangers: 40, Logins: 20, Management: 1000, Principal: 1000, Local: 1}))
	owner := s.Owner()
	agent := s.Agent(owner, "helper")
	for range 9 { // two calls each
		agent.Login()
	}
	stranger := func(id string) func() authoritytest.Answer {
		return func() authoritytest.Answer { return s.Stranger().Post(api.PathChallenge, api.ChallengeRequest{ID: id}) }
	}
	n := 0
	if passed, _ := many(200, func() authoritytest.Answer { n++; return stranger("x" + strconv.Itoa(n) + "@example.com")() }); passed >= 100 {
		t.Errorf("%d challenges of strangers from one address", passed)
	}
	s.Clock.Advance(3 * time.Second) // one place in the agent's own bucket
	many(200, stranger("nobody@example.com"))
	s.Clock.Advance(3 * time.Second)
	many(200, stranger("nobody@example.com"))
	agent.Login()
	owner.Get("/api/me").Want(200)
}
