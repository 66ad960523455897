package egress

import (
	"context"
	"fmt"
	"slices"
	"sync"
)

// rulebook is a policy that was read. It does not change; Proxy.Replace puts
// another in its place.
type rulebook struct {
	rules    []rule
	hostKind func(string) string
}

// live are the connections whose target is known.
type live struct {
	mu  sync.Mutex
	all map[*exchange]*standing
}

// standing is how a connection stands with the policy.
type standing struct {
	byRule    bool // a rule grants it; else a person did, or is being asked
	inspected bool // by this rule, and so are its requests
	cut       context.CancelCauseFunc
}

// enter adds a connection before it is judged, so that Replace finds it. The
// function that is returned removes it.
func (l *live) enter(x *exchange, cut context.CancelCauseFunc) (leave func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all[x] = &standing{cut: cut}
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.all, x)
	}
}

// judge asks the rules in force about a connection that has entered.
func (p *Proxy) judge(x *exchange) (grant, *refusal) {
	for {
		book := p.book.Load()
		g, refused := judge(book.rules, book.hostKind, x.target, p.config.Now())
		p.live.mu.Lock()
		p.live.all[x].byRule, p.live.all[x].inspected = g.granted, g.inspect != nil
		p.live.mu.Unlock()
		if p.book.Load() == book { // else Replace may have looked before this was noted
			return g, refused
		}
	}
}

// Replace puts another policy in the place of the first. Connections that its
// rules deny, or that a rule granted and none grants now, are cut. What people
// permitted stays permitted unless a rule denies it. The limits stay, and so does
// what was used of the budgets, also of a rule with the same host, ports and
// budget.
func (p *Proxy) Replace(policy Policy) error {
	rules, err := policy.compile()
	if err != nil {
		return fmt.Errorf("egress: %w", err)
	}
	for _, host := range inspected(rules) {
		if p.authority == nil || !slices.Contains(p.authority.hosts, host) {
			return fmt.Errorf("egress: rule %q: hosts are inspected from the beginning of a session, since its programs have to know the certificate", host)
		}
	}
	p.replacing.Lock()
	defer p.replacing.Unlock()
	before := p.book.Load().rules
	for i := range rules {
		same := func(old rule) bool {
			return old.host == rules[i].host && old.star == rules[i].star && old.Upload == rules[i].Upload && slices.Equal(old.Ports, rules[i].Ports)
		}
		if n := slices.IndexFunc(before, same); n >= 0 {
			rules[i].budget = before[n].budget
		}
	}
	p.book.Store(&rulebook{rules: rules, hostKind: policy.HostKind})

	p.live.mu.Lock()
	defer p.live.mu.Unlock()
	for x, s := range p.live.all {
		g, refused := judge(rules, policy.HostKind, x.target, p.config.Now())
		switch {
		case refused != nil:
			s.cut(refused)
		case s.byRule && !g.granted, g.inspect != nil && !s.inspected:
			s.cut(refuse(GrantEnded))
		}
	}
	return nil
}
