// Vogt is the command of agents and people: agents ask with it for permission
// to run a command and run it once it is given, people answer, enrol agents and
// read the log.
//
// This package owns flags, texts, exit codes and wiring. What a command means
// is the business of the packages that it calls.
package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"vogt/cmd/vogt/messages"
)

func main() {
	ctx, stop := interruptible(context.Background())
	code := Run(ctx, os.Args[1:], &env{
		stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, environ: os.Environ(), now: time.Now,
	})
	stop()
	os.Exit(code)
}

// interruptible ends the context with the signals that ask a program to end. A
// signal that the parent ignores, as nohup does, stays ignored.
func interruptible(ctx context.Context) (context.Context, context.CancelFunc) {
	var signals []os.Signal
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		if !signal.Ignored(s) {
			signals = append(signals, s)
		}
	}
	if len(signals) == 0 {
		return ctx, func() {} // none would mean all
	}
	return signal.NotifyContext(ctx, signals...)
}

// Run is the whole program; it returns the exit code.
func Run(ctx context.Context, args []string, e *env) int {
	e.lang = messages.Choose(e.getenv)
	root := newRoot(e)
	if len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) {
		e.completeFlags(root) // it looks at every flag of every command
	}
	root.SetArgs(args)
	root.SetIn(e.stdin)
	root.SetOut(e.stdout)
	root.SetErr(e.stderr)
	called, err := root.ExecuteContextC(ctx)
	e.called = called
	if err == nil {
		err = e.helpErr
	}
	if err == nil {
		return 0
	}
	if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		return exitInterrupted
	}
	failure := e.explain(err)
	e.report(failure)
	return failure.code
}
