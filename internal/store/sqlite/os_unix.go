//go:build unix

package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"vogt/internal/store"
)

// checksModes says whether file modes mean something here.
const checksModes = true

func isFull(e syscall.Errno) bool { return e == unix.ENOSPC || e == unix.EDQUOT }

func isReadOnly(e syscall.Errno) bool { return e == unix.EROFS }

// checkOwner refuses a directory of someone else, or one that others can
// write to.
func checkOwner(dir string, info fs.FileInfo) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fmt.Errorf("%s: its owner cannot be read", dir)
	}
	if uid := os.Geteuid(); stat.Uid != uint32(uid) {
		return fmt.Errorf("%s belongs to user id %d, but this process runs as %d: run as that user, or give it the directory (chown -R %d %s)",
			dir, stat.Uid, uid, uid, dir)
	}
	if mode := info.Mode().Perm(); mode&0o022 != 0 {
		return fmt.Errorf("%s has mode %04o, so others can replace what is in it: check its content, then chmod 700 %s",
			dir, mode, dir)
	}
	return nil
}

// syncDir makes the names in dir survive a power cut (fsync(2)).
func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// freeBytes is the space that this user may still take on dir's disk.
func freeBytes(dir string) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, err
	}
	return int64(s.Bavail) * int64(s.Bsize), nil
}

// lockFile takes the whole-file lock of flock(2), which ends with the process.
func lockFile(f *os.File) error {
	for {
		switch err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err {
		case unix.EINTR:
		case unix.EWOULDBLOCK:
			return store.ErrLocked
		default:
			return err
		}
	}
}
