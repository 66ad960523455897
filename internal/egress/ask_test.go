package egress

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// pipes is a listener without a network, so that tests of time need none of it.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), closed: make(chan struct{})} }

func (l *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipes) Close() error   { l.once.Do(func() { close(l.closed) }); return nil }
func (l *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipes"} }

func (l *pipes) dial(t *testing.T) net.Conn {
	t.Helper()
	client, server := net.Pipe()
	select {
	case l.conns <- server:
	case <-l.closed:
		t.Fatal("the listener is closed")
	}
	return client
}

// exchanged sends text and returns the answer.
func (l *pipes) exchanged(t *testing.T, text string) string {
	t.Helper()
	conn := l.dial(t)
	defer conn.Close()
	if _, err := io.WriteString(conn, text); err != nil {
		return "not read: " + err.Error()
	}
	answer, _ := io.ReadAll(conn)
	return string(answer)
}

// elapse lets the clock of a synctest bubble go on.
func elapse(d time.Duration) { <-time.After(d) }

// person answers questions when the test says so.
type person struct {
	mu    sync.Mutex
	asked []Question
	ended int
	reply chan Answer
}

func newPerson() *person { return &person{reply: make(chan Answer)} }

func (p *person) ask(ctx context.Context, q Question) Answer {
	p.mu.Lock()
	p.asked = append(p.asked, q)
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		p.ended++
		p.mu.Unlock()
	}()
	select {
	case answer := <-p.reply:
		return answer
	case <-ctx.Done():
		return Answer{}
	}
}

func (p *person) counts() (asked, ended int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.asked), p.ended
}

// asking is a session in which a person is asked, and all else is granted at
// once by servers that answer "reply".
type asking struct {
	*pipes
	person *person
	audit  *records
	stop   func()
	dials  atomic.Int32
}

func newAsking(t *testing.T, policy Policy) *asking {
	t.Helper()
	a := &asking{pipes: newPipes(), person: newPerson()}
	policy.HostKind = kinds
	a.stop, a.audit = serveOn(t, a.pipes, Config{
		Identity: Identity{"tim", "npm"}, Policy: policy, Ask: a.person.ask, Own: noOwn,
		Resolve: func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("93.184.216.34")}, nil
		},
		Dial: func(context.Context, netip.AddrPort) (net.Conn, error) {
			a.dials.Add(1)
			client, server := net.Pipe()
			go func() {
				defer server.Close()
				buffer := make([]byte, 1024)
				if _, err := server.Read(buffer); err == nil {
					_, _ = io.WriteString(server, crlf("HTTP/1.1 200 OK", "Content-Length: 5")+"reply")
				}
			}()
			return client, nil
		},
	})
	return a
}

// start sends a request for the host and returns what will be its answer.
func (a *asking) start(t *testing.T, host string) (answer func() string) {
	t.Helper()
	got := make(chan string, 1)
	go func() { got <- a.exchanged(t, crlf("GET http://"+host+"/ HTTP/1.1", "Host: x")) }()
	return func() string { return <-got }
}

// outcome reduces an answer to "reply" or the reason of the refusal.
func outcome(t *testing.T, answer string) string {
	t.Helper()
	if strings.HasSuffix(answer, "\r\n\r\nreply") {
		return "reply"
	}
	return refusedWith(t, answer)
}

func (a *asking) expect(t *testing.T, what string, answer func() string, want string) {
	t.Helper()
	if got := outcome(t, answer()); got != want {
		t.Errorf("%s: %s, want %s", what, got, want)
	}
}

func (a *asking) expectAsked(t *testing.T, asked, ended int) {
	t.Helper()
	synctest.Wait()
	if n, m := a.person.counts(); n != asked || m != ended {
		t.Errorf("asked %d times, of which %d are over; want %d and %d", n, m, asked, ended)
	}
}

func TestAskOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAsking(t, Policy{})
		first := a.start(t, "A.test")
		a.expectAsked(t, 1, 0)
		want := Question{Identity: Identity{"tim", "npm"}, Host: "a.test", Port: 80, Scheme: PlainHTTP}
		got := a.person.asked[0]
		if got.Client == nil {
			t.Error("who connects is not told")
		}
		if got.Client = nil; got != want {
			t.Errorf("asked is %+v, want %+v", got, want)
		}
		a.person.reply <- Answer{Decision: Permit, By: "ann"}
		a.expect(t, "permitted", first, "reply")
		if r := a.audit.last(t); r.Verdict != Allowed || r.Basis != "asked, permitted by ann" {
			t.Errorf("recorded is %+v", r)
		}

		second := a.start(t, "a.test") // once is once
		a.expectAsked(t, 2, 1)
		a.person.reply <- Answer{Decision: Permit}
		a.expect(t, "permitted again", second, "reply")
		a.stop()
	})
}

func TestAskForSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAsking(t, Policy{})
		first := a.start(t, "a.test")
		a.person.reply <- Answer{Decision: Permit, Session: true, Until: time.Now().Add(time.Hour)}
		a.expect(t, "permitted", first, "reply")
		a.expect(t, "permitted before", a.start(t, "a.test"), "reply")
		a.expectAsked(t, 1, 1)

		for _, other := range []string{"a.test:8080", "b.a.test", "b.test"} { // of which nobody spoke
			answer := a.start(t, other)
			synctest.Wait()
			a.person.reply <- Answer{Decision: Deny}
			a.expect(t, other, answer, "denied")
		}
		a.expectAsked(t, 4, 4)

		elapse(time.Hour)
		late := a.start(t, "a.test")
		a.expectAsked(t, 5, 4)
		a.person.reply <- Answer{Decision: Permit}
		a.expect(t, "after the permission has ended", late, "reply")
		a.stop()
	})
}

// A tunnel is another thing than plain requests to the same port.
func TestAskByScheme(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAsking(t, Policy{})
		plain := a.start(t, "a.test:443")
		synctest.Wait()
		a.person.reply <- Answer{Decision: Permit, Session: true}
		a.expect(t, "plain", plain, "reply")
		got := make(chan string, 1)
		go func() { got <- a.exchanged(t, crlf("CONNECT a.test:443 HTTP/1.1")) }()
		a.expectAsked(t, 2, 1)
		a.person.reply <- Answer{Decision: Deny}
		a.expect(t, "tunnel", func() string { return <-got }, "denied")
		a.stop()
	})
}

func TestConcurrentAsksAreJoined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAsking(t, Policy{})
		for round, decision := range []Decision{Permit, Deny} {
			var answers []func() string
			for range 20 {
				answers = append(answers, a.start(t, "a.test"))
			}
			other := a.start(t, "shared.example")
			a.expectAsked(t, 2*round+2, 2*round)
			for range 2 {
				a.person.reply <- Answer{Decision: decision}
			}
			want := map[Decision]string{Permit: "reply", Deny: "denied"}[decision]
			for _, answer := range answers {
				a.expect(t, "joined", answer, want)
			}
			a.expect(t, "the other", other, want)
		}
		if kind := a.person.asked[0].Kind + a.person.asked[1].Kind; kind != "multi-tenant" {
			t.Errorf("the kinds are %q", kind)
		}
		a.stop()
	})
}

// Test 69: silence denies, and is recorded as such. A late answer is none.
func TestSilenceDenies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAsking(t, Policy{Limits: Limits{AskTime: time.Minute}})
		begin := time.Now()
		a.expect(t, "silence", a.start(t, "a.test"), "unanswered")
		if waited := time.Since(begin); waited < time.Minute {
			t.Errorf("the connection was held for %v", waited)
		}
		if r := a.audit.last(t); r.Verdict != Refused || r.Reason != Unanswered || a.dials.Load() != 0 {
			t.Errorf("recorded is %+v, dialled %d times", r, a.dials.Load())
		}
		a.expectAsked(t, 1, 1)
		again := a.start(t, "a.test") // waiting is not refusing
		synctest.Wait()
		a.person.reply <- Answer{Decision: Permit}
		a.expect(t, "asked again", again, "reply")
		a.stop()
	})
}

// An answer that comes when the time is over is none, and is not kept.
func TestLateAnswerIsNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newPipes()
		release := make(chan struct{})
		var asked atomic.Int32
		stop, audit := serveOn(t, l, Config{
			Own: noOwn, Resolve: newNames(nil).resolve,
			Ask: func(context.Context, Question) Answer {
				asked.Add(1)
				<-release
				return Answer{Decision: Permit, Session: true}
			},
		})
		get := crlf("GET http://a.test/ HTTP/1.1", "Host: x")
		if got := outcome(t, l.exchanged(t, get)); got != "unanswered" {
			t.Errorf("the first connection: %s", got)
		}
		close(release)
		synctest.Wait()
		if got := outcome(t, l.exchanged(t, get)); got != "resolve" { // a new question, answered in time
			t.Errorf("the second connection: %s", got)
		}
		if audit.wait(t, 2); asked.Load() != 2 {
			t.Errorf("asked %d times", asked.Load())
		}
		stop()
	})
}

func TestDenialIsRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAsking(t, Policy{})
		first := a.start(t, "a.test")
		synctest.Wait()
		a.person.reply <- Answer{Decision: Deny}
		a.expect(t, "denied", first, "denied")
		a.expect(t, "denied before", a.start(t, "a.test"), "denied")
		a.expectAsked(t, 1, 1)
		elapse(10 * time.Minute)
		late := a.start(t, "a.test")
		a.expectAsked(t, 2, 1)
		a.person.reply <- Answer{Decision: Permit}
		a.expect(t, "much later", late, "reply")
		a.stop()
	})
}

// A rule that denies is not asked about, nor is what a rule grants.
func TestRulesAreNotAskedAbout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAsking(t, Policy{Rules: []Rule{{Host: "a.test"}, {Host: "b.test", Deny: true}}})
		a.expect(t, "granted", a.start(t, "a.test"), "reply")
		a.expect(t, "denied", a.start(t, "b.test"), "denied-by-rule")
		a.expectAsked(t, 0, 0)
		a.stop()
	})
}

// A permission does not open what no person can see: where the name leads.
func TestPermittedHostMustBePublic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for within, want := range map[string]string{"": "address", "10.0.0.0/8": "connect", "192.168.0.0/16": "address"} {
			l := newPipes()
			stop, _ := serveOn(t, l, Config{
				Own: noOwn,
				Ask: func(context.Context, Question) Answer { return Answer{Decision: Permit, Within: prefixes(within)} },
				Resolve: func(context.Context, string) ([]netip.Addr, error) {
					return []netip.Addr{netip.MustParseAddr("10.1.1.1")}, nil
				},
				Dial: func(context.Context, netip.AddrPort) (net.Conn, error) { return nil, io.EOF },
			})
			if got := outcome(t, l.exchanged(t, crlf("GET http://a.test/ HTTP/1.1", "Host: x"))); got != want {
				t.Errorf("within %q: %s, want %s", within, got, want)
			}
			stop()
		}
	})
}

// A client that goes away takes its question with it, unless others wait too.
func TestClientLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAsking(t, Policy{})
		hold := func() net.Conn {
			conn := a.dial(t)
			_, _ = io.WriteString(conn, crlf("CONNECT a.test:443 HTTP/1.1"))
			return conn
		}
		one, two := hold(), hold()
		a.expectAsked(t, 1, 0)
		one.Close()
		a.expectAsked(t, 1, 0)
		two.Close()
		a.expectAsked(t, 1, 1)
		for _, r := range a.audit.wait(t, 2) {
			if r.Verdict != Refused || r.Reason != ClientGone {
				t.Errorf("recorded is %+v", r)
			}
		}
		three := hold() // asks anew
		a.expectAsked(t, 2, 1)
		three.Close()
		a.stop()
	})
}

// What a client sends while it is held is neither lost nor looked at.
func TestHeldClientSendsMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAsking(t, Policy{})
		conn := a.dial(t)
		_, _ = io.WriteString(conn, crlf("CONNECT a.test:443 HTTP/1.1"))
		synctest.Wait()
		hello := makeHello(sni("a.test"))
		sent := make(chan struct{})
		go func() { _, _ = conn.Write(hello); close(sent) }()
		synctest.Wait()
		a.person.reply <- Answer{Decision: Permit}
		answer, _ := io.ReadAll(conn)
		<-sent
		if !strings.HasSuffix(string(answer), "reply") {
			t.Errorf("%q", answer)
		}
		if r := a.audit.last(t); r.Sent != int64(len(hello)) || r.SNI != "a.test" || r.Verdict != Allowed {
			t.Errorf("recorded is %+v", r)
		}
		conn.Close()
		a.stop()
	})
}

// The end of the session denies whatever is held, and waits for the questions.
func TestShutdownDenies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAsking(t, Policy{})
		held := a.start(t, "a.test")
		a.expectAsked(t, 1, 0)
		a.stop()
		a.expectAsked(t, 1, 1)
		if got := held(); strings.Contains(got, "reply") {
			t.Errorf("%q", got)
		}
		if r := a.audit.last(t); r.Verdict != Refused || r.Reason != ShuttingDown || a.dials.Load() != 0 {
			t.Errorf("recorded is %+v", r)
		}
	})
}

// Nobody is asked about what no answer could open.
func TestNeverAsked(t *testing.T) {
	for host, want := range map[string]string{
		"127.0.0.1": "address", "10.1.2.3": "address", "192.168.1.1": "address", "169.254.169.254": "address", "100.64.0.1": "address",
		"[::1]": "address", "[fd00:ec2::254]": "address", "[64:ff9b::7f00:1]": "address",
		"localhost": "never-asked", "router": "never-asked", "a.localhost": "never-asked", "printer.local": "never-asked",
		"metadata.google.internal": "never-asked", "nas.home.arpa": "never-asked", "dns.google": "never-asked", "8.8.8.8": "never-asked", "a.doh.example": "never-asked",
	} {
		t.Run(host, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := newAsking(t, Policy{})
				a.expect(t, host, a.start(t, host), want)
				a.expectAsked(t, 0, 0)
				a.stop()
			})
		})
	}
}

func TestTooManyQuestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAsking(t, Policy{Limits: Limits{Questions: 3}})
		var held []func() string
		for i := range 3 {
			held = append(held, a.start(t, fmt.Sprintf("a%d.test", i)))
		}
		a.expectAsked(t, 3, 0)
		a.expect(t, "the fourth", a.start(t, "other.test"), "too-many-questions")
		joined := a.start(t, "a0.test")
		synctest.Wait()
		for range 3 {
			a.person.reply <- Answer{Decision: Permit}
		}
		for _, answer := range append(held, joined) {
			a.expect(t, "held", answer, "reply")
		}
		a.stop()
	})
}
