package inside

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"vogt/internal/execution/confine/plan"
)

// wakeFD is the descriptor at which the handlers write the number of each signal:
// they are no Go code, and know it as a constant (signals_linux_amd64.s and its
// like). It is taken when the helper has a handful of others, and before the plan may
// bound how many.
const wakeFD = 31

// overByte comes from the pipe when the box is to end without a signal: no signal
// has this number.
const overByte = 0

// wakes is a pipe with one byte for each signal that this process gets.
//
// Package os/signal does this in general. It hands each signal over to a thread of
// its own, which for the dozen here takes longer than all mounts of a box. And what
// has a handler here is the command's own affair again, without one, when it is
// executed (signal(7)), which does not hold for what is ignored or blocked.
type wakes struct{ from int }

// newWakes makes the pipe.
func newWakes() (wakes, error) {
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		return wakes{}, err
	}
	// A handler must not wait: a signal that finds the pipe full is one of thousands.
	// Who reads from it does.
	err := unix.Dup3(ends[1], wakeFD, unix.O_CLOEXEC)
	unix.Close(ends[1])
	if err == nil {
		err = unix.SetNonblock(ends[0], false)
	}
	return wakes{ends[0]}, err
}

// listen begins to collect signals: those that are passed on, those of the starter,
// and that a child has ended.
func (w wakes) listen() error {
	for _, s := range [...]syscall.Signal{syscall.SIGCHLD, plan.StopSignal, plan.ContinueSignal,
		syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM,
		syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGALRM, syscall.SIGCONT, syscall.SIGTSTP} {
		if err := handle(s); err != nil {
			return err
		}
	}
	return nil
}

// handle sets the handler of a signal, on which the Go runtime is not asked.
func handle(s syscall.Signal) error {
	// struct sigaction of the kernel, which is not that of C.
	action := struct {
		handler  uintptr
		flags    uint64
		restorer uintptr
		mask     uint64 // what is held back meanwhile
	}{handler(), onStack | restart | restorerFlag, restorer(), ^uint64(0)}
	const maskSize = 8
	if _, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(s), uintptr(unsafe.Pointer(&action)), 0, maskSize, 0, 0); errno != 0 {
		return errno
	}
	return nil
}

// Flags of an action (sigaction(2)): the handler runs on the thread's stack for
// signals, since those of goroutines are too small.
const (
	onStack = 0x08000000 // SA_ONSTACK
	restart = 0x10000000 // SA_RESTART
)

// handler is the address of the code that writes its signal's number to wakeFD.
func handler() uintptr

// restorer is the address of the code that returns from a handler, or 0 where the
// kernel brings it.
func restorer() uintptr

// next waits for signals and returns their numbers.
func (w wakes) next(buf []byte) []byte {
	for {
		switch n, err := unix.Read(w.from, buf); {
		case err == unix.EINTR:
		case err != nil || n <= 0:
			return []byte{overByte} // nothing would be heard any more
		default:
			return buf[:n]
		}
	}
}

// send puts bytes in line with the signals, and waits while the line is full.
func (w wakes) send(numbers ...byte) {
	for {
		if _, err := unix.Write(wakeFD, numbers); err != unix.EAGAIN && err != unix.EINTR {
			return // so few are written at once
		}
		_, _ = unix.Poll([]unix.PollFd{{Fd: wakeFD, Events: unix.POLLOUT}}, -1) // it is tried again anyway
	}
}
