package fetch

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"vogt/internal/inet"
)

// site is a network in which every address leads to one server, whose certificate
// is for example.com and what lies below it.
type site struct {
	client *Client
	mu     sync.Mutex
	names  map[string][]string // what the name leads to at its first, second, … question
	asked  []string
	dialed []string
	hosts  []string // Host fields that arrived
}

const public = "93.184.216.34"

func newSite(t *testing.T, config Config, handler http.HandlerFunc) *site {
	t.Helper()
	s := &site{names: map[string][]string{"sp.example.com": {public}, "other.example.com": {public}}}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.hosts = append(s.hosts, r.Host)
		s.mu.Unlock()
		handler(w, r)
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	plain := httptest.NewServer(server.Config.Handler)
	t.Cleanup(plain.Close)
	config.Roots = x509.NewCertPool()
	config.Roots.AddCert(server.Certificate())
	config.Resolve = func(_ context.Context, name string) ([]netip.Addr, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		answers, ok := s.names[name]
		if !ok {
			return nil, errors.New("no such host")
		}
		n := 0
		for _, before := range s.asked {
			if before == name {
				n++
			}
		}
		s.asked = append(s.asked, name)
		var addrs []netip.Addr
		for text := range strings.FieldsSeq(answers[min(n, len(answers)-1)]) {
			addrs = append(addrs, netip.MustParseAddr(text))
		}
		return addrs, nil
	}
	config.Dial = func(ctx context.Context, addr netip.AddrPort) (net.Conn, error) {
		s.mu.Lock()
		s.dialed = append(s.dialed, addr.String())
		s.mu.Unlock()
		to := server.Listener.Addr()
		if addr.Port() == 80 || addr.Port() == 8080 {
			to = plain.Listener.Addr()
		}
		var d net.Dialer
		return d.DialContext(ctx, "tcp", to.String())
	}
	if config.Own == nil {
		config.Own = func() ([]netip.Addr, error) { return []netip.Addr{netip.MustParseAddr("203.0.112.9")}, nil }
	}
	var err error
	if s.client, err = New(config); err != nil {
		t.Fatal(err)
	}
	return s
}

func document(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"hello":true}`)
}

func (s *site) get(t *testing.T, address string) (Document, *Error) {
	t.Helper()
	doc, err := s.client.Get(t.Context(), Request{URL: address, Types: []string{"application/json"}})
	if err == nil {
		return doc, nil
	}
	e, ok := errors.AsType[*Error](err)
	if !ok {
		t.Fatalf("%s: %v is no *Error", address, err)
	}
	if doc.Body != nil {
		t.Errorf("%s: an error comes with a document", address)
	}
	return doc, e
}

const got = Kind(255) // no error

func kindOf(e *Error) Kind {
	if e == nil {
		return got
	}
	return e.Kind
}

// What a stranger may name is https, port 443, and a host with a name, written in
// the one way that everybody reads alike.
func TestAddressesThatStrangersName(t *testing.T) {
	s := newSite(t, Config{}, document)
	for address, want := range map[string]Kind{
		"https://sp.example.com/x":      got,
		"HTTPS://SP.Example.Com:443/x":  got,
		"https://sp.example.com":        got,
		"https://sp.example.com?a=b":    got,
		"https://sp.example.com./x":     got,
		"http://sp.example.com/x":       Forbidden,
		"https://sp.example.com:8443/x": Forbidden,
		"https://sp.example.com:80/x":   Forbidden,
		"https://93.184.216.34/x":       Forbidden,
		"https://127.0.0.1/x":           Forbidden,
		"https://[::1]/x":               Forbidden,
		"https://169.254.169.254/":      Forbidden,
		"https://[fd00:ec2::254]/":      Forbidden,
		"http://127.0.0.1:80/x":         Forbidden,
		// An IPv4 address in other clothes.
		"https://127.1/":                 BadAddress,
		"https://2130706433/":            BadAddress,
		"https://0x7f000001/":            BadAddress,
		"https://0x7f.0.0.1/":            BadAddress,
		"https://0177.0.0.1/":            BadAddress,
		"https://017700000001/":          BadAddress,
		"https://127.0.0.01/":            BadAddress,
		"https://[::ffff:127.0.0.1]/":    BadAddress,
		"https://[::ffff:7f00:1]/":       BadAddress,
		"https://[fe80::1%25eth0]/":      BadAddress,
		"https://%31%32%37.0.0.1/":       BadAddress,
		"https://sp%2eexample.com/":      BadAddress,
		"https://１２７.0.0.1/":             BadAddress,
		"https://bücher.example.com/":    BadAddress,
		"https://user@sp.example.com/":   BadAddress,
		"https://a:b@sp.example.com/":    BadAddress,
		"https://@sp.example.com/":       BadAddress,
		"https://sp.example.com@[::1]/":  BadAddress,
		"https://sp.example.com#@evil/":  BadAddress,
		"https://sp.example.com\\@evil/": BadAddress,
		"https://sp.example.com/ x":      BadAddress,
		"https://sp.example.com/\r\nX:":  BadAddress,
		"https://sp.example.com/\x00":    BadAddress,
		"https://sp.example.com:/":       BadAddress,
		"https://sp.example.com:0443/":   BadAddress,
		"https://sp.example.com:443:1/":  BadAddress,
		"https:sp.example.com/":          BadAddress,
		"https:/sp.example.com/":         BadAddress,
		"https:///sp.example.com/":       BadAddress,
		"//sp.example.com/":              BadAddress,
		"sp.example.com":                 BadAddress,
		"file:///etc/passwd":             BadAddress,
		"gopher://sp.example.com/":       BadAddress,
		"unix:///run/docker.sock":        BadAddress,
		"data:application/json,{}":       BadAddress,
		"":                               BadAddress,
		"https://sp.example.com/" + strings.Repeat("a", inet.MaxURL): BadAddress,
		"https://nosuch.example.com/":                                Unresolved,
	} {
		before := len(s.dialed)
		_, e := s.get(t, address)
		if kindOf(e) != want {
			t.Errorf("%q: %v, want %v", address, e, want)
		}
		if want != got && len(s.dialed) != before {
			t.Errorf("%q: dialled %s", address, s.dialed[before:])
		}
	}
}

// A name that leads to a place which is not meant for strangers.
func TestAddressesBehindNames(t *testing.T) {
	for _, tt := range []struct {
		addrs string
		class inet.Class // Public: reached
	}{
		{public, inet.Public},
		{"2606:4700::1111", inet.Public},
		{public + " 1.1.1.1", inet.Public},
		{"127.0.0.1", inet.Loopback},
		{"127.9.9.9", inet.Loopback},
		{"::1", inet.Loopback},
		{"10.0.0.1", inet.Private},
		{"172.16.0.1", inet.Private},
		{"192.168.1.1", inet.Private},
		{"100.64.0.1", inet.Shared},
		{"fd12::1", inet.UniqueLocal},
		{"169.254.1.1", inet.LinkLocal},
		{"fe80::1", inet.LinkLocal},
		{"169.254.169.254", inet.Metadata},
		{"168.63.129.16", inet.Metadata},
		{"fd00:ec2::254", inet.Metadata},
		{"0.0.0.0", inet.Unspecified},
		{"::", inet.Unspecified},
		{"224.0.0.1", inet.Multicast},
		{"255.255.255.255", inet.Reserved},
		{"198.18.0.1", inet.Benchmark},
		{"192.0.2.1", inet.Documentation},
		{"::ffff:127.0.0.1", inet.Mapped},
		{"::ffff:93.184.216.34", inet.Mapped},
		{"64:ff9b::7f00:1", inet.Transition},
		{"2002:7f00:1::", inet.Transition},
		{"::127.0.0.1", inet.Transition},
		{"203.0.112.9", inet.Own},
		{public + " 10.0.0.1", inet.Private},
		{public + " 2606:4700::1111 1.1.1.1 1.0.0.1 8.8.8.8 ::1", inet.Loopback},
	} {
		s := newSite(t, Config{}, document)
		s.names["sp.example.com"] = []string{tt.addrs}
		_, e := s.get(t, "https://sp.example.com/x")
		switch {
		case tt.class == inet.Public && (e != nil || len(s.dialed) != 1):
			t.Errorf("%s: %v, dialled %s", tt.addrs, e, s.dialed)
		case tt.class != inet.Public && (kindOf(e) != Forbidden || e.Class != tt.class || len(s.dialed) != 0):
			t.Errorf("%s: %v, dialled %s; want a %v address to be refused", tt.addrs, e, s.dialed, tt.class)
		}
	}
}

// The name is asked for once, also across redirects; a second answer would change
// nothing.
func TestRebinding(t *testing.T) {
	s := newSite(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/first" {
			http.Redirect(w, r, "/second", http.StatusFound)
			return
		}
		document(w, r)
	})
	s.names["sp.example.com"] = []string{public, "127.0.0.1"}
	doc, e := s.get(t, "https://sp.example.com/first")
	if e != nil || doc.URL != "https://sp.example.com/second" {
		t.Fatalf("%+v, %v", doc, e)
	}
	if len(s.asked) != 1 || !slices.Equal(s.dialed, []string{public + ":443", public + ":443"}) {
		t.Errorf("asked %s, dialled %s", s.asked, s.dialed)
	}
	// The next document is another resolution, which is checked.
	if _, e = s.get(t, "https://sp.example.com/second"); kindOf(e) != Forbidden || len(s.dialed) != 2 {
		t.Errorf("%v, dialled %s", e, s.dialed)
	}
}

func TestNotThisMachineWhenItDoesNotKnowItself(t *testing.T) {
	s := newSite(t, Config{Own: func() ([]netip.Addr, error) { return nil, errors.New("no interfaces") }}, document)
	if _, e := s.get(t, "https://sp.example.com/"); kindOf(e) != Forbidden || len(s.dialed) != 0 {
		t.Errorf("%v, dialled %s", e, s.dialed)
	}
}

func TestRedirects(t *testing.T) {
	for location, want := range map[string]Kind{
		"/end":                           got,
		"end":                            got,
		"//sp.example.com/end":           got,
		"https://sp.example.com/end":     got,
		"https://SP.example.com:443/end": got,
		"https://other.example.com/end":  Redirected,
		"https://sp.example.com.evil.example.com/e": Redirected,
		"http://sp.example.com/end":                 Redirected,
		"https://sp.example.com:8443/end":           Redirected,
		"//other.example.com/end":                   Redirected,
		"https://user@sp.example.com/end":           Redirected,
		"https://127.0.0.1/end":                     Redirected,
		"https://169.254.169.254/latest/meta-data/": Redirected,
		"file:///etc/passwd":                        Redirected,
		"\\\\other.example.com\\end":                Redirected,
		"/end#fragment":                             Redirected,
		"":                                          Redirected,
	} {
		s := newSite(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/end") {
				document(w, r)
				return
			}
			w.Header()["Location"] = []string{location}
			w.WriteHeader(http.StatusTemporaryRedirect)
		})
		_, e := s.get(t, "https://sp.example.com/start")
		if kindOf(e) != want {
			t.Errorf("%q: %v, want %v", location, e, want)
		}
		if want != got && (len(s.dialed) != 1 || len(s.asked) != 1) {
			t.Errorf("%q: asked %s, dialled %s", location, s.asked, s.dialed)
		}
	}
}

func TestRedirectsEnd(t *testing.T) {
	s := newSite(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.Path+"x", http.StatusFound)
	})
	if _, e := s.get(t, "https://sp.example.com/x"); kindOf(e) != Redirected || len(s.dialed) != 4 {
		t.Errorf("%v after %d requests", e, len(s.dialed))
	}
	s = newSite(t, Config{Limits: Limits{Redirects: -1}}, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/y", http.StatusFound)
	})
	if _, e := s.get(t, "https://sp.example.com/x"); kindOf(e) != Redirected || len(s.dialed) != 1 {
		t.Errorf("%v after %d requests", e, len(s.dialed))
	}
}

// Answers that are none, or would never end.
func TestAnswers(t *testing.T) {
	limits := Limits{Body: 1000, Header: 4 << 10}
	for _, tt := range []struct {
		name    string
		want    Kind
		handler http.HandlerFunc
	}{
		{"a document", got, document},
		{"with its character set", got, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "Application/JSON; charset=UTF-8")
			_, _ = io.WriteString(w, "{}")
		}},
		{"as long as it may be", got, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, strings.Repeat(" ", 1000))
		}},
		{"longer", TooLarge, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, strings.Repeat(" ", 1001))
		}},
		{"longer, and it says so", TooLarge, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", "1099511627776")
			w.WriteHeader(http.StatusOK)
		}},
		{"without end", TooLarge, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			for r.Context().Err() == nil {
				if _, err := io.WriteString(w, strings.Repeat(" ", 4096)); err != nil {
					return
				}
			}
		}},
		{"cut off", Unreachable, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "{}")
		}},
		{"huge headers", Unreachable, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Long", strings.Repeat("a", 8<<10))
			document(w, nil)
		}},
		{"many headers", Unreachable, func(w http.ResponseWriter, _ *http.Request) {
			for i := range 2000 {
				w.Header().Set(fmt.Sprintf("X-%d", i), "a")
			}
			document(w, nil)
		}},
		{"a page", WrongType, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, "{}")
		}},
		{"no type", WrongType, func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Type"] = nil
			_, _ = io.WriteString(w, "{}")
		}},
		{"two types", WrongType, func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Type"] = []string{"application/json", "text/html"}
			_, _ = io.WriteString(w, "{}")
		}},
		{"another character set", WrongType, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json; charset=utf-7")
			_, _ = io.WriteString(w, "{}")
		}},
		{"compressed", WrongType, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			document(w, nil)
		}},
		{"an error", Status, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) }},
		{"a part", Status, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusPartialContent) }},
		{"nothing", Status, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }},
		{"nobody", Unreachable, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }},
	} {
		s := newSite(t, Config{Limits: limits}, tt.handler)
		if _, e := s.get(t, "https://sp.example.com/"); kindOf(e) != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, e, tt.want)
		}
	}
}

// A server that sends nothing, half a header, or a byte now and then ends with the
// time that all of it may take.
func TestSlowAnswers(t *testing.T) {
	// Not the request's context: under load the server may notice its end before the
	// client has looked at its clock, and then the answer is whole.
	over := make(chan struct{})
	defer close(over)
	for name, handler := range map[string]http.HandlerFunc{
		"no header": func(http.ResponseWriter, *http.Request) { <-over },
		"no body": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.(http.Flusher).Flush()
			<-over
		},
		"hints without end": func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				w.WriteHeader(http.StatusEarlyHints)
			}
		},
	} {
		s := newSite(t, Config{Limits: Limits{Time: 300 * time.Millisecond}}, handler)
		if _, e := s.get(t, "https://sp.example.com/"); kindOf(e) != TooSlow && kindOf(e) != Unreachable {
			t.Errorf("%s: %v", name, e)
		}
	}
	// Neither TLS nor HTTP ever begins.
	s := newSite(t, Config{Limits: Limits{Time: 300 * time.Millisecond}}, document)
	s.client.config.Dial = func(context.Context, netip.AddrPort) (net.Conn, error) {
		near, far := net.Pipe()
		go func() { _, _ = io.Copy(io.Discard, far) }()
		return near, nil
	}
	if _, e := s.get(t, "https://sp.example.com/"); kindOf(e) != TooSlow {
		t.Errorf("a silent server: %v", e)
	}
	// A resolver that does not answer.
	s.client.config.Resolve = func(ctx context.Context, _ string) ([]netip.Addr, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if _, e := s.get(t, "https://sp.example.com/"); kindOf(e) != TooSlow {
		t.Errorf("a silent resolver: %v", e)
	}
}

// The certificate is for the name that was meant, and nothing else will do.
func TestCertificate(t *testing.T) {
	s := newSite(t, Config{}, document)
	s.names["sp.test"] = []string{public}
	if _, e := s.get(t, "https://sp.test/"); kindOf(e) != Unreachable || len(s.hosts) != 0 {
		t.Errorf("another's certificate: %v, requests for %s", e, s.hosts)
	}
	s.client.config.Roots = x509.NewCertPool()
	if _, e := s.get(t, "https://sp.example.com/"); kindOf(e) != Unreachable || len(s.hosts) != 0 {
		t.Errorf("nobody's certificate: %v, requests for %s", e, s.hosts)
	}
}

// Nothing of this machine goes along, and no variable sends the request elsewhere.
func TestWhatIsSent(t *testing.T) {
	for _, name := range []string{"HTTPS_PROXY", "https_proxy", "ALL_PROXY", "HTTP_PROXY"} {
		t.Setenv(name, "http://127.0.0.1:9")
	}
	var sent []*http.Request
	s := newSite(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
		sent = append(sent, r)
		w.Header().Set("Set-Cookie", "a=b; Path=/")
		if r.URL.Path == "/a" {
			http.Redirect(w, r, "/b", http.StatusFound)
			return
		}
		document(w, r)
	})
	for range 2 {
		if _, e := s.get(t, "https://sp.example.com/a"); e != nil {
			t.Fatal(e)
		}
	}
	for _, r := range sent {
		for name := range r.Header {
			if !slices.Contains([]string{"Accept", "User-Agent", "Connection"}, name) {
				t.Errorf("%s: the field %s is sent: %q", r.URL, name, r.Header[name])
			}
		}
		if r.Method != http.MethodGet || r.Host != "sp.example.com" {
			t.Errorf("%s %s at %s", r.Method, r.URL, r.Host)
		}
	}
	if len(sent) != 4 {
		t.Errorf("%d requests", len(sent))
	}
}

// What whoever runs the program has written down reaches further, and not to where
// credentials are handed out.
func TestOrigins(t *testing.T) {
	config := Config{Origins: []string{
		"https://sp.example.com:8443", "https://inside.example.com", "http://localhost:8080", "http://127.0.0.1:8080", "http://out.example.com", "https://127.0.0.1",
	}}
	for _, tt := range []struct {
		address, addrs string
		want           Kind
	}{
		{"https://sp.example.com:8443/x", public, got},
		{"https://sp.example.com:8444/x", public, Forbidden},
		{"https://inside.example.com/x", "10.0.0.1", got},
		{"https://inside.example.com/x", "127.0.0.1", got},
		{"https://inside.example.com/x", "169.254.169.254", Forbidden},
		{"https://inside.example.com/x", "::ffff:10.0.0.1", Forbidden},
		{"https://inside.example.com/x", "0.0.0.0", Forbidden},
		{"https://inside.example.com:444/x", "10.0.0.1", Forbidden},
		{"http://inside.example.com/x", "10.0.0.1", Forbidden},
		{"https://127.0.0.1/x", "", got},
		{"http://127.0.0.1:8080/x", "", got},
		{"http://localhost:8080/x", "127.0.0.1", got},
		{"http://localhost:8080/x", "10.0.0.1", Forbidden}, // without TLS it stays on this machine
		{"http://localhost:8080/x", public, Forbidden},
		{"http://localhost:8080/x", "203.0.112.9", Forbidden},
		{"https://inside.example.com/x", "203.0.112.9", got},
		{"http://localhost:80/x", "127.0.0.1", Forbidden},
		{"http://out.example.com/x", public, Forbidden},
	} {
		s := newSite(t, config, document)
		s.names["inside.example.com"], s.names["localhost"], s.names["sp.example.com"] = []string{tt.addrs}, []string{tt.addrs}, []string{tt.addrs}
		s.names["out.example.com"] = []string{tt.addrs}
		if _, e := s.get(t, tt.address); kindOf(e) != tt.want {
			t.Errorf("%s at %q: %v, want %v", tt.address, tt.addrs, e, tt.want)
		}
	}
	for _, bad := range []string{"sp.example.com", "https://sp.example.com/path", "https://a@b", "ftp://a", "https://a?b", ""} {
		if _, err := New(Config{Origins: []string{bad}}); err == nil {
			t.Errorf("the origin %q is accepted", bad)
		}
	}
}

// A person's own client also reaches servers of its own network, by https alone.
func TestPrivate(t *testing.T) {
	for addrs, want := range map[string]Kind{
		"10.0.0.1": got, "192.168.1.1": got, "100.64.0.1": got, "fd12::1": got,
		"127.0.0.1": Forbidden, "169.254.169.254": Forbidden, "203.0.112.9": Forbidden, "fe80::1": Forbidden,
	} {
		s := newSite(t, Config{Private: true}, document)
		s.names["sp.example.com"] = []string{addrs}
		if _, e := s.get(t, "https://sp.example.com/"); kindOf(e) != want {
			t.Errorf("%s: %v, want %v", addrs, e, want)
		}
	}
}

// An address that does not answer is not the end while there is another.
func TestSecondAddress(t *testing.T) {
	s := newSite(t, Config{}, document)
	s.names["sp.example.com"] = []string{"1.1.1.1 " + public}
	dial := s.client.config.Dial
	s.client.config.Dial = func(ctx context.Context, addr netip.AddrPort) (net.Conn, error) {
		if addr.Addr().String() == "1.1.1.1" {
			return nil, errors.New("connection refused")
		}
		return dial(ctx, addr)
	}
	if _, e := s.get(t, "https://sp.example.com/"); e != nil {
		t.Error(e)
	}
	// Whoever names a thousand addresses gets a few connections.
	tried := 0
	s.client.config.Dial = func(context.Context, netip.AddrPort) (net.Conn, error) {
		tried++
		return nil, errors.New("connection refused")
	}
	s.names["sp.example.com"] = []string{strings.Repeat(public+" ", 1000)}
	if _, e := s.get(t, "https://sp.example.com/"); kindOf(e) != Unreachable || tried != maxAddresses {
		t.Errorf("%v after %d connections", e, tried)
	}
}
