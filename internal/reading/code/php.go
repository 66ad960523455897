package code

import "strings"

// stepPHP reads one token of PHP, or skips what stands outside of its tags.
func stepPHP(lx *lexer) {
	if lx.blank() {
		return
	}
	c := lx.text[lx.pos]
	switch {
	case strings.HasPrefix(lx.rest(), "?>"):
		lx.pos += 2
		lx.add(token{kind: tokOp, text: ";"})
		phpOutside(lx)
	case strings.HasPrefix(lx.rest(), "<?"):
		phpOutside(lx)
	case c == '#' && lx.at(1) != '[', strings.HasPrefix(lx.rest(), "//"):
		end := strings.IndexByte(lx.rest(), '\n')
		if end < 0 {
			end = len(lx.rest())
		}
		if tag := strings.Index(lx.rest()[:end], "?>"); tag >= 0 {
			end = tag // a tag ends a comment
		}
		lx.pos += end
	case strings.HasPrefix(lx.rest(), "/*"):
		lx.pos += 2
		lx.skipPast("*/")
		lx.space = true
	case c == '\'':
		lx.quoted(1, quote{shut: c, kind: tokString, raw: true})
	case c == '"':
		lx.quoted(1, quote{shut: c, kind: tokString, sigil: phpSigil, code: "{$", keep: true, dollar: true, none: "ab"})
	case c == '`':
		lx.quoted(1, quote{shut: c, kind: tokShell, sigil: phpSigil, code: "{$", keep: true, dollar: true, none: "ab"})
	case strings.HasPrefix(lx.rest(), "<<<"):
		phpHeredoc(lx)
	case isDigit(c):
		lx.number()
	case isWord(c) || c == '$' && isWord(lx.at(1)) || c == '\\' && isWord(lx.at(1)):
		n := 1 + lx.name(1)
		for lx.at(n) == '\\' && isWord(lx.at(n+1)) {
			n += 1 + lx.name(n+1)
		}
		lx.add(token{kind: tokName, text: strings.TrimPrefix(lx.text[lx.pos:lx.pos+n], `\`)})
		lx.pos += n
	default:
		operator(lx)
	}
}

// phpOutside skips up to the next piece of code, and its tag.
func phpOutside(lx *lexer) {
	lx.skipPast("<?")
	for _, tag := range [...]string{"php", "="} {
		if strings.HasPrefix(strings.ToLower(lx.text[lx.pos:min(lx.pos+len(tag), len(lx.text))]), tag) {
			lx.pos += len(tag)
			return
		}
	}
}

// phpSigil gives the length of the variable in a string.
func phpSigil(text string, q quote) int {
	if text[0] != '$' || len(text) < 2 || isDigit(text[1]) {
		return 0
	}
	if text[1] == '{' {
		return 1 + max(subscript(text[1:], q), 1)
	}
	n := 1
	for n < len(text) && isWord(text[n]) {
		n++
	}
	if n == 1 {
		return 0
	}
	switch rest := text[n:]; {
	case strings.HasPrefix(rest, "["):
		return n + subscript(rest, q)
	case len(rest) > 2 && rest[:2] == "->" && isWord(rest[2]) && !isDigit(rest[2]):
		for n += 2; n < len(text) && isWord(text[n]); n++ {
		}
	}
	return n
}

func phpHeredoc(lx *lexer) {
	n := 3
	for isBlank(lx.at(n)) {
		n++
	}
	mark := lx.at(n)
	if mark == '\'' || mark == '"' {
		n++
	}
	size := lx.name(n)
	if size == 0 {
		operator(lx)
		return
	}
	lx.heredocs = append(lx.heredocs, heredoc{tok: len(lx.toks), end: lx.text[lx.pos+n : lx.pos+n+size], indent: true, plain: mark == '\'', q: quote{code: "{$", sigil: phpSigil, keep: true, kind: tokString}})
	lx.add(token{kind: tokString, literal: true})
	lx.pos += n + size
	if mark == '\'' || mark == '"' {
		lx.pos = min(lx.pos+1, len(lx.text))
	}
}

// php is a script with the functions of PHP.
type php struct{ *script }

func readPHP(f *Finding, text string, nest int) {
	if i := strings.Index(text, "<?"); i >= 0 {
		text = text[i:] // what stands before the first tag is printed
	}
	p := php{newScript(f, PHP, text, nest, stepPHP, ".")}
	p.each(func(i int) {
		switch t := p.toks[i]; t.kind {
		case tokShell:
			p.shellToken(t)
		case tokName:
			if p.toks[i+1].is("(") && !p.prev(i).named("function") {
				p.call(i)
			}
		}
	})
}

func (p php) call(i int) {
	args := p.args(i, false)
	name := strings.ToLower(p.toks[i].text)
	if p.prev(i).is("->") || p.prev(i).is("::") || p.prev(i).is("?->") {
		switch name {
		case "query", "exec", "prepare", "multi_query":
			p.sql(args)
		}
		return
	}
	switch name {
	case "system", "exec", "shell_exec", "passthru", "popen":
		p.shellArg(args, 0)
	case "proc_open":
		if len(args) > 0 {
			p.shellOrWords(args[:1])
		} else {
			p.Starts = true
		}
	case "pcntl_exec":
		program, ok := p.lit(args, 0)
		words := []string(nil)
		if len(args) > 1 && ok {
			words, ok, _ = p.list(args[1])
		}
		if ok {
			p.argv(append([]string{program}, words...))
		} else {
			p.Starts = true
		}
	case "eval", "assert":
		p.nested(PHP, args, 0)
	case "call_user_func", "call_user_func_array", "array_map":
		if v, ok := p.lit(args, 0); ok {
			switch v {
			case "system", "exec", "shell_exec", "passthru", "popen":
				p.Starts = true
			}
		}
	case "posix_kill":
		p.Destroy = true
	case "posix_setuid", "posix_seteuid", "posix_setgid":
		p.Privilege = true
	default:
		if !p.file(name, args) {
			p.network(name, args)
		}
	}
}

func (p php) file(name string, args []span) bool {
	switch name {
	case "unlink", "rmdir":
		p.deleteArgs(args[:min(1, len(args))])
	case "file_put_contents", "touch", "mkdir", "chmod", "chown", "chgrp", "tempnam":
		p.writeArg(args, 0)
	case "copy", "rename", "symlink", "link", "move_uploaded_file":
		p.writeArg(args, 1)
	case "fopen", "gzopen":
		mode, ok := p.lit(args, 1)
		if url, literal := p.lit(args, 0); literal && isURL(url) {
			p.contacts(url, true)
			return true
		}
		p.open(args, mode, ok)
	case "file_get_contents", "readfile", "file", "parse_ini_file", "simplexml_load_file", "getimagesize":
		if path, ok := p.lit(args, 0); ok && isURL(path) {
			p.contacts(path, true)
		} else {
			p.reads(path, ok)
		}
	default:
		return false
	}
	return true
}

func (p php) network(name string, args []span) {
	switch name {
	case "curl_init", "curl_exec", "curl_setopt", "curl_multi_exec", "fsockopen", "pfsockopen", "stream_socket_client",
		"stream_socket_server", "socket_create", "socket_connect", "mail", "ftp_connect", "ssh2_connect", "get_headers",
		"mysqli_connect", "pg_connect", "gethostbyname", "dns_get_record":
		p.Network = true
		if name == "curl_setopt" && len(args) > 2 {
			args = args[2:]
			if url, ok := p.lit(args, 0); !ok || !isURL(url) {
				return
			}
		}
		p.contactArgs(args)
	case "mysqli_query", "pg_query":
		p.sql(args[min(1, len(args)):])
	}
}
