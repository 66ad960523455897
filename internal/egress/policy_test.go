package egress

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"vogt/internal/inet"
)

func portText(port uint16) string { return strconv.Itoa(int(port)) }

// targetOf reads "host", "host:port" or "http://host:port".
func targetOf(t *testing.T, text string) target {
	t.Helper()
	want := target{scheme: Tunnel}
	rest, plain := strings.CutPrefix(text, "http://")
	if plain {
		want.scheme = PlainHTTP
	}
	var err error
	if want.host, want.port, err = inet.ParseAuthority(rest, want.scheme.defaultPort()); err != nil {
		t.Fatal(err)
	}
	return want
}

func TestJudge(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	const (
		ask  = "ask"
		deny = "deny"
	)
	name := []Rule{{Host: "example.com"}}
	star := []Rule{{Host: "*.corp.example"}}
	for _, tt := range []struct {
		name   string
		rules  []Rule
		target string
		want   string // ask, deny, or the rule's host
	}{
		{"nothing is granted by no rule", nil, "example.com", ask},
		{"a name", name, "example.com", "example.com"},
		{"a name in other letters", []Rule{{Host: "EXAMPLE.com."}}, "example.COM", "example.com"},
		{"plain HTTP has port 80", name, "http://example.com", "example.com"},
		{"a tunnel has not", name, "example.com:80", ask},
		{"plain HTTP has not 443", name, "http://example.com:443", ask},
		{"another port", name, "example.com:8443", ask},
		{"a named port", []Rule{{Host: "example.com", Ports: []uint16{8443}}}, "example.com:8443", "example.com"},
		{"named ports replace the default", []Rule{{Host: "example.com", Ports: []uint16{8443}}}, "example.com", ask},
		{"a name below", name, "www.example.com", ask},
		{"a name that ends alike", name, "evilexample.com", ask},
		{"a name that begins alike", name, "example.com.evil.test", ask},
		{"a star", star, "a.corp.example", "*.corp.example"},
		{"a star stands for several labels", star, "b.a.corp.example", "*.corp.example"},
		{"a star does not stand for nothing", star, "corp.example", ask},
		{"a star ends at a dot", star, "evilcorp.example", ask},
		{"a star ends at a dot, with a hyphen", star, "evil-corp.example", ask},
		{"a star is no address", []Rule{{Host: "*.corp.example"}}, "192.0.2.1", ask},
		{"a star does not grant shared hosts", []Rule{{Host: "*.shared.example"}}, "me.shared.example", ask},
		{"nor from further above", []Rule{{Host: "*.eu.shared.example"}}, "me.eu.shared.example", ask},
		{"nor resolvers", []Rule{{Host: "*.doh.example"}}, "a.doh.example", ask},
		{"shared hosts by name", []Rule{{Host: "me.shared.example"}}, "me.shared.example", "me.shared.example"},
		{"a star does not reach other owners", []Rule{{Host: "*.amazonaws.com"}}, "bucket.s3.amazonaws.com", ask},
		{"but the same owner", []Rule{{Host: "*.amazonaws.com"}}, "console.amazonaws.com", "*.amazonaws.com"},
		{"an address", []Rule{{Host: "192.0.2.1"}}, "192.0.2.1", "192.0.2.1"},
		{"another address", []Rule{{Host: "192.0.2.1"}}, "192.0.2.2", ask},
		{"an address in IPv6", []Rule{{Host: "2001:DB8::1"}}, "[2001:db8:0::1]:443", "2001:db8::1"},
		{"a rule for a name is none for an address", name, "93.184.216.34", ask},
		{"deny wins", []Rule{{Host: "example.com"}, {Host: "example.com", Deny: true}}, "example.com", deny},
		{"deny wins with a star", []Rule{{Host: "a.corp.example"}, {Host: "*.corp.example", Deny: true}}, "a.corp.example", deny},
		{"deny means all ports", []Rule{{Host: "example.com", Deny: true}}, "example.com:22", deny},
		{"deny means named ports", []Rule{{Host: "example.com", Ports: []uint16{22}, Deny: true}}, "example.com", ask},
		{"deny with a star means shared hosts", []Rule{{Host: "me.shared.example"}, {Host: "*.shared.example", Deny: true}}, "me.shared.example", deny},
		{"deny with a star may mean other owners", []Rule{{Host: "a.co.uk"}, {Host: "*.co.uk", Deny: true}}, "a.co.uk", deny},
		{"a rule that ends later", []Rule{{Host: "example.com", Until: now.Add(1)}}, "example.com", "example.com"},
		{"a rule that ends now", []Rule{{Host: "example.com", Until: now}}, "example.com", ask},
		{"a denial that has ended", []Rule{{Host: "example.com", Until: now.Add(-1), Deny: true}}, "example.com", ask},
		{"the first that covers", []Rule{{Host: "other.test"}, {Host: "*.corp.example"}, {Host: "a.corp.example"}}, "a.corp.example", "*.corp.example"},
	} {
		rules, err := Policy{Rules: tt.rules, HostKind: kinds}.compile()
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		g, refused := judge(rules, kinds, targetOf(t, tt.target), now)
		got := ask
		switch {
		case refused != nil && refused.reason == DeniedByRule:
			got = deny
		case refused != nil:
			got = refused.Error()
		case g.granted:
			got = strings.ToLower(strings.TrimSuffix(strings.TrimPrefix(g.basis, "rule "), "."))
		}
		if got != tt.want {
			t.Errorf("%s: %s is %s, want %s", tt.name, tt.target, got, tt.want)
		}
	}
}

func TestZeroGrantPermitsNothing(t *testing.T) {
	if (grant{}).granted || (Answer{}).Decision == Permit {
		t.Error("a forgotten field permits")
	}
	if Verdict(0) != Refused || inet.Class(0).Grantable() {
		t.Error("a zero value does not refuse")
	}
}

func TestRulesThatAreNone(t *testing.T) {
	for _, tt := range []struct {
		rule Rule
		want string // part of the message
	}{
		{Rule{}, "empty"},
		{Rule{Host: "*"}, "byte"},
		{Rule{Host: "*."}, "empty"},
		{Rule{Host: "*.com"}, "owners"},
		{Rule{Host: "*.co.uk"}, "owners"},
		{Rule{Host: "*.github.io"}, "owners"},
		{Rule{Host: "a.*.com"}, "byte"},
		{Rule{Host: "*.*.example.com"}, "byte"},
		{Rule{Host: "*example.com"}, "byte"},
		{Rule{Host: "*.192.0.2.1"}, "address"},
		{Rule{Host: "127.1"}, "decimal"},
		{Rule{Host: "::ffff:127.0.0.1"}, "IPv4"},
		{Rule{Host: "example.com:443"}, "IPv6"},
		{Rule{Host: "https://example.com"}, "colon"},
		{Rule{Host: "example.com", Ports: []uint16{0}}, "port"},
		{Rule{Host: "example.com", Carry: lastCarry}, "carry"},
		{Rule{Host: "example.com", Carry: -1}, "carry"},
		{Rule{Host: "example.com", Carry: CarryAnything}, "ports"},
		{Rule{Host: "example.com", Upload: -1}, "negative"},
		{Rule{Host: "*.corp.example", Within: prefixes("10.0.0.0/8")}, "in full"},
		{Rule{Host: "a.test", Within: prefixes("::ffff:10.0.0.0/104")}, "network"},
	} {
		_, err := New(Config{Audit: new(records), Policy: Policy{Rules: []Rule{{Host: "good.test"}, tt.rule}, HostKind: kinds}})
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "rule 2") {
			t.Errorf("%+v: %v, want an error about %q", tt.rule, err, tt.want)
		}
		if err := tt.rule.Check(); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v by itself: %v, want an error about %q", tt.rule, err, tt.want)
		}
	}
	if err := (Rule{Host: "*.corp.example"}).Check(); err != nil {
		t.Error(err)
	}
	if _, err := New(Config{Audit: new(records), Policy: Policy{Rules: []Rule{{Host: "*.corp.example"}}}}); err == nil {
		t.Error("a star is accepted although nobody knows which hosts are shared")
	}
	if _, err := New(Config{Audit: new(records), Policy: Policy{Limits: Limits{IdleTime: -1}}}); err == nil {
		t.Error("a negative limit is accepted")
	}
	if _, err := New(Config{}); err == nil {
		t.Error("a proxy without an audit is accepted")
	}
}

// Every reason has words, and none has another's.
func TestReasons(t *testing.T) {
	words := make(map[string]bool)
	for r := range lastReason {
		m := r.meaning()
		if m.word == "" || m.text == "" || m.status == 0 || words[m.word] || strings.Trim(m.word, "abcdefghijklmnopqrstuvwxyz-") != "" {
			t.Errorf("reason %d is %+v", r, m)
		}
		if r != NoReason && (m.status < 400 || m.socks == socksDone) {
			t.Errorf("%v is answered as if it were none", r)
		}
		if http.StatusText(m.status) == "" {
			t.Errorf("%v has the status %d", r, m.status)
		}
		if m.remedy == "" && r != NoReason && r != ClientGone && r != ShuttingDown {
			t.Errorf("%v does not say what to do", r)
		}
		words[m.word] = true
	}
}
