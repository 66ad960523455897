package inside

import (
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"vogt/internal/execution/confine/plan"
)

// Attributes of a mount: what is only read, and what may be written.
const (
	readOnly = unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV
	writable = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV
)

// stage is where the new root is put together.
const stage = "/tmp"

// builder puts the root of a box together. All steps go through it, so that
// the first error ends them.
type builder struct {
	plan *plan.Plan
	root int // descriptor of the new root, or -1
	err  error
}

// buildRoot replaces the file tree by the plan's. It runs as the first process
// of new user, mount and process namespaces.
func buildRoot(p *plan.Plan) error {
	b := &builder{plan: p, root: -1}
	defer func() { unix.Close(b.root) }()
	b.mounting("keep mounts from leaving the box", unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
	sources := b.sources()
	b.tmpfs(stage, "mode=755,size=4m") // room for what is made here
	const root = stage + "/root"
	b.mkdir(root, 0o755)
	// What is listed may lie in a folder that is private, so that comes first.
	if p.Root == plan.Listed {
		b.tmpfs(root, "mode=755,size=16m")
		b.links(root)
		b.private(root)
		b.home(root, sources.home)
	}
	for _, s := range sources.read {
		b.place(root, s)
	}
	if p.Root == plan.HostView {
		b.private(root)
	}
	b.devices(root, sources.devices)
	b.proc(root)
	for _, s := range sources.write {
		b.place(root, s)
	}
	if b.plan.Cache != "" {
		b.place(root, sources.cache)
	}
	b.pin(root, sources.write)
	b.hosts(root)
	b.resolver(root)
	b.trust(root)
	b.hide(root)
	if b.err != nil {
		return b.err
	}
	return enter(root)
}

// enter makes root the root of this mount namespace and forgets the old one.
func enter(root string) error {
	for _, step := range []struct {
		what string
		do   func() error
	}{
		{"enter the new root", func() error { return unix.Chdir(root) }},
		{"change the root", func() error { return unix.PivotRoot(".", ".") }},
		{"forget the old root", func() error { return unix.Unmount(".", unix.MNT_DETACH) }},
		{"enter the root", func() error { return unix.Chdir("/") }},
	} {
		if err := step.do(); err != nil {
			return &stepError{step: step.what, err: err}
		}
	}
	return nil
}

// do notes the error of a step.
func (b *builder) do(step string, err error) bool {
	if b.err == nil && err != nil {
		b.err = &stepError{step: step, err: err}
	}
	return b.err == nil
}

// mounting is do for steps that fail because of the machine, whatever is in the
// workspace: only those say that there can be no full box.
func (b *builder) mounting(step string, err error) bool {
	if b.do(step, err) || !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.EACCES) {
		return b.err == nil
	}
	if failed, ok := b.err.(*stepError); ok && failed.step == step {
		failed.namespaces = true
		failed.remedy = "this machine keeps ordinary users from mounting in a namespace of their own; vogt doctor says what to change"
	}
	return false
}

// tree is a part of the old file tree, taken as a mount of its own.
type tree struct {
	path string
	fd   int
	dir  bool
}

type sources struct {
	read, write []tree
	devices     []tree
	home, cache tree
}

// sources takes copies of what the new root shows while the old one is there.
func (b *builder) sources() (s sources) {
	if b.plan.Root == plan.HostView {
		s.read = append(s.read, b.clone("/", readOnly, true))
	} else {
		for _, name := range b.plan.Read {
			s.read = append(s.read, b.clone(name, readOnly, true))
		}
	}
	for _, name := range b.plan.Write {
		s.write = append(s.write, b.clone(name, writable, true))
	}
	if b.plan.Kept != "" {
		s.home = b.clone(b.plan.Kept, writable, false)
		s.home.path = b.plan.Home
	}
	if b.plan.Cache != "" {
		s.cache = b.clone(b.plan.Cache, writable, false)
		s.cache.path = path.Join(b.plan.Home, ".cache")
	}
	for _, name := range plan.Devices() {
		s.devices = append(s.devices, b.clone("/dev/"+name, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NOEXEC, false))
	}
	return s
}

// clone takes a path as a mount with the attributes. The path is opened without
// following a link in its last part; the plan says that no other part is one.
func (b *builder) clone(name string, attributes uint64, recursive bool) tree {
	if b.err != nil {
		return tree{path: name, fd: -1}
	}
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC | unix.O_NOFOLLOW, Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS}
	from, err := unix.Openat2(unix.AT_FDCWD, name, &how)
	if !b.do("open "+name, err) {
		return tree{path: name, fd: -1}
	}
	defer unix.Close(from)
	var st unix.Stat_t
	b.do("look at "+name, unix.Fstat(from, &st))
	return b.cloneFD(from, name, st.Mode&unix.S_IFMT == unix.S_IFDIR, attributes, recursive)
}

func (b *builder) cloneFD(from int, name string, dir bool, attributes uint64, recursive bool) tree {
	flags := uint(unix.OPEN_TREE_CLONE | unix.OPEN_TREE_CLOEXEC | unix.AT_EMPTY_PATH)
	at := uint(unix.AT_EMPTY_PATH)
	if recursive {
		flags |= unix.AT_RECURSIVE
		at |= unix.AT_RECURSIVE
	}
	fd, err := unix.OpenTree(from, "", flags)
	if !b.do("take "+name, err) {
		return tree{path: name, fd: -1}
	}
	if attributes != 0 {
		b.do("restrict "+name, unix.MountSetattr(fd, "", at, &unix.MountAttr{Attr_set: attributes}))
	}
	return tree{path: name, fd: fd, dir: dir}
}

// attach puts a mount at a path of the new root and closes it. The path is
// resolved beneath root, so that a link in the tree cannot lead out of it.
func (b *builder) attach(root string, t tree, name string) {
	if b.err != nil {
		return
	}
	defer unix.Close(t.fd)
	to, err := b.beneath(root, name)
	if !b.do("find "+name, err) {
		return
	}
	defer unix.Close(to)
	b.do("place "+name, unix.MoveMount(t.fd, "", to, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH))
}

// beneath opens a path below root without following a link. The root is opened
// once: the first path is "/" itself if a mount is still to come on it.
func (b *builder) beneath(root, name string) (int, error) {
	const flags = unix.O_PATH | unix.O_CLOEXEC | unix.O_NOFOLLOW
	rel := strings.TrimPrefix(name, "/")
	if rel == "" {
		return unix.Open(root, flags|unix.O_DIRECTORY, 0)
	}
	if b.root < 0 {
		fd, err := unix.Open(root, flags|unix.O_DIRECTORY, 0)
		if err != nil {
			return -1, err
		}
		b.root = fd
	}
	how := unix.OpenHow{Flags: flags, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS}
	return unix.Openat2(b.root, rel, &how)
}

// place shows a tree at its own path, and makes the folders or the file that it
// stands on where the new root has none.
func (b *builder) place(root string, t tree) {
	if b.err != nil {
		return
	}
	if t.path != "/" {
		b.mountPoint(root, t.path, t.dir)
	}
	b.attach(root, t, t.path)
}

// mountPoint makes what a mount stands on, if it is missing. Only the private
// parts of a root can lack it.
func (b *builder) mountPoint(root, name string, dir bool) {
	if b.err != nil {
		return
	}
	if fd, err := b.beneath(root, name); err == nil {
		unix.Close(fd)
		return
	}
	if dir {
		b.mkdir(root+name, 0o755)
		return
	}
	b.mkdir(path.Dir(root+name), 0o755)
	f, err := os.OpenFile(root+name, os.O_CREATE|os.O_WRONLY|unix.O_NOFOLLOW, 0o644)
	if b.do("make "+name, err) {
		f.Close()
	}
}

func (b *builder) mkdir(name string, mode os.FileMode) {
	if b.err == nil {
		b.do("make "+name, os.MkdirAll(name, mode))
	}
}

func (b *builder) tmpfs(name, options string) {
	if b.err == nil {
		b.mounting("mount a folder in memory on "+name, unix.Mount("tmpfs", name, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, options))
	}
}

// links repeats the symbolic links of a listed root.
func (b *builder) links(root string) {
	for _, l := range b.plan.Links {
		b.mkdir(path.Dir(root+l.Path), 0o755)
		if b.err == nil {
			b.do("link "+l.Path, os.Symlink(l.Target, root+l.Path))
		}
	}
}

// private makes the folders that belong to the box alone.
func (b *builder) private(root string) {
	for _, name := range []string{"/tmp", "/var/tmp", "/run", "/dev"} {
		mode := "mode=1777"
		if name == "/dev" {
			// A sticky folder that everybody may write to keeps others from
			// opening its devices with O_CREAT (proc(5), protected_regular).
			mode = "mode=755"
		}
		if b.plan.Root == plan.Listed {
			b.mkdir(root+name, 0o755)
		}
		b.tmpfs(root+name, mode+b.size())
	}
}

// size is the option that bounds a private folder.
func (b *builder) size() string {
	if n := b.plan.Limits.Temporary; n > 0 {
		return fmt.Sprintf(",size=%d", n)
	}
	return ""
}

func (b *builder) devices(root string, trees []tree) {
	for _, t := range trees {
		b.mountPoint(root, t.path, false)
		b.attach(root, t, t.path)
	}
	b.mkdir(root+"/dev/shm", 0o755)
	b.mkdir(root+"/dev/pts", 0o755)
	b.tmpfs(root+"/dev/shm", "mode=1777")
	if b.err != nil {
		return
	}
	b.do("make terminals", unix.Mount("devpts", root+"/dev/pts", "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=620"))
	for _, l := range [...]plan.Link{{Path: "/dev/ptmx", Target: "pts/ptmx"}, {Path: "/dev/fd", Target: "/proc/self/fd"},
		{Path: "/dev/stdin", Target: "/proc/self/fd/0"}, {Path: "/dev/stdout", Target: "/proc/self/fd/1"}, {Path: "/dev/stderr", Target: "/proc/self/fd/2"}} {
		if b.err == nil {
			b.do("link "+l.Path, os.Symlink(l.Target, root+l.Path))
		}
	}
}

// proc shows the processes of the box, and nothing through which the machine
// could be changed.
func (b *builder) proc(root string) {
	if b.plan.Root == plan.Listed {
		b.mkdir(root+"/proc", 0o555)
	}
	if b.err != nil {
		return
	}
	err := unix.Mount("proc", root+"/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
	if !b.mounting("show the processes of the box", err) {
		if errors.Is(err, unix.EPERM) {
			b.err.(*stepError).remedy = "a container masks /proc: start it with an unmasked /proc (podman: --security-opt unmask=ALL; docker: --security-opt systempaths=unconfined)"
		}
		return
	}
	for _, name := range plan.Closed() {
		if fd, err := b.beneath(root, "/proc/"+name); err == nil {
			unix.Close(fd)
			b.empty(root, "/proc/"+name)
		}
	}
	if os.Getuid() == 0 {
		b.rootsOwn(root + "/proc")
	}
	for _, name := range plan.Quiet() {
		fd, err := b.beneath(root, "/proc/"+name)
		if errors.Is(err, unix.ENOENT) {
			continue
		}
		if !b.do("find /proc/"+name, err) {
			return
		}
		t := b.cloneFD(fd, "/proc/"+name, false, readOnly, true)
		unix.Close(fd)
		b.attach(root, t, "/proc/"+name)
	}
}

// rootsOwn closes what only root may read: it is no business of root in the box.
func (b *builder) rootsOwn(proc string) {
	entries, err := os.ReadDir(proc)
	if !b.do("list the parts of /proc", err) {
		return
	}
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o004 == 0 && !slices.Contains(plan.Closed(), e.Name()) {
			b.empty(strings.TrimSuffix(proc, "/proc"), "/proc/"+e.Name())
		}
	}
}

// hosts lets the name of the box be found, which servers and the Java runtime ask
// for, and shows none of those that the machine knows.
func (b *builder) hosts(root string) {
	if b.err != nil || b.plan.Network == plan.Host {
		return
	}
	to, err := b.beneath(root, "/etc/hosts")
	if err != nil {
		return // there is none, or it is a link: then nothing looks there
	}
	unix.Close(to)
	const name = stage + "/hosts"
	text := "127.0.0.1 localhost " + b.plan.Host + "\n::1 localhost ip6-localhost ip6-loopback " + b.plan.Host + "\n"
	if b.do("make "+name, os.WriteFile(name, []byte(text), 0o644)) {
		t := b.clone(name, readOnly, false)
		b.attach(root, t, "/etc/hosts")
	}
}

// resolver sends questions for names to the one of the box. Where there is no file
// that says so, programs take that one by themselves (resolv.conf(5)).
func (b *builder) resolver(root string) {
	if b.err != nil || b.plan.Direct == nil {
		return
	}
	const name, text = stage + "/resolv.conf", "nameserver 127.0.0.1\n"
	place := "/etc/resolv.conf"
	if target, err := os.Readlink(root + place); err == nil { // to a service's file in /run, as a rule
		if !path.IsAbs(target) {
			target = path.Join("/etc", target)
		}
		place = path.Clean(target)
		listed := func(name string) bool { return name != "/" && below(place, name) }
		if !below(place, "/run") || slices.ContainsFunc(b.plan.Read, listed) || slices.ContainsFunc(b.plan.Write, listed) {
			return // it leads to what the box does not show, or to what others made
		}
		b.mountPoint(root, place, false)
	} else if _, err := os.Lstat(root + place); err != nil {
		return
	}
	if b.err == nil && b.do("make "+name, os.WriteFile(name, []byte(text), 0o644)) {
		t := b.clone(name, readOnly, false)
		b.attach(root, t, place)
	}
}

// trust shows the authorities that programs in the box are to trust.
func (b *builder) trust(root string) {
	if b.err != nil || len(b.plan.Trust) == 0 {
		return
	}
	const name = stage + "/authorities.pem"
	b.mountPoint(root, plan.TrustPath, false)
	if b.err == nil && b.do("make "+name, os.WriteFile(name, b.plan.Trust, 0o444)) {
		t := b.clone(name, readOnly, false)
		b.attach(root, t, plan.TrustPath)
	}
}

// home is an empty folder where the home is, unless the plan lists it or what
// it lies in. What is listed in it is placed on it later.
func (b *builder) home(root string, kept tree) {
	if b.plan.Kept != "" {
		b.place(root, kept)
		return
	}
	for _, list := range [][]string{b.plan.Read, b.plan.Write} {
		for _, name := range list {
			if below(b.plan.Home, name) {
				return
			}
		}
	}
	b.mkdir(root+b.plan.Home, 0o755)
	b.tmpfs(root+b.plan.Home, "mode=700"+b.size())
}

// pin mounts every folder on itself that may not be renamed, the writable
// trees again over them, and what is guarded last, read-only. A folder that
// another mount stands on cannot be renamed or removed; within the tree on top
// everything can.
func (b *builder) pin(root string, trees []tree) {
	tops := make([]tree, 0, len(trees))
	for _, t := range trees {
		if b.pinned(t.path) {
			tops = append(tops, b.again(root, t.path, 0))
		}
	}
	for _, name := range b.plan.Pinned {
		b.attach(root, b.again(root, name, 0), name)
	}
	for _, t := range tops {
		b.attach(root, t, t.path)
	}
	for _, name := range b.plan.Guarded {
		b.attach(root, b.again(root, name, readOnly), name)
	}
}

// pinned reports whether something below a tree is pinned.
func (b *builder) pinned(name string) bool {
	for _, p := range b.plan.Pinned {
		if below(p, name) {
			return true
		}
	}
	return false
}

// again takes a part of the new root as a mount.
func (b *builder) again(root, name string, attributes uint64) tree {
	if b.err != nil {
		return tree{path: name, fd: -1}
	}
	fd, err := b.beneath(root, name)
	if !b.do("find "+name, err) {
		return tree{path: name, fd: -1}
	}
	defer unix.Close(fd)
	return b.cloneFD(fd, name, false, attributes, true)
}

// hide covers what is hidden: a folder by one that nobody may enter, anything
// else by the null device.
func (b *builder) hide(root string) {
	for _, name := range b.plan.Hidden {
		if b.err != nil {
			return
		}
		fd, err := b.beneath(root, name)
		if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
			continue // the root does not show it
		}
		if !b.do("find "+name, err) {
			return
		}
		var st unix.Stat_t
		err = unix.Fstat(fd, &st)
		unix.Close(fd)
		if !b.do("look at "+name, err) {
			return
		}
		if st.Mode&unix.S_IFMT == unix.S_IFDIR {
			b.do("hide "+name, unix.Mount("tmpfs", root+name, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_RDONLY, "size=4k,mode=000"))
			continue
		}
		b.empty(root, name)
	}
}

// empty covers a file by the null device.
func (b *builder) empty(root, name string) {
	if b.err != nil {
		return
	}
	null, err := b.beneath(root, "/dev/null")
	if !b.do("find /dev/null", err) {
		return
	}
	t := b.cloneFD(null, name, false, unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NOEXEC, false)
	unix.Close(null)
	b.attach(root, t, name)
}
