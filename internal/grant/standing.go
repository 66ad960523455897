package grant

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"unicode"

	"vogt/internal/detail"
)

// Deed is a kind of effect that a pattern may permit.
type Deed string

// The deeds. Reading is part of each.
const (
	DeedRead    Deed = "read"
	DeedWrite   Deed = "write"   // create or change what an ordinary undo brings back
	DeedDelete  Deed = "delete"  // lose data or running work
	DeedConnect Deed = "connect" // contact the pattern's hosts
	DeedAny     Deed = "any"     // whatever the box permits; only in a box
)

// Pattern is what a standing grant covers: a class of calls. The zero value
// covers nothing. Lists that are empty mean any for programs, operations,
// machines and audiences, and none for paths and hosts.
type Pattern struct {
	Agent    string `json:"agent"`              // e-mail of one agent, "group:NAME", or "*" for all of the author's
	Class    Class  `json:"class,omitempty"`    // which class it is, exactly
	Machine  string `json:"machine,omitempty"`  // name of the host that asks
	Audience string `json:"audience,omitempty"` // whom requests are meant for; a client's word that parts doors
	// Unseen covers also requests that do not say where they would run, as those of
	// other clients: nobody has looked where links lead. Paths are absolute then.
	Unseen     bool        `json:"unseen,omitempty"`
	Programs   []string    `json:"programs,omitempty"`   // as the catalog names them
	Operations []string    `json:"operations,omitempty"` // of the catalog, "git.log", with all below it
	Does       []Deed      `json:"does"`
	Read       []string    `json:"read,omitempty"`  // patterns of paths that may be read
	Write      []string    `json:"write,omitempty"` // of paths that may be read, written and deleted
	Hosts      []string    `json:"hosts,omitempty"` // names, or "*.name"
	Files      []string    `json:"files,omitempty"` // SHA-256 of programs, in hex: covers these, whatever they do
	Box        *Box        `json:"box,omitempty"`   // covers only what runs in such a box
	MaxRisk    detail.Risk `json:"max_risk"`        // at most high
	Limits     Limits      `json:"limits"`
}

// Box is the confinement that a pattern requires. Its only network is the pattern's
// hosts; without them it has none.
type Box struct {
	Profile   string `json:"profile"`             // its name
	Workspace string `json:"workspace,omitempty"` // pattern of the folder it is about; empty for any
}

// Limits end a pattern's silence: what exceeds them is asked.
type Limits struct {
	PerMinute int64 `json:"per_minute"`         // uses
	Deletes   int64 `json:"deletes_per_hour"`   // uses that delete
	Uses      int64 `json:"max_uses,omitempty"` // in all; 0 for no such limit
}

// What a pattern may hold at most.
const (
	maxPatternList = 64
	maxPatternText = 512 // bytes of one entry
	// MaxPattern is the largest pattern in bytes of JSON.
	MaxPattern = 16 << 10
	// MaxDays is how long a standing grant may last at most, DefaultDays how
	// long it lasts when nothing is said.
	MaxDays, DefaultDays = 366, 90
	defaultPerMinute     = 60
	defaultDeletes       = 50
	maxPerMinute         = 10_000
)

// ParsePattern reads a pattern from its JSON, whole: members that it does not know
// and text after it are refused. The pattern comes back in its one form.
func ParsePattern(text string) (p Pattern, err error) {
	if err := whole(text, MaxPattern, &p); err != nil {
		return p, err
	}
	return p.Complete()
}

// whole reads one JSON object and nothing else, of at most limit bytes: members that
// v does not know and text after it are refused.
func whole(text string, limit int, v any) error {
	if len(text) > limit {
		return fmt.Errorf("it has %d bytes, the limit is %d", len(text), limit)
	}
	dec := json.NewDecoder(strings.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return err
	}
	if _, err := dec.Token(); err != io.EOF {
		return errors.New("text follows the object")
	}
	return nil
}

// Complete fills in what is usual, checks the pattern and returns it in its one
// form: lists sorted, paths cleaned.
func (p Pattern) Complete() (Pattern, error) {
	p = p.tidy()
	return p, p.check()
}

// tidy is Complete without the check.
func (p Pattern) tidy() Pattern {
	if p.MaxRisk == detail.Unrated {
		p.MaxRisk = detail.Medium
		if p.Box != nil || len(p.Files) > 0 {
			p.MaxRisk = detail.High
		}
	}
	if p.Limits.PerMinute == 0 {
		p.Limits.PerMinute = defaultPerMinute
	}
	if p.Limits.Deletes == 0 {
		p.Limits.Deletes = defaultDeletes
	}
	if len(p.Does) == 0 {
		p.Does = []Deed{DeedRead}
	}
	for _, list := range []*[]string{&p.Programs, &p.Operations, &p.Read, &p.Write, &p.Hosts, &p.Files} {
		*list = sorted(*list)
	}
	p.Does = sorted(p.Does)
	for _, list := range []*[]string{&p.Read, &p.Write} {
		for i, glob := range *list {
			(*list)[i] = path.Clean(glob)
		}
		*list = sorted(*list)
	}
	if p.Box != nil {
		box := *p.Box
		if box.Workspace != "" {
			box.Workspace = path.Clean(box.Workspace)
		}
		p.Box = &box
	}
	return p
}

// sorted is the list without repetitions, nil when empty, in new memory.
func sorted[T ~string](list []T) []T {
	if len(list) == 0 {
		return nil
	}
	list = slices.Clone(list)
	slices.Sort(list)
	return slices.Compact(list)
}

// check says the first thing that a pattern may not hold.
func (p Pattern) check() error {
	switch {
	case p.Agent == "":
		return errors.New("agent is missing: an e-mail address, or * for all of yours")
	case !p.MaxRisk.Within(detail.High):
		return fmt.Errorf("max_risk %s: a pattern covers at most high; what is critical is asked every time", p.MaxRisk)
	case p.Limits.PerMinute < 0 || p.Limits.PerMinute > maxPerMinute:
		return fmt.Errorf("per_minute %d: want 1 to %d", p.Limits.PerMinute, maxPerMinute)
	case p.Limits.Deletes < 0 || p.Limits.Deletes > maxPerMinute:
		return fmt.Errorf("deletes_per_hour %d: want 1 to %d", p.Limits.Deletes, maxPerMinute)
	case p.Limits.Uses < 0:
		return fmt.Errorf("max_uses %d: want a positive number", p.Limits.Uses)
	}
	if err := p.checkDeeds(); err != nil {
		return err
	}
	for _, list := range []struct {
		name   string
		values []string
		check  func(string) error
	}{
		{"programs", p.Programs, plainName}, {"operations", p.Operations, operation},
		{"read", p.Read, pathGlob}, {"write", p.Write, pathGlob}, {"hosts", p.Hosts, hostGlob}, {"files", p.Files, fileDigest},
	} {
		if len(list.values) > maxPatternList {
			return fmt.Errorf("%s has %d entries, the limit is %d", list.name, len(list.values), maxPatternList)
		}
		for _, v := range list.values {
			if err := list.check(v); err != nil {
				return fmt.Errorf("%s: %q: %w", list.name, v, err)
			}
		}
	}
	for _, text := range []string{p.Agent, p.Machine, p.Audience} {
		if err := plain(text); err != nil {
			return fmt.Errorf("%q: %w", text, err)
		}
	}
	if name, group := strings.CutPrefix(p.Agent, GroupPrefix); group {
		if err := CheckGroup(name); err != nil {
			return err
		}
	}
	if err := p.checkClass(); err != nil {
		return err
	}
	if p.Box == nil {
		return nil
	}
	if err := plainName(p.Box.Profile); err != nil {
		return fmt.Errorf("box: profile %q: %w", p.Box.Profile, err)
	}
	if p.Box.Workspace != "" {
		if err := pathGlob(p.Box.Workspace); err != nil {
			return fmt.Errorf("box: workspace %q: %w", p.Box.Workspace, err)
		}
	}
	return nil
}

func (p Pattern) checkDeeds() error {
	for _, d := range p.Does {
		switch d {
		case DeedRead, DeedWrite, DeedDelete, DeedConnect:
		case DeedAny:
			if p.Box == nil {
				return errors.New(`"any" needs a box: outside of one nothing would hold it`)
			}
		default:
			return fmt.Errorf("does: %q: want read, write, delete, connect or any", d)
		}
	}
	switch {
	case p.Box == nil && len(p.Read)+len(p.Write) == 0 && !slices.Contains(p.Does, DeedConnect):
		return errors.New("read or write is missing: name the folders, such as /home/me/project/**")
	case p.Box == nil && len(p.Write) == 0 && (slices.Contains(p.Does, DeedWrite) || slices.Contains(p.Does, DeedDelete)):
		return errors.New("write is missing: name the folders in which it may write")
	case slices.Contains(p.Does, DeedConnect) && len(p.Hosts) == 0:
		return errors.New("hosts is missing: name the hosts that it may contact")
	case p.Box != nil && slices.Contains(p.Does, DeedConnect):
		return errors.New("a box has the network of its hosts: leave connect out")
	case p.Box != nil && slices.ContainsFunc(p.Hosts, func(h string) bool { return strings.HasPrefix(h, "*") }):
		return errors.New("hosts: a box is compared by the hosts that it may contact: name each whole")
	case len(p.Files) > 0 && (p.Box != nil || len(p.Programs)+len(p.Operations)+len(p.Hosts) > 0 || len(p.Does) > 1 || p.Does[0] != DeedRead):
		return errors.New("a pattern for files covers them whatever they do: leave does, programs, operations, hosts and box out")
	case p.Box == nil && len(p.Files)+len(p.Programs)+len(p.Operations) == 0 && p.MaxRisk > detail.Medium:
		return errors.New("a pattern for any program covers at most medium risk outside of a box: name programs or a box")
	}
	return nil
}

func plain(s string) error {
	if len(s) > maxPatternText {
		return fmt.Errorf("it has %d bytes, the limit is %d", len(s), maxPatternText)
	}
	for _, r := range s {
		// What nobody sees, or what moves what they see, makes two patterns look alike.
		if !unicode.IsPrint(r) || r == '\uFFFD' {
			return errors.New("it holds control or other characters that are not seen, or bytes that are no text")
		}
	}
	return nil
}

func plainName(s string) error {
	if s == "" || strings.ContainsAny(s, "/*? \t,=") {
		return errors.New("want one name")
	}
	return plain(s)
}

func fileDigest(s string) error {
	if len(s) != 64 || strings.Trim(s, "0123456789abcdef") != "" {
		return errors.New("want a SHA-256 in 64 lower-case hex digits")
	}
	return nil
}

func operation(s string) error {
	if s == "" || strings.ContainsAny(s, "*/? \t") || strings.Contains(s+".", "..") {
		return errors.New("want an operation of the catalog, such as git.log")
	}
	return plain(s)
}

func pathGlob(s string) error {
	switch {
	case !strings.HasPrefix(s, "/"):
		return errors.New("want an absolute path; * stands for any name part, ** for any folders")
	case s == "/" || strings.HasPrefix(s, "/**") || strings.HasPrefix(s, "/*/"):
		return errors.New("that is the whole machine: name a folder")
	case slices.ContainsFunc(strings.Split(s, "/"), func(part string) bool {
		return part == ".." || strings.Contains(part, "**") && part != "**"
	}):
		return errors.New("** stands alone between slashes, and .. is not taken")
	case strings.ContainsAny(s, "?[]{}\\"):
		return errors.New("only * and ** are patterns; ? [ ] { } and \\ are not taken")
	}
	return plain(s)
}

// hostGlob takes a name, or any name below one that is not a public suffix by
// its shape. Hosts that serve many tenants are the egress's to know.
func hostGlob(s string) error {
	name, below := strings.CutPrefix(s, "*.")
	if name == "" || strings.ContainsAny(name, "*/:@ \t") || name != strings.ToLower(name) || below && strings.Count(name, ".") == 0 {
		return errors.New("want a host name in lower case, or *.name.tld")
	}
	return plain(s)
}

// Standing is a pattern that a person has signed.
type Standing struct {
	ID       string
	Author   string
	Pattern  Pattern
	Reason   string
	Created  Millis
	Until    Millis
	Strength Strength
	Record   int64 // of the log, that holds the signature
	Revoked  Millis
	// Paused is why it covers nothing at the moment: a limit was exceeded.
	Paused   string
	Uses     int64
	LastUsed Millis
}

// Active reports whether s may cover anything at now.
func (s *Standing) Active(now Millis) bool {
	return s.Revoked == 0 && s.Paused == "" && s.Until != 0 && !s.Until.Reached(now) &&
		(s.Pattern.Limits.Uses == 0 || s.Uses < s.Pattern.Limits.Uses)
}

// For reports whether s is about requests of this agent, which is in these groups,
// from this machine, meant for this audience.
func (s *Standing) For(agent, owner string, groups []string, machine, audience string) bool {
	p := s.Pattern
	if owner == "" || s.Author != owner || p.Machine != "" && p.Machine != machine || p.Audience != "" && p.Audience != audience {
		return false
	}
	name, group := strings.CutPrefix(p.Agent, GroupPrefix)
	return p.Agent == agent || p.Agent == "*" || group && slices.Contains(groups, name)
}

// GroupPrefix is what Pattern.Agent begins with for a group of agents.
const GroupPrefix = "group:"

// CheckGroup says why a group of agents cannot have this name.
func CheckGroup(name string) error {
	ok := name != "" && len(name) <= 32 && name[0] >= 'a' && name[0] <= 'z' && !strings.ContainsFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-'
	})
	if !ok {
		return fmt.Errorf("group %q: want a lower-case letter, then up to 31 letters, digits or hyphens", name)
	}
	return nil
}
