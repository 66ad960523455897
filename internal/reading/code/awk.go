package code

import "strings"

// awkKind is the kind of an awk token.
type awkKind uint8

const (
	awkEnd awkKind = iota
	awkNewline
	awkName    // a variable or a function
	awkWord    // a reserved word
	awkBuiltin // a function of the language
	awkNumber
	awkString // text is decoded
	awkRegex
	awkPunct
)

type awkToken struct {
	kind  awkKind
	text  string
	tight bool // a parenthesis follows without space
	vague bool // a string that implementations decode differently
	mate  int  // for brackets: the token that closes or opens this one
}

// literal reports whether a token is a string of one meaning.
func (t awkToken) literal() bool { return t.kind == awkString && !t.vague }

// awkReader reads programs of POSIX awk and gawk. It does not build a tree:
// what a program can do to others begins at a few tokens (a redirection, a
// pipe, getline, system), and only their surroundings are looked at.
type awkReader struct {
	*Finding
	toks    []awkToken
	sure    bool
	defined map[string]bool // functions of the program
	environ bool            // the environment of commands may be changed
}

// readAwk reports whether the whole program was understood.
func readAwk(f *Finding, text string) bool {
	toks, ok := awkTokens(text)
	r := awkReader{Finding: f, toks: toks, sure: ok, defined: map[string]bool{}}
	for i, t := range toks {
		if t.kind == awkWord && (t.text == "function" || t.text == "func") && toks[i+1].kind == awkName {
			r.defined[toks[i+1].text] = true
		}
	}
	for i := range toks {
		r.look(i)
	}
	return r.sure && !(r.environ && len(f.Shell) > 0)
}

// look judges the token i.
func (r *awkReader) look(i int) {
	t := r.toks[i]
	switch t.kind {
	case awkString:
		// Special file names are network connections wherever a file is named,
		// also in ARGV.
		if inet(t.text) {
			r.contacts(inetHost(t.text))
			r.sure = false
		}
	case awkName:
		switch {
		case t.text == "ENVIRON":
			r.environ = true
		case t.text == "ARGV" || t.text == "ARGC" || t.text == "SYMTAB":
			r.sure = false // names input files, which may be special; SYMTAB holds every variable
		case t.tight && !r.defined[t.text]:
			r.sure = false // a function of an extension
		}
	case awkBuiltin:
		if t.text == "system" {
			r.system(i)
		}
	case awkWord:
		switch t.text {
		case "print", "printf":
			r.output(i)
		case "getline":
			r.input(i)
		}
	case awkPunct:
		switch t.text {
		case "@", "::":
			r.sure = false // includes, loads, indirect calls, name spaces
		case "|", "|&":
			// A pipe after print is output's matter.
			if r.toks[i+1].text == "getline" && r.toks[i+1].kind == awkWord {
				r.commandBefore(i, t.text)
			}
		}
	}
}

// system reads the call of system at i.
func (r *awkReader) system(i int) {
	open := i + 1
	if r.toks[open].text != "(" || r.toks[open].kind != awkPunct {
		r.Starts = true
		return
	}
	r.joined(open+1, r.toks[open].mate)
}

// joined records the text for a shell that the tokens between two make: it is
// literal as far as strings stand side by side.
func (r *awkReader) joined(from, to int) {
	for from < to && r.toks[from].text == "(" && r.toks[from].kind == awkPunct && r.toks[from].mate == to-1 {
		from, to = from+1, to-1
	}
	var b strings.Builder
	hole := false
	for i := from; i < to; i++ {
		t := r.toks[i]
		switch {
		case t.literal():
			b.WriteString(t.text)
			hole = false
			continue
		case t.kind == awkNewline, t.kind == awkWord, t.kind == awkPunct && strings.IndexByte("([$+-*/%^", t.text[0]) < 0:
			r.Starts = true // decides or compares
			return
		}
		if !hole {
			b.WriteRune(Hole)
		}
		hole = true
		if t.mate > i {
			i = t.mate
		}
	}
	if text := b.String(); hole || open(text) || to <= from {
		r.partly(text)
	} else {
		r.shell(text)
	}
}

// commandBefore reads the command of `command | getline`, the pipe being at i.
// Of strings side by side some implementations take the last one only.
func (r *awkReader) commandBefore(i int, pipe string) {
	from := max(i-1, 0)
	if t := r.toks[from]; t.kind == awkPunct && t.text == ")" && t.mate >= 0 {
		from = t.mate
	} else if !t.literal() {
		r.Starts = true
		return
	}
	if i < 1 || from > 0 && !r.opens(from-1) {
		r.Starts = true
		return
	}
	r.start(from, i, pipe)
}

// opens reports whether an operand after token i stands alone on the left of a
// pipe: token i begins a statement or binds less than a pipe does.
func (r *awkReader) opens(i int) bool {
	t := r.toks[i]
	switch t.kind {
	case awkNewline:
		return true
	case awkWord:
		return t.text == "return" || t.text == "else" || t.text == "do" || t.text == "print"
	case awkPunct:
		switch t.text {
		case "(", "{", "}", ";", ",", "&&", "||", "=", "?", ":":
			return true
		case ")":
			return r.control(t.mate)
		}
	}
	return false
}

// control reports whether the parenthesis at token i encloses the condition of
// a statement.
func (r *awkReader) control(i int) bool { return i > 0 && awkControl(r.toks[i-1]) }

func awkControl(t awkToken) bool {
	return t.kind == awkWord && (t.text == "if" || t.text == "while" || t.text == "for" || t.text == "switch")
}

// maxJoined is how many parts of a command behind a pipe are looked at.
const maxJoined = 32

// start records the command that the tokens between two make. Behind the pipe
// in both directions a special file name is no command; look reports it.
func (r *awkReader) start(from, to int, pipe string) {
	if t := r.toks[from]; from+1 == to && pipe == "|&" && t.literal() && inet(t.text) {
		return
	}
	r.joined(from, to)
}

// output reads the redirection of the print at i, if it has one.
func (r *awkReader) output(i int) {
	for j := i + 1; ; j++ {
		t := r.toks[j]
		switch t.kind {
		case awkEnd:
			return
		case awkNewline:
			if r.ends(j - 1) {
				return
			}
			continue
		case awkWord:
			if t.text == "print" || t.text == "printf" {
				r.sure = false // no statement inside of another
				return
			}
			continue
		case awkPunct:
		default:
			continue
		}
		switch t.text {
		case "(", "[", "{":
			if t.mate < 0 {
				return // unbalanced: the program is not run
			}
			j = t.mate
		case ";", "}", ")", "]":
			return
		case ">", ">>":
			name := r.toks[j+1]
			if name.literal() && r.closes(j+2) {
				if !inet(name.text) {
					r.writes(name.text, true)
				}
				return
			}
			r.writes("", false)
			r.sure = false
			return
		case "|", "|&":
			if command := r.toks[j+1]; command.kind == awkWord && command.text == "getline" {
				continue // an operand of the print, which look reads
			}
			end := j + 1
			for n := 0; n < maxJoined && !r.closes(end) && r.toks[end].text != ")"; n++ {
				end = max(end, r.toks[end].mate) + 1
			}
			if !r.closes(end) {
				r.Starts = true
				return
			}
			r.start(j+1, end, t.text)
			if end > j+2 && r.toks[j+1].mate != end-1 {
				r.sure = false // without parentheses some take the first string only
			}
			return
		}
	}
}

// ends reports whether a newline after token i can end a statement. It cannot
// where an operand is still missing.
func (r *awkReader) ends(i int) bool {
	t := r.toks[i]
	switch t.kind {
	case awkName, awkBuiltin, awkNumber, awkString, awkRegex, awkWord:
		return true
	case awkPunct:
		return t.text == ")" || t.text == "]" || t.text == "++" || t.text == "--" || t.text == "$"
	}
	return false
}

// closes reports whether the statement ends at token i.
func (r *awkReader) closes(i int) bool {
	t := r.toks[i]
	return t.kind == awkEnd || t.kind == awkNewline || t.kind == awkPunct && (t.text == ";" || t.text == "}")
}

// input reads the file of the getline at i, if it has one.
func (r *awkReader) input(i int) {
	j := i + 1
	if t := r.toks[j]; t.kind == awkPunct && t.text == "$" {
		for j++; r.toks[j].kind == awkPunct && r.toks[j].text == "$"; j++ {
		}
		switch t := r.toks[j]; {
		case t.kind == awkNumber:
			j++
		case t.kind == awkPunct && t.text == "(" && t.mate > 0:
			j = t.mate + 1
		case t.kind == awkName:
			j = r.variable(j)
		default:
			r.sure = false
			return
		}
	} else if t.kind == awkName {
		j = r.variable(j)
	}
	if t := r.toks[j]; t.kind != awkPunct || t.text != "<" {
		if t.kind == awkPunct && (t.text == "++" || t.text == "--" || t.text == "/" || t.text == "(") || t.kind == awkRegex {
			r.sure = false // not settled among implementations
		}
		return
	}
	name, after := r.toks[j+1], r.toks[j+2]
	apart := r.closes(j+2) || after.kind == awkPunct && after.text != "$" && after.text != "(" && after.text != "!" && after.text != "++" && after.text != "--"
	if !name.literal() || !apart {
		r.sure = false // an unknown file, which may be a special one
		return
	}
	if name.text != "-" && !inet(name.text) {
		r.reads(name.text, true)
	}
}

// variable gives the token after the variable at i.
func (r *awkReader) variable(i int) int {
	if t := r.toks[i+1]; t.kind == awkPunct && t.text == "[" && t.mate > 0 {
		return t.mate + 1
	}
	return i + 1
}

// inet reports whether a string begins as the special file names of network
// connections do.
func inet(name string) bool {
	return strings.HasPrefix(name, "/inet/") || strings.HasPrefix(name, "/inet4/") || strings.HasPrefix(name, "/inet6/")
}

// inetHost gives the host of a special file name: /inet/protocol/local/host/port.
func inetHost(name string) (string, bool) {
	parts := strings.Split(name, "/")
	if len(parts) < 5 || parts[4] == "" || parts[4] == "0" {
		return "", false
	}
	return parts[4], true
}

// awkTokens splits a program. Behind the last token stand three of the kind
// awkEnd, so that a look ahead needs no test. It reports whether every byte had
// one meaning.
func awkTokens(text string) ([]awkToken, bool) {
	var toks []awkToken
	var open []int
	sure := true
	for pos := 0; pos < len(text); {
		t, n, ok := awkNext(text[pos:], toks)
		sure = sure && ok
		pos += n
		if t.kind == awkEnd {
			continue
		}
		t.mate = -1
		t.tight = pos < len(text) && text[pos] == '('
		if t.kind == awkPunct {
			switch t.text {
			case "(", "[", "{":
				open = append(open, len(toks))
			case ")", "]", "}":
				if len(open) == 0 {
					sure = false
					break
				}
				last := open[len(open)-1]
				open = open[:len(open)-1]
				if !pair(toks[last].text, t.text) {
					sure = false
				}
				t.mate, toks[last].mate = last, len(toks)
			}
		}
		toks = append(toks, t)
	}
	end := awkToken{kind: awkEnd, mate: -1}
	return append(toks, end, end, end), sure && len(open) == 0
}

// pair reports whether two brackets belong to each other.
func pair(open, shut string) bool {
	switch open {
	case "(":
		return shut == ")"
	case "[":
		return shut == "]"
	case "{":
		return shut == "}"
	}
	return false
}

// awkNext reads one token, with the number of its bytes. The kind awkEnd stands
// for space and comments. It reports whether the bytes have one meaning.
func awkNext(text string, before []awkToken) (awkToken, int, bool) {
	c := text[0]
	switch {
	case c == '\n':
		return awkToken{kind: awkNewline, text: "\n"}, 1, true
	case isBlank(c) || c == '\r':
		return awkToken{}, 1, c != '\r'
	case c == '#':
		if end := strings.IndexByte(text, '\n'); end >= 0 {
			return awkToken{}, end, true
		}
		return awkToken{}, len(text), true
	case c == '\\' && strings.HasPrefix(text, "\\\n"):
		return awkToken{}, 2, true
	case c == '"':
		return awkQuoted(text)
	case c == '/':
		return awkSlash(text, before)
	case isDigit(c), c == '.' && len(text) > 1 && isDigit(text[1]):
		n := 1
		for n < len(text) && (isWord(text[n]) || text[n] == '.' || (text[n] == '+' || text[n] == '-') && (text[n-1] == 'e' || text[n-1] == 'E') && isDigit(text[0])) {
			n++
		}
		return awkToken{kind: awkNumber, text: text[:n]}, n, plainNumber(text[:n])
	case c < 0x80 && isWord(c):
		n := 1
		for n < len(text) && text[n] < 0x80 && isWord(text[n]) {
			n++
		}
		return awkToken{kind: awkNameKind(text[:n]), text: text[:n]}, n, true
	}
	for _, op := range [...]string{"**=", "|&", "||", "&&", "++", "--", "+=", "-=", "*=", "%=", "^=", "==", "!=", "<=", ">=", ">>", "**", "::"} {
		if strings.HasPrefix(text, op) {
			return awkToken{kind: awkPunct, text: op}, len(op), true
		}
	}
	return awkToken{kind: awkPunct, text: text[:1]}, 1, strings.IndexByte("(){}[];,+-*%^<>!~?:=$|@", c) >= 0
}

// plainNumber reports whether every awk reads the same number; only the digits
// matter, since a letter behind them would be a variable of its own.
func plainNumber(s string) bool {
	dot, exp := false, false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case isDigit(c), c == '+', c == '-':
		case c == '.' && !dot && !exp:
			dot = true
		case (c == 'e' || c == 'E') && !exp && i+1 < len(s):
			exp = true
		default:
			return false
		}
	}
	return true
}

// awkQuoted reads a string.
func awkQuoted(text string) (awkToken, int, bool) {
	var b strings.Builder
	sure, vague := true, false
	for i := 1; i < len(text); i++ {
		switch c := text[i]; c {
		case '"':
			return awkToken{kind: awkString, text: b.String(), vague: vague}, i + 1, sure
		case '\n':
			return awkToken{kind: awkString, text: b.String()}, i, false
		case '\\':
			i++
			if i == len(text) {
				return awkToken{kind: awkString, text: b.String()}, i, false
			}
			switch e := text[i]; {
			case e == '"' || e == '\\' || e == '/':
				b.WriteByte(e)
			case e >= '0' && e <= '7':
				v := 0
				n := 0
				for ; n < 3 && i+n < len(text) && text[i+n] >= '0' && text[i+n] <= '7'; n++ {
					v = v*8 + int(text[i+n]-'0')
				}
				i += n - 1
				b.WriteByte(byte(v))
			case strings.IndexByte("abfnrtv", e) >= 0:
				b.WriteByte("\a\b\f\n\r\t\v"[strings.IndexByte("abfnrtv", e)])
			default:
				b.WriteByte('\\')
				b.WriteByte(e)
				vague = true
				sure = sure && e != '\n' && e != '\r'
			}
		default:
			b.WriteByte(c)
		}
	}
	return awkToken{kind: awkString, text: b.String()}, len(text), false
}

// awkSlash reads a regular expression or a division.
func awkSlash(text string, before []awkToken) (awkToken, int, bool) {
	regex, sure := awkRegexAfter(before)
	if !regex {
		if strings.HasPrefix(text, "/=") {
			return awkToken{kind: awkPunct, text: "/="}, 2, sure
		}
		return awkToken{kind: awkPunct, text: "/"}, 1, sure
	}
	bracket := false
	for i := 1; i < len(text); i++ {
		switch c := text[i]; c {
		case '\\':
			i++
			sure = sure && i < len(text) && text[i] != '\n'
		case '[':
			bracket = true
		case ']':
			bracket = false
		case '\n':
			return awkToken{kind: awkRegex}, i, false
		case '/':
			// Some end here, some go on to the end of the bracket expression.
			return awkToken{kind: awkRegex}, i + 1, sure && !bracket
		}
	}
	return awkToken{kind: awkRegex}, len(text), false
}

// awkRegexAfter reports whether a slash after these tokens begins a regular
// expression, and whether that is certain.
func awkRegexAfter(before []awkToken) (regex, sure bool) {
	if len(before) == 0 {
		return true, true
	}
	t := before[len(before)-1]
	switch t.kind {
	case awkName, awkNumber, awkString, awkRegex:
		return false, true
	case awkBuiltin:
		return false, t.text == "length"
	case awkWord:
		return t.text != "getline", t.text != "getline"
	case awkPunct:
		switch t.text {
		case "]":
			return false, true
		case ")":
			return t.mate > 0 && awkControl(before[t.mate-1]), true
		case "++", "--", "$":
			return false, false
		}
	}
	return true, true
}

// awkNameKind tells names, reserved words and functions of the language apart.
func awkNameKind(name string) awkKind {
	switch name {
	case "BEGIN", "END", "BEGINFILE", "ENDFILE", "break", "case", "continue", "default", "delete", "do", "else",
		"exit", "for", "func", "function", "getline", "if", "in", "next", "nextfile", "print", "printf", "return",
		"switch", "while":
		return awkWord
	case "and", "asort", "asorti", "atan2", "bindtextdomain", "close", "compl", "cos", "dcgettext", "dcngettext",
		"exp", "fflush", "gensub", "gsub", "index", "int", "isarray", "length", "log", "lshift", "match",
		"mkbool", "mktime", "or", "patsplit", "rand", "rshift", "sin", "split", "sprintf", "sqrt", "srand",
		"strftime", "strtonum", "sub", "substr", "system", "systime", "tolower", "toupper", "typeof", "xor":
		return awkBuiltin
	}
	return awkName
}
