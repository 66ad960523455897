package sshkey

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
)

// testKey is a key made from a seed that repeats b.
func testKey(t testing.TB, b byte) *Private {
	t.Helper()
	seed := make([]byte, ed25519.SeedSize)
	for i := range seed {
		seed[i] = b
	}
	priv, err := newPrivate(ed25519.NewKeyFromSeed(seed))
	if err != nil {
		t.Fatal(err)
	}
	return priv
}

func rawKey(p *Private) ed25519.PrivateKey { return p.key[:] }

func wireLine(keyType string, blob any) string {
	return keyType + " " + base64.StdEncoding.EncodeToString(ssh.Marshal(blob))
}

func TestParsePublic(t *testing.T) {
	want := testKey(t, 1).Public()
	line := want.String()
	encoded := strings.Fields(line)[1]
	for name, in := range map[string]string{
		"bare":             line,
		"LF":               line + "\n",
		"CRLF":             line + "\r\n",
		"blanks around":    " \t" + line + "  \n\n",
		"comment":          line + " pat@host",
		"comment of words": line + " pat at her desk",
		"tabs":             "ssh-ed25519\t" + encoded + "\tpat",
		"wide gaps":        "ssh-ed25519   " + encoded + "   pat",
		"umlaut":           line + " Jürgens Schlüssel",
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ParsePublic(in)
			if err != nil {
				t.Fatal(err)
			}
			if !got.Equal(want) {
				t.Errorf("got key %v, want %v", got, want)
			}
			again, err := ParsePublic(got.String())
			if err != nil || again != got {
				t.Errorf("the canonical line %q reads as %v, %v", got.String(), again, err)
			}
		})
	}
	got, err := ParsePublic(line + "  two words \r\n")
	if err != nil || got.Comment() != "two words" {
		t.Errorf("comment %q, %v", got.Comment(), err)
	}
}

func TestParsePublicRefuses(t *testing.T) {
	priv := testKey(t, 1)
	line := priv.Public().String()
	encoded := strings.Fields(line)[1]
	block, err := ssh.MarshalPrivateKey(rawKey(priv), "")
	if err != nil {
		t.Fatal(err)
	}
	privateBody := base64.StdEncoding.EncodeToString(block.Bytes)
	for name, tc := range map[string]struct{ in, says string }{
		"nothing":               {"", "empty"},
		"line ends only":        {"\r\n\n", "empty"},
		"two keys":              {line + "\n" + line, "several lines"},
		"lone CR inside":        {"ssh-ed25519\r" + encoded, "several lines"},
		"RSA":                   {"ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAgQ== x", "ssh-rsa is not accepted"},
		"ECDSA":                 {"ecdsa-sha2-nistp256 AAAA", "ecdsa-sha2-nistp256 is not accepted"},
		"security key":          {"sk-ssh-ed25519@openssh.com AAAA", "sk-ssh-ed25519@openssh.com is not accepted"},
		"certificate":           {"ssh-ed25519-cert-v01@openssh.com AAAA", "cert-v01@openssh.com is not accepted"},
		"options":               {`command="ls",no-pty ` + line, "options"},
		"options with blanks":   {`command="ls -l" ` + line, "options"},
		"known_hosts line":      {"github.com " + line, "options"},
		"no base64":             {"ssh-ed25519", "nothing follows"},
		"bad base64":            {"ssh-ed25519 !!!!", "not base64"},
		"base64 unpadded bits":  {"ssh-ed25519 AB==", "not base64"},
		"URL base64":            {"ssh-ed25519 AAAA-___", "not base64"},
		"cut":                   {line[:len(line)-8], "exactly one key"},
		"more in the blob":      {"ssh-ed25519 " + base64.StdEncoding.EncodeToString(append(priv.Public().Blob(), 0)), "exactly one key"},
		"other type inside":     {wireLine(typeEd25519, ed25519Blob{"ssh-rsa", make([]byte, 32)}), "another key type"},
		"31 bytes":              {wireLine(typeEd25519, ed25519Blob{typeEd25519, make([]byte, 31)}), "31 bytes"},
		"33 bytes":              {wireLine(typeEd25519, ed25519Blob{typeEd25519, make([]byte, 33)}), "33 bytes"},
		"zero key":              {wireLine(typeEd25519, ed25519Blob{typeEd25519, make([]byte, 32)}), "small order"},
		"private key":           {"-----BEGIN OPENSSH PRIVATE KEY-----\n" + privateBody, "PRIVATE key"},
		"private key body":      {privateBody, "PRIVATE key"},
		"private key as PKCS#8": {"-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2Vw\n-----END PRIVATE KEY-----", "PRIVATE key"},
		"PuTTY":                 {"PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none", "PRIVATE key"},
		"RFC 4716":              {"---- BEGIN SSH2 PUBLIC KEY ----\nAAAA\n---- END SSH2 PUBLIC KEY ----", "ssh-keygen -i"},
		"prose":                 {"hello world", "does not begin with ssh-ed25519"},
		"escape in comment":     {line + " \x1b[2Jpat", "control or invisible"},
		"override in comment":   {line + " \u202etap", "control or invisible"},
		"NUL in comment":        {line + " a\x00b", "control or invisible"},
		"not UTF-8":             {line + " \xff", "UTF-8"},
		"long":                  {line + strings.Repeat(" x", maxLine), "longer than"},
		"long comment":          {line + " " + strings.Repeat("x", maxLine/2+1), "comment is longer"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ParsePublic(tc.in)
			if err == nil {
				t.Fatalf("accepted as %v", got)
			}
			if !got.IsZero() {
				t.Errorf("an error came with key %v", got)
			}
			if !strings.Contains(err.Error(), tc.says) {
				t.Errorf("error %q does not say %q", err, tc.says)
			}
			if strings.Contains(err.Error(), privateBody[:20]) {
				t.Errorf("error %q repeats private key material", err)
			}
		})
	}
}

func TestPublicNames(t *testing.T) {
	p := testKey(t, 1).Public()
	blob := p.Blob()
	if len(blob) != 51 || !strings.HasPrefix(string(blob[4:]), typeEd25519) {
		t.Errorf("blob %x", blob)
	}
	if id := string(p.ID()); len(id) != 64 || strings.ToLower(id) != id {
		t.Errorf("id %q", id)
	}
	raw, err := base64.RawStdEncoding.DecodeString(strings.TrimPrefix(p.Fingerprint(), "SHA256:"))
	if err != nil || hex.EncodeToString(raw) != string(p.ID()) {
		t.Errorf("fingerprint %q and id %q are not the same hash", p.Fingerprint(), p.ID())
	}
	var got struct{ Key Public }
	text, err := json.Marshal(struct{ Key Public }{p})
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &got); err != nil || got.Key != p {
		t.Errorf("%s reads as %v, %v", text, got.Key, err)
	}
}

func TestZeroPublicRefuses(t *testing.T) {
	var zero Public
	if zero.Equal(zero) || !zero.IsZero() || zero.ID() != "" || zero.Fingerprint() != "" || zero.String() != "" || zero.Blob() != nil || zero.Key() != nil {
		t.Error("the zero value passes for a key")
	}
	if _, err := zero.MarshalText(); err == nil {
		t.Error("the zero value has a text")
	}
	// With the all-zero key, which is a point of order four, this signature
	// (R the neutral point, S zero) verifies for about every fourth message.
	forged := make([]byte, ed25519.SignatureSize)
	forged[0] = 1
	verified := 0
	for i := range 64 {
		challenge := strings.Repeat("0", 62) + hex.EncodeToString([]byte{byte(i)})
		if ed25519.Verify(zero.key[:], []byte(challenge), forged) {
			verified++
		}
		if _, err := VerifyLogin(challenge, base64.StdEncoding.EncodeToString(forged), []Public{zero}); err == nil {
			t.Fatal("the zero value verifies a forged login")
		}
	}
	if verified == 0 {
		t.Error("the forgery never worked, so this test proves nothing")
	}
}

func TestSmallOrder(t *testing.T) {
	// Every y of a small order point below 2^255, canonical or not; each with
	// both signs of x.
	for _, y := range []string{
		"0000000000000000000000000000000000000000000000000000000000000000",
		"0100000000000000000000000000000000000000000000000000000000000000",
		"ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
		"edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
		"eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
		"26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
		"c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
	} {
		key, err := hex.DecodeString(y)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if !smallOrder(key) {
				t.Errorf("%x counts as a real key", key)
			}
			if _, err := NewPublic(key, ""); err == nil {
				t.Errorf("%x was accepted", key)
			}
			key[31] ^= 0x80
		}
	}
	for b := range byte(32) {
		if key := testKey(t, b).Public().Key(); smallOrder(key) {
			t.Errorf("the real key %x counts as small order", key)
		}
	}
}

func FuzzParsePublic(f *testing.F) {
	line := testKey(f, 1).Public().String()
	for _, seed := range []string{
		line, line + " pat\r\n", "ssh-ed25519 AAAA", `from="*" ` + line, line + "\n" + line,
		"-----BEGIN OPENSSH PRIVATE KEY-----", "sk-ssh-ed25519@openssh.com AAAA", testSecurityKey(f, 1).public().String(),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		if p, err := ParsePublic(in); err == nil {
			again, err := ParsePublic(p.String())
			if err != nil || again != p {
				t.Errorf("%q: canonical line %q reads as %v, %v", in, p.String(), again, err)
			}
			if strings.ContainsAny(p.String(), "\r\n") {
				t.Errorf("%q: canonical line %q is not one line", in, p.String())
			}
		}
		if k, err := ParseSecurityKey(in); err == nil {
			again, err := ParseSecurityKey(k.String())
			if err != nil || again != k {
				t.Errorf("%q: canonical line %q reads as %v, %v", in, k.String(), again, err)
			}
		}
	})
}
