package main

import (
	"context"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"vogt/cmd/vogt/messages"
	"vogt/internal/api"
	"vogt/internal/client"
	"vogt/internal/terminal"
)

func newDeputyCommand(e *env) *cobra.Command {
	return newGroup("deputy", "Let another person answer requests while you are away",
		newDeputyAddCommand(e), newDeputyListCommand(e), newDeputyEndCommand(e),
	)
}

func newDeputyAddCommand(e *env) *cobra.Command {
	var agents []string
	var risk, from, until, reason string
	var trust trustOptions
	cmd := &cobra.Command{
		Use:   "add PERSON --until TIME [flags]",
		Short: "Appoint a person who answers requests in your place, within bounds",
		Long: `Appoint PERSON, by address, to allow or deny in your place what your agents ask for.
The bounds are part of what you sign: which agents, up to which risk, and from when
until when, within 92 days.

A deputy allows once, or for a time that ends with the appointment. What is critical
waits for you, and so do crossings, patterns, new agents and every other change of
trust. Cards, receipts and the log name the deputy and you. Ending it takes back what
was allowed under it and not used yet.`,
		Example: `  vogt deputy add ben@example.com --until 2030-08-20
  vogt deputy add ben@example.com --for coder --max-risk high --from 2030-08-01 --until 2030-08-20 --reason holidays`,
		Args: cobra.ExactArgs(1),
		RunE: command(func(cmd *cobra.Command, args []string) error {
			params := map[string]string{"deputy": strings.ToLower(args[0]), "max_risk": risk}
			if until == "" {
				return &usageError{text: e.text(messages.DeputyNeeds)}
			}
			end, err := e.pointInTime(until)
			if err != nil {
				return err
			}
			params["until"] = end.Truncate(time.Second).Format(time.RFC3339)
			if from != "" {
				begin, err := e.beginOf(from)
				if err != nil {
					return err
				}
				params["from"] = begin.Truncate(time.Second).Format(time.RFC3339)
			}
			if reason != "" {
				params["reason"] = reason
			}
			return e.addDeputy(cmd.Context(), agents, params, trust)
		}),
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&agents, "for", []string{"*"}, "an agent `NAME` whose requests the deputy answers (default: all of yours)")
	flags.StringVar(&risk, "max-risk", "medium", "the highest `RISK`: low, medium or high")
	flags.StringVar(&from, "from", "", "from a `TIME` on: 2030-01-31 or 2030-01-31T12:00:00Z (default: at once)")
	flags.StringVar(&until, "until", "", "until a `TIME`")
	flags.StringVar(&reason, "reason", "", "why, in words for both of you")
	flags.StringVar(&trust.key, "owner-key", "", "the SSH key `FILE` to sign with (default: that of the login)")
	return cmd
}

// beginOf reads a time, or a day, which begins in this place's time.
func (e *env) beginOf(text string) (time.Time, error) {
	if day, err := time.ParseInLocation(time.DateOnly, text, time.Local); err == nil {
		return day.UTC(), nil
	}
	return e.pointInTime(text)
}

func (e *env) addDeputy(ctx context.Context, agents []string, params map[string]string, trust trustOptions) error {
	var addresses []string
	for _, who := range agents {
		address, err := e.agentAddress(ctx, who)
		if err != nil {
			return err
		}
		addresses = append(addresses, strings.ToLower(address))
	}
	slices.Sort(addresses)
	params["agents"] = strings.Join(slices.Compact(addresses), ",")
	done, authority, err := e.changeTrust(ctx, trust, api.TrustDeputyAdd, params)
	if err != nil {
		return err
	}
	if done.Deputy == nil {
		return &client.Error{Kind: client.Malformed, Where: authority, Detail: "the deputy is missing in the answer"}
	}
	return e.print(done.Deputy, func(w io.Writer) error {
		s := &sheet{w: w}
		s.deputy(*done.Deputy)
		return s.err
	})
}

func (s *sheet) deputy(d api.Deputy) {
	s.fact("ID", d.ID)
	s.fact("State", strings.ReplaceAll(d.Status, "-", " "))
	s.fact("Deputy", d.Deputy)
	s.fact("For", d.Person)
	s.fact("Agents", agentsText(d.Agents))
	s.fact("Up to", "risk "+d.MaxRisk)
	s.fact("From", moment(d.From))
	s.fact("Until", moment(d.Until))
	s.some("Reason", d.Reason)
	s.fact("Signed", moment(d.CreatedAt)+" by "+d.Person+" ("+string(d.Strength)+", record "+strconv.FormatInt(d.Record, 10)+")")
	s.fact("Answers", strconv.FormatInt(d.Answers, 10))
}

func agentsText(agents []string) string {
	if slices.Contains(agents, "*") {
		return "all"
	}
	return strings.Join(agents, ", ")
}

func newDeputyListCommand(e *env) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List who stands in for you, and for whom you do",
		Args:  cobra.NoArgs,
		RunE: command(func(cmd *cobra.Command, _ []string) error {
			c, err := e.open(cmd.Context())
			if err != nil {
				return err
			}
			defer c.Close()
			list, err := c.Deputies(cmd.Context())
			if err != nil {
				return err
			}
			list = slices.DeleteFunc(list, func(d api.Deputy) bool { return !all && (d.Status == "over" || d.Status == "revoked") })
			return e.print(list, func(w io.Writer) error {
				if len(list) == 0 {
					return line(e.text(messages.NoDeputies))(w)
				}
				table := terminal.Table{Header: []string{"ID", "STATE", "DEPUTY", "FOR", "AGENTS", "RISK", "FROM", "UNTIL", "ANSWERS"}, Width: terminal.Width(e.stdout)}
				for _, d := range list {
					table.Rows = append(table.Rows, []string{d.ID, d.Status, d.Deputy, d.Person, agentsText(d.Agents), d.MaxRisk, onDay(d.From), onDay(d.Until), strconv.FormatInt(d.Answers, 10)})
				}
				return table.Print(w)
			})
		}),
	}
	cmd.Flags().BoolVar(&all, "all", false, "those that are over, too")
	return cmd
}

func newDeputyEndCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "end ID…",
		Short: "End appointments that you made, or resign; the login suffices",
		Args:  cobra.MinimumNArgs(1),
		RunE: command(func(cmd *cobra.Command, args []string) error {
			c, err := e.open(cmd.Context())
			if err != nil {
				return err
			}
			defer c.Close()
			list, err := c.Deputies(cmd.Context())
			if err != nil {
				return err
			}
			for _, id := range args {
				d, ok := byID(list, id, func(d api.Deputy) string { return d.ID })
				if !ok {
					return &client.Error{Kind: client.Unknown, Detail: e.text(messages.NoSuchDeputy, terminal.Visible(id))}
				}
				if err := c.EndDeputy(cmd.Context(), d.ID); err != nil {
					return err
				}
				if err := e.print(map[string]any{"id": d.ID, "status": "revoked"}, line(e.text(messages.DeputyEnded, d.ID))); err != nil {
					return err
				}
			}
			return nil
		}),
	}
}
