package detail

import "strings"

// Effects is a set of what running something may do. The zero value is an
// inert read: the sets of several calls are joined with |.
type Effects uint16

// The effects.
const (
	// Writes: files, metadata, packages, a repository, a database or remote
	// state are created or changed.
	Writes Effects = 1 << iota
	// Destroys: data or running work can be lost without an ordinary undo.
	Destroys
	// Contacts: another host is contacted or listened for.
	Contacts
	// Privileged: higher rights are used or given.
	Privileged
	// Executes: content runs that the caller could have written.
	Executes
	// Opaque: what happens cannot be known from the text.
	Opaque
	// Unsettled: something is consulted that can start a program, such as a
	// repository's configuration, so that a read is not inert.
	Unsettled
	// Door: a further way to act is opened, such as a shell or another agent.
	Door
	// Secrets: credentials or the environment are shown.
	Secrets
	// Beyond: it touches or shows more than the text names: the files of a list,
	// what links below a folder lead to, files whose names it makes itself, hosts
	// that it is sent on to. It makes nothing riskier to allow once; whoever goes
	// by the paths and hosts of the text must not.
	Beyond
)

var effectNames = []struct {
	effect Effects
	name   string
}{
	{Writes, "writes"}, {Destroys, "destructive"}, {Contacts, "network"}, {Privileged, "privilege"},
	{Executes, "executes"}, {Opaque, "opaque"}, {Unsettled, "unsettled"}, {Door, "door"}, {Secrets, "secrets"}, {Beyond, "beyond"},
}

// Has reports whether e holds any of the others.
func (e Effects) Has(others Effects) bool { return e&others != 0 }

// ReadOnly reports whether the text shows that nothing is changed, started or
// contacted, and no way to do so is opened.
func (e Effects) ReadOnly() bool {
	return !e.Has(Writes | Destroys | Contacts | Privileged | Executes | Opaque | Door)
}

// Inert reports whether e is read-only and nothing that is consulted could
// start a program.
func (e Effects) Inert() bool { return e.ReadOnly() && !e.Has(Unsettled) }

// String names the effects for logs and tests.
func (e Effects) String() string {
	var names []string
	for _, n := range effectNames {
		if e.Has(n.effect) {
			names = append(names, n.name)
		}
	}
	if names == nil {
		return "none"
	}
	return strings.Join(names, " ")
}
