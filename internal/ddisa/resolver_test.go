package ddisa

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"vogt/internal/fetch/fetchtest"
)

// clock stands still until it is moved.
type clock struct{ at atomic.Int64 }

func (c *clock) now() time.Time          { return time.Unix(0, c.at.Load()) }
func (c *clock) advance(d time.Duration) { c.at.Add(int64(d)) }

func mustDomain(t *testing.T, name string) Domain {
	t.Helper()
	d, err := ParseDomain(name)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// nameServer answers questions for TXT records with zone, each value a record of
// several strings, by UDP on this machine. A name that is not there does not exist;
// one with the value nil has no records; "broken." is answered with a failure.
func nameServer(t *testing.T, zone map[string][][]string) *net.Resolver {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var done sync.WaitGroup
	done.Go(func() {
		buffer := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(buffer)
			if err != nil {
				return
			}
			var question dnsmessage.Message
			if question.Unpack(buffer[:n]) != nil || len(question.Questions) != 1 {
				continue
			}
			name := question.Questions[0].Name.String()
			reply := dnsmessage.Message{Header: dnsmessage.Header{ID: question.ID, Response: true, RecursionAvailable: true}, Questions: question.Questions}
			records, ok := zone[name]
			switch {
			case strings.HasSuffix(name, "broken.example."):
				reply.RCode = dnsmessage.RCodeServerFailure
			case !ok:
				reply.RCode = dnsmessage.RCodeNameError
			}
			for _, texts := range records {
				reply.Answers = append(reply.Answers, dnsmessage.Resource{
					Header: dnsmessage.ResourceHeader{Name: question.Questions[0].Name, Class: dnsmessage.ClassINET, TTL: 60},
					Body:   &dnsmessage.TXTResource{TXT: texts},
				})
			}
			if packed, err := reply.Pack(); err == nil {
				_, _ = conn.WriteTo(packed, from)
			}
		}
	})
	t.Cleanup(func() { conn.Close(); done.Wait() })
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

// A real question by the machine's kind of resolver.
func TestNative(t *testing.T) {
	long := "v=ddisa1 idp=https://id.example.com/" + strings.Repeat("a", 300)
	r := nameServer(t, map[string][][]string{
		"_ddisa.example.com.":           {{"v=spf1 -all"}, {"v=ddisa1 idp=https://id.example.com; mode=open"}},
		"_ddisa.long.example.":          {{long[:255], long[255:]}},
		"_ddisa.split.example.":         {{"v=ddisa1 idp=https://", "id.example.com"}},
		"_ddisa.two.example.":           {{"v=ddisa1"}, {"idp=https://id.example.com"}}, // two records are not one
		"_ddisa.empty.example.":         nil,
		"_ddisa.plain.example.":         {{"v=ddisa1 idp=http://127.0.0.1:8648"}},
		"_ddisa.xn--bcher-kva.example.": {{"v=ddisa1 idp=https://b.example"}},
	})
	resolver, err := NewResolver(ResolverConfig{Native: func(ctx context.Context, name string) ([]string, error) { return r.LookupTXT(ctx, name+".") }})
	if err != nil {
		t.Fatal(err)
	}
	for domain, want := range map[string]string{
		"example.com": "https://id.example.com", "EXAMPLE.com.": "https://id.example.com", "long.example": long[len("v=ddisa1 idp="):], "split.example": "https://id.example.com",
		"two.example": "", "empty.example": "", "plain.example": "", "nosuch.example": "", "b\u00fccher.example": "https://b.example",
	} {
		a, err := resolver.Lookup(t.Context(), mustDomain(t, domain))
		if err != nil || a.Record.IDP != want || a.Found != (want != "") || a.Source != FromDNS {
			t.Errorf("%s: %+v, %v; want %q", domain, a, err, want)
		}
	}
	if a, err := resolver.Lookup(t.Context(), mustDomain(t, "broken.example")); err == nil || a.Found {
		t.Errorf("a broken server is taken for an answer: %+v", a)
	}
	if _, err := resolver.Lookup(t.Context(), Domain{}); err == nil {
		t.Error("no domain is looked for")
	}
}

func failing(context.Context, string) ([]string, error) {
	return nil, &net.DNSError{Err: "server misbehaving", IsTemporary: true}
}

const dnsJSON = "application/dns-json"

// By HTTPS, when the machine's resolver fails; the next provider, when one does.
func TestOverHTTPS(t *testing.T) {
	const record = `v=ddisa1 idp=https://id.example.com`
	answer := func(data string) string {
		return fmt.Sprintf(`{"Status":0,"TC":false,"Answer":[{"name":"_ddisa.example.com","type":16,"TTL":60,"data":%q}]}`, data)
	}
	for _, tt := range []struct {
		name, body, mediaType string
		want                  string // "": no record; "!": the second provider, which says other.example
	}{
		{"in quotes", answer(`"` + record + `"`), dnsJSON, "https://id.example.com"},
		{"without", answer(record), dnsJSON, "https://id.example.com"},
		{"several strings", answer(`"v=ddisa1 idp=https://" "id.example.com"`), dnsJSON, "https://id.example.com"},
		{"as JSON", answer(record), "application/json; charset=utf-8", "https://id.example.com"},
		{"escaped", answer(`"v=ddisa1 idp=https://id\046example.com"`), dnsJSON, "https://id.example.com"},
		{"a name with a dot, in capitals", `{"Status":0,"Answer":[{"name":"_DDISA.example.COM.","type":16,"data":"` + record + `"}]}`, dnsJSON, "https://id.example.com"},
		{"through aliases", `{"Status":0,"Answer":[{"name":"_ddisa.example.com.","type":5,"data":"a.example."},{"name":"a.example","type":16,"data":"` + record + `"}]}`, dnsJSON, "https://id.example.com"},
		{"another name's", `{"Status":0,"Answer":[{"name":"_ddisa.evil.example","type":16,"data":"` + record + `"}]}`, dnsJSON, ""},
		{"another type", `{"Status":0,"Answer":[{"name":"_ddisa.example.com","type":1,"data":"1.2.3.4"}]}`, dnsJSON, ""},
		{"no such name", `{"Status":3}`, dnsJSON, ""},
		{"no records", `{"Status":0}`, dnsJSON, ""},
		{"failure", `{"Status":2}`, dnsJSON, "!"},
		{"refused", `{"Status":5}`, dnsJSON, "!"},
		{"cut", `{"Status":0,"TC":true}`, dnsJSON, "!"},
		{"no status", `{}`, dnsJSON, "!"},
		{"no object", `[]`, dnsJSON, "!"},
		{"no JSON", `<html>`, dnsJSON, "!"},
		{"a page", answer(record), "text/html", "!"},
		{"a quote that does not end", answer(`"` + record), dnsJSON, "!"},
		{"aliases in a circle", `{"Status":0,"Answer":[{"name":"_ddisa.example.com","type":5,"data":"_ddisa.example.com"}]}`, dnsJSON, "!"},
		{"longer than it may be", answer(strings.Repeat("a", 100<<10)), dnsJSON, "!"},
	} {
		n := fetchtest.New(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", tt.mediaType)
			if r.Host == "second.example:5053" {
				w.Header().Set("Content-Type", dnsJSON)
				_, _ = io.WriteString(w, answer("v=ddisa1 idp=https://other.example"))
				return
			}
			_, _ = io.WriteString(w, tt.body)
		}), "first.example", "second.example")
		resolver, err := NewResolver(ResolverConfig{Native: failing, Fetch: n.Config(), Providers: []string{"https://first.example/dns-query", "https://second.example:5053/dns-query?ct=x"}})
		if err != nil {
			t.Fatal(err)
		}
		want, source := tt.want, "https://first.example/dns-query"
		if want == "!" {
			want, source = "https://other.example", "https://second.example:5053/dns-query?ct=x"
		}
		a, err := resolver.Lookup(t.Context(), mustDomain(t, "example.com"))
		if err != nil || a.Record.IDP != want || a.Found != (want != "") || a.Source != source {
			t.Errorf("%s: %+v, %v; want %q from %s", tt.name, a, err, want, source)
		}
		if asked := n.Asked(); asked[0] != "first.example/dns-query?name=_ddisa.example.com&type=TXT" || len(asked) > 1 && asked[1] != "second.example:5053/dns-query?ct=x&name=_ddisa.example.com&type=TXT" {
			t.Errorf("%s: asked %q", tt.name, asked)
		}
	}
}

// The machine's resolver is asked first, and its answer counts even where it is that
// there is nothing. Nobody can tell when all fail.
func TestOrder(t *testing.T) {
	n := fetchtest.New(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }), "first.example")
	native := func(context.Context, string) ([]string, error) {
		return []string{"v=ddisa1 idp=https://a.example"}, nil
	}
	resolver, err := NewResolver(ResolverConfig{Fetch: n.Config(), Providers: []string{"https://first.example/"}, Native: func(ctx context.Context, name string) ([]string, error) {
		return native(ctx, name)
	}})
	if err != nil {
		t.Fatal(err)
	}
	if a, err := resolver.Lookup(t.Context(), mustDomain(t, "a.example")); err != nil || !a.Found {
		t.Error(a, err)
	}
	native = func(context.Context, string) ([]string, error) { return nil, &net.DNSError{IsNotFound: true} }
	if a, err := resolver.Lookup(t.Context(), mustDomain(t, "b.example")); err != nil || a.Found {
		t.Error(a, err)
	}
	if asked := n.Asked(); len(asked) != 0 {
		t.Errorf("asked others: %q", asked)
	}
	native = failing
	_, err = resolver.Lookup(t.Context(), mustDomain(t, "c.example"))
	if e, ok := errors.AsType[*LookupError](err); !ok || len(e.Causes) != 2 || e.Domain != mustDomain(t, "c.example") {
		t.Errorf("%v", err)
	}
	if _, err := NewResolver(ResolverConfig{Providers: []string{"ftp://a.example"}}); err == nil {
		t.Error("a provider by ftp is accepted")
	}
}

// What was found is remembered for 300 s, that there is nothing for 60 s, and an
// error not at all.
func TestRemembered(t *testing.T) {
	var c clock
	asked := 0
	var texts []string
	var fail error
	resolver, err := NewResolver(ResolverConfig{Now: c.now, Native: func(context.Context, string) ([]string, error) {
		asked++
		return texts, fail
	}})
	if err != nil {
		t.Fatal(err)
	}
	look := func(wantAsked int, wantFound, wantErr bool) {
		t.Helper()
		a, err := resolver.Lookup(t.Context(), mustDomain(t, "example.com"))
		if a.Found != wantFound || (err != nil) != wantErr || asked != wantAsked {
			t.Errorf("%+v, %v after %d questions; want %d", a, err, asked, wantAsked)
		}
	}
	fail = errors.New("no")
	look(1, false, true)
	look(2, false, true)
	fail = nil
	look(3, false, false)
	c.advance(absent - 1)
	texts = []string{"v=ddisa1 idp=https://a.example"}
	look(3, false, false)
	c.advance(1)
	look(4, true, false)
	c.advance(found - 1)
	texts = nil
	look(4, true, false)
	c.advance(1)
	look(5, false, false)
}

func TestCacheIsBounded(t *testing.T) {
	var c clock
	known := newCache[int](c.now)
	known.most = 3
	loads := map[string]int{}
	get := func(key string) {
		t.Helper()
		if _, err := known.get(t.Context(), key, func(context.Context) (int, time.Duration, error) {
			loads[key]++
			return 0, time.Minute, nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	for _, key := range []string{"a", "b", "c", "a", "d", "a", "b"} { // d makes b go, b makes c go
		get(key)
	}
	if loads["a"] != 1 || loads["b"] != 2 || loads["c"] != 1 || len(known.entries) != 3 || known.order.Len() != 3 {
		t.Errorf("%v, %d entries", loads, len(known.entries))
	}
}

// Several who ask the same at once share one lookup; one who gives up takes nobody
// along.
func TestCacheSharesLookups(t *testing.T) {
	var c clock
	known := newCache[int](c.now)
	started, release := make(chan struct{}), make(chan struct{})
	var loads atomic.Int32
	load := func(ctx context.Context) (int, time.Duration, error) {
		if loads.Add(1) == 1 {
			close(started)
			select {
			case <-release:
			case <-ctx.Done():
				return 0, 0, ctx.Err()
			}
		}
		return 7, time.Minute, nil
	}
	first, giveUp := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() {
		if _, err := known.get(first, "a", load); !errors.Is(err, context.Canceled) {
			t.Errorf("the one who gave up: %v", err)
		}
	})
	<-started
	for range 20 {
		all.Go(func() {
			if v, err := known.get(t.Context(), "a", load); v != 7 || err != nil {
				t.Errorf("%d, %v", v, err)
			}
		})
	}
	impatient, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := known.get(impatient, "a", load); !errors.Is(err, context.Canceled) {
		t.Errorf("one who does not wait: %v", err)
	}
	giveUp()
	all.Wait()
	close(release)
	if n := loads.Load(); n != 2 {
		t.Errorf("%d lookups", n)
	}
	if len(known.running) != 0 || len(known.places) != 0 {
		t.Errorf("%d lookups run, %d places are taken", len(known.running), len(known.places))
	}
}

// Records that somebody has written down are not asked for.
func TestFixed(t *testing.T) {
	fixed, err := ParseMock(`{"Example.com": {"idp": "http://127.0.0.1:8648", "mode": "open"}, "b.example": {"idp": "https://id.b.example"}}`)
	if err != nil {
		t.Fatal(err)
	}
	resolver, err := NewResolver(ResolverConfig{Fixed: fixed, Native: failing})
	if err != nil {
		t.Fatal(err)
	}
	a, err := resolver.Lookup(t.Context(), mustDomain(t, "example.com"))
	if err != nil || !a.Found || a.Record.IDP != "http://127.0.0.1:8648" || a.Record.Mode != Open || a.Source != FromFixed {
		t.Errorf("%+v, %v", a, err)
	}
	if _, err := resolver.Lookup(t.Context(), mustDomain(t, "c.example")); err == nil {
		t.Error("another domain is not asked for")
	}
	for _, bad := range []string{"", "[]", `{"a.example": {}}`, `{"a.example": {"idp": "http://b.example"}}`, `{"a.example": {"idp": "https://b.example", "mode": "opne"}}`, `{"localhost": {"idp": "https://b.example"}}`} {
		if _, err := ParseMock(bad); err == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
}

// No variable of the environment puts a record in the place of the DNS.
func TestVariableIsNotRead(t *testing.T) {
	t.Setenv(MockVariable, `{"example.com": {"idp": "https://evil.example"}}`)
	resolver, err := NewResolver(ResolverConfig{Native: func(context.Context, string) ([]string, error) { return nil, nil }})
	if err != nil {
		t.Fatal(err)
	}
	if a, err := resolver.Lookup(t.Context(), mustDomain(t, "example.com")); err != nil || a.Found {
		t.Errorf("%+v, %v", a, err)
	}
}

func FuzzAnswer(f *testing.F) {
	f.Add([]byte(`{"Status":0,"Answer":[{"name":"_ddisa.a.b","type":16,"data":"\"a\" \"b\\034\""}]}`))
	f.Add([]byte(`{"Status":0,"Answer":[{"name":"_ddisa.a.b","type":5,"data":"_ddisa.a.b"}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		texts, err := readAnswer(body, "_ddisa.a.b")
		if err != nil && texts != nil {
			t.Errorf("%q: %q and %v", body, texts, err)
		}
		// A byte that is no UTF-8 becomes three.
		if slices.ContainsFunc(texts, func(s string) bool { return len(s) > 3*len(body) }) {
			t.Errorf("%q: %q grew", body, texts)
		}
	})
}
