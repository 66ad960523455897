package osuser

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Pause stops every process of the agent's user: those in its slice by freezing
// it, the others by SIGSTOP, in rounds, until none is left that runs. It tries
// until ctx ends.
//
// What is started for the user afterwards runs, except in the slice: who starts
// the agent's commands has to know that it is paused. Outside the slice the
// kernel may hang up a process group whose leader was ending at that moment:
// then others of the group are stopped and nobody is left who could continue
// them (setpgid(2)).
func Pause(ctx context.Context, spec Spec) error {
	return withUser(spec, func(m *host, id uint32) error {
		slice, err := m.freeze(ctx, true)
		if err != nil {
			return err
		}
		return m.stop(ctx, id, slice)
	})
}

// Resume lets every process of the agent's user continue, also those that
// something else had stopped.
func Resume(ctx context.Context, spec Spec) error {
	return withUser(spec, func(m *host, id uint32) error {
		if err := proceed(id); err != nil {
			return err
		}
		if slice, err := m.freeze(ctx, false); err != nil || slice == "" {
			return err
		}
		return proceed(id) // a stop that the frozen ones had not come to yet
	})
}

// Kill ends every process of the agent's user, stopped or not. It tries until
// ctx ends.
func Kill(ctx context.Context, spec Spec) error {
	return withUser(spec, func(m *host, id uint32) error { return m.kill(ctx, id) })
}

// withUser calls do with the id of the agent's user, also of one that was
// removed. Only an id that the ledger gave to this name gets there.
func withUser(spec Spec, do func(*host, uint32) error) error {
	m, err := newHost(spec)
	if err != nil {
		return err
	}
	if os.Geteuid() != 0 {
		return errors.New("osuser: only root may stop the processes of an agent's user; run the command with sudo")
	}
	l, err := m.ledger()
	if err != nil {
		return err
	}
	entries, err := m.entries()
	if err != nil {
		return err
	}
	id, known := l.last(m.spec.User)
	if len(entries) > 0 {
		id = entries[0].ID
		if !l.knows(id, m.spec.User) {
			return m.strange(id)
		}
	} else if !known {
		return ErrUnknown
	}
	return do(m, id)
}

// proc is where the kernel shows processes.
const proc = "/proc"

// process is a process of a user.
type process struct {
	pid int
	// stopped says that no thread can execute an instruction before a SIGCONT.
	stopped bool
	// dead says that no thread is left, and only the parent has not noticed.
	dead bool
}

// status is what a process shows of itself (proc_pid_status(5)).
type status struct {
	state   byte
	process int       // whose thread it is
	ids     [4]uint32 // real, effective, saved, file system
	pending uint64    // signals for the whole process
}

func (s status) of(id uint32) bool { return slices.Contains(s.ids[:], id) }

func parseStatus(text string) (s status, ok bool) {
	var fields int
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(line, ":")
		words := strings.Fields(value)
		switch key {
		case "State":
			if len(words) == 0 {
				return s, false
			}
			s.state = words[0][0]
		case "Tgid":
			if len(words) != 1 {
				return s, false
			}
			n, err := strconv.Atoi(words[0])
			if err != nil {
				return s, false
			}
			s.process = n
		case "Uid":
			if len(words) != len(s.ids) {
				return s, false
			}
			for i, word := range words {
				n, err := strconv.ParseUint(word, 10, 32)
				if err != nil {
					return s, false
				}
				s.ids[i] = uint32(n)
			}
		case "ShdPnd":
			if len(words) != 1 {
				return s, false
			}
			n, err := strconv.ParseUint(words[0], 16, 64)
			if err != nil {
				return s, false
			}
			s.pending = n
		default:
			continue
		}
		fields++
	}
	return s, fields == 4
}

func statusOf(folder string) (status, bool) {
	text, err := os.ReadFile(folder + "/status")
	if err != nil {
		return status{}, false // it has ended
	}
	return parseStatus(string(text))
}

// look returns a process if it belongs to the id. Each thread counts: the first
// one may have ended long ago, and the process then looks dead while others run.
func look(pid int, id uint32) (process, bool) {
	p := process{pid: pid, stopped: true, dead: true}
	folder := proc + "/" + strconv.Itoa(pid)
	all, ok := statusOf(folder)
	if !ok || !all.of(id) || all.process != pid {
		return p, false // a thread is looked at with its process
	}
	threads, err := os.ReadDir(folder + "/task")
	if err != nil {
		return p, false
	}
	const stopPending = 1 << (unix.SIGSTOP - 1)
	for _, thread := range threads {
		s, ok := statusOf(folder + "/task/" + thread.Name())
		if !ok {
			continue
		}
		switch s.state {
		case 'Z', 'X':
			continue
		case 'T', 't':
		case 'D': // in the kernel, and it stops before it comes back
			p.stopped = p.stopped && s.pending&stopPending != 0
		default:
			p.stopped = false
		}
		p.dead = false
	}
	return p, true
}

// scan visits every process of the id that is not dead, some of them twice. A
// process that forks and ends as quickly as it can is visited too, under one of
// its numbers: a list of processes is old when it has been read, so the numbers
// that were given meanwhile are looked at, until none is given meanwhile. What
// was about to fork at that moment is itself seen running. While others fork
// faster than it looks it goes on, until ctx ends.
func (m *host) scan(ctx context.Context, id uint32, visit func(process) error) error {
	if err := procIsOurs(); err != nil {
		return err
	}
	see := seeing(id, visit)
	for {
		seen, err := lastGiven()
		if err == nil {
			err = list(see)
		}
		if err != nil {
			return err
		}
		for {
			last, err := lastGiven()
			if err != nil {
				return err
			}
			if last == seen {
				return nil
			}
			if last < seen {
				break // the numbers have begun anew
			}
			if err := ctx.Err(); err != nil {
				return fmt.Errorf("osuser: processes are started faster than they can be looked at: %w", err)
			}
			for seen < last {
				seen++
				if err := see(seen); err != nil {
					return err
				}
			}
		}
	}
}

// procIsOurs says whether the numbers in /proc are the ones that signals go to.
func procIsOurs() error {
	if self, err := os.Readlink(proc + "/self"); err != nil || self != strconv.Itoa(os.Getpid()) {
		return fmt.Errorf("osuser: %s does not show this machine's processes; mount it: mount -t proc proc %s", proc, proc)
	}
	return nil
}

// seeing calls visit with a process that is the id's and not dead.
func seeing(id uint32, visit func(process) error) func(pid int) error {
	return func(pid int) error {
		if pid <= 1 || pid == os.Getpid() {
			return nil
		}
		if p, there := look(pid, id); there && !p.dead {
			return visit(p)
		}
		return nil
	}
}

// lastGiven is the number that was given to a process or thread last.
func lastGiven() (int, error) {
	text, err := os.ReadFile(proc + "/loadavg")
	if err != nil {
		return 0, fmt.Errorf("osuser: %w", err)
	}
	words := strings.Fields(string(text))
	if len(words) == 0 {
		return 0, fmt.Errorf("osuser: %s/loadavg is empty", proc)
	}
	last, err := strconv.Atoi(words[len(words)-1])
	if err != nil {
		return 0, fmt.Errorf("osuser: %s/loadavg: %w", proc, err)
	}
	return last, nil
}

// list calls see with the number of every process. It reads the list in small
// pieces, so that each is looked at soon after it was listed.
func list(see func(pid int) error) error {
	fd, err := unix.Open(proc, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("osuser: open %s: %w", proc, err)
	}
	defer unix.Close(fd)
	buf := make([]byte, 512)
	for {
		n, err := unix.ReadDirent(fd, buf)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return fmt.Errorf("osuser: list %s: %w", proc, err)
		}
		if n <= 0 {
			return nil
		}
		_, _, names := unix.ParseDirent(buf[:n], -1, nil)
		for _, name := range names {
			pid, err := strconv.Atoi(name)
			if err != nil {
				continue
			}
			if err := see(pid); err != nil {
				return err
			}
		}
	}
}

// present are the processes of the id that were there all the time, each once,
// and perhaps some of the others. What is stopped was there: it can neither end
// nor fork.
func present(id uint32) ([]process, error) {
	if err := procIsOurs(); err != nil {
		return nil, err
	}
	var all []process
	err := list(seeing(id, func(p process) error {
		all = append(all, p)
		return nil
	}))
	return all, err
}

// processes are all of the id. They are looked for until none was missed, and
// lookTime at most.
func (m *host) processes(id uint32) ([]process, error) {
	ctx, cancel := context.WithTimeout(context.Background(), lookTime)
	defer cancel()
	var all []process
	err := m.scan(ctx, id, func(p process) error {
		if !slices.ContainsFunc(all, func(seen process) bool { return seen.pid == p.pid }) {
			all = append(all, p)
		}
		return nil
	})
	return all, err
}

// lookTime is enough for a machine on which thousands of processes a second are
// started.
const lookTime = 10 * time.Second

// signal sends a signal to a process if it still belongs to the id. Between the
// look and the signal its number cannot pass to another: the descriptor is
// opened first, and stays with the process.
func signal(pid int, id uint32, sig unix.Signal) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("osuser: open the process %d (this needs Linux 5.3): %w", pid, err)
	}
	defer unix.Close(fd)
	if s, ok := statusOf(proc + "/" + strconv.Itoa(pid)); !ok || !s.of(id) {
		return nil
	}
	if err := unix.PidfdSendSignal(fd, sig, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("osuser: send %v to the process %d: %w", sig, pid, err)
	}
	return nil
}

// nobody is an id that nothing runs under.
const nobody = 1<<32 - 2

// broadcast sends a signal to every process that runs or was started under the
// id, at once: nothing that forks escapes it, however quickly (the kernel holds
// its list of processes meanwhile, and a fork with a signal pending begins
// again). It does so under the id, in a thread that ends with it, since only
// kill(2) to everybody whom one may signal does that. The real id is another's,
// so that the agent may not signal this thread.
func broadcast(id uint32, sig unix.Signal) error {
	if id == 0 || id >= nobody {
		return fmt.Errorf("osuser: %d is no agent's id", id)
	}
	result := make(chan error)
	var attempt func()
	attempt = func() {
		runtime.LockOSThread() // for good: what has changed its ids must not run anything else
		if unix.Gettid() == os.Getpid() {
			// The first thread never ends, and is what the process shows of itself.
			begun := make(chan struct{})
			go func() { close(begun); attempt() }()
			<-begun
			runtime.UnlockOSThread()
			return
		}
		result <- func() error {
			if _, _, err := unix.RawSyscall(unix.SYS_SETRESUID, nobody, uintptr(id), 0); err != 0 {
				// In a user namespace only some ids are there.
				if _, _, err := unix.RawSyscall(unix.SYS_SETRESUID, uintptr(id), uintptr(id), 0); err != 0 {
					return fmt.Errorf("osuser: become the user %d: %w", id, err)
				}
			}
			var real, effective, saved uint32
			_, _, err := unix.RawSyscall(unix.SYS_GETRESUID, uintptr(unsafe.Pointer(&real)), uintptr(unsafe.Pointer(&effective)), uintptr(unsafe.Pointer(&saved)))
			if err != 0 || effective != id || real != id && real != nobody {
				return fmt.Errorf("osuser: this thread did not become the user %d", id)
			}
			if _, _, err := unix.RawSyscall(unix.SYS_KILL, ^uintptr(0), uintptr(sig), 0); err != 0 && err != unix.ESRCH && err != unix.EPERM {
				return fmt.Errorf("osuser: send %v to all processes of the user %d: %w", sig, id, err)
			}
			return nil
		}()
	}
	go attempt()
	return <-result
}

// cleanScans is how many times in a row nothing may be found. One is not enough:
// the end of a process that a scan has not reached yet may continue a group that
// it has passed (SIGCONT to orphaned groups, setpgid(2)).
const cleanScans = 3

// rounds calls round until it finds nothing several times in a row.
func rounds(ctx context.Context, what string, round func() (found []int, err error)) error {
	const eager = 50
	for n, clean := 0, 0; clean < cleanScans; n++ {
		found, err := round()
		if err != nil {
			return err
		}
		if len(found) == 0 {
			clean++
			continue
		}
		clean = 0
		var wait time.Duration // a process that is in the kernel needs a moment
		if n >= eager {
			wait = time.Millisecond
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("osuser: %d processes could not be %s in time, among them %d: %w", len(found), what, found[0], ctx.Err())
		}
	}
	return nil
}

// stop stops what is not in the frozen slice.
func (m *host) stop(ctx context.Context, id uint32, slice string) error {
	return rounds(ctx, "stopped", func() (found []int, err error) {
		if slice == "" {
			if err := broadcast(id, unix.SIGSTOP); err != nil {
				return nil, err
			}
		}
		frozen, err := members(slice)
		if err != nil {
			return nil, err
		}
		err = m.scan(ctx, id, func(p process) error {
			if p.stopped || frozen[p.pid] {
				return nil
			}
			found = append(found, p.pid)
			return signal(p.pid, id, unix.SIGSTOP)
		})
		return found, err
	})
}

// proceed continues what is stopped, the newest first: when the leader of a
// process group ends while others of the group are still stopped, the kernel
// hangs those up. One that stops itself again means it.
func proceed(id uint32) error {
	all, err := present(id)
	if err != nil {
		return err
	}
	slices.SortFunc(all, func(a, b process) int { return b.pid - a.pid })
	for _, p := range all {
		if !p.stopped {
			continue
		}
		if err := signal(p.pid, id, unix.SIGCONT); err != nil {
			return err
		}
	}
	return nil
}

func (m *host) kill(ctx context.Context, id uint32) error {
	slice, err := m.cgroup()
	if err != nil {
		return err
	}
	if slice != "" {
		// All at once, where the kernel can (5.14).
		if err := os.WriteFile(slice+"/cgroup.kill", []byte("1"), 0); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("osuser: kill the processes of the slice: %w", err)
		}
	}
	return rounds(ctx, "killed", func() (found []int, err error) {
		if err := broadcast(id, unix.SIGKILL); err != nil {
			return nil, err
		}
		err = m.scan(ctx, id, func(p process) error {
			found = append(found, p.pid)
			return signal(p.pid, id, unix.SIGKILL)
		})
		return found, err
	})
}

// cgroup is the folder of the agent's slice in the cgroup v2 hierarchy, or "" if
// there is none: without systemd, or before anything was started in it.
func (m *host) cgroup() (string, error) {
	hierarchies := []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"}
	if m.spec.Machine.Cgroup != "" {
		hierarchies = []string{m.spec.Machine.Cgroup}
	}
	for _, h := range hierarchies {
		var stat unix.Statfs_t
		if err := unix.Statfs(h, &stat); err != nil || stat.Type != unix.CGROUP2_SUPER_MAGIC {
			continue
		}
		folder := h + "/vogt.slice/vogt-agent.slice/" + m.spec.slice()
		switch _, err := os.Stat(folder + "/cgroup.freeze"); {
		case err == nil:
			return folder, nil
		case !errors.Is(err, fs.ErrNotExist):
			return "", fmt.Errorf("osuser: look for the agent's slice: %w", err)
		}
	}
	return "", nil
}

// freeze freezes or thaws the agent's slice, if it is there, and returns its
// folder once the kernel says so.
func (m *host) freeze(ctx context.Context, yes bool) (string, error) {
	folder, err := m.cgroup()
	if err != nil || folder == "" {
		return "", err
	}
	value, event := "0", "frozen 0"
	if yes {
		value, event = "1", "frozen 1"
	}
	if err := os.WriteFile(folder+"/cgroup.freeze", []byte(value), 0); err != nil {
		return "", fmt.Errorf("osuser: freeze the agent's slice: %w", err)
	}
	for {
		events, err := os.ReadFile(folder + "/cgroup.events")
		if err != nil {
			return "", fmt.Errorf("osuser: freeze the agent's slice: %w", err)
		}
		if hasLine(events, event) {
			return folder, nil
		}
		timer := time.NewTimer(time.Millisecond)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return "", fmt.Errorf("osuser: the agent's slice %s did not freeze in time: %w", folder, ctx.Err())
		}
	}
}

// members are the processes in a slice and all that is below it.
func members(slice string) (map[int]bool, error) {
	all := make(map[int]bool)
	if slice == "" {
		return all, nil
	}
	err := filepath.WalkDir(slice, func(p string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // a group that has ended
		}
		if err != nil || d.Name() != "cgroup.procs" {
			return err
		}
		text, err := os.ReadFile(p)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) || errors.Is(err, unix.EOPNOTSUPP) {
			return nil // ended, or of threads, whose processes stand above
		}
		for line := range strings.Lines(string(text)) {
			if pid, err := strconv.Atoi(strings.TrimSpace(line)); err == nil {
				all[pid] = true
			}
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("osuser: list the agent's slice: %w", err)
	}
	return all, nil
}
