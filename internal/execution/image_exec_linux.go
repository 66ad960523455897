package execution

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// launch is how a child is started.
type launch struct {
	path string // what execve(2) gets
	// watched says that the child is held before its first instruction until it
	// is known what was executed.
	watched bool
	plain   string // the path without a name that could be led elsewhere; may be empty
	release func() // what is to be done once the child has started
}

// prepare finds the way to start what was bound.
//
// A native program is executed through its descriptor, /proc/self/fd/N: a path
// could lead to another file between the last check and execve(2), the
// descriptor cannot. The link of the program's name in front of it is for the
// sake of the process name, which the kernel takes from the last part of the
// path (comm in proc_pid_comm(5)) and by which ps and pkill know it. A process
// of the same user could put another file in the link's place, so the child is
// watched; where it cannot be, there is no link.
//
// A script is executed by its path: the kernel hands the path to the
// interpreter, which opens it again, after the descriptor has closed; and
// scripts find their files by it. The child is watched too, which finds another
// interpreter or a script that has changed until then. Between that and the
// moment when the interpreter opens the script a race remains. It also remains
// for everything where /proc is not mounted.
func (b *Bound) prepare(streams []*os.File) launch {
	plain := launch{path: b.pathImage(), release: func() {}}
	if !procIsOurs() {
		return plain
	}
	plain.watched = b.loaded != nil && !b.loaded.privileged()
	if !b.native {
		return plain
	}
	// Above the numbers that the standard streams and the start of a process
	// use, or they would replace it in the child.
	least := 3
	for _, f := range streams {
		least = max(least, int(f.Fd())+1)
	}
	const margin = 8
	least += margin
	fd, err := unix.FcntlInt(b.program.file.Fd(), unix.F_DUPFD_CLOEXEC, least)
	if err != nil {
		return plain
	}
	direct := descriptorPath(fd)
	l := launch{path: direct, release: func() { unix.Close(fd) }}
	if !plain.watched {
		return l
	}
	named, remove, err := nameLink(direct, filepath.Base(b.program.found), least)
	if err != nil {
		return l
	}
	return launch{path: named, watched: true, plain: direct, release: func() {
		remove()
		unix.Close(fd)
	}}
}

func descriptorPath(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

// procIsOurs reports whether /proc is that of this process's namespace.
func procIsOurs() bool {
	self, err := os.Readlink("/proc/self")
	return err == nil && self == strconv.Itoa(os.Getpid())
}

// nameLink makes a symbolic link to target with the given name, in a fresh
// folder that is entered by its descriptor, so that it does not matter whether
// the path to it can be led elsewhere. It refuses a place for temporary files in
// which other users could rename the folder.
func nameLink(target, name string, least int) (path string, remove func(), err error) {
	parent := os.TempDir()
	info, err := os.Stat(parent)
	if err != nil {
		return "", nil, err
	}
	if !holdsOwn(info) {
		return "", nil, fs.ErrPermission
	}
	folder, err := os.MkdirTemp(parent, ".vogt-")
	if err != nil {
		return "", nil, err
	}
	low, err := unix.Open(folder, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		unix.Rmdir(folder)
		return "", nil, err
	}
	fd, err := unix.FcntlInt(uintptr(low), unix.F_DUPFD_CLOEXEC, least)
	unix.Close(low)
	if err != nil {
		unix.Rmdir(folder)
		return "", nil, err
	}
	remove = func() {
		unix.Unlinkat(fd, name, 0)
		unix.Close(fd)
		unix.Rmdir(folder)
	}
	var stat unix.Stat_t
	if err = unix.Fstat(fd, &stat); err == nil && (int(stat.Uid) != os.Geteuid() || stat.Mode&0o077 != 0) {
		err = fs.ErrPermission
	}
	if err == nil {
		err = unix.Symlinkat(target, fd, name)
	}
	if err != nil {
		remove()
		return "", nil, err
	}
	return descriptorPath(fd) + "/" + name, remove, nil
}

// holdsOwn reports whether a folder made in the one that info describes stays
// where it is: it is ours alone, or root's, and open to others only with the
// sticky bit.
func holdsOwn(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	closed := info.Mode().Perm()&0o022 == 0
	switch {
	case !ok || !info.IsDir():
		return false
	case int(stat.Uid) == os.Geteuid():
		return closed || info.Mode()&fs.ModeSticky != 0
	}
	return stat.Uid == 0 && (closed || info.Mode()&fs.ModeSticky != 0)
}

// privileged reports whether the file gives a process more than it had, by its
// mode or its capabilities, or might: a process that is watched would not get it
// (execve(2)).
func (o object) privileged() bool {
	info, err := o.file.Stat()
	if err != nil || o.digest == "" || info.Mode()&(fs.ModeSetuid|fs.ModeSetgid) != 0 {
		return true
	}
	_, err = unix.Fgetxattr(int(o.file.Fd()), "security.capability", nil)
	return !errors.Is(err, unix.ENODATA) && !errors.Is(err, unix.ENOTSUP)
}

// begin starts the child. A *Error of kind Swapped tells that another file was
// executed: the child was killed before its first instruction.
func (b *Bound) begin(l launch, attr *os.ProcAttr) (*os.Process, error) {
	if l.watched {
		child, err := b.beginWatched(l.path, attr)
		if _, ours := errors.AsType[*Error](err); err == nil || ours {
			return child, err
		}
		// It may be that nothing can be watched here, as under a debugger or
		// where ptrace(2) is forbidden. Nothing was started; if the cause is
		// another one, the next attempt has it too.
		if l.plain != "" {
			l.path = l.plain
		}
	}
	return os.StartProcess(l.path, b.argv, attr)
}

// beginWatched starts the child so that the kernel stops it when it has executed
// its file (PTRACE_TRACEME in ptrace(2)), and lets it go only if that is the
// file that was bound.
func (b *Bound) beginWatched(path string, attr *os.ProcAttr) (*os.Process, error) {
	// Only the thread that started the child may let it go.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	held := *attr
	held.Sys = &syscall.SysProcAttr{Ptrace: true}
	child, err := os.StartProcess(path, b.argv, &held)
	if err != nil {
		return nil, err
	}
	if err := b.awaitStart(child.Pid); err != nil {
		child.Kill()
		child.Wait()
		return nil, err
	}
	return child, nil
}

// awaitStart waits for the stop after execve(2), judges, and lets the child go.
func (b *Bound) awaitStart(pid int) error {
	for {
		var status syscall.WaitStatus
		_, err := syscall.Wait4(pid, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case err != nil:
			return &Error{Path: b.program.found, Err: err}
		case !status.Stopped():
			return &Error{Path: b.program.found, Err: errors.New("it ended while it was started")}
		case status.StopSignal() != syscall.SIGTRAP:
			// A signal from outside came first.
			if err := syscall.PtraceCont(pid, int(status.StopSignal())); err != nil {
				return &Error{Path: b.program.found, Err: err}
			}
			continue
		}
		if err := b.started(pid); err != nil {
			return err
		}
		if err := syscall.PtraceDetach(pid); err != nil {
			return &Error{Path: b.program.found, Err: err}
		}
		return nil
	}
}

// started checks that process pid, which is held, has executed the file that was
// bound, and of a script that it is still the same.
func (b *Bound) started(pid int) error {
	swapped := &Error{Kind: Swapped, Path: b.program.found}
	info, err := os.Stat(fmt.Sprintf("/proc/%d/exe", pid))
	if err != nil {
		return swapped
	}
	if id, err := identify(nil, info); err != nil || id != b.loaded.id {
		return swapped
	}
	if b.native {
		return nil
	}
	if err := b.program.unchanged(); err != nil {
		return err
	}
	for _, l := range b.lookups {
		if err := l.unchanged(); err != nil {
			return err
		}
	}
	return nil
}
