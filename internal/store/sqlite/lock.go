package sqlite

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"vogt/internal/store"
)

// dirLock is this process's hold on its data directory.
type dirLock struct{ file *os.File }

// lockDir takes the directory, or says who has it. It does not wait.
func lockDir(dir string) (*dirLock, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fileError(err)
	}
	err = f.Chmod(0o600) // whatever the umask took away
	if err == nil {
		err = lockFile(f)
	}
	if err != nil {
		defer f.Close()
		if !errors.Is(err, store.ErrLocked) {
			return nil, fmt.Errorf("locking %s: %w", f.Name(), err)
		}
		return nil, fmt.Errorf("%s: %w (%s)", dir, store.ErrLocked, holder(f))
	}
	// The number is for people; on a full disk the lock holds without it.
	// Written in place, it needs no new block.
	id := strconv.Itoa(os.Getpid()) + "\n"
	if _, err := f.WriteAt([]byte(id), 0); err == nil {
		_ = f.Truncate(int64(len(id)))
	}
	return &dirLock{file: f}, nil
}

// holder reads who holds a lock file.
func holder(f *os.File) string {
	content, err := io.ReadAll(io.LimitReader(f, 32))
	id := strings.TrimSpace(string(content))
	if err != nil || id == "" {
		return "process unknown"
	}
	return "process " + id
}

// release lets the directory go. The file stays: removing it would let two
// processes lock two files of one name.
func (l *dirLock) release() {
	_ = l.file.Truncate(0) // the number of a process that is gone misleads
	l.file.Close()
}
