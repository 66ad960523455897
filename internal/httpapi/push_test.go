package httpapi_test

import (
	"fmt"
	"net/http"
	"testing"

	"vogt/internal/api"
	"vogt/internal/authoritytest"
	"vogt/internal/httpapi"
)

// TestPushSubscriptions: whose they are, and which addresses are taken.
func TestPushSubscriptions(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t, authoritytest.WithPages(noPages), authoritytest.WithAPI(func(c *httpapi.Config) {
		c.Push = httpapi.Push{Public: "the key", Hosts: []string{"push.example"}, Language: func(string) string { return "de" }}
	}))
	mara, omar := s.Register("mara@example.com"), s.Register("omar@example.com")
	var key struct{ VapidPublicKey string }
	if mara.Do("GET", "/api/push/vapid", nil).Into(&key); key.VapidPublicKey != "the key" {
		t.Errorf("%+v", key)
	}
	s.NewPage().Do("GET", "/api/push/vapid", nil).Problem(401)
	const path = "/api/push/subscribe"
	list := func(email string) int {
		t.Helper()
		subs, err := s.Authority.Subscriptions(t.Context(), email)
		if err != nil {
			t.Fatal(err)
		}
		return len(subs)
	}
	mine := subscription("https://push.example/1")
	mara.Do("POST", path, mine).Want(201)
	mara.Do("POST", path, map[string]any{"subscription": mine}).Want(201) // renewed
	omar.Do("POST", path, mine).Problem(409)
	omar.Do("DELETE", path, mine).Problem(404)
	if list("mara@example.com") != 1 || list("omar@example.com") != 0 {
		t.Error("another took the subscription")
	}
	for _, endpoint := range []string{
		"http://push.example/1", "https://127.0.0.1/1", "https://169.254.169.254/latest", "https://evil.example/1", "https://push.example:22/1", "https://push.example@evil.example/", "",
	} {
		mara.Do("POST", path, subscription(endpoint)).Problem(400)
	}
	bad := subscription("https://push.example/2")
	bad["keys"] = map[string]string{"p256dh": "AAAA", "auth": "AAAA"}
	mara.Do("POST", path, bad).Problem(400)
	// At most so many, and the oldest make room.
	for i := range 30 {
		s.Clock.Advance(1e6)
		mara.Do("POST", path, subscription(fmt.Sprintf("https://push.example/m%d", i))).Want(201)
	}
	if n := list("mara@example.com"); n != 20 {
		t.Errorf("%d subscriptions", n)
	}
	omar.Do("POST", path, mine).Want(201) // hers has made room
	omar.Do("DELETE", path, mine).Want(200)
	if list("omar@example.com") != 0 {
		t.Error("it is still there")
	}
	// Who is switched off is told nothing.
	s.Manager().Do("PATCH", api.PathMyAgents+"/mara%40example.com", map[string]bool{"isActive": false}).Want(200)
	if n := list("mara@example.com"); n != 0 {
		t.Errorf("a deactivated person has %d", n)
	}
	// Of two who take one at once, one gets it.
	other := s.Register("other@example.com")
	contested := subscription("https://push.example/contested")
	got := runMany(2, func(i int) int { return []*authoritytest.Page{omar, other}[i].Do("POST", path, contested).Status })
	if got[0]+got[1] != 201+409 {
		t.Errorf("%v", got)
	}
	off := authoritytest.Start(t, authoritytest.WithPages(noPages))
	off.Register("mara@example.com").Do("GET", "/api/push/vapid", nil).Problem(503)
}

// TestPushKey is made once and kept.
func TestPushKey(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t)
	keys := runMany(8, func(int) string {
		k, err := s.Authority.PushKey(t.Context())
		if err != nil || len(k) != 32 {
			t.Errorf("%x %v", k, err)
		}
		return string(k)
	})
	s.Restart()
	again, err := s.Authority.PushKey(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range keys {
		if k != string(again) {
			t.Error("there are several keys")
		}
	}
}

// TestCORS: what pages of other origins may do.
func TestCORS(t *testing.T) {
	t.Parallel()
	const ours, foreign = "https://tools.example", "https://evil.example"
	s := authoritytest.Start(t, authoritytest.WithPages(noPages), authoritytest.WithAPI(func(c *httpapi.Config) { c.Origins = []string{ours} }))
	owner := s.Owner()
	for _, test := range []struct {
		method, path, origin string
		want                 int
		allow                string
	}{
		{"OPTIONS", api.PathDiscovery, foreign, 204, "*"},
		{"OPTIONS", api.PathGrants, ours, 204, ours},
		{"OPTIONS", api.PathGrants + "/x/approve", ours, 204, ours},
		{"OPTIONS", "/token", ours, 204, "*"},
		{"OPTIONS", "/userinfo", ours, 204, "*"},
		{"OPTIONS", "/api/auth/challenge", ours, 204, ours},
		{"OPTIONS", "/api/agent/challenge", ours, 204, ours},
		{"OPTIONS", "/api/delegations", ours, 204, ours},
		{"OPTIONS", api.PathGrants, foreign, 403, ""},
		{"OPTIONS", "/api/admin/users", ours, 404, ours},
		{"GET", api.PathDiscovery, foreign, 200, "*"},
		{"GET", api.PathGrants, ours, 200, ours},
		{"GET", api.PathGrants, foreign, 403, ""},
		{"GET", api.PathGrants, "null", 403, ""},
		{"GET", api.PathGrants, s.Pages, 403, ""},
		{"GET", api.PathGrants, "", 200, ""},
	} {
		a := owner.Do(test.method, test.path, nil, "Origin", test.origin)
		if a.Status != test.want || a.Header.Get("Access-Control-Allow-Origin") != test.allow {
			t.Errorf("%s %s from %q: %d, allows %q", test.method, test.path, test.origin, a.Status, a.Header.Get("Access-Control-Allow-Origin"))
		}
		if a.Header.Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("%s %s lets cookies through", test.method, test.path)
		}
		if test.method == "OPTIONS" && test.want == 204 && (a.Header.Get("Access-Control-Allow-Headers") == "" || len(a.Body) != 0) {
			t.Errorf("%s: %v %q", test.path, a.Header, a.Body)
		}
	}
	// The pages' host lets no other origin in at all.
	mara := s.Register("mara@example.com")
	for _, origin := range []string{ours, foreign, s.URL, "null"} {
		a := mara.Do("GET", "/api/me", nil, "Origin", origin)
		if a.Status != 403 || a.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("the pages' host from %q: %d %v", origin, a.Status, a.Header)
		}
	}
}

// TestSecurityHeaders: what every answer of the interface carries.
func TestSecurityHeaders(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t, authoritytest.WithPages(noPages))
	owner := s.Owner()
	mara := s.Register("mara@example.com")
	for name, a := range map[string]authoritytest.Answer{
		"an answer": owner.Get("/api/me"), "a problem": owner.Get("/api/nothing"), "a stranger's": s.Stranger().Get(api.PathHealth),
		"a challenge": s.Stranger().Post(api.PathChallenge, api.ChallengeRequest{ID: "x"}), "the pages' host": mara.Do("GET", "/api/me", nil),
		"its problem": mara.Do("GET", "/api/admin/users", nil),
	} {
		for header, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "X-Frame-Options": "DENY", "Cache-Control": "no-store",
			"Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
		} {
			if got := a.Header.Get(header); got != want {
				t.Errorf("%s: %s is %q", name, header, got)
			}
		}
	}
}

// TestMe is what the wire says of whoever is logged in, by login and by page.
func TestMe(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t, authoritytest.WithPages(noPages))
	owner := s.Owner()
	agent := s.Agent(owner, "helper")
	mara := s.Register("mara@example.com")
	s.Manager().Do("PUT", "/api/admin/users/mara%40example.com/admin", map[string]bool{"isAdmin": true}).Want(200)
	type me struct {
		Email, Name string
		IsAdmin     *bool
	}
	for name, test := range map[string]struct {
		a     authoritytest.Answer
		email string
		admin bool
	}{
		"a person's login": {owner.Get("/api/me"), owner.Email, false},
		"an agent's login": {agent.Get("/api/me"), agent.Email, false},
		"a page":           {mara.Do("GET", "/api/me", nil), "mara@example.com", true},
	} {
		var m me
		if test.a.Into(&m); m.Email != test.email || m.Name == "" || m.IsAdmin == nil || *m.IsAdmin != test.admin {
			t.Errorf("%s: %s", name, test.a.Body)
		}
	}
	s.Stranger().Get("/api/me").Problem(401)
	s.NewPage().Do("GET", "/api/me", nil).Problem(401)
	for _, path := range []string{"/api/logout", "/api/session/logout"} {
		p := s.NewPage()
		p.Browser = mara.Browser
		p.SignIn().Want(200)
		a := p.Do("POST", path, nil).Want(200)
		if c := (&http.Response{Header: a.Header}).Cookies(); len(c) != 1 || c[0].MaxAge >= 0 {
			t.Errorf("%s: %v", path, c)
		}
	}
	// Whoever signs in without a key reads, and no more.
	p := s.NewPage()
	p.Browser, p.Key = mara.Browser, nil
	p.SignIn().Want(200)
	p.Do("GET", "/api/me", nil).Want(200)
	p.Do("PUT", "/api/account/vacation", map[string]bool{"recoveryVacationMode": true}).Problem(403)
	p.Do("POST", "/api/admin/users", map[string]string{"email": "x@example.com"}).Problem(403)
}
