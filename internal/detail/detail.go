// Package detail holds the words for what an action would do: sealed kinds of
// authorization details, their risk, and the canonical strings and hashes that
// stand for them on the wire.
//
// It owns vocabulary only. Turning text into details is the job of reading and
// catalog, comparing details with grants that of coverage. It imports nothing
// but the standard library, so that every other package can share the words.
package detail

import (
	"fmt"
	"strconv"
	"strings"
)

// Risk orders how much a wrong yes could cost. The zero value is Unrated,
// which no limit admits: a detail whose risk nobody set is never covered.
type Risk uint8

// The levels, from the zero value upwards.
const (
	Unrated Risk = iota
	Low
	Medium
	High
	Critical
)

var riskNames = [...]string{Unrated: "unrated", Low: "low", Medium: "medium", High: "high", Critical: "critical"}

// String returns the level's name as it stands on the wire.
func (r Risk) String() string {
	if int(r) < len(riskNames) {
		return riskNames[r]
	}
	return fmt.Sprintf("risk(%d)", uint8(r))
}

// ParseRisk reads a level by its wire name. "unrated" is not a level that
// anybody may ask for, so it is refused.
func ParseRisk(s string) (Risk, error) {
	for r := Low; r <= Critical; r++ {
		if riskNames[r] == s {
			return r, nil
		}
	}
	return Unrated, fmt.Errorf("risk %q: want low, medium, high or critical", s)
}

// MarshalText writes the wire name.
func (r Risk) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads the wire name.
func (r *Risk) UnmarshalText(b []byte) (err error) {
	*r, err = ParseRisk(string(b))
	return err
}

// Within reports whether r is rated and at most limit. An unrated risk is
// within no limit, and nothing is within an unrated limit.
func (r Risk) Within(limit Risk) bool {
	return r >= Low && r <= Critical && limit >= Low && limit <= Critical && r <= limit
}

// Action is what a detail does to its resource.
type Action string

// The actions of this version. A catalog may name finer ones for a program.
const (
	ActionExec    Action = "exec"
	ActionRead    Action = "read"
	ActionWrite   Action = "write"
	ActionDelete  Action = "delete"
	ActionConnect Action = "connect"
	ActionCall    Action = "call"
	ActionCross   Action = "cross"
)

// Detail is one thing that an action would do. The set of kinds is closed:
// Command, Path, Network, Tool and Crossing. Every consumer switches over all
// of them, so that a new kind is a decision in each place.
type Detail interface {
	// Level is the risk that the authority itself derived.
	Level() Risk
	// Permission is the canonical string of the detail, for display and for
	// the wire. Two different details may share it; compare structure.
	Permission() string

	sealed()
}

// Command is one program start.
type Command struct {
	Program   string     // base name of the program, as the catalog knows it
	Operation string     // catalog operation, or GenericOperation
	Argv      []string   // exact argument list, argv[0] included; nil when not all of it is literal
	Chain     []Resource // what it works on; nil stands for the exact argument list
	Action    Action
	Risk      Risk
}

// Path is one access to a file or folder by a door with structured input.
type Path struct {
	Path   string // absolute and cleaned
	Action Action // read, write or delete
	Risk   Risk
}

// Network is one connection that a program or the proxy would open.
type Network struct {
	Host string // lower case, punycode
	Port uint16
	Risk Risk
}

// Mode is the connection as it stands in a statement's network mode.
func (d Network) Mode() string {
	host := d.Host
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return "connect " + host + ":" + strconv.Itoa(int(d.Port))
}

// Tool is one call of an MCP tool or a desktop step.
type Tool struct {
	Server string
	Name   string
	Risk   Risk
}

// Crossing is a command that would run as another OS user. It is always
// critical, whatever the command is.
type Crossing struct {
	User    string
	Command Command
}

// GenericOperation marks a program that no catalog entry describes.
const GenericOperation = "_generic.exec"

// Level implements Detail.
func (d Command) Level() Risk { return d.Risk }

// Level implements Detail.
func (d Path) Level() Risk { return d.Risk }

// Level implements Detail.
func (d Network) Level() Risk { return d.Risk }

// Level implements Detail.
func (d Tool) Level() Risk { return d.Risk }

// Level implements Detail: a crossing is critical.
func (d Crossing) Level() Risk { return Critical }

// Permission implements Detail.
func (d Command) Permission() string {
	return escapedPermission(d.Program, d.chain(), string(d.Action))
}

// chain is the resource chain, which is never empty.
func (d Command) chain() []Resource {
	program := Resource{Name: "cli", Selector: map[string]string{"name": d.Program}}
	if d.Chain == nil {
		return []Resource{program, {Name: "argv", Selector: map[string]string{"hash": ArgvHash(d.Argv)}}}
	}
	return append([]Resource{program}, d.Chain...)
}

// Wire is the detail as it stands on the wire.
func (d Command) Wire(display string) Wire {
	return Wire{
		Type: WireCLI, CLI: d.Program, Operation: d.Operation, Chain: escapedChain(d.chain()), Action: string(d.Action),
		Permission: d.Permission(), Display: display, Risk: d.Risk.String(),
	}
}

// Permission implements Detail.
func (d Path) Permission() string {
	return escapedPermission("file", []Resource{{Name: "path", Selector: map[string]string{"path": d.Path}}}, string(d.Action))
}

// Permission implements Detail.
func (d Network) Permission() string {
	return escapedPermission("network", []Resource{{Name: "host", Selector: map[string]string{
		"name": d.Host, "port": fmt.Sprint(d.Port),
	}}}, string(ActionConnect))
}

// Permission implements Detail.
func (d Tool) Permission() string {
	return escapedPermission("tool", []Resource{
		{Name: "server", Selector: map[string]string{"name": d.Server}},
		{Name: "tool", Selector: map[string]string{"name": d.Name}},
	}, string(ActionCall))
}

// Permission implements Detail.
func (d Crossing) Permission() string {
	return escapedPermission("crossing", []Resource{
		{Name: "user", Selector: map[string]string{"name": d.User}},
		{Name: "argv", Selector: map[string]string{"hash": ArgvHash(d.Command.Argv)}},
	}, string(ActionCross))
}

func (Command) sealed()  {}
func (Path) sealed()     {}
func (Network) sealed()  {}
func (Tool) sealed()     {}
func (Crossing) sealed() {}

// Highest returns the greatest risk among the details. A set that is empty or
// holds an unrated detail is Critical: what nobody rated is not harmless.
func Highest(details []Detail) Risk {
	if len(details) == 0 {
		return Critical
	}
	highest := Unrated
	for _, d := range details {
		level := d.Level()
		if level == Unrated {
			return Critical
		}
		highest = max(highest, level)
	}
	return highest
}
