package confine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"vogt/internal/execution/confine/plan"
)

// ladder runs a command in the fullest box that there can be here: the helper's
// own; one that the system's bwrap makes; and a reduced one, if the profile admits
// it. Each step is taken only because this machine gives no namespaces on the one
// before.
func (b *launch) ladder(p *plan.Plan, r Request) (out Outcome, err error) {
	var own *RefusedError
	if r.Level != plan.Bwrap {
		out, err = b.start(p)
		if own, _ = errors.AsType[*RefusedError](err); own == nil || !own.namespaces {
			return out, err
		}
	}
	out, err = b.throughBwrap(p)
	refused, ok := errors.AsType[*RefusedError](err)
	if !ok || !refused.namespaces || own == nil {
		return out, err
	}
	if r.Profile.Reduced && r.Level == "" {
		return b.reduced(p)
	}
	return out, &RefusedError{Reason: own.Reason + "; and through bwrap: " + refused.Reason, Remedy: own.Remedy, namespaces: true}
}

// systemPath is where the system's bwrap is. It is not looked for elsewhere: what
// the machine lets it do, it lets do nothing else.
const systemPath = "/usr/bin/bwrap"

// systemBwrap looks at the system's bwrap, and reports whether it runs as root.
func systemBwrap() (setuid bool, err error) {
	var st unix.Stat_t
	for _, name := range []string{"/", "/usr", path.Dir(systemPath), systemPath} {
		if err := unix.Lstat(name, &st); err != nil {
			return false, &os.PathError{Op: "look at", Path: name, Err: err}
		}
		want := uint32(unix.S_IFDIR)
		if name == systemPath {
			want = unix.S_IFREG
		}
		if st.Mode&unix.S_IFMT != want || st.Uid != 0 || st.Mode&0o022 != 0 {
			return false, fmt.Errorf("%s does not belong to root alone", name)
		}
	}
	return st.Mode&unix.S_ISUID != 0, nil
}

// throughBwrap runs a command in a box whose namespaces and mounts the system's
// bwrap makes. The helper looks at them and puts up the other walls.
func (b *launch) throughBwrap(p *plan.Plan) (Outcome, error) {
	if os.Getuid() == 0 {
		return Outcome{}, &RefusedError{Reason: "root has what bwrap has", namespaces: true}
	}
	setuid, err := systemBwrap()
	if err != nil {
		return Outcome{}, &RefusedError{Reason: err.Error(), Remedy: "install bubblewrap", namespaces: true}
	}
	q := *p
	// The network of such a box is made already, so it gets no addresses for
	// programs that know of no proxy.
	q.Level, q.Direct = plan.Bwrap, nil
	if q.Outer, err = namespaces(); err != nil {
		return Outcome{}, &RefusedError{Reason: err.Error()}
	}
	seen := p
	if b.group != nil {
		seen = b.group.grouped(p)
	}
	if q.Same, err = identities(seen); err != nil {
		return Outcome{}, &RefusedError{Reason: err.Error()}
	}
	out, err := b.start(&q)
	if p.Direct != nil && out.Report.Level == plan.Bwrap {
		out.Report.Lacks = append(out.Report.Lacks, "the way for programs that know of no proxy")
	}
	if setuid && q.Limits.Temporary > 0 && out.Report.Level == plan.Bwrap {
		out.Report.Lacks = append(out.Report.Lacks, "a limit of private folders")
	}
	if refused, ok := errors.AsType[*RefusedError](err); ok && refused.namespaces {
		refused.Reason = systemPath + " could not make it either"
	}
	return out, err
}

// namespaces are those of this process.
func namespaces() (map[string]uint64, error) {
	out := map[string]uint64{}
	for _, name := range []string{"mnt", "pid", "ipc", "uts", "cgroup", "net", "user"} {
		var st unix.Stat_t
		if err := unix.Stat("/proc/self/ns/"+name, &st); err != nil {
			return nil, fmt.Errorf("look at this process's namespaces: %w", err)
		}
		out[name] = st.Ino
	}
	return out, nil
}

// identities are the files that must stand at the paths of the plan.
func identities(p *plan.Plan) (out []plan.Place, err error) {
	is := func(at, name string) {
		if err != nil || covered(at, p.Hidden) {
			return
		}
		how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC | unix.O_NOFOLLOW, Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS}
		fd, openErr := unix.Openat2(unix.AT_FDCWD, name, &how)
		if err = openErr; err != nil {
			err = &os.PathError{Op: "open", Path: name, Err: err}
			return
		}
		defer unix.Close(fd)
		var st unix.Stat_t
		if err = unix.Fstat(fd, &st); err == nil {
			out = append(out, plan.Place{Path: at, File: plan.File{Device: uint64(st.Dev), Inode: st.Ino}})
		}
	}
	for _, list := range [][]string{p.Read, p.Write, p.Pinned, p.Guarded} {
		for _, name := range list {
			is(name, name)
		}
	}
	if p.Kept != "" {
		is(p.Home, p.Kept)
	}
	if p.Cache != "" {
		is(path.Join(p.Home, ".cache"), p.Cache)
	}
	return out, err
}

// through makes a command that starts the helper one that lets bwrap start it.
// done is called when it has ended.
func through(p *plan.Plan, cmd *exec.Cmd) (done func(), err error) {
	setuid, err := systemBwrap()
	if err != nil {
		return nil, err
	}
	dir, err := stateDir()
	if err != nil {
		return nil, err
	}
	// What stands for a file that is hidden. Nobody changes it but this user.
	empty := filepath.Join(dir, "empty")
	if f, err := os.OpenFile(empty, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|unix.O_NOFOLLOW, 0o600); err != nil {
		return nil, err
	} else if err := f.Close(); err != nil {
		return nil, err
	}
	var files []*os.File
	done = func() {
		for _, f := range files {
			f.Close()
		}
	}
	defer func() {
		if err != nil {
			done()
		}
	}()
	// hand gives a file to bwrap and returns its descriptor there.
	hand := func(f *os.File) string {
		files = append(files, f)
		cmd.ExtraFiles = append(cmd.ExtraFiles, f)
		return strconv.Itoa(2 + len(cmd.ExtraFiles))
	}
	// The box does not show the helper, so it is executed by a descriptor.
	fd, err := unix.Open(cmd.Path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &RefusedError{Reason: fmt.Sprintf("%s cannot be opened: %v", cmd.Path, err)}
	}
	self := hand(os.NewFile(uintptr(fd), "helper"))
	a := &bwrapping{plan: p, setuid: setuid, empty: empty}
	if p.Network != plan.Host && a.shows("/etc/hosts") {
		if st, err := os.Lstat("/etc/hosts"); err == nil && st.Mode().IsRegular() {
			f, err := sealed([]byte("127.0.0.1 localhost " + p.Host + "\n::1 localhost ip6-localhost ip6-loopback " + p.Host + "\n"))
			if err != nil {
				return nil, err
			}
			a.hosts = hand(f)
		}
	}
	if len(p.Trust) > 0 {
		f, err := sealed(p.Trust)
		if err != nil {
			return nil, err
		}
		a.trust = hand(f)
	}
	list, err := sealed([]byte(strings.Join(a.arguments(), "\x00") + "\x00"))
	if err != nil {
		return nil, err
	}
	args := []string{"bwrap", "--args", hand(list), "--", "/proc/self/fd/" + self, plan.Argument}
	if p.Terminal {
		cmd.Args = append([]string{"vogt-confine", plan.ThroughArgument, systemPath}, args...)
	} else {
		cmd.Path, cmd.Args = systemPath, args
	}
	return done, nil
}

// bwrapping makes the arguments of bwrap, in the order in which the helper itself
// puts a file tree together.
type bwrapping struct {
	plan   *plan.Plan
	setuid bool
	empty  string // an empty file
	hosts  string // descriptor of what stands at /etc/hosts, or empty
	trust  string // descriptor of what stands at plan.TrustPath, or empty
	list   []string
}

func (b *bwrapping) add(words ...string) { b.list = append(b.list, words...) }

// privateFolders are those that belong to the box alone.
func privateFolders() []string { return []string{"/tmp", "/var/tmp", "/run"} }

// tmpfs is a folder in memory. As root, bwrap does not bound it.
func (b *bwrapping) tmpfs(name, mode string) {
	b.add("--perms", mode)
	if n := b.plan.Limits.Temporary; n > 0 && !b.setuid {
		b.add("--size", strconv.FormatInt(n, 10))
	}
	b.add("--tmpfs", name)
}

// shows reports whether the tree has a path of the machine.
func (b *bwrapping) shows(name string) bool {
	p := b.plan
	if covered(name, p.Write) {
		return true
	}
	if p.Root == plan.HostView {
		return !covered(name, privateFolders(), []string{"/dev", "/proc"})
	}
	return covered(name, p.Read)
}

func (b *bwrapping) arguments() []string {
	p := b.plan
	b.add("--die-with-parent", "--as-pid-1", "--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup", "--hostname", p.Host)
	if p.Network != plan.Host {
		b.add("--unshare-net")
	}
	if !b.setuid {
		b.add("--unshare-user")
	}
	if p.Root == plan.HostView {
		b.add("--ro-bind", "/", "/")
	}
	for _, l := range p.Links {
		b.add("--symlink", l.Target, l.Path)
	}
	for _, name := range privateFolders() {
		b.tmpfs(name, "1777")
	}
	if p.Root == plan.Listed {
		switch {
		case p.Kept != "":
			b.add("--bind", p.Kept, p.Home)
		case !covered(p.Home, p.Read, p.Write):
			b.tmpfs(p.Home, "0700")
		}
		for _, name := range p.Read {
			b.add("--ro-bind", name, name)
		}
	}
	b.add("--dev", "/dev")
	b.tmpfs("/dev/shm", "1777")
	b.add("--ro-bind", b.empty, "/dev/console")
	b.add("--proc", "/proc")
	for _, name := range plan.Closed() {
		if _, err := os.Lstat("/proc/" + name); err == nil {
			b.add("--ro-bind", b.empty, "/proc/"+name)
		}
	}
	for _, name := range plan.Quiet() {
		if _, err := os.Lstat("/proc/" + name); err == nil {
			b.add("--ro-bind", "/proc/"+name, "/proc/"+name)
		}
	}
	for _, name := range p.Write {
		b.add("--bind", name, name)
	}
	if p.Cache != "" {
		b.add("--bind", p.Cache, path.Join(p.Home, ".cache"))
	}
	b.pin()
	if b.hosts != "" {
		b.add("--ro-bind-data", b.hosts, "/etc/hosts")
	}
	if b.trust != "" {
		b.add("--ro-bind-data", b.trust, plan.TrustPath)
	}
	b.hide()
	if p.Root == plan.Listed {
		b.add("--remount-ro", "/")
	}
	b.add("--chdir", "/")
	return b.list
}

// pin keeps folders from being renamed as the helper does: each is a mount, below
// the tree that is mounted once more.
func (b *bwrapping) pin() {
	for _, name := range b.plan.Pinned {
		b.add("--bind", name, name)
	}
	for _, name := range b.plan.Write {
		if slices.ContainsFunc(b.plan.Pinned, func(pinned string) bool { return covered(pinned, []string{name}) }) {
			b.add("--bind", name, name)
		}
	}
	for _, name := range b.plan.Guarded {
		b.add("--ro-bind", name, name)
	}
}

// hide covers what is hidden.
func (b *bwrapping) hide() {
	for _, name := range outermost(slices.Clone(b.plan.Hidden)) {
		st, err := os.Lstat(name)
		switch {
		case !b.shows(name) || errors.Is(err, fs.ErrNotExist):
		case err == nil && st.IsDir():
			b.add("--perms", "0000", "--tmpfs", name, "--remount-ro", name)
		default:
			b.add("--ro-bind", b.empty, name)
		}
	}
}
