package authority

import (
	"context"

	"vogt/internal/api"
	"vogt/internal/detail"
	"vogt/internal/grant"
	"vogt/internal/store"
)

// maxSeeded bounds the agents of one call of SeedByBearer.
const maxSeeded = 50

// SeedByBearer gives agents the safe commands, without folders of their own, where
// they have none. It permits, so it works only as far as the bearer_decisions switch
// does. Agents that are not the caller's are left alone and not told apart from
// those that do not exist.
func (a *Authority) SeedByBearer(ctx context.Context, by Actor, agents []string) (out api.Seeded, err error) {
	switch {
	case !by.Person():
		return out, a.refuse(ctx, by, "", "safe.on", problem(403, "Only a person gives agents the safe commands", "", "Ask your owner: vogt agent safe on.").kind("forbidden"))
	case len(agents) == 0 || len(agents) > maxSeeded:
		return out, problem(400, "The list is empty or too long", "delegates names 1 to 50 agents.", "")
	case !detail.Medium.Within(a.cfg.Bearer):
		return out, a.refuse(ctx, by, "", "safe.on", problem(403, "A login alone permits nothing", "The safe commands are a standing grant and need a passkey or a signature.",
			"Sign them: vogt agent safe on. For clients that cannot sign there is the authority's bearer_decisions switch.").kind("forbidden"))
	}
	err = a.update(ctx, func(t *txn) error {
		out = api.Seeded{Results: make([]api.SeededAgent, len(agents))}
		if err := t.still(by, proven{strength: grant.Bearer}); err != nil {
			return err
		}
		for i, email := range agents {
			row := &out.Results[i]
			row.Delegate, email = email, lower(email)
			if t.ownAgent(by.Principal, email) != nil {
				continue
			}
			has, err := store.SafeOf(t, by.Principal.Email, email)
			if err != nil {
				return err
			}
			if len(has) > 0 {
				row.Skipped = len(grant.SafeCommands())
				continue
			}
			s, err := t.seedSafe(by.Principal, email, nil, by.Name(), grant.Bearer)
			if err != nil {
				return err
			}
			row.Created = len(s.Pattern.Programs)
			if _, err := t.record(recordTrust, "", email, trustRecord{
				Operation: api.TrustSafeOn, By: by.Name(), Subject: email, Strength: grant.Bearer, Params: map[string]string{"id": s.ID, "safe": "[]"},
			}); err != nil {
				return err
			}
		}
		return nil
	})
	return out, err
}

// recentGrants is how many of an agent's grants an overview shows, countedGrants how
// many of its newest it counts.
const recentGrants, countedGrants = 20, 1000

// AgentOverview is an agent with what it has asked lately.
type AgentOverview struct {
	Agent    store.Principal
	Standing []api.Standing
	Recent   []grant.Grant
	Counts   map[grant.Status]int64 // of the newest thousand
}

// Overview lists the caller's own agents with what they may do and have asked. A
// person sees its own only.
func (a *Authority) Overview(ctx context.Context, by Actor, email string) ([]AgentOverview, error) {
	if !by.Person() || lower(email) != by.Principal.Email {
		return nil, problem(403, "Those are not yours to see", "Everybody sees their own agents here.", "").kind("forbidden")
	}
	out := []AgentOverview{}
	err := a.view(ctx, func(tx store.Tx) error {
		agents, err := store.Principals(tx, by.Principal.Email)
		if err != nil {
			return err
		}
		standing, err := store.StandingOf(tx, by.Principal.Email)
		if err != nil {
			return err
		}
		for _, p := range agents {
			row := AgentOverview{Agent: p, Standing: []api.Standing{}}
			groups, err := store.GroupsOf(tx, by.Principal.Email, p.Email)
			if err != nil {
				return err
			}
			for i := range standing {
				if s := &standing[i]; s.For(p.Email, p.Owner, groups, s.Pattern.Machine, s.Pattern.Audience) {
					row.Standing = append(row.Standing, a.standingView(*s))
				}
			}
			f := store.Filter{Viewer: p.Email, Agent: true, Since: grant.Millis(p.Created), Limit: recentGrants, Now: a.now()}
			if row.Recent, err = store.ListGrants(tx, f); err != nil {
				return err
			}
			for i := range row.Recent {
				row.Recent[i] = row.Recent[i].As(f.Now)
			}
			if row.Counts, err = store.CountGrants(tx, p.Email, countedGrants, f.Now); err != nil {
				return err
			}
			out = append(out, row)
		}
		return nil
	})
	return out, err
}
