package reading

import (
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"vogt/internal/audit/mask"
	"vogt/internal/catalog"
	"vogt/internal/detail"
)

// call is one command about to be read.
type call struct {
	words     []catalog.Word
	offsets   []int // where the words stand; nil when all stand where at says
	at        int
	scope     *scope
	red       *redirections
	env       []setting // for this command alone
	external  bool      // no function, alias or builtin of this shell
	resolved  string
	namespace string // of a shell of Windows, whose own commands come first
}

func (c *call) offset(i int) int {
	if i < len(c.offsets) {
		return c.offsets[i]
	}
	return c.at
}

// callExpr reads a simple command.
func (w *walker) callExpr(c *syntax.CallExpr, red *redirections, s *scope) {
	w.output = source{kind: unknownInput, at: -1}
	if len(c.Args) == 0 {
		for _, a := range c.Assigns {
			w.assign(a, s)
		}
		w.bare(red, s, s.at(c.Pos()))
		return
	}
	var env []setting
	for _, a := range c.Assigns {
		if a.Array != nil {
			w.array(a, s)
			continue
		}
		word := w.single(a.Value, s)
		if a.Index != nil {
			w.subscript(a.Name.Value, a.Index, s, a.Pos())
		}
		name := a.Name.Value
		if s.lookup(name).arith {
			w.arithWord(word, s, s.at(a.Pos()))
		}
		if name == "PS4" || w.catalog.Matters(name) {
			if a.Append && word.Kind == catalog.Literal {
				word = catalog.Open(catalog.Partial, "", "…"+word.Text, string(catalog.Hole)+word.Text, true)
			}
			env = append(env, setting{name, word})
		}
	}
	e := w.words(c.Args, s)
	if len(c.Assigns) > 0 && w.assignsHere(e.words, s) {
		w.temporarily(c.Assigns, e, red, s, s.at(c.Pos()))
		return
	}
	w.command(call{words: e.words, offsets: e.offsets, at: s.at(c.Pos()), scope: s, red: red, env: env})
	if slices.ContainsFunc(c.Assigns, func(a *syntax.Assign) bool { return a.Name.Value == "CDPATH" }) {
		s.cwd, s.cwdOK = "", false // where cd looks first
	}
}

// assignsHere reports whether assignments before a command count in this
// shell: what runs is a part of it, or there is no command in the end.
func (w *walker) assignsHere(words []catalog.Word, s *scope) bool {
	if len(words) == 0 || words[0].Kind != catalog.Literal {
		return true
	}
	switch name := words[0].Text; name {
	case "eval", ".", "source", "command", "builtin", "exec":
		return true
	case ":", "break", "continue", "exit", "export", "readonly", "return", "set", "shift", "times", "trap", "unset":
		return s.posix // special builtins keep them (POSIX, 2.14)
	default:
		return len(s.funcs[name].bodies) > 0
	}
}

// temporarily reads a command with assignments that count in this shell.
// Whether they stay differs between shells: afterwards both is possible.
func (w *walker) temporarily(assigns []*syntax.Assign, e expanded, red *redirections, s *scope, at int) {
	before := w.fork(s)
	w.quiet++ // their words were walked before
	for _, a := range assigns {
		w.assign(a, s)
		if a.Name != nil && a.Index == nil && a.Array == nil && w.catalog.Matters(a.Name.Value) {
			s.export(a.Name.Value, w.single(a.Value, s))
		}
	}
	w.quiet--
	w.command(call{words: e.words, offsets: e.offsets, at: at, scope: s, red: red})
	if len(e.words) > 0 {
		w.join(s, before)
	}
}

// name is the program of a command word: its base name, whether the word says
// which file it is, and whether it is one of this shell's own.
func programName(word catalog.Word) (name string, exact bool) {
	if word.Kind == catalog.Literal {
		switch slash := strings.LastIndexByte(word.Text, '/') + 1; {
		case int(word.Computed) > slash:
			return "?", false
		case word.Computed > 0:
			return Base(word.Text), false
		}
		return Base(word.Text), true
	}
	tail := word.Template()
	if i := strings.LastIndexByte(tail, '/'); i >= 0 && word.Kind == catalog.Partial {
		tail = tail[i+1:]
		if tail != "" && !strings.ContainsRune(tail, catalog.Hole) && !strings.ContainsAny(tail, "*?[") {
			return tail, false
		}
	}
	return "?", false
}

// command reads a command whose words are expanded, and whatever it starts.
func (w *walker) command(c call) {
	s := c.scope
	if len(c.words) == 0 {
		if c.red != nil {
			w.bare(c.red, s, c.at)
		}
		return
	}
	n := 1
	if s.depth > 0 {
		n += len(c.words) / 4 // the words of what started it, once more
	}
	if !w.work(n) {
		return
	}
	if s.depth > maxDepth {
		w.opaque(c.at, "too-deep", "commands start each other deeper than is read")
		return
	}
	key := c.offset(0)
	name, exact := programName(c.words[0])
	if exact && name == "" {
		name = "?"
		exact = false
	}
	if exact && !c.external {
		if f := s.funcs[c.words[0].Text]; len(f.bodies) > 0 {
			if c.red != nil {
				w.bare(c.red, s, key)
			}
			for _, body := range f.bodies {
				w.function(c.words[0].Text, body, c.words[1:], s, key)
			}
			if !f.maybe {
				return
			}
		}
	}
	out := &Call{Program: name, Words: c.words, Remote: s.remote, Via: s.via, Depth: s.depth, Cwd: s.cwd, Adrift: s.adrift, Fell: s.fell}
	j := w.job()
	defer w.done(j)
	j.call = c
	r := &j.reader
	if c.red != nil {
		out.Effects |= c.red.effects
		out.Paths, out.Hosts = c.red.paths, c.red.hosts
		out.Redirected = len(out.Paths.Reads)+len(out.Paths.Writes)+len(out.Hosts) > 0 || out.Paths.Unknown || c.red.effects != 0
	}
	w.add(out, key)
	*r = reader{walker: w, call: &j.call, out: out, key: key, stdin: s.stdin}
	if c.red != nil && c.red.stdin.kind != inherited {
		r.stdin = c.red.stdin
	}
	r.read(exact)
	w.rate(out, s)
	if decides(out, c.resolved) {
		out.decides = true
		out.Risk = detail.Critical
	}
}

// job is the space for reading one call.
type job struct {
	reader reader
	call   call
}

func (w *walker) job() *job {
	if n := len(w.jobs); n > 0 {
		j := w.jobs[n-1]
		w.jobs = w.jobs[:n-1]
		return j
	}
	return &job{}
}

func (w *walker) done(j *job) {
	*j = job{}
	w.jobs = append(w.jobs, j)
}

// reader reads one call.
type reader struct {
	*walker
	call    *call
	out     *Call
	key     int
	stdin   source
	base    string    // folder that relative paths start from, after -C and the like
	changed bool      // base is not the working directory
	pass    []setting // variables for what the call starts
}

// content marks the call as one that runs content which is not read here.
func (r *reader) content(key, text string) {
	r.out.Effects |= detail.Executes
	r.problem(r.key, key, text)
}

// unknown marks the call as opaque.
func (r *reader) unknown(word int, key, text string) {
	r.out.Effects |= detail.Opaque
	r.problem(r.call.offset(max(word, 0)), key, text)
}

func (r *reader) read(exact bool) {
	s := r.call.scope
	name := r.out.Program
	r.base = s.cwd
	if !exact {
		if name != "?" {
			r.content("program", name+" lies in a folder that the text does not name")
		} else {
			r.unknown(0, "program", "which program runs is not known from the text")
		}
		r.emptied()
		return
	}
	word := r.call.words[0].Text
	builtin := !r.call.external && word == name && isBuiltin(name)
	if !builtin {
		r.foreign(word)
	}
	if s.alias[name] && !r.call.external && word == name {
		r.unknown(0, "alias", name+" is an alias that was defined before; whether it is used depends on the shell")
	}
	entry := r.foreignEntry(name)
	if entry == nil {
		entry = r.catalog.Entry(name)
	}
	if entry == nil {
		if !strings.Contains(word, "/") || System(word) {
			r.unknown(0, "not-in-catalog", name+" is not in the catalog")
		}
		r.variables(name, builtin)
		r.emptied()
		return
	}
	if builtin && r.builtin(name) {
		r.variables(name, builtin)
		return
	}
	entry.InterpretTo(r.call.words, &r.out.Use)
	r.apply(&r.out.Use)
	r.special(entry.Name)
	r.variables(entry.Name, builtin)
	if other := Base(r.call.resolved); r.call.resolved != "" && other != name {
		r.other(other)
	}
	if builtin {
		r.after(name)
	}
	r.emptied()
	r.outputOf(name)
}

// secretVariable reports whether a word holds the value of a variable that is
// named as a secret and was not set by the text.
func secretVariable(shown string, s *scope) bool {
	for {
		_, rest, ok := strings.Cut(shown, "$")
		if !ok {
			return false
		}
		shown = strings.TrimLeft(rest, "{!#")
		name := shown
		for i := range len(name) {
			if c := name[i]; c != '_' && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') {
				name = name[:i]
				break
			}
		}
		if _, set := s.vars[name]; !set && !strings.HasPrefix(rest, "{#") && mask.Secret(name) {
			return true
		}
	}
}

// special adds what no entry can say: what a program does with a place that it
// does not name.
func (r *reader) special(name string) {
	words := r.call.words
	last := words[len(words)-1]
	switch name {
	case "mv":
		if len(words) > 2 && last.Text == "/dev/null" {
			r.out.Effects |= detail.Writes | detail.Destroys
		}
	case "echo", "printf":
		for _, w := range words {
			if w.Kind != catalog.Literal && secretVariable(w.Shown(), r.call.scope) {
				r.out.Effects |= detail.Secrets
			}
		}
	case "nohup":
		if r.call.red == nil || !r.call.red.output {
			r.out.Effects |= detail.Writes // nohup.out, if standard output is a terminal
		}
	case "ps":
		// Letters without a dash are BSD's, where e shows the environment.
		if first := words[min(1, len(words)-1)]; len(words) > 1 && first.Kind == catalog.Literal && strings.Contains(first.Text, "e") &&
			strings.Trim(first.Text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") == "" {
			r.out.Effects |= detail.Secrets
		}
	case "socat":
		r.socat()
	case "chmod":
		if len(words) > 2 && r.out.Use.Form() == "change" {
			r.mode()
		}
	case "find":
		for i := range words {
			if words[i].Text == "-delete" {
				r.out.Paths.Deletes = append(r.out.Paths.Deletes, r.absolute(r.start()+"/**", r.base, r.call.scope))
				break
			}
		}
	}
}

// mode finds out whether a mode sets the bits that give a program its owner's
// rights (chmod(1): the symbol s, and the first of four octal digits).
func (r *reader) mode() {
	for i := range r.out.Use.Values {
		v := &r.out.Use.Values[i]
		if v.Role != catalog.Text || v.Option != "" {
			continue
		}
		w := r.call.words[v.Word]
		if w.Kind != catalog.Literal {
			r.unknown(v.Word, "mode", "which rights are given is not known")
			return
		}
		octal := strings.Trim(w.Text, "01234567") == ""
		special := false
		if octal {
			n, err := strconv.ParseUint(w.Text, 8, 32)
			special = err != nil || n&0o6000 != 0
		} else {
			for _, clause := range strings.Split(w.Text, ",") {
				adds := strings.IndexAny(clause, "+=")
				special = special || adds >= 0 && strings.Contains(clause[adds:], "s")
			}
		}
		if special {
			r.out.Effects |= detail.Privileged
		}
		return
	}
}

// socat reads the programs among its addresses (socat(1), EXEC, SYSTEM).
func (r *reader) socat() {
	for i, w := range r.call.words[1:] {
		kind, rest, ok := strings.Cut(templateOf(w), ":")
		if !ok {
			continue
		}
		text, _, _ := strings.Cut(rest, ",")
		word := catalog.Word{Text: text}
		if strings.ContainsRune(text, catalog.Hole) {
			word = openWord(text)
		}
		switch strings.ToUpper(kind) {
		case "EXEC":
			var words []catalog.Word
			for _, f := range strings.Fields(text) {
				if strings.ContainsRune(f, catalog.Hole) {
					words = append(words, catalog.Unknown(catalog.Partial))
				} else {
					words = append(words, catalog.Word{Text: f})
				}
			}
			r.command(call{words: words, at: r.call.offset(i + 1), scope: r.child(false), external: true})
		case "SYSTEM", "SHELL":
			r.shellText(word, r.child(false), r.call.offset(i+1))
		}
	}
}

// other reads the call as the program that its name leads to, and adds what
// that would do.
func (r *reader) other(name string) {
	entry := r.catalog.Entry(name)
	if entry == nil {
		return
	}
	var use catalog.Use
	entry.InterpretTo(r.call.words, &use)
	r.out.Effects |= use.Effects
	r.out.Use.Risk = max(r.out.Use.Risk, use.Risk)
}

// foreign notes a program that is not the system's own.
func (r *reader) foreign(word string) {
	if !strings.Contains(word, "/") || r.out.Remote || System(word) {
		return
	}
	r.out.Effects |= detail.Executes
}

// System reports whether a path of a program lies where only the system's
// owner puts programs.
func System(word string) bool {
	dir := cleanAbs(word)
	if dir == "" {
		return false
	}
	dir = dir[:strings.LastIndexByte(dir, '/')]
	switch dir {
	case "/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin", "/usr/games", "/opt/homebrew/bin", "/snap/bin",
		"/usr/lib/git-core", "/run/current-system/sw/bin":
		return true
	}
	return false
}

// emptied notes files that a command without output leaves empty.
func (r *reader) emptied() {
	if r.call.red == nil || len(r.call.red.emptied) == 0 || len(r.out.Words) == 0 {
		return
	}
	first := r.out.Words[0].Text
	silent := false
	switch first {
	case ":", "true", "false":
		silent = true
	case "echo":
		silent = len(r.out.Words) == 2 && r.out.Words[1].Text == "-n" || len(r.out.Words) == 3 && r.out.Words[1].Text == "-n" && r.out.Words[2].Kind == catalog.Literal && r.out.Words[2].Text == ""
	case "printf":
		silent = len(r.out.Words) == 2 && r.out.Words[1].Kind == catalog.Literal && r.out.Words[1].Text == ""
	case "cat":
		silent = len(r.out.Words) == 2 && r.out.Words[1].Text == "/dev/null"
	}
	if silent {
		r.out.Effects |= detail.Destroys
	}
}

// apply follows what the catalog says of the call.
func (r *reader) apply(u *catalog.Use) {
	r.out.Effects |= u.Effects
	if u.Effects.Has(detail.Opaque) && u.Why != "" {
		r.problem(r.call.offset(max(u.WhyWord, 0)), "catalog", r.out.Program+": "+u.Why)
	}
	for i := range u.Values {
		v := &u.Values[i]
		if v.Role == catalog.Split {
			r.split(u, v)
			return // the rest was read without the words that the text gives
		}
		r.value(u, v)
	}
	r.standardInput(u)
	if u.Entry.Name == "xargs" && !started(u) && !u.Effects.Has(detail.Opaque) {
		// xargs(1): without a command it runs echo.
		r.command(call{words: []catalog.Word{{Text: "echo"}}, at: r.key, scope: r.child(false), external: true})
	}
}

// started reports whether a command stands among the values.
func started(u *catalog.Use) bool {
	for i := range u.Values {
		if u.Values[i].Role == catalog.Command {
			return true
		}
	}
	return false
}

// broughtAlong reads a program that the line brings along, such as a pager.
// Where it only reads, the call still runs something of the caller's choice;
// cat is what people choose to have none.
func (r *reader) broughtAlong(w catalog.Word, read func()) {
	before := len(r.collect.calls)
	read()
	var e detail.Effects
	for _, c := range r.collect.calls[min(before, len(r.collect.calls)):] {
		e |= c.Effects
	}
	if e.ReadOnly() && w.Text != "cat" {
		r.out.Effects |= detail.Executes
	}
}

// word is the part of a word that is a value.
func (r *reader) word(v *catalog.Value) catalog.Word {
	w := r.call.words[v.Word]
	if v.From <= 0 {
		return w
	}
	if v.From <= len(w.Text) {
		prefix := w.Text[:v.From]
		if w.Kind == catalog.Literal {
			return catalog.Word{Text: w.Text[v.From:]}
		}
		return catalog.Open(w.Kind, w.Text[v.From:], strings.TrimPrefix(w.Shown(), prefix), strings.TrimPrefix(w.Template(), prefix), false)
	}
	return catalog.Open(catalog.Partial, "", w.Shown(), w.Template(), false)
}

func (r *reader) value(u *catalog.Use, v *catalog.Value) {
	if v.Word >= len(r.call.words) {
		return
	}
	switch v.Role {
	case catalog.Text:
	case catalog.Read, catalog.Write, catalog.Delete, catalog.Empty, catalog.Device, catalog.Script, catalog.Config, catalog.Plugin:
		r.path(v.Role, r.word(v))
	case catalog.Chdir:
		w := r.word(v)
		role := catalog.Read
		if r.archiver() && u.Form() == "extract" {
			role = catalog.Write
		}
		r.path(role, w)
		if w.Kind != catalog.Literal {
			r.base, r.changed = "", true
			return
		}
		r.base, r.changed = r.absolute(w.Text, r.base, r.call.scope), true
		if len(r.base) > maxPath || !r.work(len(r.base)/64) {
			r.base = ""
		}
	case catalog.URL, catalog.Host:
		r.host(r.word(v))
	case catalog.File:
		for _, p := range attached(v.Arg, r.word(v)) {
			r.path(p.role, p.word)
		}
	case catalog.RemoteRead, catalog.RemoteWrite, catalog.Repository:
		r.remotePath(v.Role, r.word(v))
	case catalog.Command, catalog.RemoteCommand:
		r.inner(v, v.Role == catalog.RemoteCommand)
	case catalog.Shell, catalog.RemoteShell:
		r.shellValue(v, v.Role == catalog.RemoteShell)
	case catalog.Program:
		r.program(r.word(v), v)
	case catalog.Split: // handled by apply
	case catalog.Assign:
		w := r.call.words[v.Word]
		name, value, _ := strings.Cut(w.Text, "=")
		if !validName(name) {
			// BASH_FUNC_name%% defines a function for a shell below.
			r.unknown(v.Word, "variable", "the variable "+name+" has a name that shells treat in their own way")
		}
		if r.catalog.Matters(name) {
			if w.Kind == catalog.Literal {
				w = catalog.Word{Text: value}
			} else {
				w = catalog.Open(w.Kind, value, strings.TrimPrefix(w.Shown(), name+"="), strings.TrimPrefix(w.Template(), name+"="), false)
			}
			r.pass = append(r.pass, setting{name, w})
		}
	case catalog.Code:
		r.code(v.Arg, r.codeText(v), r.call.offset(v.Word))
	case catalog.Setting:
		r.setting(u, v)
	case catalog.Thing:
	}
}

// codeText is the text of a value of one or more words.
func (r *reader) codeText(v *catalog.Value) catalog.Word {
	if v.End <= v.Word+1 {
		return r.word(v)
	}
	return joined(r.call.words, v)
}

// joined joins the words of a value with blanks.
func joined(words []catalog.Word, v *catalog.Value) catalog.Word {
	var b strings.Builder
	literal := true
	for i := v.Word; i < v.End && i < len(words); i++ {
		if i > v.Word {
			b.WriteByte(' ')
		}
		t := templateOf(words[i])
		if i == v.Word && v.From > 0 && v.From <= len(t) {
			t = t[v.From:]
		}
		b.WriteString(t)
		if words[i].Kind != catalog.Literal {
			literal = false
		}
	}
	if literal {
		return catalog.Word{Text: b.String()}
	}
	return openWord(b.String())
}

// openWord is a word by its template.
func openWord(template string) catalog.Word {
	return catalog.Open(catalog.Partial, "", strings.ReplaceAll(template, string(catalog.Hole), "…"), template, true)
}

// wordOf is the word that a template stands for.
func wordOf(template string) catalog.Word {
	known, _, open := strings.Cut(template, string(catalog.Hole))
	if !open {
		return catalog.Word{Text: template}
	}
	return catalog.Open(catalog.Partial, known, strings.ReplaceAll(template, string(catalog.Hole), "…"), template, false)
}

// child is the scope of a program that this call starts.
func (r *reader) child(remote bool) *scope {
	s := r.fork(r.call.scope)
	s.depth++
	s.via = r.out.Program
	s.funcs, s.alias, s.vars = exportedFunctions(s.funcs), nil, nil
	s.args, s.known = nil, false
	s.posix = r.out.Program != "bash" // what starts a shell by itself starts sh
	s.extglob = isShell(r.out.Program) && slices.ContainsFunc(r.out.Use.Values, func(v catalog.Value) bool {
		return v.Option == "-O" && r.word(&v).Text == "extglob"
	})
	s.stdin = r.stdin
	s.calls = append(s.calls[:len(s.calls):len(s.calls)], "\x00"+r.out.Program)
	if remote {
		s.remote = true
		s.cwd, s.cwdOK, s.home = "", false, ""
		s.env = nil
	} else if r.changed {
		s.cwd, s.cwdOK = r.base, r.base != ""
	}
	for _, e := range r.call.env {
		s.export(e.name, e.value)
	}
	for _, e := range r.pass {
		s.export(e.name, e.value)
	}
	return s
}

// exportedFunctions are what another program sees of a shell's functions.
// Which ones were exported is not followed: none are taken along, and
// `export -f` is opaque.
func exportedFunctions(map[string]function) map[string]function { return nil }

// inner reads a command among the call's words.
func (r *reader) inner(v *catalog.Value, remote bool) {
	words := r.call.words[v.Word:v.End]
	if v.From > 0 {
		words = append([]catalog.Word{r.word(v)}, words[1:]...)
	}
	words = r.innerWords(words, v)
	c := call{words: words, at: r.call.offset(v.Word), scope: r.child(remote), external: true}
	if r.call.offsets != nil {
		c.offsets = r.call.offsets[min(v.Word, len(r.call.offsets)):]
	}
	switch r.out.Program {
	case "exec", "builtin", "command", "coproc":
		if !remote && !r.changed {
			// They run in this shell, or as this shell would.
			c.scope.vars, c.scope.args, c.scope.known = r.call.scope.vars, r.call.scope.args, r.call.scope.known
			if r.out.Program != "exec" {
				c.scope = r.call.scope
				c.external = false
				c.scope.funcs, c.scope.alias = nil, nil
				defer func(f map[string]function, a map[string]bool) { c.scope.funcs, c.scope.alias = f, a }(r.call.scope.funcs, r.call.scope.alias)
			}
		}
	}
	if r.call.red != nil {
		c.red = nil
	}
	w := r.walker
	if c.scope == r.call.scope {
		funcs, alias, via, depth := c.scope.funcs, c.scope.alias, c.scope.via, c.scope.depth
		c.scope.funcs, c.scope.alias, c.scope.via, c.scope.depth = nil, nil, r.out.Program, depth+1
		w.command(c)
		c.scope.funcs, c.scope.alias, c.scope.via, c.scope.depth = funcs, alias, via, depth
		return
	}
	w.command(c)
}

// noOutputFile reports whether a variable that names a file has a value that
// names none: a level or a switch, with which the output goes to standard error.
func noOutputFile(name, value string) bool {
	switch {
	case strings.HasPrefix(name, "GIT_TRACE"), strings.HasPrefix(name, "GIT_REDIRECT_"), name == "BASH_XTRACEFD":
		return !strings.HasPrefix(value, "/") && len(value) < 6 && !strings.Contains(value, ".")
	case name == "LESSHISTFILE":
		return value == "-"
	}
	return false
}

// innerWords fills in what find and xargs put into the command.
func (r *reader) innerWords(words []catalog.Word, v *catalog.Value) []catalog.Word {
	switch r.out.Use.Entry.Name {
	case "find", "fd":
		return r.found(words, v)
	case "xargs":
		return r.appended(words)
	}
	return words
}

// found replaces {} by the files that a search finds, one or all at once. fd
// appends them to a command that has no place for them.
func (r *reader) found(words []catalog.Word, v *catalog.Value) []catalog.Word {
	kind, fd := catalog.Partial, r.out.Use.Entry.Name == "fd"
	if fd && (v.Option == "-X" || v.Option == "--exec-batch") ||
		!fd && v.End < len(r.call.words) && r.call.words[v.End].Text == "+" {
		kind = catalog.Many
	}
	file := catalog.Open(kind, "", r.start()+"/**", string(catalog.Hole), false)
	if fd && !slices.ContainsFunc(words, hasPlace) {
		words = append(words[:len(words):len(words)], file)
	}
	return replaced(words, "{}", file)
}

// hasPlace reports whether a word has a place where fd puts a file's name, or
// a part of it.
func hasPlace(w catalog.Word) bool {
	text := templateOf(w)
	for _, place := range []string{"{}", "{/}", "{//}", "{.}", "{/.}"} {
		if strings.Contains(text, place) {
			return true
		}
	}
	return false
}

// start is where a search begins, if it is one folder.
func (r *reader) start() string {
	start := "."
	n := 0
	for i := range r.out.Use.Values {
		v := &r.out.Use.Values[i]
		if v.Role == catalog.Read && v.Option == "" {
			if n++; n == 1 {
				start = pathText(r.call.words[v.Word])
			}
		}
	}
	if n > 1 {
		return "…"
	}
	return strings.TrimSuffix(start, "/")
}

// replaced puts a word where mark stands.
func replaced(words []catalog.Word, mark string, by catalog.Word) []catalog.Word {
	out := make([]catalog.Word, len(words))
	for i, w := range words {
		out[i] = w
		at := strings.Index(templateOf(w), mark)
		if at < 0 || mark == "" {
			continue
		}
		if templateOf(w) == mark {
			out[i] = by
			continue
		}
		text := templateOf(w)
		out[i] = catalog.Open(catalog.Partial, text[:at], strings.ReplaceAll(text, mark, by.Shown()),
			strings.ReplaceAll(text, mark, string(catalog.Hole)), at == 0 && by.Option || at > 0 && text[0] == '-')
	}
	return out
}

// appended gives a command of xargs the words that it reads.
func (r *reader) appended(words []catalog.Word) []catalog.Word {
	mark := ""
	for i := range r.out.Use.Values {
		v := &r.out.Use.Values[i]
		switch v.Option {
		case "-I", "--replace", "-i", "-J":
			mark = "{}"
			if w := r.word(v); w.Kind == catalog.Literal && w.Text != "" {
				mark = w.Text
			}
		}
	}
	for _, w := range r.call.words[1:] {
		if w.Text == "-i" || w.Text == "--replace" {
			mark = "{}"
		}
		if len(words) > 0 && w == words[0] {
			break
		}
	}
	lines := false // switches the replacing off again
	for _, w := range r.call.words[1:] {
		if len(words) > 0 && w == words[0] {
			break
		}
		if len(w.Text) > 1 && w.Text[0] == '-' && (w.Text[1] != '-' && strings.ContainsAny(w.Text, "Lnl") || strings.HasPrefix(w.Text, "--max") || strings.HasPrefix(w.Text, "--ma")) {
			lines = true
		}
		if len(w.Text) > 2 && w.Text[0] == '-' && w.Text[1] != '-' && strings.Contains(w.Text[1:], "i") && mark == "" {
			mark, lines = "{}", true // a cluster with -i
		}
	}
	if mark != "" {
		words = replaced(words, mark, catalog.Unknown(catalog.Partial))
		if !lines {
			return words
		}
	}
	return append(words[:len(words):len(words)], catalog.Unknown(catalog.Many))
}

// shellValue reads a value that is shell text.
func (r *reader) shellValue(v *catalog.Value, remote bool) {
	word := r.word(v)
	if v.End > v.Word+1 {
		word = joined(r.call.words, v)
	}
	s := r.child(remote)
	r.foreignSyntax(word, v.Word)
	// What follows the text are its positional parameters.
	rest := r.call.words[min(v.End, len(r.call.words)):]
	if isShell(r.out.Use.Entry.Name) {
		s.known = true
		if len(rest) > 1 {
			s.args = rest[1:]
		}
		for _, a := range s.args {
			if a.Kind == catalog.Many || a.Kind == catalog.Glob {
				s.known, s.args = false, nil
				break
			}
		}
	}
	r.shellText(word, s, r.call.offset(v.Word))
}

func isShell(name string) bool {
	switch name {
	case "bash", "sh", "dash", "ash", "zsh", "ksh", "mksh":
		return true
	}
	return false
}

// foreignSyntax notes a text for a shell whose language is not bash's.
func (r *reader) foreignSyntax(text catalog.Word, word int) {
	switch r.out.Use.Entry.Name {
	case "zsh", "fish", "csh", "nu", "xonsh", "elvish":
		if !plainEverywhere(templateOf(text)) {
			r.unknown(word, "foreign-shell", r.out.Program+" reads this text in its own way")
		}
	}
}

// plainEverywhere reports whether a text means the same to every shell: words,
// quotes, pipes and lists.
func plainEverywhere(text string) bool {
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c >= 0x80:
		case strings.IndexByte(" \n'\",./_-+:|;@%", c) >= 0:
		case c == '&' && i+1 < len(text) && text[i+1] == '&':
			i++
		default:
			return false
		}
	}
	return !strings.ContainsRune(text, catalog.Hole)
}

// shellText reads a text with a shell of its own.
func (r *reader) shellText(word catalog.Word, s *scope, at int) {
	text := templateOf(word)
	if text == string(catalog.Hole) {
		r.add(&Call{Program: "?", Effects: detail.Opaque, Risk: detail.High, Via: s.via, Depth: s.depth, Remote: s.remote}, at)
		r.problem(at, "open-text", "the text that a shell reads is not known")
		return
	}
	r.shell(text, s, at)
}

// program reads the name of a program that is started with words of its own.
func (r *reader) program(word catalog.Word, v *catalog.Value) {
	at := r.call.offset(v.Word)
	if word.Kind == catalog.Literal && word.Text == "" {
		return
	}
	many := catalog.Unknown(catalog.Many)
	r.command(call{words: []catalog.Word{word, many}, at: at, scope: r.child(false), external: true})
}

// split reads a text that becomes words of the same program, as by env -S.
func (r *reader) split(u *catalog.Use, v *catalog.Value) {
	word := r.word(v)
	if word.Kind != catalog.Literal {
		r.unknown(v.Word, "open-text", "the text that becomes a command is not known")
		return
	}
	fields, ok := splitWords(word.Text)
	if !ok {
		r.unknown(v.Word, "split", "the text that becomes a command is not understood")
		return
	}
	words := make([]catalog.Word, 0, len(fields)+4)
	words = append(words, r.call.words[0])
	for _, f := range fields {
		words = append(words, catalog.Word{Text: f})
	}
	words = append(words, r.call.words[min(v.End, len(r.call.words)):]...)
	if r.call.scope.depth > maxDepth || len(words) > 4096 {
		r.unknown(v.Word, "too-deep", "the text is split deeper than is read")
		return
	}
	c := *r.call
	c.words, c.offsets, c.at = words, nil, r.call.offset(v.Word)
	inner := reader{walker: r.walker, call: &c, out: r.out, key: r.key, stdin: r.stdin, base: r.base, changed: r.changed}
	c.scope = r.fork(r.call.scope)
	c.scope.depth++
	var use catalog.Use
	u.Entry.InterpretTo(words, &use)
	inner.apply(&use)
	r.call.env, r.pass = c.env, inner.pass
}

// splitWords splits as env -S does (coreutils manual, env invocation), as far
// as no variable occurs.
func splitWords(text string) ([]string, bool) {
	var out []string
	var b strings.Builder
	in, quote := false, byte(0)
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '\\' && quote == '\'':
			if i+1 < len(text) && (text[i+1] == '\'' || text[i+1] == '\\') {
				i++
			}
			b.WriteByte(text[i])
		case c == '\\':
			if i+1 == len(text) {
				return nil, false
			}
			i++
			in = true
			switch text[i] {
			case 'f', 'n', 'r', 't', 'v':
				b.WriteByte("\f\n\r\t\v"[strings.IndexByte("fnrtv", text[i])])
			case '_':
				if quote != 0 {
					b.WriteByte(' ')
					break
				}
				if b.Len() > 0 {
					out = append(out, b.String())
					b.Reset()
				}
				in = false
			case '#', '$', '"', '\'', '\\':
				b.WriteByte(text[i])
			default:
				return nil, false
			}
		case quote != 0:
			switch {
			case c == quote:
				quote = 0
			case c == '$' && quote == '"':
				return nil, false
			default:
				b.WriteByte(c)
			}
		case c == '\'' || c == '"':
			quote, in = c, true
		case c == '$':
			return nil, false
		case c == '#' && !in:
			i = len(text)
		case c == ' ' || c >= '\t' && c <= '\r':
			if in {
				out = append(out, b.String())
				b.Reset()
				in = false
			}
		default:
			b.WriteByte(c)
			in = true
		}
	}
	if quote != 0 {
		return nil, false
	}
	if in {
		out = append(out, b.String())
	}
	return out, true
}

// setting reads KEY=value, or KEY value, of a group of settings.
func (r *reader) setting(u *catalog.Use, v *catalog.Value) {
	word := r.word(v)
	text := templateOf(word)
	cut := strings.IndexAny(text, "= ")
	key, value := text, ""
	if cut >= 0 {
		key, value = text[:cut], strings.TrimLeft(text[cut+1:], " =")
	}
	if strings.ContainsRune(key, catalog.Hole) {
		r.unknown(v.Word, "setting", "which setting it is is not known")
		return
	}
	if v.Arg == "sysctl" && cut < 0 {
		return // shown, not set
	}
	known, role, arg, effects, risk := u.Entry.Setting(v.Arg, key, value)
	if !known {
		r.unknown(v.Word, "setting", "the setting "+key+" is not in the catalog")
		return
	}
	r.out.Effects |= effects
	u.Risk = max(u.Risk, risk)
	if role == catalog.NoRole || value == "" {
		return
	}
	w := catalog.Word{Text: value}
	if strings.ContainsRune(value, catalog.Hole) {
		w = openWord(value)
	}
	if role == catalog.Shell && strings.HasPrefix(strings.ToLower(key), "alias.") {
		rest, bang := strings.CutPrefix(value, "!")
		if !bang {
			r.unknown(v.Word, "alias", "the call defines a new command of "+r.out.Program)
			r.aliased(u, value)
			return
		}
		if w.Kind == catalog.Literal {
			w.Text = rest
		} else {
			w = openWord(rest)
		}
	}
	if e := role.Effects(); w.Kind != catalog.Literal || !catalog.NoFile(w.Text) {
		r.out.Effects |= e
	}
	at := r.call.offset(v.Word)
	switch role {
	case catalog.Shell:
		if key := strings.ToLower(key); w.Kind == catalog.Literal && (w.Text == "none" || (w.Text == "true" || w.Text == "false") && (key == "core.fsmonitor" || strings.HasPrefix(key, "pager."))) {
			return // a switch, no command
		}
		r.broughtAlong(w, func() { r.shellText(w, r.child(false), at) })
	case catalog.Program:
		r.program(w, v)
	case catalog.Read, catalog.Write, catalog.Delete, catalog.Config, catalog.Plugin, catalog.Script:
		r.path(role, w)
	case catalog.Host, catalog.URL:
		r.host(w)
	case catalog.Code:
		r.code(arg, w, at)
	}
}

// aliased adds what a command would do that the call gives another name.
func (r *reader) aliased(u *catalog.Use, text string) {
	words := []catalog.Word{r.call.words[0]}
	for _, f := range strings.Fields(text) {
		words = append(words, catalog.Word{Text: strings.Trim(f, "'\"")})
	}
	var other catalog.Use
	u.Entry.InterpretTo(words, &other)
	r.out.Effects |= other.Effects
	u.Risk = max(u.Risk, other.Risk)
}

// standardInput reads what a call takes from its standard input.
func (r *reader) standardInput(u *catalog.Use) {
	at := r.key
	if r.stdin.at >= 0 {
		at = r.stdin.at
	}
	switch u.Stdin {
	case catalog.Shell, catalog.RemoteShell:
		switch r.stdin.kind {
		case literalInput:
			if u.Entry.Name == "source" {
				r.sourced(catalog.Word{Text: r.stdin.text}, at)
				return
			}
			s := r.child(u.Stdin == catalog.RemoteShell)
			s.stdin = source{kind: unknownInput, at: -1}
			// Operands after -s are positional parameters, which ones is not
			// followed.
			s.known = len(r.call.words) == 1
			word := catalog.Word{Text: r.stdin.text}
			r.foreignSyntax(word, 0)
			r.shellText(word, s, at)
		case inherited:
			r.out.Effects |= detail.Door
			if u.Stdin == catalog.Shell {
				r.content("interactive", r.out.Program+" reads commands from the terminal")
			}
		default:
			r.content("open-input", "what "+r.out.Program+" reads as commands is not known")
		}
	case catalog.Code:
		switch r.stdin.kind {
		case literalInput:
			word := catalog.Word{Text: r.stdin.text}
			if strings.ContainsRune(r.stdin.text, catalog.Hole) {
				word = openWord(r.stdin.text)
			}
			r.code(u.StdinArg, word, at)
		case inherited:
			r.out.Effects |= detail.Door
			r.content("interactive", r.out.Program+" reads its program from the terminal")
		default:
			r.content("open-input", "the program that "+r.out.Program+" reads is not known")
		}
	}
}

// variables follows the variables that are set for the call.
func (r *reader) variables(program string, builtin bool) {
	s := r.call.scope
	if builtin && len(r.call.env) == 0 || len(s.env) == 0 && len(r.call.env) == 0 {
		return
	}
	for _, list := range [2][]setting{s.env, r.call.env} {
		for _, e := range list {
			r.variable(e, program, builtin)
		}
	}
}

func (r *reader) variable(e setting, program string, builtin bool) {
	if builtin {
		return
	}
	effect := r.catalog.Variable(e.name, program)
	literalValue := e.value.Kind == catalog.Literal
	if effect == catalog.Harmless || literalValue && (e.value.Text == "" && effect != catalog.Library || e.value.Text == "/dev/null") {
		return
	}
	if strings.HasPrefix(e.name, "LESSOPEN") && literalValue {
		e.value = catalog.Word{Text: strings.TrimLeft(e.value.Text, "|-")} // less(1), INPUT PREPROCESSOR
	}
	switch effect {
	case catalog.Library:
		r.content("variable", e.name+" changes which code runs")
	case catalog.Configures:
		r.content("variable", e.name+" changes the configuration, which can start programs")
		if literalValue && strings.Contains(e.value.Text, "://") {
			r.out.Effects |= detail.Contacts
			r.host(e.value)
		}
	case catalog.ShellText:
		child := r.child(false)
		child.env = nil // the variable would be found again and again
		r.broughtAlong(e.value, func() { r.shellText(e.value, child, r.key) })
	case catalog.ProgramPath:
		many := catalog.Unknown(catalog.Many)
		child := r.child(false)
		child.env = nil
		r.command(call{words: []catalog.Word{e.value, many}, at: r.key, scope: child, external: true})
	case catalog.WritesFile:
		if literalValue && noOutputFile(e.name, e.value.Text) {
			return
		}
		r.out.Effects |= detail.Writes
		r.path(catalog.Write, e.value)
	case catalog.ContactsHost:
		if r.out.Effects.Has(detail.Contacts) {
			r.host(e.value)
		}
	}
}
