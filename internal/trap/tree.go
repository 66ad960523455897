package trap

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// maxDepth is how deep text inside text is followed: bash -c '…' and the like.
const maxDepth = 3

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
	errexit  bool            // set -e
	nounset  bool            // set -u
	pipefail bool            // set -o pipefail

	// What it does anywhere.
	pipeStatus  bool // looks at PIPESTATUS
	crontabList bool // lists the crontab
	utf8        bool // sets the encoding of python's output

	lookahead int // how many more nodes may be looked at ahead of their turn
}

// place tells where a statement stands.
type place struct {
	readLoop bool // in a loop whose standard input is what read reads
	piped    bool // standard output goes into a pipe
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

func (f *finder) file(file *syntax.File) {
	f.known, f.assigned = make(map[string]bool), make(map[string]bool)
	f.pipeStatus = strings.Contains(f.text, "PIPESTATUS")
	f.crontabList = strings.Contains(f.text, "crontab -l")
	f.utf8 = strings.Contains(f.text, "PYTHONUTF8") || strings.Contains(f.text, "PYTHONIOENCODING")
	f.lookahead = 1000 + len(f.text)
	f.stmts(file.Stmts, place{})
}

// nested looks at a word that another shell will parse.
func (f *finder) nested(w *syntax.Word, errexit bool) {
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
	sub := finder{text: text, hints: f.hints, base: f.base, inner: true, depth: f.depth + 1, parser: f.parser, errexit: errexit}
	if !f.inner {
		start := int(w.Pos().Offset())
		sub.base += start
		// Inside plain quotes every byte stands for itself.
		if len(w.Parts) == 1 && start+1+len(text) <= len(f.text) && f.text[start+1:start+1+len(text)] == text {
			sub.base, sub.inner = sub.base+1, false
		}
	}
	sub.file(file)
	f.hints = sub.hints
}

func (f *finder) stmts(list []*syntax.Stmt, p place) {
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
	f.redirections(s, p)
	for _, redirect := range s.Redirs {
		f.word(redirect.Word)
		f.word(redirect.Hdoc)
		switch redirect.Op {
		case syntax.RdrIn, syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
			fed = true
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
			if n := len(c.Cond); n > 0 && f.hidesExit(c.Cond[n-1]) {
				f.add(keyPipeExit, c.Cond[n-1])
			}
			f.stmts(c.Cond, p)
			f.stmts(c.Then, p)
		}
	case *syntax.WhileClause:
		if fed && reads(c.Cond) {
			p.readLoop = true
		}
		f.stmts(c.Cond, place{piped: p.piped})
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

// reads tells whether a loop's condition is the builtin read.
func reads(cond []*syntax.Stmt) bool {
	for _, s := range cond {
		if c, ok := callOf(s); ok && c.is("read", "mapfile", "readarray") {
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
			f.stmts(n.Stmts, place{})
			return false
		case *syntax.ProcSubst:
			f.stmts(n.Stmts, place{})
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
		}
		return true
	})
}

// knows notes that somebody has looked at the variables of a word.
func (f *finder) knows(w *syntax.Word) {
	if w == nil {
		return
	}
	for _, part := range flat(w) {
		if p, ok := part.(*syntax.ParamExp); ok && p.Param != nil {
			f.known[p.Param.Value] = true
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
			if _, ok := part.(*syntax.CmdSubst); ok {
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
