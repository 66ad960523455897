package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"vogt/cmd/vogt/messages"
	"vogt/internal/osuser"
	"vogt/internal/terminal"
)

func newAgentUserCommand(e *env) *cobra.Command {
	return newGroup("user", "Give agents OS users of their own (as root)",
		newOwnKeyCommand(e), newEnrolCommand(e), newOwnLoginCommand(e),
		newAgentUserAddCommand(e), newAgentUserRemoveCommand(e), newAgentUserCheckCommand(e),
		e.agentUserSignal("pause", "Stop all processes of an agent's OS user", osuser.Pause),
		e.agentUserSignal("resume", "Let the processes of an agent's OS user go on", osuser.Resume),
		e.agentUserSignal("kill", "End all processes of an agent's OS user", osuser.Kill),
	)
}

func newAgentUserAddCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "add NAME",
		Short: "Make an OS user for an agent",
		Long: `Make an OS user, vogt-NAME, with a home and a group of its own, no password and no
shell; no cron, at, lingering, ssh or polkit; and a systemd slice with limits. A user
id is never given twice. What was made is written down first, so that "vogt agent
user remove" undoes it, also after a crash; a second call finishes what was begun.

It runs as root: sudo vogt agent user add NAME`,
		Args: cobra.ExactArgs(1),
		RunE: command(func(cmd *cobra.Command, args []string) error {
			u, err := osuser.Add(cmd.Context(), osuser.Spec{Name: args[0]})
			if err != nil {
				return withCode(exitCannotRun, err)
			}
			return e.print(u, func(w io.Writer) error {
				s := &sheet{w: w}
				s.fact("User", fmt.Sprintf("%s (%d)", u.Name, u.UID))
				s.fact("Home", u.Home)
				s.fact("Keys", u.Keys)
				s.some("Slice", u.Slice)
				s.fact("Next", "sudo -u "+u.Name+" -H -- vogt confine -- COMMAND")
				return s.err
			})
		}),
	}
}

func newAgentUserRemoveCommand(e *env) *cobra.Command {
	var keep, archive bool
	cmd := &cobra.Command{
		Use:   "remove NAME --keep-home|--archive-home",
		Short: "Remove an agent's OS user",
		Long: `Undo what "vogt agent user add" made, and end what still runs as the user. The home
is kept where it is, or moved to a folder that only root can enter; it is never
deleted. What somebody else has changed since stays, and is named.`,
		Args: cobra.ExactArgs(1),
		RunE: command(func(cmd *cobra.Command, args []string) error {
			choice := osuser.HomeUndecided
			switch {
			case keep == archive:
				return &usageError{text: e.text(messages.HomeUndecided)}
			case keep:
				choice = osuser.KeepHome
			case archive:
				choice = osuser.ArchiveHome
			}
			r, err := osuser.Remove(cmd.Context(), osuser.Spec{Name: args[0]}, choice)
			if err != nil {
				return withCode(exitCannotRun, err)
			}
			return e.print(r, func(w io.Writer) error {
				s := &sheet{w: w}
				s.some("Home", r.Home)
				for _, left := range r.Left {
					s.fact("Left", left)
				}
				return s.err
			})
		}),
	}
	cmd.Flags().BoolVar(&keep, "keep-home", false, "leave the home where it is")
	cmd.Flags().BoolVar(&archive, "archive-home", false, "move the home to where only root can read it")
	return cmd
}

func newAgentUserCheckCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "check NAME",
		Short: "Try what an agent's OS user promises",
		Long: `Test each promise of an agent's OS user against this machine: the user and its id,
password, groups, home and keys, cron, at, lingering, ssh, the files that were made.
It exits with 1 when one is not kept.`,
		Args: cobra.ExactArgs(1),
		RunE: command(func(cmd *cobra.Command, args []string) error {
			findings := osuser.Check(cmd.Context(), osuser.Spec{Name: args[0]})
			kept := true
			for _, f := range findings {
				kept = kept && f.Kept
			}
			err := e.print(findings, func(w io.Writer) error {
				for _, f := range findings {
					mark := "kept"
					if !f.Kept {
						mark = "BROKEN"
					}
					fmt.Fprintf(w, "%-7s %-12s %s\n", mark, f.Promise, terminal.Visible(f.Text))
					if !f.Kept && f.Remedy != "" {
						fmt.Fprintf(w, "%-20s fix: %s\n", "", terminal.Visible(f.Remedy))
					}
				}
				return nil
			})
			if err == nil && !kept {
				err = withCode(exitMismatch, nil)
			}
			return err
		}),
	}
}

// agentUserSignal is a command that does something to all processes of a user.
func (e *env) agentUserSignal(verb, short string, do func(context.Context, osuser.Spec) error) *cobra.Command {
	return &cobra.Command{
		Use: verb + " NAME", Short: short, Args: cobra.ExactArgs(1),
		RunE: command(func(cmd *cobra.Command, args []string) error {
			if err := do(cmd.Context(), osuser.Spec{Name: args[0]}); err != nil {
				return withCode(exitCannotRun, err)
			}
			return nil
		}),
	}
}
