package seatbelt

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"vogt/internal/execution/confine/plan"
)

var update = flag.Bool("update", false, "write the golden files again")

// plans are those of the golden files.
func plans() map[string]*plan.Plan {
	basic := func(change func(*plan.Plan)) *plan.Plan {
		p := &plan.Plan{
			Version: plan.Version, Level: plan.Seatbelt, Root: plan.Listed, Network: plan.Offline, Sockets: plan.NoSockets,
			Read:    []string{"/usr", "/bin", "/opt/homebrew", "/Users/ann/go/pkg/mod"},
			Write:   []string{"/Users/ann/src/shop"},
			Links:   []plan.Link{{Path: "/etc", Target: "private/etc"}},
			Hidden:  []string{"/Users/ann/.ssh", "/Users/ann/src/shop/.env"},
			Guarded: []string{"/Users/ann/src/shop/.git/config", "/Users/ann/src/shop/.git/hooks", "/Users/ann/src/shop/.vscode"},
			Pinned:  []string{"/Users/ann/src/shop/.git"},
			Home:    "/Users/ann", Dir: "/Users/ann/src/shop", Program: "/usr/bin/make", Argv: []string{"make"},
			Private: "/private/var/folders/x/T/vogt-box-1",
		}
		change(p)
		return p
	}
	return map[string]*plan.Plan{
		"default": basic(func(*plan.Plan) {}),
		"proxy": basic(func(p *plan.Plan) {
			p.Network, p.Ports, p.Cache = plan.Proxied, []int{50123}, "/Users/ann/.local/share/vogt/boxes/0f/cache"
		}),
		"host": basic(func(p *plan.Plan) { p.Root, p.Read, p.Network, p.Terminal = plan.HostView, nil, plan.Host, true }),
		"own":  basic(func(p *plan.Plan) { p.Sockets = plan.OwnSockets }),
		"read": basic(func(p *plan.Plan) {
			p.Read, p.Write, p.Guarded, p.Pinned = append(p.Read, p.Write...), nil, nil, nil
		}),
		"way": basic(func(p *plan.Plan) {
			p.Read, p.Hidden = append(p.Read, "/Users/ann/.cargo/bin"), append(p.Hidden, "/Users/ann/.cargo")
		}),
		"spelling": basic(func(p *plan.Plan) {
			p.Write, p.Dir = []string{"/tmp/Größe (1)"}, "/tmp/Größe (1)"
			p.Read = append(p.Read, "/var/db/x", "/etc")
			p.Hidden = []string{`/tmp/Größe (1)/a"b\c`}
			p.Guarded = []string{"/tmp/Größe (1)/.git/hooks", "/tmp/Größe (1)/.github", "/tmp/Größe (1)/fluffy+stuff", "/tmp/Größe (1)/straße"}
			p.Pinned = nil
		}),
	}
}

func TestGolden(t *testing.T) {
	for name, p := range plans() {
		t.Run(name, func(t *testing.T) {
			text, params, err := Profile(p)
			if err != nil {
				t.Fatal(err)
			}
			check(t, text, params)
			got := text + "\n;; PARAMETERS\n; " + strings.Join(params, "\n; ") + "\n"
			file := filepath.Join("testdata", name+".sb")
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("%s is another one; look at it and run go test -update\n%s", file, got)
			}
			if again, _, _ := Profile(p); again != text {
				t.Error("a second profile of the same plan is another one")
			}
		})
	}
}

// TestDecisions asks the profiles what they say, as package model_test.go
// understands them.
func TestDecisions(t *testing.T) {
	const ws = "/Users/ann/src/shop"
	all := plans()
	for _, tt := range []struct {
		plan, operation, path string
		want                  bool
	}{
		{"default", "file-read-data", ws + "/main.go", true},
		{"default", "file-write-data", ws + "/main.go", true},
		{"default", "file-write-create", ws + "/new", true},
		{"default", "file-write-unlink", ws + "/main.go", true},
		{"default", "process-exec", ws + "/run.sh", true},
		{"default", "file-read-data", "/usr/bin/git", true},
		{"default", "file-read-data", "/private/etc/hosts", true},
		{"default", "file-read-metadata", "/etc", true},
		{"default", "file-write-data", "/usr/bin/git", false},
		{"default", "file-write-create", "/private/tmp/x", false},
		{"default", "file-write-create", "/private/var/folders/x/T/vogt-box-1/x", true},
		{"default", "file-read-data", "/Users/ann/.zshrc", false},
		{"default", "file-read-data", "/Users/ann/src/other/main.go", false},
		{"default", "file-read-data", "/Users/ann/src/shopping", false},
		{"default", "file-write-create", "/Users/ann/src/shopping", false},
		{"default", "process-exec", "/Users/ann/bin/tool", false},
		{"default", "file-read-metadata", "/Users/ann/src", true},
		{"default", "file-read-data", "/Users/ann/src", false},
		// Hidden, by every name and spelling.
		{"default", "file-read-data", "/Users/ann/.ssh/id", false},
		{"default", "file-read-metadata", "/Users/ann/.ssh", false},
		{"default", "file-read-data", ws + "/.env", false},
		{"default", "file-read-metadata", ws + "/.env", false},
		{"default", "file-read-data", ws + "/.ENV", false},
		{"default", "file-write-unlink", ws + "/.env", false},
		{"default", "file-map-executable", ws + "/.env", false},
		{"default", "process-exec", ws + "/.env", false},
		{"default", "file-read-data", ws + "/.environment", true},
		{"host", "file-read-data", "/Users/ann/.ssh/id", false},
		{"host", "file-read-metadata", "/Users/ann/.SSH/id", false},
		{"host", "file-read-data", "/Users/ann/.zshrc", true},
		{"host", "file-write-data", "/Users/ann/.zshrc", false},
		{"host", "file-read-data", "/dev/ttys004", false},
		{"host", "file-read-data", "/dev/null", true},
		{"host", "file-ioctl", "/dev/ttys004", true},
		{"default", "file-ioctl", "/dev/ttys004", false},
		// Protected, missing names and nested repositories included.
		{"default", "file-read-data", ws + "/.git/config", true},
		{"default", "file-write-data", ws + "/.git/config", false},
		{"default", "file-write-create", ws + "/.git/hooks/pre-commit", false},
		{"default", "file-write-create", ws + "/.git/HOOKS", false},
		{"default", "file-write-create", ws + "/.git/hoo\u212as", false},
		{"default", "file-write-create", ws + "/.git/con\ufb01g", false},
		{"default", "file-write-create", ws + "/.vscode", false},
		{"default", "file-write-create", ws + "/.VSCode/tasks.json", false},
		{"default", "file-write-create", ws + "/.v\u017fcode", false},
		{"default", "file-write-create", ws + "/a/b/.git/hooks/post-checkout", false},
		{"default", "file-write-create", ws + "/a/b/.Git/Config", false},
		{"default", "file-write-create", ws + "/a/.git/info/attributes", false},
		{"default", "file-write-create", ws + "/a/.git/config.worktree", false},
		{"default", "file-write-create", ws + "/.git/index.lock", true},
		{"default", "file-write-create", ws + "/.git/refs/heads/hooks", true},
		{"default", "file-write-create", ws + "/a/.git/objects/ab/cd", true},
		{"default", "file-write-create", ws + "/hooks/x", true},
		{"default", "file-write-create", ws + "/.git/hoorays", true},
		{"default", "file-write-create", ws + "/Übersicht.md", true},
		{"spelling", "file-write-create", "/private/tmp/Größe (1)/Übersicht.md", true},
		{"default", "file-write-create", ws + "/config", true},
		// Renaming what they lie in.
		{"default", "file-write-unlink", ws + "/.git", false},
		{"default", "file-write-unlink", ws, false},
		{"default", "file-write-unlink", ws + "/.GIT", false},
		{"default", "file-write-unlink", ws + "/src", true},
		{"spelling", "file-write-create", "/private/tmp/Größe (1)/STRASSE/x", false},
		{"spelling", "file-write-create", "/private/tmp/Größe (1)/straße", false},
		{"spelling", "file-write-unlink", "/private/tmp/Größe (1)/.git", false},
		{"default", "file-write-create", ws + "/xvscode", true},
		{"way", "file-read-metadata", "/Users/ann/.cargo", false},
		{"way", "file-read-data", "/Users/ann/.cargo/bin/rg", false},
		{"default", "file-link", ws + "/main.go", false},
		{"read", "file-read-data", ws + "/main.go", true},
		{"read", "file-write-data", ws + "/main.go", false},
		{"spelling", "file-write-create", "/private/tmp/Größe (1)/x", true},
		{"spelling", "file-read-data", `/private/tmp/Größe (1)/a"b\c`, false},
		{"spelling", "file-write-create", "/private/tmp/Größe (1)/.github/workflows/x", false},
		{"spelling", "file-write-create", "/private/tmp/Gro\u0308\u00dfe (1)/.GITHUB", false},
		{"spelling", "file-write-create", "/private/tmp/Größe (1)/\ufb02u\ufb00y+stuff", false},
		{"spelling", "file-read-data", "/private/var/db/x", true},
	} {
		text, params, err := Profile(all[tt.plan])
		if err != nil {
			t.Fatal(err)
		}
		if got := decide(t, text, params, question{operation: tt.operation, path: tt.path}); got != tt.want {
			t.Errorf("%s: %s %s: allowed %v, want %v", tt.plan, tt.operation, tt.path, got, tt.want)
		}
	}
}

func TestNetwork(t *testing.T) {
	const ws = "/Users/ann/src/shop"
	all := plans()
	for _, tt := range []struct {
		plan string
		q    question
		want bool
	}{
		{"default", question{operation: "network-outbound", tcp: "localhost:50123"}, false},
		{"default", question{operation: "network-bind", tcp: "localhost:8080"}, false},
		{"default", question{operation: "network-outbound", unix: "/private/var/run/mDNSResponder"}, false},
		{"default", question{operation: "network-outbound", unix: ws + "/s"}, false},
		{"proxy", question{operation: "network-outbound", tcp: "localhost:50123"}, true},
		{"proxy", question{operation: "network-outbound", tcp: "localhost:50124"}, false},
		{"proxy", question{operation: "network-outbound", tcp: "*:50123"}, false},
		{"proxy", question{operation: "network-outbound", unix: "/private/var/run/mDNSResponder"}, false},
		{"proxy", question{operation: "network-bind", tcp: "localhost:50123"}, false},
		{"host", question{operation: "network-outbound", tcp: "*:443"}, true},
		{"host", question{operation: "network-outbound", unix: "/private/var/run/docker.sock"}, false},
		{"host", question{operation: "network-outbound", unix: "/private/var/run/mDNSResponder"}, true},
		{"own", question{operation: "network-outbound", tcp: "localhost:80"}, false},
		{"own", question{operation: "network-outbound", unix: ws + "/s"}, true},
		{"own", question{operation: "network-bind", unix: ws + "/s"}, true},
		{"own", question{operation: "network-outbound", unix: ws + "/.env"}, false},
		{"own", question{operation: "network-outbound", unix: "/private/var/run/docker.sock"}, false},
		{"default", question{operation: "mach-lookup", name: "com.apple.system.opendirectoryd.libinfo"}, true},
		{"host", question{operation: "mach-lookup", name: "com.apple.trustd.agent"}, true},
		{"proxy", question{operation: "mach-lookup", name: "com.apple.trustd.agent"}, false},
		{"host", question{operation: "mach-lookup", name: "com.apple.mDNSResponder"}, false},
		{"host", question{operation: "mach-lookup", name: "com.apple.coreservices.appleevents"}, false},
		{"host", question{operation: "mach-lookup", name: "com.apple.SecurityServer"}, false},
		{"host", question{operation: "appleevent-send"}, false},
		{"host", question{operation: "lsopen"}, false},
		{"host", question{operation: "mach-priv-task-port"}, false},
		{"host", question{operation: "iokit-open"}, false},
		{"default", question{operation: "process-fork"}, true},
		{"default", question{operation: "sysctl-read", name: "hw.ncpu"}, true},
		{"default", question{operation: "sysctl-read", name: "kern.procargs2"}, false},
		{"default", question{operation: "sysctl-write", name: "hw.ncpu"}, false},
	} {
		text, params, err := Profile(all[tt.plan])
		if err != nil {
			t.Fatal(err)
		}
		if got := decide(t, text, params, tt.q); got != tt.want {
			t.Errorf("%s: %+v: allowed %v, want %v", tt.plan, tt.q, got, tt.want)
		}
	}
}

func TestRefused(t *testing.T) {
	many := func(n int, format string) []string {
		var out []string
		for i := range n {
			out = append(out, fmt.Sprintf(format, i))
		}
		return out
	}
	for name, change := range map[string]func(*plan.Plan){
		"level":         func(p *plan.Plan) { p.Level = plan.Full },
		"version":       func(p *plan.Plan) { p.Version = 0 },
		"relative":      func(p *plan.Plan) { p.Write = []string{"a"} },
		"not clean":     func(p *plan.Plan) { p.Hidden = []string{"/a/../b"} },
		"NUL":           func(p *plan.Plan) { p.Write = []string{"/a\x00b"} },
		"newline":       func(p *plan.Plan) { p.Guarded = []string{"/Users/ann/src/shop/a\nb"} },
		"escape":        func(p *plan.Plan) { p.Read = []string{"/a\x1bb"} },
		"C1 control":    func(p *plan.Plan) { p.Read = []string{"/a\u009bb"} },
		"no UTF-8":      func(p *plan.Plan) { p.Hidden = []string{"/a\xffb"} },
		"long":          func(p *plan.Plan) { p.Read = []string{"/" + strings.Repeat("a", maxPath)} },
		"many":          func(p *plan.Plan) { p.Read = many(maxPaths+1, "/a/%d") },
		"much":          func(p *plan.Plan) { p.Guarded = many(maxPaths, "/Users/ann/src/shop/"+strings.Repeat("a", 300)+"%d") },
		"proxy, no one": func(p *plan.Plan) { p.Network, p.Ports = plan.Proxied, []int{0} },
	} {
		p := plans()["default"]
		change(p)
		if text, params, err := Profile(p); err == nil || text != "" || params != nil {
			t.Errorf("%s: %v and a profile of %d bytes", name, err, len(text))
		}
	}
}

// What a helper makes and what Seatbelt holds are not taken for each other.
func TestNoHelper(t *testing.T) {
	if _, err := plans()["default"].Encode(); err == nil {
		t.Error("a plan for Seatbelt goes to a helper")
	}
}

func TestArguments(t *testing.T) {
	got := Arguments("(version 1)", []string{"READ0=/a=b", "READ1=-x"}, "/bin/echo", "-p", "--")
	want := []string{"-p", "(version 1)", "-D", "READ0=/a=b", "-D", "READ1=-x", "--", "/bin/echo", "-p", "--"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// A plan without a path of a kind has no rule of that kind: one without a filter
// would hold for everything.
func TestEmpty(t *testing.T) {
	p := &plan.Plan{
		Version: plan.Version, Level: plan.Seatbelt, Root: plan.Listed, Network: plan.Offline, Sockets: plan.OwnSockets,
		Home: "/", Dir: "/", Program: "/p", Argv: []string{"p"},
	}
	text, params, err := Profile(p)
	if err != nil {
		t.Fatal(err)
	}
	check(t, text, params)
	for _, q := range []question{{operation: "file-read-data", path: "/a"}, {operation: "file-write-create", path: "/a"}, {operation: "network-outbound", unix: "/a"}, {operation: "process-exec", path: "/p"}} {
		if decide(t, text, params, q) {
			t.Errorf("%+v is allowed", q)
		}
	}
}

// FuzzPaths puts any path in every place: no text holds it, every parameter is
// one, and what is taken away is taken away.
func FuzzPaths(f *testing.F) {
	for _, name := range []string{"/a", `/a"b`, "/a)(allow default)", `/a\`, "/a\nb", "/a=b", "/Größe/st k", "/a;b", "/-D", "/a/(param \"READ0\")", "/[a]{2}.*$^|+?", "/e\u0301", "/tmp/x", "/fi", "/%s%d"} {
		f.Add(name)
	}
	part := regexp.MustCompile(`[^/]+`)
	f.Fuzz(func(t *testing.T, name string) {
		text, params, err := Profile(named(name))
		if err != nil {
			return
		}
		check(t, text, params)
		// Nothing of a path is in the text: it is the same for all of this shape.
		same, _, err := Profile(named(part.ReplaceAllString(name, "x")))
		if err != nil || text != same {
			t.Errorf("%v: %q is in the text\n%s", err, name, text)
		}
		for _, want := range []string{"/r" + name, "/w/h" + name, "/w/g" + name} {
			if !slices.ContainsFunc(params, func(p string) bool { _, value, _ := strings.Cut(p, "="); return value == want }) {
				t.Errorf("%q is no parameter: %q", want, params)
			}
		}
		for _, tt := range []struct {
			q    question
			want bool
		}{
			{question{operation: "file-read-data", path: "/r" + name}, true},
			{question{operation: "file-write-data", path: "/r" + name}, false},
			{question{operation: "file-read-data", path: "/w/h" + name}, false},
			{question{operation: "file-write-unlink", path: "/w/h" + name}, false},
			{question{operation: "file-write-create", path: "/w/g" + name}, false},
			{question{operation: "file-write-create", path: "/w/g" + swapped(name)}, false},
			{question{operation: "file-write-create", path: "/w/g" + name + "/x"}, false},
			{question{operation: "file-write-create", path: "/w/other/more"}, !strings.HasPrefix("/w/other/more", "/w/g"+name)},
		} {
			if got := decide(t, text, params, tt.q); got != tt.want {
				t.Errorf("%+v: allowed %v, want %v", tt.q, got, tt.want)
			}
		}
	})
}

// named is a plan with paths that end in name.
func named(name string) *plan.Plan {
	return &plan.Plan{
		Version: plan.Version, Level: plan.Seatbelt, Root: plan.Listed, Network: plan.Offline, Sockets: plan.NoSockets,
		Read: []string{"/r" + name}, Write: []string{"/w"}, Hidden: []string{"/w/h" + name}, Guarded: []string{"/w/g" + name},
		Home: "/home", Dir: "/w", Program: "/p", Argv: []string{"p"},
	}
}

// swapped has the other case of each letter of ASCII.
func swapped(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r ^ 0x20
		}
		return r
	}, name)
}

// check reads a profile as the language wants it, and fails the test where it is
// no profile: lists that end, operations and filters that there are, parameters
// that are given and used.
func check(t *testing.T, text string, params []string) {
	t.Helper()
	given, used := map[string]bool{}, map[string]bool{}
	for _, p := range params {
		key, value, ok := strings.Cut(p, "=")
		if !ok || value == "" || given[key] || !regexp.MustCompile(`^[A-Z]+[0-9]+$`).MatchString(key) {
			t.Errorf("parameter %q", p)
		}
		given[key] = true
	}
	rules := read(t, text)
	if len(rules) < 3 || rules[0].String() != "(version 1)" || rules[1].String() != "(deny default)" {
		t.Fatalf("it does not begin as a profile that denies:\n%.60s", text)
	}
	for _, r := range rules[2:] {
		r.checkRule(t, used)
	}
	for key := range given {
		if !used[key] {
			t.Errorf("parameter %s is not used", key)
		}
	}
	for key := range used {
		if !given[key] {
			t.Errorf("parameter %s is not given", key)
		}
	}
}
