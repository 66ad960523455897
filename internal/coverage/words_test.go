package coverage

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzWords: a pattern denies whatever it would allow, so that a name in both lists
// is denied; and what a pattern allows has its words without stars.
func FuzzWords(f *testing.F) {
	f.Add("echo *", "echo\x00a\x00b")
	f.Add("/usr/bin/git log*", "/usr/bin/git\x00log")
	f.Add("rm -r* /p/*/x", "rm\x00-rf\x00/p/../x")
	f.Add("* x * y", "a\x00x\x00x\x00y\x00y")
	f.Fuzz(func(t *testing.T, pattern, line string) {
		words := strings.Split(line, "\x00")
		pattern = strings.Join(strings.Fields(pattern), " ") // as grant.Policy has it
		if pattern == "" || !utf8.ValidString(pattern) || !utf8.ValidString(line) || !allows(pattern, words) {
			return
		}
		if !denies(pattern, words) {
			t.Errorf("%q allows %q and does not deny it", pattern, words)
		}
		for p := range strings.FieldsSeq(pattern) {
			if !strings.Contains(p, "*") && !slices.Contains(words, p) {
				t.Errorf("%q allows %q", pattern, words)
			}
			if strings.Contains(p, "*") && p != "*" && !slices.ContainsFunc(words, func(w string) bool {
				return strings.Count(w, "/") == strings.Count(p, "/") && strings.HasPrefix(w, p[:strings.IndexByte(p, '*')])
			}) {
				t.Errorf("%q allows %q, which leaves its folder", pattern, words)
			}
		}
	})
}
