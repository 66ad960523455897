package inside

import (
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"vogt/internal/execution/confine/plan"
)

// lifeFD is a pipe that the starter holds the other end of while the box may run,
// where the helper is not the starter's own child in a process namespace. The
// numbers of signals to be passed on come through it.
const lifeFD = 5

// follow puts what comes from the starter in line with the signals, and in the end
// that the starter is gone or wants the box to end. In a full box the kernel sees to
// that.
func follow(w wakes) {
	buf := make([]byte, 16)
	for {
		n, err := unix.Read(lifeFD, buf)
		switch {
		case err == unix.EINTR:
		case err != nil || n == 0:
			w.send(overByte)
			return
		default:
			w.send(buf[:n]...)
		}
	}
}

// gone ends the box because its starter is gone.
func gone(p *plan.Plan) (int, error) {
	if p.Level == plan.Reduced {
		endAll()
	}
	return 128 + int(unix.SIGKILL), nil // the end of the first process ends the others
}

// apart checks that no signal leaves the box from this thread: only then may it
// send one to everybody that it reaches. The starter is outside, and lives.
func apart(starter int) error {
	switch err := unix.Kill(starter, 0); err {
	case unix.EPERM:
		return nil
	case nil:
		return &stepError{step: "keep signals in the box", err: fmt.Errorf("the process %d outside of it can be signalled", starter)}
	default:
		return &stepError{step: "keep signals in the box", err: err}
	}
}

// endAll ends every process of a box without a process namespace. A signal to
// everybody (kill(2), -1) goes to all processes that this thread may signal, which
// by Landlock are those of the box (apart has checked it): at one moment, while the
// kernel holds its list of processes, so that nothing that forks escapes it. All
// that are ended become children of this process in the end, and are waited for.
func endAll() {
	_ = unix.Kill(-1, unix.SIGKILL) // an error says that there is nobody
	for {
		if _, err := syscall.Wait4(-1, nil, 0, nil); err != nil && err != syscall.EINTR {
			return
		}
	}
}

// Within puts a wall between the helper and the command, where both are seen by
// each other: a domain of Landlock for the command and all that it starts, from
// which no signal reaches the helper. Then it becomes the command, as Limit does,
// whose arguments it takes.
func Within(args []string) int {
	runtime.LockOSThread() // the thread that executes is the one under Landlock
	if err := scope(); err != nil {
		fmt.Fprintf(os.Stderr, "vogt-confine: start %s in a scope of its own: %v\n", args[1], err)
		return failed
	}
	return Limit(args)
}

// scope puts this thread into a new domain, out of which neither signals lead nor
// connections to abstract sockets (landlock(7), version 6).
func scope() error {
	attributes := struct{ files, ports, scoped uint64 }{scoped: 1<<0 | 1<<1}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attributes)), unsafe.Sizeof(attributes), 0)
	if errno != 0 {
		return errno
	}
	defer unix.Close(int(fd))
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0); errno != 0 {
		return errno
	}
	return nil
}

// Through becomes a program that a terminal's keys do not end: args are its path
// and arguments. bwrap, which stays outside of the box, would end and take the box
// with it, whatever the command does about such a signal.
func Through(args []string) int {
	signal.Ignore(syscall.SIGINT, syscall.SIGQUIT)
	err := unix.Exec(args[0], args[1:], os.Environ())
	fmt.Fprintf(os.Stderr, "vogt-confine: start %s: %v\n", strconv.Quote(args[0]), err)
	return failed
}
