package egress

import (
	"net/netip"
	"strings"
	"testing"
	"unicode/utf8"

	"vogt/internal/inet"
)

// A rule's networks are the only ones that a host may lie in, and there are
// classes that no rule opens.
func TestCheckAddress(t *testing.T) {
	around := surroundings{own: []netip.Addr{netip.MustParseAddr("93.184.216.34")}, hostKind: kinds}
	for _, tt := range []struct {
		host, addr, within string
		class              inet.Class
		ok                 bool
	}{
		{"a.test", "1.2.3.4", "", inet.Public, true},
		{"a.test", "1.2.3.4", "1.2.3.0/24", inet.Public, true},
		{"a.test", "1.2.3.4", "10.0.0.0/8", inet.Public, false},
		{"a.test", "10.1.2.3", "", inet.Private, false},
		{"a.test", "10.1.2.3", "10.1.0.0/16", inet.Private, true},
		{"a.test", "10.1.2.3", "192.168.0.0/16 10.1.0.0/16", inet.Private, true},
		{"a.test", "10.1.2.3", "10.2.0.0/16", inet.Private, false},
		{"a.test", "127.0.0.1", "", inet.Loopback, false},
		{"a.test", "127.0.0.1", "127.0.0.0/8", inet.Loopback, true},
		{"a.test", "::1", "::1/128", inet.Loopback, true},
		{"a.test", "fd12::1", "fd12::/16", inet.UniqueLocal, true},
		{"a.test", "93.184.216.34", "", inet.Own, false},
		{"a.test", "93.184.216.34", "93.184.216.34/32", inet.Own, true},
		{"a.test", "169.254.169.254", "0.0.0.0/0", inet.Metadata, false},
		{"a.test", "169.254.169.254", "169.254.169.254/32", inet.Metadata, false},
		{"a.test", "100.100.100.200", "100.64.0.0/10", inet.Metadata, false},
		{"a.test", "169.254.1.1", "169.254.0.0/16", inet.LinkLocal, false},
		{"a.test", "0.0.0.0", "0.0.0.0/0", inet.Unspecified, false},
		{"a.test", "224.0.0.1", "0.0.0.0/0", inet.Multicast, false},
		{"a.test", "255.255.255.255", "0.0.0.0/0", inet.Reserved, false},
		{"a.test", "64:ff9b::a00:1", "::/0", inet.Transition, false},
		{"a.test", "::ffff:10.0.0.1", "10.0.0.0/8", inet.Mapped, false},
		{"a.test", "::ffff:10.0.0.1", "::/0", inet.Mapped, false},
		{"a.test", "8.8.8.8", "", inet.Resolver, false},
		{"dns.google", "8.8.8.8", "", inet.Public, true},
		{"8.8.8.8", "8.8.8.8", "", inet.Public, true},
	} {
		host, err := inet.ParseHost(tt.host)
		if err != nil {
			t.Fatal(err)
		}
		class, ok := around.check(host, netip.MustParseAddr(tt.addr), prefixes(tt.within))
		if class != tt.class || ok != tt.ok {
			t.Errorf("check(%s, %s, %q) = %v, %v; want %v, %v", tt.host, tt.addr, tt.within, class, ok, tt.class, tt.ok)
		}
	}
}

func prefixes(text string) []netip.Prefix {
	var all []netip.Prefix
	for field := range strings.FieldsSeq(text) {
		all = append(all, netip.MustParsePrefix(field))
	}
	return all
}

// kinds is a small table of hosts of a kind.
func kinds(host string) string {
	switch {
	case host == "dns.google" || host == "8.8.8.8" || strings.HasSuffix(host, ".doh.example"):
		return "resolver"
	case host == "shared.example" || strings.HasSuffix(host, ".shared.example"):
		return "multi-tenant"
	}
	return ""
}

func isASCII(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
}
