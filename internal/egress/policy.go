package egress

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"vogt/internal/inet"

	"golang.org/x/net/publicsuffix"
)

// Policy is what one session may reach. The zero value covers no host.
type Policy struct {
	// Rules are looked at in their order; the first that covers a host grants
	// it, unless any rule denies it. A host that no rule covers is asked for.
	Rules []Rule
	// HostKind tells what is known of a host or an address in text:
	// "multi-tenant", where anybody can put something, "resolver", which resolves
	// names for anybody, or nothing. Wildcards need it, since they never grant
	// hosts of a kind.
	HostKind func(host string) string
	Limits   Limits
}

// Rule grants or denies a host.
type Rule struct {
	// Host is a name, an address, or "*." and a name. The star stands for one
	// label or more, so the name itself is not meant. A star over names of
	// several owners, such as "*.co.uk" or "*.amazonaws.com", grants nothing that
	// lies with another owner than the name after the star.
	Host string
	// Ports are, if none is named, 443 for tunnels and 80 for plain HTTP; for a
	// rule that denies, all.
	Ports []uint16
	// Within names the networks in which all addresses of the host must lie.
	// Only they may be private.
	Within []netip.Prefix
	// Deny refuses the host whatever other rules and people say.
	Deny bool
	// Carry is what a tunnel to the host may carry.
	Carry Carry
	// Upload gives the hosts of the rule a budget of their own, in bytes,
	// instead of the session's.
	Upload int64
	// Inspect has the requests to the host looked at. The host is named in full, and
	// no other rule grants it.
	Inspect *Inspect
	// Until ends the rule and the connections that it granted. The zero time
	// leaves it until the session ends.
	Until time.Time
}

// Carry is what a tunnel may carry. What cannot be read by the proxy cannot be
// checked, so the zero value demands the most.
type Carry int

const (
	// CarryDefault is SSH on port 22 and TLS on every other.
	CarryDefault Carry = iota
	// CarryTLS demands a ClientHello with the host's name.
	CarryTLS
	// CarrySSH demands that the client introduces itself as SSH 2.0.
	CarrySSH
	// CarryAnything demands nothing, and needs rules with ports.
	CarryAnything
	lastCarry
)

func (c Carry) on(port uint16) Carry {
	if c != CarryDefault {
		return c
	}
	if port == 22 {
		return CarrySSH
	}
	return CarryTLS
}

// Limits bound what a session may use. Zero means the default.
type Limits struct {
	Upload      int64         // bytes sent in the session, rules with a budget of their own apart; 1 MiB
	Requests    int64         // in the session, refused ones included; 10,000
	Connections int           // of clients at once, further ones wait; 128
	Questions   int           // that wait for people at once; 16
	HeaderBytes int           // of a request; 32 KiB
	HeaderTime  time.Duration // for a request to arrive, and a ClientHello; 10 s
	ConnectTime time.Duration // for resolving and connecting; 10 s
	IdleTime    time.Duration // without a byte in either direction; 5 min
	LifeTime    time.Duration // of a connection, the wait for people apart; 1 h
	AskTime     time.Duration // that a connection is held while people are asked; 2 min
	DenyTime    time.Duration // for which a person's refusal is not asked about again; 10 min
}

// maxHeaders is the number of header fields of a request.
const maxHeaders = 100

func (l Limits) withDefaults() (Limits, error) {
	bad := false
	count := func(value *int, fallback int) {
		bad = bad || *value < 0
		if *value == 0 {
			*value = fallback
		}
	}
	span := func(value *time.Duration, fallback time.Duration) {
		bad = bad || *value < 0
		if *value == 0 {
			*value = fallback
		}
	}
	long := func(value *int64, fallback int64) {
		bad = bad || *value < 0
		if *value == 0 {
			*value = fallback
		}
	}
	long(&l.Upload, 1<<20)
	long(&l.Requests, 10_000)
	count(&l.Connections, 128)
	count(&l.Questions, 16)
	count(&l.HeaderBytes, 32<<10)
	span(&l.HeaderTime, 10*time.Second)
	span(&l.ConnectTime, 10*time.Second)
	span(&l.IdleTime, 5*time.Minute)
	span(&l.LifeTime, time.Hour)
	span(&l.AskTime, 2*time.Minute)
	span(&l.DenyTime, 10*time.Minute)
	if bad {
		return Limits{}, errors.New("a limit is negative; leave it out for the default")
	}
	return l, nil
}

// Scheme is how a client speaks to a host.
type Scheme int

const (
	// Tunnel is a connection whose bytes the proxy passes on: HTTP CONNECT and
	// SOCKS5.
	Tunnel Scheme = iota
	// PlainHTTP is a request without encryption, which the proxy reads and
	// writes anew.
	PlainHTTP
	lastScheme
)

func (s Scheme) String() string {
	if s == PlainHTTP {
		return "http"
	}
	return "tunnel"
}

func (s Scheme) defaultPort() uint16 {
	if s == PlainHTTP {
		return 80
	}
	return 443
}

// target is what a client asks for.
type target struct {
	host   inet.Host
	port   uint16
	scheme Scheme
}

// grant is the permission for one connection. The zero value permits nothing.
type grant struct {
	granted bool
	basis   string // the rule, or that a person was asked
	within  []netip.Prefix
	carry   Carry
	budget  *budget
	until   time.Time
	inspect *Inspect
}

// rule is a Rule that was read.
type rule struct {
	Rule
	host   inet.Host // without a star
	star   bool      // covers what ends in "." and the host
	budget *budget
}

// compile reads the rules and finds what is wrong with them, all at once.
func (p Policy) compile() ([]rule, error) {
	rules := make([]rule, 0, len(p.Rules))
	var problems []error
	for i, text := range p.Rules {
		r, err := compileRule(text, p.HostKind != nil)
		if err != nil {
			problems = append(problems, fmt.Errorf("rule %d, %q: %w", i+1, text.Host, err))
		}
		if err == nil && r.Inspect != nil && slices.Contains(inspected(rules), r.host.Name()) {
			problems = append(problems, fmt.Errorf("rule %d, %q: another rule inspects this host already", i+1, text.Host))
		}
		rules = append(rules, r)
	}
	return rules, errors.Join(problems...)
}

// Check says what is wrong with a rule by itself, as New does for all of them.
func (r Rule) Check() error {
	_, err := compileRule(r, true)
	return err
}

func compileRule(r Rule, kinds bool) (rule, error) {
	compiled := rule{Rule: r}
	name, star := strings.CutPrefix(r.Host, "*.")
	host, err := inet.ParseHost(name)
	if err != nil {
		return rule{}, err
	}
	compiled.host, compiled.star = host, star
	switch {
	case star && host.Addr().IsValid():
		return rule{}, errors.New("a star stands for labels of a name; give each address its own rule")
	case star && !r.Deny && !kinds:
		return rule{}, errors.New("a star needs Policy.HostKind, since it never grants hosts that many share")
	case star && !r.Deny && ownerOf(host.Name()) == "":
		return rule{}, errors.New("a star here would stand for names of many owners; name the host, or put more labels after the star")
	case r.Carry < 0 || r.Carry >= lastCarry:
		return rule{}, errors.New("what a tunnel may carry is not known")
	case r.Carry == CarryAnything && len(r.Ports) == 0:
		return rule{}, errors.New("a rule for tunnels with anything in them must name the ports")
	case slices.Contains(r.Ports, 0):
		return rule{}, errors.New("0 is no port")
	case r.Upload < 0:
		return rule{}, errors.New("the upload budget is negative")
	case len(r.Within) > 0 && star:
		return rule{}, errors.New("networks belong to hosts that are named in full")
	case slices.ContainsFunc(r.Within, func(p netip.Prefix) bool { return !p.IsValid() || p.Addr().Is4In6() }):
		return rule{}, errors.New("one of the networks is not valid")
	}
	if r.Inspect != nil {
		switch {
		case star || host.Addr().IsValid() || r.Deny:
			return rule{}, errors.New("requests are inspected of hosts that are named in full and not denied")
		case r.Carry != CarryDefault && r.Carry != CarryTLS:
			return rule{}, errors.New("requests are inspected in TLS only")
		case slices.Contains(r.Ports, 22):
			return rule{}, errors.New("port 22 carries SSH, in which there are no requests to inspect")
		}
		if err := r.Inspect.check(); err != nil {
			return rule{}, err
		}
	}
	if r.Upload > 0 {
		compiled.budget = newBudget(r.Upload)
	}
	return compiled, nil
}

// ownerOf returns the part of a name that one owner registered, or nothing if
// the name lies above that.
func ownerOf(name string) string {
	owner, err := publicsuffix.EffectiveTLDPlusOne(name)
	if err != nil {
		return ""
	}
	return owner
}

// covers reports whether the rule means the host.
func (r *rule) covers(host inet.Host) bool {
	if !r.star {
		return r.host == host
	}
	return host.Name() != "" && strings.HasSuffix(host.Name(), "."+r.host.Name())
}

// means reports whether the rule is about the target.
func (r *rule) means(t target) bool {
	if !r.covers(t.host) {
		return false
	}
	if len(r.Ports) == 0 {
		return r.Deny || t.port == t.scheme.defaultPort()
	}
	return slices.Contains(r.Ports, t.port)
}

// inForce reports whether the rule has not ended.
func (r *rule) inForce(now time.Time) bool { return r.Until.IsZero() || now.Before(r.Until) }

// grants reports whether a rule that means the target may grant it.
func (r *rule) grants(t target, hostKind func(string) string) bool {
	if !r.star {
		return true
	}
	if hostKind == nil || hostKind(t.host.Name()) != "" {
		return false
	}
	return ownerOf(t.host.Name()) == ownerOf(r.host.Name())
}

// judge says what the rules say about a target at a time: a grant, a refusal,
// or neither, and then a person is to be asked.
func judge(rules []rule, hostKind func(string) string, t target, now time.Time) (grant, *refusal) {
	inForce := func(r *rule) bool { return r.means(t) && r.inForce(now) }
	for i := range rules {
		if rules[i].Deny && inForce(&rules[i]) {
			return grant{}, refuse(DeniedByRule)
		}
	}
	for i := range rules { // before the others: none of them is a way past the inspection
		r := &rules[i]
		switch {
		case r.Inspect == nil || !r.covers(t.host):
		case t.scheme == Tunnel && inForce(r):
			return r.grant(), nil
		default:
			return grant{}, refuse(NotInspected)
		}
	}
	for i := range rules {
		r := &rules[i]
		if !r.Deny && inForce(r) && r.grants(t, hostKind) {
			return r.grant(), nil
		}
	}
	return grant{}, nil
}

// grant is what the rule permits.
func (r *rule) grant() grant {
	return grant{granted: true, basis: "rule " + r.Rule.Host, within: r.Within, carry: r.Carry, budget: r.budget, until: r.Until, inspect: r.Inspect}
}

// budget is a number of bytes or requests that is used up.
type budget struct{ left atomic.Int64 }

func newBudget(n int64) *budget {
	b := new(budget)
	b.left.Store(n)
	return b
}

// take uses n, or nothing if less than n is left.
func (b *budget) take(n int64) bool {
	for {
		left := b.left.Load()
		if left < n {
			return false
		}
		if b.left.CompareAndSwap(left, left-n) {
			return true
		}
	}
}

// has reports whether n is left.
func (b *budget) has(n int64) bool { return b.left.Load() >= n }
