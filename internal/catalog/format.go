package catalog

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"vogt/internal/detail"
)

// Version is the first line of every file of the catalog.
const Version = "vogt-catalog 1"

// Limits of one entry, so that a file cannot take the reader's time or memory.
const (
	MaxEntry = 1 << 20 // bytes
	maxLine  = 4 << 10
)

// Parse reads an entry in the format of docs/catalog.md. source is where it
// stands and is named in errors, which have a line each. name is the program
// that the file is about.
//
// Sections of subcommands are checked when all is true; otherwise they are
// read when a call first needs them.
func Parse(source, name, text string, all bool) (*Entry, error) {
	if len(text) > MaxEntry {
		return nil, fmt.Errorf("%s: the file has %d bytes, the limit is %d", source, len(text), MaxEntry)
	}
	e := &Entry{
		Source: source, commands: map[string]*section{}, shared: map[string]*section{}, settings: map[string][]setting{},
	}
	p := parser{source: source, entry: e, all: all}
	if err := p.split(text); err != nil {
		return nil, err
	}
	if e.Name != name {
		return nil, fmt.Errorf("%s:2: the file is named for %q, and the entry is about %q", source, name, e.Name)
	}
	if e.SameAs != "" {
		return e, nil
	}
	if all {
		for _, s := range e.sections() {
			e.load(s)
			if s.err != nil {
				return nil, s.err
			}
		}
		p.whole = true
		return e, p.check()
	}
	return e, nil
}

// sections lists every section once, in the order of their lines.
func (e *Entry) sections() []*section {
	all := []*section{e.root}
	for path, s := range e.commands {
		if path == s.path {
			all = append(all, s)
		}
	}
	for _, s := range e.shared {
		all = append(all, s)
	}
	slices.SortFunc(all[1:], func(a, b *section) int { return a.line - b.line })
	return all
}

type parser struct {
	source string
	entry  *Entry
	line   int
	all    bool // everything is read at once
	whole  bool // the lines are read, and what they say together is checked
}

// fault is what is wrong in one line of a file.
type fault struct {
	source string
	line   int
	text   string
	whole  bool // shows only when the whole entry is known
}

func (f *fault) Error() string { return fmt.Sprintf("%s:%d: %s", f.source, f.line, f.text) }

func (p *parser) errorf(format string, args ...any) error {
	return &fault{p.source, p.line, fmt.Sprintf(format, args...), p.whole}
}

// maxFaults is how many faults of one file are reported.
const maxFaults = 20

// Faults reads an entry as Parse does and reports everything that is wrong in
// it, in the order in which it is found: a line that cannot be read is left
// out, and the rest is read again. What may only follow from a line that was
// left out is not reported.
func Faults(source, name, text string) []error {
	var faults []error
	unread := false // a line could not be read
	for len(faults) < maxFaults {
		_, err := Parse(source, name, text, true)
		if err == nil {
			break
		}
		f, ok := err.(*fault)
		lines := strings.Split(text, "\n")
		if !ok || f.line > len(lines) {
			return append(faults, err)
		}
		bad := strings.TrimSpace(lines[f.line-1])
		if f.whole && unread {
			break
		}
		unread = unread || !f.whole
		faults = append(faults, err)
		word, _, _ := strings.Cut(bad, " ")
		if bad == "" || bad[0] == '#' || f.line <= 2 || slices.Contains([]string{"program", "parser", "command", "same-as", "setting"}, word) {
			break // other lines depend on it
		}
		lines[f.line-1] = "#"
		text = strings.Join(lines, "\n")
	}
	slices.SortStableFunc(faults, func(a, b error) int { return a.(*fault).line - b.(*fault).line })
	return faults
}

// nextLine cuts the first line off text, without blanks around it.
func nextLine(text string) (line, rest string) {
	line, rest, _ = strings.Cut(text, "\n")
	return strings.TrimSpace(line), rest
}

// split reads the head of a file and finds its sections without reading what
// stands in them.
func (p *parser) split(text string) error {
	e := p.entry
	var current *section
	start := 0 // of the current section's text
	whole := text
	flush := func(end int) {
		if current != nil {
			current.text = whole[start:end]
		}
	}
	for pos := 0; text != ""; {
		var line string
		at := pos
		line, rest := nextLine(text)
		pos += len(text) - len(rest)
		text = rest
		p.line++
		if len(line) > maxLine {
			return p.errorf("the line has %d bytes, the limit is %d", len(line), maxLine)
		}
		if p.line == 1 {
			if line != Version {
				return p.errorf("the first line is %q, want %q", clip(line), Version)
			}
			continue
		}
		if line == "" || line[0] == '#' {
			continue
		}
		if !p.all && current != nil && skips(line) {
			continue // options, forms and examples are read when they are needed
		}
		word, tail, _ := strings.Cut(line, " ")
		tail = strings.TrimSpace(tail)
		if e.Name == "" {
			if word != "program" || tail == "" || strings.ContainsAny(tail, " \t/") {
				return p.errorf("want `program NAME`, found %q", clip(line))
			}
			e.Name = tail
			continue
		}
		if e.SameAs != "" {
			return p.errorf("nothing follows `same-as`")
		}
		switch word {
		case "same-as":
			if current != nil || e.traits.known || tail == "" || strings.ContainsAny(tail, " \t/") {
				return p.errorf("`same-as NAME` is the only statement of its file")
			}
			e.SameAs = tail
			continue
		case "about":
			e.About = tail
			continue
		case "origin":
			e.Origin = tail
			continue
		case "neutral":
			e.Neutral = append(e.Neutral, strings.Fields(tail)...)
			continue
		case "neutral-env":
			e.Settle = append(e.Settle, strings.Fields(tail)...)
			continue
		case "example":
			if err := p.example(tail); err != nil {
				return err
			}
			continue
		case "command":
			flush(at)
			s, err := p.command(strings.Fields(tail))
			if err != nil {
				return err
			}
			current, start = s, pos
			continue
		case "aka":
			if current == nil || current == e.root || current.path == "" {
				return p.errorf("`aka` belongs to a command")
			}
			if err := p.aka(current, strings.Fields(tail)); err != nil {
				return err
			}
			continue
		case "parser":
			if current != nil && current != e.root {
				continue // traits of a section are read with it
			}
			if e.traits.known {
				return p.errorf("a second `parser`")
			}
			t, err := parseTraits(traits{}, strings.Fields(tail), true)
			if err != nil {
				return p.errorf("%v", err)
			}
			e.traits = t
			e.root = &section{traits: t, line: p.line}
			current, start = e.root, pos
			continue
		}
		if current == nil {
			return p.errorf("%q before `parser`: say first how the program reads its words (`parser getopt`, or another of %s)", clip(word), presets)
		}
	}
	flush(len(whole))
	switch {
	case whole == "":
		p.line = 1
		return p.errorf("the first line is \"\", want %q", Version)
	case e.Name == "":
		return p.errorf("`program NAME` is missing")
	case e.SameAs == "" && e.root == nil:
		return p.errorf("`parser` is missing: say how the program reads its words, see docs/catalog.md")
	}
	return nil
}

// skips reports whether a line in a section says nothing about where sections
// begin.
func skips(line string) bool {
	switch line[0] {
	case '-', '+', '/', 'f', 'e':
		return true // an option, `form`, `example`
	}
	return false
}

func (p *parser) command(words []string) (*section, error) {
	e := p.entry
	if e.root == nil {
		return nil, p.errorf("`command` before `parser`")
	}
	if len(words) == 0 {
		return nil, p.errorf("`command` names no subcommand")
	}
	s := &section{path: strings.Join(words, " "), traits: e.traits, line: p.line}
	if words[len(words)-1] == "*" {
		path := strings.Join(words[:len(words)-1], " ")
		if e.shared[path] != nil {
			return nil, p.errorf("a second section for %q", s.path)
		}
		s.path = path
		e.shared[path] = s
		return s, nil
	}
	if e.commands[s.path] != nil {
		return nil, p.errorf("a second section for %q", s.path)
	}
	e.commands[s.path] = s
	return s, nil
}

func (p *parser) aka(s *section, names []string) error {
	if len(names) == 0 {
		return p.errorf("`aka` names nothing")
	}
	parent := s.path[:strings.LastIndexByte(s.path, ' ')+1]
	for _, name := range names {
		if other := p.entry.commands[parent+name]; other != nil {
			return p.errorf("%q is the name of another command", parent+name)
		}
		p.entry.commands[parent+name] = s
	}
	return nil
}

func (p *parser) example(text string) error {
	line, want, ok := strings.Cut(text, " =>")
	if !ok || strings.TrimSpace(line) == "" {
		return p.errorf("want `example WORDS => EFFECTS`")
	}
	effects := strings.Fields(want)
	for _, w := range effects {
		switch w {
		case "inert", "read", "neutral":
			if len(effects) > 1 {
				return p.errorf("%q stands alone in an example", w)
			}
		case "write", "destroy", "net", "priv", "exec", "opaque":
		default:
			return p.errorf("%q is no effect of an example, which are: %s", clip(w), exampleEffects)
		}
	}
	if len(effects) == 0 {
		return p.errorf("the example says no effect")
	}
	slices.Sort(effects)
	p.entry.examples = append(p.entry.examples, Example{Line: p.line, Text: strings.TrimSpace(line), Want: slices.Compact(effects)})
	return nil
}

// section reads the options and forms of one section.
func (p *parser) section(s *section) error {
	s.options = map[string]*option{}
	p.line = s.line
	for text := s.text; text != ""; {
		var line string
		line, text = nextLine(text)
		p.line++
		if line == "" || line[0] == '#' {
			continue
		}
		if err := p.statement(s, line); err != nil {
			return err
		}
	}
	return nil
}

func (p *parser) statement(s *section, line string) error {
	word, tail, _ := strings.Cut(line, " ")
	switch word {
	case "about", "origin", "neutral", "neutral-env", "example", "aka":
		return nil // read already
	case "parser":
		t, err := parseTraits(s.traits, strings.Fields(tail), false)
		if err != nil {
			return p.errorf("%v", err)
		}
		s.traits = t
		return nil
	case "like":
		s.like = append(s.like, strings.Join(strings.Fields(tail), " "))
		return nil
	case "form":
		return p.form(s, tail)
	case "setting":
		if s != p.entry.root {
			return p.errorf("`setting` belongs before the first `command`")
		}
		return p.setting(tail)
	case "option":
		return p.option(s, strings.TrimSpace(tail))
	}
	if strings.IndexByte("-+/", line[0]) >= 0 {
		return p.option(s, line)
	}
	return p.errorf("unknown statement %q: want an option, `form`, `example`, `command`, `like`, `aka` or `setting`", clip(word))
}

func (p *parser) option(s *section, line string) error {
	words, clauses := line, ""
	if i := strings.Index(line, " : "); i >= 0 {
		words, clauses = line[:i], line[i+3:]
	}
	o := &option{line: p.line}
	for _, w := range strings.Fields(words) {
		switch {
		case w == "!":
			o.ends = true
		case w[0] == '=' && len(w) > 1 && len(o.names) > 0, strings.HasPrefix(w, "[=") && strings.HasSuffix(w, "]"):
			switch {
			case len(o.names) == 0:
				return p.errorf("an option without a name")
			case o.mode != noValue:
				return p.errorf("a second value of %s", o.names[0])
			}
			if err := p.value(o, w); err != nil {
				return err
			}
		case o.mode != noValue || o.ends:
			return p.errorf("%q after the value", clip(w))
		default:
			o.names = append(o.names, w)
		}
	}
	if len(o.names) == 0 {
		return p.errorf("an option without a name")
	}
	for _, text := range strings.Split(clauses, " ; ") {
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		c, err := p.clause(text)
		if err != nil {
			return err
		}
		o.clauses = append(o.clauses, c)
	}
	if s.traits.anyCase {
		for i, name := range o.names {
			o.names[i] = lowerASCII(name)
		}
	}
	for _, name := range o.names {
		if err := p.addOption(s, name, o); err != nil {
			return err
		}
	}
	return nil
}

func (p *parser) addOption(s *section, name string, o *option) error {
	s.undashed = s.undashed || name[0] != '-'
	if name == "-#" || len(name) > 1 && (strings.HasSuffix(name, "*") || strings.HasSuffix(name, "=")) {
		s.families = append(s.families, &option{names: []string{name}, line: o.line, mode: o.mode, values: o.values, ends: o.ends, clauses: o.clauses})
		return nil
	}
	if s.options[name] != nil {
		return p.errorf("a second %s in this section", name)
	}
	s.options[name] = o
	return nil
}

func (p *parser) value(o *option, w string) error {
	o.mode = requiredValue
	if strings.HasPrefix(w, "[=") {
		o.mode = attachedValue
		w = w[1 : len(w)-1]
	}
	w = w[1:]
	switch {
	case o.mode == requiredValue && strings.HasSuffix(w, ";;"):
		o.mode, w = onlySemicolon, w[:len(w)-2]
	case o.mode == requiredValue && strings.HasSuffix(w, ";"):
		o.mode, w = untilSemicolon, w[:len(w)-1]
	case o.mode == requiredValue && strings.HasSuffix(w, "..."):
		o.mode, w = restValue, w[:len(w)-3]
	}
	for _, text := range strings.Split(w, ",") {
		r, err := p.role(text)
		if err != nil {
			return err
		}
		o.values = append(o.values, r)
	}
	if len(o.values) > 1 && o.mode != requiredValue {
		return p.errorf("only a required value has two words")
	}
	return nil
}

func (p *parser) role(text string) (roleSpec, error) {
	if strings.HasPrefix(text, "@") && len(text) > 1 {
		return roleSpec{Thing, text[1:]}, nil
	}
	name, arg, hasArg := strings.Cut(text, ":")
	for r, n := range roleNames {
		if n != name || n == "" || Role(r) == Thing {
			continue
		}
		role := Role(r)
		if (role == Code || role == Setting || role == File) != hasArg || hasArg && arg == "" {
			return roleSpec{}, p.errorf("role %q: `code`, `setting` and `file` have a name after a colon, the others have none", clip(text))
		}
		if role == File && !slices.Contains(Attachments(), arg) {
			return roleSpec{}, p.errorf("role %q: a path is in a word by one of %s", clip(text), strings.Join(Attachments(), ", "))
		}
		return roleSpec{role, arg}, nil
	}
	return roleSpec{}, p.errorf("unknown role %q, roles are: %s and @KIND", clip(text), roleList())
}

// The words for effects, for messages.
const (
	exampleEffects = "inert, read, neutral, write, destroy, net, priv, exec, opaque"
	formEffects    = exampleEffects + ", door, secret, beyond, low, medium, high, critical, stdin:ROLE"
	presets        = "getopt, posix, modern, argparse, goflag, single, dos, powershell, none"
	traitNames     = "abbreviations, no-abbreviations, anywhere, stop, no-combined, no-dashdash, any-case, first-cluster, short-commands, dash-stdout, versioned, all-options"
)

// roleList are the names of the roles, for messages.
func roleList() string {
	var names []string
	for r, n := range roleNames {
		switch {
		case n == "" || Role(r) == Thing:
		case Role(r) == Code:
			names = append(names, n+":LANGUAGE")
		case Role(r) == Setting:
			names = append(names, n+":GROUP")
		case Role(r) == File:
			for _, way := range Attachments() {
				names = append(names, n+":"+way)
			}
		default:
			names = append(names, n)
		}
	}
	return strings.Join(names, ", ")
}

// clause reads effect words with an optional `if` or `unless`.
func (p *parser) clause(text string) (clause, error) {
	var c clause
	words := strings.Fields(text)
	for i, w := range words {
		switch w {
		case "if", "unless":
			if i+2 != len(words) || i == 0 {
				return c, p.errorf("want `EFFECTS %s VALUE|VALUE`", w)
			}
			c.conditional = true
			patterns := strings.Split(words[i+1], "|")
			if w == "if" {
				c.only = patterns
			} else {
				c.except = patterns
			}
			return c, p.stars(patterns)
		case "inert":
		case "read":
			c.effects |= detail.Unsettled
		case "neutral":
			c.effects |= detail.Unsettled
			c.neutral = true
		case "write":
			c.effects |= detail.Writes
		case "destroy":
			c.effects |= detail.Destroys
		case "net":
			c.effects |= detail.Contacts
		case "priv":
			c.effects |= detail.Privileged
		case "exec":
			c.effects |= detail.Executes
		case "opaque":
			c.effects |= detail.Opaque
		case "door":
			c.effects |= detail.Door
		case "secret":
			c.effects |= detail.Secrets
		case "beyond":
			c.effects |= detail.Beyond
		case "low", "medium", "high", "critical":
			risk, err := detail.ParseRisk(w)
			if err != nil {
				return c, p.errorf("%v", err)
			}
			c.risk = max(c.risk, risk)
		default:
			role, isStdin := strings.CutPrefix(w, "stdin:")
			if !isStdin {
				return c, p.errorf("unknown effect %q, effects are: %s", clip(w), formEffects)
			}
			r, err := p.role(role)
			if err != nil {
				return c, err
			}
			c.stdin = r
		}
	}
	if len(words) == 0 {
		return c, p.errorf("no effect: say `inert`, `read` or what it does")
	}
	return c, nil
}

// form reads `NAME [when CONDITION] : EFFECTS : OPERANDS`.
func (p *parser) form(s *section, text string) error {
	head, tail, ok := cutColon(text)
	effects, operands, ok2 := cutColon(tail)
	if !ok || !ok2 {
		return p.errorf("want `form NAME when CONDITION : EFFECTS : OPERANDS`")
	}
	words := strings.Fields(head)
	if len(words) == 0 {
		return p.errorf("the form has no name")
	}
	f := form{name: words[0], line: p.line}
	if len(words) > 1 {
		if words[1] != "when" {
			return p.errorf("%q after the form's name, want `when` or a colon", clip(words[1]))
		}
		terms, err := p.condition(s, words[2:])
		if err != nil {
			return err
		}
		f.terms = terms
	} else if len(s.forms) > 0 && s.forms[len(s.forms)-1].terms == nil {
		return p.errorf("the form before this one always holds, so this one never counts")
	}
	c, err := p.clause(effects)
	if err != nil {
		return err
	}
	if c.conditional {
		return p.errorf("the effects of a form have no `if`: write `when`")
	}
	f.clause = c
	if f.operands, err = p.operands(operands); err != nil {
		return err
	}
	s.forms = append(s.forms, f)
	return nil
}

// cutColon cuts at a colon that stands alone between blanks, or at the end.
func cutColon(text string) (before, after string, ok bool) {
	for i := 0; i < len(text); i++ {
		if text[i] != ':' {
			continue
		}
		if (i == 0 || text[i-1] == ' ') && (i+1 == len(text) || text[i+1] == ' ') {
			return text[:i], text[i+1:], true
		}
	}
	return "", "", false
}

func (p *parser) operands(text string) ([]operandSpec, error) {
	var out []operandSpec
	repeated := false
	for _, w := range strings.Fields(text) {
		if n := len(out); n > 0 && out[n-1].takesRest() {
			return nil, p.errorf("%q behind a command: all words there belong to it", clip(w))
		}
		o := operandSpec{}
		switch {
		case strings.HasSuffix(w, "..."):
			o.repeated, o.optional, w = true, true, w[:len(w)-3]
		case strings.HasSuffix(w, "+"):
			o.repeated, w = true, w[:len(w)-1]
		case strings.HasSuffix(w, "?"):
			o.optional, w = true, w[:len(w)-1]
		}
		r, err := p.role(w)
		if err != nil {
			return nil, err
		}
		o.roleSpec = r
		switch r.role {
		case Command, Shell, RemoteCommand, RemoteShell:
			// What follows belongs to the command.
		default:
			if o.repeated && r.role != Assign {
				if repeated {
					return nil, p.errorf("more than one operand is repeated")
				}
				repeated = true
			}
		}
		out = append(out, o)
	}
	return out, nil
}

func (p *parser) condition(s *section, words []string) ([]term, error) {
	var terms []term
	for len(words) > 0 {
		t, rest, err := p.term(s, words)
		if err != nil {
			return nil, err
		}
		terms = append(terms, t)
		if len(rest) > 0 {
			if rest[0] != "and" || len(rest) == 1 {
				return nil, p.errorf("want `and` between two conditions, found %q", clip(rest[0]))
			}
			rest = rest[1:]
		}
		words = rest
	}
	if len(terms) == 0 {
		return nil, p.errorf("`when` has no condition")
	}
	return terms, nil
}

func (p *parser) term(s *section, words []string) (term, []string, error) {
	switch {
	case words[0] == "operands" && len(words) > 1:
		low, high, err := parseRange(words[1])
		if err != nil {
			return term{}, nil, p.errorf("%v", err)
		}
		return term{kind: operandCount, low: low, high: high}, words[2:], nil
	case words[0] == "operand" && len(words) > 3 && words[2] == "is":
		n, err := strconv.Atoi(words[1])
		if err != nil || n < 1 {
			return term{}, nil, p.errorf("operand %q: want a number from 1", clip(words[1]))
		}
		values := s.optionNames(words[3])
		return term{kind: operandIs, low: n, names: values}, words[4:], p.stars(values)
	case len(words) > 2 && words[1] == "is":
		values := s.optionNames(words[2])
		return term{kind: optionIs, names: s.optionNames(words[0]), values: values}, words[3:], p.stars(values)
	case strings.HasPrefix(words[0], "!") && len(words[0]) > 1:
		return term{kind: lacksOption, names: s.optionNames(words[0][1:])}, words[1:], nil
	case strings.IndexByte("-+/", words[0][0]) >= 0 || strings.Contains(words[0], "="):
		return term{kind: hasOption, names: s.optionNames(words[0])}, words[1:], nil
	}
	return term{}, nil, p.errorf("unknown condition %q", clip(words[0]))
}

// stars refuses a pattern with a star that is not at an end, unless both ends
// have one. A value that begins with a star itself is "**".
func (p *parser) stars(patterns []string) error {
	for _, text := range patterns {
		if text == "**" {
			continue
		}
		n, first, last := strings.Count(text, "*"), strings.HasPrefix(text, "*"), strings.HasSuffix(text, "*")
		if n > 0 && !(first && last && len(text) > 2) && (n > 1 || !first && !last) {
			return p.errorf("pattern %q: a star stands at the beginning, at the end or at both", clip(text))
		}
	}
	return nil
}

func (s *section) optionNames(text string) []string {
	if s.traits.anyCase {
		text = lowerASCII(text)
	}
	return strings.Split(text, "|")
}

func parseRange(text string) (low, high int, err error) {
	a, b, isRange := strings.Cut(text, "..")
	if low, err = strconv.Atoi(a); err == nil && low >= 0 {
		switch {
		case !isRange:
			return low, low, nil
		case b == "":
			return low, -1, nil
		}
		if high, err = strconv.Atoi(b); err == nil && high >= low {
			return low, high, nil
		}
	}
	return 0, 0, fmt.Errorf("operands %q: want N, N.. or N..M", clip(text))
}

func (p *parser) setting(text string) error {
	words, effects, hasEffects := strings.Cut(text, " : ")
	fields := strings.Fields(words)
	if len(fields) < 2 || len(fields) > 3 {
		return p.errorf("want `setting GROUP KEY =ROLE : EFFECTS`")
	}
	st := setting{pattern: strings.ToLower(fields[1])}
	if len(fields) == 3 {
		if fields[2][0] != '=' {
			return p.errorf("want `setting GROUP KEY =ROLE : EFFECTS`")
		}
		r, err := p.role(fields[2][1:])
		if err != nil {
			return err
		}
		st.value = r
	}
	if hasEffects {
		c, err := p.clause(strings.TrimSpace(effects))
		if err != nil {
			return err
		}
		st.clause = c
	}
	if st.value.role == NoRole && !hasEffects {
		return p.errorf("the setting says neither a role nor effects")
	}
	p.entry.settings[fields[0]] = append(p.entry.settings[fields[0]], st)
	return nil
}

// check is what only a whole entry shows.
func (p *parser) check() error {
	e := p.entry
	for _, s := range e.sections() {
		p.line = s.line
		for _, path := range s.like {
			if e.commands[path] == nil {
				return p.errorf("`like %s`: there is no such command", path)
			}
		}
		known := func(name string) bool {
			for _, scope := range e.scopes(s) {
				if scope.options[name] != nil || slices.ContainsFunc(scope.families, func(o *option) bool { return o.names[0] == name }) {
					return true
				}
			}
			return false
		}
		for _, o := range s.allOptions() {
			for _, v := range o.values {
				if v.role == Setting && e.settings[v.arg] == nil {
					p.line = o.line
					return p.errorf("%s: there are no settings %q", o.names[0], v.arg)
				}
			}
		}
		if i := strings.LastIndexByte(s.path, ' '); i >= 0 && e.commands[s.path] == s && e.commands[s.path[:i]] == nil {
			return p.errorf("command %s: there is no section for %q, so it would never be found", s.path, s.path[:i])
		}
		for _, f := range s.forms {
			p.line = f.line
			for _, t := range f.terms {
				if t.kind != hasOption && t.kind != lacksOption && t.kind != optionIs {
					continue
				}
				for _, name := range t.names {
					if !known(name) {
						return p.errorf("form %s: the condition names %s, which is no option here", f.name, name)
					}
				}
			}
			for _, o := range f.operands {
				if o.role == Setting && e.settings[o.arg] == nil {
					return p.errorf("form %s: there are no settings %q", f.name, o.arg)
				}
			}
		}
	}
	if e.About == "" {
		p.line = 1
		return p.errorf("`about` is missing")
	}
	return nil
}

// allOptions lists the options of a section in the order of their lines.
func (s *section) allOptions() []*option {
	all := slices.Clone(s.families)
	for _, o := range s.options {
		all = append(all, o)
	}
	slices.SortFunc(all, func(a, b *option) int { return a.line - b.line })
	return all
}

func parseTraits(t traits, words []string, preset bool) (traits, error) {
	if preset {
		if len(words) == 0 {
			return t, fmt.Errorf("`parser` names no preset")
		}
		var ok bool
		if t, ok = presetTraits(words[0]); !ok {
			return t, fmt.Errorf("unknown parser %q, parsers are: %s", clip(words[0]), presets)
		}
		words = words[1:]
	}
	t.known = true
	for _, w := range words {
		switch w {
		case "abbreviations":
			t.abbreviations = true
		case "no-abbreviations":
			t.abbreviations = false
		case "anywhere":
			t.anywhere, t.explicitOrder = true, true
		case "stop":
			t.anywhere, t.explicitOrder = false, true
		case "no-combined":
			t.combined = false
		case "no-dashdash":
			t.dashdash = false
		case "any-case":
			t.anyCase = true
		case "first-cluster":
			t.firstCluster = true
		case "short-commands":
			t.shortCommands = true
		case "dash-stdout":
			t.dashStdout = true
		case "versioned":
			t.versioned = true
		case "all-options":
			t.allOptions = true
		default:
			return t, fmt.Errorf("unknown trait %q, traits are: %s", clip(w), traitNames)
		}
	}
	return t, nil
}

func presetTraits(name string) (traits, bool) {
	t := traits{known: true, dashdash: true}
	switch name {
	case "getopt", "argparse":
		t.long, t.combined, t.abbreviations, t.anywhere = true, true, true, true
	case "posix":
		t.long, t.combined = true, true
	case "modern":
		t.long, t.combined, t.anywhere, t.shortEquals = true, true, true, true
	case "goflag":
		t.singleDash, t.eitherDash = true, true
	case "single":
		t.singleDash, t.anywhere = true, true
	case "dos":
		t.slash, t.anyCase, t.anywhere, t.colon, t.dashdash = true, true, true, true, false
	case "powershell":
		t.singleDash, t.anyCase, t.anywhere, t.colon, t.abbreviations, t.dashdash = true, true, true, true, true, false
	case "none":
		t.operandsOnly, t.dashdash = true, false
	default:
		return t, false
	}
	return t, true
}

// lowerASCII lowers the letters of ASCII only, so that no length changes.
func lowerASCII(s string) string {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c >= 'A' && c <= 'Z' {
			b := []byte(s)
			for k := i; k < len(b); k++ {
				b[k] = lower(b[k])
			}
			return string(b)
		}
	}
	return s
}

// clip shortens text from a file for a message.
func clip(s string) string {
	if len(s) > 60 {
		return s[:60] + "…"
	}
	return s
}
