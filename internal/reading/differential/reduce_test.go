package differential

import "strings"

// maxLetters is the length up to which a line is shortened letter by letter.
const maxLetters = 40

// reduce gives a short line for which holds is true, as it is for line. It
// drops pieces, larger ones first, and puts quoted text in the place of the
// whole, for as long as that helps. It asks at most budget times.
func reduce(line string, budget int, holds func(string) bool) string {
	ask := func(candidate string) bool {
		if budget <= 0 || len(candidate) >= len(line) || strings.TrimSpace(candidate) == "" {
			return false
		}
		budget--
		return holds(candidate)
	}
	for improved := true; improved; {
		improved = false
		for _, inner := range quoted(line) {
			if ask(inner) {
				line, improved = inner, true
				break
			}
		}
		pieces := tokens(line)
		if len(line) <= maxLetters {
			pieces = strings.Split(line, "")
		}
		for size := (len(pieces) + 1) / 2; size > 0; size /= 2 {
			for at := 0; at+size <= len(pieces); {
				candidate := strings.Join(pieces[:at], "") + strings.Join(pieces[at+size:], "")
				if ask(candidate) {
					line, improved = candidate, true
					pieces = append(pieces[:at:at], pieces[at+size:]...)
					continue
				}
				at++
			}
		}
	}
	return line
}

// quoted are the texts between quotes or parentheses in line, unquoted one level.
func quoted(line string) []string {
	var found []string
	for i, open := range line {
		end := map[rune]string{'\'': "'", '"': `"`, '(': ")", '`': "`", '{': "}", '\n': "\n"}[open]
		if end == "" {
			continue
		}
		rest := line[i+1:]
		for _, at := range []int{strings.Index(rest, end), strings.LastIndex(rest, end)} {
			if at > 0 {
				inner := rest[:at]
				if open == '"' {
					inner = strings.NewReplacer(`\"`, `"`, `\$`, `$`, `\\`, `\`, "\\`", "`").Replace(inner)
				}
				found = append(found, inner, strings.ReplaceAll(inner, `'\''`, "'"))
			}
		}
	}
	return found
}

// tokens splits a line so that joining gives it again: runs of letters, runs of
// blanks, and every other sign alone.
func tokens(line string) []string {
	kind := func(r rune) int {
		switch {
		case r == ' ' || r == '\t':
			return 1
		case strings.ContainsRune("\n;&|(){}<>'\"`$\\", r):
			return 0
		}
		return 2
	}
	var pieces []string
	last := 0
	for _, r := range line {
		k := kind(r)
		if k != 0 && k == last {
			pieces[len(pieces)-1] += string(r)
		} else {
			pieces = append(pieces, string(r))
		}
		last = k
	}
	return pieces
}
