package windows

import "strings"

// word reads one word of a command. first says that it is the command's name.
func (p *powershell) word(first bool) (Word, bool) {
	from := p.at
	kind, size := p.quote()
	switch c := p.peek(); {
	case first:
	case kind != 0:
		w := p.quoted(kind, size)
		return p.tail(from, w), true
	case c == '@':
		return p.atWord(from)
	case c == '(':
		p.at++
		p.nested(')')
		return p.tail(from, Word{}), true
	case c == '{':
		p.block()
		return Word{p.text[from:p.at], true}, true
	case c == '$' && p.constant() == 0:
		if w, ok := p.variableWord(from); ok {
			return w, true
		}
	}
	return p.bare(from)
}

// atWord reads what begins with @: an array, a table, a here-string or a splat.
func (p *powershell) atWord(from int) (Word, bool) {
	switch p.peekAt(1) {
	case '(':
		p.at += 2
		p.nested(')')
		return p.tail(from, Word{}), true
	case '{':
		p.table()
		return Word{p.text[from:p.at], true}, true
	}
	if w, ok := p.here(); ok {
		return w, true
	}
	p.at++
	for letter(p.peek()) || digit(p.peek()) || p.peek() == '_' || p.peek() == ':' {
		p.at++
	}
	if p.at == from+1 {
		return p.bare(from)
	}
	return Word{p.text[from:p.at], false}, true
}

// What ends a word that is a value of its own.
const afterValue = " \t\r\n;|)},&<>"

// variableWord reads a word that begins with a variable.
func (p *powershell) variableWord(from int) (Word, bool) {
	if !p.variable() {
		return Word{}, false
	}
	p.members()
	if p.more() && strings.IndexByte(afterValue, p.peek()) < 0 {
		p.bare(p.at) // $x\file
	}
	return Word{p.text[from:p.at], false}, true
}

// tail ends a word that began with a quote or a parenthesis: members may
// follow, and what else stands there directly is a word of its own.
func (p *powershell) tail(from int, w Word) Word {
	before := p.at
	p.members()
	if p.at != before || !w.Literal {
		w = Word{p.text[from:p.at], false}
	}
	if p.more() && strings.IndexByte(afterValue, p.peek()) < 0 {
		p.incomplete()
	}
	return w
}

// bare reads a bare word, in which quotes, escapes and variables may stand.
func (p *powershell) bare(from int) (Word, bool) {
	var b strings.Builder
	literal, any := true, false
	if n := p.dash(); n > 0 {
		b.WriteByte('-')
		p.at += n
		any = true
	}
	for p.more() {
		c := p.peek()
		if strings.IndexByte(" \t\v\f\r\n;|(){},&<>", c) >= 0 || p.wideBlank() > 0 {
			break
		}
		any = true
		if kind, size := p.quote(); kind != 0 {
			w := p.quoted(kind, size)
			b.WriteString(w.Text)
			literal = literal && w.Literal
			continue
		}
		switch {
		case c == '`':
			p.escape(&b)
		case c == '$' && p.constant() > 0:
			n := p.constant()
			b.WriteString(p.text[p.at : p.at+n])
			p.at += n
		case c == '$' && p.variable():
			literal = false
		default:
			b.WriteByte(c)
			p.at++
		}
	}
	switch {
	case !any:
		return Word{}, false
	case !literal:
		return Word{p.text[from:p.at], false}, true
	}
	return Word{b.String(), true}, true
}

// constant returns the size of $true, $false or $null at a dollar sign. They
// are words that everybody knows.
func (p *powershell) constant() int {
	for _, name := range []string{"$true", "$false", "$null"} {
		n := len(name)
		if len(p.text)-p.at < n || !strings.EqualFold(p.text[p.at:p.at+n], name) {
			continue
		}
		if p.at+n == len(p.text) || strings.IndexByte(afterValue, p.text[p.at+n]) >= 0 {
			return n
		}
	}
	return 0
}

// escape reads a backtick and what it escapes.
func (p *powershell) escape(b *strings.Builder) {
	p.at++
	if !p.more() {
		p.incomplete()
		return
	}
	c := p.peek()
	p.at++
	const from, to = "0abfnrtv", "\x00\a\b\f\n\r\t\v"
	switch i := strings.IndexByte(from, c); {
	case i >= 0:
		b.WriteByte(to[i])
	case c == 'u' && p.peek() == '{':
		p.incomplete() // a character by its number
	case c == 'e':
		p.incomplete() // an escape character or the letter, by version
		b.WriteByte(c)
	case c == '\r' && p.peek() == '\n':
		p.at++
	case c == '\n':
	default:
		b.WriteByte(c)
	}
}

// quoted reads a quoted text at its opening quote.
func (p *powershell) quoted(kind byte, size int) Word {
	from := p.at
	p.at += size
	var b strings.Builder
	literal := true
	for p.more() {
		if k, n := p.quote(); k == kind {
			p.at += n
			if again, n := p.quote(); again == kind {
				b.WriteByte(kind)
				p.at += n
				continue
			}
			if !literal {
				return Word{p.text[from:p.at], false}
			}
			return Word{b.String(), true}
		}
		switch c := p.peek(); {
		case kind == '"' && c == '`':
			p.escape(&b)
		case kind == '"' && c == '$' && p.variable():
			literal = false
		default:
			b.WriteByte(c)
			p.at++
		}
	}
	p.incomplete()
	return Word{p.text[from:], false}
}

// here reads a here-string at @' or @".
func (p *powershell) here() (Word, bool) {
	from := p.at
	p.at++
	kind, size := p.quote()
	if kind == 0 {
		p.at = from
		return Word{}, false
	}
	start := p.at + size
	for start < len(p.text) && (p.text[start] == ' ' || p.text[start] == '\t') {
		start++
	}
	switch {
	case strings.HasPrefix(p.text[start:], "\r\n"):
		start += 2
	case strings.HasPrefix(p.text[start:], "\n"):
		start++
	default:
		p.incomplete()
		return p.quoted(kind, size), true
	}
	literal := true
	for p.at = start - 1; p.more(); {
		switch c := p.peek(); {
		case c == '\n':
			p.at++
			if k, n := p.quote(); k == kind && strings.HasPrefix(p.text[p.at+n:], "@") {
				body := strings.TrimSuffix(p.text[start:max(start, p.at-1)], "\r")
				p.at += n + 1
				if !literal {
					body = p.text[from:p.at]
				}
				return Word{body, literal}, true
			}
		case kind == '"' && c == '`':
			literal = false // its escapes are not worked out
			p.at = min(p.at+2, len(p.text))
		case kind == '"' && c == '$' && p.variable():
			literal = false
		default:
			p.at++
		}
	}
	p.incomplete()
	return Word{p.text[from:], false}, true
}
