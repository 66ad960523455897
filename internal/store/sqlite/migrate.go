package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/pressly/goose/v3"

	"vogt/internal/store"
)

// migrator brings the schema to the version that this program knows.
type migrator struct {
	db       *DB
	pool     *sql.DB
	provider *goose.Provider
	current  int64 // the database's version, 0 for a new one
	known    int64 // the newest version in Options.Migrations
}

// newMigrator reads both versions and changes nothing. It refuses a database
// that is ahead.
func newMigrator(ctx context.Context, db *DB, pool *sql.DB) (*migrator, error) {
	provider, err := goose.NewProvider(goose.DialectSQLite3, pool, db.opts.Migrations,
		goose.WithDisableGlobalRegistry(true), goose.WithSlog(db.log))
	if err != nil {
		return nil, fmt.Errorf("reading the migrations: %w", err)
	}
	m := &migrator{db: db, pool: pool, provider: provider}
	for _, source := range provider.ListSources() {
		m.known = max(m.known, source.Version)
	}

	// Asking the provider would create its table, so the question is put
	// directly.
	var tables int
	err = pool.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = ?1`,
		goose.DefaultTablename).Scan(&tables)
	if err == nil && tables != 0 {
		err = pool.QueryRowContext(ctx, `SELECT coalesce(max(version_id), 0) FROM `+goose.DefaultTablename).Scan(&m.current)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the schema's version: %w", err)
	}
	if m.current > m.known {
		return nil, fmt.Errorf("%s has schema version %d, this program knows up to %d: %w",
			db.path, m.current, m.known, store.ErrTooNew)
	}
	return m, nil
}

// up migrates, after a copy of what is there.
func (m *migrator) up(ctx context.Context) error {
	pending, err := m.provider.HasPending(ctx)
	if err != nil {
		return fmt.Errorf("comparing the schema with the migrations: %w", err)
	}
	if !pending {
		return nil
	}
	copied := ""
	if m.current > 0 {
		copied = filepath.Join(m.db.opts.Dir, fmt.Sprintf("vogt-before-v%d-%s.db",
			m.known, m.db.opts.Now().UTC().Format("20060102T150405Z")))
		if err := m.db.copyTo(ctx, m.pool, copied); err != nil {
			return fmt.Errorf("copying the database before its migration: %w", err)
		}
		m.db.log.Info("copied the database before its migration", "copy", copied, "from", m.current, "to", m.known)
	}
	if _, err := m.provider.Up(ctx); err != nil {
		var partial *goose.PartialError
		if errors.As(err, &partial) {
			err = fmt.Errorf("migration %d: %w", partial.Failed.Source.Version, partial.Err)
		}
		if copied != "" {
			return fmt.Errorf("migrating %s (the copy from before is %s): %w", m.db.path, copied, err)
		}
		return fmt.Errorf("creating the schema of %s: %w", m.db.path, err)
	}
	m.db.log.Info("brought the schema up to date", "database", m.db.path, "from", m.current, "to", m.known)
	return nil
}
