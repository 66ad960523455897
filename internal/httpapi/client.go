package httpapi

import (
	"net/http"
	"net/netip"
	"strings"
)

// Proxies says which of the addresses that connections come from are proxies of
// the operator's own, and how they name the client. The zero value believes
// nobody.
type Proxies struct {
	Trusted []netip.Prefix
	// Forwarded reads the header of RFC 7239; without it X-Forwarded-For is read.
	// Only one is, because a proxy passes on what it does not know of: a client
	// could write the other one.
	Forwarded bool
}

// maxHops is how many entries of a header are looked at.
const maxHops = 32

func (p Proxies) trusts(a netip.Addr) bool {
	for _, prefix := range p.Trusted {
		if prefix.Contains(a) {
			return true
		}
	}
	return false
}

// client is the address that a call comes from. The header is read from right to
// left, as each proxy adds to its end: the first address that is no trusted
// proxy's is the client's, and whatever stands before that is the client's own
// word. What cannot be read ends the reading with the proxy that said it. The
// zero address is a socket without one.
func (p Proxies) client(r *http.Request) netip.Addr {
	at := plainAddr(r.RemoteAddr)
	if !at.IsValid() || !p.trusts(at) {
		return at
	}
	entries := hops(r.Header.Values("X-Forwarded-For"), false)
	if p.Forwarded {
		entries = hops(r.Header.Values("Forwarded"), true)
	}
	for i := len(entries) - 1; i >= 0 && i >= len(entries)-maxHops; i-- {
		next := plainAddr(entries[i])
		if !next.IsValid() {
			return at
		}
		if at = next; !p.trusts(at) {
			return at
		}
	}
	return at
}

// hops are the nodes that the header names, left to right.
func hops(lines []string, forwarded bool) (out []string) {
	for _, line := range lines {
		for entry := range strings.SplitSeq(line, ",") {
			entry = strings.TrimSpace(entry)
			if forwarded {
				entry = forwardedFor(entry)
			}
			out = append(out, entry)
		}
	}
	return out
}

// forwardedFor is the node of one element of Forwarded (RFC 7239, 4); "" if it
// names none. A comma inside of a quoted string breaks it, and then it is not an
// address, which ends the reading.
func forwardedFor(element string) string {
	for pair := range strings.SplitSeq(element, ";") {
		name, value, ok := strings.Cut(pair, "=")
		if ok && strings.EqualFold(strings.TrimSpace(name), "for") {
			value = strings.TrimSpace(value)
			if len(value) > 1 && value[0] == '"' && value[len(value)-1] == '"' {
				value = value[1 : len(value)-1]
			}
			return value
		}
	}
	return ""
}

// plainAddr reads an address, with or without a port or brackets.
func plainAddr(s string) netip.Addr {
	a, err := netip.ParseAddr(s)
	if err != nil {
		if ap, err := netip.ParseAddrPort(s); err == nil {
			a = ap.Addr()
		} else if inner, ok := strings.CutPrefix(s, "["); ok {
			a, _ = netip.ParseAddr(strings.TrimSuffix(inner, "]"))
		}
	}
	return a.Unmap().WithZone("")
}
