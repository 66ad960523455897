package flow

import (
	"strings"
	"testing"

	"vogt/internal/catalog"
	"vogt/internal/detail"
	"vogt/internal/grant"
	"vogt/internal/reading"
	"vogt/internal/statement"
)

// judged says what a policy makes of a line that bash would run.
func judged(t *testing.T, p grant.Policy, line string, change func(*grant.Request)) (bool, string) {
	t.Helper()
	p.Agent = "bot@vm"
	p, err := p.Complete()
	if err != nil {
		t.Fatal(err)
	}
	cwd := "/p"
	req := grant.Request{Command: []string{"bash", "-c", line}, Context: &grant.Context{Cwd: &statement.File{Path: &cwd}}}
	if change != nil {
		change(&req)
	}
	read, err := Read(reading.New(catalog.New()), req)
	if err != nil {
		t.Fatal(err)
	}
	return JudgePolicy(read, []*grant.Policy{&p}, WhereOf(req))
}

// TestPolicy: what a policy approves is decided call by call and by what the call
// does; text alone approves nothing.
func TestPolicy(t *testing.T) {
	t.Parallel()
	allow := func(patterns ...string) grant.Policy { return grant.Policy{Mode: grant.AllowList, Allow: patterns} }
	deny := func(patterns ...string) grant.Policy { return grant.Policy{Mode: grant.DenyList, Deny: patterns} }
	both := grant.Policy{Mode: grant.AllowList, Allow: []string{"*"}, Deny: []string{"rm *"}}
	upTo := func(p grant.Policy, r detail.Risk) grant.Policy { p.DenyRisk = r; return p }
	for _, test := range []struct {
		name   string
		policy grant.Policy
		line   string
		ok     bool
		why    string
	}{
		{"named", allow("echo *", "date"), "date", true, ""},
		{"named with words", allow("echo *", "date"), "echo a b c", true, ""},
		{"a star is at least one word", allow("echo *"), "echo", false, "does not name"},
		{"a word is no prefix", allow("date"), "date -s 2026-01-01", false, ""},
		{"every call of a line", allow("echo *", "date"), "echo a && date; echo b", true, ""},
		{"a star ends with its call", allow("echo *"), "echo a; touch b", false, "does not name"},
		{"a star ends at a pipe", allow("echo *"), "echo a | tee b", false, ""},
		{"a star ends at a new line", allow("echo *"), "echo a\ntouch b", false, "does not name"},
		{"a star ends at an ampersand", allow("echo *"), "echo a & touch b", false, "does not name"},
		{"a substitution", allow("echo *"), "echo $(touch b)", false, ""},
		{"a variable", allow("echo *"), "echo $X", false, ""},
		{"a redirection", allow("echo *"), "echo a > /home/me/thesis", false, "redirection"},
		{"a redirection that reads", allow("cat"), "cat < /home/me/letter", false, "redirection"},
		{"a redirection to nothing", allow("echo *"), "echo a > /dev/null 2>&1", true, ""},
		{"a redirection of a group", allow("echo *"), "{ echo a; } > b", false, ""},
		{"quoted stars are words", allow("echo *"), "echo '; touch b'", true, ""},
		{"one word is not two", allow("git commit *"), "'git commit' x", false, ""},
		{"a part of a name", allow("cat /p/*.txt"), "cat /p/a.txt", true, ""},
		{"a part of a name ends at a slash", allow("cat /p/*"), "cat /p/q/a", false, "does not name"},
		{"a part of a name leads nowhere else", allow("cat /p/*"), "cat /p/..", false, "does not name"},
		{"nor above it", allow("cat /p/*/a"), "cat /p/../a", false, "does not name"},
		{"its own program of that name", allow("date"), "./date", false, ""},
		{"the system's by its path", allow("date"), "/bin/date", false, "does not name"},
		{"an empty allow-list", allow(), "date", false, "does not name"},
		{"any", allow("*"), "touch /p/a", true, ""},
		{"any, but a script", allow("*"), "./run.sh", false, ""},
		{"any, but make", allow("*"), "make", false, "box"},
		{"make by name", allow("make"), "make", false, "box"},
		{"any, but an unknown program", allow("*"), "no-such-program", false, "cannot be known"},
		{"any, but an unknown option", allow("*"), "cat --no-such a", false, "cannot be known"},
		{"any, but a shell", allow("*"), "bash", false, ""},
		{"any, but code", allow("*"), "python3 -c 'print(1)'", false, ""},
		{"any, but eval", allow("*"), `eval "$X"`, false, ""},
		{"any, but root", allow("*"), "sudo date", false, ""},
		{"any, but credentials", allow("*"), "cat /p/.ssh/id_ed25519", false, ""},
		{"any, but the environment", allow("*"), "env", false, ""},
		{"any, but a sink", allow("*"), "cp a /p/.git/hooks/pre-commit", false, ""},
		{"any, but what nothing brings back", allow("*"), "rm -rf /p", false, "critical"},
		{"any, but Vogt's own verbs", allow("*"), "vogt grant approve x", false, "critical"},
		{"any, but another host", allow("*"), "ssh host date", false, ""},
		{"any, but a broken line", allow("*"), "echo 'a", false, ""},
		{"any, but hosts that are not said", allow("*"), "curl -T a \"$HOST\"", false, ""},
		{"deny-list", deny("rm *"), "touch /p/a", true, ""},
		{"denied", deny("rm *"), "rm a", false, `denies "rm *"`},
		{"denied by its path", deny("rm *"), "/bin/rm a", false, `denies "rm *"`},
		{"denied without words", deny("date *"), "date", false, `denies "date *"`},
		{"denied in another case", deny("DATE"), "date", false, "denies"},
		{"denied behind others", deny("rm *"), "echo a && touch b; rm c", false, `denies "rm *"`},
		{"denied in a wrapper", deny("rm *"), "timeout 5 nice rm c", false, `denies "rm *"`},
		{"denied in a shell", deny("rm *"), `sh -c "rm c"`, false, `denies "rm *"`},
		{"denied in any place", deny("* --force *"), "cp --force a b", false, "denies"},
		{"denied by a part of the text", deny("*secret*"), "cat a-secret-b", false, "denies"},
		{"deny wins", both, "rm a", false, `denies "rm *"`},
		{"deny wins, and leaves the rest", both, "touch /p/a", true, ""},
		{"deny-list, but opaque", deny("rm *"), "no-such-program", false, "cannot be known"},
		{"deny-list, but critical", deny("touch *"), "rm -rf /p", false, "critical"},
		{"deny-list, but computed", deny("rm *"), "$(echo rm) a", false, ""},
		{"deny-list, but scripts", deny("rm *"), "sh ./a.sh", false, ""},
		{"a threshold", upTo(deny("rm *"), detail.Medium), "touch /p/a", false, "asks from medium"},
		{"below a threshold", upTo(deny("rm *"), detail.High), "touch /p/a", true, ""},
		{"nothing is below low", upTo(allow("*"), detail.Low), "date", false, "asks from low"},
	} {
		ok, why := judged(t, test.policy, test.line, nil)
		if ok != test.ok || !strings.Contains(why, test.why) {
			t.Errorf("%s: %q: %v %q, want %v %q", test.name, test.line, ok, why, test.ok, test.why)
		}
	}
	// The zero value approves nothing, whatever it is asked.
	if ok, _ := JudgePolicy(Reading{}, nil, WhereOf(grant.Request{})); ok {
		t.Error("no policy approves")
	}
	read, err := Read(reading.New(catalog.New()), grant.Request{Command: []string{"date"}})
	if err != nil {
		t.Fatal(err)
	}
	if ok, _ := JudgePolicy(read, []*grant.Policy{{}}, WhereOf(grant.Request{})); ok {
		t.Error("the zero policy approves")
	}
}

// TestPolicyHearsNoLies: what a request says of itself opens nothing, and its box
// opens only what the box holds.
func TestPolicyHearsNoLies(t *testing.T) {
	t.Parallel()
	all := grant.Policy{Mode: grant.AllowList, Allow: []string{"*"}}
	box, none := grant.Confinement{Profile: "default", Digest: "ab", Workspace: "/p"}.String(), grant.Offline
	for _, test := range []struct {
		name, line string
		change     func(*grant.Request)
		ok         bool
	}{
		{"in a box", "make", func(r *grant.Request) { r.Context.Confinement, r.Context.NetworkMode = &box, &none }, true},
		{"in a box, opaque", "no-such-program", func(r *grant.Request) { r.Context.Confinement, r.Context.NetworkMode = &box, &none }, false},
		{"in a box with a network", "make", func(r *grant.Request) { open := "open"; r.Context.Confinement, r.Context.NetworkMode = &box, &open }, false},
		{"with a harmless detail", "make", func(r *grant.Request) {
			r.Details = []detail.Wire{{Type: detail.WireCLI, CLI: "date", Action: "read", Risk: "low"}}
			r.Permissions = []string{"date"}
		}, false},
		{"as another user", "date", func(r *grant.Request) { r.RunAs = "root" }, false},
		{"found elsewhere", "date", func(r *grant.Request) { r.Context.Links = map[string]string{"date": "/p/date"} }, false},
		{"to a sink by a link", "touch /p/x", func(r *grant.Request) { r.Context.Links = map[string]string{"/p/x": "/p/.git/hooks/pre-commit"} }, false},
		{"to credentials by a link", "cat /p/x", func(r *grant.Request) { r.Context.Links = map[string]string{"/p/x": "/home/me/.ssh/id_ed25519"} }, false},
	} {
		if ok, why := judged(t, all, test.line, test.change); ok != test.ok {
			t.Errorf("%s: %v %q", test.name, ok, why)
		}
	}
	// A policy for any audience still denies beside one for this audience.
	read, err := Read(reading.New(catalog.New()), grant.Request{Command: []string{"date"}})
	if err != nil {
		t.Fatal(err)
	}
	other := grant.Policy{Mode: grant.DenyList, Deny: []string{"date"}}
	if ok, why := JudgePolicy(read, []*grant.Policy{&all, &other}, WhereOf(grant.Request{})); ok || !strings.Contains(why, "denies") {
		t.Errorf("the denial of another policy: %v %q", ok, why)
	}
}
