package code

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// tokenKind is the kind of a token of a language for general use.
type tokenKind uint8

const (
	tokEnd tokenKind = iota
	tokLine
	tokName
	tokNumber
	tokString // text is decoded
	tokShell  // a command in backquotes or the like, decoded
	tokWords  // a list of words, with white space between them
	tokRegex
	tokOp
)

type token struct {
	kind    tokenKind
	text    string
	literal bool // of strings and commands: the text is all of it; else Hole stands for what is missing
	space   bool // stands behind white space
	mate    int  // of brackets: the token that closes or opens this one, or -1
}

func (t token) is(op string) bool { return t.kind == tokOp && t.text == op }

// named reports whether the token is a name or word with one of the texts.
func (t token) named(names ...string) bool {
	if t.kind != tokName {
		return false
	}
	for _, n := range names {
		if t.text == n {
			return true
		}
	}
	return false
}

// Limits of the lexer. Nesting of code in strings is followed a few levels
// deep; a string that never ends is given up a few times (it was none, then).
const (
	maxCodeDepth = 16
	maxFailures  = 8
)

// lexer splits text into tokens. What differs among the languages is step,
// which reads one token or skips white space.
type lexer struct {
	text     string
	pos      int
	toks     []token
	step     func(*lexer)
	depth    int
	failures int
	space    bool
	heredocs []heredoc
	locals   map[string]bool // Ruby: names that are variables
}

// heredoc is a string whose body begins on the next line.
type heredoc struct {
	tok    int // its token
	end    string
	indent bool // the end may be indented
	plain  bool // no escapes, no code inside
	q      quote
}

// tokens splits a text. Behind the last token stand four of the kind tokEnd, so
// that looking ahead needs no test.
func tokens(text string, step func(*lexer)) []token {
	lx := lexer{text: text, step: step, toks: make([]token, 0, len(text)/4+8)}
	lx.run(false)
	end := token{kind: tokEnd, mate: -1}
	toks := append(lx.toks, end, end, end, end)
	var open []int
	for i := range toks {
		toks[i].mate = -1
		if toks[i].kind != tokOp {
			continue
		}
		switch t := toks[i].text; t {
		case "(", "[", "{":
			open = append(open, i)
		case ")", "]", "}":
			if n := len(open) - 1; n >= 0 && pair(toks[open[n]].text, t) {
				toks[i].mate, toks[open[n]].mate = open[n], i
				open = open[:n]
			}
		}
	}
	return toks
}

// run reads tokens up to the end, or up to the brace that closes nested code.
func (lx *lexer) run(nested bool) {
	braces := 0
	for lx.pos < len(lx.text) {
		switch lx.text[lx.pos] {
		case '{':
			braces++
		case '}':
			if nested && braces == 0 {
				return
			}
			braces--
		}
		before := lx.pos
		lx.step(lx)
		if lx.pos <= before {
			lx.pos = before + 1
		}
	}
}

func (lx *lexer) rest() string { return lx.text[lx.pos:] }

// at gives the byte n behind the current one, zero behind the end.
func (lx *lexer) at(n int) byte {
	if lx.pos+n < len(lx.text) {
		return lx.text[lx.pos+n]
	}
	return 0
}

func (lx *lexer) last() token {
	if len(lx.toks) == 0 {
		return token{kind: tokLine}
	}
	return lx.toks[len(lx.toks)-1]
}

func (lx *lexer) add(t token) {
	t.space = lx.space
	lx.space = false
	lx.toks = append(lx.toks, t)
}

func (lx *lexer) op(n int) {
	n = min(n, len(lx.text)-lx.pos)
	lx.add(token{kind: tokOp, text: lx.text[lx.pos : lx.pos+n]})
	lx.pos += n
}

// blank skips one byte of white space or a newline, which begins the bodies of
// the heredocs of its line.
func (lx *lexer) blank() bool {
	c := lx.text[lx.pos]
	if c == '\n' {
		lx.pos++
		lx.add(token{kind: tokLine})
		lx.space = true
		lx.bodies()
		return true
	}
	if isSpace(c) {
		lx.pos++
		lx.space = true
		return true
	}
	return false
}

// skipLine skips up to the newline.
func (lx *lexer) skipLine() {
	if end := strings.IndexByte(lx.rest(), '\n'); end >= 0 {
		lx.pos += end
		return
	}
	lx.pos = len(lx.text)
}

// skipPast skips up to the end of a mark, or everything.
func (lx *lexer) skipPast(mark string) {
	if end := strings.Index(lx.rest(), mark); end >= 0 {
		lx.pos += end + len(mark)
		return
	}
	lx.pos = len(lx.text)
}

// lineStart reports whether the current byte is the first of a line.
func (lx *lexer) lineStart() bool { return lx.pos == 0 || lx.text[lx.pos-1] == '\n' }

// name gives the length of the name at offset n.
func (lx *lexer) name(n int) int {
	start := n
	for lx.pos+n < len(lx.text) && isWord(lx.text[lx.pos+n]) {
		n++
	}
	return n - start
}

// number reads a number.
func (lx *lexer) number() {
	n := 1
	for isWord(lx.at(n)) || lx.at(n) == '.' && isDigit(lx.at(n+1)) {
		n++
	}
	lx.add(token{kind: tokNumber, text: lx.text[lx.pos : lx.pos+n]})
	lx.pos += n
}

// operand reports whether the last token ends an operand, so that a slash
// behind it divides.
func (lx *lexer) operand() bool {
	switch t := lx.last(); t.kind {
	case tokName:
		return !t.named("return", "typeof", "case", "in", "of", "delete", "void", "instanceof", "new", "do", "else", "if", "unless",
			"while", "until", "when", "and", "or", "not", "then", "print", "puts", "split", "grep", "map", "join", "push", "yield", "await")
	case tokNumber, tokString, tokShell, tokWords, tokRegex:
		return true
	case tokOp:
		return t.text == ")" || t.text == "]" || t.text == "}"
	}
	return false
}

// quote says how a string is written.
type quote struct {
	shut   byte   // the delimiter that ends it
	open   byte   // a delimiter that nests, or zero
	code   string // what begins code inside of it, "" for none
	raw    bool   // a backslash only keeps the delimiter from ending the string
	triple bool   // the delimiter stands three times
	kind   tokenKind
	line   bool   // a newline ends it unfinished
	keep   bool   // an unknown escape keeps its backslash
	lua    bool   // the escape z skips white space, and digits are decimal
	dollar bool   // a backslash escapes the dollar sign, but no single quote
	none   string // letters that no backslash changes, though it does in other languages
	sigil  sigil
}

// sigil gives the length of the variable that stands in a string at the
// beginning of a text, with its subscripts; zero for none.
type sigil func(text string, q quote) int

// quoted reads a string whose opening delimiter has skip bytes. Code inside of
// it becomes tokens in parentheses behind the string. Where the string does not
// end, nothing was read but one byte, so that code behind it is still seen.
func (lx *lexer) quoted(skip int, q quote) {
	start, count, docs := lx.pos, len(lx.toks), lx.heredocs
	space := lx.space
	lx.pos += skip
	if !lx.body(q) {
		lx.failures++
		lx.toks, lx.heredocs, lx.space = lx.toks[:count], docs, space
		lx.pos = start
		if lx.failures > maxFailures {
			lx.pos = len(lx.text)
			return
		}
		lx.op(1)
	}
}

// body reads the rest of a string. It reports whether the string ended.
func (lx *lexer) body(q quote) bool {
	at := len(lx.toks)
	lx.add(token{kind: q.kind, literal: true})
	var b strings.Builder
	nested := 0
	for lx.pos < len(lx.text) {
		c := lx.text[lx.pos]
		switch {
		case c == q.shut && nested > 0:
			nested--
			b.WriteByte(c)
		case c == q.shut && (!q.triple || lx.at(1) == c && lx.at(2) == c):
			lx.pos++
			if q.triple {
				lx.pos += 2
			}
			lx.toks[at].text = b.String()
			return true
		case c == q.open && q.open != 0:
			nested++
			b.WriteByte(c)
		case c == '\n' && q.line:
			return false
		case c == '\\' && lx.pos+1 < len(lx.text):
			lx.escape(&b, q, at)
			continue
		case q.code != "" && strings.HasPrefix(lx.rest(), q.code):
			if q.code == "{" && lx.at(1) == '{' {
				b.WriteByte(c)
				lx.pos++
				break
			}
			lx.toks[at].literal = false
			b.WriteRune(Hole)
			lx.pos += len(q.code)
			if !lx.code() {
				return false
			}
			continue
		case c == '}' && q.code == "{" && lx.at(1) == '}':
			b.WriteByte(c)
			lx.pos++
		default:
			if n := lx.variable(q); n > 0 {
				lx.toks[at].literal = false
				b.WriteRune(Hole)
				lx.pos += n
				continue
			}
			b.WriteByte(c)
		}
		lx.pos++
	}
	return false
}

// maxVariable is how long a variable in a string may be with its subscripts.
const maxVariable = 128

// variable gives the length of the variable that stands at the current byte of
// a string, with the subscripts behind it.
func (lx *lexer) variable(q quote) int {
	if q.sigil == nil {
		return 0
	}
	return q.sigil(lx.text[lx.pos:min(lx.pos+maxVariable, len(lx.text))], q)
}

// subscript gives the length of a part in brackets that stays inside of its
// string, or zero.
func subscript(text string, q quote) int {
	shut, _ := closing(text[0])
	depth := 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == text[0]:
			depth++
		case c == shut:
			if depth--; depth == 0 {
				return i + 1
			}
		case c == '\\' || c == '\n' || c == q.shut || c == q.open:
			return 0
		}
	}
	return 0
}

// code reads the code inside of a string, up to the brace behind it.
func (lx *lexer) code() bool {
	if lx.depth >= maxCodeDepth {
		return false
	}
	lx.depth++
	lx.add(token{kind: tokOp, text: "("})
	lx.run(true)
	lx.add(token{kind: tokOp, text: ")"})
	lx.depth--
	if lx.pos >= len(lx.text) {
		return false
	}
	lx.pos++
	return true
}

// escape reads what a backslash begins.
func (lx *lexer) escape(b *strings.Builder, q quote, at int) {
	c := lx.at(1)
	lx.pos += 2
	if q.raw {
		// Single quotes of Perl, PHP, Ruby: only the delimiter and the backslash
		// are escaped. The raw strings of Python keep the backslash.
		if q.keep || c != q.shut && c != q.open && c != '\\' {
			b.WriteByte('\\')
		}
		b.WriteByte(c)
		return
	}
	number := func(n, base, size int) bool {
		end := lx.pos
		for end < len(lx.text) && end < lx.pos+n && digitIn(lx.text[end], base) {
			end++
		}
		v, err := strconv.ParseUint(lx.text[lx.pos:end], base, 32)
		if err != nil {
			lx.toks[at].literal = false
			b.WriteRune(Hole)
			return false
		}
		lx.pos = end
		if size == 1 && v < 256 {
			b.WriteByte(byte(v))
		} else {
			b.WriteRune(rune(v))
		}
		return true
	}
	switch {
	case isDigit(c) && q.lua:
		lx.pos--
		number(3, 10, 1)
	case c >= '0' && c <= '7':
		lx.pos--
		number(3, 8, 1)
	case (c == 'x' || c == 'u') && lx.at(0) == '{':
		lx.pos++
		if number(8, 16, 4) && lx.at(0) == '}' {
			lx.pos++
		}
	case c == 'x':
		number(2, 16, 1)
	case c == 'u':
		number(4, 16, 4)
	case c == 'U':
		number(8, 16, 4)
	case c == 'N' || c == 'c' || c == 'L' || c == 'Q' || c == 'E':
		lx.toks[at].literal = false
		b.WriteRune(Hole)
	case c == '\n':
	case c == 'z' && q.lua:
		for isSpace(lx.at(0)) {
			lx.pos++
		}
	case c == 's' && q.code == "#{":
		b.WriteByte(' ')
	default:
		if u := unescape(c); u != c && strings.IndexByte(q.none, c) < 0 {
			b.WriteByte(u)
			return
		}
		if q.keep && !q.escapes(c) {
			b.WriteByte('\\')
		}
		b.WriteByte(c)
	}
}

// escapes reports whether a backslash before c goes away, where it does not
// before others.
func (q quote) escapes(c byte) bool {
	if c == q.shut || c == '\\' {
		return true
	}
	if q.dollar {
		return c == '$'
	}
	return c == '\'' || c == '"'
}

func digitIn(c byte, base int) bool {
	switch {
	case base == 8:
		return c >= '0' && c <= '7'
	case isDigit(c):
		return true
	case base == 10:
		return false
	}
	return c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

// bodies reads the heredocs whose marks stood on the line that just ended.
func (lx *lexer) bodies() {
	docs := lx.heredocs
	lx.heredocs = nil
	for _, doc := range docs {
		start, found := lx.pos, false
		for lx.pos < len(lx.text) && !found {
			from := lx.pos
			lx.skipLine()
			line := strings.TrimSuffix(lx.text[from:lx.pos], "\r")
			if lx.pos < len(lx.text) {
				lx.pos++
			}
			if doc.indent {
				line = strings.TrimLeft(line, " \t")
			}
			if line == doc.end || strings.TrimSuffix(line, ";") == doc.end {
				lx.fill(doc, lx.text[start:from])
				found = true
			}
		}
		if !found && lx.failures < maxFailures {
			lx.failures++
			lx.pos = start // it was none, then
		}
	}
}

// fill gives a heredoc its text, and puts the code inside of it behind.
func (lx *lexer) fill(doc heredoc, body string) {
	if doc.indent {
		body = dedent(body)
	}
	if doc.plain || lx.depth >= maxCodeDepth {
		lx.toks[doc.tok].text = body
		lx.toks[doc.tok].literal = doc.plain
		return
	}
	// No text holds a NUL byte: that one ends the string.
	sub := lexer{text: body + "\x00", step: lx.step, depth: lx.depth + 1, failures: lx.failures}
	ended := sub.body(doc.q)
	lx.failures = sub.failures
	t := &lx.toks[doc.tok]
	t.text, t.literal = sub.toks[0].text, ended && sub.toks[0].literal
	lx.toks = append(lx.toks, sub.toks[1:]...)
	if doc.q.code == "" {
		lx.perlCode(body)
	}
}

// dedent takes the common white space from the lines, as squiggly heredocs do.
func dedent(body string) string {
	lines := strings.SplitAfter(body, "\n")
	least := -1
	for _, l := range lines {
		if trimmed := strings.TrimLeft(l, " \t"); trimmed != "" && trimmed != "\n" {
			if n := len(l) - len(trimmed); least < 0 || n < least {
				least = n
			}
		}
	}
	for i, l := range lines {
		lines[i] = l[min(max(least, 0), len(l)-len(strings.TrimLeft(l, " \t"))):]
	}
	return strings.Join(lines, "")
}

// regex reads a regular expression between delimiters, with its flags.
func (lx *lexer) regex(skip int, shut, open byte, class bool) bool {
	if lx.failures > maxFailures {
		return false
	}
	nested, bracket := 0, false
	for i := lx.pos + skip; i < len(lx.text); i++ {
		switch c := lx.text[i]; {
		case c == '\\':
			i++
		case class && c == '[':
			bracket = true
		case class && c == ']':
			bracket = false
		case class && c == '\n':
			if i-lx.pos > 256 {
				lx.failures++
			}
			return false
		case c == shut && nested > 0:
			nested--
		case c == shut && !bracket:
			i++
			for i < len(lx.text) && isLetter(lx.text[i]) {
				i++
			}
			lx.add(token{kind: tokRegex, text: lx.text[lx.pos:i]})
			lx.pos = i
			return true
		case c == open && open != 0:
			nested++
		}
	}
	lx.failures++
	return false
}

// failed notes that something that looked like a string or an expression never
// ends, and takes its first byte for an operator.
func (lx *lexer) failed() {
	lx.failures++
	if lx.failures > maxFailures {
		lx.pos = len(lx.text)
		return
	}
	lx.op(1)
}

// closing gives the delimiter that ends what open begins, and whether it nests.
func closing(open byte) (shut, nests byte) {
	switch open {
	case '(':
		return ')', '('
	case '[':
		return ']', '['
	case '{':
		return '}', '{'
	case '<':
		return '>', '<'
	}
	return open, 0
}

// plainDelimiter reports whether a byte can enclose a quote-like construct.
func plainDelimiter(c byte) bool {
	return c > ' ' && c < utf8.RuneSelf && !isWord(c)
}
