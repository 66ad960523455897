package reading

import (
	"fmt"
	"strings"
	"testing"

	"vogt/internal/catalog"
)

// Signs that look like those of a shell are reported where they stand for
// themselves, and not in data.
func TestSigns(t *testing.T) {
	rd := New(catalog.New())
	for _, tt := range []struct{ line, want string }{
		{`git commit -m 'Fix „x“'`, ""},
		{`git commit -m "für „Müller“ – Änderungen"`, ""},
		{"cat > f <<E\n„text“ – mit\nE", ""},
		{`ls # „so“`, ""},
		{`rm „a b“`, "3 quote, 9 quote"},
		{`echo "$(rm „a“)"`, "11 quote, 15 quote"},
		{`echo "${x:-„}"`, "11 quote"},
		{"cat <<E\n$(rm „a“)\nE", "13 quote, 17 quote"},
		{`ls —la`, "3 dash"},
		{`git log –oneline`, "8 dash"},
		{`echo a – b`, "7 dash"},
		{`echo 'a' "–b"`, ""},
		{"ls\u00a0-la", "2 blank"},
		{"echo 'a\u00a0b'", ""},
		{`if “a”; then`, "3 quote, 7 quote, 12 syntax"},
	} {
		r := rd.Text(tt.line, Place{})
		var got []string
		for _, p := range r.Problems {
			if p.Key != "not-in-catalog" {
				got = append(got, fmt.Sprint(p.Offset, " ", p.Key))
			}
		}
		if shown := strings.Join(got, ", "); shown != tt.want {
			t.Errorf("%q: %s, want %s", tt.line, shown, tt.want)
		}
	}
}
