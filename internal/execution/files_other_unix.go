//go:build unix && !linux

package execution

import (
	"os"

	"golang.org/x/sys/unix"
)

// openImage opens a program to read it.
func openImage(path string) (file *os.File, readable bool, err error) {
	// Not blocking, since the path may have become a FIFO since it was looked at.
	file, err = os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	return file, true, err
}
