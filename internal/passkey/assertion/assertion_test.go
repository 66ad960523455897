package assertion_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"vogt/internal/passkey/assertion"
	"vogt/internal/passkey/passkeytest"
)

const (
	origin = "https://vogt.example"
	rpID   = "vogt.example"
)

// makeEvidence lets a software authenticator decide over digest.
func makeEvidence(t testing.TB, digest [32]byte, algorithm passkeytest.Algorithm, attack passkeytest.Attack) assertion.Evidence {
	t.Helper()
	a := passkeytest.New(origin, rpID)
	a.Algorithm = algorithm
	b64 := base64.RawURLEncoding.EncodeToString
	created, err := a.Create(fmt.Appendf(nil, `{"rp":{"id":%q},"user":{"id":"AQ","name":"pat","displayName":"Pat"},"challenge":%q,"pubKeyCredParams":[{"type":"public-key","alg":%d}]}`, rpID, b64(digest[:]), algorithm))
	if err != nil {
		t.Fatal(err)
	}
	a.Attack = attack
	used, err := a.Get(fmt.Appendf(nil, `{"rpId":%q,"challenge":%q}`, rpID, b64(digest[:])))
	if err != nil {
		t.Fatal(err)
	}
	var registered, answer struct {
		RawID    string
		Response struct{ AuthenticatorData, ClientDataJSON, Signature string }
	}
	if err := errors.Join(json.Unmarshal(created, &registered), json.Unmarshal(used, &answer)); err != nil {
		t.Fatal(err)
	}
	raw := func(text string) []byte {
		data, err := base64.RawURLEncoding.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	return assertion.Evidence{
		CredentialID:      raw(answer.RawID),
		PublicKey:         raw(registered.Response.AuthenticatorData)[37+16+2+32:],
		AuthenticatorData: raw(answer.Response.AuthenticatorData),
		ClientDataJSON:    raw(answer.Response.ClientDataJSON),
		Signature:         raw(answer.Response.Signature),
	}
}

var algorithms = []passkeytest.Algorithm{passkeytest.ES256, passkeytest.EdDSA, passkeytest.RS256}

func wantReason(t *testing.T, err error, want assertion.Reason) {
	t.Helper()
	var refusal *assertion.Error
	if !errors.As(err, &refusal) || refusal.Reason != want {
		t.Errorf("got %v, want reason %q", err, want)
	}
}

func TestVerify(t *testing.T) {
	digest := sha256.Sum256([]byte("statement"))
	for _, algorithm := range algorithms {
		e := makeEvidence(t, digest, algorithm, passkeytest.Attack{})
		if err := e.Verify(digest, rpID, []string{"https://other.example", origin}); err != nil {
			t.Fatalf("algorithm %d: %v", algorithm, err)
		}
		data, err := e.Data()
		if err != nil || !data.UserPresent() || !data.UserVerified() || data.BackupEligible() || data.BackupState() || data.SignCount != 1 {
			t.Errorf("data %+v, %v", data, err)
		}
		other := digest
		other[0] ^= 0x80
		wantReason(t, e.Verify(other, rpID, []string{origin}), assertion.WrongChallenge)
		wantReason(t, e.Verify([32]byte{}, rpID, []string{origin}), assertion.WrongChallenge)
		wantReason(t, e.Verify(digest, "example", []string{origin}), assertion.WrongRP)
		wantReason(t, e.Verify(digest, "", []string{origin}), assertion.Malformed)
		wantReason(t, e.Verify(digest, rpID, nil), assertion.WrongOrigin)
		wantReason(t, e.Verify(digest, rpID, []string{origin + ":8443", "http://vogt.example", origin + "/"}), assertion.WrongOrigin)
	}
}

// Every bit of the evidence counts, the credential's name excepted, which the
// verifier compares with what it pinned.
func TestVerifyNoticesEveryChange(t *testing.T) {
	digest := sha256.Sum256([]byte("statement"))
	for _, algorithm := range algorithms {
		good := makeEvidence(t, digest, algorithm, passkeytest.Attack{})
		fields := map[string]func(*assertion.Evidence) *[]byte{
			"public key":         func(e *assertion.Evidence) *[]byte { return &e.PublicKey },
			"authenticator data": func(e *assertion.Evidence) *[]byte { return &e.AuthenticatorData },
			"client data":        func(e *assertion.Evidence) *[]byte { return &e.ClientDataJSON },
			"signature":          func(e *assertion.Evidence) *[]byte { return &e.Signature },
		}
		for name, field := range fields {
			original := *field(&good)
			for i := range original {
				changed := good
				*field(&changed) = bytes.Clone(original)
				(*field(&changed))[i] ^= 1 << (i % 8)
				if changed.Verify(digest, rpID, []string{origin}) == nil {
					t.Fatalf("algorithm %d: byte %d of the %s does not count", algorithm, i, name)
				}
			}
			for what, value := range map[string][]byte{"missing": nil, "cut": original[:len(original)-1], "longer": append(bytes.Clone(original), 0)} {
				changed := good
				*field(&changed) = value
				if changed.Verify(digest, rpID, []string{origin}) == nil {
					t.Errorf("algorithm %d: a %s that is %s verifies", algorithm, name, what)
				}
			}
		}
		nameless := good
		nameless.CredentialID = nil
		wantReason(t, nameless.Verify(digest, rpID, []string{origin}), assertion.Malformed)
		exchanged := good
		exchanged.PublicKey = makeEvidence(t, digest, algorithm, passkeytest.Attack{}).PublicKey
		wantReason(t, exchanged.Verify(digest, rpID, []string{origin}), assertion.BadSignature)
	}
	// Even an assertion that was really made over the zero digest is none.
	overNothing := makeEvidence(t, [32]byte{}, passkeytest.ES256, passkeytest.Attack{})
	wantReason(t, overNothing.Verify([32]byte{}, rpID, []string{origin}), assertion.WrongChallenge)
	if (assertion.Evidence{}).Verify(digest, rpID, []string{origin}) == nil {
		t.Error("the zero value verifies")
	}
}

func TestVerifyRefusesAttacks(t *testing.T) {
	digest := sha256.Sum256([]byte("statement"))
	replace := func(old, new string) func([]byte) []byte {
		return func(b []byte) []byte { return bytes.Replace(b, []byte(old), []byte(new), 1) }
	}
	flags := func(set byte, more ...byte) func([]byte) []byte {
		return func(b []byte) []byte {
			b = append(bytes.Clone(b), more...)
			b[32] |= set
			return b
		}
	}
	for name, tc := range map[string]struct {
		attack passkeytest.Attack
		reason assertion.Reason
	}{
		"registration":          {passkeytest.Attack{Type: "webauthn.create"}, assertion.WrongType},
		"type no text":          {passkeytest.Attack{ClientData: replace(`"webauthn.get"`, `["webauthn.get"]`)}, assertion.WrongType},
		"other port":            {passkeytest.Attack{Origin: origin + ":8443"}, assertion.WrongOrigin},
		"http":                  {passkeytest.Attack{Origin: "http://vogt.example"}, assertion.WrongOrigin},
		"other challenge":       {passkeytest.Attack{Challenge: make([]byte, 32)}, assertion.WrongChallenge},
		"frame":                 {passkeytest.Attack{CrossOrigin: true}, assertion.Embedded},
		"top origin":            {passkeytest.Attack{TopOrigin: origin}, assertion.Embedded},
		"other relying party":   {passkeytest.Attack{RPID: "evil.example"}, assertion.WrongRP},
		"absent":                {passkeytest.Attack{NoUserPresence: true}, assertion.NotPresent},
		"unverified":            {passkeytest.Attack{NoUserVerification: true}, assertion.NotVerified},
		"foreign key":           {passkeytest.Attack{ForeignKey: true}, assertion.BadSignature},
		"origin twice":          {passkeytest.Attack{ClientData: replace(`"origin"`, `"origin":"x","origin"`)}, assertion.Malformed},
		"escaped name twice":    {passkeytest.Attack{ClientData: replace(`"origin"`, `"\u006frigin":"x","origin"`)}, assertion.Malformed},
		"list":                  {passkeytest.Attack{ClientData: func([]byte) []byte { return []byte(`[]`) }}, assertion.Malformed},
		"missing comma":         {passkeytest.Attack{ClientData: replace(`,"origin"`, ` "origin"`)}, assertion.Malformed},
		"second object":         {passkeytest.Attack{ClientData: func(b []byte) []byte { return append(b, b...) }}, assertion.Malformed},
		"unfinished":            {passkeytest.Attack{ClientData: func(b []byte) []byte { return b[:len(b)-1] }}, assertion.Malformed},
		"attested credential":   {passkeytest.Attack{AuthenticatorData: flags(0x40)}, assertion.Malformed},
		"extensions, none sent": {passkeytest.Attack{AuthenticatorData: flags(0x80)}, assertion.Malformed},
		"bytes without flag":    {passkeytest.Attack{AuthenticatorData: flags(0, 0xa0)}, assertion.Malformed},
		"backed up, not fit":    {passkeytest.Attack{AuthenticatorData: flags(0x10)}, assertion.ImpossibleBackup},
	} {
		t.Run(name, func(t *testing.T) {
			e := makeEvidence(t, digest, passkeytest.ES256, tc.attack)
			wantReason(t, e.Verify(digest, rpID, []string{origin}), tc.reason)
		})
	}
	for name, attack := range map[string]passkeytest.Attack{
		"unknown members":   {ClientData: replace(`{`, `{"new_keys_may_be_added_here":{"a":[1]},`)},
		"no crossOrigin":    {ClientData: replace(`,"crossOrigin":false`, ``)},
		"escaped value":     {ClientData: replace(`webauthn.get`, `webauthn\u002eget`)},
		"extension outputs": {AuthenticatorData: flags(0x80, 0xa0)},
		"synced":            {AuthenticatorData: flags(0x18)},
	} {
		t.Run(name, func(t *testing.T) {
			e := makeEvidence(t, digest, passkeytest.ES256, attack)
			if err := e.Verify(digest, rpID, []string{origin}); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestEvidenceJSON(t *testing.T) {
	e := assertion.Evidence{CredentialID: []byte{1}, PublicKey: []byte{2}, AuthenticatorData: []byte{3}, ClientDataJSON: []byte("{}"), Signature: []byte{4}}
	const want = `{"credentialId":"AQ==","publicKey":"Ag==","authenticatorData":"Aw==","clientDataJSON":"e30=","signature":"BA=="}`
	if got, err := json.Marshal(e); err != nil || string(got) != want {
		t.Errorf("got %s, %v", got, err)
	}
	e.CounterWarning = true
	if got, err := json.Marshal(e); err != nil || string(got) != strings.TrimSuffix(want, "}")+`,"counterWarning":true}` {
		t.Errorf("got %s, %v", got, err)
	}
}

// A decision recorded once verifies for ever: this one was made by a browser
// with a virtual authenticator.
func TestRecordedEvidence(t *testing.T) {
	var record struct {
		Digest   string
		RPID     string
		Origin   string
		Evidence assertion.Evidence
	}
	if err := json.Unmarshal([]byte(recordedInChromium), &record); err != nil {
		t.Fatal(err)
	}
	raw, err := hex.DecodeString(record.Digest)
	if err != nil || len(raw) != 32 {
		t.Fatalf("digest %q, %v", record.Digest, err)
	}
	if err := record.Evidence.Verify([32]byte(raw), record.RPID, []string{record.Origin}); err != nil {
		t.Error(err)
	}
	raw[0] ^= 1
	wantReason(t, record.Evidence.Verify([32]byte(raw), record.RPID, []string{record.Origin}), assertion.WrongChallenge)
}

func TestCheckKey(t *testing.T) {
	digest := sha256.Sum256([]byte("x"))
	keys := map[string][]byte{}
	for name, algorithm := range map[string]passkeytest.Algorithm{"ES256": passkeytest.ES256, "EdDSA": passkeytest.EdDSA, "RS256": passkeytest.RS256} {
		keys[name] = makeEvidence(t, digest, algorithm, passkeytest.Attack{}).PublicKey
		if err := assertion.CheckKey(keys[name]); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		wantReason(t, assertion.CheckKey(append(bytes.Clone(keys[name]), 0)), assertion.UnsupportedKey)
		for n := range len(keys[name]) {
			if assertion.CheckKey(keys[name][:n]) == nil {
				t.Errorf("%s: the first %d bytes pass", name, n)
			}
		}
	}
	change := func(key string, at int, bits byte) []byte {
		out := bytes.Clone(keys[key])
		out[at] ^= bits
		return out
	}
	rsaOf := func(size int) []byte {
		head := bytes.Clone(keys["RS256"][:9])
		n := bytes.Repeat([]byte{0xff}, size)
		return slices.Concat(head, []byte{byte(size >> 8), byte(size)}, n, []byte("\x21\x43\x01\x00\x01"))
	}
	for name, key := range map[string][]byte{
		"nothing":              nil,
		"not CBOR":             []byte("key"),
		"ES384":                change("ES256", 4, 0x04),
		"P-384":                change("ES256", 6, 0x03),
		"off the curve":        change("ES256", 76, 0x01),
		"RS1":                  change("RS256", 6, 0x02),
		"RSA 1024":             rsaOf(128),
		"RSA 8192":             rsaOf(1024),
		"RSA, zero in front":   slices.Concat(keys["RS256"][:9], []byte{1, 1, 0}, keys["RS256"][11:]),
		"RSA, exponent 3":      slices.Concat(keys["RS256"][:len(keys["RS256"])-5], []byte("\x21\x41\x03")),
		"EdDSA as another alg": change("EdDSA", 4, 0x01),
		"members out of order": slices.Concat([]byte{0xa4, 0x03, 0x27, 0x01, 0x01}, keys["EdDSA"][5:]),
	} {
		t.Run(name, func(t *testing.T) { wantReason(t, assertion.CheckKey(key), assertion.UnsupportedKey) })
	}
	if err := assertion.CheckKey(rsaOf(512)); err != nil {
		t.Errorf("RSA 4096: %v", err)
	}
}

func FuzzVerify(f *testing.F) {
	digest := sha256.Sum256([]byte("statement"))
	for _, algorithm := range algorithms {
		e := makeEvidence(f, digest, algorithm, passkeytest.Attack{})
		f.Add(e.PublicKey, e.AuthenticatorData, e.ClientDataJSON, e.Signature)
	}
	f.Fuzz(func(t *testing.T, key, data, client, signature []byte) {
		e := assertion.Evidence{CredentialID: []byte{1}, PublicKey: key, AuthenticatorData: data, ClientDataJSON: client, Signature: signature}
		if e.Verify(digest, rpID, []string{origin}) == nil {
			if e.Verify(digest, rpID, []string{"https://evil.example"}) == nil || e.Verify(sha256.Sum256(nil), rpID, []string{origin}) == nil {
				t.Errorf("%+v verifies for anything", e)
			}
		}
		// Get past the client data, to the rest.
		e.ClientDataJSON = []byte(`{"type":"webauthn.get","challenge":"` + base64.RawURLEncoding.EncodeToString(digest[:]) + `","origin":"` + origin + `"}`)
		if len(data) > 32 {
			hash := sha256.Sum256([]byte(rpID))
			e.AuthenticatorData = append(hash[:], data[32:]...)
		}
		e.Verify(digest, rpID, []string{origin})
	})
}
