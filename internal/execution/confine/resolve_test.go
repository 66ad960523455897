package confine

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"vogt/internal/execution/confine/plan"
	"vogt/internal/execution/confine/seatbelt"
)

// tree is a home with a workspace in it.
type tree struct {
	t         *testing.T
	home      string
	workspace string
}

func newTree(t *testing.T) *tree {
	t.Helper()
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	tr := &tree{t, home, filepath.Join(home, "app")}
	tr.dir("app")
	return tr
}

func (tr *tree) dir(name string) string {
	tr.t.Helper()
	full := filepath.Join(tr.home, name)
	if err := os.MkdirAll(full, 0o755); err != nil {
		tr.t.Fatal(err)
	}
	return full
}

func (tr *tree) file(name, text string) string {
	tr.t.Helper()
	tr.dir(filepath.Dir(name))
	full := filepath.Join(tr.home, name)
	if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
		tr.t.Fatal(err)
	}
	return full
}

func (tr *tree) link(target, name string) string {
	tr.t.Helper()
	full := filepath.Join(tr.home, name)
	if err := os.Symlink(target, full); err != nil {
		tr.t.Fatal(err)
	}
	return full
}

// repository makes a repository in a folder.
func (tr *tree) repository(name string) {
	tr.file(name+"/.git/HEAD", "ref: refs/heads/main\n")
	tr.file(name+"/.git/config", "[core]\n")
	tr.dir(name + "/.git/hooks")
	tr.dir(name + "/.git/objects")
	tr.dir(name + "/.git/refs")
}

func (tr *tree) request() Request {
	parse, _ := Builtin("default")
	p, err := parse()
	if err != nil {
		tr.t.Fatal(err)
	}
	return Request{Profile: p, Workspace: tr.workspace, Home: tr.home, Program: "/bin/true", Argv: []string{"true"}}
}

func (tr *tree) resolve() (*plan.Plan, []string) {
	tr.t.Helper()
	p, missing, err := Resolve(tr.request())
	if err != nil {
		tr.t.Fatal(err)
	}
	if err := p.Check(); err != nil {
		tr.t.Error(err)
	}
	return p, missing
}

func (tr *tree) has(what string, list []string, name string, want bool) {
	tr.t.Helper()
	if full := filepath.Join(tr.home, name); slices.Contains(list, full) != want {
		tr.t.Errorf("%s: %s is in it: %v, want %v\n%s", what, name, !want, want, strings.Join(list, "\n"))
	}
}

func TestResolve(t *testing.T) {
	tr := newTree(t)
	tr.repository("app")
	tr.repository("app/a/b/nested")
	tr.file("app/.vscode/settings.json", "{}")
	tr.file("app/.env", "SECRET=1")
	tr.file("app/.env.local", "SECRET=1")
	tr.dir(".ssh")
	tr.file(".netrc", "x")
	tr.dir("real-aws")
	tr.link("real-aws", ".aws")
	tr.file("app/bare/HEAD", "ref: refs/heads/main\n")
	tr.dir("app/bare/objects")
	tr.dir("app/bare/refs")
	tr.file("app/sub/.git", "gitdir: ../.git/modules/sub\n")
	tr.file("app/.git/modules/sub/HEAD", "ref: refs/heads/main\n")
	p, missing := tr.resolve()
	for _, name := range []string{"app/.git/hooks", "app/.git/config", "app/a/b/nested/.git/hooks", "app/a/b/nested/.git/config", "app/.vscode",
		"app/.mcp.json", "app/bare/hooks", "app/bare/config", "app/sub/.git", "app/.git/modules/sub/hooks", "app/.github"} {
		tr.has("guarded", p.Guarded, name, true)
	}
	for _, name := range []string{"app/.mcp.json", "app/.idea", "app/.github", "app/.git/info"} {
		tr.has("missing", missing, name, true)
	}
	for _, name := range []string{"app/.git/commondir", "app/.gitmodules", "app/.git", "app/.github/workflows", "app/.vscode"} {
		tr.has("missing", missing, name, false)
	}
	for _, name := range []string{".ssh", ".netrc", "real-aws", "app/.env", "app/.env.local"} {
		tr.has("hidden", p.Hidden, name, true)
	}
	for _, name := range []string{"app/.git", "app/a/b/nested/.git", "app/a", "app/a/b", "app/a/b/nested", "app/bare"} {
		tr.has("pinned", p.Pinned, name, true)
	}
	tr.has("write", p.Write, "app", true)
	if len(p.Write) != 1 {
		t.Errorf("write is %q", p.Write)
	}
}

func TestResolveRefuses(t *testing.T) {
	tr := newTree(t)
	tr.dir("elsewhere")
	for _, tt := range []struct {
		name   string
		change func(*Request)
		want   string
	}{
		{"the home", func(r *Request) { r.Workspace = tr.home }, "holds the home"},
		{"above the home", func(r *Request) { r.Workspace = filepath.Dir(tr.home) }, "holds the home"},
		{"everything", func(r *Request) { r.Workspace = "/" }, "holds the home"},
		{"the system", func(r *Request) { r.Workspace = "/usr" }, "/usr cannot be a workspace"},
		{"none", func(r *Request) { r.Workspace = filepath.Join(tr.home, "none") }, "no such file"},
		{"a file", func(r *Request) { r.Workspace = tr.file("f", "") }, "no folder"},
		{"no home", func(r *Request) { r.Home = filepath.Join(tr.home, "none") }, "the home"},
		{"another folder", func(r *Request) { r.Dir = filepath.Join(tr.home, "elsewhere") }, "is not in the box"},
		{"hides the workspace", func(r *Request) { r.Profile.Hidden = append(r.Profile.Hidden, "~/app") }, "would hide the workspace"},
	} {
		r := tr.request()
		tt.change(&r)
		_, _, err := Resolve(r)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want one with %q", tt.name, err, tt.want)
		}
		// What is refused because of the workspace alone is refused before, too.
		early := CheckWorkspace(Request{Workspace: r.Workspace, Home: r.Home, State: r.State, Secret: r.Secret})
		if alone := r.Workspace != tr.workspace || r.Home != tr.home; alone != (early != nil) || alone && early.Error() != err.Error() {
			t.Errorf("%s: before anybody is asked: %v", tt.name, early)
		}
	}
}

// TestWorktree shows that a worktree may write the repository that it belongs
// to, and that a file that only claims so opens nothing.
func TestWorktree(t *testing.T) {
	tr := newTree(t)
	tr.repository("main")
	tr.file("main/.git/worktrees/w/gitdir", tr.workspace+"/.git\n")
	tr.file("main/.git/worktrees/w/commondir", "../..\n")
	tr.file("main/.git/worktrees/w/HEAD", "ref: refs/heads/w\n")
	tr.file("app/.git", "gitdir: "+tr.home+"/main/.git/worktrees/w\n")
	p, _ := tr.resolve()
	tr.has("write", p.Write, "main/.git", true)
	tr.has("write", p.Write, "main", false)
	for _, name := range []string{"main/.git/hooks", "main/.git/config", "app/.git", "main/.git/worktrees/w/commondir"} {
		tr.has("guarded", p.Guarded, name, true)
	}
	tr.file("main/.git/worktrees/w/gitdir", tr.home+"/other/.git\n")
	p, _ = tr.resolve()
	tr.has("write, when the repository names another worktree", p.Write, "main/.git", false)
	tr.dir("secret/worktrees/w")
	tr.file("app/.git", "gitdir: "+tr.home+"/secret/worktrees/w\n")
	p, _ = tr.resolve()
	tr.has("write, when it is no repository", p.Write, "secret", false)
}

func TestResolveLinks(t *testing.T) {
	tr := newTree(t)
	tr.dir("app/hidden-repo")
	tr.repository("app/elsewhere")
	tr.link("elsewhere/.git", "app/.git")
	tr.link("elsewhere", "app/.vscode")
	r := tr.request()
	s := &resolver{request: r, profile: r.Profile}
	p, _, err := s.resolve()
	if err != nil {
		t.Fatal(err)
	}
	tr.has("watched", s.watched, "app/.git", true)
	tr.has("watched", s.watched, "app/.vscode", true)
	tr.has("guarded", p.Guarded, "app/elsewhere", true)
	// The workspace by another name is the same one.
	r = tr.request()
	r.Workspace = tr.link("app", "alias")
	p, _, err = Resolve(r)
	if err != nil {
		t.Fatal(err)
	}
	tr.has("write", p.Write, "app", true)
}

func TestEnviron(t *testing.T) {
	got := environ([]string{"PATH=/bin", "LC_ALL=C", "AWS_SECRET_ACCESS_KEY=x", "HOME=/other", "LD_PRELOAD=x", "VOGT_AGENT=a", "LANG=C", "LCX=1"},
		[]string{"PATH", "LANG", "LC_*", "LD_*", "VOGT_*", "HOME"}, "/home/u")
	want := []string{"PATH=/bin", "LC_ALL=C", "LANG=C", "HOME=/home/u"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestSeatbelt resolves the profiles that Vogt brings, and each becomes one of
// macOS.
func TestSeatbelt(t *testing.T) {
	for _, name := range BuiltinNames() {
		tr := newTree(t)
		tr.repository("app")
		tr.repository("app/a/nested")
		tr.file("app/.env", "SECRET=1")
		tr.dir(".ssh")
		parse, _ := Builtin(name)
		r := tr.request()
		var err error
		if r.Profile, err = parse(); err != nil {
			t.Fatal(err)
		}
		r.Serve = map[int]func(net.Listener){ProxyPort: func(net.Listener) {}}
		p, _, err := Resolve(r)
		if err != nil {
			t.Fatal(err)
		}
		p.Level, p.Private = plan.Seatbelt, "/private/tmp/box"
		text, params, err := seatbelt.Profile(p)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if strings.Contains(text, tr.home) {
			t.Errorf("%s: the home is in the text", name)
		}
		spelled := tr.home
		if strings.HasPrefix(spelled, "/tmp/") || strings.HasPrefix(spelled, "/var/") {
			spelled = "/private" + spelled
		}
		for _, tt := range []struct {
			prefix, path string
			want         bool
		}{{"HIDDEN", "/.ssh", true}, {"HIDDEN", "/app/.env", true}, {"WRITE", "/app", name != "read"}, {"GUARDED", "/app/a/nested/.git/hooks", name != "read"}} {
			if got := slices.ContainsFunc(params, func(p string) bool {
				key, value, _ := strings.Cut(p, "=")
				return strings.HasPrefix(key, tt.prefix) && value == spelled+tt.path
			}); got != tt.want {
				t.Errorf("%s: %s is a parameter %s: %v, want %v", name, tt.path, tt.prefix, got, tt.want)
			}
		}
	}
}
