package authority_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"vogt/internal/api"
	"vogt/internal/authority"
	"vogt/internal/authoritytest"
	"vogt/internal/grant"
	"vogt/internal/token"
)

const mail = "mail.example.net" // a service at which others act

// catalogs are the scopes of services.
type catalogs struct{ down atomic.Bool }

func (c *catalogs) Scopes(_ context.Context, audience string) ([]authority.Scope, error) {
	switch {
	case c.down.Load():
		return nil, errors.New("no route")
	case audience != mail && audience != "files.example.net" && audience != plans:
		return nil, authority.ErrNoClient
	}
	return []authority.Scope{{ID: "mail:read", Description: "Read your mail"}, {ID: "mail:send", Description: "Send mail as you"}}, nil
}

type bridgeScene struct {
	*world
	sources  *directory
	catalogs *catalogs
}

func newBridge(t *testing.T) *bridgeScene {
	t.Helper()
	b := &bridgeScene{sources: publish(), catalogs: &catalogs{}}
	b.sources.clients[silent] = authority.ClientMetadata{ID: silent, Unpublished: true}
	b.sources.clients["native.example.com"] = authority.ClientMetadata{ID: "native.example.com", RedirectURIs: []string{"http://localhost:9/cb"}}
	b.sources.clients[mail] = authority.ClientMetadata{ID: mail, RedirectURIs: []string{"https://" + mail + "/cb"}}
	b.world = withPasskey(t, append(withServices(b.sources), authoritytest.WithScopes(b.catalogs))...)
	b.addKey()
	return b
}

func bridgeQuery(pairs ...string) url.Values {
	q := url.Values{
		"client_id": {plans}, "audience": {mail}, "scope": {"mail:read"}, "redirect_uri": {plansRedirect}, "state": {"the state"},
		"code_challenge": {challengeOf(verifier)}, "code_challenge_method": {"S256"},
	}
	for i := 0; i < len(pairs); i += 2 {
		q.Del(pairs[i])
		if pairs[i+1] != "" {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	return q
}

func (b *bridgeScene) open(q url.Values) authority.Authorization {
	b.t.Helper()
	out, err := b.s.Authority.AuthorizeBridge(ctx, b.page, q)
	if err != nil {
		b.t.Fatal(err)
	}
	return out
}

// sign signs the bridge that the request wants and returns where the person goes on to.
func (b *bridgeScene) sign(q url.Values) string {
	b.t.Helper()
	id, ok := strings.CutPrefix(b.open(q).Location, "/trust/")
	if !ok {
		b.t.Fatalf("sent to %q", b.open(q).Location)
	}
	return b.confirm(id).Link
}

func (b *bridgeScene) code(q url.Values) string {
	b.t.Helper()
	v := answered(b.t, b.open(q).Location, q.Get("redirect_uri"))
	if v.Get("code") == "" || v.Get("state") != "the state" || v.Get("iss") != b.s.URL {
		b.t.Fatalf("the answer is %v", v)
	}
	return v.Get("code")
}

func tokenFor(code string) api.BridgeToken {
	return api.BridgeToken{Code: code, Verifier: verifier, RedirectURI: plansRedirect, ClientID: plans}
}

// A service acts at another one for a person who signed that once.
func TestBridge(t *testing.T) {
	t.Parallel()
	b := newBridge(t)
	q := bridgeQuery()
	if next := b.sign(q); next != b.s.Pages+"/authorize-cross-sp?"+q.Encode() {
		t.Errorf("the person goes on to %q", next)
	}
	var out api.BridgeTokenAnswer
	b.s.Stranger().Post(api.PathBridgeToken, tokenFor(b.code(q))).Into(&out)
	c := claims(t, out.AuthzJWT)
	now := float64(b.s.Clock.Now().Unix())
	id, _ := c["grant_id"].(string)
	for name, want := range map[string]any{
		"iss": b.s.URL, "sub": b.owner.Email, "aud": mail, "target_host": mail, "delegate": plans, "delegation_grant": id, "grant_type": "always",
		"vogt_use": token.UseBridge, "iat": now, "exp": now + 300, "decided_by": b.owner.Email,
	} {
		if c[name] != want {
			t.Errorf("claim %s is %v, want %v", name, c[name], want)
		}
	}
	if act, _ := json.Marshal(c["act"]); string(act) != `{"sub":"`+plans+`"}` {
		t.Errorf("act is %s", act)
	}
	if scope, _ := json.Marshal(c["scope"]); string(scope) != `["mail:read"]` {
		t.Errorf("scope is %s", scope)
	}

	// The other service asks, without a login, whether it still holds.
	status := func(want grant.Status) {
		t.Helper()
		var g api.Grant
		b.s.Stranger().Get("/api/grants/" + id).Into(&g)
		if g.Status != want || g.Requester != "" {
			t.Errorf("the bridge is %+v, want %s", g, want)
		}
	}
	status(grant.Approved)
	var list struct{ Data []api.Bridge }
	b.owner.Get(api.PathBridges).Into(&list)
	if len(list.Data) != 1 || list.Data[0].ID != id || list.Data[0].ClientID != plans || list.Data[0].Audience != mail || list.Data[0].Uses != 1 {
		t.Fatalf("the list is %+v", list)
	}
	b.agent.Get(api.PathBridges).Into(&list)
	if len(list.Data) != 0 {
		t.Errorf("the agent's list is %+v", list)
	}
	b.agent.Do("DELETE", api.PathBridges+"/"+id, nil).Problem(404)

	// Taken back, it gives nothing, also not for a code that is under way.
	code := b.code(q)
	b.owner.Do("DELETE", api.PathBridges+"/"+id, nil).Want(200)
	b.s.Stranger().Post(api.PathBridgeToken, tokenFor(code)).Problem(400)
	status(grant.Revoked)
	if to := b.open(q).Location; !strings.HasPrefix(to, "/trust/") {
		t.Errorf("sent to %q", to)
	}
	b.owner.Do("DELETE", api.PathBridges+"/"+id, nil).Problem(404)
}

// What was signed covers its service, audience and scopes, until it ends, and nothing
// without a passkey or a signature.
func TestBridgeCovers(t *testing.T) {
	t.Parallel()
	b := newBridge(t)
	b.sign(bridgeQuery("scope", "mail:read"))
	b.code(bridgeQuery())
	for _, pairs := range [][]string{
		{"scope", "mail:send"}, {"scope", "mail:read mail:send"}, {"audience", "files.example.net"},
		{"client_id", local, "redirect_uri", localRedirect}, {"client_id", mail, "redirect_uri", "https://" + mail + "/cb", "audience", mail},
	} {
		if to := b.open(bridgeQuery(pairs...)).Location; strings.Contains(to, "code=") {
			t.Errorf("%q: sent to %q", pairs, to)
		}
	}
	for _, pairs := range [][]string{{"scope", "mail:unknown"}, {"scope", "mail:read mail:unknown"}, {"scope", "*"}} {
		if v := answered(t, b.open(bridgeQuery(pairs...)).Location, plansRedirect); v.Get("error") != "invalid_scope" {
			t.Errorf("%q: %v", pairs, v)
		}
	}
	if v := answered(t, b.open(bridgeQuery("audience", plans)).Location, plansRedirect); v.Get("error") != "invalid_request" {
		t.Errorf("to itself: %v", v)
	}
	b.sources.set("example.com", authority.ModeDeny)
	if v := answered(t, b.open(bridgeQuery()).Location, plansRedirect); v.Get("error") != "access_denied" {
		t.Errorf("a domain that denies: %v", v)
	}
	b.sources.set("example.com", authority.ModeAdmin)
	if v := answered(t, b.open(bridgeQuery()).Location, plansRedirect); v.Get("error") != "access_denied" {
		t.Errorf("not on the domain's list: %v", v)
	}
	b.sources.set("example.com", "")
	b.code(bridgeQuery()) // what was signed is more than a yes

	// Neither a bearer nor a click makes one, and an agent's signature does not.
	c := newBridge(t)
	c.owner.Post(api.PathGrantBridge, map[string]string{"client_id": plans, "audience": mail}).Problem(403)
	params := map[string]string{"client": plans, "service": mail, "scopes": "mail:read"}
	tr, secret := c.agent.Prepare(api.TrustBridgeAdd, params)
	c.agent.Post(api.PathTrust+"/"+tr.ID+"/confirm", c.owner.SignedChange(tr.ID), api.TrustSecretHeader, secret).Problem(403)
	unsigned := c.owner.SignedChange(tr.ID)
	unsigned.Signature = ""
	c.owner.Post(api.PathTrust+"/"+tr.ID+"/confirm", unsigned, api.TrustSecretHeader, secret).Problem(403)
	for _, actor := range []authority.Actor{c.owner.Actor(), c.agent.Actor()} {
		if out, err := c.s.Authority.AuthorizeBridge(ctx, actor, bridgeQuery()); err == nil {
			t.Errorf("%s: %+v", actor.Name(), out)
		}
	}
	if out, err := c.s.Authority.AuthorizeBridge(ctx, authority.Actor{}, bridgeQuery()); err != nil || !out.SignIn || out.Location != "" {
		t.Errorf("a stranger: %+v, %v", out, err)
	}
}

// Requests that nobody is sent anywhere for.
func TestBridgeRequests(t *testing.T) {
	t.Parallel()
	b := newBridge(t)
	for _, pairs := range [][]string{
		{"client_id", ""}, {"audience", ""}, {"scope", ""}, {"redirect_uri", ""}, {"state", ""}, {"code_challenge", ""}, {"code_challenge", "short"},
		{"code_challenge_method", "plain"}, {"code_challenge_method", ""}, {"response_type", "token"},
		{"redirect_uri", "https://evil.example/cb"}, {"redirect_uri", plansRedirect + "/"}, {"redirect_uri", "javascript:alert(1)"},
		{"client_id", "nobody.example.com"}, {"client_id", "liar.example.com"}, {"client_id", silent, "redirect_uri", "https://" + silent + "/cb"},
		{"client_id", "native.example.com", "redirect_uri", "http://localhost:9/cb"}, {"client_id", "apes-cli", "redirect_uri", cliRedirect},
		{"audience", "nobody.example.com"}, {"audience", "*"}, {"audience", "apes-cli"}, {"audience", b.s.URL}, {"audience", b.s.Pages + "/x"},
		{"scope", strings.Repeat("a:b ", 500) + strings.Repeat("x", 2000)},
	} {
		if out, err := b.s.Authority.AuthorizeBridge(ctx, b.page, bridgeQuery(pairs...)); err == nil {
			t.Errorf("%.100q: %+v", pairs, out)
		}
	}
	twice := bridgeQuery()
	twice.Add("redirect_uri", "https://evil.example/")
	if out, err := b.s.Authority.AuthorizeBridge(ctx, b.page, twice); err == nil {
		t.Errorf("a parameter twice: %+v", out)
	}
	b.catalogs.down.Store(true)
	if out, err := b.s.Authority.AuthorizeBridge(ctx, b.page, bridgeQuery()); err == nil {
		t.Errorf("nobody can tell the scopes: %+v", out)
	}
	b.owner.Get(api.PathScopeCatalog + "?audience=" + mail).Problem(502)
	b.catalogs.down.Store(false)
	var known api.ScopeCatalog
	b.owner.Get(api.PathScopeCatalog + "?audience=" + mail).Into(&known)
	if len(known.Scopes) != 2 || known.Scopes[0].Description != "Read your mail" {
		t.Errorf("the catalog is %+v", known)
	}
	b.owner.Get(api.PathScopeCatalog + "?audience=nobody.example.com").Problem(404)
	b.owner.Get(api.PathScopeCatalog).Problem(404)
	b.s.Stranger().Get(api.PathScopeCatalog + "?audience=" + mail).Problem(401)
	for _, params := range []map[string]string{
		{"client": plans, "service": mail}, {"client": plans, "scopes": "a:b"}, {"client": plans + " x", "service": mail, "scopes": "a:b"},
		{"client": plans, "service": "*", "scopes": "a:b"}, {"client": plans, "service": mail, "scopes": " "},
		{"client": plans, "service": mail, "scopes": "a:b", "request": "a=%zz"}, {"client": plans, "service": mail, "scopes": "a:b", "request": "//evil.example"},
	} {
		b.s.Stranger().Post(api.PathTrust, api.TrustRequest{Operation: api.TrustBridgeAdd, Params: params, Secret: strings.Repeat("00", 32)}).Problem(400)
	}
}

// A code is good once, for a minute, for whoever asked for it; and no code, token or
// identifier of one kind is accepted as another.
func TestBridgeCodes(t *testing.T) {
	t.Parallel()
	b := newBridge(t)
	q := bridgeQuery()
	b.sign(q)
	stranger := b.s.Stranger()
	for name, change := range map[string]func(*api.BridgeToken){
		"another verifier": func(r *api.BridgeToken) { r.Verifier = strings.Repeat("x", 43) },
		"another address":  func(r *api.BridgeToken) { r.RedirectURI = plansRedirect + "/two" },
		"another service":  func(r *api.BridgeToken) { r.ClientID = local },
		"no service":       func(r *api.BridgeToken) { r.ClientID = "" },
	} {
		r := tokenFor(b.code(q))
		wrong := r
		change(&wrong)
		if out, err := b.s.Authority.BridgeToken(ctx, wrong); err == nil {
			t.Errorf("%s: %+v", name, out)
		}
		if out, err := b.s.Authority.BridgeToken(ctx, r); err == nil { // it was spent by being shown
			t.Errorf("the right one after %s: %+v", name, out)
		}
	}
	r := tokenFor(b.code(q))
	b.s.Clock.Advance(time.Minute)
	stranger.Post(api.PathBridgeToken, r).Problem(400)

	// Of many at once one gets a token.
	r = tokenFor(b.code(q))
	var got atomic.Int32
	var raw atomic.Value
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			if out, err := b.s.Authority.BridgeToken(ctx, r); err == nil {
				got.Add(1)
				raw.Store(out.AuthzJWT)
			}
		})
	}
	all.Wait()
	if got.Load() != 1 {
		t.Fatalf("%d of 50 got a token", got.Load())
	}

	// Confusion of kinds.
	bearer := &authoritytest.Client{S: b.s, Bearer: raw.Load().(string)}
	bearer.Get("/api/me").Problem(401)
	bearer.Get("/api/grants").Problem(401)
	bearer.Get("/userinfo").Want(401)
	g := b.agent.Ask("ls")
	if err := b.approveByPasskey(t, g.ID, grant.Once); err != nil {
		t.Fatal(err)
	}
	bearer.Post("/api/grants/"+g.ID+"/consume", nil).Problem(401)
	id, _ := claims(t, raw.Load().(string))["grant_id"].(string)
	bearer.Post("/api/grants/"+id+"/consume", nil).Problem(401)
	b.owner.Post("/api/grants/"+id+"/token", nil).Problem(404)
	b.owner.Post("/api/grants/"+id+"/approve", nil).Problem(404)

	form := func(code string) authoritytest.Answer {
		v := url.Values{}
		for i, pairs := 0, exchangeOf(code, plans, plansRedirect); i < len(pairs); i += 2 {
			v.Add(pairs[i], pairs[i+1])
		}
		a, err := stranger.Try("POST", "/token", v.Encode(), "Content-Type", "application/x-www-form-urlencoded")
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	oauthError(t, form(b.code(q)), 400, "invalid_grant")
	out, err := b.s.Authority.Authorize(ctx, b.page, request(plans, plansRedirect))
	if err != nil {
		t.Fatal(err)
	}
	code := answered(t, out.Location, plansRedirect).Get("code")
	stranger.Post(api.PathBridgeToken, tokenFor(code)).Problem(400)
	form(code).Want(200) // and it was not spent by that
	asked, err := b.s.Authority.Authorize(ctx, b.page, request(plans, plansRedirect, "prompt", "consent"))
	if err != nil || asked.Ask == "" {
		t.Fatal(asked, err)
	}
	stranger.Post(api.PathBridgeToken, tokenFor(asked.Ask)).Problem(400)
	if _, err := b.s.Authority.Consent(ctx, b.page, b.code(q)); err == nil {
		t.Error("a code is taken for a question")
	}
	stranger.Post(api.PathBridgeToken, tokenFor("")).Problem(400)
}

// Whoever is removed has no bridges, and the end of a bridge is its end.
func TestBridgeEnds(t *testing.T) {
	t.Parallel()
	b := newBridge(t)
	q := bridgeQuery()
	b.sign(q)
	code := b.code(q)
	b.s.Clock.Advance(59 * time.Second)
	var out api.BridgeTokenAnswer
	b.s.Stranger().Post(api.PathBridgeToken, tokenFor(code)).Into(&out)
	id, _ := claims(t, out.AuthzJWT)["grant_id"].(string)
	status := func(want grant.Status) {
		t.Helper()
		var g api.Grant
		b.s.Stranger().Get("/api/grants/" + id).Into(&g)
		if g.Status != want {
			t.Errorf("the bridge is %s, want %s", g.Status, want)
		}
	}
	status(grant.Approved)
	code = b.code(q)
	b.s.Person("second@example.com") // the last one cannot be removed
	b.s.Manager().Do("DELETE", "/api/admin/users/"+b.owner.Email, nil).Want(200)
	b.s.Stranger().Post(api.PathBridgeToken, tokenFor(code)).Problem(400)
	b.s.Stranger().Get("/api/grants/" + id).Problem(404)

	b = newBridge(t)
	b.sign(q)
	b.s.Stranger().Post(api.PathBridgeToken, tokenFor(b.code(q))).Into(&out)
	id, _ = claims(t, out.AuthzJWT)["grant_id"].(string)
	status(grant.Approved)
	b.s.Clock.Advance(90*24*time.Hour - time.Millisecond)
	status(grant.Approved)
	b.s.Clock.Advance(time.Millisecond)
	status(grant.Expired)
}

// A cookie alone, which a program of the person's machine may have read, gives no code:
// the page shows that it holds the session's key first.
func TestBridgeNeedsTheSessionsKey(t *testing.T) {
	t.Parallel()
	b := newBridge(t)
	b.sign(bridgeQuery())
	cookie := b.page
	cookie.Proven = false
	out, err := b.s.Authority.AuthorizeBridge(ctx, cookie, bridgeQuery())
	if err != nil || out.Location != "" || out.Ask == "" {
		t.Fatalf("a cookie alone: %+v, %v", out, err)
	}
	if _, err := b.s.Authority.AnswerConsent(ctx, cookie, out.Ask, true); err == nil {
		t.Error("a cookie alone answers")
	}
	q, err := b.s.Authority.Consent(ctx, cookie, out.Ask)
	if err != nil || !q.Agreed || q.Client.ID != plans || q.RedirectURI != plansRedirect {
		t.Errorf("the page shows %+v, %v", q, err)
	}
	to, err := b.s.Authority.AnswerConsent(ctx, b.page, out.Ask, true)
	if err != nil {
		t.Fatal(err)
	}
	v := answered(t, to, plansRedirect)
	b.s.Stranger().Post(api.PathBridgeToken, tokenFor(v.Get("code"))).Want(200)
	if to, err := b.s.Authority.AnswerConsent(ctx, b.page, out.Ask, true); err == nil {
		t.Errorf("answered twice: %q", to)
	}

	// What was taken back meanwhile is asked for anew.
	out, err = b.s.Authority.AuthorizeBridge(ctx, cookie, bridgeQuery())
	if err != nil {
		t.Fatal(err)
	}
	var list struct{ Data []api.Bridge }
	b.owner.Get(api.PathBridges).Into(&list)
	b.owner.Do("DELETE", api.PathBridges+"/"+list.Data[0].ID, nil).Want(200)
	if to, err := b.s.Authority.AnswerConsent(ctx, b.page, out.Ask, true); err != nil || !strings.HasPrefix(to, "/trust/") {
		t.Errorf("a bridge that was taken back: %q, %v", to, err)
	}
}
