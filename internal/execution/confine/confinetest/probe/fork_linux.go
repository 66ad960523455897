//go:build amd64

package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// step is a system call that a forked process makes.
type step struct {
	number uintptr
	args   [6]uintptr
}

// forked makes system calls in a process of its own, which has one thread and
// ends with the first failure. The process is made by clone with the flags.
//
// Between clone and exit_group the child runs nothing but raw system calls: the
// Go runtime does not know of it.
func forked(flags uintptr, steps ...step) error {
	pid, _, errno := unix.RawSyscall6(unix.SYS_CLONE, flags|uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if errno != 0 {
		return errno
	}
	if pid == 0 {
		perform(steps)
	}
	return reap(int(pid))
}

// perform makes the calls and ends the process.
func perform(steps []step) {
	for i := range steps {
		s := &steps[i]
		if _, _, errno := unix.RawSyscall6(s.number, s.args[0], s.args[1], s.args[2], s.args[3], s.args[4], s.args[5]); errno != 0 {
			unix.RawSyscall(unix.SYS_EXIT_GROUP, uintptr(errno), 0, 0)
		}
	}
	unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
}

// cloneArgs is struct clone_args in its first version.
type cloneArgs struct {
	flags, pidfd, childTID, parentTID, exitSignal, stack, stackSize, tls uint64
}

// forked3 is forked by clone3.
func forked3(flags uint64, steps ...step) error {
	args := cloneArgs{flags: flags, exitSignal: uint64(unix.SIGCHLD)}
	pid, _, errno := unix.RawSyscall(unix.SYS_CLONE3, uintptr(unsafe.Pointer(&args)), unsafe.Sizeof(args), 0)
	if errno != 0 {
		return errno
	}
	if pid == 0 {
		perform(steps)
	}
	return reap(int(pid))
}

func reap(pid int) error {
	var status unix.WaitStatus
	for {
		_, err := unix.Wait4(pid, &status, unix.WALL, nil)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return err
		}
		break
	}
	switch {
	case status.Signaled():
		return fmt.Errorf("killed by %s: %w", unix.SignalName(status.Signal()), errHeld)
	case status.ExitStatus() != 0:
		return syscall.Errno(status.ExitStatus())
	}
	return nil
}

// int80 makes a system call by the door of 32-bit programs.
func int80(number, b, c, d uint32) int32

// Numbers of system calls of i386.
const (
	i386Ptrace = 26
	i386Socket = 359
)

// x32 is the bit by which calls of the x32 ABI are told apart.
const x32 = 0x40000000

// child makes a call that may be punished by death, and prints its error
// number.
func child(args []string, stdout io.Writer) int {
	if len(args) != 1 {
		return 2
	}
	var value int32
	switch args[0] {
	case "i386-socket":
		value = int80(i386Socket, unix.AF_UNIX, unix.SOCK_STREAM, 0)
	case "i386-ptrace":
		value = int80(i386Ptrace, unix.PTRACE_TRACEME, 0, 0)
	case "x32-socket":
		_, _, errno := unix.RawSyscall(x32|unix.SYS_SOCKET, unix.AF_UNIX, unix.SOCK_STREAM, 0)
		value = -int32(errno)
	default:
		return 2
	}
	fmt.Fprintln(stdout, value)
	return 0
}

// otherABI lets a child make a call by another door.
func otherABI(name string) func([]string) (string, error) {
	return func([]string) (string, error) {
		self, err := os.Executable()
		if err != nil {
			return "", err
		}
		cmd := exec.Command(self, "child", name)
		out, err := cmd.Output()
		if err != nil {
			return fmt.Sprintf("the child ended: %v", err), fmt.Errorf("%v: %w", err, errHeld)
		}
		value, err := strconv.Atoi(strings.TrimSpace(string(out)))
		if err != nil {
			return "", err
		}
		if value < 0 {
			return "", syscall.Errno(-value)
		}
		return "", nil
	}
}
