package inside

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"vogt/internal/execution/confine/plan"
)

// verify looks at what bwrap has made before anything relies on it: namespaces,
// and for every path of the plan the file that stands there and whether it can be
// written. bwrap opens paths by their names, in folders that others may change at
// that moment; what came of it counts. It returns what the box lacks.
func verify(p *plan.Plan) (lacks []string, err error) {
	const step = "rely on what bwrap has made"
	for name, outer := range p.Outer {
		var st unix.Stat_t
		if err := unix.Stat("/proc/self/ns/"+name, &st); err != nil {
			return nil, &stepError{step: step, err: fmt.Errorf("its namespaces: %w", err)}
		}
		switch {
		case st.Ino != outer || name == "net" && p.Network == plan.Host:
		case name == "user":
			lacks = append(lacks, "a user namespace")
		default:
			return nil, &stepError{step: step, err: fmt.Errorf("the box has the machine's %s namespace", name)}
		}
	}
	if os.Getpid() != 1 {
		return nil, &stepError{step: step, err: errors.New("the helper is not the first process of the box")}
	}
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, &stepError{step: step, err: err}
	}
	t := &made{plan: p, mounts: map[uint64]mounted{}}
	for line := range strings.Lines(string(text)) {
		m, err := parseMount(line)
		if err == nil {
			err = t.permits(m)
		}
		if err != nil {
			return nil, &stepError{step: step, err: err}
		}
		t.mounts[m.id] = m
	}
	if err := t.stands(); err != nil {
		return nil, &stepError{step: step, err: err}
	}
	return lacks, nil
}

// mounted is a line of mountinfo (proc_pid_mountinfo(5)).
type mounted struct {
	id      uint64
	point   string
	kind    string
	options []string
}

func (m mounted) has(option string) bool { return slices.Contains(m.options, option) }

func parseMount(line string) (m mounted, err error) {
	words := strings.Fields(line)
	dash := slices.Index(words, "-")
	if dash < 6 || len(words) < dash+3 {
		return m, errors.New("the list of mounts has a line that is none")
	}
	if _, err := fmt.Sscan(words[0], &m.id); err != nil {
		return m, err
	}
	m.point = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(words[4])
	m.options, m.kind = strings.Split(words[5], ","), words[dash+1]
	return m, nil
}

// made is the file tree that bwrap has put together.
type made struct {
	plan   *plan.Plan
	mounts map[uint64]mounted
}

// private are the folders that belong to the box alone.
func private(p *plan.Plan) []string {
	list := []string{"/tmp", "/var/tmp", "/run", "/dev", "/proc"}
	if p.Root == plan.Listed || p.Kept != "" {
		list = append(list, p.Home)
	}
	return list
}

// permits refuses a mount that gives more than any of the plan's.
func (t *made) permits(m mounted) error {
	device := strings.HasPrefix(m.point, "/dev/") && slices.Contains(plan.Devices(), m.point[len("/dev/"):]) || m.kind == "devpts"
	switch {
	case !m.has("nosuid"):
		return fmt.Errorf("programs on %s could get more rights", m.point)
	case !m.has("nodev") && !device:
		return fmt.Errorf("devices on %s could be opened", m.point)
	case m.has("ro"), device:
		return nil
	}
	for _, list := range [][]string{t.plan.Write, private(t.plan)} {
		for _, folder := range list {
			if below(m.point, folder) {
				return nil
			}
		}
	}
	return fmt.Errorf("%s can be written", m.point)
}

// stands checks every path of the plan.
func (t *made) stands() error {
	for _, s := range t.plan.Same {
		if err := t.is(s.Path, s.File); err != nil {
			return err
		}
	}
	writable := func(name string) bool {
		return slices.ContainsFunc(t.plan.Write, func(w string) bool { return below(name, w) })
	}
	for _, name := range t.plan.Read {
		if t.plan.Root == plan.Listed && !writable(name) {
			if err := t.readOnly(name); err != nil {
				return err
			}
		}
	}
	for _, name := range t.plan.Guarded {
		if err := t.readOnly(name); err != nil {
			return err
		}
	}
	for _, name := range plan.Quiet() {
		if err := t.readOnly("/proc/" + name); err != nil && !errors.Is(err, unix.ENOENT) {
			return err
		}
	}
	for _, name := range plan.Closed() {
		if err := t.hidden("/proc/" + name); err != nil {
			return err
		}
	}
	for _, name := range t.plan.Pinned {
		if !t.stood(name) {
			return fmt.Errorf("%s could be renamed", name)
		}
	}
	for _, name := range t.plan.Hidden {
		if err := t.hidden(name); err != nil {
			return err
		}
	}
	return nil
}

// stood reports whether something is mounted at a path, perhaps below another mount.
func (t *made) stood(name string) bool {
	for _, m := range t.mounts {
		if m.point == name {
			return true
		}
	}
	return false
}

// open opens a path of which no part is a link.
func open(name string) (int, error) {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC | unix.O_NOFOLLOW, Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS}
	return unix.Openat2(unix.AT_FDCWD, name, &how)
}

// is checks that a file is the one that the starter has seen.
func (t *made) is(name string, want plan.File) error {
	fd, err := open(name)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if (plan.File{Device: uint64(st.Dev), Inode: st.Ino}) != want {
		return fmt.Errorf("%s is not the file that was looked at", name)
	}
	return nil
}

// readOnly checks that the mount on which a path lies cannot be written.
func (t *made) readOnly(name string) error {
	fd, err := open(name)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	defer unix.Close(fd)
	const mountID = 0x1000 // STATX_MNT_ID
	var st unix.Statx_t
	if err := unix.Statx(fd, "", unix.AT_EMPTY_PATH, mountID, &st); err != nil || st.Mask&mountID == 0 {
		return fmt.Errorf("the mount of %s cannot be found: %w", name, err)
	}
	if m, ok := t.mounts[st.Mnt_id]; !ok || !m.has("ro") {
		return fmt.Errorf("%s can be written", name)
	}
	return nil
}

// hidden checks that a folder cannot be entered and a file is empty.
func (t *made) hidden(name string) error {
	fd, err := open(name)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.EACCES) {
		return nil // the root does not show it
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	folder := st.Mode&unix.S_IFMT == unix.S_IFDIR
	if folder && st.Mode&0o777 != 0 || !folder && st.Size != 0 {
		return fmt.Errorf("%s is not hidden", name)
	}
	return t.readOnly(name)
}
