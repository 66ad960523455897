package trap

import "strings"

// textHints looks for the four kinds that know no shell grammar. What stands in
// a string counts as well as a call, except for the mentions.
func textHints(text string, seen words, skip mentions) []Hint {
	var hints []Hint
	add := func(key string, at int) {
		if at >= 0 {
			hints = append(hints, Hint{key, at})
		}
	}
	if seen&wordPython != 0 {
		add(keyPythonIsolated, firstCall(text, wordPython, skip, isolatedWithoutUTF8))
	}
	if seen&wordPkill != 0 {
		add(keyPkillFull, firstCall(text, wordPkill, skip, matchesFullLine))
	}
	// Where some word of the text leads to Linux, python3 is the right name.
	if seen&(wordPython3|wordLinux) == wordPython3 {
		add(keyPython3, firstWord(text, wordPython3, skip))
	}
	if seen&wordBash != 0 {
		add(keyBash, bashOnWindows(text, seen&wordLinux != 0, skip))
	}
	return hints
}

// bashOnWindows finds the first bash without a path that Windows would look
// up: on a line behind cmd /c, powershell or pwsh, or as the first element of a
// Python list. A word that leads to Linux silences the rest of its line, and
// anywhere in the text it silences lists.
func bashOnWindows(text string, linux bool, skip mentions) int {
	onWindows, onLinux := false, false // on this line, so far
	for r := (runs{text: text}); r.next(); {
		if r.newline {
			onWindows, onLinux = false, false
		}
		switch word := r.word(); {
		case word&wordLinux != 0:
			onLinux = true
		case word&wordWindows != 0:
			onWindows = true
		case word&wordCmd != 0:
			onWindows = onWindows || hasSlashC(text[r.end:])
		case word&wordBash != 0 && (onWindows && !onLinux || !linux && firstOfList(text, r.start, r.end)):
			if before := r.before(); before != '/' && before != '\\' && !skip.holds(r.start) {
				return r.start
			}
		}
	}
	return -1
}

// hasSlashC tells whether /c or //c comes next.
func hasSlashC(rest string) bool {
	rest = strings.TrimLeft(strings.TrimLeft(rest, `"'`), " \t")
	after, found := strings.CutPrefix(rest, "/")
	if !found {
		return false
	}
	after = strings.TrimPrefix(after, "/")
	if after == "" || after[0]|0x20 != 'c' {
		return false
	}
	return len(after) == 1 || !inRun(after[1])
}

// firstOfList tells whether text[start:end] stands as ["…" or ['…', where the
// quotes may be escaped for the shell.
func firstOfList(text string, start, end int) bool {
	before, after := text[:start], text[end:]
	if before == "" || after == "" {
		return false
	}
	quote := before[len(before)-1]
	if quote != '"' && quote != '\'' {
		return false
	}
	before = before[:len(before)-1]
	if escaped, found := strings.CutSuffix(before, `\`); found {
		before, after = escaped, strings.TrimPrefix(after, `\`)
	}
	return strings.HasSuffix(before, "[") && after != "" && after[0] == quote
}

// firstWord finds the first place where the word stands.
func firstWord(text string, word words, skip mentions) int {
	for r := (runs{text: text}); r.next(); {
		if r.word()&word != 0 && !skip.holds(r.start) {
			return r.start
		}
	}
	return -1
}

// firstCall finds the first place where the program stands as a word of its
// own and its options fulfil the condition.
func firstCall(text string, program words, skip mentions, condition func(*options) bool) int {
	var q quotes
	for r := (runs{text: text}); r.next(); {
		if r.word()&program == 0 || skip.holds(r.start) {
			continue
		}
		q.advance(text, r.start)
		o := options{text: text, pos: r.end, enclosing: q.open}
		o.closeName()
		if condition(&o) {
			return r.start
		}
	}
	return -1
}

// isolatedWithoutUTF8 reads python's options as its command line does: they
// end at the first word that is none, and behind -c and -m; -W and -X take an
// argument, attached or as the next word.
func isolatedWithoutUTF8(o *options) bool {
	isolated, utf8 := false, false
	for word, ok := o.next(); ok; word, ok = o.next() {
		if strings.HasPrefix(word, "--") {
			continue
		}
	letters:
		for i := 1; i < len(word); i++ {
			switch word[i] {
			case 'I':
				isolated = true
			case 'c', 'm':
				return isolated && !utf8
			case 'W', 'X':
				argument := word[i+1:]
				if argument == "" {
					argument = o.argument()
				}
				utf8 = utf8 || word[i] == 'X' && (argument == "utf8" || argument == "utf8=1")
				break letters
			}
		}
	}
	return isolated && !utf8
}

// matchesFullLine reads pkill's options up to the first word that is none and
// tells whether one of them is -f, alone or among other letters, or --full.
func matchesFullLine(o *options) bool {
	for word, ok := o.next(); ok; word, ok = o.next() {
		switch word {
		case "--full":
			return true
		case "-u", "-U", "-g", "-G", "-P", "-s", "-t", "-F", "--signal":
			o.argument()
		default:
			if letters(word[1:]) && strings.Contains(word, "f") {
				return true
			}
		}
	}
	return false
}

func letters(s string) bool {
	for i := range len(s) {
		if c := s[i] | 0x20; c < 'a' || c > 'z' {
			return false
		}
	}
	return s != ""
}

// quotes follows which quote is open, as a shell would see it.
type quotes struct {
	open byte // '"', '\'' or 0
	pos  int  // up to where the text was read
}

func (q *quotes) advance(text string, to int) {
	for ; q.pos < to; q.pos++ {
		switch c := text[q.pos]; {
		case c == '\\' && q.open != '\'':
			q.pos++
		case c != '"' && c != '\'':
		case q.open == 0:
			q.open = c
		case q.open == c:
			q.open = 0
		}
	}
}

// options reads the words behind a program's name. They end with the command
// and with the string that the name stands in.
type options struct {
	text      string
	pos       int
	enclosing byte // the quote of the string that the name stands in, or 0
	count     int
}

// Limits that keep a text of many unfinished calls from taking quadratic time.
const (
	maxOptions = 32
	maxQuoted  = 1024
)

// closeName steps over the quote that ends a quoted name, as in
// "C:/Program Files/Python/python.exe" -I.
func (o *options) closeName() {
	if o.enclosing != 0 && o.pos < len(o.text) && o.text[o.pos] == o.enclosing {
		o.pos++
		o.enclosing = 0
	}
	if o.pos < len(o.text) && !o.blank() {
		o.pos = len(o.text) // another word goes on here
	}
}

// blank tells whether white space stands at the position; an escaped line end
// is white space.
func (o *options) blank() bool {
	switch o.text[o.pos] {
	case ' ', '\t', '\r':
		return true
	case '\\':
		return strings.HasPrefix(o.text[o.pos:], "\\\n") || strings.HasPrefix(o.text[o.pos:], "\\\r\n")
	}
	return false
}

// next reads the next option. There is none where another word stands, nor
// behind -- or a single -.
func (o *options) next() (word string, ok bool) {
	word = o.argument()
	ok = len(word) > 1 && word[0] == '-' && word != "--"
	return word, ok
}

// argument reads the next word, "" at the end of the command.
func (o *options) argument() string {
	if o.count++; o.count > maxOptions {
		return ""
	}
	for o.pos < len(o.text) && o.blank() {
		if o.text[o.pos] == '\\' {
			o.pos += strings.IndexByte(o.text[o.pos:], '\n')
		}
		o.pos++
	}
	start, quoted := o.pos, false
	for o.pos < len(o.text) && !o.blank() && !o.ends() {
		if c := o.text[o.pos]; c == '"' || c == '\'' {
			quoted = true
			rest := o.text[o.pos+1 : min(len(o.text), o.pos+1+maxQuoted)]
			if i := strings.IndexByte(rest, c); i >= 0 {
				o.pos += i + 1
			}
		}
		o.pos++
	}
	word := o.text[start:o.pos]
	if quoted {
		return strings.ReplaceAll(strings.ReplaceAll(word, `"`, ""), `'`, "")
	}
	return word
}

// ends tells whether the command ends at the position.
func (o *options) ends() bool {
	c := o.text[o.pos]
	switch c {
	case '\n', ';', '|', '&', '<', '>', '(', ')', '`':
		return true
	case '\\':
		return o.enclosing == '"' && strings.HasPrefix(o.text[o.pos:], `\"`)
	}
	return o.enclosing != 0 && c == o.enclosing
}
