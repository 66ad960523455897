package token

// UseBridge marks tokens with which a service acts at another for a person.
const UseBridge = "bridge"

// Bridge are the claims of such a token. It has the members of a grant's token, since
// services read it as one; nothing here accepts it, as a login or as a grant. Its
// delegation_grant lets the service at which it is shown ask whether the bridge still
// holds. Times are Unix seconds.
type Bridge struct {
	Issuer     string   `json:"iss"`
	Subject    string   `json:"sub"` // the person
	Audience   string   `json:"aud"` // the service at which
	TargetHost string   `json:"target_host"`
	Act        Actor    `json:"act"` // the service that acts
	IssuedAt   int64    `json:"iat"`
	Expires    int64    `json:"exp"`
	ID         string   `json:"jti"`
	Use        string   `json:"vogt_use"`
	GrantID    string   `json:"grant_id"`
	GrantType  string   `json:"grant_type"` // "always"
	Approval   string   `json:"approval"`   // "always"
	Delegation string   `json:"delegation_grant"`
	Delegate   string   `json:"delegate"`
	DecidedBy  string   `json:"decided_by"`
	Scope      []string `json:"scope"`
}
