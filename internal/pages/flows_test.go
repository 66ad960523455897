package pages_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"vogt/internal/api"
	"vogt/internal/detail"
	"vogt/internal/grant"
	"vogt/internal/pages"
	"vogt/internal/pages/browsertest"
)

// The public key of agents in these tests; nobody needs its private half.
const someKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKmx0Kj2uoW5uF4wPvr0HbbH9EKHYMyaZ8Ht7gkM1UZE agent"

// TestBrowser runs what people do in a real Chromium, with passkeys of a
// virtual authenticator. Its parts share one browser, each with a profile and
// a port of its own.
func TestBrowser(t *testing.T) {
	browser := browsertest.Start(t)
	for _, part := range []struct {
		name string
		run  func(*testing.T, *tab)
	}{
		{"set-up belongs to one browser", setUpOnce},
		{"sign in, out, and without the key", signInAndOut},
		{"live inbox", liveInbox},
		{"not live", notLive},
		{"allow by click", allowByClick},
		{"command lines break between words", commandBreaks},
		{"deny with a note by keyboard", denyByKey},
		{"keys never answer by accident", keysAreCareful},
		{"passkey for more", passkeyForMore},
		{"changed request", changedRequest},
		{"arm delay", armDelay},
		{"agents and trust", agentsAndTrust},
		{"own passkeys and keys", ownKeys},
		{"without JavaScript", withoutScript},
		{"hostile neighbour", hostileNeighbour},
		{"first answer counts", firstAnswerCounts},
		{"hostile words", hostileWords},
		{"every page", everyPage},
		{"every page of patterns", everyPatternPage},
	} {
		t.Run(part.name, func(t *testing.T) {
			t.Parallel()
			b := newTab(t, browser, newSite(t, time.Now))
			b.Viewport(1440, 900, false)
			part.run(t, b)
		})
	}
}

// another opens a second profile on the same pages.
func (b *tab) another() *tab {
	b.T.Helper()
	// The browser is the parent of b's own context.
	other := newTab(b.T, b.Browser, b.s)
	other.Viewport(1440, 900, false)
	return other
}

func setUpOnce(t *testing.T, b *tab) {
	token := b.s.authority.SetUpLink()
	path := "/setup?token=" + url.QueryEscape(token)
	b.Visit(path)
	b.Wait(`document.querySelectorAll(".digits span").length === 4`)
	b.Shot("setup.1440.light")
	b.Run(chromedp.Reload())
	b.Wait(`document.querySelectorAll(".digits span").length === 4`)

	thief := b.another()
	thief.Visit(path)
	thief.Wait(thief.Has("Opened in another browser first"))
	if n := eval[int](thief, `document.querySelectorAll(".digits").length`); n != 0 {
		t.Error("a second browser sees the digits")
	}
	if err := b.s.authority.TypeDigits("0000"); err == nil {
		t.Fatal("wrong digits were accepted")
	}
	if err := b.s.authority.TypeDigits(b.s.authority.Digits()); err != nil {
		t.Fatal(err)
	}
	b.Wait(`document.querySelector("form[data-owner] button:not([disabled])")`)
	b.Shot("setup2.1440.light")
	b.Run(chromedp.SendKeys("#name", "Mara Lindqvist"), chromedp.SendKeys("#email", "not an address"))
	b.Click("form[data-owner] button")
	if eval[bool](b, `document.querySelector("#email").validity.valid`) {
		t.Error("a broken address passes")
	}
	eval[string](b, `document.querySelector("#email").value = ""`)
	b.Run(chromedp.SendKeys("#email", mara))
	b.Click("form[data-owner] button")
	b.Wait(`location.pathname === "/" && ` + b.Has("Nothing waits for you"))
	b.Shot("empty.1440.light")
	b.Visit(path)
	b.Wait(b.Has("Set-up is done"))
	cookies := eval[string](b, `document.cookie`)
	if cookies != "" {
		t.Errorf("scripts can read cookies: %q", cookies)
	}
}

func signInAndOut(t *testing.T, b *tab) {
	ids := b.person()
	b.Visit("/account")
	b.Wait(`document.querySelector("[data-post='/p/logout']:not([disabled])")`)
	b.Click("[data-post='/p/logout']")
	b.Wait(`location.pathname === "/login"`)

	b.Visit("/grants/" + ids["read"])
	b.Wait(`location.pathname === "/login" && ` + b.Has("you return to the card"))
	b.Shot("login.1440.light")
	b.Click("[data-login]")
	b.Wait(`location.pathname === "/grants/` + ids["read"] + `"`)
	b.Wait(armedNow)

	// A stolen cookie alone reads, and never decides.
	cookie := b.cookie("vogt_session")
	thief := b.another()
	thief.Visit("/login")
	thief.setCookie("vogt_session", cookie)
	thief.Visit("/grants/" + ids["read"])
	thief.Wait(thief.Has("This browser has no key for answers"))
	thief.Wait(`document.querySelector(".live[data-state=on]")`)
	thief.Key(kb.Escape)
	thief.Key(kb.Enter, chromedp.ModifierCtrl)
	for _, forged := range []string{
		`fetch("/p/grants/%s/decision", {method: "POST", headers: {"Content-Type": "application/json"}, body: "{}"}).then(r => r.status)`,
		`(async () => {
			const pair = await crypto.subtle.generateKey({name: "ECDSA", namedCurve: "P-256"}, false, ["sign"]);
			const body = JSON.stringify({answer: "allow", grant_type: "once", digest: document.querySelector("form.decide").dataset.digest, note: ""});
			const sum = [...new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(body)))].map(b => b.toString(16).padStart(2, "0")).join("");
			const path = "/p/grants/%s/decision", issued = Date.now();
			const text = ["vogt-click-v1", location.origin, path, sum, issued].join("\n");
			const sig = new Uint8Array(await crypto.subtle.sign({name: "ECDSA", hash: "SHA-256"}, pair.privateKey, new TextEncoder().encode(text)));
			const b64 = btoa(String.fromCharCode(...sig)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
			return (await fetch(path, {method: "POST", headers: {"Content-Type": "application/json", "Vogt-Click": issued + "." + b64}, body})).status;
		})()`,
	} {
		if status := eval[int](thief, fmt.Sprintf(forged, ids["read"])); status != 403 {
			t.Errorf("a cookie without the key got %d", status)
		}
	}
	if g := b.s.authority.Grant(ids["read"]); g.Status != grant.Pending {
		t.Errorf("the request is %s", g.Status)
	}
	// The key cannot be read, not even by the page's own script.
	if extractable := eval[bool](b, `new Promise((ok, no) => {
		const open = indexedDB.open("vogt", 1);
		open.onsuccess = () => { const get = open.result.transaction("keys").objectStore("keys").get("click");
			get.onsuccess = () => { open.result.close(); ok(get.result.key.extractable); }; };
		open.onerror = no; })`); extractable {
		t.Error("the click key can be exported")
	}
	// Signing out elsewhere ends the session of an open page.
	b.s.authority.EndAll()
	b.Wait(b.Has("You were signed out"))
	b.Shot("signedout.1440.light")
}

func (b *tab) cookie(name string) (value string) {
	b.T.Helper()
	b.Run(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		got, err := cdp.Call(ctx, target, network.GetCookies, network.GetCookiesParams{})
		for _, c := range got.Cookies {
			if c.Name == name {
				value = c.Value
			}
		}
		return err
	}))
	if value == "" {
		b.T.Fatalf("no cookie %s", name)
	}
	return value
}

func (b *tab) setCookie(name, value string) {
	b.T.Helper()
	b.Run(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, network.SetCookie, network.SetCookieParams{Name: name, Value: value, URL: b.s.origin})
		return err
	}))
}

func liveInbox(t *testing.T, b *tab) {
	a := b.s.authority
	ids := b.enter()
	b.Wait(`document.querySelectorAll(".req").length === 4`)
	b.Wait(armedNow)
	b.Run(chromedp.Focus("#note"))
	first := eval[string](b, `document.querySelector(".req").dataset.id`)

	added := a.Ask(grant.Request{Requester: ops, Host: "nuc", Type: grant.Once, Command: []string{"certbot", "renew"}}, detail.Medium)
	b.Wait(`document.querySelector(".req[data-id='` + added + `']")`)
	if at := eval[int](b, `[...document.querySelectorAll(".req")].findIndex(r => r.dataset.id === "`+added+`")`); at != 4 {
		t.Errorf("the new card is number %d, want the last", at)
	}
	if focus := eval[string](b, `document.activeElement.id`); focus != "note" {
		t.Errorf("focus moved to %q", focus)
	}
	b.Wait(`document.querySelector("h1").innerText.startsWith("5 cards") && document.title.startsWith("5 cards") && document.querySelector("#count").innerText.includes("5")`)
	b.Wait(`document.querySelector("#news").textContent === "1 new card"`)
	if now := eval[string](b, `document.querySelector(".req").dataset.id`); now != first {
		t.Error("the rows moved under the finger")
	}

	// Answered on another device: row and open card close with who and how.
	open := eval[string](b, `document.querySelector("#pane").dataset.card`)
	for _, id := range []string{ids["connect"], open} {
		if err := a.Apply(id, grant.Deny{Decision: grant.Decision{By: mara, At: grant.At(time.Now()), Strength: grant.Click}}); err != nil {
			t.Fatal(err)
		}
		b.Wait(`document.querySelector(".req[data-id='` + id + `'][data-state=closed] .sub")?.innerText === "Denied by you"`)
	}
	b.Wait(`document.querySelector("#pane #outcome")?.innerText === "Denied by you" && !document.querySelector("form.decide")`)
	b.Wait(`document.activeElement.id === "outcome"`)
	b.Shot("inbox.closing.1440.light")

	// The rest is answered elsewhere, too: the inbox is empty.
	for _, id := range []string{ids["read"], ids["crossing"], added} {
		if err := a.Apply(id, grant.Revoke{By: claude, At: grant.At(time.Now())}); err != nil {
			t.Fatal(err)
		}
	}
	b.Wait(`document.querySelectorAll(".req:not([data-state])").length === 0`)
	b.Visit("/")
	b.Wait(b.Has("Nothing waits for you") + ` && document.querySelector(".live[data-state=on]")`)
	a.Ask(grant.Request{Requester: claude, Host: "nuc", Type: grant.Once, Command: []string{"make", "test"}}, detail.High)
	b.Wait(`document.querySelectorAll(".req").length === 1`)
	b.Wait(armedNow)
}

func notLive(t *testing.T, b *tab) {
	ids := b.enter()
	b.Visit("/grants/" + ids["read"])
	b.Wait(armedNow)
	until(t, "one event stream", func() bool { return b.s.authority.Streams() == 1 })
	b.s.down.Store(true)
	b.s.authority.DropStreams()
	b.Wait(`!document.querySelector("#strip").hidden && document.querySelector(".btn-deny").getAttribute("aria-disabled") === "true"`)
	b.Wait(b.Has("Not connected since"))
	b.Shot("notlive.1440.light")
	b.Key(kb.Escape)
	b.Click(".btn-deny")
	if g := b.s.authority.Grant(ids["read"]); g.Status != grant.Pending {
		t.Fatalf("answered while not live: %s", g.Status)
	}
	// What happened meanwhile shows as soon as it is live again.
	if err := b.s.authority.Apply(ids["read"], grant.Revoke{By: claude, At: grant.At(time.Now())}); err != nil {
		t.Fatal(err)
	}
	b.s.down.Store(false)
	b.Wait(b.Has("claude no longer needs this"))
	b.Wait(`document.querySelector("#strip").hidden`)
}

func allowByClick(t *testing.T, b *tab) {
	ids := b.enter()
	b.Visit("/grants/" + ids["connect"])
	b.Wait(armedNow)
	b.Run(chromedp.SendKeys("#note", "only the status page"))
	b.Click(".btn-allow")
	b.Wait(`document.querySelector("#outcome")?.innerText === "Allowed once, by you"`)
	if focus := eval[string](b, `document.activeElement.id`); focus != "outcome" {
		t.Errorf("focus is on %q, want the outcome", focus)
	}
	g := b.s.authority.Grant(ids["connect"])
	if g.Status != grant.Approved || g.Type != grant.Once || g.Decision.Strength != grant.Click || g.Decision.Note != "only the status page" {
		t.Errorf("the grant is %s %s, %+v", g.Status, g.Type, g.Decision)
	}
	// The evidence verifies by itself, later, with the key of the session.
	var click pages.Click
	if err := json.Unmarshal(g.Decision.Evidence, &click); err != nil {
		t.Fatal(err)
	}
	spki := b.s.authority.ProofKey(mara)
	if err := pages.VerifyClick(spki, click, time.UnixMilli(click.Issued)); err != nil {
		t.Error(err)
	}
	if !strings.Contains(string(click.Body), g.Decision.Digest.String()) {
		t.Error("the click does not name the digest")
	}

	// What becomes of it shows by itself, and leaves the focus where it is.
	b.Wait(b.Has("The agent has not used it yet.") + ` && ` + b.Has("nothing"))
	b.s.authority.Disturb(ids["connect"])
	if err := b.s.authority.Apply(ids["connect"], grant.Consume{At: grant.At(time.Now())}); err != nil {
		t.Fatal(err)
	}
	b.Wait(b.Has("ended with exit code 0, as the machine reported.") + ` && ` + b.Has("The permission is used up.") + ` && document.querySelector("aside").innerText.includes("once")`)
	if focus := eval[string](b, `document.activeElement.id`); focus != "outcome" {
		t.Errorf("focus moved to %q", focus)
	}

	// For a time: the wider reach must be chosen, and its own digest is signed.
	b.Visit("/?card=" + ids["read"])
	b.Wait(armedNow)
	if chosen := eval[string](b, `document.querySelector("input[name=reach]:checked").value`); chosen != "once" {
		t.Errorf("%q is preset", chosen)
	}
	b.Click("input[name=reach][value=timed]")
	b.Wait(`document.querySelector("#yes").innerText === "Allow for 1 hour" && document.querySelector("#how").innerText.includes("until")`)
	b.Wait(armedNow)
	b.Shot("inbox.timed.1440.light")
	b.Click(".btn-allow")
	b.Wait(`document.querySelector("#pane #outcome")?.innerText.startsWith("Allowed until")`)
	if g := b.s.authority.Grant(ids["read"]); g.Status != grant.Approved || g.Type != grant.Timed {
		t.Errorf("the grant is %s %s", g.Status, g.Type)
	}
	use := func(n string) {
		t.Helper()
		if err := b.s.authority.Apply(ids["read"], grant.Consume{At: grant.At(time.Now())}); err != nil {
			t.Fatal(err)
		}
		b.Wait(b.Has("Used so far: " + n + "."))
	}
	b.Wait(b.Has("Used so far: 0."))
	use("1")
	if focus := eval[string](b, `document.activeElement.id`); focus != "outcome" {
		t.Errorf("in the inbox the focus moved to %q", focus)
	}

	// Revoking is one click.
	b.Visit("/grants/" + ids["read"])
	b.Wait(`document.querySelector(".live[data-state=on]") && document.querySelector(".btn-danger:not([disabled])")`)
	b.Run(chromedp.Focus(".btn-danger"))
	use("2")
	if !eval[bool](b, `document.activeElement.matches(".btn-danger:not([disabled])")`) {
		t.Error("a use took the focus from the button")
	}
	b.Shot("closed.1440.light")
	b.Click(".btn-danger")
	b.Wait(b.Has("Revoked by you"))
	if g := b.s.authority.Grant(ids["read"]); g.Status != grant.Revoked {
		t.Errorf("the grant is %s", g.Status)
	}
}

// commandBreaks looks at a command on a narrow screen, at every length of what
// precedes it: no line begins within a word, and what is copied is the command.
func commandBreaks(t *testing.T, b *tab) {
	b.person()
	b.Phone(false)
	for _, n := range []int{14, 18, 22, 26, 30, 34} {
		before := strings.Repeat("x", n)
		line := "rm " + before + " -rf ./build-all-of/it-is-here --no-preserve-root"
		id := b.s.authority.Ask(grant.Request{Requester: claude, Host: "nuc", Type: grant.Once, Command: strings.Fields(line)}, detail.Medium)
		b.Visit("/grants/" + id)
		// A line begins where a character is further down than the one before.
		lines := eval[[]string](b, `(() => {
			const out = [""], walk = document.createTreeWalker(document.querySelector("pre.box"), NodeFilter.SHOW_TEXT), range = document.createRange();
			let top = null;
			while (walk.nextNode()) for (let i = 0; i < walk.currentNode.data.length; i++) {
				range.setStart(walk.currentNode, i); range.setEnd(walk.currentNode, i + 1);
				const at = range.getBoundingClientRect();
				if (top !== null && at.height && at.top > top + 8) out.push("");
				if (at.height) top = at.top;
				out[out.length - 1] += walk.currentNode.data[i];
			}
			return out; })()`)
		if len(lines) < 2 || strings.Join(lines, "") != line {
			t.Errorf("the lines are %q", lines)
		}
		for _, l := range lines[:len(lines)-1] {
			if !strings.HasSuffix(l, " ") && !strings.HasSuffix(l, "/") {
				t.Errorf("a line breaks within a word: %q", lines)
			}
		}
		for what, got := range map[string]string{
			"innerText": eval[string](b, `document.querySelector("pre.box").innerText`),
			"a copy":    eval[string](b, `(() => { getSelection().selectAllChildren(document.querySelector("pre.box")); return getSelection().toString(); })()`),
		} {
			if strings.TrimRight(got, "\n") != line {
				t.Errorf("%s is %q, want %q", what, got, line)
			}
		}
	}
	// A word that is longer than a line is broken rather than cut off.
	long := strings.Repeat("ab-", 200)
	id := b.s.authority.Ask(grant.Request{Requester: claude, Host: "nuc", Type: grant.Once, Command: []string{"echo", long}}, detail.Medium)
	b.Visit("/grants/" + id)
	if wide := eval[bool](b, `document.querySelector("pre.box").scrollWidth > document.querySelector("pre.box").clientWidth`); wide {
		t.Error("a long word reaches out of its box")
	}
}

func denyByKey(t *testing.T, b *tab) {
	ids := b.enter()
	b.Visit("/grants/" + ids["risky"])
	b.Wait(armedNow)
	b.Run(chromedp.SendKeys("#note", "Only clean dist/."))
	b.Key(kb.Escape) // leaves the field first
	b.Wait(`document.activeElement === document.body`)
	if g := b.s.authority.Grant(ids["risky"]); g.Status != grant.Pending {
		t.Fatalf("Esc in the note answered: %s", g.Status)
	}
	b.Key(kb.Escape)
	b.Wait(`document.querySelector("#outcome")?.innerText === "Denied by you"`)
	b.Wait(b.Has("Only clean dist/."))
	b.Shot("denied.1440.light")
	if g := b.s.authority.Grant(ids["risky"]); g.Status != grant.Denied || g.Decision.Note != "Only clean dist/." {
		t.Errorf("the grant is %s, %+v", g.Status, g.Decision)
	}
}

func keysAreCareful(t *testing.T, b *tab) {
	ids := b.enter()
	b.Visit("/")
	b.Wait(armedNow)
	// j and k move along the rows and open them; at the ends they stay.
	rows := eval[[]string](b, `[...document.querySelectorAll(".req")].map(r => r.dataset.id)`)
	b.Key("j")
	b.Wait(`document.querySelector("#pane").dataset.card === "` + rows[1] + `"`)
	b.Key("k")
	b.Wait(`document.querySelector("#pane").dataset.card === "` + rows[0] + `"`)
	b.Key("k")
	b.Wait(armedNow)

	// Plain Enter never answers, not even on the button itself.
	b.Run(chromedp.Focus(".btn-allow"))
	b.Key(kb.Enter)
	b.Run(chromedp.Focus("input[name=reach]"))
	b.Key(kb.Enter)
	// Keys in a field are text.
	b.Run(chromedp.SendKeys("#note", "jk"))
	if note := eval[string](b, `document.querySelector("#note").value`); note != "jk" {
		t.Errorf("note is %q", note)
	}
	for name, id := range ids {
		if g := b.s.authority.Grant(id); g.Status != grant.Pending {
			t.Errorf("%s is %s", name, g.Status)
		}
	}
	b.Key(kb.Enter, chromedp.ModifierCtrl)
	b.Wait(`document.querySelector("#pane #outcome")?.innerText === "Allowed once, by you"`)
	if g := b.s.authority.Grant(rows[0]); g.Status != grant.Approved {
		t.Errorf("Ctrl+Enter: %s", g.Status)
	}

	// The answering keys can be turned off.
	b.Visit("/account?keys=off")
	b.Visit("/grants/" + rows[1])
	b.Wait(armedNow)
	b.Key(kb.Escape)
	b.Key(kb.Enter, chromedp.ModifierCtrl)
	b.Click("input[name=reach][value=once]") // a round trip through the page's own event loop
	if g := b.s.authority.Grant(rows[1]); g.Status != grant.Pending {
		t.Errorf("keys are off, and the request is %s", g.Status)
	}
	b.Visit("/account?keys=on")

	// On a small screen the inbox has no open card, and its keys do nothing.
	b.Viewport(360, 740, false)
	b.Visit("/")
	b.Wait(`document.querySelector(".live[data-state=on]")`)
	b.Key(kb.Enter, chromedp.ModifierCtrl)
	b.Key(kb.Escape)
	if eval[bool](b, armedNow) {
		t.Error("a card that nobody can see is armed")
	}
	b.Click(".req h3 a")
	b.Wait(`location.pathname.startsWith("/grants/")`)
	if g := b.s.authority.Grant(rows[1]); g.Status != grant.Pending {
		t.Errorf("a hidden card was answered: %s", g.Status)
	}
}

func passkeyForMore(t *testing.T, b *tab) {
	ids := b.person()
	b.Visit("/grants/" + ids["crossing"])
	b.Wait(armedNow)
	b.Wait(b.Has("A yes needs your passkey"))
	b.Shot("card-crossing.1440.light")
	b.Click(".btn-allow")
	b.Wait(`document.querySelector("#outcome")?.innerText === "Allowed once, by you"`)
	b.Wait(b.Has("passkey, on this authority’s page"))
	if g := b.s.authority.Grant(ids["crossing"]); g.Status != grant.Approved || g.Decision.Strength != grant.Passkey {
		t.Errorf("the grant is %s, %+v", g.Status, g.Decision)
	}
	// Always needs a passkey even where once does not.
	b.Visit("/grants/" + ids["read"])
	b.Wait(armedNow)
	b.Click("input[name=reach][value=always]")
	b.Wait(`document.querySelector("#yes").innerText === "Allow always" && document.querySelector("#how").innerText.includes("your passkey")`)
	b.Wait(armedNow)
	b.Click(".btn-allow")
	b.Wait(`document.querySelector("#outcome")?.innerText === "Allowed always, by you"`)
	if g := b.s.authority.Grant(ids["read"]); g.Type != grant.Always || g.Decision.Strength != grant.Passkey {
		t.Errorf("the grant is %s, %+v", g.Type, g.Decision)
	}
	// What only an own signature permits can be denied here, not allowed.
	b.s.authority.Require(ids["connect"], grant.Independent)
	b.Visit("/grants/" + ids["connect"])
	b.Wait(`document.querySelector(".btn-deny").getAttribute("aria-disabled") === "false"`)
	b.Wait(b.Has("vogt grant approve " + ids["connect"]))
	if eval[bool](b, armedNow) {
		t.Error("Allow is armed although no page can give that proof")
	}
	b.Shot("card-independent.1440.light")
	b.Click(".btn-deny")
	b.Wait(`document.querySelector("#outcome")?.innerText === "Denied by you"`)
}

func changedRequest(t *testing.T, b *tab) {
	a := b.s.authority
	ids := b.enter()
	b.Visit("/grants/" + ids["read"])
	b.Wait(armedNow)
	b.Run(chromedp.SendKeys("#note", "kept"))
	before := eval[string](b, `document.querySelector("form.decide").dataset.digest`)

	// The page still shows the old request when the answer goes out.
	eval[bool](b, `(document.querySelector("form.decide").dataset.digest = "00", document.querySelector("input[name=reach]").dataset.digest = "`+strings.Repeat("0", 64)+`", true)`)
	b.Click(".btn-allow")
	b.Wait(b.Has("The request changed after you opened it. Nothing was allowed."))
	b.Wait(`document.querySelector("form.decide").dataset.digest === "` + before + `" && document.querySelector("#note").value === "kept"`)
	b.Shot("changed.1440.light")

	// And when it changes under the open page, the page says so by itself.
	b.Visit("/grants/" + ids["read"])
	b.Wait(armedNow)
	a.Disturb(ids["read"])
	b.Wait(b.Has("The request changed after you opened it. Nothing was allowed.") + ` && document.querySelector("form.decide").dataset.digest !== "` + before + `"`)
	if g := a.Grant(ids["read"]); g.Status != grant.Pending {
		t.Errorf("the grant is %s", g.Status)
	}
	b.Wait(armedNow)
	b.Click(".btn-allow")
	b.Wait(`document.querySelector("#outcome")?.innerText === "Allowed once, by you"`)
}

func armDelay(t *testing.T, b *tab) {
	ids := b.enter()
	b.Visit("/grants/" + ids["read"])
	// Before the script ran the buttons are dead, and right after it they wait.
	pressed := eval[string](b, `(() => { const b = document.querySelector(".btn-deny"); const state = b.disabled + " " + b.getAttribute("aria-disabled"); b.click(); return state; })()`)
	if pressed == "false false" && eval[float64](b, `performance.now()`) < 600 {
		t.Errorf("armed at once: %s", pressed)
	}
	b.Wait(armedNow)
	if at := eval[float64](b, `performance.now()`); at < 600 {
		t.Errorf("armed %f ms after the page began", at)
	}
	// A change of what Allow means takes the arm away again, in the same turn.
	if state := eval[string](b, `(() => { document.querySelector("input[name=reach][value=timed]").click(); const b = document.querySelector(".btn-allow"); b.click(); return b.getAttribute("aria-disabled"); })()`); state != "true" {
		t.Error("armed right after the reach was changed")
	}
	b.Wait(armedNow)
	if g := b.s.authority.Grant(ids["read"]); g.Status != grant.Pending {
		t.Errorf("a press before the arm counted: %s", g.Status)
	}
}

func agentsAndTrust(t *testing.T, b *tab) {
	a := b.s.authority
	b.person()
	b.Visit("/agents")
	b.Wait(`document.querySelector("[data-post='/p/panic']:not([disabled])")`)
	b.Shot("agents.1440.light")

	// Narrowing is one click.
	b.Click(`[data-post$="/pause"]`)
	b.Wait(b.Has("Paused"))
	b.Click("[data-post='/p/panic']")
	b.Wait(b.Has("1 agent paused. 1 token ended. 4 cards and permissions closed."))
	b.Shot("panic.1440.light")

	// Widening shows the whole statement and needs a passkey.
	b.Click(`[data-body*='"email":""']`)
	b.Wait(`location.pathname.startsWith("/trust/")`)
	b.Wait(armedNow)
	b.Wait(b.Has("Resume all your agents"))
	b.Click(".btn-allow")
	b.Wait(`document.querySelector("#outcome")?.innerText === "Confirmed by you"`)
	b.Visit("/agents")
	b.Wait(`!document.body.innerText.includes("Paused")`)

	// A client of the wire protocol sends people here to add an agent.
	b.Visit("/enroll?name=codex&key=" + url.QueryEscape(someKey))
	b.Wait(b.Has("Add the agent codex?"))
	b.Shot("enroll.1440.light")
	b.Click("[data-post='/p/trust']")
	b.Wait(`location.pathname.startsWith("/trust/")`)
	b.Wait(b.Has("Add the agent codex"))
	b.Wait(armedNow)
	b.Shot("trust.1440.light")
	b.Key(kb.Enter, chromedp.ModifierCtrl)
	b.Wait(`document.querySelector("#outcome")?.innerText === "Confirmed by you"`)
	b.Visit("/agents")
	b.Wait(b.Has("codex"))

	// A pattern is shown by its parts, in words.
	pattern := a.NewTrust(pages.NewTrust{Operation: api.TrustStandingAdd, Params: map[string]string{"days": "90", "reason": "reading along",
		"pattern": `{"agent":"*","programs":["grep","ls"],"does":["read"],"read":["/home/mara/src/**"],"max_risk":"medium","limits":{"per_minute":60,"deletes_per_hour":50}}`}})
	b.Visit("/trust/" + pattern)
	b.Wait(armedNow)
	b.Wait(b.Has("Permit a class of commands to all your agents") + " && " + b.Has("grep, ls") + " && " + b.Has("/home/mara/src/**") + " && " + b.Has("Risk, at most"))
	b.Shot("pattern.1440.light")
	b.Key(kb.Escape)
	b.Wait(`document.querySelector("#outcome")?.innerText === "Declined by you"`)

	// Declining needs no passkey and changes nothing.
	id := a.NewTrust(pages.NewTrust{Operation: api.TrustDevice, Params: map[string]string{"name": "laptop"}})
	b.Visit("/trust/" + id)
	b.Wait(armedNow)
	b.Key(kb.Escape)
	b.Wait(`document.querySelector("#outcome")?.innerText === "Declined by you"`)

	// What an agent may do without asking is on its page, and ends with a click.
	always := a.Ask(grant.Request{Requester: ops, Host: "nuc", Type: grant.Once, Command: []string{"tail", "-n", "5", "a b.log"}}, detail.Medium)
	if err := a.Apply(always, grant.Approve{Type: grant.Always, Decision: grant.Decision{By: mara, At: grant.At(time.Now()), Strength: grant.Click}}); err != nil {
		t.Fatal(err)
	}
	b.Visit("/agents/" + url.PathEscape(ops))
	b.Wait(b.Has("What it may do without asking") + ` && document.querySelector("#permissions code").innerText === "tail -n 5 'a b.log'"`)
	b.Wait(`document.querySelector("#permissions button:not([disabled])")`)
	b.Shot("permissions.1440.light")
	b.Click("#permissions button")
	b.Wait(`!document.querySelector("#permissions") && ` + b.Has("No permission for a time or for good"))
	if g := a.Grant(always); g.Status != grant.Revoked || g.RevokedBy != mara {
		t.Errorf("the grant is %s by %q", g.Status, g.RevokedBy)
	}

	// Removing is behind a fold, last on the agent's page.
	b.Visit("/agents/" + url.PathEscape(ops))
	b.Wait(`document.querySelector("details .btn-danger:not([disabled])")`)
	b.Click("details > summary")
	b.Shot("agent.1440.light")
	b.Click("details .btn-danger")
	b.Wait(`location.pathname === "/agents" && ` + b.Has("1 removed agent"))
}

// ownKeys is a person on a phone who adds a second passkey and an SSH key, and
// takes away what is too much.
func ownKeys(t *testing.T, b *tab) {
	a := b.s.authority
	b.person()
	b.Phone(false)
	b.Visit("/account")
	b.Wait(`document.querySelector("[data-body*='passkey.add']:not([disabled])")`)
	b.Click("[data-body*='passkey.add']")
	b.Wait(`location.pathname.startsWith("/trust/")`)
	b.Wait(armedNow)
	b.Shot("trust-passkey.360.light")
	b.Click(".btn-allow")

	// The browser goes on by itself, and looking at the link again spends
	// nothing. This device has a passkey already, so another one is taken.
	b.Wait(`location.pathname === "/register" && document.querySelector("[data-register]:not([disabled])")`)
	b.Run(chromedp.Reload())
	b.Wait(`document.querySelector("[data-register]:not([disabled])")`)
	b.Check("register on a phone")
	b.Shot("register.360.light")
	b.Click("[data-register]")
	b.Wait(b.Has("This device holds a passkey of the account already"))
	b.NewAuthenticator()
	b.Click("[data-register]")
	b.Wait(`location.pathname === "/account" && ` + b.Has("Passkey 2") + ` && ` + b.Has("The passkey was made, and you are signed in with it."))
	if n := eval[int](b, `document.querySelectorAll("[data-post$='/revoke']").length`); n != 1 {
		t.Errorf("the browser has %d sessions", n)
	}

	// A dialogue of more than five minutes has a page of its own, and so has
	// a link that was used.
	link := "/register?token=" + a.RegisterLink(mara)
	b.NewAuthenticator()
	b.Visit(link)
	b.Wait(`document.querySelector("[data-register]:not([disabled])")`)
	eval[bool](b, `(window.create = navigator.credentials.create.bind(navigator.credentials),
		navigator.credentials.create = async o => { const made = await create(o); await new Promise(ok => window.goOn = ok); return made; }, true)`)
	b.Click("[data-register]")
	b.Wait(`window.goOn`)
	a.ForgetCeremonies()
	eval[bool](b, `(goOn(), true)`)
	b.Wait(`location.search === "?late" && ` + b.Has("That took too long"))
	b.Visit(link)
	b.Wait(b.Has("This link was used"))
	b.Check("used link on a phone")

	// An SSH key: what cannot be one does not leave the browser, what is none
	// is refused with the reason, beside the field.
	b.Visit("/account")
	b.Wait(`document.querySelector("[data-post='/p/keys']:not([disabled])")`)
	b.Run(chromedp.SendKeys("#key", "-----BEGIN OPENSSH PRIVATE KEY-----"))
	b.Click("[data-post='/p/keys']")
	if eval[bool](b, `document.querySelector("#key").validity.valid`) {
		t.Error("a private key passes the field")
	}
	eval[string](b, `document.querySelector("#key").value = ""`)
	b.Run(chromedp.SendKeys("#key", "ssh-ed25519 AAAA laptop"))
	b.Key(kb.Enter)
	b.Wait(b.Has("This key cannot be used."))
	b.Wait(`(r => r.top >= 0 && r.bottom <= innerHeight)(document.querySelector("#say").getBoundingClientRect())`)
	eval[string](b, `document.querySelector("#key").value = ""`)
	b.Run(chromedp.SendKeys("#key", someKey))
	b.Click("[data-post='/p/keys']")
	b.Wait(`location.pathname.startsWith("/trust/") && ` + b.Has("Add an SSH key that decides for you"))
	b.Wait(armedNow)
	b.Shot("trust-key.360.light")
	b.Click(".btn-deny")
	b.Wait(`document.querySelector("#outcome")?.innerText === "Declined by you"`)

	// Taking away: behind a fold, and with one press for what was not me.
	a.AddKey(mara, pages.Key{ID: "managed", Name: "backup", Fingerprint: "SHA256:V9sEo8S4Zb2h7kT3o6yLr1w0cXh8pSx9eJ4aYkt1QkM", Created: time.Now(), Dormant: time.Now().Add(72 * time.Hour), Managed: true, LoginOnly: true})
	b.Visit("/account")
	b.Wait(`document.querySelector("[data-post='/p/keys/managed/remove']:not([disabled])")`)
	b.Check("account on a phone")
	b.Shot("account-keys.360.light")
	b.Click("[data-post='/p/keys/managed/remove']")
	b.Wait(`!document.body.innerText.includes("backup") && document.querySelector("details [data-post^='/p/passkeys/']:not([disabled])")`)
	b.Click("details:has([data-post^='/p/passkeys/']) summary")
	b.Click("details[open] [data-post^='/p/passkeys/']")
	b.Wait(`document.querySelectorAll("[data-post^='/p/passkeys/']").length === 1 && document.querySelector("details [data-post^='/p/passkeys/']:not([disabled])")`)
	b.Click("details:has([data-post^='/p/passkeys/']) summary")
	b.Click("details[open] [data-post^='/p/passkeys/']")
	b.Wait(b.Has("This is the last way into the account."))
	if n := a.Passkeys(mara); n != 1 {
		t.Errorf("there are %d passkeys", n)
	}
}

func withoutScript(t *testing.T, b *tab) {
	ids := b.enter()
	b.Run(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
		return err
	}))
	b.Visit("/grants/" + ids["risky"])
	b.Wait(b.Has("JavaScript is off.") + ` && ` + b.Has("vogt grant inbox") + ` && ` + b.Has("../../shared-cache"))
	b.Wait(b.Has("What it would do") + ` && ` + b.Has("/home/mara/shared-cache") + ` && document.querySelectorAll(".calls .risk").length === 3`)
	if n := eval[int](b, `document.querySelectorAll("button:not([disabled])").length`); n != 0 {
		t.Errorf("%d buttons promise something that they cannot do", n)
	}
	b.Shot("noscript.1440.light")
}

// hostileNeighbour is a page on another port of the same host: the browser
// sends it the same cookies, and calls it the same site.
func hostileNeighbour(t *testing.T, b *tab) {
	ids := b.enter()
	b.Visit("/grants/" + ids["read"])
	b.Wait(armedNow)
	evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, err := r.Cookie("vogt_session"); err != nil || c.Value == "" {
			t.Error("the neighbour does not even get the cookie; this test shows nothing")
		}
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<!doctype html><title>neighbour</title><p>hello")
	}))
	t.Cleanup(evil.Close)
	_, port, err := net.SplitHostPort(evil.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	b.Expect("refused", "blocked", "CORS", "frame")
	b.Run(chromedp.Navigate("http://vogt.localhost:" + port + "/"))
	path, target := "/p/grants/"+ids["read"]+"/decision", b.s.origin
	for name, script := range map[string]string{
		"reads a page":       `fetch("` + target + `/", {credentials: "include"}).then(r => r.text()).then(t => "read " + t.length, e => "")`,
		"posts JSON":         `fetch("` + target + path + `", {method: "POST", credentials: "include", headers: {"Content-Type": "application/json"}, body: "{}"}).then(r => "status " + r.status, e => "")`,
		"reads events":       `new Promise(ok => { const s = new EventSource("` + target + `/p/events", {withCredentials: true}); s.onmessage = s.onopen = () => ok("open"); s.onerror = () => { s.close(); ok(""); }; })`,
		"finds the key":      `new Promise(ok => { const open = indexedDB.open("vogt", 1); open.onsuccess = () => { ok([...open.result.objectStoreNames].join()); open.result.close(); }; open.onerror = () => ok(""); })`,
		"loads the script":   `new Promise(ok => { const s = document.createElement("script"); s.type = "module"; s.src = "` + target + `/assets/x.js"; s.onload = () => ok("loaded"); s.onerror = () => ok(""); document.body.append(s); })`,
		"frames the card":    `new Promise(ok => { const f = document.createElement("iframe"); f.src = "` + target + "/grants/" + ids["read"] + `"; f.onload = () => { try { ok(f.contentDocument ? "" : ""); } catch { ok(""); } }; document.body.append(f); })`,
		"posts without CORS": `fetch("` + target + path + `", {method: "POST", mode: "no-cors", credentials: "include", headers: {"Content-Type": "text/plain"}, body: JSON.stringify({answer: "allow"})}).then(() => "", () => "")`,
		"posts a form": `new Promise(ok => { const f = document.createElement("form"); f.method = "post"; f.enctype = "text/plain"; f.action = "` + target + path + `"; f.target = "sink";
			const i = document.createElement("iframe"); i.name = "sink"; i.onload = () => ok(""); document.body.append(i, f); f.submit(); })`,
	} {
		if got := eval[string](b, script); got != "" {
			t.Errorf("a page on another port %s: %s", name, got)
		}
	}
	if framed := eval[bool](b, `[...document.querySelectorAll("iframe")].some(f => { try { return Boolean(f.contentDocument?.querySelector(".card")) } catch { return false } })`); framed {
		t.Error("the card is in a frame")
	}
	if g := b.s.authority.Grant(ids["read"]); g.Status != grant.Pending {
		t.Errorf("the grant is %s", g.Status)
	}
}

// firstAnswerCounts answers a card that was answered elsewhere meanwhile,
// before this page could hear of it.
func firstAnswerCounts(t *testing.T, b *tab) {
	ids := b.enter()
	b.Visit("/grants/" + ids["read"])
	b.Wait(armedNow)
	b.s.authority.Silence(true)
	if err := b.s.authority.Apply(ids["read"], grant.Deny{Decision: grant.Decision{By: mara, At: grant.At(time.Now()), Strength: grant.Click}}); err != nil {
		t.Fatal(err)
	}
	b.Click(".btn-allow")
	b.Wait(b.Has("It was already closed. Your answer was not counted; the first valid one is.") + ` && document.querySelector("#outcome")?.innerText === "Denied by you"`)
	if g := b.s.authority.Grant(ids["read"]); g.Status != grant.Denied {
		t.Errorf("the grant is %s", g.Status)
	}
}
