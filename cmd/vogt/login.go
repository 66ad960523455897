package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"vogt/cmd/vogt/messages"
	"vogt/internal/api"
	"vogt/internal/client"
	"vogt/internal/config"
	"vogt/internal/terminal"
)

func newLoginCommand(e *env) *cobra.Command {
	var idp, keyPath string
	var browser, page, force, mock bool
	cmd := &cobra.Command{
		Use:   "login [EMAIL]",
		Short: "Log in with an SSH key, by a page, or through a browser",
		Long: `Log in as a person or an agent. With an SSH key that the authority knows, the
login renews itself. Without one, vogt prints the address of a page, to be opened
anywhere, on which you confirm the login with a passkey; it then reads, denies and
revokes until it ends. With --browser you log in through a browser on this
machine; that login renews itself for 30 days, or until you end it on the
account page. EMAIL can be left out when somebody was logged in here before.

Without --idp, an earlier login or an address in vogt.toml, the authority is the one
that the domain of EMAIL names in the DNS (see: vogt dns-check). An address that
differs from the one that the domain names is refused, unless --force is given or
it is one of this machine.`,
		Args: cobra.MaximumNArgs(1),
		RunE: command(func(cmd *cobra.Command, args []string) error {
			if btoi(browser)+btoi(page)+btoi(keyPath != "") > 1 {
				return &usageError{text: e.text(messages.KeyOrBrowser)}
			}
			email := ""
			if len(args) == 1 {
				email = args[0]
			}
			how := loginByKey
			switch {
			case browser:
				how = loginByBrowser
			case page:
				how = loginByPage
			}
			return e.login(cmd.Context(), loginRequest{email: email, idp: idp, keyPath: keyPath, how: how, force: force, mock: mock})
		}),
	}
	cmd.Flags().StringVar(&idp, "idp", "", "the authority's `URL` (default: the one in vogt.toml)")
	cmd.Flags().StringVar(&keyPath, "key", "", "the SSH key `FILE` (default: ~/.ssh/id_ed25519 if it is there)")
	cmd.Flags().BoolVar(&browser, "browser", false, "log in through a browser on this machine")
	cmd.Flags().BoolVar(&page, "page", false, "confirm on a page, on any device, although there is a key")
	cmd.Flags().BoolVar(&force, "force", false, "use the given authority although the domain names another one")
	addMockFlag(cmd, &mock)
	return cmd
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// loginMeans is how somebody wants to log in. The zero value takes a key if
// there is one, else a page.
type loginMeans uint8

const (
	loginByKey loginMeans = iota
	loginByPage
	loginByBrowser
)

// loginRequest is what the command line says.
type loginRequest struct {
	email, idp, keyPath string
	how                 loginMeans
	force, mock         bool
}

// target is where and as whom a login is made.
type target struct {
	file    client.File
	before  client.Login // what lies there now; zero if nothing
	address string
	options client.Options
}

// loginTarget finds the file and the authority for a login of r.email, which is that
// of the last login if it is empty.
func (e *env) loginTarget(ctx context.Context, r *loginRequest) (target, error) {
	var t target
	paths, err := e.paths()
	if err != nil {
		return t, err
	}
	settings, err := e.settings(paths)
	if err != nil {
		return t, err
	}
	if t.file, err = e.identity(paths); err != nil {
		return t, err
	}
	// A file that is missing or damaged is what a login is for.
	t.before, _ = t.file.Load()
	if r.email == "" {
		if r.email = t.before.Email; r.email == "" {
			return t, &usageError{text: e.text(messages.WhichEmail)}
		}
	}
	configured := address(r.idp, t.before, settings)
	if configured == config.DefaultClient().Authority && r.idp == "" && t.before.Authority == "" && !e.namesAuthority(paths) {
		configured = ""
	}
	if t.address, err = e.authorityFor(ctx, settings, r.email, configured, r.mock, r.force); err != nil {
		return t, err
	}
	t.options = e.options(ctx, paths)
	if t.address == settings.Authority {
		t.options.LogKey = settings.AuthorityKey
	}
	return t, nil
}

// address is the authority that is meant: the one named, else that of the last
// login, else that of the configuration.
func address(idp string, before client.Login, settings config.Client) string {
	switch {
	case idp != "":
		return idp
	case before.Authority != "":
		return before.Authority
	}
	return settings.Authority
}

// namesAuthority reports whether vogt.toml names an authority. The default, when
// nothing does, is no choice of anybody's.
func (e *env) namesAuthority(paths config.Paths) bool {
	layers, err := config.LoadLayers(config.Client{}, paths, "vogt", nil)
	return err == nil && layers.Value.Authority != ""
}

func (e *env) login(ctx context.Context, r loginRequest) error {
	t, err := e.loginTarget(ctx, &r)
	if err != nil {
		return err
	}
	email, idp, keyPath, how := r.email, r.idp, r.keyPath, r.how
	if keyPath == "" && how == loginByKey {
		if t.before.Email == email {
			keyPath = t.before.KeyPath
		}
		if keyPath == "" {
			keyPath = e.usualKey(t.file)
		}
	}
	c, err := client.Contact(t.address, t.file, t.options)
	if err != nil {
		return err
	}
	defer c.Close()
	if keyPath != "" {
		if keyPath, err = e.absolute(keyPath); err != nil {
			return err
		}
		if err = e.notPublic(keyPath); err != nil {
			return err
		}
	}
	if err := e.hasOwner(ctx, c); err != nil {
		return err
	}
	otherwise := e.text(messages.KeyInstead, loginLine(email, idp))
	switch {
	case keyPath != "":
		err = e.loginRefused(c.LogIn(ctx, email, keyPath), email, keyPath)
	case how == loginByBrowser:
		err = c.LogInByBrowser(ctx, email, func(address string) error {
			e.say(messages.LogInOnPage, formatDuration(client.BrowserLimit))
			fmt.Fprintf(e.stderr, "Log in: %s\n", address)
			fmt.Fprintln(e.stderr, "vogt: "+otherwise)
			return nil
		})
	default:
		err = e.loginByPage(ctx, c, email, otherwise)
	}
	if err != nil {
		return err
	}
	if b := t.before; b.Email != "" && (b.Email != email || b.Authority != c.Authority()) {
		e.say(messages.ReplacedLogin, terminal.Visible(b.Email), terminal.Visible(b.Authority))
	}
	return e.print(identityOf(c.Login()), line(e.text(messages.LoggedIn, terminal.Visible(email), c.Authority())))
}

// hasOwner refuses an authority that nobody could log in at: a wait for
// somebody to confirm would be in vain.
func (e *env) hasOwner(ctx context.Context, c *client.Client) error {
	h, err := c.Health(ctx)
	if err == nil && !h.SetUp {
		err = withCode(exitConfig, errors.New(e.text(messages.NoOwnerYet)))
	}
	return err
}

// loginRefused says what the refusal of a login with a key means to whoever
// typed it. The authority does not tell a wrong key from an unknown address.
func (e *env) loginRefused(err error, email, keyPath string) error {
	if c, ok := errors.AsType[*client.Error](err); ok && c.Kind == client.NotLoggedIn && c.Status == http.StatusUnauthorized {
		text := e.text(messages.LoginRefused, terminal.Visible(keyPath), terminal.Visible(email))
		return withCode(exitConfig, errors.New(text))
	}
	return err
}

// loginLine is the command of a login with a key, for somebody to copy.
func loginLine(email, idp string) string {
	line := "vogt login " + terminal.Visible(email)
	if idp != "" {
		line += " --idp " + terminal.Visible(idp)
	}
	return line + " --key FILE"
}

// loginByPage has a login of this machine confirmed on a page.
func (e *env) loginByPage(ctx context.Context, c *client.Client, email, otherwise string) error {
	name, err := hostname()
	if err != nil {
		return err
	}
	done, err := e.confirmOnPage(ctx, c, api.TrustDevice, map[string]string{"name": name}, otherwise)
	if err != nil {
		return err
	}
	if done.Login == nil {
		return &client.Error{Kind: client.Malformed, Where: c.Authority(), Detail: "the confirmed login is missing"}
	}
	if done.Login.Email != email {
		return &client.Error{Kind: client.Refused, Where: c.Authority(),
			Detail: e.text(messages.OtherPersonConfirmed, done.Login.Email, email)}
	}
	return c.LogInWith(ctx, *done.Login)
}

// confirmOnPage prepares a change of trust, prints where to confirm it, how long
// that can be done and what to do otherwise, and waits. Whether the person has a
// passkey is not known here: the authority tells it to nobody who is not logged in.
func (e *env) confirmOnPage(ctx context.Context, c *client.Client, operation string, params map[string]string, otherwise string) (api.Trust, error) {
	change, err := c.Prepare(ctx, operation, params)
	if err != nil {
		return api.Trust{}, err
	}
	left := time.Unix(change.ExpiresAt, 0).Sub(e.now()).Round(time.Minute)
	e.say(messages.ConfirmOnPage, formatDuration(max(left, time.Minute)))
	fmt.Fprintf(e.stderr, "Confirm: %s\n", terminal.Visible(change.ConfirmURL))
	fmt.Fprintln(e.stderr, "vogt: "+otherwise)
	return c.AwaitChange(ctx, change)
}

// identity is what --json tells of a login: everything but the token.
type identity struct {
	Email     string `json:"email"`
	Type      string `json:"type"`
	Authority string `json:"authority"`
	Owner     string `json:"owner,omitempty"`
	Expires   int64  `json:"expires_at"`
	KeyPath   string `json:"key_path,omitempty"`
}

func identityOf(l client.Login) identity {
	return identity{Email: l.Email, Type: l.Act, Authority: l.Authority, Owner: l.Owner, Expires: l.Expires, KeyPath: l.KeyPath}
}

func newLogoutCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "logout",
		Short: "End the login, here and at the authority",
		Args:  cobra.NoArgs,
		RunE: command(func(cmd *cobra.Command, _ []string) error {
			c, err := e.open(cmd.Context())
			if err != nil {
				return err
			}
			defer c.Close()
			l := c.Login()
			if err := c.LogOut(cmd.Context()); err != nil {
				e.say(messages.LogoutLocal, moment(l.Expires))
				return err
			}
			return e.print(identityOf(l), line(e.text(messages.LoggedOut, terminal.Visible(l.Email))))
		}),
	}
}

func newWhoamiCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "whoami",
		Short: "Say who is logged in here; makes no request",
		Args:  cobra.NoArgs,
		RunE: command(func(*cobra.Command, []string) error {
			paths, err := e.paths()
			if err != nil {
				return err
			}
			e.actingAgent()
			file, err := e.identity(paths)
			if err != nil {
				return err
			}
			l, err := file.Load()
			if err != nil {
				return e.explainAbsent(paths, err)
			}
			return e.print(identityOf(l), func(w io.Writer) error {
				s := &sheet{w: w}
				s.fact("Email", l.Email)
				s.fact("Type", l.Act)
				s.some("Owner", l.Owner)
				s.fact("Authority", l.Authority)
				s.fact("Token", e.tokenState(l))
				s.some("Key", l.KeyPath)
				s.fact("File", filepath.Clean(file.Path()))
				return s.err
			})
		}),
	}
}

// tokenState says how long a login lasts.
func (e *env) tokenState(l client.Login) string {
	left := time.Unix(l.Expires, 0).Sub(e.now()).Round(time.Second)
	switch {
	case left > 0 && l.Renews():
		return e.text(messages.TokenRenews, left)
	case left > 0:
		return e.text(messages.TokenEnds, left)
	case l.Renews():
		return e.text(messages.TokenRenewsNow)
	}
	return e.text(messages.TokenEnded)
}
