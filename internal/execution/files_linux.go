package execution

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// openImage opens a program to read and execute it. One that may be executed
// but not read, as sudo is on some systems, is opened for its identity alone.
func openImage(path string) (file *os.File, readable bool, err error) {
	// Not blocking, since the path may have become a FIFO since it was looked at.
	file, err = os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrPermission) {
		file, err = os.OpenFile(path, unix.O_PATH, 0)
		return file, false, err
	}
	return file, true, err
}
