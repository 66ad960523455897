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
}

// inSequence looks at a statement in the light of those before it.
func (f *finder) inSequence(s *sequence, stmt *syntax.Stmt) {
	if len(s.loopVars) > 0 {
		f.usesLost(s.loopVars, stmt)
	}
	if members := pipeline(stmt); len(members) > 1 {
		s.loopVars = loopVariables(members[len(members)-1], s.loopVars)
	}
	if s.pipe != nil && asksExit(stmt) {
		f.add(keyPipeExit, s.pipe)
	}
	s.pipe = nil
	if f.hidesExit(stmt) {
		s.pipe = stmt
	}
	c, ok := callOf(stmt)
	if !ok {
		return
	}
	switch {
	case c.is("cd", "pushd") && !stmt.Background && !f.errexit:
		s.cd = nil
		if target := c.args[len(c.args)-1]; len(c.args) > 1 && !neverFails(target.text) {
			s.cd = stmt
		}
	case c.is("rm") && s.cd != nil && f.relativeRm(c):
		f.add(keyCdRm, s.cd)
	}
}

func neverFails(dir string) bool {
	switch dir {
	case "/", "..", ".", "-", "~", "/tmp":
		return true
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

// loopVariables are the variables that a loop at a pipeline's end assigns.
func loopVariables(last *syntax.Stmt, vars map[string]bool) map[string]bool {
	loop, ok := last.Cmd.(*syntax.WhileClause)
	if !ok {
		return vars
	}
	if vars == nil {
		vars = make(map[string]bool)
	}
	for _, s := range loop.Do {
		if expr, ok := s.Cmd.(*syntax.CallExpr); ok && len(expr.Args) == 0 {
			for _, a := range expr.Assigns {
				if a.Name != nil {
					vars[a.Name.Value] = true
				}
			}
		}
		if arith, ok := s.Cmd.(*syntax.ArithmCmd); ok {
			if name, ok := counted(arith.X); ok {
				vars[name] = true
			}
		}
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
		if p, ok := n.(*syntax.ParamExp); ok && p.Param != nil && vars[p.Param.Value] {
			f.add(keyLoopVariable, p)
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
	switch c.name {
	case "make", "go", "npm", "npx", "pnpm", "yarn", "cargo", "pytest", "tox", "mvn", "gradle", "gradlew", "dotnet", "bazel", "ninja", "cmake", "ctest",
		"rake", "bundle", "mypy", "ruff", "tsc", "eslint", "terraform", "pg_dump", "mysqldump", "rsync", "mix", "swift", "docker":
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
		switch {
		case fetched != nil && readsProgram(c):
			f.add(keyCurlPipe, fetched)
		case listed && c.is("xargs") && !c.short("0d") && !c.has("--null") && !hasPrefixed(c, "--delimiter") && runsOf(c, "rm", "rmdir", "mv", "shred", "unlink"):
			f.add(keyXargs, c.args[0].word)
		case searched && c.is("xargs") && runsOf(c, "kill") && killsHard(c):
			f.add(keyKillPattern, c.args[0].word)
		case printed && !table && c.is("crontab") && c.has("-") && !f.crontabList:
			f.add(keyCrontabReplace, c.args[0].word)
		}
		if fetched == nil && c.is("curl", "wget") {
			fetched = c.args[0].word
		}
		listed = listed || c.is("ls") || c.is("find") && !c.has("-print0", "-printf") || c.is("git") && c.has("ls-files") && !c.short("z")
		if c.is("tr", "sed", "awk") {
			listed = false // it may have changed the separators
		}
		searched = searched || c.is("pgrep", "pidof", "lsof", "ps")
		printed = printed || i == 0 && c.is("echo", "printf")
	}
}

// readsProgram tells whether a call reads the program that it runs from its
// standard input.
func readsProgram(c call) bool {
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
		case strings.HasSuffix(a.text, "c") || strings.HasPrefix(a.text, "-m") || strings.HasPrefix(a.text, "-e") && !interpreter:
			return false
		case !interpreter && a.text[1] != '-':
			return false // -n, -p and their like come with a program
		}
	}
	return true
}

// runsOf tells whether xargs starts one of the programs.
func runsOf(c call, names ...string) bool {
	for _, a := range c.args[1:] {
		for _, name := range names {
			if a.static && path.Base(a.text) == name {
				return true
			}
		}
	}
	return false
}

// downloads: a shell runs what a substitution fetches.
func (f *finder) downloads(c call) {
	for _, a := range c.args[1:] {
		for _, part := range flat(a.word) {
			var list []*syntax.Stmt
			switch part := part.(type) {
			case *syntax.CmdSubst:
				list = part.Stmts
			case *syntax.ProcSubst:
				list = part.Stmts
			}
			for _, s := range list {
				for _, member := range pipeline(s) {
					if inner, ok := callOf(member); ok && inner.is("curl", "wget") {
						f.add(keyCurlPipe, c.args[0].word)
					}
				}
			}
		}
	}
}

// loopItem looks at what a for loop goes through.
func (f *finder) loopItem(item *syntax.Word) {
	for i, part := range item.Parts {
		switch part := part.(type) {
		case *syntax.CmdSubst:
			if len(part.Stmts) != 1 {
				continue
			}
			if c, ok := callOf(pipeline(part.Stmts[0])[0]); ok && c.is("ls", "find") {
				f.add(keyForLs, part)
			}
		case *syntax.Lit:
			// {1..$n}: a literal that ends with ".." or "{", a variable, and "}".
			open := strings.LastIndexByte(part.Value, '{')
			if open < 0 || i+2 >= len(item.Parts) {
				continue
			}
			if _, ok := plainVariable(item.Parts[i+1]); !ok {
				continue
			}
			behind, ok := item.Parts[i+2].(*syntax.Lit)
			if ok && (strings.HasSuffix(part.Value[open:], "..") && strings.HasPrefix(behind.Value, "}") ||
				part.Value[open:] == "{" && strings.HasPrefix(behind.Value, "..")) {
				f.add(keyBraceVariable, item)
			}
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
		case joined && !p.piped && (redirect.Op == syntax.RdrOut || redirect.Op == syntax.AppOut) && (redirect.N == nil || redirect.N.Value == "1"):
			f.add(keyRedirectOrder, redirect)
		case redirect.Hdoc != nil && (redirect.Op == syntax.Hdoc || redirect.Op == syntax.DashHdoc):
			f.heredoc(s, redirect)
		}
	}
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
		switch part := part.(type) {
		case *syntax.CmdSubst:
			if script {
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
	case "sed", "awk", "gawk", "jq", "yq", "grep", "egrep", "fgrep", "rg":
		if !c.short("ef") && !c.has("--expression", "--file", "--regexp") || c.is("jq", "yq") && !c.short("f") {
			skip = 1
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
	if p.readLoop && !c.short("nf") && !redirectsInput(s) && len(remote) > 0 {
		f.add(keySSHStdin, c.args[0].word)
	}
	if len(remote) == 1 {
		f.nested(remote[0].word, false)
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
