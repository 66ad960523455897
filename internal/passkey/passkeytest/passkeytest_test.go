package passkeytest

import (
	"strings"
	"testing"
)

// The refusals of an honest browser, which other tests rely on.
func TestHonestRefusals(t *testing.T) {
	const creation = `{"rp":{"id":"a.example"},"user":{"id":"AQ","name":"pat","displayName":"Pat"},"challenge":"AAAAAAAAAAAAAAAAAAAAAA","pubKeyCredParams":[{"type":"public-key","alg":-7}]}`
	const request = `{"rpId":"a.example","challenge":"AAAAAAAAAAAAAAAAAAAAAA"}`
	replace := func(s, old, new string) []byte {
		if !strings.Contains(s, old) {
			t.Fatalf("%q is not in %s", old, s)
		}
		return []byte(strings.Replace(s, old, new, 1))
	}
	a := New("https://a.example", "a.example")
	if _, err := a.Get([]byte(request)); err == nil || !strings.Contains(err.Error(), "NotAllowedError") {
		t.Errorf("without passkeys: %v", err)
	}
	if _, err := a.Create([]byte(creation)); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Get([]byte(request)); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		do      func([]byte) ([]byte, error)
		options []byte
		says    string
	}{
		"create, not JSON":       {a.Create, []byte("x"), "creation options"},
		"create, foreign party":  {a.Create, replace(creation, "a.example", "b.example"), "SecurityError"},
		"create, no challenge":   {a.Create, replace(creation, "AAAAAAAAAAAAAAAAAAAAAA", ""), "TypeError"},
		"create, no user handle": {a.Create, replace(creation, `"AQ"`, `""`), "TypeError"},
		"create, alien key":      {a.Create, replace(creation, "-7", "-47"), "unknown"},
		"get, not JSON":          {a.Get, []byte("x"), "request options"},
		"get, padded base64":     {a.Get, replace(request, `AAAA"`, `AAA="`), "request options"},
		"get, foreign party":     {a.Get, replace(request, "a.example", "b.example"), "SecurityError"},
		"get, unknown passkey":   {a.Get, replace(request, `{`, `{"allowCredentials":[{"type":"public-key","id":"AQ"}],`), "NotAllowedError"},
	} {
		if _, err := tc.do(tc.options); err == nil || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %v, want it to say %q", name, err, tc.says)
		}
	}
	a.Algorithm = EdDSA
	if _, err := a.Create([]byte(creation)); err == nil || !strings.Contains(err.Error(), "NotSupportedError") {
		t.Errorf("an algorithm that is not offered: %v", err)
	}
	a.Forget()
	if _, err := a.Get([]byte(request)); err == nil {
		t.Error("a forgotten passkey was used")
	}
}
