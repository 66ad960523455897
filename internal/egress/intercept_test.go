package egress

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
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

const theSecret = "Bearer s3cret-t0ken"

// inspecting is a proxy that inspects api.site.test, and a server that stands for it.
type inspecting struct {
	addr   string // of the proxy
	audit  *records
	proxy  *Proxy
	trust  *x509.CertPool // that a client of the session has
	mu     sync.Mutex
	seen   []string // requests that reached the server
	secure uint16
}

// newInspecting starts both. Change, if any, changes the proxy's configuration.
func newInspecting(t *testing.T, inspect *Inspect, change func(*Config)) *inspecting {
	t.Helper()
	in := &inspecting{audit: new(records)}
	cert, pool, _ := certificate(t, "api.site.test", "other.site.test")
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		in.mu.Lock()
		in.seen = append(in.seen, fmt.Sprintf("%s %s %s auth=%q %s", r.Method, r.Host, r.RequestURI, r.Header["Authorization"], body))
		in.mu.Unlock()
		if r.URL.Path == "/moved" {
			http.Redirect(w, r, "https://other.site.test/stolen", http.StatusFound)
			return
		}
		w.Header().Set("Vogt-Refused", "not by the proxy")
		fmt.Fprint(w, "hello")
	}))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{cert}}
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // what is cut is meant to be
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	in.secure = portOf(server.Listener)
	config := Config{
		Policy: Policy{HostKind: func(string) string { return "" }, Rules: []Rule{
			{Host: "api.site.test", Within: loopback}, // would be a way past the inspection, as the last one
			{Host: "api.site.test", Within: loopback, Inspect: inspect},
			{Host: "other.site.test", Within: loopback}, {Host: "*.site.test"},
		}},
		Resolve: newNames(map[string]string{"api.site.test": "127.0.0.1", "other.site.test": "127.0.0.1"}).resolve, Own: noOwn, Roots: pool, Audit: in.audit,
		Dial: func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
			return inet.SystemDial(ctx, netip.AddrPortFrom(to.Addr(), in.secure))
		},
	}
	if change != nil {
		change(&config)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if in.proxy, err = New(config); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- in.proxy.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	in.addr, in.trust = l.Addr().String(), x509.NewCertPool()
	in.trust.AppendCertsFromPEM(in.proxy.Authority())
	return in
}

func (in *inspecting) requests() []string {
	in.mu.Lock()
	defer in.mu.Unlock()
	return append([]string(nil), in.seen...)
}

// open opens a tunnel and TLS in it, as a client that trusts the session does.
func (in *inspecting) open(t *testing.T, config *tls.Config) (*tls.Conn, error) {
	t.Helper()
	conn := dial(t, in.addr)
	if _, err := io.WriteString(conn, crlf("CONNECT api.site.test:443 HTTP/1.1")); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, len("HTTP/1.1 200 Connection established\r\n\r\n"))
	if _, err := io.ReadFull(conn, answer); err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 200") {
		t.Fatalf("%q, %v", answer, err)
	}
	if config == nil {
		config = &tls.Config{ServerName: "api.site.test", RootCAs: in.trust}
	}
	inner := tls.Client(conn, config)
	return inner, inner.HandshakeContext(t.Context())
}

// say sends text in TLS and returns the answer.
func (in *inspecting) say(t *testing.T, text string) string {
	t.Helper()
	conn, err := in.open(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(conn, text)
	answer, _ := io.ReadAll(conn)
	return string(answer)
}

func TestInspect(t *testing.T) {
	bearer := []Field{{"Authorization", NewSecret(theSecret)}}
	some := []Permitted{{[]string{"GET", "HEAD"}, "/repos/acme"}, {[]string{"POST"}, "/repos/acme/site/issues"}, {[]string{"GET"}, "/open/"}}
	request := func(line string, fields ...string) string {
		return crlf(append([]string{line + " HTTP/1.1", "Host: api.site.test"}, fields...)...)
	}
	const auth = `auth=["Bearer s3cret-t0ken"] `
	for _, tt := range []struct {
		name, text string
		permitted  []Permitted
		seen       string // by the server; empty if nothing reached it
		reason     Reason
	}{
		{"everything", request("DELETE /x?y=1"), nil, "DELETE api.site.test /x?y=1 " + auth, NoReason},
		{"the client's own is replaced", request("GET /x", "Authorization: Bearer mine", "authorization: Basic eDp5"), nil, "GET api.site.test /x " + auth, NoReason},
		{"and cannot be taken away", request("GET /x", "Connection: authorization, close"), nil, "GET api.site.test /x " + auth, NoReason},
		{"a body", request("POST /x", "Content-Length: 4") + "text", nil, "POST api.site.test /x " + auth + "text", NoReason},
		{"a body in chunks", request("POST /x", "Transfer-Encoding: chunked") + "4;a=b\r\ntext\r\n0\r\nAuthorization: mine\r\n\r\n", nil, "POST api.site.test /x " + auth + "text", NoReason},
		{"a permitted one", request("GET /repos/acme/site?q=../x"), some, "GET api.site.test /repos/acme/site?q=../x " + auth, NoReason},
		{"the prefix itself", request("GET /repos/acme"), some, "GET api.site.test /repos/acme " + auth, NoReason},
		{"a folder", request("GET /open/x"), some, "GET api.site.test /open/x " + auth, NoReason},
		{"a blank in the path", request("GET /repos/acme/a%20b%C3%A9"), some, "GET api.site.test /repos/acme/a%20b%C3%A9 " + auth, NoReason},
		{"another method with its own path", request("POST /repos/acme/site/issues", "Content-Length: 0"), some, "POST api.site.test /repos/acme/site/issues " + auth, NoReason},

		{"another method", request("DELETE /repos/acme/site"), some, "", RequestNotPermitted},
		{"a method in small letters", request("get /repos/acme"), some, "", RequestNotPermitted},
		{"a method on another's path", request("POST /repos/acme/site", "Content-Length: 0"), some, "", RequestNotPermitted},
		{"another path", request("GET /repos/acme-other"), some, "", RequestNotPermitted},
		{"a path above", request("GET /repos"), some, "", RequestNotPermitted},
		{"a folder without its slash", request("GET /open"), some, "", RequestNotPermitted},
		{"a way up", request("GET /repos/acme/../other"), some, "", RequestNotPermitted},
		{"a way up, escaped", request("GET /repos/acme/%2e%2E/other"), some, "", RequestNotPermitted},
		{"a slash, escaped", request("GET /repos/acme/..%2fother"), some, "", RequestNotPermitted},
		{"escaped twice", request("GET /repos/acme/%252e%252e/other"), some, "", RequestNotPermitted},
		{"a backslash", request(`GET /repos/acme/..\other`), some, "", RequestNotPermitted},
		{"parameters", request("GET /repos/acme/..;/other"), some, "", RequestNotPermitted},
		{"two slashes", request("GET /repos/acme//../other"), some, "", RequestNotPermitted},
		{"half an escape", request("GET /repos/acme/%2"), some, "", RequestNotPermitted},
		{"another method in a field", request("POST /repos/acme/site/issues", "X-HTTP-Method-Override: DELETE", "Content-Length: 0"), some, "", RequestNotPermitted},
		{"a request to repeat it", request("TRACE /x"), nil, "", RequestNotPermitted},
		{"the same in other words", request("TRACK /x"), nil, "", RequestNotPermitted},

		{"another host", crlf("GET /x HTTP/1.1", "Host: other.site.test"), nil, "", BadRequest},
		{"another port", crlf("GET /x HTTP/1.1", "Host: api.site.test:444"), nil, "", BadRequest},
		{"no host", crlf("GET /x HTTP/1.1"), nil, "", BadRequest},
		{"a whole address", request("GET https://other.site.test/x"), nil, "", BadRequest},
		{"CONNECT", request("CONNECT other.site.test:443"), nil, "", BadRequest},
		{"the server as a whole", request("OPTIONS *"), nil, "", BadRequest},
		{"two lengths", request("POST /x", "Content-Length: 4", "Content-Length: 5") + "text", nil, "", BadRequest},
		{"length and chunks", request("POST /x", "Content-Length: 4", "Transfer-Encoding: chunked") + "0\r\n\r\n", nil, "", BadRequest},
		{"a coding that hides chunks", request("POST /x", "Transfer-Encoding: xchunked"), nil, "", BadRequest},
		{"a blank before the colon", request("POST /x", "Content-Length : 4"), nil, "", BadRequest},
		{"a folded line", request("GET /x", "A: b\r\n c"), nil, "", BadRequest},
		{"bare line feeds", "GET /x HTTP/1.1\nHost: api.site.test\n\n", nil, "", BadRequest},
		{"a second request", request("GET /open/x") + request("DELETE /x"), some, "", BadRequest},
		{"HTTP/2 from the start", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", nil, "", BadProtocol},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := newInspecting(t, &Inspect{Requests: tt.permitted, Set: bearer}, nil)
			answer := in.say(t, tt.text)
			r := in.audit.last(t)
			got := strings.Join(in.requests(), "|")
			if got != tt.seen || r.Reason != tt.reason {
				t.Errorf("the server saw %q, recorded is %v (%s); want %q, %v", got, r.Reason, r.Detail, tt.seen, tt.reason)
			}
			if tt.reason == NoReason {
				if !strings.Contains(answer, "hello") || strings.Contains(answer, "Vogt-Refused") || r.Verdict != Allowed || r.SNI != "api.site.test" || r.Sent == 0 || len(in.audit.begun) != 1 {
					t.Errorf("%q, recorded is %+v", answer, r)
				}
			} else if word := refusedWith(t, answer); word != tt.reason.String() || r.Sent != 0 || len(in.audit.begun) != 0 {
				t.Errorf("%q, recorded is %+v", answer, r)
			}
			// The secret is where it belongs and nowhere else.
			record, err := json.Marshal(r)
			if err != nil || strings.Contains(answer+string(record)+fmt.Sprintf("%+v %#v", r, in.proxy.config.Policy), "s3cret") {
				t.Errorf("the secret stands in %q, %s, %v", answer, record, err)
			}
		})
	}
}

// A host that is inspected is reached in no other way: no other rule, person, port or
// protocol leads past.
func TestNoWayPastInspection(t *testing.T) {
	permit := func(c *Config) {
		c.Ask = func(context.Context, Question) Answer { return Answer{Decision: Permit, Within: loopback} }
		c.Policy.Rules = append(c.Policy.Rules, Rule{Host: "api.site.test", Ports: []uint16{80, 443, 8443}, Within: loopback, Carry: CarryAnything})
	}
	for _, tt := range []struct {
		name, text string
		reason     Reason
	}{
		{"plain HTTP", crlf("GET http://api.site.test/ HTTP/1.1", "Host: api.site.test"), NotInspected},
		{"plain HTTP at the port of TLS", crlf("GET http://api.site.test:443/ HTTP/1.1", "Host: api.site.test"), NotInspected},
		{"another port", crlf("CONNECT api.site.test:8443 HTTP/1.1"), NotInspected},
		{"the port of plain HTTP", crlf("CONNECT api.site.test:80 HTTP/1.1"), NotInspected},
		{"bytes that are no TLS", crlf("CONNECT api.site.test:443 HTTP/1.1") + "GET / HTTP/1.1\r\n\r\n", NoTLS},
		{"another name", crlf("CONNECT api.site.test:443 HTTP/1.1") + string(makeHello(sni("other.site.test"))), OtherServerName},
		{"no name", crlf("CONNECT api.site.test:443 HTTP/1.1") + string(makeHello()), NoServerName},
	} {
		in := newInspecting(t, &Inspect{Set: []Field{{"Authorization", NewSecret(theSecret)}}}, permit)
		say(t, in.addr, tt.text)
		if r := in.audit.last(t); r.Reason != tt.reason || len(in.requests()) > 0 || len(in.audit.begun) > 0 {
			t.Errorf("%s: recorded is %+v, the server saw %q", tt.name, r, in.requests())
		}
	}
}

// Whom the client trusts, and whom the proxy trusts.
func TestInspectTrusts(t *testing.T) {
	set := &Inspect{Set: []Field{{"Authorization", NewSecret(theSecret)}}}
	t.Run("a client that does not know the session", func(t *testing.T) {
		in := newInspecting(t, set, nil)
		if _, err := in.open(t, &tls.Config{ServerName: "api.site.test", RootCAs: x509.NewCertPool()}); err == nil {
			t.Error("it trusts anybody")
		}
		if r := in.audit.last(t); r.Reason != NotTrusted && r.Reason != ClientGone || len(in.requests()) > 0 {
			t.Errorf("recorded is %+v", r)
		}
	})
	t.Run("a client with HTTP/2 only", func(t *testing.T) {
		in := newInspecting(t, set, nil)
		if _, err := in.open(t, &tls.Config{ServerName: "api.site.test", RootCAs: in.trust, NextProtos: []string{"h2"}}); err == nil || !strings.Contains(err.Error(), "no application protocol") {
			t.Errorf("%v", err)
		}
		if r := in.audit.last(t); r.Reason != NotTrusted {
			t.Errorf("recorded is %+v", r)
		}
	})
	t.Run("a client with both", func(t *testing.T) {
		in := newInspecting(t, set, nil)
		conn, err := in.open(t, &tls.Config{ServerName: "api.site.test", RootCAs: in.trust, NextProtos: []string{"h2", "http/1.1"}})
		if err != nil || conn.ConnectionState().NegotiatedProtocol != "http/1.1" {
			t.Errorf("%v", err)
		}
	})
	for name, roots := range map[string]*x509.CertPool{"a host that nobody knows": x509.NewCertPool(), "a host with another's certificate": nil} {
		t.Run(name, func(t *testing.T) {
			in := newInspecting(t, set, func(c *Config) {
				if c.Roots = roots; roots == nil {
					cert, pool, _ := certificate(t, "wrong.test")
					c.Roots = pool
					l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{cert}})
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
							_, _ = io.Copy(io.Discard, conn)
							conn.Close()
						}
					}()
					c.Dial = func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
						return inet.SystemDial(ctx, netip.AddrPortFrom(to.Addr(), portOf(l)))
					}
				}
			})
			answer := in.say(t, crlf("GET / HTTP/1.1", "Host: api.site.test"))
			if word := refusedWith(t, answer); word != "certificate" || len(in.requests()) > 0 || in.audit.last(t).Sent != 0 {
				t.Errorf("%q, recorded is %+v", answer, in.audit.last(t))
			}
		})
	}
}

// The session's certificate stands for the inspected hosts only, and not for long.
func TestAuthority(t *testing.T) {
	now := time.Now()
	a, err := newAuthority([]string{"api.site.test"}, func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.leaf("other.site.test"); err == nil {
		t.Error("it makes certificates for others")
	}
	good, err := a.leaf("api.site.test")
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(a.certificate)
	verify := func(c *x509.Certificate, name string, at time.Time) error {
		_, err := c.Verify(x509.VerifyOptions{Roots: pool, DNSName: name, CurrentTime: at})
		return err
	}
	if err := verify(good.Leaf, "api.site.test", now); err != nil {
		t.Error(err)
	}
	if err := verify(good.Leaf, "api.site.test", now.Add(2*leafTime)); err == nil {
		t.Error("a certificate holds for too long")
	}
	if again, _ := a.leaf("api.site.test"); again != good {
		t.Error("it is made anew each time")
	}
	now = now.Add(leafTime)
	if again, _ := a.leaf("api.site.test"); again == good {
		t.Error("it is not made anew when it ends")
	}
	// Even with its key no certificate for another name or an address would hold.
	a.hosts = []string{"api.site.test", "other.site.test", "127.0.0.1"}
	for _, name := range a.hosts[1:] {
		leaf, err := a.leaf(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := verify(leaf.Leaf, "", now); err == nil {
			t.Errorf("a certificate for %s holds", name)
		}
	}
	if ips := a.certificate.ExcludedIPRanges; len(ips) != 2 || !a.certificate.PermittedDNSDomainsCritical || !a.certificate.MaxPathLenZero {
		t.Errorf("%+v", a.certificate)
	}
	if text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.certificate.Raw}); bytes.Contains(text, []byte("PRIVATE")) {
		t.Error("the key is in it")
	}
}

// A redirect is an answer like any other: the secret does not go with it.
func TestInspectRedirect(t *testing.T) {
	in := newInspecting(t, &Inspect{Set: []Field{{"Authorization", NewSecret(theSecret)}}}, nil)
	client := http.Client{Transport: &http.Transport{
		Proxy:           http.ProxyURL(&url.URL{Scheme: "http", Host: in.addr}),
		TLSClientConfig: &tls.Config{RootCAs: in.trust, InsecureSkipVerify: true}, // other.site.test shows its own certificate
	}}
	response, err := client.Get("https://api.site.test/moved")
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if got := strings.Join(in.requests(), "|"); got != `GET api.site.test /moved auth=["Bearer s3cret-t0ken"] |GET other.site.test /stolen auth=[] ` {
		t.Errorf("the servers saw %s", got)
	}
}

func TestInspectBudgets(t *testing.T) {
	in := newInspecting(t, &Inspect{}, func(c *Config) { c.Policy.Limits.Upload = 1000 })
	for _, tt := range []struct {
		text   string
		reason string
	}{
		{crlf("POST /x HTTP/1.1", "Host: api.site.test", "Content-Length: 2000") + strings.Repeat("x", 2000), "upload-budget"},
		{crlf("POST /x HTTP/1.1", "Host: api.site.test", "Transfer-Encoding: chunked") + "7d0\r\n" + strings.Repeat("x", 2000) + "\r\n0\r\n\r\n", "upload-budget"},
	} {
		if word := refusedWith(t, in.say(t, tt.text)); word != tt.reason {
			t.Errorf("%s, want %s", word, tt.reason)
		}
		// A length that is known beforehand is refused before anything is made.
		if r := in.audit.last(t); strings.Contains(tt.text, "Content-Length") && (len(in.audit.begun) > 0 || r.Address.IsValid()) {
			t.Errorf("recorded is %+v", r)
		}
	}
	if got := strings.Join(in.requests(), "|"); strings.Contains(got, "xx") {
		t.Errorf("the server saw %d bytes", len(got))
	}
}

// curl and git's library go by the proxy with no more than the variables.
func TestInspectWithCurl(t *testing.T) {
	exe, err := exec.LookPath("curl")
	if err != nil {
		t.Skip("curl is not installed (Debian: apt-get install curl)")
	}
	in := newInspecting(t, &Inspect{Requests: []Permitted{{[]string{"GET"}, "/a"}}, Set: []Field{{"Authorization", NewSecret(theSecret)}}}, nil)
	file := filepath.Join(t.TempDir(), "authorities.pem")
	if err := os.WriteFile(file, in.proxy.Authority(), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{"/a/b": "hello 200", "/b": `"reason":"request-not-permitted"`} {
		cmd := exec.Command(exe, "--disable", "-sS", "--max-time", "30", "-w", " %{http_code}", "https://api.site.test"+path)
		cmd.Env = append(Variables(in.addr, ""), TrustVariables(file)...)
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%s: %q, %v", path, out, err)
		}
	}
}

func TestInspectRules(t *testing.T) {
	secret := NewSecret("x")
	for _, tt := range []struct {
		name  string
		rules []Rule
		want  string
	}{
		{"good", []Rule{{Host: "a.test", Inspect: &Inspect{Requests: []Permitted{{[]string{"GET"}, "/"}}, Set: []Field{{"X-Key", secret}}}}}, ""},
		{"a star", []Rule{{Host: "*.a.test", Inspect: &Inspect{}}}, "named in full"},
		{"an address", []Rule{{Host: "192.0.2.1", Inspect: &Inspect{}}}, "named in full"},
		{"a denial", []Rule{{Host: "a.test", Deny: true, Inspect: &Inspect{}}}, "not denied"},
		{"anything", []Rule{{Host: "a.test", Ports: []uint16{1}, Carry: CarryAnything, Inspect: &Inspect{}}}, "in TLS only"},
		{"SSH", []Rule{{Host: "a.test", Ports: []uint16{443, 22}, Inspect: &Inspect{}}}, "port 22"},
		{"twice", []Rule{{Host: "a.test", Inspect: &Inspect{}}, {Host: "A.test.", Ports: []uint16{8443}, Inspect: &Inspect{}}}, "already"},
		{"no method", []Rule{{Host: "a.test", Inspect: &Inspect{Requests: []Permitted{{nil, "/"}}}}}, "words in capitals"},
		{"a small method", []Rule{{Host: "a.test", Inspect: &Inspect{Requests: []Permitted{{[]string{"get"}, "/"}}}}}, "words in capitals"},
		{"TRACE", []Rule{{Host: "a.test", Inspect: &Inspect{Requests: []Permitted{{[]string{"TRACE"}, "/"}}}}}, "words in capitals"},
		{"no path", []Rule{{Host: "a.test", Inspect: &Inspect{Requests: []Permitted{{[]string{"GET"}, ""}}}}}, "no usual form"},
		{"a path with a query", []Rule{{Host: "a.test", Inspect: &Inspect{Requests: []Permitted{{[]string{"GET"}, "/a?b"}}}}}, "no usual form"},
		{"a path that leads up", []Rule{{Host: "a.test", Inspect: &Inspect{Requests: []Permitted{{[]string{"GET"}, "/a/../b"}}}}}, "no usual form"},
		{"the field Host", []Rule{{Host: "a.test", Inspect: &Inspect{Set: []Field{{"Host", secret}}}}}, "cannot be set"},
		{"a field of this hop", []Rule{{Host: "a.test", Inspect: &Inspect{Set: []Field{{"Transfer-Encoding", secret}}}}}, "cannot be set"},
		{"a field with a line", []Rule{{Host: "a.test", Inspect: &Inspect{Set: []Field{{"X-Key", NewSecret("s3cret\r\nX: y")}}}}}, "no field may have"},
		{"an empty secret", []Rule{{Host: "a.test", Inspect: &Inspect{Set: []Field{{"X-Key", NewSecret("")}}}}}, "is empty"},
	} {
		_, err := New(Config{Policy: Policy{Rules: tt.rules, HostKind: func(string) string { return "" }}, Audit: new(records)})
		if (err == nil) != (tt.want == "") || err != nil && (!strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "s3cret")) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}

// A policy that begins to inspect a host cuts what was not inspected, and cannot
// inspect what the session's certificate does not stand for.
func TestReplaceInspects(t *testing.T) {
	in := newInspecting(t, &Inspect{}, nil)
	err := in.proxy.Replace(Policy{Rules: []Rule{{Host: "other.site.test", Inspect: &Inspect{}}}})
	if err == nil || !strings.Contains(err.Error(), "from the beginning of a session") {
		t.Errorf("%v", err)
	}
	plain := Policy{Rules: []Rule{{Host: "api.site.test", Within: loopback}}}
	if err := in.proxy.Replace(plain); err != nil {
		t.Fatal(err)
	}
	conn, err := in.open(t, &tls.Config{ServerName: "api.site.test", InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := in.proxy.Replace(Policy{Rules: []Rule{{Host: "api.site.test", Within: loopback, Inspect: &Inspect{}}}}); err != nil {
		t.Fatal(err)
	}
	_, _ = io.ReadAll(conn) // ends when the connection is cut
	if r := in.audit.last(t); r.Reason != GrantEnded || r.Verdict != Cut {
		t.Errorf("recorded is %+v", r)
	}
}

// A secret is printed by no verb, and in no encoding.
func TestSecretIsNotPrinted(t *testing.T) {
	f := Field{"Authorization", NewSecret("s3cret")}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d", "%t"} {
		if got := fmt.Sprintf(verb+" "+verb+" "+verb, f, &f, f.Value); strings.Contains(got, "s3cret") || strings.Contains(got, fmt.Sprintf("%x", "s3cret")) {
			t.Errorf("%s: %s", verb, got)
		}
	}
	if data, err := json.Marshal(f); err != nil || strings.Contains(string(data), "s3cret") || f.Value.String() == "s3cret" {
		t.Errorf("%s, %v", data, err)
	}
}

func TestPlainPath(t *testing.T) {
	for path, want := range map[string]bool{
		"/": true, "/a": true, "/a/": true, "/a/b%20c": true, "/a%C3%BC": true, "/@scope/x": true, "/a%40b": true, "/a...b": true,
		"/a//b": false, "//a": false, "/.": false, "/a/..": false, "/../a": false, "/a%2fb": false, "/a%2Fb": false, "/%61": false, "/a%": false, "/a%zz": false,
		"/a%00": false, "/a%0a": false, "/a%5cb": false, `/a\b`: false, "/a;b": false, "/a%3bb": false, "/a%25b": false, "/a%3fb": false, "/%2e": false,
	} {
		if got := plainPath(path); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
}
