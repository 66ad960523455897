package client

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"vogt/internal/api"
	"vogt/internal/passkey/assertion"
	"vogt/internal/statement"
)

const (
	pagesOrigin = "http://vogt.localhost:8648"
	decidedID   = "5f93033d-26ca-4960-b6bb-4e8e0e6eb383"
)

// clicked is a click on a page as the authority keeps it, before it is signed.
type clicked struct {
	label, origin, path, body string
	sum                       string // of the body, when it is to be another one
}

func (c clicked) evidence(t *testing.T, key *ecdsa.PrivateKey) map[string]any {
	t.Helper()
	if c.sum == "" {
		sum := sha256.Sum256([]byte(c.body))
		c.sum = hex.EncodeToString(sum[:])
	}
	signed := strings.Join([]string{c.label, c.origin, c.path, c.sum, "1764505000000"}, "\n")
	digest := sha256.Sum256([]byte(signed))
	r, s, err := ecdsa.Sign(rand.Reader, key, digest[:])
	if err != nil {
		t.Fatal(err)
	}
	spki, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	signature := append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...)
	return map[string]any{"kind": "click", "key": spki, "signed": signed, "body": c.body, "signature": signature}
}

func newP256(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// proofWith is the proof of a decision with this evidence.
func proofWith(t *testing.T, digest statement.Digest, evidence any) *Proof {
	t.Helper()
	raw, err := json.Marshal(evidence)
	if err != nil {
		t.Fatal(err)
	}
	return &Proof{Receipt: api.Receipt{GrantID: decidedID, Digest: digest, DecidedBy: ownerEmail, Evidence: raw}}
}

func TestReceiptOfAClick(t *testing.T) {
	key := newP256(t)
	digest := statement.Digest(sha256.Sum256([]byte("a statement")))
	good := clicked{"vogt-click-v1", pagesOrigin, "/grants/" + decidedID + "/answer", fmt.Sprintf(`{"answer":"allow","digest":"%s"}`, digest), ""}
	with := func(change func(*clicked)) clicked {
		c := good
		change(&c)
		return c
	}
	for name, c := range map[string]clicked{
		"":               good,
		"another origin": with(func(c *clicked) { c.origin = "http://evil.localhost:8648" }),
		"another grant":  with(func(c *clicked) { c.path = "/grants/00000000-26ca-4960-b6bb-4e8e0e6eb383/answer" }),
		"another call":   with(func(c *clicked) { c.sum = strings.Repeat("0", 64) }),
		"another digest": with(func(c *clicked) { c.body = `{"answer":"allow","digest":"` + strings.Repeat("0", 64) + `"}` }),
		"no digest":      with(func(c *clicked) { c.body = `{}` }),
		"no click":       with(func(c *clicked) { c.label = "vogt-other-v1" }),
	} {
		err := proofWith(t, digest, c.evidence(t, key)).verifyClick(pagesOrigin)
		misfit, bad := errors.AsType[*ReceiptError](err)
		if (name == "") != (err == nil) || bad && misfit.Part != "evidence" {
			t.Errorf("%s: %v", name, err)
		}
	}
	stranger := good.evidence(t, newP256(t))
	for name, change := range map[string]func(map[string]any){
		"another key":    func(e map[string]any) { e["key"] = stranger["key"] },
		"no signature":   func(e map[string]any) { e["signature"] = []byte{} },
		"signed later":   func(e map[string]any) { e["signed"] = strings.Replace(e["signed"].(string), "176", "177", 1) },
		"another kind":   func(e map[string]any) { e["kind"] = "sshsig" },
		"a damaged key":  func(e map[string]any) { e["key"] = []byte("key") },
		"the body later": func(e map[string]any) { e["body"] = e["body"].(string) + " " },
	} {
		e := good.evidence(t, key)
		change(e)
		if err := proofWith(t, digest, e).verifyClick(pagesOrigin); err == nil {
			t.Errorf("%s: it holds", name)
		}
	}
}

func TestReceiptOfAPasskey(t *testing.T) {
	key := newP256(t)
	digest := statement.Digest(sha256.Sum256([]byte("a statement")))
	point, err := key.PublicKey.ECDH()
	if err != nil {
		t.Fatal(err)
	}
	xy := point.Bytes()[1:]
	// A COSE_Key for ES256 on P-256 in canonical CBOR (RFC 9053, section 7.1.1).
	cose := append([]byte{0xa5, 0x01, 0x02, 0x03, 0x26, 0x20, 0x01, 0x21, 0x58, 0x20}, xy[:32]...)
	cose = append(append(cose, 0x22, 0x58, 0x20), xy[32:]...)
	rp := sha256.Sum256([]byte("vogt.localhost"))
	data := append(rp[:], 0x05, 0, 0, 0, 0) // user present and verified
	client := fmt.Appendf(nil, `{"type":"webauthn.get","challenge":"%s","origin":"%s","crossOrigin":false}`,
		base64.RawURLEncoding.EncodeToString(digest[:]), pagesOrigin)
	sum := sha256.Sum256(client)
	signed := sha256.Sum256(append(append([]byte{}, data...), sum[:]...))
	signature, err := ecdsa.SignASN1(rand.Reader, key, signed[:])
	if err != nil {
		t.Fatal(err)
	}
	evidence := assertion.Evidence{CredentialID: []byte("id"), PublicKey: cose, AuthenticatorData: data, ClientDataJSON: client, Signature: signature}
	p := proofWith(t, digest, evidence)
	if err := p.verifyPasskey(pagesOrigin); err != nil || len(p.Verified) != 1 || len(p.Trusted) != 1 {
		t.Errorf("%v, %+v", err, p)
	}
	if err := p.verifyPasskey("http://evil.localhost:8648"); err == nil {
		t.Error("it holds on another origin")
	}
	other := statement.Digest(sha256.Sum256([]byte("another statement")))
	if err := proofWith(t, other, evidence).verifyPasskey(pagesOrigin); err == nil {
		t.Error("it holds for another statement")
	}
	if err := proofWith(t, digest, map[string]string{}).verifyPasskey(pagesOrigin); err == nil {
		t.Error("nothing holds as evidence")
	}
}
