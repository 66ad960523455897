package terminal

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// IsTerminal reports whether f is a terminal.
func IsTerminal(f *os.File) bool {
	is := false
	control(f, func(fd int) { is = term.IsTerminal(fd) })
	return is
}

// Width returns how many cells wide the terminal f is, or 0 if f is none.
func Width(f *os.File) int {
	columns := 0
	control(f, func(fd int) {
		if width, _, err := term.GetSize(fd); err == nil {
			columns = width
		}
	})
	return columns
}

// control calls use with the descriptor of f, without making f block as f.Fd
// would. A closed file is no terminal.
func control(f *os.File, use func(fd int)) {
	if f == nil {
		return
	}
	conn, err := f.SyscallConn()
	if err != nil {
		return
	}
	conn.Control(func(fd uintptr) { use(int(fd)) }) // the error is that f is closed
}

// TTY is the controlling terminal of the process: the person in front of it is
// reached even when standard input and output are pipes.
type TTY struct {
	in, out *os.File
}

// OpenTTY opens the controlling terminal, and fails if the process has none.
func OpenTTY() (*TTY, error) {
	in, out, err := openTTY()
	if err != nil {
		return nil, fmt.Errorf("terminal: there is no terminal to ask on: %w", err)
	}
	return &TTY{in: in, out: out}, nil
}

// Write writes to the terminal as it is; text of strangers must have passed
// Visible or StripEscapes.
func (t *TTY) Write(p []byte) (int, error) { return t.out.Write(p) }

// Close closes the terminal. A Prompt that still waits is not ended by it, but
// by its context.
func (t *TTY) Close() error {
	err := t.in.Close()
	if t.out != t.in {
		t.out.Close()
	}
	return err
}

// maxLine bounds an answer. Terminals in line mode deliver at most 4096 bytes.
const maxLine = 4096

// Prompt writes question and returns the line that the person then enters,
// without its end. It returns io.EOF when the person ends the input, and the
// context's error when that ends first.
func (t *TTY) Prompt(ctx context.Context, question string) (string, error) {
	if _, err := io.WriteString(t.out, question); err != nil {
		return "", fmt.Errorf("terminal: %w", err)
	}
	var line []byte
	buf := make([]byte, maxLine)
	for len(line) < maxLine {
		n, err := t.read(ctx, buf)
		if err != nil {
			return "", err
		}
		if n == 0 {
			return "", io.EOF
		}
		// A terminal that another program left in raw mode delivers single
		// keys: Enter as \r, Ctrl-C and Ctrl-D as bytes.
		end := strings.IndexAny(string(buf[:n]), "\r\n\x03\x04")
		if end < 0 {
			line = append(line, buf[:n]...)
			continue
		}
		if key := buf[end]; key != '\r' && key != '\n' {
			return "", io.EOF
		}
		return string(append(line, buf[:end]...)), nil
	}
	return "", fmt.Errorf("terminal: the answer is longer than %d bytes", maxLine)
}
