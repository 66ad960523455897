package confine

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"vogt/internal/execution/confine/confinetest"
	"vogt/internal/execution/confine/plan"
)

// starterVariable makes this test program start its arguments in a box, as vogt
// confine does; it holds the path of the helper.
const starterVariable = "CONFINE_STARTER"

// starter runs the arguments in a box about the current folder, in the terminal
// that it has.
func starter(helper string) int {
	parse, _ := Builtin("default")
	p, err := parse()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	dir, err := os.Getwd()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	out, err := Run(helper, Request{Profile: p, Workspace: dir, Home: os.Getenv("HOME"), Program: "/bin/" + os.Args[1], Argv: os.Args[1:], Environ: os.Environ(), Terminal: true, Level: plan.Level(os.Getenv(levelVariable))},
		Streams{os.Stdin, os.Stdout, os.Stderr})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return out.Code
}

// self is a copy of this program, whose own file is not to be seen in the jail in
// which the tests run.
func self(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "starter")
	if err := os.WriteFile(name, data, 0o755); err != nil {
		t.Fatal(err)
	}
	return name
}

// session is a program in a terminal of its own, and a person at it.
type session struct {
	t        *testing.T
	cmd      *exec.Cmd
	terminal *os.File
	unread   string
}

func (b *box) session(program string, args ...string) *session {
	b.t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Dir = b.workspace
	cmd.Env = append(b.request.Environ, "HOME="+b.home, "PS1=outer:", levelVariable+"="+os.Getenv(levelVariable), starterVariable+"="+confinetest.Program(b.t, helperPackage))
	terminal, err := pty.Start(cmd)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { terminal.Close() })
	return &session{t: b.t, cmd: cmd, terminal: terminal}
}

// see reads until a text has been printed, and returns what came before it.
func (s *session) see(text string) string {
	s.t.Helper()
	buffer := make([]byte, 4096)
	for {
		if before, after, ok := strings.Cut(s.unread, text); ok {
			s.unread = after
			return before
		}
		n, err := s.terminal.Read(buffer)
		s.unread += string(buffer[:n])
		if err != nil {
			s.t.Fatalf("want %q, got %q, then %v", text, s.unread, err)
		}
	}
}

// press types, and see follows: the answer is never in the text itself.
func (s *session) press(text, answer string) string {
	s.t.Helper()
	if _, err := io.WriteString(s.terminal, text); err != nil {
		s.t.Fatal(err)
	}
	return s.see(answer)
}

// halted waits until each shell of this name at the terminal has stopped. The shell
// in front says so when its own child has; one that is slower, and reads, would take
// what is typed next.
func (s *session) halted(name string) {
	s.t.Helper()
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	deadline := time.After(20 * time.Second)
	for {
		all, err := filepath.Glob("/proc/[0-9]*/stat")
		if err != nil {
			s.t.Fatal(err)
		}
		var stopped, other int
		for _, file := range all {
			text, err := os.ReadFile(file)
			if err != nil {
				continue // it has ended
			}
			// PID (NAME) STATE PPID PGRP SESSION …
			_, rest, _ := strings.Cut(string(text), " ("+name+") ")
			fields := strings.Fields(rest)
			if len(fields) < 4 || fields[3] != strconv.Itoa(s.cmd.Process.Pid) {
				continue
			}
			if fields[0] == "T" {
				stopped++
			} else {
				other++
			}
		}
		if stopped > 0 && other == 0 {
			return
		}
		select {
		case <-again.C:
		case <-deadline:
			s.t.Fatalf("%d stopped, %d others", stopped, other)
		}
	}
}

// TestTerminal is at a terminal with job control, outside and in a box.
func TestTerminal(t *testing.T) {
	const interrupt, stop = "\x03", "\x1a"
	b := newBox(t)
	s := b.session("/bin/bash", "--norc", "--noediting", "-i")
	inBox := self(t) + " "
	s.see("outer:")
	settings := s.press("stty -g\n", "outer:")

	s.press(inBox+"sh -c 'echo u''p; exec sleep 3600'\n", "up\r\n")
	s.press(interrupt, "outer:")
	s.press("echo code=$?\n", "code=130\r\n")
	s.see("outer:")

	// What the command does about a signal counts, and nobody else is ended by it.
	s.press(inBox+"bash -c 'trap \"echo c''aught; exit 6\" INT; echo u''p; while :; do read -t 1 x; done'\n", "up\r\n")
	s.press(interrupt, "caught\r\n")
	s.see("outer:")
	s.press("echo code=$?\n", "code=6\r\n")
	s.see("outer:")

	s.press(inBox+"sh -c 'echo u''p; read x; echo read $x; exit 3'\n", "up\r\n")
	s.press(stop, "Stopped")
	s.see("outer:")
	s.halted("sh")
	s.press("fg\n", "exit 3'\r\n")
	s.press("this\n", "read this\r\n")
	s.see("outer:")
	s.press("echo code=$?\n", "code=3\r\n")
	s.see("outer:")

	s.press(inBox+"bash --norc --noediting -i\n", "bash-5")
	s.press("PS1=in''ner:\n", "inner:")
	s.press("sh -c 'echo u''p; read x; echo read $x; exit 4'\n", "up\r\n")
	s.press(stop, "Stopped")
	s.see("inner:")
	s.halted("sh")
	s.press("jobs\n", "exit 4'\r\n")
	s.press("fg\n", "exit 4'\r\n")
	s.press("this\n", "read this\r\n")
	s.see("inner:")
	s.press("echo code=$?\n", "code=4\r\n")
	s.see("inner:")
	s.press("exit 5\n", "outer:")
	s.press("echo code=$?\n", "code=5\r\n")
	s.see("outer:")
	if after := s.press("stty -g\n", "outer:"); after != settings {
		t.Errorf("the terminal is %q, it was %q", after, settings)
	}
	s.press("exit\n", "exit")
	if err := s.cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// TestHangup closes a terminal in which a box runs.
func TestHangup(t *testing.T) {
	program := self(t)
	for _, args := range [][]string{
		{"sh", "-c", "echo up; sleep 3600; echo no"},
		{"bash", "--norc", "-ic", "sh -c 'echo up; exec sleep 3600'; echo no"},
	} {
		b := newBox(t)
		s := b.session(program, args...)
		s.see("up\r\n")
		s.terminal.Close()
		_ = s.cmd.Wait() // it ends, with whatever code
	}
}

// TestSignals sends a signal to who started a box: the command gets it.
func TestSignals(t *testing.T) {
	b := newBox(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	request := b.request
	request.Program, request.Argv = "/bin/bash", []string{"bash", "-c", "trap 'exit 5' USR1; sleep 3600 & echo up; wait"}
	in, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	ended := make(chan Outcome, 1)
	go func() {
		out, err := Run(confinetest.Program(t, helperPackage), request, Streams{in, w, os.Stderr})
		if err != nil {
			t.Error(err)
		}
		ended <- out
	}()
	if _, err := r.Read(make([]byte, 3)); err != nil {
		t.Fatal(err)
	}
	w.Close()
	if err := syscall.Kill(os.Getpid(), syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	if out := <-ended; out.Code != 5 {
		t.Errorf("exit code %d, want that of the trap", out.Code)
	}
}
