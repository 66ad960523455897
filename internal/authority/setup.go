package authority

import (
	"context"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"crypto/sha256"

	"vogt/internal/grant"
	"vogt/internal/passkey"
	"vogt/internal/store"
)

const (
	setupLife  = 10 * time.Minute
	setupTries = 3

	purposeSetup    = "setup"
	purposeRegister = "register"
	purposePasskey  = "passkey-login"
	purposeLink     = "register-link"
	purposeSpent    = "register-link-spent"
)

// SetupState tells how far the first set-up is.
type SetupState string

// The states of a set-up link.
const (
	SetupNone      SetupState = "none"
	SetupOffered   SetupState = "offered"
	SetupOpened    SetupState = "opened" // a page shows the digits
	SetupConfirmed SetupState = "confirmed"
	SetupDone      SetupState = "done"
	SetupExpired   SetupState = "expired"
	SetupElsewhere SetupState = "elsewhere" // another browser opened the link first
)

// setup is the one set-up link of an authority without an owner. The page
// shows digits, the person types them at the controlling terminal: so the
// browser that makes the first passkey and the terminal that started the
// authority belong to the same person.
type setup struct {
	mu      sync.Mutex
	changed signal
	token   string
	browser string // the page that opened the link; no other may go on
	digits  string
	tries   int
	ends    time.Time
	state   SetupState
	email   string
}

// StartSetup makes a new link; an older one is void.
func (a *Authority) StartSetup(ctx context.Context) (token string, ends time.Time, err error) {
	if has, err := a.hasOwner(ctx); err != nil {
		return "", ends, err
	} else if has {
		return "", ends, problem(409, "This authority has an owner already", "", "Sign in at the pages, or with: vogt login.")
	}
	if token, err = a.randomHex(32); err != nil {
		return "", ends, err
	}
	digits, err := a.randomDigits()
	if err != nil {
		return "", ends, err
	}
	s := &a.setup
	s.mu.Lock()
	defer s.mu.Unlock()
	s.token, s.digits, s.browser, s.tries = token, digits, "", setupTries
	s.ends, s.state, s.email = a.clock().Add(setupLife), SetupOffered, ""
	s.changed.announce()
	return token, s.ends, nil
}

func (a *Authority) randomDigits() (string, error) {
	for {
		var b [2]byte
		if _, err := io.ReadFull(a.random, b[:]); err != nil {
			return "", err
		}
		// 60,000 is the largest multiple of 10,000 in 16 bits: no bias.
		if n := binary.BigEndian.Uint16(b[:]); n < 60000 {
			return fmt.Sprintf("%04d", n%10000), nil
		}
	}
}

// HasOwner reports whether set-up is over.
func (a *Authority) hasOwner(ctx context.Context) (has bool, err error) {
	err = a.view(ctx, func(tx store.Tx) (err error) {
		has, err = store.HasPerson(tx)
		return err
	})
	return has, err
}

// HasOwner reports whether a person exists.
func (a *Authority) HasOwner(ctx context.Context) (bool, error) { return a.hasOwner(ctx) }

// current applies time to the state; the caller holds the lock.
func (s *setup) current(now time.Time) SetupState {
	if s.state != "" && s.state != SetupDone && s.state != SetupExpired && !now.Before(s.ends) {
		s.state = SetupExpired
	}
	if s.state == "" {
		return SetupNone
	}
	return s.state
}

// Setup returns the state of the link and, once done, the owner.
func (a *Authority) Setup() (SetupState, string) {
	s := &a.setup
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current(a.clock()), s.email
}

// SetupChanged closes at the next change of the set-up's state.
func (a *Authority) SetupChanged() <-chan struct{} { return a.setup.changed.wait() }

func errSetupOver() *Error {
	return problem(410, "This link is no longer good", "It works once, for ten minutes, in one browser.", "Run `vogt up` again for a new one.")
}

// SetupView is what a page may show of the set-up link.
type SetupView struct {
	State  SetupState
	Digits string
	Ends   time.Time
}

// OpenSetup is the page's: it shows the digits to the browser that came first
// and to no other. browser is a secret that the page keeps in a cookie.
func (a *Authority) OpenSetup(token, browser string) (SetupView, error) {
	s := &a.setup
	s.mu.Lock()
	defer s.mu.Unlock()
	view := SetupView{State: s.current(a.clock()), Ends: s.ends}
	if !sameText(token, s.token) || browser == "" || view.State == SetupExpired || view.State == SetupNone {
		return SetupView{State: SetupExpired}, errSetupOver()
	}
	if s.browser == "" {
		s.browser, s.state, view.State = browser, SetupOpened, SetupOpened
		s.changed.announce()
	}
	if !sameText(browser, s.browser) {
		return SetupView{State: SetupElsewhere}, errSetupOver()
	}
	view.Digits = s.digits
	return view, nil
}

func sameText(a, b string) bool {
	return b != "" && subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1
}

// ConfirmSetup is the terminal's: the digits must be those that the page
// shows. Three wrong tries void the link.
func (a *Authority) ConfirmSetup(digits string) (SetupState, error) {
	s := &a.setup
	s.mu.Lock()
	defer s.mu.Unlock()
	switch state := s.current(a.clock()); state {
	case SetupConfirmed, SetupDone:
		return state, nil
	case SetupOpened:
	default:
		return state, problem(409, "No page shows digits now", "The set-up is "+string(state)+".", "Open the address that `vogt up` printed.")
	}
	if !sameText(strings.TrimSpace(digits), s.digits) {
		if s.tries--; s.tries <= 0 {
			s.state = SetupExpired
			s.changed.announce()
			return SetupExpired, errSetupOver()
		}
		return s.state, problem(403, "Those are not the digits that the page shows", fmt.Sprintf("%d tries left.", s.tries), "Read them from the page again.")
	}
	s.state = SetupConfirmed
	s.changed.announce()
	return s.state, nil
}

// SetupOptions starts the first passkey's registration.
func (a *Authority) SetupOptions(token, browser, name, email string) (options []byte, ceremonyID string, err error) {
	view, err := a.OpenSetup(token, browser)
	if err != nil {
		return nil, "", err
	}
	if view.State != SetupConfirmed {
		return nil, "", problem(403, "The digits have not been typed yet", "", "Type them at the terminal where `vogt up` runs.")
	}
	if err := checkEmail(email); err != nil {
		return nil, "", err
	}
	if err := checkName(name); err != nil {
		return nil, "", err
	}
	return a.beginRegistration(purposeSetup, lower(email), name, nil)
}

// registration is what a passkey ceremony keeps between its two calls.
type registration struct {
	Email   string `json:"email"`
	Name    string `json:"name"`
	Session []byte `json:"session"`
	// What the passkey is owed to, where that is spent only when it is made.
	Link     string `json:"link,omitempty"`     // hash of a stored link
	Recovery string `json:"recovery,omitempty"` // id
}

func (a *Authority) user(email, name string) passkey.User {
	// A handle that follows from the address needs no storage and tells
	// whoever holds the authenticator nothing that the name beside it does not.
	sum := sha256.Sum256([]byte("vogt-user-handle\n" + a.cfg.Issuer + "\n" + email))
	return passkey.User{ID: sum[:], Name: email, DisplayName: name}
}

func (a *Authority) beginRegistration(purpose, email, name string, have []passkey.Credential) ([]byte, string, error) {
	return a.register(purpose, registration{Email: email, Name: name}, have)
}

func (a *Authority) register(purpose string, reg registration, have []passkey.Credential) (options []byte, id string, err error) {
	options, reg.Session, err = a.passkeys.BeginRegistration(a.user(reg.Email, reg.Name), have)
	if err != nil {
		return nil, "", err
	}
	data, err := json.Marshal(reg)
	if err != nil {
		return nil, "", err
	}
	id, err = a.startCeremony(purpose, reg.Email, data, passkey.Timeout)
	return options, id, err
}

func (a *Authority) startCeremony(purpose, subject string, data []byte, life time.Duration) (string, error) {
	id, err := a.randomHex(32)
	if err != nil {
		return "", err
	}
	a.once.start(id, ceremony{purpose: purpose, subject: subject, data: data, ends: a.clock().Add(life)})
	return id, nil
}

func errCeremonyOver() *Error {
	return problem(410, "This took too long", "The passkey dialog was open for more than five minutes, or was answered already.", "Start again.")
}

// finishRegistration checks the browser's answer and returns the new passkey.
func (a *Authority) finishRegistration(purpose, id string, response []byte) (registration, passkey.Credential, error) {
	var reg registration
	c, ok := a.once.take(id, purpose, a.clock())
	if !ok {
		return reg, passkey.Credential{}, errCeremonyOver()
	}
	if err := json.Unmarshal(c.data, &reg); err != nil {
		return reg, passkey.Credential{}, err
	}
	cred, err := a.passkeys.FinishRegistration(a.user(reg.Email, reg.Name), reg.Session, response)
	return reg, cred, publicPasskey(err)
}

func publicPasskey(err error) error {
	var e *passkey.Error
	if errors.As(err, &e) {
		return problem(400, "The passkey was not accepted", e.Public(), "Try again.").caused(err)
	}
	return err
}

// SetupAnswer is the browser's answer to the first passkey's registration.
type SetupAnswer struct {
	Token, Browser string
	Ceremony       string
	Response       []byte
	ProofKey       []byte
	Agent          string // the browser's name
}

// SetupVerify makes the owner with its first passkey and signs the page in.
func (a *Authority) SetupVerify(ctx context.Context, in SetupAnswer) (cookie string, err error) {
	if view, err := a.OpenSetup(in.Token, in.Browser); err != nil {
		return "", err
	} else if view.State != SetupConfirmed {
		return "", errSetupOver()
	}
	reg, cred, err := a.finishRegistration(purposeSetup, in.Ceremony, in.Response)
	if err != nil {
		return "", err
	}
	err = a.update(ctx, func(t *txn) error {
		if err := t.firstPerson(reg.Email, reg.Name); err != nil {
			return err
		}
		if err := t.addPasskey(reg.Email, cred); err != nil {
			return err
		}
		var err error
		cookie, err = t.signIn(reg.Email, in.ProofKey, in.Agent, "passkey")
		return err
	})
	if err != nil {
		return "", err
	}
	s := &a.setup
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state, s.email = SetupDone, reg.Email
	s.changed.announce()
	return cookie, nil
}

func passkeyID(id []byte) string { return base64.RawURLEncoding.EncodeToString(id) }

func (t *txn) addPasskey(email string, cred passkey.Credential) error {
	return t.addNamedPasskey(email, "", cred)
}

// addNamedPasskey is addPasskey with what the person calls it, or "".
func (t *txn) addNamedPasskey(email, name string, cred passkey.Credential) error {
	b, err := json.Marshal(cred)
	if err != nil {
		return err
	}
	have, err := store.Passkeys(t, email)
	if err != nil {
		return err
	}
	id := passkeyID(cred.ID)
	if name == "" {
		name = passkeyName(have, t.now.Time())
	}
	err = store.InsertPasskey(t, store.Passkey{ID: id, Email: email, Name: name, Credential: string(b), Created: int64(t.now)})
	if errors.Is(err, store.ErrConflict) {
		return problem(409, "This passkey is registered already", "", "")
	}
	if err != nil {
		return err
	}
	_, err = t.record(recordTrust, "", email, trustRecord{
		Operation: "passkey.added", By: email, Subject: email,
		Params: map[string]string{"id": id, "aaguid": hex.EncodeToString(cred.AAGUID), "synced": fmt.Sprint(cred.BackupEligible)},
	})
	return err
}

// passkeyName calls a passkey by the day it was made, and tells those of one
// day apart.
func passkeyName(have []store.Passkey, at time.Time) string {
	day := "Passkey " + at.UTC().Format("2006-01-02")
	name := day
	for n := 2; slices.ContainsFunc(have, func(p store.Passkey) bool { return p.Name == name }); n++ {
		name = fmt.Sprintf("%s (%d)", day, n)
	}
	return name
}

// signIn starts a page session. proofKey is the public half of a key that the
// page made and cannot export; every decision of the session is signed by it.
func (t *txn) signIn(email string, proofKey []byte, agent, means string) (cookie string, err error) {
	if len(proofKey) == 0 || len(proofKey) > 512 {
		return "", problem(400, "The page's key is missing", "", "Use a browser with WebCrypto and IndexedDB, not in a private window that blocks them.")
	}
	return t.openSession(email, proofKey, agent, means)
}

// openSession is signIn also without a key: such a session reads and never
// decides.
func (t *txn) openSession(email string, proofKey []byte, agent, means string) (cookie string, err error) {
	if cookie, err = t.a.randomHex(32); err != nil {
		return "", err
	}
	err = store.InsertSession(t, store.Session{
		ID: sessionID(cookie), Email: email, ProofKey: proofKey, Agent: shorten(agent, 200),
		Created: int64(t.now), Expires: int64(t.now) + t.a.cfg.SessionTTL.Milliseconds(),
	})
	if err != nil {
		return "", err
	}
	if err := store.TouchLogin(t, email, int64(t.now)); err != nil {
		return "", err
	}
	_, err = t.record(recordLogin, "", email, loginRecord{Email: email, Means: means})
	return cookie, err
}

// PasskeyLoginOptions starts a login with whatever passkey the person picks.
func (a *Authority) PasskeyLoginOptions() (options []byte, ceremonyID string, err error) {
	options, session, err := a.passkeys.BeginLogin()
	if err != nil {
		return nil, "", err
	}
	id, err := a.startCeremony(purposePasskey, "", session, passkey.Timeout)
	return options, id, err
}

// PasskeyLogin finishes it and signs the page in. Whoever logs in with a
// passkey also cancels keys that others had added and that still lie dormant.
func (a *Authority) PasskeyLogin(ctx context.Context, ceremonyID string, response, proofKey []byte, agent string) (cookie string, err error) {
	return a.passkeyLogin(ctx, ceremonyID, response, func(t *txn, email string) (string, error) {
		return t.signIn(email, proofKey, agent, "passkey")
	})
}

func (a *Authority) passkeyLogin(ctx context.Context, ceremonyID string, response []byte, signIn func(*txn, string) (string, error)) (cookie string, err error) {
	c, ok := a.once.take(ceremonyID, purposePasskey, a.clock())
	if !ok {
		return "", errCeremonyOver()
	}
	var row store.Passkey
	var person store.Principal
	lookup := func(credentialID, _ []byte) (passkey.User, []passkey.Credential, error) {
		err := a.view(ctx, func(tx store.Tx) (err error) {
			if row, err = store.PasskeyByID(tx, passkeyID(credentialID)); err != nil {
				return ignoreNotFound(err)
			}
			person, err = store.PrincipalByEmail(tx, row.Email)
			return err
		})
		// An unknown passkey is no failure of ours: no credentials refuse it.
		if err != nil || row.ID == "" {
			return passkey.User{}, nil, err
		}
		_, creds, err := decodePasskeys([]store.Passkey{row}, int64(a.now()))
		return a.user(person.Email, person.Name), creds, err
	}
	_, cred, err := a.passkeys.FinishLogin(c.data, response, lookup)
	if err != nil {
		return "", publicPasskey(err)
	}
	if !usable(person) || person.Kind != kindPerson {
		return "", inactive(person.Email)
	}
	updated, err := json.Marshal(cred)
	if err != nil {
		return "", err
	}
	err = a.update(ctx, func(t *txn) error {
		if err := store.UsePasskey(t, row.ID, string(updated), int64(t.now)); err != nil {
			return err
		}
		n, err := store.CancelDormant(t, person.Email, int64(t.now))
		if err != nil {
			return err
		}
		if n > 0 {
			if _, err := t.record(recordTrust, "", person.Email, trustRecord{
				Operation: "dormant.cancelled", By: person.Email, Subject: person.Email, Params: map[string]string{"count": fmt.Sprint(n)},
			}); err != nil {
				return err
			}
		}
		if err := t.cancelRecovery(person.Email, person.Email); err != nil {
			return err
		}
		cookie, err = signIn(t, person.Email)
		return err
	})
	return cookie, err
}

// SignOut ends one session of the person.
func (a *Authority) SignOut(ctx context.Context, by Actor, sessionID string) error {
	if !by.Person() {
		return errUnauthenticated()
	}
	return a.narrow(ctx, func(t *txn) error {
		if err := store.DeleteSession(t, by.Principal.Email, sessionID); errors.Is(err, store.ErrConflict) {
			return problem(404, "There is no such session", "", "")
		} else if err != nil {
			return err
		}
		_, err := t.record(recordLogout, "", by.Principal.Email, loginRecord{Email: by.Principal.Email, Means: "page"})
		return err
	})
}

// startRegistration makes a link, good once, that registers another passkey.
func (a *Authority) startRegistration(email string) (string, error) {
	return a.startCeremony(purposeLink, email, nil, trustLife)
}

// RegisterLink tells whose registration link it is and when it ends. It does
// not spend it: programs look at addresses before people do.
func (a *Authority) RegisterLink(ctx context.Context, link string) (person store.Principal, ends time.Time, err error) {
	c, ok := a.once.look(link, purposeLink, a.clock())
	if !ok {
		l, err := a.storedLink(ctx, link)
		return store.Principal{Email: l.Email, Kind: kindPerson, Name: l.Name}, grant.Millis(l.Expires).Time(), err
	}
	person, err = a.registrant(ctx, c.subject)
	return person, c.ends, err
}

// linkOver is the error for a registration link that cannot be spent. One that
// was used says so until it would have ended: whoever holds it and did not use
// it has to know.
func (a *Authority) linkOver(link string) *Error {
	if _, used := a.once.look(link, purposeSpent, a.clock()); used {
		return problem(410, "This link was used", "It works once.", "If it was not you, look at your passkeys on the account page.").kind("link_used")
	}
	return problem(410, "This link is no longer good", "It works once, for ten minutes.", "Start again.")
}

// registrant is the person whom a registration link belongs to.
func (a *Authority) registrant(ctx context.Context, email string) (person store.Principal, err error) {
	err = a.view(ctx, func(tx store.Tx) (err error) {
		person, err = store.PrincipalByEmail(tx, email)
		return err
	})
	if err == nil && !usable(person) {
		err = inactive(person.Email)
	}
	return person, err
}

// RegisterOptions spends a registration link and starts the ceremony.
func (a *Authority) RegisterOptions(ctx context.Context, link string) (options []byte, ceremonyID string, err error) {
	c, ok := a.once.take(link, purposeLink, a.clock())
	if !ok {
		// A stored link came by mail, perhaps: it is spent when the passkey is made,
		// so that a dialogue that was cancelled costs nothing.
		l, err := a.storedLink(ctx, link)
		if err != nil {
			return nil, "", err
		}
		return a.register(purposeRegister, registration{Email: l.Email, Name: l.Name, Link: l.Hash}, nil)
	}
	a.once.start(link, ceremony{purpose: purposeSpent, ends: c.ends})
	person, err := a.registrant(ctx, c.subject)
	if err != nil {
		return nil, "", err
	}
	_, have, err := a.passkeysOf(ctx, person.Email)
	if err != nil {
		return nil, "", err
	}
	return a.beginRegistration(purposeRegister, person.Email, person.Name, have)
}

// RegisterVerify adds the passkey and signs the page in.
func (a *Authority) RegisterVerify(ctx context.Context, ceremonyID string, response, proofKey []byte, agent string) (cookie string, err error) {
	_, _, err = a.finishRegister(ctx, ceremonyID, "", response, func(t *txn, email string) (err error) {
		cookie, err = t.signIn(email, proofKey, agent, "passkey")
		return err
	})
	return cookie, err
}

// finishRegister adds the passkey that a link led to and lets then go on in the
// same transaction. device is what the passkey is to be called, or "".
func (a *Authority) finishRegister(ctx context.Context, ceremonyID, device string, response []byte, then func(*txn, string) error) (person store.Principal, credential string, err error) {
	reg, cred, err := a.finishRegistration(purposeRegister, ceremonyID, response)
	if err != nil {
		return person, "", err
	}
	err = a.update(ctx, func(t *txn) error {
		if reg.Link != "" {
			if err := t.spendLink(reg.Link); err != nil {
				return err
			}
		}
		var err error
		if person, err = store.PrincipalByEmail(t, reg.Email); err != nil || !usable(person) {
			return inactive(reg.Email).caused(err)
		}
		if err := t.addNamedPasskey(reg.Email, device, cred); err != nil {
			return err
		}
		return then(t, reg.Email)
	})
	return person, passkeyID(cred.ID), err
}

// RemovePasskey deletes one passkey of the person, but not the last thing
// that it can decide with.
func (a *Authority) RemovePasskey(ctx context.Context, by Actor, id string) error {
	return a.narrow(ctx, func(t *txn) error {
		email := by.Principal.Email
		if err := t.mayNarrow(by, email); err != nil {
			return err
		}
		return t.removePasskey(by, email, id)
	})
}

func (t *txn) removePasskey(by Actor, email, id string) error {
	if err := t.keepWay(email, id); err != nil {
		return err
	}
	if err := store.DeletePasskey(t, email, id); errors.Is(err, store.ErrConflict) {
		return problem(404, "There is no such passkey", "", "")
	} else if err != nil {
		return err
	}
	_, err := t.record(recordTrust, "", email, trustRecord{Operation: "passkey.removed", By: by.Name(), Subject: email, Params: map[string]string{"id": id}})
	return err
}
