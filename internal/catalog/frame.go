package catalog

import (
	"slices"
	"strings"

	"vogt/internal/detail"
)

// Kind says how much of a word is known.
type Kind uint8

// The kinds. The zero value is a word of which all is known.
const (
	Literal Kind = iota
	Partial      // one word; only what it begins with is known
	Glob         // one or more words that match a pattern; only the beginning is known
	Many         // any number of words, also none; only the beginning is known
)

// Hole stands in a template for text that is not known. Where the character
// itself occurs in a text, that too is read as unknown.
const Hole = '\uE000'

// Word is one word of a call as far as it is known before it runs.
type Word struct {
	Text string // the word, or what it begins with when Kind is not Literal
	open *openText
	// Computed is up to where a literal word's text came from variables.
	Computed int32
	Kind     Kind
	// Option reports that a word that is not literal may be an option. It is
	// false for one that is known to begin with another character, even if
	// Text is empty.
	Option bool
}

// openText is how a word that is not literal is written.
type openText struct{ shown, template string }

// Shown is how a person would write the word.
func (w *Word) Shown() string {
	if w.open == nil {
		return w.Text
	}
	return w.open.shown
}

// Template is the whole word with Hole for each part that is not known.
func (w *Word) Template() string {
	if w.open == nil {
		return w.Text
	}
	return w.open.template
}

// Open returns a word that is not literal: text is what it begins with.
func Open(kind Kind, text, shown, template string, option bool) Word {
	return Word{Text: text, Kind: kind, Option: option, open: &openText{shown, template}}
}

// Unknown returns a word, or words, of which nothing is known.
func Unknown(kind Kind) Word {
	return Word{Kind: kind, Option: true, open: nothingKnown}
}

var nothingKnown = &openText{"…", string(Hole)}

// Value is a word, or part of one, with the role that it plays.
type Value struct {
	Role   Role
	Arg    string // the language of Code, the group of Setting, the kind of Thing
	Word   int    // index into the words of the call
	From   int    // where the value begins in the word's text
	End    int    // for a Role that takes several words: index after the last
	Option string // the option it is the value of, or empty
}

// Use is what a call means by its entry.
type Use struct {
	Entry    *Entry
	stuck    bool   // something is consulted that the neutral words leave
	command  string // path of the subcommand
	form     string
	Effects  detail.Effects
	Risk     detail.Risk // as the entry's words say; effects may imply more
	Neutral  bool        // the entry's neutral words make it inert
	Values   []Value
	Stdin    Role // what standard input is, if it matters
	StdinArg string
	Why      string // what made it opaque, for people; empty otherwise
	WhyWord  int    // the word that did, or -1
}

// opaque marks a use as unknown; the first reason stays.
func (u *Use) opaque(word int, why string) {
	u.Effects |= detail.Opaque
	if u.Why == "" {
		u.Why, u.WhyWord = why, word
	}
}

func (u *Use) add(c *clause) {
	u.Effects |= c.effects
	u.Risk = max(u.Risk, c.risk)
	if c.effects.Has(detail.Unsettled) {
		u.Neutral = u.Neutral || c.neutral
		u.stuck = u.stuck || !c.neutral
	}
	if c.stdin.role != NoRole {
		u.Stdin, u.StdinArg = c.stdin.role, c.stdin.arg
	}
}

// frame reads the words of one call against one entry.
type frame struct {
	entry      *Entry
	words      []Word
	section    *section
	scopes     []*section
	use        *Use
	operands   []int // indexes of words
	given      []givenOption
	values     []Value
	doubt      bool // a word that is not literal may be an option
	firstDoubt int  // the first such word
	more       int  // how many values may split into further operands, or vanish
}

type givenOption struct {
	option *option
	name   string
	value  string
	known  bool // the value is literal
}

// Interpret reads the words of a call, the program's name first.
func (e *Entry) Interpret(words []Word) Use {
	var u Use
	e.InterpretTo(words, &u)
	return u
}

// InterpretTo is Interpret into a value that is there.
func (e *Entry) InterpretTo(words []Word, u *Use) {
	*u = Use{Entry: e, WhyWord: -1}
	e.load(e.root)
	if e.root.err != nil {
		u.opaque(-1, "the catalog's entry is broken")
		return
	}
	f, _ := e.frames.Get().(*frame)
	if f == nil {
		f = &frame{}
	}
	*f = frame{entry: e, words: words, section: e.root, use: u, operands: f.operands[:0], given: f.given[:0], values: f.values[:0]}
	f.scopes = e.scopes(e.root)
	f.scan()
	f.settle()
	u.command = f.section.path
	u.Neutral = u.Neutral && !u.stuck && !u.Effects.Has(detail.Door)
	if len(f.values) > 0 {
		u.Values = append(make([]Value, 0, len(f.values)), f.values...)
	}
	clear(f.given)
	clear(f.values)
	*f = frame{operands: f.operands[:0], given: f.given[:0], values: f.values[:0]}
	e.frames.Put(f)
}

// DashStdout reports whether "-" as a file that is written is standard output.
func (u *Use) DashStdout() bool { return u.Entry != nil && u.Entry.traits.dashStdout }

// Form is the name of the form that the call has.
func (u *Use) Form() string { return u.form }

// Operation is program, subcommand and form, joined by dots; empty when no
// entry told.
func (u *Use) Operation() string {
	if u.Entry == nil {
		return ""
	}
	op := u.Entry.Name
	if u.command != "" {
		op += "." + strings.ReplaceAll(u.command, " ", ".")
	}
	if u.form != "" && u.form != "run" {
		op += "." + u.form
	}
	return op
}

// scan tells options from operands.
func (f *frame) scan() {
	t := &f.section.traits
	ended := t.operandsOnly
	i := 1
	if t.firstCluster && len(f.words) > 1 && f.words[1].Kind == Literal {
		if next, ok := f.cluster(f.words[1].Text); ok {
			i = next
		}
	}
	if t.firstCluster && len(f.words) > 1 && f.words[1].Kind != Literal && (f.words[1].Text == "" || f.words[1].Text[0] != '-') {
		f.use.opaque(1, "the letters of the first word are not literal")
	}
	for i < len(f.words) {
		w := &f.words[i]
		t = &f.section.traits
		if ended {
			f.operands = append(f.operands, i)
			i++
			continue
		}
		if w.Kind == Literal && w.Text == "--" && t.dashdash {
			ended = true
			i++
			continue
		}
		if next, ends, ok := f.option(i); ok {
			if w.Kind == Many || w.Kind == Glob {
				f.doubtAt(i)
				f.more++
			}
			ended = ended || ends
			i = next
			continue
		}
		if w.Kind != Literal && (w.Option || f.mayBegin(w.Text)) {
			f.doubtAt(i)
		}
		if len(f.operands) == 0 && len(f.entry.commands) > 0 && !f.atAssign(w) {
			if w.Kind != Literal && f.mayDescend(w.Text) {
				f.use.opaque(i, "the subcommand is not literal")
			} else if s := f.subcommand(w); s != nil {
				f.enter(s)
				ended = f.section.traits.operandsOnly
				i++
				continue
			}
		}
		if f.section.stops() {
			ended = true // NAME=value too: what follows is the command
		}
		f.operands = append(f.operands, i)
		i++
	}
}

// atAssign reports whether w is NAME=value before a command.
func (f *frame) atAssign(w *Word) bool {
	if !assignment(w.Text) {
		return false
	}
	for i := range f.section.forms {
		for _, o := range f.section.forms[i].operands {
			if o.role == Assign {
				return true
			}
		}
	}
	return false
}

// assignment reports whether text begins with NAME=. env(1) takes any name,
// also one that no shell would.
func assignment(text string) bool { return strings.IndexByte(text, '=') > 0 }

func (f *frame) subcommand(w *Word) *section {
	if w.Kind != Literal {
		return nil
	}
	text := w.Text
	if f.section.traits.anyCase {
		text = lowerASCII(text)
	}
	path := text
	if f.section != f.entry.root {
		path = f.section.path + " " + text
	}
	if s := f.entry.commands[path]; s != nil {
		return s
	}
	if !f.section.traits.shortCommands || text == "" {
		return nil
	}
	var found *section
	for other, s := range f.entry.commands {
		if strings.HasPrefix(other, path) && !strings.Contains(other[len(path):], " ") && other != "" {
			if found != nil && found != s {
				return nil
			}
			found = s
		}
	}
	return found
}

func (f *frame) enter(s *section) {
	f.entry.load(s)
	f.section = s
	f.scopes = f.entry.scopes(s)
	for _, scope := range f.scopes {
		if scope.err != nil {
			f.use.opaque(-1, "the catalog's entry is broken")
		}
	}
}

// find looks an option up by its exact spelling.
func (f *frame) find(name string) *option {
	for _, s := range f.scopes {
		if o := s.options[name]; o != nil {
			return o
		}
	}
	return nil
}

// option reads the option at word i. ok is false when the word is an operand.
func (f *frame) option(i int) (next int, ends, ok bool) {
	w := &f.words[i]
	t := &f.section.traits
	text := w.Text
	if text == "" {
		return 0, false, false
	}
	if t.anyCase {
		text = lowerASCII(text)
	}
	if t.eitherDash && strings.HasPrefix(text, "--") && len(text) > 2 {
		text = text[1:]
	}
	if w.Kind == Literal {
		if o := f.find(text); o != nil {
			return f.take(o, text, i, -1)
		}
	} else {
		// What is hidden may make it another option, or leave its value to the
		// next word.
		if o := f.find(text); o != nil && o.mode == requiredValue {
			f.doubtAt(i)
			f.more++
		}
		if text == "-" || f.mayBegin(text) {
			f.doubtful(i)
		}
	}
	if !f.optionLike(text, t) {
		return f.family(i, text)
	}
	if w.Kind != Literal && (!knownName(text, t) || text[1] != '-' && f.mayBegin(text) && len(text) > 1) {
		// The text may go on to name any option.
		f.doubtful(i)
		return i + 1, false, true
	}
	if o, name, from := f.attached(text, w.Kind == Literal, t); o != nil {
		from += len(w.Text) - len(text)
		return f.take(o, name, i, from)
	}
	if next, ends, ok := f.family(i, text); ok {
		return next, ends, true
	}
	if t.combined && text[1] != '-' {
		return f.letters(i, text)
	}
	if t.abbreviations && w.Kind == Literal {
		if o := f.abbreviated(text, t); o != nil {
			return f.take(o, o.names[0], i, -1)
		}
	}
	f.use.opaque(i, "the option is not in the catalog")
	return i + 1, false, true
}

// optionLike reports whether a word that begins with text is read as an option.
func (f *frame) optionLike(text string, t *traits) bool {
	switch {
	case text[0] == '-':
		return len(text) > 1
	case text[0] == '/':
		return t.slash && len(text) > 1
	}
	return false
}

// knownName reports whether the option's name is known though the word goes
// on: what is unknown is only its value.
func knownName(text string, t *traits) bool {
	if strings.IndexByte(text, '=') > 0 || t.colon && strings.IndexByte(text, ':') > 0 {
		return true
	}
	return t.combined && text[1] != '-'
}

// doubtful handles a word that may be any option.
func (f *frame) doubtful(i int) {
	f.use.opaque(i, "the word may be any option")
}

// attached finds an option whose value stands in the same word: --name=value,
// -name=value, /name:value.
func (f *frame) attached(text string, literal bool, t *traits) (*option, string, int) {
	cut := -1
	switch {
	case t.colon:
		cut = strings.IndexAny(text, ":=")
	case strings.HasPrefix(text, "--"), t.singleDash:
		cut = strings.IndexByte(text, '=')
	}
	if cut <= 0 {
		return nil, "", 0
	}
	name := text[:cut]
	o := f.find(name)
	if o == nil && t.abbreviations {
		o = f.abbreviated(name, t)
	}
	if o == nil {
		return nil, "", 0
	}
	if o.mode == noValue {
		// --flag=value: programs that accept it can switch the flag off by it.
		switch text[cut+1:] {
		case "true", "1", "yes", "on":
			if literal {
				return o, name, -1
			}
		}
		return nil, "", 0
	}
	return o, name, cut + 1
}

// abbreviated finds the one long option that begins with text.
func (f *frame) abbreviated(text string, t *traits) *option {
	if t.singleDash {
		if len(text) < 2 {
			return nil
		}
	} else if !strings.HasPrefix(text, "--") || len(text) < 3 {
		return nil
	}
	var found *option
	for _, s := range f.scopes {
		for name, o := range s.options {
			if strings.HasPrefix(name, text) {
				if found != nil && found != o {
					return nil
				}
				found = o
			}
		}
	}
	return found
}

// family finds -#, -f* and if=.
func (f *frame) family(i int, text string) (next int, ends, ok bool) {
	for _, s := range f.scopes {
		for _, o := range s.families {
			pattern := o.names[0]
			switch {
			case pattern == "-#":
				if f.words[i].Kind != Literal || text[0] != '-' || len(text) < 2 || strings.Trim(text[1:], "0123456789") != "" {
					continue
				}
				next, ends, ok = f.take(o, pattern, i, -1)
				return next, ends, ok
			case strings.HasPrefix(text, strings.TrimSuffix(pattern, "*")):
				from := len(pattern)
				if pattern[from-1] == '*' {
					from--
				}
				if o.mode == noValue {
					from = -1
				}
				return f.take(o, pattern, i, from)
			}
		}
	}
	return 0, false, false
}

// letters reads -abc and -ovalue at word i.
func (f *frame) letters(i int, text string) (next int, ends, ok bool) {
	w := &f.words[i]
	for at := 1; at < len(text); at++ {
		name := "-" + text[at:at+1]
		o := f.find(name)
		if o == nil {
			f.use.opaque(i, "the option is not in the catalog")
			return i + 1, ends, true
		}
		last := at+1 == len(text)
		if o.mode == noValue || o.mode == attachedValue && last && w.Kind == Literal {
			_, e, _ := f.take(o, name, i, -1)
			ends = ends || e
			continue
		}
		from := at + 1
		if f.section.traits.shortEquals && from < len(text) && text[from] == '=' {
			from++
		}
		if last && w.Kind == Literal {
			from = -1 // the value is the next word
		} else if from == len(text) && text[from-1] != '=' && o.mode == requiredValue {
			f.doubtAt(i) // if nothing follows, the next word is the value
			f.more++
		}
		next, e, _ := f.take(o, name, i, from)
		return next, ends || e, true
	}
	if w.Kind != Literal {
		f.doubtful(i) // more letters may follow
	}
	return i + 1, ends, true
}

// cluster reads a first word without its dash, as in `tar xf a.tar`: the
// letters' values are the words that follow, in order.
func (f *frame) cluster(text string) (next int, ok bool) {
	if text == "" || text[0] == '-' {
		return 0, false
	}
	next = 2
	for at := 0; at < len(text); at++ {
		name := "-" + text[at:at+1]
		o := f.find(name)
		if o == nil {
			f.use.opaque(1, "the option is not in the catalog")
			continue
		}
		value := -1
		if o.mode == untilSemicolon || o.mode == onlySemicolon || o.mode == restValue || o.ends || len(o.values) > 1 {
			f.use.opaque(1, "the option takes more than one word")
			continue
		}
		if o.mode == requiredValue && next < len(f.words) {
			if k := f.words[next].Kind; k == Many || k == Glob {
				f.doubtAt(next)
				f.more++
			}
			value = next
			next++
		}
		f.give(o, name, value, 0)
	}
	return next, true
}

// take records an option at word i. from is where its value begins in the
// word, or -1 when it does not stand there.
func (f *frame) take(o *option, name string, i, from int) (next int, ends, ok bool) {
	next = i + 1
	switch {
	case o.mode == noValue || o.mode == attachedValue && from < 0:
		f.give(o, name, -1, 0)
	case o.mode == untilSemicolon || o.mode == onlySemicolon:
		if from >= 0 { // the command stands in the same word, alone
			f.value(o.values[0], i, from, next, name)
			f.give(o, name, -1, 0)
			break
		}
		end := next
		for ; end < len(f.words); end++ {
			w := &f.words[end]
			if w.Kind == Literal && (w.Text == ";" || o.mode == untilSemicolon && w.Text == "+" && end > next && f.words[end-1].Text == "{}") {
				break
			}
			if w.Kind == Many || w.Kind != Literal && (w.Text == "" && w.Option || strings.HasPrefix(w.Text, ";") || strings.HasPrefix(w.Text, "+")) {
				f.use.opaque(end, "the word may be the end of the command")
			}
		}
		f.value(o.values[0], next, 0, end, name)
		f.give(o, name, -1, 0)
		next = min(end+1, len(f.words))
	case o.mode == restValue:
		if from >= 0 {
			f.value(o.values[0], i, from, len(f.words), name)
		} else if next < len(f.words) {
			f.value(o.values[0], next, 0, len(f.words), name)
		}
		f.give(o, name, -1, 0)
		next = len(f.words)
	case from >= 0 && len(o.values) > 1:
		f.use.opaque(i, "the option takes two words")
		f.give(o, name, -1, 0)
	case from >= 0:
		f.give(o, name, i, from)
	default:
		first := next
		for range o.values {
			if next < len(f.words) {
				if f.words[next].Kind == Many || f.words[next].Kind == Glob {
					f.doubtAt(next)
					f.more++
				}
				next++
			}
		}
		if first == next {
			f.give(o, name, -1, 0)
			break
		}
		for k := first; k < next; k++ {
			if k == first {
				f.give(o, name, k, 0)
			} else {
				f.value(o.values[k-first], k, 0, k+1, name)
			}
		}
	}
	return next, o.ends, true
}

// give records an option with its value in word at, if at is not negative.
func (f *frame) give(o *option, name string, at, from int) {
	g := givenOption{option: o, name: name}
	if at >= 0 {
		w := &f.words[at]
		g.known = w.Kind == Literal
		g.value = w.Text[min(from, len(w.Text)):]
		f.value(o.values[0], at, from, at+1, name)
	}
	f.given = append(f.given, g)
	for k := range o.clauses {
		c := &o.clauses[k]
		if at < 0 && len(c.only) == 1 && c.only[0] == anyValue {
			continue
		}
		if !c.conditional || at < 0 || !g.known || c.holdsFor(g.value) {
			f.use.add(c)
		}
	}
}

func (c *clause) holdsFor(value string) bool {
	if c.only != nil {
		return matchesAny(c.only, value)
	}
	return !matchesAny(c.except, value)
}

// anyValue is the pattern of every value that is there.
const anyValue = "?*"

// matchesAny reports whether value equals a pattern, begins with one that ends
// in "*", ends with one that begins so, or holds in its order what stands
// between the stars of one that does both, or is not empty where it is anyValue.
func matchesAny(patterns []string, value string) bool {
	for _, p := range patterns {
		if p == value || p == anyValue && value != "" {
			return true
		}
		if len(p) > 2 && p[0] == '*' && p[len(p)-1] == '*' {
			if segment(p, value) {
				return true
			}
			continue
		}
		if prefix, ok := strings.CutSuffix(p, "*"); ok && strings.HasPrefix(value, prefix) {
			return true
		}
		if suffix, ok := strings.CutPrefix(p, "*"); ok && strings.HasSuffix(value, suffix) {
			return true
		}
	}
	return false
}

// value records a word with its role and adds what the role does.
func (f *frame) value(r roleSpec, word, from, end int, option string) {
	f.values = append(f.values, Value{Role: r.role, Arg: r.arg, Word: word, From: from, End: end, Option: option})
	if !f.harmless(r.role, word, from) {
		f.use.Effects |= r.role.Effects()
	}
}

// harmless reports whether a path role names something that is no file.
func (f *frame) harmless(r Role, word, from int) bool {
	if r != Write && r != Empty && r != Device && r != RemoteWrite || word >= len(f.words) {
		return false
	}
	w := &f.words[word]
	text := w.Text[min(from, len(w.Text)):]
	return w.Kind == Literal && (NoFile(text) || text == "-" && f.section.traits.dashStdout)
}

// NoFile reports whether a path that is written names no file: standard
// output, the terminal or the null device.
func NoFile(path string) bool {
	switch path {
	case "/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/fd/1", "/dev/fd/2":
		return true
	}
	return false
}

// settle chooses the form and gives the operands their roles.
func (f *frame) settle() {
	forms := f.entry.formsOf(f.section)
	f.splitAssigns(forms)
	if len(forms) == 0 {
		word := -1
		why := "the command is not in the catalog"
		if len(f.operands) > 0 {
			word = f.operands[0]
		} else if f.section == f.entry.root {
			why = "no subcommand is given"
			f.use.Effects |= detail.Unsettled
			if len(f.given) > 0 && !f.doubt && f.more == 0 {
				return // only options: a version, a help text; their clauses say it
			}
		}
		f.use.opaque(word, why)
		return
	}
	var chosen *form
	index := 0
	before := f.use.Effects
	doubtful, startsMaybe := detail.Effects(0), false
	for i := range forms {
		switch f.holds(&forms[i]) {
		case yes:
			chosen, index = &forms[i], i
		case perhaps:
			doubtful |= forms[i].clause.effects | forms[i].roleEffects()
			f.use.Risk = max(f.use.Risk, forms[i].clause.risk)
			startsMaybe = startsMaybe || slices.ContainsFunc(forms[i].operands, func(o operandSpec) bool { return o.role.starts() })
			continue
		default:
			continue
		}
		break
	}
	if chosen == nil {
		f.use.opaque(-1, "no form of the entry fits")
		f.use.Effects |= before
		return
	}
	f.use.form = chosen.name
	f.use.add(&chosen.clause)
	f.assign(chosen)
	if more := doubtful & (detail.Secrets | detail.Unsettled | detail.Beyond); more != 0 {
		f.use.Effects |= more
		f.use.stuck = f.use.stuck || more != detail.Beyond
	}
	if (doubtful &^ f.use.Effects).Has(hazards) || startsMaybe {
		f.use.opaque(-1, "which form it is depends on a word that is not literal")
	}
	if f.more > 0 && f.mayDescend("") {
		f.use.opaque(-1, "a word that is not literal may be a subcommand")
	}
	if f.doubt {
		e, risk := f.hazard(forms, index)
		if (e &^ f.use.Effects).Has(hazards) {
			f.use.opaque(-1, "a word that is not literal may be an option")
		}
		f.use.Risk = max(f.use.Risk, risk)
		if more := e & (detail.Secrets | detail.Unsettled | detail.Beyond); more != 0 {
			f.use.Effects |= more
			f.use.stuck = f.use.stuck || more != detail.Beyond
		}
	}
}

// hazards are the effects that make a doubt matter.
const hazards = detail.Writes | detail.Destroys | detail.Contacts | detail.Privileged | detail.Executes | detail.Opaque | detail.Door

// doubtAt notes that the word may be an option.
func (f *frame) doubtAt(i int) {
	if !f.doubt || i < f.firstDoubt {
		f.firstDoubt = i
	}
	f.doubt = true
}

// mayBegin reports whether a word that begins with text may be an option that
// is longer than two bytes, or one that does not begin with a dash.
func (f *frame) mayBegin(text string) bool {
	if text == "" || text[0] == '/' && f.section.traits.slash {
		return text != ""
	}
	if f.section.traits.anyCase {
		text = lowerASCII(text)
	}
	for _, s := range f.scopes {
		if text[0] != '-' && !s.undashed {
			continue
		}
		for name := range s.options {
			if len(name) > 2 && strings.HasPrefix(name, text) || len(name) > 1 && name[0] != '-' && strings.HasPrefix(name, text) {
				return true
			}
		}
		for _, o := range s.families {
			prefix := strings.TrimSuffix(o.names[0], "*")
			if prefix != "-#" && prefix[0] != '-' && prefix != text && strings.HasPrefix(prefix, text) {
				return true
			}
		}
	}
	return false
}

// mayDescend reports whether a word that begins with text may name a
// subcommand of the section.
func (f *frame) mayDescend(text string) bool {
	prefix := text
	if f.section != f.entry.root {
		prefix = f.section.path + " " + text
	}
	if f.section.traits.anyCase {
		prefix = lowerASCII(prefix)
	}
	for path := range f.entry.commands {
		if strings.HasPrefix(path, prefix) && !strings.Contains(path[len(prefix):], " ") && len(path) > len(prefix)-len(text) {
			return true
		}
	}
	return false
}

// hazard is what any further option of this section could do: by itself, or by
// making another form than the chosen one hold.
func (f *frame) hazard(forms []form, chosen int) (e detail.Effects, risk detail.Risk) {
	if !f.section.traits.allOptions {
		return detail.Opaque, detail.High
	}
	for _, s := range f.scopes {
		for _, o := range s.options {
			oe, or := o.hazard()
			e, risk = e|oe, max(risk, or)
		}
		for _, o := range s.families {
			oe, or := o.hazard()
			e, risk = e|oe, max(risk, or)
		}
	}
	// A word in front of literal ones may take one of them as its value.
	swallows := false
	for i := f.firstDoubt + 1; i < len(f.words); i++ {
		swallows = swallows || f.words[i].Kind == Literal
	}
	// If it is an option, it is no operand, and what counts operands or looks
	// at one of them holds for others.
	absent := func(t term) bool {
		return t.kind == lacksOption || t.kind == optionIs || t.kind == operandCount || t.kind == operandIs
	}
	present := func(t term) bool {
		return t.kind == hasOption || t.kind == optionIs || t.kind == operandCount || t.kind == operandIs
	}
	undone := swallows && len(forms[chosen].terms) > 0 || slices.ContainsFunc(forms[chosen].terms, absent)
	for i := range forms {
		switch {
		case i < chosen && (swallows || slices.ContainsFunc(forms[i].terms, present)),
			i > chosen && undone:
			e |= forms[i].clause.effects | forms[i].roleEffects()
			risk = max(risk, forms[i].clause.risk)
		}
	}
	return e, risk
}

func (o *option) hazard() (e detail.Effects, risk detail.Risk) {
	for i := range o.clauses {
		e |= o.clauses[i].effects
		risk = max(risk, o.clauses[i].risk)
	}
	for _, v := range o.values {
		e |= v.role.Effects()
		if v.role.starts() {
			e |= detail.Executes
		}
	}
	return e, risk
}

func (fm *form) roleEffects() detail.Effects {
	var e detail.Effects
	for _, o := range fm.operands {
		e |= o.role.Effects()
		if o.role.starts() {
			e |= detail.Executes
		}
	}
	return e
}

// splitAssigns takes NAME=value words off the front of the operands.
func (f *frame) splitAssigns(forms []form) {
	has := false
	for i := range forms {
		for _, o := range forms[i].operands {
			has = has || o.role == Assign
		}
	}
	if !has {
		return
	}
	for len(f.operands) > 0 && assignment(f.words[f.operands[0]].Text) {
		if k := f.words[f.operands[0]].Kind; k == Many || k == Glob {
			f.doubtAt(f.operands[0])
			f.more++
		}
		f.value(roleSpec{role: Assign}, f.operands[0], 0, f.operands[0]+1, "")
		f.operands = f.operands[1:]
	}
}

type answer uint8

const (
	no answer = iota
	perhaps
	yes
)

// holds evaluates a form's condition as far as the words are known.
func (f *frame) holds(fm *form) answer {
	result := yes
	for i := range fm.terms {
		a := f.term(&fm.terms[i])
		if a == no {
			return no
		}
		result = min(result, a)
	}
	return result
}

func (f *frame) term(t *term) answer {
	switch t.kind {
	case hasOption:
		return either(f.has(t.names))
	case lacksOption:
		return either(!f.has(t.names))
	case optionIs:
		match, miss := false, false
		for i := range f.given {
			g := &f.given[i]
			if !g.named(t.names) {
				continue
			}
			value := g.value
			if f.section.traits.anyCase {
				value = lowerASCII(value)
			}
			hit := g.known && matchesAny(t.values, value)
			match = match || hit || !g.known
			miss = miss || !hit || !g.known
		}
		switch {
		case match && miss: // given twice, and programs differ in which one counts
			return perhaps
		case match:
			return yes
		}
		return no
	case operandCount:
		low, high := f.count()
		switch {
		case low >= t.low && (t.high < 0 || high >= 0 && high <= t.high):
			return yes
		case high >= 0 && high < t.low, t.high >= 0 && low > t.high:
			return no
		}
		return perhaps
	case operandIs:
		if f.more > 0 {
			return perhaps // every operand may stand elsewhere
		}
		for k, i := range f.operands {
			w := &f.words[i]
			if k+1 == t.low && w.Kind != Literal && !w.mayBe(t.names, f.section.traits.anyCase) {
				return no
			}
			if w.Kind == Many || w.Kind == Glob {
				return perhaps // from here on nobody knows which one is which
			}
			if k+1 < t.low {
				continue
			}
			if w.Kind != Literal {
				for _, p := range t.names {
					if prefix, ok := strings.CutSuffix(p, "*"); ok && w.Text != "" && strings.HasPrefix(w.Text, prefix) {
						return yes // whatever follows
					}
				}
				return perhaps
			}
			text := w.Text
			if f.section.traits.anyCase {
				text = lowerASCII(text)
			}
			return either(matchesAny(t.names, text))
		}
		return no
	}
	return perhaps
}

// mayBe reports whether a word of which only the beginning is known may match
// one of the patterns. A word that may vanish may be anything.
func (w *Word) mayBe(patterns []string, anyCase bool) bool {
	if w.Kind == Many || w.Text == "" {
		return true
	}
	text := w.Text
	if anyCase {
		text = lowerASCII(text)
	}
	for _, p := range patterns {
		if p[:min(1, len(p))] == "*" {
			return true
		}
		p = strings.TrimSuffix(p, "*")
		if strings.HasPrefix(p, text) || strings.HasPrefix(text, p) {
			return true
		}
	}
	return false
}

func either(b bool) answer {
	if b {
		return yes
	}
	return no
}

func (g *givenOption) named(names []string) bool {
	for _, n := range names {
		if n == g.name || slices.Contains(g.option.names, n) {
			return true
		}
	}
	return false
}

func (f *frame) has(names []string) bool {
	for i := range f.given {
		if f.given[i].named(names) {
			return true
		}
	}
	return false
}

// count is the least and the greatest number of operands; -1 is any number.
func (f *frame) count() (low, high int) {
	if f.more > 0 {
		low, high = -f.more, -1
	}
	for _, i := range f.operands {
		switch f.words[i].Kind {
		case Many:
			high = -1
		case Glob:
			low++
			high = -1
		default:
			low++
			if high >= 0 {
				high++
			}
		}
	}
	return low, high
}

// assign gives the operands the roles of the form.
func (f *frame) assign(fm *form) {
	specs := fm.operands
	if len(specs) > 0 && specs[0].role == Assign {
		specs = specs[1:]
	}
	n := len(f.operands)
	spread := f.more > 0 // some operand may be any number of words
	for _, i := range f.operands {
		k := f.words[i].Kind
		spread = spread || k == Many || k == Glob
	}
	repeat := slices.IndexFunc(specs, func(o operandSpec) bool { return o.repeated })
	rest := repeat >= 0 && len(specs) == repeat+1
	if f.doubt && slices.ContainsFunc(specs, func(o operandSpec) bool { return o.role.starts() }) {
		for i := f.firstDoubt + 1; i < len(f.words); i++ {
			if f.words[i].Kind == Literal {
				// It may be an option that takes the word behind it.
				f.use.opaque(f.firstDoubt, "nobody knows where the command begins")
				break
			}
		}
	}
	if spread && !(repeat == 0 && rest && !specs[0].role.starts()) {
		f.spread(specs)
	}
	front, back := specs, []operandSpec(nil)
	if repeat >= 0 {
		front, back = specs[:repeat], specs[repeat+1:]
	}
	required := 0
	for _, o := range specs {
		if !o.optional {
			required++
		}
	}
	optional := max(n-required, 0) // how many of the optional ones are there
	at := 0
	for _, o := range front {
		if at == n {
			return
		}
		if o.optional {
			if optional == 0 {
				continue
			}
			optional--
		}
		if o.takesRest() {
			f.rest(o, at)
			return
		}
		f.operand(o.roleSpec, at)
		at++
	}
	if repeat >= 0 {
		o := specs[repeat]
		if o.takesRest() && len(back) == 0 {
			if at < n {
				f.rest(o, at)
			}
			return
		}
		for at < n-len(back) {
			f.operand(o.roleSpec, at)
			at++
		}
		for _, b := range back {
			if at < n {
				f.operand(b.roleSpec, at)
				at++
			}
		}
		return
	}
	if at < n {
		f.use.opaque(f.operands[at], "more operands than the catalog knows")
	}
}

// spread handles operands whose number is open: every role may be hit.
func (f *frame) spread(specs []operandSpec) {
	fm := form{operands: specs}
	e := fm.roleEffects()
	if slices.ContainsFunc(specs, func(o operandSpec) bool { return o.role.starts() }) {
		if f.more > 0 {
			f.use.opaque(-1, "the value of an option may be several words")
			return
		}
		// What starts is only unknown if an open word stands at or before it.
		last, open := 0, false
		for k, o := range specs {
			if o.role.starts() {
				last = k
				if open || o.repeated && !o.takesRest() {
					last = len(f.operands) // it may be anywhere
					break
				}
			}
			open = open || o.repeated || o.optional
		}
		for k, i := range f.operands {
			if f.words[i].Kind != Literal && f.words[i].Kind != Partial && k <= last {
				f.use.opaque(i, "the word may be none or several")
				return
			}
		}
		for _, o := range specs {
			if !o.role.starts() {
				f.use.Effects |= o.role.Effects() // any of them may be hit
			}
		}
		return
	}
	f.use.Effects |= e
}

func (o *operandSpec) takesRest() bool {
	switch o.role {
	case Command, RemoteCommand:
		return true
	case Shell, RemoteShell, Code:
		return o.repeated
	}
	return false
}

func (f *frame) rest(o operandSpec, at int) {
	f.value(o.roleSpec, f.operands[at], 0, len(f.words), "")
}

func (f *frame) operand(r roleSpec, at int) {
	i := f.operands[at]
	f.value(r, i, 0, i+1, "")
}
