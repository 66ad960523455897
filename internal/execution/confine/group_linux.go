package confine

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"vogt/internal/execution/confine/plan"
)

// group is a control group (cgroup v2) for one box: its limits hold for all
// processes of the box together, and all of them can be ended at once. There is one
// where this user may make groups, as in a systemd user session; else limits are
// those of each process.
type group struct {
	dir   string
	fd    *os.File // of the folder, locked until the end
	mark  *os.File // says to later boxes that it was there, and is locked until the end
	holds []string // the files whose limits hold
}

// groupPrefix begins the names of groups, groupEnding ends those of marks.
const (
	groupPrefix = "vogt-box-"
	groupEnding = ".group"
)

// group makes the group of a box, or returns nil where there can be none. The gate
// is locked.
func (h *held) group(l Limits) *group {
	parent, controllers := groupParent("/proc/self")
	if parent == "" {
		return nil
	}
	h.groups = parent
	id := rand.Text()
	g := &group{dir: filepath.Join(parent, groupPrefix+id)}
	var err error
	if g.mark, err = openLock(filepath.Join(h.dir, id+groupEnding), unix.O_EXCL); err != nil {
		return nil
	}
	// Written first: what is made before it is known would stay for ever.
	if err = flock(g.mark, unix.LOCK_EX); err == nil {
		_, err = g.mark.WriteString(g.dir)
	}
	if err == nil {
		err = os.Mkdir(g.dir, 0o700)
	}
	if err == nil {
		g.fd, err = os.OpenFile(g.dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	}
	if err == nil {
		err = unix.Flock(int(g.fd.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	}
	if err != nil {
		g.end()
		return nil
	}
	g.limit(l, controllers)
	return g
}

// limit sets what the group can hold. What it cannot is left to limits of processes.
func (g *group) limit(l Limits, controllers []string) {
	set := func(controller, file, value string) bool {
		if !slices.Contains(controllers, controller) || os.WriteFile(filepath.Join(g.dir, file), []byte(value), 0) != nil {
			return false
		}
		g.holds = append(g.holds, file)
		return true
	}
	if l.Memory > 0 && set("memory", "memory.max", strconv.FormatInt(int64(l.Memory), 10)) {
		set("memory", "memory.swap.max", "0") // there is no such file without swap
	}
	if l.Processes > 0 {
		set("pids", "pids.max", strconv.FormatInt(l.Processes, 10))
	}
	if l.CPUs > 0 {
		const period = 100_000 // microseconds
		set("cpu", "cpu.max", fmt.Sprintf("%d %d", max(1000, int64(l.CPUs*period)), period))
	}
	if _, err := os.Stat(filepath.Join(g.dir, "cgroup.kill")); err == nil {
		g.holds = append(g.holds, "cgroup.kill")
	}
}

// grouped is the plan of a box in the group: limits that hold for all of it need
// not hold for each process, and the groups of the machine are not shown.
func (g *group) grouped(p *plan.Plan) *plan.Plan {
	out := *p
	out.Grouped = true
	if slices.Contains(g.holds, "memory.max") {
		out.Limits.Memory = 0
	}
	if slices.Contains(g.holds, "pids.max") {
		out.Limits.Processes = 0
	}
	const shown = "/sys/fs/cgroup"
	if _, err := os.Lstat(shown); err == nil && !covered(shown, p.Hidden) {
		out.Hidden = append(slices.Clip(out.Hidden), shown)
	}
	return &out
}

// end ends what is still in the group, and removes it.
func (g *group) end() {
	if g == nil {
		return
	}
	if g.fd != nil {
		g.fd.Close()
	}
	if g.mark == nil {
		return
	}
	if endGroup(g.dir) == nil {
		_ = os.Remove(g.mark.Name()) // else the next box looks at it once more
	}
	g.mark.Close()
}

// endGroup kills what is in a group and removes it, once the kernel says that it is
// empty.
func endGroup(dir string) error {
	_ = os.WriteFile(filepath.Join(dir, "cgroup.kill"), []byte("1"), 0) // else it is empty, or stays
	events, err := os.Open(filepath.Join(dir, "cgroup.events"))
	if errors.Is(err, os.ErrNotExist) {
		if err = os.Remove(dir); errors.Is(err, os.ErrNotExist) {
			return nil
		}
		return err
	}
	if err != nil {
		return err
	}
	defer events.Close()
	for end := time.Now().Add(endLimit); ; {
		text := make([]byte, 4096)
		n, err := events.ReadAt(text, 0)
		if err != nil && err != io.EOF {
			return err
		}
		if !bytes.Contains(text[:n], []byte("populated 1")) {
			break
		}
		left := time.Until(end)
		if left <= 0 {
			return errors.New("it has processes still")
		}
		// The kernel says so when the file has changed (cgroups(7)).
		poll := []unix.PollFd{{Fd: int32(events.Fd()), Events: unix.POLLPRI}}
		if _, err := unix.Poll(poll, int(left.Milliseconds())+1); err != nil && err != unix.EINTR {
			return err
		}
	}
	return os.Remove(dir)
}

// sweepGroups removes the groups of boxes whose starter was killed. The gate is
// locked.
func (h *held) sweepGroups() {
	entries, err := os.ReadDir(h.dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if filepath.Ext(e.Name()) != groupEnding {
			continue
		}
		f, err := os.OpenFile(filepath.Join(h.dir, e.Name()), os.O_RDWR|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			continue
		}
		if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
			data, err := io.ReadAll(io.LimitReader(f, unix.PathMax))
			dir := string(data)
			id := strings.TrimSuffix(e.Name(), groupEnding)
			if err == nil && (filepath.Base(dir) != groupPrefix+id || endGroup(dir) == nil) {
				_ = os.Remove(f.Name())
			}
		}
		f.Close()
	}
}

// sweepParent removes the groups beside this box's that nobody holds and nothing is
// in: those of starters that were killed and had their marks elsewhere, in a home or a
// tree of files that is gone.
func (h *held) sweepParent() {
	if h.groups == "" {
		return
	}
	entries, err := os.ReadDir(h.groups)
	if err != nil {
		return
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), groupPrefix) {
			continue
		}
		f, err := os.OpenFile(filepath.Join(h.groups, e.Name()), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			continue
		}
		if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
			_ = os.Remove(f.Name()) // it fails while something is in it
		}
		f.Close()
	}
}

// groupParent is the folder in which this process may make groups for its children,
// and the controllers that such a group has. A process is moved by whoever may
// write the group above both places, and a group that has processes gives its
// children no controllers (cgroups(7)): so the place is above this process's own
// group, but for the outermost of all. proc is /proc/self.
func groupParent(proc string) (dir string, controllers []string) {
	own, top := ownGroup(proc)
	if own == "" {
		return "", nil
	}
	for at := own; ; at = filepath.Dir(at) {
		if unix.Access(at, unix.W_OK) == nil && unix.Access(filepath.Join(at, "cgroup.procs"), unix.W_OK) == nil {
			have := enabled(at)
			if dir == "" || len(have) > len(controllers) {
				dir, controllers = at, have
			}
		}
		if at == top || len(controllers) == len(wanted()) {
			return dir, controllers
		}
	}
}

// wanted are the controllers that limits need.
func wanted() []string { return []string{"memory", "pids", "cpu"} }

// enabled are those that groups in a folder get, after what is missing was asked
// for.
func enabled(dir string) (have []string) {
	words := func(name string) []string {
		text, _ := os.ReadFile(filepath.Join(dir, name)) // missing ones are none
		return strings.Fields(string(text))
	}
	there, on := words("cgroup.controllers"), words("cgroup.subtree_control")
	for _, c := range wanted() {
		if !slices.Contains(on, c) && slices.Contains(there, c) {
			_ = os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+c), 0) // it may not be
		}
	}
	on = words("cgroup.subtree_control")
	for _, c := range wanted() {
		if slices.Contains(on, c) {
			have = append(have, c)
		}
	}
	return have
}

// ownGroup is the folder of this process's group, and the outermost that is
// mounted. Both are empty without cgroup v2.
func ownGroup(proc string) (own, top string) {
	text, err := os.ReadFile(filepath.Join(proc, "cgroup"))
	if err != nil {
		return "", ""
	}
	name := ""
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(strings.TrimRight(line, "\n"), "0::"); ok {
			name = rest
		}
	}
	mounts, err := os.ReadFile(filepath.Join(proc, "mountinfo"))
	if err != nil || name == "" {
		return "", ""
	}
	for line := range strings.Lines(string(mounts)) {
		words := strings.Fields(line)
		dash := slices.Index(words, "-")
		if dash < 6 || len(words) < dash+2 || words[dash+1] != "cgroup2" {
			continue
		}
		root, point := words[3], words[4]
		if !covered(name, []string{root}) || slices.Contains(strings.Split(name, "/"), "..") {
			continue
		}
		top = filepath.Clean(point)
		return filepath.Join(top, strings.TrimPrefix(name, root)), top
	}
	return "", ""
}
