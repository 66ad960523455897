package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"vogt/cmd/vogt/messages"
	"vogt/internal/api"
	"vogt/internal/egress"
	"vogt/internal/execution"
	"vogt/internal/execution/confine"
	"vogt/internal/execution/confine/plan"
	"vogt/internal/flow"
	"vogt/internal/grant"
	"vogt/internal/terminal"
)

func newConfineCommand(e *env) *cobra.Command {
	var profile, workspace string
	var allow []string
	var explain, ask bool
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
  vogt confine --profile read -- git log
  vogt confine --allow registry.npmjs.org -- npm ci`,
		Args: cobra.ArbitraryArgs,
		RunE: command(func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return &usageError{text: e.text(messages.NoCommandToConfine)}
			}
			e.asks = ask
			return e.confine(cmd.Context(), args, profile, workspace, allow, explain)
		}),
	}
	cmd.Flags().SetInterspersed(false)
	cmd.Flags().StringVar(&profile, "profile", "default", "the `NAME` of a profile")
	cmd.Flags().StringVar(&workspace, "workspace", "", "the `FOLDER` that the box is about (default: this one)")
	cmd.Flags().StringSliceVar(&allow, "allow", nil, "a `HOST` that the box may reach through the proxy: name, *.name or name:port")
	cmd.Flags().BoolVar(&ask, "ask", false, "ask a person about hosts that no rule covers (needs a login and a profile with the proxy)")
	cmd.Flags().BoolVar(&explain, "explain", false, "say on standard error what holds the box")
	return cmd
}

// confine runs a command in a box of its own.
func (e *env) confine(ctx context.Context, args []string, name, workspace string, allow []string, explain bool) error {
	box, err := e.newBox(name, workspace, allow...)
	if err != nil {
		return err
	}
	if e.asks && box.Serve == nil {
		return &usageError{text: e.text(messages.AskNeedsProxy, name)}
	}
	said := box.Said
	box.Said = func(out confine.Outcome) {
		said(out)
		if explain && out.Report.Level != "" {
			defer e.limitsOf(out)
		}
		switch {
		case !explain || out.Report.Level == "": // no box stood
		case out.Report.Level == plan.Seatbelt:
			fmt.Fprintf(e.stderr, "vogt: box: %s, without %s, profile %s\n", out.Report.Level, strings.Join(out.Report.Lacks, ", "), box.Profile.Name)
		default:
			fmt.Fprintf(e.stderr, "vogt: box: %s, Landlock %d, seccomp filter %s, profile %s\n", out.Report.Level, out.Report.Landlock, out.Report.Filter, box.Profile.Name)
		}
	}
	return e.runIn(ctx, box, args, workspace)
}

// limitsOf says for whom the limits of a box held, and what it lacked.
func (e *env) limitsOf(out confine.Outcome) {
	switch {
	case runtime.GOOS != "linux":
		return
	case len(out.Group) > 0:
		e.say(messages.LimitsOfBox, strings.Join(out.Group, ", "))
	default:
		e.say(messages.LimitsOfProcesses)
	}
	if len(out.Report.Lacks) > 0 {
		e.say(messages.BoxLacks, strings.Join(out.Report.Lacks, ", "))
	}
}

// runIn runs a command in a box, without asking: where this process is, or in the
// workspace if one was named.
func (e *env) runIn(ctx context.Context, box *execution.Box, args []string, workspace string) error {
	x := execution.Executor{Environ: e.environ, Stdin: e.stdin, Stdout: e.stdout, Stderr: e.stderr, Box: box}
	start := ""
	if workspace != "" {
		start = box.Workspace
	}
	bound, err := x.Bind(args, start)
	if err != nil {
		return err
	}
	defer bound.Close()
	out, err := x.Run(ctx, bound)
	if err == nil && out.Code != 0 {
		err = withCode(out.Code, nil)
	}
	return err
}

// newBox is a box with the profile of a name, about a folder; empty is the one
// that this process is in. It may reach the hosts besides those of the profile.
func (e *env) newBox(name, workspace string, hosts ...string) (*execution.Box, error) {
	if around, in := confine.Around(e.getenv); in {
		return nil, withCode(exitCannotRun, errors.New(e.text(messages.AlreadyBox, around)))
	}
	p, err := e.profile(name)
	if err != nil {
		return nil, withCode(exitConfig, err)
	}
	if err := e.checkAllowed(hosts); err != nil {
		return nil, err
	}
	for _, host := range hosts {
		if why := e.neverReached(host); why != "" {
			return nil, &usageError{text: e.text(messages.AllowNever, host, why)}
		}
	}
	if len(hosts) > 0 {
		if p.Network == plan.Host {
			return nil, &usageError{text: e.text(messages.AllowNeedsProxy, name)}
		}
		p.Network, p.Hosts = plan.Proxied, append(p.Hosts, hosts...)
	}
	if workspace == "" {
		if workspace, err = os.Getwd(); err != nil {
			return nil, err
		}
	}
	if workspace, err = e.workspaceFolder(workspace); err != nil {
		return nil, withCode(exitCannotRun, err)
	}
	if p, err = p.In(workspace); err != nil {
		return nil, withCode(exitConfig, err)
	}
	home := e.getenv("HOME")
	if home == "" {
		return nil, withCode(exitCannotRun, errors.New(e.text(messages.NoHome)))
	}
	paths, err := e.paths()
	if err != nil {
		return nil, err
	}
	helper := e.helper
	if helper == "" {
		if helper, err = helperPath(); err != nil {
			return nil, err
		}
	}
	box := &execution.Box{Helper: helper, Profile: p, Workspace: workspace, Home: home, State: paths.Data, Secret: []string{paths.Config, paths.State}, Said: e.boxEnded, Asks: e.asks}
	if p.Network == plan.Proxied {
		var asker *hostAsker
		if e.asks {
			if asker, err = e.newHostAsker(p, workspace); err != nil {
				return nil, err
			}
			box.Started = func(pid int, _ plan.Level) error {
				asker.first.Store(int64(pid))
				return nil
			}
		}
		way, err := e.boxWay(p, filepath.Join(paths.Data, "egress.jsonl"), asker)
		if err != nil {
			return nil, withCode(exitConfig, err)
		}
		box.Serve = map[int]func(net.Listener){confine.ProxyPort: way.serve}
		box.Direct = &confine.Direct{Network: egress.Synthetic(), Ports: way.proxy.DirectPorts(), Serve: way.serveDirect, Names: way.serveNames}
		if err := e.inspectedBox(box, way); err != nil {
			return nil, withCode(exitConfig, err)
		}
		// For "vogt proxy connect".
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		p.Read = append(slices.Clip(p.Read), self)
	}
	return box, nil
}

// inspectedBox prepares a box for hosts whose requests are looked at: what is secret
// stays out of it, and its programs trust the session's certificate.
func (e *env) inspectedBox(box *execution.Box, w *way) error {
	for _, name := range w.hosts.variables {
		if box.Profile.Passes(name) {
			return errors.New(e.text(messages.SecretInBox, name, box.Profile.Name))
		}
	}
	box.Secret = append(box.Secret, w.hosts.files...)
	session := w.proxy.Authority()
	if session == nil {
		return nil
	}
	var err error
	if box.Trust, err = e.trusted(session); err != nil {
		return err
	}
	box.Variables = append(box.Variables, egress.TrustVariables(plan.TrustPath)...)
	return nil
}

// boxEnded says what a person has to know about a box that has ended.
func (e *env) boxEnded(out confine.Outcome) {
	if out.Late {
		e.say(messages.BoxLate)
	}
	if out.Report.Level == plan.Reduced {
		e.say(messages.ReducedBox)
	}
	if out.Report.Level == plan.Seatbelt {
		e.say(messages.SeatbeltBox)
	}
	for _, c := range out.Earlier {
		e.say(messages.LeftEarlier, terminal.Visible(c.Path), terminal.Visible(filepath.Base(cmp.Or(c.Aside, c.Path))))
	}
	for _, c := range out.Changed {
		if c.Aside == "" {
			e.say(messages.ProtectedChanged, terminal.Visible(c.Path))
		} else {
			e.say(messages.PutAside, terminal.Visible(c.Path), terminal.Visible(filepath.Base(c.Aside)))
		}
	}
}

// workspaceFolder is canonical for the folder that a box is about.
func (e *env) workspaceFolder(name string) (string, error) {
	folder, err := canonical(name)
	if errors.Is(err, fs.ErrNotExist) {
		return "", errors.New(e.text(messages.NoWorkspace, terminal.Visible(name)))
	}
	if err != nil {
		return "", err
	}
	if st, err := os.Stat(folder); err == nil && !st.IsDir() {
		return "", errors.New(e.text(messages.WorkspaceIsFile, terminal.Visible(name)))
	}
	return folder, nil
}

// canonical is the absolute path of a folder without symbolic links.
func canonical(name string) (string, error) {
	abs, err := filepath.Abs(name)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(abs)
}

// boxOf is the box that a grant binds, as far as its words say. Whether it is
// the same one is compared before the command starts.
func (e *env) boxOf(g api.Grant) (*execution.Box, error) {
	if g.Request == nil || g.Request.Context == nil || g.Request.Context.Confinement == nil {
		return nil, nil
	}
	text := *g.Request.Context.Confinement
	box, ok := grant.ParseConfinement(text)
	if !ok {
		return nil, &flow.MismatchError{What: "box", Granted: text, Found: "none that it could be"}
	}
	return e.newBox(box.Profile, box.Workspace)
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
