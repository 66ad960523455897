package trap

import (
	"path"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// call looks at one simple command.
func (f *finder) call(s *syntax.Stmt, expr *syntax.CallExpr, c call, p place) {
	f.prefixAssign(expr)
	f.assignSpelled(expr, c)
	f.innerText(c)
	if c.sudo {
		f.sudo(s, c)
	}
	switch c.name {
	case "[", "test":
		f.test(s, c)
	case "set":
		f.set(c)
	case "rm":
		f.rm(c)
	case "xargs":
		if inner, ok := startedBy(c); ok && inner.is("rm") {
			f.rm(inner)
		}
	case "mkdir":
		if c.short("p") || c.has("--parents") {
			for _, a := range c.operandsBut("m") {
				f.seesDirectory(a.word)
			}
		}
	case "sed", "gsed":
		f.sed(c)
	case "perl":
		f.perl(c)
	case "find":
		f.find(c)
	case "ssh":
		f.ssh(s, c, p)
	case "git":
		f.git(c)
	case "kill", "pkill", "killall":
		f.kill(c)
	case "chmod", "chown", "chgrp", "cp":
		f.modes(c, false)
		if c.is("cp") {
			f.lastGlob(c)
		}
	case "mv":
		f.lastGlob(c)
	case "tar":
		f.tar(c)
	case "ln":
		f.ln(c)
	case "crontab":
		if c.flag("r", "u") && !c.flag("i", "u") {
			f.add(keyCrontabRemove, c.args[0].word)
		}
		if !f.crontabList && (len(c.args) == 1 || c.has("-")) {
			for _, redirect := range s.Redirs {
				if redirect.Op == syntax.WordHdoc && literal(redirect.Word) {
					f.add(keyCrontabReplace, c.args[0].word)
				}
			}
		}
	case "docker", "podman", "docker-compose", "podman-compose":
		f.docker(c)
	}
	f.downloads(s, c)
	f.braces(c)
	f.pythonPipe(s, c, p)
}

// prefixAssign: X=1 echo $X expands $X before the assignment.
func (f *finder) prefixAssign(expr *syntax.CallExpr) {
	if len(expr.Args) == 0 || len(expr.Assigns) == 0 {
		return
	}
	used := make(map[string]bool)
	for _, word := range expr.Args {
		for _, part := range flat(word) {
			if name, ok := plainVariable(part); ok {
				used[name] = true
			}
		}
	}
	for _, a := range expr.Assigns {
		if a.Name == nil || !used[a.Name.Value] || f.assigned[a.Name.Value] || neverEmpty(a.Name.Value) || a.Name.Value == "PATH" {
			continue // it has a value already
		}
		if a.Value != nil && len(flat(a.Value)) == 1 {
			if name, ok := plainVariable(flat(a.Value)[0]); ok && name == a.Name.Value {
				continue
			}
		}
		f.add(keyPrefixAssign, a)
	}
}

// assignSpelled: x = 5, x =5, x= 5 and $x=5 are no assignments.
func (f *finder) assignSpelled(expr *syntax.CallExpr, c call) {
	first := c.args[0].word
	name := c.args[0].static && syntax.ValidName(c.args[0].text) && !takesEquals(c.name)
	if name && len(c.args) > 1 {
		second := beginning(c.args[1].word)
		if second == "=" && len(c.args) > 2 || len(c.args) == 2 && strings.HasPrefix(second, "=") && strings.Trim(second, "=") != "" {
			f.add(keyAssignSpelled, first)
		}
	}
	if n := len(expr.Assigns); n == 1 && expr.Assigns[0].Value == nil && expr.Assigns[0].Array == nil && len(expr.Args) == 1 && c.args[0].static {
		if text := c.args[0].text; text != "" && strings.Trim(text, "0123456789.") == "" {
			f.add(keyAssignSpelled, expr.Assigns[0])
		}
	}
	if len(first.Parts) < 2 {
		return
	}
	if _, ok := plainVariable(first.Parts[0]); !ok {
		return
	}
	if lit, ok := first.Parts[1].(*syntax.Lit); ok && strings.HasPrefix(lit.Value, "=") {
		f.add(keyAssignSpelled, first)
	}
}

// beginning is the literal text that a word begins with, outside of quotes.
func beginning(w *syntax.Word) string {
	if len(w.Parts) > 0 {
		if lit, ok := w.Parts[0].(*syntax.Lit); ok {
			return lit.Value
		}
	}
	return ""
}

// takesEquals knows programs whose first argument may well begin with "=".
func takesEquals(name string) bool {
	switch name {
	case "test", "expr", "let", "echo", "printf", "print", "tr", "grep", "egrep", "fgrep", "rg", "ag", "ack", "sed", "awk", "column", "cut", "split", "join",
		"set", "figlet", "banner", "say", "read", "ls", "cat", "git", "dig", "xargs", "yes", "seq", "write", "logger":
		return true
	}
	return false
}

// test: [ $x = y ] and [ -n $x ] break where x is empty, and [ a > b ] writes.
func (f *finder) test(s *syntax.Stmt, c call) {
	for _, redirect := range s.Redirs[:min(len(s.Redirs), maxRedirections)] {
		if redirect.N == nil && (redirect.Op == syntax.RdrOut || redirect.Op == syntax.RdrIn) && comparesTo(c, redirect) {
			f.add(keyTestRedirect, redirect)
		}
	}
	for i, a := range c.args {
		if i == 0 || len(a.word.Parts) != 1 {
			continue
		}
		if subst, ok := a.word.Parts[0].(*syntax.CmdSubst); ok {
			if sure(subst) {
				continue
			}
		} else if name, ok := plainVariable(a.word.Parts[0]); !ok || f.known[name] || neverEmpty(name) {
			continue
		}
		next := ""
		if i+1 < len(c.args) {
			next = c.args[i+1].text
		}
		switch before := c.args[i-1].text; {
		case before == "-n", before == "=", before == "==", before == "!=", next == "=", next == "==", next == "!=":
			f.add(keyTestUnquoted, a.word)
		}
	}
	for i, a := range c.args[1:] {
		f.knows(a.word)
		if c.args[i].text == "-d" {
			f.seesDirectory(a.word)
		}
	}
}

// comparesTo tells whether a redirection stands in a test where a comparison
// would: inside the brackets, behind one operand.
func comparesTo(c call, redirect *syntax.Redirect) bool {
	last := len(c.args)
	if c.name == "[" {
		if last--; c.args[last].text != "]" || redirect.Pos().Offset() > c.args[last].word.Pos().Offset() {
			return false
		}
	}
	before := 0
	for _, a := range c.args[1:last] {
		if a.word.Pos().Offset() > redirect.Pos().Offset() {
			break
		}
		if before++; a.text == "!" || a.text == "-a" || a.text == "-o" || a.text == "(" {
			before = 0
		}
	}
	return before == 1
}

// set notes the options that other kinds ask for.
func (f *finder) set(c call) {
	for i, a := range c.args[1:] {
		if len(a.text) < 2 || a.text[0] != '-' {
			continue
		}
		f.errexit = f.errexit || strings.Contains(a.text, "e")
		f.nounset = f.nounset || strings.Contains(a.text, "u")
		if strings.HasSuffix(a.text, "o") && i+2 < len(c.args) {
			switch c.args[i+2].text {
			case "errexit":
				f.errexit = true
			case "nounset":
				f.nounset = true
			case "pipefail":
				f.pipefail = true
			}
		}
	}
}

// rm: an empty variable in front of a slash, and a space too many.
func (f *finder) rm(c call) {
	recursive := c.recursive()
	operands := c.operands()
	for i, a := range operands {
		if f.emptyLeavesRoot(a.word, recursive) {
			f.add(keyRmEmptyVariable, a.word)
		}
		if i+1 == len(operands) {
			break
		}
		bare, _ := unquoted(a.word)
		next, _ := unquoted(operands[i+1].word)
		switch {
		case recursive && (bare == "/" || bare == "~" || bare == "~/" || isHome(a.word)),
			recursive && systemDirectory(strings.TrimSuffix(bare, "/")) && strings.HasPrefix(next, "/"),
			recursive && (bare == "." || bare == "..") && strings.HasPrefix(next, "/"),
			recursive && (next == "/*" || next == "/"),
			recursive && bare == "*" && next == "~",
			bare == "*" && isSuffix(next),
			strings.HasSuffix(bare, "/") && (next == "*" || next == ".*"):
			f.add(keyRmSpace, a.word)
		}
	}
}

// isHome tells whether a word is the home directory as a variable.
func isHome(w *syntax.Word) bool {
	parts := flat(w)
	if len(parts) == 0 {
		return false
	}
	name, ok := plainVariable(parts[0])
	rest, static := staticParts(parts[1:], false)
	return ok && name == "HOME" && static && (rest == "" || rest == "/")
}

// systemDirectory knows the directories of the system that nobody removes as a
// whole.
func systemDirectory(dir string) bool {
	switch dir {
	case "/bin", "/etc", "/home", "/lib", "/lib64", "/root", "/sbin", "/usr", "/var":
		return true
	}
	return false
}

// isSuffix tells whether a word looks like the end of a file's name that a
// space has cut off, and not like a file whose name begins with a dot.
func isSuffix(word string) bool {
	switch word {
	case ".git", ".env", ".venv", ".cache", ".next", ".nuxt", ".tox", ".svn", ".hg", ".github", ".vscode", ".idea", ".npm", ".turbo", ".yarn", ".nx":
		return false
	}
	letters, found := strings.CutPrefix(word, ".")
	if !found || letters == "" || len(letters) > 5 {
		return false
	}
	for i := range len(letters) {
		if c := letters[i]; !inRun(c) || c == '.' || c == '-' {
			return false
		}
	}
	return true
}

// emptyLeavesRoot tells whether a word would name the root or the home
// directory, what is in it, or one of the system's directories, if a variable
// in it were empty. One that needs two of them at different places is no such
// word.
func (f *finder) emptyLeavesRoot(w *syntax.Word, recursive bool) bool {
	if f.nounset {
		return false
	}
	const something = "\x00"
	var b strings.Builder
	gaps, inGap := 0, false
	for i, part := range flat(w) {
		if f.mayBeEmpty(part) {
			if !inGap {
				gaps++
			}
			inGap = true
			continue
		}
		inGap = false
		text, ok := staticPart(part, false)
		name, variable := plainVariable(part)
		switch {
		case ok && i == 0 && strings.HasPrefix(text, "~"):
			if _, bare := w.Parts[0].(*syntax.Lit); !bare {
				return false
			}
			b.WriteString(text)
		case ok:
			b.WriteString(text)
		case variable && name == "HOME" && i == 0:
			b.WriteByte('~')
		default:
			b.WriteString(something)
		}
	}
	rest := b.String()
	if gaps != 1 || !recursive && !strings.HasSuffix(rest, "*") {
		return false
	}
	if home, found := strings.CutPrefix(rest, "~/"); found {
		switch strings.TrimLeft(home, "/") {
		case "", "*", ".", ".*":
			return true
		}
		return false
	}
	if !strings.HasPrefix(rest, "/") {
		return false
	}
	first, behind, _ := strings.Cut(strings.TrimLeft(rest, "/"), "/")
	behind = strings.TrimLeft(behind, "/")
	switch first {
	case "", "*", ".", ".*":
		return true
	case "bin", "boot", "dev", "etc", "home", "lib", "lib64", "opt", "proc", "root", "sbin", "srv", "sys", "usr", "var":
		return behind == "" || behind == "*"
	}
	return false
}

// mayBeEmpty tells whether nothing shows that a part of a word expands to
// something.
func (f *finder) mayBeEmpty(part syntax.WordPart) bool {
	switch part := part.(type) {
	case *syntax.CmdSubst:
		return !sure(part)
	case *syntax.ParamExp:
		if part.Param == nil || f.known[part.Param.Value] || neverEmpty(part.Param.Value) {
			return false
		}
		if _, ok := plainVariable(part); ok {
			return true
		}
		if part.Exp == nil || part.Excl || part.Index != nil {
			return false
		}
		switch part.Exp.Op {
		case syntax.RemSmallSuffix, syntax.RemLargeSuffix, syntax.RemSmallPrefix, syntax.RemLargePrefix:
			return true
		case syntax.DefaultUnset, syntax.DefaultUnsetOrNull:
			text, ok := static(part.Exp.Word)
			return part.Exp.Word == nil || ok && text == ""
		}
	}
	return false
}

// sed: -i ” is for BSD, and letters behind -i are a suffix.
func (f *finder) sed(c call) {
	for i, a := range c.args[1:] {
		if !a.static || a.text == "--" {
			return
		}
		bundle, suffix, found := strings.Cut(a.text, "i")
		if !found || bundle == "" || bundle[0] != '-' || strings.Trim(bundle[1:], "nErsuz") != "" {
			continue
		}
		if suffix == "" && i+2 < len(c.args) && c.args[i+2].static && c.args[i+2].text == "" {
			f.add(keySedInPlace, a.word)
		}
		if suffix != "" && strings.Trim(suffix, "eEnrsuz") == "" {
			f.add(keySedInPlace, a.word)
		}
	}
}

// perl: in -pie the e is the suffix of -i.
func (f *finder) perl(c call) {
	for _, a := range c.args[1:] {
		if !a.static || len(a.text) < 2 || a.text[0] != '-' || a.text[1] == '-' {
			return
		}
		flags, suffix, found := strings.Cut(a.text[1:], "i")
		if found && strings.Trim(flags, "pnlaw0") == "" && suffix != "" && strings.Trim(suffix, "pnlae") == "" {
			f.add(keyPerlInPlace, a.word)
		}
		// -pi.bake: the script is taken for the name of one.
		if found && strings.ContainsAny(flags, "pn") && strings.Trim(flags, "pnlaw0") == "" && !c.has("-e", "-E") {
			switch suffix {
			case ".bake", ".orige", ".olde", ".tmpe":
				f.add(keyPerlInPlace, a.word)
			}
		}
	}
}

// findParts parts the arguments of find into where it starts and its expression.
func findParts(c call) (starts, tests []arg) {
	args := c.args[1:]
	for len(args) > 0 && (args[0].text == "-L" || args[0].text == "-H" || args[0].text == "-P") {
		args = args[1:]
	}
	i := 0
	for i < len(args) && (!args[i].static || !strings.HasPrefix(args[i].text, "-") && args[i].text != "(" && args[i].text != "!") {
		i++
	}
	return args[:i], args[i:]
}

// find reads the expression: where it deletes, what -o binds, and patterns that
// the shell gets first.
func (f *finder) find(c call) {
	starts, args := findParts(c)
	var tests, limited bool   // a test came already; a depth is given
	var deletes, removes bool // in the present alternative: by -delete; by rm before any test
	var or, acted bool        // -o came already; the present alternative has an action
	var actionBefore bool     // an alternative before the present one has an action
	takes := false            // anything deletes
	depth := 0
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch a.text {
		case "(":
			depth++
		case ")":
			depth--
		case "-o", "-or", ",":
			deletes, removes = false, false
			if depth == 0 && a.text != "," {
				or, actionBefore, acted = true, actionBefore || acted, false
			}
		case "-delete", "-exec", "-execdir", "-ok", "-okdir", "-print", "-print0", "-ls", "-printf", "-prune", "-quit":
			if depth == 0 && or && !actionBefore && a.text != "-prune" && a.text != "-quit" {
				f.add(keyFindOr, a.word)
			}
			acted = acted || depth == 0
			if depth > 0 {
				actionBefore = true // too clever to be an accident
			}
			deletes, takes = deletes || a.text == "-delete", takes || a.text == "-delete"
			if strings.HasPrefix(a.text, "-exec") || strings.HasPrefix(a.text, "-ok") {
				first := i + 1
				for i+1 < len(args) && args[i+1].text != ";" && args[i+1].text != "+" {
					i++
				}
				if first <= i {
					inner := callOfArgs(args[first : i+1])
					takes = takes || inner.is("rm")
					removes = removes || inner.is("rm") && !tests
					f.modes(inner, true)
				}
			}
		case "-mindepth", "-maxdepth":
			limited = true
			i++
		case "-name", "-iname", "-path", "-ipath", "-wholename", "-iwholename", "-regex", "-iregex", "-lname", "-ilname", "-type", "-size", "-user", "-group", "-perm",
			"-newer", "-mtime", "-mmin", "-atime", "-amin", "-ctime", "-cmin", "-empty":
			if deletes || removes {
				f.add(keyFindDelete, c.args[0].word)
			}
			tests = true
			if strings.HasSuffix(a.text, "name") || strings.HasSuffix(a.text, "path") {
				if i+1 < len(args) && globs(args[i+1].word) {
					f.add(keyFindUnquoted, args[i+1].word)
				}
			}
			if a.text != "-empty" {
				i++
			}
		}
	}
	for _, start := range starts {
		if takes && f.emptyLeavesRoot(start.word, true) {
			f.add(keyRmEmptyVariable, start.word)
			break
		}
	}
	if deletes && !tests && !limited && !or && len(starts) == 0 {
		f.add(keyFindDelete, c.args[0].word)
	}
}

// gitVerb is the subcommand of a git call, as a call of its own; the zero call
// where there is none.
func gitVerb(c call) call {
	args := c.args[1:]
	for len(args) > 0 && strings.HasPrefix(args[0].text, "-") {
		skip := 1
		switch args[0].text {
		case "-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--config-env":
			skip = 2
		}
		args = args[min(skip, len(args)):]
	}
	if len(args) == 0 {
		return call{}
	}
	return call{args: args, name: args[0].text}
}

// git: clean -x takes ignored files too; a forced push to the main branch.
func (f *finder) git(c call) {
	switch verb := gitVerb(c); verb.name {
	case "clean":
		if cleans(verb) && verb.short("xX") && !verb.short("e") && !hasPrefixed(verb, "--exclude") {
			f.add(keyGitClean, c.args[0].word)
		}
	case "push":
		leased := hasPrefixed(verb, "--force-with-lease")
		forced := (verb.flag("f", "o") || verb.has("--force")) && !leased
		if verb.flag("n", "o") || verb.has("--dry-run") {
			return
		}
		if forced && verb.has("--all", "--branches") {
			f.add(keyGitForce, c.args[0].word)
		}
		for i, a := range verb.operandsBut("o") {
			plus := strings.HasPrefix(a.text, "+")
			target := a.text[strings.LastIndexByte(a.text, ':')+1:]
			branch := strings.TrimPrefix(strings.TrimPrefix(target, "+"), "refs/heads/")
			if i > 0 && (branch == "main" || branch == "master" || branch == "trunk") && (forced || plus && !leased) {
				f.add(keyGitForce, c.args[0].word)
			}
		}
	}
}

// cleans tells whether git clean deletes without a question.
func cleans(verb call) bool {
	return (verb.flag("f", "e") || verb.has("--force")) && !verb.flag("ni", "e") && !verb.has("--dry-run", "--interactive")
}

func hasPrefixed(c call, prefix string) bool {
	for _, a := range c.args[1:] {
		if strings.HasPrefix(a.text, prefix) {
			return true
		}
	}
	return false
}

// kill: the signal that nobody can handle, to processes found by a pattern.
func (f *finder) kill(c call) {
	if !killsHard(c) {
		return
	}
	if !c.is("kill") {
		// By parent, group, user or file alone there is no pattern.
		if len(c.operandsBut("PguUGtsFOn")) > 0 {
			f.add(keyKillPattern, c.args[0].word)
		}
		return
	}
	for _, a := range c.args[1:] {
		for _, part := range flat(a.word) {
			subst, ok := part.(*syntax.CmdSubst)
			name, _ := plainVariable(part)
			if ok && searchesProcesses(subst.Stmts) || f.found[name] {
				f.add(keyKillPattern, c.args[0].word)
			}
		}
	}
}

// killsHard tells whether the signal is KILL.
func killsHard(c call) bool {
	for i, a := range c.args[1:] {
		switch strings.ToUpper(a.text) {
		case "-9", "-KILL", "-SIGKILL", "--SIGNAL=9", "--SIGNAL=KILL", "--SIGNAL=SIGKILL":
			return true
		case "-S", "--SIGNAL":
			if a.text != "-S" && i+2 < len(c.args) {
				switch strings.ToUpper(c.args[i+2].text) {
				case "9", "KILL", "SIGKILL":
					return true
				}
			}
		}
	}
	return false
}

func searchesProcesses(list []*syntax.Stmt) bool {
	for _, s := range list {
		for _, member := range pipeline(s) {
			if c, ok := callOf(member); ok && c.is("pgrep", "pidof", "lsof", "ps") {
				return true
			}
		}
	}
	return false
}

// modes: recursive changes that take too much along. each tells that find names
// the files.
func (f *finder) modes(c call, each bool) {
	recursive := c.recursive() || c.is("cp") && c.short("a")
	if !recursive && !each {
		return
	}
	operands := c.operands()
	for _, a := range operands {
		if text, ok := unquoted(a.word); ok && recursive && (text == ".*" || strings.HasSuffix(text, "/.*")) {
			f.add(keyDotGlob, a.word)
		}
	}
	if !c.is("chmod") || len(operands) == 0 {
		return
	}
	mode := operands[0].text
	for _, a := range c.args[1:] {
		if len(a.text) > 1 && a.text[0] == '-' && strings.Trim(a.text[1:], "rwxXst") == "" {
			mode = a.text // chmod -x is no option
			break
		}
	}
	switch strings.TrimLeft(mode, "+=0") {
	case "777", "a+rwx", "a=rwx", "ugo+rwx", "ugo=rwx":
		f.add(keyChmodAll, c.args[0].word)
	}
	if recursive && shutsDirectories(mode) {
		f.add(keyChmodFiles, c.args[0].word)
	}
}

// shutsDirectories tells whether a mode takes x from the owner.
func shutsDirectories(mode string) bool {
	octal := strings.TrimLeft(mode, "0")
	if octal != "" && strings.Trim(octal, "01234567") == "" {
		return len(octal) == 3 && (octal[0]-'0')&1 == 0
	}
	shut := false
	for _, clause := range strings.Split(mode, ",") {
		at := strings.IndexAny(clause, "+-=")
		if at < 0 {
			return false
		}
		who, what := clause[:at], clause[at+1:]
		if who != "" && !strings.ContainsAny(who, "ua") {
			continue
		}
		if strings.Trim(what, "rwxXst") != "" {
			return false // several operators, or permissions copied from somebody
		}
		execute := strings.ContainsAny(what, "xX")
		switch clause[at] {
		case '+':
			shut = shut && !execute
		case '-':
			shut = shut || strings.Contains(what, "x")
		case '=':
			shut = !execute
		}
	}
	return shut
}

// lastGlob: mv *.a *.b moves everything onto the last match.
func (f *finder) lastGlob(c call) {
	operands := c.operands()
	if len(operands) != 2 || c.short("t") || hasPrefixed(c, "--target-directory") {
		return
	}
	from, ok := unquoted(operands[0].word)
	to, also := unquoted(operands[1].word)
	if ok && also && strings.Contains(path.Base(from), "*") && strings.Contains(path.Base(to), "*.") {
		f.add(keyGlobTarget, operands[1].word)
	}
}

// tar: what follows f is the archive's name.
func (f *finder) tar(c call) {
	if len(c.args) < 2 {
		return
	}
	letters, found := strings.CutPrefix(c.args[1].text, "-")
	_, behind, cut := strings.Cut(letters, "f")
	if found && cut && behind != "" && strings.ContainsAny(letters, "cxtru") && strings.Trim(letters, "cxtrufzjJvpk") == "" {
		f.add(keyTarFile, c.args[1].word)
	}
}

// ln: a relative target is seen from the link's directory.
func (f *finder) ln(c call) {
	operands := c.operands()
	if len(operands) != 2 || !c.short("s") && !c.has("--symbolic") || c.short("rt") || c.has("--relative") {
		return
	}
	target, link := operands[0], operands[1]
	if f.linksItself(target, link) {
		f.add(keyLnRelative, c.args[0].word)
	}
	if !target.static || strings.HasPrefix(target.text, "../") || strings.HasPrefix(target.text, "~") || !strings.Contains(target.text, "/") || target.text[0] == '/' {
		return
	}
	where := link.text
	if !link.static {
		if name, ok := plainVariable(flat(link.word)[0]); ok && !neverEmpty(name) {
			return // ${ROOT}/lib64: a tree that is built has its own places
		}
		where = spelled(link.word)
	}
	if strings.Contains(strings.TrimPrefix(where, "./"), "/") {
		f.add(keyLnRelative, c.args[0].word)
	}
}

// linksItself tells whether a name without a slash gets a link of the same name
// in another directory: ln -s x sub/x leads to itself.
func (f *finder) linksItself(target, link arg) bool {
	if !target.static || !link.static || target.text == "" || strings.Contains(target.text, "/") || target.text[0] == '~' || target.text[0] == '.' {
		return false
	}
	where := strings.TrimPrefix(link.text, "./")
	dir, base := path.Split(where)
	return dir != "" && (base == target.text || base == "" && strings.Trim(dir, "./") != "")
}

// docker: volumes hold what containers keep.
func (f *finder) docker(c call) {
	system := len(c.args) > 2 && c.args[1].text == "system" && c.args[2].text == "prune"
	if system && c.has("--volumes") {
		f.add(keyDockerVolumes, c.args[0].word)
	}
	args := c.args[1:]
	if c.is("docker", "podman") {
		if len(args) == 0 || args[0].text != "compose" {
			return
		}
		args = args[1:]
	}
	for len(args) > 0 && (!args[0].static || strings.HasPrefix(args[0].text, "-")) {
		skip := 1
		switch args[0].text {
		case "-f", "--file", "-p", "--project-name", "--profile", "--env-file", "--project-directory", "--ansi", "--parallel", "--progress":
			skip = 2
		}
		args = args[min(skip, len(args)):]
	}
	if rest := (call{args: args}); len(args) > 0 && args[0].text == "down" && (rest.flag("v", "t") || rest.has("--volumes")) {
		f.add(keyDockerVolumes, c.args[0].word)
	}
}

// sudo: what the caller's shell does itself happens without privilege.
func (f *finder) sudo(s *syntax.Stmt, c call) {
	for _, redirect := range s.Redirs {
		switch redirect.Op {
		case syntax.RdrOut, syntax.AppOut, syntax.RdrClob, syntax.RdrAll, syntax.AppAll:
			if target, ok := static(redirect.Word); ok && ownedByRoot(target) {
				f.add(keySudoRedirect, redirect)
			}
		}
	}
	if c.is("cd") {
		f.add(keySudoCd, c.args[0].word)
	}
	if operands := c.operands(); c.is("npm", "pnpm", "yarn", "bun") && !c.user && len(operands) > 0 {
		switch operands[0].text {
		case "install", "i", "add", "ci":
			f.add(keySudoNpm, c.args[0].word)
		case "global":
			if len(operands) > 1 && operands[1].text == "add" {
				f.add(keySudoNpm, c.args[0].word)
			}
		}
	}
}

func ownedByRoot(file string) bool {
	for _, dir := range []string{"/etc/", "/usr/", "/root/", "/sys/", "/proc/", "/boot/", "/opt/", "/var/", "/lib/"} {
		if strings.HasPrefix(file, dir) {
			return !strings.HasPrefix(file, "/var/tmp/")
		}
	}
	return false
}

// innerText follows text that another shell parses, and notices sh -c WORD WORD.
func (f *finder) innerText(c call) {
	switch {
	case isShell(c.name), c.is("su"):
		f.shellText(c.args, false)
	case c.is("eval") && len(c.args) == 2:
		f.nested(c.args[1].word, shellState{}, f)
	case c.is("ssh"):
		// ssh joins the words with spaces, and quotes around them are gone.
		if remote := remoteWords(c); len(remote) > 1 {
			f.shellText(remote, true)
		}
	case c.is("docker", "podman", "kubectl", "find", "xargs", "timeout", "flock", "watch", "wsl", "wsl.exe"):
		for i, a := range c.args[1:] {
			if a.static && isShell(path.Base(a.text)) {
				f.shellText(c.args[1+i:], false)
				return
			}
		}
	}
}

// shellText looks at the arguments of a shell or of su. joined tells that a
// further shell parses them first, without the quotes that stand here.
func (f *finder) shellText(args []arg, joined bool) {
	if joined {
		for len(args) > 0 && !(args[0].static && isShell(path.Base(args[0].text))) {
			args = args[1:]
		}
	}
	var state shellState
	for i := 1; i+1 < len(args); i++ {
		option := args[i].text
		if len(option) < 2 || option[0] != '-' && option[0] != '+' {
			if args[0].text == "su" {
				continue // su USER -c …
			}
			return
		}
		if option[1] == '-' {
			continue
		}
		state.errexit = state.errexit || strings.Contains(option, "e")
		if !strings.HasSuffix(option, "c") {
			if strings.HasSuffix(option, "o") || strings.HasSuffix(option, "O") {
				i++
				state.pipefail = state.pipefail || args[i].text == "pipefail"
				state.errexit = state.errexit || args[i].text == "errexit"
			}
			continue
		}
		text := args[i+1]
		bare, ok := unquoted(text.word)
		switch {
		case ok && bare != "" && !strings.Contains(bare, `\`) && i+2 < len(args) && sayable(args[i+2]),
			joined && text.static && strings.ContainsAny(text.text, " \n") && strings.Trim(text.text, " \n") != "" && !strings.ContainsAny(text.text[:1], `'"\`):
			f.add(keyShellWords, text.word)
		}
		if !joined {
			state.args = max(0, len(args)-i-3)
			f.nested(text.word, state, nil)
		}
		return
	}
}

// sayable tells whether a word behind sh -c WORD looks like meant for WORD: it
// does not look like a name for $0, nor like find's or xargs' own.
func sayable(a arg) bool {
	switch a.text {
	case "_", "--", "{}", ";", "+", "sh", "bash", "-":
		return false
	}
	return true
}
