package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"modernc.org/sqlite"

	"vogt/internal/store"
)

// Backup writes a compact, consistent copy of the database to path, which must
// not exist, with mode 0600. The copy is read back and checked before it gets
// its name, so that a file at path is a whole backup. Updates and views go on
// meanwhile.
func (db *DB) Backup(ctx context.Context, path string) error {
	if err := db.refuse(ctx); err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	pool, err := db.open(false) // a reading connection may not write elsewhere either
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	defer pool.Close()
	if err := db.copyTo(ctx, pool, path); err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	return nil
}

// copyTo is Backup through a pool that is open already.
func (db *DB) copyTo(ctx context.Context, pool *sql.DB, path string) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	if _, err := os.Lstat(path); err == nil {
		return fmt.Errorf("%s exists: name a new file", path)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	// SQLite writes into an empty file that exists, with the mode it has.
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".partial-*")
	if err != nil {
		return fileError(err)
	}
	partial := f.Name()
	defer os.Remove(partial) // after the rename there is nothing to remove
	if err := f.Close(); err != nil {
		return err
	}
	if err := db.vacuumInto(ctx, pool, partial); err != nil {
		return err
	}
	if err := checkCopy(ctx, partial); err != nil {
		return fmt.Errorf("the copy is not sound: %w", err)
	}
	if err := syncFile(partial); err != nil {
		return err
	}
	if err := os.Rename(partial, path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// vacuumInto copies the database to the empty file at path.
func (db *DB) vacuumInto(ctx context.Context, pool *sql.DB, path string) error {
	_, err := pool.ExecContext(ctx, `VACUUM INTO ?1`, path)
	var e *sqlite.Error
	if err == nil || !errors.As(err, &e) {
		return err
	}
	sentinel := sentinelOf(e.Code())
	if cause := probe(filepath.Dir(path)); cause != nil {
		sentinel = cause
	}
	if sentinel == nil {
		return fmt.Errorf("copying %s to %s: %v", db.path, path, err)
	}
	return fmt.Errorf("copying %s to %s: %w (%v)", db.path, path, sentinel, err)
}

// checkCopy checks the database at path, which nobody else has open.
func checkCopy(ctx context.Context, path string) error {
	connector, err := sqlite.NewConnector(fileURI(path, url.Values{"mode": {"ro"}, "immutable": {"1"}}))
	if err != nil {
		return err
	}
	pool := sql.OpenDB(connector)
	defer pool.Close()
	return check(ctx, pool)
}

// Check reads the whole database and verifies its structure and its foreign
// keys. It returns ErrCorrupt with the first findings. On a large database it
// takes its time; updates and views go on meanwhile.
func (db *DB) Check(ctx context.Context) error {
	if err := db.refuse(ctx); err != nil {
		return fmt.Errorf("check: %w", err)
	}
	pool, err := db.open(true)
	if err != nil {
		return fmt.Errorf("check: %w", err)
	}
	defer pool.Close()
	if err := check(ctx, pool); err != nil {
		return db.classify("checking", fmt.Errorf("check %s: %w", db.path, err))
	}
	return nil
}

// maxFindings bounds what a check reports; one is enough to act on.
const maxFindings = 10

func check(ctx context.Context, pool *sql.DB) error {
	var findings []string
	rows, err := pool.QueryContext(ctx, fmt.Sprintf(`PRAGMA quick_check(%d)`, maxFindings))
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var finding string
		if err := rows.Scan(&finding); err != nil {
			return err
		}
		if finding != "ok" {
			findings = append(findings, finding)
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}

	rows, err = pool.QueryContext(ctx, `SELECT "table", coalesce("rowid", 0), "parent" FROM pragma_foreign_key_check LIMIT ?1`, maxFindings)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var table, parent string
		var id int64
		if err := rows.Scan(&table, &id, &parent); err != nil {
			return err
		}
		findings = append(findings, fmt.Sprintf("row %d of table %s refers to a missing row of table %s", id, table, parent))
	}
	if err := rows.Err(); err != nil {
		return err
	}
	if len(findings) > 0 {
		return fmt.Errorf("%w (%s)", store.ErrCorrupt, strings.Join(findings, "; "))
	}
	return nil
}
