package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"vogt/internal/store"
)

// classify puts an error of SQLite into the words of package store, with the
// file, what was being done, and SQLite's own text. Other errors, such as a
// context's, stay recognisable.
func (db *DB) classify(doing string, err error) error {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return err
	}
	sentinel := sentinelOf(e.Code())
	switch sentinel {
	case nil:
		return fmt.Errorf("%s: %s: %v", db.path, doing, err)
	case store.ErrReadOnly, store.ErrIO:
		// SQLite knows the operation that failed but not always why: on a
		// full disk growing the shared memory is an I/O error.
		if cause := probe(db.opts.Dir); cause != nil {
			sentinel = cause
		}
	}
	return fmt.Errorf("%s: %s: %w (%v)", db.path, doing, sentinel, err)
}

// sentinelOf maps SQLite's result codes (https://www.sqlite.org/rescode.html);
// nil is for those that speak of the statement, not of the database.
func sentinelOf(code int) error {
	switch code {
	case sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY, sqlite3.SQLITE_CONSTRAINT_ROWID:
		return store.ErrConflict
	case sqlite3.SQLITE_IOERR_CORRUPTFS:
		return store.ErrCorrupt
	}
	switch code & 0xff {
	case sqlite3.SQLITE_FULL:
		return store.ErrFull
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM:
		return store.ErrReadOnly
	case sqlite3.SQLITE_IOERR:
		return store.ErrIO
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return store.ErrCorrupt
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL:
		return store.ErrLocked
	}
	return nil
}

// probeBytes is a little more than what SQLite takes at a time where a full
// disk shows as an I/O error (the shared memory grows by 32 KiB).
const probeBytes = 64 << 10

// probe finds out by writing whether dir is full or read-only; nil means
// neither.
func probe(dir string) error {
	f, err := os.CreateTemp(dir, "probe-*")
	if err == nil {
		if _, err = f.Write(make([]byte, probeBytes)); err == nil {
			err = f.Sync()
		}
		f.Close()
		os.Remove(f.Name())
	}
	return fileSentinel(err)
}

// fileSentinel is ErrFull or ErrReadOnly if that is what err, from the
// operating system, means.
func fileSentinel(err error) error {
	var number syscall.Errno
	switch {
	case errors.As(err, &number) && isFull(number):
		return store.ErrFull
	case errors.Is(err, fs.ErrPermission), errors.As(err, &number) && isReadOnly(number):
		return store.ErrReadOnly
	}
	return nil
}

// fileError adds the sentinel that fits to an error of the operating system,
// which names the file itself.
func fileError(err error) error {
	if sentinel := fileSentinel(err); sentinel != nil {
		return fmt.Errorf("%w (%v)", sentinel, err)
	}
	return err
}
