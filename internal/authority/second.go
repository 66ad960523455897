package authority

import (
	"slices"

	"vogt/internal/detail"
	"vogt/internal/grant"
	"vogt/internal/store"
)

// kindSecond marks an approval that is not a second person's.
const kindSecond = "second_approver"

// approvals is how many persons must allow a request. The rule stands in the
// configuration: who may answer cannot soften it.
func (a *Authority) approvals(g grant.Grant) int64 {
	from := a.cfg.SecondApprover
	if from != detail.Unrated && (g.Risk == detail.Unrated || g.Risk >= from) || slices.Contains(a.cfg.SecondApproverAgents, g.Request.Requester) {
		return 2
	}
	return 1
}

// oneTooFew refuses what was asked or allowed before a rule was written that wants a
// second person's yes.
func (a *Authority) oneTooFew(g grant.Grant, now grant.Millis) error {
	if g.As(now).Status.Terminal() || max(g.Approvals, 1) >= a.approvals(g) {
		return nil
	}
	return problem(403, "A second person must allow this by now", "It was asked before that rule was written, and nobody can answer it twice.",
		"Ask again; the configuration's second_approver names the rule.").kind("forbidden")
}

func errNoSecond(requester string) *Error {
	return problem(403, "Nobody could be the second to allow this", "Two different persons must allow it, and "+requester+" has one who answers for it.",
		"Management names an approver other than the owner; the configuration's second_approver is the rule.").kind("forbidden")
}

// notSecond says why an approval is not that of a second person.
func notSecond(g grant.Grant, d grant.Decision) *Error {
	first := g.Endorsed
	switch {
	case first.By == d.By:
		return problem(403, "You have allowed this already", "A second, different person must allow it.", "Ask them; nothing else moves it.").kind(kindSecond)
	case first.Digest != d.Digest:
		return problem(409, "The first person allowed something else", "Two persons must allow the same: "+first.By+" allowed it as "+string(first.Type)+".",
			"Allow exactly that, or deny it.").kind(kindSecond)
	}
	return problem(403, "This would be the same person's yes twice", first.By+" has allowed it, and neither a deputy of theirs nor whom they stood in for counts as another.",
		"Ask somebody who answers for it on their own.").kind(kindSecond)
}

// firstYes is the first of two persons' yes that still counts. Until is when it ends,
// 0 for never.
type firstYes struct{ until grant.Millis }

// firstStill looks whether the first person may still allow g, nil if nobody has or
// may: then the next yes is the first.
func (t *txn) firstStill(g grant.Grant) (*firstYes, error) {
	e := g.Endorsed
	if e == nil {
		return nil, nil
	}
	p, err := store.PrincipalByEmail(t, e.By)
	if ignoreNotFound(err) != nil {
		return nil, err
	}
	if !usable(p) || p.Kind != kindPerson || p.Generation != e.Generation {
		return nil, nil
	}
	if e.Deputy == "" {
		if e.By != g.Owner && e.By != g.Approver {
			return nil, nil
		}
		return &firstYes{}, nil
	}
	d, err := t.deputyStill(e.Deputy, e.By, g)
	if err != nil {
		return nil, nil
	}
	return &firstYes{until: d.Until}, nil
}

// endorse stores the first of two persons' yes and its record.
func (t *txn) endorse(g grant.Grant, by Actor, d grant.Decision, reach Reach, rec decisionRecord) (grant.Grant, error) {
	rec.Answer, rec.Type, rec.Until = "endorsed", reach.Type, reach.Until
	index, err := store.LogSize(t)
	if err != nil {
		return g, err
	}
	next, err := g.Apply(grant.Endorse{Endorsement: grant.Endorsement{
		Decision: d, Type: reach.Type, Until: reach.Until, Record: index, Generation: by.Principal.Generation,
	}})
	if err != nil {
		return g, errDecided(g.As(t.now))
	}
	if d.Deputy != "" {
		if err := store.DeputyAnswered(t, d.Deputy, g.ID); err != nil {
			return g, err
		}
	}
	if _, err := t.record(recordEndorse, g.ID, g.Request.Requester, rec); err != nil {
		return g, err
	}
	return next, t.swap(next)
}

// withinMandate reports whether an answer ends with the appointment at the latest.
func withinMandate(r Reach, mandate *store.Deputy) bool {
	return r.Type == grant.Once || r.Type == grant.Timed && r.Until <= mandate.Until
}
