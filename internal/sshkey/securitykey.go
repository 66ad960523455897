package sshkey

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
)

// Bits of the flags byte that a security key signs (PROTOCOL.u2f, "SSH U2F
// signatures"; they are those of WebAuthn's authenticator data).
const (
	flagUserPresent  = 0x01
	flagUserVerified = 0x04
)

// SecurityKey is the public half of an Ed25519 key in a FIDO token, type
// sk-ssh-ed25519@openssh.com. It is a type of its own, so that an ordinary key
// cannot stand where hardware is demanded. The zero value is no key and
// verifies nothing.
type SecurityKey struct {
	key         [ed25519.PublicKeySize]byte
	application string
	comment     string
}

// Touch is what a verified signature by a security key tells.
type Touch struct {
	// Key is the key that signed, as it stood in the list of allowed keys.
	Key SecurityKey
	// UserVerified tells that the token checked a PIN or a finger. That
	// somebody touched it is certain: [VerifySecurityKey] demands it.
	UserVerified bool
	// Counter is the token's signature counter. A value not above the last one
	// seen may mean a copied token; some tokens always report 0.
	Counter uint32
}

// skBlob is the public key format of PROTOCOL.u2f.
type skBlob struct {
	Type        string
	Key         []byte
	Application string
}

// skSignature is the signature format of PROTOCOL.u2f.
type skSignature struct {
	Type      string
	Signature []byte
	Flags     uint8
	Counter   uint32
}

// ParseSecurityKey reads one line
//
//	sk-ssh-ed25519@openssh.com <base64> [comment]
//
// as strictly as [ParsePublic]. The application inside must begin with "ssh:",
// which keeps out keys that a web site registered.
func ParseSecurityKey(line string) (SecurityKey, error) {
	l, err := splitLine(line, typeSKEd25519)
	if err != nil {
		return SecurityKey{}, err
	}
	key, err := parseSKBlob(l.blob)
	if err != nil {
		return SecurityKey{}, err
	}
	if err := checkComment(l.comment); err != nil {
		return SecurityKey{}, err
	}
	key.comment = l.comment
	return key, nil
}

// IsZero reports whether k holds no key.
func (k SecurityKey) IsZero() bool { return k.application == "" }

// Equal reports whether k and other are the same key for the same application,
// whatever their comments. The zero value equals nothing.
func (k SecurityKey) Equal(other SecurityKey) bool {
	return k.key == other.key && k.application == other.application && !k.IsZero()
}

// Fingerprint returns the form that ssh-keygen -l prints, or "" for the zero
// value.
func (k SecurityKey) Fingerprint() string {
	if k.IsZero() {
		return ""
	}
	return fingerprint(k.blob())
}

// String returns the canonical line, without line end.
func (k SecurityKey) String() string {
	if k.IsZero() {
		return ""
	}
	return formatLine(typeSKEd25519, k.blob(), k.comment)
}

func (k SecurityKey) blob() []byte {
	return ssh.Marshal(skBlob{Type: typeSKEd25519, Key: k.key[:], Application: k.application})
}

// VerifySecurityKey is [Verify] for hardware keys. It demands that the token
// reports a touch, and returns what else it reported.
func VerifySecurityKey(armoured string, ns Namespace, message []byte, keys []SecurityKey) (Touch, error) {
	env, data, err := open(armoured, ns, message)
	if err != nil {
		return Touch{}, err
	}
	signer, err := parseSKBlob(env.PublicKey)
	if err != nil {
		return Touch{}, fmt.Errorf("ssh signature: it is not by an %s key", typeSKEd25519)
	}
	i := slices.IndexFunc(keys, signer.Equal)
	if i < 0 {
		return Touch{}, fmt.Errorf("ssh signature: it is by key %s, which is not among the keys allowed here", signer.Fingerprint())
	}
	var sig skSignature
	if err := ssh.Unmarshal(env.Signature, &sig); err != nil || sig.Type != typeSKEd25519 || len(sig.Signature) != ed25519.SignatureSize {
		return Touch{}, errors.New("ssh signature: the inner signature is malformed")
	}
	if !ed25519.Verify(keys[i].key[:], skSigned(keys[i].application, sig.Flags, sig.Counter, data), sig.Signature) {
		return Touch{}, errWrongSignature
	}
	if sig.Flags&flagUserPresent == 0 {
		return Touch{}, errors.New("ssh signature: nobody touched the security key; make a key without the no-touch-required option and sign again")
	}
	return Touch{Key: keys[i], UserVerified: sig.Flags&flagUserVerified != 0, Counter: sig.Counter}, nil
}

// skSigned is what the token signs: hash of the application, flags, counter,
// hash of the data.
func skSigned(application string, flags uint8, counter uint32, data []byte) []byte {
	app, message := sha256.Sum256([]byte(application)), sha256.Sum256(data)
	out := append(app[:], flags)
	out = binary.BigEndian.AppendUint32(out, counter)
	return append(out, message[:]...)
}

func parseSKBlob(blob []byte) (SecurityKey, error) {
	var b skBlob
	if err := ssh.Unmarshal(blob, &b); err != nil {
		return SecurityKey{}, errors.New("ssh public key: the base64 part does not hold exactly one security key; copy the line of the .pub file again, without changes")
	}
	if b.Type != typeSKEd25519 {
		return SecurityKey{}, fmt.Errorf("ssh public key: the base64 part holds another key type than %s; copy the line of the .pub file again, without changes", typeSKEd25519)
	}
	if len(b.Key) != ed25519.PublicKeySize {
		return SecurityKey{}, fmt.Errorf("ssh public key: the key has %d bytes, an Ed25519 key has %d", len(b.Key), ed25519.PublicKeySize)
	}
	if smallOrder(b.Key) {
		return SecurityKey{}, errors.New("ssh public key: the key is a point of small order, for which anybody can make signatures")
	}
	if !strings.HasPrefix(b.Application, "ssh:") {
		return SecurityKey{}, errors.New(`ssh public key: the security key's application does not begin with "ssh:"; make a key with: ssh-keygen -t ed25519-sk`)
	}
	k := SecurityKey{application: b.Application}
	copy(k.key[:], b.Key)
	return k, nil
}
