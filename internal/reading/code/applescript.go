package code

import "strings"

// stepAppleScript reads one token of AppleScript.
func stepAppleScript(lx *lexer) {
	if lx.blank() {
		return
	}
	c := lx.text[lx.pos]
	switch {
	case strings.HasPrefix(lx.rest(), "--"), c == '#':
		lx.skipLine()
	case strings.HasPrefix(lx.rest(), "(*"):
		lx.nestedComment("(*", "*)")
	case strings.HasPrefix(lx.rest(), "¬"):
		lx.skipLine() // the line goes on
		lx.pos = min(lx.pos+1, len(lx.text))
		lx.space = true
	case c == '"':
		lx.quoted(1, quote{shut: c, kind: tokString})
	case c == '|':
		lx.quoted(1, quote{shut: c, kind: tokName, line: true})
	case isDigit(c):
		lx.number()
	case isWord(c):
		n := lx.name(0)
		lx.add(token{kind: tokName, text: strings.ToLower(lx.text[lx.pos : lx.pos+n])})
		lx.pos += n
	default:
		lx.op(1)
	}
}

// nestedComment skips a comment that may hold others.
func (lx *lexer) nestedComment(open, shut string) {
	depth := 0
	for lx.pos < len(lx.text) {
		switch {
		case strings.HasPrefix(lx.rest(), open):
			depth++
			lx.pos += len(open)
		case strings.HasPrefix(lx.rest(), shut):
			depth--
			lx.pos += len(shut)
			if depth == 0 {
				lx.space = true
				return
			}
		default:
			lx.pos++
		}
	}
}

// appleScript is a script with the commands of the standard additions and of
// the applications that come with macOS.
type appleScript struct{ *script }

func readAppleScript(f *Finding, text string, nest int) {
	a := appleScript{newScript(f, AppleScript, text, nest, stepAppleScript, "&")}
	a.sets()
	a.each(func(i int) {
		if a.toks[i].kind == tokName {
			a.command(i)
		}
	})
}

// sets notes the values of `set name to "…"`, where a name has one.
func (a appleScript) sets() {
	seen := map[string]bool{}
	a.each(func(i int) {
		if !a.toks[i].named("set") || a.toks[i+1].kind != tokName || !a.toks[i+2].named("to") {
			return
		}
		name := a.toks[i+1].text
		delete(a.values, name)
		delete(a.opens, name)
		if !seen[name] {
			a.assign(name, i+3)
		}
		seen[name] = true
	})
}

// rest gives the tokens of a direct parameter from token i on: up to the end of
// the line or to a labeled parameter.
func (a appleScript) rest(i int) span {
	from := i
	for n := 0; n < maxBare; n++ {
		t := a.toks[i]
		if t.kind == tokEnd || t.kind == tokLine || t.is(")") || t.is("}") ||
			t.named("with", "without", "user", "password", "as", "giving", "given", "altering", "in", "to", "for", "then", "using") {
			break
		}
		i = max(i, t.mate) + 1
	}
	return span{from, i}
}

// path gives the string that a reference to a file ends in.
func (a appleScript) path(i int) (string, bool) {
	for a.toks[i].named("posix", "file", "folder", "alias", "disk", "item", "the") {
		i++
	}
	return a.str(a.rest(i))
}

func (a appleScript) command(i int) {
	next := a.toks[i+1]
	switch a.toks[i].text {
	case "do":
		switch {
		case next.named("shell") && a.toks[i+2].named("script"):
			a.script.command(a.rest(i + 3))
		case next.named("script"):
			a.script.command(a.rest(i + 2)) // of the application Terminal
		case next.named("javascript"):
			a.Network = true
		}
	case "write":
		if next.named("text") && a.toks[i-min(i, 1)].named("iterm", "session") {
			a.Starts = true
		}
		a.Write = true
	case "administrator":
		a.Privilege = a.Privilege || next.named("privileges")
	case "run":
		if next.named("script") {
			arg := a.rest(i + 2)
			a.nested(AppleScript, []span{arg}, 0)
			if _, ok := a.str(arg); !ok {
				a.Starts = true
			}
		}
	case "keystroke", "load":
		a.Starts = true // types into an application, takes in code
	case "delete":
		a.deletes(a.path(i + 1))
	case "empty":
		if next.named("trash") || next.named("the") && a.toks[i+2].named("trash") {
			a.Write, a.Destroy = true, true
		}
	case "restart", "shut", "erase", "eject":
		a.Destroy = true
	case "move", "duplicate", "make", "save":
		a.Write = true
	case "open":
		switch {
		case next.named("location"):
			a.contacts(a.str(a.rest(i + 2)))
		case next.named("for") && a.toks[i+2].named("access"):
			a.openFile(i + 3)
		}
	case "mount":
		if next.named("volume") {
			a.contacts(a.str(a.rest(i + 2)))
		}
	case "read":
		a.reads(a.path(i + 1))
	}
}

// openFile judges `open for access file … [with write permission]`.
func (a appleScript) openFile(i int) {
	path, ok := a.path(i)
	end := a.rest(i).to
	for n := 0; n < maxBare && a.toks[end].kind != tokEnd && a.toks[end].kind != tokLine; n++ {
		if a.toks[end].named("write") {
			a.writes(path, ok)
			return
		}
		end++
	}
	a.reads(path, ok)
}
