package reading

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"vogt/internal/catalog"
)

// hostile are texts of about 100 kB that are made to cost much: what grows
// with the square of their size once did.
func hostile() map[string]string {
	const size = 95_000
	fill := func(unit string) string { return strings.Repeat(unit, size/len(unit)) }
	nest := func(open, end string, n int) string { return strings.Repeat(open, n) + "a" + strings.Repeat(end, n) }
	many := func(format string, n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	vars := many("v%d=1;", 6000)
	return map[string]string{
		"folders of folders":         "tar " + fill("-C a "),
		"deeper and deeper":          fill("cd x; rm y;"),
		"git in folders":             "git " + fill("-C a ") + "status",
		"long path of sinks":         "rm " + strings.Repeat(".git/", size/5),
		"many long paths of sinks":   "rm " + strings.Repeat(strings.Repeat(".git/", 200)+" ", size/1000),
		"variables and cases":        vars + "case $x in " + strings.Repeat("a) b;; ", 5000) + "esac",
		"variables set in cases":     vars + "case $x in " + strings.Repeat("a) v1=c;; ", 5000) + "esac",
		"variables and loops":        vars + strings.Repeat("while a; do v1=$b; done;", 2000),
		"variables in nested loops":  vars + nest("while a;do v1=$b;", ";done", 1000),
		"variables and subshells":    vars + strings.Repeat("(a);", 10_000),
		"functions of many meanings": many("if a;then f(){ a%d;};fi;", 4000) + "f",
		"flags":                      "declare " + fill("-a "),
		"export and dashes":          "export " + fill("-- "),
		"open braces":                fill(nest("{a,", "}", 300) + "\n"),
		"expansions in expansions":   fill(nest(`"${a:-`, `}"`, 1000) + "\n"),
		"searches in searches":       fill("find . -exec "),
		"one behind the other":       fill("xargs "),
		"loops in loops":             nest("while a;do ", ";done", 5000),
		"words that double":          "x=aaaaaaaaaa;" + strings.Repeat("x=$x$x;", 1000) + "ls $x",
		"arguments that double":      "set -- a b;" + strings.Repeat(`set -- "$@" "$@";`, 1000) + `ls "$@"`,
		"functions that double":      many("f%[1]d(){ g%[1]d;};", 1000) + "f(){ f;f;};f",
		"text in text":               `x='eval "$x";eval "$x"';eval "$x"`,
		"patterns":                   fill("rsync " + strings.Repeat("a* ", 333) + "\n"),
		"subscripts":                 fill("a[1]=2 "),
		"sequences":                  fill("{1..9} "),
	}
}

// TestHostile bounds the memory that a text may make the reader use: what it
// allocates is what it does.
func TestHostile(t *testing.T) {
	const limit = 96 << 20
	rd := New(catalog.New())
	at := Place{Cwd: "/w", Home: "/home/u"}
	rd.Text("tar git rm rsync", at)
	for name, text := range hostile() {
		if len(text) > MaxText {
			t.Errorf("%s: %d bytes are refused at once", name, len(text))
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r := rd.Text(text, at)
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; used > limit {
			t.Errorf("%s: %d MB for %d kB of text", name, used>>20, len(text)>>10)
		}
		if len(r.Calls) > maxCalls+2 {
			t.Errorf("%s: %d calls", name, len(r.Calls))
		}
	}
}

// BenchmarkHostile is the cost of the worst texts that are known.
func BenchmarkHostile(b *testing.B) {
	rd := New(catalog.New())
	for name, text := range hostile() {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				rd.Text(text, Place{Cwd: "/w", Home: "/home/u"})
			}
		})
	}
}
