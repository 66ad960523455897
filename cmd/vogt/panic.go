package main

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"vogt/cmd/vogt/messages"
	"vogt/internal/api"
	"vogt/internal/client"
	"vogt/internal/terminal"
)

func newPanicCommand(e *env) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "panic",
		Short: "Stop every agent at once; the login suffices",
		Long: `Stop every agent at once: all are paused, their logins end, and what waits or is
permitted once is revoked. The boxes of agents that were started on this machine are
stopped; a command that runs elsewhere goes on. "vogt resume" takes it back.`,
		Args: cobra.NoArgs,
		RunE: command(func(cmd *cobra.Command, _ []string) error {
			// The processes first: they are near, and the authority may be away.
			stopped := e.pauseAllHere(cmd.Context())
			c, err := e.openOwner(cmd.Context())
			if err != nil {
				return errors.Join(err, stopped)
			}
			defer c.Close()
			result, err := c.Panic(cmd.Context(), reason)
			if err := errors.Join(err, stopped); err != nil {
				return err
			}
			return e.print(result, line(e.text(messages.Panicked,
				e.count(result.Agents, messages.OneAgent, messages.ManyAgents),
				e.count(result.Tokens, messages.OneLogin, messages.ManyLogins),
				e.count(result.Grants, messages.OneGrant, messages.ManyGrants))))
		}),
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the record")
	return cmd
}

// count says how many there are.
func (e *env) count(n int64, one, many messages.Key) string {
	if n == 1 {
		return e.text(one)
	}
	return e.text(many, n)
}

func newResumeCommand(e *env) *cobra.Command {
	var ownerKey string
	cmd := &cobra.Command{
		Use:   "resume [NAME]",
		Short: "Let an agent that was paused or switched off, or all paused ones, go on",
		Long: `Let a paused agent go on, or all of yours when none is named. This is a change
of trust: it is signed with the SSH key of your login, or confirmed on the page
whose address is printed.`,
		Args: cobra.MaximumNArgs(1),
		RunE: command(func(cmd *cobra.Command, args []string) error {
			trust := trustOptions{key: ownerKey}
			if len(args) == 0 {
				return e.resumeAll(cmd.Context(), trust)
			}
			if a, there, err := osAgentOf(args[0]); err != nil || there {
				return errors.Join(err, e.resumeWithUser(cmd.Context(), args[0], a, ownerKey))
			}
			return e.withAgent(cmd.Context(), args[0], func(_ *client.Client, p api.Principal) error {
				email := terminal.Visible(p.Email)
				if !p.Paused && p.Active {
					paused := e.pausedHere(p.Name)
					if err := e.resumeHere(cmd.Context(), p.Name); err != nil {
						return err
					}
					if paused {
						return e.printResumed([]string{p.Email}, e.text(messages.GoesOnHere, email))
					}
					return e.printResumed(nil, e.text(messages.NotPaused, email))
				}
				return e.resume(cmd.Context(), trust, p.Email, []api.Principal{p}, e.text(messages.AgentResumed, email))
			})
		}),
	}
	cmd.Flags().StringVar(&ownerKey, "owner-key", "", "the SSH key `FILE` to sign with (default: that of the login)")
	return cmd
}

// resumeWithUser lets an agent with an OS user go on: first the person says so to
// the authority, then root lets the processes.
func (e *env) resumeWithUser(ctx context.Context, name string, a osAgent, ownerKey string) error {
	args := []string{"resume", name}
	if ownerKey != "" {
		args = append(args, "--owner-key", ownerKey)
	}
	out, err := e.asPersonUID(ctx, a.Person, nil, args...)
	if err != nil {
		return err
	}
	if _, err := e.stdout.Write(out); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, stopTime)
	defer cancel()
	return a.pause(ctx, name, false)
}

// resumeAll lets every agent of the person go on. Without one that is paused at the
// authority there is nothing to sign.
func (e *env) resumeAll(ctx context.Context, trust trustOptions) error {
	c, err := e.openOwner(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	agents, err := c.Agents(ctx)
	if err != nil {
		return err
	}
	var paused, here []api.Principal // here: on this machine only
	for _, p := range agents {
		switch {
		case p.Paused:
			paused = append(paused, p)
		case e.pausedHere(p.Name):
			here = append(here, p)
		}
	}
	if len(paused) > 0 {
		return e.resume(ctx, trust, "", append(paused, here...), e.text(messages.AllResumed))
	}
	for _, p := range agents { // also those of which a box was left stopped
		if err := e.resumeHere(ctx, p.Name); err != nil {
			return err
		}
	}
	var emails, said []string
	for _, p := range here {
		emails = append(emails, p.Email)
		said = append(said, e.text(messages.GoesOnHere, terminal.Visible(p.Email)))
	}
	if here == nil {
		said = []string{e.text(messages.NonePaused)}
	}
	return e.printResumed(emails, strings.Join(said, "\n"))
}

// resume makes the change of trust for one agent, or for all when email is
// empty.
func (e *env) resume(ctx context.Context, trust trustOptions, email string, agents []api.Principal, said string) error {
	params := map[string]string{}
	if email != "" {
		params["email"] = email
	}
	if _, _, err := e.changeTrust(ctx, trust, api.TrustAgentResume, params); err != nil {
		return err
	}
	var emails []string
	for _, p := range agents {
		emails = append(emails, p.Email)
		if err := e.resumeHere(ctx, p.Name); err != nil {
			return err
		}
	}
	return e.printResumed(emails, said)
}

// printResumed answers with who goes on now.
func (e *env) printResumed(emails []string, said string) error {
	if emails == nil {
		emails = []string{}
	}
	return e.print(map[string][]string{"resumed": emails}, line(said))
}
