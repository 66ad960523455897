//go:build amd64

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// written is what attempts write, where it does not matter.
const written = "# written by a probe\n"

// fileAttempts read and write files, each by another door.
func fileAttempts() []attempt {
	return []attempt{
		{"read", "PATH", "a secret", readFile},
		{"append", "PATH", "a file that the caller may write", func(a []string) (string, error) {
			return "", write(a[0], os.O_WRONLY|os.O_APPEND)
		}},
		{"create", "PATH", "", func(a []string) (string, error) {
			return "", write(a[0], os.O_WRONLY|os.O_CREATE|os.O_EXCL)
		}},
		{"create-deep", "PATH", "", func(a []string) (string, error) {
			if err := inScene(a[0]); err != nil {
				return "", err
			}
			if err := os.MkdirAll(filepath.Dir(a[0]), 0o755); err != nil {
				return "", err
			}
			return "", write(a[0], os.O_WRONLY|os.O_CREATE|os.O_EXCL)
		}},
		{"open-write", "PATH", "", func(a []string) (string, error) { return openOnly(a[0], unix.O_WRONLY) }},
		{"open-read", "PATH", "", func(a []string) (string, error) { return openOnly(a[0], unix.O_RDONLY) }},
		{"open-both", "PATH", "", func(a []string) (string, error) { return openOnly(a[0], unix.O_RDWR) }},
		{"truncate", "PATH", "", func(a []string) (string, error) {
			return "", inside(a[0], func() error { return unix.Truncate(a[0], 0) })
		}},
		{"fallocate", "PATH", "", fallocate},
		{"mmap-write", "PATH", "a file that is not empty", mmapWrite},
		{"copy-range", "FROM TO", "", copyRange},
		{"sendfile", "FROM TO", "", sendFile},
		{"splice-cache", "PATH", "a kernel before 5.16.11 (CVE-2022-0847)", spliceCache},
		{"openat2-write", "PATH", "", openat2Write},
		{"opath-reopen", "PATH", "/proc", opathReopen},
		{"opath-truncate", "PATH", "/proc", onFile(unix.O_PATH, func(fd int) error {
			return unix.Truncate(fmt.Sprintf("/proc/self/fd/%d", fd), 0)
		})},
		{"opath-chmod", "PATH", "/proc", opathChmod},
		{"directory-append", "FOLDER NAME", "", directoryAppend},
		{"descriptor-read", "FD", "a secret open as FD", descriptorRead},
		{"descriptor-openat", "FD NAME", "a folder open as FD", descriptorOpenat},
		{"handle-read", "MOUNT PATH", "root", handleRead},
		{"file-setattr", "PATH", "Linux 6.17, ext4 or the like", fileSetattr},
		{"chattr", "PATH", "ext4 or the like", chattr},
		{"chmod", "PATH", "", func(a []string) (string, error) {
			return "", inside(a[0], func() error { return unix.Chmod(a[0], 0o777) })
		}},
		{"fchmodat2", "PATH", "Linux 6.6", func(a []string) (string, error) {
			return "", onPath(a[0], func(p uintptr) error {
				_, err := call(unix.SYS_FCHMODAT2, at(unix.AT_FDCWD), p, 0o777, unix.AT_SYMLINK_NOFOLLOW)
				return err
			})
		}},
		{"utimes", "PATH", "", func(a []string) (string, error) {
			return "", inside(a[0], func() error { return unix.Utimes(a[0], []unix.Timeval{{Sec: 1}, {Sec: 1}}) })
		}},
		{"setxattr", "PATH", "a filesystem with user attributes", func(a []string) (string, error) {
			return "", inside(a[0], func() error { return unix.Setxattr(a[0], "user.probe", []byte("x"), 0) })
		}},
		{"setxattrat", "PATH", "Linux 6.13, a filesystem with user attributes", setxattrat},
		{"watch", "PATH", "", func(a []string) (string, error) {
			fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
			if err != nil {
				return "", err
			}
			_, err = unix.InotifyAddWatch(fd, a[0], unix.IN_ALL_EVENTS)
			return "", err
		}},
		{"watch-all", "PATH", "Linux 5.13; root for filesystems", fanotifyMark},
		{"handle-name", "PATH", "a filesystem with handles", func(a []string) (string, error) {
			_, _, err := unix.NameToHandleAt(unix.AT_FDCWD, a[0], 0)
			return "", err
		}},
		{"clone-file", "FROM TO", "a filesystem with shared extents", cloneFile},
		{"fibmap", "PATH", "root", fibmap},
		{"immutable", "PATH", "root, a filesystem with file attributes", immutable},
		{"set-capability", "PATH", "root", setCapability},
		{"chmod-setuid", "PATH", "", func(a []string) (string, error) {
			return "", inside(a[0], func() error { return unix.Chmod(a[0], 0o755|unix.S_ISUID|unix.S_ISGID) })
		}},
		{"chown", "PATH UID", "root", func(a []string) (string, error) {
			uid, err := number(a[1])
			if err != nil {
				return "", err
			}
			return "", inside(a[0], func() error { return unix.Lchown(a[0], uid, uid) })
		}},
		{"lock", "PATH", "", onFile(unix.O_RDONLY, func(fd int) error { return unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) })},
		{"lock-range", "PATH", "", onFile(unix.O_RDWR, func(fd int) error {
			return unix.FcntlFlock(uintptr(fd), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_WRLCK})
		})},
		{"lease", "PATH", "one's own file", onFile(unix.O_RDONLY, func(fd int) error {
			_, err := unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_RDLCK)
			return err
		})},
		{"cache-state", "PATH", "Linux 6.5", onFile(unix.O_RDONLY, func(fd int) error {
			var span [2]uint64
			var state [5]uint64
			_, err := call(unix.SYS_CACHESTAT, uintptr(fd), uintptr(unsafe.Pointer(&span)), uintptr(unsafe.Pointer(&state)), 0)
			return err
		})},
		{"landlocked-read", "PATH", "Landlock, a secret", landlockedRead},
	}
}

// at is a folder's descriptor as an argument.
func at(fd int) uintptr { return uintptr(fd) }

// inside does something to a path, if it is in a scene.
func inside(path string, do func() error) error {
	if err := inScene(path); err != nil {
		return err
	}
	return do()
}

// onPath calls with the path as an argument of a system call, if it is in a
// scene.
func onPath(path string, do func(p uintptr) error) error {
	p, err := unix.BytePtrFromString(path)
	if err != nil {
		return err
	}
	return inside(path, func() error { return do(uintptr(unsafe.Pointer(p))) })
}

// write adds text to a file in a scene.
func write(path string, flags int) error {
	if err := inScene(path); err != nil {
		return err
	}
	f, err := os.OpenFile(path, flags, 0o755)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString(written)
	return err
}

func readFile(a []string) (string, error) {
	data, err := os.ReadFile(a[0])
	if err != nil {
		return "", err
	}
	return secret(data)
}

// openOnly opens a file and changes nothing: what may be opened for writing
// could be written.
func openOnly(path string, mode int) (string, error) {
	fd, err := unix.Open(path, mode|unix.O_CLOEXEC|unix.O_NOCTTY|unix.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return "", err
	}
	if st.Mode&unix.S_IFMT == unix.S_IFCHR && st.Rdev == unix.Mkdev(1, 3) {
		return "", fmt.Errorf("%w: the null device stands in its place", errHeld)
	}
	return "it was opened, and left alone", nil
}

func fallocate(a []string) (string, error) {
	return "", inside(a[0], func() error {
		fd, err := unix.Open(a[0], unix.O_WRONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		return unix.Fallocate(fd, 0, 0, 4096)
	})
}

func mmapWrite(a []string) (string, error) {
	return "", inside(a[0], func() error {
		fd, err := unix.Open(a[0], unix.O_RDWR|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		page, err := unix.Mmap(fd, 0, 1, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		if err != nil {
			return err
		}
		page[0] = '!'
		return unix.Munmap(page)
	})
}

// pairOpen opens one file to read and one to write.
func pairOpen(from, to string) (r, w int, err error) {
	if err := inScene(to); err != nil {
		return -1, -1, err
	}
	if r, err = unix.Open(from, unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
		return -1, -1, err
	}
	w, err = unix.Open(to, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	return r, w, err
}

func copyRange(a []string) (string, error) {
	r, w, err := pairOpen(a[0], a[1])
	if err != nil {
		return "", err
	}
	n, err := unix.CopyFileRange(r, nil, w, nil, 8, 0)
	return fmt.Sprintf("%d bytes were copied", n), err
}

func sendFile(a []string) (string, error) {
	r, w, err := pairOpen(a[0], a[1])
	if err != nil {
		return "", err
	}
	n, err := unix.Sendfile(w, r, nil, 8)
	return fmt.Sprintf("%d bytes were sent", n), err
}

// spliceCache tries to write to the cached page of a file that is open for
// reading: pages of a full pipe keep a flag by which later writes merge into
// what was spliced in.
func spliceCache(a []string) (string, error) {
	if err := inScene(a[0]); err != nil {
		return "", err
	}
	before, err := os.ReadFile(a[0])
	if err != nil {
		return "", err
	}
	fd, err := unix.Open(a[0], unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_NONBLOCK|unix.O_CLOEXEC); err != nil {
		return "", err
	}
	for page := make([]byte, 4096); err == nil; {
		_, err = unix.Write(pipe[1], page)
	}
	for page := make([]byte, 4096); ; {
		if n, err := unix.Read(pipe[0], page); n <= 0 || err != nil {
			break
		}
	}
	if _, err := unix.Splice(fd, nil, pipe[1], nil, 1, 0); err != nil {
		return "", err
	}
	if _, err := unix.Write(pipe[1], []byte("!")); err != nil {
		return "", err
	}
	after, err := os.ReadFile(a[0])
	if err != nil {
		return "", err
	}
	if bytes.Equal(before, after) {
		return "the file is as it was", errHeld
	}
	return "the cached page was written", nil
}

func openat2Write(a []string) (string, error) {
	return "", inside(a[0], func() error {
		fd, err := unix.Openat2(unix.AT_FDCWD, a[0], &unix.OpenHow{
			Flags:   unix.O_WRONLY | unix.O_APPEND | unix.O_CLOEXEC,
			Resolve: unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_SYMLINKS,
		})
		if err != nil {
			return err
		}
		_, err = unix.Write(fd, []byte(written))
		return err
	})
}

func opathReopen(a []string) (string, error) {
	return "", inside(a[0], func() error {
		fd, err := unix.Open(a[0], unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		again, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", fd), unix.O_WRONLY|unix.O_APPEND|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		_, err = unix.Write(again, []byte(written))
		return err
	})
}

func opathChmod(a []string) (string, error) {
	return "", inside(a[0], func() error {
		fd, err := unix.Open(a[0], unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		return unix.Chmod(fmt.Sprintf("/proc/self/fd/%d", fd), 0o777)
	})
}

// directoryAppend reaches a file through the descriptor of a folder and "..",
// so that the path that leads there does not name it.
func directoryAppend(a []string) (string, error) {
	return "", inside(filepath.Join(a[0], "x"), func() error {
		dir, err := unix.Open(a[0], unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		fd, err := unix.Openat(dir, "../"+filepath.Base(a[1]), unix.O_WRONLY|unix.O_APPEND|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		_, err = unix.Write(fd, []byte(written))
		return err
	})
}

func descriptorRead(a []string) (string, error) {
	fd, err := number(a[0])
	if err != nil {
		return "", err
	}
	buffer := make([]byte, 256)
	n, err := unix.Pread(fd, buffer, 0)
	if err != nil {
		return "", err
	}
	return secret(buffer[:n])
}

func descriptorOpenat(a []string) (string, error) {
	dir, err := number(a[0])
	if err != nil {
		return "", err
	}
	fd, err := unix.Openat(dir, a[1], unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	buffer := make([]byte, 256)
	n, err := unix.Read(fd, buffer)
	if err != nil {
		return "", err
	}
	return secret(buffer[:n])
}

// handleRead opens a file by its handle, which goes past every mount.
func handleRead(a []string) (string, error) {
	handle, _, err := unix.NameToHandleAt(unix.AT_FDCWD, a[1], 0)
	if err != nil {
		return "name_to_handle_at:", err
	}
	mount, err := unix.Open(a[0], unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	fd, err := unix.OpenByHandleAt(mount, handle, unix.O_RDONLY)
	if err != nil {
		return "open_by_handle_at:", err
	}
	buffer := make([]byte, 256)
	n, err := unix.Read(fd, buffer)
	if err != nil {
		return "", err
	}
	return secret(buffer[:n])
}

// fileAttr is struct file_attr of file_setattr(2).
type fileAttr struct {
	xflags                                uint64
	extsize, nextents, projid, cowextsize uint32
}

// xflagNoDump is FS_XFLAG_NODUMP.
const xflagNoDump = 0x80

func fileSetattr(a []string) (string, error) {
	return "", onPath(a[0], func(p uintptr) error {
		attr := fileAttr{xflags: xflagNoDump}
		_, err := call(unix.SYS_FILE_SETATTR, at(unix.AT_FDCWD), p, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
		return err
	})
}

// noDump is FS_NODUMP_FL.
const noDump = 0x40

func chattr(a []string) (string, error) {
	return "", inside(a[0], func() error {
		fd, err := unix.Open(a[0], unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		flags, err := unix.IoctlGetInt(fd, unix.FS_IOC_GETFLAGS)
		if err != nil {
			return err
		}
		return unix.IoctlSetPointerInt(fd, unix.FS_IOC_SETFLAGS, flags|noDump)
	})
}

func setxattrat(a []string) (string, error) {
	name, value := append([]byte("user.probe"), 0), []byte("x")
	return "", onPath(a[0], func(p uintptr) error {
		args := struct {
			value       uint64
			size, flags uint32
		}{uint64(uintptr(unsafe.Pointer(&value[0]))), 1, 0}
		_, err := call(unix.SYS_SETXATTRAT, at(unix.AT_FDCWD), p, 0, uintptr(unsafe.Pointer(&name[0])), uintptr(unsafe.Pointer(&args)), unsafe.Sizeof(args))
		return err
	})
}

// nameAttempts move, link and make names.
func nameAttempts() []attempt {
	two := func(do func(from, to string) error) func(a []string) (string, error) {
		return func(a []string) (string, error) {
			return "", inside(a[0], func() error { return inside(a[1], func() error { return do(a[0], a[1]) }) })
		}
	}
	one := func(do func(path string) error) func(a []string) (string, error) {
		return func(a []string) (string, error) { return "", inside(a[0], func() error { return do(a[0]) }) }
	}
	return []attempt{
		{"mkdir", "PATH", "", one(func(p string) error { return unix.Mkdir(p, 0o755) })},
		{"mkfifo", "PATH", "", one(func(p string) error { return unix.Mkfifo(p, 0o644) })},
		{"mksocket", "PATH", "", one(func(p string) error { return unix.Mknod(p, unix.S_IFSOCK|0o644, 0) })},
		{"unlink", "PATH", "", one(unix.Unlink)},
		{"rmdir", "PATH", "an empty folder", one(unix.Rmdir)},
		{"rename", "FROM TO", "", two(unix.Rename)},
		{"rename-exchange", "A B", "", two(func(from, to string) error {
			return unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_EXCHANGE)
		})},
		{"rename-whiteout", "FROM TO", "root", two(func(from, to string) error {
			return unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_WHITEOUT)
		})},
		{"symlink", "TARGET PATH", "", func(a []string) (string, error) {
			return "", inside(a[1], func() error { return unix.Symlink(a[0], a[1]) })
		}},
		{"hardlink-write", "FROM TO", "", two(func(from, to string) error {
			if err := unix.Link(from, to); err != nil {
				return err
			}
			return write(to, os.O_WRONLY|os.O_APPEND)
		})},
		{"hardlink-read", "FROM TO", "", func(a []string) (string, error) {
			if err := inside(a[1], func() error { return unix.Link(a[0], a[1]) }); err != nil {
				return "", err
			}
			return readFile(a[1:])
		}},
		{"link-opath", "FROM TO", "/proc", two(func(from, to string) error {
			fd, err := unix.Open(from, unix.O_PATH|unix.O_CLOEXEC, 0)
			if err != nil {
				return err
			}
			if err := unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), unix.AT_FDCWD, to, unix.AT_SYMLINK_FOLLOW); err != nil {
				return err
			}
			return write(to, os.O_WRONLY|os.O_APPEND)
		})},
		{"tmpfile-link", "FOLDER TO", "a filesystem with O_TMPFILE, /proc", two(tmpfileLink)},
		{"swap-symlink", "PATH TARGET", "", swapSymlink()},
		{"mknod-char", "PATH MAJOR MINOR", "root", mknodDevice(unix.S_IFCHR)},
		{"mknod-block", "PATH MAJOR MINOR", "root", mknodDevice(unix.S_IFBLK)},
	}
}

// tmpfileLink makes a file without a name and gives it one.
func tmpfileLink(dir, to string) error {
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, 0o755)
	if err != nil {
		return err
	}
	if _, err := unix.Write(fd, []byte(written)); err != nil {
		return err
	}
	return unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), unix.AT_FDCWD, to, unix.AT_SYMLINK_FOLLOW)
}

// swapSymlink replaces a name by a symbolic link: the name then leads to what
// is not protected.
func swapSymlink() func(a []string) (string, error) {
	return func(a []string) (string, error) {
		return "", inside(a[0], func() error {
			link := strings.TrimSuffix(a[0], "/") + ".link"
			if err := unix.Symlink(a[1], link); err != nil {
				return err
			}
			if err := unix.Renameat2(unix.AT_FDCWD, link, unix.AT_FDCWD, a[0], unix.RENAME_EXCHANGE); err != nil {
				unix.Unlink(link)
				return err
			}
			return nil
		})
	}
}

// mknodDevice makes a device, and leaves it closed.
func mknodDevice(kind uint32) func(a []string) (string, error) {
	return func(a []string) (string, error) {
		major, err := number(a[1])
		if err != nil {
			return "", err
		}
		minor, err := number(a[2])
		if err != nil {
			return "", err
		}
		return "", inside(a[0], func() error {
			return unix.Mknod(a[0], kind|0o600, int(unix.Mkdev(uint32(major), uint32(minor))))
		})
	}
}

// onFile does something with an open file of the scene.
func onFile(flags int, do func(fd int) error) func(a []string) (string, error) {
	return func(a []string) (string, error) {
		return "", inside(a[0], func() error {
			fd, err := unix.Open(a[0], flags|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			return do(fd)
		})
	}
}

func fanotifyMark(a []string) (string, error) {
	fd, err := unix.FanotifyInit(unix.FAN_REPORT_FID|unix.FAN_CLOEXEC, unix.O_RDONLY)
	if err != nil {
		return "fanotify_init:", err
	}
	return "", unix.FanotifyMark(fd, unix.FAN_MARK_ADD, unix.FAN_OPEN|unix.FAN_MODIFY, unix.AT_FDCWD, a[0])
}

func cloneFile(a []string) (string, error) {
	r, w, err := pairOpen(a[0], a[1])
	if err != nil {
		return "", err
	}
	return "", unix.IoctlFileClone(w, r)
}

// fibmap asks where a block of a file is on the disk. That a filesystem has none
// is found after the right to ask.
func fibmap(a []string) (string, error) {
	fd, err := unix.Open(a[0], unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	block := uint32(0)
	const fibmap = 1
	_, err = call(unix.SYS_IOCTL, uintptr(fd), fibmap, uintptr(unsafe.Pointer(&block)))
	return reached(err, unix.EINVAL)
}

// immutable makes a file that nobody can change or remove, and then one that
// can be again: a scene must be removable.
func immutable(a []string) (string, error) {
	return onFile(unix.O_RDONLY, func(fd int) error {
		flags, err := unix.IoctlGetInt(fd, unix.FS_IOC_GETFLAGS)
		if err != nil {
			return err
		}
		const immutable = 0x10 // FS_IMMUTABLE_FL
		if err := unix.IoctlSetPointerInt(fd, unix.FS_IOC_SETFLAGS, flags|immutable); err != nil {
			return err
		}
		return unix.IoctlSetPointerInt(fd, unix.FS_IOC_SETFLAGS, flags)
	})(a)
}

// setCapability gives a program the right to open sockets of any kind.
func setCapability(a []string) (string, error) {
	value := [20]byte{0: 1, 3: 2, 5: 0x20} // effective, version 2; CAP_NET_RAW
	return "", inside(a[0], func() error { return unix.Setxattr(a[0], "security.capability", value[:], 0) })
}

// landlockedRead restricts itself by rules that permit everything, and reads: a
// further layer must not loosen those that are there.
func landlockedRead(a []string) (string, error) {
	const readFile, readDir = 1 << 2, 1 << 3 // LANDLOCK_ACCESS_FS_...
	attr := uint64(readFile | readDir)
	ruleset, err := call(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), 8, 0)
	if err != nil {
		return "landlock_create_ruleset:", err
	}
	root, err := unix.Open("/", unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	var beneath [12]byte // struct landlock_path_beneath_attr is packed
	*(*uint64)(unsafe.Pointer(&beneath[0])) = attr
	*(*int32)(unsafe.Pointer(&beneath[8])) = int32(root)
	if _, err := call(unix.SYS_LANDLOCK_ADD_RULE, ruleset, 1, uintptr(unsafe.Pointer(&beneath[0])), 0); err != nil {
		return "landlock_add_rule:", err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return "", err
	}
	if _, err := call(unix.SYS_LANDLOCK_RESTRICT_SELF, ruleset, 0); err != nil {
		return "landlock_restrict_self:", err
	}
	return readFileOn(a[0])
}

// readFileOn reads on the calling thread, to which a restriction belongs.
func readFileOn(path string) (string, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	buffer := make([]byte, 256)
	n, err := unix.Read(fd, buffer)
	if err != nil {
		return "", err
	}
	return secret(buffer[:n])
}

// repositoryAttempts change what git obeys, as git itself or a program would.
func repositoryAttempts() []attempt {
	const obeyed = "[core]\n\tfsmonitor = ./planted\n\thooksPath = ./planted\n"
	return []attempt{
		{"git-config", "REPOSITORY", "", func(a []string) (string, error) {
			// git writes a lock and renames it.
			lock, config := filepath.Join(a[0], "config.lock"), filepath.Join(a[0], "config")
			return "", inside(lock, func() error {
				if err := os.WriteFile(lock, []byte(obeyed), 0o644); err != nil {
					return err
				}
				if err := unix.Rename(lock, config); err != nil {
					unix.Unlink(lock)
					return err
				}
				return nil
			})
		}},
		{"git-common", "REPOSITORY", "", func(a []string) (string, error) {
			// gitrepository-layout(5): this file moves settings and hooks elsewhere.
			path := filepath.Join(a[0], "commondir")
			return "", inside(path, func() error { return create(path, "../planted\n") })
		}},
		{"git-bare", "FOLDER", "", func(a []string) (string, error) {
			return "", inside(filepath.Join(a[0], "HEAD"), func() error {
				for _, name := range []string{"objects", "refs"} {
					if err := unix.Mkdir(filepath.Join(a[0], name), 0o755); err != nil {
						return err
					}
				}
				if err := create(filepath.Join(a[0], "config"), obeyed); err != nil {
					return err
				}
				return create(filepath.Join(a[0], "HEAD"), "ref: refs/heads/main\n")
			})
		}},
	}
}

// create makes a file that is not there.
func create(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString(text)
	return err
}
