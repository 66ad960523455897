package flow

import (
	"slices"
	"strings"

	"vogt/internal/catalog"
	"vogt/internal/coverage"
	"vogt/internal/detail"
	"vogt/internal/grant"
	"vogt/internal/reading"
)

// Covered are the calls as coverage looks at them. What the text does beyond its
// calls, or what makes it doubtful, is one more, that nothing outside of a box
// covers.
func (r *Reading) Covered() []coverage.Call {
	out := make([]coverage.Call, 0, len(r.Calls)+1)
	rest, many := r.Effects, r.tooManyPaths()
	for i, c := range r.Calls {
		if i >= len(r.Details) {
			break
		}
		rest &^= c.Effects
		_, literal := c.Argv()
		if many {
			out = append(out, coverage.Call{Detail: r.Details[i], Effects: c.Effects, Unknown: true, Hosts: c.Hosts, Remote: c.Remote, Literal: literal, Cwd: c.Cwd, Redirected: c.Redirected})
			continue
		}
		call := r.led(coverage.Call{
			Detail: r.Details[i], Effects: c.Effects,
			Read: c.Paths.Reads, Write: append(c.Paths.Writes[:len(c.Paths.Writes):len(c.Paths.Writes)], c.Paths.Deletes...), Sinks: c.Paths.Sinks,
			Unknown: c.Paths.Unknown, Hosts: c.Hosts, Remote: c.Remote, Literal: literal, Cwd: c.Cwd, Elsewhere: r.elsewhere(i), First: i == 0, Carrier: carrier(r.Calls, i),
			Redirected: c.Redirected,
		})
		if c.Adrift {
			call.Otherwise = r.fallen(c, call)
		}
		out = append(out, call)
	}
	if !r.ParseOK || len(r.Problems) > 0 || rest != 0 || len(r.Calls) == 0 {
		out = append(out, coverage.Call{Detail: detail.Command{Program: "?", Operation: detail.GenericOperation, Risk: max(r.Risk, detail.High)}, Effects: rest | detail.Opaque})
	}
	return out
}

// follow looks at where programs were found, and at what links lead to as the reading has looked at their names.
func (r *Reading) follow(rd *reading.Reader, links map[string]string) {
	for _, c := range r.Calls {
		if !c.Adrift || c.Fell == "" {
			continue
		}
		for _, name := range append(c.Paths.Reads[:len(c.Paths.Reads):len(c.Paths.Reads)], c.Cwd) {
			if name = c.Fallen(name); rd.Classify(name).Credential {
				r.Credentials = with(r.Credentials, name, name)
			}
		}
	}
	for name, target := range links {
		if !strings.Contains(name, "/") {
			if !reading.System(target) {
				r.Elsewhere = with(r.Elsewhere, name, target)
			}
			continue
		}
		class := rd.Classify(target)
		if class.Sink != "" {
			r.Sinks = with(r.Sinks, name, target)
		}
		if class.Credential {
			r.Credentials = with(r.Credentials, name, target)
		}
	}
}

func with(m map[string]string, key, value string) map[string]string {
	if m == nil {
		m = make(map[string]string)
	}
	m[key] = value
	return m
}

// led adds what a call does behind links.
func (r *Reading) led(c coverage.Call) coverage.Call {
	if len(r.Sinks)+len(r.Credentials) == 0 {
		return c
	}
	for _, name := range c.Write {
		if target, ok := r.Sinks[name]; ok {
			c.Sinks = append(c.Sinks[:len(c.Sinks):len(c.Sinks)], target)
		}
	}
	for _, list := range [][]string{c.Read, c.Write, {c.Cwd}} {
		for _, name := range list {
			if _, ok := r.Credentials[name]; ok {
				c.Effects |= detail.Secrets
			}
		}
	}
	return c
}

// fallen is the call as it is if the change of folder before it fails.
func (r *Reading) fallen(c *reading.Call, call coverage.Call) *coverage.Call {
	other := call
	other.Cwd, other.Read, other.Write = c.Fell, nil, nil
	for _, name := range call.Read {
		other.Read = append(other.Read, c.Fallen(name))
	}
	for _, name := range call.Write {
		other.Write = append(other.Write, c.Fallen(name))
	}
	// What is written there is not classified.
	other.Unknown = other.Unknown || c.Fell == "" || len(other.Write) > 0
	other = r.led(other)
	return &other
}

// elsewhere reports whether a program was found outside of the system's folders.
// What the text itself says of where it lies, the reading knows.
func (r *Reading) elsewhere(i int) bool {
	if len(r.Calls[i].Words) == 0 {
		return false
	}
	name := ""
	if i > 0 {
		name = r.Calls[i].Words[0].Text
	}
	_, ok := r.Elsewhere[name]
	return ok
}

// MaxLinks is how many paths of a request are looked at for links. One with more
// is covered by nothing outside of a box, and its paths are compared with nothing:
// everybody waits while patterns are.
const MaxLinks = 256

// tooManyPaths reports whether a door may not have looked at all paths.
func (r *Reading) tooManyPaths() bool {
	n := 0
	for _, c := range r.Calls {
		n += len(c.Paths.Reads) + len(c.Paths.Writes) + len(c.Paths.Deletes) + 1
	}
	return n > MaxLinks
}

// carrier reports whether a call is one of the programs that only start others,
// or say where they run, and does nothing besides: what it starts is covered by
// itself, or not. Its paths are compared all the same.
func carrier(calls []*reading.Call, i int) bool {
	c := calls[i]
	switch c.Program {
	case "cd", "pushd", "popd", "true", "false", ":":
		return c.Effects == 0 && !c.Paths.Unknown && !c.Remote && len(c.Paths.Sinks) == 0
	case "sh", "bash", "dash", "env", "nice", "nohup", "timeout", "stdbuf", "setsid", "ionice", "time", "command", "builtin", "exec", "xargs":
	default:
		return false
	}
	// A login or interactive shell runs its start files first.
	switch c.Program {
	case "sh", "bash", "dash":
		if slices.ContainsFunc(c.Words, startsFiles) {
			return false
		}
	}
	if c.Effects != 0 || len(c.Paths.Reads)+len(c.Paths.Writes)+len(c.Paths.Deletes)+len(c.Paths.Sinks)+len(c.Hosts) > 0 || c.Paths.Unknown || c.Remote {
		return false
	}
	return i+1 < len(calls) && calls[i+1].Depth > c.Depth
}

// startsFiles reports whether a word of a shell may be an option with which it reads
// start files: -l, -i, alone or among others, and their long forms.
func startsFiles(w catalog.Word) bool {
	switch {
	case !strings.HasPrefix(w.Text, "-") && !strings.HasPrefix(w.Text, "+"):
		return false
	case strings.HasPrefix(w.Text, "--"):
		return strings.HasPrefix(w.Text, "--login") || strings.HasPrefix(w.Text, "--rcfile") || strings.HasPrefix(w.Text, "--init-file")
	}
	return strings.ContainsAny(w.Text, "li")
}

// WhereOf is where a request says that it would run. All of it is claimed: who
// asks could as well run it elsewhere without asking.
func WhereOf(req grant.Request) (w coverage.Where) {
	c := req.Context
	if c == nil {
		return w
	}
	w.Links = c.Links
	if c.File != nil && c.File.SHA256 != nil && c.File.Path != nil {
		w.File, w.FilePath = *c.File.SHA256, *c.File.Path
	}
	for _, f := range c.Interpreters {
		if f.Path == nil || !reading.System(*f.Path) {
			w.File = "" // what reads the file is not the system's
		}
	}
	if c.Confinement == nil || c.NetworkMode == nil {
		return w
	}
	if box, ok := grant.ParseConfinement(*c.Confinement); ok {
		w.Profile, w.Workspace, w.Offline = box.Profile, box.Workspace, *c.NetworkMode == grant.Offline
		w.Reaches = grant.ProxyHosts(*c.NetworkMode)
	}
	return w
}
