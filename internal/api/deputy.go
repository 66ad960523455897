package api

import (
	"encoding/json"

	"vogt/internal/grant"
)

// PathDeputies: GET lists the caller's appointments, newest first, both those that it
// made and those that it holds; DELETE {id} ends one.
const PathDeputies = "/api/deputies"

// TrustDeputyAdd appoints somebody who answers requests in the person's place:
// deputy; agents, addresses separated by commas, or * for all; max_risk, low, medium
// or high; from, RFC 3339, or "" for at once; until, RFC 3339; reason, or "".
const TrustDeputyAdd = "deputy.add"

// Deputy is such an appointment. Times are Unix seconds.
type Deputy struct {
	ID        string         `json:"id"`
	Status    string         `json:"status"` // to-come, in-force, over or revoked
	Person    string         `json:"person"`
	Deputy    string         `json:"deputy"`
	Agents    []string       `json:"agents"` // "*" for all
	MaxRisk   string         `json:"max_risk"`
	Reason    string         `json:"reason,omitempty"`
	CreatedAt int64          `json:"created_at"`
	From      int64          `json:"from"`
	Until     int64          `json:"until"`
	Strength  grant.Strength `json:"strength"`
	Record    int64          `json:"record"` // index of the signature in the log
	Answers   int64          `json:"answers"`
}

// Approval is one person's yes, as receipts tell of the first of two.
type Approval struct {
	DecidedBy string          `json:"decided_by"`
	DecidedAt int64           `json:"decided_at"`
	Strength  grant.Strength  `json:"strength"`
	Evidence  json.RawMessage `json:"evidence,omitempty"`
	Record    int64           `json:"record"`
	For       string          `json:"decided_for,omitempty"`       // whom a deputy stood in for
	Deputy    string          `json:"decided_as_deputy,omitempty"` // the appointment
}
