package osuser

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// as makes a command run under an id of the tests, in a process group of its
// own, and lets the kernel end it with the test.
func as(t *testing.T, id uint32, cmd *exec.Cmd) *exec.Cmd {
	t.Helper()
	if !testRange.has(id) {
		t.Fatalf("%d is no id of the tests", id)
	}
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: id, Gid: id}, Setpgid: true, Pdeathsig: syscall.SIGKILL}
	return cmd
}

// start starts a command and returns its first line, which says that it is
// ready. The process group ends with the test.
func start(t *testing.T, cmd *exec.Cmd) (line string) {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	// Pdeathsig means the thread that started the child.
	runtime.LockOSThread()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	group := cmd.Process.Pid
	t.Cleanup(func() {
		syscall.Kill(-group, syscall.SIGKILL)
		cmd.Wait()
		runtime.UnlockOSThread()
	})
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		t.Fatalf("%s ended before it was ready: %v", cmd.Path, lines.Err())
	}
	return lines.Text()
}

func sleeper(t *testing.T, id uint32) (pid int) {
	t.Helper()
	cmd := as(t, id, exec.Command("/bin/sh", "-c", "echo ready; read line; exit 0"))
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close() })
	start(t, cmd)
	return cmd.Process.Pid
}

func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.After(20 * time.Second); !is(); {
		select {
		case <-deadline:
			t.Fatalf("this never happened: %s", what)
		case <-time.After(time.Millisecond):
		}
	}
}

// agent is a user in a scratch machine, of whom no process runs.
func agent(t *testing.T) (Spec, User) {
	t.Helper()
	needShadow(t)
	spec := specFor(scratch(t), "coder")
	spec.Machine.Cgroup = t.TempDir() // none
	return spec, mustAdd(t, spec)
}

// running are the processes of an id, complete while they are stopped.
func running(t *testing.T, id uint32) (running, stopped []int) {
	t.Helper()
	all, err := present(id)
	if err != nil {
		t.Fatal(err)
	}
	return sorted(all)
}

// still is running for an id that is paused: it finds what escaped, too.
func still(t *testing.T, id uint32) (running, stopped []int) {
	t.Helper()
	all, err := new(host).processes(id)
	if err != nil {
		t.Fatal(err)
	}
	return sorted(all)
}

func sorted(all []process) (running, stopped []int) {
	for _, p := range all {
		if p.stopped {
			stopped = append(stopped, p.pid)
		} else {
			running = append(running, p.pid)
		}
	}
	return running, stopped
}

// patient bounds what is repeated until it succeeds.
func patient(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// chains is a program of which each process forks and ends, so that none is
// there for longer than a look takes.
func chains(t *testing.T, id uint32, n int) *exec.Cmd {
	t.Helper()
	if _, err := exec.LookPath("perl"); err != nil {
		t.Skip("perl is not installed (Debian: apt-get install perl-base)")
	}
	alive := filepath.Join(t.TempDir(), "alive")
	if err := errors.Join(os.WriteFile(alive, nil, 0o644), os.Chmod(filepath.Dir(alive), 0o755), os.Chmod(filepath.Dir(filepath.Dir(alive)), 0o755)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Remove(alive) })
	cmd := child(t, "chains", alive, fmt.Sprintf("%d %d", n, id))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd
}

// reaper starts such chains, and buries what they leave: the first process of a
// machine may take its time over that. They end by themselves when the test does,
// however it does.
func reaper() error {
	var n, id uint32
	if _, err := fmt.Sscan(os.Getenv(argVariable), &n, &id); err != nil || !testRange.has(id) {
		return fmt.Errorf("%d is no id of the tests: %w", id, err)
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return err
	}
	// The kernel hangs up a group whose leader was ending when it was paused.
	cmd := exec.Command("perl", "-e", `use POSIX; $SIG{HUP} = "IGNORE"; $| = 1; print "ready\n";
		my ($alive, $others) = @ARGV; my $end = time + 120;
		while (--$others > 0) { last unless fork }
		while (-e $alive && time < $end) { POSIX::_exit(0) if fork }`, os.Getenv(rootVariable), fmt.Sprint(n))
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: id, Gid: id}}
	if err := cmd.Start(); err != nil {
		return err
	}
	for {
		if _, err := unix.Wait4(-1, nil, 0, nil); err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

func TestPauseResumeKill(t *testing.T) {
	tests := []struct {
		name string
		// program prints one line when it is ready.
		program func(t *testing.T, id uint32) *exec.Cmd
		count   int // processes, or 0 if that changes
	}{
		{"a shell that waits", func(t *testing.T, id uint32) *exec.Cmd {
			return as(t, id, exec.Command("/bin/sh", "-c", "echo ready; while :; do read x || :; done </dev/zero"))
		}, 1},
		{"a tree", func(t *testing.T, id uint32) *exec.Cmd {
			return as(t, id, exec.Command("/bin/sh", "-c", "for i in 1 2 3 4; do (while :; do :; done) & done; echo ready; while :; do :; done"))
		}, 5},
		{"one that forks without end", func(t *testing.T, id uint32) *exec.Cmd {
			return as(t, id, exec.Command("/bin/sh", "-c", "echo ready; while :; do (:); done"))
		}, 0},
		{"a chain in which each forks and ends", func(t *testing.T, id uint32) *exec.Cmd { return chains(t, id, 1) }, 0},
		{"more such chains than there are processors", func(t *testing.T, id uint32) *exec.Cmd { return chains(t, id, runtime.NumCPU()+3) }, 0},
		{"one without its first thread", func(t *testing.T, id uint32) *exec.Cmd {
			cmd := child(t, "leader", "", "")
			open := filepath.Join(t.TempDir(), "test")
			data, err := os.ReadFile(cmd.Path)
			if err == nil { // the built test lies where others cannot look
				err = errors.Join(os.WriteFile(open, data, 0o755), os.Chmod(filepath.Dir(open), 0o755), os.Chmod(filepath.Dir(filepath.Dir(open)), 0o755))
			}
			if err != nil {
				t.Fatal(err)
			}
			cmd.Path = open
			return as(t, id, cmd)
		}, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			spec, u := agent(t)
			start(t, tt.program(t, u.UID))
			other := sleeper(t, u.UID+100) // of another agent: never touched
			if tt.count > 0 {
				if on, off := running(t, u.UID); len(on)+len(off) != tt.count {
					t.Fatalf("%d and %d processes, want %d", len(on), len(off), tt.count)
				}
			}
			rounds := 2
			if tt.count == 0 {
				rounds = 20 // what forks meanwhile would be missed at times only
			}
			for round := range rounds {
				if err := Pause(patient(t), spec); err != nil {
					t.Fatal(err)
				}
				on, off := still(t, u.UID)
				if len(on) > 0 || len(off) == 0 {
					t.Fatalf("round %d: paused, but %v run and %v are stopped", round, on, off)
				}
				if _, later := still(t, u.UID); fmt.Sprint(later) != fmt.Sprint(off) {
					t.Errorf("round %d: paused, but the processes %v became %v", round, off, later)
				}
				if err := Pause(patient(t), spec); err != nil {
					t.Errorf("Pause again: %v", err)
				}
				if err := Resume(patient(t), spec); err != nil {
					t.Fatal(err)
				}
				until(t, "a process runs again", func() bool { on, _ := running(t, u.UID); return len(on) > 0 || tt.count == 1 })
			}
			if err := errors.Join(Pause(patient(t), spec), Kill(patient(t), spec)); err != nil {
				t.Fatal(err)
			}
			if on, off := still(t, u.UID); len(on)+len(off) > 0 {
				t.Errorf("killed, but %v run and %v are stopped", on, off)
			}
			if on, _ := running(t, u.UID+100); len(on) != 1 || on[0] != other {
				t.Errorf("the process %d of another user was touched: %v", other, on)
			}
			if err := errors.Join(Resume(patient(t), spec), Kill(patient(t), spec)); err != nil {
				t.Errorf("without any process: %v", err)
			}
		})
	}
}

// leaderless ends its first thread while others go on: to ps it looks dead.
func leaderless() error {
	ready := make(chan struct{})
	go func() {
		runtime.LockOSThread()
		<-ready
		self := "/proc/self/task/" + strconv.Itoa(os.Getpid())
		for {
			if s, ok := statusOf(self); ok && s.state == 'Z' {
				break
			}
		}
		fmt.Println("ready")
		for {
			runtime.Gosched()
		}
	}()
	runtime.LockOSThread()
	if unix.Gettid() != os.Getpid() {
		return errors.New("this is not the first thread")
	}
	close(ready)
	unix.RawSyscall(unix.SYS_EXIT, 0, 0, 0)
	return nil
}

func TestRemoveEndsProcesses(t *testing.T) {
	spec, u := agent(t)
	sleeper(t, u.UID)
	if err := Pause(patient(t), spec); err != nil {
		t.Fatal(err)
	}
	mustRemove(t, spec, KeepHome)
	if on, off := still(t, u.UID); len(on)+len(off) > 0 {
		t.Errorf("removed, but %v run and %v are stopped", on, off)
	}
	// What comes to life under the id of a removed user is seen and ended.
	sleeper(t, u.UID)
	if wrong := brokenPromises(t.Context(), spec); len(wrong) != 1 || !strings.Contains(wrong[0], "still run") {
		t.Errorf("Check: %s", wrong)
	}
	if err := Kill(patient(t), spec); err != nil {
		t.Error(err)
	}
	if on, off := still(t, u.UID); len(on)+len(off) > 0 {
		t.Errorf("killed, but %v run and %v are stopped", on, off)
	}
	unknown := spec
	unknown.Name = "nobody-knows"
	for name, call := range map[string]func(context.Context, Spec) error{"Pause": Pause, "Resume": Resume, "Kill": Kill} {
		if err := call(t.Context(), unknown); !errors.Is(err, ErrUnknown) {
			t.Errorf("%s of an unknown agent: %v", name, err)
		}
	}
}

// A process that has left its user, as by a program with the set-uid bit, is
// still found by its real id.
func TestEveryKindOfIDCounts(t *testing.T) {
	tests := []struct {
		text string
		of   bool
		ok   bool
	}{
		{"Tgid:\t9\nState:\tS (sleeping)\nUid:\t5\t5\t5\t5\nShdPnd:\t0000000000000000\n", true, true},
		{"Tgid:\t9\nState:\tS (sleeping)\nUid:\t5\t0\t0\t0\nShdPnd:\t0000000000000000\n", true, true},
		{"Tgid:\t9\nState:\tS (sleeping)\nUid:\t0\t5\t0\t0\nShdPnd:\t0000000000000000\n", true, true},
		{"Tgid:\t9\nState:\tS (sleeping)\nUid:\t0\t0\t5\t0\nShdPnd:\t0000000000000000\n", true, true},
		{"Tgid:\t9\nState:\tS (sleeping)\nUid:\t0\t0\t0\t5\nShdPnd:\t0000000000000000\n", true, true},
		{"Tgid:\t9\nState:\tS (sleeping)\nUid:\t0\t0\t0\t0\nShdPnd:\t0000000000000000\n", false, true},
		{"Name:\tx\nTgid:\t9\nState:\tS (sleeping)\nUid:\t0\t0\t0\nShdPnd:\t0\n", false, false},
		{"Name:\tUid:\t5\nTgid:\t9\nState:\tS\nShdPnd:\t0\n", false, false},
		{"", false, false},
	}
	for _, tt := range tests {
		s, ok := parseStatus(tt.text)
		if ok != tt.ok || ok && s.of(5) != tt.of {
			t.Errorf("%q: %+v, %v", tt.text, s, ok)
		}
	}
}

// Freezing needs a real cgroup v2 hierarchy that root may make groups in.
func TestSliceIsFrozen(t *testing.T) {
	needShadow(t)
	var top string
	for _, h := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
		var stat unix.Statfs_t
		if unix.Statfs(h, &stat) != nil || stat.Type != unix.CGROUP2_SUPER_MAGIC {
			continue
		}
		top = filepath.Join(h, "vogt-osuser-test-"+strconv.Itoa(os.Getpid()))
		if err := os.Mkdir(top, 0o755); err != nil {
			t.Skipf("no group can be made in the cgroup v2 hierarchy: %v", err)
		}
		break
	}
	if top == "" {
		t.Skip("no cgroup v2 hierarchy is mounted")
	}
	made := top
	t.Cleanup(func() { os.Remove(made) })
	spec := specFor(scratch(t), "a-b")
	spec.Machine.Cgroup = top
	u := mustAdd(t, spec)
	var folders []string
	for _, part := range []string{"vogt.slice", "vogt-agent.slice", u.Slice, "one.scope"} {
		top = filepath.Join(top, part)
		folders = append(folders, top)
	}
	for _, f := range folders {
		if err := os.Mkdir(f, 0o755); err != nil {
			t.Skipf("no group can be made in the cgroup v2 hierarchy: %v", err)
		}
		t.Cleanup(func() { until(t, "the group is empty", func() bool { return os.Remove(f) == nil }) })
	}
	inside := as(t, u.UID, exec.Command("/bin/sh", "-c", "echo ready; while :; do (:); done"))
	group, err := os.Open(folders[3])
	if err != nil {
		t.Fatal(err)
	}
	defer group.Close()
	inside.SysProcAttr.UseCgroupFD, inside.SysProcAttr.CgroupFD = true, int(group.Fd())
	start(t, inside)
	outside := sleeper(t, u.UID)
	if wrong := brokenPromises(t.Context(), spec); len(wrong) != 1 || !strings.Contains(wrong[0], "outside of its slice") {
		t.Errorf("Check: %s", wrong)
	}
	for range 2 {
		if err := Pause(patient(t), spec); err != nil {
			t.Fatal(err)
		}
		if events := read(t, folders[2]+"/cgroup.events"); !strings.Contains(events, "frozen 1") {
			t.Errorf("paused, but the slice has %q", events)
		}
		if _, off := running(t, u.UID); len(off) != 1 || off[0] != outside {
			t.Errorf("stopped by signal are %v, want %d, which is not in the slice", off, outside)
		}
		if err := Resume(patient(t), spec); err != nil {
			t.Fatal(err)
		}
		if events := read(t, folders[2]+"/cgroup.events"); !strings.Contains(events, "frozen 0") {
			t.Errorf("resumed, but the slice has %q", events)
		}
		if _, off := running(t, u.UID); len(off) > 0 {
			t.Errorf("resumed, but stopped are %v", off)
		}
	}
	if err := errors.Join(Pause(patient(t), spec), Kill(patient(t), spec)); err != nil {
		t.Fatal(err)
	}
	if on, off := still(t, u.UID); len(on)+len(off) > 0 {
		t.Errorf("killed, but %v run and %v are stopped", on, off)
	}
}

func read(t *testing.T, p string) string {
	t.Helper()
	data, err := os.ReadFile(p)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
