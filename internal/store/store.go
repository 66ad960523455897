// Package store says what the authority demands of its database: durable,
// serialised updates, consistent reads, and errors that name the next step.
//
// It owns the contract (DB, Tx, Reserved), the error values that callers
// branch on, and the typed queries above them. It leaves out the engines
// (package sqlite is one) and their proof (package storetest runs against any
// engine).
//
// # Rules for SQL
//
// Placeholders are numbered: ?1, ?2, … . Arguments are nil, bool, integers,
// floats, string, []byte, named types of those kinds, or a driver.Valuer that
// yields one of them. Times are refused: store Unix milliseconds as INTEGER,
// so that every engine compares and reads them alike. An empty blob may read
// back as nil. Statements that begin, end or nest transactions belong to the
// engine and are refused inside Update and View.
package store

import (
	"context"
	"errors"
)

// DB is one database with one writer. Its methods may be called from any
// number of goroutines.
type DB interface {
	// Update runs fn alone against the current data and answers after its
	// effects are on stable storage. When fn returns an error or panics, its
	// effects are undone and nobody else's are; a panic comes back as an
	// error. When the commit fails, the error is returned and nothing that
	// fn did is visible.
	//
	// Updates run one after another, so what fn reads stays true until it
	// returns: a conditional UPDATE that reports one affected row has won.
	//
	// If ctx ends before fn started, fn never runs and ctx's error is
	// returned; once started, fn is carried through and ctx is not looked at
	// again. fn runs on the engine's goroutine: it must be short, do no
	// input or output of its own, and must not call Update, which would wait
	// for itself.
	Update(ctx context.Context, fn func(Tx) error) error

	// View runs fn against one consistent snapshot, which holds everything
	// that any Update has answered before View was called. Writing fails. A
	// panic in fn comes back as an error. When ctx ends, the next query or
	// row fails. fn must not call View: the inner call could wait for a
	// connection that the outer one holds. A View that lasts keeps old states
	// on disk; long results are read in pieces.
	View(ctx context.Context, fn func(Tx) error) error

	// Fence returns the number that this opening of the database took; every
	// later opening takes a higher one. Every engine keeps the latest in the
	// table lease, row id 1, columns fence and holder. When another writer
	// has taken the lease, every Update fails with ErrFenced.
	Fence() int64

	// Close waits for updates in progress and views in progress, then
	// releases the data directory. Later calls fail with ErrClosed.
	Close() error
}

// Reserved is offered by engines that keep disk space in reserve.
type Reserved interface {
	// UpdateReserved is Update for what must still work on a full disk:
	// revoking, denying, pausing. fn runs a second time if the first attempt
	// found the disk full, so it must set what it captures, not add to it.
	UpdateReserved(ctx context.Context, fn func(Tx) error) error
}

// Tx is the access that Update and View lend to their function. It is valid
// until the function returns and belongs to the function's goroutine.
type Tx interface {
	// Exec runs a statement and returns how many rows it changed. In a View
	// it fails.
	Exec(query string, args ...any) (affected int64, err error)

	// Query runs a statement that returns rows. The caller closes them;
	// those left open are closed when the function returns.
	Query(query string, args ...any) (Rows, error)

	// QueryRow runs a statement that returns at most one row; errors come
	// from the row's Scan.
	QueryRow(query string, args ...any) Row

	// OnCommit has fn called once the update is durable and before Update
	// answers, in the order of commits and calls; never if the update fails.
	// fn holds up every writer, so it must be quick and must not block. A
	// panic in it is logged and changes nothing. In a View, OnCommit panics.
	OnCommit(fn func())
}

// Rows is the result of Query, used as sql.Rows is.
type Rows interface {
	// Next moves to the next row; false means the end or an error, see Err.
	Next() bool
	// Scan copies the current row's columns, converting as sql.Rows.Scan.
	Scan(dest ...any) error
	// Err returns the error that ended Next, if any.
	Err() error
	// Close ends the query; it may be called twice.
	Close() error
}

// Row is the result of QueryRow.
type Row interface {
	// Scan copies the row's columns; without a row it returns sql.ErrNoRows.
	Scan(dest ...any) error
}

// Errors that callers branch on. Engines wrap them with the place and the
// cause.
var (
	// ErrConflict: a unique constraint was violated, or a conditional update
	// (which its caller detects by zero affected rows) found its condition
	// gone.
	ErrConflict = errors.New("conflict: the data has changed or exists already; read it again and decide anew")

	// ErrFull: the disk or quota is full. Nothing was written.
	ErrFull = errors.New("disk full: free space where the data directory lies; until then only revoking, denying and pausing are recorded")

	// ErrReadOnly: the data directory or its files cannot be written.
	ErrReadOnly = errors.New("read-only storage: make the data directory and the files in it writable for this user, then start again")

	// ErrLocked: another process holds the data directory or the database.
	ErrLocked = errors.New("data in use by another process: stop that process, or use another data directory")

	// ErrFenced: another writer took the lease; this one must not write.
	ErrFenced = errors.New("another writer has taken over this database: stop this process; restart it only when the other one has ended")

	// ErrCorrupt: the database is damaged or not a database.
	ErrCorrupt = errors.New("damaged database: stop, keep a copy of the data directory, and restore the last backup")

	// ErrTooNew: the schema is newer than this program knows.
	ErrTooNew = errors.New("database written by a newer version: install that version or a later one, or restore the copy made before the upgrade")

	// ErrIO: the storage device reported an error, so the outcome of the
	// last update is unknown; the engine takes no further updates.
	ErrIO = errors.New("storage error: check the disk and the system log, then start again; the last updates may or may not have been kept")

	// ErrClosed: the database was closed.
	ErrClosed = errors.New("database closed: the program is shutting down; try again when it is back")
)
