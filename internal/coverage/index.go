package coverage

import (
	"path"
	"slices"
	"strings"

	"vogt/internal/detail"
	"vogt/internal/grant"
)

// Index finds among many standing grants the few that may cover a call, so that
// a request costs the same beside two thousand of them as beside two. It leaves
// out only what [Covers] would refuse; what it finds still has to be judged. It
// does not change once it is made, and any number of goroutines may ask it.
type Index struct {
	all      []*grant.Standing
	programs map[string][]int32 // by each program; "" has those for any
	folders  map[string][]int32 // by the part of each path's pattern before its first star
	boxes    map[string][]int32 // those for a box, by its profile
	anywhere []int32            // those that do not ask what is read and written
}

// NewIndex indexes standing grants, whose order is the one in which they are
// tried. The patterns must not change afterwards.
func NewIndex(all []*grant.Standing) *Index {
	x := &Index{
		all: all, programs: make(map[string][]int32), folders: make(map[string][]int32), boxes: make(map[string][]int32),
	}
	for at, s := range all {
		p, at := &s.Pattern, int32(at)
		for _, program := range p.Programs {
			x.programs[program] = add(x.programs[program], at)
		}
		if len(p.Programs) == 0 {
			x.programs[""] = append(x.programs[""], at)
		}
		switch {
		case p.Box != nil:
			x.boxes[p.Box.Profile] = append(x.boxes[p.Box.Profile], at)
		case len(p.Read)+len(p.Write) == 0 || len(p.Files) > 0:
			x.anywhere = append(x.anywhere, at)
		}
		if p.Box != nil || len(p.Files) > 0 {
			continue
		}
		for _, globs := range [][]string{p.Read, p.Write} {
			for _, glob := range globs {
				folder := literalFolder(glob)
				x.folders[folder] = add(x.folders[folder], at)
			}
		}
	}
	return x
}

// add appends to a list that grows in order, once.
func add(list []int32, at int32) []int32 {
	if n := len(list); n > 0 && list[n-1] == at {
		return list
	}
	return append(list, at)
}

// literalFolder is the part of a pattern of paths that every path within it
// begins with, in whole names.
func literalFolder(glob string) string {
	star := strings.IndexByte(glob, '*')
	if star < 0 {
		return glob
	}
	return folderOf(glob[:star])
}

// folderOf cuts the last name of a path off: "/" for "/a".
func folderOf(name string) string {
	return name[:max(1, strings.LastIndexByte(name, '/'))]
}

// All are the standing grants that were indexed, in their order.
func (x *Index) All() []*grant.Standing { return x.all }

// For returns those that may cover one of the calls, in the order in which they
// are tried.
func (x *Index) For(calls []Call, w Where) []*grant.Standing {
	var found []int32
	for i := range calls {
		lists := x.lists(&calls[i], w)
		if lists == nil {
			return x.all
		}
		for _, list := range lists {
			found = append(found, list...)
		}
	}
	slices.Sort(found)
	found = slices.Compact(found)
	out := make([]*grant.Standing, len(found))
	for i, at := range found {
		out[i] = x.all[at]
	}
	return out
}

// lists has all that may cover a call in it, nil for everything. There are two
// ways to find them, and the shorter one is taken: by the program that a
// pattern must name, and by a path that must lie within one of its own.
func (x *Index) lists(c *Call, w Where) [][]int32 {
	var named [][]int32
	// What only starts other calls is covered by patterns for any program.
	if !c.Carrier {
		named = [][]int32{x.programs[""]}
		if command, ok := c.Detail.(detail.Command); ok && command.Program != "" {
			named = append(named, x.programs[command.Program])
		}
	}
	name := somePath(c)
	if !strings.HasPrefix(name, "/") || path.Clean(name) != name || placeless(c) {
		return named
	}
	placed := [][]int32{x.anywhere, x.boxes[w.Profile], x.folders[name]}
	for name != "/" {
		name = folderOf(name)
		placed = append(placed, x.folders[name])
	}
	if named != nil && total(named) <= total(placed) {
		return named
	}
	return placed
}

// somePath is a path that a pattern outside of a box must name to cover the
// call, "" where there is none.
func somePath(c *Call) string {
	switch {
	case len(c.Read) > 0:
		return c.Read[0]
	case len(c.Write) > 0:
		return c.Write[0]
	case c.Carrier:
		return ""
	}
	return c.Cwd
}

func total(lists [][]int32) (n int) {
	for _, list := range lists {
		n += len(list)
	}
	return n
}
