package httpapi

import (
	"fmt"
	"net/http"
	"net/netip"
	"testing"
	"time"
)

// TestClient: whose address counts, whatever a client writes into headers.
func TestClient(t *testing.T) {
	t.Parallel()
	own := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8:1::/48")}
	for name, test := range map[string]struct {
		peer      string
		trusted   []netip.Prefix
		forwarded bool
		xff, fwd  []string
		want      string
	}{
		"no proxy":                              {peer: "192.0.2.1:5", want: "192.0.2.1"},
		"a header from nobody trusted":          {peer: "192.0.2.1:5", xff: []string{"198.51.100.7"}, want: "192.0.2.1"},
		"a header from a stranger":              {peer: "192.0.2.1:5", trusted: own, xff: []string{"198.51.100.7"}, want: "192.0.2.1"},
		"one proxy":                             {peer: "10.0.0.1:5", trusted: own, xff: []string{"198.51.100.7"}, want: "198.51.100.7"},
		"forged before the proxy's own":         {peer: "10.0.0.1:5", trusted: own, xff: []string{"1.1.1.1, 198.51.100.7"}, want: "198.51.100.7"},
		"forged in a line of its own":           {peer: "10.0.0.1:5", trusted: own, xff: []string{"1.1.1.1", "198.51.100.7"}, want: "198.51.100.7"},
		"forged as one of our proxies":          {peer: "10.0.0.1:5", trusted: own, xff: []string{"1.1.1.1, 10.0.0.9, 198.51.100.7"}, want: "198.51.100.7"},
		"two proxies":                           {peer: "10.0.0.1:5", trusted: own, xff: []string{"1.1.1.1, 198.51.100.7, 10.0.0.9"}, want: "198.51.100.7"},
		"only proxies":                          {peer: "10.0.0.1:5", trusted: own, xff: []string{"10.0.0.8, 10.0.0.9"}, want: "10.0.0.8"},
		"rubbish ends the reading":              {peer: "10.0.0.1:5", trusted: own, xff: []string{"198.51.100.7, rubbish, 10.0.0.9"}, want: "10.0.0.9"},
		"rubbish of the proxy":                  {peer: "10.0.0.1:5", trusted: own, xff: []string{"198.51.100.7, "}, want: "10.0.0.1"},
		"no header of the proxy":                {peer: "10.0.0.1:5", trusted: own, want: "10.0.0.1"},
		"the other header is the client's word": {peer: "10.0.0.1:5", trusted: own, fwd: []string{"for=198.51.100.7"}, want: "10.0.0.1"},
		"and the other way round":               {peer: "10.0.0.1:5", trusted: own, forwarded: true, xff: []string{"1.1.1.1"}, fwd: []string{"for=198.51.100.7"}, want: "198.51.100.7"},
		"Forwarded in full":                     {peer: "10.0.0.1:5", trusted: own, forwarded: true, fwd: []string{`for=1.1.1.1;by=x, proto=https; For="[2001:db8:9::1]:47"`}, want: "2001:db8:9::1"},
		"Forwarded, hidden":                     {peer: "10.0.0.1:5", trusted: own, forwarded: true, fwd: []string{"for=1.1.1.1, for=_secret"}, want: "10.0.0.1"},
		"Forwarded, quoted comma":               {peer: "10.0.0.1:5", trusted: own, forwarded: true, fwd: []string{`for="1.1.1.1, for=2.2.2.2"`}, want: "10.0.0.1"},
		"IPv6 with a port":                      {peer: "[2001:db8:1::1]:5", trusted: own, xff: []string{"[2001:db8:9::1]:47"}, want: "2001:db8:9::1"},
		"IPv6 in brackets":                      {peer: "[2001:db8:1::1]:5", trusted: own, xff: []string{"[2001:db8:9::1]"}, want: "2001:db8:9::1"},
		"IPv4 with a port":                      {peer: "10.0.0.1:5", trusted: own, xff: []string{"198.51.100.7:47"}, want: "198.51.100.7"},
		"IPv4 in IPv6":                          {peer: "[::ffff:10.0.0.1]:5", trusted: own, xff: []string{"::ffff:198.51.100.7"}, want: "198.51.100.7"},
		"a zone is no other address":            {peer: "10.0.0.1:5", trusted: own, xff: []string{"fe80::1%eth0"}, want: "fe80::1"},
		"a socket without an address":           {peer: "@", trusted: own, xff: []string{"198.51.100.7"}, want: "invalid IP"},
	} {
		r := &http.Request{RemoteAddr: test.peer, Header: http.Header{"X-Forwarded-For": test.xff, "Forwarded": test.fwd}}
		p := Proxies{Trusted: test.trusted, Forwarded: test.forwarded}
		if got := p.client(r); got.String() != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

// TestBuckets: how many come through, and when the next one does.
func TestBuckets(t *testing.T) {
	t.Parallel()
	r := newRates(Rates{Strict: 10, Local: 3})
	now := time.Date(2026, 3, 4, 10, 0, 0, 0, time.UTC).UnixNano()
	taken := func(a string, n int) (passed int) {
		for range n {
			if !r.byAddress(strictClass, netip.MustParseAddr(a), r.Strict, now).refused {
				passed++
			}
		}
		return passed
	}
	if got := taken("192.0.2.1", 30); got != 10 {
		t.Errorf("%d of 30 calls passed", got)
	}
	q := r.byAddress(strictClass, netip.MustParseAddr("192.0.2.1"), 10, now)
	if !q.refused || q.after != 6*time.Second || q.reset != time.Minute || q.limit != 10 || q.left != 0 {
		t.Errorf("%+v", q)
	}
	now += int64(q.after) - 1
	if taken("192.0.2.1", 1) != 0 {
		t.Error("a call passed too early")
	}
	now++
	if got := taken("192.0.2.1", 5); got != 1 {
		t.Errorf("%d calls passed six seconds later", got)
	}
	if got := taken("192.0.2.2", 30); got != 10 {
		t.Errorf("another address: %d", got)
	}
	if got := taken("127.0.0.1", 100); got != 30 {
		t.Errorf("this machine: %d", got)
	}
	// A clock that is set back locks nobody out.
	now -= int64(24 * time.Hour)
	if got := taken("192.0.2.1", 30); got != 10 {
		t.Errorf("a day before: %d", got)
	}

	// All of a /64 are one, and a /48 has a limit too.
	if got := taken("2001:db8:9:1::1", 5) + taken("2001:db8:9:1:ffff::2", 30); got != 10 {
		t.Errorf("one /64: %d", got)
	}
	passed := 0
	for i := range 1000 {
		passed += taken(fmt.Sprintf("2001:db8:9:%x::1", i), 1)
	}
	if want := 10*wider - 10; passed > want || passed < want-1 {
		t.Errorf("a /48: %d more, want %d", passed, want)
	}
	if got := taken("2001:db8:a::1", 30); got != 10 {
		t.Errorf("the next /48: %d", got)
	}
}

// TestManyAddresses: memory is bounded, and whoever has a bucket keeps it.
func TestManyAddresses(t *testing.T) {
	t.Parallel()
	r := newRates(Rates{})
	now := time.Date(2026, 3, 4, 10, 0, 0, 0, time.UTC).UnixNano()
	r.take(principalClass, "agent", 100, now)
	r.take(strictClass, "known", 10, now)
	refused := 0
	for i := range 5 * maxBuckets {
		if r.take(strictClass, fmt.Sprint(i), 10, now).refused {
			refused++
		}
	}
	if n := len(r.buckets[strictClass]); n > maxBuckets+1 {
		t.Errorf("%d buckets", n)
	}
	if want := 4*maxBuckets - 10*wider; refused < want {
		t.Errorf("%d were refused, want at least %d", refused, want)
	}
	if r.take(strictClass, "known", 10, now).refused || r.take(principalClass, "agent", 100, now).refused {
		t.Error("a flood took the bucket of somebody else")
	}
	// A minute later all of them are forgotten.
	now += int64(time.Minute)
	if r.take(strictClass, "new", 10, now).refused || len(r.buckets[strictClass]) > 1+2 {
		t.Errorf("%d buckets are left", len(r.buckets[strictClass]))
	}
}
