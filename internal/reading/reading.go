// Package reading turns the text of an action into structure: which program
// would start, with which words.
//
// This version reads argument lists only. An argument list is its own parse:
// the kernel starts argv[0] with exactly these words, so one list gives one
// call. Shell text comes later and will give many. Reading owns structure and
// limits; what programs mean is the catalog's business.
package reading

import (
	"fmt"
	"path"
	"strings"
	"unicode/utf8"
)

// MaxArgv is the largest argument list that is read, in bytes, counting one
// terminator per word as execve(2) does.
const MaxArgv = 1 << 20

// Call is one program start.
type Call struct {
	Program string   // base name of argv[0]
	Argv    []string // every word is literal
}

// Argv reads an argument list. The error names the word that cannot be run.
func Argv(argv []string) (Call, error) {
	if len(argv) == 0 {
		return Call{}, fmt.Errorf("the command is empty: give a program and its arguments")
	}
	size := 0
	for i, word := range argv {
		size += len(word) + 1
		if strings.IndexByte(word, 0) >= 0 {
			return Call{}, fmt.Errorf("argument %d holds a NUL byte, which no program can be given", i)
		}
		if !utf8.ValidString(word) {
			return Call{}, fmt.Errorf("argument %d is not valid UTF-8, so it cannot be shown as it would run", i)
		}
	}
	if size > MaxArgv {
		return Call{}, fmt.Errorf("the argument list has %d bytes, the limit is %d: pass long input in a file or on standard input", size, MaxArgv)
	}
	program := path.Base(strings.TrimRight(argv[0], "/"))
	if strings.TrimSpace(argv[0]) == "" || program == "." || program == ".." || program == "/" {
		return Call{}, fmt.Errorf("%q names no program", argv[0])
	}
	return Call{Program: program, Argv: argv}, nil
}

// Line writes an argument list as one line of POSIX shell text that means the
// same list: words are quoted with single quotes where they need it. It is for
// display; nothing is ever run from it.
func Line(argv []string) string {
	var b strings.Builder
	for i, word := range argv {
		if i > 0 {
			b.WriteByte(' ')
		}
		if word != "" && !strings.ContainsFunc(word, special) {
			b.WriteString(word)
			continue
		}
		b.WriteByte('\'')
		b.WriteString(strings.ReplaceAll(word, "'", `'\''`))
		b.WriteByte('\'')
	}
	return b.String()
}

// special reports whether a shell may read r as anything but itself.
func special(r rune) bool {
	switch {
	case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
		return false
	}
	return !strings.ContainsRune("@%+=:,./-_", r)
}
