package sqlite

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"vogt/internal/store"
)

// makeDatabase writes a database of some fifty pages and returns its
// directory, closed.
func makeDatabase(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	db := open(t, Options{Dir: dir, Migrations: pairSchema()})
	err := db.Update(context.Background(), func(t store.Tx) error {
		for id := range int64(80) {
			if err := addPair(t, id); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestDamaged: whatever the damage, some step on the way from opening to a
// full read reports it as ErrCorrupt, and none succeeds with wrong data.
func TestDamaged(t *testing.T) {
	noise := make([]byte, 4096)
	rand.NewChaCha8([32]byte{1}).Read(noise)
	overwrite := func(offset int64, data []byte) func(*os.File) error {
		return func(f *os.File) error {
			_, err := f.WriteAt(data, offset)
			return err
		}
	}
	for name, damage := range map[string]func(*os.File) error{
		"garbage instead of a header": overwrite(0, noise),
		"garbage instead of it all": func(f *os.File) error {
			if err := f.Truncate(0); err != nil {
				return err
			}
			_, err := f.WriteAt(noise, 0)
			return err
		},
		"a text file":            overwrite(0, []byte("this is not a database, it is a letter\n")),
		"garbage in the schema":  overwrite(100, noise[:3996]),
		"garbage in the middle":  overwrite(20*4096, noise),
		"zeros in the middle":    overwrite(30*4096, make([]byte, 4096)),
		"a page's header":        overwrite(25*4096, noise[:12]),
		"cut off in the middle":  func(f *os.File) error { return f.Truncate(20 * 4096) },
		"cut off within a page":  func(f *os.File) error { return f.Truncate(20*4096 + 100) },
		"cut off after the page": func(f *os.File) error { return f.Truncate(4096) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := makeDatabase(t)
			f, err := os.OpenFile(filepath.Join(dir, FileName), os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(damage(f), f.Close()); err != nil {
				t.Fatal(err)
			}
			var acked []int64
			for id := range int64(80) {
				acked = append(acked, id)
			}
			if err := verifyPairs(dir, acked); !errors.Is(err, store.ErrCorrupt) {
				t.Errorf("got %v, want ErrCorrupt", err)
			}
		})
	}
}

// leaveLog makes a database whose last updates are in the log only, as after a
// crash, and returns its directory. The first n updates are in the file.
func leaveLog(t *testing.T, inFile, inLog int64) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	for _, c := range []childConfig{
		{First: 0, Count: inFile},
		{First: inFile, Count: inLog, Stay: true},
	} {
		c.Dir, c.Ballast, c.Callers, c.Openings = dir, -1, 1, 1
		if out, err := c.command(t).Output(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	return dir
}

// TestEmptyBesideLog: SQLite takes an empty file for a new database and
// deletes the log; the engine must not let it.
func TestEmptyBesideLog(t *testing.T) {
	dir := leaveLog(t, 5, 5)
	if err := os.Truncate(filepath.Join(dir, FileName), 0); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(filepath.Join(dir, FileName+"-wal"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = Open(context.Background(), Options{Dir: dir, Migrations: pairSchema(), Ballast: -1})
	if !errors.Is(err, store.ErrCorrupt) {
		t.Errorf("got %v, want ErrCorrupt", err)
	}
	after, err := os.ReadFile(filepath.Join(dir, FileName+"-wal"))
	if err != nil || string(after) != string(before) {
		t.Errorf("the log was changed (%v)", err)
	}
}

// TestTruncatedLog cuts the log at many lengths: what is read is a prefix of
// the updates, whole ones only, and at least what is in the file.
func TestTruncatedLog(t *testing.T) {
	const inFile, inLog = 5, 8
	dir := leaveLog(t, inFile, inLog)
	database, err := os.ReadFile(filepath.Join(dir, FileName))
	if err != nil {
		t.Fatal(err)
	}
	log, err := os.ReadFile(filepath.Join(dir, FileName+"-wal"))
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(3, 4))
	lengths := []int{0, 1, 31, 32, 33, 32 + 24, len(log) - 1, len(log)}
	for range 12 {
		lengths = append(lengths, random.IntN(len(log)))
	}
	for _, length := range lengths {
		cut := t.TempDir()
		if err := os.WriteFile(filepath.Join(cut, FileName), database, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(cut, FileName+"-wal"), log[:length], 0o600); err != nil {
			t.Fatal(err)
		}
		n := countPairs(t, cut)
		var prefix []int64
		for id := range int64(n) {
			prefix = append(prefix, id)
		}
		if err := verifyPairs(cut, prefix); err != nil {
			t.Errorf("log cut to %d of %d bytes, %d updates: %v", length, len(log), n, err)
		}
		switch {
		case n < inFile:
			t.Errorf("log cut to %d of %d bytes: %d updates, yet %d are in the file", length, len(log), n, inFile)
		case length == len(log) && n != inFile+inLog:
			t.Errorf("with the whole log: %d updates, want %d", n, inFile+inLog)
		case length == 0 && n != inFile:
			t.Errorf("without a log: %d updates, want %d", n, inFile)
		}
	}
}
