package confine

import (
	"runtime"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"vogt/internal/execution/confine/plan"
)

// TestStartWithoutClone3 makes a whole box where a filter leaves out the call by which
// the helper is started as a rule, as filters of containers do.
func TestStartWithoutClone3(t *testing.T) {
	b := newBox(t)
	b.must("true") // with it
	type result struct {
		output string
		out    Outcome
		err    error
	}
	ended := make(chan result)
	go func() {
		runtime.LockOSThread() // and it ends with its filter
		var r result
		if r.err = withoutClone3(); r.err == nil {
			r.output, r.out, r.err = b.run("cat /proc/1/comm; grep CapEff /proc/self/status; ls /proc/self/fd | wc -l")
		}
		ended <- r
	}()
	r := <-ended
	const want = "vogt-confine\nCapEff:\t0000000000000000\n4\n"
	if r.err != nil || r.out.Report.Level != plan.Full || r.output != want {
		t.Errorf("got %q, %+v, %v, want %q", r.output, r.out, r.err, want)
	}
}

// withoutClone3 installs a filter on this thread under which there is no clone3.
func withoutClone3() error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	code := [...]unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS}, // the number of the call
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: uint32(unix.SYS_CLONE3)},
		{Code: unix.BPF_RET | unix.BPF_K, K: 0x00050000 | uint32(unix.ENOSYS)},
		{Code: unix.BPF_RET | unix.BPF_K, K: 0x7fff0000},
	}
	program := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
	if _, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, 1, 0, uintptr(unsafe.Pointer(&program))); errno != 0 {
		return errno
	}
	return nil
}
