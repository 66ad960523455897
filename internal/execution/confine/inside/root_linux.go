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

// stage is where the new root is put together, beside what is shown in more than
// one place of it: mounts of that are made by a copy, which is read-only as it is.
const (
	stage      = "/tmp"
	nullFile   = stage + "/null"   // the null device
	emptyFile  = stage + "/empty"  // a file that holds nothing
	emptyDir   = stage + "/closed" // a folder that nobody may enter
	ownDir     = stage + "/own"    // the folders that belong to the box alone
	deviceDir  = stage + "/dev"    // the machine's devices
	processDir = stage + "/proc"   // the processes of the box, read-only
)

// builder puts the root of a box together. All steps go through it, so that
// the first error ends them.
type builder struct {
	plan *plan.Plan
	root int // descriptor of the new root, or -1
	err  error

	folder string // what is guarded lies in few folders: the one that is open
	open   int    // its descriptor, or -1
	typed  bool   // see typed
}

// buildRoot replaces the file tree by the plan's, and reads its rest. It runs as
// the first process of new user, mount and process namespaces.
func buildRoot(p *plan.Plan, from *os.File) error {
	b := &builder{plan: p, root: -1, open: -1}
	defer func() {
		unix.Close(b.root)
		unix.Close(b.open)
	}()
	b.mounting("keep mounts from leaving the box", unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
	sources := b.sources()
	b.tmpfs(stage, "mode=755,size=4m") // room for what is made here
	b.common(sources.devices)
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
	b.devices(root)
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
	if b.err == nil {
		b.err = hideMore(p, from)
	}
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
	devices     tree
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
	s.devices = b.clone("/dev", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NOEXEC, true)
	return s
}

// common puts on the stage what is shown in more than one place.
func (b *builder) common(devices tree) {
	b.file(nullFile, 0o644)
	b.file(emptyFile, 0o444)
	for _, name := range [...]string{emptyDir, deviceDir, processDir, ownDir} {
		if b.err == nil {
			b.do("make "+name, unix.Mkdir(name, 0))
		}
	}
	b.tmpfs(ownDir, "mode=755"+b.size())
	b.stand(devices, deviceDir)
	b.stand(b.clone(deviceDir+"/null", unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NOEXEC, false), nullFile)
	b.stand(b.clone(emptyFile, readOnly, false), emptyFile)
	b.stand(b.clone(emptyDir, readOnly, false), emptyDir)
}

// stand puts a mount at a path of the stage and closes it.
func (b *builder) stand(t tree, name string) {
	if b.err != nil {
		return
	}
	defer unix.Close(t.fd)
	b.do("place "+name, unix.MoveMount(t.fd, "", unix.AT_FDCWD, name, unix.MOVE_MOUNT_F_EMPTY_PATH))
}

// file makes an empty file in a folder of the box.
func (b *builder) file(name string, mode uint32) {
	if b.err == nil {
		b.do("make "+name, unix.Mknod(name, unix.S_IFREG|mode, 0))
	}
}

// bind shows a path of the stage in a folder of the box's own, in which nobody
// else can have changed anything.
func (b *builder) bind(from, to string) {
	if b.err == nil {
		b.do("place "+to, unix.Mount(from, to, "", unix.MS_BIND, ""))
	}
}

// cover shows a path of the stage in place of what is open.
func (b *builder) cover(to int, name, from string) {
	fd, err := unix.OpenTree(unix.AT_FDCWD, from, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if b.do("take "+from, err) {
		b.attachTo(to, tree{path: name, fd: fd}, name)
	}
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
	to, err := b.beneath(root, name)
	if !b.do("find "+name, err) {
		unix.Close(t.fd)
		return
	}
	defer unix.Close(to)
	b.attachTo(to, t, name)
}

// attachTo puts a mount on what is open, and closes the mount.
func (b *builder) attachTo(to int, t tree, name string) {
	if b.err != nil {
		return
	}
	defer unix.Close(t.fd)
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
	to, err := b.beneath(root, t.path)
	if errors.Is(err, unix.ENOENT) {
		b.mountPoint(root, t.path, t.dir)
		b.attach(root, t, t.path)
		return
	}
	if !b.do("find "+t.path, err) {
		unix.Close(t.fd)
		return
	}
	b.attachTo(to, t, t.path)
	unix.Close(to)
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
	b.file(root+name, 0o644)
}

func (b *builder) mkdir(name string, mode uint32) {
	if b.err != nil {
		return
	}
	err := unix.Mkdir(name, mode)
	if errors.Is(err, unix.ENOENT) {
		err = os.MkdirAll(name, os.FileMode(mode))
	}
	if !errors.Is(err, unix.EEXIST) { // what is no folder then, nothing can be put in
		b.do("make "+name, err)
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

// private makes the folders that belong to the box alone. They are in one piece of
// memory, and so are the devices, and all bounded together.
func (b *builder) private(root string) {
	for _, name := range [...]string{"/tmp", "/var/tmp", "/run", "/dev"} {
		mode := uint32(0o777 | unix.S_ISVTX)
		if name == "/dev" {
			// A sticky folder that everybody may write to keeps others from
			// opening its devices with O_CREAT (proc(5), protected_regular).
			mode = 0o755
		}
		if b.plan.Root == plan.Listed {
			b.mkdir(root+name, 0o755)
		}
		b.own(root+name, strings.ReplaceAll(name[1:], "/", "-"), mode)
	}
}

// own shows a folder that belongs to the box alone.
func (b *builder) own(at, name string, mode uint32) {
	from := ownDir + "/" + name
	if b.err == nil && b.do("make "+from, unix.Mkdir(from, mode)) {
		b.do("make "+from, unix.Chmod(from, mode)) // whatever the mask is
		b.bind(from, at)
	}
}

// size is the option that bounds a private folder.
func (b *builder) size() string {
	if n := b.plan.Limits.Temporary; n > 0 {
		return fmt.Sprintf(",size=%d", n)
	}
	return ""
}

func (b *builder) devices(root string) {
	for _, name := range plan.Devices() {
		b.file(root+"/dev/"+name, 0o644)
		b.bind(deviceDir+"/"+name, root+"/dev/"+name)
	}
	b.mkdir(root+"/dev/shm", 0o755)
	b.mkdir(root+"/dev/pts", 0o755)
	b.own(root+"/dev/shm", "shm", 0o777|unix.S_ISVTX)
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
	within := root + "/proc/"
	for _, name := range plan.Closed() {
		b.ifThere(nullFile, within+name)
	}
	if os.Getuid() == 0 {
		b.rootsOwn(within)
	}
	b.stand(b.clone(root+"/proc", readOnly, false), processDir)
	for _, name := range plan.Quiet() {
		b.ifThere(processDir+"/"+name, within+name)
	}
}

// ifThere is bind for what not every kernel has.
func (b *builder) ifThere(from, to string) {
	if b.err != nil {
		return
	}
	if err := unix.Mount(from, to, "", unix.MS_BIND, ""); !errors.Is(err, unix.ENOENT) {
		b.do("place "+to, err)
	}
}

// rootsOwn closes what only root may read: it is no business of root in the box.
func (b *builder) rootsOwn(proc string) {
	entries, err := os.ReadDir(proc)
	if !b.do("list the parts of /proc", err) {
		return
	}
	for _, e := range entries {
		if !e.Type().IsRegular() || slices.Contains(plan.Closed(), e.Name()) {
			continue
		}
		info, err := e.Info()
		if err == nil && info.Mode().Perm()&0o004 == 0 {
			b.bind(nullFile, proc+e.Name())
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
	b.own(root+b.plan.Home, "home", 0o700)
}

// pin mounts every folder on itself that may not be renamed, the writable
// trees again over them, and what is guarded last, read-only. A folder that
// another mount stands on cannot be renamed or removed; within the tree on top
// everything can.
func (b *builder) pin(root string, trees []tree) {
	tops := make([]tree, 0, len(trees))
	for _, t := range trees {
		if b.pinned(t.path) {
			tops = append(tops, b.again(root, t.path))
		}
	}
	for _, name := range b.plan.Pinned {
		b.attach(root, b.again(root, name), name)
	}
	for _, t := range tops {
		b.attach(root, t, t.path)
	}
	for _, name := range b.plan.Guarded {
		b.guard(root, name)
	}
}

// guard keeps a path from being written. A socket stands in the place of a name
// that is missing, and is covered by an empty file, which can be read and copied.
// Git asks the folder what is in it, and still sees no file.
func (b *builder) guard(root, name string) {
	if b.err != nil || !b.enter(root, path.Dir(name)) {
		return
	}
	base := path.Base(name)
	var st unix.Stat_t
	if !b.do("look at "+name, unix.Fstatat(b.open, base, &st, unix.AT_SYMLINK_NOFOLLOW)) {
		return
	}
	const flags = unix.OPEN_TREE_CLONE | unix.OPEN_TREE_CLOEXEC
	var fd int
	var err error
	if st.Mode&unix.S_IFMT == unix.S_IFSOCK && b.typed {
		fd, err = unix.OpenTree(unix.AT_FDCWD, emptyFile, flags)
	} else {
		fd, err = unix.OpenTree(b.open, base, flags|unix.AT_RECURSIVE|unix.AT_SYMLINK_NOFOLLOW)
		if err == nil {
			err = unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: readOnly})
		}
	}
	if b.do("take "+name, err) {
		b.do("place "+name, unix.MoveMount(fd, "", b.open, base, unix.MOVE_MOUNT_F_EMPTY_PATH))
	}
	if fd >= 0 {
		unix.Close(fd)
	}
}

// enter opens a folder of the new root, unless it is the one that is open.
func (b *builder) enter(root, name string) bool {
	if b.open >= 0 && b.folder == name {
		return true
	}
	fd, err := b.beneath(root, name)
	if !b.do("find "+name, err) {
		return false
	}
	unix.Close(b.open)
	b.folder, b.open, b.typed = name, fd, typed(fd)
	return true
}

// typed reports whether a folder tells of what kind its entries are, by the file
// system. On others git would ask the empty file itself.
func typed(fd int) bool {
	var st unix.Statfs_t
	if unix.Fstatfs(fd, &st) != nil {
		return false
	}
	switch st.Type {
	case unix.EXT4_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.TMPFS_MAGIC, unix.OVERLAYFS_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC:
		return true
	}
	return false
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
func (b *builder) again(root, name string) tree {
	if b.err != nil {
		return tree{path: name, fd: -1}
	}
	fd, err := b.beneath(root, name)
	if !b.do("find "+name, err) {
		return tree{path: name, fd: -1}
	}
	defer unix.Close(fd)
	return b.cloneFD(fd, name, false, 0, true)
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
		if b.do("look at "+name, unix.Fstat(fd, &st)) {
			with := nullFile
			if st.Mode&unix.S_IFMT == unix.S_IFDIR {
				with = emptyDir
			}
			b.cover(fd, name, with)
		}
		unix.Close(fd)
	}
}
