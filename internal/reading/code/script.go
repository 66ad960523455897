package code

import "strings"

// script is a text of a language for general use as its tokens, with what is
// known about its names. The methods find calls and their literal arguments.
type script struct {
	*Finding
	lang    Lang
	nest    int
	toks    []token
	join    string            // the operator that joins strings, "" for none
	values  map[string]string // names with one value, which is a literal string
	lists   map[string]span   // names with one value, which is a list
	opens   map[string]string // names with one value, which is a string with holes
	modules map[string]string // names of modules and of what was taken from them
	stars   []string          // modules of which every name was taken
	budget  int               // bytes and words that may still be copied
}

// span is a part of the tokens, without the token at to.
type span struct{ from, to int }

func newScript(f *Finding, lang Lang, text string, nest int, step func(*lexer), join string) *script {
	s := &script{Finding: f, lang: lang, nest: nest, toks: tokens(text, step), join: join,
		values: map[string]string{}, lists: map[string]span{}, opens: map[string]string{}, modules: map[string]string{}, budget: 4 * MaxText}
	s.assignments()
	return s
}

// each calls look for every token but those that end the list.
func (s *script) each(look func(i int)) {
	for i := range s.toks[:len(s.toks)-4] {
		look(i)
	}
}

func (s *script) prev(i int) token {
	if i < 1 {
		return token{kind: tokLine}
	}
	return s.toks[i-1]
}

// assignments finds the names that get a literal value, once.
func (s *script) assignments() {
	spoiled := map[string]bool{}
	s.each(func(i int) {
		t := s.toks[i]
		if t.kind != tokName || s.prev(i).is(".") || s.prev(i).is("->") {
			return
		}
		op := s.toks[i+1]
		if op.named("in", "of") || s.prev(i).named("as") {
			spoiled[t.text] = true // a loop changes it
		}
		if op.kind != tokOp {
			return
		}
		if op.is("=~") && s.lang == Perl || op.is("<<") && s.lang == Ruby {
			spoiled[t.text] = true // changes in its place
		}
		if op.text != "=" {
			if len(op.text) > 1 && strings.HasSuffix(op.text, "=") && strings.IndexByte("=!<>", op.text[0]) < 0 {
				spoiled[t.text] = true
			}
			return
		}
		if p := s.prev(i); p.is("(") || p.is(",") {
			return // an argument by name
		}
		_, value := s.values[t.text]
		_, list := s.lists[t.text]
		_, partly := s.opens[t.text]
		if value || list || partly {
			spoiled[t.text] = true
			return
		}
		s.assign(t.text, i+2)
	})
	for name := range spoiled {
		delete(s.values, name)
		delete(s.lists, name)
		delete(s.opens, name)
	}
}

// assign notes the value that begins at token i, if it is one literal.
func (s *script) assign(name string, i int) {
	if s.toks[i].named("Path", "Pathname") && s.toks[i+1].is("(") && s.toks[i+3].is(")") {
		if s.toks[i+2].kind == tokString && s.toks[i+2].literal && s.closes(i+4) {
			s.values[name] = s.toks[i+2].text
		}
		return
	}
	switch t := s.toks[i]; {
	case t.kind == tokString && t.literal && s.closes(i+1):
		s.values[name] = t.text
	case t.kind == tokWords && s.closes(i+1):
		s.lists[name] = span{i, i + 1}
	case (t.is("[") || t.is("(")) && t.mate > 0 && s.closes(t.mate+1):
		s.lists[name] = span{i, t.mate + 1}
	case t.kind == tokString:
		if text, ok := s.template(span{i, s.bareEnd(i)}); ok {
			s.opens[name] = text
		}
	}
}

// closes reports whether an expression ends before token i.
func (s *script) closes(i int) bool {
	t := s.toks[i]
	return t.kind == tokEnd || t.kind == tokLine || t.is(";") || t.is("}") || t.is(",") || t.is(")")
}

// maxBare is how many tokens of arguments without parentheses are looked at.
const maxBare = 64

// args gives the arguments of a call whose name is token i: in parentheses, or
// bare where the language allows it.
func (s *script) args(i int, bare bool) []span {
	if open := s.toks[i+1]; open.is("(") {
		end := open.mate
		if end < 0 {
			end = min(i+2+maxBare, len(s.toks)-4)
		}
		return s.split(i+2, end)
	}
	if !bare {
		return nil
	}
	return s.split(i+1, s.bareEnd(i+1))
}

// bareEnd gives the end of arguments without parentheses.
func (s *script) bareEnd(i int) int {
	for n := 0; n < maxBare; n++ {
		t := &s.toks[i]
		switch t.kind {
		case tokEnd:
			return i
		case tokLine:
			if s.lang != Perl && !s.prev(i).is(",") {
				return i
			}
		case tokOp:
			switch t.text {
			case ";", ")", "]", "}", "||", "&&", "?":
				return i
			}
		case tokName:
			switch t.text {
			case "if", "unless", "and", "or", "while", "until", "for", "foreach", "do", "then", "rescue", "end":
				return i
			}
		}
		if t.mate > i {
			i = t.mate
		}
		i++
	}
	return i
}

// split cuts tokens at the commas that stand in no brackets.
func (s *script) split(from, to int) []span {
	var out []span
	start := from
	for i := from; i < to; i++ {
		switch t := &s.toks[i]; {
		case t.kind != tokOp:
		case t.is(",") || s.lang == Perl && t.is("=>") || s.lang == Julia && t.is(";"):
			out = append(out, span{start, i})
			start = i + 1
		case t.mate > i:
			i = t.mate
		}
	}
	if last := s.trim(span{start, to}); last.from < last.to {
		out = append(out, span{start, to})
	}
	return out
}

// trim takes line ends and needless parentheses from a part.
func (s *script) trim(a span) span {
	for a.from < a.to {
		switch {
		case s.toks[a.from].kind == tokLine:
			a.from++
		case s.toks[a.to-1].kind == tokLine:
			a.to--
		case s.toks[a.from].is("(") && s.toks[a.from].mate == a.to-1:
			a.from++
			a.to--
		default:
			return a
		}
	}
	return a
}

// str gives the value of a part that is a literal string: one, several in
// juxtaposition or joined by the operator, or a name that stands for one.
func (s *script) str(a span) (string, bool) {
	a = s.trim(a)
	if a.to-a.from == 1 {
		return s.operand(a.from)
	}
	if a.to-a.from >= 4 && s.toks[a.from+1].is("(") && s.toks[a.from+1].mate == a.to-1 && s.toks[a.from].named("Path", "Pathname", "str", "String", "URI", "URL") {
		return s.str(span{a.from + 2, a.to - 1})
	}
	if a.from >= a.to {
		return "", false
	}
	var b strings.Builder
	for i := a.from; i < a.to; i++ {
		t := s.toks[i]
		if t.kind == tokLine || s.join != "" && t.is(s.join) {
			continue
		}
		v, ok := s.operand(i)
		if !ok || s.budget < len(v) {
			return "", false
		}
		s.budget -= len(v)
		b.WriteString(v)
	}
	return b.String(), true
}

// operand gives the value of one token.
func (s *script) operand(i int) (string, bool) {
	switch t := s.toks[i]; t.kind {
	case tokString:
		return t.text, t.literal
	case tokName:
		v, ok := s.values[t.text]
		return v, ok
	}
	return "", false
}

// template gives the text of a part that makes a string of literal and other
// parts, with a hole for each of those. It reports false where the part does
// something else with a string than to join it.
func (s *script) template(a span) (string, bool) {
	a = s.trim(a)
	if s.lang == R && s.toks[a.from].named("paste", "paste0") && s.toks[a.from+1].is("(") && s.toks[a.from+1].mate == a.to-1 {
		return s.pasted(a.from)
	}
	if s.toks[a.from].named("sprintf", "format") && s.toks[a.from+1].is("(") && s.toks[a.from+1].mate == a.to-1 {
		args := s.args(a.from, false)
		if len(args) == 0 {
			return "", false
		}
		format, ok := s.template(args[0])
		return verbs(format), ok
	}
	var b strings.Builder
	add := func(text string) bool {
		s.budget -= len(text)
		b.WriteString(text)
		return s.budget >= 0
	}
	hole := false // an open part began
	for i := a.from; i < a.to; i++ {
		t := s.toks[i]
		last := s.prev(i)
		switch v, literal := s.operand(i); {
		case t.kind == tokLine:
			continue
		case s.join != "" && t.is(s.join):
			hole = false
			continue
		case hole:
		case literal:
			if !add(v) {
				return "", false
			}
			continue
		case t.kind == tokString:
			if !add(t.text) {
				return "", false
			}
			for s.toks[i+1].is("(") && s.toks[i+1].mate > 0 {
				i = s.toks[i+1].mate // code inside of the string
			}
			continue
		case t.kind == tokName && s.opens[t.text] != "":
			if !add(s.opens[t.text]) {
				return "", false
			}
			continue
		case t.is("%") && i > a.from && s.lang != Perl && s.lang != PHP:
			text := verbs(b.String())
			b.Reset()
			b.WriteString(text)
			hole = true
			continue
		case t.is(".") && last.kind == tokString && s.toks[i+1].named("format"):
			text := braces(b.String())
			b.Reset()
			b.WriteString(text)
			hole = true
			continue
		case t.kind == tokOp && last.kind == tokString && i > a.from && !t.is("("):
			return "", false // compares, indexes, calls a method
		}
		if !hole && !add(string(Hole)) {
			return "", false
		}
		hole = true
		if t.mate > i {
			i = t.mate
		}
	}
	return b.String(), b.Len() > 0
}

// pasted gives the text that paste of R makes.
func (s *script) pasted(i int) (string, bool) {
	sep := ""
	if s.toks[i].text == "paste" {
		sep = " "
	}
	parts := []string(nil)
	for _, a := range s.args(i, false) {
		if s.toks[s.trim(a).from+1].is("=") {
			return "", false // another separator
		}
		text, ok := s.str(a)
		if !ok {
			text = string(Hole)
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, sep), len(parts) > 0
}

// verbs puts holes in the place of what a format says with percent signs.
func verbs(format string) string {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			b.WriteByte(format[i])
			continue
		}
		if i++; i < len(format) && format[i] == '%' {
			b.WriteByte('%')
			continue
		}
		if i < len(format) && format[i] == '(' {
			if end := strings.IndexByte(format[i:], ')'); end >= 0 {
				i += end + 1
			}
		}
		for i < len(format) && strings.IndexByte("#0- +.123456789$'", format[i]) >= 0 {
			i++
		}
		b.WriteRune(Hole)
	}
	return b.String()
}

// braces puts holes in the place of what a format says in braces.
func braces(format string) string {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		c := format[i]
		switch {
		case c != '{' && c != '}':
			b.WriteByte(c)
		case i+1 < len(format) && format[i+1] == c:
			b.WriteByte(c)
			i++
		case c == '{':
			b.WriteRune(Hole)
			if end := strings.IndexByte(format[i:], '}'); end >= 0 {
				i += end
			}
		}
	}
	return b.String()
}

// list gives the elements of a part that is a list. It reports whether it is
// one, and whether all elements are literal.
func (s *script) list(a span) (words []string, literal, is bool) {
	whole := a
	for whole.from < whole.to && s.toks[whole.from].kind == tokLine {
		whole.from++
	}
	a = s.trim(a)
	if a.from > whole.from && s.toks[a.to-1].is(",") {
		a = span{a.from - 1, a.to + 1} // the parentheses make a list of one
	}
	if a.to-a.from == 1 && s.toks[a.from].kind == tokName {
		if v, ok := s.lists[s.toks[a.from].text]; ok {
			a = v
		}
	}
	if a.from >= a.to || s.budget < 0 {
		return nil, false, false
	}
	t := s.toks[a.from]
	switch {
	case a.to-a.from == 1 && t.kind == tokWords:
		s.budget -= len(t.text)
		return strings.Fields(t.text), s.budget >= 0, true
	case (t.is("[") || t.is("(") || t.is("{")) && t.mate == a.to-1:
		parts := s.split(a.from+1, a.to-1)
		s.budget -= a.to - a.from
		words, literal = s.strings(parts)
		return words, literal && s.budget >= 0, true
	case a.to-a.from >= 5 && s.toks[a.from+1].is(".") && s.toks[a.from+2].text == "split" && s.toks[a.from+3].is("(") && s.toks[a.from+3].mate == a.to-1:
		// "rm -rf x".split() and shlex.split("rm -rf x")
		if v, ok := s.operand(a.from); ok && a.to-a.from == 5 {
			s.budget -= len(v)
			return strings.Fields(v), s.budget >= 0, true
		}
		if v, ok := s.str(span{a.from + 4, a.to - 1}); ok && t.named("shlex") && !strings.ContainsAny(v, `'"\#`) {
			s.budget -= len(v)
			return strings.Fields(v), s.budget >= 0, true
		}
		return nil, false, true
	}
	return nil, false, false
}

// strings gives the values of parts. It reports whether all are literal.
func (s *script) strings(parts []span) ([]string, bool) {
	words := make([]string, 0, len(parts))
	for _, p := range parts {
		if p = s.trim(p); p.to-p.from == 1 && s.toks[p.from].kind == tokWords {
			words = append(words, strings.Fields(s.toks[p.from].text)...)
			continue
		}
		v, ok := s.str(p)
		if !ok {
			return nil, false
		}
		words = append(words, v)
	}
	return words, true
}

// lit gives the literal value of argument n.
func (s *script) lit(args []span, n int) (string, bool) {
	if n >= len(args) {
		return "", false
	}
	return s.str(args[n])
}

// keyword finds an argument by name, `name = value` or `name: value`.
func (s *script) keyword(args []span, name string) (span, bool) {
	for _, a := range args {
		for a.from < a.to && s.toks[a.from].kind == tokLine {
			a.from++
		}
		if a.to-a.from > 2 && (s.toks[a.from].kind == tokName || s.toks[a.from].kind == tokString) && s.toks[a.from].text == name && (s.toks[a.from+1].is("=") || s.toks[a.from+1].is(":")) {
			return span{a.from + 2, a.to}, true
		}
	}
	return span{}, false
}

// shellArg records argument n as text for a shell.
func (s *script) shellArg(args []span, n int) {
	if n >= len(args) {
		s.Starts = true
		return
	}
	s.command(args[n])
}

// command records a part as text for a shell.
func (s *script) command(a span) {
	if text, ok := s.str(a); ok {
		s.shell(text)
	} else if text, ok := s.template(a); ok {
		s.partly(text)
	} else {
		s.Starts = true
	}
}

// listArg records a part as an argument list.
func (s *script) listArg(a span) {
	if words, literal, _ := s.list(a); literal {
		s.argv(words)
		return
	}
	s.Starts = true
}

// wordsArg records parts as the words of one argument list.
func (s *script) wordsArg(parts []span) {
	if words, literal := s.strings(parts); literal {
		s.argv(words)
		return
	}
	s.Starts = true
}

// shellOrWords records the arguments of calls that take either one text for a
// shell or the words of an argument list.
func (s *script) shellOrWords(args []span) {
	switch len(args) {
	case 0:
		s.Starts = true
	case 1:
		if words, literal, is := s.list(args[0]); is {
			if !literal {
				s.Starts = true
			} else if len(words) == 1 {
				s.shell(words[0])
			} else {
				s.argv(words)
			}
			return
		}
		s.shellArg(args, 0)
	default:
		s.wordsArg(args)
	}
}

// deleteArgs records arguments as paths that are deleted; an argument may be a
// list of paths.
func (s *script) deleteArgs(args []span) {
	s.Write, s.Destroy = true, true
	for _, a := range args {
		if words, literal, is := s.list(a); is {
			if literal {
				s.Deletes = append(s.Deletes, words...)
			}
		} else if path, ok := s.str(a); ok {
			s.Deletes = append(s.Deletes, path)
		}
	}
}

// writeArg records argument n as a path that is written.
func (s *script) writeArg(args []span, n int) { s.writes(s.lit(args, n)) }

// open records the opening of argument 0 in the mode of argument n.
func (s *script) open(args []span, mode string, literal bool) {
	path, ok := s.lit(args, 0)
	switch {
	case !literal, strings.ContainsAny(mode, "wax+c"):
		s.writes(path, ok)
	case ok && !isURL(path):
		s.reads(path, true)
	}
}

// contactArgs records network use, with the host or URL that the first literal
// argument names.
func (s *script) contactArgs(args []span) {
	s.Network = true
	for _, a := range args[:min(len(args), 4)] {
		if words, _, is := s.list(a); is && len(words) > 0 {
			s.contacts(words[0], true)
			return
		}
		first := s.trim(a)
		if first.to-first.from > 3 && s.toks[first.from].is("(") {
			first = span{first.from + 1, first.from + 2}
		}
		if v, ok := s.str(first); ok && hostLike(v) {
			s.contacts(v, true)
			return
		}
		// A pair of host and port.
		if first.from < first.to && s.toks[first.from].kind == tokString && s.toks[first.from].literal && hostLike(s.toks[first.from].text) {
			s.contacts(s.toks[first.from].text, true)
			return
		}
	}
}

// hostLike reports whether a string may be a URL or the name of a host.
func hostLike(v string) bool {
	if isURL(v) {
		return true
	}
	if v == "" || len(v) > 253 || strings.ToUpper(v) == v && strings.IndexByte(v, '.') < 0 {
		return false // methods of HTTP are in capitals
	}
	for i := 0; i < len(v); i++ {
		if !isWord(v[i]) && strings.IndexByte(".-:[]", v[i]) < 0 {
			return false
		}
	}
	return true
}

// nested reads a text of the same language that the script evaluates.
func (s *script) nested(lang Lang, args []span, n int) {
	if text, ok := s.lit(args, n); ok && s.budget >= len(text) {
		s.budget -= len(text)
		s.merge(read(lang, text, s.nest+1))
	}
}

// sql reads a text that goes to a database.
func (s *script) sql(args []span) {
	text, ok := s.lit(args, 0)
	if !ok || s.budget < len(text) {
		return
	}
	s.budget -= len(text)
	g := read(SQL, text, s.nest+1)
	s.Write = s.Write || g.Write
	s.Destroy = s.Destroy || g.Destroy
	s.Privilege = s.Privilege || g.Privilege
}

// path gives the dotted name that ends at token i, for example
// "subprocess.run". Where something else than a name stands before the dots,
// it begins with a dot; from is its first token.
func (s *script) path(i int) (name string, from int) {
	parts := []string{s.toks[i].text}
	from = i
	for len(parts) < 8 && from > 0 && s.dot(from-1) {
		if from < 2 || s.toks[from-2].kind != tokName {
			parts = append(parts, "")
			break
		}
		from -= 2
		parts = append(parts, s.toks[from].text)
	}
	if len(parts) == 1 {
		return parts[0], from
	}
	for l, r := 0, len(parts)-1; l < r; l, r = l+1, r-1 {
		parts[l], parts[r] = parts[r], parts[l]
	}
	return strings.Join(parts, "."), from
}

func (s *script) dot(i int) bool {
	t := s.toks[i]
	return t.kind == tokOp && (t.text == "." || t.text == "::" || t.text == "->" || t.text == "?." || t.text == "&.")
}

// receiver gives the call before the dot at the beginning of a path: its name
// and the token of that name, or -1.
func (s *script) receiver(from int) (string, int) {
	if from < 2 || !s.toks[from-2].is(")") {
		return "", -1
	}
	open := s.toks[from-2].mate
	if open < 1 || s.toks[open-1].kind != tokName {
		return "", -1
	}
	name, _ := s.path(open - 1)
	return name, open - 1
}

// resolve puts the module in the place of the name that stands for it.
func (s *script) resolve(name string) string {
	root, rest, dotted := strings.Cut(name, ".")
	module, ok := s.modules[root]
	switch {
	case !ok:
		return name
	case dotted:
		return module + "." + rest
	}
	return module
}
