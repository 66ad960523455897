package config

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

// Lock is an exclusive lock that processes agree on by a file's name. It ends
// with Unlock or with the process, however that ends; a holder keeps the Lock
// until then, since one that is forgotten is given back.
type Lock struct{ file *os.File }

// errHeld is what tryLock returns while another holder has the lock.
var errHeld = errors.New("held by another process")

// AcquireLock takes the lock at path, waiting until ctx ends. It tries at least
// once, so that a ctx that has ended asks "is it free now?". When the lock is
// held, the error wraps that of ctx.
//
// The file is made if it is missing, and stays: a lock file that is removed
// could be locked twice, under its old and its new inode. It must not be a file
// that WriteFile replaces, for the same reason.
func AcquireLock(ctx context.Context, path string) (*Lock, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("config: lock: %w", err)
	}
	const longest = 100 * time.Millisecond
	for wait := time.Millisecond; ; wait = min(2*wait, longest) {
		err := tryLock(f)
		if err == nil {
			return &Lock{f}, nil
		}
		if !errors.Is(err, errHeld) {
			f.Close()
			return nil, fmt.Errorf("config: lock %s: %w", path, err)
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			f.Close()
			return nil, fmt.Errorf("config: lock %s is %w: %w", path, errHeld, ctx.Err())
		}
	}
}

// Unlock gives the lock back. The second and every later call does nothing.
func (l *Lock) Unlock() {
	l.file.Close()
}
