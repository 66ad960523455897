//go:build unix

package sshkey

import (
	"fmt"
	"os"
	"syscall"
)

// openPrivate opens without waiting, so that a FIFO in the file's place is
// refused instead of hanging.
func openPrivate(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
}

func checkPrivateMode(path string, mode os.FileMode) error {
	if mode.Perm()&0o077 != 0 {
		return fmt.Errorf("mode %#o lets group or others at it; if nobody has read it, run: chmod 600 %s", mode.Perm(), path)
	}
	return nil
}
