package doctor

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"

	"vogt/internal/supervise"
)

// port looks who listens where this machine's authority should, by the uid
// column of /proc/net/tcp (proc_pid_net(5)): whoever holds the port is the
// authority for clients and browsers.
func (x *exam) port(context.Context) Check {
	const name = "port"
	addr, ok := loopback(x.address)
	if !ok {
		return inForce(name, "the authority is on another machine")
	}
	if x.Box != "" {
		return finding(name, InPart, "vogt doctor", "in a box, %s leads to the authority by way of whoever started the box: who holds the port is seen outside of it", addr)
	}
	listeners, err := supervise.Listeners(addr)
	if err != nil {
		return finding(name, InPart, "", "%v", err)
	}
	other := netip.AddrPortFrom(netip.IPv6Loopback(), addr.Port())
	if addr.Addr().Is6() {
		other = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), addr.Port())
	}
	beside, err := supervise.Listeners(other)
	if err != nil {
		return finding(name, InPart, "", "%v", err)
	}
	return x.judgePort(addr, listeners, beside)
}

// judgePort compares the holders of the port with those who should hold it.
func (x *exam) judgePort(addr netip.AddrPort, listeners, beside []supervise.Socket) Check {
	const name = "port"
	for _, s := range beside {
		if !slices.ContainsFunc(listeners, func(l supervise.Socket) bool { return l.UID == s.UID }) {
			return finding(name, Failed, "find out what that program is, and end it: ss -ltnp sport = :"+fmt.Sprint(addr.Port()),
				"%s listens on %s: browsers may take it for the authority", supervise.HolderOf(s.Local), s.Local)
		}
	}
	if len(listeners) == 0 {
		return finding(name, NotInForce, "vogt up", "nobody holds %s now: until the authority is back, any user of this machine can take the port and play its part", addr)
	}
	self := os.Geteuid()
	for _, s := range listeners {
		switch {
		case x.controlErr == nil && (s.UID == self || s.UID == 0):
		case x.controlErr == nil:
			return finding(name, Failed, "end that program, then: vogt down && vogt up", "%s is held by %s, and not by the authority of this user, which runs", addr, supervise.HolderOf(s.Local))
		case x.ownsData(s.UID):
		case s.UID == self:
			return finding(name, InPart, "vogt up", "%s is held by %s, but no authority runs on %s: another program, or an authority with other folders", addr, supervise.HolderOf(s.Local), x.Paths.Data)
		default:
			return finding(name, InPart, "compare with the user whom you gave the authority to", "%s is held by %s; nothing here tells whether that is the authority's user", addr, supervise.HolderOf(s.Local))
		}
	}
	return inForce(name, "%s is held by the authority's user (uid %d)", addr, listeners[0].UID)
}

// ownsData reports whether one of the places for an authority's data belongs
// to the user, who is not this one.
func (x *exam) ownsData(uid int) bool {
	return uid != os.Geteuid() && slices.ContainsFunc(x.Places, func(dir string) bool {
		info, err := os.Stat(filepath.Clean(dir))
		if err != nil {
			return false
		}
		owner, known := ownerOf(info)
		return known && owner == uid
	})
}
