// Package trap knows mistakes that people and agents keep making on a command
// line, and has a sentence for each: what goes wrong, and what to do instead.
//
// It owns the list of traps, how each is recognised, and the sentences. It
// decides nothing: a hint changes no verdict, and its absence proves nothing.
//
// There are two sorts of traps. Those of text.go look at the words of the text
// and know no shell grammar, so that they also serve for text that no parser
// accepts. Where there is a parse, what it shows to be a mention is none: a
// commit message, a search pattern, a comment (mention.go). All others look at
// the parsed line alone. In both, one key is reported once, where it first
// occurs.
package trap

import (
	"cmp"
	"slices"

	"mvdan.cc/sh/v3/syntax"
)

// Hint is one trap found in a text.
type Hint struct {
	Key string // one of Keys
	At  int    // byte offset in the text where it begins, or 0
}

// Language selects the texts of hints.
type Language uint8

// The languages that hints are written in.
const (
	English Language = iota
	German
)

// Text says in one to three sentences what goes wrong and what to do instead.
// A language that is not known gets English, an unknown key gets "".
func (h Hint) Text(l Language) string {
	for i := range kinds {
		if kinds[i].key != h.Key {
			continue
		}
		if l == German {
			return kinds[i].german
		}
		return kinds[i].english
	}
	return ""
}

// Source names the document that describes the trap: a manual page, a section
// of a manual, a standard. An unknown key gets "".
func Source(key string) string {
	for i := range kinds {
		if kinds[i].key == key {
			return kinds[i].source
		}
	}
	return ""
}

// OnlyOnWindows reports whether the trap is one only where the line runs on
// Windows itself.
func OnlyOnWindows(key string) bool {
	switch key {
	case keyPythonIsolated, keyPython3, keyPythonPipe:
		return true
	}
	return false
}

// Keys lists the keys of all kinds, those of text.go first.
func Keys() []string {
	keys := make([]string, len(kinds))
	for i := range kinds {
		keys[i] = kinds[i].key
	}
	return keys
}

// Hints reports the traps in text, ordered by where they begin. file is the
// text's parse as bash, and nil where it has none; then only python-I, pkill-f,
// python3 and bash are looked for, and a mention counts. The result is nil where there is nothing to
// say, and that costs no allocation where no word of the text plays a part in
// any trap.
func Hints(text string, file *syntax.File) []Hint {
	seen := scan(text)
	var hints []Hint
	if seen&textWords != 0 {
		hints = textHints(text, seen, nil)
		if len(hints) > 0 && file != nil {
			hints = textHints(text, seen, mentionsIn(text, file))
		}
	}
	if file != nil && worthWalking(seen) {
		f := finder{text: text, hints: hints}
		f.file(file)
		hints = f.hints
	}
	slices.SortStableFunc(hints, func(a, b Hint) int { return cmp.Compare(a.At, b.At) })
	return hints
}
