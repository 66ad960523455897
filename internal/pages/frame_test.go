package pages_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/elliptic"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"vogt/internal/api"
	"vogt/internal/detail"
	"vogt/internal/grant"
	"vogt/internal/pages"
	"vogt/internal/passkey/passkeytest"
	"vogt/internal/reading"
	"vogt/internal/statement"
)

func TestHeaders(t *testing.T) {
	s := newSite(t, fixedClock().now)
	ids := s.populate()
	s.signIn(mara)
	for _, path := range []string{"/", "/login", "/setup?token=x", "/register?token=x", "/grants/" + ids["risky"], "/nothing", "/p/setup/state", "/grant-approval?grant_id=x"} {
		a := s.get(path)
		csp := a.Header.Get("Content-Security-Policy")
		for _, part := range []string{"default-src 'none'", "style-src 'self'", "script-src 'self'", "img-src 'self'", "connect-src 'self'",
			"form-action 'self'", "frame-ancestors 'none'", "base-uri 'none'", "require-trusted-types-for 'script'"} {
			if !strings.Contains(csp, part) {
				t.Errorf("%s: policy lacks %s", path, part)
			}
		}
		if strings.Contains(csp, "unsafe") || strings.Contains(csp, "http:") || strings.Contains(csp, "*") {
			t.Errorf("%s: policy is open: %s", path, csp)
		}
		for name, want := range map[string]string{"X-Frame-Options": "DENY", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
			"Cache-Control": "no-store", "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin"} {
			if got := a.Header.Get(name); got != want {
				t.Errorf("%s: %s is %q, want %q", path, name, got, want)
			}
		}
		if a.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: other origins may read it", path)
		}
	}
}

func TestAssets(t *testing.T) {
	s := newSite(t, fixedClock().now)
	page := s.get("/login").body
	for _, address := range regexp.MustCompile(`/assets/[\w.-]+`).FindAllString(page, -1) {
		bare := s.get(address)
		want(t, bare, 200)
		if got := bare.Header.Get("Cache-Control"); got != "public, max-age=31536000, immutable" {
			t.Errorf("%s: Cache-Control %q", address, got)
		}
		zipped := s.get(address, func(r *http.Request) { r.Header.Set("Accept-Encoding", "br, gzip;q=0.5") })
		if zipped.Header.Get("Content-Encoding") != "gzip" {
			t.Fatalf("%s is not compressed", address)
		}
		z, err := gzip.NewReader(strings.NewReader(zipped.body))
		if err != nil {
			t.Fatal(err)
		}
		plain, err := io.ReadAll(z)
		if err != nil || string(plain) != bare.body {
			t.Errorf("%s: compressed it differs (%v)", address, err)
		}
		if len(zipped.body) >= len(bare.body) && len(bare.body) > 500 {
			t.Errorf("%s: %d bytes become %d", address, len(bare.body), len(zipped.body))
		}
		if s.get(address, func(r *http.Request) { r.Header.Set("Accept-Encoding", "gzip;q=0") }).Header.Get("Content-Encoding") != "" {
			t.Errorf("%s is compressed for those who refuse it", address)
		}
	}
	for _, path := range []string{"/assets/vogt.css", "/assets/../pages.go", "/assets/", "/assets/vogt-xxxxxxxx.css"} {
		if a := s.get(path); a.StatusCode == 200 {
			t.Errorf("%s: %d", path, a.StatusCode)
		}
	}
	if strings.Contains(page, "/*") || strings.Contains(s.get("/login?lang=de").body, "js.") {
		t.Error("comments or keys of the catalog are served")
	}
}

func TestOtherHostsAreRefused(t *testing.T) {
	s := newSite(t, fixedClock().now)
	s.populate()
	s.signIn(mara)
	for _, host := range []string{"127.0.0.1:8648", "evil.example", "vogt.localhost", "vogt.localhost:1", "assistant" + strings.TrimPrefix(s.origin, "http://vogt")} {
		for _, path := range []string{"/", "/login", "/p/events"} {
			if a := s.get(path, func(r *http.Request) { r.Host = host }); a.StatusCode != http.StatusMisdirectedRequest || strings.Contains(a.body, "cards") {
				t.Errorf("host %s, %s: %d", host, path, a.StatusCode)
			}
		}
	}
}

func TestSignedOutSeesNothing(t *testing.T) {
	s := newSite(t, fixedClock().now)
	ids := s.populate()
	for _, path := range []string{"/", "/grants/" + ids["risky"] + "?all=1", "/agents", "/agents/x", "/activity", "/health", "/account", "/patterns", "/patterns/new?agent=x", "/patterns/suggestions", "/patterns/safe", "/trust/x", "/enroll?name=a&key=b"} {
		a := s.get(path)
		if a.StatusCode != http.StatusSeeOther {
			t.Errorf("%s: %d", path, a.StatusCode)
			continue
		}
		to, err := url.Parse(a.Header.Get("Location"))
		if err != nil || to.Path != "/login" || to.Query().Get("next") != path {
			t.Errorf("%s leads to %s", path, a.Header.Get("Location"))
		}
	}
	for _, path := range []string{"/p/events"} {
		if a := s.get(path); a.StatusCode != 401 {
			t.Errorf("%s: %d", path, a.StatusCode)
		}
	}
	want(t, s.get("/grant-approval?grant_id=g-1"), 303)
	if to := s.get("/grant-approval?grant_id=" + url.QueryEscape("../x?y")).Header.Get("Location"); to != "/grants/..%2Fx%3Fy" {
		t.Errorf("a grant id leads to %s", to)
	}
	want(t, s.get("/grant-approval"), 404)
	// A cookie that names no session is no session.
	s.cookie = "made-up"
	want(t, s.get("/"), 303)
}

// TestDecidingNeedsItsOwnClick attacks a deciding call in every part of its
// frame. Whatever is wrong, nothing is decided.
func TestDecidingNeedsItsOwnClick(t *testing.T) {
	clock := fixedClock()
	s := newSite(t, clock.now)
	ids := s.populate()
	s.signIn(mara)
	id := ids["read"]
	digest := s.digest(id)
	body := map[string]any{"answer": "allow", "grant_type": "once", "digest": digest, "note": ""}
	raw, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	path := "/p/grants/" + id + "/decision"
	header := func(name, value string) func(*http.Request) {
		return func(r *http.Request) {
			r.Header.Del(name)
			if value != "" {
				r.Header.Set(name, value)
			}
		}
	}
	stranger := newSite(t, clock.now)
	stranger.authority.AddPerson("eve@evil.example", "Eve")
	stranger.signIn("eve@evil.example")
	for _, c := range []struct {
		name   string
		status int
		kind   string
		change func(*http.Request)
	}{
		{"no click", 403, "no-click", header(pages.ClickHeader, "")},
		{"no signature", 403, "no-click", header(pages.ClickHeader, "1796048652000.")},
		{"rubbish", 403, "no-click", header(pages.ClickHeader, "x")},
		{"another path", 403, "no-click", header(pages.ClickHeader, s.click("/p/grants/"+ids["risky"]+"/decision", raw, clock.now()))},
		{"another body", 403, "no-click", header(pages.ClickHeader, s.click(path, []byte("{}"), clock.now()))},
		{"an old click", 403, "no-click", header(pages.ClickHeader, s.click(path, raw, clock.now().Add(-3*time.Minute)))},
		{"a click of tomorrow", 403, "no-click", header(pages.ClickHeader, s.click(path, raw, clock.now().Add(time.Hour)))},
		{"another key", 403, "no-click", header(pages.ClickHeader, stranger.click(path, raw, clock.now()))},
		{"no origin", 403, "origin", header("Origin", "")},
		{"another port", 403, "origin", header("Origin", "http://vogt.localhost:3000")},
		{"another scheme", 403, "origin", header("Origin", strings.Replace(s.origin, "http:", "https:", 1))},
		{"null origin", 403, "origin", header("Origin", "null")},
		{"from a sibling site", 403, "origin", header("Sec-Fetch-Site", "same-site")},
		{"from elsewhere", 403, "origin", header("Sec-Fetch-Site", "cross-site")},
		{"a form", 415, "media-type", header("Content-Type", "application/x-www-form-urlencoded")},
		{"plain text", 415, "media-type", header("Content-Type", "text/plain")},
		{"no type", 415, "media-type", header("Content-Type", "")},
		{"no cookie", 401, "signed-out", header("Cookie", "")},
		{"another session's cookie", 401, "signed-out", header("Cookie", "vogt_session="+stranger.cookie)},
		{"GET", 404, "", func(r *http.Request) { r.Method = "GET"; r.Body = nil; r.ContentLength = 0 }},
	} {
		a := s.post(path, body, c.change)
		if a.StatusCode != c.status {
			t.Errorf("%s: %d, want %d: %s", c.name, a.StatusCode, c.status, a.body)
		}
		var p api.Problem
		if c.kind != "" {
			if err := json.Unmarshal([]byte(a.body), &p); err != nil || p.Type != "urn:vogt:pages:"+c.kind || p.Detail == "" || p.Status != c.status {
				t.Errorf("%s: %s", c.name, a.body)
			}
			if a.Header.Get("Content-Type") != "application/problem+json" {
				t.Errorf("%s: answered as %s", c.name, a.Header.Get("Content-Type"))
			}
		}
		if g := s.authority.Grant(id); g.Status != grant.Pending {
			t.Fatalf("%s: the grant is %s", c.name, g.Status)
		}
	}
	// The same call with everything in place decides, and a repetition of it
	// decides nothing more.
	var kept http.Header
	want(t, s.post(path, body, func(r *http.Request) { kept = r.Header.Clone() }), 200)
	g := s.authority.Grant(id)
	if g.Status != grant.Approved {
		t.Fatalf("the grant is %s", g.Status)
	}
	again := s.post(path, body, func(r *http.Request) { r.Header = kept })
	want(t, again, 409, "urn:vogt:pages:closed")
	if now := s.authority.Grant(id); now.Version != g.Version {
		t.Error("a repeated click changed the grant")
	}
}

// digest is what the card's page shows for the narrowest reach.
func (s *site) digest(id string) string {
	s.t.Helper()
	m := regexp.MustCompile(`<form class="decide"[^>]* data-digest="([0-9a-f]{64})"`).FindStringSubmatch(s.get("/grants/" + id).body)
	if m == nil {
		s.t.Fatalf("the page of %s shows no digest", id)
	}
	return m[1]
}

func TestDecision(t *testing.T) {
	clock := fixedClock()
	s := newSite(t, clock.now)
	ids := s.populate()
	s.signIn(mara)
	page := s.get("/grants/" + ids["read"]).body
	timed := regexp.MustCompile(`value="timed" data-digest="([0-9a-f]{64})" data-expires="(\d+)"`).FindStringSubmatch(page)
	if timed == nil {
		t.Fatal("no timed reach on the page")
	}
	var end int64
	if err := json.Unmarshal([]byte(timed[2]), &end); err != nil {
		t.Fatal(err)
	}
	once := s.digest(ids["read"])
	zeros := strings.Repeat("0", 64)
	type m = map[string]any
	for _, c := range []struct {
		name   string
		body   any
		status int
	}{
		{"another digest", m{"answer": "allow", "grant_type": "once", "digest": zeros}, 409},
		{"the digest of another reach", m{"answer": "allow", "grant_type": "once", "digest": timed[1]}, 409},
		{"another end than was shown", m{"answer": "allow", "grant_type": "timed", "expires_at": end + 86400, "digest": timed[1]}, 409},
		{"always with the digest of once", m{"answer": "allow", "grant_type": "always", "digest": once}, 409},
		{"no end", m{"answer": "allow", "grant_type": "timed", "digest": timed[1]}, 400},
		{"an end that does not fit", m{"answer": "allow", "grant_type": "once", "expires_at": end, "digest": once}, 400},
		{"no type", m{"answer": "allow", "digest": once}, 400},
		{"an unknown type", m{"answer": "allow", "grant_type": "forever", "digest": once}, 400},
		{"no answer", m{"grant_type": "once", "digest": once}, 400},
		{"an unknown answer", m{"answer": "maybe", "grant_type": "once", "digest": once}, 400},
		{"upper-case digest", m{"answer": "allow", "grant_type": "once", "digest": strings.ToUpper(once)}, 400},
		{"an unknown field", m{"answer": "allow", "grant_type": "once", "digest": once, "strength": "independent"}, 400},
		{"a long note", m{"answer": "deny", "grant_type": "once", "digest": once, "note": strings.Repeat("n", 2001)}, 400},
		{"a list", []string{"allow"}, 400},
		{"a huge body", m{"answer": "deny", "grant_type": "once", "digest": once, "note": strings.Repeat("n", 70_000)}, 413},
		{"a made-up assertion", m{"answer": "allow", "grant_type": "once", "digest": once, "assertion": m{"id": "x"}}, 403},
	} {
		a := s.post("/p/grants/"+ids["read"]+"/decision", c.body)
		if a.StatusCode != c.status {
			t.Errorf("%s: %d, want %d: %s", c.name, a.StatusCode, c.status, a.body)
		}
		if g := s.authority.Grant(ids["read"]); g.Status != grant.Pending {
			t.Fatalf("%s: the grant is %s", c.name, g.Status)
		}
	}
	// A click is not enough for what needs a passkey; a denial never needs one.
	critical := s.digest(ids["crossing"])
	want(t, s.post("/p/grants/"+ids["crossing"]+"/decision", m{"answer": "allow", "grant_type": "once", "digest": critical}), 403, "urn:vogt:pages:proof")
	want(t, s.post("/p/grants/"+ids["crossing"]+"/decision", m{"answer": "deny", "grant_type": "once", "digest": critical, "note": "reload is enough"}), 200)
	if g := s.authority.Grant(ids["crossing"]); g.Status != grant.Denied || g.Decision.Note != "reload is enough" {
		t.Errorf("the grant is %s, %+v", g.Status, g.Decision)
	}
	want(t, s.post("/p/grants/"+ids["read"]+"/decision", m{"answer": "allow", "grant_type": "timed", "expires_at": end, "digest": timed[1]}), 200)
	if g := s.authority.Grant(ids["read"]); g.Type != grant.Timed || g.ValidUntil.Seconds() != end {
		t.Errorf("allowed %s until %d, want timed until %d", g.Type, g.ValidUntil.Seconds(), end)
	}
	// Nobody answers for somebody else, and nobody sees it.
	s.authority.AddPerson("jonas@home.example", "Jonas")
	s.signIn("jonas@home.example")
	want(t, s.get("/grants/"+ids["risky"]), 404)
	want(t, s.post("/p/grants/"+ids["risky"]+"/decision", m{"answer": "allow", "grant_type": "once", "digest": once}), 404)
	want(t, s.post("/p/grants/"+ids["risky"]+"/revoke", m{}), 404)
	want(t, s.post("/p/agents/"+url.PathEscape(claude)+"/pause", m{}), 404)
	// Too late is too late.
	s.signIn(mara)
	late := s.digest(ids["risky"])
	clock.advance(time.Hour)
	want(t, s.post("/p/grants/"+ids["risky"]+"/decision", m{"answer": "allow", "grant_type": "once", "digest": late}), 409)
	want(t, s.get("/grants/"+ids["risky"]), 200, "Nobody answered", "Nothing ran.")
}

// TestPasskeyDecision goes through the call pair of a passkey-bound answer
// with a software authenticator.
func TestPasskeyDecision(t *testing.T) {
	s := newSite(t, fixedClock().now)
	authenticator := passkeytest.New(s.origin, "vogt.localhost")
	s.setUp(authenticator)
	ids := s.populate()
	digest := s.digest(ids["crossing"])
	path := "/p/grants/" + ids["crossing"]
	type m = map[string]any
	choice := m{"grant_type": "once", "digest": digest}
	begun := s.post(path+"/passkey", choice)
	want(t, begun, 200)
	var ceremony pages.Ceremony
	if err := json.Unmarshal([]byte(begun.body), &ceremony); err != nil {
		t.Fatal(err)
	}
	response, err := authenticator.Get(ceremony.Options)
	if err != nil {
		t.Fatal(err)
	}
	// The answer over this digest serves no other card and no other reach.
	other := s.digest(ids["read"])
	want(t, s.post("/p/grants/"+ids["read"]+"/decision", m{"answer": "allow", "grant_type": "once", "digest": other, "assertion": json.RawMessage(response)}), 403)
	want(t, s.post(path+"/passkey", m{"grant_type": "once", "digest": strings.Repeat("0", 64)}), 409)
	want(t, s.post(path+"/decision", m{"answer": "allow", "grant_type": "once", "digest": digest, "assertion": json.RawMessage(response)}), 200)
	if g := s.authority.Grant(ids["crossing"]); g.Decision == nil || g.Decision.Strength != grant.Passkey {
		t.Errorf("the decision is %+v", g.Decision)
	}

	// A change of trust: prepared by a click, in force only by the passkey.
	prepared := s.post("/p/trust", m{"operation": api.TrustAgentAdd, "params": m{"name": "codex", "public_key": someKey}})
	want(t, prepared, 200, `"location":"/trust/`)
	id := regexp.MustCompile(`/trust/([\w-]+)`).FindStringSubmatch(prepared.body)[1]
	page := s.get("/trust/" + id)
	want(t, page, 200, "Add the agent codex", "SHA256:", someKey)
	code := regexp.MustCompile(`data-digest="([0-9a-f]{64})"`).FindStringSubmatch(page.body)[1]
	want(t, s.post("/p/trust/"+id+"/confirm", m{"digest": code}), 403)
	want(t, s.post("/p/trust/"+id+"/confirm", m{"digest": code, "response": json.RawMessage(response)}), 403)
	want(t, s.post("/p/trust/"+id+"/passkey", m{"digest": strings.Repeat("0", 64)}), 409)
	begun = s.post("/p/trust/"+id+"/passkey", m{"digest": code})
	want(t, begun, 200)
	if err := json.Unmarshal([]byte(begun.body), &ceremony); err != nil {
		t.Fatal(err)
	}
	if response, err = authenticator.Get(ceremony.Options); err != nil {
		t.Fatal(err)
	}
	want(t, s.post("/p/trust/"+id+"/confirm", m{"digest": code, "response": json.RawMessage(response)}), 200)
	want(t, s.post("/p/trust/"+id+"/confirm", m{"digest": code, "response": json.RawMessage(response)}), 409)
	want(t, s.get("/trust/"+id), 200, "Confirmed by you")
	want(t, s.get("/agents"), 200, "codex")
}

// setUp makes Mara with a passkey, as the set-up page does.
func (s *site) setUp(authenticator *passkeytest.Authenticator) {
	s.t.Helper()
	type m = map[string]any
	key, spki := newKey(s.t.(*testing.T), elliptic.P256())
	token := s.authority.SetUpLink()
	opened := s.get("/setup?token=" + token)
	binding := opened.Cookies()[0]
	with := func(r *http.Request) { r.AddCookie(binding) }
	if err := s.authority.TypeDigits(s.authority.Digits()); err != nil {
		s.t.Fatal(err)
	}
	begun := s.post("/p/setup/options", m{"token": token, "name": "Mara Lindqvist", "email": mara}, with)
	var ceremony pages.Ceremony
	if err := json.Unmarshal([]byte(begun.body), &ceremony); err != nil {
		s.t.Fatal(begun.body)
	}
	response, err := authenticator.Create(ceremony.Options)
	if err != nil {
		s.t.Fatal(err)
	}
	done := s.post("/p/setup/verify", m{"token": token, "ceremony": ceremony.ID, "response": json.RawMessage(response), "proof_key": spki}, with)
	if done.StatusCode != 200 {
		s.t.Fatal(done.body)
	}
	for _, c := range done.Cookies() {
		if c.Name == "vogt_session" {
			s.cookie = c.Value
		}
	}
	s.key = key
}

func TestSetUp(t *testing.T) {
	clock := fixedClock()
	s := newSite(t, clock.now)
	type m = map[string]any
	token := s.authority.SetUpLink()
	opened := s.get("/setup?token=" + token)
	want(t, opened, 200, "Is it you at the keyboard?", "<span>4</span><span>4</span><span>7</span><span>1</span>")
	binding := opened.Cookies()[0]
	if !binding.HttpOnly || binding.SameSite != http.SameSiteStrictMode || len(binding.Value) < 40 {
		t.Errorf("the binding cookie is %+v", binding)
	}
	with := func(r *http.Request) { r.AddCookie(binding) }
	want(t, s.get("/setup?token="+token, with), 200, "<span>4</span>")
	if a := s.get("/setup?token=" + token); strings.Contains(a.body, "<span>4</span>") {
		t.Error("another browser sees the digits")
	}
	want(t, s.get("/p/setup/state?token="+token, with), 200, `"opened"`)
	want(t, s.get("/p/setup/state?token="+token), 200, `"expired"`)
	want(t, s.get("/p/setup/state?token=other", with), 200, `"expired"`)
	// Nothing goes on before the terminal has spoken.
	owner := m{"token": token, "name": "Mara Lindqvist", "email": mara}
	want(t, s.post("/p/setup/options", owner, with), 410)
	if err := s.authority.TypeDigits("4471"); err != nil {
		t.Fatal(err)
	}
	want(t, s.get("/p/setup/state?token="+token, with), 200, `"confirmed"`)
	want(t, s.post("/p/setup/options", owner), 410)
	for name, body := range map[string]m{
		"no name": {"token": token, "name": " ", "email": mara}, "control in the name": {"token": token, "name": "a\x00b", "email": mara},
		"no address": {"token": token, "name": "Mara", "email": "mara"}, "two ats": {"token": token, "name": "Mara", "email": "a@b@c"},
		"address with space": {"token": token, "name": "Mara", "email": "a b@c"}, "long": {"token": token, "name": strings.Repeat("a", 201), "email": mara},
	} {
		if a := s.post("/p/setup/options", body, with); a.StatusCode != 400 {
			t.Errorf("%s: %d", name, a.StatusCode)
		}
	}
	begun := s.post("/p/setup/options", owner, with)
	want(t, begun, 200, `"challenge"`)
	_, spki := newKey(t, elliptic.P256())
	_, wrong := newKey(t, elliptic.P384())
	for name, body := range map[string]m{
		"no key": {"token": token, "ceremony": "x", "response": m{}}, "wrong curve": {"token": token, "ceremony": "x", "response": m{}, "proof_key": wrong},
		"no ceremony": {"token": token, "response": m{}, "proof_key": spki},
	} {
		if a := s.post("/p/setup/verify", body, with); a.StatusCode != 400 {
			t.Errorf("%s: %d %s", name, a.StatusCode, a.body)
		}
	}
	// A link of ten minutes.
	fresh := s.authority.SetUpLink()
	clock.advance(10 * time.Minute)
	want(t, s.get("/setup?token="+fresh), 200, "This link no longer works")
	want(t, s.get("/setup"), 200, "This link no longer works")
}

func TestCookies(t *testing.T) {
	s := newSite(t, fixedClock().now)
	authenticator := passkeytest.New(s.origin, "vogt.localhost")
	s.setUp(authenticator)
	a := s.post("/p/logout", map[string]any{}, func(r *http.Request) { r.Header.Del(pages.ClickHeader) })
	want(t, a, 200, `"location":"/login"`)
	want(t, s.get("/"), 303)
	out := a.Cookies()[0]
	if out.Name != "vogt_session" || out.MaxAge >= 0 || !out.HttpOnly {
		t.Errorf("signing out sets %+v", out)
	}
	// Sign in again with the same passkey.
	type m = map[string]any
	var ceremony pages.Ceremony
	if err := json.Unmarshal([]byte(s.post("/p/login/options", m{}).body), &ceremony); err != nil {
		t.Fatal(err)
	}
	response, err := authenticator.Get(ceremony.Options)
	if err != nil {
		t.Fatal(err)
	}
	_, spki := newKey(t, elliptic.P256())
	call := m{"ceremony": ceremony.ID, "response": json.RawMessage(response), "proof_key": spki}
	in := s.post("/p/login/verify", call)
	want(t, in, 200, `"session"`)
	c := in.Cookies()[0]
	if !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.Path != "/" || c.Domain != "" || strings.Contains(in.body, c.Value) {
		t.Errorf("signing in sets %+v and answers %s", c, in.body)
	}
	want(t, s.post("/p/login/verify", call), 410) // a response serves once

	// With TLS the cookie is bound to the host and to TLS.
	secure := newSite(t, fixedClock().now, func(cfg *pages.Config) { cfg.PagesOrigin = "https://vogt.home.example" })
	b := secure.get("/setup?token="+secure.authority.SetUpLink(), func(r *http.Request) { r.Host = "vogt.home.example" })
	want(t, b, 200)
	if c := b.Cookies()[0]; !c.Secure {
		t.Errorf("over TLS the cookie is %+v", c)
	}
}

func TestLanguageAndTheme(t *testing.T) {
	s := newSite(t, fixedClock().now)
	s.populate()
	s.signIn(mara)
	accept := func(v string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set("Accept-Language", v) }
	}
	want(t, s.get("/", accept("de-AT")), 200, `<html lang="de">`, "4 Karten warten")
	chosen := s.get("/?lang=en", accept("de"))
	want(t, chosen, 200, `<html lang="en">`, "4 cards wait for you")
	c := chosen.Cookies()[0]
	want(t, s.get("/", accept("de"), func(r *http.Request) { r.AddCookie(c) }), 200, `<html lang="en">`)
	want(t, s.get("/?lang=xx", accept("de")), 200, `<html lang="de">`)
	want(t, s.get("/?lang=%22%3E%3Cscript%3E"), 200, `<html lang="en">`)
	want(t, s.get("/?theme=dark"), 200, `data-theme="dark"`)
	if a := s.get("/?theme=%22x"); strings.Contains(a.body, "data-theme") {
		t.Error("an unknown theme reached the page")
	}
	if a := s.get("/login?next=/grants/x&lang=de"); !strings.Contains(a.body, `href="/login?lang=en&amp;next=%2Fgrants%2Fx"`) {
		t.Error("the way to the other language forgets where the person was")
	}
}

func TestCardShowsWhatIsBound(t *testing.T) {
	s := newSite(t, fixedClock().now)
	ids := s.populate()
	a := s.authority
	secret := "hunter2-Correct-Horse-41"
	huge := a.Ask(grant.Request{Requester: claude, Host: "nuc", Type: grant.Once, Command: []string{"sh", "-c", strings.Repeat("echo a long line of text\n", 8000) + "rm -rf /the/end"}}, detail.High)
	odd := a.Ask(grant.Request{Requester: claude, Host: "n\u00fcc", Type: grant.Once, Command: []string{"curl", "--password", secret, "https://p\u0430ypal.example/\u200b"}, Reason: strings.Repeat("word ", 100)}, detail.Unrated)
	a.Join(odd, 3)
	s.signIn(mara)
	// Words of a command are boxes that do not break; what they hold is text.
	words := regexp.MustCompile(`<span class="w">([^<]*)</span>`)
	page := words.ReplaceAllString(s.get("/grants/"+ids["risky"]).body, "$1")
	for _, c := range []string{"not bound", "reported by the machine, not checked", "/usr/bin/rm", "/home/mara/projects/shop", "../../shared-cache", "claude says", "its own words, not checked", "High risk", "3 min", mara} {
		if !strings.Contains(page, c) {
			t.Errorf("the card does not show %q", c)
		}
	}
	long := s.get("/grants/" + huge)
	want(t, long, 200, "characters not shown here", "All on one page", "The digest covers all of them")
	if strings.Contains(long.body, "/the/end") || len(long.body) > 60_000 {
		t.Errorf("the first view of a long command has %d bytes", len(long.body))
	}
	whole := s.get("/grants/" + huge + "?all=1")
	whole.body = words.ReplaceAllString(whole.body, "$1")
	want(t, whole, 200, "rm -rf /the/end")
	strange := s.get("/grants/" + odd)
	want(t, strange, 200, "[masked]", "Show the 1 masked value", "2 invisible or misleading characters", "Letters of two alphabets", "xn--n", "3 identical requests joined", "not rated, so treated as critical", "Critical risk", "only its first 300 characters")
	if n := strings.Count(strange.body, secret); n != 1 {
		t.Errorf("the secret is on the page %d times, want once, behind its fold", n)
	}
	for _, path := range []string{"/", "/activity"} {
		if strings.Contains(s.get(path).body, secret) {
			t.Errorf("%s shows the secret", path)
		}
	}
	if title := regexp.MustCompile(`<title>[^<]*`).FindString(page); title != "<title>Card 1 of 6 · Vogt" {
		t.Errorf("the title is %q", title)
	}
	a.SetLog(2, true)
	want(t, s.get("/agents"), 200, "The record does not verify.")
}

// TestCardOfAConnection reads what a card says about a connection that a box holds.
func TestCardOfAConnection(t *testing.T) {
	s := newSite(t, fixedClock().now)
	s.populate()
	a := s.authority
	text := func(v string) *string { return &v }
	ask := func(host string) string {
		return a.Ask(grant.Request{
			Requester: claude, Host: "nuc", Type: grant.Once, Audience: "vogt", Permissions: []string{"a string for programs"},
			Connect: &grant.Connect{Host: host, Port: 8443},
			Context: &grant.Context{Confinement: text("agent sha256:00 in /home/me/app, box 7"), NetworkMode: text("connect " + host + ":8443"), Executable: "/usr/bin/curl"},
		}, detail.High)
	}
	unknown, shared := ask("api.shop.example"), ask("gist.github.com")
	s.signIn(mara)
	page := s.get("/grants/" + unknown)
	want(t, page, 200, "Let a box connect to api.shop.example:8443", "Nothing is known of api.shop.example.", "Program, claimed:", "/usr/bin/curl",
		"High risk", "It would contact another machine.", "agent sha256:00 in /home/me/app, box 7", "For this task", "until the box ends", "Allow for this task")
	for _, c := range []string{"a string for programs", "Allow always", "until you revoke it", "exactly this command", "without arguments"} {
		if strings.Contains(page.body, c) {
			t.Errorf("the card shows %q", c)
		}
	}
	want(t, s.get("/grants/"+shared), 200, "Anybody can put something at gist.github.com.")
	want(t, s.get("/grants/"+shared+"?lang=de"), 200, "Eine Box mit gist.github.com:8443 verbinden", "Bei gist.github.com kann jeder etwas ablegen.", "Programm, behauptet:", "Für diese Aufgabe", "bis die Box endet")
	want(t, s.get("/"), 200, "Let a box connect to api.shop.example:8443")
}

// TestClosedCards reads what a card says after each way in which it can end.
func TestClosedCards(t *testing.T) {
	s := newSite(t, fixedClock().now)
	paths := gallery(t, s, s.populate())
	s.signIn(mara)
	for name, words := range map[string][]string{
		"once":      {"Allowed once, by you", "It can, once, until", "click in a signed-in page", "Revoke"},
		"used":      {"Allowed once, by you", "It ran at", "ended with exit code 0", "The permission is used up", "fine"},
		"timed":     {"Allowed until", "by you", "Used so far: 0", "Revoke"},
		"always":    {"Allowed always, by you", "until you revoke it", "Revoke"},
		"denied":    {"Denied by you", "Nothing ran.", "Only clean dist/."},
		"revoked":   {"Revoked by you", "cannot be used any more"},
		"withdrawn": {"claude no longer needs this", "Nothing ran.", "neither yes nor no"},
		"nobody":    {"Nobody answered", "Nothing ran.", "it may ask again"},
		"trust-key": {"Add an SSH key that decides for you", "at once", "SHA256:"},
	} {
		page := s.get(paths[name])
		want(t, page, 200, words...)
		closed := !strings.HasPrefix(name, "trust")
		if strings.Contains(page.body, `data-answer="allow"`) == closed {
			t.Errorf("%s: the page offers an answer: %v", name, !closed)
		}
		for _, one := range []string{"used", "denied", "revoked", "withdrawn", "nobody"} {
			if name == one && strings.Contains(page.body, "/revoke") {
				t.Errorf("%s: the page offers to revoke what is over", name)
			}
		}
	}
}

func TestInboxIsLimited(t *testing.T) {
	s := newSite(t, fixedClock().now)
	s.populate()
	for range 60 {
		s.authority.Ask(grant.Request{Requester: claude, Host: "nuc", Type: grant.Once, Command: []string{"make"}}, detail.Low)
	}
	s.signIn(mara)
	page := s.get("/")
	want(t, page, 200, "64 cards wait for you", "14 more cards are not shown")
	if n := strings.Count(page.body, `<li class="req"`); n != 50 {
		t.Errorf("%d rows", n)
	}
}

func TestActivity(t *testing.T) {
	s := newSite(t, fixedClock().now)
	ids := s.populate()
	for range 60 {
		s.authority.Ask(grant.Request{Requester: claude, Host: "nuc", Type: grant.Once, Command: []string{"make"}}, detail.Low)
	}
	s.authority.SetLog(10, false)
	s.signIn(mara)
	page := s.get("/activity")
	want(t, page, 200, "64 records", "Records below 10", `href="/activity?before=14"`, "not yet signed")
	want(t, s.get("/activity?before=14"), 200, "included")
	one := s.get("/activity?grant=" + ids["risky"])
	want(t, one, 200, "rm -rf")
	if strings.Contains(one.body, "systemctl") {
		t.Error("records of other requests are shown")
	}
	for _, bad := range []string{"x", "-1", "0", "99999999999999999999"} {
		want(t, s.get("/activity?before="+bad), 400)
	}
}

func TestEvents(t *testing.T) {
	s := newSite(t, time.Now)
	s.populate()
	s.signIn(mara)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	open := func(change ...func(*http.Request)) (*http.Response, *bufio.Scanner) {
		r, err := http.NewRequestWithContext(ctx, "GET", s.origin+"/p/events", nil)
		if err != nil {
			t.Fatal(err)
		}
		s.dress(r, change)
		resp, err := s.client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { resp.Body.Close() })
		return resp, bufio.NewScanner(resp.Body)
	}
	if resp, _ := open(func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") }); resp.StatusCode != 403 {
		t.Errorf("another port of the host reads events: %d", resp.StatusCode)
	}
	resp, lines := open()
	if resp.Header.Get("Content-Type") != "text/event-stream" || resp.Header.Get("Cache-Control") != "no-store" {
		t.Fatalf("events are %v", resp.Header)
	}
	next := func(want string) {
		t.Helper()
		for lines.Scan() {
			if strings.HasPrefix(lines.Text(), want) {
				return
			}
		}
		t.Fatalf("no %q: %v", want, lines.Err())
	}
	next("retry: ")
	next("event: alive")
	next(`data: {"now":`)
	id := s.authority.Ask(grant.Request{Requester: claude, Host: "nuc", Type: grant.Once, Command: []string{"make"}}, detail.Low)
	next("id: ")
	next("event: grant")
	next(`data: {"id":"` + id + `","status":"pending"}`)
	next("event: alive") // a heartbeat
	// A browser that comes back is told what it missed.
	_, again := open(func(r *http.Request) { r.Header.Set("Last-Event-ID", "3") })
	var missed string
	for again.Scan() && !strings.Contains(missed, "event: grant") {
		missed += again.Text() + "\n"
	}
	if !strings.Contains(missed, "id: 4\n") {
		t.Errorf("after event 3 comes %q", missed)
	}
	s.authority.EndAll()
	next("event: ended")
	for lines.Scan() {
		if line := lines.Text(); line != "" && line != "data: {}" {
			t.Errorf("the stream goes on after the session ended: %q", line)
		}
	}
	until(t, "the subscription ends", func() bool { return s.authority.Streams() == 0 })
}

func TestAccountCalls(t *testing.T) {
	s := newSite(t, fixedClock().now)
	s.populate()
	s.signIn(mara)
	other, otherID := s.cookie, s.sessionID
	s.signIn(mara)
	want(t, s.get("/account"), 200, "this one", "/p/sessions/"+otherID+"/revoke")
	want(t, s.post("/p/sessions/unknown/revoke", map[string]any{}), 404)
	want(t, s.post("/p/sessions/"+otherID+"/revoke", map[string]any{}), 200)
	mine := s.cookie
	s.cookie = other
	want(t, s.get("/account"), 303)
	s.cookie = mine
	want(t, s.post("/p/agents/"+url.PathEscape(claude)+"/explode", map[string]any{}), 404)
	want(t, s.post("/p/agents/"+url.PathEscape(claude)+"/pause", map[string]any{"x": 1}), 400)
	want(t, s.post("/p/agents/"+url.PathEscape(claude)+"/pause", map[string]any{}), 200)
	want(t, s.get("/agents"), 200, "Paused")
	want(t, s.post("/p/panic", map[string]any{}), 200, "1 agent paused.")
	want(t, s.get("/health"), 200, "Tokens never allow", "not in force", "records, the chain is complete")
	want(t, s.post("/p/sessions/"+s.sessionID+"/revoke", map[string]any{}), 200, `"location":"/login"`)
	want(t, s.get("/"), 303)
}

// cancelled is a list of cards whose reading is cancelled.
type cancelled struct {
	pages.Cards
	asked chan<- struct{} // told of each reading
	wait  bool            // for the browser to leave
}

func (c cancelled) Inbox(ctx context.Context, _ pages.Session, _ int) (pages.Inbox, error) {
	c.asked <- struct{}{}
	if c.wait {
		<-ctx.Done()
	}
	return pages.Inbox{}, fmt.Errorf("reading: %w", context.Canceled)
}

// TestBrowserLeaves: a request that its browser gives up is no failure of the
// authority; a cancellation with the browser still there is one.
func TestBrowserLeaves(t *testing.T) {
	s := newSite(t, fixedClock().now)
	s.populate()
	s.signIn(mara)
	visit := func(leave bool) (status int, log string) {
		t.Helper()
		var out bytes.Buffer
		asked := make(chan struct{}, 4)
		backend := s.authority.Backend()
		backend.Cards = cancelled{backend.Cards, asked, leave}
		handler, err := pages.New(pages.Config{PagesOrigin: s.origin, Clock: s.now, Logger: slog.New(slog.NewTextHandler(&out, nil))}, backend)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		r := httptest.NewRequestWithContext(ctx, "GET", s.origin+"/", nil)
		r.AddCookie(&http.Cookie{Name: "vogt_session", Value: s.cookie})
		w := httptest.NewRecorder()
		done := make(chan struct{})
		go func() {
			defer close(done)
			handler.ServeHTTP(w, r)
		}()
		<-asked
		if leave {
			cancel()
		}
		<-done
		return w.Code, out.String()
	}
	if status, log := visit(true); status != 499 || strings.Contains(log, "ERROR") {
		t.Errorf("the browser left: %d, %s", status, log)
	}
	if status, log := visit(false); status != 500 || !strings.Contains(log, "ERROR") {
		t.Errorf("a cancellation of the authority's own: %d, %s", status, log)
	}
}

// bare is the text of a page, without markup and references.
func bare(page string) string {
	return html.UnescapeString(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(page, ""))
}

// section is what stands under a heading of the card.
func section(t *testing.T, page, heading string) string {
	t.Helper()
	_, rest, found := strings.Cut(page, "<section><h2>"+heading+"<")
	body, _, closed := strings.Cut(rest, "</section>")
	if !found || !closed {
		t.Fatalf("no section %q", heading)
	}
	return body
}

// TestCardShowsWhatItWouldDo: programs, effects, files and notes stand between
// the command and the facts, in both languages, and come from the authority's
// own reading, whatever the request says of itself.
func TestCardShowsWhatItWouldDo(t *testing.T) {
	s := newSite(t, fixedClock().now)
	s.populate()
	folder := "/home/mara/projects/shop"
	context := &grant.Context{Cwd: &statement.File{Path: &folder}}
	ask := func(risk detail.Risk, words ...string) string {
		return "/grants/" + s.authority.Ask(grant.Request{Requester: claude, Host: "nuc", Type: grant.Once, Command: words, Context: context,
			Details: []detail.Wire{{Display: "Only looks around", Risk: "low"}}}, risk)
	}
	s.signIn(mara)
	path := ask(detail.Critical, "sh", "-c", "cat notes.txt; sudo rm -rf /srv/cache; no-such-program-here")
	page := s.get(path)
	want(t, page, 200)
	text := bare(section(t, page.body, "What it would do"))
	for _, c := range []string{
		"read by Vogt itself", "cat notes.txt", "reads", "sudo rm -rf /srv/cache", "rm -rf /srv/cache", "higher rights", "destroys", "writes", "Critical risk", "unknown", "High risk",
		"Reads" + folder + "/notes.txt", "Deletes/srv/cache", "no-such-program-here is not in the catalog",
	} {
		if !strings.Contains(text, c) {
			t.Errorf("the section does not show %q: %s", c, text)
		}
	}
	if strings.Contains(text, "Only looks around") {
		t.Error("the section shows what the client says")
	}
	command, does, facts := strings.Index(page.body, ">What would run<"), strings.Index(page.body, ">What it would do<"), strings.Index(page.body, ">Where, and as whom<")
	if command < 0 || does < command || facts < does {
		t.Errorf("the sections stand at %d, %d and %d", command, does, facts)
	}
	_, head, _ := strings.Cut(page.body, `<header class="card-head">`)
	head, _, _ = strings.Cut(head, "</header>")
	if text := bare(head); !strings.Contains(text, "destroys") || !strings.Contains(text, "It would use higher rights, or give them.") {
		t.Errorf("the head says %q", text)
	}
	german := bare(section(t, s.get(path+"?lang=de").body, "Was es tun würde"))
	for _, c := range []string{"von Vogt selbst gelesen", "liest", "höhere Rechte", "vernichtet", "unbekannt", "Löscht/srv/cache", "no-such-program-here steht nicht im Katalog."} {
		if !strings.Contains(german, c) {
			t.Errorf("in German it does not show %q: %s", c, german)
		}
	}
	// In the inbox, and when it is closed, it shows the same.
	id := strings.TrimPrefix(path, "/grants/")
	if pane := bare(section(t, s.get("/?card="+id+"&lang=en").body, "What it would do")); pane != text {
		t.Errorf("the inbox shows %s", pane)
	}
	if err := s.authority.Apply(id, grant.Deny{Decision: grant.Decision{By: mara, At: grant.At(s.now()), Strength: grant.Click}}); err != nil {
		t.Fatal(err)
	}
	if closed := bare(section(t, s.get(path).body, "What it would do")); closed != text {
		t.Errorf("the closed card shows %s", closed)
	}
	// What is no command has nothing to read; a command that cannot be read
	// says so.
	none := s.authority.Ask(grant.Request{Requester: claude, Host: "nuc", Type: grant.Once, Permissions: []string{"x"}}, detail.High)
	if page := s.get("/grants/" + none); strings.Contains(page.body, "What it would do") || strings.Contains(page.body, "risk.why") {
		t.Error("a card without a command shows a reading")
	}
	want(t, s.get(ask(detail.High, "ls\x00")), 200, "Vogt could not read this command.", "Vogt could not read what it does.")
}

// TestReadingIsText: whatever stands in a command, its reading is text.
func TestReadingIsText(t *testing.T) {
	s := newSite(t, fixedClock().now)
	s.populate()
	s.signIn(mara)
	ours := regexp.MustCompile(`^</?(h2|div|ol|ul|li|code|span|dl|dt|dd|br|p|a|svg|use)( (class|data-risk|data-tone|aria-hidden|href|lang)="[\w./?=# -]*")*/?>$`)
	for _, attack := range []string{`<script>pwned</script>`, `"><img src=x onerror=pwned>`, `</code></section></article><h1>Low risk</h1>`, `&lt;b&gt;`, "{{.Secret}}", "\u202egnp.exe", "a\u200bb", "a\x1b[2Jb", "p\u0430ypal"} {
		quoted := reading.Line([]string{attack})
		for _, words := range [][]string{{attack, attack}, {"rm", attack}, {"sh", "-c", "rm " + quoted + "; cat <" + quoted + "; " + quoted + " x; curl " + quoted}} {
			id := s.authority.Ask(grant.Request{Requester: claude, Host: "nuc", Type: grant.Once, Command: words}, detail.High)
			part := section(t, s.get("/grants/"+id).body, "What it would do")
			for _, tag := range regexp.MustCompile(`<[^>]*>`).FindAllString(part, -1) {
				if !ours.MatchString(tag) {
					t.Errorf("%q brings %s", words, tag)
				}
			}
			if strings.ContainsAny(part, "\u202e\u200b\x1b\u0430") {
				t.Errorf("%q: invisible in %q", words, part)
			}
		}
	}
}

// TestReadingOfMuch: ten thousand programs, or a line of a megabyte, are a card
// like any other; on one page there is more of them.
func TestReadingOfMuch(t *testing.T) {
	s := newSite(t, fixedClock().now)
	s.populate()
	s.signIn(mara)
	var script strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&script, "rm file-%04d\n", i)
	}
	for name, words := range map[string][]string{
		"calls": {"sh", "-c", script.String()},
		"line":  {"sh", "-c", "rm " + strings.Repeat("x", 200_000)},
		"words": append([]string{"rm"}, slices.Repeat([]string{strings.Repeat("y", 1000)}, 1000)...),
		"word":  {"rm", strings.Repeat("z", 1_000_000)},
	} {
		path := "/grants/" + s.authority.Ask(grant.Request{Requester: claude, Host: "nuc", Type: grant.Once, Command: words}, detail.Critical)
		first, whole := s.get(path), s.get(path+"?all=1")
		want(t, first, 200)
		want(t, whole, 200)
		if part := section(t, first.body, "What it would do"); len(part) > 30_000 {
			t.Errorf("%s: the first view of the reading has %d bytes", name, len(part))
		}
		part := section(t, whole.body, "What it would do")
		if len(part) > 4_000_000 {
			t.Errorf("%s: all of the reading has %d bytes", name, len(part))
		}
		if name == "calls" {
			want(t, first, 200, "more</span>", path+"?all=1")
			if strings.Contains(part, "more</span><a") || !strings.Contains(part, "more</span>") {
				t.Error("on one page it leads to that page, or leaves out without a word")
			}
			if n, all := strings.Count(section(t, first.body, "What it would do"), "<li><code>rm "), strings.Count(part, "<li><code>rm "); n != 11 || all != 999 {
				t.Errorf("%d programs are shown first, then %d", n, all)
			}
		}
	}
}

// TestCriticalSaysWhy: the reason stands next to the level, the right one and
// no other.
func TestCriticalSaysWhy(t *testing.T) {
	s := newSite(t, fixedClock().now)
	ids := s.populate()
	ask := func(words ...string) string {
		return s.authority.Ask(grant.Request{Requester: claude, Host: "nuc", Type: grant.Once, Command: words}, detail.Critical)
	}
	s.signIn(mara)
	reasons := []struct{ id, en, de string }{
		{ids["crossing"], "It would run as another user.", "Sie würde als anderer Benutzer laufen."},
		{ask("vogt", "grant", "approve", "x"), "It would change who or what Vogt trusts, in your name.", "Sie würde ändern, wem oder was Vogt vertraut, in deinem Namen."},
		{ask("sudo", "ls"), "It would use higher rights, or give them.", "Sie würde höhere Rechte nutzen oder vergeben."},
		{ask("rm", "-rf", "/srv/x"), "It would delete or destroy what cannot be brought back.", "Sie würde löschen oder vernichten, was nichts zurückbringt."},
		{ask("cp", "x", "/dev/sda"), "It would write to a device directly.", "Sie würde unmittelbar auf ein Gerät schreiben."},
		{ask("cp", "x", "/home/mara/.ssh/authorized_keys"), "It would change or show keys or credentials.", "Sie würde Schlüssel oder Zugangsdaten ändern oder zeigen."},
		{ask("ls"), "Vogt’s catalog rates it so.", "So stuft Vogts Katalog sie ein."},
		{ids["read"], "", ""}, // low
	}
	for _, c := range reasons {
		for _, path := range []string{"/grants/" + c.id + "?", "/?card=" + c.id + "&"} {
			for tongue, reason := range map[string]string{"en": c.en, "de": c.de} {
				page := s.get(path + "lang=" + tongue).body
				for _, other := range reasons {
					known := map[string]string{"en": other.en, "de": other.de}[tongue]
					if known != "" && strings.Contains(page, known) != (known == reason) {
						t.Errorf("%s: %q is there or missing, want %q", path+tongue, known, reason)
					}
				}
			}
		}
	}
}

// TestAgentsPermissions reads an agent's page in both languages.
func TestAgentsPermissions(t *testing.T) {
	s := newSite(t, fixedClock().now)
	s.populate()
	s.signIn(mara)
	a := s.authority
	page := "/agents/" + url.PathEscape(claude)
	want(t, s.get(page), 200, "What it may do without asking", "No permission for a time or for good")
	allow := func(kind grant.Type, words ...string) string {
		t.Helper()
		id := a.Ask(grant.Request{Requester: claude, Host: "nuc", Type: grant.Once, Command: words}, detail.Medium)
		yes := grant.Approve{Type: kind, Decision: grant.Decision{By: mara, At: grant.At(s.now()), Strength: grant.Click}}
		if kind != grant.Always {
			yes.Until = grant.At(s.now().Add(time.Hour))
		}
		if err := a.Apply(id, yes); err != nil {
			t.Fatal(err)
		}
		return id
	}
	timed := allow(grant.Timed, "npm", "run", "a b")
	always := allow(grant.Always, "git", "fetch")
	allow(grant.Once, "make", "unlisted")
	if err := a.Apply(timed, grant.Consume{At: grant.At(s.now())}, grant.Consume{At: grant.At(s.now())}); err != nil {
		t.Fatal(err)
	}
	en := s.get(page)
	want(t, en, 200, "npm run &#39;a b&#39;", "used 2 times", "15:24", "git fetch", "until you revoke it", "never used",
		`data-post="/p/grants/`+timed+`/revoke"`, `data-post="/p/grants/`+always+`/revoke"`, `aria-label="Revoke git fetch"`)
	if strings.Contains(en.body, "unlisted") {
		t.Error("a permission for one run is listed")
	}
	want(t, s.get(page+"?lang=de"), 200, "Was er ohne Frage darf", "2-mal genutzt", "bis du sie widerrufst")
	// Without the click nothing ends.
	want(t, s.post("/p/grants/"+always+"/revoke", struct{}{}, func(r *http.Request) { r.Header.Del(pages.ClickHeader) }), 403)
	want(t, s.post("/p/grants/"+always+"/revoke", struct{}{}), 200)
	if strings.Contains(s.get(page).body, "git fetch") {
		t.Error("a revoked permission is listed")
	}
}

func TestNewRefuses(t *testing.T) {
	for _, origin := range []string{"", "vogt.localhost:8648", "http://vogt.localhost:8648/", "ftp://x", "http://vogt.localhost:8648/x", "http://a@b"} {
		if _, err := pages.New(pages.Config{PagesOrigin: origin, Clock: time.Now}, pages.Backend{}); err == nil {
			t.Errorf("origin %q is accepted", origin)
		}
	}
	if _, err := pages.New(pages.Config{PagesOrigin: "http://vogt.localhost:8648"}, pages.Backend{}); err == nil {
		t.Error("no clock is accepted")
	}
	if _, err := pages.New(pages.Config{PagesOrigin: "http://vogt.localhost:8648", Clock: time.Now}, pages.Backend{}); err == nil {
		t.Error("no backend is accepted")
	}
}
