package execution

import (
	"path/filepath"
	"strings"
)

// This file finds out what env(1) would start in a #! line, as GNU coreutils
// and the BSDs document it. What cannot be known for certain is refused: an
// interpreter that nobody saw must not run.

// envSearch is how env would find a program.
type envSearch struct {
	search
	// paths are the values of PATH that may be in force: one that is known, or
	// the defaults of C libraries, which then have to agree.
	paths []string
}

// defaultPaths are what execvp(3) searches when there is no PATH: musl and the
// BSDs, glibc, and the BSDs' other spelling.
var defaultPaths = [...]string{"/usr/local/bin:/bin:/usr/bin", "/bin:/usr/bin", "/usr/bin:/bin"}

// program finds and opens what env would start.
func (s envSearch) program(name string) (object, error) {
	var first object
	for i, path := range s.paths {
		at := s.search
		at.path = path
		o, err := at.program(name)
		if i == 0 {
			if first = o; err != nil {
				return object{}, err
			}
			continue
		}
		if err == nil {
			o.file.Close()
		}
		if err != nil || o.id != first.id {
			first.file.Close()
			return object{}, &Error{Kind: Unresolved, Path: name}
		}
	}
	return first, nil
}

// isEnv reports whether an interpreter is env(1), by the name in the #! line or
// the one that it leads to.
func isEnv(o object) bool {
	return filepath.Base(o.found) == "env" || filepath.Base(o.real) == "env"
}

// envCall is what an env with some arguments would start.
type envCall struct {
	search envSearch
	name   string
	rest   []string // arguments of the program, before the script's path
}

// readEnv reads the arguments that a #! line gives to env. False means that
// they do not say what would be started, or say it in a way that is not known
// here.
func readEnv(args []string, s search) (envCall, bool) {
	e := envReader{search: s, words: args, path: &s.path}
	if !e.options() {
		return envCall{}, false
	}
	for len(e.words) > 0 {
		name, value, found := strings.Cut(e.words[0], "=")
		if !found {
			break
		}
		if name == "PATH" {
			e.path = &value
		}
		e.words = e.words[1:]
	}
	// Without a program the script itself would be started, again and again.
	if len(e.words) == 0 || e.words[0] == "" || strings.HasPrefix(e.words[0], "-") {
		return envCall{}, false
	}
	call := envCall{search: envSearch{search: s}, name: e.words[0], rest: e.words[1:]}
	switch {
	case e.moved && !filepath.IsAbs(call.name):
		return envCall{}, false
	case e.path != nil:
		call.search.paths = []string{*e.path}
	default:
		call.search.paths = defaultPaths[:]
	}
	return call, true
}

// envReader goes through env's arguments.
type envReader struct {
	search search
	words  []string
	path   *string // PATH of the program; nil when it is unset
	moved  bool    // env changes the working directory first
}

// options takes the options off.
func (e *envReader) options() bool {
	for len(e.words) > 0 {
		word := e.words[0]
		switch {
		case word == "--":
			e.words = e.words[1:]
			if len(e.words) > 0 && e.words[0] == "-" {
				e.words, e.path = e.words[1:], nil
			}
			return true
		case word == "-":
			e.words, e.path = e.words[1:], nil
			return true
		case !strings.HasPrefix(word, "-"):
			return true
		}
		e.words = e.words[1:]
		read := e.short
		if strings.HasPrefix(word, "--") {
			read = e.long
		}
		if !read(strings.TrimLeft(word, "-")) {
			return false
		}
	}
	return true
}

// long reads an option with a long name, spelled out.
func (e *envReader) long(option string) bool {
	name, value, given := strings.Cut(option, "=")
	switch name {
	case "ignore-environment":
		e.path = nil
		return !given
	case "debug":
		return !given
	case "block-signal", "default-signal", "ignore-signal", "list-signal-handling":
		return true
	case "unset", "chdir", "argv0", "split-string":
		if !given {
			var ok bool
			if value, ok = e.next(); !ok {
				return false
			}
		}
		return e.valued(name[0], value)
	}
	return false
}

// short reads a group of one-letter options.
func (e *envReader) short(letters string) bool {
	for i, letter := range []byte(letters) {
		switch letter {
		case 'i':
			e.path = nil
		case 'v':
		case 'u', 'C', 'a', 'S':
			value := letters[i+1:]
			if value == "" {
				var ok bool
				if value, ok = e.next(); !ok {
					return false
				}
			}
			// In the spelling of the long names.
			return e.valued(strings.ToLower(string(letter))[0], value)
		default:
			return false
		}
	}
	return true
}

func (e *envReader) next() (string, bool) {
	if len(e.words) == 0 {
		return "", false // the script's path would be taken for the value
	}
	value := e.words[0]
	e.words = e.words[1:]
	return value, true
}

// valued applies an option that has a value: unset, chdir, argv0 or
// split-string, named by its first letter.
func (e *envReader) valued(letter byte, value string) bool {
	switch letter {
	case 'u':
		if value == "PATH" {
			e.path = nil
		}
	case 'c':
		e.moved = true
	case 's':
		words, ok := splitWords(value, e.search.environ)
		if !ok {
			return false
		}
		e.words = append(words, e.words...)
	}
	return true
}

// splitWords splits the argument of env -S: words apart by blanks, single and
// double quotes, backslash escapes, ${NAME}, and comments.
func splitWords(text string, environ []string) (words []string, ok bool) {
	const blanks = " \t\n\v\f\r"
	var word strings.Builder
	inWord := false
	var quote byte
	end := func() {
		if inWord {
			words = append(words, word.String())
		}
		word.Reset()
		inWord = false
	}
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case quote == 0 && strings.IndexByte(blanks, c) >= 0:
			end()
			continue
		case quote == 0 && c == '#' && !inWord:
			return words, true
		case quote == 0 && (c == '\'' || c == '"'):
			quote = c
		case c == quote:
			quote = 0
		case c == '\\' && quote == '\'':
			// In single quotes a backslash is itself, but before these two.
			if i+1 < len(text) && (text[i+1] == '\\' || text[i+1] == '\'') {
				i++
			}
			word.WriteByte(text[i])
		case c == '\\':
			i++
			if i == len(text) {
				return nil, false
			}
			if text[i] == '_' && quote == 0 {
				end()
				continue
			}
			if text[i] == 'c' {
				if quote != 0 {
					return nil, false
				}
				end()
				return words, true
			}
			at := strings.IndexByte(`_fnrtv#$"'\`, text[i])
			if at < 0 {
				return nil, false
			}
			word.WriteByte(" \f\n\r\t\v#$\"'\\"[at])
		case c == '$' && quote != '\'':
			name, _, closed := strings.Cut(strings.TrimPrefix(text[i:], "${"), "}")
			if !strings.HasPrefix(text[i:], "${") || !closed || !isName(name) {
				return nil, false
			}
			word.WriteString(lookUp(environ, name))
			i += len("${}") + len(name) - 1
		default:
			word.WriteByte(c)
		}
		inWord = true
	}
	end()
	return words, quote == 0
}

func isName(s string) bool {
	for i, c := range []byte(s) {
		letter := c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

// lookUp is getenv(3).
func lookUp(environ []string, name string) string {
	for _, entry := range environ {
		if v, found := cutName(entry, name); found {
			return v
		}
	}
	return ""
}
