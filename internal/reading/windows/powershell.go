package windows

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// PowerShell returns the calls of a text of PowerShell, in the order of the
// text; what stands in a call (script blocks, subexpressions) comes after it.
// complete says that nothing else happens: no methods of objects, no types but
// plain ones, no changes of the environment, nothing that was not understood.
//
// The names % and ? are given as ForEach-Object and Where-Object. The members
// of an array are words of their own, but for parameters whose value is plain
// data. The grammar is that of "about_Parsing" and the language specification.
func PowerShell(text string) (calls []Call, complete bool) {
	if len(text) > maxText || !utf8.ValidString(text) || strings.IndexByte(text, 0) >= 0 {
		return nil, false
	}
	if strings.TrimSpace(text) == "-" {
		return nil, false // commands come from standard input
	}
	p := &powershell{text: text}
	p.complete = true
	p.statements(0)
	if p.at < len(p.text) {
		p.complete = false
	}
	return p.calls(), p.complete
}

type powershell struct {
	collector
	text      string
	at        int
	blocks    int             // how deep in blocks, conditions and the like
	functions map[string]bool // that the text defined for certain
}

func (p *powershell) more() bool { return p.at < len(p.text) }

func (p *powershell) peek() byte { return p.peekAt(0) }

func (p *powershell) peekAt(i int) byte {
	if p.at+i < len(p.text) {
		return p.text[p.at+i]
	}
	return 0
}

func (p *powershell) has(s string) bool { return strings.HasPrefix(p.text[p.at:], s) }

// quote returns the kind and size of a quote as PowerShell sees it:
// typographic ones count.
func (p *powershell) quote() (kind byte, size int) {
	if !p.more() {
		return 0, 0
	}
	c := p.text[p.at]
	if c == '\'' || c == '"' {
		return c, 1
	}
	if c < 0x80 {
		return 0, 0
	}
	switch r, n := utf8.DecodeRuneInString(p.text[p.at:]); r {
	case '‘', '’', '‚', '‛':
		return '\'', n
	case '“', '”', '„':
		return '"', n
	}
	return 0, 0
}

// dash returns the size of a dash, typographic ones included.
func (p *powershell) dash() int {
	if p.peek() == '-' {
		return 1
	}
	if p.peek() >= 0x80 {
		switch r, n := utf8.DecodeRuneInString(p.text[p.at:]); r {
		case '–', '—', '―':
			return n
		}
	}
	return 0
}

// space skips blanks, comments and continued lines; lines too if asked.
func (p *powershell) space(lines bool) {
	for p.more() {
		switch c := p.peek(); {
		case c == ' ' || c == '\t' || c == '\v' || c == '\f':
			p.at++
		case lines && (c == '\n' || c == '\r'):
			p.at++
		case c == '`' && p.peekAt(1) == '\n':
			p.at += 2
		case c == '`' && p.peekAt(1) == '\r' && p.peekAt(2) == '\n':
			p.at += 3
		case c == '#':
			p.line()
		case c == '<' && p.peekAt(1) == '#':
			end := strings.Index(p.text[p.at+2:], "#>")
			if end < 0 {
				p.at = len(p.text)
				p.incomplete()
				return
			}
			p.at += 2 + end + 2
		case p.wideBlank() > 0:
			p.at += p.wideBlank()
		default:
			return
		}
	}
}

// wideBlank returns the size of a blank beyond ASCII.
func (p *powershell) wideBlank() int {
	if p.peek() < 0x80 {
		return 0
	}
	switch r, n := utf8.DecodeRuneInString(p.text[p.at:]); {
	case r == '\u0085' || r == '\u2028' || r == '\u2029':
		p.incomplete() // perhaps a new line
		return n
	case unicode.IsSpace(r), r == '\u180e', r == '\u200b', r == '\ufeff':
		return n
	}
	return 0
}

// line skips the rest of a line.
func (p *powershell) line() {
	if end := strings.IndexAny(p.text[p.at:], "\r\n"); end >= 0 {
		p.at += end
	} else {
		p.at = len(p.text)
	}
}

// statements reads up to the closing byte, which it consumes, or the end.
func (p *powershell) statements(closing byte) {
	if !p.enter() {
		p.at = len(p.text)
		return
	}
	defer p.leave()
	for {
		p.space(true)
		switch c := p.peek(); {
		case !p.more():
			if closing != 0 {
				p.incomplete()
			}
			return
		case closing != 0 && c == closing:
			p.at++
			return
		case c == ';':
			p.at++
		case c == ')' || c == '}' || c == ']':
			p.incomplete()
			p.at++
		default:
			from := p.at
			p.statement()
			p.separator()
			if p.at == from {
				p.incomplete()
				p.at++
			}
		}
	}
}

// separator skips what joins a statement to the next.
func (p *powershell) separator() {
	p.space(false)
	switch {
	case p.has("&&"), p.has("||"):
		p.at += 2
		p.blocks++ // whether the next one runs is open
	case p.peek() == '&', p.peek() == '|':
		p.at++
	}
}

// statement reads one statement: a keyword's, a pipeline or an assignment.
func (p *powershell) statement() {
	p.space(true)
	from := p.at
	if word := p.keyword(); word != "" {
		if p.control(word) {
			return
		}
		p.at = from
	}
	p.pipeline()
}

// pipeline reads elements that are joined by |.
func (p *powershell) pipeline() {
	for {
		p.space(true)
		from := p.at
		p.element()
		p.space(false)
		if p.peek() != '|' || p.peekAt(1) == '|' || p.at == from {
			return
		}
		p.at++
	}
}

// element reads a command or an expression with its redirections.
func (p *powershell) element() {
	next := p.peekAt(1)
	switch c := p.peek(); {
	case c == '&' && next != '&', c == '.' && next != 0 && strings.IndexByte(" \t'\"$({", next) >= 0:
		p.at++
		p.space(false)
		p.command(true)
	case p.isExpression():
		p.expression()
	default:
		p.command(false)
	}
}

// isExpression reports whether an expression begins here, not a command.
func (p *powershell) isExpression() bool {
	if kind, _ := p.quote(); kind != 0 || p.dash() > 0 {
		return true
	}
	switch c := p.peek(); c {
	case '$', '(', '@', '[', '{', '!', '+', ',':
		return true
	case '.':
		return digit(p.peekAt(1))
	default:
		if !digit(c) {
			return false
		}
		_, ok := p.number()
		return ok
	}
}

// number returns the length of what may be a number here, and whether it is
// one.
func (p *powershell) number() (int, bool) {
	end := p.at
	for end < len(p.text) && (digit(p.text[end]) || letter(p.text[end]) || p.text[end] == '.') {
		if strings.HasPrefix(p.text[end:], "..") {
			break
		}
		end++
	}
	n := end - p.at
	if end < len(p.text) && strings.IndexByte(" \t\r\n;|)}],+-*/%=<>&.:(", p.text[end]) < 0 || n > 40 {
		return n, false
	}
	text := strings.ToLower(p.text[p.at:end])
	for _, suffix := range []string{"kb", "mb", "gb", "tb", "pb"} {
		text = strings.TrimSuffix(text, suffix)
	}
	if hex, ok := strings.CutPrefix(text, "0x"); ok {
		return n, strings.Trim(hex, "0123456789abcdef") == ""
	}
	text = strings.TrimRight(text, "uldny")
	mantissa, exponent, _ := strings.Cut(text, "e")
	return n, strings.Trim(mantissa, "0123456789.") == "" && strings.Trim(exponent, "0123456789") == "" && strings.ContainsAny(mantissa, "0123456789")
}

// Parameters whose array is one value of plain data; other arrays are taken
// apart, since their members can be paths.
const dataParameters = ` -value -property -include -exclude -argumentlist -args -inputobject -filter -expandproperty -excludeproperty -id -index
 -pattern -encoding -attributes -groupby -delimiter -first -last -skip -tail -head -format -separator -message -object `

// command reads a command with its words. called says that & or . stands
// before it, so that its first word may be a value.
func (p *powershell) command(called bool) {
	if !p.enter() {
		p.at = len(p.text)
		return
	}
	defer p.leave()
	place := p.reserve()
	var call Call
	if called && p.peek() == '{' {
		p.block() // its calls are what runs
	} else {
		w, ok := p.word(!called)
		if !ok {
			p.incomplete()
			return
		}
		if !called && w.Literal {
			switch w.Text {
			case "%":
				w.Text = "ForEach-Object"
			case "?":
				w.Text = "Where-Object"
			}
		}
		call.Words = append(call.Words, w)
	}
	p.arguments(&call)
	if len(call.Words) > 0 {
		switch first := call.Words[0]; {
		case first.Text == "":
			p.incomplete()
		case first.Literal && p.functions[strings.ToLower(first.Text)]:
			call.Words = nil // what it does was reported where it was defined
		}
	}
	p.provider(&call)
	p.fill(place, call)
}

// provider notes calls that may change what names mean: the drives of
// functions, aliases and variables, unless they are only read.
func (p *powershell) provider(call *Call) {
	for i, w := range call.Words {
		drive, _, ok := strings.Cut(w.Text, ":")
		drive = drive[strings.LastIndexByte(drive, '\\')+1:]
		if i == 0 || !ok || !listed(" function alias env environment variable ", drive) {
			continue
		}
		first := strings.ToLower(call.Words[0].Text)
		if !call.Words[0].Literal || !strings.HasPrefix(first, "get-") && !listed(" test-path dir ls gci gi gc cat type resolve-path rvpa ", first) {
			p.incomplete()
		}
	}
}

// arguments reads words and redirections up to the end of a command.
func (p *powershell) arguments(call *Call) {
	block := len(call.Words) == 0 // of & { … }: its arguments are data
	join := false
	for {
		p.space(false)
		c := p.peek()
		switch {
		case !p.more() || strings.IndexByte(";|)}\r\n&", c) >= 0:
			return
		case p.redirection(call):
			continue
		case p.has("--%"):
			p.verbatim(call)
			return
		}
		comma := c == ','
		if comma {
			p.at++
			p.space(true)
		}
		from := p.at
		w, ok := p.word(false)
		if !ok || p.at == from {
			p.incomplete()
			return
		}
		if block {
			continue
		}
		last := len(call.Words) - 1
		if comma && join && last > 0 {
			call.Words[last].Text += "," + w.Text
			call.Words[last].Literal = call.Words[last].Literal && w.Literal
			continue
		}
		if !comma {
			join = last > 0 && call.Words[last].Literal && listed(dataParameters, call.Words[last].Text)
		}
		if w.Literal && len(w.Text) > 1 && w.Text[0] == '-' && strings.HasSuffix(w.Text, ":") {
			p.space(false)
			if value, ok := p.word(false); ok {
				w = Word{w.Text + value.Text, value.Literal}
			}
		}
		call.Words = append(call.Words, w)
	}
}

// verbatim reads what follows --%: words of the old kind, up to a bar.
func (p *powershell) verbatim(call *Call) {
	p.at += 3
	end := strings.IndexAny(p.text[p.at:], "|\r\n")
	if end < 0 {
		end = len(p.text) - p.at
	}
	rest := p.text[p.at : p.at+end]
	p.at += end
	if strings.ContainsAny(rest, "%&;\"<>") {
		p.incomplete()
	}
	for _, f := range strings.Fields(rest) {
		call.Words = append(call.Words, Word{strings.Trim(f, `"`), !strings.Contains(f, "%")})
	}
}

// redirection reads one redirection.
func (p *powershell) redirection(call *Call) bool {
	skip := 0
	if c := p.peek(); (c >= '1' && c <= '6' || c == '*') && p.peekAt(1) == '>' {
		skip = 1
	}
	r := Redirect{}
	switch p.peekAt(skip) {
	case '>':
	case '<':
		r.Input = true
		p.incomplete() // no version of it knows what to do
	default:
		return false
	}
	p.at += skip + 1
	if p.peek() == '&' && digit(p.peekAt(1)) {
		p.at += 2
		return true
	}
	if !r.Input && p.peek() == '>' {
		r.Append = true
		p.at++
	}
	p.space(false)
	w, ok := p.word(false)
	if !ok {
		p.incomplete()
		return true
	}
	if w.Literal && listed(" $null nul ", w.Text) {
		return true
	}
	r.Target = w
	call.Redirects = append(call.Redirects, r)
	return true
}
