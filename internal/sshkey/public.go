// Package sshkey owns the SSH keys of principals: it reads public and private
// Ed25519 keys, signs and verifies the raw login signature of the wire
// protocol, and signs and verifies SSHSIG signatures (OpenSSH's
// PROTOCOL.sshsig) in Vogt's namespaces.
//
// The two kinds of signature cannot stand in for each other. A login signature
// is made over exactly 64 lower-case hexadecimal digits that a server chose. A
// decision is always an SSHSIG signature, and the bytes under an SSHSIG
// signature begin with "SSHSIG", which no string of hexadecimal digits does. A
// server that sends the digest of a statement as its login challenge therefore
// gets a login, never a decision.
//
// The package leaves out where keys are registered and to whom they belong,
// asking for a passphrase, the ssh-agent protocol (an agent's socket signs
// unseen for every process of the same user), and every key type but Ed25519.
// Hardware keys (sk-ssh-ed25519@openssh.com) are verified here, see
// [VerifySecurityKey], but only ssh-keygen and the key itself can sign.
package sshkey

import (
	"crypto/ecdh"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/crypto/ssh"
)

const (
	typeEd25519   = "ssh-ed25519"
	typeSKEd25519 = "sk-ssh-ed25519@openssh.com"

	// maxLine is enough for the longest RSA line anyone pastes by mistake, so
	// that it gets the answer about its type and not about its length.
	maxLine = 8 << 10
)

// KeyID names a key on the wire: the lower-case hexadecimal SHA-256 of its
// decoded blob, 64 digits.
type KeyID string

// Public is an Ed25519 public key with the comment of its line. The zero value
// is no key and verifies nothing. Compare keys with [Public.Equal]; == also
// compares the comments.
type Public struct {
	key     [ed25519.PublicKeySize]byte
	comment string
}

// NewPublic makes a Public from raw key bytes. It refuses keys of the wrong
// length, keys of small order (for which anybody can make signatures), and
// comments that would not survive as one line of text.
func NewPublic(key ed25519.PublicKey, comment string) (Public, error) {
	var p Public
	if len(key) != len(p.key) {
		return Public{}, fmt.Errorf("ssh public key: the key has %d bytes, an Ed25519 key has %d", len(key), len(p.key))
	}
	if smallOrder(key) {
		return Public{}, errors.New("ssh public key: the key is a point of small order, for which anybody can make signatures; make a real one with: ssh-keygen -t ed25519")
	}
	if err := checkComment(comment); err != nil {
		return Public{}, err
	}
	copy(p.key[:], key)
	p.comment = strings.Trim(comment, " \t")
	return p, nil
}

// ParsePublic reads one line of a public key file or of authorized_keys:
//
//	ssh-ed25519 <base64> [comment]
//
// Blanks around the line and a line end (LF or CRLF) are tolerated. Options,
// several lines, other key types and private keys are refused, each with an
// error that says what to do; no error repeats key material.
func ParsePublic(line string) (Public, error) {
	l, err := splitLine(line, typeEd25519)
	if err != nil {
		return Public{}, err
	}
	key, err := parseEd25519Blob(l.blob)
	if err != nil {
		return Public{}, err
	}
	return NewPublic(key, l.comment)
}

// IsZero reports whether p holds no key.
func (p Public) IsZero() bool { return p.key == [ed25519.PublicKeySize]byte{} }

// Equal reports whether p and other are the same key, whatever their comments.
// The zero value equals nothing, not even itself.
func (p Public) Equal(other Public) bool { return p.key == other.key && !p.IsZero() }

// Key returns a copy of the raw 32 byte key, or nil for the zero value.
func (p Public) Key() ed25519.PublicKey {
	if p.IsZero() {
		return nil
	}
	return slices.Clone(p.key[:])
}

// Comment returns the comment of the key's line. Its owner chose it; it proves
// nothing.
func (p Public) Comment() string { return p.comment }

// Blob returns the key in SSH wire format (RFC 8709, section 4), or nil for
// the zero value.
func (p Public) Blob() []byte {
	if p.IsZero() {
		return nil
	}
	return ssh.Marshal(ed25519Blob{Type: typeEd25519, Key: p.key[:]})
}

// ID returns the key's wire name, or "" for the zero value.
func (p Public) ID() KeyID {
	if p.IsZero() {
		return ""
	}
	sum := sha256.Sum256(p.Blob())
	return KeyID(hex.EncodeToString(sum[:]))
}

// Fingerprint returns the form that ssh-keygen -l prints, "SHA256:" and 43
// characters of base64, or "" for the zero value.
func (p Public) Fingerprint() string {
	if p.IsZero() {
		return ""
	}
	return fingerprint(p.Blob())
}

// String returns the canonical line, without line end: type, base64 and, if
// there is one, the comment, each separated by one blank.
func (p Public) String() string {
	if p.IsZero() {
		return ""
	}
	return formatLine(typeEd25519, p.Blob(), p.comment)
}

// MarshalText returns the canonical line. The zero value has none and is an
// error.
func (p Public) MarshalText() ([]byte, error) {
	if p.IsZero() {
		return nil, errors.New("ssh public key: the zero value is no key")
	}
	return []byte(p.String()), nil
}

// UnmarshalText is [ParsePublic].
func (p *Public) UnmarshalText(text []byte) error {
	parsed, err := ParsePublic(string(text))
	if err != nil {
		return err
	}
	*p = parsed
	return nil
}

// find returns the member of keys that is the same key as p.
func (p Public) find(keys []Public) (Public, bool) {
	i := slices.IndexFunc(keys, p.Equal)
	if i < 0 {
		return Public{}, false
	}
	return keys[i], true
}

// ed25519Blob is the public key format of RFC 8709, section 4.
type ed25519Blob struct {
	Type string
	Key  []byte
}

func parseEd25519Blob(blob []byte) (ed25519.PublicKey, error) {
	var b ed25519Blob
	if err := ssh.Unmarshal(blob, &b); err != nil {
		return nil, errors.New("ssh public key: the base64 part does not hold exactly one key; copy the line of the .pub file again, without changes")
	}
	if b.Type != typeEd25519 {
		return nil, fmt.Errorf("ssh public key: the base64 part holds another key type than %s; copy the line of the .pub file again, without changes", typeEd25519)
	}
	if len(b.Key) != ed25519.PublicKeySize {
		return nil, fmt.Errorf("ssh public key: the key has %d bytes, an Ed25519 key has %d", len(b.Key), ed25519.PublicKeySize)
	}
	return b.Key, nil
}

func fingerprint(blob []byte) string {
	sum := sha256.Sum256(blob)
	return "SHA256:" + base64.RawStdEncoding.EncodeToString(sum[:])
}

func formatLine(keyType string, blob []byte, comment string) string {
	line := keyType + " " + base64.StdEncoding.EncodeToString(blob)
	if comment != "" {
		line += " " + comment
	}
	return line
}

// keyLine is one public key line, split but not yet understood.
type keyLine struct {
	blob    []byte
	comment string
}

// splitLine takes line apart and insists that its type is want.
func splitLine(line, want string) (keyLine, error) {
	if looksPrivate(line) {
		return keyLine{}, errors.New("ssh public key: this is a PRIVATE key. It must never leave its file: if it was sent anywhere, make a new one with: ssh-keygen -t ed25519. Give the line of the .pub file instead")
	}
	if len(line) > maxLine {
		return keyLine{}, fmt.Errorf("ssh public key: longer than %d bytes; give the one line of a .pub file", maxLine)
	}
	line = strings.Trim(line, " \t\r\n")
	switch {
	case line == "":
		return keyLine{}, errors.New("ssh public key: empty; give the one line of a .pub file")
	case strings.HasPrefix(line, "----"):
		return keyLine{}, errors.New("ssh public key: this is a PEM or RFC 4716 file; print the key as one line with: ssh-keygen -i -f FILE")
	case strings.ContainsAny(line, "\r\n"):
		return keyLine{}, errors.New("ssh public key: several lines; give exactly one key")
	}
	keyType, rest := cutBlank(line)
	if keyType != want {
		return keyLine{}, wrongType(keyType, rest, want)
	}
	encoded, comment := cutBlank(rest)
	if encoded == "" {
		return keyLine{}, fmt.Errorf("ssh public key: nothing follows %q; copy the whole line of the .pub file", want)
	}
	blob, err := base64.StdEncoding.Strict().DecodeString(encoded)
	if err != nil {
		return keyLine{}, errors.New("ssh public key: the part after the type is not base64; copy the line of the .pub file again, without changes")
	}
	return keyLine{blob: blob, comment: comment}, nil
}

// cutBlank splits s at its first run of blanks.
func cutBlank(s string) (first, rest string) {
	i := strings.IndexAny(s, " \t")
	if i < 0 {
		return s, ""
	}
	return s[:i], strings.TrimLeft(s[i:], " \t")
}

// looksPrivate recognises the private key formats that people paste: PEM of
// any kind, the bare base64 body of an OpenSSH file, and PuTTY's format.
func looksPrivate(text string) bool {
	return strings.Contains(text, "PRIVATE KEY") ||
		strings.Contains(text, "b3BlbnNzaC1rZXktdjE") || // base64 of "openssh-key-v1"
		strings.Contains(text, "PuTTY-User-Key-File")
}

// wrongType explains a line that does not begin with want. It names only types
// that it knows, since the first word may be anything, a secret included.
func wrongType(keyType, rest, want string) error {
	if isKeyType(keyType) {
		return fmt.Errorf("ssh public key: type %s is not accepted here, only %s; make such a key with: ssh-keygen -t %s", keyType, want, keygenType(want))
	}
	if slices.ContainsFunc(strings.Fields(rest), isKeyType) {
		return fmt.Errorf("ssh public key: options before the key type are not accepted; begin the line with %s", want)
	}
	return fmt.Errorf("ssh public key: the line does not begin with %s; give the line of a .pub file", want)
}

// isKeyType reports whether word is a key or certificate type of OpenSSH
// (sshd(8), AUTHORIZED_KEYS FILE FORMAT).
func isKeyType(word string) bool {
	switch strings.TrimSuffix(word, "-cert-v01@openssh.com") {
	case typeEd25519, "ssh-rsa", "ssh-dss", "rsa-sha2-256", "rsa-sha2-512",
		"ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521",
		"sk-ssh-ed25519", typeSKEd25519,
		"sk-ecdsa-sha2-nistp256", "sk-ecdsa-sha2-nistp256@openssh.com":
		return true
	}
	return false
}

func keygenType(keyType string) string {
	if keyType == typeSKEd25519 {
		return "ed25519-sk"
	}
	return "ed25519"
}

// checkComment keeps out what would break a line or deceive its reader on a
// terminal or page: control characters and invisible formatting such as
// direction overrides.
func checkComment(comment string) error {
	if !utf8.ValidString(comment) {
		return errors.New("ssh public key: the comment is not valid UTF-8")
	}
	if len(comment) > maxLine/2 {
		return fmt.Errorf("ssh public key: the comment is longer than %d bytes", maxLine/2)
	}
	if looksPrivate(comment) {
		return errors.New("ssh public key: the comment looks like a private key; remove it")
	}
	bad := func(r rune) bool {
		return r != '\t' && (unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp))
	}
	if strings.ContainsFunc(comment, bad) {
		return errors.New("ssh public key: the comment holds control or invisible characters; remove them")
	}
	return nil
}

// smallOrder reports whether key encodes one of the points whose order divides
// eight, in any encoding. For those, signatures exist that verify for many
// messages, so such a "key" would let anybody in.
//
// It maps the point to its Montgomery form, u = (1+y)/(1-y) (RFC 7748, section
// 4.1), and multiplies: X25519 clears the cofactor and reports the zero result
// that exactly these points give.
func smallOrder(key ed25519.PublicKey) bool {
	little := slices.Clone(key)
	little[31] &= 0x7f // the sign of x does not matter
	slices.Reverse(little)

	prime := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 255), big.NewInt(19))
	y := new(big.Int).SetBytes(little)
	y.Mod(y, prime)
	one := big.NewInt(1)
	denominator := new(big.Int).Sub(one, y)
	denominator.Mod(denominator, prime)
	if denominator.Sign() == 0 {
		return true // y = 1 is the neutral point
	}
	u := new(big.Int).Add(one, y)
	u.Mul(u, denominator.ModInverse(denominator, prime))
	u.Mod(u, prime)

	var encoded [32]byte
	u.FillBytes(encoded[:])
	slices.Reverse(encoded[:])
	point, err := ecdh.X25519().NewPublicKey(encoded[:])
	if err != nil {
		return true
	}
	scalar, err := ecdh.X25519().NewPrivateKey(append([]byte{8}, make([]byte, 31)...))
	if err != nil {
		return true
	}
	_, err = scalar.ECDH(point)
	return err != nil
}
