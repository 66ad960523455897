package egress

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"sync"

	"vogt/internal/inet"

	"golang.org/x/net/dns/dnsmessage"
)

// Synthetic is the network of the addresses that stand for names. It is set aside
// for tests between machines (RFC 2544), so that no host on the internet has one.
// In the box all of it is local.
func Synthetic() netip.Prefix { return synthetic }

var synthetic = netip.MustParsePrefix("198.18.0.0/15")

// maxNames is how many names get an address. No address is given to a second name:
// programs remember what they were told.
const maxNames = 4096

// nameTable are the names and addresses of a session.
type nameTable struct {
	mu     sync.Mutex
	byName map[string]netip.Addr
	byAddr map[netip.Addr]string
	last   netip.Addr
}

// address returns the address that stands for a name.
func (t *nameTable) address(name string) (netip.Addr, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if addr, ok := t.byName[name]; ok {
		return addr, true
	}
	if len(t.byName) >= maxNames {
		return netip.Addr{}, false
	}
	if t.byName == nil {
		t.byName, t.byAddr = make(map[string]netip.Addr), make(map[netip.Addr]string)
		t.last = synthetic.Addr().Next() // the first one is the box's own
	}
	t.last = t.last.Next()
	t.byName[name], t.byAddr[t.last] = t.last, name
	return t.last, true
}

// name returns the name that an address stands for.
func (t *nameTable) name(addr netip.Addr) (string, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	name, ok := t.byAddr[addr]
	return name, ok
}

// maxDatagram is the longest question that is read. Those of programs have a name
// and a few options.
const maxDatagram = 1232

// nameTTL is for how long programs may remember an address, in seconds. It holds
// as long as the session does.
const nameTTL = 60

// ServeNames answers questions for names until ctx ends, which is no error, or the
// connection fails, and closes it. It asks nobody: a name that a rule could grant, or a
// person could be asked about, gets an address that stands for it; any other does
// not exist. So no question leaves the machine, and the names in them carry
// nothing out.
func (p *Proxy) ServeNames(ctx context.Context, conn net.PacketConn) error {
	stop := whenDone(ctx, func() { conn.Close() })
	defer func() { conn.Close(); stop() }()
	buffer := make([]byte, maxDatagram+1)
	for {
		n, from, err := conn.ReadFrom(buffer)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && passing(err):
			pause(ctx)
			continue
		case err != nil:
			return err
		case n > maxDatagram:
			continue
		}
		if answer := p.answerName(buffer[:n]); answer != nil {
			_, _ = conn.WriteTo(answer, from) // who asks may have gone
		}
	}
}

// answerName returns the answer to a question, or nothing for what is none.
func (p *Proxy) answerName(question []byte) []byte {
	var parser dnsmessage.Parser
	header, err := parser.Start(question)
	if err != nil || header.Response {
		return nil
	}
	reply := dnsmessage.Header{ID: header.ID, Response: true, OpCode: header.OpCode, RecursionDesired: header.RecursionDesired, RecursionAvailable: true}
	q, err := parser.Question()
	if err == nil {
		if _, more := parser.Question(); !errors.Is(more, dnsmessage.ErrSectionDone) {
			err = errors.New("there is more than one question")
		}
	}
	if err != nil {
		reply.RCode = dnsmessage.RCodeFormatError
		return buildAnswer(reply, nil, netip.Addr{})
	}
	if header.OpCode != 0 {
		reply.RCode = dnsmessage.RCodeNotImplemented
		return buildAnswer(reply, &q, netip.Addr{})
	}
	if q.Class != dnsmessage.ClassINET {
		reply.RCode = dnsmessage.RCodeRefused
		return buildAnswer(reply, &q, netip.Addr{})
	}
	addr, code := p.lookUp(q.Name.String())
	reply.RCode = code
	if q.Type != dnsmessage.TypeA {
		addr = netip.Addr{} // the name exists, and has IPv4 only
	}
	return buildAnswer(reply, &q, addr)
}

// lookUp returns the address that stands for a name, or why there is none.
func (p *Proxy) lookUp(text string) (netip.Addr, dnsmessage.RCode) {
	host, err := inet.ParseHost(text)
	if err != nil || host.Addr().IsValid() {
		p.unknownName("", refuseFor(BadHost, errors.New("a question for no name of a host")))
		return netip.Addr{}, dnsmessage.RCodeNameError
	}
	if host.Name() == "localhost" || strings.HasSuffix(host.Name(), ".localhost") {
		return netip.AddrFrom4([4]byte{127, 0, 0, 1}), dnsmessage.RCodeSuccess // RFC 6761
	}
	if refused := p.imaginable(host); refused != nil {
		p.unknownName(host.Name(), refused)
		return netip.Addr{}, dnsmessage.RCodeNameError
	}
	addr, ok := p.names.address(host.Name())
	if !ok {
		p.unknownName(host.Name(), refuse(TooManyNames))
		return netip.Addr{}, dnsmessage.RCodeServerFailure
	}
	return addr, dnsmessage.RCodeSuccess
}

// unknownName records a name that got no address: its program sees only that the
// name does not exist.
func (p *Proxy) unknownName(name string, refused *refusal) {
	p.config.Audit.End(Record{
		Identity: p.config.Identity, Protocol: Name, Host: name, Start: p.config.Now(),
		Verdict: Refused, Reason: refused.reason, Detail: refused.Error(),
	})
}

// imaginable says why a host can be reached at no port, or nothing if there may be
// one.
func (p *Proxy) imaginable(host inet.Host) *refusal {
	book := p.book.Load()
	granted := false
	for i := range book.rules {
		r := &book.rules[i]
		switch {
		case !r.covers(host) || !r.inForce(p.config.Now()):
		case r.Deny && len(r.Ports) == 0:
			return refuse(DeniedByRule)
		case !r.Deny:
			granted = granted || r.grants(target{host: host}, book.hostKind)
		}
	}
	switch {
	case granted:
		return nil
	case p.config.Ask != nil:
		return p.unaskable(host)
	}
	return refuse(NotGranted)
}

// buildAnswer writes an answer. Its name is the one of the question, to the letter:
// some programs choose capitals at will and compare them.
func buildAnswer(header dnsmessage.Header, q *dnsmessage.Question, addr netip.Addr) []byte {
	b := dnsmessage.NewBuilder(nil, header)
	b.EnableCompression()
	err := b.StartQuestions()
	if err == nil && q != nil {
		err = b.Question(*q)
	}
	if err == nil && q != nil && addr.IsValid() {
		if err = b.StartAnswers(); err == nil {
			err = b.AResource(dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, TTL: nameTTL}, dnsmessage.AResource{A: addr.As4()})
		}
	}
	answer, finish := b.Finish()
	if err != nil || finish != nil {
		return nil
	}
	return answer
}

// DirectPorts are the ports at which a program may reach a host by its address in
// the box: those of TLS and plain HTTP, and those that rules name.
func (p *Proxy) DirectPorts() []uint16 {
	ports := []uint16{80, 443}
	seen := map[uint16]bool{80: true, 443: true}
	for _, r := range p.book.Load().rules {
		for _, port := range r.Ports {
			if !r.Deny && !r.host.Addr().IsValid() && !seen[port] {
				seen[port] = true
				ports = append(ports, port)
			}
		}
	}
	return ports
}
