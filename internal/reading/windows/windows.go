// Package windows splits texts of the two shells of Windows, PowerShell and
// cmd.exe, into the calls that they make.
//
// It owns their grammar as far as calls, words and redirections go. It knows
// no program and no effect, follows no variable, and runs nothing. A text that
// is not wholly understood is said to be incomplete: what it does besides the
// calls that were found is not known.
package windows

import "strings"

// Call is one command with its words. Words may be empty: then the output of
// something that is no command, an expression or a group, is redirected.
type Call struct {
	Words     []Word
	Redirects []Redirect
}

// Word is one word of a call. Text is what the program gets, without quotes
// and escapes, if Literal; else the word's source. In PowerShell a value never
// becomes a parameter of a cmdlet; only a splat, @name, can.
type Word struct {
	Text    string
	Literal bool
}

// Redirect is a file that output goes to or input comes from. Null devices are
// left out.
type Redirect struct {
	Target Word
	Append bool
	Input  bool
}

// Limits. What is beyond is incomplete.
const (
	maxText  = 256 << 10
	maxDepth = 48
	maxCalls = 2000
)

// collector gathers calls. A call has its place before what stands in it.
type collector struct {
	slots    []slot
	depth    int
	complete bool
}

type slot struct {
	call Call
	keep bool
}

// reserve takes the place of a call.
func (c *collector) reserve() int {
	if len(c.slots) >= maxCalls {
		c.complete = false
		return -1
	}
	c.slots = append(c.slots, slot{})
	return len(c.slots) - 1
}

func (c *collector) fill(place int, call Call) {
	if place >= 0 && (len(call.Words) > 0 || len(call.Redirects) > 0) {
		c.slots[place] = slot{call, true}
	}
}

func (c *collector) calls() []Call {
	var calls []Call
	for _, s := range c.slots {
		if s.keep {
			calls = append(calls, s.call)
		}
	}
	return calls
}

// enter goes one level deeper. If it returns false nothing deeper is read.
func (c *collector) enter() bool {
	if c.depth >= maxDepth {
		c.complete = false
		return false
	}
	c.depth++
	return true
}

func (c *collector) leave() { c.depth-- }

func (c *collector) incomplete() { c.complete = false }

func letter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

func digit(c byte) bool { return c >= '0' && c <= '9' }

// listed reports whether a word stands in a list, in any case.
func listed(list, word string) bool {
	word = strings.ToLower(word)
	for len(list) > 0 && word != "" {
		i := strings.Index(list, word)
		if i < 0 {
			return false
		}
		end := i + len(word)
		if i > 0 && list[i-1] <= ' ' && end < len(list) && list[end] <= ' ' {
			return true
		}
		list = list[end:]
	}
	return false
}
