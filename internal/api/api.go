// Package api holds the JSON shapes of Vogt's HTTP interface, shared by the
// authority's handlers and the client, so that the two cannot drift apart.
//
// It owns field names and the names of headers and paths. It leaves out all
// behaviour. The shapes under /api are a superset of the OpenApe grants API:
// unknown fields are accepted and ignored in both directions.
package api

import (
	"encoding/json"

	"vogt/internal/detail"
	"vogt/internal/grant"
	"vogt/internal/statement"
)

// Paths of the interface. {id} and {email} are percent-encoded.
const (
	PathDiscovery    = "/.well-known/openid-configuration"
	PathJWKS         = "/.well-known/jwks.json"
	PathHealth       = "/api/health"
	PathOpenAPI      = "/api/openapi.json" // describes all of it; needs no login
	PathChallenge    = "/api/auth/challenge"
	PathAuthenticate = "/api/auth/authenticate"
	PathLogout       = "/api/auth/logout" // revokes the bearer that it carries
	PathWhoAmI       = "/api/me"
	PathMyKeys       = "/api/me/keys" // DELETE {id}: the caller's own SSH key, which a login may take away
	PathGrants       = "/api/grants"
	PathMyAgents     = "/api/my-agents"
	PathEnroll       = "/api/enroll"
	PathPanic        = "/api/panic"
	PathTrust        = "/api/trust"
	PathStanding     = "/api/standing-grants"
	PathSafe         = "/api/safe-commands"
	PathGroups       = "/api/agent-groups"
	PathShapes       = "/api/shapes" // public: what the catalog knows
	PathUsers        = "/api/users"  // {email}/agents, {email}/yolo-policy
	PathAudit        = "/api/audit"
	PathEvents       = "/api/events" // server-sent events
	PathConnections  = "/api/connections"
)

// CheckpointHeader carries, in requests, the base64 (standard) of the last
// log checkpoint that the client remembers and, in responses to authenticated
// calls, that of the log as it is now. An authority whose log is behind a
// checkpoint that it signed itself was restored from an older copy: it opens
// a new epoch before it answers.
const CheckpointHeader = "Vogt-Checkpoint"

// Grant is a grant as the interface shows it. Times are Unix seconds. To
// callers who are not a party to the grant only ID and Status are shown.
type Grant struct {
	ID         string         `json:"id"`
	Type       string         `json:"type,omitempty"` // "command"
	Requester  string         `json:"requester,omitempty"`
	Owner      string         `json:"owner,omitempty"`
	Request    *grant.Request `json:"request,omitempty"`
	Status     grant.Status   `json:"status"`
	CreatedAt  int64          `json:"created_at,omitempty"`
	DecidedAt  int64          `json:"decided_at,omitempty"`
	DecidedBy  string         `json:"decided_by,omitempty"`
	ExpiresAt  int64          `json:"expires_at,omitempty"` // end of a timed permission
	UsedAt     int64          `json:"used_at,omitempty"`
	ValidUntil int64          `json:"valid_until,omitempty"` // end of the wait, or of the permission, of any type
	Note       string         `json:"note,omitempty"`        // of the person who decided
	Strength   grant.Strength `json:"strength,omitempty"`
	Risk       string         `json:"risk,omitempty"` // as the authority derived it
	Program    string         `json:"program,omitempty"`
	Digest     string         `json:"digest,omitempty"` // of the statement that was approved
	Uses       int64          `json:"uses,omitempty"`
	Joined     int64          `json:"joined,omitempty"` // identical requests that joined
	ApproveURL string         `json:"approve_url,omitempty"`
	// Approvals is how many persons must allow it, where one is not enough. First is who
	// has, since when, and how far.
	Approvals int64      `json:"approvals_needed,omitempty"`
	First     string     `json:"first_approved_by,omitempty"`
	FirstAt   int64      `json:"first_approved_at,omitempty"`
	FirstType grant.Type `json:"first_grant_type,omitempty"`
	FirstEnds int64      `json:"first_expires_at,omitempty"`
	For       string     `json:"decided_for,omitempty"` // whom DecidedBy stood in for as a deputy
	// Automatic is set on creation when an existing permission covered it.
	Automatic bool   `json:"approved_automatically,omitempty"`
	AutoKind  string `json:"auto_approval_kind,omitempty"` // "reuse", "standing" or "yolo"
	// Standing is the standing grant that decided in the person's name.
	Standing string `json:"decided_by_standing_grant,omitempty"`
	*Hints
	// Policy is the auto-approval policy that did.
	Policy  string `json:"decided_by_policy,omitempty"`
	Binding string `json:"binding,omitempty"` // as in a receipt
}

// Hints stand beside a request that waits, for who may decide about it, in the answer
// to GET /api/grants/{id}. They are derived from the authority's own reading.
type Hints struct {
	Similar     *SimilarGrants       `json:"similar_grants,omitempty"`
	Suggestions []WideningSuggestion `json:"widening_suggestions,omitempty"`
	Diagnostics []Diagnostic         `json:"pending_diagnostics,omitempty"`
	// Covered has for each call of the request the standing grant that covers it by now,
	// "" for none. The answer is asked for the rest.
	Covered []string `json:"covered,omitempty"`
}

// SimilarGrants are permissions for almost the same. Merged is what all of them name.
// Widened is always empty: without what differs nothing would be left to name.
type SimilarGrants struct {
	Grants  []SimilarGrant `json:"similar_grants"`
	Widened []detail.Wire  `json:"widened_details"`
	Merged  []detail.Wire  `json:"merged_details"`
}

// SimilarGrant is one of them, and to which details of the request it is similar.
type SimilarGrant struct {
	Grant   Grant `json:"grant"`
	Indices []int `json:"similar_detail_indices"`
}

// WideningSuggestion is a detail that could be chosen in the place of the Index-th one: for
// widened_details of an approval, with one detail for each index. Scope is exact,
// sibling-type, directory or subtree.
type WideningSuggestion struct {
	Index      int         `json:"index"`
	Scope      string      `json:"scope"`
	Label      string      `json:"label"`
	Detail     detail.Wire `json:"detail"`
	Permission string      `json:"permission"`
}

// Diagnostic says why nothing has answered the request yet. Source is risk, standing
// or yolo.
type Diagnostic struct {
	Source  string         `json:"source"`
	Reason  string         `json:"reason"`
	Summary string         `json:"summary"`
	Detail  map[string]any `json:"detail"`
}

// Standing is a pattern that a person has signed: GET /api/standing-grants
// (a bare list, newest first, those that are over included) and, to take one
// back, DELETE /api/standing-grants/{id}.
type Standing struct {
	ID         string         `json:"id"`
	Type       string         `json:"type"`   // "standing"
	Status     grant.Status   `json:"status"` // approved, revoked, expired, or used when it is used up
	Author     string         `json:"owner"`
	Pattern    grant.Pattern  `json:"pattern"`
	Reason     string         `json:"reason,omitempty"`
	CreatedAt  int64          `json:"created_at"`
	ExpiresAt  int64          `json:"expires_at"`
	Strength   grant.Strength `json:"strength"`
	Record     int64          `json:"record"`           // index of the signature in the log
	Paused     string         `json:"paused,omitempty"` // why it covers nothing at the moment
	Uses       int64          `json:"use_count"`
	LastUsedAt int64          `json:"last_used_at,omitempty"`

	// As clients of the OpenApe wire read it. Pattern is what counts.
	DecidedAt int64            `json:"decided_at"`
	DecidedBy string           `json:"decided_by"`
	Request   *StandingRequest `json:"request,omitempty"`
}

// StandingRequest is the body of POST /api/standing-grants, and how a standing
// grant is shown to clients that send it. GrantType is always (the default, which
// ends after 90 days) or timed, with Duration in seconds. What a pattern cannot
// say is refused with 400 (docs/standing.md).
type StandingRequest struct {
	Kind      string            `json:"type,omitempty"` // "standing"; in answers
	Owner     string            `json:"owner,omitempty"`
	Requester string            `json:"requester,omitempty"` // the delegate; in answers
	Delegate  string            `json:"delegate"`
	Audience  string            `json:"audience"`
	Chain     []detail.Resource `json:"resource_chain_template"`
	CLI       string            `json:"cli_id,omitempty"`
	Action    string            `json:"action,omitempty"`
	MaxRisk   string            `json:"max_risk,omitempty"`
	Host      string            `json:"target_host,omitempty"` // "*" for any
	Type      grant.Type        `json:"grant_type,omitempty"`
	Duration  int64             `json:"duration,omitempty"`
	Reason    string            `json:"reason,omitempty"`
}

// Seed is the body of POST /api/standing-grants/bulk-seed: agents, at most 50.
type Seed struct {
	Delegates []string `json:"delegates"`
}

// Seeded answers it, an entry for each agent that was named.
type Seeded struct {
	Results []SeededAgent `json:"results"`
}

// SeededAgent says how many safe commands an agent was given, or had.
type SeededAgent struct {
	Delegate string `json:"delegate"`
	Created  int    `json:"created"`
	Skipped  int    `json:"skipped"`
}

// AgentOverview is an entry of GET /api/users/{email}/agents. GrantCounts are of the
// agent's newest 1,000 grants, by status.
type AgentOverview struct {
	Email       string                 `json:"email"`
	DisplayName string                 `json:"display_name"`
	Active      bool                   `json:"isActive"`
	Standing    []Standing             `json:"standing_grants"`
	Recent      []RecentGrant          `json:"recent_grants"` // the newest 20
	GrantCounts map[grant.Status]int64 `json:"grant_counts"`
}

// RecentGrant is a grant with why the standing grant behind it was written.
type RecentGrant struct {
	Grant
	StandingReason string `json:"decided_by_standing_grant_reason,omitempty"`
	SafeCommand    bool   `json:"decided_by_safe_command"`
}

// Policy approves an agent's requests without a card: it is shown flat and beside
// that under "policy", as clients read either. Times are Unix seconds. ExpiresAt is
// null only where there is no policy.
type Policy struct {
	ID         string           `json:"id,omitempty"`
	Agent      string           `json:"agentEmail"`
	Audience   string           `json:"audience"` // "*" for any
	Mode       grant.PolicyMode `json:"mode"`
	By         string           `json:"enabledBy,omitempty"`
	Allow      []string         `json:"allowPatterns"`
	Deny       []string         `json:"denyPatterns"`
	DenyRisk   *string          `json:"denyRiskThreshold"` // this risk and above is asked
	EnabledAt  int64            `json:"enabledAt,omitempty"`
	ExpiresAt  *int64           `json:"expiresAt"`
	UpdatedAt  int64            `json:"updatedAt,omitempty"`
	Strength   grant.Strength   `json:"strength,omitempty"`
	Record     int64            `json:"record,omitempty"` // of the log, that tells who wrote it
	Paused     string           `json:"paused,omitempty"`
	Uses       int64            `json:"use_count"`
	LastUsedAt int64            `json:"last_used_at,omitempty"`
	Limits     grant.Limits     `json:"limits"`
}

// PolicyAnswer answers GET and PUT /api/users/{email}/yolo-policy. Without a policy
// Policy is null and the flat members are those of an empty allow-list.
type PolicyAnswer struct {
	Policy
	Whole *Policy `json:"policy"`
}

// SetPolicy is the body of PUT /api/users/{email}/yolo-policy?audience=, by a
// person's bearer, only as far as bearer_decisions admits. An ExpiresAt of 0 or null
// is 90 days from now.
type SetPolicy struct {
	Audience  string           `json:"audience,omitempty"`
	Mode      grant.PolicyMode `json:"mode"`
	Allow     []string         `json:"allowPatterns"`
	Deny      []string         `json:"denyPatterns"`
	DenyRisk  string           `json:"denyRiskThreshold"`
	ExpiresAt int64            `json:"expiresAt"`
}

// TestStanding is the body of POST /api/standing-grants/test: what would
// standing grants make of this request? Nothing is asked or recorded.
type TestStanding struct {
	Agent   string        `json:"agent,omitempty"` // a person's agent; an agent tests for itself
	Request grant.Request `json:"request"`
}

// StandingTest answers it. Covered says that no card would be made.
type StandingTest struct {
	Covered bool         `json:"covered"`
	Risk    string       `json:"risk"`
	Calls   []TestedCall `json:"calls"`
}

// TestedCall is a call, the standing grant that covers it, or why none does.
type TestedCall struct {
	Shown      string   `json:"shown,omitempty"`
	Permission string   `json:"permission"`
	Effects    string   `json:"effects"`
	Risk       string   `json:"risk"`
	Standing   string   `json:"standing,omitempty"`
	Missed     []Missed `json:"missed,omitempty"`
}

// PreviewStanding is the body of POST /api/standing-grants/preview: what would this
// pattern have covered, of what was asked in the last days (default 30, at most 90)?
// Nothing is changed.
type PreviewStanding struct {
	Pattern grant.Pattern `json:"pattern"`
	Days    int           `json:"days,omitempty"`
}

// StandingPreview answers it. Requests of the last days are counted as they were
// asked, newest first; Covers and StaysOut show a few of them, and of examples.
type StandingPreview struct {
	Pattern  grant.Pattern `json:"pattern"` // in its one form
	Requests int           `json:"requests"`
	Covered  int           `json:"covered"`
	Cards    int           `json:"cards"` // of those covered, how many a person answered
	Covers   []Previewed   `json:"covers"`
	StaysOut []Previewed   `json:"stays_out"`
}

// Previewed is a command, how often it was asked (0: an example), and why it is not
// covered.
type Previewed struct {
	Command string `json:"command"`
	Count   int    `json:"count,omitempty"`
	Why     string `json:"why,omitempty"`
}

// Suggestion is a pattern that would have spared cards, made from what a person has
// allowed before and nothing that was denied: GET /api/standing-grants/suggestions
// ?days=30. It does nothing until somebody signs it.
type Suggestion struct {
	Key      string        `json:"key"` // names the pattern: the same history gives the same
	Pattern  grant.Pattern `json:"pattern"`
	Cards    int           `json:"cards"` // that a person answered and it would have covered
	Examples []Previewed   `json:"examples"`
}

// Missed says why a standing grant does not cover a call.
type Missed struct {
	Standing string `json:"standing"`
	Why      string `json:"why"`
}

// List is a page of grants, newest first.
type List struct {
	Data       []Grant    `json:"data"`
	Pagination Pagination `json:"pagination"`
}

// Pagination: Cursor is opaque; null on the last page.
type Pagination struct {
	Cursor  *string `json:"cursor"`
	HasMore bool    `json:"has_more"`
}

// Create is the body of POST /api/grants: a grant.Request. Requester is
// ignored; the authenticated principal asks.
type Create = grant.Request

// Offer is the answer to GET /api/grants/{id}/statement?grant_type=T and, for
// timed, &expires_at=UNIX: the exact statement that an approval of that reach
// would sign. A client computes the digest itself before it signs.
type Offer struct {
	Statement statement.Statement `json:"statement"`
	Digest    statement.Digest    `json:"digest"`
	Needs     grant.Strength      `json:"needs"` // least strength that will be accepted
	Risk      string              `json:"risk"`
}

// Decide is the body of POST /api/grants/{id}/approve and /deny. An empty
// body is the same as {}: it is accepted from a bearer for deny, and for
// approve only when the authority's bearer_decisions switch admits the risk.
type Decide struct {
	GrantType grant.Type        `json:"grant_type,omitempty"`
	Duration  int64             `json:"duration,omitempty"`   // seconds; bearer decisions of timed
	ExpiresAt int64             `json:"expires_at,omitempty"` // unix seconds; signed decisions of timed
	Digest    *statement.Digest `json:"digest,omitempty"`
	Note      string            `json:"note,omitempty"` // at most 2,000 bytes
	// Signature is an armoured SSHSIG, namespace vogt-decision-v1, whose
	// message is the digest in lower-case hex, without newline.
	Signature string `json:"signature,omitempty"`

	// What is permitted beyond the request, as a standing grant: either Widened, a
	// detail in the place of each of widening_suggestions, or what the grants in
	// Extended name as well (ExtendMode merge), which end with it.
	Widened    []detail.Wire `json:"widened_details,omitempty"`
	ExtendMode string        `json:"extend_mode,omitempty"`
	Extended   []string      `json:"extend_grant_ids,omitempty"`
}

// Decided answers approve.
type Decided struct {
	Grant    Grant    `json:"grant"`
	AuthzJWT string   `json:"authz_jwt,omitempty"`       // only where the decider may also use it
	Standing []string `json:"standing_grants,omitempty"` // that were signed to widen it
}

// Token answers POST /api/grants/{id}/token (requester only).
type Token struct {
	AuthzJWT string `json:"authz_jwt"`
	Grant    Grant  `json:"grant"`
}

// Consumed answers POST /api/grants/{id}/consume, whose bearer is the grant
// token. Status is "consumed" (once) or "valid" (timed, always). A grant that
// does not permit answers 200 all the same, with Error: "already_consumed",
// "revoked", "denied", "expired" or "not_approved", and its Status.
type Consumed struct {
	Status  string   `json:"status"`
	Error   string   `json:"error,omitempty"`
	Use     string   `json:"use_id,omitempty"` // names this execution for the outcome
	Grant   *Grant   `json:"grant,omitempty"`
	Receipt *Receipt `json:"receipt,omitempty"`
}

// Verify is the body of POST /api/grants/verify, which needs no login.
type Verify struct {
	Token string `json:"token"`
}

// Verified answers it. Nothing is spent, and nothing is said of tokens that would
// not be taken.
type Verified struct {
	Valid bool   `json:"valid"`
	Grant *Grant `json:"grant,omitempty"` // id and status
	Error string `json:"error,omitempty"`
}

// Shape is a program of the catalog: GET /api/shapes (a bare list) and
// /api/shapes/{cli}. An entry of the catalog says more than the operations of a shape
// could, so that none are listed; POST /api/shapes/resolve reads an argument list.
type Shape struct {
	CLI         string     `json:"cli_id"`
	Executable  string     `json:"executable"`
	Description string     `json:"description"`
	Source      string     `json:"source"` // builtin or custom
	Digest      string     `json:"digest"` // "sha256:" and hex, of the entry's text
	Operations  []struct{} `json:"operations"`
}

// Resolve is the body of POST /api/shapes/resolve. Argv begins with the program.
type Resolve struct {
	CLI  string   `json:"cli_id,omitempty"`
	Argv []string `json:"argv"`
	Host string   `json:"target_host,omitempty"`
}

// Resolved is what the authority reads: Detail of the first program that would run,
// Details of all.
type Resolved struct {
	CLI        string            `json:"cli_id"`
	Operation  string            `json:"operation_id"`
	Executable string            `json:"executable"`
	Command    []string          `json:"commandArgv"`
	Bindings   map[string]string `json:"bindings"`
	Detail     detail.Wire       `json:"detail"`
	Details    []detail.Wire     `json:"details"`
	Context    grant.Context     `json:"executionContext"`
	Permission string            `json:"permission"`
	Synthetic  bool              `json:"synthetic"` // the catalog does not know what it does
}

// Outcome is the body of POST /api/grants/{id}/outcome, sent by the requester
// with its login bearer after the child ended.
type Outcome struct {
	Use        string `json:"use_id"`
	ExitCode   int    `json:"exit_code"`
	Signal     string `json:"signal,omitempty"` // name, when a signal ended it
	DurationMS int64  `json:"duration_ms"`
	Error      string `json:"error,omitempty"` // it could not be started
}

// Receipt proves a decision: GET /api/grants/{id}/receipt, and in Consumed.
type Receipt struct {
	GrantID    string              `json:"grant_id"`
	Statement  statement.Statement `json:"statement"`
	Digest     statement.Digest    `json:"digest"`
	DecidedBy  string              `json:"decided_by"`
	DecidedAt  int64               `json:"decided_at"`
	Strength   grant.Strength      `json:"strength"`
	Evidence   json.RawMessage     `json:"evidence,omitempty"` // assertion or signature
	Record     int64               `json:"record"`             // index of the decision in the log
	Checkpoint string              `json:"checkpoint"`         // signed note text
	Proof      json.RawMessage     `json:"proof,omitempty"`    // inclusion proof; only from /receipt
	// For is whom DecidedBy stood in for, Deputy the appointment; First the yes of the
	// first of two persons.
	For    string    `json:"decided_for,omitempty"`
	Deputy string    `json:"decided_as_deputy,omitempty"`
	First  *Approval `json:"first,omitempty"`
	// Standing is the standing grant that decided, StandingRecord the index of
	// its signature in the log.
	Standing       string `json:"decided_by_standing_grant,omitempty"`
	StandingRecord int64  `json:"standing_record,omitempty"`
	// Policy is the auto-approval policy that decided, and the same of it.
	Policy       string `json:"decided_by_policy,omitempty"`
	PolicyRecord int64  `json:"policy_record,omitempty"`
	// Binding is "client" where only the client that asked ties the permission to
	// the command: it need not fetch a token, and runs what it likes.
	Binding string `json:"binding,omitempty"`
}

// Batch is the body of POST /api/grants/batch.
type Batch struct {
	Operations []Operation `json:"operations"`
}

// Operation is one item: action approve, deny or revoke.
type Operation struct {
	ID        string     `json:"id"`
	Action    string     `json:"action"`
	GrantType grant.Type `json:"grant_type,omitempty"`
	Duration  int64      `json:"duration,omitempty"`
}

// BatchResults answers a batch: status 200 when all succeeded, else 207.
type BatchResults struct {
	Results []BatchResult `json:"results"`
}

// BatchResult is the fate of one operation.
type BatchResult struct {
	ID      string       `json:"id"`
	Status  grant.Status `json:"status,omitempty"`
	Success bool         `json:"success"`
	Error   *Problem     `json:"error,omitempty"`
}

// Problem is an RFC 9457 problem document.
type Problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
	// Who can change it and how, for people and agents.
	Hint string `json:"hint,omitempty"`
}

// ChallengeRequest asks for a login challenge; agent_id is an alias of id.
type ChallengeRequest struct {
	ID      string `json:"id,omitempty"`
	AgentID string `json:"agent_id,omitempty"`
}

// Challenge is 64 lower-case hex digits, single use, 60 s.
type Challenge struct {
	Challenge string `json:"challenge"`
}

// Authenticate answers a challenge: standard base64 of a raw Ed25519
// signature over the UTF-8 bytes of the challenge string.
type Authenticate struct {
	ID        string `json:"id,omitempty"`
	AgentID   string `json:"agent_id,omitempty"`
	Challenge string `json:"challenge"`
	Signature string `json:"signature"`
	PublicKey string `json:"public_key,omitempty"`
}

// Login is the answer to Authenticate.
type Login struct {
	Token     string `json:"token"`
	ID        string `json:"id"`
	AgentID   string `json:"agent_id"`
	Email     string `json:"email"`
	Name      string `json:"name"`
	Act       string `json:"act"` // "human" or "agent"
	ExpiresIn int64  `json:"expires_in"`
	Owner     string `json:"owner,omitempty"` // of an agent
	// LogKey is the verifier key of the audit log; the client pins it.
	LogKey string `json:"log_key"`
}

// Principal is a person or an agent: GET /api/me, /api/my-agents.
type Principal struct {
	Email     string `json:"email"`
	Name      string `json:"name"`
	Owner     string `json:"owner,omitempty"`
	Approver  string `json:"approver,omitempty"`
	Type      string `json:"type"` // "human" or "agent"
	Active    bool   `json:"isActive"`
	Paused    bool   `json:"paused"`
	CreatedAt int64  `json:"createdAt"`
	LastLogin int64  `json:"lastLoginAt,omitempty"` // milliseconds
	Keys      []Key  `json:"keys,omitempty"`
	// Labels, of an agent, shown with it alone.
	Labels []Label `json:"labels,omitempty"`
}

// Key is a public key of a principal.
type Key struct {
	ID           string `json:"keyId"`
	Name         string `json:"name"`
	PublicKey    string `json:"publicKey"`
	CreatedAt    int64  `json:"createdAt"`
	DormantUntil int64  `json:"dormantUntil,omitempty"`
	Source       string `json:"source,omitempty"`    // how it came: owner, trust, management
	LoginOnly    bool   `json:"loginOnly,omitempty"` // it logs in and never decides
}

// Enroll is the body of POST /api/enroll (bearer of a person, only where
// bearer_decisions is not none) and names what TrustRequest asks for.
type Enroll struct {
	Name      string `json:"name"`
	PublicKey string `json:"publicKey"`
}

// Enrolled answers an enrolment.
type Enrolled struct {
	Email    string `json:"email"`
	Name     string `json:"name"`
	Owner    string `json:"owner"`
	Approver string `json:"approver"`
	Status   string `json:"status"`
	// SafeCommands counts the safe commands that the agent got, by the standing
	// grant Safe, in Folders.
	SafeCommands int      `json:"seeded_safe_commands"`
	Safe         string   `json:"safe_standing_grant,omitempty"`
	Folders      []string `json:"safe_folders,omitempty"`
}

// Safe is the safe commands of the caller's agents: GET /api/safe-commands. DELETE
// /api/safe-commands switches them off for all of them, DELETE
// /api/safe-commands/{email} for one agent; a login suffices. On again it goes by a
// change of trust, TrustSafeOn.
type Safe struct {
	On       bool        `json:"on"` // for the owner's agents; each may be off by itself
	Commands []string    `json:"commands"`
	Agents   []SafeAgent `json:"agents"`
}

// SafeAgent is one agent's.
type SafeAgent struct {
	Email    string   `json:"email"`
	Name     string   `json:"name"`
	On       bool     `json:"on"`
	Folders  []string `json:"folders"`
	Standing string   `json:"standing_grant,omitempty"`
}

// Group is a group of agents that patterns may be for: GET /api/agent-groups, a
// bare list. DELETE /api/agent-groups/{name}/{email} takes an agent out.
type Group struct {
	Name   string   `json:"name"`
	Agents []string `json:"agents"`
}

// Label is what an agent has seen ("secret", "foreign") or written ("wrote:PATH"),
// and the grant under which. Patterns cover less because of it.
type Label struct {
	Label   string `json:"label"`
	Since   int64  `json:"since"`
	GrantID string `json:"grant_id"`
}

// The operations of a TrustRequest and their parameters.
const (
	// name, public_key; safe: a JSON list of the folders in which the agent may use
	// the safe commands, "off" for none, or "" for none but what names no path
	TrustAgentAdd    = "agent.add"
	TrustAgentRotate = "agent.rotate" // email, public_key
	TrustAgentResume = "agent.resume" // email, or "" for all agents of the person
	TrustKeyAdd      = "key.add"      // public_key: another SSH key of the person
	TrustPasskeyAdd  = "passkey.add"  // a link, for whoever confirms, good once for ten minutes, that registers another passkey of theirs
	TrustDevice      = "device.login" // name: a token on this machine that reads, denies and revokes
	// pattern: a grant.Pattern as JSON; days, 1 to 366, or "" for 90; reason, or ""
	TrustStandingAdd    = "standing.add"
	TrustStandingResume = "standing.resume" // id: of one that was paused because a limit was exceeded
	TrustSafeOn         = "safe.on"         // email, or "" for all agents of the person; safe: folders, as for agent.add
	TrustGroupSet       = "group.set"       // name; agents: their addresses with commas, all of the group's
	TrustLabelsEnd      = "labels.end"      // email: of the agent whose labels end
	// policy: a grant.Policy as JSON; days, 1 to 366, or "" for 90
	TrustPolicySet = "policy.set"
)

// TrustRequest is the body of POST /api/trust: it prepares a change that only
// a person's proof makes. It needs no authentication when a page confirms it;
// with a person's bearer the statement is ready for a signature at once.
// Secret (32 random bytes, hex) lets the asker poll for the result.
type TrustRequest struct {
	Operation string            `json:"operation"`
	Params    map[string]string `json:"params"`
	Secret    string            `json:"secret"`
}

// Trust is a prepared change: POST /api/trust and GET /api/trust/{id} with
// header Vogt-Trust-Secret. It lives for ten minutes.
type Trust struct {
	ID         string               `json:"id"`
	Operation  string               `json:"operation"`
	Params     map[string]string    `json:"params"`
	Status     string               `json:"status"` // pending, confirmed, declined, expired
	Statement  *statement.Statement `json:"statement,omitempty"`
	Digest     *statement.Digest    `json:"digest,omitempty"`
	ConfirmURL string               `json:"confirm_url"`
	ExpiresAt  int64                `json:"expires_at"`
	// Result of a confirmed change.
	Enrolled   *Enrolled   `json:"enrolled,omitempty"`
	Login      *Login      `json:"login,omitempty"`
	Standing   *Standing   `json:"standing,omitempty"`
	Policy     *Policy     `json:"policy,omitempty"`
	Deputy     *Deputy     `json:"deputy,omitempty"`
	Delegation *Delegation `json:"delegation,omitempty"`
	Link       string      `json:"link,omitempty"` // only in the answer to the call that confirmed
}

// TrustSecretHeader names the header that carries TrustRequest.Secret.
const TrustSecretHeader = "Vogt-Trust-Secret"

// ConfirmTrust is the body of POST /api/trust/{id}/confirm with a person's
// bearer: an armoured SSHSIG over the digest in lower-case hex, namespace
// vogt-decision-v1.
type ConfirmTrust struct {
	Digest    statement.Digest `json:"digest"`
	Signature string           `json:"signature"`
}

// Panic is the body of POST /api/panic (any signed-in person, token enough)
// and counts in PanicResult what it stopped.
type Panic struct {
	Reason string `json:"reason,omitempty"`
}

// PanicResult counts what panic stopped.
type PanicResult struct {
	Agents int64 `json:"agents"`
	Tokens int64 `json:"tokens"`
	Grants int64 `json:"grants"`
}

// AuditRecord is a record of the log: GET /api/audit/records?after=N&limit=M
// (ascending after index N, exclusive; before=N descending), filter grant=ID,
// type=T.
type AuditRecord struct {
	Index int64           `json:"index"`
	Type  string          `json:"type"`
	Time  int64           `json:"time"` // unix milliseconds
	Body  json.RawMessage `json:"body,omitempty"`
	Leaf  string          `json:"leaf"`           // hex
	Salt  string          `json:"salt,omitempty"` // hex
}

// AuditRecords is a page of records.
type AuditRecords struct {
	Records    []AuditRecord `json:"records"`
	Size       int64         `json:"size"`
	Checkpoint string        `json:"checkpoint"`
}

// Connections is the body of POST /api/connections: what the proxy of a box has seen
// since the last report. The owner's login makes it observed, since the box does not
// have that; from the agent's own it is claimed. Serial counts the reports of a box
// from 1; one that is sent again is recorded once.
type Connections struct {
	Agent   string       `json:"agent"` // email
	Box     string       `json:"box"`   // 16 hex digits that tell it from others
	Serial  int64        `json:"serial"`
	Lost    int64        `json:"lost,omitempty"` // that could not be kept until now
	Records []Connection `json:"records"`
}

// Connection is one that has ended, or that was refused.
type Connection struct {
	Time     int64  `json:"time"` // unix milliseconds, of its beginning
	MS       int64  `json:"ms"`
	Protocol string `json:"protocol"`
	Host     string `json:"host,omitempty"`
	Port     uint16 `json:"port,omitempty"`
	Address  string `json:"address,omitempty"` // that was dialled
	SNI      string `json:"sni,omitempty"`
	Verdict  string `json:"verdict"` // allowed, refused, cut
	Reason   string `json:"reason,omitempty"`
	Basis    string `json:"basis,omitempty"` // what permitted it
	Sent     int64  `json:"sent"`
	Received int64  `json:"received"`
}

// MaxConnections is how many connections one report may have.
const MaxConnections = 200

// Health answers GET /api/health.
type Health struct {
	Status  string `json:"status"` // "ok"
	Version string `json:"version"`
	Issuer  string `json:"issuer"`
	Epoch   uint64 `json:"epoch"`
	// Bearer is the bearer_decisions switch, which doctor names.
	Bearer string `json:"bearer_decisions"`
	Pages  string `json:"pages"` // base address of the pages
	Time   int64  `json:"time"`  // unix milliseconds, for the clock check
	LogKey string `json:"log_key"`
	SetUp  bool   `json:"set_up"` // an owner exists
}
