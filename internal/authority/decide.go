package authority

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"vogt/internal/api"
	"vogt/internal/detail"
	"vogt/internal/fault"
	"vogt/internal/grant"
	"vogt/internal/sshkey"
	"vogt/internal/statement"
	"vogt/internal/store"
)

// Proof is what shows that the person meant exactly this answer. At most one
// field is set; none means that the login itself is all there is.
type Proof struct {
	Assertion []byte // WebAuthn response JSON over the statement's digest
	Signature string // armoured SSHSIG over the digest in lower-case hex
	// Click is what the pages verified of a click, kept as its evidence. It
	// proves nothing by itself: Actor.Proven does.
	Click json.RawMessage
}

// Answer is a person's yes.
type Answer struct {
	Reach  Reach
	Digest *statement.Digest // of what was shown; nil only from a bearer
	Note   string
	Proof  Proof
}

const maxNote = 2000

// Needs is the least strength that an approval of g must have.
func (a *Authority) Needs(g grant.Grant) grant.Strength {
	switch {
	case g.Request.RunAs != "":
		return grant.Independent
	case !g.Risk.Within(detail.High):
		return grant.Passkey
	case a.cfg.RequireSignature != detail.Unrated && (g.Risk == detail.Unrated || g.Risk >= a.cfg.RequireSignature):
		return grant.Passkey
	}
	return grant.Click
}

// Offer is the exact statement that an approval of this reach would sign.
func (a *Authority) Offer(ctx context.Context, by Actor, id string, reach Reach) (api.Offer, error) {
	g, party, err := a.Get(ctx, by, id)
	if err != nil {
		return api.Offer{}, err
	}
	if !party {
		return api.Offer{}, errNoGrant(store.ErrNotFound)
	}
	if err := a.checkReach(reach); err != nil {
		return api.Offer{}, err
	}
	s := a.statementOf(g, reach)
	return api.Offer{Statement: s, Digest: s.Digest(), Needs: a.Needs(g), Risk: g.Risk.String()}, nil
}

// lasting reports whether g may be allowed for longer than one execution.
func lasting(g grant.Grant) bool {
	return g.Risk.Within(detail.High) && g.Request.RunAs == "" && g.Request.Binding() == ""
}

func (a *Authority) checkReach(r Reach) error {
	now := a.now()
	switch {
	case !r.Type.Valid():
		return problem(400, "Unknown grant type", fmt.Sprintf("grant_type %q: want once, timed or always.", r.Type), "").kind("invalid_grant_type")
	case r.Type == grant.Timed && r.Until == 0:
		return problem(400, "The duration is missing", "A timed approval needs an end, also where it was asked for without one.", "Say how long, in seconds: {\"grant_type\":\"timed\",\"duration\":3600}; or approve on the page, or by: vogt grant approve ID --for 1h.").kind("missing_duration")
	case r.Type == grant.Timed && (r.Until.Reached(now) || r.Until > now+grant.Millis(maxDuration*1000)):
		return problem(400, "The end is out of range", "A timed approval ends in the future, within one year.", "")
	case r.Type != grant.Timed && r.Until != 0:
		return problem(400, "Only a timed approval has an end", "", "")
	}
	return nil
}

// proven is a proof that held.
type proven struct {
	strength  grant.Strength
	evidence  json.RawMessage
	passkeyID string
	after     string // the credential as it must be stored after this use
	keyID     string
}

// prove checks a proof over digest. A bearer without proof is the weakest
// strength; whether that suffices is the caller's question.
func (a *Authority) prove(ctx context.Context, by Actor, digest statement.Digest, p Proof) (proven, error) {
	switch {
	case p.Assertion != nil && p.Signature != "":
		return proven{}, problem(400, "Two proofs at once", "Send an assertion or a signature, not both.", "")
	case p.Assertion != nil:
		return a.provePasskey(ctx, by, digest, p.Assertion)
	case p.Signature != "":
		return a.proveSSH(ctx, by, digest, p.Signature)
	case by.Means == Page && by.Proven:
		return proven{strength: grant.Click, evidence: p.Click}, nil
	case by.Means == Page:
		return proven{}, problem(403, "This page cannot decide", "A cookie alone reads; a decision needs the key that this browser made at sign-in.",
			"Sign in again on this browser.").kind("forbidden")
	}
	return proven{strength: grant.Bearer}, nil
}

func (a *Authority) provePasskey(ctx context.Context, by Actor, digest statement.Digest, response []byte) (proven, error) {
	_, creds, err := a.passkeysOf(ctx, by.Principal.Email)
	if err != nil {
		return proven{}, err
	}
	ev, err := a.passkeys.VerifyDecision(digest, creds, response)
	if err != nil {
		return proven{}, problem(403, "The passkey's answer does not fit", "Nothing was decided.",
			"Open the request again and confirm with a passkey of this account.").caused(err)
	}
	b, err := json.Marshal(ev)
	if err != nil {
		return proven{}, err
	}
	out := proven{strength: grant.Passkey, evidence: b, passkeyID: passkeyID(ev.CredentialID)}
	for _, c := range creds {
		if passkeyID(c.ID) != out.passkeyID {
			continue
		}
		next, err := c.After(ev)
		if err != nil {
			return proven{}, err
		}
		after, err := json.Marshal(next)
		out.after = string(after)
		return out, err
	}
	return proven{}, problem(403, "The passkey is not one of this account", "Nothing was decided.", "")
}

func (a *Authority) proveSSH(ctx context.Context, by Actor, digest statement.Digest, signature string) (proven, error) {
	var keys []sshkey.Public
	err := a.view(ctx, func(tx store.Tx) error {
		stored, err := store.Keys(tx, by.Principal.Email)
		for _, k := range stored {
			if k.Weak || k.DormantUntil > int64(a.now()) {
				continue
			}
			public, err := sshkey.ParsePublic(k.PublicKey)
			if err != nil {
				return err
			}
			keys = append(keys, public)
		}
		return err
	})
	if err != nil {
		return proven{}, err
	}
	key, err := sshkey.Verify(signature, sshkey.NamespaceDecision, []byte(digest.String()), keys)
	if err != nil {
		return proven{}, problem(403, "The signature does not fit", "Nothing was decided.",
			"Sign the digest of the statement in namespace "+string(sshkey.NamespaceDecision)+" with a key of this account.").caused(err)
	}
	b, err := json.Marshal(map[string]string{"kind": "sshsig", "namespace": string(sshkey.NamespaceDecision), "public_key": key.String(), "signature": signature})
	if err != nil {
		return proven{}, err
	}
	return proven{strength: grant.Independent, evidence: b, keyID: string(key.ID())}, nil
}

// still checks, inside the transaction that acts on it, that what proved the
// answer has not been removed meanwhile, and that the person may still act.
func (t *txn) still(by Actor, p proven) error {
	person, err := store.PrincipalByEmail(t, by.Principal.Email)
	if err != nil || !usable(person) || person.Generation != by.Principal.Generation {
		return errUnauthenticated().caused(err)
	}
	if by.Means == Page || by.Means == Administrator {
		if _, err := store.SessionByID(t, by.Session.ID); err != nil {
			return errUnauthenticated().caused(err)
		}
	}
	if p.strength == grant.Bearer && by.KeyID != "" {
		// What a key may not sign, a login that it brought may not decide.
		if k, err := store.KeyByID(t, by.KeyID); err != nil || k.Weak {
			return problem(403, "This login decides nothing", "Its key was added by management and is good for logging in only.",
				"Log in with another key of the account.").kind("forbidden").caused(err)
		}
	}
	if p.keyID != "" {
		if k, err := store.KeyByID(t, p.keyID); err != nil || k.Email != person.Email {
			return errUnauthenticated().caused(err)
		}
	}
	if p.passkeyID != "" {
		if k, err := store.PasskeyByID(t, p.passkeyID); err != nil || k.Email != person.Email {
			return errUnauthenticated().caused(err)
		}
		// Whoever holds a passkey needs no recovery, and did not ask for one.
		if err := t.cancelRecovery(person.Email, person.Email); err != nil {
			return err
		}
		return store.UsePasskey(t, p.passkeyID, p.after, int64(t.now))
	}
	return nil
}

// Approve is a person's yes to exactly what was shown.
func (a *Authority) Approve(ctx context.Context, by Actor, id string, ans Answer) (grant.Grant, error) {
	g, party, err := a.Get(ctx, by, id)
	if err != nil {
		return g, err
	}
	if !party {
		return g, errNoGrant(store.ErrNotFound)
	}
	seat, mandate, ok := by.decides(g, a.now())
	if !ok {
		return g, a.refuse(ctx, by, g.ID, "approve", notYours(g))
	}
	if g.Status != grant.Pending {
		return g, errDecided(g)
	}
	// The statement names whole seconds, and what it names is what holds.
	ans.Reach.Until -= ans.Reach.Until % 1000
	if err := a.checkReach(ans.Reach); err != nil {
		return g, err
	}
	if ans.Reach.Type != grant.Once && !lasting(g) {
		return g, problem(403, "This can only be allowed once", "It is critical, a crossing, or from a client that does not bind its commands.", "Allow it once.").kind("forbidden")
	}
	if mandate != nil && !withinMandate(ans.Reach, mandate) {
		return g, a.refuse(ctx, by, g.ID, "approve", problem(403, "A deputy allows this only for as long as the appointment lasts",
			"It ends at "+mandate.Until.Time().UTC().Format("2006-01-02 15:04:05 UTC")+".", "Allow it once, or until then at most.").kind("forbidden"))
	}
	if err := a.oneTooFew(g, a.now()); err != nil {
		return g, err
	}
	s := a.statementOf(g, ans.Reach)
	digest := s.Digest()
	if ans.Digest != nil || by.Means == Page || ans.Proof.given() {
		if err := checkedDigest(ans.Digest, digest); err != nil {
			return g, err
		}
	}
	p, err := a.prove(ctx, by, digest, ans.Proof)
	if err != nil {
		return g, a.refuse(ctx, by, g.ID, "approve", err)
	}
	if err := a.enough(g, mandate, p.strength); err != nil {
		return g, a.refuse(ctx, by, g.ID, "approve", err)
	}
	encoded, err := json.Marshal(s)
	if err != nil {
		return g, err
	}
	var next grant.Grant
	err = a.update(ctx, func(t *txn) error {
		if err := t.still(by, p); err != nil {
			return err
		}
		current, err := store.GrantByID(t, id)
		if err != nil {
			return errNoGrant(err)
		}
		if s := t.a.statementOf(current, ans.Reach); s.Digest() != digest {
			return checkedDigest(&digest, s.Digest())
		}
		d := grant.Decision{
			By: by.Principal.Email, At: t.now, Strength: p.strength, Note: shorten(ans.Note, maxNote), Digest: digest, Evidence: p.evidence,
		}
		until := ans.Reach.Until
		if ans.Reach.Type == grant.Once {
			until = t.now + grant.Millis(a.cfg.OnceTTL.Milliseconds())
		}
		if mandate != nil {
			m, err := t.deputyStill(mandate.ID, d.By, current)
			if err != nil {
				return err
			}
			d.For, d.Deputy, until = seat, m.ID, min(until, m.Until)
		}
		rec := decisionRecord{
			Grant: id, By: d.By, For: d.For, Deputy: d.Deputy, Answer: "approved",
			Strength: p.strength, Digest: digest, Statement: encoded, Evidence: p.evidence, Note: d.Note,
		}
		if current.TwoPersons() {
			first, err := t.firstStill(current)
			if err != nil {
				return err
			}
			// The statement also names the signing key, which changes now and then: then what
			// the first person signed is not what this one does, and begins anew.
			if e := current.Endorsed; first == nil || e.Type == ans.Reach.Type && e.Until == ans.Reach.Until && e.Digest != digest {
				current.Endorsed = nil
				next, err = t.endorse(current, by, d, ans.Reach, rec)
				return err
			}
			if first.until != 0 {
				until = min(until, first.until)
			}
			rec.First, rec.FirstRecord = current.Endorsed.By, current.Endorsed.Record
		}
		if next, err = current.Apply(grant.Approve{Type: ans.Reach.Type, Until: until, Decision: d}); errors.Is(err, grant.ErrSecond) {
			return notSecond(current, d)
		} else if err != nil {
			return errDecided(current.As(t.now))
		}
		if d.Deputy != "" {
			if err := store.DeputyAnswered(t, d.Deputy, id); err != nil {
				return err
			}
		}
		rec.Type, rec.Until = next.Type, next.ValidUntil
		return t.settle(next, rec)
	})
	if wrong := new(Error); errors.As(err, &wrong) && wrong.Kind == kindSecond {
		return g, a.refuse(ctx, by, g.ID, "approve", err)
	}
	return next, err
}

func (p Proof) given() bool { return p.Assertion != nil || p.Signature != "" }

// settle stores a decision and its record together.
func (t *txn) settle(next grant.Grant, rec decisionRecord) error {
	index, err := t.record(recordDecision, next.ID, next.Request.Requester, rec)
	if err != nil {
		return err
	}
	fault.Point("authority.settle")
	return t.swapDecided(next, index)
}

// enough compares the strength of an approval with what the grant needs.
func (a *Authority) enough(g grant.Grant, mandate *store.Deputy, s grant.Strength) error {
	needs := a.Needs(g)
	if s == grant.Bearer {
		// The switch is for clients that know neither deputies nor second persons.
		if mandate == nil && !g.TwoPersons() && needs == grant.Click && g.Risk.Within(a.cfg.Bearer) {
			return nil
		}
		return problem(403, "A login alone permits nothing", "An approval needs the page's proof or a signature made for this very answer.",
			"Approve on the page, or with an SSH key: vogt grant approve "+g.ID+". For clients that can do neither there is the authority's bearer_decisions switch.").kind("forbidden")
	}
	if !s.AtLeast(needs) {
		return problem(403, "This approval needs more than a "+string(s), fmt.Sprintf("Risk %s: it needs %s.", g.Risk, needs),
			"Confirm with a passkey, or sign with an SSH key: vogt grant approve "+g.ID+".").kind("forbidden")
	}
	return nil
}

func notYours(g grant.Grant) *Error {
	return problem(403, "This is not yours to decide", "Only "+strings.Join(uniq(g.Owner, g.Approver), " or ")+" can answer it, as a person.",
		"Ask them; nothing else moves it.").kind("forbidden")
}

func uniq(a, b string) []string {
	if b == "" || a == b {
		return []string{a}
	}
	return []string{a, b}
}

func errDecided(g grant.Grant) *Error {
	switch g.Status {
	case grant.Expired:
		return problem(410, "Nobody answered in time", "The grant is expired.", "The agent may ask again.").kind("grant_expired")
	case grant.Used:
		return problem(410, "The grant is used", "It permitted one execution and that has started.", "Ask again for another.").kind("grant_already_used")
	}
	return problem(409, "The grant is already decided", "It is "+string(g.Status)+".", "").kind("grant_already_decided")
}

// refuse records that somebody tried what it may not, and returns why. Who
// tries without end is refused as well, but does not fill the disk.
func (a *Authority) refuse(ctx context.Context, by Actor, id, tried string, why error) error {
	if !a.rates.try("refused:"+by.Name(), a.clock()) {
		a.log.Warn("refusals come too fast to be recorded", "by", by.Name(), "tried", tried)
		return why
	}
	err := a.update(ctx, func(t *txn) error {
		_, err := t.record(recordRefusal, id, by.Principal.Email, refusalRecord{Grant: id, By: by.Name(), Tried: tried, Why: why.Error()})
		return err
	})
	if err != nil {
		a.log.Error("a refusal could not be recorded", "err", err, "grant", id, "by", by.Name())
	}
	return why
}

// Deny is a person's no, or the requester taking its request back.
func (a *Authority) Deny(ctx context.Context, by Actor, id, note string) (grant.Grant, error) {
	var next grant.Grant
	if by.Means == Page && !by.Proven {
		_, err := a.prove(ctx, by, statement.Digest{}, Proof{})
		return next, err
	}
	err := a.narrow(ctx, func(t *txn) error {
		g, err := store.GrantByID(t, id)
		if err != nil || !by.party(g, t.now) {
			return errNoGrant(orNotFound(err))
		}
		s := t.a.statementOf(g, Reach{Type: grant.Once})
		strength := grant.Bearer
		if by.Means == Page {
			strength = grant.Click
		}
		d := grant.Decision{By: by.Name(), At: t.now, Strength: strength, Note: shorten(note, maxNote), Digest: s.Digest()}
		if seat, mandate, ok := by.decides(g, t.now); ok && mandate != nil {
			if _, err := t.deputyStill(mandate.ID, d.By, g); err != nil {
				return err
			}
			d.For, d.Deputy = seat, mandate.ID
		}
		if next, err = g.Apply(grant.Deny{Decision: d}); err != nil {
			return errDecided(g.As(t.now))
		}
		encoded, err := json.Marshal(s)
		if err != nil {
			return err
		}
		return t.settle(next, decisionRecord{
			Grant: id, By: d.By, For: d.For, Deputy: d.Deputy, Answer: "denied", Strength: strength, Digest: d.Digest, Statement: encoded, Note: d.Note,
		})
	})
	return next, err
}

func orNotFound(err error) error {
	if err == nil {
		return store.ErrNotFound
	}
	return err
}

// Revoke takes a pending request or a permission back.
func (a *Authority) Revoke(ctx context.Context, by Actor, id, why string) (grant.Grant, error) {
	var next grant.Grant
	if by.Means == Page && !by.Proven {
		_, err := a.prove(ctx, by, statement.Digest{}, Proof{})
		return next, err
	}
	err := a.narrow(ctx, func(t *txn) error {
		g, err := store.GrantByID(t, id)
		if err != nil || !by.party(g, a.now()) {
			return errNoGrant(orNotFound(err))
		}
		if next, err = g.Apply(grant.Revoke{By: by.Name(), At: t.now}); err != nil {
			return errDecided(g.As(t.now))
		}
		return t.revoke(next, why)
	})
	return next, err
}

func (t *txn) revoke(next grant.Grant, why string) error {
	if err := t.swap(next); err != nil {
		return err
	}
	fault.Point("authority.revoke")
	_, err := t.record(recordRevoke, next.ID, next.Request.Requester, revokeRecord{Grant: next.ID, By: next.RevokedBy, Why: shorten(why, maxNote)})
	return err
}

// DecisionOptions are the request options of a passkey answer over digest.
func (a *Authority) DecisionOptions(ctx context.Context, by Actor, digest statement.Digest) ([]byte, error) {
	_, creds, err := a.passkeysOf(ctx, by.Principal.Email)
	if err != nil {
		return nil, err
	}
	if len(creds) == 0 {
		return nil, problem(400, "This account has no passkey", "", "Make one with your SSH key: vogt key passkey. Or sign with it: vogt grant approve ID.").kind("no_passkey")
	}
	return a.passkeys.BeginDecision(digest, creds)
}
