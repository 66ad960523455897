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

// literal tells whether a word is static.
func literal(w *syntax.Word) bool {
	_, ok := static(w)
	return ok
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
	case "#", "?", "$", "!", "HOME", "PWD", "OLDPWD", "USER", "LOGNAME", "UID", "EUID", "PPID", "BASHPID", "RANDOM", "SECONDS", "LINENO", "SHLVL", "HOSTNAME":
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

// sure tells whether a substitution puts out something in any case that need be
// thought of.
func sure(subst *syntax.CmdSubst) bool {
	if len(subst.Stmts) != 1 {
		return false
	}
	s := subst.Stmts[0]
	if binary, ok := s.Cmd.(*syntax.BinaryCmd); ok && binary.Op == syntax.AndStmt {
		// The folder of the script: $(cd "$(dirname "$0")" && pwd).
		first, cd := callOf(binary.X)
		last, ok := callOf(binary.Y)
		return ok && cd && first.is("cd") && last.is("pwd") && safeDirectory(first.args[len(first.args)-1].word)
	}
	members := pipeline(s)
	c, ok := callOf(members[len(members)-1])
	if len(members) > 1 {
		return ok && c.is("wc")
	}
	return ok && c.is("mktemp", "pwd", "dirname", "date", "uname", "whoami", "hostname", "id", "nproc", "tty", "arch", "echo", "printf", "wc", "tput", "umask")
}

// harmless tells whether nobody need ask how a substitution ended: what it puts
// out is certain, or it only cuts a text to size.
func harmless(subst *syntax.CmdSubst) bool {
	if sure(subst) {
		return true
	}
	if len(subst.Stmts) != 1 {
		return false
	}
	for _, member := range pipeline(subst.Stmts[0]) {
		if c, ok := callOf(member); !ok || !c.is("echo", "printf", "sed", "cut", "tr", "awk", "head", "tail", "sort", "uniq", "wc", "basename", "dirname", "date", "uname", "hostname", "pwd") {
			return false
		}
	}
	return true
}

// safeDirectory tells whether a word names a directory that is always there.
func safeDirectory(w *syntax.Word) bool {
	switch text, _ := static(w); text {
	case "/", "..", ".", "-", "~", "/tmp":
		return true
	}
	if w == nil {
		return false
	}
	for _, part := range flat(w) {
		switch part := part.(type) {
		case *syntax.CmdSubst:
			if len(part.Stmts) == 1 {
				if c, ok := callOf(part.Stmts[0]); ok && c.is("dirname") {
					return true
				}
			}
		case *syntax.ParamExp:
			if part.Param != nil && (part.Param.Value == "0" || part.Param.Value == "BASH_SOURCE") {
				return true
			}
			if name, ok := plainVariable(part); ok && len(w.Parts) == 1 && (name == "HOME" || name == "PWD" || name == "OLDPWD") {
				rest := flat(w)
				return len(rest) == 1
			}
		}
	}
	return false
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
	user bool   // as a user that sudo names, who is not root
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
	return callOfArgs(args), true
}

// callOfArgs is the call of a program with its arguments, of which there is at
// least one word.
func callOfArgs(args []arg) call {
	c := call{args: args}
	c.unwrap()
	return c
}

// startedBy is the call that xargs makes.
func startedBy(c call) (call, bool) {
	argument := false
	for i, a := range c.args[1:] {
		switch {
		case argument:
			argument = false
		case a.static && len(a.text) > 1 && a.text[0] == '-':
			switch a.text {
			case "--max-args", "--max-procs", "--max-lines", "--delimiter", "--arg-file", "--max-chars", "--process-slot-var":
				argument = true
			}
			if a.text[1] != '-' {
				argument = strings.IndexAny(a.text[1:], "adEIJLnPRsS") == len(a.text)-2
			}
		default:
			return callOfArgs(c.args[1+i:]), true
		}
	}
	return call{}, false
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
		if !ok || c.name == "command" && c.short("vV") && len(c.args) > 1 && strings.Trim(c.args[1].text, "-pvV") == "" {
			return // command -v NAME starts nothing
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
			next := option && (word[1] != '-' && strings.IndexByte(withArgument, word[len(word)-1]) >= 0 || c.name == "sudo" && takesNext(word)) && len(rest) > 0
			if c.name == "sudo" || c.name == "doas" {
				c.user = c.user || namesUser(word, rest, next)
			}
			if next {
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

// takesNext knows the long options of sudo that take the next word.
func takesNext(option string) bool {
	switch option {
	case "--user", "--group", "--host", "--prompt", "--chdir", "--chroot", "--close-from", "--role", "--type", "--other-user", "--command-timeout":
		return true
	}
	return false
}

// namesUser tells whether an option of sudo names a user besides root. next
// tells that its argument is the first word of the rest.
func namesUser(option string, rest []arg, next bool) bool {
	name, long := strings.CutPrefix(option, "--user")
	if long {
		name = strings.TrimPrefix(name, "=")
	} else {
		at := strings.IndexByte(option, 'u')
		if at < 0 || option[0] != '-' || option[1] == '-' {
			return false
		}
		name = option[at+1:]
	}
	if next && name == "" {
		if !rest[0].static {
			return true
		}
		name = rest[0].text
	}
	return name != "" && name != "root" && name != "#0"
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

// flag is short for programs some of whose short options take the rest of their
// word, or the next one.
func (c *call) flag(letters, withArgument string) bool {
	argument := false
	for _, a := range c.args[1:] {
		switch {
		case argument:
			argument = false
			continue
		case a.text == "--":
			return false
		case len(a.text) < 2 || a.text[0] != '-' || a.text[1] == '-':
			continue
		}
		for i := 1; i < len(a.text); i++ {
			if strings.IndexByte(letters, a.text[i]) >= 0 {
				return true
			}
			if strings.IndexByte(withArgument, a.text[i]) >= 0 {
				argument = i == len(a.text)-1
				break
			}
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
// the next word need operandsBut.
func (c *call) operands() []arg { return c.operandsBut("") }

// operandsBut are the operands of a program whose short options of the given
// letters take the rest of their word, or the next one.
func (c *call) operandsBut(withArgument string) []arg {
	var operands []arg
	ended, argument := false, false
	for _, a := range c.args[1:] {
		switch {
		case argument:
			argument = false
		case !ended && a.text == "--":
			ended = true
		case ended || !a.static || len(a.text) < 2 || a.text[0] != '-':
			operands = append(operands, a)
		case a.text[1] != '-':
			argument = strings.IndexAny(a.text[1:], withArgument) == len(a.text)-2
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
