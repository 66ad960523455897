package egress

import (
	"net/netip"
	"slices"

	"vogt/internal/inet"
)

// surroundings is what an address is checked against besides the table.
type surroundings struct {
	own      []netip.Addr
	hostKind func(string) string
}

// check returns the class of an address of a host, and whether it may be
// dialled. within are the networks that the rule names.
func (s surroundings) check(host inet.Host, addr netip.Addr, within []netip.Prefix) (inet.Class, bool) {
	class := inet.Classify(addr)
	if class == inet.Public && s.hostKind != nil && s.hostKind(addr.String()) == resolverKind && s.hostKind(host.String()) != resolverKind {
		class = inet.Resolver
	}
	if class == inet.Public && slices.Contains(s.own, addr) {
		class = inet.Own
	}
	if len(within) == 0 {
		return class, class == inet.Public
	}
	return class, class.Grantable() && slices.ContainsFunc(within, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// resolverKind is what Policy.HostKind calls servers that resolve names for
// anybody.
const resolverKind = "resolver"
