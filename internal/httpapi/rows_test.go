package httpapi_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"vogt/internal/api"
	"vogt/internal/authoritytest"
	"vogt/internal/detail"
	"vogt/internal/grant"
)

// The reference of the wire lists where specification, server and client disagree,
// and what is weak. Each row is decided: here by a use or an attack against the real
// handler, or by the test of another part.

// elsewhere are rows that belong to parts with tests of their own: which tests, by
// folder below internal and name.
var elsewhere = map[string]string{
	"disagreement 1": "authority TestRefreshAttacks", // renewed without client_id, refused with another one
	"weakness 3":     "authority TestClientCredentials",
	"weakness 4":     "authority TestDelegatedTokenIsNoLogin",
	"weakness 21":    "authority TestSigningKeyRotation",
	"weakness 22":    "fetch TestRebinding",
	"weakness 26":    "authority TestDelegatedTokens",
	"shim 6":         "authority TestRefreshAttacks",
	"shim 10":        "authority TestClientCredentials", // expires_in is compared with exp
}

// TestElsewhere: the tests that are named for a row exist.
func TestElsewhere(t *testing.T) {
	t.Parallel()
	for row, named := range elsewhere {
		folder, name, _ := strings.Cut(named, " ")
		files, err := filepath.Glob(filepath.Join("..", folder, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, file := range files {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			found = found || bytes.Contains(b, []byte("\nfunc "+name+"(t *testing.T)"))
		}
		if !found {
			t.Errorf("%s: there is no test %s in %s", row, name, folder)
		}
	}
}

// counts are how many rows each list has.
var rowCounts = map[string]int{"disagreement": 24, "weakness": 28, "shim": 12, "hole": 7}

// post sends a request as the client does, and returns the grant.
func (s *scene) post(t *testing.T, body map[string]any) api.Grant {
	t.Helper()
	var g api.Grant
	s.agent.Post("/api/grants", body).Into(&g)
	return g
}

// approved is a once-grant for a command that nothing covers, and its token.
func (s *scene) approved(t *testing.T, argv ...string) (id, jwt string) {
	t.Helper()
	g := s.post(t, shaped(s.agent.Email, argv...))
	s.owner.Post(authoritytest.GrantPath(g.ID, "approve"), nil).Want(200)
	return g.ID, s.agent.Token(g.ID)
}

// TestRows runs every row that is decided here, and finds those that are nowhere.
func TestRows(t *testing.T) {
	t.Parallel()
	rows := map[string]func(*testing.T, *scene){}
	for _, part := range []map[string]func(*testing.T, *scene){disagreements(), weaknesses(), moreWeaknesses(), otherParts(), shimsAndHoles()} {
		for name, test := range part {
			rows[name] = test
		}
	}
	for list, n := range rowCounts {
		for i := 1; i <= n; i++ {
			name := fmt.Sprint(list, " ", i)
			if test := rows[name]; test != nil {
				t.Run(name, func(t *testing.T) { t.Parallel(); test(t, newScene(t)) })
			} else if elsewhere[name] == "" {
				t.Errorf("%s is decided nowhere", name)
			}
		}
	}
}

// disagreements are the rows of protocol 8: what the client expects is served.
func disagreements() map[string]func(*testing.T, *scene) {
	return map[string]func(*testing.T, *scene){
		"disagreement 2": func(t *testing.T, s *scene) {
			for _, path := range []string{"/api/auth/challenge", "/api/agent/challenge"} {
				for _, name := range []string{"id", "agent_id"} {
					reads(t, s.Stranger().Post(path, map[string]string{name: s.agent.Email}), "challenge string")
				}
			}
		},
		"disagreement 3": func(t *testing.T, s *scene) {
			reads(t, s.Stranger().Get("/.well-known/openid-configuration"), "ddisa_auth_challenge_endpoint string", "ddisa_auth_authenticate_endpoint string",
				"ddisa_agent_challenge_endpoint string", "ddisa_agent_authenticate_endpoint string")
		},
		"disagreement 4": func(t *testing.T, s *scene) {
			s.agent.Post("/api/grants", map[string]any{"target": "vm", "grant_type": "once", "command": []string{"ls"}}).Problem(400)
			reads(t, s.agent.Post("/api/grants", map[string]any{"target_host": "vm", "audience": "shapes", "grant_type": "once", "command": []string{"lsof"}}), "id string")
		},
		"disagreement 5": func(t *testing.T, s *scene) {
			g := s.post(t, shaped(s.agent.Email, "gh", "repo", "list", "openape"))
			if got := g.Request.CmdHash; got != "1c9a6c84be642af667ac5b3805615c29455f3c02dcc87272be50eb73fa33f197" {
				t.Errorf("cmd_hash %s", got)
			}
			if got := g.Request.Context.ArgvHash; got != "SHA-256:60fbe06504d408b36b7ddc44714752e8ad58214ef5b1af4b4b9e44768ec4a758" {
				t.Errorf("argv_hash %s", got)
			}
		},
		"disagreement 6": func(t *testing.T, s *scene) {
			id, _ := s.approved(t, "cmd")
			reads(t, s.agent.Post(authoritytest.GrantPath(id, "token"), nil), "authz_jwt string")
		},
		"disagreement 7": func(t *testing.T, s *scene) {
			reads(t, s.agent.Get("/api/grants"), "data array", "pagination.has_more bool")
		},
		"disagreement 8": func(t *testing.T, s *scene) {
			g := s.agent.Ask("cmd")
			reads(t, s.agent.Get("/api/grants"), "data.0.requester string", "data.0.owner string", "data.0.type string")
			reads(t, s.agent.Get(authoritytest.GrantPath(g.ID)), "requester string", "owner string")
		},
		"disagreement 11": func(t *testing.T, s *scene) {
			reads(t, s.owner.Get(policyPath(s.agent.Email, "")), "policy null", "mode string", "allowPatterns array", "denyPatterns array")
		},
		"disagreement 12": func(t *testing.T, s *scene) {
			reads(t, s.owner.Post(authoritytest.GrantPath(s.agent.Ask("cmd").ID, "approve"), nil), "grant.id string", "grant.status string")
		},
		"disagreement 13": func(t *testing.T, s *scene) {
			id, _ := s.approved(t, "cmd")
			s.owner.Post(authoritytest.GrantPath(id, "approve"), nil).Problem(409)
		},
		"disagreement 14": func(t *testing.T, s *scene) {
			var login api.Login
			s.agent.TryLogin(s.agent.Key).Into(&login)
			if claims := claimsOf(t, login.Token); claims["exp"].(float64)-claims["iat"].(float64) != float64(login.ExpiresIn) {
				t.Errorf("expires_in %d, claims %v", login.ExpiresIn, claims)
			}
		},
		"disagreement 15": func(t *testing.T, s *scene) {
			id, jwt := s.approved(t, "cmd")
			reads(t, s.Consume(id, jwt), "status string")
			reads(t, s.Consume(id, jwt), "status string", "error string")
		},
		"disagreement 17": func(t *testing.T, s *scene) {
			g := s.agent.Ask("cmd", "secret-word")
			if a := s.Stranger().Get(authoritytest.GrantPath(g.ID)).Want(200); len(a.Body) > 80 || strings.Contains(string(a.Body), "secret-word") {
				t.Errorf("a stranger reads %s", a.Body)
			}
			if a := s.Person("x@example.com").Get(authoritytest.GrantPath(g.ID)).Want(200); strings.Contains(string(a.Body), "secret-word") {
				t.Errorf("another person reads %s", a.Body)
			}
		},
		"disagreement 18": func(t *testing.T, s *scene) {
			for i := range 25 {
				s.owner.Post(api.PathStanding, wireStanding(s.agent.Email, map[string]any{"resource_chain_template": link("filesystem", "path", fmt.Sprintf("/home/p/%d/**", i))})).Want(201)
			}
			g := s.agent.Ask("cmd")
			s.owner.Approve(g.ID, grant.Always, 0)
			if a := s.agent.Get("/api/grants?status=approved"); !strings.Contains(string(a.Body), g.ID) || strings.Contains(string(a.Body), `"type":"standing"`) {
				t.Errorf("the reuse list: %.400s", a.Body)
			}
		},
		"disagreement 19": func(t *testing.T, s *scene) {
			// Closed: an agent enrols nobody, under whatever attribution.
			s.agent.Post("/api/enroll", map[string]string{"name": "child", "publicKey": s.NewKey("child").Line, "owner": s.owner.Email}).Problem(403)
		},
		"disagreement 20": func(t *testing.T, s *scene) {
			s.agent.Get("/api/grants/" + url.PathEscape("[object Promise]")).Problem(404)
		},
		"disagreement 21": func(t *testing.T, s *scene) {
			reads(t, s.Stranger().Get("/.well-known/jwks.json"), "keys.0.kty string", "keys.0.crv string", "keys.0.x string")
			_, jwt := s.approved(t, "cmd")
			var header map[string]any
			if err := json.Unmarshal(decoded(t, strings.SplitN(jwt, ".", 2)[0]), &header); err != nil || header["alg"] != "EdDSA" {
				t.Errorf("header %v, %v", header, err)
			}
		},
		"disagreement 22": func(t *testing.T, s *scene) {
			body := shaped(s.agent.Email, "cmd")
			body["grant_type"] = "timed"
			g := s.post(t, body)
			if g.Status != grant.Pending {
				t.Fatalf("%+v", g)
			}
			s.owner.Post(authoritytest.GrantPath(g.ID, "approve"), nil).Problem(400)
			reads(t, s.owner.Post(authoritytest.GrantPath(g.ID, "approve"), map[string]any{"grant_type": "timed", "duration": 60}), "grant.expires_at number")
		},
	}
}

// weaknesses are rows 1 to 14 of protocol 9: what is weak there is closed.
func weaknesses() map[string]func(*testing.T, *scene) {
	return map[string]func(*testing.T, *scene){
		"weakness 1": func(t *testing.T, s *scene) {
			g := s.agent.Ask("cmd")
			for _, c := range []*authoritytest.Client{&s.agent.Client, &s.Person("x@example.com").Client} {
				c.Post("/api/grants/batch", map[string]any{"operations": []map[string]string{{"id": g.ID, "action": "approve"}}}).Want(207)
			}
			if got := s.owner.Grant(g.ID).Status; got != grant.Pending {
				t.Errorf("it is %s", got)
			}
		},
		"weakness 2": func(t *testing.T, s *scene) {
			s.agent.Post(api.PathStanding, wireStanding(s.agent.Email, nil)).Problem(403)
			s.Person("x@example.com").Post(api.PathStanding, wireStanding(s.agent.Email, nil)).Problem(404)
		},
		"weakness 5": func(t *testing.T, s *scene) {
			id, jwt := s.approved(t, "cmd")
			(&authoritytest.Client{S: s.Server, Bearer: jwt}).Get("/api/grants").Problem(401)
			for _, wrong := range []string{s.agent.Bearer, s.owner.Bearer, jwt[:len(jwt)-2], ""} {
				if a := s.Consume(id, wrong); a.Status != 401 {
					t.Errorf("consumed with %.20q: %d %s", wrong, a.Status, a.Body)
				}
			}
			other, _ := s.approved(t, "cmd", "other")
			s.Consume(other, jwt).Problem(400)
		},
		"weakness 6": func(t *testing.T, s *scene) {
			var st api.Standing
			s.owner.Post(api.PathStanding, wireStanding(s.agent.Email, nil)).Into(&st)
			g := s.post(t, map[string]any{"requester": s.agent.Email, "target_host": "*", "audience": "shapes", "grant_type": "always", "delegate": s.agent.Email,
				"type": "standing", "permissions": []string{}, "command": []string{"cmd"}})
			if g.Status != grant.Pending || g.ID == st.ID {
				t.Errorf("an unstructured request: %+v", g)
			}
			s.agent.Post(authoritytest.GrantPath(st.ID, "token"), nil).Problem(404)
			_, jwt := s.approved(t, "cmd", "x")
			s.Consume(st.ID, jwt).Problem(400)
		},
		"weakness 7": func(t *testing.T, s *scene) {
			s.owner.Post(api.PathStanding, wireStanding(s.agent.Email, nil)).Want(201)
			if g := s.agent.AskFor(lying("cat", "rm", "-rf", "/home/p/a")); g.Status != grant.Pending || g.Risk != "critical" {
				t.Errorf("%+v", g)
			}
		},
		"weakness 8": func(t *testing.T, s *scene) {
			s.owner.Post(api.PathStanding, wireStanding(s.agent.Email, nil)).Want(201)
			body := shaped(s.agent.Email, "cat", "/home/p/a")
			body["run_as"] = "root"
			if g := s.post(t, body); g.Status != grant.Pending || g.Risk != "critical" {
				t.Errorf("%+v", g)
			}
		},
		"weakness 9": func(t *testing.T, s *scene) {
			s.owner.Post(api.PathStanding, wireStanding(s.agent.Email, nil)).Want(201)
			body := shaped(s.agent.Email, "cat", "/home/p/a")
			body["grant_type"], body["duration"] = "timed", 1<<20
			g := s.post(t, body)
			if g.Status != grant.Approved || g.Request.Type != grant.Once || g.ValidUntil > s.Clock.Now().Unix()+300 {
				t.Errorf("%+v", g)
			}
		},
		"weakness 10": func(t *testing.T, s *scene) {
			var st api.Standing
			s.owner.Post(api.PathStanding, wireStanding(s.agent.Email, nil)).Into(&st)
			g := s.post(t, shaped(s.agent.Email, "cat", "/home/p/a"))
			jwt := s.agent.Token(g.ID)
			s.owner.Do("DELETE", api.PathStanding+"/"+st.ID, nil).Want(200)
			if a := s.Consume(g.ID, jwt); a.Status/100 == 2 && !strings.Contains(string(a.Body), `"error"`) {
				t.Errorf("used after the rule was revoked: %s", a.Body)
			}
			always := s.agent.Ask("cmd")
			s.owner.Approve(always.ID, grant.Always, 0)
			jwt = s.agent.Token(always.ID)
			s.owner.Do("PATCH", api.PathMyAgents+"/"+url.PathEscape(s.agent.Email), map[string]bool{"isActive": false}).Want(200)
			if a := s.Consume(always.ID, jwt); a.Status/100 == 2 && !strings.Contains(string(a.Body), `"error"`) {
				t.Errorf("used by an agent that is switched off: %s", a.Body)
			}
			s.agent.Get("/api/grants").Problem(401)
		},
		"weakness 11": func(t *testing.T, s *scene) {
			s.owner.Post(api.PathStanding, wireStanding(s.agent.Email, map[string]any{"resource_chain_template": link("filesystem", "path", "/tmp/*")})).Want(201)
			for _, path := range []string{"/tmp/../etc/shadow", "/tmp/x/../../etc/shadow", "/tmp/d/x", "/tmp/..", "/tmp//../etc/shadow", "/tmp/./../etc/shadow"} {
				if g := s.post(t, shaped(s.agent.Email, "cat", path)); g.Status != grant.Pending {
					t.Errorf("%s is covered", path)
				}
			}
			if g := s.post(t, shaped(s.agent.Email, "cat", "/tmp/x")); g.Status != grant.Approved {
				t.Errorf("/tmp/x: %+v", g)
			}
		},
		"weakness 12": func(t *testing.T, s *scene) {
			id, jwt := s.approved(t, "cmd")
			var wg sync.WaitGroup
			var mu sync.Mutex
			won := 0
			for range 20 {
				wg.Go(func() {
					a, err := (&authoritytest.Client{S: s.Server, Bearer: jwt}).Try("POST", authoritytest.GrantPath(id, "consume"), nil)
					mu.Lock()
					defer mu.Unlock()
					if err == nil && bytes.Contains(a.Body, []byte(`"status":"consumed"`)) {
						won++
					}
				})
			}
			if wg.Wait(); won != 1 {
				t.Errorf("%d of 20 consumed it", won)
			}
		},
		"weakness 13": func(t *testing.T, s *scene) {
			id, _ := s.approved(t, "cmd")
			waits := s.agent.Ask("cmd", "waits")
			s.Clock.Advance(time.Hour)
			s.agent.Post(authoritytest.GrantPath(id, "token"), nil).Problem(410)
			s.Clock.Advance(47 * time.Hour)
			s.owner.Login()
			s.owner.Post(authoritytest.GrantPath(waits.ID, "approve"), nil).Problem(410)
			if a := s.owner.Get("/api/grants?status=approved"); strings.Contains(string(a.Body), id) {
				t.Errorf("expired and listed: %s", a.Body)
			}
		},
		"weakness 14": func(t *testing.T, s *scene) {
			want := map[string]bool{}
			for i := range 7 { // in the same instant
				want[s.agent.Ask("cmd", fmt.Sprint(i)).ID] = true
			}
			cursor := ""
			for range 10 {
				var page api.List
				s.owner.Get("/api/grants?limit=2&cursor=" + cursor).Into(&page)
				for _, g := range page.Data {
					if !want[g.ID] {
						t.Fatalf("%s comes twice", g.ID)
					}
					delete(want, g.ID)
				}
				if page.Pagination.Cursor == nil {
					break
				}
				cursor = *page.Pagination.Cursor
			}
			if len(want) > 0 {
				t.Errorf("skipped: %v", want)
			}
		},
	}
}

// moreWeaknesses are rows 15 to 28 of protocol 9.
func moreWeaknesses() map[string]func(*testing.T, *scene) {
	return map[string]func(*testing.T, *scene){
		"weakness 15": func(t *testing.T, s *scene) {
			a, b := detail.Command{Program: "cat", Action: "read", Chain: []detail.Resource{{Name: "read", Selector: map[string]string{"path": "/a].read[path=/b"}}}},
				detail.Command{Program: "cat", Action: "read", Chain: []detail.Resource{{Name: "read", Selector: map[string]string{"path": "/a"}}, {Name: "read", Selector: map[string]string{"path": "/b"}}}}
			if a.Permission() == b.Permission() {
				t.Errorf("two details share %s", a.Permission())
			}
			g := s.agent.Ask("cat", "/a].read[path=/b")
			s.owner.Approve(g.ID, grant.Always, 0)
			if again := s.agent.Ask("cat", "/a", "/b"); again.ID == g.ID || again.Status != grant.Pending {
				t.Errorf("%+v", again)
			}
		},
		"weakness 16": func(t *testing.T, s *scene) {
			old := s.agent.AskFor(inFolder("cat", "/home/p/a"))
			s.owner.Approve(old.ID, grant.Always, 0)
			g := s.agent.AskFor(inFolder("cat", "/home/p/b"))
			s.owner.Post(authoritytest.GrantPath(g.ID, "approve"), map[string]any{"grant_type": "always", "extend_mode": "merge", "extend_grant_ids": []string{old.ID, "ghost"}}).Problem(404)
			if got := s.owner.Grant(old.ID).Status; got != grant.Approved {
				t.Errorf("a failure has left the old grant %s", got)
			}
		},
		"weakness 17": func(t *testing.T, s *scene) {
			a := s.Stranger().Get("/grant-approval?grant_id=x&callback=" + url.QueryEscape("http://evil.example"))
			if to := a.Header.Get("Location"); a.Status != 302 || !strings.HasPrefix(to, s.Pages+"/") {
				t.Errorf("%d leads to %q", a.Status, to)
			}
		},
		"weakness 19": func(t *testing.T, s *scene) {
			g := s.agent.Ask("cmd")
			s.owner.Post(authoritytest.GrantPath(g.ID, "approve"), map[string]any{"duration": 60}).Problem(400)
			s.owner.Post(authoritytest.GrantPath(g.ID, "approve"), map[string]any{"grant_type": "always", "duration": 60}).Problem(400)
			if got := s.owner.Grant(g.ID).Status; got != grant.Pending {
				t.Errorf("it is %s", got)
			}
		},
		"weakness 20": func(t *testing.T, s *scene) {
			approver := s.Person("approver@example.com")
			agent := s.ManagedAgent("managed", s.owner, approver)
			g := agent.Ask("cmd")
			approver.Approve(g.ID, grant.Always, 0)
			s.owner.Post(authoritytest.GrantPath(g.ID, "revoke"), nil).Want(200)
			for _, verb := range []string{"deny", "revoke"} {
				s.Manager().Post(authoritytest.GrantPath(agent.Ask("cmd", verb).ID, verb), nil).Want(200)
			}
		},
		"weakness 23": func(t *testing.T, s *scene) {
			g := s.agent.Ask("cmd", "a b")
			s.owner.Approve(g.ID, grant.Always, 0)
			if again := s.agent.Ask("cmd", "a", "b"); again.Request.CmdHash != g.Request.CmdHash || again.Status != grant.Pending {
				t.Errorf("%+v", again)
			}
		},
		"weakness 24": func(t *testing.T, s *scene) {
			other := s.Person("second@example.com")
			agent := s.Agent(other, "theirs")
			other.Post(api.PathStanding, wireStanding(agent.Email, nil)).Want(201)
			other.Do("PUT", policyPath(agent.Email, ""), put("allow-list", []string{"cmd"}, nil, nil, nil)).Want(200)
			s.Manager().Do("DELETE", "/api/admin/users/"+url.PathEscape(other.Email), nil).Want(200)
			for _, p := range []*authoritytest.Principal{other, agent} {
				if a := p.Get("/api/grants"); a.Status/100 == 2 {
					t.Errorf("%s reads on: %s", p.Name, a.Body)
				}
				if a := p.TryLogin(p.Key); a.Status/100 == 2 {
					t.Errorf("%s logs in", p.Name)
				}
			}
		},
		"weakness 25": func(t *testing.T, s *scene) {
			id, jwt := s.approved(t, "cmd", "secret-word")
			a := s.Stranger().Post("/api/grants/verify", map[string]string{"token": jwt}).Want(200)
			if strings.Contains(string(a.Body), "secret-word") || strings.Contains(string(a.Body), s.agent.Email) {
				t.Errorf("verify tells %s", a.Body)
			}
			reads(t, s.Consume(id, jwt), "status string", "grant object") // it was not spent
			if a := s.Stranger().Post("/api/grants/verify", map[string]string{"token": jwt}).Want(200); !strings.Contains(string(a.Body), `"valid":false`) {
				t.Errorf("spent, and yet: %s", a.Body)
			}
		},
		"weakness 27": func(t *testing.T, s *scene) {
			g := s.agent.Ask("cmd")
			tag := func() string { return s.agent.Get(authoritytest.GrantPath(g.ID)).Header.Get("ETag") }
			seen := []string{tag()}
			s.owner.Approve(g.ID, grant.Always, 0)
			seen = append(seen, tag())
			for range 2 {
				s.Consume(g.ID, s.agent.Token(g.ID)).Want(200)
				seen = append(seen, tag())
			}
			if slices.Sort(seen); len(slices.Compact(seen)) != 4 {
				t.Errorf("tags %q", seen)
			}
			s.agent.Do("GET", authoritytest.GrantPath(g.ID), nil, "If-None-Match", tag()).Want(http.StatusNotModified)
		},
		"weakness 28": func(t *testing.T, s *scene) {
			known := s.Stranger().Post("/api/auth/challenge", map[string]string{"id": s.agent.Email})
			unknown := s.Stranger().Post("/api/auth/challenge", map[string]string{"id": "ghost@vm"})
			if known.Status != unknown.Status || len(known.Body) != len(unknown.Body) {
				t.Errorf("%d %s, %d %s", known.Status, known.Body, unknown.Status, unknown.Body)
			}
		},
	}
}

// otherParts are rows of protocol 8 and 9 about delegations, administration and
// logging in elsewhere.
func otherParts() map[string]func(*testing.T, *scene) {
	return map[string]func(*testing.T, *scene){
		"disagreement 9": func(t *testing.T, s *scene) {
			v := reads(t, s.owner.Post("/api/delegations", map[string]any{"delegate": s.agent.Email, "audience": "plans.example.com", "grant_type": "always", "scopes": []string{"a"}}), "id string")
			reads(t, s.owner.Get("/api/delegations"), "data.0.id string", "data.0.delegator string", "data.0.delegate string", "data.0.audience string", "data.0.scopes array")
			reads(t, s.owner.Do("DELETE", "/api/delegations/"+text(t, v, "id"), nil), "id string")
		},
		"disagreement 10": func(t *testing.T, s *scene) {
			a := s.owner.Get("/api/me/sessions")
			reads(t, a, "data array")
			if strings.Contains(strings.ToLower(string(a.Body)), "hash") {
				t.Errorf("sessions tell %s", a.Body)
			}
			s.owner.Do("DELETE", "/api/me/sessions/ghost", nil).Problem(404)
		},
		"disagreement 16": func(t *testing.T, s *scene) {
			// Closed there: that address names any e-mail. Own agents are enrolled at
			// /api/enroll, where they get one of the authority's.
			s.owner.Post("/api/auth/enroll", map[string]string{"email": "sub@example.com", "name": "Sub", "publicKey": s.NewKey("sub").Line}).Problem(403)
			reads(t, s.owner.Post("/api/enroll", map[string]string{"name": "sub", "publicKey": s.NewKey("sub").Line}), "email string", "owner string")
		},
		"disagreement 23": func(t *testing.T, s *scene) {
			if a := s.Stranger().Post("/token", map[string]string{"grant_type": "x"}); a.Status != 400 || !strings.Contains(string(a.Body), `"error":"unsupported_grant_type"`) {
				t.Errorf("%d %s", a.Status, a.Body)
			}
			if a := s.Stranger().Get("/userinfo"); a.Status != 401 || a.Header.Get("WWW-Authenticate") == "" {
				t.Errorf("%d %v %s", a.Status, a.Header, a.Body)
			}
		},
		"disagreement 24": func(t *testing.T, s *scene) {
			for _, name := range []string{"anna", "berta"} {
				s.Manager().Post("/api/admin/users", map[string]string{"email": name + "@example.com", "name": name}).Want(200)
			}
			v := reads(t, s.Manager().Get("/api/admin/users?limit=1"), "data.0.email string", "pagination.has_more bool", "pagination.cursor string")
			if more, _ := at(v, "pagination.has_more"); more != true {
				t.Errorf("%v", v)
			}
			v = reads(t, s.Manager().Get("/api/admin/users?search=berta"), "data.0.email string")
			if _, second := at(v, "data.1.email"); second || text(t, v, "data.0.email") != "berta@example.com" {
				t.Errorf("%v", v)
			}
		},
		"weakness 18": func(t *testing.T, s *scene) {
			for _, body := range []map[string]any{
				{"delegate": s.agent.Email, "audience": "plans.example.com", "grant_type": "timed"},
				{"delegate": s.owner.Email, "audience": "plans.example.com", "grant_type": "always"},
			} {
				s.owner.Post("/api/delegations", body).Problem(400)
			}
			if v := reads(t, s.owner.Get("/api/delegations"), "data array"); fmt.Sprint(v.(map[string]any)["data"]) != "[]" {
				t.Errorf("a refusal has left %v", v)
			}
		},
	}
}

// shimsAndHoles are the rows of interop 7 and 8.
func shimsAndHoles() map[string]func(*testing.T, *scene) {
	d, w, m, o := disagreements(), weaknesses(), moreWeaknesses(), otherParts()
	return map[string]func(*testing.T, *scene){
		"shim 1": d["disagreement 12"],
		"shim 2": func(t *testing.T, s *scene) {
			g := s.agent.Ask("cmd")
			op := map[string]string{"id": g.ID, "action": "revoke"}
			reads(t, s.agent.Post("/api/grants/batch", map[string]any{"operations": []any{op, op}}).Want(200), "results.0.success bool", "results.1.success bool")
		},
		"shim 3":  d["disagreement 8"],
		"shim 4":  o["disagreement 9"],
		"shim 8":  o["disagreement 16"],
		"shim 11": o["disagreement 24"],
		"shim 5":  d["disagreement 11"],
		"shim 7":  d["disagreement 2"],
		"shim 9":  d["disagreement 22"],
		"shim 12": func(t *testing.T, s *scene) {
			for _, a := range []authoritytest.Answer{s.Stranger().Get("/api/grants"), s.agent.Get("/api/grants?requester=" + url.QueryEscape(s.owner.Email)), s.Stranger().Get(api.PathStanding), s.agent.Get("/api/admin/users")} {
				p := a.Problem(a.Status)
				if a.Status != 401 && a.Status != 403 || strings.Contains(p.Title, "Internal") || strings.Contains(p.Detail, "SQL") || strings.Contains(p.Detail, ".go:") {
					t.Errorf("%s: %d %+v", a.Call, a.Status, p)
				}
			}
		},
		"hole 1": w["weakness 1"],
		"hole 2": d["disagreement 17"],
		"hole 3": m["weakness 24"],
		"hole 4": m["weakness 25"],
		"hole 5": o["disagreement 10"],
		"hole 6": w["weakness 5"],
		"hole 7": func(t *testing.T, s *scene) {
			for _, duration := range []any{"60", 1.5, true, []int{60}, -1, 1e30} {
				body := shaped(s.agent.Email, "cmd")
				body["grant_type"], body["duration"] = "timed", duration
				s.agent.Post("/api/grants", body).Problem(400)
			}
			// A grant of the shell's audience is once, says who binds it, and ends unused.
			body := shaped(s.agent.Email, "bash", "-c", "cmd x")
			body["audience"], body["grant_type"] = "ape-shell", "always"
			g := s.post(t, body)
			s.owner.Post(authoritytest.GrantPath(g.ID, "approve"), map[string]any{"grant_type": "always"}).Problem(403)
			s.owner.Post(authoritytest.GrantPath(g.ID, "approve"), nil).Want(200)
			reads(t, s.agent.Get(authoritytest.GrantPath(g.ID)), "binding string")
			if v := reads(t, s.owner.Get(authoritytest.GrantPath(g.ID, "receipt")), "binding string"); text(t, v, "binding") != "client" {
				t.Errorf("binding: %v", v)
			}
			s.Clock.Advance(time.Hour)
			if a := s.agent.Get("/api/grants?status=approved"); strings.Contains(string(a.Body), g.ID) {
				t.Errorf("never used, and approved for ever: %s", a.Body)
			}
		},
	}
}

// TestFixedUpstream keeps what the reference has mended already.
func TestFixedUpstream(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]func(*testing.T, *scene){
		"self-approval": func(t *testing.T, s *scene) {
			s.agent.Post(authoritytest.GrantPath(s.agent.Ask("cmd").ID, "approve"), nil).Problem(403)
		},
		"enumeration by requester": func(t *testing.T, s *scene) {
			s.Stranger().Get("/api/grants?requester=" + url.QueryEscape(s.agent.Email)).Problem(401)
			x := s.Person("x@example.com")
			a, b := x.Get("/api/grants?requester="+url.QueryEscape(s.agent.Email)), x.Get("/api/grants?requester=ghost%40vm")
			if a.Status != 403 || !bytes.Equal(a.Body, b.Body) {
				t.Errorf("%s\n%s", a.Body, b.Body)
			}
		},
		"requests without a login": func(t *testing.T, s *scene) {
			s.Stranger().Post("/api/grants", shaped(s.agent.Email, "cmd")).Problem(401)
		},
		"a deactivated principal": func(t *testing.T, s *scene) {
			s.owner.Do("PATCH", api.PathMyAgents+"/"+url.PathEscape(s.agent.Email), map[string]bool{"isActive": false}).Want(200)
			s.agent.Get("/api/grants").Problem(401)
			if a := s.agent.TryLogin(s.agent.Key); a.Status/100 == 2 {
				t.Errorf("it logs in: %s", a.Body)
			}
		},
		"agents of equal names": func(t *testing.T, s *scene) {
			other := s.Agent(s.Person("owner@example.org"), "bot")
			if other.Email == s.agent.Email {
				t.Errorf("both are %s", other.Email)
			}
			s.owner.Post("/api/enroll", map[string]string{"name": "bot", "publicKey": s.NewKey("x").Line}).Problem(409)
		},
		"timed grants that are over": func(t *testing.T, s *scene) {
			g := s.agent.Ask("cmd")
			s.owner.Approve(g.ID, grant.Timed, s.Clock.Now().Add(time.Minute).Unix())
			s.Clock.Advance(time.Minute)
			if a := s.agent.Get("/api/grants?status=approved"); strings.Contains(string(a.Body), g.ID) {
				t.Errorf("listed: %s", a.Body)
			}
			if got := s.agent.Grant(g.ID).Status; got != grant.Expired {
				t.Errorf("it is %s", got)
			}
		},
	} {
		t.Run(name, func(t *testing.T) { t.Parallel(); test(t, newScene(t)) })
	}
}

func decoded(t *testing.T, part string) []byte {
	t.Helper()
	b, err := base64.RawURLEncoding.DecodeString(part)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// claimsOf reads a token without verifying it, as a client may.
func claimsOf(t *testing.T, jwt string) (claims map[string]any) {
	t.Helper()
	if err := json.Unmarshal(decoded(t, strings.Split(jwt, ".")[1]), &claims); err != nil {
		t.Fatal(err)
	}
	return claims
}
