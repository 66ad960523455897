package pages

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"time"
)

// ClickHeader carries the proof of a click: the time of signing in Unix
// milliseconds, a dot, and the signature in unpadded base64url.
const ClickHeader = "Vogt-Click"

const (
	clickLabel  = "vogt-click-v1"
	clickMaxAge = 120 * time.Second
	clickSkew   = 10 * time.Second // the page corrects its clock by the server's
)

// Click is a deciding call together with the proof that a signed-in page made
// it. It holds all that VerifyClick needs, so that it can be kept as evidence
// and verified again later.
type Click struct {
	Origin    string `json:"origin"` // of the pages
	Path      string `json:"path"`   // percent-encoded, as requested
	Body      []byte `json:"body"`   // exact bytes of the call
	Issued    int64  `json:"issued"` // unix milliseconds
	Signature []byte `json:"signature"`
}

// Signed returns the text under the signature: five lines, joined by one line
// feed and without a trailing one: "vogt-click-v1", origin, path, SHA-256 of
// the body in lower-case hex, time of signing in decimal Unix milliseconds.
func (c Click) Signed() []byte {
	sum := sha256.Sum256(c.Body)
	return []byte(strings.Join([]string{
		clickLabel, c.Origin, c.Path, hex.EncodeToString(sum[:]), strconv.FormatInt(c.Issued, 10),
	}, "\n"))
}

// VerifyClick reports whether c was signed by the key spki
// (SubjectPublicKeyInfo, DER, ECDSA P-256) within the last two minutes before
// now. The signature is ECDSA with SHA-256, 64 bytes r‖s, as WebCrypto makes
// it. A repeated click verifies again: whoever acts on it must act once.
func VerifyClick(spki []byte, c Click, now time.Time) error {
	key, err := ParseProofKey(spki)
	if err != nil {
		return err
	}
	age := now.Sub(time.UnixMilli(c.Issued))
	if age > clickMaxAge || age < -clickSkew {
		return fmt.Errorf("click: signed %s before now, want at most %s", age.Round(time.Second), clickMaxAge)
	}
	return verifyP256(key, c.Signed(), c.Signature)
}

func verifyP256(key *ecdsa.PublicKey, text, signature []byte) error {
	if len(signature) != 64 {
		return fmt.Errorf("click: signature has %d bytes, want 64", len(signature))
	}
	r, s := new(big.Int).SetBytes(signature[:32]), new(big.Int).SetBytes(signature[32:])
	sum := sha256.Sum256(text)
	if !ecdsa.Verify(key, sum[:], r, s) {
		return errors.New("click: signature does not verify")
	}
	return nil
}

// ParseProofKey reads the public key that a page registers at sign-in. It
// accepts ECDSA on P-256 only.
func ParseProofKey(spki []byte) (*ecdsa.PublicKey, error) {
	any, err := x509.ParsePKIXPublicKey(spki)
	if err != nil {
		return nil, fmt.Errorf("proof key: %w", err)
	}
	key, ok := any.(*ecdsa.PublicKey)
	if !ok || key.Curve != elliptic.P256() {
		return nil, fmt.Errorf("proof key: %T, want ECDSA on P-256", any)
	}
	return key, nil
}

// parseClickHeader reads "<issued>.<signature>".
func parseClickHeader(h string) (issued int64, signature []byte, err error) {
	number, rest, ok := strings.Cut(h, ".")
	if !ok || len(h) > 200 {
		return 0, nil, fmt.Errorf("header %s: want TIME.SIGNATURE", ClickHeader)
	}
	issued, err = strconv.ParseInt(number, 10, 64)
	if err != nil || issued <= 0 || strconv.FormatInt(issued, 10) != number {
		return 0, nil, fmt.Errorf("header %s: time %q is not a number of milliseconds", ClickHeader, number)
	}
	signature, err = base64.RawURLEncoding.Strict().DecodeString(rest)
	if err != nil {
		return 0, nil, fmt.Errorf("header %s: signature: %w", ClickHeader, err)
	}
	return issued, signature, nil
}

// VerifyHeader verifies the click that came in ClickHeader with a call to path;
// see VerifyClick. For methods other than POST the path is signed after the
// method and a space, so that no click for one is a click for the other.
func VerifyHeader(spki []byte, header, origin, path string, body []byte, now time.Time) error {
	issued, signature, err := parseClickHeader(header)
	if err != nil {
		return err
	}
	return VerifyClick(spki, Click{Origin: origin, Path: path, Body: body, Issued: issued, Signature: signature}, now)
}
