package running

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"vogt/internal/execution/confine/plan"
)

// recordOf names a process that is a child of this one, so that its number cannot
// pass to another meanwhile.
func recordOf(pid int) (record, error) {
	boot, err := bootID()
	if err != nil {
		return record{}, err
	}
	s, err := statOf("/proc/" + strconv.Itoa(pid))
	return record{Process: pid, Begun: s.begun, Boot: boot}, err
}

func bootID() (string, error) {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(text)), err
}

// stat is what a process or thread shows of itself (proc_pid_stat(5)).
type stat struct {
	name   string
	state  byte
	parent int
	begun  uint64
}

func statOf(folder string) (s stat, err error) {
	text, err := os.ReadFile(folder + "/stat")
	if err != nil {
		return s, err
	}
	return parseStat(string(text))
}

// parseStat reads the fields after the name, which may hold anything.
func parseStat(text string) (s stat, err error) {
	open, shut := strings.IndexByte(text, '('), strings.LastIndexByte(text, ')')
	bad := fmt.Errorf("the kernel describes a process as %q", text)
	if open < 0 || shut < open {
		return s, bad
	}
	fields := strings.Fields(text[shut+1:])
	if len(fields) < 20 {
		return s, bad
	}
	s.name, s.state = text[open+1:shut], fields[0][0]
	if s.parent, err = strconv.Atoi(fields[1]); err != nil {
		return s, bad
	}
	if s.begun, err = strconv.ParseUint(fields[19], 10, 64); err != nil {
		return s, bad
	}
	return s, nil
}

// open returns a descriptor of the first process of the box, or -1 if the box has
// ended.
func (r record) open() (int, error) {
	boot, err := bootID()
	if err != nil || boot != r.Boot {
		return -1, err
	}
	fd, err := unix.PidfdOpen(r.Process, 0)
	if errors.Is(err, unix.ESRCH) || errors.Is(err, unix.EINVAL) {
		return -1, nil // nobody has the number, or a thread of another
	}
	if err != nil {
		return -1, fmt.Errorf("open the process (this needs Linux 5.3): %w", err)
	}
	if !r.lives() {
		unix.Close(fd)
		return -1, nil
	}
	return fd, nil
}

// lives reports whether the number is still that of the first process.
func (r record) lives() bool {
	s, err := statOf(r.folder())
	return err == nil && s.begun == r.Begun && s.state != 'Z' && s.state != 'X'
}

func (r record) folder() string { return "/proc/" + strconv.Itoa(r.Process) }

// in does something with a descriptor of the first process, if the box runs.
func (r record) in(do func(fd int) error) (there bool, err error) {
	fd, err := r.open()
	if err != nil || fd < 0 {
		return false, err
	}
	defer unix.Close(fd)
	if err := do(fd); err != nil && !errors.Is(err, unix.ESRCH) {
		return true, err
	}
	return r.lives(), nil
}

// stop stops everything in the box. The first process of its namespace does it from
// within, to all at once; then it is looked whether all have stopped.
func (r record) stop(ctx context.Context) (bool, error) {
	return r.in(func(int) error { return r.rounds(ctx, "stopped", r.stopRound) })
}

// stopRound does what is missing, and reports whether nothing was.
func (r record) stopRound() (done bool, err error) {
	first := r.first()
	switch stage, stopped := stageOf(first); {
	case stage == plan.StoppedName:
		return r.stopTree(first, false)
	case stage == plan.ListensName:
		if stopped { // it was, while the box was put up
			err = r.signal(first, unix.SIGCONT)
		}
		return false, errors.Join(err, r.signal(first, plan.StopSignal))
	}
	// The walls are being put up, and there is nobody else yet. If the command was
	// started meanwhile, the name says so in the next round.
	return r.stopTree(0, true)
}

// first is the helper, which is the first process of the box's namespace where it
// has one: the process that was started, or one that bwrap has made. It is 0 if there is none yet. Nobody else in the box can
// be the first of a namespace, since none can be made there.
func (r record) first() int {
	if r.Level != plan.Bwrap {
		return r.Process
	}
	below, err := r.descendants()
	if err != nil {
		return 0
	}
	for _, pid := range below {
		text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(text)) {
			if numbers, ok := strings.CutPrefix(line, "NSpid:"); ok {
				if all := strings.Fields(numbers); len(all) > 1 && all[len(all)-1] == "1" {
					return pid
				}
			}
		}
	}
	return 0
}

// stageOf is how far the first process of a namespace is, and whether it is stopped
// itself. Its name is its own: nobody in the box can change it.
func stageOf(first int) (name string, stopped bool) {
	stopped = true
	for _, thread := range threads(first) {
		if thread.name == plan.ListensName || thread.name == plan.StoppedName {
			name = thread.name
		}
		stopped = stopped && halted(thread.state)
	}
	return name, stopped
}

// threads are those of a process, or none if it has ended.
func threads(pid int) []stat {
	folder := "/proc/" + strconv.Itoa(pid) + "/task"
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil
	}
	var all []stat
	for _, entry := range entries {
		if s, err := statOf(folder + "/" + entry.Name()); err == nil {
			all = append(all, s)
		}
	}
	return all
}

// halted reports whether a thread executes nothing before a SIGCONT, or never.
func halted(state byte) bool { return strings.IndexByte("TtZX", state) >= 0 }

// stopTree stops what descends from the process that was started and is not stopped,
// but for one, and the process itself if it is to be. It reports whether all were.
func (r record) stopTree(but int, itself bool) (done bool, err error) {
	all, err := r.descendants()
	if err != nil {
		return false, err
	}
	if itself {
		all = append([]int{r.Process}, all...)
	}
	done = true
	for _, pid := range all {
		if pid == but {
			continue
		}
		stopped := true
		for _, thread := range threads(pid) {
			stopped = stopped && halted(thread.state)
		}
		if !stopped {
			done = false
			if err := r.signal(pid, unix.SIGSTOP); err != nil {
				return false, err
			}
		}
	}
	return done, nil
}

// descendants are all processes below the first one, parents before their children.
// In a full box that is everybody: whose parent ends becomes the first one's child.
func (r record) descendants() ([]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	children := make(map[int][]int)
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if s, err := statOf("/proc/" + entry.Name()); err == nil {
			children[s.parent] = append(children[s.parent], pid)
		}
	}
	all := children[r.Process]
	for i := 0; i < len(all); i++ {
		all = append(all, children[all[i]]...)
	}
	return all, nil
}

// signal sends a signal to a process if it still descends from the first one.
func (r record) signal(pid int, sig unix.Signal) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	for up := pid; up != r.Process; {
		s, err := statOf("/proc/" + strconv.Itoa(up))
		if err != nil || s.parent <= 1 {
			return nil // it has ended, or has left; the next round looks again
		}
		up = s.parent
	}
	if err := unix.PidfdSendSignal(fd, sig, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("send %v to the process %d: %w", sig, pid, err)
	}
	return nil
}

// proceed lets everything in the box go on.
func (r record) proceed(ctx context.Context) (bool, error) {
	return r.in(func(fd int) error {
		if err := unix.PidfdSendSignal(fd, unix.SIGCONT, nil, 0); err != nil {
			return err
		}
		if first := r.first(); first != 0 {
			if err := r.signal(first, unix.SIGCONT); err != nil {
				return err
			}
			return r.rounds(ctx, "continued", func() (bool, error) {
				if stage, _ := stageOf(first); stage != plan.StoppedName {
					return true, nil
				}
				return false, r.signal(first, plan.ContinueSignal)
			})
		}
		all, err := r.descendants()
		for _, pid := range all {
			err = errors.Join(err, r.signal(pid, unix.SIGCONT))
		}
		return err
	})
}

// kill ends the box: with the first process of a namespace the kernel ends all
// others. Of a reduced box those that have left their parents are missed.
func (r record) kill(ctx context.Context) (bool, error) {
	fd, err := r.open()
	if err != nil || fd < 0 {
		return false, err
	}
	defer unix.Close(fd)
	if r.Level != plan.Full {
		below, err := r.descendants()
		if err != nil {
			return true, err
		}
		for _, pid := range below {
			if err := r.signal(pid, unix.SIGKILL); err != nil {
				return true, err
			}
		}
	}
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return true, err
	}
	return true, r.rounds(ctx, "ended", func() (bool, error) { return !r.lives(), nil })
}

// cleanRounds is how many times in a row nothing may be missing: a process that
// ends between two looks can hide its children from one of them.
const cleanRounds = 3

// rounds calls round until it is done several times in a row, or the box has ended.
func (r record) rounds(ctx context.Context, what string, round func() (done bool, err error)) error {
	for clean := 0; clean < cleanRounds && r.lives(); {
		done, err := round()
		if err != nil {
			return err
		}
		if done {
			clean++
			continue
		}
		clean = 0
		timer := time.NewTimer(time.Millisecond) // they need a moment
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("it could not be %s in time: %w", what, ctx.Err())
		}
	}
	return nil
}

// Program is the path of the program in a box that has a TCP connection from this
// port of the box's loopback, or "" if that cannot be seen. It is a name and no
// proof: the program may have started another's code.
func Program(first int, port uint16) string {
	r := record{Process: first}
	table, err := os.ReadFile(r.folder() + "/net/tcp")
	if err != nil {
		return ""
	}
	socket := ""
	for line := range strings.Lines(string(table)) {
		fields := strings.Fields(line)
		// The local address is four bytes and a port in hexadecimal (proc_net_tcp).
		if len(fields) > 9 && strings.HasSuffix(fields[1], fmt.Sprintf(":%04X", port)) && fields[9] != "0" {
			socket = "socket:[" + fields[9] + "]"
		}
	}
	below, err := r.descendants()
	if err != nil || socket == "" {
		return ""
	}
	for _, pid := range below {
		folder := "/proc/" + strconv.Itoa(pid)
		open, err := os.ReadDir(folder + "/fd")
		if err != nil {
			continue
		}
		for _, fd := range open {
			if to, err := os.Readlink(folder + "/fd/" + fd.Name()); err != nil || to != socket {
				continue
			}
			program, err := os.Readlink(folder + "/exe")
			if err != nil {
				return ""
			}
			return program
		}
	}
	return ""
}
