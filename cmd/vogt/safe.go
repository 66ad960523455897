package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"vogt/cmd/vogt/messages"
	"vogt/internal/api"
	"vogt/internal/client"
	"vogt/internal/terminal"
)

// safeFlags say where an agent may look around.
type safeFlags struct {
	roots []string
	none  bool // no safe commands at all
}

func (f *safeFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringSliceVar(&f.roots, "root", nil, "a `FOLDER` in which it may look around with the safe commands (default: this one, unless it is your home)")
}

// param is the parameter "safe" of a change of trust. Without a root it is this
// folder, unless that is or holds the person's home, or the machine.
func (f safeFlags) param(e *env) (string, error) {
	if f.none {
		return "off", nil
	}
	folders := []string{}
	for _, root := range f.roots {
		folder, err := canonical(root)
		if err != nil {
			return "", &usageError{text: e.text(messages.BadRoot, terminal.Visible(root))}
		}
		folders = append(folders, folder)
	}
	if f.roots == nil {
		if folder, err := canonical("."); err == nil && !e.holdsHome(folder) {
			folders = append(folders, folder)
		}
	}
	encoded, err := json.Marshal(folders)
	return string(encoded), err
}

// holdsHome reports whether a folder is or holds this user's home, or the machine.
func (e *env) holdsHome(folder string) bool {
	home, err := canonical(e.getenv("HOME"))
	return folder == "/" || err == nil && (folder == home || strings.HasPrefix(home, strings.TrimSuffix(folder, "/")+"/"))
}

// saySafe says what an agent may do without a card, once it is enrolled.
func (e *env) saySafe(p api.Enrolled) {
	if p.SafeCommands == 0 {
		return
	}
	if len(p.Folders) == 0 {
		e.say(messages.SafeNowhere)
		return
	}
	e.say(messages.SafeIn, terminal.Visible(strings.Join(p.Folders, ", ")))
}

func newSafeCommand(e *env) *cobra.Command {
	group := newGroup("safe", "The safe commands of your agents, on or off",
		newSafeListCommand(e), newSafeOnCommand(e), newSafeOffCommand(e))
	group.Long = `The safe commands look around and change nothing: cat, date, echo, file, find, grep,
head, ls, pwd, stat, tail, wc, which, whoami. An agent gets them with its enrolment,
in the folders that were named with --root, and in the documentation of the system.
They cover by meaning: "find . -delete" and "cat .env" are asked.`
	return group
}

func newSafeListCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List which agents have the safe commands, and where",
		Args:  cobra.NoArgs,
		RunE: command(func(cmd *cobra.Command, _ []string) error {
			c, err := e.open(cmd.Context())
			if err != nil {
				return err
			}
			defer c.Close()
			safe, err := c.Safe(cmd.Context())
			if err != nil {
				return err
			}
			return e.print(safe, func(w io.Writer) error {
				if !safe.On {
					if err := line(e.text(messages.SafeAllOff))(w); err != nil {
						return err
					}
				}
				table := terminal.Table{Header: []string{"AGENT", "SAFE", "IN"}, Width: terminal.Width(e.stdout)}
				for _, a := range safe.Agents {
					state := "off"
					if a.On && safe.On {
						state = "on"
					}
					table.Rows = append(table.Rows, []string{a.Name, state, strings.Join(a.Folders, ", ")})
				}
				return table.Print(w)
			})
		}),
	}
}

func newSafeOnCommand(e *env) *cobra.Command {
	var who string
	var safe safeFlags
	var trust trustOptions
	cmd := &cobra.Command{
		Use:   "on",
		Short: "Switch the safe commands on: for one agent, or for all of yours",
		Long: `Switch the safe commands on. With --for they are one agent's, in the folders of
--root, which replace those that it had. Without it they are switched on for all of
your agents; those that have none get them.`,
		Args: cobra.NoArgs,
		RunE: command(func(cmd *cobra.Command, _ []string) error {
			param, err := safe.param(e)
			if err != nil {
				return err
			}
			params := map[string]string{"safe": param}
			if who != "" {
				if params["email"], err = e.agentAddress(cmd.Context(), who); err != nil {
					return err
				}
			}
			if _, _, err := e.changeTrust(cmd.Context(), trust, api.TrustSafeOn, params); err != nil {
				return err
			}
			return e.print(params, line(e.text(messages.SafeOn)))
		}),
	}
	cmd.Flags().StringVar(&who, "for", "", "the agent `NAME` (default: all of yours)")
	safe.add(cmd)
	cmd.Flags().StringVar(&trust.key, "owner-key", "", "the SSH key `FILE` to sign with (default: that of the login)")
	return cmd
}

func newSafeOffCommand(e *env) *cobra.Command {
	var who string
	cmd := &cobra.Command{
		Use:   "off",
		Short: "Switch the safe commands off: for one agent, or for all of yours; the login suffices",
		Args:  cobra.NoArgs,
		RunE: command(func(cmd *cobra.Command, _ []string) error {
			email := ""
			if who != "" {
				var err error
				if email, err = e.agentAddress(cmd.Context(), who); err != nil {
					return err
				}
			}
			c, err := e.open(cmd.Context())
			if err != nil {
				return err
			}
			defer c.Close()
			if err := c.SafeOff(cmd.Context(), email); err != nil {
				return err
			}
			return e.print(map[string]any{"email": email, "on": false}, line(e.text(messages.SafeOff)))
		}),
	}
	cmd.Flags().StringVar(&who, "for", "", "the agent `NAME` (default: all of yours)")
	return cmd
}

func newAgentGroupCommand(e *env) *cobra.Command {
	return newGroup("group", "Groups of agents, which patterns may be for",
		newGroupSetCommand(e), newGroupListCommand(e), newGroupDropCommand(e))
}

func newGroupSetCommand(e *env) *cobra.Command {
	var trust trustOptions
	cmd := &cobra.Command{
		Use:   "set GROUP AGENT…",
		Short: "Make a group of these agents and no others",
		Long: `Make a group of these agents and no others. Who is put into a group gets what
patterns for it permit, so this is a change of trust: it is signed, or confirmed on
the page. A pattern is for a group with: vogt standing add --for group:NAME`,
		Args: cobra.MinimumNArgs(2),
		RunE: command(func(cmd *cobra.Command, args []string) error {
			var agents []string
			for _, who := range args[1:] {
				email, err := e.agentAddress(cmd.Context(), who)
				if err != nil {
					return err
				}
				agents = append(agents, email)
			}
			params := map[string]string{"name": args[0], "agents": strings.Join(agents, ",")}
			if _, _, err := e.changeTrust(cmd.Context(), trust, api.TrustGroupSet, params); err != nil {
				return err
			}
			return e.print(params, line(e.text(messages.GroupSet, args[0], strings.Join(agents, ", "))))
		}),
	}
	cmd.Flags().StringVar(&trust.key, "owner-key", "", "the SSH key `FILE` to sign with (default: that of the login)")
	return cmd
}

func newGroupListCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List your groups of agents",
		Args:  cobra.NoArgs,
		RunE: command(func(cmd *cobra.Command, _ []string) error {
			c, err := e.open(cmd.Context())
			if err != nil {
				return err
			}
			defer c.Close()
			groups, err := c.Groups(cmd.Context())
			if err != nil {
				return err
			}
			return e.print(groups, func(w io.Writer) error {
				if len(groups) == 0 {
					return line(e.text(messages.NoGroups))(w)
				}
				table := terminal.Table{Header: []string{"GROUP", "AGENTS"}, Width: terminal.Width(e.stdout)}
				for _, g := range groups {
					table.Rows = append(table.Rows, []string{g.Name, strings.Join(g.Agents, ", ")})
				}
				return table.Print(w)
			})
		}),
	}
}

func newGroupDropCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "drop GROUP AGENT",
		Short: "Take an agent out of a group; the login suffices",
		Args:  cobra.ExactArgs(2),
		RunE: command(func(cmd *cobra.Command, args []string) error {
			return e.withAgent(cmd.Context(), args[1], func(c *client.Client, p api.Principal) error {
				if err := c.LeaveGroup(cmd.Context(), args[0], p.Email); err != nil {
					return err
				}
				return e.print(map[string]string{"name": args[0], "email": p.Email}, line(e.text(messages.GroupLeft, p.Name, args[0])))
			})
		}),
	}
}

func newAgentLabelsCommand(e *env) *cobra.Command {
	var end bool
	var trust trustOptions
	cmd := &cobra.Command{
		Use:   "labels NAME",
		Short: "Show what an agent has seen and written that makes patterns cover less, or end it",
		Long: `Show an agent's labels. "secret" means that it may have seen credentials, "foreign"
that it has read what strangers wrote: while it has one of them, no pattern covers
what leaves the machine. What it "wrote" executes in boxes only. Labels come with
what a person allowed the agent to do outside of a box, and end when you end them,
once you know that the agent has forgotten: with --end, which is a change of trust.`,
		Args: cobra.ExactArgs(1),
		RunE: command(func(cmd *cobra.Command, args []string) error {
			if end {
				return e.endLabels(cmd.Context(), args[0], trust)
			}
			return e.withAgent(cmd.Context(), args[0], func(c *client.Client, found api.Principal) error {
				p, err := c.Agent(cmd.Context(), found.Email)
				if err != nil {
					return err
				}
				labels := append([]api.Label{}, p.Labels...)
				return e.print(labels, func(w io.Writer) error {
					if len(labels) == 0 {
						return line(e.text(messages.NoLabels))(w)
					}
					table := terminal.Table{Header: []string{"LABEL", "SINCE", "BY"}, Width: terminal.Width(e.stdout)}
					for _, l := range labels {
						table.Rows = append(table.Rows, []string{l.Label, moment(l.Since), l.GrantID})
					}
					return table.Print(w)
				})
			})
		}),
	}
	cmd.Flags().BoolVar(&end, "end", false, "end all labels of the agent")
	cmd.Flags().StringVar(&trust.key, "owner-key", "", "the SSH key `FILE` to sign with (default: that of the login)")
	return cmd
}

func (e *env) endLabels(ctx context.Context, name string, trust trustOptions) error {
	email, err := e.agentAddress(ctx, name)
	if err != nil {
		return err
	}
	if _, _, err := e.changeTrust(ctx, trust, api.TrustLabelsEnd, map[string]string{"email": email}); err != nil {
		return err
	}
	return e.print(map[string]string{"email": email}, line(e.text(messages.LabelsEnded)))
}

// fileDigest is the SHA-256 of a program, as an executor binds it.
func (e *env) fileDigest(name string) (digest, folder string, err error) {
	if name, err = canonical(name); err != nil {
		return "", "", err
	}
	bound, err := e.executor().Bind([]string{name}, "")
	if err != nil {
		return "", "", err
	}
	defer bound.Close()
	facts := bound.Context()
	if facts.File == nil || facts.File.SHA256 == nil {
		return "", "", fmt.Errorf("%s: its content cannot be bound", name)
	}
	return *facts.File.SHA256, filepath.Dir(name), nil
}
