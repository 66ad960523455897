package sshkey

import (
	"crypto/ed25519"
	"encoding/base64"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
)

func TestSignVerify(t *testing.T) {
	priv := testKey(t, 1)
	commented, err := ParsePublic(priv.Public().String() + " pat")
	if err != nil {
		t.Fatal(err)
	}
	keys := []Public{{}, testKey(t, 2).Public(), commented}
	for _, ns := range []Namespace{NamespaceLogin, NamespaceDecision} {
		armoured, err := Sign(priv, ns, []byte("message"))
		if err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{
			"as made":     armoured,
			"no line end": strings.TrimSuffix(armoured, "\n"),
			"CRLF":        strings.ReplaceAll(armoured, "\n", "\r\n"),
		} {
			got, err := Verify(text, ns, []byte("message"), keys)
			if err != nil || got != commented {
				t.Errorf("%s, %s: verified as %v, %v", ns, name, got, err)
			}
		}
	}
}

func TestNamespacesStayApart(t *testing.T) {
	priv := testKey(t, 1)
	keys := []Public{priv.Public()}
	for _, made := range []Namespace{NamespaceLogin, NamespaceDecision} {
		armoured, err := Sign(priv, made, []byte("m"))
		if err != nil {
			t.Fatal(err)
		}
		for _, asked := range []Namespace{NamespaceLogin, NamespaceDecision, "", "file", "git"} {
			_, err := Verify(armoured, asked, []byte("m"), keys)
			if (err == nil) != (made == asked) {
				t.Errorf("made for %q, asked as %q: %v", made, asked, err)
			}
			if _, err := VerifySecurityKey(armoured, asked, []byte("m"), []SecurityKey{testSecurityKey(t, 1).public()}); err == nil {
				t.Errorf("a software key's signature passes as hardware in %q", asked)
			}
		}
		// Renaming the namespace inside breaks the signature.
		for _, other := range []Namespace{NamespaceLogin, NamespaceDecision} {
			if other != made {
				renamed := reseal(t, armoured, func(e *envelope) { e.Namespace = string(other) })
				if _, err := Verify(renamed, other, []byte("m"), keys); err == nil {
					t.Errorf("a signature for %q passes for %q after a change", made, other)
				}
			}
		}
	}
	for _, ns := range []Namespace{"", "file", "git", "ssh", "vogt-decision-v2"} {
		if _, err := Sign(priv, ns, []byte("m")); err == nil {
			t.Errorf("signed in namespace %q", ns)
		}
	}
}

// reseal changes an armoured signature's fields and armours it again.
func reseal(t testing.TB, armoured string, change func(*envelope)) string {
	t.Helper()
	blob, err := unarmour(armoured)
	if err != nil {
		t.Fatal(err)
	}
	var env envelope
	if err := ssh.Unmarshal(blob, &env); err != nil {
		t.Fatal(err)
	}
	change(&env)
	return armour(ssh.Marshal(env))
}

func TestVerifyRefuses(t *testing.T) {
	priv := testKey(t, 1)
	public := priv.Public()
	good, err := Sign(priv, NamespaceDecision, []byte("m"))
	if err != nil {
		t.Fatal(err)
	}
	blob, err := unarmour(good)
	if err != nil {
		t.Fatal(err)
	}
	inner := func(change func(*ed25519Signature)) func(*envelope) {
		return func(e *envelope) {
			var sig ed25519Signature
			if err := ssh.Unmarshal(e.Signature, &sig); err != nil {
				t.Fatal(err)
			}
			change(&sig)
			e.Signature = ssh.Marshal(sig)
		}
	}
	changed := func(change func(*envelope)) string { return reseal(t, good, change) }
	for name, tc := range map[string]struct{ in, says string }{
		"nothing":             {"", "does not begin"},
		"text before":         {"x\n" + good, "does not begin"},
		"blank before":        {" " + good, "does not begin"},
		"text after":          {good + "x", "does not end"},
		"empty line after":    {good + "\n", "does not end"},
		"another after":       {good + good, "not base64"},
		"other armour":        {strings.ReplaceAll(good, "SSH SIGNATURE", "SSH PUBLIC KEY"), "does not begin"},
		"no tail":             {strings.TrimSuffix(good, armourTail+"\n"), "does not end"},
		"empty":               {armourHead + "\n" + armourTail + "\n", "does not end"},
		"empty line inside":   {armourHead + "\n\n" + armourTail + "\n", "empty or broken"},
		"gap inside":          {strings.Replace(good, "\n", "\n\n", 1), "empty or broken"},
		"lone CR":             {strings.Replace(good, "U1NI", "U1NI\r", 1), "empty or broken"},
		"blank inside":        {strings.Replace(good, "U1NI", "U1NI ", 1), "not base64"},
		"header inside":       {strings.Replace(good, "\n", "\nHash: x\n", 1), "not base64"},
		"too long":            {good + strings.Repeat("\n", maxArmour), "longer than"},
		"more in the blob":    {armour(append(blob, 0)), "exactly one"},
		"cut blob":            {armour(blob[:len(blob)-1]), "exactly one"},
		"magic":               {changed(func(e *envelope) { e.Magic[0] = 'X' }), "SSHSIG"},
		"version 0":           {changed(func(e *envelope) { e.Version = 0 }), "version 0"},
		"version 2":           {changed(func(e *envelope) { e.Version = 2 }), "version 2"},
		"reserved":            {changed(func(e *envelope) { e.Reserved = "x" }), "reserved"},
		"hash name":           {changed(func(e *envelope) { e.HashAlgorithm = "sha1" }), "hash algorithm"},
		"no hash name":        {changed(func(e *envelope) { e.HashAlgorithm = "" }), "hash algorithm"},
		"the other hash":      {changed(func(e *envelope) { e.HashAlgorithm = hashSHA256 }), "does not match"},
		"foreign key":         {changed(func(e *envelope) { e.PublicKey = testKey(t, 9).Public().Blob() }), "not among"},
		"allowed, not signer": {changed(func(e *envelope) { e.PublicKey = testKey(t, 2).Public().Blob() }), "does not match"},
		"broken key":          {changed(func(e *envelope) { e.PublicKey = append(e.PublicKey, 0) }), "not by an ssh-ed25519"},
		"zero key":            {changed(func(e *envelope) { e.PublicKey = ssh.Marshal(ed25519Blob{typeEd25519, make([]byte, 32)}) }), "not among"},
		"other key type":      {changed(func(e *envelope) { e.PublicKey = ssh.Marshal(ed25519Blob{"ssh-rsa", make([]byte, 32)}) }), "not by an ssh-ed25519"},
		"inner type":          {changed(inner(func(s *ed25519Signature) { s.Type = "ssh-rsa" })), "malformed"},
		"inner length":        {changed(inner(func(s *ed25519Signature) { s.Signature = s.Signature[1:] })), "malformed"},
		"inner trailing":      {changed(func(e *envelope) { e.Signature = append(e.Signature, 0) }), "malformed"},
		"flipped bit":         {changed(inner(func(s *ed25519Signature) { s.Signature[5] ^= 1 })), "does not match"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Verify(tc.in, NamespaceDecision, []byte("m"), []Public{{}, public, testKey(t, 2).Public()})
			if err == nil {
				t.Fatalf("verified as %v", got)
			}
			if !got.IsZero() || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %v and error %q, want it to say %q", got, err, tc.says)
			}
		})
	}
	for name, message := range map[string]string{"other": "n", "longer": "m\n", "empty": ""} {
		if _, err := Verify(good, NamespaceDecision, []byte(message), []Public{public}); err == nil {
			t.Errorf("verified over the %s message", name)
		}
	}
	if _, err := Verify(good, NamespaceDecision, []byte("m"), nil); err == nil {
		t.Error("verified without any allowed key")
	}
}

func FuzzVerify(f *testing.F) {
	priv, token := testKey(f, 1), testSecurityKey(f, 1)
	good, err := Sign(priv, NamespaceDecision, []byte("m"))
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{good, token.sign(NamespaceDecision, "m", flagUserPresent, 7), armourHead, armourHead + "\nAAAA\n" + armourTail} {
		f.Add(seed)
		if blob, err := unarmour(seed); err == nil {
			f.Add(string(blob))
		}
	}
	keys, tokens := []Public{priv.Public()}, []SecurityKey{token.public()}
	f.Fuzz(func(t *testing.T, in string) {
		// Whole texts and bare blobs, so that the fuzzer gets past the base64.
		for _, text := range []string{in, armour([]byte(in))} {
			if _, err := Verify(text, NamespaceLogin, []byte("m"), keys); err == nil {
				t.Errorf("%q verifies in a namespace that nothing was signed for", text)
			}
			if _, err := Verify(text, NamespaceDecision, []byte("other"), keys); err == nil {
				t.Errorf("%q verifies over a message that was never signed", text)
			}
			Verify(text, NamespaceDecision, []byte("m"), keys)
			if _, err := VerifySecurityKey(text, NamespaceDecision, []byte("other"), tokens); err == nil {
				t.Errorf("%q verifies over a message that was never signed", text)
			}
			VerifySecurityKey(text, NamespaceDecision, []byte("m"), tokens)
		}
	})
}

// token is a security key in software: it signs what a FIDO token signs.
type token struct {
	key         ed25519.PrivateKey
	application string
}

func testSecurityKey(t testing.TB, b byte) token {
	t.Helper()
	return token{rawKey(testKey(t, b)), "ssh:"}
}

func (k token) public() SecurityKey {
	p := SecurityKey{application: k.application}
	copy(p.key[:], k.key.Public().(ed25519.PublicKey))
	return p
}

func (k token) sign(ns Namespace, message string, flags uint8, counter uint32) string {
	data, err := toBeSigned(ns, hashSHA512, []byte(message))
	if err != nil {
		panic(err)
	}
	return armour(ssh.Marshal(envelope{
		Magic: magic(), Version: sshsigVersion, PublicKey: k.public().blob(), Namespace: string(ns), HashAlgorithm: hashSHA512,
		Signature: ssh.Marshal(skSignature{typeSKEd25519, ed25519.Sign(k.key, skSigned(k.application, flags, counter, data)), flags, counter}),
	}))
}

func TestVerifySecurityKey(t *testing.T) {
	tok := testSecurityKey(t, 1)
	keys := []SecurityKey{{}, testSecurityKey(t, 2).public(), tok.public()}
	m := []byte("m")
	for name, tc := range map[string]struct {
		flags    uint8
		verified bool
	}{
		"touched":          {flagUserPresent, false},
		"touched with PIN": {flagUserPresent | flagUserVerified, true},
	} {
		got, err := VerifySecurityKey(tok.sign(NamespaceDecision, "m", tc.flags, 41), NamespaceDecision, m, keys)
		if err != nil || !got.Key.Equal(tok.public()) || got.UserVerified != tc.verified || got.Counter != 41 {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
	}
	good := tok.sign(NamespaceDecision, "m", flagUserPresent, 1)
	inner := func(change func(*skSignature)) string {
		return reseal(t, good, func(e *envelope) {
			var sig skSignature
			if err := ssh.Unmarshal(e.Signature, &sig); err != nil {
				t.Fatal(err)
			}
			change(&sig)
			e.Signature = ssh.Marshal(sig)
		})
	}
	software, err := Sign(testKey(t, 1), NamespaceDecision, m)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct{ in, says string }{
		"no touch":           {tok.sign(NamespaceDecision, "m", 0, 1), "nobody touched"},
		"PIN without touch":  {tok.sign(NamespaceDecision, "m", flagUserVerified, 1), "nobody touched"},
		"touch added":        {inner(func(s *skSignature) { s.Flags |= flagUserVerified }), "does not match"},
		"counter changed":    {inner(func(s *skSignature) { s.Counter++ }), "does not match"},
		"namespace":          {tok.sign(NamespaceLogin, "m", flagUserPresent, 1), "made for namespace"},
		"message":            {tok.sign(NamespaceDecision, "n", flagUserPresent, 1), "does not match"},
		"foreign token":      {testSecurityKey(t, 3).sign(NamespaceDecision, "m", flagUserPresent, 1), "not among"},
		"other application":  {token{tok.key, "ssh:other"}.sign(NamespaceDecision, "m", flagUserPresent, 1), "not among"},
		"web application":    {token{tok.key, "https://example.org"}.sign(NamespaceDecision, "m", flagUserPresent, 1), "not by an sk-ssh-ed25519"},
		"software key":       {software, "not by an sk-ssh-ed25519"},
		"software signature": {reseal(t, software, func(e *envelope) { e.PublicKey = tok.public().blob() }), "malformed"},
		"inner type":         {inner(func(s *skSignature) { s.Type = typeEd25519 }), "malformed"},
		"inner trailing":     {reseal(t, good, func(e *envelope) { e.Signature = append(e.Signature, 0) }), "malformed"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := VerifySecurityKey(tc.in, NamespaceDecision, m, keys)
			if err == nil || got != (Touch{}) {
				t.Fatalf("verified as %+v, %v", got, err)
			}
			if !strings.Contains(err.Error(), tc.says) {
				t.Errorf("error %q does not say %q", err, tc.says)
			}
		})
	}
	if _, err := Verify(good, NamespaceDecision, m, []Public{testKey(t, 1).Public()}); err == nil {
		t.Error("a hardware signature passes as that of an ordinary key with the same bytes")
	}
}

func TestParseSecurityKey(t *testing.T) {
	want := testSecurityKey(t, 1).public()
	got, err := ParseSecurityKey(want.String() + " yubikey\r\n")
	if err != nil || !got.Equal(want) || !strings.HasSuffix(got.String(), " yubikey") {
		t.Errorf("read as %v, %v", got, err)
	}
	raw := want.key[:]
	for name, line := range map[string]string{
		"ordinary key":    testKey(t, 1).Public().String(),
		"web application": wireLine(typeSKEd25519, skBlob{typeSKEd25519, raw, "example.org"}),
		"no application":  wireLine(typeSKEd25519, skBlob{typeSKEd25519, raw, ""}),
		"zero key":        wireLine(typeSKEd25519, skBlob{typeSKEd25519, make([]byte, 32), "ssh:"}),
		"short key":       wireLine(typeSKEd25519, skBlob{typeSKEd25519, raw[1:], "ssh:"}),
		"other type":      wireLine(typeSKEd25519, skBlob{typeEd25519, raw, "ssh:"}),
		"trailing":        "sk-ssh-ed25519@openssh.com " + base64.StdEncoding.EncodeToString(append(want.blob(), 0)),
		"bad comment":     want.String() + " \x07",
	} {
		if got, err := ParseSecurityKey(line); err == nil || !got.IsZero() {
			t.Errorf("%s: read as %v, %v", name, got, err)
		}
	}
	var zero SecurityKey
	if zero.Equal(zero) || zero.String() != "" || zero.Fingerprint() != "" {
		t.Error("the zero value passes for a key")
	}
}
