package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/term"
)

// readSecret asks on the controlling terminal for a line that is not shown,
// whatever standard input and output are.
func readSecret(ctx context.Context, question string) ([]byte, error) {
	in, err := os.OpenFile(consoleIn, os.O_RDWR, 0)
	if err != nil {
		return nil, errors.New("there is no terminal to ask on")
	}
	defer in.Close()
	out, err := os.OpenFile(consoleOut, os.O_WRONLY, 0)
	if err != nil {
		return nil, errors.New("there is no terminal to ask on")
	}
	defer out.Close()
	fd := int(in.Fd())
	before, err := term.GetState(fd)
	if err != nil {
		return nil, fmt.Errorf("terminal: %w", err)
	}
	fmt.Fprint(out, question)
	type answer struct {
		line []byte
		err  error
	}
	// A read from a terminal cannot be interrupted, so after an interrupt this
	// goroutine is left to end with the process.
	read := make(chan answer, 1)
	go func() {
		line, err := term.ReadPassword(fd)
		read <- answer{line, err}
	}()
	select {
	case a := <-read:
		fmt.Fprintln(out)
		return a.line, a.err
	case <-ctx.Done():
		term.Restore(fd, before)
		fmt.Fprintln(out)
		return nil, context.Cause(ctx)
	}
}
