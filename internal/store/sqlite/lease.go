package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"time"
)

// The lease is one row: the number of the writer that came last, and who it
// is. A number only grows, so a writer that finds another number than its own
// knows that its time is over.
const createLease = `CREATE TABLE IF NOT EXISTS lease (
	id       INTEGER PRIMARY KEY CHECK (id = 1),
	fence    INTEGER NOT NULL,
	holder   TEXT    NOT NULL,
	taken_at INTEGER NOT NULL -- Unix milliseconds
) STRICT`

// takeLease makes this process the writer and returns its number, from 1.
func takeLease(ctx context.Context, pool *sql.DB, now time.Time) (fence int64, err error) {
	t, err := pool.BeginTx(ctx, nil)
	if err != nil {
		return 0, err
	}
	defer t.Rollback() // after Commit it does nothing
	if _, err := t.ExecContext(ctx, createLease); err != nil {
		return 0, err
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	err = t.QueryRowContext(ctx, `
		INSERT INTO lease (id, fence, holder, taken_at) VALUES (1, 1, ?1, ?2)
		ON CONFLICT (id) DO UPDATE SET fence = fence + 1, holder = ?1, taken_at = ?2
		RETURNING fence`,
		fmt.Sprintf("process %d on %s", os.Getpid(), host), now.UnixMilli()).Scan(&fence)
	if err != nil {
		return 0, err
	}
	return fence, t.Commit()
}

// readLease reads the row inside the transaction that c has open.
func readLease(c *conn) (fence int64, holder string, err error) {
	s, err := c.prepare(`SELECT fence, holder FROM lease WHERE id = 1`)
	if err != nil {
		return 0, "", err
	}
	err = s.QueryRowContext(context.Background()).Scan(&fence, &holder)
	return fence, holder, err
}
