//go:build unix

package execution

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// watched are the signals that must not end or stop this process before the
// child.
var watched = [...]os.Signal{
	syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM,
	syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGALRM,
	syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU, syscall.SIGCONT,
}

// supervise starts the child in this process's group, so that the terminal treats
// both as one job, and waits for its end.
func supervise(b *Bound, attr *os.ProcAttr) (Outcome, error) {
	signals := make(chan os.Signal, 32)
	for _, s := range watched {
		// What nohup or a shell's & ignores stays ignored, also for the child.
		if !signal.Ignored(s) {
			signal.Notify(signals, s)
		}
	}
	defer signal.Stop(signals)
	child, err := b.start(attr)
	if err != nil {
		return Outcome{}, err
	}
	defer child.Release()

	states := make(chan state)
	go watch(child.Pid, states) // ends with the child
	for {
		select {
		case s := <-signals:
			if forwarded(s) {
				child.Signal(s)
			}
		case now := <-states:
			switch {
			case now.err != nil:
				return Outcome{}, &Error{Path: b.program.found, Err: now.err}
			case now.status.Exited():
				return Outcome{Code: now.status.ExitStatus()}, nil
			case now.status.Signaled():
				s := now.status.Signal()
				return Outcome{Code: 128 + int(s), Signal: unix.SignalName(s)}, nil
			case now.status.Stopped() && hasTerminal():
				// The shell that controls the job learns of the stop by ours. It
				// resumes the whole group.
				syscall.Kill(syscall.Getpid(), syscall.SIGSTOP)
			}
		}
	}
}

// state is a change of the child.
type state struct {
	status syscall.WaitStatus
	err    error
}

// watch reports every stop of the child and at last its end. os.Process.Wait
// does not tell of stops.
func watch(pid int, states chan<- state) {
	for {
		var now state
		_, now.err = syscall.Wait4(pid, &now.status, syscall.WUNTRACED, nil)
		if now.err == syscall.EINTR {
			continue
		}
		states <- now
		if now.err != nil || now.status.Exited() || now.status.Signaled() {
			return
		}
	}
}

// forwarded reports whether the child needs to be told of a signal that this
// process got. The keys of the terminal reach its whole foreground group, so
// the child has had those; sent twice, they would mean something else to it. A
// shell also stops and resumes whole groups: a SIGCONT that is passed on late
// would resume a child that has been stopped again since.
func forwarded(s os.Signal) bool {
	switch s {
	case syscall.SIGINT, syscall.SIGQUIT:
		return !inForeground()
	case syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU, syscall.SIGCONT:
		return !hasTerminal()
	}
	return true
}

// hasTerminal reports whether the process has a controlling terminal.
func hasTerminal() bool {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return false
	}
	tty.Close()
	return true
}

// inForeground reports whether the keys of a terminal reach this process.
func inForeground() bool {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return false
	}
	defer tty.Close()
	group, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}
