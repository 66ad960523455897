package egress

import (
	"context"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
)

// Another policy takes effect on what is connected and on what is held.
func TestReplace(t *testing.T) {
	granted := []Rule{{Host: "a.test"}}
	for _, tt := range []struct {
		name          string
		before, after []Rule
		asked         bool // a person permitted it
		reason        Reason
	}{
		{"the same", granted, granted, false, NoReason},
		{"more", granted, []Rule{{Host: "b.test"}, {Host: "a.test"}}, false, NoReason},
		{"the rule is gone", granted, nil, false, GrantEnded},
		{"the rule has other ports", granted, []Rule{{Host: "a.test", Ports: []uint16{8443}}}, false, GrantEnded},
		{"the host is denied", granted, []Rule{{Host: "a.test"}, {Host: "a.test", Deny: true}}, false, DeniedByRule},
		{"what a person permitted", nil, []Rule{{Host: "b.test"}}, true, NoReason},
		{"what a person permitted is denied", nil, []Rule{{Host: "a.test", Deny: true}}, true, DeniedByRule},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, audit := newPipes(), new(records)
				p, err := New(Config{
					Policy: Policy{Rules: tt.before}, Audit: audit, Own: noOwn,
					Ask: func(context.Context, Question) Answer { return Answer{Decision: Permit} },
					Resolve: func(context.Context, string) ([]netip.Addr, error) {
						return []netip.Addr{netip.MustParseAddr("93.184.216.34")}, nil
					},
					Dial: func(context.Context, netip.AddrPort) (net.Conn, error) {
						client, server := net.Pipe()
						go func() { _, _ = io.Copy(io.Discard, server) }()
						return client, nil
					},
				})
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				var served sync.WaitGroup
				served.Go(func() { _ = p.Serve(ctx, l) })
				conn := l.dial(t)
				go func() { _, _ = io.Copy(io.Discard, conn) }()
				_, _ = io.WriteString(conn, crlf("CONNECT a.test:443 HTTP/1.1")+string(makeHello(sni("a.test"))))
				synctest.Wait()
				if err := p.Replace(Policy{Rules: tt.after}); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				audit.mu.Lock()
				n := len(audit.ended)
				audit.mu.Unlock()
				if (n == 0) != (tt.reason == NoReason) {
					t.Errorf("%d connections ended, want %v", n, tt.reason)
				}
				conn.Close()
				if r := audit.last(t); r.Reason != tt.reason || r.Sent == 0 {
					t.Errorf("recorded is %+v", r)
				}
				cancel()
				served.Wait()
			})
		})
	}
}

// A rule that denies wins over the person who is asked at that time.
func TestReplaceWhileHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, who := newPipes(), newPerson()
		p, err := New(Config{Audit: new(records), Own: noOwn, Ask: who.ask, Resolve: newNames(nil).resolve})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var served sync.WaitGroup
		served.Go(func() { _ = p.Serve(ctx, l) })
		answer := make(chan string, 1)
		ask := func() {
			go func() { answer <- l.exchanged(t, crlf("GET http://a.test/ HTTP/1.1", "Host: x")) }()
			synctest.Wait()
		}
		ask()
		who.reply <- Answer{Decision: Permit}
		if got := outcome(t, <-answer); got != "resolve" {
			t.Errorf("without another policy: %s", got)
		}
		ask()
		if err := p.Replace(Policy{Rules: []Rule{{Host: "a.test", Deny: true}}}); err != nil {
			t.Fatal(err)
		}
		if got := outcome(t, <-answer); got != "denied-by-rule" {
			t.Errorf("with a rule that denies: %s", got)
		}
		if err := p.Replace(Policy{Rules: []Rule{{Host: "*.com"}}}); err == nil {
			t.Error("a policy that is none is accepted")
		}
		cancel()
		served.Wait()
	})
}

// What was used of a rule's budget stays used.
func TestReplaceKeepsBudgets(t *testing.T) {
	rules := []Rule{{Host: "a.test", Upload: 100}, {Host: "b.test", Upload: 100}}
	p, err := New(Config{Audit: new(records), Policy: Policy{Rules: rules}})
	if err != nil {
		t.Fatal(err)
	}
	p.book.Load().rules[0].budget.take(70)
	rules[1].Upload = 200
	if err := p.Replace(Policy{Rules: []Rule{rules[1], rules[0]}}); err != nil {
		t.Fatal(err)
	}
	after := p.book.Load().rules
	if after[0].budget.left.Load() != 200 || after[1].budget.left.Load() != 30 {
		t.Errorf("left are %d and %d", after[0].budget.left.Load(), after[1].budget.left.Load())
	}
}

// failing is a listener that fails some times.
type failing struct {
	*pipes
	errs []error
}

func (l *failing) Accept() (net.Conn, error) {
	if len(l.errs) > 0 {
		err := l.errs[0]
		l.errs = l.errs[1:]
		return nil, err
	}
	return l.pipes.Accept()
}

// A machine without descriptors for a moment does not end the session.
func TestPassingErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		errs := []error{&net.OpError{Op: "accept", Err: syscall.EMFILE}, &net.OpError{Op: "accept", Err: syscall.ECONNABORTED}, syscall.ENFILE}
		l := &failing{pipes: newPipes(), errs: errs}
		stop, _ := serveOn(t, l, Config{Own: noOwn})
		if answer := l.exchanged(t, crlf("CONNECT a.test:443 HTTP/1.1")); !strings.Contains(answer, "not-granted") {
			t.Errorf("%q", answer)
		}
		stop()
	})
}
