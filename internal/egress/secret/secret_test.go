package secret

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestRead(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes of files and sh are those of Unix")
	}
	dir := t.TempDir()
	file := func(name, text string, mode os.FileMode) string {
		full := filepath.Join(dir, name)
		if err := os.WriteFile(full, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(full, mode); err != nil {
			t.Fatal(err)
		}
		return full
	}
	getenv := func(name string) string {
		return map[string]string{"TOKEN": "s3cret", "LINES": "s3cret\nmore"}[name]
	}
	for _, tt := range []struct {
		name, want, err string
		source          Source
	}{
		{"a file", "s3cret", "", Source{File: file("good", "s3cret\n", 0o600)}},
		{"a file for reading", "s3cret", "", Source{File: file("ro", "s3cret", 0o400)}},
		{"a variable", "s3cret", "", Source{Variable: "TOKEN"}},
		{"a command", "s3cret", "", Source{Command: []string{"sh", "-c", "echo s3cret"}}},
		{"a file of others", "", "chmod 600", Source{File: file("open", "s3cret\n", 0o644)}},
		{"a file of a group", "", "chmod 600", Source{File: file("group", "s3cret\n", 0o640)}},
		{"an empty file", "", "not one line", Source{File: file("empty", "\n", 0o600)}},
		{"two lines", "", "not one line", Source{File: file("lines", "s3cret\nmore\n", 0o600)}},
		{"NUL", "", "not one line", Source{File: file("nul", "s3cret\x00", 0o600)}},
		{"a large file", "", "a few lines", Source{File: file("large", strings.Repeat("s3cret", 1<<14), 0o600)}},
		{"a folder", "", "is no file", Source{File: dir}},
		{"a device", "", "is no file", Source{File: "/dev/zero"}},
		{"no file", "", "no such file", Source{File: filepath.Join(dir, "none")}},
		{"a relative path", "", "not absolute", Source{File: "good"}},
		{"no variable", "", "NONE is not set", Source{Variable: "NONE"}},
		{"a variable of two lines", "", "not one line", Source{Variable: "LINES"}},
		{"a command that fails", "", "exit status 3", Source{Command: []string{"sh", "-c", "echo s3cret; exit 3"}}},
		{"a command that says nothing", "", "not one line", Source{Command: []string{"true"}}},
		{"a command of the folder", "", "neither a name nor", Source{Command: []string{"./get"}}},
		{"nothing", "", "nothing says", Source{}},
	} {
		got, err := tt.source.Read(t.Context(), getenv)
		if got != tt.want || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s: %q, %v; want %q, %q", tt.name, got, err, tt.want, tt.err)
		}
		if err != nil && strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: the secret stands in %q", tt.name, err)
		}
	}
}
