package authority_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"vogt/internal/api"
	"vogt/internal/authority"
	"vogt/internal/authoritytest"
	"vogt/internal/grant"
	"vogt/internal/token"
)

const (
	plans         = "plans.example.com" // a service whose metadata is fetched
	plansRedirect = "https://plans.example.com/callback"
	local         = "local-app" // a service of the configuration
	localRedirect = "https://app.example.net/cb?tenant=1"
	cliRedirect   = "http://localhost:9876/callback"
)

// directory is a source of clients and of policies that works, and that a test
// can change.
type directory struct {
	mu      sync.Mutex
	clients map[string]authority.ClientMetadata
	modes   map[string]authority.Mode
	down    bool
	asked   int
}

func publish() *directory {
	return &directory{
		clients: map[string]authority.ClientMetadata{
			plans:              {ID: plans, Name: "Plans", RedirectURIs: []string{plansRedirect, plansRedirect + "/two"}},
			"liar.example.com": {ID: plans, Name: "Plans", RedirectURIs: []string{plansRedirect}},
			"bad.example.com": {ID: "bad.example.com", RedirectURIs: []string{
				"http://bad.example.com/cb", "javascript:alert(1)", "https://bad.example.com/cb#x", "https://user@bad.example.com/cb", "//bad.example.com", "data:text/html,x"}},
		},
		modes: map[string]authority.Mode{"example.com": authority.ModeOpen},
	}
}

func (p *directory) Client(_ context.Context, id string) (authority.ClientMetadata, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked++
	c, ok := p.clients[id]
	switch {
	case p.down:
		return c, errors.New("no route")
	case !ok:
		return c, authority.ErrNoClient
	}
	return c, nil
}

func (p *directory) Mode(_ context.Context, domain string) (authority.Mode, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.down {
		return "", errors.New("no route")
	}
	return p.modes[domain], nil
}

func (p *directory) set(domain string, m authority.Mode) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.modes[domain] = m
}

// oauthScene is an authority with a person, an agent and two services.
type oauthScene struct {
	*authoritytest.Server
	t            *testing.T
	sources      *directory
	owner, agent *authoritytest.Principal
}

func withServices(sources *directory) []authoritytest.Option {
	return []authoritytest.Option{
		authoritytest.WithServices(sources, sources),
		authoritytest.WithConfig(func(c *authority.Config) {
			c.Clients = []authority.ClientMetadata{{ID: local, Name: "Local", RedirectURIs: []string{localRedirect}}}
		}),
	}
}

func newOAuth(t *testing.T) *oauthScene {
	t.Helper()
	o := &oauthScene{t: t, sources: publish()}
	o.Server = authoritytest.Start(t, withServices(o.sources)...)
	o.owner = o.Owner()
	o.agent = o.Agent(o.owner, "bot")
	return o
}

const verifier = "the-verifier-of-a-test-has-at-least-43-characters"

func challengeOf(v string) string {
	sum := sha256.Sum256([]byte(v))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// request is a good request for a code; pairs change or, with "", remove
// parameters.
func request(client, redirect string, pairs ...string) url.Values {
	q := url.Values{
		"response_type": {"code"}, "client_id": {client}, "redirect_uri": {redirect}, "state": {"the state"}, "nonce": {"the nonce"},
		"code_challenge": {challengeOf(verifier)}, "code_challenge_method": {"S256"}, "scope": {"openid email profile offline_access"},
	}
	for i := 0; i < len(pairs); i += 2 {
		q.Del(pairs[i])
		if pairs[i+1] != "" {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	return q
}

// answered reads the values with which somebody was sent to redirect.
func answered(t *testing.T, location, redirect string) url.Values {
	t.Helper()
	if !strings.HasPrefix(location, redirect) {
		t.Fatalf("sent to %q, want %q", location, redirect)
	}
	u, err := url.Parse(location)
	if err != nil {
		t.Fatal(err)
	}
	return u.Query()
}

func (o *oauthScene) authorize(who *authoritytest.Principal, q url.Values) url.Values {
	o.t.Helper()
	a := who.Get("/authorize?" + q.Encode()).Want(302)
	return answered(o.t, a.Header.Get("Location"), q.Get("redirect_uri"))
}

func (o *oauthScene) code(who *authoritytest.Principal, client, redirect string) string {
	o.t.Helper()
	v := o.authorize(who, request(client, redirect))
	if v.Get("code") == "" || v.Get("state") != "the state" || v.Get("iss") != o.URL {
		o.t.Fatalf("the answer is %v", v)
	}
	return v.Get("code")
}

// form posts a form.
func (o *oauthScene) form(path string, pairs ...string) authoritytest.Answer {
	o.t.Helper()
	a, err := o.tryForm(path, pairs...)
	if err != nil {
		o.t.Fatal(err)
	}
	return a
}

func (o *oauthScene) tryForm(path string, pairs ...string) (authoritytest.Answer, error) {
	v := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		v.Add(pairs[i], pairs[i+1])
	}
	return o.Stranger().Try("POST", path, v.Encode(), "Content-Type", "application/x-www-form-urlencoded")
}

func exchangeOf(code, client, redirect string) []string {
	return []string{"grant_type", "authorization_code", "code", code, "code_verifier", verifier, "redirect_uri", redirect, "client_id", client}
}

func (o *oauthScene) tokens(who *authoritytest.Principal, client, redirect string) (out api.OAuthToken) {
	o.t.Helper()
	o.form("/token", exchangeOf(o.code(who, client, redirect), client, redirect)...).Into(&out)
	return out
}

func (o *oauthScene) refresh(text string, more ...string) authoritytest.Answer {
	o.t.Helper()
	return o.form("/token", append([]string{"grant_type", "refresh_token", "refresh_token", text}, more...)...)
}

// oauthError fails the test unless the answer is that error of RFC 6749.
func oauthError(t *testing.T, a authoritytest.Answer, status int, code string) {
	t.Helper()
	a.Want(status)
	var e api.OAuthError
	if err := json.Unmarshal(a.Body, &e); err != nil || e.Error != code || e.Description == "" {
		t.Fatalf("%s: %s, want %s", a.Call, a.Body, code)
	}
	if status == 401 && a.Header.Get("WWW-Authenticate") == "" {
		t.Errorf("%s: no WWW-Authenticate", a.Call)
	}
}

func claims(t *testing.T, raw string) map[string]any {
	t.Helper()
	parts := strings.Split(raw, ".")
	if len(parts) != 3 {
		t.Fatalf("not a JWT: %q", raw)
	}
	b, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		t.Fatal(err)
	}
	var c map[string]any
	if err := json.Unmarshal(b, &c); err != nil {
		t.Fatal(err)
	}
	return c
}

func (o *oauthScene) userinfo(raw string) authoritytest.Answer {
	o.t.Helper()
	return (&authoritytest.Client{S: o.Server, Bearer: raw}).Get("/userinfo")
}

func TestCodeFlow(t *testing.T) {
	t.Parallel()
	o := newOAuth(t)
	out := o.tokens(o.owner, plans, plansRedirect)
	if out.AccessToken != out.IDToken || out.IDToken != out.Assertion || out.TokenType != "Bearer" || out.ExpiresIn != 300 || out.Details == nil {
		t.Errorf("the answer is %+v", out)
	}
	c := claims(t, out.IDToken)
	now := float64(o.Clock.Now().Unix())
	for name, want := range map[string]any{
		"iss": o.URL, "sub": o.owner.Email, "aud": plans, "act": "human", "nonce": "the nonce", "email": o.owner.Email, "name": "Owner", "iat": now, "exp": now + 300,
	} {
		if c[name] != want {
			t.Errorf("claim %s is %v, want %v", name, c[name], want)
		}
	}
	var info api.UserInfo
	o.userinfo(out.AccessToken).Into(&info)
	if info != (api.UserInfo{Subject: o.owner.Email, Email: o.owner.Email, Name: "Owner"}) {
		t.Errorf("the user is %+v", info)
	}

	// Refreshing gives the next tokens, without a client and with the right one,
	// as a form and as JSON.
	var next, last api.OAuthToken
	o.refresh(out.RefreshToken).Into(&next)
	o.Stranger().Post("/token", map[string]string{"grant_type": "refresh_token", "refresh_token": next.RefreshToken, "client_id": plans}).Into(&last)
	if next.RefreshToken == out.RefreshToken || last.RefreshToken == next.RefreshToken || len(last.RefreshToken) != 64 {
		t.Error("refresh tokens do not rotate")
	}
	if c := claims(t, last.IDToken); c["aud"] != plans || c["sub"] != o.owner.Email || c["nonce"] != nil {
		t.Errorf("the refreshed token has %v", c)
	}

	// The session is listed and can be ended.
	var list struct{ Data []api.ClientSession }
	o.owner.Get("/api/me/sessions").Into(&list)
	if len(list.Data) != 1 || list.Data[0].ClientID != plans || list.Data[0].UserID != o.owner.Email || list.Data[0].Revoked ||
		list.Data[0].CreatedAt != o.Clock.Now().UnixMilli() {
		t.Fatalf("the sessions are %+v", list.Data)
	}
	if body := string(o.owner.Get("/api/me/sessions").Body); strings.Contains(strings.ToLower(body), "hash") {
		t.Errorf("the list tells of hashes: %s", body)
	}
	o.agent.Do("DELETE", "/api/me/sessions/"+list.Data[0].FamilyID, nil).Problem(404)
	if a := o.owner.Do("DELETE", "/api/me/sessions/"+list.Data[0].FamilyID, nil).Want(200); string(a.Body) != "{}" {
		t.Errorf("the answer is %s", a.Body)
	}
	oauthError(t, o.refresh(last.RefreshToken), 400, "invalid_grant")
	oauthError(t, o.userinfo(last.AccessToken), 401, "invalid_token")
	o.owner.Do("DELETE", "/api/me/sessions/"+list.Data[0].FamilyID, nil).Problem(404)

	// Without offline_access there is nothing to refresh with, and without email
	// and profile nothing of them.
	v := o.authorize(o.owner, request(local, localRedirect, "scope", "openid unknown"))
	if v.Get("tenant") != "1" {
		t.Errorf("the redirect address lost its query: %v", v)
	}
	var small api.OAuthToken
	o.form("/token", exchangeOf(v.Get("code"), local, localRedirect)...).Into(&small)
	if c := claims(t, small.IDToken); small.RefreshToken != "" || c["email"] != nil || c["name"] != nil || small.Scope != "openid" {
		t.Errorf("%+v has %v", small, c)
	}
}

// TestCLILogin: the built-in client's tokens are logins, as unmodified clients
// expect, and end with the login that they began with.
func TestCLILogin(t *testing.T) {
	t.Parallel()
	o := newOAuth(t)
	o.sources.set("example.com", authority.ModeDeny) // no service of the domain
	out := o.tokens(o.owner, "apes-cli", cliRedirect)
	login := &authoritytest.Client{S: o.Server, Bearer: out.AccessToken}
	login.Get("/api/me").Want(200)
	if c := claims(t, out.AccessToken); c["aud"] != "apes-cli" || c["email"] != o.owner.Email || c["nonce"] != "the nonce" {
		t.Errorf("claims %v", c)
	}
	o.Clock.Advance(5 * time.Minute)
	login.Get("/api/me").Problem(401)
	var next api.OAuthToken
	o.refresh(out.RefreshToken).Into(&next)
	login.Bearer = next.AccessToken
	login.Get("/api/me").Want(200)
	// The family lasts no longer than the login.
	var list struct{ Data []api.ClientSession }
	login.Get("/api/me/sessions").Into(&list)
	if len(list.Data) != 1 || list.Data[0].ExpiresAt != o.Clock.Now().Add(8*time.Hour-5*time.Minute).UnixMilli() {
		t.Errorf("sessions %+v", list.Data)
	}
	// Logging out with what was refreshed ends the whole session.
	login.Post("/api/auth/logout", nil).Want(200)
	login.Get("/api/me").Problem(401)
	oauthError(t, o.refresh(next.RefreshToken), 400, "invalid_grant")

	// So does the end of the login itself.
	out = o.tokens(o.owner, "apes-cli", cliRedirect)
	o.owner.Post("/api/auth/logout", nil).Want(200)
	oauthError(t, o.refresh(out.RefreshToken), 400, "invalid_grant")
}

// TestAuthorizeRefuses: what is wrong with a request is told to the person, and
// nobody is sent anywhere; only where client and address are certain is an error
// sent there.
func TestAuthorizeRefuses(t *testing.T) {
	t.Parallel()
	o := newOAuth(t)
	for name, q := range map[string]url.Values{
		"no client":             request("", plansRedirect),
		"unknown client":        request("nothing", plansRedirect),
		"unknown service":       request("unknown.example.com", plansRedirect),
		"another's metadata":    request("liar.example.com", plansRedirect),
		"no redirect":           request(plans, ""),
		"no state":              request(plans, plansRedirect, "state", ""),
		"no challenge":          request(plans, plansRedirect, "code_challenge", ""),
		"plain PKCE":            request(plans, plansRedirect, "code_challenge_method", "plain"),
		"no PKCE method":        request(plans, plansRedirect, "code_challenge_method", ""),
		"short challenge":       request(plans, plansRedirect, "code_challenge", "abc"),
		"padded challenge":      request(plans, plansRedirect, "code_challenge", challengeOf(verifier)+"="),
		"authorization details": request(plans, plansRedirect, "authorization_details", "[]"),
		"empty details": func() url.Values {
			q := request(plans, plansRedirect)
			q["authorization_details"] = []string{""}
			return q
		}(),
		"two clients":   func() url.Values { q := request(plans, plansRedirect); q.Add("client_id", local); return q }(),
		"two redirects": func() url.Values { q := request(plans, plansRedirect); q.Add("redirect_uri", plansRedirect); return q }(),
		"two states":    func() url.Values { q := request(plans, plansRedirect); q.Add("state", "x"); return q }(),
		"long state":    request(plans, plansRedirect, "state", strings.Repeat("x", 2001)),
		"max_age":       request(plans, plansRedirect, "max_age", "-1"),
	} {
		a := o.owner.Get("/authorize?" + q.Encode())
		if p := a.Problem(400); a.Header.Get("Location") != "" || p.Detail == "" {
			t.Errorf("%s: %+v, location %q", name, p, a.Header.Get("Location"))
		}
	}
	for _, redirect := range []string{
		plansRedirect + "/", plansRedirect + "?", plansRedirect + "?x=1", plansRedirect + "#", "HTTPS://plans.example.com/callback", "https://plans.example.com:443/callback",
		"https://plans.example.com/./callback", "https://plans.example.com/callback%2e", "https://plans.example.com/x/../callback", "https://plans.example.com@evil.example/callback",
		"https://evil.example/callback", "https://plans.example.com.evil.example/callback", "https://plans.example.com\\@evil.example/callback", "//plans.example.com/callback",
		"https://plans.example.com/callback\n", " " + plansRedirect, "https://PLANS.example.com/callback", localRedirect, cliRedirect, "javascript:alert(1)", "",
		"http://plans.example.com/callback", "https://plans.example.com/callback/two/", "https://plans.example.com/Callback",
	} {
		q := request(plans, plansRedirect)
		q.Set("redirect_uri", redirect)
		a := o.owner.Get("/authorize?" + q.Encode())
		if a.Problem(400); a.Header.Get("Location") != "" {
			t.Errorf("redirect %q: sent to %q", redirect, a.Header.Get("Location"))
		}
	}
	// Addresses that a client may not have registered at all.
	for _, redirect := range o.sources.clients["bad.example.com"].RedirectURIs {
		o.owner.Get("/authorize?" + request("bad.example.com", redirect).Encode()).Problem(400)
	}
	for name, c := range map[string]struct {
		q    url.Values
		want string
	}{
		"implicit flow":  {request(plans, plansRedirect, "response_type", "token"), "unsupported_response_type"},
		"hybrid flow":    {request(plans, plansRedirect, "response_type", "code id_token"), "unsupported_response_type"},
		"no type":        {request(plans, plansRedirect, "response_type", ""), "unsupported_response_type"},
		"request object": {request(plans, plansRedirect, "request", "x.y.z"), "request_not_supported"},
		"by reference":   {request(plans, plansRedirect, "request_uri", "https://evil.example/"), "request_uri_not_supported"},
		"in a fragment":  {request(plans, plansRedirect, "response_mode", "fragment"), "invalid_request"},
		"none and login": {request(plans, plansRedirect, "prompt", "none login"), "invalid_request"},
		"somebody else":  {request(plans, plansRedirect, "login_hint", "other@example.com"), "login_required"},
		"log in anew":    {request(plans, plansRedirect, "prompt", "login"), "login_required"},
		"a delegation":   {request(plans, plansRedirect, "delegation_grant", "11111111-1111-4111-8111-111111111111"), "access_denied"},
	} {
		if v := o.authorize(o.owner, c.q); v.Get("error") != c.want || v.Get("code") != "" || v.Get("state") != "the state" || v.Get("iss") != o.URL {
			t.Errorf("%s: %v", name, v)
		}
	}
	// The hint is compared as people write it.
	if v := o.authorize(o.owner, request(plans, plansRedirect, "login_hint", "  OWNER@example.COM ")); v.Get("code") == "" {
		t.Errorf("the hint of the same person: %v", v)
	}
	o.Manager().Get("/authorize?" + request(plans, plansRedirect).Encode()).Problem(403)
	for _, method := range []string{"POST", "HEAD"} {
		if a := o.owner.Do(method, "/authorize?"+request(plans, plansRedirect).Encode(), nil); a.Status != 405 || a.Header.Get("Location") != "" {
			t.Errorf("%s: %d, %q", method, a.Status, a.Header.Get("Location"))
		}
	}
}

// TestStrangersAreSentToThePages: without a login the issuer sends people to the
// pages, asks no network, and gives nobody a code.
func TestStrangersAreSentToThePages(t *testing.T) {
	t.Parallel()
	o := newOAuth(t)
	before := o.sources.asked
	for _, client := range []string{plans, "unknown.example.com", "apes-cli"} {
		redirect := plansRedirect
		if client == "apes-cli" {
			redirect = cliRedirect
		}
		q := request(client, redirect).Encode()
		a := o.Stranger().Get("/authorize?" + q).Want(302)
		if got := a.Header.Get("Location"); got != o.Pages+"/authorize?"+q {
			t.Errorf("%s: sent to %q", client, got)
		}
	}
	if o.sources.asked != before {
		t.Error("a stranger made the authority ask the network")
	}
	o.Stranger().Get("/authorize?" + request("nothing", plansRedirect).Encode()).Problem(400)
	o.Stranger().Get("/authorize?" + request("apes-cli", plansRedirect).Encode()).Problem(400)
	o.Stranger().Do("GET", "/authorize?"+request(plans, plansRedirect).Encode(), nil, "Authorization", "Bearer nonsense").Problem(401)
}

func TestPolicy(t *testing.T) {
	t.Parallel()
	sources := publish()
	w := withPasskey(t, withServices(sources)...)
	w.addKey()
	bearer := func(q url.Values) url.Values {
		t.Helper()
		return answered(t, w.owner.Get("/authorize?"+q.Encode()).Want(302).Header.Get("Location"), q.Get("redirect_uri"))
	}
	page := func(q url.Values) authority.Authorization {
		t.Helper()
		out, err := w.s.Authority.Authorize(ctx, w.page, q)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	q := request(plans, plansRedirect)

	sources.set("example.com", authority.ModeDeny)
	if v := bearer(q); v.Get("error") != "access_denied" {
		t.Errorf("deny: %v", v)
	}
	if out := page(q); out.Denied == "" || out.Location != "" {
		t.Errorf("deny: %+v", out)
	}
	sources.set("example.com", "something new")
	if v := bearer(q); v.Get("error") != "access_denied" {
		t.Errorf("unknown mode: %v", v)
	}

	sources.set("example.com", authority.ModeAdmin)
	if out := page(q); out.Denied == "" {
		t.Errorf("not on the list: %+v", out)
	}
	w.owner.Post("/api/admin/allowed-clients", api.AllowedClient{Domain: "example.com", ClientID: plans}).Want(403)
	if err := w.s.Authority.AllowClient(ctx, w.page, "example.com", plans); err == nil {
		t.Error("a person put a service on the list")
	}
	w.s.Manager().Post("/api/admin/allowed-clients", api.AllowedClient{Domain: "Example.com", ClientID: plans}).Want(200)
	if v := bearer(q); v.Get("code") == "" {
		t.Errorf("on the list: %v", v)
	}
	if v := bearer(request(local, localRedirect)); v.Get("error") != "access_denied" {
		t.Errorf("another service: %v", v)
	}
	var list struct{ Data []api.AllowedClient }
	w.s.Manager().Get("/api/admin/allowed-clients?domain=example.com").Into(&list)
	if len(list.Data) != 1 || list.Data[0].ClientID != plans {
		t.Errorf("the list is %+v", list)
	}
	w.s.Manager().Do("DELETE", "/api/admin/allowed-clients/example.com/"+plans, nil).Want(200)
	if v := bearer(q); v.Get("error") != "access_denied" {
		t.Errorf("taken off the list: %v", v)
	}

	for _, mode := range []authority.Mode{authority.ModePerson, ""} {
		sources.set("example.com", mode)
		if v := bearer(q); v.Get("error") != "consent_required" {
			t.Errorf("%q, a bearer: %v", mode, v)
		}
		out := page(q)
		if out.Ask == "" {
			t.Fatalf("%q, a page: %+v", mode, out)
		}
		if v := answered(t, page(request(plans, plansRedirect, "prompt", "none")).Location, plansRedirect); v.Get("error") != "consent_required" {
			t.Errorf("prompt=none: %v", v)
		}
		// No, then yes.
		to, err := w.s.Authority.AnswerConsent(ctx, w.page, out.Ask, false)
		if v := answered(t, to, plansRedirect); err != nil || v.Get("error") != "access_denied" {
			t.Errorf("cancelled: %q, %v", to, err)
		}
		if _, err := w.s.Authority.AnswerConsent(ctx, w.page, out.Ask, true); err == nil {
			t.Error("a question was answered twice")
		}
		to, err = w.s.Authority.AnswerConsent(ctx, w.page, page(request(plans, plansRedirect, "scope", "openid email")).Ask, true)
		if v := answered(t, to, plansRedirect); err != nil || v.Get("code") == "" {
			t.Errorf("agreed: %q, %v", to, err)
		}
		// What was agreed to is not asked again; more than that is.
		if v := bearer(request(plans, plansRedirect, "scope", "email openid")); v.Get("code") == "" {
			t.Errorf("the same again: %v", v)
		}
		if v := bearer(q); v.Get("error") != "consent_required" {
			t.Errorf("more than was agreed to: %v", v)
		}
		var consents struct{ Data []api.ClientConsent }
		w.owner.Get("/api/account/consents").Into(&consents)
		if len(consents.Data) != 1 || consents.Data[0].ClientID != plans || consents.Data[0].Name != "Plans" {
			t.Errorf("the consents are %+v", consents)
		}
		w.agent.Do("DELETE", "/api/account/consents/"+plans, nil).Problem(404)
		if a := w.owner.Do("DELETE", "/api/account/consents/"+plans, nil).Want(200); string(a.Body) != "{}" {
			t.Errorf("withdrawn: %s", a.Body)
		}
		if out := page(q); out.Ask == "" {
			t.Errorf("withdrawn, and still %+v", out)
		}
	}

	// What is permitted without a question still needs the page's key: a cookie
	// alone gets nobody in anywhere.
	sources.set("example.com", authority.ModeOpen)
	cookieOnly := w.page
	cookieOnly.Proven = false
	silent, err := w.s.Authority.Authorize(ctx, cookieOnly, q)
	if err != nil || silent.Ask == "" || silent.Location != "" {
		t.Errorf("the cookie alone: %+v, %v", silent, err)
	}
	if _, err := w.s.Authority.AnswerConsent(ctx, cookieOnly, silent.Ask, true); err == nil {
		t.Error("the cookie alone went on")
	}
	to, err := w.s.Authority.AnswerConsent(ctx, w.page, silent.Ask, true)
	if v := answered(t, to, plansRedirect); err != nil || v.Get("code") == "" {
		t.Errorf("with the key: %q, %v", to, err)
	}
	if kept, err := w.s.Authority.Consents(ctx, w.page); err != nil || len(kept) != 0 {
		t.Errorf("nobody agreed, and kept is %+v, %v", kept, err)
	}
	silent, err = w.s.Authority.Authorize(ctx, cookieOnly, q)
	if err != nil {
		t.Fatal(err)
	}
	sources.set("example.com", authority.ModePerson)
	if to, err = w.s.Authority.AnswerConsent(ctx, w.page, silent.Ask, true); err != nil || answered(t, to, plansRedirect).Get("error") != "consent_required" {
		t.Errorf("what is asked meanwhile: %q, %v", to, err)
	}

	// A yes needs the page's proof, the same session, and a policy that still
	// permits it.
	id := page(q).Ask
	unproven := w.page
	unproven.Proven = false
	if _, err := w.s.Authority.AnswerConsent(ctx, unproven, id, true); err == nil {
		t.Error("the cookie alone agreed")
	}
	cookie, err := w.login()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.s.Authority.AnswerConsent(ctx, pageOf(t, w.s, cookie), id, true); err == nil {
		t.Error("another session agreed")
	}
	sources.set("example.com", authority.ModeDeny)
	to, err = w.s.Authority.AnswerConsent(ctx, w.page, id, true)
	if v := answered(t, to, plansRedirect); err != nil || v.Get("error") != "access_denied" {
		t.Errorf("agreed to what is forbidden meanwhile: %q, %v", to, err)
	}

	// Nobody can tell: nothing is given.
	sources.set("example.com", authority.ModeOpen)
	sources.mu.Lock()
	sources.down = true
	sources.mu.Unlock()
	w.owner.Get("/authorize?" + q.Encode()).Problem(502)
	w.owner.Get("/authorize?" + request(local, localRedirect).Encode()).Problem(502)

	// The command line is asked about each time, whatever was said before, since
	// anything on the machine could be listening.
	for range 2 {
		out := page(request("apes-cli", cliRedirect))
		if out.Ask == "" {
			t.Fatalf("the command line: %+v", out)
		}
		to, err := w.s.Authority.AnswerConsent(ctx, w.page, out.Ask, true)
		if v := answered(t, to, cliRedirect); err != nil || v.Get("code") == "" {
			t.Errorf("the command line: %q, %v", to, err)
		}
	}
}

// TestLogInAgain: what a service wants of the login is kept, and no loop comes of
// it.
func TestLogInAgain(t *testing.T) {
	t.Parallel()
	sources := publish()
	w := withPasskey(t, withServices(sources)...)
	for _, pairs := range [][]string{{"prompt", "login"}, {"prompt", "select_account"}, {"max_age", "0"}, {"prompt", "login consent"}} {
		out, err := w.s.Authority.Authorize(ctx, w.page, request(plans, plansRedirect, pairs...))
		if err != nil || !out.SignIn || out.Location != "" {
			t.Fatalf("%v: %+v, %v", pairs, out, err)
		}
		again, err := w.s.Authority.Authorize(ctx, w.page, out.Again)
		if err != nil || again.SignIn {
			t.Errorf("%v, after a login: %+v, %v", pairs, again, err)
		}
		if strings.Contains(pairs[1], "consent") && again.Ask == "" {
			t.Errorf("%v: nobody is asked: %+v", pairs, again)
		}
	}
	q := request(plans, plansRedirect, "max_age", "600")
	if out, err := w.s.Authority.Authorize(ctx, w.page, q); err != nil || out.SignIn {
		t.Errorf("a fresh login: %+v, %v", out, err)
	}
	w.s.Clock.Advance(11 * time.Minute)
	if out, err := w.s.Authority.Authorize(ctx, w.page, q); err != nil || !out.SignIn {
		t.Errorf("an old login: %+v, %v", out, err)
	}
	if out, err := w.s.Authority.Authorize(ctx, w.page, request(plans, plansRedirect, "login_hint", "other@example.com")); err != nil || !out.SignIn || out.Hint != "other@example.com" {
		t.Errorf("somebody else: %+v, %v", out, err)
	}
}

func TestCodeAttacks(t *testing.T) {
	t.Parallel()
	o := newOAuth(t)
	good := func(code string) []string { return exchangeOf(code, plans, plansRedirect) }
	with := func(code, name, value string) []string {
		args := good(code)
		for i := 0; i < len(args); i += 2 {
			if args[i] == name {
				args[i+1] = value
			}
		}
		return args
	}
	for name, c := range map[string]struct {
		parameter, value, want string
	}{
		"another verifier":       {"code_verifier", strings.Repeat("x", 43), "invalid_grant"},
		"the challenge itself":   {"code_verifier", challengeOf(verifier), "invalid_grant"},
		"no verifier":            {"code_verifier", "", "invalid_request"},
		"a short verifier":       {"code_verifier", "short", "invalid_request"},
		"another client":         {"client_id", local, "invalid_grant"},
		"no client":              {"client_id", "", "invalid_request"},
		"another redirect":       {"redirect_uri", plansRedirect + "/two", "invalid_grant"},
		"no redirect":            {"redirect_uri", "", "invalid_request"},
		"a code of nobody":       {"code", "11111111-1111-4111-8111-111111111111", "invalid_grant"},
		"no grant type":          {"grant_type", "", "invalid_request"},
		"a grant type of others": {"grant_type", "password", "unsupported_grant_type"},
	} {
		code := o.code(o.owner, plans, plansRedirect)
		a := o.form("/token", with(code, c.parameter, c.value)...)
		if a.Status != 400 || !strings.Contains(string(a.Body), `"`+c.want+`"`) {
			t.Errorf("%s: %d %s, want %s", name, a.Status, a.Body, c.want)
		}
		// A code that was shown in vain is spent; one that was not shown is not.
		a = o.form("/token", good(code)...)
		if spent := c.want == "invalid_grant" && c.parameter != "code"; spent != (a.Status == 400) {
			t.Errorf("%s: then %d %s", name, a.Status, a.Body)
		}
	}
	code := o.code(o.owner, plans, plansRedirect)
	o.Clock.Advance(time.Minute)
	oauthError(t, o.form("/token", good(code)...), 400, "invalid_grant")

	// A replay ends what the code gave, also when it comes late and with
	// everything else wrong.
	code = o.code(o.owner, plans, plansRedirect)
	var out api.OAuthToken
	o.form("/token", good(code)...).Into(&out)
	o.userinfo(out.AccessToken).Want(200)
	var next api.OAuthToken
	o.refresh(out.RefreshToken).Into(&next)
	o.Clock.Advance(2 * time.Minute)
	oauthError(t, o.form("/token", with(code, "code_verifier", strings.Repeat("x", 43))...), 400, "invalid_grant")
	oauthError(t, o.userinfo(next.AccessToken), 401, "invalid_token")
	oauthError(t, o.refresh(next.RefreshToken), 400, "invalid_grant")
	if !o.HasRecord("oauth-end", "its code was shown again", plans) {
		t.Error("the log does not tell of the replay")
	}
}

// TestCodeRace: of many who show a code at once one gets tokens, and all that it
// gets has ended.
func TestCodeRace(t *testing.T) {
	t.Parallel()
	o := newOAuth(t)
	code := o.code(o.owner, plans, plansRedirect)
	var won atomic.Int64
	var refresh, access atomic.Value
	race(t, 32, func() error {
		a, err := o.tryForm("/token", exchangeOf(code, plans, plansRedirect)...)
		if err != nil || a.Status != 200 {
			return err
		}
		var out api.OAuthToken
		if err := json.Unmarshal(a.Body, &out); err != nil {
			return err
		}
		won.Add(1)
		refresh.Store(out.RefreshToken)
		access.Store(out.AccessToken)
		return nil
	})
	if won.Load() != 1 {
		t.Fatalf("%d got tokens", won.Load())
	}
	oauthError(t, o.refresh(refresh.Load().(string)), 400, "invalid_grant")
	oauthError(t, o.userinfo(access.Load().(string)), 401, "invalid_token")
}

func race(t *testing.T, n int, do func() error) {
	t.Helper()
	start := make(chan struct{})
	var all sync.WaitGroup
	for range n {
		all.Add(1)
		go func() {
			defer all.Done()
			<-start
			if err := do(); err != nil {
				t.Error(err)
			}
		}()
	}
	close(start)
	all.Wait()
}

func TestRefreshAttacks(t *testing.T) {
	t.Parallel()
	o := newOAuth(t)
	first := o.tokens(o.owner, plans, plansRedirect)
	// Another client is refused, and nothing is rotated by that.
	oauthError(t, o.refresh(first.RefreshToken, "client_id", local), 400, "invalid_grant")
	oauthError(t, o.refresh(first.RefreshToken, "scope", "openid admin"), 400, "invalid_scope")
	var second, narrow api.OAuthToken
	o.refresh(first.RefreshToken, "client_id", plans).Into(&second)
	o.refresh(second.RefreshToken, "scope", "openid").Into(&narrow)
	if c := claims(t, narrow.IDToken); c["email"] != nil || narrow.Scope != "openid" {
		t.Errorf("narrowed: %v", c)
	}
	for name, text := range map[string]string{
		"nothing": strings.Repeat("A", 64), "short": "abc", "padded": narrow.RefreshToken + "=", "another alphabet": strings.Repeat("+", 64),
		"an access token": narrow.AccessToken,
	} {
		if a := o.refresh(text); a.Status != 400 {
			t.Errorf("%s: %d %s", name, a.Status, a.Body)
		}
	}
	oauthError(t, o.refresh(""), 400, "invalid_request")

	// A used token, of whichever age, ends the family and what it gave.
	other := o.tokens(o.owner, plans, plansRedirect)
	oauthError(t, o.refresh(first.RefreshToken), 400, "invalid_grant")
	oauthError(t, o.refresh(narrow.RefreshToken), 400, "invalid_grant")
	oauthError(t, o.userinfo(narrow.AccessToken), 401, "invalid_token")
	o.userinfo(other.AccessToken).Want(200) // another session of the same person stays
	if !o.HasRecord("oauth-end", "a used refresh token was shown") {
		t.Error("the log does not tell of the theft")
	}
}

// TestRefreshRace: a token that many show at once is spent once, and its family
// has ended: one of them was a thief.
func TestRefreshRace(t *testing.T) {
	t.Parallel()
	o := newOAuth(t)
	first := o.tokens(o.owner, plans, plansRedirect)
	var won atomic.Int64
	var last atomic.Value
	race(t, 32, func() error {
		a, err := o.tryForm("/token", "grant_type", "refresh_token", "refresh_token", first.RefreshToken)
		if err != nil || a.Status != 200 {
			return err
		}
		var out api.OAuthToken
		if err := json.Unmarshal(a.Body, &out); err != nil {
			return err
		}
		won.Add(1)
		last.Store(out.RefreshToken)
		return nil
	})
	if won.Load() != 1 {
		t.Fatalf("%d got tokens", won.Load())
	}
	oauthError(t, o.refresh(last.Load().(string)), 400, "invalid_grant")
}

func TestFamilyEnds(t *testing.T) {
	t.Parallel()
	published := publish()
	w := withPasskey(t, withServices(published)...)
	o := &oauthScene{Server: w.s, t: t}
	byPage := func() api.OAuthToken {
		t.Helper()
		out, err := w.s.Authority.Authorize(ctx, w.page, request(plans, plansRedirect))
		if err != nil {
			t.Fatal(err)
		}
		var tokens api.OAuthToken
		o.form("/token", exchangeOf(answered(t, out.Location, plansRedirect).Get("code"), plans, plansRedirect)...).Into(&tokens)
		return tokens
	}
	// While the domain denies all services; nothing is spent meanwhile.
	tokens := byPage()
	published.set("example.com", authority.ModeDeny)
	oauthError(t, o.refresh(tokens.RefreshToken), 400, "invalid_grant")
	published.set("example.com", authority.ModeOpen)
	o.refresh(tokens.RefreshToken).Want(200)

	// 30 days from its beginning, however often it was refreshed.
	tokens = byPage()
	for range 29 {
		o.Clock.Advance(24 * time.Hour)
		var next api.OAuthToken
		o.refresh(tokens.RefreshToken).Into(&next)
		tokens = next
	}
	o.Clock.Advance(24 * time.Hour)
	oauthError(t, o.refresh(tokens.RefreshToken), 400, "invalid_grant")
}

// TestCutOff: who is switched off, removed or stopped is cut off at every step.
func TestCutOff(t *testing.T) {
	t.Parallel()
	for name, cut := range map[string]func(*oauthScene, *authoritytest.Principal){
		"switched off": func(o *oauthScene, p *authoritytest.Principal) {
			o.Manager().Do("PATCH", "/api/my-agents/"+url.PathEscape(p.Email), map[string]bool{"isActive": false}).Want(200)
		},
		"switched off and on": func(o *oauthScene, p *authoritytest.Principal) {
			o.Manager().Do("PATCH", "/api/my-agents/"+url.PathEscape(p.Email), map[string]bool{"isActive": false}).Want(200)
			if p.Owner == nil {
				o.Manager().Do("PATCH", "/api/my-agents/"+url.PathEscape(p.Email), map[string]bool{"isActive": true}).Want(200)
			}
		},
		"removed": func(o *oauthScene, p *authoritytest.Principal) {
			o.Manager().Do("DELETE", "/api/admin/users/"+url.PathEscape(p.Email), nil).Want(200)
		},
		"all stopped": func(o *oauthScene, p *authoritytest.Principal) {
			o.owner.Post("/api/panic", map[string]string{"reason": "test"}).Want(200)
		},
	} {
		for _, kind := range []string{"person", "agent", "agent of the person"} {
			if name == "all stopped" && kind != "agent" {
				continue // it stops agents only
			}
			if name == "switched off and on" && kind == "agent of the person" {
				continue // with its owner an agent is back, with all its logins
			}
			t.Run(name+"/"+kind, func(t *testing.T) {
				t.Parallel()
				o := newOAuth(t)
				o.t = t
				u, err := url.Parse(o.URL)
				if err != nil {
					t.Fatal(err)
				}
				o.sources.set(u.Host, authority.ModeOpen)
				other := o.Person("second@example.com")
				who, target := other, other
				if kind != "person" {
					owner := o.owner
					if kind == "agent of the person" {
						owner = other
					}
					who = o.Agent(owner, "cut")
					if target = who; kind == "agent of the person" {
						target = other
					}
				}
				code := o.code(who, plans, plansRedirect)
				tokens := o.tokens(who, plans, plansRedirect)
				login := o.tokens(who, "apes-cli", cliRedirect)
				assertion := o.assertion(who, nil)
				cut(o, target)
				if a := o.form("/token", exchangeOf(code, plans, plansRedirect)...); a.Status != 403 && a.Status != 400 {
					t.Errorf("the code gives %d %s", a.Status, a.Body)
				}
				for _, text := range []string{tokens.RefreshToken, login.RefreshToken} {
					if a := o.refresh(text); a.Status != 403 && a.Status != 400 {
						t.Errorf("the refresh token gives %d %s", a.Status, a.Body)
					}
				}
				for _, text := range []string{tokens.AccessToken, login.AccessToken, who.Bearer} {
					oauthError(t, o.userinfo(text), 401, "invalid_token")
					if a := (&authoritytest.Client{S: o.Server, Bearer: text}).Get("/authorize?" + request(plans, plansRedirect).Encode()); a.Status != 401 && a.Status != 403 {
						t.Errorf("a new code: %d %s", a.Status, a.Body)
					}
				}
				if a := o.credentials(assertion); a.Status != 401 && a.Status != 403 && name != "switched off and on" {
					t.Errorf("the assertion gives %d %s", a.Status, a.Body)
				}
			})
		}
	}
}

// TestPausedAgent: an agent that is paused shows itself nowhere.
func TestPausedAgent(t *testing.T) {
	t.Parallel()
	o := newOAuth(t)
	u, err := url.Parse(o.URL)
	if err != nil {
		t.Fatal(err)
	}
	o.sources.set(u.Host, authority.ModeOpen)
	code := o.code(o.agent, plans, plansRedirect)
	tokens := o.tokens(o.agent, plans, plansRedirect)
	if c := claims(t, tokens.IDToken); c["act"] != "agent" || c["approver"] != o.owner.Email {
		t.Errorf("claims %v", c)
	}
	o.owner.Do("PATCH", "/api/my-agents/"+url.PathEscape(o.agent.Email), map[string]bool{"paused": true}).Want(200)
	oauthError(t, o.userinfo(tokens.AccessToken), 401, "invalid_token")
	oauthError(t, o.form("/token", exchangeOf(code, plans, plansRedirect)...), 403, "invalid_grant")
	oauthError(t, o.refresh(tokens.RefreshToken), 403, "invalid_grant")
	oauthError(t, o.credentials(o.assertion(o.agent, nil)), 403, "invalid_grant")
	o.agent.Get("/authorize?" + request(plans, plansRedirect).Encode()).Problem(403)
}

// assertion is a client assertion of p, as the client in use makes it; change
// alters its claims.
func (o *oauthScene) assertion(p *authoritytest.Principal, change func(map[string]any)) string {
	o.t.Helper()
	return signAssertion(o.t, privateKey(o.t, p.Key.Path), o.assertionClaims(p, change))
}

func (o *oauthScene) assertionClaims(p *authoritytest.Principal, change func(map[string]any)) map[string]any {
	now := o.Clock.Now().Unix()
	jti := make([]byte, 16)
	rand.Read(jti)
	c := map[string]any{
		"iss": p.Email, "sub": p.Email, "aud": o.URL + "/token", "iat": now, "exp": now + 300, "jti": base64.RawURLEncoding.EncodeToString(jti),
	}
	if change != nil {
		change(c)
	}
	return c
}

func signAssertion(t *testing.T, key ed25519.PrivateKey, claims any) string {
	t.Helper()
	raw, err := token.Sign(token.Key{ID: "a key", Private: key}, claims)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func privateKey(t *testing.T, path string) ed25519.PrivateKey {
	t.Helper()
	pem, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ssh.ParseRawPrivateKey(pem)
	if err != nil {
		t.Fatal(err)
	}
	return *key.(*ed25519.PrivateKey)
}

func (o *oauthScene) credentials(assertion string, more ...string) authoritytest.Answer {
	o.t.Helper()
	return o.form("/token", append([]string{
		"grant_type", "client_credentials", "client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer", "client_assertion", assertion}, more...)...)
}

// signed signs claims as the authority does.
func (o *oauthScene) signed(claims any) string {
	o.t.Helper()
	raw, err := o.Authority.Sign(claims)
	if err != nil {
		o.t.Fatal(err)
	}
	return raw
}

func TestClientCredentials(t *testing.T) {
	t.Parallel()
	o := newOAuth(t)
	var out api.OAuthToken
	assertion := o.assertion(o.agent, nil)
	o.credentials(assertion).Into(&out)
	c := claims(t, out.AccessToken)
	if exp := int64(c["exp"].(float64)); exp-o.Clock.Now().Unix() != out.ExpiresIn || out.ExpiresIn != 8*3600 || out.RefreshToken != "" {
		t.Errorf("exp is %d, the answer %+v", exp, out)
	}
	(&authoritytest.Client{S: o.Server, Bearer: out.AccessToken}).Get("/api/me").Want(200)
	oauthError(t, o.credentials(assertion), 401, "invalid_client") // once

	stranger := o.NewKey("stranger")
	for name, raw := range map[string]string{
		"the owner as subject":  o.assertion(o.agent, func(c map[string]any) { c["sub"] = o.owner.Email }),
		"the owner as issuer":   o.assertion(o.agent, func(c map[string]any) { c["iss"] = o.owner.Email }),
		"the owner as both":     o.assertion(o.agent, func(c map[string]any) { c["iss"], c["sub"] = o.owner.Email, o.owner.Email }),
		"nobody":                o.assertion(o.agent, func(c map[string]any) { c["iss"], c["sub"] = "x@example.com", "x@example.com" }),
		"a stranger's key":      signAssertion(t, privateKey(t, stranger.Path), o.assertionClaims(o.agent, nil)),
		"no jti":                o.assertion(o.agent, func(c map[string]any) { delete(c, "jti") }),
		"another audience":      o.assertion(o.agent, func(c map[string]any) { c["aud"] = "https://other.example/token" }),
		"one audience too many": o.assertion(o.agent, func(c map[string]any) { c["aud"] = []string{o.URL + "/token", "https://other.example"} }),
		"no audience":           o.assertion(o.agent, func(c map[string]any) { delete(c, "aud") }),
		"over":                  o.assertion(o.agent, func(c map[string]any) { c["exp"] = o.Clock.Now().Unix() - 5 }),
		"no end":                o.assertion(o.agent, func(c map[string]any) { delete(c, "exp") }),
		"too long":              o.assertion(o.agent, func(c map[string]any) { c["exp"] = o.Clock.Now().Unix() + 601 }),
		"from tomorrow":         o.assertion(o.agent, func(c map[string]any) { c["nbf"] = o.Clock.Now().Unix() + 6 }),
		"made later":            o.assertion(o.agent, func(c map[string]any) { c["iat"] = o.Clock.Now().Unix() + 6 }),
		"a time that is text":   o.assertion(o.agent, func(c map[string]any) { c["exp"] = "1" }),
		"a huge time":           o.assertion(o.agent, func(c map[string]any) { c["exp"] = 1e300 }),
		"our own token":         o.agent.Bearer,
		"no signature":          "eyJhbGciOiJub25lIn0." + strings.Split(assertion, ".")[1] + ".",
		"nonsense":              "x",
	} {
		a := o.credentials(raw)
		if a.Status != 401 || !strings.Contains(string(a.Body), "invalid_client") {
			t.Errorf("%s: %d %s", name, a.Status, a.Body)
		}
		if strings.Contains(string(a.Body), "example.com") {
			t.Errorf("%s: the answer names somebody: %s", name, a.Body)
		}
	}
	// Within the skew, by the issuer's own name, and by any key of the principal.
	o.credentials(o.assertion(o.agent, func(c map[string]any) { c["exp"], c["iat"] = o.Clock.Now().Unix()-4, o.Clock.Now().Unix()+5 })).Want(200)
	o.credentials(o.assertion(o.agent, func(c map[string]any) { c["aud"] = []string{o.URL} })).Want(200)
	second := o.NewKey("second")
	o.owner.Change(api.TrustKeyAdd, map[string]string{"public_key": second.Line})
	o.credentials(signAssertion(t, privateKey(t, second.Path), o.assertionClaims(o.owner, nil))).Want(200)
	o.credentials(o.assertion(o.owner, nil)).Want(200)

	oauthError(t, o.credentials(o.assertion(o.agent, nil), "client_id", o.owner.Email), 401, "invalid_client")
	oauthError(t, o.form("/token", "grant_type", "client_credentials"), 401, "invalid_client")
	oauthError(t, o.form("/token", append(exchangeOf("x", plans, plansRedirect), "client_assertion", assertion)...), 401, "invalid_client")
	// No such delegation; and this authority is never an audience.
	oauthError(t, o.credentials(o.assertion(o.agent, nil), "delegation_grant", "x", "audience", plans), 400, "invalid_grant")
	oauthError(t, o.credentials(o.assertion(o.agent, nil), "delegation_grant", "x"), 400, "invalid_request")
	oauthError(t, o.credentials(o.assertion(o.agent, nil), "audience", plans), 400, "invalid_request")
	for _, ours := range []string{"apes-cli", "*", o.URL, o.URL + "/", o.URL + "?x", strings.TrimPrefix(o.URL, "http://"), strings.ToUpper(o.URL)} {
		oauthError(t, o.credentials(o.assertion(o.agent, nil), "delegation_grant", "x", "audience", ours), 400, "invalid_target")
	}
}

// TestDelegatedTokens: whoever was delegated to is at that service in the
// delegator's place, by assertion and by code, once where it is for once.
func TestDelegatedTokens(t *testing.T) {
	t.Parallel()
	o := newOAuth(t)
	other := o.Agent(o.owner, "other")
	fresh := func() string { return delegate(t, o.owner, toPlans(o.agent)).ID }

	id := fresh()
	oauthError(t, o.credentials(o.assertion(other, nil), "delegation_grant", id, "audience", plans), 400, "invalid_grant")
	oauthError(t, o.credentials(o.assertion(o.owner, nil), "delegation_grant", id, "audience", plans), 400, "invalid_grant")
	oauthError(t, o.credentials(o.assertion(o.agent, nil), "delegation_grant", id, "audience", "other.example.com"), 400, "invalid_grant")
	// What was refused has spent nothing.
	var out api.OAuthToken
	o.credentials(o.assertion(o.agent, nil), "delegation_grant", id, "audience", plans).Into(&out)
	good := func(raw string) {
		t.Helper()
		c := claims(t, raw)
		act, _ := c["act"].(map[string]any)
		scope, _ := c["scope"].([]any)
		if c["sub"] != o.owner.Email || act["sub"] != o.agent.Email || c["aud"] != plans || c["delegation_grant"] != id || c["delegate"] != o.agent.Email || len(scope) != 2 || c["email"] != nil {
			t.Errorf("claims %v", c)
		}
		if life := c["exp"].(float64) - c["iat"].(float64); life != 300 {
			t.Errorf("it lives for %v s", life)
		}
		oauthError(t, o.userinfo(raw), 401, "invalid_token")
		(&authoritytest.Client{S: o.Server, Bearer: raw}).Get("/api/grants").Problem(401)
	}
	good(out.AccessToken)
	oauthError(t, o.credentials(o.assertion(o.agent, nil), "delegation_grant", id, "audience", plans), 400, "invalid_grant")

	// By code: the policy is that of the delegator's domain, and nothing renews it.
	id = fresh()
	q := request(plans, plansRedirect, "delegation_grant", id)
	o.sources.set("example.com", authority.ModePerson)
	if v := o.authorize(o.agent, q); v.Get("error") != "access_denied" {
		t.Errorf("the delegator was not asked: %v", v)
	}
	o.sources.set("example.com", authority.ModeOpen)
	if v := o.authorize(other, q); v.Get("error") != "access_denied" {
		t.Errorf("somebody else's delegation: %v", v)
	}
	if v := o.authorize(o.agent, request("apes-cli", cliRedirect, "delegation_grant", id)); v.Get("error") != "access_denied" {
		t.Errorf("a login here in another's name: %v", v)
	}
	code := o.authorize(o.agent, q).Get("code")
	o.form("/token", exchangeOf(code, plans, plansRedirect)...).Into(&out)
	if good(out.IDToken); out.RefreshToken != "" {
		t.Error("a delegation is renewed")
	}
	if v := o.authorize(o.agent, q); v.Get("error") != "access_denied" {
		t.Errorf("used twice: %v", v)
	}
	if !o.HasRecord("oauth", "delegation.used", id, o.agent.Email) {
		t.Error("the use is not on record")
	}

	// Taken back, or its delegate stopped, between code and token.
	always := toPlans(o.agent)
	always["grant_type"] = "always"
	for _, cut := range []struct {
		name   string
		do     func()
		status int
	}{
		{"revoked", func() { o.owner.Do("DELETE", delegationPath(id), nil).Want(200) }, 400},
		{"the delegate paused", func() {
			o.owner.Do("PATCH", "/api/my-agents/"+url.PathEscape(o.agent.Email), map[string]bool{"paused": true}).Want(200)
		}, 403},
	} {
		id = delegate(t, o.owner, always).ID
		code = o.authorize(o.agent, request(plans, plansRedirect, "delegation_grant", id)).Get("code")
		cut.do()
		if a := o.form("/token", exchangeOf(code, plans, plansRedirect)...); a.Status != cut.status {
			t.Errorf("%s: %d %s", cut.name, a.Status, a.Body)
		}
	}
}

// TestDelegationRace: one for a single use is used once, also by many at once.
func TestDelegationRace(t *testing.T) {
	t.Parallel()
	o := newOAuth(t)
	id := delegate(t, o.owner, toPlans(o.agent)).ID
	assertions := make(chan string, 16)
	for range cap(assertions) {
		assertions <- o.assertion(o.agent, nil)
	}
	var won atomic.Int64
	race(t, cap(assertions), func() error {
		a, err := o.tryForm("/token", "grant_type", "client_credentials", "client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
			"client_assertion", <-assertions, "delegation_grant", id, "audience", plans)
		if err == nil && a.Status == 200 {
			won.Add(1)
		}
		return err
	})
	if won.Load() != 1 {
		t.Errorf("%d used it", won.Load())
	}
}

// TestAssertionRace: a name is good once, also for many at once.
func TestAssertionRace(t *testing.T) {
	t.Parallel()
	o := newOAuth(t)
	assertion := o.assertion(o.agent, nil)
	var won atomic.Int64
	race(t, 32, func() error {
		a, err := o.tryForm("/token", "grant_type", "client_credentials", "client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer", "client_assertion", assertion)
		if err == nil && a.Status == 200 {
			won.Add(1)
		}
		return err
	})
	if won.Load() != 1 {
		t.Errorf("%d logged in with one assertion", won.Load())
	}
}

func TestRevoke(t *testing.T) {
	t.Parallel()
	o := newOAuth(t)
	oauthError(t, o.form("/revoke"), 400, "invalid_request")
	revoke := func(pairs ...string) {
		t.Helper()
		if a := o.form("/revoke", pairs...).Want(200); string(a.Body) != `{"status":"ok"}` {
			t.Errorf("%s", a.Body)
		}
	}
	revoke("token", "nonsense")
	revoke("token", strings.Repeat("A", 64), "token_type_hint", "refresh_token")
	tokens := o.tokens(o.owner, plans, plansRedirect)
	// Another client's name changes nothing.
	revoke("token", tokens.RefreshToken, "client_id", local)
	revoke("token", tokens.AccessToken, "client_id", local)
	o.userinfo(tokens.AccessToken).Want(200)
	// An access token alone, then the family.
	revoke("token", tokens.AccessToken, "client_id", plans)
	oauthError(t, o.userinfo(tokens.AccessToken), 401, "invalid_token")
	var next api.OAuthToken
	o.refresh(tokens.RefreshToken).Into(&next)
	revoke("token", next.RefreshToken, "token_type_hint", "access_token")
	oauthError(t, o.userinfo(next.AccessToken), 401, "invalid_token")
	oauthError(t, o.refresh(next.RefreshToken), 400, "invalid_grant")
	revoke("token", next.RefreshToken)
	// A login by key can be given back here, too.
	revoke("token", o.agent.Bearer)
	o.agent.Get("/api/me").Problem(401)
}

// TestTokenKinds shows each kind of token at each kind of address.
func TestTokenKinds(t *testing.T) {
	t.Parallel()
	o := newOAuth(t)
	g := o.agent.Ask("ls")
	o.owner.Approve(g.ID, grant.Always, 0)
	service := o.tokens(o.owner, plans, plansRedirect)
	now := o.Clock.Now().Unix()
	delegatedTo := func(audience string) string {
		return o.signed(token.Delegated{
			Issuer: o.URL, Subject: o.owner.Email, Audience: audience, Act: token.Actor{Subject: o.agent.Email}, IssuedAt: now, Expires: now + 300,
			ID: claims(t, o.owner.Bearer)["jti"].(string), Use: token.UseDelegated, Delegation: g.ID, Delegate: o.agent.Email, Scope: []string{},
		})
	}
	// Signed by the authority's own key, as a token of a forgetful version would be.
	forged := func(change func(map[string]any)) string {
		c := claims(t, o.owner.Bearer)
		change(c)
		return o.signed(c)
	}
	for name, c := range map[string]struct {
		raw                       string
		manage, userinfo, consume bool
	}{
		"a login by key":              {raw: o.owner.Bearer, manage: true, userinfo: true},
		"a login by code":             {raw: o.tokens(o.owner, "apes-cli", cliRedirect).AccessToken, manage: true, userinfo: true},
		"a service's token":           {raw: service.AccessToken, userinfo: true},
		"a grant token":               {raw: o.agent.Token(g.ID), consume: true},
		"a refresh token":             {raw: service.RefreshToken},
		"a delegated token":           {raw: delegatedTo(plans)},
		"one that names us":           {raw: delegatedTo("apes-cli")},
		"a client assertion":          {raw: o.assertion(o.owner, nil)},
		"a login with an act":         {raw: forged(func(c map[string]any) { c["act"] = map[string]string{"sub": o.agent.Email} })},
		"a login for a service":       {raw: forged(func(c map[string]any) { c["aud"] = plans })},
		"a login for two":             {raw: forged(func(c map[string]any) { c["aud"] = []string{"apes-cli", plans} })},
		"an identity that names us":   {raw: forged(func(c map[string]any) { c["vogt_use"] = "identity" })},
		"a delegation without marker": {raw: forged(func(c map[string]any) { delete(c, "vogt_use"); c["act"] = map[string]string{"sub": "x"} })},
		"a login without marker":      {raw: forged(func(c map[string]any) { delete(c, "vogt_use") })},
		"a grant without marker":      {raw: forged(func(c map[string]any) { delete(c, "vogt_use"); c["grant_id"] = g.ID })},
		"of another issuer":           {raw: forged(func(c map[string]any) { c["iss"] = "https://other.example" })},
	} {
		client := &authoritytest.Client{S: o.Server, Bearer: c.raw}
		for path, permitted := range map[string]bool{
			"GET /api/me": c.manage, "GET /api/grants": c.manage, "GET /api/my-agents": c.manage, "GET /api/me/sessions": c.manage, "GET /api/account/consents": c.manage,
			"GET /api/audit/records": c.manage, "GET /api/standing-grants": c.manage, "GET /userinfo": c.userinfo,
			"GET /authorize?" + request(plans, plansRedirect).Encode(): c.manage,
		} {
			method, address, _ := strings.Cut(path, " ")
			if a := client.Do(method, address, nil); (a.Status < 400) != permitted || !permitted && a.Status != 401 {
				t.Errorf("%s at %s: %d %.200s", name, path, a.Status, a.Body)
			}
		}
		// What changes or decides something, where a refusal must come from the token.
		for _, path := range []string{"/api/grants/" + g.ID + "/approve", "/api/grants/" + g.ID + "/deny", "/api/grants/" + g.ID + "/token", "/api/panic", "/api/enroll", "/api/grants/batch"} {
			if c.manage {
				break
			}
			if a := client.Post(path, map[string]string{}); a.Status != 401 {
				t.Errorf("%s at %s: %d %.200s", name, path, a.Status, a.Body)
			}
		}
		if a := o.Consume(g.ID, c.raw); (a.Status == 200) != c.consume {
			t.Errorf("%s is consumed: %d %s", name, a.Status, a.Body)
		}
		if a := o.credentials(c.raw); (a.Status == 200) != (name == "a client assertion") {
			t.Errorf("%s as an assertion: %d %s", name, a.Status, a.Body)
		}
		if a := o.form("/token", exchangeOf(c.raw, plans, plansRedirect)...); a.Status == 200 {
			t.Errorf("%s as a code: %s", name, a.Body)
		}
	}
	o.refresh(service.RefreshToken).Want(200)
}

// TestOAuthInAnotherEpoch: what was given before a restore is over.
func TestOAuthInAnotherEpoch(t *testing.T) {
	t.Parallel()
	w := withPasskey(t, withServices(publish())...)
	o := &oauthScene{Server: w.s, t: t}
	code := func() string {
		out, err := w.s.Authority.Authorize(ctx, w.page, request(plans, plansRedirect))
		if err != nil {
			t.Fatal(err)
		}
		return answered(t, out.Location, plansRedirect).Get("code")
	}
	var tokens api.OAuthToken
	o.form("/token", exchangeOf(code(), plans, plansRedirect)...).Into(&tokens)
	waiting := code()
	backup := o.Backup()
	for range 3 {
		code() // the log grows
	}
	newer, err := o.Authority.LatestCheckpoint(ctx)
	if err != nil {
		t.Fatal(err)
	}
	o.Restore(backup)
	if began, err := o.Authority.NoteCheckpoint(ctx, newer); err != nil || !began {
		t.Fatalf("no epoch began: %v", err)
	}
	oauthError(t, o.refresh(tokens.RefreshToken), 400, "invalid_grant")
	oauthError(t, o.userinfo(tokens.AccessToken), 401, "invalid_token")
	oauthError(t, o.form("/token", exchangeOf(waiting, plans, plansRedirect)...), 400, "invalid_grant")
}

// TestTokenEndpointForms: what the endpoint reads, and how it says no.
func TestTokenEndpointForms(t *testing.T) {
	t.Parallel()
	o := newOAuth(t)
	post := func(body, kind string, headers ...string) authoritytest.Answer {
		return o.Stranger().Do("POST", "/token", body, append([]string{"Content-Type", kind}, headers...)...)
	}
	const form = "application/x-www-form-urlencoded"
	oauthError(t, post("grant_type=refresh_token&grant_type=refresh_token", form), 400, "invalid_request")
	oauthError(t, post("%zz", form), 400, "invalid_request")
	oauthError(t, post(`{"grant_type":"refresh_token","grant_type":"password"}`, "application/json"), 400, "invalid_request")
	oauthError(t, post(`{"grant_type":["refresh_token"]}`, "application/json"), 400, "invalid_request")
	oauthError(t, post(`[]`, "application/json"), 400, "invalid_request")
	oauthError(t, post(`{"grant_type":"x"}{}`, "application/json"), 400, "invalid_request")
	oauthError(t, post(`grant_type=x`, "text/plain"), 415, "invalid_request")
	oauthError(t, post(`grant_type=refresh_token`, form, "Authorization", "Basic Zm9vOmJhcg=="), 401, "invalid_client")
	if a := post(`grant_type=x`, form); a.Header.Get("Cache-Control") != "no-store" || a.Header.Get("Pragma") != "no-cache" {
		t.Errorf("headers %v", a.Header)
	}
	if a := o.Stranger().Get("/userinfo"); a.Status != 401 || a.Header.Get("WWW-Authenticate") != `Bearer realm="vogt"` {
		t.Errorf("without a token: %d, %q", a.Status, a.Header.Get("WWW-Authenticate"))
	}
	if a := o.userinfo("x"); !strings.Contains(a.Header.Get("WWW-Authenticate"), `error="invalid_token"`) {
		t.Errorf("with a bad token: %q", a.Header.Get("WWW-Authenticate"))
	}
	// Pages of other origins reach these addresses and no others, and never with
	// a cookie.
	for _, path := range []string{"/token", "/userinfo", "/revoke", "/.well-known/openid-configuration", "/.well-known/jwks.json"} {
		a := o.Stranger().Do("OPTIONS", path, nil, "Origin", "https://app.example", "Access-Control-Request-Method", "POST").Want(204)
		if a.Header.Get("Access-Control-Allow-Origin") != "*" || a.Header.Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("%s: %v", path, a.Header)
		}
	}
	o.Stranger().Do("POST", "/token", "grant_type=x", "Content-Type", form, "Origin", "https://app.example").Want(400)
	for _, path := range []string{"/authorize", "/api/me/sessions", "/api/account/consents"} {
		if a := o.owner.Do("GET", path, nil, "Origin", "https://app.example").Want(403); a.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: %v", path, a.Header)
		}
	}
}

// TestTooManyFamilies: the oldest session makes room.
func TestTooManyFamilies(t *testing.T) {
	t.Parallel()
	o := newOAuth(t)
	first := o.tokens(o.owner, plans, plansRedirect)
	for range 100 {
		o.Clock.Advance(time.Millisecond)
		o.tokens(o.owner, plans, plansRedirect)
	}
	oauthError(t, o.refresh(first.RefreshToken), 400, "invalid_grant")
	var all, page struct {
		Data       []api.ClientSession
		Pagination api.Pagination
	}
	o.owner.Get("/api/me/sessions?limit=100").Into(&all)
	if len(all.Data) != 100 || all.Pagination.HasMore {
		t.Fatalf("%d sessions", len(all.Data))
	}
	seen := map[string]bool{}
	for cursor := ""; ; cursor = *page.Pagination.Cursor {
		page.Data = nil
		o.owner.Get("/api/me/sessions?limit=30&cursor=" + cursor).Into(&page)
		for _, s := range page.Data {
			if seen[s.FamilyID] {
				t.Fatalf("session %s is there twice", s.FamilyID)
			}
			seen[s.FamilyID] = true
		}
		if !page.Pagination.HasMore {
			break
		}
	}
	if len(seen) != 100 {
		t.Errorf("the pages hold %d sessions", len(seen))
	}
	o.agent.Get("/api/me/sessions?cursor=" + all.Data[0].FamilyID).Problem(400)
}

// TestKeysRotate: tokens of every published key hold, and a retired key stays
// until the last token under it is over.
func TestKeysRotate(t *testing.T) {
	t.Parallel()
	o := newOAuth(t)
	before := o.tokens(o.owner, plans, plansRedirect)
	if err := o.Authority.RotateKeys(ctx); err != nil {
		t.Fatal(err)
	}
	o.userinfo(before.AccessToken).Want(200)
	var after api.OAuthToken
	o.refresh(before.RefreshToken).Into(&after)
	o.userinfo(after.AccessToken).Want(200)
	kid := func(raw string) string {
		b, err := base64.RawURLEncoding.DecodeString(strings.Split(raw, ".")[0])
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	if kid(before.AccessToken) == kid(after.AccessToken) {
		t.Error("the key did not change")
	}
	keys, err := token.ParseJWKS(o.Stranger().Get("/.well-known/jwks.json").Body)
	if err != nil || len(keys) != 2 {
		t.Errorf("published are %d keys, %v", len(keys), err)
	}
}

// TestDelegatedTokenEndsWithTheDelegation: a token in somebody's place lasts no longer
// than what they signed.
func TestDelegatedTokenEndsWithTheDelegation(t *testing.T) {
	t.Parallel()
	o := newOAuth(t)
	params := toPlans(o.agent)
	params["grant_type"], params["duration"] = "timed", "60"
	d := delegate(t, o.owner, params)
	var out api.OAuthToken
	o.credentials(o.assertion(o.agent, nil), "delegation_grant", d.ID, "audience", plans).Into(&out)
	if c := claims(t, out.AccessToken); c["exp"].(float64) > float64(d.ExpiresAt) || out.ExpiresIn > 60 {
		t.Errorf("the token ends at %v (in %d s), the delegation at %d", c["exp"], out.ExpiresIn, d.ExpiresAt)
	}
}

// TestAuthorityIsNoAudience: neither by address nor by host.
func TestAuthorityIsNoAudience(t *testing.T) {
	t.Parallel()
	o := newOAuth(t)
	params := toPlans(o.agent)
	params["audience"], params["grant_type"] = "*", "always"
	d := delegate(t, o.owner, params)
	for _, address := range []string{o.URL, o.Pages} {
		_, host, _ := strings.Cut(address, "://")
		for _, audience := range []string{address, address + "/x", host, strings.ToUpper(host)} {
			oauthError(t, o.credentials(o.assertion(o.agent, nil), "delegation_grant", d.ID, "audience", audience), 400, "invalid_target")
		}
	}
}
