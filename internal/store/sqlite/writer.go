package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime/debug"
	"sync/atomic"

	"modernc.org/sqlite"

	"vogt/internal/fault"
	"vogt/internal/store"
)

// Bounds of one group: how many updates share a commit, and how many bytes of
// arguments they may have bound before no further one joins.
const (
	maxGroup      = 256
	maxGroupBytes = 8 << 20
)

// request is one Update on its way to the writer.
type request struct {
	fn   func(store.Tx) error
	done chan error // receives once; has room, so that the writer never waits
}

// writer runs updates on the only connection that writes. Apart from the
// queues and failed, its fields belong to the goroutine of loop.
type writer struct {
	db       *DB
	pool     *sql.DB
	conn     *conn
	file     os.FileInfo // the database file as opened
	reserve  *ballast
	updates  chan *request
	reserved chan *request
	ended    chan struct{}         // closed when loop is done for good
	failed   atomic.Pointer[error] // set: no further update is accepted
	current  *group                // the group in progress
}

// group is the updates that share one commit.
type group struct {
	requests []*request
	errs     []error // one for each request: its function's
	hooks    []func()
	bytes    int
	err      error // set: the transaction as a whole failed
}

func newWriter(db *DB, pool *sql.DB, c *conn, file os.FileInfo, reserve *ballast) *writer {
	return &writer{
		db:       db,
		pool:     pool,
		conn:     c,
		file:     file,
		reserve:  reserve,
		updates:  make(chan *request),
		reserved: make(chan *request),
		ended:    make(chan struct{}),
	}
}

// loop serves the queues until the database closes.
func (w *writer) loop() {
	finished := false
	defer func() {
		if finished {
			close(w.ended)
			return
		}
		// A function ended this goroutine by runtime.Goexit, as
		// testing.T.FailNow does. Nobody shall wait for ever.
		w.abandon()
		go w.loop()
	}()
	for {
		select {
		case <-w.db.closing:
			finished = true
			return
		case r := <-w.updates:
			if !w.reserve.restore() {
				r.done <- fmt.Errorf("%s: %w", w.db.opts.Dir, store.ErrFull)
				continue
			}
			w.run(r, w.updates)
			w.answer()
		case r := <-w.reserved:
			w.run(r, nil)
			if errors.Is(w.current.result(0), store.ErrFull) && w.reserve.release() {
				w.run(r, nil)
			}
			w.answer()
		}
	}
}

// run carries first, and whatever more waits, through one transaction and
// leaves the outcome in w.current.
func (w *writer) run(first *request, more <-chan *request) {
	g := &group{}
	w.current = g
	g.err = w.begin()
	for r := first; r != nil; r = g.next(more) {
		g.requests = append(g.requests, r)
		g.errs = append(g.errs, nil)
		if g.err == nil {
			g.errs[len(g.errs)-1] = w.runOne(g, r)
		}
		if g.err != nil {
			break
		}
	}
	if g.err == nil {
		g.err = w.commit()
	}
	if g.err != nil {
		// SQLite may have rolled back by itself; then this fails, and rightly.
		_ = w.conn.control("ROLLBACK")
		return
	}
	fault.Point("store.after-commit")
	for _, hook := range g.hooks {
		w.callHook(hook)
	}
}

// next takes a waiting request, if there is one and it may still join.
func (g *group) next(more <-chan *request) *request {
	if more == nil || len(g.requests) >= maxGroup || g.bytes >= maxGroupBytes {
		return nil
	}
	select {
	case r := <-more:
		return r
	default:
		return nil
	}
}

// result is what the i-th request's caller is told. A failed commit overrules
// a function's own error, which may rest on what another function of the same
// group wrote.
func (g *group) result(i int) error {
	if g.err != nil {
		return g.err
	}
	return g.errs[i]
}

// answer tells every caller of the current group how it went.
func (w *writer) answer() {
	fault.Point("store.before-answer")
	g := w.current
	w.current = nil
	for i, r := range g.requests {
		r.done <- g.result(i)
	}
}

// begin opens the transaction and makes sure that this is still the writer of
// this file.
func (w *writer) begin() error {
	if err := w.failed.Load(); err != nil {
		return *err
	}
	file, err := os.Stat(w.db.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("looking at the database: %w", err)
	}
	if err != nil || !os.SameFile(file, w.file) {
		return w.fail(fmt.Errorf("%s was removed or replaced while in use: %w", w.db.path, store.ErrFenced))
	}
	if err := w.conn.control("BEGIN IMMEDIATE"); err != nil {
		return w.db.classify("beginning an update", err)
	}
	held, holder, err := readLease(w.conn)
	if err != nil {
		return w.db.classify("reading the lease", err)
	}
	if held != w.db.fence {
		return w.fail(fmt.Errorf("%s: %w (this process has lease %d, %s has lease %d)",
			w.db.path, store.ErrFenced, w.db.fence, holder, held))
	}
	return nil
}

// fail makes err the answer to every further update.
func (w *writer) fail(err error) error {
	w.failed.Store(&err)
	w.db.log.Error("the store takes no further updates", "reason", err)
	return err
}

// runOne runs one request in its savepoint. It returns the request's own
// error; what concerns the whole transaction goes to g.err.
func (w *writer) runOne(g *group, r *request) error {
	if err := w.conn.control("SAVEPOINT update_fn"); err != nil {
		g.err = w.db.classify("beginning an update", err)
		return nil
	}
	t := &tx{db: w.db, conn: w.conn, ctx: context.Background()}
	err := w.db.call(t, r.fn)
	g.bytes += t.bytes
	if t.lost != nil {
		g.err = t.lost
		return nil
	}
	if err == nil {
		err = w.checkDeferred()
	}
	if err != nil {
		if e := w.conn.control("ROLLBACK TO update_fn"); e != nil {
			g.err = w.db.classify("undoing a failed update", e)
			return nil
		}
	}
	if e := w.conn.control("RELEASE update_fn"); e != nil {
		g.err = w.db.classify("ending an update", e)
		return nil
	}
	if err == nil {
		g.hooks = append(g.hooks, t.hooks...)
	}
	return err
}

// checkDeferred refuses an update that leaves a deferred foreign key open:
// COMMIT would refuse it too, but for the whole group.
func (w *writer) checkDeferred() error {
	return w.conn.Raw(func(dc any) error {
		open, _, err := dc.(sqlite.DBStatus).Status(sqlite.DBStatusDeferredFKs, false)
		if err == nil && open != 0 {
			err = errors.New("store: the update leaves a row that refers to a missing row (deferred foreign key)")
		}
		return err
	})
}

func (w *writer) commit() error {
	fault.Point("store.before-commit")
	err := w.conn.control("COMMIT")
	if err == nil {
		return nil
	}
	err = w.db.classify("committing", err)
	if errors.Is(err, store.ErrIO) {
		// After a failed sync nobody knows what is on the disk, and asking
		// the kernel again may yield a success that is none. Opening anew
		// reads what is there.
		return w.fail(err)
	}
	return err
}

func (w *writer) callHook(hook func()) {
	defer func() {
		if p := recover(); p != nil {
			w.db.log.Error("panic in an OnCommit function", "panic", p, "stack", string(debug.Stack()))
		}
	}()
	hook()
}

// abandon undoes the group in progress when its goroutine ends midway.
func (w *writer) abandon() {
	g := w.current
	if g == nil {
		return
	}
	_ = w.conn.control("ROLLBACK") // fails if the group was committed already
	g.err = errors.New("store: an update or OnCommit function called runtime.Goexit; the outcome of the updates that ran with it is unknown")
	w.answer()
}

// close moves the log into the database file and ends the connection.
func (w *writer) close() error {
	if w.failed.Load() == nil {
		// Without this the log stays, and is as durable there.
		if err := w.conn.control("PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
			w.db.log.Warn("the write-ahead log could not be moved into the database file and stays beside it",
				"reason", w.db.classify("closing", err))
		}
	}
	return errors.Join(w.conn.close(), w.pool.Close())
}

// call runs fn, turns a panic into an error, and ends t in any case.
func (db *DB) call(t *tx, fn func(store.Tx) error) (err error) {
	defer t.end()
	defer func() {
		if p := recover(); p != nil {
			db.log.Error("panic in a store function", "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("store: the function panicked: %v", p)
		}
	}()
	return fn(t)
}
