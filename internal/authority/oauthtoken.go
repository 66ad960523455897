package authority

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"vogt/internal/api"
	"vogt/internal/grant"
	"vogt/internal/sshkey"
	"vogt/internal/store"
	"vogt/internal/token"
)

// TokenRequest is a call of the token endpoint, one field for each parameter
// that is understood.
type TokenRequest struct {
	GrantType     string // grant_type
	Code          string // code
	Verifier      string // code_verifier
	RedirectURI   string // redirect_uri
	Client        string // client_id
	Refresh       string // refresh_token
	Scope         string // scope
	AssertionType string // client_assertion_type
	Assertion     string // client_assertion
	Delegation    string // delegation_grant
	Audience      string // audience
}

const assertionType = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"

// TokenFor answers the token endpoint. Errors that a client may read are
// [OAuthError].
func (a *Authority) TokenFor(ctx context.Context, r TokenRequest) (api.OAuthToken, error) {
	if r.GrantType != "client_credentials" && (r.Assertion != "" || r.AssertionType != "") {
		return api.OAuthToken{}, oauthError(401, "invalid_client", "Clients have no keys here; only principals do, with client_credentials.")
	}
	switch r.GrantType {
	case "authorization_code":
		return a.exchange(ctx, r)
	case "refresh_token":
		return a.refresh(ctx, r)
	case "client_credentials":
		return a.byAssertion(ctx, r)
	case "":
		return api.OAuthToken{}, invalidRequest("Missing grant_type.")
	}
	return api.OAuthToken{}, oauthError(400, "unsupported_grant_type", "Use authorization_code, refresh_token or client_credentials.")
}

// verifierForm is RFC 7636, section 4.1.
var verifierForm = regexp.MustCompile(`^[A-Za-z0-9._~-]{43,128}$`)

func challengeOf(verifier string) string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// exchange gives tokens for a code. The code is spent by being shown, whatever
// comes of it; shown again, it ends what it gave (RFC 6749, section 4.1.2).
func (a *Authority) exchange(ctx context.Context, r TokenRequest) (out api.OAuthToken, err error) {
	for name, value := range map[string]string{"code": r.Code, "code_verifier": r.Verifier, "redirect_uri": r.RedirectURI, "client_id": r.Client} {
		if value == "" {
			return out, invalidRequest("Missing " + name + ".")
		}
	}
	if !verifierForm.MatchString(r.Verifier) {
		return out, invalidRequest("code_verifier has not the form of RFC 7636.")
	}
	hash := hashOf("vogt-code", r.Code)
	unusable := invalidGrant("The code is not good: it is unknown, used, over, or somebody else's.")
	err = a.refusing(ctx, func(t *txn) (*OAuthError, error) {
		out = api.OAuthToken{}
		c, first, err := store.SpendCode(t, hash, int64(t.now))
		if errors.Is(err, store.ErrNotFound) {
			return unusable, nil
		}
		if err != nil {
			return nil, err
		}
		p, err := inStanding(t, c.Email, c.Generation)
		if no, err := public(err); no != nil || err != nil {
			return no, err
		}
		if !first {
			return unusable, t.endAuthorization(AnonymousName, c.Email, c.Client, c.ID, "its code was shown again")
		}
		login, err := t.loginOf(c.Login)
		no, err := public(err)
		if err != nil {
			return nil, err
		}
		if no == nil && (c.Expires <= int64(t.now) || c.Epoch != a.Epoch() || c.Client != r.Client || c.RedirectURI != r.RedirectURI ||
			!same(c.Challenge, challengeOf(r.Verifier))) {
			no = unusable
		}
		if no != nil {
			return no, t.recordOAuth(oauthRecord{Operation: "code.refused", By: AnonymousName, Subject: c.Email, Client: c.Client, Family: c.ID})
		}
		out, err = t.redeem(c, p, login)
		if no, err := public(err); no != nil || err != nil {
			return no, err
		}
		return nil, nil
	})
	return out, err
}

// public splits an error into one that a client is told, with what was written
// staying written, and one that undoes everything.
func public(err error) (*OAuthError, error) {
	var no *OAuthError
	if errors.As(err, &no) {
		return no, nil
	}
	return nil, err
}

// redeem gives what a code that was found good stands for.
func (t *txn) redeem(c store.Code, p store.Principal, login store.Token) (api.OAuthToken, error) {
	if c.Delegated != "" {
		var d delegated
		if err := json.Unmarshal([]byte(c.Delegated), &d); err != nil {
			return api.OAuthToken{}, err
		}
		if err := t.delegationHolds(d.ID); err != nil {
			return api.OAuthToken{}, err
		}
		return t.issueDelegated(d, c.Client, c.Nonce, c.AuthTime)
	}
	line := given{
		family: c.ID, client: c.Client, scope: c.Scope, nonce: c.Nonce, authTime: c.AuthTime, login: login, means: "code.redeemed",
	}
	out, err := t.issueIdentity(p, line)
	if err != nil {
		return out, err
	}
	until := int64(t.now) + identityLife.Milliseconds()
	if hasScope(c.Scope, scopeOffline) {
		f := store.Family{
			ID: c.ID, Client: c.Client, Email: p.Email, Generation: p.Generation, Epoch: c.Epoch, Login: c.Login, Scope: c.Scope,
			AuthTime: c.AuthTime, Created: int64(t.now), Used: int64(t.now), Expires: int64(t.now) + familyLife.Milliseconds(),
		}
		// What began with a login lasts no longer than it.
		if login.ID != "" {
			f.Expires = min(f.Expires, login.Expires)
		}
		if out.RefreshToken, err = t.newFamily(f); err != nil {
			return out, err
		}
		until = max(until, f.Expires)
	}
	return out, store.KeepCode(t, c.Hash, until)
}

// A refresh token is 48 random bytes in base64url: the first handleBytes are
// the same in a whole family, so that a used one is recognised without being
// kept.
const (
	refreshBytes = 48
	handleBytes  = 16
)

func splitRefresh(text string) (raw []byte, ok bool) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	return raw, err == nil && len(raw) == refreshBytes
}

func refreshHashes(raw []byte) (handle, whole []byte) {
	return hashOf("vogt-refresh-family", string(raw[:handleBytes])), hashOf("vogt-refresh", string(raw))
}

func (t *txn) newFamily(f store.Family) (string, error) {
	open, err := store.Families(t, f.Email, int64(t.now), 0, "", maxFamilies+1)
	if err != nil {
		return "", err
	}
	if len(open) >= maxFamilies {
		oldest := open[len(open)-1]
		if err := t.endAuthorization(f.Email, oldest.Email, oldest.Client, oldest.ID, "too many sessions"); err != nil {
			return "", err
		}
	}
	raw := make([]byte, refreshBytes)
	if _, err := io.ReadFull(t.a.random, raw); err != nil {
		return "", err
	}
	f.Handle, f.Token = refreshHashes(raw)
	return base64.RawURLEncoding.EncodeToString(raw), store.InsertFamily(t, f)
}

// deniedSince reports whether the domain of the person behind a good refresh token
// refuses all services by now. One that cannot be asked has said nothing new.
func (a *Authority) deniedSince(ctx context.Context, handle, whole []byte) (bool, error) {
	if a.policies == nil {
		return false, nil
	}
	var domain string
	err := a.view(ctx, func(tx store.Tx) error {
		f, err := store.FamilyByHandle(tx, handle)
		if err != nil {
			return ignoreNotFound(err)
		}
		// Strangers make nobody ask the network.
		if f.Client != CLIClient && f.Ended == 0 && subtle.ConstantTimeCompare(whole, f.Token) == 1 {
			_, domain, _ = strings.Cut(f.Email, "@")
		}
		return nil
	})
	if err != nil || domain == "" {
		return false, err
	}
	mode, err := a.policies.Mode(ctx, domain)
	return err == nil && mode == ModeDeny, nil
}

// refresh gives the next token of a family. A token that is not the newest was
// used before, by its client or by a thief: the family ends (RFC 9700, section
// 4.14.2).
func (a *Authority) refresh(ctx context.Context, r TokenRequest) (out api.OAuthToken, err error) {
	if r.Refresh == "" {
		return out, invalidRequest("Missing refresh_token.")
	}
	unusable := invalidGrant("The refresh token is not good: it is unknown, used, over, or another client's.")
	raw, ok := splitRefresh(r.Refresh)
	if !ok {
		return out, unusable
	}
	handle, whole := refreshHashes(raw)
	denied, err := a.deniedSince(ctx, handle, whole)
	if err != nil {
		return out, err
	}
	if denied {
		return out, invalidGrant(DeniedByDomain.describe()) // nothing is spent: the domain may change its mind
	}
	err = a.refusing(ctx, func(t *txn) (*OAuthError, error) {
		out = api.OAuthToken{}
		f, err := store.FamilyByHandle(t, handle)
		if errors.Is(err, store.ErrNotFound) {
			return unusable, nil
		}
		if err != nil {
			return nil, err
		}
		// Before anything is changed: a client that names itself wrongly has not
		// got the token from us.
		if r.Client != "" && r.Client != f.Client {
			return unusable, nil
		}
		end := func(no *OAuthError, why string) (*OAuthError, error) {
			return no, t.endAuthorization(AnonymousName, f.Email, f.Client, f.ID, why)
		}
		p, err := inStanding(t, f.Email, f.Generation)
		if no, err := public(err); err != nil {
			return nil, err
		} else if no != nil {
			return end(no, "the account is not in good standing")
		}
		login, err := t.loginOf(f.Login)
		if no, err := public(err); err != nil {
			return nil, err
		} else if no != nil {
			return end(no, "the login that it began with has ended")
		}
		switch {
		case subtle.ConstantTimeCompare(whole, f.Token) != 1:
			return end(unusable, "a used refresh token was shown")
		case f.Ended != 0 || f.Expires <= int64(t.now) || f.Epoch != a.Epoch():
			return unusable, nil
		}
		scope := f.Scope
		if r.Scope != "" {
			if !within(r.Scope, f.Scope) {
				return oauthError(400, "invalid_scope", "The scope is more than was given."), nil
			}
			scope = scopesOf(r.Scope)
		}
		if out, err = t.issueIdentity(p, given{
			family: f.ID, client: f.Client, scope: scope, authTime: f.AuthTime, login: login, means: "token.refreshed", until: f.Expires,
		}); err != nil {
			return nil, err
		}
		if _, err := io.ReadFull(a.random, raw[handleBytes:]); err != nil {
			return nil, err
		}
		_, next := refreshHashes(raw)
		out.RefreshToken = base64.RawURLEncoding.EncodeToString(raw)
		return nil, store.RotateFamily(t, f.ID, whole, next, int64(t.now))
	})
	return out, err
}

// given says for which authorization a token is made.
type given struct {
	family, client, scope, nonce, means string
	authTime                            int64 // Unix ms
	login                               store.Token
	until                               int64 // Unix ms that the token may not outlive, 0 for none
}

// issueIdentity makes the token that tells a client who p is. For the command
// line's own client it is a login here.
func (t *txn) issueIdentity(p store.Principal, g given) (api.OAuthToken, error) {
	a := t.a
	jti, err := a.newID()
	if err != nil {
		return api.OAuthToken{}, err
	}
	now := t.now.Seconds()
	expires := now + int64(identityLife/time.Second)
	for _, end := range []int64{g.until, g.login.Expires} {
		if end != 0 {
			expires = min(expires, end/1000)
		}
	}
	if expires <= now {
		return api.OAuthToken{}, invalidGrant("What this began with is over.")
	}
	var email, name string
	if hasScope(g.scope, scopeEmail) {
		email = p.Email
	}
	if hasScope(g.scope, scopeProfile) {
		name = p.Name
	}
	var claims any = token.Identity{
		Issuer: a.cfg.Issuer, Subject: p.Email, Audience: g.client, Act: p.Kind, IssuedAt: now, Expires: expires, ID: jti, Use: token.UseIdentity,
		Nonce: g.nonce, AuthTime: g.authTime / 1000, Email: email, Name: name, Approver: p.Approver,
	}
	if g.client == CLIClient {
		claims = token.Login{
			Issuer: a.cfg.Issuer, Subject: p.Email, Audience: g.client, Act: p.Kind, IssuedAt: now, Expires: expires, ID: jti, Use: token.UseLogin,
			Epoch: a.Epoch(), Generation: p.Generation, Nonce: g.nonce, AuthTime: g.authTime / 1000, Email: email, Name: name,
		}
	}
	raw, err := token.Sign(a.keys.Load().signing, claims)
	if err != nil {
		return api.OAuthToken{}, err
	}
	err = store.InsertToken(t, store.Token{
		ID: jti, Email: p.Email, KeyID: g.login.KeyID, Created: int64(t.now), Expires: expires * 1000, Origin: g.family,
	})
	if err != nil {
		return api.OAuthToken{}, err
	}
	if err := t.recordOAuth(oauthRecord{Operation: g.means, By: p.Email, Subject: p.Email, Client: g.client, Family: g.family, Scope: g.scope, Token: jti}); err != nil {
		return api.OAuthToken{}, err
	}
	return api.OAuthToken{
		AccessToken: raw, IDToken: raw, Assertion: raw, TokenType: "Bearer", ExpiresIn: expires - now, Scope: g.scope, Details: []struct{}{},
	}, nil
}

// lifeUntil is how many seconds a token lives that is made now and must not outlive
// until, in Unix ms, 0 for never.
func (t *txn) lifeUntil(until int64) int64 {
	life := int64(identityLife / time.Second)
	if until != 0 {
		life = min(life, until/1000-t.now.Seconds())
	}
	return life
}

// issueDelegated makes the token with which a delegate acts for somebody at
// audience. It is no login anywhere, least of all here.
func (t *txn) issueDelegated(d delegated, audience, nonce string, authTime int64) (api.OAuthToken, error) {
	a := t.a
	jti, err := a.newID()
	if err != nil {
		return api.OAuthToken{}, err
	}
	now := t.now.Seconds()
	life := t.lifeUntil(d.Until)
	if life <= 0 {
		return api.OAuthToken{}, invalidGrant("The delegation is over.")
	}
	claims := token.Delegated{
		Issuer: a.cfg.Issuer, Subject: d.Delegator, Audience: audience, Act: token.Actor{Subject: d.Delegate}, IssuedAt: now, Expires: now + life,
		ID: jti, Use: token.UseDelegated, Nonce: nonce, AuthTime: authTime / 1000, Delegation: d.ID, Delegate: d.Delegate, Scope: d.Scopes,
	}
	if claims.Scope == nil {
		claims.Scope = []string{}
	}
	raw, err := token.Sign(a.keys.Load().signing, claims)
	if err != nil {
		return api.OAuthToken{}, err
	}
	err = t.recordOAuth(oauthRecord{
		Operation: "delegation.used", By: d.Delegate, Subject: d.Delegator, Client: audience, Actor: d.Delegate, Delegated: d.ID, Token: jti,
	})
	return api.OAuthToken{AccessToken: raw, IDToken: raw, Assertion: raw, TokenType: "Bearer", ExpiresIn: life, Details: []struct{}{}}, err
}

const (
	assertionSkew = 5 * time.Second
	// maxAssertionLife bounds how long names of assertions must be remembered.
	maxAssertionLife = 10 * time.Minute
	maxJTI           = 256
)

// byAssertion logs a principal in by a JWT under one of its keys (RFC 7523), or
// gives it a token to act for somebody else.
func (a *Authority) byAssertion(ctx context.Context, r TokenRequest) (out api.OAuthToken, err error) {
	if r.AssertionType != assertionType || r.Assertion == "" {
		return out, oauthError(401, "invalid_client", "client_assertion with client_assertion_type "+assertionType+" is required.")
	}
	if (r.Delegation == "") != (r.Audience == "") {
		return out, invalidRequest("delegation_grant and audience belong together.")
	}
	// All that is wrong with a login looks the same, so that nobody learns who
	// exists.
	unusable := oauthError(401, "invalid_client", "The assertion is not good: it does not fit this authority, its time, or a key of its issuer, or was used.")
	signed, err := token.ParseAssertion(r.Assertion)
	if err != nil {
		return out, withCause(unusable, err)
	}
	email := lower(signed.Claims.Issuer)
	if !a.timely(signed.Claims) || r.Client != "" && lower(r.Client) != email {
		return out, unusable
	}
	if r.Delegation != "" {
		if err := a.domainPermits(ctx, email, signed, r); err != nil {
			return out, err
		}
	}
	err = a.update(ctx, func(t *txn) error {
		keyID, err := assertedBy(t, t.now, email, signed)
		if err != nil {
			return err
		}
		if keyID == "" {
			return unusable
		}
		if err := store.SpendAssertion(t, email, signed.Claims.ID, (signed.Claims.Expires+int64(assertionSkew/time.Second)+1)*1000); errors.Is(err, store.ErrConflict) {
			return unusable
		} else if err != nil {
			return err
		}
		if !a.rates.try("login:"+email, a.clock()) {
			return tooFast(email + " logs in too often.")
		}
		p, err := inStanding(t, email, 0)
		if err != nil {
			return err
		}
		if r.Delegation != "" {
			out, err = t.actFor(p, r)
			return err
		}
		login, err := t.issue(p, keyID, "assertion")
		out = api.OAuthToken{AccessToken: login.Token, TokenType: "Bearer", ExpiresIn: login.ExpiresIn, Details: []struct{}{}}
		return err
	})
	if err != nil {
		return api.OAuthToken{}, err
	}
	return out, nil
}

func withCause(e *OAuthError, err error) *OAuthError {
	c := *e
	c.cause = err
	return &c
}

// timely checks the claims of an assertion that need no database: one issuer
// that is its own subject, this authority as the one audience, a name, and a
// short life.
func (a *Authority) timely(c token.AssertionClaims) bool {
	now, skew := a.clock(), assertionSkew
	at := func(seconds int64) time.Time { return time.Unix(seconds, 0) }
	return c.Issuer != "" && c.Issuer == c.Subject && len(c.Issuer) <= maxIdentityLen &&
		len(c.Audience) == 1 && (c.Audience[0] == a.cfg.Issuer+api.PathToken || c.Audience[0] == a.cfg.Issuer) &&
		c.ID != "" && len(c.ID) <= maxJTI &&
		now.Before(at(c.Expires).Add(skew)) && !at(c.Expires).After(now.Add(maxAssertionLife)) &&
		!at(c.IssuedAt).After(now.Add(skew)) && !at(c.NotBefore).After(now.Add(skew))
}

// assertedBy is the ID of the key of email that signed the assertion, "" if
// none did.
func assertedBy(tx store.Tx, now grant.Millis, email string, signed *token.Assertion) (string, error) {
	keys, err := store.Keys(tx, email)
	if err != nil {
		return "", err
	}
	for _, k := range keys {
		if k.DormantUntil > int64(now) {
			continue
		}
		public, err := sshkey.ParsePublic(k.PublicKey)
		if err != nil {
			return "", err
		}
		if signed.VerifiedBy(public.Key()) {
			return k.ID, nil
		}
	}
	return "", nil
}

// domainPermits refuses a delegate whom the domain of the delegator lets nowhere, or
// not there. Where a domain leaves it to its people, the delegation is their yes. Only
// for who holds a key and the delegation is the domain asked; all else that may be
// wrong is found where the delegation is used.
func (a *Authority) domainPermits(ctx context.Context, email string, signed *token.Assertion, r TokenRequest) error {
	if a.policies == nil {
		return nil
	}
	var domain string
	listed := false
	err := a.view(ctx, func(tx store.Tx) error {
		keyID, err := assertedBy(tx, a.now(), email, signed)
		if err != nil || keyID == "" {
			return err
		}
		d, err := store.DelegationByID(tx, r.Delegation)
		if err != nil || d.Delegate != email || a.usableDelegation(tx, d, email, r.Audience, a.now()) != nil {
			return ignoreNotFound(err)
		}
		_, domain, _ = strings.Cut(d.Delegator, "@")
		if slices.Contains(a.cfg.Allowed, AllowedService{Domain: domain, Client: r.Audience}) {
			listed = true
			return nil
		}
		listed, err = store.ClientAllowed(tx, domain, r.Audience)
		return err
	})
	if err != nil || domain == "" {
		return err
	}
	mode, err := a.policies.Mode(ctx, domain)
	switch {
	case err != nil:
		return problem(502, "The policy of "+domain+" could not be read", "Nothing was given to the service.",
			"Try again later. The domain's owner publishes the policy, the authority's log file has the cause.").kind("idp_unreachable").caused(err)
	case mode == ModeOpen, mode == ModePerson, mode == "", mode == ModeAdmin && listed:
		return nil
	case mode == ModeAdmin:
		return invalidGrant(NotOnList.describe())
	}
	return invalidGrant(DeniedByDomain.describe())
}

// actFor uses a delegation. This authority itself, in whatever form it is
// named, is no audience: nobody manages anything here in another's name.
func (t *txn) actFor(p store.Principal, r TokenRequest) (api.OAuthToken, error) {
	if r.Audience == "*" || t.a.ownAudience(r.Audience) || len(r.Audience) > maxParameter {
		return api.OAuthToken{}, oauthError(400, "invalid_target", "Nobody acts for somebody else at this authority.")
	}
	d, err := t.delegation(p, r.Delegation, r.Audience, true)
	if err != nil {
		return api.OAuthToken{}, err
	}
	if _, err := inStanding(t, d.Delegator, 0); err != nil {
		return api.OAuthToken{}, err
	}
	return t.issueDelegated(d, r.Audience, "", 0)
}

// UserInfo tells whoever holds a token what it tells about its subject. A token
// of another client is good for this address alone. Delegated tokens tell
// nothing.
func (a *Authority) UserInfo(ctx context.Context, raw string) (api.UserInfo, error) {
	keys := a.keys.Load().all
	var out api.UserInfo
	var jti string
	id, err := keys.VerifyIdentity(raw, a.cfg.Issuer, a.clock())
	if err == nil {
		jti, out = id.ID, api.UserInfo{Subject: id.Subject, Email: id.Email, Name: id.Name}
	} else {
		by, err := a.Authenticate(ctx, raw)
		if err != nil {
			return api.UserInfo{}, invalidToken(err)
		}
		jti, out = by.TokenID, api.UserInfo{Subject: by.Principal.Email, Email: by.Principal.Email, Name: by.Principal.Name}
	}
	err = a.view(ctx, func(tx store.Tx) error {
		l, p, ownerActive, err := store.TokenHolder(tx, jti)
		switch {
		case errors.Is(err, store.ErrNotFound):
			return invalidToken(err)
		case err != nil:
			return err
		case p.Email != out.Subject || l.Expires <= int64(a.now()) || !usable(p) || p.Paused || !ownerActive:
			return invalidToken(nil)
		}
		return nil
	})
	if err != nil {
		return api.UserInfo{}, err
	}
	return out, nil
}

func invalidToken(cause error) *OAuthError {
	e := oauthError(401, "invalid_token", "The token is not good here, or not any more.")
	e.cause = cause
	return e
}

// RevokeToken ends what a token stands for (RFC 7009): of a refresh token the
// whole family, of another that token. What is unknown, or was given to another
// client than the one named, is left as it is without a word.
func (a *Authority) RevokeToken(ctx context.Context, text, client string) error {
	if text == "" {
		return invalidRequest("Missing token.")
	}
	raw, isRefresh := splitRefresh(text)
	if isRefresh {
		handle, _ := refreshHashes(raw)
		return a.narrow(ctx, func(t *txn) error {
			f, err := store.FamilyByHandle(t, handle)
			if err != nil || client != "" && f.Client != client {
				return ignoreNotFound(err)
			}
			return t.endAuthorization(AnonymousName, f.Email, f.Client, f.ID, "revoked by its client")
		})
	}
	keys := a.keys.Load().all
	var jti, audience string
	if id, err := keys.VerifyIdentity(text, a.cfg.Issuer, a.clock()); err == nil {
		jti, audience = id.ID, id.Audience
	} else if l, err := keys.VerifyLogin(text, a.cfg.Issuer, a.clock()); err == nil {
		jti, audience = l.ID, l.Audience
	}
	if jti == "" || client != "" && client != audience {
		return nil
	}
	return a.narrow(ctx, func(t *txn) error {
		l, err := store.TokenByID(t, jti)
		if err != nil {
			return ignoreNotFound(err)
		}
		if err := store.DeleteToken(t, jti); err != nil {
			return err
		}
		_, err = t.record(recordOAuthEnd, "", l.Email, oauthRecord{
			Operation: "token.revoked", By: AnonymousName, Subject: l.Email, Client: audience, Family: l.Origin, Token: jti,
		})
		return err
	})
}
