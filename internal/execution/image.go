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

// bindImage finds out how the kernel would start the program, and opens the
// interpreters of a script.
func (b *Bound) bindImage(s search) error {
	o := b.program
	for range maxScripts {
		head, err := o.head()
		if err != nil {
			return err
		}
		if !bytes.HasPrefix(head, []byte("#!")) {
			native, err := recognise(o.found, head)
			b.native = native && len(b.interpreters) == 0
			return err
		}
		path, argument, ok := parseShebang(head)
		if !ok {
			return &Error{Kind: BadScript, Path: o.found}
		}
		if o, err = openInterpreter(path, o.found); err != nil {
			return err
		}
		b.interpreters = append(b.interpreters, o)
		if name, ok := envProgram(path, argument); ok {
			found, err := s.program(name)
			if err != nil {
				return err
			}
			b.interpreters = append(b.interpreters, found)
			return nil
		}
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

// envProgram returns the program that `#!/usr/bin/env name` looks up in PATH.
// Forms with options or assignments are left to env: what they run is not
// bound.
func envProgram(interpreter, argument string) (string, bool) {
	if filepath.Base(interpreter) != "env" {
		return "", false
	}
	name := argument
	if rest, ok := strings.CutPrefix(argument, "-S"); ok {
		words := strings.Fields(rest)
		if len(words) == 0 {
			return "", false
		}
		name = words[0]
	}
	if name == "" || strings.HasPrefix(name, "-") || strings.ContainsAny(name, "='\"\\$ \t") {
		return "", false
	}
	return name, true
}
