package authority

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"vogt/internal/api"
	"vogt/internal/grant"
	"vogt/internal/sshkey"
	"vogt/internal/store"
)

const (
	selfLinkLife = 24 * time.Hour
	maxLinkLife  = 30 * 24 * time.Hour
	maxLinks     = 10 // of one address that wait, however made
	maxSelfLinks = 3  // of one address that were asked for by anybody
	maxErrands   = 256
)

// Letter is what is to be sent to a person by mail. The words are whoever's
// that sends it.
type Letter struct {
	To   string
	Kind LetterKind
	Link string    // to be opened by the person; a secret
	Stop string    // opened to put an end to it; a secret
	Ends time.Time // of the link, or when it may be used first
}

// LetterKind says what a letter is about.
type LetterKind string

// The kinds of letters.
const (
	LetterRegister  LetterKind = "register"  // make an account
	LetterRecovery  LetterKind = "recovery"  // somebody asked to get into yours
	LetterRecovered LetterKind = "recovered" // somebody did
)

// linkHash is what is stored of a link's or a recovery's token.
func linkHash(token string) string {
	sum := sha256.Sum256([]byte("vogt-account-link\n" + token))
	return hex.EncodeToString(sum[:])
}

// mayLink reports whether a link may make the first passkey of an address: it
// is nobody's, or somebody's who never had anything to sign in with. Everybody
// else adds passkeys in person or recovers the account; and so whoever makes
// links gains no account that is in use.
func mayLink(tx store.Tx, email string) error {
	p, err := store.PrincipalByEmail(tx, email)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	keys, err := store.Keys(tx, email)
	if err != nil {
		return err
	}
	passkeys, err := store.Passkeys(tx, email)
	switch {
	case err != nil:
		return err
	case p.Kind != kindPerson:
		return problem(409, "This address is an agent's", email+" signs in with a key.", "").kind("taken")
	case p.Removed, wasUsed(p):
		return problem(409, "This address was somebody's", "A link makes first passkeys only.",
			"Its owner adds a passkey on the account page, or recovers the account; whoever starts anew takes another address.").kind("taken")
	case len(keys)+len(passkeys) > 0:
		return problem(409, "This account has a passkey or key already", "A link makes first passkeys only.",
			"Its owner adds another on the account page, or with: vogt key passkey.").kind("taken")
	case !usable(p):
		return inactive(email)
	}
	return nil
}

// MakeLink makes a registration link, good once, for one address, on behalf of
// whoever administers. The token is returned this once and not stored.
func (a *Authority) MakeLink(ctx context.Context, by Actor, email, name string, life time.Duration) (token string, l store.Link, err error) {
	if !by.manages() {
		return "", l, errManagement()
	}
	if life < time.Hour || life > maxLinkLife {
		return "", l, problem(400, "The life of the link cannot be used", fmt.Sprintf("expiresInHours must be from 1 to %d.", int(maxLinkLife.Hours())), "")
	}
	if err := checkEmail(email); err != nil {
		return "", l, err
	}
	email = lower(email)
	if name == "" {
		name, _, _ = strings.Cut(email, "@")
	}
	if err := checkName(name); err != nil {
		return "", l, err
	}
	err = a.update(ctx, func(t *txn) (err error) {
		if err := t.manages(by); err != nil {
			return err
		}
		token, l, err = t.makeLink(by.Name(), email, name, life, maxLinks)
		return err
	})
	return token, l, err
}

func (t *txn) makeLink(by, email, name string, life time.Duration, most int) (token string, l store.Link, err error) {
	if err := mayLink(t, email); err != nil {
		return "", l, err
	}
	n, err := store.CountLinks(t, email, int64(t.now))
	if err != nil {
		return "", l, err
	}
	if n >= most {
		return "", l, problem(409, "Too many links wait", fmt.Sprintf("%s has %d links that nobody used.", email, n), "Take some back, or wait until they end.")
	}
	if token, err = t.a.randomHex(32); err != nil {
		return "", l, err
	}
	l = store.Link{Hash: linkHash(token), Email: email, Name: name, By: by, Created: int64(t.now), Expires: int64(t.now) + life.Milliseconds()}
	if l.ID, err = t.a.newID(); err != nil {
		return "", l, err
	}
	if err := store.InsertLink(t, l); err != nil {
		return "", l, err
	}
	_, err = t.record(recordTrust, "", email, trustRecord{Operation: "link.made", By: by, Subject: email, Params: map[string]string{"id": l.ID}})
	return token, l, err
}

// LinkURL is the page on which a token is used.
func (a *Authority) LinkURL(token string) string {
	return a.cfg.PagesOrigin + "/register?token=" + token
}

// Links lists the links that wait, for whoever administers.
func (a *Authority) Links(ctx context.Context, by Actor, after string, limit int) (page []store.Link, total int64, err error) {
	if !by.manages() {
		return nil, 0, errManagement()
	}
	err = a.view(ctx, func(tx store.Tx) (err error) {
		page, total, err = store.Links(tx, int64(a.now()), after, limit)
		return err
	})
	return page, total, err
}

// TakeLink takes a link back. It is named by its id, or by its token.
func (a *Authority) TakeLink(ctx context.Context, by Actor, id string) error {
	return a.narrow(ctx, func(t *txn) error {
		if err := t.manages(by); err != nil {
			return err
		}
		if l, err := store.LinkByHash(t, linkHash(id)); err == nil {
			id = l.ID
		}
		if err := store.DeleteLink(t, id); errors.Is(err, store.ErrConflict) {
			return problem(404, "There is no such link", "It may have been used.", "")
		} else if err != nil {
			return err
		}
		_, err := t.record(recordTrust, "", "", trustRecord{Operation: "link.taken", By: by.Name(), Params: map[string]string{"id": id}})
		return err
	})
}

// storedLink reads a link that may be used now.
func (a *Authority) storedLink(ctx context.Context, token string) (l store.Link, err error) {
	err = a.view(ctx, func(tx store.Tx) (err error) {
		if l, err = store.LinkByHash(tx, linkHash(token)); err != nil {
			return ignoreNotFound(err)
		}
		if l.Used != 0 {
			return nil
		}
		return mayLink(tx, l.Email)
	})
	switch {
	case err != nil:
		return store.Link{}, err
	case l.Hash == "":
		return l, a.linkOver(token)
	case l.Used != 0:
		return store.Link{}, errLinkUsed()
	case !a.clock().Before(time.UnixMilli(l.Expires)):
		return store.Link{}, errLinkOver()
	}
	return l, nil
}

func errLinkUsed() *Error {
	return problem(410, "This link was used", "It works once.", "If it was not you, look at your passkeys on the account page.").kind("link_used")
}

func errLinkOver() *Error {
	return problem(410, "This link is no longer good", "It works once, and for a limited time.", "Ask whoever sent it for a new one.")
}

// spendLink uses a link in the transaction that adds the passkey, and makes the
// account if there is none.
func (t *txn) spendLink(hash string) error {
	l, err := store.LinkByHash(t, hash)
	if err != nil {
		return errLinkOver().caused(err)
	}
	if err := store.SpendLink(t, hash, int64(t.now)); errors.Is(err, store.ErrConflict) {
		if l.Used != 0 {
			return errLinkUsed()
		}
		return errLinkOver()
	} else if err != nil {
		return err
	}
	if err := mayLink(t, l.Email); err != nil {
		return err
	}
	if _, err := store.PrincipalByEmail(t, l.Email); err == nil {
		return nil
	}
	p := store.Principal{Email: l.Email, Kind: kindPerson, Name: l.Name, Created: int64(t.now), Active: true}
	if err := t.addPrincipal(&p); err != nil {
		return err
	}
	_, err = t.record(recordTrust, "", l.Email, trustRecord{Operation: "principal.create", By: l.By, Subject: l.Email, Params: map[string]string{"link": l.ID}})
	return err
}

// RegisterOnWire is RegisterVerify for clients of the wire, whose session has no
// key and reads only unless they bring one.
func (a *Authority) RegisterOnWire(ctx context.Context, ceremonyID, device string, response, proofKey []byte, agent string) (cookie string, p store.Principal, err error) {
	if device != "" {
		if err := checkName(device); err != nil {
			return "", p, err
		}
	}
	p, _, err = a.finishRegister(ctx, ceremonyID, device, response, func(t *txn, email string) (err error) {
		cookie, err = t.openSession(email, proofKey, agent, "passkey")
		return err
	})
	return cookie, p, err
}

// AddPasskey finishes the registration of another passkey for a person who is
// signed in already, and returns its id. Another person's link is refused.
func (a *Authority) AddPasskey(ctx context.Context, by Actor, ceremonyID, device string, response []byte) (id string, err error) {
	if device != "" {
		if err := checkName(device); err != nil {
			return "", err
		}
	}
	_, id, err = a.finishRegister(ctx, ceremonyID, device, response, func(t *txn, email string) error {
		if email != by.Principal.Email {
			return problem(403, "This link is another account's", "", "Sign out first, or open the link in another browser.").kind("forbidden")
		}
		return t.still(by, proven{})
	})
	return id, err
}

// PasskeyLoginOnWire is PasskeyLogin for clients of the wire, see
// [Authority.RegisterOnWire].
func (a *Authority) PasskeyLoginOnWire(ctx context.Context, ceremonyID string, response, proofKey []byte, agent string) (cookie string, err error) {
	return a.passkeyLogin(ctx, ceremonyID, response, func(t *txn, email string) (string, error) {
		return t.openSession(email, proofKey, agent, "passkey")
	})
}

// errand is something that anybody may ask for and that is answered before it is
// done: neither the answer nor its time tells whether an account exists.
type errand struct {
	recovery bool // else a registration
	email    string
}

func (a *Authority) enqueue(e errand) {
	select {
	case a.errands <- e:
	default:
		a.log.Warn("a request by mail was dropped: too many are waiting")
	}
}

// runErrand does one. Whom it was for hears of it by mail, or nobody does.
func (a *Authority) runErrand(ctx context.Context, e errand) {
	do := a.selfLink
	if e.recovery {
		do = a.recover
	}
	var public *Error
	if err := do(ctx, e.email); err != nil && !errors.As(err, &public) && ctx.Err() == nil {
		a.log.Error("a request by mail failed", "err", err)
	}
}

func errNoMail() *Error {
	return problem(503, "This authority sends no mail", "Neither registration nor recovery by mail is possible.",
		"Its operator sets mail.command in vogtd.toml; an administrator makes registration links without mail.")
}

// SelfRegister mails a registration link to whoever asks for an account. It
// answers alike for every address.
func (a *Authority) SelfRegister(email string) error {
	if a.mail == nil {
		return errNoMail()
	}
	if !a.cfg.SelfRegistration {
		return problem(403, "Nobody registers here by themselves", "The operator has not opened this authority to whoever has a mail address.",
			"Ask an administrator for a registration link; the operator opens it with mail.registration = true in vogtd.toml.").kind("forbidden")
	}
	if err := checkEmail(email); err != nil {
		return err
	}
	a.enqueue(errand{email: lower(email)})
	return nil
}

func (a *Authority) selfLink(ctx context.Context, email string) error {
	var token string
	var l store.Link
	err := a.update(ctx, func(t *txn) (err error) {
		name, _, _ := strings.Cut(email, "@")
		token, l, err = t.makeLink(AnonymousName, email, name, selfLinkLife, maxSelfLinks)
		return err
	})
	if err != nil {
		return err
	}
	a.mail(Letter{To: email, Kind: LetterRegister, Link: a.LinkURL(token), Ends: time.UnixMilli(l.Expires)})
	return nil
}

// LinkToken is the token in a link that confirming a change gave.
func LinkToken(link string) string {
	_, token, _ := strings.Cut(link, "/register?token=")
	return token
}

// TrustAgentByBearer gives an agent another key, or switches it on again, with
// nothing but a person's login. Both are changes of trust, so it works only under
// the bearer_decisions switch.
func (a *Authority) TrustAgentByBearer(ctx context.Context, by Actor, email, publicKey string, on bool) error {
	if by.Means != Bearer || !by.Person() || a.cfg.Bearer == 0 {
		return problem(403, "This is a change of trust", "A new key, and switching an agent on again, need a proof made for it.",
			"Use `vogt agent rotate-key NAME` or `vogt resume NAME`, or set the authority's bearer_decisions switch for clients that cannot sign.").kind("forbidden")
	}
	email = lower(email)
	var key sshkey.Public
	if publicKey != "" {
		var err error
		if key, err = sshkey.ParsePublic(publicKey); err != nil {
			return problem(400, "The agent's key cannot be used", err.Error(), "")
		}
	}
	return a.update(ctx, func(t *txn) error {
		if err := t.still(by, proven{strength: grant.Bearer}); err != nil {
			return err
		}
		operation, params := api.TrustAgentResume, map[string]string{"email": email}
		if publicKey != "" {
			operation, params["public_key"] = api.TrustAgentRotate, key.String()
			if _, _, err := t.change(by.Principal, operation, params, grant.Bearer); err != nil {
				return err
			}
		}
		if on {
			if err := t.ownAgent(by.Principal, email); err != nil {
				return err
			}
			if err := store.SetActive(t, email, true); err != nil {
				return err
			}
		}
		_, err := t.record(recordTrust, "", email, trustRecord{Operation: operation, By: by.Name(), Subject: email, Params: params, Strength: grant.Bearer})
		return err
	})
}
