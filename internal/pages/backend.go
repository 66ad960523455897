package pages

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"vogt/internal/api"
	"vogt/internal/detail"
	"vogt/internal/grant"
	"vogt/internal/reading"
	"vogt/internal/statement"
)

// Backend is what the pages need from the authority, one small interface for
// each concern. Every field must be set.
//
// The rules for all of them: a Session that comes in is one that
// Sessions.Session returned for this very request. The methods of Decisions,
// Confirms and Removals and PrepareTrust, ChangeAgent, Panic, RevokeStanding, SafeOff
// and LeaveGroup are called only after the session's key has proven the call. The implementation still decides what
// that person may see or do. Errors that a person can do
// something about are (or wrap) one of the Err values below; any other error
// is logged and shown as "internal".
type Backend struct {
	SetUp      SetUp
	Links      Links
	Recoveries Recoveries
	Sessions   Sessions
	Cards      Cards
	Decisions  Decisions
	Trusts     Trusts
	Confirms   Confirms
	People     People
	Accounts   Accounts
	Removals   Removals
	Services   Services
	Patterns   Patterns
	Previews   Previews
	Safes      Safes
	Groups     Groups
	Log        Log
	Events     Events
}

func (b Backend) complete() bool {
	return b.SetUp != nil && b.Links != nil && b.Recoveries != nil && b.Sessions != nil && b.Cards != nil && b.Decisions != nil && b.Trusts != nil &&
		b.Confirms != nil && b.People != nil && b.Accounts != nil && b.Removals != nil && b.Services != nil &&
		b.Patterns != nil && b.Previews != nil && b.Safes != nil && b.Groups != nil && b.Log != nil && b.Events != nil
}

// What a backend may answer besides success.
var (
	// ErrNoSession: the cookie names no session that is still valid. 401.
	ErrNoSession = errors.New("not signed in")
	// ErrNotFound: no such thing, or not for this person. 404.
	ErrNotFound = errors.New("not found")
	// ErrChanged: the posted digest is not that of the statement that an answer
	// would sign now. Nothing was decided. 409.
	ErrChanged = errors.New("the statement changed")
	// ErrClosed: the request or change was answered, withdrawn or has run out. 409.
	ErrClosed = errors.New("already closed")
	// ErrTaken: the name or key of a change of trust belongs to somebody
	// already. 409.
	ErrTaken = errors.New("taken")
	// ErrExpired: a link or a passkey ceremony is over or used. 410.
	ErrExpired = errors.New("expired or used")
	// ErrUsed: a registration link is known to have been used. 410.
	ErrUsed = errors.New("used")
	// ErrWaits: it is too early for a recovery. 425.
	ErrWaits = errors.New("too early")
	// ErrProof: the passkey's response does not verify, or a stronger proof is
	// needed. 403.
	ErrProof = errors.New("proof not accepted")
	// ErrNoPasskey: the person has no passkey that could prove it. 403.
	ErrNoPasskey = errors.New("no passkey")
	// ErrLastWay: the account would be left without a key or passkey that
	// decides. 403.
	ErrLastWay = errors.New("the last way in")
	// ErrForbidden: this person may not do that. 403.
	ErrForbidden = errors.New("forbidden")
	// ErrInvalid: the input makes no sense to the authority. 400.
	ErrInvalid = errors.New("invalid input")
	// ErrService: a service that sent the person here is not known. 400.
	ErrService = errors.New("unknown service")
	// ErrRedirect: the address to return to is not the service's. 400.
	ErrRedirect = errors.New("the redirect address is not the service's")
	// ErrAsked: a service asks in a way that cannot be answered. 400.
	ErrAsked = errors.New("the service's request is not usable")
	// ErrAway: somebody else's server, which would have to be asked, does not
	// answer. 502.
	ErrAway = errors.New("another server does not answer")
	// ErrRefused: the authority has a rule against it. 409.
	ErrRefused = errors.New("refused by a rule")
	// ErrBusy: too much of that at once; a little later it works. 429.
	ErrBusy = errors.New("too much at once")
)

// Refusal is one of the errors above with what the authority says about it, in its
// own words, which are English. People are shown them.
type Refusal struct {
	As     error
	Reason string
}

func (r *Refusal) Error() string { return r.As.Error() + ": " + r.Reason }
func (r *Refusal) Unwrap() error { return r.As }

// Person names a principal for display. Email is its identity, Name is what
// people call it; an empty Name is shown as the part of Email before "@".
type Person struct {
	Email string
	Name  string
}

// Session is one signed-in browser.
type Session struct {
	ID     string // public name of the session; never the cookie's value
	Person Person
	// ProofKey is the SubjectPublicKeyInfo (DER, ECDSA P-256) that the script
	// registered at sign-in. A session without one reads and never decides.
	ProofKey []byte
}

// Ceremony is a passkey call that the browser is to make. Options is what
// PublicKeyCredential.parseCreationOptionsFromJSON or
// parseRequestOptionsFromJSON reads (WebAuthn level 3, section 5.1), bare or
// as the only member "publicKey" of an object.
type Ceremony struct {
	ID      string          `json:"ceremony,omitempty"`
	Options json.RawMessage `json:"options"`
}

// SignedIn is a finished sign-in: the cookie's value is the bearer of the
// session and leaves the server only in that cookie.
type SignedIn struct {
	Cookie  string
	Session Session
	Expires time.Time
}

// SetUpState is where a set-up link stands, for one browser.
type SetUpState string

// The states of a set-up link. The zero value offers nothing.
const (
	SetUpOpened    SetUpState = "opened"    // the digits are shown and not confirmed yet
	SetUpConfirmed SetUpState = "confirmed" // typed on the terminal: name and passkey may follow
	SetUpDone      SetUpState = "done"      // an owner exists
	SetUpExpired   SetUpState = "expired"   // over, voided by wrong digits, or unknown
	SetUpElsewhere SetUpState = "elsewhere" // another browser opened it first
)

// SetUpView is what the set-up page shows.
type SetUpView struct {
	State   SetUpState
	Digits  string // four digits, only while opened
	Expires time.Time
}

// NewOwner asks for the passkey of the first person.
type NewOwner struct {
	Token   string // of the link
	Browser string // of the binding cookie
	Name    string
	Email   string
}

// NewPasskey is the browser's answer to a ceremony, with the key that the
// session will sign clicks with.
type NewPasskey struct {
	Token    string // of a set-up link only
	Browser  string // set-up only
	Ceremony string
	Response json.RawMessage // RegistrationResponseJSON or AuthenticationResponseJSON
	ProofKey []byte          // SPKI, checked by this package
	Agent    string          // the browser's User-Agent, to name the session
	Address  string          // remote address, host:port
}

// SetUp makes the first owner. The first Open of a token draws the digits and
// binds the link to browser; the same browser gets the same digits again.
type SetUp interface {
	OpenSetUp(ctx context.Context, token, browser string) (SetUpView, error)
	BeginSetUp(ctx context.Context, o NewOwner) (Ceremony, error)
	FinishSetUp(ctx context.Context, p NewPasskey) (SignedIn, error)
}

// LinkView is what the page of a registration link shows before it is used.
type LinkView struct {
	Person  Person // whose account it is
	Expires time.Time
}

// Links makes another passkey for whoever holds a registration link. Link only
// looks; BeginRegister spends the link. One that cannot be spent is ErrUsed
// where it is known that somebody did, else ErrExpired.
type Links interface {
	Link(ctx context.Context, token string) (LinkView, error)
	BeginRegister(ctx context.Context, token string) (Ceremony, error)
	FinishRegister(ctx context.Context, p NewPasskey) (SignedIn, error)
}

// Recoveries shows a recovery to whoever holds its link. The time is that from
// which it may be used; before it, it comes with ErrWaits.
type Recoveries interface {
	Recovery(ctx context.Context, token string) (LinkView, error)
}

// Sessions signs people in and out. Login ceremonies are discoverable: the
// person is known only from the response.
type Sessions interface {
	Session(ctx context.Context, cookie string) (Session, error)
	BeginLogin(ctx context.Context) (Ceremony, error)
	FinishLogin(ctx context.Context, p NewPasskey) (SignedIn, error)
	// EndSession ends the session with that public ID, if it is this person's.
	EndSession(ctx context.Context, s Session, id string) error
}

// Waiting is a row of the inbox.
type Waiting struct {
	Grant grant.Grant
	Agent Person
}

// Inbox lists what waits for a person, oldest first, at most as many rows as
// were asked for. Total counts all.
type Inbox struct {
	Rows  []Waiting
	Total int
}

// Offer is one reach that the person may choose, narrowest first. The page
// computes the digest from Statement itself, and posts it with the answer. The
// narrowest offer's digest stays the same as long as the request does: an open
// page takes another one for a changed request. The end of a timed offer may
// differ with every reading; the one that was shown comes back with the answer.
type Offer struct {
	Type      grant.Type
	Duration  time.Duration // of a timed offer, for its label; the end is Statement.Expiry
	Statement statement.Statement
	Needs     grant.Strength // least strength that will be accepted
}

// Run is the last execution under a grant, as the agent's machine reported it.
type Run struct {
	At       time.Time
	Duration time.Duration
	ExitCode int
	Signal   string // name, when a signal ended it
	Error    string // it could not be started
}

// Card is one request with all that its page shows.
type Card struct {
	Grant grant.Grant
	Agent Person
	// Statement is what was answered or, while pending, what the narrowest
	// offer would sign. What the page shows of the action comes from it.
	Statement statement.Statement
	// Reading is what the authority itself reads in what Statement binds, the
	// argument list; nil where it cannot be read.
	Reading *reading.Reading
	// HostKind is what the authority's catalog knows of the host of a connection.
	HostKind string
	// Covered says of each call of Reading, in its order, which standing grant covers
	// it by now; the zero value is none. It is empty where none covers anything.
	Covered []Covering
	Offers  []Offer // only while pending
	Decider Person  // of an answered request
	Revoker Person  // of a revoked one
	Run     *Run
	// Endorser is who was the first of two persons to allow it, empty for nobody.
	Endorser Person
	// For is in whose place the reader answers, or the decider of an answered request
	// did, as a deputy; empty for nobody's. Until is when the reader's appointment ends.
	For   Person
	Until time.Time
}

// Covering names a standing grant.
type Covering struct {
	ID    string
	Class grant.Class
}

// Cards reads requests.
type Cards interface {
	Inbox(ctx context.Context, s Session, limit int) (Inbox, error)
	Card(ctx context.Context, s Session, id string) (Card, error)
	// Permissions lists what the agent may do without asking: its timed and
	// always grants that are in force, newest first, at most limit.
	Permissions(ctx context.Context, s Session, agent string, limit int) ([]grant.Grant, error)
}

// Choice is one reach of one card, named as the page showed it.
type Choice struct {
	Grant   string
	Type    grant.Type
	Expires int64 // unix seconds of a timed choice, else 0
	Digest  statement.Digest
}

// Decision is a person's answer. Click is verified; the implementation
// compares Digest with the statement that it would sign now (ErrChanged),
// checks that the strength suffices (ErrProof), and decides at most once
// (ErrClosed), so that a repeated click decides nothing.
type Decision struct {
	Choice
	Allow     bool
	Note      string // at most 2,000 bytes
	Click     Click
	Assertion json.RawMessage // AuthenticationResponseJSON over the digest, or nil
}

// Decisions answers requests.
type Decisions interface {
	// BeginDecision returns request options whose challenge is the digest's 32
	// bytes.
	BeginDecision(ctx context.Context, s Session, c Choice) (json.RawMessage, error)
	Decide(ctx context.Context, s Session, d Decision) error
	// Revoke takes an approved or pending request back.
	Revoke(ctx context.Context, s Session, id string) error
}

// NewTrust asks for a change of trust that a passkey will confirm.
type NewTrust struct {
	Operation string // one of the api.Trust… operations
	Params    map[string]string
}

// Trusts prepares and reads changes of trust. Trust fills in Statement and
// Digest for the person of the session while the change is pending.
type Trusts interface {
	PrepareTrust(ctx context.Context, s Session, n NewTrust) (id string, err error)
	Trust(ctx context.Context, s Session, id string) (api.Trust, error)
}

// TrustAnswer confirms a change of trust.
type TrustAnswer struct {
	ID        string
	Digest    statement.Digest
	Assertion json.RawMessage // AuthenticationResponseJSON over the digest
	Click     Click
}

// Confirms answers changes of trust.
type Confirms interface {
	BeginConfirm(ctx context.Context, s Session, id string, d statement.Digest) (json.RawMessage, error)
	// Confirm returns the address, on these pages, where this browser and no
	// other goes on with what was confirmed; "" where nothing is left to do.
	Confirm(ctx context.Context, s Session, a TrustAnswer) (link string, err error)
	Decline(ctx context.Context, s Session, id string) error
}

// Key is a public key or passkey for display.
type Key struct {
	ID          string
	Name        string
	Fingerprint string // SHA256:…, empty for passkeys
	Created     time.Time
	Used        time.Time // zero: never
	Dormant     time.Time // not usable before; zero: usable
	Managed     bool      // management added it, not the person
	LoginOnly   bool      // it logs in and never decides
}

// Agent is an agent of the person.
type Agent struct {
	Person
	Owner    string
	Approver string
	Active   bool // false: removed, kept for the record
	Paused   bool
	Created  time.Time
	Seen     time.Time // last authenticated; zero: never
	Waiting  int       // cards of it that wait
	Keys     []Key
	Labels   []api.Label // what it has seen and written
}

// AgentAct is what a click may do to an agent. Both narrow.
type AgentAct string

// The acts. Resuming is a change of trust, see Trusts.
const (
	PauseAgent  AgentAct = "pause"
	RemoveAgent AgentAct = "remove"
)

// People lists and narrows the person's agents. Agents returns removed ones
// last.
type People interface {
	Agents(ctx context.Context, s Session) ([]Agent, error)
	ChangeAgent(ctx context.Context, s Session, email string, act AgentAct) error
	Panic(ctx context.Context, s Session) (api.PanicResult, error)
}

// SignIn is a session or token in the account's list.
type SignIn struct {
	ID      string
	Name    string // what it is: browser and system, or the machine of a token
	Token   bool   // a token on a machine: reads, denies, revokes
	Created time.Time
	Seen    time.Time
}

// Account is what the account page lists.
type Account struct {
	Passkeys []Key
	Keys     []Key
	SignIns  []SignIn
	Sessions []ServiceSession // newest first
	Consents []ServiceConsent // newest first
	Recovery time.Time        // from which a recovery that waits may be used; zero: none waits
	Away     bool             // the person has said so: a recovery waits longer
}

// Protection is what is in force, as far as the authority knows by itself.
type Protection struct {
	Enforcement string // advisory, os-user, box, box+executor
	OwnUser     bool   // the authority runs under an OS user of its own
	Loopback    bool   // it listens on this machine only
	Bearer      string // the bearer_decisions switch: none, medium, high
}

// Accounts reads the person's own things.
type Accounts interface {
	Account(ctx context.Context, s Session) (Account, error)
	// Protection is asked for by the set-up page too, before anybody exists.
	Protection(ctx context.Context) (Protection, error)
}

// Removals takes away what the person signs in and decides with. Both refuse
// with ErrLastWay.
type Removals interface {
	RemovePasskey(ctx context.Context, s Session, id string) error
	RemoveKey(ctx context.Context, s Session, id string) error
}

// Patterns lists and takes back the person's standing grants.
type Patterns interface {
	// Standing lists them newest first, those that are over included.
	Standing(ctx context.Context, s Session) ([]api.Standing, error)
	RevokeStanding(ctx context.Context, s Session, id string) error
}

// Previews compares patterns with what was asked in the last thirty days. A pattern
// that the authority would not take is a Refusal with ErrInvalid.
type Previews interface {
	PreviewStanding(ctx context.Context, s Session, p grant.Pattern) (api.StandingPreview, error)
	Suggestions(ctx context.Context, s Session) ([]api.Suggestion, error)
}

// Safes tells what of the safe commands is in force, and switches them off: for one
// agent or, with "", for all.
type Safes interface {
	Safe(ctx context.Context, s Session) (api.Safe, error)
	SafeOff(ctx context.Context, s Session, agent string) error
}

// Groups lists the person's groups of agents, and takes agents out of them.
type Groups interface {
	Groups(ctx context.Context, s Session) ([]api.Group, error)
	LeaveGroup(ctx context.Context, s Session, group, agent string) error
}

// Who does things without being a principal, in Entry.By.Email.
const (
	Management = "_management_" // the management token
	Anonymous  = "_anonymous_"  // somebody who is not logged in
)

// Entry is a record of the audit log.
type Entry struct {
	Index  int64
	At     time.Time
	Type   string
	Grant  string // id, if the record is about one
	Agent  Person // whom it concerns; zero: nobody
	By     Person // who did it; zero: the authority itself
	Action string // the command in one line, or what else the record says
	Risk   detail.Risk
}

// LogState tells how far the log is signed. Broken is set when the log did
// not verify; every page then says so.
type LogState struct {
	Size         int64
	Signed       int64 // records below this index lie under a signed checkpoint
	CheckpointAt time.Time
	Broken       bool
}

// LogQuery selects entries, newest first.
type LogQuery struct {
	Before int64 // exclusive; 0: from the end
	Grant  string
	Limit  int
}

// Log reads the audit log.
type Log interface {
	Entries(ctx context.Context, s Session, q LogQuery) ([]Entry, error)
	LogState(ctx context.Context) (LogState, error)
}

// Event says that a grant that concerns the person was created or changed.
type Event struct {
	ID     string // for Last-Event-ID; opaque, without line breaks
	Grant  string
	Status grant.Status
}

// Events streams changes. After is the ID of the last event that the browser
// saw, or "". The channel ends with ctx, with the session, and when the
// authority stops; a backend that cannot resume from after starts with now,
// since a page that connects again reads the inbox anew.
type Events interface {
	Subscribe(ctx context.Context, s Session, after string) (<-chan Event, error)
}
