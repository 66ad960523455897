package authority

import (
	"context"
	"errors"
	"fmt"
	"time"

	"vogt/internal/grant"
	"vogt/internal/store"
)

// A recovery lets somebody into an account who has lost every passkey and key
// of it and can still read its mail. Reading a person's mail must not be enough
// to become that person soon: so it waits, the person is told by every way
// there is, and whoever still holds a passkey or key of the account ends it by
// using that.
const (
	holdDormant  = 72 * time.Hour      // nobody used the account for dormantAfter
	holdActive   = 7 * 24 * time.Hour  // somebody does, who would notice
	holdAway     = 14 * 24 * time.Hour // somebody does, who has said not to look for a while
	dormantAfter = 30 * 24 * time.Hour
	recoveryOpen = 72 * time.Hour // after the wait, for making the passkey

	purposeRecover = "recover"
)

// RequestRecovery asks for a recovery. It answers alike for every address; the
// person, if there is one, is told.
func (a *Authority) RequestRecovery(email string) error {
	if a.mail == nil {
		return errNoMail()
	}
	if err := checkEmail(email); err != nil {
		return err
	}
	a.enqueue(errand{recovery: true, email: lower(email)})
	return nil
}

// hold is how long a recovery of p has to wait.
func (t *txn) hold(p store.Principal) (time.Duration, error) {
	away, err := store.Away(t, p.Email)
	switch {
	case err != nil:
		return holdAway, err
	case away:
		return holdAway, nil
	case p.LastLogin != 0 && int64(t.now)-p.LastLogin < dormantAfter.Milliseconds():
		return holdActive, nil
	}
	return holdDormant, nil
}

// recover starts a recovery, if email is a person's and none waits. One that
// waits is not begun again: nobody lengthens or shortens it by asking.
func (a *Authority) recover(ctx context.Context, email string) error {
	var token string
	var v store.Recovery
	err := a.update(ctx, func(t *txn) error {
		token = ""
		p, err := store.PrincipalByEmail(t, email)
		if err != nil || p.Kind != kindPerson || !usable(p) {
			return ignoreNotFound(err)
		}
		open, err := store.OpenRecovery(t, email)
		switch {
		case errors.Is(err, store.ErrNotFound):
		case err != nil:
			return err
		case !grant.Millis(open.Expires).Reached(t.now) && open.Generation == p.Generation:
			return nil
		default:
			if err := store.EndRecovery(t, open.ID, store.RecoveryCancelled, "time"); err != nil {
				return err
			}
		}
		wait, err := t.hold(p)
		if err != nil {
			return err
		}
		if token, err = a.randomHex(32); err != nil {
			return err
		}
		now := int64(t.now)
		v = store.Recovery{
			Hash: linkHash(token), Email: email, Generation: p.Generation, Created: now, Ready: now + wait.Milliseconds(),
			Expires: now + (wait + recoveryOpen).Milliseconds(), Status: store.RecoveryPending,
		}
		if v.ID, err = a.newID(); err != nil {
			return err
		}
		if err := store.InsertRecovery(t, v); err != nil {
			return err
		}
		_, err = t.record(recordTrust, "", email, trustRecord{
			Operation: "recovery.requested", By: AnonymousName, Subject: email, Params: map[string]string{"id": v.ID}, DormantUntil: v.Ready,
		})
		return err
	})
	if err != nil || token == "" {
		return err
	}
	ready := time.UnixMilli(v.Ready)
	a.mail(Letter{To: email, Kind: LetterRecovery, Link: a.cfg.PagesOrigin + "/recover?token=" + token, Ends: ready})
	a.tell(email, "Somebody who can read your mail asks to get into your account. From "+ready.UTC().Format("2 January 2006 15:04 UTC")+
		" they could. If it is not you, sign in with your passkey or key, which puts an end to it.")
	return nil
}

// tell tells a person by every way that is not mail.
func (a *Authority) tell(email, text string) {
	if a.announce != nil {
		a.announce(email, text)
	}
}

// openRecovery reads a recovery that waits by its token.
func (a *Authority) openRecovery(ctx context.Context, token string) (v store.Recovery, p store.Principal, err error) {
	err = a.view(ctx, func(tx store.Tx) (err error) {
		if v, err = store.RecoveryByHash(tx, linkHash(token)); err != nil {
			return ignoreNotFound(err)
		}
		p, err = store.PrincipalByEmail(tx, v.Email)
		return ignoreNotFound(err)
	})
	if err == nil {
		err = a.recoverable(v, p)
	}
	return v, p, err
}

// recoverable says why a recovery may not be used now; nil if it may.
func (a *Authority) recoverable(v store.Recovery, p store.Principal) error {
	now := a.now()
	switch {
	case v.ID == "":
		return problem(404, "There is no such recovery", "", "Ask for a recovery on the sign-in page.")
	case v.Status == store.RecoveryDone:
		return errLinkUsed()
	case v.Status != store.RecoveryPending:
		return problem(410, "This recovery was cancelled", "Somebody signed in to the account, or said no.", "Sign in, or ask for another recovery.")
	case !usable(p) || p.Generation != v.Generation:
		return inactive(v.Email)
	case grant.Millis(v.Expires).Reached(now):
		return problem(410, "This recovery is over", "It was not used in time.", "Ask for another recovery.")
	case !grant.Millis(v.Ready).Reached(now):
		e := problem(425, "It is too early", fmt.Sprintf("The account opens at %s, so that its owner can say no.", grant.Millis(v.Ready).Time().UTC().Format("2 January 2006 15:04 UTC")),
			"Come back then with the same link. Whoever holds a passkey or key of the account signs in now, which ends this.").kind("recovery_waits")
		e.Retry = int((v.Ready-int64(now))/1000) + 1
		return e
	}
	return nil
}

// RecoveryLink tells whose recovery it is and from when it may be used.
func (a *Authority) RecoveryLink(ctx context.Context, token string) (p store.Principal, ready time.Time, err error) {
	v, p, err := a.openRecovery(ctx, token)
	return p, time.UnixMilli(v.Ready), err
}

// RecoverOptions starts making the passkey, when the wait is over.
func (a *Authority) RecoverOptions(ctx context.Context, token string) (options []byte, ceremonyID string, err error) {
	v, p, err := a.openRecovery(ctx, token)
	if err != nil {
		return nil, "", err
	}
	return a.register(purposeRecover, registration{Email: p.Email, Name: p.Name, Recovery: v.ID}, nil)
}

// RecoverVerify adds the passkey and signs the page in. Everything else that was
// signed in to the account ends: it may be whoever took the lost passkeys.
func (a *Authority) RecoverVerify(ctx context.Context, token, ceremonyID, device string, response, proofKey []byte, agent string) (cookie string, p store.Principal, err error) {
	if device != "" {
		if err := checkName(device); err != nil {
			return "", p, err
		}
	}
	if _, _, err := a.openRecovery(ctx, token); err != nil {
		return "", p, err
	}
	reg, cred, err := a.finishRegistration(purposeRecover, ceremonyID, response)
	if err != nil {
		return "", p, err
	}
	err = a.update(ctx, func(t *txn) error {
		v, err := store.RecoveryByHash(t, linkHash(token))
		if err != nil || v.ID != reg.Recovery {
			return errCeremonyOver()
		}
		if p, err = store.PrincipalByEmail(t, v.Email); err != nil {
			return err
		}
		// Looked at again, where nobody can change it meanwhile.
		if err := a.recoverable(v, p); err != nil {
			return err
		}
		if err := store.EndRecovery(t, v.ID, store.RecoveryDone, v.Email); err != nil {
			return err
		}
		if err := t.signOutEverywhere(v.Email); err != nil {
			return err
		}
		if _, err := store.CancelDormant(t, v.Email, int64(t.now)); err != nil {
			return err
		}
		if err := t.addNamedPasskey(v.Email, device, cred); err != nil {
			return err
		}
		if _, err := t.record(recordTrust, "", v.Email, trustRecord{Operation: "recovery.done", By: v.Email, Subject: v.Email, Params: map[string]string{"id": v.ID}}); err != nil {
			return err
		}
		cookie, err = t.openSession(v.Email, proofKey, agent, "recovery")
		return err
	})
	if err != nil {
		return "", p, err
	}
	a.mail(Letter{To: p.Email, Kind: LetterRecovered, Link: a.cfg.PagesOrigin + "/account"})
	a.tell(p.Email, "Your account was recovered with a new passkey, and everything else was signed out. If it was not you, call whoever runs the authority.")
	return cookie, p, nil
}

// signOutEverywhere ends a principal's pages and logins, here and at services.
func (t *txn) signOutEverywhere(email string) error {
	if _, err := store.DeleteTokens(t, email); err != nil {
		return err
	}
	if err := store.EndOAuthOf(t, email, int64(t.now)); err != nil {
		return err
	}
	sessions, err := store.Sessions(t, email, int64(t.now))
	if err != nil {
		return err
	}
	for _, s := range sessions {
		if err := store.DeleteSession(t, email, s.ID); err != nil {
			return err
		}
	}
	return nil
}

// cancelRecovery ends a recovery of the account that waits, if there is one.
func (t *txn) cancelRecovery(email, by string) error {
	v, err := store.OpenRecovery(t, email)
	if err != nil {
		return ignoreNotFound(err)
	}
	if err := store.EndRecovery(t, v.ID, store.RecoveryCancelled, by); err != nil {
		return err
	}
	_, err = t.record(recordTrust, "", email, trustRecord{Operation: "recovery.cancelled", By: by, Subject: email, Params: map[string]string{"id": v.ID}})
	return err
}

// CancelRecovery ends a recovery: whoever holds its token may, and the person
// from a signed-in page. Saying no needs less than saying yes.
func (a *Authority) CancelRecovery(ctx context.Context, by Actor, token string) error {
	return a.narrow(ctx, func(t *txn) error {
		email, name := by.Principal.Email, by.Name()
		if token != "" {
			v, err := store.RecoveryByHash(t, linkHash(token))
			if err != nil || v.Status != store.RecoveryPending {
				return problem(404, "There is no such recovery", "It may be over.", "").caused(err)
			}
			email = v.Email
		} else if err := t.mayNarrow(by, email); err != nil {
			return err
		}
		return t.cancelRecovery(email, name)
	})
}

// Recovery returns the recovery of the person's own account that waits; ready
// is zero where there is none.
func (a *Authority) Recovery(ctx context.Context, by Actor) (asked, ready time.Time, err error) {
	if !by.Person() {
		return asked, ready, errUnauthenticated()
	}
	err = a.view(ctx, func(tx store.Tx) error {
		v, err := store.OpenRecovery(tx, by.Principal.Email)
		if err != nil || grant.Millis(v.Expires).Reached(a.now()) {
			return ignoreNotFound(err)
		}
		asked, ready = time.UnixMilli(v.Created), time.UnixMilli(v.Ready)
		return nil
	})
	return asked, ready, err
}

// Away reports whether the person has said that it is away.
func (a *Authority) Away(ctx context.Context, by Actor) (away bool, err error) {
	err = a.view(ctx, func(tx store.Tx) (err error) {
		away, err = store.Away(tx, by.Principal.Email)
		return err
	})
	return away, err
}

// SetAway notes that the person is away: a recovery that is asked for then waits
// for two weeks.
func (a *Authority) SetAway(ctx context.Context, by Actor, away bool) error {
	if by.Means != Page {
		// Coming back shortens the wait, which a stored login must not do.
		return problem(403, "Only a signed-in page does this", "", "Sign in at "+a.cfg.PagesOrigin+"/account.").kind("forbidden")
	}
	return a.update(ctx, func(t *txn) error {
		email := by.Principal.Email
		if err := t.mayNarrow(by, email); err != nil {
			return err
		}
		if err := store.SetAway(t, email, away, int64(t.now)); err != nil {
			return err
		}
		_, err := t.record(recordTrust, "", email, trustRecord{Operation: "account.away", By: by.Name(), Subject: email, Params: map[string]string{"away": fmt.Sprint(away)}})
		return err
	})
}
