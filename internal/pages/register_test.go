package pages_test

import (
	"crypto/elliptic"
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"vogt/internal/api"
	"vogt/internal/pages"
	"vogt/internal/passkey/passkeytest"
)

type m = map[string]any

// opened decodes the ceremony that a call began.
func opened(t *testing.T, a answer) (c pages.Ceremony) {
	t.Helper()
	want(t, a, 200)
	if err := json.Unmarshal([]byte(a.body), &c); err != nil {
		t.Fatal(err)
	}
	return c
}

// made is the answer of the authenticator that makes a passkey.
func made(t *testing.T, device *passkeytest.Authenticator, c pages.Ceremony) json.RawMessage {
	t.Helper()
	response, err := device.Create(c.Options)
	if err != nil {
		t.Fatal(err)
	}
	return response
}

// TestRegister goes through a registration link: looking spends nothing, the
// first press does, and each of its ends has a page.
func TestRegister(t *testing.T) {
	clock := fixedClock()
	s := newSite(t, clock.now)
	s.setUp(passkeytest.New(s.origin, "vogt.localhost"))
	mine := s.cookie
	s.cookie = "" // the link may open in a browser where nobody is signed in
	token := s.authority.RegisterLink(mara)
	path := "/register?token=" + token
	for range 3 {
		want(t, s.get(path), 200, "Make a passkey", "Mara Lindqvist", mara, `data-register="`+token+`"`)
	}
	want(t, s.get(path+"&lang=de"), 200, "Passkey anlegen")
	if n := s.authority.Passkeys(mara); n != 1 {
		t.Fatalf("looking made a passkey: %d", n)
	}
	for name, broken := range map[string]answer{
		"without a token":   s.post("/p/register/options", m{}),
		"another token":     s.post("/p/register/options", m{"token": strings.Repeat("0", 32)}),
		"from another port": s.post("/p/register/options", m{"token": token}, func(r *http.Request) { r.Header.Set("Origin", "http://vogt.localhost:1") }),
		"an unknown field":  s.post("/p/register/options", m{"token": token, "email": "eve@evil.example"}),
	} {
		if broken.StatusCode/100 != 4 {
			t.Errorf("%s: %d %s", name, broken.StatusCode, broken.body)
		}
	}
	c := opened(t, s.post("/p/register/options", m{"token": token}))
	want(t, s.get(path), 410, "This link was used", "If that was not you", "vogt key passkey")
	want(t, s.post("/p/register/options", m{"token": token}), 410, "urn:vogt:pages:used")

	phone := passkeytest.New(s.origin, "vogt.localhost")
	_, spki := newKey(t, elliptic.P256())
	answer := m{"ceremony": c.ID, "response": made(t, phone, c), "proof_key": spki}
	want(t, s.post("/p/register/verify", m{"ceremony": c.ID, "response": answer["response"]}), 400)
	want(t, s.post("/p/login/verify", answer), 410)
	done := s.post("/p/register/verify", answer)
	want(t, done, 200, `"session"`)
	want(t, s.post("/p/register/verify", answer), 410)
	if n := s.authority.Passkeys(mara); n != 2 {
		t.Errorf("there are %d passkeys", n)
	}
	in := done.Cookies()[0]
	if in.Name != "vogt_session" || !in.HttpOnly || strings.Contains(done.body, in.Value) {
		t.Errorf("signing in sets %+v and answers %s", in, done.body)
	}
	s.cookie = in.Value
	want(t, s.get("/account"), 200, "Passkey 2")
	s.cookie = mine
	want(t, s.get("/account"), 200) // it was another browser's

	// In a browser that was signed in, the new session takes the place of the
	// old one.
	token = s.authority.RegisterLink(mara)
	c = opened(t, s.post("/p/register/options", m{"token": token}))
	tablet := passkeytest.New(s.origin, "vogt.localhost")
	want(t, s.post("/p/register/verify", m{"ceremony": c.ID, "response": made(t, tablet, c), "proof_key": spki}), 200)
	want(t, s.get("/account"), 303)

	// Too late, in both ways.
	s.cookie = ""
	token = s.authority.RegisterLink(mara)
	clock.advance(10 * time.Minute)
	want(t, s.get("/register?token="+token), 410, "This link no longer works")
	want(t, s.post("/p/register/options", m{"token": token}), 410, "urn:vogt:pages:expired")
	want(t, s.get("/register"), 410, "This link no longer works")
	want(t, s.get("/register?late"), 410, "That took too long")
	if strings.Contains(s.get("/register?late&token="+s.authority.RegisterLink(mara)).body, "data-register") {
		t.Error("a page that says it is too late offers the link")
	}
}

// TestRegisterForAnother: whoever is signed in sees whose account a link is
// for, before anything happens.
func TestRegisterForAnother(t *testing.T) {
	s := newSite(t, fixedClock().now)
	s.populate()
	s.authority.AddPerson("eve@evil.example", "Eve")
	s.signIn(mara)
	path := "/register?token=" + s.authority.RegisterLink("eve@evil.example")
	want(t, s.get(path), 200, "eve@evil.example", "Mara Lindqvist is signed in here")
	own := s.get("/register?token=" + s.authority.RegisterLink(mara))
	want(t, own, 200, mara)
	if strings.Contains(own.body, "is signed in here") {
		t.Error("one's own link warns of oneself")
	}
}

// trustPath is where a prepared change is confirmed.
func trustPath(t *testing.T, a answer) string {
	t.Helper()
	want(t, a, 200)
	found := regexp.MustCompile(`"location":"(/trust/[\w-]+)"`).FindStringSubmatch(a.body)
	if found == nil {
		t.Fatalf("no change was prepared: %s", a.body)
	}
	return found[1]
}

// confirm confirms a change with the passkey and returns the answer.
func (s *site) confirm(t *testing.T, device *passkeytest.Authenticator, path string) answer {
	t.Helper()
	code := regexp.MustCompile(`data-digest="([0-9a-f]{64})"`).FindStringSubmatch(s.get(path).body)
	if code == nil {
		t.Fatalf("%s shows no digest", path)
	}
	c := opened(t, s.post("/p"+path+"/passkey", m{"digest": code[1]}))
	response, err := device.Get(c.Options)
	if err != nil {
		t.Fatal(err)
	}
	return s.post("/p"+path+"/confirm", m{"digest": code[1], "response": json.RawMessage(response)})
}

// TestAddPasskey: the link comes back to the session that confirmed, once, and
// to nobody else.
func TestAddPasskey(t *testing.T) {
	s := newSite(t, fixedClock().now)
	device := passkeytest.New(s.origin, "vogt.localhost")
	s.setUp(device)
	want(t, s.get("/account"), 200, "Add a passkey", `data-body="{&#34;operation&#34;:&#34;passkey.add&#34;,&#34;params&#34;:{}}"`)
	path := trustPath(t, s.post("/p/trust", m{"operation": api.TrustPasskeyAdd, "params": m{}}))
	want(t, s.get(path), 200, "Make another passkey for your account", `href="/account"`)
	done := s.confirm(t, device, path)
	want(t, done, 200, `"location":"/register?token=`)
	link := regexp.MustCompile(`/register\?token=\w+`).FindString(done.body)
	if a := s.get(path); strings.Contains(a.body, link) || !strings.Contains(a.body, "The browser that confirmed goes on") {
		t.Errorf("afterwards the change's page says %.300s", a.body)
	}
	want(t, s.get(link), 200, "Make a passkey")
}

// TestAddKey: what is added is the line as it was understood.
func TestAddKey(t *testing.T) {
	s := newSite(t, fixedClock().now)
	device := passkeytest.New(s.origin, "vogt.localhost")
	s.setUp(device)
	want(t, s.get("/account"), 200, "Add an SSH key", `name="public_key"`)
	for name, c := range map[string]struct {
		line any
		says string
	}{
		"nothing":     {"", "empty"},
		"words":       {"hello", "does not begin with ssh-ed25519"},
		"RSA":         {"ssh-rsa AAAA me", "type ssh-rsa is not accepted here"},
		"two":         {someKey + "\n" + someKey, "several lines"},
		"options":     {`command="x" ` + someKey, "options before the key type"},
		"private key": {"-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjE=\n", "this is a PRIVATE key"},
	} {
		a := s.post("/p/keys", m{"public_key": c.line})
		want(t, a, 400, "urn:vogt:pages:key", "This key cannot be used.", c.says)
		if strings.Contains(a.body, "b3Blbn") || strings.Contains(a.body, "hello") {
			t.Errorf("%s: the answer repeats it: %s", name, a.body)
		}
	}
	want(t, s.post("/p/keys", m{"public_key": 1}), 400, "urn:vogt:pages:invalid")
	want(t, s.post("/p/keys", m{"public_key": someKey}, func(r *http.Request) { r.Header.Del(pages.ClickHeader) }), 403, "no-click")

	path := trustPath(t, s.post("/p/keys", m{"public_key": "  " + someKey + "\r\n"}))
	want(t, s.get(path), 200, "Add an SSH key that decides for you", "at once", "SHA256:", someKey, `href="/account"`)
	want(t, s.confirm(t, device, path), 200, "{}")
	want(t, s.get("/account"), 200, "SHA256:")
	again := trustPath(t, s.post("/p/keys", m{"public_key": someKey}))
	want(t, s.confirm(t, device, again), 409, "urn:vogt:pages:taken", "in use already")
}

// TestRemoveOwnKeys: a click takes away, and never the last way in.
func TestRemoveOwnKeys(t *testing.T) {
	clock := fixedClock()
	s := newSite(t, clock.now)
	s.setUp(passkeytest.New(s.origin, "vogt.localhost"))
	remove := func() (passkeys, keys []string) {
		for _, found := range regexp.MustCompile(`data-post="(/p/(passkeys|keys)/[^"]+/remove)"`).FindAllStringSubmatch(s.get("/account").body, -1) {
			if found[2] == "keys" {
				keys = append(keys, found[1])
			} else {
				passkeys = append(passkeys, found[1])
			}
		}
		return passkeys, keys
	}
	passkeys, keys := remove()
	if len(passkeys) != 1 || len(keys) != 0 {
		t.Fatalf("the account page removes %v and %v", passkeys, keys)
	}
	want(t, s.post(passkeys[0], m{}), 403, "urn:vogt:pages:last-way", "Add another passkey or key first")

	// A key that management added is no way in that counts.
	s.authority.AddKey(mara, pages.Key{ID: "managed/1", Name: "backup", Fingerprint: "SHA256:abc", Created: clock.now(), Dormant: clock.now().Add(72 * time.Hour), Managed: true, LoginOnly: true})
	want(t, s.get("/account"), 200, "logs in from", "Management added it", "not you", "never decides", "This was not me: remove", "/p/keys/managed%2F1/remove")
	want(t, s.post(passkeys[0], m{}), 403, "urn:vogt:pages:last-way")
	clock.advance(73 * time.Hour)
	want(t, s.get("/account"), 200, "logs in only", "This was not me: remove")
	path := "/p/keys/" + url.PathEscape("managed/1") + "/remove"
	want(t, s.post(path, m{}, func(r *http.Request) { r.Header.Del(pages.ClickHeader) }), 403, "no-click")
	want(t, s.post(path, m{"x": 1}), 400)
	want(t, s.post(path, m{}), 200)
	want(t, s.post(path, m{}), 404)
	if a := s.get("/account"); strings.Contains(a.body, "backup") {
		t.Error("the removed key is still listed")
	}

	// With an own key the passkey may go; then the key may not.
	s.authority.AddKey(mara, pages.Key{ID: "own", Name: "laptop", Created: clock.now()})
	if a := s.get("/account"); strings.Contains(a.body, "This was not me") {
		t.Error("one's own key is doubted")
	}
	want(t, s.post(passkeys[0], m{}), 200)
	want(t, s.post("/p/keys/own/remove", m{}), 403, "urn:vogt:pages:last-way")
	want(t, s.get("/account"), 200, "vogt key passkey", "vogt key add")
	if a := s.get("/account"); strings.Contains(a.body, "passkey.add") || strings.Contains(a.body, `name="public_key"`) {
		t.Error("without a passkey the page offers what nothing can confirm")
	}
	// Nobody removes what belongs to somebody else.
	s.authority.AddPerson("eve@evil.example", "Eve")
	s.signIn("eve@evil.example")
	want(t, s.post("/p/keys/own/remove", m{}), 404)
}
