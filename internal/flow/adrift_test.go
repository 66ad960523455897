package flow_test

import (
	"testing"

	"vogt/internal/catalog"
	"vogt/internal/coverage"
	"vogt/internal/flow"
	"vogt/internal/grant"
	"vogt/internal/reading"
	"vogt/internal/statement"
)

// TestFoldersThatAreNotReached: what follows a cd that fails runs where it stood
// before, so that a folder counts only where the cd must have succeeded.
func TestFoldersThatAreNotReached(t *testing.T) {
	t.Parallel()
	p, err := grant.NewClass(grant.ClassSafe, "*", []string{"/p"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	rd := reading.New(catalog.New())
	tests := []struct {
		line    string
		covered bool
	}{
		{"cd /p/x && cat config", true},
		{"cd /p/x && ls && cat config", true},
		{"cd /p/x && sh -c 'cat config'", true},
		{"cd /p/x; cat /p/x/config", false},

		{"cd /p/x; cat config", false},
		{"cd /p/x\ncat config", false},
		{"cd /p/x || cat config", false},
		{"cd /p/x || true; cat config", false},
		{"cd /p/x || exit 1 | true; cat config", false},
		{"exit() { :; }; cd /p/x || exit; cat config", false},
		{"cd /p/x && cat a; cat config", false},
		{"cd /p/x && cat a || cat config", false},
		{"cd /p/x && true; cat config", false},
		{"cd /p; cd x && cat config", false},
		{"! cd /p/x && cat config", false},
		{"cd /p/x & true && cat config", false},
		{"{ cd /p/x; true; } && cat config", false},
		{"(cd /p/x; cat config)", false},
		{"if cd /p/x; then :; fi; cat config", false},
		{"f() { cd /p/x; true; }; f && cat config", false},
		{"cd() { builtin cd \"$1\"; true; }; cd /p/x && cat config", false},
		{"pushd /p/x; cat config", false},
		{"command cd /p/x; cat config", false},
		{"eval 'cd /p/x; true' && cat config", false},
		{"cd /p/x; sh -c 'cat config'", false},
		{"cd /p/x; ls", false},
		{"cd /p/x; grep -r key", false},
		{"cd /p/x; { cat config; }", false},
		{"cd /p/x; while read l; do cat config; done", false},
	}
	for _, test := range tests {
		cwd := "/home/me/.aws"
		req := grant.Request{Command: []string{"bash", "-c", test.line}, Context: &grant.Context{Cwd: &statement.File{Path: &cwd}, Executable: "/usr/bin/bash"}}
		read, err := flow.Read(rd, req)
		if err != nil {
			t.Fatal(err)
		}
		covered := read.Coverable()
		for _, c := range read.Covered() {
			ok, _ := coverage.Covers(&p, &c, flow.WhereOf(req))
			covered = covered && ok
		}
		if covered != test.covered {
			t.Errorf("%q in %s: covered %v", test.line, cwd, covered)
		}
	}
}
