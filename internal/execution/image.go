package execution

import (
	"bytes"
	"path/filepath"
	"strings"
)

// headSize is how much of a file Linux reads to find out how to start it
// (BINPRM_BUF_SIZE); a #! line that is longer is cut by some kernels and
// refused by others.
const headSize = 256

// maxScripts is how many scripts may name each other as interpreter, as in
// Linux.
const maxScripts = 5

// maxStarts bounds how many files take part in a start, since env(1) may start
// scripts that start env again.
const maxStarts = 16

// bindImage finds out how the program would be started, and opens the
// interpreters of a script: those that the kernel starts, and what env(1) would
// start for them.
func (b *Bound) bindImage(s search) error {
	o := b.program
	var args []string // of the interpreter that was found last
	for scripts := 0; len(b.interpreters) < maxStarts; {
		head, err := o.head()
		if err != nil {
			return err
		}
		if bytes.HasPrefix(head, []byte("#!")) {
			path, argument, ok := parseShebang(head)
			if scripts++; !ok || scripts > maxScripts {
				return &Error{Kind: BadScript, Path: o.found}
			}
			if o, err = openInterpreter(path, o.found); err != nil {
				return err
			}
			b.interpreters = append(b.interpreters, o)
			args = nil
			if argument != "" {
				args = []string{argument}
			}
			continue
		}
		native, err := recognise(o.found, head)
		if err != nil {
			return err
		}
		if b.loaded == nil && native {
			b.loaded = &object{}
			*b.loaded = o
			b.native = len(b.interpreters) == 0
		}
		if len(b.interpreters) == 0 || !isEnv(o) {
			return nil
		}
		call, ok := readEnv(args, s)
		if !ok {
			return &Error{Kind: Unresolved, Path: b.program.found}
		}
		if o, err = call.search.program(call.name); err != nil {
			return err
		}
		b.interpreters = append(b.interpreters, o)
		b.lookups = append(b.lookups, lookup{call.search, call.name, o.id})
		args, scripts = call.rest, 0
	}
	return &Error{Kind: BadScript, Path: b.program.found}
}

func openInterpreter(path, script string) (object, error) {
	o, err := openObject(path)
	if e, ok := err.(*Error); ok && e.Kind == NotFound {
		return object{}, &Error{Kind: NoInterpreter, Path: script, Err: e}
	}
	return o, err
}

// parseShebang reads the first line of a script as Linux does (execve(2)):
// blanks, the interpreter, blanks, and the whole rest as one argument.
func parseShebang(head []byte) (path, argument string, ok bool) {
	line, _, complete := bytes.Cut(head[len("#!"):], []byte("\n"))
	if !complete && len(head) == headSize {
		return "", "", false
	}
	text := strings.Trim(string(line), " \t")
	path, argument = text, ""
	if i := strings.IndexAny(text, " \t"); i >= 0 {
		path, argument = text[:i], strings.Trim(text[i:], " \t")
	}
	if !filepath.IsAbs(path) || strings.IndexByte(text, 0) >= 0 {
		return "", "", false
	}
	return path, argument, true
}
