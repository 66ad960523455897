package explain

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"vogt/internal/reading"
	"vogt/internal/trap"
)

// reported is a problem as the source of reading writes it: names and numbers
// that differ from text to text are stood for by others.
type reported struct {
	at   string
	key  string
	text string   // empty where the source hands on what others say
	args []string // what stands in text for what differs
}

// sources parses the files of a package.
func sources(t *testing.T, set *token.FileSet, folder string) (files []*ast.File) {
	t.Helper()
	list, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range list {
		if strings.HasSuffix(f.Name(), ".go") && !strings.HasSuffix(f.Name(), "_test.go") {
			file, err := parser.ParseFile(set, filepath.Join(folder, f.Name()), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, file)
		}
	}
	return files
}

// callee is the name of the function that is called.
func callee(call *ast.CallExpr) string {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		return f.Sel.Name
	}
	return ""
}

// problems are all problems that reading can report: the strings that its
// source passes for parameters named key and text.
func problems(t *testing.T) (out []reported) {
	t.Helper()
	set := token.NewFileSet()
	files := sources(t, set, filepath.Join("..", "reading"))
	places := map[string][]int{} // by function, where its key stands; -1 when one of that name has none
	for _, file := range files {
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				places[f.Name.Name] = append(places[f.Name.Name], keyParameter(f.Type))
			}
		}
	}
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			name := callee(call)
			for _, at := range places[name] {
				if at < 0 || at+1 >= len(call.Args) {
					continue
				}
				switch arg := call.Args[at].(type) {
				case *ast.BasicLit:
					if key, err := strconv.Unquote(arg.Value); err == nil && arg.Kind == token.STRING {
						p := reported{at: set.Position(arg.Pos()).String(), key: key}
						if _, handedOn := call.Args[at+1].(*ast.Ident); !handedOn {
							p.text = p.write(t, call.Args[at+1])
						}
						out = append(out, p)
					}
				case *ast.Ident: // handed on, or a function of the same name without a key
					if arg.Name != "key" && len(places[name]) == 1 {
						t.Errorf("%s: %s gets its key from %s, which this test cannot follow", set.Position(arg.Pos()), name, arg.Name)
					}
				}
			}
			return true
		})
	}
	return out
}

// write gives the text of an expression, with stand-ins for what it computes.
func (p *reported) write(t *testing.T, x ast.Expr) string {
	standIn := func(text string) string {
		p.args = append(p.args, text)
		return text
	}
	switch x := x.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(x.Value); err == nil {
			return text
		}
	case *ast.BinaryExpr:
		if x.Op == token.ADD {
			return p.write(t, x.X) + p.write(t, x.Y)
		}
	case *ast.CallExpr:
		if callee(x) != "Sprintf" {
			break
		}
		text := p.write(t, x.Args[0])
		for i, verb := range []string{"%q", "U+%04X", "%d", "%d"} {
			if sign := [...]string{"'„'", "U+201E", "4711", "4712"}[i]; strings.Contains(text, verb) {
				text = strings.Replace(text, verb, sign, 1)
				if i == 0 {
					sign = "„"
				}
				p.args = append(p.args, sign)
			}
		}
		if strings.Contains(text, "%") {
			t.Errorf("%s: the format %q cannot be followed", p.at, text)
		}
		return text
	}
	return standIn("stand-in-" + strconv.Itoa(len(p.args)+1))
}

// keyParameter is where a function has the parameter key of type string, or -1.
func keyParameter(f *ast.FuncType) int {
	at := 0
	for _, field := range f.Params.List {
		kind, isName := field.Type.(*ast.Ident)
		for _, name := range field.Names {
			// A problem has a key and a text, one after the other.
			if name.Name == "key" && isName && kind.Name == "string" && hasText(f) {
				return at
			}
			at++
		}
	}
	return -1
}

func hasText(f *ast.FuncType) bool {
	for _, field := range f.Params.List {
		for _, name := range field.Names {
			if name.Name == "text" {
				return true
			}
		}
	}
	return false
}

// Every problem that a reading can have is told in German too, with the same
// details, and no sentence waits for a problem that is none.
func TestGerman(t *testing.T) {
	keys, used := map[string]bool{}, map[sentence]bool{}
	for _, p := range problems(t) {
		keys[p.key] = true
		if german[p.key] == "" {
			t.Errorf("%s: the key %q has no German text: add it to german.go", p.at, p.key)
		}
		if p.text == "" {
			continue
		}
		var found *sentence
		for _, s := range sentences[p.key] {
			if _, ok := match(s.english, p.text); ok {
				found = &s
				break
			}
		}
		if found == nil {
			t.Errorf("%s: %s: %q has no German sentence of its own: add it to sentences.go", p.at, p.key, p.text)
			continue
		}
		used[*found] = true
		said := Note(reading.Problem{Key: p.key, Text: p.text}, trap.German)
		for _, arg := range p.args {
			if !strings.Contains(said, arg) {
				t.Errorf("%s: %q becomes %q, which does not say %s", p.at, p.text, said, arg)
			}
		}
		if strings.ContainsAny(said, "%") || !strings.HasSuffix(said, ".") {
			t.Errorf("%s: %q becomes %q", p.at, p.text, said)
		}
	}
	if len(keys) < 40 {
		t.Errorf("only %d keys were found in the source of reading", len(keys))
	}
	for key, list := range sentences {
		for _, s := range list {
			if !used[s] && s.english != "%1" {
				t.Errorf("%s: no reading says %q", key, s.english)
			}
		}
	}
	for key, text := range german {
		if !keys[key] {
			t.Errorf("%q has a German text, and no reading reports it", key)
		}
		if text == "" || strings.TrimSpace(text) != text || strings.ContainsAny(text, "\n\t\x1b") || !strings.HasSuffix(text, ".") || !utf8.ValidString(text) || len(text) > 120 {
			t.Errorf("%q: a note is a short sentence: %q", key, text)
		}
		for _, word := range []string{"fuer", "ueber", "koenn", "waehl", "laeuf", "loesch", "Anfuehr", "aender", "ausfuehr"} {
			if strings.Contains(text, word) {
				t.Errorf("%q: %q holds %q", key, text, word)
			}
		}
	}
}

// What the catalog says of a call, and what is said of a text that no shell
// accepts, is told in German too.
func TestGermanReasons(t *testing.T) {
	set := token.NewFileSet()
	check := func(list []sentence, text, at string) {
		if !slices.ContainsFunc(list, func(s sentence) bool { return s.english == text }) {
			t.Errorf("%s: %q has no German words: add them to sentences.go", at, text)
		}
	}
	for folder, list := range map[string][]sentence{filepath.Join("..", "catalog"): whys, filepath.Join("..", "reading"): parserTexts} {
		n := 0
		for _, file := range sources(t, set, folder) {
			ast.Inspect(file, func(x ast.Node) bool {
				var arg ast.Expr
				switch x := x.(type) {
				case *ast.CallExpr:
					if callee(x) == "opaque" && len(x.Args) == 2 {
						arg = x.Args[1]
					}
				case *ast.CompositeLit:
					if kind, ok := x.Type.(*ast.Ident); ok && kind.Name == "refusedError" && len(x.Elts) == 1 {
						arg = x.Elts[0]
					}
				}
				if lit, ok := arg.(*ast.BasicLit); ok && lit.Kind == token.STRING {
					n++
					text, _ := strconv.Unquote(lit.Value)
					check(list, text, set.Position(lit.Pos()).String())
				}
				return true
			})
		}
		if n < 4 {
			t.Errorf("%s: only %d reasons were found", folder, n)
		}
	}
}

// The parser's messages for what people get wrong are told in German, with
// the words that they are about, and with their place.
func TestGermanSyntax(t *testing.T) {
	rd := reader(t)
	for line, want := range map[string]string{
		"if true":           "Zeile 1, Spalte 1: Kein gültiger Shell-Text: ",
		"echo \"a":          "Zeile 1, Spalte 6: Kein gültiger Shell-Text: bis zum Ende fehlt das schließende Anführungszeichen `\"`.",
		"echo 'a":           "Zeile 1, Spalte 6: Kein gültiger Shell-Text: bis zum Ende fehlt das schließende Anführungszeichen `'`.",
		"ls;\n  ; ls":       "Zeile 2, Spalte 3: Kein gültiger Shell-Text: `;` steht nur unmittelbar hinter einer Anweisung.",
		"echo ä; )":         "Zeile 1, Spalte 9: Kein gültiger Shell-Text: `)` kann nur eine Subshell schließen.",
		"ls | | cat":        "Zeile 1, Spalte 4: Kein gültiger Shell-Text: auf `|` muss eine Anweisung folgen.",
		"fi":                "Zeile 1, Spalte 1: Kein gültiger Shell-Text: `fi` kann nur ein `if` beenden.",
		"done":              "Zeile 1, Spalte 1: Kein gültiger Shell-Text: `done` kann nur eine Schleife beenden.",
		"echo $(ls":         "Zeile 1, Spalte 6: Kein gültiger Shell-Text: bis zum Ende fehlt zu `$(` das `)`.",
		"for i in a; do ls": "Zeile 1, Spalte 1: Kein gültiger Shell-Text: eine Anweisung mit `for` muss mit `done` enden.",
		"cat <<E\na\n":      "",
		"a() b":             "",
		"echo ${a":          "",
		"[[ a b":            "",
		"case a in b":       "",
		"( ls":              "",
		"{ ls":              "",
		"echo >":            "",
		"x=(a (b))":         "",
		"echo $((1 +":       "",
		"while true; do":    "",
		"!":                 "",
		"function":          "",
		"echo ${a b}":       "",
		"ls )":              "",
		"}":                 "",
	} {
		r := rd.Text(line, place)
		if r.ParseOK {
			continue
		}
		answer := Of("", line, &r, nil, trap.German)
		english := Of("", line, &r, nil, trap.English)
		got := answer.Problems[0].Text
		if want != "" && !strings.HasPrefix(got, want) {
			t.Errorf("%q: %s, want %s", line, got, want)
		}
		_, reason, _ := strings.Cut(english.Problems[0].Text, ": ")
		if strings.Contains(got, reason) || !strings.HasPrefix(english.Problems[0].Text, "line ") {
			t.Errorf("%q: %s; in English %s", line, got, english.Problems[0].Text)
		}
	}
}

func TestNote(t *testing.T) {
	for _, tt := range []struct {
		key, text, english, german string
	}{
		{"quote", `'„' is no quote for a shell`, "„ (U+201E) is no quote for a shell", "„ (U+201E) ist für eine Shell kein Anführungszeichen."},
		{"mixed-script", `a word mixes Latin letters with 'а' (U+0430), which may look like one`, "a word mixes Latin letters with а (U+0430), which may look like one", "Ein Wort mischt lateinische Buchstaben mit а (U+0430), das einem gleichen kann."},
		{"invisible", "U+200B is not visible", "U+200B is not visible", "U+200B ist unsichtbar."},
		{"bidi", "U+202E changes the direction in which the text is shown", "U+202E changes the direction in which the text is shown", "U+202E ändert die Richtung, in der der Text erscheint."},
		{"not-in-catalog", "rm a; ls is not in the catalog", `"rm a; ls" is not in the catalog`, `"rm a; ls" steht nicht im Katalog.`},
		{"not-in-catalog", "foo is not in the catalog", "foo is not in the catalog", "foo steht nicht im Katalog."},
		{"catalog", "sed: the word may be none or several", "sed: the word may be none or several", "sed: das Wort kann keines oder mehrere sein."},
		{"catalog", "sed: something new", "sed: something new", "sed: something new."},
		{"nested-syntax", "a text that a shell reads does not parse: `if` must be followed by a statement list", "a text that a shell reads does not parse: `if` must be followed by a statement list", "Ein Text, den eine Shell liest, ist kein gültiger Shell-Text: auf `if` müssen Anweisungen folgen."},
		{"syntax", "3:4: extended globs are a bash feature; tried parsing as posix", "extended globs are a bash feature; tried parsing as posix", "Kein gültiger Shell-Text: extended globs gehört zu bash, gelesen wurde als posix."},
		{"quote", "something new", "something new", german["quote"]},
		{"no such key", "something new", "something new", "something new"},
	} {
		p := reading.Problem{Key: tt.key, Text: tt.text}
		if got := Note(p, trap.English); got != tt.english {
			t.Errorf("%s: %q, want %q", tt.text, got, tt.english)
		}
		if got := Note(p, trap.German); got != tt.german {
			t.Errorf("%s: %q, want %q", tt.text, got, tt.german)
		}
	}
}

// Whoever asks for the sentences gets a copy: one reader cannot change what
// the next is told.
func TestNotes(t *testing.T) {
	for _, tag := range []string{"", "en", "fr", "DE", "de-AT"} {
		if notes := Notes(tag); notes != nil {
			t.Errorf("%q has %d sentences", tag, len(notes))
		}
	}
	notes := Notes("de")
	if len(notes) != len(german) || notes["syntax"] != german["syntax"] {
		t.Errorf("%d sentences, want %d", len(notes), len(german))
	}
	notes["syntax"] = "changed"
	if Notes("de")["syntax"] == "changed" {
		t.Error("the sentences can be changed from outside")
	}
}

// Whatever a text holds, a note about it is a sentence, and what is printed
// commands no terminal.
func FuzzNote(f *testing.F) {
	for key, list := range sentences {
		for _, s := range list {
			f.Add(key, s.english)
		}
	}
	f.Add("quote", "'\\x")
	f.Add("syntax", "1:2: ")
	f.Fuzz(func(t *testing.T, key, text string) {
		p := reading.Problem{Key: key, Text: text}
		for _, lang := range []trap.Language{trap.English, trap.German} {
			if note := noteOf(p, lang, visible); strings.ContainsAny(note, "\x1b\n\r\x00") {
				t.Errorf("%q: %q", text, note)
			}
			Note(p, lang)
		}
	})
}
