// Package browsertest drives a real Chromium for the tests of the pages: tabs
// with cookies, storage and a virtual authenticator of their own, waiting for
// what a page comes to show, pictures, and a look at whether a page is well made.
//
// It is test support. It leaves out what is on the pages and which authority is
// behind them.
package browsertest

import (
	"context"
	"fmt"
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
	"github.com/chromedp/cdproto/webauthn"
	"github.com/chromedp/chromedp"
)

// Patience is how long a condition may take to come true.
const Patience = 8 * time.Second

// Start starts Chromium, which ends with the test; tabs are contexts of it.
// Without a Chromium the test is skipped.
func Start(t *testing.T) context.Context {
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

// Tab is a browser of its own, with cookies, storage and a virtual
// authenticator that no other tab sees. What must never happen in it fails the
// test at its end: exceptions, console errors, loads that were refused.
type Tab struct {
	T       *testing.T
	Browser context.Context // as [Start] returned it
	Origin  string          // of the pages

	ctx           context.Context
	authenticator webauthn.AuthenticatorID

	mu       sync.Mutex
	problems []string
	expected []string // words of problems that the test brings about
}

// NewTab opens a tab for the pages at origin.
func NewTab(t *testing.T, browser context.Context, origin string) *Tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(browser, chromedp.WithNewBrowserContext())
	ctx, cancelTimeout := context.WithTimeout(ctx, time.Minute)
	t.Cleanup(func() { cancelTimeout(); cancel() })
	b := &Tab{T: t, Browser: browser, Origin: origin, ctx: ctx}
	if err := chromedp.Listen(ctx, b.hear); err != nil {
		t.Fatal(err)
	}
	b.Run(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		if _, err := cdp.Call(ctx, target, log.Enable, cdp.Empty{}); err != nil {
			return err
		}
		_, err := cdp.Call(ctx, target, webauthn.Enable, webauthn.EnableParams{})
		return err
	}))
	b.NewAuthenticator()
	t.Cleanup(b.noProblems)
	return b
}

// NewAuthenticator takes the authenticator away, with its passkeys, and puts
// an empty one in its place: the person has another device at hand.
func (b *Tab) NewAuthenticator() {
	b.T.Helper()
	b.Run(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		if b.authenticator != "" {
			old := webauthn.RemoveVirtualAuthenticatorParams{AuthenticatorID: b.authenticator}
			if _, err := cdp.Call(ctx, target, webauthn.RemoveVirtualAuthenticator, old); err != nil {
				return err
			}
		}
		made, err := cdp.Call(ctx, target, webauthn.AddVirtualAuthenticator, webauthn.AddVirtualAuthenticatorParams{
			Options: &webauthn.VirtualAuthenticatorOptions{
				Protocol: webauthn.AuthenticatorProtocolCtap2, Ctap2version: webauthn.Ctap2versionCtap21,
				Transport: webauthn.AuthenticatorTransportInternal, HasResidentKey: true,
				HasUserVerification: true, IsUserVerified: true, AutomaticPresenceSimulation: true,
			},
		})
		b.authenticator = made.AuthenticatorID
		return err
	}))
}

// Expect lets problems pass that hold one of words.
func (b *Tab) Expect(words ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.expected = append(b.expected, words...)
}

func (b *Tab) hear(event any) {
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

func (b *Tab) noProblems() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range b.problems {
		if !slices.ContainsFunc(b.expected, func(word string) bool { return strings.Contains(p, word) }) {
			b.T.Error(p)
		}
	}
}

// Run runs steps of chromedp.
func (b *Tab) Run(steps ...chromedp.Action[chromedp.Void]) {
	b.T.Helper()
	if err := chromedp.Do(b.ctx, steps...); err != nil {
		b.T.Fatal(err)
	}
}

// Visit goes to a path of the pages.
func (b *Tab) Visit(path string) {
	b.T.Helper()
	b.Run(chromedp.Navigate(b.Origin + path))
}

// Eval runs a script in the page and returns what it, or its promise, gives.
func Eval[V any](b *Tab, script string) V {
	b.T.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[V](script, chromedp.EvalAwaitPromise))
	if err != nil {
		b.T.Fatalf("%v in %s", err, script)
	}
	return v
}

// Wait asks until condition, an expression of the page, holds.
func (b *Tab) Wait(condition string) {
	b.T.Helper()
	deadline := time.Now().Add(Patience)
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
	b.T.Fatalf("never true: %s (%v)\n%s", condition, last, text)
}

// Click presses what selector finds, once it is visible.
func (b *Tab) Click(selector string) {
	b.T.Helper()
	b.Run(chromedp.Click(selector, chromedp.NodeVisible))
}

// Key presses keys.
func (b *Tab) Key(keys string, modifiers ...chromedp.Modifier) {
	b.T.Helper()
	b.Run(chromedp.KeyEvent(keys, chromedp.KeyModifiers(modifiers...)))
}

// Has is the condition that the page shows text.
func (b *Tab) Has(text string) string {
	return fmt.Sprintf(`document.body.innerText.includes(%q)`, text)
}

// Armed is the condition that the open card, or change of trust, can be
// answered.
const Armed = `document.querySelector(".btn-allow")?.getAttribute("aria-disabled") === "false"`

// Viewport sets width, height and colours of a desk.
func (b *Tab) Viewport(width, height int64, dark bool) {
	b.T.Helper()
	value := "light"
	if dark {
		value = "dark"
	}
	b.Run(chromedp.EmulateViewport(width, height), chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: value}, {Name: "prefers-reduced-motion", Value: "reduce"},
			{Name: "hover", Value: map[bool]string{true: "hover", false: "none"}[width > 1000]},
		}})
		return err
	}))
}

// Phone makes the tab a small touch screen.
func (b *Tab) Phone(dark bool) {
	b.T.Helper()
	b.Viewport(360, 740, dark)
	b.Run(chromedp.EmulateViewport(360, 740, chromedp.EmulateMobile, chromedp.EmulateTouch))
}

// Shot keeps a picture of the whole page where VOGT_TEST_SHOTS names a folder.
func (b *Tab) Shot(name string) {
	folder := os.Getenv("VOGT_TEST_SHOTS")
	if folder == "" {
		return
	}
	b.T.Helper()
	picture, err := chromedp.Run(b.ctx, func(ctx context.Context, target *chromedp.Target) ([]byte, error) {
		whole := true
		r, err := cdp.Call(ctx, target, page.CaptureScreenshot, page.CaptureScreenshotParams{CaptureBeyondViewport: &whole})
		return r.Data, err
	})
	if err != nil {
		b.T.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, name+".png"), picture, 0o644); err != nil {
		b.T.Fatal(err)
	}
}
