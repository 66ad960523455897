package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"vogt/cmd/vogt/messages"
	"vogt/internal/api"
	"vogt/internal/client"
	"vogt/internal/sshkey"
	"vogt/internal/terminal"
)

func newKeyCommand(e *env) *cobra.Command {
	return newGroup("key", "Your own SSH keys and passkeys",
		newKeyListCommand(e), newKeyAddCommand(e), newKeyRemoveCommand(e), newKeyPasskeyCommand(e),
	)
}

// signKeyFlag is how a change of one's own account is proven.
func signKeyFlag(cmd *cobra.Command, path *string) {
	cmd.Flags().StringVar(path, "key", "", "the SSH key `FILE` to sign with (default: that of the login)")
}

func newKeyListCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List your SSH keys",
		Args:  cobra.NoArgs,
		RunE: command(func(cmd *cobra.Command, _ []string) error {
			c, err := e.openOwner(cmd.Context())
			if err != nil {
				return err
			}
			defer c.Close()
			me, err := c.Me(cmd.Context())
			if err != nil {
				return err
			}
			return e.print(append([]api.Key{}, me.Keys...), func(w io.Writer) error {
				if len(me.Keys) == 0 {
					return line(e.text(messages.NoKeys))(w)
				}
				table := terminal.Table{Header: []string{"ID", "NAME", "STATE", "ADDED", "FINGERPRINT"}, Width: terminal.Width(e.stdout)}
				for _, k := range me.Keys {
					table.Rows = append(table.Rows, []string{shortID(k.ID), k.Name, e.keyState(k), moment(k.CreatedAt), fingerprint(k)})
				}
				return table.Print(w)
			})
		}),
	}
}

// shortID is enough of a key's ID to name it by.
func shortID(id string) string { return id[:min(len(id), 12)] }

func fingerprint(k api.Key) string {
	public, err := sshkey.ParsePublic(k.PublicKey)
	if err != nil {
		return ""
	}
	return public.Fingerprint()
}

// keyState says what a key is good for. The words are the same in every
// language, like the names of facts.
func (e *env) keyState(k api.Key) string {
	state := "decides"
	if k.LoginOnly {
		state = "logs in only"
	}
	if k.DormantUntil > e.now().Unix() {
		state += " from " + moment(k.DormantUntil)
	}
	return state
}

func newKeyAddCommand(e *env) *cobra.Command {
	var keyPath string
	cmd := &cobra.Command{
		Use:   "add FILE.pub",
		Short: "Let another SSH key decide for you",
		Long: `Let another SSH key decide for you, at once. Adding it is a change of trust: it
is signed with the SSH key of your login, or confirmed on the page whose address
is printed.`,
		Args: cobra.ExactArgs(1),
		RunE: command(func(cmd *cobra.Command, args []string) error {
			if err := e.personHere(); err != nil {
				return err
			}
			public, err := readPublic(args[0])
			if err != nil {
				return err
			}
			_, _, err = e.changeTrust(cmd.Context(), trustOptions{key: keyPath}, api.TrustKeyAdd, map[string]string{"public_key": public.String()})
			if c, ok := errors.AsType[*client.Error](err); ok && c.Status == http.StatusConflict {
				return withCode(exitUsage, errors.New(e.text(messages.KeyTaken, public.Fingerprint())))
			}
			if err != nil {
				return err
			}
			return e.print(map[string]string{"keyId": string(public.ID()), "publicKey": public.String()},
				line(e.text(messages.KeyAdded, public.Fingerprint())))
		}),
	}
	signKeyFlag(cmd, &keyPath)
	return cmd
}

// personHere refuses where the identity is an agent's: what is prepared as an
// agent would be about whoever confirms it.
func (e *env) personHere() error {
	paths, err := e.paths()
	if err != nil {
		return err
	}
	// A missing login is no matter: the page then tells who it is about.
	if l, err := home(paths).Default().Load(); err == nil && l.Agent() {
		return &client.Error{Kind: client.Refused, Detail: e.text(messages.AgentsChangeNoKeys)}
	}
	return nil
}

func newKeyRemoveCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "remove ID",
		Short: "Take an SSH key of yours away; the login suffices",
		Long: `Take an SSH key of yours away: it decides no more, and logins made with it end
at once. ID is what "vogt key list" shows, the key's fingerprint, or the beginning
of either. The last key or passkey that decides for you stays.`,
		Args: cobra.ExactArgs(1),
		RunE: command(func(cmd *cobra.Command, args []string) error {
			return e.removeKey(cmd.Context(), args[0])
		}),
	}
}

func (e *env) removeKey(ctx context.Context, named string) error {
	if err := e.personHere(); err != nil {
		return err
	}
	c, err := e.openOwner(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	me, err := c.Me(ctx)
	if err != nil {
		return err
	}
	k, err := e.findKey(me.Keys, named)
	if err != nil {
		return err
	}
	if err := c.RemoveKey(ctx, k.ID); err != nil {
		return err
	}
	if own, err := readPublic(c.Login().KeyPath + ".pub"); err == nil && string(own.ID()) == k.ID {
		e.say(messages.LoginKeyRemoved)
	}
	return e.print(k, line(e.text(messages.KeyRemoved, fingerprint(k))))
}

// findKey finds the one key whose ID or fingerprint begins with what was named.
func (e *env) findKey(keys []api.Key, named string) (api.Key, error) {
	var found []api.Key
	for _, k := range keys {
		if named != "" && (strings.HasPrefix(k.ID, named) || strings.HasPrefix(fingerprint(k), named)) {
			found = append(found, k)
		}
	}
	switch len(found) {
	case 0:
		return api.Key{}, &client.Error{Kind: client.Unknown, Detail: e.text(messages.NoSuchKey, terminal.Visible(named))}
	case 1:
		return found[0], nil
	}
	return api.Key{}, &usageError{text: e.text(messages.ManyKeys, terminal.Visible(named))}
}

func newKeyPasskeyCommand(e *env) *cobra.Command {
	var keyPath string
	cmd := &cobra.Command{
		Use:   "passkey",
		Short: "Make a passkey, your first or another one",
		Long: `Make a passkey, your first or another one. After you have signed with your SSH
key, vogt prints an address that works once, for ten minutes: open it in the
browser that shall hold the passkey, or that has your security key. Who has the
address can make the passkey, so give it to nobody.

Without an SSH key the change is confirmed on a page with a passkey that you
have, and the browser goes on from there.`,
		Args: cobra.NoArgs,
		RunE: command(func(cmd *cobra.Command, _ []string) error {
			if err := e.personHere(); err != nil {
				return err
			}
			done, _, err := e.changeTrust(cmd.Context(), trustOptions{key: keyPath}, api.TrustPasskeyAdd, map[string]string{})
			if err != nil {
				return err
			}
			text := e.text(messages.PasskeyOnPage)
			if done.Link != "" {
				e.say(messages.PasskeyLink)
				text = terminal.Visible(done.Link)
			}
			return e.print(map[string]string{"status": done.Status, "link": done.Link}, line(text))
		}),
	}
	signKeyFlag(cmd, &keyPath)
	return cmd
}
