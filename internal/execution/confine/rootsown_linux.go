package confine

import (
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/unix"
)

// rootsOwn are the files and folders in a folder that only root can read. A box
// of root asks before each command, so that only those names are looked at that
// need it, and each of them in its folder.
func rootsOwn(dir string) []string {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil
	}
	var st unix.Stat_t
	if err := unix.Lstat(dir, &st); err != nil {
		return nil
	}
	w := &rootsWalk{buffer: make([]byte, 16<<10)}
	if w.look(dir, &st) {
		w.folder(unix.AT_FDCWD, dir, dir)
	}
	return w.found
}

type rootsWalk struct {
	found  []string
	buffer []byte
}

// look notes what only root can read, and reports whether it is a folder to go
// into.
func (w *rootsWalk) look(name string, st *unix.Stat_t) bool {
	switch {
	case st.Mode&unix.S_IFMT == unix.S_IFLNK:
		return false
	case st.Mode&unix.S_IFMT == unix.S_IFDIR && st.Mode&0o005 != 0:
		return true
	case st.Mode&unix.S_IFMT == unix.S_IFDIR, st.Mode&0o004 == 0:
		w.found = append(w.found, name)
	}
	return false
}

// folder looks at all in a folder, which is base in the one that is open as at.
func (w *rootsWalk) folder(at int, base, name string) {
	fd, err := unix.Openat(at, base, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return // it cannot be read in the box either
	}
	defer unix.Close(fd)
	var folders []string
	for {
		n, err := unix.Getdents(fd, w.buffer)
		if n <= 0 || err != nil {
			break
		}
		for rest := w.buffer[:n]; len(rest) > 0; {
			entry := (*unix.Dirent)(unsafe.Pointer(&rest[0]))
			base := unix.ByteSliceToString(rest[unsafe.Offsetof(entry.Name):entry.Reclen])
			rest = rest[entry.Reclen:]
			var st unix.Stat_t
			if base == "." || base == ".." || entry.Type == unix.DT_LNK || unix.Fstatat(fd, base, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
				continue
			}
			if w.look(name+"/"+base, &st) {
				folders = append(folders, base)
			}
		}
	}
	for _, base := range folders {
		w.folder(fd, base, name+"/"+base)
	}
}
