// Package explain says what a command line would do, for machines as one JSON
// object and for people as a tree.
//
// It owns the shape of `vogt read`'s answer and its texts in English and
// German. What a text means comes from reading, hints from trap.
package explain

import (
	"vogt/internal/detail"
	"vogt/internal/reading"
	"vogt/internal/trap"
)

// Answer is what `vogt read --json` prints.
type Answer struct {
	ID       string        `json:"id,omitempty"`
	ParseOK  bool          `json:"parse_ok"`
	Programs []string      `json:"programs"`
	Effects  Effects       `json:"effects"`
	Risk     detail.Risk   `json:"risk"`
	Details  []detail.Wire `json:"details"`
	Paths    Paths         `json:"paths"`
	Hosts    []string      `json:"hosts"`
	Hints    []Hint        `json:"hints"`
	Problems []Problem     `json:"problems"`
}

// Effects are the effects of the whole line.
type Effects struct {
	ReadOnly    bool `json:"read_only"`
	Inert       bool `json:"inert"`
	Network     bool `json:"network"`
	Writes      bool `json:"writes"`
	Destructive bool `json:"destructive"`
	Privilege   bool `json:"privilege"`
	Executes    bool `json:"executes"`
	Opaque      bool `json:"opaque"`
}

// Paths are the files of the whole line.
type Paths struct {
	Reads   []string `json:"reads"`
	Writes  []string `json:"writes"`
	Deletes []string `json:"deletes"`
	Sinks   []string `json:"sinks"`
}

// Hint is a sentence about a known trap.
type Hint struct {
	Key  string `json:"key"`
	Text string `json:"text"`
}

// Problem is something about the text that a person should know; Offset is in
// bytes.
type Problem struct {
	Offset int    `json:"offset"`
	Text   string `json:"text"`
}

// EffectsOf turns a set of effects into the answer's words. A text that does
// not parse shows nothing.
func EffectsOf(e detail.Effects, parsed bool) Effects {
	return Effects{
		ReadOnly: parsed && e.ReadOnly(), Inert: parsed && e.Inert(),
		Network: e.Has(detail.Contacts), Writes: e.Has(detail.Writes), Destructive: e.Has(detail.Destroys),
		Privilege: e.Has(detail.Privileged), Executes: e.Has(detail.Executes), Opaque: !parsed || e.Has(detail.Opaque),
	}
}

// Of makes the answer for a text, with its sentences in a language.
func Of(id, text string, r *reading.Reading, hints []trap.Hint, lang trap.Language) Answer {
	a := Answer{
		ID: id, ParseOK: r.ParseOK, Programs: r.Programs(), Effects: EffectsOf(r.Effects, r.ParseOK), Risk: r.Risk,
		Paths: Paths{Reads: some(r.Paths.Reads), Writes: some(r.Paths.Writes), Deletes: some(r.Paths.Deletes), Sinks: some(r.Paths.Sinks)},
		Hosts: some(r.Hosts), Details: make([]detail.Wire, 0, len(r.Calls)), Hints: make([]Hint, 0, len(hints)), Problems: make([]Problem, 0, len(r.Problems)),
	}
	for i := range r.Calls {
		c := r.Calls[i]
		a.Details = append(a.Details, c.Detail().Wire(c.Shown()))
	}
	for _, h := range hints {
		a.Hints = append(a.Hints, Hint{h.Key, h.Text(lang)})
	}
	for _, p := range r.Problems {
		a.Problems = append(a.Problems, Problem{p.Offset, placed(text, p, lang, asIs)})
	}
	return a
}

func asIs(text string) string { return text }

// some is a list that is never null in JSON.
func some(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}
