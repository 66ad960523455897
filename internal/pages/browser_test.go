package pages_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	cdpwebauthn "github.com/chromedp/cdproto/webauthn"
	"github.com/chromedp/chromedp"
)

// newBrowser starts Chromium; tabs of it are contexts of their own.
func newBrowser(t *testing.T) context.Context {
	t.Helper()
	var path string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		t.Skip("no Chromium is installed (Debian: apt install chromium)")
	}
	options := append([]chromedp.ExecAllocatorOption{}, chromedp.DefaultExecAllocatorOptions[:]...)
	options = append(options, chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true), chromedp.Flag("lang", "en"))
	ctx, cancelAllocator := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, cancelContext := chromedp.NewContext(ctx)
	t.Cleanup(func() { cancelContext(); cancelAllocator() })
	if err := chromedp.Do(ctx, chromedp.Navigate("about:blank")); err != nil {
		t.Fatalf("Chromium does not start: %v", err)
	}
	return ctx
}

// tab is a browser of its own, with cookies, storage and a virtual
// authenticator that no other tab sees.
type tab struct {
	t       *testing.T
	browser context.Context
	ctx     context.Context
	s       *site

	mu       sync.Mutex
	problems []string // exceptions, console errors, refused loads
	expected []string // words of problems that the test brings about
}

// expect lets problems pass that hold one of words.
func (b *tab) expect(words ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.expected = append(b.expected, words...)
}

const patience = 8 * time.Second

func newTab(t *testing.T, browser context.Context, s *site) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(browser, chromedp.WithNewBrowserContext())
	ctx, cancelTimeout := context.WithTimeout(ctx, time.Minute)
	t.Cleanup(func() { cancelTimeout(); cancel() })
	b := &tab{t: t, browser: browser, ctx: ctx, s: s}
	if err := chromedp.Listen(ctx, b.hear); err != nil {
		t.Fatal(err)
	}
	b.run(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		if _, err := cdp.Call(ctx, target, log.Enable, cdp.Empty{}); err != nil {
			return err
		}
		if _, err := cdp.Call(ctx, target, cdpwebauthn.Enable, cdpwebauthn.EnableParams{}); err != nil {
			return err
		}
		_, err := cdp.Call(ctx, target, cdpwebauthn.AddVirtualAuthenticator, cdpwebauthn.AddVirtualAuthenticatorParams{
			Options: &cdpwebauthn.VirtualAuthenticatorOptions{
				Protocol: cdpwebauthn.AuthenticatorProtocolCtap2, Ctap2version: cdpwebauthn.Ctap2versionCtap21,
				Transport: cdpwebauthn.AuthenticatorTransportInternal, HasResidentKey: true,
				HasUserVerification: true, IsUserVerified: true, AutomaticPresenceSimulation: true,
			},
		})
		return err
	}))
	t.Cleanup(b.noProblems)
	return b
}

// hear collects what must never happen: exceptions, console errors and loads
// that the content security policy refused.
func (b *tab) hear(event any) {
	var text string
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		text = fmt.Sprint("exception: ", e.ExceptionDetails.Text, " ", e.ExceptionDetails.Exception.Description)
	case *log.EventEntryAdded:
		if e.Entry.Level != log.EntryLevelError || strings.Contains(e.Entry.Text, "Failed to load resource") {
			return
		}
		text = fmt.Sprint("log: ", e.Entry.Text)
	case *runtime.EventConsoleAPICalled:
		text = fmt.Sprint("console: ", e.Type)
	default:
		return
	}
	b.mu.Lock()
	b.problems = append(b.problems, text)
	b.mu.Unlock()
}

func (b *tab) noProblems() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range b.problems {
		if !slices.ContainsFunc(b.expected, func(word string) bool { return strings.Contains(p, word) }) {
			b.t.Error(p)
		}
	}
}

func (b *tab) run(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, steps...); err != nil {
		b.t.Fatal(err)
	}
}

func (b *tab) visit(path string) {
	b.t.Helper()
	b.run(chromedp.Navigate(b.s.origin + path))
}

func eval[T any](b *tab, script string) T {
	b.t.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](script, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("%v in %s", err, script)
	}
	return v
}

// wait asks until condition, an expression of the page, holds.
func (b *tab) wait(condition string) {
	b.t.Helper()
	deadline := time.Now().Add(patience)
	var last error
	for time.Now().Before(deadline) {
		ok, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](`Boolean(`+condition+`)`))
		if err == nil && ok {
			return
		}
		last = err
		<-time.After(10 * time.Millisecond)
	}
	text, _ := chromedp.Run(b.ctx, chromedp.Evaluate[string](`location.href + "\n" + document.body.innerText.slice(0, 3000)`))
	b.t.Fatalf("never true: %s (%v)\n%s", condition, last, text)
}

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

func (b *tab) click(selector string) {
	b.t.Helper()
	b.run(chromedp.Click(selector, chromedp.NodeVisible))
}

func (b *tab) key(keys string, modifiers ...chromedp.Modifier) {
	b.t.Helper()
	b.run(chromedp.KeyEvent(keys, chromedp.KeyModifiers(modifiers...)))
}

func (b *tab) has(text string) string {
	return fmt.Sprintf(`document.body.innerText.includes(%q)`, text)
}

const armedNow = `document.querySelector(".btn-allow")?.getAttribute("aria-disabled") === "false"`

// viewport sets width, height and colours.
func (b *tab) viewport(width, height int64, dark bool) {
	b.t.Helper()
	value := "light"
	if dark {
		value = "dark"
	}
	b.run(chromedp.EmulateViewport(width, height), chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: value}, {Name: "prefers-reduced-motion", Value: "reduce"},
			{Name: "hover", Value: map[bool]string{true: "hover", false: "none"}[width > 1000]},
		}})
		return err
	}))
}

// shot keeps a picture of the whole page where VOGT_TEST_SHOTS names a folder.
func (b *tab) shot(name string) {
	folder := os.Getenv("VOGT_TEST_SHOTS")
	if folder == "" {
		return
	}
	b.t.Helper()
	picture, err := chromedp.Run(b.ctx, func(ctx context.Context, target *chromedp.Target) ([]byte, error) {
		whole := true
		r, err := cdp.Call(ctx, target, page.CaptureScreenshot, page.CaptureScreenshotParams{CaptureBeyondViewport: &whole})
		return r.Data, err
	})
	if err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, name+".png"), picture, 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// signUp goes through set-up as a person would, and ends at the inbox.
func (b *tab) signUp(name, email string) {
	b.t.Helper()
	token := b.s.authority.SetUpLink()
	b.visit("/setup?token=" + url.QueryEscape(token))
	b.wait(`document.querySelector(".digits")`)
	if shown := eval[string](b, `document.querySelector(".digits").innerText.replace(/\s/g, "")`); shown != b.s.authority.Digits() {
		b.t.Fatalf("page shows %q, want %q", shown, b.s.authority.Digits())
	}
	if err := b.s.authority.TypeDigits(b.s.authority.Digits()); err != nil {
		b.t.Fatal(err)
	}
	b.wait(`document.querySelector("form[data-owner] button:not([disabled])")`)
	b.run(chromedp.SendKeys("#name", name), chromedp.SendKeys("#email", email))
	b.click("form[data-owner] button")
	b.wait(`location.pathname === "/" && document.querySelector(".live[data-state=on]")`)
}

// person makes Mara by set-up, with a passkey, and then her agents and requests.
func (b *tab) person() map[string]string {
	b.t.Helper()
	b.signUp("Mara Lindqvist", mara)
	return b.s.populate()
}

// enter signs Mara in without a passkey: the page makes its key as it would,
// and the authority is told of it behind the page's back.
func (b *tab) enter() map[string]string {
	b.t.Helper()
	ids := b.s.populate()
	b.visit("/login")
	spki, err := base64.StdEncoding.DecodeString(eval[string](b, `(async () => {
		window.pair = await crypto.subtle.generateKey({name: "ECDSA", namedCurve: "P-256"}, false, ["sign"]);
		return btoa(String.fromCharCode(...new Uint8Array(await crypto.subtle.exportKey("spki", pair.publicKey))));
	})()`))
	if err != nil {
		b.t.Fatal(err)
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
	b.visit("/")
	return ids
}
