// Package grant holds the words for permission: what was asked, what state the
// asking is in, and the one function that moves it from state to state.
//
// It is pure: times come in as values, storage only swaps one Grant for the
// next. It leaves out who may decide (authority), whether a pattern covers a
// request (coverage) and how anything is stored or sent.
package grant

import (
	"errors"
	"fmt"
	"time"

	"vogt/internal/detail"
	"vogt/internal/statement"
)

// Type says how long an approval lasts. The zero value is no type and permits
// nothing.
type Type string

// The types of a grant, named as on the wire.
const (
	Once   Type = "once"
	Timed  Type = "timed"
	Always Type = "always"
)

// Valid reports whether t is one of the three types.
func (t Type) Valid() bool { return t == Once || t == Timed || t == Always }

// Status is the state of a grant. The zero value is no state; it permits
// nothing and no event leaves it.
type Status string

// The states, named as on the wire. Denied, Revoked, Expired and Used are
// terminal.
const (
	Pending  Status = "pending"
	Approved Status = "approved"
	Denied   Status = "denied"
	Revoked  Status = "revoked"
	Expired  Status = "expired"
	Used     Status = "used"
)

// Terminal reports whether no event leaves s.
func (s Status) Terminal() bool { return s != Pending && s != Approved }

// Strength tells how firmly a decision is tied to the person.
type Strength string

// The strengths, weakest first. Bearer is a decision by a token alone, which
// only a written switch of the authority permits.
const (
	Bearer      Strength = "bearer"
	Click       Strength = "click"
	Passkey     Strength = "passkey"
	Independent Strength = "independent"
)

func (s Strength) rank() int {
	switch s {
	case Bearer:
		return 1
	case Click:
		return 2
	case Passkey:
		return 3
	case Independent:
		return 4
	}
	return 0
}

// AtLeast reports whether s is as strong as least. An unknown strength is
// weaker than all and satisfies nothing.
func (s Strength) AtLeast(least Strength) bool {
	return s.rank() > 0 && least.rank() > 0 && s.rank() >= least.rank()
}

// Millis is a point in time in Unix milliseconds; zero means "not set".
type Millis int64

// At converts a time.
func At(t time.Time) Millis { return Millis(t.UnixMilli()) }

// Seconds is the wire form, Unix seconds.
func (m Millis) Seconds() int64 { return int64(m) / 1000 }

// Time converts back.
func (m Millis) Time() time.Time { return time.UnixMilli(int64(m)) }

// Reached is the one rule of expiry: a deadline that is set has passed as
// soon as now equals it.
func (m Millis) Reached(now Millis) bool { return m != 0 && now >= m }

// Context is what a door reported about the surroundings of a command. All of
// it is claimed by the caller unless an executor of another uid observed it.
type Context struct {
	Argv       []string          `json:"argv,omitempty"`
	ArgvHash   string            `json:"argv_hash,omitempty"`
	AdapterID  string            `json:"adapter_id,omitempty"`
	AdapterVer string            `json:"adapter_version,omitempty"`
	AdapterDig string            `json:"adapter_digest,omitempty"`
	Executable string            `json:"resolved_executable,omitempty"`
	Bindings   map[string]string `json:"context_bindings,omitempty"`

	File         *statement.File  `json:"executable_file,omitempty"`
	Interpreters []statement.File `json:"interpreters,omitempty"` // of a #! line, in order
	Cwd          *statement.File  `json:"cwd,omitempty"`
	UID          *uint64          `json:"uid,omitempty"`
	Stdin        *string          `json:"stdin,omitempty"`
	Confinement  *string          `json:"confinement,omitempty"`  // the box: profile, its digest and the workspace
	NetworkMode  *string          `json:"network_mode,omitempty"` // of the box
	// Links are paths of the command that lead elsewhere, and where; and names of
	// programs that it starts in turn, with where they were found outside of the
	// system's folders.
	Links map[string]string `json:"links,omitempty"`
}

// Request is what a principal asked for. Requester is always the one that the
// authority authenticated.
type Request struct {
	Requester   string        `json:"requester"`
	Host        string        `json:"target_host"`
	Audience    string        `json:"audience"`
	Type        Type          `json:"grant_type"`
	Duration    int64         `json:"duration,omitempty"` // seconds, for Timed
	Command     []string      `json:"command,omitempty"`
	CmdHash     string        `json:"cmd_hash,omitempty"`
	RunAs       string        `json:"run_as,omitempty"`
	Reason      string        `json:"reason,omitempty"`
	Permissions []string      `json:"permissions,omitempty"`
	Details     []detail.Wire `json:"authorization_details,omitempty"`
	Context     *Context      `json:"execution_context,omitempty"`
	// Connect makes it a request for a connection of a box, in the place of a
	// command. The box stands in Context.Confinement; the program, as far as it is
	// known and never bound, in Context.Executable.
	Connect *Connect `json:"connect,omitempty"`
}

// Binding says who ties a permission to its command: "client" for clients that run
// their lines without a token, so that the authority cannot; "" for the authority.
func (r *Request) Binding() string {
	if r.Audience == "ape-shell" {
		return "client"
	}
	return ""
}

// Connect is where a box's proxy would connect to.
type Connect struct {
	Host string `json:"host"` // a name in lower-case ASCII, or an address
	Port uint16 `json:"port"`
}

// Network is the connection as a detail that nobody has rated.
func (c Connect) Network() detail.Network { return detail.Network{Host: c.Host, Port: c.Port} }

// Decision is a person's answer, as it is kept in the grant and the receipt.
type Decision struct {
	By       string           `json:"by"`
	At       Millis           `json:"at"`
	Strength Strength         `json:"strength"`
	Note     string           `json:"note,omitempty"`
	Digest   statement.Digest `json:"digest"` // of the statement that was answered
	Evidence []byte           `json:"evidence,omitempty"`
	// Standing is the standing grant that decided in the person's name.
	Standing string `json:"standing,omitempty"`
	// Policy is the auto-approval policy that did.
	Policy string `json:"policy,omitempty"`
	// For is whom By stood in for as a deputy, Deputy the appointment. Both are
	// empty where By answered for themselves.
	For    string `json:"for,omitempty"`
	Deputy string `json:"deputy,omitempty"`
}

// Seat is the person whose answer this is: By, or whom By stood in for.
func (d Decision) Seat() string {
	if d.For != "" {
		return d.For
	}
	return d.By
}

// Endorsement is the first of two persons' yes.
type Endorsement struct {
	Decision
	Type       Type   `json:"type"`
	Until      Millis `json:"until,omitempty"` // end of a timed permission
	Record     int64  `json:"record"`          // of the log
	Generation uint64 `json:"generation"`      // of By
}

// Grant is one request and what became of it.
type Grant struct {
	ID         string
	Version    int64 // counts the swaps in storage
	Epoch      uint64
	Nonce      string // lower-case hex, fresh for each grant
	Request    Request
	Requester  Requester
	Owner      string
	Approver   string
	Risk       detail.Risk
	Identity   statement.Digest
	Status     Status
	Type       Type // of the approval; of the request while pending
	Created    Millis
	ValidUntil Millis // pending: end of the wait; approved: end of the permission
	Decision   *Decision
	RevokedBy  string
	Revoked    Millis
	LastUsed   Millis
	Uses       int64
	Joined     int64 // identical requests that joined this one
	// Approvals is how many persons must allow it, Endorsed the first one's yes where
	// that is two.
	Approvals int64
	Endorsed  *Endorsement
}

// TwoPersons reports whether one person's yes is not enough.
func (g Grant) TwoPersons() bool { return g.Approvals > 1 }

// Requester binds the grant to the key that asked.
type Requester struct {
	KeyID      string
	Generation uint64
}

// Event is something that happened to a grant. The set is closed.
type Event interface{ event() string }

// Approve is a person's yes. Until is the end of a timed permission, or the
// deadline of a once-grant; zero for always.
type Approve struct {
	Decision Decision
	Type     Type
	Until    Millis
}

// Endorse is the first yes to a grant that two persons must allow. It stays pending.
type Endorse struct{ Endorsement Endorsement }

// Deny is a person's no.
type Deny struct{ Decision Decision }

// Revoke takes a pending request or a permission back.
type Revoke struct {
	By string
	At Millis
}

// Consume uses the permission: a once-grant is spent by it.
type Consume struct{ At Millis }

// Lapse ends a request or permission before its time, as a new epoch does.
type Lapse struct{ At Millis }

func (Approve) event() string { return "approve" }
func (Endorse) event() string { return "endorse" }
func (Deny) event() string    { return "deny" }
func (Revoke) event() string  { return "revoke" }
func (Consume) event() string { return "consume" }
func (Lapse) event() string   { return "expire" }

// TransitionError tells that an event does not apply in the state the grant
// is in. Nothing changed.
type TransitionError struct {
	Status Status
	Event  string
}

func (e *TransitionError) Error() string {
	return fmt.Sprintf("cannot %s a grant that is %s", e.Event, e.Status)
}

// As returns the grant as it stands at now: a request or permission whose time
// has run out is expired, whether or not storage has been told.
func (g Grant) As(now Millis) Grant {
	if !g.Status.Terminal() && g.ValidUntil.Reached(now) {
		g.Status = Expired
	}
	return g
}

// Apply is the state machine. It returns the grant after ev, or a
// *TransitionError and the grant unchanged.
func (g Grant) Apply(ev Event) (Grant, error) {
	refuse := func(status Status) (Grant, error) {
		return g, &TransitionError{Status: status, Event: ev.event()}
	}
	next := g
	switch ev := ev.(type) {
	case Approve:
		if s := g.As(ev.Decision.At).Status; s != Pending {
			return refuse(s)
		}
		if !ev.Type.Valid() {
			return g, fmt.Errorf("approve: grant type %q: want once, timed or always", ev.Type)
		}
		if (ev.Type == Always) != (ev.Until == 0) || ev.Until.Reached(ev.Decision.At) {
			return g, fmt.Errorf("approve: a %s grant cannot end at %d", ev.Type, ev.Until)
		}
		if g.TwoPersons() {
			if err := g.seconds(ev); err != nil {
				return g, err
			}
		}
		d := ev.Decision
		next.Status, next.Type, next.ValidUntil, next.Decision = Approved, ev.Type, ev.Until, &d
	case Endorse:
		if s := g.As(ev.Endorsement.At).Status; s != Pending {
			return refuse(s)
		}
		if !g.TwoPersons() || g.Endorsed != nil || !ev.Endorsement.Type.Valid() {
			return g, errors.New("endorse: one person's yes is enough, or is there already")
		}
		e := ev.Endorsement
		next.Endorsed = &e
	case Deny:
		if s := g.As(ev.Decision.At).Status; s != Pending {
			return refuse(s)
		}
		d := ev.Decision
		next.Status, next.Decision = Denied, &d
	case Revoke:
		if s := g.As(ev.At).Status; s.Terminal() {
			return refuse(s)
		}
		next.Status, next.RevokedBy, next.Revoked = Revoked, ev.By, ev.At
	case Consume:
		if s := g.As(ev.At).Status; s != Approved {
			return refuse(s)
		}
		next.LastUsed, next.Uses = ev.At, g.Uses+1
		if g.Type == Once {
			next.Status = Used
		}
	case Lapse:
		if g.Status.Terminal() {
			return refuse(g.Status)
		}
		next.Status = Expired
	default:
		return g, fmt.Errorf("unknown event %T", ev)
	}
	next.Version++
	return next, nil
}

// ErrSecond tells that an approval is not that of a second person to what the first
// one allowed.
var ErrSecond = errors.New("approve: two different persons must allow the same")

// seconds checks that an approval is the second person's yes to the statement that the
// first one allowed: neither the same person again, nor somebody who stands in for them.
func (g Grant) seconds(ev Approve) error {
	first, d := g.Endorsed, ev.Decision
	if first == nil || d.Standing != "" || d.Policy != "" || first.By == d.By || first.Seat() == d.Seat() || first.By == d.Seat() || first.Seat() == d.By ||
		first.Type != ev.Type || first.Digest != d.Digest {
		return ErrSecond
	}
	return nil
}

// Permits reports whether an execution may start under g at now. It is true
// only for an approved grant of a valid type whose time has not run out.
func (g Grant) Permits(now Millis) bool {
	return g.As(now).Status == Approved && g.Type.Valid() && g.Decision != nil && (!g.TwoPersons() || g.Endorsed != nil)
}
