package audit

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/note"
)

func TestOrigin(t *testing.T) {
	for issuer, want := range map[string]string{
		"http://127.0.0.1:8648":            "vogt/127.0.0.1:8648/log",
		"https://Vogt.Example.com":         "vogt/vogt.example.com/log",
		"https://vogt.example.com/":        "vogt/vogt.example.com/log",
		"https://vogt.example.com/a/b?c#d": "vogt/vogt.example.com/log",
		"https://[::1]:8648":               "vogt/[::1]:8648/log",
		"vogt.example.com":                 "vogt/vogt.example.com/log",
		"127.0.0.1:8648":                   "vogt/127.0.0.1:8648/log",
		"127.0.0.1:8648/x":                 "vogt/127.0.0.1:8648/log",
	} {
		if got := Origin(issuer); got != want {
			t.Errorf("Origin(%q) = %q, want %q", issuer, got, want)
		}
	}
}

func TestSigner(t *testing.T) {
	seed := bytes.Repeat([]byte{3}, 32)
	signer, key, err := NewSigner("vogt/x/log", seed)
	if err != nil {
		t.Fatal(err)
	}
	v, err := NewVerifier(key)
	if err != nil {
		t.Fatal(err)
	}
	if v.Name() != "vogt/x/log" || v.Name() != signer.Name() || v.KeyHash() != signer.KeyHash() {
		t.Errorf("the key is of %s+%08x, the signer %s+%08x", v.Name(), v.KeyHash(), signer.Name(), signer.KeyHash())
	}
	for _, bad := range []string{"", "a b", "a+b", "a\nb"} {
		if _, _, err := NewSigner(bad, seed); err == nil {
			t.Errorf("the origin %q was accepted", bad)
		}
	}
	for _, n := range []int{0, 31, 33, 64} {
		if _, _, err := NewSigner("vogt/x/log", make([]byte, n)); err == nil {
			t.Errorf("a seed of %d bytes was accepted", n)
		}
	}
	for _, bad := range []string{"", "x", key + "x", strings.Replace(key, "vogt", "Vogt", 1)} {
		if _, err := NewVerifier(bad); err == nil {
			t.Errorf("the key %q was accepted", bad)
		}
	}
}

// The form is checked without package note, by the words of the specification.
func TestCheckpointForm(t *testing.T) {
	seed := bytes.Repeat([]byte{3}, 32)
	signer, _, err := NewSigner("vogt/x/log", seed)
	if err != nil {
		t.Fatal(err)
	}
	l := newLog(t, 5)
	text, err := SignCheckpoint(5, l, signer)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(text, "\n")
	if len(lines) != 6 || lines[0] != "vogt/x/log" || lines[1] != "5" || lines[3] != "" || lines[5] != "" {
		t.Fatalf("checkpoint is %q", text)
	}
	name, sig, ok := strings.Cut(strings.TrimPrefix(lines[4], "— "), " ")
	raw, err := base64.StdEncoding.DecodeString(sig)
	if !ok || err != nil || name != "vogt/x/log" || len(raw) != 4+64 {
		t.Fatalf("signature line is %q", lines[4])
	}
	public := ed25519.NewKeyFromSeed(seed).Public().(ed25519.PublicKey)
	if !ed25519.Verify(public, []byte(strings.Join(lines[:3], "\n")+"\n"), raw[4:]) {
		t.Error("the signature is not over the three lines")
	}
}

func TestSignCheckpointRefuses(t *testing.T) {
	a := newAuthority(t, "vogt/x/log", 1)
	l := newLog(t, 5)
	for _, size := range []int64{-1, 6, maxSize + 1} {
		if text, err := SignCheckpoint(size, l, a.signer); err == nil {
			t.Errorf("size %d: %q", size, text)
		}
	}
}

func TestOpenCheckpoint(t *testing.T) {
	a, other := newAuthority(t, "vogt/x/log", 1), newAuthority(t, "vogt/y/log", 2)
	impostor := newAuthority(t, "vogt/x/log", 3)
	const root = "bjQLnP+zepicpUTmu3gKLHiQHT+zNzh2hRGjBhevoB0="
	sign := func(text string, signers ...note.Signer) string {
		b, err := note.Sign(&note.Note{Text: text}, signers...)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	body := "vogt/x/log\n7\n" + root + "\n"
	good := sign(body, a.signer)
	tests := []struct {
		name, text string
		ok         bool
	}{
		{"good", good, true},
		{"another signature after it", sign(body, a.signer, other.signer), true},
		{"another signature before it", sign(body, other.signer, a.signer), true},
		{"another key of that name too", sign(body, a.signer, impostor.signer), true},
		{"empty log", sign("vogt/x/log\n0\n47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\n", a.signer), true},
		{"nothing", "", false},
		{"no signature", body + "\n", false},
		{"by another key", sign(body, other.signer), false},
		{"by another key of that name", sign(body, impostor.signer), false},
		{"of another log", sign("vogt/y/log\n7\n"+root+"\n", a.signer), false},
		{"changed", strings.Replace(good, "\n7\n", "\n8\n", 1), false},
		{"text before", "x" + good, false},
		{"text after", good + "x", false},
		{"line after", good + "\n", false},
		{"extension line", sign(body+"x\n", a.signer), false},
		{"empty extension line", sign(body+"\n", a.signer), false},
		{"two lines", sign("vogt/x/log\n7\n", a.signer), false},
		{"no origin", sign("\n7\n"+root+"\n", a.signer), false},
		{"negative", sign("vogt/x/log\n-7\n"+root+"\n", a.signer), false},
		{"negative zero", sign("vogt/x/log\n-0\n"+root+"\n", a.signer), false},
		{"plus", sign("vogt/x/log\n+7\n"+root+"\n", a.signer), false},
		{"leading zero", sign("vogt/x/log\n07\n"+root+"\n", a.signer), false},
		{"space", sign("vogt/x/log\n 7\n"+root+"\n", a.signer), false},
		{"hex", sign("vogt/x/log\n0x7\n"+root+"\n", a.signer), false},
		{"underscore", sign("vogt/x/log\n1_0\n"+root+"\n", a.signer), false},
		{"too large", sign("vogt/x/log\n9223372036854775807\n"+root+"\n", a.signer), false},
		{"overflow", sign("vogt/x/log\n18446744073709551623\n"+root+"\n", a.signer), false},
		{"short root", sign("vogt/x/log\n7\nbjQL\n", a.signer), false},
		{"root not base64", sign("vogt/x/log\n7\n"+strings.Repeat("!", 44)+"\n", a.signer), false},
		{"root spelled anew", sign("vogt/x/log\n7\n"+looseBase64(root)+"\n", a.signer), false},
		{"empty log with a root", sign("vogt/x/log\n0\n"+root+"\n", a.signer), false},
		{"carriage return", strings.ReplaceAll(good, "\n", "\r\n"), false},
		{"huge", good + strings.Repeat("— x AAAAAAAA\n", 20000), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, err := OpenCheckpoint(tt.text, a.key)
			if (err == nil) != tt.ok {
				t.Fatalf("OpenCheckpoint(%.200q) = %+v, %v", tt.text, c, err)
			}
			if tt.ok && (c.Origin != "vogt/x/log" || c.Text != tt.text) {
				t.Errorf("checkpoint is %+v", c)
			}
			if !tt.ok && (c != Checkpoint{}) {
				t.Errorf("with the error came %+v", c)
			}
		})
	}
	if _, err := OpenCheckpoint(good, "nonsense"); err == nil {
		t.Error("opened without a key")
	}
}

func FuzzOpenCheckpoint(f *testing.F) {
	a := newAuthority(f, "vogt/x/log", 1)
	l := newLog(f, 9)
	for size := range int64(10) {
		f.Add(a.sign(f, l, size).Text)
	}
	f.Add("vogt/x/log\n1\n\n\n— x AAAA\n")
	// A fuzzer cannot sign: the text is signed anew, so that the parser is reached.
	f.Fuzz(func(t *testing.T, text string) {
		if c, err := OpenCheckpoint(text, a.key); err == nil && c.Text != text {
			t.Errorf("%q was read as %+v", text, c)
		}
		body, _, _ := strings.Cut(text, "\n\n")
		signed, err := note.Sign(&note.Note{Text: body + "\n"}, a.signer)
		if err != nil {
			return
		}
		c, err := OpenCheckpoint(string(signed), a.key)
		if err != nil {
			return
		}
		if again := fmt.Sprintf("%s\n%d\n%s\n", c.Origin, c.Size, c.Root); again != body+"\n" {
			t.Errorf("%q and %q are read as the same checkpoint", body+"\n", again)
		}
	})
}
