package client

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"vogt/internal/api"
	"vogt/internal/statement"
)

// Change is a prepared change of trust, with the secret by which its asker
// learns the result.
type Change struct {
	api.Trust
	secret string
}

// Prepare asks for a change of trust. A client that is not logged in can have
// it confirmed on a page only; one that is can also sign it, see Statement.
func (c *Client) Prepare(ctx context.Context, operation string, params map[string]string) (Change, error) {
	secret := make([]byte, 32)
	if _, err := io.ReadFull(c.opts.Random, secret); err != nil {
		return Change{}, fmt.Errorf("randomness: %w", err)
	}
	change := Change{secret: hex.EncodeToString(secret)}
	ex := call{method: http.MethodPost, path: api.PathTrust, answer: &change.Trust,
		body: api.TrustRequest{Operation: operation, Params: params, Secret: change.secret}}
	var err error
	if c.login.Email == "" {
		_, err = c.wire.send(ctx, ex)
	} else {
		err = c.do(ctx, ex)
	}
	if err != nil {
		return Change{}, err
	}
	if change.ID == "" || change.Operation != operation || !maps.Equal(change.Params, params) {
		return Change{}, &Error{Kind: Distrusted, Where: c.wire.base, Detail: "it prepared another change than the one that was asked for"}
	}
	return change, c.checkID("change", change.ID)
}

// Statement is what a signature over the change confirms, after a check that it
// is about this change and nothing else.
func (c *Client) Statement(change Change) (statement.Statement, error) {
	if change.Trust.Statement == nil || change.Digest == nil {
		return statement.Statement{}, &Error{Kind: Refused, Where: c.wire.base, Detail: "the change can be confirmed on the page only",
			Hint: "open " + change.ConfirmURL}
	}
	s := *change.Trust.Statement
	argv := []string{change.Operation}
	for _, key := range slices.Sorted(maps.Keys(change.Params)) {
		argv = append(argv, key+"="+change.Params[key])
	}
	if s.Digest() != *change.Digest || s.Purpose != statement.Trust || s.Issuer != c.wire.base || s.GrantID != change.ID ||
		!slices.Equal(s.Argv, argv) || s.Owner == nil || *s.Owner != c.login.Email {
		return s, &Error{Kind: Distrusted, Where: c.wire.base, Detail: "the statement to be signed is not about the change that was asked for",
			Hint: "sign nothing; ask whoever runs the authority"}
	}
	return s, nil
}

// Confirm makes a change with the person's signature over the digest of what
// Statement returned, and returns its result. A link is part of it only here:
// the authority gives it to whoever confirms.
func (c *Client) Confirm(ctx context.Context, change Change, digest statement.Digest, signature string) (api.Trust, error) {
	path := api.PathTrust + "/" + escape(change.ID) + "/confirm"
	var confirmed api.Trust
	err := c.do(ctx, call{method: http.MethodPost, path: path, body: api.ConfirmTrust{Digest: digest, Signature: signature}, answer: &confirmed})
	if err != nil {
		return api.Trust{}, err
	}
	done, err := c.AwaitChange(ctx, change)
	done.Link = confirmed.Link
	return done, err
}

// AwaitChange waits until a change is confirmed and returns its result.
// Declined and expired are errors of kind NotConfirmed.
func (c *Client) AwaitChange(ctx context.Context, change Change) (api.Trust, error) {
	var outage time.Duration
	pause := firstPause
	for {
		left := time.Unix(change.ExpiresAt, 0).Sub(c.opts.Now())
		wait := min(max(left, 0)+time.Second, longPoll)
		var now api.Trust
		_, err := c.wire.send(ctx, call{
			method: http.MethodGet,
			path:   api.PathTrust + "/" + escape(change.ID),
			query:  url.Values{"wait": {strconv.Itoa(int(math.Ceil(wait.Seconds())))}},
			header: map[string]string{api.TrustSecretHeader: change.secret},
			answer: &now,
			limit:  exchangeLimit + wait,
		})
		e, failed := errors.AsType[*Error](err)
		switch {
		case failed && (e.Kind == Unreachable || e.Kind == Busy) && outage < outageLimit:
			if err := c.opts.Sleep(ctx, pause); err != nil {
				return now, err
			}
			outage += pause
			pause = min(2*pause, longPause)
			continue
		case err != nil:
			return now, err
		}
		if now.ID != change.ID {
			return now, &Error{Kind: Distrusted, Where: c.wire.base, Detail: fmt.Sprintf("asked about change %q, it answered about %.80q", change.ID, now.ID)}
		}
		outage, pause = 0, firstPause
		switch now.Status {
		case "confirmed":
			return now, nil
		case "declined":
			return now, &Error{Kind: NotConfirmed, Where: c.wire.base, Detail: "it was declined on the page"}
		case "pending":
			if left <= 0 {
				return now, &Error{Kind: NotConfirmed, Where: c.wire.base, Detail: "nobody confirmed in time"}
			}
		case "expired":
			return now, &Error{Kind: NotConfirmed, Where: c.wire.base, Detail: "nobody confirmed in time"}
		default:
			return now, &Error{Kind: Malformed, Where: c.wire.base, Detail: fmt.Sprintf("the change has the unknown state %.40q", now.Status)}
		}
	}
}
