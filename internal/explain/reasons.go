package explain

import (
	"fmt"
	"slices"
	"strings"

	"vogt/internal/detail"
	"vogt/internal/reading"
)

// mostReasons is how many reasons for the risk are shown.
const mostReasons = 6

// reasons says why the risk is high or critical: what the calls that have it
// do.
func (t *tree) reasons(r *reading.Reading) {
	if r.Risk < detail.High || !r.ParseOK { // what does not parse is said at once
		return
	}
	var all []string
	for _, c := range r.Calls {
		if c.Risk != r.Risk {
			continue
		}
		name := ""
		if c.Program != "" {
			name = visible(c.Program) + ": "
		}
		for _, reason := range t.because(c) {
			if line := name + reason; !slices.Contains(all, line) {
				all = append(all, line)
			}
		}
	}
	for i, reason := range all {
		if i == mostReasons {
			t.line(1, fmt.Sprintf("%-9s … %d", "", len(all)-i))
			break
		}
		t.line(1, fmt.Sprintf("%-9s %s", t.word("because", "Grund"), reason))
	}
}

// because are the reasons for a call's risk.
func (t *tree) because(c *reading.Call) (out []string) {
	say := func(when bool, english, german string) {
		if when {
			out = append(out, t.word(english, german))
		}
	}
	if c.Risk == detail.Critical {
		say(c.Effects.Has(detail.Privileged), "uses or gives higher rights", "nutzt oder vergibt höhere Rechte")
		say(c.Detail().Operation == reading.DecideOperation, "decides in a person's place", "entscheidet an Stelle einer Person")
		for _, p := range c.Paths.Deletes {
			if t.outside(p) {
				t.outsider(p, "deletes", "löscht", say)
			} else if strings.TrimRight(t.inside(p), "*/") == "" {
				say(true, "deletes the whole project", "löscht das ganze Projekt")
			}
		}
		for _, p := range c.Paths.Writes {
			say(strings.HasPrefix(p, "/dev/"), "overwrites a device: "+t.path(p), "überschreibt ein Gerät: "+t.path(p))
		}
		t.rated(c, say)
		if len(out) > 0 {
			return out
		}
	}
	e := c.Effects
	say(e.Has(detail.Opaque), "not all of it is known from the text", "nicht alles geht aus dem Text hervor")
	say(e.Has(detail.Executes), "runs content that the caller could have written", "führt Inhalte aus, die der Aufrufer geschrieben haben kann")
	say(e.Has(detail.Secrets), "shows credentials or the environment", "zeigt Zugangsdaten oder die Umgebung")
	say(e.Has(detail.Destroys), "something can be lost without an ordinary undo", "etwas kann verloren gehen, ohne dass es sich einfach zurückholen lässt")
	say(e.Has(detail.Contacts), "contacts or listens for another host", "nimmt Kontakt mit einem anderen Rechner auf oder erwartet ihn")
	say(e.Has(detail.Door), "opens a further way to act", "öffnet einen weiteren Weg zu handeln")
	for _, p := range c.Paths.Sinks {
		say(true, "writes what executes or steers something later: "+t.path(p), "schreibt, was später etwas ausführt oder steuert: "+t.path(p))
	}
	for _, p := range c.Paths.Writes {
		if t.outside(p) && !slices.Contains(c.Paths.Sinks, p) {
			t.outsider(p, "writes", "schreibt", say)
		}
	}
	for _, p := range c.Paths.Deletes {
		if t.outside(p) {
			t.outsider(p, "deletes", "löscht", say)
		}
	}
	if len(out) == 0 {
		t.rated(c, say)
	}
	if len(out) == 0 {
		say(e.Has(detail.Writes), "which files it writes is not known", "welche Dateien es schreibt, ist nicht bekannt")
	}
	say(len(out) == 0, "touches what needs care", "berührt, was Vorsicht braucht")
	return out
}

// outsider says that a path is touched that is not, or may not be, in the
// project.
func (t *tree) outsider(p, english, german string, say func(bool, string, string)) {
	if strings.HasPrefix(p, "…") || strings.HasPrefix(p, "$") {
		say(true, english+" what is not known from the text: "+t.path(p), german+", was aus dem Text nicht hervorgeht: "+t.path(p))
		return
	}
	say(true, english+" outside the project: "+t.path(p), german+" außerhalb des Projekts: "+t.path(p))
}

// rated says that the catalog's entry asks for the risk.
func (t *tree) rated(c *reading.Call, say func(bool, string, string)) {
	if c.Use.Entry == nil || c.Use.Risk < c.Risk {
		return
	}
	level := map[detail.Risk]string{detail.High: "hoch", detail.Critical: "kritisch"}[c.Risk]
	say(true, "the catalog rates this call as "+c.Risk.String(), "der Katalog stuft diesen Aufruf als "+level+" ein")
}

func (t *tree) path(p string) string { return visible(t.short(p)) }

// outside reports whether a path lies outside the project, as reading rates
// it: what is not absolute lies inside unless it climbs out.
func (t *tree) outside(p string) bool {
	if !strings.HasPrefix(p, "/") {
		return p == ".." || strings.HasPrefix(p, "../") || strings.HasPrefix(p, "~") || strings.HasPrefix(p, "$") || strings.HasPrefix(p, "…")
	}
	project := strings.TrimSuffix(t.style.Project, "/")
	return t.style.Project == "" || p != project && !strings.HasPrefix(p, project+"/")
}

// inside is a path without the project in front.
func (t *tree) inside(p string) string {
	if p == "." {
		return ""
	}
	return strings.TrimPrefix(strings.TrimPrefix(p, strings.TrimSuffix(t.style.Project, "/")), "/")
}
