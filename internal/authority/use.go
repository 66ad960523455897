package authority

import (
	"context"
	"errors"
	"time"

	"vogt/internal/api"
	"vogt/internal/fault"
	"vogt/internal/grant"
	"vogt/internal/store"
	"vogt/internal/token"
)

// grantTokenLife bounds how long a grant token can lie about before it is
// used. The permission itself may last longer; a new token costs one call.
const grantTokenLife = 5 * time.Minute

// Token issues the token that lets one execution start. Only the requester
// gets it, and nothing is spent by it: that is Consume's.
func (a *Authority) Token(ctx context.Context, by Actor, id string) (string, grant.Grant, error) {
	var g grant.Grant
	err := a.view(ctx, func(tx store.Tx) (err error) {
		if g, err = store.GrantByID(tx, id); err != nil || !by.party(g) {
			return errNoGrant(orNotFound(err))
		}
		if by.Principal.Email != g.Request.Requester {
			return problem(403, "Only the requester may use this grant", "", "").kind("forbidden")
		}
		if err := a.usableBy(tx, g); err != nil {
			return err
		}
		if err := standingStill(tx, g, a.now()); err != nil {
			return err
		}
		return policyStill(tx, g, a.now())
	})
	if err != nil {
		return "", g, err
	}
	now := a.now()
	if g = g.As(now); !g.Permits(now) {
		return "", g, errNotApproved(g)
	}
	fault.Point("authority.token")
	jti, err := a.newID()
	if err != nil {
		return "", g, err
	}
	expires := now.Seconds() + int64(grantTokenLife/time.Second)
	if g.ValidUntil != 0 {
		// Rounded up: the grant's own rule, in milliseconds, decides at use.
		expires = min(expires, g.ValidUntil.Seconds()+1)
	}
	req := g.Request
	raw, err := token.Sign(a.keys.Load().signing, token.Grant{
		Issuer: a.cfg.Issuer, Subject: req.Requester, Audience: req.Audience, Host: req.Host,
		IssuedAt: now.Seconds(), Expires: expires, ID: jti, GrantID: g.ID, GrantType: g.Type, Approval: g.Type,
		Permissions: req.Permissions, Details: req.Details, CmdHash: req.CmdHash, Command: req.Command,
		Context: req.Context, DecidedBy: g.Decision.By, RunAs: req.RunAs, Use: token.UseGrant, Epoch: a.Epoch(), Key: by.KeyID,
	})
	return raw, g, err
}

// usableBy checks that the requester is still the one that asked, and that it
// and its owner are in good standing.
func (a *Authority) usableBy(tx store.Tx, g grant.Grant) error {
	p, err := store.PrincipalByEmail(tx, g.Request.Requester)
	if err != nil {
		return errUnauthenticated().caused(err)
	}
	switch {
	case !usable(p), p.Generation != g.Requester.Generation:
		return inactive(p.Email)
	case p.Paused:
		return paused(p.Email)
	}
	if p.Owner == "" {
		return nil
	}
	owner, err := store.PrincipalByEmail(tx, p.Owner)
	if err != nil || !usable(owner) {
		return inactive(p.Owner).caused(err)
	}
	return nil
}

func errNotApproved(g grant.Grant) error {
	switch g.Status {
	case grant.Pending:
		return problem(400, "Nobody has answered yet", "The grant is pending.", "Wait for the owner: vogt grant run "+g.ID+" --wait.").kind("grant_not_approved")
	case grant.Denied:
		detail := "The owner said no."
		if g.Decision != nil && g.Decision.Note != "" {
			detail = "The owner said no: " + g.Decision.Note
		}
		return problem(403, "The request was denied", detail, "Do not repeat it unchanged; ask the owner.").kind("grant_denied")
	case grant.Revoked:
		return problem(403, "The grant was revoked", "", "Ask again, or ask the owner why.").kind("grant_revoked")
	}
	return errDecided(g)
}

// Consumed is what a use of a grant gave.
type Consumed struct {
	Grant   grant.Grant
	Use     string
	Receipt *api.Receipt
	// Refused names why the grant does not permit, in the wire's words; the
	// grant tells its state. Empty when the execution may start.
	Refused string
}

// Consume spends a use of the grant: it is recorded as intent, and only then
// may anything start. The token must be one of ours for this very grant, and
// everything that could have changed since is checked in the same transaction
// that spends it.
func (a *Authority) Consume(ctx context.Context, raw, id string) (Consumed, error) {
	claims, err := a.keys.Load().all.VerifyGrant(raw, a.cfg.Issuer, a.clock())
	if err != nil {
		title := "The grant token is not valid"
		if errors.Is(err, token.ErrExpired) {
			title = "The grant token has expired"
		}
		return Consumed{}, problem(401, title, "", "Ask for a new one: vogt grant run "+id+".").kind("invalid_authz_jwt").caused(err)
	}
	if claims.GrantID != id {
		return Consumed{}, problem(400, "The token is for another grant", "", "").kind("invalid_authz_jwt")
	}
	if claims.Epoch != a.Epoch() {
		return Consumed{}, problem(401, "The grant token is from before a restore", "", "Ask again.").kind("invalid_authz_jwt")
	}
	use, err := a.randomHex(16)
	if err != nil {
		return Consumed{}, err
	}
	receipt, err := a.useReceipt(ctx, id)
	if err != nil {
		return Consumed{}, err
	}
	labels, err := a.earned(ctx, id)
	if err != nil {
		return Consumed{}, err
	}
	var out Consumed
	err = a.update(ctx, func(t *txn) error {
		out = Consumed{}
		g, err := store.GrantByID(t, id)
		if err != nil {
			return errNoGrant(err)
		}
		if g.Request.Requester != claims.Subject {
			return problem(401, "The token is for another requester", "", "").kind("invalid_authz_jwt")
		}
		if err := a.usableBy(t, g); err != nil {
			return err
		}
		if err := standingStill(t, g, t.now); err != nil && !g.As(t.now).Status.Terminal() {
			return err
		}
		if err := policyStill(t, g, t.now); err != nil && !g.As(t.now).Status.Terminal() {
			return err
		}
		if claims.Key != "" {
			if k, err := store.KeyByID(t, claims.Key); err != nil || k.Email != claims.Subject {
				return problem(401, "The key behind this grant token was removed", "", "Log in with the new key and ask for a new token.").kind("invalid_authz_jwt").caused(err)
			}
		}
		if claims.Epoch != a.Epoch() {
			return problem(401, "The grant token is from before a restore", "", "Ask again.").kind("invalid_authz_jwt")
		}
		next, err := g.Apply(grant.Consume{At: t.now})
		if err != nil || !g.Permits(t.now) || receipt == nil {
			out = Consumed{Grant: g.As(t.now), Refused: refusedWord(g.As(t.now).Status)}
			if !a.rates.try("refused:"+claims.Subject, a.clock()) {
				a.log.Warn("refusals come too fast to be recorded", "by", claims.Subject, "tried", "consume")
				return nil
			}
			_, err := t.record(recordRefusal, id, g.Request.Requester, refusalRecord{Grant: id, By: claims.Subject, Tried: "consume", Why: out.Refused})
			return err
		}
		fault.Point("authority.consume")
		if err := t.swap(next); err != nil {
			return err
		}
		if err := store.InsertUse(t, use, id, int64(t.now)); err != nil {
			return err
		}
		if err := t.label(g, labels); err != nil {
			return err
		}
		fault.Point("authority.intent")
		if _, err := t.record(recordIntent, id, claims.Subject, intentRecord{Grant: id, By: claims.Subject, Use: use, N: next.Uses}); err != nil {
			return err
		}
		out = Consumed{Grant: next, Use: use, Receipt: receipt}
		return nil
	})
	if err == nil && out.Refused == "" {
		fault.Point("authority.consumed")
	}
	return out, err
}

// useReceipt is the receipt that a use of the grant will carry, nil if nobody
// has decided yet. A decision never changes, so the receipt is made beside the
// writer and before anything is spent: a log that cannot be read or signed
// costs nothing.
func (a *Authority) useReceipt(ctx context.Context, id string) (*api.Receipt, error) {
	var receipt *api.Receipt
	err := a.view(ctx, func(tx store.Tx) error {
		g, err := store.GrantByID(tx, id)
		if err != nil {
			return errNoGrant(err)
		}
		if g.Decision == nil {
			return nil
		}
		index, err := store.DecisionRecord(tx, id)
		if err != nil {
			return err
		}
		receipt, err = a.receiptOf(tx, g, index)
		return err
	})
	if err != nil || receipt == nil {
		return nil, err
	}
	receipt.Checkpoint, err = a.Checkpoint(ctx, receipt.Record+1)
	return receipt, err
}

func refusedWord(s grant.Status) string {
	switch s {
	case grant.Used:
		return "already_consumed"
	case grant.Revoked, grant.Denied, grant.Expired:
		return string(s)
	}
	return "not_approved"
}

// Outcome records how an execution ended, once, as its requester reports it.
func (a *Authority) Outcome(ctx context.Context, by Actor, id string, o api.Outcome) error {
	if !by.Known() {
		return errUnauthenticated()
	}
	return a.update(ctx, func(t *txn) error {
		g, err := store.GrantByID(t, id)
		if err != nil || !by.party(g) || g.Request.Requester != by.Principal.Email {
			return errNoGrant(orNotFound(err))
		}
		if err := store.EndUse(t, o.Use, id, int64(t.now)); errors.Is(err, store.ErrConflict) {
			return problem(409, "This execution is unknown or its end is recorded already", "", "")
		} else if err != nil {
			return err
		}
		fault.Point("authority.outcome")
		_, err = t.record(recordOutcome, id, by.Principal.Email, outcomeRecord{
			Grant: id, By: by.Principal.Email, Use: o.Use, ExitCode: o.ExitCode, Signal: shorten(o.Signal, 32),
			MS: o.DurationMS, Error: shorten(o.Error, maxReason), Source: "claimed",
		})
		// The grant itself did not change, but who looks at it sees more now.
		t.OnCommit(func() { t.a.hub.publish(g) })
		return err
	})
}
