package coverage

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"vogt/internal/detail"
	"vogt/internal/grant"
)

// Call is what coverage looks at of one call of a request.
type Call struct {
	Detail  detail.Detail
	Effects detail.Effects
	// Paths as far as they are known; those of Write include the ones of Delete.
	Read, Write []string
	Sinks       []string // files that execute or steer later
	Unknown     bool     // it touches paths that the text does not show
	Hosts       []string
	Remote      bool // it acts on another host or in a container
	Literal     bool // every word is known, so no other parser can read it otherwise
	Cwd         string
	// Otherwise is the call as it is if the change of folder before it fails; nil where
	// it cannot. Both have to be covered.
	Otherwise *Call
	// Elsewhere says that its program was found outside of the system's folders,
	// where the agent could have put it.
	Elsewhere bool
	// First says that it is the program that the request names, as it was bound.
	First bool
	// Carrier says that it does nothing but start calls that stand beside it, or
	// say where they run.
	Carrier bool
	// Redirected says that a redirection opens a file or a connection for it, which
	// its words do not show.
	Redirected bool
}

// Where is what a request says of its surroundings.
type Where struct {
	Profile   string // of the box, by name; empty without one
	Workspace string // of the box
	Offline   bool   // the box has no network
	// Reaches are the hosts that the box's proxy lets through, and no others;
	// empty if that is not known.
	Reaches []string
	// File is the SHA-256 of the program that the request names first, in hex, and
	// where it lies. It is empty if another than the system's program reads it.
	File, FilePath string
	// Labels are what the agent has seen and done before.
	Labels Labels
	// Links are paths that lead elsewhere on the machine that asks.
	Links map[string]string
}

// Covers reports whether the pattern covers a call, and if not, why.
func Covers(p *grant.Pattern, c *Call, w Where) (ok bool, why string) {
	if _, crossing := c.Detail.(detail.Crossing); crossing {
		return false, "it would run as another user, which is asked every time"
	}
	level := c.Detail.Level()
	if !level.Within(detail.High) {
		return false, "it is critical, which is asked every time"
	}
	if !level.Within(p.MaxRisk) {
		return false, fmt.Sprintf("its risk is %s, the pattern ends at %s", level, p.MaxRisk)
	}
	if why := named(p, c.Detail); why != "" && !c.Carrier {
		return false, why
	}
	if p.Box != nil {
		return inBox(p, c, w)
	}
	if ok, why = outside(p, c, w); !ok || c.Otherwise == nil || placeless(c) || c.Carrier && len(c.Read)+len(c.Write) == 0 {
		return ok, why
	}
	if ok, why = outside(p, c.Otherwise, w); !ok {
		why = "the cd before it may fail, and then: " + why + "; joined by && it could be covered"
	}
	return ok, why
}

// named compares program and operation.
func named(p *grant.Pattern, d detail.Detail) (why string) {
	if len(p.Programs)+len(p.Operations) == 0 {
		return ""
	}
	command, ok := d.(detail.Command)
	if !ok {
		return "it is no command, and the pattern is for some"
	}
	if len(p.Programs) > 0 && !slices.Contains(p.Programs, command.Program) {
		return fmt.Sprintf("the program is %s, the pattern is for %s", command.Program, strings.Join(p.Programs, ", "))
	}
	if len(p.Operations) == 0 {
		return ""
	}
	for _, op := range p.Operations {
		if below, ok := strings.CutPrefix(command.Operation, op); ok && (below == "" || below[0] == '.') {
			return ""
		}
	}
	return fmt.Sprintf("the operation is %s, the pattern is for %s", command.Operation, strings.Join(p.Operations, ", "))
}

// inBox leaves to the kernel what it holds: paths, programs of unknown effect
// and the network.
func inBox(p *grant.Pattern, c *Call, w Where) (bool, string) {
	switch {
	case w.Profile != p.Box.Profile:
		if w.Profile == "" {
			return false, fmt.Sprintf("it runs outside of a box, the pattern is for the box %s", p.Box.Profile)
		}
		return false, fmt.Sprintf("it runs in the box %s, the pattern is for the box %s", w.Profile, p.Box.Profile)
	case !w.Offline && len(p.Hosts) == 0:
		return false, "its box has a network, the pattern is for one without"
	case !w.Offline && !reaches(p.Hosts, w.Reaches):
		return false, "its box has another network than " + strings.Join(p.Hosts, ", ") + ", which the pattern is for"
	case !w.Offline && w.Labels.network() != "":
		return false, w.Labels.network()
	case p.Box.Workspace != "" && !Matches(p.Box.Workspace, w.Workspace):
		return false, fmt.Sprintf("its box is about %s, the pattern is for %s", w.Workspace, p.Box.Workspace)
	case slices.Contains(p.Does, grant.DeedAny):
		return true, ""
	case c.Effects.Has(detail.Opaque | detail.Executes | detail.Door | detail.Privileged):
		return false, "it may start anything (" + c.Effects.String() + "), which the pattern does not name"
	}
	return deeds(p, c)
}

// reaches reports whether the hosts of a box are among those of a pattern, and
// known.
func reaches(named, box []string) bool {
	return len(box) > 0 && !slices.ContainsFunc(box, func(h string) bool { return !slices.Contains(named, h) })
}

// outside trusts the text alone, and so only what the text shows.
func outside(p *grant.Pattern, c *Call, w Where) (bool, string) {
	if len(p.Files) > 0 {
		return content(p, c, w)
	}
	switch {
	case c.Effects.Has(detail.Opaque) || c.Unknown:
		return false, "what it does cannot be known from its text; in a box it could be covered"
	case !c.Literal:
		return false, "not every word of it is known before it runs; in a box it could be covered"
	case c.Effects.Has(detail.Executes) || c.Elsewhere:
		return false, "it runs what the agent could have written; in a box, or by its content, it could be covered"
	case c.Effects.Has(detail.Unsettled):
		return false, "it consults settings that can start a program; in the box read it could be covered"
	case c.Effects.Has(detail.Door | detail.Privileged):
		return false, "it opens further ways to act (" + c.Effects.String() + ")"
	case c.Effects.Has(detail.Secrets):
		return false, "it shows credentials or the environment"
	case c.Effects.Has(detail.Beyond):
		return false, "it touches or shows more than its text names; in a box it could be covered"
	case c.Remote:
		return false, "it acts on another host or in a container"
	case len(c.Sinks) > 0:
		return false, c.Sinks[0] + " is executed or steers something later, which is asked by itself"
	}
	if ok, why := deeds(p, c); !ok {
		return false, why
	}
	if c.Cwd == "" && !c.Carrier && !placeless(c) && !p.Unseen {
		return false, "its working folder is not known, and so nobody has looked where links lead"
	}
	readable := append(p.Read[:len(p.Read):len(p.Read)], p.Write...)
	look := within{links: w.Links, shallow: shallow(c.Detail)}
	for _, part := range []struct {
		paths, globs []string
		done         string
	}{
		{c.Read, readable, "would be read"}, {c.Write, p.Write, "would be written"},
	} {
		if why := look.misses(part.paths, part.globs, part.done); why != "" {
			return false, why
		}
	}
	// What names no path may mean the folder that it stands in.
	if len(c.Read)+len(c.Write) == 0 && !c.Carrier && !placeless(c) {
		if why := look.misses([]string{c.Cwd}, readable, "is the working folder"); why != "" {
			return false, why
		}
	}
	if !c.Effects.Has(detail.Contacts) && len(c.Hosts) == 0 {
		return true, ""
	}
	if why := w.Labels.network(); why != "" {
		return false, why
	}
	if len(c.Hosts) == 0 {
		return false, "it contacts hosts that its text does not name"
	}
	for _, h := range c.Hosts {
		if !slices.ContainsFunc(p.Hosts, func(glob string) bool { return hostMatches(glob, h) }) {
			return false, "it contacts " + h + ", which the pattern does not name"
		}
	}
	return true, ""
}

// content covers one program by what its file holds, whatever it does: its text
// does not tell that. Where it stands and that every word of it is known remain.
func content(p *grant.Pattern, c *Call, w Where) (bool, string) {
	switch {
	case !c.First:
		return false, "a pattern for files covers the program that the request names, and not what another one starts"
	case !c.Elsewhere:
		return false, "it is a program of the system, which is covered by what it does and not by its content"
	case !slices.Contains(p.Files, w.File):
		return false, "its file is not one that the pattern names by its SHA-256"
	case slices.Contains(w.Labels.Wrote, w.FilePath), slices.Contains(w.Labels.Wrote, WroteAll):
		return false, "the agent has written " + w.FilePath + "; in a box it could be covered"
	case c.Effects.Has(detail.Door | detail.Privileged):
		return false, "it opens further ways to act (" + c.Effects.String() + ")"
	case !c.Literal:
		return false, "not every word of it is known before it runs"
	case c.Cwd == "":
		return false, "its working folder is not known"
	}
	readable := append(p.Read[:len(p.Read):len(p.Read)], p.Write...)
	if why := (within{links: w.Links}).misses([]string{c.Cwd}, readable, "is the working folder"); why != "" {
		return false, why
	}
	return true, ""
}

// placeless reports whether a call without paths looks at no folder either.
func placeless(c *Call) bool {
	d, ok := c.Detail.(detail.Command)
	if !ok || len(c.Read)+len(c.Write) > 0 {
		return false
	}
	switch d.Program {
	case "date", "echo", "printf", "pwd", "which", "whoami":
		return true
	}
	return false
}

// deeds compares effects with what the pattern permits.
func deeds(p *grant.Pattern, c *Call) (bool, string) {
	for _, part := range []struct {
		effect detail.Effects
		deed   grant.Deed
		why    string
	}{
		{detail.Writes, grant.DeedWrite, "it writes, the pattern does not permit that"},
		{detail.Destroys, grant.DeedDelete, "it can lose data, the pattern does not permit that"},
		{detail.Contacts, grant.DeedConnect, "it contacts other hosts, the pattern does not permit that"},
	} {
		if c.Effects.Has(part.effect) && !slices.Contains(p.Does, part.deed) {
			return false, part.why
		}
	}
	return true, ""
}

// within compares paths with where they may lie.
type within struct {
	links map[string]string
	// shallow says that nothing below a path is touched.
	shallow bool
}

// misses says which path lies nowhere in the globs, or leads out of them.
func (w within) misses(paths, globs []string, done string) (why string) {
	for _, name := range paths {
		all := []string{name}
		if target, leads := w.links[name]; leads {
			all = append(all, target)
		}
		for _, name := range all {
			matches := func(glob string) bool { return Matches(glob, name) }
			deep := func(glob string) bool { return strings.HasSuffix(glob, "/**") && matches(glob) }
			switch {
			case slices.ContainsFunc(globs, deep), w.shallow && slices.ContainsFunc(globs, matches):
			case slices.ContainsFunc(globs, matches):
				return fmt.Sprintf("%s %s, perhaps with all below it; the pattern names files: end it in /** for that", name, done)
			default:
				return fmt.Sprintf("%s %s, which the pattern does not name", name, done)
			}
		}
	}
	return ""
}

// shallow reports whether the program never descends into folders, whatever its
// options are.
func shallow(d detail.Detail) bool {
	c, ok := d.(detail.Command)
	if !ok {
		return true
	}
	switch c.Program {
	case "basename", "cat", "cd", "cksum", "cmp", "cut", "dirname", "echo", "expand", "fold", "head", "mkdir", "md5sum", "nl", "od", "paste", "printf", "readlink",
		"realpath", "rev", "rmdir", "sha1sum", "sha256sum", "sha512sum", "shuf", "sort", "stat", "tac", "tail", "tee", "test", "touch", "truncate", "tr", "uniq", "wc", "xxd":
		return true
	}
	return false
}

// Matches reports whether a path lies within a pattern of paths: * stands for
// any characters of one name, a part ** for any number of folders, everything
// else for itself. A path that is not absolute and clean is within none. The
// path may hold patterns of a shell: they match only where the pattern takes
// anything.
func Matches(glob, name string) bool {
	if !strings.HasPrefix(glob, "/") || !strings.HasPrefix(name, "/") || path.Clean(name) != name || strings.Contains(name, "\x00") {
		return false
	}
	return parts(strings.Split(glob[1:], "/"), strings.Split(name[1:], "/"))
}

// parts compares the parts of a path. Of several ** only the last one seen has
// to give way, so the cost is the product of the lengths at most.
func parts(glob, name []string) bool {
	g, n := 0, 0
	star, from := -1, 0
	for n < len(name) {
		switch {
		case g < len(glob) && glob[g] == "**":
			star, from = g, n
			g++
		case g < len(glob) && part(glob[g], name[n]):
			g++
			n++
		case star >= 0:
			from++
			g, n = star+1, from
		default:
			return false
		}
	}
	for g < len(glob) && glob[g] == "**" { // a folder's pattern takes the folder itself
		g++
	}
	return g == len(glob)
}

// shellPattern holds what makes a name a pattern of a shell.
const shellPattern = "*?[]{}"

// part compares one name. Characters of a shell's pattern in it are equal to
// none; only a star takes them.
func part(glob, name string) bool {
	if name == "" {
		return glob == ""
	}
	first, rest, starred := strings.Cut(glob, "*")
	if strings.ContainsAny(name[:min(len(first), len(name))], shellPattern) || !strings.HasPrefix(name, first) {
		return false
	}
	name = name[len(first):]
	if !starred {
		return name == ""
	}
	for {
		next, after, more := strings.Cut(rest, "*")
		if !more {
			end := name[max(0, len(name)-len(next)):]
			return len(end) == len(next) && end == next && !strings.ContainsAny(end, shellPattern)
		}
		i := literalIndex(name, next)
		if i < 0 {
			return false
		}
		name, rest = name[i+len(next):], after
	}
}

// literalIndex finds next in name where name is literal.
func literalIndex(name, next string) int {
	for i := 0; i+len(next) <= len(name); i++ {
		if name[i:i+len(next)] == next && !strings.ContainsAny(next, shellPattern) {
			return i
		}
	}
	return -1
}

func hostMatches(glob, host string) bool {
	if suffix, below := strings.CutPrefix(glob, "*"); below {
		return strings.HasSuffix(host, suffix) && len(host) > len(suffix)
	}
	return glob == host
}

// Standing looks for standing grants that together cover every call. Each call
// takes the first that covers it; missing are the calls that none covers.
func Standing(calls []Call, w Where, candidates []*grant.Standing, now grant.Millis) (by []*grant.Standing, missing []int) {
	for i := range calls {
		at := slices.IndexFunc(candidates, func(s *grant.Standing) bool {
			if !s.Active(now) {
				return false
			}
			ok, _ := Covers(&s.Pattern, &calls[i], w)
			return ok
		})
		switch {
		case at < 0:
			missing = append(missing, i)
		case !slices.Contains(by, candidates[at]):
			by = append(by, candidates[at])
		}
	}
	return by, missing
}
