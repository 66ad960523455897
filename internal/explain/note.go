package explain

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"vogt/internal/reading"
	"vogt/internal/trap"
)

// Note is the sentence for a problem in a language, with everything that it
// says of the text. Signs that are hard to see or to tell apart are named.
func Note(p reading.Problem, lang trap.Language) string {
	return noteOf(p, lang, asIs)
}

// placed is the note for a problem of a text; what no shell accepts says where.
func placed(text string, p reading.Problem, lang trap.Language, show func(string) string) string {
	note := noteOf(p, lang, show)
	if p.Key != "syntax" {
		return note
	}
	line, column := placeOf(text, p.Offset)
	if lang == trap.German {
		return fmt.Sprintf("Zeile %d, Spalte %d: %s", line, column, note)
	}
	return fmt.Sprintf("line %d, column %d: %s", line, column, note)
}

// noteOf writes a note; show makes what comes from the line presentable.
func noteOf(p reading.Problem, lang trap.Language, show func(string) string) string {
	text := p.Text
	if p.Key == "syntax" {
		text = withoutPlace(text)
	}
	for _, s := range sentences[p.Key] {
		args, ok := match(s.english, text)
		if !ok {
			continue
		}
		for i, arg := range args {
			args[i] = argument(p.Key, i, arg, lang, show)
		}
		if lang == trap.German {
			return fill(s.german, args)
		}
		return fill(s.english, args)
	}
	if general := german[p.Key]; lang == trap.German && general != "" {
		return general
	}
	return show(text)
}

// argument is one part of a note that differs from text to text.
func argument(key string, i int, arg string, lang trap.Language, show func(string) string) string {
	switch {
	case key == "catalog" && i == 1:
		return translated(whys, arg, lang, show)
	case key == "syntax" || key == "nested-syntax":
		return translated(parserTexts, withoutPlace(arg), lang, show)
	case key == "not-in-catalog" && strings.ContainsFunc(arg, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune("\"'`;|&<>()", r) }):
		return strconv.Quote(show(arg))
	}
	if aboutSigns(key) {
		if r, ok := signOf(arg); ok {
			return sign(r)
		}
	}
	return show(arg)
}

// translated is one of the sentences in the language, as it is where it is
// none of them.
func translated(list []sentence, text string, lang trap.Language, show func(string) string) string {
	for _, s := range list {
		args, ok := match(s.english, text)
		if !ok {
			continue
		}
		for i := range args {
			args[i] = show(args[i])
		}
		if lang == trap.German {
			return fill(s.german, args)
		}
		return fill(s.english, args)
	}
	return show(text)
}

// aboutSigns are the problems whose first part is a sign.
func aboutSigns(key string) bool {
	switch key {
	case "bidi", "blank", "control", "dash", "invisible", "mixed-script", "quote":
		return true
	}
	return false
}

// signOf reads how reading names a sign, as U+201E, '„' or '„' (U+201E).
func signOf(text string) (rune, bool) {
	if quoted, ok := strings.CutPrefix(text, "'"); ok {
		r, _, rest, err := strconv.UnquoteChar(quoted, '\'')
		return r, err == nil && (rest == "'" || strings.HasPrefix(rest, "' (U+"))
	}
	hex, ok := strings.CutPrefix(text, "U+")
	n, err := strconv.ParseUint(hex, 16, 32)
	return rune(n), ok && err == nil && n <= unicode.MaxRune
}

// sign is a sign and its number; the number alone where nothing can be seen.
func sign(r rune) string {
	if !unicode.IsPrint(r) || unicode.In(r, unicode.M, unicode.Zs, unicode.Other_Default_Ignorable_Code_Point) {
		return fmt.Sprintf("U+%04X", r)
	}
	return fmt.Sprintf("%c (U+%04X)", r, r)
}

// withoutPlace cuts the line and the column off the beginning of a parser's
// message.
func withoutPlace(text string) string {
	rest := strings.TrimLeft(text, "0123456789")
	column, ok := strings.CutPrefix(rest, ":")
	after := strings.TrimLeft(column, "0123456789")
	if message, ok2 := strings.CutPrefix(after, ": "); ok && ok2 && rest != text && after != column {
		return message
	}
	return text
}

// match compares a text with a pattern and returns what stands for %1, %2, ….
func match(pattern, text string) (args []string, ok bool) {
	for {
		i := strings.IndexByte(pattern, '%')
		if i < 0 {
			return args, pattern == text
		}
		if text, ok = strings.CutPrefix(text, pattern[:i]); !ok {
			return nil, false
		}
		pattern = pattern[i+2:]
		next := pattern
		if k := strings.IndexByte(next, '%'); k >= 0 {
			next = next[:k]
		}
		end := len(text)
		if next == pattern {
			if !strings.HasSuffix(text, next) {
				return nil, false
			}
			end -= len(next)
		} else if end = strings.Index(text, next); end < 0 {
			return nil, false
		}
		if end == 0 {
			return nil, false
		}
		args, text = append(args, text[:end]), text[end:]
	}
}

// fill puts the parts into a sentence.
func fill(pattern string, args []string) string {
	var b strings.Builder
	for {
		i := strings.IndexByte(pattern, '%')
		if i < 0 {
			b.WriteString(pattern)
			return b.String()
		}
		b.WriteString(pattern[:i])
		if n := int(pattern[i+1] - '1'); n >= 0 && n < len(args) {
			b.WriteString(args[n])
		}
		pattern = pattern[i+2:]
	}
}

// placeOf is the line and column of an offset, both from 1; columns count
// characters, as editors do.
func placeOf(text string, offset int) (line, column int) {
	before := text[:min(max(offset, 0), len(text))]
	return strings.Count(before, "\n") + 1, utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:]) + 1
}
