package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"
)

// ballast is disk space held by a file, to be given up for the updates that
// must work on a full disk. After Open it belongs to the writer.
type ballast struct {
	dir     string
	size    int64 // 0 means that there is none
	log     *slog.Logger
	now     func() time.Time
	given   bool // up; ordinary updates wait until it is back
	lastTry time.Time
}

// retryBallast is how often a full disk is tried again.
const retryBallast = time.Second

// slack is the space beyond the ballast that must be free before it is taken
// back: what it leaves is what ordinary updates have.
const slack = 1 << 20

func newBallast(opts Options) *ballast {
	return &ballast{dir: opts.Dir, size: max(0, opts.Ballast), log: opts.Log, now: opts.Now}
}

func (b *ballast) path() string { return filepath.Join(b.dir, "ballast") }

// prepare makes the ballast at start. A disk too full for it is no error: the
// database opens, and ordinary updates wait.
func (b *ballast) prepare() error {
	os.Remove(b.path() + ".new") // of an interrupted write
	info, err := os.Stat(b.path())
	if err == nil && info.Size() == b.size {
		return nil
	}
	if err == nil {
		err = os.Remove(b.path())
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fileError(err)
	}
	if b.size == 0 {
		return nil
	}
	b.given = true
	if !b.restore() {
		b.log.Warn("the disk is nearly full: only revoking, denying and pausing are recorded until there is space for the reserve",
			"dir", b.dir, "reserve", b.size)
	}
	return nil
}

// release gives the space to SQLite. False means that there is none to give.
func (b *ballast) release() bool {
	if b.size == 0 || b.given {
		return false
	}
	if err := os.Remove(b.path()); err != nil {
		b.log.Error("the disk reserve cannot be released", "file", b.path(), "err", err)
		return false
	}
	b.given = true
	// Some file systems free blocks only with the change of the directory.
	if err := syncDir(b.dir); err != nil {
		b.log.Error("the release of the disk reserve cannot be synced", "dir", b.dir, "err", err)
	}
	b.log.Warn("the disk is full: released the reserve for revoking, denying and pausing; nothing else is recorded until there is space",
		"dir", b.dir, "reserve", b.size)
	return true
}

// restore takes the space back if it was given up, and reports whether
// ordinary updates may go on.
func (b *ballast) restore() bool {
	if !b.given {
		return true
	}
	now := b.now()
	if since := now.Sub(b.lastTry); since >= 0 && since < retryBallast {
		return false
	}
	b.lastTry = now
	// Where quotas count, free space says nothing; then writing fails.
	if free, err := freeBytes(b.dir); err == nil && free < b.size+slack {
		return false
	}
	if err := b.write(); err != nil {
		os.Remove(b.path() + ".new")
		b.log.Warn("the disk reserve cannot be restored yet", "file", b.path(), "err", err)
		return false
	}
	b.given = false
	b.log.Info("disk reserve in place", "file", b.path(), "bytes", b.size)
	return true
}

// write fills the file with bytes that do not compress, since on a compressing
// file system a file of zeros reserves nothing.
func (b *ballast) write() (err error) {
	name := b.path() + ".new"
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if err := f.Chmod(0o600); err != nil { // whatever the umask took away
		return errors.Join(err, f.Close())
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	noise := rand.NewChaCha8([32]byte{}) // fixed: it hides nothing
	chunk := make([]byte, min(b.size, 1<<20))
	for left := b.size; left > 0; left -= int64(len(chunk)) {
		chunk = chunk[:min(left, int64(len(chunk)))]
		noise.Read(chunk)
		if _, err := f.Write(chunk); err != nil {
			return err
		}
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := os.Rename(name, b.path()); err != nil {
		return fmt.Errorf("putting the disk reserve in place: %w", err)
	}
	return syncDir(b.dir)
}
