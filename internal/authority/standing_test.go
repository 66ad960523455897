package authority_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"vogt/internal/api"
	"vogt/internal/authoritytest"
	"vogt/internal/detail"
	"vogt/internal/grant"
	"vogt/internal/statement"
)

// standingParams are the parameters of a change of trust that signs a pattern,
// in the form in which a client sends them.
func standingParams(t *testing.T, p grant.Pattern) map[string]string {
	t.Helper()
	p, err := p.Complete()
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]string{"pattern": string(encoded), "days": "90"}
}

func sign(t *testing.T, owner *authoritytest.Principal, p grant.Pattern) api.Standing {
	t.Helper()
	tr, secret := owner.Prepare(api.TrustStandingAdd, standingParams(t, p))
	owner.Post(trustPath(tr.ID, "confirm"), owner.SignedChange(tr.ID)).Want(200)
	var out api.Trust
	asSecret(owner.S, tr.ID, secret).Into(&out)
	if out.Standing == nil || out.Standing.ID == "" {
		t.Fatalf("signed: %+v", out)
	}
	return *out.Standing
}

func inProject(argv ...string) grant.Request {
	r := authoritytest.Request(argv...)
	r.Context = &grant.Context{Cwd: &statement.File{Path: pointer("/p")}}
	return r
}

// catIn is the pattern that these tests sign.
func catIn(agent string) grant.Pattern {
	return grant.Pattern{Agent: agent, Programs: []string{"cat"}, Read: []string{"/p/**"}}
}

func TestStandingDecides(t *testing.T) {
	t.Parallel()
	c := newCast(t)
	if g := c.sibling.AskFor(inProject("cat", "a")); g.Status != grant.Pending {
		t.Fatalf("without a pattern: %+v", g)
	}
	waits := c.sibling.AskFor(inProject("cat", "a"))
	s := sign(t, c.owner, catIn("*"))
	if got := c.sibling.Grant(waits.ID); got.Status != grant.Approved || got.Standing != s.ID {
		t.Errorf("what waited when the pattern was signed: %+v", got)
	}
	g := c.sibling.AskFor(inProject("cat", "b"))
	if g.Status != grant.Approved || !g.Automatic || g.AutoKind != "standing" || g.Standing != s.ID || g.DecidedBy != c.owner.Email || g.Request.Type != grant.Once {
		t.Fatalf("covered: %+v", g)
	}
	if again := c.sibling.AskFor(inProject("cat", "b")); again.ID != g.ID {
		t.Errorf("the same again, before it was used, is %s and not %s", again.ID, g.ID)
	}
	used := consume(t, c.sibling, g.ID)
	if r := used.Receipt; r == nil || r.Standing != s.ID || r.DecidedBy != c.owner.Email {
		t.Errorf("the receipt: %+v", used.Receipt)
	}
	if again := c.sibling.AskFor(inProject("cat", "b")); again.ID == g.ID || again.Status != grant.Approved {
		t.Errorf("the same again, after it was used: %+v", again)
	}
	if !c.s.HasRecord("decision", g.ID, `"standing":["`+s.ID) || !c.s.HasRecord("request", g.ID, "covered by a standing grant") {
		t.Errorf("on record: %q", c.s.Recorded("decision"))
	}
	var list []api.Standing
	c.owner.Get(api.PathStanding).Want(200).Into(&list)
	if len(list) != 1 || list[0].Uses != 3 || list[0].LastUsedAt == 0 || list[0].Status != grant.Approved {
		t.Errorf("listed: %+v", list)
	}
	// Whose request it is not, or what it does not cover, waits.
	for name, request := range map[string]func() api.Grant{
		"another owner's agent": func() api.Grant { return c.foreign.AskFor(inProject("cat", "b")) },
		"the owner himself":     func() api.Grant { return c.owner.AskFor(inProject("cat", "b")) },
		"another program":       func() api.Grant { return c.sibling.AskFor(inProject("tac", "b")) },
		"another folder":        func() api.Grant { return c.sibling.AskFor(inProject("cat", "/q/b")) },
		"as root": func() api.Grant {
			r := inProject("cat", "b")
			r.RunAs = "root"
			return c.sibling.AskFor(r)
		},
		"a link": func() api.Grant {
			r := inProject("cat", "c")
			r.Context.Links = map[string]string{"/p/c": "/root/c"}
			return c.sibling.AskFor(r)
		},
		"a claimed detail": func() api.Grant {
			r := inProject("rm", "-rf", "/p")
			w := detail.Wire{Type: detail.WireCLI, CLI: "cat", Operation: "cat.show", Action: "read", Display: "x", Risk: "low", Chain: []detail.Resource{{Name: "x"}}}
			w.Permission = w.CanonicalPermission()
			r.Details = []detail.Wire{w}
			return c.sibling.AskFor(r)
		},
	} {
		if g := request(); g.Status != grant.Pending || g.Automatic || g.Standing != "" {
			t.Errorf("%s: %+v", name, g)
		}
	}
}

// TestNobodySignsForAnother: a pattern needs a person's proof over exactly it,
// and covers the signer's own agents only.
func TestNobodySignsForAnother(t *testing.T) {
	t.Parallel()
	c := newCast(t)
	params := standingParams(t, catIn("*"))
	for who, p := range c.keys {
		tr, _ := p.Prepare(api.TrustStandingAdd, params)
		// Each signs with its own key what it was shown, or what the owner was.
		c.owner.Get(trustPath(tr.ID)).Want(200)
		signed := c.owner.SignedChange(tr.ID)
		if who != "owner" {
			if a := p.Post(trustPath(tr.ID, "confirm"), signed); a.Status == 200 {
				t.Errorf("%s confirmed with the owner's signature: %s", who, a.Body)
			}
		}
		if !strings.Contains(who, "agent") && who != "requester" && who != "sibling" {
			continue
		}
		signed.Signature = ""
		if a := p.Post(trustPath(tr.ID, "confirm"), signed); a.Status == 200 {
			t.Errorf("%s confirmed without a signature: %s", who, a.Body)
		}
	}
	// A person's pattern for an agent of somebody else is refused.
	tr, _ := c.stranger.Prepare(api.TrustStandingAdd, standingParams(t, catIn(c.sibling.Email)))
	c.stranger.Post(trustPath(tr.ID, "confirm"), c.stranger.SignedChange(tr.ID)).Problem(404)
	// Their "all" are theirs.
	sign(t, c.stranger, catIn("*"))
	if g := c.sibling.AskFor(inProject("cat", "x")); g.Status != grant.Pending {
		t.Errorf("a stranger's pattern covers: %+v", g)
	}
	// The approver of an agent does not own it.
	tr, _ = c.approver.Prepare(api.TrustStandingAdd, standingParams(t, catIn(c.requester.Email)))
	c.approver.Post(trustPath(tr.ID, "confirm"), c.approver.SignedChange(tr.ID)).Problem(404)
	// The interface of foreign clients makes none.
	for _, who := range []string{"owner", "requester"} {
		c.keys[who].Post(api.PathStanding, map[string]any{"delegate": c.sibling.Email, "audience": "shapes", "resource_chain_template": []any{}}).Problem(map[string]int{"owner": 400, "requester": 403}[who])
	}
	// Nobody but its author takes one back.
	s := sign(t, c.owner, catIn("*"))
	for who, client := range c.clients {
		if who == "owner" || who == "management" {
			continue
		}
		if a := client.Do("DELETE", api.PathStanding+"/"+s.ID, nil); a.Status == 200 {
			t.Errorf("%s revoked: %s", who, a.Body)
		}
	}
	if g := c.sibling.AskFor(inProject("cat", "y")); g.Status != grant.Approved {
		t.Errorf("it still stands, and yet: %+v", g)
	}
}

func TestPatternsThatAreRefused(t *testing.T) {
	t.Parallel()
	c := newCast(t)
	for _, params := range []map[string]string{
		{}, {"pattern": ""}, {"pattern": "{}"}, {"pattern": `{"agent":"*","read":["/p/**"],"surprise":1}`},
		{"pattern": `{"agent":"*","read":["/**"]}`}, {"pattern": `{"agent":"*","read":["/p/**"],"max_risk":"critical"}`},
		{"pattern": `{"agent":"*","read":["/p/**"]}{}`}, {"pattern": `{"agent":"*","does":["any"],"read":["/p/**"]}`},
		{"pattern": `{"agent":"*","read":["/p/**"]}`, "days": "0"}, {"pattern": `{"agent":"*","read":["/p/**"]}`, "days": "3660"},
		{"pattern": `{"agent":"nobody","read":["/p/**"]}`}, {"pattern": `{"agent":"*","read":["/p/**"]}`, "days": "x"},
		{"pattern": `{"agent":"*","read":["` + strings.Repeat("/x", 9000) + `"]}`}, {"pattern": "{\"agent\":\"*\",\"read\":[\"/p/\u202e\"]}"},
		// Written as JSON escapes they are plain text until they are read.
		{"pattern": `{"agent":"*","read":["/p/\u202e"]}`}, {"pattern": `{"agent":"*","read":["/p/\u200b"]}`}, {"pattern": `{"agent":"*","read":["/p/\u00a0x"]}`},
		{"pattern": `{"agent":"*","read":["/p/\u2028x"]}`}, {"pattern": `{"agent":"*","read":["/p/**"],"machine":"a\u200db"}`},
		{"pattern": `{"agent":"*","read":["/p/**"],"programs":["c\u00adat"]}`}, {"pattern": `{"agent":"*","read":["/p/\ud800"]}`},
		{"pattern": `{"agent":"*","read":["/p/**"]}]`}, {"pattern": `{"agent":"*","read":["/p/**"]}}`}, {"pattern": `{"agent":"*","read":["/p/**"],"limits":{"per_minute":1e99}}`},
	} {
		a := c.owner.Post(api.PathTrust, api.TrustRequest{Operation: api.TrustStandingAdd, Params: params, Secret: c.s.Secret()})
		if a.Status != 400 {
			t.Errorf("%v: %d %.300s", params, a.Status, a.Body)
		}
	}
}

// TestStandingEnds: whatever ends a pattern, ends what it gave and nobody has
// used yet.
func TestStandingEnds(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*cast, api.Standing){
		"revoked":               func(c *cast, s api.Standing) { c.owner.Do("DELETE", api.PathStanding+"/"+s.ID, nil).Want(200) },
		"revoked by management": func(c *cast, s api.Standing) { c.s.Manager().Do("DELETE", api.PathStanding+"/"+s.ID, nil).Want(200) },
		"its time has run out":  func(c *cast, _ api.Standing) { c.s.Clock.Advance(91 * 24 * time.Hour); c.sibling.Login() },
		"the agent is removed": func(c *cast, _ api.Standing) {
			c.owner.Do("DELETE", api.PathMyAgents+"/"+c.sibling.Email, nil).Want(200)
		},
		"the owner is removed": func(c *cast, _ api.Standing) { c.s.Manager().Do("DELETE", "/api/admin/users/"+c.owner.Email, nil) },
		"the agent is paused": func(c *cast, _ api.Standing) {
			c.owner.Do("PATCH", api.PathMyAgents+"/"+c.sibling.Email, map[string]bool{"paused": true}).Want(200)
		},
		"everything is stopped": func(c *cast, _ api.Standing) { c.owner.Post(api.PathPanic, api.Panic{}).Want(200) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCast(t)
			s := sign(t, c.owner, catIn(c.sibling.Email))
			waiting, ready := c.sibling.AskFor(inProject("cat", "a")), c.sibling.AskFor(inProject("cat", "b"))
			if waiting.Status != grant.Approved || ready.Status != grant.Approved {
				t.Fatalf("covered: %+v, %+v", waiting, ready)
			}
			token := c.sibling.Token(ready.ID)
			end(c, s)
			var out api.Consumed
			if a := c.s.Consume(ready.ID, token); a.Status == 200 {
				if a.Into(&out); out.Error == "" {
					t.Errorf("a token from before starts a command: %s", a.Body)
				}
			}
			if a := c.sibling.Post(api.PathGrants+"/"+waiting.ID+"/token", nil); a.Status == 200 {
				t.Errorf("a grant from before gives a token: %s", a.Body)
			}
			if a := c.sibling.Post(api.PathGrants, inProject("cat", "c")); a.Status == 200 || a.Status == 201 {
				var g api.Grant
				if a.Into(&g); g.Status != grant.Pending {
					t.Errorf("it still covers: %s", a.Body)
				}
			}
		})
	}
}

// TestStandingOfAnotherAgentOfThatName: who is enrolled under an address later
// is not whom the pattern was for.
func TestStandingOfAnotherAgentOfThatName(t *testing.T) {
	t.Parallel()
	c := newCast(t)
	sign(t, c.owner, catIn(c.sibling.Email))
	all := sign(t, c.owner, catIn("*"))
	c.owner.Do("DELETE", api.PathStanding+"/"+all.ID, nil).Want(200)
	c.owner.Do("DELETE", api.PathMyAgents+"/"+c.sibling.Email, nil).Want(200)
	c.s.Clock.Advance(time.Second)
	again := c.s.Agent(c.owner, "sibling")
	if again.Email != c.sibling.Email {
		t.Fatalf("enrolled as %s, it was %s", again.Email, c.sibling.Email)
	}
	if g := again.AskFor(inProject("cat", "a")); g.Status != grant.Pending {
		t.Errorf("the pattern of the agent that had this address before covers: %+v", g)
	}
}

// TestStandingLimits: what exceeds a limit is asked, and the pattern pauses until
// its author resumes it.
func TestStandingLimits(t *testing.T) {
	t.Parallel()
	c := newCast(t)
	p := catIn("*")
	p.Limits = grant.Limits{PerMinute: 3}
	s := sign(t, c.owner, p)
	ask := func(name string) grant.Status {
		return c.sibling.AskFor(inProject("cat", name)).Status
	}
	for _, name := range []string{"a", "b", "c"} {
		if got := ask(name); got != grant.Approved {
			t.Fatalf("%s: %s", name, got)
		}
	}
	if got := ask("d"); got != grant.Pending {
		t.Errorf("one too many is %s", got)
	}
	c.s.Clock.Advance(2 * time.Minute)
	if got := ask("e"); got != grant.Pending {
		t.Errorf("paused, and yet %s", got)
	}
	if !c.s.HasRecord("trust", "standing.paused", s.ID, "3 uses in a minute") {
		t.Errorf("the pause is not on record: %q", c.s.Recorded("trust"))
	}
	tr, _ := c.owner.Prepare(api.TrustStandingResume, map[string]string{"id": s.ID})
	c.owner.Post(trustPath(tr.ID, "confirm"), c.owner.SignedChange(tr.ID)).Want(200)
	if got := ask("f"); got != grant.Approved {
		t.Errorf("resumed, and yet %s", got)
	}
	// Another person's pattern is nobody's to resume.
	tr, _ = c.stranger.Prepare(api.TrustStandingResume, map[string]string{"id": s.ID})
	c.stranger.Post(trustPath(tr.ID, "confirm"), c.stranger.SignedChange(tr.ID)).Problem(404)

	gone := sign(t, c.owner, grant.Pattern{Agent: "*", Programs: []string{"rm"}, Does: []grant.Deed{grant.DeedWrite, grant.DeedDelete},
		Write: []string{"/p/build/**"}, MaxRisk: detail.High, Limits: grant.Limits{Deletes: 1}})
	if g := c.sibling.AskFor(inProject("rm", "/p/build/a")); g.Status != grant.Approved || g.Standing != gone.ID {
		t.Errorf("the first delete: %+v", g)
	}
	c.s.Clock.Advance(10 * time.Minute)
	if g := c.sibling.AskFor(inProject("rm", "/p/build/b")); g.Status != grant.Pending {
		t.Errorf("the second delete within an hour: %+v", g)
	}
	few := catIn(c.requester.Email)
	few.Programs, few.Limits = []string{"wc"}, grant.Limits{Uses: 1}
	sign(t, c.owner, few)
	if g := c.requester.AskFor(inProject("wc", "a")); g.Status != grant.Approved {
		t.Errorf("the only use: %+v", g)
	}
	if g := c.requester.AskFor(inProject("wc", "b")); g.Status != grant.Pending {
		t.Errorf("used up, and yet %+v", g)
	}
}

// TestStandingTogether: asked at once, each request is a grant of its own, and
// the limit holds exactly.
func TestStandingTogether(t *testing.T) {
	t.Parallel()
	c := newCast(t)
	p := catIn("*")
	p.Limits = grant.Limits{PerMinute: 10}
	sign(t, c.owner, p)
	got := make([]api.Grant, 40)
	together(len(got), func(i int) { got[i] = c.sibling.AskFor(inProject("cat", strings.Repeat("x", i+1))) })
	ids, approved := map[string]bool{}, 0
	for _, g := range got {
		ids[g.ID] = true
		if g.Status == grant.Approved {
			approved++
		}
	}
	if len(ids) != len(got) || approved != 10 {
		t.Errorf("%d grants of %d requests, %d of them allowed, want 10", len(ids), len(got), approved)
	}
}

// TestStandingAfterRestore: a pattern that was revoked after the copy was made is
// back in force with the old data, and so none covers until its author says so.
func TestStandingAfterRestore(t *testing.T) {
	t.Parallel()
	c := newCast(t)
	kept, revoked := sign(t, c.owner, catIn("*")), sign(t, c.owner, catIn(c.sibling.Email))
	backup := c.s.Backup()
	c.owner.Do("DELETE", api.PathStanding+"/"+revoked.ID, nil).Want(200)
	seen := latest(t, c.s)
	c.s.Restore(backup)
	if begun, err := c.s.Authority.NoteCheckpoint(t.Context(), seen); err != nil || !begun {
		t.Fatalf("no new epoch: %v", err)
	}
	c.owner.Login()
	c.sibling.Login()
	if g := c.sibling.AskFor(inProject("cat", "a")); g.Status != grant.Pending {
		t.Errorf("after a restore it covers: %+v", g)
	}
	tr, _ := c.owner.Prepare(api.TrustStandingResume, map[string]string{"id": kept.ID})
	c.owner.Post(trustPath(tr.ID, "confirm"), c.owner.SignedChange(tr.ID)).Want(200)
	if g := c.sibling.AskFor(inProject("cat", "b")); g.Status != grant.Approved || g.Standing != kept.ID {
		t.Errorf("resumed, and yet %+v", g)
	}
}

// TestStandingAndLinksThatCome: what a path led to when a pattern covered it does
// not cover what it leads to later.
func TestStandingAndLinksThatCome(t *testing.T) {
	t.Parallel()
	c := newCast(t)
	sign(t, c.owner, catIn("*"))
	before := c.sibling.AskFor(inProject("cat", "a"))
	if before.Status != grant.Approved {
		t.Fatalf("without a link: %+v", before)
	}
	led := inProject("cat", "a")
	led.Context.Links = map[string]string{"/p/a": "/home/me/a"}
	if g := c.sibling.AskFor(led); g.ID == before.ID || g.Status != grant.Pending {
		t.Errorf("with a link that leads out, the grant without one is reused: %+v", g)
	}
	led = inProject("cat", "a")
	led.Context.Links = map[string]string{"/p/a": "/p/b"}
	within := c.sibling.AskFor(led)
	if within.ID == before.ID || within.Status != grant.Approved {
		t.Errorf("with a link within the folder: %+v", within)
	}
	if g := c.sibling.AskFor(led); g.ID != within.ID {
		t.Errorf("the same again is %s, not %s", g.ID, within.ID)
	}
}

// TestStandingOfLongLines: a line of more programs than are looked up is asked.
func TestStandingOfLongLines(t *testing.T) {
	t.Parallel()
	c := newCast(t)
	p := catIn("*")
	p.Programs, p.Does, p.Read, p.Box = nil, []grant.Deed{grant.DeedAny}, nil, &grant.Box{Profile: "default"}
	sign(t, c.owner, p)
	ask := func(programs int) grant.Status {
		var line strings.Builder
		for i := range programs {
			fmt.Fprintf(&line, "p%d; ", i)
		}
		r := inProject("bash", "-c", line.String())
		r.Context.Confinement, r.Context.NetworkMode = pointer("default sha256:00 in /p"), pointer("none")
		return c.sibling.AskFor(r).Status
	}
	if got := ask(20); got != grant.Approved {
		t.Errorf("a line of 20 programs is %s", got)
	}
	if got := ask(200); got != grant.Pending {
		t.Errorf("a line of 200 programs is %s", got)
	}
}

// TestStandingAfterRestart: it outlives a restart as any lasting permission.
func TestStandingAfterRestart(t *testing.T) {
	t.Parallel()
	c := newCast(t)
	sign(t, c.owner, catIn("*"))
	c.s.Restart()
	if g := c.sibling.AskFor(inProject("cat", "a")); g.Status != grant.Approved {
		t.Errorf("after a restart: %+v", g)
	}
}

func TestStandingTest(t *testing.T) {
	t.Parallel()
	c := newCast(t)
	s := sign(t, c.owner, catIn("*"))
	var out api.StandingTest
	c.owner.Post(api.PathStanding+"/test", api.TestStanding{Agent: c.sibling.Email, Request: inProject("sh", "-c", "cat a | tac")}).Want(200).Into(&out)
	if out.Covered || len(out.Calls) != 3 || out.Calls[1].Standing != s.ID || len(out.Calls[2].Missed) != 1 || !strings.Contains(out.Calls[2].Missed[0].Why, "tac") {
		t.Errorf("tested: %+v", out)
	}
	// An agent tests for itself only, a stranger for nobody of ours.
	c.foreign.Post(api.PathStanding+"/test", api.TestStanding{Agent: c.sibling.Email, Request: inProject("cat", "a")}).Want(200).Into(&out)
	if out.Covered {
		t.Errorf("another's agent learns of our patterns: %+v", out)
	}
	c.stranger.Post(api.PathStanding+"/test", api.TestStanding{Agent: c.sibling.Email, Request: inProject("cat", "a")}).Problem(404)
	// What would be explained at length is not.
	c.owner.Post(api.PathStanding+"/test", api.TestStanding{Agent: c.sibling.Email, Request: inProject("sh", "-c", strings.Repeat("cat a; ", 500))}).Problem(400)
	if n := len(c.s.Recorded("request")); n != 0 {
		t.Errorf("a test left %d requests", n)
	}
}
