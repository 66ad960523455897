package grant

import (
	"errors"
	"fmt"
	"path"
	"reflect"
	"slices"
	"strings"

	"vogt/internal/detail"
)

// Class is a ready pattern for a kind of work. The zero value is none: a pattern
// that its author put together.
type Class string

// The classes. A pattern that names one is exactly that class for its agent,
// folders and hosts, so that the name on a list says all of it.
const (
	// ClassSafe is the safe commands: what looks around in the agent's folders and
	// in the documentation of the system. Agents get it with their enrolment.
	ClassSafe Class = "safe"
	// ClassInspect reads repositories and builds, in the box read.
	ClassInspect Class = "inspect"
	// ClassBox is anything at all in a box about a folder, without a network: to
	// build and to test there.
	ClassBox Class = "box"
	// ClassEdit changes files in folders, but for those that run or steer later.
	ClassEdit Class = "edit"
	// ClassInstall is anything in a box about a folder whose only network is the
	// hosts named, such as a mirror of packages.
	ClassInstall Class = "install"
)

// Classes lists them in the order in which they are offered.
func Classes() []Class { return []Class{ClassSafe, ClassInspect, ClassBox, ClassEdit, ClassInstall} }

// SafeCommands are the fourteen that show what is, and change nothing.
func SafeCommands() []string {
	return []string{"cat", "date", "echo", "file", "find", "grep", "head", "ls", "pwd", "stat", "tail", "wc", "which", "whoami"}
}

// documentation is what belongs to the system and is meant to be read.
func documentation() []string {
	return []string{"/usr/share/doc/**", "/usr/share/info/**", "/usr/share/man/**"}
}

// NewClass is the pattern of a class for an agent (an address, "*" or
// "group:NAME") in folders (absolute, without patterns) and, for ClassInstall, with
// hosts. ClassSafe does without folders: it is then about what names no path, and
// documentation.
func NewClass(class Class, agent string, folders, hosts []string) (Pattern, error) {
	p, err := fill(class, agent, folders, hosts)
	if err != nil {
		return p, err
	}
	return p.Complete()
}

// fill is what a class consists of, not yet in its one form.
func fill(class Class, agent string, folders, hosts []string) (Pattern, error) {
	p := Pattern{Agent: agent, Class: class}
	var below []string
	for _, folder := range folders {
		if folder = path.Clean(folder); folder == "/" || strings.Contains(folder, "*") {
			return p, fmt.Errorf("the folder %q: want one folder, and not the whole machine", folder)
		}
		below = append(below, path.Join(folder, "**"))
	}
	one := func() error {
		if len(below) != 1 {
			return fmt.Errorf("the class %s is about one folder", class)
		}
		return nil
	}
	var err error
	switch class {
	case ClassSafe:
		p.Programs, p.Read, p.MaxRisk = SafeCommands(), append(below, documentation()...), detail.Medium
	case ClassInspect:
		p.Programs, p.Box = []string{"git", "hg", "svn", "go", "cargo", "npm", "pip", "make"}, &Box{Profile: "read"}
		if len(below) > 0 {
			return p, fmt.Errorf("the class %s is about no folder: the box read shows what the agent may see", class)
		}
	case ClassBox, ClassInstall:
		if err = one(); err == nil {
			p.Does, p.Box = []Deed{DeedAny}, &Box{Profile: "default", Workspace: below[0]}
		}
		if class == ClassInstall {
			p.Hosts = hosts
			if len(hosts) == 0 {
				err = errors.New("the class install is about hosts: name the mirror")
			}
		}
	case ClassEdit:
		p.Does, p.Write = []Deed{DeedWrite}, below
	default:
		err = fmt.Errorf("class %q: want one of %s; a pattern of your own names programs, operations and folders instead", class, join(Classes()))
	}
	if err == nil && class != ClassInstall && len(hosts) > 0 {
		err = fmt.Errorf("the class %s is about no hosts", class)
	}
	return p, err
}

func join[T ~string](list []T) string {
	var b strings.Builder
	for i, v := range list {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(string(v))
	}
	return b.String()
}

// Folders are those that a pattern of a class is about.
func (p Pattern) Folders() []string {
	out := []string{}
	globs := append(p.Read[:len(p.Read):len(p.Read)], p.Write...)
	if p.Box != nil && p.Box.Workspace != "" {
		globs = append(globs, p.Box.Workspace)
	}
	for _, glob := range globs {
		if folder, below := strings.CutSuffix(glob, "/**"); below && !slices.Contains(documentation(), glob) {
			out = append(out, folder)
		}
	}
	return out
}

// checkClass reports whether p is what its class says. Machine and limits are free.
func (p Pattern) checkClass() error {
	if p.Class == "" {
		return nil
	}
	want, err := fill(p.Class, p.Agent, p.Folders(), p.Hosts)
	if err != nil {
		return err
	}
	want.Machine, want.Limits = p.Machine, p.Limits
	if !reflect.DeepEqual(p, want.tidy()) {
		return fmt.Errorf("class %s: the pattern holds something else; leave the class out", p.Class)
	}
	return nil
}
