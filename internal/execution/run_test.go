//go:build unix

package execution

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// helperVariable turns the test binary into a program that runs its arguments
// as vogt does, so that signals and terminals can be tested on a real process.
const helperVariable = "EXECUTION_TEST_HELPER"

func TestMain(m *testing.M) {
	if os.Getenv(helperVariable) != "" {
		os.Exit(helper(os.Args[1:]))
	}
	os.Exit(m.Run())
}

// countInterrupts is the argument that makes the helper a child which counts.
const countInterrupts = "count-interrupts"

func helper(argv []string) int {
	if argv[0] == countInterrupts {
		return counter()
	}
	// As in vogt, an interrupt of the waiting before must not end the process
	// while the child runs.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	x := Executor{Environ: os.Environ(), Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
	b, err := x.Bind(argv, "")
	if err != nil {
		fmt.Fprintln(os.Stderr, "helper:", err)
		return 250
	}
	defer b.Close()
	outcome, err := x.Run(ctx, b)
	if err != nil {
		fmt.Fprintln(os.Stderr, "helper:", err)
		return 251
	}
	return outcome.Code
}

// counter prints every interrupt, and ends with 7 when it is asked to.
func counter() int {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	fmt.Println("ready")
	n := 0
	for s := range signals {
		if s == syscall.SIGTERM {
			fmt.Printf("term-%d\n", n)
			break
		}
		n++
		fmt.Printf("int-%d\n", n)
	}
	return 7
}

// helperCommand runs argv under the helper.
func helperCommand(t *testing.T, argv ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, argv...)
	cmd.Env = append(os.Environ(), helperVariable+"=1")
	return cmd
}

// capture runs argv in this process and returns what it printed.
func capture(t *testing.T, x Executor, argv []string, cwd string) (Outcome, string, error) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	x.Stdout = w
	b, err := x.Bind(argv, cwd)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	printed := make(chan string)
	go func() {
		text, _ := io.ReadAll(r)
		printed <- string(text)
	}()
	outcome, err := x.Run(context.Background(), b)
	w.Close()
	return outcome, <-printed, err
}

func TestRunPassesArgumentsUntouched(t *testing.T) {
	dir := tempDir(t)
	argv := []string{"sh", "-c", `for a; do printf '[%s]' "$a"; done; pwd`, "x", "", " ", "$HOME", "`id`", "a\nb", "'\"", "*", "ü", "-e"}
	outcome, printed, err := capture(t, Executor{Environ: os.Environ()}, argv, dir)
	if err != nil || outcome != (Outcome{}) {
		t.Fatal(outcome, err)
	}
	if want := "[][ ][$HOME][`id`][a\nb]['\"][*][ü][-e]" + dir + "\n"; printed != want {
		t.Errorf("printed %q, want %q", printed, want)
	}
}

func TestRunOutcomes(t *testing.T) {
	tests := []struct {
		script string
		want   Outcome
	}{
		{"exit 0", Outcome{}},
		{"exit 3", Outcome{Code: 3}},
		{"exit 255", Outcome{Code: 255}},
		{"kill -9 $$", Outcome{Code: 137, Signal: "SIGKILL"}},
		{"kill -TERM $$", Outcome{Code: 143, Signal: "SIGTERM"}},
	}
	for _, tt := range tests {
		got, _, err := capture(t, Executor{}, []string{"/bin/sh", "-c", tt.script}, "/")
		if err != nil || got != tt.want {
			t.Errorf("%s: %+v, %v; want %+v", tt.script, got, err, tt.want)
		}
	}
}

func TestRunKeepsOwnVariablesBack(t *testing.T) {
	x := Executor{Environ: []string{
		"PATH=" + os.Getenv("PATH"), "VOGT_HOME=/secret", "VOGT_AGENT=a", "VOGT_=x", "A=1", "NOT_VOGT_X=2", "vogt_x=3",
	}}
	_, printed, err := capture(t, x, []string{"env"}, "/")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(printed, "/secret") || strings.Contains(printed, "\nVOGT_") || strings.HasPrefix(printed, "VOGT_") {
		t.Errorf("the child sees Vogt's variables:\n%s", printed)
	}
	for _, want := range []string{"A=1\n", "NOT_VOGT_X=2\n", "vogt_x=3\n"} {
		if !strings.Contains(printed, want) {
			t.Errorf("the child does not see %q:\n%s", want, printed)
		}
	}
}

// A change of anything that was bound must prevent the start.
func TestRunRefusesWhatChanged(t *testing.T) {
	const body = "#!/usr/bin/env interp\necho ran\n"
	replace := func(t *testing.T, path string) { // another file under the same name
		t.Helper()
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		// Keeps the inode's number from being given out again.
		script(t, filepath.Dir(path), "occupied", "")
		script(t, filepath.Dir(path), filepath.Base(path), string(content))
	}
	rewrite := func(t *testing.T, path, content string) { // other bytes in the same file
		t.Helper()
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt([]byte(content), 0); err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	tests := []struct {
		name   string
		change func(t *testing.T, dir string)
		kind   Kind
	}{
		{"nothing", func(*testing.T, string) {}, Unexecutable},
		{"program replaced by the same bytes", func(t *testing.T, dir string) { replace(t, dir+"/tool") }, Changed},
		{"program rewritten", func(t *testing.T, dir string) { rewrite(t, dir+"/tool", strings.ToUpper(body)) }, Changed},
		{"program extended", func(t *testing.T, dir string) { rewrite(t, dir+"/tool", body+"#") }, Changed},
		{"program removed", func(t *testing.T, dir string) { os.Remove(dir + "/tool") }, NotFound},
		{"program no longer executable", func(t *testing.T, dir string) { os.Chmod(dir+"/tool", 0o644) }, Forbidden},
		{"interpreter replaced", func(t *testing.T, dir string) { replace(t, dir+"/interp") }, Changed},
		{"link leads elsewhere", func(t *testing.T, dir string) {
			os.Remove(dir + "/link")
			os.Symlink("other", dir+"/link")
		}, Changed},
		{"folder replaced", func(t *testing.T, dir string) {
			os.Rename(dir+"/work", dir+"/moved")
			mkdir(t, dir+"/work")
		}, Changed},
		{"folder removed", func(t *testing.T, dir string) { os.Remove(dir + "/work") }, NoFolder},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := tempDir(t)
			work := mkdir(t, dir+"/work")
			script(t, dir, "tool", body)
			script(t, dir, "other", body)
			if err := os.Link(dir+"/tool", dir+"/hard"); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink("tool", dir+"/link"); err != nil {
				t.Fatal(err)
			}
			interp, err := os.ReadFile("/bin/sh")
			if err != nil {
				t.Fatal(err)
			}
			script(t, dir, "interp", string(interp))

			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			x := Executor{Environ: []string{"PATH=" + dir}, Stdout: w}
			b, err := x.Bind([]string{"link"}, work)
			if err != nil {
				t.Fatal(err)
			}
			defer b.Close()
			tt.change(t, dir)
			_, err = x.Run(context.Background(), b)
			w.Close()
			printed, readErr := io.ReadAll(r)
			if readErr != nil {
				t.Fatal(readErr)
			}
			if tt.name == "nothing" {
				if err != nil || string(printed) != "ran\n" {
					t.Fatalf("unchanged: printed %q, %v", printed, err)
				}
				return
			}
			e, ok := errors.AsType[*Error](err)
			if !ok || e.Kind != tt.kind {
				t.Errorf("got %v, want kind %d (%s)", err, tt.kind, kindTexts[tt.kind])
			}
			if len(printed) > 0 {
				t.Errorf("it ran and printed %q", printed)
			}
		})
	}
}

func TestRunNotAfterCancel(t *testing.T) {
	dir := t.TempDir()
	b, err := Executor{}.Bind([]string{"/bin/sh", "-c", "echo >" + dir + "/ran"}, "/")
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := (Executor{}).Run(ctx, b); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the cancellation", err)
	}
	if _, err := os.Stat(dir + "/ran"); err == nil {
		t.Error("it ran")
	}
}

func TestRunScriptSeesItsName(t *testing.T) {
	dir := tempDir(t)
	script(t, dir, "tool", "#!/bin/sh\necho \"$0\"\n")
	for arg, want := range map[string]string{"./tool": "./tool", "tool": dir + "/tool"} {
		_, printed, err := capture(t, Executor{Environ: []string{"PATH=" + dir}}, []string{arg}, dir)
		if err != nil || printed != want+"\n" {
			t.Errorf("%s: $0 is %q, %v; want %q", arg, printed, err, want)
		}
	}
}

// Without a terminal, whoever signals the parent means the child.
func TestSignalsAreForwarded(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2} {
		t.Run(s.String(), func(t *testing.T) {
			cmd := helperCommand(t, "/bin/sh", "-c", fmt.Sprintf(
				`trap 'echo got; exit 42' %d; echo ready; while :; do sleep 0.02; done`, int(s)))
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			// A signal that is caught here has its default in the child, also
			// when the whole test run was started by nohup(1).
			caught := make(chan os.Signal, 1)
			signal.Notify(caught, s)
			defer signal.Stop(caught)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			buf := make([]byte, len("ready\n"))
			if _, err := io.ReadFull(out, buf); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Process.Signal(s); err != nil {
				t.Fatal(err)
			}
			rest, err := io.ReadAll(out)
			if err != nil {
				t.Fatal(err)
			}
			if cmd.Wait(); cmd.ProcessState.ExitCode() != 42 || string(rest) != "got\n" {
				t.Errorf("ended with %s, printed %q", cmd.ProcessState, rest)
			}
		})
	}
}

// What nohup ignores stays ignored in parent and child.
func TestIgnoredSignalsStayIgnored(t *testing.T) {
	self := helperCommand(t).Path
	cmd := exec.Command("/bin/sh", "-c", `trap '' HUP; exec "$@"`, "sh", self,
		"/bin/sh", "-c", `kill -HUP $PPID; kill -HUP $$; echo alive`)
	cmd.Env = append(os.Environ(), helperVariable+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil || !bytes.Equal(out, []byte("alive\n")) {
		t.Errorf("printed %q, %v", out, err)
	}
}

// While a person thinks, another program of the same name may appear earlier in
// PATH: env(1) would start that one.
func TestRunRefusesWhatEnvWouldFindInstead(t *testing.T) {
	dir := tempDir(t)
	first, second := mkdir(t, dir+"/first"), mkdir(t, dir+"/second")
	script(t, second, "tool", "#!/bin/sh\necho bound\n")
	path := script(t, dir, "s", "#!/usr/bin/env tool\n")
	x := Executor{Environ: []string{"PATH=" + first + ":" + second}}
	b, err := x.Bind([]string{path}, dir)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	script(t, first, "tool", "#!/bin/sh\necho evil >"+dir+"/evil\n")
	_, err = x.Run(context.Background(), b)
	if e, ok := errors.AsType[*Error](err); !ok || e.Kind != Changed {
		t.Errorf("got %v, want a refusal of the change", err)
	}
	if _, err := os.Stat(dir + "/evil"); err == nil {
		t.Error("what appeared in PATH was run")
	}
}
