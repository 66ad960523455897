//go:build unix

package config

import (
	"strings"
	"testing"
)

func env(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

func TestFindPaths(t *testing.T) {
	tests := []struct {
		name, goos string
		getenv     func(string) string
		want       Paths
		err        string
	}{
		{"home alone", "linux", env("HOME", "/home/a"),
			Paths{"/etc/vogt", "/home/a/.config/vogt", "/home/a/.local/share/vogt", "/home/a/.local/state/vogt"}, ""},
		{"every XDG variable, no home", "linux", env("XDG_CONFIG_HOME", "/c", "XDG_DATA_HOME", "/d", "XDG_STATE_HOME", "/s"),
			Paths{"/etc/vogt", "/c/vogt", "/d/vogt", "/s/vogt"}, ""},
		{"one folder", "linux", env("HOME", "/home/a", "VOGT_HOME", "/srv/v/", "XDG_CONFIG_HOME", "/c"),
			Paths{"/etc/vogt", "/srv/v/config", "/srv/v/data", "/srv/v/state"}, ""},
		{"one folder excuses a broken home", "linux", env("HOME", "nowhere", "VOGT_HOME", "/srv/v"),
			Paths{"/etc/vogt", "/srv/v/config", "/srv/v/data", "/srv/v/state"}, ""},
		{"macOS", "darwin", env("HOME", "/Users/a"),
			Paths{"/etc/vogt", "/Users/a/Library/Application Support/vogt/config", "/Users/a/Library/Application Support/vogt/data", "/Users/a/Library/Application Support/vogt/state"}, ""},
		{"macOS with XDG", "darwin", env("HOME", "/Users/a", "XDG_DATA_HOME", "/d"),
			Paths{"/etc/vogt", "/Users/a/Library/Application Support/vogt/config", "/d/vogt", "/Users/a/Library/Application Support/vogt/state"}, ""},
		{"nothing set", "linux", env(), Paths{}, "HOME is not set"},
		{"relative home", "linux", env("HOME", "a"), Paths{}, `HOME is "a", which is not an absolute path`},
		{"relative one folder", "linux", env("HOME", "/home/a", "VOGT_HOME", ".v"), Paths{}, `VOGT_HOME is ".v"`},
		{"relative XDG", "linux", env("HOME", "/home/a", "XDG_STATE_HOME", "state"), Paths{}, `XDG_STATE_HOME is "state"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := findPaths(tt.goos, tt.getenv)
			switch {
			case tt.err == "" && err != nil:
				t.Fatal(err)
			case tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)):
				t.Fatalf("error %v, want one with %q", err, tt.err)
			case tt.err == "" && got != tt.want:
				t.Errorf("got  %+v\nwant %+v", got, tt.want)
			}
		})
	}
}
