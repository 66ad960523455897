package main

import (
	"context"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"vogt/cmd/vogt/messages"
	"vogt/internal/api"
	"vogt/internal/client"
	"vogt/internal/grant"
	"vogt/internal/terminal"
)

func newDelegationCommand(e *env) *cobra.Command {
	return newGroup("delegation", "Let others use a service in your place",
		newDelegationAddCommand(e), newDelegationListCommand(e), newDelegationShowCommand(e),
		newDelegationRevokeCommand(e), newDelegationValidateCommand(e),
	)
}

func newDelegationAddCommand(e *env) *cobra.Command {
	var at, until string
	var scopes []string
	var lasting duration
	var always bool
	var trust trustOptions
	cmd := &cobra.Command{
		Use:   "add DELEGATE --at SERVICE [flags]",
		Short: "Let an agent or a person be in your place at a service",
		Long: `Let DELEGATE, an agent of yours by name or anybody enrolled here by address, log in
at a service in your place, with the scopes that you name and no others. The service
is told both of you: on whose behalf, and who acts.

Unless you say otherwise it is for one use, within a week. With --for or --until it is
for any number of uses until that time, with --always until you revoke it.

A delegation is never one at this authority: nobody answers requests, signs patterns
or delegates further in your name with it. Signing is a change of trust: it is signed
with the SSH key of your login, or confirmed on the page whose address is printed.`,
		Example: `  vogt delegation add coder --at plans.example.com --scope plans:read
  vogt delegation add coder --at plans.example.com --scope plans:read,plans:write --for 30d`,
		Args: cobra.ExactArgs(1),
		RunE: command(func(cmd *cobra.Command, args []string) error {
			params := map[string]string{"audience": at, "scopes": strings.Join(scopes, " "), "grant_type": string(grant.Once)}
			switch {
			case at == "":
				return &usageError{text: e.text(messages.DelegateWhere)}
			case always && lasting > 0, always && until != "", lasting > 0 && until != "":
				return &usageError{text: e.text(messages.OneEnd)}
			case always:
				params["grant_type"] = string(grant.Always)
			case lasting > 0:
				params["grant_type"], params["duration"] = string(grant.Timed), strconv.FormatInt(int64(time.Duration(lasting)/time.Second), 10)
			case until != "":
				end, err := e.pointInTime(until)
				if err != nil {
					return err
				}
				params["grant_type"], params["expires_at"] = string(grant.Timed), end.Format(time.RFC3339)
			}
			return e.addDelegation(cmd.Context(), args[0], params, trust)
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&at, "at", "", "the `SERVICE`, as it names itself (* for any)")
	flags.StringSliceVar(&scopes, "scope", nil, "a `SCOPE` of the service; without any, nothing is permitted there")
	flags.Var(&lasting, "for", "for so long: 30s, 5m, 1h, 7d")
	flags.StringVar(&until, "until", "", "until a `TIME`: 2030-01-31 or 2030-01-31T12:00:00Z")
	flags.BoolVar(&always, "always", false, "until you revoke it")
	flags.StringVar(&trust.key, "owner-key", "", "the SSH key `FILE` to sign with (default: that of the login)")
	return cmd
}

// pointInTime reads a time, or a day, which then ends in this place's time.
func (e *env) pointInTime(text string) (time.Time, error) {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at.UTC(), nil
	}
	day, err := time.ParseInLocation(time.DateOnly, text, time.Local)
	if err != nil {
		return day, &usageError{text: e.text(messages.BadTime, text)}
	}
	return day.AddDate(0, 0, 1).Add(-time.Second).UTC(), nil
}

func (e *env) addDelegation(ctx context.Context, who string, params map[string]string, trust trustOptions) (err error) {
	if params["delegate"], err = e.agentAddress(ctx, who); err != nil {
		return err
	}
	// The authority answers with the one form of what is signed, and nothing else is.
	params["delegate"] = strings.ToLower(params["delegate"])
	scopes := strings.Fields(params["scopes"])
	slices.Sort(scopes)
	if params["scopes"] = strings.Join(slices.Compact(scopes), " "); len(scopes) == 0 {
		delete(params, "scopes")
	}
	done, authority, err := e.changeTrust(ctx, trust, api.TrustDelegationAdd, params)
	if err != nil {
		return err
	}
	if done.Delegation == nil {
		return &client.Error{Kind: client.Malformed, Where: authority, Detail: "the delegation is missing in the answer"}
	}
	return e.print(done.Delegation, func(w io.Writer) error {
		s := &sheet{w: w}
		s.delegation(*done.Delegation)
		return s.err
	})
}

// delegation shows one whole.
func (s *sheet) delegation(d api.Delegation) {
	s.fact("ID", d.ID)
	s.fact("State", inForce(d.Status))
	s.fact("From", d.Delegator)
	s.fact("To", d.Delegate)
	at := d.Audience
	if at == "*" {
		at = "any service"
	}
	s.fact("At", at)
	s.fact("Scopes", scopesText(d.Scopes))
	uses := "one use"
	if d.Request.Type != grant.Once {
		uses = "any number of uses"
	}
	end := "until it is revoked"
	if d.ExpiresAt != 0 {
		end = "until " + moment(d.ExpiresAt)
	}
	s.fact("For", uses+", "+end)
	s.fact("Signed", moment(d.DecidedAt)+" by "+d.DecidedBy+" ("+string(d.Strength)+", record "+strconv.FormatInt(d.Record, 10)+")")
	used := strconv.FormatInt(d.Uses, 10)
	if d.UsedAt != 0 {
		used += ", last " + moment(d.UsedAt)
	}
	s.fact("Used", used)
}

func inForce(s grant.Status) string {
	if s == grant.Approved {
		return "in force"
	}
	return string(s)
}

func scopesText(scopes []string) string {
	if len(scopes) == 0 {
		return "none"
	}
	return strings.Join(scopes, ", ")
}

func newDelegationListCommand(e *env) *cobra.Command {
	var all, given, received bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the delegations in force that you gave or may use",
		Args:  cobra.NoArgs,
		RunE: command(func(cmd *cobra.Command, _ []string) error {
			role := ""
			switch {
			case given && !received:
				role = "delegator"
			case received && !given:
				role = "delegate"
			}
			return e.listDelegations(cmd.Context(), role, all)
		}),
	}
	cmd.Flags().BoolVar(&all, "all", false, "those that are over, too")
	cmd.Flags().BoolVar(&given, "given", false, "only those that you gave")
	cmd.Flags().BoolVar(&received, "received", false, "only those that you may use")
	return cmd
}

func (e *env) listDelegations(ctx context.Context, role string, all bool) error {
	c, err := e.open(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	list, err := c.Delegations(ctx, role)
	if err != nil {
		return err
	}
	shown := []api.Delegation{}
	for _, d := range list {
		if all || d.Status == grant.Approved {
			shown = append(shown, d)
		}
	}
	return e.print(shown, func(w io.Writer) error {
		if len(shown) == 0 {
			return line(e.text(messages.NoDelegations))(w)
		}
		table := terminal.Table{Header: []string{"ID", "STATE", "FROM", "TO", "AT", "SCOPES", "USED", "ENDS"}, Width: terminal.Width(e.stdout)}
		for _, d := range shown {
			ends := "-"
			if d.ExpiresAt != 0 {
				ends = onDay(d.ExpiresAt)
			}
			table.Rows = append(table.Rows, []string{d.ID, inForce(d.Status), d.Delegator, d.Delegate, d.Audience, scopesText(d.Scopes), strconv.FormatInt(d.Uses, 10), ends})
		}
		return table.Print(w)
	})
}

// withDelegation finds a delegation by its id, or what it begins with.
func (e *env) withDelegation(ctx context.Context, id string, do func(*client.Client, api.Delegation) error) error {
	c, err := e.open(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	list, err := c.Delegations(ctx, "")
	if err != nil {
		return err
	}
	d, ok := byID(list, id, func(d api.Delegation) string { return d.ID })
	if !ok {
		return &client.Error{Kind: client.Unknown, Detail: e.text(messages.NoSuchDelegation, terminal.Visible(id))}
	}
	return do(c, d)
}

func newDelegationShowCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "show ID",
		Short: "Show a delegation",
		Args:  cobra.ExactArgs(1),
		RunE: command(func(cmd *cobra.Command, args []string) error {
			return e.withDelegation(cmd.Context(), args[0], func(_ *client.Client, d api.Delegation) error {
				return e.print(d, func(w io.Writer) error {
					s := &sheet{w: w}
					s.delegation(d)
					return s.err
				})
			})
		}),
	}
}

func newDelegationRevokeCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "revoke ID…",
		Short: "Take delegations back that you gave; the login suffices",
		Args:  cobra.MinimumNArgs(1),
		RunE: command(func(cmd *cobra.Command, args []string) error {
			for _, id := range args {
				err := e.withDelegation(cmd.Context(), id, func(c *client.Client, d api.Delegation) error {
					done, err := c.RevokeDelegation(cmd.Context(), d.ID)
					if err != nil {
						return err
					}
					return e.print(done, line(e.text(messages.DelegationRevoked, d.ID)))
				})
				if err != nil {
					return err
				}
			}
			return nil
		}),
	}
}

func newDelegationValidateCommand(e *env) *cobra.Command {
	var in api.ValidateDelegation
	cmd := &cobra.Command{
		Use:   "validate ID --at SERVICE",
		Short: "Say whether a delegation may be used now, without using it",
		Args:  cobra.ExactArgs(1),
		RunE: command(func(cmd *cobra.Command, args []string) error {
			return e.withDelegation(cmd.Context(), args[0], func(c *client.Client, d api.Delegation) error {
				if in.Delegate == "" {
					in.Delegate = d.Delegate
				}
				if in.Audience == "" {
					in.Audience = d.Audience
				}
				out, err := c.ValidateDelegation(cmd.Context(), d.ID, in)
				if err != nil {
					return err
				}
				text := e.text(messages.DelegationValid, d.ID)
				if !out.Valid {
					text = out.Error
				}
				if err := e.print(out, line(terminal.Visible(text))); err != nil || out.Valid {
					return err
				}
				return withCode(exitRefused, errors.New(e.text(messages.DelegationInvalid, d.ID)))
			})
		}),
	}
	cmd.Flags().StringVar(&in.Audience, "at", "", "the `SERVICE` (default: that of the delegation)")
	cmd.Flags().StringVar(&in.Delegate, "as", "", "the `DELEGATE` by address (default: that of the delegation)")
	return cmd
}
