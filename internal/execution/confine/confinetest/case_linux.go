package confinetest

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Case is an attempt and what must come of it. Outside of a box it succeeds.
//
// What a level must answer is a list of words: names of errors, or
//
//	held      the attempt gains nothing, and no call was refused
//	free      it may succeed: nothing outside of the box is changed by it
//	reported  it may succeed, and the box reports the change afterwards
//	open      the level does not hold it
//
// In every case but the last two, all that is outside of the box stays as it is.
type Case struct {
	Line int    // of the list of escape tests in the reference, or 0
	Try  string // attempt and arguments; names in braces are of the scene
	Full string
	// Those of the other levels are empty where the same holds as in a full box.
	Reduced string
	Own     string
	Host    string
	Seen    string // what of the scene's state changes outside of a box
	Who     who
	// Unless excuses attempts that do not succeed outside of a box: errors
	// and reasons, as "ENOSYS: the kernel is older; EPERM: ...".
	Unless   string
	Terminal bool // it is made on a terminal
}

// who can make an attempt outside of a box.
type who int

const (
	anybody who = iota
	root
	users // all but root
)

// unfit reports whether a user cannot make an attempt outside of a box.
func (c Case) unfit(uid int) bool { return c.Who == root && uid != 0 || c.Who == users && uid == 0 }

// name is that of the case's own test.
func (c Case) name() string {
	return strings.NewReplacer("/", "-", "{", "", "}", "", " ", "_", "#", "").Replace(c.Try)
}

func (c Case) argv(s *Scene) (argv []string, missing string) {
	for word := range strings.FieldsSeq(c.Try) {
		text, m := s.expand(word)
		if m != "" {
			missing = m
		}
		argv = append(argv, text)
	}
	return argv, missing
}

// excused returns the reason for which an attempt may end with a word.
func (c Case) excused(word string) (reason string, ok bool) {
	for part := range strings.SplitSeq(c.Unless, ";") {
		name, reason, _ := strings.Cut(strings.TrimSpace(part), ": ")
		if name == word {
			return reason, true
		}
	}
	return "", false
}

// judge compares how an attempt went in a box with what must be.
func (c Case) judge(level string, a answer, changes, reported []string) error {
	words := c.Full
	switch level {
	case Reduced:
		words = cmp.Or(c.Reduced, c.Full)
	case Own:
		words = cmp.Or(c.Own, c.Full)
	case HostView:
		words = cmp.Or(c.Host, c.Full)
	}
	want := strings.Fields(words)
	word := a.word()
	loose := slices.ContainsFunc(want, func(w string) bool { return w == "free" || w == "reported" || w == "open" })
	switch {
	case a.OK && slices.Contains(want, "open"):
		return nil
	case a.OK && slices.Contains(want, "reported") && len(reported) > 0:
		return nil
	case a.OK && slices.Contains(want, "free"):
	case a.OK && slices.Contains(want, "reported"):
		return errors.New("it succeeds, and the box reports nothing of it")
	case a.OK:
		return fmt.Errorf("it succeeds, want %s; %s", strings.Join(want, " "), a.Detail)
	case loose, slices.Contains(want, word):
	default:
		return fmt.Errorf("it ends with %s, want %s; %s", word, strings.Join(want, " "), a.Detail)
	}
	if len(changes) > 0 {
		return fmt.Errorf("it changed what is outside of the box:\n%s", strings.Join(changes, "\n"))
	}
	return nil
}
