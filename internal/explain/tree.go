package explain

import (
	"fmt"
	"io"
	"strings"

	"vogt/internal/detail"
	"vogt/internal/reading"
	"vogt/internal/terminal"
	"vogt/internal/trap"
)

// Style is how a tree is written.
type Style struct {
	German bool
	Colour bool
	Home   string // shown as ~; may be empty
	// Project is the folder in which the line would run; outside of it writing
	// is a higher risk. Empty when it is not known.
	Project string
	// Windows says that the line would run on Windows: else hints about traps
	// that only Windows has are left out.
	Windows bool
}

// Tree writes what a line would do, for people. Everything that comes from the
// line is made visible.
func Tree(w io.Writer, text string, r *reading.Reading, hints []trap.Hint, style Style) error {
	t := tree{style: style, text: text}
	t.head(r)
	t.reasons(r)
	for i := range r.Calls {
		t.call(r.Calls[i])
	}
	t.paths(r)
	t.notes(r)
	for _, h := range hints {
		if !style.Windows && trap.OnlyOnWindows(h.Key) {
			continue
		}
		t.line(0, t.paint(yellow, t.word("hint", "Hinweis"))+" ["+h.Key+"] "+h.Text(t.lang()))
	}
	_, err := io.WriteString(w, t.b.String())
	return err
}

type tree struct {
	b     strings.Builder
	style Style
	text  string // the line
}

func (t *tree) lang() trap.Language {
	if t.style.German {
		return trap.German
	}
	return trap.English
}

const (
	red    = "31"
	yellow = "33"
	green  = "32"
	bold   = "1"
	dim    = "2"
)

func (t *tree) paint(colour, text string) string {
	if !t.style.Colour || text == "" {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

func (t *tree) word(english, german string) string {
	if t.style.German {
		return german
	}
	return english
}

func (t *tree) line(indent int, text string) {
	t.b.WriteString(strings.Repeat("  ", indent))
	t.b.WriteString(text)
	t.b.WriteByte('\n')
}

func riskColour(r detail.Risk) string {
	switch r {
	case detail.Low:
		return green
	case detail.Medium:
		return yellow
	}
	return red
}

func (t *tree) risk(r detail.Risk) string {
	name := r.String()
	if t.style.German {
		name = map[detail.Risk]string{detail.Low: "niedrig", detail.Medium: "mittel", detail.High: "hoch", detail.Critical: "kritisch"}[r]
	}
	return t.paint(riskColour(r), name)
}

// head is the first line: what the whole text amounts to.
func (t *tree) head(r *reading.Reading) {
	e := EffectsOf(r.Effects, r.ParseOK)
	var words []string
	add := func(on bool, english, german string) {
		if on {
			words = append(words, t.word(english, german))
		}
	}
	add(!r.ParseOK, "bash does not accept this text", "bash nimmt diesen Text nicht an")
	secrets := r.Effects.Has(detail.Secrets)
	add(e.Inert && !secrets, "only reads, and starts nothing that could have been put in its way", "liest nur und startet nichts, was jemand untergeschoben haben könnte")
	add(e.Inert && secrets, "only reads, but shows secrets", "liest nur, zeigt aber Geheimnisse")
	add(!e.Inert && secrets, "shows secrets", "zeigt Geheimnisse")
	add(e.ReadOnly && !e.Inert, "only reads, but consults settings that can start programs", "liest nur, fragt aber Einstellungen ab, die Programme starten können")
	add(e.Writes, "writes", "schreibt")
	add(e.Destructive, "destroys", "vernichtet")
	add(e.Network, "uses the network", "nutzt das Netz")
	add(e.Privilege, "uses higher rights", "nutzt höhere Rechte")
	add(e.Executes, "runs content that the caller could have written", "führt Inhalte aus, die der Aufrufer geschrieben haben kann")
	add(r.Effects.Has(detail.Door), "opens a further way to act", "öffnet einen weiteren Weg zu handeln")
	add(e.Opaque && r.ParseOK, "not fully known", "nicht ganz bekannt")
	t.line(0, fmt.Sprintf("%s %s: %s", t.word("Risk", "Risiko"), t.risk(r.Risk), strings.Join(words, ", ")))
}

// call is one line a program, indented by what starts it.
func (t *tree) call(c *reading.Call) {
	indent := 1 + min(c.Depth, 12)
	if c.Program == "" {
		return // redirections alone show among the paths
	}
	text := visible(c.Shown())
	if text == "" {
		text = visible(c.Program)
	}
	name := t.paint(bold, text)
	var notes []string
	e := c.Effects
	add := func(on bool, english, german string) {
		if on {
			notes = append(notes, t.word(english, german))
		}
	}
	add(e.Inert(), "reads", "liest")
	add(e.ReadOnly() && !e.Inert(), "reads, by its settings", "liest, nach Einstellungen")
	add(e.Has(detail.Writes), "writes", "schreibt")
	add(e.Has(detail.Destroys), "destroys", "vernichtet")
	add(e.Has(detail.Contacts), "network", "Netz")
	add(e.Has(detail.Privileged), "higher rights", "höhere Rechte")
	add(e.Has(detail.Executes), "runs content", "führt Inhalte aus")
	add(e.Has(detail.Secrets), "secrets", "Geheimnisse")
	add(e.Has(detail.Door), "opens a way to act", "öffnet einen Weg zu handeln")
	add(e.Has(detail.Opaque), "unknown", "unbekannt")
	if c.Remote {
		notes = append(notes, t.word("elsewhere", "anderswo"))
	}
	t.line(indent, fmt.Sprintf("%s  %s", name, t.paint(dim, "["+strings.Join(notes, ", ")+"; ")+t.risk(c.Risk)+t.paint(dim, "]")))
}

// paths lists what the whole text touches.
func (t *tree) paths(r *reading.Reading) {
	list := func(english, german string, values []string) {
		for i, v := range values {
			if i == 12 {
				t.line(1, fmt.Sprintf("%-9s … %d", "", len(values)-i))
				break
			}
			t.line(1, fmt.Sprintf("%-9s %s", t.word(english, german), visible(t.short(v))))
		}
	}
	list("reads", "liest", r.Paths.Reads)
	list("writes", "schreibt", r.Paths.Writes)
	list("deletes", "löscht", r.Paths.Deletes)
	list("steers", "steuert", r.Paths.Sinks)
	list("contacts", "Kontakt", r.Hosts)
}

// mostShown is how many characters of a text from the line are shown at once.
const mostShown = 160

// visible makes a text from the line visible and cuts it.
func visible(text string) string {
	if len(text) > 8*mostShown {
		text = strings.ToValidUTF8(text[:8*mostShown], "")
	}
	text = terminal.Visible(text)
	n := 0
	for i := range text {
		if n++; n > mostShown {
			return text[:i] + "…"
		}
	}
	return text
}

func (t *tree) short(p string) string {
	if h := t.style.Home; h != "" && (p == h || strings.HasPrefix(p, h+"/")) {
		return "~" + p[len(h):]
	}
	return p
}

// notes lists what a person should know about the text.
func (t *tree) notes(r *reading.Reading) {
	for i, p := range r.Problems {
		if i == 12 {
			t.line(0, "…")
			return
		}
		t.line(0, t.paint(yellow, t.word("note", "Notiz"))+" "+placed(t.text, p, t.lang(), visible))
	}
}
