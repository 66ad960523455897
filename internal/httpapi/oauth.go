package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"vogt/internal/api"
	"vogt/internal/authority"
	"vogt/internal/store"
)

// oauthRoutes are the addresses of OAuth 2 and OpenID Connect, and what people
// see of what they gave there.
func (s *server) oauthRoutes() {
	s.handle("GET "+api.PathAuthorize, authorize, about{
		says: "Asks for a code (RFC 6749, RFC 7636). Who has no login is sent to the pages.", status: http.StatusFound, gives: "", media: "text/html",
		query: []string{
			"response_type: code", "client_id: of the service", "redirect_uri: of the service", "scope: words", "state: comes back", "nonce: stands in the token",
			"code_challenge: SHA-256 of the verifier, base64url", "code_challenge_method: S256",
		},
	})
	s.handle("POST "+api.PathAuthorize, authorize, about{says: "Is refused: codes are asked for with GET.", status: http.StatusFound, gives: "", media: "text/html"})
	s.oauth("POST "+api.PathToken, tokenEndpoint, about{says: "Tokens for a code, a refresh token, an assertion or a delegation; a form, or JSON.", takes: map[string]string{}, gives: api.OAuthToken{}, fails: api.OAuthError{}})
	s.oauth("POST "+api.PathRevoke, revokeToken, about{says: "Revokes a token (RFC 7009); a form, or JSON.", takes: map[string]string{}, gives: map[string]string{}, fails: api.OAuthError{}})
	s.oauth("GET "+api.PathUserInfo, userInfo, about{says: "Who the bearer is (OpenID Connect Core 1.0, 5.3).", gives: api.UserInfo{}, fails: api.OAuthError{}})
	s.oauth("POST "+api.PathUserInfo, userInfo, about{says: "Who the bearer is (OpenID Connect Core 1.0, 5.3).", gives: api.UserInfo{}, fails: api.OAuthError{}})

	for _, wire := range []func(string, handler, ...about){s.signedIn, s.bySession} {
		wire("GET "+api.PathMySessions, clientSessions, about{says: "Where services hold a session of the caller's.", query: []string{"limit: 1 to 100", "cursor: pagination.cursor of the page before"}, gives: envelope[api.ClientSession]{}})
		wire("DELETE "+api.PathMySessions+"/{id}", endClientSession, about{says: "Ends one.", gives: nothing{}})
		wire("GET "+api.PathConsents, consents, about{says: "What services the caller has consented to.", gives: envelope[api.ClientConsent]{}})
		wire("DELETE "+api.PathConsents+"/{client}", withdrawConsent, about{says: "Withdraws a consent.", gives: nothing{}})
	}

	s.handle("POST "+api.PathBridgeToken, bridgeToken, about{says: "The token with which a service acts at another for a person, for a code from /authorize-cross-sp.", takes: api.BridgeToken{}, gives: api.BridgeTokenAnswer{}})
	s.signedIn("GET "+api.PathScopeCatalog, scopeCatalog, about{says: "Which scopes a service knows, in its own words.", query: []string{"audience: the ID of the service"}, gives: api.ScopeCatalog{}})
	s.signedIn("GET "+api.PathBridges, bridges, about{says: "What the caller lets services do at others.", gives: envelope[api.Bridge]{}})
	s.signedIn("DELETE "+api.PathBridges+"/{id}", endBridge, about{says: "Takes that back.", gives: done{}})
	s.signedIn("POST "+api.PathGrantBridge, grantBridge, about{says: "Is refused: it is a change of trust, which is signed on its page.", gives: done{}})

	for _, page := range []string{"consent", "denied", "authorize-cross-sp"} {
		s.mux.HandleFunc("GET /"+page, s.toPages)
	}
}

// oauthMetadata holds the members of the discovery document that OAuth brings
// (OpenID Connect Discovery 1.0, RFC 8414, RFC 9207).
func oauthMetadata(issuer string) map[string]any {
	return map[string]any{
		"authorization_endpoint": issuer + api.PathAuthorize,
		"token_endpoint":         issuer + api.PathToken,
		"userinfo_endpoint":      issuer + api.PathUserInfo,
		"revocation_endpoint":    issuer + api.PathRevoke,

		"response_types_supported":                         []string{"code"},
		"response_modes_supported":                         []string{"query"},
		"grant_types_supported":                            []string{"authorization_code", "client_credentials", "refresh_token"},
		"code_challenge_methods_supported":                 []string{"S256"},
		"token_endpoint_auth_methods_supported":            []string{"none", "private_key_jwt"},
		"token_endpoint_auth_signing_alg_values_supported": []string{"EdDSA"},
		"revocation_endpoint_auth_methods_supported":       []string{"none"},
		"scopes_supported":                                 []string{"openid", "email", "profile", "offline_access"},
		"claims_supported": []string{
			"sub", "iss", "aud", "exp", "iat", "auth_time", "nonce", "act", "email", "name", "approver", "authorization_details", "delegation_grant",
		},
		"claims_parameter_supported":                     false,
		"request_parameter_supported":                    false,
		"request_uri_parameter_supported":                false,
		"authorization_response_iss_parameter_supported": true,
		"prompt_values_supported":                        []string{"none", "login", "consent", "select_account"},
	}
}

// anyOrigin reports whether pages of other origins may call the address: these
// carry no cookie, and a page can do no more there than any program.
func anyOrigin(path string) bool {
	switch path {
	case api.PathToken, api.PathUserInfo, api.PathRevoke:
		return true
	}
	return strings.HasPrefix(path, "/.well-known/")
}

// oauth wires a handler that answers OAuth clients: no login is read before it,
// and errors are those of RFC 6749.
func (s *server) oauth(pattern string, fn handler, a ...about) {
	s.describe(pattern, false, a)
	s.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		c := &call{ResponseWriter: w, Request: r, s: s}
		defer func() {
			for _, end := range c.ends {
				end()
			}
		}()
		w.Header().Set("Pragma", "no-cache")
		if err := fn(c); err != nil {
			s.failOAuth(w, r, err)
		}
	})
}

func (s *server) failOAuth(w http.ResponseWriter, r *http.Request, err error) {
	var oauth *authority.OAuthError
	var problem *authority.Error
	out := api.OAuthError{Error: "server_error", Description: "The authority failed; its log file has the cause."}
	status := http.StatusInternalServerError
	switch {
	case errors.As(err, &oauth):
		status, out = oauth.Status, api.OAuthError{Error: oauth.Code, Description: oauth.Description}
	case errors.As(err, &problem):
		status, out.Description = problem.Status, problem.Error()
		switch {
		case status == http.StatusTooManyRequests, status == http.StatusServiceUnavailable, status == http.StatusInsufficientStorage:
			out.Error = "temporarily_unavailable"
		case status == http.StatusForbidden:
			out.Error = "invalid_grant"
		case status < 500:
			out.Error = "invalid_request"
		}
		if problem.Retry > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(problem.Retry))
		}
	default:
		s.Log.Error("a call failed", "err", err, "method", r.Method, "path", routeOf(r))
	}
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", authenticateHeader(r, out))
	}
	_ = writeJSON(w, status, out) // the shape can always be written
}

// authenticateHeader names the scheme that the caller should have used (RFC
// 6750, section 3; RFC 6749, section 5.2).
func authenticateHeader(r *http.Request, e api.OAuthError) string {
	if r.URL.Path != api.PathUserInfo {
		scheme, _, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		if strings.EqualFold(scheme, "Basic") {
			return `Basic realm="vogt"`
		}
		return `Bearer realm="vogt", error="` + e.Error + `"`
	}
	if _, sent := bearer(r); !sent {
		return `Bearer realm="vogt"`
	}
	return `Bearer realm="vogt", error="` + e.Error + `", error_description="` + e.Description + `"`
}

// authorize answers bearers. Everybody else is sent to the pages, where a
// session can be read.
func authorize(c *call) error {
	if c.Method != http.MethodGet {
		return &authority.Error{Status: http.StatusMethodNotAllowed, Title: "Codes are asked for with GET"}
	}
	query, err := url.ParseQuery(c.URL.RawQuery)
	if err != nil {
		return &authority.Error{Status: 400, Title: "The request is not clear", Detail: "The query cannot be read.", Kind: "invalid_request"}
	}
	out, err := c.s.Authority.Authorize(c.Context(), c.actor, query)
	if err != nil {
		return err
	}
	to := out.Location
	if out.SignIn {
		to = c.s.pagesOrigin + c.URL.RequestURI()
	}
	http.Redirect(c.ResponseWriter, c.Request, to, http.StatusFound)
	return nil
}

// parameters reads a body of OAuth parameters, as a form or as JSON. A parameter
// that is there twice is an error (RFC 6749, section 3.2).
func (c *call) parameters() (map[string]string, error) {
	b, err := c.readBody()
	if err != nil {
		return nil, err
	}
	bad := func(description string) (map[string]string, error) {
		return nil, &authority.OAuthError{Status: 400, Code: "invalid_request", Description: description}
	}
	if !utf8.Valid(b) {
		return bad("The body is not valid UTF-8.")
	}
	kind, _, err := mime.ParseMediaType(c.Request.Header.Get("Content-Type"))
	switch {
	case err == nil && kind == "application/x-www-form-urlencoded":
		form, err := url.ParseQuery(string(b))
		if err != nil {
			return bad("The body is no form.")
		}
		out := map[string]string{}
		for name, values := range form {
			if len(values) != 1 {
				return bad("A parameter is there more than once.")
			}
			out[name] = values[0]
		}
		return out, nil
	case err == nil && kind == "application/json":
		out, ok := flatJSON(b)
		if !ok {
			return bad("The body is no JSON object whose parameters are there once.")
		}
		return out, nil
	}
	return nil, &authority.OAuthError{Status: 415, Code: "invalid_request", Description: "Send a form, or application/json."}
}

// flatJSON reads the members of an object that are strings. Others cannot be
// parameters and are left out; a name that is there twice is refused.
func flatJSON(b []byte) (map[string]string, bool) {
	d := json.NewDecoder(bytes.NewReader(b))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, false
	}
	out, seen := map[string]string{}, map[string]bool{}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, false
		}
		key, _ := name.(string)
		var value json.RawMessage
		if err := d.Decode(&value); err != nil || seen[key] {
			return nil, false
		}
		seen[key] = true
		var text string
		if json.Unmarshal(value, &text) == nil && len(value) > 0 && value[0] == '"' {
			out[key] = text
		}
	}
	if _, err := d.Token(); err != nil {
		return nil, false
	}
	// More would take a bracket that closes nothing for the end.
	_, err := d.Token()
	return out, err == io.EOF
}

// secretInHeader refuses the client secrets that no client has here. What a
// client claims must not be passed over.
func (c *call) secretInHeader() error {
	if scheme, _, _ := strings.Cut(c.Request.Header.Get("Authorization"), " "); strings.EqualFold(scheme, "Basic") {
		return &authority.OAuthError{Status: 401, Code: "invalid_client", Description: "Clients have no secrets here: send client_id in the body."}
	}
	return nil
}

func tokenEndpoint(c *call) error {
	if err := c.secretInHeader(); err != nil {
		return err
	}
	p, err := c.parameters()
	if err != nil {
		return err
	}
	out, err := c.s.Authority.TokenFor(c.Context(), authority.TokenRequest{
		GrantType: p["grant_type"], Code: p["code"], Verifier: p["code_verifier"], RedirectURI: p["redirect_uri"], Client: p["client_id"],
		Refresh: p["refresh_token"], Scope: p["scope"], AssertionType: p["client_assertion_type"], Assertion: p["client_assertion"],
		Delegation: p["delegation_grant"], Audience: p["audience"],
	})
	if err != nil {
		return err
	}
	return c.ok(http.StatusOK, out)
}

func revokeToken(c *call) error {
	if err := c.secretInHeader(); err != nil {
		return err
	}
	p, err := c.parameters()
	if err != nil {
		return err
	}
	if err := c.s.Authority.RevokeToken(c.Context(), p["token"], p["client_id"]); err != nil {
		return err
	}
	return c.ok(http.StatusOK, map[string]string{"status": "ok"})
}

func userInfo(c *call) error {
	raw, sent := bearer(c.Request)
	if !sent {
		return &authority.OAuthError{Status: 401, Code: "invalid_token", Description: "The call carries no token."}
	}
	out, err := c.s.Authority.UserInfo(c.Context(), raw)
	if err != nil {
		return c.s.failedBearer(c.Request, err)
	}
	return c.ok(http.StatusOK, out)
}

// envelope is how lists are sent.
type envelope[T any] struct {
	Data       []T            `json:"data"`
	Pagination api.Pagination `json:"pagination"`
}

func clientSessions(c *call) error {
	q := c.URL.Query()
	limit, _ := strconv.Atoi(q.Get("limit"))
	families, more, err := c.s.Authority.Families(c.Context(), c.actor, q.Get("cursor"), limit)
	if err != nil {
		return err
	}
	out := envelope[api.ClientSession]{Data: []api.ClientSession{}, Pagination: api.Pagination{HasMore: more}}
	for _, f := range families {
		out.Data = append(out.Data, clientSession(f))
	}
	if more {
		out.Pagination.Cursor = &families[len(families)-1].ID
	}
	return c.ok(http.StatusOK, out)
}

func clientSession(f store.Family) api.ClientSession {
	return api.ClientSession{FamilyID: f.ID, UserID: f.Email, ClientID: f.Client, CreatedAt: f.Created, ExpiresAt: f.Expires, Revoked: f.Ended != 0}
}

func endClientSession(c *call) error {
	if err := c.s.Authority.EndSessionOf(c.Context(), c.actor, c.PathValue("id")); err != nil {
		return err
	}
	return c.ok(http.StatusOK, struct{}{})
}

func consents(c *call) error {
	all, err := c.s.Authority.Consents(c.Context(), c.actor)
	if err != nil {
		return err
	}
	out := envelope[api.ClientConsent]{Data: []api.ClientConsent{}}
	for _, k := range all {
		out.Data = append(out.Data, api.ClientConsent{
			ClientID: k.Client, Name: k.Name, Scopes: append([]string{}, strings.Fields(k.Scope)...), GrantedAt: k.Created,
		})
	}
	return c.ok(http.StatusOK, out)
}

func withdrawConsent(c *call) error {
	if err := c.s.Authority.WithdrawConsent(c.Context(), c.actor, c.PathValue("client")); err != nil {
		return err
	}
	return c.ok(http.StatusOK, struct{}{})
}

func allowedClients(c *call) error {
	all, err := c.s.Authority.AllowedClients(c.Context(), c.actor, c.URL.Query().Get("domain"))
	if err != nil {
		return err
	}
	out := envelope[api.AllowedClient]{Data: []api.AllowedClient{}}
	for _, k := range all {
		out.Data = append(out.Data, api.AllowedClient{Domain: k.Domain, ClientID: k.Client, CreatedAt: k.Created})
	}
	return c.ok(http.StatusOK, out)
}

func allowClient(c *call) error {
	var in api.AllowedClient
	if err := c.body(&in); err != nil {
		return err
	}
	if err := c.s.Authority.AllowClient(c.Context(), c.actor, in.Domain, in.ClientID); err != nil {
		return err
	}
	return c.ok(http.StatusOK, map[string]bool{"ok": true})
}

func disallowClient(c *call) error {
	if err := c.s.Authority.DisallowClient(c.Context(), c.actor, c.PathValue("domain"), c.PathValue("client")); err != nil {
		return err
	}
	return c.ok(http.StatusOK, map[string]bool{"ok": true})
}
