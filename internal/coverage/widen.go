package coverage

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"vogt/internal/detail"
	"vogt/internal/grant"
)

// Widening is a wider detail that a person could choose in the place of one that is
// asked for.
type Widening struct {
	Scope  string // exact, sibling-type, directory or subtree, as on the wire
	Label  string // in English
	Detail detail.Command
}

// Wire is the detail as it stands on the wire. In one that is wider the stars of
// paths are patterns, while those of an exact one are names and escaped.
func (w Widening) Wire() detail.Wire {
	out := w.Detail.Wire(w.Label)
	if w.Scope == "exact" {
		return out
	}
	out.Chain = append(out.Chain[:1:1], w.Detail.Chain...)
	out.Permission = out.CanonicalPermission()
	return out
}

// Widenings are what a command's detail could be widened to, the exact one first. Only
// folders are widened, never to the root or a folder directly below it.
func Widenings(d detail.Command) []Widening {
	out := []Widening{{"exact", "exactly this", d}}
	type scope struct {
		name string
		glob func(folder, file string) string
	}
	for _, s := range []scope{
		{"sibling-type", func(folder, file string) string {
			if ext := path.Ext(file); ext != "" && ext != file {
				return folder + "/*" + ext
			}
			return ""
		}},
		{"directory", func(folder, _ string) string { return folder + "/*" }},
		{"subtree", func(folder, _ string) string { return folder + "/**" }},
	} {
		chain, globs := make([]detail.Resource, 0, len(d.Chain)), []string{}
		for _, r := range d.Chain {
			name := r.Selector["path"]
			if r.Name != "read" && r.Name != "write" || name == "" {
				chain = append(chain, r)
				continue
			}
			glob := ""
			if folder := path.Dir(name); path.IsAbs(name) && strings.Count(folder, "/") > 1 && !strings.ContainsAny(name, shellPattern) {
				glob = s.glob(folder, path.Base(name))
			}
			if glob == "" {
				globs = nil
				break
			}
			globs = append(globs, glob)
			chain = append(chain, detail.Resource{Name: r.Name, Selector: map[string]string{"path": glob}})
		}
		if len(globs) == 0 {
			continue
		}
		wider := d
		wider.Chain, wider.Argv = unique(chain), nil
		does := "read"
		if d.Action == detail.ActionWrite {
			does = "read and write"
		}
		slices.Sort(globs)
		out = append(out, Widening{s.name, fmt.Sprintf("%s: %s %s", d.Program, does, strings.Join(slices.Compact(globs), ", ")), wider})
	}
	return out
}

// unique drops links that stand there before.
func unique(chain []detail.Resource) (out []detail.Resource) {
	for _, r := range chain {
		if !slices.ContainsFunc(out, func(o detail.Resource) bool { return o.Name == r.Name && maps.Equal(o.Selector, r.Selector) }) {
			out = append(out, r)
		}
	}
	return out
}

// Widened is the pattern that a detail stands for, as a person has chosen it: the
// program, its operation, and the paths of its links. What a pattern cannot say is an
// error. Who may use it, where and up to which risk, is the caller's to add.
func Widened(w detail.Wire) (p grant.Pattern, err error) {
	p.Programs = []string{w.CLI}
	if w.Operation != "" && w.Operation != detail.GenericOperation {
		p.Operations = []string{w.Operation}
	}
	p.Does = []grant.Deed{grant.DeedRead}
	for _, r := range w.Chain {
		name := r.Selector["path"]
		switch {
		case r.Name == "cli" && maps.Equal(r.Selector, map[string]string{"name": w.CLI}):
		case len(r.Selector) != 1 || name == "" || slices.Contains(strings.Split(name, "/"), ".."):
			return p, fmt.Errorf("%s of %s: a pattern names paths, and nothing else of what a command works on", r.Name, w.CLI)
		case r.Name == "read" && w.Action != "delete", r.Name == "filesystem" && w.Action == "read":
			p.Read = append(p.Read, name)
		case r.Name == "write" && w.Action == "write":
			p.Write, p.Does = append(p.Write, name), []grant.Deed{grant.DeedRead, grant.DeedWrite}
		default:
			return p, fmt.Errorf("%s of %s: a pattern cannot permit %s there", r.Name, w.CLI, w.Action)
		}
	}
	if len(p.Read)+len(p.Write) == 0 {
		return p, errors.New(w.CLI + " would be permitted anywhere: name a folder")
	}
	return p, nil
}

// Similar lists the details of a request that an earlier one has almost permitted:
// the same program and action on links of the same kinds, of which one differs.
func Similar(asked, permitted []detail.Detail) (indices []int) {
	for i, a := range asked {
		a, ok := a.(detail.Command)
		if !ok {
			continue
		}
		if slices.ContainsFunc(permitted, func(d detail.Detail) bool {
			c, ok := d.(detail.Command)
			return ok && alike(a, c) && !sameChain(a.Chain, c.Chain)
		}) {
			indices = append(indices, i)
		}
	}
	return indices
}

func alike(a, b detail.Command) bool {
	return a.Program == b.Program && a.Action == b.Action && a.Operation == b.Operation && a.Chain != nil && b.Chain != nil &&
		slices.EqualFunc(a.Chain, b.Chain, func(x, y detail.Resource) bool { return x.Name == y.Name })
}

func sameChain(a, b []detail.Resource) bool {
	return slices.EqualFunc(a, b, func(x, y detail.Resource) bool { return x.Name == y.Name && maps.Equal(x.Selector, y.Selector) })
}
