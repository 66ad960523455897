package backend_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"vogt/internal/authority"
	"vogt/internal/authoritytest"
	"vogt/internal/pages"
	"vogt/internal/pages/backend"
	"vogt/internal/passkey/passkeytest"
)

const (
	openidPackage = "openid-client@6.9.0"
	service       = "service"
	callback      = "http://127.0.0.1:1/callback" // nobody listens; the test reads the address
)

// browser is the browser of a person who is signed in, in software: its cookie,
// and the key that signs its clicks.
type browser struct {
	t      *testing.T
	s      *authoritytest.Server
	cookie string
	key    *ecdsa.PrivateKey
	http   *http.Client
}

// newBrowser makes the first person of s, with a passkey, and signs her in.
func newBrowser(t *testing.T, s *authoritytest.Server) *browser {
	t.Helper()
	b := &browser{t: t, s: s}
	address := strings.TrimPrefix(s.URL, "http://")
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", address)
	}}
	t.Cleanup(transport.CloseIdleConnections)
	b.http = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	var err error
	if b.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	spki, err := x509.MarshalPKIXPublicKey(&b.key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	token, _, err := s.Authority.StartSetup(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	device, d := passkeytest.New(s.Pages, "vogt.localhost"), backend.New(s.Authority, "none")
	view, err := d.SetUp.OpenSetUp(t.Context(), token, "browser")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Authority.ConfirmSetup(view.Digits); err != nil {
		t.Fatal(err)
	}
	c, err := d.SetUp.BeginSetUp(t.Context(), pages.NewOwner{Token: token, Browser: "browser", Name: "Mara", Email: mara})
	if err != nil {
		t.Fatal(err)
	}
	response, err := device.Create(c.Options)
	if err != nil {
		t.Fatal(err)
	}
	in, err := d.SetUp.FinishSetUp(t.Context(), pages.NewPasskey{Token: token, Browser: "browser", Ceremony: c.ID, Response: response, ProofKey: spki, Agent: "set-up"})
	if err != nil {
		t.Fatal(err)
	}
	b.cookie = in.Cookie
	return b
}

// page is an answer of the pages.
type page struct {
	*http.Response
	text string
}

func (b *browser) do(method, address string, body []byte, headers ...string) page {
	b.t.Helper()
	if strings.HasPrefix(address, "/") {
		address = b.s.Pages + address
	}
	r, err := http.NewRequest(method, address, bytes.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	if b.cookie != "" && strings.HasPrefix(address, b.s.Pages+"/") {
		r.AddCookie(&http.Cookie{Name: "vogt_session", Value: b.cookie})
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := b.http.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return page{resp, string(text)}
}

func (b *browser) get(address string, headers ...string) page {
	b.t.Helper()
	return b.do("GET", address, nil, headers...)
}

// click makes a call as the page's script does; headers change it.
func (b *browser) click(path string, body any, headers ...string) page {
	b.t.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		b.t.Fatal(err)
	}
	c := pages.Click{Origin: b.s.Pages, Path: path, Body: raw, Issued: b.s.Clock.Now().UnixMilli()}
	sum := sha256.Sum256(c.Signed())
	r, v, err := ecdsa.Sign(rand.Reader, b.key, sum[:])
	if err != nil {
		b.t.Fatal(err)
	}
	sig := make([]byte, 64)
	r.FillBytes(sig[:32])
	v.FillBytes(sig[32:])
	all := append([]string{
		"Content-Type", "application/json", "Origin", b.s.Pages, pages.ClickHeader, fmt.Sprintf("%d.%s", c.Issued, base64.RawURLEncoding.EncodeToString(sig)),
	}, headers...)
	return b.do("POST", path, raw, all...)
}

// logIn follows a service's link until a question, says yes, and returns where
// the browser is sent.
func (b *browser) logIn(address string) string {
	b.t.Helper()
	return b.answer(b.asked(address), "approve")
}

// asked follows a service's link to a question, and returns its name.
func (b *browser) asked(address string) string {
	b.t.Helper()
	for range 5 {
		a := b.get(address)
		if a.StatusCode == 200 {
			u, err := url.Parse(address)
			if err != nil || u.Path != "/consent" {
				b.t.Fatalf("at %s, %v", address, err)
			}
			return u.Query().Get("request")
		}
		if a.StatusCode != 302 {
			b.t.Fatalf("%s: %d", address, a.StatusCode)
		}
		address = a.Header.Get("Location")
	}
	b.t.Fatalf("no end of redirects; the last is %s", address)
	return ""
}

func (b *browser) answer(question, action string) string {
	b.t.Helper()
	a := b.click("/api/authorize/consent", map[string]string{"csrfToken": question, "action": action})
	var next struct{ Location string }
	if a.StatusCode != 200 || json.Unmarshal([]byte(a.text), &next) != nil {
		b.t.Fatalf("the answer: %d %s", a.StatusCode, a.text)
	}
	return next.Location
}

// services starts an authority that knows one service.
func services(t *testing.T) *authoritytest.Server {
	t.Helper()
	return start(t, authoritytest.WithConfig(func(c *authority.Config) {
		c.Clients = []authority.ClientMetadata{{ID: service, Name: "A service", RedirectURIs: []string{callback}}}
	}))
}

// TestOpenIDClient: a client of another language and maker completes what a
// service needs: code flow with PKCE, refresh, user information, rotation of
// keys, and revocation.
func TestOpenIDClient(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed (Debian: apt-get install nodejs npm)")
	}
	modules, err := npmInstall(openidPackage)
	if err != nil {
		t.Skipf("npm does not bring %s: %v", openidPackage, err)
	}
	s := services(t)
	b := newBrowser(t, s)
	// Beside the modules, where node looks for them.
	script, err := os.ReadFile(filepath.Join("testdata", "openid.mjs"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "openid.mjs"), script, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, node, "openid.mjs", s.URL, service, callback)
	cmd.Dir = dir
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	answers := bufio.NewScanner(out)
	step := func(name string, pairs ...string) map[string]any {
		t.Helper()
		msg := map[string]string{"do": name}
		for i := 0; i < len(pairs); i += 2 {
			msg[pairs[i]] = pairs[i+1]
		}
		line, err := json.Marshal(msg)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := in.Write(append(line, '\n')); err != nil {
			t.Fatal(err)
		}
		if !answers.Scan() {
			t.Fatalf("%s: the client ended: %v\n%s", name, answers.Err(), &complaints)
		}
		var got map[string]any
		if err := json.Unmarshal(answers.Bytes(), &got); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return got
	}
	works := func(name string, pairs ...string) map[string]any {
		t.Helper()
		got := step(name, pairs...)
		if got["error"] != nil {
			t.Fatalf("%s: %v", name, got)
		}
		return got
	}

	begun := works("begin")
	if begun["pkce"] != true {
		t.Error("the client finds no PKCE in the discovery document")
	}
	got := works("finish", "callback", b.logIn(begun["address"].(string)))
	claims := got["claims"].(map[string]any)
	if claims["sub"] != mara || claims["email"] != mara || claims["name"] != "Mara" || claims["aud"] != service || got["refresh"] != true {
		t.Errorf("the client learns %v", got)
	}
	if user := works("user"); user["sub"] != mara || user["name"] != "Mara" {
		t.Errorf("the user is %v", user)
	}
	if got := works("refresh"); got["changed"] != true {
		t.Errorf("refreshed: %v", got)
	}

	// The next token is under another key, which the client fetches.
	if err := s.Authority.RotateKeys(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := works("age"); got["keys"] != 1.0 {
		t.Errorf("before the rotation the client knows %v", got)
	}
	works("refresh")
	if got := works("keys"); got["keys"] != 2.0 {
		t.Errorf("after the rotation the client knows %v", got)
	}
	works("user")

	works("revoke")
	if got := step("refresh"); got["error"] != "invalid_grant" {
		t.Errorf("refreshed after its revocation: %v", got)
	}
	if got := step("user"); got["status"] != 401.0 {
		t.Errorf("user information after the revocation: %v", got)
	}

	// A used refresh token ends the session that it was of.
	begun = works("begin")
	works("finish", "callback", b.logIn(begun["address"].(string)))
	works("refresh")
	if got := step("replay"); got["error"] != "invalid_grant" {
		t.Errorf("the used token gives %v", got)
	}
	// The client finds the person's no, and an answer of another issuer.
	begun = works("begin")
	if got := step("finish", "callback", b.answer(b.asked(begun["address"].(string)), "cancel")); got["error"] != "access_denied" {
		t.Errorf("after a no: %v", got)
	}
	begun = works("begin")
	mixed := strings.Replace(b.logIn(begun["address"].(string)), url.QueryEscape(s.URL), url.QueryEscape("https://other.example"), 1)
	if got := step("finish", "callback", mixed); got["error"] == nil {
		t.Errorf("an answer of another issuer: %v", got)
	}

	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the client: %v\n%s", err, &complaints)
	}
}

// npmInstall installs a package of npm where it stays for later tests, and
// returns the folder of modules that it is in.
func npmInstall(pack string) (folder string, err error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "vogt-tests", strings.ReplaceAll(pack, "/", "_"))
	folder = filepath.Join(dir, "node_modules")
	if _, err := os.Stat(folder); err == nil {
		return folder, nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", err
	}
	next, err := os.MkdirTemp(filepath.Dir(dir), ".next-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(next)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "npm", "install", "--prefix", next, "--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock", pack)
	cmd.Dir = next
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	if err := os.Rename(next, dir); err != nil {
		if _, there := os.Stat(folder); there != nil { // somebody else was not faster
			return "", err
		}
	}
	return folder, nil
}

// TestConsentPages attacks the pages on which people answer services.
func TestConsentPages(t *testing.T) {
	t.Parallel()
	s := services(t)
	b := newBrowser(t, s)
	query := func(pairs ...string) url.Values {
		q := url.Values{
			"response_type": {"code"}, "client_id": {service}, "redirect_uri": {callback}, "state": {"the state"}, "scope": {"openid"},
			"code_challenge": {strings.Repeat("c", 43)}, "code_challenge_method": {"S256"},
		}
		for i := 0; i < len(pairs); i += 2 {
			q.Set(pairs[i], pairs[i+1])
		}
		return q
	}
	link := "/authorize?" + query().Encode()

	// Who is not signed in comes back after it; nobody is sent elsewhere.
	stranger := *b
	stranger.cookie = ""
	a := stranger.get("/authorize?" + query("login_hint", mara).Encode())
	to, err := url.Parse(a.Header.Get("Location"))
	if a.StatusCode != 302 || err != nil || to.Path != "/login" || to.Host != "" || to.Query().Get("login_hint") != mara {
		t.Fatalf("signed out: %d, %q", a.StatusCode, a.Header.Get("Location"))
	}
	if page := stranger.get(a.Header.Get("Location")); !strings.Contains(page.text, mara) || !strings.Contains(page.text, `data-login="/authorize?`) {
		t.Errorf("the sign-in shows %s", page.text)
	}
	for _, name := range []string{"returnTo", "next"} {
		for _, evil := range []string{"https://evil.example/", "//evil.example", `/\evil.example`, "/\t/evil.example", "javascript:alert(1)", "/%0a", "\\\\evil.example", "http:evil.example", "/p/logout", "evil"} {
			page := stranger.get("/login?" + url.Values{name: {evil}}.Encode())
			if strings.Contains(page.text, `data-login="`) && !strings.Contains(page.text, `data-login="/"`) && evil != "/%0a" {
				t.Errorf("%s=%q leads somewhere", name, evil)
			}
		}
	}
	if page := stranger.get("/login?login_hint=" + url.QueryEscape(`"><script>alert(1)</script>@x.example`)); strings.Contains(page.text, "alert(1)") {
		t.Error("the hint is shown as it came")
	}

	// Requests that are wrong end here, on a page.
	for name, q := range map[string]url.Values{
		"another redirect": query("redirect_uri", "https://evil.example/"), "no PKCE": query("code_challenge_method", "plain"),
		"unknown service": query("client_id", "nobody"), "details": query("authorization_details", "[]"),
	} {
		if a := b.get("/authorize?" + q.Encode()); a.StatusCode != 400 || a.Header.Get("Location") != "" || !strings.Contains(a.text, "You were sent nowhere") && name != "details" {
			t.Errorf("%s: %d, %q", name, a.StatusCode, a.Header.Get("Location"))
		}
	}
	// Only a window of a browser may follow the link.
	for _, h := range [][]string{{"Sec-Fetch-Dest", "iframe"}, {"Sec-Fetch-Dest", "image"}, {"Sec-Fetch-Dest", "empty"}, {"Sec-Purpose", "prefetch"}} {
		if a := b.get(link, h...); a.StatusCode != 403 || a.Header.Get("Location") != "" {
			t.Errorf("%v: %d, %q", h, a.StatusCode, a.Header.Get("Location"))
		}
	}
	if a := b.do("HEAD", link, nil); a.StatusCode != 403 {
		t.Errorf("HEAD: %d", a.StatusCode)
	}
	if a := b.get(link, "Sec-Fetch-Dest", "document", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Site", "cross-site"); a.StatusCode != 302 {
		t.Errorf("a window: %d", a.StatusCode)
	}

	// The question names who asks and where to. It is this session's alone.
	question := b.asked(link)
	shown := b.get("/consent?request=" + question)
	for _, want := range []string{"A service", service, callback, "127.0.0.1:1", mara} {
		if !strings.Contains(shown.text, want) {
			t.Errorf("the question does not show %s", want)
		}
	}
	var asked struct {
		CSRF, ClientID, RedirectURI string
		Verified                    bool
	}
	answer := b.get("/api/authorize/consent?request=" + question)
	raw := strings.NewReplacer("csrfToken", "CSRF").Replace(answer.text)
	if err := json.Unmarshal([]byte(raw), &asked); err != nil || asked.CSRF != question || asked.ClientID != service || asked.RedirectURI != callback || !asked.Verified {
		t.Errorf("the question as JSON: %s, %v", answer.text, err)
	}
	if a := b.get("/api/authorize/consent?request="+question, "Sec-Fetch-Site", "cross-site"); a.StatusCode != 403 {
		t.Errorf("another site reads the question: %d", a.StatusCode)
	}
	if a := stranger.get("/api/authorize/consent?request=" + question); a.StatusCode != 401 {
		t.Errorf("a stranger reads the question: %d", a.StatusCode)
	}
	yes := map[string]string{"csrfToken": question, "action": "approve"}
	for name, h := range map[string][]string{
		"no click":       {pages.ClickHeader, ""},
		"another origin": {"Origin", "http://evil.example"},
		"another port":   {"Origin", "http://vogt.localhost:1"},
		"no origin":      {"Origin", ""},
		"another site":   {"Sec-Fetch-Site", "same-site"},
		"a form":         {"Content-Type", "application/x-www-form-urlencoded"},
	} {
		if a := b.click("/api/authorize/consent", yes, h...); a.StatusCode != 403 && a.StatusCode != 415 {
			t.Errorf("%s: %d %s", name, a.StatusCode, a.text)
		}
	}
	thief := *b
	if thief.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	if a := thief.click("/api/authorize/consent", yes); a.StatusCode != 403 {
		t.Errorf("the cookie with another key: %d", a.StatusCode)
	}
	for _, body := range []map[string]string{{"csrfToken": question, "action": "maybe"}, {"csrfToken": question}, {"csrfToken": question, "action": "approve", "x": "y"}} {
		if a := b.click("/api/authorize/consent", body); a.StatusCode != 400 {
			t.Errorf("%v: %d", body, a.StatusCode)
		}
	}
	if a := b.click("/api/authorize/consent", map[string]string{"csrfToken": "x", "action": "approve"}); a.StatusCode != 410 {
		t.Errorf("no question: %d", a.StatusCode)
	}
	// Of all these none was an answer. The first good one is, and the last.
	if to := b.answer(question, "approve"); !strings.HasPrefix(to, callback+"?code=") {
		t.Errorf("sent to %s", to)
	}
	if a := b.click("/api/authorize/consent", yes); a.StatusCode != 410 {
		t.Errorf("answered twice: %d", a.StatusCode)
	}
	question = b.asked(link)
	s.Clock.Advance(5 * time.Minute)
	if a := b.click("/api/authorize/consent", map[string]string{"csrfToken": question, "action": "approve"}); a.StatusCode != 410 {
		t.Errorf("answered too late: %d", a.StatusCode)
	}

	// The account page shows the consent, and withdraws it.
	if page := b.get("/account"); !strings.Contains(page.text, "/p/consents/"+service+"/withdraw") {
		t.Error("the account page does not show the consent")
	}
	if a := b.click("/p/consents/"+service+"/withdraw", struct{}{}, pages.ClickHeader, ""); a.StatusCode != 403 {
		t.Errorf("withdrawn without a click: %d", a.StatusCode)
	}
	if a := b.click("/p/consents/"+service+"/withdraw", struct{}{}); a.StatusCode != 200 {
		t.Errorf("withdrawn: %d", a.StatusCode)
	}
	if page := b.get("/account"); strings.Contains(page.text, "/p/consents/") {
		t.Error("the consent is still there")
	}
}

// TestServiceSessions: sessions of services are on the account page, and end there.
func TestServiceSessions(t *testing.T) {
	t.Parallel()
	s := services(t)
	b := newBrowser(t, s)
	verifier := strings.Repeat("v", 43)
	sum := sha256.Sum256([]byte(verifier))
	q := url.Values{
		"response_type": {"code"}, "client_id": {service}, "redirect_uri": {callback}, "state": {"s"}, "scope": {"openid offline_access"},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "code_challenge_method": {"S256"},
	}
	to, err := url.Parse(b.logIn("/authorize?" + q.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	var tokens struct {
		Refresh string `json:"refresh_token"`
	}
	s.Stranger().Post("/token", map[string]string{
		"grant_type": "authorization_code", "code": to.Query().Get("code"), "code_verifier": verifier, "redirect_uri": callback, "client_id": service,
	}).Into(&tokens)
	const before = `data-post="/p/services/`
	page := b.get("/account").text
	i := strings.Index(page, before)
	if i < 0 {
		t.Fatal("the account page shows no session")
	}
	id, _, _ := strings.Cut(page[i+len(before):], "/")
	// As programs read it, with the page's cookie, which ends nothing.
	if a := b.get("/api/me/sessions"); a.StatusCode != 200 || !strings.Contains(a.text, id) {
		t.Errorf("the sessions: %d %s", a.StatusCode, a.text)
	}
	if a := b.do("DELETE", "/api/me/sessions/"+id, nil, "Origin", s.Pages); a.StatusCode != 403 {
		t.Errorf("ended by the cookie alone: %d", a.StatusCode)
	}
	if a := b.click("/p/services/"+id+"/end", struct{}{}); a.StatusCode != 200 {
		t.Errorf("ended: %d %s", a.StatusCode, a.text)
	}
	if a := b.click("/p/services/"+id+"/end", struct{}{}); a.StatusCode != 404 {
		t.Errorf("ended again: %d", a.StatusCode)
	}
	if a := s.Stranger().Post("/token", map[string]string{"grant_type": "refresh_token", "refresh_token": tokens.Refresh}); a.Status != 400 {
		t.Errorf("its refresh token gives %d", a.Status)
	}
	if !slices.Contains(strings.Fields(b.get("/activity").text), "service") && !strings.Contains(b.get("/activity").text, "Login at a service") {
		t.Error("the activity does not tell of it")
	}
}
