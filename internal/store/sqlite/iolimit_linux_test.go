package sqlite

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"vogt/internal/store"
)

// TestDeviceError: the kernel refuses a write of the commit for a reason that
// is neither space nor permission. What is on the disk is unknown then, so the
// engine takes nothing more until it is opened anew.
func TestDeviceError(t *testing.T) {
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &old); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	opts := Options{Dir: dir, Migrations: pairSchema()}
	db := open(t, opts)
	ctx := context.Background()
	add := func(id int64) error {
		return db.Update(ctx, func(t store.Tx) error { return addPair(t, id) })
	}
	if err := add(1); err != nil {
		t.Fatal(err)
	}
	log, err := os.Stat(filepath.Join(dir, FileName+"-wal"))
	if err != nil {
		t.Fatal(err)
	}
	// No file of this process may grow beyond the log and half a page.
	limit := old
	limit.Cur = uint64(log.Size()) + 2048
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	err = add(2)
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &old); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(err, store.ErrIO) || !strings.Contains(err.Error(), "committing") {
		t.Errorf("update beyond the limit: got %v, want ErrIO from the commit", err)
	}
	if err := add(3); !errors.Is(err, store.ErrIO) {
		t.Errorf("the next update, without a limit: got %v, want ErrIO still", err)
	}
	if n := count(t, db); n != 1 {
		t.Errorf("a view reads %d rows, want 1", n)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
	if err := verifyPairs(dir, []int64{1}); err != nil {
		t.Errorf("opened anew: %v", err)
	}
}
