package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"vogt/cmd/vogt/messages"
	"vogt/internal/client"
	"vogt/internal/execution"
	"vogt/internal/execution/confine"
	"vogt/internal/flow"
	"vogt/internal/terminal"
)

// The exit codes, those of sysexits(3) where one fits.
const (
	exitMismatch    = 1 // of what checks something: it does not hold
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
	code   int
	title  string // what went wrong; empty when everything has been said already
	detail string // what exactly; may be empty
	advice []string
	hint   string // the authority's advice; may be empty
}

// report writes a failure to standard error: a line each, or under --json one
// object on one line.
func (e *env) report(f failure) {
	if f.title == "" {
		return
	}
	if e.json {
		advice := f.advice
		if f.hint != "" {
			advice = append(slices.Clip(advice), f.hint)
		}
		object := map[string]any{"code": f.code, "title": f.title}
		if f.detail != "" {
			object["detail"] = f.detail
		}
		if len(advice) > 0 {
			object["hint"] = strings.Join(advice, "\n")
		}
		enc := json.NewEncoder(e.stderr)
		enc.SetEscapeHTML(false)
		enc.Encode(map[string]any{"error": object}) // nobody is left to hear of a failure here
		return
	}
	first := f.title
	if f.detail != "" {
		first += ": " + f.detail
	}
	for _, text := range append([]string{first}, f.advice...) {
		fmt.Fprintln(e.stderr, "vogt: "+text)
	}
	if f.hint != "" {
		fmt.Fprintln(e.stderr, "vogt: "+e.text(messages.Hint, f.hint))
	}
}

// plainFailure is one whose error says everything, in one or several lines.
func plainFailure(code int, err error) failure {
	lines := visibleLines(err.Error())
	return failure{code: code, title: lines[0], advice: lines[1:]}
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
		return e.explainUsage(u)
	}
	if c, ok := errors.AsType[*client.Error](err); ok {
		return e.explainClient(c)
	}
	if x, ok := errors.AsType[*execution.Error](err); ok {
		return failure{code: x.ExitCode(), title: e.executionText(x)}
	}
	if m, ok := errors.AsType[*flow.MismatchError](err); ok {
		return failure{code: exitCannotRun, title: e.mismatchText(m)}
	}
	// Errors of other parts may bring their own code.
	if coded, ok := errors.AsType[interface {
		error
		ExitCode() int
	}](err); ok {
		return plainFailure(coded.ExitCode(), err)
	}
	return plainFailure(exitInternal, err)
}

// usageError is a command line that cannot be understood.
type usageError struct {
	text string
	line bool // the command's usage line helps
}

// explainUsage names the help that fits.
func (e *env) explainUsage(u *usageError) failure {
	f := failure{code: exitUsage, title: terminal.Visible(u.text)}
	// A group is called for what is in it; a command can do something by itself, too.
	group := e.called != nil && e.called.HasSubCommands() && e.called.Use == e.called.Name()
	if e.called == nil || group || e.called.Name() == "help" {
		f.advice = []string{e.text(messages.SeeHelp)}
		return f
	}
	if u.line {
		f.advice = append(f.advice, e.text(messages.UsageOf, e.called.UseLine()))
	}
	f.advice = append(f.advice, e.text(messages.SeeHelpOf, e.called.CommandPath()))
	return f
}

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
	f := failure{code: clientCode(c.Kind), title: head, detail: strings.Join(parts, ": "), hint: terminal.Visible(c.Hint)}
	switch c.Kind {
	case client.Forked:
		f.advice = append(f.advice, e.text(messages.ForkAdvice))
	case client.Behind:
		f.advice = append(f.advice, e.text(messages.BehindAdvice))
	case client.NotLoggedIn:
		if profile, in := confine.Around(e.getenv); in && e.agent == "" {
			f.advice = append(f.advice, e.text(messages.NoPersonInBox, profile))
			break
		}
		advice := e.text(messages.LoginAdvice)
		if e.agent != "" {
			advice = e.text(messages.AgentLoginAdvice, e.agent)
		}
		f.advice = append(f.advice, advice)
	case client.Unreachable:
		// A status means that it runs, and is busy or about to end.
		if c.Status == 0 && c.Err != nil && onThisMachine(c.Where) {
			f.advice = append(f.advice, e.text(messages.StartAdvice))
		}
	}
	for _, path := range c.Evidence {
		f.advice = append(f.advice, e.text(messages.Evidence, path))
	}
	return f
}

// onThisMachine reports whether an authority's address is one of this machine.
func onThisMachine(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	host := u.Hostname()
	a, err := netip.ParseAddr(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || err == nil && a.IsLoopback()
}

func (e *env) executionText(x *execution.Error) string {
	text := e.text(messages.ForExecution(x.Kind))
	if x.Path != "" {
		text = terminal.Visible(x.Path) + ": " + text
	}
	if w, ok := errors.AsType[*confine.WideError](x.Err); ok {
		return text + ": " + e.wideText(w)
	}
	if x.Err != nil {
		text += ": " + terminal.Visible(x.Err.Error())
	}
	return text
}

// wideText says why a folder cannot be a workspace.
func (e *env) wideText(w *confine.WideError) string {
	args := []any{terminal.Visible(w.Workspace)}
	if w.Two() {
		args = append(args, terminal.Visible(w.Other))
	}
	return e.text(messages.ForWide(w.Why), args...) + ": " + e.text(messages.WideAdvice)
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
  130  interrupted (Ctrl-C) while waiting; the request still waits

Commands that check something exit with 1 when it does not hold: "vogt audit
verify" when the log does not fit, "vogt grant receipt" when the receipt does
not, "vogt doctor" when something failed, "vogt notify --test" when the command
did, "vogt catalog test" when an entry is wrong or an example does not hold.

Messages go to standard error. Standard output belongs to the command that
runs, or to the answer that was asked for.`
