package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"vogt/internal/authority"
	"vogt/internal/authoritytest"
	"vogt/internal/detail"
	"vogt/internal/sshkey"
	"vogt/internal/token"
)

// The tests in this file hold the interface to what the unmodified OpenApe
// client reads: each field that it reads, by name and JSON type. They go
// through raw JSON on purpose, so that a renamed field in package api fails.

// at walks to a member of decoded JSON: "data.0.request.command".
func at(v any, path string) (any, bool) {
	if path == "" {
		return v, true
	}
	for _, step := range strings.Split(path, ".") {
		switch c := v.(type) {
		case map[string]any:
			next, ok := c[step]
			if !ok {
				return nil, false
			}
			v = next
		case []any:
			var i int
			if _, err := fmt.Sscanf(step, "%d", &i); err != nil || i >= len(c) {
				return nil, false
			}
			v = c[i]
		default:
			return nil, false
		}
	}
	return v, true
}

// reads checks an answer for fields "path kind", kind being one of string,
// number, bool, array, object, null, or several joined by "|".
func reads(t *testing.T, a authoritytest.Answer, fields ...string) any {
	t.Helper()
	if a.Status/100 != 2 {
		t.Fatalf("%s: %d %.500s", a.Call, a.Status, a.Body)
	}
	if ct := a.Header.Get("Content-Type"); ct != "application/json" {
		t.Errorf("%s: content type %q", a.Call, ct)
	}
	var v any
	if err := json.Unmarshal(a.Body, &v); err != nil {
		t.Fatalf("%s: the client parses every body: %v\n%s", a.Call, err, a.Body)
	}
	for _, f := range fields {
		path, kinds, ok := strings.Cut(f, " ")
		if !ok {
			path, kinds = "", f
		}
		got, found := at(v, path)
		kind := "missing"
		if found {
			switch got.(type) {
			case string:
				kind = "string"
			case float64:
				kind = "number"
			case bool:
				kind = "bool"
			case []any:
				kind = "array"
			case map[string]any:
				kind = "object"
			case nil:
				kind = "null"
			}
		}
		if !strings.Contains("|"+kinds+"|", "|"+kind+"|") {
			t.Errorf("%s: %s is %s, want %s\n%.500s", a.Call, path, kind, kinds, a.Body)
		}
	}
	return v
}

// text returns a string member.
func text(t *testing.T, v any, path string) string {
	t.Helper()
	got, _ := at(v, path)
	s, ok := got.(string)
	if !ok {
		t.Fatalf("%s is %v", path, got)
	}
	return s
}

// scene is an authority as people with unmodified clients set it up: the
// written switch lets stored logins decide up to high risk.
type scene struct {
	*authoritytest.Server
	owner, agent *authoritytest.Principal
}

func newScene(t *testing.T, opts ...authoritytest.Option) *scene {
	t.Helper()
	s := &scene{Server: authoritytest.Start(t, append([]authoritytest.Option{authoritytest.WithBearer(detail.High)}, opts...)...)}
	s.owner = s.Owner()
	s.agent = s.Agent(s.owner, "bot")
	return s
}

// shaped is the body that the client sends for a command that it has no shape
// for.
func shaped(requester string, argv ...string) map[string]any {
	hash := detail.ArgvHash(argv)
	chain := []map[string]any{
		{"resource": "cli", "selector": map[string]string{"name": argv[0]}},
		{"resource": "argv", "selector": map[string]string{"hash": hash}},
	}
	permission := fmt.Sprintf("%s.cli[name=%s].argv[hash=%s]#exec", argv[0], argv[0], hash)
	return map[string]any{
		"requester": requester, "target_host": "vm", "audience": "shapes", "grant_type": "once", "command": argv,
		"reason": "Execute (unshaped)", "permissions": []string{permission},
		"authorization_details": []map[string]any{{
			"type": "openape_cli", "cli_id": argv[0], "operation_id": "_generic.exec", "resource_chain": chain, "action": "exec",
			"permission": permission, "display": "Execute (unshaped)", "risk": "high", "constraints": map[string]bool{"exact_command": true},
		}},
		"execution_context": map[string]any{
			"argv": argv, "argv_hash": hash, "adapter_id": argv[0], "adapter_version": "openape-shapes/v1", "adapter_digest": "synthetic",
			"resolved_executable": argv[0], "context_bindings": map[string]string{},
		},
		"request_hash": "unknown-to-us", "future_field": map[string]any{"nested": []int{1}},
	}
}

func TestDiscovery(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t)
	for _, bearer := range []string{"", "whatever"} {
		c := &authoritytest.Client{S: s, Bearer: bearer}
		v := reads(t, c.Get("/.well-known/openid-configuration"), "issuer string", "jwks_uri string", "openape_grants_endpoint string",
			"ddisa_auth_challenge_endpoint string", "ddisa_auth_authenticate_endpoint string", "ddisa_agent_challenge_endpoint string",
			"ddisa_agent_authenticate_endpoint string", "ddisa_version string", "ddisa_auth_methods_supported array", "openape_grant_types_supported array")
		if text(t, v, "issuer") != s.URL {
			t.Errorf("the issuer is %s, the address %s", text(t, v, "issuer"), s.URL)
		}
		// Every address in it leads somewhere below the issuer.
		for name, value := range v.(map[string]any) {
			if u, ok := value.(string); ok && strings.HasSuffix(name, "_endpoint") {
				path, ok := strings.CutPrefix(u, s.URL)
				if !ok {
					t.Errorf("%s leads to %s", name, u)
				} else if a := s.Stranger().Post(path, nil); a.Status == 404 {
					t.Errorf("%s leads to nothing: %s", name, u)
				}
			}
		}
		reads(t, c.Get("/.well-known/jwks.json"), "keys.0.kty string", "keys.0.crv string", "keys.0.x string", "keys.0.kid string")
	}
	h := s.Stranger().Get("/.well-known/jwks.json").Header
	if h.Get("Access-Control-Allow-Origin") != "*" || h.Get("Cache-Control") != "public, max-age=3600" {
		t.Errorf("headers %v", h)
	}
}

func TestLoginAsTheClientDoes(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	for _, names := range [][3]string{
		{"id", "/api/auth/challenge", "/api/auth/authenticate"},
		{"agent_id", "/api/auth/challenge", "/api/auth/authenticate"},
		{"agent_id", "/api/agent/challenge", "/api/agent/authenticate"},
		{"id", "/api/agent/challenge", "/api/agent/authenticate"},
	} {
		for _, p := range []*authoritytest.Principal{s.owner, s.agent} {
			v := reads(t, s.Stranger().Post(names[1], map[string]string{names[0]: p.Email}), "challenge string")
			c := text(t, v, "challenge")
			if len(c) != 64 || strings.Trim(c, "0123456789abcdef") != "" {
				t.Errorf("challenge %q", c)
			}
			sig, err := sshkey.SignLogin(p.Key.Private, c)
			if err != nil {
				t.Fatal(err)
			}
			v = reads(t, s.Stranger().Post(names[2], map[string]string{names[0]: p.Email, "challenge": c, "signature": sig}),
				"token string", "expires_in number", "id string", "email string", "name string", "act string")
			want := map[bool]string{true: "human", false: "agent"}[p == s.owner]
			expires, _ := at(v, "expires_in")
			if text(t, v, "act") != want || text(t, v, "email") != p.Email || expires != 28800.0 {
				t.Errorf("%s: %v", p.Email, v)
			}
			if raw := text(t, v, "token"); strings.Count(raw, ".") != 2 {
				t.Errorf("token %q", raw)
			}
		}
	}
	// What the client prints when it fails.
	p := s.owner.TryLogin(s.NewKey("other")).Problem(401)
	if !strings.Contains(p.Detail, "key") {
		t.Errorf("%+v", p)
	}
}

// TestLoginTokenClaims: expires_in and exp agree, and act is what the client
// reads.
func TestLoginTokenClaims(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	keys, err := token.ParseJWKS(s.Stranger().Get("/.well-known/jwks.json").Body)
	if err != nil {
		t.Fatal(err)
	}
	c, err := keys.VerifyLogin(s.agent.Bearer, s.URL, s.Clock.Now())
	if err != nil || c.Expires-c.IssuedAt != 28800 || c.Act != "agent" || c.Audience != "apes-cli" || c.Subject != s.agent.Email {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestEnrolAsTheClientDoes(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	key := s.NewKey("agent@example.com").Line
	v := reads(t, s.owner.Post("/api/enroll", map[string]string{"name": "second", "publicKey": key}),
		"email string", "name string", "owner string", "approver string")
	if want := authority.AgentEmail("second", s.owner.Email, s.URL); text(t, v, "email") != want || text(t, v, "owner") != s.owner.Email {
		t.Errorf("%v, want %s", v, want)
	}
	p := s.owner.Post("/api/enroll", map[string]string{"name": "second", "publicKey": s.NewKey("x").Line}).Problem(409)
	if !strings.Contains(p.Detail+p.Title, "name") {
		t.Errorf("%+v", p)
	}
	s.owner.Post("/api/enroll", map[string]string{"name": "Not A Name", "publicKey": key}).Problem(400)
	s.owner.Post("/api/enroll", map[string]string{"name": "third", "publicKey": "nonsense"}).Problem(400)
	reads(t, s.owner.Get("/api/my-agents"), "array", "0.name string", "0.email string", "0.isActive bool")
	// An empty list is a list.
	other := s.Person("other@example.com")
	if a := other.Get("/api/my-agents"); string(a.Body) != "[]" {
		t.Errorf("no agents: %s", a.Body)
	}
	s.agent.Post("/api/auth/enroll", map[string]string{"email": "x@example.com", "name": "X", "publicKey": key}).Problem(403)
}

func TestRequestAsTheClientDoes(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	plain := map[string]any{
		"requester": s.agent.Email, "target_host": "h1", "audience": "escapes", "grant_type": "once",
		"command": []string{"uptime", "-p"}, "reason": "why not",
	}
	a := s.agent.Post("/api/grants", plain).Want(201)
	v := reads(t, a, "id string", "status string", "requester string", "type string", "created_at number", "request.requester string",
		"request.target_host string", "request.audience string", "request.grant_type string", "request.command array", "request.reason string", "request.cmd_hash string")
	if text(t, v, "status") != "pending" || text(t, v, "request.cmd_hash") != detail.CmdHash([]string{"uptime", "-p"}) {
		t.Errorf("%s", a.Body)
	}
	if created, _ := at(v, "created_at"); created != float64(s.Clock.Now().Unix()) {
		t.Errorf("created_at is %v: it must be Unix seconds", created)
	}
	// Asked again it is joined: 200 with the same grant.
	again := reads(t, s.agent.Post("/api/grants", plain).Want(200), "id string")
	if text(t, again, "id") != text(t, v, "id") {
		t.Error("an equal request is another grant")
	}
	// A shape comes back as it was sent, and its exact command is bound.
	v = reads(t, s.agent.Post("/api/grants", shaped(s.agent.Email, "date", "+%Y <&>")).Want(201), "request.permissions array",
		"request.authorization_details.0.cli_id string", "request.authorization_details.0.operation_id string",
		"request.authorization_details.0.resource_chain.1.selector.hash string", "request.authorization_details.0.constraints.exact_command bool",
		"request.execution_context.argv array", "request.execution_context.argv_hash string", "request.execution_context.adapter_digest string")
	if got := text(t, v, "request.execution_context.argv_hash"); got != detail.ArgvHash([]string{"date", "+%Y <&>"}) {
		t.Errorf("argv_hash %s", got)
	}
	// A list of arguments may come in the context alone.
	body := shaped(s.agent.Email, "date", "-u")
	delete(body, "command")
	v = reads(t, s.agent.Post("/api/grants", body).Want(201), "request.command array")
	if got, _ := at(v, "request.command.1"); got != "-u" {
		t.Errorf("command %v", got)
	}
	timed := map[string]any{"requester": s.agent.Email, "target_host": "h", "audience": "escapes", "grant_type": "timed", "command": []string{"df"}}
	// The client cannot say for how long; whoever approves must.
	waits := text(t, reads(t, s.agent.Post("/api/grants", timed).Want(201), "id string"), "id")
	if p := s.owner.Post("/api/grants/"+waits+"/approve", nil).Problem(400); p.Type != "https://openape.org/errors/missing_duration" {
		t.Errorf("%+v", p)
	}
	reads(t, s.owner.Post("/api/grants/"+waits+"/approve", map[string]any{"grant_type": "timed", "duration": 60}), "grant.expires_at number")
}

func TestListsAsTheClientReads(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	if v := reads(t, s.agent.Get("/api/grants"), "data array", "pagination.cursor null", "pagination.has_more bool"); len(v.(map[string]any)["data"].([]any)) != 0 {
		t.Errorf("%v", v)
	}
	for i := range 3 {
		s.agent.Post("/api/grants", shaped(s.agent.Email, "echo", fmt.Sprint(i))).Want(201)
	}
	for who, c := range map[string]*authoritytest.Client{"the agent": &s.agent.Client, "the owner's inbox": &s.owner.Client} {
		v := reads(t, c.Get("/api/grants?status=pending&limit=2"), "data.0.id string", "data.0.status string", "data.0.type string",
			"data.0.requester string", "data.0.owner string", "data.0.request.requester string", "data.0.request.command array",
			"data.0.request.grant_type string", "data.0.request.reason string", "pagination.has_more bool", "pagination.cursor string")
		if more, _ := at(v, "pagination.has_more"); more != true || text(t, v, "data.0.requester") != s.agent.Email {
			t.Errorf("%s: %v", who, v)
		}
	}
	// Limits are clamped, never refused: the client asks for 200.
	for limit, want := range map[string]int{"200": 3, "1000000": 3, "0": 1, "-5": 1, "1": 1, "2": 2} {
		v := reads(t, s.agent.Get("/api/grants?limit="+limit), "data array")
		if got := len(v.(map[string]any)["data"].([]any)); got != want {
			t.Errorf("limit %s: %d grants, want %d", limit, got, want)
		}
	}
	s.agent.Get("/api/grants?limit=many").Problem(400)
	s.agent.Get("/api/grants?status=open").Problem(400)
	s.agent.Get("/api/grants?cursor=!!").Problem(400)
	s.agent.Get("/api/grants?cursor=" + "MTIz").Problem(400)
	v := reads(t, s.agent.Get("/api/grants?requester="+url.QueryEscape(s.agent.Email)+"&status=approved&limit=50"), "data array")
	if len(v.(map[string]any)["data"].([]any)) != 0 {
		t.Errorf("%v", v)
	}

	id := text(t, reads(t, s.agent.Get("/api/grants?limit=1"), "data.0.id string"), "data.0.id")
	reads(t, s.agent.Get("/api/grants/"+id), "id string", "status string", "request.requester string", "request.audience string",
		"request.target_host string", "request.command array", "request.grant_type string", "created_at number")
	if p := s.agent.Get("/api/grants/00000000-0000-0000-0000-000000000000").Problem(404); p.Type != "https://openape.org/errors/grant_not_found" {
		t.Errorf("%+v", p)
	}
}

// TestDecideAsTheClientDoes: the client sends a content type and no body.
func TestDecideAsTheClientDoes(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	ask := func(argv ...string) string {
		return text(t, reads(t, s.agent.Post("/api/grants", shaped(s.agent.Email, argv...)), "id string"), "id")
	}
	empty := func(p *authoritytest.Principal, id, verb string) authoritytest.Answer {
		return p.Do("POST", "/api/grants/"+id+"/"+verb, []byte{}, "Content-Type", "application/json")
	}
	id := ask("uptime")
	if p := empty(s.agent, id, "token").Problem(400); p.Type != "https://openape.org/errors/grant_not_approved" {
		t.Errorf("%+v", p)
	}
	empty(s.agent, id, "approve").Problem(403)
	reads(t, empty(s.owner, id, "approve"), "grant.id string", "grant.status string", "grant.decided_by string", "grant.decided_at number")
	if p := empty(s.owner, id, "approve").Problem(409); p.Type != "https://openape.org/errors/grant_already_decided" {
		t.Errorf("%+v", p)
	}
	reads(t, s.agent.Get("/api/grants/"+id), "decided_at number", "decided_by string")
	v := reads(t, empty(s.agent, id, "token"), "authz_jwt string", "grant.id string")
	a := s.Consume(id, text(t, v, "authz_jwt"))
	v = reads(t, a, "status string", "grant.id string")
	if text(t, v, "status") != "consumed" || strings.Contains(string(a.Body), `"error"`) {
		t.Errorf("%s", a.Body)
	}
	v = reads(t, s.agent.Get("/api/grants/"+id), "used_at number")
	if text(t, v, "status") != "used" {
		t.Errorf("%v", v)
	}
	id = ask("whoami")
	if v := reads(t, empty(s.owner, id, "deny"), "id string", "status string"); text(t, v, "status") != "denied" {
		t.Errorf("%v", v)
	}
	id = ask("id")
	if v := reads(t, empty(s.agent, id, "revoke"), "id string", "status string"); text(t, v, "status") != "revoked" {
		t.Errorf("%v", v)
	}
}

// TestBatchAsTheClientDoes: it sends the same id twice and takes anything but
// 200 for a failure.
func TestBatchAsTheClientDoes(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	op := func(id, action string) map[string]string { return map[string]string{"id": id, "action": action} }
	id := s.agent.Ask("a").ID
	v := reads(t, s.agent.Post("/api/grants/batch", map[string]any{"operations": []any{op(id, "revoke"), op(id, "revoke")}}).Want(200),
		"results.0.id string", "results.0.success bool", "results.1.id string", "results.1.success bool", "results.1.status string")
	if ok, _ := at(v, "results.1.success"); ok != true || text(t, v, "results.1.status") != "revoked" {
		t.Errorf("%v", v)
	}
	// Different operations on one grant are different.
	id = s.agent.Ask("b").ID
	v = reads(t, s.owner.Post("/api/grants/batch", map[string]any{"operations": []any{op(id, "approve"), op(id, "deny"), op("x", "revoke"), op(id, "eat")}}).Want(207),
		"results.0.status string", "results.1.error.title string", "results.1.error.detail string", "results.1.error.status number", "results.2.error.title string", "results.3.error.title string")
	for i, want := range []bool{true, false, false, false} {
		if got, _ := at(v, fmt.Sprintf("results.%d.success", i)); got != want {
			t.Errorf("operation %d: %v, want %v", i, got, want)
		}
	}
	s.owner.Post("/api/grants/batch", map[string]any{"operations": []any{}}).Problem(400)
	s.owner.Post("/api/grants/batch", nil).Problem(400)
	many := make([]any, 201)
	for i := range many {
		many[i] = op(fmt.Sprint(i), "deny")
	}
	s.owner.Post("/api/grants/batch", map[string]any{"operations": many}).Problem(400)
}

// TestRunAsTheClientDoes is the client's whole path for one command.
func TestRunAsTheClientDoes(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	argv := []string{"echo", "hi there", "<&>\u2028"}
	reads(t, s.agent.Get("/api/grants?status=approved"), "data array")
	v := reads(t, s.agent.Post("/api/grants", shaped(s.agent.Email, argv...)).Want(201), "id string")
	id := text(t, v, "id")
	if v := reads(t, s.agent.Get("/api/grants/"+id), "status string"); text(t, v, "status") != "pending" {
		t.Errorf("%v", v)
	}
	s.owner.Do("POST", "/api/grants/"+id+"/approve", map[string]any{"grant_type": "timed", "duration": 9}).Want(200)
	v = reads(t, s.agent.Get("/api/grants?status=approved"), "data.0.id string", "data.0.expires_at number", "data.0.request.grant_type string",
		"data.0.request.audience string", "data.0.request.execution_context.adapter_digest string", "data.0.request.authorization_details array", "data.0.request.permissions array")
	if text(t, v, "data.0.request.grant_type") != "timed" {
		t.Errorf("a timed approval is listed as %s", text(t, v, "data.0.request.grant_type"))
	}
	if e, _ := at(v, "data.0.expires_at"); e != float64(s.Clock.Now().Unix()+9) {
		t.Errorf("expires_at is %v", e)
	}
	jwt := text(t, reads(t, s.agent.Post("/api/grants/"+id+"/token", nil), "authz_jwt string"), "authz_jwt")
	checkAsTheClientDoes(t, s, jwt, argv)
	for range 2 {
		v := reads(t, s.Consume(id, jwt), "status string")
		if text(t, v, "status") != "valid" {
			t.Errorf("%v", v)
		}
	}
	// The same command again is served without a new card, with 200.
	v = reads(t, s.agent.Post("/api/grants", shaped(s.agent.Email, argv...)).Want(200), "id string", "approved_automatically bool", "auto_approval_kind string")
	if text(t, v, "id") != id || text(t, v, "status") != "approved" {
		t.Errorf("%v", v)
	}
	// An expired one is never listed as approved.
	s.Clock.Advance(9 * time.Second)
	if v := reads(t, s.agent.Get("/api/grants?status=approved"), "data array"); len(v.(map[string]any)["data"].([]any)) != 0 {
		t.Errorf("%v", v)
	}
	if v := reads(t, s.agent.Get("/api/grants"), "data.0.status string"); text(t, v, "data.0.status") != "expired" {
		t.Errorf("%v", v)
	}
}

// checkAsTheClientDoes repeats the client's check of a grant token before it
// runs anything.
func checkAsTheClientDoes(t *testing.T, s *scene, jwt string, argv []string) {
	t.Helper()
	keys, err := token.ParseJWKS(s.Stranger().Get("/.well-known/jwks.json").Body)
	if err != nil {
		t.Fatal(err)
	}
	c, err := keys.VerifyGrant(jwt, s.URL, s.Clock.Now())
	if err != nil {
		t.Fatal(err)
	}
	hash := detail.ArgvHash(argv)
	if c.Audience != "shapes" || c.Context == nil || c.Context.AdapterDig != "synthetic" || c.Context.ArgvHash != hash {
		t.Errorf("%+v", c)
	}
	if len(c.Details) != 1 || c.Details[0].Type != "openape_cli" || c.Details[0].CLI != argv[0] || c.Details[0].Action != "exec" ||
		len(c.Details[0].Chain) != 2 || c.Details[0].Chain[1].Selector["hash"] != hash || !c.Details[0].Constraints.ExactCommand {
		t.Errorf("details %+v", c.Details)
	}
}

// TestConsumeErrorsAsTheClientReads: 200 with error and status.
func TestConsumeErrorsAsTheClientReads(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	once := s.agent.Ask("once").ID
	s.owner.Post("/api/grants/"+once+"/approve", nil).Want(200)
	jwt := s.agent.Token(once)
	s.Consume(once, jwt).Want(200)
	v := reads(t, s.Consume(once, jwt), "error string", "status string")
	if text(t, v, "error") != "already_consumed" || text(t, v, "status") != "used" {
		t.Errorf("%v", v)
	}
	always := s.agent.Ask("always").ID
	s.owner.Post("/api/grants/"+always+"/approve", map[string]string{"grant_type": "always"}).Want(200)
	jwt = s.agent.Token(always)
	s.owner.Post("/api/grants/"+always+"/revoke", nil).Want(200)
	v = reads(t, s.Consume(always, jwt), "error string", "status string")
	if text(t, v, "error") != "revoked" || text(t, v, "status") != "revoked" {
		t.Errorf("%v", v)
	}
	if p := s.Consume(always, "no token").Problem(401); p.Type != "https://openape.org/errors/invalid_authz_jwt" {
		t.Errorf("%+v", p)
	}
}

// TestAdminAsTheClientDoes: users and keys by the management token.
func TestAdminAsTheClientDoes(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t)
	m := s.Manager()
	reads(t, m.Get("/api/admin/users"), "data array", "pagination.has_more bool", "pagination.cursor null|string")
	v := reads(t, m.Post("/api/admin/users", map[string]string{"email": "o+tag@example.com", "name": "Owner"}), "email string", "name string")
	if text(t, v, "email") != "o+tag@example.com" {
		t.Errorf("%v", v)
	}
	m.Post("/api/admin/users", map[string]string{"email": "o+tag@example.com", "name": "Owner"}).Problem(409)
	for _, e := range []string{"b@example.com", "c@example.com", "d@other.example"} {
		m.Post("/api/admin/users", map[string]string{"email": e, "name": "N " + e}).Want(200)
	}
	reads(t, m.Get("/api/admin/users"), "data.0.email string", "data.0.name string", "data.0.isActive bool")

	// Limit, cursor and search are honoured.
	seen := map[string]bool{}
	for cursor := ""; ; {
		v := reads(t, m.Get("/api/admin/users?limit=1&cursor="+url.QueryEscape(cursor)), "data.0.email string", "pagination.has_more bool")
		e := text(t, v, "data.0.email")
		if seen[e] {
			t.Fatalf("%s is listed twice", e)
		}
		seen[e] = true
		if more, _ := at(v, "pagination.has_more"); more != true {
			break
		}
		cursor = text(t, v, "pagination.cursor")
	}
	if len(seen) != 4 {
		t.Errorf("the pages listed %v", seen)
	}
	v = reads(t, m.Get("/api/admin/users?limit=5&search=OTHER"), "data.0.email string")
	if data, _ := at(v, "data"); len(data.([]any)) != 1 || text(t, v, "data.0.email") != "d@other.example" {
		t.Errorf("%v", v)
	}

	keys := "/api/admin/users/o%2Btag%40example.com/ssh-keys"
	key := s.NewKey("laptop@home")
	v = reads(t, m.Post(keys, map[string]string{"publicKey": key.Line, "name": "laptop"}), "keyId string", "name string")
	if text(t, v, "keyId") != string(key.Private.Public().ID()) || text(t, v, "name") != "laptop" {
		t.Errorf("%v", v)
	}
	second := s.NewKey("comment-as-name")
	v = reads(t, m.Post(keys, map[string]string{"publicKey": second.Line}), "keyId string", "name string")
	if text(t, v, "name") != "comment-as-name" {
		t.Errorf("a key without a name is called %q", text(t, v, "name"))
	}
	reads(t, m.Get(keys), "array", "0.keyId string", "0.name string", "0.publicKey string", "1.keyId string")
	reads(t, m.Do("DELETE", keys+"/"+string(second.Private.Public().ID()), nil), "object")
	m.Do("DELETE", keys+"/"+string(second.Private.Public().ID()), nil).Problem(404)
	// Adding a key to somebody unknown makes the account, as the client expects.
	reads(t, m.Post("/api/admin/users/new%40example.com/ssh-keys", map[string]string{"publicKey": s.NewKey("new").Line}), "keyId string")

	reads(t, m.Do("DELETE", "/api/admin/users/b%40example.com", nil), "object")
	m.Do("DELETE", "/api/admin/users/b%40example.com", nil).Problem(404)
	m.Get("/api/admin/users/nobody%40example.com/ssh-keys").Problem(404)
}

// TestNameOfAddedKeyIsKept: what the client called the key is what it lists.
func TestNameOfAddedKeyIsKept(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t)
	m := s.Manager()
	m.Post("/api/admin/users/o%40example.com/ssh-keys", map[string]string{"publicKey": s.NewKey("comment").Line, "name": "laptop"}).Want(200)
	if v := reads(t, m.Get("/api/admin/users/o%40example.com/ssh-keys"), "0.name string"); text(t, v, "0.name") != "laptop" {
		t.Errorf("the key is listed as %q", text(t, v, "0.name"))
	}
}

// TestManagementTokenOnly: every other bearer on an administrator's address is
// refused with 403, and so is none.
func TestManagementTokenOnly(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	for _, bearer := range []string{"", "x", s.owner.Bearer, s.agent.Bearer, authoritytest.ManagementToken + "x", authoritytest.ManagementToken[1:], strings.ToUpper(authoritytest.ManagementToken)} {
		c := &authoritytest.Client{S: s.Server, Bearer: bearer}
		for _, call := range [][2]string{
			{"GET", "/api/admin/users"}, {"POST", "/api/admin/users"}, {"DELETE", "/api/admin/users/owner%40example.com"},
			{"GET", "/api/admin/users/owner%40example.com/ssh-keys"}, {"POST", "/api/admin/users/owner%40example.com/ssh-keys"},
			{"DELETE", "/api/admin/users/owner%40example.com/ssh-keys/x"},
		} {
			if a := c.Do(call[0], call[1], map[string]string{"email": "x@example.com"}); a.Status != 403 {
				t.Errorf("%s %s with bearer %.20q: %d %.200s", call[0], call[1], bearer, a.Status, a.Body)
			}
		}
	}
	s.owner.Get("/api/me").Want(200)
}

// TestDeleteAnswersJSON: the client parses the body of a DELETE.
func TestDeleteAnswersJSON(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	path := "/api/my-agents/" + url.PathEscape(s.agent.Email)
	if !strings.Contains(path, "%40") && !strings.Contains(path, "@") || !strings.Contains(s.agent.Email, "+") {
		t.Fatalf("the address %s proves nothing", s.agent.Email)
	}
	reads(t, s.owner.Get(path), "email string", "keys.0.keyId string")
	// The client encodes all that is special.
	encoded := "/api/my-agents/" + strings.NewReplacer("+", "%2B", "@", "%40", ":", "%3A").Replace(s.agent.Email)
	v := reads(t, s.owner.Get(encoded), "email string")
	if text(t, v, "email") != s.agent.Email {
		t.Errorf("%v", v)
	}
	v = reads(t, s.owner.Do("PATCH", encoded, map[string]bool{"isActive": false}), "isActive bool")
	if active, _ := at(v, "isActive"); active != false {
		t.Errorf("%v", v)
	}
	reads(t, s.owner.Do("DELETE", encoded, nil), "ok bool")
	s.owner.Do("DELETE", encoded, nil).Problem(404)
}

// TestHealth: the base address answers, and the list with limit 1.
func TestHealth(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	if a := s.Stranger().Get("/"); a.Status != 302 || a.Header.Get("Location") != s.Pages+"/" {
		t.Errorf("%d to %q", a.Status, a.Header.Get("Location"))
	}
	reads(t, s.agent.Get("/api/grants?limit=1"), "data array")
	v := reads(t, s.Stranger().Get("/api/health"), "status string", "version string", "issuer string", "epoch number",
		"bearer_decisions string", "pages string", "time number", "log_key string", "set_up bool")
	if text(t, v, "bearer_decisions") != "high" || text(t, v, "issuer") != s.URL {
		t.Errorf("%v", v)
	}
}

// TestErrors: problem documents whose detail alone tells what to do, since the
// client prints nothing else.
func TestErrors(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	g := s.agent.Ask("ls")
	for name, a := range map[string]authoritytest.Answer{
		"no login":       s.Stranger().Get("/api/grants"),
		"bad login":      (&authoritytest.Client{S: s.Server, Bearer: "x"}).Get("/api/grants"),
		"unknown path":   s.owner.Get("/api/nothing"),
		"unknown verb":   s.owner.Do("PUT", "/api/grants", nil),
		"not mine":       s.agent.Post("/api/grants/"+g.ID+"/approve", nil),
		"bad JSON":       s.agent.Post("/api/grants", "{"),
		"wrong type":     s.agent.Post("/api/grants", `{"command": "ls -l"}`),
		"trailing text":  s.agent.Post("/api/grants", `{} {}`),
		"array":          s.agent.Post("/api/grants", `[]`),
		"text duration":  s.agent.Post("/api/grants", `{"target_host":"h","audience":"a","grant_type":"timed","duration":"forever","command":["ls"]}`),
		"not UTF-8":      s.agent.Post("/api/grants", "{\"target_host\":\"h\",\"audience\":\"a\",\"command\":[\"ls\",\"\xff\"]}"),
		"long wait":      s.agent.Get("/api/grants/" + g.ID + "?wait=-1"),
		"wait in words":  s.agent.Get("/api/grants/" + g.ID + "?wait=long"),
		"bad expires_at": s.owner.Get("/api/grants/" + g.ID + "/statement?expires_at=x"),
		"foreign page":   s.owner.Do("GET", "/api/grants", nil, "Origin", "http://evil.example"),
	} {
		if a.Status < 400 || a.Status >= 500 {
			t.Errorf("%s: %d %.300s", name, a.Status, a.Body)
			continue
		}
		p := a.Problem(a.Status)
		if a.Status == 401 && a.Header.Get("WWW-Authenticate") != "Bearer" {
			t.Errorf("%s: no WWW-Authenticate", name)
		}
		for _, leak := range []string{"sql", "SQLITE", "panic", ".go:", "goroutine", s.Dir} {
			if strings.Contains(p.Detail, leak) {
				t.Errorf("%s: the detail shows internals: %s", name, p.Detail)
			}
		}
	}
}

// TestETag: a repeated read of an unchanged grant costs no body, and the tag
// changes with everything that the client shows.
func TestETag(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	g := s.agent.Ask("ls")
	path := "/api/grants/" + g.ID
	tags := map[string]bool{}
	unchanged := func() {
		t.Helper()
		tag := s.agent.Get(path).Want(200).Header.Get("ETag")
		if tags[tag] || tag == "" {
			t.Errorf("the tag %q stands for two states", tag)
		}
		tags[tag] = true
		if a := s.agent.Do("GET", path, nil, "If-None-Match", tag); a.Status != 304 || len(a.Body) != 0 {
			t.Errorf("%d %s", a.Status, a.Body)
		}
	}
	unchanged()
	s.owner.Post(path+"/approve", map[string]string{"grant_type": "always"}).Want(200)
	unchanged()
	for range 2 {
		s.Consume(g.ID, s.agent.Token(g.ID)).Want(200)
		unchanged()
	}
	s.owner.Post(path+"/revoke", nil).Want(200)
	unchanged()
}

// TestRemoveOwnKey: a person takes its own keys away by login alone, but not
// the last one that decides, and nobody else's.
func TestRemoveOwnKey(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	other := s.Person("other@example.com")
	path := func(k authoritytest.Key) string { return "/api/me/keys/" + string(k.Private.Public().ID()) }
	s.owner.Do("DELETE", path(s.owner.Key), nil).Problem(403)
	other.Do("DELETE", path(s.owner.Key), nil).Problem(404)
	s.agent.Do("DELETE", path(s.agent.Key), nil).Problem(403)
	s.Manager().Do("DELETE", path(s.agent.Key), nil).Problem(404)
	s.Stranger().Do("DELETE", path(s.owner.Key), nil).Problem(401)
	second := s.NewKey("second")
	s.owner.Change("key.add", map[string]string{"public_key": second.Line})
	reads(t, s.owner.Do("DELETE", path(second), nil), "ok bool")
	s.owner.TryLogin(second).Problem(401)
	s.owner.TryLogin(s.owner.Key).Want(200)
	// A key that only logs in is no way to decide, so it does not count.
	s.Manager().Post("/api/admin/users/owner%40example.com/ssh-keys", map[string]string{"publicKey": s.NewKey("weak").Line}).Want(200)
	s.owner.Do("DELETE", path(s.owner.Key), nil).Problem(403)
}
