package confinetest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The levels of boxes.
const (
	Full     = "full"    // namespaces, mounts, Landlock, capabilities, seccomp; only what is listed can be read
	Own      = "own"     // as full, and unix sockets may be made and reached in the box
	HostView = "host"    // as full, and what is not hidden can be read
	Bwrap    = "bwrap"   // as full, and the system's bwrap makes the namespaces; not for root
	Reduced  = "reduced" // without namespaces
)

// Command is what a runner runs.
type Command struct {
	Level string
	// Workspace is the one of the scene, by whichever of its names.
	Workspace string
	Home      string
	Argv      []string // Argv[0] is an absolute path; the box has to show it
	// Terminal says that standard input is the controlling terminal of this
	// process, which the command gets too. Otherwise it has none.
	Terminal bool
}

// Result is how a run ended.
type Result struct {
	Stdout []byte
	Exit   int
	// Reported are the changes that the box itself found after the run.
	Reported []string
	// Note is what else there is to say, for whoever reads a failure.
	Note string
}

// Runner runs a command in a box and returns when the box has ended. It may be
// called in another process than that of the test, with the same arguments. It
// must start the box from the goroutine that calls it.
type Runner func(t testing.TB, c Command) Result

// stopAfter bounds a run outside of a box.
const stopAfter = time.Minute

// bare runs a command without a box.
func bare(t testing.TB, c Command) Result {
	t.Helper()
	cmd := exec.Command(c.Argv[0], c.Argv[1:]...)
	cmd.Dir = c.Workspace
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: !c.Terminal, Pdeathsig: syscall.SIGKILL}
	if c.Terminal {
		cmd.Stdin = os.Stdin
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	runtime.LockOSThread() // the thread's end is that of the command
	defer runtime.UnlockOSThread()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	limit := time.AfterFunc(stopAfter, func() { _ = cmd.Process.Kill() })
	defer limit.Stop()
	_ = cmd.Wait() // the state says it
	return Result{Stdout: stdout.Bytes(), Exit: exitCode(cmd.ProcessState), Note: stderr.String()}
}

func exitCode(s *os.ProcessState) int {
	if w, ok := s.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return 128 + int(w.Signal())
	}
	return s.ExitCode()
}

// answer is what the probe prints.
type answer struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Errno  string `json:"errno"`
	Detail string `json:"detail"`
}

// word is the answer as the table says it: ok, an error's name, or held if no
// call was refused and nothing gained.
func (a answer) word() string {
	switch {
	case a.OK:
		return "ok"
	case a.Errno == "":
		return "held"
	}
	return a.Errno
}

// answered reads the answer of the probe from a run.
func answered(r Result) (answer, error) {
	var a answer
	for line := range bytes.Lines(r.Stdout) {
		if json.Unmarshal(line, &a) == nil && a.Name != "" {
			return a, nil
		}
	}
	return a, fmt.Errorf("the probe said nothing: exit code %d, output %q, %s", r.Exit, r.Stdout, r.Note)
}

// suite is one run of Run, for one user.
type suite struct {
	name   string // of the test that called Run
	run    Runner
	levels []string
}

// Run makes all attempts without a box and in boxes of the levels that the
// runner makes, as the user of this process. For root it does so again as user
// 1000, in a process of its own. The test program must call Main.
func Run(t *testing.T, levels []string, run Runner) {
	if runtime.GOARCH != "amd64" {
		t.Skip("the attempts are those of Linux on amd64")
	}
	if !jailed() {
		t.Fatal("as root, attempts are made in a jail only: call confinetest.Main in TestMain")
	}
	s := &suite{name: t.Name(), run: run, levels: levels}
	if once := os.Getenv(onceVariable); once != "" {
		s.once(t, once)
		return
	}
	if Closed() {
		levels = []string{Bwrap}
	} else {
		s.outside(t)
	}
	for _, level := range levels {
		t.Run(level, func(t *testing.T) {
			if level == Bwrap && os.Getuid() == 0 {
				t.Skip("root has what bwrap has; it is tried as an ordinary user")
			}
			if _, err := os.Stat(systemBwrap); level == Bwrap && err != nil {
				t.Skip("there is no " + systemBwrap)
			}
			s.inside(t, level)
			s.scenarios(t, level)
		})
	}
	if os.Getuid() == 0 {
		t.Run("user", func(t *testing.T) { s.asUser(t, false) })
		if slices.Contains(levels, Bwrap) {
			t.Run("user without namespaces", func(t *testing.T) {
				setuidBwrap(t)
				s.asUser(t, true)
			})
		}
	}
}

// systemBwrap is bubblewrap, where it is installed.
const systemBwrap = "/usr/bin/bwrap"

// setuidBwrap puts a copy of bubblewrap in its place, in this jail, that runs as
// root: so it is installed where users may not make namespaces.
func setuidBwrap(t *testing.T) {
	copied := filepath.Join(yard, sceneName+"bwrap")
	err := copyFile(systemBwrap, copied, 0o755)
	if errors.Is(err, os.ErrNotExist) {
		t.Skip("there is no " + systemBwrap)
	}
	if err == nil {
		err = errors.Join(unix.Chmod(copied, 0o755|unix.S_ISUID), unix.Mount(copied, systemBwrap, "", unix.MS_BIND, ""))
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(systemBwrap, 0) })
}

// user is who runs attempts that root starts and root does not make.
const user = 1000

// closedVariable is set for a user who may make no namespaces.
const closedVariable = "CONFINETEST_CLOSED"

// Closed reports whether the user of this process may make no namespaces.
func Closed() bool { return os.Getenv(closedVariable) != "" }

// asUser runs the test again as an ordinary user, who may make no namespaces if
// closed.
func (s *suite) asUser(t *testing.T, closed bool) {
	home := filepath.Join(yard, "user")
	run := filepath.Join(home, "run")
	if err := os.MkdirAll(run, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{home, run} {
		if err := os.Chown(name, user, user); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(home, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := s.again()
	if testing.Verbose() {
		cmd.Args = append(cmd.Args, "-test.v")
	}
	cmd.Dir = home
	cmd.Env = append(os.Environ(), "HOME="+home, "TMPDIR="+home, "XDG_RUNTIME_DIR="+run, giftsVariable+"="+gifts(t))
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}, Pdeathsig: syscall.SIGKILL}
	var out []byte
	var err error
	ran := make(chan struct{})
	go func() {
		defer close(ran)
		runtime.LockOSThread() // for ever: the thread keeps what is taken from it
		if closed {
			cmd.Env = append(cmd.Env, closedVariable+"=1")
			if err = filterNamespaces(); err != nil {
				return
			}
		}
		out, err = cmd.CombinedOutput()
	}()
	<-ran
	t.Logf("as user %d:\n%s", user, out)
	if err != nil {
		t.Errorf("as user %d: %v", user, err)
	}
}

// again is a command that runs only the test of this suite.
func (s *suite) again() *exec.Cmd {
	var parts []string
	for part := range strings.SplitSeq(s.name, "/") {
		parts = append(parts, "^"+regexp.QuoteMeta(part)+"$")
	}
	return exec.Command("/proc/self/exe", "-test.run="+strings.Join(parts, "/"), "-test.count=1")
}

// once runs one command, and prints how it ended as descriptor 3.
func (s *suite) once(t *testing.T, text string) {
	out := os.NewFile(3, "result")
	unix.CloseOnExec(3)
	var c Command
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		t.Fatal(err)
	}
	run := s.run
	if c.Level == "" {
		run = bare
	}
	if err := json.NewEncoder(out).Encode(run(t, c)); err != nil {
		t.Fatal(err)
	}
}

// start starts a process of its own that runs a command once. The result comes
// from the reader.
func (s *suite) start(t testing.TB, c Command, tty *os.File) (*exec.Cmd, *os.File, *bytes.Buffer) {
	t.Helper()
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	cmd := s.again()
	cmd.Env = append(os.Environ(), onceVariable+"="+string(text))
	cmd.ExtraFiles = []*os.File{w}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if tty != nil {
		cmd.Stdin = tty
		cmd.SysProcAttr.Setctty = true
	}
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		r.Close()
		t.Fatal(err)
	}
	return cmd, r, &output
}

// onTerminal runs a command in a process whose controlling terminal is that of
// the scene.
func (s *suite) onTerminal(t testing.TB, scene *Scene, c Command) Result {
	t.Helper()
	c.Terminal = true
	cmd, r, output := s.start(t, c, scene.tty.slave)
	defer r.Close()
	limit := time.AfterFunc(stopAfter, func() { _ = cmd.Process.Kill() })
	defer limit.Stop()
	var result Result
	data, readErr := io.ReadAll(r)
	if err := errors.Join(readErr, cmd.Wait(), json.Unmarshal(data, &result)); err != nil {
		t.Fatalf("run on a terminal: %v\n%s", err, output)
	}
	return result
}

// command is a run of the probe for a case.
func (s *Scene) command(level string, argv []string) Command {
	return Command{Level: level, Workspace: s.Workspace, Home: s.Home, Argv: append([]string{s.values["probe"]}, argv...)}
}

// try makes the attempt of a case in a scene of its own and returns the answer
// and what has changed.
func (s *suite) try(t testing.TB, c Case, level string, argv []string, scene *Scene) (answer, []string, Result) {
	t.Helper()
	command := scene.command(level, argv)
	before := scene.state(t)
	var result Result
	switch {
	case c.Terminal:
		result = s.onTerminal(t, scene, command)
	case level == "":
		result = bare(t, command)
	default:
		result = s.run(t, command)
	}
	after := scene.state(t)
	a, err := answered(result)
	if err != nil {
		t.Fatal(err)
	}
	return a, before.changes(after), result
}

// tally counts the attempts that could not be shown to work.
type tally struct {
	made  int
	unfit int // of another user
	not   []string
}

// outside makes every attempt without a box. It must succeed, or fail for the
// reason that the case names.
func (s *suite) outside(t *testing.T) {
	var count tally
	t.Run("bare", func(t *testing.T) {
		for _, c := range Cases() {
			if c.unfit(os.Getuid()) {
				count.unfit++
				continue
			}
			t.Run(c.name(), func(t *testing.T) { s.bare(t, c, &count) })
		}
	})
	t.Logf("user %d: %d attempts succeed without a box, %d are of other users, %d cannot succeed on this machine:\n%s",
		os.Getuid(), count.made, count.unfit, len(count.not), strings.Join(count.not, "\n"))
}

func (s *suite) bare(t *testing.T, c Case, count *tally) {
	scene := newScene(t)
	argv, missing := c.argv(scene)
	if missing != "" {
		count.not = append(count.not, c.Try+": this machine has no "+missing)
		return
	}
	a, changes, _ := s.try(t, c, "", argv, scene)
	if reason, ok := c.excused(a.word()); ok {
		count.not = append(count.not, fmt.Sprintf("%s: %s (%s)", c.Try, reason, strings.TrimSpace(a.word()+" "+a.Detail)))
		return
	}
	if !a.OK {
		t.Errorf("without a box, %q does not succeed: %s %s", c.Try, a.word(), a.Detail)
		return
	}
	count.made++
	want, _ := scene.expand(c.Seen)
	seen := slices.ContainsFunc(changes, func(line string) bool { return strings.HasPrefix(line, want+":") })
	if want != "" && !seen {
		t.Errorf("%q succeeds, and nothing is seen of it at %s; changed:\n%s", c.Try, want, strings.Join(changes, "\n"))
	}
	if want == "" && len(changes) > 0 {
		t.Errorf("%q changes what the table does not say:\n%s", c.Try, strings.Join(changes, "\n"))
	}
}

// inside makes every attempt in boxes of a level, as every user: who is no root
// outside may be one in a namespace.
func (s *suite) inside(t *testing.T, level string) {
	for _, c := range Cases() {
		if c.Who != users || os.Getuid() != 0 {
			t.Run(c.name(), func(t *testing.T) { s.boxed(t, c, level) })
		}
	}
}

func (s *suite) boxed(t *testing.T, c Case, level string) {
	scene := newScene(t)
	argv, missing := c.argv(scene)
	if missing != "" {
		t.Skipf("this machine has no %s", missing)
	}
	a, changes, result := s.try(t, c, level, argv, scene)
	if err := c.judge(level, a, changes, result.Reported); err != nil {
		t.Errorf("%q: %v", c.Try, err)
	}
}
