package quickstart

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vogt/internal/config"
)

func TestPinWrite(t *testing.T) {
	pin := pinned{authority: "http://127.0.0.1:8648", logKey: "vogt+1+AAA"}
	const both = "authority = \"http://127.0.0.1:8648\"\nauthority_key = \"vogt+1+AAA\"\n"
	tests := []struct{ name, old, want, before string }{
		{"new file", "", "# Where this user's authority is. `vogt up` keeps the first two lines.\n" + both, ""},
		{"empty file", "\n", both + "\n", ""},
		{"another address", "authority = \"http://127.0.0.1:1\"\n", both, "http://127.0.0.1:1"},
		{"comments and tables stay", "# mine\n\nagent = \"claude\" # which\n[wait]\nlimit = \"1m\" # authority = \"x\"\n",
			"# mine\n" + both + "\nagent = \"claude\" # which\n[wait]\nlimit = \"1m\" # authority = \"x\"\n", ""},
		{"only comments", "# a\n# b", "# a\n# b\n" + both, ""},
		{"in place", "agent = \"a\"\n  authority=\"http://127.0.0.1:2\"\n[wait]\n", "agent = \"a\"\n" + both + "[wait]\n", "http://127.0.0.1:2"},
		{"the same key under the name of another address", "authority = \"http://127.0.0.1:9\"\nauthority_key = \"vogt/x+7+AAA\"\n", both, "http://127.0.0.1:9"},
		{"same", both, both, "http://127.0.0.1:8648"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			paths := config.Paths{Config: filepath.Join(t.TempDir(), "config")}
			path := filepath.Join(paths.Config, "vogt.toml")
			if test.old != "" {
				os.MkdirAll(paths.Config, 0o700)
				os.WriteFile(path, []byte(test.old), 0o600)
			}
			before, err := pin.write(paths)
			if err != nil || before != test.before {
				t.Fatalf("got %q, %v; want %q", before, err, test.before)
			}
			got, err := os.ReadFile(path)
			if err != nil || string(got) != test.want {
				t.Fatalf("got\n%s\n%v, want\n%s", got, err, test.want)
			}
			if left, _ := filepath.Glob(filepath.Join(paths.Config, "*.new")); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

func TestPinWriteRefuses(t *testing.T) {
	pin := pinned{authority: "http://127.0.0.1:8648", logKey: "vogt+1+AAA"}
	tests := []struct{ name, old, want string }{
		{"another key", "authority_key = \"vogt+9+ZZZ\"\n", "remove the line authority_key"},
		{"a broken file", "authority = \n", "vogt.toml:1"},
		{"a layout that is not understood", "\"\\u0061uthority\" = \"http://127.0.0.1:2\"\n", "by hand"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "vogt.toml")
			os.WriteFile(path, []byte(test.old), 0o600)
			_, err := pin.write(config.Paths{Config: dir})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got %v, want %q", err, test.want)
			}
			if got, _ := os.ReadFile(path); string(got) != test.old {
				t.Fatalf("the file was changed: %q", got)
			}
		})
	}
}

func TestPinKeepsLink(t *testing.T) {
	dir := t.TempDir()
	real := filepath.Join(dir, "dotfiles", "vogt.toml")
	os.MkdirAll(filepath.Dir(real), 0o700)
	os.WriteFile(real, nil, 0o600)
	if err := os.Symlink(real, filepath.Join(dir, "vogt.toml")); err != nil {
		t.Skip("links need a privilege on this system: ", err)
	}
	pin := pinned{authority: "http://127.0.0.1:8648", logKey: "k"}
	if _, err := pin.write(config.Paths{Config: dir}); err != nil {
		t.Fatal(err)
	}
	if got, err := config.Load[config.Client](real); err != nil || got.Authority != pin.authority {
		t.Fatalf("%+v, %v", got, err)
	}
}
