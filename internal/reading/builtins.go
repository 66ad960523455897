package reading

import (
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"vogt/internal/audit/mask"
	"vogt/internal/catalog"
	"vogt/internal/detail"
)

// isBuiltin reports whether bash runs the name itself, before any program of
// that name (bash manual, Shell Builtin Commands).
func isBuiltin(name string) bool {
	switch name {
	case ":", ".", "[", "alias", "bg", "bind", "break", "builtin", "caller", "cd", "command", "compgen", "complete", "compopt",
		"continue", "declare", "dirs", "disown", "echo", "enable", "eval", "exec", "exit", "export", "false", "fc", "fg", "getopts",
		"hash", "help", "history", "jobs", "kill", "let", "local", "logout", "mapfile", "popd", "printf", "pushd", "pwd", "read",
		"readarray", "readonly", "return", "set", "shift", "shopt", "source", "suspend", "test", "times", "trap", "true", "type",
		"typeset", "ulimit", "umask", "unalias", "unset", "wait":
		return true
	}
	return false
}

// builtin handles what a builtin does to this shell before the catalog is
// asked. It reports whether nothing is left to do.
func (r *reader) builtin(name string) bool {
	s, words := r.call.scope, r.call.words
	switch name {
	case "eval":
		r.eval()
		return true
	case "trap":
		r.trap()
	case "set":
		r.set()
	case "read", "mapfile", "readarray", "getopts", "printf", "unset", "wait":
		r.names(name)
	case "alias":
		for _, w := range words[1:] {
			if w.Kind != catalog.Literal || s.posix {
				r.unknown(0, "alias", "which alias is defined is not known")
				continue
			}
			if key, _, ok := strings.Cut(w.Text, "="); ok {
				s.aliased(key)
			}
		}
	case "test", "[":
		r.testVariable()
	case "hash":
		r.flagged("p", "hash-p", "hash -p makes a name mean another program")
	case "enable":
		r.flagged("f", "enable-f", "enable -f loads code into the shell")
		r.flagged("n", "enable-n", "enable -n makes a builtin's name mean a program")
	case "complete", "compopt", "bind":
		r.flagged("CFx", "completion", name+" names commands that the shell runs later")
	case "compgen":
		r.flagged("CFWV", "completion", "compgen evaluates its words")
	case "shopt":
		setting := false
		for _, w := range words[1:] {
			setting = setting || w.Kind != catalog.Literal || len(w.Text) > 1 && w.Text[0] == '-' && strings.ContainsAny(w.Text, "suo")
		}
		for _, w := range words[1:] {
			if w.Text == "extglob" && setting {
				s.extglob = !strings.Contains(words[1].Text, "u")
			}
			if setting && (w.Kind != catalog.Literal || !harmlessOption(w.Text)) {
				r.unknown(0, "shopt", "an option of the shell is set that changes what later words mean")
				break
			}
		}
	case "builtin", "command":
		// The command that follows may be a builtin that changes this shell.
	case "export", "declare", "typeset", "local", "readonly":
		// The parser gives these a form of their own; here they come through
		// `command` or quotes.
		r.declareWords(name)
	case "let":
		for _, w := range words[1:] {
			if w.Kind != catalog.Literal || strings.ContainsAny(w.Text, "[$`") {
				r.notANumber(r.key)
				continue
			}
			for _, part := range strings.FieldsFunc(w.Text, func(c rune) bool { return strings.ContainsRune("+-*/%=<>!&|^~?:(), ", c) }) {
				if name, _, ok := strings.Cut(w.Text, "="); ok && part == name {
					continue
				}
				r.arithText(part, s, r.key)
			}
		}
	}
	return false
}

// harmlessOption reports whether an option of shopt, or a switch of it, leaves
// the meaning of later words alone (bash manual, The Shopt Builtin). Patterns
// may match more or less, which is not known in any case.
func harmlessOption(name string) bool {
	switch name {
	case "-s", "-u", "-p", "-q", "-su", "-qs", "-qu", "-sq", "-uq",
		"nullglob", "dotglob", "globstar", "nocaseglob", "nocasematch", "failglob", "inherit_errexit", "checkwinsize", "cmdhist", "histappend",
		"histverify", "huponexit", "globasciiranges", "extglob", "no_empty_cmd_completion", "progcomp", "lithist", "mailwarn", "checkjobs",
		"globskipdots", "login_shell", "interactive_comments":
		return true
	}
	return false
}

// flagged marks the call as opaque when a flag of these letters is given.
func (r *reader) flagged(letters, key, text string) {
	for _, w := range r.call.words[1:] {
		if w.Kind != catalog.Literal && w.Option || strings.HasPrefix(w.Text, "-") && strings.ContainsAny(w.Text, letters) {
			r.unknown(0, key, text)
			return
		}
	}
}

// eval reads the words as a text of this shell.
func (r *reader) eval() {
	s := r.call.scope
	words := r.call.words[1:]
	if len(words) > 0 && words[0].Kind == catalog.Literal && words[0].Text == "--" {
		words = words[1:]
	}
	if len(words) == 0 {
		return
	}
	v := catalog.Value{Word: 0, End: len(words)}
	text := joined(words, &v)
	r.here(text, r.key)
	if text.Kind != catalog.Literal {
		r.forget(s)
	}
}

// here reads a text that runs in this shell.
func (r *reader) here(text catalog.Word, at int) {
	s := r.call.scope
	via, depth := s.via, s.depth
	s.via, s.depth = r.out.Program, depth+1
	s.calls = append(s.calls[:len(s.calls):len(s.calls)], "\x00"+r.out.Program)
	r.shellText(text, s, at)
	s.calls = s.calls[:len(s.calls)-1]
	s.via, s.depth = via, depth
	r.output = source{kind: unknownInput, at: -1}
}

// sourced reads a text that source runs in this shell. Further operands are
// its positional parameters, which ones is not followed.
func (r *reader) sourced(text catalog.Word, at int) {
	s := r.call.scope
	args, known, stdin := s.args, s.known, s.stdin
	if len(r.call.words) > 2 {
		s.args, s.known = nil, false
	}
	s.stdin = source{kind: unknownInput, at: -1}
	r.here(text, at)
	s.stdin = stdin
	if len(r.call.words) > 2 {
		s.args, s.known = args, known
	}
}

// forget drops what is known of a shell after something unknown ran in it.
func (r *reader) forget(s *scope) {
	s.changes++
	for name := range s.vars {
		s.vars[name] = value{}
	}
	s.cwd, s.cwdOK = "", false
	s.args, s.known = nil, false
}

// trap reads the text that a trap runs.
func (r *reader) trap() {
	words := r.call.words[1:]
	for len(words) > 0 && words[0].Kind == catalog.Literal && (words[0].Text == "-p" || words[0].Text == "-l" || words[0].Text == "--" || words[0].Text == "-P") {
		if words[0].Text != "--" {
			return
		}
		words = words[1:]
	}
	if len(words) < 2 {
		if len(words) == 1 && words[0].Kind != catalog.Literal {
			r.unknown(0, "open-text", "the text that the trap runs is not known")
		}
		return
	}
	text := words[0]
	if text.Kind == catalog.Literal && (text.Text == "-" || text.Text == "") {
		return
	}
	r.trapped = true
	for _, w := range words[1:] {
		switch name := strings.TrimPrefix(strings.ToUpper(w.Text), "SIG"); {
		case w.Kind == catalog.Literal && (name == "EXIT" || name == "0"):
			// Nothing comes after it.
		case w.Kind != catalog.Literal, name == "DEBUG", name == "ERR", name == "RETURN", !harmlessTrap(words[0]):
			r.unknown(0, "trap", "the trap runs between later commands and may change what they mean")
		}
	}
	s := r.fork(r.call.scope)
	s.via, s.depth = "trap", s.depth+1
	s.calls = append(s.calls[:len(s.calls):len(s.calls)], "\x00trap")
	// It runs later, when everything may have changed.
	r.forget(s)
	s.vars = nil
	r.shellText(text, s, r.call.offset(1))
}

// harmlessTrap reports whether the text of a trap assigns nothing and starts
// nothing in this shell that could.
func harmlessTrap(text catalog.Word) bool {
	if text.Kind != catalog.Literal {
		return false
	}
	for _, part := range strings.FieldsFunc(text.Text, func(r rune) bool { return strings.ContainsRune(";&|\n(){}", r) }) {
		fields := strings.Fields(part)
		if len(fields) == 0 {
			continue
		}
		switch fields[0] {
		case "echo", "printf", "rm", "kill", "exit", ":", "true", "wait":
		default:
			return false
		}
	}
	return !strings.ContainsAny(text.Text, "=$`")
}

// set follows options and positional parameters.
func (r *reader) set() {
	s := r.call.scope
	for i, w := range r.call.words[1:] {
		switch {
		case w.Kind != catalog.Literal && w.Option:
			r.xtrace = true
			s.args, s.known = nil, false
			return
		case w.Kind == catalog.Literal && (w.Text == "--" || w.Text == "-"):
			s.args, s.known = r.call.words[i+2:], true
			for _, a := range s.args {
				if a.Kind == catalog.Many || a.Kind == catalog.Glob {
					s.args, s.known = nil, false
					break
				}
			}
			return
		case w.Kind == catalog.Literal && !harmlessSet(w.Text):
			r.unknown(i+1, "set", "an option of the shell is set that changes what later words mean")
		case strings.HasPrefix(w.Text, "-") && !strings.HasPrefix(w.Text, "--"):
			if strings.Contains(w.Text, "x") {
				r.startTrace()
			}
		case w.Text == "xtrace":
			r.startTrace()
		case !strings.HasPrefix(w.Text, "+") && !strings.HasPrefix(w.Text, "-"):
			if i > 0 && strings.HasSuffix(r.call.words[i].Text, "o") {
				continue
			}
			s.args, s.known = nil, false
			return
		}
	}
}

// harmlessSet reports whether a word of set is an operand or an option that
// leaves the meaning of later words alone (bash manual, The Set Builtin).
func harmlessSet(word string) bool {
	if strings.HasPrefix(word, "-") || strings.HasPrefix(word, "+") {
		if word == "+B" {
			return false
		}
		return strings.Trim(word[1:], "euxvCfnEThHmbBo") == ""
	}
	switch word {
	case "posix", "keyword", "onecmd", "privileged", "allexport":
		return false
	}
	return true
}

// startTrace switches set -x on: PS4 is expanded from now on.
func (r *reader) startTrace() {
	r.xtrace = true
	if v, ok := r.call.scope.vars["PS4"]; ok && (v.known != literal || strings.ContainsAny(v.text, "$`")) {
		r.unknown(0, "ps4", "PS4 is expanded before every command while set -x is on")
	}
}

// names checks the names of variables that a builtin assigns to.
func (r *reader) names(name string) {
	s, words := r.call.scope, r.call.words
	takes := map[string]string{"read": "adinNptu", "mapfile": "dnOsucC", "readarray": "dnOsucC", "printf": "v", "wait": "p", "getopts": "", "unset": ""}[name]
	i, fills := 1, name == "mapfile" || name == "readarray"
	assign := func(w catalog.Word) {
		if !r.variableName(w, s, r.key) {
			r.out.Effects |= detail.Opaque
			return
		}
		key, _, _ := strings.Cut(w.Text, "[")
		if name == "unset" {
			s.set(key, value{})
			delete(s.funcs, key)
			r.matters(key)
			return
		}
		r.evaluates(key, s, r.key)
		old := s.lookup(key)
		s.set(key, value{arith: old.arith, array: old.array || fills || strings.Contains(w.Text, "[")})
		if key == "PS4" {
			r.unknown(0, "ps4", "PS4 is expanded before every command while set -x is on")
		}
		r.matters(key)
	}
options:
	for ; i < len(words); i++ {
		w := words[i]
		if w.Kind != catalog.Literal {
			if w.Option {
				r.unknown(i, "open-option", "the word may be an option that names a variable")
			}
			break
		}
		if w.Text == "--" {
			i++
			break
		}
		if len(w.Text) < 2 || w.Text[0] != '-' {
			break
		}
		for at := 1; at < len(w.Text); at++ {
			letter := w.Text[at]
			if strings.IndexByte(takes, letter) < 0 {
				continue
			}
			var v catalog.Word
			if at+1 < len(w.Text) {
				v = catalog.Word{Text: w.Text[at+1:]}
			} else if i++; i < len(words) {
				v = words[i]
			}
			switch {
			case letter == 'a' || letter == 'v' || letter == 'p' && name == "wait":
				fills = fills || letter == 'a'
				assign(v)
			}
			continue options
		}
	}
	switch name {
	case "read", "mapfile", "readarray", "unset":
		for ; i < len(words); i++ {
			assign(words[i])
		}
	case "getopts":
		if i+1 < len(words) {
			assign(words[i+1])
		}
	}
}

// matters notes that a variable which steers programs gets an unknown value.
func (r *reader) matters(name string) {
	if name == "IFS" || name == "PS4" {
		return
	}
	r.exported(name, catalog.Unknown(catalog.Partial), r.call.scope, r.key)
}

// testVariable checks the -v of test.
func (r *reader) testVariable() {
	words := r.call.words
	for i := 1; i < len(words); i++ {
		w := words[i]
		if w.Kind == catalog.Many && w.Text == "" && w.Option {
			// It may become -v and a name with a subscript that is evaluated.
			r.unknown(i, "open-test", "the word may become an operator of test that evaluates the next one")
		}
		dangerous := w.Kind == catalog.Literal && (w.Text == "-v" || w.Text == "-R") || w.Kind == catalog.Many
		if dangerous && i+1 < len(words) {
			if words[i+1].Kind == catalog.Literal && (words[i+1].Text == "]" || words[i+1].Text == "=" || words[i+1].Text == "==" || words[i+1].Text == "!=") {
				continue
			}
			if w.Kind == catalog.Many && words[i+1].Kind == catalog.Literal && !strings.Contains(words[i+1].Text, "[") {
				continue
			}
			if !r.variableName(words[i+1], r.call.scope, r.key) {
				r.out.Effects |= detail.Opaque
			}
		}
	}
}

// after follows what a builtin changes once it has run.
func (r *reader) after(name string) {
	s, words := r.call.scope, r.call.words
	switch name {
	case "cd", "pushd", "popd", "set", "shift":
		s.changes++
	}
	switch name {
	case "cd", "pushd", "popd":
		s.fell = s.cwd
		if s.adrift || !s.cwdOK {
			s.fell = ""
		}
		s.adrift = true
	}
	switch name {
	case "cd", "pushd":
		i := 1
		for i < len(words) && words[i].Kind == catalog.Literal && len(words[i].Text) > 1 && words[i].Text[0] == '-' {
			i++
		}
		_, cdpath := s.vars["CDPATH"]
		switch {
		case i >= len(words):
			s.cwd, s.cwdOK = s.home, s.home != ""
			if s.home == "" {
				s.cwd = "~"
			}
		case words[i].Kind != catalog.Literal:
			if strings.HasPrefix(words[i].Shown(), "~") && !strings.Contains(words[i].Template(), string(catalog.Hole)+"/..") {
				s.cwd, s.cwdOK = r.absolute(words[i].Shown(), "", s), false
				return
			}
			s.cwd, s.cwdOK = "", false
		case words[i].Text == "-", name == "pushd" && strings.Trim(words[i].Text, "+-0123456789") == "":
			s.cwd, s.cwdOK = "", false
		case strings.HasPrefix(words[i].Text, "/"):
			s.cwd, s.cwdOK = cleanAbs(words[i].Text), true
		case cdpath:
			s.cwd, s.cwdOK = "", false
		default:
			s.cwd = r.absolute(words[i].Text, s.cwd, s)
		}
		if len(s.cwd) > maxPath {
			s.cwd, s.cwdOK = "", false
		}
	case "popd":
		s.cwd, s.cwdOK = "", false
	case "shift":
		r.shift()
	case "source", ".":
		r.forget(s)
	}
}

// shift moves the positional parameters.
func (r *reader) shift() {
	s, words := r.call.scope, r.call.words
	n, err := 1, error(nil)
	if len(words) > 1 {
		n, err = strconv.Atoi(words[1].Text)
		if words[1].Kind != catalog.Literal || n < 0 {
			err = strconv.ErrSyntax
		}
	}
	if err != nil || !s.known || n > len(s.args) {
		s.args, s.known = nil, false
		return
	}
	s.args = s.args[n:]
}

// outputOf notes what a call of echo, printf or cat prints, if it is known.
func (r *reader) outputOf(name string) {
	r.output = source{kind: unknownInput, at: -1}
	words := r.call.words
	switch name {
	case "echo":
		if text, ok := echoed(words[1:], r.call.scope.posix); ok {
			r.output = source{kind: literalInput, text: text, at: -1}
		}
	case "printf":
		if text, ok := printed(words[1:]); ok {
			r.output = source{kind: literalInput, text: text, at: -1}
		}
	case "cat", "tee":
		if (name == "tee" || len(words) == 1) && r.stdin.kind == literalInput {
			r.output = r.stdin
		}
	}
}

func echoed(words []catalog.Word, posix bool) (string, bool) {
	newline, escapes := "\n", posix
	for len(words) > 0 && words[0].Kind == catalog.Literal {
		t := words[0].Text
		if len(t) < 2 || t[0] != '-' || strings.Trim(t[1:], "neE") != "" {
			break
		}
		if strings.Contains(t, "n") {
			newline = ""
		}
		if posix && t != "-n" {
			return "", false // shells differ in whether they know the option
		}
		if strings.ContainsAny(t, "eE") {
			escapes = strings.LastIndexByte(t, 'e') > strings.LastIndexByte(t, 'E')
		}
		words = words[1:]
	}
	var parts []string
	for _, w := range words {
		parts = append(parts, templateOf(w))
	}
	text := strings.Join(parts, " ")
	if escapes && strings.IndexByte(text, '\\') >= 0 {
		var ok bool
		if text, ok = unescapeEcho(text, true); !ok {
			return "", false
		}
	}
	return text + newline, true
}

// unescapeEcho resolves the escapes of echo -e, and those of printf's format,
// which knows quotes and counts a leading zero among the digits.
func unescapeEcho(s string, echo bool) (string, bool) {
	if strings.IndexByte(s, '\\') < 0 {
		return s, true
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		switch s[i] {
		case 'n':
			b.WriteByte('\n')
		case 't':
			b.WriteByte('\t')
		case '\\':
			b.WriteByte('\\')
		case '"', '\'':
			if echo {
				b.WriteByte('\\')
			}
			b.WriteByte(s[i])
		case 'a', 'b', 'e', 'f', 'r', 'v':
			b.WriteByte("\a\b\x1b\f\r\v"[strings.IndexByte("abefrv", s[i])])
		case 'x', '0', '1', '2', '3', '4', '5', '6', '7':
			rest := s[i:]
			if echo && rest[0] != '0' && rest[0] != 'x' {
				return "", false
			}
			if echo && rest[0] == '0' && len(rest) > 1 {
				rest = rest[1:]
				i++
			}
			n, size := codePoint(rest)
			if size == 0 || n == 0 {
				return "", false
			}
			b.WriteByte(byte(n))
			i += size - 1
		default:
			return "", false
		}
	}
	return b.String(), true
}

// printed is what printf prints for a format of plain text, %s, %d, %b and %%.
func printed(words []catalog.Word) (string, bool) {
	if len(words) > 0 && words[0].Kind == catalog.Literal && words[0].Text == "--" {
		words = words[1:]
	}
	if len(words) == 0 || words[0].Kind != catalog.Literal || strings.HasPrefix(words[0].Text, "-") {
		return "", false
	}
	format, ok := unescapeEcho(words[0].Text, false)
	if !ok {
		return "", false
	}
	args := words[1:]
	var b strings.Builder
	for turn := 0; turn == 0 || len(args) > 0; turn++ {
		used := false
		for i := 0; i < len(format); i++ {
			if format[i] != '%' {
				b.WriteByte(format[i])
				continue
			}
			if i++; i == len(format) {
				return "", false
			}
			switch format[i] {
			case '%':
				b.WriteByte('%')
			case 's', 'd', 'b':
				used = true
				if len(args) == 0 {
					continue
				}
				if args[0].Kind == catalog.Many || args[0].Kind == catalog.Glob {
					return "", false
				}
				text := templateOf(args[0])
				if format[i] == 'b' {
					if text, ok = unescapeEcho(text, true); !ok {
						return "", false
					}
				}
				if _, err := strconv.Atoi(text); format[i] == 'd' && err != nil {
					return "", false
				}
				b.WriteString(text)
				args = args[1:]
			default:
				return "", false
			}
		}
		if !used || turn > 4096 || b.Len() > MaxText {
			break
		}
	}
	return b.String(), true
}

// assign follows NAME=value without a command.
func (w *walker) assign(a *syntax.Assign, s *scope) {
	if a.Name == nil {
		w.single(a.Value, s)
		return
	}
	name := a.Name.Value
	at := s.at(a.Pos())
	if name == "BASH_CMDS" || name == "BASH_ALIASES" {
		w.evaluates(name, s, at)
	}
	if a.Array != nil {
		w.array(a, s)
		return
	}
	word := w.single(a.Value, s)
	if a.Index != nil {
		w.subscript(name, a.Index, s, a.Pos())
		v := s.lookup(name)
		if v.arith || evaluated(name) {
			w.arithWord(word, s, at)
		}
		s.set(name, value{assoc: v.assoc, arith: v.arith, array: true})
		w.assigned(name, word, s, at)
		w.exported(name, catalog.Unknown(catalog.Partial), s, at)
		return
	}
	v := valueOf(word)
	old := s.lookup(name)
	if old.folds {
		v = value{}
	}
	if old.arith || evaluated(name) {
		w.arithWord(word, s, at)
		if a.Append {
			w.arithWord(old.word(), s, at) // what it is added to is evaluated too
		}
		v = value{known: number, arith: old.arith}
	}
	if v.known == anything && a.Value != nil && w.numericWord(a.Value, s) {
		v.known = number
	}
	if a.Append {
		if old.known == literal && v.known == literal && len(old.text)+len(v.text) <= maxValue {
			v.text = old.text + v.text
		} else {
			v = value{arith: old.arith}
		}
	}
	v.assoc, v.array, v.folds = old.assoc, old.array, old.folds
	s.set(name, v)
	w.assigned(name, word, s, at)
	if a.Append && v.known == literal {
		word = catalog.Word{Text: v.text}
	}
	w.exported(name, word, s, at)
}

// evaluated reports whether bash evaluates what is assigned to the variable as
// arithmetic by itself.
func evaluated(name string) bool {
	switch name {
	case "OPTIND", "RANDOM", "HISTCMD", "SECONDS", "LINENO", "SRANDOM", "BASH_ARGV0", "BASH_COMPAT", "HISTSIZE", "HISTFILESIZE", "OPTERR":
		return true
	}
	return false
}

// evaluates marks a value that is not known and goes to a variable which
// evaluates it.
func (w *walker) evaluates(name string, s *scope, at int) {
	if s.lookup(name).arith || evaluated(name) {
		w.notANumber(at)
	}
	if name == "BASH_CMDS" || name == "BASH_ALIASES" {
		w.opaque(at, "hash-p", name+" makes names mean other programs")
	}
}

// arithWord checks a value that is evaluated as arithmetic on assignment.
func (w *walker) arithWord(word catalog.Word, s *scope, at int) {
	if word.Kind != catalog.Literal {
		w.notANumber(at)
		return
	}
	for _, part := range strings.FieldsFunc(word.Text, func(r rune) bool { return strings.ContainsRune("+-*/%()<>=!&|^~?:, ", r) }) {
		w.arithText(part, s, at)
	}
}

// array follows NAME=(…).
func (w *walker) array(a *syntax.Assign, s *scope) {
	name := ""
	if a.Name != nil {
		name = a.Name.Value
	}
	old := s.lookup(name)
	for _, el := range a.Array.Elems {
		if el.Index != nil {
			w.subscript(name, el.Index, s, el.Pos())
		}
		if el.Value != nil {
			var e expanded
			w.word(el.Value, s, &e)
			if old.arith {
				for _, word := range e.words {
					w.arithWord(word, s, s.at(el.Pos()))
				}
			}
		}
	}
	s.set(name, value{assoc: old.assoc, arith: old.arith, array: true})
	w.exported(name, catalog.Unknown(catalog.Partial), s, s.at(a.Pos()))
}

// declare follows declare, local, export, readonly and typeset.
func (w *walker) declare(c *syntax.DeclClause, red *redirections, s *scope) {
	variant := c.Variant.Value
	at := s.at(c.Pos())
	if variant == "nameref" {
		w.opaque(at, "not-bash", "nameref belongs to another shell")
		return
	}
	call := &Call{Program: variant, Words: []catalog.Word{{Text: variant}}, Risk: detail.Low, Depth: s.depth, Via: s.via, Cwd: s.cwd, Adrift: s.adrift, Fell: s.fell, Remote: s.remote}
	if red != nil {
		call.Effects, call.Paths, call.Hosts = red.effects, red.paths, red.hosts
	}
	w.add(call, at)
	flags, nameref := "", false
	local := s.inside && variant != "export" && variant != "readonly"
	take := func(word catalog.Word) {
		if word.Kind != catalog.Literal {
			call.Effects |= detail.Opaque
			w.problem(at, "open-declaration", "what is declared is not known")
			return
		}
		call.Words = append(call.Words, word)
		if strings.HasPrefix(word.Text, "-") || strings.HasPrefix(word.Text, "+") {
			if len(flags) > maxFlags {
				call.Effects |= detail.Opaque
				w.problem(at, "open-declaration", "there are more flags than are read")
				return
			}
			flags += word.Text
			nameref = nameref || word.Text[0] == '-' && strings.Contains(word.Text, "n")
			return
		}
		if key, text, ok := strings.Cut(word.Text, "="); ok {
			// A quoted assignment is one all the same.
			if !validName(key) || strings.ContainsAny(flags, "aAinluc") || s.lookup(key).array || s.lookup(key).assoc || s.lookup(key).arith {
				call.Effects |= detail.Opaque
				w.problem(at, "open-declaration", "what is declared is not known")
				return
			}
			if local && !strings.Contains(flags, "g") {
				s.locals = append(s.locals, localOf(key, s))
			}
			s.set(key, value{known: literal, text: text})
			w.assigned(key, catalog.Word{Text: text}, s, at)
			w.exported(key, catalog.Word{Text: text}, s, at)
			return
		}
		if !w.variableName(word, s, at) {
			call.Effects |= detail.Opaque
			return
		}
		w.declared(&syntax.Assign{Naked: true, Name: &syntax.Lit{Value: word.Text}}, flags+variantFlags(variant), s)
	}
	for _, a := range c.Args {
		if !a.Naked || a.Name != nil {
			if local && !strings.Contains(flags, "g") {
				s.locals = append(s.locals, localOf(a.Name.Value, s))
			}
			w.declared(a, flags+variantFlags(variant), s)
			continue
		}
		var e expanded
		w.word(a.Value, s, &e)
		for _, word := range e.words {
			take(word)
		}
	}
	if listsValues(c, variant, flags) {
		call.Effects |= detail.Secrets
	}
	if nameref && variant != "export" {
		call.Effects |= detail.Opaque
		w.problem(at, "nameref", "a name reference makes later names mean others, and evaluates their subscripts")
	}
	if strings.Contains(flags, "f") && (variant == "readonly" || strings.Contains(flags, "r")) {
		call.Effects |= detail.Opaque
		w.problem(at, "export-f", "a function that may not be defined again keeps its first meaning")
	}
	if strings.Contains(flags, "f") && variant == "export" {
		call.Effects |= detail.Opaque
		w.problem(at, "export-f", "an exported function takes the place of programs in what is started")
	}
	w.rate(call, s)
}

// listsValues reports whether a declaration prints the values of variables
// that may be secrets: of all, or of one that is named as a secret.
func listsValues(c *syntax.DeclClause, variant, flags string) bool {
	if variant == "local" || strings.ContainsAny(flags, "fF") {
		return false
	}
	all := true
	for _, a := range c.Args {
		if a.Naked && a.Name == nil {
			continue // an option
		}
		all = false
		if strings.Contains(flags, "p") && a.Name != nil && mask.Secret(a.Name.Value) {
			return true
		}
	}
	return all && (variant != "readonly" || flags == "")
}

// maxFlags is how many bytes of flags one declaration may have.
const maxFlags = 256

func localOf(name string, s *scope) local { return local{name, s.lookup(name)} }

// variantFlags are the flags of declare that another word for it stands for.
func variantFlags(variant string) string {
	if variant == "readonly" {
		return "-r"
	}
	return ""
}

// declared follows one NAME or NAME=value of a declaration.
func (w *walker) declared(a *syntax.Assign, flags string, s *scope) {
	name := a.Name.Value
	v := s.lookup(name)
	v.arith = v.arith || strings.Contains(flags, "i") && !strings.Contains(flags, "+i")
	v.assoc = v.assoc || strings.Contains(flags, "A")
	v.array = v.array || strings.Contains(flags, "a")
	if strings.ContainsAny(flags, "luc") {
		v.folds, v.known, v.text = true, anything, ""
	}
	if a.Naked {
		if v.arith || v.assoc || v.array || v.folds {
			s.set(name, v)
		}
		if strings.Contains(flags, "r") {
			v.readonly = true
			s.set(name, v)
		}
		return
	}
	if a.Array == nil && (v.array || v.assoc) {
		// A text that begins with a bracket becomes the elements, evaluated.
		if word := w.single(a.Value, s); word.Kind != catalog.Literal || strings.HasPrefix(strings.TrimLeft(word.Text, " \t\n"), "(") {
			w.opaque(s.at(a.Pos()), "open-array", "a text that is assigned to an array by a declaration is evaluated")
		}
	}
	s.set(name, value{arith: v.arith, assoc: v.assoc, folds: v.folds, array: v.array})
	w.assign(a, s)
	if strings.Contains(flags, "r") {
		v := s.lookup(name)
		v.readonly = true
		s.set(name, v)
	}
}

// declareWords follows declarations whose words are not assignments to the
// parser.
func (r *reader) declareWords(name string) {
	s := r.call.scope
	for i, word := range r.call.words[1:] {
		if word.Kind != catalog.Literal {
			r.unknown(i+1, "open-declaration", "what is declared is not known")
			continue
		}
		if strings.HasPrefix(word.Text, "-") {
			if strings.ContainsAny(word.Text, "nif") {
				r.unknown(i+1, "nameref", name+" "+word.Text+" changes what names mean")
			}
			continue
		}
		key, text, ok := strings.Cut(word.Text, "=")
		if !r.variableName(catalog.Word{Text: key}, s, r.key) {
			r.out.Effects |= detail.Opaque
		}
		if !ok {
			continue
		}
		s.set(key, value{known: literal, text: text})
		r.assigned(key, catalog.Word{Text: text}, s, r.key)
		r.exported(key, catalog.Word{Text: text}, s, r.key)
	}
}
