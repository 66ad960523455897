package code

import "strings"

// stepPerl reads one token of Perl.
func stepPerl(lx *lexer) {
	if lx.blank() {
		return
	}
	c := lx.text[lx.pos]
	switch {
	case c == '#':
		lx.skipLine()
	case c == '=' && lx.lineStart() && isLetter(lx.at(1)):
		lx.skipPast("\n=cut")
		lx.skipLine()
	case c == '$' || c == '@' || c == '%' && !lx.operand() || c == '&' && isWord(lx.at(1)) && !lx.operand():
		perlVariable(lx)
	case c == '\'':
		lx.quoted(1, quote{shut: c, kind: tokString, raw: true})
	case c == '"':
		perlQuoted(lx, 1, '"', tokString)
	case c == '`':
		perlQuoted(lx, 1, '`', tokShell)
	case c == '/':
		if lx.operand() || !lx.regex(1, '/', 0, false) {
			operator(lx)
		}
	case c == '<' && lx.at(1) == '<' && perlHeredoc(lx):
	case isDigit(c):
		lx.number()
	case isWord(c):
		perlWord(lx)
	default:
		operator(lx)
	}
}

// perlVariable reads a name with its sigil.
func perlVariable(lx *lexer) {
	n := 1
	for lx.at(n) == '$' && (isWord(lx.at(n+1)) || lx.at(n+1) == '{' || lx.at(n+1) == '$') || lx.at(n) == '#' && n == 1 && lx.text[lx.pos] == '$' {
		n++
	}
	switch c := lx.at(n); {
	case isWord(c) || c == ':' && lx.at(n+1) == ':':
		for isWord(lx.at(n)) || lx.at(n) == ':' && lx.at(n+1) == ':' && isWord(lx.at(n+2)) || lx.at(n) == ':' && lx.at(n-1) == ':' {
			n++
		}
	case c == '{' || lx.text[lx.pos] != '$' || isSpace(c):
		// A dereference, or an operator.
		if c != '{' && lx.text[lx.pos] == '@' && (c == '_' || c == '-' || c == '+') {
			n++
		}
	default:
		n++ // a variable of punctuation
	}
	lx.add(token{kind: tokName, text: lx.text[lx.pos:min(lx.pos+n, len(lx.text))]})
	lx.pos += n
}

// perlQuoted reads a string that interpolates.
func perlQuoted(lx *lexer, skip int, open byte, kind tokenKind) {
	shut, nests := closing(open)
	q := quote{shut: shut, open: nests, kind: kind, sigil: perlSigil}
	before := len(lx.toks)
	start := lx.pos + skip
	lx.quoted(skip, q)
	if before >= len(lx.toks) || lx.toks[before].kind != kind || lx.toks[before].literal {
		return
	}
	lx.perlCode(lx.text[start:max(lx.pos-1, start)])
}

// perlCode reads the code in @{[ … ]} and ${\ … } of a string.
func (lx *lexer) perlCode(body string) {
	for lx.depth < maxCodeDepth {
		i := strings.Index(body, "@{")
		if j := strings.Index(body, "${"); i < 0 || j >= 0 && j < i {
			i = j
		}
		if i < 0 {
			return
		}
		sub := lexer{text: body[i+2:], step: lx.step, depth: lx.depth + 1, failures: lx.failures}
		sub.code()
		lx.failures = sub.failures
		lx.toks = append(lx.toks, sub.toks...)
		body = sub.text[min(sub.pos, len(sub.text)):]
	}
}

// perlSigil gives the length of the variable in a string.
func perlSigil(text string, q quote) int {
	if text[0] != '$' && text[0] != '@' {
		return 0
	}
	n := 1
	for n < len(text) && text[0] == '$' && text[n] == '$' {
		n++
	}
	c := byte(' ')
	if n < len(text) {
		c = text[n]
	}
	switch {
	case isWord(c), strings.HasPrefix(text[n:], "::"):
		for n < len(text) && (isWord(text[n]) || text[n] == ':' && (text[n-1] == ':' || strings.HasPrefix(text[n:], "::"))) {
			n++
		}
		return subscripts(text, n, q)
	case c == '{':
		block := subscript(text[n:], q)
		if block < 3 || n == 1 && word(text[n+1:n+block-1]) {
			return n + max(block, 1)
		}
		return subscripts(text, n+block, q)
	case n > 1:
		return n // the number of the process
	case text[0] == '@' && c == '$':
		return 2
	case text[0] == '@', isSpace(c), c == q.shut:
		return 0
	}
	return 2 // a variable of punctuation
}

// word reports whether a text is a name.
func word(text string) bool {
	for i := 0; i < len(text); i++ {
		if !isWord(text[i]) && text[i] != ':' && text[i] != '^' {
			return false
		}
	}
	return true
}

// subscripts gives the length of a variable of n bytes with the subscripts
// behind it.
func subscripts(text string, n int, q quote) int {
	for {
		open := n
		if strings.HasPrefix(text[n:], "->") {
			open += 2
		}
		if open >= len(text) || text[open] != '[' && text[open] != '{' {
			return n
		}
		end := subscript(text[open:], q)
		if end == 0 {
			return n
		}
		n = open + end
	}
}

// perlWord reads a name, a keyword or a quote-like construct.
func perlWord(lx *lexer) {
	n := 0
	for isWord(lx.at(n)) || lx.at(n) == ':' && lx.at(n+1) == ':' && isWord(lx.at(n+2)) || n > 1 && lx.at(n) == ':' && lx.at(n-1) == ':' && lx.at(n-2) != ':' && isWord(lx.at(n+1)) {
		n++
	}
	word := lx.text[lx.pos : lx.pos+n]
	if (word == "__END__" || word == "__DATA__") && lx.lineStart() {
		lx.pos = len(lx.text)
		return
	}
	if !lx.last().is("->") && !lx.last().is("{") && !lx.last().named("sub") && perlQuoteLike(lx, word) {
		return
	}
	lx.add(token{kind: tokName, text: word})
	lx.pos += n
}

// perlQuoteLike reads q, qq, qw, qx, m, qr, s, tr and y, where they are that.
func perlQuoteLike(lx *lexer, word string) bool {
	switch word {
	case "q", "qq", "qw", "qx", "m", "qr", "s", "tr", "y":
	default:
		return false
	}
	n := len(word)
	for isSpace(lx.at(n)) {
		n++
	}
	open := lx.at(n)
	if !plainDelimiter(open) || open == '=' || open == ',' || open == ';' || open == ')' || open == '#' && n > len(word) {
		return false
	}
	shut, nests := closing(open)
	switch word {
	case "q":
		lx.quoted(n+1, quote{shut: shut, open: nests, kind: tokString, raw: true})
	case "qq":
		perlQuoted(lx, n+1, open, tokString)
	case "qx":
		if open == '\'' {
			lx.quoted(n+1, quote{shut: shut, open: nests, kind: tokShell, raw: true})
		} else {
			perlQuoted(lx, n+1, open, tokShell)
		}
	case "qw":
		lx.quoted(n+1, quote{shut: shut, open: nests, kind: tokWords, raw: true})
	case "m", "qr":
		if !lx.regex(n+1, shut, nests, false) {
			lx.failed()
		}
	default:
		perlSubstitute(lx, n, open)
	}
	return true
}

// perlSubstitute reads s///, tr/// and y///. With the flag e the replacement is
// code.
func perlSubstitute(lx *lexer, n int, open byte) {
	shut, nests := closing(open)
	substitute := lx.text[lx.pos] == 's'
	start := lx.pos
	if !lx.regex(n+1, shut, nests, false) {
		lx.failed()
		return
	}
	lx.toks = lx.toks[:len(lx.toks)-1]
	skip := 0
	if nests != 0 {
		for isSpace(lx.at(skip)) {
			skip++
		}
		shut, nests = closing(lx.at(skip))
		skip++
	} else {
		for lx.text[lx.pos-1] != open {
			lx.pos-- // letters taken for flags belong to the replacement
		}
	}
	from := lx.pos + skip
	if from > len(lx.text) || !lx.regex(skip, shut, nests, false) {
		lx.pos = start
		lx.failed()
		return
	}
	t := lx.last().text
	flags := t[strings.LastIndexByte(t, shut)+1:]
	if !substitute || strings.IndexByte(flags, 'e') < 0 || lx.depth >= maxCodeDepth {
		return
	}
	sub := lexer{text: lx.text[from : lx.pos-len(flags)-1], step: lx.step, depth: lx.depth + 1, failures: lx.failures}
	sub.run(false)
	lx.failures = sub.failures
	lx.toks = append(lx.toks, sub.toks...)
}

// perlHeredoc reads the mark of a heredoc, if one stands here.
func perlHeredoc(lx *lexer) bool {
	if t := lx.last(); lx.operand() && !(t.kind == tokName && isLetter(t.text[0])) {
		return false
	}
	n := 2
	doc := heredoc{tok: len(lx.toks), q: quote{sigil: perlSigil, kind: tokString}}
	if lx.at(n) == '~' {
		doc.indent = true
		n++
	}
	kind := tokString
	switch c := lx.at(n); {
	case c == '"' || c == '\'' || c == '`':
		end := strings.IndexByte(lx.text[lx.pos+n+1:], c)
		if end < 0 || end > 64 {
			return false
		}
		doc.end = lx.text[lx.pos+n+1 : lx.pos+n+1+end]
		doc.plain = c == '\''
		if c == '`' {
			kind = tokShell
		}
		n += end + 2
	case isLetter(c) || c == '_':
		size := lx.name(n)
		doc.end = lx.text[lx.pos+n : lx.pos+n+size]
		n += size
	default:
		return false
	}
	lx.add(token{kind: kind, literal: true})
	lx.heredocs = append(lx.heredocs, doc)
	lx.pos += n
	return true
}

// perl is a script with the functions of Perl.
type perl struct{ *script }

func readPerl(f *Finding, text string, nest int) {
	p := perl{newScript(f, Perl, text, nest, stepPerl, ".")}
	p.each(func(i int) {
		t := p.toks[i]
		switch t.kind {
		case tokShell:
			p.shellToken(t)
		case tokName:
			if !p.prev(i).named("sub", "package", "use", "no") && !p.toks[i+1].is("=>") && !(p.prev(i).is("{") && p.toks[i+1].is("}")) {
				p.call(i)
			}
		}
	})
}

// shellToken records a command in backquotes.
func (s *script) shellToken(t token) {
	switch {
	case !t.literal:
		s.partly(t.text)
	case strings.TrimSpace(t.text) != "":
		s.shell(t.text)
	}
}

func (p perl) call(i int) {
	name := p.toks[i].text
	if c := name[0]; c == '$' || c == '@' || c == '%' {
		return
	}
	method := p.prev(i).is("->")
	if k := strings.LastIndex(name, "::"); k >= 0 {
		if !p.toks[i+1].is("->") && !p.toks[i+1].is("(") && !p.toks[i+1].is("::") {
			p.loaded(i, name)
		}
		switch name[:k] {
		case "CORE", "CORE::GLOBAL", "File::Path", "File::Copy", "POSIX", "LWP::Simple", "File::Slurp":
			name = name[k+2:]
		}
	}
	if method {
		p.method(i, name)
		return
	}
	p.function(i, name)
}

// loaded notes what stands after the name of a module, such as in new LWP::UserAgent.
func (p perl) loaded(i int, name string) {
	if p.prev(i).named("new") {
		p.network(name, nil)
	}
}

func (p perl) function(i int, name string) {
	switch name {
	case "system", "exec":
		args := p.args(i, true)
		if len(args) > 0 && p.toks[args[0].from].is("{") {
			p.Starts = true // the program stands in a block before the words
			return
		}
		p.shellOrWords(args)
	case "readpipe":
		p.shellArg(p.args(i, true), 0)
	case "unlink", "rmtree", "remove_tree", "rmdir":
		p.deleteArgs(p.args(i, true))
	case "open":
		p.opening(p.args(i, true))
	case "sysopen":
		p.writeArg(p.args(i, true), 1)
	case "truncate":
		args := p.args(i, true)
		p.empties(p.lit(args, 0))
	case "rename", "move", "copy", "cp", "mv", "symlink", "link":
		if args := p.args(i, true); len(args) > 1 {
			p.writeArg(args, 1)
		}
	case "mkdir", "make_path", "mkpath", "write_file", "append_file":
		if args := p.args(i, true); len(args) > 0 {
			p.writeArg(args, 0)
		}
	case "chmod", "chown", "utime":
		args := p.args(i, true)
		for n := min(len(args), 1); n < len(args); n++ {
			p.writeArg(args, n)
		}
	case "kill":
		p.Destroy = true
	case "socket", "connect", "getstore", "getprint", "mirror":
		p.contactArgs(p.args(i, true))
	case "get", "head":
		if args := p.args(i, true); len(args) > 0 {
			if url, ok := p.lit(args, 0); ok && isURL(url) {
				p.contacts(url, true)
			}
		}
	case "eval":
		p.nested(Perl, p.args(i, true), 0)
	case "syscall", "dump":
		p.Starts = true
	}
}

// opening judges open, with its mode apart or in one string with the name.
func (p perl) opening(args []span) {
	if len(args) < 2 {
		return
	}
	mode, ok := p.lit(args, 1)
	mode = strings.TrimSpace(mode)
	switch {
	case len(args) > 2 && ok && (mode == "-|" || mode == "|-"):
		p.shellOrWords(args[2:])
	case len(args) > 2 && ok && strings.ContainsAny(mode, ">+"):
		p.writeArg(args, 2)
	case len(args) > 2 && ok:
		p.reads(p.lit(args, 2))
	case !ok:
		// The text itself may begin a mode, then the rest of it is unknown.
		first := p.toks[p.trim(args[1]).from]
		lead := strings.TrimSpace(first.text)
		if first.kind != tokString {
			return
		}
		p.Starts = p.Starts || strings.HasPrefix(lead, "|") || strings.HasSuffix(strings.TrimSpace(p.toks[p.trim(args[1]).to-1].text), "|")
		p.Write = p.Write || strings.HasPrefix(lead, ">") || strings.HasPrefix(lead, "+")
	case strings.HasPrefix(mode, "|"):
		p.shell(strings.TrimSpace(mode[1:]))
	case strings.HasSuffix(mode, "|"):
		p.shell(strings.TrimSpace(mode[:len(mode)-1]))
	case strings.HasPrefix(mode, ">") || strings.HasPrefix(mode, "+"):
		if path := strings.TrimLeft(mode, "+<> "); path != "" && path[0] != '&' {
			p.writes(path, true)
		}
	default:
		p.reads(strings.TrimLeft(mode, "< "), mode != "" && mode != "-")
	}
}

// method judges the call of a method, by the class before the arrow.
func (p perl) method(i int, name string) {
	class := p.toks[max(i-2, 0)]
	if class.kind == tokName {
		p.network(class.text, p.args(i, false))
	}
	switch name {
	case "do", "execute", "prepare", "selectall_arrayref":
		p.sql(p.args(i, false))
	case "get", "post", "request", "mirror", "head":
		if args := p.args(i, false); len(args) > 0 {
			if url, ok := p.lit(args, 0); ok && isURL(url) {
				p.contacts(url, true)
			}
		}
	case "remove", "unlink":
		p.deletes("", false)
	case "spew", "spew_utf8", "append":
		p.writes("", false)
	}
}

// network judges the use of a class that uses the network.
func (p perl) network(class string, args []span) {
	for _, prefix := range [...]string{"LWP::", "HTTP::Tiny", "IO::Socket", "Net::", "WWW::", "Mojo::UserAgent", "Socket"} {
		if strings.HasPrefix(class, prefix) {
			p.contactArgs(args)
			return
		}
	}
}
