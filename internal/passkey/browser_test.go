package passkey_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	cdpwebauthn "github.com/chromedp/cdproto/webauthn"
	"github.com/chromedp/chromedp"

	"vogt/internal/passkey"
)

// browser is a real Chromium with a virtual authenticator.
type browser struct {
	t             *testing.T
	ctx           context.Context
	authenticator cdpwebauthn.AuthenticatorID
}

// startBrowser skips the test only where no Chromium is installed.
func startBrowser(t *testing.T) *browser {
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
	options = append(options, chromedp.ExecPath(path), chromedp.NoSandbox,
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true))
	ctx, cancelAllocator := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, cancelContext := chromedp.NewContext(ctx)
	ctx, cancelTimeout := context.WithTimeout(ctx, time.Minute)
	t.Cleanup(func() { cancelTimeout(); cancelContext(); cancelAllocator() })

	id, err := chromedp.Run(ctx, func(ctx context.Context, target *chromedp.Target) (cdpwebauthn.AuthenticatorID, error) {
		if _, err := cdp.Call(ctx, target, cdpwebauthn.Enable, cdpwebauthn.EnableParams{}); err != nil {
			return "", err
		}
		added, err := cdp.Call(ctx, target, cdpwebauthn.AddVirtualAuthenticator, cdpwebauthn.AddVirtualAuthenticatorParams{
			Options: &cdpwebauthn.VirtualAuthenticatorOptions{
				Protocol: cdpwebauthn.AuthenticatorProtocolCtap2, Ctap2version: cdpwebauthn.Ctap2versionCtap21,
				Transport: cdpwebauthn.AuthenticatorTransportInternal, HasResidentKey: true,
				HasUserVerification: true, IsUserVerified: true, AutomaticPresenceSimulation: true,
			},
		})
		return added.AuthenticatorID, err
	})
	if err != nil {
		t.Fatalf("Chromium does not start: %v", err)
	}
	return &browser{t, ctx, id}
}

func (b *browser) visit(url string) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, chromedp.Navigate(url)); err != nil {
		b.t.Fatal(err)
	}
}

// script runs a promise of a text in the page.
func (b *browser) script(text string) []byte {
	b.t.Helper()
	result, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](text, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("%v in %s", err, text)
	}
	return []byte(result)
}

func (b *browser) create(options []byte) []byte {
	b.t.Helper()
	return b.script(fmt.Sprintf(`navigator.credentials.create({publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(%s)}).then(c => JSON.stringify(c))`, options))
}

func (b *browser) get(options []byte) []byte {
	b.t.Helper()
	return b.script(fmt.Sprintf(`navigator.credentials.get({publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(%s)}).then(c => JSON.stringify(c))`, options))
}

func (b *browser) setVerified(yes bool) {
	b.t.Helper()
	err := chromedp.Do(b.ctx, chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, cdpwebauthn.SetUserVerified, cdpwebauthn.SetUserVerifiedParams{AuthenticatorID: b.authenticator, IsUserVerified: yes})
		return err
	}))
	if err != nil {
		b.t.Fatal(err)
	}
}

// servePage serves one page on a port of its own and returns the port. In a
// frame, the page signs whatever its parent asks for.
func servePage(t *testing.T) string {
	t.Helper()
	const page = `<!doctype html><title>page</title><script>
onmessage = async event => {
	try {
		const got = await navigator.credentials.get({publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(event.data)});
		parent.postMessage(JSON.stringify(got), "*");
	} catch (error) { parent.postMessage(String(error), "*"); }
};
</script>`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, page)
	}))
	t.Cleanup(server.Close)
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

func TestChromium(t *testing.T) {
	b := startBrowser(t)
	ours := "http://vogt.localhost:" + servePage(t)
	hostilePort := servePage(t)
	rp := newRP(t, func(c *passkey.Config) { c.Origins = []string{ours} })
	digest := sha256.Sum256([]byte("statement"))

	b.visit(ours)
	options, session, err := rp.BeginRegistration(pat, nil)
	if err != nil {
		t.Fatal(err)
	}
	credential, err := rp.FinishRegistration(pat, session, b.create(options))
	if err != nil {
		t.Fatal(err)
	}
	credentials := []passkey.Credential{credential}

	options, session, err = rp.BeginLogin()
	if err != nil {
		t.Fatal(err)
	}
	userID, _, err := rp.FinishLogin(session, b.get(options), knows(credential))
	if err != nil || string(userID) != string(pat.ID) {
		t.Errorf("logged in %q, %v", userID, err)
	}

	options, err = rp.BeginDecision(digest, credentials)
	if err != nil {
		t.Fatal(err)
	}
	evidence, err := rp.VerifyDecision(digest, credentials, b.get(options))
	if err != nil {
		t.Fatal(err)
	}
	if text, err := json.Marshal(evidence); err != nil {
		t.Error(err)
	} else {
		t.Logf("decided over %x at %s: %s", digest, ours, text)
	}

	t.Run("excluded", func(t *testing.T) {
		again, _, err := rp.BeginRegistration(pat, credentials)
		if err != nil {
			t.Fatal(err)
		}
		got := b.script(fmt.Sprintf(`navigator.credentials.create({publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(%s)}).then(c => "made another", String)`, again))
		if !strings.Contains(string(got), "InvalidStateError") {
			t.Errorf("the registered authenticator answered %s", got)
		}
	})
	t.Run("page drops user verification", func(t *testing.T) {
		b.setVerified(false)
		defer b.setVerified(true)
		weak := strings.Replace(string(options), `"userVerification":"required"`, `"userVerification":"discouraged"`, 1)
		_, err := rp.VerifyDecision(digest, credentials, b.get([]byte(weak)))
		wantCode(t, err, passkey.NotVerified)
	})
	t.Run("hostile page on another port", func(t *testing.T) {
		b.visit("http://vogt.localhost:" + hostilePort)
		_, err := rp.VerifyDecision(digest, credentials, b.get(options))
		wantCode(t, err, passkey.WrongSite)
	})
	t.Run("our page in a hostile frame", func(t *testing.T) {
		b.visit("http://evil.localhost:" + hostilePort)
		got := b.script(fmt.Sprintf(`new Promise(done => {
	onmessage = event => done(event.data);
	const frame = document.createElement("iframe");
	frame.allow = "publickey-credentials-get *";
	frame.onload = () => frame.contentWindow.postMessage(%s, "*");
	frame.src = %q;
	document.body.append(frame);
})`, options, ours))
		_, err := rp.VerifyDecision(digest, credentials, got)
		wantCode(t, err, passkey.WrongSite)
		if err != nil && !strings.Contains(err.Error(), "crossOrigin is true") {
			t.Errorf("refused for another reason: %v; the frame answered %s", err, got)
		}
	})
}
