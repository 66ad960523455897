// Package plan is what the starter of a box and its helper say to each other:
// everything that the helper is to do, decided and resolved before it starts.
//
// It owns the shape of a plan, its limits and its encoding. It leaves out what
// a good plan is (confine) and how it is carried out (inside). The helper is
// linked with it, so it imports the standard library only.
package plan

import (
	"bytes"
	"fmt"
	"io"
	"net/netip"
	"path"
	"slices"
	"strings"
)

// Version is the only version of a plan that this helper carries out: starter
// and helper are installed together.
const Version = 3

// Argument is the only argument of the helper.
const Argument = "box"

// WithinArgument begins the arguments of the helper when it starts the command of
// a box without a process namespace: those of LimitArgument follow, with 0 for no
// limit.
const WithinArgument = "within"

// ThroughArgument begins the arguments of the helper when it becomes bwrap at a
// terminal: the path and the arguments follow.
const ThroughArgument = "through"

// LimitArgument begins the arguments of the helper when it starts the command
// with limited memory: the limit, the path and the arguments follow.
const LimitArgument = "limit"

// Signals by which the first process of a full box is told, from outside, to stop
// all others of the box at once, and to let them go on. They are two of the
// realtime signals that nothing else uses (signal(7)).
const (
	StopSignal     = 40
	ContinueSignal = 41
)

// Names of the helper's thread, by which it shows outside how far it is (comm in
// proc_pid_comm(5)): that it listens for these signals, and that it has stopped all
// others.
const (
	ListensName = "vogt-box"
	StoppedName = "vogt-box-stop"
)

// MaxSize is the limit of each part of an encoded plan in bytes.
const MaxSize = 4 << 20

// MaxPorts is how many listeners a box can have, and MaxDirect how many ports at
// which hosts are reached directly.
const (
	MaxPorts  = 16
	MaxDirect = 64
)

// Level says by what means a box is held.
type Level string

// The levels, strongest first. A box never has less than the plan asks for.
const (
	Full Level = "full" // namespaces, mounts, Landlock, capabilities, seccomp
	// Bwrap is as full, and the system's bwrap has made the namespaces and mounts:
	// the helper looks at what it has made before it goes on.
	Bwrap   Level = "full (bwrap)"
	Reduced Level = "reduced" // no namespaces: Landlock, capabilities, seccomp
	// Seatbelt is the box of macOS. No helper makes it: the starter applies a
	// profile (package seatbelt).
	Seatbelt Level = "seatbelt"
)

// Whole reports whether a box has namespaces and a file tree of its own.
func (l Level) Whole() bool { return l == Full || l == Bwrap }

// Network says what of a network is in the box.
type Network string

// The networks.
const (
	Offline Network = "none"  // a loopback of its own, nothing else
	Proxied Network = "proxy" // as none, with ports that the starter serves
	Host    Network = "host"  // the machine's own network
)

// Sockets says which unix sockets there are in the box.
type Sockets string

// The sockets.
const (
	NoSockets  Sockets = "off" // only connected pairs
	OwnSockets Sockets = "own" // also those that are made in the box
)

// Root says what the file tree of a box is made of.
type Root string

// The roots.
const (
	Listed   Root = "listed" // only what is listed
	HostView Root = "host"   // everything, without what is hidden
)

// Plan is one box and the command in it. Paths are absolute, clean and free of
// symbolic links, as the starter found them.
type Plan struct {
	Version int
	Level   Level
	Root    Root
	Read    []string // what the root is made of, if it is listed
	Write   []string // what may be written as well
	Hidden  []string // files that are empty, folders that cannot be entered
	Links   []Link   // symbolic links that the listed root repeats
	Pinned  []string // folders that cannot be renamed, outermost first
	Guarded []string // what may be read and not written
	Home    string   // an empty folder at this place, unless it is listed
	Kept    string   // the folder that stands at Home and may be written, or empty
	Cache   string   // the folder that stands at .cache in Home and may be written, or empty
	Private string   // the folder for temporary files, where there can be no mount for them
	Network Network
	Ports   []int // of listeners on 127.0.0.1 in the box, which the starter serves
	// Addresses are those of listeners that are on another address of the loopback.
	Addresses map[int]string
	Direct    *Direct
	Trust     []byte // authorities for TLS, in the file TrustPath
	Sockets   Sockets
	Host      string // name of the machine in the box
	Dir       string
	Program   string // path of what is started
	File      File   // what it has to be; the zero value is anything
	Argv      []string
	Environ   []string
	Limits    Limits
	// Terminal says that standard input is a terminal of the starter's
	// session, in which the command stays.
	Terminal bool
	// Grouped says that the helper is in a control group of the box's own.
	Grouped bool
	// Starter is the process that starts the box, where the box has no process
	// namespace. No signal may reach it from within.
	Starter int
	// Outer are the starter's namespaces (inode numbers, by their names in
	// /proc/self/ns) and Same what has to stand at a path, where somebody else than
	// the helper puts the file tree together.
	Outer map[string]uint64
	Same  []Place
}

// Direct is a way for programs that know of no proxy: the network is the box's own, a
// resolver at 127.0.0.1:53 makes names into its addresses, and the ports are
// listened at on all of them. The starter serves both.
type Direct struct {
	Network string // such as 198.18.0.0/15
	Ports   []int
}

// Address is the box's own address in the network.
func (d *Direct) Address() (own netip.Addr, bits int, err error) {
	network, err := netip.ParsePrefix(d.Network)
	if err != nil || !network.Addr().Is4() || network != network.Masked() || network.Bits() < 8 || network.Bits() > 30 || network.Addr().IsLoopback() {
		return own, 0, fmt.Errorf("network %q of the box: want one of IPv4", d.Network)
	}
	return network.Addr().Next(), network.Bits(), nil
}

// TrustPath is where the authorities are that programs in the box are to trust, in
// PEM, if the plan has some.
const TrustPath = "/run/vogt/authorities.pem"

// MaxTrust is the limit of them in bytes.
const MaxTrust = 2 << 20

// What the helper hands to the starter, as the packet says that comes with it: a
// listener at 127.0.0.1 or one for Direct, each followed by the port, or the
// resolver's socket.
const (
	HandsListener = "listen "
	HandsDirect   = "direct "
	HandsNames    = "names"
)

// Place is a path of the box and the file that has to be there.
type Place struct {
	Path string
	File
}

// Closed are the parts of /proc that tell of the machine's memory and keys.
// Others are closed because only root can read them.
func Closed() []string {
	return []string{"keys", "key-users", "kallsyms", "timer_list", "sched_debug", "latency_stats"}
}

// Quiet are the parts of /proc that change the machine: nobody writes there.
func Quiet() []string {
	return []string{"sys", "irq", "bus", "fs", "sysrq-trigger", "acpi", "scsi", "driver"}
}

// Devices are the device files of a box, in /dev.
func Devices() []string { return []string{"null", "zero", "full", "random", "urandom", "tty"} }

// File is the identity of a file (stat(2)).
type File struct{ Device, Inode uint64 }

// Link is a symbolic link at Path to Target.
type Link struct{ Path, Target string }

// Limits bound what a box may use. Zero is no bound.
type Limits struct {
	Memory    int64 // bytes of address space a process
	Processes int64 // of this user on the machine
	Files     int64 // open at a time, a process
	FileSize  int64 // bytes
	CPU       int64 // seconds a process
	Temporary int64 // bytes in each of the private temporary folders
}

// Encode returns the plan as it goes to the helper.
func (p *Plan) Encode() ([]byte, error) {
	if err := p.helped(); err != nil {
		return nil, err
	}
	out := *p
	return frame(out.code)
}

// Decode reads a plan that Encode wrote, and nothing that follows it.
func Decode(r io.Reader) (*Plan, error) {
	var p Plan
	if err := unframe(r, p.code); err != nil {
		return nil, fmt.Errorf("the plan of the box is broken: %w", err)
	}
	return &p, p.helped()
}

// EncodeHidden returns further paths to be hidden, which follow the plan: the
// starter still looks for them while the box is put up. The helper needs them
// before the command starts, even if there are none.
func EncodeHidden(names []string) ([]byte, error) {
	if err := checkPaths(names); err != nil {
		return nil, err
	}
	return frame(func(c *coder) { c.texts(&names) })
}

// DecodeHidden reads what EncodeHidden wrote.
func DecodeHidden(r io.Reader) (names []string, err error) {
	if err := unframe(r, func(c *coder) { c.texts(&names) }); err != nil {
		return nil, fmt.Errorf("the second part of the plan of the box is broken: %w", err)
	}
	return names, checkPaths(names)
}

// Encode returns the report as it goes to the starter.
func (r *Report) Encode() ([]byte, error) {
	out := *r
	return frame(out.code)
}

// DecodeReport reads a report that Encode wrote.
func DecodeReport(data []byte) (r Report, err error) {
	if err := unframe(bytes.NewReader(data), r.code); err != nil {
		return Report{}, fmt.Errorf("the helper's report is broken: %w", err)
	}
	return r, nil
}

// code puts all of the report through a coder.
func (r *Report) code(c *coder) {
	c.text((*string)(&r.Level))
	c.integer(&r.Landlock)
	for _, text := range []*string{&r.Filter, &r.Error, &r.Remedy} {
		c.text(text)
	}
	c.truth(&r.Namespaces)
	c.truth(&r.Unseen)
	c.texts(&r.Lacks)
}

// code puts all of the plan through a coder.
func (p *Plan) code(c *coder) {
	c.integer(&p.Version)
	for _, text := range []*string{(*string)(&p.Level), (*string)(&p.Root), (*string)(&p.Network), (*string)(&p.Sockets),
		&p.Home, &p.Kept, &p.Cache, &p.Private, &p.Host, &p.Dir, &p.Program} {
		c.text(text)
	}
	for _, list := range []*[]string{&p.Read, &p.Write, &p.Hidden, &p.Pinned, &p.Guarded, &p.Argv, &p.Environ} {
		c.texts(list)
	}
	each(c, &p.Links, func(l *Link) { c.text(&l.Path); c.text(&l.Target) })
	each(c, &p.Ports, c.integer)
	c.word(&p.File.Device)
	c.word(&p.File.Inode)
	l := &p.Limits
	for _, n := range []*int64{&l.Memory, &l.Processes, &l.Files, &l.FileSize, &l.CPU, &l.Temporary} {
		c.number(n)
	}
	c.truth(&p.Terminal)
	c.truth(&p.Grouped)
	c.integer(&p.Starter)
	c.bytes(&p.Trust)
	table(c, &p.Addresses, c.integer, c.text)
	table(c, &p.Outer, c.text, c.word)
	each(c, &p.Same, func(at *Place) { c.text(&at.Path); c.word(&at.Device); c.word(&at.Inode) })
	// At most one.
	var direct []Direct
	if p.Direct != nil {
		direct = []Direct{*p.Direct}
	}
	each(c, &direct, func(d *Direct) { c.text(&d.Network); each(c, &d.Ports, c.integer) })
	if c.reading && len(direct) > 0 {
		p.Direct = &direct[len(direct)-1]
	}
}

// helped reports what a helper would not carry out.
func (p *Plan) helped() error {
	if p.Level == Seatbelt {
		return fmt.Errorf("level %s is not made by a helper", p.Level)
	}
	return p.Check()
}

// Check reports what is no plan.
func (p *Plan) Check() error {
	if p.Version != Version {
		return fmt.Errorf("the plan of the box is of version %d and the helper of %d: install vogt and vogt-confine together", p.Version, Version)
	}
	switch {
	case p.Level != Full && p.Level != Bwrap && p.Level != Reduced && p.Level != Seatbelt:
		return fmt.Errorf("level %q: want %s, %s, %s or %s", p.Level, Full, Bwrap, Reduced, Seatbelt)
	case p.Level == Bwrap && (len(p.Same) == 0 || len(p.Outer) == 0):
		return fmt.Errorf("the plan of the box does not say how to know what bwrap has made")
	case p.Level == Reduced && p.Starter <= 1:
		return fmt.Errorf("the plan of the box does not name its starter")
	case p.Root != Listed && p.Root != HostView:
		return fmt.Errorf("root %q: want %s or %s", p.Root, Listed, HostView)
	case p.Network != Offline && p.Network != Proxied && p.Network != Host:
		return fmt.Errorf("network %q: want %s, %s or %s", p.Network, Offline, Proxied, Host)
	case p.Sockets != NoSockets && p.Sockets != OwnSockets:
		return fmt.Errorf("sockets %q: want %s or %s", p.Sockets, NoSockets, OwnSockets)
	case p.Network == Proxied && (len(p.Ports) == 0 || len(p.Ports) > MaxPorts || slices.Min(p.Ports) < 1 || slices.Max(p.Ports) > 65535):
		return fmt.Errorf("the ports %v to be served: want 1 to %d numbers up to 65535", p.Ports, MaxPorts)
	case p.Network != Proxied && len(p.Ports) > 0:
		return fmt.Errorf("ports to be served are for the network %q, and it is %q", Proxied, p.Network)
	case p.Direct != nil && (p.Network != Proxied || p.Level != Full):
		return fmt.Errorf("hosts are reached directly in a box of the level %q with the network %q only", Full, Proxied)
	case p.Direct != nil && (len(p.Direct.Ports) == 0 || len(p.Direct.Ports) > MaxDirect || slices.Min(p.Direct.Ports) < 1 || slices.Max(p.Direct.Ports) > 65535):
		return fmt.Errorf("the ports %v of hosts that are reached directly: want 1 to %d numbers up to 65535", p.Direct.Ports, MaxDirect)
	case len(p.Trust) > MaxTrust:
		return fmt.Errorf("the authorities for TLS have %d bytes, the limit is %d", len(p.Trust), MaxTrust)
	case len(p.Trust) > 0 && !p.Level.Whole():
		return fmt.Errorf("a box of the level %q has no place for authorities of its own", p.Level)
	case p.Level == Reduced && p.Network == Proxied:
		return fmt.Errorf("a reduced box has no network of its own for a proxy")
	case p.Level == Reduced && p.Sockets != NoSockets:
		return fmt.Errorf("a reduced box cannot tell its own unix sockets from the machine's")
	case len(p.Argv) == 0 || p.Program == "":
		return fmt.Errorf("the plan of the box names no program")
	}
	if p.Direct != nil {
		if _, _, err := p.Direct.Address(); err != nil {
			return err
		}
	}
	for port, text := range p.Addresses {
		if a, err := netip.ParseAddr(text); err != nil || !a.IsLoopback() || a.Is4In6() || a.Zone() != "" || !slices.Contains(p.Ports, port) {
			return fmt.Errorf("address %q of port %d: want one of the loopback, and a port that is served", text, port)
		}
	}
	places := []string{p.Home, p.Dir, p.Program}
	for _, s := range p.Same {
		places = append(places, s.Path)
	}
	for _, name := range []string{p.Kept, p.Cache, p.Private} {
		if name != "" {
			places = append(places, name)
		}
	}
	for _, list := range [][]string{p.Read, p.Write, p.Hidden, p.Pinned, p.Guarded, places} {
		if err := checkPaths(list); err != nil {
			return err
		}
	}
	for _, text := range append(p.Argv[:len(p.Argv):len(p.Argv)], p.Environ...) {
		if strings.IndexByte(text, 0) >= 0 {
			return fmt.Errorf("an argument or variable of the box holds a NUL byte")
		}
	}
	for _, l := range p.Links {
		if l.Path == "" || l.Path[0] != '/' || path.Clean(l.Path) != l.Path || l.Target == "" {
			return fmt.Errorf("link %q of the box: want an absolute, clean path and a target", l.Path)
		}
	}
	return nil
}

// checkPaths reports what is no path of a plan.
func checkPaths(names []string) error {
	for _, name := range names {
		if name == "" || name[0] != '/' || path.Clean(name) != name || strings.IndexByte(name, 0) >= 0 {
			return fmt.Errorf("path %q of the box: want an absolute, clean one", name)
		}
	}
	return nil
}

// Report is what the helper says before it starts the command.
type Report struct {
	Level    Level
	Landlock int    // version of the kernel's interface (landlock(7)); 0 is none
	Filter   string // hash of the seccomp filter
	Error    string // why no command was started; empty if it was
	Remedy   string // what to do about it
	// Namespaces says that this machine does not give an ordinary user what a
	// full box is made of.
	Namespaces bool
	// Unseen says that the program, or what runs it, is not there in the box.
	Unseen bool `json:",omitempty"`
	// Lacks names what the plan asks for and this box does not hold.
	Lacks []string `json:",omitempty"`
}
