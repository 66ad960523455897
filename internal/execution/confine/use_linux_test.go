package confine

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"vogt/internal/execution/confine/confinetest"
	"vogt/internal/execution/confine/plan"
)

// box is a workspace in a home, and boxes about it.
type box struct {
	t         *testing.T
	request   Request
	workspace string
	home      string
}

func newBox(t *testing.T) *box {
	t.Helper()
	tr := newTree(t)
	r := tr.request()
	r.State = tr.dir("state")
	r.Level = plan.Level(os.Getenv(levelVariable))
	r.Environ = []string{"PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "TERM=xterm"}
	return &box{t, r, tr.workspace, tr.home}
}

// run runs a text of bash in a box, and returns what it prints on both streams.
func (b *box) run(text string) (output string, out Outcome, err error) {
	b.t.Helper()
	in, err := os.Open(os.DevNull)
	if err != nil {
		b.t.Fatal(err)
	}
	defer in.Close()
	r, w, err := os.Pipe()
	if err != nil {
		b.t.Fatal(err)
	}
	defer r.Close()
	request := b.request
	request.Program, request.Argv = "/bin/bash", []string{"bash", "-c", text}
	printed := drain(r)
	out, err = Run(confinetest.Program(b.t, helperPackage), request, Streams{in, w, w})
	w.Close()
	return string(<-printed), out, err
}

// must runs a text that has to succeed.
func (b *box) must(text string) string {
	b.t.Helper()
	output, out, err := b.run("set -e\n" + text)
	if err != nil || out.Code != 0 || len(out.Changed) > 0 {
		b.t.Fatalf("%s\n%v, exit code %d, changed %v\n%s", text, err, out.Code, out.Changed, output)
	}
	return output
}

// outside runs a text without a box.
func (b *box) outside(text string) string {
	b.t.Helper()
	cmd := exec.Command("/bin/bash", "-ec", text)
	cmd.Dir, cmd.Env = b.workspace, append(b.request.Environ, "HOME="+b.home, "GIT_CONFIG_NOSYSTEM=1")
	output, err := cmd.CombinedOutput()
	if err != nil {
		b.t.Fatalf("%s\n%v\n%s", text, err, output)
	}
	return string(output)
}

// need skips a test whose program this machine lacks.
func need(t *testing.T, program string) {
	if _, err := exec.LookPath(program); err != nil {
		t.Skipf("%s is not installed", program)
	}
}

const identity = "export GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@example.com GIT_COMMITTER_NAME=A GIT_COMMITTER_EMAIL=a@example.com\n"

// TestGit works in a repository as people do, and leaves nothing behind that
// was not there.
func TestGit(t *testing.T) {
	b := newBox(t)
	b.outside(identity + "git init -q -b main; echo 1 > a; git add a; git commit -qm one")
	before := b.outside("git status --porcelain; ls -A")
	if got := b.must("git status --porcelain"); got != "" {
		t.Errorf("git sees what the box needs: %q", got)
	}
	b.must(identity + "echo 2 > b; git add b; git commit -qm two; git checkout -qb side; echo 3 > c; git add .; git commit -qm three")
	b.must(identity + "git checkout -q main; git merge -q side; git rebase -q side; git stash list; git gc -q; git log --oneline | wc -l")
	b.must(identity + "git tag v1; git worktree add -q .trees/w; cd .trees/w; echo 4 > d; git add d; git commit -qm four; cd ../..; git worktree remove .trees/w")
	b.must("rm -r .trees; git clone -q . copy; cd copy; git pull -q; cd ..; rm -rf copy")
	if after := b.outside("git status --porcelain; ls -A"); after != before+"b\nc\n" {
		t.Errorf("before:\n%safter:\n%s", before, after)
	}
	if got := b.outside("git log --oneline main | wc -l"); got != "3\n" {
		t.Errorf("%s commits outside", got)
	}
}

// TestGitPlaces works where the repository is not simply in the workspace.
func TestGitPlaces(t *testing.T) {
	b := newBox(t)
	b.outside(identity + "mkdir ../main; cd ../main; git init -q -b main; echo 1 > a; git add a; git commit -qm one; rmdir ../app; git worktree add -q ../app")
	b.must(identity + "echo 2 > b; git add b; git commit -qm two; git log --oneline")
	output, out, err := b.run("echo evil > ../main/.git/hooks/post-commit; echo x >> ../main/.git/config; echo x > ../main/a; echo gitdir: /tmp > .git")
	if err != nil || len(out.Changed) > 0 || strings.Count(output, "Read-only") != 3 {
		t.Errorf("%v %v\n%s", err, out.Changed, output)
	}
	if got := b.outside("git log --oneline | wc -l; cat ../main/a; ls ../main/.git/hooks | grep -v sample || true"); got != "2\n1\n" {
		t.Errorf("outside:\n%s", got)
	}

	b = newBox(t)
	b.outside(identity + "mkdir ../lib; (cd ../lib; git init -q -b main; echo 1 > l; git add l; git commit -qm lib)\n" +
		"git init -q -b main; git -c protocol.file.allow=always submodule -q add ../lib lib; git commit -qm with")
	b.must(identity + "cd lib; echo 2 > l; git commit -qam two; cd ..; git add lib; git commit -qm moved; git submodule status")
	output, _, _ = b.run("echo x > .git/modules/lib/hooks/post-commit; echo x >> .git/modules/lib/config")
	if strings.Count(output, "Read-only") != 2 {
		t.Error(output)
	}
}

// TestPrograms runs what agents run.
func TestPrograms(t *testing.T) {
	for _, tt := range []struct{ name, needs, text, want string }{
		{"python", "python3", `python3 - <<'E'
import multiprocessing, asyncio, tempfile, sqlite3, subprocess, threading
def f(x): return x * x
if __name__ == "__main__":
    with multiprocessing.Pool(2) as p: assert p.map(f, [1, 2, 3]) == [1, 4, 9]
    q = multiprocessing.Queue(); q.put(1); assert q.get() == 1
    async def started(): return await (await asyncio.create_subprocess_exec("true")).wait()
    assert asyncio.run(started()) == 0
    with tempfile.NamedTemporaryFile() as t: t.write(b"x")
    sqlite3.connect("a.db").execute("create table t(a)")
    print("fine")
E`, "fine\n"},
		{"node", "node", `node -e '
const {Worker} = require("worker_threads"), http = require("http"), fs = require("fs");
fs.writeFileSync("n.txt", "x");
const s = http.createServer((q, r) => r.end("fine")).listen(0, "127.0.0.1", () =>
  http.get({port: s.address().port, host: "127.0.0.1"}, r => { r.on("data", d => console.log(String(d))); r.on("end", () => s.close()); }));
'`, "fine\n"},
		{"make and gcc", "gcc", "printf 'int main(void){return 0;}' > m.c; printf 'all: a b\\na b: m.c\\n\\tgcc -o $@ m.c\\n' > Makefile; make -s -j2; ./a && ./b && echo fine", "fine\n"},
		{"pipes and temporary files", "bash", `t=$(mktemp); echo x > $t; mkfifo p; (echo fine > p &) ; cat p; rm $t p; [ -w /dev/shm ] && [ -w /tmp ] && [ -w /run ]; echo y > /dev/null`, "fine\n"},
		{"home", "bash", `echo x > ~/f; mkdir -p ~/.cache/t; echo fine; cat ~/.cache/t/kept 2>/dev/null || true; echo kept > ~/.cache/t/kept`, "fine\n"},
		{"names", "bash", `hostname >/dev/null; id -u >/dev/null; getent passwd 0 >/dev/null; nproc >/dev/null; echo fine`, "fine\n"},
		{"strace", "strace", `strace true 2>&1 | grep -q 'Operation not permitted' && echo fine`, "fine\n"},
		{"tmux", "tmux", `tmux -S /tmp/t new-session -d 'echo fine > o; exec sleep 9'; until [ -s o ]; do :; done; cat o; tmux -S /tmp/t kill-server`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			need(t, tt.needs)
			b := newBox(t)
			if tt.want == "" { // it needs sockets of its own
				tt.want = "fine\n"
				b.request.Profile.Sockets = plan.OwnSockets
			}
			if got := b.must(tt.text); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// TestCache keeps what tools keep, for one workspace.
func TestCache(t *testing.T) {
	b := newBox(t)
	b.must("mkdir -p ~/.cache/t; echo kept > ~/.cache/t/x; echo gone > ~/y")
	if got := b.must("cat ~/.cache/t/x; ls ~"); got != "kept\napp\n" {
		t.Errorf("got %q", got)
	}
	if _, err := os.Lstat(filepath.Join(b.home, ".cache")); err == nil {
		t.Error("the user's own cache was written")
	}
	other := newBox(t)
	other.request.State = b.request.State
	if got, out, _ := other.run("cat ~/.cache/t/x"); out.Code == 0 {
		t.Errorf("another workspace sees it: %q", got)
	}
}

// TestServe reaches what the starter serves, and nothing else.
func TestServe(t *testing.T) {
	b := newBox(t)
	b.request.Profile.Network = plan.Proxied
	if _, _, err := b.run("true"); err == nil || !strings.Contains(err.Error(), "nobody") {
		t.Errorf("nobody serves the proxy: %v", err)
	}
	ended := make(chan string, 2)
	answer := func(text string) func(net.Listener) {
		return func(l net.Listener) {
			for {
				c, err := l.Accept()
				if err != nil {
					ended <- text
					return
				}
				_, _ = c.Write([]byte(text)) // the box says what arrived
				c.Close()
			}
		}
	}
	b.request.Serve = map[int]func(net.Listener){ProxyPort: answer("proxy"), 8648: answer("authority")}
	outside, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer outside.Close()
	output := b.must(fmt.Sprintf(`for p in 3128 8648; do read -r x < /dev/tcp/127.0.0.1/$p || echo $x; done
		(exec 3<>/dev/tcp/127.0.0.1/%d) 2>/dev/null && echo out; echo $https_proxy $NODE_USE_ENV_PROXY`, outside.Addr().(*net.TCPAddr).Port))
	if output != "proxy\nauthority\nhttp://127.0.0.1:3128 1\n" {
		t.Errorf("got %q", output)
	}
	if got := []string{<-ended, <-ended}; !slices.Contains(got, "proxy") || !slices.Contains(got, "authority") {
		t.Errorf("ended: %q", got)
	}
}

// TestKept has a home that stays, and is not the user's.
func TestKept(t *testing.T) {
	b := newBox(t)
	b.request.Kept = filepath.Join(b.home, "agents", "a")
	if err := os.MkdirAll(b.request.Kept, 0o700); err != nil {
		t.Fatal(err)
	}
	b.must("echo kept > ~/x; mkdir ~/.config; ls -A ~ | tr '\\n' ' '")
	if got := b.must("cat ~/x; ls -A ~"); got != "kept\n.config\napp\nx\n" {
		t.Errorf("got %q", got)
	}
	if _, err := os.Lstat(filepath.Join(b.home, "x")); err == nil {
		t.Error("it is the user's own home")
	}
	b.request.Profile.Root = plan.HostView
	if _, _, err := b.run("true"); err == nil {
		t.Error("a home in the place of one that is shown")
	}
}

func TestEnding(t *testing.T) {
	b := newBox(t)
	for text, want := range map[string]int{"exit 0": 0, "exit 7": 7, "kill -TERM $$": 128 + 15, "kill -KILL $$": 128 + 9, "nosuchprogram": 127} {
		if output, out, err := b.run(text); err != nil || out.Code != want {
			t.Errorf("%s: exit code %d, %v, want %d; %s", text, out.Code, err, want, output)
		}
	}
	// What is left when the command ends, ends with it.
	b.must("(trap '' TERM HUP; exec sleep 3600) & echo started")
	// The box is as it says.
	_, out, err := b.run("true")
	if err != nil || out.Report.Level != cmp.Or(b.request.Level, plan.Full) || out.Report.Landlock < 1 || len(out.Report.Filter) != 64 {
		t.Errorf("%+v, %v", out.Report, err)
	}
}

func TestRefuses(t *testing.T) {
	b := newBox(t)
	refused := func(name string, err error, want string) {
		t.Helper()
		e, ok := errors.AsType[*RefusedError](err)
		if !ok || !strings.Contains(e.Reason, want) {
			t.Errorf("%s: %v, want one with %q", name, err, want)
		}
	}
	folder, err := os.Open(b.home)
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	helper := confinetest.Program(t, helperPackage)
	r := b.request
	_, err = Run(helper, r, Streams{folder, os.Stdout, os.Stderr})
	refused("a folder as input", err, "would lead out of the box")
	_, err = Run(helper+"-none", r, Streams{})
	refused("no helper", err, "cannot be started")
	r.Program = filepath.Join(b.workspace, "none")
	_, err = Run(helper, r, Streams{})
	refused("no program", err, "none")
	r = b.request
	r.File = plan.File{Device: 1, Inode: 1}
	out, err := Run(helper, r, Streams{})
	refused("another program", err, "not the file that was looked at")
	if out.Report.Level != "" {
		t.Errorf("it was started: %+v", out)
	}
	r = b.request
	r.Workspace = b.home
	_, err = Run(helper, r, Streams{})
	refused("the home", err, "holds the home")
}

func TestLimits(t *testing.T) {
	b := newBox(t)
	b.request.Profile.Limits = Limits{Memory: 256 << 20, Files: 40, FileSize: 4 << 20, Temporary: 1 << 20}
	for text, want := range map[string]string{
		"head -c 2M /dev/zero > /tmp/x":            "No space left",
		"head -c 2M /dev/zero > ~/x":               "No space left",
		"head -c 8M /dev/zero > x":                 "File size limit",
		"x=$(head -c 400M /dev/zero | tr '\\0' x)": "cannot allocate",
		"ulimit -n": "40\n",
		"ulimit -c": "0\n",
		"exec 3</dev/null; for i in {4..60}; do eval \"exec $i</dev/null\" || exit 1; done": "Too many open files",
	} {
		output, out, err := b.run(text)
		if want == "cannot allocate" && slices.Contains(out.Group, "memory.max") {
			want = "Killed" // by the kernel, as all of the box counts
		}
		if err != nil || !strings.Contains(output, want) && (want != "Killed" || out.Code != 128+9) {
			t.Errorf("%s: exit code %d, %v: %q, want %q", text, out.Code, err, output, want)
		}
	}
	b.request.Profile.Limits.Wall = 1
	if _, out, err := b.run("trap '' TERM INT HUP; sleep 3600 & wait"); err != nil || !out.Late || out.Code != 128+9 {
		t.Errorf("its time is up: %+v, %v", out, err)
	}
	b.request.Profile.Limits.Wall, b.request.Profile.Limits.CPU = 0, 1
	if _, out, err := b.run("while :; do :; done"); err != nil || out.Code != 128+int(syscall.SIGKILL) && out.Code != 128+int(syscall.SIGXCPU) {
		t.Errorf("too much time: exit code %d, %v", out.Code, err)
	}
}

// TestPlaceholders leaves nothing behind, and removes nothing that is not its
// own.
func TestPlaceholders(t *testing.T) {
	b := newBox(t)
	if got := b.must("ls -A | sort | head -1"); got != ".agents\n" {
		t.Errorf("got %q", got)
	}
	if entries, err := os.ReadDir(b.workspace); err != nil || len(entries) > 0 {
		t.Errorf("left behind: %v %v", entries, err)
	}
	// Somebody outside takes the name while the box runs.
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	in, next, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	request := b.request
	request.Program, request.Argv = "/bin/sh", []string{"sh", "-c", "echo up; read x; exit 0"}
	ended := make(chan error, 1)
	helper := confinetest.Program(t, helperPackage)
	go func() {
		_, err := Run(helper, request, Streams{in, w, os.Stderr})
		ended <- err
	}()
	buffer := make([]byte, 3)
	if _, err := r.Read(buffer); err != nil {
		t.Fatal(err)
	}
	mine := filepath.Join(b.workspace, ".idea", "mine")
	b.outside("rm .idea; mkdir .idea; : > .idea/mine")
	if _, err := next.WriteString("\n"); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(mine); err != nil {
		t.Error(err)
	}
	if entries, err := os.ReadDir(b.workspace); err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v %v", entries, err)
	}
}

// TestSecrets hides what is secret in every folder of the workspace, in every
// profile.
func TestSecrets(t *testing.T) {
	for _, name := range BuiltinNames() {
		b := newBox(t)
		b.outside("mkdir -p a/b; echo SECRET | tee .env a/.env a/b/.env.local >/dev/null; echo fine > .env.example; ln -s a/.env link; ln -s link .env.test")
		parse, _ := Builtin(name)
		p, err := parse()
		if err != nil {
			t.Fatal(err)
		}
		b.request.Profile = p
		if p.Network == plan.Proxied {
			b.request.Serve = map[int]func(net.Listener){ProxyPort: func(l net.Listener) { _, _ = l.Accept() }} // nobody comes
		}
		output, _, err := b.run("cat .env a/.env a/b/.env.local link .env.test .env.example; cp a/.env x; cat x")
		if err != nil || strings.Contains(output, "SECRET") || !strings.Contains(output, "fine") {
			t.Errorf("%s: %v\n%s", name, err, output)
		}
	}
}

// TestNames has names in the workspace that are no text.
func TestNames(t *testing.T) {
	b := newBox(t)
	b.outside("git init -q $'r\\xff'; echo SECRET > $'.env.\\xff'; printf 'SECRET\\n' > .env; mkdir $'a\\nb'; git init -q $'a\\nb/c'")
	b.request.Profile.Hidden = append(b.request.Profile.Hidden, "./**/.env.*")
	output, out, err := b.run("cat .env*; for r in r* a*/c; do echo x >> \"$r/.git/config\"; echo x > \"$r/.git/hooks/post-commit\"; done")
	if err != nil || strings.Contains(output, "SECRET") || strings.Count(output, "Read-only") != 4 {
		t.Errorf("%+v, %v\n%s", out, err, output)
	}
}

// TestConcurrent runs boxes of one workspace side by side: what keeps the place
// of a missing name stays as long as one of them runs.
func TestConcurrent(t *testing.T) {
	b := newBox(t)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 3 {
				output, out, err := b.run("for i in 1 2 3; do mkdir .idea 2>/dev/null && echo planted; (: > .mcp.json) && echo planted; mkdir -p .github/workflows && echo planted; rm -f .envrc && echo planted; mv .vscode x && echo planted; : > y; mv -f y .husky && echo planted; ln .ci z && echo planted; done; rm -f y; false")
				if err != nil || out.Code == 0 || strings.Contains(output, "planted") {
					t.Errorf("%v, exit code %d: %s", err, out.Code, output)
				}
			}
		})
	}
	group.Wait()
	if entries, err := os.ReadDir(b.workspace); err != nil || len(entries) > 0 {
		t.Errorf("left behind: %v %v", entries, err)
	}
}

// TestOthersStay makes links in a workspace to what lies outside of it: the
// comparison afterwards touches nothing there.
func TestOthersStay(t *testing.T) {
	need(t, "git")
	b := newBox(t)
	b.outside("mkdir -p ../.ssh ../other; echo Host x > ../.ssh/config; git -C ../other init -q; git -C ../other config core.pager cat; echo > ../other/.git/hooks/pre-commit")
	if _, _, err := b.run("mkdir a b; echo gitdir: $HOME/.ssh > a/.git; ln -s $HOME/other/.git b/.git"); err != nil {
		t.Error(err)
	}
	for _, name := range []string{".ssh/config", "other/.git/config", "other/.git/hooks/pre-commit"} {
		if _, err := os.Lstat(filepath.Join(b.home, name)); err != nil {
			t.Error(err)
		}
	}
}

// TestLeftPlaces checks that nothing stays of the folders for missing names,
// also of those in others, of a box that was killed.
func TestLeftPlaces(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	// Folders, since one lies in the other.
	outer, inner := filepath.Join(dir, "hooks"), filepath.Join(dir, "hooks/info")
	folders := map[string]bool{outer: true, inner: true}
	start := func(missing, there []string) *held {
		h, err := hold()
		if err != nil {
			t.Fatal(err)
		}
		if err := h.place(missing, folders, there, ""); err != nil {
			t.Fatal(err)
		}
		return h
	}
	is := func(when, name string, want bool) {
		t.Helper()
		if _, err := os.Lstat(name); (err == nil) != want {
			t.Errorf("%s: %s is there: %v", when, name, err == nil)
		}
	}
	killed := start([]string{outer}, nil)
	killed.list.Close()
	killed.gate.Close()
	is("a box was killed", outer, true)
	start(nil, nil).release()
	is("another one has run", outer, false)

	names := []string{filepath.Join(dir, ".mcp.json"), filepath.Join(dir, ".vscode"), filepath.Join(dir, "config.worktree")}
	folders[names[2]] = true // as far as it is git's
	killed = start(names, nil)
	killed.list.Close()
	killed.gate.Close()
	for _, name := range names {
		is("a box was killed", name, true)
	}
	start(nil, nil).release()
	for _, name := range names {
		is("another one has run", name, false)
	}

	first := start([]string{outer}, nil)
	second := start([]string{inner}, []string{outer})
	first.release()
	is("the first has ended", outer, true)
	is("the first has ended", inner, true)
	second.release()
	is("both have ended", outer, false)

	mine := start([]string{outer}, nil)
	if err := os.WriteFile(filepath.Join(outer, "mine"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	mine.release()
	is("somebody has put something there", filepath.Join(outer, "mine"), true)
	if err := os.Remove(filepath.Join(outer, "mine")); err != nil {
		t.Fatal(err)
	}
	start(nil, nil).release()
	is("and it is gone", outer, true) // it is theirs now
}
