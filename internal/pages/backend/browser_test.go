package backend_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"vogt/internal/api"
	"vogt/internal/authority"
	"vogt/internal/authoritytest"
	"vogt/internal/grant"
	"vogt/internal/httpapi"
	"vogt/internal/pages"
	"vogt/internal/pages/backend"
	"vogt/internal/pages/browsertest"
)

const mara = "mara@home.example"

// start runs a real authority with the pages in front of it. Its clock stands
// at the time of the machine, as browsers compare it with theirs.
func start(t *testing.T, opts ...authoritytest.Option) *authoritytest.Server {
	t.Helper()
	s := authoritytest.Start(t, append(opts, authoritytest.WithPages(func(a *authority.Authority) http.Handler {
		h, err := pages.New(pages.Config{
			PagesOrigin: a.Config().PagesOrigin, Issuer: a.Config().Issuer, Version: "test", Clock: a.Now, Heartbeat: 200 * time.Millisecond,
			PushKey: pushPublic, Recovery: true,
		}, backend.New(a, "none"))
		if err != nil {
			t.Fatal(err)
		}
		return h
	}), authoritytest.WithAPI(func(c *httpapi.Config) {
		c.Push = httpapi.Push{Public: pushPublic, Hosts: []string{"push.example"}}
		c.Click = func(key []byte, c httpapi.Click, now time.Time) error {
			return pages.VerifyHeader(key, c.Header, c.Origin, c.Path, c.Body, now)
		}
	}))...)
	s.Clock.Set(time.Now())
	return s
}

// person is Mara in front of a browser, with the real authority behind it.
type person struct {
	*browsertest.Tab
	s       *authoritytest.Server
	agent   *authoritytest.Principal
	app     string // redirect address of a service
	mode    *atomic.Value
	letters <-chan authority.Letter
}

// policy is one mode for every domain.
type policy struct{ mode *atomic.Value }

func (p policy) Mode(context.Context, string) (authority.Mode, error) {
	return p.mode.Load().(authority.Mode), nil
}

// TestInBrowser is a person's first day: everything that the pages do for her,
// in a real Chromium and on the real authority, whose log is verified at the end.
func TestInBrowser(t *testing.T) {
	browser := browsertest.Start(t)
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte("welcome")) // the browser may be gone
	}))
	t.Cleanup(app.Close)
	letters := make(chan authority.Letter, 10)
	mode := new(atomic.Value)
	mode.Store(authority.ModePerson)
	s := start(t, authoritytest.WithServices(nil, policy{mode}), authoritytest.WithConfig(func(c *authority.Config) {
		c.Clients = []authority.ClientMetadata{{ID: service, Name: "A service", RedirectURIs: []string{app.URL + "/callback"}}}
	}), authoritytest.WithHousekeeping(), authoritytest.WithDeps(func(d *authority.Deps) {
		d.Mail = func(l authority.Letter) { letters <- l }
	}))
	b := &person{Tab: browsertest.NewTab(t, browser, s.Pages), s: s, letters: letters, app: app.URL + "/callback", mode: mode}
	b.Viewport(1440, 900, false)
	for _, step := range []struct {
		name string
		do   func(*testing.T, *person)
	}{
		{"set-up", setUp}, {"an agent", addAgent}, {"a click on a phone", allowOnPhone}, {"a passkey for what is critical", allowCritical},
		{"no, with a note", denyWithNote}, {"a class signed on a phone", signClass}, {"activity", seeActivity}, {"a service", logInAtService}, {"a second passkey", addPasskey}, {"signing in with it", signInWithSecond},
		{"removing the first", removeFirst}, {"notifications", notifications}, {"recovery", recovery},
	} {
		// Steps build on each other: after one that failed nothing is proven.
		if !t.Run(step.name, func(t *testing.T) { step.do(t, b) }) {
			t.FailNow()
		}
	}
}

func setUp(t *testing.T, b *person) {
	token, _, err := b.s.Authority.StartSetup(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b.Visit("/setup?token=" + url.QueryEscape(token))
	b.Wait(`document.querySelectorAll(".digits span").length === 4`)
	digits := browsertest.Eval[string](b.Tab, `document.querySelector(".digits").innerText.replace(/\s/g, "")`)
	if _, err := b.s.Authority.ConfirmSetup(digits); err != nil {
		t.Fatal(err)
	}
	b.Wait(`document.querySelector("form[data-owner] button:not([disabled])")`)
	b.Run(chromedp.SendKeys("#name", "Mara Lindqvist"), chromedp.SendKeys("#email", mara))
	b.Click("form[data-owner] button")
	b.Wait(`location.pathname === "/" && document.querySelector(".live[data-state=on]") && ` + b.Has("Nothing waits for you"))
	if state, email := b.s.Authority.Setup(); state != authority.SetupDone || email != mara {
		t.Errorf("the set-up is %s by %q", state, email)
	}
}

func addAgent(t *testing.T, b *person) {
	key := b.s.NewKey("helper")
	change, secret := b.s.Stranger().Prepare(api.TrustAgentAdd, map[string]string{"name": "helper", "public_key": key.Line})
	b.Visit(strings.TrimPrefix(change.ConfirmURL, b.s.Pages))
	b.Wait(b.Has("Add the agent helper"))
	b.Wait(browsertest.Armed)
	b.Click(".btn-allow")
	b.Wait(`document.querySelector("#outcome")?.innerText === "Confirmed by you"`)
	var done api.Trust
	b.s.Stranger().Do("GET", api.PathTrust+"/"+change.ID, nil, api.TrustSecretHeader, secret).Into(&done)
	if done.Enrolled == nil || done.Enrolled.Owner != mara {
		t.Fatalf("the asker is told %+v", done)
	}
	b.agent = &authoritytest.Principal{Client: authoritytest.Client{S: b.s}, Name: "helper", Email: done.Enrolled.Email, Key: key}
	b.agent.Login()
}

func allowOnPhone(t *testing.T, b *person) {
	b.Phone(false)
	b.Visit("/")
	b.Wait(`document.querySelector(".live[data-state=on]")`)
	id := b.agent.Ask("ls", "-la", "/srv").ID
	b.Wait(`document.querySelector(".req[data-id='` + id + `']")`)
	b.Check("inbox on a phone")
	b.Click(".req h3 a")
	b.Wait(`location.pathname === "/grants/` + id + `" && ` + b.Has("ls -la /srv"))
	b.Wait(browsertest.Armed)
	b.Check("card on a phone")
	b.Wait(b.Has("read by Vogt itself") + ` && document.querySelector(".calls li").innerText.includes("reads")`)
	b.Click(".btn-allow")
	b.Wait(`document.querySelector("#outcome")?.innerText === "Allowed once, by you"`)
	g := b.agent.Grant(id)
	if g.Status != grant.Approved || g.Strength != grant.Click || g.DecidedBy != mara {
		t.Errorf("the grant is %s, %s by %s", g.Status, g.Strength, g.DecidedBy)
	}
	jwt := b.agent.Token(id)
	b.s.Consume(id, jwt).Want(200)
	b.Wait(b.Has("The permission is used up."))
	b.Viewport(1440, 900, false)
}

func allowCritical(t *testing.T, b *person) {
	id := b.agent.Ask("vogt", "grant", "approve", "x").ID
	b.Visit("/grants/" + id)
	b.Wait(b.Has("Critical risk") + ` && ` + b.Has("A yes needs your passkey"))
	b.Wait(browsertest.Armed)
	b.Click(".btn-allow")
	b.Wait(`document.querySelector("#outcome")?.innerText === "Allowed once, by you" && ` + b.Has("passkey, on this authority’s page"))
	if g := b.agent.Grant(id); g.Status != grant.Approved || g.Strength != grant.Passkey {
		t.Errorf("the grant is %s, %s", g.Status, g.Strength)
	}
	if !b.s.HasRecord("decision", id, `"strength":"passkey"`, "clientDataJSON") {
		t.Errorf("the passkey's answer is not on record: %.600s", b.s.Recorded("decision"))
	}
}

func denyWithNote(t *testing.T, b *person) {
	id := b.agent.Ask("rm", "-rf", "build").ID
	b.Visit("/grants/" + id)
	b.Wait(browsertest.Armed)
	b.Run(chromedp.SendKeys("#note", "Only clean dist."))
	b.Click(".btn-deny")
	b.Wait(`document.querySelector("#outcome")?.innerText === "Denied by you" && ` + b.Has("Only clean dist."))
	if g := b.agent.Grant(id); g.Status != grant.Denied || g.Note != "Only clean dist." {
		t.Errorf("the grant is %s, note %q", g.Status, g.Note)
	}
}

func seeActivity(t *testing.T, b *person) {
	b.Visit("/activity")
	rows := browsertest.Eval[[]string](b.Tab, `[...document.querySelectorAll(".log tbody tr")].map(r => [...r.cells].slice(2, 5).map(c => c.innerText.split("\n")[0].trim()).join("|"))`)
	for _, want := range []string{"Asked|helper|helper", "Answered|helper|you", "About to run|helper|helper", "Signed in|helper|helper", "New epoch||authority"} {
		found := false
		for _, row := range rows {
			found = found || row == want
		}
		if !found {
			t.Errorf("no row says %q: %q", want, rows)
		}
	}
}

func addPasskey(t *testing.T, b *person) {
	b.Visit("/account")
	b.Wait(`document.querySelector("[data-body*='passkey.add']:not([disabled])")`)
	b.Click("[data-body*='passkey.add']")
	b.Wait(`location.pathname.startsWith("/trust/") && ` + b.Has("Make another passkey for your account"))
	b.Wait(browsertest.Armed)
	b.Click(".btn-allow")
	b.Wait(`location.pathname === "/register" && document.querySelector("[data-register]:not([disabled])") && ` + b.Has(mara))
	b.NewAuthenticator()
	b.Click("[data-register]")
	b.Wait(`location.pathname === "/account" && document.querySelectorAll("[data-post^='/p/passkeys/']").length === 2`)
	if n := browsertest.Eval[int](b.Tab, `document.querySelectorAll("[data-post$='/revoke']").length`); n != 1 {
		t.Errorf("the browser has %d sessions", n)
	}
}

func signInWithSecond(t *testing.T, b *person) {
	b.Wait(`document.querySelector("[data-post='/p/logout']:not([disabled])")`)
	b.Click("[data-post='/p/logout']")
	b.Wait(`location.pathname === "/login" && document.querySelector("[data-login]:not([disabled])")`)
	b.Click("[data-login]")
	b.Wait(`location.pathname === "/" && document.querySelector(".live[data-state=on]")`)
}

func removeFirst(t *testing.T, b *person) {
	b.Visit("/account")
	first := `details:has([aria-label="Remove for good Passkey ` + b.s.Clock.Now().UTC().Format("2006-01-02") + `"])`
	b.Wait(`document.querySelector(` + "`" + first + ` button:not([disabled])` + "`" + `)`)
	b.Click(first + " summary")
	b.Click(first + " button")
	b.Wait(`document.querySelectorAll("[data-post^='/p/passkeys/']").length === 1 && ` + b.Has("(2)"))
	if !b.s.HasRecord("trust", "passkey.removed", mara) {
		t.Error("the removal is not on record")
	}
	// What is left still decides, and stays.
	b.Wait(`document.querySelector("details button:not([disabled])")`)
	b.Click("details summary")
	b.Click("details[open] button")
	b.Wait(b.Has("This is the last way into the account."))
	id := b.agent.Ask("vogt", "key", "passkey").ID
	b.Visit("/grants/" + id)
	b.Wait(browsertest.Armed)
	b.Click(".btn-allow")
	b.Wait(`document.querySelector("#outcome")?.innerText === "Allowed once, by you"`)
	if g := b.agent.Grant(id); g.Strength != grant.Passkey {
		t.Errorf("the grant is %s, %s", g.Status, g.Strength)
	}
}

// logInAtService follows the link of a service, says no, then yes.
func logInAtService(t *testing.T, b *person) {
	link := "/authorize?" + url.Values{
		"response_type": {"code"}, "client_id": {service}, "redirect_uri": {b.app}, "state": {"x"}, "scope": {"openid profile"},
		"code_challenge": {strings.Repeat("c", 43)}, "code_challenge_method": {"S256"},
	}.Encode()
	for _, answer := range []struct{ button, gives string }{{".btn-deny", "error=access_denied"}, {".btn-allow", "code="}} {
		b.Visit(link)
		b.Wait(`location.pathname === "/consent" && ` + b.Has("A service wants to know who you are"))
		b.Wait(browsertest.Armed)
		b.Click(answer.button)
		b.Wait(`location.href.startsWith("` + b.app + `?") && location.search.includes("` + answer.gives + `") && document.body.innerText === "welcome"`)
	}
	b.Visit("/account")
	b.Wait(b.Has("A service (" + service + ")"))
	// Where nobody is asked, the page goes on by itself, with its key.
	b.mode.Store(authority.ModeOpen)
	b.Visit(link)
	b.Wait(`location.href.startsWith("` + b.app + `?code=") && document.body.innerText === "welcome"`)
	b.mode.Store(authority.ModePerson)
}

const (
	pushPublic   = "BGsX0fLhLEJH-Lzm5WOkQPJ3A32BLeszoPShOUXYmMKWT-NC4v4af5uO5-tKfA-eFivOM1drMV7Oy7ZAaDe_UfU" // any point of the curve
	pushEndpoint = "https://push.example/mara"
)

// notifications are switched on and off. The browser's own push service is in
// the network, so that one call is stood in for; the worker, the key that signs
// and the authority are real.
func notifications(t *testing.T, b *person) {
	b.Visit("/account")
	b.Wait(`document.querySelector("[data-push=off]:not([disabled])")`)
	browsertest.Eval[bool](b.Tab, `(() => {
		let made = null;
		Notification.requestPermission = async () => "granted";
		PushManager.prototype.getSubscription = async () => made;
		PushManager.prototype.subscribe = async o => made = {
			endpoint: "`+pushEndpoint+`", unsubscribe: async () => { made = null; },
			toJSON: () => ({ endpoint: "`+pushEndpoint+`", expirationTime: null, keys: { p256dh: "`+pushPublic+`", auth: "AAECAwQFBgcICQoLDA0ODw" } }),
			key: o.applicationServerKey.length,
		};
		return true;
	})()`)
	b.Click("[data-push]")
	b.Wait(`document.querySelector("[data-push=on]:not([disabled])")`)
	b.Check("account with notifications")
	subs, err := b.s.Authority.Subscriptions(t.Context(), mara)
	if err != nil || len(subs) != 1 || subs[0].Endpoint != pushEndpoint {
		t.Errorf("the authority knows %+v, %v", subs, err)
	}
	b.Wait(`navigator.serviceWorker.getRegistration("/").then(r => r?.active?.scriptURL === location.origin + "/sw.js" && r.scope === location.origin + "/")`)
	// What the worker shows, and where a press leads, whatever a message says.
	worker := b.s.Stranger().Do("GET", "/sw.js", nil, "Host", strings.TrimPrefix(b.s.Pages, "http://")).Want(200)
	if got := worker.Header.Get("Cache-Control"); got != "no-cache" {
		t.Errorf("the worker is kept: %q", got)
	}
	shown := browsertest.Eval[[]string](b.Tab, `(async () => {
		const heard = {}, shown = [], opened = [], work = [];
		const self = {
			addEventListener: (kind, f) => heard[kind] = f,
			registration: { showNotification: async (title, o) => shown.push([title, o.body, o.tag, o.data].join("|")) },
		};
		const clients = { matchAll: async () => [], openWindow: async to => opened.push(to) };
		`+string(worker.Body)+`
		const push = text => heard.push({ data: { json: () => JSON.parse(text) }, waitUntil: p => work.push(p) });
		push(JSON.stringify({ title: "Vogt", body: "helper asks", grant_id: "g", deep_link: location.origin + "/grants/g" }));
		for (const link of ["https://evil.example/", "javascript:alert(1)", "//evil.example", null, "\\evil.example"]) push(JSON.stringify({ deep_link: link }));
		push("no message");
		heard.notificationclick({ notification: { data: location.origin + "/grants/g", close() {} }, waitUntil: p => work.push(p) });
		await Promise.all(work);
		return [...shown, ...opened];
	})()`)
	want := []string{"Vogt|helper asks|g|" + b.s.Pages + "/grants/g"}
	for range 6 {
		want = append(want, "Vogt||vogt|"+b.s.Pages+"/")
	}
	want = append(want, b.s.Pages+"/grants/g")
	if !slices.Equal(shown, want) {
		t.Errorf("the worker shows %q", shown)
	}
	b.Click("[data-push]")
	b.Wait(`document.querySelector("[data-push=off]:not([disabled])")`)
	if subs, err = b.s.Authority.Subscriptions(t.Context(), mara); err != nil || len(subs) != 0 {
		t.Errorf("the authority still knows %+v, %v", subs, err)
	}
}

// recovery is the way back in for Mara, who has lost everything but her mailbox.
func recovery(t *testing.T, b *person) {
	ask := func() authority.Letter {
		b.Visit("/login")
		b.Wait(`document.querySelector("[data-lost] button:not([disabled])")`)
		b.Click("details:has([data-lost]) summary")
		b.Run(chromedp.SendKeys("#lost", mara))
		b.Click("[data-lost] button")
		b.Wait(b.Has("If there is such an account"))
		b.Check("a lost passkey")
		return <-b.letters
	}
	ask()
	// She is signed in here still: the account page warns, and can say no.
	b.Visit("/account")
	b.Wait(b.Has("Somebody asks to get into your account") + ` && document.querySelector("[data-post='/api/recovery/cancel']:not([disabled])")`)
	b.Check("account with a recovery")
	b.Click("[data-post='/api/recovery/cancel']")
	b.Wait(`!document.querySelector("[data-post='/api/recovery/cancel']")`)
	if !b.s.HasRecord("trust", "recovery.cancelled", mara) {
		t.Error("her no is not on record")
	}
	b.Wait(`document.querySelector("[data-post='/api/account/vacation']:not([disabled])")`)
	b.Click("[data-post='/api/account/vacation']")
	b.Wait(b.Has("I am back") + ` && document.querySelector("[data-post='/api/account/vacation']:not([disabled])")`)
	b.Click("[data-post='/api/account/vacation']")
	b.Wait(b.Has("I am away"))
	letter := ask()
	path := strings.TrimPrefix(letter.Link, b.s.Pages)
	b.Visit(path)
	b.Wait(b.Has("Your account can be recovered soon") + ` && !document.querySelector("[data-recover]")`)
	b.Check("a recovery that waits")
	b.s.Clock.Advance(7 * 24 * time.Hour)
	b.NewAuthenticator()
	b.Visit(path)
	b.Wait(`document.querySelector("[data-recover]:not([disabled])")`)
	b.Check("a recovery")
	b.Click("[data-recover]")
	b.Wait(`location.pathname === "/account" && document.querySelectorAll("[data-post^='/p/passkeys/']").length === 2`)
	if !b.s.HasRecord("trust", "recovery.done", mara) {
		t.Error("it is not on record")
	}
	b.Visit(path)
	b.Wait(b.Has("This recovery is over"))
}
