package witness

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"vogt/internal/audit"
	"vogt/internal/config"
)

// Files is a Store in a folder: one file for each log, which holds its latest
// cosigned checkpoint. Several processes may share it.
type Files struct{ dir string }

// OpenFiles opens the folder, which it makes if it is missing. A folder that
// was lost must not be replaced by an empty one under the same key.
func OpenFiles(dir string) (*Files, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("witness: folder of states: %w", err)
	}
	return &Files{dir}, nil
}

func (f *Files) path(origin string) string {
	sum := sha256.Sum256([]byte(origin))
	return filepath.Join(f.dir, fmt.Sprintf("%x.checkpoint", sum[:16]))
}

// Latest implements Store.
func (f *Files) Latest(ctx context.Context, origin string) (State, error) {
	l, err := f.lock(ctx)
	if err != nil {
		return State{}, err
	}
	defer l.Unlock()
	return f.read(origin)
}

// Advance implements Store.
func (f *Files) Advance(ctx context.Context, origin string, old, next State) (bool, error) {
	l, err := f.lock(ctx)
	if err != nil {
		return false, err
	}
	defer l.Unlock()
	now, err := f.read(origin)
	if err != nil || now.Size != old.Size || now.Root != old.Root {
		return false, err
	}
	if now.Size == next.Size && now.Root == next.Root && now.Text != "" {
		return true, nil
	}
	if err := config.WriteFile(f.path(origin), []byte(next.Text), 0o600); err != nil {
		return false, fmt.Errorf("witness: %w", err)
	}
	return true, nil
}

func (f *Files) read(origin string) (State, error) {
	path := f.path(origin)
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return State{}, nil
	}
	if err != nil {
		return State{}, fmt.Errorf("witness: state of %q: %w", origin, err)
	}
	text, _, _ := strings.Cut(string(b), "\n\n")
	c, _, err := audit.ParseTreeHead(text + "\n")
	if err == nil && c.Origin != origin {
		err = fmt.Errorf("it is of the log %q", c.Origin)
	}
	if err != nil {
		return State{}, fmt.Errorf("witness: the state of %q in %s is damaged (%v): restore the file from the last checkpoint that this witness cosigned; without it nothing is cosigned", origin, path, err)
	}
	return State{c.Size, c.Root, string(b)}, nil
}

func (f *Files) lock(ctx context.Context) (*config.Lock, error) {
	l, err := config.AcquireLock(ctx, filepath.Join(f.dir, "lock"))
	if err != nil {
		return nil, fmt.Errorf("witness: %w", err)
	}
	return l, nil
}
