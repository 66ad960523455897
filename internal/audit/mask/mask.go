// Package mask takes likely secrets out of command lines and other text before
// they are shown on pages, sent in notifications or exported.
//
// It owns what looks like a secret: values named as one (password, token,
// secret, key …), secret options of known programs, credentials in URLs and
// headers, and strings that are recognisable by their form. It leaves out who
// masks what. It guesses: a secret that neither its name nor its form gives
// away stays, and some harmless values go. Whatever binds or decides must use
// the real bytes.
//
// What is masked is a single value. Operators, program names and the words
// around it stay, so that masking does not hide what a command line does; yet
// a value may itself be text that the command runs later, so a page on which
// people decide needs a way to show it.
package mask

import (
	"slices"
	"strings"
)

// Mark stands for what was masked. At most keep characters of the secret
// precede it, and only if it is long or recognised by its beginning.
const Mark = "[masked]"

const (
	keep    = 4
	minKeep = 20 // shorter secrets are masked whole
)

// span is a part of a text, in bytes.
type span struct{ from, to int }

// Text masks likely secrets in a command line, script, header, configuration
// or other text. Masking a masked text again changes nothing.
func Text(s string) string {
	for {
		// Taking out one secret can bring another to light, for example when
		// quotes go with it. Each round leaves fewer characters that are not
		// part of a Mark, or fewer Marks, so this ends.
		next := replace(s, textSpans(s, 0))
		if next == s {
			return s
		}
		s = next
	}
}

// Argv masks likely secrets in an argument list, program first. The result has
// as many arguments; argv is not changed.
func Argv(argv []string) []string {
	args := slices.Clone(argv)
	for {
		perWord := make([][]span, len(args))
		words := make([]word, len(args))
		for i, arg := range args {
			words[i] = word{text: arg, literal: true}
		}
		for _, f := range findInWords(words) {
			perWord[f.word] = append(perWord[f.word], f.span)
		}
		changed := false
		for i, arg := range args {
			masked := replace(arg, append(perWord[i], textSpans(arg, 0)...))
			changed = changed || masked != arg
			args[i] = masked
		}
		if !changed {
			return args
		}
	}
}

// Value masks the value of something that has a name, such as a variable or a
// field: as a whole if the name is that of a secret, else as Text does.
func Value(name, value string) string {
	switch c := classify(strings.TrimLeft(name, "-")); c {
	case plain:
	case header, cookie:
		label := name + ": "
		if masked, ok := strings.CutPrefix(Text(label+value), label); ok {
			return masked
		}
	default:
		if isSecret(c, name, value, true) {
			return hide(value)
		}
	}
	return Text(value)
}

// textSpans finds the secrets in s. depth counts how many quotes were opened.
func textSpans(s string, depth int) []span {
	spans := formSpans(s)
	spans = append(spans, namedSpans(s)...)
	return append(spans, commandSpans(s, depth)...)
}

// replace masks the union of the spans.
func replace(s string, spans []span) string {
	spans = slices.DeleteFunc(spans, func(p span) bool { return p.from >= p.to })
	if len(spans) == 0 {
		return s
	}
	slices.SortFunc(spans, func(a, b span) int { return a.from - b.from })
	var b strings.Builder
	done := 0
	for i := 0; i < len(spans); {
		u := spans[i]
		for i++; i < len(spans) && spans[i].from < u.to; i++ {
			u.to = max(u.to, spans[i].to)
		}
		b.WriteString(s[done:u.from])
		b.WriteString(hide(s[u.from:u.to]))
		done = u.to
	}
	b.WriteString(s[done:])
	return b.String()
}

// hide masks one secret.
func hide(v string) string {
	n := 0
	for n < len(v) && n < keep && (isAlnum(v[n]) || v[n] == '_' || v[n] == '-') {
		n++
	}
	if v[n:] == Mark {
		return v
	}
	if len(v) < minKeep {
		n = 0
	}
	return v[:n] + Mark
}

func isAlnum(c byte) bool { return isLetter(c) || isDigit(c) }
func isDigit(c byte) bool { return '0' <= c && c <= '9' }
func isUpper(c byte) bool { return 'A' <= c && c <= 'Z' }
func isLower(c byte) bool { return 'a' <= c && c <= 'z' }
func isLetter(c byte) bool {
	return isUpper(c) || isLower(c)
}
func isSpace(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' }
func isQuote(c byte) bool { return c == '"' || c == '\'' || c == '`' }

// isOperator reports whether c ends an unquoted shell word.
func isOperator(c byte) bool { return strings.IndexByte(";|&()<>", c) >= 0 }
