// Package execution starts commands: it ties a command to the files that it
// would run from, and later runs exactly that or nothing.
//
// It owns the search for the program, the identity of the files involved, the
// environment that a child gets, and the supervision of the child: terminal,
// signals, job control, exit code. It leaves out whether the command may run
// (flow) and every confinement. What it checks protects against mistakes and
// races; a process of the same OS user that sets out to deceive it is held only
// by the kernel.
package execution

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"vogt/internal/grant"
	"vogt/internal/statement"
)

// MaxArgv is the limit of an argument list in bytes, with one byte after each
// argument. It is that of a request, and below what Linux admits.
const MaxArgv = 1 << 20

// Executor binds and runs commands. The zero value has an empty environment,
// so that it finds no program by name, and null streams.
type Executor struct {
	// Environ is the environment as name=value. Vogt's own variables, VOGT_*,
	// are never passed on.
	Environ []string
	// Box, when set, is where commands run.
	Box *Box
	// The standard streams, which the child inherits as they are.
	Stdin, Stdout, Stderr *os.File
}

// Outcome tells how a child ended.
type Outcome struct {
	Code   int    // exit code, or 128+n when signal n ended it
	Signal string // name of that signal, for example SIGTERM
}

// Bound is a command together with the identity of what it runs from. It holds
// the program open, so Close it.
type Bound struct {
	argv         []string
	program      object
	interpreters []object // of a script, outermost first
	native       bool     // the kernel loads the program itself
	loaded       *object  // what the kernel loads: program or interpreter; nil when that is unknown
	lookups      []lookup // what env(1) will look up again
	cwd          folder
	box          *Box // in which it was bound to run
}

// lookup is a search that env(1) makes when the command runs, and what it found
// when the command was bound.
type lookup struct {
	search envSearch
	name   string
	id     identity
}

// Argv is the argument list, unchanged.
func (b *Bound) Argv() []string { return b.argv }

// Program is the absolute path under which the program was found. Its last
// part may be a symbolic link.
func (b *Bound) Program() string { return b.program.found }

// Interpreters are the programs that the kernel would start for a script, and
// the one that env(1) would find, outermost first.
func (b *Bound) Interpreters() []statement.File {
	files := make([]statement.File, len(b.interpreters))
	for i, o := range b.interpreters {
		files[i] = o.statement()
	}
	return files
}

// Context is what a request says about the command's surroundings. Standard
// input is no part of it: nothing here would hold the child to what was said
// about it, so that it must be shown as not bound.
func (b *Bound) Context() grant.Context {
	file, cwd := b.program.statement(), b.cwd.statement()
	c := grant.Context{
		Argv:         b.argv,
		Executable:   b.program.found,
		File:         &file,
		Interpreters: b.Interpreters(),
		Cwd:          &cwd,
	}
	if uid := os.Getuid(); uid >= 0 {
		n := uint64(uid)
		c.UID = &n
	}
	if b.box != nil {
		c.Confinement, c.NetworkMode = b.box.facts()
	}
	return c
}

// Close releases the files that are held open.
func (b *Bound) Close() error {
	for _, o := range b.interpreters {
		o.file.Close()
	}
	return b.program.file.Close()
}

// Bind resolves argv to a program once, in the folder cwd, and records what it
// found. An empty cwd is the folder that the process is in. The error is an
// *Error.
func (x Executor) Bind(argv []string, cwd string) (*Bound, error) {
	if err := checkArgv(argv); err != nil {
		return nil, err
	}
	dir, err := openFolder(cwd)
	if err != nil {
		return nil, err
	}
	search := search{path: x.variable("PATH"), cwd: dir.path, environ: x.childEnviron()}
	program, err := search.program(argv[0])
	if err != nil {
		return nil, err
	}
	b := &Bound{argv: argv, program: program, cwd: dir, box: x.Box}
	if err := b.bindImage(search); err != nil {
		b.Close()
		return nil, err
	}
	return b, nil
}

// unchanged reports whether everything is still as it was bound.
func (b *Bound) unchanged() error {
	if err := b.cwd.unchanged(); err != nil {
		return err
	}
	for _, o := range append([]object{b.program}, b.interpreters...) {
		if err := o.unchanged(); err != nil {
			return err
		}
	}
	for _, l := range b.lookups {
		if err := l.unchanged(); err != nil {
			return err
		}
	}
	return nil
}

// unchanged checks that env(1) would still find the same file: another one may
// have appeared earlier in PATH.
func (l lookup) unchanged() error {
	o, err := l.search.program(l.name)
	if err != nil {
		return err
	}
	defer o.file.Close()
	if o.id != l.id {
		return &Error{Kind: Changed, Path: o.found}
	}
	return nil
}

// childEnviron is the environment for a child in the bound folder: without
// Vogt's own variables, which carry switches and may carry secrets. Of entries
// with one name only the last is passed on, so that the child cannot see another
// PATH than the one that was searched.
func (x Executor) childEnviron() []string {
	env := make([]string, 0, len(x.Environ))
	seen := make(map[string]bool, len(x.Environ))
	for _, entry := range slices.Backward(x.Environ) {
		// A name may begin with "=" on Windows.
		name := entry
		if i := strings.IndexByte(entry, '='); i > 0 {
			name = variableName(entry[:i])
		}
		if !isOwn(entry) && !seen[name] {
			seen[name] = true
			env = append(env, entry)
		}
	}
	slices.Reverse(env)
	return env
}

func (x Executor) variable(name string) string {
	for _, entry := range slices.Backward(x.Environ) {
		if v, found := cutName(entry, name); found {
			return v
		}
	}
	return ""
}

// checkArgv refuses what no request can carry or no kernel accepts.
func checkArgv(argv []string) error {
	if len(argv) == 0 || argv[0] == "" {
		return &Error{Kind: Empty}
	}
	total := 0
	for _, arg := range argv {
		if strings.IndexByte(arg, 0) >= 0 || !utf8.ValidString(arg) {
			return &Error{Kind: BadBytes, Path: fmt.Sprintf("%q", shorten(arg))}
		}
		if total += len(arg) + 1; total > MaxArgv {
			return &Error{Kind: TooLong}
		}
	}
	return nil
}

// shorten keeps an error message readable.
func shorten(arg string) string {
	const most = 60
	if len(arg) > most {
		return arg[:most] + "…"
	}
	return arg
}
