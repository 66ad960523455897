package catalog

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"sync"
)

//go:embed data-tables/variables
var variablesText string

//go:embed data-tables/sinks
var sinksText string

//go:embed data-tables/hosts
var hostsText string

//go:embed data-tables/paths
var pathsText string

// VariableEffect is what an environment variable can do to a program.
type VariableEffect uint8

// The effects of variables. The zero value is none: the variable is data.
const (
	Harmless     VariableEffect = iota
	Library                     // loads code, or moves the search for programs
	ShellText                   // its value is shell text that is run
	ProgramPath                 // its value is a program that is run
	Configures                  // moves or changes configuration, so that programs may start
	WritesFile                  // its value names a file that is written
	ContactsHost                // its value names a host that is contacted
)

var variableEffects = map[string]VariableEffect{
	"library": Library, "shell": ShellText, "program": ProgramPath, "config": Configures, "write": WritesFile, "host": ContactsHost,
}

type variable struct {
	effect   VariableEffect
	programs string // separated by blanks; empty: any
	next     int32  // the next statement of the same name, from 1; 0: none
}

type pattern struct {
	kind string
	glob string
}

// tables are read when something first asks for them.
type tables struct {
	variablesOnce sync.Once
	variables     map[string]int32 // the last statement of a name, from 1
	statements    []variable
	prefixes      []string // of names that end in *

	patternsOnce sync.Once
	paths        pathIndex

	hostsOnce sync.Once
	hosts     map[string]string // kinds, by a name or by ".domain" for what is below it
}

// statements calls f for every statement of a table: its first word and the
// rest.
func statements(name, text string, f func(word, rest string) error) error {
	for n := 1; text != ""; n++ {
		var line string
		line, text = nextLine(text)
		switch {
		case n == 1:
			if line != Version {
				return fmt.Errorf("%s:1: the first line is %q, want %q", name, clip(line), Version)
			}
		case line == "" || line[0] == '#':
		default:
			word, rest := nextWord(line)
			if err := f(word, rest); err != nil {
				return fmt.Errorf("%s:%d: %w", name, n, err)
			}
		}
	}
	return nil
}

// nextWord cuts the first word off a line.
func nextWord(line string) (word, rest string) {
	word, rest, _ = strings.Cut(line, " ")
	return word, strings.TrimLeft(rest, " ")
}

func (t *tables) loadVariables() error {
	lines := strings.Count(variablesText, "\n")
	t.variables = make(map[string]int32, lines)
	t.statements = make([]variable, 0, lines)
	return statements("variables", variablesText, func(word, rest string) error {
		name, rest := nextWord(rest)
		effect, programs := nextWord(rest)
		if word != "variable" || variableEffects[effect] == Harmless {
			return fmt.Errorf("want `variable NAME EFFECT PROGRAM…`")
		}
		if prefix, ok := strings.CutSuffix(name, "*"); ok && t.variables[name] == 0 {
			t.prefixes = append(t.prefixes, prefix)
		}
		t.statements = append(t.statements, variable{variableEffects[effect], programs, t.variables[name]})
		t.variables[name] = int32(len(t.statements))
		return nil
	})
}

// Variable returns what setting an environment variable does to a program.
func (c *Catalog) Variable(name, program string) VariableEffect {
	c.tables.variablesOnce.Do(func() { _ = c.tables.loadVariables() }) // a test holds the table to its format
	worst := Harmless
	look := func(key string) {
		for i := c.tables.variables[key]; i != 0; {
			v := &c.tables.statements[i-1]
			i = v.next
			if (v.programs == "" || hasWord(v.programs, program)) && (worst == Harmless || v.effect < worst) {
				worst = v.effect
			}
		}
	}
	look(name)
	for _, prefix := range c.tables.prefixes {
		if strings.HasPrefix(name, prefix) {
			look(prefix + "*")
		}
	}
	return worst
}

// hasWord reports whether a list that is separated by blanks holds a word.
func hasWord(list, word string) bool {
	for list != "" {
		var w string
		if w, list = nextWord(list); w == word {
			return true
		}
	}
	return false
}

// Matters reports whether a variable has an effect on any program.
func (c *Catalog) Matters(name string) bool {
	c.tables.variablesOnce.Do(func() { _ = c.tables.loadVariables() })
	if c.tables.variables[name] != 0 {
		return true
	}
	for _, prefix := range c.tables.prefixes {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

func (t *tables) loadPatterns() error {
	t.paths.room(strings.Count(sinksText, " ") + strings.Count(pathsText, " "))
	err := statements("sinks", sinksText, func(word, rest string) error {
		kind, rest := nextWord(rest)
		if word != "sink" || rest == "" || kind == credentialKind || kind == documentationKind {
			return fmt.Errorf("want `sink KIND PATTERN…`")
		}
		t.paths.addAll(kind, rest)
		return nil
	})
	if err != nil {
		return err
	}
	return statements("paths", pathsText, func(word, rest string) error {
		if word != credentialKind && word != documentationKind || rest == "" {
			return fmt.Errorf("want `credential PATTERN…` or `documentation PATTERN…`")
		}
		t.paths.addAll(word, rest)
		return nil
	})
}

func (c *Catalog) patterns() *tables {
	c.tables.patternsOnce.Do(func() { _ = c.tables.loadPatterns() })
	return &c.tables
}

// Class is what is known of a file by its path.
type Class struct {
	Sink          string // the kind of a file that executes or steers something later; else empty
	Credential    bool   // it holds secrets
	Documentation bool   // it is documentation of the system
}

// maxClassified is the longest path that is compared with patterns, in bytes. A
// longer one may be anything.
const maxClassified = 1024

// Classify returns what is known of a file. path is absolute and cleaned, or
// begins with ~; home may be empty.
func (c *Catalog) Classify(path, home string) Class {
	return c.patterns().paths.classify(path, home)
}

// Sink returns the kind of a file that executes or steers something later, or
// the empty string.
func (c *Catalog) Sink(path, home string) string { return c.Classify(path, home).Sink }

// pathIndex finds the patterns that may match a path without trying all. Each
// pattern stands under one of its segments that has no star, or under the
// ending or the beginning of its last one; the few others are tried on every
// path.
type pathIndex struct {
	all       []pattern
	next      []int32          // the next pattern under the same key, from 1; 0: none
	bySegment map[string]int32 // the last pattern under a key, from 1
	byEnding  map[string]int32 // ".pem"
	byStart   map[string]int32 // the first startLength bytes
	others    []int32
}

const startLength = 3

// room makes room for n patterns.
func (x *pathIndex) room(n int) {
	x.all, x.next = make([]pattern, 0, n), make([]int32, 0, n)
	x.bySegment, x.byEnding, x.byStart = make(map[string]int32, n/2), map[string]int32{}, map[string]int32{}
}

// addAll adds patterns that are separated by blanks.
func (x *pathIndex) addAll(kind, list string) {
	for list != "" {
		var glob string
		glob, list = nextWord(list)
		x.add(pattern{kind, glob})
	}
}

func (x *pathIndex) add(p pattern) {
	if x.bySegment == nil {
		x.room(1)
	}
	x.all = append(x.all, p)
	n := int32(len(x.all))
	glob := lowerASCII(p.glob)
	for rest := glob; rest != ""; {
		slash := strings.LastIndexByte(rest, '/')
		s := rest[slash+1:]
		rest = rest[:max(slash, 0)]
		if s != "" && s != "~" && strings.IndexByte(s, '*') < 0 {
			x.put(x.bySegment, s, n)
			return
		}
	}
	last := glob[strings.LastIndexByte(glob, '/')+1:]
	dot := strings.LastIndexByte(last, '.')
	switch {
	case dot > 0 && strings.IndexByte(last[dot:], '*') < 0:
		x.put(x.byEnding, last[dot:], n)
	case len(last) > startLength && strings.IndexByte(last[:startLength], '*') < 0:
		x.put(x.byStart, last[:startLength], n)
	default:
		x.next = append(x.next, 0)
		x.others = append(x.others, n)
	}
}

func (x *pathIndex) put(m map[string]int32, key string, n int32) {
	x.next = append(x.next, m[key])
	m[key] = n
}

func (x *pathIndex) classify(path, home string) Class {
	var c Class
	if len(path) > maxClassified {
		return Class{Sink: "system", Credential: true}
	}
	var tried [32]int32 // an answer does not change when a segment comes again
	count := 0
	try := func(n int32) {
		if n == 0 || slices.Contains(tried[:min(count, len(tried))], n) {
			return
		}
		tried[count%len(tried)] = n
		count++
		for ; n != 0; n = x.next[n-1] {
			if p := &x.all[n-1]; !c.has(p.kind) && Match(p.glob, path, home) {
				c.set(p.kind)
			}
		}
	}
	for rest := path; rest != ""; {
		var segment string
		segment, rest, _ = strings.Cut(rest, "/")
		if segment == "" {
			continue
		}
		segment = lowerASCII(segment)
		try(x.bySegment[segment])
		if rest == "" {
			if dot := strings.LastIndexByte(segment, '.'); dot >= 0 {
				try(x.byEnding[segment[dot:]])
			}
			if len(segment) >= startLength {
				try(x.byStart[segment[:startLength]])
			}
		}
	}
	for _, n := range x.others {
		try(n)
	}
	return c
}

// Kinds of patterns that are no sinks.
const (
	credentialKind    = "credential"
	documentationKind = "documentation"
)

func (c *Class) has(kind string) bool {
	switch kind {
	case credentialKind:
		return c.Credential
	case documentationKind:
		return c.Documentation
	}
	return c.Sink != ""
}

func (c *Class) set(kind string) {
	switch kind {
	case credentialKind:
		c.Credential = true
	case documentationKind:
		c.Documentation = true
	default:
		c.Sink = kind
	}
}

// HostKind returns "multi-tenant", "resolver" or the empty string.
func (c *Catalog) HostKind(host string) string {
	c.tables.hostsOnce.Do(func() { _ = c.tables.loadHosts() })
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if kind := c.tables.hosts[host]; kind != "" {
		return kind
	}
	for i := range len(host) {
		if host[i] == '.' {
			if kind := c.tables.hosts[host[i:]]; kind != "" {
				return kind
			}
		}
	}
	return ""
}

func (t *tables) loadHosts() error {
	t.hosts = map[string]string{}
	return statements("hosts", hostsText, func(word, rest string) error {
		kind, rest := nextWord(rest)
		if word != "host" || kind != "multi-tenant" && kind != "resolver" || rest == "" {
			return fmt.Errorf("want `host multi-tenant PATTERN…` or `host resolver PATTERN…`")
		}
		for rest != "" {
			var glob string
			glob, rest = nextWord(rest)
			name := strings.TrimPrefix(lowerASCII(glob), "*")
			if t.hosts[name] != "" {
				return fmt.Errorf("%s stands twice", glob)
			}
			t.hosts[name] = kind
		}
		return nil
	})
}

// Match reports whether a path matches a pattern: absolute, below the home
// folder (~/), or anywhere (**/). "*" stands for anything but a slash, "**"
// for anything. Case is ignored, since some file systems do.
func Match(glob, path, home string) bool {
	if rest, ok := strings.CutPrefix(glob, "~/"); ok {
		if home != "" {
			if below, ok := strings.CutPrefix(path, strings.TrimSuffix(home, "/")); ok && strings.HasPrefix(below, "/") && match(rest, below[1:]) {
				return true
			}
		}
		if below, ok := strings.CutPrefix(path, "~/"); ok && match(rest, below) {
			return true
		}
		// Homes of others, by the usual places.
		for _, root := range []string{"/home/", "/Users/"} {
			if below, ok := strings.CutPrefix(path, root); ok {
				_, below, _ = strings.Cut(below, "/")
				if match(rest, below) {
					return true
				}
			}
		}
		below, ok := strings.CutPrefix(path, "/root/")
		return ok && match(rest, below)
	}
	if rest, ok := strings.CutPrefix(glob, "**/"); ok && !strings.Contains(rest, "*") {
		// The common case, without backtracking.
		if len(path) < len(rest) || !strings.EqualFold(path[len(path)-len(rest):], rest) {
			return false
		}
		return len(path) == len(rest) || path[len(path)-len(rest)-1] == '/'
	}
	return match(glob, path)
}

// match compares segment by segment. A segment "**" stands for any number of
// segments. Work is bounded by the product of the lengths.
func match(glob, path string) bool {
	var backGlob, backPath string
	deep := false
	for {
		g, restGlob, moreGlob := strings.Cut(glob, "/")
		if g == "**" {
			if !moreGlob {
				return path != ""
			}
			glob, deep = restGlob, true
			backGlob, backPath = glob, path
			continue
		}
		p, restPath, morePath := strings.Cut(path, "/")
		if segment(g, p) {
			if !moreGlob && !morePath {
				return true
			}
			if moreGlob && morePath {
				glob, path = restGlob, restPath
				continue
			}
		}
		// Let the last "**" take one segment more.
		if !deep {
			return false
		}
		var ok bool
		if _, backPath, ok = strings.Cut(backPath, "/"); !ok {
			return false
		}
		glob, path = backGlob, backPath
	}
}

// segment matches one segment, in which "*" stands for any characters.
func segment(glob, text string) bool {
	g, s, starG, starS := 0, 0, -1, 0
	for s < len(text) {
		switch {
		case g < len(glob) && glob[g] == '*':
			g++
			starG, starS = g, s
		case g < len(glob) && lower(glob[g]) == lower(text[s]):
			g++
			s++
		case starG >= 0:
			starS++
			g, s = starG, starS
		default:
			return false
		}
	}
	return strings.Trim(glob[g:], "*") == ""
}

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}
