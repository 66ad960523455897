package pagestest

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"vogt/internal/api"
	"vogt/internal/coverage"
	"vogt/internal/flow"
	"vogt/internal/grant"
	"vogt/internal/pages"
)

// AddStanding puts a pattern of the first person into force, as signing it does, and
// returns its id. Change alters what the list shows of it.
func (a *Authority) AddStanding(p grant.Pattern, change func(*api.Standing)) string {
	defer a.lock()()
	g := a.addStanding(a.people[0].Email, p, grant.DefaultDays, "")
	if change != nil {
		change(g)
	}
	return g.ID
}

func (a *Authority) addStanding(author string, p grant.Pattern, days int, reason string) *api.Standing {
	now := a.clock().Unix()
	g := &api.Standing{ID: "s-" + random()[:12], Type: "standing", Status: grant.Approved, Author: author, Pattern: p, Reason: reason,
		CreatedAt: now, ExpiresAt: now + int64(days)*24*3600, Strength: grant.Passkey}
	a.standing = append(a.standing, g)
	return g
}

// Patterns lists the patterns of the first person, newest first.
func (a *Authority) Patterns() []api.Standing {
	out, _ := a.Standing(context.Background(), pages.Session{Person: a.people[0].Person})
	return out
}

// NewGroup makes a group of agents.
func (a *Authority) NewGroup(name string, agents ...string) {
	defer a.lock()()
	a.groups = append(a.groups, api.Group{Name: name, Agents: agents})
}

// Suggest sets what is suggested.
func (a *Authority) Suggest(all ...api.Suggestion) {
	defer a.lock()()
	a.suggests = all
}

// Cover sets which patterns cover the calls of a request.
func (a *Authority) Cover(id string, by ...pages.Covering) {
	defer a.lock()()
	a.request(id).by = by
}

// Label sets what an agent has seen and written.
func (a *Authority) Label(agent string, labels ...api.Label) {
	defer a.lock()()
	a.agent(agent).Labels = labels
}

// Refuse makes the next change that is prepared fail so.
func (a *Authority) Refuse(err error) {
	defer a.lock()()
	a.refusal = err
}

// Standing implements pages.Patterns.
func (a *Authority) Standing(_ context.Context, s pages.Session) (out []api.Standing, err error) {
	defer a.lock()()
	for _, g := range slices.Backward(a.standing) {
		if g.Author == s.Person.Email {
			out = append(out, *g)
		}
	}
	return out, nil
}

// RevokeStanding implements pages.Patterns.
func (a *Authority) RevokeStanding(_ context.Context, s pages.Session, id string) error {
	defer a.lock()()
	for _, g := range a.standing {
		switch {
		case g.ID != id || g.Author != s.Person.Email:
		case g.Status != grant.Approved:
			return pages.ErrClosed
		default:
			g.Status = grant.Revoked
			a.record("trust", "", "", s.Person.Email, "standing.revoked", 0)
			return nil
		}
	}
	return pages.ErrNotFound
}

// PreviewStanding implements pages.Previews with the requests as they are.
func (a *Authority) PreviewStanding(_ context.Context, s pages.Session, p grant.Pattern) (out api.StandingPreview, err error) {
	defer a.lock()()
	if p, err = p.Complete(); err != nil {
		return out, &pages.Refusal{As: pages.ErrInvalid, Reason: err.Error()}
	}
	out.Pattern = p
	for _, g := range a.grants {
		read, err := flow.Read(a.reader, g.Request)
		if err != nil || !a.mine(s, g) {
			continue
		}
		out.Requests++
		row, ok := api.Previewed{Command: firstLine(g.Request), Count: 1}, read.Coverable()
		if !ok {
			row.Why = "it is critical, which is asked every time"
		}
		calls := read.Covered()
		for i := range calls {
			if ok {
				ok, row.Why = coverage.Covers(&p, &calls[i], flow.WhereOf(g.Request))
			}
		}
		if !ok {
			out.StaysOut = append(out.StaysOut, row)
			continue
		}
		out.Covered++
		out.Covers = append(out.Covers, row)
	}
	return out, nil
}

// Suggestions implements pages.Previews.
func (a *Authority) Suggestions(context.Context, pages.Session) ([]api.Suggestion, error) {
	defer a.lock()()
	return a.suggests, nil
}

// Safe implements pages.Safes.
func (a *Authority) Safe(_ context.Context, s pages.Session) (api.Safe, error) {
	defer a.lock()()
	out := api.Safe{On: !a.safeOff[s.Person.Email], Commands: grant.SafeCommands()}
	for _, g := range a.agents {
		if !g.Active || g.Owner != s.Person.Email {
			continue
		}
		row := api.SafeAgent{Email: g.Email, Name: g.Name, Folders: []string{}}
		for _, st := range a.safeOf(g.Email) {
			row.Standing, row.On, row.Folders = st.ID, true, st.Pattern.Folders()
		}
		out.Agents = append(out.Agents, row)
	}
	return out, nil
}

func (a *Authority) safeOf(agent string) (out []*api.Standing) {
	for _, st := range a.standing {
		if st.Pattern.Agent == agent && st.Pattern.Class == grant.ClassSafe && st.Status == grant.Approved {
			out = append(out, st)
		}
	}
	return out
}

// SafeOff implements pages.Safes.
func (a *Authority) SafeOff(_ context.Context, s pages.Session, agent string) error {
	defer a.lock()()
	if agent == "" {
		a.safeOff[s.Person.Email] = true
		return nil
	}
	if g := a.agent(agent); g == nil || g.Owner != s.Person.Email {
		return pages.ErrNotFound
	}
	for _, st := range a.safeOf(agent) {
		st.Status = grant.Revoked
	}
	return nil
}

// Groups implements pages.Groups.
func (a *Authority) Groups(context.Context, pages.Session) ([]api.Group, error) {
	defer a.lock()()
	return slices.Clone(a.groups), nil
}

// LeaveGroup implements pages.Groups.
func (a *Authority) LeaveGroup(_ context.Context, _ pages.Session, group, agent string) error {
	defer a.lock()()
	for i, g := range a.groups {
		if at := slices.Index(g.Agents, agent); g.Name == group && at >= 0 {
			a.groups[i].Agents = slices.Delete(slices.Clone(g.Agents), at, at+1)
			return nil
		}
	}
	return pages.ErrNotFound
}

// confirmPattern makes a confirmed change that is about patterns.
func (a *Authority) confirmPattern(person, operation string, params map[string]string) error {
	switch operation {
	case api.TrustStandingAdd:
		p, err := grant.ParsePattern(params["pattern"])
		if err != nil {
			return &pages.Refusal{As: pages.ErrInvalid, Reason: err.Error()}
		}
		days, err := strconv.Atoi(params["days"])
		if err != nil {
			days = grant.DefaultDays
		}
		a.addStanding(person, p, days, params["reason"])
	case api.TrustStandingResume:
		for _, g := range a.standing {
			if g.ID == params["id"] {
				g.Paused = ""
			}
		}
	case api.TrustSafeOn:
		var folders []string
		if params["safe"] != "" {
			if err := json.Unmarshal([]byte(params["safe"]), &folders); err != nil {
				return pages.ErrInvalid
			}
		}
		return a.safeOn(person, params["email"], folders)
	case api.TrustGroupSet:
		a.groups = slices.DeleteFunc(a.groups, func(g api.Group) bool { return g.Name == params["name"] })
		a.groups = append(a.groups, api.Group{Name: params["name"], Agents: strings.Split(params["agents"], ",")})
	case api.TrustLabelsEnd:
		a.agent(params["email"]).Labels = nil
	}
	return nil
}

func (a *Authority) safeOn(person, email string, folders []string) error {
	for _, g := range a.agents {
		has := a.safeOf(g.Email)
		if g.Owner != person || email != "" && g.Email != email || email == "" && len(has) > 0 {
			continue
		}
		for _, st := range has {
			st.Status = grant.Revoked
		}
		p, err := grant.NewClass(grant.ClassSafe, g.Email, folders, nil)
		if err != nil {
			return &pages.Refusal{As: pages.ErrInvalid, Reason: err.Error()}
		}
		a.addStanding(person, p, grant.MaxDays, "safe commands")
	}
	if email == "" {
		a.safeOff[person] = false
	}
	return nil
}
