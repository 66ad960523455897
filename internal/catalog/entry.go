package catalog

import (
	"slices"
	"strings"
	"sync"

	"vogt/internal/detail"
)

// Role is what a word means to a program.
type Role uint8

// The roles. The zero value is no role, which no entry can name.
const (
	NoRole Role = iota
	Text
	Read
	Write
	Delete
	Empty
	Device
	Chdir
	URL
	Host
	RemoteRead
	RemoteWrite
	Repository
	Command       // this word and all after it are a command
	Shell         // shell text
	RemoteCommand // as Command, on another host or in a container
	RemoteShell   // as Shell, on another host or in a container
	Program       // a program that is started with words of its own
	Split         // text that is split into words of a command
	Assign        // NAME=value before a command
	Script        // a file that is run
	Config        // a file that can start programs
	Plugin        // a file that is code
	File          // a path inside the word; Arg says where, one of Attachments
	Code          // a program text; Arg names the language
	Setting       // KEY=value; Arg names the group of settings
	Thing         // a named thing that is no path; Arg names its kind
	List          // only of standard input: words of a command, as for xargs
)

var roleNames = [...]string{
	Text: "text", Read: "read", Write: "write", Delete: "delete", Empty: "empty", Device: "device", Chdir: "chdir",
	URL: "url", Host: "host", RemoteRead: "remote-read", RemoteWrite: "remote-write", Repository: "repository",
	Command: "command", Shell: "shell", RemoteCommand: "remote-command", RemoteShell: "remote-shell",
	Program: "program", Split: "split", Assign: "assign", Script: "script", Config: "config", Plugin: "plugin",
	File: "file", Code: "code", Setting: "setting", Thing: "@", List: "list",
}

// Attachments returns the ways in which a word of the role File holds a path.
func Attachments() []string {
	return []string{"at", "name-at", "form", "assign", "pair", "item", "url", "cookie", "volume", "mount"}
}

// String returns the role's name in the format.
func (r Role) String() string {
	if int(r) < len(roleNames) && roleNames[r] != "" {
		return roleNames[r]
	}
	return "role?"
}

// Effects is what a role means by itself. What a command or a shell text does
// is known only after it has been read.
func (r Role) Effects() detail.Effects {
	switch r {
	case Write:
		return detail.Writes
	case Delete, Empty, Device:
		return detail.Writes | detail.Destroys
	case URL, Host:
		return detail.Contacts
	case RemoteRead, Repository:
		return 0 // contacts only when the word names a host
	case RemoteWrite:
		return detail.Writes
	case Script, Plugin, Config:
		return detail.Executes
	case Program, Code, Setting, Split, File:
		return 0 // by what it holds
	}
	return 0
}

// starts reports whether the role names something that runs.
func (r Role) starts() bool {
	switch r {
	case Command, Shell, RemoteCommand, RemoteShell, Program, Split, Script, Config, Plugin, Code, Setting:
		return true
	}
	return false
}

// roleSpec is a role with its argument: a language, a group, a way or a kind.
type roleSpec struct {
	role Role
	arg  string
}

// valueMode says where an option's value stands.
type valueMode uint8

const (
	noValue        valueMode = iota
	requiredValue            // in the same word or the next
	attachedValue            // only in the same word
	untilSemicolon           // all words up to ";" or "+"
	onlySemicolon            // all words up to ";"
	restValue                // all words that are left
)

// option is one option with all its spellings.
type option struct {
	names   []string
	line    int
	mode    valueMode
	values  []roleSpec // one, or two for an option that takes two words
	ends    bool       // every later word is an operand
	clauses []clause
}

// clause is a set of effects that holds for some values.
type clause struct {
	effects     detail.Effects
	risk        detail.Risk
	stdin       roleSpec
	neutral     bool
	only        []string // values for which it holds; nil: all
	except      []string // values for which it does not
	conditional bool
}

// form is one meaning of a call.
type form struct {
	name     string
	line     int
	terms    []term
	clause   clause
	operands []operandSpec
}

type operandSpec struct {
	roleSpec
	optional bool
	repeated bool
}

type termKind uint8

const (
	hasOption termKind = iota
	lacksOption
	operandCount
	operandIs
	optionIs
)

type term struct {
	kind   termKind
	names  []string // options, or values for operandIs
	values []string // values for optionIs
	low    int      // operandCount: the least; operandIs: which one, from 1
	high   int      // operandCount: the most, -1 for any number
}

// traits are how a program reads its words.
type traits struct {
	known         bool
	long          bool // --long
	singleDash    bool // -long is one option
	eitherDash    bool // --x is -x
	combined      bool // -abc
	abbreviations bool
	anywhere      bool // options after operands
	dashdash      bool
	anyCase       bool
	slash         bool // /X
	colon         bool // -Name:value
	firstCluster  bool
	shortEquals   bool // -o=value
	dashStdout    bool // "-" as a file that is written is standard output
	shortCommands bool
	versioned     bool // the version may stand at the end of the name
	allOptions    bool // the entry knows every option of the program
	operandsOnly  bool
	explicitOrder bool // anywhere or stop was said
}

// section is one subcommand, or the program itself under the empty path.
type section struct {
	path     string
	like     []string
	traits   traits
	options  map[string]*option
	families []*option // -f*, -#, if=
	forms    []form
	undashed bool // an option or family does not begin with a dash

	scopes     []*section // where its options come from, nearest first
	scopesOnce sync.Once

	text string // what is not yet read
	line int    // of the first line of text
	once sync.Once
	err  error
}

// stops reports whether the first operand ends the options because a command
// may begin there.
func (s *section) stops() bool {
	if !s.traits.anywhere {
		return true
	}
	if s.traits.explicitOrder {
		return false
	}
	for i := range s.forms {
		for _, o := range s.forms[i].operands {
			switch o.role {
			case Command, RemoteCommand, Assign:
				return true
			case Shell, RemoteShell:
				if o.repeated {
					return true
				}
			}
		}
	}
	return false
}

// Entry is what the catalog knows of one program.
type Entry struct {
	Name     string
	About    string
	SameAs   string
	Origin   string   // what it was made from: a format and a digest
	Source   string   // where the entry stands
	Neutral  []string // words after the program's name that make a neutral call inert
	Settle   []string // NAME=value to be set for the same
	traits   traits
	root     *section
	commands map[string]*section
	shared   map[string]*section // options for all commands below a path; "" for all
	settings map[string][]setting
	examples []Example
	frames   sync.Pool // of *frame, to be used again
}

// setting is one key of a group of settings.
type setting struct {
	pattern string // lower case
	value   roleSpec
	clause  clause
}

// Example is a line of a test in an entry.
type Example struct {
	Line int
	Text string
	Want []string // sorted effect words
}

// Examples returns the entry's tests.
func (e *Entry) Examples() []Example { return e.examples }

// Language is a language of a program text that an entry names, and where.
type Language struct {
	Line int
	Name string
}

// Languages returns what the entry's roles `code:LANGUAGE` name, in the order of
// the lines. The entry was read whole.
func (e *Entry) Languages() []Language {
	var out []Language
	add := func(line int, r roleSpec) {
		if r.role == Code {
			out = append(out, Language{line, r.arg})
		}
	}
	for _, s := range e.sections() {
		for _, o := range s.allOptions() {
			for _, v := range o.values {
				add(o.line, v)
			}
			for _, c := range o.clauses {
				add(o.line, c.stdin)
			}
		}
		for _, f := range s.forms {
			add(f.line, f.clause.stdin)
			for _, o := range f.operands {
				add(f.line, o.roleSpec)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b Language) int { return a.Line - b.Line })
	return slices.Compact(out)
}

// Commands returns the paths of the entry's subcommands, unordered.
func (e *Entry) Commands() []string {
	out := make([]string, 0, len(e.commands))
	for path, s := range e.commands {
		if path == s.path {
			out = append(out, path)
		}
	}
	return out
}

// scopes returns the sections whose options hold at s, nearest first.
func (e *Entry) scopes(s *section) []*section {
	s.scopesOnce.Do(func() { s.scopes = e.findScopes(s) })
	return s.scopes
}

func (e *Entry) findScopes(s *section) []*section {
	out := make([]*section, 0, 4)
	out = append(out, s)
	for _, path := range s.like {
		if other := e.commands[path]; other != nil && other != s {
			e.load(other)
			out = append(out, other)
		}
	}
	if s == e.root {
		return out
	}
	for path := s.path; path != ""; {
		path = path[:max(strings.LastIndexByte(path, ' '), 0)]
		if shared := e.shared[path]; shared != nil {
			e.load(shared)
			out = append(out, shared)
		}
	}
	return out
}

// load reads a section's text once.
func (e *Entry) load(s *section) {
	s.once.Do(func() {
		p := parser{source: e.Source, entry: e}
		s.err = p.section(s)
		s.text = ""
	})
}

// forms returns the forms that count at s.
func (e *Entry) formsOf(s *section) []form {
	if len(s.forms) > 0 {
		return s.forms
	}
	for _, path := range s.like {
		if other := e.commands[path]; other != nil && other != s {
			e.load(other)
			if len(other.forms) > 0 {
				return other.forms
			}
		}
	}
	return nil
}

// Setting says what a key of a group of settings means: the role of its value
// and effects. Keys are compared without regard to case.
func (e *Entry) Setting(group, key, value string) (known bool, role Role, arg string, effects detail.Effects, risk detail.Risk) {
	key = strings.ToLower(key)
	for i := range e.settings[group] {
		s := &e.settings[group][i]
		if segment(s.pattern, key) {
			if s.clause.conditional && !s.clause.holdsFor(value) {
				return true, s.value.role, s.value.arg, 0, detail.Unrated
			}
			return true, s.value.role, s.value.arg, s.clause.effects, s.clause.risk
		}
	}
	return false, NoRole, "", 0, detail.Unrated
}
