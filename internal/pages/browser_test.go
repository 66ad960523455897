package pages_test

import (
	"context"
	"encoding/base64"
	"net/url"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"vogt/internal/pages/browsertest"
)

// tab is a browser of its own on the pages of a site.
type tab struct {
	*browsertest.Tab
	s *site
}

func newTab(t *testing.T, browser context.Context, s *site) *tab {
	t.Helper()
	return &tab{browsertest.NewTab(t, browser, s.origin), s}
}

func eval[V any](b *tab, script string) V {
	b.T.Helper()
	return browsertest.Eval[V](b.Tab, script)
}

const (
	patience = browsertest.Patience
	armedNow = browsertest.Armed
)

// until asks until condition holds on the Go side.
func until(t *testing.T, what string, condition func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !condition() {
		if time.Now().After(deadline) {
			t.Fatalf("never happened: %s", what)
		}
		<-time.After(5 * time.Millisecond)
	}
}

// signUp goes through set-up as a person would, and ends at the inbox.
func (b *tab) signUp(name, email string) {
	b.T.Helper()
	token := b.s.authority.SetUpLink()
	b.Visit("/setup?token=" + url.QueryEscape(token))
	b.Wait(`document.querySelector(".digits")`)
	if shown := eval[string](b, `document.querySelector(".digits").innerText.replace(/\s/g, "")`); shown != b.s.authority.Digits() {
		b.T.Fatalf("page shows %q, want %q", shown, b.s.authority.Digits())
	}
	if err := b.s.authority.TypeDigits(b.s.authority.Digits()); err != nil {
		b.T.Fatal(err)
	}
	b.Wait(`document.querySelector("form[data-owner] button:not([disabled])")`)
	b.Run(chromedp.SendKeys("#name", name), chromedp.SendKeys("#email", email))
	b.Click("form[data-owner] button")
	b.Wait(`location.pathname === "/" && document.querySelector(".live[data-state=on]")`)
}

// person makes Mara by set-up, with a passkey, and then her agents and requests.
func (b *tab) person() map[string]string {
	b.T.Helper()
	b.signUp("Mara Lindqvist", mara)
	return b.s.populate()
}

// enter signs Mara in without a passkey: the page makes its key as it would,
// and the authority is told of it behind the page's back.
func (b *tab) enter() map[string]string {
	b.T.Helper()
	ids := b.s.populate()
	b.Visit("/login")
	spki, err := base64.StdEncoding.DecodeString(eval[string](b, `(async () => {
		window.pair = await crypto.subtle.generateKey({name: "ECDSA", namedCurve: "P-256"}, false, ["sign"]);
		return btoa(String.fromCharCode(...new Uint8Array(await crypto.subtle.exportKey("spki", pair.publicKey))));
	})()`))
	if err != nil {
		b.T.Fatal(err)
	}
	cookie, session := b.s.authority.SignIn(mara, spki)
	b.setCookie("vogt_session", cookie)
	eval[bool](b, `new Promise((ok, no) => {
		const open = indexedDB.open("vogt", 1);
		open.onupgradeneeded = () => open.result.createObjectStore("keys");
		open.onsuccess = () => {
			const put = open.result.transaction("keys", "readwrite").objectStore("keys").put({key: pair.privateKey, session: "`+session+`"}, "click");
			put.onsuccess = () => { open.result.close(); ok(true); };
		};
		open.onerror = no; })`)
	b.Visit("/")
	return ids
}
