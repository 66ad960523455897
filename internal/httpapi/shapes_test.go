package httpapi_test

import (
	"strings"
	"testing"

	"vogt/internal/api"
	"vogt/internal/authoritytest"
	"vogt/internal/detail"
)

// TestShapes: the registry is public, says what the catalog knows, and reads as
// requests are read, whatever the caller calls it.
func TestShapes(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t)
	stranger := s.Stranger()
	reads(t, stranger.Get(api.PathShapes), "array", "0.cli_id string", "0.executable string", "0.description string", "0.source string", "0.digest string", "0.operations array")
	v := reads(t, stranger.Get(api.PathShapes+"/git"), "cli_id string", "digest string", "operations array")
	if d := text(t, v, "digest"); !strings.HasPrefix(d, "sha256:") || len(d) != 71 {
		t.Errorf("digest %s", d)
	}
	for _, name := range []string{"no-such-program", "..%2f..%2fetc%2fpasswd", "%00", "git%2fx", strings.Repeat("x", 5000)} {
		stranger.Get(api.PathShapes + "/" + name).Problem(404)
	}
	argv := []string{"cat", "/home/p/a"}
	v = reads(t, stranger.Post(api.PathShapes+"/resolve", api.Resolve{CLI: "cat", Argv: argv}), "cli_id string", "operation_id string", "executable string", "commandArgv array",
		"bindings object", "detail.permission string", "detail.resource_chain array", "executionContext.argv_hash string", "executionContext.adapter_digest string", "permission string", "synthetic bool")
	if got := text(t, v, "executionContext.argv_hash"); got != detail.ArgvHash(argv) {
		t.Errorf("argv_hash %s", got)
	}
	for _, test := range []struct {
		argv      []string
		risk, cli string
		synthetic bool
	}{
		{[]string{"cat", "/home/p/a"}, "medium", "cat", false},
		{[]string{"rm", "-rf", "/"}, "critical", "rm", false},
		{[]string{"no-such-program"}, "high", "no-such-program", true},
		{[]string{"find", ".", "-delete"}, "high", "find", false},
		{[]string{"git", "branch", "--delete", "main"}, "high", "git", false},
	} {
		var out api.Resolved
		stranger.Post(api.PathShapes+"/resolve", api.Resolve{Argv: test.argv}).Into(&out)
		if out.CLI != test.cli || out.Synthetic != test.synthetic {
			t.Errorf("%q: %+v", test.argv, out)
		}
		if r, err := detail.ParseRisk(out.Detail.Risk); err != nil || out.Detail.Risk == "low" && test.risk != "low" {
			t.Errorf("%q is rated %s (%v), want %s", test.argv, r, err, test.risk)
		}
		if err := out.Detail.Validate(); err != nil {
			t.Errorf("%q: %v", test.argv, err)
		}
	}
	for name, body := range map[string]any{
		"nothing": nil, "no words": api.Resolve{}, "an empty program": api.Resolve{Argv: []string{""}}, "another program": api.Resolve{CLI: "ls", Argv: []string{"rm", "x"}},
		"NUL": api.Resolve{Argv: []string{"a\x00"}},
	} {
		if a := stranger.Post(api.PathShapes+"/resolve", body, "Content-Type", "application/json"); a.Status != 400 {
			t.Errorf("%s: %d %.200s", name, a.Status, a.Body)
		}
	}
}
