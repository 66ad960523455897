// Package catalog says what programs mean: which words are options, which
// take a value, and what is read, written, deleted, contacted or started.
//
// It owns the format of entries (docs/catalog.md), the entries that Vogt
// brings, the frame that reads a call's words against an entry, and the tables
// of files, variables and hosts that matter wherever they occur. It leaves out
// text (reading) and permission (coverage). It opens no file but its own,
// which are part of the program.
package catalog

import (
	"embed"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
)

//go:embed all:data
var data embed.FS

// Catalog finds entries by program. It is safe for concurrent use. An entry
// is read when a call first needs it.
type Catalog struct {
	mu    sync.RWMutex
	found map[string]*Entry // nil for a name that nobody knows
	added map[string]*Entry
	// withheld are names of which nothing is known, whatever name they are a
	// variant of.
	withheld map[string]bool

	tables tables
}

// New returns the catalog that Vogt brings.
func New() *Catalog {
	return &Catalog{found: map[string]*Entry{}}
}

// Add adds an entry of the owner of this machine. It is read whole. An entry
// that Vogt brings is never changed.
func (c *Catalog) Add(source, name, text string) error {
	if _, err := builtin(name); err == nil {
		return fmt.Errorf("%s: %s is in Vogt's own catalog, which no file changes", source, name)
	}
	e, err := Parse(source, name, text, true)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.added == nil {
		c.added = map[string]*Entry{}
	}
	c.added[name] = e
	c.found = map[string]*Entry{}
	return nil
}

// Withhold makes a program unknown, for want of an entry of the owner's that
// could be read: what the name would mean without that entry may be less than
// the owner wrote. A program that Vogt brings an entry for keeps it.
func (c *Catalog) Withhold(name string) {
	if _, err := builtin(name); err == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.withheld == nil {
		c.withheld = map[string]bool{}
	}
	c.withheld[name] = true
	c.found = map[string]*Entry{}
}

// Alias is the name that an entry of the owner's means by `same-as`, or empty.
func (c *Catalog) Alias(name string) string {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if e := c.added[name]; e != nil {
		return e.SameAs
	}
	return ""
}

// fileName is the entry's file for programs whose names are none.
func fileName(program string) string {
	switch program {
	case "[":
		return "test"
	case ".":
		return "source"
	case ":":
		return "true"
	}
	return program
}

func builtin(name string) (string, error) {
	name = fileName(name)
	if name == "" || strings.ContainsAny(name, "/\\:*?\"<>|") || name[0] == '.' || !fs.ValidPath(name) {
		return "", fs.ErrNotExist
	}
	b, err := data.ReadFile("data/" + name)
	return string(b), err
}

// Entry returns what is known of a program by its base name, or nil. Names of
// Windows programs may end in .exe and be written in any case; interpreters
// and compilers may have their version at the end.
func (c *Catalog) Entry(program string) *Entry {
	c.mu.RLock()
	e, ok := c.found[program]
	c.mu.RUnlock()
	if ok {
		return e
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok = c.found[program]; ok {
		return e
	}
	e = c.lookup(program, 0)
	if len(c.found) < maxFound && len(program) <= maxName { // names come from outside
		c.found[strings.Clone(program)] = e
	}
	return e
}

const (
	maxFound = 4096
	maxName  = 64
)

func (c *Catalog) lookup(program string, depth int) *Entry {
	if depth > 3 || c.withheld[program] {
		return nil
	}
	e := c.named(program)
	if e == nil {
		if len(program) > 4 && strings.EqualFold(program[len(program)-4:], ".exe") {
			return c.lookup(strings.ToLower(program[:len(program)-4]), depth+1)
		}
		base := strings.TrimRight(program, "0123456789.")
		version := program[len(base):]
		if version == "" || version[0] == '.' || version[len(version)-1] == '.' {
			return nil
		}
		if base = strings.TrimSuffix(base, "-"); base == "" {
			return nil
		}
		if i := strings.LastIndexByte(program, '.'); i > 0 && base == "python" && strings.HasPrefix(program, "python3.") {
			base += "3" // python3.12
		}
		if c.withheld[base] {
			return nil
		}
		if e = c.named(base); e != nil && e.SameAs != "" {
			e = c.lookup(base, depth+1)
		}
		if e == nil || !e.traits.versioned {
			return nil
		}
		return e
	}
	if e.SameAs != "" {
		return c.lookup(e.SameAs, depth+1)
	}
	return e
}

func (c *Catalog) named(name string) *Entry {
	if e := c.added[name]; e != nil {
		return e
	}
	text, err := builtin(name)
	if err != nil {
		return nil
	}
	e, err := Parse("catalog/"+fileName(name), fileName(name), text, false)
	if err != nil {
		return nil // tests hold every entry to the format; what is broken is unknown
	}
	return e
}

// Names lists the programs of the catalog, sorted.
func (c *Catalog) Names() []string {
	c.mu.RLock()
	defer c.mu.RUnlock()
	entries, err := data.ReadDir("data")
	if err != nil {
		return nil
	}
	names := make([]string, 0, len(entries)+len(c.added))
	for _, e := range entries {
		names = append(names, e.Name())
	}
	for name := range c.added {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Source returns the text of an entry that Vogt brings.
func Source(name string) (string, bool) {
	text, err := builtin(name)
	return text, err == nil
}

// Replace puts an entry in the place of the one of the same name, for testing
// a changed entry.
func (c *Catalog) Replace(e *Entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.found = map[string]*Entry{e.Name: e}
}
