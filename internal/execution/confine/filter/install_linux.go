package filter

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Install puts the calling thread, and all that it starts from now on, under the
// filter, for good. The caller has locked the goroutine to its thread, and set
// no_new_privs on it: otherwise a program with more privileges than the caller
// would run under a filter that it does not expect.
func Install(p Program) error { return install(p, 0) }

// InstallAll does what [Install] does, for all threads of the process, which get
// no_new_privs with it. It fails without effect if one of them has a filter that
// the calling thread has not.
func InstallAll(p Program) error { return install(p, unix.SECCOMP_FILTER_FLAG_TSYNC) }

func install(p Program, flags uintptr) error {
	native, err := Native()
	if err != nil {
		return err
	}
	if p.arch != native {
		return fmt.Errorf("a system call filter for %v cannot be installed on %v; build one for that", p.arch, native)
	}
	if len(p.code) == 0 {
		return errors.New("a system call filter without instructions cannot be installed; Build makes them")
	}
	runtime.LockOSThread() // at least from here to the end
	defer runtime.UnlockOSThread()
	switch privileges, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0); {
	case err != nil:
		return fmt.Errorf("installing a system call filter: whether the thread can gain privileges: %w", err)
	case privileges != 1:
		return errors.New("installing a system call filter: the thread can still gain privileges; set no_new_privs on it first")
	}
	code := make([]unix.SockFilter, len(p.code))
	for i, from := range p.code {
		code[i] = unix.SockFilter{Code: from.Op, Jt: from.Jt, Jf: from.Jf, K: from.K}
	}
	program := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
	thread, _, failed := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&program)))
	runtime.KeepAlive(code)
	switch {
	case failed == unix.ENOSYS || failed == unix.EINVAL:
		return fmt.Errorf("installing a system call filter: %w; the kernel needs CONFIG_SECCOMP_FILTER", failed)
	case failed != 0:
		return fmt.Errorf("installing a system call filter: %w", failed)
	case thread != 0:
		return fmt.Errorf("installing a system call filter: thread %d has another one already; install it before others do", thread)
	}
	return nil
}
