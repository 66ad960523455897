package trap

import (
	"path"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// static is the value of a word that expands to nothing but itself.
func static(w *syntax.Word) (string, bool) {
	if w == nil {
		return "", false
	}
	return staticParts(w.Parts, false)
}

func staticParts(parts []syntax.WordPart, quoted bool) (string, bool) {
	if len(parts) == 1 {
		return staticPart(parts[0], quoted)
	}
	var b strings.Builder
	for _, part := range parts {
		s, ok := staticPart(part, quoted)
		if !ok {
			return "", false
		}
		b.WriteString(s)
	}
	return b.String(), true
}

func staticPart(part syntax.WordPart, quoted bool) (string, bool) {
	switch part := part.(type) {
	case *syntax.Lit:
		return unescape(part.Value, quoted), true
	case *syntax.SglQuoted:
		return part.Value, !part.Dollar || !strings.Contains(part.Value, `\`)
	case *syntax.DblQuoted:
		return staticParts(part.Parts, true)
	}
	return "", false
}

// unescape removes the backslashes that the shell would remove.
func unescape(s string, quoted bool) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		switch {
		case s[i] == '\n':
		case quoted && !strings.ContainsRune("$`\"\\", rune(s[i])):
			b.WriteByte('\\')
			b.WriteByte(s[i])
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String()
}

// unquoted is a word's text where all of it stands outside of quotes and is
// literal, so that the shell may split or glob it.
func unquoted(w *syntax.Word) (string, bool) {
	if len(w.Parts) != 1 {
		return "", false
	}
	lit, ok := w.Parts[0].(*syntax.Lit)
	if !ok {
		return "", false
	}
	return lit.Value, true
}

// globs tells whether the shell looks for files in place of the word.
func globs(w *syntax.Word) bool {
	for _, part := range w.Parts {
		switch part := part.(type) {
		case *syntax.ExtGlob:
			return true
		case *syntax.Lit:
			for i := 0; i < len(part.Value); i++ {
				switch part.Value[i] {
				case '\\':
					i++
				case '*', '?':
					return true
				}
			}
		}
	}
	return false
}

// flat are a word's parts with those of double quotes in place of the quotes.
func flat(w *syntax.Word) []syntax.WordPart {
	var parts []syntax.WordPart
	for _, part := range w.Parts {
		if quoted, ok := part.(*syntax.DblQuoted); ok {
			parts = append(parts, quoted.Parts...)
		} else {
			parts = append(parts, part)
		}
	}
	return parts
}

// plainVariable is the name of a parameter that is expanded without any
// further operation: $X or ${X}.
func plainVariable(part syntax.WordPart) (string, bool) {
	p, ok := part.(*syntax.ParamExp)
	if !ok || p.Param == nil || p.Excl || p.Length || p.Width || p.IsSet || p.Index != nil || p.Slice != nil || p.Repl != nil || p.Exp != nil || p.Names != 0 {
		return "", false
	}
	return p.Param.Value, true
}

// neverEmpty knows the parameters that the shell or the login sets, and whose
// values hold no white space where it matters.
func neverEmpty(name string) bool {
	switch name {
	case "#", "?", "$", "!", "HOME", "PWD", "UID", "EUID", "PPID", "BASHPID", "RANDOM", "SECONDS", "LINENO", "SHLVL", "HOSTNAME":
		return true
	}
	return false
}

// spelled is a key for comparing words that name files: two words with the
// same key name the same file. Words with substitutions have none.
func spelled(w *syntax.Word) string {
	var b strings.Builder
	for _, part := range flat(w) {
		if name, ok := plainVariable(part); ok {
			b.WriteString("\x00{" + name + "}")
			continue
		}
		s, ok := staticPart(part, false)
		if !ok {
			return ""
		}
		b.WriteString(s)
	}
	return strings.TrimPrefix(b.String(), "./")
}

// arg is one word of a call.
type arg struct {
	word   *syntax.Word
	text   string // its value, "" where it is not static
	static bool
}

// call is one simple command, without the programs that only start another.
type call struct {
	args []arg  // args[0] is the program; never empty
	name string // base name of the program, "" where it is not static
	sudo bool   // started by sudo or doas
}

// callOf reads the simple command of a statement.
func callOf(s *syntax.Stmt) (call, bool) {
	cmd := s.Cmd
	if timed, ok := cmd.(*syntax.TimeClause); ok && timed.Stmt != nil {
		cmd = timed.Stmt.Cmd
	}
	expr, ok := cmd.(*syntax.CallExpr)
	if !ok || len(expr.Args) == 0 {
		return call{}, false
	}
	args := make([]arg, len(expr.Args))
	for i, word := range expr.Args {
		text, ok := static(word)
		args[i] = arg{word, text, ok}
	}
	c := call{args: args}
	c.unwrap()
	return c, true
}

// wrapper knows the programs that only start another, and those of their short
// options that take the next word.
func wrapper(name string) (withArgument string, ok bool) {
	switch name {
	case "sudo":
		return "CDghpRrTtUu", true
	case "doas":
		return "Cu", true
	case "env":
		return "CSu", true
	case "nice":
		return "n", true
	case "ionice":
		return "cnp", true
	case "exec":
		return "a", true
	case "stdbuf":
		return "ioe", true
	case "timeout":
		return "ks", true
	case "nohup", "command", "builtin", "time", "setsid", "unbuffer":
		return "", true
	}
	return "", false
}

func (c *call) unwrap() {
	for {
		c.name = ""
		if c.args[0].static {
			c.name = path.Base(c.args[0].text)
		}
		withArgument, ok := wrapper(c.name)
		if !ok {
			return
		}
		rest := c.args[1:]
		for len(rest) > 0 && rest[0].static {
			word := rest[0].text
			option := len(word) > 1 && word[0] == '-'
			if !option && (c.name != "sudo" && c.name != "env" || !strings.Contains(word, "=")) {
				break
			}
			rest = rest[1:]
			if word == "--" {
				break
			}
			if option && word[1] != '-' && strings.IndexByte(withArgument, word[len(word)-1]) >= 0 && len(rest) > 0 {
				rest = rest[1:]
			}
		}
		if c.name == "timeout" && len(rest) > 0 {
			rest = rest[1:] // the duration
		}
		if len(rest) == 0 {
			return
		}
		c.sudo = c.sudo || c.name == "sudo" || c.name == "doas"
		c.args = rest
	}
}

// is tells whether the program has one of the names.
func (c *call) is(names ...string) bool {
	for _, name := range names {
		if c.name == name {
			return true
		}
	}
	return false
}

// short tells whether one of the letters stands among the short options.
func (c *call) short(letters string) bool {
	for _, a := range c.args[1:] {
		if a.text == "--" {
			return false
		}
		if len(a.text) > 1 && a.text[0] == '-' && a.text[1] != '-' && strings.ContainsAny(a.text[1:], letters) {
			return true
		}
	}
	return false
}

// has tells whether one of the words is an argument.
func (c *call) has(words ...string) bool {
	for _, a := range c.args[1:] {
		for _, word := range words {
			if a.static && a.text == word {
				return true
			}
		}
	}
	return false
}

// operands are the arguments that are no options. Programs whose options take
// the next word need care.
func (c *call) operands() []arg {
	var operands []arg
	ended := false
	for _, a := range c.args[1:] {
		switch {
		case !ended && a.text == "--":
			ended = true
		case ended || !a.static || len(a.text) < 2 || a.text[0] != '-':
			operands = append(operands, a)
		}
	}
	return operands
}

func (c *call) recursive() bool {
	return c.short("rR") || c.has("--recursive")
}

// isShell tells whether a program is a shell.
func isShell(name string) bool {
	switch name {
	case "sh", "bash", "zsh", "dash", "ksh", "ash":
		return true
	}
	return false
}
