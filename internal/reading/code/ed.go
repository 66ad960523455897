package code

import "strings"

// edScript reads scripts of ed as the manual of GNU ed describes them.
type edScript struct {
	*Finding
	text string
	pos  int
	file string // the default file name, as far as the script sets it
	old  bool   // the name is not certain: setting it may have failed
	sure bool
	scan bool // only looks whether text could hold commands
}

// readEd reports whether the whole script was understood.
func readEd(f *Finding, text string) bool {
	s := edScript{Finding: f, text: text, sure: true}
	for s.pos < len(s.text) {
		s.command(s.line())
	}
	return s.sure
}

// line takes the next line.
func (s *edScript) line() string {
	line, _, _ := strings.Cut(s.text[s.pos:], "\n")
	s.pos = min(s.pos+len(line)+1, len(s.text))
	return line
}

// command reads a line that is a command.
func (s *edScript) command(line string) {
	rest, addressed, ok := edAddresses(strings.TrimLeft(line, " \t"))
	if !ok {
		s.sure = false
		return
	}
	if rest == "" {
		return
	}
	c, arg := rest[0], rest[1:]
	switch c {
	case 'a', 'i', 'c':
		s.insert(arg, addressed || c == 'c' || rest != line)
	case 'd', 'j', 'l', 'n', 'p', 'P', 'h', 'H', 'y', 'x', 'z', '=', 'u', 'q', 'Q', 'k':
		if c == 'k' && arg != "" {
			arg = arg[1:]
		}
		s.sure = s.sure && strings.Trim(arg, "lnp0123456789") == ""
	case 'm', 't':
		after, _, fine := edAddresses(arg)
		s.sure = s.sure && fine && strings.Trim(after, "lnp") == ""
	case '#':
	case '!':
		s.escape(arg)
	case 'e', 'E', 'f', 'r':
		s.read(c, arg)
	case 'w', 'W':
		s.write(arg)
	case 's':
		s.substitute(arg)
	case 'g', 'v':
		s.global(arg)
	default:
		s.sure = false // interactive or unknown
	}
}

// edAddresses skips the addresses before a command. It reports whether there
// were some that may not exist.
func edAddresses(line string) (rest string, addressed, ok bool) {
	i := 0
	for i < len(line) {
		switch c := line[i]; {
		case isDigit(c), c == '+', c == '-', c == '^':
			addressed = addressed || c != '0'
			i++
		case c == '.', c == '$', c == ',', c == ';', c == '%', isBlank(c):
			i++
		case c == '\'':
			addressed = true
			i += 2
		case c == '/' || c == '?':
			addressed = true
			n := edDelimited(line[i+1:], c)
			if n < 0 {
				return "", true, false
			}
			i += 1 + n
		default:
			return line[i:], addressed, true
		}
	}
	return "", addressed, true
}

// edDelimited gives the length of a regular expression with the delimiter that
// ends it, or -1 where a line ends without one in a way that could be read
// differently.
func edDelimited(text string, delim byte) int {
	bracket := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\':
			i++
		case c == '[':
			bracket = true
		case c == ']':
			bracket = false
		case c == delim:
			if bracket {
				return -1
			}
			return i + 1
		}
	}
	return -1
}

// insert skips lines of text up to a single period. Where the command could
// fail, ed may go on and take the lines for commands.
func (s *edScript) insert(suffix string, mayFail bool) {
	s.sure = s.sure && strings.Trim(suffix, "lnp") == ""
	if s.scan {
		return
	}
	for s.pos < len(s.text) {
		line := s.line()
		if line == "." {
			return
		}
		if mayFail {
			s.suspect(line)
		}
	}
}

// suspect looks at a line of text that might be taken for a command.
func (s *edScript) suspect(line string) {
	var g Finding
	sub := edScript{Finding: &g, text: line, sure: true, scan: true}
	sub.command(line)
	if len(g.Shell) > 0 || g.Write || g.Starts || !sub.sure && strings.IndexByte(line, '!') >= 0 {
		s.sure = false
		s.merge(g)
	}
}

// escape records a command for the shell. A percent sign stands for the name of
// the file, an exclamation mark for the command before.
func (s *edScript) escape(command string) {
	if strings.IndexByte(command, '%') >= 0 || strings.HasPrefix(command, "!") || strings.HasSuffix(command, `\`) {
		s.Starts = true
		return
	}
	if strings.TrimSpace(command) != "" {
		s.shell(command)
	}
}

func (s *edScript) read(c byte, arg string) {
	name := strings.TrimLeft(arg, " \t")
	if command, found := strings.CutPrefix(name, "!"); found {
		s.escape(command)
		return
	}
	if name == "" {
		return
	}
	if arg == name {
		s.sure = false // a name wants a blank before it
		return
	}
	if c != 'f' {
		s.reads(name, true)
	}
	if c != 'r' || s.file == "" {
		s.file, s.old = name, c != 'f'
	}
}

func (s *edScript) write(arg string) {
	name := strings.TrimLeft(strings.TrimPrefix(arg, "q"), " \t")
	switch {
	case strings.HasPrefix(name, "!"):
		s.escape(name[1:])
	case name == "":
		s.writes(s.file, s.file != "") // else the file that ed was started with
		s.sure = s.sure && !s.old
	case arg == name:
		s.sure = false
	default:
		s.writes(name, true)
	}
}

// substitute skips s/re/text/flags. The text goes on behind a newline with a
// backslash before it.
func (s *edScript) substitute(arg string) {
	if strings.Trim(arg, "gprlnI0123456789") == "" {
		return // repeats the last one
	}
	delim := arg[0]
	n := edDelimited(arg[1:], delim)
	if delim == ' ' || delim >= 0x80 || isWord(delim) || n < 0 {
		s.sure = false
		return
	}
	rest := arg[1+n:]
	for {
		end := edReplacement(rest, delim)
		if end < len(rest) {
			s.sure = s.sure && strings.Trim(rest[end:], "gpInl0123456789") == ""
			return
		}
		if !strings.HasSuffix(rest, `\`) || strings.HasSuffix(rest, `\\`) || s.pos >= len(s.text) {
			return // a missing delimiter at the end of a line is allowed
		}
		if s.scan {
			s.sure = false
			return
		}
		rest = s.line()
		s.suspect(rest) // where the command fails at once, ed takes the line for the next one
	}
}

// edReplacement gives the length of a replacement with its delimiter, or that
// of the whole text where none ends it.
func edReplacement(text string, delim byte) int {
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case delim:
			return i + 1
		}
	}
	return len(text)
}

// global reads g/re/commands. Further commands follow on lines whose newline
// has a backslash before it.
func (s *edScript) global(arg string) {
	if arg == "" {
		s.sure = false
		return
	}
	n := edDelimited(arg[1:], arg[0])
	if n < 0 || isWord(arg[0]) || arg[0] == ' ' {
		s.sure = false
		return
	}
	if line := arg[1+n:]; line != "" {
		if strings.HasSuffix(line, `\`) {
			s.sure = false
			line = strings.TrimSuffix(line, `\`)
		}
		switch line[:min(1, len(line))] {
		case "g", "v", "G", "V", "a", "i", "c":
			s.sure = false
			return
		}
		s.command(line)
	}
}
