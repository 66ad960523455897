package code

import "strings"

// stepRuby reads one token of Ruby.
func stepRuby(lx *lexer) {
	if lx.blank() {
		return
	}
	c := lx.text[lx.pos]
	switch {
	case c == '#':
		lx.skipLine()
	case lx.lineStart() && strings.HasPrefix(lx.rest(), "=begin"):
		lx.skipPast("\n=end")
		lx.skipLine()
	case c == '\'':
		lx.quoted(1, quote{shut: c, kind: tokString, raw: true})
	case c == '"':
		lx.quoted(1, quote{shut: c, kind: tokString, code: "#{", sigil: rubySigil})
	case c == '`':
		lx.quoted(1, quote{shut: c, kind: tokShell, code: "#{", sigil: rubySigil})
	case c == '/':
		if !rubyOperand(lx) && lx.regex(1, '/', 0, false) {
			return
		}
		operator(lx)
	case c == '%' && rubyPercent(lx):
	case c == '<' && lx.at(1) == '<' && rubyHeredoc(lx):
	case c == ':' && (isLetter(lx.at(1)) || lx.at(1) == '_') && !lx.last().is(":"):
		n := lx.name(1)
		lx.add(token{kind: tokString, text: lx.text[lx.pos+1 : lx.pos+1+n], literal: true})
		lx.pos += n + 1
	case c == '?' && isWord(lx.at(1)) && !isWord(lx.at(2)) && !lx.operand():
		lx.add(token{kind: tokString, text: lx.text[lx.pos+1 : lx.pos+2], literal: true})
		lx.pos += 2
	case c == '$' && lx.pos+1 < len(lx.text) && !isSpace(lx.at(1)):
		n := max(lx.name(1), 1)
		lx.add(token{kind: tokName, text: lx.text[lx.pos : lx.pos+1+n]})
		lx.pos += n + 1
	case c == '@':
		n := 1
		if lx.at(1) == '@' {
			n = 2
		}
		n += lx.name(n)
		lx.add(token{kind: tokName, text: lx.text[lx.pos : lx.pos+n]})
		lx.pos += n
	case isDigit(c):
		lx.number()
	case isWord(c):
		rubyWord(lx)
	default:
		if t := lx.last(); c == '=' && t.kind == tokName {
			if lx.locals == nil {
				lx.locals = map[string]bool{}
			}
			lx.locals[t.text] = true
		}
		operator(lx)
	}
}

// rubySigil gives the length of the variable in a string.
func rubySigil(text string, _ quote) int {
	if text[0] != '#' || len(text) < 3 || text[1] != '@' && text[1] != '$' {
		return 0
	}
	n := 2
	if text[1] == '@' && text[2] == '@' {
		n = 3
	}
	start := n
	for n < len(text) && isWord(text[n]) {
		n++
	}
	if n == start {
		return 0
	}
	return n
}

func rubyWord(lx *lexer) {
	n := lx.name(0)
	if c := lx.at(n); (c == '?' || c == '!') && lx.at(n+1) != '=' {
		n++
	}
	word := lx.text[lx.pos : lx.pos+n]
	if word == "__END__" && lx.lineStart() {
		lx.pos = len(lx.text)
		return
	}
	lx.add(token{kind: tokName, text: word})
	lx.pos += n
}

// rubyOperand reports whether a sign divides or takes a remainder: a name with
// a space before the sign and none behind it is a call with an argument.
func rubyOperand(lx *lexer) bool {
	if t := lx.last(); t.kind == tokName && lx.space && !isSpace(lx.at(1)) && lx.at(1) != '=' && !lx.locals[t.text] {
		return false
	}
	return lx.operand()
}

// rubyPercent reads a literal that begins with a percent sign.
func rubyPercent(lx *lexer) bool {
	if rubyOperand(lx) {
		return false
	}
	kind, n := byte('Q'), 1
	if isLetter(lx.at(1)) {
		kind, n = lx.at(1), 2
	}
	open := lx.at(n)
	if !plainDelimiter(open) || open == '=' {
		return false
	}
	shut, nests := closing(open)
	q := quote{shut: shut, open: nests, kind: tokString}
	switch kind {
	case 'q', 's':
		q.raw = true
	case 'Q':
		q.code, q.sigil = "#{", rubySigil
	case 'x':
		q.code, q.sigil, q.kind = "#{", rubySigil, tokShell
	case 'w', 'i', 'W', 'I':
		q.kind, q.raw = tokWords, true
	case 'r':
		return lx.regex(n+1, shut, nests, false)
	default:
		return false
	}
	at := len(lx.toks)
	lx.quoted(n+1, q)
	if at < len(lx.toks) && lx.toks[at].kind == tokWords && (kind == 'W' || kind == 'I') && strings.Contains(lx.toks[at].text, "#{") {
		lx.toks[at] = token{kind: tokString, mate: -1} // not literal
	}
	return true
}

// rubyHeredoc reads the mark of a heredoc, if one stands here.
func rubyHeredoc(lx *lexer) bool {
	n := 2
	doc := heredoc{tok: len(lx.toks), q: quote{code: "#{", sigil: rubySigil, kind: tokString}}
	if c := lx.at(n); c == '~' || c == '-' {
		doc.indent = true
		n++
	} else if lx.operand() && !(lx.last().kind == tokName && lx.space) {
		return false
	}
	kind := tokString
	switch c := lx.at(n); {
	case c == '"' || c == '\'' || c == '`':
		end := strings.IndexByte(lx.text[lx.pos+n+1:min(lx.pos+n+66, len(lx.text))], c)
		if end < 0 {
			return false
		}
		doc.end = lx.text[lx.pos+n+1 : lx.pos+n+1+end]
		doc.plain = c == '\''
		if c == '`' {
			kind = tokShell
		}
		n += end + 2
	case c >= 'A' && c <= 'Z' || c == '_':
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

// ruby is a script with the calls of Ruby's standard library.
type ruby struct{ *script }

func readRuby(f *Finding, text string, nest int) {
	p := ruby{newScript(f, Ruby, text, nest, stepRuby, "+")}
	p.each(func(i int) {
		switch t := p.toks[i]; t.kind {
		case tokShell:
			p.shellToken(t)
		case tokName:
			if !p.prev(i).named("def", "class", "module") && !p.toks[i+1].is("=") && !p.dot(i+1) {
				p.call(i)
			}
		}
	})
}

// call judges the call whose name ends at token i, if it is one.
func (p ruby) call(i int) {
	name, from := p.path(i)
	switch {
	case strings.HasPrefix(name, "Kernel."), strings.HasPrefix(name, "Process.spawn"), strings.HasPrefix(name, "Process.exec"):
		_, name, _ = strings.Cut(name, ".")
	case strings.HasPrefix(name, "."):
		callee, at := p.receiver(from)
		if callee == "Pathname" || callee == "Pathname.new" {
			path, ok := p.lit(p.args(at, true), 0)
			p.pathMethod(name[1:], path, ok)
			return
		}
	}
	if p.process(i, name) || p.file(i, name) || p.network(i, name) {
		return
	}
	root, method, dotted := strings.Cut(name, ".")
	if !dotted {
		return
	}
	path, literal := p.values[root]
	switch method {
	case "unlink", "rmtree", "delete!":
		p.pathMethod(method, path, literal)
	case "execute", "exec_query", "exec":
		p.sql(p.args(i, true))
	case "send", "public_send", "__send__", "method":
		if v, ok := p.lit(p.args(i, true), 0); ok && (v == "system" || v == "exec" || v == "spawn" || v == "`") {
			p.Starts = true
		}
	}
}

// process judges calls that start something.
func (p ruby) process(i int, name string) bool {
	switch name {
	case "system", "exec", "spawn":
		if args := p.args(i, true); len(args) > 0 {
			p.start(args)
		}
	case "IO.popen", "PTY.spawn", "Open3.popen3", "Open3.popen2", "Open3.popen2e", "Open3.capture2", "Open3.capture2e", "Open3.capture3", "Open3.pipeline":
		args := p.args(i, true)
		if name == "IO.popen" && len(args) == 2 {
			args = args[:1] // the second is a mode
		}
		p.start(args)
	case "open", "URI.open", "IO.read", "IO.readlines", "IO.foreach":
		args := p.args(i, true)
		target, ok := p.lit(args, 0)
		switch {
		case len(args) == 0 || !ok:
		case strings.HasPrefix(target, "|"):
			p.shell(strings.TrimSpace(target[1:]))
		case isURL(target):
			p.contacts(target, true)
		default:
			p.opening(args)
		}
		p.Network = p.Network || name == "URI.open"
	case "eval", "instance_eval", "class_eval", "Binding.eval":
		p.nested(Ruby, p.args(i, true), 0)
	case "syscall":
		p.Starts = true
	case "Process.kill":
		p.Destroy = true
	case "Process.setuid", "Process.euid=", "Process.setgid":
		p.Privilege = true
	default:
		return false
	}
	return true
}

// start judges the arguments of system and its relatives: an environment may
// stand before the command, options behind it.
func (p ruby) start(args []span) {
	if len(args) > 0 {
		if t := p.toks[p.trim(args[0]).from]; t.is("{") || p.pair(args[0]) {
			args = args[1:]
		}
	}
	for n, a := range args {
		if n > 0 && (p.pair(a) || p.toks[p.trim(a).from].is("{") || p.toks[p.trim(a).from].is("**")) {
			args = args[:n]
			break
		}
	}
	p.shellOrWords(args)
}

// pair reports whether a part is an option, `name: value` or `key => value`.
func (p ruby) pair(a span) bool {
	a = p.trim(a)
	i := max(a.from, p.toks[a.from].mate) + 1
	return i < a.to && (p.toks[i].is("=>") || p.toks[i].is(":"))
}

// opening judges a call with a path and a mode.
func (p ruby) opening(args []span) {
	mode, literal := "r", true
	if len(args) > 1 && !p.pair(args[1]) {
		mode, literal = p.lit(args, 1)
	}
	p.open(args, mode, literal)
}

// file judges calls that change files.
func (p ruby) file(i int, name string) bool {
	class, method, dotted := strings.Cut(name, ".")
	if !dotted {
		class, method = "FileUtils", name
		switch name {
		case "rm", "rm_f", "rm_r", "rm_rf", "rmtree", "remove_dir", "remove_entry", "remove_entry_secure", "mkdir_p", "cp_r":
		default:
			return false
		}
	}
	args := p.args(i, true)
	for n, a := range args {
		if n > 0 && p.pair(a) {
			args = args[:n]
			break
		}
	}
	if !dotted && len(args) == 0 {
		return false
	}
	switch class {
	case "FileUtils":
		switch method {
		case "rm", "rm_f", "rm_r", "rm_rf", "rmtree", "rmdir", "remove", "remove_dir", "remove_entry", "remove_entry_secure", "remove_file", "safe_unlink":
			p.deleteArgs(args)
		case "cp", "cp_r", "copy", "mv", "move", "ln", "ln_s", "ln_sf", "install", "copy_file", "copy_entry", "link", "symlink":
			p.writeArg(args, 1)
		case "mkdir", "mkdir_p", "makedirs", "touch":
			p.writeArg(args, 0)
		case "chmod", "chmod_R", "chown", "chown_R":
			p.writes("", false)
		}
	case "File", "IO", "Dir", "Pathname":
		switch method {
		case "delete", "unlink", "rmdir":
			p.deleteArgs(args)
		case "write", "binwrite", "mkdir", "mkfifo", "utime":
			p.writeArg(args, 0)
		case "open", "new":
			if class == "File" {
				p.opening(args)
			}
		case "rename", "symlink", "link", "copy_stream":
			p.writeArg(args, 1)
		case "truncate":
			p.empties(p.lit(args, 0))
		case "chmod", "chown", "lchmod", "lchown":
			p.writes("", false)
		case "read", "readlines", "foreach", "binread":
			p.reads(p.lit(args, 0))
		}
	default:
		return false
	}
	return true
}

// pathMethod judges the call of a method of Pathname.
func (p ruby) pathMethod(method, path string, literal bool) {
	switch method {
	case "unlink", "delete", "rmtree", "rmdir", "delete!":
		p.deletes(path, literal)
	case "write", "binwrite", "mkdir", "mkpath", "rename", "truncate", "chmod":
		p.writes(path, literal)
	case "read", "readlines", "each_line":
		p.reads(path, literal)
	}
}

// network judges calls of classes that use the network.
func (p ruby) network(i int, name string) bool {
	switch class, _, _ := strings.Cut(name, "."); class {
	case "Net", "TCPSocket", "UDPSocket", "TCPServer", "Socket", "Faraday", "HTTParty", "RestClient", "HTTPX", "Excon", "OpenURI", "WEBrick", "DRb":
	default:
		return false
	}
	if p.toks[i+1].is("::") || p.toks[i+1].is(".") || p.prev(i).named("require") {
		return true // more of the name follows
	}
	p.contactArgs(p.args(i, true))
	return true
}
