//go:build unix

package terminal

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

func openTTY() (in, out *os.File, err error) {
	f, err := os.OpenFile("/dev/tty", os.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	return f, f, err
}

// read reads what is there, waiting for it or for the end of ctx.
//
// It waits with select(2), since deadlines of os.File do not work on terminals
// everywhere, and poll(2) does not work on macOS' /dev/tty.
func (t *TTY) read(ctx context.Context, buf []byte) (int, error) {
	wakeReader, wakeWriter, err := os.Pipe()
	if err != nil {
		return 0, fmt.Errorf("terminal: %w", err)
	}
	defer wakeReader.Close()
	defer wakeWriter.Close()
	woken := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		wakeWriter.Write([]byte{0})
		close(woken)
	})
	defer func() {
		if !stop() {
			<-woken // before the pipe is closed
		}
	}()

	tty, wake := int(t.in.Fd()), int(wakeReader.Fd())
	if max(tty, wake) >= unix.FD_SETSIZE {
		return 0, errors.New("terminal: too many open files to wait for an answer")
	}
	for {
		var set unix.FdSet
		set.Set(tty)
		set.Set(wake)
		switch _, err := unix.Select(max(tty, wake)+1, &set, nil, nil, nil); {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return 0, fmt.Errorf("terminal: %w", err)
		case ctx.Err() != nil:
			return 0, ctx.Err()
		}
		switch n, err := unix.Read(tty, buf); {
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.EAGAIN):
		case err != nil:
			return 0, fmt.Errorf("terminal: %w", err)
		default:
			return n, nil
		}
	}
}
