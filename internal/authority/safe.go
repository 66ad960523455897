package authority

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"vogt/internal/api"
	"vogt/internal/grant"
	"vogt/internal/store"
)

// safeOff is the parameter of an enrolment that leaves the safe commands out.
const safeOff = "off"

// maxFolders bounds the folders in which an agent may look around.
const maxFolders = 16

// safeFolders reads the parameter "safe" of a change of trust: a JSON list of
// folders, or "off". It returns it in its one form; "" is no folder.
func safeFolders(text string) (folders []string, one string, err error) {
	if text == safeOff {
		return nil, safeOff, nil
	}
	if text != "" {
		if err := json.Unmarshal([]byte(text), &folders); err != nil {
			return nil, "", fmt.Errorf(`want a JSON list of folders, or "off": %w`, err)
		}
	}
	if len(folders) > maxFolders {
		return nil, "", fmt.Errorf("it names %d folders, the limit is %d", len(folders), maxFolders)
	}
	for i, f := range folders {
		folders[i] = path.Clean(f)
	}
	slices.Sort(folders)
	folders = slices.Compact(folders)
	if _, err := grant.NewClass(grant.ClassSafe, "*", folders, nil); err != nil {
		return nil, "", err
	}
	encoded, err := json.Marshal(append([]string{}, folders...))
	return folders, string(encoded), err
}

// seedSafe gives an agent the safe commands in folders. The next record holds what
// the owner has confirmed, or who has enrolled the agent. What an agent has of them
// already is replaced: the folders are what was confirmed last.
func (t *txn) seedSafe(owner store.Principal, agent string, folders []string, by string, strength grant.Strength) (store.Standing, error) {
	old, err := store.SafeOf(t, owner.Email, agent)
	if err != nil {
		return store.Standing{}, err
	}
	for _, s := range old {
		if err := t.endStanding(by, s, "replaced"); err != nil {
			return s, err
		}
	}
	p, err := grant.NewClass(grant.ClassSafe, agent, folders, nil)
	if err != nil {
		return store.Standing{}, err
	}
	return t.putStanding(owner, p, t.now+grant.MaxDays*24*hourMS, "safe commands", strength)
}

// safeOn switches the safe commands on: for one agent, in folders, or for all of
// the owner's agents, of which those that have none get them. It returns the
// standing grants that it made.
func (t *txn) safeOn(person store.Principal, agent, safe string, strength grant.Strength) (made []string, err error) {
	folders, _, err := safeFolders(safe)
	if err != nil {
		return nil, err
	}
	if agent != "" {
		if err := t.ownAgent(person, agent); err != nil {
			return nil, err
		}
		s, err := t.seedSafe(person, agent, folders, person.Email, strength)
		return []string{s.ID}, err
	}
	if err := store.SwitchSafe(t, person.Email, false, int64(t.now)); err != nil {
		return nil, err
	}
	agents, err := store.Principals(t, person.Email)
	if err != nil {
		return nil, err
	}
	for _, a := range agents {
		has, err := store.SafeOf(t, person.Email, a.Email)
		if err != nil {
			return made, err
		}
		if len(has) > 0 {
			continue
		}
		s, err := t.seedSafe(person, a.Email, folders, person.Email, strength)
		if err != nil {
			return made, err
		}
		made = append(made, s.ID)
	}
	return made, nil
}

// SafeOff switches the safe commands off, for one agent or, with "", for all of
// the caller's, present and future. It only narrows: a login suffices.
func (a *Authority) SafeOff(ctx context.Context, by Actor, agent string) error {
	agent = lower(agent)
	return a.narrow(ctx, func(t *txn) error {
		email := by.Principal.Email
		if agent != "" {
			email = agent
		}
		if err := t.mayNarrow(by, email); err != nil {
			return err
		}
		if agent == "" {
			if err := store.SwitchSafe(t, email, true, int64(t.now)); err != nil {
				return err
			}
			// A line may have needed them beside other patterns.
			safe := func(p grant.Pattern) bool { return p.Class == grant.ClassSafe }
			if err := t.endDerivedOf(by.Name(), email, "", "switched off", safe); err != nil {
				return err
			}
			_, err := t.record(recordTrust, "", email, trustRecord{Operation: "safe.off", By: by.Name(), Subject: email})
			return err
		}
		p, err := store.PrincipalByEmail(t, agent)
		if err != nil {
			return err
		}
		has, err := store.SafeOf(t, p.Owner, agent)
		if err != nil {
			return err
		}
		for _, s := range has {
			if err := t.endStanding(by.Name(), s, "switched off"); err != nil {
				return err
			}
		}
		return nil
	})
}

// Safe tells what of the safe commands is in force for the caller's agents.
func (a *Authority) Safe(ctx context.Context, by Actor) (out api.Safe, err error) {
	if !by.Person() {
		return out, errUnauthenticated()
	}
	err = a.view(ctx, func(tx store.Tx) error {
		out = api.Safe{Commands: grant.SafeCommands(), Agents: []api.SafeAgent{}}
		off, err := store.SafeOff(tx, by.Principal.Email)
		if err != nil {
			return err
		}
		out.On = !off
		agents, err := store.Principals(tx, by.Principal.Email)
		if err != nil {
			return err
		}
		for _, p := range agents {
			row := api.SafeAgent{Email: p.Email, Name: p.Name, Folders: []string{}}
			has, err := store.SafeOf(tx, p.Owner, p.Email)
			if err != nil {
				return err
			}
			for _, s := range has {
				row.Standing, row.On = s.ID, s.Active(a.now())
				row.Folders = s.Pattern.Folders()
			}
			out.Agents = append(out.Agents, row)
		}
		return nil
	})
	return out, err
}

// groupMembers reads the parameter "agents" of a group: addresses with commas.
func groupMembers(text string) (agents []string, err error) {
	for _, email := range strings.Split(text, ",") {
		if email = lower(strings.TrimSpace(email)); email == "" {
			continue
		}
		if err := checkEmail(email); err != nil {
			return nil, err
		}
		agents = append(agents, email)
	}
	slices.Sort(agents)
	return slices.Compact(agents), nil
}

// maxGroupSize bounds one group, maxGroups the groups of one agent.
const maxGroupSize, maxGroups = maxAgents, 16

// leaveGroup takes an agent out of a group, and back what the group's patterns gave
// it and it has not used.
func (t *txn) leaveGroup(by, owner, name, agent string) error {
	if err := store.DropMember(t, owner, name, agent); err != nil {
		return err
	}
	return t.endDerivedOf(by, owner, agent, "for a group that the agent has left", func(p grant.Pattern) bool { return p.Agent == grant.GroupPrefix+name })
}

// setGroup makes a group what was confirmed: these agents and no others.
func (t *txn) setGroup(person store.Principal, name, members string) error {
	agents, err := groupMembers(members)
	if err != nil {
		return err
	}
	was, err := store.Groups(t, person.Email)
	if err != nil {
		return err
	}
	for _, m := range was {
		if m.Group == name && !slices.Contains(agents, m.Agent) {
			if err := t.leaveGroup(person.Email, person.Email, name, m.Agent); err != nil {
				return err
			}
		}
	}
	for _, email := range agents {
		if err := t.ownAgent(person, email); err != nil {
			return err
		}
		if err := store.AddMember(t, person.Email, name, email, int64(t.now)); err != nil {
			return err
		}
		in, err := store.GroupsOf(t, person.Email, email)
		if err != nil {
			return err
		}
		if len(in) > maxGroups {
			return problem(409, "The agent is in too many groups", fmt.Sprintf("%s is in %d, the limit is %d.", email, len(in), maxGroups), "Take it out of one: vogt agent group drop NAME AGENT.")
		}
	}
	return nil
}

// Groups lists the caller's groups of agents.
func (a *Authority) Groups(ctx context.Context, by Actor) ([]api.Group, error) {
	if !by.Person() {
		return nil, errUnauthenticated()
	}
	out := []api.Group{}
	err := a.view(ctx, func(tx store.Tx) error {
		members, err := store.Groups(tx, by.Principal.Email)
		for _, m := range members {
			if len(out) == 0 || out[len(out)-1].Name != m.Group {
				out = append(out, api.Group{Name: m.Group})
			}
			g := &out[len(out)-1]
			g.Agents = append(g.Agents, m.Agent)
		}
		return err
	})
	return out, err
}

// DropMember takes an agent out of a group, which only narrows.
func (a *Authority) DropMember(ctx context.Context, by Actor, group, agent string) error {
	agent = lower(agent)
	return a.narrow(ctx, func(t *txn) error {
		if err := t.mayNarrow(by, agent); err != nil {
			return err
		}
		p, err := store.PrincipalByEmail(t, agent)
		if err != nil {
			return err
		}
		if err := t.leaveGroup(by.Name(), p.Owner, group, agent); errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrNotFound) {
			return problem(404, "The agent is not in this group", "", "See: vogt agent group list.").caused(err)
		} else if err != nil {
			return err
		}
		_, err = t.record(recordTrust, "", agent, trustRecord{Operation: "group.left", By: by.Name(), Subject: agent, Params: map[string]string{"name": group}})
		return err
	})
}
