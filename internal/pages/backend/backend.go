// Package backend connects the pages to the authority: it turns a signed-in
// session into an actor, the authority's answers into what the pages show, and
// its errors into theirs.
//
// It owns nothing but this translation. Every rule is the authority's.
package backend

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"time"

	"vogt/internal/api"
	"vogt/internal/authority"
	"vogt/internal/grant"
	"vogt/internal/pages"
	"vogt/internal/reading"
	"vogt/internal/statement"
	"vogt/internal/store"
)

// New returns the pages' backend over a. Bearer is the bearer_decisions switch
// as written.
func New(a *authority.Authority, bearer string) pages.Backend {
	b := &backend{a: a, bearer: bearer}
	return pages.Backend{
		SetUp: b, Links: b, Recoveries: b, Sessions: b, Cards: b, Decisions: b, Trusts: b, Confirms: b, People: b, Accounts: b, Removals: b, Services: b,
		Patterns: b, Previews: b, Safes: b, Groups: b, Log: b, Events: b,
	}
}

type backend struct {
	a      *authority.Authority
	bearer string
}

// translate turns an error of the authority into one that the pages know.
func translate(err error) error {
	var e *authority.Error
	if !errors.As(err, &e) {
		return err
	}
	as := map[int]error{
		400: pages.ErrInvalid, 401: pages.ErrNoSession, 403: pages.ErrForbidden, 404: pages.ErrNotFound,
		409: pages.ErrClosed, 410: pages.ErrExpired, 429: pages.ErrForbidden,
	}[e.Status]
	switch e.Kind {
	case "statement_changed":
		as = pages.ErrChanged
	case "taken":
		as = pages.ErrTaken
	case "recovery_waits":
		as = pages.ErrWaits
	case "link_used":
		as = pages.ErrUsed
	case "last_way":
		as = pages.ErrLastWay
	case "no_passkey":
		as = pages.ErrNoPasskey
	}
	if as == nil {
		return err
	}
	return fmt.Errorf("%w: %s", as, e.Error())
}

// proof is translate for answers, where a refused proof has a page of its own.
func proof(err error) error {
	err = translate(err)
	if errors.Is(err, pages.ErrForbidden) {
		return fmt.Errorf("%w: %s", pages.ErrProof, err.Error())
	}
	if errors.Is(err, pages.ErrExpired) {
		return fmt.Errorf("%w: %s", pages.ErrClosed, err.Error())
	}
	return err
}

// actor reads the session anew, so that a person who was deactivated between
// two steps of a request is noticed. Proven says that this call was signed.
func (b *backend) actor(ctx context.Context, s pages.Session, proven bool) (authority.Actor, error) {
	a, err := b.a.SessionActor(ctx, s.ID)
	a.Proven = proven
	return a, translate(err)
}

// person also names those who act without being principals.
func person(p store.Principal) pages.Person {
	switch p.Email {
	case authority.ManagementName:
		return pages.Person{Email: pages.Management}
	case authority.AnonymousName:
		return pages.Person{Email: pages.Anonymous}
	}
	return pages.Person{Email: p.Email, Name: p.Name}
}

// Session implements pages.Sessions.
func (b *backend) Session(ctx context.Context, cookie string) (pages.Session, error) {
	a, err := b.a.AuthenticateSession(ctx, cookie)
	if err != nil {
		return pages.Session{}, translate(err)
	}
	return session(a), nil
}

func session(a authority.Actor) pages.Session {
	return pages.Session{ID: a.Session.ID, Person: person(a.Principal), ProofKey: a.Session.ProofKey}
}

func (b *backend) signedIn(ctx context.Context, cookie string, err error) (pages.SignedIn, error) {
	if err != nil {
		return pages.SignedIn{}, translate(err)
	}
	a, err := b.a.AuthenticateSession(ctx, cookie)
	if err != nil {
		return pages.SignedIn{}, translate(err)
	}
	return pages.SignedIn{Cookie: cookie, Session: session(a), Expires: time.UnixMilli(a.Session.Expires)}, nil
}

func ceremony(options []byte, id string, err error) (pages.Ceremony, error) {
	if err != nil {
		return pages.Ceremony{}, translate(err)
	}
	return pages.Ceremony{ID: id, Options: options}, nil
}

// BeginLogin implements pages.Sessions.
func (b *backend) BeginLogin(context.Context) (pages.Ceremony, error) {
	return ceremony(b.a.PasskeyLoginOptions())
}

// FinishLogin implements pages.Sessions.
func (b *backend) FinishLogin(ctx context.Context, p pages.NewPasskey) (pages.SignedIn, error) {
	cookie, err := b.a.PasskeyLogin(ctx, p.Ceremony, p.Response, p.ProofKey, p.Agent)
	return b.signedIn(ctx, cookie, err)
}

// EndSession implements pages.Sessions.
func (b *backend) EndSession(ctx context.Context, s pages.Session, id string) error {
	a, err := b.actor(ctx, s, true)
	if err != nil {
		return err
	}
	return translate(b.a.SignOut(ctx, a, id))
}

// OpenSetUp implements pages.SetUp.
func (b *backend) OpenSetUp(ctx context.Context, token, browser string) (pages.SetUpView, error) {
	if has, err := b.a.HasOwner(ctx); err != nil {
		return pages.SetUpView{}, translate(err)
	} else if has {
		return pages.SetUpView{State: pages.SetUpDone}, nil
	}
	v, err := b.a.OpenSetup(token, browser)
	view := pages.SetUpView{Expires: v.Ends}
	switch {
	case v.State == authority.SetupElsewhere:
		view.State = pages.SetUpElsewhere
	case err != nil:
		view.State = pages.SetUpExpired
	case v.State == authority.SetupOpened:
		view.State, view.Digits = pages.SetUpOpened, v.Digits
	case v.State == authority.SetupConfirmed:
		view.State = pages.SetUpConfirmed
	case v.State == authority.SetupDone:
		view.State = pages.SetUpDone
	default:
		view.State = pages.SetUpExpired
	}
	return view, nil
}

// BeginSetUp implements pages.SetUp.
func (b *backend) BeginSetUp(_ context.Context, o pages.NewOwner) (pages.Ceremony, error) {
	return ceremony(b.a.SetupOptions(o.Token, o.Browser, o.Name, o.Email))
}

// FinishSetUp implements pages.SetUp.
func (b *backend) FinishSetUp(ctx context.Context, p pages.NewPasskey) (pages.SignedIn, error) {
	cookie, err := b.a.SetupVerify(ctx, authority.SetupAnswer{
		Token: p.Token, Browser: p.Browser, Ceremony: p.Ceremony, Response: p.Response, ProofKey: p.ProofKey, Agent: p.Agent,
	})
	return b.signedIn(ctx, cookie, err)
}

// Link implements pages.Links.
func (b *backend) Link(ctx context.Context, token string) (pages.LinkView, error) {
	p, ends, err := b.a.RegisterLink(ctx, token)
	return pages.LinkView{Person: person(p), Expires: ends}, translate(err)
}

// Recovery implements pages.Recoveries.
func (b *backend) Recovery(ctx context.Context, token string) (pages.LinkView, error) {
	p, ready, err := b.a.RecoveryLink(ctx, token)
	return pages.LinkView{Person: person(p), Expires: ready}, translate(err)
}

// BeginRegister implements pages.Links.
func (b *backend) BeginRegister(ctx context.Context, token string) (pages.Ceremony, error) {
	return ceremony(b.a.RegisterOptions(ctx, token))
}

// FinishRegister implements pages.Links.
func (b *backend) FinishRegister(ctx context.Context, p pages.NewPasskey) (pages.SignedIn, error) {
	cookie, err := b.a.RegisterVerify(ctx, p.Ceremony, p.Response, p.ProofKey, p.Agent)
	return b.signedIn(ctx, cookie, err)
}

// Inbox implements pages.Cards.
func (b *backend) Inbox(ctx context.Context, s pages.Session, limit int) (pages.Inbox, error) {
	a, err := b.actor(ctx, s, false)
	if err != nil {
		return pages.Inbox{}, err
	}
	rows, total, err := b.a.Inbox(ctx, a, limit)
	out := pages.Inbox{Total: total}
	for _, c := range rows {
		out.Rows = append(out.Rows, pages.Waiting{Grant: c.Grant, Agent: person(c.Agent)})
	}
	return out, translate(err)
}

// Card implements pages.Cards.
func (b *backend) Card(ctx context.Context, s pages.Session, id string) (pages.Card, error) {
	a, err := b.actor(ctx, s, false)
	if err != nil {
		return pages.Card{}, err
	}
	c, err := b.a.Card(ctx, a, id)
	if err != nil {
		return pages.Card{}, translate(err)
	}
	out := pages.Card{
		Grant: c.Grant, Agent: person(c.Agent), Statement: c.Statement,
		Decider: person(c.Decider), Revoker: person(c.Revoker),
	}
	if c.First.Email != "" {
		out.Endorser = person(c.First)
	}
	switch d := c.Grant.Decision; {
	case d != nil && d.For != "":
		out.For = person(store.Principal{Email: d.For})
	case d == nil && c.Mandate != nil:
		out.For, out.Until = person(store.Principal{Email: c.Mandate.Person}), c.Mandate.Until.Time()
	}
	// A command that cannot be read any more is shown as one of which nothing
	// is known: nobody should be kept from denying or revoking it.
	if read, err := b.a.Read(bound(c)); err == nil {
		out.Reading, out.HostKind = &read.Reading, read.Kind
	}
	if r := c.Outcome; r != nil {
		out.Run = &pages.Run{
			At: r.At.Time(), Duration: time.Duration(r.MS) * time.Millisecond,
			ExitCode: r.ExitCode, Signal: r.Signal, Error: r.Error,
		}
	}
	if c.Grant.Status != grant.Pending {
		return out, nil
	}
	if out.Covered, err = b.covered(ctx, a, id); err != nil {
		return pages.Card{}, translate(err)
	}
	for _, reach := range b.a.Reaches(c.Grant, c.Mandate) {
		o := pages.Offer{Type: reach.Type, Statement: b.a.StatementOf(c.Grant, reach), Needs: b.a.Needs(c.Grant)}
		if reach.Until != 0 {
			o.Duration = reach.Until.Time().Sub(b.a.Now()).Truncate(time.Hour)
		}
		out.Offers = append(out.Offers, o)
	}
	return out, nil
}

// bound is the card's request with what its statement binds, which for an
// answered one is what was answered.
func bound(c authority.Card) grant.Request {
	req := c.Grant.Request
	if c.Statement.Argv != nil {
		req.Command = c.Statement.Argv
	}
	return req
}

// listed is how many grants are read at once when they are looked through.
const listed = 100

// Permissions implements pages.Cards.
func (b *backend) Permissions(ctx context.Context, s pages.Session, agent string, limit int) ([]grant.Grant, error) {
	a, err := b.actor(ctx, s, false)
	if err != nil {
		return nil, err
	}
	var out []grant.Grant
	filter := store.Filter{Requester: agent, Status: grant.Approved, Limit: listed}
	for {
		rows, err := b.a.List(ctx, a, filter)
		if err != nil {
			return nil, translate(err)
		}
		for _, g := range rows {
			if g.Status != grant.Approved || g.Type != grant.Timed && g.Type != grant.Always {
				continue
			}
			if out = append(out, g); len(out) == limit {
				return out, nil
			}
		}
		if len(rows) < listed {
			return out, nil
		}
		last := rows[len(rows)-1]
		filter.Before, filter.BeforeID = last.Created, last.ID
	}
}

// BeginDecision implements pages.Decisions.
func (b *backend) BeginDecision(ctx context.Context, s pages.Session, c pages.Choice) (json.RawMessage, error) {
	a, err := b.actor(ctx, s, false)
	if err != nil {
		return nil, err
	}
	offer, err := b.a.Offer(ctx, a, c.Grant, reach(c))
	if err != nil {
		return nil, translate(err)
	}
	if offer.Digest != c.Digest {
		return nil, pages.ErrChanged
	}
	return b.options(ctx, a, c.Digest)
}

func (b *backend) options(ctx context.Context, a authority.Actor, d statement.Digest) (json.RawMessage, error) {
	options, err := b.a.DecisionOptions(ctx, a, d)
	if err != nil {
		return nil, translate(err)
	}
	return options, nil
}

func reach(c pages.Choice) authority.Reach {
	return authority.Reach{Type: c.Type, Until: grant.Millis(c.Expires * 1000)}
}

// Decide implements pages.Decisions.
func (b *backend) Decide(ctx context.Context, s pages.Session, d pages.Decision) error {
	a, err := b.actor(ctx, s, true)
	if err != nil {
		return err
	}
	if !d.Allow {
		_, err = b.a.Deny(ctx, a, d.Grant, d.Note)
		return proof(err)
	}
	click, err := evidence(s, d.Click)
	if err != nil {
		return err
	}
	_, err = b.a.Approve(ctx, a, d.Grant, authority.Answer{
		Reach: reach(d.Choice), Digest: &d.Digest, Note: d.Note, Proof: authority.Proof{Assertion: d.Assertion, Click: click},
	})
	return proof(err)
}

// evidence is a click as it can be verified again later: the page's key, what
// it signed, and the signature.
func evidence(s pages.Session, c pages.Click) (json.RawMessage, error) {
	return json.Marshal(map[string]any{
		"kind": "click", "key": s.ProofKey, "signed": string(c.Signed()), "body": string(c.Body), "signature": c.Signature,
	})
}

// Revoke implements pages.Decisions.
func (b *backend) Revoke(ctx context.Context, s pages.Session, id string) error {
	a, err := b.actor(ctx, s, true)
	if err != nil {
		return err
	}
	_, err = b.a.Revoke(ctx, a, id, "")
	return proof(err)
}

// PrepareTrust implements pages.Trusts. Nobody keeps the asker's secret: what a
// page prepares has no result that the page would have to fetch by it.
func (b *backend) PrepareTrust(ctx context.Context, s pages.Session, n pages.NewTrust) (string, error) {
	a, err := b.actor(ctx, s, true)
	if err != nil {
		return "", err
	}
	secret, err := b.a.NewSecret()
	if err != nil {
		return "", err
	}
	t, err := b.a.Prepare(ctx, a, api.TrustRequest{Operation: n.Operation, Params: n.Params, Secret: secret})
	return t.ID, refusal(err)
}

// Trust implements pages.Trusts.
func (b *backend) Trust(ctx context.Context, s pages.Session, id string) (api.Trust, error) {
	a, err := b.actor(ctx, s, false)
	if err != nil {
		return api.Trust{}, err
	}
	t, err := b.a.Trust(ctx, a, id, "")
	return t, translate(err)
}

// BeginConfirm implements pages.Confirms.
func (b *backend) BeginConfirm(ctx context.Context, s pages.Session, id string, d statement.Digest) (json.RawMessage, error) {
	a, err := b.actor(ctx, s, false)
	if err != nil {
		return nil, err
	}
	t, err := b.a.Trust(ctx, a, id, "")
	switch {
	case err != nil:
		return nil, translate(err)
	case t.Status != "pending":
		return nil, pages.ErrClosed
	case t.Digest == nil || *t.Digest != d:
		return nil, pages.ErrChanged
	}
	return b.options(ctx, a, d)
}

// Confirm implements pages.Confirms.
func (b *backend) Confirm(ctx context.Context, s pages.Session, t pages.TrustAnswer) (string, error) {
	a, err := b.actor(ctx, s, true)
	if err != nil {
		return "", err
	}
	done, err := b.a.Confirm(ctx, a, t.ID, t.Digest, authority.Proof{Assertion: t.Assertion})
	if errors.Is(proof(err), pages.ErrClosed) || errors.Is(proof(err), pages.ErrNotFound) {
		// A change that still waits was not settled by anybody: a rule is against it.
		if was, again := b.a.Trust(ctx, a, t.ID, ""); again == nil && was.Status == "pending" {
			return "", refusal(err)
		}
	}
	return done.Link, proof(err)
}

// Decline implements pages.Confirms.
func (b *backend) Decline(ctx context.Context, s pages.Session, id string) error {
	a, err := b.actor(ctx, s, true)
	if err != nil {
		return err
	}
	return proof(b.a.Decline(ctx, a, id, ""))
}

// Agents implements pages.People.
func (b *backend) Agents(ctx context.Context, s pages.Session) ([]pages.Agent, error) {
	a, err := b.actor(ctx, s, false)
	if err != nil {
		return nil, err
	}
	people, err := b.a.People(ctx, a)
	if err != nil {
		return nil, translate(err)
	}
	out := []pages.Agent{}
	for _, p := range people {
		account, err := b.a.Account(ctx, a, p.Email)
		if err != nil {
			return nil, translate(err)
		}
		waiting, err := b.a.Waiting(ctx, p.Email)
		if err != nil {
			return nil, translate(err)
		}
		agent := pages.Agent{
			Person: person(p), Owner: p.Owner, Approver: p.Approver, Active: p.Active, Paused: p.Paused,
			Created: time.UnixMilli(p.Created), Seen: at(p.LastLogin), Waiting: int(waiting),
		}
		for _, k := range account.Keys {
			agent.Keys = append(agent.Keys, key(k))
		}
		for _, l := range account.Labels {
			agent.Labels = append(agent.Labels, api.Label{Label: l.Label, Since: grant.Millis(l.Since).Seconds(), GrantID: l.Grant})
		}
		out = append(out, agent)
	}
	return out, nil
}

// at is a stored time, where 0 stands for never.
func at(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

func key(k store.Key) pages.Key {
	return pages.Key{
		ID: k.ID, Name: k.Name, Fingerprint: authority.Fingerprint(k), Created: time.UnixMilli(k.Created), Dormant: at(k.DormantUntil),
		Managed: k.Source == "management", LoginOnly: k.Weak,
	}
}

// ChangeAgent implements pages.People.
func (b *backend) ChangeAgent(ctx context.Context, s pages.Session, email string, act pages.AgentAct) error {
	a, err := b.actor(ctx, s, true)
	if err != nil {
		return err
	}
	switch act {
	case pages.PauseAgent:
		return translate(b.a.Pause(ctx, a, email))
	case pages.RemoveAgent:
		return translate(b.a.Remove(ctx, a, email))
	}
	return pages.ErrInvalid
}

// Panic implements pages.People.
func (b *backend) Panic(ctx context.Context, s pages.Session) (api.PanicResult, error) {
	a, err := b.actor(ctx, s, true)
	if err != nil {
		return api.PanicResult{}, err
	}
	r, err := b.a.Panic(ctx, a, "")
	return r, translate(err)
}

// Account implements pages.Accounts.
func (b *backend) Account(ctx context.Context, s pages.Session) (pages.Account, error) {
	a, err := b.actor(ctx, s, false)
	if err != nil {
		return pages.Account{}, err
	}
	account, err := b.a.Account(ctx, a, a.Principal.Email)
	if err != nil {
		return pages.Account{}, translate(err)
	}
	var out pages.Account
	for _, p := range account.Passkeys {
		out.Passkeys = append(out.Passkeys, pages.Key{
			ID: p.ID, Name: p.Name, Created: time.UnixMilli(p.Created), Used: at(p.LastUsed), Dormant: at(p.DormantUntil),
		})
	}
	for _, k := range account.Keys {
		out.Keys = append(out.Keys, key(k))
	}
	for _, in := range account.Sessions {
		out.SignIns = append(out.SignIns, pages.SignIn{ID: in.ID, Name: in.Agent, Created: time.UnixMilli(in.Created), Seen: time.UnixMilli(in.Created)})
	}
	if _, out.Recovery, err = b.a.Recovery(ctx, a); err != nil {
		return out, translate(err)
	}
	if out.Away, err = b.a.Away(ctx, a); err != nil {
		return out, translate(err)
	}
	return out, b.services(ctx, a, &out)
}

// RemovePasskey implements pages.Removals.
func (b *backend) RemovePasskey(ctx context.Context, s pages.Session, id string) error {
	a, err := b.actor(ctx, s, true)
	if err != nil {
		return err
	}
	return translate(b.a.RemovePasskey(ctx, a, id))
}

// RemoveKey implements pages.Removals.
func (b *backend) RemoveKey(ctx context.Context, s pages.Session, id string) error {
	a, err := b.actor(ctx, s, true)
	if err != nil {
		return err
	}
	return translate(b.a.RemoveKey(ctx, a, a.Principal.Email, id))
}

// Protection implements pages.Accounts. Whether the authority has an OS user of
// its own it cannot know by itself, so it does not say so.
func (b *backend) Protection(context.Context) (pages.Protection, error) {
	loopback := false
	if u, err := url.Parse(b.a.Config().Issuer); err == nil {
		ip, err := netip.ParseAddr(u.Hostname())
		loopback = err == nil && ip.IsLoopback()
	}
	return pages.Protection{Enforcement: "advisory", Loopback: loopback, Bearer: b.bearer}, nil
}

// entryBody holds those fields of the log's records that the list shows.
type entryBody struct {
	Grant     string   `json:"grant"`
	Command   []string `json:"command"`
	Operation string   `json:"operation"`
	Answer    string   `json:"answer"`
	Tried     string   `json:"tried"`
	Connect   string   `json:"connect"`
	Why       string   `json:"why"`
	Risk      string   `json:"risk"`
}

// Entries implements pages.Log.
func (b *backend) Entries(ctx context.Context, s pages.Session, q pages.LogQuery) ([]pages.Entry, error) {
	a, err := b.actor(ctx, s, false)
	if err != nil {
		return nil, err
	}
	if q.Before <= 0 {
		q.Before = 1 << 62
	}
	rows, err := b.a.Activity(ctx, a, store.LogFilter{Before: q.Before, GrantID: q.Grant, Limit: q.Limit})
	if err != nil {
		return nil, translate(err)
	}
	out := make([]pages.Entry, 0, len(rows))
	for _, r := range rows {
		e := pages.Entry{Index: r.Index, At: time.UnixMilli(r.Time), Type: r.Type, Agent: person(r.Party), By: person(r.By)}
		var body entryBody
		// An erased record has no body; its place in the log stays.
		if len(r.Body) > 0 {
			if err := json.Unmarshal(r.Body, &body); err != nil {
				return nil, fmt.Errorf("record %d: %w", r.Index, err)
			}
		}
		e.Grant = body.Grant
		e.Action = first(commandLine(body.Command), body.Connect, body.Operation, body.Answer, body.Tried, body.Why)
		e.Risk.UnmarshalText([]byte(body.Risk)) // stays unrated where the record has none
		out = append(out, e)
	}
	return out, nil
}

func first(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}

// LogState implements pages.Log.
func (b *backend) LogState(ctx context.Context) (pages.LogState, error) {
	h, err := b.a.LogHead(ctx)
	return pages.LogState{Size: h.Size, Signed: h.Signed, CheckpointAt: h.SignedAt}, translate(err)
}

// Subscribe implements pages.Events.
func (b *backend) Subscribe(ctx context.Context, s pages.Session, _ string) (<-chan pages.Event, error) {
	a, err := b.actor(ctx, s, false)
	if err != nil {
		return nil, err
	}
	sub, err := b.a.Watch(a)
	if err != nil {
		return nil, translate(err)
	}
	out := make(chan pages.Event)
	// The goroutine belongs to the request: it ends with ctx, and with the
	// session, which it looks at again with every change and every minute.
	go func() {
		defer close(out)
		defer sub.Close()
		check := time.NewTicker(time.Minute)
		defer check.Stop()
		for {
			var g *grant.Grant
			select {
			case <-ctx.Done():
				return
			case <-check.C:
			case change := <-sub.C:
				g = &change
			}
			if _, err := b.a.SessionActor(ctx, s.ID); err != nil {
				return
			}
			if g == nil {
				continue
			}
			select {
			case <-ctx.Done():
				return
			case out <- pages.Event{ID: fmt.Sprintf("%s.%d", g.ID, g.Version), Grant: g.ID, Status: g.Status}:
			}
		}
	}()
	return out, nil
}

func commandLine(argv []string) string {
	if len(argv) == 0 {
		return ""
	}
	return reading.Line(argv)
}
