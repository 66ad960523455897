package reading

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"vogt/internal/catalog"
)

// arithmetic checks an arithmetic expression. Bash evaluates the value of a
// variable in it as an expression again, in which a subscript may run any
// command, so every value must be known to be a number.
func (w *walker) arithmetic(x syntax.ArithmExpr, s *scope) {
	if x == nil || !w.step() {
		return
	}
	switch x := x.(type) {
	case *syntax.Word:
		w.operandOf(x, s)
	case *syntax.BinaryArithm:
		if assigns(x.Op) {
			w.arithmetic(x.Y, s)
			if word, ok := x.X.(*syntax.Word); x.Op != syntax.Assgn || !ok || !validName(word.Lit()) {
				w.arithmetic(x.X, s)
			}
			w.assignNumber(x.X, s)
			return
		}
		w.arithmetic(x.X, s)
		w.arithmetic(x.Y, s)
	case *syntax.UnaryArithm:
		w.arithmetic(x.X, s)
		if x.Op == syntax.Inc || x.Op == syntax.Dec {
			w.assignNumber(x.X, s)
		}
	case *syntax.ParenArithm:
		w.arithmetic(x.X, s)
	default:
		w.opaque(s.at(x.Pos()), "not-bash", "this arithmetic belongs to another shell")
	}
}

func assigns(op syntax.BinAritOperator) bool {
	switch op {
	case syntax.Assgn, syntax.AddAssgn, syntax.SubAssgn, syntax.MulAssgn, syntax.QuoAssgn, syntax.RemAssgn,
		syntax.AndAssgn, syntax.OrAssgn, syntax.XorAssgn, syntax.ShlAssgn, syntax.ShrAssgn:
		return true
	}
	return false
}

// assignNumber notes that arithmetic gave a variable its value.
func (w *walker) assignNumber(x syntax.ArithmExpr, s *scope) {
	word, ok := x.(*syntax.Word)
	if !ok {
		return
	}
	name := word.Lit()
	if validName(name) {
		s.set(name, value{known: number})
		if w.catalog.Matters(name) || name == "IFS" {
			w.opaque(s.at(word.Pos()), "variable", "arithmetic sets "+name)
		}
	}
}

func validName(name string) bool {
	if name == "" || name[0] >= '0' && name[0] <= '9' {
		return false
	}
	for i := 0; i < len(name); i++ {
		c := name[i]
		if !(c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9') {
			return false
		}
	}
	return true
}

// operandOf checks one operand: a number, a name, or an expansion.
func (w *walker) operandOf(word *syntax.Word, s *scope) {
	at := s.at(word.Pos())
	if len(word.Parts) == 1 {
		switch p := word.Parts[0].(type) {
		case *syntax.Lit:
			w.arithText(p.Value, s, at)
			return
		case *syntax.ParamExp:
			if p.Index != nil && p.Param != nil && !p.Length {
				if w.paramSafe(p, s) {
					w.notANumber(at)
				}
				return
			}
		case *syntax.CmdSubst:
			w.substitution(p, s, false)
			if !numericOutput(p) {
				w.notANumber(at)
			}
			return
		case *syntax.ArithmExp:
			w.arithmetic(p.X, s)
			return
		case *syntax.DblQuoted:
			if len(p.Parts) == 1 {
				if _, lit := p.Parts[0].(*syntax.Lit); !lit {
					w.operandOf(&syntax.Word{Parts: p.Parts}, s)
					return
				}
			}
		}
	}
	var e expanded
	w.one(word, s, &e, true)
	if len(e.words) != 1 {
		w.notANumber(at)
		return
	}
	v := e.words[0]
	if v.Kind == catalog.Literal {
		w.quotedArithmetic(v.Text, s, at)
		return
	}
	if !w.numericWord(word, s) {
		w.notANumber(at)
	}
}

// quotedArithmetic checks an expression that stands in quotes, as after let.
func (w *walker) quotedArithmetic(text string, s *scope, at int) {
	if !strings.ContainsAny(text, "+-*/%<>=&|^!~?:, (") {
		w.arithText(text, s, at)
		return
	}
	x, err := syntax.NewParser().Arithmetic(strings.NewReader(text))
	if err != nil || s.depth > maxDepth {
		w.notANumber(at)
		return
	}
	pin, depth := s.pin, s.depth
	s.pin, s.depth = at, depth+1
	w.arithmetic(x, s)
	s.pin, s.depth = pin, depth
}

func (w *walker) notANumber(at int) {
	w.opaque(at, "arithmetic", "arithmetic over a value that is not known to be a number may run any command")
}

// arithText checks the literal text of an operand.
func (w *walker) arithText(text string, s *scope, at int) {
	text = strings.TrimSpace(text)
	switch {
	case text == "":
	case text[0] >= '0' && text[0] <= '9':
		// 0x1f, 017, 2#101: digits of any base, nothing that names a variable.
		for i := 0; i < len(text); i++ {
			c := text[i]
			if !(c == '#' || c == '@' || c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z') {
				w.notANumber(at)
				return
			}
		}
	case validName(text):
		v := s.lookup(text)
		if v.known != number && !(v.known == literal && (isInteger(v.text) || v.text == "")) {
			w.notANumber(at)
		}
	case isInteger(text):
	default:
		// name[subscript] and everything else.
		if name, rest, ok := strings.Cut(text, "["); ok && validName(name) && strings.HasSuffix(rest, "]") {
			w.arithText(rest[:len(rest)-1], s, at)
		}
		w.notANumber(at)
	}
}

// numericWord reports whether every unknown part of a word is a number.
func (w *walker) numericWord(word *syntax.Word, s *scope) bool {
	for _, part := range word.Parts {
		switch p := part.(type) {
		case *syntax.Lit:
			if strings.Trim(p.Value, "0123456789") != "" {
				return false
			}
		case *syntax.DblQuoted:
			if !w.numericWord(&syntax.Word{Parts: p.Parts}, s) {
				return false
			}
		case *syntax.ArithmExp:
		case *syntax.ParamExp:
			if p.Length {
				continue
			}
			if p.Param == nil || p.Excl || p.Index != nil || p.Exp != nil || p.Repl != nil {
				return false
			}
			v := s.lookup(p.Param.Value)
			if v.known != number && !(v.known == literal && isInteger(v.text)) {
				return false
			}
		case *syntax.CmdSubst:
			if !numericOutput(p) {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// numericOutput reports whether a substitution can only print a number: a few
// counting programs with the words that make them do so.
func numericOutput(p *syntax.CmdSubst) bool {
	if len(p.Stmts) != 1 {
		return false
	}
	st := p.Stmts[0]
	for {
		b, ok := st.Cmd.(*syntax.BinaryCmd)
		if !ok || b.Op != syntax.Pipe {
			break
		}
		st = b.Y
	}
	c, ok := st.Cmd.(*syntax.CallExpr)
	if !ok || len(c.Args) == 0 || len(c.Assigns) > 0 {
		return false
	}
	var words []string
	for _, a := range c.Args {
		words = append(words, a.Lit())
	}
	switch strings.Join(words, " ") {
	case "wc -l", "wc -c", "wc -w", "wc -m", "date +%s", "nproc", "id -u", "id -g", "grep -c", "echo 0", "echo 1":
		return true
	}
	return len(words) == 3 && words[0] == "grep" && words[1] == "-c" && len(st.Redirs) == 0
}

// test checks [[ … ]].
func (w *walker) test(x syntax.TestExpr, s *scope) {
	switch x := x.(type) {
	case *syntax.Word:
		w.single(x, s)
	case *syntax.BinaryTest:
		switch x.Op {
		case syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr:
			for _, side := range []syntax.TestExpr{x.X, x.Y} {
				if word, ok := side.(*syntax.Word); ok {
					w.operandOf(word, s)
				} else {
					w.test(side, s)
				}
			}
			return
		}
		w.test(x.X, s)
		w.test(x.Y, s)
	case *syntax.UnaryTest:
		if word, ok := x.X.(*syntax.Word); ok && (x.Op == syntax.TsVarSet || x.Op == syntax.TsRefVar) {
			w.variableName(w.single(word, s), s, s.at(word.Pos()))
			return
		}
		w.test(x.X, s)
	case *syntax.ParenTest:
		w.test(x.X, s)
	}
}

// variableName checks a word that a builtin takes for the name of a variable:
// a subscript in it is evaluated.
func (w *walker) variableName(word catalog.Word, s *scope, at int) bool {
	if word.Kind == catalog.Literal {
		if validName(word.Text) {
			return true
		}
		if name, rest, ok := strings.Cut(word.Text, "["); ok && validName(name) && isInteger(strings.TrimSuffix(rest, "]")) {
			return true
		}
		if word.Text != "" && !strings.ContainsAny(word.Text, "[$`") {
			return true // no name: bash refuses it
		}
	}
	w.opaque(at, "subscript", "a name that is not literal may have a subscript, which is evaluated")
	return false
}
