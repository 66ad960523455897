package httpapi_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"vogt/internal/api"
	"vogt/internal/authoritytest"
	"vogt/internal/detail"
	"vogt/internal/grant"
	"vogt/internal/statement"
)

// inFolder is a request as vogt makes it.
func inFolder(argv ...string) grant.Request {
	cwd := "/home/p"
	r := authoritytest.Request(argv...)
	r.Context = &grant.Context{Argv: argv, Cwd: &statement.File{Path: &cwd}}
	return r
}

// suggested is the widened details of a waiting grant: of each index the first of
// the scopes that there is.
func suggested(t *testing.T, g api.Grant, scopes ...string) (out []detail.Wire) {
	t.Helper()
	if g.Hints == nil {
		t.Fatalf("no hints: %+v", g)
	}
	for i := 0; ; i++ {
		var found *detail.Wire
		for _, scope := range append(scopes, "exact") {
			for k, s := range g.Suggestions {
				if s.Index == i && s.Scope == scope && found == nil {
					found = &g.Suggestions[k].Detail
				}
			}
		}
		if found == nil {
			return out
		}
		out = append(out, *found)
	}
}

// TestHints: whoever may decide sees what is similar, what it could be widened to,
// and why it waits; nobody else does.
func TestHints(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	old := s.agent.AskFor(inFolder("cat", "/home/p/src/a.txt"))
	s.owner.Approve(old.ID, grant.Always, 0)
	g := s.agent.AskFor(inFolder("cat", "/home/p/src/b.txt"))
	path := authoritytest.GrantPath(g.ID)
	v := reads(t, s.owner.Get(path), "similar_grants.similar_grants.0.grant.id string", "similar_grants.similar_grants.0.similar_detail_indices array",
		"similar_grants.merged_details.1.permission string", "similar_grants.widened_details array", "widening_suggestions.1.detail.permission string",
		"widening_suggestions.1.scope string", "widening_suggestions.1.label string", "pending_diagnostics.0.source string", "pending_diagnostics.0.reason string",
		"pending_diagnostics.0.summary string", "pending_diagnostics.0.detail object")
	if id := text(t, v, "similar_grants.similar_grants.0.grant.id"); id != old.ID {
		t.Errorf("similar is %s, want %s", id, old.ID)
	}
	for name, c := range map[string]*authoritytest.Client{"the agent": &s.agent.Client, "a stranger": s.Stranger(), "management": s.Manager()} {
		if a := c.Get(path).Want(200); strings.Contains(string(a.Body), "similar_grants") || strings.Contains(string(a.Body), "pending_diagnostics") {
			t.Errorf("%s is shown hints: %.300s", name, a.Body)
		}
	}
	// The tag follows them.
	tag := s.owner.Get(path).Header.Get("ETag")
	s.owner.Do("GET", path, nil, "If-None-Match", tag).Want(304)
	s.owner.Do("PUT", policyPath(s.agent.Email, ""), put("allow-list", []string{"date"}, nil, nil, nil)).Want(200)
	if a := s.owner.Do("GET", path, nil, "If-None-Match", tag).Want(200); !strings.Contains(string(a.Body), "The policy does not approve it") {
		t.Errorf("the policy is not told of: %s", a.Body)
	}
	s.owner.Post(authoritytest.GrantPath(g.ID, "deny"), nil).Want(200)
	if a := s.owner.Get(path).Want(200); strings.Contains(string(a.Body), "widening_suggestions") {
		t.Errorf("hints of what is decided: %s", a.Body)
	}
}

// TestWiden: what was chosen becomes a standing grant of that very reach, which
// answers the request.
func TestWiden(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		scope           string
		within, without []string // commands
	}{
		{"sibling-type", []string{"cat /home/p/src/z.txt"}, []string{"cat /home/p/src/z.md", "cat /home/p/src/d/z.txt", "cat /home/p/z.txt", "tac /home/p/src/z.txt"}},
		{"directory", []string{"cat /home/p/src/z.md"}, []string{"cat /home/p/src/d/z", "cat /home/p/z"}},
		{"subtree", []string{"cat /home/p/src/d/z"}, []string{"cat /home/p/z", "cat /home/p/src/../z", "cat /home/p/src/.env", "rm /home/p/src/a"}},
	} {
		s := newScene(t)
		g := s.owner.Grant(s.agent.AskFor(inFolder("cat", "/home/p/src/a.txt")).ID)
		done := reads(t, s.owner.Post(authoritytest.GrantPath(g.ID, "approve"), map[string]any{"grant_type": "always", "widened_details": suggested(t, g, test.scope)}),
			"grant.id string", "grant.status string", "grant.decided_by_standing_grant string", "standing_grants.0 string")
		if text(t, done, "grant.status") != "approved" || text(t, done, "grant.id") != g.ID {
			t.Fatalf("%s: %v", test.scope, done)
		}
		s.Consume(g.ID, s.agent.Token(g.ID)).Want(200)
		for _, line := range test.within {
			if g := s.agent.AskFor(inFolder(strings.Fields(line)...)); g.Status != grant.Approved {
				t.Errorf("%s: %q waits", test.scope, line)
			}
		}
		for _, line := range test.without {
			if g := s.agent.AskFor(inFolder(strings.Fields(line)...)); g.Status != grant.Pending {
				t.Errorf("%s: %q is %s", test.scope, line, g.Status)
			}
		}
		other := inFolder("cat", "/home/p/src/other.txt")
		other.Host = "other"
		if g := s.agent.AskFor(other); g.Status != grant.Pending {
			t.Errorf("%s: another host is covered", test.scope)
		}
		other.Host, other.Audience = "box", "escapes"
		if g := s.agent.AskFor(other); g.Status != grant.Pending {
			t.Errorf("%s: another audience is covered", test.scope)
		}
	}
}

// TestExtend: merge is the union and ends the old grants, all in one step.
func TestExtend(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	old := s.agent.AskFor(inFolder("cat", "/home/p/a"))
	s.owner.Approve(old.ID, grant.Always, 0)
	g := s.agent.AskFor(inFolder("cat", "/home/p/b"))
	body := map[string]any{"grant_type": "always", "extend_mode": "merge", "extend_grant_ids": []string{old.ID, old.ID}}
	reads(t, s.owner.Post(authoritytest.GrantPath(g.ID, "approve"), body), "grant.status string", "standing_grants.1 string")
	if got := s.owner.Grant(old.ID); got.Status != grant.Revoked {
		t.Errorf("the old grant is %s", got.Status)
	}
	for line, want := range map[string]grant.Status{"cat /home/p/a": grant.Approved, "cat /home/p/b": grant.Approved, "cat /home/p/c": grant.Pending, "cat /home/p/a /home/p/b": grant.Pending} {
		if got := s.agent.AskFor(inFolder(strings.Fields(line)...)); got.Status != want {
			t.Errorf("%q is %s, want %s", line, got.Status, want)
		}
	}
}

// TestWideningIsNoWayRound: who may not, what may not, and that a refusal changes
// nothing (weakness 16).
func TestWideningIsNoWayRound(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	stranger := s.Person("stranger@example.com")
	foreign := s.Agent(stranger, "bot")
	sibling := s.Agent(s.owner, "sibling")
	give := func(p *authoritytest.Principal, kind grant.Type, argv ...string) string {
		g := p.AskFor(inFolder(argv...))
		p.Owner.Approve(g.ID, kind, 0)
		return g.ID
	}
	mine, once := give(s.agent, grant.Always, "cat", "/home/p/src/old"), give(s.agent, grant.Once, "cat", "/home/p/src/once")
	theirs, siblings := give(foreign, grant.Always, "cat", "/home/p/src/f"), give(sibling, grant.Always, "cat", "/home/p/src/s")
	unreadable := give(s.agent, grant.Always, "no-such-program", "x")
	g := s.owner.Grant(s.agent.AskFor(inFolder("cat", "/home/p/src/a.txt")).ID)
	good := suggested(t, g, "directory")
	change := func(f func(*detail.Wire)) []detail.Wire {
		var out []detail.Wire
		b, err := json.Marshal(good)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(b, &out); err != nil {
			t.Fatal(err)
		}
		f(&out[0])
		return out
	}
	to := func(path string) []detail.Wire {
		return change(func(d *detail.Wire) { d.Chain[1].Selector["path"] = path })
	}
	widened := func(d any) map[string]any { return map[string]any{"grant_type": "always", "widened_details": d} }
	extend := func(mode string, ids ...string) map[string]any {
		return map[string]any{"grant_type": "always", "extend_mode": mode, "extend_grant_ids": ids}
	}
	for name, test := range map[string]struct {
		by     *authoritytest.Client
		body   map[string]any
		status int
	}{
		"by the agent":               {&s.agent.Client, widened(good), 403},
		"by its sibling":             {&sibling.Client, widened(good), 404},
		"by a stranger":              {&stranger.Client, widened(good), 404},
		"by nobody":                  {s.Stranger(), widened(good), 401},
		"by management":              {s.Manager(), widened(good), 403},
		"once":                       {&s.owner.Client, map[string]any{"grant_type": "once", "widened_details": good}, 400},
		"with no type":               {&s.owner.Client, map[string]any{"widened_details": good}, 400},
		"timed for no time":          {&s.owner.Client, map[string]any{"grant_type": "timed", "widened_details": good}, 400},
		"more details":               {&s.owner.Client, widened(append(good[:1:1], good[0])), 400},
		"another program":            {&s.owner.Client, widened(change(func(d *detail.Wire) { d.CLI, d.Chain[0].Selector["name"] = "rm", "rm" })), 400},
		"another action":             {&s.owner.Client, widened(change(func(d *detail.Wire) { d.Action = "write" })), 400},
		"writing links":              {&s.owner.Client, widened(change(func(d *detail.Wire) { d.Chain[1].Name = "write" })), 400},
		"no links":                   {&s.owner.Client, widened(change(func(d *detail.Wire) { d.Chain = nil })), 400},
		"a link of any":              {&s.owner.Client, widened(change(func(d *detail.Wire) { d.Chain[1].Selector = nil })), 400},
		"the whole machine":          {&s.owner.Client, widened(to("/**")), 400},
		"a folder that is elsewhere": {&s.owner.Client, widened(to("/etc/**")), 400},
		"up and out":                 {&s.owner.Client, widened(to("/home/p/src/../**")), 400},
		"widen leaves nothing":       {&s.owner.Client, extend("widen", mine), 400},
		"another mode":               {&s.owner.Client, extend("all", mine), 400},
		"nothing to merge":           {&s.owner.Client, extend("merge"), 400},
		"once is not extended":       {&s.owner.Client, extend("merge", once), 409},
		"itself":                     {&s.owner.Client, extend("merge", g.ID), 409},
		"another's grant":            {&s.owner.Client, extend("merge", mine, theirs), 404},
		"a sibling's grant":          {&s.owner.Client, extend("merge", mine, siblings), 400},
		"what cannot be read":        {&s.owner.Client, extend("merge", mine, unreadable), 400},
		"no such grant":              {&s.owner.Client, extend("merge", mine, "ghost"), 404},
		"both at once":               {&s.owner.Client, map[string]any{"grant_type": "always", "widened_details": good, "extend_mode": "merge", "extend_grant_ids": []string{mine}}, 400},
	} {
		if a := test.by.Post(authoritytest.GrantPath(g.ID, "approve"), test.body); a.Status != test.status {
			t.Errorf("%s: %d, want %d\n%.400s", name, a.Status, test.status, a.Body)
		}
		if got := s.owner.Grant(g.ID).Status; got != grant.Pending {
			t.Fatalf("%s: the request is %s", name, got)
		}
		for _, id := range []string{mine, once, unreadable} {
			if got := s.owner.Grant(id).Status; got != grant.Approved {
				t.Fatalf("%s: an old grant is %s", name, got)
			}
		}
	}
	var list []api.Standing
	s.owner.Get(api.PathStanding).Into(&list)
	for _, st := range list {
		if strings.Contains(fmt.Sprint(st.Pattern.Read), "/home/p") {
			t.Errorf("a refusal left a pattern: %+v", st)
		}
	}
	// A login alone is not enough without the switch.
	weak := authoritytest.Start(t)
	owner := weak.Owner()
	agent := weak.Agent(owner, "bot")
	w := owner.Grant(agent.AskFor(inFolder("cat", "/home/p/src/a.txt")).ID)
	if p := owner.Post(authoritytest.GrantPath(w.ID, "approve"), widened(suggested(t, w, "directory"))).Problem(403); !strings.Contains(p.Detail, "vogt standing add") {
		t.Errorf("%+v", p)
	}
}
