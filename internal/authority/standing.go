package authority

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"vogt/internal/api"
	"vogt/internal/coverage"
	"vogt/internal/detail"
	"vogt/internal/fault"
	"vogt/internal/flow"
	"vogt/internal/grant"
	"vogt/internal/store"
)

const (
	// maxStanding bounds the patterns of one person, and so what a request is
	// compared with at most.
	maxStanding = 2000
	// standingTTL is how long a use may lie about that a pattern gave: whoever
	// asked is there to run it.
	standingTTL = 5 * 60 * 1000
	// maxPrograms bounds the programs of one line that patterns are looked up for,
	// while everybody else waits; a line of more is asked.
	maxPrograms = 32
	// maxTested bounds the calls of a line whose patterns are explained one by one.
	maxTested = 64
	// A pattern's limits count within these.
	minuteMS, hourMS = 60 * 1000, 60 * minuteMS
)

// errNoStanding is said for standing grants that do not exist and for those of
// others.
func errNoStanding() *Error {
	return problem(404, "There is no such standing grant", "", "See yours: vogt standing list.").kind("grant_not_found")
}

// standingParams checks the parameters of a pattern to be signed and puts them
// into their one form, which is what the person sees and signs.
func standingParams(params map[string]string) error {
	bad := func(err error) error {
		return problem(400, "The pattern cannot be taken", err.Error()+".", "Correct it; vogt standing add --help names what a pattern may hold.")
	}
	p, err := grant.ParsePattern(params["pattern"])
	if err != nil {
		return bad(err)
	}
	p.Agent = lower(p.Agent)
	if p.Agent != "*" && !strings.HasPrefix(p.Agent, grant.GroupPrefix) {
		if err := checkEmail(p.Agent); err != nil {
			return err
		}
	}
	encoded, err := json.Marshal(p)
	if err != nil {
		return err
	}
	// Escaped, it may be longer than it came.
	if _, err := grant.ParsePattern(string(encoded)); err != nil {
		return bad(err)
	}
	params["pattern"] = string(encoded)
	days := grant.DefaultDays
	if text := params["days"]; text != "" {
		if days, err = strconv.Atoi(text); err != nil || days < 1 || days > grant.MaxDays {
			return bad(fmt.Errorf("days %q: want 1 to %d", text, grant.MaxDays))
		}
	}
	params["days"] = strconv.Itoa(days)
	if len(params["reason"]) > maxReason {
		return bad(fmt.Errorf("reason has %d bytes, the limit is %d", len(params["reason"]), maxReason))
	}
	return nil
}

// addStanding puts a signed pattern into force. The record that holds the
// signature is the next one.
func (t *txn) addStanding(person store.Principal, params map[string]string, strength grant.Strength) (store.Standing, error) {
	p, err := grant.ParsePattern(params["pattern"])
	if err != nil {
		return store.Standing{}, err
	}
	days, err := strconv.Atoi(params["days"])
	if err != nil {
		return store.Standing{}, err
	}
	return t.insertStanding(person, p, t.now+grant.Millis(days)*24*hourMS, params["reason"], strength)
}

// insertStanding puts a pattern of the person's into force until then. The record
// of it is the next one.
func (t *txn) insertStanding(person store.Principal, p grant.Pattern, until grant.Millis, reason string, strength grant.Strength) (store.Standing, error) {
	if p.Agent != "*" && !strings.HasPrefix(p.Agent, grant.GroupPrefix) {
		if err := t.ownAgent(person, p.Agent); err != nil {
			return store.Standing{}, err
		}
	}
	if name, group := strings.CutPrefix(p.Agent, grant.GroupPrefix); group {
		members, err := store.Groups(t, person.Email)
		if err != nil {
			return store.Standing{}, err
		}
		if !slices.ContainsFunc(members, func(m store.Member) bool { return m.Group == name }) {
			return store.Standing{}, problem(404, "There is no such group", "No agent of yours is in "+name+".", "Make it first: vogt agent group set "+name+" AGENT. See: vogt agent group list.")
		}
	}
	return t.putStanding(person, p, until, reason, strength)
}

// putStanding puts a pattern into force until then. The next record must say who has
// confirmed it.
func (t *txn) putStanding(person store.Principal, p grant.Pattern, until grant.Millis, reason string, strength grant.Strength) (s store.Standing, err error) {
	s.Pattern = p
	n, err := store.CountStanding(t, person.Email)
	if err != nil {
		return s, err
	}
	if n >= maxStanding {
		return s, problem(409, "Too many standing grants", fmt.Sprintf("%d are in force.", n), "Revoke those that nobody uses: vogt standing unused.")
	}
	if s.ID, err = t.a.newID(); err != nil {
		return s, err
	}
	if s.Record, err = store.LogSize(t); err != nil {
		return s, err
	}
	s.Author, s.Generation, s.Reason, s.Strength = person.Email, person.Generation, reason, strength
	s.Created, s.Until = t.now, until
	return s, store.InsertStanding(t, s)
}

// standingView is a standing grant as the interface shows it.
func (a *Authority) standingView(s store.Standing) api.Standing {
	out := api.Standing{
		ID: s.ID, Type: "standing", Status: grant.Approved, Author: s.Author, Pattern: s.Pattern, Reason: s.Reason, CreatedAt: s.Created.Seconds(),
		ExpiresAt: s.Until.Seconds(), DecidedAt: s.Created.Seconds(), DecidedBy: s.Author, Request: a.wireStanding(s), Strength: s.Strength, Record: s.Record, Paused: s.Paused, Uses: s.Uses, LastUsedAt: s.LastUsed.Seconds(),
	}
	switch {
	case s.Revoked != 0:
		out.Status = grant.Revoked
	case s.Until.Reached(a.now()):
		out.Status = grant.Expired
	case s.Pattern.Limits.Uses > 0 && s.Uses >= s.Pattern.Limits.Uses:
		out.Status = grant.Used
	}
	return out
}

// Standing lists the caller's standing grants: a person's own, an agent's those
// that are for it.
func (a *Authority) Standing(ctx context.Context, by Actor) ([]api.Standing, error) {
	if !by.Known() {
		return nil, errUnauthenticated()
	}
	out := []api.Standing{}
	err := a.view(ctx, func(tx store.Tx) error {
		author := by.Principal.Email
		if by.Agent() {
			author = by.Principal.Owner
		}
		groups, err := store.GroupsOf(tx, author, by.Principal.Email)
		if err != nil {
			return err
		}
		all, err := store.StandingOf(tx, author)
		for _, s := range all {
			if !by.Agent() || s.For(by.Principal.Email, author, groups, s.Pattern.Machine, s.Pattern.Audience) {
				out = append(out, a.standingView(s))
			}
		}
		return err
	})
	return out, err
}

// RevokeStanding takes a standing grant back, and what it gave and nobody has
// used yet. A token suffices: it only narrows.
func (a *Authority) RevokeStanding(ctx context.Context, by Actor, id string) error {
	return a.narrow(ctx, func(t *txn) error {
		s, err := store.StandingByID(t, id)
		if errors.Is(err, store.ErrNotFound) || err == nil && by.Means != Management && s.Author != by.Principal.Email {
			return errNoStanding()
		}
		if err != nil {
			return err
		}
		if err := t.mayNarrow(by, s.Author); err != nil {
			return err
		}
		return t.endStanding(by.Name(), s, "revoked")
	})
}

func (t *txn) endStanding(by string, s store.Standing, why string) error {
	if err := store.EndStanding(t, s.ID, by, int64(t.now)); errors.Is(err, store.ErrConflict) {
		return problem(409, "The standing grant is revoked already", "", "").kind("grant_already_decided")
	} else if err != nil {
		return err
	}
	fault.Point("authority.standing")
	if err := t.endDerived(by, s, "", why); err != nil {
		return err
	}
	_, err := t.record(recordTrust, "", s.Author, trustRecord{Operation: "standing.revoked", By: by, Subject: s.Author, Params: map[string]string{"id": s.ID, "why": why}})
	return err
}

// endDerived takes back what a standing grant gave and nobody has used yet: to one
// agent, or with "" to all.
func (t *txn) endDerived(by string, s store.Standing, agent, why string) error {
	derived, err := store.DerivedGrants(t, s.ID)
	if err != nil {
		return err
	}
	for _, g := range derived {
		if agent != "" && g.Request.Requester != agent {
			continue
		}
		next, err := g.Apply(grant.Revoke{By: by, At: t.now})
		if err != nil {
			continue // its time has run out; it is written down as expired
		}
		if err := t.revoke(next, "its standing grant "+s.ID+" was "+why); err != nil {
			return err
		}
	}
	return nil
}

// endDerivedOf does so for those standing grants of a person that meet a condition.
func (t *txn) endDerivedOf(by, author, agent, why string, meets func(grant.Pattern) bool) error {
	all, err := store.StandingOf(t, author)
	if err != nil {
		return err
	}
	for _, s := range all {
		if s.Revoked != 0 || !meets(s.Pattern) {
			continue
		}
		if err := t.endDerived(by, s, agent, why); err != nil {
			return err
		}
	}
	return nil
}

// endStandingOf takes back what a principal has signed, and what names it.
func (t *txn) endStandingOf(by string, p store.Principal) error {
	all, err := store.StandingOf(t, p.Email)
	if err != nil {
		return err
	}
	if p.Owner != "" {
		named, err := store.StandingNaming(t, p.Owner, p.Email)
		if err != nil {
			return err
		}
		all = append(all, named...)
	}
	for _, s := range all {
		if s.Revoked != 0 {
			continue
		}
		if err := t.endStanding(by, s, "withdrawn with "+p.Email); err != nil {
			return err
		}
	}
	return nil
}

// programs are the programs that a request would start, and the empty name that
// patterns for any are found by.
func programs(read flow.Reading) []string {
	out := []string{""}
	for _, d := range read.Details {
		if c, ok := d.(detail.Command); ok && c.Program != "" {
			out = append(out, c.Program)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// useStanding allows a request by the patterns that cover it, unless one of
// them has been used too much: that one is paused, and the request is asked. fresh is
// nil for one that waits already.
func (t *txn) useStanding(g grant.Grant, fresh *unstored, read flow.Reading, verdict flow.Verdict) (out Created, allowed bool, err error) {
	deletes := read.Effects.Has(detail.Destroys)
	until := min(t.now+standingTTL, t.now+grant.Millis(t.a.cfg.OnceTTL.Milliseconds()))
	var ids []string
	for _, s := range verdict.Standing {
		over, err := t.overLimit(s, deletes)
		if err != nil {
			return out, false, err
		}
		if over != "" && fresh == nil {
			return out, false, nil // it was asked before anybody signed, and goes on waiting
		}
		if over != "" {
			return out, false, t.pauseStanding(s, over)
		}
		until = min(until, s.Until)
		ids = append(ids, s.ID)
	}
	if fresh != nil {
		if err := t.take(g, "covered by a standing grant"); err != nil {
			return out, false, err
		}
	}
	first := verdict.Standing[0]
	for _, s := range verdict.Standing {
		// It counts when it was asked: what waited is no burst.
		if err := store.UseStanding(t, s.ID, g.ID, deletes, int64(min(g.Created, t.now))); err != nil {
			return out, false, err
		}
		if s.Uses+1 == s.Pattern.Limits.Uses { // it covers nothing more
			if err := store.TouchStanding(t, s.ID); err != nil {
				return out, false, err
			}
		}
	}
	next, err := t.inTheirName(g, fresh, until, grant.Decision{By: first.Author, Strength: first.Strength, Standing: first.ID}, decisionRecord{Standing: ids})
	return Created{Grant: next, New: true, Standing: true}, true, err
}

// unstored is a request that is decided as it is made, and is stored with its
// decision: its key for reuse, and its bytes.
type unstored struct {
	key  []byte
	size int
}

// take records a request that is decided at once, and by what.
func (t *txn) take(g grant.Grant, verdict string) error {
	_, err := t.record(recordRequest, g.ID, g.Request.Requester, requestRecordOf(g, verdict))
	return err
}

// inTheirName makes a request a once-grant until then, in the name of the person
// who has written beforehand what decides. fresh is nil for one that waits already.
func (t *txn) inTheirName(g grant.Grant, fresh *unstored, until grant.Millis, d grant.Decision, rec decisionRecord) (grant.Grant, error) {
	statement := t.a.statementOf(g, Reach{Type: grant.Once})
	encoded, err := json.Marshal(statement)
	if err != nil {
		return g, err
	}
	d.At, d.Digest = t.now, statement.Digest()
	next, err := g.Apply(grant.Approve{Type: grant.Once, Until: until, Decision: d})
	if err != nil {
		return g, err
	}
	fault.Point("authority.use-standing")
	rec.Grant, rec.By, rec.Answer, rec.Type, rec.Until = g.ID, d.By, "approved", next.Type, next.ValidUntil
	rec.Strength, rec.Digest, rec.Statement = d.Strength, d.Digest, encoded
	if fresh == nil {
		return next, t.settle(next, rec)
	}
	index, err := t.record(recordDecision, g.ID, g.Request.Requester, rec)
	if err != nil {
		return next, err
	}
	fault.Point("authority.settle")
	t.OnCommit(func() { t.a.hub.publish(next) })
	return next, store.InsertDecided(t, next, fresh.key, fresh.size, index)
}

// overLimit says which limit the next use would exceed.
func (t *txn) overLimit(s *grant.Standing, deletes bool) (string, error) {
	over, err := store.StandingUsesReach(t, s.ID, int64(t.now)-minuteMS, s.Pattern.Limits.PerMinute, false)
	if err != nil || over {
		return fmt.Sprintf("more than %d uses in a minute", s.Pattern.Limits.PerMinute), err
	}
	if !deletes {
		return "", nil
	}
	over, err = store.StandingUsesReach(t, s.ID, int64(t.now)-hourMS, s.Pattern.Limits.Deletes, true)
	if err != nil || over {
		return fmt.Sprintf("more than %d uses that delete in an hour", s.Pattern.Limits.Deletes), err
	}
	return "", nil
}

func (t *txn) pauseStanding(s *grant.Standing, why string) error {
	if err := store.PauseStanding(t, s.ID, why); err != nil {
		return err
	}
	_, err := t.record(recordTrust, "", s.Author, trustRecord{Operation: "standing.paused", Subject: s.Author, Params: map[string]string{"id": s.ID, "why": why}})
	return err
}

// resumeStanding lets a paused pattern cover again.
func (t *txn) resumeStanding(person store.Principal, id string) error {
	s, err := store.StandingByID(t, id)
	if errors.Is(err, store.ErrNotFound) || err == nil && s.Author != person.Email {
		return errNoStanding()
	}
	if err != nil {
		return err
	}
	if err := store.PauseStanding(t, id, ""); errors.Is(err, store.ErrConflict) {
		return errNoStanding()
	} else if err != nil {
		return err
	}
	return nil
}

// maxAnswered is how many waiting requests a new pattern is compared with at most.
const maxAnswered = 300

// answerWaiting allows the requests that wait and that patterns now cover, as they
// would be if they were asked again. A pattern that was just signed answers the
// cards that made its author write it.
func (t *txn) answerWaiting(owner string) error {
	waiting, err := store.PendingOf(t, owner, maxAnswered)
	if err != nil {
		return err
	}
	for _, g := range waiting {
		if err := t.answerByStanding(g); err != nil {
			return err
		}
	}
	return nil
}

// answerByStanding allows one request that waits, if patterns cover it.
func (t *txn) answerByStanding(g grant.Grant) error {
	if g.As(t.now).Status != grant.Pending || g.Request.Connect != nil {
		return nil
	}
	p, err := store.PrincipalByEmail(t, g.Request.Requester)
	if err != nil || !usable(p) || p.Paused || p.Generation != g.Requester.Generation {
		return ignoreNotFound(err)
	}
	read, err := flow.Read(t.a.reader, g.Request)
	if err != nil {
		return nil // it stays with the person
	}
	verdict, err := t.judgeStanding(p, g, read, flow.Verdict{Outcome: flow.Ask})
	if err != nil || verdict.Outcome != flow.Allow || len(verdict.Standing) == 0 {
		return err
	}
	_, _, err = t.useStanding(g, nil, read, verdict)
	return err
}

// TestStanding says what standing grants make of a request, without making one:
// of the asker's agents for a person, of its own for an agent.
func (a *Authority) TestStanding(ctx context.Context, by Actor, agent string, req grant.Request) (api.StandingTest, error) {
	var out api.StandingTest
	if !by.Known() {
		return out, errUnauthenticated()
	}
	if by.Agent() {
		agent = by.Principal.Email
	}
	read, err := flow.Read(a.reader, req)
	if err != nil {
		return out, problem(400, "The command cannot be run", err.Error(), "Correct the command and ask again.")
	}
	calls := read.Covered()
	if len(calls) > maxTested {
		return out, problem(400, "The command is too long to be tested", fmt.Sprintf("It has %d calls, the limit is %d.", len(calls), maxTested), "Test its parts.")
	}
	out.Risk = read.Risk.String()
	err = a.view(ctx, func(tx store.Tx) error {
		out.Calls, out.Covered = nil, true
		p, err := store.PrincipalByEmail(tx, lower(agent))
		if err != nil || p.Email != by.Principal.Email && p.Owner != by.Principal.Email {
			return problem(404, "There is no such agent", "", "See yours: vogt agent list.").caused(ignoreNotFound(err))
		}
		who, ok, err := askerOf(tx, p, read, req)
		if err != nil {
			return err
		}
		var standing []*grant.Standing
		if ok {
			kept, err := a.patterns.of(tx, who.owner.Email)
			if err != nil {
				return err
			}
			standing = who.candidates(kept, kept.index.All())
		}
		where := flow.WhereOf(req)
		if where.Labels, err = labelsOf(tx, p.Email); err != nil {
			return err
		}
		for i := range calls {
			c := api.TestedCall{Effects: calls[i].Effects.String(), Risk: calls[i].Detail.Level().String(), Permission: calls[i].Detail.Permission()}
			if i < len(read.Calls) {
				c.Shown = read.Calls[i].Shown()
			}
			for _, s := range standing {
				ok, why := coverage.Covers(&s.Pattern, &calls[i], where)
				if ok && !s.Active(a.now()) {
					ok, why = false, "it is paused, used up or over"
				}
				if ok && c.Standing == "" {
					c.Standing = s.ID
				}
				if !ok {
					c.Missed = append(c.Missed, api.Missed{Standing: s.ID, Why: why})
				}
			}
			out.Covered = out.Covered && c.Standing != ""
			out.Calls = append(out.Calls, c)
		}
		return nil
	})
	return out, err
}

// Covered says for each call of a waiting request which standing grant of its owner
// covers it, "" for none, in the order of its reading. The rest is what the card asks
// about. It is for those who may answer, and computed as things stand now.
func (a *Authority) Covered(ctx context.Context, by Actor, id string) (out []string, err error) {
	err = a.view(ctx, func(tx store.Tx) error {
		out = nil
		g, err := store.GrantByID(tx, id)
		if err != nil || !by.party(g, a.now()) {
			return errNoGrant(orNotFound(err))
		}
		p, err := store.PrincipalByEmail(tx, g.Request.Requester)
		if err != nil || g.Request.Connect != nil {
			return err
		}
		read, err := flow.Read(a.reader, g.Request)
		if err != nil || !read.Coverable() {
			return nil // nothing covers it
		}
		calls := read.Covered()
		if len(calls) > maxTested {
			return nil
		}
		who, ok, err := askerOf(tx, p, read, g.Request)
		if err != nil || !ok {
			return err
		}
		kept, err := a.patterns.of(tx, p.Owner)
		if err != nil {
			return err
		}
		standing := who.candidates(kept, kept.index.All())
		where := flow.WhereOf(g.Request)
		if where.Labels, err = labelsOf(tx, p.Email); err != nil {
			return err
		}
		out = make([]string, len(calls))
		for i := range calls {
			by, missing := coverage.Standing(calls[i:i+1], where, standing, a.now())
			if len(missing) == 0 {
				out[i] = by[0].ID
			}
		}
		return nil
	})
	return out, err
}
