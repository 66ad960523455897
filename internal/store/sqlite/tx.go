package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"vogt/internal/store"
)

// maxStatements bounds a connection's cache of prepared statements. The
// program has fewer; a query text that varies empties the cache now and then
// instead of growing it.
const maxStatements = 512

// conn is a connection with its prepared statements. One goroutine uses it at
// a time.
type conn struct {
	*sql.Conn
	statements map[string]*statement // of the functions, checked by checkVerb
	controls   map[string]*sql.Stmt  // of the engine
}

// statement is a prepared statement; busy while rows of it are open, since
// SQLite would start it over.
type statement struct {
	*sql.Stmt
	busy   bool
	cached bool
}

func newConn(c *sql.Conn) *conn {
	return &conn{
		Conn:       c,
		statements: make(map[string]*statement),
		controls:   make(map[string]*sql.Stmt),
	}
}

// prepare returns the statement for query, which the caller marks busy for as
// long as rows of it are open, and puts back with done.
func (c *conn) prepare(query string) (*statement, error) {
	s := c.statements[query]
	if s != nil && !s.busy {
		return s, nil
	}
	if err := checkVerb(query); err != nil {
		return nil, err
	}
	prepared, err := c.PrepareContext(context.Background(), query)
	if err != nil {
		return nil, err
	}
	if s != nil {
		return &statement{Stmt: prepared}, nil // for this use only
	}
	if len(c.statements) >= maxStatements {
		for q, old := range c.statements {
			if !old.busy {
				old.Close()
				delete(c.statements, q)
			}
		}
	}
	s = &statement{Stmt: prepared, cached: true}
	c.statements[query] = s
	return s, nil
}

func (s *statement) done() {
	s.busy = false
	if !s.cached {
		s.Close()
	}
}

// control runs a statement of the engine itself.
func (c *conn) control(query string) error {
	s := c.controls[query]
	if s == nil {
		var err error
		if s, err = c.PrepareContext(context.Background(), query); err != nil {
			return err
		}
		c.controls[query] = s
	}
	_, err := s.ExecContext(context.Background())
	return err
}

func (c *conn) close() error {
	for _, s := range c.controls {
		s.Close()
	}
	for _, s := range c.statements {
		s.Close()
	}
	return c.Conn.Close()
}

// tx implements store.Tx.
type tx struct {
	db    *DB
	conn  *conn
	ctx   context.Context // looked at between statements and rows of a view
	view  bool
	ended bool
	open  []*rows // some of them may be closed already
	hooks []func()
	bytes int   // of arguments
	lost  error // set: SQLite has rolled back the whole transaction
}

var (
	errEnded     = errors.New("store: the transaction has ended; a Tx must not outlive its function")
	errViewWrite = errors.New("store: a View cannot write; use Update")
)

// Exec implements store.Tx.
func (t *tx) Exec(query string, args ...any) (int64, error) {
	if t.view {
		return 0, errViewWrite
	}
	s, err := t.prepare(query, args)
	if err != nil {
		return 0, err
	}
	defer s.done()
	result, err := s.ExecContext(context.Background(), args...)
	if err != nil {
		return 0, t.failed(query, err)
	}
	return result.RowsAffected()
}

// Query implements store.Tx.
func (t *tx) Query(query string, args ...any) (store.Rows, error) {
	r, err := t.query(query, args)
	if err != nil {
		return nil, err
	}
	return r, nil
}

func (t *tx) query(query string, args []any) (*rows, error) {
	s, err := t.prepare(query, args)
	if err != nil {
		return nil, err
	}
	// The context stays outside: handing it down costs two goroutines a
	// query, and statements here are short. Rows look at it as they go.
	result, err := s.QueryContext(context.Background(), args...)
	if err != nil {
		s.done()
		return nil, t.failed(query, err)
	}
	s.busy = true
	r := &rows{tx: t, rows: result, statement: s, query: query}
	t.open = append(t.open, r)
	return r, nil
}

// QueryRow implements store.Tx.
func (t *tx) QueryRow(query string, args ...any) store.Row {
	r, err := t.query(query, args)
	return row{rows: r, err: err}
}

// OnCommit implements store.Tx.
func (t *tx) OnCommit(fn func()) {
	if t.view {
		panic("store: OnCommit in a View, which commits nothing")
	}
	t.hooks = append(t.hooks, fn)
}

// prepare checks what every statement needs checked and finds its statement.
func (t *tx) prepare(query string, args []any) (*statement, error) {
	if t.ended {
		return nil, errEnded
	}
	if t.lost != nil {
		return nil, t.lost
	}
	if err := t.ctx.Err(); err != nil {
		return nil, err
	}
	for i, arg := range args {
		n, err := argBytes(arg)
		if err != nil {
			return nil, fmt.Errorf("store: argument ?%d of %q: %w", i+1, query, err)
		}
		t.bytes += n
	}
	s, err := t.conn.prepare(query)
	if err != nil {
		return nil, t.failed(query, err)
	}
	return s, nil
}

// failed classifies a statement's error. Some errors (a full disk, OR
// ROLLBACK) end not the statement but the transaction, and what followed would
// commit by itself; so the tx is closed to further statements then.
func (t *tx) failed(query string, err error) error {
	err = t.db.classify("running "+query, err)
	if !t.view && t.conn.control("BEGIN") == nil { // fails inside a transaction
		_ = t.conn.control("ROLLBACK")
		t.lost = err
	}
	return err
}

// end closes what the function left open.
func (t *tx) end() {
	for _, r := range t.open {
		r.Close()
	}
	t.ended = true
}

// checkVerb keeps the engine's own statements out of functions: a COMMIT in
// one would commit half of everyone else's.
func checkVerb(query string) error {
	verb := strings.TrimLeft(query, " \t\r\n;")
	if i := strings.IndexFunc(verb, func(r rune) bool { return !unicode.IsLetter(r) }); i >= 0 {
		verb = verb[:i]
	}
	switch strings.ToUpper(verb) {
	case "BEGIN", "COMMIT", "END", "ROLLBACK", "SAVEPOINT", "RELEASE", "ATTACH", "DETACH", "PRAGMA", "VACUUM":
		return fmt.Errorf("store: %q: this statement belongs to the engine and cannot run inside Update or View", query)
	}
	return nil
}

// argBytes estimates an argument's size and refuses times, which every
// database stores in a way of its own.
func argBytes(arg any) (int, error) {
	switch a := arg.(type) {
	case string:
		return len(a), nil
	case []byte:
		return len(a), nil
	case nil, bool, int, int64, float64:
		return 8, nil
	case time.Time:
		return 0, errors.New("a time cannot be stored; pass Unix milliseconds as an int64")
	}
	v, err := driver.DefaultParameterConverter.ConvertValue(arg)
	if err != nil {
		return 0, err
	}
	return argBytes(v)
}

// rows implements store.Rows.
type rows struct {
	tx        *tx
	rows      *sql.Rows
	statement *statement
	query     string
	err       error
	closed    bool
}

// Next implements store.Rows.
func (r *rows) Next() bool {
	if r.closed || r.err != nil {
		return false
	}
	if r.err = r.tx.ctx.Err(); r.err != nil {
		return false
	}
	if r.rows.Next() {
		return true
	}
	if err := r.rows.Err(); err != nil {
		r.err = r.tx.failed(r.query, err)
	}
	return false
}

// Scan implements store.Rows.
func (r *rows) Scan(dest ...any) error {
	if r.closed {
		return errors.New("store: Scan on closed rows")
	}
	return r.rows.Scan(dest...)
}

// Err implements store.Rows.
func (r *rows) Err() error { return r.err }

// Close implements store.Rows.
func (r *rows) Close() error {
	if r.closed {
		return nil
	}
	r.closed = true
	err := r.rows.Close()
	r.statement.done()
	if n := len(r.tx.open); n > 0 && r.tx.open[n-1] == r {
		r.tx.open = r.tx.open[:n-1]
	}
	return err
}

// row implements store.Row.
type row struct {
	rows *rows
	err  error
}

// Scan implements store.Row.
func (r row) Scan(dest ...any) error {
	if r.err != nil {
		return r.err
	}
	defer r.rows.Close()
	if !r.rows.Next() {
		if err := r.rows.Err(); err != nil {
			return err
		}
		if r.rows.closed {
			return errors.New("store: Scan on a row that was read already")
		}
		return sql.ErrNoRows
	}
	return r.rows.Scan(dest...)
}
