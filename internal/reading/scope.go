package reading

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"vogt/internal/catalog"
)

// knowledge says how much of a variable's value is known. The zero value is
// nothing.
type knowledge uint8

const (
	anything  knowledge = iota
	literal             // all of it
	number              // an integer
	absolute            // it begins with a slash
	plainWord           // one word that is no option
)

// value is what is known of a variable.
type value struct {
	known knowledge
	text  string
	// assoc is an associative array, whose subscripts are not arithmetic.
	assoc bool
	// readonly refuses later assignments; folds changes the case of what is
	// assigned.
	readonly, folds bool
	// array is an array of any kind.
	array bool
	// arith has the integer attribute: what is assigned is evaluated.
	arith bool
}

// join is what is known when either a or b holds.
func (a value) join(b value) value {
	if a == b {
		return a
	}
	numeric := func(v value) bool { return v.known == number || v.known == literal && isInteger(v.text) }
	out := value{assoc: a.assoc && b.assoc, arith: a.arith || b.arith, array: a.array || b.array, folds: a.folds || b.folds}
	switch {
	case numeric(a) && numeric(b):
		out.known = number
	case (a.known == absolute || a.known == literal && strings.HasPrefix(a.text, "/")) &&
		(b.known == absolute || b.known == literal && strings.HasPrefix(b.text, "/")):
		out.known = absolute
	}
	return out
}

// word is the value as a word.
func (a value) word() catalog.Word {
	switch a.known {
	case literal:
		return catalog.Word{Text: a.text}
	case number:
		return catalog.Word{Text: "0"}
	}
	return catalog.Unknown(catalog.Partial)
}

// isInteger reports whether s is a decimal number that arithmetic takes as it
// stands.
func isInteger(s string) bool {
	s = strings.TrimPrefix(strings.TrimPrefix(s, "-"), "+")
	return s != "" && len(s) < 19 && strings.Trim(s, "0123456789") == ""
}

// setting is a variable of the environment that matters to programs.
type setting struct {
	name  string
	value catalog.Word
}

// scope is the state of one shell as far as it is known.
type scope struct {
	vars    map[string]value
	funcs   map[string]function
	alias   map[string]bool
	env     []setting      // exported, in order
	args    []catalog.Word // positional parameters, nil when unknown
	known   bool           // args are known
	extglob bool           // extended patterns are on in texts that are parsed from now on
	cwd     string         // empty when unknown
	cwdOK   bool           // cwd is certain, or was never changed
	adrift  bool           // cwd holds only if a change of folder succeeded, which nothing has shown
	fell    string         // where it stands if that failed; empty when unknown
	home    string

	remote  bool // another host or a container
	via     string
	depth   int
	stdin   source
	pin     int  // offset that everything here stands at, or -1
	posix   bool // sh, not bash
	calls   []string
	locals  []local // of the function that runs
	inside  bool    // a function runs
	changes int     // counts what was set in this shell
}

// sourceKind says what standard input is.
type sourceKind uint8

const (
	inherited sourceKind = iota // the terminal or nothing
	unknownInput
	literalInput // text holds it, holes included
	fileInput    // a file
)

type source struct {
	kind sourceKind
	text string
	at   int // offset of a here-document's body, or -1
}

func newScope(at Place) scope {
	return scope{cwd: cleanAbs(at.Cwd), cwdOK: at.Cwd != "", home: cleanAbs(at.Home), pin: -1, stdin: source{at: -1}}
}

// local is a variable that a function declared, with what it was before.
type local struct {
	name   string
	before value
}

func cleanAbs(p string) string {
	if !strings.HasPrefix(p, "/") {
		return ""
	}
	return path.Clean(p)
}

// size is how much there is to copy or to compare.
func (s *scope) size() int {
	return len(s.vars) + len(s.funcs) + len(s.alias) + len(s.env) + len(s.args)/8
}

// copyTo makes c a copy for a subshell: what changes there does not come back.
func (s *scope) copyTo(c *scope) {
	*c = *s
	c.vars = cloneMap(s.vars)
	c.funcs = cloneMap(s.funcs)
	c.alias = cloneMap(s.alias)
	c.env = s.env[:len(s.env):len(s.env)]
}

func cloneMap[V any](m map[string]V) map[string]V {
	if len(m) == 0 {
		return nil
	}
	out := make(map[string]V, len(m))
	for k, v := range m {
		out[k] = v
	}
	return out
}

// join makes s what holds after either s or o. walker.join counts the work.
func (s *scope) join(o *scope) {
	for name, v := range s.vars {
		s.vars[name] = v.join(o.lookup(name))
	}
	for name, v := range o.vars {
		if _, ok := s.vars[name]; !ok {
			s.set(name, v.join(s.lookup(name)))
		}
	}
	for name, f := range s.funcs {
		if other := o.funcs[name]; !f.same(other) {
			s.funcs[name] = f.or(other)
		}
	}
	for name, f := range o.funcs {
		if _, ok := s.funcs[name]; !ok {
			s.define(name, f.or(function{}))
		}
	}
	for name := range o.alias {
		s.aliased(name)
	}
	for _, e := range o.env {
		s.alsoExport(e)
	}
	if s.known != o.known || !slices.Equal(s.args, o.args) {
		s.args, s.known = nil, false
	}
	if s.cwd != o.cwd || s.cwdOK != o.cwdOK {
		s.cwd, s.cwdOK = "", false
	}
	if s.adrift != o.adrift || s.fell != o.fell {
		s.adrift, s.fell = s.adrift || o.adrift, ""
	}
}

func (s *scope) equal(o *scope) bool {
	if s.known != o.known || !slices.Equal(s.args, o.args) || len(s.alias) != len(o.alias) {
		return false
	}
	for name, f := range s.funcs {
		if !f.same(o.funcs[name]) {
			return false
		}
	}
	if len(s.vars) != len(o.vars) || s.cwd != o.cwd || s.cwdOK != o.cwdOK || s.adrift != o.adrift || s.fell != o.fell || len(s.funcs) != len(o.funcs) || len(s.env) != len(o.env) {
		return false
	}
	for name, v := range s.vars {
		if o.vars[name] != v {
			return false
		}
	}
	return true
}

func (s *scope) set(name string, v value) {
	s.changes++
	if setByShell(name) {
		v.known, v.text = anything, ""
	}
	if old, ok := s.vars[name]; ok && old.readonly {
		v = old.join(v)
		v.readonly = true
	}
	if s.vars == nil {
		s.vars = map[string]value{}
	}
	s.vars[name] = v
}

func (s *scope) define(name string, f function) {
	s.changes++
	if s.funcs == nil {
		s.funcs = map[string]function{}
	}
	s.funcs[name] = f
}

// function is what a name means that was defined in the text: one of the
// bodies, or, if maybe is set, none of them and so the program of that name.
type function struct {
	bodies []*syntax.Stmt
	maybe  bool
}

func (f function) same(o function) bool {
	return f.maybe == o.maybe && slices.Equal(f.bodies, o.bodies)
}

// or is what the name means when either f or o holds.
func (f function) or(o function) function {
	out := function{bodies: slices.Clone(f.bodies), maybe: f.maybe || o.maybe || len(f.bodies) == 0 || len(o.bodies) == 0}
	for _, b := range o.bodies {
		if !slices.Contains(out.bodies, b) {
			out.bodies = append(out.bodies, b)
		}
	}
	return out
}

func (s *scope) aliased(name string) {
	s.changes++
	if s.alias == nil {
		s.alias = map[string]bool{}
	}
	s.alias[name] = true
}

// export notes a variable that matters to programs.
func (s *scope) export(name string, w catalog.Word) {
	s.changes++
	for i, e := range s.env {
		if e.name == name {
			env := append([]setting(nil), s.env...)
			env[i].value = w
			s.env = env
			return
		}
	}
	s.env = append(s.env, setting{name, w})
}

// alsoExport notes a further value that the variable may have.
func (s *scope) alsoExport(e setting) {
	for _, have := range s.env {
		if have == e {
			return
		}
	}
	s.changes++
	if len(s.env) >= maxEnv {
		// Too many to tell apart: the first one's value stands for what nobody
		// knows.
		s.export(s.env[0].name, catalog.Unknown(catalog.Partial))
		return
	}
	s.env = append(s.env, e)
}

// setByShell reports whether bash changes the variable by itself (bash manual,
// Bash Variables), so that what was assigned is not remembered.
func setByShell(name string) bool {
	switch name {
	case "_", "REPLY", "OPTARG", "OPTIND", "OPTERR", "MAPFILE", "FUNCNAME", "GROUPS", "DIRSTACK", "PIPESTATUS", "RANDOM", "SRANDOM", "SECONDS",
		"LINENO", "HISTCMD", "COPROC", "COLUMNS", "LINES", "PWD", "OLDPWD", "HOSTNAME", "SHELLOPTS", "BASHOPTS", "UID", "EUID", "PPID":
		return true
	}
	return strings.HasPrefix(name, "BASH") || strings.HasPrefix(name, "EPOCH") || strings.HasPrefix(name, "COMP_") || strings.HasPrefix(name, "READLINE_")
}

// lookup is what is known of a variable.
func (s *scope) lookup(name string) value {
	if v, ok := s.vars[name]; ok {
		return v
	}
	switch name {
	case "RANDOM", "SECONDS", "LINENO", "UID", "EUID", "PPID", "BASHPID", "SRANDOM", "EPOCHSECONDS", "#", "?", "$", "!":
		return value{known: number}
	case "HOME":
		if s.home != "" {
			return value{known: literal, text: s.home}
		}
		return value{known: absolute}
	case "PWD":
		if s.cwd != "" && s.cwdOK {
			return value{known: literal, text: s.cwd}
		}
		return value{known: absolute}
	case "OLDPWD":
		return value{known: absolute}
	case "BASH_ARGC", "BASH_ARGV", "BASH_LINENO", "BASH_REMATCH", "BASH_SOURCE", "BASH_VERSINFO", "COMPREPLY", "COMP_WORDS",
		"COPROC", "DIRSTACK", "FUNCNAME", "GROUPS", "MAPFILE", "PIPESTATUS":
		return value{array: true} // bash manual, Bash Variables
	}
	return value{}
}
