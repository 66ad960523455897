package authority

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"vogt/internal/api"
	"vogt/internal/fault"
	"vogt/internal/grant"
	"vogt/internal/store"
	"vogt/internal/token"
)

// This file lets one service act at another in a person's name (cross-SP in OpenApe's
// words). The person signs a bridge once, with a passkey, as every change of trust; while
// it holds, the service gets codes for it by the person's browser, and for each a token
// of a few minutes.

const (
	purposeBridgeCode = "bridge-code" // of codes, which nothing else takes
	bridgeLife        = 90 * 24 * time.Hour
	maxBridges        = 1000 // of one person
)

// Scope is what a service says that it lets others do.
type Scope struct{ ID, Description string }

// ScopeSource tells which scopes a service knows. That it tells none is ErrNoClient;
// any other error means that nobody can tell now.
type ScopeSource interface {
	Scopes(ctx context.Context, audience string) ([]Scope, error)
}

// bridgeRequest is a request for a code, read once.
type bridgeRequest struct {
	client, audience, redirectURI, state, challenge string
	scopes                                          []string // sorted, at least one
}

func parseBridge(q url.Values) (bridgeRequest, error) {
	bad := func(detail string) (bridgeRequest, error) {
		return bridgeRequest{}, problem(400, "The request is not clear", detail, "The service that sent you here has to change it. You were sent nowhere.").kind("invalid_request")
	}
	for name, values := range q {
		if len(values) > 1 || len(values[0]) > maxParameter {
			return bad("A parameter is there more than once, or is too long: " + shorten(name, 50) + ".")
		}
	}
	r := bridgeRequest{
		client: q.Get("client_id"), audience: q.Get("audience"), redirectURI: q.Get("redirect_uri"), state: q.Get("state"), challenge: q.Get("code_challenge"),
		scopes: strings.Fields(q.Get("scope")),
	}
	slices.Sort(r.scopes)
	r.scopes = slices.Compact(r.scopes)
	switch {
	case r.client == "" || r.audience == "" || r.redirectURI == "" || r.state == "" || len(r.scopes) == 0:
		return bad("client_id, audience, scope, redirect_uri and state are required.")
	case q.Get("code_challenge_method") != "S256" || !challengeS256.MatchString(r.challenge):
		return bad("code_challenge with code_challenge_method=S256 is required.")
	case q.Get("response_type") != "" && q.Get("response_type") != "code":
		return bad("response_type can be code only.")
	case len(r.scopes) > maxScopes:
		return bad(fmt.Sprintf("It asks for %d scopes; the limit is %d.", len(r.scopes), maxScopes))
	}
	return r, nil
}

// at is the answer that the person is sent to the service with.
func (r bridgeRequest) at(a *Authority, values url.Values) Authorization {
	return Authorization{Location: a.answer(authorizeRequest{RedirectURI: r.redirectURI, State: r.state}, values)}
}

func (r bridgeRequest) refused(a *Authority, code, description string) Authorization {
	return r.at(a, url.Values{"error": {code}, "error_description": {description}})
}

// AuthorizeBridge answers a service that wants to act at another one for the person of a
// page. While a bridge that covers the request holds, it gets a code; else the person is
// sent to the change of trust that makes one.
func (a *Authority) AuthorizeBridge(ctx context.Context, by Actor, query url.Values) (Authorization, error) {
	r, err := parseBridge(query)
	if err != nil {
		return Authorization{}, err
	}
	if by.Means == Anonymous {
		return Authorization{SignIn: true, Again: query}, nil
	}
	if by.Means != Page || !by.Person() {
		return Authorization{}, problem(403, "Only a person at a page lets services act", "", "Open the address in a browser and sign in.").kind("forbidden")
	}
	if !a.rates.try("bridge:"+by.Principal.Email, a.clock()) {
		return Authorization{}, tooFast("Codes are asked for too often.")
	}
	c, err := a.client(ctx, r.client, true)
	if err != nil {
		return Authorization{}, err
	}
	// What listens on a person's machine could be any program.
	if c.Unpublished || c.ID == CLIClient || native(r.redirectURI) || !c.answeredAt(r.redirectURI) {
		return Authorization{}, problem(400, "The redirect address is not the client's", "It must be https, and one of those that the client has registered, letter by letter.",
			"The service that sent you here has to change it. You were sent nowhere.").kind("invalid_redirect")
	}
	known, err := a.scopesAt(ctx, r.audience)
	if err != nil {
		return Authorization{}, err
	}
	for _, s := range r.scopes {
		if !slices.ContainsFunc(known, func(k Scope) bool { return k.ID == s }) {
			return r.refused(a, "invalid_scope", "The other service does not know one of the scopes."), nil
		}
	}
	if r.client == r.audience {
		return r.refused(a, "invalid_request", "A service needs no bridge to itself."), nil
	}
	verdict, reason, err := a.policy(ctx, by, by.Principal, c, authorizeRequest{Client: r.client, RedirectURI: r.redirectURI})
	if err != nil {
		return Authorization{}, err
	}
	if verdict == refused {
		return r.refused(a, "access_denied", reason.describe()), nil
	}
	var bridge store.Bridge
	err = a.view(ctx, func(tx store.Tx) error {
		bridges, err := store.Bridges(tx, by.Principal.Email, by.Principal.Generation, int64(a.now()))
		for _, l := range bridges {
			if l.Client == r.client && l.Audience == r.audience && l.Covers(r.scopes) {
				bridge = l
				break
			}
		}
		return err
	})
	if err != nil {
		return Authorization{}, err
	}
	if bridge.ID == "" {
		return a.askForBridge(ctx, r, query)
	}
	if !by.Proven {
		// A cookie alone reads, here as at [Authority.Authorize].
		id, err := a.pend(by, question{
			Request: authorizeRequest{Client: r.client, RedirectURI: r.redirectURI, State: r.state, MaxAge: -1}, Agreed: true, Bridge: query.Encode(),
		})
		return Authorization{Ask: id}, err
	}
	return a.bridgeCode(ctx, by, r, bridge)
}

// scopesAt tells what a service lets others do.
func (a *Authority) scopesAt(ctx context.Context, audience string) ([]Scope, error) {
	unknown := problem(404, "This service lets nobody act at it", "It publishes no scopes that could be read, or this authority asks nobody.",
		"Its operator publishes them at /.well-known/openape.json; the authority's asks services where ddisa.lookup says so.")
	if a.scopes == nil || !strings.Contains(audience, ".") || len(audience) > 255 || a.ownAudience(audience) {
		return nil, unknown
	}
	known, err := a.scopes.Scopes(ctx, audience)
	switch {
	case errors.Is(err, ErrNoClient):
		return nil, unknown.caused(err)
	case err != nil:
		return nil, problem(502, "The service's scopes could not be read", "Nothing was given.", "Try again later.").caused(err)
	}
	return known, nil
}

// ScopeCatalog tells a principal which scopes a service knows. Strangers are told
// nothing: they could have this machine ask where they like.
func (a *Authority) ScopeCatalog(ctx context.Context, by Actor, audience string) (api.ScopeCatalog, error) {
	if !by.Known() {
		return api.ScopeCatalog{}, errUnauthenticated()
	}
	if !a.rates.try("catalog:"+by.Name(), a.clock()) {
		return api.ScopeCatalog{}, tooFast("Catalogs are asked for too often.")
	}
	known, err := a.scopesAt(ctx, audience)
	out := api.ScopeCatalog{Audience: audience, Scopes: []api.Scope{}}
	for _, s := range known {
		out.Scopes = append(out.Scopes, api.Scope{ID: s.ID, Description: s.Description})
	}
	return out, err
}

// askForBridge prepares the change of trust. Its asker is a stranger, who is one of many:
// a page that a person opens cannot fill the person's own.
func (a *Authority) askForBridge(ctx context.Context, r bridgeRequest, query url.Values) (Authorization, error) {
	secret, err := a.randomHex(32)
	if err != nil {
		return Authorization{}, err
	}
	t, err := a.Prepare(ctx, Actor{}, api.TrustRequest{Operation: api.TrustBridgeAdd, Secret: secret, Params: map[string]string{
		"client": r.client, "service": r.audience, "scopes": strings.Join(r.scopes, " "), "request": query.Encode(),
	}})
	return Authorization{Location: "/trust/" + t.ID}, err
}

// bridgeParams checks the parameters of a bridge to be signed.
func bridgeParams(params map[string]string) error {
	bad := func(detail string) error { return problem(400, "The bridge cannot be taken", detail, "") }
	for _, name := range []string{"client", "service"} {
		if v := params[name]; len(v) > 255 || !plainText(v) || strings.ContainsAny(v, " *\"'<>\\") {
			return bad(name + ": want the ID of a service.")
		}
	}
	scopes := strings.Fields(params["scopes"])
	slices.Sort(scopes)
	scopes = slices.Compact(scopes)
	if len(scopes) == 0 || len(scopes) > maxScopes || slices.ContainsFunc(scopes, func(s string) bool { return len(s) > maxScope }) {
		return bad(fmt.Sprintf("scopes: want 1 to %d.", maxScopes))
	}
	params["scopes"] = strings.Join(scopes, " ")
	if request, ok := params["request"]; ok {
		if q, err := url.ParseQuery(request); err != nil || q.Encode() != request {
			return bad("request is no query.")
		}
	}
	return nil
}

// addBridge puts a bridge into force and returns where the person goes on to.
func (t *txn) addBridge(person store.Principal, params map[string]string, strength grant.Strength) (l store.Bridge, next string, err error) {
	if t.a.ownAudience(params["service"]) || params["client"] == CLIClient || params["client"] == params["service"] {
		return l, "", problem(400, "Nobody stands in for you at this authority", "The bridge would lead to the authority itself, or nowhere.", "Name two services.")
	}
	bridges, err := store.Bridges(t, person.Email, person.Generation, int64(t.now))
	if err != nil {
		return l, "", err
	}
	if len(bridges) >= maxBridges {
		return l, "", problem(409, "Too many bridges", fmt.Sprintf("%d are in force.", len(bridges)), "Revoke those that are no longer needed.")
	}
	l = store.Bridge{
		Email: person.Email, Generation: person.Generation, Client: params["client"], Audience: params["service"], Scopes: strings.Fields(params["scopes"]),
		Created: t.now, Until: t.now + grant.Millis(bridgeLife.Milliseconds()), Strength: strength,
	}
	if l.ID, err = t.a.newID(); err != nil {
		return l, "", err
	}
	if request := params["request"]; request != "" {
		next = t.a.cfg.PagesOrigin + api.PathAuthorizeBridge + "?" + request
	}
	return l, next, store.InsertBridge(t, l)
}

// bridgeCode is what a code stands for. It is kept in memory: a restart ends it, as the
// minute does that it lives.
type bridgeCode struct {
	Bridge, Client, Audience, RedirectURI, Challenge string
	Scopes                                           []string
	Epoch                                            uint64
}

func (a *Authority) bridgeCode(ctx context.Context, by Actor, r bridgeRequest, l store.Bridge) (Authorization, error) {
	code, err := a.randomHex(32)
	if err != nil {
		return Authorization{}, err
	}
	data, err := json.Marshal(bridgeCode{Bridge: l.ID, Client: r.client, Audience: r.audience, RedirectURI: r.redirectURI, Challenge: r.challenge, Scopes: r.scopes, Epoch: a.Epoch()})
	if err != nil {
		return Authorization{}, err
	}
	err = a.update(ctx, func(t *txn) error {
		if _, err := t.stillHere(by); err != nil {
			return err
		}
		return t.recordOAuth(oauthRecord{Operation: "bridge.code", By: by.Name(), Subject: l.Email, Client: l.Client, Delegated: l.ID, Redirect: r.redirectURI, Scope: strings.Join(r.scopes, " "), Actor: l.Client})
	})
	var no *OAuthError
	if errors.As(err, &no) && no.Status == 403 {
		return Authorization{}, inactiveUser().caused(err)
	}
	if err != nil {
		return Authorization{}, err
	}
	a.consents.start(code, ceremony{purpose: purposeBridgeCode, subject: l.Email, data: data, ends: a.clock().Add(codeLife)})
	return r.at(a, url.Values{"code": {code}}), nil
}

// BridgeToken gives a service the token for a code. The code is spent by being shown,
// whatever comes of it.
func (a *Authority) BridgeToken(ctx context.Context, in api.BridgeToken) (out api.BridgeTokenAnswer, err error) {
	unusable := problem(400, "The code is not good", "It is unknown, used, over, or somebody else's.", "Send the person to "+api.PathAuthorizeBridge+" again.").kind("invalid_grant")
	if !verifierForm.MatchString(in.Verifier) {
		return out, problem(400, "The code_verifier is not good", "It has not the form of RFC 7636.", "").kind("invalid_pkce")
	}
	held, ok := a.consents.take(in.Code, purposeBridgeCode, a.clock())
	if !ok {
		return out, unusable
	}
	var c bridgeCode
	if err := json.Unmarshal(held.data, &c); err != nil {
		return out, err
	}
	if c.Client != in.ClientID || c.RedirectURI != in.RedirectURI || c.Epoch != a.Epoch() || !same(c.Challenge, challengeOf(in.Verifier)) {
		return out, unusable
	}
	err = a.update(ctx, func(t *txn) error {
		l, err := store.BridgeByID(t, c.Bridge)
		if errors.Is(err, store.ErrNotFound) {
			return unusable
		}
		if err != nil {
			return err
		}
		if _, err := inStanding(t, l.Email, l.Generation); err != nil {
			var no *OAuthError
			if errors.As(err, &no) {
				return unusable.caused(err)
			}
			return err
		}
		if !l.Covers(c.Scopes) || l.Client != c.Client || l.Audience != c.Audience {
			return unusable
		}
		if err := store.UseBridge(t, l.ID, int64(t.now)); errors.Is(err, store.ErrConflict) {
			return unusable
		} else if err != nil {
			return err
		}
		fault.Point("authority.use-bridge")
		out, err = t.issueBridge(l, c.Scopes)
		return err
	})
	return out, err
}

func (t *txn) issueBridge(l store.Bridge, scopes []string) (out api.BridgeTokenAnswer, err error) {
	jti, err := t.a.newID()
	if err != nil {
		return out, err
	}
	now, life := t.now.Seconds(), t.lifeUntil(int64(l.Until))
	if life <= 0 {
		return out, problem(400, "The code is not good", "What it stands for is over.", "Send the person to "+api.PathAuthorizeBridge+" again.").kind("invalid_grant")
	}
	out.ExpiresIn = life
	out.AuthzJWT, err = token.Sign(t.a.keys.Load().signing, token.Bridge{
		Issuer: t.a.cfg.Issuer, Subject: l.Email, Audience: l.Audience, TargetHost: l.Audience, Act: token.Actor{Subject: l.Client}, IssuedAt: now, Expires: now + life,
		ID: jti, Use: token.UseBridge, GrantID: l.ID, GrantType: string(grant.Always), Approval: string(grant.Always), Delegation: l.ID, Delegate: l.Client,
		DecidedBy: l.Email, Scope: scopes,
	})
	if err != nil {
		return out, err
	}
	return out, t.recordOAuth(oauthRecord{Operation: "bridge.used", By: l.Client, Subject: l.Email, Client: l.Audience, Actor: l.Client, Delegated: l.ID, Scope: strings.Join(scopes, " "), Token: jti})
}

// bridgeStatus is what anybody may ask who was shown a bridge's identifier: whether it
// holds.
func (a *Authority) bridgeStatus(tx store.Tx, id string) (grant.Status, error) {
	l, err := store.BridgeByID(tx, id)
	if err != nil {
		return "", err
	}
	var no *OAuthError
	switch _, err := inStanding(tx, l.Email, l.Generation); {
	case l.Revoked != 0:
		return grant.Revoked, nil
	case l.Until.Reached(a.now()):
		return grant.Expired, nil
	case errors.As(err, &no):
		return grant.Pending, nil
	case err != nil:
		return "", err
	}
	return grant.Approved, nil
}

// Bridges lists what the actor lets services do at others.
func (a *Authority) Bridges(ctx context.Context, by Actor) (out []api.Bridge, err error) {
	if !by.Known() {
		return nil, errUnauthenticated()
	}
	out = []api.Bridge{}
	err = a.view(ctx, func(tx store.Tx) error {
		bridges, err := store.Bridges(tx, by.Principal.Email, by.Principal.Generation, int64(a.now()))
		for _, l := range bridges {
			out = append(out, api.Bridge{
				ID: l.ID, ClientID: l.Client, Audience: l.Audience, Scopes: l.Scopes, CreatedAt: l.Created.Seconds(), ExpiresAt: l.Until.Seconds(),
				Uses: l.Uses, LastUsedAt: l.LastUsed.Seconds(),
			})
		}
		return err
	})
	return out, err
}

// EndBridge takes a bridge back; a login suffices. To others it does not exist.
func (a *Authority) EndBridge(ctx context.Context, by Actor, id string) error {
	if err := mayEnd(by); err != nil {
		return err
	}
	return a.narrow(ctx, func(t *txn) error {
		l, err := store.BridgeByID(t, id)
		if ignoreNotFound(err) != nil {
			return err
		}
		if l.Email != by.Principal.Email || l.Generation != by.Principal.Generation || !l.Live(t.now) {
			return problem(404, "There is no such bridge", "", "See yours at "+api.PathBridges+".")
		}
		if err := store.EndBridge(t, id, by.Name(), int64(t.now)); err != nil {
			return err
		}
		return t.recordOAuth(oauthRecord{Operation: "bridge.revoked", By: by.Name(), Subject: l.Email, Client: l.Client, Delegated: l.ID, Actor: l.Client})
	})
}
