package pages_test

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/hex"
	"slices"
	"strings"
	"testing"
	"time"

	"vogt/internal/pages"
)

func newKey(t *testing.T, curve elliptic.Curve) (*ecdsa.PrivateKey, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	spki, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	return key, spki
}

func TestVerifyClick(t *testing.T) {
	now := time.Date(2026, 11, 30, 14, 24, 0, 0, time.UTC)
	key, spki := newKey(t, elliptic.P256())
	_, other := newKey(t, elliptic.P256())
	_, p384 := newKey(t, elliptic.P384())
	edKey, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ed, err := x509.MarshalPKIXPublicKey(edKey)
	if err != nil {
		t.Fatal(err)
	}
	good := pages.Click{Origin: "http://vogt.localhost:8648", Path: "/p/grants/g-1/decision", Body: []byte(`{"answer":"allow"}`), Issued: now.UnixMilli()}
	good.Signature = signClick(t, key, good)
	at := func(issued time.Time) func(*pages.Click) {
		return func(c *pages.Click) {
			c.Issued = issued.UnixMilli()
			c.Signature = signClick(t, key, *c)
		}
	}
	for _, c := range []struct {
		name   string
		spki   []byte
		change func(*pages.Click)
		want   string // in the error; empty: accepted
	}{
		{"as it is", spki, nil, ""},
		{"as old as allowed", spki, at(now.Add(-120 * time.Second)), ""},
		{"too old", spki, at(now.Add(-120*time.Second - time.Millisecond)), "signed"},
		{"a clock slightly ahead", spki, at(now.Add(10 * time.Second)), ""},
		{"from the future", spki, at(now.Add(11 * time.Second)), "signed"},
		{"from the end of time", spki, func(c *pages.Click) { c.Issued = 1<<63 - 1 }, "signed"},
		{"another time than was signed", spki, func(c *pages.Click) { c.Issued++ }, "does not verify"},
		{"another body", spki, func(c *pages.Click) { c.Body = []byte(`{"answer":"deny"}`) }, "does not verify"},
		{"one byte more", spki, func(c *pages.Click) { c.Body = append(slices.Clone(c.Body), ' ') }, "does not verify"},
		{"another path", spki, func(c *pages.Click) { c.Path = "/p/grants/g-2/decision" }, "does not verify"},
		{"another port", spki, func(c *pages.Click) { c.Origin = "http://vogt.localhost:8649" }, "does not verify"},
		{"lines moved", spki, func(c *pages.Click) { c.Origin, c.Path = c.Origin+"\n"+c.Path, "" }, "does not verify"},
		{"another key", other, nil, "does not verify"},
		{"no key", nil, nil, "proof key"},
		{"key on another curve", p384, nil, "want ECDSA on P-256"},
		{"key of another kind", ed, nil, "want ECDSA on P-256"},
		{"key with rubbish behind", append(slices.Clone(spki), 0), nil, "proof key"},
		{"no signature", spki, func(c *pages.Click) { c.Signature = nil }, "0 bytes"},
		{"signature of zeros", spki, func(c *pages.Click) { c.Signature = make([]byte, 64) }, "does not verify"},
		{"signature in ASN.1", spki, func(c *pages.Click) {
			c.Signature, err = ecdsa.SignASN1(rand.Reader, key, make([]byte, 32))
		}, "bytes, want 64"},
		{"nothing", spki, func(c *pages.Click) { *c = pages.Click{} }, "signed"},
	} {
		click := good
		if c.change != nil {
			c.change(&click)
		}
		err := pages.VerifyClick(c.spki, click, now)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	// Every byte of the signature counts.
	for i := range good.Signature {
		click := good
		click.Signature = slices.Clone(good.Signature)
		click.Signature[i] ^= 1
		if pages.VerifyClick(spki, click, now) == nil {
			t.Errorf("signature with byte %d changed verifies", i)
		}
	}
}

// TestClickVector pins the signed text and a signature that WebCrypto made.
func TestClickVector(t *testing.T) {
	c := pages.Click{Origin: "http://vogt.localhost:8648", Path: "/p/panic", Body: []byte("{}"), Issued: 1796048652000}
	const text = "vogt-click-v1\nhttp://vogt.localhost:8648\n/p/panic\n44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a\n1796048652000"
	if got := string(c.Signed()); got != text {
		t.Fatalf("signed text is %q, want %q", got, text)
	}
	spki, err := hex.DecodeString(vectorKey)
	if err != nil {
		t.Fatal(err)
	}
	if c.Signature, err = hex.DecodeString(vectorSignature); err != nil {
		t.Fatal(err)
	}
	if err := pages.VerifyClick(spki, c, time.UnixMilli(c.Issued)); err != nil {
		t.Error(err)
	}
}

// Made once with WebCrypto; its private half was not kept.
const (
	vectorKey       = "3059301306072a8648ce3d020106082a8648ce3d030107034200041a74213c8ea259b2d9a616126156e41a84c8afe6d281f84211350d9bb990d9ac36163f905d7a1f21d0629cbb0c02a2ea9843efa11fe7f0c03a99a082b576b3c9"
	vectorSignature = "5d32e208ca5dfc7156e5fceddaa6794cda6606738d8639a5aafde47bf02b4a511f42e8e59437f2de9e606c37126ec8583879d06584d35d0da9d15efefa272604"
)
