package authority_test

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"vogt/internal/api"
	"vogt/internal/authoritytest"
	"vogt/internal/grant"
	"vogt/internal/statement"
)

// in is a request in a folder.
func in(folder string, argv ...string) grant.Request {
	r := authoritytest.Request(argv...)
	r.Context = &grant.Context{Cwd: &statement.File{Path: &folder}}
	return r
}

func safely(c *cast, name, safe string) *authoritytest.Principal {
	p := &authoritytest.Principal{Client: authoritytest.Client{S: c.s}, Name: name, Key: c.s.NewKey(name), Owner: c.owner}
	done := c.owner.Change(api.TrustAgentAdd, map[string]string{"name": name, "public_key": p.Key.Line, "safe": safe})
	p.Email = done.Enrolled.Email
	return p.Login()
}

// TestSafeCommands: an agent that is enrolled looks around without a card, by what
// its commands mean and where they look.
func TestSafeCommands(t *testing.T) {
	t.Parallel()
	c := newCast(t)
	agent := safely(c, "looker", `["/p/","/p","/home/me/x/.."]`)
	tests := []struct {
		argv    []string
		cwd     string
		covered bool
	}{
		{[]string{"ls"}, "/p", true},
		{[]string{"ls", "-la", "src"}, "/p", true},
		{[]string{"cat", "a.txt", "b.txt"}, "/p", true},
		{[]string{"head", "-n", "3", "/p/x/y"}, "/q", true},
		{[]string{"grep", "-rn", "x", "."}, "/p", true},
		{[]string{"find", ".", "-name", "*.go"}, "/p", true},
		{[]string{"sh", "-c", "cat a | grep x | wc -l"}, "/p", true},
		{[]string{"echo", "hello"}, "/q", true},
		{[]string{"date"}, "/q", true},
		{[]string{"whoami"}, "", true},
		{[]string{"pwd"}, "/q", true},
		{[]string{"which", "git"}, "/q", true},
		{[]string{"cat", "/usr/share/doc/bash/README"}, "/q", true},
		{[]string{"stat", "a"}, "/p", true},
		{[]string{"cat", "notes.txt"}, "/home/me", true},

		{[]string{"ls"}, "/q", false},
		{[]string{"cat", "../q/a"}, "/p", false},
		{[]string{"cat", "/etc/passwd"}, "/p", false},
		{[]string{"cat", ".env"}, "/p", false},
		{[]string{"cat", "/p/.ssh/id_ed25519"}, "/p", false},
		{[]string{"cat", "/p/.bash_history"}, "/p", false},
		{[]string{"cat", "/p/.mozilla/firefox/x/cookies.sqlite"}, "/p", false},
		{[]string{"cat", "/home/me/Maildir/cur/1"}, "/p", false},
		{[]string{"cat", "/proc/1/environ"}, "/p", false},
		{[]string{"cat", "/dev/sda"}, "/p", false},
		{[]string{"find", ".", "-delete"}, "/p", false},
		{[]string{"find", ".", "-exec", "rm", "{}", "+"}, "/p", false},
		{[]string{"find", ".", "-fprint", "x"}, "/p", false},
		{[]string{"date", "-s", "2020-01-01"}, "/p", false},
		{[]string{"file", "-C", "-m", "x"}, "/p", false},
		{[]string{"sh", "-c", "echo x > a"}, "/p", false},
		{[]string{"sh", "-c", "echo $TOKEN"}, "/p", false},
		{[]string{"tail", "-f", "--pid=1", "/var/log/syslog"}, "/p", false},
		{[]string{"rm", "a"}, "/p", false},
	}
	for _, test := range tests {
		g := agent.AskFor(in(test.cwd, test.argv...))
		if got := g.Status == grant.Approved && g.AutoKind == "standing"; got != test.covered {
			t.Errorf("%q in %q: %s by %q", test.argv, test.cwd, g.Status, g.AutoKind)
		}
	}
	var list []api.Standing
	c.owner.Get(api.PathStanding).Want(200).Into(&list)
	if len(list) != 1 || list[0].Pattern.Class != grant.ClassSafe || !slices.Equal(list[0].Pattern.Folders(), []string{"/home/me", "/p"}) || len(list[0].Pattern.Programs) != 14 {
		t.Fatalf("listed: %+v", list)
	}
	if list[0].Strength != grant.Independent {
		t.Errorf("the safe commands are worth %s, the enrolment was signed", list[0].Strength)
	}
}

// TestSafeSwitches: per agent and per owner, off by a login, on by a signature.
func TestSafeSwitches(t *testing.T) {
	t.Parallel()
	c := newCast(t)
	agent := safely(c, "looker", `["/p"]`)
	covered := func(p *authoritytest.Principal) bool {
		g := p.AskFor(in("/p", "ls", "-l", p.Name))
		if g.Status == grant.Pending {
			p.Post(api.PathGrants+"/"+g.ID+"/revoke", nil).Want(200)
			return false
		}
		consume(t, p, g.ID)
		return true
	}
	state := func() (out api.Safe) {
		c.owner.Get(api.PathSafe).Want(200).Into(&out)
		return out
	}
	if !covered(agent) || covered(c.sibling) {
		t.Fatal("the safe commands are not those of the enrolment")
	}
	for name, who := range map[string]*authoritytest.Principal{"the agent": agent, "a stranger": c.stranger, "another's agent": c.foreign} {
		if a := who.Do("DELETE", api.PathSafe+"/"+url.PathEscape(agent.Email), nil); a.Status < 400 {
			t.Errorf("%s switches them off: %d", name, a.Status)
		}
	}
	// What the pattern gave and nobody has used ends with it.
	unused := agent.AskFor(in("/p", "cat", "a"))
	c.owner.Do("DELETE", api.PathSafe+"/"+url.PathEscape(agent.Email), nil).Want(200)
	if covered(agent) || agent.Grant(unused.ID).Status != grant.Revoked {
		t.Error("switched off, they still cover")
	}
	c.owner.Change(api.TrustSafeOn, map[string]string{"email": agent.Email, "safe": `["/p"]`})
	if !covered(agent) || covered(c.sibling) {
		t.Error("switched on, they do not cover")
	}
	unused = agent.AskFor(in("/p", "cat", "a"))
	c.owner.Do("DELETE", api.PathSafe, nil).Want(200)
	if s := state(); s.On || len(s.Agents) != 3 {
		t.Errorf("switched off for all: %+v", s)
	}
	if covered(agent) {
		t.Error("switched off for all, they still cover")
	}
	if a := agent.Post(api.PathGrants+"/"+unused.ID+"/token", nil); a.Status != 403 {
		t.Errorf("a token under safe commands that are off: %d", a.Status)
	}
	c.owner.Change(api.TrustSafeOn, map[string]string{})
	if !covered(agent) {
		t.Error("switched on for all, they do not cover")
	}
	if g := c.sibling.AskFor(in("/q", "echo", "x")); g.Status != grant.Approved {
		t.Errorf("an agent that had none, when they are switched on for all: %+v", g)
	}
	if s := state(); !s.On || slices.ContainsFunc(s.Agents, func(a api.SafeAgent) bool { return !a.On }) {
		t.Errorf("switched on for all: %+v", s)
	}
	for name, params := range map[string]map[string]string{
		"off":               {"safe": "off"},
		"the whole machine": {"email": agent.Email, "safe": `["/"]`},
		"a pattern":         {"email": agent.Email, "safe": `["/p/*"]`},
		"a relative folder": {"email": agent.Email, "safe": `["p"]`},
		"no list":           {"email": agent.Email, "safe": `p`},
		"a word besides":    {"email": agent.Email, "folder": "/p"},
	} {
		a := c.owner.Post(api.PathTrust, api.TrustRequest{Operation: api.TrustSafeOn, Params: params, Secret: strings.Repeat("ab", 32)})
		if a.Status != 400 {
			t.Errorf("%s is prepared: %d", name, a.Status)
		}
	}
	tr, _ := c.stranger.Prepare(api.TrustSafeOn, map[string]string{"email": agent.Email, "safe": `["/home"]`})
	if a := c.stranger.Post(trustPath(tr.ID, "confirm"), c.stranger.SignedChange(tr.ID)); a.Status != 404 {
		t.Errorf("a stranger switches on what is not his: %d", a.Status)
	}
}

// TestEverybodyIsSeeded: each way to enrol an agent brings the safe commands.
func TestEverybodyIsSeeded(t *testing.T) {
	t.Parallel()
	c := newCast(t)
	managed := &authoritytest.Principal{Client: authoritytest.Client{S: c.s}, Name: "managed", Key: c.s.NewKey("managed"), Email: "managed@box.example"}
	for _, path := range []string{"/api/agent/enroll", "/api/auth/enroll"} {
		var out struct {
			Seeded int `json:"seeded_safe_commands"`
		}
		key := c.s.NewKey(path)
		c.s.Manager().Post(path, map[string]any{"email": strings.ReplaceAll(path[1:], "/", "-") + "@box.example", "name": "m", "publicKey": key.Line, "owner": c.owner.Email}).Want(200).Into(&out)
		if out.Seeded != 14 {
			t.Errorf("%s seeds %d", path, out.Seeded)
		}
	}
	c.s.Manager().Post("/api/agent/enroll", map[string]any{"email": managed.Email, "name": "managed", "publicKey": managed.Key.Line, "owner": c.owner.Email}).Want(200)
	c.s.Clock.Advance(c.s.Authority.Config().Dormancy)
	managed.Login()
	g := managed.AskFor(in("/p", "echo", "x"))
	if g.Status != grant.Approved || g.Strength != grant.Bearer {
		t.Errorf("an agent of management's: %+v", g)
	}
	if g := managed.AskFor(in("/p", "ls")); g.Status != grant.Pending {
		t.Errorf("in a folder that nobody named: %+v", g)
	}
	person := c.s.Manager().Post("/api/admin/users", map[string]any{"email": "new@example.com", "name": "new"}).Want(200)
	if strings.Contains(string(person.Body), "standing") {
		t.Errorf("a person is seeded: %s", person.Body)
	}
}

// TestGroups: a pattern for a group covers whoever is in it, while it is in it.
func TestGroups(t *testing.T) {
	t.Parallel()
	c := newCast(t)
	tr, _ := c.owner.Prepare(api.TrustStandingAdd, standingParams(t, catIn("group:readers")))
	c.owner.Post(trustPath(tr.ID, "confirm"), c.owner.SignedChange(tr.ID)).Problem(404) // nobody is in it
	c.owner.Change(api.TrustGroupSet, map[string]string{"name": "readers", "agents": c.requester.Email})
	s := sign(t, c.owner, catIn("group:readers"))
	c.owner.Do("DELETE", api.PathGroups+"/readers/"+url.PathEscape(c.requester.Email), nil).Want(200)
	ask := func(p *authoritytest.Principal) grant.Status {
		g := p.AskFor(inProject("cat", "a", p.Name))
		if g.Status == grant.Pending {
			p.Post(api.PathGrants+"/"+g.ID+"/revoke", nil).Want(200)
		} else {
			consume(t, p, g.ID)
		}
		return g.Status
	}
	if got := ask(c.sibling); got != grant.Pending {
		t.Fatalf("outside of the group: %s", got)
	}
	set := func(agents ...string) {
		c.owner.Change(api.TrustGroupSet, map[string]string{"name": "readers", "agents": strings.Join(agents, ", ")})
	}
	set(c.sibling.Email)
	if got := ask(c.sibling); got != grant.Approved {
		t.Errorf("in the group: %s", got)
	}
	if got := ask(c.requester); got != grant.Pending {
		t.Errorf("another agent: %s", got)
	}
	// A stranger's group of the same name is another group.
	c.stranger.Change(api.TrustGroupSet, map[string]string{"name": "readers", "agents": c.foreign.Email})
	if got := ask(c.foreign); got != grant.Pending {
		t.Errorf("another owner's agent in a group of the same name: %s", got)
	}
	tr, _ = c.stranger.Prepare(api.TrustGroupSet, map[string]string{"name": "readers", "agents": c.sibling.Email})
	if a := c.stranger.Post(trustPath(tr.ID, "confirm"), c.stranger.SignedChange(tr.ID)); a.Status != 404 {
		t.Errorf("a stranger puts another's agent into a group: %d", a.Status)
	}
	var list []api.Standing
	c.sibling.Get(api.PathStanding).Want(200).Into(&list)
	if len(list) != 1 || list[0].ID != s.ID {
		t.Errorf("the member sees %+v", list)
	}
	list = nil
	if c.requester.Get(api.PathStanding).Want(200).Into(&list); len(list) != 0 {
		t.Errorf("who is no member sees %+v", list)
	}
	set(c.sibling.Email, c.requester.Email)
	if got := ask(c.requester); got != grant.Approved {
		t.Errorf("put into the group: %s", got)
	}
	set(c.requester.Email)
	if got := ask(c.sibling); got != grant.Pending {
		t.Errorf("left out of the group: %s", got)
	}
	var groups []api.Group
	c.owner.Get(api.PathGroups).Want(200).Into(&groups)
	if len(groups) != 1 || groups[0].Name != "readers" || !slices.Equal(groups[0].Agents, []string{c.requester.Email}) {
		t.Errorf("groups: %+v", groups)
	}
	member := api.PathGroups + "/readers/" + url.PathEscape(c.requester.Email)
	if a := c.requester.Do("DELETE", member, nil); a.Status < 400 {
		t.Errorf("an agent leaves a group by itself: %d", a.Status)
	}
	c.owner.Do("DELETE", member, nil).Want(200)
	if got := ask(c.requester); got != grant.Pending {
		t.Errorf("taken out of the group: %s", got)
	}
	// Whoever is enrolled anew under an address is in no group.
	set(c.sibling.Email)
	c.owner.Do("DELETE", api.PathMyAgents+"/"+url.PathEscape(c.sibling.Email), nil).Want(200)
	again := c.s.Agent(c.owner, "sibling")
	if got := ask(again); got != grant.Pending {
		t.Errorf("enrolled anew: %s", got)
	}
}

// TestLabels: what an agent has seen or written changes what patterns cover, until
// a person ends it.
func TestLabels(t *testing.T) {
	t.Parallel()
	c := newCast(t)
	fetch := grant.Pattern{Agent: "*", Programs: []string{"curl"}, Does: []grant.Deed{grant.DeedConnect}, Read: []string{"/p/**"}, Hosts: []string{"a.example"}, MaxRisk: 3}
	sign(t, c.owner, fetch)
	sign(t, c.owner, grant.Pattern{Agent: "*", Does: []grant.Deed{grant.DeedAny}, Hosts: []string{"mirror.example"}, Box: &grant.Box{Profile: "default"}})
	digest, program := strings.Repeat("ab", 32), "/p/tool"
	sign(t, c.owner, grant.Pattern{Agent: "*", Files: []string{digest}, Read: []string{"/p/**"}})
	tool := func() grant.Request {
		r := inProject("./tool", "--all")
		r.Context.Executable, r.Context.File = program, &statement.File{Path: &program, SHA256: &digest}
		return r
	}
	boxed := func() grant.Request {
		r := inProject("npm", "ci")
		what, mode := grant.Confinement{Profile: "default", Digest: "d", Workspace: "/p"}.String(), grant.ProxyMode([]string{"mirror.example"})
		r.Context.Confinement, r.Context.NetworkMode = &what, &mode
		return r
	}
	asked := func(r grant.Request) bool {
		g := c.sibling.AskFor(r)
		if g.Status == grant.Pending {
			c.sibling.Post(api.PathGrants+"/"+g.ID+"/revoke", nil).Want(200)
			return true
		}
		consume(t, c.sibling, g.ID)
		return false
	}
	run := func(argv ...string) {
		g := c.sibling.AskFor(inProject(argv...))
		if g.Status == grant.Pending {
			c.owner.Approve(g.ID, grant.Once, 0)
		}
		consume(t, c.sibling, g.ID)
	}
	labels := func() (names []string) {
		var p api.Principal
		c.owner.Get(api.PathMyAgents + "/" + url.PathEscape(c.sibling.Email)).Want(200).Into(&p)
		for _, l := range p.Labels {
			names = append(names, l.Label)
		}
		return names
	}
	end := func() { c.owner.Change(api.TrustLabelsEnd, map[string]string{"email": c.sibling.Email}) }

	// Hosts that a pattern names are known; using it twice changes nothing.
	for range 2 {
		if asked(inProject("curl", "https://a.example/x")) || asked(boxed()) || asked(tool()) {
			t.Fatal("without labels, something is asked")
		}
	}
	if got := labels(); got != nil {
		t.Errorf("labels: %q", got)
	}
	// Another network than the pattern's.
	for name, mode := range map[string]string{"any": "proxy", "more": grant.ProxyMode([]string{"mirror.example", "b.example"}), "the machine's": "host", "none named": "proxy: "} {
		r := boxed()
		r.Context.NetworkMode = &mode
		if !asked(r) {
			t.Errorf("a box with the network %q (%s) is covered", mode, name)
		}
	}
	run("cat", "/p/.env")
	if got := labels(); !slices.Equal(got, []string{"secret"}) {
		t.Errorf("after a credential: %q", got)
	}
	if !asked(inProject("curl", "https://a.example/x")) || !asked(boxed()) {
		t.Error("after a credential, a network is covered")
	}
	if g := c.requester.AskFor(inProject("curl", "https://a.example/y")); g.Status != grant.Approved {
		t.Errorf("another agent: %+v", g)
	}
	tr, _ := c.sibling.Prepare(api.TrustLabelsEnd, map[string]string{"email": c.sibling.Email})
	for name, p := range map[string]*authoritytest.Principal{"the agent": c.sibling, "a stranger": c.stranger} {
		signed := c.owner.SignedChange(tr.ID)
		if p == c.stranger {
			signed = p.SignedChange(tr.ID)
		}
		if a := p.Post(trustPath(tr.ID, "confirm"), signed); a.Status < 400 {
			t.Errorf("%s ends the labels: %d", name, a.Status)
		}
	}
	end()
	if asked(inProject("curl", "https://a.example/x")) || labels() != nil {
		t.Error("ended, the label holds")
	}
	run("curl", "https://other.example/x")
	if got := labels(); !slices.Equal(got, []string{"foreign"}) || !asked(inProject("curl", "https://a.example/x")) {
		t.Errorf("after a page of strangers: %q", got)
	}
	end()
	run("touch", "/p/tool")
	if got := labels(); !slices.Equal(got, []string{"wrote:/p/tool"}) || !asked(tool()) {
		t.Errorf("after a write: %q", got)
	}
	end()
	if asked(tool()) {
		t.Error("ended, what was written is asked")
	}
	// By content: this file, where the pattern says, and only it.
	other := strings.Repeat("cd", 32)
	for name, change := range map[string]func(*grant.Request){
		"another content":   func(r *grant.Request) { r.Context.File.SHA256 = &other },
		"no content":        func(r *grant.Request) { r.Context.File = nil },
		"another folder":    func(r *grant.Request) { r.Context.Cwd = &statement.File{Path: pointer("/q")} },
		"an own reader":     func(r *grant.Request) { r.Context.Interpreters = []statement.File{{Path: pointer("/p/python")}} },
		"a program besides": func(r *grant.Request) { r.Command = []string{"sh", "-c", "./tool; rm -r x"} },
		"as root":           func(r *grant.Request) { r.RunAs = "root" },
		"the system's program": func(r *grant.Request) {
			r.Command, r.Context.Executable, r.Context.File.Path = []string{"bash", "-c", "make"}, "/usr/bin/bash", pointer("/usr/bin/bash")
		},
	} {
		r := tool()
		change(&r)
		if !asked(r) {
			t.Errorf("%s is covered", name)
		}
	}
	// Of very many paths, all count as written.
	for i := range 6 {
		var b strings.Builder
		for j := range 50 {
			b.WriteString(" /p/f" + string(rune('a'+i)) + string(rune('a'+j%26)) + string(rune('a'+j/26)))
		}
		run("sh", "-c", "touch"+b.String())
	}
	if got := labels(); len(got) > 260 || !slices.Contains(got, "wrote:*") || !asked(tool()) {
		t.Errorf("after 300 files: %d labels", len(got))
	}
}

// TestLiesAboutThePrograms: what a request says of the file that would run, and of what
// reads it, is part of where its program lies.
func TestLiesAboutThePrograms(t *testing.T) {
	t.Parallel()
	c := newCast(t)
	agent := safely(c, "looker", `["/p"]`)
	file := func(path string) *statement.File { return &statement.File{Path: &path} }
	for i, test := range []struct {
		name        string
		file        *statement.File
		interpreter *statement.File
		covered     bool
	}{
		{"the system's", file("/usr/bin/cat"), nil, true},
		{"where its link leads", file("/usr/lib/cargo/bin/coreutils/cat"), nil, true},
		{"a store of packages", file("/nix/store/x-coreutils/bin/cat"), nil, true},
		{"another file", file("/p/cat"), nil, false},
		{"by the parent", file("/usr/../p/cat"), nil, false},
		{"in the home", file("/home/me/.local/bin/cat"), nil, false},
		{"read by the agent's", file("/usr/bin/cat"), file("/p/sh"), false},
	} {
		r := inProject("cat", "a", strings.Repeat("b", i+1))
		r.Context.Executable, r.Context.File = "/usr/bin/cat", test.file
		if test.interpreter != nil {
			r.Context.Interpreters = []statement.File{*test.interpreter}
		}
		if g := agent.AskFor(r); (g.Status == grant.Approved) != test.covered {
			t.Errorf("%s: %s", test.name, g.Status)
		}
	}
}
