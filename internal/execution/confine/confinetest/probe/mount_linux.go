//go:build amd64

package main

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// namespace is the flag of a namespace by its name in /proc/PID/ns.
func namespace(name string) (uintptr, error) {
	switch name {
	case "user":
		return unix.CLONE_NEWUSER, nil
	case "mnt":
		return unix.CLONE_NEWNS, nil
	case "pid":
		return unix.CLONE_NEWPID, nil
	case "net":
		return unix.CLONE_NEWNET, nil
	case "ipc":
		return unix.CLONE_NEWIPC, nil
	case "uts":
		return unix.CLONE_NEWUTS, nil
	case "cgroup":
		return unix.CLONE_NEWCGROUP, nil
	case "time":
		return unix.CLONE_NEWTIME, nil
	}
	return 0, fmt.Errorf("there is no namespace %q", name)
}

// mountAttempts make namespaces, enter them, and change mounts.
func mountAttempts() []attempt {
	return []attempt{
		{"unshare", "NAMESPACE", "root, or user namespaces for user", onNamespace(func(flag uintptr) error {
			return forked(0, step{unix.SYS_UNSHARE, [6]uintptr{flag}})
		})},
		{"clone", "NAMESPACE", "root, or user namespaces for user", onNamespace(func(flag uintptr) error { return forked(flag) })},
		{"clone3", "NAMESPACE", "root, or user namespaces for user", onNamespace(func(flag uintptr) error { return forked3(uint64(flag)) })},
		{"clone-vfork", "NAMESPACE", "root, or user namespaces for user", onNamespace(func(flag uintptr) error { return forked(unix.CLONE_VFORK | flag) })},
		{"clone-high", "NAMESPACE", "root, or user namespaces for user", onNamespace(func(flag uintptr) error { return forked(0xdead<<32 | flag) })},
		{"setns", "PATH", "root, a namespace of the same kind", setns},
		{"setns-pidfd", "PID", "root", setnsPidfd},
		{"ns-parent", "", "/proc", nsParent},
		{"userns-mount", "FOLDER", "user namespaces", usernsMount},
		{"mount-tmpfs", "FOLDER", "root", mount("tmpfs", "tmpfs", 0, "")},
		{"mount-proc", "FOLDER", "root", mount("proc", "proc", 0, "")},
		{"mount-sysfs", "FOLDER", "root", mount("sysfs", "sysfs", unix.MS_RDONLY, "")},
		{"mount-fuse", "FOLDER", "/dev/fuse, root", mountFuse},
		{"mount-bind", "FROM FOLDER", "root", func(a []string) (string, error) {
			return "", inside(a[0], func() error { return mountAt(a[0], a[1], "", unix.MS_BIND, "") })
		}},
		{"mount-overlay", "LOWER FOLDER", "root, overlayfs", func(a []string) (string, error) {
			return "", mountAt("overlay", a[1], "overlay", unix.MS_RDONLY, "lowerdir="+a[0]+":"+a[1])
		}},
		{"mount-remount", "PATH", "root, a mount", remount},
		{"mount-propagation", "PATH", "root", func(a []string) (string, error) {
			return "", inside(a[0], func() error {
				_, err := reached(unix.Mount("", a[0], "", unix.MS_PRIVATE, ""), unix.EINVAL)
				return err
			})
		}},
		{"mount-setattr", "PATH", "root", func(a []string) (string, error) {
			return "", inside(a[0], func() error {
				err := unix.MountSetattr(unix.AT_FDCWD, a[0], 0, &unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY})
				_, err = reached(err, unix.EINVAL)
				return err
			})
		}},
		{"umount", "PATH", "root", func(a []string) (string, error) {
			return "", inside(a[0], func() error { _, err := reached(unix.Unmount(a[0], unix.MNT_DETACH), unix.EINVAL); return err })
		}},
		{"mount-move", "FROM FOLDER", "root", func(a []string) (string, error) {
			return "", inside(a[1], func() error {
				_, err := reached(unix.Mount(a[0], a[1], "", unix.MS_MOVE, ""), unix.EINVAL)
				return err
			})
		}},
		{"fsopen", "", "root", func([]string) (string, error) { _, err := unix.Fsopen("tmpfs", unix.FSOPEN_CLOEXEC); return "", err }},
		refusedCall("fsconfig", "", unix.SYS_FSCONFIG, []uintptr{nowhere, 0, 0, 0, 0}, unix.EBADF, unix.EINVAL),
		refusedCall("fsmount", "root", unix.SYS_FSMOUNT, []uintptr{nowhere, 0, 0}, unix.EBADF),
		{"open-tree-plain", "PATH", "Linux 5.2", func(a []string) (string, error) {
			_, err := unix.OpenTree(unix.AT_FDCWD, a[0], unix.OPEN_TREE_CLOEXEC)
			return "", err
		}},
		{"fspick", "PATH", "root", func(a []string) (string, error) {
			_, err := unix.Fspick(unix.AT_FDCWD, a[0], 0)
			return reached(err, unix.EINVAL)
		}},
		{"open-tree", "PATH", "root", func(a []string) (string, error) {
			_, err := unix.OpenTree(unix.AT_FDCWD, a[0], unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
			return "", err
		}},
		{"open-tree-attr", "PATH", "root, Linux 6.15", openTreeAttr},
		{"move-mount", "FOLDER", "root", func(a []string) (string, error) {
			return "", inside(a[0], func() error {
				_, err := reached(unix.MoveMount(unix.AT_FDCWD, a[0], unix.AT_FDCWD, a[0], 0), unix.EINVAL, unix.ELOOP)
				return err
			})
		}},
		{"pivot-root", "FOLDER", "root", func(a []string) (string, error) {
			return "", inside(a[0], func() error { _, err := reached(unix.PivotRoot(a[0], a[0]), unix.EINVAL, unix.EBUSY); return err })
		}},
		{"chroot", "FOLDER", "root", func(a []string) (string, error) { return "", inside(a[0], func() error { return unix.Chroot(a[0]) }) }},
	}
}

func onNamespace(do func(flag uintptr) error) func(a []string) (string, error) {
	return func(a []string) (string, error) {
		flag, err := namespace(a[0])
		if err != nil {
			return "", err
		}
		return "", do(flag)
	}
}

func setns(a []string) (string, error) {
	fd, err := unix.Open(a[0], unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	return "", forked(0, step{unix.SYS_SETNS, [6]uintptr{uintptr(fd), 0}})
}

func setnsPidfd(a []string) (string, error) {
	pid, err := number(a[0])
	if err != nil {
		return "", err
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return "pidfd_open:", err
	}
	return "", forked(0, step{unix.SYS_SETNS, [6]uintptr{uintptr(fd), unix.CLONE_NEWNS | unix.CLONE_NEWNET}})
}

// nsParent asks for the user namespace around one's own.
func nsParent([]string) (string, error) {
	fd, err := unix.Open("/proc/self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	const userNamespace = 0xb701 // NS_GET_USERNS
	_, err = call(unix.SYS_IOCTL, uintptr(fd), userNamespace)
	return "", err
}

// usernsMount makes a user namespace to be root there, and mounts.
func usernsMount(a []string) (string, error) {
	kind := []byte("tmpfs\x00")
	return "", onPath(a[0], func(p uintptr) error {
		t := uintptr(unsafe.Pointer(&kind[0]))
		return forked(0,
			step{unix.SYS_UNSHARE, [6]uintptr{unix.CLONE_NEWUSER | unix.CLONE_NEWNS}},
			step{unix.SYS_MOUNT, [6]uintptr{t, p, t, 0, 0}})
	})
}

// mountAt mounts on a folder of the scene, and takes the mount away.
func mountAt(source, folder, kind string, flags uintptr, data string) error {
	return inside(folder, func() error {
		if err := unix.Mount(source, folder, kind, flags, data); err != nil {
			return err
		}
		return unix.Unmount(folder, unix.MNT_DETACH)
	})
}

func mount(source, kind string, flags uintptr, data string) func(a []string) (string, error) {
	return func(a []string) (string, error) { return "", mountAt(source, a[0], kind, flags, data) }
}

func mountFuse(a []string) (string, error) {
	fd, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	return "", mountAt("probe", a[0], "fuse", unix.MS_RDONLY, fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", fd))
}

// remount makes a mount of the scene writable, and leaves everything else as it
// is.
func remount(a []string) (string, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(a[0], &fs); err != nil {
		return "", err
	}
	flags := uintptr(fs.Flags) & (unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC)
	if fs.Flags&unix.ST_RELATIME != 0 {
		flags |= unix.MS_RELATIME
	}
	if fs.Flags&unix.ST_NOATIME != 0 {
		flags |= unix.MS_NOATIME
	}
	return "", inside(a[0], func() error {
		_, err := reached(unix.Mount("", a[0], "", unix.MS_REMOUNT|unix.MS_BIND|flags, ""), unix.EINVAL)
		return err
	})
}

func openTreeAttr(a []string) (string, error) {
	p, err := unix.BytePtrFromString(a[0])
	if err != nil {
		return "", err
	}
	attr := unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY}
	_, err = call(unix.SYS_OPEN_TREE_ATTR, at(unix.AT_FDCWD), uintptr(unsafe.Pointer(p)),
		unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr))
	return "", err
}
