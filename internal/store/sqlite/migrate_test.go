package sqlite

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"vogt/internal/store"
)

// versions returns the migrations up to version n; the last of them is broken
// if broken is set.
func versions(n int, broken bool) fs.FS {
	all := []string{
		`CREATE TABLE one (id INTEGER PRIMARY KEY, body TEXT NOT NULL DEFAULT '') STRICT;`,
		`ALTER TABLE one ADD COLUMN extra TEXT;`,
		`CREATE TABLE third (id INTEGER PRIMARY KEY) STRICT;`,
	}
	m := fstest.MapFS{}
	for i, text := range all[:n] {
		if broken && i == n-1 {
			text += "\nINSERT INTO nowhere VALUES (1);"
		}
		m["0000"+string(rune('1'+i))+"_step.sql"] = &fstest.MapFile{Data: []byte("-- +goose Up\n" + text + "\n")}
	}
	return m
}

func insertOne(db *DB, id int64) error {
	return db.Update(context.Background(), func(t store.Tx) error {
		_, err := t.Exec(`INSERT INTO one (id) VALUES (?1)`, id)
		return err
	})
}

func TestMigrate(t *testing.T) {
	dir := t.TempDir()
	now := func() time.Time { return time.Date(2026, 11, 30, 10, 35, 0, 0, time.UTC) }
	opts := func(n int, broken bool) Options {
		return Options{Dir: dir, Migrations: versions(n, broken), Now: now, Ballast: -1}
	}
	copies := func() []string {
		t.Helper()
		found, err := filepath.Glob(filepath.Join(dir, "vogt-*.db"))
		if err != nil {
			t.Fatal(err)
		}
		return found
	}

	db := open(t, opts(1, false))
	if err := insertOne(db, 1); err != nil {
		t.Fatal(err)
	}
	db.Close()
	if found := copies(); len(found) != 0 {
		t.Errorf("a new database left copies: %q", found)
	}

	// A migration that fails leaves the database as it was and says where the
	// copy is.
	var log strings.Builder
	broken := opts(2, true)
	broken.Log = textLog(&log)
	_, err := Open(context.Background(), broken)
	if err == nil {
		t.Fatal("a broken migration succeeded")
	}
	found := copies()
	if len(found) != 1 || filepath.Base(found[0]) != "vogt-before-v2-20261130T103500Z.db" {
		t.Fatalf("copies %q, want one of 30 November 2026, 10:35", found)
	}
	for where, text := range map[string]string{"error": err.Error(), "log": log.String()} {
		if !strings.Contains(text, found[0]) {
			t.Errorf("the %s does not name the copy: %s", where, text)
		}
	}
	if info, err := os.Stat(found[0]); err != nil || checksModes && info.Mode().Perm() != 0o600 {
		t.Errorf("the copy has mode %v (%v), want 0600", info.Mode(), err)
	}
	db = open(t, opts(1, false))
	if n := count(t, db); n != 1 {
		t.Errorf("%d rows after a failed migration, want 1", n)
	}
	db.Close()

	// The repaired one succeeds.
	if err := os.Remove(found[0]); err != nil {
		t.Fatal(err)
	}
	db = open(t, opts(3, false))
	if err := insertOne(db, 2); err != nil {
		t.Fatal(err)
	}
	db.Close()
	if len(copies()) != 1 {
		t.Errorf("copies %q, want one", copies())
	}

	// The older program refuses, and changes nothing.
	before, err := os.ReadFile(filepath.Join(dir, FileName))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(context.Background(), opts(2, false)); !errors.Is(err, store.ErrTooNew) {
		t.Errorf("opening version 3 with a program for version 2: got %v, want ErrTooNew", err)
	}
	after, err := os.ReadFile(filepath.Join(dir, FileName))
	if err != nil || string(before) != string(after) {
		t.Errorf("a refused opening changed the database (%v)", err)
	}

	// The copy is the database of version 1, and opens.
	restored := t.TempDir()
	data, err := os.ReadFile(copies()[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(restored, FileName), data, 0o600); err != nil {
		t.Fatal(err)
	}
	db = open(t, Options{Dir: restored, Migrations: versions(1, false)})
	if n := count(t, db); n != 1 {
		t.Errorf("the copy has %d rows, want 1", n)
	}
}
