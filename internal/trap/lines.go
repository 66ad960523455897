package trap

import (
	"path"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// sequence is what matters of the statements that went before in one list.
type sequence struct {
	cd       *syntax.Stmt    // a cd that nobody checks
	loopVars map[string]bool // assigned in a loop behind a pipe
	pipe     *syntax.Stmt    // the statement before, where its exit code says little
	decl     *syntax.Stmt    // the statement before, where it is a declaration that hides one
	remoteCd *syntax.Stmt    // the statement before, where it is a cd over ssh
}

// inSequence looks at a statement in the light of those before it.
func (f *finder) inSequence(s *sequence, stmt *syntax.Stmt) {
	if len(s.loopVars) > 0 {
		f.usesLost(s.loopVars, stmt)
	}
	if members := pipeline(stmt); len(members) > 1 {
		s.loopVars = f.loopVariables(members[len(members)-1], s.loopVars)
	}
	if s.pipe != nil && asksExit(stmt) {
		f.add(keyPipeExit, s.pipe)
	}
	if s.decl != nil && asksExit(stmt) {
		f.add(keyDeclareHidesExit, s.decl)
	}
	if s.remoteCd != nil {
		f.add(keySSHCd, s.remoteCd)
	}
	s.pipe, s.decl, s.remoteCd = nil, nil, nil
	if f.hidesExit(stmt) {
		s.pipe = stmt
		if f.errexit {
			f.add(keyPipeExit, stmt)
		}
	}
	if decl, ok := stmt.Cmd.(*syntax.DeclClause); ok && substitutes(decl) {
		s.decl = stmt
	}
	c, ok := callOf(stmt)
	if cd, always := changesDirectory(stmt); cd != nil {
		s.cd = nil
		target := cd.args[len(cd.args)-1].word
		if !stmt.Background && (always || !f.errexit) && len(cd.args) > 1 && !safeDirectory(target) && !f.dirs[strings.TrimSuffix(spelled(target), "/")] {
			s.cd = stmt
		}
		return
	}
	if !ok {
		return
	}
	if c.is("ssh") {
		if remote := remoteWords(c); len(remote) == 2 && remote[0].text == "cd" {
			s.remoteCd = stmt
		}
	}
	if s.cd != nil && f.deletesHere(c) {
		f.add(keyCdRm, s.cd)
	}
}

// changesDirectory is the cd of a statement after which the next one runs
// whether or not cd succeeds. always tells that set -e changes nothing about it;
// without a cd the result is nil.
func changesDirectory(s *syntax.Stmt) (cd *call, always bool) {
	first := s
	if binary, ok := s.Cmd.(*syntax.BinaryCmd); ok {
		switch binary.Op {
		case syntax.OrStmt: // cd DIR || true
			if next, ok := callOf(binary.Y); !ok || !next.is("true", ":", "echo", "printf") {
				return nil, false
			}
			first, always = binary.X, true
		case syntax.AndStmt: // cd DIR && …; next
			for ok && binary.Op == syntax.AndStmt {
				first = binary.X
				binary, ok = first.Cmd.(*syntax.BinaryCmd)
			}
		}
	}
	if c, ok := callOf(first); ok && c.is("cd", "pushd") {
		return &c, always
	}
	return nil, false
}

// deletesHere tells whether a call deletes more than named files of the
// directory that it runs in.
func (f *finder) deletesHere(c call) bool {
	switch c.name {
	case "rm":
		return f.relativeRm(c)
	case "git":
		verb := gitVerb(c)
		return verb.name == "clean" && cleans(verb) && !hasPrefixed(c, "--git-dir") && !(len(c.args) > 1 && c.args[1].text == "-C")
	case "find":
		starts, tests := findParts(c)
		deletes := false
		for i, a := range tests {
			deletes = deletes || a.text == "-delete" || strings.HasPrefix(a.text, "-exec") && i+1 < len(tests) && tests[i+1].text == "rm"
		}
		for _, a := range starts {
			if !a.static || strings.HasPrefix(a.text, "/") || strings.HasPrefix(a.text, "~") {
				return false
			}
		}
		return deletes
	}
	return false
}

// relativeRm tells whether an rm takes more than named files of the directory
// that it runs in.
func (f *finder) relativeRm(c call) bool {
	for _, a := range c.operands() {
		text, ok := a.text, a.static
		if ok && !strings.HasPrefix(text, "/") && !strings.HasPrefix(text, "~") && (c.recursive() || globs(a.word)) {
			return true
		}
	}
	return false
}

// loopVariables are the variables that a loop or a read at a pipeline's end
// assigns.
func (f *finder) loopVariables(last *syntax.Stmt, vars map[string]bool) map[string]bool {
	if f.lastpipe {
		return vars
	}
	add := func(name string) {
		if vars == nil {
			vars = make(map[string]bool)
		}
		vars[name] = true
	}
	if c, ok := callOf(last); ok && c.is("read") {
		for _, a := range c.operandsBut("adinNptu") {
			if syntax.ValidName(a.text) {
				add(a.text)
			}
		}
	}
	loop, ok := last.Cmd.(*syntax.WhileClause)
	if !ok {
		return vars
	}
	for _, s := range loop.Do {
		syntax.Walk(s, func(n syntax.Node) bool {
			if f.lookahead--; f.lookahead < 0 {
				return false
			}
			switch n := n.(type) {
			case *syntax.Subshell, *syntax.CmdSubst, *syntax.ProcSubst, *syntax.FuncDecl:
				return false
			case *syntax.BinaryCmd:
				return !isPipe(n.Op)
			case *syntax.CallExpr:
				if len(n.Args) > 0 {
					return false // what stands in front of a command holds for it only
				}
				for _, a := range n.Assigns {
					if a.Name != nil {
						add(a.Name.Value)
					}
				}
				return false
			case *syntax.DeclClause:
				if n.Variant.Value != "export" {
					return false
				}
				for _, a := range n.Args {
					if a.Name != nil && !a.Naked {
						add(a.Name.Value)
					}
				}
				return false
			case *syntax.ArithmCmd:
				if name, ok := counted(n.X); ok {
					add(name)
				}
				return false
			case *syntax.LetClause:
				for _, x := range n.Exprs {
					if name, ok := counted(x); ok {
						add(name)
					}
				}
				return false
			}
			return true
		})
	}
	return vars
}

// counted is the name in n++, n+=1 and n=n+1.
func counted(x syntax.ArithmExpr) (string, bool) {
	switch e := x.(type) {
	case *syntax.UnaryArithm:
		if e.Op != syntax.Inc && e.Op != syntax.Dec {
			return "", false
		}
		x = e.X
	case *syntax.BinaryArithm:
		if e.Op != syntax.Assgn && e.Op != syntax.AddAssgn && e.Op != syntax.SubAssgn {
			return "", false
		}
		x = e.X
	default:
		return "", false
	}
	word, ok := x.(*syntax.Word)
	if !ok {
		return "", false
	}
	return static(word)
}

// usesLost looks for a variable whose value stayed in the loop. Another
// assignment ends the search for it.
func (f *finder) usesLost(vars map[string]bool, stmt *syntax.Stmt) {
	if expr, ok := stmt.Cmd.(*syntax.CallExpr); ok && len(expr.Args) == 0 {
		for _, a := range expr.Assigns {
			if a.Name != nil {
				delete(vars, a.Name.Value)
			}
		}
	}
	syntax.Walk(stmt, func(n syntax.Node) bool {
		if f.lookahead--; f.lookahead < 0 {
			return false
		}
		switch n := n.(type) {
		case *syntax.ParamExp:
			if n.Param != nil && vars[n.Param.Value] {
				f.add(keyLoopVariable, n)
			}
		case *syntax.Assign:
			if n.Name != nil && !n.Naked {
				delete(vars, n.Name.Value)
			}
		case *syntax.WordIter:
			delete(vars, n.Name.Value)
		case *syntax.CallExpr:
			if len(n.Args) > 1 {
				if name, _ := static(n.Args[0]); name == "read" || name == "mapfile" || name == "readarray" {
					for _, w := range n.Args[1:] {
						name, _ := static(w)
						delete(vars, name)
					}
				}
			}
		}
		return true
	})
}

// list looks at two statements joined by && or ||.
func (f *finder) list(b *syntax.BinaryCmd) {
	last := b.X
	for {
		inner, ok := last.Cmd.(*syntax.BinaryCmd)
		if !ok || isPipe(inner.Op) {
			break
		}
		last = inner.Y
	}
	if decl, ok := last.Cmd.(*syntax.DeclClause); ok && substitutes(decl) {
		f.add(keyDeclareHidesExit, decl)
	}
	f.pipeExit(b, last)
	c, ok := callOf(last)
	if ok && b.Op == syntax.AndStmt && c.is("ssh") {
		if remote := remoteWords(c); len(remote) > 1 && remote[0].text == "cd" {
			f.add(keySSHCd, c.args[0].word)
		}
	}
}

// pipeExit: behind a pipe to tee, the decision hangs on tee.
func (f *finder) pipeExit(b *syntax.BinaryCmd, left *syntax.Stmt) {
	if next, ok := callOf(b.Y); ok && b.Op == syntax.OrStmt && next.is("true", ":") {
		return
	}
	if f.hidesExit(left) {
		f.add(keyPipeExit, left)
	}
}

// hidesExit tells whether a statement is a pipeline that succeeds even when the
// program that matters in it fails.
func (f *finder) hidesExit(s *syntax.Stmt) bool {
	members := pipeline(s)
	if len(members) < 2 || f.pipefail || f.pipeStatus {
		return false
	}
	last, ok := callOf(members[len(members)-1])
	if !ok || !last.is("tee", "tail", "head", "cat") {
		return false
	}
	first, ok := callOf(members[0])
	return ok && canFail(first)
}

// asksExit tells whether the first command of a statement looks at $?.
func asksExit(s *syntax.Stmt) bool {
	for s != nil {
		switch c := s.Cmd.(type) {
		case *syntax.BinaryCmd:
			s = c.X
			continue
		case *syntax.IfClause:
			if len(c.Cond) > 0 {
				s = c.Cond[0]
				continue
			}
		case *syntax.TestClause:
			asks := false
			if binary, ok := c.X.(*syntax.BinaryTest); ok {
				for _, x := range []syntax.TestExpr{binary.X, binary.Y} {
					if w, ok := x.(*syntax.Word); ok && asksExitIn(w) {
						asks = true
					}
				}
			}
			return asks
		case *syntax.CallExpr:
			for _, word := range c.Args {
				if asksExitIn(word) {
					return true
				}
			}
			for _, a := range c.Assigns {
				if a.Value != nil && asksExitIn(a.Value) {
					return true
				}
			}
		}
		return false
	}
	return false
}

func asksExitIn(w *syntax.Word) bool {
	for _, part := range flat(w) {
		if name, ok := plainVariable(part); ok && name == "?" {
			return true
		}
	}
	return false
}

// canFail tells whether a program's exit code is the very reason to run it.
func canFail(c call) bool {
	if c.has("--help", "-h", "--version", "-V", "--dry-run", "help", "version", "list", "ls") {
		return false
	}
	verb := ""
	if operands := c.operands(); len(operands) > 0 {
		verb = operands[0].text
	}
	switch c.name {
	case "go":
		switch verb {
		case "test", "build", "vet", "run", "install", "generate", "get":
			return true
		}
		return false
	case "npm", "pnpm", "yarn":
		switch verb {
		case "test", "t", "run", "ci", "install", "i", "add", "exec", "publish", "build", "lint", "update":
			return len(c.operands()) > 1 || verb != "run" // npm run lists the scripts
		}
		return false
	case "cargo":
		switch verb {
		case "test", "build", "check", "clippy", "run", "bench", "publish", "install", "fmt", "nextest":
			return true
		}
		return false
	case "docker", "podman":
		switch verb {
		case "build", "buildx", "push", "pull", "run":
			return true
		case "compose":
			return c.has("up", "build", "run", "pull", "push")
		}
		return false
	case "terraform", "tofu":
		switch verb {
		case "apply", "plan", "init", "validate", "destroy":
			return true
		}
		return false
	case "python", "python3":
		return c.has("-m") && c.has("pytest", "unittest", "mypy", "build")
	case "uv", "poetry", "bundle":
		return verb == "run" || verb == "exec" || verb == "install" || verb == "sync"
	case "make":
		return !c.flag("npq", "CfIjloW")
	case "rsync":
		return !c.flag("n", "efT")
	case "cmake", "dotnet", "gradle", "gradlew", "mvn", "bazel", "swift", "mix":
		return verb != "" || c.has("--build", "--install")
	case "npx", "pytest", "tox", "ninja", "ctest", "rake", "mypy", "ruff", "tsc", "eslint", "pg_dump", "mysqldump":
		return true
	}
	return c.args[0].static && strings.HasPrefix(c.args[0].text, "./")
}

// pipe looks at the members of a pipeline together.
func (f *finder) pipe(members []*syntax.Stmt) {
	calls := make([]call, len(members)) // the zero call where there is none
	for i, member := range members {
		calls[i], _ = callOf(member)
	}
	f.readWrite(members, calls)
	if len(members) == 1 {
		return
	}
	var fetched *syntax.Word // the program that downloads
	listed, searched, printed, table := false, false, false, false
	for i, c := range calls {
		if len(c.args) == 0 {
			// A group may hold what would change the answer.
			if table = true; listed {
				listed = false
			}
			continue
		}
		started, starts := call{}, false
		if c.is("xargs") {
			started, starts = startedBy(c)
		}
		switch {
		case fetched != nil && readsProgram(c):
			f.add(keyCurlPipe, fetched)
		case listed && starts && !c.flag("0d", "aEIJLnPRsS") && !c.has("--null") && !hasPrefixed(c, "--delimiter") && started.is("rm", "rmdir", "mv", "shred", "unlink"):
			f.add(keyXargs, c.args[0].word)
		case searched && starts && started.is("kill") && killsHard(started):
			f.add(keyKillPattern, c.args[0].word)
		case printed && !table && c.is("crontab") && (c.has("-") || len(c.args) == 1) && !f.crontabList:
			f.add(keyCrontabReplace, c.args[0].word)
		}
		if fetched == nil && (c.is("curl", "wget") || i == 0 && c.is("echo", "printf") && f.printsFetched(c)) {
			fetched = c.args[0].word
		}
		listed = listed || lists(c)
		if c.is("tr", "sed", "awk") {
			listed = false // it may have changed the separators
		}
		searched = searched || c.is("pgrep", "pidof", "lsof", "ps")
		printed = printed || i == 0 && c.is("echo", "printf")
	}
}

// lists tells whether a program prints names of files, line by line.
func lists(c call) bool {
	switch c.name {
	case "ls", "locate":
		return !c.flag("0", "lnd") && !c.has("--null", "--zero")
	case "find":
		return !c.has("-print0", "-printf", "-fprint0", "-delete", "-exec", "-quit")
	case "fd", "fdfind":
		return !c.flag("0", "edEStTcjoxX") && !c.has("--print0")
	case "grep", "egrep", "fgrep", "rg":
		return (c.flag("lL", "efmABCdDgtT") || c.has("--files-with-matches", "--files-without-match")) && !c.flag("Z0", "efmABCdDgtT") && !c.has("--null")
	case "git":
		verb := gitVerb(c)
		return (verb.name == "ls-files" || verb.name == "diff" && verb.has("--name-only")) && !verb.short("z")
	}
	return false
}

// printsFetched tells whether echo prints a variable that holds a download.
func (f *finder) printsFetched(c call) bool {
	for _, a := range c.operands() {
		for _, part := range flat(a.word) {
			if name, ok := plainVariable(part); ok && f.fetched[name] {
				return true
			}
		}
	}
	return false
}

// readsProgram tells whether a call reads the program that it runs from its
// standard input.
func readsProgram(c call) bool {
	switch c.name {
	case "ssh", "docker", "podman", "kubectl":
		words := c.args[1:]
		if c.is("ssh") {
			words = remoteWords(c)
		}
		for i, a := range words {
			// The last words: ssh HOST sudo bash -s, docker exec -i NAME sh.
			if name, rest, _ := strings.Cut(a.text, " "); a.static && isShell(path.Base(name)) && (rest == "" || rest == "-s") {
				return rest != "" || readsProgram(callOfArgs(words[i:]))
			}
		}
		return false
	}
	interpreter := isShell(c.name)
	if !interpreter && !c.is("python", "python3", "perl", "ruby", "node") {
		return false
	}
	for _, a := range c.args[1:] {
		switch {
		case !a.static:
			return false
		case a.text == "-" || a.text == "/dev/stdin" || interpreter && (a.text == "-s" || a.text == "--"):
			return true
		case a.text == "" || a.text[0] != '-':
			return false
		case interpreter && a.text[1] != '-' && strings.Contains(a.text, "n"), a.text == "--version", a.text == "--help":
			return false // it only looks whether the text parses
		case strings.HasSuffix(a.text, "c") || strings.HasPrefix(a.text, "-m") || strings.HasPrefix(a.text, "-e") && !interpreter:
			return false
		case !interpreter && a.text[1] != '-':
			return false // -n, -p and their like come with a program
		}
	}
	return true
}

// downloads: a shell or an interpreter runs what a substitution fetches.
func (f *finder) downloads(s *syntax.Stmt, c call) {
	code := -1 // the argument that is run
	switch {
	case c.is("eval", "source", "."):
		code = 1
	case isShell(c.name), c.is("su", "python", "python3", "perl", "ruby", "node"):
		letter := "c"
		if c.is("perl", "ruby", "node") {
			letter = "e"
		}
		for i, a := range c.args[1:] {
			if isShell(c.name) && (len(a.text) < 2 || a.text[0] != '-') {
				if _, ok := a.word.Parts[0].(*syntax.ProcSubst); ok {
					code = 1 + i
				}
				break
			}
			if strings.HasPrefix(a.text, "-") && strings.HasSuffix(a.text, letter) {
				code = 2 + i
				break
			}
		}
		if isShell(c.name) && readsProgram(c) {
			for _, redirect := range s.Redirs {
				if redirect.Op == syntax.WordHdoc || redirect.Op == syntax.RdrIn {
					f.fetchesCode(c, redirect.Word)
				}
			}
		}
	}
	if code > 0 && code < len(c.args) {
		f.fetchesCode(c, c.args[code].word)
	}
}

// fetchesCode looks at a word that is run: whether it begins with a download.
func (f *finder) fetchesCode(c call, w *syntax.Word) {
	parts := flat(w)
	if len(parts) == 0 {
		return
	}
	var list []*syntax.Stmt
	switch part := parts[0].(type) {
	case *syntax.CmdSubst:
		list = part.Stmts
	case *syntax.ProcSubst:
		list = part.Stmts
	}
	if name, ok := plainVariable(parts[0]); ok && len(parts) == 1 && f.fetched[name] || fetches(list) {
		f.add(keyCurlPipe, c.args[0].word)
	}
}

// fetches tells whether a download stands at the beginning of one of the
// pipelines.
func fetches(list []*syntax.Stmt) bool {
	for _, s := range list {
		for _, member := range pipeline(s) {
			if c, ok := callOf(member); ok && c.is("curl", "wget") {
				return true
			}
		}
	}
	return false
}

// loopItem looks at what a for loop goes through.
func (f *finder) loopItem(item *syntax.Word) {
	for _, part := range item.Parts {
		subst, ok := part.(*syntax.CmdSubst)
		if !ok || len(subst.Stmts) != 1 || f.assigned["IFS"] {
			continue
		}
		s := subst.Stmts[0]
		if binary, ok := s.Cmd.(*syntax.BinaryCmd); ok && binary.Op == syntax.AndStmt {
			s = binary.Y // cd DIR && ls
		}
		members := pipeline(s)
		first, ok := callOf(members[0])
		last, also := callOf(members[len(members)-1])
		if ok && first.is("ls", "find") && !(also && last.is("wc")) {
			f.add(keyForLs, part)
		}
	}
	f.brace(item)
}

// braces looks at the arguments of a call.
func (f *finder) braces(c call) {
	for _, a := range c.args[1:] {
		if !a.static {
			f.brace(a.word)
		}
	}
}

// brace: {1..$n} is a literal that ends with ".." or "{", a variable, and "}".
func (f *finder) brace(w *syntax.Word) {
	for i, part := range w.Parts {
		lit, ok := part.(*syntax.Lit)
		if !ok || i+2 >= len(w.Parts) {
			continue
		}
		open := strings.LastIndexByte(lit.Value, '{')
		if open < 0 || open > 0 && lit.Value[open-1] == '\\' {
			continue
		}
		_, ok = plainVariable(w.Parts[i+1])
		if _, arithmetic := w.Parts[i+1].(*syntax.ArithmExp); !ok && !arithmetic {
			continue
		}
		behind, ok := w.Parts[i+2].(*syntax.Lit)
		if !ok {
			continue
		}
		from, found := strings.CutSuffix(lit.Value[open+1:], "..")
		if found && len(from) > 0 && strings.Trim(from, "-0123456789") == "" && (strings.HasPrefix(behind.Value, "}") || strings.HasPrefix(behind.Value, "..")) ||
			lit.Value[open:] == "{" && strings.HasPrefix(behind.Value, "..") {
			f.add(keyBraceVariable, w)
		}
	}
}

// redirections looks at what stands around a command.
func (f *finder) redirections(s *syntax.Stmt, p place) {
	joined := false // 2>&1 came already
	for _, redirect := range s.Redirs {
		target, _ := static(redirect.Word)
		switch {
		case redirect.Op == syntax.DplOut && redirect.N != nil && redirect.N.Value == "2" && target == "1":
			joined = true
		case joined && !p.piped && !p.captured && (redirect.Op == syntax.RdrOut || redirect.Op == syntax.AppOut) && (redirect.N == nil || redirect.N.Value == "1") && !substituted(redirect.Word):
			f.add(keyRedirectOrder, redirect)
		case redirect.Hdoc != nil && (redirect.Op == syntax.Hdoc || redirect.Op == syntax.DashHdoc):
			f.heredoc(s, redirect)
		}
	}
}

// substituted tells whether a redirection goes into another command.
func substituted(w *syntax.Word) bool {
	if w == nil || len(w.Parts) == 0 {
		return false
	}
	_, ok := w.Parts[0].(*syntax.ProcSubst)
	return ok
}

// heredoc: $ in a script or configuration file is expanded now, not then.
func (f *finder) heredoc(s *syntax.Stmt, doc *syntax.Redirect) {
	if len(s.Redirs) > maxRedirections {
		return
	}
	if _, ok := unquoted(doc.Word); !ok || strings.Contains(doc.Word.Parts[0].(*syntax.Lit).Value, `\`) {
		return // a quoted delimiter
	}
	c, ok := callOf(s)
	if !ok || !c.is("cat", "tee") {
		return
	}
	target := ""
	for _, redirect := range s.Redirs {
		if redirect.Op == syntax.RdrOut || redirect.Op == syntax.AppOut || redirect.Op == syntax.RdrClob {
			target, _ = static(redirect.Word)
		}
	}
	if operands := c.operands(); c.is("tee") && len(operands) > 0 {
		target = operands[0].text
	}
	if target == "" {
		return
	}
	script := isScript(target) || len(doc.Hdoc.Parts) > 0 && startsScript(doc.Hdoc.Parts[0])
	if !script && !isConfiguration(target) {
		return
	}
	for _, part := range doc.Hdoc.Parts {
		if lit, ok := part.(*syntax.Lit); ok && (strings.Contains(lit.Value, `\$`) || strings.Contains(lit.Value, "\\`")) {
			return // it is known which ones are expanded
		}
	}
	for _, part := range doc.Hdoc.Parts {
		switch part := part.(type) {
		case *syntax.CmdSubst:
			if script && !(len(part.Stmts) == 1 && isCat(part.Stmts[0])) {
				f.add(keyHeredoc, doc)
			}
		case *syntax.ParamExp:
			if part.Param == nil || f.assigned[part.Param.Value] {
				continue
			}
			name := part.Param.Value
			if script || strings.ToUpper(name) != name || !syntax.ValidName(name) {
				f.add(keyHeredoc, doc)
			}
		}
	}
}

func isCat(s *syntax.Stmt) bool {
	c, ok := callOf(s)
	return ok && c.is("cat")
}

func startsScript(part syntax.WordPart) bool {
	lit, ok := part.(*syntax.Lit)
	return ok && strings.HasPrefix(lit.Value, "#!")
}

func isScript(file string) bool {
	switch path.Ext(file) {
	case ".sh", ".bash", ".zsh", ".pl", ".rb", ".php", ".mk":
		return true
	}
	switch path.Base(file) {
	case "Dockerfile", "Makefile", ".bashrc", ".profile", ".zshrc":
		return true
	}
	return false
}

func isConfiguration(file string) bool {
	switch path.Ext(file) {
	case ".conf", ".cfg", ".ini", ".yml", ".yaml", ".toml", ".service":
		return true
	}
	return strings.Contains(file, "/nginx/") || strings.Contains(file, "/cron.d/")
}

// readWrite: the shell empties the target of > before the first program reads.
func (f *finder) readWrite(members []*syntax.Stmt, calls []call) {
	type target struct {
		file string
		node syntax.Node
		app  bool
	}
	var targets []target
	for i, member := range members {
		for _, redirect := range member.Redirs {
			switch redirect.Op {
			case syntax.RdrOut, syntax.RdrClob, syntax.RdrAll, syntax.AppOut:
				if file := spelled(redirect.Word); file != "" && !strings.HasPrefix(file, "/dev/") {
					targets = append(targets, target{file, redirect, redirect.Op == syntax.AppOut})
				}
			}
		}
		if c := calls[i]; i > 0 && c.name == "tee" && !c.short("a") && !c.has("--append") {
			for _, a := range c.operands() {
				if file := spelled(a.word); file != "" {
					targets = append(targets, target{file, a.word, false})
				}
			}
		}
	}
	if len(targets) == 0 {
		return
	}
	input := make(map[string]bool)     // read by any program
	appending := make(map[string]bool) // read by cat
	for i, member := range members {
		for _, redirect := range member.Redirs {
			if redirect.Op == syntax.RdrIn {
				input[spelled(redirect.Word)] = true
			}
		}
		c := calls[i]
		for _, a := range inputs(c) {
			file := spelled(a.word)
			input[file] = true
			appending[file] = appending[file] || c.is("cat")
		}
	}
	for _, t := range targets {
		if !t.app && input[t.file] || t.app && appending[t.file] {
			f.add(keyReadWrite, t.node)
		}
	}
}

// inputs are the operands that a filter reads from.
func inputs(c call) []arg {
	skip := 0
	switch c.name {
	case "cat", "sort", "uniq", "head", "tail", "cut", "tac", "rev", "nl", "fold", "fmt", "column", "paste", "expand", "iconv", "base64", "strings", "comm", "join", "pr", "shuf":
	case "xxd", "od", "hexdump", "gofmt", "prettier", "xmllint", "zcat", "pandoc", "csvcut", "csvsort", "m4", "cpp", "tidy":
	case "python", "python3", "node", "ruby", "perl", "php":
		if c.short("cem") {
			return nil
		}
		skip = 1
	case "sed", "awk", "gawk", "grep", "egrep", "fgrep", "rg":
		values := "efmABCdD"
		switch c.name {
		case "sed":
			values = "efl"
		case "awk", "gawk":
			values = "vFf"
		}
		if !c.flag("ef", "mABCdDvFl") && !c.has("--expression", "--file", "--regexp") && !hasPrefixed(c, "--expression=") && !hasPrefixed(c, "--regexp=") {
			skip = 1
		}
		operands := c.operandsBut(values)
		return operands[min(skip, len(operands)):]
	case "jq", "yq":
		if !c.short("f") {
			skip = 1
		}
		if hasPrefixed(c, "--arg") || hasPrefixed(c, "--slurpfile") || hasPrefixed(c, "--rawfile") || c.has("-n", "--null-input") {
			return nil // operands that are no files
		}
	default:
		return nil
	}
	operands := c.operands()
	return operands[min(skip, len(operands)):]
}

// ssh: what the local shell expands, where cd ends, and who reads the list.
func (f *finder) ssh(s *syntax.Stmt, c call, p place) {
	remote := remoteWords(c)
	if p.readLoop && !sshOptions(c).short("nf") && !s.Background && !redirectsInput(s) && len(remote) > 0 {
		f.add(keySSHStdin, c.args[0].word)
	}
	if len(remote) == 1 {
		f.nested(remote[0].word, shellState{}, nil)
	}
	for _, a := range remote {
		if text, ok := unquoted(a.word); ok && (strings.HasPrefix(text, "~") || globs(a.word)) {
			f.add(keySSHLocal, a.word)
		}
		for _, part := range flat(a.word) {
			switch part := part.(type) {
			case *syntax.ParamExp:
				switch name, _ := plainVariable(part); name {
				case "HOME", "USER", "LOGNAME", "PWD", "HOSTNAME", "PATH", "SHELL", "UID":
					f.add(keySSHLocal, part)
				}
			case *syntax.CmdSubst:
				if len(part.Stmts) == 0 {
					continue
				}
				if inner, ok := callOf(part.Stmts[0]); ok && inner.is("hostname", "pgrep", "pidof", "whoami", "pwd", "uname", "nproc", "ls") {
					f.add(keySSHLocal, part)
				}
			}
		}
	}
}

func redirectsInput(s *syntax.Stmt) bool {
	for _, redirect := range s.Redirs {
		switch redirect.Op {
		case syntax.RdrIn, syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
			return true
		}
	}
	return false
}

// sshOptions is the call with what stands in front of the remote command.
func sshOptions(c call) *call {
	return &call{args: c.args[:len(c.args)-len(remoteWords(c))]}
}

// remoteWords are the words behind ssh's options and host.
func remoteWords(c call) []arg {
	args := c.args[1:]
	for len(args) > 0 && args[0].static && len(args[0].text) > 1 && args[0].text[0] == '-' {
		option := args[0].text
		args = args[1:]
		if option == "--" {
			break
		}
		if strings.IndexByte("BbcDEeFIiJLlmOoPpQRSWw", option[len(option)-1]) >= 0 && len(option) == 2 && len(args) > 0 {
			args = args[1:]
		}
	}
	return args[min(1, len(args)):]
}

// pythonPipe: behind a pipe, python on Windows writes the ANSI code page.
func (f *finder) pythonPipe(s *syntax.Stmt, c call, p place) {
	name := strings.TrimSuffix(strings.ToLower(c.name), ".exe")
	if name != "cmd" && name != "powershell" && name != "pwsh" || f.utf8 || f.has(keyPythonIsolated) {
		return
	}
	elsewhere := p.piped
	for _, redirect := range s.Redirs {
		elsewhere = elsewhere || redirect.Op == syntax.RdrOut || redirect.Op == syntax.AppOut
	}
	python := false
	for _, a := range c.args[1:] {
		if strings.Contains(strings.ToLower(a.text), "utf8") {
			return
		}
		for r := (runs{text: a.text}); r.next(); {
			if r.word()&(wordPython|wordPython3) != 0 {
				python = true
				elsewhere = elsewhere || strings.ContainsAny(a.text[r.end:], "|>")
				break
			}
		}
	}
	if python && elsewhere {
		f.add(keyPythonPipe, c.args[0].word)
	}
}
