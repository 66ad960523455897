// Package egress is the one way out of a sandbox: a proxy that lets a session
// reach the hosts that its policy or a person grants, and no other.
//
// The sandbox has a network of its own without a route. A listener is made
// inside it and handed to Proxy.Serve outside; whoever connects there is the
// session, so the descriptor is the identity, and there is no password to steal
// or forget. Where others can reach the listener, as on a loopback port of the
// machine, Config.Password keeps them out. One port speaks HTTP/1.1 as a proxy (CONNECT, and requests for
// http:// addresses) and SOCKS5 (CONNECT only), told apart by the first byte.
//
// Each connection goes the same way, and the first step that fails refuses it:
//
//  1. What the client asks for is read into a host, a port and a scheme
//     (inet.ParseHost, readRequest, readSOCKS). Whatever two programs could read
//     differently is refused, and no later step sees the text again.
//     A client that knows of no proxy has asked for the name before
//     (Proxy.ServeNames) and connects to the address that stands for it
//     (Proxy.ServeDirect).
//  2. The policy is asked (Policy, Rule). A rule that denies wins. A host that no
//     rule covers is held while a person is asked (Config.Ask); silence denies.
//     Nothing is resolved before, since a question to the DNS carries data too.
//  3. The connection is recorded (Audit). What cannot be recorded is not made.
//  4. The name is resolved once. All its addresses must be public, or lie in
//     networks that the rule names (inet.Classify); one of those that were checked is
//     dialled, and the name is not looked at again.
//  5. A tunnel must begin with a TLS ClientHello that names the host, or with
//     SSH's introduction on port 22. A plain request is written anew, with the
//     granted host in it; its connection serves that one request.
//  6. What is sent is taken from a budget, and silence, length and the end of the
//     permission are limited.
//
// A rule with Inspect has the proxy open the TLS of its host, with certificates that
// only this session trusts: it reads the requests, lets through those that are
// permitted, and sets fields with secrets, which the session never sees unless the
// host repeats them.
//
// What it does not do: other TLS is not opened, so inside a tunnel a client can ask a
// server that many share for another's pages ("fronting"), which is why cards
// name such hosts. The outer name of an Encrypted ClientHello is all that is
// seen; hosts that exist to be outer names should not be granted. Granted hosts
// can be used to pass on data, which budgets bound. Upstream proxies are not
// used, since behind one no address can be checked; variables that name one are
// not read. There is no UDP. The proxy does not make the listener, does not keep
// grants beyond the session, and draws no cards.
//
// A permission can be taken back while it is used: Proxy.Replace cuts what the new
// policy does not grant.
package egress

import (
	"bufio"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"vogt/internal/inet"
)

// Identity is whose connections come through the listener.
type Identity struct {
	Agent   string // the principal
	Command string // what it runs, or a session's name
}

// Config is what a Proxy needs. Without rules and Ask nothing is reached; without
// Audit New fails.
type Config struct {
	Identity Identity
	Policy   Policy
	// Ask asks a person about a host that no rule covers. It must return when its
	// context ends, and may be called by several goroutines. Nil refuses.
	Ask   func(context.Context, Question) Answer
	Audit Audit
	// Password, if there is one, has to be shown by every client, with the name User:
	// for a listener that others than the session can reach.
	Password string

	// The rest has defaults, which are the machine's.

	// Resolve returns the addresses of a name, IPv4 as IPv4.
	Resolve func(ctx context.Context, name string) ([]netip.Addr, error)
	// Dial connects to an address that was checked.
	Dial func(context.Context, netip.AddrPort) (net.Conn, error)
	// Own returns the addresses of this machine.
	Own func() ([]netip.Addr, error)
	Now func() time.Time
	// Roots are the authorities whose certificates inspected hosts may show.
	Roots *x509.CertPool
}

// Audit records connections. Its methods are called by several goroutines.
type Audit interface {
	// Begin records that a connection was permitted and is about to be made. If
	// it fails, the connection is not made.
	Begin(Record) error
	// End records how a connection ended, also one that was refused.
	End(Record)
}

// Verdict is what became of a connection.
type Verdict int

const (
	// Refused means that nothing of the client's reached a host.
	Refused Verdict = iota
	// Allowed means that the connection ended by itself.
	Allowed
	// Cut means that the proxy ended a connection that it had allowed.
	Cut
)

func (v Verdict) String() string {
	switch v {
	case Refused:
		return "refused"
	case Allowed:
		return "allowed"
	case Cut:
		return "cut"
	}
	return "unknown"
}

// Protocol is how the client spoke to the proxy.
type Protocol int

// The protocols. The zero value is none of them.
const (
	NoProtocol Protocol = iota
	HTTPConnect
	HTTPPlain
	SOCKS5
	// Direct is a connection to an address that stands for a name.
	Direct
	// Name is a question for an address.
	Name
)

func (p Protocol) String() string {
	switch p {
	case NoProtocol:
		return "none"
	case HTTPConnect:
		return "connect"
	case HTTPPlain:
		return "http"
	case SOCKS5:
		return "socks5"
	case Direct:
		return "direct"
	case Name:
		return "name"
	}
	return "none"
}

// Record is one connection of a client.
type Record struct {
	Identity Identity
	Protocol Protocol
	Host     string // empty if it could not be read
	Port     uint16
	Address  netip.Addr // that was dialled
	SNI      string     // that the ClientHello named, if it is a host's name
	ECH      bool       // the ClientHello had an encrypted part, or pretended to
	Verdict  Verdict
	Reason   Reason
	Detail   string // more about the reason, for people
	Basis    string // what granted the connection
	Request  string // method and path, if the host is inspected
	Sent     int64  // bytes to the host
	Received int64  // bytes from the host
	Start    time.Time
	Duration time.Duration
}

// Proxy serves the connections of one session.
type Proxy struct {
	config    Config
	password  credential
	limits    Limits
	book      atomic.Pointer[rulebook]
	replacing sync.Mutex // is held by Replace
	live      live
	upload    *budget
	requests  *budget
	asks      asks
	names     nameTable
	authority *authority    // of certificates for inspected hosts, if there are any
	slots     chan struct{} // one for each connection that is served
	buffers   sync.Pool
}

// New reads the policy and returns a proxy that serves nothing yet.
func New(config Config) (*Proxy, error) {
	if config.Audit == nil {
		return nil, errors.New("egress: there is no audit; connections that nobody records are not made")
	}
	limits, err := config.Policy.Limits.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("egress: %w", err)
	}
	rules, err := config.Policy.compile()
	if err != nil {
		return nil, fmt.Errorf("egress: %w", err)
	}
	if config.Resolve == nil {
		config.Resolve = inet.SystemResolve
	}
	if config.Dial == nil {
		config.Dial = inet.SystemDial
	}
	if config.Own == nil {
		config.Own = inet.SystemAddresses
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	p := &Proxy{
		config: config, password: newCredential(config.Password), limits: limits, live: live{all: make(map[*exchange]*standing)},
		upload: newBudget(limits.Upload), requests: newBudget(limits.Requests),
		slots:   make(chan struct{}, limits.Connections),
		buffers: sync.Pool{New: func() any { b := make([]byte, 64<<10); return &b }},
	}
	p.book.Store(&rulebook{rules: rules, hostKind: config.Policy.HostKind})
	p.asks.init()
	if hosts := inspected(rules); len(hosts) > 0 {
		if p.authority, err = newAuthority(hosts, config.Now); err != nil {
			return nil, fmt.Errorf("egress: %w", err)
		}
	}
	return p, nil
}

// Serve accepts connections until ctx ends, which is no error, or the listener
// fails. It closes the listener and all connections, and returns when nothing of
// them is left, so an Ask or an Audit that does not return holds it. A proxy may
// serve several listeners of its session.
func (p *Proxy) Serve(ctx context.Context, l net.Listener) error { return p.serve(ctx, l, false) }

func (p *Proxy) serve(ctx context.Context, l net.Listener, direct bool) error {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := whenDone(ctx, func() { l.Close() })
	var connections sync.WaitGroup
	defer func() {
		cancel(refuse(ShuttingDown))
		l.Close()
		stop()
		connections.Wait()
	}()
	for {
		select {
		case p.slots <- struct{}{}: // further clients wait in the listener's queue
		case <-ctx.Done():
			return nil
		}
		conn, err := l.Accept()
		if err != nil {
			<-p.slots
			switch {
			case ctx.Err() != nil:
				return nil
			case passing(err):
				pause(ctx)
				continue
			}
			return fmt.Errorf("egress: accepting connections of %s: %w", p.config.Identity.Agent, err)
		}
		connections.Go(func() {
			defer func() { <-p.slots }()
			p.handle(ctx, conn, &connections, direct)
		})
	}
}

// passing reports whether accepting may succeed again by itself: the client has
// gone, or this machine has no descriptors or memory left just now.
func passing(err error) bool {
	for _, number := range []syscall.Errno{syscall.ECONNABORTED, syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.EINTR} {
		if errors.Is(err, number) {
			return true
		}
	}
	return false
}

// pause waits for others to give something back.
func pause(ctx context.Context) {
	select {
	case <-time.After(100 * time.Millisecond):
	case <-ctx.Done():
	}
}

// exchange is one connection of a client, from its first byte to its record.
type exchange struct {
	p      *Proxy
	work   *sync.WaitGroup // that Serve waits for
	conn   net.Conn
	br     *bufio.Reader
	record Record
	target target
	direct bool // the client knows of no proxy
	secure bool // and began with TLS
	inside bool // conn is the client's TLS, which ends here

	sent, received atomic.Int64
	answered       bool // the client was told something; what follows is the host's
}

// handle serves a connection and closes it.
func (p *Proxy) handle(ctx context.Context, conn net.Conn, work *sync.WaitGroup, direct bool) {
	x := &exchange{p: p, work: work, conn: conn, br: bufio.NewReader(conn), direct: direct}
	x.record.Identity, x.record.Start = p.config.Identity, p.config.Now()
	stop := whenDone(ctx, func() { conn.Close() })
	refused := x.serve(ctx)
	if refused != nil && ctx.Err() != nil {
		refused = refuse(ShuttingDown)
	}
	x.record.Verdict = verdict(refused, x.sent.Load() > 0)
	if refused != nil {
		x.record.Reason, x.record.Detail = refused.reason, refused.Error()
		if !x.answered {
			x.answer(refused)
		}
	}
	x.record.Sent, x.record.Received = x.sent.Load(), x.received.Load()
	x.record.Duration = p.config.Now().Sub(x.record.Start)
	p.config.Audit.End(x.record)
	x.linger()
	stop()
	conn.Close()
}

// verdict says what became of a connection that ended with refused, which may be
// nil, and of which something was sent or not.
func verdict(refused *refusal, sent bool) Verdict {
	switch {
	case refused == nil:
		return Allowed
	case !sent:
		return Refused
	case refused.reason == ClientGone:
		return Allowed
	}
	return Cut
}

// whenDone calls f when ctx ends. The function that is returned ends that, or
// waits for f.
func whenDone(ctx context.Context, f func()) (stop func()) {
	done := make(chan struct{})
	prevent := context.AfterFunc(ctx, func() {
		defer close(done)
		f()
	})
	return func() {
		if !prevent() {
			<-done
		}
	}
}

// serve takes the steps of the package comment. A refusal after the client was
// answered is the reason for which its connection was cut.
func (x *exchange) serve(ctx context.Context) *refusal {
	p := x.p
	_ = x.conn.SetReadDeadline(time.Now().Add(p.limits.HeaderTime))
	head, refused := x.receive()
	// Whoever has no credential uses up nothing of the session's.
	within := refused != nil && p.password.demanded || p.requests.take(1)
	if refused != nil {
		return refused
	}
	_ = x.conn.SetReadDeadline(time.Time{})
	if !within {
		return refuse(RequestBudget)
	}
	ctx, cut := context.WithCancelCause(ctx)
	defer cut(nil)
	leave := p.live.enter(x, cut)
	defer leave()
	g, refused := x.permit(ctx)
	if refused != nil || ctx.Err() != nil { // the end may come with the permission
		return cutOr(ctx, refused)
	}
	if g.budget == nil {
		g.budget = p.upload
	}
	if !g.budget.has(1) || head != nil && !g.budget.has(head.length) {
		return refuse(UploadBudget)
	}
	x.record.Basis = g.basis
	if g.inspect == nil { // else it is the request that is recorded
		if refused := x.begin(g); refused != nil {
			return refused
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, p.limits.LifeTime, refuse(TooLong))
	defer cancel()
	if !g.until.IsZero() {
		var ended context.CancelFunc
		ctx, ended = context.WithTimeoutCause(ctx, g.until.Sub(p.config.Now()), refuse(GrantEnded))
		defer ended()
	}
	if g.inspect != nil {
		return x.intercept(ctx, g)
	}
	upstream, refused := x.connect(ctx, g)
	if refused != nil {
		return refused
	}
	defer upstream.Close()
	if head != nil {
		return x.forward(ctx, upstream, g, head)
	}
	return x.tunnel(ctx, upstream, g)
}

// begin records that the connection was granted and is about to be made.
func (x *exchange) begin(g grant) *refusal {
	record := x.record
	record.Basis, record.Verdict = g.basis, Allowed
	if err := x.p.config.Audit.Begin(record); err != nil {
		return refuseFor(NotRecorded, err)
	}
	return nil
}

// receive reads what the client asks for. It returns the head of a plain
// request, and nil for a tunnel.
func (x *exchange) receive() (*request, *refusal) {
	if x.direct {
		return x.receiveDirect()
	}
	first, err := x.br.Peek(1)
	if err != nil {
		return nil, unread(err)
	}
	if first[0] == socksVersion {
		x.record.Protocol = SOCKS5
		t, refused := readSOCKS(x.br, x.conn, x.p.password)
		x.setTarget(t)
		return nil, refused
	}
	if first[0] < 'A' || first[0] > 'Z' {
		return nil, refuse(BadProtocol)
	}
	head, refused := readRequest(x.br, x.p.limits.HeaderBytes)
	if refused != nil {
		return nil, refused
	}
	if !x.p.password.acceptsFields(head.credentials) {
		return nil, refuse(NoCredential)
	}
	x.setTarget(head.target)
	if head.target.scheme == Tunnel {
		x.record.Protocol = HTTPConnect
		return nil, nil
	}
	x.record.Protocol = HTTPPlain
	return head, x.alone(head)
}

func (x *exchange) setTarget(t target) {
	x.target = t
	x.record.Host, x.record.Port = t.host.String(), t.port
}

// permit returns the grant of a rule or of a person.
func (x *exchange) permit(ctx context.Context) (grant, *refusal) {
	p := x.p
	g, refused := p.judge(x)
	if refused != nil || g.granted {
		return g, refused
	}
	if p.config.Ask == nil {
		return grant{}, refuse(NotGranted)
	}
	if refused := p.unaskable(x.target.host); refused != nil {
		return grant{}, refused
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := x.watch(cancel)
	defer stop()
	return p.ask(ctx, x.target, x.work, x.conn.RemoteAddr())
}

// watch calls gone when the client of a connection that is being held closes it.
// Whatever the client sends meanwhile stays unread. The function that is returned
// ends the watch.
func (x *exchange) watch(gone func()) (stop func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, err := x.br.Peek(x.br.Buffered() + 1)
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) && unread(err).reason == ClientGone {
			gone()
		}
	}()
	return func() {
		_ = x.conn.SetReadDeadline(time.Unix(1, 0)) // wakes the goroutine
		<-done
		_ = x.conn.SetReadDeadline(time.Time{})
	}
}

// connect resolves the host, checks all its addresses and dials one of them.
func (x *exchange) connect(ctx context.Context, g grant) (net.Conn, *refusal) {
	p := x.p
	ctx, cancel := context.WithTimeoutCause(ctx, p.limits.ConnectTime, refuse(CannotConnect))
	defer cancel()
	addrs := []netip.Addr{x.target.host.Addr()}
	if !x.target.host.Addr().IsValid() {
		var err error
		addrs, err = p.config.Resolve(ctx, x.target.host.Name())
		if err != nil || len(addrs) == 0 {
			return nil, cutOr(ctx, refuse(CannotResolve))
		}
	}
	own, err := p.config.Own()
	if err != nil {
		return nil, refuseFor(RefusedAddress, errors.New("the addresses of this machine are not known"))
	}
	around := surroundings{own: own, hostKind: p.book.Load().hostKind}
	for _, addr := range addrs {
		if class, ok := around.check(x.target.host, addr, g.within); !ok {
			return nil, &refusal{reason: RefusedAddress, class: class}
		}
	}
	for i, addr := range addrs {
		// Each gets its share of the time, so that one that is silent does not
		// hide the others.
		deadline, _ := ctx.Deadline()
		try, done := context.WithTimeout(ctx, time.Until(deadline)/time.Duration(len(addrs)-i))
		conn, err := p.config.Dial(try, netip.AddrPortFrom(addr, x.target.port))
		done()
		if err == nil {
			x.record.Address = addr
			return conn, nil
		}
	}
	return nil, cutOr(ctx, refuse(CannotConnect))
}

// cutOr returns why ctx ended, or other if it has not.
func cutOr(ctx context.Context, other *refusal) *refusal {
	if ctx.Err() == nil {
		return other
	}
	if cause, ok := errors.AsType[*refusal](context.Cause(ctx)); ok {
		return cause
	}
	return refuse(ShuttingDown)
}

// answer tells the client why it was refused.
func (x *exchange) answer(refused *refusal) {
	x.answered = true
	_ = x.conn.SetWriteDeadline(time.Now().Add(x.p.limits.HeaderTime))
	switch {
	case refused.reason == ClientGone:
	case x.inside:
		_ = refused.writeHTTP(x.conn, x.target)
	case x.direct:
		x.answerDirect(refused)
	case x.record.Protocol != SOCKS5:
		_ = refused.writeHTTP(x.conn, x.target)
	case refused.reason != BadAuth && refused.reason != NoCredential: // which has been said in the greeting
		_ = writeSOCKS(x.conn, refused.reason.meaning().socks)
	}
}

const (
	lingerTime  = time.Second
	lingerBytes = 256 << 10
)

// linger lets the client read the answer: closing a connection with unread bytes
// in it takes back what is on its way.
func (x *exchange) linger() {
	half, ok := x.conn.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		return
	}
	_ = x.conn.SetReadDeadline(time.Now().Add(lingerTime))
	for left := lingerBytes; left > 0; {
		n, err := x.br.Discard(min(left, x.br.Size()))
		if left -= n; err != nil {
			return
		}
	}
}
