package execution

import (
	"os"
	"os/signal"
)

// supervise starts the child in this process's console and waits for its end. A
// Ctrl-C reaches both, and the child decides what it means.
func supervise(b *Bound, attr *os.ProcAttr) (Outcome, error) {
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt)
	defer signal.Stop(interrupts)
	child, err := b.start(attr)
	if err != nil {
		return Outcome{}, err
	}
	state, err := child.Wait()
	if err != nil {
		return Outcome{}, &Error{Path: b.program.found, Err: cause(err)}
	}
	return Outcome{Code: state.ExitCode()}, nil
}
