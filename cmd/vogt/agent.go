package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"vogt/cmd/vogt/messages"
	"vogt/internal/api"
	"vogt/internal/client"
	"vogt/internal/osuser"
	"vogt/internal/sshkey"
	"vogt/internal/terminal"
)

func newAgentCommand(e *env) *cobra.Command {
	return newGroup("agent", "Enrol agents and look after them",
		newAgentAddCommand(e), newAgentListCommand(e), newAgentShowCommand(e),
		newAgentPauseCommand(e), newResumeCommand(e), newAgentKillCommand(e), newAgentRemoveCommand(e), newAgentRotateCommand(e), newAgentStartCommand(e), newAgentUserCommand(e),
		newAgentGroupCommand(e), newAgentLabelsCommand(e),
	)
}

func newAgentAddCommand(e *env) *cobra.Command {
	var publicPath, ownerKey, idp string
	var osUser bool
	var safe safeFlags
	cmd := &cobra.Command{
		Use:   "add NAME",
		Short: "Enrol an agent",
		Long: `Enrol an agent. Without --key, vogt makes a key for it and logs it in here;
"vogt run --agent NAME" then asks as this agent. With --key, only the public
half is registered, and the agent logs in where its private key is.

Enrolling is a change of trust: it is signed with the SSH key of your login, or
confirmed on the page whose address is printed.

It may look around without a card: the safe commands (vogt help safe) are its own
in the folders of --root, or in this one. --no-safe leaves them out.

With --os-user the agent gets an OS user of its own besides, with a home, in which
its key and login are and which nobody else can read. That needs root, for whoever
calls sudo: the enrolment is made as you. If a step fails, all are undone.`,
		Example: `  vogt agent add coder
  vogt agent add coder --root ~/src/app --root ~/notes
  sudo vogt agent add coder --os-user`,
		Args: cobra.ExactArgs(1),
		RunE: command(func(cmd *cobra.Command, args []string) error {
			if osUser && publicPath != "" {
				return &usageError{text: e.text(messages.KeyOrUser)}
			}
			if osUser {
				return e.addWithUser(cmd.Context(), args[0], safe, trustOptions{key: ownerKey, idp: idp})
			}
			return e.addAgent(cmd.Context(), args[0], publicPath, safe, trustOptions{key: ownerKey, idp: idp})
		}),
	}
	safe.add(cmd)
	cmd.Flags().BoolVar(&safe.none, "no-safe", false, "without the safe commands: everything asks until a pattern covers it")
	cmd.Flags().BoolVar(&osUser, "os-user", false, "make an OS user for it too (as root, with sudo)")
	cmd.Flags().StringVar(&publicPath, "key", "", "the agent's public key `FILE.pub`")
	cmd.Flags().StringVar(&ownerKey, "owner-key", "", "the SSH key `FILE` to sign with (default: that of the login)")
	cmd.Flags().StringVar(&idp, "idp", "", "the authority's `URL`, when nobody is logged in here")
	return cmd
}

func (e *env) addAgent(ctx context.Context, name, publicPath string, safe safeFlags, trust trustOptions) (err error) {
	where, err := safe.param(e)
	if err != nil {
		return err
	}
	paths, err := e.paths()
	if err != nil {
		return err
	}
	file, err := home(paths).Agent(name)
	if err != nil {
		return err
	}
	folder := home(paths).AgentFolder(name)
	var public sshkey.Public
	if publicPath != "" {
		public, err = readPublic(publicPath)
	} else {
		if _, err := file.Load(); err == nil {
			return e.agentExists(name)
		}
		var made bool
		if public, made, err = agentKey(folder, name); made {
			defer func() {
				if err != nil {
					os.Remove(filepath.Join(folder, "key"))
					os.Remove(filepath.Join(folder, "key.pub"))
					os.Remove(folder)
				}
			}()
		}
	}
	if err != nil {
		return err
	}
	done, authority, err := e.changeTrust(ctx, trust, api.TrustAgentAdd, map[string]string{"name": name, "public_key": public.String(), "safe": where})
	if c, ok := errors.AsType[*client.Error](err); ok && c.Status == http.StatusConflict {
		return e.agentExists(name)
	}
	if err != nil {
		return err
	}
	if done.Enrolled == nil || done.Enrolled.Email == "" {
		return &client.Error{Kind: client.Malformed, Where: authority, Detail: "the enrolled agent is missing in the answer"}
	}
	email := done.Enrolled.Email
	if publicPath == "" {
		if err := e.logInAgent(ctx, file, authority, email, filepath.Join(folder, "key")); err != nil {
			return err
		}
	}
	defer e.saySafe(*done.Enrolled)
	return e.print(done.Enrolled, func(w io.Writer) error {
		text := e.text(messages.AgentAdded, terminal.Visible(email), name)
		if publicPath != "" {
			text = e.text(messages.AgentAddedElsewhere, terminal.Visible(email), authority)
		}
		return line(text)(w)
	})
}

// agentExists is the error for a name that is taken, here or at the authority.
func (e *env) agentExists(name string) error {
	return withCode(exitUsage, errors.New(e.text(messages.AgentExists, terminal.Visible(name))))
}

// logInAgent logs an agent in with the key that was made for it.
func (e *env) logInAgent(ctx context.Context, file client.File, authority, email, key string) error {
	paths, err := e.paths()
	if err != nil {
		return err
	}
	c, err := client.Contact(authority, file, e.options(ctx, paths))
	if err != nil {
		return err
	}
	defer c.Close()
	return c.LogIn(ctx, email, key)
}

// agentKey makes the key of an agent in folder, or takes the one that an
// earlier attempt has left there; made says which.
func agentKey(folder, name string) (public sshkey.Public, made bool, err error) {
	path := filepath.Join(folder, "key")
	public, err = readPublic(path + ".pub")
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return public, false, err
	}
	public, err = makeKey(path, name)
	return public, err == nil, err
}

func makeKey(path, comment string) (sshkey.Public, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return sshkey.Public{}, err
	}
	pem, public, err := sshkey.Generate(rand.Reader, comment)
	if err != nil {
		return public, err
	}
	return public, sshkey.WriteNew(path, pem, public)
}

// maxPublic bounds a public key's file.
const maxPublic = 16 << 10

// readPublic reads a file with one public key.
func readPublic(path string) (sshkey.Public, error) {
	f, err := os.Open(path)
	if err != nil {
		return sshkey.Public{}, withCode(exitConfig, err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxPublic))
	if err != nil {
		return sshkey.Public{}, withCode(exitConfig, err)
	}
	public, err := sshkey.ParsePublic(strings.TrimSpace(string(data)))
	if err != nil {
		return public, withCode(exitConfig, fmt.Errorf("%s: %w", path, err))
	}
	return public, nil
}

// trustOptions say how a change of trust is proven.
type trustOptions struct {
	key string // SSH key file; empty for that of the login
	idp string // when nobody is logged in
}

// changeTrust makes a change of trust: signed with the owner's key where there
// is one, confirmed on the page otherwise. It returns the result and the
// authority that made it.
func (e *env) changeTrust(ctx context.Context, o trustOptions, operation string, params map[string]string) (api.Trust, string, error) {
	paths, err := e.paths()
	if err != nil {
		return api.Trust{}, "", err
	}
	settings, err := e.settings(paths)
	if err != nil {
		return api.Trust{}, "", err
	}
	// The owner is the default identity; --agent names whom it is about.
	owner := home(paths).Default()
	c, err := client.Open(owner, e.options(ctx, paths))
	if k, ok := errors.AsType[*client.Error](err); ok && k.Kind == client.NotLoggedIn {
		c, err = client.Contact(address(o.idp, client.Login{}, settings), owner, e.options(ctx, paths))
	}
	if err != nil {
		return api.Trust{}, "", err
	}
	defer c.Close()
	if c.Login().Email == "" {
		if err := e.hasOwner(ctx, c); err != nil {
			return api.Trust{}, "", err
		}
	}
	keyPath := o.key
	if keyPath == "" && !c.Login().Agent() {
		keyPath = c.Login().KeyPath
	}
	if keyPath == "" || c.Login().Email == "" {
		email := "EMAIL"
		if l := c.Login(); l.Email != "" && !l.Agent() {
			email = l.Email
		}
		otherwise := e.text(messages.KeyThenAgain, loginLine(email, o.idp))
		done, err := e.confirmOnPage(ctx, c, operation, params, otherwise)
		return done, c.Authority(), err
	}
	change, err := c.Prepare(ctx, operation, params)
	if err != nil {
		return api.Trust{}, "", err
	}
	st, err := c.Statement(change)
	if err != nil {
		return api.Trust{}, "", err
	}
	signature, signer, err := e.signAs(ctx, st, "", keyPath)
	if err != nil {
		return api.Trust{}, "", err
	}
	done, err := c.Confirm(ctx, change, st.Digest(), signature)
	if err != nil {
		err = e.keyRefused(ctx, c, err, signer)
	}
	return done, c.Authority(), err
}

func newAgentListCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List your agents",
		Args:  cobra.NoArgs,
		RunE: command(func(cmd *cobra.Command, _ []string) error {
			c, err := e.openOwner(cmd.Context())
			if err != nil {
				return err
			}
			defer c.Close()
			agents, err := c.Agents(cmd.Context())
			if err != nil {
				return err
			}
			listed := make([]listedAgent, len(agents))
			for i, p := range agents {
				listed[i] = e.listed(p)
			}
			return e.print(listed, func(w io.Writer) error {
				if len(agents) == 0 {
					return line(e.text(messages.NoAgents))(w)
				}
				table := terminal.Table{Header: []string{"NAME", "STATE", "EMAIL"}, Width: terminal.Width(e.stdout)}
				for _, p := range listed {
					table.Rows = append(table.Rows, []string{p.Name, p.state(), p.Email})
				}
				return table.Print(w)
			})
		}),
	}
}

// openOwner is open for the commands whose object is an agent, so that --agent
// does not choose who calls.
func (e *env) openOwner(ctx context.Context) (*client.Client, error) {
	paths, err := e.paths()
	if err != nil {
		return nil, err
	}
	return client.Open(home(paths).Default(), e.options(ctx, paths))
}

// listedAgent is an agent as the authority has it, and what only this machine knows.
type listedAgent struct {
	api.Principal
	PausedHere bool `json:"paused_here,omitempty"` // and not at the authority
}

func (e *env) listed(p api.Principal) listedAgent {
	return listedAgent{p, !p.Paused && e.pausedHere(p.Name)}
}

func (p listedAgent) state() string {
	switch {
	case !p.Active:
		return "inactive"
	case p.Paused:
		return "paused"
	case p.PausedHere:
		return "paused on this machine only"
	}
	return "active"
}

// withAgent finds one of the person's agents by name or address.
func (e *env) withAgent(ctx context.Context, name string, do func(*client.Client, api.Principal) error) error {
	c, err := e.openOwner(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	agents, err := c.Agents(ctx)
	if err != nil {
		return err
	}
	for _, p := range agents {
		if p.Email == name || p.Name == name {
			return do(c, p)
		}
	}
	return &client.Error{Kind: client.Unknown, Detail: e.text(messages.NoSuchAgent, terminal.Visible(name))}
}

func newAgentShowCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "show NAME",
		Short: "Show an agent",
		Args:  cobra.ExactArgs(1),
		RunE: command(func(cmd *cobra.Command, args []string) error {
			return e.withAgent(cmd.Context(), args[0], func(c *client.Client, found api.Principal) error {
				shown, err := c.Agent(cmd.Context(), found.Email)
				if err != nil {
					return err
				}
				p := e.listed(shown)
				return e.print(p, func(w io.Writer) error {
					s := &sheet{w: w}
					s.fact("Name", p.Name)
					s.fact("Email", p.Email)
					s.fact("State", p.state())
					s.some("Owner", p.Owner)
					s.some("Approver", p.Approver)
					s.some("Created", moment(p.CreatedAt))
					s.some("Last login", moment(p.LastLogin/1000))
					for _, k := range p.Keys {
						s.fact("Key", k.PublicKey)
					}
					return s.err
				})
			})
		}),
	}
}

func newAgentRemoveCommand(e *env) *cobra.Command {
	var archive bool
	cmd := &cobra.Command{
		Use:   "remove NAME",
		Short: "Remove an agent for good; the login suffices",
		Long: `Remove an agent for good: its logins, requests and permissions end at once.
What it did stays on record. If it was made here, its key and login are deleted
as well; the home that its boxes have kept stays, and with it what programs keep
there, such as logins of models. As root, with sudo, its OS user is removed too; the home stays where it is,
or is moved to where only root can read it.`,
		Args: cobra.ExactArgs(1),
		RunE: command(func(cmd *cobra.Command, args []string) error {
			if a, there, err := osAgentOf(args[0]); err != nil || there {
				if err != nil {
					return err
				}
				choice := osuser.KeepHome
				if archive {
					choice = osuser.ArchiveHome
				}
				return e.removeWithUser(cmd.Context(), args[0], a, choice)
			}
			return e.withAgent(cmd.Context(), args[0], func(c *client.Client, p api.Principal) error {
				if err := c.RemoveAgent(cmd.Context(), p.Email); err != nil {
					return err
				}
				_, err := e.killHere(cmd.Context(), p.Name)
				kept, failed := e.forget(p)
				if err := errors.Join(err, failed); err != nil {
					return err
				}
				p.Active = false
				if kept != "" {
					e.say(messages.HomeStays, terminal.Visible(kept))
				}
				return e.print(p, line(e.text(messages.AgentRemoved, terminal.Visible(p.Email))))
			})
		}),
	}
	cmd.Flags().BoolVar(&archive, "archive-home", false, "of an agent with an OS user: move its home to where only root can read it")
	return cmd
}

// forget deletes the files of an agent that was made here and is no more. It returns
// the home that is kept all the same, if there is one.
func (e *env) forget(p api.Principal) (kept string, err error) {
	paths, err := e.paths()
	if err != nil {
		return "", err
	}
	file, err := home(paths).Agent(p.Name)
	if err != nil {
		return "", nil // its name was given elsewhere
	}
	if l, err := file.Load(); err != nil || l.Email != p.Email {
		return "", nil
	}
	failed := os.RemoveAll(home(paths).AgentFolder(p.Name))
	kept, err = forgetKept(paths, p.Name)
	return kept, errors.Join(failed, err)
}

func newAgentRotateCommand(e *env) *cobra.Command {
	var publicPath, ownerKey string
	cmd := &cobra.Command{
		Use:   "rotate-key NAME",
		Short: "Give an agent a new key; the old one and its logins end",
		Args:  cobra.ExactArgs(1),
		RunE: command(func(cmd *cobra.Command, args []string) error {
			return e.withAgent(cmd.Context(), args[0], func(_ *client.Client, p api.Principal) error {
				return e.rotateKey(cmd.Context(), p, publicPath, trustOptions{key: ownerKey})
			})
		}),
	}
	cmd.Flags().StringVar(&publicPath, "key", "", "the agent's new public key `FILE.pub` (default: make one for an agent of this home)")
	cmd.Flags().StringVar(&ownerKey, "owner-key", "", "the SSH key `FILE` to sign with (default: that of the login)")
	return cmd
}

// rotateKey registers a new key. One that is made here is on the disk before
// the old one ends, so that a crash in between loses no access.
func (e *env) rotateKey(ctx context.Context, p api.Principal, publicPath string, trust trustOptions) error {
	paths, err := e.paths()
	if err != nil {
		return err
	}
	var public sshkey.Public
	var file client.File
	key := ""
	if publicPath != "" {
		public, err = readPublic(publicPath)
	} else {
		if file, err = home(paths).Agent(p.Name); err != nil {
			return err
		}
		if l, loadErr := file.Load(); loadErr != nil || l.Email != p.Email {
			return &usageError{text: e.text(messages.AgentNotHere, terminal.Visible(p.Name))}
		}
		key = filepath.Join(home(paths).AgentFolder(p.Name), "key")
		public, err = makeKey(key+".new", p.Name)
	}
	if err != nil {
		return err
	}
	_, authority, err := e.changeTrust(ctx, trust, api.TrustAgentRotate, map[string]string{"email": p.Email, "public_key": public.String()})
	if err != nil {
		if key != "" {
			os.Remove(key + ".new")
			os.Remove(key + ".new.pub")
		}
		return err
	}
	if key != "" {
		if err := errors.Join(os.Rename(key+".new", key), os.Rename(key+".new.pub", key+".pub")); err != nil {
			return err
		}
		if err := e.logInAgent(ctx, file, authority, p.Email, key); err != nil {
			return err
		}
	}
	return e.print(map[string]string{"email": p.Email, "public_key": public.String()},
		line(e.text(messages.KeyRotated, terminal.Visible(p.Email), public.Fingerprint())))
}
