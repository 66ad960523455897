package confine

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"vogt/internal/execution/confine/confinetest"
	"vogt/internal/execution/confine/plan"
)

// with runs a text of bash in a box with streams.
func (b *box) with(text string, s Streams) (Outcome, error) {
	b.t.Helper()
	r := b.request
	r.Program, r.Argv = "/bin/bash", []string{"bash", "-c", text}
	return Run(confinetest.Program(b.t, helperPackage), r, s)
}

// open opens a file of a test, which ends with it.
func open(t *testing.T, name string, flags int) *os.File {
	t.Helper()
	f, err := os.OpenFile(name, flags, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// TestStreamsOfFiles has files outside of the box as standard streams: they are used
// as they were opened, and open nothing else.
func TestStreamsOfFiles(t *testing.T) {
	need(t, "python3")
	for _, tt := range []struct{ name, text string }{
		{"write what is read", "echo planted > /proc/self/fd/0"},
		{"empty what is read", "truncate -s 0 /proc/self/fd/0"},
		{"through the device", "echo planted > /dev/stdin"},
		{"by another process", "sleep 9 <&0 & echo planted > /proc/$!/fd/0; kill $!"},
		{"read what is written", "python3 -c 'import os; os.write(2, open(\"/proc/self/fd/1\", \"rb\").read())'"},
		{"link it", "ln -L /proc/self/fd/0 linked && echo planted > linked"},
		{"look beside it", "ls /proc/self/fd/0/.. >&2 && cat /proc/self/fd/0/../log >&2"},
	} {
		b := newBox(t)
		set := func() (Streams, *os.File) {
			for name, text := range map[string]string{"read": "first\n", "log": "secret\n"} {
				if err := os.WriteFile(filepath.Join(b.home, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			seen := open(t, filepath.Join(b.home, "seen"), os.O_RDWR|os.O_CREATE|os.O_TRUNC)
			return Streams{open(t, filepath.Join(b.home, "read"), os.O_RDONLY), open(t, filepath.Join(b.home, "log"), os.O_WRONLY|os.O_APPEND), seen}, seen
		}
		gained := func() bool {
			read, err := os.ReadFile(filepath.Join(b.home, "read"))
			seen, err2 := os.ReadFile(filepath.Join(b.home, "seen"))
			if err := errors.Join(err, err2); err != nil {
				t.Fatal(err)
			}
			return string(read) != "first\n" || strings.Contains(string(seen), "secret")
		}
		s, _ := set()
		cmd := exec.Command("/bin/bash", "-c", tt.text)
		cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = b.workspace, s.In, s.Out, s.Err
		_ = cmd.Run() // what it gains tells
		os.Remove(filepath.Join(b.workspace, "linked"))
		if bare := gained(); !bare && tt.name != "look beside it" { // a file has nothing beside it
			t.Errorf("%s: it gains nothing without a box", tt.name)
		}
		s, _ = set()
		if _, err := b.with(tt.text, s); err != nil || gained() {
			t.Errorf("%s: it gains something: %v", tt.name, err)
		}
	}
}

// TestStreamsAfterwards leaves streams in a state in which the next who uses them
// would fail: they are given back as they were.
func TestStreamsAfterwards(t *testing.T) {
	need(t, "python3")
	for _, text := range []string{
		"stty -echo raw <&1",
		"python3 -c 'import fcntl, os; fcntl.fcntl(1, fcntl.F_SETFL, os.O_NONBLOCK)'",
		"python3 -c 'import fcntl; fcntl.ioctl(1, 0x540c)'", // TIOCEXCL: nobody else may open it
	} {
		for _, boxed := range []bool{false, true} {
			b := newBox(t)
			screen, tty, err := pty.Open()
			if err != nil {
				t.Fatal(err)
			}
			defer screen.Close()
			defer tty.Close()
			go func() {
				buffer := make([]byte, 4096)
				for {
					if _, err := screen.Read(buffer); err != nil {
						return
					}
				}
			}()
			state := func() string {
				var flags int
				raw, err := tty.SyscallConn() // Fd would set the flags
				if err == nil {
					err = raw.Control(func(fd uintptr) { flags, _ = unix.FcntlInt(fd, unix.F_GETFL, 0) })
				}
				if err != nil {
					t.Fatal(err)
				}
				settings, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
				if err != nil {
					t.Fatal(err)
				}
				exclusive, err := unix.IoctlGetInt(int(tty.Fd()), 0x80045440) // TIOCGEXCL
				if err != nil {
					t.Fatal(err)
				}
				return fmt.Sprint(flags, *settings, int32(exclusive))
			}
			_ = tty.Fd()
			before := state()
			null := open(t, os.DevNull, os.O_RDWR)
			if boxed {
				_, err = b.with(text, Streams{null, tty, null})
			} else {
				cmd := exec.Command("/bin/bash", "-c", text)
				cmd.Stdout = tty
				err = cmd.Run()
			}
			if err != nil {
				t.Errorf("%s: %v", text, err)
			}
			if after := state(); (after == before) != boxed {
				t.Errorf("%s, boxed %v: the terminal was %s and is %s", text, boxed, before, after)
			}
		}
	}
}

// TestAbstractSockets has the machine's network and sockets of its own: abstract
// names belong to the network, so that Landlock has to hold them, and a version
// that cannot is refused.
func TestAbstractSockets(t *testing.T) {
	need(t, "python3")
	l, err := net.Listen("unix", "@x"+filepath.Base(t.TempDir())+t.Name())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	arrived := make(chan bool, 10)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Close()
			arrived <- true
		}
	}()
	b := newBox(t)
	text := fmt.Sprintf("import socket; socket.socket(socket.AF_UNIX).connect(b'\\0%s'); open('arrived', 'w')", l.Addr().String()[1:])
	reached := func() bool {
		_, err := os.Lstat(filepath.Join(b.workspace, "arrived"))
		return err == nil
	}
	cmd := exec.Command("python3", "-c", text)
	cmd.Dir = b.workspace
	if out, err := cmd.CombinedOutput(); err != nil || !reached() {
		t.Fatalf("it does not succeed without a box: %v %s", err, out)
	}
	<-arrived
	if err := os.Remove(filepath.Join(b.workspace, "arrived")); err != nil {
		t.Fatal(err)
	}
	b.request.Profile.Network, b.request.Profile.Sockets = plan.Host, plan.OwnSockets
	b.request.Program, b.request.Argv = "/usr/bin/python3", []string{"python3", "-c", text}
	for _, version := range []int{3, 6} {
		_, err := underVersion(t, version, b.request)
		if _, refused := errors.AsType[*RefusedError](err); reached() || refused != (version < 6) {
			t.Errorf("version %d: reached %v, %v", version, reached(), err)
		}
	}
}

// TestHostileWorkspaceFile has what a file of the workspace could do to whoever
// starts a box there.
func TestHostileWorkspaceFile(t *testing.T) {
	for _, tt := range []struct {
		text    string
		refused bool
	}{
		{"\"\\u001b[2J\" = 1\n", true}, // keys and values are shown
		{"net = \"\\u001b]0;x\\u0007\"\n", true},
		{"hidden = [\"\\u001b[2J\"]\n", true},
		{"x\x1b[2J", true},
		{"hidden = [\"/*/*/*/*/*/*/*/*/*\"]\n", true}, // looks through the whole disk
		{"hidden = [\"./**/*/x\"]\n", true},
		{"hidden = [\"/dev\"]\n", false},
		{"hidden = [\".\"]\n", true},
		{"hidden = [\"/\"]\n", true},
		{"protected = [\"./a/../b\"]\n", true},
		{"hidden = [\"./**/*\"]\n", false},
		{"hidden = [\"/proc/self\", \"./[\", \"./a\\u0000b\"]\n", false},
		{"protected = [\".\", \"./.git\", \"/usr/x\", \"/\"]\n", false},
	} {
		b := newBox(t)
		b.outside("git init -q; mkdir .vogt a")
		if err := os.WriteFile(filepath.Join(b.workspace, ".vogt/confine.toml"), []byte(tt.text), 0o644); err != nil {
			t.Fatal(err)
		}
		p, err := b.request.Profile.In(b.workspace)
		if err == nil {
			b.request.Profile = p
			_, _, err = b.run("true")
		}
		if (err != nil) != tt.refused || err != nil && strings.ContainsAny(err.Error(), "\x1b\a") {
			t.Errorf("%q: %v", tt.text, err)
		}
		if got := b.outside("ls -A"); got != ".git\n.vogt\na\n" {
			t.Errorf("%q: left behind: %s", tt.text, got)
		}
	}
}

// TestKilledAnywhere kills the starter at the calls by which it makes and ends a
// box: the next box leaves the workspace as it was, and finds all locks free.
func TestKilledAnywhere(t *testing.T) {
	need(t, "strace")
	b := newBox(t)
	b.outside("git init -q; echo x > a")
	starter := self(t)
	before := b.outside("ls -AR .")
	killed := 0
	for call, counts := range map[string][]int{
		"mkdirat": {1, 4, 12}, "flock": {1, 2, 3, 4}, "memfd_create": {1}, "socketpair": {1}, "wait4,waitid": {1}, "recvmsg": {1, 2}, "unlinkat": {1, 3}, "ftruncate,fcntl": {1, 3},
	} {
		for _, n := range counts {
			cmd := exec.Command("strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace="+call, "-e", fmt.Sprintf("inject=%s:signal=SIGKILL:when=%d", call, n), starter, "true")
			cmd.Dir = b.workspace
			cmd.Env = append(slices.Clone(b.request.Environ), "HOME="+b.home, starterVariable+"="+confinetest.Program(t, helperPackage))
			out, _ := cmd.CombinedOutput()
			if cmd.ProcessState.ExitCode() != 0 {
				killed++
			} else {
				t.Logf("%s %d: it was not killed %s", call, n, out)
			}
			b.must("true")
			if after := b.outside("ls -AR ."); after != before {
				t.Errorf("killed at %s %d, this is left:\n%s", call, n, after)
			}
		}
	}
	if killed < 8 {
		t.Errorf("only %d were killed", killed)
	}
}

// TestOddStarts has environments and streams that nobody expects.
func TestOddStarts(t *testing.T) {
	b := newBox(t)
	b.request.Environ = append(b.request.Environ, "LC_BIG="+strings.Repeat("x", 200_000))
	if _, out, err := b.run("true"); err == nil || out.Code != 126 {
		t.Errorf("a variable that no program can have: %+v, %v", out, err)
	}
	b = newBox(t)
	for range 3000 {
		b.request.Environ = append(b.request.Environ, "LC_MANY="+strings.Repeat("x", 100), "no equals sign", "=", "", "LC_NUL=a")
	}
	if output, out, err := b.run("echo fine"); err != nil || output != "fine\n" {
		t.Errorf("many variables: %q %+v, %v", output, out, err)
	}
	for _, closed := range []string{"<&-", ">&-", "2>&-", "<&- >&-", "<&- >&- 2>&-"} {
		b := newBox(t)
		cmd := exec.Command("/bin/bash", "-c", `exec "$0" sh -c 'echo made > made; cat; echo more' `+closed, self(t))
		cmd.Dir = b.workspace
		cmd.Env = append(slices.Clone(b.request.Environ), "HOME="+b.home, starterVariable+"="+confinetest.Program(t, helperPackage))
		out, err := cmd.CombinedOutput()
		made, readErr := os.ReadFile(filepath.Join(b.workspace, "made"))
		if readErr != nil || string(made) != "made\n" {
			t.Errorf("%s: %v %s, %v", closed, err, out, readErr)
		}
		// What was opened in the place of the closed ones is nothing of the box's.
		b.outside("grep -q made made; ls -A | grep -v made | wc -l | grep -qx 0")
	}
}
