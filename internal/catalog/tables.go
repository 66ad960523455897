package catalog

import (
	_ "embed"
	"fmt"
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
	programs []string // nil: any
}

type pattern struct {
	kind string
	glob string
}

// tables are read when something first asks for them.
type tables struct {
	variablesOnce sync.Once
	variables     map[string][]variable
	prefixes      []string // of names that end in *

	patternsOnce sync.Once
	paths        pathIndex

	hostsOnce sync.Once
	hosts     []pattern
}

// statements calls f for every statement of a table: its words.
func statements(name, text string, f func(words []string) error) error {
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
			if err := f(strings.Fields(line)); err != nil {
				return fmt.Errorf("%s:%d: %w", name, n, err)
			}
		}
	}
	return nil
}

func (t *tables) loadVariables() error {
	t.variables = map[string][]variable{}
	return statements("variables", variablesText, func(w []string) error {
		if len(w) < 3 || w[0] != "variable" || variableEffects[w[2]] == Harmless {
			return fmt.Errorf("want `variable NAME EFFECT PROGRAM…`")
		}
		if prefix, ok := strings.CutSuffix(w[1], "*"); ok {
			t.prefixes = append(t.prefixes, prefix)
		}
		t.variables[w[1]] = append(t.variables[w[1]], variable{effect: variableEffects[w[2]], programs: w[3:]})
		return nil
	})
}

// Variable returns what setting an environment variable does to a program.
func (c *Catalog) Variable(name, program string) VariableEffect {
	c.tables.variablesOnce.Do(func() { _ = c.tables.loadVariables() }) // a test holds the table to its format
	worst := Harmless
	look := func(key string) {
		for _, v := range c.tables.variables[key] {
			applies := len(v.programs) == 0
			for _, p := range v.programs {
				applies = applies || p == program
			}
			if applies && (worst == Harmless || v.effect < worst) {
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

// Matters reports whether a variable has an effect on any program.
func (c *Catalog) Matters(name string) bool {
	c.tables.variablesOnce.Do(func() { _ = c.tables.loadVariables() })
	if len(c.tables.variables[name]) > 0 {
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
	err := statements("sinks", sinksText, func(w []string) error {
		if len(w) < 3 || w[0] != "sink" {
			return fmt.Errorf("want `sink KIND PATTERN…`")
		}
		for _, glob := range w[2:] {
			t.paths.add(pattern{w[1], glob})
		}
		return nil
	})
	if err != nil {
		return err
	}
	return statements("paths", pathsText, func(w []string) error {
		if len(w) < 2 {
			return fmt.Errorf("want `credential PATTERN…` or `documentation PATTERN…`")
		}
		for _, glob := range w[1:] {
			if w[0] != credentialKind && w[0] != documentationKind {
				return fmt.Errorf("unknown statement %q", clip(w[0]))
			}
			t.paths.add(pattern{w[0], glob})
		}
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
	bySegment map[string][]pattern
	byEnding  map[string][]pattern // ".pem"
	byStart   map[string][]pattern // the first startLength bytes
	others    []pattern
}

const startLength = 3

func (x *pathIndex) add(p pattern) {
	if x.bySegment == nil {
		x.bySegment, x.byEnding, x.byStart = map[string][]pattern{}, map[string][]pattern{}, map[string][]pattern{}
	}
	segments := strings.Split(strings.ToLower(p.glob), "/")
	for i := len(segments) - 1; i >= 0; i-- {
		if s := segments[i]; s != "" && s != "~" && !strings.Contains(s, "*") {
			x.bySegment[s] = append(x.bySegment[s], p)
			return
		}
	}
	last := segments[len(segments)-1]
	if dot := strings.LastIndexByte(last, '.'); dot > 0 && !strings.Contains(last[dot:], "*") {
		x.byEnding[last[dot:]] = append(x.byEnding[last[dot:]], p)
		return
	}
	if len(last) > startLength && !strings.Contains(last[:startLength], "*") {
		x.byStart[last[:startLength]] = append(x.byStart[last[:startLength]], p)
		return
	}
	x.others = append(x.others, p)
}

func (x *pathIndex) classify(path, home string) Class {
	var c Class
	try := func(list []pattern) {
		for i := range list {
			if p := &list[i]; !c.has(p.kind) && Match(p.glob, path, home) {
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
		segment = strings.ToLower(segment)
		if list := x.bySegment[segment]; list != nil {
			try(list)
		}
		if rest == "" {
			if dot := strings.LastIndexByte(segment, '.'); dot >= 0 {
				try(x.byEnding[segment[dot:]])
			}
			if len(segment) >= startLength {
				try(x.byStart[segment[:startLength]])
			}
		}
	}
	try(x.others)
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
	for _, p := range c.tables.hosts {
		if p.glob == host || strings.HasPrefix(p.glob, "*.") && strings.HasSuffix(host, p.glob[1:]) {
			return p.kind
		}
	}
	return ""
}

func (t *tables) loadHosts() error {
	return statements("hosts", hostsText, func(w []string) error {
		if len(w) < 3 || w[0] != "host" || w[1] != "multi-tenant" && w[1] != "resolver" {
			return fmt.Errorf("want `host multi-tenant PATTERN…` or `host resolver PATTERN…`")
		}
		for _, glob := range w[2:] {
			t.hosts = append(t.hosts, pattern{w[1], strings.ToLower(glob)})
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
