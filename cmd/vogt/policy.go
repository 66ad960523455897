package main

import (
	"context"
	"encoding/json"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"vogt/cmd/vogt/messages"
	"vogt/internal/api"
	"vogt/internal/client"
	"vogt/internal/grant"
)

func newPolicyCommand(e *env) *cobra.Command {
	return newGroup("policy", "Approve an agent's requests by a list, without cards",
		newPolicyShowCommand(e), newPolicySetCommand(e), newPolicyClearCommand(e),
	)
}

func newPolicySetCommand(e *env) *cobra.Command {
	var p grant.Policy
	var trust trustOptions
	var risk string
	days := grant.DefaultDays
	cmd := &cobra.Command{
		Use:   "set NAME [flags]",
		Short: "Sign a policy: what it admits runs without a card",
		Long: `Sign an auto-approval policy for one agent, in the place of the one before.

Each program that a request would start is compared by itself. With --allow only
what a list names is approved; without it everything that the authority can read,
but for what --deny names. What is denied is asked in both. A pattern is words: a
word * stands for one or more words, a * in a word for a part of one name.

Never approved, whatever the lists say: what is critical or cannot be read, words
that are not known before they run, redirections into files, credentials, files
that execute or steer later, further shells and hosts; and outside of a box what
could run the agent's own code. Patterns that say where a program may act are
standing grants: vogt standing add.`,
		Example: `  vogt policy set coder --allow "echo *" --allow date
  vogt policy set coder --deny "git push *" --deny "rm *" --deny-risk high --days 7`,
		Args: cobra.ExactArgs(1),
		RunE: command(func(cmd *cobra.Command, args []string) error {
			if risk != "" {
				if err := p.DenyRisk.UnmarshalText([]byte(risk)); err != nil {
					return &usageError{text: e.text(messages.BadPolicy, err.Error())}
				}
			}
			p.Mode = grant.DenyList
			if cmd.Flags().Changed("allow") {
				p.Mode = grant.AllowList
			}
			return e.setPolicy(cmd.Context(), args[0], p, days, trust)
		}),
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&p.Allow, "allow", nil, "a `PATTERN` of words that is approved, and nothing else")
	flags.StringArrayVar(&p.Deny, "deny", nil, "a `PATTERN` of words that is asked")
	flags.StringVar(&risk, "deny-risk", "", "the `RISK` from which everything is asked: low, medium, high or critical")
	flags.StringVar(&p.Audience, "audience", "*", "only requests meant for this `AUDIENCE`")
	flags.Int64Var(&p.Limits.PerMinute, "per-minute", 0, "how many uses a minute, before it is paused (default: 60)")
	flags.Int64Var(&p.Limits.Deletes, "deletes", 0, "how many uses an hour that delete (default: 50)")
	flags.IntVar(&days, "days", days, "how many days it lasts")
	flags.StringVar(&trust.key, "owner-key", "", "the SSH key `FILE` to sign with (default: that of the login)")
	return cmd
}

func (e *env) setPolicy(ctx context.Context, name string, p grant.Policy, days int, trust trustOptions) error {
	var err error
	if p.Agent, err = e.agentAddress(ctx, name); err != nil {
		return err
	}
	if p, err = p.Complete(); err != nil {
		return &usageError{text: e.text(messages.BadPolicy, err.Error())}
	}
	encoded, err := json.Marshal(p)
	if err != nil {
		return err
	}
	done, authority, err := e.changeTrust(ctx, trust, api.TrustPolicySet, map[string]string{"policy": string(encoded), "days": strconv.Itoa(days)})
	if err != nil {
		return err
	}
	if done.Policy == nil {
		return &client.Error{Kind: client.Malformed, Where: authority, Detail: "the policy is missing in the answer"}
	}
	return e.print(done.Policy, func(w io.Writer) error {
		s := &sheet{w: w}
		s.policy(*done.Policy)
		return s.err
	})
}

// policy shows a policy whole.
func (s *sheet) policy(p api.Policy) {
	state := "in force"
	if p.Paused != "" {
		state = "paused: " + p.Paused + "; set it anew to let it go on"
	}
	s.fact("Agent", p.Agent)
	s.fact("State", state)
	if p.Audience != "*" {
		s.fact("Audience", p.Audience)
	}
	s.fact("Mode", string(p.Mode))
	s.some("Approves", strings.Join(p.Allow, "; "))
	s.some("Denies", strings.Join(p.Deny, "; "))
	if p.DenyRisk != nil {
		s.fact("Asks from", "risk "+*p.DenyRisk)
	}
	s.some("Signed", moment(p.EnabledAt)+" by "+p.By+" ("+string(p.Strength)+", record "+strconv.FormatInt(p.Record, 10)+")")
	if p.ExpiresAt != nil {
		s.some("Ends", moment(*p.ExpiresAt))
	}
	used := strconv.FormatInt(p.Uses, 10)
	if p.LastUsedAt != 0 {
		used += ", last " + moment(p.LastUsedAt)
	}
	s.fact("Used", used)
}

func newPolicyShowCommand(e *env) *cobra.Command {
	var audience string
	cmd := &cobra.Command{
		Use:   "show NAME",
		Short: "Show the policy of an agent",
		Args:  cobra.ExactArgs(1),
		RunE: command(func(cmd *cobra.Command, args []string) error {
			return e.withPolicyOf(cmd.Context(), args[0], func(c *client.Client, agent string) error {
				p, err := c.Policy(cmd.Context(), agent, audience)
				if err != nil {
					return err
				}
				if p.Whole == nil {
					return e.print(p, line(e.text(messages.NoPolicy, agent)))
				}
				return e.print(p.Whole, func(w io.Writer) error {
					s := &sheet{w: w}
					s.policy(*p.Whole)
					return s.err
				})
			})
		}),
	}
	cmd.Flags().StringVar(&audience, "audience", "*", "the one for this `AUDIENCE`")
	return cmd
}

func newPolicyClearCommand(e *env) *cobra.Command {
	var audience string
	cmd := &cobra.Command{
		Use:   "clear NAME",
		Short: "End the policy of an agent, and what it gave and nobody has used; the login suffices",
		Args:  cobra.ExactArgs(1),
		RunE: command(func(cmd *cobra.Command, args []string) error {
			return e.withPolicyOf(cmd.Context(), args[0], func(c *client.Client, agent string) error {
				if err := c.ClearPolicy(cmd.Context(), agent, audience); err != nil {
					return err
				}
				return e.print(map[string]any{"agent": agent, "policy": nil}, line(e.text(messages.PolicyCleared, agent)))
			})
		}),
	}
	cmd.Flags().StringVar(&audience, "audience", "*", "the one for this `AUDIENCE`")
	return cmd
}

// withPolicyOf calls do with the person's login and the agent's address.
func (e *env) withPolicyOf(ctx context.Context, name string, do func(*client.Client, string) error) error {
	return e.withAgent(ctx, name, func(c *client.Client, p api.Principal) error { return do(c, p.Email) })
}
