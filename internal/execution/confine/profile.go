package confine

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/BurntSushi/toml"

	"vogt/internal/execution/confine/plan"
)

// Profile says what a box shows and allows, as a person writes it. Paths may
// begin with "~/" (the home) or "./" (the workspace); others are absolute.
type Profile struct {
	Name string `toml:"-" json:"-"`
	// Root is `listed` for a tree of what Read and Write list, or `host` for
	// the machine's tree without what is hidden.
	Root plan.Root `toml:"root"`
	// Read and Write list what may be read and what may be written as well.
	Read  []string `toml:"read"`
	Write []string `toml:"write"`
	// Hidden lists what is empty or cannot be entered. A "*" stands for any
	// rest of the last part.
	Hidden []string `toml:"hidden"`
	// Protected lists what cannot be changed in what may be written.
	Protected []string     `toml:"protected"`
	Network   plan.Network `toml:"net"`
	Sockets   plan.Sockets `toml:"unix"`
	// Hosts are those that the box reaches with net = "proxy", as name,
	// *.name or name:port.
	Hosts []string `toml:"hosts"`
	// Named are further ones, of which more is to be said.
	Named []Host `toml:"host" json:",omitempty"`
	// Environ lists the variables that are passed on. A "*" stands for any
	// rest.
	Environ []string `toml:"env"`
	// Reduced admits a box without namespaces where there can be none.
	Reduced bool   `toml:"reduced"`
	Limits  Limits `toml:"limits"`
}

// Host is one that the box reaches with net = "proxy". What it says is the proxy's.
type Host struct {
	Name   string   `toml:"name"`
	Ports  []uint16 `toml:"ports"`
	Within []string `toml:"within"` // networks in which it lies, if it is no public one
	Carry  string   `toml:"carry"`  // tls, ssh or anything; empty goes by the port
	Upload Size     `toml:"upload"`
	Deny   bool     `toml:"deny"`
	// Requests and Headers have the proxy read the requests: those that are listed,
	// as "GET,HEAD /path", may be made, and each gets the header fields.
	Requests []string `toml:"requests"`
	Headers  []Header `toml:"header"`
}

// Header is a field with a secret in it, which the box does not see.
type Header struct {
	Name string `toml:"name"`
	// Value holds {secret} once; empty is the secret alone. Basic makes the value
	// of HTTP's basic authentication, for this user name.
	Value string `toml:"value"`
	Basic string `toml:"basic"`
	// One of these says where the secret is: a file, a variable of the starter's,
	// a command of the user's.
	File     string   `toml:"file"`
	Variable string   `toml:"env"`
	Command  []string `toml:"command"`
}

// check finds what is wrong with the headers of a host.
func (h *Host) check() error {
	for _, f := range h.Headers {
		sources := 0
		for _, set := range []bool{f.File != "", f.Variable != "", len(f.Command) > 0} {
			if set {
				sources++
			}
		}
		switch {
		case f.Name == "":
			return fmt.Errorf("host %s: a header has no name", h.Name)
		case sources != 1:
			return fmt.Errorf("host %s: header %s: want one of file, env and command", h.Name, f.Name)
		case f.Value != "" && (f.Basic != "" || strings.Count(f.Value, "{secret}") != 1):
			return fmt.Errorf("host %s: header %s: value holds {secret} once, and is not for basic", h.Name, f.Name)
		case f.File != "" && !strings.HasPrefix(f.File, "/") && !strings.HasPrefix(f.File, "~/"):
			return fmt.Errorf("host %s: header %s: file %q begins with neither / nor ~/", h.Name, f.Name, f.File)
		}
	}
	return nil
}

// Passes reports whether a variable of this name is passed on into the box.
func (p *Profile) Passes(name string) bool {
	return len(environ([]string{name + "="}, p.Environ, "")) > 1 // HOME is always there
}

// Limits bound what a box may use. Zero is no bound.
type Limits struct {
	Memory    Size  `toml:"memory"`
	Processes int64 `toml:"processes"`
	Files     int64 `toml:"files"`
	FileSize  Size  `toml:"file_size"`
	CPU       int64 `toml:"cpu_seconds"`
	Wall      int64 `toml:"wall_seconds"` // after which the box ends
	Temporary Size  `toml:"temporary"`
	Upload    Size  `toml:"upload"` // to all hosts, by the proxy
	// CPUs is how many processors the box may use together, where it has a control
	// group. It is part of the digest only where it says something.
	CPUs float64 `toml:"cpus" json:",omitempty"`
}

// Size is a number of bytes, written as "512M" or "2G".
type Size int64

// UnmarshalText reads a size.
func (s *Size) UnmarshalText(text []byte) error {
	word := string(text)
	unit := int64(1)
	switch {
	case strings.HasSuffix(word, "K"):
		unit = 1 << 10
	case strings.HasSuffix(word, "M"):
		unit = 1 << 20
	case strings.HasSuffix(word, "G"):
		unit = 1 << 30
	}
	if unit > 1 {
		word = word[:len(word)-1]
	}
	n, err := strconv.ParseInt(word, 10, 64)
	if err != nil || n < 0 || n > (1<<62)/unit {
		return fmt.Errorf("size %q: want a number of bytes, or one with K, M or G", text)
	}
	*s = Size(n * unit)
	return nil
}

// Parse reads a profile. Unknown keys are errors.
func Parse(name, text string) (*Profile, error) {
	p := &Profile{Name: name}
	meta, err := toml.Decode(text, p)
	if err != nil {
		return nil, fmt.Errorf("profile %s: %w", name, err)
	}
	if unknown := meta.Undecoded(); len(unknown) > 0 {
		return nil, fmt.Errorf("profile %s: unknown key %s", name, unknown[0])
	}
	return p, p.check()
}

func (p *Profile) check() error {
	for _, field := range []struct {
		key, value string
		known      []string
	}{
		{"root", string(p.Root), []string{string(plan.Listed), string(plan.HostView)}},
		{"net", string(p.Network), []string{string(plan.Offline), string(plan.Proxied), string(plan.Host)}},
		{"unix", string(p.Sockets), []string{string(plan.NoSockets), string(plan.OwnSockets)}},
	} {
		if !slices.Contains(field.known, field.value) {
			return fmt.Errorf("profile %s: %s is %q, want %s", p.Name, field.key, field.value, strings.Join(field.known, " or "))
		}
	}
	if p.Root == plan.HostView && p.Sockets == plan.OwnSockets {
		return fmt.Errorf("profile %s: root = %q shows the machine's unix sockets, so that unix = %q could not keep to those of the box", p.Name, p.Root, p.Sockets)
	}
	for i := range p.Named {
		if err := p.Named[i].check(); err != nil {
			return fmt.Errorf("profile %s: %w", p.Name, err)
		}
	}
	if p.Limits.CPUs < 0 || p.Limits.CPUs > 1<<16 {
		return fmt.Errorf("profile %s: limits: cpus is %v, want a number of processors", p.Name, p.Limits.CPUs)
	}
	if len(p.Hosts)+len(p.Named) > 0 && p.Network != plan.Proxied {
		return fmt.Errorf("profile %s: hosts are for net = %q, and net is %q", p.Name, plan.Proxied, p.Network)
	}
	for _, list := range []struct {
		key    string
		values []string
	}{{"read", p.Read}, {"write", p.Write}, {"hidden", p.Hidden}, {"protected", p.Protected}} {
		for _, name := range list.values {
			if !strings.HasPrefix(name, "/") && !strings.HasPrefix(name, "~/") && !strings.HasPrefix(name, "./") && name != "." {
				return fmt.Errorf("profile %s: %s: %q begins with neither /, ~/ nor ./", p.Name, list.key, name)
			}
			if slices.Contains(strings.Split(name, "/"), "..") {
				return fmt.Errorf("profile %s: %s: %q leads out of its folder", p.Name, list.key, name)
			}
			// A pattern of folders would be looked for on the whole disk.
			if list.key == "hidden" && strings.Contains(path.Dir(strings.TrimPrefix(name, anywhere)), "*") {
				return fmt.Errorf("profile %s: %s: %q has a * before its last part", p.Name, list.key, name)
			}
		}
	}
	return nil
}

// Digest identifies what the profile says, whatever it is called.
func (p *Profile) Digest() string {
	data, err := json.Marshal(p)
	if err != nil {
		return "" // there is nothing in it that JSON cannot hold
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// In returns the profile for a workspace: with what its file .vogt/confine.toml
// takes away, if there is one.
func (p *Profile) In(workspace string) (*Profile, error) {
	file := filepath.Join(workspace, ".vogt", "confine.toml")
	text, err := readSmall(file)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return p, nil
	}
	if err == nil {
		p, err = p.Narrowed(string(text))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return p, nil
}

// Narrowed returns the profile with what a file of the workspace says: it may
// take away, and nothing that it says gives more. An empty text takes nothing.
func (p *Profile) Narrowed(text string) (*Profile, error) {
	// Only what takes away is in it, so that nothing else can be said.
	var by struct {
		Hidden    []string     `toml:"hidden"`
		Protected []string     `toml:"protected"`
		Network   plan.Network `toml:"net"`
		Sockets   plan.Sockets `toml:"unix"`
	}
	meta, err := toml.Decode(text, &by)
	if err != nil {
		return nil, err
	}
	switch unknown := meta.Undecoded(); {
	case len(unknown) > 0:
		return nil, fmt.Errorf("%s: a file of the workspace can say hidden, protected, net and unix, and only narrow", unknown[0])
	case by.Network != "" && by.Network != plan.Offline:
		return nil, fmt.Errorf("net is %q: a file of the workspace can only say %q", by.Network, plan.Offline)
	case by.Sockets != "" && by.Sockets != plan.NoSockets:
		return nil, fmt.Errorf("unix is %q: a file of the workspace can only say %q", by.Sockets, plan.NoSockets)
	}
	out := *p
	out.Hidden = append(slices.Clip(out.Hidden), by.Hidden...)
	out.Protected = append(slices.Clip(out.Protected), by.Protected...)
	if by.Network != "" {
		out.Network = by.Network
	}
	if by.Sockets != "" {
		out.Sockets = by.Sockets
	}
	return &out, out.check()
}

//go:embed default.toml
var defaultText string

// Builtin returns a profile that Vogt brings: default, which holds unless
// another one is named; read, in which nothing of the workspace can be written;
// host, which shows the machine's tree without what is hidden; and agent, for all
// that an agent does, with a proxy and sockets of its own.
func Builtin(name string) (func() (*Profile, error), bool) {
	change, ok := map[string]func(*Profile){
		"default": func(*Profile) {},
		"read": func(p *Profile) {
			p.Read = append(p.Read, p.Write...)
			p.Write = nil
		},
		"host": func(p *Profile) {
			p.Root, p.Read = plan.HostView, nil
		},
		"agent": func(p *Profile) {
			p.Network, p.Sockets = plan.Proxied, plan.OwnSockets
		},
	}[name]
	if !ok {
		return nil, false
	}
	return func() (*Profile, error) {
		p, err := Parse(name, defaultText)
		if err == nil {
			change(p)
		}
		return p, err
	}, true
}

// BuiltinNames are the names of the profiles that Vogt brings.
func BuiltinNames() []string { return []string{"default", "read", "host", "agent"} }
