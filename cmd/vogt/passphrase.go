package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/term"
)

// errNoTerminal is said where a person would have to be asked.
var errNoTerminal = errors.New("there is no terminal to ask on")

// readSecret asks on the controlling terminal for a line that is not shown,
// whatever standard input and output are.
func readSecret(ctx context.Context, question string) ([]byte, error) {
	in, err := os.OpenFile(consoleIn, os.O_RDWR, 0)
	if err != nil {
		return nil, errNoTerminal
	}
	defer in.Close()
	out, err := os.OpenFile(consoleOut, os.O_WRONLY, 0)
	if err != nil {
		return nil, errNoTerminal
	}
	defer out.Close()
	// Nothing may be shown from before the question on, since people type
	// ahead. In raw mode the terminal leaves the keys to us.
	fd := int(in.Fd())
	before, err := term.MakeRaw(fd)
	if err != nil {
		return nil, fmt.Errorf("terminal: %w", err)
	}
	defer func() {
		term.Restore(fd, before)
		fmt.Fprintln(out)
	}()
	fmt.Fprint(out, question)
	type answer struct {
		line []byte
		err  error
	}
	// A read from a terminal cannot be interrupted, so when ctx ends this
	// goroutine is left to end with the process.
	read := make(chan answer, 1)
	go func() {
		line, err := readKeys(in)
		read <- answer{line, err}
	}()
	select {
	case a := <-read:
		return a.line, a.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// The keys that end or edit a line on a terminal in raw mode.
const (
	keyInterrupt = 0x03 // Ctrl-C
	keyEnd       = 0x04 // Ctrl-D
	keyBackspace = 0x08
	keyDelete    = 0x7f
	keyKill      = 0x15 // Ctrl-U
)

// maxSecret bounds a line that is not shown.
const maxSecret = 1 << 10

// readKeys reads a line a key at a time.
func readKeys(r io.Reader) ([]byte, error) {
	line := make([]byte, 0, maxSecret) // never moved, so that no copy stays behind
	var key [1]byte
	for {
		n, err := r.Read(key[:])
		if n == 0 && err == nil {
			continue
		}
		if err != nil {
			clear(line)
			return nil, fmt.Errorf("terminal: %w", err)
		}
		switch key[0] {
		case '\r', '\n':
			return line, nil
		case keyInterrupt, keyEnd:
			clear(line)
			return nil, errors.New("nothing was entered")
		case keyBackspace, keyDelete:
			// A character of UTF-8 is several bytes; those after its first one
			// begin with the bits 10.
			for len(line) > 0 {
				last := line[len(line)-1]
				line = line[:len(line)-1]
				if last&0xc0 != 0x80 {
					break
				}
			}
		case keyKill:
			line = line[:0]
		default:
			if len(line) == maxSecret {
				clear(line)
				return nil, fmt.Errorf("terminal: the line is longer than %d bytes", maxSecret)
			}
			line = append(line, key[0])
		}
	}
}
