package execution

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
)

// screen collects what appears on a terminal.
type screen struct {
	t   *testing.T
	tty *os.File // master side

	mu      sync.Mutex
	printed bytes.Buffer
	changed chan struct{}
}

// start runs cmd on a new terminal.
func startOnTerminal(t *testing.T, cmd *exec.Cmd) *screen {
	t.Helper()
	tty, err := pty.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	s := &screen{t: t, tty: tty, changed: make(chan struct{}, 1)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		io.Copy(s, tty) // ends with an error when the last process has gone
	}()
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		tty.Close()
		<-done
	})
	return s
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	s.printed.Write(p)
	s.mu.Unlock()
	select {
	case s.changed <- struct{}{}:
	default:
	}
	return len(p), nil
}

func (s *screen) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.printed.String()
}

// expect waits for text to appear count times.
func (s *screen) expect(text string, count int) {
	s.t.Helper()
	limit := time.After(20 * time.Second)
	for strings.Count(s.text(), text) < count {
		select {
		case <-s.changed:
		case <-limit:
			s.t.Fatalf("%q did not appear %d times; the terminal shows:\n%s", text, count, s.text())
		}
	}
}

func (s *screen) keys(text string) {
	s.t.Helper()
	if _, err := s.tty.WriteString(text); err != nil {
		s.t.Fatal(err)
	}
}

// Ctrl-C reaches parent and child: the child gets it once and decides, and the
// parent returns what the child returned.
func TestInterruptFromTerminal(t *testing.T) {
	cmd := helperCommand(t)
	cmd.Args = append(cmd.Args, cmd.Path, countInterrupts)
	s := startOnTerminal(t, cmd)
	s.expect("ready", 1)
	s.keys("\x03")
	s.expect("int-1", 1)
	s.keys("\x03")
	s.expect("int-2", 1)
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	s.expect("term-", 1)
	cmd.Wait()
	if !strings.Contains(s.text(), "term-2") || cmd.ProcessState.ExitCode() != 7 {
		t.Errorf("ended with %s:\n%s", cmd.ProcessState, s.text())
	}
}

// Ctrl-Z stops both, so that the shell gets its prompt back; fg resumes both.
func TestJobControl(t *testing.T) {
	helper := helperCommand(t)
	shell := exec.Command("/bin/bash", "--norc", "--noprofile", "-i")
	shell.Env = append(helper.Env, "PS1=prompt> ", "HISTFILE=", "HELPER="+helper.Path)
	s := startOnTerminal(t, shell)
	s.expect("prompt> ", 1)
	s.keys(`"$HELPER" /bin/bash -c 'echo rea""dy; read line; echo go""t-$line; read line; echo go""t-$line; exit 5'` + "\n")
	s.expect("ready", 1)
	for round, word := range []string{"one", "two"} {
		s.keys("\x1a")
		s.expect("Stopped", round+1)
		s.keys("echo back-$((20+1))\n")
		s.expect("back-21", round+1)
		s.keys("fg\n")
		s.expect("exit 5'", 2*round+3) // the job's line, again
		s.keys(word + "\n")
		s.expect("got-"+word, 1)
	}
	s.keys("echo co\"\"de-$?\n")
	s.expect("code-5", 1)
}

// A child that stops itself, as an editor on Ctrl-Z does, stops the job too.
func TestChildStopsItself(t *testing.T) {
	helper := helperCommand(t)
	shell := exec.Command("/bin/bash", "--norc", "--noprofile", "-i")
	shell.Env = append(helper.Env, "PS1=prompt> ", "HISTFILE=", "HELPER="+helper.Path)
	s := startOnTerminal(t, shell)
	s.expect("prompt> ", 1)
	s.keys(`"$HELPER" /bin/sh -c 'kill -TSTP $$; echo res""umed; exit 6'` + "\n")
	s.expect("Stopped", 1)
	s.keys("fg\n")
	s.expect("resumed", 1)
	s.keys("echo co\"\"de-$?\n")
	s.expect("code-6", 1)
}
