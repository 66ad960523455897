package sqlite

import (
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/windows"

	"vogt/internal/store"
)

// checksModes says whether file modes mean something here. On Windows a
// directory in the user's profile is closed to others by its inherited list.
const checksModes = false

func isFull(e syscall.Errno) bool {
	return e == windows.ERROR_DISK_FULL || e == windows.ERROR_HANDLE_DISK_FULL || e == windows.ERROR_DISK_QUOTA_EXCEEDED
}

func isReadOnly(e syscall.Errno) bool { return e == windows.ERROR_WRITE_PROTECT }

func checkOwner(string, fs.FileInfo) error { return nil }

// syncDir does nothing: NTFS journals names by itself, and a directory cannot
// be flushed.
func syncDir(string) error { return nil }

// freeBytes is the space that this user may still take on dir's disk.
func freeBytes(dir string) (int64, error) {
	name, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return 0, err
	}
	var free uint64
	if err := windows.GetDiskFreeSpaceEx(name, &free, nil, nil); err != nil {
		return 0, err
	}
	return int64(free), nil
}

// lockFile locks one byte far behind the content: locked bytes cannot be read
// by others, and the content says who holds the lock.
func lockFile(f *os.File) error {
	at := windows.Overlapped{OffsetHigh: 1 << 30}
	err := windows.LockFileEx(windows.Handle(f.Fd()),
		windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &at)
	if err == windows.ERROR_LOCK_VIOLATION {
		return store.ErrLocked
	}
	return err
}
