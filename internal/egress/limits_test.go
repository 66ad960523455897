package egress

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// session is a proxy without a network, whose hosts are played by serve.
type session struct {
	*pipes
	audit *records
	stop  func()
	hosts sync.WaitGroup
}

func newSession(t *testing.T, policy Policy, host func(net.Conn)) *session {
	t.Helper()
	s := &session{pipes: newPipes()}
	s.stop, s.audit = serveOn(t, s.pipes, Config{
		Policy: policy, Own: noOwn,
		Resolve: func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("93.184.216.34")}, nil
		},
		Dial: func(ctx context.Context, _ netip.AddrPort) (net.Conn, error) {
			if host == nil { // is silent
				<-ctx.Done()
				return nil, ctx.Err()
			}
			client, server := net.Pipe()
			s.hosts.Go(func() { host(server) })
			return client, nil
		},
	})
	return s
}

// drip sends text a byte a second until the other side ends.
func drip(conn net.Conn, text string) (sent int) {
	for i := range len(text) {
		if _, err := io.WriteString(conn, text[i:i+1]); err != nil {
			return i
		}
		elapse(time.Second)
	}
	return len(text)
}

var tunnelRules = []Rule{{Host: "a.test", Ports: []uint16{80, 443}}}

// Whatever a client draws out, it has the time of a request and no more.
func TestSlowClients(t *testing.T) {
	hello := string(makeHello(sni("a.test")))
	get := crlf("GET http://a.test/ HTTP/1.1", "Host: a.test")
	connect := crlf("CONNECT a.test:443 HTTP/1.1")
	for _, tt := range []struct {
		name, atOnce, slowly string
		reason               Reason
	}{
		{"nothing", "", "", TooSlow},
		{"a head", "", get, TooSlow},
		{"a head that nearly ends", get[:len(get)-1], "", TooSlow},
		{"headers without end", "GET http://a.test/ HTTP/1.1\r\n", strings.Repeat("X-A: b\r\n", 50), TooSlow},
		{"SOCKS", "\x05", "\x01\x00" + socksTo(1, socksName, "a.test", 443), TooSlow},
		{"a greeting with many methods", "\x05\xff", strings.Repeat("\x00", 255), TooSlow},
		{"a ClientHello", connect, hello, TooSlow},
		{"no ClientHello", connect, "", TooSlow},
		{"a ClientHello in records of one byte", connect, string(rerecord([]byte(hello), 1)), TooSlow},
		{"a ClientHello that nearly ends", connect + hello[:len(hello)-1], "", TooSlow},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSession(t, Policy{Rules: tunnelRules}, func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) })
				begin := time.Now()
				conn := s.dial(t)
				go func() { _, _ = io.Copy(io.Discard, conn) }()
				if _, err := io.WriteString(conn, tt.atOnce); err != nil {
					t.Fatal(err)
				}
				drip(conn, tt.slowly)
				r := s.audit.last(t)
				if r.Reason != tt.reason || r.Verdict != Refused || r.Sent != 0 || time.Since(begin) > time.Minute {
					t.Errorf("recorded is %+v after %v", r, time.Since(begin))
				}
				conn.Close()
				s.stop()
			})
		})
	}
}

func TestTimesOfConnections(t *testing.T) {
	hello := string(makeHello(sni("a.test")))
	silent := func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }
	chatty := func(conn net.Conn) {
		go func() { _, _ = io.Copy(io.Discard, conn) }()
		drip(conn, strings.Repeat("x", 100_000))
	}
	connect := crlf("CONNECT a.test:443 HTTP/1.1") + hello
	get := crlf("GET http://a.test/ HTTP/1.1", "Host: a.test")
	const start = 946684800 // where a bubble's clock begins
	for _, tt := range []struct {
		name, request string
		rule          Rule
		host          func(net.Conn)
		reason        Reason
		verdict       Verdict
		after         time.Duration
	}{
		{"a host that does not accept", connect, Rule{}, nil, CannotConnect, Refused, 10 * time.Second},
		{"nobody speaks", connect, Rule{}, silent, Idle, Cut, 5 * time.Minute},
		{"the host does not answer", get, Rule{}, silent, Idle, Cut, 5 * time.Minute},
		{"the host speaks for ever", connect, Rule{}, chatty, TooLong, Cut, time.Hour},
		{"the rule ends", connect, Rule{Until: time.Unix(start, 0).Add(20 * time.Minute)}, chatty, GrantEnded, Cut, 20 * time.Minute},
		{"the host's head is drawn out", get, Rule{}, func(conn net.Conn) {
			go func() { _, _ = io.Copy(io.Discard, conn) }()
			drip(conn, "HTTP/1.1 200 OK\r\n"+strings.Repeat("X: y\r\n", 10_000))
		}, TooLong, Cut, time.Hour},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rule := tt.rule
				rule.Host, rule.Ports = "a.test", []uint16{80, 443}
				s := newSession(t, Policy{Rules: []Rule{rule}}, tt.host)
				begin := time.Now()
				conn := s.dial(t)
				go func() { _, _ = io.WriteString(conn, tt.request) }()
				answer, _ := io.ReadAll(conn)
				r := s.audit.last(t)
				if took := time.Since(begin); r.Reason != tt.reason || r.Verdict != tt.verdict || took < tt.after || took > tt.after+2*time.Second {
					t.Errorf("recorded is %+v after %v, want %v", r, took, tt.after)
				}
				if tt.request == get || tt.host == nil {
					if reason := refusedWith(t, string(answer)); reason != tt.reason.String() {
						t.Errorf("answered is %q", answer)
					}
				}
				conn.Close()
				s.stop()
				s.hosts.Wait()
			})
		})
	}
}

// A connection that lives is not idle, whichever side speaks.
func TestOneSideMayBeSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSession(t, Policy{Rules: tunnelRules}, func(conn net.Conn) {
			go func() { _, _ = io.Copy(io.Discard, conn) }()
			for range 10 {
				elapse(4 * time.Minute)
				_, _ = io.WriteString(conn, "x")
			}
			conn.Close()
		})
		conn := s.dial(t)
		go func() {
			_, _ = io.WriteString(conn, crlf("CONNECT a.test:443 HTTP/1.1")+string(makeHello(sni("a.test"))))
		}()
		answer, _ := io.ReadAll(conn)
		if !strings.HasSuffix(string(answer), "\r\n\r\n"+strings.Repeat("x", 10)) {
			t.Errorf("%q", answer)
		}
		if r := s.audit.last(t); r.Verdict != Allowed || r.Reason != NoReason {
			t.Errorf("recorded is %+v", r)
		}
		conn.Close()
		s.stop()
	})
}

// Beyond the limit clients wait until others have left.
func TestConnectionsAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSession(t, Policy{Rules: tunnelRules, Limits: Limits{Connections: 2}}, func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) })
		one, two := s.dial(t), s.dial(t)
		third := make(chan net.Conn)
		go func() {
			client, server := net.Pipe()
			select {
			case s.conns <- server:
			case <-s.closed:
			}
			third <- client
		}()
		synctest.Wait()
		select {
		case <-third:
			t.Error("a third connection was accepted")
		default:
		}
		one.Close()
		three := <-third
		two.Close()
		three.Close()
		s.audit.wait(t, 3)
		s.stop()
	})
}

// The end of a session ends every connection, in whatever state, and Serve
// returns when nothing is left.
func TestShutdown(t *testing.T) {
	hello := string(makeHello(sni("a.test")))
	for name, text := range map[string]string{
		"before a byte":          "",
		"in a head":              "GET http",
		"in a greeting":          "\x05\x02",
		"before a ClientHello":   crlf("CONNECT a.test:443 HTTP/1.1"),
		"in a tunnel":            crlf("CONNECT a.test:443 HTTP/1.1") + hello,
		"in a body":              crlf("POST http://a.test/ HTTP/1.1", "Host: x", "Content-Length: 10") + "a",
		"before the response":    crlf("GET http://a.test/ HTTP/1.1", "Host: x"),
		"after a refusal":        crlf("GET http://other.test/ HTTP/1.1", "Host: x"),
		"while nobody reads":     crlf("GET http://other.test/ HTTP/1.1", "Host: x"),
		"while it is connecting": crlf("CONNECT slow.test:443 HTTP/1.1"),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSession(t, Policy{Rules: append(tunnelRules, Rule{Host: "slow.test"})}, func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) })
				conn := s.dial(t)
				go func() { _, _ = io.WriteString(conn, text) }()
				if name != "while nobody reads" {
					go func() { _, _ = io.Copy(io.Discard, conn) }()
				}
				synctest.Wait()
				s.stop()
				s.audit.mu.Lock()
				if n := len(s.audit.ended); n != 1 {
					t.Errorf("%d connections had ended when Serve returned", n)
				}
				s.audit.mu.Unlock()
				s.hosts.Wait()
				conn.Close()
			})
		})
	}
}

// A listener that fails ends Serve with an error, once the connections ended.
func TestListenerFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, err := New(Config{Audit: new(records)})
		if err != nil {
			t.Fatal(err)
		}
		l := newPipes()
		l.Close()
		if err := p.Serve(t.Context(), l); err == nil {
			t.Error("no error")
		}
	})
}

// Large transfers arrive whole, both ways at once.
func TestLargeTransfer(t *testing.T) {
	const size = 8 << 20
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = io.Copy(conn, conn)
	}()
	addr, audit := serve(t, Config{
		Policy: Policy{Rules: []Rule{{Host: "127.0.0.1", Ports: []uint16{portOf(l)}, Within: loopback, Carry: CarryAnything, Upload: size}}}, Own: noOwn,
	})
	conn := dial(t, addr)
	opening, opened := openTunnel(HTTPConnect, "127.0.0.1", portOf(l))
	_, _ = io.WriteString(conn, opening)
	if _, err := io.ReadFull(conn, make([]byte, len(opened))); err != nil {
		t.Fatal(err)
	}
	go func() {
		block := []byte(strings.Repeat("0123456789abcdef", 4096))
		for range size / len(block) {
			_, _ = conn.Write(block)
		}
		_ = conn.CloseWrite()
	}()
	n, err := io.Copy(io.Discard, conn)
	conn.Close()
	if r := audit.last(t); err != nil || n != size || r.Sent != size || r.Received != size || r.Verdict != Allowed {
		t.Errorf("%d bytes, %v; recorded is %+v", n, err, r)
	}
}

// BenchmarkConnect is one tunnel: connected, a ClientHello checked, an answer.
func BenchmarkConnect(b *testing.B) {
	hello := string(makeHello(sni("a.test")))
	server := newEcho(b)
	addr, _ := serve(b, Config{
		Policy:  Policy{Rules: []Rule{{Host: "a.test", Ports: []uint16{server}, Within: loopback, Upload: 1 << 40}}, Limits: Limits{Requests: 1 << 40}},
		Resolve: newNames(map[string]string{"a.test": "127.0.0.1"}).resolve,
	})
	text := crlf(fmt.Sprintf("CONNECT a.test:%d HTTP/1.1", server)) + hello
	want := len("HTTP/1.1 200 Connection established\r\n\r\n") + len(hello)
	for name, to := range map[string]string{"proxy": addr, "direct": fmt.Sprintf("127.0.0.1:%d", server)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				conn, err := net.Dial("tcp", to)
				if err != nil {
					b.Fatal(err)
				}
				said, expected := text, want
				if to != addr {
					said, expected = hello, len(hello)
				}
				_, _ = io.WriteString(conn, said)
				if _, err := io.ReadFull(conn, make([]byte, expected)); err != nil {
					b.Fatal(err)
				}
				conn.Close()
			}
		})
	}
}

// newEcho runs a server that returns what it receives.
func newEcho(t testing.TB) (port uint16) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_, _ = io.Copy(conn, conn)
			}()
		}
	}()
	return portOf(l)
}

// BenchmarkDownload is one large transfer.
func BenchmarkDownload(b *testing.B) {
	const size = 64 << 20
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	go func() {
		block := make([]byte, 256<<10)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				for range size / len(block) {
					_, _ = conn.Write(block)
				}
			}()
		}
	}()
	addr, _ := serve(b, Config{
		Policy: Policy{Rules: []Rule{{Host: "127.0.0.1", Ports: []uint16{portOf(l)}, Within: loopback, Carry: CarryAnything}}, Limits: Limits{Requests: 1 << 40}}, Own: noOwn,
	})
	opening, _ := openTunnel(HTTPConnect, "127.0.0.1", portOf(l))
	for name, to := range map[string]string{"proxy": addr, "direct": l.Addr().String()} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(size)
			buffer := make([]byte, 256<<10)
			for b.Loop() {
				conn, err := net.Dial("tcp", to)
				if err != nil {
					b.Fatal(err)
				}
				if to == addr {
					_, _ = io.WriteString(conn, opening)
				}
				n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{conn}, buffer)
				if err != nil || n < size {
					b.Fatal(n, err)
				}
				conn.Close()
			}
		})
	}
}
