package code

import "strings"

// stepLua reads one token of Lua.
func stepLua(lx *lexer) {
	if lx.blank() {
		return
	}
	c := lx.text[lx.pos]
	switch {
	case c == '#' && lx.at(1) == '!' && lx.pos == 0:
		lx.skipLine()
	case strings.HasPrefix(lx.rest(), "--"):
		if level := luaLong(lx, 2); level >= 0 {
			lx.pos += 2 + level + 2
			lx.skipPast("]" + strings.Repeat("=", level) + "]")
			return
		}
		lx.skipLine()
	case c == '[' && luaLong(lx, 0) >= 0:
		level := luaLong(lx, 0)
		shut := "]" + strings.Repeat("=", level) + "]"
		body := lx.text[lx.pos+level+2:]
		end := strings.Index(body, shut)
		if end < 0 {
			lx.failed()
			return
		}
		lx.add(token{kind: tokString, text: strings.TrimPrefix(body[:end], "\n"), literal: true})
		lx.pos += level + 2 + end + len(shut)
	case c == '\'' || c == '"':
		lx.quoted(1, quote{shut: c, kind: tokString, line: true, lua: true, none: "e"})
	case isDigit(c):
		lx.number()
	case isWord(c):
		n := lx.name(0)
		lx.add(token{kind: tokName, text: lx.text[lx.pos : lx.pos+n]})
		lx.pos += n
	default:
		operator(lx)
	}
}

// luaLong gives the level of the long bracket at offset n, or -1.
func luaLong(lx *lexer, n int) int {
	if lx.at(n) != '[' {
		return -1
	}
	level := 0
	for lx.at(n+1+level) == '=' && level < 64 {
		level++
	}
	if lx.at(n+1+level) != '[' {
		return -1
	}
	return level
}

func readLua(f *Finding, text string, nest int) {
	s := newScript(f, Lua, text, nest, stepLua, "..")
	s.each(func(i int) {
		if t := s.toks[i]; t.kind == tokName && (s.toks[i+1].is("(") || s.toks[i+1].kind == tokString) {
			s.lua(i)
		}
	})
}

// lua judges the call whose name ends at token i.
func (s *script) lua(i int) {
	name, _ := s.path(i)
	args := s.args(i, true)
	switch name {
	case "os.execute", "io.popen", "vim.fn.system", "vim.fn.systemlist":
		if len(args) > 0 {
			s.shellArg(args, 0)
		}
	case "os.remove", "lfs.rmdir", "fs.unlink", "fs.rmdir", "uv.fs_unlink":
		s.deleteArgs(args[:min(1, len(args))])
	case "os.rename":
		s.writeArg(args, 0)
		s.writeArg(args, 1)
	case "io.open":
		mode, ok := s.lit(args, 1)
		if len(args) < 2 {
			mode, ok = "r", true
		}
		s.open(args, mode, ok)
	case "io.output", "lfs.mkdir":
		if len(args) > 0 {
			s.writeArg(args, 0)
		}
	case "io.input", "io.lines", "dofile", "loadfile":
		s.reads(s.lit(args, 0))
	case "load", "loadstring":
		s.nested(Lua, args, 0)
	case "socket.connect", "socket.tcp", "socket.udp", "socket.bind", "http.request", "https.request":
		s.contactArgs(args)
	}
}
