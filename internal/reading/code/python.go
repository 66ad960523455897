package code

import "strings"

// stepPython reads one token of Python.
func stepPython(lx *lexer) {
	if lx.blank() {
		return
	}
	c := lx.text[lx.pos]
	switch {
	case c == '#':
		lx.skipLine()
	case c == '\\' && lx.at(1) == '\n':
		lx.pos += 2
		lx.space = true
	case c == '\'' || c == '"':
		pythonString(lx, "")
	case isDigit(c):
		lx.number()
	case isWord(c):
		n := lx.name(0)
		if next := lx.at(n); n <= 3 && (next == '\'' || next == '"') && strings.Trim(strings.ToLower(lx.text[lx.pos:lx.pos+n]), "rbuft") == "" {
			pythonString(lx, strings.ToLower(lx.text[lx.pos:lx.pos+n]))
			return
		}
		lx.add(token{kind: tokName, text: lx.text[lx.pos : lx.pos+n]})
		lx.pos += n
	default:
		operator(lx)
	}
}

// pythonString reads a string behind its prefix.
func pythonString(lx *lexer, prefix string) {
	c := lx.at(len(prefix))
	q := quote{shut: c, kind: tokString, line: true, keep: true, none: "e"}
	skip := len(prefix) + 1
	if lx.at(skip) == c && lx.at(skip+1) == c {
		q.triple, q.line = true, false
		skip += 2
	}
	q.raw = strings.Contains(prefix, "r")
	if strings.ContainsAny(prefix, "ft") {
		q.code = "{"
	}
	lx.quoted(skip, q)
}

// operator reads an operator; of the long ones only those matter that could be
// taken for two others.
func operator(lx *lexer) {
	if next := lx.at(1); next == 0 || strings.IndexByte("=*/<>.|&:+-~", next) < 0 {
		lx.op(1)
		return
	}
	for _, op := range [...]string{"**=", "//=", ">>=", "<<=", "===", "!==", "...", "||=", "&&=", "<=>",
		"->", "=>", "==", "!=", "<=", ">=", "+=", "-=", "*=", "/=", "%=", "|=", "&=", "^=", ".=", ":=", "::", "?.", "&.", "**", "//", "||", "&&", "++", "--", "..", "<<", ">>", "=~", "!~"} {
		if strings.HasPrefix(lx.rest(), op) {
			lx.op(len(op))
			return
		}
	}
	lx.op(1)
}

// python is a script with the calls of Python's standard library.
type python struct{ *script }

func readPython(f *Finding, text string, nest int) {
	p := python{newScript(f, Python, text, nest, stepPython, "+")}
	p.each(p.imports)
	p.each(func(i int) {
		if p.toks[i].kind == tokName && p.toks[i+1].is("(") && !p.prev(i).named("def", "class") {
			p.call(i)
		}
	})
}

// imports notes the names that import statements make.
func (p python) imports(i int) {
	switch t := p.toks[i]; {
	case t.named("import") && !p.prev(i).is("."):
		if from := p.from(i); from != "" {
			p.importNames(i, from)
		} else {
			p.importModules(i + 1)
		}
	}
}

// from gives the module of `from module import`, the import being at i.
func (p python) from(i int) string {
	k := i - 1
	for n := 0; n < 16 && k >= 0 && (p.toks[k].kind == tokName && !p.toks[k].named("from") || p.toks[k].is(".")); n++ {
		k--
	}
	if k < 0 || !p.toks[k].named("from") {
		return ""
	}
	var b strings.Builder
	for _, t := range p.toks[k+1 : i] {
		b.WriteString(t.text)
	}
	return b.String()
}

func (p python) importNames(i int, module string) {
	for {
		i++
		switch t := p.toks[i]; {
		case t.named("import", "from"):
			return
		case t.is("*"):
			p.stars = append(p.stars, module)
		case t.kind == tokName && !t.named("as"):
			name := t.text
			if p.toks[i+1].named("as") && p.toks[i+2].kind == tokName {
				i += 2
				name = p.toks[i].text
			}
			p.modules[name] = module + "." + t.text
		case t.is(","), t.is("("), t.kind == tokLine && p.prev(i).is("("), t.kind == tokLine && p.prev(i).is(","):
		default:
			return
		}
	}
}

func (p python) importModules(i int) {
	for p.toks[i].kind == tokName {
		start := i
		for p.toks[i+1].is(".") && p.toks[i+2].kind == tokName {
			i += 2
		}
		if p.toks[i+1].named("as") && p.toks[i+2].kind == tokName {
			name, _ := p.path(i)
			if start == i {
				name = p.toks[i].text
			}
			p.modules[p.toks[i+2].text] = name
			i += 2
		}
		if !p.toks[i+1].is(",") {
			return
		}
		i += 2
	}
}

// call judges the call whose name ends at token i.
func (p python) call(i int) {
	name, from := p.path(i)
	args := p.args(i, false)
	if strings.HasPrefix(name, ".") {
		callee, at := p.receiver(from)
		switch callee {
		case "__import__", "importlib.import_module", "import_module":
			if module, ok := p.lit(p.args(at, false), 0); ok {
				name = module + name
			}
		case "Path", "pathlib.Path", "PurePath", "pathlib.PosixPath":
			path, ok := p.lit(p.args(at, false), 0)
			p.pathMethod(name[1:], path, ok, args)
			return
		}
	}
	name = p.resolve(name)
	if p.known(name, args) {
		return
	}
	if strings.IndexByte(name, '.') < 0 {
		for _, module := range p.stars[:min(len(p.stars), 8)] {
			if p.known(module+"."+name, args) {
				return
			}
		}
	}
	p.method(i, name, args)
}

// known judges the call of a function by its full name.
func (p python) known(name string, args []span) bool {
	switch name {
	case "os.system", "os.popen", "subprocess.getoutput", "subprocess.getstatusoutput", "commands.getoutput", "commands.getstatusoutput",
		"asyncio.create_subprocess_shell", "popen2.popen2", "os.popen2", "os.popen3", "os.popen4":
		p.shellArg(args, 0)
	case "subprocess.run", "subprocess.call", "subprocess.check_call", "subprocess.check_output", "subprocess.Popen":
		p.process(args)
	case "os.execv", "os.execvp", "os.execve", "os.execvpe", "os.posix_spawn", "os.posix_spawnp":
		p.program(args, 0)
	case "os.spawnv", "os.spawnvp", "os.spawnve", "os.spawnvpe":
		p.program(args, 1)
	case "os.execl", "os.execlp":
		p.programWords(args, 0)
	case "os.spawnl", "os.spawnlp":
		p.programWords(args, 1)
	case "os.execle", "os.execlpe":
		p.programWords(args[:max(len(args)-1, 0)], 0)
	case "os.spawnle", "os.spawnlpe":
		p.programWords(args[:max(len(args)-1, 0)], 1)
	case "asyncio.create_subprocess_exec":
		p.wordsArg(p.positional(args))
	case "pty.spawn":
		if len(args) > 0 {
			p.shellOrWords(args[:1])
		}
	case "os.startfile", "code.interact", "runpy.run_path", "runpy.run_module":
		p.Starts = true
	case "exec", "eval", "builtins.exec", "builtins.eval":
		p.nested(Python, args, 0)
	case "getattr":
		if len(args) > 0 && args[0].from < args[0].to && p.toks[args[0].from].named("os", "subprocess", "pty") {
			p.Starts = true
		}
	default:
		return p.file(name, args) || p.network(name, args)
	}
	return true
}

// positional drops the arguments by name.
func (p python) positional(args []span) []span {
	for n, a := range args {
		if a = p.trim(a); a.to-a.from > 1 && p.toks[a.from].kind == tokName && p.toks[a.from+1].is("=") {
			return args[:n]
		}
	}
	return args
}

// process judges the calls of subprocess.
func (p python) process(args []span) {
	command := span{}
	if given := p.positional(args); len(given) > 0 {
		command = given[0]
	} else if named, ok := p.keyword(args, "args"); ok {
		command = named
	}
	shell, shelled := p.keyword(args, "shell")
	shelled = shelled && !p.toks[p.trim(shell).from].named("False") && p.toks[p.trim(shell).from].text != "0"
	words, literal, list := p.list(command)
	text, isText := p.str(command)
	switch {
	case shelled && isText:
		p.shell(text)
	case shelled && !list:
		p.command(command)
	case shelled && list && literal && len(words) > 0:
		p.shell(words[0]) // the other words are arguments of the shell
	case list && literal && !shelled:
		p.argv(words)
	case isText && !strings.ContainsAny(text, " \t\n"):
		p.argv([]string{text})
	case isText:
		p.shell(text) // Windows starts it, other systems find no such program
	default:
		p.Starts = true
	}
}

// program judges calls with a program at n and a list of arguments behind it.
func (p python) program(args []span, n int) {
	program, ok := p.lit(args, n)
	if !ok || n+1 >= len(args) {
		p.Starts = true
		return
	}
	words, literal, _ := p.list(args[n+1])
	if !literal || len(words) == 0 {
		p.Starts = true
		return
	}
	p.argv(append([]string{program}, words[1:]...))
}

// programWords judges calls with a program at n and its words behind it.
func (p python) programWords(args []span, n int) {
	if len(args) <= n {
		p.Starts = true
		return
	}
	words, literal := p.strings(args[n:])
	if !literal {
		p.Starts = true
		return
	}
	p.argv(append([]string{words[0]}, words[min(2, len(words)):]...))
}

// file judges calls that change files, and open.
func (p python) file(name string, args []span) bool {
	switch name {
	case "os.remove", "os.unlink", "os.rmdir", "os.removedirs", "shutil.rmtree":
		p.deleteArgs(args[:min(1, len(args))])
	case "os.truncate":
		p.empties(p.lit(args, 0))
	case "os.rename", "os.replace", "os.renames", "shutil.move":
		p.writeArg(args, 0)
		p.writeArg(args, 1)
	case "shutil.copy", "shutil.copy2", "shutil.copyfile", "shutil.copytree", "os.symlink", "os.link":
		p.reads(p.lit(args, 0))
		p.writeArg(args, 1)
	case "os.mkdir", "os.makedirs", "os.chmod", "os.chown", "os.lchown", "os.utime", "os.mknod", "os.mkfifo", "shutil.chown",
		"shutil.make_archive", "os.setxattr", "os.removexattr", "shutil.copymode", "shutil.copystat", "shutil.unpack_archive":
		p.writeArg(args, 0)
	case "os.kill", "os.killpg", "signal.pidfd_send_signal":
		p.Destroy = true
	case "os.setuid", "os.seteuid", "os.setgid", "os.setegid", "os.setreuid", "os.setresuid", "os.setgroups":
		p.Privilege = true
	case "open", "io.open", "codecs.open", "gzip.open", "bz2.open", "lzma.open", "zipfile.ZipFile", "tarfile.open", "os.fdopen", "builtins.open":
		p.opening(args, 1)
	case "os.open":
		flags := ""
		if len(args) > 1 {
			for _, t := range p.toks[args[1].from:args[1].to] {
				flags += strings.ToLower(strings.TrimPrefix(t.text, "O_"))
				if len(flags) > 256 {
					break
				}
			}
		}
		if strings.Contains(flags, "wronly") || strings.Contains(flags, "rdwr") || strings.Contains(flags, "creat") || strings.Contains(flags, "trunc") {
			p.writeArg(args, 0)
		} else {
			p.reads(p.lit(args, 0))
		}
	default:
		return false
	}
	return true
}

// opening judges a call with a path and a mode, which is argument n or named.
func (p python) opening(args []span, n int) {
	mode, literal := "r", true
	if given := p.positional(args); len(given) > n {
		mode, literal = p.str(given[n])
	} else if named, ok := p.keyword(args, "mode"); ok {
		mode, literal = p.str(named)
	}
	p.open(args, strings.TrimSuffix(mode, ":gz"), literal)
}

// network judges calls of modules that use the network.
func (p python) network(name string, args []span) bool {
	root, rest, _ := strings.Cut(name, ".")
	switch root {
	case "requests", "httpx", "aiohttp", "urllib3", "websockets", "websocket", "paramiko", "smtplib", "ftplib", "telnetlib", "poplib",
		"imaplib", "xmlrpc", "socketserver", "boto3", "psycopg", "psycopg2", "pymysql", "pymongo", "redis", "webbrowser", "asyncssh", "grpc", "pika":
	case "http":
		if !strings.HasPrefix(rest, "client") && !strings.HasPrefix(rest, "server") {
			return false
		}
	case "urllib", "urllib2":
		if strings.HasPrefix(rest, "parse") || strings.HasPrefix(rest, "quote") || strings.HasPrefix(rest, "error") || rest == "urlencode" {
			return false
		}
		if strings.HasSuffix(rest, "urlretrieve") {
			p.writeArg(args, 1)
		}
	case "socket":
		if rest == "gethostname" || strings.HasPrefix(rest, "inet_") || strings.HasPrefix(rest, "hton") || strings.HasPrefix(rest, "ntoh") || rest == "" {
			return false
		}
	case "asyncio":
		if rest != "open_connection" && rest != "start_server" {
			return false
		}
	default:
		return false
	}
	p.contactArgs(args)
	return true
}

// pathMethod judges the call of a method of pathlib.Path.
func (p python) pathMethod(method, path string, literal bool, args []span) {
	switch method {
	case "unlink", "rmdir", "rmtree":
		p.deletes(path, literal)
	case "write_text", "write_bytes", "touch", "mkdir", "symlink_to", "hardlink_to", "chmod", "lchmod":
		p.writes(path, literal)
	case "rename", "replace", "move":
		p.writes(path, literal)
		p.writeArg(args, 0)
	case "read_text", "read_bytes":
		p.reads(path, literal)
	case "open":
		mode, ok := p.lit(args, 0)
		if len(args) == 0 {
			mode, ok = "r", true
		}
		if !ok || strings.ContainsAny(mode, "wax+") {
			p.writes(path, literal)
		} else {
			p.reads(path, literal)
		}
	}
}

// method judges the call of a method by its name alone, where the name can mean
// one thing only.
func (p python) method(i int, name string, args []span) {
	if !p.prev(i).is(".") {
		return
	}
	root, _, _ := strings.Cut(name, ".")
	path, literal := p.values[root]
	switch method := p.toks[i].text; method {
	case "unlink", "rmdir", "write_text", "write_bytes", "touch", "symlink_to", "hardlink_to", "read_text", "read_bytes":
		p.pathMethod(method, path, literal, args)
	case "rmtree":
		p.deletes("", false)
	case "execute", "executescript", "executemany":
		p.sql(args)
	case "connect", "connect_ex", "create_connection", "urlopen":
		if root != "sqlite3" {
			p.contactArgs(args)
		}
	}
}
