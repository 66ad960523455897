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
	"vogt/internal/flow"
	"vogt/internal/grant"
	"vogt/internal/reading"
	"vogt/internal/terminal"
)

func newGrantCommand(e *env) *cobra.Command {
	return newGroup("grant", "See, answer and use requests and permissions",
		newGrantListCommand(e), newGrantInboxCommand(e), newGrantShowCommand(e), newGrantStatusCommand(e),
		newGrantApproveCommand(e), newGrantDenyCommand(e), newGrantRevokeCommand(e),
		newGrantTokenCommand(e), newGrantReceiptCommand(e), newGrantRunCommand(e),
	)
}

func newGrantListCommand(e *env) *cobra.Command {
	var filter client.Filter
	var status string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List requests and permissions, newest first",
		Args:  cobra.NoArgs,
		RunE: command(func(cmd *cobra.Command, _ []string) error {
			filter.Status = grant.Status(status)
			return e.listGrants(cmd.Context(), filter, false)
		}),
	}
	cmd.Flags().StringVar(&status, "status", "", "only those in this state: pending, approved, denied, revoked, expired or used")
	cmd.Flags().StringVar(&filter.Requester, "requester", "", "only those of this agent, by its `EMAIL`")
	cmd.Flags().IntVar(&filter.Limit, "limit", 50, "at most so many; 0 for all")
	return cmd
}

func newGrantInboxCommand(e *env) *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use:   "inbox",
		Short: "List the requests that wait for your answer",
		Args:  cobra.NoArgs,
		RunE: command(func(cmd *cobra.Command, _ []string) error {
			return e.listGrants(cmd.Context(), client.Filter{Status: grant.Pending, Limit: limit}, true)
		}),
	}
	cmd.Flags().IntVar(&limit, "limit", 0, "at most so many; 0 for all")
	return cmd
}

// listGrants prints the grants that pass the filter; for an inbox, only what
// the caller can answer.
func (e *env) listGrants(ctx context.Context, filter client.Filter, inbox bool) error {
	open := e.openActing
	if inbox {
		open = e.open // only a person answers
	}
	c, err := open(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	all := []api.Grant{}
	// An agent answers nothing, so nothing waits for its answer.
	if !inbox || !c.Login().Agent() {
		if all, err = c.Grants(ctx, filter); err != nil {
			return err
		}
	}
	return e.print(all, func(w io.Writer) error {
		if len(all) == 0 {
			return line(e.text(messages.NoGrants))(w)
		}
		table := terminal.Table{Header: []string{"ID", "STATUS", "RISK", "REQUESTER", "AGE", "COMMAND"}, Width: terminal.Width(e.stdout)}
		for _, g := range all {
			command := ""
			if g.Request != nil {
				command = reading.Line(g.Request.Command)
				if g.Request.Connect != nil {
					command = g.Request.Connect.Network().Mode()
				}
			}
			table.Rows = append(table.Rows, []string{g.ID, string(g.Status), g.Risk, g.Requester, e.age(g.CreatedAt), command})
		}
		return table.Print(w)
	})
}

// age is how long ago a time in Unix seconds was, roughly.
func (e *env) age(at int64) string {
	if at == 0 {
		return ""
	}
	switch d := e.now().Sub(time.Unix(at, 0)); {
	case d < time.Minute:
		return fmt.Sprintf("%ds", max(0, int(d.Seconds())))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < day:
		return fmt.Sprintf("%dh", int(d.Hours()))
	default:
		return fmt.Sprintf("%dd", int(d/day))
	}
}

func newGrantShowCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "show ID",
		Short: "Show a request or permission in full",
		Args:  cobra.ExactArgs(1),
		RunE: command(func(cmd *cobra.Command, args []string) error {
			return e.withGrant(cmd.Context(), args[0], func(_ *client.Client, g api.Grant) error {
				return e.print(g, func(w io.Writer) error { return e.showGrant(w, g) })
			})
		}),
	}
}

// withGrant opens a client and reads a grant with it.
func (e *env) withGrant(ctx context.Context, id string, do func(*client.Client, api.Grant) error) error {
	c, err := e.openActing(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	g, err := c.Grant(ctx, id)
	if err != nil {
		return err
	}
	return do(c, g)
}

func newGrantStatusCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "status ID",
		Short: "Print the state of a request, and exit accordingly",
		Long: `Print the state of a request in one word, and exit with 0 when it is approved,
75 when it is pending, 76 when it is used or expired, and 77 when it is denied
or revoked.`,
		Args: cobra.ExactArgs(1),
		RunE: command(func(cmd *cobra.Command, args []string) error {
			return e.withGrant(cmd.Context(), args[0], func(_ *client.Client, g api.Grant) error {
				if err := e.print(g, line(terminal.Visible(string(g.Status)))); err != nil {
					return err
				}
				if code := statusCode(g.Status); code != 0 {
					return withCode(code, nil)
				}
				return nil
			})
		}),
	}
}

func statusCode(s grant.Status) int {
	switch s {
	case grant.Approved:
		return 0
	case grant.Pending:
		return exitUndecided
	case grant.Used, grant.Expired:
		return exitSpent
	case grant.Denied, grant.Revoked:
	}
	return exitRefused
}

func newGrantDenyCommand(e *env) *cobra.Command {
	var note string
	cmd := &cobra.Command{
		Use:   "deny ID…",
		Short: "Say no to requests; the login suffices",
		Args:  cobra.MinimumNArgs(1),
		RunE: command(func(cmd *cobra.Command, args []string) error {
			return e.narrow(cmd.Context(), args, e.open, func(c *client.Client, id string) (api.Grant, error) {
				return c.Deny(cmd.Context(), id, note)
			})
		}),
	}
	cmd.Flags().StringVar(&note, "note", "", "a word to the agent: why not, or what instead")
	return cmd
}

func newGrantRevokeCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "revoke ID…",
		Short: "Take requests or permissions back; the login suffices",
		Args:  cobra.MinimumNArgs(1),
		RunE: command(func(cmd *cobra.Command, args []string) error {
			return e.narrow(cmd.Context(), args, e.openActing, func(c *client.Client, id string) (api.Grant, error) {
				return c.Revoke(cmd.Context(), id)
			})
		}),
	}
}

// opener opens a client.
type opener func(context.Context) (*client.Client, error)

// narrow does the same with several grants. One that fails does not keep the
// others from it.
func (e *env) narrow(ctx context.Context, ids []string, open opener, do func(*client.Client, string) (api.Grant, error)) error {
	c, err := open(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	done := []api.Grant{}
	var failed error
	for _, id := range ids {
		g, err := do(c, id)
		switch {
		case err == nil:
			done = append(done, g)
		case failed == nil:
			failed = err
		default:
			e.report(e.explain(&commandError{err}))
		}
	}
	if len(done) == 0 {
		return failed
	}
	err = e.print(done, func(w io.Writer) error {
		for _, g := range done {
			fmt.Fprintf(w, "%s %s\n", g.ID, g.Status)
		}
		return nil
	})
	return errors.Join(failed, err)
}

func newGrantTokenCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "token ID",
		Short: "Print the verified token of an approved grant, for tools of your own",
		Args:  cobra.ExactArgs(1),
		RunE: command(func(cmd *cobra.Command, args []string) error {
			c, _, err := e.openToRun(cmd.Context())
			if err != nil {
				return err
			}
			defer c.Close()
			g, err := c.Grant(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if g.Request == nil {
				return notYours(args[0])
			}
			raw, err := c.Token(cmd.Context(), g.ID, *g.Request)
			if err != nil {
				return err
			}
			return e.print(map[string]string{"authz_jwt": raw}, line(raw))
		}),
	}
}

func notYours(id string) error {
	return &client.Error{Kind: client.Refused, Detail: fmt.Sprintf("grant %q belongs to somebody else", id)}
}

func newGrantRunCommand(e *env) *cobra.Command {
	var w waiting
	var host string
	cmd := &cobra.Command{
		Use:   "run ID",
		Short: "Run the command of a grant, here and now",
		Long: `Run the command of a grant that was asked for with "vogt run". It runs in the
folder where it was asked for, so call it there, and in a box if it was asked for
with --confine. With --wait, vogt waits for
the answer first; without, it exits with 75 while nobody has answered.`,
		Args: cobra.ExactArgs(1),
		RunE: command(func(cmd *cobra.Command, args []string) error {
			if err := w.check(e); err != nil {
				return err
			}
			if host == "" {
				var err error
				if host, err = hostname(); err != nil {
					return err
				}
			}
			ctx := cmd.Context()
			c, settings, err := e.openToRun(ctx)
			if err != nil {
				return err
			}
			defer c.Close()
			g, err := c.Grant(ctx, args[0])
			if err != nil {
				return err
			}
			if g.Request == nil {
				return notYours(args[0])
			}
			if g.Status.Terminal() {
				return e.ended(flow.Result{Ending: flow.EndingOf(g.Status), Grant: g}, 0)
			}
			if e.box, err = e.boxOf(g); err != nil {
				return err
			}
			return e.pass(ctx, c, flow.Asking{Argv: g.Request.Command, Grant: g.ID, Host: host}, w.limit(settings))
		}),
	}
	w.addFlags(cmd)
	cmd.Flags().StringVar(&host, "host", "", "the name of this machine, as it was asked for (default: its own)")
	return cmd
}
