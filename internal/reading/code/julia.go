package code

import "strings"

// stepJulia reads one token of Julia.
func stepJulia(lx *lexer) {
	if lx.blank() {
		return
	}
	c := lx.text[lx.pos]
	triple := lx.at(1) == c && lx.at(2) == c
	switch {
	case strings.HasPrefix(lx.rest(), "#="):
		lx.nestedComment("#=", "=#")
	case c == '#':
		lx.skipLine()
	case c == '"' || c == '`':
		q := quote{shut: c, kind: tokString, sigil: juliaSigil, code: "$(", triple: triple}
		if c == '`' {
			q.kind = tokShell
		}
		lx.quoted(quotes(triple), q)
	case c == '\'':
		juliaQuote(lx)
	case strings.HasPrefix(lx.rest(), `raw"`):
		triple = lx.at(4) == '"' && lx.at(5) == '"'
		lx.pos += 3
		lx.quoted(quotes(triple), quote{shut: '"', kind: tokString, raw: true, triple: triple})
	case isDigit(c):
		lx.number()
	case isWord(c):
		n := lx.name(0)
		for lx.at(n) == '!' && lx.at(n+1) != '=' {
			n++
		}
		lx.add(token{kind: tokName, text: lx.text[lx.pos : lx.pos+n]})
		lx.pos += n
	default:
		operator(lx)
	}
}

// quotes is how many delimiters begin a string.
func quotes(triple bool) int {
	if triple {
		return 3
	}
	return 1
}

// juliaQuote reads a character; behind an operand the sign transposes.
func juliaQuote(lx *lexer) {
	if lx.operand() && !lx.space {
		lx.op(1)
		return
	}
	n := 1
	if lx.at(n) == '\\' {
		n++
	}
	for n < 12 && lx.pos+n < len(lx.text) {
		if n++; lx.at(n) == '\'' {
			lx.add(token{kind: tokNumber, text: lx.text[lx.pos : lx.pos+n+1]})
			lx.pos += n + 1
			return
		}
	}
	lx.op(1)
}

// juliaSigil gives the length of the variable in a string.
func juliaSigil(text string, _ quote) int {
	if text[0] != '$' {
		return 0
	}
	n := 1
	for n < len(text) && isWord(text[n]) {
		n++
	}
	if n == 1 {
		return 0
	}
	return n
}

func readJulia(f *Finding, text string, nest int) {
	s := newScript(f, Julia, text, nest, stepJulia, "*")
	s.each(func(i int) {
		switch t := s.toks[i]; {
		case t.kind == tokShell:
			s.juliaCommand(t)
		case t.kind == tokName && s.toks[i+1].is("(") && !s.prev(i).named("function", "macro"):
			s.julia(i)
		}
	})
}

// juliaCommand records a command in backquotes. Julia splits its words itself,
// no shell reads it; what it puts into it is one word each time.
func (s *script) juliaCommand(t token) {
	switch {
	case !t.literal:
		s.partly(t.text)
	case strings.ContainsAny(t.text, `'"\`):
		if words, ok := dotArgs(t.text); ok && !strings.Contains(t.text, `\`) {
			s.argv(words)
		} else {
			s.Starts = true
		}
	default:
		if words := strings.Fields(t.text); len(words) > 0 {
			s.argv(words)
		}
	}
}

// julia judges the call whose name ends at token i.
func (s *script) julia(i int) {
	name, _ := s.path(i)
	args := s.args(i, false)
	name = strings.TrimPrefix(strings.TrimPrefix(name, "Base."), "Filesystem.")
	switch name {
	case "run", "success", "pipeline", "readchomp", "readlines":
		// A command in backquotes is seen by itself.
		if len(args) > 0 && name == "run" && s.toks[s.trim(args[0]).from].kind != tokShell && !s.toks[args[0].from].named("Cmd", "pipeline") {
			s.Starts = true
		}
	case "Cmd":
		if len(args) > 0 {
			if _, _, is := s.list(args[0]); is {
				s.listArg(args[0])
			}
		}
	case "rm":
		s.deleteArgs(args[:min(1, len(args))])
	case "write", "touch", "mkdir", "mkpath", "chmod", "chown", "mktempdir":
		if len(args) > 0 {
			if first := s.toks[s.trim(args[0]).from]; !first.named("stdout", "stderr", "io") {
				s.writeArg(args, 0)
			}
		}
	case "mv", "cp", "symlink", "hardlink":
		s.reads(s.lit(args, 0))
		s.writeArg(args, 1)
	case "truncate":
		s.empties(s.lit(args, 0))
	case "open":
		mode, ok := s.lit(args, 1)
		if len(args) < 2 {
			mode, ok = "r", true
		}
		if len(args) > 0 && s.toks[s.trim(args[0]).from].kind != tokShell {
			s.open(args, mode, ok)
		}
	case "read", "eachline", "include":
		s.reads(s.lit(args, 0))
	case "Meta.parse", "include_string", "Meta.parseall":
		s.nested(Julia, args, max(len(args)-1, 0))
	case "ccall", "Libdl.dlopen", "dlopen":
		s.Starts = true
		if len(args) > 0 && s.toks[s.trim(args[0]).from].text == "system" {
			s.shellArg(args, len(args)-1)
		}
	case "kill":
		s.Destroy = true
	case "download", "Downloads.download", "Downloads.request", "HTTP.get", "HTTP.post", "HTTP.put", "HTTP.delete", "HTTP.request", "HTTP.open",
		"Sockets.connect", "connect", "Sockets.listen", "listen", "Pkg.add", "Pkg.develop":
		s.contactArgs(args)
		if strings.HasSuffix(name, "ownload") && len(args) > 1 {
			s.writeArg(args, 1)
		}
	}
}
