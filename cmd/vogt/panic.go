package main

import (
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
permitted once is revoked. A command that already runs goes on. "vogt resume"
takes it back.`,
		Args: cobra.NoArgs,
		RunE: command(func(cmd *cobra.Command, _ []string) error {
			c, err := e.openOwner(cmd.Context())
			if err != nil {
				return err
			}
			defer c.Close()
			result, err := c.Panic(cmd.Context(), reason)
			if err != nil {
				return err
			}
			return e.print(result, line(e.text(messages.Panicked, result.Agents, result.Tokens, result.Grants)))
		}),
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the record")
	return cmd
}

func newResumeCommand(e *env) *cobra.Command {
	var ownerKey string
	cmd := &cobra.Command{
		Use:   "resume [NAME]",
		Short: "Let a paused agent, or all of yours, go on",
		Long: `Let a paused agent go on, or all of yours when none is named. This is a change
of trust: it is signed with the SSH key of your login, or confirmed on the page
whose address is printed.`,
		Args: cobra.MaximumNArgs(1),
		RunE: command(func(cmd *cobra.Command, args []string) error {
			resume := func(params map[string]string, said string) error {
				_, _, err := e.changeTrust(cmd.Context(), trustOptions{key: ownerKey}, api.TrustAgentResume, params)
				if err != nil {
					return err
				}
				return e.print(params, line(said))
			}
			if len(args) == 0 {
				return resume(map[string]string{}, e.text(messages.AllResumed))
			}
			return e.withAgent(cmd.Context(), args[0], func(_ *client.Client, p api.Principal) error {
				return resume(map[string]string{"email": p.Email}, e.text(messages.AgentResumed, terminal.Visible(p.Email)))
			})
		}),
	}
	cmd.Flags().StringVar(&ownerKey, "owner-key", "", "the SSH key `FILE` to sign with (default: that of the login)")
	return cmd
}
