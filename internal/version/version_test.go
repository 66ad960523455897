package version

import (
	"bytes"
	"runtime/debug"
	"strings"
	"testing"
)

func TestDescribe(t *testing.T) {
	settings := func(kv ...string) *debug.BuildInfo {
		info := new(debug.BuildInfo)
		for i := 0; i < len(kv); i += 2 {
			info.Settings = append(info.Settings, debug.BuildSetting{Key: kv[i], Value: kv[i+1]})
		}
		return info
	}
	tests := []struct {
		name, stamp string
		info        *debug.BuildInfo
		want        string
	}{
		{"the linker's word counts first", "v1.2.3-4-gabcdef", settings("vcs.revision", "0123456789abcdef"), "v1.2.3-4-gabcdef"},
		{"revision is cut", "", settings("vcs.revision", "0123456789abcdef"), "0123456789ab"},
		{"short revision", "", settings("vcs.revision", "0123"), "0123"},
		{"changed tree", "", settings("vcs.modified", "true", "vcs.revision", "0123456789abcdef"), "0123456789ab-dirty"},
		{"clean tree", "", settings("vcs.modified", "false", "vcs.revision", "0123456789abcdef"), "0123456789ab"},
		{"changed, but of what", "", settings("vcs.modified", "true"), "unknown"},
		{"installed as a module", "", &debug.BuildInfo{Main: debug.Module{Version: "v1.0.0"}}, "v1.0.0"},
		{"made in the tree", "", &debug.BuildInfo{Main: debug.Module{Version: "(devel)"}}, "unknown"},
		{"no information", "", nil, "unknown"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := describe(tt.stamp, tt.info); got != tt.want {
				t.Errorf("describe = %q, want %q", got, tt.want)
			}
		})
	}
}

func TestAnnounced(t *testing.T) {
	a := Announced{Name: "vogt-x", Purpose: "do a thing", Meanwhile: "Use another"}
	tests := []struct {
		args           []string
		code           int
		stdout, stderr []string // what each must contain; empty: nothing may be printed
	}{
		{[]string{"version"}, 0, []string{"vogt-x ", String()}, nil},
		{[]string{"--version"}, 0, []string{"vogt-x "}, nil},
		{[]string{"help"}, 0, []string{"vogt-x will do a thing.", "does not contain it yet", "Use another.", "vogt-x version"}, nil},
		{[]string{"-h"}, 0, []string{"Usage:"}, nil},
		{nil, 69, nil, []string{"does not contain it yet", "it will do a thing", "Meanwhile: Use another."}},
		{[]string{"run", "--", "true"}, 69, nil, []string{"vogt-x: "}},
		{[]string{"version", "more"}, 69, nil, []string{"vogt-x: "}},
	}
	for _, tt := range tests {
		t.Run(strings.Join(tt.args, " "), func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			if code := a.Run(tt.args, &stdout, &stderr); code != tt.code {
				t.Errorf("exit code %d, want %d", code, tt.code)
			}
			contains(t, "stdout", stdout.String(), tt.stdout)
			contains(t, "stderr", stderr.String(), tt.stderr)
			if n := strings.Count(stderr.String(), "\n"); tt.code != 0 && n != 2 {
				t.Errorf("the refusal has %d lines, want 2:\n%s", n, &stderr)
			}
		})
	}
}

func contains(t *testing.T, name, got string, want []string) {
	t.Helper()
	if len(want) == 0 && got != "" {
		t.Errorf("%s: got %q, want nothing", name, got)
	}
	for _, w := range want {
		if !strings.Contains(got, w) {
			t.Errorf("%s: %q is missing in:\n%s", name, w, got)
		}
	}
}
