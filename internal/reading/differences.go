package reading

import (
	"errors"
	"iter"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// This file holds what the parser and bash read differently, as far as it is
// known. Comparing both on generated texts finds more; each find belongs here.

// maxOpenDocuments is how many here-documents the end of a text may cut off.
const maxOpenDocuments = 4

// openDocument returns the delimiter of a here-document that has no end.
func openDocument(err error) (delimiter string, open bool) {
	var parse syntax.ParseError
	if !errors.As(err, &parse) {
		return "", false
	}
	rest, ok := strings.CutPrefix(parse.Text, "unclosed here-document `")
	if !ok {
		if rest, ok = strings.CutPrefix(parse.Text, "unclosed here-document '"); !ok {
			return "", false
		}
	}
	rest = strings.TrimRight(rest, "`'")
	return rest, rest != "" && !strings.ContainsAny(rest, "\n$`")
}

// joinedComment returns the offset of a comment that ends in a backslash, or
// -1. The parser goes on with the next line there, bash does not.
func joinedComment(text string) int {
	if !strings.Contains(text, "\\\n") || strings.IndexByte(text, '#') < 0 {
		return -1
	}
	file, err := syntax.NewParser(syntax.KeepComments(true)).Parse(strings.NewReader(text), "")
	if err != nil {
		return 0
	}
	at := -1
	syntax.Walk(file, func(n syntax.Node) bool {
		if c, ok := n.(*syntax.Comment); ok && at < 0 {
			from, to := int(c.Pos().Offset()), int(c.End().Offset())
			if from < to && to <= len(text) && (strings.HasSuffix(text[from:to], "\\") || strings.Contains(text[from:to], "\\\n")) {
				at = from
			}
		}
		return at < 0
	})
	return at
}

// maxNesting is how deep brackets may stand in each other. The parser goes
// down one call a level.
const maxNesting = 2000

// tooDeep reports whether brackets stand in each other deeper than is read.
// Quotes are not looked at: a text that has so many of them in a row is none
// that anybody wrote.
func tooDeep(text string) bool {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '(', '{', '[', '`':
			if depth++; depth > maxNesting {
				return true
			}
		case ')', '}', ']':
			depth = max(depth-1, 0)
		case '\n':
			if depth > 0 && i > 0 && text[i-1] == '\n' {
				depth--
			}
		}
	}
	return false
}

// maxRewrites bounds how many other wordings of a text are tried.
const maxRewrites = 24

var (
	doubleNegation  = regexp.MustCompile(`!\s+!\s`)
	timedNegation   = regexp.MustCompile(`\btime(\s+-p)?(\s+--)?\s+!\s`)
	functionKeyword = regexp.MustCompile(`\bfunction\s+[^\s()]+(\s+(?:if|for|while|until|case|select|\[\[|\()|\s*\n)`)
)

// otherWords yields texts that mean for bash what the given one means, in words
// that the parser takes, if it does not take the given one:
//
//   - two brackets that begin no arithmetic begin two subshells,
//   - an exclamation mark before a bracket negates a subshell,
//   - a pipeline may be negated twice, and behind time,
//   - the body of a function that follows the keyword is any compound command.
//
// It is a guess at which of them is meant: who uses one takes the text for
// opaque.
func otherWords(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		if len(text) > 16<<10 {
			return
		}
		left := maxRewrites
		try := func(other string) bool {
			left--
			return left >= 0 && yield(other)
		}
		for _, pair := range [][2]string{{"((", "( ("}, {"!(", "! ("}} {
			for from := 0; ; {
				i := strings.Index(text[from:], pair[0])
				if i < 0 {
					break
				}
				if i += from; !try(text[:i] + pair[1] + text[i+2:]) {
					return
				}
				from = i + 1
			}
			if strings.Count(text, pair[0]) > 1 && !try(strings.ReplaceAll(text, pair[0], pair[1])) {
				return
			}
		}
		for other := text; ; {
			span := doubleNegation.FindStringIndex(other)
			if span == nil {
				break
			}
			if other = other[:span[0]] + other[span[1]:]; !try(other) {
				return
			}
		}
		if other := timedNegation.ReplaceAllString(text, "! time$1$2 "); other != text && !try(other) {
			return
		}
		for _, span := range functionKeyword.FindAllStringSubmatchIndex(text, -1) {
			if !try(text[:span[2]] + "()" + text[span[2]:]) {
				return
			}
		}
	}
}

// refusedError is a construct that bash refuses and the parser takes.
type refusedError struct{ text string }

func (e refusedError) Error() string { return e.text }

// refused reports a construct that bash refuses though the parser takes it.
func refused(text string, file *syntax.File, extglob bool) error {
	functions := strings.Contains(text, "()") || strings.Contains(text, "function") || strings.Contains(text, "( ")
	globs := false
	for i := 1; i < len(text) && !globs; i++ {
		globs = text[i] == '(' && strings.IndexByte("?*+@!", text[i-1]) >= 0
	}
	words := strings.Contains(text, "else") || strings.Contains(text, "elif") || strings.Contains(text, "in ") || strings.Contains(text, "[[") && strings.ContainsAny(text, "\n#")
	if !functions && !globs && !words {
		return nil
	}
	var found error
	var on []syntax.Node // where extended patterns are always on
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.FuncDecl:
			if n.Body != nil && !compoundBody(n.Body.Cmd) {
				found = refusedError{"the body of a function must be a compound command"}
			}
		case *syntax.CallExpr:
			if len(n.Args) > 0 && len(n.Assigns) == 0 {
				switch n.Args[0].Lit() {
				case "else", "elif", "in":
					found = refusedError{"a reserved word stands where a command begins"}
				}
			}
		case *syntax.BinaryTest:
			switch n.Op {
			case syntax.TsMatch, syntax.TsMatchShort, syntax.TsNoMatch, syntax.TsReMatch:
				on = append(on, n.Y)
			}
		case *syntax.ExtGlob:
			if slices.ContainsFunc(on, func(o syntax.Node) bool {
				return o.Pos().Offset() <= n.Pos().Offset() && n.End().Offset() <= o.End().Offset()
			}) {
				break
			}
			// shopt counts from the line after its own.
			if at := int(n.Pos().Offset()); !extglob && (at > len(text) || !strings.Contains(text[:max(0, strings.LastIndexByte(text[:at], '\n'))], "extglob")) {
				found = refusedError{"extended patterns are off unless `shopt -s extglob` came before"}
			}
		case *syntax.TestClause:
			if from, to := int(n.Pos().Offset()), int(n.Right.Offset()); from <= to && to <= len(text) {
				// Where a line may break in it differs; so does a bare hash.
				if inner := text[from:to]; strings.Contains(inner, "\n") || strings.Contains(inner, "=~ #") {
					found = refusedError{"[[ ]] is broken into lines, which shells accept only in some places"}
				}
			}
		}
		return found == nil
	})
	return found
}

// compoundBody reports whether a command may be the body of a function (bash
// manual, Shell Functions).
func compoundBody(c syntax.Command) bool {
	switch c := c.(type) {
	case *syntax.BinaryCmd:
		// The parser takes the rest of a pipeline into the body; see funcDecl.
		return (c.Op == syntax.Pipe || c.Op == syntax.PipeAll) && compoundBody(c.X.Cmd)
	case *syntax.Block, *syntax.Subshell, *syntax.IfClause, *syntax.WhileClause, *syntax.ForClause, *syntax.CaseClause, *syntax.ArithmCmd, *syntax.TestClause:
		return true
	}
	return false
}
