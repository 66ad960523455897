package sshkey

import (
	"crypto/rand"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// keygen runs the real ssh-keygen.
func keygen(t *testing.T, stdin string, args ...string) (string, error) {
	t.Helper()
	path, err := exec.LookPath("ssh-keygen")
	if err != nil {
		t.Skip("ssh-keygen is not installed (Debian: apt install openssh-client)")
	}
	cmd := exec.Command(path, args...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func mustKeygen(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	out, err := keygen(t, stdin, args...)
	if err != nil {
		t.Fatalf("ssh-keygen %q: %v\n%s", args, err, out)
	}
	return out
}

func readPublic(t *testing.T, path string) Public {
	t.Helper()
	line, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	p, err := ParsePublic(string(line))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestKeygenReadsOurKeys(t *testing.T) {
	data, public, err := Generate(rand.Reader, "pat at work")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "id")
	if err := WriteNew(path, data, public); err != nil {
		t.Fatal(err)
	}
	if out := mustKeygen(t, "", "-l", "-f", path+".pub"); out != "256 "+public.Fingerprint()+" pat at work (ED25519)\n" {
		t.Errorf("ssh-keygen -l prints %q, our fingerprint is %s", out, public.Fingerprint())
	}
	if out := mustKeygen(t, "", "-y", "-f", path); out != public.String()+"\n" {
		t.Errorf("ssh-keygen -y prints %q, our line is %q", out, public)
	}
}

func TestWeReadKeygensKeys(t *testing.T) {
	dir := t.TempDir()
	for name, tc := range map[string]struct {
		passphrase string
		args       []string
		says       string
	}{
		"plain":        {"", []string{"-t", "ed25519"}, ""},
		"encrypted":    {"se cret", []string{"-t", "ed25519"}, ""},
		"aes256-cbc":   {"se cret", []string{"-t", "ed25519", "-a", "1", "-Z", "aes256-cbc"}, ""},
		"few rounds":   {"se cret", []string{"-t", "ed25519", "-a", "1"}, ""},
		"aes256-gcm":   {"se cret", []string{"-t", "ed25519", "-a", "1", "-Z", "aes256-gcm@openssh.com"}, "ssh-keygen -p -Z aes256-ctr"},
		"RSA":          {"", []string{"-t", "rsa", "-b", "1024"}, "ssh-rsa"},
		"RSA as PEM":   {"", []string{"-t", "rsa", "-b", "1024", "-m", "PEM"}, "type RSA"},
		"RSA as PKCS8": {"", []string{"-t", "rsa", "-b", "1024", "-m", "PKCS8"}, "only Ed25519"},
		"ECDSA":        {"se cret", []string{"-t", "ecdsa", "-a", "1"}, "ecdsa-sha2-nistp256"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(dir, strings.ReplaceAll(name, " ", "_"))
			mustKeygen(t, "", append([]string{"-q", "-N", tc.passphrase, "-C", "a comment", "-f", path}, tc.args...)...)
			answer := func(string) ([]byte, error) { return []byte(tc.passphrase), nil }
			priv, err := LoadPrivate(path, answer)
			if tc.says != "" {
				if err == nil || !strings.Contains(err.Error(), tc.says) {
					t.Errorf("error %v, want it to say %q", err, tc.says)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			public := readPublic(t, path+".pub")
			if !priv.Public().Equal(public) || public.Comment() != "a comment" {
				t.Errorf("loaded %v, the .pub file has %v", priv.Public(), public)
			}
			if name == "few rounds" {
				if _, err := LoadPrivate(path, func(string) ([]byte, error) { return []byte("wrong"), nil }); !errors.Is(err, ErrWrongPassphrase) {
					t.Errorf("wrong passphrase: %v", err)
				}
			}
		})
	}
}

func TestWeVerifyKeygensSignatures(t *testing.T) {
	path := filepath.Join(t.TempDir(), "id")
	mustKeygen(t, "", "-q", "-t", "ed25519", "-N", "", "-f", path)
	keys := []Public{readPublic(t, path+".pub")}
	for _, ns := range []Namespace{NamespaceLogin, NamespaceDecision} {
		for _, hash := range []string{hashSHA256, hashSHA512} {
			armoured := mustKeygen(t, testChallenge, "-Y", "sign", "-q", "-n", string(ns), "-O", "hashalg="+hash, "-f", path)
			if got, err := Verify(armoured, ns, []byte(testChallenge), keys); err != nil || got != keys[0] {
				t.Errorf("%s, %s: verified as %v, %v", ns, hash, got, err)
			}
			if _, err := Verify(armoured, ns, []byte(testChallenge+"\n"), keys); err == nil {
				t.Errorf("%s, %s: verified another message", ns, hash)
			}
			other := NamespaceDecision
			if ns == NamespaceDecision {
				other = NamespaceLogin
			}
			if _, err := Verify(armoured, other, []byte(testChallenge), keys); err == nil {
				t.Errorf("made in %s, verified in %s", ns, other)
			}
		}
	}
}

// keygenVerify lets ssh-keygen verify armoured by the key of line.
func keygenVerify(t *testing.T, line, armoured string, ns Namespace, message string) error {
	t.Helper()
	dir := t.TempDir()
	allowed, sig := filepath.Join(dir, "allowed"), filepath.Join(dir, "sig")
	if err := errors.Join(os.WriteFile(allowed, []byte("pat "+line+"\n"), 0o600), os.WriteFile(sig, []byte(armoured), 0o600)); err != nil {
		t.Fatal(err)
	}
	out, err := keygen(t, message, "-Y", "verify", "-f", allowed, "-I", "pat", "-n", string(ns), "-s", sig)
	if err == nil && !strings.Contains(out, "Good") {
		t.Errorf("ssh-keygen says %q", out)
	}
	return err
}

func TestKeygenVerifiesOurSignatures(t *testing.T) {
	priv, tok := testKey(t, 1), testSecurityKey(t, 1)
	for _, ns := range []Namespace{NamespaceLogin, NamespaceDecision} {
		armoured, err := Sign(priv, ns, []byte("message"))
		if err != nil {
			t.Fatal(err)
		}
		for name, tc := range map[string]struct {
			line, armoured, message string
			good                    bool
		}{
			"ours":                 {priv.Public().String(), armoured, "message", true},
			"other message":        {priv.Public().String(), armoured, "massage", false},
			"other key":            {testKey(t, 2).Public().String(), armoured, "message", false},
			"our software token":   {tok.public().String(), tok.sign(ns, "message", flagUserPresent, 9), "message", true},
			"token, other message": {tok.public().String(), tok.sign(ns, "message", flagUserPresent, 9), "massage", false},
		} {
			if err := keygenVerify(t, tc.line, tc.armoured, ns, tc.message); (err == nil) != tc.good {
				t.Errorf("%s, %s: %v", ns, name, err)
			}
		}
		// The armour is byte for byte what ssh-keygen writes.
		path := writeKey(t, openssh(t, rawKey(priv)))
		if theirs := mustKeygen(t, "message", "-Y", "sign", "-q", "-n", string(ns), "-f", path); theirs != armoured {
			t.Errorf("%s: ours\n%s\ntheirs\n%s", ns, armoured, theirs)
		}
	}
}
