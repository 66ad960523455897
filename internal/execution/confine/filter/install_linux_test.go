package filter

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// The test binary is also the processes that install filters, since a filter is
// for good. The first variable names an attempt, the second one says with what.
const (
	attemptVariable = "VOGT_FILTER_ATTEMPT"
	guardVariable   = "VOGT_FILTER_GUARD"

	unguarded = "nothing"
	guarded   = "filter"
)

func TestMain(m *testing.M) {
	if name := os.Getenv(attemptVariable); name != "" {
		os.Exit(child(name, os.Getenv(guardVariable) == guarded))
	}
	os.Exit(m.Run())
}

// An attempt is made twice, in processes of its own: first without a filter, to
// show that the kernel permits it here, then with one.
type attempt struct {
	name    string
	options Options
	bare    string // the outcome without the filter
	want    string // the outcome with it, if it is another one
	needs   string // what not every system has, and bare rests on
	root    bool   // only root can show it
	try     func(guard) error
}

// ok is the outcome of what works. An outcome else is the name of an error, of
// the signal that ended the process, or "exit" and the code of another program
// that the process became.
const ok = "ok"

// A guard installs the filter of an attempt, or does nothing.
type guard struct {
	install bool
	program Program
}

// thread is for the calling thread.
func (g guard) thread() error { return g.with(Install) }

// process is for all threads.
func (g guard) process() error { return g.with(InstallAll) }

func (g guard) with(install func(Program) error) error {
	if !g.install {
		return nil
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return setUp(err)
	}
	return setUp(install(g.program))
}

// setUpError is a failure before the attempt.
type setUpError struct{ err error }

func (setUpError) prefix() string { return "before the attempt: " }

func (e setUpError) Error() string { return e.prefix() + e.err.Error() }

func setUp(err error) error {
	if err == nil {
		return nil
	}
	return setUpError{err}
}

// child makes an attempt and prints the outcome.
func child(name string, install bool) int {
	runtime.LockOSThread()
	all := append(attempts(), attempt{name: "sweep", try: trySweep})
	i := slices.IndexFunc(all, func(a attempt) bool { return a.name == name })
	if i < 0 {
		fmt.Println("there is no such attempt")
		return 1
	}
	arch, err := Native()
	if err != nil {
		fmt.Println(err)
		return 1
	}
	program, err := Build(arch, all[i].options)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println(outcome(all[i].try(guard{install, program})))
	return 0
}

func outcome(err error) string {
	if err == nil {
		return ok
	}
	if before := (setUpError{}); errors.As(err, &before) {
		return before.Error()
	}
	if errno := syscall.Errno(0); errors.As(err, &errno) {
		return unix.ErrnoName(errno)
	}
	return err.Error()
}

// user is who makes attempts.
type user struct {
	name       string
	root       bool
	credential *syscall.Credential
}

// users are root and nobody, or whoever runs the test.
func users() []user {
	if os.Geteuid() != 0 {
		return []user{{name: "user"}}
	}
	const nobody = 65534
	return []user{{name: "root", root: true}, {name: "nobody", credential: &syscall.Credential{Uid: nobody, Gid: nobody}}}
}

// make starts the process of an attempt and returns the outcome.
func (u user) make(t *testing.T, name, with string) string {
	t.Helper()
	cmd := exec.Command("/proc/self/exe") // which nobody can start wherever it lies
	cmd.Dir = "/"
	cmd.Env = []string{attemptVariable + "=" + name, guardVariable + "=" + with, "PATH=/usr/bin:/bin", "GOTRACEBACK=single"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Credential: u.credential, Pdeathsig: syscall.SIGKILL}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	runtime.LockOSThread() // the signal is sent when the thread ends
	defer runtime.UnlockOSThread()
	out, err := cmd.Output()
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			return unix.SignalName(status.Signal())
		}
		if len(out) == 0 && stderr.Len() == 0 {
			return fmt.Sprintf("exit %d", exit.ExitCode())
		}
	}
	if err != nil {
		t.Fatalf("%s with %s: %v\n%s%s", name, with, err, out, stderr.Bytes())
	}
	return strings.TrimSpace(string(out))
}

func TestInstalled(t *testing.T) {
	for _, u := range users() {
		for _, a := range attempts() {
			if a.root && !u.root {
				continue
			}
			t.Run(u.name+"/"+a.name, func(t *testing.T) {
				bare, got := u.make(t, a.name, unguarded), u.make(t, a.name, guarded)
				if bare != a.bare && a.needs == "" {
					t.Fatalf("without the filter: %s, want %s", bare, a.bare)
				}
				unprepared := bare != a.bare && strings.HasPrefix(bare, setUpError{}.prefix())
				if want := cmp.Or(a.want, bare); got != want && !unprepared {
					t.Errorf("%s, want %s", got, want)
				}
				if bare != a.bare {
					t.Skipf("without the filter: %s, not %s; it needs %s", bare, a.bare, a.needs)
				}
			})
		}
	}
}

// Attempts have different names, and what is to fail does so because of the
// filter.
func TestAttempts(t *testing.T) {
	seen := make(map[string]bool)
	for _, a := range attempts() {
		if seen[a.name] {
			t.Errorf("there are two attempts %s", a.name)
		}
		seen[a.name] = true
		if a.bare == a.want {
			t.Errorf("%s does not show the filter", a.name)
		}
	}
}

// The kernel and the interpreter of these tests say the same about every call
// whose arguments do not matter and which is not allowed.
func TestRefusedByTheKernel(t *testing.T) {
	for _, u := range users() {
		t.Run(u.name, func(t *testing.T) {
			a, err := Native()
			if err != nil {
				t.Skip(err)
			}
			bare, filtered := u.sweep(t, unguarded), u.sweep(t, guarded)
			numbers := headerOf(t, a).calls()
			var tried int
			var alike []string
			for call := range numbers {
				want, decides := flat(call, Options{})
				if !decides || want == "allow" || untried(call) {
					continue
				}
				tried++
				if filtered[call] != want {
					t.Errorf("%s: %s, want %s", call, filtered[call], want)
				}
				if bare[call] == want {
					alike = append(alike, call)
				}
			}
			if tried != len(filtered) || tried != len(bare) || tried < 80 {
				t.Errorf("of %d calls, %d were made and %d without a filter", tried, len(filtered), len(bare))
			}
			slices.Sort(alike)
			t.Logf("%d calls; without the filter these have the same result here: %v", tried, alike)
			if u.root && len(alike) > tried/2 {
				t.Skip("a filter around these tests leaves little to show")
			}
		})
	}
}

// sweep returns the outcomes of all such calls.
func (u user) sweep(t *testing.T, with string) map[string]string {
	t.Helper()
	outcomes := make(map[string]string)
	for line := range strings.Lines(u.make(t, "sweep", with)) {
		if call, outcome, found := strings.Cut(strings.TrimSpace(line), " "); found {
			outcomes[call] = outcome
		}
	}
	return outcomes
}

// untried says which calls have effects, or could, even with arguments that are
// all wrong.
func untried(call string) bool {
	return slices.Contains([]string{"vhangup", "reboot", "init_module", "kexec_load", "kexec_file_load", "clone3"}, call)
}

// trySweep makes all calls that the filter refuses or lacks, with arguments that
// the kernel cannot take: descriptors, processes, flags and addresses that do not
// exist.
func trySweep(g guard) error {
	var sweep []call
	for _, c := range calls { // whose numbers are tested elsewhere
		want, decides := flat(c.name, Options{})
		if decides && want != "allow" && !untried(c.name) && c.number(g.program.Arch()) != none {
			sweep = append(sweep, c)
		}
	}
	if err := g.thread(); err != nil {
		return err
	}
	const wrong = ^uintptr(0)
	for _, c := range sweep {
		_, _, errno := unix.RawSyscall6(uintptr(c.number(g.program.Arch())), wrong, wrong, wrong, wrong, wrong, wrong)
		fmt.Println(c.name, outcome(orNil(errno)))
	}
	return nil
}

// orNil makes an error of an error number.
func orNil(errno syscall.Errno) error {
	if errno == 0 {
		return nil
	}
	return errno
}
