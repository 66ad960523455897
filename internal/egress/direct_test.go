package egress

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"

	"vogt/internal/inet"
)

// serveDirect serves a listener whose address stands for granted.test. The
// addresses of names are local in a box only (package boxtest).
func serveDirect(t testing.TB, config Config) (l net.Listener, audit *records) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	for i := range config.Policy.Rules {
		config.Policy.Rules[i].Ports = []uint16{portOf(l)}
	}
	audit = new(records)
	config.Audit, config.Own = audit, noOwn
	config.Resolve = newNames(map[string]string{"granted.test": "127.0.0.1"}).resolve
	p, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	p.names.address("other.test")
	p.names.byAddr[netip.MustParseAddr("127.0.0.1")] = "granted.test"
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- p.ServeDirect(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return l, audit
}

// What a program sends that knows of no proxy is held to the same rules.
func TestServeDirect(t *testing.T) {
	get := func(path, host string, fields ...string) func(uint16) string {
		return func(port uint16) string {
			return crlf(append([]string{"GET " + path + " HTTP/1.1", "Host: " + strings.ReplaceAll(host, "PORT", fmt.Sprint(port))}, fields...)...)
		}
	}
	text := func(s string) func(uint16) string { return func(uint16) string { return s } }
	const alert = "\x15\x03\x03\x00\x02\x02\x31"
	for _, tt := range []struct {
		name  string
		sent  func(port uint16) string
		rule  Rule
		want  string // that the answer holds
		until Reason
	}{
		{"a request", get("/x?y", "granted.test:PORT", "Accept: */*"), Rule{}, "the answer", NoReason},
		{"TLS", text(string(makeHello(sni("granted.test")))), Rule{}, "the answer", NoReason},
		{"SSH", text("SSH-2.0-x\r\n"), Rule{Carry: CarrySSH}, "the answer", NoReason},
		{"anything", text("hello"), Rule{Carry: CarryAnything}, "the answer", NoReason},
		{"no rule", get("/", "granted.test:PORT"), Rule{Host: "other.test"}, "not-granted", NotGranted},
		{"no rule, TLS", text(string(makeHello(sni("granted.test")))), Rule{Host: "other.test"}, alert, NotGranted},
		{"a rule that denies, TLS", text(string(makeHello(sni("granted.test")))), Rule{Deny: true}, alert, DeniedByRule},
		{"a private address", get("/", "granted.test:PORT"), Rule{Within: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}, "address", RefusedAddress},
		{"another name in TLS", text(string(makeHello(sni("other.test")))), Rule{}, "", OtherServerName},
		{"no name in TLS", text(string(makeHello())), Rule{}, "", NoServerName},
		{"no TLS", text("\x00\x01\x02"), Rule{}, "", NoTLS},
		{"TLS where SSH is granted", text(string(makeHello(sni("granted.test")))), Rule{Carry: CarrySSH}, "", NoSSH},
		{"another host", get("/", "other.test:PORT"), Rule{}, "request", BadRequest},
		{"another port", get("/", "granted.test:1"), Rule{}, "request", BadRequest},
		{"no port", get("/", "granted.test"), Rule{}, "request", BadRequest},
		{"no host", text("GET / HTTP/1.1\r\n\r\n"), Rule{}, "request", BadRequest},
		{"no host in HTTP/1.0", text("GET / HTTP/1.0\r\n\r\n"), Rule{}, "request", BadRequest},
		{"two hosts", get("/", "granted.test:PORT", "Host: other.test"), Rule{}, "request", BadRequest},
		{"a whole address", get("http://other.test/", "granted.test:PORT"), Rule{}, "request", BadRequest},
		{"CONNECT", get("/", "granted.test:PORT"), Rule{}, "the answer", NoReason},
		{"CONNECT elsewhere", text("CONNECT other.test:443 HTTP/1.1\r\nHost: other.test\r\n\r\n"), Rule{}, "request", BadRequest},
		{"two requests at once", func(port uint16) string {
			one := get("/", "granted.test:PORT")(port)
			return one + one
		}, Rule{}, "request", BadRequest},
		{"two lengths", get("/", "granted.test:PORT", "Content-Length: 1", "Transfer-Encoding: chunked"), Rule{}, "request", BadRequest},
		{"SOCKS", text("\x05\x01\x00"), Rule{}, "", NoTLS},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server := newRaw(t, "", crlf("HTTP/1.1 200 OK", "Content-Length: 10")+"the answer")
			rule := tt.rule
			if rule.Host == "" {
				rule.Host = "granted.test"
			}
			if len(rule.Within) == 0 {
				rule.Within = loopback
			}
			l, audit := serveDirect(t, Config{Policy: Policy{Rules: []Rule{rule}}, Dial: func(ctx context.Context, _ netip.AddrPort) (net.Conn, error) {
				return inet.SystemDial(ctx, netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), server.port))
			}})
			conn := dial(t, l.Addr().String())
			_, _ = io.WriteString(conn, tt.sent(portOf(l)))
			_ = conn.CloseWrite()
			answer, _ := io.ReadAll(conn) // a connection that is cut may be reset
			r := audit.last(t)
			if !strings.Contains(string(answer), tt.want) || tt.want == "" && len(answer) > 0 || r.Reason != tt.until {
				t.Errorf("%q, recorded is %v (%s); want %q, %v", answer, r.Reason, r.Detail, tt.want, tt.until)
			}
			if r.Protocol != Direct || r.Host != "granted.test" || tt.until != NoReason && r.Sent != 0 {
				t.Errorf("recorded is %+v", r)
			}
		})
	}
}

// A person is asked about a host that a program reached by its address, too.
func TestDirectAsks(t *testing.T) {
	server := newRaw(t, "", crlf("HTTP/1.1 200 OK", "Content-Length: 10")+"the answer")
	var asked Question
	l, audit := serveDirect(t, Config{
		Ask: func(_ context.Context, q Question) Answer {
			asked = q
			return Answer{Decision: Permit, Within: loopback, By: "tina"}
		},
		Dial: func(ctx context.Context, _ netip.AddrPort) (net.Conn, error) {
			return inet.SystemDial(ctx, netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), server.port))
		},
	})
	answer := say(t, l.Addr().String(), crlf("GET / HTTP/1.1", fmt.Sprintf("Host: granted.test:%d", portOf(l))))
	if r := audit.last(t); !strings.Contains(answer, "the answer") || asked.Host != "granted.test" || asked.Scheme != PlainHTTP || !strings.Contains(r.Basis, "tina") {
		t.Errorf("%q, asked was %+v, recorded is %+v", answer, asked, r)
	}
}

func TestDirectPorts(t *testing.T) {
	p, _, _ := newNamesProxy(t, Policy{Rules: []Rule{
		{Host: "a.test"}, {Host: "b.test", Ports: []uint16{22, 443, 8443}}, {Host: "c.test", Ports: []uint16{25}, Deny: true}, {Host: "192.0.2.1", Ports: []uint16{26}},
	}}, false)
	if got := fmt.Sprint(p.DirectPorts()); got != "[80 443 22 8443]" {
		t.Errorf("%s", got)
	}
}
