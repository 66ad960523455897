package code

import "strings"

// sedScript reads scripts of GNU sed, as its manual describes them ("Overview
// of sed scripts", "Commands and Regular Expressions"). Where sed would refuse
// a script, the reading is not complete; commands that come after the fault
// have then not been looked at, and sed would not have run any.
type sedScript struct {
	*Finding
	text  string
	pos   int
	depth int  // open blocks
	sure  bool // no construct was met that versions of sed read differently
}

// readSed reports whether the whole script was understood.
func readSed(f *Finding, text string) bool {
	s := sedScript{Finding: f, text: text, sure: true}
	for {
		for !s.end() && (s.peek() == ';' || isSpace(s.peek())) {
			s.pos++
		}
		if s.end() {
			return s.depth == 0 && s.sure
		}
		if !s.addresses() || s.end() || !s.command() {
			return false
		}
	}
}

func (s *sedScript) end() bool { return s.pos >= len(s.text) }

// peek gives the next byte, a newline at the end, which ends whatever a newline
// ends.
func (s *sedScript) peek() byte {
	if s.end() {
		return '\n'
	}
	return s.text[s.pos]
}

func (s *sedScript) next() byte {
	c := s.peek()
	s.pos++
	return c
}

func (s *sedScript) blanks() {
	for !s.end() && isBlank(s.text[s.pos]) {
		s.pos++
	}
}

func (s *sedScript) digits() bool {
	start := s.pos
	for isDigit(s.peek()) {
		s.pos++
	}
	return s.pos > start
}

// addresses skips none, one or two addresses and the exclamation mark.
func (s *sedScript) addresses() bool {
	found, ok := s.address(false)
	if !ok {
		return false
	}
	s.blanks()
	if found && s.peek() == ',' {
		s.pos++
		s.blanks()
		if found, ok = s.address(true); !ok || !found {
			return false
		}
		s.blanks()
	}
	if s.peek() == '!' {
		s.pos++
		s.blanks()
	}
	return true
}

func (s *sedScript) address(second bool) (found, ok bool) {
	switch c := s.peek(); {
	case s.end():
		return false, true
	case c == '$':
		s.pos++
		return true, true
	case isDigit(c):
		s.digits()
		s.blanks()
		if s.peek() == '~' {
			s.pos++
			s.blanks()
			return true, s.digits()
		}
		return true, true
	case second && (c == '+' || c == '~'):
		s.pos++
		s.blanks()
		return true, s.digits()
	case c == '/' || c == '\\':
		s.pos++
		if c == '\\' {
			c = s.next()
		}
		if !s.regex(c) {
			return false, false
		}
		for {
			s.blanks()
			if c := s.peek(); c != 'I' && c != 'M' {
				return true, true
			}
			s.pos++
		}
	}
	return false, true
}

// delimiter reports whether a byte can enclose a regular expression.
func delimiter(c byte) bool { return c != '\n' && c != '\\' && c < 0x80 }

// regex skips a regular expression and the delimiter after it.
//
// Up to version 4.8 sed ends it at the first delimiter that has no backslash;
// later versions know bracket expressions. A delimiter inside of a plain
// bracket expression is no matter: the earlier versions then refuse the script,
// since the bracket is left open. Everything else on which the two readings
// differ leaves the script unsure.
func (s *sedScript) regex(delim byte) bool {
	if !delimiter(delim) {
		return false
	}
	if delim == '[' || delim == ']' {
		s.sure = false
	}
	for !s.end() {
		switch c := s.next(); c {
		case delim:
			return true
		case '\n':
			return false
		case '\\':
			if s.end() {
				return false
			}
			s.pos++
		case '[':
			if !s.bracket(delim) {
				return false
			}
		}
	}
	return false
}

// bracket skips a bracket expression, whose first byte has been read.
func (s *sedScript) bracket(delim byte) bool {
	start := s.pos
	if s.peek() == '^' {
		s.pos++
	}
	plain := s.peek() != ']'
	if !plain {
		s.pos++
	}
	for !s.end() {
		switch c := s.next(); c {
		case ']':
			body := s.text[start : s.pos-1]
			if strings.IndexByte(body, delim) >= 0 && !plain || strings.HasSuffix(body, `\`) {
				s.sure = false
			}
			return true
		case '\n':
			return false
		case '\\':
			plain = false
		case '[':
			plain = false
			class := s.peek()
			if class != ':' && class != '.' && class != '=' {
				break
			}
			end := strings.Index(s.text[s.pos+1:], string([]byte{class, ']'}))
			if end < 0 || strings.IndexByte(s.text[s.pos+1:s.pos+1+end], '\n') >= 0 {
				return false
			}
			s.pos += 1 + end + 2
		}
	}
	return false
}

// replacement skips a text up to a delimiter that has no backslash, and that
// delimiter.
func (s *sedScript) replacement(delim byte) bool {
	for !s.end() {
		switch c := s.next(); c {
		case delim:
			return true
		case '\n':
			return false
		case '\\':
			if s.end() {
				return false
			}
			s.pos++
		}
	}
	return false
}

// command reads one command after its addresses.
func (s *sedScript) command() bool {
	switch s.next() {
	case '{':
		s.depth++
		return true
	case '}':
		s.depth--
		return s.depth >= 0 && s.finish()
	case '#':
		s.line()
		return true
	case '=', 'd', 'D', 'F', 'g', 'G', 'h', 'H', 'n', 'N', 'p', 'P', 'x', 'z':
		return s.finish()
	case 'q', 'Q', 'l', 'L':
		s.blanks()
		s.digits()
		return s.finish()
	case ':', 'b', 't', 'T', 'v':
		s.blanks()
		for c := s.peek(); !isSpace(c) && c != ';' && c != '}'; c = s.peek() {
			s.pos++
		}
		return true
	case 'a', 'i', 'c':
		s.blanks()
		s.lines()
		return true
	case 'e':
		return s.execute()
	case 'r', 'R':
		name := s.filename()
		s.reads(name, true)
		return name != ""
	case 'w', 'W':
		return s.output()
	case 's':
		delim := s.next()
		return s.regex(delim) && s.replacement(delim) && s.flags()
	case 'y':
		delim := s.next()
		return delimiter(delim) && s.replacement(delim) && s.replacement(delim) && s.finish()
	}
	return false
}

// finish skips to the end of a command that takes nothing more.
func (s *sedScript) finish() bool {
	s.blanks()
	switch s.peek() {
	case '}', '#':
		return true
	case '\n', ';':
		s.pos++
		return true
	}
	return false
}

// line gives the rest of the line.
func (s *sedScript) line() string {
	start := s.pos
	if start > len(s.text) {
		return ""
	}
	end := strings.IndexByte(s.text[start:], '\n')
	if end < 0 {
		s.pos = len(s.text)
		return s.text[start:]
	}
	s.pos = start + end + 1
	return s.text[start : start+end]
}

// lines gives the text up to the first newline that has no backslash.
func (s *sedScript) lines() string {
	start := s.pos
	for !s.end() {
		switch s.next() {
		case '\n':
			return s.text[start : s.pos-1]
		case '\\':
			if !s.end() {
				s.pos++
			}
		}
	}
	return s.text[start:]
}

// output reads the name of a file that is written.
func (s *sedScript) output() bool {
	name := s.filename()
	if name == "" {
		return false
	}
	s.writes(name, true)
	return true
}

// filename gives the name that extends to the end of the line.
func (s *sedScript) filename() string {
	s.blanks()
	return s.line()
}

// execute reads the argument of the command e. Without one it executes the
// pattern space.
func (s *sedScript) execute() bool {
	s.blanks()
	text := s.lines()
	if text == "" || strings.IndexByte(text, '\\') >= 0 {
		s.Starts = true // the input decides, or escapes that versions treat differently
		return true
	}
	s.shell(text)
	return true
}

// flags reads the flags of the command s.
func (s *sedScript) flags() bool {
	for {
		switch c := s.peek(); {
		case isDigit(c), isBlank(c), c == 'i', c == 'I', c == 'm', c == 'M', c == 'g', c == 'p':
			s.pos++
		case c == 'e':
			s.pos++
			s.Starts = true
		case c == 'w':
			s.pos++
			return s.output()
		case c == '\r' && s.pos+1 < len(s.text) && s.text[s.pos+1] == '\n':
			s.pos += 2
			return true
		default:
			return s.finish()
		}
	}
}
