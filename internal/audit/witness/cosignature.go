package witness

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"
)

// cosignatureType is the signature type of c2sp.org/signed-note for
// timestamped Ed25519 cosignatures.
const cosignatureType = 0x04

// cosignatureSize is a timestamp and an Ed25519 signature.
const cosignatureSize = 8 + ed25519.SignatureSize

// Key is a witness's signing key. The zero value signs nothing.
type Key struct {
	name    string
	hash    uint32
	private ed25519.PrivateKey
}

// NewKey makes a key from a name, by convention a URL without scheme, and a
// 32-byte Ed25519 seed, which must serve nothing else: the signed text does
// not contain the name.
func NewKey(name string, seed []byte) (Key, error) {
	if len(seed) != ed25519.SeedSize {
		return Key{}, fmt.Errorf("witness: the seed has %d bytes instead of %d", len(seed), ed25519.SeedSize)
	}
	k := Key{name: name, private: ed25519.NewKeyFromSeed(seed)}
	k.hash = keyHash(name, k.public())
	if _, err := newVerifier(k.VerifierKey()); err != nil {
		return Key{}, fmt.Errorf("witness: %q cannot name a witness: it is empty or contains a space, a line break or a plus", name)
	}
	return k, nil
}

// String is the name, so that a key in a log line does not give itself away.
func (k Key) String() string { return k.name }

func (k Key) public() ed25519.PublicKey { return k.private.Public().(ed25519.PublicKey) }

// VerifierKey is what others need to verify cosignatures: name+hash+key, with
// signature type 0x04 (c2sp.org/tlog-cosignature).
func (k Key) VerifierKey() string {
	return fmt.Sprintf("%s+%08x+%s", k.name, k.hash, base64.StdEncoding.EncodeToString(append([]byte{cosignatureType}, k.public()...)))
}

// cosign makes the signature line, with its newline, over a checkpoint's text.
func (k Key) cosign(noteText string, at time.Time) (string, error) {
	if at.Unix() < 0 {
		return "", fmt.Errorf("witness: the clock says %s", at)
	}
	sig := binary.BigEndian.AppendUint32(nil, k.hash)
	sig = binary.BigEndian.AppendUint64(sig, uint64(at.Unix()))
	sig = append(sig, ed25519.Sign(k.private, message(noteText, at.Unix()))...)
	return "— " + k.name + " " + base64.StdEncoding.EncodeToString(sig) + "\n", nil
}

// message is what a cosignature signs.
func message(noteText string, seconds int64) []byte {
	return []byte("cosignature/v1\ntime " + strconv.FormatInt(seconds, 10) + "\n" + noteText)
}

func keyHash(name string, public ed25519.PublicKey) uint32 {
	h := sha256.New()
	h.Write([]byte(name + "\n"))
	h.Write([]byte{cosignatureType})
	h.Write(public)
	return binary.BigEndian.Uint32(h.Sum(nil))
}

// verifier is a note.Verifier for cosignatures.
type verifier struct {
	name   string
	hash   uint32
	public ed25519.PublicKey
}

func (v *verifier) Name() string    { return v.name }
func (v *verifier) KeyHash() uint32 { return v.hash }

func (v *verifier) Verify(msg, sig []byte) bool {
	if len(sig) != cosignatureSize {
		return false
	}
	seconds := binary.BigEndian.Uint64(sig)
	return seconds <= 1<<63-1 && ed25519.Verify(v.public, message(string(msg), int64(seconds)), sig[8:])
}

func newVerifier(key string) (*verifier, error) {
	malformed := fmt.Errorf("witness: %.200q is not the key of a witness (name+hash+key, signature type 4)", key)
	name, rest, _ := strings.Cut(key, "+")
	hash, material, _ := strings.Cut(rest, "+")
	raw, err := base64.StdEncoding.DecodeString(material)
	if err != nil || len(raw) != 1+ed25519.PublicKeySize || raw[0] != cosignatureType {
		return nil, malformed
	}
	v := &verifier{name: name, public: raw[1:]}
	v.hash = keyHash(name, v.public)
	// What a name may be is decided by package note, which has no function of
	// its own for it: a key of a known type with this name must be readable.
	plain, err := note.NewEd25519VerifierKey(name, v.public)
	if err != nil {
		return nil, malformed
	}
	if _, err := note.NewVerifier(plain); err != nil || fmt.Sprintf("%08x", v.hash) != hash {
		return nil, malformed
	}
	return v, nil
}

// Cosignature says that a witness saw a checkpoint as the latest of its log.
type Cosignature struct {
	Name string // of the witness
	Time time.Time
}

// Cosignatures verifies the cosignatures on a checkpoint by the witnesses with
// these keys, and returns one for each that signed. Signatures of others are
// ignored, the log's own among them: open the checkpoint for that. A wrong
// signature under a known key is an error.
func Cosignatures(checkpointText string, verifierKeys []string) ([]Cosignature, error) {
	var known []note.Verifier
	for _, key := range verifierKeys {
		v, err := newVerifier(key)
		if err != nil {
			return nil, err
		}
		known = append(known, v)
	}
	n, err := note.Open([]byte(checkpointText), note.VerifierList(known...))
	if unsigned := (*note.UnverifiedNoteError)(nil); errors.As(err, &unsigned) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("witness: checkpoint: %w", err)
	}
	var out []Cosignature
	for _, s := range n.Sigs {
		raw, err := base64.StdEncoding.DecodeString(s.Base64)
		if err != nil || len(raw) != 4+cosignatureSize {
			return nil, fmt.Errorf("witness: cosignature by %s has %d bytes", s.Name, len(raw)) // verified, so it cannot be
		}
		out = append(out, Cosignature{s.Name, time.Unix(int64(binary.BigEndian.Uint64(raw[4:])), 0).UTC()})
	}
	return out, nil
}
