//go:build unix

package notify

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"
)

// apart starts the supervisor in a session of its own: signals for the group or
// the terminal of its parent do not reach it.
func apart() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// group is the process group of the command, whose id is the command's process
// id.
type group struct{ signals chan os.Signal }

func newGroup(cmd *exec.Cmd) (*group, error) {
	// Orphans of the command become the supervisor's children, which ends them
	// for good even where process 1 does not.
	if err := adoptOrphans(); err != nil {
		return nil, err
	}
	g := &group{signals: make(chan os.Signal, 1)}
	signal.Notify(g.signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return g, nil
}

// look is how often the group is asked whether it has ended: there is no event
// for that.
const look = 20 * time.Millisecond

// wait waits until the whole group of the started cmd has ended, and kills it
// when the limit is over or the supervisor itself is told to end. It returns
// the exit code of cmd, and whether something had to be killed.
func (g *group) wait(cmd *exec.Cmd, limit time.Duration) (exit int, killed bool) {
	pgid := cmd.Process.Pid
	kill := func() {
		killed = true
		syscall.Kill(-pgid, syscall.SIGKILL) // fails only if the group has just ended
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	ended := make(chan struct{})
	go func() { // ends with cmd, which ends at the limit
		cmd.Wait() // how it ended is in ProcessState
		close(ended)
	}()
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for leader := true; leader || !groupEnded(pgid); {
		again := ticker.C
		if leader {
			again = nil
		}
		select {
		case <-ended:
			leader, ended = false, nil
		case <-timer.C:
			kill()
		case <-g.signals:
			kill()
		case <-again:
			if killed {
				kill() // a process may have been forked while the first signal went out
			}
		}
	}
	status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if ok && status.Signaled() {
		return 128 + int(status.Signal()), killed
	}
	return cmd.ProcessState.ExitCode(), killed
}

// groupEnded reports whether no process is left in the group. It is asked often
// enough that the id cannot have come to another group between two questions.
func groupEnded(pgid int) bool {
	for { // orphans that have ended
		pid, err := syscall.Wait4(-pgid, nil, syscall.WNOHANG, nil)
		if pid <= 0 && !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	return errors.Is(syscall.Kill(-pgid, 0), syscall.ESRCH)
}
