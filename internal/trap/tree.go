package trap

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// maxDepth is how deep text inside text is followed: bash -c '…' and the like.
const maxDepth = 3

// maxLevels is how deep lists of statements inside one another are followed.
// Nobody writes more, and the stack for it costs more than the rest.
const maxLevels = 200

// maxRedirections is how many of one command are looked at together.
const maxRedirections = 16

// maxNested is the longest inner text that is parsed, in bytes.
const maxNested = 1 << 16

// finder walks a parsed text in the order of its source.
type finder struct {
	text  string
	hints []Hint

	base   int  // where the text begins in the outermost one
	inner  bool // positions inside are not those of the outermost text
	depth  int
	parser *syntax.Parser // for inner text, nil until it is needed

	// What the text has done so far.
	known    map[string]bool // variables that are shown not to be empty
	assigned map[string]bool // variables that are assigned at all
	found    map[string]bool // variables that hold process numbers found by a pattern
	fetched  map[string]bool // variables that hold what a download brought
	dirs     map[string]bool // directories that are shown to exist, as spelled
	errexit  bool            // set -e
	nounset  bool            // set -u
	pipefail bool            // set -o pipefail

	// What it does anywhere.
	lastpipe    bool // sets or unsets the option of that name
	pipeStatus  bool // looks at PIPESTATUS
	crontabList bool // lists the crontab
	utf8        bool // sets the encoding of python's output

	substitution place // where a substitution in the present words stands

	level     int // how deep the present list stands
	lookahead int // how many more nodes may be looked at ahead of their turn
}

// place tells where a statement stands.
type place struct {
	readLoop bool // in a loop whose standard input is what read reads
	piped    bool // standard output goes into a pipe
	captured bool // standard output becomes part of a word
}

func (f *finder) add(key string, node syntax.Node) {
	for _, hint := range f.hints {
		if hint.Key == key {
			return
		}
	}
	at := f.base
	if !f.inner {
		at += int(node.Pos().Offset())
	}
	f.hints = append(f.hints, Hint{key, at})
}

func (f *finder) has(key string) bool {
	for _, hint := range f.hints {
		if hint.Key == key {
			return true
		}
	}
	return false
}

func (f *finder) file(file *syntax.File) { f.start(file, 0) }

// start is file for a text with so many positional parameters.
func (f *finder) start(file *syntax.File, args int) {
	if f.known == nil {
		f.known, f.assigned, f.found = make(map[string]bool), make(map[string]bool), make(map[string]bool)
		f.fetched, f.dirs = make(map[string]bool), make(map[string]bool)
	}
	f.lastpipe = strings.Contains(f.text, "lastpipe")
	f.pipeStatus = strings.Contains(f.text, "PIPESTATUS")
	f.crontabList = strings.Contains(f.text, "crontab -l")
	f.utf8 = strings.Contains(f.text, "PYTHONUTF8") || strings.Contains(f.text, "PYTHONIOENCODING")
	f.lookahead = 1000 + len(f.text)
	if args > 0 {
		f.knowsPositional(min(args, 9))
	}
	f.stmts(file.Stmts, place{})
}

// shellState is what a shell is started with.
type shellState struct {
	errexit, pipefail bool
	args              int // positional parameters
}

// nested looks at a word that another shell will parse, or the same one: then
// same is its finder, else nil.
func (f *finder) nested(w *syntax.Word, with shellState, same *finder) {
	text, ok := static(w)
	if !ok || f.depth >= maxDepth || len(text) > maxNested {
		return
	}
	if f.parser == nil {
		f.parser = syntax.NewParser()
	}
	file, err := f.parser.Parse(strings.NewReader(text), "")
	if err != nil {
		return
	}
	sub := finder{text: text, hints: f.hints, base: f.base, inner: true, depth: f.depth + 1, parser: f.parser, errexit: with.errexit, pipefail: with.pipefail}
	if same != nil {
		sub.known, sub.assigned, sub.found, sub.fetched, sub.dirs = same.known, same.assigned, same.found, same.fetched, same.dirs
		sub.errexit, sub.nounset, sub.pipefail = same.errexit, same.nounset, same.pipefail
	}
	if !f.inner {
		start := int(w.Pos().Offset())
		sub.base += start
		// Inside plain quotes every byte stands for itself.
		if len(w.Parts) == 1 && start+1+len(text) <= len(f.text) && f.text[start+1:start+1+len(text)] == text {
			sub.base, sub.inner = sub.base+1, false
		}
	}
	sub.start(file, with.args)
	f.hints = sub.hints
}

func (f *finder) stmts(list []*syntax.Stmt, p place) {
	if f.level == maxLevels {
		return
	}
	f.level++
	defer func() { f.level-- }()
	var s sequence
	for _, stmt := range list {
		f.inSequence(&s, stmt)
		f.stmt(stmt, p)
	}
}

// stmt looks at a statement: a pipeline, or something else as a pipeline of one.
func (f *finder) stmt(s *syntax.Stmt, p place) {
	if s == nil {
		return
	}
	if binary, ok := s.Cmd.(*syntax.BinaryCmd); ok && !isPipe(binary.Op) {
		f.list(binary)
		f.stmt(binary.X, p)
		f.stmt(binary.Y, p)
		return
	}
	members := pipeline(s)
	f.pipe(members)
	for i, member := range members {
		q := p
		q.piped = p.piped || i < len(members)-1
		q.readLoop = p.readLoop && i == 0 && !member.Background
		f.member(member, q, i > 0)
	}
}

func isPipe(op syntax.BinCmdOperator) bool { return op == syntax.Pipe || op == syntax.PipeAll }

// pipeline lists the members of a pipeline in their order.
func pipeline(s *syntax.Stmt) []*syntax.Stmt {
	var members []*syntax.Stmt
	for {
		binary, ok := s.Cmd.(*syntax.BinaryCmd)
		if !ok || !isPipe(binary.Op) {
			break
		}
		members = append(members, binary.Y)
		s = binary.X
	}
	members = append(members, s)
	for i, j := 0, len(members)-1; i < j; i, j = i+1, j-1 {
		members[i], members[j] = members[j], members[i]
	}
	return members
}

// member looks at one member of a pipeline. fed tells that it reads from one.
func (f *finder) member(s *syntax.Stmt, p place, fed bool) {
	outside := f.substitution
	f.substitution = place{readLoop: p.readLoop, captured: true}
	defer func() { f.substitution = outside }()
	f.redirections(s, p)
	for _, redirect := range s.Redirs {
		f.word(redirect.Word)
		f.word(redirect.Hdoc)
		switch redirect.Op {
		case syntax.RdrIn, syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
			if redirect.N == nil || redirect.N.Value == "0" {
				fed, p.readLoop = true, false
			}
		}
	}
	switch c := s.Cmd.(type) {
	case *syntax.CallExpr:
		f.assigns(c.Assigns, len(c.Args) == 0)
		for _, word := range c.Args {
			f.word(word)
		}
		if call, ok := callOf(s); ok {
			f.call(s, c, call, p)
		}
	case *syntax.BinaryCmd:
		f.stmt(s, p)
	case *syntax.Subshell:
		f.stmts(c.Stmts, p)
	case *syntax.Block:
		f.stmts(c.Stmts, p)
	case *syntax.IfClause:
		for ; c != nil; c = c.Else {
			f.condition(c.Cond)
			f.stmts(c.Cond, p)
			f.stmts(c.Then, p)
		}
	case *syntax.WhileClause:
		if fed && reads(c.Cond) {
			p.readLoop = true
		}
		f.condition(c.Cond)
		f.stmts(c.Cond, place{piped: p.piped, captured: p.captured})
		for _, cond := range c.Cond {
			if call, ok := callOf(cond); ok && call.is("read") {
				for _, a := range call.args[1:] {
					f.known[a.text] = true
				}
			}
		}
		f.stmts(c.Do, p)
	case *syntax.ForClause:
		f.loop(c)
		f.stmts(c.Do, p)
	case *syntax.CaseClause:
		f.word(c.Word)
		f.knows(c.Word)
		for _, item := range c.Items {
			f.stmts(item.Stmts, p)
		}
	case *syntax.FuncDecl:
		f.stmt(c.Body, place{})
	case *syntax.TimeClause:
		f.stmt(c.Stmt, p)
	case *syntax.CoprocClause:
		f.stmt(c.Stmt, place{})
	case *syntax.DeclClause:
		f.declaration(c)
	case *syntax.TestClause, *syntax.ArithmCmd, *syntax.LetClause:
		f.expression(c)
	}
}

// condition looks at what if, while and until decide by.
func (f *finder) condition(list []*syntax.Stmt) {
	if len(list) == 0 {
		return
	}
	last := list[len(list)-1]
	if f.hidesExit(last) {
		f.add(keyPipeExit, last)
	}
	if decl, ok := last.Cmd.(*syntax.DeclClause); ok && substitutes(decl) {
		f.add(keyDeclareHidesExit, decl)
	}
}

// reads tells whether a loop's condition is the builtin read.
func reads(cond []*syntax.Stmt) bool {
	for _, s := range cond {
		if c, ok := callOf(s); ok && c.is("read", "mapfile", "readarray") && !c.short("u") && !redirectsInput(s) {
			return true
		}
	}
	return false
}

// word looks at the statements inside a word and at what it tells about
// variables.
func (f *finder) word(w *syntax.Word) {
	if w == nil {
		return
	}
	if len(w.Parts) == 1 {
		switch w.Parts[0].(type) {
		case *syntax.Lit, *syntax.SglQuoted:
			return
		}
	}
	f.expression(w)
}

// expression does so for anything that holds words.
func (f *finder) expression(node syntax.Node) {
	_, test := node.(*syntax.TestClause)
	syntax.Walk(node, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CmdSubst:
			f.stmts(n.Stmts, f.substitution)
			return false
		case *syntax.ProcSubst:
			f.stmts(n.Stmts, place{captured: n.Op == syntax.CmdIn})
			return false
		case *syntax.ParamExp:
			if n.Param == nil {
				return true
			}
			guards := n.Exp != nil && (n.Exp.Op == syntax.ErrorUnset || n.Exp.Op == syntax.ErrorUnsetOrNull ||
				n.Exp.Op == syntax.AssignUnset || n.Exp.Op == syntax.AssignUnsetOrNull)
			if test || guards {
				f.known[n.Param.Value] = true
			}
			if n.Param.Value == "#" {
				f.knowsPositional(9)
			}
		case *syntax.UnaryTest:
			if w, ok := n.X.(*syntax.Word); ok && n.Op == syntax.TsDirect {
				f.seesDirectory(w)
			}
		}
		return true
	})
}

// knowsPositional notes that there are so many positional parameters.
func (f *finder) knowsPositional(n int) {
	for i := range n {
		f.known[string(rune('1'+i))] = true
	}
	f.known["@"], f.known["*"] = true, true
}

// seesDirectory notes that a directory is there, or that somebody asked.
func (f *finder) seesDirectory(w *syntax.Word) {
	if dir := strings.TrimSuffix(spelled(w), "/"); dir != "" {
		f.dirs[dir] = true
	}
}

// knows notes that somebody has looked at the variables of a word.
func (f *finder) knows(w *syntax.Word) {
	if w == nil {
		return
	}
	for _, part := range flat(w) {
		if p, ok := part.(*syntax.ParamExp); ok && p.Param != nil {
			f.known[p.Param.Value] = true
			if p.Param.Value == "#" {
				f.knowsPositional(9)
			}
		}
	}
}

// assigns reads assignments. Those in front of a command hold for it only.
func (f *finder) assigns(list []*syntax.Assign, lasting bool) {
	for _, a := range list {
		f.word(a.Value)
		if a.Array != nil {
			f.expression(a.Array)
		}
		if lasting && a.Name != nil && !a.Naked {
			f.assigned[a.Name.Value] = true
			f.known[a.Name.Value] = f.notEmpty(a.Value)
			f.found[a.Name.Value], f.fetched[a.Name.Value] = sources(a.Value)
		}
	}
}

// notEmpty tells whether a word holds at least one literal character, or a
// variable that is known.
func (f *finder) notEmpty(w *syntax.Word) bool {
	if w == nil {
		return false
	}
	for _, part := range flat(w) {
		if s, ok := staticPart(part, true); ok && s != "" {
			return true
		}
		if subst, ok := part.(*syntax.CmdSubst); ok && sure(subst) {
			return true
		}
		if name, ok := plainVariable(part); ok && (f.known[name] || neverEmpty(name)) {
			return true
		}
		if p, ok := part.(*syntax.ParamExp); ok && p.Exp != nil && f.notEmpty(p.Exp.Word) {
			switch p.Exp.Op {
			case syntax.DefaultUnsetOrNull, syntax.AssignUnsetOrNull, syntax.ErrorUnsetOrNull:
				return true
			}
		}
	}
	return false
}

// sources tells whether a value is the output of a search for processes, and
// whether it is that of a download.
func sources(w *syntax.Word) (found, fetched bool) {
	if w == nil {
		return false, false
	}
	parts := flat(w)
	if len(parts) != 1 {
		return false, false
	}
	subst, ok := parts[0].(*syntax.CmdSubst)
	if !ok || len(subst.Stmts) != 1 {
		return false, false
	}
	return searchesProcesses(subst.Stmts), fetches(subst.Stmts)
}

// declaration looks at declare, local, export and the like.
func (f *finder) declaration(c *syntax.DeclClause) {
	f.assigns(c.Args, true)
	if f.errexit && substitutes(c) {
		f.add(keyDeclareHidesExit, c)
	}
}

// substitutes tells whether a declaration takes a value from a command.
func substitutes(c *syntax.DeclClause) bool {
	for _, a := range c.Args {
		if a.Value == nil || a.Naked {
			continue
		}
		for _, part := range flat(a.Value) {
			if subst, ok := part.(*syntax.CmdSubst); ok && !harmless(subst) {
				return true
			}
		}
	}
	return false
}

// loop looks at the head of a for loop.
func (f *finder) loop(c *syntax.ForClause) {
	iter, ok := c.Loop.(*syntax.WordIter)
	if !ok {
		f.expression(c.Loop)
		return
	}
	for _, item := range iter.Items {
		f.word(item)
		f.loopItem(item)
	}
	f.known[iter.Name.Value], f.assigned[iter.Name.Value] = true, true
}
