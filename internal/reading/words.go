package reading

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"

	"vogt/internal/catalog"
	"vogt/internal/detail"
)

// expanded are the words that one or more words of a text give, each with its
// place.
type expanded struct {
	words   []catalog.Word
	offsets []int
}

// builder puts one word together from its parts.
type builder struct {
	w    *walker
	s    *scope
	out  *expanded
	base int // offset of the word

	text     strings.Builder // what is known from the beginning
	shown    strings.Builder
	template strings.Builder
	kind     catalog.Kind
	started  bool // the word exists, even if it is empty
	open     bool // text has ended: something unknown came
	option   bool // the unknown part is at the beginning
	globbing bool
	computed int // up to where the text came from variables
}

// words expands the words of a command.
func (w *walker) words(list []*syntax.Word, s *scope) expanded {
	var e expanded
	e.words, e.offsets = w.room(len(list))
	for _, word := range list {
		w.word(word, s, &e)
	}
	return e
}

// returnMark stands for a carriage return while a text is parsed: the parser
// drops it at the end of a line, where for bash it belongs to the word.
const returnMark = "\uE001"

// plain returns the text of a word that is one unquoted literal without
// anything that a shell expands.
func plain(word *syntax.Word) (string, bool) {
	if len(word.Parts) != 1 {
		return "", false
	}
	lit, ok := word.Parts[0].(*syntax.Lit)
	switch {
	case !ok:
		return "", false
	case lit.Value == "[":
		return lit.Value, true
	}
	for i := range len(lit.Value) {
		switch lit.Value[i] {
		case '*', '?', '[', '\\', '~', '{', '<', '>', privateByte:
			return "", false
		}
	}
	return lit.Value, true
}

// privateByte begins the marks U+E000 and U+E001 in UTF-8, and characters that
// are rare enough to take the longer way.
const privateByte = 0xEE

// word expands one word as a command's argument: with braces, splitting and
// patterns.
func (w *walker) word(word *syntax.Word, s *scope, e *expanded) {
	if text, ok := plain(word); ok {
		e.words = append(e.words, catalog.Word{Text: text})
		e.offsets = append(e.offsets, s.at(word.Pos()))
		return
	}
	if open := openBraces(word); open > 0 {
		if w.steps >= maxSteps {
			return
		}
		if open > maxOpenBraces {
			// Taking them apart needs time that grows with the square.
			w.opaque(s.at(word.Pos()), "braces", "the word has more braces than are read")
			w.one(word, s, e, false)
			return
		}
		for _, one := range w.braces(word, s) {
			if w.steps >= maxSteps {
				return
			}
			w.one(one, s, e, false)
		}
		return
	}
	w.one(word, s, e, false)
}

// single expands a word that stays one word: a redirection's target, the right
// side of an assignment, a here-string.
func (w *walker) single(word *syntax.Word, s *scope) catalog.Word {
	if word == nil {
		return catalog.Word{}
	}
	if text, ok := plain(word); ok {
		return catalog.Word{Text: text}
	}
	var e expanded
	w.one(word, s, &e, true)
	if len(e.words) == 0 {
		return catalog.Word{}
	}
	return e.words[0]
}

func (w *walker) one(word *syntax.Word, s *scope, e *expanded, single bool) {
	w.step()
	b := builder{w: w, s: s, out: e, base: s.at(word.Pos())}
	b.globbing = !single
	for i, part := range word.Parts {
		b.part(part, i == 0)
	}
	b.flush(single)
}

// flush ends the current word.
func (b *builder) flush(always bool) {
	if !b.started && !always {
		return
	}
	b.w.work(1 + b.text.Len()/64)
	out := catalog.Word{Text: b.text.String(), Computed: int32(b.computed)}
	if b.kind != catalog.Literal {
		option := b.option
		if out.Text != "" {
			option = out.Text[0] == '-'
		}
		if b.kind == catalog.Many {
			option = true // it may split, and what follows may begin with anything
		}
		out = catalog.Open(b.kind, out.Text, b.shown.String(), b.template.String(), option)
	}
	b.out.words = append(b.out.words, out)
	b.out.offsets = append(b.out.offsets, b.base)
	b.text.Reset()
	b.shown.Reset()
	b.template.Reset()
	b.kind, b.started, b.open, b.option, b.computed = catalog.Literal, false, false, false, 0
}

// literal adds text that is known.
func (b *builder) literal(text string) {
	if strings.ContainsRune(text, catalog.Hole) {
		b.unknown(catalog.Many, true, "…")
		return
	}
	if strings.Contains(text, returnMark) {
		text = strings.ReplaceAll(text, returnMark, "\r")
	}
	b.started = true
	if len(text) > 64 && !b.w.work(len(text)/64) {
		return
	}
	if !b.open {
		b.text.WriteString(text)
		return
	}
	b.shown.WriteString(text)
	b.template.WriteString(text)
}

// begin ends the part of the word that is known.
func (b *builder) begin(option bool) {
	if b.open {
		return
	}
	b.open = true
	known := b.text.String()
	b.option = known == "" && option
	b.shown.WriteString(known)
	b.template.WriteString(known)
}

// unknown adds a part that is not known. option says that a word beginning
// with it may be an option.
func (b *builder) unknown(kind catalog.Kind, option bool, shown string) {
	b.started = true
	b.begin(option)
	b.kind = max(b.kind, kind)
	b.shown.WriteString(shown)
	b.template.WriteRune(catalog.Hole)
}

func (b *builder) part(part syntax.WordPart, first bool) {
	switch p := part.(type) {
	case *syntax.Lit:
		b.lit(p.Value, first)
	case *syntax.SglQuoted:
		text := p.Value
		if p.Dollar {
			b.w.bashOnly(b.s, b.base)
			text = ansiC(text)
		}
		b.literal(text)
	case *syntax.DblQuoted:
		b.started = true
		for _, q := range p.Parts {
			if lit, ok := q.(*syntax.Lit); ok {
				b.literal(unescapeDouble(lit.Value))
				continue
			}
			b.expansion(q, true)
		}
	case *syntax.ExtGlob:
		b.started = true
		if strings.ContainsAny(p.Pattern.Value, "$`<>") {
			// The parser leaves the pattern as it stands, and bash expands it.
			b.w.opaque(b.s.at(p.Pos()), "open-pattern", "an extended pattern holds expansions")
		}
		if !b.globbing {
			b.unknown(catalog.Partial, true, b.w.source(p))
			return
		}
		b.pattern(b.w.source(p))
	case *syntax.BraceExp:
		b.literal(b.w.source(p))
	default:
		b.expansion(part, false)
	}
}

// lit adds an unquoted literal: escapes, a tilde, patterns.
func (b *builder) lit(text string, first bool) {
	if joined := strings.ReplaceAll(text, "\\\n", ""); strings.Contains(joined, "<(") || strings.Contains(joined, ">(") {
		// Inside ${…} and in regular expressions the parser takes a process
		// substitution for text.
		b.w.opaque(b.base, "open-process", "a process substitution stands where it is not followed")
	}
	if first && strings.HasPrefix(text, "~") {
		rest := text[1:]
		user, _, _ := strings.Cut(rest, "/")
		if user == "" {
			b.homePath()
			text = text[1:]
			if text == "" {
				return
			}
		} else if !strings.ContainsAny(user, "*?[\\'\"") {
			_, moved := b.s.vars["PWD"]
			_, old := b.s.vars["OLDPWD"]
			b.unknown(catalog.Partial, moved || old, "~"+user)
			text = rest[len(user):]
		}
	}
	if name, rest, ok := strings.Cut(text, "=~"); ok && first && !b.s.posix && validName(name) && (rest == "" || rest[0] == '/' || rest[0] == ':') {
		// What looks like an assignment has its tilde expanded, also as an
		// argument (bash manual, Tilde Expansion).
		b.literal(name + "=")
		b.homePath()
		if text = rest; text == "" {
			return
		}
	}
	if !strings.ContainsAny(text, "\\*?[\uE000") {
		b.literal(text)
		return
	}
	for len(text) > 0 {
		i := strings.IndexAny(text, "\\*?[\uE000")
		if i < 0 {
			b.literal(text)
			return
		}
		if i > 0 {
			b.literal(text[:i])
		}
		switch text[i] {
		case '\\':
			rest := text[i+1:]
			switch {
			case rest == "":
				b.literal("\\")
				return
			case rest[0] == '\n':
				text = rest[1:]
			default:
				_, n := utf8.DecodeRuneInString(rest)
				b.literal(rest[:n])
				text = rest[n:]
			}
		case '*', '?', '[':
			if !b.globbing {
				b.literal(text[i : i+1])
			} else {
				b.pattern(text[i : i+1])
			}
			text = text[i+1:]
		default:
			b.unknown(catalog.Many, true, "…")
			_, n := utf8.DecodeRuneInString(text[i:])
			text = text[i+n:]
		}
	}
}

// pattern adds a character that matches others.
func (b *builder) pattern(text string) {
	b.started = true
	b.begin(true)
	b.shown.WriteString(text)
	b.template.WriteString(text)
	b.kind = max(b.kind, catalog.Glob)
}

func (b *builder) homePath() {
	if b.s.home != "" && b.s.lookup("HOME").known == literal {
		b.literal(b.s.lookup("HOME").text)
		return
	}
	_, assigned := b.s.vars["HOME"]
	b.unknown(catalog.Partial, assigned, "~")
}

// expansion adds a part that the shell computes.
func (b *builder) expansion(part syntax.WordPart, quoted bool) {
	switch p := part.(type) {
	case *syntax.ParamExp:
		b.param(p, quoted)
	case *syntax.CmdSubst:
		kind := catalog.Many
		if quoted || !b.globbing {
			kind = catalog.Partial
		}
		b.w.substitution(p, b.s, quoted)
		b.unknown(kind, true, "$(…)")
	case *syntax.ArithmExp:
		b.w.arithmetic(p.X, b.s)
		b.unknown(catalog.Partial, true, "$((…))") // it may be negative
	case *syntax.ProcSubst:
		b.w.bashOnly(b.s, b.base)
		b.w.process(p, b.s)
		b.unknown(catalog.Partial, false, processShown)
		b.template.WriteString(strconv.Itoa(len(b.w.printed) - 1))
	default:
		b.w.opaque(b.base, "unknown-syntax", "this expansion is not understood")
		b.unknown(catalog.Many, true, "…")
	}
}

// processShown stands for the path of a process substitution.
const processShown = "<(…)"

// param adds a parameter expansion.
func (b *builder) param(p *syntax.ParamExp, quoted bool) {
	shown := b.w.source(p)
	kind := catalog.Many
	if quoted || !b.globbing {
		kind = catalog.Partial
	}
	name := ""
	if p.Param != nil {
		name = p.Param.Value
	}
	if quoted && b.w.work(int(p.End().Offset()-p.Pos().Offset())/64) {
		for _, text := range quotesInside(p) {
			if !strings.ContainsAny(text, "$`\\{}\"") {
				continue // it ends in the same place, and expands nothing
			}
			b.w.opaque(b.base, "nested-quotes", "single quotes inside a double-quoted expansion do not quote")
			if strings.ContainsAny(text, "$`") && !strings.Contains(text, `"`) {
				b.w.shell(`_="`+text+`"`, b.w.fork(b.s), b.base)
			}
		}
	}
	if !b.w.paramSafe(p, b.s) {
		b.unknown(kind, true, shown)
		return
	}
	simple := !p.Excl && !p.Length && !p.Width && p.Index == nil && p.Slice == nil && p.Repl == nil && p.Names == 0 && p.Exp == nil
	switch {
	case p.Length:
		b.unknown(catalog.Partial, false, shown)
		return
	case simple && name == "IFS" && !quoted && b.s.vars["IFS"] == (value{}) && b.globbing:
		if _, assigned := b.s.vars["IFS"]; !assigned {
			// The default value separates words.
			b.flush(false)
			return
		}
	case simple && (name == "@" || name == "*"):
		b.positional(name, quoted)
		return
	case simple && len(name) > 0 && name[0] >= '0' && name[0] <= '9':
		n, err := strconv.Atoi(name)
		if err == nil && b.s.known && n >= 1 {
			if n > len(b.s.args) {
				b.started = b.started || quoted
				return
			}
			b.copied(b.s.args[n-1], quoted)
			return
		}
	case p.Index != nil:
		b.unknown(catalog.Many, true, shown)
		return
	}
	v := b.s.lookup(name)
	if !simple {
		b.unknown(kind, true, shown)
		return
	}
	switch v.known {
	case literal:
		b.value(v.text, quoted)
	case number:
		b.unknown(catalog.Partial, !counts(name), shown)
	case plainWord:
		if b.splits() {
			b.unknown(catalog.Many, true, shown)
			return
		}
		b.unknown(catalog.Partial, false, shown)
	case absolute:
		if name == "HOME" {
			shown = "~"
		}
		if !quoted && b.globbing {
			// Splitting may give further words.
			if name != "HOME" && name != "PWD" && name != "OLDPWD" || b.splits() {
				b.unknown(catalog.Many, true, shown)
				return
			}
		}
		b.unknown(catalog.Partial, false, shown)
	default:
		b.unknown(kind, true, shown)
	}
}

// counts reports whether a variable that bash sets is never negative.
func counts(name string) bool {
	switch name {
	case "#", "?", "$", "!", "RANDOM", "SRANDOM", "UID", "EUID", "PPID", "BASHPID", "LINENO":
		return true
	}
	return false
}

// splits reports whether the text changed what separates words.
func (b *builder) splits() bool {
	_, assigned := b.s.vars["IFS"]
	return assigned
}

// value adds the known value of a variable.
func (b *builder) value(text string, quoted bool) {
	if quoted || !b.globbing {
		b.literal(text)
		b.computed = b.text.Len()
		return
	}
	if _, assigned := b.s.vars["IFS"]; assigned {
		b.unknown(catalog.Many, true, text)
		return
	}
	for i, field := range strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == '\t' || r == '\n' }) {
		if i > 0 || strings.IndexAny(text, " \t\n") == 0 {
			b.flush(false)
		}
		if strings.ContainsAny(field, "*?[") {
			b.started = true
			for j := 0; j < len(field); j++ {
				if strings.IndexByte("*?[", field[j]) >= 0 {
					b.pattern(field[j : j+1])
				} else {
					b.literal(field[j : j+1])
				}
			}
			continue
		}
		b.literal(field)
		b.computed = b.text.Len()
	}
	if text != "" && strings.IndexByte(" \t\n", text[len(text)-1]) >= 0 {
		b.flush(false)
	}
}

// positional adds "$@" or "$*".
func (b *builder) positional(name string, quoted bool) {
	if !b.s.known || name == "*" && quoted {
		b.unknown(catalog.Many, true, "$"+name)
		return
	}
	for i, arg := range b.s.args {
		if i > 0 {
			b.flush(false)
		}
		if b.w.steps >= maxSteps {
			return
		}
		b.copied(arg, quoted)
	}
}

// copied adds a word that was expanded before.
func (b *builder) copied(w catalog.Word, quoted bool) {
	if w.Kind == catalog.Literal {
		b.value(w.Text, quoted)
		return
	}
	if w.Text != "" {
		b.literal(w.Text)
	}
	b.unknown(w.Kind, w.Option, strings.TrimPrefix(w.Shown(), w.Text))
}

// unescapeDouble resolves backslashes as inside double quotes.
func unescapeDouble(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			switch s[i+1] {
			case '$', '`', '"', '\\':
				i++
			case '\n':
				i++
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// ansiC decodes the body of $'…' (bash manual, ANSI-C Quoting). Like bash, it
// stops at a NUL character.
func ansiC(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		switch c := s[i]; c {
		case 'a':
			b.WriteByte(7)
		case 'b':
			b.WriteByte(8)
		case 'e', 'E':
			b.WriteByte(27)
		case 'f':
			b.WriteByte(12)
		case 'n':
			b.WriteByte('\n')
		case 'r':
			b.WriteByte('\r')
		case 't':
			b.WriteByte('\t')
		case 'v':
			b.WriteByte(11)
		case '\\', '\'', '"', '?':
			b.WriteByte(c)
		case 'c':
			if i+1 < len(s) {
				i++
				b.WriteByte(s[i] & 0x1f)
			}
		case 'x', 'u', 'U', '0', '1', '2', '3', '4', '5', '6', '7':
			n, size := codePoint(s[i:])
			if size == 0 {
				b.WriteByte('\\')
				b.WriteByte(c)
				continue
			}
			if n == 0 {
				return b.String()
			}
			i += size - 1
			if c == 'u' || c == 'U' {
				b.WriteRune(n)
			} else {
				b.WriteByte(byte(n))
			}
		default:
			b.WriteByte('\\')
			b.WriteByte(c)
		}
	}
	return b.String()
}

// codePoint reads xHH, uHHHH, UHHHHHHHH or OOO. size 0 means no digits.
func codePoint(s string) (n rune, size int) {
	digits, most, base := 1, 2, 16
	switch s[0] {
	case 'u':
		most = 4
	case 'U':
		most = 8
	case 'x':
	default:
		digits, most, base = 0, 3, 8
	}
	for size = digits; size < len(s) && size-digits < most; size++ {
		d, err := strconv.ParseUint(s[size:size+1], base, 8)
		if err != nil {
			break
		}
		n = n*rune(base) + rune(d)
	}
	if size == digits {
		return 0, 0
	}
	return n, size
}

// maxOpenBraces is how many braces of a word are read.
const maxOpenBraces = 100

// openBraces is how many braces a word opens.
func openBraces(word *syntax.Word) int {
	n := 0
	for _, p := range word.Parts {
		if lit, ok := p.(*syntax.Lit); ok {
			n += strings.Count(lit.Value, "{")
		}
	}
	return n
}

// braces expands {a,b} and {1..3}. A word that would give too many is opaque.
func (w *walker) braces(word *syntax.Word, s *scope) []*syntax.Word {
	cp := *word
	cp.Parts = append([]syntax.WordPart(nil), word.Parts...)
	if !syntax.SplitBraces(&cp) {
		return []*syntax.Word{word}
	}
	out, ok := w.expandBraces(cp.Parts, maxBraces)
	if len(out) > 1 {
		w.bashOnly(s, s.at(word.Pos()))
	}
	if !ok {
		w.opaque(int(word.Pos().Offset()), "braces", "the braces give more words than are read")
		return []*syntax.Word{word}
	}
	words := make([]*syntax.Word, len(out))
	for i, parts := range out {
		words[i] = &syntax.Word{Parts: parts}
		if len(parts) == 0 || parts[0].Pos().Offset() == 0 && word.Pos().Offset() != 0 {
			words[i].Parts = append([]syntax.WordPart{&syntax.Lit{ValuePos: word.Pos(), ValueEnd: word.Pos()}}, parts...)
		}
	}
	return words
}

func (w *walker) expandBraces(parts []syntax.WordPart, limit int) ([][]syntax.WordPart, bool) {
	out := [][]syntax.WordPart{nil}
	for _, part := range parts {
		br, ok := part.(*syntax.BraceExp)
		if !ok {
			for i := range out {
				out[i] = append(out[i][:len(out[i]):len(out[i])], part)
			}
			continue
		}
		var choices [][]syntax.WordPart
		if br.Sequence {
			texts, ok := sequence(br, limit)
			if !ok {
				return nil, false
			}
			for _, t := range texts {
				choices = append(choices, []syntax.WordPart{&syntax.Lit{Value: t}})
			}
		} else {
			for _, elem := range br.Elems {
				inner, ok := w.expandBraces(elem.Parts, limit)
				if !ok {
					return nil, false
				}
				choices = append(choices, inner...)
			}
		}
		if len(choices)*len(out) > limit {
			return nil, false
		}
		next := make([][]syntax.WordPart, 0, len(out)*len(choices))
		for _, o := range out {
			for _, c := range choices {
				next = append(next, append(o[:len(o):len(o)], c...))
			}
		}
		out = next
	}
	return out, true
}

// sequence gives the words of {a..b} and {a..b..c}.
func sequence(br *syntax.BraceExp, limit int) ([]string, bool) {
	text := func(i int) string {
		if i < len(br.Elems) && len(br.Elems[i].Parts) == 1 {
			if lit, ok := br.Elems[i].Parts[0].(*syntax.Lit); ok {
				return lit.Value
			}
		}
		return ""
	}
	from, to, by := text(0), text(1), text(2)
	step := 1
	if by != "" {
		n, err := strconv.Atoi(by)
		if err != nil || n == 0 {
			return nil, false
		}
		step = max(n, -n)
	}
	a, errA := strconv.Atoi(from)
	b, errB := strconv.Atoi(to)
	chars := errA != nil || errB != nil
	if chars {
		if len(from) != 1 || len(to) != 1 {
			return nil, false
		}
		a, b = int(from[0]), int(to[0])
	}
	width := 0
	if !chars && (padded(from) || padded(to)) {
		width = max(len(from), len(to))
	}
	var out []string
	for n := a; ; {
		if len(out) == limit {
			return nil, false
		}
		if chars {
			out = append(out, string(rune(n)))
		} else {
			t := strconv.Itoa(n)
			for len(t) < width {
				t = "0" + t
			}
			out = append(out, t)
		}
		if n == b || a <= b && n+step > b || a > b && n-step < b {
			return out, true
		}
		if a <= b {
			n += step
		} else {
			n -= step
		}
	}
}

func padded(s string) bool { s = strings.TrimPrefix(s, "-"); return len(s) > 1 && s[0] == '0' }

// quotesInside returns what stands between single quotes where, inside double
// quotes, they quote nothing: there the parser and bash differ. In patterns
// that are removed they do quote.
func quotesInside(p *syntax.ParamExp) (texts []string) {
	var parts []*syntax.Word
	if p.Exp != nil {
		switch p.Exp.Op {
		case syntax.RemSmallPrefix, syntax.RemLargePrefix, syntax.RemSmallSuffix, syntax.RemLargeSuffix:
		default:
			parts = append(parts, p.Exp.Word)
		}
	}
	if p.Repl != nil {
		parts = append(parts, p.Repl.With)
	}
	for _, word := range parts {
		if word == nil {
			continue
		}
		syntax.Walk(word, func(n syntax.Node) bool {
			switch n := n.(type) {
			case *syntax.SglQuoted:
				texts = append(texts, n.Value)
			case *syntax.CmdSubst:
				return false
			}
			return true
		})
	}
	return texts
}

// paramSafe checks what a parameter expansion evaluates, and reports whether
// its value may be used. What is evaluated though it is not known is opaque.
func (w *walker) paramSafe(p *syntax.ParamExp, s *scope) bool {
	if p.Flags != nil || p.Width || p.IsSet || p.NestedParam != nil || len(p.Modifiers) > 0 {
		w.opaque(s.at(p.Pos()), "not-bash", "this expansion belongs to another shell")
		return false
	}
	name := ""
	if p.Param != nil {
		name = p.Param.Value
	}
	if p.Index != nil {
		w.subscript(name, p.Index, s, p.Pos())
	}
	if p.Slice != nil {
		w.arithmetic(p.Slice.Offset, s)
		w.arithmetic(p.Slice.Length, s)
	}
	if p.Repl != nil {
		w.single(p.Repl.Orig, s)
		w.single(p.Repl.With, s)
	}
	if p.Exp != nil {
		word := w.single(p.Exp.Word, s)
		switch p.Exp.Op {
		case syntax.OtherParamOps:
			if word.Text == "P" || word.Kind != catalog.Literal {
				w.opaque(s.at(p.Pos()), "prompt-expansion", "${…@P} evaluates the value as a prompt, and with it any command")
			}
		case syntax.AssignUnset, syntax.AssignUnsetOrNull:
			old := s.lookup(name)
			if old.arith || evaluated(name) {
				w.arithWord(word, s, s.at(p.Pos()))
			}
			s.set(name, value{arith: old.arith, array: old.array, assoc: old.assoc, folds: old.folds})
			w.assigned(name, word, s, s.at(p.Pos()))
			w.exported(name, word, s, s.at(p.Pos()))
		}
	}
	if p.Excl && p.Names == 0 {
		// The value names the variable, and a subscript in it is evaluated.
		v := s.lookup(name)
		if v.known != literal || strings.ContainsAny(v.text, "[$`") {
			if name != "#" && name != "@" && p.Index == nil {
				w.opaque(s.at(p.Pos()), "indirection", "the value of "+name+" is used as a name, and a subscript in it would be evaluated")
			}
		}
	}
	return true
}

// subscript checks the subscript of an array element.
func (w *walker) subscript(name string, index syntax.ArithmExpr, s *scope, pos syntax.Pos) {
	if word, ok := index.(*syntax.Word); ok {
		if text, ok := plain(word); ok && (text == "@" || isInteger(text)) {
			return
		}
		if lit := word.Lit(); lit == "*" || lit == "@" {
			return
		}
		if s.lookup(name).assoc {
			w.single(word, s)
			return
		}
	}
	w.arithmetic(index, s)
}

// at is where a position of the text stands in the outermost text.
func (s *scope) at(p syntax.Pos) int {
	if s.pin >= 0 {
		return s.pin
	}
	return int(p.Offset())
}

// assigned notes what an assignment may start later.
func (w *walker) assigned(name string, word catalog.Word, s *scope, at int) {
	switch name {
	case "PS4":
		if w.xtrace || word.Kind != catalog.Literal {
			w.promptText(word, s, at)
		}
		s.set("PS4", valueOf(word))
	case "PROMPT_COMMAND", "PS0", "PS1", "PS2":
		// Only an interactive shell runs them; the text may be one's.
		if word.Kind != catalog.Literal || strings.ContainsAny(word.Text, "$`") || name == "PROMPT_COMMAND" {
			w.add(&Call{Effects: detail.Opaque, Offset: at}, at)
		}
	}
}

// exported notes that a variable which steers programs has a new value.
func (w *walker) exported(name string, word catalog.Word, s *scope, at int) {
	if !w.catalog.Matters(name) {
		return
	}
	if w.trapped {
		w.opaque(at, "trap", "a trap that was set before runs with another "+name)
	}
	s.export(name, word)
}

// bashOnly marks what a shell that is not bash reads in another way.
func (w *walker) bashOnly(s *scope, at int) {
	if s.posix {
		w.opaque(at, "not-posix", "sh may read this in another way than bash")
	}
}

// promptText reads PS4, which set -x expands before every command.
func (w *walker) promptText(word catalog.Word, s *scope, at int) {
	if word.Kind == catalog.Literal && !strings.ContainsAny(word.Text, "$`") {
		return
	}
	w.opaque(at, "ps4", "PS4 is expanded before every command while set -x is on")
}

func valueOf(word catalog.Word) value {
	switch {
	case word.Kind == catalog.Literal && len(word.Text) > maxValue:
		return value{}
	case word.Kind == catalog.Literal:
		return value{known: literal, text: word.Text}
	case word.Kind == catalog.Partial && strings.HasPrefix(word.Text, "/"), word.Kind == catalog.Partial && strings.HasPrefix(word.Shown(), "~"):
		return value{known: absolute}
	}
	return value{}
}
