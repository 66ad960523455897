package code

import "strings"

// stepR reads one token of R.
func stepR(lx *lexer) {
	if lx.blank() {
		return
	}
	c := lx.text[lx.pos]
	switch {
	case c == '#':
		lx.skipLine()
	case (c == 'r' || c == 'R') && (lx.at(1) == '"' || lx.at(1) == '\'') && rawR(lx):
	case c == '"' || c == '\'':
		lx.quoted(1, quote{shut: c, kind: tokString})
	case c == '`':
		lx.quoted(1, quote{shut: c, kind: tokName, raw: true})
	case isDigit(c):
		lx.number()
	case isWord(c) || c == '.':
		n := 1
		for isWord(lx.at(n)) || lx.at(n) == '.' {
			n++
		}
		lx.add(token{kind: tokName, text: lx.text[lx.pos : lx.pos+n]})
		lx.pos += n
	case strings.HasPrefix(lx.rest(), "<-"), strings.HasPrefix(lx.rest(), "<<-"):
		lx.add(token{kind: tokOp, text: "="})
		lx.pos += 2 + strings.IndexByte(lx.rest(), '-') - 1
	case strings.HasPrefix(lx.rest(), ":::"):
		lx.add(token{kind: tokOp, text: "::"})
		lx.pos += 3
	default:
		operator(lx)
	}
}

// rawR reads a raw string, r"---( … )---".
func rawR(lx *lexer) bool {
	n := 2
	for lx.at(n) == '-' && n < 64 {
		n++
	}
	shut, nests := closing(lx.at(n))
	if nests == 0 || shut == '>' {
		return false
	}
	mark := string(shut) + strings.Repeat("-", n-2) + lx.text[lx.pos+1:lx.pos+2]
	body := lx.text[lx.pos+n+1:]
	end := strings.Index(body, mark)
	if end < 0 {
		lx.failed()
		return true
	}
	lx.add(token{kind: tokString, text: body[:end], literal: true})
	lx.pos += n + 1 + end + len(mark)
	return true
}

func readR(f *Finding, text string, nest int) {
	s := newScript(f, R, text, nest, stepR, "")
	s.each(func(i int) {
		if s.toks[i].kind == tokName && s.toks[i+1].is("(") {
			s.r(i)
		}
	})
}

// r judges the call whose name is token i.
func (s *script) r(i int) {
	name, _ := s.path(i)
	args := s.args(i, false)
	name = strings.TrimPrefix(strings.TrimPrefix(name, "base."), "utils.")
	switch name {
	case "system", "shell", "shell.exec", "pipe":
		s.shellArg(args, 0)
	case "system2":
		s.system2(args)
	case "processx.run", "callr.run", "sys.exec_wait", "sys.exec_internal", "sys.exec_background":
		s.runR(args)
	case "str2lang", "str2expression":
		s.nested(R, args, 0)
	case "parse":
		if a, ok := s.keyword(args, "text"); ok {
			s.nested(R, []span{a}, 0)
		}
	case "dyn.load", "library.dynam":
		s.Starts = true
	case "pskill", "tools.pskill":
		s.Destroy = true
	default:
		if !s.fileR(name, args) {
			s.networkR(name, args)
		}
	}
}

// option gives an argument by name or else argument n.
func (s *script) option(args []span, name string, n int) (span, bool) {
	if a, ok := s.keyword(args, name); ok {
		return a, true
	}
	if n < 0 || n >= len(args) {
		return span{}, false
	}
	return args[n], true
}

// optionText gives the literal value of an argument by name or else of
// argument n.
func (s *script) optionText(args []span, name string, n int) (string, bool) {
	a, ok := s.option(args, name, n)
	if !ok {
		return "", false
	}
	return s.str(a)
}

// vector gives the strings of c("a", "b") or of one string.
func (s *script) vector(a span) ([]string, bool) {
	a = s.trim(a)
	if s.toks[a.from].named("c", "list") && s.toks[a.from+1].is("(") && s.toks[a.from+1].mate == a.to-1 {
		return s.strings(s.args(a.from, false))
	}
	return s.strings([]span{a})
}

// system2 joins the words of its arguments for a shell.
func (s *script) system2(args []span) {
	command, ok := s.optionText(args, "command", 0)
	if !ok {
		s.Starts = true
		return
	}
	if a, given := s.option(args, "args", 1); given {
		words, literal := s.vector(a)
		if !literal {
			s.partly(command + " " + string(Hole))
			return
		}
		command += " " + strings.Join(words, " ")
	}
	s.shell(strings.TrimSpace(command))
}

// runR judges calls with a program and a vector of arguments.
func (s *script) runR(args []span) {
	program, ok := s.optionText(args, "command", 0)
	words := []string{program}
	if a, given := s.option(args, "args", 1); given && ok {
		var more []string
		more, ok = s.vector(a)
		words = append(words, more...)
	}
	if !ok {
		s.Starts = true
		return
	}
	s.argv(words)
}

func (s *script) fileR(name string, args []span) bool {
	switch name {
	case "unlink", "file.remove", "fs.file_delete", "fs.dir_delete", "file_delete":
		if len(args) > 0 {
			words, literal := s.vector(args[0])
			s.Write, s.Destroy = true, true
			if literal {
				s.Deletes = append(s.Deletes, words...)
			}
		}
	case "file.create":
		s.empties(s.lit(args, 0))
	case "writeLines", "write", "write.csv", "write.table", "write.csv2", "saveRDS", "dput", "writeBin", "writeChar", "write_csv", "readr.write_csv", "fwrite":
		if a, ok := s.option(args, "file", 1); ok && !s.toks[s.trim(a).from].named("stdout", "stderr") {
			s.writes(s.str(a))
		}
	case "cat", "save", "save.image", "dump", "capture.output", "print":
		if a, ok := s.keyword(args, "file"); ok {
			s.writes(s.str(a))
		}
	case "sink", "pdf", "png", "svg", "jpeg", "dir.create", "Sys.chmod", "Sys.setFileTime", "file.append", "Rprof", "zip":
		if len(args) > 0 {
			s.writeArg(args, 0)
		}
	case "file.copy", "file.rename", "file.symlink", "file.link":
		s.reads(s.lit(args, 0))
		s.writeArg(args, 1)
	case "file", "gzfile", "bzfile", "xzfile":
		mode, ok := s.optionText(args, "open", 1)
		if _, given := s.option(args, "open", 1); !given {
			mode, ok = "r", true
		}
		s.open(args, mode, ok)
	case "source", "readLines", "read.csv", "read.table", "readRDS", "load", "scan", "readBin", "sys.source", "read.delim", "fread":
		if path, ok := s.lit(args, 0); ok && isURL(path) {
			s.contacts(path, true)
		} else {
			s.reads(path, ok)
		}
	default:
		return false
	}
	return true
}

func (s *script) networkR(name string, args []span) {
	switch root, _, _ := strings.Cut(name, "."); {
	case name == "download.file":
		s.contactArgs(args)
		if a, ok := s.option(args, "destfile", 1); ok {
			s.writes(s.str(a))
		}
	case name == "url", name == "socketConnection", name == "serverSocket", name == "browseURL", name == "install.packages", name == "getURL",
		root == "httr", root == "httr2", root == "curl", root == "RCurl", root == "remotes", root == "devtools":
		s.contactArgs(args)
	}
}
