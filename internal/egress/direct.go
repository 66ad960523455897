package egress

import (
	"context"
	"errors"
	"net"
	"net/netip"

	"vogt/internal/inet"
)

// ServeDirect is Serve for a listener in the box that is reached by the addresses of
// ServeNames: programs that know of no proxy connect there. The address to which a
// client connected says which name it means, and the same policy, checks and budgets
// hold as for those that ask.
func (p *Proxy) ServeDirect(ctx context.Context, l net.Listener) error { return p.serve(ctx, l, true) }

// receiveDirect finds out what a client means that has said nothing to a proxy: the
// host by the address that it connected to, and the scheme by the port, and by the
// first byte where the port may carry both.
func (x *exchange) receiveDirect() (*request, *refusal) {
	x.record.Protocol = Direct
	at, ok := x.conn.LocalAddr().(*net.TCPAddr)
	if !ok {
		return nil, refuse(NoName)
	}
	addr, _ := netip.AddrFromSlice(at.IP)
	name, ok := x.p.names.name(addr.Unmap())
	if !ok {
		return nil, refuse(NoName)
	}
	host, err := inet.ParseHost(name)
	if err != nil {
		return nil, refuse(NoName)
	}
	t := target{host: host, port: uint16(at.Port), scheme: Tunnel}
	x.setTarget(t)
	switch carry := x.p.carryOf(t); {
	case t.port == PlainHTTP.defaultPort():
		t.scheme = PlainHTTP
	case carry == CarrySSH || carry == CarryAnything:
		return nil, nil // the host may speak first
	default:
		first, err := x.br.Peek(1)
		if err != nil {
			return nil, unread(err)
		}
		x.secure = first[0] == recordHandshake
		if first[0] >= 'A' && first[0] <= 'Z' {
			t.scheme = PlainHTTP
		}
	}
	x.setTarget(t)
	if t.scheme == Tunnel {
		return nil, nil
	}
	head, refused := readDirectRequest(x.br, x.p.limits.HeaderBytes, t)
	if refused != nil {
		return nil, refused
	}
	return head, x.alone(head)
}

// carryOf is what a tunnel to the target may carry if a rule grants it.
func (p *Proxy) carryOf(t target) Carry {
	book := p.book.Load()
	g, _ := judge(book.rules, book.hostKind, t, p.config.Now())
	return g.carry.on(t.port)
}

// alone refuses a request that another one follows at once.
func (x *exchange) alone(head *request) *refusal {
	if !head.hasBody() && x.br.Buffered() > 0 {
		return refuseFor(BadRequest, errors.New("a second request followed at once; each needs a connection of its own"))
	}
	return nil
}

// answerDirect tells a client that knows of no proxy that it was refused: in a
// response, in an alert of TLS, or by the end of the connection.
func (x *exchange) answerDirect(refused *refusal) {
	switch {
	case x.target.scheme == PlainHTTP && refused.reason != NoName:
		_ = refused.writeHTTP(x.conn, x.target)
	case x.secure:
		const fatal, accessDenied = 2, 49 // RFC 8446, section 6.2
		_, _ = x.conn.Write([]byte{21, 3, 3, 0, 2, fatal, accessDenied})
	}
}
