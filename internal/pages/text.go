package pages

import (
	"html/template"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"vogt/internal/audit/mask"
	"vogt/internal/terminal"
)

// Everything that an agent, a machine or a note wrote reaches a page through
// the functions of this file or through html/template's own escaping: it is
// text, never markup, and no character of it is invisible.

// marked escapes s and shows characters that a reader could not see, or would
// take for others, by their code (terminal.Visible). A line feed is a small
// arrow; with breaks set it also breaks the line, as in a well.
func marked(s string, breaks bool) template.HTML {
	var b strings.Builder
	for {
		line, rest, more := strings.Cut(s, "\n")
		writeMarked(&b, line)
		if !more {
			return template.HTML(b.String())
		}
		b.WriteString("<span class=\"nl\">\u21b5</span>")
		if breaks {
			b.WriteByte('\n')
		}
		s = rest
	}
}

// prose is marked for sentences that a person or an agent wrote: quotation
// marks and dashes of typography, which have no place in a command, stay.
func prose(s string) template.HTML {
	var b strings.Builder
	for {
		i := strings.IndexAny(s, typography)
		if i < 0 {
			writeMarked(&b, s)
			return template.HTML(b.String())
		}
		writeMarked(&b, s[:i])
		_, size := utf8.DecodeRuneInString(s[i:])
		b.WriteString(s[i : i+size])
		s = s[i+size:]
	}
}

const typography = "\u2018\u2019\u201a\u201c\u201d\u201e\u00ab\u00bb\u2013\u2014\u2026"

// plainQuotes takes typography out of prose, for counting what is hidden in it.
func plainQuotes(s string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(typography, r) {
			return ' '
		}
		return r
	}, s)
}

func writeMarked(b *strings.Builder, s string) {
	shown := terminal.Visible(s)
	for {
		at, size := findCode(shown)
		if size == 0 {
			template.HTMLEscape(b, []byte(shown))
			return
		}
		template.HTMLEscape(b, []byte(shown[:at]))
		b.WriteString(`<span class="inv">`)
		template.HTMLEscape(b, []byte(shown[at+1:at+size-1]))
		b.WriteString(`</span>`)
		shown = shown[at+size:]
	}
}

// findCode finds the first <U+XXXX> or <0xXX> in what Visible returned. Visible
// escapes any other "<" that begins so, which makes each one found a code.
func findCode(shown string) (at, size int) {
	from := 0
	for {
		i := strings.IndexByte(shown[from:], '<')
		if i < 0 {
			return 0, 0
		}
		at = from + i
		if rest := shown[at:]; strings.HasPrefix(rest, "<U+") || strings.HasPrefix(rest, "<0x") {
			if end := strings.IndexByte(rest, '>'); end > 0 {
				return at, end + 1
			}
		}
		from = at + 1
	}
}

// countHidden counts the characters of s that marked shows by their code. Line
// feeds and tabs are ordinary in scripts and do not count.
func countHidden(s string) (n int) {
	shown := terminal.Visible(strings.NewReplacer("\n", " ", "\t", " ").Replace(s))
	for {
		at, size := findCode(shown)
		if size == 0 {
			return n
		}
		n++
		shown = shown[at+size:]
	}
}

// mixedWords returns words of s that mix scripts as no language does, at most
// limit of them.
func mixedWords(s string, limit int) (words []string) {
	if plainPrefix(s) == len(s) {
		return nil
	}
	for word := range strings.FieldsFuncSeq(s, func(r rune) bool { return !unicode.In(r, unicode.L, unicode.N, unicode.M) }) {
		if terminal.MixedScript(word) {
			if words = append(words, word); len(words) == limit {
				break
			}
		}
	}
	return words
}

// plainPrefix is the length of the printable ASCII that s starts with.
func plainPrefix(s string) int {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return i
		}
	}
	return len(s)
}

// command is marked, with line breaks, for commands: a line may end after a
// space or a slash and nowhere else, so that "-rf" stays one word. Each part in
// which a browser could break the line otherwise is a box of its own. No
// character is added, so what is copied is what is shown.
func command(s string) template.HTML {
	text := string(marked(s, true))
	var b strings.Builder
	for text != "" {
		end := partEnd(text)
		part := strings.TrimRight(text[:end], " \n")
		if strings.ContainsFunc(part, breaksLine) {
			b.WriteString(`<span class="w">` + part + `</span>`)
		} else {
			b.WriteString(part)
		}
		b.WriteString(text[len(part):end])
		text = text[end:]
	}
	return template.HTML(b.String())
}

// partEnd returns how much of markup forms a part: up to slashes or spaces and
// line feeds outside of tags, and these included.
func partEnd(markup string) int {
	tag, slash, space := false, false, false
	for i := range len(markup) {
		c := markup[i]
		switch {
		case tag:
			tag = c != '>'
		case c == ' ' || c == '\n':
			space = true
		case space || slash && c != '/':
			return i
		case c == '/':
			slash = true
		case c == '<':
			tag = true
		}
	}
	return len(markup)
}

// breaksLine reports whether a line may end next to r (Unicode Standard Annex
// 14); letters, digits and what paths are made of hold together.
func breaksLine(r rune) bool {
	return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_./=:,", r)
}

// runnable are the characters with which a value can be more than a value: what
// holds one of them may run.
const runnable = "\"'$`;|&<>()"

// hides reports whether masking took a character out of text that could make
// it run. Masking only takes away, so counting is enough.
func hides(text, masked string) bool {
	count := func(s string) (n int) {
		for _, r := range s {
			if unicode.IsSpace(r) || unicode.IsControl(r) || strings.ContainsRune(runnable, r) {
				n++
			}
		}
		return n
	}
	return count(text) != count(masked)
}

// maskedText is text without likely secrets, as long as nothing that could run
// is hidden with them: people decide by what they see.
func maskedText(text string) string {
	if masked := mask.Text(text); !hides(text, masked) {
		return masked
	}
	return text
}

// maskedArgv is maskedText for an argument list: it is decided for each
// argument.
func maskedArgv(argv []string) []string {
	masked := mask.Argv(argv)
	for i, arg := range argv {
		if hides(arg, masked[i]) {
			masked[i] = arg
		}
	}
	return masked
}

// cut shortens s to at most limit bytes without splitting a character, and
// counts the characters that it left out.
func cut(s string, limit int) (head string, left int) {
	if len(s) <= limit {
		return s, 0
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit], utf8.RuneCountInString(s[limit:])
}

// firstRunes returns at most n characters of s and whether there are more.
func firstRunes(s string, n int) (head string, more bool) {
	for i := range s {
		if n--; n < 0 {
			return s[:i], true
		}
	}
	return s, false
}

// baseName is the last element of a program's path, for headings.
func baseName(program string) string {
	name := path.Base(strings.ReplaceAll(program, `\`, "/"))
	if name, more := firstRunes(name, 40); more {
		return name + "…"
	}
	return name
}

// initials are the two letters in the mark of a principal.
func initials(name string) string {
	var out []rune
	words := strings.FieldsFunc(name, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	if len(words) > 1 {
		for _, w := range words[:2] {
			r, _ := utf8.DecodeRuneInString(w)
			out = append(out, unicode.ToUpper(r))
		}
		return string(out)
	}
	for _, w := range words {
		head, _ := firstRunes(w, 2)
		return head
	}
	return "?"
}

// label is what people call the principal.
func (p Person) label() string {
	if p.Name != "" {
		return p.Name
	}
	local, _, _ := strings.Cut(p.Email, "@")
	return local
}

// firstBytes returns the first words of argv, limit bytes in all; the last one
// may be cut.
func firstBytes(argv []string, limit int) []string {
	for i, a := range argv {
		if len(a) > limit {
			head, _ := cut(a, limit)
			return append(slices.Clone(argv[:i]), head)
		}
		limit -= len(a)
	}
	return argv
}

func runes(s string) int { return utf8.RuneCountInString(s) }
