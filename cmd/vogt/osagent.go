package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"vogt/cmd/vogt/messages"
	"vogt/internal/api"
	"vogt/internal/client"
	"vogt/internal/config"
	"vogt/internal/osuser"
	"vogt/internal/sshkey"
	"vogt/internal/terminal"
)

// osAgent is what root remembers of an agent that has an OS user, where the agent
// cannot change it.
type osAgent struct {
	Person uint32      `json:"person"` // the uid of whose agent it is
	Email  string      `json:"email"`
	User   osuser.User `json:"user"`
	Paused bool        `json:"paused"`
}

// osAgents is the folder of what root remembers.
const osAgents = "/var/lib/vogt-agents/agents"

func osAgentFile(name string) string { return filepath.Join(osAgents, name+".json") }

// osAgentOf is the agent with an OS user of that name, if this process is root and
// there is one.
func osAgentOf(name string) (osAgent, bool, error) {
	if os.Geteuid() != 0 || client.CheckAgentName(name) != nil {
		return osAgent{}, false, nil
	}
	data, err := os.ReadFile(osAgentFile(name))
	if errors.Is(err, fs.ErrNotExist) {
		return osAgent{}, false, nil
	}
	var a osAgent
	if err == nil {
		err = json.Unmarshal(data, &a)
	}
	return a, err == nil, err
}

func (a osAgent) save(name string) error {
	data, err := json.Marshal(a)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(osAgents, 0o700); err != nil {
		return err
	}
	return config.WriteFile(osAgentFile(name), data, 0o600)
}

// person is the uid for whom root works: whoever called sudo.
func (e *env) person() (uint32, error) {
	if os.Geteuid() != 0 {
		return 0, withCode(exitUsage, errors.New(e.text(messages.NeedsSudo)))
	}
	n, err := strconv.ParseUint(e.getenv("SUDO_UID"), 10, 32)
	if err != nil || n == 0 {
		return 0, withCode(exitUsage, errors.New(e.text(messages.NeedsPerson)))
	}
	return uint32(n), nil
}

// addWithUser makes an agent and its OS user in one step. What a failure leaves is
// undone; what cannot be undone is said.
func (e *env) addWithUser(ctx context.Context, name string, safe safeFlags, trust trustOptions) (err error) {
	person, err := e.person()
	if err != nil {
		return err
	}
	if _, there, err := osAgentOf(name); err != nil || there {
		return errors.Join(err, e.agentExists(name))
	}
	if err := client.CheckAgentName(name); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	u, err := osuser.Add(ctx, osuser.Spec{Name: name, Start: unitStart(self, name)})
	if err != nil {
		return withCode(exitCannotRun, err)
	}
	agent := osAgent{Person: person, User: u}
	defer func() {
		if err != nil {
			err = errors.Join(err, e.undoAdd(context.WithoutCancel(ctx), name, agent))
		}
	}()
	public, err := e.asAgent(ctx, u, nil, "agent", "user", "own-key", name)
	if err != nil {
		return fmt.Errorf("%s: %w", e.text(messages.StepOfAdd, "key"), err)
	}
	args := []string{"agent", "user", "enrol", name}
	for _, root := range safe.roots {
		args = append(args, "--root", root)
	}
	if safe.none {
		args = append(args, "--no-safe")
	}
	if trust.key != "" {
		args = append(args, "--owner-key", trust.key)
	}
	if trust.idp != "" {
		args = append(args, "--idp", trust.idp)
	}
	answer, err := e.asPersonUID(ctx, person, public, args...)
	if err != nil {
		return fmt.Errorf("%s: %w", e.text(messages.StepOfAdd, "enrol"), err)
	}
	var enrolled enrolledAgent
	if err := json.Unmarshal(answer, &enrolled); err != nil || enrolled.Email == "" {
		return fmt.Errorf("%s: %q (%v)", e.text(messages.StepOfAdd, "enrol"), answer, err)
	}
	agent.Email = enrolled.Email
	if _, err := e.asAgent(ctx, u, nil, "agent", "user", "own-login", name, enrolled.Email, enrolled.Authority); err != nil {
		return fmt.Errorf("%s: %w", e.text(messages.StepOfAdd, "login"), err)
	}
	if err := agent.save(name); err != nil {
		return err
	}
	return e.print(agent, func(w io.Writer) error {
		s := &sheet{w: w}
		s.fact("Agent", agent.Email)
		s.fact("User", fmt.Sprintf("%s (%d)", u.Name, u.UID))
		s.fact("Home", u.Home)
		s.some("Unit", u.Unit)
		s.fact("Start", "sudo vogt agent start "+name+" -- COMMAND")
		s.fact("Pause", "sudo vogt agent pause "+name)
		return s.err
	})
}

// unitStart is what the unit of an agent starts; %i is the program.
func unitStart(self, name string) []string {
	return []string{self, "agent", "start", name, "--workspace", agentWork, "--", "%i"}
}

// agentWork is the workspace of an agent with an OS user, below its home, where
// nothing else is named.
const agentWork = "work"

// undoAdd takes back what there is of an agent, and says what could not be.
func (e *env) undoAdd(ctx context.Context, name string, a osAgent) error {
	var left []string
	if a.Email != "" {
		if _, err := e.asPersonUID(ctx, a.Person, nil, "agent", "remove", name); err != nil {
			left = append(left, e.text(messages.IdentityStands, a.Email, name, err))
		}
	}
	if _, err := osuser.Remove(ctx, osuser.Spec{Name: name}, osuser.ArchiveHome); err != nil {
		left = append(left, e.text(messages.UserStands, a.User.Name, name, err))
	}
	os.Remove(osAgentFile(name))
	if len(left) > 0 {
		return errors.New(strings.Join(left, "; "))
	}
	return errors.New(e.text(messages.AllUndone))
}

// removeWithUser undoes addWithUser. The home stays unless told.
func (e *env) removeWithUser(ctx context.Context, name string, a osAgent, home osuser.HomeChoice) error {
	spec := osuser.Spec{Name: name}
	if err := osuser.Kill(ctx, spec); err != nil {
		return withCode(exitCannotRun, err)
	}
	if _, err := e.asPersonUID(ctx, a.Person, nil, "agent", "remove", name); err != nil {
		return fmt.Errorf("%s: %w", e.text(messages.StepOfRemove, a.User.Name), err)
	}
	r, err := osuser.Remove(ctx, spec, home)
	if err != nil {
		return withCode(exitCannotRun, fmt.Errorf("%s: %w", e.text(messages.UserStandsAlone, a.Email, a.User.Name, name), err))
	}
	if err := os.Remove(osAgentFile(name)); err != nil {
		return err
	}
	return e.print(r, func(w io.Writer) error {
		s := &sheet{w: w}
		s.fact("Removed", a.Email+", "+a.User.Name)
		s.some("Home", r.Home)
		for _, left := range r.Left {
			s.fact("Left", left)
		}
		return s.err
	})
}

// pause stops the processes of the OS user and lets none be started, or lets them go
// on.
func (a osAgent) pause(ctx context.Context, name string, paused bool) error {
	a.Paused = paused
	if paused { // nothing is started while the others are stopped
		return errors.Join(a.save(name), osuser.Pause(ctx, osuser.Spec{Name: name}))
	}
	return errors.Join(osuser.Resume(ctx, osuser.Spec{Name: name}), a.save(name))
}

// startOSUser starts an agent as its OS user, in the outer box as well.
func (e *env) startOSUser(ctx context.Context, name string, a osAgent, profile, workspace string, allow []string, ask bool, argv []string) error {
	if a.Paused {
		return withCode(exitRefused, errors.New(e.text(messages.AgentIsPaused, name)))
	}
	if workspace == "" {
		workspace = filepath.Join(a.User.Home, agentWork)
	}
	args := []string{"agent", "start", name, "--profile", profile, "--workspace", workspace, "--ask=" + strconv.FormatBool(ask)}
	for _, host := range allow {
		args = append(args, "--allow", host)
	}
	code, err := e.runAsAgent(ctx, name, a.User, append(append(args, "--"), argv...))
	if err != nil {
		return withCode(exitCannotRun, err)
	}
	if code != 0 {
		return withCode(code, nil)
	}
	return nil
}

// The commands below are what root lets the agent's user and the person do, each
// with its own rights: root writes into the home of neither.

func newOwnKeyCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use: "own-key NAME", Hidden: true, Args: cobra.ExactArgs(1),
		Short: "Make the key of an agent in its own home, and print the public half",
		RunE: command(func(_ *cobra.Command, args []string) error {
			paths, err := e.paths()
			if err != nil {
				return err
			}
			if _, err := home(paths).Agent(args[0]); err != nil {
				return err
			}
			public, _, err := agentKey(home(paths).AgentFolder(args[0]), args[0])
			if err != nil {
				return err
			}
			if work := filepath.Join(e.getenv("HOME"), agentWork); e.getenv("HOME") != "" {
				if err := os.MkdirAll(work, 0o700); err != nil {
					return err
				}
			}
			_, err = fmt.Fprintln(e.stdout, public.String())
			return err
		}),
	}
}

// enrolledAgent is what the person's part of adding an agent tells root.
type enrolledAgent struct {
	Email     string `json:"email"`
	Authority string `json:"authority"`
}

func newEnrolCommand(e *env) *cobra.Command {
	var trust trustOptions
	var safe safeFlags
	cmd := &cobra.Command{
		Use: "enrol NAME", Hidden: true, Args: cobra.ExactArgs(1),
		Short: "Enrol an agent with the public key on standard input",
		RunE: command(func(cmd *cobra.Command, args []string) error {
			text, err := io.ReadAll(io.LimitReader(e.stdin, maxPublic))
			if err != nil {
				return err
			}
			public, err := sshkey.ParsePublic(strings.TrimSpace(string(text)))
			if err != nil {
				return withCode(exitConfig, err)
			}
			if safe.roots == nil {
				safe.roots = []string{} // where root stands is nobody's choice
			}
			where, err := safe.param(e)
			if err != nil {
				return err
			}
			done, authority, err := e.changeTrust(cmd.Context(), trust, api.TrustAgentAdd, map[string]string{"name": args[0], "public_key": public.String(), "safe": where})
			if err != nil {
				return err
			}
			if done.Enrolled == nil || done.Enrolled.Email == "" {
				return &client.Error{Kind: client.Malformed, Where: authority, Detail: "the enrolled agent is missing in the answer"}
			}
			return json.NewEncoder(e.stdout).Encode(enrolledAgent{done.Enrolled.Email, authority})
		}),
	}
	safe.add(cmd)
	cmd.Flags().BoolVar(&safe.none, "no-safe", false, "without the safe commands")
	cmd.Flags().StringVar(&trust.key, "owner-key", "", "the SSH key `FILE` to sign with")
	cmd.Flags().StringVar(&trust.idp, "idp", "", "the authority's `URL`")
	return cmd
}

func newOwnLoginCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use: "own-login NAME EMAIL AUTHORITY", Hidden: true, Args: cobra.ExactArgs(3),
		Short: "Log an agent in with the key in its own home",
		RunE: command(func(cmd *cobra.Command, args []string) error {
			paths, err := e.paths()
			if err != nil {
				return err
			}
			file, err := home(paths).Agent(args[0])
			if err != nil {
				return err
			}
			if err := e.logInAgent(cmd.Context(), file, args[2], args[1], filepath.Join(home(paths).AgentFolder(args[0]), "key")); err != nil {
				return err
			}
			// Whatever the user runs outside of a box asks as the agent, too.
			return config.WriteFile(filepath.Join(paths.Config, "vogt.toml"), []byte("agent = "+strconv.Quote(args[0])+"\n"), 0o600)
		}),
	}
}

// said is what a child has written to standard error, for an error.
func said(err error, text []byte) error {
	if line := strings.TrimSpace(terminal.Visible(string(bytes.TrimSpace(text)))); line != "" {
		return fmt.Errorf("%s (%w)", line, err)
	}
	return err
}
