package vogt_test

import (
	"fmt"
	"go/parser"
	"go/token"
	"strings"
	"testing"
)

// graphOf makes a graph from lines such as "a -> b c". What begins with "vogt/"
// is ours, and what has no dot in its first element is the standard library's.
func graphOf(lines ...string) graph {
	g := make(graph)
	add := func(name string) *listed {
		if g[name] == nil {
			pkg := &listed{ImportPath: name}
			first, _, _ := strings.Cut(name, "/")
			switch {
			case first == "vogt":
				pkg.Module = &struct {
					Path string
					Main bool
				}{"vogt", true}
			case !strings.Contains(first, "."):
				pkg.Standard = true
			}
			g[name] = pkg
		}
		return g[name]
	}
	for _, line := range lines {
		from, to, _ := strings.Cut(line, " -> ")
		pkg := add(from)
		for name := range strings.FieldsSeq(to) {
			add(name)
			pkg.Imports = append(pkg.Imports, name)
		}
	}
	return g
}

// root of a pattern: a path that it means.
func example(pattern string) string {
	if pattern == "std" {
		return "fmt"
	}
	return strings.TrimSuffix(pattern, "/...")
}

// Every entry of every import rule is broken by a graph made for it, directly
// and, where the rule says so, through another package.
func TestEveryImportRuleCanBreak(t *testing.T) {
	for _, rule := range append(importRules(), testRules...) {
		t.Run(rule.name, func(t *testing.T) {
			if rule.reason == "" || len(rule.from) == 0 || len(rule.ban)+len(rule.only) == 0 {
				t.Error("the rule says nothing, or not why")
			}
			for _, from := range rule.from {
				from := example(from)
				for _, banned := range rule.ban {
					wantBroken(t, rule, graphOf(from+" -> "+example(banned)), from+" -> "+example(banned))
					if strings.HasSuffix(banned, "/...") {
						wantBroken(t, rule, graphOf(from+" -> "+example(banned)+"/below"), example(banned)+"/below")
					}
					through := graphOf(from+" -> vogt/internal/mid", "vogt/internal/mid -> "+example(banned))
					if rule.linked {
						wantBroken(t, rule, through, from+" -> vogt/internal/mid -> "+example(banned))
					} else {
						delete(through, "vogt/internal/mid") // whose own rules are not the question
						wantBroken(t, rule, through, "")
					}
				}
				if rule.only != nil {
					wantBroken(t, rule, graphOf(from+" -> example.com/new"), "example.com/new")
					for _, allowed := range rule.only {
						wantBroken(t, rule, graphOf(from+" -> "+example(allowed)), "")
					}
				}
				wantBroken(t, rule, graphOf(from+" -> fmt"), "")
			}
			wantBroken(t, rule, graphOf("example.com/foreign -> os net database/sql testing vogt/cmd/vogt"), "")
		})
	}
}

func wantBroken(t *testing.T, rule importRule, g graph, want string) {
	t.Helper()
	got := strings.Join(rule.broken(g), "\n")
	switch {
	case want == "" && got != "":
		t.Errorf("broken although nothing is wrong: %s", got)
	case want != "" && (!strings.Contains(got, want) || !strings.Contains(got, rule.reason)):
		t.Errorf("got %q, want %q and the reason", got, want)
	}
}

// The rules together, on trees as they could be.
func TestImportRulesOnTrees(t *testing.T) {
	tests := []struct {
		name string
		tree []string
		want string // name of the one broken rule; empty: none
	}{
		{"as it should be", []string{
			"vogt/cmd/vogt -> vogt/internal/hook vogt/internal/client",
			"vogt/internal/hook -> vogt/internal/client vogt/internal/flow",
			"vogt/internal/client -> net/http vogt/internal/grant",
			"vogt/internal/flow -> vogt/internal/coverage",
			"vogt/internal/coverage -> vogt/internal/detail vogt/internal/grant slices",
			"vogt/cmd/vogtd -> vogt/internal/pages vogt/internal/httpapi modernc.org/sqlite",
		}, ""},
		{"a driver behind two corners", []string{
			"vogt/cmd/vogt -> vogt/internal/client", "vogt/internal/client -> vogt/internal/cache", "vogt/internal/cache -> modernc.org/sqlite",
		}, "vogt starts fast and cannot open the database"},
		{"a door in a door", []string{"vogt/internal/shell/engine -> vogt/internal/hook"}, "doors stay apart"},
		{"a file in a decision", []string{"vogt/internal/coverage -> os"}, "coverage is pure"},
		{"a process in a decision", []string{"vogt/internal/coverage -> os/exec"}, "coverage is pure"},
		{"dice in a transition", []string{"vogt/internal/grant -> math/rand/v2"}, "grants are pure"},
		{"words with machinery", []string{"vogt/internal/detail -> vogt/internal/grant"}, "vocabulary"},
		{"web server as root", []string{"vogt/cmd/vogt-elevated -> vogt/internal/elevated", "vogt/internal/elevated -> net/http"}, "vogt-elevated has a closed list"},
		{"a library as root", []string{"vogt/cmd/vogt-elevated -> vogt/internal/elevated", "vogt/internal/elevated -> github.com/go-jose/go-jose/v4"}, "vogt-elevated has a closed list"},
		{"a socket as root", []string{"vogt/cmd/vogt-elevated -> net golang.org/x/sys/unix"}, ""},
		{"the wall makes connections", []string{"vogt/cmd/vogt-confine -> net"}, "vogt-confine has a closed list"},
		{"the wall counts addresses", []string{"vogt/cmd/vogt-confine -> net/netip"}, ""},
		{"the judge acts", []string{"vogt/cmd/vogtd -> vogt/internal/execution/confine"}, "vogtd executes nothing for an agent"},
		{"a command as a library", []string{"vogt/internal/client -> vogt/cmd/vogt"}, "commands are nobody's library"},
		{"a command in a command", []string{"vogt/cmd/vogtd -> vogt/cmd/vogt/messages"}, "commands stay apart"},
		{"a command in pieces", []string{"vogt/cmd/vogt -> vogt/cmd/vogt/messages"}, ""},
		{"test flags in a binary", []string{"vogt/cmd/vogt -> vogt/internal/client", "vogt/internal/client -> testing"}, "no side effects by import"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := graphOf(tt.tree...)
			var broken []string
			for _, rule := range importRules() {
				if len(rule.broken(g)) > 0 {
					broken = append(broken, rule.name)
				}
			}
			if got := strings.Join(broken, ", "); got != tt.want {
				t.Errorf("broken: %q, want %q", got, tt.want)
			}
		})
	}
}

func TestOtherGraphRulesCanBreak(t *testing.T) {
	pages, api := together.both[0], together.both[1]
	for line, want := range map[string]bool{
		"vogt/cmd/vogtd -> " + pages + " " + api:         false,
		"vogt/cmd/vogt -> " + pages:                      false,
		"vogt/internal/other -> " + pages + " " + api:    true,
		"vogt/internal/other -> " + api + " fmt strings": false,
	} {
		if got := len(together.broken(graphOf(line))) > 0; got != want {
			t.Errorf("together on %q: broken %v, want %v", line, got, want)
		}
	}
	for line, want := range map[string]bool{
		"vogt/cmd/vogtd -> vogt/internal/store/storetest":                       true,
		"vogt/internal/authoritytest -> vogt/internal/store/storetest":          false,
		"vogt/internal/store -> vogt/internal/detail testing example.com/xtest": false,
	} {
		if got := len(testSupport(graphOf(line))) > 0; got != want {
			t.Errorf("testSupport on %q: broken %v, want %v", line, got, want)
		}
	}
	g := graphOf("vogt/internal/x -> fmt")
	g["vogt/internal/x"].XTestImports = []string{"github.com/stretchr/testify/assert"}
	g["github.com/stretchr/testify/assert"] = &listed{ImportPath: "github.com/stretchr/testify/assert"}
	if len(testRules[0].broken(g)) != 0 || len(testRules[0].broken(g.withTests())) != 1 {
		t.Error("an assertion library in a test is not found, or found outside of tests")
	}
	for name, want := range map[string]bool{"util": true, "fileutil": true, "helpers": true, "common": true, "grant": false, "utility": false, "database": false, "base": true} {
		if got := len(vagueName("vogt/internal/"+name, name)) > 0; got != want {
			t.Errorf("vagueName(%s) = %v, want %v", name, got, want)
		}
	}
}

func sourceOf(t *testing.T, texts ...string) source {
	t.Helper()
	s := source{fset: token.NewFileSet()}
	for i, text := range texts {
		file, err := parser.ParseFile(s.fset, fmt.Sprintf("f%d.go", i), text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		s.files = append(s.files, file)
	}
	return s
}

func TestSourceRulesCanBreak(t *testing.T) {
	comment := func(s source) []string { return packageComment(s) }
	long := func(s source) []string { return longBodies(s, "vogt/internal/p") }
	clock := func(s source) []string { return calls(s, "time", clockCalls, "why") }
	body := func(lines int) string { return "package p\nfunc f() {\n" + strings.Repeat("_ = 1\n", lines-2) + "}\n" }
	tests := []struct {
		name  string
		check func(source) []string
		text  string
		want  int // problems
	}{
		{"no comment", comment, "package p", 1},
		{"one sentence", comment, "// Package p is short.\npackage p", 1},
		{"two sentences", comment, "// Package p is short. It leaves out\n// everything else.\npackage p", 0},
		{"comment that belongs to nothing", comment, "// Package p is short. It leaves out much.\n\npackage p", 1},
		{"dots in names", comment, "// Package p reads a.b and c.d\npackage p", 1},

		{"init", initFunctions, "package p\nfunc init() {}", 1},
		{"two inits", initFunctions, "package p\nfunc init() {}\nfunc init() {}", 2},
		{"method named init", initFunctions, "package p\ntype T int\nfunc (T) init() {}", 0},

		{"as long as may be", long, body(maxFunction), 0},
		{"too long", long, body(maxFunction + 1), 1},

		{"clock", clock, "package p\nimport \"time\"\nvar f = time.Now", 1},
		{"clock under another name", clock, "package p\nimport t \"time\"\nfunc f() { t.Sleep(1); _ = t.Since }", 2},
		{"time without clock", clock, "package p\nimport \"time\"\nfunc f(a, b time.Time) time.Duration { return a.Sub(b) }", 0},
		{"another Now", clock, "package p\nimport \"time\"\ntype T struct{ Now func() time.Time }\nfunc f(t T) { t.Now() }", 0},
		{"a false clock", clock, "package p\nimport (\n\"testing/synctest\"\n\"time\"\n)\nfunc f() { synctest.Test(nil, func() { time.Sleep(1) }) }", 0},
		{"beside a false clock", clock, "package p\nimport (\n\"testing/synctest\"\n\"time\"\n)\nfunc f() { synctest.Test(nil, nil); time.Sleep(1) }", 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.check(sourceOf(t, tt.text)); len(got) != tt.want {
				t.Errorf("got %d problems, want %d: %v", len(got), tt.want, got)
			}
		})
	}
}

func TestMutableVariablesCanBeFound(t *testing.T) {
	tests := []struct{ name, text, want string }{ // want: names of the variables found
		{"table", `var names = [...]string{"a"}; func f() string { return names[0] }`, ""},
		{"map that is read", `var m = map[string]int{"a": 1}; func f() int { return m["a"] }`, ""},
		{"error", `import "errors"; var ErrX = errors.New("x")`, ""},
		{"error with a format", `import "fmt"; var ErrX = fmt.Errorf("x %d", 1)`, ""},
		{"exported pattern", `import "regexp"; var R = regexp.MustCompile("x")`, ""},
		{"interface check", `import "io"; type T int; var _ io.Reader = T(0)`, ""},
		{"embedded file", "import _ \"embed\"\n//go:embed x\nvar x string", ""},
		{"computed once", `import "sync"; var x = sync.OnceValue(func() int { return 1 })`, ""},
		{"local of the same name", `var x = 1; func f() { x := 2; x = 3; x++; _ = &x }`, ""},
		{"field of the same name", `var x = 1; type T struct{ x int }; func f(t *T) { t.x = x }`, ""},
		{"parameter of the same name", `var m = map[int]int{1: 1}; func f(m map[int]int) { m[1] = 2; delete(m, 1) }`, ""},

		{"assigned", `var x = 1; func f() { x = 2 }`, "x"},
		{"assigned with an operator", `var x = 1; func f() { x += 2 }`, "x"},
		{"counted", `var x = 1; func f() { x++ }`, "x"},
		{"map entry", `var m = map[int]int{}; func f() { m[1] = 2 }`, "m"},
		{"field", `type T struct{ a struct{ b int } }; var x = T{}; func f() { x.a.b = 2 }`, "x"},
		{"through a pointer", `var x = &struct{ a int }{}; func f() { (*x).a = 2 }`, "x"},
		{"deleted", `var m = map[int]int{1: 1}; func f() { delete(m, 1) }`, "m"},
		{"cleared", `var m = []int{1}; func f() { clear(m) }`, "m"},
		{"copied into", `var m = [2]int{1}; func f() { copy(m[:], []int{2}) }`, "m"},
		{"address taken", `var x = 1; func f() *int { return &x }`, "x"},
		{"address of an element", `var x = []int{1}; func f() *int { return &x[0] }`, "x"},
		{"loop variable", `var x = 1; func f() { for x = range 3 { } }`, "x"},
		{"among others", `var x = 1; func f() (y int) { y, x = 1, 2; return }`, "x"},
		{"without a value", `var x int`, "x"},
		{"mutex", `import "sync"; var mu = sync.Mutex{}`, "mu"},
		{"pool", `import s "sync"; var p = &s.Pool{}`, "p"},
		{"atomic of a type", `import "sync/atomic"; var p = atomic.Pointer[int]{}`, "p"},
		{"channel", `var c = make(chan int)`, "c"},
		{"pointer", `var p = new(int)`, "p"},
		{"exported table", `var Names = []string{"a"}`, "Names"},
		{"exported number", `var Limit = 10`, "Limit"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			text := "package p\n" + tt.text
			problems := mutableVariables(sourceOf(t, text), "vogt/internal/p")
			want := "the package-level variable " + tt.want + " "
			switch {
			case tt.want == "" && len(problems) > 0:
				t.Errorf("found %v", problems)
			case tt.want != "" && (len(problems) == 0 || !strings.Contains(problems[0], want)):
				t.Errorf("found %v, want %s", problems, tt.want)
			}
		})
	}
	// A variable of one file that another file changes.
	if got := mutableVariables(sourceOf(t, "package p\nvar x = 1", "package p\nfunc f() { x = 2 }"), "vogt/internal/p"); len(got) != 1 {
		t.Errorf("across files: %v", got)
	}
	// What the list permits.
	if got := mutableVariables(sourceOf(t, "package version\nvar stamp string"), "vogt/internal/version"); len(got) != 0 {
		t.Errorf("listed: %v", got)
	}
}
