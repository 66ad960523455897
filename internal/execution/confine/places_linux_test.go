package confine

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"vogt/internal/execution/confine/confinetest"
	"vogt/internal/execution/confine/plan"
)

// TestPlacesRemove removes what stands for missing names, and nothing that somebody
// has put there instead.
func TestPlacesRemove(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "name")
	for _, tt := range []struct {
		name    string
		kind    uint32
		instead func() error
		gone    bool
	}{
		{"a socket", unix.S_IFSOCK, nil, true},
		{"a file", unix.S_IFREG, nil, true},
		{"a folder", unix.S_IFDIR, nil, true},
		{"a file of somebody else's", unix.S_IFSOCK, func() error { return os.WriteFile(name, nil, 0o644) }, false},
		{"a folder with something in it", unix.S_IFSOCK, func() error { return os.MkdirAll(name+"/mine", 0o755) }, false},
		{"a socket of a program", unix.S_IFSOCK, func() error { return unix.Mknod(name, unix.S_IFSOCK|0o755, 0) }, false},
		{"a pipe", unix.S_IFSOCK, func() error { return unix.Mkfifo(name, 0o644) }, false},
		{"a link", unix.S_IFSOCK, func() error { return os.Symlink(dir, name) }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			at := &places{dir: -1}
			defer at.close()
			if err := at.make(name, tt.kind); err != nil {
				t.Fatal(err)
			}
			if tt.instead != nil {
				if err := os.Remove(name); err != nil {
					t.Fatal(err)
				}
				if err := tt.instead(); err != nil {
					t.Fatal(err)
				}
			}
			err := at.remove(name)
			if _, still := os.Lstat(name); (still != nil) != tt.gone || (err == nil) != tt.gone {
				t.Errorf("%v; is it there: %v", err, still)
			}
			if err := os.RemoveAll(name); err != nil {
				t.Fatal(err)
			}
		})
	}
	t.Run("what was written into a file stays", func(t *testing.T) {
		at := &places{dir: -1}
		defer at.close()
		if err := at.make(name, unix.S_IFREG); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(name, 0o644|fs.ModeSticky); err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString("mine"); err != nil {
			t.Fatal(err)
		}
		f.Close()
		if err := at.remove(name); err == nil {
			t.Error("it is gone")
		}
	})
}

// TestPlacesStore makes names of what is kept, and takes nothing from there that is
// not what it should be.
func TestPlacesStore(t *testing.T) {
	store, dir := t.TempDir(), t.TempDir()
	inode := func(name string) uint64 {
		t.Helper()
		var st unix.Stat_t
		if err := unix.Lstat(name, &st); err != nil {
			t.Fatal(err)
		}
		if !isPlace(&st) {
			t.Errorf("%s is %o and has %d bytes", name, st.Mode, st.Size)
		}
		return st.Ino
	}
	make := func(name string, kind uint32) string {
		t.Helper()
		at := &places{dir: -1, store: store}
		defer at.close()
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := at.make(name, kind); err != nil {
			t.Fatal(err)
		}
		return name
	}
	first := inode(make("a", unix.S_IFSOCK))
	if inode(make("b", unix.S_IFSOCK)) != first {
		t.Error("each socket is one of its own")
	}
	one := make("1/attributes", unix.S_IFREG)
	if inode(one) != inode(make("2/attributes", unix.S_IFREG)) || inode(one) == inode(make("1/config.worktree", unix.S_IFREG)) {
		t.Error("files of one name are to be one file, and others are not")
	}
	kept := filepath.Join(store, "attributes")
	for name, spoil := range map[string]func() error{
		"written":  func() error { return os.WriteFile(kept, []byte("* filter=x\n"), 0o644) },
		"replaced": func() error { return os.Symlink("/etc/passwd", kept) },
		"no place": func() error { return os.WriteFile(kept, nil, 0o644) },
	} {
		if err := os.Remove(kept); err != nil {
			t.Fatal(err)
		}
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		inode(make(name+"/attributes", unix.S_IFREG))
	}
	store = filepath.Join(store, "none")
	inode(make("c", unix.S_IFSOCK))
}

// TestKindOf has a folder where git would take a file for something else.
func TestKindOf(t *testing.T) {
	for name, want := range map[string]uint32{
		"/w/.git/config.worktree": unix.S_IFREG, "/w/.git/info/attributes": unix.S_IFREG, "/w/.git/hooks": unix.S_IFDIR, "/w/.git/info": unix.S_IFDIR,
		"/w/.git/logs/config": unix.S_IFDIR, "/w/.git/refs/remotes/origin/branches": unix.S_IFDIR,
	} {
		if got := kindOf(name, true); got != want {
			t.Errorf("%s: %o, want %o", name, got, want)
		}
	}
	if got := kindOf("/w/.vscode", false); got != unix.S_IFSOCK {
		t.Errorf("in a workspace: %o", got)
	}
}

// TestNobodyTrips works with git and with other programs as if nothing stood in the
// place of missing names, in the box and outside of it.
func TestNobodyTrips(t *testing.T) {
	need(t, "git")
	b := newBox(t)
	b.outside(identity + "git init -q -b main; echo 1 > a; git add a; git commit -qm one; git update-ref refs/remotes/origin/HEAD main")
	const cleans = identity + "echo 2 > new; mkdir empty; git stash -u; git stash pop -q >/dev/null; git add -A; git reset -q; git clean -fdx; git status --porcelain --ignored; git check-attr -a a; git fsck --no-dangling; git gc -q; git reflog expire --all; git fetch -q . main; git config --list >/dev/null; git submodule status\n"
	output := b.must(cleans + "cat .mcp.json .git/info/attributes; cp -r . /tmp/copy; tar cf /tmp/t .; python3 -c 'import shutil; shutil.copytree(\".\", \"/tmp/c\")' || true")
	for line := range strings.Lines(output) {
		if !strings.HasPrefix(line, "Saved ") && !strings.HasPrefix(line, "Removing ") {
			t.Errorf("somebody trips in the box: %s", line)
		}
	}
	// Outside, while the box runs.
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	in, next, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	request := b.request
	request.Program, request.Argv = "/bin/sh", []string{"sh", "-c", "echo up; read x; mkdir .vscode || echo refused; (: > .mcp.json) || echo refused; rm -f .idea || echo refused; mv a .envrc || echo refused"}
	helper := confinetest.Program(t, helperPackage)
	ended := make(chan error, 1)
	go func() {
		_, err := Run(helper, request, Streams{in, w, w})
		w.Close()
		ended <- err
	}()
	if _, err := io.ReadFull(r, make([]byte, len("up\n"))); err != nil {
		t.Fatal(err)
	}
	output = b.outside(cleans + "ls -A")
	if strings.Contains(output, "warning") || strings.Contains(output, "failed") || !strings.Contains(output, ".vscode\n") || !strings.Contains(output, ".mcp.json\n") {
		t.Errorf("outside:\n%s", output)
	}
	if _, err := next.WriteString("\n"); err != nil {
		t.Fatal(err)
	}
	next.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if got := string(<-drain(r)); strings.Count(got, "refused") != 4 {
		t.Errorf("what git has done outside opens names in the box:\n%s", got)
	}
	if got := b.outside("ls -A; ls -A .git/info | grep -v refs; ls .git/logs .git/refs/remotes/origin"); got != ".git\na\nexclude\n.git/logs:\nHEAD\nrefs\n\n.git/refs/remotes/origin:\n" {
		t.Errorf("left behind:\n%s", got)
	}
}

// TestOthersPlaces resolves a workspace in which another box keeps names free.
func TestOthersPlaces(t *testing.T) {
	tr := newTree(t)
	at := &places{dir: -1}
	defer at.close()
	for _, name := range []string{".github", ".mcp.json"} {
		if err := at.make(filepath.Join(tr.workspace, name), unix.S_IFSOCK); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mknod(filepath.Join(tr.workspace, "program"), unix.S_IFSOCK|0o755, 0); err != nil {
		t.Fatal(err)
	}
	r := tr.request()
	r.Profile.Sockets = plan.OwnSockets
	p, missing, err := Resolve(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"app/.github", "app/.mcp.json"} {
		tr.has("guarded", p.Guarded, name, true)
		tr.has("missing", missing, name, false)
		tr.has("hidden", p.Hidden, name, false)
	}
	tr.has("hidden", p.Hidden, "app/program", true)
}

// TestRootsOwn finds what only root can read.
func TestRootsOwn(t *testing.T) {
	tr := newTree(t)
	for name, mode := range map[string]fs.FileMode{"etc/open": 0o644, "etc/closed": 0o640, "etc/d/closed": 0o600, "etc/d/e/open": 0o604, "etc/shut/open": 0o644, "etc/passed/closed": 0o600} {
		if err := os.Chmod(tr.file(name, ""), mode); err != nil {
			t.Fatal(err)
		}
	}
	tr.link("closed", "etc/link")
	tr.link("etc", "alias")
	for name, mode := range map[string]fs.FileMode{"etc/shut": 0o750, "etc/passed": 0o751} {
		if err := os.Chmod(filepath.Join(tr.home, name), mode); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"etc/closed", "etc/d/closed", "etc/passed/closed", "etc/shut"}
	for _, dir := range []string{"etc", "alias"} {
		got := rootsOwn(filepath.Join(tr.home, dir))
		slices.Sort(got)
		for i, name := range got {
			got[i] = strings.TrimPrefix(name, tr.home+"/")
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", dir, got, want)
		}
	}
	if got := rootsOwn(filepath.Join(tr.home, "etc/shut")); len(got) != 1 {
		t.Errorf("a folder that only root can enter: %q", got)
	}
}

// TestLookAgain sees a change of a file whose size and times are what they were,
// and does not read what has not changed.
func TestLookAgain(t *testing.T) {
	tr := newTree(t)
	name := tr.file("app/hook", "one")
	old := unix.NsecToTimespec(1e18)
	if err := unix.UtimesNanoAt(unix.AT_FDCWD, name, []unix.Timespec{old, old}, 0); err != nil {
		t.Fatal(err)
	}
	before, err := look([]string{tr.workspace}, snapshot{})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte("two"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := unix.UtimesNanoAt(unix.AT_FDCWD, name, []unix.Timespec{old, old}, 0); err != nil {
		t.Fatal(err)
	}
	after, err := look([]string{tr.workspace}, before)
	if err != nil {
		t.Fatal(err)
	}
	if got := before.changes(after); !slices.Equal(got, []string{name}) {
		t.Errorf("changed: %q", got)
	}
	// The kernel's note of the last change is old enough when the snapshot says so.
	before.taken = before.taken.Add(3600e9)
	before.files[name] = "kept"
	for _, tt := range []struct {
		name    string
		earlier snapshot
		kept    bool
	}{{"unchanged", snapshot{before.files, after.ids, before.taken}, true}, {"changed a moment ago", snapshot{before.files, after.ids, after.taken}, false}, {"changed", before, false}} {
		again, err := look([]string{tr.workspace}, tt.earlier)
		if err != nil || (again.files[name] == "kept") != tt.kept {
			t.Errorf("%s: %q, %v", tt.name, again.files[name], err)
		}
	}
}
