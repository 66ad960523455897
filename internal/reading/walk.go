package reading

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"vogt/internal/catalog"
	"vogt/internal/detail"
)

// walker evaluates one text.
type walker struct {
	rd      *Reader
	catalog *catalog.Catalog
	reading *Reading
	collect *collector
	place   Place
	text    string // what is being walked, for showing parts of it
	steps   int
	calls   int // that were added, also those that were dropped again
	xtrace  bool
	trapped bool           // a trap was set, which runs later
	slab    []catalog.Word // words are cut from it
	places  []int          // as slab, for their offsets
	jobs    []*job         // to be used again
	scopes  []*scope       // as jobs
	quiet   int            // above zero while a loop is walked only to learn what it assigns
	output  source
	printed []source // of process substitutions, in the order of their words
	seen    map[string]bool
}

// collector gathers calls; keys are where they belong in the text.
type collector struct {
	calls []*Call
	keys  []int
}

func (c *collector) sort() {
	if slices.IsSorted(c.keys) {
		return
	}
	order := make([]int, len(c.keys))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return c.keys[a] - c.keys[b] })
	calls := make([]*Call, len(order))
	for i, k := range order {
		calls[i] = c.calls[k]
	}
	c.calls = calls
}

// session is what one reading needs besides its result. It is used again.
type session struct {
	walker
	reading   Reading
	collector collector
	scope     scope
}

// begin takes a session for one reading; end gives it back and returns what
// was read.
func (rd *Reader) begin(at Place) *session {
	n, _ := rd.sessions.Get().(*session)
	if n == nil {
		n = &session{}
	}
	n.collector = collector{calls: make([]*Call, 0, 4), keys: n.collector.keys[:0]}
	n.walker = walker{
		rd: rd, catalog: rd.catalog, reading: &n.reading, collect: &n.collector, place: at,
		slab: n.slab, places: n.places, jobs: n.jobs, scopes: n.scopes,
	}
	n.scope = newScope(at)
	return n
}

func (rd *Reader) end(n *session) Reading {
	n.finish()
	r := n.reading
	n.reading, n.scope, n.collector.calls = Reading{}, scope{}, nil
	n.walker = walker{slab: n.slab, places: n.places, jobs: n.jobs, scopes: n.scopes}
	rd.sessions.Put(n)
	return r
}

// fork is a copy of a scope for a subshell, until it is released.
func (w *walker) fork(s *scope) *scope {
	if !w.work(s.size() / 4) {
		// Nothing more is read: what is known no longer matters.
		return &scope{depth: s.depth, pin: s.pin}
	}
	n := len(w.scopes)
	if n == 0 {
		c := &scope{}
		s.copyTo(c)
		return c
	}
	c := w.scopes[n-1]
	w.scopes = w.scopes[:n-1]
	s.copyTo(c)
	return c
}

// join makes s what holds after either s or o.
func (w *walker) join(s, o *scope) {
	n := (s.size() + o.size()) / 4
	for name, f := range s.funcs {
		n += len(f.bodies) * len(o.funcs[name].bodies) / 2
	}
	if w.work(n) {
		s.join(o)
	}
}

func (w *walker) release(s *scope) {
	*s = scope{}
	w.scopes = append(w.scopes, s)
}

// room returns empty lists with room for n words and their offsets.
func (w *walker) room(n int) ([]catalog.Word, []int) {
	if cap(w.slab)-len(w.slab) < n {
		w.slab = make([]catalog.Word, 0, max(8, n))
		w.places = make([]int, 0, max(8, n))
	}
	at := len(w.slab)
	w.slab, w.places = w.slab[:at+n], w.places[:at+n]
	return w.slab[at : at : at+n], w.places[at : at : at+n]
}

// add records a call.
func (w *walker) add(c *Call, key int) {
	if w.quiet > 0 {
		return
	}
	if w.calls++; w.calls > maxCalls {
		return // finish makes the whole text opaque
	}
	c.Offset = key
	w.collect.calls = append(w.collect.calls, c)
	w.collect.keys = append(w.collect.keys, key)
}

// opaque records that something cannot be known.
func (w *walker) opaque(at int, key, text string) {
	w.add(&Call{Effects: detail.Opaque, Risk: detail.High}, at)
	w.problem(at, key, text)
}

func (w *walker) problem(at int, key, text string) {
	if w.quiet > 0 {
		return
	}
	id := key + "\x00" + text
	if w.seen[id] {
		return
	}
	if w.seen == nil {
		w.seen = map[string]bool{}
	}
	if len(w.seen) < 64 {
		w.seen[id] = true
		w.reading.Problems = append(w.reading.Problems, Problem{Offset: at, Key: key, Text: text})
	}
}

// step counts work. Past the limit nothing more is read and the text is opaque.
func (w *walker) step() bool { return w.work(1) }

// work counts several steps at once. Past the limit nothing more is read, and
// finish makes the whole text opaque.
func (w *walker) work(n int) bool {
	w.steps += n
	return w.steps < maxSteps
}

// source is the text of a part of what is being walked.
func (w *walker) source(n syntax.Node) string {
	from, to := int(n.Pos().Offset()), int(n.End().Offset())
	if from < 0 || to > len(w.text) || from > to {
		return "…"
	}
	if to-from > 200 {
		return w.text[from:from+200] + "…"
	}
	return w.text[from:to]
}

func (w *walker) stmts(list []*syntax.Stmt, s *scope) {
	for _, st := range list {
		w.stmt(st, s)
	}
}

func (w *walker) stmt(st *syntax.Stmt, s *scope) {
	if !w.step() {
		return
	}
	if st.Background || st.Coprocess {
		s = w.fork(s)
		defer w.release(s)
	}
	var red *redirections
	if len(st.Redirs) > 0 {
		red = w.redirections(st.Redirs, s)
	}
	switch c := st.Cmd.(type) {
	case nil:
		if red != nil && len(red.emptied) > 0 {
			red.effects |= detail.Destroys
		}
		w.bare(red, s, s.at(st.Pos()))
		return
	case *syntax.CallExpr:
		w.callExpr(c, red, s)
		return
	case *syntax.DeclClause:
		w.declare(c, red, s)
		return
	case *syntax.FuncDecl:
		w.funcDecl(c, s)
		return
	}
	if red != nil {
		w.bare(red, s, s.at(st.Pos()))
		if red.stdin.kind != inherited {
			before := s.stdin
			// Each command of the group may take a part of it.
			s.stdin = source{kind: unknownInput, at: -1}
			defer func() { s.stdin = before }()
		}
	}
	w.output = source{kind: unknownInput, at: -1}
	w.compound(st.Cmd, s)
	if red != nil {
		w.output = source{kind: unknownInput, at: -1}
	}
}

func (w *walker) compound(cmd syntax.Command, s *scope) {
	switch c := cmd.(type) {
	case *syntax.Block:
		w.printing(c.Stmts, s)
	case *syntax.Subshell:
		sub := w.fork(s)
		w.printing(c.Stmts, sub)
		w.release(sub)
	case *syntax.BinaryCmd:
		w.binary(c, s)
	case *syntax.IfClause:
		w.ifClause(c, s)
	case *syntax.WhileClause:
		w.loop(s, 0, func(s *scope) {
			w.stmts(c.Cond, s)
			w.stmts(c.Do, s)
		})
	case *syntax.ForClause:
		w.forClause(c, s)
	case *syntax.CaseClause:
		w.caseClause(c, s)
	case *syntax.ArithmCmd:
		if c.Unsigned {
			w.opaque(s.at(c.Pos()), "not-bash", "this arithmetic belongs to another shell")
		}
		w.bashOnly(s, s.at(c.Pos()))
		w.arithmetic(c.X, s)
	case *syntax.LetClause:
		// `let` counts as a program, `((` does not.
		w.add(&Call{Program: "let", Words: []catalog.Word{{Text: "let"}}, Risk: detail.Low, Depth: s.depth, Via: s.via, Cwd: s.cwd, Adrift: s.adrift, Fell: s.fell}, s.at(c.Pos()))
		for _, x := range c.Exprs {
			w.arithmetic(x, s)
		}
	case *syntax.TestClause:
		w.bashOnly(s, s.at(c.Pos()))
		w.test(c.X, s)
	case *syntax.TimeClause:
		if c.Stmt != nil {
			w.stmt(c.Stmt, s)
		}
	case *syntax.CoprocClause:
		w.bashOnly(s, s.at(c.Pos()))
		if c.Name != nil && !compoundBody(c.Stmt.Cmd) {
			// For bash a name stands only before a compound command, and else
			// is the program.
			w.opaque(s.at(c.Pos()), "coproc", "what follows coproc is not what it seems to be")
			return
		}
		if c.Name != nil {
			name := w.single(c.Name, s)
			s.set(name.Text, value{})
			w.exported(name.Text, catalog.Unknown(catalog.Partial), s, s.at(c.Pos()))
		}
		sub := w.fork(s)
		sub.stdin = source{kind: unknownInput, at: -1}
		w.stmt(c.Stmt, sub)
	case *syntax.FuncDecl:
		w.funcDecl(c, s)
	default:
		w.opaque(s.at(cmd.Pos()), "unknown-syntax", "this construct is not understood")
	}
}

// printing walks statements and joins what they print, if all of it is known.
func (w *walker) printing(list []*syntax.Stmt, s *scope) {
	out := source{kind: literalInput, at: -1}
	for _, st := range list {
		w.output = source{kind: unknownInput, at: -1}
		w.stmt(st, s)
		_, simple := st.Cmd.(*syntax.CallExpr)
		if !simple || st.Background || w.output.kind != literalInput {
			out.kind = unknownInput
			continue
		}
		out.text += w.output.text
	}
	w.output = out
}

func (w *walker) binary(c *syntax.BinaryCmd, s *scope) {
	switch c.Op {
	case syntax.Pipe, syntax.PipeAll:
		left := w.fork(s)
		w.output = source{kind: unknownInput, at: -1}
		w.stmt(c.X, left)
		out := w.output
		switch x := c.X.Cmd.(type) {
		case *syntax.CallExpr, *syntax.Block, *syntax.Subshell:
		case *syntax.BinaryCmd:
			if x.Op != syntax.Pipe {
				out = source{kind: unknownInput, at: -1}
			}
		default:
			out = source{kind: unknownInput, at: -1}
		}
		if c.Op == syntax.PipeAll {
			w.bashOnly(s, s.at(c.OpPos))
			if w.xtrace {
				out = source{kind: unknownInput, at: -1}
			}
		}
		w.release(left)
		right := w.fork(s)
		right.stdin = out
		if right.stdin.kind == inherited {
			right.stdin = source{kind: unknownInput, at: -1}
		}
		w.stmt(c.Y, right)
		w.release(right)
	default:
		before := s.adrift
		w.stmt(c.X, s)
		moved, fell := s.adrift && !before, s.fell
		after := w.fork(s)
		if moved && c.Op == syntax.AndStmt && sure(c.X, s) {
			s.adrift = false
		}
		w.stmt(c.Y, s)
		changed := after.changes != s.changes
		if changed {
			w.join(s, after)
		}
		w.release(after)
		switch {
		case moved && changed: // the one or the other may have failed
			s.adrift, s.fell = true, ""
		case moved:
			s.adrift, s.fell = true, fell
		}
		w.output = source{kind: unknownInput, at: -1}
	}
}

// sure reports whether a statement that succeeds has changed the folder wherever
// it says so. What it cannot tell is not sure.
func sure(st *syntax.Stmt, s *scope) bool {
	if st.Negated || st.Background || st.Coprocess {
		return false
	}
	switch c := st.Cmd.(type) {
	case *syntax.CallExpr:
		name := firstName(c, s)
		switch name {
		case "", "eval", "source", ".", "builtin", "command", "exec", "trap":
			return false
		}
		return true
	case *syntax.BinaryCmd:
		return c.Op == syntax.AndStmt && sure(c.X, s) && sure(c.Y, s)
	}
	return false
}

// firstName is the program of a simple command, "" where that is not literal, or a
// function or an alias.
func firstName(c *syntax.CallExpr, s *scope) string {
	if len(c.Args) == 0 {
		return ""
	}
	name := c.Args[0].Lit()
	if _, defined := s.funcs[name]; defined || s.alias[name] {
		return ""
	}
	return name
}

func (w *walker) ifClause(c *syntax.IfClause, s *scope) {
	w.stmts(c.Cond, s)
	other := w.fork(s)
	w.stmts(c.Then, s)
	for c.Else != nil {
		c = c.Else
		if len(c.Cond) > 0 {
			w.stmts(c.Cond, other)
		}
		if len(c.Cond) == 0 {
			w.stmts(c.Then, other)
			w.join(s, other)
			return
		}
		branch := w.fork(other)
		w.stmts(c.Then, branch)
		w.join(s, branch)
	}
	w.join(s, other)
}

func (w *walker) caseClause(c *syntax.CaseClause, s *scope) {
	w.single(c.Word, s)
	before := w.fork(s)
	for _, item := range c.Items {
		for _, p := range item.Patterns {
			w.single(p, s)
		}
		branch := w.fork(before)
		if item.Op != syntax.Break {
			w.bashOnly(s, s.at(item.OpPos))
			branch = w.fork(s) // the branch before may fall through
		}
		changes := branch.changes
		w.stmts(item.Stmts, branch)
		if branch.changes != changes || item.Op != syntax.Break || s.changes != before.changes {
			w.join(s, branch)
		}
		w.release(branch)
	}
}

// loop walks a body that may run any number of times. It is first walked
// quietly until what it assigns no longer changes anything that is known.
// own is how many changes each turn makes by itself.
func (w *walker) loop(s *scope, own int, body func(*scope)) {
	// Most bodies assign nothing: then one turn tells all.
	problems, calls := len(w.reading.Problems), len(w.collect.calls)
	first := w.fork(s)
	before := first.changes
	body(first)
	if first.changes == before+own {
		w.release(first)
		return
	}
	w.collect.calls, w.collect.keys = w.collect.calls[:calls], w.collect.keys[:calls]
	for _, p := range w.reading.Problems[problems:] {
		delete(w.seen, p.Key+"\x00"+p.Text)
	}
	w.reading.Problems = w.reading.Problems[:problems]
	w.quiet++
	for range 4 {
		turn := w.fork(s)
		body(turn)
		merged := w.fork(s)
		w.join(merged, turn)
		if merged.equal(s) {
			break
		}
		*s = *merged
	}
	w.quiet--
	after := w.fork(s)
	body(after)
	w.join(s, after)
}

func (w *walker) forClause(c *syntax.ForClause, s *scope) {
	if c.Braces {
		w.opaque(s.at(c.Pos()), "not-bash", "this loop is deprecated syntax that shells read differently")
	}
	switch l := c.Loop.(type) {
	case *syntax.WordIter:
		name := l.Name.Value
		v := value{}
		if l.InPos.IsValid() {
			items := w.words(l.Items, s)
			for i, item := range items.words {
				one := valueOf(item)
				if i == 0 {
					v = one
				} else {
					v = v.join(one)
				}
			}
			if len(items.words) == 1 && items.words[0].Kind != catalog.Literal && items.words[0].Kind != catalog.Partial {
				v = value{}
			}
			if len(items.words) > 1 && v.known == anything && noOption(items.words) {
				v.known = plainWord
			}
		}
		if l.Name.Value == "IFS" || w.catalog.Matters(name) {
			w.opaque(s.at(c.Pos()), "variable", "the loop sets "+name)
		}
		w.evaluates(name, s, s.at(c.Pos()))
		run := func(s *scope) {
			s.set(name, v)
			w.stmts(c.Do, s)
		}
		if len(l.Items) > 0 && v.known == literal {
			s.set(name, v)
		}
		w.loop(s, 1, run)
	case *syntax.CStyleLoop:
		w.arithmetic(l.Init, s)
		w.loop(s, 0, func(s *scope) {
			w.arithmetic(l.Cond, s)
			w.stmts(c.Do, s)
			w.arithmetic(l.Post, s)
		})
	default:
		w.opaque(s.at(c.Pos()), "unknown-syntax", "this loop is not understood")
		w.stmts(c.Do, w.fork(s))
	}
}

// noOption keeps a loop's variable from looking like an option when no item
// does: it is one word that begins with something else.
func noOption(items []catalog.Word) bool {
	for i := range items {
		text := items[i].Text
		if items[i].Kind != catalog.Literal || text == "" || text[0] == '-' || strings.ContainsAny(text, " \t\n*?[") {
			return false
		}
	}
	return true
}

func (w *walker) funcDecl(c *syntax.FuncDecl, s *scope) {
	if c.Name == nil {
		w.opaque(s.at(c.Pos()), "not-bash", "a function without a name belongs to another shell")
		return
	}
	body := c.Body
	if b, ok := body.Cmd.(*syntax.BinaryCmd); ok {
		// For bash the function is defined in the first part of a pipeline, and
		// the rest runs now.
		sub := w.fork(s)
		sub.stdin = source{kind: unknownInput, at: -1}
		for ok {
			w.stmt(b.Y, sub)
			b, ok = b.X.Cmd.(*syntax.BinaryCmd)
		}
		w.release(sub)
		return
	}
	switch name := c.Name.Value; name {
	case "command_not_found_handle":
		// It runs when any later name is unknown: whatever it does may happen.
		w.opaque(s.at(c.Pos()), "not-found-handler", "command_not_found_handle runs whenever a program is missing")
		w.function(name, body, nil, s, s.at(c.Pos()))
	default:
		if w.trapped {
			w.opaque(s.at(c.Pos()), "trap", "a trap that was set before may run the function "+name)
		}
		if c.RsrvWord {
			w.bashOnly(s, s.at(c.Pos()))
		}
		s.define(name, function{bodies: []*syntax.Stmt{body}})
	}
}

// function walks the body of a function that is called.
func (w *walker) function(name string, body *syntax.Stmt, args []catalog.Word, s *scope, at int) {
	if len(s.calls) >= maxDepth {
		w.opaque(at, "too-deep", "functions call each other deeper than is read")
		return
	}
	if slices.Contains(s.calls, name) {
		if s.pin >= 0 && w.forks(body, name) {
			w.add(&Call{Effects: detail.Destroys, Risk: detail.Critical}, at)
			w.problem(at, "fork-bomb", name+" starts itself again without an end")
			return
		}
		w.opaque(at, "recursion", name+" calls itself; how often is not known")
		return
	}
	saved := *s
	s.calls = append(s.calls[:len(s.calls):len(s.calls)], name)
	s.args, s.known, s.pin = args, true, at
	text := w.text
	s.locals, s.inside = nil, true
	w.nest(at, func() { w.stmt(body, s) })
	w.text = text
	for _, l := range s.locals {
		s.set(l.name, l.before.join(s.lookup(l.name)))
	}
	s.calls, s.args, s.known, s.pin, s.locals, s.inside = saved.calls, saved.args, saved.known, saved.pin, saved.locals, saved.inside
	w.output = source{kind: unknownInput, at: -1}
}

// forks reports whether a body starts the function in the background or in a
// pipeline, so that each call leaves processes behind.
func (w *walker) forks(body *syntax.Stmt, name string) bool {
	found := false
	calls := func(n syntax.Node) bool {
		hit := false
		syntax.Walk(n, func(n syntax.Node) bool {
			if c, ok := n.(*syntax.CallExpr); ok && len(c.Args) > 0 && c.Args[0].Lit() == name {
				hit = true
			}
			return !hit
		})
		return hit
	}
	syntax.Walk(body, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Stmt:
			found = found || n.Background && calls(n)
		case *syntax.BinaryCmd:
			found = found || (n.Op == syntax.Pipe || n.Op == syntax.PipeAll) && calls(n)
		}
		return !found
	})
	return found
}

// nest gathers what f adds and puts it where at stands.
func (w *walker) nest(at int, f func()) {
	outer := w.collect
	w.collect = &collector{}
	f()
	inner := w.collect
	inner.sort()
	w.collect = outer
	for i := range inner.calls {
		inner.calls[i].Offset = at
		outer.calls = append(outer.calls, inner.calls[i])
		outer.keys = append(outer.keys, at)
	}
}

// substitution walks $(…) and the backquoted form. quoted says that it stands
// in double quotes.
func (w *walker) substitution(p *syntax.CmdSubst, s *scope, quoted bool) {
	if p.TempFile || p.ReplyVar {
		w.opaque(s.at(p.Pos()), "not-bash", "this substitution belongs to another shell")
	}
	out := w.output
	sub := w.fork(s)
	from, to := int(p.Left.Offset())+1, int(p.Right.Offset())
	if p.Backquotes && from <= to && to <= len(w.text) && strings.IndexByte(w.text[from:to], '\\') >= 0 {
		// Backslashes go before the text is read: what is nested begins there.
		w.shell(unescapeBackquoted(w.text[from:to], quoted), sub, s.at(p.Pos()))
	} else {
		w.stmts(p.Stmts, sub)
	}
	w.release(sub)
	w.output = out
}

// unescapeBackquoted removes the backslashes that quote inside backquotes
// (POSIX, 2.6.3).
func unescapeBackquoted(text string, quoted bool) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+1 < len(text) {
			switch c := text[i+1]; {
			case c == '$', c == '`', c == '\\', c == '"' && quoted:
				i++
			}
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

// process walks <(…) and >(…).
func (w *walker) process(p *syntax.ProcSubst, s *scope) {
	out := w.output
	sub := w.fork(s)
	if p.Op == syntax.CmdOut {
		sub.stdin = source{kind: unknownInput, at: -1}
	}
	w.printing(p.Stmts, sub)
	w.output.at = s.at(p.End())
	w.printed = append(w.printed, w.output)
	w.output = out
}

// shell walks a text that another shell reads. holes says that the text was
// put together from parts that are not known.
func (w *walker) shell(text string, s *scope, at int) {
	if len(s.calls) >= maxDepth || s.depth > maxDepth {
		w.opaque(at, "too-deep", "texts stand in each other deeper than is read")
		return
	}
	if len(text) > MaxText {
		w.opaque(at, "too-long", "the text is longer than is read")
		return
	}
	if !w.work(1 + len(text)/16) {
		return
	}
	if strings.ContainsRune(text, catalog.Hole) {
		w.opaque(at, "open-text", "parts of a text that a shell reads are not known")
	}
	if joinedComment(text) >= 0 {
		w.opaque(at, "comment", "a comment ends in a backslash: the next line is a command for bash")
	}
	if strings.IndexByte(text, 0) >= 0 {
		w.opaque(at, "control", "the text holds characters that shells treat differently")
	}
	parsed, err := w.rd.parse(text, s.extglob)
	if err != nil {
		w.add(&Call{Program: "?", Effects: detail.Opaque, Risk: detail.High, Via: s.via, Depth: s.depth}, at)
		w.problem(at, "nested-syntax", "a text that a shell reads does not parse: "+errText(err))
		return
	}
	saved, pin := w.text, s.pin
	s.pin = -1
	w.nest(at, func() {
		// Inside, places are those of the inner text; nest moves them.
		w.stmtsOf(parsed, s, 0)
	})
	w.text, s.pin = saved, pin
}

// stmtsOf walks a whole text.
func (w *walker) stmtsOf(p parsed, s *scope, at int) {
	w.text = p.text
	if p.rewritten {
		w.opaque(at, "rewritten", "the parser takes a construct of this text only in other words")
	}
	w.stmts(p.file.Stmts, s)
}
