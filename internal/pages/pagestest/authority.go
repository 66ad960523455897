// Package pagestest holds an authority in memory: a working backend for the
// pages, with real passkeys, that tests and pictures of the pages use.
//
// It keeps the rules of the interfaces in package pages (one answer for each
// request, the digest that was shown, narrowing by a click and widening by a
// passkey) and leaves out everything else that an authority does: storage,
// tokens, the signed log.
package pagestest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net/url"
	"slices"
	"sync"
	"time"

	"vogt/internal/api"
	"vogt/internal/catalog"
	"vogt/internal/detail"
	"vogt/internal/grant"
	"vogt/internal/passkey"
	"vogt/internal/reading"
	"vogt/internal/sshkey"
	"vogt/internal/statement"

	"vogt/internal/pages"
)

// Authority is the backend. Its methods are safe for concurrent use.
type Authority struct {
	mu         sync.Mutex
	clock      func() time.Time
	issuer     string
	origin     string
	rp         *passkey.RelyingParty
	people     []*person
	agents     []*pages.Agent
	grants     []*request
	trusts     map[string]*api.Trust
	owners     map[string]string // trust to person
	sessions   map[string]*session
	logins     map[string][]byte // ceremonies
	link       *link
	links      map[string]*registration // by token
	log        []pages.Entry
	signed     int64
	broken     bool
	bearer     string
	reader     *reading.Reader
	streams    map[chan pages.Event]string
	counter    int
	silent     bool
	events     []pages.Event // the event with ID n is number n-1
	services   services
	recoveries map[string]pages.LinkView // by token
	standing   []*api.Standing           // newest last
	groups     []api.Group
	safeOff    map[string]bool // persons who have them off for all
	suggests   []api.Suggestion
	refusal    error // of the next change that is prepared
}

type person struct {
	pages.Person
	handle   []byte
	passkeys []passkey.Credential
	keys     []pages.Key
}

type session struct {
	pages.Session
	cookie  string
	agent   string
	created time.Time
	ended   bool
	token   bool
}

type request struct {
	grant.Grant
	run   *pages.Run
	needs grant.Strength
	by    []pages.Covering
}

type link struct {
	token, browser, digits string
	expires                time.Time
	confirmed, done        bool
	tries                  int
	owner                  pages.NewOwner
	ceremony               string
	session                []byte
	handle                 []byte
}

// registration is a link that makes another passkey of a person, and the
// ceremony that it was spent for.
type registration struct {
	who      *person
	expires  time.Time
	used     bool
	ceremony string
	session  []byte
}

// New makes an empty authority for pages at origin.
func New(origin string, clock func() time.Time) (*Authority, error) {
	u, err := url.Parse(origin)
	if err != nil {
		return nil, err
	}
	rp, err := passkey.New(passkey.Config{RPID: u.Hostname(), RPName: "Vogt", Origins: []string{origin}, Now: clock})
	if err != nil {
		return nil, err
	}
	return &Authority{
		clock: clock, issuer: "http://127.0.0.1:8648", rp: rp, bearer: "none", reader: reading.New(catalog.New()),
		trusts: map[string]*api.Trust{}, owners: map[string]string{}, sessions: map[string]*session{}, logins: map[string][]byte{},
		streams: map[chan pages.Event]string{}, links: map[string]*registration{}, recoveries: map[string]pages.LinkView{}, origin: origin, services: newServices(), safeOff: map[string]bool{},
	}, nil
}

// Backend returns the parts that the pages need, all of them a.
func (a *Authority) Backend() pages.Backend {
	return pages.Backend{SetUp: a, Links: a, Recoveries: a, Sessions: a, Cards: a, Decisions: a, Trusts: a, Confirms: a, People: a, Accounts: a, Removals: a, Services: a,
		Patterns: a, Previews: a, Safes: a, Groups: a, Log: a, Events: a}
}

func random() string {
	b := make([]byte, 16)
	rand.Read(b)
	return hex.EncodeToString(b)
}

// lock takes the mutex; the caller runs what it returns at the end.
func (a *Authority) lock() (unlock func()) {
	a.mu.Lock()
	return a.mu.Unlock
}

func (a *Authority) person(email string) *person {
	for _, p := range a.people {
		if p.Email == email {
			return p
		}
	}
	return nil
}

func (a *Authority) agent(email string) *pages.Agent {
	for _, g := range a.agents {
		if g.Email == email {
			return g
		}
	}
	return nil
}

func (a *Authority) request(id string) *request {
	for _, g := range a.grants {
		if g.ID == id {
			return g
		}
	}
	return nil
}

func (a *Authority) record(kind, grantID, agent, by, action string, risk detail.Risk) {
	named := func(email string) pages.Person {
		if p := a.person(email); p != nil {
			return p.Person
		}
		if g := a.agent(email); g != nil {
			return g.Person
		}
		return pages.Person{Email: email}
	}
	a.log = append(a.log, pages.Entry{Index: int64(len(a.log)), At: a.clock(), Type: kind, Grant: grantID,
		Agent: named(agent), By: named(by), Action: action, Risk: risk})
}

func (a *Authority) publish(g *request) {
	if a.silent {
		return
	}
	a.counter++
	e := pages.Event{ID: fmt.Sprint(a.counter), Grant: g.ID, Status: g.Status}
	a.events = append(a.events, e)
	for c := range a.streams {
		select {
		case c <- e:
		default:
		}
	}
}

// AddPerson makes a person without a passkey, unless there is one already.
func (a *Authority) AddPerson(email, name string) {
	defer a.lock()()
	if a.person(email) != nil {
		return
	}
	a.people = append(a.people, &person{Person: pages.Person{Email: email, Name: name}, handle: []byte(random())})
}

// AddAgent makes an agent of the first person.
func (a *Authority) AddAgent(email, name string) {
	defer a.lock()()
	owner := a.people[0].Email
	a.agents = append(a.agents, &pages.Agent{
		Person: pages.Person{Email: email, Name: name}, Owner: owner, Approver: owner, Active: true,
		Created: a.clock(), Seen: a.clock(), Keys: []pages.Key{{ID: "k-" + name, Name: name, Fingerprint: "SHA256:Qm7dTzF0Vb2h7kT3o6yLr1w0cXh8pSx9eJ4aYk0Xw1g", Created: a.clock()}},
	})
}

// SignIn makes a session without a passkey, for tests that speak HTTP. spki is
// the key that it registers.
func (a *Authority) SignIn(email string, spki []byte) (cookie, id string) {
	defer a.lock()()
	s := a.start(a.person(email).Person, spki, "test")
	return s.cookie, s.ID
}

// AddToken makes a token of the person on a machine.
func (a *Authority) AddToken(email, name string) {
	defer a.lock()()
	s := a.start(a.person(email).Person, nil, name)
	s.token = true
}

// AddKey gives the person an SSH key.
func (a *Authority) AddKey(email string, k pages.Key) {
	defer a.lock()()
	p := a.person(email)
	p.keys = append(p.keys, k)
}

func (a *Authority) start(p pages.Person, spki []byte, agent string) *session {
	s := &session{Session: pages.Session{ID: random(), Person: p, ProofKey: spki}, cookie: random(), agent: agent, created: a.clock()}
	a.sessions[s.cookie] = s
	return s
}

// EndAll ends every session, as signing out elsewhere does.
func (a *Authority) EndAll() {
	defer a.lock()()
	for _, s := range a.sessions {
		s.ended = true
	}
}

// Ask creates a pending request and returns its id.
func (a *Authority) Ask(r grant.Request, risk detail.Risk) string {
	defer a.lock()()
	agent := a.agent(r.Requester)
	now := grant.At(a.clock())
	g := &request{needs: grant.Click, Grant: grant.Grant{
		ID: "g-" + random()[:12], Epoch: 1, Nonce: random(), Request: r, Requester: grant.Requester{KeyID: agent.Keys[0].ID, Generation: 1},
		Owner: agent.Owner, Approver: agent.Approver, Risk: risk, Status: grant.Pending, Type: r.Type, Created: now, ValidUntil: now + grant.Millis(30*time.Minute/time.Millisecond),
	}}
	if risk == detail.Critical || risk == detail.Unrated {
		g.needs = grant.Passkey
	}
	a.grants = append(a.grants, g)
	a.record("request", g.ID, r.Requester, r.Requester, firstLine(r), risk)
	a.publish(g)
	return g.ID
}

func firstLine(r grant.Request) string {
	line := ""
	for i, w := range r.Command {
		if i > 0 {
			line += " "
		}
		line += w
	}
	return line
}

// Require sets the strength that a request needs.
func (a *Authority) Require(id string, needs grant.Strength) {
	defer a.lock()()
	a.request(id).needs = needs
}

// Wait sets when a request was made and how long it waits.
func (a *Authority) Wait(id string, created, until time.Time) {
	defer a.lock()()
	g := a.request(id)
	g.Created, g.ValidUntil = grant.At(created), grant.At(until)
}

// Silence keeps changes from the open event streams.
func (a *Authority) Silence(yes bool) {
	defer a.lock()()
	a.silent = yes
}

// Join makes identical requests join one.
func (a *Authority) Join(id string, n int64) {
	defer a.lock()()
	a.request(id).Joined = n
}

// Disturb changes the statement of a pending request behind the pages' back.
func (a *Authority) Disturb(id string) {
	defer a.lock()()
	g := a.request(id)
	g.Nonce = random()
	a.publish(g)
}

// Apply does to a request what happens elsewhere: an answer on another
// device, a use, a withdrawal.
func (a *Authority) Apply(id string, events ...grant.Event) error {
	defer a.lock()()
	g := a.request(id)
	for _, ev := range events {
		next, err := g.Apply(ev)
		if err != nil {
			return err
		}
		g.Grant = next
		if _, used := ev.(grant.Consume); used {
			g.run = &pages.Run{At: a.clock(), Duration: 1200 * time.Millisecond}
			a.record("outcome", id, g.Request.Requester, g.Request.Requester, "exit 0", 0)
		}
	}
	a.publish(g)
	return nil
}

// Grant returns a request as it stands.
func (a *Authority) Grant(id string) grant.Grant {
	defer a.lock()()
	return a.request(id).As(grant.At(a.clock()))
}

// SetLog sets how many records are signed and whether the log verifies.
func (a *Authority) SetLog(signed int64, broken bool) {
	defer a.lock()()
	a.signed, a.broken = signed, broken
}

// NewTrust prepares a change that nobody of the pages asked for, as a terminal
// does, and returns its id.
func (a *Authority) NewTrust(n pages.NewTrust) string {
	id, err := a.PrepareTrust(context.Background(), pages.Session{Person: a.people[0].Person}, n)
	if err != nil {
		panic(err)
	}
	return id
}

// RegisterLink makes a registration link of the person, as a confirmed change of
// trust does, and returns its token.
func (a *Authority) RegisterLink(email string) string {
	defer a.lock()()
	return a.registerLink(a.person(email))
}

func (a *Authority) registerLink(p *person) string {
	token := random()
	a.links[token] = &registration{who: p, expires: a.clock().Add(10 * time.Minute)}
	return token
}

// AddRecovery makes a recovery of the person that may be used from ready on, and
// returns its token.
func (a *Authority) AddRecovery(email string, ready time.Time) string {
	defer a.lock()()
	token := random()
	a.recoveries[token] = pages.LinkView{Person: a.person(email).Person, Expires: ready}
	return token
}

// Recovery implements pages.Recoveries.
func (a *Authority) Recovery(_ context.Context, token string) (pages.LinkView, error) {
	defer a.lock()()
	v, ok := a.recoveries[token]
	switch {
	case !ok:
		return v, pages.ErrNotFound
	case a.clock().Before(v.Expires):
		return v, pages.ErrWaits
	}
	return v, nil
}

// Passkeys counts the passkeys of the person.
func (a *Authority) Passkeys(email string) int {
	defer a.lock()()
	return len(a.person(email).passkeys)
}

// AddPasskey lets email use a passkey that was made elsewhere.
func (a *Authority) AddPasskey(email string, c passkey.Credential) {
	defer a.lock()()
	p := a.person(email)
	p.passkeys = append(p.passkeys, c)
}

// ProofKey is the key of the person's newest session.
func (a *Authority) ProofKey(email string) (spki []byte) {
	defer a.lock()()
	var newest time.Time
	for _, s := range a.sessions {
		if s.Person.Email == email && !s.created.Before(newest) && !s.token {
			newest, spki = s.created, s.ProofKey
		}
	}
	return spki
}

// Streams counts the open event streams.
func (a *Authority) Streams() int {
	defer a.lock()()
	return len(a.streams)
}

// DropStreams ends every open event stream, as a restart does.
func (a *Authority) DropStreams() {
	defer a.lock()()
	for c := range a.streams {
		close(c)
		delete(a.streams, c)
	}
}

// statementOf is what an answer of that reach would sign.
func (a *Authority) statementOf(g *request, t grant.Type, expires int64) statement.Statement {
	text := func(s string) *string { return &s }
	one, generation := uint64(1), g.Requester.Generation
	st := statement.Statement{
		Purpose: statement.Run, Issuer: a.issuer, IssuerKeyID: text("ed25519-3f0a"), Epoch: g.Epoch, GrantID: g.ID, Nonce: g.Nonce,
		Requester: text(g.Request.Requester), RequesterKey: text(g.Requester.KeyID), Generation: &generation, Owner: text(g.Owner),
		GrantType: string(t), Argv: g.Request.Command,
	}
	if g.Request.Connect != nil {
		st.Purpose = statement.Connect
	}
	if g.Request.Reason != "" {
		st.Reason = text(g.Request.Reason)
	}
	if g.Request.RunAs != "" {
		st.RunAsName = text(g.Request.RunAs)
	}
	if c := g.Request.Context; c != nil {
		st.Cwd, st.Executable, st.CallerUID, st.Stdin = c.Cwd, c.File, c.UID, c.Stdin
		st.Confinement, st.NetworkMode = c.Confinement, c.NetworkMode
	}
	switch t {
	case grant.Once:
		end := uint64(g.ValidUntil.Seconds())
		st.Uses, st.Expiry = &one, &end
	case grant.Timed:
		end := uint64(expires)
		st.Expiry = &end
	}
	return st
}

func (a *Authority) offers(g *request) []pages.Offer {
	stronger := func(s grant.Strength) grant.Strength {
		if g.needs.AtLeast(s) {
			return g.needs
		}
		return s
	}
	out := []pages.Offer{{Type: grant.Once, Statement: a.statementOf(g, grant.Once, 0), Needs: g.needs}}
	if g.Request.RunAs != "" {
		return out
	}
	// Ends are rounded up to a minute, so that a page that is read again
	// shows the same digest for a while.
	for _, d := range []time.Duration{time.Hour, 8 * time.Hour} {
		end := a.clock().Add(d).Truncate(time.Minute).Add(time.Minute).Unix()
		out = append(out, pages.Offer{Type: grant.Timed, Duration: d, Statement: a.statementOf(g, grant.Timed, end), Needs: g.needs})
	}
	return append(out, pages.Offer{Type: grant.Always, Statement: a.statementOf(g, grant.Always, 0), Needs: stronger(grant.Passkey)})
}

func fingerprint(line string) string {
	k, err := sshkey.ParsePublic(line)
	if err != nil {
		return ""
	}
	return k.Fingerprint()
}

func (a *Authority) mine(s pages.Session, g *request) bool {
	return g != nil && (g.Approver == s.Person.Email || g.Owner == s.Person.Email)
}

func (a *Authority) pending(email string) (out []*request) {
	now := grant.At(a.clock())
	for _, g := range a.grants {
		if g.Approver == email && g.As(now).Status == grant.Pending {
			out = append(out, g)
		}
	}
	slices.SortStableFunc(out, func(x, y *request) int { return int(x.Created - y.Created) })
	return out
}
