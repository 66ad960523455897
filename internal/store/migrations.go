package store

import (
	"embed"
	"io/fs"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// Migrations are the schema's steps, for goose, in a dialect that SQLite reads.
func Migrations() fs.FS {
	sub, err := fs.Sub(migrationFiles, "migrations")
	if err != nil {
		// The folder is embedded at build time; its absence is impossible.
		panic(err)
	}
	return sub
}
