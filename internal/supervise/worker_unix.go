//go:build unix

package supervise

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// firstFD is the first passed descriptor (sd_listen_fds(3)); the pipe of
// readiness follows the socket.
const firstFD = 3

// pass arranges that the child gets the socket as descriptor 3 and the pipe
// of readiness as descriptor 4.
func (p *parent) pass(cmd *exec.Cmd) (*pipeLine, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.ExtraFiles = []*os.File{p.port.file, w}
	cmd.Env = append(cmd.Env,
		countVariable+"=1",
		namesVariable+"="+p.Name,
		parentVariable+"="+strconv.Itoa(os.Getpid()),
		readyVariable+"="+strconv.Itoa(firstFD+1),
	)
	// A group of its own: Ctrl-C on a terminal reaches the parent only, which
	// passes it on once.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(cmd.SysProcAttr)
	return &pipeLine{Reader: r, own: r, given: w}, nil
}

func (w *worker) terminate() error { return w.cmd.Process.Signal(syscall.SIGTERM) }

// Listener returns the listening socket that the parent or systemd passed
// under name. It returns false when none was passed to this very process. A
// single socket that was passed without a name of its own serves any name:
// systemd then uses "unknown" or the name of its unit.
func Listener(name string) (net.Listener, bool, error) {
	count, err := passed()
	if count == 0 || err != nil {
		return nil, false, err
	}
	names := strings.Split(os.Getenv(namesVariable), ":")
	for i := range count {
		have := ""
		if i < len(names) {
			have = names[i]
		}
		nameless := have == "" || have == "unknown" || strings.HasSuffix(have, ".socket")
		if have != name && (count != 1 || !nameless) {
			continue
		}
		l, err := listenerOf(firstFD + i)
		if err != nil {
			return nil, false, fmt.Errorf("socket %q, passed as descriptor %d: %w", name, firstFD+i, err)
		}
		return l, true, nil
	}
	return nil, false, nil
}

// passed counts the descriptors that were passed to this process. Variables
// that were left over from an ancestor count nothing.
func passed() (int, error) {
	text := os.Getenv(countVariable)
	if text == "" {
		return 0, nil
	}
	forUs := os.Getenv(pidVariable) == strconv.Itoa(os.Getpid()) ||
		os.Getenv(parentVariable) == strconv.Itoa(os.Getppid())
	if !forUs {
		return 0, nil
	}
	count, err := strconv.Atoi(text)
	if err != nil || count < 0 || count > 64 {
		return 0, fmt.Errorf("%s=%q: want a number from 0 to 64", countVariable, text)
	}
	return count, nil
}

func listenerOf(fd int) (net.Listener, error) {
	listening, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ACCEPTCONN)
	if err != nil {
		return nil, os.NewSyscallError("getsockopt", err)
	}
	if listening == 0 {
		return nil, fmt.Errorf("it is a socket that does not listen")
	}
	// FileListener works on a copy; the passed descriptor stays open, closed
	// on exec, so that a second call finds it again.
	unix.CloseOnExec(fd)
	dup, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("fcntl", err)
	}
	f := os.NewFile(uintptr(dup), "passed socket")
	defer f.Close()
	return net.FileListener(f)
}

// readyPipe is the worker's end of the pipe of readiness, or nil.
func readyPipe() (*os.File, error) {
	text := os.Getenv(readyVariable)
	if text == "" || os.Getenv(parentVariable) != strconv.Itoa(os.Getppid()) {
		return nil, nil
	}
	fd, err := strconv.Atoi(text)
	if err != nil || fd < firstFD {
		return nil, fmt.Errorf("%s=%q: want a descriptor", readyVariable, text)
	}
	unix.CloseOnExec(fd)
	return os.NewFile(uintptr(fd), "ready"), nil
}
