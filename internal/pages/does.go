package pages

import (
	"slices"
	"strings"

	"vogt/internal/audit/mask"
	"vogt/internal/catalog"
	"vogt/internal/detail"
	"vogt/internal/explain"
	"vogt/internal/reading"
	"vogt/internal/trap"
)

// How much of what a request would do a card shows before "all on one page",
// and how much there. Texts are in characters.
const (
	callsShown, callsWhole = 12, 1000 // programs
	pathsShown, pathsWhole = 8, 1000  // of each list
	notesShown, notesWhole = 6, 64
	callShown, pathShown   = 160, 200
	partWhole              = 1000 // of either text, on one page
	noteShown              = 300
	nestMost               = 8 // steps by which what is started stands further in
	hiddenLeast            = 4 // a shorter masked value says nothing by itself
)

// doesView is "What it would do": what the authority read in the request.
type doesView struct {
	Unread    bool   // it could not be read
	Page      string // of the card, which shows more of it; "" when this does
	Effects   []effectView
	Calls     []*callView // those that nothing else of the request starts
	MoreCalls int
	Lists     []listView
	Open      bool // further files are touched that are not known
	Notes     []string
	MoreNotes int
	// Covered of Asked calls that start no other one need no answer any more.
	Covered, Asked int
}

// effectView is a label: Key is of the catalog, after "effect.".
type effectView struct{ Key, Tone, Icon string }

// callView is a program that would start, with those that it would start.
type callView struct {
	Text      string // "" where there are no words
	Unknown   bool   // without words: any program, not redirections alone
	Effects   []effectView
	Risk      string // "" when low
	Elsewhere bool   // on another host, or in a container
	Starts    []*callView
	By        *Covering // the standing grant that covers it, and all that it starts
	depth     int
	place     int  // in the reading
	cut       bool // not all that it starts is shown
}

// listView is a list of files or hosts: Key is of the catalog, after "does.".
type listView struct {
	Key    string
	Values []string
	More   int
}

// doesOf prepares a reading of argv; whole lifts the limits of a first view.
// Notes are translated by their keys where the catalog has them.
func doesOf(r *reading.Reading, argv []string, notes trap.Language, whole bool) *doesView {
	if r == nil {
		return &doesView{Unread: true}
	}
	calls, paths, lines, perCall, perPath := callsShown, pathsShown, notesShown, callShown, pathShown
	if whole {
		calls, paths, lines, perCall, perPath = callsWhole, pathsWhole, notesWhole, partWhole, partWhole
	}
	hidden := hiddenIn(argv)
	d := &doesView{Effects: effectsOf(r.Effects), Open: r.Paths.Unknown}
	d.Calls, d.MoreCalls = callsOf(r.Calls, calls, func(c *reading.Call) string { return callText(c, hidden, perCall) })
	for _, list := range []struct {
		key    string
		values []string
	}{{"reads", r.Paths.Reads}, {"writes", r.Paths.Writes}, {"deletes", r.Paths.Deletes}, {"steers", r.Paths.Sinks}, {"contacts", r.Hosts}} {
		if len(list.values) == 0 {
			continue
		}
		part := list.values[:min(paths, len(list.values))]
		view := listView{Key: list.key, More: len(list.values) - len(part)}
		for _, v := range part {
			head, _ := cut(v, lineMasked)
			view.Values = append(view.Values, shortened(maskedText(head), perPath))
		}
		d.Lists = append(d.Lists, view)
	}
	d.Notes, d.MoreNotes = notesOf(r.Problems, notes, hidden, lines)
	return d
}

// callsOf makes the tree of what starts what from the calls' depths: at most
// most of them, and none further in than nestMost.
func callsOf(calls []*reading.Call, most int, text func(*reading.Call) string) (top []*callView, more int) {
	var open []*callView // the last call and those that led to it
	for i, c := range calls {
		if i == most {
			for _, v := range open {
				v.cut = c.Depth > v.depth
			}
			return top, len(calls) - most
		}
		v := &callView{Text: text(c), Unknown: c.Program != "", Effects: effectsOf(c.Effects), Elsewhere: c.Remote, depth: c.Depth, place: i}
		if c.Risk != detail.Low {
			v.Risk = riskName(c.Risk)
		}
		for len(open) > 0 && open[len(open)-1].depth >= c.Depth {
			open = open[:len(open)-1]
		}
		if len(open) == 0 {
			top = append(top, v)
		} else {
			by := open[len(open)-1]
			by.Starts = append(by.Starts, v)
		}
		if len(open) < nestMost {
			open = append(open, v)
		}
	}
	return top, 0
}

// effectsOf are the labels of a set of effects, weightiest first.
func effectsOf(e detail.Effects) (out []effectView) {
	for _, l := range []struct {
		effect detail.Effects
		label  effectView
	}{
		{detail.Opaque, effectView{"opaque", "high", "opaque"}},
		{detail.Privileged, effectView{"rights", "high", "rights"}},
		{detail.Destroys, effectView{"destroys", "high", "destroys"}},
		{detail.Executes, effectView{"executes", "high", "run"}},
		{detail.Secrets, effectView{"secrets", "high", "key"}},
		{detail.Door, effectView{"door", "high", "arrow"}},
		{detail.Contacts, effectView{"network", "medium", "network"}},
		{detail.Writes, effectView{"writes", "medium", "writes"}},
	} {
		if e.Has(l.effect) {
			out = append(out, l.label)
		}
	}
	switch {
	case e.Inert():
		out = append(out, effectView{"reads", "low", "reads"})
	case e.ReadOnly() && e.Has(detail.Unsettled):
		out = append(out, effectView{"settings", "medium", "reads"})
	}
	return out
}

// callText is a call in one line, as a person would type it, without likely
// secrets. What is masked in the command above is masked here too, where a
// variable brought it to another place; but never the program's name, nor in
// the lists of files, which show what the call is for.
func callText(c *reading.Call, hidden *strings.Replacer, most int) string {
	var shown []string
	size := 0
	for i := range c.Words {
		if size > lineMasked {
			break
		}
		shown = append(shown, c.Words[i].Shown())
		size += len(shown[i]) + 1
	}
	part := firstBytes(shown, lineMasked)
	var b strings.Builder
	for i, word := range maskedArgv(part) {
		if i > 0 {
			b.WriteByte(' ')
			word = hidden.Replace(word)
		}
		if c.Words[i].Kind == catalog.Literal {
			word = reading.Line([]string{word})
		}
		b.WriteString(word)
	}
	text := shortened(b.String(), most)
	if whole := size <= lineMasked && len(shown) == len(c.Words); !whole && !strings.HasSuffix(text, "…") {
		text += "…"
	}
	return text
}

// notesOf are the texts of problems in the page's language, each once.
func notesOf(problems []reading.Problem, lang trap.Language, hidden *strings.Replacer, most int) (out []string, more int) {
	for _, p := range problems {
		// Masked first: the note repeats what it finds in the text.
		head, _ := cut(p.Text, lineMasked)
		p.Text = maskedText(hidden.Replace(head))
		n := shortened(explain.Note(p, lang), noteShown)
		switch {
		case slices.Contains(out, n):
		case len(out) == most:
			more++
		default:
			out = append(out, n)
		}
	}
	return out, more
}

// cover marks what standing grants cover by now, in the order of the calls. One that
// starts others is marked when all of these are: by itself it does nothing. Calls that
// are not shown are counted.
func (d *doesView) cover(r *reading.Reading, by []Covering) {
	if r == nil || len(by) < len(r.Calls) {
		return
	}
	d.Covered, d.Asked = 0, 0
	for i := range r.Calls {
		if startsNothing(r.Calls, i) {
			d.Asked++
			if by[i].ID != "" {
				d.Covered++
			}
		}
	}
	if d.Covered == 0 {
		return
	}
	var mark func([]*callView) bool
	mark = func(calls []*callView) bool {
		all := true
		for _, c := range calls {
			mine := by[c.place]
			below := mark(c.Starts)
			if whole := !c.cut && below; whole && mine.ID != "" {
				c.By = &mine
			} else {
				all = false
			}
		}
		return all
	}
	mark(d.Calls)
}

// hiddenIn masks again, wherever else they occur, the values that are masked
// in a command.
func hiddenIn(argv []string) *strings.Replacer {
	part := firstBytes(argv, reading.MaxText)
	masked := maskedArgv(part)
	var pairs []string
	for i := range part {
		if masked[i] == part[i] {
			continue
		}
		for _, value := range hiddenValues(part[i], masked[i]) {
			pairs = append(pairs, value, mask.Mark)
			if strings.Contains(value, `\`) { // as a shell reads it
				pairs = append(pairs, strings.ReplaceAll(value, `\`, ""), mask.Mark)
			}
		}
	}
	return strings.NewReplacer(pairs...)
}

// hiddenValues are the parts of text that masked does not show.
func hiddenValues(text, masked string) (values []string) {
	kept := strings.Split(masked, mask.Mark)
	text, ok := strings.CutPrefix(text, kept[0])
	for i := 1; ok && i < len(kept); i++ {
		at := strings.Index(text, kept[i])
		if i == len(kept)-1 {
			at = len(text) - len(kept[i])
		}
		if at < 0 {
			break
		}
		// What begins like an option would take effect as one.
		if at >= hiddenLeast && text[0] != '-' {
			values = append(values, text[:at])
		}
		text = text[at+len(kept[i]):]
	}
	return values
}

// shortened is at most n characters of s, with a mark where there were more.
func shortened(s string, n int) string {
	if head, more := firstRunes(s, n); more {
		return head + "…"
	}
	return s
}
