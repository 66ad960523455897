package assertion

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/binary"
	"math/big"
)

// The three kinds of credential key as COSE_Key (RFC 9052, section 7; RFC 8230,
// section 4) in the canonical CBOR of CTAP2. Canonical form leaves no freedom
// but the key itself, so keys are recognised by their fixed bytes, and no CBOR
// parser is needed.
const (
	// {1: 2 (EC2), 3: -7 (ES256), -1: 1 (P-256), -2: x, -3: y}
	es256Head = "\xa5\x01\x02\x03\x26\x20\x01\x21\x58\x20"
	es256Mid  = "\x22\x58\x20"
	// {1: 1 (OKP), 3: -8 (EdDSA), -1: 6 (Ed25519), -2: x}
	eddsaHead = "\xa4\x01\x01\x03\x27\x20\x06\x21\x58\x20"
	// {1: 3 (RSA), 3: -257 (RS256), -1: n, -2: e}; e is 65537
	rs256Head = "\xa4\x01\x03\x03\x39\x01\x00\x20\x59"
	rs256Tail = "\x21\x43\x01\x00\x01"
)

// CheckKey reports whether cose is a credential key that [Evidence.Verify] can
// use: ES256 on P-256, EdDSA on Ed25519, or RS256 with 2048 to 4096 bits, as a
// COSE_Key in canonical CBOR. A refusal is an [*Error].
func CheckKey(cose []byte) error {
	_, err := parseKey(cose)
	return err
}

// verifySignature checks sig over signed with the key in cose.
func verifySignature(cose, signed, sig []byte) error {
	key, err := parseKey(cose)
	if err != nil {
		return err
	}
	digest := sha256.Sum256(signed)
	ok := false
	switch key := key.(type) {
	case *ecdsa.PublicKey:
		ok = ecdsa.VerifyASN1(key, digest[:], sig)
	case ed25519.PublicKey:
		ok = ed25519.Verify(key, signed, sig)
	case *rsa.PublicKey:
		ok = rsa.VerifyPKCS1v15(key, crypto.SHA256, digest[:], sig) == nil
	}
	if !ok {
		return refuse(BadSignature, "%d bytes of signature do not match the key", len(sig))
	}
	return nil
}

func parseKey(cose []byte) (crypto.PublicKey, error) {
	if rest, ok := bytes.CutPrefix(cose, []byte(es256Head)); ok {
		return parseES256(rest)
	}
	if rest, ok := bytes.CutPrefix(cose, []byte(eddsaHead)); ok {
		if len(rest) != ed25519.PublicKeySize {
			return nil, refuse(UnsupportedKey, "an Ed25519 key of %d bytes", len(rest))
		}
		return ed25519.PublicKey(rest), nil
	}
	if rest, ok := bytes.CutPrefix(cose, []byte(rs256Head)); ok {
		return parseRS256(rest)
	}
	return nil, refuse(UnsupportedKey, "%d bytes that are no ES256, EdDSA or RS256 key", len(cose))
}

func parseES256(rest []byte) (crypto.PublicKey, error) {
	if len(rest) != 32+len(es256Mid)+32 || string(rest[32:32+len(es256Mid)]) != es256Mid {
		return nil, refuse(UnsupportedKey, "a malformed P-256 key")
	}
	point := append([]byte{4}, rest[:32]...)
	point = append(point, rest[32+len(es256Mid):]...)
	key, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), point)
	if err != nil {
		return nil, refuse(UnsupportedKey, "a P-256 key that is no point of the curve")
	}
	return key, nil
}

func parseRS256(rest []byte) (crypto.PublicKey, error) {
	if len(rest) < 2 {
		return nil, refuse(UnsupportedKey, "a cut RSA key")
	}
	size := int(binary.BigEndian.Uint16(rest))
	rest = rest[2:]
	if size < 2048/8 || size > 4096/8 || len(rest) != size+len(rs256Tail) || string(rest[size:]) != rs256Tail || rest[0] == 0 {
		return nil, refuse(UnsupportedKey, "an RSA key of %d bytes; accepted are 2048 to 4096 bits with exponent 65537", size)
	}
	return &rsa.PublicKey{N: new(big.Int).SetBytes(rest[:size]), E: 65537}, nil
}
