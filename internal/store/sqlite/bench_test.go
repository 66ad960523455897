package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"vogt/internal/store"
)

// benchSchema is a table such as the authority has: short text keys, a state,
// and a body of a few hundred bytes.
const benchSchema = `-- +goose Up
CREATE TABLE item (id TEXT PRIMARY KEY, state TEXT NOT NULL, body TEXT NOT NULL, changed INTEGER NOT NULL) STRICT, WITHOUT ROWID;
`

const benchRows = 10_000

var benchBody = strings.Repeat("b", 300)

func benchKey(i int64) string { return fmt.Sprintf("item-%016d", i%benchRows) }

func openBench(b *testing.B) *DB {
	b.Helper()
	db, err := Open(context.Background(), Options{
		Dir:        b.TempDir(),
		Migrations: fstest.MapFS{"00001_item.sql": {Data: []byte(benchSchema)}},
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := db.Close(); err != nil {
			b.Error(err)
		}
	})
	err = db.Update(context.Background(), func(t store.Tx) error {
		for i := range int64(benchRows) {
			if _, err := t.Exec(`INSERT INTO item (id, state, body, changed) VALUES (?1, ?2, ?3, ?4)`, benchKey(i), "new", benchBody, 0); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	return db
}

// benchUpdate measures conditional updates by n callers at a time and reports
// the latency that callers see.
func benchUpdate(b *testing.B, n int) {
	db := openBench(b)
	// A context that can end, as that of a request.
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var next atomic.Int64
	latencies := make([][]time.Duration, n)
	var callers sync.WaitGroup
	b.ResetTimer()
	for c := range n {
		callers.Go(func() {
			for {
				i := next.Add(1)
				if i > int64(b.N) {
					return
				}
				start := time.Now()
				err := db.Update(ctx, func(t store.Tx) error {
					affected, err := t.Exec(`UPDATE item SET state = ?1, changed = ?2 WHERE id = ?3 AND changed < ?2`, "used", i, benchKey(i*7919))
					if err == nil && affected != 1 {
						return store.ErrConflict
					}
					return err
				})
				if err != nil {
					b.Error(err)
					return
				}
				latencies[c] = append(latencies[c], time.Since(start))
			}
		})
	}
	callers.Wait()
	b.StopTimer()
	all := slices.Concat(latencies...)
	slices.Sort(all)
	b.ReportMetric(float64(len(all))/b.Elapsed().Seconds(), "updates/s")
	b.ReportMetric(float64(all[len(all)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(all[len(all)*99/100].Microseconds()), "p99-µs")
}

func BenchmarkUpdate1(b *testing.B)  { benchUpdate(b, 1) }
func BenchmarkUpdate8(b *testing.B)  { benchUpdate(b, 8) }
func BenchmarkUpdate64(b *testing.B) { benchUpdate(b, 64) }

// BenchmarkView reads one row by its key, as a token check does.
func BenchmarkView(b *testing.B) {
	db := openBench(b)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var next atomic.Int64
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			key := benchKey(next.Add(7919))
			err := db.View(ctx, func(t store.Tx) error {
				var state, body string
				return t.QueryRow(`SELECT state, body FROM item WHERE id = ?1`, key).Scan(&state, &body)
			})
			if err != nil {
				b.Error(err)
				return
			}
		}
	})
}

// BenchmarkRawTransaction is the yardstick for BenchmarkUpdate1: the same
// update by database/sql alone, one transaction each, equally durable.
func BenchmarkRawTransaction(b *testing.B) {
	benchRaw(b, func(db *sql.DB, i int64) error {
		t, err := db.Begin()
		if err != nil {
			return err
		}
		if _, err := t.Exec(`UPDATE item SET state = ?1, changed = ?2 WHERE id = ?3 AND changed < ?2`, "used", i, benchKey(i*7919)); err != nil {
			return err
		}
		return t.Commit()
	})
}

// BenchmarkRawRead is the yardstick for BenchmarkView.
func BenchmarkRawRead(b *testing.B) {
	benchRaw(b, func(db *sql.DB, i int64) error {
		var state, body string
		return db.QueryRow(`SELECT state, body FROM item WHERE id = ?1`, benchKey(i*7919)).Scan(&state, &body)
	})
}

func benchRaw(b *testing.B, op func(db *sql.DB, i int64) error) {
	dir := b.TempDir()
	db, err := sql.Open("sqlite", filepath.Join(dir, "raw.db")+
		"?_journal_mode=WAL&_synchronous=FULL&_txlock=immediate&_busy_timeout=5000")
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	if _, err := db.Exec(strings.TrimPrefix(benchSchema, "-- +goose Up\n")); err != nil {
		b.Fatal(err)
	}
	t, err := db.Begin()
	if err != nil {
		b.Fatal(err)
	}
	for i := range int64(benchRows) {
		if _, err := t.Exec(`INSERT INTO item (id, state, body, changed) VALUES (?1, ?2, ?3, ?4)`, benchKey(i), "new", benchBody, 0); err != nil {
			b.Fatal(err)
		}
	}
	if err := t.Commit(); err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	for i := range b.N {
		if err := op(db, int64(i+1)); err != nil {
			b.Fatal(err)
		}
	}
}
