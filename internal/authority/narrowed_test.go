package authority_test

import (
	"net/url"
	"slices"
	"testing"

	"vogt/internal/api"
	"vogt/internal/authoritytest"
	"vogt/internal/grant"
)

// spendable reports whether the token of a grant still buys an execution.
func spendable(c *cast, p *authoritytest.Principal, id, jwt string) bool {
	var out api.Consumed
	a := c.s.Consume(id, jwt)
	if a.Status != 200 {
		return false
	}
	a.Into(&out)
	return out.Error == "" && out.Use != ""
}

// TestNarrowedBeforeUse: what a person has narrowed, or what an agent has seen, since
// a pattern gave a permission counts when it is used.
func TestNarrowedBeforeUse(t *testing.T) {
	t.Parallel()
	c := newCast(t)
	agent := safely(c, "looker", `["/p"]`)
	names := func(p *authoritytest.Principal) (names []string) {
		var out api.Principal
		c.owner.Get(api.PathMyAgents + "/" + url.PathEscape(p.Email)).Want(200).Into(&out)
		for _, l := range out.Labels {
			names = append(names, l.Label)
		}
		return names
	}
	given := func(p *authoritytest.Principal, r grant.Request) (id, jwt string) {
		t.Helper()
		g := p.AskFor(r)
		if g.Status != grant.Approved {
			t.Fatalf("%q is asked", r.Command)
		}
		return g.ID, p.Token(g.ID)
	}
	sign(t, c.owner, grant.Pattern{Agent: "*", Programs: []string{"touch"}, Does: []grant.Deed{grant.DeedWrite}, Write: []string{"/p/**"}})
	sign(t, c.owner, grant.Pattern{Agent: "*", Programs: []string{"curl"}, Does: []grant.Deed{grant.DeedConnect}, Read: []string{"/p/**"}, Hosts: []string{"a.example"}, MaxRisk: 3})
	members := func(agents string) {
		c.owner.Change(api.TrustGroupSet, map[string]string{"name": "readers", "agents": agents})
	}
	members(c.sibling.Email)
	sign(t, c.owner, grant.Pattern{Agent: "group:readers", Programs: []string{"sort"}, Read: []string{"/p/**"}})

	// The second of two patterns ends.
	id, jwt := given(agent, inProject("sh", "-c", "touch b; cat a"))
	c.owner.Do("DELETE", api.PathSafe, nil).Want(200)
	if spendable(c, agent, id, jwt) {
		t.Error("switched off, the safe commands permit as a part of a line")
	}
	c.owner.Change(api.TrustSafeOn, map[string]string{"email": "", "safe": `["/p"]`})
	if spendable(c, agent, id, jwt) {
		t.Error("switched on again, they permit what they gave before")
	}

	// The agent leaves the group of the pattern.
	members(agent.Email)
	id, jwt = given(agent, inProject("sort", "a"))
	c.owner.Do("DELETE", api.PathGroups+"/readers/"+url.PathEscape(agent.Email), nil).Want(200)
	if spendable(c, agent, id, jwt) {
		t.Error("taken out of the group, the agent uses what its pattern gave")
	}
	members(agent.Email)
	id, jwt = given(agent, inProject("sort", "a"))
	members("")
	if spendable(c, agent, id, jwt) {
		t.Error("left out of the group, the agent uses what its pattern gave")
	}

	// The agent collects permissions for the network, and then reads a secret.
	id, jwt = given(agent, inProject("curl", "https://a.example/x"))
	secret := agent.AskFor(inProject("cat", "/p/.env"))
	c.owner.Approve(secret.ID, grant.Once, 0)
	consume(t, agent, secret.ID)
	if !slices.Contains(names(agent), "secret") {
		t.Fatal("no label")
	}
	if spendable(c, agent, id, jwt) {
		t.Error("after a secret, a network permission of a pattern is used")
	}
}

// TestLabelsAreNotDodged: what an agent says of its surroundings keeps no label off.
func TestLabelsAreNotDodged(t *testing.T) {
	t.Parallel()
	c := newCast(t)
	n := 0
	for name, r := range map[string]grant.Request{
		"a box without a name": func() grant.Request {
			r, none := inProject("cat", "/p/.env"), ""
			r.Context.Confinement = &none
			return r
		}(),
		"a box that is none": func() grant.Request {
			r, none := inProject("cat", "/p/.env"), "host"
			r.Context.Confinement = &none
			return r
		}(),
		"a link to credentials": func() grant.Request {
			r := inProject("cat", "/p/a")
			r.Context.Links = map[string]string{"/p/a": "/home/me/.aws/credentials"}
			return r
		}(),
		"a script":             inProject("python3", "x.py"),
		"make":                 inProject("make"),
		"a program of its own": inProject("./x"),
		"a test":               inProject("go", "test", "./..."),
		"an interpreter":       inProject("python3", "-c", "print(open('/home/me/.aws/credentials').read())"),
	} {
		n++
		agent := c.s.Agent(c.owner, "dodger"+string(rune('a'+n)))
		g := agent.AskFor(r)
		if g.Status != grant.Pending {
			t.Fatalf("%s: %s", name, g.Status)
		}
		c.owner.Approve(g.ID, grant.Once, 0)
		consume(t, agent, g.ID)
		var out api.Principal
		c.owner.Get(api.PathMyAgents + "/" + url.PathEscape(agent.Email)).Want(200).Into(&out)
		if !slices.ContainsFunc(out.Labels, func(l api.Label) bool { return l.Label == "secret" }) {
			t.Errorf("%s leaves no label: %+v", name, out.Labels)
		}
	}
}
