package reading

import (
	"strings"
	"testing"

	"vogt/internal/catalog"
	"vogt/internal/detail"
)

// FuzzText: no text makes the reader panic, and what is not accepted or not
// understood is never a read.
func FuzzText(f *testing.F) {
	for _, l := range lines {
		f.Add(l.line)
	}
	for _, l := range benchLines {
		f.Add(l)
	}
	f.Add("\uE000\uE001 x")
	f.Add("f() { g; }; g() { f; }; f")
	f.Add("while :; do x=$x$x; done")
	f.Add(`env -S "env -S 'env -S x'"`)
	f.Add(`PAGER='man x' man x`)
	f.Add("case x in *) ;;& esac; ${a[${b[$((c))]}]}")
	rd := New(catalog.New())
	f.Fuzz(func(t *testing.T, text string) {
		r := rd.Text(text, Place{Cwd: "/srv/app", Home: "/home/u"})
		programs := r.Programs()
		if !r.ParseOK && (r.Effects.ReadOnly() || len(programs) != 1 || programs[0] != "?") {
			t.Errorf("%q is not accepted and read as %v %v", text, r.Effects, programs)
		}
		for _, p := range programs {
			if p == "?" && r.Effects.ReadOnly() {
				t.Errorf("%q starts something unknown and is a read", text)
			}
		}
		if r.Risk < detail.Low || r.Risk > detail.Critical {
			t.Errorf("%q has risk %v", text, r.Risk)
		}
		for _, d := range r.Details() {
			if d.Level() > r.Risk {
				t.Errorf("%q: a detail of risk %v in a text of risk %v", text, d.Level(), r.Risk)
			}
		}
	})
}

// Texts that would take long are opaque instead: functions that call each
// other, loops in loops, braces, sheer size. The work is counted, so the bound
// does not depend on the machine.
func TestLimits(t *testing.T) {
	rd := New(catalog.New())
	calls := func(n int) string {
		var b strings.Builder
		b.WriteString("f0() { ls; }\n")
		prev := "f0"
		for i := 1; i <= n; i++ {
			name := "f" + string(rune('a'+i))
			b.WriteString(name + "() { " + strings.Repeat(prev+"; ", 8) + "}\n")
			prev = name
		}
		b.WriteString(prev)
		return b.String()
	}
	for name, text := range map[string]string{
		"functions that call each other": calls(12),
		"loops in loops":                 strings.Repeat("for a in b c; do x=$x$a; ", 14) + "ls" + strings.Repeat("; done", 14),
		"one long loop":                  "for a in b; do " + strings.Repeat("ls $a x y z\n", 9000) + "done",
		"braces":                         "echo " + strings.Repeat("{a,b}", 20),
		"a long sequence":                "echo {1..9999999}",
		"too long":                       "ls " + strings.Repeat("x", MaxText),
		"too many calls":                 strings.Repeat("ls\n", maxCalls+2),
		"env in env":                     strings.Repeat("env ", 5000) + "ls",
		"parameters that double":         "f() { ls \"$@\" \"$@\"; }; g() { f \"$@\" \"$@\"; }; h() { g \"$@\" \"$@\"; }; h " + strings.Repeat("a ", 9000),
		"texts in texts":                 strings.Repeat("eval ", 20_000) + "ls",
	} {
		r := rd.Text(text, Place{})
		if !r.Effects.Has(detail.Opaque) || r.Effects.ReadOnly() || len(r.Problems) == 0 {
			t.Errorf("%s: %v, %v", name, r.Effects, r.Problems)
		}
	}
	// A value that doubles is no longer remembered, and costs nothing.
	for _, text := range []string{
		"x=aaaaaaaaaa;" + strings.Repeat("x=$x$x;", 60) + "cat \"$x\"",
		strings.Repeat("cd a;", 3000) + "ls",
	} {
		n := rd.begin(Place{})
		file, err := rd.parse(text, false)
		if err != nil {
			t.Fatal(err)
		}
		n.walker.stmtsOf(file, &n.scope, 0)
		for name, v := range n.scope.vars {
			if len(v.text) > maxValue {
				t.Errorf("%s has %d bytes", name, len(v.text))
			}
		}
		if len(n.scope.cwd) > maxPath+8 {
			t.Errorf("the working directory has %d bytes", len(n.scope.cwd))
		}
	}
}

// 100 kB of ordinary text is read whole within the counted bound.
func TestLongText(t *testing.T) {
	rd := New(catalog.New())
	for name, text := range map[string]string{
		"many words":      "echo " + strings.Repeat("word ", 20_000),
		"many commands":   strings.Repeat("cat file.txt | grep -n pattern\n", 1500),
		"a here-document": "cat <<'E'\n" + strings.Repeat("some line of text\n", 5500) + "E\n",
		"a comment":       "# " + strings.Repeat("x", 100_000) + "\nls",
	} {
		r := rd.Text(text, Place{})
		if !r.Effects.ReadOnly() {
			t.Errorf("%s: %v, %v", name, r.Effects, r.Problems)
		}
	}
}
