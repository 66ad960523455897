package windows

import (
	"strings"
	"unicode/utf8"
)

// Cmd returns the calls of a text of cmd.exe, as after /c, in the order of the
// text. complete says that nothing else can happen: every variable is one that
// Windows sets, and all was understood.
//
// A builtin that is written together with what follows (cd.., rd/s) is given
// in words of its own, as are switches that stand together (/s/q). The title
// of start is left out. The grammar is that of "cmd /?", "if /?" and "for /?".
func Cmd(text string) (calls []Call, complete bool) {
	if len(text) > maxText || !utf8.ValidString(text) || strings.IndexByte(text, 0) >= 0 {
		return nil, false
	}
	c := &command{text: text}
	c.complete = true
	c.lines(false)
	// How cmd takes control characters differs from place to place.
	control := func(r rune) bool { return r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0x7f }
	if c.at < len(c.text) || strings.ContainsFunc(c.text, control) {
		c.complete = false
	}
	return c.calls(), c.complete
}

type command struct {
	collector
	text   string
	at     int
	groups int    // open parentheses
	loop   string // the letters of the variables of for that are in reach
}

func (c *command) peek() byte {
	if c.at < len(c.text) {
		return c.text[c.at]
	}
	return 0
}

func (c *command) has(s string) bool { return strings.HasPrefix(c.text[c.at:], s) }

// blanks skips what separates words of an external command; delimiters too,
// which count before a command and between the words of builtins.
func (c *command) blanks(delimiters bool) {
	for c.at < len(c.text) {
		switch b := c.peek(); {
		case b == ' ' || b == '\t' || b == '\v' || b == '\f' || delimiters && (b == ',' || b == ';' || b == '='):
			c.at++
		case b == '^' && (strings.HasPrefix(c.text[c.at+1:], "\n") || strings.HasPrefix(c.text[c.at+1:], "\r\n")):
			c.at += strings.IndexByte(c.text[c.at:], '\n') + 1
		case c.has("\u00a0"):
			c.at += len("\u00a0")
			c.incomplete() // whether it separates depends on the code page
		default:
			return
		}
	}
}

// lines reads commands up to the end, or to a closing parenthesis, which it
// consumes.
func (c *command) lines(group bool) {
	if !c.enter() {
		c.at = len(c.text)
		return
	}
	defer c.leave()
	for {
		c.blanks(true)
		switch b := c.peek(); {
		case c.at >= len(c.text):
			if group {
				c.incomplete()
			}
			return
		case b == ')' && group:
			c.at++
			return
		case b == ')':
			c.incomplete()
			c.at++
		case b == '\n' || b == '\r' || b == '&' || b == '|':
			c.at++
		default:
			from := c.at
			c.one()
			if c.at == from {
				c.incomplete()
				c.at++
			}
		}
	}
}

// one reads one command: a group, if, for, or a call.
func (c *command) one() {
	if !c.enter() {
		c.at = len(c.text)
		return
	}
	defer c.leave()
	for c.blanks(true); c.peek() == '@'; c.blanks(true) {
		c.at++
	}
	switch {
	case c.peek() == '(':
		c.at++
		place := c.reserve()
		c.groups++
		c.lines(true)
		c.groups--
		var call Call
		for c.blanks(false); c.redirection(&call); c.blanks(false) {
		}
		c.fill(place, call)
	case c.peek() == ':':
		c.incomplete() // a label, or a comment
		c.skipLine()
	case c.keyword("if"):
		c.ifs()
	case c.keyword("for"):
		c.fors()
	default:
		c.call()
	}
}

// keyword reads a keyword if it stands here.
func (c *command) keyword(name string) bool {
	end := c.at + len(name)
	if end > len(c.text) || !strings.EqualFold(c.text[c.at:end], name) {
		return false
	}
	if end < len(c.text) && strings.IndexByte(" \t(/,;=\"", c.text[end]) < 0 {
		return false
	}
	c.at = end
	return true
}

func (c *command) skipLine() {
	if end := strings.IndexAny(c.text[c.at:], "\r\n&|"); end >= 0 {
		c.at += end
	} else {
		c.at = len(c.text)
	}
}

// ifs reads the condition of if and its commands.
func (c *command) ifs() {
	for c.blanks(true); ; c.blanks(true) {
		if c.has("/") {
			if w, _ := c.word(false); !strings.EqualFold(w.Text, "/i") {
				c.incomplete()
			}
		} else if !c.keyword("not") {
			break
		}
	}
	if c.keyword("exist") || c.keyword("defined") || c.keyword("errorlevel") || c.keyword("cmdextversion") {
		c.blanks(true)
		c.word(false)
	} else if !c.comparison() {
		c.incomplete()
	}
	c.blanks(false)
	group := c.peek() == '('
	c.one()
	c.blanks(false)
	if group && c.keyword("else") {
		c.one()
	}
}

// comparison reads a==b or a EQU b.
func (c *command) comparison() bool {
	if !c.side() {
		return false
	}
	c.blanks(false)
	if c.has("==") {
		c.at += 2
		c.blanks(false)
		return c.side()
	}
	for _, name := range []string{"equ", "neq", "lss", "leq", "gtr", "geq"} {
		if c.keyword(name) {
			c.blanks(false)
			return c.side()
		}
	}
	return false
}

// side reads one side of a comparison.
func (c *command) side() bool {
	from := c.at
	quoted := false
	for c.at < len(c.text) {
		b := c.peek()
		if b == '\r' || b == '\n' {
			break // it ends the command, even within quotes
		}
		if b == '"' {
			quoted = !quoted
		} else if !quoted && (strings.IndexByte(" \t\r\n()&|<>", b) >= 0 || c.has("==")) {
			break
		}
		if b == '%' {
			c.variable()
		} else {
			c.at++
		}
	}
	return c.at > from && !quoted
}

// fors reads for [/d|/r [folder]|/l|/f ["how"]] %x in (set) do command.
func (c *command) fors() {
	files := false
	for c.blanks(true); c.has("/"); c.blanks(true) {
		w, _ := c.word(false)
		files = files || strings.EqualFold(w.Text, "/f")
		if !listed(" /f /d /l /r ", w.Text) {
			c.incomplete()
		}
		c.blanks(true)
		if c.peek() != '%' {
			c.word(false)
		}
	}
	for c.peek() == '%' {
		c.at++
	}
	if !letter(c.peek()) {
		c.incomplete()
	}
	outer := c.loop
	defer func() { c.loop = outer }()
	c.loop += string(rune(c.peek()))
	c.at = min(c.at+1, len(c.text))
	c.blanks(true)
	if !c.keyword("in") {
		c.incomplete()
	}
	c.blanks(true)
	if c.peek() != '(' {
		c.incomplete()
		return
	}
	c.at++
	c.forSet(files)
	c.blanks(true)
	if !c.keyword("do") {
		c.incomplete()
	}
	c.one()
}

// forSet reads the set of for up to the parenthesis. With /f, a quoted one is
// a command whose output is read.
func (c *command) forSet(files bool) {
	from := c.at
	quoted := false
	for c.at < len(c.text) && (quoted || c.peek() != ')') {
		switch c.peek() {
		case '"':
			quoted = !quoted
		case '^':
			c.at++
		case '%':
			c.variable()
			continue
		}
		c.at++
	}
	c.at = min(c.at, len(c.text))
	set := strings.TrimSpace(c.text[from:c.at])
	if c.at >= len(c.text) {
		c.incomplete()
		return
	}
	c.at++
	if !files || set == "" || set[0] != '\'' && set[0] != '`' {
		return
	}
	inner := &command{text: strings.Trim(set, set[:1]), loop: c.loop, collector: c.collector}
	inner.lines(false)
	c.slots = inner.slots
	c.complete = c.complete && inner.complete && inner.at >= len(inner.text)
}

// Builtins whose words are separated by commas and the like, too.
const delimitedBuiltins = " del erase copy move rd rmdir md mkdir type dir ren rename cd chdir pushd start call "

// call reads a command with its words and redirections.
func (c *command) call() {
	place := c.reserve()
	var call Call
	for c.blanks(true); c.redirection(&call); c.blanks(true) {
	}
	name, ok := c.word(true)
	if !ok {
		c.fill(place, call)
		return
	}
	builtin := ""
	if name.Literal {
		var rest string
		if builtin, rest = splitBuiltin(name.Text); builtin != "" {
			name.Text = builtin
			if rest != "" {
				call.Words = appendSwitches(call.Words, Word{rest, true}, true)
			}
		}
	}
	call.Words = append([]Word{name}, call.Words...)
	delimited, title := listed(delimitedBuiltins, builtin), strings.EqualFold(builtin, "start")
	for {
		c.blanks(delimited)
		if c.at >= len(c.text) || strings.IndexByte("&|\r\n", c.peek()) >= 0 || c.peek() == ')' && c.groups > 0 {
			break
		}
		if c.redirection(&call) {
			continue
		}
		quoted, begin := c.peek() == '"', c.at
		w, ok := c.word(delimited)
		if !ok {
			c.incomplete()
			break
		}
		if strings.EqualFold(builtin, "call") && strings.ContainsAny(w.Text, "%^") {
			c.incomplete() // it is read twice
		}
		if title && !listed(" /d /node /affinity ", call.Words[len(call.Words)-1].Text) {
			title = strings.HasPrefix(w.Text, "/")
			if quoted {
				if raw := c.text[begin:c.at]; strings.Count(raw, `"`) != 2 || raw[len(raw)-1] != '"' {
					c.incomplete() // what follows the title without a blank may be the program
				}
				continue
			}
		}
		call.Words = appendSwitches(call.Words, w, builtin != "")
	}
	c.fill(place, call)
}

// Builtins of cmd.exe that may be written together with what follows.
const builtins = ` assoc break call cd chdir cls color copy date del dir echo endlocal erase exit ftype goto md mkdir mklink move path pause
 popd prompt pushd rd rem ren rename rmdir set setlocal shift start time title type ver verify vol `

// splitBuiltin takes apart cd.. and rd/s.
func splitBuiltin(word string) (name, rest string) {
	end := 0
	for end < len(word) && letter(word[end]) {
		end++
	}
	if end == 0 || !listed(builtins, word[:end]) {
		return "", ""
	}
	if end < len(word) && strings.IndexByte(`./\:+([]`, word[end]) < 0 {
		return "", ""
	}
	rest = word[end:]
	if strings.EqualFold(word[:end], "echo") && rest != "" {
		rest = rest[1:] // echo. and echo( print what follows
	}
	return word[:end], rest
}

// appendSwitches adds a word; switches of builtins that stand together become
// words of their own.
func appendSwitches(words []Word, w Word, builtin bool) []Word {
	if !builtin || !w.Literal || len(w.Text) < 4 || w.Text[0] != '/' || strings.Count(w.Text, "/") < 2 {
		return append(words, w)
	}
	parts := strings.Split(w.Text[1:], "/")
	for _, part := range parts {
		if n := len(part); n == 0 || n > 2 && part[1] != ':' && part[1] != '-' {
			return append(words, w)
		}
	}
	for _, part := range parts {
		words = append(words, Word{"/" + part, true})
	}
	return words
}

// redirection reads one redirection.
func (c *command) redirection(call *Call) bool {
	from := c.at
	if digit(c.peek()) && c.at+1 < len(c.text) && (c.text[c.at+1] == '>' || c.text[c.at+1] == '<') {
		c.at++
	}
	r := Redirect{}
	switch c.peek() {
	case '>':
		c.at++
		if c.peek() == '>' {
			r.Append = true
			c.at++
		}
	case '<':
		r.Input = true
		c.at++
	default:
		c.at = from
		return false
	}
	if c.peek() == '&' && c.at+1 < len(c.text) && digit(c.text[c.at+1]) {
		c.at += 2
		return true
	}
	c.blanks(true)
	w, ok := c.word(true)
	if !ok {
		c.incomplete()
		return true
	}
	if w.Literal && listed(" nul nul: ", w.Text) {
		return true
	}
	r.Target = w
	call.Redirects = append(call.Redirects, r)
	return true
}

// word reads one word: quotes keep it together and go, a caret escapes.
func (c *command) word(delimiters bool) (Word, bool) {
	from := c.at
	var b strings.Builder
	literal, quoted := true, false
read:
	for c.at < len(c.text) {
		switch ch := c.peek(); {
		case ch == '\r' || ch == '\n':
			break read
		case ch == '"':
			quoted = !quoted
			c.at++
		case ch == '%':
			before := c.at
			if c.variable() {
				literal = false
			} else {
				b.WriteString(c.text[before:c.at])
			}
		case quoted:
			b.WriteByte(ch)
			c.at++
		case ch == '^':
			c.at++
			if c.at < len(c.text) && c.peek() != '%' { // variables come first
				_, n := utf8.DecodeRuneInString(c.text[c.at:])
				b.WriteString(c.text[c.at : c.at+n])
				c.at += n
			}
		case strings.IndexByte(" \t\v\f&|<>", ch) >= 0, ch == ')' && c.groups > 0, delimiters && strings.IndexByte(",;=", ch) >= 0:
			break read
		default:
			b.WriteByte(ch)
			c.at++
		}
	}
	if quoted {
		c.incomplete()
	}
	switch {
	case c.at == from:
		return Word{}, false
	case !literal:
		return Word{c.text[from:c.at], false}, true
	}
	return Word{b.String(), true}, true
}

// Variables that Windows sets itself, to values without special characters.
const ownVariables = ` allusersprofile appdata cd commonprogramfiles computername comspec date errorlevel homedrive homepath localappdata
 number_of_processors os processor_architecture processor_identifier processor_level programdata programfiles programfiles(x86) programw6432
 public random sessionname systemdrive systemroot temp time tmp userdomain username userprofile windir `

const maxVariable = 128

// variable reads %NAME%, or the variable of a loop. It returns false if the
// sign stands for itself; then it is read, too.
func (c *command) variable() bool {
	c.at++
	if c.peek() == '%' {
		if next := c.at + 1; next >= len(c.text) || c.text[next] != '~' && strings.IndexByte(c.loop, c.text[next]) < 0 {
			return false
		}
		c.at++ // %%i of a batch file
	}
	end := c.at
	for end < len(c.text) && end-c.at < maxVariable && strings.IndexByte("%\r\n&|<>\"", c.text[end]) < 0 {
		end++
	}
	name, _, part := strings.Cut(c.text[c.at:end], ":")
	switch closed := end < len(c.text) && c.text[end] == '%' && end > c.at; {
	case name == "" || strings.ContainsAny(name, " \t"):
	case closed:
		c.at = end + 1
		if !listed(ownVariables, name) {
			c.incomplete() // its value may hold an & of its own
		}
		return true
	case part || end-c.at == maxVariable:
		c.incomplete() // perhaps a replacement that holds a quote
	}
	return c.loopVariable()
}

// loopVariable reads what follows the sign of %i or %~nxi.
func (c *command) loopVariable() bool {
	from := c.at
	switch b := c.peek(); {
	case b == '~':
		for c.at++; c.at-from < 12 && (letter(c.peek()) || c.peek() == '$'); c.at++ {
		}
		for i := c.at - 1; i > from; i-- {
			if strings.IndexByte(c.loop, c.text[i]) >= 0 {
				c.at = i + 1
				return true
			}
		}
		c.incomplete()
		return true
	case b != 0 && strings.IndexByte(c.loop, b) >= 0:
		c.at++
		return true
	case digit(b) || b == '*':
		c.incomplete() // an argument of a batch file
		c.at++
		return true
	}
	return false
}
