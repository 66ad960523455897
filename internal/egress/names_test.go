package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// askingFor is a question in the form of the DNS.
func askingFor(t testing.TB, name string, kind dnsmessage.Type) []byte {
	t.Helper()
	n, err := dnsmessage.NewName(name)
	if err != nil {
		t.Fatal(err)
	}
	m := dnsmessage.Message{Header: dnsmessage.Header{ID: 7, RecursionDesired: true}, Questions: []dnsmessage.Question{{Name: n, Type: kind, Class: dnsmessage.ClassINET}}}
	data, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// answered says what an answer holds.
func answered(t testing.TB, data []byte) string {
	t.Helper()
	if data == nil {
		return "nothing"
	}
	var m dnsmessage.Message
	if err := m.Unpack(data); err != nil || !m.Response || m.ID != 7 || len(m.Authorities) > 0 || len(m.Additionals) > 0 {
		t.Fatalf("%+v, %v", m, err)
	}
	text := strings.TrimPrefix(m.RCode.String(), "RCode")
	for _, a := range m.Answers {
		text += " " + netip.AddrFrom4(a.Body.(*dnsmessage.AResource).A).String()
	}
	return text
}

func newNamesProxy(t testing.TB, policy Policy, ask bool) (*Proxy, *records, *names) {
	t.Helper()
	audit, dns := new(records), newNames(map[string]string{"granted.test": "192.0.2.1"})
	config := Config{Policy: policy, Audit: audit, Resolve: dns.resolve, Own: noOwn}
	if ask {
		config.Ask = func(context.Context, Question) Answer { return Answer{} }
	}
	p, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	return p, audit, dns
}

func TestAnswerName(t *testing.T) {
	kinds := func(host string) string {
		if strings.HasSuffix(host, ".shared.test") {
			return "multi-tenant"
		}
		return ""
	}
	policy := Policy{HostKind: kinds, Rules: []Rule{
		{Host: "granted.test"}, {Host: "*.wild.test"}, {Host: "*.shared.test"}, {Host: "no.wild.test", Deny: true}, {Host: "port.wild.test", Deny: true, Ports: []uint16{25}},
		{Host: "ended.test", Until: time.Unix(1, 0)}, {Host: "192.0.2.7"},
	}}
	for _, tt := range []struct {
		name string
		kind dnsmessage.Type
		want string
		ask  string // the answer if people can be asked, where it differs
	}{
		{"granted.test.", dnsmessage.TypeA, "Success 198.18.0.2", ""},
		{"GRANTED.tesT.", dnsmessage.TypeA, "Success 198.18.0.2", ""},
		{"granted.test.", dnsmessage.TypeAAAA, "Success", ""},
		{"granted.test.", 65, "Success", ""}, // HTTPS, which would bring HTTP/3 and ECH
		{"granted.test.", dnsmessage.TypeTXT, "Success", ""},
		{"granted.test.", dnsmessage.TypeALL, "Success", ""},
		{"x.granted.test.", dnsmessage.TypeA, "NameError", "Success 198.18.0.2"},
		{"grantedXtest.", dnsmessage.TypeA, "NameError", "NameError"},
		{"a.wild.test.", dnsmessage.TypeA, "Success 198.18.0.2", ""},
		{"a.b.wild.test.", dnsmessage.TypeA, "Success 198.18.0.2", ""},
		{"wild.test.", dnsmessage.TypeA, "NameError", "Success 198.18.0.2"},
		{"no.wild.test.", dnsmessage.TypeA, "NameError", "NameError"},
		{"port.wild.test.", dnsmessage.TypeA, "Success 198.18.0.2", ""},
		{"a.shared.test.", dnsmessage.TypeA, "NameError", "Success 198.18.0.2"}, // many share it
		{"ended.test.", dnsmessage.TypeA, "NameError", "Success 198.18.0.2"},
		{"localhost.", dnsmessage.TypeA, "Success 127.0.0.1", ""},
		{"vogt.localhost.", dnsmessage.TypeA, "Success 127.0.0.1", ""},
		{"printer.local.", dnsmessage.TypeA, "NameError", "NameError"}, // no answer could open it
		{"router.", dnsmessage.TypeA, "NameError", "NameError"},
		{"192.0.2.7.", dnsmessage.TypeA, "NameError", "NameError"},
		{"2.0.18.198.in-addr.arpa.", dnsmessage.TypePTR, "NameError", "Success"},
		{"_dns.resolver.arpa.", dnsmessage.TypeA, "NameError", "NameError"},
		{"a b.granted.test.", dnsmessage.TypeA, "NameError", "NameError"},
		{".", dnsmessage.TypeA, "NameError", "NameError"},
	} {
		for _, ask := range []bool{false, true} {
			p, audit, dns := newNamesProxy(t, policy, ask)
			want := tt.want
			if ask && tt.ask != "" {
				want = tt.ask
			}
			data := askingFor(t, tt.name, tt.kind)
			if got := answered(t, p.answerName(data)); got != want {
				t.Errorf("%s %v, asking %v: %s, want %s", tt.name, tt.kind, ask, got, want)
			}
			if refused := strings.HasPrefix(want, "NameError"); refused != (len(audit.ended) == 1) || refused && (audit.ended[0].Verdict != Refused || audit.ended[0].Protocol != Name) {
				t.Errorf("%s: recorded is %+v", tt.name, audit.ended)
			}
			if dns.questions() > 0 {
				t.Errorf("%s was resolved", tt.name)
			}
		}
	}
}

// The letters of a question come back as they were.
func TestAnswerRepeatsTheQuestion(t *testing.T) {
	p, _, _ := newNamesProxy(t, Policy{Rules: []Rule{{Host: "granted.test"}}}, false)
	var m dnsmessage.Message
	if err := m.Unpack(p.answerName(askingFor(t, "gRaNtEd.TeSt.", dnsmessage.TypeA))); err != nil || m.Questions[0].Name.String() != "gRaNtEd.TeSt." || m.Answers[0].Header.Name.String() != "gRaNtEd.TeSt." {
		t.Errorf("%+v, %v", m, err)
	}
}

func TestAnswerNameOddly(t *testing.T) {
	p, _, _ := newNamesProxy(t, Policy{Rules: []Rule{{Host: "granted.test"}}}, false)
	good := askingFor(t, "granted.test.", dnsmessage.TypeA)
	with := func(change func([]byte)) []byte {
		b := append([]byte(nil), good...)
		change(b)
		return b
	}
	for _, tt := range []struct {
		name, want string
		data       []byte
	}{
		{"nothing", "nothing", nil},
		{"half a head", "nothing", good[:7]},
		{"an answer", "nothing", with(func(b []byte) { b[2] |= 0x80 })},
		{"half a question", "FormatError", good[:20]},
		{"no question", "FormatError", with(func(b []byte) { b[5] = 0 })[:12]},
		{"two questions", "FormatError", with(func(b []byte) { b[5] = 2 })},
		{"a notification", "NotImplemented", with(func(b []byte) { b[2] |= 4 << 3 })},
		{"another class", "Refused", with(func(b []byte) { b[len(b)-1] = 3 })},
		{"an answer in the question", "Success 198.18.0.2", append(with(func(b []byte) { b[11] = 1 }), 0, 0, 41, 4, 0, 0, 0, 0, 0, 0, 0)}, // EDNS
	} {
		if got := answered(t, p.answerName(tt.data)); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

// Names are bounded, and no address is given to another name.
func TestNamesAreBounded(t *testing.T) {
	p, audit, _ := newNamesProxy(t, Policy{HostKind: func(string) string { return "" }, Rules: []Rule{{Host: "*.wild.test"}}}, false)
	seen := make(map[string]bool)
	for i := range maxNames {
		got := answered(t, p.answerName(askingFor(t, fmt.Sprintf("n%d.wild.test.", i), dnsmessage.TypeA)))
		addr, err := netip.ParseAddr(strings.TrimPrefix(got, "Success "))
		if err != nil || !synthetic.Contains(addr) || seen[got] {
			t.Fatalf("%d: %s", i, got)
		}
		seen[got] = true
	}
	if got := answered(t, p.answerName(askingFor(t, "more.wild.test.", dnsmessage.TypeA))); got != "ServerFailure" {
		t.Errorf("past the bound: %s", got)
	}
	if got := answered(t, p.answerName(askingFor(t, "n0.wild.test.", dnsmessage.TypeA))); got != "Success 198.18.0.2" {
		t.Errorf("an earlier one: %s", got)
	}
	if len(audit.ended) != 1 || audit.ended[0].Reason != TooManyNames {
		t.Errorf("recorded is %+v", audit.ended)
	}
}

func TestServeNames(t *testing.T) {
	p, _, _ := newNamesProxy(t, Policy{Rules: []Rule{{Host: "granted.test"}}}, false)
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- p.ServeNames(ctx, conn) }()
	// The resolver of Go finds the name, and one that is not granted is none.
	resolver := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
	if addrs, err := resolver.LookupHost(t.Context(), "granted.test."); err != nil || len(addrs) != 1 || addrs[0] != "198.18.0.2" {
		t.Errorf("%q, %v", addrs, err)
	}
	_, err = resolver.LookupHost(t.Context(), "other.test.")
	if missing, ok := errors.AsType[*net.DNSError](err); !ok || !missing.IsNotFound {
		t.Errorf("%v", err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func FuzzAnswerName(f *testing.F) {
	f.Add(askingFor(f, "granted.test.", dnsmessage.TypeA))
	f.Add(askingFor(f, "a.wild.test.", dnsmessage.TypeAAAA))
	p, _, dns := newNamesProxy(f, Policy{HostKind: func(string) string { return "" }, Rules: []Rule{{Host: "granted.test"}, {Host: "*.wild.test"}}}, false)
	f.Fuzz(func(t *testing.T, data []byte) {
		answer := p.answerName(data)
		if len(answer) > len(data)+28 {
			t.Errorf("%d bytes answer %d", len(answer), len(data))
		}
		if dns.questions() > 0 {
			t.Error("a name was resolved")
		}
	})
}
