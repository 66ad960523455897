package pagestest

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"time"

	"vogt/internal/api"
	"vogt/internal/flow"
	"vogt/internal/grant"
	"vogt/internal/passkey"
	"vogt/internal/statement"

	"vogt/internal/pages"
)

// SetUpLink makes a set-up link; an earlier one ends.
func (a *Authority) SetUpLink() (token string) {
	defer a.lock()()
	a.link = &link{token: random(), expires: a.clock().Add(10 * time.Minute)}
	return a.link.token
}

// Digits returns what the page shows, or "" before it was opened.
func (a *Authority) Digits() string {
	defer a.lock()()
	return a.link.digits
}

// TypeDigits is the terminal. Three wrong ones void the link.
func (a *Authority) TypeDigits(digits string) error {
	defer a.lock()()
	if a.link.digits == "" || a.link.tries >= 3 {
		return pages.ErrExpired
	}
	if digits != a.link.digits {
		a.link.tries++
		return errors.New("wrong digits")
	}
	a.link.confirmed = true
	return nil
}

// OpenSetUp implements pages.SetUp.
func (a *Authority) OpenSetUp(_ context.Context, token, browser string) (pages.SetUpView, error) {
	defer a.lock()()
	l := a.link
	if l == nil || l.token != token || !a.clock().Before(l.expires) || l.tries >= 3 {
		return pages.SetUpView{State: pages.SetUpExpired}, nil
	}
	if l.browser == "" {
		l.browser, l.digits = browser, "4471"
	}
	view := pages.SetUpView{State: pages.SetUpOpened, Digits: l.digits, Expires: l.expires}
	switch {
	case l.browser != browser:
		return pages.SetUpView{State: pages.SetUpElsewhere}, nil
	case l.done:
		view = pages.SetUpView{State: pages.SetUpDone}
	case l.confirmed:
		view.State, view.Digits = pages.SetUpConfirmed, ""
	}
	return view, nil
}

// BeginSetUp implements pages.SetUp.
func (a *Authority) BeginSetUp(_ context.Context, o pages.NewOwner) (pages.Ceremony, error) {
	defer a.lock()()
	l := a.link
	if l == nil || l.token != o.Token || l.browser != o.Browser || !l.confirmed || l.done {
		return pages.Ceremony{}, pages.ErrExpired
	}
	l.owner, l.ceremony, l.handle = o, random(), []byte(random())
	options, kept, err := a.rp.BeginRegistration(passkey.User{ID: l.handle, Name: o.Email, DisplayName: o.Name}, nil)
	l.session = kept
	return pages.Ceremony{ID: l.ceremony, Options: options}, err
}

// FinishSetUp implements pages.SetUp.
func (a *Authority) FinishSetUp(_ context.Context, p pages.NewPasskey) (pages.SignedIn, error) {
	defer a.lock()()
	l := a.link
	if l == nil || l.token != p.Token || l.browser != p.Browser || l.ceremony != p.Ceremony || l.session == nil || l.done {
		return pages.SignedIn{}, pages.ErrExpired
	}
	kept := l.session
	l.session = nil
	user := passkey.User{ID: l.handle, Name: l.owner.Email, DisplayName: l.owner.Name}
	made, err := a.rp.FinishRegistration(user, kept, p.Response)
	if err != nil {
		return pages.SignedIn{}, errors.Join(pages.ErrProof, err)
	}
	l.done = true
	a.people = append(a.people, &person{Person: pages.Person{Email: l.owner.Email, Name: l.owner.Name}, handle: l.handle, passkeys: []passkey.Credential{made}})
	return a.signedIn(l.owner.Email, p), nil
}

func (a *Authority) signedIn(email string, p pages.NewPasskey) pages.SignedIn {
	s := a.start(a.person(email).Person, p.ProofKey, p.Agent)
	a.record("login", "", "", email, "passkey", 0)
	return pages.SignedIn{Cookie: s.cookie, Session: s.Session, Expires: a.clock().Add(12 * time.Hour)}
}

// Link implements pages.Links.
func (a *Authority) Link(_ context.Context, token string) (pages.LinkView, error) {
	defer a.lock()()
	l, err := a.openLink(token)
	if err != nil {
		return pages.LinkView{}, err
	}
	return pages.LinkView{Person: l.who.Person, Expires: l.expires}, nil
}

func (a *Authority) openLink(token string) (*registration, error) {
	l := a.links[token]
	switch {
	case l == nil || !a.clock().Before(l.expires):
		return nil, pages.ErrExpired
	case l.used:
		return nil, pages.ErrUsed
	}
	return l, nil
}

func (p *person) user() passkey.User {
	return passkey.User{ID: p.handle, Name: p.Email, DisplayName: p.Name}
}

// BeginRegister implements pages.Links.
func (a *Authority) BeginRegister(_ context.Context, token string) (pages.Ceremony, error) {
	defer a.lock()()
	l, err := a.openLink(token)
	if err != nil {
		return pages.Ceremony{}, err
	}
	options, kept, err := a.rp.BeginRegistration(l.who.user(), l.who.passkeys)
	l.used, l.ceremony, l.session = true, random(), kept
	return pages.Ceremony{ID: l.ceremony, Options: options}, err
}

// FinishRegister implements pages.Links.
func (a *Authority) FinishRegister(_ context.Context, p pages.NewPasskey) (pages.SignedIn, error) {
	defer a.lock()()
	for _, l := range a.links {
		if l.ceremony != p.Ceremony || l.session == nil {
			continue
		}
		kept := l.session
		l.session = nil
		made, err := a.rp.FinishRegistration(l.who.user(), kept, p.Response)
		if err != nil {
			return pages.SignedIn{}, errors.Join(pages.ErrProof, err)
		}
		l.who.passkeys = append(l.who.passkeys, made)
		a.record("trust", "", l.who.Email, l.who.Email, "passkey.added", 0)
		return a.signedIn(l.who.Email, p), nil
	}
	return pages.SignedIn{}, pages.ErrExpired
}

// ForgetCeremonies ends the dialogues that are open, as their time limit does.
func (a *Authority) ForgetCeremonies() {
	defer a.lock()()
	for _, l := range a.links {
		l.session = nil
	}
}

// Session implements pages.Sessions.
func (a *Authority) Session(_ context.Context, cookie string) (pages.Session, error) {
	defer a.lock()()
	s := a.sessions[cookie]
	if s == nil || s.ended || s.token {
		return pages.Session{}, pages.ErrNoSession
	}
	return s.Session, nil
}

// BeginLogin implements pages.Sessions.
func (a *Authority) BeginLogin(context.Context) (pages.Ceremony, error) {
	defer a.lock()()
	options, kept, err := a.rp.BeginLogin()
	id := random()
	a.logins[id] = kept
	return pages.Ceremony{ID: id, Options: options}, err
}

// FinishLogin implements pages.Sessions.
func (a *Authority) FinishLogin(_ context.Context, p pages.NewPasskey) (pages.SignedIn, error) {
	defer a.lock()()
	kept := a.logins[p.Ceremony]
	delete(a.logins, p.Ceremony)
	if kept == nil {
		return pages.SignedIn{}, pages.ErrExpired
	}
	handle, _, err := a.rp.FinishLogin(kept, p.Response, func(_, handle []byte) (passkey.User, []passkey.Credential, error) {
		for _, who := range a.people {
			if string(who.handle) == string(handle) {
				return passkey.User{ID: who.handle, Name: who.Email, DisplayName: who.Name}, who.passkeys, nil
			}
		}
		return passkey.User{}, nil, nil
	})
	if err != nil {
		return pages.SignedIn{}, errors.Join(pages.ErrProof, err)
	}
	for _, who := range a.people {
		if string(who.handle) == string(handle) {
			return a.signedIn(who.Email, p), nil
		}
	}
	return pages.SignedIn{}, pages.ErrProof
}

// EndSession implements pages.Sessions.
func (a *Authority) EndSession(_ context.Context, s pages.Session, id string) error {
	defer a.lock()()
	for _, other := range a.sessions {
		if other.ID == id && other.Person.Email == s.Person.Email && !other.ended {
			other.ended = true
			return nil
		}
	}
	return pages.ErrNotFound
}

// Inbox implements pages.Cards.
func (a *Authority) Inbox(_ context.Context, s pages.Session, limit int) (pages.Inbox, error) {
	defer a.lock()()
	waiting := a.pending(s.Person.Email)
	in := pages.Inbox{Total: len(waiting)}
	for _, g := range waiting[:min(limit, len(waiting))] {
		in.Rows = append(in.Rows, pages.Waiting{Grant: g.Grant, Agent: a.agent(g.Request.Requester).Person})
	}
	return in, nil
}

// Card implements pages.Cards.
func (a *Authority) Card(_ context.Context, s pages.Session, id string) (pages.Card, error) {
	defer a.lock()()
	g := a.request(id)
	if !a.mine(s, g) {
		return pages.Card{}, pages.ErrNotFound
	}
	c := pages.Card{Grant: g.Grant, Agent: a.agent(g.Request.Requester).Person, Statement: a.statementOf(g, grant.Once, 0), Run: g.run}
	if read, err := flow.Read(a.reader, g.Request); err == nil {
		c.Reading, c.HostKind = &read.Reading, read.Kind
	}
	if g.As(grant.At(a.clock())).Status == grant.Pending {
		c.Offers, c.Covered = a.offers(g), g.by
	}
	if d := g.Decision; d != nil {
		c.Decider = a.named(d.By)
	}
	if g.RevokedBy != "" {
		c.Revoker = a.named(g.RevokedBy)
	}
	return c, nil
}

// Permissions implements pages.Cards.
func (a *Authority) Permissions(_ context.Context, s pages.Session, agent string, limit int) (out []grant.Grant, err error) {
	defer a.lock()()
	for _, r := range slices.Backward(a.grants) {
		g := r.As(grant.At(a.clock()))
		if a.mine(s, r) && g.Request.Requester == agent && g.Status == grant.Approved && g.Type != grant.Once && len(out) < limit {
			out = append(out, g)
		}
	}
	return out, nil
}

func (a *Authority) named(email string) pages.Person {
	if p := a.person(email); p != nil {
		return p.Person
	}
	if g := a.agent(email); g != nil {
		return g.Person
	}
	return pages.Person{Email: email}
}

// BeginDecision implements pages.Decisions.
func (a *Authority) BeginDecision(_ context.Context, s pages.Session, c pages.Choice) (json.RawMessage, error) {
	defer a.lock()()
	g := a.request(c.Grant)
	if !a.mine(s, g) {
		return nil, pages.ErrNotFound
	}
	if g.As(grant.At(a.clock())).Status != grant.Pending {
		return nil, pages.ErrClosed
	}
	if a.statementOf(g, c.Type, c.Expires).Digest() != c.Digest {
		return nil, pages.ErrChanged
	}
	return a.rp.BeginDecision(c.Digest, a.person(s.Person.Email).passkeys)
}

// Decide implements pages.Decisions.
func (a *Authority) Decide(_ context.Context, s pages.Session, d pages.Decision) error {
	defer a.lock()()
	g, now := a.request(d.Grant), a.clock()
	if !a.mine(s, g) {
		return pages.ErrNotFound
	}
	if g.As(grant.At(now)).Status != grant.Pending {
		return pages.ErrClosed
	}
	if a.statementOf(g, d.Type, d.Expires).Digest() != d.Digest {
		return pages.ErrChanged
	}
	strength := grant.Click
	if d.Assertion != nil {
		if _, err := a.rp.VerifyDecision(d.Digest, a.person(s.Person.Email).passkeys, d.Assertion); err != nil {
			return errors.Join(pages.ErrProof, err)
		}
		strength = grant.Passkey
	}
	evidence, err := json.Marshal(d.Click)
	if err != nil {
		return err
	}
	answer := grant.Decision{By: s.Person.Email, At: grant.At(now), Strength: strength, Note: d.Note, Digest: d.Digest, Evidence: evidence}
	var ev grant.Event = grant.Deny{Decision: answer}
	if d.Allow {
		needs := g.needs
		if d.Type == grant.Always {
			needs = grant.Passkey
		}
		if !strength.AtLeast(needs) {
			return pages.ErrProof
		}
		until := grant.Millis(0)
		switch d.Type {
		case grant.Once:
			until = g.ValidUntil
		case grant.Timed:
			until = grant.Millis(d.Expires * 1000)
		}
		ev = grant.Approve{Decision: answer, Type: d.Type, Until: until}
	}
	next, err := g.Apply(ev)
	if err != nil {
		return errors.Join(pages.ErrClosed, err)
	}
	g.Grant = next
	a.record("decision", g.ID, g.Request.Requester, s.Person.Email, firstLine(g.Request), g.Risk)
	a.publish(g)
	return nil
}

// Revoke implements pages.Decisions.
func (a *Authority) Revoke(_ context.Context, s pages.Session, id string) error {
	defer a.lock()()
	g := a.request(id)
	if !a.mine(s, g) {
		return pages.ErrNotFound
	}
	next, err := g.Apply(grant.Revoke{By: s.Person.Email, At: grant.At(a.clock())})
	if err != nil {
		return errors.Join(pages.ErrClosed, err)
	}
	g.Grant = next
	a.record("revoke", g.ID, g.Request.Requester, s.Person.Email, firstLine(g.Request), 0)
	a.publish(g)
	return nil
}

// PrepareTrust implements pages.Trusts.
func (a *Authority) PrepareTrust(_ context.Context, s pages.Session, n pages.NewTrust) (string, error) {
	defer a.lock()()
	if err := a.refusal; err != nil {
		a.refusal = nil
		return "", err
	}
	id := "t-" + random()[:12]
	st := statement.Statement{
		Purpose: statement.Trust, Issuer: a.issuer, Epoch: 1, GrantID: id, Nonce: random(), Owner: &s.Person.Email,
		GrantType: n.Operation, Hints: []string{},
	}
	for _, k := range []string{"agents", "days", "email", "id", "name", "pattern", "public_key", "reason", "safe"} {
		if v := n.Params[k]; v != "" {
			st.Hints = append(st.Hints, k+"="+v)
		}
	}
	d := st.Digest()
	a.trusts[id] = &api.Trust{ID: id, Operation: n.Operation, Params: n.Params, Status: "pending", Statement: &st, Digest: &d, ExpiresAt: a.clock().Add(10 * time.Minute).Unix()}
	a.owners[id] = s.Person.Email
	return id, nil
}

func (a *Authority) trust(s pages.Session, id string) (*api.Trust, error) {
	t := a.trusts[id]
	if t == nil || a.owners[id] != s.Person.Email {
		return nil, pages.ErrNotFound
	}
	return t, nil
}

// Trust implements pages.Trusts.
func (a *Authority) Trust(_ context.Context, s pages.Session, id string) (api.Trust, error) {
	defer a.lock()()
	t, err := a.trust(s, id)
	if err != nil {
		return api.Trust{}, err
	}
	return *t, nil
}

func (a *Authority) open(s pages.Session, id string) (*api.Trust, error) {
	t, err := a.trust(s, id)
	if err == nil && (t.Status != "pending" || a.clock().Unix() >= t.ExpiresAt) {
		return nil, pages.ErrClosed
	}
	return t, err
}

// BeginConfirm implements pages.Confirms.
func (a *Authority) BeginConfirm(_ context.Context, s pages.Session, id string, d statement.Digest) (json.RawMessage, error) {
	defer a.lock()()
	t, err := a.open(s, id)
	if err != nil {
		return nil, err
	}
	if *t.Digest != d {
		return nil, pages.ErrChanged
	}
	return a.rp.BeginDecision(d, a.person(s.Person.Email).passkeys)
}

// Confirm implements pages.Confirms.
func (a *Authority) Confirm(_ context.Context, s pages.Session, answer pages.TrustAnswer) (link string, err error) {
	defer a.lock()()
	t, err := a.open(s, answer.ID)
	if err != nil {
		return "", err
	}
	if *t.Digest != answer.Digest {
		return "", pages.ErrChanged
	}
	me := a.person(s.Person.Email)
	if _, err := a.rp.VerifyDecision(answer.Digest, me.passkeys, answer.Assertion); err != nil {
		return "", errors.Join(pages.ErrProof, err)
	}
	print := fingerprint(t.Params["public_key"])
	for _, k := range me.keys {
		if print != "" && k.Fingerprint == print {
			return "", pages.ErrTaken
		}
	}
	t.Status = "confirmed"
	switch t.Operation {
	case api.TrustAgentAdd:
		name := t.Params["name"]
		a.agents = append(a.agents, &pages.Agent{Person: pages.Person{Email: name + "@agents", Name: name}, Owner: s.Person.Email, Approver: s.Person.Email, Active: true, Created: a.clock(),
			Keys: []pages.Key{{ID: random(), Name: name, Fingerprint: print, Created: a.clock()}}})
	case api.TrustKeyAdd:
		me.keys = append(me.keys, pages.Key{ID: random(), Name: "key", Fingerprint: print, Created: a.clock()})
	case api.TrustPasskeyAdd:
		link = a.origin + "/register?token=" + a.registerLink(me)
	case api.TrustAgentResume:
		for _, g := range a.agents {
			if g.Email == t.Params["email"] || t.Params["email"] == "" {
				g.Paused = false
			}
		}
	default:
		if err := a.confirmPattern(s.Person.Email, t.Operation, t.Params); err != nil {
			t.Status = "pending"
			return "", err
		}
	}
	a.record("trust", "", "", s.Person.Email, t.Operation, 0)
	return link, nil
}

// Decline implements pages.Confirms.
func (a *Authority) Decline(_ context.Context, s pages.Session, id string) error {
	defer a.lock()()
	t, err := a.open(s, id)
	if err != nil {
		return err
	}
	t.Status = "declined"
	return nil
}

// Agents implements pages.People.
func (a *Authority) Agents(_ context.Context, s pages.Session) (out []pages.Agent, err error) {
	defer a.lock()()
	for _, active := range []bool{true, false} {
		for _, g := range a.agents {
			if g.Active != active || g.Owner != s.Person.Email {
				continue
			}
			agent := *g
			for _, w := range a.pending(s.Person.Email) {
				if w.Request.Requester == g.Email {
					agent.Waiting++
				}
			}
			out = append(out, agent)
		}
	}
	return out, nil
}

// ChangeAgent implements pages.People.
func (a *Authority) ChangeAgent(_ context.Context, s pages.Session, email string, act pages.AgentAct) error {
	defer a.lock()()
	g := a.agent(email)
	if g == nil || g.Owner != s.Person.Email {
		return pages.ErrNotFound
	}
	switch act {
	case pages.PauseAgent:
		g.Paused = true
	case pages.RemoveAgent:
		g.Active = false
	}
	a.record("trust", "", email, s.Person.Email, string(act), 0)
	return nil
}

// Panic implements pages.People.
func (a *Authority) Panic(_ context.Context, s pages.Session) (api.PanicResult, error) {
	defer a.lock()()
	var r api.PanicResult
	for _, g := range a.agents {
		if g.Active && !g.Paused {
			g.Paused = true
			r.Agents++
			r.Tokens++
		}
	}
	for _, g := range a.grants {
		if next, err := g.Apply(grant.Revoke{By: s.Person.Email, At: grant.At(a.clock())}); err == nil {
			g.Grant = next
			r.Grants++
			a.publish(g)
		}
	}
	a.record("panic", "", "", s.Person.Email, "", 0)
	return r, nil
}

// Account implements pages.Accounts.
func (a *Authority) Account(_ context.Context, s pages.Session) (pages.Account, error) {
	defer a.lock()()
	p := a.person(s.Person.Email)
	out := pages.Account{Keys: p.keys, Sessions: a.services.sessions[p.Email], Consents: a.services.consents[p.Email]}
	for i, c := range p.passkeys {
		out.Passkeys = append(out.Passkeys, pages.Key{ID: credentialID(c), Name: "Passkey " + strconv.Itoa(i+1), Created: a.clock(), Used: a.clock()})
	}
	for _, other := range a.sessions {
		if other.Person.Email == s.Person.Email && !other.ended {
			out.SignIns = append(out.SignIns, pages.SignIn{ID: other.ID, Name: other.agent, Token: other.token, Created: other.created, Seen: a.clock()})
		}
	}
	slices.SortFunc(out.SignIns, func(x, y pages.SignIn) int { return x.Created.Compare(y.Created) })
	return out, nil
}

func credentialID(c passkey.Credential) string { return base64.RawURLEncoding.EncodeToString(c.ID) }

// ways counts what the person can decide with.
func (p *person) ways() int {
	n := len(p.passkeys)
	for _, k := range p.keys {
		if !k.LoginOnly {
			n++
		}
	}
	return n
}

// RemovePasskey implements pages.Removals.
func (a *Authority) RemovePasskey(_ context.Context, s pages.Session, id string) error {
	defer a.lock()()
	p := a.person(s.Person.Email)
	i := slices.IndexFunc(p.passkeys, func(c passkey.Credential) bool { return credentialID(c) == id })
	switch {
	case i < 0:
		return pages.ErrNotFound
	case p.ways() == 1:
		return pages.ErrLastWay
	}
	p.passkeys = slices.Delete(p.passkeys, i, i+1)
	a.record("trust", "", p.Email, p.Email, "passkey.removed", 0)
	return nil
}

// RemoveKey implements pages.Removals.
func (a *Authority) RemoveKey(_ context.Context, s pages.Session, id string) error {
	defer a.lock()()
	p := a.person(s.Person.Email)
	i := slices.IndexFunc(p.keys, func(k pages.Key) bool { return k.ID == id })
	switch {
	case i < 0:
		return pages.ErrNotFound
	case p.ways() == 1 && !p.keys[i].LoginOnly:
		return pages.ErrLastWay
	}
	p.keys = slices.Delete(p.keys, i, i+1)
	a.record("trust", "", p.Email, p.Email, "key.removed", 0)
	return nil
}

// Protection implements pages.Accounts.
func (a *Authority) Protection(context.Context) (pages.Protection, error) {
	defer a.lock()()
	return pages.Protection{Enforcement: "advisory", Loopback: true, Bearer: a.bearer}, nil
}

// Entries implements pages.Log.
func (a *Authority) Entries(_ context.Context, _ pages.Session, q pages.LogQuery) (out []pages.Entry, err error) {
	defer a.lock()()
	for _, e := range slices.Backward(a.log) {
		if (q.Before == 0 || e.Index < q.Before) && (q.Grant == "" || e.Grant == q.Grant) && len(out) < q.Limit {
			out = append(out, e)
		}
	}
	return out, nil
}

// LogState implements pages.Log.
func (a *Authority) LogState(context.Context) (pages.LogState, error) {
	defer a.lock()()
	st := pages.LogState{Size: int64(len(a.log)), Signed: a.signed, Broken: a.broken}
	if a.signed > 0 {
		st.CheckpointAt = a.clock()
	}
	return st, nil
}

// Subscribe implements pages.Events.
func (a *Authority) Subscribe(ctx context.Context, s pages.Session, after string) (<-chan pages.Event, error) {
	defer a.lock()()
	c := make(chan pages.Event, 64)
	if n, err := strconv.Atoi(after); err == nil && n <= len(a.events) {
		for _, e := range a.events[n:] {
			c <- e
		}
	}
	a.streams[c] = s.Person.Email
	context.AfterFunc(ctx, func() {
		defer a.lock()()
		if _, open := a.streams[c]; open {
			delete(a.streams, c)
			close(c)
		}
	})
	return c, nil
}
