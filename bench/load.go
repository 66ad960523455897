package main

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	_ "modernc.org/sqlite" // the driver of the raw transactions that stand beside

	"vogt/internal/api"
	"vogt/internal/grant"
)

var clientCounts = []int{1, 8, 64}

// load measures requests a second and their latency, each operation with its
// own share of prepared grants, so that every call does its real work.
func (b *bench) load() error {
	fmt.Printf("\n## Authority on loopback\n\nEach figure over about %s; acknowledged after fsync. Client and authority share the CPUs.\n\n", b.length)
	fmt.Print("| operation | clients | requests/s | p50 ms | p99 ms |\n|---|---|---|---|---|\n")
	if err := b.rawTransactions(); err != nil {
		return err
	}
	in, err := b.start(filepath.Join(b.dir, "load"))
	if err != nil {
		return err
	}
	defer in.stop()
	for _, n := range clientCounts {
		if err := b.loadWith(in, n); err != nil {
			return err
		}
	}
	return nil
}

// step is one operation on a grant in the state that the step before left.
type step struct {
	name string
	do   func(w *work) error
}

// work is one grant on its way through the steps.
type work struct{ id, token string }

func (b *bench) loadWith(in *instance, clients int) error {
	steps := []step{
		{"create", func(w *work) error {
			req, err := request(grant.Once)
			if err != nil {
				return err
			}
			var g api.Grant
			err = in.call("POST", api.PathGrants, in.agentToken, req, &g)
			w.id = g.ID
			return err
		}},
		{"get", func(w *work) error { return in.call("GET", api.PathGrants+"/"+w.id, in.agentToken, nil, nil) }},
		{"approve", func(w *work) error {
			return in.call("POST", api.PathGrants+"/"+w.id+"/approve", in.ownerToken, nil, nil)
		}},
		{"token", func(w *work) error {
			var t api.Token
			err := in.call("POST", api.PathGrants+"/"+w.id+"/token", in.agentToken, nil, &t)
			w.token = t.AuthzJWT
			return err
		}},
		{"consume", func(w *work) error {
			var c api.Consumed
			if err := in.call("POST", api.PathGrants+"/"+w.id+"/consume", w.token, nil, &c); err != nil {
				return err
			}
			if c.Status != "consumed" {
				return fmt.Errorf("consume %s: %s %s", w.id, c.Status, c.Error)
			}
			return nil
		}},
	}
	// In rounds no larger than what an owner may have waiting, so that no
	// figure is taken in a state that the limits never admit.
	const round = 240
	times := make([][]time.Duration, len(steps))
	took := make([]time.Duration, len(steps))
	for begin := time.Now(); time.Since(begin) < b.length*time.Duration(len(steps)) && b.ctx.Err() == nil; {
		items := fresh(round)
		for i, s := range steps {
			t, d, err := drive(clients, items, s.do)
			if err != nil {
				return fmt.Errorf("%s with %d clients: %w", s.name, clients, err)
			}
			times[i], took[i] = append(times[i], t...), took[i]+d
		}
	}
	for i, s := range steps {
		report(s.name, clients, times[i], took[i])
	}
	return nil
}

func fresh(n int) []*work {
	items := make([]*work, n)
	for i := range items {
		items[i] = &work{}
	}
	return items
}

// drive runs do over the items with so many clients at once and stops at the
// first error.
func drive(clients int, items []*work, do func(*work) error) (times []time.Duration, took time.Duration, err error) {
	var mu sync.Mutex
	next := 0
	take := func() *work {
		mu.Lock()
		defer mu.Unlock()
		if err != nil || next == len(items) {
			return nil
		}
		next++
		return items[next-1]
	}
	begin := time.Now()
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			for w := take(); w != nil; w = take() {
				t := time.Now()
				e := do(w)
				d := time.Since(t)
				mu.Lock()
				if e != nil && err == nil {
					err = e
				}
				times = append(times, d)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return times, time.Since(begin), err
}

func report(name string, clients int, times []time.Duration, took time.Duration) {
	if len(times) == 0 {
		return
	}
	rate, p50, p99 := summary(times, took)
	fmt.Printf("| %s | %d | %.0f | %.2f | %.2f |\n", name, clients, rate, p50, p99)
}

// summary is a second's calls, and the median and the 99th of a hundred in ms.
func summary(times []time.Duration, took time.Duration) (rate, p50, p99 float64) {
	if len(times) == 0 {
		return 0, 0, 0
	}
	slices.Sort(times)
	at := func(p float64) float64 { return ms(times[int(p*float64(len(times)-1))]) }
	return float64(len(times)) / took.Seconds(), at(0.5), at(0.99)
}

// rawTransactions is the floor: one row a transaction, WAL, synchronous=FULL,
// on the same disk, no HTTP, no tokens, no log.
func (b *bench) rawTransactions() error {
	db, err := sql.Open("sqlite", filepath.Join(b.dir, "raw.db")+"?_pragma=journal_mode(wal)&_pragma=synchronous(full)")
	if err != nil {
		return err
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	if _, err := db.Exec("CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT)"); err != nil {
		return err
	}
	times, took, err := drive(1, fresh(2000), func(*work) error {
		_, err := db.Exec("INSERT INTO t (v) VALUES (?)", "a row of about the size that a small request has, give or take")
		return err
	})
	if err != nil {
		return err
	}
	report("raw SQLite transaction", 1, times, took)
	return nil
}
