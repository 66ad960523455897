package audit

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// Checkpoint says that a log had this root at this size: c2sp.org/tlog-checkpoint
// without extension lines. Only those from OpenCheckpoint are known to be
// signed.
type Checkpoint struct {
	Origin string    `json:"origin"` // identifies the log
	Size   int64     `json:"size"`   // records
	Root   tlog.Hash `json:"root"`
	Text   string    `json:"text"` // the signed note, as it was read
}

// maxCheckpoint is far above a checkpoint with the 16 signatures that
// c2sp.org/signed-note obliges to accept, even of the largest kind.
const maxCheckpoint = 128 << 10

// Origin names the log of an authority: "vogt/" host[:port] "/log", of the
// issuer's address.
func Origin(issuer string) string {
	host := issuer
	if u, err := url.Parse(issuer); err == nil && u.Host != "" {
		host = u.Host
	} else {
		_, after, ok := strings.Cut(host, "://")
		if ok {
			host = after
		}
		host, _, _ = strings.Cut(host, "/")
	}
	return "vogt/" + strings.ToLower(host) + "/log"
}

// NewSigner makes the signer of a log's checkpoints from a 32-byte Ed25519
// seed, which must serve nothing else, and the key by which they are verified
// (c2sp.org/signed-note, "Verifier keys").
func NewSigner(origin string, seed []byte) (signer note.Signer, verifierKey string, err error) {
	if len(seed) != ed25519.SeedSize {
		return nil, "", fmt.Errorf("audit: the seed of the log's key has %d bytes instead of %d", len(seed), ed25519.SeedSize)
	}
	public := ed25519.NewKeyFromSeed(seed).Public().(ed25519.PublicKey)
	verifierKey, err = note.NewEd25519VerifierKey(origin, public)
	if err != nil {
		return nil, "", fmt.Errorf("audit: log key of %q: %w", origin, err)
	}
	// The verifier key is name+hash+key, and base64 may contain a plus.
	hash := strings.SplitN(strings.TrimPrefix(verifierKey, origin+"+"), "+", 2)[0]
	const ed25519Type = 1
	private := base64.StdEncoding.EncodeToString(append([]byte{ed25519Type}, seed...))
	signer, err = note.NewSigner("PRIVATE+KEY+" + origin + "+" + hash + "+" + private)
	if err != nil {
		return nil, "", fmt.Errorf("audit: %q cannot name a log: it is empty or contains a space or a plus", origin)
	}
	return signer, verifierKey, nil
}

// NewVerifier reads a verifier key as NewSigner returns it.
func NewVerifier(verifierKey string) (note.Verifier, error) {
	v, err := note.NewVerifier(verifierKey)
	if err != nil {
		return nil, fmt.Errorf("audit: %.200q is not the key of a log (name+hash+key): %w", verifierKey, err)
	}
	return v, nil
}

// SignCheckpoint signs the state of the log at the given size. The caller must
// never sign two states of which neither extends the other.
func SignCheckpoint(size int64, r tlog.HashReader, signer note.Signer) (text string, err error) {
	if size < 0 || size > maxSize {
		return "", fmt.Errorf("audit: a log cannot have %d records", size)
	}
	root, err := tlog.TreeHash(size, r)
	if err != nil {
		return "", fmt.Errorf("audit: root of the log at %d records: %w", size, err)
	}
	b, err := note.Sign(&note.Note{Text: fmt.Sprintf("%s\n%d\n%s\n", signer.Name(), size, root)}, signer)
	if err != nil {
		return "", fmt.Errorf("audit: signing the log at %d records: %w", size, err)
	}
	return string(b), nil
}

// OpenCheckpoint reads a checkpoint and verifies its signature. The origin
// must be the name in the key. Signatures of others, such as cosignatures of
// witnesses, may follow or precede; they are kept in Text and not looked at.
func OpenCheckpoint(text, verifierKey string) (Checkpoint, error) {
	verifier, err := NewVerifier(verifierKey)
	if err != nil {
		return Checkpoint{}, err
	}
	if len(text) > maxCheckpoint {
		return Checkpoint{}, fmt.Errorf("audit: a checkpoint of %d bytes is longer than any real one", len(text))
	}
	n, err := note.Open([]byte(text), note.VerifierList(verifier))
	if unsigned := (*note.UnverifiedNoteError)(nil); errors.As(err, &unsigned) {
		return Checkpoint{}, fmt.Errorf("audit: checkpoint: no signature by %s+%08x", verifier.Name(), verifier.KeyHash())
	}
	if err != nil {
		return Checkpoint{}, fmt.Errorf("audit: checkpoint: %w", err)
	}
	c, extensions, err := ParseTreeHead(n.Text)
	if err != nil {
		return Checkpoint{}, err
	}
	if extensions != "" {
		return Checkpoint{}, fmt.Errorf("audit: checkpoint: unexpected text after the root: %.80q", extensions)
	}
	if c.Origin != verifier.Name() {
		return Checkpoint{}, fmt.Errorf("audit: checkpoint: it is of the log %.200q, not of %q", c.Origin, verifier.Name())
	}
	c.Text = text
	return c, nil
}

// ParseTreeHead reads the text of a checkpoint, without the blank line and the
// signatures, and verifies nothing. It returns the extension lines apart.
func ParseTreeHead(noteText string) (c Checkpoint, extensions string, err error) {
	fail := func(what string, value string) (Checkpoint, string, error) {
		return Checkpoint{}, "", fmt.Errorf("audit: checkpoint: %s: %.200q", what, value)
	}
	lines := strings.SplitAfterN(noteText, "\n", 4)
	if len(lines) != 4 {
		return fail("it does not consist of the lines origin, size and root", noteText)
	}
	origin, size, root := lines[0][:len(lines[0])-1], lines[1][:len(lines[1])-1], lines[2][:len(lines[2])-1]
	if origin == "" {
		return fail("the origin is empty", noteText)
	}
	c.Origin = origin
	if c.Size, err = ParseSize(size); err != nil {
		return fail("bad size", size)
	}
	if c.Root, err = parseHash(root); err != nil {
		return fail("bad root", root)
	}
	if c.Size == 0 && c.Root != emptyRoot() {
		return fail("an empty log has another root than", root)
	}
	extensions = lines[3]
	if extensions != "" && (!strings.HasSuffix(extensions, "\n") || extensions[0] == '\n' || strings.Contains(extensions, "\n\n")) {
		return fail("bad text after the root", extensions)
	}
	return c, extensions, nil
}

// ParseSize reads a tree size as C2SP writes it: decimal digits without sign
// or leading zero.
func ParseSize(s string) (int64, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 || n > maxSize || strconv.FormatInt(n, 10) != s {
		return 0, fmt.Errorf("audit: %.40q is not the size of a log", s)
	}
	return n, nil
}

// parseHash is tlog.ParseHash for exactly one spelling of each hash.
func parseHash(s string) (tlog.Hash, error) {
	h, err := tlog.ParseHash(s)
	if err != nil || h.String() != s {
		return tlog.Hash{}, fmt.Errorf("%.80q is not the base64 of a SHA-256 hash", s)
	}
	return h, nil
}

// emptyRoot is the root of a log without records: the hash of nothing.
func emptyRoot() tlog.Hash { return sha256.Sum256(nil) }

// same reports whether two checkpoints say the same.
func (c Checkpoint) same(d Checkpoint) bool {
	return c.Origin == d.Origin && c.Size == d.Size && c.Root == d.Root
}
