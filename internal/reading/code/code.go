// Package code reads program text in languages other than the shell, as far as
// it is literal: which commands it would start, which files it would read,
// write, empty or delete, whom it would contact. It owns the scanners of those
// languages.
//
// It leaves out the shell itself (what a text hands to a shell is returned as
// text, for the caller to read), the options of the programs that run these
// languages, and any verdict. Nothing is executed, opened or evaluated.
//
// Two kinds of languages are kept apart. Small languages (sed, awk, SQL, jq and
// the like) can be read completely, and a Finding says so. In languages for
// general use a harmless look proves nothing: there a Finding is never
// complete, and what it reports is caution.
package code

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// MaxText is the length in bytes of the longest text that is read. A longer
// one is unknown as a whole.
const MaxText = 64 << 10

// Hole stands for each part of a text that is not known. A text that a program
// hands to a shell has holes where it is put together from what only the run
// decides. The text that is read may have holes too; paths, hosts and argument
// lists that hold one are not literal and are left out.
const Hole = '\uE000'

// Finding is what a text would do, as far as its literal parts show. The zero
// Finding is "unknown": nothing was seen and nothing is proven.
type Finding struct {
	// Shell has the texts that it hands to a shell, in order of occurrence. At
	// least the beginning of each is literal; Hole stands for each open part.
	Shell []string
	Argv  [][]string // literal argument lists that it starts without a shell

	Reads   []string // literal paths that it reads
	Writes  []string // literal paths that it creates or changes
	Deletes []string // literal paths that it deletes
	Empties []string // literal paths that it empties without writing anything new
	Hosts   []string // literal hosts or URLs that it contacts or listens on

	// Effects that were seen, with or without a literal path or host.
	Write, Destroy, Network, Privilege bool

	// Starts: it starts something of which not even the beginning is literal, in a
	// shell or without.
	Starts bool

	// Complete: the fields above are all that the text does besides computing
	// and printing. Otherwise it may do anything else too.
	Complete bool
}

// Lang is a language that Read can read. The zero Lang is none.
type Lang uint8

// The languages. SQL stands for any dialect and is complete only where the
// dialects agree; Postgres has the backslash commands of psql, MySQL those of
// the mysql client, SQLite the dot commands of sqlite3. Ed is the script of ed
// or red; Vim holds Ex commands as after vim -c and in ex scripts. Tcl stands for
// expect too.
const (
	_ Lang = iota
	Sed
	Awk
	Python
	Perl
	Ruby
	Node
	PHP
	Lua
	SQL
	Postgres
	MySQL
	SQLite
	Mongo
	Redis
	Ed
	Vim
	Gdb
	Jq
	Yq
	Bc
	Dc
	AppleScript
	Elisp
	Tcl
	R
	Julia
	Elixir
	langs
)

// names are the lower-case names of the languages, in the order of the
// constants.
var names = [langs]string{
	"", "sed", "awk", "python", "perl", "ruby", "node", "php", "lua", "sql", "postgres", "mysql", "sqlite",
	"mongo", "redis", "ed", "vim", "gdb", "jq", "yq", "bc", "dc",
	"applescript", "elisp", "tcl", "r", "julia", "elixir",
}

// String gives the lower-case name, "unknown" for a value that is no language.
func (l Lang) String() string {
	if l == 0 || l >= langs {
		return "unknown"
	}
	return names[l]
}

// General reports whether the language can do anything that a program can, so
// that no finding is complete.
func (l Lang) General() bool {
	switch l {
	case Python, Perl, Ruby, Node, PHP, Lua, AppleScript, Elisp, Tcl, R, Julia, Elixir:
		return true
	}
	return false
}

// Pure reports whether no text of the language does anything but compute and
// print: jq has no way to write, start or contact.
func (l Lang) Pure() bool { return l == Jq }

// ParseLang gives the language of a lower-case name.
func ParseLang(name string) (Lang, bool) {
	if name == "" {
		return 0, false
	}
	i := slices.Index(names[:], name)
	return Lang(max(i, 0)), i > 0
}

// Read reads a text. It never panics and needs time linear in the length of
// the text. A text that is longer than MaxText, that is not valid UTF-8 or that
// holds a NUL byte gives the zero Finding.
func Read(lang Lang, text string) Finding {
	return read(lang, text, 0)
}

// maxNest is how deep a text may be held in a string of another one.
const maxNest = 4

func read(lang Lang, text string, nest int) Finding {
	var f Finding
	if len(text) > MaxText || nest > maxNest || !utf8.ValidString(text) || strings.IndexByte(text, 0) >= 0 {
		return f
	}
	switch lang {
	case Sed:
		f.Complete = readSed(&f, text)
	case Awk:
		f.Complete = readAwk(&f, text)
	case SQL, Postgres, MySQL, SQLite:
		f.Complete = readSQL(&f, lang, text, nest)
	case Mongo:
		f.Complete = readMongo(&f, text)
	case Redis:
		f.Complete = readRedis(&f, text)
	case Ed:
		f.Complete = readEd(&f, text)
	case Vim:
		f.Complete = readVim(&f, text, nest)
	case Gdb:
		f.Complete = readGdb(&f, text, nest)
	case Jq:
		f.Complete = readJq(text)
	case Yq:
		f.Complete = readYq(&f, text)
	case Bc:
		f.Complete = readBc(text)
	case Dc:
		f.Complete = readDc(&f, text)
	case Python:
		readPython(&f, text, nest)
	case Perl:
		readPerl(&f, text, nest)
	case Ruby:
		readRuby(&f, text, nest)
	case Node:
		readNode(&f, text, nest)
	case PHP:
		readPHP(&f, text, nest)
	case Lua:
		readLua(&f, text, nest)
	case AppleScript:
		readAppleScript(&f, text, nest)
	case Elisp:
		readElisp(&f, text, nest)
	case Tcl:
		readTcl(&f, text, nest)
	case R:
		readR(&f, text, nest)
	case Julia:
		readJulia(&f, text, nest)
	case Elixir:
		readElixir(&f, text, nest)
	}
	f.closed()
	f.Complete = f.Complete && !f.Starts && !slices.ContainsFunc(f.Shell, open)
	return f
}

// open reports whether a text has holes.
func open(text string) bool { return strings.ContainsRune(text, Hole) }

// shell records text for a shell. One that begins with a hole says nothing:
// anything may be started.
func (f *Finding) shell(text string) {
	if strings.HasPrefix(strings.TrimLeft(text, " \t\n"), string(Hole)) {
		f.Starts = true
		return
	}
	f.Shell = append(f.Shell, text)
}

// closed drops what is not literal since the text that was read has holes: of
// those only the effects are known.
func (f *Finding) closed() {
	for _, list := range [...]*[]string{&f.Reads, &f.Writes, &f.Deletes, &f.Empties, &f.Hosts} {
		if slices.ContainsFunc(*list, open) {
			f.Complete = false
			if *list = slices.DeleteFunc(*list, open); len(*list) == 0 {
				*list = nil
			}
		}
	}
	hollow := func(words []string) bool { return slices.ContainsFunc(words, open) }
	if slices.ContainsFunc(f.Argv, hollow) {
		f.Starts = true
		if f.Argv = slices.DeleteFunc(f.Argv, hollow); len(f.Argv) == 0 {
			f.Argv = nil
		}
	}
}

// partly records text for a shell of which not all is known.
func (f *Finding) partly(text string) {
	if strings.TrimSpace(text) == "" {
		f.Starts = true
		return
	}
	f.shell(text)
}

// argv records an argument list; an empty one starts nothing that is known.
func (f *Finding) argv(list []string) {
	if len(list) == 0 {
		f.Starts = true
		return
	}
	f.Argv = append(f.Argv, list)
}

// reads records a path that is read, when it is literal.
func (f *Finding) reads(path string, literal bool) {
	if literal && !standard(path) {
		f.Reads = append(f.Reads, path)
	}
}

// writes records a path that is created or changed.
func (f *Finding) writes(path string, literal bool) {
	if literal && standard(path) {
		return
	}
	f.Write = true
	if literal {
		f.Writes = append(f.Writes, path)
	}
}

// deletes records a path that is deleted.
func (f *Finding) deletes(path string, literal bool) {
	f.Write, f.Destroy = true, true
	if literal {
		f.Deletes = append(f.Deletes, path)
	}
}

// empties records a path that is truncated to nothing.
func (f *Finding) empties(path string, literal bool) {
	f.Write, f.Destroy = true, true
	if literal {
		f.Empties = append(f.Empties, path)
	}
}

// contacts records a host or URL.
func (f *Finding) contacts(host string, literal bool) {
	f.Network = true
	if literal && host != "" {
		f.Hosts = append(f.Hosts, host)
	}
}

// merge adds what another finding saw, except whether it was complete.
func (f *Finding) merge(g Finding) {
	f.Shell = append(f.Shell, g.Shell...)
	f.Argv = append(f.Argv, g.Argv...)
	f.Reads = append(f.Reads, g.Reads...)
	f.Writes = append(f.Writes, g.Writes...)
	f.Deletes = append(f.Deletes, g.Deletes...)
	f.Empties = append(f.Empties, g.Empties...)
	f.Hosts = append(f.Hosts, g.Hosts...)
	f.Write = f.Write || g.Write
	f.Destroy = f.Destroy || g.Destroy
	f.Network = f.Network || g.Network
	f.Privilege = f.Privilege || g.Privilege
	f.Starts = f.Starts || g.Starts
}

// standard reports whether a path names a stream that is open already or the
// null device.
func standard(path string) bool {
	switch path {
	case "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/null", "/dev/tty", "/dev/fd/0", "/dev/fd/1", "/dev/fd/2":
		return true
	}
	return false
}

// isURL reports whether a string looks like a URL of a network scheme.
func isURL(s string) bool {
	scheme, rest, found := strings.Cut(s, "://")
	if !found || rest == "" || scheme == "" {
		return false
	}
	switch strings.ToLower(scheme) {
	case "file", "data", "php", "zip", "phar", "glob":
		return false
	}
	for i := 0; i < len(scheme); i++ {
		if !isWord(scheme[i]) && scheme[i] != '+' && scheme[i] != '.' && scheme[i] != '-' {
			return false
		}
	}
	return true
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

// isWord reports whether a byte can be inside of a name. Bytes above ASCII
// count: where they occur they belong to names or to data.
func isWord(c byte) bool { return isLetter(c) || isDigit(c) || c == '_' || c >= utf8.RuneSelf }

func isBlank(c byte) bool { return c == ' ' || c == '\t' }

func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }
