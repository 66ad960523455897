package api

import "vogt/internal/grant"

// PathDelegations: POST {delegate, audience, …} (a person's bearer under the
// bearer_decisions switch), GET ?role=delegator|delegate&limit&cursor, GET and DELETE
// {id}, POST {id}/validate.
const PathDelegations = "/api/delegations"

// The operations of a TrustRequest that let others act in a person's name.
const (
	// delegate, audience; scopes, separated by blanks, or "" for none; grant_type, or
	// "" for once; and one of duration, in seconds, and expires_at, RFC 3339, or
	// neither where the type is not timed
	TrustDelegationAdd = "delegation.add"
)

// NewDelegation is the body of POST /api/delegations. ExpiresAt is RFC 3339 text or a
// number of Unix seconds.
type NewDelegation struct {
	Delegate  string     `json:"delegate"`
	Audience  string     `json:"audience"`
	Scopes    []string   `json:"scopes,omitempty"`
	GrantType grant.Type `json:"grant_type,omitempty"`
	Duration  int64      `json:"duration,omitempty"`
	ExpiresAt any        `json:"expires_at,omitempty"`
}

// Delegation lets its delegate be, at the audience, in the delegator's place. It has
// the shape of a grant of type delegation; the members that lists are read by stand at
// the top as well. Times are Unix seconds.
type Delegation struct {
	ID        string            `json:"id"`
	Type      string            `json:"type"` // "delegation"
	Request   DelegationRequest `json:"request"`
	Status    grant.Status      `json:"status"`
	Delegator string            `json:"delegator"`
	Delegate  string            `json:"delegate"`
	Audience  string            `json:"audience"`
	Scopes    []string          `json:"scopes"` // none is nothing
	CreatedAt int64             `json:"created_at"`
	DecidedAt int64             `json:"decided_at"`
	DecidedBy string            `json:"decided_by"`
	ExpiresAt int64             `json:"expires_at,omitempty"` // 0: until it is revoked
	UsedAt    int64             `json:"used_at,omitempty"`    // the last time
	Uses      int64             `json:"use_count"`
	Strength  grant.Strength    `json:"strength"`
	Record    int64             `json:"record"` // index of the signature in the log
}

// DelegationRequest is what was asked for, in the wire's words.
type DelegationRequest struct {
	Requester string     `json:"requester"`
	Host      string     `json:"target_host"`
	Audience  string     `json:"audience"`
	Type      grant.Type `json:"grant_type"`
	Delegator string     `json:"delegator"`
	Delegate  string     `json:"delegate"`
	Scopes    []string   `json:"scopes,omitempty"`
	Duration  int64      `json:"duration,omitempty"`
}

// Delegations is a page of delegations, newest first.
type Delegations struct {
	Data       []Delegation `json:"data"`
	Pagination Pagination   `json:"pagination"`
}

// ValidateDelegation is the body of POST /api/delegations/{id}/validate: might this
// delegate use it at this audience now? Nothing is spent.
type ValidateDelegation struct {
	Delegate string `json:"delegate"`
	Audience string `json:"audience"`
}

// DelegationValidity answers it. Whoever is no party to the delegation is told
// nothing but Valid; why not, and the delegation itself, are for the parties.
type DelegationValidity struct {
	Valid      bool        `json:"valid"`
	Error      string      `json:"error,omitempty"`
	Delegation *Delegation `json:"delegation,omitempty"`
	Scopes     []string    `json:"scopes,omitempty"`
}
