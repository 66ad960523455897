package confine

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"vogt/internal/execution/confine/plan"
	"vogt/internal/execution/confine/spawn"
)

// startLimit is how long the helper may take to put up the walls.
const startLimit = 30 * time.Second

// Run runs a command in a box and returns when it has ended. helper is the path
// of vogt-confine.
func Run(helper string, r Request, streams Streams) (Outcome, error) {
	if err := streams.check(); err != nil {
		return Outcome{}, err
	}
	// The kernel ends the helper when the thread ends that has made it. Afterwards the
	// thread is free again: those who are tied to one wait for others longer.
	runtime.LockOSThread()
	unlock := sync.OnceFunc(runtime.UnlockOSThread)
	defer unlock()
	var b *launch
	held, err := hold()
	if err != nil {
		return Outcome{}, &RefusedError{Reason: err.Error()}
	}
	defer func() {
		// This takes a while, and neither has to do with the other.
		var stopped sync.WaitGroup
		if b != nil && b.passed != nil {
			stopped.Go(b.passed.stop)
		}
		held.release()
		stopped.Wait()
	}()
	b = &launch{helper: helper, wall: time.Duration(r.Profile.Limits.Wall) * time.Second, streams: streams, request: r, group: held.group(r.Profile.Limits)}
	defer func() { b.group.end() }()
	if r.Level == "" || r.Level == plan.Full {
		if b.early, err = b.begin(&plan.Plan{Level: plan.Full, Network: r.Profile.Network, Terminal: r.Terminal, Grouped: b.group != nil}); err != nil {
			return Outcome{}, err
		}
		defer b.early.end()
	}
	// While the helper starts, another goroutine finds out what it is to do.
	preparing := make(chan *prepared, 1)
	go func() { preparing <- b.prepare(held, b.early) }()
	if b.early != nil {
		b.early.start()
	}
	s := <-preparing
	defer s.owed.paid()
	if s.err != nil {
		return Outcome{Earlier: s.earlier}, &RefusedError{Reason: s.err.Error(), cause: s.err}
	}
	var out Outcome
	if r.Level == plan.Reduced {
		out, err = b.reduced(s.plan)
	} else {
		out, err = b.ladder(s.plan, r)
	}
	unlock()
	if b.group != nil {
		out.Group = b.group.holds
		b.group.end() // before the files are compared: nobody may change them then
		b.group = nil
	} else if r.Profile.Limits.CPUs > 0 {
		out.Report.Lacks = append(out.Report.Lacks, "a limit of processors")
	}
	out.Earlier = s.earlier
	if _, refused := errors.AsType[*RefusedError](err); refused {
		return out, err // nothing was started
	}
	ended := err
	if out.Changed, err = s.compare(s.plan, s.before); err != nil {
		return out, errors.Join(ended, fmt.Errorf("the protected files cannot be compared: %w", err))
	}
	return out, ended
}

// launch is what the start of a box needs besides its plan.
type launch struct {
	helper  string
	wall    time.Duration // 0 is no limit
	streams Streams
	request Request // whose listeners are served
	group   *group  // or nil
	early   *begun  // a helper that has got its plan already, or nil
	passed  *signals
}

// prepared is a request that is resolved, and what its box will be compared with.
type prepared struct {
	*resolver
	earlier []Change // of boxes before
	plan    *plan.Plan
	before  snapshot
	owed    note
	err     error // why there can be no box
}

// prepare resolves the request, and gives the plan to a helper that has been begun,
// in two parts: while the box is put up, what is protected is looked at. The command
// starts when the second one is there.
func (b *launch) prepare(held *held, early *begun) *prepared {
	s := &prepared{resolver: &resolver{request: b.request, profile: b.request.Profile}}
	s.earlier = held.tidy(b.request.Profile)
	var more []string
	for _, step := range [...]func() error{
		func() (err error) { s.plan, err = s.resolver.plan(); return err },
		func() error {
			return held.place(s.missing, s.gits, append(slices.Clip(s.plan.Guarded), s.plan.Pinned...), s.own)
		},
		func() error { return early.give(b.grouped(s.plan).Encode()) },
		func() (err error) {
			s.before, err = look(append(s.watched, s.plan.Guarded...), snapshot{})
			return err
		},
		func() (err error) {
			s.watched = append(s.watched, manyNamed(s.before)...)
			s.owed, err = held.owe(s.plan, s.resolver, s.before)
			return err
		},
		func() (err error) { more, err = s.more(); return err },
		func() error { return b.tell(early, plan.Full) },
		func() error {
			b.hear() // the command may run from here on
			return early.give(plan.EncodeHidden(more))
		},
	} {
		if s.err = step(); s.err != nil {
			return s
		}
	}
	s.plan.Hidden = append(s.plan.Hidden, more...) // other helpers get it whole
	return s
}

// grouped is the plan of a box in the group, if there is one.
func (b *launch) grouped(p *plan.Plan) *plan.Plan {
	if b.group == nil {
		return p
	}
	return b.group.grouped(p)
}

// hear keeps signals from ending this process while a box may run.
func (b *launch) hear() {
	if b.passed == nil {
		b.passed = hear()
	}
}

// reduced runs the command without namespaces, where there can be none.
func (b *launch) reduced(p *plan.Plan) (Outcome, error) {
	dir, err := os.MkdirTemp("", "vogt-box-")
	if err != nil {
		return Outcome{}, &RefusedError{Reason: err.Error()}
	}
	defer os.RemoveAll(dir)
	r := *p
	r.Level, r.Sockets = plan.Reduced, plan.NoSockets
	if r.Private, err = canonicalDir(dir); err != nil {
		return Outcome{}, &RefusedError{Reason: err.Error()}
	}
	if r.Network == plan.Proxied {
		return Outcome{}, &RefusedError{Reason: "a reduced box has no network of its own, in which a proxy could be served"}
	}
	r.Environ = append(slices.Clip(r.Environ), "TMPDIR="+r.Private)
	r.Starter = os.Getpid()
	return b.start(&r)
}

// begun is a process of the helper: about to start, or waiting for its plan.
type begun struct {
	cmd *exec.Cmd
	// program is the same where there are namespaces, which it is started in faster.
	program *spawn.Program
	life    *life
	done    func() // when it has ended
	err     error  // of the start
	// tried is closed when the start was tried, and told is set when who asked for
	// the box knows of the process.
	tried chan struct{}
	told  bool
	// The connection and the pipe for the plan: this end, and the helper's.
	control, theirs *os.File
	plan, from      *os.File
	terminal        *unix.Termios // what it was before, if the command stays at one
}

// begin makes everything that a helper for a plan of this kind needs: level,
// network, terminal and group have to be known, and what bwrap is to do.
func (b *launch) begin(p *plan.Plan) (*begun, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("make a connection to the helper: %w", err)
	}
	g := &begun{control: os.NewFile(uintptr(pair[0]), "control"), theirs: os.NewFile(uintptr(pair[1]), "control"), life: &life{}, done: func() {}, tried: make(chan struct{})}
	if g.from, g.plan, err = os.Pipe(); err != nil {
		g.end()
		return nil, fmt.Errorf("make a connection to the helper: %w", err)
	}
	cmd := exec.Command(b.helper)
	cmd.Args = []string{"vogt-confine", plan.Argument}
	// Each thread has to be confined by itself, so it is to have few of them. What the
	// Go runtime would find out about the machine's processors takes time, and so does
	// interrupting the only one that works.
	cmd.Env = []string{"GOMAXPROCS=1", "GODEBUG=containermaxprocs=0,updatemaxprocs=0,asyncpreemptoff=1"}
	cmd.Dir = "/"
	cmd.Stdin, cmd.Stdout, cmd.Stderr = b.streams.In, b.streams.Out, b.streams.Err
	cmd.ExtraFiles = []*os.File{g.from, g.theirs}
	cmd.SysProcAttr = attributes(p)
	if b.group != nil {
		cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(b.group.fd.Fd())
	}
	g.cmd = cmd
	if p.Level == plan.Full {
		g.program = b.program(cmd)
	}
	if g.life, err = lifeOf(p, cmd); err != nil {
		g.life = &life{}
		g.end()
		return nil, err
	}
	done := func() {}
	if p.Level == plan.Bwrap {
		if done, err = through(p, cmd); err != nil {
			g.end()
			return nil, err
		}
	}
	restore := b.streams.keep(p.Terminal)
	g.done = func() {
		restore()
		done()
	}
	if p.Terminal {
		g.terminal, _ = unix.IoctlGetTermios(int(b.streams.In.Fd()), unix.TCGETS) // else nothing is given back
	}
	return g, nil
}

// start starts the process. Its ends are closed then, so that nobody waits for one
// that could not be started.
func (g *begun) start() {
	g.err = g.tryStart()
	g.from.Close()
	g.theirs.Close()
	g.life.begun(g.cmd)
	close(g.tried)
}

// tryStart starts the process by spawn if it can. The standard library takes over
// where there is no call that it needs, as in some containers.
func (g *begun) tryStart() error {
	if g.program != nil {
		process, err := g.program.Start()
		if !errors.Is(err, unix.ENOSYS) {
			g.cmd.Process = process
			return err
		}
	}
	return g.cmd.Start()
}

// program is a command in namespaces as spawn starts it.
func (b *launch) program(cmd *exec.Cmd) *spawn.Program {
	files := append([]*os.File{b.streams.In, b.streams.Out, b.streams.Err}, cmd.ExtraFiles...)
	if slices.Contains(files, nil) {
		return nil
	}
	a := cmd.SysProcAttr
	p := &spawn.Program{
		Path: cmd.Path, Argv: cmd.Args, Environ: cmd.Env, Dir: cmd.Dir, Files: files,
		Namespaces: a.Cloneflags, Capabilities: a.AmbientCaps, Death: a.Pdeathsig, Session: a.Setsid,
	}
	if b.group != nil {
		p.Group = b.group.fd
	}
	return p
}

// tell tells who asked for the box of its first process, before the command may run.
// It waits for the start.
func (b *launch) tell(g *begun, level plan.Level) error {
	if g == nil || b.request.Started == nil {
		return nil
	}
	<-g.tried
	if g.err != nil || g.told {
		return nil
	}
	g.told = true
	return b.request.Started(g.cmd.Process.Pid, level)
}

// give writes a part of the plan, for a helper that may not have started yet. It
// does nothing without one.
func (g *begun) give(part []byte, err error) error {
	if err != nil || g == nil {
		return err
	}
	if err := g.plan.SetWriteDeadline(time.Now().Add(startLimit)); err != nil {
		return err
	}
	if _, err = g.plan.Write(part); errors.Is(err, unix.EPIPE) {
		return nil // it has ended, and has said why
	}
	return err
}

// end ends the box, if it still runs. It may be called more than once.
func (g *begun) end() {
	if g.ended() {
		return
	}
	g.life.end()
	if g.cmd != nil && g.cmd.Process != nil && g.cmd.ProcessState == nil {
		_ = g.cmd.Wait() // it was ended
	}
	for _, f := range []*os.File{g.control, g.theirs, g.plan, g.from} {
		if f != nil {
			f.Close()
		}
	}
	g.done()
	g.control = nil
}

func (g *begun) ended() bool { return g.control == nil }

// start starts the helper, or takes the one that has been begun, and waits for the
// end of the box.
func (b *launch) start(ungrouped *plan.Plan) (Outcome, error) {
	p := b.grouped(ungrouped)
	g := b.early
	b.early = nil
	if g == nil {
		var err error
		if g, err = b.begin(p); err != nil {
			return Outcome{}, err
		}
		b.hear()
		g.start()
		if g.err == nil {
			err := b.tell(g, p.Level)
			if err == nil {
				err = g.give(p.Encode())
			}
			if err == nil {
				err = g.give(plan.EncodeHidden(nil))
			}
			if err != nil {
				g.end()
				return Outcome{}, &RefusedError{Reason: err.Error()}
			}
		}
	}
	defer g.end()
	if g.err != nil && b.group != nil {
		// It may be the group: some containers permit no call that starts in one.
		b.group.end()
		b.group = nil
		return b.start(ungrouped)
	}
	if g.err != nil {
		return Outcome{}, cannotStart(b.helper, g.err)
	}
	return b.wait(g, p)
}

// wait waits for the end of a box whose helper has got its plan.
func (b *launch) wait(g *begun, p *plan.Plan) (Outcome, error) {
	defer b.passed.to(g.life, p.Terminal)()
	var served sync.WaitGroup
	defer served.Wait() // after the listeners are closed
	report, sockets, err := converse(g.control, p, b.request, &served)
	for _, s := range sockets {
		defer s.Close()
	}
	if err != nil {
		g.life.end()
	}
	var late atomic.Bool
	if b.wall > 0 {
		limit := time.AfterFunc(b.wall, func() {
			late.Store(true)
			g.life.end()
		})
		defer limit.Stop()
	}
	waited := g.cmd.Wait()
	if p.Terminal {
		giveBack(b.streams.In, g.terminal)
	}
	out := Outcome{Report: report, Code: exitCode(g.cmd.ProcessState), Late: late.Load()}
	switch {
	case report.Error != "":
		return out, &RefusedError{Reason: report.Error, Remedy: report.Remedy, Unseen: report.Unseen, namespaces: report.Namespaces}
	case err != nil:
		return out, &RefusedError{Reason: err.Error(), namespaces: p.Level == plan.Bwrap && errors.Is(err, errEarly)}
	}
	var exit *exec.ExitError
	if waited != nil && !errors.As(waited, &exit) {
		return out, waited
	}
	return out, nil
}

// keep notes how the streams are, and returns what makes them so again: others go
// on using them after the command, which may have left them without waiting
// (O_NONBLOCK), or a terminal without an echo. That of standard input is given back
// with its foreground, if it is the command's.
func (s Streams) keep(terminal bool) (restore func()) {
	var all []func()
	for i, f := range []*os.File{s.In, s.Out, s.Err} {
		if f == nil {
			continue
		}
		fd := int(f.Fd())
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0); err == nil {
			all = append(all, func() { _, _ = unix.FcntlInt(uintptr(fd), unix.F_SETFL, flags) }) // it is no worse than before, if it fails
		}
		if was, err := unix.IoctlGetTermios(fd, unix.TCGETS); err == nil && !(terminal && i == 0) {
			all = append(all, func() {
				now, err := unix.IoctlGetTermios(fd, unix.TCGETS)
				group, groupErr := unix.IoctlGetInt(fd, unix.TIOCGPGRP)
				if err == nil && *now != *was && (groupErr != nil || group == unix.Getpgrp()) {
					_ = unix.IoctlSetTermios(fd, unix.TCSETSW, was)
				}
			})
		}
	}
	return func() {
		for _, f := range all {
			f()
		}
	}
}

// giveBack takes the terminal's foreground back and gives it the settings that it
// had, whatever a command has left.
func giveBack(f *os.File, was *unix.Termios) {
	// From the background, the kernel would stop this process for it.
	if !signal.Ignored(syscall.SIGTTOU) {
		signal.Ignore(syscall.SIGTTOU)
		defer signal.Reset(syscall.SIGTTOU)
	}
	group := unix.Getpgrp()
	now, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCGPGRP)
	if err != nil || now != group && lives(now) {
		return // another job has the terminal
	}
	if now != group && unix.IoctlSetPointerInt(int(f.Fd()), unix.TIOCSPGRP, group) != nil {
		return
	}
	if was != nil {
		_ = unix.IoctlSetTermios(int(f.Fd()), unix.TCSETSW, was)
	}
}

// lives reports whether a process group has a member: one of another job of the
// person's shell keeps the foreground.
func lives(group int) bool { return unix.Kill(-group, 0) == nil }

// attributes are how the helper is started: in namespaces of its own, with the
// rights in them to build the box, and to end with this process.
func attributes(p *plan.Plan) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setsid: !p.Terminal}
	if p.Level == plan.Reduced {
		a.Pdeathsig = 0 // it would end the helper alone, which ends the others
	}
	if p.Level != plan.Full {
		return a
	}
	a.Cloneflags = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS
	if !p.Grouped {
		a.Cloneflags |= unix.CLONE_NEWCGROUP
	}
	if p.Network != plan.Host {
		a.Cloneflags |= unix.CLONE_NEWNET
	}
	a.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}}
	a.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}}
	// Without these the helper's own execve would drop the capabilities that
	// the new user namespace gave it (capabilities(7)).
	a.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_SETPCAP, unix.CAP_NET_BIND_SERVICE}
	if os.Getuid() == 0 {
		a.AmbientCaps = append(a.AmbientCaps, unix.CAP_DAC_OVERRIDE)
	}
	return a
}

func cannotStart(helper string, err error) error {
	r := &RefusedError{Reason: fmt.Sprintf("%s cannot be started: %v", helper, err)}
	switch {
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EACCES), errors.Is(err, unix.EINVAL):
		r.namespaces = true
		r.Reason = "this machine does not let an ordinary user make namespaces, so that there can be no full box: " + err.Error()
		r.Remedy = "vogt doctor says what to change; a profile with reduced = true makes do without namespaces, and says so"
	case errors.Is(err, os.ErrNotExist):
		r.Remedy = "install vogt-confine beside vogt"
	}
	return r
}

// errEarly is a helper of which nothing is heard.
var errEarly = errors.New("the helper ended before it had put up the box")

// converse listens to the helper until the command runs.
func converse(control *os.File, p *plan.Plan, r Request, served *sync.WaitGroup) (report plan.Report, sockets []io.Closer, err error) {
	fd := int(control.Fd())
	deadline := unix.NsecToTimeval(startLimit.Nanoseconds())
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &deadline); err != nil {
		return report, nil, err
	}
	packet, oob := make([]byte, 64<<10), make([]byte, unix.CmsgSpace(4))
	for {
		n, m, _, _, err := unix.Recvmsg(fd, packet, oob, unix.MSG_CMSG_CLOEXEC)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EAGAIN):
			return report, sockets, fmt.Errorf("the helper did not put up the box within %s", startLimit)
		case err != nil:
			return report, sockets, fmt.Errorf("hear from the helper: %w", err)
		case n == 0 && report.Level == "" && report.Error == "":
			return report, sockets, errEarly
		case n == 0:
			return report, sockets, nil // the command runs
		case m > 0:
			socket, serve, err := received(oob[:m], string(packet[:n]), p, r)
			if err != nil {
				return report, sockets, err
			}
			sockets = append(sockets, socket)
			served.Go(serve)
			if err := unix.Send(fd, []byte("served"), unix.MSG_NOSIGNAL); err != nil {
				return report, sockets, err
			}
			continue
		}
		next, err := plan.DecodeReport(packet[:n])
		if err != nil {
			return report, sockets, err
		}
		if next.Error != "" {
			report.Error, report.Remedy, report.Namespaces, report.Unseen = next.Error, next.Remedy, next.Namespaces, next.Unseen
			return report, sockets, nil
		}
		if next.Level != p.Level {
			return report, sockets, fmt.Errorf("the helper reports the level %q and not %q", next.Level, p.Level)
		}
		report = next
	}
}

// received takes a socket that the helper hands over, and finds who serves it.
func received(oob []byte, what string, p *plan.Plan, r Request) (io.Closer, func(), error) {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil || len(messages) != 1 {
		return nil, nil, errors.New("the helper's socket did not arrive")
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return nil, nil, errors.New("the helper's socket did not arrive")
	}
	f := os.NewFile(uintptr(fds[0]), "socket")
	defer f.Close()
	if what == plan.HandsNames && p.Direct != nil {
		conn, err := net.FilePacketConn(f)
		return conn, func() { r.Direct.Names(conn) }, err
	}
	var serve func(net.Listener)
	if text, ok := strings.CutPrefix(what, plan.HandsListener); ok {
		if port, err := strconv.Atoi(text); err == nil && slices.Contains(p.Ports, port) {
			serve = r.Serve[port]
		}
	} else if text, ok := strings.CutPrefix(what, plan.HandsDirect); ok && p.Direct != nil {
		if port, err := strconv.Atoi(text); err == nil && slices.Contains(p.Direct.Ports, port) {
			serve = r.Direct.Serve
		}
	}
	if serve == nil {
		return nil, nil, errors.New("the helper hands over a listener that nobody asked for")
	}
	l, err := net.FileListener(f)
	return l, func() { serve(l) }, err
}

// sealed is a file in memory that nobody can change any more.
func sealed(data []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate("plan", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("make a file in memory: %w", err)
	}
	f := os.NewFile(uintptr(fd), "plan")
	if _, err := f.Write(data); err != nil {
		f.Close()
		return nil, err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		f.Close()
		return nil, err
	}
	if _, err := unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_SEAL|unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_WRITE); err != nil {
		f.Close()
		return nil, fmt.Errorf("seal the plan: %w", err)
	}
	return f, nil
}
