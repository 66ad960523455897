package code

import (
	"slices"
	"strings"
)

// stepElixir reads one token of Elixir.
func stepElixir(lx *lexer) {
	if lx.blank() {
		return
	}
	c := lx.text[lx.pos]
	switch {
	case c == '#':
		lx.skipLine()
	case c == '"' || c == '\'':
		triple := lx.at(1) == c && lx.at(2) == c
		lx.quoted(quotes(triple), quote{shut: c, kind: tokString, code: "#{", triple: triple})
	case c == '~' && isLetter(lx.at(1)) && elixirSigil(lx):
	case c == ':' && (isLetter(lx.at(1)) || lx.at(1) == '_') && !lx.last().is(":"):
		n := 1 + lx.name(1)
		t := token{kind: tokString, text: lx.text[lx.pos+1 : lx.pos+n], literal: true}
		if lx.at(n) == '.' {
			t = token{kind: tokName, text: lx.text[lx.pos : lx.pos+n]} // a module of Erlang
		}
		lx.add(t)
		lx.pos += n
	case c == '?' && lx.pos+1 < len(lx.text) && !lx.operand():
		n := 2
		if lx.at(1) == '\\' {
			n = 3
		}
		lx.add(token{kind: tokNumber, text: "?"})
		lx.pos = min(lx.pos+n, len(lx.text))
	case isDigit(c):
		lx.number()
	case isWord(c):
		n := lx.name(0)
		if c := lx.at(n); (c == '?' || c == '!') && lx.at(n+1) != '=' {
			n++
		}
		lx.add(token{kind: tokName, text: lx.text[lx.pos : lx.pos+n]})
		lx.pos += n
	case strings.HasPrefix(lx.rest(), "<>"), strings.HasPrefix(lx.rest(), "|>"):
		lx.op(2)
	default:
		operator(lx)
	}
}

// elixirSigil reads a sigil, such as ~s(…) or ~w[a b]. In those of capital
// letters nothing is decoded.
func elixirSigil(lx *lexer) bool {
	name, open := lx.at(1), lx.at(2)
	if strings.IndexByte("/|\"'([{<", open) < 0 || open == 0 {
		return false
	}
	triple := (open == '"' || open == '\'') && lx.at(3) == open && lx.at(4) == open
	shut, nests := closing(open)
	q := quote{shut: shut, open: nests, kind: tokString, triple: triple}
	switch name {
	case 's', 'c':
		q.code = "#{"
	case 'w', 'W':
		q.kind, q.raw = tokWords, true
	case 'r', 'R':
		if !lx.regex(3, shut, nests, false) {
			lx.failed()
		}
		return true
	default:
		q.raw = true
	}
	at := len(lx.toks)
	lx.quoted(2+quotes(triple), q)
	if name == 'w' && at < len(lx.toks) && lx.toks[at].kind == tokWords && strings.Contains(lx.toks[at].text, "#{") {
		lx.toks[at] = token{kind: tokString, mate: -1} // not literal
	}
	return true
}

// elixir is a script with the functions of Elixir's and Erlang's libraries.
type elixir struct{ *script }

func readElixir(f *Finding, text string, nest int) {
	e := elixir{newScript(f, Elixir, text, nest, stepElixir, "<>")}
	e.each(func(i int) {
		if e.toks[i].kind == tokName && e.prev(i).is(".") && !e.dot(i+1) {
			e.call(i)
		}
	})
}

func (e elixir) call(i int) {
	name, from := e.path(i)
	args := e.args(i, true)
	if e.prev(from).is("|>") {
		// What stands before the pipe is the first argument.
		args = append([]span{e.piped(from - 1)}, args...)
	}
	switch name {
	case "System.shell", ":os.cmd":
		e.shellArg(args, 0)
	case "System.cmd", "MuonTrap.cmd":
		e.cmd(args)
	case "Port.open", ":erlang.open_port":
		e.port(args)
	case "Code.eval_string", "Code.compile_string":
		e.nested(Elixir, args, 0)
	case "Code.eval_file", "Code.require_file", "Code.compile_file":
		e.reads(e.lit(args, 0))
	case ":erlang.load_nif", ":c.c":
		e.Starts = true
	default:
		if !e.file(name, args) {
			e.network(name, args)
		}
	}
}

// piped gives the operand before the pipe at token i.
func (e elixir) piped(i int) span {
	from := i
	for n := 0; n < maxBare && from > 0; n++ {
		t := e.toks[from-1]
		if t.is(";") || t.is("|>") || t.is("=") || t.is(",") || t.kind == tokLine && from < i && !e.prev(from-1).is("<>") {
			break
		}
		from--
		if t.mate >= 0 {
			if t.mate > from {
				from++ // an opening bracket
				break
			}
			from = t.mate
		}
	}
	return span{from, i}
}

// cmd judges calls with a program and a list of arguments.
func (e elixir) cmd(args []span) {
	program, ok := e.lit(args, 0)
	if !ok || len(args) < 2 {
		e.Starts = true
		return
	}
	words, literal, is := e.list(args[1])
	if !is || !literal {
		e.Starts = true
		return
	}
	e.argv(append([]string{program}, words...))
}

// port judges the opening of a port, whose first argument is {:spawn, "…"}.
func (e elixir) port(args []span) {
	if len(args) > 0 {
		if words, literal, is := e.list(args[0]); is && literal && len(words) == 2 && words[0] == "spawn" {
			e.shell(words[1])
			return
		}
	}
	e.Starts = true
}

func (e elixir) file(name string, args []span) bool {
	switch strings.TrimSuffix(name, "!") {
	case "File.rm", "File.rm_rf", "File.rmdir", ":file.delete", ":file.del_dir", ":file.del_dir_r":
		e.deleteArgs(args[:min(1, len(args))])
	case "File.write", "File.touch", "File.mkdir", "File.mkdir_p", "File.chmod", "File.chown", "File.chgrp", ":file.write_file", ":file.make_dir":
		e.writeArg(args, 0)
	case "File.cp", "File.cp_r", "File.copy", "File.rename", "File.ln_s", "File.ln", ":file.rename", ":file.copy":
		e.reads(e.lit(args, 0))
		e.writeArg(args, 1)
	case "File.open", ":file.open":
		e.opening(args)
	case "File.read", "File.stream", "File.ls", ":file.read_file", ":file.consult":
		e.reads(e.lit(args, 0))
	default:
		return false
	}
	return true
}

// opening judges a call with a path and a list of modes.
func (e elixir) opening(args []span) {
	if len(args) < 2 {
		e.reads(e.lit(args, 0))
		return
	}
	modes, literal, _ := e.list(args[1])
	if !literal || slices.ContainsFunc(modes, func(m string) bool { return m != "read" && m != "binary" && m != "utf8" && m != "raw" }) {
		e.writeArg(args, 0)
		return
	}
	e.reads(e.lit(args, 0))
}

func (e elixir) network(name string, args []span) {
	switch root, _, _ := strings.Cut(name, "."); root {
	case "HTTPoison", "Req", "Finch", "Tesla", "Mint", "HTTPotion", ":httpc", ":gen_tcp", ":gen_udp", ":ssl", ":hackney", ":ftp", ":ssh":
		e.contactArgs(args)
	case "Node":
		e.Network = e.Network || strings.HasSuffix(name, ".connect") || strings.HasSuffix(name, ".spawn")
	}
}
