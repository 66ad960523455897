package main

import (
	"bufio"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vogt/cmd/vogt/messages"
	"vogt/internal/catalog/local"
)

// Who reads a notice knows what is wrong, where, what follows and what to do.
func TestSayLeftOut(t *testing.T) {
	left := []local.LeftOut{
		{Path: "/etc/vogt/catalog/kelp", Program: "kelp", Reason: "/etc/vogt/catalog/kelp:3: unknown role \"wirte\x1b\""},
		{Path: "/etc/vogt/catalog/ls", Program: "ls", Reason: "ls is Vogt's", Own: true},
	}
	for lang, want := range map[messages.Lang][]string{
		messages.English: {
			"vogt: /etc/vogt/catalog/kelp:3: unknown role \"wirte<U+001B>\". The file is left out, and kelp counts as unknown: mend it until `vogt catalog test /etc/vogt/catalog/kelp` passes, or remove it",
			"vogt: /etc/vogt/catalog/ls is left out: Vogt brings an entry of ls itself, and that one holds. Remove the file",
		},
		messages.German: {
			"vogt: /etc/vogt/catalog/kelp:3: unknown role \"wirte<U+001B>\". Die Datei wird ausgelassen, und kelp gilt als unbekannt: ",
			"vogt: /etc/vogt/catalog/ls wird ausgelassen: Vogt bringt selbst einen Eintrag für ls mit, und der gilt. Entferne die Datei",
		},
	} {
		stderr, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
		if err != nil {
			t.Fatal(err)
		}
		e := &env{stderr: stderr, lang: lang}
		e.sayLeftOut(left)
		if err := stderr.Close(); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(stderr.Name())
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
		if len(got) != 2 || !strings.HasPrefix(got[0], want[0]) || got[1] != want[1] {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Of a line that is too long the rest is skipped, and the next one is read.
func TestReadLine(t *testing.T) {
	long := strings.Repeat("a", lineLimit)
	in := bufio.NewReaderSize(strings.NewReader("one\n"+long+"\n"+"two\n"+long+"\nthree"), 64<<10)
	for _, want := range []string{"one\n", "", "two\n", "", "three"} {
		line, err := readLine(in)
		if string(line) != want || (want == "") != errors.Is(err, errLineLength) || (want == "three") != errors.Is(err, io.EOF) {
			t.Fatalf("%.20q, %v, want %q", line, err, want)
		}
	}
}

func TestParseAsked(t *testing.T) {
	for line, want := range map[string]string{
		`{"command":"ls"}`:                    "",
		`{"command":"","cwd":""}`:             "",
		`{"command":"ls","cwd":null}`:         "",
		`{"command":"ls","cwd":"/a","id":[]}`: "",
		`{"command":null}`:                    `"command" is no string`,
		`{"command":7}`:                       `"command" is no string`,
		`{"Command":"ls"}`:                    `"command" is missing`,
		`{"command":"ls","cwd":"a"}`:          `"cwd" is no absolute path`,
		`{"command":"ls","cwd":{}}`:           `"cwd" is no string`,
		`"ls"`:                                "this is no object",
		`{"command":"ls"`:                     "this is not valid JSON",
		`{"command":"ls"} {}`:                 "this is not valid JSON",
		"\xff":                                "this is not valid JSON",
	} {
		_, err := parseAsked([]byte(line))
		if (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
}

func TestReadRegular(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	if text, err := readRegular(file("a", "1234"), 4); err != nil || string(text) != "1234" {
		t.Errorf("%q, %v", text, err)
	}
	for path, want := range map[string]string{
		file("b", "12345"): "larger than 4 bytes", dir: "is a folder", filepath.Join(dir, "none"): "no such file",
	} {
		_, err := readRegular(path, 4)
		if _, usage := errors.AsType[*usageError](err); !usage || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "stat ") {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
}
