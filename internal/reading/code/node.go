package code

import "strings"

// stepNode reads one token of JavaScript or TypeScript.
func stepNode(lx *lexer) {
	if lx.blank() {
		return
	}
	c := lx.text[lx.pos]
	switch {
	case strings.HasPrefix(lx.rest(), "//") || c == '#' && lx.at(1) == '!' && lx.pos == 0:
		lx.skipLine()
	case strings.HasPrefix(lx.rest(), "/*"):
		lx.pos += 2
		lx.skipPast("*/")
		lx.space = true
	case c == '/':
		if nodeRegex(lx) && lx.regex(1, '/', 0, true) {
			return
		}
		operator(lx)
	case c == '\'' || c == '"':
		lx.quoted(1, quote{shut: c, kind: tokString, line: true, none: "ae"})
	case c == '`':
		lx.quoted(1, quote{shut: c, kind: tokString, code: "${", none: "ae"})
	case isDigit(c):
		lx.number()
	case isWord(c) || c == '$':
		n := 1
		for isWord(lx.at(n)) || lx.at(n) == '$' {
			n++
		}
		lx.add(token{kind: tokName, text: lx.text[lx.pos : lx.pos+n]})
		lx.pos += n
	default:
		operator(lx)
	}
}

// nodeRegex reports whether a slash begins a regular expression.
func nodeRegex(lx *lexer) bool {
	t := lx.last()
	if t.is("}") {
		return true // a block is more common than an object that is divided
	}
	if t.is(")") {
		return lx.afterCondition()
	}
	if t.is("++") || t.is("--") {
		return false
	}
	return !lx.operand()
}

// afterCondition reports whether the parenthesis that ends the tokens encloses
// the condition of a statement. It looks back a little only.
func (lx *lexer) afterCondition() bool {
	depth := 0
	for i, n := len(lx.toks)-1, 0; i > 0 && n < 256; i, n = i-1, n+1 {
		switch {
		case lx.toks[i].is(")"):
			depth++
		case lx.toks[i].is("("):
			if depth--; depth == 0 {
				return lx.toks[i-1].named("if", "while", "for", "with")
			}
		}
	}
	return false
}

// node is a script with the calls of Node's modules.
type node struct{ *script }

func readNode(f *Finding, text string, nest int) {
	p := node{newScript(f, Node, text, nest, stepNode, "+")}
	p.each(p.imports)
	p.each(func(i int) {
		t := p.toks[i]
		switch {
		case t.kind != tokName:
		case p.toks[i+1].is("(") && !p.prev(i).named("function"):
			p.call(i)
		case p.toks[i+1].is("?.") && p.toks[i+2].is("("):
			p.Starts = p.Starts || strings.HasPrefix(t.text, "exec") || strings.HasPrefix(t.text, "spawn")
		case t.text == "$" && p.toks[i+1].kind == tokString:
			// The tagged templates of zx and Bun are commands.
			if p.toks[i+1].literal {
				p.shell(p.toks[i+1].text)
			} else {
				p.partly(p.toks[i+1].text)
			}
		}
	})
}

// module gives the name of a module without what does not matter.
func module(name string) string {
	return strings.TrimSuffix(strings.TrimPrefix(name, "node:"), "/promises")
}

// imports notes the names that require and import make.
func (p node) imports(i int) {
	t := p.toks[i]
	switch {
	case t.named("require") && p.toks[i+1].is("(") && p.toks[i+2].kind == tokString:
		from := module(p.toks[i+2].text)
		if k := p.toks[i+1].mate + 1; k > 0 && p.toks[k].is(".") && p.toks[k+1].kind == tokName {
			from += "." + p.toks[k+1].text
		}
		p.bind(i-2, p.prev(i).is("="), from)
	case t.named("import") && p.toks[i+1].is("(") && p.toks[i+2].kind == tokString:
		at := i - 1
		if p.prev(i).named("await") {
			at--
		}
		p.bind(at-1, at >= 0 && p.toks[at].is("="), module(p.toks[i+2].text))
	case t.named("from") && p.toks[i+1].kind == tokString:
		from := module(p.toks[i+1].text)
		k := i - 1
		if k > 0 && p.toks[k].is("}") && p.toks[k].mate >= 0 {
			p.destructure(p.toks[k].mate, k, from)
			k = p.toks[k].mate - 2 // import fs, {rm} from "fs"
		}
		if k > 0 && p.toks[k].kind == tokName && !p.toks[k].named("import") {
			p.modules[p.toks[k].text] = from
		}
	}
}

// bind notes the target of an assignment that ends at token k.
func (p node) bind(k int, assigned bool, from string) {
	switch {
	case !assigned || k < 0:
	case p.toks[k].kind == tokName:
		p.modules[p.toks[k].text] = from
	case p.toks[k].is("}") && p.toks[k].mate >= 0:
		p.destructure(p.toks[k].mate, k, from)
	}
}

// destructure notes the names in `{a, b: c, d as e}`.
func (p node) destructure(open, end int, from string) {
	for _, a := range p.split(open+1, end) {
		a = p.trim(a)
		if a.from < a.to && p.toks[a.from].kind == tokName && p.toks[a.to-1].kind == tokName {
			p.modules[p.toks[a.to-1].text] = from + "." + p.toks[a.from].text
		}
	}
}

// call judges the call whose name ends at token i.
func (p node) call(i int) {
	name, from := p.path(i)
	args := p.args(i, false)
	if strings.HasPrefix(name, ".") {
		callee, at := p.receiver(from)
		if callee == "require" || callee == "import" || callee == "process.mainModule.require" || callee == "process.getBuiltinModule" {
			if m, ok := p.lit(p.args(at, false), 0); ok {
				name = module(m) + name
			}
		}
	}
	name = strings.Replace(p.resolve(name), ".promises.", ".", 1)
	name = strings.TrimPrefix(name, "globalThis.")
	if p.process(name, args) || p.file(name, args) || p.network(name, args) {
		return
	}
	p.method(i, args)
}

// process judges calls that start something.
func (p node) process(name string, args []span) bool {
	switch name {
	case "child_process.exec", "child_process.execSync":
		p.shellArg(args, 0)
	case "child_process.spawn", "child_process.spawnSync", "child_process.execFile", "child_process.execFileSync", "cross-spawn", "execa", "execa.execa", "execa.execaSync", "cross-spawn.sync":
		p.spawn(args)
	case "child_process.fork":
		p.Starts = true
	case "Deno.Command", "Bun.spawn", "Bun.spawnSync", "Deno.run":
		if len(args) == 1 {
			if words, literal, is := p.list(args[0]); is && literal && p.toks[p.trim(args[0]).from].is("[") {
				p.argv(words)
				return true
			}
		}
		p.Starts = true
	case "execaCommand", "execa.execaCommand", "execa.execaCommandSync", "execa.command", "shelljs.exec":
		p.shellArg(args, 0)
	case "eval", "Function", "vm.runInThisContext", "vm.runInNewContext", "vm.Script":
		p.nested(Node, args, max(len(args)-1, 0))
		if name != "Function" {
			return true
		}
	case "process.kill":
		p.Destroy = true
	case "process.setuid", "process.setgid", "process.seteuid", "process.setegid":
		p.Privilege = true
	default:
		return false
	}
	return true
}

// spawn judges calls with a program and a list of arguments. The option shell
// makes one text for a shell of them.
func (p node) spawn(args []span) {
	program, ok := p.lit(args, 0)
	if !ok {
		p.Starts = true
		return
	}
	words := []string{program}
	shelled := false
	for _, a := range args[1:] {
		a = p.trim(a)
		if a.from >= a.to {
			continue
		}
		if t := p.toks[a.from]; t.is("{") {
			if t.mate != a.to-1 {
				p.Starts = true
				return
			}
			if v, found := p.keyword(p.split(a.from+1, a.to-1), "shell"); found && !p.toks[p.trim(v).from].named("false") {
				shelled = true
			}
			continue
		}
		if more, literal, is := p.list(a); is {
			if !literal {
				p.Starts = true
				return
			}
			words = append(words, more...)
		} else if t := p.toks[a.from]; t.kind == tokName && !t.named("function", "async") && a.to-a.from == 1 {
			p.Starts = true // a variable: arguments or options
			return
		}
	}
	if shelled || len(words) == 1 && strings.ContainsAny(program, " \t") {
		p.shell(strings.Join(words, " "))
		return
	}
	p.argv(words)
}

// file judges calls of the file system.
func (p node) file(name string, args []span) bool {
	module, function, _ := strings.Cut(name, ".")
	switch module {
	case "fs", "fs-extra", "fsp", "fse", "Deno", "rimraf", "del", "fsPromises":
	default:
		return false
	}
	switch strings.TrimSuffix(function, "Sync") {
	case "rm", "unlink", "rmdir", "remove", "emptyDir", "rimraf", "deleteAsync", "":
		p.deleteArgs(args[:min(1, len(args))])
	case "truncate", "ftruncate":
		p.empties(p.lit(args, 0))
	case "writeFile", "appendFile", "createWriteStream", "mkdir", "mkdtemp", "chmod", "chown", "lchown", "utimes", "outputFile", "outputJson",
		"writeJson", "ensureDir", "ensureFile", "writeTextFile", "create", "createFile", "mkdirs":
		p.writeArg(args, 0)
	case "copyFile", "cp", "copy", "symlink", "link":
		p.reads(p.lit(args, 0))
		p.writeArg(args, 1)
	case "rename", "move":
		p.writeArg(args, 0)
		p.writeArg(args, 1)
	case "open":
		flags, literal := p.lit(args, 1)
		if len(args) < 2 || p.toks[p.trim(args[1]).from].is("(") || p.toks[args[1].from].named("function") {
			flags, literal = "r", true
		}
		p.open(args, flags, literal)
	case "readFile", "createReadStream", "readdir", "readTextFile", "readJson":
		p.reads(p.lit(args, 0))
	default:
		return module != "Deno"
	}
	return true
}

// network judges calls that use the network.
func (p node) network(name string, args []span) bool {
	root, rest, _ := strings.Cut(name, ".")
	switch root {
	case "fetch", "axios", "got", "superagent", "undici", "ky", "needle", "node-fetch", "WebSocket", "EventSource", "XMLHttpRequest", "ws", "request":
	case "http", "https", "http2":
		if rest != "get" && rest != "request" && rest != "connect" && rest != "createServer" && rest != "createSecureServer" {
			return false
		}
	case "net", "tls":
		if rest != "connect" && rest != "createConnection" && rest != "createServer" && rest != "Socket" {
			return false
		}
	case "dgram", "dns":
	case "Deno", "Bun":
		switch rest {
		case "connect", "listen", "serve", "connectTls", "listenTls":
		default:
			return false
		}
	default:
		return false
	}
	p.contactArgs(args)
	return true
}

// method judges a call by its last name alone, where that can mean one thing
// only.
func (p node) method(i int, args []span) {
	switch name := p.toks[i].text; name {
	case "execSync", "doShellScript":
		p.shellArg(args, 0)
	case "spawnSync", "execFileSync", "execFile", "spawn":
		p.spawn(args)
	case "rmSync", "unlinkSync", "rmdirSync", "writeFileSync", "appendFileSync", "truncateSync", "copyFileSync", "renameSync", "mkdirSync",
		"cpSync", "chmodSync", "symlinkSync", "writeFile", "appendFile", "unlink", "createWriteStream", "readFileSync", "rimraf", "removeSync":
		p.file("fs."+name, args)
	case "dropDatabase":
		p.Write, p.Destroy = true, true
	case "query":
		p.sql(args)
	}
}
