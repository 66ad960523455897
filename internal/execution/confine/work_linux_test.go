package confine

import (
	"strings"
	"testing"

	"vogt/internal/execution/confine/plan"
)

// TestForkserver uses the way in which Python starts processes from 3.14 on: it
// needs sockets of the box's own, and says so where there are none.
func TestForkserver(t *testing.T) {
	need(t, "pytest-3")
	const text = `cat > test_m.py <<'END'
import multiprocessing
def f(x): return x + 1
def test_forkserver():
    with multiprocessing.get_context("forkserver").Pool(2) as p: assert p.map(f, [1, 2]) == [2, 3]
def test_manager():
    with multiprocessing.Manager() as m:
        d = m.dict(); d["a"] = 1; assert d["a"] == 1
END
/usr/bin/python3 -m pytest -q >out 2>&1; tail -1 out`
	b := newBox(t)
	if got, _, err := b.run(text); err != nil || !strings.Contains(got, "2 failed") {
		t.Errorf("without sockets: %v %s", err, got)
	}
	b.request.Profile.Sockets = plan.OwnSockets
	if got := b.must(text); !strings.Contains(got, "2 passed") {
		t.Errorf("with sockets of its own: %s", got)
	}
}

// TestRefusedPolitely has programs that ask for what there is not: they say so and
// end, and do not hang or crash.
func TestRefusedPolitely(t *testing.T) {
	for _, tt := range []struct{ needs, line, says string }{
		{"strace", "strace -o /dev/null true", "not permitted"},
		{"strace", "sleep 9 & strace -p $!; kill $!", "not permitted"},
		{"unshare", "unshare -r true", "not permitted"},
		{"mount", "mount -t tmpfs x /tmp", "mount"},
		{"curl", "curl -sS --max-time 5 http://example.com/", "resolve"},
		{"git", "git ls-remote https://example.com/x", "resolve"},
	} {
		t.Run(tt.line, func(t *testing.T) {
			need(t, tt.needs)
			b := newBox(t)
			got, out, err := b.run(tt.line)
			if err != nil || out.Code == 0 && !strings.HasSuffix(tt.line, "$!") || out.Code > 128 || !strings.Contains(strings.ToLower(got), tt.says) {
				t.Errorf("exit code %d, %v: %s", out.Code, err, got)
			}
		})
	}
}

// TestGitTidies cleans up with git, which does not meet what stands for missing
// names: nothing of the user's is lost, and nothing is left of them.
func TestGitTidies(t *testing.T) {
	need(t, "git")
	set := identity + "git init -q -b main; echo 1 > a; mkdir d; echo 1 > d/b; git add .; git commit -qm one; echo 2 > a; echo new > untracked; mkdir e; echo x > e/f; echo '*.o' > .gitignore; git add .gitignore; git commit -qm two; echo o > x.o"
	for _, tt := range []struct{ name, line, want string }{
		{"clean", "git clean -fdxq", "M a\n"},
		{"clean of a folder", "git clean -fdxq e", "M a\n?? untracked\n"},
		{"stash", identity + "git stash -uq && git diff --quiet HEAD && git show stash@{0}:a | grep -q 2 && git show stash@{0}^3:untracked | grep -q new", ""},
		{"stash of all and back", identity + "git stash -uq && git stash pop -q", "M a\n?? e/\n?? untracked\n"},
		{"stash of what is added", identity + "git add -A; git stash -q; git diff --quiet HEAD", ""},
		{"stash and back", identity + "git add -A; git stash -q; git stash pop -q; git reset -q", "M a\n?? e/\n?? untracked\n"},
		{"reset", "git reset -q --hard", "?? e/\n?? untracked\n"},
		{"add everything", identity + "git add -A; git commit -qm all", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBox(t)
			b.outside(set)
			got, out, err := b.run(tt.line)
			if err != nil || out.Code != 0 || len(out.Changed) > 0 {
				t.Errorf("exit code %d, %v, changed %v: %s", out.Code, err, out.Changed, got)
			}
			if got := strings.ReplaceAll(b.outside("git status --porcelain"), " M ", "M "); got != tt.want {
				t.Errorf("afterwards git says %q, want %q", got, tt.want)
			}
			if got := b.outside("ls -A; git fsck 2>&1"); strings.Contains(got, ".idea") || strings.Contains(got, "error") {
				t.Errorf("left behind: %s", got)
			}
		})
	}
}

// TestGitClone clones in a box: into a folder as ever, and not into the workspace
// itself, which is not empty there.
func TestGitClone(t *testing.T) {
	need(t, "git")
	b := newBox(t)
	b.outside(identity + "mkdir ../source; cd ../source; git init -q -b main; echo 1 > a; git add a; git commit -qm one; cd ../app; git clone -q --bare ../source bare")
	b.must("git clone -q bare inner; cat inner/a; mkdir empty; git clone -q bare empty; cat empty/a")
	got, out, err := b.run("git clone bare .")
	if err != nil || out.Code == 0 || !strings.Contains(got, "not an empty directory") {
		t.Errorf("exit code %d, %v: %s", out.Code, err, got)
	}
	b.must("git init -q -b main; git fetch -q bare main; git checkout -q FETCH_HEAD; cat a")
}
