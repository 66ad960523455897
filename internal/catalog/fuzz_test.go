package catalog

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"vogt/internal/detail"
)

// oddWords are words that readers of command lines trip over.
var oddWords = []string{
	"", "-", "--", "---", "-x", "--x", "--x=", "--=", "-=", "=", "a=", "A=b", "=b", ";", "+", "{}", "/", "/x", "/x:y", "/:", ":", "-:", "-20", "-2x",
	"*", "?", "a", "file", "host:path", "https://example.com/", "0", "true", "false", "none", "/dev/null", "\x00", "\xff\xfe", "-\xff", "--\xff=\xff",
	"ȺȺȺȺ", "-ȺȺ:ȺȺ", "/ȺȺȺ:Ⱥ", "-\u212a:\u212a", "\uE000", "-\uE000", "--help", "-h", "--version", "a b", "-a b", "\n", "if=", "of=/dev/sda",
	"'", "\"", "$(x)", "`x`", "%PATH%", "@file", "-@", "+x", "!", "(", ")",
}

// soup makes words of calls for an entry out of what the entry itself names.
type soup struct {
	*rand.Rand
	words []string
}

func soupOf(e *Entry, seed uint64) *soup {
	s := &soup{Rand: rand.New(rand.NewPCG(seed, uint64(len(e.Name))))}
	for _, section := range e.sections() {
		e.load(section)
		names := make([]string, 0, len(section.options))
		for name := range section.options {
			names = append(names, name)
		}
		slices.Sort(names) // a map has no order, and a failure must come again
		for _, o := range section.families {
			names = append(names, strings.TrimSuffix(o.names[0], "*"))
		}
		s.words = append(s.words, names...)
		s.words = append(s.words, strings.Fields(section.path)...)
		for _, f := range section.forms {
			for _, t := range f.terms {
				if t.kind == operandIs {
					s.words = append(s.words, t.names...)
				}
				s.words = append(s.words, t.values...)
			}
		}
	}
	if len(s.words) == 0 {
		s.words = oddWords
	}
	return s
}

func (s *soup) pick(from []string) string { return from[s.IntN(len(from))] }

func (s *soup) word() string {
	own := s.pick(s.words)
	switch s.IntN(12) {
	case 0, 1:
		return s.pick(oddWords)
	case 2:
		return own + "=" + s.pick(oddWords)
	case 3:
		return own + s.pick(oddWords)
	case 4:
		return own[:s.IntN(len(own)+1)]
	case 5:
		return own + strings.TrimLeft(s.pick(s.words), "-")
	case 6, 7:
		return "file"
	}
	return own
}

// call is a call whose words are all known. Subcommands come first more often
// than chance would have it.
func (s *soup) call(e *Entry) []Word {
	words := []Word{{Text: e.Name}}
	if paths := e.Commands(); len(paths) > 0 && s.IntN(4) > 0 {
		slices.Sort(paths)
		for _, w := range strings.Fields(s.pick(paths)) {
			words = append(words, Word{Text: w})
		}
	}
	for range s.IntN(6) {
		words = append(words, Word{Text: s.word()})
	}
	return words
}

func (s *soup) open(words []Word) []Word {
	return opened(words, s.IntN(1<<16), s.IntN(1<<16), s.IntN(1<<16))
}

// opened hides a part of a call: the words that come out stand for the call
// among others. Where it begins, how much is hidden and how comes from numbers.
func opened(words []Word, where, much, how int) []Word {
	at := 1 + where%len(words) // may be behind the last
	if how%4 == 3 {            // words that are none
		return slices.Insert(slices.Clone(words), at, Unknown(Many))
	}
	if at == len(words) {
		return nil
	}
	text := words[at].Text
	known := text[:much/8%(len(text)+1)]
	end := at + 1
	kind := Partial
	if how%4 == 1 {
		kind = Many
		end = min(at+1+much%4, len(words))
	}
	if how%4 == 2 {
		kind = Glob
		for end < len(words) && strings.HasPrefix(words[end].Text, known) {
			end++
		}
	}
	option := kind == Many || known == "" || known[0] == '-'
	return slices.Concat(words[:at], []Word{Open(kind, known, known+"…", known+string(Hole), option)}, words[end:])
}

func show(words []Word) string {
	var b strings.Builder
	for i := range words {
		fmt.Fprintf(&b, "%q", words[i].Shown())
		switch words[i].Kind {
		case Glob:
			b.WriteByte('?')
		case Many:
			b.WriteByte('*')
		}
		b.WriteByte(' ')
	}
	return b.String()
}

// holdsTogether checks what is true of every use.
func holdsTogether(t *testing.T, e *Entry, words []Word) Use {
	t.Helper()
	u := e.Interpret(words)
	if again := e.Interpret(words); !reflect.DeepEqual(u, again) {
		t.Errorf("%s is read in two ways:\n%+v\n%+v", show(words), u, again)
	}
	for _, v := range u.Values {
		if v.Role == NoRole || v.Word < 1 || v.Word > len(words) || v.End < v.Word || v.End > len(words) || v.From < 0 || v.Word < len(words) && v.From > len(words[v.Word].Text) {
			t.Errorf("%s: the value %+v lies outside of the words", show(words), v)
		}
	}
	if u.Why != "" && !u.Effects.Has(detail.Opaque) || u.WhyWord < -1 || u.WhyWord >= len(words) || u.WhyWord >= 0 && u.Why == "" {
		t.Errorf("%s: %v because %q at %d", show(words), u.Effects, u.Why, u.WhyWord)
	}
	if u.Neutral && !u.Effects.Has(detail.Unsettled) {
		t.Errorf("%s is neutral and consults nothing", show(words))
	}
	return u
}

// unlistedAsks checks that an option that the entry does not know never makes
// a call less dangerous.
func unlistedAsks(t *testing.T, e *Entry, words []Word, u *Use) {
	t.Helper()
	const option = "--vogt-no-such-option"
	if alone := e.Interpret([]Word{words[0], {Text: option}}); alone.Why != unlisted {
		return // the program has no options, or takes any
	}
	more := holdsTogether(t, e, slices.Concat(words[:1], []Word{{Text: option}}, words[1:]))
	if !more.Effects.Has(detail.Opaque) || more.Effects.ReadOnly() {
		t.Errorf("%s with %s is %v, without it %v", show(words), option, more.Effects, u.Effects)
	}
}

// coversHidden checks that a call of which a part is not known is at least as
// dangerous as one that it stands for: it does all that this one does, starts
// what this one starts, or asks.
func coversHidden(t *testing.T, e *Entry, words, hidden []Word, u *Use) {
	t.Helper()
	h := holdsTogether(t, e, hidden)
	if h.Effects.Has(detail.Opaque) {
		return
	}
	for _, v := range h.Values {
		switch v.Role {
		case Command, RemoteCommand, Shell, RemoteShell, Program, Split:
			if v.Word < v.End && hidden[v.Word].Kind != Literal {
				return // what starts is not known, which whoever reads the values says
			}
		}
	}
	matters := hazards
	if u.Why != "" {
		matters &^= detail.Opaque // the program would refuse it, or the entry knows too little
	}
	if lost := u.Effects &^ h.Effects & matters; lost != 0 && u.Why == "" {
		t.Errorf("%s may be %s: %v, and shows as %v", show(hidden), show(words), u.Effects, h.Effects)
	}
	shownLess := h.Effects.ReadOnly() && (u.Effects &^ h.Effects).Has(detail.Secrets|detail.Unsettled)
	if u.Why == "" && (shownLess || atLeast(u) > atLeast(&h)) {
		t.Errorf("%s may be %s: %v, risk %v, and shows as %v, risk %v", show(hidden), show(words), u.Effects, u.Risk, h.Effects, h.Risk)
	}
	for _, v := range u.Values {
		if u.Why != "" || h.Effects.Has(detail.Executes) || !v.Role.starts() || v.Word >= v.End {
			continue
		}
		if !slices.ContainsFunc(h.Values, func(o Value) bool { return o.Role == v.Role && startsAs(words, v, hidden, o) }) {
			t.Errorf("%s may be %s, which starts %v %s, and shows as %v", show(hidden), show(words), v.Role, show(words[v.Word:v.End]), h.Values)
		}
	}
}

// atLeast is the least risk of a use: what its entry says, or its effects.
func atLeast(u *Use) detail.Risk {
	switch {
	case u.Effects.Has(hazards&^detail.Writes | detail.Secrets):
		return max(u.Risk, detail.High)
	case u.Effects.Has(detail.Writes):
		return max(u.Risk, detail.Medium)
	}
	return max(u.Risk, detail.Low)
}

// startsAs reports whether a value of a call with hidden parts stands for one
// of the call that it may be.
func startsAs(words []Word, v Value, hidden []Word, o Value) bool {
	for _, w := range hidden[o.Word:o.End] {
		if w.Kind != Literal {
			return true // whoever reads it sees that it is not known
		}
	}
	return o.End-o.Word == v.End-v.Word && slices.EqualFunc(hidden[o.Word:o.End], words[v.Word:v.End], func(a, b Word) bool { return a.Text == b.Text })
}

// Whatever the words are, every entry answers, in one way only; an option that
// it does not know makes it ask, and what is hidden is never less than what is
// seen.
func TestEveryEntryAnswers(t *testing.T) {
	c := New()
	for _, name := range c.Names() {
		e := c.Entry(name)
		if e == nil || e.Name != name {
			continue
		}
		t.Run(name, func(t *testing.T) {
			s := soupOf(e, 1)
			for range 25 {
				words := s.call(e)
				u := holdsTogether(t, e, words)
				unlistedAsks(t, e, words, &u)
				for range 3 {
					if hidden := s.open(words); hidden != nil {
						coversHidden(t, e, words, hidden, &u)
					}
				}
				if t.Failed() {
					return
				}
			}
		})
	}
}

// inventor makes entries that nobody wrote.
type inventor struct{ *rand.Rand }

func (v inventor) of(list string) string {
	words := strings.Fields(list)
	return words[v.IntN(len(words))]
}

func (v inventor) role() string {
	return v.of("text text text read write delete device url host command shell remote-command script config @unit code:sh setting:g chdir")
}

func (v inventor) effects() string {
	return v.of("inert inert inert read neutral write destroy net priv exec door secret high opaque")
}

func (v inventor) option(names string) string {
	line := names
	switch v.IntN(9) {
	case 0, 1:
		line += " =" + v.role()
	case 2:
		line += " [=" + v.role() + "]"
	case 3:
		line += " =" + v.role() + "," + v.role()
	case 4:
		line += " =" + v.of("command; command;; code:sh... shell...")
	}
	if v.IntN(8) == 0 {
		line += " !"
	}
	if v.IntN(3) == 0 {
		line += " : " + v.effects()
		if strings.Contains(line, "=") && v.IntN(2) == 0 {
			line += " " + v.of("if unless") + " " + v.of("a b|c d* *b")
		}
	}
	return line
}

func (v inventor) section(b *strings.Builder, names []string) {
	v.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	used := names[:1+v.IntN(5)]
	for _, name := range used {
		fmt.Fprintln(b, "option", v.option(name))
	}
	for i := range v.IntN(3) {
		var terms []string
		for range 1 + v.IntN(2) {
			name := used[v.IntN(len(used))]
			terms = append(terms, []string{
				name, "!" + name, name + " is " + v.of("a b|c d* *b"), "operands " + v.of("0 1 1.. 2 2.. 0..1"), "operand " + v.of("1 2") + " is " + v.of("a b|c d* *b"),
			}[v.IntN(5)])
		}
		fmt.Fprintf(b, "form f%d when %s : %s : %s\n", i, strings.Join(terms, " and "), v.effects(), v.operands())
	}
	if v.IntN(6) > 0 {
		fmt.Fprintf(b, "form run : %s : %s\n", v.effects(), v.operands())
	}
}

func (v inventor) operands() string {
	const plain = "text read write delete url config @unit setting:g"
	var out []string
	for range v.IntN(3) {
		out = append(out, v.of(plain)+[]string{"", "", "?"}[v.IntN(3)])
	}
	switch v.IntN(5) {
	case 0:
		out = append(out, v.of(plain)+v.of("... +"))
	case 1:
		out = append(out, v.of(plain)+v.of("... +"), v.of(plain))
	case 2:
		out = append(out, v.of("command... command shell... remote-command remote-shell... code:sh... script text..."))
	}
	return strings.Join(out, " ")
}

func (v inventor) entry() string {
	var b strings.Builder
	fmt.Fprintf(&b, "parser %s %s\n", v.of("getopt getopt posix modern goflag single dos powershell none"), v.of("all-options all-options all-options anywhere stop no-combined no-dashdash any-case abbreviations first-cluster short-commands"))
	names := strings.Fields("-a -b -c -ab --long --longer --other -long -L /s /S2 +p -f* +* if= -# -- word")
	v.section(&b, names)
	b.WriteString("setting g k : write\nsetting g l* =shell\n")
	for _, path := range []string{"one", "one two", "one three", "four", "*"}[v.IntN(6)%5:] {
		if v.IntN(3) == 0 || path == "one two" && !strings.Contains(b.String(), "command one\n") || path == "one three" && !strings.Contains(b.String(), "command one\n") {
			continue
		}
		fmt.Fprintln(&b, "command", path)
		v.section(&b, names)
	}
	return entryOf(b.String())
}

// What holds for the entries that Vogt brings holds for whatever an owner may
// write.
func TestAnyEntryAnswers(t *testing.T) {
	v := inventor{rand.New(rand.NewPCG(2, 2))}
	accepted := 0
	for range 500 {
		text := v.entry()
		e, err := Parse("f", "x", text, true)
		if err != nil {
			continue
		}
		accepted++
		s := soupOf(e, v.Uint64())
		s.words = append(s.words, "a", "b", "dx", "xb", "1", "k=v")
		for range 15 {
			words := s.call(e)
			u := holdsTogether(t, e, words)
			unlistedAsks(t, e, words, &u)
			for range 3 {
				if hidden := s.open(words); hidden != nil {
					coversHidden(t, e, words, hidden, &u)
				}
			}
			if t.Failed() {
				t.Fatal(text)
			}
		}
	}
	if accepted < 100 {
		t.Errorf("only %d of the invented entries are accepted", accepted)
	}
}

// FuzzParse: no text makes the reader of entries panic, what it accepts it
// accepts lazily too, and that can be asked for any words.
func FuzzParse(f *testing.F) {
	for _, name := range []string{"true", "tar", "find", "env", "ip", "dd", "curl", "powershell", "robocopy", "jq", "ssh"} {
		text, ok := Source(name)
		if !ok {
			f.Fatalf("%s is not in the catalog", name)
		}
		_, body, _ := strings.Cut(text, "\nparser ")
		f.Add("parser "+body, "x -abc file --long=x <> -exec a ; b", uint16(1), uint16(9), uint16(3))
	}
	for _, body := range []string{
		"parser dos\n/A [=write] : exec if x ; net\nform f when /a is y : inert : read+ write",
		"parser powershell\n-Name -N =text,read\n-#\n-f* =read\noption if= =setting:g\nsetting g k* =shell : write unless a\nform f when operands 1..2 and !-n : neutral stdin:code:x : text? command...",
		"parser getopt first-cluster short-commands\n-x =command; !\ncommand a\naka b c\nlike d\ncommand d *\n-y =code:z...\ncommand d\nform f when operand 1 is a|b* : door : shell...",
		"parser getopt\noption [=text] [=text]\nform f : inert :",
		"same-as y", "parser none\nform f : inert :\nexample x a => inert",
	} {
		f.Add(body, "x a -x b ; -n c d f<> <*> A=b", uint16(7), uint16(70), uint16(1))
	}
	f.Fuzz(func(t *testing.T, body, line string, where, much, how uint16) {
		if _, err := Parse("f", "x", body, true); err != nil && !strings.HasPrefix(err.Error(), "f:") {
			t.Errorf("the error has no place: %v", err)
		}
		text := entryOf(body)
		e, err := Parse("f", "x", text, true)
		lazy, lazyErr := Parse("f", "x", text, false)
		if err == nil && lazyErr != nil {
			t.Fatalf("accepted whole, and lazily not: %v", lazyErr)
		}
		if err != nil && !strings.HasPrefix(err.Error(), "f:") {
			t.Errorf("the error has no place: %v", err)
		}
		words := wordsOf(line)
		if lazyErr != nil || lazy.SameAs != "" || len(words) == 0 || len(words) > 64 {
			return
		}
		u := holdsTogether(t, lazy, words)
		if err != nil {
			return
		}
		if whole := e.Interpret(words); whole.Effects != u.Effects || whole.Operation() != u.Operation() || whole.Why != u.Why || !slices.Equal(whole.Values, u.Values) {
			t.Errorf("%s: read whole %v, lazily %v", show(words), whole, u)
		}
		unlistedAsks(t, e, words, &u)
		if slices.ContainsFunc(words, func(w Word) bool { return w.Kind != Literal }) {
			return
		}
		if hidden := opened(words, int(where), int(much), int(how)); hidden != nil {
			coversHidden(t, e, words, hidden, &u)
		}
	})
}

// FuzzInterpret asks the entries that Vogt brings for any words.
func FuzzInterpret(f *testing.F) {
	c := New()
	names := slices.DeleteFunc(c.Names(), func(name string) bool { e := c.Entry(name); return e == nil || e.Name != name })
	for i, line := range []string{
		"x -abc --long=v -- file", "x rm -rf <> <*>", "x tf a -C b", "x -exec a {} ; -delete", "x A=b c -d", "x /s /x:y", "x -Name:v -Force", "x if=a of=/dev/sda",
		"x stash drop", "x remote add a b", "x -o a<?>", "x ȺȺ -\xff",
	} {
		for _, name := range []string{"git", "tar", "find", "env", "dd", "curl", "docker", "nice", "robocopy", "powershell"} {
			f.Add(uint16(slices.Index(names, name)), line, uint16(i), uint16(31*i), uint16(i))
		}
	}
	f.Fuzz(func(t *testing.T, which uint16, line string, where, much, how uint16) {
		e := c.Entry(names[int(which)%len(names)])
		words := wordsOf(line)
		if len(words) == 0 || len(words) > 64 {
			return
		}
		u := holdsTogether(t, e, words)
		unlistedAsks(t, e, words, &u)
		if slices.ContainsFunc(words, func(w Word) bool { return w.Kind != Literal }) {
			return
		}
		if hidden := opened(words, int(where), int(much), int(how)); hidden != nil {
			coversHidden(t, e, words, hidden, &u)
		}
	})
}
