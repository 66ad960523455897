package reading

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"vogt/internal/catalog"
)

// apart are rows that are not held, with the reason.
var apart = map[string]string{
	"(( a > b ))":                           "arithmetic over names that may hold anything is opaque by decision",
	"r[m] a":                                "the parser refuses it, which is safe",
	"!":                                     "the parser refuses it, which is safe",
	"! ! true":                              "the parser refuses it, which is safe",
	"time ! ls":                             "the parser refuses it, which is safe",
	"findstr /s foo *.txt":                  "what a pattern matches may be a share of another host",
	"awk 'BEGIN { c=\"rm a\"; system(c) }'": "opaque; variables of awk are not followed",
	"awk -v c='rm a' 'BEGIN{system(c)}'":    "opaque; variables of awk are not followed",
	"compgen -W '$(rm a)'":                  "opaque; what the words do is not followed",
	"LESS='+!rm a' less f":                  "executes; the options in the variable are not followed",
	"GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=core.pager GIT_CONFIG_VALUE_0='rm a' git log": "executes; the settings in the variables are not followed",
}

// Rows of testdata/rows: what a careful reader says of command lines of the
// kinds that agents run. The letters of a row must be those that are found;
// where a row has none of w, d, n and p, more of them is caution.
func TestRows(t *testing.T) {
	files, err := filepath.Glob("testdata/rows/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no rows: %v", err)
	}
	rd := New(catalog.New())
	rows, reads, missed, named := 0, 0, 0, 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for n, line := range strings.Split(string(text), "\n") {
			if line == "" || line[0] == '#' {
				continue
			}
			parts := strings.SplitN(line, " | ", 3)
			if len(parts) != 3 {
				t.Fatalf("%s:%d: want FLAGS | PROGRAMS | COMMAND", file, n+1)
			}
			command, err := strconv.Unquote(strings.TrimSpace(parts[2]))
			if err != nil {
				t.Fatalf("%s:%d: %v", file, n+1, err)
			}
			rows++
			if apart[command] != "" {
				continue
			}
			want, programs := strings.TrimSpace(parts[0]), strings.TrimSpace(parts[1])
			r := rd.Text(command, Place{Cwd: "/srv/app", Home: "/home/u"})
			got := flags(&r)
			if want == "r" {
				reads++
				if got != "r" {
					missed++
					t.Errorf("%s:%d: %q is a read and comes out as %s; %v", filepath.Base(file), n+1, command, got, r.Problems)
				}
			} else if !agrees(want, got) {
				t.Errorf("%s:%d: %q: %s, want %s; %v", filepath.Base(file), n+1, command, got, want, r.Problems)
			}
			if programs == "-" {
				programs = ""
			}
			if p := strings.Join(r.Programs(), " "); p != programs && want != "bad" {
				named++
				t.Errorf("%s:%d: %q starts %q, want %q", filepath.Base(file), n+1, command, p, programs)
			}
		}
	}
	t.Logf("%d rows, %d set apart, %d reads of which %d were missed, %d with other programs", rows, len(apart), reads, missed, named)
}

// agrees compares flags: none of w, d, n, p may be missing, none may be there
// that is not wanted unless none is, and a read is only what is one.
func agrees(want, got string) bool {
	if (got == "r") != (want == "r") || (got == "bad") != (want == "bad") {
		return false
	}
	effects := strings.ContainsAny(want, "wdnp")
	for _, f := range "wdnp" {
		has, needs := strings.ContainsRune(got, f), strings.ContainsRune(want, f)
		if needs && !has || has && !needs && effects {
			return false
		}
	}
	return true
}
