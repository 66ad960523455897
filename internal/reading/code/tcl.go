package code

import "strings"

// tclWord is a word of a command.
type tclWord struct {
	text    string // with holes where something is put in
	literal bool
	braced  bool
}

// tcl reads scripts of Tcl and expect. A script is a list of commands, and what
// is a script inside of another is known by the command that has it.
type tcl struct {
	*Finding
	text  string
	pos   int
	depth int
	nest  int
}

func readTcl(f *Finding, text string, nest int) {
	t := tcl{Finding: f, text: text, nest: nest}
	t.script(false, false)
}

// script reads commands up to the end, or to the bracket that closes a
// substitution. In a list of patterns and bodies no word is a command.
func (t *tcl) script(nested, list bool) {
	for t.pos < len(t.text) {
		switch c := t.text[t.pos]; {
		case isSpace(c) || c == ';':
			t.pos++
		case c == ']' && nested:
			t.pos++
			return
		case c == '#':
			t.comment()
		default:
			words := t.words(nested)
			if list {
				t.bodies(words)
			} else {
				t.command(words)
			}
		}
	}
}

func (t *tcl) comment() {
	for t.pos < len(t.text) && t.text[t.pos] != '\n' {
		if t.text[t.pos] == '\\' {
			t.pos++
		}
		t.pos++
	}
	t.pos = min(t.pos, len(t.text))
}

// words reads the words of one command.
func (t *tcl) words(nested bool) []tclWord {
	var out []tclWord
	for t.pos < len(t.text) {
		switch c := t.text[t.pos]; {
		case c == '\n' || c == ';' || c == ']' && nested:
			return out
		case isSpace(c):
			t.pos++
		case strings.HasPrefix(t.text[t.pos:], "\\\n"):
			t.pos += 2
		case strings.HasPrefix(t.text[t.pos:], "{*}"):
			t.pos += 3
			out = append(out, tclWord{text: string(Hole)})
		case c == '{':
			out = append(out, tclWord{text: t.braces(), literal: true, braced: true})
		default:
			out = append(out, t.word(nested))
		}
	}
	return out
}

// braces reads a word in braces, in which nothing is put in.
func (t *tcl) braces() string {
	start, depth := t.pos+1, 0
	for ; t.pos < len(t.text); t.pos++ {
		switch t.text[t.pos] {
		case '\\':
			t.pos++
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				t.pos++
				return t.text[start : t.pos-1]
			}
		}
	}
	t.pos = len(t.text)
	return t.text[min(start, t.pos):]
}

// word reads a word in double quotes or a bare one.
func (t *tcl) word(nested bool) tclWord {
	w := tclWord{literal: true}
	var b strings.Builder
	quoted := t.text[t.pos] == '"'
	if quoted {
		t.pos++
	}
	hole := func() {
		w.literal = false
		b.WriteRune(Hole)
	}
	for t.pos < len(t.text) {
		c := t.text[t.pos]
		switch {
		case quoted && c == '"':
			t.pos++
			w.text = b.String()
			return w
		case !quoted && (isSpace(c) || c == ';' || c == ']' && nested):
			w.text = b.String()
			return w
		case c == '[':
			t.pos++
			hole()
			t.substitution()
		case c == '$' && t.variable() > 0:
			t.pos += t.variable()
			hole()
		case c == '\\' && t.pos+1 < len(t.text):
			if e := t.text[t.pos+1]; e == 'x' || e == 'u' || isDigit(e) {
				hole()
			} else if e != '\n' {
				b.WriteByte(unescape(e))
			} else if !quoted {
				w.text = b.String()
				return w
			} else {
				b.WriteByte(' ')
			}
			t.pos += 2
		default:
			b.WriteByte(c)
			t.pos++
		}
	}
	w.text = b.String()
	return w
}

// substitution reads the commands in brackets.
func (t *tcl) substitution() {
	if t.depth >= maxCodeDepth {
		t.pos = len(t.text)
		return
	}
	t.depth++
	t.script(true, false)
	t.depth--
}

// variable gives the length of the variable at the dollar sign.
func (t *tcl) variable() int {
	rest := t.text[t.pos:min(t.pos+maxVariable, len(t.text))]
	n := 1
	if n < len(rest) && rest[n] == '{' {
		return n + max(subscript(rest[n:], quote{}), 1)
	}
	for n < len(rest) && (isWord(rest[n]) || rest[n] == ':') {
		n++
	}
	if n == 1 {
		return 0
	}
	if n < len(rest) && rest[n] == '(' {
		n += subscript(rest[n:], quote{})
	}
	return n
}

// inner reads a script that a word holds.
func (t *tcl) inner(text string, list bool) {
	if t.depth >= maxCodeDepth {
		return
	}
	sub := tcl{Finding: t.Finding, text: text, depth: t.depth + 1, nest: t.nest}
	sub.script(false, list)
}

// bodies reads the words in braces as scripts.
func (t *tcl) bodies(words []tclWord) {
	for _, w := range words {
		if w.braced {
			t.inner(w.text, false)
		}
	}
}

// command judges a command.
func (t *tcl) command(words []tclWord) {
	if len(words) == 0 {
		return
	}
	name, args := strings.TrimPrefix(words[0].text, "::"), words[1:]
	if !words[0].literal {
		return
	}
	switch name {
	case "exec":
		t.exec(args)
	case "spawn", "exp_spawn", "overlay":
		for len(args) > 0 && strings.HasPrefix(args[0].text, "-") {
			args = args[1:]
		}
		t.start(args)
	case "system":
		text, literal := tclJoin(args)
		if literal {
			t.shell(text)
		} else {
			t.partly(text)
		}
	case "eval", "uplevel", "subst":
		if text, literal := tclJoin(args); literal {
			t.inner(strings.TrimLeft(text, "#0123456789 "), false)
		} else if len(args) > 0 && (args[0].text == "exec" || args[0].text == "spawn") {
			t.Starts = true
		}
	case "send", "exp_send":
		t.Starts = true // types into a program
	case "expect", "expect_user", "expect_before", "expect_after", "interact", "switch":
		for len(args) > 0 && strings.HasPrefix(args[0].text, "-") {
			args = args[1:]
		}
		if name == "switch" && len(args) > 0 {
			args = args[1:]
		}
		if len(args) == 1 && args[0].braced {
			t.inner(args[0].text, true) // patterns and bodies
		} else {
			t.bodies(args)
		}
	case "try", "dict", "if", "elseif", "else", "while", "for", "foreach", "lmap", "proc", "catch", "after", "namespace", "time", "apply", "trap", "expr", "return", "bind", "oo::class", "method", "timeout", "eof", "default":
		t.bodies(args)
	case "open":
		t.open(args)
	case "file":
		t.file(args)
	case "source":
		if n := len(args) - 1; n >= 0 {
			t.reads(args[n].text, args[n].literal)
		}
	case "load":
		t.Starts = true
	case "socket", "http::geturl", "ftp::Open", "smtp::sendmessage":
		t.contact(args)
	}
}

// tclJoin joins words as commands do that take a script or a text.
func tclJoin(words []tclWord) (text string, literal bool) {
	parts := make([]string, len(words))
	literal = true
	for i, w := range words {
		parts[i] = w.text
		literal = literal && w.literal
	}
	return strings.Join(parts, " "), literal
}

// start records the words of a program that is started.
func (t *tcl) start(words []tclWord) {
	list := make([]string, len(words))
	for i, w := range words {
		if !w.literal {
			t.Starts = true
			return
		}
		list[i] = w.text
	}
	t.argv(list)
}

// exec judges a pipeline with its redirections.
func (t *tcl) exec(args []tclWord) {
	for len(args) > 0 && strings.HasPrefix(args[0].text, "-") {
		if args[0].text == "-encoding" && len(args) > 1 {
			args = args[1:]
		}
		args = args[1:]
	}
	var words []tclWord
	for i := 0; i < len(args); i++ {
		w := args[i]
		if w.text == "|" || w.text == "|&" {
			t.start(words)
			words = nil
			continue
		}
		if w.text == "&" && i == len(args)-1 {
			continue
		}
		op := strings.TrimPrefix(w.text, "2")
		n := len(op) - len(strings.TrimLeft(op, "<>&@"))
		if w.braced || n == 0 || op[0] != '<' && op[0] != '>' {
			words = append(words, w)
			continue
		}
		target := tclWord{text: op[n:], literal: w.literal}
		if target.text == "" && i+1 < len(args) {
			i++
			target = args[i]
		}
		switch kind := op[:n]; {
		case strings.Contains(kind, "@"), kind == "<<":
		case kind[0] == '<':
			t.reads(target.text, target.literal)
		default:
			t.writes(target.text, target.literal)
		}
	}
	t.start(words)
}

// open judges the opening of a file or, behind a bar, of a pipeline.
func (t *tcl) open(args []tclWord) {
	if len(args) == 0 {
		return
	}
	name := args[0]
	if command, found := strings.CutPrefix(name.text, "|"); found {
		if t.depth >= maxCodeDepth {
			t.Starts = true
			return
		}
		sub := tcl{Finding: t.Finding, text: command, depth: t.depth + 1, nest: t.nest}
		if !name.literal {
			t.Starts = true
			return
		}
		t.exec(sub.words(false))
		return
	}
	if len(args) > 1 && (!args[1].literal || strings.ContainsAny(args[1].text, "wa+WAR")) && args[1].text != "RDONLY" {
		t.writes(name.text, name.literal)
		return
	}
	t.reads(name.text, name.literal)
}

// file judges the subcommands of file, which may be shortened.
func (t *tcl) file(args []tclWord) {
	if len(args) == 0 {
		return
	}
	sub, args := args[0].text, args[1:]
	for len(args) > 0 && strings.HasPrefix(args[0].text, "-") {
		args = args[1:]
	}
	switch {
	case sub != "" && strings.HasPrefix("delete", sub) && len(sub) > 1:
		t.Write, t.Destroy = true, true
		for _, w := range args {
			t.deletes(w.text, w.literal)
		}
	case sub == "mkdir", sub == "link", sub == "tempfile":
		for _, w := range args {
			t.writes(w.text, w.literal)
		}
	case sub == "rename", sub == "copy":
		if n := len(args) - 1; n > 0 {
			t.writes(args[n].text, args[n].literal)
		}
		for _, w := range args[:max(len(args)-1, 0)] {
			if sub == "rename" {
				t.writes(w.text, w.literal)
			} else {
				t.reads(w.text, w.literal)
			}
		}
	case sub == "attributes" && len(args) > 2:
		t.writes(args[0].text, args[0].literal)
	}
}

// contact records the host of a connection.
func (t *tcl) contact(args []tclWord) {
	t.Network = true
	for _, w := range args {
		if w.literal && !strings.HasPrefix(w.text, "-") && hostLike(w.text) {
			t.contacts(w.text, true)
			return
		}
	}
}
