package confine

import (
	"errors"
	"os"
	"runtime"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"vogt/internal/execution/confine/confinetest"
	"vogt/internal/execution/confine/plan"
)

// TestLandlockVersions runs boxes on kernels that say other versions of Landlock
// (57): what is reported is what the kernel says, and what it then cannot hold is no
// box.
func TestLandlockVersions(t *testing.T) {
	have, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, 1)
	if errno != 0 {
		t.Skipf("this kernel has no Landlock: %v", errno)
	}
	for _, said := range []int{0, 1, 2, 3, 6, int(have), 9, 10, 1000} {
		for _, level := range []plan.Level{plan.Full, plan.Reduced} {
			b := newBox(t)
			b.request.Level = level
			b.request.Profile.Reduced = level == plan.Reduced
			b.request.Program, b.request.Argv = "/bin/sh", []string{"sh", "-c", "echo x > made"}
			out, err := underVersion(t, said, b.request)
			_, made := os.Lstat(b.workspace + "/made")
			// This kernel refuses rules that it does not know, so that a box of a
			// version beyond its own cannot stand.
			want := said >= 2 && said <= int(have)
			if level == plan.Reduced {
				want = want && said >= 6
			}
			_, refused := errors.AsType[*RefusedError](err)
			switch {
			case want && (err != nil || out.Report.Landlock != said || out.Report.Level != level || made != nil):
				t.Errorf("version %d, %s: %+v, %v", said, level, out, err)
			case !want && (!refused || made == nil || out.Report.Level != ""):
				t.Errorf("version %d, %s: it is not refused: %+v, %v", said, level, out, err)
			}
		}
	}
}

// underVersion runs a box from a thread whose questions for the version of Landlock
// are answered here (seccomp_unotify(2)).
func underVersion(t *testing.T, version int, r Request) (out Outcome, err error) {
	t.Helper()
	type result struct {
		out Outcome
		err error
	}
	listener, results := make(chan int), make(chan result, 1)
	go func() {
		runtime.LockOSThread() // for ever: the thread ends with the goroutine
		fd, err := answerVersion()
		listener <- fd
		if err != nil {
			results <- result{err: err}
			return
		}
		out, err := Run(confinetest.Program(t, helperPackage), r, Streams{nil, nil, os.Stderr})
		results <- result{out, err}
	}()
	fd := <-listener
	if fd < 0 {
		t.Fatal((<-results).err)
	}
	stop, stopped, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stop.Close()
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		// struct seccomp_notif, and struct seccomp_notif_resp
		var question [80]byte
		for {
			poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}, {Fd: int32(stop.Fd())}}
			if _, err := unix.Poll(poll, -1); err != nil && !errors.Is(err, unix.EINTR) || poll[1].Revents != 0 {
				return
			}
			question = [80]byte{}
			if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), 0xc0502100, uintptr(unsafe.Pointer(&question))); errno != 0 {
				continue // who asked is gone
			}
			answer := struct {
				id    uint64
				value int64
				errno int32
				flags uint32
			}{id: *(*uint64)(unsafe.Pointer(&question)), value: int64(version)}
			if version == 0 {
				answer.errno = -int32(unix.EOPNOTSUPP)
			}
			_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(fd), 0xc0182101, uintptr(unsafe.Pointer(&answer))) // who asked is gone, if it fails
		}
	}()
	got := <-results
	stopped.Close()
	<-answered
	unix.Close(fd)
	return got.out, got.err
}

// answerVersion installs a filter on this thread by which the question for the
// version goes to the descriptor that it returns.
func answerVersion() (int, error) {
	const load, equal, ret = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, unix.BPF_RET | unix.BPF_K
	const permit, ask = 0x7fff0000, 0x7fc00000
	code := [...]unix.SockFilter{
		{Code: load, K: 0}, // the number of the call
		{Code: equal, Jf: 3, K: unix.SYS_LANDLOCK_CREATE_RULESET},
		{Code: load, K: 32}, // the flags
		{Code: equal, Jf: 1, K: 1},
		{Code: ret, K: ask},
		{Code: ret, K: permit},
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return -1, err
	}
	program := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
	fd, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, 1, 1<<3, uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return -1, errno
	}
	return int(fd), nil
}
