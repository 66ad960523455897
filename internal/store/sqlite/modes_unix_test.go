//go:build unix

package sqlite

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"vogt/internal/store"
)

// TestModes: whatever the umask, nobody else reads a byte, and the owner can
// work.
func TestModes(t *testing.T) {
	for _, mask := range []int{0, 0o022, 0o077, 0o277, 0o777} {
		t.Run(fmt.Sprintf("umask %04o", mask), func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			old := unix.Umask(mask)
			defer unix.Umask(old)
			db, err := Open(context.Background(), Options{Dir: dir, Migrations: pairSchema(), Ballast: 1 << 16})
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			if err := db.Update(context.Background(), func(t store.Tx) error { return addPair(t, 1) }); err != nil {
				t.Fatal(err)
			}
			wantMode(t, dir, 0o700)
			for _, name := range []string{FileName, FileName + "-wal", FileName + "-shm", "lock", "ballast"} {
				wantMode(t, filepath.Join(dir, name), 0o600)
			}
		})
	}
}

func wantMode(t *testing.T, name string, want os.FileMode) {
	t.Helper()
	info, err := os.Stat(name)
	if err != nil {
		t.Error(err)
	} else if got := info.Mode().Perm(); got != want {
		t.Errorf("%s has mode %04o, want %04o", name, got, want)
	}
}

// TestModesTightened: a data directory made by a service manager is often
// readable by all, and so may be a file that was restored.
func TestModesTightened(t *testing.T) {
	dir := makeDatabase(t)
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(dir, FileName), 0o644); err != nil {
		t.Fatal(err)
	}
	open(t, Options{Dir: dir, Migrations: pairSchema()})
	wantMode(t, dir, 0o700)
	wantMode(t, filepath.Join(dir, FileName), 0o600)
	wantMode(t, filepath.Join(dir, FileName+"-wal"), 0o600)
}

func TestDirectoryRefused(t *testing.T) {
	base := t.TempDir()
	file := filepath.Join(base, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(base, "linked")
	if err := os.Mkdir(link, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file, filepath.Join(link, FileName)); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct{ dir, says string }{
		"a file":                    {file, "not a directory"},
		"a database that is a link": {link, "not a regular file"},
	}
	for _, mode := range []os.FileMode{0o770, 0o702, 0o777} {
		dir := filepath.Join(base, mode.String())
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		tests["mode "+mode.String()] = struct{ dir, says string }{dir, "chmod 700"}
	}
	if os.Getuid() == 0 {
		dir := filepath.Join(base, "foreign")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(dir, 12345, 12345); err != nil {
			t.Fatal(err)
		}
		tests["of another user"] = struct{ dir, says string }{dir, "belongs to user id 12345"}
	} else {
		tests["of another user"] = struct{ dir, says string }{"/", "belongs to user id 0"}
	}
	for name, tt := range tests {
		before, err := os.ReadDir(tt.dir)
		_, openErr := Open(context.Background(), Options{Dir: tt.dir, Migrations: pairSchema(), Ballast: -1})
		if openErr == nil || !strings.Contains(openErr.Error(), tt.says) {
			t.Errorf("%s: got %v, want an error with %q", name, openErr, tt.says)
		}
		if after, _ := os.ReadDir(tt.dir); err == nil && tt.dir != link && len(after) != len(before) {
			t.Errorf("%s: the refused directory was written to", name)
		}
	}
}
