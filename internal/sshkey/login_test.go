package sshkey

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
)

const testChallenge = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

func TestLogin(t *testing.T) {
	priv := testKey(t, 1)
	keys := []Public{testKey(t, 2).Public(), {}, priv.Public()}
	sig, err := SignLogin(priv, testChallenge)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := base64.StdEncoding.DecodeString(sig)
	if err != nil || !ed25519.Verify(priv.Public().Key(), []byte(testChallenge), raw) {
		t.Errorf("%q is not the raw signature over the challenge's text", sig)
	}
	got, err := VerifyLogin(testChallenge, sig, keys)
	if err != nil || !got.Equal(priv.Public()) {
		t.Errorf("verified as %v, %v", got, err)
	}
	other := strings.Replace(testChallenge, "00", "01", 1)
	for name, tc := range map[string]struct {
		challenge, signature string
		keys                 []Public
	}{
		"another challenge":  {other, sig, keys},
		"another key":        {testChallenge, sig, keys[:2]},
		"no key":             {testChallenge, sig, nil},
		"cut":                {testChallenge, sig[:len(sig)-4], keys},
		"longer":             {testChallenge, base64.StdEncoding.EncodeToString(append(raw, 0)), keys},
		"no padding":         {testChallenge, strings.TrimRight(sig, "="), keys},
		"line end":           {testChallenge + "\n", sig, keys},
		"URL base64":         {testChallenge, base64.URLEncoding.EncodeToString(raw) + "-", keys},
		"nothing":            {testChallenge, "", keys},
		"upper case":         {strings.ToUpper(testChallenge), sig, keys},
		"challenge of no 32": {testChallenge[:62], sig, keys},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := VerifyLogin(tc.challenge, tc.signature, tc.keys); err == nil || !got.IsZero() {
				t.Errorf("verified as %v, %v", got, err)
			}
		})
	}
}

func TestSignLoginRefuses(t *testing.T) {
	digest := sha256.Sum256([]byte("x"))
	for name, challenge := range map[string]string{
		"nothing":         "",
		"63 digits":       testChallenge[1:],
		"65 digits":       testChallenge + "0",
		"upper case":      strings.ToUpper(testChallenge),
		"no digits":       strings.Repeat("g", 64),
		"line end":        testChallenge[:63] + "\n",
		"raw digest":      string(digest[:]) + string(digest[:]),
		"wide digits":     strings.Repeat("０", 64),
		"SSHSIG preimage": sshsigMagic + testChallenge[:58],
	} {
		t.Run(name, func(t *testing.T) {
			if sig, err := SignLogin(testKey(t, 1), challenge); err == nil {
				t.Errorf("signed %q as %q", challenge, sig)
			}
		})
	}
	for name, priv := range map[string]*Private{"nil": nil, "zero": {}} {
		if _, err := SignLogin(priv, testChallenge); err == nil {
			t.Errorf("the %s key signed", name)
		}
		if _, err := Sign(priv, NamespaceDecision, nil); err == nil {
			t.Errorf("the %s key signed a decision", name)
		}
	}
}

// A hostile server sends the digest of a statement as login challenge and tries
// to turn the answer into a decision.
func TestLoginIsNeverADecision(t *testing.T) {
	priv := testKey(t, 1)
	keys := []Public{priv.Public()}
	digest := sha256.Sum256([]byte("statement"))
	text := hex.EncodeToString(digest[:])
	answer, err := SignLogin(priv, text)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := base64.StdEncoding.DecodeString(answer)
	if err != nil {
		t.Fatal(err)
	}
	for _, ns := range []Namespace{NamespaceDecision, NamespaceLogin} {
		for _, hash := range []string{hashSHA512, hashSHA256} {
			wrapped := armour(ssh.Marshal(envelope{
				Magic: magic(), Version: sshsigVersion, PublicKey: keys[0].Blob(), Namespace: string(ns), HashAlgorithm: hash,
				Signature: ssh.Marshal(ed25519Signature{typeEd25519, raw}),
			}))
			for _, message := range [][]byte{digest[:], []byte(text), []byte(text + "\n"), nil} {
				if _, err := Verify(wrapped, ns, message, keys); err == nil {
					t.Errorf("a login signature passes as SSHSIG in %s with %s over %q", ns, hash, message)
				}
			}
			// The reason why it never can: what SSHSIG signs is no challenge.
			data, err := toBeSigned(ns, hash, digest[:])
			if err != nil {
				t.Fatal(err)
			}
			if isChallenge(string(data)) || !strings.HasPrefix(string(data), sshsigMagic) {
				t.Errorf("SSHSIG signs %q", data)
			}
		}
	}
}

// The other way round: a decision is no login.
func TestDecisionIsNeverALogin(t *testing.T) {
	priv := testKey(t, 1)
	keys := []Public{priv.Public()}
	for _, ns := range []Namespace{NamespaceDecision, NamespaceLogin} {
		armoured, err := Sign(priv, ns, []byte(testChallenge))
		if err != nil {
			t.Fatal(err)
		}
		blob, err := unarmour(armoured)
		if err != nil {
			t.Fatal(err)
		}
		var env envelope
		var sig ed25519Signature
		if err := ssh.Unmarshal(blob, &env); err != nil {
			t.Fatal(err)
		}
		if err := ssh.Unmarshal(env.Signature, &sig); err != nil {
			t.Fatal(err)
		}
		if _, err := VerifyLogin(testChallenge, base64.StdEncoding.EncodeToString(sig.Signature), keys); err == nil {
			t.Errorf("the signature in %s passes as login", ns)
		}
	}
}
