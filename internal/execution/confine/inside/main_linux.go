package inside

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"vogt/internal/execution/confine/filter"
	"vogt/internal/execution/confine/plan"
)

// The descriptors that the starter hands to the helper.
const (
	planFD    = 3 // a pipe with the plan, and with what else is hidden
	controlFD = 4 // a connected SOCK_SEQPACKET socket
)

// failed is the exit code when nothing was started.
const failed = 126

// Main carries out the plan on descriptor 3 and returns the exit code of the
// command, or 126 if it was not started: the report on descriptor 4 says why.
//
// It does so on a thread that is not the process's first one. Each thread goes under
// Landlock by itself, and a signal to a process is one to its first thread: so what
// this one starts can send the helper none.
func Main() int {
	code := make(chan int)
	var begin func()
	begin = func() {
		// Everything that follows changes this thread and what is forked from it.
		runtime.LockOSThread()
		if unix.Gettid() == os.Getpid() {
			begun := make(chan struct{})
			go func() { close(begun); begin() }()
			<-begun
			runtime.UnlockOSThread()
			return
		}
		code <- carryOut()
	}
	// This is the first thread, as a rule. It is kept, so that begin gets another one
	// at once.
	runtime.LockOSThread()
	go begin()
	return <-code
}

// carryOut is Main, on a thread of its own.
func carryOut() int {
	control := &control{fd: controlFD}
	w, err := newWakes()
	if err != nil {
		control.fail(&stepError{step: "make a pipe for signals", err: err})
		return failed
	}
	from := os.NewFile(planFD, "plan")
	p, err := plan.Decode(from)
	if err == nil {
		var code int
		if code, err = start(p, from, control, w); err == nil {
			return code
		}
	}
	control.fail(err)
	return failed
}

// hideMore adds to what is hidden by the plan what the starter has still looked
// for. It waits for it.
func hideMore(p *plan.Plan, from *os.File) error {
	names, err := plan.DecodeHidden(from)
	if err != nil {
		return err
	}
	p.Hidden = append(p.Hidden, names...)
	return from.Close()
}

// start builds the box, starts the command and returns its exit code. The rest of
// the plan is read where it is needed first.
func start(p *plan.Plan, from *os.File, control *control, w wakes) (int, error) {
	program, err := options(p)
	if err != nil {
		return 0, err
	}
	abi, err := landlockVersion()
	if err != nil {
		return 0, err
	}
	self := -1
	if p.Limits.Memory > 0 || p.Level == plan.Reduced {
		// The way to this program, which the box does not show.
		if self, err = unix.Open("/proc/self/exe", unix.O_PATH|unix.O_CLOEXEC, 0); err != nil {
			return 0, &stepError{step: "open the helper", err: err}
		}
	}
	report := plan.Report{Level: p.Level, Landlock: abi, Filter: program.Hash()}
	if p.Level != plan.Full {
		if err := hideMore(p, from); err != nil {
			return 0, err
		}
	}
	switch p.Level {
	case plan.Reduced:
		if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
			return 0, &stepError{step: "collect what the command leaves", err: err}
		}
	case plan.Bwrap:
		if report.Lacks, err = verify(p); err != nil {
			return 0, err
		}
		if err := network(p, control); err != nil {
			return 0, err
		}
	case plan.Full:
		if p.Grouped {
			// From here on, so that its own group is the outermost that it sees.
			if err := unix.Unshare(unix.CLONE_NEWCGROUP); err != nil {
				return 0, &stepError{step: "hide the control group of the box", err: err}
			}
		}
		if err := buildRoot(p, from); err != nil {
			return 0, err
		}
		if err := unix.Sethostname([]byte(p.Host)); err != nil {
			return 0, &stepError{step: "name the box", err: err}
		}
		if err := network(p, control); err != nil {
			return 0, err
		}
	}
	if err := unix.Chdir(p.Dir); err != nil {
		return 0, &stepError{step: "enter " + p.Dir, err: err, remedy: "start the command in a folder that the box shows"}
	}
	if err := sameProgram(p); err != nil {
		return 0, err
	}
	if err := confine(p, program, self); err != nil {
		return 0, err
	}
	if p.Level == plan.Reduced {
		if err := apart(p.Starter); err != nil {
			return 0, err
		}
	}
	control.report(report)
	return run(p, control, w, self)
}

// sameProgram checks that the program in the box is the one that was looked at.
func sameProgram(p *plan.Plan) error {
	if p.File == (plan.File{}) {
		return nil
	}
	var st unix.Stat_t
	if err := unix.Stat(p.Program, &st); err != nil {
		return commandError(p, err)
	}
	if (plan.File{Device: uint64(st.Dev), Inode: st.Ino}) != p.File {
		return commandError(p, errors.New("it is not the file that was looked at"))
	}
	return nil
}

// options builds the filter for the plan.
func options(p *plan.Plan) (filter.Program, error) {
	o := filter.Options{
		Inet:     p.Level.Whole() || p.Network == plan.Host,
		Datagram: p.Level.Whole() && p.Network != plan.Host,
		Unix:     p.Sockets == plan.OwnSockets,
		Terminal: p.Terminal || p.Level.Whole(), // terminals of the box are its own
		IPC:      p.Level.Whole(),               // in a namespace of its own
	}
	if p.Network == plan.Host {
		o.Inet, o.Datagram = true, true
	}
	arch, err := filter.Native()
	if err != nil {
		return filter.Program{}, err
	}
	return filter.Build(arch, o)
}

// run starts the command as a child, ends with it, and collects every process
// that is left without a parent meanwhile.
func run(p *plan.Plan, control *control, w wakes, self int) (int, error) {
	if err := w.listen(); err != nil {
		return 0, &stepError{step: "listen to signals", err: err}
	}
	name(plan.ListensName)
	path, argv := command(p, self)
	// In a terminal the command stays in the starter's process group, so that
	// the terminal's signals and the job control of the person's shell reach it.
	pid, err := syscall.ForkExec(path, argv, &syscall.ProcAttr{Env: p.Environ, Files: []uintptr{0, 1, 2}})
	if err != nil {
		return 0, commandError(p, err)
	}
	control.started()
	if p.Level != plan.Full {
		go follow(w)
	}
	// Signals are passed on from this thread, which the command was started from:
	// each thread went under Landlock by itself, and may send none to what another
	// one started (landlock(7), LANDLOCK_SCOPE_SIGNAL).
	stopped := false
	for buf := make([]byte, 64); ; {
		for _, number := range w.next(buf) {
			switch s := syscall.Signal(number); {
			case number == overByte:
				return gone(p)
			case s == syscall.SIGCHLD: // once for any number of children
			case s == plan.StopSignal, s == plan.ContinueSignal:
				stopped = s == plan.StopSignal
				everybody(stopped)
			case stopped && s == syscall.SIGCONT:
				everybody(true) // nothing but the order lets them go on
			case !p.Terminal || !fromTerminal(s):
				syscall.Kill(pid, s) // it has ended, if that fails
			}
		}
		code, ended, err := collect(pid)
		switch {
		case err != nil:
			return 0, err
		case ended && p.Level == plan.Reduced:
			endAll()
			return code, nil
		case ended:
			os.Exit(code) // and with it the box: the other threads are not waited for
		}
	}
}

// everybody stops all other processes of the box, or lets them go on. The kernel
// does it to all at once, so that nothing which forks meanwhile escapes (kill(2)
// with -1, which means everybody in the namespace but its first process, and where
// there is none everybody whom Landlock lets this thread reach: apart has checked
// that these are the ones in the box).
func everybody(stop bool) {
	order, state := syscall.SIGCONT, plan.ListensName
	if stop {
		order, state = syscall.SIGSTOP, plan.StoppedName
	}
	syscall.Kill(-1, order) // there is nobody else, if that fails
	name(state)
}

// name gives this thread a name, by which the outside sees how far it is.
func name(text string) {
	if b, err := unix.BytePtrFromString(text); err == nil {
		_ = unix.Prctl(unix.PR_SET_NAME, uintptr(unsafe.Pointer(b)), 0, 0, 0) // who waits for it waits in vain, if that fails
	}
}

// collect collects processes without a parent that have ended. If the command is
// one of them, it returns its exit code.
func collect(pid int) (code int, ended bool, err error) {
	for {
		var status syscall.WaitStatus
		child, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			return 0, false, &stepError{step: "wait for the command", err: err}
		case child == 0: // the others go on
			return 0, false, nil
		case child != pid:
		case status.Signaled():
			return 128 + int(status.Signal()), true, nil
		default:
			return status.ExitStatus(), true, nil
		}
	}
}

// command is what is executed: the command, or for one whose memory is limited
// the helper again, which sets the limit for itself and becomes the command. The
// first process of the box must not be held to it.
func command(p *plan.Plan, self int) (path string, argv []string) {
	if self < 0 {
		return p.Program, p.Argv
	}
	stage := plan.LimitArgument
	if p.Level == plan.Reduced {
		stage = plan.WithinArgument
	}
	return selfPath(self), append([]string{"vogt-confine", stage, strconv.FormatInt(p.Limits.Memory, 10), p.Program}, p.Argv...)
}

func selfPath(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

// Limit limits the memory of this process, in bytes, and becomes a program:
// args are the limit, the program's path and its arguments. It returns only if
// that fails, with the exit code.
func Limit(args []string) int {
	n, err := strconv.ParseUint(args[0], 10, 63)
	if err == nil {
		err = limitAndExec(n, args[1], args[2:])
	}
	fmt.Fprintf(os.Stderr, "vogt-confine: start %s with limited memory: %v\n", args[1], err)
	return failed
}

// limitAndExec makes two system calls with nothing in between: this process has
// more memory than most limits leave it, so that it can get no more.
func limitAndExec(limit uint64, program string, argv []string) error {
	path, err := unix.BytePtrFromString(program)
	if err != nil {
		return err
	}
	arguments, err := syscall.SlicePtrFromStrings(argv)
	if err != nil {
		return err
	}
	environ, err := syscall.SlicePtrFromStrings(os.Environ())
	if err != nil {
		return err
	}
	debug.SetGCPercent(-1)
	if limit == 0 {
		_, _, errno := syscall.RawSyscall(unix.SYS_EXECVE, uintptr(unsafe.Pointer(path)), uintptr(unsafe.Pointer(&arguments[0])), uintptr(unsafe.Pointer(&environ[0])))
		return errno
	}
	limits := &unix.Rlimit{Cur: limit, Max: limit}
	_, _, errno := syscall.RawSyscall6(unix.SYS_PRLIMIT64, 0, unix.RLIMIT_AS, uintptr(unsafe.Pointer(limits)), 0, 0, 0)
	if errno == 0 {
		_, _, errno = syscall.RawSyscall(unix.SYS_EXECVE, uintptr(unsafe.Pointer(path)), uintptr(unsafe.Pointer(&arguments[0])), uintptr(unsafe.Pointer(&environ[0])))
	}
	return errno
}

// fromTerminal reports whether a terminal sends the signal to all of its
// foreground, so that the command has it already.
func fromTerminal(s os.Signal) bool {
	return s == syscall.SIGINT || s == syscall.SIGQUIT || s == syscall.SIGTSTP || s == syscall.SIGCONT
}

// commandError says why the command itself did not start.
func commandError(p *plan.Plan, err error) error {
	return &programError{p.Program, err}
}

// programError is a command that cannot be started in a box that stands.
type programError struct {
	program string
	err     error
}

func (e *programError) Error() string {
	return fmt.Sprintf("%s cannot be started in the box: %v", e.program, e.err)
}

func (e *programError) Unwrap() error { return e.err }

// stepError is a wall that cannot be put up.
type stepError struct {
	step       string
	err        error
	remedy     string
	namespaces bool // a mount was refused
}

func (e *stepError) Error() string { return fmt.Sprintf("cannot %s: %v", e.step, e.err) }

func (e *stepError) Unwrap() error { return e.err }

// control is the helper's end of the connection to the starter: a packet a report.
type control struct {
	fd int
}

func (c *control) report(r plan.Report) {
	data, err := r.Encode()
	if err == nil {
		// A starter that is gone has taken the box with it.
		_ = unix.Send(c.fd, data, unix.MSG_NOSIGNAL)
	}
}

// started says that the command runs, by closing the connection.
func (c *control) started() {
	unix.Close(c.fd)
	c.fd = -1
}

func (c *control) fail(err error) {
	r := plan.Report{Error: err.Error()}
	var step *stepError
	if errors.As(err, &step) {
		r.Remedy, r.Namespaces = step.remedy, step.namespaces
	}
	var program *programError
	if errors.As(err, &program) {
		r.Unseen = errors.Is(program.err, syscall.ENOENT)
	}
	c.report(r)
}

// landlockVersion is the version of the kernel's Landlock (landlock(7)).
func landlockVersion() (int, error) {
	const version = 1 // LANDLOCK_CREATE_RULESET_VERSION
	n, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, version)
	if errno != 0 {
		return 0, &stepError{step: "use Landlock", err: errno, remedy: "this kernel has no Landlock (Linux 5.19), or it is switched off: add landlock to the kernel's lsm= parameter"}
	}
	return int(n), nil
}

// number is text as a descriptor, for messages.
func number(n int) string { return strconv.Itoa(n) }

// below reports whether a path is a folder or lies in it.
func below(name, folder string) bool {
	return name == folder || folder == "/" || strings.HasPrefix(name, folder+"/")
}
