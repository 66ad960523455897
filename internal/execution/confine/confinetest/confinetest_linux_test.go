package confinetest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

func TestMain(m *testing.M) { os.Exit(Main(m)) }

// TestAttempts makes every attempt without a box: those that cannot succeed here
// are printed with the reason.
func TestAttempts(t *testing.T) { Run(t, nil, bare) }

// TestScenarios runs the scenarios without a box: each must notice that nothing
// is held.
func TestScenarios(t *testing.T) {
	scene := newScene(t)
	s := &suite{name: t.Name(), run: bare}
	st := s.stage(t, scene, Full, "append", scene.Workspace+"/.git/config")
	before := scene.state(t)
	if a, _ := st.finish(t); !a.OK {
		t.Errorf("the attempt does not succeed: %s %s", a.word(), a.Detail)
	}
	want := scene.Workspace + "/.git/config: was"
	if changes := before.changes(scene.state(t)); len(changes) != 1 || !strings.HasPrefix(changes[0], want) {
		t.Errorf("changed: %q, want %s", changes, want)
	}
	result := make(chan Result)
	go func() {
		defer close(result)
		runtime.LockOSThread() // for ever: the thread keeps what is taken from it
		if err := withoutNamespaces(); err != nil {
			t.Error(err)
			return
		}
		result <- bare(t, scene.command("", []string{"unshare", "user"}))
	}()
	r, ok := <-result
	if !ok {
		return
	}
	if a, err := answered(r); err != nil || a.word() != "EPERM" {
		t.Errorf("without namespaces, unshare answers %q, %v", a.word(), err)
	}
}

// listed returns the attempts that the probe has, with their arguments.
func listed(t *testing.T) map[string][]string {
	t.Helper()
	r := bare(t, Command{Workspace: "/", Argv: []string{Program(t, probePackage), "list"}})
	out := map[string][]string{}
	for line := range strings.Lines(string(r.Stdout)) {
		words := strings.Fields(line)
		// Arguments are in capitals, and end where the needs begin.
		n := slices.IndexFunc(words[1:], func(w string) bool { return w == "-" || strings.ToUpper(w) != w })
		if n < 0 {
			n = len(words) - 1
		}
		out[words[0]] = words[1 : 1+n]
	}
	if len(out) == 0 {
		t.Fatalf("the probe lists nothing: %s", r.Note)
	}
	return out
}

// TestTable checks that the table and the probe know the same attempts, and that
// all lines of the list have cases.
func TestTable(t *testing.T) {
	attempts := listed(t)
	used := map[string]bool{"when": true, "linger": true, "hold": true} // by scenarios
	seen := map[string]bool{}
	lines := map[int]bool{}
	for _, c := range Cases() {
		name, _, _ := strings.Cut(c.Try, " ")
		if _, ok := attempts[name]; !ok {
			t.Errorf("%q: the probe has no such attempt", c.Try)
		}
		if c.Full == "" {
			t.Errorf("%q: no answer is wanted", c.Try)
		}
		if seen[c.Try] {
			t.Errorf("%q is there twice", c.Try)
		}
		used[name], seen[c.Try], lines[c.Line] = true, true, true
	}
	for name := range attempts {
		if !used[name] {
			t.Errorf("no case makes the attempt %s", name)
		}
	}
	// Scenarios are of 28, 29, 50, 51, 52 and 56; worktrees (55) are for
	// confine, which makes them work.
	for _, n := range []int{28, 29, 50, 51, 52, 55, 56} {
		lines[n] = true
	}
	for n := 1; n <= 56; n++ {
		if !lines[n] {
			t.Errorf("no case is of line %d", n)
		}
	}
}

// TestProbeKeepsToScenes gives every attempt paths that are in no scene, or
// lead out of one: nothing there may change.
func TestProbeKeepsToScenes(t *testing.T) {
	if !jailed() {
		t.Fatal("not in a jail")
	}
	scene := newScene(t)
	elsewhere, err := os.MkdirTemp(filepath.Dir(scene.Dir), "elsewhere-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(elsewhere) })
	if err := os.Symlink(elsewhere, scene.Workspace+"/leads-out"); err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{elsewhere, scene.Workspace + "/leads-out", scene.Dir + "/../" + filepath.Base(elsewhere)} {
		for name, args := range listed(t) {
			if slices.Contains(args, "ATTEMPT") {
				continue // it makes another one
			}
			for _, missing := range []bool{false, true} {
				reset(t, elsewhere)
				before := tree(t, elsewhere)
				argv := []string{Program(t, probePackage), name}
				paths := 0
				for _, a := range args {
					value, path := elsewhereArgument(a, folder, missing)
					if path {
						paths++
					}
					argv = append(argv, value)
				}
				if paths == 0 {
					continue
				}
				bare(t, Command{Workspace: elsewhere, Argv: argv})
				if changes := before.changes(tree(t, elsewhere)); len(changes) > 0 {
					t.Errorf("%q changed what is in no scene:\n%s", argv[1:], strings.Join(changes, "\n"))
				}
			}
		}
	}
}

// elsewhereArgument is an argument of a kind in a folder, and whether it is a
// path.
func elsewhereArgument(kind, folder string, missing bool) (value string, path bool) {
	switch kind {
	case "PATH", "FROM", "A", "LOWER", "PROGRAM":
		value = folder + "/file"
	case "TO", "B", "TARGET":
		value = folder + "/other"
	case "FOLDER", "REPOSITORY", "MOUNT":
		value = folder + "/folder"
	case "PIPE", "READY", "GO":
		value = folder + "/file"
	case "NAME":
		return folder + "/file", true
	default:
		return "0", false
	}
	if missing && kind != "FROM" {
		value += "-new"
	}
	return value, true
}

// reset makes a folder hold what attempts could change.
func reset(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(dir+"/folder", 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"file", "other", "folder/config"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("elsewhere\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// tree is the state of a folder that is no scene.
func tree(t *testing.T, dir string) state {
	t.Helper()
	out := state{}
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		out[path], err = describe(path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestJudge(t *testing.T) {
	ok, eperm, held := answer{OK: true}, answer{Errno: "EPERM"}, answer{}
	for _, c := range []struct {
		name     string
		c        Case
		level    string
		a        answer
		changes  []string
		reported []string
		fine     bool
	}{
		{"refused", Case{Full: "EPERM"}, Full, eperm, nil, nil, true},
		{"refused otherwise", Case{Full: "EACCES"}, Full, eperm, nil, nil, false},
		{"succeeds", Case{Full: "EPERM"}, Full, ok, nil, nil, false},
		{"refused, and something changed", Case{Full: "EPERM"}, Full, eperm, []string{"x"}, nil, false},
		{"held", Case{Full: "EPERM held"}, Full, held, nil, nil, true},
		{"not held", Case{Full: "EPERM"}, Full, held, nil, nil, false},
		{"free", Case{Full: "free"}, Full, ok, nil, nil, true},
		{"free, refused", Case{Full: "free"}, Full, eperm, nil, nil, true},
		{"free, and something changed", Case{Full: "free"}, Full, ok, []string{"x"}, nil, false},
		{"reported", Case{Full: "reported"}, Full, ok, []string{"x"}, []string{"x"}, true},
		{"not reported", Case{Full: "reported"}, Full, ok, []string{"x"}, nil, false},
		{"open", Case{Full: "EPERM", Reduced: "open"}, Reduced, ok, []string{"x"}, nil, true},
		{"open at another level", Case{Full: "EPERM", Reduced: "open"}, Full, ok, []string{"x"}, nil, false},
		{"own as full", Case{Full: "EPERM"}, Own, eperm, nil, nil, true},
		{"host view", Case{Full: "EPERM", Host: "open"}, HostView, ok, nil, nil, true},
		{"own", Case{Full: "EPERM", Own: "open"}, Own, ok, nil, nil, true},
	} {
		if err := c.c.judge(c.level, c.a, c.changes, c.reported); (err == nil) != c.fine {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestAnswered(t *testing.T) {
	text, err := json.Marshal(answer{Name: "read", Errno: "EACCES"})
	if err != nil {
		t.Fatal(err)
	}
	a, err := answered(Result{Stdout: append([]byte("noise\n"), text...)})
	if err != nil || a.word() != "EACCES" {
		t.Errorf("got %q, %v", a.word(), err)
	}
	if _, err := answered(Result{Stdout: []byte("noise\n"), Exit: 126}); err == nil {
		t.Error("noise is an answer")
	}
}
