// Package storetest proves that an engine keeps the contract of store.DB.
//
// It owns the tests that any engine must pass. It leaves out what only one
// engine can be asked: files, power cuts, full disks.
package storetest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"

	"vogt/internal/store"
)

// Schema returns the migrations that the database under test must have run.
func Schema() fs.FS {
	return fstest.MapFS{"00001_storetest.sql": {Data: []byte(`-- +goose Up
CREATE TABLE account (name TEXT PRIMARY KEY, amount BIGINT NOT NULL);
CREATE TABLE entry (id BIGINT PRIMARY KEY, account TEXT NOT NULL, note TEXT);
CREATE TABLE sample (id BIGINT PRIMARY KEY, i BIGINT, f DOUBLE PRECISION, s TEXT, b BYTEA);
`)}}
}

// Run tests the engine that open opens. open is called once a test and must
// return a fresh database with the tables of Schema; it closes the database at
// the test's end (closing twice is part of the contract).
func Run(t *testing.T, open func(t *testing.T) store.DB) {
	for _, c := range []struct {
		name string
		test func(*testing.T, *suite)
	}{
		{"read your writes", testReadYourWrites},
		{"failed functions are undone alone", testFailedAlone},
		{"an update is all or nothing", testAtomic},
		{"a failed statement is undone alone", testStatementAlone},
		{"unique violation is a conflict", testConflict},
		{"exactly one of 1000 consumes", testConsumeOnce},
		{"OnCommit runs in order and after the commit", testOnCommit},
		{"cancelled while waiting never runs", testCancelWaiting},
		{"cancelled after the start is carried through", testCancelStarted},
		{"cancelled view ends", testCancelView},
		{"panics become errors", testPanics},
		{"readers see whole states while writers write", testSnapshots},
		{"rows left open do no harm", testOpenRows},
		{"one query inside itself", testNestedQuery},
		{"values come back as they went in", testValues},
		{"what is refused", testRefused},
		{"a writer that lost the lease is fenced", testFenced},
		{"closed", testClosed},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, &suite{t: t, db: open(t)}) })
	}
}

// suite is one test's database with short ways to use it.
type suite struct {
	t  *testing.T
	db store.DB
}

func (s *suite) update(fn func(store.Tx) error) {
	s.t.Helper()
	if err := s.db.Update(context.Background(), fn); err != nil {
		s.t.Fatalf("Update: %v", err)
	}
}

// exec runs one statement as an update of its own.
func (s *suite) exec(query string, args ...any) {
	s.t.Helper()
	s.update(func(t store.Tx) error {
		_, err := t.Exec(query, args...)
		return err
	})
}

// number reads one integer through a view.
func (s *suite) number(query string, args ...any) (n int64) {
	s.t.Helper()
	err := s.db.View(context.Background(), func(t store.Tx) error {
		return t.QueryRow(query, args...).Scan(&n)
	})
	if err != nil {
		s.t.Fatalf("View %s: %v", query, err)
	}
	return n
}

func (s *suite) wantNumber(want int64, query string, args ...any) {
	s.t.Helper()
	if got := s.number(query, args...); got != want {
		s.t.Errorf("%s: got %d, want %d", query, got, want)
	}
}

const insertEntry = `INSERT INTO entry (id, account, note) VALUES (?1, ?2, ?3)`

func addEntry(t store.Tx, id int64) error {
	_, err := t.Exec(insertEntry, id, "a", "n")
	return err
}

var errWanted = errors.New("wanted")

func testReadYourWrites(t *testing.T, s *suite) {
	var callers sync.WaitGroup
	for c := range int64(8) {
		callers.Go(func() {
			for i := range int64(25) {
				id := c*1000 + i
				if err := s.db.Update(context.Background(), func(t store.Tx) error { return addEntry(t, id) }); err != nil {
					t.Error(err)
					return
				}
				err := s.db.View(context.Background(), func(t store.Tx) error {
					var got int64
					return t.QueryRow(`SELECT id FROM entry WHERE id = ?1`, id).Scan(&got)
				})
				if err != nil {
					t.Errorf("entry %d right after its update: %v", id, err)
				}
			}
		})
	}
	callers.Wait()
}

func testFailedAlone(t *testing.T, s *suite) {
	const n = 200
	errs := make([]error, n)
	var callers sync.WaitGroup
	for i := range int64(n) {
		callers.Go(func() {
			errs[i] = s.db.Update(context.Background(), func(t store.Tx) error {
				if err := addEntry(t, i); err != nil {
					return err
				}
				switch i % 4 {
				case 1:
					return errWanted
				case 3:
					panic("wanted")
				}
				return nil
			})
		})
	}
	callers.Wait()
	for i, err := range errs {
		switch {
		case i%2 == 0 && err != nil:
			t.Errorf("update %d: %v", i, err)
		case i%4 == 1 && !errors.Is(err, errWanted):
			t.Errorf("update %d: got %v, want the function's own error", i, err)
		case i%4 == 3 && err == nil:
			t.Errorf("update %d panicked, yet Update returned nil", i)
		}
	}
	s.wantNumber(n/2, `SELECT count(*) FROM entry`)
	s.wantNumber(0, `SELECT count(*) FROM entry WHERE id % 2 = 1`)
}

func testAtomic(t *testing.T, s *suite) {
	err := s.db.Update(context.Background(), func(t store.Tx) error {
		for id := range int64(50) {
			if err := addEntry(t, id); err != nil {
				return err
			}
		}
		return addEntry(t, 7) // there already
	})
	if !errors.Is(err, store.ErrConflict) {
		t.Errorf("got %v, want ErrConflict", err)
	}
	s.wantNumber(0, `SELECT count(*) FROM entry`)
}

func testStatementAlone(t *testing.T, s *suite) {
	s.update(func(tx store.Tx) error {
		if err := addEntry(tx, 2); err != nil {
			return err
		}
		// Three rows, the last of which exists: none is added.
		_, err := tx.Exec(`INSERT INTO entry (id, account) SELECT id, 'x' FROM (SELECT 0 AS id UNION ALL SELECT 1 UNION ALL SELECT 2) AS three`)
		if !errors.Is(err, store.ErrConflict) {
			t.Errorf("got %v, want ErrConflict", err)
		}
		return addEntry(tx, 3) // the function goes on and succeeds
	})
	s.wantNumber(2, `SELECT count(*) FROM entry`)
	s.wantNumber(0, `SELECT count(*) FROM entry WHERE account = 'x'`)
}

func testConflict(t *testing.T, s *suite) {
	s.exec(insertEntry, 1, "a", nil)
	err := s.db.Update(context.Background(), func(t store.Tx) error { return addEntry(t, 1) })
	if !errors.Is(err, store.ErrConflict) {
		t.Errorf("got %v, want ErrConflict", err)
	}
}

func testConsumeOnce(t *testing.T, s *suite) {
	s.exec(`INSERT INTO account (name, amount) VALUES ('grant', 1)`)
	var won, lost atomic.Int64
	var callers sync.WaitGroup
	for range 1000 {
		callers.Go(func() {
			err := s.db.Update(context.Background(), func(t store.Tx) error {
				n, err := t.Exec(`UPDATE account SET amount = amount - 1 WHERE name = ?1 AND amount > 0`, "grant")
				if err == nil && n == 0 {
					return store.ErrConflict
				}
				return err
			})
			switch {
			case err == nil:
				won.Add(1)
			case errors.Is(err, store.ErrConflict):
				lost.Add(1)
			default:
				t.Errorf("got %v, want nil or ErrConflict", err)
			}
		})
	}
	callers.Wait()
	if won.Load() != 1 || lost.Load() != 999 {
		t.Errorf("%d consumers won and %d lost, want 1 and 999", won.Load(), lost.Load())
	}
	s.wantNumber(0, `SELECT amount FROM account WHERE name = 'grant'`)
}

func testOnCommit(t *testing.T, s *suite) {
	// seen is written by OnCommit functions only, which never overlap; each
	// update's caller reads it after Update answered.
	var mu sync.Mutex
	var seen []string
	note := func(text string) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, text)
	}
	const n = 40
	var order atomic.Int64
	var callers sync.WaitGroup
	for i := range int64(n) {
		callers.Go(func() {
			fails := i%5 == 4
			var place int64
			err := s.db.Update(context.Background(), func(tx store.Tx) error {
				if err := addEntry(tx, i); err != nil {
					return err
				}
				if fails {
					tx.OnCommit(func() { t.Error("OnCommit of a failed update ran") })
					return errWanted
				}
				place = order.Add(1)
				tx.OnCommit(func() {
					if s.number(`SELECT count(*) FROM entry WHERE id = ?1`, i) != 1 {
						t.Errorf("OnCommit of update %d ran before its row was visible", i)
					}
					note(fmt.Sprintf("%d first", place))
				})
				tx.OnCommit(func() { note(fmt.Sprintf("%d second", place)) })
				return nil
			})
			if fails != (err != nil) {
				t.Errorf("update %d: %v", i, err)
			}
			mu.Lock()
			defer mu.Unlock()
			if !fails && !slices.Contains(seen, fmt.Sprintf("%d second", place)) {
				t.Errorf("update %d was answered before its OnCommit functions ran", i)
			}
		})
	}
	callers.Wait()
	var want []string
	for place := int64(1); place <= order.Load(); place++ {
		want = append(want, fmt.Sprintf("%d first", place), fmt.Sprintf("%d second", place))
	}
	if !slices.Equal(seen, want) {
		t.Errorf("OnCommit functions ran as\n%q, want\n%q", seen, want)
	}

	s.update(func(t store.Tx) error {
		t.OnCommit(func() { panic("wanted") })
		return addEntry(t, 1000)
	})
	s.wantNumber(1, `SELECT count(*) FROM entry WHERE id = 1000`)
}

func testCancelWaiting(t *testing.T, s *suite) {
	ended, end := context.WithCancel(context.Background())
	end()
	err := s.db.Update(ended, func(store.Tx) error {
		t.Error("the function ran though its context had ended")
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Update with an ended context: got %v, want context.Canceled", err)
	}

	// One update occupies the writer; the other waits and is cancelled.
	running, release := make(chan struct{}), make(chan struct{})
	first := make(chan error, 1)
	go func() {
		first <- s.db.Update(context.Background(), func(t store.Tx) error {
			close(running)
			<-release
			return addEntry(t, 1)
		})
	}()
	<-running
	ctx, cancel := context.WithCancel(context.Background())
	second := make(chan error, 1)
	go func() {
		second <- s.db.Update(ctx, func(store.Tx) error {
			t.Error("a cancelled update ran")
			return nil
		})
	}()
	cancel()
	if err := <-second; !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled update: got %v, want context.Canceled", err)
	}
	close(release)
	if err := <-first; err != nil {
		t.Errorf("the update that was running: %v", err)
	}
	s.wantNumber(1, `SELECT count(*) FROM entry`)
}

func testCancelStarted(t *testing.T, s *suite) {
	ctx, cancel := context.WithCancel(context.Background())
	err := s.db.Update(ctx, func(t store.Tx) error {
		cancel()
		return addEntry(t, 1)
	})
	if err != nil {
		t.Errorf("an update whose context ended after the start: %v", err)
	}
	s.wantNumber(1, `SELECT count(*) FROM entry`)
}

func testCancelView(t *testing.T, s *suite) {
	s.update(func(t store.Tx) error { return errors.Join(addEntry(t, 1), addEntry(t, 2)) })
	ctx, cancel := context.WithCancel(context.Background())
	err := s.db.View(ctx, func(tx store.Tx) error {
		rows, err := tx.Query(`SELECT id FROM entry`)
		if err != nil {
			return err
		}
		defer rows.Close()
		if !rows.Next() {
			t.Error("no first row")
		}
		cancel()
		if rows.Next() {
			t.Error("a second row after the context ended")
		}
		if _, err := tx.Query(`SELECT id FROM entry`); !errors.Is(err, context.Canceled) {
			t.Errorf("a query after the context ended: got %v, want context.Canceled", err)
		}
		return rows.Err()
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	s.wantNumber(2, `SELECT count(*) FROM entry`) // the connection is fit for use
}

func testPanics(t *testing.T, s *suite) {
	boom := func(tx store.Tx) error {
		var n int
		if err := tx.QueryRow(`SELECT count(*) FROM entry`).Scan(&n); err != nil {
			return err
		}
		panic("boom")
	}
	for range 20 { // more than there are connections
		for name, err := range map[string]error{
			"Update": s.db.Update(context.Background(), boom),
			"View":   s.db.View(context.Background(), boom),
		} {
			if err == nil || !strings.Contains(err.Error(), "boom") {
				t.Errorf("%s: got %v, want an error that tells of the panic", name, err)
			}
		}
	}
	s.exec(insertEntry, 1, "a", nil)
	s.wantNumber(1, `SELECT count(*) FROM entry`)
}

func testSnapshots(t *testing.T, s *suite) {
	s.exec(`INSERT INTO account (name, amount) VALUES ('a', 500), ('b', 500)`)
	ctx, stop := context.WithCancel(context.Background())
	const read = `SELECT sum(amount), max(CASE WHEN name = 'a' THEN amount END) FROM account`
	var readers, writers sync.WaitGroup
	var views atomic.Int64
	for range 8 { // more than there are connections
		readers.Go(func() {
			for ctx.Err() == nil {
				err := s.db.View(context.Background(), func(tx store.Tx) error {
					var sum, a, sum2, a2 int64
					if err := tx.QueryRow(read).Scan(&sum, &a); err != nil {
						return err
					}
					if err := tx.QueryRow(read).Scan(&sum2, &a2); err != nil {
						return err
					}
					if sum != 1000 || sum2 != 1000 || a != a2 {
						t.Errorf("one view read sums %d and %d, amounts %d and %d; want 1000 and the same amount twice", sum, sum2, a, a2)
					}
					return nil
				})
				if err != nil {
					t.Error(err)
					return
				}
				views.Add(1)
			}
		})
	}
	for range 4 {
		writers.Go(func() {
			for i := range 50 {
				err := s.db.Update(context.Background(), func(t store.Tx) error {
					if _, err := t.Exec(`UPDATE account SET amount = amount - ?1 WHERE name = 'a'`, i); err != nil {
						return err
					}
					_, err := t.Exec(`UPDATE account SET amount = amount + ?1 WHERE name = 'b'`, i)
					return err
				})
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	writers.Wait()
	stop()
	readers.Wait()
	if views.Load() == 0 {
		t.Error("no view ran")
	}
	s.wantNumber(500-4*49*50/2, `SELECT amount FROM account WHERE name = 'a'`)
}

func testOpenRows(t *testing.T, s *suite) {
	s.update(func(t store.Tx) error { return errors.Join(addEntry(t, 1), addEntry(t, 2), addEntry(t, 3)) })
	const query = `SELECT id FROM entry ORDER BY id`
	leave := func(tx store.Tx) (store.Rows, error) {
		rows, err := tx.Query(query)
		if err == nil && !rows.Next() {
			err = errors.New("no row")
		}
		return rows, err
	}
	for range 20 {
		var left store.Rows
		s.update(func(t store.Tx) (err error) {
			left, err = leave(t)
			return err
		})
		if left.Next() {
			t.Fatal("rows outlived their function")
		}
		err := s.db.Update(context.Background(), func(t store.Tx) error {
			if _, err := leave(t); err != nil {
				return err
			}
			if _, err := t.Exec(`DELETE FROM entry`); err != nil {
				return err
			}
			return errWanted
		})
		if !errors.Is(err, errWanted) {
			t.Fatalf("got %v, want the function's own error", err)
		}
		err = s.db.View(context.Background(), func(t store.Tx) error {
			_, err := leave(t)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	s.wantNumber(3, `SELECT count(*) FROM entry`)
}

func testNestedQuery(t *testing.T, s *suite) {
	s.update(func(t store.Tx) error { return errors.Join(addEntry(t, 1), addEntry(t, 2), addEntry(t, 3)) })
	nested := func(tx store.Tx) error {
		const query = `SELECT id FROM entry WHERE id > ?1 ORDER BY id`
		var got []int64
		var walk func(after int64) error
		walk = func(after int64) error {
			rows, err := tx.Query(query, after)
			if err != nil {
				return err
			}
			defer rows.Close()
			for rows.Next() {
				var id int64
				if err := rows.Scan(&id); err != nil {
					return err
				}
				got = append(got, id)
				if err := walk(id); err != nil {
					return err
				}
			}
			return rows.Err()
		}
		if err := walk(0); err != nil {
			return err
		}
		if want := []int64{1, 2, 3, 3, 2, 3, 3}; !slices.Equal(got, want) {
			t.Errorf("walked %v, want %v", got, want)
		}
		return nil
	}
	s.update(nested)
	if err := s.db.View(context.Background(), nested); err != nil {
		t.Error(err)
	}
}

// name is a named type such as the ones that keep identities apart.
type name string

func testValues(t *testing.T, s *suite) {
	type values struct {
		i sql.NullInt64
		f sql.NullFloat64
		s sql.NullString
		b []byte
	}
	long := strings.Repeat("Grüße, 世界 ", 5000)
	for id, want := range []values{
		{},
		{i: sql.NullInt64{Int64: math.MaxInt64, Valid: true}, f: sql.NullFloat64{Float64: math.Pi, Valid: true}},
		{i: sql.NullInt64{Int64: math.MinInt64, Valid: true}, s: sql.NullString{Valid: true}},
		{s: sql.NullString{String: long, Valid: true}, b: []byte(long)},
		{b: []byte{0, 255, 0, 1}},
	} {
		var blob any
		if want.b != nil {
			blob = want.b
		}
		s.exec(`INSERT INTO sample (id, i, f, s, b) VALUES (?1, ?2, ?3, ?4, ?5)`, id, want.i, want.f, want.s, blob)
		var got values
		err := s.db.View(context.Background(), func(t store.Tx) error {
			return t.QueryRow(`SELECT i, f, s, b FROM sample WHERE id = ?1`, id).Scan(&got.i, &got.f, &got.s, &got.b)
		})
		if err != nil {
			t.Fatal(err)
		}
		if got.i != want.i || got.f != want.f || got.s != want.s || !slices.Equal(got.b, want.b) {
			t.Errorf("row %d: got %v, want %v", id, got, want)
		}
	}

	// Numbered placeholders may come in any order and more than once.
	s.exec(`INSERT INTO account (name, amount) VALUES (?2, ?1 + ?1)`, 21, name("typed"))
	s.wantNumber(42, `SELECT amount FROM account WHERE name = ?1`, name("typed"))
}

func testRefused(t *testing.T, s *suite) {
	s.exec(insertEntry, 1, "a", nil)
	ctx := context.Background()
	var kept store.Tx
	s.update(func(tx store.Tx) error {
		kept = tx
		if _, err := tx.Exec(insertEntry, 2, "a", s.t); err == nil {
			t.Error("an argument of an unsuitable type was stored")
		}
		for _, query := range []string{"COMMIT", " rollback ", "BEGIN\nIMMEDIATE", "SAVEPOINT x", "release x;", ";END"} {
			if _, err := tx.Exec(query); err == nil {
				t.Errorf("%q ran inside an update", query)
			}
		}
		return tx.QueryRow(`SELECT id FROM entry WHERE id = 1`).Scan(new(int64))
	})
	if _, err := kept.Exec(insertEntry, 3, "a", nil); err == nil {
		t.Error("a Tx outlived its function")
	}
	if err := kept.QueryRow(`SELECT count(*) FROM entry`).Scan(new(int64)); err == nil {
		t.Error("a Tx outlived its function")
	}

	err := s.db.View(ctx, func(tx store.Tx) error {
		if _, err := tx.Exec(insertEntry, 4, "a", nil); err == nil {
			t.Error("a view wrote with Exec")
		}
		rows, err := tx.Query(insertEntry+` RETURNING id`, 5, "a", nil)
		if err == nil {
			for rows.Next() {
				t.Error("a view wrote with Query")
			}
			err = rows.Err()
		}
		if err == nil {
			t.Error("a view's write with Query reported no error")
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	err = s.db.View(ctx, func(tx store.Tx) error {
		tx.OnCommit(func() {})
		return nil
	})
	if err == nil {
		t.Error("OnCommit in a view was accepted")
	}
	err = s.db.View(ctx, func(tx store.Tx) error {
		return tx.QueryRow(`SELECT id FROM entry WHERE id = 99`).Scan(new(int64))
	})
	if !errors.Is(err, sql.ErrNoRows) {
		t.Errorf("a missing row: got %v, want sql.ErrNoRows", err)
	}
	s.wantNumber(1, `SELECT count(*) FROM entry`)
}

func testFenced(t *testing.T, s *suite) {
	if s.db.Fence() < 1 {
		t.Errorf("fence %d, want at least 1", s.db.Fence())
	}
	s.wantNumber(s.db.Fence(), `SELECT fence FROM lease WHERE id = 1`)
	// What another writer does when it opens the database:
	s.exec(`UPDATE lease SET fence = fence + 1, holder = 'the other one' WHERE id = 1`)
	for range 2 {
		err := s.db.Update(context.Background(), func(t store.Tx) error { return addEntry(t, 1) })
		if !errors.Is(err, store.ErrFenced) {
			t.Errorf("got %v, want ErrFenced", err)
		}
	}
	s.wantNumber(0, `SELECT count(*) FROM entry`)
	if reserved, ok := s.db.(store.Reserved); ok {
		err := reserved.UpdateReserved(context.Background(), func(t store.Tx) error { return addEntry(t, 1) })
		if !errors.Is(err, store.ErrFenced) {
			t.Errorf("UpdateReserved: got %v, want ErrFenced", err)
		}
	}
}

func testClosed(t *testing.T, s *suite) {
	s.exec(insertEntry, 1, "a", nil)
	var callers sync.WaitGroup
	for i := range int64(50) {
		callers.Go(func() {
			err := s.db.Update(context.Background(), func(t store.Tx) error { return addEntry(t, 100+i) })
			if err != nil && !errors.Is(err, store.ErrClosed) {
				t.Errorf("an update while closing: got %v, want nil or ErrClosed", err)
			}
		})
		callers.Go(func() {
			err := s.db.View(context.Background(), func(t store.Tx) error {
				return t.QueryRow(`SELECT count(*) FROM entry`).Scan(new(int64))
			})
			if err != nil && !errors.Is(err, store.ErrClosed) {
				t.Errorf("a view while closing: got %v, want nil or ErrClosed", err)
			}
		})
	}
	for range 2 {
		if err := s.db.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	callers.Wait()
	nothing := func(store.Tx) error {
		t.Error("a function ran on a closed database")
		return nil
	}
	for name, err := range map[string]error{
		"Update": s.db.Update(context.Background(), nothing),
		"View":   s.db.View(context.Background(), nothing),
	} {
		if !errors.Is(err, store.ErrClosed) {
			t.Errorf("%s after Close: got %v, want ErrClosed", name, err)
		}
	}
}
