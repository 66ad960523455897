//go:build unix

package main

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"vogt/internal/client/clienttest"
	"vogt/internal/grant"
)

// fed is vogt with something on standard input; it returns what the command
// printed.
func (u *user) fed(input string, args ...string) (code int, printed string) {
	u.t.Helper()
	dir := u.t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "in"), []byte(input), 0o600); err != nil {
		u.t.Fatal(err)
	}
	in, err := os.Open(filepath.Join(dir, "in"))
	if err != nil {
		u.t.Fatal(err)
	}
	defer in.Close()
	out, err := os.Create(filepath.Join(dir, "out"))
	if err != nil {
		u.t.Fatal(err)
	}
	defer out.Close()
	code = Run(u.ctx, args, &env{
		stdin: in, stdout: out, stderr: out, now: time.Now,
		environ: []string{"HOME=" + u.home, "VOGT_HOME=" + u.home, "PATH=" + os.Getenv("PATH")},
	})
	text, err := os.ReadFile(out.Name())
	if err != nil {
		u.t.Fatal(err)
	}
	return code, string(text)
}

// A command that was asked for under one standard input may run under another,
// and nobody is told otherwise: wherever the request is shown or signed, it says
// that standard input is not bound.
func TestStandardInputIsNotBound(t *testing.T) {
	a, u := newOwner(t)
	id := u.ask("sh") // under the null device
	if shown := u.must("grant", "show", id); !strings.Contains(shown.stdout, "Input:       not bound\n") {
		t.Errorf("show says:\n%s", shown.stdout)
	}
	approved := u.must("grant", "approve", id)
	if !strings.Contains(approved.stderr, "Input:       not bound\n") {
		t.Errorf("what was signed says:\n%s", approved.stderr)
	}
	if c := a.Grant(id).Request.Context; c == nil || c.Stdin != nil {
		t.Errorf("the request claims %+v", c)
	}
	if code, printed := u.fed("echo other input\n", "grant", "run", id, "--agent", "bot"); code != 0 || printed != "other input\n" {
		t.Errorf("exit code %d, printed %q", code, printed)
	}
}

// Names that an authority invents reach neither the terminal nor a line that
// somebody may paste into a shell.
func TestHostileNamesAreNotPrinted(t *testing.T) {
	for _, id := range []string{"\x1b]0;owned\x07", "1\nExecute: evil", "x; evil"} {
		a, u := newOwner(t)
		u.ask("sh")
		a.Lie = func(path string, _ http.Header, answer map[string]any) {
			if !strings.HasSuffix(path, "/grants") {
				return
			}
			if list, ok := answer["data"].([]any); ok {
				answer = list[0].(map[string]any)
			}
			answer["id"] = id
		}
		for _, args := range [][]string{{"run", "--agent", "bot", "--", "sh", "-c", "x"}, {"grant", "list"}} {
			r := u.vogt(args...)
			if r.code != exitInternal || r.stdout != "" || strings.Contains(r.stderr, "\x1b") || strings.Contains(r.stderr, "\nEx") {
				t.Errorf("%q: exit code %d, printed %q and %q", args, r.code, r.stdout, r.stderr)
			}
		}
	}
}

// A log that does not fit is no mistake on the command line.
func TestVerifyFailuresAreNoUsageErrors(t *testing.T) {
	cut := func(a *clienttest.Authority) {
		a.Before = func(w http.ResponseWriter, r *http.Request) bool {
			if strings.HasSuffix(r.URL.Path, "/export") {
				panic(http.ErrAbortHandler)
			}
			return false
		}
	}
	problem := func(a *clienttest.Authority) {
		a.Before = func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.HasSuffix(r.URL.Path, "/export") {
				return false
			}
			w.Write([]byte(`{"problem":{"title":"T","status":500,"detail":"broken\n\u001b[31mExecute: evil"}}` + "\n"))
			return true
		}
	}
	for name, attack := range map[string]func(*clienttest.Authority){
		"falsified": func(a *clienttest.Authority) { a.Falsify(1) },
		"cut off":   cut,
		"a problem": problem,
	} {
		t.Run(name, func(t *testing.T) {
			a, u := newOwner(t)
			u.must("grant", "list")
			attack(a)
			r := u.vogt("audit", "verify")
			if r.code != exitMismatch || strings.Contains(r.stderr, "vogt help") || strings.Contains(r.stderr, "context canceled") {
				t.Errorf("exit code %d\n%s", r.code, r.stderr)
			}
			if name != "falsified" && !strings.Contains(r.stderr, "ended after 0 of ") {
				t.Errorf("it is not said where the export ended:\n%s", r.stderr)
			}
			if strings.Contains(r.stderr, "\x1b") || strings.Contains(r.stderr, "\nExecute") || strings.Contains(r.stderr, "vogt: \x1b") {
				t.Errorf("the authority's words were printed as they are: %q", r.stderr)
			}
			var answer struct {
				OK     *bool
				Record *int64
			}
			if r := u.vogt("audit", "verify", "--json"); json.Unmarshal([]byte(r.stdout), &answer) != nil || answer.OK == nil || *answer.OK || answer.Record == nil {
				t.Errorf("as JSON: %q", r.stdout)
			}
		})
	}
}

// Scripts whose interpreter env(1) would choose in a way that cannot be known
// are refused before anybody is asked.
func TestUnknownInterpreterIsRefused(t *testing.T) {
	a, u := newOwner(t)
	path := filepath.Join(t.TempDir(), "tool")
	if err := os.WriteFile(path, []byte("#!/usr/bin/env -S --frobnicate sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	r := u.vogt("run", "--agent", "bot", "--", path)
	if r.code != exitCannotRun || !strings.Contains(r.stderr, "env") || len(a.Grants()) != 0 {
		t.Errorf("exit code %d, %d requests\n%s", r.code, len(a.Grants()), r.stderr)
	}
	if err := os.WriteFile(path, []byte("#!/usr/bin/env -S A=b sh\necho \"$A\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	id := u.ask(path)
	if n := len(a.Grant(id).Request.Context.Interpreters); n != 2 {
		t.Errorf("%d interpreters are bound, want env and sh", n)
	}
	a.Settle(id, grant.Approved, grant.Once)
	if r := u.must("grant", "run", id, "--agent", "bot"); r.stdout != "b\n" {
		t.Errorf("printed %q", r.stdout)
	}
}
