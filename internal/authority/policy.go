package authority

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"vogt/internal/api"
	"vogt/internal/coverage"
	"vogt/internal/detail"
	"vogt/internal/flow"
	"vogt/internal/grant"
	"vogt/internal/store"
)

// policyParams checks the parameters of a policy to be signed and puts them into
// their one form, which is what the person sees and signs.
func policyParams(params map[string]string) error {
	bad := func(err error) error {
		return problem(400, "The policy cannot be taken", err.Error()+".", "Correct it; vogt policy set --help names what a policy may hold.")
	}
	p, err := grant.ParsePolicy(params["policy"])
	if err != nil {
		return bad(err)
	}
	p.Agent = lower(p.Agent)
	if err := checkEmail(p.Agent); err != nil {
		return err
	}
	encoded, err := json.Marshal(p)
	if err != nil {
		return err
	}
	// Escaped, it may be longer than it came.
	if _, err := grant.ParsePolicy(string(encoded)); err != nil {
		return bad(err)
	}
	params["policy"] = string(encoded)
	days := grant.DefaultDays
	if text := params["days"]; text != "" {
		if days, err = strconv.Atoi(text); err != nil || days < 1 || days > grant.MaxDays {
			return bad(fmt.Errorf("days %q: want 1 to %d", text, grant.MaxDays))
		}
	}
	params["days"] = strconv.Itoa(days)
	return nil
}

// setPolicy puts a signed policy into force.
func (t *txn) setPolicy(person store.Principal, params map[string]string, strength grant.Strength) (store.Policy, error) {
	p, err := grant.ParsePolicy(params["policy"])
	if err != nil {
		return store.Policy{}, err
	}
	days, err := strconv.Atoi(params["days"])
	if err != nil {
		return store.Policy{}, err
	}
	return t.insertPolicy(person, p, t.now+grant.Millis(days)*24*hourMS, strength)
}

// insertPolicy puts a policy of the person's into force in the place of the one
// before, and takes back what that gave and nobody has used. The record of it is
// the next one.
func (t *txn) insertPolicy(person store.Principal, p grant.Policy, until grant.Millis, strength grant.Strength) (out store.Policy, err error) {
	if err := t.ownAgent(person, p.Agent); err != nil {
		return out, err
	}
	old, err := store.PolicyFor(t, p.Agent, p.Audience)
	if err == nil {
		err = t.endPolicy(person.Email, old, "another one took its place")
	}
	if ignoreNotFound(err) != nil {
		return out, err
	}
	if out.ID, err = t.a.newID(); err != nil {
		return out, err
	}
	if out.Record, err = store.LogSize(t); err != nil {
		return out, err
	}
	out.Policy, out.Author, out.Generation = p, person.Email, person.Generation
	out.Created, out.Until, out.Strength = t.now, until, strength
	return out, store.InsertPolicy(t, out)
}

// endPolicy takes a policy out of force, and what it gave and nobody has used.
func (t *txn) endPolicy(by string, p store.Policy, why string) error {
	if err := store.EndPolicy(t, p.ID, by, int64(t.now)); err != nil {
		return err
	}
	given, err := store.PolicyGrants(t, p.ID)
	if err != nil {
		return err
	}
	for _, g := range given {
		next, err := g.Apply(grant.Revoke{By: by, At: t.now})
		if err != nil {
			continue // its time has run out; it is written down as expired
		}
		if err := t.revoke(next, "the policy that approved it is over: "+why); err != nil {
			return err
		}
	}
	_, err = t.record(recordTrust, "", p.Policy.Agent, trustRecord{
		Operation: "policy.ended", By: by, Subject: p.Policy.Agent, Params: map[string]string{"id": p.ID, "audience": p.Policy.Audience, "why": why},
	})
	return err
}

// endPoliciesOf takes out of force what a principal has written, and what is for it.
func (t *txn) endPoliciesOf(by, email string) error {
	all, err := store.PoliciesOf(t, email)
	if err != nil {
		return err
	}
	for _, p := range all {
		if err := t.endPolicy(by, p, "withdrawn with "+email); err != nil {
			return err
		}
	}
	return nil
}

// policies are those in force for a request of this agent: for its audience, then
// for any. Whose author may not act any more, or does not own the agent, is none.
func policies(tx store.Tx, p store.Principal, audience string, now grant.Millis) ([]store.Policy, error) {
	if p.Kind != kindAgent || p.Owner == "" {
		return nil, nil
	}
	var out []store.Policy
	for _, a := range uniq(audience, "*") {
		found, err := store.PolicyFor(tx, p.Email, a)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		author, err := store.PrincipalByEmail(tx, found.Author)
		if ignoreNotFound(err) != nil {
			return nil, err
		}
		switch {
		case found.Author != p.Owner || !usable(author) || author.Generation != found.Generation:
		case int64(found.Created) < p.Created: // another agent had this address then
		case found.Until.Reached(now):
		default:
			out = append(out, found)
		}
	}
	return out, nil
}

// judgePolicies says what policies make of a request.
func judgePolicies(all []store.Policy, read flow.Reading, w coverage.Where) (approved bool, why string) {
	if len(all) > 0 && all[0].Paused != "" {
		return false, "the policy is paused: " + all[0].Paused
	}
	values := make([]*grant.Policy, len(all))
	for i := range all {
		values[i] = &all[i].Policy
	}
	return flow.JudgePolicy(read, values, w)
}

// byPolicy allows a request by the agent's auto-approval policy, unless that has
// been used too much: then it is paused, and the request is asked.
func (t *txn) byPolicy(p store.Principal, g grant.Grant, key []byte, read flow.Reading, size int) (out Created, approved bool, err error) {
	all, err := policies(t, p, g.Request.Audience, t.now)
	if err != nil || len(all) == 0 {
		return out, false, err
	}
	where := flow.WhereOf(g.Request)
	if where.Labels, err = labelsOf(t, p.Email); err != nil {
		return out, false, err
	}
	if approved, _ := judgePolicies(all, read, where); !approved {
		return out, false, nil
	}
	policy, deletes := all[0], read.Effects.Has(detail.Destroys)
	over, err := t.overPolicy(policy, deletes)
	if err != nil {
		return out, false, err
	}
	if over != "" {
		if err := store.PausePolicy(t, policy.ID, over); err != nil {
			return out, false, err
		}
		_, err := t.record(recordTrust, "", p.Email, trustRecord{Operation: "policy.paused", Subject: p.Email, Params: map[string]string{"id": policy.ID, "why": over}})
		return out, false, err
	}
	if err := t.take(g, "approved by a policy"); err != nil {
		return out, false, err
	}
	if err := store.UsePolicy(t, policy.ID, g.ID, deletes, int64(t.now)); err != nil {
		return out, false, err
	}
	until := min(t.now+standingTTL, t.now+grant.Millis(t.a.cfg.OnceTTL.Milliseconds()), policy.Until)
	next, err := t.inTheirName(g, &unstored{key, size}, until, grant.Decision{By: policy.Author, Strength: policy.Strength, Policy: policy.ID}, decisionRecord{Policy: policy.ID})
	return Created{Grant: next, New: true, Policy: true}, true, err
}

// overPolicy says which limit the next use would exceed.
func (t *txn) overPolicy(p store.Policy, deletes bool) (string, error) {
	all, _, err := store.PolicyUses(t, p.ID, int64(t.now)-minuteMS)
	if limit := p.Policy.Limits.PerMinute; err != nil || all >= limit {
		return fmt.Sprintf("more than %d uses in a minute", limit), err
	}
	if !deletes {
		return "", nil
	}
	_, gone, err := store.PolicyUses(t, p.ID, int64(t.now)-hourMS)
	if limit := p.Policy.Limits.Deletes; err == nil && gone >= limit {
		return fmt.Sprintf("more than %d uses that delete in an hour", limit), nil
	}
	return "", err
}

// policyStill checks that the policy that decided in a person's name still may.
func policyStill(tx store.Tx, g grant.Grant, now grant.Millis) error {
	if g.Decision == nil || g.Decision.Policy == "" {
		return nil
	}
	p, err := store.PolicyByID(tx, g.Decision.Policy)
	if err != nil {
		return errNoGrant(err)
	}
	author, err := store.PrincipalByEmail(tx, p.Author)
	if err != nil || !usable(author) || author.Generation != p.Generation {
		return inactive(p.Author).caused(err)
	}
	agent, err := store.PrincipalByEmail(tx, g.Request.Requester)
	if err != nil || agent.Owner != p.Author || p.Ended != 0 || p.Until.Reached(now) {
		return problem(403, "The policy behind this is over", "It was changed or cleared, or its time has run out.", "Ask again.").kind("grant_revoked").caused(err)
	}
	return nil
}

// policyView is a policy as the interface shows it.
func policyView(p store.Policy) *api.Policy {
	out := &api.Policy{
		ID: p.ID, Agent: p.Policy.Agent, Audience: p.Policy.Audience, Mode: p.Policy.Mode, By: p.Author,
		Allow: append([]string{}, p.Policy.Allow...), Deny: append([]string{}, p.Policy.Deny...),
		EnabledAt: p.Created.Seconds(), UpdatedAt: p.Created.Seconds(), Strength: p.Strength, Record: p.Record,
		Paused: p.Paused, Uses: p.Uses, LastUsedAt: p.LastUsed.Seconds(), Limits: p.Policy.Limits,
	}
	if r := p.Policy.DenyRisk; r != detail.Unrated {
		text := r.String()
		out.DenyRisk = &text
	}
	end := p.Until.Seconds()
	out.ExpiresAt = &end
	return out
}

// Policy reads the policy in force for an agent and audience: for its owner, its
// approver and itself. nil stands for none.
func (a *Authority) Policy(ctx context.Context, by Actor, agent, audience string) (*api.Policy, error) {
	var out *api.Policy
	err := a.view(ctx, func(tx store.Tx) error {
		p, err := a.policyOf(tx, by, agent, audience)
		if err == nil && !p.Until.Reached(a.now()) {
			out = policyView(p)
		}
		return ignoreNotFound(err)
	})
	return out, err
}

// policyOf finds a policy for an actor who may see it.
func (a *Authority) policyOf(tx store.Tx, by Actor, agent, audience string) (store.Policy, error) {
	p, err := store.PrincipalByEmail(tx, lower(agent))
	if ignoreNotFound(err) != nil {
		return store.Policy{}, err
	}
	e := by.Principal.Email
	sees := by.Means == Management || by.Known() && (p.Email == e || p.Owner == e || p.Approver == e)
	if err != nil || !sees || p.Kind != kindAgent {
		return store.Policy{}, problem(404, "There is no such agent", "", "See yours: vogt agent list.").kind("not_found")
	}
	if audience == "" {
		audience = "*"
	}
	return store.PolicyFor(tx, p.Email, audience)
}

// SetPolicyByBearer puts a policy into force with nothing but a person's token. It
// permits, so it works only as far as the bearer_decisions switch does. until is its
// end, 0 for the usual one.
func (a *Authority) SetPolicyByBearer(ctx context.Context, by Actor, p grant.Policy, until grant.Millis) (*api.Policy, error) {
	if !by.Person() {
		return nil, a.refuse(ctx, by, "", "policy.set", problem(403, "Only a person writes policies", "", "Ask your owner: vogt policy set.").kind("forbidden"))
	}
	p.Agent = lower(p.Agent)
	p, err := p.Complete()
	if err != nil {
		return nil, problem(400, "The policy cannot be taken", err.Error()+".", "Correct it; docs/policy.md says what a policy may hold.")
	}
	now := a.now()
	if until == 0 {
		until = now + grant.DefaultDays*24*hourMS
	}
	if until.Reached(now) || until > now+grant.MaxDays*24*hourMS {
		return nil, problem(400, "The end is out of range", fmt.Sprintf("A policy ends in the future, within %d days.", grant.MaxDays), "")
	}
	if highest := p.Highest(); highest != detail.Unrated && !highest.Within(a.cfg.Bearer) {
		return nil, a.refuse(ctx, by, "", "policy.set", problem(403, "A login alone permits nothing", fmt.Sprintf("A policy that approves up to risk %s needs a passkey or a signature.", highest),
			"Sign it: vogt policy set. For clients that cannot sign there is the authority's bearer_decisions switch, and denyRiskThreshold keeps a policy within it.").kind("forbidden"))
	}
	var out *api.Policy
	err = a.update(ctx, func(t *txn) error {
		if err := t.still(by, proven{strength: grant.Bearer}); err != nil {
			return err
		}
		s, err := t.insertPolicy(by.Principal, p, until, grant.Bearer)
		if err != nil {
			return err
		}
		encoded, err := json.Marshal(p)
		if err != nil {
			return err
		}
		if _, err = t.record(recordTrust, "", p.Agent, trustRecord{
			Operation: api.TrustPolicySet, By: by.Name(), Subject: p.Agent, Strength: grant.Bearer, Params: map[string]string{"id": s.ID, "policy": string(encoded)},
		}); err != nil {
			return err
		}
		out = policyView(s)
		return nil
	})
	return out, err
}

// ClearPolicy takes a policy out of force. A token suffices: it only narrows.
func (a *Authority) ClearPolicy(ctx context.Context, by Actor, agent, audience string) error {
	return a.narrow(ctx, func(t *txn) error {
		p, err := a.policyOf(t, by, agent, audience)
		if errors.Is(err, store.ErrNotFound) {
			return problem(404, "There is no such policy", "Nothing is approved by one.", "").kind("not_found")
		}
		if err != nil {
			return err
		}
		if err := t.mayNarrow(by, p.Policy.Agent); err != nil {
			return err
		}
		return t.endPolicy(by.Name(), p, "cleared")
	})
}
