package api

// Paths of OAuth 2 and OpenID Connect, and of what people see of it.
const (
	PathAuthorize      = "/authorize"
	PathToken          = "/token"
	PathUserInfo       = "/userinfo"
	PathRevoke         = "/revoke"
	PathMySessions     = "/api/me/sessions"      // of clients: GET, and DELETE {familyId}
	PathConsents       = "/api/account/consents" // GET, and DELETE {clientId}
	PathConsentAnswer  = "/api/authorize/consent"
	PathDeniedAnswer   = "/api/authorize/denied"
	PathAllowedClients = "/api/admin/allowed-clients"
)

// OAuthToken is the answer of the token endpoint (RFC 6749, section 5.1). The
// three tokens are one and the same. ExpiresIn is in seconds, and equals the
// token's exp.
type OAuthToken struct {
	AccessToken  string `json:"access_token"`
	IDToken      string `json:"id_token,omitempty"`
	Assertion    string `json:"assertion,omitempty"`
	TokenType    string `json:"token_type"`
	ExpiresIn    int64  `json:"expires_in"`
	RefreshToken string `json:"refresh_token,omitempty"`
	Scope        string `json:"scope,omitempty"`
	// Details is always there and empty: nothing is granted by a login.
	Details []struct{} `json:"authorization_details"`
}

// OAuthError is RFC 6749, section 5.2.
type OAuthError struct {
	Error       string `json:"error"`
	Description string `json:"error_description,omitempty"`
}

// UserInfo is the answer of the userinfo endpoint (OpenID Connect Core 1.0,
// section 5.3.2).
type UserInfo struct {
	Subject string `json:"sub"`
	Email   string `json:"email,omitempty"`
	Name    string `json:"name,omitempty"`
}

// ClientSession is what a client holds for a principal: a family of refresh
// tokens. Times are Unix milliseconds.
type ClientSession struct {
	FamilyID  string `json:"familyId"`
	UserID    string `json:"userId"`
	ClientID  string `json:"clientId"`
	CreatedAt int64  `json:"createdAt"`
	ExpiresAt int64  `json:"expiresAt"`
	Revoked   bool   `json:"revoked"`
}

// ClientConsent is a person's stored yes to a client. GrantedAt is in Unix
// milliseconds.
type ClientConsent struct {
	ClientID  string   `json:"clientId"`
	Name      string   `json:"name,omitempty"`
	Scopes    []string `json:"scopes"`
	GrantedAt int64    `json:"grantedAt"`
}

// AllowedClient is a service that the administrators of a mail domain allow.
type AllowedClient struct {
	Domain    string `json:"domain"`
	ClientID  string `json:"clientId"`
	CreatedAt int64  `json:"createdAt,omitempty"` // Unix milliseconds
}
