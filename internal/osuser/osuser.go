// Package osuser makes, examines, stops and removes the operating system's
// users that agents run as.
//
// It owns the user with its group and home, the ledger of user ids that were
// ever given, the files that deny the user cron, at, lingering, ssh and polkit,
// the systemd slice and unit, and the journal by which all of it is undone. It
// changes nothing that it did not make, and what somebody changed since stays
// and is named. It leaves out the agent's identity at the authority, keys, the
// box around an agent, and every question to a person; it runs as root, and
// whoever calls it has asked already. It works on Linux; elsewhere every call
// says that it does not.
package osuser

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"time"
	"unicode"
)

// ErrUnknown is returned for an agent that never had a user here.
var ErrUnknown = errors.New("osuser: this agent never had an OS user of its own on this machine; `vogt agent user add NAME` makes one")

// Spec describes the user of one agent. Only Name is required.
type Spec struct {
	Name  string   // the agent's name
	User  string   // the user's name; vogt-NAME if empty
	Base  string   // the folder in which the home lies; /var/lib/vogt-agents/home if empty
	Shell string   // /usr/sbin/nologin if empty
	Range Range    // where user ids come from; 70000 to 79999 if empty
	Start []string // what the unit starts; "%i" is its instance; no unit if empty
	Limits
	Machine Machine
}

// Limits are those of the agent's slice. The zero value means the defaults:
// three quarters of the memory, 2048 tasks, and no limit of processor time but
// half of the usual weight.
type Limits struct {
	MemoryBytes int64
	Tasks       int
	CPUPercent  int // of one processor
}

// Range is a range of user ids, which are group ids too; both ends belong to it.
type Range struct{ First, Last uint32 }

// Machine says where things are. The zero value is this machine.
type Machine struct {
	// Root is put before every path below /etc, /var and so on. Programs are run
	// from the real machine, and nothing that runs is told to read its files
	// again unless Tools names the program for it.
	Root string
	// State is the folder of ledger and journals; /var/lib/vogt-agents if empty.
	State string
	// Cgroup is the root of the cgroup v2 hierarchy; it is looked for if empty.
	Cgroup string
	Tools  Tools
	Now    func() time.Time // time.Now if nil

	at func(point string) // where tests stop the process
}

// Tools are absolute paths of programs. Those that are empty are Debian's.
type Tools struct {
	Useradd, Userdel, Groupadd, Groupdel string
	Getent, ID, Systemctl, Sshd          string
}

// User is what was made.
type User struct {
	Name  string
	UID   uint32 // and the id of its group
	Home  string
	Keys  string // the folder for the agent's keys and settings
	Shell string
	Slice string // the name of the systemd slice, or ""
	Unit  string // the name of the unit template, or ""
}

// HomeChoice says what becomes of a home when its user is removed. Deleting it
// is not among the choices, and the zero value refuses.
type HomeChoice int

// The choices.
const (
	HomeUndecided HomeChoice = iota
	KeepHome                 // it stays where it is
	ArchiveHome              // it is moved to a folder that only root can enter
)

// Removal is what Remove leaves behind.
type Removal struct {
	Home string   // where the home is now, or "" if there is none
	Left []string // what somebody else changed, and so was left; one sentence each
}

// Finding is one promise, tested against the machine. The zero value is a
// broken promise.
type Finding struct {
	Promise string // a fixed label
	Kept    bool
	Text    string // one sentence
	Remedy  string // what to do, if it is not kept
}

// Where things are by default.
const (
	defaultBase  = "/var/lib/vogt-agents/home"
	defaultState = "/var/lib/vogt-agents"
	defaultShell = "/usr/sbin/nologin"
)

// defaultRange lies where neither distributions, systemd nor subordinate ids
// have anything (see reserved).
var defaultRange = Range{70000, 79999}

// reserved are ids with a meaning of their own (https://systemd.io/UIDS-GIDS).
// The one for dynamic users matters most: systemd gives those ids to services
// as it likes, so that an id of a removed agent would come back to life.
var reserved = []struct {
	Range
	whose string
}{
	{Range{0, 100}, "the system"},
	{Range{60001, 60705}, "systemd's home folders, user databases and greeters"},
	{Range{61184, 65519}, "systemd's dynamic users"},
	{Range{65534, 65535}, "nobody, and an error value"},
	{Range{524288, 1879048191}, "systemd's containers"},
	{Range{2147352576, 1<<32 - 1}, "systemd's foreign ids, and error values"},
}

func (r Range) overlaps(other Range) bool { return r.First <= other.Last && other.First <= r.Last }

func (r Range) has(id uint32) bool { return r.First <= id && id <= r.Last }

func (r Range) String() string { return fmt.Sprintf("%d-%d", r.First, r.Last) }

// complete returns the spec with every field filled in, or says which one
// cannot be.
func (s Spec) complete() (Spec, error) {
	if s.User == "" {
		s.User = "vogt-" + s.Name
	}
	for _, field := range []struct {
		value    *string
		fallback string
	}{
		{&s.Base, defaultBase}, {&s.Shell, defaultShell},
		{&s.Machine.State, defaultState},
		{&s.Machine.Tools.Useradd, "/usr/sbin/useradd"}, {&s.Machine.Tools.Userdel, "/usr/sbin/userdel"},
		{&s.Machine.Tools.Groupadd, "/usr/sbin/groupadd"}, {&s.Machine.Tools.Groupdel, "/usr/sbin/groupdel"},
		{&s.Machine.Tools.Getent, "/usr/bin/getent"}, {&s.Machine.Tools.ID, "/usr/bin/id"},
	} {
		if *field.value == "" {
			*field.value = field.fallback
		}
	}
	// What runs belongs to the real machine, not to a root beside it.
	if s.Machine.Root == "" {
		if s.Machine.Tools.Systemctl == "" {
			s.Machine.Tools.Systemctl = "/usr/bin/systemctl"
		}
		if s.Machine.Tools.Sshd == "" {
			s.Machine.Tools.Sshd = "/usr/sbin/sshd"
		}
	}
	if s.Range == (Range{}) {
		s.Range = defaultRange
	}
	if s.Machine.Now == nil {
		s.Machine.Now = time.Now
	}
	if s.Machine.at == nil {
		s.Machine.at = func(string) {}
	}
	return s, s.valid()
}

func (s Spec) valid() error {
	if err := validName("agent", s.Name); err != nil {
		return err
	}
	if err := validName("user", s.User); err != nil {
		return err
	}
	for _, p := range []struct{ what, path string }{
		{"folder for homes", s.Base}, {"shell", s.Shell}, {"folder for the ledger", s.Machine.State},
	} {
		if err := validPath(p.what, p.path); err != nil {
			return err
		}
	}
	if root := s.Machine.Root; root != "" && (!path.IsAbs(root) || path.Clean(root) != root || root == "/") {
		return fmt.Errorf("osuser: the root %q is not an absolute path in its shortest form (leave it empty for this machine)", root)
	}
	if s.Range.First > s.Range.Last {
		return fmt.Errorf("osuser: the range of user ids %s is empty", s.Range)
	}
	for _, r := range reserved {
		if s.Range.overlaps(r.Range) {
			return fmt.Errorf("osuser: the range of user ids %s touches %s, which belongs to %s; choose another, such as %s", s.Range, r.Range, r.whose, defaultRange)
		}
	}
	if s.MemoryBytes < 0 || s.Tasks < 0 || s.CPUPercent < 0 {
		return errors.New("osuser: a limit is negative")
	}
	return validStart(s.Start)
}

// longestName is useradd's (LOGIN_NAME_MAX is longer, but utmp(5) is not).
const longestName = 32

// validName holds names to what can stand in every file that they get into:
// passwd, configuration of sshd, cron and polkit, names of files and units.
func validName(what, name string) error {
	refuse := func(why string) error {
		return fmt.Errorf("osuser: %q cannot be the name of an %s: %s", name, what, why)
	}
	if what == "user" {
		refuse = func(why string) error {
			return fmt.Errorf("osuser: %q cannot be the name of a user: %s", name, why)
		}
	}
	switch {
	case name == "":
		return refuse("it is empty")
	case len(name) > longestName:
		return refuse(fmt.Sprintf("it has %d bytes, and %d are the most", len(name), longestName))
	case name[0] < 'a' || name[0] > 'z':
		return refuse("it must begin with a letter from a to z")
	case name == "root":
		return refuse("it is the administrator's")
	}
	for _, r := range name {
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '_' {
			return refuse(fmt.Sprintf("only a to z, 0 to 9, - and _ may stand in it, not %q", r))
		}
	}
	return nil
}

// validPath demands a path that has one meaning and can stand in passwd(5) and
// in units.
func validPath(what, p string) error {
	if !path.IsAbs(p) || path.Clean(p) != p || p == "/" {
		return fmt.Errorf("osuser: the %s %q is not an absolute path in its shortest form", what, p)
	}
	if i := strings.IndexFunc(p, func(r rune) bool {
		return r == ':' || r == ',' || r == '\\' || r == '%' || r == '"' || r == unicode.ReplacementChar || unicode.IsControl(r) || unicode.IsSpace(r)
	}); i >= 0 {
		return fmt.Errorf("osuser: the %s %q has a character that /etc/passwd or a unit would misread", what, p)
	}
	return nil
}

func validStart(argv []string) error {
	if len(argv) == 0 {
		return nil
	}
	if err := validPath("program of the unit", argv[0]); err != nil {
		return err
	}
	for _, arg := range argv {
		if strings.ContainsFunc(arg, func(r rune) bool { return unicode.IsControl(r) || r == unicode.ReplacementChar }) {
			return fmt.Errorf("osuser: the unit's argument %q has a character that cannot stand in a unit", arg)
		}
	}
	return nil
}

func (s Spec) home() string { return s.Base + "/" + s.Name }

// slice is the name of the agent's slice. A dash in a slice's name means "below"
// (systemd.slice(5)): unescaped, the agent a-b would lie in the slice of the
// agent a, and be stopped with it.
func (s Spec) slice() string {
	return "vogt-agent-" + strings.ReplaceAll(s.Name, "-", `\x2d`) + ".slice"
}

func (s Spec) unit() string { return "vogt-agent-" + s.Name + "@.service" }

func (s Spec) user(uid uint32) User {
	return User{Name: s.User, UID: uid, Home: s.home(), Keys: s.home() + "/" + keyFolder, Shell: s.Shell}
}

// keyFolder is where vogt keeps keys and settings in a home.
const keyFolder = ".config/vogt"
