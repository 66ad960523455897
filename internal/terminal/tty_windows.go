package terminal

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/windows"
)

func openTTY() (in, out *os.File, err error) {
	in, err = os.OpenFile("CONIN$", os.O_RDWR, 0)
	if err != nil {
		return nil, nil, err
	}
	out, err = os.OpenFile("CONOUT$", os.O_RDWR, 0)
	if err != nil {
		in.Close()
		return nil, nil, err
	}
	return in, out, nil
}

// lookAgain is how often, in milliseconds, a wait for a key looks at its
// context.
const lookAgain = 100

// read waits for a key or the end of ctx, then reads a line. Once the person
// has begun to type, the console returns at the line's end only, and ctx has to
// wait.
func (t *TTY) read(ctx context.Context, buf []byte) (int, error) {
	for {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		event, err := windows.WaitForSingleObject(windows.Handle(t.in.Fd()), lookAgain)
		if err != nil && !errors.Is(err, windows.WAIT_TIMEOUT) {
			return 0, fmt.Errorf("terminal: %w", err)
		}
		if event == windows.WAIT_OBJECT_0 {
			return t.in.Read(buf)
		}
	}
}
