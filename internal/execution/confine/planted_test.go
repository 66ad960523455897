package confine

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPlainSettings(t *testing.T) {
	for _, tt := range []struct {
		text string
		want bool
	}{
		{"", true},
		{"[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n", true},
		{"[remote \"origin\"]\n\turl = https://example.com/x.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n[branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n", true},
		{"# a comment\n; and one\n[user]\n\tname = A\n", true},
		{"[core]\n\tpager = less\n", false},
		{"[core]\n\tfsmonitor = ./x\n", false},
		{"[core]\n\thooksPath = ../h\n", false},
		{"[CORE]\n\tPager = x\n", false},
		{"[core] pager = x\n", false},
		{"[core]\n\tbare = false \\\npager = x\n", false},
		{"[core]\n\tbare\n", false},
		{"[core \"x\"]\n\tpager = x\n", false},
		{"[alias]\n\tst = !id\n", false},
		{"[include]\n\tpath = ../x\n", false},
		{"[includeIf \"gitdir:/\"]\n\tpath = x\n", false},
		{"[filter \"x\"]\n\tclean = id\n", false},
		{"[remote \"o\"]\n\turl = ext::sh -c id\n", false},
		{"[remote \"o\"]\n\tuploadpack = id\n", false},
		{"[submodule \"a\"]\n\tupdate = !id\n", false},
		{"[submodule \"a\"]\n\turl = ../a\n\tactive = true\n", true},
		{"[core\n\tbare = false\n", false},
		{"pager = x\n", false},
		{"[core] pager = x # ]\n", false},
		{"[core]\n\tbare = " + strings.Repeat("x", 100_000) + "\n\tpager = x\n", false},
	} {
		if got := plainSettings([]byte(tt.text)); got != tt.want {
			t.Errorf("%q: %v, want %v", tt.text, got, tt.want)
		}
	}
}

// FuzzPlainSettings checks that settings count as plain only if every line
// that git could read as a key is one of the plain ones.
func FuzzPlainSettings(f *testing.F) {
	f.Add([]byte("[core]\n\tbare = false\n"))
	f.Add([]byte("[core]\r\n\tpager = x\r\n"))
	f.Add([]byte("[core]\n\tbare = \"a\\\nb\"\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if plainSettings(data) && plainSettings(append(append([]byte{}, data...), "\n[core]\n\tpager = x\n"...)) {
			t.Errorf("%q hides what follows it", data)
		}
	})
}

func TestPlanted(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) string {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
		return name
	}
	hook := write("new/.git/hooks/pre-commit", "#!/bin/sh\n")
	write("new/.git/hooks/pre-commit.sample", "#!/bin/sh\n")
	config := write("new/.git/config", "[core]\n\tpager = id\n")
	write("fine/.git/config", "[core]\n\tbare = false\n")
	common := write("new/.git/commondir", "../../elsewhere\n")
	write("new/.git/worktrees/a/commondir", "../..\n")
	old := write("old/.git/hooks/post-merge", "#!/bin/sh\n")
	known, err := look([]string{filepath.Join(dir, "old/.git/hooks")}, snapshot{})
	if err != nil {
		t.Fatal(err)
	}
	var dirs []string
	for _, r := range []string{"new/.git", "fine/.git", "old/.git", "new/.git/worktrees/a"} {
		dirs = append(dirs, filepath.Join(dir, r))
	}
	changes, err := planted(dirs, known, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, c := range changes {
		got[c.Path] = true
		if _, err := os.Lstat(c.Path); err == nil {
			t.Errorf("%s is still there", c.Path)
		}
		if _, err := os.Lstat(c.Aside); err != nil {
			t.Error(err)
		}
	}
	if len(got) != 3 || !got[hook] || !got[config] || !got[common] {
		t.Errorf("put aside: %v", got)
	}
	if _, err := os.Lstat(old); err != nil {
		t.Error("a hook that was there before is gone")
	}
	// What was put aside stays, also when the same comes again.
	write("new/.git/hooks/pre-commit", "#!/bin/sh\nagain\n")
	if _, err := planted(dirs, known, nil); err != nil {
		t.Fatal(err)
	}
	if kept, err := filepath.Glob(hook + asideSuffix + "*"); err != nil || len(kept) != 2 {
		t.Errorf("%v, %v", kept, err)
	}
}
