package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"vogt/internal/store"
)

// prepareDir makes dir if it is missing and refuses one that someone else
// could write to: who can replace the database can write any grant.
func prepareDir(dir string, log *slog.Logger) error {
	if err := makeDir(dir); err != nil {
		return fileError(err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a directory: name another data directory", dir)
	}
	if err := checkOwner(dir, info); err != nil {
		return err
	}
	if mode := info.Mode().Perm(); checksModes && mode&0o077 != 0 {
		if err := os.Chmod(dir, mode&^0o077); err != nil {
			return err
		}
		log.Info("closed the data directory to other users", "dir", dir, "mode", fmt.Sprintf("%04o", mode))
	}
	return nil
}

// makeDir is os.MkdirAll whose result survives a power cut: a new directory's
// name is there to stay only when its parent was synced.
func makeDir(dir string) error {
	_, err := os.Stat(dir)
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	parent := filepath.Dir(dir)
	if parent != dir {
		if err := makeDir(parent); err != nil {
			return err
		}
	}
	err = os.Mkdir(dir, 0o700)
	if err == nil {
		err = os.Chmod(dir, 0o700) // whatever the umask took away
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncDir(parent)
}

// prepareFile makes the database file, if missing, for SQLite to open. SQLite
// gives its log and shared memory the same mode.
func prepareFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	switch {
	case err == nil:
		err = f.Chmod(0o600) // whatever the umask took away
		return fileError(errors.Join(err, f.Close()))
	case !errors.Is(err, fs.ErrExist):
		return fileError(err)
	}

	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file: %w", path, store.ErrCorrupt)
	}
	wal, err := os.Stat(path + "-wal")
	if err == nil && wal.Size() > 0 && info.Size() == 0 {
		// SQLite would take the database for a new one and delete the log,
		// which holds the latest updates. An interrupted creation cannot end
		// like this: the file has its first page before a log exists.
		return fmt.Errorf("%s is empty beside a write-ahead log of %d bytes: %w", path, wal.Size(), store.ErrCorrupt)
	}
	for _, name := range []string{path, path + "-wal", path + "-shm"} {
		if err := checkMode(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fileError(err)
		}
	}
	return nil
}

// checkMode closes an existing file to others. It refuses one without write
// permission before SQLite makes files with the same mode beside it.
func checkMode(name string) error {
	info, err := os.Lstat(name)
	if err != nil {
		return err
	}
	mode := info.Mode().Perm()
	if mode&0o200 == 0 {
		return fmt.Errorf("%s has mode %04o: %w", name, mode, store.ErrReadOnly)
	}
	if !checksModes || mode&0o077 == 0 {
		return nil
	}
	return os.Chmod(name, mode&^0o077)
}

// syncFile flushes a file that was written by someone else.
func syncFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
