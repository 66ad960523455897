package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"vogt/cmd/vogt/messages"
	"vogt/internal/notify"
	"vogt/internal/version"
)

// newRoot builds the command tree. Each command is a file with a constructor.
func newRoot(e *env) *cobra.Command {
	root := &cobra.Command{
		Use:   "vogt",
		Short: "Ask before you act: permission for what agents run",
		Long: `Vogt stands between AI agents and machines. An agent asks to run a command, a
person answers on a page or with an SSH key, the command runs exactly as it was
shown, and everything is on record.

The variable VOGT_AGENT names the agent where --agent does not, for what an
agent does itself: run, whoami, grant list, show, status, run, token, revoke and
receipt, audit tail and show. What only a person may do does not heed it.`,
		Version:       version.Line("vogt"),
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRun: func(cmd *cobra.Command, _ []string) {
			e.agentSet = cmd.Flags().Changed("agent")
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(cmd, args)
			}
			return cmd.Help()
		},
		Args: cobra.ArbitraryArgs,
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &usageError{text: err.Error()} })
	root.SetVersionTemplate("{{.Version}}\n")
	root.PersistentFlags().BoolVar(&e.json, "json", false, "answer with JSON on standard output")
	root.PersistentFlags().StringVar(&e.agent, "agent", "", "act as the agent `NAME` of this user instead of the default identity")
	root.AddCommand(
		newUpCommand(e), newDownCommand(e), newDoctorCommand(e), newDemoCommand(e),
		newRunCommand(e), newConfineCommand(e), newProxyCommand(e), newReadCommand(e), newGrantCommand(e), newStandingCommand(e), newSafeCommand(e), newPolicyCommand(e), newDelegationCommand(e), newDeputyCommand(e), newCatalogCommand(e),
		newLoginCommand(e), newLogoutCommand(e), newWhoamiCommand(e),
		newAgentCommand(e), newKeyCommand(e), newPanicCommand(e), newResumeCommand(e),
		newAuditCommand(e), newNotifyCommand(e), newNotifyRunCommand(e),
		newDNSCheckCommand(e),
		newVersionCommand(e), newExitCodesTopic(),
	)
	e.answerHelp(root)
	e.checkArguments(root)
	return root
}

// answerHelp makes help about a command that does not exist an error.
func (e *env) answerHelp(root *cobra.Command) {
	help := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		if rest := cmd.Flags().Args(); cmd.HasSubCommands() && len(rest) > 0 {
			e.helpErr = unknownCommand(cmd, rest)
			return
		}
		help(cmd, args)
	})
	root.SetHelpCommand(&cobra.Command{
		Use:   "help [COMMAND…]",
		Short: "Help about a command",
		Args:  cobra.ArbitraryArgs,
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			cmd, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			var names []string
			for _, c := range cmd.Commands() {
				if c.IsAvailableCommand() {
					names = append(names, c.Name()+"\t"+c.Short)
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			cmd, rest, err := root.Find(args)
			if err != nil {
				return err
			}
			if len(rest) > 0 {
				return unknownCommand(cmd, rest)
			}
			cmd.InitDefaultHelpFlag()
			cmd.InitDefaultVersionFlag()
			help(cmd, nil)
			return nil
		},
	})
}

// checkArguments has every command say what it wants in place of cobra's
// counts. No command needs more than one argument, so that a wrong number is
// none or too many.
func (e *env) checkArguments(cmd *cobra.Command) {
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			switch err := check(cmd, args); {
			case err == nil:
				return nil
			case len(args) == 0:
				return &usageError{text: e.text(messages.MissingArgument), line: true}
			}
			return &usageError{text: e.text(messages.TooManyArguments), line: true}
		}
	}
	for _, c := range cmd.Commands() {
		e.checkArguments(c)
	}
}

// newGroup makes a command that only holds others.
func newGroup(use, short string, commands ...*cobra.Command) *cobra.Command {
	group := &cobra.Command{
		Use:   use,
		Short: short,
		Args:  cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(cmd, args)
			}
			return cmd.Help()
		},
	}
	group.AddCommand(commands...)
	return group
}

// unknownCommand says what was probably meant.
func unknownCommand(cmd *cobra.Command, args []string) error {
	text := fmt.Sprintf("unknown command %q for %q", args[0], cmd.CommandPath())
	cmd.SuggestionsMinimumDistance = 2
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		slices.Sort(near)
		for i, name := range near {
			near[i] = strconv.Quote(name)
		}
		text += "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return &usageError{text: text}
}

func newVersionCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: command(func(*cobra.Command, []string) error {
			return e.print(map[string]string{"version": version.String()}, line(version.Line("vogt")))
		}),
	}
}

func newExitCodesTopic() *cobra.Command {
	return &cobra.Command{Use: "exit-codes", Short: "What the exit codes mean", Long: exitCodesHelp}
}

// newNotifyRunCommand is how package notify starts this binary again to
// supervise the notification command.
func newNotifyRunCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use:    notify.Subcommand,
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: command(func(*cobra.Command, []string) error {
			if code := notify.Supervise(e.stdin, e.stdout, e.stderr); code != 0 {
				return withCode(code, nil)
			}
			return nil
		}),
	}
}
