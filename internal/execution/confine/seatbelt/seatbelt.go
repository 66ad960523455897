// Package seatbelt writes the plan of a box as a profile of Seatbelt, the sandbox
// of macOS, in its language SBPL.
//
// It owns the text of the profile and the parameters that go with it. It leaves
// out what a good plan is (confine) and how the profile is applied (confine, on
// macOS). It is a function of the plan, so that the same profile is written and
// tested on every system. No profile was ever tried: what is said of Seatbelt
// here was read in the profiles of macOS and of other sandboxes.
package seatbelt

import (
	_ "embed"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"vogt/internal/execution/confine/plan"
)

// The limits of a profile. Text and parameters are arguments of sandbox-exec, and
// macOS takes 1 MiB of arguments and variables together.
const (
	maxPath  = 1024 // PATH_MAX
	maxPaths = 2000 // of the plan
	maxSize  = 512 << 10
)

// Try is a program that every profile lets start, so that a profile can be tried
// before the command.
const Try = "/usr/bin/touch"

// base is what every profile begins with. It names no path of a plan.
//
//go:embed base.sb
var base string

// Profile returns the profile of a plan of level Seatbelt, and its parameters as
// KEY=VALUE. Paths are in the parameters only, so that none can say anything in
// the text. Later rules win over earlier ones, and the rules of one operation
// over those of its family: what takes away comes last, and under every name
// under which something was given.
func Profile(p *plan.Plan) (text string, params []string, err error) {
	if err := p.Check(); err != nil {
		return "", nil, err
	}
	if p.Level != plan.Seatbelt {
		return "", nil, fmt.Errorf("a plan of level %s is no plan for Seatbelt", p.Level)
	}
	w := &writer{size: len(base), used: map[string]int{}}
	s := newScene(p)
	w.text.WriteString(base)
	w.files(p, s)
	w.terminal(p)
	w.network(p, s)
	w.takeAway(s)
	if w.err == nil && w.size > maxSize {
		w.err = fmt.Errorf("the profile of the box has %d bytes, the limit is %d: list fewer paths", w.size, maxSize)
	}
	if w.err != nil {
		return "", nil, w.err
	}
	return w.text.String(), w.params, nil
}

// Arguments are those with which sandbox-exec starts a program under a profile.
// It knows a program by its path only, which becomes the program's name.
func Arguments(text string, params []string, program string, rest ...string) []string {
	out := []string{"-p", text}
	for _, p := range params {
		out = append(out, "-D", p)
	}
	return append(append(out, "--", program), rest...)
}

// scene is the plan's paths, in the spelling that the kernel compares.
type scene struct {
	read, write, hidden, guarded []string
	passed                       []string // folders on the way to the others, which are looked at and not listed
	pinned                       []string // what cannot be renamed or removed
}

func newScene(p *plan.Plan) scene {
	s := scene{read: canonical(p.Read), hidden: canonical(p.Hidden), guarded: canonical(p.Guarded)}
	for _, l := range p.Links {
		// A link at the top stands for what it leads to: /etc for /private/etc.
		if name := spelled(l.Path); name != l.Path {
			s.read = append(s.read, name)
		} else {
			s.passed = append(s.passed, name)
		}
	}
	write := slices.Clone(p.Write)
	for _, name := range []string{p.Cache, p.Private} {
		if name != "" {
			write = append(write, name)
		}
	}
	s.write = canonical(write)
	s.read = sorted(s.read)
	for _, name := range slices.Concat(s.read, s.write, []string{spelled(p.Dir), spelled(p.Home), spelled(p.Program)}) {
		s.passed = append(s.passed, above(name)...)
	}
	s.passed = sorted(append(s.passed, spelled(p.Home)))
	// A folder that is renamed takes what is in it out of reach of the rules,
	// which go by path: from the writable folder down to what is taken away, none
	// can be. What was pinned for mounts is among them.
	s.pinned = append(slices.Clone(s.write), canonical(p.Pinned)...)
	for _, name := range slices.Concat(s.guarded, s.hidden) {
		for _, dir := range above(name) {
			if within(dir, s.write) {
				s.pinned = append(s.pinned, dir)
			}
		}
	}
	s.pinned = sorted(s.pinned)
	return s
}

// canonical are paths in the kernel's spelling, sorted.
func canonical(list []string) []string {
	out := make([]string, 0, len(list))
	for _, name := range list {
		out = append(out, spelled(name))
	}
	return sorted(out)
}

// spelled is a path as the kernel spells it: /tmp, /var and /etc are links to
// folders of /private.
func spelled(name string) string {
	for _, top := range []string{"/etc", "/tmp", "/var"} {
		if name == top || strings.HasPrefix(name, top+"/") {
			return "/private" + name
		}
	}
	return name
}

func sorted(list []string) []string {
	slices.Sort(list)
	return slices.Compact(list)
}

// above are the folders that a path lies in, without the top.
func above(name string) []string {
	var out []string
	for dir := path.Dir(name); len(dir) > 1; dir = path.Dir(dir) {
		out = append(out, dir)
	}
	return out
}

// within reports whether a path is in a list, or lies in a folder of it.
func within(name string, list []string) bool {
	return slices.ContainsFunc(list, func(folder string) bool {
		return name == folder || folder == "/" || strings.HasPrefix(name, folder+"/")
	})
}

// writer writes a profile. Its first error stays.
type writer struct {
	text   strings.Builder
	params []string
	used   map[string]int // by the beginning of a key
	size   int
	err    error
}

// say writes a line of the profile.
func (w *writer) say(format string, values ...any) {
	line := fmt.Sprintf(format, values...)
	w.size += len(line) + 1
	w.text.WriteString(line + "\n")
}

// rule writes a rule, unless it would have no filter: a rule without one holds
// for everything.
func (w *writer) rule(what string, filters ...string) {
	if len(filters) > 0 {
		w.say("(%s\n  %s)", what, strings.Join(filters, "\n  "))
	}
}

// param makes a value a parameter and returns the expression for it.
func (w *writer) param(prefix string, value string) string {
	switch {
	case w.err != nil:
	case !utf8.ValidString(value) || strings.ContainsFunc(value, unicode.IsControl):
		w.err = fmt.Errorf("path %q of the box: want one in UTF-8 without control characters, Seatbelt cannot be trusted with others", value)
	case len(w.params) >= 4*maxPaths:
		w.err = fmt.Errorf("the box has more than %d paths: list fewer", maxPaths)
	}
	key := prefix + strconv.Itoa(w.used[prefix])
	w.used[prefix]++
	w.params = append(w.params, key+"="+value)
	w.size += len(key) + len(value) + 5
	return `(param "` + key + `")`
}

// paths makes paths parameters and returns a filter of each.
func (w *writer) paths(kind, prefix string, list []string) []string {
	if len(list) > maxPaths && w.err == nil {
		w.err = fmt.Errorf("the box has more than %d paths of a kind: list fewer", maxPaths)
	}
	if w.err != nil {
		return nil
	}
	var out []string
	for _, name := range list {
		if len(name) > maxPath && w.err == nil {
			w.err = fmt.Errorf("path %.60q… of the box has more than %d bytes", name, maxPath)
		}
		out = append(out, "("+kind+" "+w.param(prefix, name)+")")
	}
	return out
}

// files writes what can be read, started and written.
func (w *writer) files(p *plan.Plan, s scene) {
	w.say("\n; What can be read and started.")
	if p.Root == plan.HostView {
		w.say("; Devices are those above: terminals of the machine could be listened to.")
		w.rule("allow file-read* file-map-executable process-exec*", `(require-all (subpath "/") (require-not (subpath "/dev")))`)
		w.rule("allow file-read*", `(literal "/dev")`)
	} else {
		w.rule("allow file-read* file-map-executable process-exec*", w.paths("subpath", "READ", s.read)...)
		w.say("\n; The folders on the way: they can be looked at and not listed.")
		w.rule("allow file-read-metadata", w.paths("literal", "WAY", s.passed)...)
	}
	write := w.paths("subpath", "WRITE", s.write)
	w.say("\n; What can be written.")
	w.rule("allow file-read* file-map-executable process-exec* file-write*", write...)
}

// terminal writes what a command at a terminal needs besides.
func (w *writer) terminal(p *plan.Plan) {
	if !p.Terminal {
		return
	}
	w.say(`
; The terminal that the command stays at. It is open already, so that no terminal
; of the machine has to be opened by name. Seatbelt does not see which ioctl is
; made: the command can type into this one terminal (TIOCSTI).
(allow file-read* file-write* file-ioctl (literal "/dev/tty"))
(allow file-ioctl file-read-metadata (regex #"^/dev/ttys[0-9]+$"))`)
}

// network writes what can be reached.
func (w *writer) network(p *plan.Plan, s scene) {
	w.say("\n; Network: %s.\n(deny network*)", p.Network)
	switch p.Network {
	case plan.Offline:
	case plan.Proxied:
		for _, port := range p.Ports {
			w.say(`(allow network-outbound (remote tcp "localhost:%d"))`, port)
		}
	case plan.Host:
		w.say("(allow network*)")
		w.say(hostNetwork)
	}
	w.say("\n; Unix sockets: %s. A rule about a file does not keep from connecting to it.", p.Sockets)
	w.say("(deny network-bind network-inbound (local unix-socket))\n(deny network-outbound (remote unix-socket))")
	if p.Sockets == plan.OwnSockets {
		var here, there []string
		for _, filter := range w.paths("subpath", "SOCKET", s.write) {
			here = append(here, "(local unix-socket "+filter+")")
			there = append(there, "(remote unix-socket "+filter+")")
		}
		w.rule("allow network-bind network-inbound", here...)
		w.rule("allow network-outbound", there...)
		var none []string
		for _, filter := range w.paths("subpath", "UNSEEN", s.hidden) {
			none = append(none, "(remote unix-socket "+filter+")")
		}
		w.rule("deny network-outbound", none...)
	}
	if p.Network == plan.Host {
		w.say("; The resolver of names has a socket: the network is open, so that names give\n; nothing away that the network does not.")
		w.say(`(allow network-outbound (remote unix-socket (literal "/private/var/run/mDNSResponder")))`)
	}
}

// hostNetwork is what programs need on the machine's network.
const hostNetwork = `; trustd.agent: TLS of Go and of macOS checks certificates there, and it fetches
; what it misses, which carries data out; so it is there with an open network only.
; configd: the settings of the network.
(allow mach-lookup
  (global-name "com.apple.trustd.agent")
  (global-name "com.apple.SystemConfiguration.configd"))
; Routes and interfaces.
(allow system-socket (socket-domain AF_ROUTE))`

// takeAway writes what the rules before gave and is not to be had.
func (w *writer) takeAway(s scene) {
	w.say("\n; Hidden: neither read, started nor written, by any name of the operation.")
	w.rule("deny file-read* file-read-metadata file-map-executable process-exec* file-write*",
		slices.Concat(w.paths("literal", "HIDE", s.hidden), w.paths("subpath", "HIDDEN", s.hidden), w.patterns("HIDDENLIKE", "(/|$)", s.hidden, nil))...)
	w.say("\n; Protected: read and not written, whether they are there or not.")
	w.rule("deny file-write*",
		slices.Concat(w.paths("literal", "GUARD", s.guarded), w.paths("subpath", "GUARDED", s.guarded), w.patterns("GUARDEDLIKE", "(/|$)", s.guarded, s.write))...)
	w.say("\n; What git runs or obeys in every repository, also in one that is made in the box.")
	w.say("(deny file-write*\n  (regex #\"%s\"))", nested())
	w.say("\n; Folders with something of these in them: they are not renamed or removed.")
	w.rule("deny file-write-unlink", slices.Concat(w.paths("literal", "PIN", s.pinned), w.patterns("PINLIKE", "$", s.pinned, s.write))...)
	w.say("%s", last)
}

// last is what no rule before may have given.
const last = `
; Services that act for whoever asks: the resolver of names, which carries data
; out; Apple Events and Launch Services, which start and steer programs that are
; in no box; the clipboard; the keychain.
(deny mach-lookup
  (global-name "com.apple.mDNSResponder")
  (global-name "com.apple.dnssd.service")
  (global-name-prefix "com.apple.coreservices.")
  (global-name "com.apple.CoreServices.coreservicesd")
  (global-name-prefix "com.apple.lsd.")
  (global-name-prefix "com.apple.pasteboard.")
  (global-name "com.apple.SecurityServer")
  (global-name "com.apple.securityd.xpc"))
(deny appleevent-send)
(deny lsopen)
(deny job-creation)
; Tracing, and the memory of other processes.
(deny mach-priv-task-port)
; Devices.
(deny iokit-open)`

// patterns are filters for paths in every spelling that a file system takes for
// them, as those of macOS ignore case. end is how a pattern ends; below are the
// folders in which somebody may make a name.
func (w *writer) patterns(prefix, end string, list, below []string) []string {
	if w.err != nil {
		return nil
	}
	var out []string
	for _, name := range list {
		plain := len(name)
		for _, folder := range below {
			if strings.HasPrefix(name, folder+"/") {
				plain = min(plain, len(folder))
			}
		}
		out = append(out, "(regex "+w.param(prefix, "^"+alike(name, plain)+end)+")")
	}
	return out
}

// gitNames are what git runs or obeys in a repository.
var gitNames = [...]string{"hooks", "config", "config.worktree", "commondir", "info/attributes"}

// nested matches those in every folder .git.
func nested() string {
	var names []string
	for _, name := range gitNames {
		names = append(names, alike(name, 0))
	}
	return "/" + alike(".git", 0) + "/(" + strings.Join(names, "|") + ")(/|$)"
}

// alike is a pattern for a path in every spelling that a file system of macOS
// takes for the same: of other case, and of another form of Unicode. What is
// after the first plain bytes may not exist yet, so that any spelling of it can
// be made: the kelvin sign is a k there, the long s an s, and a ligature two
// letters. In the place of such letters anything matches that is not of ASCII. As
// nothing is given by patterns, too much is denied at worst.
func alike(name string, plain int) string {
	name = name[:plain] + strings.NewReplacer("\u212a", "k", "\u017f", "s", "\u037e", ";", "\u1fef", "`", "\u00df", "ss", "\u1e9e", "ss",
		"\ufb00", "ff", "\ufb01", "fi", "\ufb02", "fl", "\ufb03", "ffi", "\ufb04", "ffl", "\ufb05", "st", "\ufb06", "st").Replace(name[plain:])
	var out strings.Builder
	for i := 0; i < len(name); {
		end := i
		for end < len(name) && loose(name, end, plain) {
			end++
		}
		switch part := name[i:end]; {
		case part == "":
			out.WriteString(folded(name[i]))
			i++
			continue
		case strings.ContainsFunc(part, func(r rune) bool { return r >= utf8.RuneSelf }):
			out.WriteString(other)
		default:
			out.WriteByte('(')
			for _, c := range []byte(part) {
				out.WriteString(folded(c))
			}
			out.WriteString("|" + other + ")")
		}
		i = end
	}
	return out.String()
}

// other matches part of a name that is not all of ASCII.
const other = "[^/]*[^ -~][^/]*"

// folded is a pattern for a character of ASCII in both cases.
func folded(c byte) string {
	switch {
	case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
		return "[" + string(c|0x20) + string(c&^0x20) + "]"
	case c == '.':
		return "[.]"
	case c >= '0' && c <= '9', strings.IndexByte("/_-=@,:;~%#&!'<>` ", c) >= 0:
		return string(c)
	}
	return "[^/]" // a pattern could understand it
}

// loose reports whether a byte of a path may be spelled with others than those
// of ASCII.
func loose(name string, i, plain int) bool {
	at := func(i int) byte {
		if i < 0 || i >= len(name) {
			return 0
		}
		c := name[i]
		if c >= 'A' && c <= 'Z' {
			c |= 0x20
		}
		return c
	}
	c, before, after := at(i), at(i-1), at(i+1)
	switch {
	case c == '/':
		return false
	case c >= utf8.RuneSelf, after >= utf8.RuneSelf: // and what an accent follows
		return true
	case i < plain:
		return false
	}
	const ligatures = "fil"
	return c == 'k' || c == 's' || c == 't' && before == 's' || c == ';' || c == '`' ||
		c == 'f' && strings.IndexByte(ligatures, after) >= 0 || before == 'f' && strings.IndexByte(ligatures, c) >= 0
}
