package flow

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"vogt/internal/detail"
	"vogt/internal/grant"
	"vogt/internal/reading"
)

// readConnect is the reading of a connection, which has no text. It is asked for
// because no rule knows the host, so that it is high whatever the host is.
func readConnect(rd *reading.Reader, c grant.Connect) (Reading, error) {
	if err := askable(c); err != nil {
		return Reading{}, err
	}
	kind := rd.HostKind(c.Host)
	if kind == "resolver" {
		return Reading{}, fmt.Errorf("%s resolves names for anybody, and so carries any text; nobody is asked about it", c.Host)
	}
	d := c.Network()
	d.Risk = detail.High
	out := Reading{Details: []detail.Detail{d}, Kind: kind}
	out.Hosts, out.Effects, out.Risk = []string{c.Host}, detail.Contacts, d.Risk
	return out, nil
}

// askable reports why nobody can be asked for a connection: its host has two
// spellings, or lies where no person can let a box go. It looks at the text alone;
// where a name leads is checked by the proxy when it connects.
func askable(d grant.Connect) error {
	if d.Port == 0 {
		return errors.New("the port is missing")
	}
	if addr, err := netip.ParseAddr(d.Host); err == nil {
		switch {
		case addr.String() != d.Host || addr.Zone() != "" || addr.Is4In6():
			return fmt.Errorf("the address %q is not in its shortest form", d.Host)
		case !addr.IsGlobalUnicast() || addr.IsPrivate():
			return fmt.Errorf("%s is no public address; only a rule that names it and its network can grant it", d.Host)
		}
		return nil
	}
	if len(d.Host) > maxHost {
		return fmt.Errorf("the host has %d bytes; a name has at most %d", len(d.Host), maxHost)
	}
	labels := strings.Split(d.Host, ".")
	for _, label := range labels {
		if label == "" || len(label) > maxLabel || label[0] == '-' || label[len(label)-1] == '-' ||
			strings.ContainsFunc(label, func(r rune) bool { return r != '-' && (r < 'a' || r > 'z') && (r < '0' || r > '9') }) {
			return fmt.Errorf("the host %q is no name in lower-case ASCII, nor an address", d.Host)
		}
	}
	last := labels[len(labels)-1]
	switch {
	case strings.Trim(last, "0123456789") == "" || strings.HasPrefix(last, "0x"):
		return fmt.Errorf("the host %q is a number to some programs", d.Host)
	case len(labels) == 1 || slices.Contains(localEnds, last) || strings.HasSuffix(d.Host, ".home.arpa"):
		return fmt.Errorf("%s is a name of this machine or its network; only a rule that names it and its network can grant it", d.Host)
	}
	return nil
}

const (
	maxHost  = 253 // bytes of a name in the DNS
	maxLabel = 63
)

// localEnds are ends of names that belong to a machine or to a local network (RFC
// 6761, 6762, 8375, and what routers and clouds use).
var localEnds = []string{"localhost", "local", "internal", "intranet", "lan", "home", "corp", "private", "invalid"}

// Connection is one that the proxy of a box holds, because no rule covers it.
type Connection struct {
	To      grant.Connect
	Box     string        // profile, its digest, the workspace, and what tells this box from others
	Program string        // that connects, as far as it is known
	Machine string        // name of this machine
	Wait    time.Duration // how long a person may take
}

// Connect is the path of a connection from the proxy of a box: ask, wait, redeem
// the permission. Ran means that the connection may be made now; for how long
// others to the host may be made stands in the grant. Nothing else permits.
func Connect(ctx context.Context, door Door, c Connection) (Result, error) {
	mode := c.To.Network().Mode()
	req := grant.Request{
		Host: c.Machine, Audience: Audience, Type: grant.Once, Connect: &c.To,
		Context: &grant.Context{Confinement: &c.Box, NetworkMode: &mode, Executable: c.Program},
	}
	g, err := door.obtain(ctx, req, "")
	if err != nil {
		return Result{}, err
	}
	if err := sameAction(req, g); err != nil {
		return Result{Grant: g}, err
	}
	if g.Status == grant.Pending {
		if g, err = door.wait(ctx, g, c.Wait); err != nil {
			return Result{Grant: g}, err
		}
	}
	if g.Status != grant.Approved {
		return Result{Ending: EndingOf(g.Status), Grant: g}, nil
	}
	if _, err := door.Ledger.Redeem(ctx, g.ID, req); err != nil {
		return Result{Grant: g}, err
	}
	return Result{Ending: Ran, Grant: g}, nil
}
