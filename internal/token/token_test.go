package token

import (
	"bytes"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"vogt/internal/grant"
)

const issuer = "http://127.0.0.1:8648"

var noon = time.Unix(1_772_600_000, 0)

func key(n byte) Key { return NewKey(bytes.Repeat([]byte{n}, ed25519.SeedSize)) }

func public(k Key) ed25519.PublicKey { return k.Private.Public().(ed25519.PublicKey) }

func ring(keys ...Key) Keys {
	out := Keys{}
	for _, k := range keys {
		out[k.ID] = public(k)
	}
	return out
}

func login() Login {
	return Login{
		Issuer: issuer, Subject: "helper@box", Audience: CLIAudience, Act: "agent", IssuedAt: noon.Unix(),
		Expires: noon.Unix() + 100, ID: "jti", Use: UseLogin, Epoch: 1, Generation: 2,
	}
}

func grantClaims() Grant {
	return Grant{
		Issuer: issuer, Subject: "helper@box", Audience: "shapes", Host: "box", IssuedAt: noon.Unix(), Expires: noon.Unix() + 100,
		ID: "jti", GrantID: "g", GrantType: grant.Once, Approval: grant.Once, Command: []string{"ls", "<&>"}, Use: UseGrant, Epoch: 1,
	}
}

func sign(t testing.TB, k Key, claims any) string {
	t.Helper()
	raw, err := Sign(k, claims)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestRoundTrip(t *testing.T) {
	k := key(1)
	raw := sign(t, k, login())
	got, err := ring(key(2), k).VerifyLogin(raw, issuer, noon)
	if err != nil || got != login() {
		t.Errorf("login: %+v, %v", got, err)
	}
	raw = sign(t, k, grantClaims())
	g, err := ring(key(2), k).VerifyGrant(raw, issuer, noon)
	if err != nil || !reflect.DeepEqual(g, grantClaims()) {
		t.Errorf("grant: %+v, %v", g, err)
	}
}

// TestHeader: clients demand the algorithm's exact name and choose the key by
// its identifier.
func TestHeader(t *testing.T) {
	k := key(1)
	head, _, _ := strings.Cut(sign(t, k, login()), ".")
	b, err := base64.RawURLEncoding.DecodeString(head)
	if err != nil {
		t.Fatal(err)
	}
	var h map[string]any
	if err := json.Unmarshal(b, &h); err != nil {
		t.Fatal(err)
	}
	if h["alg"] != "EdDSA" || h["typ"] != "JWT" || h["kid"] != k.ID || len(h) != 3 {
		t.Errorf("header %s", b)
	}
}

func TestKeyIDs(t *testing.T) {
	one, again, two := key(1).ID, key(1).ID, key(2).ID
	if one == two || len(one) != 16 || one != again {
		t.Errorf("identifiers %q, %q and %q", one, again, two)
	}
}

// TestClaims changes one claim at a time: each is checked.
func TestClaims(t *testing.T) {
	k := key(1)
	keys := ring(k)
	logins := map[string]func(*Login){
		"use of a grant token": func(c *Login) { c.Use = UseGrant },
		"no use":               func(c *Login) { c.Use = "" },
		"other audience":       func(c *Login) { c.Audience = "shapes" },
		"other issuer":         func(c *Login) { c.Issuer = issuer + "/" },
		"no issuer":            func(c *Login) { c.Issuer = "" },
		"no act":               func(c *Login) { c.Act = "" },
		"other act":            func(c *Login) { c.Act = "HUMAN" },
		"no subject":           func(c *Login) { c.Subject = "" },
		"no identifier":        func(c *Login) { c.ID = "" },
		"no expiry":            func(c *Login) { c.Expires = 0 },
	}
	for name, change := range logins {
		c := login()
		change(&c)
		if got, err := keys.VerifyLogin(sign(t, k, c), issuer, noon); err == nil || got != (Login{}) {
			t.Errorf("login with %s: %+v, %v", name, got, err)
		}
	}
	grants := map[string]func(*Grant){
		"use of a login token": func(c *Grant) { c.Use = UseLogin },
		"no use":               func(c *Grant) { c.Use = "" },
		"other issuer":         func(c *Grant) { c.Issuer = "http://127.0.0.1:8649" },
		"no subject":           func(c *Grant) { c.Subject = "" },
		"no grant":             func(c *Grant) { c.GrantID = "" },
		"no identifier":        func(c *Grant) { c.ID = "" },
		"no type":              func(c *Grant) { c.GrantType = "" },
		"standing":             func(c *Grant) { c.GrantType = "standing" },
		"no expiry":            func(c *Grant) { c.Expires = 0 },
	}
	for name, change := range grants {
		c := grantClaims()
		change(&c)
		if got, err := keys.VerifyGrant(sign(t, k, c), issuer, noon); err == nil || !reflect.DeepEqual(got, Grant{}) {
			t.Errorf("grant with %s: %+v, %v", name, got, err)
		}
	}
}

// A delegated actor is an object in act; it must not pass for a person.
func TestObjectActIsNoPerson(t *testing.T) {
	k := key(1)
	claims := map[string]any{}
	b, err := json.Marshal(login())
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &claims); err != nil {
		t.Fatal(err)
	}
	claims["act"] = map[string]string{"sub": "human"}
	if c, err := ring(k).VerifyLogin(sign(t, k, claims), issuer, noon); err == nil {
		t.Errorf("act as an object was read as %q", c.Act)
	}
}

func TestKindsStayApart(t *testing.T) {
	k := key(1)
	keys := ring(k)
	if _, err := keys.VerifyGrant(sign(t, k, login()), issuer, noon); !errors.Is(err, ErrInvalid) {
		t.Errorf("a login token as grant token: %v", err)
	}
	if _, err := keys.VerifyLogin(sign(t, k, grantClaims()), issuer, noon); !errors.Is(err, ErrInvalid) {
		t.Errorf("a grant token as login token: %v", err)
	}
	// Also when the grant is for the audience of login tokens, as a client
	// could ask for it.
	c := grantClaims()
	c.Audience = CLIAudience
	if _, err := keys.VerifyLogin(sign(t, k, c), issuer, noon); !errors.Is(err, ErrInvalid) {
		t.Errorf("a grant token for %s as login token: %v", CLIAudience, err)
	}
}

func TestExpiryAtEquality(t *testing.T) {
	k := key(1)
	keys := ring(k)
	l, g := sign(t, k, login()), sign(t, k, grantClaims())
	end := time.Unix(login().Expires, 0)
	for _, test := range []struct {
		at   time.Time
		want error
	}{{end.Add(-time.Nanosecond), nil}, {end, ErrExpired}, {end.Add(time.Hour), ErrExpired}} {
		if _, err := keys.VerifyLogin(l, issuer, test.at); !errors.Is(err, test.want) {
			t.Errorf("login at %v: %v, want %v", test.at.Sub(end), err, test.want)
		}
		if _, err := keys.VerifyGrant(g, issuer, test.at); !errors.Is(err, test.want) {
			t.Errorf("grant at %v: %v, want %v", test.at.Sub(end), err, test.want)
		}
	}
}

// forge joins a header and claims with a signature of the caller's making.
func forge(t testing.TB, header, claims any, sign func([]byte) []byte) string {
	t.Helper()
	part := func(v any) string {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return base64.RawURLEncoding.EncodeToString(b)
	}
	signed := part(header) + "." + part(claims)
	return signed + "." + base64.RawURLEncoding.EncodeToString(sign([]byte(signed)))
}

// TestForgeries tries the known ways around a signature.
func TestForgeries(t *testing.T) {
	k, other := key(1), key(2)
	keys := ring(k)
	pub := public(k)
	good := sign(t, k, login())
	head, rest, _ := strings.Cut(good, ".")
	body, sig, _ := strings.Cut(rest, ".")
	hs256 := func(secret []byte) func([]byte) []byte {
		return func(b []byte) []byte {
			m := hmac.New(sha256.New, secret)
			m.Write(b)
			return m.Sum(nil)
		}
	}
	jwk := map[string]string{"kty": "OKP", "crv": "Ed25519", "x": base64.RawURLEncoding.EncodeToString(public(other))}
	by := func(k Key) func([]byte) []byte { return func(b []byte) []byte { return ed25519.Sign(k.Private, b) } }
	tests := map[string]string{
		"alg none, no signature":       forge(t, map[string]string{"alg": "none", "kid": k.ID}, login(), func([]byte) []byte { return nil }),
		"alg None":                     forge(t, map[string]string{"alg": "None", "kid": k.ID}, login(), func([]byte) []byte { return nil }),
		"no alg":                       forge(t, map[string]string{"kid": k.ID}, login(), by(k)),
		"HS256 with the public key":    forge(t, map[string]string{"alg": "HS256", "kid": k.ID}, login(), hs256(pub)),
		"HS256 with the key's JWK":     forge(t, map[string]string{"alg": "HS256", "kid": k.ID}, login(), hs256([]byte(base64.RawURLEncoding.EncodeToString(pub)))),
		"EdDSA header, HMAC signature": forge(t, map[string]string{"alg": "EdDSA", "kid": k.ID}, login(), hs256(pub)),
		"Ed25519 as name of the alg":   forge(t, map[string]string{"alg": "Ed25519", "kid": k.ID}, login(), by(k)),
		"other key under our kid":      forge(t, map[string]string{"alg": "EdDSA", "kid": k.ID}, login(), by(other)),
		"other key under its own kid":  sign(t, other, login()),
		"our key under an unknown kid": forge(t, map[string]string{"alg": "EdDSA", "kid": "elsewhere"}, login(), by(k)),
		"our key without kid":          forge(t, map[string]string{"alg": "EdDSA"}, login(), by(k)),
		"kid that is a path":           forge(t, map[string]string{"alg": "EdDSA", "kid": "../../dev/null"}, login(), by(other)),
		"key brought along as jwk":     forge(t, map[string]any{"alg": "EdDSA", "jwk": jwk}, login(), by(other)),
		"key brought along, our kid":   forge(t, map[string]any{"alg": "EdDSA", "kid": k.ID, "jwk": jwk}, login(), by(other)),
		"critical extension":           forge(t, map[string]any{"alg": "EdDSA", "kid": k.ID, "crit": []string{"exp"}, "exp": 1}, login(), by(k)),
		"unencoded payload":            forge(t, map[string]any{"alg": "EdDSA", "kid": k.ID, "crit": []string{"b64"}, "b64": false}, login(), by(k)),
		"changed body":                 head + "." + body[:len(body)-4] + "AAAA." + sig,
		"no signature":                 head + "." + body + ".",
		"two parts":                    head + "." + body,
		"four parts":                   good + ".x",
		"empty":                        "",
		"dots":                         "..",
		"padding":                      good + "=",
		"JSON serialisation":           fmt.Sprintf(`{"payload":%q,"protected":%q,"signature":%q}`, body, head, sig),
		"claims that are no object":    sign(t, k, []string{"x"}),
		"claims of wrong types":        sign(t, k, map[string]any{"iss": 1}),
	}
	for name, raw := range tests {
		if c, err := keys.VerifyLogin(raw, issuer, noon); !errors.Is(err, ErrInvalid) || c != (Login{}) {
			t.Errorf("%s: %+v, %v", name, c, err)
		}
	}
	if _, err := (Keys{}).VerifyLogin(good, issuer, noon); !errors.Is(err, ErrInvalid) {
		t.Errorf("without any key: %v", err)
	}
	if _, err := (Keys{"": public(k)}).VerifyLogin(tests["our key without kid"], issuer, noon); err != nil {
		t.Errorf("the forgery without kid is broken in another way, so it proves nothing: %v", err)
	}
}

func TestTooLong(t *testing.T) {
	k := key(1)
	c := grantClaims()
	c.Command = []string{strings.Repeat("x", maxToken)}
	if _, err := ring(k).VerifyGrant(sign(t, k, c), issuer, noon); !errors.Is(err, ErrInvalid) {
		t.Errorf("a token of more than %d bytes: %v", maxToken, err)
	}
}

func TestJWKS(t *testing.T) {
	a, b := key(1), key(2)
	raw, err := ring(a, b).JWKS()
	if err != nil {
		t.Fatal(err)
	}
	var set struct {
		Keys []map[string]string `json:"keys"`
	}
	if err := json.Unmarshal(raw, &set); err != nil || len(set.Keys) != 2 {
		t.Fatalf("%s: %v", raw, err)
	}
	for _, k := range set.Keys {
		if k["kty"] != "OKP" || k["crv"] != "Ed25519" || k["alg"] != "EdDSA" || k["use"] != "sig" || k["x"] == "" || k["kid"] == "" || k["d"] != "" {
			t.Errorf("entry %v", k)
		}
	}
	back, err := ParseJWKS(raw)
	if err != nil || !reflect.DeepEqual(back, ring(a, b)) {
		t.Errorf("read back as %v, %v", back, err)
	}
	if raw, err := (Keys{}).JWKS(); err != nil || string(raw) != `{"keys":[]}` {
		t.Errorf("no key: %s, %v", raw, err)
	}
}

func TestParseJWKSRefuses(t *testing.T) {
	x := base64.RawURLEncoding.EncodeToString(public(key(1)))
	for name, raw := range map[string]string{
		"no JSON":        "",
		"no keys":        `{"keys":[]}`,
		"for encryption": `{"keys":[{"kty":"OKP","crv":"Ed25519","x":"` + x + `","kid":"k","use":"enc"}]}`,
		"symmetric":      `{"keys":[{"kty":"oct","k":"AAAA","kid":"k"}]}`,
		"short":          `{"keys":[{"kty":"OKP","crv":"Ed25519","x":"AAAA","kid":"k"}]}`,
	} {
		if keys, err := ParseJWKS([]byte(raw)); err == nil {
			t.Errorf("%s: %v", name, keys)
		}
	}
}

// FuzzVerify: whatever passes carries the claims that were signed here. (One
// token may have several spellings, with blanks around it, say; it is named by
// its identifier, never by its text.)
func FuzzVerify(f *testing.F) {
	k := key(1)
	keys := ring(k)
	good, grantToken := sign(f, k, login()), sign(f, k, grantClaims())
	f.Add(good)
	f.Add(grantToken)
	f.Add(good[:len(good)-1])
	f.Add("..")
	f.Add(forge(f, map[string]string{"alg": "none"}, login(), func([]byte) []byte { return nil }))
	f.Fuzz(func(t *testing.T, raw string) {
		if c, err := keys.VerifyLogin(raw, issuer, noon); err == nil && c != login() {
			t.Errorf("%q passes as %+v", raw, c)
		}
		if c, err := keys.VerifyGrant(raw, issuer, noon); err == nil && !reflect.DeepEqual(c, grantClaims()) {
			t.Errorf("%q passes as %+v", raw, c)
		}
	})
}
