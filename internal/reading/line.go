package reading

import "strings"

// Line writes an argument list as one line of POSIX shell text that means the
// same list: words are quoted with single quotes where they need it. It is for
// display; nothing is ever run from it.
func Line(argv []string) string {
	var b strings.Builder
	for i, word := range argv {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(quote(word))
	}
	return b.String()
}

// quote writes one word so that a shell reads it as itself.
func quote(word string) string {
	if word != "" && !strings.ContainsFunc(word, special) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// special reports whether a shell may read r as anything but itself.
func special(r rune) bool {
	switch {
	case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
		return false
	}
	return !strings.ContainsRune("@%+=:,./-_", r)
}
