package authority

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"vogt/internal/detail"
	"vogt/internal/fault"
	"vogt/internal/flow"
	"vogt/internal/grant"
	"vogt/internal/statement"
	"vogt/internal/store"
)

const (
	maxReason  = 300 // characters that a card shows
	maxDetails = 64
	// maxRequest bounds what is stored of one request. An argument list may
	// have 1 MiB and stands in it twice for some clients.
	maxRequest = 4 << 20
	// connectTTL is how long a request for a connection waits: longer than proxies
	// hold one, in case the one that would take it back is killed.
	connectTTL = 6 * time.Minute
)

// Created is a grant and how it came about.
type Created struct {
	Grant  grant.Grant
	New    bool // false: an equal request existed already
	Reused bool // an earlier answer covers the request
	// Standing says that standing grants cover the request, which is a grant of
	// its own.
	Standing bool
	// Policy says so of an auto-approval policy.
	Policy bool
}

// Create takes a request. It is read by the authority itself; what the client
// says about requester, risk or program decides nothing. An earlier answer
// that covers exactly this request is returned; an equal request that waits is
// joined; else a card waits for a person.
func (a *Authority) Create(ctx context.Context, by Actor, req grant.Request) (Created, error) {
	if !by.Known() {
		return Created{}, errUnauthenticated()
	}
	p := by.Principal
	if p.Paused {
		return Created{}, paused(p.Email)
	}
	owner := p.Owner
	if by.Person() {
		owner = p.Email
	}
	if !a.rates.allow(p.Email, owner, a.clock()) {
		return Created{}, quota("creates requests too fast", 1)
	}
	req.Requester = p.Email
	if err := normalise(&req); err != nil {
		return Created{}, err
	}
	read, err := flow.Read(a.reader, req)
	if err != nil && req.Connect != nil {
		return Created{}, problem(403, "Nobody is asked for this connection", err.Error(), "The owner of the agent can write a rule for it: vogt agent start --allow.").kind("forbidden")
	}
	if err != nil {
		return Created{}, problem(400, "The command cannot be run", err.Error(), "Correct the command and ask again.")
	}
	req.CmdHash = detail.CmdHash(req.Command)
	g := grant.Grant{
		Version: 1, Epoch: a.Epoch(), Request: req, Owner: owner, Approver: p.Approver, Risk: read.Risk,
		Requester: grant.Requester{KeyID: by.KeyID, Generation: p.Generation},
		Status:    grant.Pending, Type: req.Type,
	}
	if g.Approver == "" {
		g.Approver = owner
	}
	if g.ID, err = a.newID(); err != nil {
		return Created{}, err
	}
	if g.Nonce, err = a.randomHex(16); err != nil {
		return Created{}, err
	}
	g.Approvals = a.approvals(g)
	g.Identity = a.statementOf(g, Reach{}).Identity()
	encoded, err := json.Marshal(req)
	if err != nil {
		return Created{}, err
	}
	if len(encoded) > maxRequest {
		return Created{}, problem(413, "The request is too large", fmt.Sprintf("It has %d bytes, the limit is %d.", len(encoded), maxRequest), "Pass long input in a file.")
	}
	var out Created
	err = a.update(ctx, func(t *txn) error {
		g.Created, g.ValidUntil = t.now, t.now+grant.Millis(a.cfg.PendingTTL.Milliseconds())
		if req.Connect != nil {
			// Somebody holds the connection, or nobody any more.
			g.ValidUntil = min(g.ValidUntil, t.now+grant.Millis(connectTTL.Milliseconds()))
		}
		var err error
		out, err = t.create(by, g, read, len(encoded))
		return err
	})
	if err == nil && out.New && out.Grant.Status == grant.Pending && a.pending != nil {
		a.pending(out.Grant)
	}
	return out, err
}

// create is the part of Create that must see one state of the data.
func (t *txn) create(by Actor, g grant.Grant, read flow.Reading, size int) (Created, error) {
	p, err := store.PrincipalByEmail(t, g.Request.Requester)
	if err != nil || !usable(p) || p.Generation != g.Requester.Generation {
		return Created{}, errUnauthenticated().caused(err)
	}
	if p.Paused {
		return Created{}, paused(p.Email)
	}
	if g.Approver != g.Owner {
		// Somebody who was enrolled under the approver's address since then
		// was not chosen; the owner answers alone.
		if o, err := store.PrincipalByEmail(t, g.Approver); err != nil || !usable(o) || o.Created > p.Created {
			g.Approver = g.Owner
		}
	}
	if g.TwoPersons() && g.Approver == g.Owner {
		return Created{}, errNoSecond(p.Email)
	}
	// A clock that was set back must not make a request older than those who
	// answer it.
	g.Created = max(g.Created, grant.Millis(p.Created))
	for _, email := range uniq(g.Owner, g.Approver) {
		o, err := store.PrincipalByEmail(t, email)
		if err != nil {
			return Created{}, err
		}
		g.Created = max(g.Created, grant.Millis(o.Created))
	}
	key := reuseKey(g)
	open, err := store.OpenGrants(t, key)
	if err != nil {
		return Created{}, err
	}
	for _, old := range open {
		// The person has answered this very request, and the answer has not
		// been used: asking again finds it instead of a second card.
		if old.Type == grant.Once && old.Identity == g.Identity && old.Requester.Generation == g.Requester.Generation && old.Permits(t.now) {
			_, err := t.record(recordRequest, old.ID, p.Email, requestRecordOf(old, "answered already"))
			return Created{Grant: old, Reused: true}, err
		}
	}
	verdict, err := t.judgeStanding(p, g, read, flow.Judge(read, g.Identity, open, t.now))
	if err != nil {
		return Created{}, err
	}
	if verdict.Outcome == flow.Ask && read.Coverable() && !g.TwoPersons() {
		if out, approved, err := t.byPolicy(p, g, key, read, size); approved || err != nil {
			return out, err
		}
	}
	switch verdict.Outcome {
	case flow.Allow:
		if verdict.Grant == nil {
			if out, allowed, err := t.useStanding(g, &unstored{key, size}, read, verdict); allowed || err != nil {
				return out, err
			}
			break // a limit was reached: it is asked
		}
		_, err := t.record(recordRequest, verdict.Grant.ID, p.Email, requestRecordOf(*verdict.Grant, "allowed by an earlier answer"))
		return Created{Grant: *verdict.Grant, Reused: true}, err
	case flow.Ask:
	default:
		return Created{}, problem(403, "Refused by rule", verdict.Reason, "").kind("forbidden")
	}
	for _, old := range open {
		if old.As(t.now).Status != grant.Pending || old.Request.Type != g.Request.Type || old.Request.Duration != g.Request.Duration {
			continue
		}
		if err := store.JoinGrant(t, old.ID); err != nil {
			return Created{}, err
		}
		old.Joined++
		_, err := t.record(recordJoin, old.ID, p.Email, requestRecordOf(old, "joined"))
		return Created{Grant: old}, err
	}
	if err := t.a.checkQuota(t, g, size); err != nil {
		return Created{}, err
	}
	if err := store.InsertGrant(t, g, key, size); err != nil {
		return Created{}, err
	}
	fault.Point("authority.create")
	if _, err := t.record(recordRequest, g.ID, p.Email, requestRecordOf(g, "asked")); err != nil {
		return Created{}, err
	}
	t.OnCommit(func() { t.a.hub.publish(g) })
	return Created{Grant: g, New: true}, nil
}

func requestRecordOf(g grant.Grant, verdict string) requestRecord {
	r := requestRecord{
		Grant: g.ID, By: g.Request.Requester, Owner: g.Owner, Host: g.Request.Host, Audience: g.Request.Audience,
		Command: g.Request.Command, RunAs: g.Request.RunAs, Reason: g.Request.Reason, Risk: g.Risk.String(),
		Verdict: verdict, Identity: g.Identity,
	}
	if g.Request.Connect != nil {
		r.Connect = g.Request.Connect.Network().Mode()
	}
	if c := g.Request.Context; c != nil && c.Cwd != nil && c.Cwd.Path != nil {
		r.Cwd = *c.Cwd.Path
	}
	return r
}

// checkQuota refuses the offender and nobody else.
func (a *Authority) checkQuota(tx store.Tx, g grant.Grant, size int) error {
	own, all, err := store.UsageOf(tx, g.Request.Requester, g.Owner)
	if err != nil {
		return err
	}
	l := a.cfg.Limits
	switch {
	case own.Pending >= l.Pending:
		return quota(fmt.Sprintf("has %d requests waiting already", own.Pending), 30)
	case own.Bytes+int64(size) > l.Bytes:
		return quota(fmt.Sprintf("has %d bytes of requests waiting already", own.Bytes), 30)
	case all.Pending >= l.Pending*l.OwnerFactor:
		return quota(fmt.Sprintf("and the owner's other agents have %d requests waiting already", all.Pending), 30)
	case all.Bytes+int64(size) > l.Bytes*l.OwnerFactor:
		return quota(fmt.Sprintf("and the owner's other agents have %d bytes of requests waiting already", all.Bytes), 30)
	}
	return nil
}

func quota(what string, retry int) *Error {
	e := problem(429, "Too many requests", "This agent "+what+".", "Wait until the owner has answered, or revoke requests that are no longer needed: vogt grant revoke ID.")
	e.Retry = retry
	return e
}

func tooFast(what string) *Error {
	e := problem(429, "Too many tries", what, "Wait a second.")
	e.Retry = 1
	return e
}

func paused(email string) *Error {
	return problem(403, email+" is paused", "Its requests are not taken and its permissions do not count.",
		"The owner resumes it: vogt resume "+email+".").kind("forbidden")
}

// normalise checks a request and fills what the wire leaves open.
func normalise(req *grant.Request) error {
	bad := func(title, format string, args ...any) error {
		return problem(400, title, fmt.Sprintf(format, args...), "")
	}
	if req.Type == "" {
		req.Type = grant.Once
	}
	if !req.Type.Valid() {
		return problem(400, "Unknown grant type", fmt.Sprintf("grant_type %q: want once, timed or always.", req.Type), "").kind("invalid_grant_type")
	}
	// A timed request without a duration waits all the same, as the client that is
	// in use sends it: whoever approves says how long (docs/decisions/0020).
	// Under a lasting grant that they find in their list, such clients run whatever
	// they like.
	if req.Binding() != "" {
		req.Type, req.Duration = grant.Once, 0
	}
	if req.Duration < 0 || req.Duration > maxDuration {
		return bad("The duration is out of range", "duration is %d s, the limit is %d.", req.Duration, maxDuration)
	}
	if req.Host == "" || req.Audience == "" {
		return bad("The request is incomplete", "target_host and audience are required.")
	}
	for _, f := range []struct{ name, value string }{
		{"target_host", req.Host}, {"audience", req.Audience}, {"run_as", req.RunAs},
	} {
		if len(f.value) > 255 || !utf8.ValidString(f.value) || strings.ContainsFunc(f.value, func(r rune) bool { return r < 0x20 || r == 0x7f }) {
			return bad("The request is malformed", "%s must be at most 255 bytes of plain text.", f.name)
		}
	}
	req.Reason = shorten(req.Reason, maxReason)
	if c := req.Context; c != nil && len(c.Argv) > 0 {
		if len(req.Command) == 0 {
			req.Command = c.Argv
		}
		if !slices.Equal(c.Argv, req.Command) {
			return bad("The request contradicts itself", "command and execution_context.argv differ.")
		}
		copied := *c
		copied.ArgvHash = detail.ArgvHash(c.Argv)
		if copied.Executable == "" {
			copied.Executable = c.Argv[0]
		}
		req.Context = &copied
	}
	if len(req.Details) > maxDetails {
		return bad("The request is too large", "it has %d authorization details, the limit is %d.", len(req.Details), maxDetails)
	}
	if req.Connect != nil {
		return normaliseConnect(req)
	}
	req.Details = slices.Clone(req.Details)
	if len(req.Details) > 0 {
		req.Permissions = nil
	}
	for i := range req.Details {
		d := &req.Details[i]
		if err := d.Validate(); err != nil {
			return bad("An authorization detail is malformed", "%v.", err)
		}
		// The answer is bound to the exact command, so the client's own check
		// of its token must be as well.
		if d.Type == detail.WireCLI {
			d.Constraints = &detail.Constraints{ExactCommand: true}
		}
		req.Permissions = append(req.Permissions, d.CanonicalPermission())
	}
	return nil
}

// normaliseConnect checks a request for a connection, and writes what stands for it
// elsewhere from the connection itself.
func normaliseConnect(req *grant.Request) error {
	box := req.Context
	switch {
	case len(req.Command) > 0 || req.RunAs != "" || len(req.Details) > 0 || req.Type != grant.Once:
		return problem(400, "The request contradicts itself", "A request for a connection has no command, no other user and no details, and is asked for once.", "")
	case box == nil || box.Confinement == nil || *box.Confinement == "" || len(*box.Confinement) > maxBox || !plainText(*box.Confinement):
		return problem(400, "The request is incomplete", "A request for a connection names the box that it is for.", "")
	}
	to := req.Connect.Network()
	mode := to.Mode()
	req.Permissions = []string{to.Permission()}
	req.Context = &grant.Context{Confinement: box.Confinement, NetworkMode: &mode, Executable: shorten(box.Executable, maxReason)}
	return nil
}

// maxBox is how much a request may say of its box, in bytes.
const maxBox = 8 << 10

// maxDuration is the longest a timed permission may last: one year.
const maxDuration = 366 * 24 * 60 * 60

// shorten keeps the first n characters of plain text.
func shorten(s string, n int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	for i := range s {
		if n == 0 {
			return s[:i] + "…"
		}
		n--
	}
	return s
}

// reuseKey finds an equal request again. Beside the statement it binds what
// only the wire carries.
func reuseKey(g grant.Grant) []byte {
	h := sha256.New()
	h.Write(g.Identity[:])
	for _, s := range append([]string{g.Request.Audience, g.Request.Host, g.Request.RunAs}, g.Request.Permissions...) {
		fmt.Fprintf(h, "%d:%s", len(s), s)
	}
	if c := g.Request.Context; c != nil {
		fmt.Fprintf(h, "%d:%s", len(c.AdapterDig), c.AdapterDig)
		for _, name := range slices.Sorted(maps.Keys(c.Links)) {
			fmt.Fprintf(h, "%q>%q", name, c.Links[name])
		}
	}
	return h.Sum(nil)
}

// Reach is how far an approval goes.
type Reach struct {
	Type  grant.Type
	Until grant.Millis // of a timed one
}

// statementOf is what an approval of the given reach signs. Facts that the
// caller reported stand in it as such; what nobody observed is absent.
func (a *Authority) statementOf(g grant.Grant, reach Reach) statement.Statement {
	req := g.Request
	s := statement.Statement{
		Purpose: statement.Run, Issuer: a.cfg.Issuer, Epoch: g.Epoch, GrantID: g.ID, Nonce: g.Nonce,
		Requester: &req.Requester, RequesterKey: &g.Requester.KeyID, Generation: &g.Requester.Generation,
		Owner: &g.Owner, GrantType: string(reach.Type), Argv: req.Command,
	}
	if ring := a.keys.Load(); ring != nil {
		s.IssuerKeyID = &ring.signing.ID
	}
	host := "claimed:" + req.Host
	s.Host = &host
	if req.Connect != nil {
		s.Purpose = statement.Connect
	}
	if req.RunAs != "" {
		s.Purpose, s.RunAsName = statement.Crossing, &req.RunAs
	}
	if req.Reason != "" {
		s.Reason = &req.Reason
	}
	if g.TwoPersons() {
		s.Limits = []string{fmt.Sprintf("approvals=%d", g.Approvals)}
	}
	if reach.Type == grant.Once {
		one := uint64(1)
		s.Uses = &one
	}
	if reach.Until != 0 {
		end := uint64(reach.Until.Seconds())
		s.Expiry = &end
	}
	if c := req.Context; c != nil {
		// Standard input is left out on purpose: nothing that a caller says of
		// it holds when the command starts (docs/decisions/0002).
		s.Executable, s.Interpreters, s.Cwd, s.CallerUID = c.File, c.Interpreters, c.Cwd, c.UID
		s.Confinement, s.NetworkMode = c.Confinement, c.NetworkMode
	}
	return s
}

// Get reads a grant. Whoever is not a party to it learns its state only.
func (a *Authority) Get(ctx context.Context, by Actor, id string) (g grant.Grant, party bool, err error) {
	err = a.view(ctx, func(tx store.Tx) (err error) {
		g, err = store.GrantByID(tx, id)
		return errNoGrant(err)
	})
	return g.As(a.now()), err == nil && by.party(g, a.now()), err
}

// errNoGrant is said for grants that do not exist and for those that the
// caller has no part in.
func errNoGrant(err error) error {
	if err == nil || errors.Is(err, store.ErrNotFound) {
		if err == nil {
			return nil
		}
		return problem(404, "There is no such grant", "", "See your grants: vogt grant list.").kind("grant_not_found")
	}
	return err
}

// Wait is Get, which returns when the grant has left the pending state or ctx
// or the limit ends.
func (a *Authority) Wait(ctx context.Context, by Actor, id string, limit time.Duration) (grant.Grant, bool, error) {
	sub := a.hub.subscribe(func(g grant.Grant) bool { return g.ID == id })
	defer sub.Close()
	g, party, err := a.Get(ctx, by, id)
	if err != nil || g.Status != grant.Pending || limit <= 0 {
		return g, party, err
	}
	if !party {
		return g, party, nil
	}
	leave, ok := a.waits.enter(by.Name())
	if !ok {
		e := quota(fmt.Sprintf("has %d calls waiting already", a.cfg.Limits.Waits), 3)
		return g, party, e
	}
	defer leave()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for over := false; ; {
		select {
		case <-sub.C:
		case <-timer.C:
			over = true
		case <-ctx.Done():
			return g, party, ctx.Err()
		}
		fresh, party, err := a.Get(ctx, by, id)
		if err != nil || fresh.Status != grant.Pending || over {
			return fresh, party, err
		}
	}
}

// maxWatches bounds the streams that one principal keeps open, by login and by
// pages each, so that no program takes the places of the person's browser.
const maxWatches = 8

// Watch subscribes to the grants that the actor may see.
func (a *Authority) Watch(by Actor) (*Subscription, error) {
	if !by.Known() {
		return nil, errUnauthenticated()
	}
	leave, ok := a.watches.enter(fmt.Sprint(by.Means, " ", by.Name()))
	if !ok {
		e := problem(429, "Too many streams", fmt.Sprintf("%s has %d streams of events open already.", by.Name(), maxWatches), "Close one, or read the list instead: vogt grant list.")
		e.Retry = 5
		return nil, e
	}
	sub := a.hub.subscribe(func(g grant.Grant) bool { return by.party(g, a.now()) })
	sub.leave = leave
	return sub, nil
}

// List returns a page of the grants that the actor may see.
func (a *Authority) List(ctx context.Context, by Actor, f store.Filter) ([]grant.Grant, error) {
	if !by.Known() {
		return nil, errUnauthenticated()
	}
	f.Viewer, f.Since, f.Agent, f.Now = by.Principal.Email, max(f.Since, grant.Millis(by.Principal.Created)), by.Agent(), a.now()
	f.Requester = lower(f.Requester)
	var out []grant.Grant
	err := a.view(ctx, func(tx store.Tx) error {
		if f.Requester != "" && f.Requester != f.Viewer {
			r, err := store.PrincipalByEmail(tx, f.Requester)
			if ignoreNotFound(err) != nil {
				return err
			}
			if by.Agent() || r.Owner != f.Viewer && r.Approver != f.Viewer {
				return problem(403, "Those are not yours to see", "requester is neither you nor an agent of yours.", "").kind("forbidden")
			}
		}
		var err error
		if out, err = store.ListGrants(tx, f); err != nil || f.Status != grant.Pending {
			return err
		}
		more, err := waitingFor(tx, by, f)
		out = merged(f, out, more)
		return err
	})
	for i := range out {
		out[i] = out[i].As(f.Now)
	}
	return out, err
}
