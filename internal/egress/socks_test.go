package egress

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"vogt/internal/inet"
)

// socksGreeting offers to do without a password.
const socksGreeting = "\x05\x01\x00"

func socksTo(command byte, kind byte, address string, port uint16) string {
	if kind == socksName {
		address = string([]byte{byte(len(address))}) + address
	}
	return string([]byte{5, command, 0, kind}) + address + string([]byte{byte(port >> 8), byte(port)})
}

func TestReadSOCKS(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		reason     Reason
		want       string
	}{
		{"a name", socksGreeting + socksTo(1, socksName, "A.test.", 443), NoReason, "a.test 443"},
		{"IPv4", socksGreeting + socksTo(1, socksIPv4, "\xc0\x00\x02\x01", 80), NoReason, "192.0.2.1 80"},
		{"IPv4 as a name", socksGreeting + socksTo(1, socksName, "192.0.2.1", 80), NoReason, "192.0.2.1 80"},
		{"IPv6", socksGreeting + socksTo(1, socksIPv6, "\x20\x01\x0d\xb8"+strings.Repeat("\x00", 11)+"\x01", 22), NoReason, "2001:db8::1 22"},
		{"IPv4 in IPv6", socksGreeting + socksTo(1, socksIPv6, strings.Repeat("\x00", 10)+"\xff\xff\x7f\x00\x00\x01", 22), BadHost, ""},
		{"a name with NUL", socksGreeting + socksTo(1, socksName, "evil.test\x00.a.test", 443), BadHost, ""},
		{"an empty name", socksGreeting + socksTo(1, socksName, "", 443), BadHost, ""},
		{"a number", socksGreeting + socksTo(1, socksName, "2130706433", 443), BadHost, ""},
		{"a name with port", socksGreeting + socksTo(1, socksName, "a.test:443", 443), BadHost, ""},
		{"in Unicode", socksGreeting + socksTo(1, socksName, "bücher.test", 443), NoReason, "xn--bcher-kva.test 443"},
		{"port 0", socksGreeting + socksTo(1, socksName, "a.test", 0), BadRequest, ""},
		{"BIND", socksGreeting + socksTo(2, socksName, "a.test", 443), BadCommand, ""},
		{"UDP ASSOCIATE", socksGreeting + socksTo(3, socksIPv4, "\x00\x00\x00\x00", 0), BadCommand, ""},
		{"no command", socksGreeting + socksTo(0, socksName, "a.test", 443), BadCommand, ""},
		{"Tor's RESOLVE", socksGreeting + socksTo(0xf0, socksName, "a.test", 443), BadCommand, ""},
		{"another kind of address", socksGreeting + socksTo(1, 2, "a.test", 443), BadAddressType, ""},
		{"another version later", socksGreeting + "\x04\x01\x00\x01\x7f\x00\x00\x01\x00\x50", BadRequest, ""},
		{"a reserved byte", socksGreeting + "\x05\x01\x01\x01\x7f\x00\x00\x01\x00\x50", BadRequest, ""},
		{"a password only", "\x05\x01\x02", BadAuth, ""},
		{"no method", "\x05\x00", BadAuth, ""},
		{"password or none", "\x05\x02\x02\x00" + socksTo(1, socksName, "a.test", 443), NoReason, "a.test 443"},
		{"half a greeting", "\x05\x03\x00", ClientGone, ""},
		{"half a request", socksGreeting + "\x05\x01\x00\x03\xffa.test", ClientGone, ""},
	} {
		var answer bytes.Buffer
		r := strings.NewReader(tt.text)
		target, refused := readSOCKS(r, &answer, credential{})
		reason, got := NoReason, ""
		if refused != nil {
			reason = refused.reason
		} else {
			got = target.host.String() + " " + portText(target.port)
			if r.Len() != 0 {
				t.Errorf("%s: %d bytes stay unread", tt.name, r.Len())
			}
		}
		if reason != tt.reason || got != tt.want {
			t.Errorf("%s: %q, %v; want %q, %v", tt.name, got, reason, tt.want, tt.reason)
		}
		want := "\x05\x00"
		switch {
		case tt.reason == BadAuth:
			want = "\x05\xff"
		case tt.name == "half a greeting":
			want = ""
		}
		if answer.String() != want {
			t.Errorf("%s: the greeting is answered with %q", tt.name, answer.String())
		}
	}
}

func FuzzSOCKS(f *testing.F) {
	f.Add([]byte(socksGreeting + socksTo(1, socksName, "a.test", 443)))
	f.Add([]byte(socksGreeting + socksTo(1, socksIPv4, "\x7f\x00\x00\x01", 80)))
	f.Add([]byte(socksGreeting + socksTo(3, socksIPv6, strings.Repeat("\x00", 16), 80)))
	f.Add([]byte("\x05\xff"))
	f.Fuzz(func(t *testing.T, text []byte) {
		target, refused := readSOCKS(bytes.NewReader(text), io.Discard, credential{})
		if refused != nil {
			if target.host != (inet.Host{}) {
				t.Errorf("%q is refused and names %q", text, target.host)
			}
			return
		}
		if again, err := inet.ParseHost(target.host.String()); err != nil || again != target.host || target.port == 0 || target.scheme != Tunnel {
			t.Errorf("%q is read as %+v", text, target)
		}
	})
}
