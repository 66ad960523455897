// Package doctor examines a machine as the user who runs it, and says what of
// Vogt's protection is in force there, by trying.
//
// It owns the checks, their sentences and the commands that mend what they
// find. It proves one row of docs/threat-model.md: each check is named there.
// It leaves out mending, and it changes nothing: files are opened and closed,
// never read beyond what the check needs, and no process is disturbed. It works
// while the authority is down.
package doctor

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"vogt/internal/config"
	"vogt/internal/execution/confine/trial"
)

// State is the outcome of a check. The zero value is a failure.
type State int

// The states. Only Failed means that something is broken; a protection that is
// not in force may be what this set-up is.
const (
	Failed State = iota
	NotInForce
	InPart
	InForce
)

var stateNames = [...]string{Failed: "failed", NotInForce: "not in force", InPart: "in part", InForce: "in force"}

// String returns the state in words, as the JSON has it.
func (s State) String() string { return stateNames[s] }

// MarshalText implements encoding.TextMarshaler.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Check is one finding.
type Check struct {
	Name  string `json:"name"` // as docs/threat-model.md refers to it
	State State  `json:"state"`
	Text  string `json:"text"`          // one sentence
	Fix   string `json:"fix,omitempty"` // the command, or where it is described
}

// Report is the whole examination.
type Report struct {
	OK          bool    `json:"ok"` // nothing failed
	Version     string  `json:"version"`
	Enforcement string  `json:"enforcement"` // advisory, or os-user for the authority's part
	Authority   string  `json:"authority"`
	Identity    string  `json:"identity,omitempty"`
	Config      string  `json:"config"`
	Data        string  `json:"data"`
	User        string  `json:"user"`
	Checks      []Check `json:"checks"`
}

// Subject is what is examined. All fields are required, but tests may leave
// out what their checks do not touch.
type Subject struct {
	Paths   config.Paths
	Vogt    string              // absolute path of the running binary
	Version string              // of the running binary
	Getenv  func(string) string // the environment
	Home    string              // the user's home folder
	Now     func() time.Time
	// Proc is where proc(5) is mounted.
	Proc string
	// Memory is the folder of the client's checkpoints.
	Memory string
	// Places are folders beside Paths.Data where an authority of this machine
	// may keep its data.
	Places []string
	// Try tries the box that this machine can make. Without it there is none to
	// examine.
	Try func(context.Context) (trial.Verdict, error)
	// Box is the profile of the box that this is run in, or empty.
	Box string
	// Agent is the name of the identity that acts here, or empty for the person.
	Agent string
}

// DefaultPlaces are where the guide puts the data of an authority that runs as
// its own user.
func DefaultPlaces() []string { return []string{"/var/lib/vogt", "/var/lib/vogt/data"} }

// hardened is where it is described how to put the authority out of reach.
const hardened = "run the authority as its own user: docs/threat-model.md, section \"The authority as its own user\""

// Examine runs every check. It takes a few seconds at most.
func Examine(ctx context.Context, s Subject) Report {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	x := observe(ctx, s)
	r := Report{
		Version: s.Version, Authority: x.address, Identity: x.login.Email,
		Config: s.Paths.Config, Data: s.Paths.Data, User: userName(),
	}
	for _, check := range []func(context.Context) Check{
		x.settings, x.authority, x.owner, x.issuer, x.clock, x.bearer, x.logKey, x.log,
		x.port, x.database, x.controlSocket, x.memory, x.ptrace,
		x.files, x.tokens, x.sshKey, x.sshAgent,
		x.path, x.binary, x.disk, x.box,
	} {
		r.Checks = append(r.Checks, check(ctx))
	}
	var last Check
	r.Enforcement, last = x.enforcement(r.Checks)
	r.Checks = append(r.Checks, last)
	if s.Box != "" {
		// What mends it is out of reach in a box.
		for i, c := range r.Checks {
			if c.Fix != "" {
				r.Checks[i].Fix = "outside of the box: " + c.Fix
			}
		}
	}
	r.OK = true
	for _, c := range r.Checks {
		r.OK = r.OK && c.State != Failed
	}
	return r
}

// Write renders the report for people, at most width columns wide.
func (r Report) Write(w io.Writer, width int) error {
	const indent = 15 // of the sentences
	var b strings.Builder
	fmt.Fprintf(&b, "Enforcement in force: %s\n\n", r.Enforcement)
	for _, c := range r.Checks {
		fmt.Fprintf(&b, "%-14s %s\n", c.State, c.Name)
		wrap(&b, c.Text, indent, width)
		if c.Fix != "" {
			fmt.Fprintf(&b, "%*sfix: %s\n", indent, "", c.Fix) // one line, to be copied
		}
	}
	count := map[State]int{}
	for _, c := range r.Checks {
		count[c.State]++
	}
	fmt.Fprintf(&b, "\n%d in force, %d in part, %d not in force, %d failed.\n", count[InForce], count[InPart], count[NotInForce], count[Failed])
	_, err := io.WriteString(w, b.String())
	return err
}

// wrap writes words in lines of at most width columns, all indented. A word
// that is longer stays whole, so that commands can be copied.
func wrap(b *strings.Builder, text string, indent, width int) {
	margin := strings.Repeat(" ", indent)
	column := 0
	for _, word := range strings.Fields(text) {
		switch {
		case column == 0:
			b.WriteString(margin)
			column = indent
		case column+1+len(word) > width:
			b.WriteString("\n" + margin)
			column = indent
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += len(word)
	}
	b.WriteByte('\n')
}

func inForce(name, format string, args ...any) Check {
	return Check{Name: name, State: InForce, Text: fmt.Sprintf(format, args...)}
}

func finding(name string, s State, fix, format string, args ...any) Check {
	return Check{Name: name, State: s, Text: fmt.Sprintf(format, args...), Fix: fix}
}
