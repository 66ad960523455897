package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"vogt/internal/quickstart"
	"vogt/internal/reading"
	"vogt/internal/sshkey"
)

const upHelp = `Up starts the authority (vogtd) under your own user on this machine, leads you
through its set-up the first time, and writes its address and the key of its log
into vogt.toml, so that the other commands find it. When it runs already, up
says so and changes nothing.

The first time, up prints the address of a page. Open it in your browser, type
the four digits that it shows into this terminal, and register a passkey there.
Without a terminal, give the owner as an SSH public key:

  vogt up --headless --owner you@example.org --owner-key ~/.ssh/id_ed25519.pub

The address alone goes to standard output. "vogt down" stops the authority.
The assistant (vogt-assistant) is not part of this version.

What this set-up protects and what not: "vogt doctor" and docs/threat-model.md.

Exit codes: 69 the authority cannot be started, 75 the set-up is not finished or
the data are in use, 78 wrong settings or no way to set it up.`

// ownerFlags name the owner of an authority that is set up without a page.
type ownerFlags struct{ email, name, keyFile string }

func newUpCommand(e *env) *cobra.Command {
	var o quickstart.Options
	var owner ownerFlags
	var headless bool
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start the authority on this machine and set it up",
		Long:  upHelp,
		Args:  cobra.NoArgs,
		RunE: command(func(cmd *cobra.Command, _ []string) error {
			var err error
			if o.Headless, err = owner.read(headless); err != nil {
				return err
			}
			if headless {
				o.Terminal = func() (quickstart.Terminal, error) { return nil, errors.New("--headless was given") }
			}
			if o.Paths, err = e.paths(); err != nil {
				return err
			}
			self, err := os.Executable()
			if err != nil {
				return err
			}
			if o.Daemon, err = quickstart.FindDaemon(self); err != nil {
				return err
			}
			o.Env, o.Out, o.Err, o.JSON = e.environ, e.stdout, e.stderr, e.json
			ctx := cmd.Context()
			if o.Foreground {
				// The end of the terminal ends what is attached to it.
				attached, stop := signal.NotifyContext(ctx, syscall.SIGHUP)
				defer stop()
				ctx = attached
			}
			return quickstart.Up(ctx, o)
		}),
	}
	f := cmd.Flags()
	f.StringVar(&o.Listen, "listen", "", "`ADDRESS` and port to listen on; port 0 takes a free one (default 127.0.0.1:8648, or where it was before)")
	f.StringVar(&o.Bearer, "bearer-decisions", "", "highest `RISK` that a login alone may approve: none, medium or high; only for clients that cannot sign")
	f.BoolVar(&o.NoWait, "no-wait", false, "do not wait for the set-up")
	f.BoolVar(&o.Foreground, "foreground", false, "keep the authority attached to this terminal")
	f.BoolVar(&headless, "headless", false, "ask nothing; the owner is given by --owner and --owner-key")
	f.StringVar(&owner.email, "owner", "", "`EMAIL` of the owner (with --headless)")
	f.StringVar(&owner.name, "owner-name", "", "`NAME` of the owner (with --headless)")
	f.StringVar(&owner.keyFile, "owner-key", "", "`FILE` with the owner's public SSH key, ssh-ed25519 (with --headless)")
	return cmd
}

// read checks the flags and reads the public key. Without an owner, and with
// none asked for, it returns nil.
func (f ownerFlags) read(headless bool) (*quickstart.Owner, error) {
	switch {
	case f == ownerFlags{}:
		return nil, nil
	case !headless:
		return nil, &usageError{text: "--owner, --owner-name and --owner-key need --headless"}
	case f.email == "" || f.keyFile == "":
		return nil, &usageError{text: "--headless makes an owner from --owner EMAIL and --owner-key FILE.pub; give both"}
	}
	text, err := os.ReadFile(f.keyFile)
	if err != nil {
		return nil, badKey(err)
	}
	line := strings.TrimSpace(string(text))
	if strings.HasPrefix(line, "-----BEGIN") {
		return nil, badKey(fmt.Errorf("%s is a private key, which nobody but you should have; give the public half, %s.pub", f.keyFile, f.keyFile))
	}
	key, err := sshkey.ParsePublic(line)
	if err != nil {
		return nil, badKey(fmt.Errorf("%s: %w", f.keyFile, err))
	}
	owner := &quickstart.Owner{Email: f.email, Name: f.name, PublicKey: key.String()}
	if private, ok := strings.CutSuffix(f.keyFile, ".pub"); ok {
		owner.KeyFile = reading.Line([]string{private})
	}
	return owner, nil
}

func badKey(err error) error {
	return &quickstart.ExitError{Code: quickstart.CodeConfig, Err: fmt.Errorf("--owner-key: %w", err)}
}
