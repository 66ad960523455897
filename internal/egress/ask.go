package egress

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"vogt/internal/inet"
)

// Question is a host that no rule covers.
type Question struct {
	Identity Identity
	Host     string // as in Record, so in punycode
	Port     uint16
	Scheme   Scheme
	Kind     string // what Policy.HostKind says
	// Client is the first connection that waits, by its own end.
	Client net.Addr
}

// unaskable refuses a host that no person could let a session reach: whatever the
// answer, the address would be refused, or the host resolves names for anybody. A
// name is not resolved for that, so that one which leads to such an address is
// asked about, and refused when it is connected to.
func (p *Proxy) unaskable(host inet.Host) *refusal {
	if kind := p.book.Load().hostKind; kind != nil && kind(host.String()) == resolverKind {
		return refuse(NeverAsked)
	}
	if host.Addr().IsValid() {
		if class := inet.Classify(host.Addr()); class != inet.Public {
			return &refusal{reason: RefusedAddress, class: class}
		}
		return nil
	}
	last := host.Name()[strings.LastIndexByte(host.Name(), '.')+1:]
	if last == host.Name() || slices.Contains(localEnds, last) || strings.HasSuffix(host.Name(), ".home.arpa") {
		return refuse(NeverAsked)
	}
	return nil
}

// localEnds are ends of names that belong to a machine or its network (RFC 6761,
// 6762, 8375, and what routers and clouds use).
var localEnds = []string{"localhost", "local", "internal", "intranet", "lan", "home", "corp", "private", "invalid"}

// Answer is a person's answer. The zero value refuses.
type Answer struct {
	Decision Decision
	// Session makes the answer hold for this host, port and scheme until the
	// session ends. Else it is for the connections that wait for it.
	Session bool
	// Until ends a permission, and the connections that it granted, sooner.
	Until time.Time
	// Within is as in Rule.
	Within []netip.Prefix
	// By says who answered, for the record.
	By string
}

// Decision is what was decided about a question.
type Decision int

const (
	// NoDecision means that nobody answered. It refuses, and the next connection
	// asks again.
	NoDecision Decision = iota
	// Deny refuses, and for Limits.DenyTime is not asked again.
	Deny
	// Permit grants.
	Permit
)

// asks are the questions and answers of a session.
type asks struct {
	mu      sync.Mutex
	open    map[target]*question
	granted map[target]grant
	denied  map[target]time.Time // until when
}

// maxAnswers is how many answers are remembered of each kind. Beyond it a denial
// cannot be remembered, so nothing is asked any more.
const maxAnswers = 1024

// question is one that waits for an answer, and the connections that wait. It
// outlives the connection that caused it if others wait too.
type question struct {
	waiting int             // connections
	ended   <-chan struct{} // closed when the time is over, or nobody waits
	cancel  context.CancelFunc
	done    chan struct{} // closed when the result stands, before ended
	result  grant
	refused *refusal
}

func (a *asks) init() {
	a.open, a.granted, a.denied = make(map[target]*question), make(map[target]grant), make(map[target]time.Time)
}

// ask returns what a person answered about the target, now or before. Those who
// ask for the same host, port and scheme wait for one answer. Work is what Serve
// waits for.
func (p *Proxy) ask(ctx context.Context, t target, work *sync.WaitGroup, client net.Addr) (grant, *refusal) {
	q, g, refused := p.join(ctx, t, work, client)
	if q == nil {
		return g, refused
	}
	defer p.leave(t, q)
	select {
	case <-q.done:
		return q.result, q.refused
	case <-ctx.Done():
		return grant{}, refuse(ClientGone)
	case <-q.ended:
	}
	select {
	case <-q.done: // both have happened
		return q.result, q.refused
	default:
		return grant{}, refuse(Unanswered)
	}
}

// leave ends a question for which nobody waits any more.
func (p *Proxy) leave(t target, q *question) {
	p.asks.mu.Lock()
	defer p.asks.mu.Unlock()
	if q.waiting--; q.waiting == 0 {
		q.cancel()
		p.asks.remove(t, q)
	}
}

func (a *asks) remove(t target, q *question) {
	if a.open[t] == q {
		delete(a.open, t)
	}
}

// join returns an answer that stands, or the question to wait for.
func (p *Proxy) join(ctx context.Context, t target, work *sync.WaitGroup, client net.Addr) (*question, grant, *refusal) {
	a, now := &p.asks, p.config.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	for key, until := range a.denied {
		if !now.Before(until) {
			delete(a.denied, key)
		}
	}
	if _, denied := a.denied[t]; denied {
		return nil, grant{}, refuse(Denied)
	}
	if g, ok := a.granted[t]; ok {
		if g.until.IsZero() || now.Before(g.until) {
			return nil, g, nil
		}
		delete(a.granted, t)
	}
	q := a.open[t]
	if q == nil {
		if len(a.open) >= p.limits.Questions || len(a.denied) >= maxAnswers || len(a.granted) >= maxAnswers {
			return nil, grant{}, refuse(TooManyQuestions)
		}
		q = p.open(ctx, t, work, client)
	}
	q.waiting++
	return q, grant{}, nil
}

// open begins to ask.
func (p *Proxy) open(ctx context.Context, t target, work *sync.WaitGroup, client net.Addr) *question {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.limits.AskTime)
	q := &question{ended: ctx.Done(), cancel: cancel, done: make(chan struct{})}
	p.asks.open[t] = q
	work.Go(func() {
		defer cancel()
		asked := p.question(t)
		asked.Client = client
		answer := p.config.Ask(ctx, asked)
		if ctx.Err() != nil { // silence has refused already
			answer = Answer{}
		}
		p.settle(t, q, answer)
	})
	return q
}

func (p *Proxy) question(t target) Question {
	q := Question{Identity: p.config.Identity, Host: t.host.String(), Port: t.port, Scheme: t.scheme}
	if kind := p.book.Load().hostKind; kind != nil {
		q.Kind = kind(q.Host)
	}
	return q
}

// settle gives the answer to those who wait, and remembers it.
func (p *Proxy) settle(t target, q *question, answer Answer) {
	a := &p.asks
	a.mu.Lock()
	defer a.mu.Unlock()
	a.remove(t, q)
	switch answer.Decision {
	case Permit:
		basis := "asked"
		if answer.By != "" {
			basis += ", permitted by " + answer.By
		}
		q.result = grant{granted: true, basis: basis, within: answer.Within, until: answer.Until}
		if answer.Session {
			a.granted[t] = q.result
		}
	case Deny:
		q.refused = refuse(Denied)
		a.denied[t] = p.config.Now().Add(p.limits.DenyTime)
	case NoDecision:
		q.refused = refuse(Unanswered)
	default:
		q.refused = refuse(Unanswered)
	}
	close(q.done)
}
