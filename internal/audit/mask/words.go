package mask

import (
	"strings"
)

// word is a shell word or an argument.
type word struct {
	text     string // without the quotes
	at       []int  // where each byte of text lies in the source; nil for an argument
	quoted   []span // the quoted parts in the source, without their quotes
	literal  bool   // $NAME is not replaced
	assigned bool   // its first '=' stands outside of quotes
	here     bool   // it follows <<<
}

// source is the part of the source that a part of the word's text comes from,
// with both quotes of each quoted part that it holds together with others.
func (w word) source(p span) span {
	if p.from >= p.to {
		return span{}
	}
	src := span{w.at[p.from], w.at[p.to-1] + 1}
	for _, q := range w.quoted {
		switch {
		case q.from <= src.from && src.to <= q.to: // within this one
			return src
		case q.from <= src.from && src.from < q.to:
			src.from = q.from - 1
		case q.from < src.to && src.to <= q.to:
			src.to = q.to + 1
		}
	}
	return src
}

// command is a simple command.
type command struct {
	words []word
	pipe  bool // its output goes to the next one
}

// commandSpans finds secrets by the place that they have in a command line.
func commandSpans(s string, depth int) []span {
	var spans []span
	cmds := commands(s)
	for i, c := range cmds {
		for _, f := range findInWords(c.words) {
			spans = append(spans, c.words[f.word].source(f.span))
		}
		reader := c
		if c.pipe && i+1 < len(cmds) {
			reader = cmds[i+1]
		}
		if readsSecret(reader.words) {
			for n, w := range c.words {
				given := c.pipe && n > 0 && isEcho(c.words[0].text) && !strings.HasPrefix(w.text, "-") && !strings.Contains(w.text, "%")
				if (given || w.here) && !isExpansion(w.text) {
					spans = append(spans, w.source(span{0, len(w.text)}))
				}
			}
		}
		for _, w := range c.words {
			for _, q := range w.quoted {
				const deepest = 3
				if inner := s[q.from:q.to]; depth < deepest && strings.ContainsAny(inner, " \t\n") {
					for _, p := range commandSpans(inner, depth+1) {
						spans = append(spans, span{q.from + p.from, q.from + p.to})
					}
				}
			}
		}
	}
	return spans
}

func isEcho(program string) bool {
	return program == "echo" || program == "printf" || strings.HasSuffix(program, "/echo") || strings.HasSuffix(program, "/printf")
}

// readsSecret reports whether a command reads a secret from its input.
func readsSecret(words []word) bool {
	sudo := false
	for _, w := range words {
		switch name := base(w.text); name {
		case "sudo":
			sudo = true
		case "chpasswd", "smbpasswd", "--password-stdin", "--stdin", "--with-token", "--passphrase-fd", "--key-file=-":
			return true
		default:
			if sudo && (name == "--stdin" || isCluster(name) && strings.Contains(name, "S")) {
				return true
			}
		}
	}
	return false
}

// base is a program's name without its folder.
func base(text string) string { return text[strings.LastIndexByte(text, '/')+1:] }

// isCluster reports whether a word is a dash with letters.
func isCluster(w string) bool {
	if len(w) < 2 || w[0] != '-' {
		return false
	}
	for i := 1; i < len(w); i++ {
		if !isLetter(w[i]) {
			return false
		}
	}
	return true
}

// commands takes a text apart as a shell would, roughly: what is not a command
// line must come out harmless, and a quote that is not closed is none.
func commands(s string) []command {
	var all []command
	var cur command
	end := func(pipe bool) {
		if len(cur.words) > 0 {
			cur.pipe = pipe
			all = append(all, cur)
		}
		cur = command{}
	}
	here := false
	for i := 0; i < len(s); {
		switch c := s[i]; {
		case c == '|':
			or := i+1 < len(s) && s[i+1] == '|'
			end(!or)
			if or {
				i++
			}
			i++
		case c == '\n' || c == '`' || c == ';' || c == '&' || c == '(' || c == ')':
			end(false)
			i++
		case c == '<' || c == '>':
			here = strings.HasPrefix(s[i:], "<<<")
			if here {
				i += 2
			}
			i++
		case isSpace(c):
			i++
		default:
			w, next := readWord(s, i)
			w.here = here
			cur.words = append(cur.words, w)
			here = false
			i = next
		}
	}
	end(false)
	return all
}

// readWord reads the word that begins at i.
func readWord(s string, i int) (w word, next int) {
	var text strings.Builder
	add := func(at int) {
		text.WriteByte(s[at])
		w.at = append(w.at, at)
	}
	start, hasEquals := i, false
	for i < len(s) {
		c := s[i]
		switch {
		case isSpace(c) || isOperator(c) || c == '`':
			w.text = text.String()
			return w, i
		case c == '\\' && i+1 < len(s):
			if s[i+1] != '\n' {
				add(i + 1)
			}
			i += 2
			continue
		case c == '"' || c == '\'' && opensQuote(s, start, i):
			if end := closing(s, i); end >= 0 {
				w.quoted = append(w.quoted, span{i + 1, end})
				w.literal = w.literal || c == '\''
				for i++; i < end; i++ {
					if c == '"' && s[i] == '\\' && i+1 < end && strings.IndexByte("\"\\$`", s[i+1]) >= 0 {
						i++
					}
					add(i)
				}
				i = end + 1
				continue
			}
		}
		if c == '=' && !hasEquals {
			hasEquals = true
			w.assigned = len(w.quoted) == 0
		}
		add(i)
		i++
	}
	w.text = text.String()
	return w, i
}

// opensQuote tells a quote from an apostrophe: after a letter it is one unless
// the word looks like an option or an assignment.
func opensQuote(s string, start, i int) bool {
	return i == start || !isAlnum(s[i-1]) || s[start] == '-' || strings.IndexByte(s[start:i], '=') >= 0
}

// closing is where the quote at i is closed, or -1.
func closing(s string, i int) int {
	quote := s[i]
	for i++; i < len(s); i++ {
		switch {
		case s[i] == quote:
			return i
		case s[i] == '\\' && quote == '"':
			i++
		}
	}
	return -1
}
