package authority

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
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
		if g, err = store.GrantByID(tx, id); err != nil || !by.party(g, a.now()) {
			return errNoGrant(orNotFound(err))
		}
		if by.Principal.Email != g.Request.Requester {
			return problem(403, "Only the requester may use this grant", "", "").kind("forbidden")
		}
		u, err := useStateOf(tx, g, "")
		if err != nil {
			return err
		}
		if err := usableBy(u, g); err != nil {
			return err
		}
		if err := a.oneTooFew(g, a.now()); err != nil {
			return err
		}
		if err := standingStill(u, g, a.now()); err != nil {
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
	ring := a.keys.Load()
	claims := token.Grant{
		Issuer: a.cfg.Issuer, Subject: req.Requester, Audience: req.Audience, Host: req.Host,
		IssuedAt: now.Seconds(), Expires: expires, ID: jti, GrantID: g.ID, GrantType: g.Type, Approval: g.Type,
		Permissions: req.Permissions, Details: req.Details, CmdHash: req.CmdHash, Command: req.Command,
		Context: req.Context, DecidedBy: g.Decision.By, RunAs: req.RunAs, Use: token.UseGrant, Epoch: a.Epoch(), Key: by.KeyID,
	}
	raw, err := token.Sign(ring.signing, claims)
	if err == nil {
		a.issued.put(raw, claims, ring)
	}
	return raw, g, err
}

// useStateOf reads what decides whether g may be used, as it stands in tx.
func useStateOf(tx store.Tx, g grant.Grant, key string) (store.UseState, error) {
	standing := ""
	if g.Decision != nil {
		standing = g.Decision.Standing
	}
	u, err := store.UseStateOf(tx, g.ID, key, standing)
	return u, errNoGrant(err)
}

// usableBy checks that the requester is still the one that asked, and that it
// and its owner are in good standing.
func usableBy(u store.UseState, g grant.Grant) error {
	p := u.Requester
	switch {
	case p.Email == "":
		return errUnauthenticated()
	case !usable(p), p.Generation != g.Requester.Generation:
		return inactive(p.Email)
	case p.Paused:
		return paused(p.Email)
	case p.Owner != "" && !usable(u.Owner):
		return inactive(p.Owner)
	}
	return nil
}

// standingStill checks that what decided in a person's name still may.
func standingStill(u store.UseState, g grant.Grant, now grant.Millis) error {
	if g.Decision == nil || g.Decision.Standing == "" {
		return nil
	}
	s := u.Standing
	switch {
	case s.Author == "":
		return errNoStanding()
	case !usable(u.Author), u.Author.Generation != s.Generation:
		return inactive(s.Author)
	case s.Revoked != 0 || s.Until.Reached(now) || s.SafeOff:
		return problem(403, "The standing grant behind this is over", "It was revoked, or its time has run out.", "Ask again.").kind("grant_revoked")
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
	claims, err := a.verifyGrant(raw)
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
	random, err := a.randomHex(useRandom)
	if err != nil {
		return Consumed{}, err
	}
	for {
		// Again only if somebody decided in between, which ends.
		if out, ok, err := a.consume(ctx, id, random, claims); ok || err != nil {
			return out, err
		}
	}
}

// consume reads a grant and its receipt beside the writer, and then spends a use of
// it in one transaction, in which everything that decides is read again. ok is
// false, and nothing was done, if the grant was decided between the two.
func (a *Authority) consume(ctx context.Context, id, random string, claims token.Grant) (out Consumed, ok bool, err error) {
	seen, err := a.useReceipt(ctx, id)
	if err != nil {
		return out, false, err
	}
	foreseen := a.foresee(seen.grant)
	err = a.update(ctx, func(t *txn) error {
		out, ok = Consumed{}, false
		u, err := useStateOf(t, seen.grant, claims.Key)
		if err != nil {
			return err
		}
		if u.Record != seen.record {
			return nil
		}
		ok = true
		g, receipt := u.Of(seen.grant), seen.receipt
		if g.Request.Requester != claims.Subject {
			return problem(401, "The token is for another requester", "", "").kind("invalid_authz_jwt")
		}
		if err := usableBy(u, g); err != nil {
			return err
		}
		if err := a.oneTooFew(g, t.now); err != nil {
			return err
		}
		if err := standingStill(u, g, t.now); err != nil && !g.As(t.now).Status.Terminal() {
			return err
		}
		if err := policyStill(t, g, t.now); err != nil && !g.As(t.now).Status.Terminal() {
			return err
		}
		if err := labelsStill(t, g, foreseen); err != nil && !g.As(t.now).Status.Terminal() {
			return err
		}
		if claims.Key != "" && u.KeyHolder != claims.Subject {
			return problem(401, "The key behind this grant token was removed", "", "Log in with the new key and ask for a new token.").kind("invalid_authz_jwt")
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
		if err := store.UseGrant(t, next, a.db.Fence()); err != nil {
			return err
		}
		t.OnCommit(func() { a.hub.publish(next) })
		index, err := t.logSize()
		if err != nil {
			return err
		}
		use := useName(index, random)
		if u.Requester.Kind == kindAgent {
			if err := t.label(g, foreseen.labels); err != nil {
				return err
			}
		}
		fault.Point("authority.intent")
		if _, err := t.record(recordIntent, id, claims.Subject, intentRecord{Grant: id, By: claims.Subject, Use: use, N: next.Uses}); err != nil {
			return err
		}
		out = Consumed{Grant: next, Use: use, Receipt: receipt}
		return nil
	})
	if err == nil && ok && out.Refused == "" {
		fault.Point("authority.consumed")
	}
	return out, ok, err
}

// A use is named by the index of its intent's record, in 12 hex digits, and by
// random bytes.
const (
	useIndex  = 12
	useRandom = 10
)

func useName(index int64, random string) string {
	return fmt.Sprintf("%0*x%s", useIndex, index, random)
}

// intentOf is the record that a use's name leads to, which may be none.
func intentOf(use string) (index int64, ok bool) {
	if len(use) != useIndex+2*useRandom {
		return 0, false
	}
	index, err := strconv.ParseInt(use[:useIndex], 16, 64)
	return index, err == nil && index >= 0
}

// decided is a grant with its decision, which do not change while the index of
// the decision's record is the same.
type decided struct {
	grant   grant.Grant
	record  int64
	receipt *api.Receipt // that a use carries; nil if nobody has decided yet
}

// useReceipt reads a grant and the receipt that a use of it will carry. The
// receipt is made beside the writer and before anything is spent: a log that cannot
// be read or signed costs nothing.
func (a *Authority) useReceipt(ctx context.Context, id string) (d decided, err error) {
	err = a.view(ctx, func(tx store.Tx) error {
		d = decided{}
		var body []byte
		if d.grant, d.record, body, err = store.DecidedGrant(tx, id); err != nil {
			return errNoGrant(err)
		}
		if d.grant.Decision == nil {
			return nil
		}
		s, err := statementIn(body, d.grant, d.record)
		if err != nil {
			return err
		}
		d.receipt, err = receiptWith(tx, d.grant, d.record, s)
		return err
	})
	if err != nil || d.receipt == nil {
		return d, err
	}
	d.receipt.Checkpoint, err = a.Checkpoint(ctx, d.record+1)
	return d, err
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
		if err != nil || !by.party(g, a.now()) || g.Request.Requester != by.Principal.Email {
			return errNoGrant(orNotFound(err))
		}
		if err := t.endUse(o.Use, id); err != nil {
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

// endUse notes, once, that an execution under a grant has ended.
func (t *txn) endUse(use, grantID string) error {
	unknown := problem(409, "This execution is unknown or its end is recorded already", "", "")
	index, ok := intentOf(use)
	if !ok {
		return unknown
	}
	body, err := store.LogBody(t, index)
	if ignoreNotFound(err) != nil {
		return err
	}
	var intent intentRecord
	// An erased intent names no use any more.
	if body == nil || json.Unmarshal(body, &intent) != nil || intent.Use != use || intent.Grant != grantID {
		return unknown
	}
	if err := store.EndIntent(t, index, grantID); errors.Is(err, store.ErrConflict) {
		return unknown
	} else if err != nil {
		return err
	}
	return nil
}

// Verify says whether a grant token would be taken at this moment, and nothing
// else: who holds the token knows what it is for. Nothing is spent by it, and every
// kind of wrong token gets the same answer.
func (a *Authority) Verify(ctx context.Context, raw string) (id string, status grant.Status, err error) {
	claims, err := a.keys.Load().all.VerifyGrant(raw, a.cfg.Issuer, a.clock())
	if err != nil || claims.Epoch != a.Epoch() {
		return "", "", nil
	}
	err = a.view(ctx, func(tx store.Tx) error {
		g, err := store.GrantByID(tx, claims.GrantID)
		if err != nil {
			return ignoreNotFound(err)
		}
		if g.Request.Requester != claims.Subject {
			return nil
		}
		u, err := useStateOf(tx, g, claims.Key)
		if err != nil {
			return err
		}
		if claims.Key != "" && u.KeyHolder != claims.Subject {
			return nil
		}
		for _, still := range []error{usableBy(u, g), standingStill(u, g, a.now()), policyStill(tx, g, a.now()), labelsStill(tx, g, a.foresee(g))} {
			if still != nil {
				return nil
			}
		}
		if g.Permits(a.now()) {
			id, status = g.ID, grant.Approved
		}
		return nil
	})
	return id, status, err
}
