package differential

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// claim is what a reader says about a line.
type claim struct {
	ParseOK  bool
	Programs []string

	ReadOnly, Inert, Network, Writes, Destructive, Privilege, Executes, Opaque bool

	Reading  []string // paths that are read
	Writing  []string // paths that are written, created, changed or deleted
	Deleting []string
	Sinks    []string // those of them that execute or steer later
	More     bool     // further paths are touched, which are not known

	Panic string // the reader did not come to an end
}

// reader reads a line that starts in the folder cwd.
type reader func(line, cwd string) claim

// safely reads, and makes a claim of a panic.
func (read reader) safely(line, cwd string) (c claim) {
	defer func() {
		if p := recover(); p != nil {
			c = claim{Panic: fmt.Sprint(p)}
		}
	}()
	return read(line, cwd)
}

// complete tells whether everything that happens must have been claimed. Where
// the text is not understood, a reader does not say that it knows. Where
// content is executed that somebody else could have written, it answers only
// for what the text itself does: see answers.
func (c claim) complete() bool { return c.ParseOK && !c.Opaque }

// absolute is a claimed path as it is meant: relative to the project, or to HOME
// by a tilde.
func absolute(claimed string) string {
	switch {
	case claimed == "~" || strings.HasPrefix(claimed, "~/"):
		return path.Join(homeDir, claimed[1:])
	case !path.IsAbs(claimed):
		return path.Join(workDir, claimed)
	}
	return path.Clean(claimed)
}

// covers tells whether a claimed path is meant by a touched one: the same, a
// folder above it, or a pattern of the shell. A path with an expansion in it
// says by itself that it is not known.
func covers(claimed, touched string) bool {
	if strings.ContainsAny(claimed, "$`") {
		return true
	}
	if claimed == touched || claimed == "/" || strings.HasPrefix(touched, claimed+"/") {
		return true
	}
	if !strings.ContainsAny(claimed, "*?[{") {
		return false
	}
	want, got := strings.Split(claimed, "/"), strings.Split(touched, "/")
	for i, pattern := range want {
		if pattern == "**" || strings.ContainsAny(pattern, "{") {
			return true
		}
		if i >= len(got) {
			return false
		}
		if ok, err := path.Match(pattern, got[i]); err != nil || !ok {
			return false
		}
	}
	return true
}

// claims tells whether one of the paths covers the touched one. A folder that
// is made on the way to a claimed path is meant as well.
func claims(paths []string, touched string, made bool) bool {
	return slices.ContainsFunc(paths, func(claimed string) bool {
		claimed = absolute(claimed)
		return covers(claimed, touched) || made && covers(touched, claimed)
	})
}

// Where a line finds things. In a worker's namespaces /tmp is an empty file
// system of its own, and the only one that can be written to.
const (
	root       = "/tmp"
	workDir    = root + "/proj"    // the project, where lines start
	homeDir    = root + "/home"    // HOME
	binDir     = root + "/bin"     // the only folder in PATH
	plantedDir = root + "/planted" // programs that the project's git settings name
)
