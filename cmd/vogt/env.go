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
	"strings"
	"time"

	"github.com/spf13/cobra"

	"vogt/cmd/vogt/messages"
	"vogt/internal/client"
	"vogt/internal/config"
	"vogt/internal/ddisa"
	"vogt/internal/egress"
	"vogt/internal/execution"
	"vogt/internal/fetch"
	"vogt/internal/sshkey"
	"vogt/internal/terminal"
)

// env is what commands get of the world outside.
type env struct {
	stdin, stdout, stderr *os.File
	environ               []string // name=value, as os.Environ
	now                   func() time.Time

	lang messages.Lang
	// Set by the global flags.
	json     bool
	agent    string
	agentSet bool // --agent was given, perhaps as ""

	asks     bool                                       // hosts that no rule covers are asked about
	reports  bool                                       // connections of the box are reported to the authority
	helper   string                                     // path of vogt-confine, if not beside this program
	reach    func(*egress.Config)                       // puts a test's network in the place of the machine's
	outside  func(*ddisa.ResolverConfig, *fetch.Config) // puts a test's network in the internet's place
	box      *execution.Box                             // in which commands run, if in one
	asPerson string                                     // the person as whom "vogt run" asks, for want of --agent
	called   *cobra.Command                             // what the command line named, once that is known
	helpErr  error                                      // help was asked about a command that does not exist
}

// getenv looks a variable up as os.Getenv does.
func (e *env) getenv(name string) string {
	value := ""
	for _, entry := range e.environ {
		if v, ok := strings.CutPrefix(entry, name+"="); ok {
			value = v
		}
	}
	return value
}

// text is a message in the person's language.
func (e *env) text(key messages.Key, args ...any) string { return e.lang.Text(key, args...) }

// say writes a message to standard error, as a line of its own.
func (e *env) say(key messages.Key, args ...any) {
	fmt.Fprintln(e.stderr, "vogt: "+e.text(key, args...))
}

// print writes an answer to standard output: v as one JSON value under --json,
// else what human writes.
func (e *env) print(v any, human func(w io.Writer) error) error {
	var b bytes.Buffer
	if e.json {
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(v); err != nil {
			return err
		}
	} else if err := human(&b); err != nil {
		return err
	}
	_, err := e.stdout.Write(b.Bytes())
	return err
}

// paths are the folders in force.
func (e *env) paths() (config.Paths, error) {
	paths, err := config.FindPaths(e.getenv)
	if err != nil {
		return paths, withCode(exitConfig, err)
	}
	return paths, nil
}

// settings is the content of vogt.toml.
func (e *env) settings(paths config.Paths) (config.Client, error) {
	layers, err := config.LoadLayers(config.DefaultClient(), paths, "vogt", nil)
	if err == nil {
		err = layers.Value.Validate()
	}
	if err != nil {
		return config.Client{}, withCode(exitConfig, err)
	}
	return layers.Value, nil
}

// home is where this user's identities lie.
func home(paths config.Paths) client.Home { return client.Home{Folder: paths.Config} }

// options are the surroundings of a client.
func (e *env) options(ctx context.Context, paths config.Paths) client.Options {
	return client.Options{
		Memory:     paths.State,
		Now:        e.now,
		Passphrase: e.passphrase(ctx),
		Warn: func(n client.Notice) {
			switch n.Kind {
			case client.ClockDiffers:
				e.say(messages.ClockDiffers, n.Detail)
			}
		},
	}
}

// identity is the file of the identity that --agent names, or the default one.
func (e *env) identity(paths config.Paths) (client.File, error) {
	if e.agent == "" {
		return home(paths).Default(), nil
	}
	return home(paths).Agent(e.agent)
}

// actingAgent lets VOGT_AGENT name the identity where --agent does not: for
// what an agent does itself, never for what only a person may do.
func (e *env) actingAgent() {
	if !e.agentSet {
		e.agent = e.getenv("VOGT_AGENT")
	}
}

// open returns a client that speaks as the identity that --agent names, or as
// the default one.
func (e *env) open(ctx context.Context) (*client.Client, error) {
	paths, err := e.paths()
	if err != nil {
		return nil, err
	}
	return e.openIdentity(ctx, paths)
}

// openActing is open for what agents do themselves, see actingAgent.
func (e *env) openActing(ctx context.Context) (*client.Client, error) {
	e.actingAgent()
	return e.open(ctx)
}

func (e *env) openIdentity(ctx context.Context, paths config.Paths) (*client.Client, error) {
	file, err := e.identity(paths)
	if err != nil {
		return nil, err
	}
	c, err := client.Open(file, e.options(ctx, paths))
	return c, e.explainAbsent(paths, err)
}

// explainAbsent turns the lack of a login of an agent into the advice that
// helps: an agent that was never made here is enrolled, one that was logged
// out logs in again.
func (e *env) explainAbsent(paths config.Paths, err error) error {
	c, ok := errors.AsType[*client.Error](err)
	if !ok || c.Kind != client.NotLoggedIn || e.agent == "" {
		return err
	}
	if _, statErr := os.Stat(home(paths).AgentFolder(e.agent)); !errors.Is(statErr, fs.ErrNotExist) {
		return err
	}
	return withCode(exitConfig, errors.New(e.text(messages.NoAgentHere, e.agent)))
}

// openToRun is openActing for the commands that run something: there the
// configuration may name the agent, too.
func (e *env) openToRun(ctx context.Context) (*client.Client, config.Client, error) {
	paths, err := e.paths()
	if err != nil {
		return nil, config.Client{}, err
	}
	settings, err := e.settings(paths)
	if err != nil {
		return nil, settings, err
	}
	e.actingAgent()
	if !e.agentSet && e.agent == "" {
		e.agent = settings.Agent
	}
	c, err := e.openIdentity(ctx, paths)
	return c, settings, err
}

// passphrase asks for a key's passphrase on the controlling terminal, or says
// that there is none.
func (e *env) passphrase(ctx context.Context) func(string) ([]byte, error) {
	return func(path string) ([]byte, error) {
		return readSecret(ctx, e.text(messages.Passphrase, terminal.Visible(path)))
	}
}

// key loads the person's SSH key from path.
func (e *env) key(ctx context.Context, path string) (*sshkey.Private, error) {
	if err := e.notPublic(path); err != nil {
		return nil, err
	}
	if err := client.CheckKeyFile(path); err != nil {
		return nil, err
	}
	key, err := sshkey.LoadPrivate(path, e.passphrase(ctx))
	if err != nil {
		return nil, withCode(exitConfig, err)
	}
	return key, nil
}

// notPublic refuses a file with the public half of a key where the private one
// is wanted. Every other file is left to whoever loads it.
func (e *env) notPublic(path string) error {
	if _, err := readPublic(path); err != nil {
		return nil
	}
	private := strings.TrimSuffix(path, ".pub")
	if private == path {
		private = "…"
	}
	return withCode(exitConfig, errors.New(e.text(messages.PublicHalf, terminal.Visible(path), terminal.Visible(private))))
}

// absolute makes a path from the command line absolute.
func (e *env) absolute(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", withCode(exitConfig, err)
	}
	return abs, nil
}

// usualKey is the key that an identity has when none is named: that of an agent
// lies beside its login, that of a person where ssh keeps it. It is "" when
// there is none.
func (e *env) usualKey(file client.File) string {
	path := filepath.Join(filepath.Dir(file.Path()), "key")
	if e.agent == "" {
		dir := e.getenv("HOME")
		if dir == "" {
			dir = e.getenv("USERPROFILE")
		}
		path = filepath.Join(dir, ".ssh", "id_ed25519")
	}
	if _, err := os.Stat(path); !filepath.IsAbs(path) || errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	return path
}

// hostname is the name of this machine in requests.
func hostname() (string, error) {
	name, err := os.Hostname()
	if err != nil || name == "" {
		return "", withCode(exitConfig, fmt.Errorf("this machine has no name (%v); give one with --host", err))
	}
	return name, nil
}
