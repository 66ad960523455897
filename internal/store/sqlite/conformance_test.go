package sqlite

import (
	"context"
	"testing"

	"vogt/internal/store"
	"vogt/internal/store/storetest"
)

func TestConformance(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.DB {
		return open(t, Options{Dir: t.TempDir(), Migrations: storetest.Schema()})
	})
}

// open opens a database that closes with the test.
func open(t *testing.T, opts Options) *DB {
	t.Helper()
	if opts.Ballast == 0 {
		opts.Ballast = -1 // tests that need no reserve need not write one
	}
	db, err := Open(context.Background(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}
