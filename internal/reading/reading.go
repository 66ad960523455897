// Package reading turns the text of an action into structure: which programs
// would start, with which words, and what they would do.
//
// It owns the shell's grammar and evaluation as far as they can be known
// before anything runs: words, variables, functions, redirections, nested
// text, and the wrappers that start other programs. What a program's words
// mean comes from the catalog. What cannot be known is said to be unknown,
// never guessed. It runs nothing and opens no file.
package reading

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"

	"vogt/internal/catalog"
	"vogt/internal/detail"
)

// Limits of what is read. Beyond them a text is opaque.
const (
	// MaxArgv is the largest argument list that is read, in bytes, counting one
	// terminator per word as execve(2) does.
	MaxArgv = 1 << 20
	// MaxText is the largest text in bytes.
	MaxText = 256 << 10
	// maxDepth is how deep texts and commands may stand in each other.
	maxDepth = 64
	// maxCalls is how many calls one text may have.
	maxCalls = 4096
	// maxSteps bounds the work on one text: statements and words that are
	// visited, again for each call of a function and turn of a loop's fixpoint.
	maxSteps = 30_000
	// maxValue is the longest value of a variable that is remembered, in bytes.
	maxValue = 4 << 10
	// maxPath is the longest working directory that is followed, in bytes.
	maxPath = 512
	// maxEnv is how many settings of the environment are followed.
	maxEnv = 64
	// maxBraces is how many words a brace expansion may give.
	maxBraces = 1024
)

// Place is where a text would run.
type Place struct {
	Cwd  string // absolute path of the working directory; empty when unknown
	Home string // home folder; empty when unknown, paths then begin with ~
}

// Call is one program start, or redirections without a program.
type Call struct {
	Program string // base name in command position, "?" when unknown, empty for redirections alone
	Words   []catalog.Word
	Use     catalog.Use
	Effects detail.Effects // of this call alone, redirections included
	Risk    detail.Risk
	Paths   Paths
	Hosts   []string
	Remote  bool   // runs on another host or in a container: its paths are not local
	Via     string // the program or construct that starts it; empty at the top
	Depth   int    // how many programs stand between the text and this call
	Offset  int    // where it stands in the text, in bytes
	Cwd     string // working directory; empty when unknown
	// Adrift says that Cwd holds only if an earlier change of folder succeeded, which
	// nothing has shown: "cd x; cat a", as opposed to "cd x && cat a". Fell is the
	// folder that it runs in otherwise, empty when unknown.
	Adrift  bool
	Fell    string
	decides bool   // a deciding verb of Vogt's own
	text    string // what stands for the call when it has no words
	// Redirected says that a redirection opens a file or a connection for it, which
	// its words do not show.
	Redirected bool
}

// Argv returns the words when all are literal.
func (c *Call) Argv() ([]string, bool) {
	argv := make([]string, len(c.Words))
	for i := range c.Words {
		if c.Words[i].Kind != catalog.Literal {
			return nil, false
		}
		argv[i] = c.Words[i].Text
	}
	return argv, true
}

// Paths are the files that a call or a text touches, absolute and cleaned as
// far as the working directory is known. Patterns stay patterns. What is not
// literal stands as it was written.
type Paths struct {
	Reads, Writes, Deletes, Sinks []string
	Unknown                       bool // further paths are touched that are not known
	anywhere                      bool // a part of one is not known and may lead anywhere
}

// Problem is something that a person should know about the text.
type Problem struct {
	Offset int    // in bytes
	Key    string // which kind, for translation
	Text   string // English
}

// Reading is what a text would do.
type Reading struct {
	ParseOK  bool
	Calls    []*Call // in the order of the text, wrappers before what they start
	Effects  detail.Effects
	Risk     detail.Risk
	Paths    Paths
	Hosts    []string
	Problems []Problem
	File     *syntax.File // the parsed text; nil for an argument list or when it does not parse
}

// Programs lists the base names in command position, "?" where one is unknown.
func (r *Reading) Programs() []string {
	out := make([]string, 0, len(r.Calls))
	for i := range r.Calls {
		if r.Calls[i].Program != "" {
			out = append(out, r.Calls[i].Program)
		}
	}
	if !r.ParseOK {
		return []string{"?"}
	}
	return out
}

// Reader reads texts against one catalog. It is safe for concurrent use.
type Reader struct {
	catalog  *catalog.Catalog
	parsers  sync.Pool
	sessions sync.Pool
}

// New returns a reader.
func New(c *catalog.Catalog) *Reader {
	return &Reader{catalog: c, parsers: sync.Pool{New: func() any { return syntax.NewParser(syntax.KeepComments(false)) }}}
}

// Classify says what the reader's catalog knows of a file: its path is absolute
// and clean.
func (rd *Reader) Classify(path string) catalog.Class { return rd.catalog.Classify(path, "") }

// Fallen is where a path of c lies if the change of folder before it fails: the path
// itself where that makes no difference.
func (c *Call) Fallen(name string) string {
	if below, ok := strings.CutPrefix(name, c.Cwd); c.Adrift && ok && (below == "" || below[0] == '/') {
		return path.Join(c.Fell, below)
	}
	return name
}

// Catalog is what the reader reads with.
func (rd *Reader) Catalog() *catalog.Catalog { return rd.catalog }

// Knows reports whether the reader's catalog knows a program by its base name.
func (rd *Reader) Knows(program string) bool { return rd.catalog.Entry(program) != nil }

// HostKind is what the reader's catalog knows of a host.
func (rd *Reader) HostKind(host string) string { return rd.catalog.HostKind(host) }

// Text reads a command line as bash would.
func (rd *Reader) Text(text string, at Place) Reading {
	n := rd.begin(at)
	r, w := &n.reading, &n.walker
	odd := w.inspect(text)
	if len(text) > MaxText {
		w.problem(MaxText, "too-long", fmt.Sprintf("the text has %d bytes, more than %d are not read", len(text), MaxText))
		w.unknownText(text)
		return rd.end(n)
	}
	parsed, err := rd.parse(text, false)
	switch {
	case err != nil:
		w.parseProblem(err)
		if odd {
			w.signs(text, 0) // likely the cause
		}
		w.unknownText(text)
	case strings.IndexByte(text, 0) >= 0:
		w.problem(strings.IndexByte(text, 0), "nul", "the text holds a NUL byte, which shells drop or stop at")
		w.unknownText(text)
	default:
		r.ParseOK, r.File = true, parsed.file
		w.differences(text)
		if odd {
			w.unquotedSigns(parsed.file)
		}
		w.stmtsOf(parsed, &n.scope, 0)
	}
	return rd.end(n)
}

// Argv reads an argument list. The error names the word that cannot be run.
// resolved is the path that the program's name leads to, if it is known: a
// link under another name is still the program that it leads to.
func (rd *Reader) Argv(argv []string, resolved string, at Place) (Reading, error) {
	if err := CheckArgv(argv); err != nil {
		return Reading{}, err
	}
	n := rd.begin(at)
	r, w := &n.reading, &n.walker
	r.ParseOK = true
	words := make([]catalog.Word, len(argv))
	for i, a := range argv {
		words[i] = catalog.Word{Text: a}
	}
	w.inspect(strings.Join(argv, " "))
	w.command(call{words: words, scope: &n.scope, resolved: resolved})
	return rd.end(n), nil
}

// CheckArgv reports the first word of an argument list that cannot be run.
func CheckArgv(argv []string) error {
	if len(argv) == 0 {
		return fmt.Errorf("the command is empty: give a program and its arguments")
	}
	size := 0
	for i, word := range argv {
		size += len(word) + 1
		if strings.IndexByte(word, 0) >= 0 {
			return fmt.Errorf("argument %d holds a NUL byte, which no program can be given", i)
		}
		if !utf8.ValidString(word) {
			return fmt.Errorf("argument %d is not valid UTF-8, so it cannot be shown as it would run", i)
		}
	}
	if size > MaxArgv {
		return fmt.Errorf("the argument list has %d bytes, the limit is %d: pass long input in a file or on standard input", size, MaxArgv)
	}
	if program := Base(argv[0]); strings.TrimSpace(argv[0]) == "" || program == "." || program == ".." || program == "/" {
		return fmt.Errorf("%q names no program", argv[0])
	}
	return nil
}

// Base is the base name of a program's path.
func Base(program string) string {
	if strings.IndexByte(program, '/') < 0 {
		return program
	}
	return path.Base(strings.TrimRight(program, "/"))
}

// parsed is a text of bash and what the parser made of it.
type parsed struct {
	file *syntax.File
	text string // as it was parsed: the places in file are places in it
	// rewritten says that bash takes the text as it was given and the parser
	// only in other words.
	rewritten bool
}

// parse parses a text of bash. What bash refuses and the parser takes is an
// error too. extglob says that extended patterns are on.
func (rd *Reader) parse(text string, extglob bool) (parsed, error) {
	if tooDeep(text) {
		return parsed{}, refusedError{"brackets stand in each other deeper than is read"}
	}
	p := rd.parsers.Get().(*syntax.Parser)
	defer rd.parsers.Put(p)
	if strings.IndexByte(text, '\r') >= 0 {
		text = strings.ReplaceAll(text, "\r", returnMark)
	}
	out, err := parseOnce(p, text, extglob)
	if err != nil {
		for other := range otherWords(text) {
			if out, err := parseOnce(p, other, extglob); err == nil {
				out.rewritten = true
				return out, nil
			}
		}
	}
	return out, err
}

func parseOnce(p *syntax.Parser, text string, extglob bool) (parsed, error) {
	file, err := p.Parse(strings.NewReader(text), "")
	for range maxOpenDocuments {
		// Bash takes a here-document that the text's end cuts off.
		end, open := openDocument(err)
		if !open {
			break
		}
		text += "\n" + end + "\n"
		file, err = p.Parse(strings.NewReader(text), "")
	}
	if err == nil {
		err = refused(text, file, extglob)
	}
	return parsed{file: file, text: text}, err
}

// unknownText stands for a text of which nothing is known.
func (w *walker) unknownText(text string) {
	w.add(&Call{Program: "?", text: text, Effects: detail.Opaque, Risk: detail.High}, 0)
}

// finish joins what the calls do.
func (w *walker) finish() {
	r := w.reading
	if w.steps >= maxSteps {
		w.exhausted("too-much", "the text needs more work than is spent on one")
	}
	if w.calls > maxCalls {
		w.exhausted("too-many", "the text has more commands than are read")
	}
	w.collect.sort()
	r.Calls = w.collect.calls
	r.Risk = detail.Low
	for i := range r.Calls {
		c := r.Calls[i]
		r.Effects |= c.Effects
		r.Risk = max(r.Risk, c.Risk)
		r.Hosts = append(r.Hosts, c.Hosts...)
		r.Paths.Unknown = r.Paths.Unknown || c.Paths.Unknown
		r.Paths.Reads = append(r.Paths.Reads, c.Paths.Reads...)
		r.Paths.Writes = append(r.Paths.Writes, c.Paths.Writes...)
		r.Paths.Deletes = append(r.Paths.Deletes, c.Paths.Deletes...)
		r.Paths.Sinks = append(r.Paths.Sinks, c.Paths.Sinks...)
	}
	for _, list := range []*[]string{&r.Hosts, &r.Paths.Reads, &r.Paths.Writes, &r.Paths.Deletes, &r.Paths.Sinks} {
		*list = unique(*list)
	}
	if len(w.seen) > 0 {
		slices.SortStableFunc(r.Problems, func(a, b Problem) int { return a.Offset - b.Offset })
	}
}

// exhausted records that a limit was reached, so that not all was read.
func (w *walker) exhausted(key, text string) {
	w.problem(0, key, text)
	w.collect.calls = append(w.collect.calls, &Call{Effects: detail.Opaque, Risk: detail.High})
	w.collect.keys = append(w.collect.keys, len(w.text))
}

// unique drops what occurred before, in place.
func unique(list []string) []string {
	if len(list) < 2 {
		return list
	}
	if len(list) > 16 {
		seen := make(map[string]bool, len(list))
		return slices.DeleteFunc(list, func(s string) bool {
			had := seen[s]
			seen[s] = true
			return had
		})
	}
	out := list[:0]
	for _, s := range list {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}
