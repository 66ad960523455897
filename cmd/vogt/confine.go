package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"vogt/cmd/vogt/messages"
	"vogt/internal/execution"
	"vogt/internal/execution/confine"
	"vogt/internal/execution/confine/plan"
	"vogt/internal/terminal"
)

func newConfineCommand(e *env) *cobra.Command {
	var profile, workspace string
	var explain bool
	cmd := &cobra.Command{
		Use:   "confine [flags] -- COMMAND [ARGUMENT…]",
		Short: "Run a command in a box that the kernel enforces",
		Long: `Run a command in a box: it sees the system, its tools and the workspace, may write
only in the workspace and in folders of its own, has no network, and cannot reach
other processes, credentials or what runs later (hooks, editor and agent settings).
Nobody is asked, and nothing is recorded: this is for trying. The box ends with the
command, and with everything that it started.

The exit code is the command's, or 126 when no command was started or a protected
file is not what it was.`,
		Example: `  vogt confine -- bash
  vogt confine --profile read -- git log`,
		Args: cobra.ArbitraryArgs,
		RunE: command(func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return &usageError{text: e.text(messages.NoCommandToConfine)}
			}
			return e.confine(args, profile, workspace, explain)
		}),
	}
	cmd.Flags().SetInterspersed(false)
	cmd.Flags().StringVar(&profile, "profile", "default", "the `NAME` of a profile")
	cmd.Flags().StringVar(&workspace, "workspace", "", "the `FOLDER` that the box is about (default: this one)")
	cmd.Flags().BoolVar(&explain, "explain", false, "say on standard error what holds the box")
	return cmd
}

// confine runs a command in a box of its own.
func (e *env) confine(args []string, name, workspace string, explain bool) error {
	p, err := e.profile(name)
	if err != nil {
		return withCode(exitConfig, err)
	}
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	if workspace == "" {
		workspace = dir
	}
	home := e.getenv("HOME")
	if home == "" {
		return withCode(exitCannotRun, errors.New(e.text(messages.NoHome)))
	}
	paths, err := e.paths()
	if err != nil {
		return err
	}
	helper, err := helperPath()
	if err != nil {
		return err
	}
	bound, err := execution.Executor{Environ: e.environ}.Bind(args, dir)
	if err != nil {
		return err
	}
	defer bound.Close()
	out, err := confine.Run(helper, confine.Request{
		Profile: p, Workspace: workspace, Dir: dir, Home: home, State: paths.Data,
		Program: bound.Program(), Argv: args, Environ: e.environ,
		Terminal: term.IsTerminal(int(e.stdin.Fd())),
	}, confine.Streams{In: e.stdin, Out: e.stdout, Err: e.stderr}, nil)
	if refused, ok := errors.AsType[*confine.RefusedError](err); ok {
		e.say(messages.NotConfined, terminal.Visible(refused.Reason))
		if refused.Remedy != "" {
			e.say(messages.Remedy, terminal.Visible(refused.Remedy))
		}
		return withCode(exitCannotRun, nil)
	}
	if err != nil {
		return withCode(exitCannotRun, err)
	}
	if out.Report.Level == plan.Reduced {
		e.say(messages.ReducedBox)
	}
	if explain {
		fmt.Fprintf(e.stderr, "vogt: box: %s, Landlock %d, seccomp filter %s, profile %s\n", out.Report.Level, out.Report.Landlock, out.Report.Filter, p.Name)
	}
	if len(out.Changed) > 0 {
		for _, c := range out.Changed {
			if c.Aside == "" {
				e.say(messages.ProtectedChanged, terminal.Visible(c.Path))
			} else {
				e.say(messages.PutAside, terminal.Visible(c.Path), terminal.Visible(filepath.Base(c.Aside)))
			}
		}
		return withCode(exitCannotRun, nil)
	}
	if out.Code != 0 {
		return withCode(out.Code, nil)
	}
	return nil
}

// profile reads a profile: one that Vogt brings, or one of this user.
func (e *env) profile(name string) (*confine.Profile, error) {
	if p, ok := confine.Builtin(name); ok {
		return p()
	}
	paths, err := e.paths()
	if err != nil {
		return nil, err
	}
	if strings.ContainsRune(name, filepath.Separator) || strings.HasPrefix(name, ".") {
		return nil, errors.New(e.text(messages.BadProfileName, name))
	}
	file := filepath.Join(paths.Config, "profiles", name+".toml")
	data, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil, errors.New(e.text(messages.NoProfile, name, file, strings.Join(confine.BuiltinNames(), ", ")))
	}
	if err != nil {
		return nil, err
	}
	return confine.Parse(name, string(data))
}

// helperPath is where vogt-confine is: beside this program, and nowhere else.
func helperPath() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	if self, err = filepath.EvalSymlinks(self); err != nil {
		return "", err
	}
	name := "vogt-confine"
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	return filepath.Join(filepath.Dir(self), name), nil
}
