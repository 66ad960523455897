package pages

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestMissedKnowsEveryReason: each sentence with which package coverage says why a
// pattern does not cover something is in the catalogs, word by word.
func TestMissedKnowsEveryReason(t *testing.T) {
	rules := missedRules(catalogs(t)[languages[0]])
	var reasons []string
	for _, file := range []string{"pattern.go", "labels.go"} {
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", "coverage", file), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			if e, ok := n.(ast.Expr); ok {
				if text, whole := reasonIn(e); whole {
					reasons = append(reasons, text)
					return false
				}
			}
			return true
		})
	}
	done := []string{"would be read", "would be written", "is the working folder"}
	known := 0
	for _, reason := range reasons {
		if slices.Contains(done, reason) {
			continue // a part of others
		}
		said := []string{strings.ReplaceAll(reason, "\x00", "/x")}
		if strings.HasPrefix(reason, "\x00 \x00") {
			said = nil
			for _, d := range done {
				said = append(said, "/x "+d+strings.ReplaceAll(reason[len("\x00 \x00"):], "\x00", "/x"))
			}
		}
		for _, s := range said {
			if !slices.ContainsFunc(rules, func(r missedRule) bool { return r.matches.MatchString(s) }) {
				t.Errorf("no message under missed. says %q", s)
			}
			known++
		}
	}
	if known < 30 {
		t.Errorf("only %d reasons were found: %q", known, reasons)
	}
}

// reasonIn is the sentence that an expression makes, with a NUL for what is filled in.
func reasonIn(e ast.Expr) (text string, ok bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil && e.Kind == token.STRING && strings.Count(text, " ") > 1
	case *ast.BinaryExpr:
		if e.Op != token.ADD {
			return "", false
		}
		return part(e.X) + part(e.Y), strings.Count(part(e.X)+part(e.Y), " ") > 1
	case *ast.CallExpr:
		f, called := e.Fun.(*ast.SelectorExpr)
		if !called || f.Sel.Name != "Sprintf" {
			return "", false
		}
		text, ok = reasonIn(e.Args[0])
		return strings.NewReplacer("%s", "\x00", "%d", "\x00", "%q", "\x00").Replace(text), ok
	}
	return "", false
}

func part(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(e.Value); err == nil {
			return text
		}
	case *ast.BinaryExpr:
		return part(e.X) + part(e.Y)
	}
	return "\x00"
}
