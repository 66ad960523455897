package differential

import (
	"slices"
	"strings"
	"testing"
)

func TestReduce(t *testing.T) {
	for _, test := range []struct{ line, needs, want string }{
		{"ls -la; if true; then echo x | rm -rf build; fi # done", "rm", "rm"},
		{`bash -c "echo \"a b\"; touch p"`, "touch p", "touch p"},
		{`sh -c 'echo '\''hi'\'''`, "'hi'", "'hi'"},
		{"a", "a", "a"},
		{"xxxx", "xx", "xx"},
	} {
		got := reduce(test.line, 500, func(line string) bool { return strings.Contains(line, test.needs) })
		if got != test.want {
			t.Errorf("%q with %q: %q, want %q", test.line, test.needs, got, test.want)
		}
	}
	asked := 0
	reduce(strings.Repeat("a b;", 100), 7, func(string) bool { asked++; return false })
	if asked != 7 {
		t.Errorf("asked %d times, want 7", asked)
	}
}

// What tokens splits, joining gives again.
func TestTokens(t *testing.T) {
	for line := range slices.Values([]string{"", "a", "ls -la;x", "a\nb  c", `"$x"'y'\z`, "Größe{a,b}"}) {
		if got := strings.Join(tokens(line), ""); got != line {
			t.Errorf("%q: %q", line, got)
		}
	}
}

// The same seed gives the same lines, every production is used, and two seeds
// differ.
func TestGrammar(t *testing.T) {
	const n = 20000
	names := strings.NewReplacer("MAPFILE", "", "$FILE", "") // variables that lines really use
	a, b, other := newGrammar(seed), newGrammar(seed), newGrammar(seed+1)
	same := 0
	for i := range n {
		line := a.line()
		if again := b.line(); again != line {
			t.Fatalf("line %d: %q, then %q", i, line, again)
		}
		if other.line() == line {
			same++
		}
		if strings.ContainsRune(line, 0) {
			t.Errorf("line %d has a NUL byte: %q", i, line)
		}
		for _, mark := range []string{"FILE", "NEW", "WORD", "VAR ", "‹›", "«»"} {
			if strings.Contains(names.Replace(line), mark) {
				t.Errorf("line %d: %s is not filled in: %q", i, mark, line)
			}
		}
	}
	if same > n/20 {
		t.Errorf("%d of %d lines are the same with another seed", same, n)
	}
	for _, kinds := range [][]production{statementKinds(), preludes(), a.hostile, wrappers(), filters(), wordKinds(), expansionKinds()} {
		for _, kind := range kinds {
			if a.made[kind.name] == 0 {
				t.Errorf("%q is never written", kind.name)
			}
		}
	}
}

func TestCovers(t *testing.T) {
	for _, test := range []struct {
		claimed, touched string
		want             bool
	}{
		{"a.txt", workDir + "/a.txt", true},
		{"./src/../a.txt", workDir + "/a.txt", true},
		{"src", workDir + "/src/x/y", true},
		{"src", workDir + "/srcs", false},
		{"~/n", homeDir + "/n", true},
		{"~", homeDir + "/n", true},
		{"*.txt", workDir + "/a.txt", true},
		{"*.txt", workDir + "/a.md", false},
		{"src/*", workDir + "/src/a/b", true},
		{"src/*.py", workDir + "/a.py", false},
		{"/", "/etc/passwd", true},
		{"/etc", "/etcetera", false},
	} {
		if got := covers(absolute(test.claimed), test.touched); got != test.want {
			t.Errorf("%s covers %s: %v, want %v", test.claimed, test.touched, got, test.want)
		}
	}
}
