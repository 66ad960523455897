//go:build unix

package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"vogt/internal/api"
	"vogt/internal/authoritytest"
	"vogt/internal/pages"
	"vogt/internal/passkey/passkeytest"
	"vogt/internal/vogtdtest"
)

// browser is a person's browser on the pages: its cookies, the key that its
// page made and cannot export, and a passkey.
type browser struct {
	t        *testing.T
	d        *vogtdtest.Daemon
	cookies  map[string]string
	key      *ecdsa.PrivateKey
	passkeys *passkeytest.Authenticator
	session  string // name of the session, no secret
	link     string // of the set-up
	digits   string
}

const mara = "mara@example.com"

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

var digitsShown = regexp.MustCompile(`class="digits"[^>]*aria-label="([0-9 ]+)"`)

// setUp makes the owner as `vogt up` and a browser do it together.
func setUp(t *testing.T, d *vogtdtest.Daemon) *browser {
	t.Helper()
	origin, err := url.Parse(d.API.Pages)
	if err != nil {
		t.Fatal(err)
	}
	b := &browser{t: t, d: d, cookies: map[string]string{}, key: newKey(t), passkeys: passkeytest.New(d.API.Pages, origin.Hostname())}
	link, err := d.Control().NewLink(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	b.link = link.URL
	token := strings.TrimPrefix(link.URL, d.API.Pages+"/setup?token=")
	shown := digitsShown.FindSubmatch(b.get("/setup?token=" + token).Want(200).Body)
	if shown == nil {
		t.Fatal("the page shows no digits")
	}
	b.digits = strings.ReplaceAll(string(shown[1]), " ", "")
	if _, err := d.Control().Digits(context.Background(), b.digits); err != nil {
		t.Fatal(err)
	}
	var c struct {
		Ceremony string
		Options  json.RawMessage
	}
	b.post("/p/setup/options", map[string]string{"token": token, "name": "Mara", "email": mara}).Into(&c)
	response, err := b.passkeys.Create(c.Options)
	if err != nil {
		t.Fatal(err)
	}
	spki, err := x509.MarshalPKIXPublicKey(b.key.Public())
	if err != nil {
		t.Fatal(err)
	}
	var in struct{ Session string }
	b.post("/p/setup/verify", map[string]any{
		"token": token, "ceremony": c.Ceremony, "response": json.RawMessage(response), "proof_key": base64.StdEncoding.EncodeToString(spki),
	}).Into(&in)
	b.session = in.Session
	if b.cookies["vogt_session"] == "" || b.session == "" {
		t.Fatalf("set-up signed nobody in: %v", b.cookies)
	}
	return b
}

// secondPasskey adds a passkey of another device, as the account page does, and
// returns its name. The browser goes on in the session that comes with it.
func (b *browser) secondPasskey() string {
	b.t.Helper()
	var next struct{ Location string }
	b.decide("/p/trust", map[string]any{"operation": api.TrustPasskeyAdd, "params": map[string]string{}}).Into(&next)
	path := strings.TrimPrefix(next.Location, "/trust/")
	digest := trustDigest(b.t, b, path)
	assertion := b.assert("/p/trust/"+path+"/passkey", map[string]any{"digest": digest})
	b.decide("/p/trust/"+path+"/confirm", map[string]any{"digest": digest, "response": assertion}).Into(&next)
	token, ok := strings.CutPrefix(next.Location, "/register?token=")
	if !ok {
		b.t.Fatalf("confirming leads to %q", next.Location)
	}
	var c struct {
		Ceremony string
		Options  json.RawMessage
	}
	b.post("/p/register/options", map[string]string{"token": token}).Into(&c)
	response, err := passkeytest.New(b.d.API.Pages, b.passkeys.RPID).Create(c.Options)
	if err != nil {
		b.t.Fatal(err)
	}
	spki, err := x509.MarshalPKIXPublicKey(b.key.Public())
	if err != nil {
		b.t.Fatal(err)
	}
	var in struct{ Session string }
	b.post("/p/register/verify", map[string]any{
		"ceremony": c.Ceremony, "response": json.RawMessage(response), "proof_key": base64.StdEncoding.EncodeToString(spki),
	}).Into(&in)
	b.session = in.Session
	var made struct{ ID string }
	if err := json.Unmarshal(response, &made); err != nil {
		b.t.Fatal(err)
	}
	return made.ID
}

// do makes a call on the pages' host with the browser's cookies.
func (b *browser) do(method, path string, body any, headers ...string) authoritytest.Answer {
	b.t.Helper()
	a := b.d.API.Stranger().Do(method, path, body, append([]string{"Host", b.host(), "Cookie", b.cookie()}, headers...)...)
	for _, c := range (&http.Response{Header: a.Header}).Cookies() {
		b.cookies[c.Name] = c.Value
	}
	return a
}

func (b *browser) host() string { return strings.TrimPrefix(b.d.API.Pages, "http://") }

func (b *browser) cookie() string {
	var all []string
	for name, value := range b.cookies {
		all = append(all, name+"="+value)
	}
	return strings.Join(all, "; ")
}

func (b *browser) get(path string) authoritytest.Answer {
	b.t.Helper()
	return b.do("GET", path, nil)
}

// post is what the page's script sends where no click is needed.
func (b *browser) post(path string, body any) authoritytest.Answer {
	b.t.Helper()
	return b.do("POST", path, body, "Origin", b.d.API.Pages, "Sec-Fetch-Site", "same-origin")
}

// deciding is a call that changes something, before it is sent: each part of it
// can be falsified.
type deciding struct {
	path    string
	body    []byte
	headers map[string]string
	click   pages.Click
	key     *ecdsa.PrivateKey // signs the click; nil sends none
}

// honest is the call as the page's script makes it.
func (b *browser) honest(path string, body any) *deciding {
	b.t.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		b.t.Fatal(err)
	}
	return &deciding{
		path: path, body: raw, key: b.key,
		click: pages.Click{Origin: b.d.API.Pages, Path: path, Body: raw, Issued: time.Now().UnixMilli()},
		headers: map[string]string{
			"Host": b.host(), "Cookie": b.cookie(), "Origin": b.d.API.Pages, "Sec-Fetch-Site": "same-origin", "Content-Type": "application/json",
		},
	}
}

func (b *browser) send(c *deciding) authoritytest.Answer {
	b.t.Helper()
	if c.key != nil {
		c.headers[pages.ClickHeader] = signClick(b.t, c.key, c.click)
	}
	var headers []string
	for name, value := range c.headers {
		headers = append(headers, name, value)
	}
	return b.d.API.Stranger().Do("POST", c.path, c.body, headers...)
}

// decide makes the call honestly.
func (b *browser) decide(path string, body any) authoritytest.Answer {
	b.t.Helper()
	return b.send(b.honest(path, body))
}

// signClick signs as WebCrypto does: ECDSA with SHA-256, r and s of 32 bytes.
func signClick(t *testing.T, key *ecdsa.PrivateKey, c pages.Click) string {
	t.Helper()
	sum := sha256.Sum256(c.Signed())
	r, s, err := ecdsa.Sign(rand.Reader, key, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	signature := make([]byte, 64)
	r.FillBytes(signature[:32])
	s.FillBytes(signature[32:])
	return fmt.Sprintf("%d.%s", c.Issued, base64.RawURLEncoding.EncodeToString(signature))
}

// agent enrols an agent of the person through management.
func (b *browser) agent(name string) *authoritytest.Principal {
	b.t.Helper()
	owner := &authoritytest.Principal{Client: authoritytest.Client{S: b.d.API}, Email: mara}
	return b.d.API.ManagedAgent(name, owner, owner)
}
