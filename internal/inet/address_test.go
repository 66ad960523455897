package inet

import (
	"context"
	"net/netip"
	"strings"
	"testing"
)

func TestClassify(t *testing.T) {
	for want, addrs := range map[Class]string{
		Public:        "1.0.0.0 8.8.8.8 9.255.255.255 11.0.0.0 93.184.216.34 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0 169.253.255.255 169.255.0.0 172.15.255.255 172.32.0.0 191.255.255.255 192.0.1.0 192.0.3.0 192.167.255.255 192.169.0.0 198.17.255.255 198.20.0.0 223.255.255.255 2000:: 2001:200::1 2606:4700::1111 2a00:1450::1 3ffe:ffff:: 2003::",
		Loopback:      "127.0.0.0 127.0.0.1 127.255.255.255 ::1",
		Private:       "10.0.0.0 10.255.255.255 172.16.0.0 172.31.255.255 192.168.0.1 192.168.255.255",
		Shared:        "100.64.0.0 100.127.255.255",
		UniqueLocal:   "fc00:: fd00::1 fdff:ffff::",
		Benchmark:     "198.18.0.0 198.19.255.255",
		Documentation: "192.0.2.1 198.51.100.1 203.0.113.255 2001:db8::1 3fff::1",
		LinkLocal:     "169.254.0.0 169.254.255.255 fe80::1 febf::1 fe80::1%eth0",
		Metadata:      "169.254.169.254 169.254.170.2 168.63.129.16 100.100.100.200 192.0.0.192 fd00:ec2::254 fd20:ce::254",
		Multicast:     "224.0.0.1 239.255.255.255 ff02::1 ff0e::1",
		Unspecified:   "0.0.0.0 0.1.2.3 ::",
		Transition:    "192.88.99.1 64:ff9b::7f00:1 64:ff9b:1::1 2002:7f00:1:: 2001:0:1::1 ::7f00:1 ::127.0.0.1 ::ffff:0:7f00:1",
		Mapped:        "::ffff:8.8.8.8 ::ffff:127.0.0.1 ::ffff:a9fe:a9fe",
		Reserved:      "192.0.0.1 192.0.0.170 240.0.0.1 255.255.255.255 100::1 2001:1::1 2001:20::1 fec0::1 4000::1 5f00::1 1::",
	} {
		for text := range strings.FieldsSeq(addrs) {
			if got := Classify(netip.MustParseAddr(text)); got != want {
				t.Errorf("Classify(%s) = %v, want %v", text, got, want)
			}
		}
	}
	if got := Classify(netip.Addr{}); got != Unknown {
		t.Errorf("no address at all is %v", got)
	}
}

func TestClassesAreNamed(t *testing.T) {
	seen := make(map[string]bool)
	for c := range lastClass {
		if seen[c.String()] {
			t.Errorf("two classes are called %q", c)
		}
		seen[c.String()] = true
	}
}

func TestSystemAddresses(t *testing.T) {
	addrs, err := SystemAddresses()
	if err != nil {
		t.Skip("this machine does not tell its addresses: ", err)
	}
	for _, addr := range addrs {
		if addr.Is4In6() || !addr.IsValid() {
			t.Errorf("%v is in no comparable form", addr)
		}
	}
}

// The machine's resolver is asked for the name as it stands.
func TestSystemResolve(t *testing.T) {
	addrs, err := SystemResolve(context.Background(), "localhost")
	if err != nil {
		t.Skip("this machine does not know localhost: ", err)
	}
	for _, addr := range addrs {
		if Classify(addr) != Loopback {
			t.Errorf("localhost is %v, a %v address", addr, Classify(addr))
		}
	}
}
