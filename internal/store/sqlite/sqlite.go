// Package sqlite is the store's engine on one SQLite file in WAL mode.
//
// It owns the data directory (lock, file modes, disk reserve), the writer with
// its group commit, the readers, the lease, migrations, backups and checks. It
// leaves out what the tables mean: their schema comes in as migrations, their
// queries are package store's.
//
// # Durability
//
// Update answers after COMMIT returned with synchronous=FULL, which is after
// the write-ahead log was synced. All updates that wait at that moment share
// one transaction and so one sync; each runs in a savepoint of its own, so that
// one failing undoes nothing of the others. The package's tests cut the power
// at any point of a recorded run and look for what was acknowledged.
//
// # Files
//
//	vogt.db, vogt.db-wal, vogt.db-shm   the database
//	lock                                held for life; contains the holder's process id
//	ballast                             disk space given up when the disk is full
//	vogt-before-v3-20261130T103000Z.db  the copy made before migrating to version 3
//
// The directory belongs to this process alone. In particular, nothing in this
// process may open and close vogt.db by itself: closing any descriptor of a
// file drops all POSIX record locks that the process has on it (fcntl(2)),
// SQLite's included.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"modernc.org/sqlite"

	"vogt/internal/store"
)

// FileName is the database's name in the data directory.
const FileName = "vogt.db"

// DefaultBallast is the disk reserve in bytes unless Options.Ballast says
// otherwise.
const DefaultBallast = 8 << 20

// Options say where the data lies and what is in it.
type Options struct {
	// Dir is the data directory. It is made with mode 0700 if missing; an
	// existing one must belong to this user and be writable by nobody else.
	Dir string

	// Migrations holds the schema as goose SQL files, NNNNN_name.sql, at its
	// root. It is required.
	Migrations fs.FS

	// Ballast is the disk space in bytes kept for UpdateReserved: 0 stands
	// for DefaultBallast, a negative number for none.
	Ballast int64

	// Log receives what an operator should know; nil discards it.
	Log *slog.Logger

	// Now is the clock; nil stands for time.Now.
	Now func() time.Time

	// Readers is the number of View functions that run at the same time;
	// 0 stands for GOMAXPROCS and at least 4.
	Readers int

	// Fixed outside tests, see complete.
	synchronous    string
	autocheckpoint int           // WAL length in pages that starts a checkpoint
	busyTimeout    time.Duration // wait for a lock of another program, such as an sqlite3 shell
}

// DB is an open database. It implements store.DB and store.Reserved.
type DB struct {
	opts    Options
	path    string
	log     *slog.Logger
	lock    *dirLock
	fence   int64
	pool    *sql.DB // of the readers
	readers chan *conn
	writer  *writer
	closing chan struct{}
	closed  atomic.Bool
}

var (
	_ store.DB       = (*DB)(nil)
	_ store.Reserved = (*DB)(nil)
)

// Open locks the data directory, opens or makes the database, brings its
// schema up to date and takes the lease. Its errors are those of package
// store: ErrLocked, ErrReadOnly, ErrFull, ErrCorrupt, ErrTooNew.
func Open(ctx context.Context, opts Options) (_ *DB, err error) {
	if err := opts.complete(); err != nil {
		return nil, err
	}
	db := &DB{
		opts:    opts,
		path:    filepath.Join(opts.Dir, FileName),
		log:     opts.Log,
		closing: make(chan struct{}),
	}
	if err := prepareDir(opts.Dir, opts.Log); err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	if db.lock, err = lockDir(opts.Dir); err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	defer func() {
		if err != nil {
			db.lock.release()
		}
	}()

	reserve := newBallast(opts)
	if err := reserve.prepare(); err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	err = db.start(ctx, reserve)
	if errors.Is(err, store.ErrFull) && reserve.release() {
		err = db.start(ctx, reserve)
	}
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	return db, nil
}

// complete fills in the defaults and refuses what cannot work.
func (o *Options) complete() error {
	if o.Dir == "" {
		return errors.New("open store: no data directory given")
	}
	if o.Migrations == nil {
		return errors.New("open store: no migrations given")
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return fmt.Errorf("open store: %w", err)
	}
	o.Dir = dir
	if o.Ballast == 0 {
		o.Ballast = DefaultBallast
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Readers <= 0 {
		o.Readers = max(4, runtime.GOMAXPROCS(0))
	}
	if o.synchronous == "" {
		o.synchronous = "FULL"
	}
	if o.autocheckpoint == 0 {
		o.autocheckpoint = 1000 // 4 MiB, a few milliseconds
	}
	if o.busyTimeout == 0 {
		o.busyTimeout = 5 * time.Second
	}
	return nil
}

// start opens the connections and hands the writing one to its goroutine.
func (db *DB) start(ctx context.Context, reserve *ballast) (err error) {
	// fdatasync(2) keeps all that a commit needs and spares the journal of
	// the file system a transaction per commit. The switch is one for the
	// whole process and may be set again; where it does not exist, SQLite
	// syncs as it always does.
	if _, err := sqlite.Fdatasync(true); err != nil && !errors.Is(err, sqlite.ErrFdatasyncUnavailable) {
		return err
	}
	if err := prepareFile(db.path); err != nil {
		return err
	}
	file, err := os.Stat(db.path)
	if err != nil {
		return err
	}

	pool, err := db.open(false)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			pool.Close()
		}
	}()
	if err := db.takeOver(ctx, pool); err != nil {
		return db.classify("opening", err)
	}
	wc, err := db.connect(ctx, pool, false)
	if err != nil {
		return err
	}
	if err := db.openReaders(ctx); err != nil {
		wc.close()
		return err
	}
	// SQLite syncs the directory when it makes a journal or a log; the names
	// that this package made do not depend on that.
	if err := syncDir(db.opts.Dir); err != nil {
		wc.close()
		db.closeReaders()
		return err
	}
	db.writer = newWriter(db, pool, wc, file, reserve)
	go db.writer.loop()
	return nil
}

// takeOver refuses a schema from the future, takes the lease, and migrates.
func (db *DB) takeOver(ctx context.Context, pool *sql.DB) error {
	m, err := newMigrator(ctx, db, pool)
	if err != nil {
		return err
	}
	if db.fence, err = takeLease(ctx, pool, db.opts.Now()); err != nil {
		return err
	}
	return m.up(ctx)
}

// open makes a pool for one kind of connection: the writing one or the
// reading ones.
func (db *DB) open(reading bool) (*sql.DB, error) {
	q := url.Values{
		"mode":          {"rw"}, // prepareFile makes it, with the right mode
		"_busy_timeout": {strconv.FormatInt(db.opts.busyTimeout.Milliseconds(), 10)},
		"_dqs":          {"0"}, // "x" is a name, never a string
		"_defensive":    {"1"},
		"_error_rc":     {"1"},
		"_synchronous":  {db.opts.synchronous},
		"_foreign_keys": {"1"},
		"_pragma": {
			"fullfsync(1)", // darwin's fsync stops at the drive's cache
			"checkpoint_fullfsync(1)",
			"temp_store(MEMORY)", // nothing of the data in /tmp
			"trusted_schema(0)",
			"cell_size_check(1)",
			"wal_autocheckpoint(" + strconv.Itoa(db.opts.autocheckpoint) + ")",
			"journal_size_limit(" + strconv.Itoa(64<<20) + ")",
		},
	}
	if reading {
		q.Set("_query_only", "1")
	} else {
		q.Set("_journal_mode", "WAL")
	}
	connector, err := sqlite.NewConnector(fileURI(db.path, q))
	if err != nil {
		return nil, err
	}
	pool := sql.OpenDB(connector)
	n := 1
	if reading {
		n = db.opts.Readers
	}
	pool.SetMaxOpenConns(n)
	pool.SetMaxIdleConns(n)
	return pool, nil
}

// fileURI names path for SQLite (https://www.sqlite.org/uri.html).
func fileURI(path string, q url.Values) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // C:/x
	}
	u := url.URL{Scheme: "file", Path: path, RawQuery: q.Encode()}
	return u.String()
}

// connect takes one connection out of pool for good and makes sure that it
// works as open asked: SQLite ignores what it does not know or cannot do.
func (db *DB) connect(ctx context.Context, pool *sql.DB, reading bool) (*conn, error) {
	c, err := pool.Conn(ctx)
	if err != nil {
		return nil, db.classify("connecting", err)
	}
	queryOnly := "0"
	if reading {
		queryOnly = "1"
	}
	for _, want := range [][2]string{
		{"journal_mode", "wal"},
		{"synchronous", map[string]string{"OFF": "0", "NORMAL": "1", "FULL": "2"}[db.opts.synchronous]},
		{"foreign_keys", "1"},
		{"busy_timeout", strconv.FormatInt(db.opts.busyTimeout.Milliseconds(), 10)},
		{"temp_store", "2"},
		{"trusted_schema", "0"},
		{"query_only", queryOnly},
		{"wal_autocheckpoint", strconv.Itoa(db.opts.autocheckpoint)},
	} {
		var got string
		err := c.QueryRowContext(ctx, "PRAGMA "+want[0]).Scan(&got)
		if err == nil && got != want[1] {
			err = fmt.Errorf("%s: SQLite set %s to %q, not %q; the file system may lack what this needs (locks, shared memory): use a local disk",
				db.path, want[0], got, want[1])
		}
		if err != nil {
			c.Close()
			return nil, db.classify("checking PRAGMA "+want[0], err)
		}
	}
	return newConn(c), nil
}

func (db *DB) openReaders(ctx context.Context) error {
	pool, err := db.open(true)
	if err != nil {
		return err
	}
	readers := make(chan *conn, db.opts.Readers)
	for range db.opts.Readers {
		c, err := db.connect(ctx, pool, true)
		if err != nil {
			close(readers)
			for c := range readers {
				c.close()
			}
			pool.Close()
			return err
		}
		readers <- c
	}
	db.pool, db.readers = pool, readers
	return nil
}

// closeReaders waits until every View has given its connection back.
func (db *DB) closeReaders() {
	for range cap(db.readers) {
		c := <-db.readers
		c.close()
	}
	db.pool.Close()
}

// Fence implements store.DB.
func (db *DB) Fence() int64 { return db.fence }

// Update implements store.DB.
func (db *DB) Update(ctx context.Context, fn func(store.Tx) error) error {
	return db.submit(ctx, db.writer.updates, fn)
}

// UpdateReserved implements store.Reserved. It does not share its commit, so
// that it can be tried again on its own.
func (db *DB) UpdateReserved(ctx context.Context, fn func(store.Tx) error) error {
	return db.submit(ctx, db.writer.reserved, fn)
}

func (db *DB) submit(ctx context.Context, queue chan<- *request, fn func(store.Tx) error) error {
	if err := db.refuse(ctx); err != nil {
		return err
	}
	if err := db.writer.failed.Load(); err != nil {
		return *err
	}
	r := &request{fn: fn, done: make(chan error, 1)}
	// The queue has no buffer: what the writer has not taken has not started.
	select {
	case queue <- r:
		return <-r.done
	case <-ctx.Done():
		return ctx.Err()
	case <-db.closing:
		return db.refuse(ctx)
	}
}

// View implements store.DB.
func (db *DB) View(ctx context.Context, fn func(store.Tx) error) error {
	if err := db.refuse(ctx); err != nil {
		return err
	}
	var c *conn
	select {
	case c = <-db.readers:
	case <-ctx.Done():
		return ctx.Err()
	case <-db.closing:
		return db.refuse(ctx)
	}
	defer func() { db.readers <- c }()
	if err := c.control("BEGIN"); err != nil {
		return db.classify("beginning a view", err)
	}
	t := &tx{db: db, conn: c, ctx: ctx, view: true}
	// Rolling back fails only where SQLite has done so itself.
	defer func() { _ = c.control("ROLLBACK") }()
	return db.call(t, fn)
}

// refuse answers for a context that is over or a database that is closed.
func (db *DB) refuse(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if db.closed.Load() {
		return fmt.Errorf("%s: %w", db.path, store.ErrClosed)
	}
	return nil
}

// Close implements store.DB. It moves the write-ahead log into the database
// file, so that the file alone is complete.
func (db *DB) Close() error {
	if db.closed.Swap(true) {
		return nil
	}
	close(db.closing)
	<-db.writer.ended
	db.closeReaders()
	err := db.writer.close()
	db.lock.release()
	if err != nil {
		return fmt.Errorf("closing %s: %w", db.path, err)
	}
	return nil
}
