//go:build linux && (amd64 || arm64)

package differential

import (
	"bytes"
	"fmt"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// What a process did, by the system call's meaning.
const (
	opExec    = "exec"    // a program start, also one that failed
	opOpen    = "open"    // an open for writing, or one that may create
	opRead    = "read"    // an open of a file of the project, or of HOME, for reading only
	opCreate  = "create"  // a directory, link, node or socket was made
	opDelete  = "delete"  // unlink
	opRmdir   = "rmdir"   // rmdir, which only takes empty directories
	opRename  = "rename"  // Path became Other
	opChange  = "change"  // size, mode, owner, times or attributes
	opConnect = "connect" // an address outside this process was used
	opSignal  = "signal"  // a signal to another process
)

// event is one thing that a line did.
type event struct {
	Op    string
	Path  string   // absolute and cleaned; an address for opConnect
	Other string   `json:",omitempty"` // the second path of a rename or link
	Argv  []string `json:",omitempty"`
	Chain []string // base names of the programs that led here, outermost first
	Flags uint64   `json:",omitempty"` // of an open
	Fresh bool     `json:",omitempty"` // nothing was at Path before

	Passing  bool `json:"-"` // Path is a temporary file of the program; see compare
	Replaced bool `json:"-"` // the program puts something new at Path
}

func (e event) String() string {
	text := e.Op + " " + e.Path
	if e.Other != "" {
		text += " -> " + e.Other
	}
	if e.Op == opExec {
		text = fmt.Sprintf("exec %s %q", e.Path, e.Argv)
	}
	return text + " (in " + strings.Join(e.Chain, " > ") + ")"
}

// tracee is a process or thread of the line.
type tracee struct {
	chain   []string
	waiting bool   // its first SIGSTOP has not come yet
	next    string // the program it is about to become
}

// tracer follows one line's processes to their end. All methods must be called
// from the thread that started the line.
type tracer struct {
	may    func(event) bool // what a process may really do; the rest fails with EACCES
	kill   func()           // ends every process of the line
	grace  time.Duration    // how long background processes may outlive the line
	events []event
	procs  map[int]*tracee
	early  map[int]bool // stopped before their parent's report of them
	main   int
	status syscall.WaitStatus
}

const (
	traceOptions = unix.PTRACE_O_EXITKILL | unix.PTRACE_O_TRACECLONE | unix.PTRACE_O_TRACEFORK |
		unix.PTRACE_O_TRACEVFORK | unix.PTRACE_O_TRACEEXEC | unix.PTRACE_O_TRACESECCOMP
	maxEvents = 5000
)

// follow traces the process pid, which stopped at its first exec, and all that
// comes from it, until none is left.
func (t *tracer) follow(pid int) error {
	t.main = pid
	t.procs = map[int]*tracee{pid: {}}
	t.early = map[int]bool{}
	var status syscall.WaitStatus
	if _, err := wait(pid, &status); err != nil {
		return fmt.Errorf("waiting for the launcher: %w", err)
	}
	if !status.Stopped() {
		return fmt.Errorf("the launcher ended with status %#x before it was traced", int(status))
	}
	if err := syscall.PtraceSetOptions(pid, traceOptions); err != nil {
		return fmt.Errorf("ptrace options: %w", err)
	}
	if err := syscall.PtraceCont(pid, 0); err != nil {
		return fmt.Errorf("ptrace: %w", err)
	}
	for len(t.procs) > 0 || len(t.early) > 0 {
		pid, err := wait(-1, &status)
		if err == syscall.ECHILD {
			break
		}
		if err != nil {
			return fmt.Errorf("wait: %w", err)
		}
		if status.Exited() || status.Signaled() {
			delete(t.procs, pid)
			delete(t.early, pid)
			if pid == t.main {
				t.status = status
				defer time.AfterFunc(t.grace, t.kill).Stop()
			}
			continue
		}
		t.stopped(pid, status)
	}
	return nil
}

func wait(pid int, status *syscall.WaitStatus) (int, error) {
	for {
		got, err := syscall.Wait4(pid, status, unix.WALL, nil)
		if err != syscall.EINTR {
			return got, err
		}
	}
}

// stopped handles one stop and lets the process go on. Errors of ptrace mean
// that the process was killed meanwhile; wait reports that.
func (t *tracer) stopped(pid int, status syscall.WaitStatus) {
	proc := t.procs[pid]
	if proc == nil {
		t.early[pid] = true
		return
	}
	signal := status.StopSignal()
	deliver := 0
	switch cause := int(status) >> 16; {
	case cause == unix.PTRACE_EVENT_SECCOMP:
		t.syscall(pid, proc)
	case cause == unix.PTRACE_EVENT_FORK, cause == unix.PTRACE_EVENT_VFORK, cause == unix.PTRACE_EVENT_CLONE:
		if child, err := syscall.PtraceGetEventMsg(pid); err == nil {
			t.born(int(child), proc)
		}
	case cause == unix.PTRACE_EVENT_EXEC:
		// The old leader is replaced when another thread called execve.
		if former, err := syscall.PtraceGetEventMsg(pid); err == nil && int(former) != pid {
			if thread := t.procs[int(former)]; thread != nil {
				proc.next, proc.chain = thread.next, thread.chain
				delete(t.procs, int(former))
			}
		}
		if proc.next != "" {
			proc.chain = append(slices.Clip(proc.chain), proc.next)
		}
	case signal == syscall.SIGSTOP && proc.waiting:
		proc.waiting = false
	case signal == syscall.SIGSTOP, signal == syscall.SIGTSTP, signal == syscall.SIGTTIN, signal == syscall.SIGTTOU:
		// Nobody would wake it again.
	case signal == syscall.SIGTRAP:
	default:
		deliver = int(signal)
	}
	_ = syscall.PtraceCont(pid, deliver)
}

func (t *tracer) born(child int, parent *tracee) {
	t.procs[child] = &tracee{chain: parent.chain, waiting: !t.early[child]}
	if t.early[child] {
		delete(t.early, child)
		_ = syscall.PtraceCont(child, 0)
	}
}

// syscallInfo is struct ptrace_syscall_info of ptrace(2) for a seccomp stop.
type syscallInfo struct {
	op   uint8
	_    [3]uint8
	arch uint32
	ip   uint64
	sp   uint64
	nr   uint64
	args [6]uint64
	data uint64
}

// syscall records the call that pid is about to make.
func (t *tracer) syscall(pid int, proc *tracee) {
	var info syscallInfo
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_GET_SYSCALL_INFO, uintptr(pid),
		unsafe.Sizeof(info), uintptr(unsafe.Pointer(&info)), 0, 0)
	if errno != 0 {
		return
	}
	for _, e := range decode(memory(pid), uintptr(info.nr), info.args) {
		e.Chain = proc.chain
		if len(t.events) < maxEvents {
			t.events = append(t.events, e)
		}
		if e.Op == opExec {
			proc.next = path.Base(e.Path)
		}
		if !t.may(e) {
			deny(pid)
			return
		}
	}
	if kind := traced[uintptr(info.nr)]; kind == callAddress || kind == callSendto && info.args[4] != 0 {
		deny(pid) // also sockets of this machine: a service could be behind one
	}
}

// memory is the process whose memory, folder and descriptors are looked at.
type memory int

// text reads a string that ends with NUL.
func (m memory) text(address uint64) string {
	var all []byte
	for len(all) < 1<<16 && address != 0 {
		// Not over a page's end: the next page may not be there.
		chunk := make([]byte, 4096-address%4096)
		n, err := unix.ProcessVMReadv(int(m),
			[]unix.Iovec{{Base: &chunk[0], Len: uint64(len(chunk))}},
			[]unix.RemoteIovec{{Base: uintptr(address), Len: len(chunk)}}, 0)
		if err != nil || n <= 0 {
			break
		}
		if end := bytes.IndexByte(chunk[:n], 0); end >= 0 {
			return string(append(all, chunk[:end]...))
		}
		all = append(all, chunk[:n]...)
		address += uint64(n)
	}
	return string(all)
}

// bytes reads up to n bytes.
func (m memory) bytes(address uint64, n int) []byte {
	if address == 0 || n <= 0 {
		return nil
	}
	b := make([]byte, n)
	got, err := unix.ProcessVMReadv(int(m), []unix.Iovec{{Base: &b[0], Len: uint64(n)}},
		[]unix.RemoteIovec{{Base: uintptr(address), Len: n}}, 0)
	if err != nil || got < 0 {
		return nil
	}
	return b[:got]
}

// texts reads an argument list; a very long one is cut.
func (m memory) texts(address uint64) []string {
	var list []string
	for len(list) < 64 {
		b := m.bytes(address+8*uint64(len(list)), 8)
		if len(b) < 8 {
			break
		}
		pointer := *(*uint64)(unsafe.Pointer(&b[0]))
		if pointer == 0 {
			break
		}
		list = append(list, m.text(pointer))
	}
	return list
}

// fd is the path that a descriptor was opened by.
func (m memory) fd(fd uint64) string {
	name := fmt.Sprintf("/proc/%d/fd/%d", int(m), int32(fd))
	if int32(fd) == unix.AT_FDCWD {
		name = fmt.Sprintf("/proc/%d/cwd", int(m))
	}
	target, err := os.Readlink(name)
	if err != nil {
		return "/?"
	}
	return target
}

// path is an absolute path for one given relative to a directory's descriptor.
// An empty path means the descriptor itself.
func (m memory) path(dir, address uint64) string {
	name := m.text(address)
	if name == "" {
		return m.fd(dir)
	}
	if !path.IsAbs(name) {
		name = m.fd(dir) + "/" + name
	}
	return path.Clean(name)
}

const here = uint64(0xffffff9c) // AT_FDCWD, for the calls that take no directory

// decode gives the events of one system call; most have one or none.
func decode(m memory, nr uintptr, a [6]uint64) []event {
	one := func(op string, path string) []event {
		_, err := os.Lstat(path)
		return []event{{Op: op, Path: path, Fresh: os.IsNotExist(err)}}
	}
	switch kind := traced[nr]; kind {
	case callExecve:
		events := one(opExec, m.path(here, a[0]))
		events[0].Argv = m.texts(a[1])
		return events
	case callExecveat:
		events := one(opExec, m.path(a[0], a[1]))
		events[0].Argv = m.texts(a[2])
		return events
	case callOpen, callOpenat, callOpenat2, callCreat:
		return opened(m, kind, a, one)
	case callMake:
		return one(opCreate, m.path(here, a[0]))
	case callMakeat:
		return one(opCreate, m.path(a[0], a[1]))
	case callSymlink:
		return one(opCreate, m.path(here, a[1]))
	case callSymlinkat:
		return one(opCreate, m.path(a[1], a[2]))
	case callLink:
		return one(opCreate, m.path(here, a[1]))
	case callLinkat:
		return one(opCreate, m.path(a[2], a[3]))
	case callRename, callRenameat:
		e := event{Op: opRename, Path: m.path(here, a[0]), Other: m.path(here, a[1])}
		if kind == callRenameat {
			e.Path, e.Other = m.path(a[0], a[1]), m.path(a[2], a[3])
		}
		_, err := os.Lstat(e.Path)
		e.Fresh = os.IsNotExist(err)
		return []event{e}
	case callUnlink:
		return one(opDelete, m.path(here, a[0]))
	case callRmdir:
		return one(opRmdir, m.path(here, a[0]))
	case callUnlinkat:
		if a[2]&unix.AT_REMOVEDIR != 0 {
			return one(opRmdir, m.path(a[0], a[1]))
		}
		return one(opDelete, m.path(a[0], a[1]))
	case callChange:
		return one(opChange, m.path(here, a[0]))
	case callChangeat:
		return one(opChange, m.path(a[0], a[1]))
	case callChangefd:
		return one(opChange, m.fd(a[0]))
	case callAddress:
		return addressed(m.bytes(a[1], int(min(a[2], 128))))
	case callSendto:
		return addressed(m.bytes(a[4], int(min(a[5], 128))))
	case callKill, callTgkill:
		return signalled(m, kind, a)
	}
	return nil
}

// opened is an open that writes. A directory opened for a nameless file, and a
// descriptor that is opened a second time, change no path.
func opened(m memory, kind call, a [6]uint64, one func(string, string) []event) []event {
	var name string
	flags := uint64(unix.O_WRONLY | unix.O_CREAT | unix.O_TRUNC)
	switch kind {
	case callCreat:
		name = m.path(here, a[0])
	case callOpen:
		name, flags = m.path(here, a[0]), a[1]
	case callOpenat:
		name, flags = m.path(a[0], a[1]), a[2]
	case callOpenat2:
		name, flags = m.path(a[0], a[1]), 0
		if how := m.bytes(a[2], 8); len(how) == 8 {
			flags = *(*uint64)(unsafe.Pointer(&how[0]))
		}
	}
	if flags&unix.O_PATH != 0 || flags&unix.O_TMPFILE == unix.O_TMPFILE {
		return nil
	}
	if flags&openWrites == 0 {
		if flags&unix.O_DIRECTORY != 0 {
			return nil
		}
		return looked(name)
	}
	events := one(opOpen, m.reopened(name))
	events[0].Flags = flags
	return events
}

// looked is an open for reading, where it concerns the project or HOME. Folders
// are left out: who looks for a file passes many.
func looked(name string) []event {
	if !strings.HasPrefix(name, workDir+"/") && !strings.HasPrefix(name, homeDir+"/") {
		return nil
	}
	if info, err := os.Stat(name); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	return []event{{Op: opRead, Path: name}}
}

var descriptorPath = regexp.MustCompile(`^(?:/dev/fd|/proc/(?:self|thread-self|\d+)/fd)/(\d+)$`)

// reopened is the file behind a path that names a descriptor: one opened for
// reading can be written to that way.
func (m memory) reopened(name string) string {
	number := map[string]string{"/dev/stdin": "0", "/dev/stdout": "1", "/dev/stderr": "2"}[name]
	if match := descriptorPath.FindStringSubmatch(name); match != nil {
		number = match[1]
	}
	if number == "" {
		return name
	}
	target, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", int(m), number))
	if err != nil {
		return name
	}
	return target
}

// addressed is the use of a socket address. Unix sockets stay on this machine
// and are how libraries look for a name service; they are no network.
func addressed(sockaddr []byte) []event {
	if len(sockaddr) < 2 {
		return nil
	}
	switch family := *(*uint16)(unsafe.Pointer(&sockaddr[0])); family {
	case unix.AF_UNIX, unix.AF_UNSPEC, unix.AF_NETLINK:
		return nil
	default:
		return []event{{Op: opConnect, Path: fmt.Sprintf("family %d, % x", family, sockaddr[2:])}}
	}
}

func signalled(m memory, kind call, a [6]uint64) []event {
	target, signal := int32(a[0]), a[1]
	if kind == callTgkill {
		signal = a[2]
	}
	if signal == 0 || target == int32(m) {
		return nil
	}
	return []event{{Op: opSignal, Path: fmt.Sprintf("signal %d to %d", signal, target)}}
}
