package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"vogt/cmd/vogt/messages"
	"vogt/internal/api"
	"vogt/internal/client"
	"vogt/internal/grant"
	"vogt/internal/sshkey"
	"vogt/internal/statement"
	"vogt/internal/terminal"
)

func newGrantApproveCommand(e *env) *cobra.Command {
	var lasting duration
	var always bool
	var note, keyPath string
	cmd := &cobra.Command{
		Use:   "approve ID",
		Short: "Say yes to a request, with a signature by your SSH key",
		Long: `Say yes to a request. Vogt shows on standard error what exactly would be
permitted, computes the digest of it itself, and signs that with your SSH key.
A login alone permits nothing: without a key, answer on the page.

The permission is for one execution, whatever was asked for, unless you say
otherwise with --for or --always. A connection that a box holds (vogt agent start) is
permitted for that box only: --always means until it ends.`,
		Args: cobra.ExactArgs(1),
		RunE: command(func(cmd *cobra.Command, args []string) error {
			reach := client.Reach{Type: grant.Once}
			switch {
			case lasting > 0 && always:
				return &usageError{text: e.text(messages.ForOrAlways)}
			case lasting > 0:
				reach = client.Reach{Type: grant.Timed, End: e.now().Add(time.Duration(lasting)).Unix()}
			case always:
				reach.Type = grant.Always
			}
			if err := lasting.check(e, "--for"); err != nil {
				return err
			}
			return e.approve(cmd.Context(), args[0], reach, note, keyPath)
		}),
	}
	cmd.Flags().Var(&lasting, "for", "permit it as often as needed for so long: 30s, 5m, 1h, 7d")
	cmd.Flags().BoolVar(&always, "always", false, "permit it until you revoke it")
	cmd.Flags().StringVar(&note, "note", "", "a word to the agent")
	cmd.Flags().StringVar(&keyPath, "key", "", "the SSH key `FILE` to sign with (default: that of the login)")
	return cmd
}

// approve shows, signs and sends a yes.
func (e *env) approve(ctx context.Context, id string, reach client.Reach, note, keyPath string) error {
	c, err := e.open(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	if c.Login().Agent() {
		return &client.Error{Kind: client.Refused, Detail: e.text(messages.AgentsDoNotApprove)}
	}
	g, err := c.Grant(ctx, id)
	if err != nil {
		return err
	}
	if g.Request == nil {
		return notYours(id)
	}
	if g.Status != grant.Pending {
		return e.alreadyDecided(g)
	}
	if keyPath == "" {
		keyPath = c.Login().KeyPath
	}
	if keyPath == "" {
		e.say(messages.ApproveOnPage)
		e.labels(g, string(g.Status))
		return withCode(exitUndecided, nil)
	}
	if g.First != "" && !reachSaid(reach) {
		// The second of two persons allows what the first one did.
		reach = client.Reach{Type: g.FirstType, End: g.FirstEnds}
		e.say(messages.AsTheFirst, terminal.Visible(g.First), string(reach.Type))
	}
	offer, err := c.Offer(ctx, g, reach)
	if err != nil {
		return err
	}
	signature, signer, err := e.signAs(ctx, offer.Statement, offer.Risk, keyPath)
	if err != nil {
		return err
	}
	digest := offer.Statement.Digest()
	decided, err := c.Approve(ctx, id, api.Decide{
		GrantType: reach.Type, ExpiresAt: reach.End, Digest: &digest, Signature: signature, Note: note,
	})
	if err != nil {
		return e.keyRefused(ctx, c, err, signer)
	}
	if decided.Status == grant.Pending {
		return e.print(decided, line(e.text(messages.FirstOfTwo, terminal.Visible(decided.ID), string(reach.Type))))
	}
	return e.print(decided, line(e.text(messages.Approved, terminal.Visible(decided.ID), string(reach.Type))))
}

// reachSaid reports whether a reach other than the usual was asked for.
func reachSaid(r client.Reach) bool { return r.Type != grant.Once }

// keyRefused says it when an answer was refused because its key is not one of
// the person's: the authority's own words are for programs.
func (e *env) keyRefused(ctx context.Context, c *client.Client, refusal error, signer sshkey.Public) error {
	r, ok := errors.AsType[*client.Error](refusal)
	if !ok || r.Status != http.StatusForbidden {
		return refusal
	}
	me, err := c.Me(ctx)
	if err != nil || ownsKey(me, signer) {
		return refusal
	}
	text := e.text(messages.KeyNotYours, signer.Fingerprint(), terminal.Visible(me.Email))
	return withCode(exitRefused, errors.New(text))
}

// ownsKey reports whether the authority lists the key for the person.
func ownsKey(p api.Principal, key sshkey.Public) bool {
	return slices.ContainsFunc(p.Keys, func(k api.Key) bool {
		listed, err := sshkey.ParsePublic(k.PublicKey)
		return err == nil && listed.Equal(key)
	})
}

// alreadyDecided is the error for a request that needs no answer any more.
func (e *env) alreadyDecided(g api.Grant) error {
	kind := client.Decided
	if g.Status == grant.Expired || g.Status == grant.Used {
		kind = client.Spent
	}
	return &client.Error{Kind: kind, Detail: e.text(messages.IsAlready, g.ID, string(g.Status))}
}

// signAs shows a statement, signs it with the key in the file at path, and names
// the key. The digest is computed here, from what is shown.
func (e *env) signAs(ctx context.Context, st statement.Statement, risk, path string) (string, sshkey.Public, error) {
	if err := e.showSigned(st, risk); err != nil {
		return "", sshkey.Public{}, err
	}
	path, err := e.absolute(path)
	if err != nil {
		return "", sshkey.Public{}, err
	}
	key, err := e.key(ctx, path)
	if err != nil {
		return "", sshkey.Public{}, err
	}
	signature, err := sshkey.Sign(key, sshkey.NamespaceDecision, []byte(st.Digest().String()))
	return signature, key.Public(), err
}

// showSigned writes to standard error what is going to be signed.
func (e *env) showSigned(st statement.Statement, risk string) error {
	e.say(messages.YouSign)
	if err := e.showStatement(e.stderr, st, risk); err != nil {
		return err
	}
	_, err := io.WriteString(e.stderr, "Digest:      "+st.Digest().String()+"\n")
	return err
}
