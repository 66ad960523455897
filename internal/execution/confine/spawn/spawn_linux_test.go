package spawn

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

const spaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS

// shell is a program that runs a line of sh, and a pipe of what it prints.
func shell(t *testing.T, line string) (*Program, func() string) {
	t.Helper()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { null.Close(); r.Close(); w.Close() })
	p := &Program{
		Path: "/bin/sh", Argv: []string{"its-name", "-c", line}, Environ: []string{"A=b c", "PATH=/usr/bin:/bin"}, Dir: "/",
		Files: []*os.File{null, w, os.Stderr}, Namespaces: spaces, Death: syscall.SIGKILL, Session: true,
	}
	return p, func() string {
		w.Close()
		text, err := io.ReadAll(r)
		if err != nil {
			t.Error(err)
		}
		return string(text)
	}
}

// start starts it, unless this machine does not let this user make namespaces.
func start(t *testing.T, p *Program) *os.Process {
	t.Helper()
	process, err := p.Start()
	if failed, ok := errors.AsType[*Error](err); ok && failed.Step == "make namespaces" && !errors.Is(err, unix.EINVAL) {
		t.Skipf("this machine does not let this user make namespaces: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return process
}

func TestStart(t *testing.T) {
	held, err := os.Open("/") // what is left open without CLOEXEC is closed all the same
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	if _, err := unix.FcntlInt(held.Fd(), unix.F_SETFD, 0); err != nil {
		t.Fatal(err)
	}
	root := "0"
	if os.Getuid() != 0 {
		root = "1"
	}
	for _, test := range []struct {
		line, want string
		change     func(*Program)
	}{
		{line: `echo "$0 $A $HOME"`, want: "its-name b c \n"},
		{line: `pwd`, want: "/usr\n", change: func(p *Program) { p.Dir = "/usr" }},
		{line: `echo $$`, want: "1\n"},
		{line: `id -u; id -g`, want: fmt.Sprintf("%d\n%d\n", os.Getuid(), os.Getgid())},
		{line: `cat /proc/self/setgroups`, want: "deny\n"},
		{line: `exec ls /proc/self/fd`, want: "0\n1\n2\n3\n"}, // the last one is that of ls
		{line: `exec sed -n '/Sig[BC]../p' /proc/self/status`, want: "SigBlk:\t0000000000000000\nSigCgt:\t0000000000000000\n"},
		// Ambient ones are for users; root gets all that the namespace has.
		{line: `grep CapAmb /proc/self/status; test ` + root + ` = 0 || grep CapEff /proc/self/status`, change: func(p *Program) {
			p.Capabilities = []uintptr{unix.CAP_NET_ADMIN, unix.CAP_SYS_ADMIN}
		}, want: map[string]string{"0": "CapAmb:\t0000000000201000\n", "1": "CapAmb:\t0000000000201000\nCapEff:\t0000000000201000\n"}[root]},
		{line: `exit 7`},
		{line: `kill -9 $$; exec sh -c 'exit 7'`}, // the first of a namespace cannot end itself so
	} {
		p, out := shell(t, test.line)
		if test.change != nil {
			test.change(p)
		}
		process := start(t, p)
		if got := out(); got != test.want {
			t.Errorf("%s: got %q, want %q", test.line, got, test.want)
		}
		state, err := process.Wait()
		want := 0
		if strings.Contains(test.line, "exit 7") {
			want = 7
		}
		if err != nil || state.ExitCode() != want {
			t.Errorf("%s: got %v, %v, want exit code %d", test.line, state, err, want)
		}
	}
}

// Descriptors take each other's places.
func TestFiles(t *testing.T) {
	p, out := shell(t, "echo to the second >&2; echo to the third >&3")
	dir := t.TempDir()
	var files [4]*os.File
	for i := range files {
		f, err := os.Create(filepath.Join(dir, fmt.Sprint(i)))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		files[i] = f
	}
	p.Files = []*os.File{p.Files[0], os.NewFile(2, "shared"), files[2], files[3]}
	if state, err := start(t, p).Wait(); err != nil || !state.Success() {
		t.Errorf("%v, %v", state, err)
	}
	for i, want := range map[int]string{2: "to the second\n", 3: "to the third\n"} {
		if got, err := os.ReadFile(files[i].Name()); err != nil || string(got) != want {
			t.Errorf("descriptor %d: got %q, %v, want %q", i, got, err, want)
		}
	}
	out()
}

func TestErrors(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*Program)
		step   string
		want   error
	}{
		{"no program", func(p *Program) { p.Path = "/nowhere/sh" }, "execute /nowhere/sh", unix.ENOENT},
		{"no folder", func(p *Program) { p.Dir = "/nowhere" }, "enter /nowhere", unix.ENOENT},
		{"a flag that is none", func(p *Program) { p.Namespaces |= unix.CLONE_SIGHAND }, "make namespaces", unix.EINVAL},
		{"no user namespace", func(p *Program) { p.Namespaces = unix.CLONE_NEWNS }, "", nil},
		{"a capability of the second word", func(p *Program) { p.Capabilities = []uintptr{40} }, "", nil},
		{"a NUL byte", func(p *Program) { p.Argv = []string{"a\x00b"} }, "", nil},
		{"no descriptor", func(p *Program) { p.Files[0] = nil }, "", nil},
	} {
		p, _ := shell(t, "exit 0")
		if _, err := start(t, p).Wait(); err != nil { // or there are no namespaces here
			t.Fatal(err)
		}
		test.change(p)
		process, err := p.Start()
		failed, ok := errors.AsType[*Error](err)
		switch {
		case err == nil || process != nil:
			t.Errorf("%s: it was started", test.name)
		case test.step != "" && (!ok || failed.Step != test.step || !errors.Is(err, test.want)):
			t.Errorf("%s: got %v, want %s: %v", test.name, err, test.step, test.want)
		}
	}
	if _, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); !errors.Is(err, syscall.ECHILD) {
		t.Errorf("a child is left: %v", err)
	}
}

// The program has its signals, and none of them runs Go code in it before: while it
// is started many times, this process gets signals all the time.
func TestSignals(t *testing.T) {
	got := make(chan os.Signal, 1)
	signal.Notify(got, syscall.SIGUSR1)
	defer signal.Stop(got)
	ended, sending := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(sending)
		for {
			select {
			case <-ended:
				return
			default:
				_ = syscall.Kill(os.Getpid(), syscall.SIGUSR1)
				select {
				case <-got:
				default:
				}
			}
		}
	}()
	for range 20 {
		p, out := shell(t, "exec sed -n '/Sig[BC]../p' /proc/self/status")
		process := start(t, p)
		if text := out(); text != "SigBlk:\t0000000000000000\nSigCgt:\t0000000000000000\n" {
			t.Errorf("got %q", text)
		}
		if state, err := process.Wait(); err != nil || !state.Success() {
			t.Errorf("%v, %v", state, err)
		}
	}
	close(ended)
	<-sending
}
