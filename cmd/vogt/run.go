package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"vogt/cmd/vogt/messages"
	"vogt/internal/api"
	"vogt/internal/client"
	"vogt/internal/config"
	"vogt/internal/flow"
	"vogt/internal/grant"
	"vogt/internal/terminal"
)

// waiting are the flags of the commands that may wait for a person.
type waiting struct {
	wait    bool
	timeout duration
}

func (w *waiting) addFlags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&w.wait, "wait", false, "wait for the answer")
	cmd.Flags().Var(&w.timeout, "timeout", "with --wait: how long at most (default: wait.limit in vogt.toml)")
}

// check refuses flags that contradict each other.
func (w *waiting) check(e *env) error {
	if w.timeout > 0 && !w.wait {
		return &usageError{text: e.text(messages.TimeoutNeedsWait)}
	}
	return nil
}

// limit is how long to wait; zero is not at all.
func (w *waiting) limit(settings config.Client) time.Duration {
	switch {
	case !w.wait:
		return 0
	case w.timeout > 0:
		return time.Duration(w.timeout)
	}
	return settings.Wait.Limit
}

func newRunCommand(e *env) *cobra.Command {
	var w waiting
	var approval, reason, host, confined string
	var allow []string
	var lasting duration
	cmd := &cobra.Command{
		Use:   "run [flags] -- COMMAND [ARGUMENT…]",
		Short: "Ask for permission to run a command, and run it",
		Long: `Ask for permission to run a command, and run it once it is given.

No shell reads the command: the arguments are passed on as they are. When an
earlier answer covers it, it runs at once. Otherwise a person is asked: without
--wait vogt prints what to do next and exits with 75, with --wait it waits for
the answer and then runs the command. The command inherits standard input and
output, the terminal and the environment without Vogt's own variables; vogt
exits as the command does (see "vogt help exit-codes").

With --confine it runs in a box that the kernel enforces (see "vogt help confine"),
about the folder you are in. The answer binds the box: the permission holds for the
command in this box only.`,
		Args: cobra.ArbitraryArgs,
		RunE: command(func(cmd *cobra.Command, args []string) error {
			ask := flow.Asking{Argv: args, Type: grant.Type(approval), Duration: time.Duration(lasting), Reason: reason, Host: host}
			switch {
			case len(args) == 0:
				return &usageError{text: e.text(messages.NoCommand)}
			case !ask.Type.Valid():
				return &usageError{text: e.text(messages.BadApproval, approval)}
			case (ask.Type == grant.Timed) != (lasting > 0):
				return &usageError{text: e.text(messages.TimedNeedsDuration)}
			}
			if err := errors.Join(w.check(e), lasting.check(e, "--duration")); err != nil {
				return err
			}
			if len(allow) > 0 && !cmd.Flags().Changed("confine") {
				return &usageError{text: e.text(messages.AllowNeedsBox)}
			}
			if cmd.Flags().Changed("confine") {
				var err error
				if e.box, err = e.newBox(confined, "", allow...); err != nil {
					return err
				}
				if err := e.box.Check(); err != nil {
					return err
				}
			}
			return e.run(cmd.Context(), ask, w)
		}),
	}
	cmd.Flags().SetInterspersed(false)
	w.addFlags(cmd)
	cmd.Flags().StringVar(&approval, "approval", string(grant.Once), "the permission to ask for: once, timed or always")
	cmd.Flags().Var(&lasting, "duration", "of a timed permission: 30s, 5m, 1h, 7d")
	cmd.Flags().StringVar(&confined, "confine", "", "run it in a box, with this `PROFILE` (without one: default)")
	cmd.Flags().Lookup("confine").NoOptDefVal = "default"
	cmd.Flags().StringSliceVar(&allow, "allow", nil, "a `HOST` that the box may reach, and no others")
	cmd.Flags().StringVar(&reason, "reason", "", "why, in words for the person who answers")
	cmd.Flags().StringVar(&host, "host", "", "the name of this machine to show (default: its own)")
	return cmd
}

// run takes an asking through the door and says how it ended.
func (e *env) run(ctx context.Context, ask flow.Asking, w waiting) error {
	if ask.Host == "" {
		var err error
		if ask.Host, err = hostname(); err != nil {
			return err
		}
	}
	c, settings, err := e.openToRun(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	if l := c.Login(); !l.Agent() && e.agent == "" {
		e.asPerson = l.Email
	}
	return e.pass(ctx, c, ask, w.limit(settings))
}

// pass is run with an open client.
func (e *env) pass(ctx context.Context, c *client.Client, ask flow.Asking, limit time.Duration) error {
	ask.Wait = limit
	door := flow.Door{
		Authority: c, Ledger: c, Executor: e.executor(), Now: e.now,
		Links: e.links,
		Covered: func(g api.Grant) {
			if g.Policy != "" {
				e.say(messages.PolicyUsed, terminal.Visible(g.DecidedBy))
				return
			}
			e.say(messages.StandingUsed, terminal.Visible(g.Standing), terminal.Visible(g.DecidedBy))
		},
		Announce: func(g api.Grant) { e.announce(g, limit) },
	}
	result, err := flow.Run(ctx, door, ask)
	if err != nil && ctx.Err() != nil && result.Grant.Status == grant.Pending {
		e.say(messages.StillWaits, e.executeLine(result.Grant.ID))
	}
	if result.Unreported != nil {
		e.say(messages.Unreported, terminal.Visible(result.Unreported.Error()))
	}
	if err != nil {
		return err
	}
	return e.ended(result, limit)
}

// ended says how an asking ended, and with which exit code.
func (e *env) ended(result flow.Result, limit time.Duration) error {
	g := result.Grant
	var code int
	switch result.Ending {
	case flow.Ran:
		if result.Exit.Code == 0 {
			return nil
		}
		return withCode(result.Exit.Code, nil)
	case flow.Waiting:
		code = exitUndecided
		e.pending(g)
	case flow.Unanswered:
		code = exitUndecided
		e.say(messages.Unanswered, formatDuration(limit))
		fmt.Fprintln(e.stderr, "Execute: "+e.executeLine(g.ID))
	case flow.Denied:
		code = exitRefused
		e.say(messages.Denied, g.ID, terminal.Visible(g.DecidedBy))
	case flow.Revoked:
		code = exitRefused
		e.say(messages.Revoked, g.ID)
	case flow.Expired:
		code = exitSpent
		if g.DecidedAt == 0 {
			e.say(messages.ExpiredUnanswered, g.ID)
		} else {
			e.say(messages.Expired, g.ID)
		}
	case flow.Used:
		code = exitSpent
		e.say(messages.Used, g.ID)
	case flow.Refused:
		code = exitRefused
		e.say(messages.UnknownState, g.ID, terminal.Visible(string(g.Status)))
	}
	if g.Note != "" && code != exitUndecided {
		e.say(messages.NoteOf, terminal.Visible(g.DecidedBy), terminal.Visible(g.Note))
	}
	if e.json {
		answer := map[string]any{
			"grant": g.ID, "status": g.Status, "exit_code": code,
			"approve_url": g.ApproveURL, "execute": e.executeLine(g.ID), "note": g.Note,
		}
		if err := e.print(answer, nil); err != nil {
			return err
		}
	}
	return withCode(code, nil)
}

// executeLine is the command that goes on with a grant.
func (e *env) executeLine(id string) string {
	line := "vogt grant run " + id + " --wait"
	if e.agentSet && e.agent != "" {
		line += " --agent " + e.agent
	}
	return line
}

// labels writes what everybody who reads a waiting request needs. The labels
// are the same in every language.
func (e *env) labels(g api.Grant, status string) {
	if e.asPerson != "" {
		e.say(messages.AsksAsYou, terminal.Visible(e.asPerson))
	}
	fmt.Fprintf(e.stderr, "Grant: %s\n", terminal.Visible(g.ID))
	fmt.Fprintf(e.stderr, "Approve: %s\n", terminal.Visible(g.ApproveURL))
	fmt.Fprintf(e.stderr, "Status: %s\n", status)
}

// pending tells an agent that does not wait what to do next.
func (e *env) pending(g api.Grant) {
	if e.json {
		return // the object on standard output says the same
	}
	e.labels(g, "pending "+e.text(messages.PendingStatus, terminal.Visible(g.Owner), terminal.Visible(g.Risk)))
	fmt.Fprintf(e.stderr, "Execute: %s\n", e.executeLine(g.ID))
	fmt.Fprintf(e.stderr, "\n%s\n", e.text(messages.PendingSteps))
}

// announce says that the wait for a person begins.
func (e *env) announce(g api.Grant, limit time.Duration) {
	e.labels(g, "pending "+e.text(messages.WaitingStatus, terminal.Visible(g.Owner), formatDuration(limit)))
}

// line is a text that stands alone on its line.
func line(text string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := fmt.Fprintln(w, text)
		return err
	}
}
