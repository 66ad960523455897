package spawn

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Program is what is started, and how.
type Program struct {
	Path    string
	Argv    []string
	Environ []string
	Dir     string
	Files   []*os.File // descriptors 0, 1, 2 and so on; all others are closed
	// Namespaces are flags of clone(2), CLONE_NEWUSER among them.
	Namespaces uintptr
	// Capabilities in its user namespace, of those up to 31: what it executes keeps
	// them (capabilities(7)).
	Capabilities []uintptr
	// Death is the signal that it gets when the thread ends that has started it.
	Death syscall.Signal
	// Session gives it a session of its own, without a terminal.
	Session bool
	// Group is the folder of a control group to start it in, or nil.
	Group *os.File
}

// Error is a step of the start that failed. Err is the kernel's.
type Error struct {
	Step string
	Err  error
}

func (e *Error) Error() string { return e.Step + ": " + e.Err.Error() }

func (e *Error) Unwrap() error { return e.Err }

// call is a system call of the child. Its layout is known to the assembly.
type call struct {
	number    uintptr
	arguments [6]uintptr
}

// batch is what the child does. Its layout is known to the assembly.
type batch struct {
	clone  *cloneArgs
	size   uintptr
	calls  *call
	count  uintptr
	failed uintptr // the number of the call that failed, from 1, or 0
	errno  uintptr // its error
}

// cloneArgs is struct clone_args (clone(2)), of which these are used.
type cloneArgs [11]uint64

const (
	cloneFlags  = 0
	cloneSignal = 4 // that says that the child has ended
	cloneGroup  = 10
)

// vfork starts the child, which makes the calls one after the other and ends with
// 127 if one fails, and returns when it has executed something or ended. The result
// is the child's process, or the error of clone3 below zero.
//
//go:noescape
func vfork(b *batch) int

// list is the making of a batch: the calls, what they are for, and the memory that
// they refer to.
type list struct {
	calls []call
	steps []string
	kept  []any
	err   error
}

func (l *list) add(step string, number uintptr, arguments ...uintptr) {
	c := call{number: number}
	copy(c.arguments[:], arguments)
	l.calls, l.steps = append(l.calls, c), append(l.steps, step)
}

// text keeps a text for the child and returns its address.
func (l *list) text(s string) uintptr {
	b, err := unix.BytePtrFromString(s)
	if err != nil && l.err == nil {
		l.err = err
	}
	l.kept = append(l.kept, b)
	return uintptr(unsafe.Pointer(b))
}

// texts keeps a list of texts, as execve wants it.
func (l *list) texts(all []string) uintptr {
	p, err := syscall.SlicePtrFromStrings(all)
	if err != nil {
		if l.err == nil {
			l.err = err
		}
		return 0
	}
	l.kept = append(l.kept, p)
	return uintptr(unsafe.Pointer(&p[0]))
}

// write writes a text to a file of an absolute name, through the descriptor that is
// free next.
func (l *list) write(name, text string, fd int) {
	step := "write " + name
	l.add(step, unix.SYS_OPENAT, 0, l.text(name), unix.O_WRONLY|unix.O_CLOEXEC)
	l.add(step, unix.SYS_WRITE, uintptr(fd), l.text(text), uintptr(len(text)))
	l.add(step, unix.SYS_CLOSE, uintptr(fd))
}

// Start starts a program. The error is an *Error, or about p itself. Where the kernel,
// or a filter of system calls, knows no clone3(2), it is an *Error with ENOSYS.
func (p *Program) Start() (*os.Process, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	from, closing, err := p.sources()
	defer func() {
		for _, fd := range closing {
			unix.Close(fd)
		}
	}()
	if err != nil {
		return nil, err
	}
	mask := new(uint64) // signals that this thread does not get
	l := p.list(from, mask)
	if l.err != nil {
		return nil, l.err
	}
	args := &cloneArgs{
		cloneFlags:  uint64(p.Namespaces) | unix.CLONE_VM | unix.CLONE_VFORK | unix.CLONE_CLEAR_SIGHAND,
		cloneSignal: uint64(unix.SIGCHLD),
	}
	if p.Group != nil {
		args[cloneFlags] |= unix.CLONE_INTO_CGROUP
		args[cloneGroup] = uint64(p.Group.Fd())
	}
	b := &batch{clone: args, size: unsafe.Sizeof(*args), calls: &l.calls[0], count: uintptr(len(l.calls))}
	// A handler of signals that ran in the child would be Go code. The child has
	// none, and none comes before it has none.
	runtime.LockOSThread()
	all := ^uint64(0)
	if err = setMask(&all, mask); err != nil {
		runtime.UnlockOSThread()
		return nil, &Error{"hold signals back", err}
	}
	pid := vfork(b)
	_ = setMask(mask, nil) // it was possible before
	runtime.UnlockOSThread()
	runtime.KeepAlive(l)
	runtime.KeepAlive(p)
	if pid < 0 {
		return nil, &Error{"make namespaces", syscall.Errno(-pid)}
	}
	if b.failed > 0 {
		for {
			if _, err := syscall.Wait4(pid, nil, 0, nil); err != syscall.EINTR {
				break
			}
		}
		return nil, &Error{l.steps[b.failed-1], syscall.Errno(b.errno)}
	}
	return os.FindProcess(pid)
}

// setMask sets which signals this thread gets.
func setMask(set, old *uint64) error {
	const size = 8
	_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(set)), uintptr(unsafe.Pointer(old)), size, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// sources are descriptors to be duplicated as 0, 1, 2 and so on. None but one in its
// own place is among those, so that none is overwritten before its turn.
func (p *Program) sources() (from, closing []int, err error) {
	for i, f := range p.Files {
		fd := int(f.Fd())
		if fd != i && fd < len(p.Files) {
			if fd, err = unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, len(p.Files)); err != nil {
				return nil, closing, &Error{"duplicate a descriptor", err}
			}
			closing = append(closing, fd)
		}
		from = append(from, fd)
	}
	return from, closing, nil
}

// list is what the child does. mask are the signals that the program is not to get,
// and are known when it is carried out.
func (p *Program) list(from []int, mask *uint64) *list {
	l := &list{kept: []any{mask}}
	for i, fd := range from {
		if fd == i {
			l.add("keep a descriptor", unix.SYS_FCNTL, uintptr(fd), unix.F_SETFD, 0)
		} else {
			l.add("set a descriptor", unix.SYS_DUP3, uintptr(fd), uintptr(i), 0)
		}
	}
	free := len(from) // the lowest descriptor that is free from here on
	l.add("close what is open", unix.SYS_CLOSE_RANGE, uintptr(free), uintptr(^uint32(0)), 0)
	uid, gid := strconv.Itoa(os.Getuid()), strconv.Itoa(os.Getgid())
	l.write("/proc/self/uid_map", uid+" "+uid+" 1\n", free)
	l.write("/proc/self/setgroups", "deny", free)
	l.write("/proc/self/gid_map", gid+" "+gid+" 1\n", free)
	if p.Session {
		l.add("begin a session", unix.SYS_SETSID)
	}
	var set uint32
	for _, c := range p.Capabilities {
		set |= 1 << c
	}
	header := &unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	data := &[2]unix.CapUserData{{Effective: set, Permitted: set, Inheritable: set}}
	l.kept = append(l.kept, header, data)
	l.add("keep capabilities", unix.SYS_CAPSET, uintptr(unsafe.Pointer(header)), uintptr(unsafe.Pointer(data)))
	for _, c := range p.Capabilities {
		l.add("hand on capabilities", unix.SYS_PRCTL, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_RAISE, c)
	}
	l.add("enter "+p.Dir, unix.SYS_CHDIR, l.text(p.Dir))
	if p.Death != 0 {
		l.add("end with the starter", unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, uintptr(p.Death))
	}
	const size = 8
	l.add("let signals through", unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(mask)), 0, size)
	l.add("execute "+p.Path, unix.SYS_EXECVE, l.text(p.Path), l.texts(p.Argv), l.texts(p.Environ))
	return l
}

// check reports what no child could do.
func (p *Program) check() error {
	for _, c := range p.Capabilities {
		if c > 31 {
			return fmt.Errorf("capability %d: want one up to 31", c)
		}
	}
	if p.Namespaces&unix.CLONE_NEWUSER == 0 || slices.Contains(p.Files, nil) {
		return errors.New("a program needs a user namespace and all of its descriptors")
	}
	return nil
}
