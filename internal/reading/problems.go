package reading

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"

	"vogt/internal/detail"
)

// inspect reports characters that make a text look like another one. They
// have no effect on what is read. odd says that there are signs that look like
// those of a shell, which are data inside quotes: where they stand is known
// once the text is parsed.
func (w *walker) inspect(text string) (odd bool) {
	plainText := true
	for i := 0; i < len(text); i++ {
		if c := text[i]; c >= utf8.RuneSelf || c < ' ' && c != '\n' && c != '\t' || c == 0x7f {
			plainText = false
			break
		}
	}
	if plainText {
		return false
	}
	inWord, latin, other, at := false, false, rune(0), 0
	flush := func() {
		if inWord && latin && other != 0 {
			w.problem(at, "mixed-script", fmt.Sprintf("a word mixes Latin letters with %q (U+%04X), which may look like one", other, other))
		}
		inWord, latin, other = false, false, 0
	}
	for i, r := range text {
		switch {
		case r == utf8.RuneError:
			w.problem(i, "invalid-utf8", "the text is not valid UTF-8")
		case r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r == 0x200e || r == 0x200f || r == 0x061c:
			w.problem(i, "bidi", fmt.Sprintf("U+%04X changes the direction in which the text is shown", r))
		case unicode.Is(unicode.Cf, r) || r == 0x00ad || r == 0x115f || r == 0x1160 || r == 0x3164 || r == 0xffa0:
			w.problem(i, "invisible", fmt.Sprintf("U+%04X is not visible", r))
		case unicode.IsControl(r) && r != '\n' && r != '\t':
			w.problem(i, "control", fmt.Sprintf("the control character U+%04X may hide or change what is shown", r))
		case r >= utf8.RuneSelf && signOf(r) != noSign:
			odd = true
		}
		if !unicode.IsLetter(r) {
			flush()
			continue
		}
		if !inWord {
			inWord, at = true, i
		}
		switch {
		case unicode.Is(unicode.Latin, r):
			latin = true
		case unicode.In(r, unicode.Cyrillic, unicode.Greek, unicode.Armenian, unicode.Cherokee):
			other = r
		}
	}
	flush()
	return odd
}

// sign is a character that looks like one that means something to a shell.
type sign int

const (
	noSign sign = iota
	quoteSign
	blankSign
	dashSign
)

func signOf(r rune) sign {
	switch {
	case unicode.Is(unicode.Zs, r) && r != ' ':
		return blankSign
	case strings.ContainsRune("“”„‟‘’‚‛«»", r):
		return quoteSign
	case r >= 0x2010 && r <= 0x2015 || r == 0x2212:
		return dashSign
	}
	return noSign
}

// signs reports the signs in a text of which nothing is known to be quoted.
func (w *walker) signs(text string, at int) {
	for i, r := range text {
		w.sign(r, at+i)
	}
}

func (w *walker) sign(r rune, at int) {
	switch signOf(r) {
	case quoteSign:
		w.problem(at, "quote", fmt.Sprintf("%q is no quote for a shell", r))
	case blankSign:
		w.problem(at, "blank", fmt.Sprintf("U+%04X looks like a blank but does not separate words", r))
	}
}

// unquotedSigns reports the signs that stand outside quotes, comments and
// here-documents.
func (w *walker) unquotedSigns(file *syntax.File) {
	var visit func(n syntax.Node) bool
	nested := func(parts []syntax.WordPart) {
		for _, p := range parts {
			switch p.(type) {
			case *syntax.CmdSubst, *syntax.ProcSubst, *syntax.ParamExp, *syntax.ArithmExp:
				syntax.Walk(p, visit)
			}
		}
	}
	visit = func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.SglQuoted, *syntax.Comment:
			return false
		case *syntax.DblQuoted:
			nested(n.Parts)
			return false
		case *syntax.Redirect:
			if n.Word != nil {
				syntax.Walk(n.Word, visit)
			}
			if n.Hdoc != nil {
				nested(n.Hdoc.Parts)
			}
			return false
		case *syntax.CallExpr:
			for i, word := range n.Args {
				if i == 0 || len(word.Parts) == 0 {
					continue
				}
				if lit, ok := word.Parts[0].(*syntax.Lit); ok {
					if r, _ := utf8.DecodeRuneInString(lit.Value); signOf(r) == dashSign {
						w.problem(int(lit.Pos().Offset()), "dash", fmt.Sprintf("%q is no dash that begins an option", r))
					}
				}
			}
		case *syntax.Lit:
			w.signs(n.Value, int(n.Pos().Offset()))
		}
		return true
	}
	syntax.Walk(file, visit)
}

// differences marks what the parser and bash read differently.
func (w *walker) differences(text string) {
	if i := joinedComment(text); i >= 0 {
		w.opaque(i, "comment", "a comment ends in a backslash: the next line is a command for bash")
	}
	if !utf8.ValidString(text) {
		w.add(&Call{Effects: detail.Opaque, Risk: detail.High}, 0)
	}
}

func (w *walker) parseProblem(err error) {
	at := 0
	var parse syntax.ParseError
	var lang syntax.LangError
	switch {
	case errors.As(err, &parse):
		at = int(parse.Pos.Offset())
	case errors.As(err, &lang):
		at = int(lang.Pos.Offset())
	}
	w.problem(at, "syntax", errText(err))
}

// errText is a parser's message without its place.
func errText(err error) string {
	var parse syntax.ParseError
	if errors.As(err, &parse) {
		return parse.Text
	}
	return err.Error()
}
