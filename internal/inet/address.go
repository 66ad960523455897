package inet

import (
	"context"
	"net"
	"net/netip"
	"runtime"
	"strings"
)

// Class is what kind of network an address belongs to. Only addresses of class
// Public may be dialled where nobody has named their network.
type Class int

// The classes. The zero value refuses.
const (
	Unknown Class = iota
	Public
	Loopback
	Private
	Shared        // between carrier and customer, RFC 6598
	UniqueLocal   // the private networks of IPv6
	Benchmark     // between machines under test
	Documentation // examples in texts
	Own           // an address of this machine that looks public
	LinkLocal     // cannot be reached through a router
	Metadata      // where clouds hand credentials to whoever asks
	Resolver      // answers names for anybody, and so carries any text
	Multicast
	Unspecified
	Transition // IPv6 that some router turns into IPv4
	Mapped     // IPv4 in the clothes of IPv6
	Reserved   // no public use is assigned
	lastClass
)

func (c Class) String() string {
	switch c {
	case Unknown:
		return "unknown"
	case Public:
		return "public"
	case Loopback:
		return "loopback"
	case Private:
		return "private"
	case Shared:
		return "shared"
	case UniqueLocal:
		return "unique-local"
	case Benchmark:
		return "benchmark"
	case Documentation:
		return "documentation"
	case Own:
		return "own"
	case LinkLocal:
		return "link-local"
	case Metadata:
		return "metadata"
	case Resolver:
		return "resolver"
	case Multicast:
		return "multicast"
	case Unspecified:
		return "unspecified"
	case Transition:
		return "transition"
	case Mapped:
		return "v4-mapped"
	case Reserved:
		return "reserved"
	}
	return "unknown"
}

// Grantable reports whether a rule may name networks of this class. The others
// are never a place that a person means by a host's name.
func (c Class) Grantable() bool {
	switch c {
	case Public, Loopback, Private, Shared, UniqueLocal, Benchmark, Documentation, Own:
		return true
	case Unknown, LinkLocal, Metadata, Resolver, Multicast, Unspecified, Transition, Mapped, Reserved:
		return false
	}
	return false
}

// network is a row of the table of classes.
type network struct {
	prefix netip.Prefix
	class  Class
}

// networks are the special networks, after the registries of IANA (RFC 6890)
// and the manuals of clouds. The first that contains an address counts.
var networks = []network{
	{netip.MustParsePrefix("169.254.169.254/32"), Metadata}, // AWS, Google, Azure, and most others
	{netip.MustParsePrefix("169.254.170.0/24"), Metadata},   // AWS: roles of tasks and pods
	{netip.MustParsePrefix("168.63.129.16/32"), Metadata},   // Azure's own services
	{netip.MustParsePrefix("100.100.100.200/32"), Metadata}, // Alibaba
	{netip.MustParsePrefix("192.0.0.192/32"), Metadata},     // Oracle
	{netip.MustParsePrefix("fd00:ec2::/32"), Metadata},      // AWS
	{netip.MustParsePrefix("fd20:ce::/32"), Metadata},       // Google

	{netip.MustParsePrefix("0.0.0.0/8"), Unspecified},
	{netip.MustParsePrefix("10.0.0.0/8"), Private},
	{netip.MustParsePrefix("100.64.0.0/10"), Shared},
	{netip.MustParsePrefix("127.0.0.0/8"), Loopback},
	{netip.MustParsePrefix("169.254.0.0/16"), LinkLocal},
	{netip.MustParsePrefix("172.16.0.0/12"), Private},
	{netip.MustParsePrefix("192.0.0.0/24"), Reserved},
	{netip.MustParsePrefix("192.0.2.0/24"), Documentation},
	{netip.MustParsePrefix("192.88.99.0/24"), Transition}, // relays of 6to4
	{netip.MustParsePrefix("192.168.0.0/16"), Private},
	{netip.MustParsePrefix("198.18.0.0/15"), Benchmark},
	{netip.MustParsePrefix("198.51.100.0/24"), Documentation},
	{netip.MustParsePrefix("203.0.113.0/24"), Documentation},
	{netip.MustParsePrefix("224.0.0.0/4"), Multicast},
	{netip.MustParsePrefix("240.0.0.0/4"), Reserved}, // with the broadcast address

	{netip.MustParsePrefix("::/128"), Unspecified},
	{netip.MustParsePrefix("::1/128"), Loopback},
	{netip.MustParsePrefix("::ffff:0:0/96"), Mapped},
	{netip.MustParsePrefix("::/96"), Transition},           // IPv4-compatible
	{netip.MustParsePrefix("::ffff:0:0:0/96"), Transition}, // IPv4-translated
	{netip.MustParsePrefix("64:ff9b::/96"), Transition},    // NAT64
	{netip.MustParsePrefix("64:ff9b:1::/48"), Transition},  // NAT64 of one site
	{netip.MustParsePrefix("2001::/32"), Transition},       // Teredo
	{netip.MustParsePrefix("2001:db8::/32"), Documentation},
	{netip.MustParsePrefix("2001::/23"), Reserved},   // protocols of the IETF
	{netip.MustParsePrefix("2002::/16"), Transition}, // 6to4
	{netip.MustParsePrefix("3fff::/20"), Documentation},
	{netip.MustParsePrefix("fc00::/7"), UniqueLocal},
	{netip.MustParsePrefix("fe80::/10"), LinkLocal},
	{netip.MustParsePrefix("ff00::/8"), Multicast},
}

// publicIPv6 is all that was ever given to networks; the rest is reserved.
var publicIPv6 = netip.MustParsePrefix("2000::/3")

// Classify returns the class of an address, without regard to which machine
// asks.
func Classify(addr netip.Addr) Class {
	switch {
	case !addr.IsValid():
		return Unknown
	case addr.Is4In6(): // no IPv6 prefix contains it for netip
		return Mapped
	case addr.Zone() != "":
		return LinkLocal
	}
	for i := range networks {
		if networks[i].prefix.Contains(addr) {
			return networks[i].class
		}
	}
	if addr.Is6() && !publicIPv6.Contains(addr) {
		return Reserved
	}
	return Public
}

// SystemResolve asks the machine's resolver. A name is taken as it stands: no
// search list makes another of it. On Linux Go's resolver is used, which also
// finds names with a final dot in /etc/hosts.
func SystemResolve(ctx context.Context, name string) ([]netip.Addr, error) {
	resolver := net.Resolver{PreferGo: runtime.GOOS == "linux"}
	addrs, err := resolver.LookupNetIP(ctx, "ip", strings.TrimSuffix(name, ".")+".")
	for i, addr := range addrs {
		addrs[i] = addr.Unmap() // the package net hands out IPv4 in both forms
	}
	return addrs, err
}

// SystemDial connects to an address.
func SystemDial(ctx context.Context, addr netip.AddrPort) (net.Conn, error) {
	var dialer net.Dialer
	return dialer.DialContext(ctx, "tcp", addr.String())
}

// SystemAddresses returns the addresses of this machine.
func SystemAddresses() ([]netip.Addr, error) {
	list, err := net.InterfaceAddrs()
	if err != nil {
		return nil, err
	}
	addrs := make([]netip.Addr, 0, len(list))
	for _, a := range list {
		if ip, ok := a.(*net.IPNet); ok {
			if addr, ok := netip.AddrFromSlice(ip.IP); ok {
				addrs = append(addrs, addr.Unmap())
			}
		}
	}
	return addrs, nil
}
