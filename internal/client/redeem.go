package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"vogt/internal/api"
	"vogt/internal/detail"
	"vogt/internal/grant"
	"vogt/internal/statement"
	"vogt/internal/token"
)

// Redeem turns the approved grant id into one execution of req. It gets the
// grant token, verifies that it permits this very request on this host to this
// identity, and consumes it. The error is nil only when the authority has
// recorded the intent; use names the execution.
//
// A consume whose answer was lost is an error, although the permission may be
// spent: a lost grant costs another question, a reused one costs trust.
func (c *Client) Redeem(ctx context.Context, id string, req grant.Request) (use string, err error) {
	raw, err := c.Token(ctx, id, req)
	if err != nil {
		return "", err
	}
	return c.consume(ctx, id, raw, req)
}

// Token returns the verified grant token for one execution of req.
func (c *Client) Token(ctx context.Context, id string, req grant.Request) (string, error) {
	var answer api.Token
	err := c.do(ctx, call{method: http.MethodPost, path: api.PathGrants + "/" + escape(id) + "/token", answer: &answer})
	if err != nil {
		return "", err
	}
	claims, err := c.verify(ctx, answer.AuthzJWT)
	if err != nil {
		return "", err
	}
	if what := unpermitted(claims, id, c.login.Email, req); what != "" {
		return "", &Error{Kind: Distrusted, Where: c.wire.base, Detail: "the token is not for this execution: " + what + " differs"}
	}
	return answer.AuthzJWT, nil
}

// unpermitted names the first part of a token that does not permit req.
func unpermitted(t token.Grant, id, email string, req grant.Request) string {
	switch {
	case t.GrantID != id:
		return "grant"
	case t.Subject != email:
		return "requester"
	case t.Audience != req.Audience:
		return "audience"
	case t.Host != req.Host:
		return "host"
	case t.RunAs != req.RunAs:
		return "run_as"
	case req.Connect != nil:
		return otherConnection(t, req)
	case len(t.Command) == 0 || !slices.Equal(t.Command, req.Command):
		return "command"
	case t.CmdHash != "" && t.CmdHash != detail.CmdHash(req.Command):
		return "cmd_hash"
	}
	if t.Context != nil {
		if len(t.Context.Argv) > 0 && !slices.Equal(t.Context.Argv, req.Command) {
			return "argv"
		}
		if t.Context.ArgvHash != "" && t.Context.ArgvHash != detail.ArgvHash(req.Command) {
			return "argv_hash"
		}
	}
	return ""
}

// otherConnection names the first part of a token that does not permit a
// connection of a box.
func otherConnection(t token.Grant, req grant.Request) string {
	switch {
	case len(t.Command) > 0:
		return "command"
	case !slices.Equal(t.Permissions, []string{req.Connect.Network().Permission()}):
		return "connection"
	case t.Context == nil || t.Context.Confinement == nil || *t.Context.Confinement != *req.Context.Confinement:
		return "confinement"
	}
	return ""
}

// verify checks signature, issuer and time of a grant token. Keys that are
// unknown are fetched from the issuer, once.
func (c *Client) verify(ctx context.Context, raw string) (token.Grant, error) {
	keys := token.Keys{}
	if len(c.login.Keys) > 0 {
		var err error
		if keys, err = token.ParseJWKS(c.login.Keys); err != nil {
			return token.Grant{}, c.file.bad("its jwks", err)
		}
	}
	claims, err := keys.VerifyGrant(raw, c.wire.base, c.opts.Now())
	if errors.Is(err, token.ErrInvalid) {
		// The issuer may have changed its key since.
		if keys, err = c.fetchKeys(ctx); err != nil {
			return token.Grant{}, err
		}
		claims, err = keys.VerifyGrant(raw, c.wire.base, c.opts.Now())
	}
	if errors.Is(err, token.ErrExpired) {
		e := &Error{Kind: Distrusted, Where: c.wire.base, Detail: "the token that it just issued has ended already"}
		if h, healthErr := c.Health(ctx); healthErr == nil {
			e.Hint = c.clockDiffers(h)
		}
		return token.Grant{}, e
	}
	if err != nil {
		return token.Grant{}, &Error{Kind: Distrusted, Where: c.wire.base, Err: err}
	}
	return claims, nil
}

// fetchKeys adds the keys that the issuer publishes now to the pinned ones and
// keeps them. A key that took the place of a pinned one is refused.
func (c *Client) fetchKeys(ctx context.Context) (token.Keys, error) {
	published, err := c.publishedKeys(ctx)
	if err != nil {
		return nil, err
	}
	var keys token.Keys
	login, err := c.file.Locked(ctx, func(now Login) (Login, error) {
		if now.Authority != c.login.Authority {
			return now, &Error{Kind: NotLoggedIn, Where: c.file.path, Detail: "meanwhile somebody has logged in elsewhere"}
		}
		if now.Keys, keys, err = c.mergeKeys(now.Keys, published); err != nil {
			return now, err
		}
		return now, nil
	})
	if err != nil {
		return nil, err
	}
	c.login = login
	return keys, nil
}

func (c *Client) publishedKeys(ctx context.Context) (token.Keys, error) {
	var raw []byte
	if _, err := c.wire.send(ctx, call{method: http.MethodGet, path: api.PathJWKS, answer: &raw}); err != nil {
		return nil, err
	}
	keys, err := token.ParseJWKS(raw)
	if err != nil {
		return nil, &Error{Kind: Malformed, Where: c.wire.base, Err: err}
	}
	return keys, nil
}

// mergeKeys adds published keys to the pinned ones.
func (c *Client) mergeKeys(pinned json.RawMessage, published token.Keys) (json.RawMessage, token.Keys, error) {
	keys := token.Keys{}
	if len(pinned) > 0 {
		var err error
		if keys, err = token.ParseJWKS(pinned); err != nil {
			return nil, nil, c.file.bad("its jwks", err)
		}
	}
	for id, key := range published {
		if old, ok := keys[id]; ok && !old.Equal(key) {
			return nil, nil, &Error{Kind: KeyChanged, Where: c.wire.base,
				Detail: fmt.Sprintf("another key is published under the name %.80q", id),
				Hint:   "no rotation does that: ask whoever runs the authority"}
		}
		keys[id] = key
	}
	merged, err := keys.JWKS()
	return merged, keys, err
}

// consume spends the permission.
func (c *Client) consume(ctx context.Context, id, raw string, req grant.Request) (use string, err error) {
	var answer api.Consumed
	_, err = c.wire.send(ctx, call{method: http.MethodPost, path: api.PathGrants + "/" + escape(id) + "/consume", bearer: raw, answer: &answer})
	if err != nil {
		return "", err
	}
	if answer.Error != "" {
		return "", c.notConsumed(answer)
	}
	if answer.Status != "consumed" && answer.Status != "valid" || !isUse(answer.Use) {
		return "", &Error{Kind: Malformed, Where: c.wire.base, Detail: fmt.Sprintf("the use of grant %q was not acknowledged", id)}
	}
	// Without the receipt there would be no proof of what was redeemed.
	if answer.Receipt == nil {
		return "", &Error{Kind: Distrusted, Where: c.wire.base, Detail: fmt.Sprintf("the use of grant %q came without a receipt", id)}
	}
	if what := c.unproven(*answer.Receipt, id, req); what != "" {
		return "", &Error{Kind: Distrusted, Where: c.wire.base, Detail: "the receipt is not for this execution: " + what + " differs"}
	}
	if err := c.observe(ctx, answer.Receipt.Checkpoint); err != nil {
		return "", err
	}
	return answer.Use, nil
}

// notConsumed is the error for a permission that was refused at its use.
func (c *Client) notConsumed(answer api.Consumed) error {
	e := &Error{Kind: Spent, Where: c.wire.base, Detail: answer.Error}
	switch grant.Status(answer.Status) {
	case grant.Used:
		e.Detail = "the grant was used already"
	case grant.Expired:
		e.Detail = "the grant has expired"
	case grant.Denied, grant.Revoked:
		e.Kind, e.Detail = Refused, "the grant is "+answer.Status
	case grant.Pending, grant.Approved:
		e.Kind = Refused
	}
	return e
}

// unproven names the first part of a receipt that does not prove a decision
// about req. What the statement leaves out was approved without it.
func (c *Client) unproven(r api.Receipt, id string, req grant.Request) string {
	s := r.Statement
	connects := req.Connect != nil
	found := grant.Context{}
	if req.Context != nil {
		found = *req.Context
	}
	for _, part := range []struct {
		name string
		fits bool
	}{
		{"grant", r.GrantID == id && s.GrantID == id},
		{"digest", s.Digest() == r.Digest},
		{"purpose", s.Purpose == statement.Connect && connects || s.Purpose == statement.Run && req.RunAs == "" && !connects || s.Purpose == statement.Crossing && req.RunAs != ""},
		{"issuer", s.Issuer == c.wire.base},
		{"command", len(s.Argv) > 0 != connects && slices.Equal(s.Argv, req.Command)},
		{"connection", !connects || s.NetworkMode != nil && s.Confinement != nil && *s.NetworkMode == req.Connect.Network().Mode()},
		{"requester", s.Requester != nil && *s.Requester == c.login.Email},
		{"host", s.Host != nil && *s.Host == "claimed:"+req.Host},
		{"run_as", equalText(s.RunAsName, req.RunAs)},
		{"program", s.Executable == nil || equalFile(s.Executable, found.File)},
		{"interpreter", len(s.Interpreters) == 0 || equalFiles(s.Interpreters, found.Interpreters)},
		{"working directory", s.Cwd == nil || equalFile(s.Cwd, found.Cwd)},
		{"caller", s.CallerUID == nil || equal(s.CallerUID, found.UID)},
		{"standard input", s.Stdin == nil || equal(s.Stdin, found.Stdin)},
		{"confinement", s.Confinement == nil || equal(s.Confinement, found.Confinement)},
		{"network", s.NetworkMode == nil || equal(s.NetworkMode, found.NetworkMode)},
	} {
		if !part.fits {
			return part.name
		}
	}
	return ""
}

// reportLimit bounds how long the end of a command can be held up by its
// report.
const reportLimit = 10 * time.Second

// Report records the outcome of an execution. When the authority cannot take it
// now, it is kept and sent at the next contact; an error means that it is lost.
func (c *Client) Report(ctx context.Context, id string, outcome api.Outcome) error {
	limited, cancel := context.WithTimeout(ctx, reportLimit)
	defer cancel()
	err := c.report(limited, id, outcome)
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*Error](err); ok && settled(e.Kind) {
		return err
	}
	if keepErr := c.outbox.keep(id, outcome); keepErr != nil {
		return errors.Join(err, keepErr)
	}
	return nil
}

func (c *Client) report(ctx context.Context, id string, outcome api.Outcome) error {
	const most = 4 << 10
	if len(outcome.Error) > most {
		outcome.Error = strings.ToValidUTF8(outcome.Error[:most], "")
	}
	return c.do(ctx, call{method: http.MethodPost, path: api.PathGrants + "/" + escape(id) + "/outcome", body: outcome})
}

// settled reports whether an error of this kind stays the same when the same
// thing is sent again.
func settled(k Kind) bool {
	switch k {
	case Refused, Unknown, Decided, Spent, Invalid:
		return true
	case Malformed, Unreachable, NotLoggedIn, Busy, WrongIssuer, Distrusted, KeyChanged, Forked, Behind, BadFile, KeyLocked, NotConfirmed:
	}
	return false
}
