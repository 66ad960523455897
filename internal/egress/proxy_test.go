package egress

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"vogt/internal/inet"
)

// loopback is the network in which the tests' servers lie. Only rules that name
// it reach them.
var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

// certificate makes a certificate for names, which is its own authority.
func certificate(t testing.TB, names ...string) (tls.Certificate, *x509.CertPool, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "egress test"}, DNSNames: names,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// site is a web server that says which host it was asked for.
type site struct {
	port    uint16
	secure  uint16 // port of TLS
	pool    *x509.CertPool
	pemFile string
}

func newSite(t testing.TB, names ...string) *site {
	t.Helper()
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("X-Seen", r.Method+" "+r.Host+" "+r.RequestURI)
		fmt.Fprintf(w, "hello %s %s", r.Host, body)
	})
	plain := httptest.NewServer(handler)
	t.Cleanup(plain.Close)
	cert, pool, text := certificate(t, names...)
	secure := httptest.NewUnstartedServer(handler)
	secure.TLS = &tls.Config{Certificates: []tls.Certificate{cert}}
	secure.Config.ErrorLog = nil
	secure.StartTLS()
	t.Cleanup(secure.Close)
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return &site{port: portOf(plain.Listener), secure: portOf(secure.Listener), pool: pool, pemFile: file}
}

func portOf(l net.Listener) uint16 { return uint16(l.Addr().(*net.TCPAddr).Port) }

// raw is a server that keeps all bytes that it receives, and answers with text
// once it has seen until.
type raw struct {
	port  uint16
	mu    sync.Mutex
	got   [][]byte      // of each connection
	ended chan struct{} // receives for each connection
	over  int           // how many of them were received
}

func newRaw(t testing.TB, until, answer string) *raw {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &raw{port: portOf(l), ended: make(chan struct{}, 100)}
	var work sync.WaitGroup
	work.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			work.Go(func() {
				defer func() { conn.Close(); r.ended <- struct{}{} }()
				_ = conn.SetDeadline(time.Now().Add(patience))
				r.serve(conn, until, answer)
			})
		}
	})
	t.Cleanup(func() { l.Close(); work.Wait() })
	return r
}

func (r *raw) serve(conn net.Conn, until, answer string) {
	r.mu.Lock()
	n := len(r.got)
	r.got = append(r.got, nil)
	r.mu.Unlock()
	buffer := make([]byte, 4096)
	for answered := false; ; {
		k, err := conn.Read(buffer)
		r.mu.Lock()
		r.got[n] = append(r.got[n], buffer[:k]...)
		all := r.got[n]
		r.mu.Unlock()
		if !answered && bytes.Contains(all, []byte(until)) {
			answered = true
			_, _ = io.WriteString(conn, answer)
			_ = conn.(*net.TCPConn).CloseWrite()
		}
		if err != nil {
			return
		}
	}
}

// received returns what came on all connections, once n of them have ended.
func (r *raw) received(n int) string {
	for ; r.over < n; r.over++ {
		<-r.ended
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return string(bytes.Join(r.got, []byte("|")))
}

// refusedWith returns the reason in an answer of the proxy, or says that there
// is none.
func refusedWith(t testing.TB, answer string) string {
	t.Helper()
	response, err := http.ReadResponse(bufio.NewReader(strings.NewReader(answer)), nil)
	if err != nil {
		return fmt.Sprintf("no response: %q", answer)
	}
	defer response.Body.Close()
	if response.Header.Get(refusedHeader) == "" {
		return "no refusal: " + response.Status
	}
	var p problem
	if err := json.NewDecoder(response.Body).Decode(&p); err != nil {
		t.Errorf("%q: %v", answer, err)
	}
	if p.Reason != response.Header.Get(refusedHeader) || p.Status != response.StatusCode || p.Detail == "" || response.Header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("the parts of %q do not agree", answer)
	}
	return p.Reason
}

// client is a program that fetches an address through the proxy. It returns the
// body, or an error that holds the proxy's answer.
type client func(t *testing.T, proxy string, s *site, address string) (string, error)

func goClient(t *testing.T, proxy string, s *site, address string) (string, error) {
	t.Helper()
	transport := &http.Transport{
		Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: proxy}), TLSClientConfig: &tls.Config{RootCAs: s.pool},
		OnProxyConnectResponse: func(_ context.Context, _ *url.URL, _ *http.Request, r *http.Response) error {
			if reason := r.Header.Get(refusedHeader); reason != "" {
				return errors.New(reason)
			}
			return nil
		},
	}
	return fetch(transport, address)
}

func goSOCKS(t *testing.T, proxy string, s *site, address string) (string, error) {
	t.Helper()
	return fetch(&http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "socks5h", Host: proxy}), TLSClientConfig: &tls.Config{RootCAs: s.pool}}, address)
}

func fetch(transport *http.Transport, address string) (string, error) {
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport, Timeout: patience}).Get(address)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	if reason := response.Header.Get(refusedHeader); reason != "" {
		return "", errors.New(reason)
	}
	body, err := io.ReadAll(response.Body)
	return string(body), err
}

// curl returns a client that runs curl with the proxy's scheme.
func curl(scheme string) client {
	return func(t *testing.T, proxy string, s *site, address string) (string, error) {
		t.Helper()
		exe, err := exec.LookPath("curl")
		if err != nil {
			t.Skip("curl is not installed (Debian: apt-get install curl)")
		}
		cmd := exec.Command(exe, "--disable", "--silent", "--show-error", "--fail", "--include", "--max-time", "30",
			"--proxy", scheme+"://"+proxy, "--cacert", s.pemFile, address)
		cmd.Env = []string{}
		out, err := cmd.CombinedOutput()
		if err != nil {
			return "", fmt.Errorf("%w: %s", err, out)
		}
		_, body, _ := strings.Cut(string(out), "hello ")
		return "hello " + body, nil
	}
}

// Tests 58 and 59 of the list of escapes: a granted host is reached, and the
// same client does not reach it without the grant.
func TestRealClients(t *testing.T) {
	const host = "granted.test"
	s := newSite(t, host)
	dns := newNames(map[string]string{host: "127.0.0.1"})
	granted := []Rule{{Host: host, Ports: []uint16{s.secure, s.port}, Within: loopback}}
	anything := []Rule{{Host: host, Ports: []uint16{s.port}, Within: loopback, Carry: CarryAnything}}
	plain, secure := fmt.Sprintf("http://%s:%d/x", host, s.port), fmt.Sprintf("https://%s:%d/x", host, s.secure)
	for _, tt := range []struct {
		name     string
		client   client
		address  string
		rules    []Rule
		protocol Protocol
		refusal  string // in the client's error
	}{
		{"net/http", goClient, plain, granted, HTTPPlain, "not-granted"},
		{"net/http, TLS", goClient, secure, granted, HTTPConnect, "not-granted"},
		{"net/http, SOCKS", goSOCKS, secure, granted, SOCKS5, "not allowed"},
		{"net/http, SOCKS without TLS", goSOCKS, plain, anything, SOCKS5, "not allowed"},
		{"curl", curl("http"), plain, granted, HTTPPlain, "403"},
		{"curl, TLS", curl("http"), secure, granted, HTTPConnect, "403"},
		{"curl, SOCKS", curl("socks5h"), secure, granted, SOCKS5, "SOCKS5"},
		{"curl, SOCKS without TLS", curl("socks5h"), plain, anything, SOCKS5, "SOCKS5"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			config := Config{Identity: Identity{"tim", "curl"}, Policy: Policy{Rules: tt.rules}, Resolve: dns.resolve, Own: noOwn}
			addr, audit := serve(t, config)
			body, err := tt.client(t, addr, s, tt.address)
			if err != nil || !strings.HasPrefix(body, "hello "+host) {
				t.Fatalf("%q, %v", body, err)
			}
			r := audit.last(t)
			if r.Verdict != Allowed || r.Protocol != tt.protocol || r.Host != host || r.Address.String() != "127.0.0.1" ||
				r.Identity.Agent != "tim" || r.Basis != "rule "+host || r.Sent == 0 || r.Received == 0 || (r.SNI == host) != strings.HasPrefix(tt.address, "https") {
				t.Errorf("recorded is %+v", r)
			}
			if len(audit.begun) != 1 || audit.begun[0].Verdict != Allowed || audit.begun[0].Host != host {
				t.Errorf("recorded at the beginning is %+v", audit.begun)
			}

			before := dns.questions()
			config.Policy.Rules = nil
			addr, audit = serve(t, config)
			if body, err := tt.client(t, addr, s, tt.address); err == nil || !strings.Contains(err.Error(), tt.refusal) {
				t.Errorf("without a grant: %q, %v", body, err)
			}
			if r := audit.last(t); r.Verdict != Refused || r.Reason != NotGranted || r.Host != host || r.Sent != 0 || len(audit.begun) != 0 {
				t.Errorf("without a grant recorded is %+v", r)
			}
			if dns.questions() != before {
				t.Error("a name was resolved that nobody had granted")
			}
		})
	}
}

// Variables that name another proxy change nothing.
func TestEnvironmentIsNotRead(t *testing.T) {
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"} {
		t.Setenv(name, "http://127.0.0.1:1")
	}
	s := newSite(t, "a.test")
	addr, _ := serve(t, Config{
		Policy:  Policy{Rules: []Rule{{Host: "a.test", Ports: []uint16{s.port}, Within: loopback}}},
		Resolve: newNames(map[string]string{"a.test": "127.0.0.1"}).resolve, Own: noOwn,
	})
	if body, err := goClient(t, addr, s, fmt.Sprintf("http://a.test:%d/", s.port)); err != nil || !strings.HasPrefix(body, "hello a.test") {
		t.Errorf("%q, %v", body, err)
	}
}

// Test 60: a granted name that leads to a place that is not meant. The same name
// is reached while it leads to a public address.
func TestAddresses(t *testing.T) {
	s := newSite(t, "a.test")
	const public = "93.184.216.34"
	own := netip.MustParseAddr("203.0.112.9")
	const refusedElse = inet.Reserved + 1 // refused, whatever the class is
	for _, tt := range []struct {
		addrs  string
		within string
		class  inet.Class // Public: reached
	}{
		{public, "", inet.Public},
		{"2606:4700::1111", "", inet.Public},
		{"127.0.0.1", "", inet.Loopback},
		{"127.0.0.1", "127.0.0.0/8", inet.Public},
		{"127.9.9.9", "", inet.Loopback},
		{"::1", "", inet.Loopback},
		{"10.0.0.1", "", inet.Private},
		{"10.0.0.1", "10.0.0.0/24", inet.Public},
		{"10.0.1.1", "10.0.0.0/24", inet.Private},
		{"172.16.0.1", "", inet.Private},
		{"192.168.1.1", "", inet.Private},
		{"100.64.0.1", "", inet.Shared},
		{"169.254.1.1", "", inet.LinkLocal},
		{"169.254.169.254", "", inet.Metadata},
		{"169.254.169.254", "169.254.0.0/16", inet.Metadata},
		{"168.63.129.16", "", inet.Metadata},
		{"100.100.100.200", "", inet.Metadata},
		{"fd00:ec2::254", "", inet.Metadata},
		{"fd12::1", "", inet.UniqueLocal},
		{"fe80::1", "", inet.LinkLocal},
		{"0.0.0.0", "", inet.Unspecified},
		{"::", "", inet.Unspecified},
		{"224.0.0.1", "", inet.Multicast},
		{"255.255.255.255", "", inet.Reserved},
		{"192.0.0.8", "", inet.Reserved},
		{"198.18.0.1", "", inet.Benchmark},
		{"::ffff:127.0.0.1", "", inet.Mapped},
		{"::ffff:93.184.216.34", "", inet.Mapped},
		{"64:ff9b::7f00:1", "", inet.Transition},
		{"64:ff9b::5db8:d822", "", inet.Transition},
		{"2002:7f00:1::", "", inet.Transition},
		{"2001:0:7f00:1::", "", inet.Transition},
		{"::127.0.0.1", "", inet.Transition},
		{own.String(), "", inet.Own},
		{public + " 10.0.0.1", "", inet.Private},
		{"10.0.0.1 " + public, "", inet.Private},
		{public + " 10.0.0.1", "10.0.0.0/8", refusedElse}, // the public one is not the rule's
		{public + " ::1", "", inet.Loopback},
	} {
		t.Run(tt.addrs+" within "+tt.within, func(t *testing.T) {
			var dialled []string
			addr, audit := serve(t, Config{
				Policy:  Policy{Rules: []Rule{{Host: "a.test", Within: prefixes(tt.within)}}},
				Resolve: newNames(map[string]string{"a.test": tt.addrs}).resolve,
				Own:     func() ([]netip.Addr, error) { return []netip.Addr{own}, nil },
				Dial: func(ctx context.Context, addr netip.AddrPort) (net.Conn, error) {
					dialled = append(dialled, addr.String()) // one connection in this test
					return inet.SystemDial(ctx, netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), s.port))
				},
			})
			answer := say(t, addr, crlf("GET http://a.test/ HTTP/1.1", "Host: a.test"))
			record := audit.last(t)
			if tt.class == inet.Public {
				if !strings.Contains(answer, "hello a.test") || len(dialled) != 1 || record.Address.String()+":80" != strings.Trim(dialled[0], "[]") && !record.Address.Is6() {
					t.Errorf("dialled %q, recorded %+v, answered %q", dialled, record, answer)
				}
				return
			}
			if reason := refusedWith(t, answer); reason != "address" || len(dialled) != 0 || record.Reason != RefusedAddress || record.Verdict != Refused {
				t.Errorf("dialled %q, recorded %+v, answered %q", dialled, record, answer)
			}
			if tt.class != refusedElse && !strings.Contains(answer, `"address_class":"`+tt.class.String()+`"`) {
				t.Errorf("the class %v is missing in %q", tt.class, answer)
			}
		})
	}
}

// Test 65: the name is resolved once, and what was checked is what is dialled.
func TestRebinding(t *testing.T) {
	s := newSite(t, "a.test")
	answers := []string{"93.184.216.34", "127.0.0.1", "127.0.0.1"}
	asked := 0
	var dialled []string
	addr, audit := serve(t, Config{
		Policy: Policy{Rules: []Rule{{Host: "a.test"}}},
		Resolve: func(context.Context, string) ([]netip.Addr, error) {
			asked++
			return []netip.Addr{netip.MustParseAddr(answers[asked-1])}, nil
		},
		Own: noOwn,
		Dial: func(ctx context.Context, addr netip.AddrPort) (net.Conn, error) {
			dialled = append(dialled, addr.String())
			return inet.SystemDial(ctx, netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), s.port))
		},
	})
	get := crlf("GET http://a.test/ HTTP/1.1", "Host: a.test")
	if answer := say(t, addr, get); !strings.Contains(answer, "hello a.test") {
		t.Fatal(answer)
	}
	audit.wait(t, 1)
	if asked != 1 || len(dialled) != 1 || dialled[0] != "93.184.216.34:80" {
		t.Errorf("asked %d times, dialled %q", asked, dialled)
	}
	if reason := refusedWith(t, say(t, addr, get)); reason != "address" || len(dialled) != 1 {
		t.Errorf("the second answer: %s, dialled %q", reason, dialled)
	}
}

// If one address is silent or refuses, the next is tried; all were checked.
func TestNextAddress(t *testing.T) {
	s := newSite(t, "a.test")
	var dialled []string
	addr, audit := serve(t, Config{
		Policy:  Policy{Rules: []Rule{{Host: "a.test"}}},
		Resolve: newNames(map[string]string{"a.test": "93.184.216.1 93.184.216.2"}).resolve, Own: noOwn,
		Dial: func(ctx context.Context, addr netip.AddrPort) (net.Conn, error) {
			dialled = append(dialled, addr.Addr().String())
			if len(dialled) == 1 {
				return nil, errors.New("connection refused")
			}
			return inet.SystemDial(ctx, netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), s.port))
		},
	})
	answer := say(t, addr, crlf("GET http://a.test/ HTTP/1.1", "Host: a.test"))
	if r := audit.last(t); !strings.Contains(answer, "hello") || len(dialled) != 2 || r.Address.String() != "93.184.216.2" {
		t.Errorf("dialled %q, recorded %+v: %q", dialled, r, answer)
	}
}

// Tests 61: what is sent into a tunnel must name the granted host. Every attempt
// first reaches the server through a tunnel that may carry anything.
func TestTunnelsArePinned(t *testing.T) {
	const host = "granted.test"
	for _, tt := range []struct {
		name, sent string
		reason     Reason // NoReason: passes
		ech        bool
	}{
		{"the host", string(makeHello(sni(host))), NoReason, false},
		{"the host in capitals", string(makeHello(sni("Granted.TEST"))), NoReason, false},
		{"the host in pieces", string(rerecord(makeHello(sni(host)), 7)), NoReason, false},
		{"the host as the outer name", string(makeHello(sni(host), extension(extEncryptedName, []byte("x")))), NoReason, true},
		{"another host", string(makeHello(sni("other.test"))), OtherServerName, false},
		{"a host below", string(makeHello(sni("a." + host))), OtherServerName, false},
		{"a final dot", string(makeHello(sni(host + "."))), OtherServerName, false},
		{"a NUL", string(makeHello(sni(host + "\x00.other.test"))), OtherServerName, false},
		{"an address", string(makeHello(sni("127.0.0.1"))), OtherServerName, false},
		{"another outer name", string(makeHello(sni("cloudflare-ech.com"), extension(extEncryptedName, []byte("x")))), OtherServerName, true},
		{"no name", string(makeHello()), NoServerName, false},
		{"two names", string(makeHello(sni(host, "other.test"))), BrokenTLS, false},
		{"a hello without end", string(rerecord(makeHello(sni(host)), 1)), BrokenTLS, false},
		{"plain HTTP", crlf("GET / HTTP/1.1", "Host: other.test"), NoTLS, false},
		{"SSH", "SSH-2.0-x\r\n", NoTLS, false},
		{"one byte", "\x00", NoTLS, false},
		{"data of TLS", "\x17\x03\x03\x00\x05hello", NoTLS, false},
	} {
		for _, protocol := range []Protocol{HTTPConnect, SOCKS5} {
			t.Run(tt.name+" by "+protocol.String(), func(t *testing.T) {
				server := newRaw(t, tt.sent, "the answer")
				config := Config{
					Policy:  Policy{Rules: []Rule{{Host: host, Ports: []uint16{server.port}, Within: loopback, Carry: CarryAnything}}},
					Resolve: newNames(map[string]string{host: "127.0.0.1"}).resolve, Own: noOwn,
				}
				opening, opened := openTunnel(protocol, host, server.port)
				addr, _ := serve(t, config)
				if answer := say(t, addr, opening+tt.sent); answer != opened+"the answer" || server.received(1) != tt.sent {
					t.Fatalf("without a pin: %q, and %q is received", answer, server.received(1))
				}

				config.Policy.Rules[0].Carry = CarryDefault
				addr, audit := serve(t, config)
				answer := say(t, addr, opening+tt.sent)
				r := audit.last(t)
				if r.Reason != tt.reason || r.ECH != tt.ech {
					t.Errorf("recorded is %+v", r)
				}
				if tt.reason == NoReason {
					if answer != opened+"the answer" || server.received(2) != tt.sent+"|"+tt.sent || r.Verdict != Allowed || r.SNI != host {
						t.Errorf("%q, received %q, recorded %+v", answer, server.received(2), r)
					}
					return
				}
				if !strings.HasPrefix(opened, answer) || server.received(2) != tt.sent+"|" || r.Verdict != Refused || r.Sent != 0 {
					t.Errorf("%q, received %q, recorded %+v", answer, server.received(2), r)
				}
			})
		}
	}
}

// openTunnel returns what a client says to open a tunnel, and what it is told.
func openTunnel(protocol Protocol, host string, port uint16) (opening, opened string) {
	if protocol == SOCKS5 {
		return socksGreeting + socksTo(1, socksName, host, port), "\x05\x00\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00"
	}
	return crlf(fmt.Sprintf("CONNECT %s:%d HTTP/1.1", host, port)), "HTTP/1.1 200 Connection established\r\n\r\n"
}

// A tunnel to an address carries TLS without a name, as clients send it, and not
// with another's.
func TestTunnelToAddress(t *testing.T) {
	for sent, want := range map[string]Reason{
		string(makeHello()):                  NoReason,
		string(makeHello(sni("127.0.0.1"))):  NoReason,
		string(makeHello(sni("other.test"))): OtherServerName,
	} {
		server := newRaw(t, sent, "the answer")
		addr, audit := serve(t, Config{Policy: Policy{Rules: []Rule{{Host: "127.0.0.1", Ports: []uint16{server.port}, Within: loopback}}}, Own: noOwn})
		opening, opened := openTunnel(HTTPConnect, "127.0.0.1", server.port)
		answer := say(t, addr, opening+sent)
		if r := audit.last(t); r.Reason != want || (answer == opened+"the answer") != (want == NoReason) {
			t.Errorf("%q, recorded %+v, want %v", answer, r, want)
		}
	}
}

// SSH begins with a line of text, which the server may send first.
func TestTunnelWithSSH(t *testing.T) {
	for sent, want := range map[string]Reason{
		"SSH-2.0-OpenSSH_9.9\r\nkeys":    NoReason,
		"SSH-1.5-x\r\n":                  NoSSH,
		"GET / HTTP/1.1\r\n\r\n":         NoSSH,
		string(makeHello(sni("a.test"))): NoSSH,
	} {
		server := newRaw(t, "", "")
		onPort22 := func(ctx context.Context, addr netip.AddrPort) (net.Conn, error) {
			if addr.Port() != 22 {
				t.Errorf("dialled %v", addr)
			}
			return inet.SystemDial(ctx, netip.AddrPortFrom(addr.Addr(), server.port))
		}
		addr, audit := serve(t, Config{
			Policy:  Policy{Rules: []Rule{{Host: "a.test", Ports: []uint16{22}, Within: loopback}}},
			Resolve: newNames(map[string]string{"a.test": "127.0.0.1"}).resolve, Own: noOwn, Dial: onPort22,
		})
		conn := dial(t, addr)
		opening, _ := openTunnel(HTTPConnect, "a.test", 22)
		_, _ = io.WriteString(conn, opening+sent)
		_ = conn.CloseWrite()
		_, _ = io.ReadAll(conn)
		r := audit.last(t)
		if got := server.received(1); r.Reason != want || (got == sent) != (want == NoReason) || want != NoReason && got != "" {
			t.Errorf("%q: %q was received, recorded %+v, want %v", sent, got, r, want)
		}
	}
}

// Test 62: whatever stands in Host, the server sees the granted host.
func TestHostIsForced(t *testing.T) {
	s := newSite(t, "a.test")
	direct := say(t, fmt.Sprintf("127.0.0.1:%d", s.port), crlf("GET / HTTP/1.1", "Host: other.test", "Connection: close"))
	if !strings.Contains(direct, "hello other.test") {
		t.Fatalf("without the proxy the field has no effect: %q", direct)
	}
	addr, _ := serve(t, Config{
		Policy:  Policy{Rules: []Rule{{Host: "a.test", Ports: []uint16{s.port}, Within: loopback}}},
		Resolve: newNames(map[string]string{"a.test": "127.0.0.1"}).resolve, Own: noOwn,
	})
	for _, host := range []string{"other.test", "other.test:80", "a.test", "", "a.test, other.test"} {
		want := fmt.Sprintf("hello a.test:%d", s.port)
		if answer := say(t, addr, crlf(fmt.Sprintf("GET http://a.test:%d/ HTTP/1.1", s.port), "Host: "+host)); !strings.Contains(answer, want) {
			t.Errorf("Host %q: %q", host, answer)
		}
	}
}

// Test 63: SOCKS with addresses, and its other commands. Each address that is
// refused by its class is granted by name, which is not enough.
func TestSOCKSLiterals(t *testing.T) {
	server := newRaw(t, "", "")
	metadata := socksTo(1, socksIPv4, "\xa9\xfe\xa9\xfe", 80)
	for _, tt := range []struct {
		name, request string
		rules         []Rule
		code          byte
		reason        Reason
	}{
		{"loopback, granted", socksTo(1, socksIPv4, "\x7f\x00\x00\x01", server.port), []Rule{{Host: "127.0.0.1", Ports: []uint16{server.port}, Within: loopback, Carry: CarryAnything}}, socksDone, NoReason},
		{"loopback, granted without its network", socksTo(1, socksIPv4, "\x7f\x00\x00\x01", server.port), []Rule{{Host: "127.0.0.1", Ports: []uint16{server.port}}}, socksRefused, RefusedAddress},
		{"loopback, granted as a name", socksTo(1, socksIPv4, "\x7f\x00\x00\x01", server.port), []Rule{{Host: "localhost", Ports: []uint16{server.port}, Within: loopback}}, socksRefused, NotGranted},
		{"metadata", metadata, nil, socksRefused, NotGranted},
		{"metadata, granted", metadata, []Rule{{Host: "169.254.169.254", Ports: []uint16{80}}}, socksRefused, RefusedAddress},
		{"metadata, granted with its network", metadata, []Rule{{Host: "169.254.169.254", Ports: []uint16{80}, Within: prefixes("169.254.0.0/16")}}, socksRefused, RefusedAddress},
		{"metadata as a name", socksTo(1, socksName, "169.254.169.254", 80), []Rule{{Host: "169.254.169.254", Ports: []uint16{80}}}, socksRefused, RefusedAddress},
		{"metadata as a number", socksTo(1, socksName, "2852039166", 80), nil, socksRefused, BadHost},
		{"metadata in IPv6", socksTo(1, socksIPv6, strings.Repeat("\x00", 10)+"\xff\xff\xa9\xfe\xa9\xfe", 80), []Rule{{Host: "169.254.169.254", Ports: []uint16{80}}}, socksRefused, BadHost},
		{"BIND", socksTo(2, socksIPv4, "\x7f\x00\x00\x01", server.port), []Rule{{Host: "127.0.0.1", Ports: []uint16{server.port}, Within: loopback}}, socksNoCommand, BadCommand},
		{"UDP ASSOCIATE", socksTo(3, socksIPv4, "\x7f\x00\x00\x01", server.port), []Rule{{Host: "127.0.0.1", Ports: []uint16{server.port}, Within: loopback}}, socksNoCommand, BadCommand},
	} {
		addr, audit := serve(t, Config{Policy: Policy{Rules: tt.rules}, Own: noOwn})
		conn := dial(t, addr)
		_, _ = io.WriteString(conn, socksGreeting+tt.request)
		_ = conn.CloseWrite()
		answer, _ := io.ReadAll(conn)
		r := audit.last(t)
		if want := "\x05\x00\x05" + string([]byte{tt.code}) + "\x00\x01\x00\x00\x00\x00\x00\x00"; string(answer) != want || r.Reason != tt.reason || r.Protocol != SOCKS5 {
			t.Errorf("%s: %q, recorded %+v", tt.name, answer, r)
		}
	}
}

// Test 64: other ways to write a host, by all protocols. Reached hosts are
// reached under the granted name.
func TestOtherSpellings(t *testing.T) {
	const host, reached = "granted.test", "reached"
	s := newSite(t, host)
	dns := newNames(map[string]string{host: "127.0.0.1", "evil-granted.test": "127.0.0.1", "xn--grnted-5na.test": "127.0.0.1"})
	addr, _ := serve(t, Config{
		Policy:  Policy{Rules: []Rule{{Host: host, Ports: []uint16{s.port}, Within: loopback, Carry: CarryAnything}}},
		Resolve: dns.resolve, Own: noOwn,
	})
	for text, want := range map[string]string{
		host:                         reached,
		"GRANTED.test":               reached,
		"granted.test.":              reached,
		"ｇranted.test":               reached,
		"granted.test..":             "host",
		"evil-granted.test":          "not-granted",
		"granted.test.evil.test":     "not-granted",
		"gränted.test":               "not-granted",
		"grаnted.test":               "not-granted",
		"evil.test\x00granted.test":  "host",
		"evil.test\x00.granted.test": "host",
		"granted.test\x00.evil.test": "host",
		"granted.test%00.evil.test":  "host",
		"granted_.test":              "host",
		"0x7f.1":                     "host",
		"127.1":                      "host",
		"2130706433":                 "host",
		"017700000001":               "host",
		"127.0.0.1":                  "not-granted",
	} {
		conn := dial(t, addr)
		_, _ = io.WriteString(conn, socksGreeting+socksTo(1, socksName, text, s.port)+crlf("GET / HTTP/1.1", "Host: "+host, "Connection: close"))
		answer, _ := io.ReadAll(conn)
		if got := strings.Contains(string(answer), "hello "+host); got != (want == reached) {
			t.Errorf("SOCKS5, %q: %q, want %s", text, answer, want)
		}
		got := say(t, addr, crlf(fmt.Sprintf("GET http://%s:%d/ HTTP/1.1", text, s.port), "Host: "+host))
		switch {
		case want == reached && isASCII(text):
			if !strings.Contains(got, "hello "+host) {
				t.Errorf("HTTP, %q: %q", text, got)
			}
		case !isASCII(text) || strings.Contains(text, "\x00"):
			if reason := refusedWith(t, got); reason != "request" {
				t.Errorf("HTTP, %q: %s", text, reason)
			}
		default:
			if reason := refusedWith(t, got); reason != want {
				t.Errorf("HTTP, %q: %s, want %s", text, reason, want)
			}
		}
	}
	for _, name := range dns.asked {
		if name != host {
			t.Errorf("%q was resolved", name)
		}
	}
}

// Test 66: one request cannot carry another past the proxy. All of these reach a
// server as two requests, or as one to another host, if they are passed on as
// they are.
func TestSmuggling(t *testing.T) {
	second := crlf("GET /second HTTP/1.1", "Host: other.test")
	for _, tt := range []struct {
		name, text string
		reason     string // of the refusal; empty if it is made harmless
	}{
		{"length and chunks", crlf("POST http://a.test/ HTTP/1.1", "Host: a.test", "Content-Length: 5", "Transfer-Encoding: chunked") + "0\r\n\r\n" + second, "request"},
		{"two lengths", crlf("POST http://a.test/ HTTP/1.1", "Host: a.test", "Content-Length: 0", "Content-Length: 50") + second, "request"},
		{"a continued line", crlf("POST http://a.test/ HTTP/1.1", "Host: a.test", "X: y", " Content-Length: 0") + second, "request"},
		{"bare line feeds", "GET http://a.test/ HTTP/1.1\nHost: a.test\n\n" + second, "request"},
		{"a header inside another", "GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nX: y\nHost: other.test\r\n\r\n", "request"},
		{"chunks with a line feed", crlf("POST http://a.test/ HTTP/1.1", "Host: a.test", "Transfer-Encoding:\nchunked") + "0\r\n\r\n" + second, "request"},
		{"chunks that are unclear", crlf("POST http://a.test/ HTTP/1.1", "Host: a.test", "Transfer-Encoding: chunked, identity") + "0\r\n\r\n" + second, "request"},
		{"pipelined", crlf("GET http://a.test/ HTTP/1.1", "Host: a.test") + crlf("GET http://other.test/second HTTP/1.1", "Host: other.test"), "request"},
		{"pipelined after a body", crlf("POST http://a.test/ HTTP/1.1", "Host: a.test", "Content-Length: 2") + "ok" + second, ""},
		{"pipelined after chunks", crlf("POST http://a.test/ HTTP/1.1", "Host: a.test", "Transfer-Encoding: chunked") + "2\r\nok\r\n0\r\n\r\n" + second, ""},
		{"in an extension of a chunk", crlf("POST http://a.test/ HTTP/1.1", "Host: a.test", "Transfer-Encoding: chunked") + "2;x=second\r\nok\r\n0\r\n\r\n", ""},
		{"in a trailer", crlf("POST http://a.test/ HTTP/1.1", "Host: a.test", "Trailer: X-Second", "Transfer-Encoding: chunked") + "2\r\nok\r\n0\r\nX-Second: second\r\nHost: other.test\r\n\r\n", ""},
		{"an upgrade", crlf("GET http://a.test/ HTTP/1.1", "Host: a.test", "Connection: Upgrade", "Upgrade: h2c", "HTTP2-Settings: second"), ""},
		{"credentials of the proxy", crlf("GET http://a.test/ HTTP/1.1", "Host: a.test", "Proxy-Authorization: Basic second"), ""},
		{"fields of one hop", crlf("GET http://a.test/ HTTP/1.1", "Host: a.test", "Connection: x-second", "X-Second: second", "Keep-Alive: second", "TE: second"), ""},
		{"another host", crlf("GET http://a.test/ HTTP/1.1", "Host: other.test"), ""},
	} {
		server := newRaw(t, "", crlf("HTTP/1.1 200 OK", "Content-Length: 5")+"reply")
		addr, audit := serve(t, Config{
			Policy:  Policy{Rules: []Rule{{Host: "a.test", Within: loopback}}},
			Resolve: newNames(map[string]string{"a.test": "127.0.0.1", "other.test": "127.0.0.1"}).resolve, Own: noOwn,
			Dial: func(ctx context.Context, addr netip.AddrPort) (net.Conn, error) {
				return inet.SystemDial(ctx, netip.AddrPortFrom(addr.Addr(), server.port))
			},
		})
		answer := say(t, addr, tt.text)
		audit.wait(t, 1)
		dialled := 1
		if tt.reason != "" {
			dialled = 0
		}
		got := server.received(dialled)
		if tt.reason != "" {
			if reason := refusedWith(t, answer); reason != tt.reason || got != "" {
				t.Errorf("%s: %s, and the server received %q", tt.name, reason, got)
			}
			continue
		}
		// The raw server answers at once, so a body may not have come so far.
		if !strings.HasSuffix(answer, "reply") || strings.Contains(got, "second") || strings.Contains(got, "other.test") ||
			strings.Count(got, "HTTP/1.1") != 1 || strings.Count(got, "Host: a.test\r\n") != 1 {
			t.Errorf("%s: %q, and the server received %q", tt.name, answer, got)
		}
		if r := audit.last(t); r.Verdict != Allowed {
			t.Errorf("%s: recorded is %+v", tt.name, r)
		}
	}
}

// Bodies of both kinds arrive whole, and clients that wait for permission to
// send them get it.
func TestBodies(t *testing.T) {
	s := newSite(t, "a.test")
	addr, audit := serve(t, Config{
		Policy:  Policy{Rules: []Rule{{Host: "a.test", Ports: []uint16{s.port}, Within: loopback}}, Limits: Limits{Upload: 2 << 20}},
		Resolve: newNames(map[string]string{"a.test": "127.0.0.1"}).resolve, Own: noOwn,
	})
	body := strings.Repeat("0123456789abcdef", 20_000)
	transport := &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: addr}), ExpectContinueTimeout: patience}
	defer transport.CloseIdleConnections()
	n := 0
	for _, known := range []bool{true, false} {
		for _, expect := range []string{"", "100-continue"} {
			var reader io.Reader = strings.NewReader(body)
			if !known {
				reader = io.MultiReader(reader)
			}
			request, err := http.NewRequest(http.MethodPut, fmt.Sprintf("http://a.test:%d/p%%2fq?r=%%00", s.port), reader)
			if err != nil {
				t.Fatal(err)
			}
			if expect != "" {
				request.Header.Set("Expect", expect)
			}
			response, err := transport.RoundTrip(request)
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(response.Body)
			response.Body.Close()
			want := fmt.Sprintf("hello a.test:%d %s", s.port, body)
			if seen := response.Header.Get("X-Seen"); err != nil || string(got) != want || !strings.HasSuffix(seen, " /p%2fq?r=%00") {
				t.Errorf("known %v, expect %q: %d bytes, %v; seen was %q", known, expect, len(got), err, seen)
			}
			n++
			records := audit.wait(t, n)
			if r := records[n-1]; r.Sent < int64(len(body)) || r.Received < int64(len(body)) || r.Verdict != Allowed {
				t.Errorf("recorded is %+v", r)
			}
		}
	}
}

// What hosts answer is read and written anew.
func TestResponses(t *testing.T) {
	get, head := "GET", "HEAD"
	for _, tt := range []struct {
		name, method, version, answer, want string // want: the whole response, or a reason
	}{
		{"a length", get, "1.1", crlf("HTTP/1.1 200 Fine", "Content-Length: 2", "X-A: b") + "ok", crlf("HTTP/1.1 200 OK", "X-A: b", "Content-Length: 2", "Connection: close") + "ok"},
		{"chunks", get, "1.1", crlf("HTTP/1.1 200 OK", "Transfer-Encoding: chunked") + "2;x\r\nok\r\n0\r\nX: y\r\n\r\n", crlf("HTTP/1.1 200 OK", "Transfer-Encoding: chunked", "Connection: close") + "2\r\nok\r\n0\r\n\r\n"},
		{"chunks, for an older client", get, "1.0", crlf("HTTP/1.1 200 OK", "Transfer-Encoding: chunked") + "2\r\nok\r\n0\r\n\r\n", crlf("HTTP/1.1 200 OK", "Connection: close") + "ok"},
		{"until the end", get, "1.1", crlf("HTTP/1.0 200 OK") + "ok", crlf("HTTP/1.1 200 OK", "Transfer-Encoding: chunked", "Connection: close") + "2\r\nok\r\n0\r\n\r\n"},
		{"none", get, "1.1", crlf("HTTP/1.1 204 No Content"), crlf("HTTP/1.1 204 No Content", "Connection: close")},
		{"for HEAD", head, "1.1", crlf("HTTP/1.1 200 OK", "Content-Length: 2"), crlf("HTTP/1.1 200 OK", "Content-Length: 2", "Connection: close")},
		{"a hint first", get, "1.1", crlf("HTTP/1.1 103 Early Hints", "Link: x") + crlf("HTTP/1.1 200 OK", "Content-Length: 2") + "ok", crlf("HTTP/1.1 200 OK", "Content-Length: 2", "Connection: close") + "ok"},
		{"fields of this hop, and the proxy's", get, "1.1", crlf("HTTP/1.1 200 OK", "Content-Length: 2", "Connection: X-B", "X-B: 1", "Keep-Alive: 5", "Proxy-Authenticate: Basic", "Upgrade: h2c", "Vogt-Refused: denied") + "ok", crlf("HTTP/1.1 200 OK", "Content-Length: 2", "Connection: close") + "ok"},
		{"another protocol", get, "1.1", crlf("HTTP/1.1 101 Switching Protocols", "Upgrade: x") + "ok", "response"},
		{"hints without end", get, "1.1", strings.Repeat(crlf("HTTP/1.1 103 Early Hints"), 20) + crlf("HTTP/1.1 200 OK", "Content-Length: 2") + "ok", "response"},
		{"no HTTP", get, "1.1", "SSH-2.0-x\r\n", "response"},
		{"nothing", get, "1.1", "", "response"},
		{"two lengths", get, "1.1", crlf("HTTP/1.1 200 OK", "Content-Length: 2", "Content-Length: 3") + "ok", "response"},
		{"a head without end", get, "1.1", "HTTP/1.1 200 OK\r\n" + strings.Repeat("X: "+strings.Repeat("a", 1000)+"\r\n", 300), "response"},
	} {
		server := newRaw(t, "\r\n\r\n", tt.answer)
		addr, audit := serve(t, Config{
			Policy:  Policy{Rules: []Rule{{Host: "a.test", Ports: []uint16{server.port}, Within: loopback}}},
			Resolve: newNames(map[string]string{"a.test": "127.0.0.1"}).resolve, Own: noOwn,
		})
		answer := say(t, addr, crlf(fmt.Sprintf("%s http://a.test:%d/ HTTP/%s", tt.method, server.port, tt.version), "Host: a.test"))
		if strings.HasPrefix(tt.want, "HTTP") {
			if answer != tt.want {
				t.Errorf("%s: %q, want %q", tt.name, answer, tt.want)
			}
		} else if reason := refusedWith(t, answer); reason != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, reason, tt.want)
		}
		audit.wait(t, 1)
	}
}

// A response that breaks off does not look whole.
func TestBrokenResponse(t *testing.T) {
	for _, answer := range []string{
		crlf("HTTP/1.1 200 OK", "Content-Length: 20") + "ok",
		crlf("HTTP/1.1 200 OK", "Transfer-Encoding: chunked") + "20\r\nok",
	} {
		server := newRaw(t, "\r\n\r\n", answer)
		s := &site{}
		addr, audit := serve(t, Config{
			Policy:  Policy{Rules: []Rule{{Host: "a.test", Ports: []uint16{server.port}, Within: loopback}}},
			Resolve: newNames(map[string]string{"a.test": "127.0.0.1"}).resolve, Own: noOwn,
		})
		if body, err := goClient(t, addr, s, fmt.Sprintf("http://a.test:%d/", server.port)); err == nil {
			t.Errorf("%q looks whole: %q", answer, body)
		}
		if r := audit.last(t); r.Verdict != Cut || r.Reason != BadResponse {
			t.Errorf("recorded is %+v", r)
		}
	}
}

// Test 67: each agent has its own proxy, grants and records.
func TestTwoAgents(t *testing.T) {
	s := newSite(t, "one.test", "two.test")
	dns := newNames(map[string]string{"one.test": "127.0.0.1", "two.test": "127.0.0.1"})
	for _, mine := range []string{"one", "two"} {
		addr, audit := serve(t, Config{
			Identity: Identity{mine, "fetch"},
			Policy:   Policy{Rules: []Rule{{Host: mine + ".test", Ports: []uint16{s.port}, Within: loopback}}},
			Resolve:  dns.resolve, Own: noOwn,
		})
		n := 0
		for _, other := range []string{"one", "two"} {
			body, err := goClient(t, addr, s, fmt.Sprintf("http://%s.test:%d/", other, s.port))
			if (err == nil) != (mine == other) {
				t.Errorf("%s asks for %s: %q, %v", mine, other, body, err)
			}
			n++
			if r := audit.wait(t, n)[n-1]; r.Identity.Agent != mine || r.Host != other+".test" || (r.Verdict == Allowed) != (mine == other) {
				t.Errorf("recorded is %+v", r)
			}
		}
	}
}

// What is sent is taken from a budget, and what does not fit is not sent.
func TestUploadBudget(t *testing.T) {
	const big = 3000
	post := func(host string, port uint16, chunked bool) string {
		fields := []string{fmt.Sprintf("POST http://%s:%d/ HTTP/1.1", host, port), "Host: x"}
		if chunked {
			return crlf(append(fields, "Transfer-Encoding: chunked")...) + fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", big, strings.Repeat("a", big))
		}
		return crlf(append(fields, fmt.Sprintf("Content-Length: %d", big))...) + strings.Repeat("a", big)
	}
	s := newSite(t, "a.test")
	config := func(budget int64) Config {
		return Config{
			Policy: Policy{
				Rules: []Rule{
					{Host: "a.test", Ports: []uint16{s.port}, Within: loopback, Carry: CarryAnything},
					{Host: "own.test", Ports: []uint16{s.port}, Within: loopback, Upload: 4000},
				},
				Limits: Limits{Upload: budget},
			},
			Resolve: newNames(map[string]string{"a.test": "127.0.0.1", "own.test": "127.0.0.1"}).resolve, Own: noOwn,
		}
	}
	for _, chunked := range []bool{false, true} {
		addr, _ := serve(t, config(4000))
		if answer := say(t, addr, post("a.test", s.port, chunked)); !strings.Contains(answer, "hello") {
			t.Fatalf("within the budget: %q", answer)
		}
		if reason := refusedWith(t, say(t, addr, post("a.test", s.port, chunked))); reason != "upload-budget" {
			t.Errorf("the second time: %s", reason)
		}
		if answer := say(t, addr, post("own.test", s.port, chunked)); !strings.Contains(answer, "hello") {
			t.Errorf("with a budget of the rule's own: %q", answer)
		}
		if reason := refusedWith(t, say(t, addr, post("own.test", s.port, chunked))); reason != "upload-budget" {
			t.Errorf("with a budget of the rule's own, the second time: %s", reason)
		}

		addr, audit := serve(t, config(2000))
		if reason := refusedWith(t, say(t, addr, post("a.test", s.port, chunked))); reason != "upload-budget" {
			t.Errorf("beyond the budget: %s", reason)
		}
		if r := audit.last(t); r.Reason != UploadBudget || r.Sent > 2000 || !chunked && (r.Verdict != Refused || r.Sent != 0) {
			t.Errorf("recorded is %+v", r)
		}
	}

	server := newRaw(t, "never", "")
	tunnel := config(2000)
	tunnel.Policy.Rules[0].Ports = []uint16{server.port}
	addr, audit := serve(t, tunnel)
	opening, opened := openTunnel(HTTPConnect, "a.test", server.port)
	conn := dial(t, addr)
	_, _ = io.WriteString(conn, opening+strings.Repeat("a", 1500))
	answer := make([]byte, len(opened))
	if _, err := io.ReadFull(conn, answer); err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(conn, strings.Repeat("b", 1500))
	_, _ = io.ReadAll(conn)
	if r := audit.last(t); r.Verdict != Cut || r.Reason != UploadBudget || r.Sent > 2000 || int64(len(server.received(1))) > 2000 {
		t.Errorf("recorded is %+v", r)
	}
}

func TestRequestBudget(t *testing.T) {
	s := newSite(t, "a.test")
	addr, audit := serve(t, Config{
		Policy:  Policy{Rules: []Rule{{Host: "a.test", Ports: []uint16{s.port}, Within: loopback}}, Limits: Limits{Requests: 2}},
		Resolve: newNames(map[string]string{"a.test": "127.0.0.1"}).resolve, Own: noOwn,
	})
	get := crlf(fmt.Sprintf("GET http://a.test:%d/ HTTP/1.1", s.port), "Host: x")
	if answer := say(t, addr, get); !strings.Contains(answer, "hello") {
		t.Fatal(answer)
	}
	say(t, addr, crlf("GET http://other.test/ HTTP/1.1", "Host: x"))
	if reason := refusedWith(t, say(t, addr, get)); reason != "request-budget" {
		t.Errorf("the third request: %s", reason)
	}
	audit.wait(t, 3)
}

// What cannot be recorded is not done.
func TestNotRecorded(t *testing.T) {
	server := newRaw(t, "", crlf("HTTP/1.1 200 OK", "Content-Length: 0"))
	audit := new(records)
	dns := newNames(map[string]string{"a.test": "127.0.0.1"})
	addr, _ := serve(t, Config{
		Policy:  Policy{Rules: []Rule{{Host: "a.test", Ports: []uint16{server.port}, Within: loopback}}},
		Resolve: dns.resolve, Own: noOwn, Audit: audit,
	})
	get := crlf(fmt.Sprintf("GET http://a.test:%d/ HTTP/1.1", server.port), "Host: x")
	if answer := say(t, addr, get); !strings.Contains(answer, "200 OK") {
		t.Fatal(answer)
	}
	before := server.received(1)
	audit.mu.Lock()
	audit.fail = errors.New("the disk is full")
	audit.mu.Unlock()
	if reason := refusedWith(t, say(t, addr, get)); reason != "not-recorded" || server.received(1) != before || dns.questions() != 1 {
		t.Errorf("%s, resolved %d times, received %q", reason, dns.questions(), server.received(1))
	}
}

// A client that sends a long body before it reads learns why it was refused.
func TestRefusalOfLongBody(t *testing.T) {
	const size = 200_000
	addr, _ := serve(t, Config{Own: noOwn})
	conn := dial(t, addr)
	_ = conn.SetWriteBuffer(4096) // so that the body cannot wait on its way
	if _, err := io.WriteString(conn, crlf("POST http://a.test/ HTTP/1.1", "Host: x", fmt.Sprintf("Content-Length: %d", size))+strings.Repeat("a", size)); err != nil {
		t.Fatal(err)
	}
	answer, _ := io.ReadAll(conn)
	if reason := refusedWith(t, string(answer)); reason != "not-granted" {
		t.Errorf("%s", reason)
	}
}

// A refusal tells what, why and what to do.
func TestRefusal(t *testing.T) {
	addr, _ := serve(t, Config{Own: noOwn})
	answer := say(t, addr, crlf("CONNECT Example.COM:8443 HTTP/1.1"))
	head, body, _ := strings.Cut(answer, "\r\n\r\n")
	var p problem
	if err := json.Unmarshal([]byte(body), &p); err != nil {
		t.Fatal(err)
	}
	want := problem{Type: "about:blank", Title: "Forbidden", Status: 403, Detail: "no rule grants this host and port", Reason: "not-granted", Remedy: askOwner, Host: "example.com", Port: 8443}
	if p != want || !strings.HasPrefix(head, "HTTP/1.1 403 Forbidden\r\n") || !strings.Contains(head, "\r\nVogt-Refused: not-granted\r\n") {
		t.Errorf("%q", answer)
	}
	for text, want := range map[string]string{
		"\x04\x01\x00\x50\x7f\x00\x00\x01\x00": "protocol", // SOCKS4
		"\x16\x03\x01\x00\x05":                 "protocol", // TLS
		"get / HTTP/1.1\r\n\r\n":               "protocol",
	} {
		if reason := refusedWith(t, say(t, addr, text)); reason != want {
			t.Errorf("%q: %s, want %s", text, reason, want)
		}
	}
}
