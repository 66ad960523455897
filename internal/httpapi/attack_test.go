package httpapi_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"vogt/internal/api"
	"vogt/internal/authority"
	"vogt/internal/authoritytest"
	"vogt/internal/detail"
	"vogt/internal/grant"
)

// Each test in this file tries a hole that servers of this kind are known to
// have had. Names say which.

// raw sends bytes as they are over a connection of its own and returns the
// status of the answer, 0 for none.
func raw(t *testing.T, s *authoritytest.Server, request string) (int, string) {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

func host(s *authoritytest.Server) string { return strings.TrimPrefix(s.URL, "http://") }

func port(s *authoritytest.Server) string {
	_, p, _ := strings.Cut(host(s), ":")
	return p
}

// pages stands for the pages' handler.
func pages(s string) authoritytest.Option {
	return authoritytest.WithPages(func(*authority.Authority) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, s) })
	})
}

// TestOtherHosts: DNS rebinding, other ports and odd spellings. Only the two
// names of the authority are answered.
func TestOtherHosts(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t, pages("the pages"))
	owner := s.Owner()
	p := port(s)
	get := func(host string) authoritytest.Answer { return owner.Do("GET", "/api/me", nil, "Host", host) }
	get("127.0.0.1:" + p).Want(200)
	for _, name := range []string{"vogt.localhost:", "VOGT.localhost:"} {
		if a := owner.Do("GET", "/account", nil, "Host", name+p); string(a.Body) != "the pages" {
			t.Errorf("the pages' host as %s: %d %s", name, a.Status, a.Body)
		}
		// There a login says nothing.
		get(name + p).Problem(403)
	}
	for _, h := range []string{
		"evil.example", "evil.example:" + p, "rebound.127.0.0.1.nip.io:" + p, "localhost:" + p, "localhost", "127.0.0.1", "127.0.0.1:1",
		"127.0.0.1.:" + p, "vogt.localhost.:" + p, "vogt.localhost", "vogt.localhost:1", "evil.vogt.localhost:" + p, "vogt.localhost.evil.example:" + p,
		"127.0.0.1:" + p + ".evil.example", "0.0.0.0:" + p, "[::1]:" + p, "[::ffff:127.0.0.1]:" + p, "127.1:" + p, "2130706433:" + p, "0x7f.0.0.1:" + p,
		"assistant.localhost:8649", "127.0.0.1:0" + p, "user@127.0.0.1:" + p,
	} {
		a := get(h)
		if a.Status != 421 && a.Status != 400 {
			t.Errorf("host %q is answered: %d %.200s", h, a.Status, a.Body)
		}
		if strings.Contains(string(a.Body), owner.Email) || string(a.Body) == "the pages" {
			t.Errorf("host %q is told %.200s", h, a.Body)
		}
	}
}

// TestHostOnTheWire: what a client library would not send.
func TestHostOnTheWire(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t, pages("the pages"))
	owner := s.Owner()
	h := host(s)
	auth := "Authorization: Bearer " + owner.Bearer + "\r\nConnection: close\r\n\r\n"
	for name, test := range map[string]struct {
		request string
		want    int
	}{
		"as it should be":         {"GET /api/me HTTP/1.1\r\nHost: " + h + "\r\n" + auth, 200},
		"no host":                 {"GET /api/me HTTP/1.1\r\n" + auth, 400},
		"empty host":              {"GET /api/me HTTP/1.1\r\nHost: \r\n" + auth, 421},
		"HTTP/1.0 without a host": {"GET /api/me HTTP/1.0\r\n" + auth, 421},
		"two hosts":               {"GET /api/me HTTP/1.1\r\nHost: " + h + "\r\nHost: evil.example\r\n" + auth, 400},
		"absolute form, foreign":  {"GET http://evil.example/api/me HTTP/1.1\r\nHost: " + h + "\r\n" + auth, 421},
		"absolute form, ours, under a foreign Host": {"GET http://" + h + "/api/me HTTP/1.1\r\nHost: evil.example\r\n" + auth, 200},
		"absolute form, trailing dot":               {"GET http://127.0.0.1.:" + port(s) + "/api/me HTTP/1.1\r\nHost: " + h + "\r\n" + auth, 421},
		"authority form":                            {"CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\n" + auth, 421},
		"tunnel to us":                              {"CONNECT " + h + " HTTP/1.1\r\nHost: " + h + "\r\n" + auth, 405},
		"asterisk form":                             {"OPTIONS * HTTP/1.1\r\nHost: evil.example\r\n" + auth, 200}, // answered by the server itself, empty
		"line end in the host":                      {"GET /api/me HTTP/1.1\r\nHost: " + h + "\r\n evil.example\r\n" + auth, 400},
		"blank before the colon":                    {"GET /api/me HTTP/1.1\r\nHost : " + h + "\r\n" + auth, 400},
	} {
		if got, body := raw(t, s, test.request); got != test.want {
			t.Errorf("%s: %d, want %d\n%.300s", name, got, test.want, body)
		}
	}
}

// TestRequestSmuggling: two readings of where a body ends. The server must
// take none of them.
func TestRequestSmuggling(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t)
	owner := s.Owner()
	g := s.Agent(owner, "helper").Ask("ls")
	hidden := "POST " + authoritytest.GrantPath(g.ID, "deny") + " HTTP/1.1\r\nHost: " + host(s) + "\r\nAuthorization: Bearer " + owner.Bearer + "\r\nContent-Length: 0\r\n\r\n"
	for name, head := range map[string]string{
		"length and chunked":       fmt.Sprintf("Content-Length: %d\r\nTransfer-Encoding: chunked\r\n", len(hidden)+5),
		"two lengths":              fmt.Sprintf("Content-Length: 0\r\nContent-Length: %d\r\n", len(hidden)),
		"odd transfer encoding":    "Transfer-Encoding: xchunked\r\n",
		"two transfer encodings":   "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
		"blank before the colon":   "Transfer-Encoding : chunked\r\n",
		"length with a sign":       fmt.Sprintf("Content-Length: +%d\r\n", len(hidden)),
		"negative length":          "Content-Length: -1\r\n",
		"length with an underline": "Content-Length: 1_0\r\n",
		"folded header":            "X: y\r\n Transfer-Encoding: chunked\r\n",
	} {
		status, body := raw(t, s, "POST /api/health HTTP/1.1\r\nHost: "+host(s)+"\r\nConnection: close\r\n"+head+"\r\n0\r\n\r\n"+hidden)
		if status/100 == 2 {
			t.Errorf("%s: %d %.200s", name, status, body)
		}
	}
	if got := owner.Grant(g.ID).Status; got != grant.Pending {
		t.Errorf("a smuggled request moved the grant to %s", got)
	}
}

// TestForeignOrigins: a page elsewhere, also one on another port of the same
// host, may call nothing but the public keys and the discovery document.
func TestForeignOrigins(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t)
	owner := s.Owner()
	g := s.Agent(owner, "helper").Ask("ls")
	for _, origin := range []string{
		"http://evil.example", "null", "http://127.0.0.1:1", "https://" + host(s), "http://127.0.0.1", s.Pages, "http://vogt.localhost",
		"file://", s.URL + ".evil.example", s.URL + "/", strings.ToUpper(s.URL), "http://user@" + host(s),
	} {
		for _, call := range [][2]string{
			{"GET", "/api/me"}, {"POST", authoritytest.GrantPath(g.ID, "deny")}, {"POST", "/api/panic"}, {"POST", "/api/auth/challenge"},
			{"OPTIONS", "/api/grants"}, {"GET", "/"}, {"GET", "/api/health"}, {"POST", "/api/trust"},
		} {
			a := owner.Do(call[0], call[1], nil, "Origin", origin)
			if a.Status != 403 {
				t.Errorf("origin %q: %s %s: %d %.200s", origin, call[0], call[1], a.Status, a.Body)
			}
			if h := a.Header.Get("Access-Control-Allow-Origin"); h != "" {
				t.Errorf("origin %q: %s: Access-Control-Allow-Origin %q", origin, call[1], h)
			}
		}
		s.Stranger().Do("GET", "/.well-known/jwks.json", nil, "Origin", origin).Want(200)
		// The exception must not open a way round.
		for _, path := range []string{"/.well-known/../api/me", "/.well-known/%2e%2e/api/me", "/.well-known//../api/me", "/.well-known/x/../../api/me"} {
			if a := owner.Do("GET", path, nil, "Origin", origin); strings.Contains(string(a.Body), owner.Email) {
				t.Errorf("origin %q: %s: %d %.200s", origin, path, a.Status, a.Body)
			}
		}
	}
	if got := owner.Grant(g.ID).Status; got != grant.Pending {
		t.Errorf("a foreign page moved the grant to %s", got)
	}
	owner.Do("GET", "/api/me", nil, "Origin", s.URL).Want(200)
}

// TestCookiesAreNoLogin: whatever a browser sends along, the interface takes a
// bearer only.
func TestCookiesAreNoLogin(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t)
	owner := s.Owner()
	for _, h := range [][]string{
		{"Cookie", "vogt=" + owner.Bearer}, {"Authorization", "Basic " + owner.Bearer}, {"Authorization", owner.Bearer},
		{"Authorization", "Bearer"}, {"Authorization", "Bearer "}, {"X-Authorization", "Bearer " + owner.Bearer}, {"Proxy-Authorization", "Bearer " + owner.Bearer},
	} {
		s.Stranger().Do("GET", "/api/me", nil, h...).Problem(401)
	}
	s.Stranger().Get("/api/me?access_token=" + url.QueryEscape(owner.Bearer)).Problem(401)
	for _, ok := range []string{"bearer ", "BEARER ", "Bearer  "} {
		s.Stranger().Do("GET", "/api/me", nil, "Authorization", ok+owner.Bearer).Want(200)
	}
}

// TestForwardedHeaders: what a proxy, or an attacker, says about address, host
// or method is not heard.
func TestForwardedHeaders(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t, pages("the pages"))
	owner := s.Owner()
	for _, h := range []string{"X-Forwarded-Host", "X-Host", "X-Original-Host", "X-HTTP-Host-Override", "Forwarded"} {
		value := "evil.example"
		if h == "Forwarded" {
			value = "host=evil.example;for=127.0.0.1"
		}
		owner.Do("GET", "/api/me", nil, h, value).Want(200)
		// Nor does it make a foreign host ours.
		owner.Do("GET", "/api/me", nil, "Host", "evil.example", h, host(s)).Problem(421)
	}
	for _, h := range []string{"X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override"} {
		s.Manager().Do("GET", "/api/admin/users/owner%40example.com", nil, h, "DELETE").Problem(404)
	}
	for _, h := range []string{"X-Original-URL", "X-Rewrite-URL"} {
		s.Stranger().Do("GET", "/api/health", nil, h, "/api/me").Want(200)
	}
	// Quotas count principals, not addresses: another address is no way out.
	agent := s.Agent(owner, "helper")
	for i := range 30 {
		agent.Ask("cmd", fmt.Sprint(i))
	}
	for _, h := range []string{"X-Forwarded-For", "X-Real-IP", "True-Client-IP", "Forwarded"} {
		agent.Post("/api/grants", authoritytest.Request("more"), h, "203.0.113.7").Problem(429)
	}
}

// TestBodies: size, type and form.
func TestBodies(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t)
	owner := s.Owner()
	agent := s.Agent(owner, "helper")
	big := []byte(`{"reason":"` + strings.Repeat("x", 9<<20) + `"}`)
	agent.Post("/api/grants", big).Problem(413)
	s.Stranger().Post("/api/auth/challenge", big).Problem(413)
	s.Stranger().Post("/api/trust", big).Problem(413)

	g := agent.Ask("ls")
	deny := authoritytest.GrantPath(g.ID, "deny")
	for _, ct := range []string{"text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/json", "application/jsonp", "x", "application/json, text/plain", ";"} {
		if a := owner.Do("POST", deny, `{"note":"x"}`, "Content-Type", ct); a.Status != 415 {
			t.Errorf("content type %q: %d %.200s", ct, a.Status, a.Body)
		}
	}
	if got := owner.Grant(g.ID).Status; got != grant.Pending {
		t.Errorf("the grant is %s", got)
	}
	for _, ct := range []string{"application/json; charset=utf-8", "Application/JSON"} {
		owner.Do("POST", authoritytest.GrantPath(agent.Ask("cmd", ct).ID, "deny"), `{"note":"x"}`, "Content-Type", ct).Want(200)
	}
	// Deep nesting neither crashes nor takes forever.
	deep := strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000)
	agent.Post("/api/grants", `{"x":`+deep+`}`).Problem(400)
	// Half a body is not taken for a whole one.
	conn, err := net.Dial("tcp", host(s))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	const half = `{"id":"owner@example.com"}`
	fmt.Fprintf(conn, "POST /api/auth/challenge HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", host(s), 2*len(half), half)
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(conn); err != nil || strings.Contains(string(b), `"challenge"`) {
		t.Errorf("half a body: %v %.300s", err, b)
	}
}

// TestRedirectsStayHere: the interface sends people to its own pages and
// nowhere else (open redirects).
func TestRedirectsStayHere(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t)
	for _, path := range []string{
		"/", "/login?next=http://evil.example", "/grants/x?callback=http://evil.example", "/trust/..%2f..", "/grants/@evil.example/", "/grants//evil.example",
		"//evil.example", "//evil.example/login", "/login//evil.example", "/grants/%0d%0aLocation:%20http://evil.example", "/\\evil.example",
		"/grant-approval?grant_id=x&callback=http://evil.example",
	} {
		req, err := http.NewRequest("GET", s.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.URL.Opaque = path // as it is, without cleaning
		if strings.HasPrefix(path, "//") {
			req.URL.Opaque = s.URL + path
		}
		client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(path, err)
		}
		resp.Body.Close()
		to := resp.Header.Get("Location")
		switch {
		case resp.StatusCode/100 != 3:
		case strings.HasPrefix(to, s.Pages+"/"):
		case strings.HasPrefix(to, "/") && !strings.HasPrefix(to, "//") && !strings.HasPrefix(to, "/\\"):
		default:
			t.Errorf("%s leads to %q", path, to)
		}
		if len(resp.Header.Values("Location")) > 1 {
			t.Errorf("%s split the header", path)
		}
	}
}

// TestBatchAuthorisesEachItem: the reference's batch let anybody decide
// anything (protocol, weakness 1).
func TestBatchAuthorisesEachItem(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	stranger := s.Person("stranger@example.com")
	foreign := s.Agent(stranger, "foreign")
	sibling := s.Agent(s.owner, "sibling")
	for who, p := range map[string]*authoritytest.Principal{"the requester": s.agent, "a stranger": stranger, "a stranger's agent": foreign, "a sibling": sibling} {
		for _, action := range []string{"approve", "deny", "revoke"} {
			g := s.agent.Ask("cmd", who, action)
			mine := who == "the requester" && action != "approve" // taking back one's own request is allowed
			var out api.BatchResults
			a := p.Post("/api/grants/batch", api.Batch{Operations: []api.Operation{{ID: g.ID, Action: action, GrantType: grant.Always}}})
			a.Into(&out)
			if len(out.Results) != 1 || out.Results[0].Success != mine || (a.Status == 200) != mine {
				t.Errorf("%s, %s: %d %s", who, action, a.Status, a.Body)
			}
			if got := s.owner.Grant(g.ID).Status; !mine && got != grant.Pending {
				t.Errorf("%s, %s: the grant is %s", who, action, got)
			}
		}
	}
	s.Stranger().Post("/api/grants/batch", api.Batch{Operations: []api.Operation{{ID: "x", Action: "deny"}}}).Problem(401)
	// Management narrows and never decides.
	g := s.agent.Ask("managed")
	var out api.BatchResults
	s.Manager().Post("/api/grants/batch", api.Batch{Operations: []api.Operation{{ID: g.ID, Action: "approve"}, {ID: g.ID, Action: "revoke"}}}).Want(207).Into(&out)
	if out.Results[0].Success || !out.Results[1].Success {
		t.Errorf("management: %+v", out)
	}
}

// TestNobodyAuthorisesItself: an agent has no way to a permission that no
// person gave (weaknesses 2 and 6: standing grants).
func TestNobodyAuthorisesItself(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	for _, path := range []string{"/api/standing-grants", "/api/standing-grants/bulk-seed", "/api/users/" + url.PathEscape(s.agent.Email) + "/yolo-policy"} {
		for _, method := range []string{"POST", "PUT", "GET"} {
			if method == "GET" && path == api.PathStanding {
				if a := s.agent.Get(path).Want(200); strings.TrimSpace(string(a.Body)) != "[]" {
					t.Errorf("the patterns of an agent for whom nobody signed any: %s", a.Body)
				}
				continue
			}
			if a := s.agent.Do(method, path, map[string]any{
				"delegate": s.agent.Email, "audience": "shapes", "resource_chain_template": []any{}, "mode": "deny-list", "denyPatterns": []string{"rm *"},
			}); a.Status != 404 && a.Status != 403 && a.Status != 405 && (method != "GET" || a.Status != 200) {
				t.Errorf("%s %s: %d %.200s", method, path, a.Status, a.Body)
			}
		}
	}
	// Whatever a request says of itself, it waits.
	for _, extra := range []map[string]any{
		{"type": "standing"}, {"type": "delegation", "delegate": s.agent.Email, "delegator": s.owner.Email}, {"status": "approved"},
		{"decided_by": s.owner.Email, "decided_at": 1}, {"approved_automatically": true, "auto_approval_kind": "yolo"}, {"owner": s.agent.Email, "approver": s.agent.Email},
		{"Status": "approved", "Type": "always", "decision": map[string]string{"by": s.owner.Email}}, {"grant": map[string]string{"status": "approved"}},
	} {
		body := shaped(s.owner.Email, "rm", "-rf", fmt.Sprint(extra))
		for k, v := range extra {
			body[k] = v
		}
		a := s.agent.Post("/api/grants", body).Want(201)
		var g api.Grant
		a.Into(&g)
		if g.Status != grant.Pending || g.Requester != s.agent.Email || g.Owner != s.owner.Email || g.DecidedBy != "" || g.Automatic {
			t.Errorf("%v: %s", extra, a.Body)
		}
		s.agent.Post("/api/grants/"+g.ID+"/token", nil).Problem(400)
	}
	// Nor is a request in another's name anything but one's own.
	stranger := s.Person("stranger@example.com")
	body := shaped(s.agent.Email, "id")
	var g api.Grant
	stranger.Post("/api/grants", body).Into(&g)
	if g.Requester != stranger.Email {
		t.Errorf("asked as %s", g.Requester)
	}
	s.Stranger().Post("/api/grants", body).Problem(401)
	s.Manager().Post("/api/grants", body).Problem(401)
}

// TestSelfDescriptionDecidesNothing: a low-risk detail for rm -rf (weakness 7).
func TestSelfDescriptionDecidesNothing(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	harmless := s.agent.AskFor(lying("ls", "ls"))
	s.owner.Approve(harmless.ID, grant.Always, 0)
	if harmless.Risk != "low" {
		t.Errorf("the risk that the client claims counts: %s", harmless.Risk)
	}
	var g api.Grant
	s.agent.Post("/api/grants", lying("ls", "rm", "-rf", "/srv/data")).Want(201).Into(&g)
	if g.Risk != "critical" || g.Program != "rm" || g.Status != grant.Pending || g.Automatic {
		t.Errorf("rm under the details of ls: %+v", g)
	}
	// The deciding verbs are critical under whatever name and detail.
	for _, argv := range [][]string{
		{"vogt", "grant", "approve", g.ID}, {"/usr/bin/vogt", "grant", "approve", g.ID}, {"./x/../vogt", "resume"}, {"vogtd"},
		{"env", "vogt", "login"}, {"sh", "-c", "vogt grant approve " + g.ID}, {"apes", "grants", "approve", g.ID},
	} {
		var g api.Grant
		s.agent.Post("/api/grants", lying("ls", argv...)).Want(201).Into(&g)
		if g.Risk != "critical" {
			t.Errorf("%q is %s", argv, g.Risk)
		}
		s.owner.Post("/api/grants/"+g.ID+"/approve", nil).Problem(403) // not by a stored login, even under the switch
	}
	link := lying("ls", "harmless", "grant", "approve", "x")
	link.Context.Executable = "/usr/bin/vogt"
	if g := s.agent.AskFor(link); g.Risk != "critical" {
		t.Errorf("a link to vogt is %s", g.Risk)
	}
}

// lying is a request whose details describe cli, whatever it runs.
func lying(cli string, argv ...string) grant.Request {
	w := detail.Wire{
		Type: detail.WireCLI, CLI: cli, Operation: cli + ".read", Action: "read", Display: "Harmless", Risk: "low",
		Chain: []detail.Resource{{Name: "any"}},
	}
	w.Permission = w.CanonicalPermission()
	return grant.Request{
		Host: "vm", Audience: "shapes", Type: grant.Once, Command: argv, CmdHash: detail.CmdHash([]string{cli}), Reason: "harmless",
		Permissions: []string{w.Permission}, Details: []detail.Wire{w},
		Context: &grant.Context{AdapterID: cli, AdapterDig: "synthetic", Executable: "/bin/" + cli, ArgvHash: detail.ArgvHash([]string{cli})},
	}
}

// TestRunAsIsNoDetail: a permission for a command is none for another OS user
// (weakness 8).
func TestRunAsIsNoDetail(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	plain := authoritytest.Request("systemctl", "restart", "x")
	g := s.agent.AskFor(plain)
	s.owner.Approve(g.ID, grant.Always, 0)
	for _, user := range []string{"root", "nobody", s.owner.Email} {
		as := plain
		as.RunAs = user
		got := s.agent.AskFor(as)
		if got.ID == g.ID || got.Status != grant.Pending || got.Risk != "critical" {
			t.Errorf("as %s: %+v", user, got)
		}
		s.owner.Post("/api/grants/"+got.ID+"/approve", nil).Problem(403)
	}
}

// TestCommandHashIsAmbiguous: ["a b"] and ["a","b"] share it on the wire and
// nothing else (weakness 23).
func TestCommandHashIsAmbiguous(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	g := s.agent.Ask("sh", "-c", "echo a")
	s.owner.Approve(g.ID, grant.Always, 0)
	for _, argv := range [][]string{{"sh", "-c echo a"}, {"sh -c echo a"}, {"sh", "-c", "echo", "a"}} {
		got := s.agent.Ask(argv...)
		if got.Request.CmdHash != g.Request.CmdHash {
			t.Errorf("%q has another cmd_hash, so it proves nothing", argv)
		}
		if got.ID == g.ID || got.Automatic {
			t.Errorf("%q is served by the answer for another command", argv)
		}
	}
}

// TestOpenOracles: addresses at which the reference answered, or even spent a
// grant, without a login (weakness 25).
func TestOpenOracles(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	g := s.agent.Ask("ls")
	s.owner.Post("/api/grants/"+g.ID+"/approve", nil).Want(200)
	jwt := s.agent.Token(g.ID)
	for _, c := range []*authoritytest.Client{s.Stranger(), &s.agent.Client, &s.owner.Client} {
		for _, path := range []string{"/api/grants/cross-sp-token", "/api/session/login", "/api/register", "/authorize", "/token"} {
			for _, method := range []string{"GET", "POST"} {
				a := c.Do(method, path, map[string]string{"token": jwt, "delegate": s.agent.Email, "audience": "shapes"})
				if a.Status/100 == 2 {
					t.Errorf("%s %s: %d %.200s", method, path, a.Status, a.Body)
				}
			}
		}
	}
	// Verifying spends nothing and says only whether the token would be taken.
	for token, want := range map[string]bool{jwt: true, s.agent.Bearer: false, "x": false, "": false, jwt + "x": false} {
		a := s.Stranger().Post("/api/grants/verify", map[string]string{"token": token}).Want(200)
		if strings.Contains(string(a.Body), `"valid":true`) != want || strings.Contains(string(a.Body), "@") {
			t.Errorf("verified: %s, want %v", a.Body, want)
		}
	}
	if got := s.owner.Grant(g.ID); got.Uses != 0 || got.Status != grant.Approved {
		t.Errorf("an oracle used the grant: %+v", got)
	}
	// What a stranger may read without a login is public.
	for _, path := range []string{"/api/audit/checkpoint", "/api/audit/consistency?old=1&new=2", "/api/health"} {
		if a := s.Stranger().Get(path).Want(200); strings.Contains(string(a.Body), s.agent.Email) || strings.Contains(string(a.Body), s.owner.Email) {
			t.Errorf("%s tells of people: %.300s", path, a.Body)
		}
	}
	for _, q := range []string{"old=0&new=1", "old=2&new=1", "old=1&new=100000", "old=-1&new=1", "old=x&new=1", ""} {
		s.Stranger().Get("/api/audit/consistency?" + q).Problem(400)
	}
}

// TestNarrowingIsForEverybodyWhoAnswers: an owner who is not the approver, and
// management, may always take something back (weakness 20).
func TestNarrowingIsForEverybodyWhoAnswers(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t)
	owner, approver := s.Owner(), s.Person("approver@example.com")
	agent := s.ManagedAgent("helper", owner, approver)
	for name, c := range map[string]*authoritytest.Client{"owner": &owner.Client, "approver": &approver.Client, "management": s.Manager(), "requester": &agent.Client} {
		for _, verb := range []string{"deny", "revoke"} {
			g := agent.Ask("cmd", name, verb)
			c.Post(authoritytest.GrantPath(g.ID, verb), nil).Want(200)
		}
		g := agent.Ask("cmd", name)
		approver.Approve(g.ID, grant.Always, 0)
		c.Post(authoritytest.GrantPath(g.ID, "revoke"), nil).Want(200)
	}
}

// TestNothingIsLeftOfTheDeleted: logins, keys, permissions (weakness 24).
func TestNothingIsLeftOfTheDeleted(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	g := s.agent.Ask("ls")
	s.owner.Approve(g.ID, grant.Always, 0)
	jwt := s.agent.Token(g.ID)
	s.Manager().Do("DELETE", "/api/admin/users/"+url.PathEscape(s.agent.Email), nil).Want(200)
	s.agent.Get("/api/me").Problem(401)
	s.agent.TryLogin(s.agent.Key).Problem(401)
	if a := s.Consume(g.ID, jwt); a.Status == 200 && !strings.Contains(string(a.Body), `"error":"revoked"`) {
		t.Errorf("%d %.300s", a.Status, a.Body)
	}
	if got := s.owner.Grant(g.ID).Status; got != grant.Revoked {
		t.Errorf("the permission is %s", got)
	}
	s.Manager().Get("/api/admin/users/" + url.PathEscape(s.agent.Email) + "/ssh-keys").Problem(404)
	if a := s.owner.Get("/api/my-agents"); strings.Contains(string(a.Body), s.agent.Email) {
		t.Errorf("still listed: %s", a.Body)
	}
	// The key is free again; it was not burnt.
	s.owner.Post("/api/enroll", api.Enroll{Name: "other", PublicKey: s.agent.Key.Line}).Want(200)
}

// TestListPages: equal times, rows that arrive while one turns the pages, and
// every page size (weakness 14).
func TestListPages(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	want := map[string]bool{}
	for i := range 23 {
		want[s.agent.Ask("cmd", fmt.Sprint(i)).ID] = true
		if i%7 == 6 {
			s.Clock.Advance(time.Millisecond) // several share each instant
		}
	}
	walk := func(c *authoritytest.Client, limit int, between func()) map[string]int {
		t.Helper()
		seen := map[string]int{}
		cursor := ""
		for range 100 {
			var page api.List
			c.Get(fmt.Sprintf("/api/grants?limit=%d&cursor=%s", limit, url.QueryEscape(cursor))).Into(&page)
			for _, g := range page.Data {
				seen[g.ID]++
			}
			if page.Pagination.HasMore != (page.Pagination.Cursor != nil) {
				t.Errorf("limit %d: has_more %v, cursor %v", limit, page.Pagination.HasMore, page.Pagination.Cursor)
			}
			if !page.Pagination.HasMore {
				return seen
			}
			if len(page.Data) != limit {
				t.Errorf("limit %d: a page of %d, and more", limit, len(page.Data))
			}
			cursor = *page.Pagination.Cursor
			between()
		}
		t.Fatalf("limit %d: no end", limit)
		return nil
	}
	for _, c := range []*authoritytest.Client{&s.agent.Client, &s.owner.Client} {
		for _, limit := range []int{1, 2, 3, 7, 22, 23, 24, 100} {
			seen := walk(c, limit, func() {})
			if len(seen) != len(want) {
				t.Errorf("limit %d: %d of %d grants", limit, len(seen), len(want))
			}
			for id, n := range seen {
				if n != 1 || !want[id] {
					t.Errorf("limit %d: %s was listed %d times", limit, id, n)
				}
			}
		}
	}
	// What arrives meanwhile moves nothing that was there.
	n := 0
	for id, times := range walk(&s.agent.Client, 5, func() { n++; s.agent.Ask("meanwhile", fmt.Sprint(n)) }) {
		if times != 1 {
			t.Errorf("%s was listed %d times", id, times)
		}
		delete(want, id)
	}
	if len(want) != 0 {
		t.Errorf("%d grants were skipped", len(want))
	}
}

// TestExport: the whole log, complete, or visibly cut off.
func TestExport(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.agent.Ask("ls")
	a := s.owner.Get("/api/audit/export").Want(200)
	lines := bytes.Split(bytes.TrimSuffix(a.Body, []byte("\n")), []byte("\n"))
	if len(lines) != len(s.Records())+1 {
		t.Errorf("%d lines for %d records", len(lines), len(s.Records()))
	}
	for i, line := range lines {
		if !json.Valid(line) {
			t.Errorf("line %d: %s", i, line)
		}
	}
	s.agent.Get("/api/audit/export").Problem(403)
	s.Stranger().Get("/api/audit/export").Problem(401)
}

// TestEvents: a caller sees the changes of its own grants, as they happen, and
// nobody else's; the stream ends with the login.
func TestEvents(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	stranger := s.Person("stranger@example.com")
	foreign := s.Agent(stranger, "foreign")
	s.Stranger().Get("/api/events").Problem(401)
	open := func(p *authoritytest.Principal) (*bufio.Scanner, func()) {
		t.Helper()
		req, err := http.NewRequest("GET", s.URL+"/api/events", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+p.Bearer)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if ct := resp.Header.Get("Content-Type"); ct != "text/event-stream" {
			t.Fatalf("content type %q", ct)
		}
		lines := bufio.NewScanner(resp.Body)
		for lines.Scan() && lines.Text() != "" { // the greeting: the stream is subscribed
		}
		return lines, func() { resp.Body.Close() }
	}
	next := func(lines *bufio.Scanner) (id string, status grant.Status) {
		t.Helper()
		for lines.Scan() {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				var e struct {
					ID     string
					Status grant.Status
				}
				if err := json.Unmarshal([]byte(data), &e); err != nil {
					t.Fatal(err)
				}
				return e.ID, e.Status
			}
		}
		return "", ""
	}
	lines, stop := open(s.owner)
	defer stop()
	foreign.Ask("theirs")
	g := s.agent.Ask("mine")
	if id, status := next(lines); id != g.ID || status != grant.Pending {
		t.Errorf("the first event is of %s, %s", id, status)
	}
	s.owner.Approve(g.ID, grant.Once, 0)
	if id, status := next(lines); id != g.ID || status != grant.Approved {
		t.Errorf("the second event is of %s, %s", id, status)
	}
	// A login that was revoked is told nothing more.
	s.owner.Post("/api/auth/logout", nil).Want(200)
	s.agent.Ask("after")
	if id, status := next(lines); id != "" {
		t.Errorf("after the logout: %s %s", id, status)
	}
}
