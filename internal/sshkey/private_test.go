package sshkey

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
)

func writeKey(t testing.TB, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "id")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func pkcs8(t testing.TB, key any) []byte {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: pemPKCS8, Bytes: der})
}

// encrypted is testKey(t, 1), encrypted by ssh-keygen with the passphrase
// "secret" in a single round of bcrypt, so that tests stay quick.
func encrypted(t testing.TB) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "id_encrypted"))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func openssh(t testing.TB, key any) []byte {
	t.Helper()
	block, err := ssh.MarshalPrivateKey(key, "c")
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(block)
}

func TestGenerateWriteLoad(t *testing.T) {
	seed := bytes.Repeat([]byte{7}, 32)
	data, public, err := Generate(bytes.NewReader(seed), "pat@host")
	if err != nil {
		t.Fatal(err)
	}
	if !public.Equal(testKey(t, 7).Public()) || public.Comment() != "pat@host" {
		t.Errorf("the seed gave %v", public)
	}
	path := filepath.Join(t.TempDir(), "id_vogt")
	if err := WriteNew(path, data, public); err != nil {
		t.Fatal(err)
	}
	priv, err := LoadPrivate(path, nil)
	if err != nil || !priv.Public().Equal(public) {
		t.Fatalf("loaded %v, %v", priv, err)
	}
	line, err := os.ReadFile(path + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := ParsePublic(string(line)); err != nil || got != public {
		t.Errorf("the .pub file reads as %v, %v", got, err)
	}
	if _, _, err := Generate(bytes.NewReader(seed[:31]), ""); err == nil {
		t.Error("31 bytes of randomness sufficed")
	}
	if _, _, err := Generate(bytes.NewReader(seed), "two\nlines"); err == nil {
		t.Error("a comment of two lines was accepted")
	}
}

func TestWriteNewKeepsWhatIsThere(t *testing.T) {
	data, public, err := Generate(rand.Reader, "")
	if err != nil {
		t.Fatal(err)
	}
	for name, existing := range map[string]string{"private file": "id", "public file": "id.pub"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, existing), []byte("old"), 0o600); err != nil {
				t.Fatal(err)
			}
			err := WriteNew(filepath.Join(dir, "id"), data, public)
			if err == nil || !strings.Contains(err.Error(), existing+" exists already") {
				t.Errorf("error %v", err)
			}
			entries, err := os.ReadDir(dir)
			if err != nil || len(entries) != 1 {
				t.Errorf("left behind %v, %v", entries, err)
			}
			if got, err := os.ReadFile(filepath.Join(dir, existing)); err != nil || string(got) != "old" {
				t.Errorf("the file is now %q, %v", got, err)
			}
		})
	}
	if err := WriteNew(filepath.Join(t.TempDir(), "no", "id"), data, public); err == nil || !strings.Contains(err.Error(), "does not exist") {
		t.Errorf("missing folder: %v", err)
	}
	if err := WriteNew(filepath.Join(t.TempDir(), "id"), data, Public{}); err == nil {
		t.Error("wrote a file for no key")
	}
}

func TestLoadPrivate(t *testing.T) {
	priv := testKey(t, 1)
	for name, tc := range map[string]struct {
		data  []byte
		asked int
	}{
		"OpenSSH":           {openssh(t, rawKey(priv)), 0},
		"OpenSSH encrypted": {encrypted(t), 1},
		"PKCS #8":           {pkcs8(t, rawKey(priv)), 0},
		"CRLF":              {bytes.ReplaceAll(openssh(t, rawKey(priv)), []byte("\n"), []byte("\r\n")), 0},
		"blank lines round": {append([]byte("\n"), append(openssh(t, rawKey(priv)), "\n\n"...)...), 0},
	} {
		t.Run(name, func(t *testing.T) {
			path := writeKey(t, tc.data)
			asked := 0
			passphrase := []byte("secret")
			got, err := LoadPrivate(path, func(p string) ([]byte, error) {
				asked++
				if p != path {
					t.Errorf("asked for %q", p)
				}
				return passphrase, nil
			})
			if err != nil || !got.Public().Equal(priv.Public()) {
				t.Errorf("loaded %v, %v", got, err)
			}
			if asked != tc.asked {
				t.Errorf("asked %d times for a passphrase", asked)
			}
			if asked > 0 && string(passphrase) == "secret" {
				t.Error("the passphrase was left in memory")
			}
		})
	}
}

func TestLoadPrivateRefuses(t *testing.T) {
	priv := testKey(t, 1)
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ecDER, err := x509.MarshalECPrivateKey(ec)
	if err != nil {
		t.Fatal(err)
	}
	plain := openssh(t, rawKey(priv))
	foreignHalf := append(bytes.Clone(priv.key[:32]), testKey(t, 2).key[32:]...)
	foreignHeader := func() []byte {
		block, _ := pem.Decode(plain)
		// The first copy of the public key is the header's.
		data := bytes.Replace(block.Bytes, priv.key[32:], testKey(t, 2).key[32:], 1)
		return pem.EncodeToMemory(&pem.Block{Type: pemOpenSSH, Bytes: data})
	}()
	for name, tc := range map[string]struct {
		data []byte
		says string
	}{
		"nothing":             {nil, "no PEM block"},
		"garbage":             {[]byte("garbage"), "no PEM block"},
		"public key":          {[]byte(priv.Public().String()), "public key"},
		"ECDSA":               {openssh(t, ec), "ecdsa-sha2-nistp256"},
		"ECDSA PKCS #8":       {pkcs8(t, ec), "only Ed25519"},
		"ECDSA SEC 1":         {pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: ecDER}), "type EC"},
		"RSA PKCS #1":         {pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: []byte{1}}), "type RSA"},
		"PKCS #8 encrypted":   {pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED PRIVATE KEY", Bytes: []byte{1}}), "encrypted PKCS #8"},
		"PKCS #8 broken":      {pem.EncodeToMemory(&pem.Block{Type: pemPKCS8, Bytes: []byte{1}}), "damaged"},
		"certificate":         {pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte{1}}), "CERTIFICATE"},
		"two keys":            {append(bytes.Clone(plain), plain...), "besides one key"},
		"text before":         {append([]byte("x\n"), plain...), "besides one key"},
		"text after":          {append(bytes.Clone(plain), 'x'), "besides one key"},
		"halves do not match": {openssh(t, ed25519.PrivateKey(foreignHalf)), "belong together"},
		"header does not":     {foreignHeader, "header"},
		"magic only":          {pem.EncodeToMemory(&pem.Block{Type: pemOpenSSH, Bytes: []byte(opensshMagic)}), "damaged"},
		"too large":           {append(bytes.Clone(plain), bytes.Repeat([]byte("\n"), maxPrivateFile)...), "larger than 64 KiB"},
	} {
		t.Run(name, func(t *testing.T) {
			path := writeKey(t, tc.data)
			got, err := LoadPrivate(path, func(string) ([]byte, error) {
				t.Error("asked for a passphrase that cannot help")
				return []byte("secret"), nil
			})
			if err == nil || got != nil {
				t.Fatalf("loaded %v", got)
			}
			if !strings.Contains(err.Error(), tc.says) || !strings.Contains(err.Error(), path) {
				t.Errorf("error %q, want it to name %s and say %q", err, path, tc.says)
			}
		})
	}
	if _, err := LoadPrivate(filepath.Join(t.TempDir(), "none"), nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
	if _, err := LoadPrivate(t.TempDir(), nil); err == nil {
		t.Error("loaded a folder")
	}
}

func TestPassphrase(t *testing.T) {
	path := writeKey(t, encrypted(t))
	answer := func(text string, err error) func(string) ([]byte, error) {
		return func(string) ([]byte, error) { return []byte(text), err }
	}
	for _, wrong := range []string{"", "Secret", "secret\n"} {
		if _, err := LoadPrivate(path, answer(wrong, nil)); !errors.Is(err, ErrWrongPassphrase) {
			t.Errorf("passphrase %q: %v", wrong, err)
		}
	}
	gone := errors.New("nobody there")
	if _, err := LoadPrivate(path, answer("secret", gone)); !errors.Is(err, gone) {
		t.Errorf("failing to ask: %v", err)
	}
	if _, err := LoadPrivate(path, nil); err == nil || !strings.Contains(err.Error(), "nobody to ask") {
		t.Errorf("nobody to ask: %v", err)
	}
}

func TestPrivateIsNeverPrinted(t *testing.T) {
	priv := testKey(t, 0x41) // the seed would print as AAAA…, 4141… or 65 65 …
	wrapped, err := json.Marshal(struct{ P *Private }{priv})
	if err != nil {
		t.Fatal(err)
	}
	texts := []string{string(wrapped)}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d"} {
		texts = append(texts, fmt.Sprintf(verb, priv), fmt.Sprintf(verb, *priv), fmt.Sprintf(verb, []any{priv, *priv}),
			fmt.Sprintf(verb, struct{ key *Private }{priv}))
	}
	for _, text := range texts {
		for _, leak := range []string{"AAAA", "4141", "65 65", "65, 65", "0x41"} {
			if strings.Contains(text, leak) {
				t.Errorf("%q holds %q", text, leak)
			}
		}
	}
	if got := fmt.Sprint(priv); !strings.Contains(got, priv.Public().Fingerprint()) {
		t.Errorf("printed as %q", got)
	}
}

func FuzzParsePrivate(f *testing.F) {
	priv := testKey(f, 1)
	for _, seed := range [][]byte{openssh(f, rawKey(priv)), encrypted(f), pkcs8(f, rawKey(priv)), []byte("ssh-ed25519 AAAA")} {
		f.Add(seed)
		if block, _ := pem.Decode(seed); block != nil {
			f.Add(block.Bytes)
		}
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		// Whole files and bare blobs, so that the fuzzer gets past the PEM.
		for _, data := range [][]byte{
			bytes.Clone(in),
			pem.EncodeToMemory(&pem.Block{Type: pemOpenSSH, Bytes: in}),
			pem.EncodeToMemory(&pem.Block{Type: pemPKCS8, Bytes: in}),
		} {
			got, err := parsePrivate(data, nil)
			if (err == nil) != (got != nil) {
				t.Fatalf("%q gave %v, %v", data, got, err)
			}
			if err == nil {
				sig, err := Sign(got, NamespaceDecision, nil)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := Verify(sig, NamespaceDecision, nil, []Public{got.Public()}); err != nil {
					t.Errorf("%q gave a key that does not fit itself: %v", data, err)
				}
			}
		}
	})
}
