package api

// Paths of bridges between services: a person lets one service act at another in the
// person's name.
const (
	PathAuthorizeBridge = "/authorize-cross-sp" // GET, for a browser
	PathGrantBridge     = "/api/grant-cross-sp" // POST; not served, see [TrustBridgeAdd]
	PathBridgeToken     = "/api/grants/cross-sp-token"
	PathScopeCatalog    = "/api/cross-sp-scope-catalog" // GET ?audience=
	PathBridges         = "/api/me/bridges"             // GET, and DELETE {id}
)

// TrustBridgeAdd is the operation of a TrustRequest that makes a bridge: client, service,
// and scopes, separated by blanks; request is the query of the address to go on to.
const TrustBridgeAdd = "bridge.add"

// BridgeToken is the body of POST /api/grants/cross-sp-token, sent by the service that
// acts, with the code that the person's browser brought it.
type BridgeToken struct {
	Code        string `json:"code"`
	Verifier    string `json:"code_verifier"`
	RedirectURI string `json:"redirect_uri"`
	ClientID    string `json:"client_id"`
}

// BridgeTokenAnswer answers it.
type BridgeTokenAnswer struct {
	AuthzJWT  string `json:"authz_jwt"`
	ExpiresIn int64  `json:"expires_in"` // seconds
}

// ScopeCatalog answers GET /api/cross-sp-scope-catalog.
type ScopeCatalog struct {
	Audience string  `json:"audience"`
	Scopes   []Scope `json:"scopes"`
}

// Scope is what a service says that it lets others do.
type Scope struct {
	ID          string `json:"id"`
	Description string `json:"description"`
}

// Bridge is a bridge as its person sees it. Times are Unix seconds.
type Bridge struct {
	ID         string   `json:"id"`
	ClientID   string   `json:"client_id"`
	Audience   string   `json:"audience"`
	Scopes     []string `json:"scopes"`
	CreatedAt  int64    `json:"created_at"`
	ExpiresAt  int64    `json:"expires_at"`
	Uses       int64    `json:"use_count"`
	LastUsedAt int64    `json:"last_used_at,omitempty"`
}
