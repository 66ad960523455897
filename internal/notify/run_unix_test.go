//go:build unix

package notify

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

const never = time.Minute // a limit that no test reaches

// notifier runs command in sh; $0 is the path of a folder to write to.
func notifier(t *testing.T, limit time.Duration, script string) (*Notifier, string) {
	t.Helper()
	dir := t.TempDir()
	n, err := New(shell(t, dir, limit, script))
	if err != nil {
		t.Fatal(err)
	}
	return n, dir
}

func shell(t *testing.T, dir string, limit time.Duration, script string) Config {
	t.Helper()
	self, err := Self()
	if err != nil {
		t.Fatal(err)
	}
	return Config{Command: []string{"sh", "-c", script, dir}, Limit: limit, Supervisor: self, Getenv: os.Getenv, Log: slog.New(slog.NewTextHandler(t.Output(), nil))}
}

// eventually waits until condition holds, and fails the test long after every
// machine should have got there.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	giveUp := time.After(30 * time.Second)
	for !condition() {
		select {
		case <-tick.C:
		case <-giveUp:
			t.Fatalf("%s: still not so after 30 s", what)
		}
	}
}

// content returns a file's content once it is there.
func content(t *testing.T, path string) string {
	t.Helper()
	var data []byte
	eventually(t, path+" is written", func() bool {
		var err error
		data, err = os.ReadFile(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		return err == nil
	})
	return strings.TrimSpace(string(data))
}

func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)) // a zombie waits for its parent only
	if err != nil {
		return true
	}
	_, after, _ := strings.Cut(string(state), ") ")
	return !strings.HasPrefix(after, "Z")
}

// stubborn forks children and a grandchild, all of which ignore signals, writes
// their process ids and the supervisor's, and does not end.
const stubborn = `
trap "" TERM HUP INT QUIT
deaf() { trap "" TERM HUP INT QUIT; while :; do sleep 0.05; done; }
deaf & a=$!
(deaf & echo $! > "$0/grandchild"; deaf) & b=$!
while [ ! -s "$0/grandchild" ]; do sleep 0.01; done
echo "$PPID $$ $a $b $(cat "$0/grandchild")" > "$0/part"
mv "$0/part" "$0/pids"
`

// processes returns the supervisor's id and those of the command's processes,
// once the command has written them.
func processes(t *testing.T, dir string) (supervisor int, command []int) {
	t.Helper()
	pids := strings.Fields(content(t, filepath.Join(dir, "pids")))
	if len(pids) != 5 {
		t.Fatalf("%d process ids, want 5", len(pids))
	}
	all := make([]int, len(pids))
	for i, field := range pids {
		var err error
		if all[i], err = strconv.Atoi(field); err != nil {
			t.Fatal(err)
		}
	}
	return all[0], all[1:]
}

// withLimit calls run with a fresh folder and a limit, which is doubled until
// the command has come far enough in it to write its process ids: how long that
// takes depends on what else the machine does.
func withLimit(t *testing.T, run func(dir string, limit time.Duration)) (dir string) {
	t.Helper()
	for limit := 500 * time.Millisecond; limit < never; limit *= 2 {
		dir := t.TempDir()
		run(dir, limit)
		if _, err := os.Stat(filepath.Join(dir, "pids")); err == nil {
			return dir
		}
	}
	t.Fatal("the command never came to write its process ids")
	return ""
}

// settled waits until the supervisor has ended, or the command has written its
// process ids and is about to be killed.
func settled(t *testing.T, dir string, limit time.Duration) {
	t.Helper()
	over := time.After(2 * limit)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-over:
			return
		case <-tick.C:
			if _, err := os.Stat(filepath.Join(dir, "pids")); err == nil {
				return
			}
		}
	}
}

func gone(t *testing.T, pids ...int) {
	t.Helper()
	for _, pid := range pids {
		eventually(t, fmt.Sprintf("process %d has ended", pid), func() bool { return !alive(pid) })
	}
}

func TestLimitEndsTheWholeGroup(t *testing.T) {
	for name, script := range map[string]string{
		"the command stays":        stubborn + "deaf",
		"the command ends earlier": stubborn + "exit 0",
	} {
		t.Run(name, func(t *testing.T) {
			dir := withLimit(t, func(dir string, limit time.Duration) {
				n, err := New(shell(t, dir, limit, script))
				if err != nil {
					t.Fatal(err)
				}
				result, err := n.Test(t.Context(), Card{})
				if err != nil {
					t.Fatal(err)
				}
				if !result.TimedOut || result.OK() {
					t.Errorf("got %+v", result)
				}
			})
			_, command := processes(t, dir)
			for _, pid := range command {
				if alive(pid) {
					t.Errorf("process %d lives although the result is there", pid)
				}
			}
		})
	}
}

// The process that started the command is killed at once; the limit must hold
// all the same. This process is another one with the same code.
func TestLimitHoldsWithoutParent(t *testing.T) {
	const name, limitName = "VOGT_TEST_PARENT", "VOGT_TEST_LIMIT"
	if dir := os.Getenv(name); dir != "" {
		limit, err := time.ParseDuration(os.Getenv(limitName))
		if err != nil {
			t.Fatal(err)
		}
		n, err := New(shell(t, dir, limit, stubborn+"deaf"))
		if err != nil {
			t.Fatal(err)
		}
		n.Test(context.Background(), Card{}) // it does not get to see the result
		return
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := withLimit(t, func(dir string, limit time.Duration) {
		parent := exec.Command(exe, "-test.run=^"+t.Name()+"$")
		parent.Env = append(os.Environ(), name+"="+dir, limitName+"="+limit.String())
		parent.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := parent.Start(); err != nil {
			t.Fatal(err)
		}
		settled(t, dir, limit)
		// As a terminal or a service manager would: the whole group.
		if err := syscall.Kill(-parent.Process.Pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		parent.Wait() // its error is that it was killed
	})
	supervisor, command := processes(t, dir)
	gone(t, append(command, supervisor)...)
}

func TestDetach(t *testing.T) {
	dir := withLimit(t, func(dir string, limit time.Duration) {
		n, err := New(shell(t, dir, limit, stubborn+"deaf"))
		if err != nil {
			t.Fatal(err)
		}
		if err := n.Detach(Card{}); err != nil {
			t.Fatal(err)
		}
		settled(t, dir, limit)
	})
	supervisor, command := processes(t, dir)
	gone(t, append(command, supervisor)...)
}

// A supervisor that is told to end, for example when the machine shuts down,
// takes the command along.
func TestSupervisorIsTerminated(t *testing.T) {
	n, dir := notifier(t, never, stubborn+"deaf")
	if err := n.Detach(Card{}); err != nil {
		t.Fatal(err)
	}
	supervisor, command := processes(t, dir)
	if err := syscall.Kill(supervisor, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	gone(t, append(command, supervisor)...)
}

func TestResults(t *testing.T) {
	tests := []struct {
		name, script string
		want         Result // without Duration
	}{
		{"success", "exit 0", Result{}},
		{"exit code and standard error", "echo why >&2; exit 3", Result{Exit: 3, Stderr: "why\n"}},
		{"killed by itself", "kill -9 $$", Result{Exit: 137}},
		{"a child that ends by itself is waited for", `(sleep 0.2; echo late >&2) & exit 0`, Result{Stderr: "late\n"}},
		{"much on standard error", "yes | head -c 300000 >&2; exit 1", Result{Exit: 1, Stderr: strings.Repeat("y\n", maxStderr/2)}},
		{"nothing to read, nowhere to write", `read x; echo "read $? $x"; exit 0`, Result{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			n, _ := notifier(t, never, tt.script)
			got, err := n.Test(t.Context(), Card{})
			if err != nil {
				t.Fatal(err)
			}
			if got.Duration <= 0 {
				t.Errorf("duration %s", got.Duration)
			}
			got.Duration = 0
			if got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

// What leaves the group on purpose is not waited for, not even for the standard
// error that it holds open.
func TestOtherGroupIsLeftAlone(t *testing.T) {
	setsid, err := exec.LookPath("setsid")
	if err != nil {
		t.Skip("there is no setsid to leave a group with")
	}
	n, dir := notifier(t, never, setsid+` sh -c 'echo $$ > "$0/part"; mv "$0/part" "$0/pid"; exec sleep 60' "$0" & exit 0`)
	result, err := n.Test(t.Context(), Card{})
	if err != nil || !result.OK() {
		t.Fatalf("got %+v, %v", result, err)
	}
	pid, err := strconv.Atoi(content(t, filepath.Join(dir, "pid")))
	if err != nil {
		t.Fatal(err)
	}
	if !alive(pid) {
		t.Error("it was killed")
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

func TestCommandThatIsNotThere(t *testing.T) {
	self, err := Self()
	if err != nil {
		t.Fatal(err)
	}
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for command, want := range map[string]string{
		"vogt-no-such-program":       `the command "vogt-no-such-program" is not in any folder of PATH (/bin:/usr/bin); install it or change notify.command`,
		"/nowhere/vogt-no-such-file": "the command cannot be started: ",
		text:                         "permission denied; change notify.command",
	} {
		n, err := New(Config{Command: []string{command}, Limit: never, Supervisor: self, Getenv: func(name string) string {
			return map[string]string{"PATH": "/bin:/usr/bin"}[name]
		}})
		if err != nil {
			t.Fatal(err)
		}
		result, err := n.Test(t.Context(), Card{})
		if err != nil || result.OK() || !strings.Contains(result.Problem, want) {
			t.Errorf("%s: got %+v, %v, want %q", command, result, err, want)
		}
	}
}

func TestSupervisorThatIsNone(t *testing.T) {
	for supervisor, want := range map[string]string{
		"/nowhere/vogtd": "the supervisor cannot be started",
		"/bin/true":      `does this binary know "notify-run"?`,
	} {
		n, err := New(Config{Command: []string{"true"}, Limit: never, Supervisor: []string{supervisor}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = n.Test(t.Context(), Card{})
		if err == nil || !strings.Contains(err.Error(), want) && !strings.Contains(err.Error(), "does not take its order") {
			t.Errorf("%s: got %v, want %q", supervisor, err, want)
		}
	}
}

// Whatever an agent writes into its request reaches the command as a value, and
// nothing reads it as a command on the way.
func TestValuesStayInert(t *testing.T) {
	n, dir := notifier(t, never, `cd "$0" && for v in "$VOGT_SUMMARY" "$VOGT_AGENT" "$VOGT_GRANT_ID" "$VOGT_OWNER"; do printf '%s\n' "$v"; done >&2; ls >&2`)
	attack := "$(touch owned) `touch owned`; touch owned | touch owned & ' \" \\ *"
	result, err := n.Test(t.Context(), Card{Summary: attack, Agent: "-rf", GrantID: "=x", Owner: "a\nLD_PRELOAD=/evil.so"})
	if err != nil {
		t.Fatal(err)
	}
	want := attack + "\n-rf\n=x\na<U+000A>LD_PRELOAD=/evil.so\n"
	if result.Stderr != want {
		t.Errorf("got  %q\nwant %q", result.Stderr, want)
	}
	if _, err := os.Stat(filepath.Join(dir, "owned")); err == nil {
		t.Error("the value was executed")
	}
}

// Arguments are readable by every user, so no value may be in those of the
// supervisor or the command.
func TestNothingInArguments(t *testing.T) {
	if _, err := os.Stat("/proc/self/cmdline"); err != nil {
		t.Skip("this system has no /proc to look at arguments")
	}
	n, _ := notifier(t, never, `cat /proc/$$/cmdline /proc/$PPID/cmdline >&2; fds=$(readlink /proc/$$/fd/0 /proc/$$/fd/1); echo "$fds" >&2`)
	n.config.ShowCommand = true
	card := Card{GrantID: "CARD1", ApproveURL: "CARD2", Agent: "CARD3", Owner: "CARD4", Risk: "CARD5", Summary: "CARD6", Command: "CARD7"}
	result, err := n.Test(t.Context(), card)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(result.Stderr, "CARD") || !strings.Contains(result.Stderr, Subcommand) {
		t.Errorf("the arguments are %q", result.Stderr)
	}
	if !strings.HasSuffix(result.Stderr, "/dev/null\n/dev/null\n") {
		t.Errorf("standard input and output are not the null device: %q", result.Stderr)
	}
}

func TestRun(t *testing.T) {
	var log syncBuffer
	dir := t.TempDir()
	config := shell(t, dir, never, `touch "$0/$VOGT_GRANT_ID"; [ "$VOGT_GRANT_ID" != g3 ]`)
	config.Log = slog.New(slog.NewTextHandler(&log, nil))
	n, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	returned := make(chan struct{})
	go func() { n.Run(ctx); close(returned) }()
	const cards = 12
	for i := range cards {
		n.Send(Card{GrantID: fmt.Sprintf("g%d", i)})
	}
	eventually(t, "every command has run", func() bool {
		entries, err := os.ReadDir(dir)
		return err == nil && len(entries) == cards
	})
	eventually(t, "the failure is logged", func() bool { return log.String() != "" })
	cancel()
	<-returned
	if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "grant=g3") || !strings.Contains(got, "exit code 1") {
		t.Errorf("log: %s", got)
	}
}

// The end of the authority waits for no command, and none is begun after it.
func TestEndsWithContext(t *testing.T) {
	n, dir := notifier(t, never, stubborn+"deaf")
	ctx, cancel := context.WithCancel(t.Context())
	returned := make(chan struct{})
	go func() { n.Run(ctx); close(returned) }()
	n.Send(Card{})
	supervisor, command := processes(t, dir)
	cancel()
	<-returned
	if _, err := n.Test(ctx, Card{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if err := syscall.Kill(supervisor, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	gone(t, append(command, supervisor)...)
}
