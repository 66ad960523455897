package explain

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// problemKeys are the keys of all problems that reading can report, with where
// it does: the strings that its source passes for a parameter named key.
func problemKeys(t *testing.T) map[string]string {
	t.Helper()
	folder := filepath.Join("..", "reading")
	list, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	set := token.NewFileSet()
	var files []*ast.File
	for _, f := range list {
		if strings.HasSuffix(f.Name(), ".go") && !strings.HasSuffix(f.Name(), "_test.go") {
			file, err := parser.ParseFile(set, filepath.Join(folder, f.Name()), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, file)
		}
	}
	places := map[string][]int{} // by function, where its key stands; -1 when one of that name has none
	for _, file := range files {
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				places[f.Name.Name] = append(places[f.Name.Name], keyParameter(f.Type))
			}
		}
	}
	keys := map[string]string{}
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			name := ""
			switch f := call.Fun.(type) {
			case *ast.Ident:
				name = f.Name
			case *ast.SelectorExpr:
				name = f.Sel.Name
			}
			for _, at := range places[name] {
				if at < 0 || at >= len(call.Args) {
					continue
				}
				switch arg := call.Args[at].(type) {
				case *ast.BasicLit:
					if key, err := strconv.Unquote(arg.Value); err == nil && arg.Kind == token.STRING {
						keys[key] = set.Position(arg.Pos()).String()
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
	return keys
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

// Every problem that a reading can have is told in German too, and no text
// waits for a problem that is none.
func TestGerman(t *testing.T) {
	keys := problemKeys(t)
	if len(keys) < 40 {
		t.Errorf("only %d keys were found in the source of reading", len(keys))
	}
	for key, at := range keys {
		if german[key] == "" {
			t.Errorf("%s: the key %q has no German text", at, key)
		}
	}
	for key, text := range german {
		if keys[key] == "" {
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
