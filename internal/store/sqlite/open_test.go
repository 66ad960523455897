package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"vogt/internal/store"
	"vogt/internal/store/storetest"
)

// rawOpen opens the database file past the engine, as another program would.
func rawOpen(t *testing.T, dir string) *sql.DB {
	t.Helper()
	raw, err := sql.Open("sqlite", filepath.Join(dir, FileName)+"?_busy_timeout=5000")
	if err != nil {
		t.Fatal(err)
	}
	raw.SetMaxOpenConns(1)
	t.Cleanup(func() { raw.Close() })
	return raw
}

func removePair(dir string, id int64) error {
	db, err := Open(context.Background(), Options{Dir: dir, Migrations: pairSchema(), Ballast: -1, Readers: 1})
	if err != nil {
		return err
	}
	err = db.Update(context.Background(), func(t store.Tx) error {
		for _, query := range []string{`DELETE FROM two WHERE id = ?1`, `DELETE FROM one WHERE id = ?1`} {
			if _, err := t.Exec(query, id); err != nil {
				return err
			}
		}
		_, err := t.Exec(`UPDATE counter SET n = n - 1`)
		return err
	})
	return errors.Join(err, db.Close())
}

func countPairs(t *testing.T, dir string) (n int) {
	t.Helper()
	db := open(t, Options{Dir: dir, Migrations: pairSchema()})
	n = count(t, db)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return n
}

func count(t *testing.T, db *DB) (n int) {
	t.Helper()
	err := db.View(context.Background(), func(t store.Tx) error {
		return t.QueryRow(`SELECT count(*) FROM one`).Scan(&n)
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestOptionsRefused(t *testing.T) {
	for name, opts := range map[string]Options{
		"no directory":  {Migrations: pairSchema()},
		"no migrations": {Dir: t.TempDir()},
		"empty folder":  {Dir: t.TempDir(), Migrations: fstest.MapFS{}},
	} {
		if db, err := Open(context.Background(), opts); err == nil {
			db.Close()
			t.Errorf("%s: Open succeeded", name)
		}
	}
}

func TestReopen(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "data?with #odd%20name")
	for opening := int64(1); opening <= 3; opening++ {
		db := open(t, Options{Dir: dir, Migrations: pairSchema()})
		if db.Fence() != opening {
			t.Errorf("opening %d has fence %d", opening, db.Fence())
		}
		if err := db.Update(context.Background(), func(t store.Tx) error { return addPair(t, opening) }); err != nil {
			t.Fatal(err)
		}
		if n := count(t, db); n != int(opening) {
			t.Errorf("opening %d: %d rows", opening, n)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		// The file alone is the whole database now.
		if info, err := os.Stat(filepath.Join(dir, FileName+"-wal")); err == nil && info.Size() > 0 {
			t.Errorf("after Close the log still holds %d bytes", info.Size())
		}
	}
	if copies, _ := filepath.Glob(filepath.Join(filepath.Dir(dir), "*", "vogt-before-*")); len(copies) > 0 {
		t.Errorf("openings without a migration made copies: %q", copies)
	}
}

func TestLocked(t *testing.T) {
	dir := t.TempDir()
	opts := Options{Dir: dir, Migrations: pairSchema(), Ballast: -1}
	first := open(t, opts)
	_, err := Open(context.Background(), opts)
	if !errors.Is(err, store.ErrLocked) || !strings.Contains(fmt.Sprint(err), fmt.Sprintf("process %d)", os.Getpid())) {
		t.Errorf("second Open: got %v, want ErrLocked with this process's id", err)
	}
	// From another process as well.
	out, err := childConfig{Dir: dir, Ballast: -1, Callers: 1, Openings: 1, Count: 1}.command(t).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "in use by another process") {
		t.Errorf("another process on a directory in use: %v, %s", err, out)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, opts)
}

func TestFencedByAnotherWriter(t *testing.T) {
	dir := t.TempDir()
	opts := Options{Dir: dir, Migrations: pairSchema()}
	first := open(t, opts)
	// The lock fails its purpose: removed by hand, or not seen by the other
	// machine on a network file system.
	if err := os.Remove(filepath.Join(dir, "lock")); err != nil {
		t.Skip("the lock file cannot be removed here while it is held: ", err)
	}
	second := open(t, opts)
	if second.Fence() != first.Fence()+1 {
		t.Errorf("fences %d and %d, want the second higher by one", first.Fence(), second.Fence())
	}
	add := func(db *DB, id int64) error {
		return db.Update(context.Background(), func(t store.Tx) error { return addPair(t, id) })
	}
	if err := add(second, 1); err != nil {
		t.Errorf("the new writer: %v", err)
	}
	if err := add(first, 2); !errors.Is(err, store.ErrFenced) || !strings.Contains(err.Error(), fmt.Sprintf("process %d on ", os.Getpid())) {
		t.Errorf("the old writer: got %v, want ErrFenced that names the new one", err)
	}
	if n := count(t, first); n != 1 {
		t.Errorf("the fenced writer reads %d rows, want 1", n)
	}
	if err := add(second, 3); err != nil {
		t.Errorf("the new writer after the old one's attempt: %v", err)
	}
}

func TestFileReplaced(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows does not let an open file be replaced")
	}
	dir := t.TempDir()
	db := open(t, Options{Dir: dir, Migrations: pairSchema()})
	if err := os.Rename(filepath.Join(dir, FileName), filepath.Join(dir, "away")); err != nil {
		t.Fatal(err)
	}
	err := db.Update(context.Background(), func(t store.Tx) error { return addPair(t, 1) })
	if !errors.Is(err, store.ErrFenced) {
		t.Errorf("update into a file without a name: got %v, want ErrFenced", err)
	}
	if err := os.WriteFile(filepath.Join(dir, FileName), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	err = db.Update(context.Background(), func(t store.Tx) error { return addPair(t, 1) })
	if !errors.Is(err, store.ErrFenced) {
		t.Errorf("update beside another file: got %v, want ErrFenced", err)
	}
}

// TestPragmasAsserted proves that a connection that SQLite set up otherwise is
// not used.
func TestPragmasAsserted(t *testing.T) {
	dir := t.TempDir()
	db := open(t, Options{Dir: dir, Migrations: pairSchema()})
	for _, parameters := range []string{
		"_synchronous=NORMAL&_foreign_keys=1&_busy_timeout=5000&_pragma=temp_store(2)&_pragma=trusted_schema(0)",
		"_synchronous=FULL&_foreign_keys=0&_busy_timeout=5000&_pragma=temp_store(2)&_pragma=trusted_schema(0)",
		"_synchronous=FULL&_foreign_keys=1&_busy_timeout=0&_pragma=temp_store(2)&_pragma=trusted_schema(0)",
		"_synchronous=FULL&_foreign_keys=1&_busy_timeout=5000&_pragma=trusted_schema(0)",
	} {
		raw, err := sql.Open("sqlite", filepath.Join(dir, FileName)+"?"+parameters)
		if err != nil {
			t.Fatal(err)
		}
		defer raw.Close()
		if _, err := db.connect(context.Background(), raw, false); err == nil {
			t.Errorf("a connection with %s was accepted", parameters)
		}
	}
}

// TestExit: a function that ends the engine's goroutine takes its own group
// down and nobody else.
func TestExit(t *testing.T) {
	db := open(t, Options{Dir: t.TempDir(), Migrations: pairSchema()})
	for i := range int64(3) {
		err := db.Update(context.Background(), func(tx store.Tx) error {
			if _, err := tx.Query(`SELECT id FROM one`); err != nil {
				return err
			}
			if err := addPair(tx, i); err != nil {
				return err
			}
			runtime.Goexit()
			return nil
		})
		if err == nil {
			t.Error("an update that never returned was acknowledged")
		}
		if err := db.Update(context.Background(), func(t store.Tx) error { return addPair(t, 100+i) }); err != nil {
			t.Errorf("the update after it: %v", err)
		}
	}
	if n := count(t, db); n != 3 {
		t.Errorf("%d rows, want 3", n)
	}
}

// TestGroupSurvives lets functions try what could end or spoil the shared
// transaction while others are in it.
func TestGroupSurvives(t *testing.T) {
	schema := fstest.MapFS{"00001_family.sql": {Data: []byte(`-- +goose Up
CREATE TABLE parent (id INTEGER PRIMARY KEY) STRICT;
CREATE TABLE child (id INTEGER PRIMARY KEY, parent INTEGER NOT NULL REFERENCES parent (id) DEFERRABLE INITIALLY DEFERRED) STRICT;
INSERT INTO parent (id) VALUES (1);
`)}}
	db := open(t, Options{Dir: t.TempDir(), Migrations: schema})
	insert := func(id, parent int64) func(store.Tx) error {
		return func(t store.Tx) error {
			_, err := t.Exec(`INSERT INTO child (id, parent) VALUES (?1, ?2)`, id, parent)
			return err
		}
	}
	// The first update holds the writer until the others have been started, so
	// that most rounds put them into one group.
	type result struct {
		name string
		err  error
	}
	for round := range int64(20) {
		running, release := make(chan struct{}), make(chan struct{})
		results := make(chan result)
		start := func(name string, fn func(store.Tx) error) {
			go func() { results <- result{name, db.Update(context.Background(), fn)} }()
		}
		id := round * 10
		start("good 1", func(t store.Tx) error {
			close(running)
			<-release
			return insert(id+1, 1)(t)
		})
		<-running
		start("orphan", insert(id+2, 99_999))
		start("good 2", insert(id+3, 1))
		start("good 3", func(t store.Tx) error { // an order that only deferring allows
			if err := insert(id+4, 1000+id)(t); err != nil {
				return err
			}
			_, err := t.Exec(`INSERT INTO parent (id) VALUES (?1)`, 1000+id)
			return err
		})
		close(release)
		for range 4 {
			r := <-results
			if good := strings.HasPrefix(r.name, "good"); good != (r.err == nil) {
				t.Errorf("%s: %v", r.name, r.err)
			}
		}
	}

	// OR ROLLBACK ends the transaction; what follows must not commit alone.
	err := db.Update(context.Background(), func(tx store.Tx) error {
		if err := insert(5, 1)(tx); err != nil {
			return err
		}
		if _, err := tx.Exec(`INSERT OR ROLLBACK INTO child (id, parent) VALUES (1, 1)`); !errors.Is(err, store.ErrConflict) {
			t.Errorf("got %v, want ErrConflict", err)
		}
		if err := insert(6, 1)(tx); err == nil {
			t.Error("a statement ran after its transaction was rolled back")
		}
		return nil
	})
	if !errors.Is(err, store.ErrConflict) {
		t.Errorf("an update whose transaction was rolled back: got %v, want ErrConflict", err)
	}
	var n, wrong int
	err = db.View(context.Background(), func(t store.Tx) error {
		return t.QueryRow(`SELECT count(*), count(*) FILTER (WHERE id % 10 NOT IN (1, 3, 4)) FROM child`).Scan(&n, &wrong)
	})
	if err != nil || n != 60 || wrong != 0 {
		t.Errorf("%d children, %d of them of failed updates (%v); want 60 and none", n, wrong, err)
	}
}

func TestStatementCache(t *testing.T) {
	db := open(t, Options{Dir: t.TempDir(), Migrations: pairSchema(), Readers: 1})
	varied := func(tx store.Tx) error {
		rows, err := tx.Query(`SELECT 1 UNION SELECT 2`) // open while the cache empties
		if err != nil {
			return err
		}
		for i := range 2*maxStatements + 10 {
			var got int
			if err := tx.QueryRow(fmt.Sprintf(`SELECT %d`, i)).Scan(&got); err != nil || got != i {
				return fmt.Errorf("SELECT %d gave %d, %v", i, got, err)
			}
		}
		n := 0
		for rows.Next() {
			n++
		}
		if n != 2 || rows.Err() != nil {
			t.Errorf("%d rows (%v), want 2", n, rows.Err())
		}
		return rows.Close()
	}
	if err := db.Update(context.Background(), varied); err != nil {
		t.Error(err)
	}
	if err := db.View(context.Background(), varied); err != nil {
		t.Error(err)
	}
	if n := len(db.writer.conn.statements); n > maxStatements {
		t.Errorf("%d statements are cached, want at most %d", n, maxStatements)
	}
}

// TestBigGroup exceeds both bounds of a group.
func TestBigGroup(t *testing.T) {
	db := open(t, Options{Dir: t.TempDir(), Migrations: storetest.Schema()})
	blob := make([]byte, maxGroupBytes/16)
	running, release := make(chan struct{}), make(chan struct{})
	errs := make(chan error)
	go func() {
		errs <- db.Update(context.Background(), func(store.Tx) error {
			close(running)
			<-release
			return nil
		})
	}()
	<-running
	const n = maxGroup + 50
	for id := range n {
		go func() {
			errs <- db.Update(context.Background(), func(t store.Tx) error {
				var b []byte
				if id < 40 {
					b = blob
				}
				_, err := t.Exec(`INSERT INTO sample (id, b) VALUES (?1, ?2)`, id, b)
				return err
			})
		}()
	}
	close(release)
	for range n + 1 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	var got int
	err := db.View(context.Background(), func(t store.Tx) error {
		return t.QueryRow(`SELECT count(*) FROM sample`).Scan(&got)
	})
	if err != nil || got != n {
		t.Errorf("%d rows (%v), want %d", got, err, n)
	}
}

func TestTimeRefused(t *testing.T) {
	db := open(t, Options{Dir: t.TempDir(), Migrations: storetest.Schema()})
	now := time.Unix(0, 0)
	for _, arg := range []any{now, &now, sql.NullTime{Time: now, Valid: true}} {
		err := db.Update(context.Background(), func(t store.Tx) error {
			_, err := t.Exec(`INSERT INTO sample (id, s) VALUES (?1, ?2)`, 1, arg)
			return err
		})
		if err == nil || !strings.Contains(err.Error(), "milliseconds") {
			t.Errorf("%T: got %v, want an error that says how to store a time", arg, err)
		}
	}
}

func TestSentinels(t *testing.T) {
	for code, want := range map[int]error{
		sqlite3.SQLITE_FULL:                  store.ErrFull,
		sqlite3.SQLITE_READONLY:              store.ErrReadOnly,
		sqlite3.SQLITE_READONLY_DBMOVED:      store.ErrReadOnly,
		sqlite3.SQLITE_CANTOPEN:              store.ErrReadOnly,
		sqlite3.SQLITE_IOERR:                 store.ErrIO,
		sqlite3.SQLITE_IOERR_FSYNC:           store.ErrIO,
		sqlite3.SQLITE_IOERR_WRITE:           store.ErrIO,
		sqlite3.SQLITE_IOERR_CORRUPTFS:       store.ErrCorrupt,
		sqlite3.SQLITE_CORRUPT:               store.ErrCorrupt,
		sqlite3.SQLITE_CORRUPT_INDEX:         store.ErrCorrupt,
		sqlite3.SQLITE_NOTADB:                store.ErrCorrupt,
		sqlite3.SQLITE_BUSY:                  store.ErrLocked,
		sqlite3.SQLITE_BUSY_RECOVERY:         store.ErrLocked,
		sqlite3.SQLITE_LOCKED:                store.ErrLocked,
		sqlite3.SQLITE_CONSTRAINT_UNIQUE:     store.ErrConflict,
		sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY: store.ErrConflict,
		sqlite3.SQLITE_CONSTRAINT_CHECK:      nil,
		sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY: nil,
		sqlite3.SQLITE_ERROR:                 nil,
		sqlite3.SQLITE_NOMEM:                 nil,
	} {
		if got := sentinelOf(code); got != want {
			t.Errorf("code %d: got %v, want %v", code, got, want)
		}
	}
}

// TestForeignLock: another program holds SQLite's own lock.
func TestForeignLock(t *testing.T) {
	dir := t.TempDir()
	db := open(t, Options{Dir: dir, Migrations: pairSchema(), busyTimeout: time.Millisecond})
	raw := rawOpen(t, dir)
	if _, err := raw.Exec(`BEGIN IMMEDIATE`); err != nil {
		t.Fatal(err)
	}
	err := db.Update(context.Background(), func(t store.Tx) error { return addPair(t, 1) })
	if !errors.Is(err, store.ErrLocked) {
		t.Errorf("update beside a foreign transaction: got %v, want ErrLocked", err)
	}
	if _, err := raw.Exec(`COMMIT`); err != nil {
		t.Fatal(err)
	}
	if err := db.Update(context.Background(), func(t store.Tx) error { return addPair(t, 1) }); err != nil {
		t.Errorf("update after it: %v", err)
	}
}

// TestViewWaits: views beyond the number of readers wait, and need not wait
// for ever.
func TestViewWaits(t *testing.T) {
	db := open(t, Options{Dir: t.TempDir(), Migrations: pairSchema(), Readers: 1})
	running, release, ended := make(chan struct{}), make(chan struct{}), make(chan error)
	go func() {
		ended <- db.View(context.Background(), func(store.Tx) error {
			close(running)
			<-release
			return nil
		})
	}()
	<-running
	ctx, cancel := context.WithCancel(context.Background())
	waiting := make(chan error)
	go func() {
		waiting <- db.View(ctx, func(store.Tx) error {
			t.Error("a cancelled view ran")
			return nil
		})
	}()
	cancel()
	if err := <-waiting; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	close(release)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if n := count(t, db); n != 0 {
		t.Errorf("%d rows, want 0", n)
	}
}
