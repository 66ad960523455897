//go:build unix

package quickstart

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"vogt/internal/config"
)

// buildFolder is made and removed by TestMain.
var buildFolder string

// buildDaemon builds vogtd once for all tests.
var buildDaemon = sync.OnceValues(func() (string, error) {
	path := filepath.Join(buildFolder, "vogtd")
	out, err := exec.Command("go", "build", "-o", path, "vogt/cmd/vogtd").CombinedOutput()
	if err != nil {
		err = fmt.Errorf("build vogtd: %w: %s", err, out)
	}
	return path, err
})

func realDaemon(t *testing.T) string {
	t.Helper()
	path, err := buildDaemon()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// realOptions are those of a call that starts the real vogtd with an owner who
// has a real key.
func realOptions(t *testing.T, daemon string, paths config.Paths) Options {
	t.Helper()
	key := filepath.Join(t.TempDir(), "owner")
	if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "alice", "-f", key).CombinedOutput(); err != nil {
		t.Fatalf("ssh-keygen: %v: %s", err, out)
	}
	public, err := os.ReadFile(key + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	o, _, _ := options(paths)
	o.Daemon = daemon
	o.Env = append(os.Environ(), "VOGT_HOME="+filepath.Dir(paths.Data))
	o.Headless = &Owner{Email: "alice@example.org", Name: "Alice", PublicKey: strings.TrimSpace(string(public))}
	return o
}

// other waits until the worker is another process than pid.
func other(t *testing.T, c *Control, pid int) (s Status) {
	t.Helper()
	eventually(t, fmt.Sprintf("another worker than %d", pid), func() bool {
		var err error
		s, err = c.Status(t.Context())
		return err == nil && s.PID != pid
	})
	return s
}

// eventually waits until the condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(30 * time.Second)
	for !holds() {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

func parentOf(t *testing.T, pid int) int {
	t.Helper()
	out, err := exec.Command("ps", "-o", "ppid=", "-p", strconv.Itoa(pid)).Output()
	ppid, perr := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil || perr != nil {
		t.Fatalf("parent of %d: %v, %v", pid, err, perr)
	}
	return ppid
}

func TestRealDaemon(t *testing.T) {
	daemon := realDaemon(t)
	paths := home(t)
	o := realOptions(t, daemon, paths)
	if err := Up(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	c := NewControl(paths.Data)
	first, err := c.Status(t.Context())
	if err != nil || !first.SetUp || first.LogKey == "" {
		t.Fatalf("%+v, %v", first, err)
	}

	t.Run("a killed worker comes back on the same address", func(t *testing.T) {
		syscall.Kill(first.PID, syscall.SIGKILL)
		if second := other(t, c, first.PID); second.Issuer != first.Issuer || second.LogKey != first.LogKey {
			t.Fatalf("%+v after %+v", second, first)
		}
	})
	t.Run("SIGHUP replaces the worker", func(t *testing.T) {
		before, err := c.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		syscall.Kill(parentOf(t, before.PID), syscall.SIGHUP)
		if after := other(t, c, before.PID); after.Issuer != first.Issuer {
			t.Fatalf("%+v after %+v", after, before)
		}
	})
	t.Run("up again", func(t *testing.T) {
		if err := Up(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("up while a killed worker is being replaced", func(t *testing.T) {
		before, err := c.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		// The parent stands still, so that the port is held and nobody answers.
		parent := parentOf(t, before.PID)
		syscall.Kill(parent, syscall.SIGSTOP)
		defer syscall.Kill(parent, syscall.SIGCONT)
		syscall.Kill(before.PID, syscall.SIGKILL)
		eventually(t, "nobody answers", func() bool { _, err := c.Status(t.Context()); return errors.Is(err, ErrNotRunning) })
		done := make(chan error, 1)
		again := o
		again.Listen = first.Listen
		go func() { done <- Up(t.Context(), again) }()
		eventually(t, "another vogtd finds the port taken", func() bool {
			text, err := os.ReadFile(logFile(paths.Data))
			return err == nil && strings.Contains(string(text), "in use by")
		})
		syscall.Kill(parent, syscall.SIGCONT)
		if err := <-done; err != nil {
			t.Fatalf("it did not wait: %v", err)
		}
		if after := other(t, c, before.PID); after.Issuer != first.Issuer || parentOf(t, after.PID) != parent {
			t.Fatalf("%+v after %+v", after, before)
		}
	})
	t.Run("the port is taken for another home", func(t *testing.T) {
		theirs := realOptions(t, daemon, home(t))
		theirs.Listen = first.Listen
		err := Up(t.Context(), theirs)
		if code(err) != CodeUnavailable || !strings.Contains(err.Error(), "in use by") {
			t.Fatalf("got %d, %v", code(err), err)
		}
	})
	t.Run("the data are taken for another daemon", func(t *testing.T) {
		cmd := exec.Command(daemon, "--data", paths.Data, "--listen", "127.0.0.1:0")
		cmd.Env = o.Env
		out, err := cmd.CombinedOutput()
		if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != CodeNotYet {
			t.Fatalf("%v: %s", err, out)
		}
		if _, err := c.Status(t.Context()); err != nil {
			t.Fatalf("the first daemon suffered: %v", err)
		}
	})
	t.Run("what is refused as settings is told", func(t *testing.T) {
		theirs := realOptions(t, daemon, home(t))
		theirs.Bearer = "maybe"
		err := Up(t.Context(), theirs)
		if code(err) != CodeConfig || !strings.Contains(err.Error(), "maybe") {
			t.Fatalf("got %d, %v", code(err), err)
		}
	})
	t.Run("down", func(t *testing.T) {
		before, err := c.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		parent := parentOf(t, before.PID)
		if ran, err := Down(t.Context(), paths.Data); !ran || err != nil {
			t.Fatal(ran, err)
		}
		for _, pid := range []int{before.PID, parent} {
			// Down waits for the port; what is left of the processes then ends.
			eventually(t, fmt.Sprintf("the end of process %d", pid), func() bool {
				err := syscall.Kill(pid, 0)
				if err != nil && !errors.Is(err, syscall.ESRCH) {
					t.Fatal(err)
				}
				return err != nil || zombie(pid)
			})
		}
	})
}

// zombie reports whether a process has ended and is only not collected yet.
func zombie(pid int) bool {
	out, _ := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(pid)).Output()
	return strings.HasPrefix(strings.TrimSpace(string(out)), "Z") || len(out) == 0
}

// TestRealSetUpLink: the real control socket plays the dialogue's part up to
// the page, which is the browser's.
func TestRealSetUpLink(t *testing.T) {
	paths := home(t)
	o := realOptions(t, realDaemon(t), paths)
	o.Headless, o.NoWait = nil, true
	if err := Up(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	c := NewControl(paths.Data)
	link, err := c.NewLink(t.Context())
	if err != nil || !strings.Contains(link.URL, "vogt.localhost") || time.Until(time.Unix(link.ExpiresAt, 0)) < 9*time.Minute {
		t.Fatalf("%+v, %v", link, err)
	}
	if s, err := c.Setup(t.Context(), 0); err != nil || s.State != "offered" {
		t.Fatalf("%+v, %v", s, err)
	}
	var no *refused
	if _, err := c.Digits(t.Context(), "0000"); !errors.As(err, &no) || no.Hint == "" {
		t.Fatalf("digits before a page: %v", err)
	}
}
