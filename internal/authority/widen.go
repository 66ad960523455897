package authority

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"vogt/internal/api"
	"vogt/internal/coverage"
	"vogt/internal/detail"
	"vogt/internal/fault"
	"vogt/internal/flow"
	"vogt/internal/grant"
	"vogt/internal/store"
)

const (
	// maxSimilar bounds the earlier grants that are shown beside a request, and those
	// that are looked at for it.
	maxSimilar, maxLooked = 10, 200
	maxExtended           = 32
)

// Hints is what whoever may decide is shown beside a request that waits.
type Hints struct {
	Similar     []Similar
	Merged      []detail.Wire // what asked and similar ones name together
	Suggestions []api.WideningSuggestion
	Diagnostics []api.Diagnostic
}

// Similar is an earlier permission for almost the same, and for which details.
type Similar struct {
	Grant   grant.Grant
	Indices []int
}

// Hints computes them, for who may decide only: nil for anybody else, and for what
// does not wait.
func (a *Authority) Hints(ctx context.Context, by Actor, g grant.Grant) (*Hints, error) {
	if g.Status != grant.Pending || !by.answers(g, a.now()) || g.Request.Connect != nil {
		return nil, nil
	}
	read, err := flow.Read(a.reader, g.Request)
	if err != nil {
		return nil, nil
	}
	out := &Hints{Suggestions: suggestions(read)}
	err = a.view(ctx, func(tx store.Tx) error {
		if out.Diagnostics, err = a.diagnose(tx, g, read); err != nil {
			return err
		}
		open, err := store.OpenGrantsOf(tx, g.Request.Requester)
		if err != nil {
			return err
		}
		slices.SortFunc(open, func(x, y grant.Grant) int { return int(y.Created - x.Created) })
		for _, old := range open[:min(len(open), maxLooked)] {
			if len(out.Similar) == maxSimilar || a.extendable(by, g, old, a.now()) != nil {
				continue
			}
			was, err := flow.Read(a.reader, old.Request)
			if err != nil {
				continue
			}
			if indices := coverage.Similar(read.Details, was.Details); len(indices) > 0 {
				out.Similar = append(out.Similar, Similar{old, indices})
				out.Merged = append(out.Merged, wires(was.Details)...)
			}
		}
		return nil
	})
	if len(out.Similar) > 0 {
		out.Merged = distinct(append(wires(read.Details), out.Merged...))
	}
	return out, err
}

func wires(details []detail.Detail) (out []detail.Wire) {
	for _, d := range details {
		if c, ok := d.(detail.Command); ok {
			out = append(out, coverage.Widening{Scope: "exact", Detail: c}.Wire())
		}
	}
	return out
}

// distinct drops details that stand there before. Permissions of ours are equal only
// where the details are.
func distinct(list []detail.Wire) (out []detail.Wire) {
	for _, d := range list {
		if !slices.ContainsFunc(out, func(o detail.Wire) bool { return o.Permission == d.Permission && o.Operation == d.Operation }) {
			out = append(out, d)
		}
	}
	return out
}

func suggestions(read flow.Reading) (out []api.WideningSuggestion) {
	for i, d := range read.Details {
		c, ok := d.(detail.Command)
		if !ok || !c.Risk.Within(detail.High) {
			continue
		}
		for _, w := range coverage.Widenings(c) {
			wire := w.Wire()
			out = append(out, api.WideningSuggestion{Index: i, Scope: w.Scope, Label: w.Label, Detail: wire, Permission: wire.Permission})
		}
	}
	return out
}

// diagnose says why a request waits: what standing grants and policies miss.
func (a *Authority) diagnose(tx store.Tx, g grant.Grant, read flow.Reading) (out []api.Diagnostic, err error) {
	p, err := store.PrincipalByEmail(tx, g.Request.Requester)
	if err != nil {
		return nil, err
	}
	where := flow.WhereOf(g.Request)
	if where.Labels, err = labelsOf(tx, p.Email); err != nil {
		return nil, err
	}
	add := func(source, reason, summary string, more map[string]any) {
		out = append(out, api.Diagnostic{Source: source, Reason: reason, Summary: sentence(summary), Detail: more})
	}
	if !read.Coverable() {
		add("risk", "critical", "It is critical, which is asked every time", map[string]any{"risk": read.Risk.String()})
		return out, nil
	}
	var standing []*grant.Standing
	calls := read.Covered()
	if who, ok, err := askerOf(tx, p, read, g.Request); err != nil {
		return nil, err
	} else if ok {
		kept, err := a.patterns.of(tx, who.owner.Email)
		if err != nil {
			return nil, err
		}
		standing = who.candidates(kept, kept.index.For(calls, where))
	}
	_, missing := coverage.Standing(calls, where, standing, a.now())
	switch {
	case len(standing) == 0:
		add("standing", "no-standing-grant", "No standing grant is for these programs", map[string]any{})
	case len(missing) > 0:
		_, why := coverage.Covers(&standing[0].Pattern, &calls[missing[0]], where)
		add("standing", "not-covered", "No standing grant covers it whole: "+why, map[string]any{"calls": len(missing)})
	}
	all, err := policies(tx, p, g.Request.Audience, a.now())
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		add("yolo", "no-policy", "This agent has no policy, so that what nothing else covers waits for you", map[string]any{})
		return out, nil
	}
	if approved, why := judgePolicies(all, read, where); !approved {
		add("yolo", "not-approved", "The policy does not approve it: "+why, map[string]any{"mode": all[0].Policy.Mode})
	}
	return out, nil
}

func sentence(s string) string {
	if s != "" && s[len(s)-1] != '.' {
		s += "."
	}
	return s
}

// Widen is an answer that permits more than what is asked.
type Widen struct {
	Details []detail.Wire // in the place of the request's, one for one
	Mode    string        // merge or widen, with Old
	Old     []string      // grants that are part of it, and end with it
	Reach   Reach
	Note    string
}

// ApproveWidened signs standing grants for what was chosen, ends the old grants that
// are part of it, and lets the standing grants answer the request: all or nothing
// (docs/decisions/0020). It returns the ids of the standing grants.
func (a *Authority) ApproveWidened(ctx context.Context, by Actor, id string, w Widen) (g grant.Grant, made []string, err error) {
	const tried = "widen"
	g, party, err := a.Get(ctx, by, id)
	if err != nil {
		return g, nil, err
	}
	switch {
	case !party:
		return g, nil, errNoGrant(store.ErrNotFound)
	case !by.answers(g, a.now()):
		return g, nil, a.refuse(ctx, by, g.ID, tried, notYours(g))
	case by.Principal.Email != g.Owner:
		return g, nil, a.refuse(ctx, by, g.ID, tried, problem(403, "Only the owner permits more than what is asked", "An approver answers single requests.", "Ask "+g.Owner+": vogt standing add.").kind("forbidden"))
	case g.Status != grant.Pending:
		return g, nil, errDecided(g)
	case g.TwoPersons():
		return g, nil, problem(403, "Two persons must allow this", "One of them cannot permit more than what is asked.", "Approve it; the second person must allow the same.").kind("forbidden")
	case w.Reach.Type == grant.Once:
		return g, nil, problem(400, "What is used once is not widened", "A wider permission lasts: grant_type timed or always.", "Approve it once without widening.").kind("invalid_grant_type")
	case !lasting(g):
		return g, nil, problem(403, "This can only be allowed once", "It is critical, a crossing, or from a client that does not bind its commands.", "Allow it once.").kind("forbidden")
	}
	if w.Reach.Type == grant.Always && w.Reach.Until == 0 {
		w.Reach.Until = a.now() + grant.DefaultDays*24*hourMS // as every pattern ends
	} else if err := a.checkReach(w.Reach); err != nil {
		return g, nil, err
	}
	if by.Means != Bearer {
		return g, nil, problem(403, "A page signs patterns, and widens nothing", "", "Sign it: vogt standing add.").kind("forbidden")
	}
	err = a.update(ctx, func(t *txn) error {
		g, made, err = t.widen(by, id, w)
		return err
	})
	return g, made, err
}

// widen is the part of ApproveWidened that must see one state of the data.
func (t *txn) widen(by Actor, id string, w Widen) (g grant.Grant, made []string, err error) {
	if err := t.still(by, proven{strength: grant.Bearer}); err != nil {
		return g, nil, err
	}
	if g, err = store.GrantByID(t, id); err != nil {
		return g, nil, errNoGrant(err)
	}
	if g.As(t.now).Status != grant.Pending || !by.answers(g, t.now) {
		return g, nil, errDecided(g.As(t.now))
	}
	old, err := t.extended(by, g, w.Old)
	if err != nil {
		return g, nil, err
	}
	patterns, err := t.chosen(g, old, w)
	if err != nil {
		return g, nil, err
	}
	for _, p := range patterns {
		if !p.MaxRisk.Within(t.a.cfg.Bearer) {
			return g, nil, problem(403, "A login alone permits nothing", fmt.Sprintf("A standing grant up to risk %s needs a passkey or a signature.", p.MaxRisk),
				"Sign it: vogt standing add; it answers what waits and it covers, too. For clients that cannot sign there is the authority's bearer_decisions switch.").kind("forbidden")
		}
		s, err := t.standingByBearer(by, p, w.Reach.Until, shorten(w.Note, maxReason))
		if err != nil {
			return g, nil, err
		}
		made = append(made, s.ID)
	}
	fault.Point("authority.widen")
	for _, o := range old {
		next, err := o.Apply(grant.Revoke{By: by.Name(), At: t.now})
		if err != nil {
			return g, nil, errDecided(o.As(t.now))
		}
		if err := t.revoke(next, "it became part of the standing grant "+made[0]); err != nil {
			return g, nil, err
		}
	}
	if err := t.answerByStanding(g); err != nil {
		return g, nil, err
	}
	if g, err = store.GrantByID(t, id); err == nil && g.Status != grant.Approved {
		err = problem(400, "What was chosen does not cover what is asked", "Nothing was changed.", "Choose from widening_suggestions of the grant.")
	}
	return g, made, err
}

// answers reports whether the actor answers g in its own right: what a deputy may
// do is bounded by what was signed, and patterns are no part of it.
func (a Actor) answers(g grant.Grant, now grant.Millis) bool {
	_, deputy, ok := a.decides(g, now)
	return ok && deputy == nil
}

// extendable says why an old grant cannot become part of the answer to g.
func (a *Authority) extendable(by Actor, g, old grant.Grant, now grant.Millis) error {
	switch {
	case !by.answers(old, now):
		return errNoGrant(store.ErrNotFound)
	case old.Type == grant.Once || !old.Permits(now) || old.Request.Connect != nil || old.Request.RunAs != "":
		return problem(409, "This grant cannot be extended", "Only timed and always grants for commands that are in force can.", "").kind("grant_already_decided")
	case old.Request.Requester != g.Request.Requester || old.Request.Host != g.Request.Host || old.Request.Audience != g.Request.Audience:
		return problem(400, "The grants do not belong together", "Requester, target_host and audience must be equal.", "")
	}
	return nil
}

func (t *txn) extended(by Actor, g grant.Grant, ids []string) ([]grant.Grant, error) {
	ids = slices.Compact(slices.Sorted(slices.Values(ids)))
	if len(ids) > maxExtended {
		return nil, problem(400, "Too many grants at once", fmt.Sprintf("extend_grant_ids names %d, the limit is %d.", len(ids), maxExtended), "")
	}
	var out []grant.Grant
	for _, id := range ids {
		old, err := store.GrantByID(t, id)
		if err != nil {
			return nil, errNoGrant(err)
		}
		if err := t.a.extendable(by, g, old, t.now); err != nil {
			return nil, err
		}
		out = append(out, old)
	}
	return out, nil
}

// chosen are the patterns for what a person has chosen.
func (t *txn) chosen(g grant.Grant, old []grant.Grant, w Widen) (out []grant.Pattern, err error) {
	bad := func(format string, args ...any) error {
		return problem(400, "What was chosen cannot be a pattern", fmt.Sprintf(format, args...)+".", "Choose from widening_suggestions of the grant, or sign a pattern: vogt standing add.")
	}
	read, err := flow.Read(t.a.reader, g.Request)
	if err != nil {
		return nil, bad("%v", err)
	}
	details := w.Details
	switch {
	case len(details) > 0 && len(old)+len(w.Mode) > 0:
		return nil, bad("widened_details and extend_mode exclude each other")
	case len(details) > 0:
		if details, err = sameDetails(read, details); err != nil {
			return nil, bad("%v", err)
		}
	case w.Mode != "merge" && w.Mode != "widen":
		return nil, bad("extend_mode %q: want merge or widen", w.Mode)
	case len(old) == 0:
		return nil, bad("extend_grant_ids names no grant")
	default:
		details = moving(read)
		for _, o := range old {
			was, err := flow.Read(t.a.reader, o.Request)
			if err != nil {
				return nil, bad("%v", err)
			}
			if indices := coverage.Similar(read.Details, was.Details); w.Mode == "widen" && len(indices) > 0 {
				return nil, bad("without what differs from grant %s no folder is left", o.ID)
			}
			details = append(details, moving(was)...)
		}
	}
	seen := map[string]bool{}
	for _, d := range distinct(details) {
		p, err := t.a.patternFor(g, read, d)
		if err != nil {
			return nil, bad("%v", err)
		}
		encoded, err := json.Marshal(p)
		if err != nil {
			return nil, err
		}
		if !seen[string(encoded)] {
			seen[string(encoded)], out = true, append(out, p)
		}
	}
	return out, nil
}

// moving are the details of a reading that a pattern must cover: what only starts
// others needs none.
func moving(read flow.Reading) (out []detail.Wire) {
	for _, c := range read.Covered() {
		if d, ok := c.Detail.(detail.Command); ok && !c.Carrier {
			out = append(out, coverage.Widening{Scope: "exact", Detail: d}.Wire())
		}
	}
	return out
}

// sameDetails compares the chosen details with those that the authority reads, one
// for one, and drops those of calls that only start others.
func sameDetails(read flow.Reading, chosen []detail.Wire) (out []detail.Wire, err error) {
	calls := read.Covered()
	if len(chosen) != len(read.Details) || len(calls) != len(chosen) {
		return nil, fmt.Errorf("widened_details has %d details, the request has %d", len(chosen), len(read.Details))
	}
	for i, d := range chosen {
		c, ok := read.Details[i].(detail.Command)
		if !ok || d.CLI != c.Program || d.Action != string(c.Action) {
			return nil, fmt.Errorf("detail %d is for %s, %s; the request has another there", i, d.CLI, d.Action)
		}
		d.Operation = c.Operation // never that of another one
		if !calls[i].Carrier {
			out = append(out, d)
		}
	}
	return out, nil
}

// patternFor is the pattern of one chosen detail, for who asks, where it was asked,
// up to the risk that the request has.
func (a *Authority) patternFor(g grant.Grant, read flow.Reading, d detail.Wire) (grant.Pattern, error) {
	if !a.reader.Knows(d.CLI) {
		return grant.Pattern{}, fmt.Errorf("the catalog does not know %s", d.CLI)
	}
	p, err := coverage.Widened(d)
	if err != nil {
		return p, err
	}
	p.Agent, p.Machine, p.Audience, p.MaxRisk = g.Request.Requester, g.Request.Host, g.Request.Audience, max(read.Risk, detail.Low)
	c := g.Request.Context
	p.Unseen = c == nil || c.Cwd == nil
	return p.Complete()
}
