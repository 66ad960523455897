package sshkey

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
)

// challengeDigits is the length of a login challenge: 32 random bytes as
// lower-case hexadecimal.
const challengeDigits = 64

// SignLogin answers a login challenge of the wire protocol: the Ed25519
// signature over the UTF-8 bytes of the challenge, in standard base64.
//
// It refuses to sign anything but 64 lower-case hexadecimal digits. The digest
// of a statement has that form too, so a hostile server can obtain a signature
// over its text here; it is worth nothing as a decision, because [Verify]
// accepts only SSHSIG signatures, whose signed bytes never have that form.
func SignLogin(priv *Private, challenge string) (string, error) {
	if !isChallenge(challenge) {
		return "", errors.New("ssh login: the server's challenge is not 64 lower-case hexadecimal digits, so it was not signed; check the authority's address")
	}
	if priv.isZero() {
		return "", errNoPrivate
	}
	return base64.StdEncoding.EncodeToString(priv.sign([]byte(challenge))), nil
}

// VerifyLogin checks the answer to a login challenge and returns the key, one
// of keys, that made it. That the challenge is fresh, belongs to the caller
// and is used once is the caller's business.
func VerifyLogin(challenge, signature string, keys []Public) (Public, error) {
	if !isChallenge(challenge) {
		return Public{}, errors.New("ssh login: the challenge is not 64 lower-case hexadecimal digits")
	}
	sig, err := base64.StdEncoding.Strict().DecodeString(signature)
	if err != nil || len(sig) != ed25519.SignatureSize {
		return Public{}, errors.New("ssh login: the signature is not the standard base64 of 64 bytes")
	}
	for _, key := range keys {
		if !key.IsZero() && ed25519.Verify(key.key[:], []byte(challenge), sig) {
			return key, nil
		}
	}
	return Public{}, errors.New("ssh login: the signature is not by any of the registered keys")
}

func isChallenge(s string) bool {
	if len(s) != challengeDigits {
		return false
	}
	for _, c := range []byte(s) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
