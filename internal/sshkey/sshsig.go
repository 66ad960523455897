package sshkey

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/crypto/ssh"
)

// Namespace says what an SSHSIG signature is for. The zero value and any value
// but the constants are refused, so that this package signs nothing for git,
// ssh or another program.
type Namespace string

const (
	// NamespaceLogin is for a login challenge that is signed with
	// ssh-keygen -Y sign instead of raw.
	NamespaceLogin Namespace = "openape"
	// NamespaceDecision is for a person's decision over a statement.
	NamespaceDecision Namespace = "vogt-decision-v1"
)

func (n Namespace) check() error {
	switch n {
	case NamespaceLogin, NamespaceDecision:
		return nil
	}
	return fmt.Errorf("ssh signature: namespace %q is not one of Vogt's", string(n))
}

const (
	sshsigMagic   = "SSHSIG"
	sshsigVersion = 1
	hashSHA512    = "sha512"
	hashSHA256    = "sha256"

	armourHead  = "-----BEGIN SSH SIGNATURE-----"
	armourTail  = "-----END SSH SIGNATURE-----"
	armourWidth = 70 // as ssh-keygen writes it

	// maxArmour is ten times what a signature by an Ed25519 key needs.
	maxArmour = 4 << 10
)

// envelope is the blob inside the armour (PROTOCOL.sshsig, section 2).
type envelope struct {
	Magic         [len(sshsigMagic)]byte
	Version       uint32
	PublicKey     []byte
	Namespace     string
	Reserved      string
	HashAlgorithm string
	Signature     []byte
}

// signedData is what the key signs (PROTOCOL.sshsig, section 3).
type signedData struct {
	Magic         [len(sshsigMagic)]byte
	Namespace     string
	Reserved      string
	HashAlgorithm string
	Hash          []byte
}

// ed25519Signature is the signature format of RFC 8709, section 6.
type ed25519Signature struct {
	Type      string
	Signature []byte
}

// Sign makes an armoured SSHSIG signature over message, as
//
//	ssh-keygen -Y sign -n NAMESPACE -f KEY
//
// does, with SHA-512 as hash and a line end after the last line.
func Sign(priv *Private, ns Namespace, message []byte) (string, error) {
	if err := ns.check(); err != nil {
		return "", err
	}
	if priv.isZero() {
		return "", errNoPrivate
	}
	data, err := toBeSigned(ns, hashSHA512, message)
	if err != nil {
		return "", err
	}
	return armour(ssh.Marshal(envelope{
		Magic:         magic(),
		Version:       sshsigVersion,
		PublicKey:     priv.Public().Blob(),
		Namespace:     string(ns),
		HashAlgorithm: hashSHA512,
		Signature: ssh.Marshal(ed25519Signature{
			Type:      typeEd25519,
			Signature: priv.sign(data),
		}),
	})), nil
}

// Verify checks an armoured SSHSIG signature over message and returns the key,
// one of keys, that made it. The namespace inside must equal ns; nothing may
// surround the armour but one line end, and CRLF is read as LF.
//
// Only ssh-ed25519 is accepted, with SHA-512 or SHA-256; for hardware keys see
// [VerifySecurityKey].
func Verify(armoured string, ns Namespace, message []byte, keys []Public) (Public, error) {
	env, data, err := open(armoured, ns, message)
	if err != nil {
		return Public{}, err
	}
	raw, err := parseEd25519Blob(env.PublicKey)
	if err != nil {
		return Public{}, fmt.Errorf("ssh signature: it is not by an %s key", typeEd25519)
	}
	var signer Public
	copy(signer.key[:], raw)
	allowed, ok := signer.find(keys)
	if !ok {
		return Public{}, fmt.Errorf("ssh signature: it is by key %s, which is not among the keys allowed here", fingerprint(env.PublicKey))
	}
	var sig ed25519Signature
	if err := ssh.Unmarshal(env.Signature, &sig); err != nil || sig.Type != typeEd25519 || len(sig.Signature) != ed25519.SignatureSize {
		return Public{}, errors.New("ssh signature: the inner signature is malformed")
	}
	if !ed25519.Verify(allowed.key[:], data, sig.Signature) {
		return Public{}, errWrongSignature
	}
	return allowed, nil
}

var errWrongSignature = errors.New("ssh signature: it does not match; something else was signed, or the signature was changed")

// open takes an armoured signature apart, checks everything but key and
// signature, and returns the bytes that the key must have signed.
func open(armoured string, ns Namespace, message []byte) (envelope, []byte, error) {
	if err := ns.check(); err != nil {
		return envelope{}, nil, err
	}
	blob, err := unarmour(armoured)
	if err != nil {
		return envelope{}, nil, err
	}
	var env envelope
	if err := ssh.Unmarshal(blob, &env); err != nil {
		return envelope{}, nil, errors.New("ssh signature: the armour does not hold exactly one SSHSIG signature")
	}
	switch {
	case env.Magic != magic():
		return envelope{}, nil, errors.New("ssh signature: the armour does not hold an SSHSIG signature")
	case env.Version != sshsigVersion:
		return envelope{}, nil, fmt.Errorf("ssh signature: version %d, only %d is known", env.Version, sshsigVersion)
	case env.Reserved != "":
		return envelope{}, nil, errors.New("ssh signature: the reserved field is not empty")
	case env.Namespace != string(ns):
		return envelope{}, nil, fmt.Errorf("ssh signature: made for namespace %q, needed is %q; sign again with: ssh-keygen -Y sign -n %s", env.Namespace, ns, ns)
	}
	data, err := toBeSigned(ns, env.HashAlgorithm, message)
	if err != nil {
		return envelope{}, nil, err
	}
	return env, data, nil
}

func toBeSigned(ns Namespace, hashAlgorithm string, message []byte) ([]byte, error) {
	var hash []byte
	switch hashAlgorithm {
	case hashSHA512:
		sum := sha512.Sum512(message)
		hash = sum[:]
	case hashSHA256:
		sum := sha256.Sum256(message)
		hash = sum[:]
	default:
		return nil, fmt.Errorf("ssh signature: hash algorithm %q, only %s and %s are known", hashAlgorithm, hashSHA512, hashSHA256)
	}
	return ssh.Marshal(signedData{
		Magic:         magic(),
		Namespace:     string(ns),
		HashAlgorithm: hashAlgorithm,
		Hash:          hash,
	}), nil
}

func magic() (m [len(sshsigMagic)]byte) {
	copy(m[:], sshsigMagic)
	return m
}

func armour(blob []byte) string {
	var out strings.Builder
	out.WriteString(armourHead + "\n")
	encoded := base64.StdEncoding.EncodeToString(blob)
	for len(encoded) > armourWidth {
		out.WriteString(encoded[:armourWidth] + "\n")
		encoded = encoded[armourWidth:]
	}
	out.WriteString(encoded + "\n" + armourTail + "\n")
	return out.String()
}

func unarmour(armoured string) ([]byte, error) {
	if len(armoured) > maxArmour {
		return nil, fmt.Errorf("ssh signature: longer than %d bytes", maxArmour)
	}
	text := strings.ReplaceAll(armoured, "\r\n", "\n")
	body, ok := strings.CutPrefix(text, armourHead+"\n")
	if !ok {
		return nil, fmt.Errorf("ssh signature: it does not begin with the line %q", armourHead)
	}
	body, ok = strings.CutSuffix(strings.TrimSuffix(body, "\n"), "\n"+armourTail)
	if !ok {
		return nil, fmt.Errorf("ssh signature: it does not end with the line %q", armourTail)
	}
	var encoded bytes.Buffer
	for line := range strings.SplitSeq(body, "\n") {
		// The decoder skips line ends by itself; this keeps out empty lines
		// and lone carriage returns.
		if line == "" || strings.ContainsRune(line, '\r') {
			return nil, errors.New("ssh signature: empty or broken line inside the armour")
		}
		encoded.WriteString(line)
	}
	blob, err := base64.StdEncoding.Strict().DecodeString(encoded.String())
	if err != nil {
		return nil, errors.New("ssh signature: the text inside the armour is not base64")
	}
	return blob, nil
}
