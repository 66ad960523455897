package trap

import (
	"path"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// call looks at one simple command.
func (f *finder) call(s *syntax.Stmt, expr *syntax.CallExpr, c call, p place) {
	f.prefixAssign(expr)
	f.assignSpelled(c)
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
		f.modes(c)
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
		if c.short("r") && !c.short("i") {
			f.add(keyCrontabRemove, c.args[0].word)
		}
	case "docker", "podman":
		f.docker(c)
	case "su", "eval", "source", ".":
		f.downloads(c)
	}
	if isShell(c.name) {
		f.downloads(c)
	}
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
		if a.Name != nil && used[a.Name.Value] && !f.assigned[a.Name.Value] {
			f.add(keyPrefixAssign, a)
		}
	}
}

// assignSpelled: x = 5 and $x=5 are no assignments.
func (f *finder) assignSpelled(c call) {
	first := c.args[0].word
	if len(c.args) > 1 && c.args[1].text == "=" && c.args[0].static && syntax.ValidName(c.args[0].text) && !c.is("test", "expr", "let") {
		f.add(keyAssignSpelled, first)
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

// test: [ $x = y ] and [ -n $x ] break where x is empty, and [ a > b ] writes.
func (f *finder) test(s *syntax.Stmt, c call) {
	for _, redirect := range s.Redirs {
		if redirect.N == nil && (redirect.Op == syntax.RdrOut || redirect.Op == syntax.RdrIn) {
			f.add(keyTestRedirect, redirect)
		}
	}
	for i, a := range c.args {
		if i == 0 || len(a.word.Parts) != 1 {
			continue
		}
		name, ok := plainVariable(a.word.Parts[0])
		if !ok || f.known[name] || neverEmpty(name) {
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
	for _, a := range c.args[1:] {
		f.knows(a.word)
	}
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
		case recursive && (bare == "/" || bare == "~" || bare == "~/"),
			bare == "*" && strings.HasPrefix(next, "."),
			strings.HasSuffix(bare, "/") && (next == "*" || next == ".*"):
			f.add(keyRmSpace, a.word)
		}
	}
}

// emptyLeavesRoot tells whether a word without the variable at its beginning
// would name the root directory, what is in it, or one of the system's
// directories.
func (f *finder) emptyLeavesRoot(w *syntax.Word, recursive bool) bool {
	parts := flat(w)
	if len(parts) < 2 || f.nounset {
		return false
	}
	name, ok := plainVariable(parts[0])
	if !ok || f.known[name] || neverEmpty(name) {
		return false
	}
	rest, ok := staticParts(parts[1:], false)
	if !ok || !strings.HasPrefix(rest, "/") {
		return false
	}
	if !recursive && !strings.HasSuffix(rest, "*") {
		return false
	}
	first, behind, _ := strings.Cut(strings.TrimLeft(rest, "/"), "/")
	switch first {
	case "", "*", ".", ".*":
		return true
	case "bin", "boot", "dev", "etc", "home", "lib", "lib64", "opt", "proc", "root", "sbin", "srv", "sys", "usr", "var":
		return behind == "" || behind == "*"
	}
	return false
}

// sed: -i ” is for BSD, and letters behind -i are a suffix.
func (f *finder) sed(c call) {
	for i, a := range c.args[1:] {
		if !a.static || a.text == "--" {
			return
		}
		suffix, found := strings.CutPrefix(a.text, "-i")
		if !found {
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
	}
}

// find reads the expression: where -delete stands, what -o binds, and patterns
// that the shell gets first.
func (f *finder) find(c call) {
	args := c.args[1:]
	for len(args) > 0 && (args[0].text == "-L" || args[0].text == "-H" || args[0].text == "-P") {
		args = args[1:]
	}
	start := 0
	for start < len(args) && (!args[start].static || !strings.HasPrefix(args[start].text, "-") && args[start].text != "(" && args[start].text != "!") {
		start++
	}
	var deletes, tests, or, actionBefore bool // actionBefore: in an alternative before the present one
	var acted bool                            // in the present alternative
	depth := 0
	for i := start; i < len(args); i++ {
		a := args[i]
		switch a.text {
		case "(":
			depth++
		case ")":
			depth--
		case "-o", "-or":
			if depth == 0 {
				or, actionBefore, acted = true, actionBefore || acted, false
			}
		case "-delete", "-exec", "-execdir", "-ok", "-okdir", "-print", "-print0", "-ls", "-printf", "-prune", "-quit":
			if depth == 0 && or && !actionBefore && a.text != "-prune" && a.text != "-quit" {
				f.add(keyFindOr, a.word)
			}
			deletes = deletes || a.text == "-delete" && !tests
			acted = acted || depth == 0
			if depth > 0 {
				actionBefore = true // too clever to be an accident
			}
			if strings.HasPrefix(a.text, "-exec") || strings.HasPrefix(a.text, "-ok") {
				for i+1 < len(args) && args[i+1].text != ";" && args[i+1].text != "+" {
					i++
				}
			}
		case "-name", "-iname", "-path", "-ipath", "-wholename", "-regex", "-iregex", "-lname", "-type", "-size", "-user", "-group", "-perm", "-newer",
			"-mtime", "-mmin", "-atime", "-amin", "-ctime", "-cmin", "-empty":
			if deletes {
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
	if deletes && !tests && start == 0 {
		f.add(keyFindDelete, c.args[0].word)
	}
}

// git: clean -x takes ignored files too; a forced push to the main branch.
func (f *finder) git(c call) {
	args := c.args[1:]
	for len(args) > 0 && strings.HasPrefix(args[0].text, "-") {
		skip := 1
		if args[0].text == "-C" || args[0].text == "-c" {
			skip = 2
		}
		args = args[min(skip, len(args)):]
	}
	if len(args) == 0 {
		return
	}
	verb := call{args: args, name: args[0].text}
	switch verb.name {
	case "clean":
		forced := verb.short("f") || verb.has("--force")
		if forced && verb.short("xX") && !verb.short("nie") && !verb.has("--dry-run", "--interactive") && !hasPrefixed(verb, "--exclude") {
			f.add(keyGitClean, c.args[0].word)
		}
	case "push":
		leased := hasPrefixed(verb, "--force-with-lease")
		forced := verb.short("f") || verb.has("--force")
		for i, a := range verb.operands() {
			plus := strings.HasPrefix(a.text, "+")
			target := a.text[strings.LastIndexByte(a.text, ':')+1:]
			branch := strings.TrimPrefix(strings.TrimPrefix(target, "+"), "refs/heads/")
			if i > 0 && (branch == "main" || branch == "master") && (forced && !leased || plus) {
				f.add(keyGitForce, c.args[0].word)
			}
		}
	}
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
		f.add(keyKillPattern, c.args[0].word)
		return
	}
	for _, a := range c.args[1:] {
		for _, part := range flat(a.word) {
			if subst, ok := part.(*syntax.CmdSubst); ok && searchesProcesses(subst.Stmts) {
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

// modes: recursive changes that take too much along.
func (f *finder) modes(c call) {
	if !c.recursive() && !(c.is("cp") && c.short("a")) {
		return
	}
	operands := c.operands()
	for _, a := range operands {
		if text, ok := unquoted(a.word); ok && (text == ".*" || strings.HasSuffix(text, "/.*")) {
			f.add(keyDotGlob, a.word)
		}
	}
	if !c.is("chmod") || len(operands) == 0 {
		return
	}
	mode := operands[0].text
	switch strings.TrimLeft(mode, "0") {
	case "777", "a+rwx", "a=rwx", "ugo+rwx", "ugo=rwx":
		f.add(keyChmodAll, c.args[0].word)
	}
	octal := strings.TrimLeft(mode, "0")
	if len(octal) == 3 && strings.Trim(octal, "01234567") == "" && (octal[0]-'0')&1 == 0 {
		f.add(keyChmodFiles, c.args[0].word)
	}
}

// lastGlob: mv *.a *.b moves everything onto the last match.
func (f *finder) lastGlob(c call) {
	operands := c.operands()
	if len(operands) != 2 || c.short("t") || hasPrefixed(c, "--target-directory") {
		return
	}
	from, ok := unquoted(operands[0].word)
	to, also := unquoted(operands[1].word)
	if ok && also && strings.HasPrefix(path.Base(from), "*.") && strings.HasPrefix(path.Base(to), "*.") {
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
	if !target.static || strings.HasPrefix(target.text, "../") || strings.HasPrefix(target.text, "~") || !strings.Contains(target.text, "/") || target.text[0] == '/' {
		return
	}
	where := link.text
	if !link.static {
		where = spelled(link.word)
	}
	if strings.Contains(strings.TrimPrefix(where, "./"), "/") {
		f.add(keyLnRelative, c.args[0].word)
	}
}

// docker: volumes hold what containers keep.
func (f *finder) docker(c call) {
	system := len(c.args) > 2 && c.args[1].text == "system" && c.args[2].text == "prune"
	if system && c.has("--volumes") {
		f.add(keyDockerVolumes, c.args[0].word)
	}
	if len(c.args) < 2 || c.args[1].text != "compose" {
		return
	}
	for i, a := range c.args[2:] {
		rest := call{args: c.args[2+i:]}
		if a.text == "down" && (rest.short("v") || rest.has("--volumes")) {
			f.add(keyDockerVolumes, c.args[0].word)
		}
	}
}

// sudo: what the caller's shell does itself happens without privilege.
func (f *finder) sudo(s *syntax.Stmt, c call) {
	for _, redirect := range s.Redirs {
		switch redirect.Op {
		case syntax.RdrOut, syntax.AppOut, syntax.RdrClob:
			if target, ok := static(redirect.Word); ok && ownedByRoot(target) {
				f.add(keySudoRedirect, redirect)
			}
		}
	}
	if c.is("cd") {
		f.add(keySudoCd, c.args[0].word)
	}
	if c.is("npm", "pnpm", "yarn") && c.has("install", "i", "add", "ci") {
		f.add(keySudoNpm, c.args[0].word)
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
		f.shellText(c.args)
	case c.is("eval") && len(c.args) == 2:
		f.nested(c.args[1].word, f.errexit)
	case c.is("docker", "podman", "kubectl", "find", "xargs", "timeout", "flock", "watch", "wsl", "wsl.exe", "ssh"):
		for i, a := range c.args[1:] {
			if a.static && isShell(path.Base(a.text)) {
				f.shellText(c.args[1+i:])
				return
			}
		}
	}
}

// shellText looks at the arguments of a shell or of su.
func (f *finder) shellText(args []arg) {
	for i := 1; i+1 < len(args); i++ {
		option := args[i].text
		if len(option) < 2 || option[0] != '-' {
			if args[0].text == "su" {
				continue // su USER -c …
			}
			return
		}
		if option[1] == '-' || option[len(option)-1] != 'c' {
			continue
		}
		text := args[i+1]
		if bare, ok := unquoted(text.word); ok && bare != "" && !strings.Contains(bare, `\`) && i+2 < len(args) && sayable(args[i+2]) {
			f.add(keyShellWords, text.word)
		}
		f.nested(text.word, strings.Contains(option, "e"))
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
