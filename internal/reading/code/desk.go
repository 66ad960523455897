package code

import "strings"

// readJq reads a filter of jq. The language has no way to write, to start or to
// contact anything: a filter reads its inputs, the environment and modules,
// which are filters too.
func readJq(string) bool { return true }

// readBc reads a program of bc, which computes and prints only.
func readBc(text string) bool {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimSpace(line), "!") {
			return false // old versions pass it to a shell
		}
	}
	return true
}

// readYq reads an expression of yq (Mike Farah's). Its operators read files at
// most, but for system and for eval.
func readYq(f *Finding, text string) bool {
	sure := strings.IndexByte(text, '#') < 0 // a comment to some versions only
	toks := tokens(text, stepYq)
	for i, t := range toks[:len(toks)-4] {
		if t.kind == tokString && !t.literal {
			sure = false
		}
		if t.kind != tokName || i > 0 && toks[i-1].is(".") && !t.space {
			continue
		}
		arg := toks[i+2]
		literal := toks[i+1].is("(") && arg.kind == tokString && arg.literal
		switch strings.ToLower(t.text) {
		case "system":
			// The command is started without a shell; arguments follow a semicolon.
			if literal && toks[i+3].is(")") {
				f.argv([]string{arg.text})
			} else {
				f.Starts = true
			}
		case "eval":
			sure = false
		case "load", "load_str", "strload", "load_xml", "load_props", "load_base64", "load_yaml":
			f.reads(arg.text, literal)
		}
	}
	return sure
}

func stepYq(lx *lexer) {
	if lx.blank() {
		return
	}
	c := lx.text[lx.pos]
	switch {
	case c == '"':
		start, at := lx.pos, len(lx.toks)
		lx.quoted(1, quote{shut: c, kind: tokString, keep: true})
		if at < len(lx.toks) && (strings.Contains(lx.text[start:lx.pos], `\(`) || lx.toks[at].kind != tokString) {
			lx.toks[at] = token{kind: tokString} // code inside, or unfinished
		}
	case isDigit(c):
		lx.number()
	case isWord(c):
		n := lx.name(0)
		lx.add(token{kind: tokName, text: lx.text[lx.pos : lx.pos+n]})
		lx.pos += n
	default:
		lx.op(1)
	}
}

// readDc reads a program of dc. An exclamation mark passes the rest of its line
// to a shell, unless a comparison follows.
func readDc(f *Finding, text string) bool {
	sure := true
	depth := 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '[':
			depth++
		case c == ']':
			depth--
		case c == '?':
			sure = false // executes a line of the input
		case c == '!' && i+1 < len(text) && strings.IndexByte("<=>", text[i+1]) >= 0:
			if depth == 0 {
				i += 2 // the comparison and the name of a register
			}
		case c == '!' && depth != 0:
			f.Starts = true // part of a string, which may be executed
		case c == '!':
			command, _, _ := strings.Cut(text[i+1:], "\n")
			if strings.TrimSpace(command) != "" {
				f.shell(command)
			}
			i += len(command)
		case c == '#' && depth == 0:
			line, _, _ := strings.Cut(text[i:], "\n")
			i += len(line)
		case strings.IndexByte("slSL:;<>=", c) >= 0 && depth == 0:
			i++ // the name of a register
		}
	}
	return sure && depth == 0
}
