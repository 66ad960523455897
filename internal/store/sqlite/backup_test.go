package sqlite

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vogt/internal/store"
)

func textLog(w io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(w, nil)) }

func TestBackup(t *testing.T) {
	ctx := context.Background()
	db := open(t, Options{Dir: t.TempDir(), Migrations: pairSchema()})
	for id := range int64(50) {
		if err := db.Update(ctx, func(t store.Tx) error { return addPair(t, id) }); err != nil {
			t.Fatal(err)
		}
	}
	// Writers go on while the copy is made.
	stop, ended := make(chan struct{}), make(chan error)
	go func() {
		for id := int64(1000); ; id++ {
			select {
			case <-stop:
				ended <- nil
				return
			default:
			}
			if err := db.Update(ctx, func(t store.Tx) error { return addPair(t, id) }); err != nil {
				ended <- err
				return
			}
		}
	}()
	target := t.TempDir()
	path := filepath.Join(target, FileName)
	err := db.Backup(ctx, path)
	close(stop)
	if e := <-ended; e != nil {
		t.Errorf("an update during the backup: %v", e)
	}
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || checksModes && info.Mode().Perm() != 0o600 {
		t.Errorf("the backup has mode %v (%v), want 0600", info.Mode(), err)
	}
	if err := db.Backup(ctx, path); err == nil {
		t.Error("a backup overwrote an existing file")
	}
	var acked []int64
	for id := range int64(50) {
		acked = append(acked, id)
	}
	if err := verifyPairs(target, acked); err != nil {
		t.Errorf("the restored backup: %v", err)
	}

	// A backup that cannot be finished leaves nothing.
	ended2, end := context.WithCancel(ctx)
	end()
	empty := t.TempDir()
	if err := db.Backup(ended2, filepath.Join(empty, "x.db")); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled backup: got %v, want context.Canceled", err)
	}
	if err := db.Backup(ctx, filepath.Join(empty, "missing", "x.db")); err == nil {
		t.Error("a backup into a missing directory succeeded")
	}
	if left, err := os.ReadDir(empty); err != nil || len(left) != 0 {
		t.Errorf("failed backups left %v (%v)", left, err)
	}
}

func TestCheck(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	db := open(t, Options{Dir: dir, Migrations: pairSchema()})
	if err := db.Update(ctx, func(t store.Tx) error { return addPair(t, 1) }); err != nil {
		t.Fatal(err)
	}
	if err := db.Check(ctx); err != nil {
		t.Errorf("a sound database: %v", err)
	}
	// A program that does not know foreign keys breaks one.
	if _, err := rawOpen(t, dir).Exec(`DELETE FROM one`); err != nil {
		t.Fatal(err)
	}
	err := db.Check(ctx)
	if !errors.Is(err, store.ErrCorrupt) || !strings.Contains(err.Error(), "row 1 of table two refers to a missing row of table one") {
		t.Errorf("a broken reference: got %v, want ErrCorrupt that names it", err)
	}
}
