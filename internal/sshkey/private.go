package sshkey

import (
	"bytes"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/crypto/ssh"
)

const (
	maxPrivateFile = 64 << 10

	pemOpenSSH = "OPENSSH PRIVATE KEY"
	pemPKCS8   = "PRIVATE KEY"

	opensshMagic = "openssh-key-v1\x00"
)

// ErrWrongPassphrase tells that a private key file did not open with the
// passphrase given, so that asking again makes sense.
var ErrWrongPassphrase = errors.New("wrong passphrase")

var errNoPrivate = errors.New("ssh private key: no key was loaded")

// Private is an Ed25519 private key. However it is printed, only its
// fingerprint appears. A nil pointer and the zero value sign nothing.
type Private struct {
	// A pointer, because fmt ignores Format inside unexported fields of other
	// types and would print a slice there, but prints a second pointer as an
	// address.
	key *[ed25519.PrivateKeySize]byte
}

// Public returns the key's public half, without comment; the zero value for
// the zero value.
func (p *Private) Public() Public {
	if p.isZero() {
		return Public{}
	}
	var public Public
	copy(public.key[:], p.key[ed25519.PrivateKeySize-ed25519.PublicKeySize:])
	return public
}

// sign makes a raw signature; p must not be zero.
func (p *Private) sign(message []byte) []byte { return ed25519.Sign(p.key[:], message) }

// Format implements [fmt.Formatter] for every verb, so that no log and no
// error can hold the key.
func (p Private) Format(state fmt.State, _ rune) {
	io.WriteString(state, "ssh private key "+p.Public().Fingerprint())
}

func (p *Private) isZero() bool { return p == nil || p.key == nil }

// LoadPrivate reads a private key file: OpenSSH's format, plain or encrypted,
// or PKCS #8 PEM, plain. On Unix it refuses a file that group or others can
// access, as ssh does. It also refuses what is not a regular file, what is
// larger than 64 KiB, and any key but Ed25519.
//
// For an encrypted file it calls passphrase with path; the bytes returned are
// overwritten after use. passphrase may be nil if there is nobody to ask. A
// passphrase that does not fit gives an error for which
// errors.Is(err, [ErrWrongPassphrase]) holds.
func LoadPrivate(path string, passphrase func(path string) ([]byte, error)) (*Private, error) {
	data, err := readPrivateFile(path)
	if err != nil {
		return nil, fmt.Errorf("ssh private key %s: %w", path, err)
	}
	defer clear(data)
	var ask func() ([]byte, error)
	if passphrase != nil {
		ask = func() ([]byte, error) { return passphrase(path) }
	}
	priv, err := parsePrivate(data, ask)
	if err != nil {
		return nil, fmt.Errorf("ssh private key %s: %w", path, err)
	}
	return priv, nil
}

// readPrivateFile opens path once and judges and reads what it opened.
func readPrivateFile(path string) ([]byte, error) {
	file, err := openPrivate(path)
	if err != nil {
		var pathErr *os.PathError
		if errors.As(err, &pathErr) {
			err = pathErr.Err // the caller names the path
		}
		if errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("%w; make a key with: ssh-keygen -t ed25519 -f %s", err, path)
		}
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	if err := checkPrivateMode(path, info.Mode()); err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(file, maxPrivateFile+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxPrivateFile {
		return nil, fmt.Errorf("larger than %d KiB, so not a key file", maxPrivateFile>>10)
	}
	return data, nil
}

// parsePrivate reads one PEM block. ask may be nil.
func parsePrivate(data []byte, ask func() ([]byte, error)) (*Private, error) {
	block, rest := pem.Decode(data)
	if block == nil {
		if looksPublic(data) {
			return nil, errors.New("this is a public key; give the file without .pub")
		}
		return nil, errors.New("no PEM block found; make a key with: ssh-keygen -t ed25519")
	}
	defer clear(block.Bytes)
	if !bytes.HasPrefix(bytes.TrimSpace(data), []byte("-----BEGIN ")) || len(bytes.TrimSpace(rest)) > 0 {
		return nil, errors.New("the file holds something besides one key; keep one key per file and nothing else")
	}
	switch block.Type {
	case pemOpenSSH:
		return parseOpenSSH(data, block.Bytes, ask)
	case pemPKCS8:
		key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
		if err != nil {
			return nil, errors.New("the PKCS #8 block is damaged or of an unknown kind")
		}
		return fromCrypto(key)
	case "ENCRYPTED PRIVATE KEY":
		return nil, errors.New("encrypted PKCS #8 is not supported; make an OpenSSH key with: ssh-keygen -t ed25519")
	case "RSA PRIVATE KEY", "EC PRIVATE KEY", "DSA PRIVATE KEY":
		return nil, wrongPrivateType(block.Type[:len(block.Type)-len(" PRIVATE KEY")])
	default:
		return nil, fmt.Errorf("a PEM block of type %q is no SSH private key", block.Type)
	}
}

// opensshFile is the outer layer of OpenSSH's PROTOCOL.key, without the magic.
type opensshFile struct {
	Cipher     string
	KDF        string
	KDFOptions string
	Keys       uint32
	PublicKey  []byte
	Private    []byte
	Tag        []byte `ssh:"rest"` // of an authenticating cipher
}

// parseOpenSSH reads the key type from the outer, unencrypted layer, so that
// nobody is asked for the passphrase of a key that cannot be used.
func parseOpenSSH(data, blob []byte, ask func() ([]byte, error)) (*Private, error) {
	var file opensshFile
	body, ok := bytes.CutPrefix(blob, []byte(opensshMagic))
	if !ok || ssh.Unmarshal(body, &file) != nil || file.Keys != 1 {
		return nil, errors.New("the OpenSSH key file is damaged, or holds several keys")
	}
	var header struct {
		Type string
		Rest []byte `ssh:"rest"`
	}
	if err := ssh.Unmarshal(file.PublicKey, &header); err != nil {
		return nil, errors.New("the OpenSSH key file is damaged")
	}
	if header.Type != typeEd25519 {
		return nil, wrongPrivateType(header.Type)
	}
	if err := checkCipher(file); err != nil {
		return nil, err
	}
	key, err := decryptOpenSSH(data, file.Cipher != "none", ask)
	if err != nil {
		return nil, err
	}
	priv, err := fromCrypto(key)
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(priv.Public().Blob(), file.PublicKey) {
		return nil, errors.New("the public key in the file's header does not belong to its private key")
	}
	return priv, nil
}

// checkCipher refuses what x/crypto cannot decrypt, before anybody is asked for
// a passphrase.
func checkCipher(file opensshFile) error {
	switch {
	case file.Cipher == "none" && file.KDF == "none" && len(file.Tag) == 0,
		(file.Cipher == "aes256-ctr" || file.Cipher == "aes256-cbc") && file.KDF == "bcrypt" && len(file.Tag) == 0:
		return nil
	case file.Cipher == "none" || len(file.Tag) == 0:
		return errors.New("the OpenSSH key file is damaged, or encrypted in an unknown way; re-encrypt it with: ssh-keygen -p -Z aes256-ctr -f FILE")
	default:
		return fmt.Errorf("the file is encrypted with %q, which is not supported; re-encrypt it with: ssh-keygen -p -Z aes256-ctr -f FILE", file.Cipher)
	}
}

func decryptOpenSSH(data []byte, encrypted bool, ask func() ([]byte, error)) (any, error) {
	if !encrypted {
		key, err := ssh.ParseRawPrivateKey(data)
		if err != nil {
			return nil, errors.New("the OpenSSH key file is damaged")
		}
		return key, nil
	}
	if ask == nil {
		return nil, errors.New("the key is encrypted and there is nobody to ask for its passphrase; run the command in a terminal, or give a key without passphrase")
	}
	passphrase, err := ask()
	if err != nil {
		return nil, err
	}
	defer clear(passphrase)
	if len(passphrase) == 0 {
		return nil, ErrWrongPassphrase
	}
	key, err := ssh.ParseRawPrivateKeyWithPassphrase(data, passphrase)
	if errors.Is(err, x509.IncorrectPasswordError) {
		return nil, ErrWrongPassphrase
	}
	if err != nil {
		return nil, fmt.Errorf("the OpenSSH key file cannot be decrypted: %v", err)
	}
	return key, nil
}

func fromCrypto(key any) (*Private, error) {
	switch key := key.(type) {
	case ed25519.PrivateKey:
		return newPrivate(key)
	case *ed25519.PrivateKey:
		return newPrivate(*key)
	default:
		return nil, wrongPrivateType("other")
	}
}

// newPrivate checks that the two halves belong together: signing with a
// foreign public half would give the private one away.
func newPrivate(key ed25519.PrivateKey) (*Private, error) {
	if len(key) != ed25519.PrivateKeySize || !bytes.Equal(ed25519.NewKeyFromSeed(key.Seed()), key) {
		return nil, errors.New("the key's private and public halves do not belong together")
	}
	return &Private{key: (*[ed25519.PrivateKeySize]byte)(bytes.Clone(key))}, nil
}

func wrongPrivateType(kind string) error {
	if kind == typeSKEd25519 || kind == "sk-ecdsa-sha2-nistp256@openssh.com" {
		return errors.New("the key lives in a security key; sign with: ssh-keygen -Y sign")
	}
	if !isKeyType(kind) && kind != "RSA" && kind != "EC" && kind != "DSA" {
		kind = "unsupported"
	}
	return fmt.Errorf("the file holds a key of type %s, only Ed25519 is supported; make one with: ssh-keygen -t ed25519", kind)
}

func looksPublic(data []byte) bool {
	word, _ := cutBlank(string(bytes.TrimSpace(data[:min(len(data), 200)])))
	return isKeyType(word)
}

// Generate makes a key from 32 bytes of rand (crypto/rand.Reader outside
// tests) and returns it as an unencrypted OpenSSH private key file and as
// public key with comment. The file holds a check number of its own, so its
// bytes differ each time even if rand does not.
func Generate(rand io.Reader, comment string) (privatePEM []byte, public Public, err error) {
	seed := make([]byte, ed25519.SeedSize)
	defer clear(seed)
	if _, err := io.ReadFull(rand, seed); err != nil {
		return nil, Public{}, fmt.Errorf("ssh private key: no randomness: %w", err)
	}
	key := ed25519.NewKeyFromSeed(seed)
	public, err = NewPublic(key.Public().(ed25519.PublicKey), comment)
	if err != nil {
		return nil, Public{}, err
	}
	block, err := ssh.MarshalPrivateKey(key, public.comment)
	if err != nil {
		return nil, Public{}, fmt.Errorf("ssh private key: %w", err)
	}
	return pem.EncodeToMemory(block), public, nil
}

// WriteNew writes the private key to path, readable by its owner only, and the
// public line to path with ".pub" added. It never overwrites a file; if one of
// the two cannot be written, none is left behind.
func WriteNew(path string, privatePEM []byte, public Public) error {
	if public.IsZero() || len(privatePEM) == 0 {
		return errNoPrivate
	}
	if err := writeNew(path, privatePEM, 0o600); err != nil {
		return err
	}
	if err := writeNew(path+".pub", []byte(public.String()+"\n"), 0o644); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}

func writeNew(path string, data []byte, mode os.FileMode) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if errors.Is(err, os.ErrExist) {
		return fmt.Errorf("ssh key: %s exists already and is kept; give another name, or move it away first", path)
	}
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("ssh key: folder %s does not exist; make it first", filepath.Dir(path))
	}
	if err != nil {
		return fmt.Errorf("ssh key: %w", err)
	}
	_, err = file.Write(data)
	err = errors.Join(err, file.Sync(), file.Close())
	if err != nil {
		return fmt.Errorf("ssh key: %w", errors.Join(err, os.Remove(path)))
	}
	return nil
}
