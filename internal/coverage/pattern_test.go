package coverage

import (
	"slices"
	"strings"
	"testing"

	"vogt/internal/detail"
	"vogt/internal/grant"
)

func TestMatches(t *testing.T) {
	tests := []struct {
		glob, name string
		want       bool
	}{
		{"/home/me/p", "/home/me/p", true},
		{"/home/me/p", "/home/me/p/a", false},
		{"/home/me/p", "/home/me/pp", false},
		{"/home/me/*", "/home/me/p", true},
		{"/home/me/*", "/home/me/p/a", false},
		{"/home/me/*", "/home/me", false},
		{"/home/me/p/**", "/home/me/p", true},
		{"/home/me/p/**", "/home/me/p/a/b/c", true},
		{"/home/me/p/**", "/home/me/pp/a", false},
		{"/home/me/p/**", "/home/me", false},
		{"/home/*/p/**", "/home/me/p/a", true},
		{"/home/*/p/**", "/home/me/x/p/a", false},
		{"/home/**/src/*.go", "/home/me/p/src/a.go", true},
		{"/home/**/src/*.go", "/home/src/a.go", true},
		{"/home/**/src/*.go", "/home/me/src/src/a.go", true},
		{"/home/**/src/*.go", "/home/me/src/x/a.go", false},
		{"/a/*.md", "/a/.md", true},
		{"/a/x*y*z", "/a/xyz", true},
		{"/a/x*y*z", "/a/xz", false},
		{"/a/x*x", "/a/x", false},
		{"/a/ab*ab", "/a/ab", false},
		{"/a/ab*ab", "/a/abab", true},

		// What leads elsewhere, or is no clean path.
		{"/home/me/p/**", "/home/me/p/../.ssh/id", false},
		{"/home/me/p/**", "/home/me/p/./a", false},
		{"/home/me/p/**", "/home/me/p//a", false},
		{"/home/me/p/**", "/home/me/p/", false},
		{"/home/me/p/**", "home/me/p/a", false},
		{"/home/me/p/**", "~/p/a", false},
		{"/home/me/p/**", "$HOME/p/a", false},
		{"/home/me/p/**", "", false},
		{".a/b*", "/a/b", false},
		{"", "/a", false},
		{"/home/me/p/**", "/home/me/p/a\x00/etc", false},

		// A shell's pattern in the path is a name that nobody knows yet.
		{"/a/**", "/a/*", true},
		{"/a/**", "/a/b?/[c]/*.md", true},
		{"/a/*", "/a/*.md", true},
		{"/a/*.md", "/a/*.md", true},
		{"/a/*.md", "/a/*.m?", false},
		{"/a/*.md", "/a/[x].md", true},
		{"/a/x", "/a/?", false},
		{"/a/?", "/a/?", false}, // no pattern of ours holds one
		{"/a/x*", "/a/?y", false},
		{"/a/x*", "/a/xy?", true},
		{"/a/b/**", "/a/*/c", false},
		{"/a/b/**", "/*/b/c", false},
	}
	for _, test := range tests {
		if got := Matches(test.glob, test.name); got != test.want {
			t.Errorf("Matches(%q, %q) = %v", test.glob, test.name, got)
		}
	}
	// Many ** cost no more than one: this would not end otherwise.
	if Matches("/"+strings.Repeat("**/a/", 40)+"x", "/"+strings.Repeat("a/", 400)+"y") {
		t.Error("an endless pattern matches")
	}
}

func FuzzMatches(f *testing.F) {
	f.Add("/a/**", "/a/../b")
	f.Add("/a/*/c", "/a/b/c")
	f.Add("/a/b*", "/a/b?")
	f.Fuzz(func(t *testing.T, glob, name string) {
		if !Matches(glob, name) {
			return
		}
		// What matches begins with the literal folders of the pattern.
		fixed, _, _ := strings.Cut(glob, "*")
		folder := fixed[:strings.LastIndexByte(fixed, '/')+1]
		if !strings.HasPrefix(name+"/", folder) || strings.Contains(name+"/", "/../") {
			t.Errorf("Matches(%q, %q)", glob, name)
		}
	})
}

func TestCovers(t *testing.T) {
	read := grant.Pattern{Agent: "*", Programs: []string{"cat"}, Read: []string{"/p/**"}}
	write := grant.Pattern{Agent: "*", Programs: []string{"cp"}, Does: []grant.Deed{grant.DeedWrite}, Read: []string{"/usr/share/**"}, Write: []string{"/p/**"}}
	fetch := grant.Pattern{Agent: "*", Programs: []string{"curl"}, Does: []grant.Deed{grant.DeedConnect}, Write: []string{"/p/**"}, Hosts: []string{"a.example", "*.b.example"}, MaxRisk: detail.High}
	box := grant.Pattern{Agent: "*", Does: []grant.Deed{grant.DeedAny}, Box: &grant.Box{Profile: "default", Workspace: "/p/**"}}
	boxRead := grant.Pattern{Agent: "*", Programs: []string{"git"}, Operations: []string{"git.log"}, Box: &grant.Box{Profile: "read"}}
	in := Where{Profile: "default", Workspace: "/p/x", Offline: true}
	call := func(program string, risk detail.Risk, change ...func(*Call)) Call {
		c := Call{Detail: detail.Command{Program: program, Operation: program + ".log", Risk: risk}, Literal: true, Cwd: "/p"}
		for _, f := range change {
			f(&c)
		}
		return c
	}
	reads := func(paths ...string) func(*Call) { return func(c *Call) { c.Read = paths } }
	writes := func(paths ...string) func(*Call) {
		return func(c *Call) { c.Write, c.Effects = paths, c.Effects|detail.Writes }
	}
	effects := func(e detail.Effects) func(*Call) { return func(c *Call) { c.Effects |= e } }
	hosts := func(names ...string) func(*Call) {
		return func(c *Call) { c.Hosts, c.Effects = names, c.Effects|detail.Contacts }
	}
	tests := []struct {
		name    string
		pattern grant.Pattern
		call    Call
		where   Where
		why     string // part of the reason; empty when covered
	}{
		{"a file inside", read, call("cat", detail.Low, reads("/p/a")), Where{}, ""},
		{"two", read, call("cat", detail.Low, reads("/p/a", "/etc/passwd")), Where{}, "/etc/passwd would be read"},
		{"another program", read, call("dd", detail.Low, reads("/p/a")), Where{}, "the program is dd"},
		{"a link that leads out", read, call("cat", detail.Low, reads("/p/a")), Where{Links: map[string]string{"/p/a": "/root/.ssh/id"}}, "/root/.ssh/id"},
		{"a link that stays", read, call("cat", detail.Low, reads("/p/a")), Where{Links: map[string]string{"/p/a": "/p/b"}}, ""},
		{"a working folder elsewhere", read, call("cat", detail.Low, func(c *Call) { c.Cwd = "/tmp" }), Where{}, "working folder"},
		{"a working folder elsewhere that does not matter", read, call("cat", detail.Low, reads("/p/a"), func(c *Call) { c.Cwd = "/tmp" }), Where{}, ""},
		{"no working folder known", read, call("cat", detail.Low, func(c *Call) { c.Cwd = "" }), Where{}, "working folder"},
		{"riskier", read, call("cat", detail.High, reads("/p/a")), Where{}, "risk"},
		{"critical", grant.Pattern{Box: box.Box, Does: box.Does, MaxRisk: detail.Critical}, call("rm", detail.Critical), in, "critical"},
		{"unrated", read, call("cat", detail.Unrated, reads("/p/a")), Where{}, "critical"},
		{"writes", read, call("cat", detail.Medium, writes("/p/a")), Where{}, "writes"},
		{"a word that is not known", read, call("cat", detail.Low, func(c *Call) { c.Literal = false }), Where{}, "not every word"},
		{"paths that are not known", read, call("cat", detail.Low, func(c *Call) { c.Unknown = true }), Where{}, "cannot be known"},
		{"opaque", read, call("cat", detail.Medium, effects(detail.Opaque)), Where{}, "cannot be known"},
		{"executes", read, call("cat", detail.Medium, effects(detail.Executes)), Where{}, "could have written"},
		{"unsettled", read, call("cat", detail.Medium, effects(detail.Unsettled)), Where{}, "settings"},
		{"a door", read, call("cat", detail.Medium, effects(detail.Door)), Where{}, "further ways"},
		{"privileged", read, call("cat", detail.Medium, effects(detail.Privileged)), Where{}, "further ways"},
		{"secrets", read, call("cat", detail.Medium, effects(detail.Secrets)), Where{}, "credentials"},
		{"remote", read, call("cat", detail.Medium, func(c *Call) { c.Remote = true }), Where{}, "another host"},
		{"a sink", write, call("cp", detail.Medium, writes("/p/.git/hooks/x"), func(c *Call) { c.Sinks = []string{"/p/.git/hooks/x"} }), Where{}, "steers"},
		{"a write inside", write, call("cp", detail.Medium, reads("/usr/share/x/a"), writes("/p/a")), Where{}, ""},
		{"a write where it only may read", write, call("cp", detail.Medium, writes("/usr/share/x/a")), Where{}, "would be written"},
		{"a delete", write, call("cp", detail.Medium, writes("/p/a"), effects(detail.Destroys)), Where{}, "lose data"},
		{"a host", fetch, call("curl", detail.High, hosts("a.example")), Where{}, ""},
		{"a host below", fetch, call("curl", detail.High, hosts("x.b.example")), Where{}, ""},
		{"the parent of hosts below", fetch, call("curl", detail.High, hosts("b.example")), Where{}, "contacts b.example"},
		{"a host that ends alike", fetch, call("curl", detail.High, hosts("xb.example")), Where{}, "contacts xb.example"},
		{"one host of two", fetch, call("curl", detail.High, hosts("a.example", "c.example")), Where{}, "contacts c.example"},
		{"an unnamed host", fetch, call("curl", detail.High, hosts()), Where{}, "does not name"},
		{"anything in the box", box, call("make", detail.High, effects(detail.Executes|detail.Opaque|detail.Writes|detail.Contacts)), in, ""},
		{"outside of it", box, call("make", detail.High), Where{}, "outside of a box"},
		{"in another", box, call("make", detail.High), Where{Profile: "host", Workspace: "/p/x", Offline: true}, "the box host"},
		{"about another folder", box, call("make", detail.High), Where{Profile: "default", Workspace: "/q", Offline: true}, "about /q"},
		{"about a folder with ..", box, call("make", detail.High), Where{Profile: "default", Workspace: "/p/../q", Offline: true}, "about /p/../q"},
		{"with a network", box, call("make", detail.High), Where{Profile: "default", Workspace: "/p/x"}, "network"},
		{"a crossing", box, Call{Detail: detail.Crossing{}}, in, "another user"},
		{"settled by the box", boxRead, call("git", detail.Medium, effects(detail.Unsettled), reads("/anywhere")), Where{Profile: "read", Offline: true}, ""},
		{"another operation", boxRead, Call{Detail: detail.Command{Program: "git", Operation: "git.logs", Risk: detail.Low}}, Where{Profile: "read", Offline: true}, "operation"},
		{"that executes in the box", boxRead, call("git", detail.Medium, effects(detail.Executes)), Where{Profile: "read", Offline: true}, "start anything"},
		{"the zero pattern", grant.Pattern{}, call("cat", detail.Low), Where{}, "risk"},
		{"a descent where files are named", grant.Pattern{Read: []string{"/p/*"}, MaxRisk: detail.Low}, call("grep", detail.Low, reads("/p/.ssh"), func(c *Call) { c.Cwd = "/p/x" }), Where{}, "/**"},
		{"a file where files are named", grant.Pattern{Read: []string{"/p/*"}, MaxRisk: detail.Low}, call("cat", detail.Low, reads("/p/a"), func(c *Call) { c.Cwd = "/p/x" }), Where{}, ""},
	}
	for _, test := range tests {
		p := test.pattern
		if p.Agent != "" {
			var err error
			if p, err = p.Complete(); err != nil && p.MaxRisk != detail.Critical {
				t.Errorf("%s: the pattern: %v", test.name, err)
				continue
			}
		}
		ok, why := Covers(&p, &test.call, test.where)
		if ok != (test.why == "") || !strings.Contains(why, test.why) || ok != (why == "") {
			t.Errorf("%s: %v, %q; want a reason with %q", test.name, ok, why, test.why)
		}
	}
}

func TestStanding(t *testing.T) {
	standing := func(id string, p grant.Pattern) *grant.Standing {
		p.Agent = "*"
		p, err := p.Complete()
		if err != nil {
			t.Fatal(err)
		}
		return &grant.Standing{ID: id, Pattern: p, Until: 100}
	}
	cat := standing("cat", grant.Pattern{Programs: []string{"cat"}, Read: []string{"/p/**"}})
	wc := standing("wc", grant.Pattern{Programs: []string{"wc"}, Read: []string{"/p/**"}})
	over := standing("over", grant.Pattern{Programs: []string{"ls"}, Read: []string{"/p/**"}})
	over.Until = 10
	call := func(program string) Call {
		return Call{Detail: detail.Command{Program: program, Risk: detail.Low}, Literal: true, Cwd: "/p"}
	}
	by, missing := Standing([]Call{call("cat"), call("wc"), call("cat")}, Where{}, []*grant.Standing{wc, cat, over}, 10)
	if !slices.Equal(by, []*grant.Standing{cat, wc}) || missing != nil {
		t.Errorf("a line that two patterns cover: by %+v, missing %v", by, missing)
	}
	if _, missing := Standing([]Call{call("cat"), call("ls")}, Where{}, []*grant.Standing{wc, cat, over}, 10); len(missing) != 1 || missing[0] != 1 {
		t.Errorf("a line of which one call is not covered: missing %v", missing)
	}
	for name, change := range map[string]func(*grant.Standing){
		"revoked": func(s *grant.Standing) { s.Revoked = 1 }, "paused": func(s *grant.Standing) { s.Paused = "x" },
		"without an end": func(s *grant.Standing) { s.Until = 0 }, "used up": func(s *grant.Standing) { s.Pattern.Limits.Uses, s.Uses = 1, 1 },
	} {
		s := *cat
		change(&s)
		if _, missing := Standing([]Call{call("cat")}, Where{}, []*grant.Standing{&s}, 10); len(missing) != 1 {
			t.Errorf("one that is %s covers", name)
		}
	}
}
