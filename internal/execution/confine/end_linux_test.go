package confine

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"vogt/internal/execution/confine/confinetest"
	"vogt/internal/execution/confine/plan"
)

// waitLimit bounds how long a test waits for what should be over.
const waitLimit = time.Minute

// TestEnd leaves processes behind in a box that has no namespace to end them, in
// the ways that are hard to follow, and attacks the helper that is to end them. All
// of them hold the box's standard output: it ends when they have.
func TestEnd(t *testing.T) {
	for _, tt := range []struct{ name, needs, text string }{
		{"double fork", "", "(sleep 1000 & ) & true"},
		{"sessions", "setsid", "setsid sleep 1000 & setsid -f setsid -f sleep 1000; true"},
		{"deaf", "", `bash -c 'trap "" HUP INT TERM QUIT TSTP; while :; do sleep 1000; done' & true`},
		{"stopped", "", `sleep 1000 & kill -STOP $!`},
		{"chain that forks and ends", "perl", `perl -e 'exit if fork; while (1) { exit if fork }'; true`},
		{"many chains", "perl", `for i in 1 2 3 4 5 6 7 8; do perl -e 'exit if fork; setpgrp; while (1) { exit if fork }'; done; true`},
		{"tree that grows", "perl", `perl -e 'exit if fork; for (1..200) { fork; select undef, undef, undef, 0.001 } sleep 1000'; true`},
		{"own subreaper", "/usr/bin/python3", `/usr/bin/python3 -c 'import ctypes, os
if os.fork() == 0:
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
    if os.fork() == 0:
        os.setsid(); os.execvp("sleep", ["sleep", "1000"])
    os.execvp("sleep", ["sleep", "1000"])'`},
		{"kills the helper", "", `sleep 1000 & for s in KILL STOP TERM ABRT; do kill -$s $PPID; done; true`},
		{"kills everybody", "", `sleep 1000 & kill -KILL -1; true`},
		{"limits the helper", "/usr/bin/python3", `sleep 1000 & /usr/bin/python3 -c 'import os, resource
for what in resource.RLIMIT_CPU, resource.RLIMIT_AS, resource.RLIMIT_NOFILE:
    try: resource.prlimit(int(os.environ["BASH_PPID"]), what, (1, 1)); print("changed")
    except PermissionError: pass'; true`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.needs != "" {
				need(t, tt.needs)
			}
			victim := exec.Command("sleep", "1000")
			if err := victim.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = victim.Process.Kill(); _ = victim.Wait() }()
			b := newBox(t)
			b.request.Level = plan.Reduced
			output, out, err := b.runTo(t, "export BASH_PPID=$PPID\n"+tt.text)
			if err != nil || out.Report.Level != plan.Reduced || strings.Contains(output, "changed") {
				t.Errorf("%v, %+v\n%s", err, out, output)
			}
			if err := victim.Process.Signal(syscall.Signal(0)); err != nil {
				t.Errorf("a process outside was ended: %v", err)
			}
		})
	}
}

// runTo is run for boxes that may leave processes: it fails if any holds standard
// output when the box has ended.
func (b *box) runTo(t *testing.T, text string) (string, Outcome, error) {
	t.Helper()
	in, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	request := b.request
	request.Program, request.Argv = "/bin/bash", []string{"bash", "-c", text}
	out, err := Run(confinetest.Program(t, helperPackage), request, Streams{in, w, w})
	w.Close()
	// Whoever is killed has ended by now, but the kernel may still close its files.
	if err := r.SetReadDeadline(time.Now().Add(waitLimit)); err != nil {
		t.Fatal(err)
	}
	data, readErr := io.ReadAll(r)
	if readErr != nil {
		t.Errorf("processes of the box live on: %v", readErr)
	}
	return string(data), out, err
}

// TestLate ends boxes whose time is up, with what they have left.
func TestLate(t *testing.T) {
	for _, level := range []plan.Level{cmp.Or(plan.Level(os.Getenv(levelVariable)), plan.Full), plan.Reduced} {
		b := newBox(t)
		b.request.Level = level
		b.request.Profile.Limits.Wall = 1
		output, out, err := b.runTo(t, "(setsid sleep 1000 &); exec sleep 1000")
		if err != nil || !out.Late || out.Code != 137 {
			t.Errorf("%s: %v, %+v\n%s", level, err, out, output)
		}
	}
}

// TestSwapped changes files between the look at them and the start of bwrap, as
// another box in the same workspace may: the helper must refuse what it then finds.
func TestSwapped(t *testing.T) {
	if os.Getuid() == 0 {
		asUser(t, "^TestSwapped$", "")
		return
	}
	needBwrap(t)
	for _, tt := range []struct {
		name, swap string
		want       string // of the refusal
	}{
		{"nothing", "true", ""},
		{"settings by a link to a secret", "rm .git/config; ln -s $HOME/secret .git/config", ".git/config"},
		{"settings by another file", "cp .git/config c; mv c .git/config", "is not the file"},
		{"hooks by a link", "mv .git/hooks h; ln -s $HOME/.ssh .git/hooks", ".git/hooks"},
		{"a folder above by a link", "mv .git elsewhere; ln -s elsewhere .git", ".git"},
		{"the workspace", "mv $HOME/app $HOME/other; ln -s $HOME/.ssh $HOME/app", "app"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBox(t)
			b.outside("mkdir -p .git/hooks .git/objects .git/refs $HOME/.ssh; echo ref: refs/heads/main > .git/HEAD; echo [core] > .git/config; echo hush > $HOME/secret; echo hush > $HOME/.ssh/id")
			s := &resolver{request: b.request, profile: b.request.Profile}
			s.request.Program, s.request.Argv = "/bin/bash", []string{"bash", "-c", "cat .git/config .git/hooks/* * 2>&1"}
			p, _, err := s.resolve()
			if err != nil {
				t.Fatal(err)
			}
			for _, missing := range s.missing {
				if err := os.Mkdir(missing, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			p.Level = plan.Bwrap
			p.Outer, err = namespaces()
			if err == nil {
				p.Same, err = identities(p)
			}
			if err != nil {
				t.Fatal(err)
			}
			b.outside("cd $HOME/app; " + tt.swap)
			in, err := os.Open(os.DevNull)
			if err != nil {
				t.Fatal(err)
			}
			defer in.Close()
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			printed := drain(r)
			_, err = (&launch{helper: confinetest.Program(t, helperPackage), streams: Streams{in, w, w}}).start(p)
			w.Close()
			output := string(<-printed)
			refused, ok := errors.AsType[*RefusedError](err)
			switch {
			case tt.want == "" && err != nil, tt.want != "" && (!ok || !strings.Contains(refused.Reason+output, tt.want)):
				t.Errorf("%v, want %q\n%s", err, tt.want, output)
			case strings.Contains(output, "hush"):
				t.Errorf("the secret was read:\n%s", output)
			}
		})
	}
}

// levelVariable is the level of the boxes of a test, unless it has one itself.
const levelVariable = "CONFINE_LEVEL"

// TestThroughBwrap runs the tests of what people do in boxes that the system's bwrap
// makes.
func TestThroughBwrap(t *testing.T) {
	needBwrap(t)
	const tests = "^Test(Git|GitPlaces|Programs|Cache|Serve|Kept|Ending|Limits|Placeholders|Names|Concurrent|OthersStay|Terminal|Hangup|Signals|Late)$"
	if os.Getuid() == 0 {
		asUser(t, tests, plan.Bwrap)
	} else {
		again(t, tests, plan.Bwrap, nil)
	}
}

func needBwrap(t *testing.T) {
	t.Helper()
	if _, err := systemBwrap(); err != nil {
		t.Skipf("bubblewrap is not installed (Debian: apt-get install bubblewrap): %v", err)
	}
}

// asUser runs tests again as an ordinary user.
func asUser(t *testing.T, tests string, level plan.Level) {
	home, err := os.MkdirTemp("", "user-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	run := filepath.Join(home, "run")
	if err := errors.Join(os.Mkdir(run, 0o700), os.Chown(run, 1000, 1000), os.Chown(home, 1000, 1000)); err != nil {
		t.Fatal(err)
	}
	again(t, tests, level, &syscall.Credential{Uid: 1000, Gid: 1000}, "HOME="+home, "TMPDIR="+home, "XDG_RUNTIME_DIR="+run)
}

// again runs tests in a process of their own.
func again(t *testing.T, tests string, level plan.Level, who *syscall.Credential, environ ...string) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", "-test.run="+tests, "-test.count=1", "-test.v", "-test.timeout=2m")
	cmd.Dir = t.TempDir()
	if who != nil {
		cmd.Dir = "/"
	}
	cmd.Env = append(append(os.Environ(), levelVariable+"="+string(level)), environ...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: who}
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Errorf("%s: %v", tests, err)
	}
}

// TestAddresses serves ports on every address of the loopback of a box, also those
// that only root may listen at outside.
func TestAddresses(t *testing.T) {
	addresses(t)
	if os.Getuid() == 0 {
		asUser(t, "^TestAddresses$", "")
	}
}

func addresses(t *testing.T) {
	for _, tt := range []struct {
		level   plan.Level
		address string
		port    int
		refused string
	}{
		{plan.Full, "127.0.0.2", 80, ""},
		{plan.Full, "::1", 8648, ""},
		{plan.Full, "127.0.0.1", 443, ""},
		{plan.Bwrap, "127.0.0.2", 8648, ""},
		{plan.Bwrap, "::1", 80, "below 1024"},
	} {
		if _, err := systemBwrap(); tt.level == plan.Bwrap && (err != nil || os.Getuid() == 0) {
			continue
		}
		b := newBox(t)
		b.request.Level = tt.level
		b.request.Profile.Network = plan.Proxied
		refuse := func(l net.Listener) {
			for c, err := l.Accept(); err == nil; c, err = l.Accept() {
				c.Close()
			}
		}
		b.request.Serve = map[int]func(net.Listener){ProxyPort: refuse, tt.port: func(l net.Listener) {
			for c, err := l.Accept(); err == nil; c, err = l.Accept() {
				_, _ = io.WriteString(c, "served\n") // or the box misses it
				c.Close()
			}
		}}
		b.request.Trust = []byte("trusted\n")
		b.request.Addresses = map[int]netip.Addr{tt.port: netip.MustParseAddr(tt.address)}
		output, _, err := b.run(fmt.Sprintf("cat </dev/tcp/%s/%d; echo $no_proxy; cat %s; echo x > %[3]s", tt.address, tt.port, plan.TrustPath))
		refused, ok := errors.AsType[*RefusedError](err)
		switch {
		case tt.refused != "" && (!ok || !strings.Contains(refused.Remedy, tt.refused)):
			t.Errorf("%s %s %d: %v, want %s", tt.level, tt.address, tt.port, err, tt.refused)
		case tt.refused == "" && (err != nil || !strings.Contains(output, "served") || !strings.Contains(output, "trusted\n") || !strings.Contains(output, "Read-only") && !strings.Contains(output, "denied") || !strings.Contains(output, tt.address)):
			t.Errorf("%s %s %d: %v\n%s", tt.level, tt.address, tt.port, err, output)
		}
	}
}
