package authority

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"

	"vogt/internal/grant"
	"vogt/internal/store"
	"vogt/internal/token"
)

// Means is how a caller showed who it is. The zero value showed nothing.
type Means uint8

// The means.
const (
	Anonymous Means = iota
	Bearer          // a login token
	Page            // a signed-in page's cookie
	Management
	Administrator // a person with the role, signed in at the pages; see [Authority.AsAdministrator]
)

// Actor is who calls. Checks take it as a value; the zero value is anonymous
// and may do nothing.
type Actor struct {
	Means     Means
	Principal store.Principal
	TokenID   string
	KeyID     string
	Session   store.Session
	// Deputies are the appointments by which a person may stand in for others, as they
	// were when the actor was read.
	Deputies []store.Deputy
	// Proven is set by the pages after they verified that this very call was
	// signed by the session's own key.
	Proven bool
}

// Person reports whether the actor is a person in good standing.
func (a Actor) Person() bool {
	return (a.Means == Bearer || a.Means == Page) && a.Principal.Kind == kindPerson && usable(a.Principal)
}

// Agent reports whether the actor is an agent.
func (a Actor) Agent() bool {
	return a.Means == Bearer && a.Principal.Kind == kindAgent && usable(a.Principal)
}

// Known reports whether the actor is a principal.
func (a Actor) Known() bool { return a.Person() || a.Agent() }

func usable(p store.Principal) bool { return p.Email != "" && p.Active && !p.Removed }

// How the log calls those who are no principals.
const (
	ManagementName = "_management_" // the management token
	AnonymousName  = "_anonymous_"  // whoever is not logged in
)

// Name is how the log calls the actor.
func (a Actor) Name() string {
	switch {
	case a.Means == Management:
		return ManagementName
	case a.Principal.Email != "":
		return a.Principal.Email
	}
	return AnonymousName
}

const (
	kindPerson = "human"
	kindAgent  = "agent"
)

func errUnauthenticated() *Error {
	return problem(401, "Not logged in", "The call carries no valid login.",
		"Log in again: vogt login.").kind("unauthorized")
}

// Authenticate reads a login token. Signature, epoch, revocation and the
// standing of the holder and its owner all count at every call, so that a
// deactivation takes effect with the next one.
func (a *Authority) Authenticate(ctx context.Context, raw string) (Actor, error) {
	version := a.trustVersion.Load()
	key := sha256.Sum256([]byte(raw))
	l, known := a.logins.get(key)
	if !known {
		claims, err := a.keys.Load().all.VerifyLogin(raw, a.cfg.Issuer, a.clock())
		if errors.Is(err, token.ErrExpired) {
			return Actor{}, errLoginExpired()
		}
		if err != nil {
			return Actor{}, errUnauthenticated().caused(err)
		}
		l.claims = claims
	}
	if a.clock().Unix() >= l.claims.Expires {
		return Actor{}, errLoginExpired()
	}
	if l.claims.Epoch != a.Epoch() {
		return Actor{}, problem(401, "The login is from before a restore", "",
			"The authority's data was restored or moved; log in again: vogt login.").kind("unauthorized")
	}
	if known && l.version == version {
		return l.actor, nil
	}
	actor, err := a.holder(ctx, l.claims)
	if err != nil {
		return Actor{}, err
	}
	a.logins.put(key, login{claims: l.claims, actor: actor, version: version})
	return actor, nil
}

func errLoginExpired() *Error {
	return problem(401, "The login has expired", "", "Log in again: vogt login.").kind("token_expired")
}

// holder looks up who holds a token that was signed correctly.
func (a *Authority) holder(ctx context.Context, claims token.Login) (Actor, error) {
	var actor Actor
	var ownerActive bool
	err := a.view(ctx, func(tx store.Tx) error {
		t, p, active, err := store.TokenHolder(tx, claims.ID)
		actor, ownerActive = Actor{Means: Bearer, Principal: p, TokenID: t.ID, KeyID: t.KeyID}, active
		if err == nil {
			actor.Deputies, err = deputiesFor(tx, p, a.now())
		}
		return ignoreNotFound(err)
	})
	if err != nil {
		return Actor{}, err
	}
	p := actor.Principal
	switch {
	case p.Email == "" || p.Email != claims.Subject || p.Kind != claims.Act || p.Generation != claims.Generation:
		return Actor{}, problem(401, "The login was revoked", "", "Log in again: vogt login.").kind("unauthorized")
	case !usable(p):
		return Actor{}, inactive(p.Email)
	case !ownerActive:
		return Actor{}, inactive(p.Owner)
	}
	return actor, nil
}

func inactive(email string) *Error {
	return problem(403, email+" is deactivated", "", "The owner of an agent switches it on again (vogt resume NAME), for a person the management token does.").kind("forbidden")
}

func ignoreNotFound(err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	return err
}

// AuthenticateSession reads a page's cookie. The actor it returns can read;
// Proven must be earned for each call that decides.
func (a *Authority) AuthenticateSession(ctx context.Context, cookie string) (Actor, error) {
	if cookie == "" {
		return Actor{}, errUnauthenticated()
	}
	return a.SessionActor(ctx, sessionID(cookie))
}

// SessionActor reads the session of that stored name, which is no secret, for
// a caller that has authenticated it before in the same request.
func (a *Authority) SessionActor(ctx context.Context, id string) (Actor, error) {
	var actor Actor
	err := a.view(ctx, func(tx store.Tx) error {
		s, err := store.SessionByID(tx, id)
		if err != nil {
			return ignoreNotFound(err)
		}
		p, err := store.PrincipalByEmail(tx, s.Email)
		if err != nil {
			return ignoreNotFound(err)
		}
		actor = Actor{Means: Page, Principal: p, Session: s}
		actor.Deputies, err = deputiesFor(tx, p, a.now())
		return err
	})
	if err != nil {
		return Actor{}, err
	}
	if grant.Millis(actor.Session.Expires).Reached(a.now()) || !actor.Person() {
		return Actor{}, errUnauthenticated()
	}
	return actor, nil
}

// sessionID is what is stored of a cookie: reading the database gives nobody
// a session.
func sessionID(cookie string) string {
	sum := sha256.Sum256([]byte("vogt-session\n" + cookie))
	return hex.EncodeToString(sum[:])
}

// AuthenticateManagement compares a bearer with the management token. An
// empty token is configured by nobody and matches nothing.
func AuthenticateManagement(bearer, token string) (Actor, bool) {
	a, b := sha256.Sum256([]byte(bearer)), sha256.Sum256([]byte(token))
	if token == "" || subtle.ConstantTimeCompare(a[:], b[:]) != 1 {
		return Actor{}, false
	}
	return Actor{Means: Management}, true
}

// party reports whether the actor may read everything about a grant. Who stands in
// for somebody sees what waits, and what it has answered itself.
func (a Actor) party(g grant.Grant, now grant.Millis) bool {
	if a.Means == Management {
		return true
	}
	if a.Known() && a.knew(g) && a.Principal.Email == g.Request.Requester {
		return true
	}
	seat, deputy, ok := a.decides(g, now)
	if !ok || deputy == nil {
		return ok && seat != ""
	}
	e := a.Principal.Email
	return g.Status == grant.Pending || g.Decision != nil && g.Decision.By == e || g.Endorsed != nil && g.Endorsed.By == e
}

// decides reports whether the actor is a person who answers for g: whose answer it
// is and, where that is somebody else's for whom the actor stands in, by which
// appointment.
func (a Actor) decides(g grant.Grant, now grant.Millis) (seat string, deputy *store.Deputy, ok bool) {
	e := a.Principal.Email
	if a.Person() && a.knew(g) && (e == g.Owner || e == g.Approver) {
		return e, nil, true
	}
	if d := a.standsIn(g, now); d != nil {
		return d.Person, d, true
	}
	return "", nil, false
}

func deputiesFor(tx store.Tx, p store.Principal, now grant.Millis) ([]store.Deputy, error) {
	if p.Kind != kindPerson {
		return nil, nil
	}
	return store.DeputiesFor(tx, p.Email, p.Generation, int64(now))
}

// knew reports whether the actor had been enrolled when g was asked. Whoever
// got the address later is somebody else; [store.InsertPrincipal] sees to it
// that times tell them apart.
func (a Actor) knew(g grant.Grant) bool { return a.Principal.Created <= int64(g.Created) }
