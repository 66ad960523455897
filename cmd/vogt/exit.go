package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"vogt/cmd/vogt/messages"
	"vogt/internal/client"
	"vogt/internal/execution"
	"vogt/internal/flow"
	"vogt/internal/terminal"
)

// The exit codes, those of sysexits(3) where one fits.
const (
	exitMismatch    = 1 // audit verify only
	exitUsage       = 64
	exitUnavailable = 69
	exitInternal    = 70
	exitUndecided   = 75
	exitSpent       = 76
	exitRefused     = 77
	exitConfig      = 78
	exitCannotRun   = 126
	exitInterrupted = 130
)

// codeError is an error whose exit code the command itself chose. Without err
// everything has been said already.
type codeError struct {
	code int
	err  error
}

func (e *codeError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *codeError) Unwrap() error { return e.err }

// withCode gives err an exit code; a nil err exits silently.
func withCode(code int, err error) error { return &codeError{code: code, err: err} }

// commandError marks what a command returned, so that what is left are cobra's
// own complaints about the command line.
type commandError struct{ err error }

func (e *commandError) Error() string { return e.err.Error() }
func (e *commandError) Unwrap() error { return e.err }

// command makes a RunE of a command's function.
func command(fn func(cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if err := fn(cmd, args); err != nil {
			return &commandError{err}
		}
		return nil
	}
}

// failure is what is said about an error, and the exit code.
type failure struct {
	code  int
	lines []string
}

// explain finds the words and the exit code for an error.
func (e *env) explain(err error) failure {
	if coded, ok := errors.AsType[*codeError](err); ok {
		if coded.err == nil {
			return failure{code: coded.code}
		}
		f := e.explain(&commandError{coded.err})
		f.code = coded.code
		return f
	}
	if _, ok := errors.AsType[*commandError](err); !ok {
		if _, ok := err.(*usageError); !ok {
			err = &usageError{text: err.Error()}
		}
	}
	if u, ok := errors.AsType[*usageError](err); ok {
		return failure{exitUsage, []string{terminal.Visible(u.text), e.text(messages.SeeHelp)}}
	}
	if c, ok := errors.AsType[*client.Error](err); ok {
		return e.explainClient(c)
	}
	if x, ok := errors.AsType[*execution.Error](err); ok {
		return failure{x.ExitCode(), []string{e.executionText(x)}}
	}
	if m, ok := errors.AsType[*flow.MismatchError](err); ok {
		return failure{exitCannotRun, []string{e.mismatchText(m)}}
	}
	// Errors of other parts may bring their own code.
	if coded, ok := errors.AsType[interface {
		error
		ExitCode() int
	}](err); ok {
		return failure{coded.ExitCode(), visibleLines(err.Error())}
	}
	return failure{exitInternal, visibleLines(err.Error())}
}

// usageError is a command line that cannot be understood.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

// visibleLines makes text that may come from elsewhere harmless, line by line.
func visibleLines(text string) []string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i, line := range lines {
		lines[i] = terminal.Visible(line)
	}
	return lines
}

// clientCodes are the exit codes of the client's kinds of errors.
func clientCode(k client.Kind) int {
	switch k {
	case client.Unreachable, client.Busy:
		return exitUnavailable
	case client.NotLoggedIn, client.BadFile, client.KeyLocked, client.WrongIssuer:
		return exitConfig
	case client.Refused, client.Distrusted, client.KeyChanged, client.Forked, client.Behind, client.NotConfirmed:
		return exitRefused
	case client.Spent, client.Decided:
		return exitSpent
	case client.Unknown, client.Invalid:
		return exitUsage
	case client.Malformed:
	}
	return exitInternal
}

// explainClient says what happened, what it means and what to do.
func (e *env) explainClient(c *client.Error) failure {
	head := e.text(messages.ForKind(c.Kind))
	var parts []string
	for _, part := range []string{c.Where, c.Detail} {
		if part != "" {
			parts = append(parts, terminal.Visible(part))
		}
	}
	if c.Err != nil {
		parts = append(parts, terminal.Visible(c.Err.Error()))
	}
	f := failure{code: clientCode(c.Kind), lines: []string{head}}
	if len(parts) > 0 {
		f.lines[0] += ": " + strings.Join(parts, ": ")
	}
	switch c.Kind {
	case client.Forked:
		f.lines = append(f.lines, e.text(messages.ForkAdvice))
	case client.Behind:
		f.lines = append(f.lines, e.text(messages.BehindAdvice))
	case client.NotLoggedIn:
		f.lines = append(f.lines, e.text(messages.LoginAdvice))
	}
	for _, path := range c.Evidence {
		f.lines = append(f.lines, e.text(messages.Evidence, path))
	}
	if c.Hint != "" {
		f.lines = append(f.lines, e.text(messages.Hint, terminal.Visible(c.Hint)))
	}
	return f
}

func (e *env) executionText(x *execution.Error) string {
	text := e.text(messages.ForExecution(x.Kind))
	if x.Path != "" {
		text = terminal.Visible(x.Path) + ": " + text
	}
	if x.Err != nil {
		text += ": " + terminal.Visible(x.Err.Error())
	}
	return text
}

func (e *env) mismatchText(m *flow.MismatchError) string {
	granted, found := terminal.Visible(m.Granted), terminal.Visible(m.Found)
	switch m.What {
	case "folder":
		return e.text(messages.OtherFolder, granted, found)
	case "program":
		return e.text(messages.OtherProgram, granted, found)
	}
	return e.text(messages.OtherAction, m.What, granted, found)
}

const exitCodesHelp = `When the command ran, vogt exits as it did: with its exit code, or with 128+n
when signal n ended it. Otherwise:

  64   usage: the command line makes no sense
  69   the authority cannot be reached
  70   internal error
  75   not decided yet: the request waits for a person, or nobody answered in
       time. This is not a failure: "vogt grant run ID --wait" goes on.
  76   spent: the grant was used before, or has expired
  77   refused: denied or revoked by a person, or refused by a rule or a check
  78   not configured or not logged in
  126  the command could not be executed
  127  the command was not found
  130  interrupted while waiting

"vogt audit verify" exits with 1 when a record of the log does not fit.

Messages go to standard error. Standard output belongs to the command that
runs, or to the answer that was asked for.`
