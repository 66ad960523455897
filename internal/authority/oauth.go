package authority

import (
	"context"
	"crypto/sha256"
	"errors"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"vogt/internal/grant"
	"vogt/internal/inet"
	"vogt/internal/store"
	"vogt/internal/token"
)

// This file and those beside it that begin with "oauth" make the authority an
// OAuth 2 authorization server and OpenID provider (RFC 6749, OpenID Connect
// Core 1.0) in the profile of DDISA: codes with PKCE for public clients, refresh
// tokens in families, and assertions by key.

const (
	codeLife     = time.Minute
	identityLife = 5 * time.Minute // of ID tokens, which are access tokens too
	familyLife   = 30 * 24 * time.Hour
	consentLife  = 5 * time.Minute // in which a consent page can be answered

	// maxFamilies bounds what one principal can have open; the oldest makes room.
	maxFamilies = 100

	// maxParameter bounds a single parameter of an authorization request.
	maxParameter = 2000
)

// The scopes that are understood; others are left out of what is given.
const (
	scopeOpenID  = "openid"
	scopeEmail   = "email"
	scopeProfile = "profile"
	scopeOffline = "offline_access"
)

// CLIClient is the ID of the public client that is built in: command lines
// that log people in here. Its tokens, and no other client's, are logins.
const CLIClient = token.CLIAudience

// ClientMetadata is what is known of an OAuth client (RFC 7591, section 2).
// RedirectURIs are compared as text.
type ClientMetadata struct {
	ID           string
	Name         string
	RedirectURIs []string
	URI          string
	LogoURI      string
	PolicyURI    string
	TermsURI     string
	Contacts     []string
	// Unpublished is a service that says nothing of itself: all that is known is that
	// its ID is a host. It may be answered at that host alone, and the person is asked
	// each time.
	Unpublished bool
}

// answeredAt reports whether the client may be answered at uri: one of its redirect
// addresses, letter by letter.
func (c ClientMetadata) answeredAt(uri string) bool {
	if !c.Unpublished {
		return slices.Contains(c.RedirectURIs, uri) && redirectable(uri)
	}
	u, err := inet.ParseURL(uri)
	return err == nil && u.Scheme == "https" && u.Origin.String() == "https://"+c.ID && redirectable(uri)
}

// AllowedService is a service that the administrators of a mail domain allow by
// configuration. Both are compared as text, the domain in lower case.
type AllowedService struct{ Domain, Client string }

// ErrNoClient tells that there is no client of that ID, or none that publishes
// what it must.
var ErrNoClient = errors.New("no such client")

// ClientSource finds clients that the authority does not know by itself. It is
// asked for IDs with a dot in them only, and only when somebody who is logged in
// wants to go there. An ID that names no client is ErrNoClient; any other error
// means that nobody can tell now.
type ClientSource interface {
	Client(ctx context.Context, id string) (ClientMetadata, error)
}

// Mode is what the owner of a mail domain decided about the services that its
// people log in to (DDISA Core).
type Mode string

// The modes. The zero value is a domain that decided nothing, and is the same
// as ModePerson.
const (
	ModeOpen   Mode = "open"
	ModeAdmin  Mode = "allowlist-admin"
	ModePerson Mode = "allowlist-user"
	ModeDeny   Mode = "deny"
)

// PolicySource tells a domain's mode, "" where the domain says nothing. An error
// means that nobody can tell now, and then nothing is given.
type PolicySource interface {
	Mode(ctx context.Context, domain string) (Mode, error)
}

// OAuthError is an answer to an OAuth client (RFC 6749, section 5.2).
type OAuthError struct {
	Status      int
	Code        string
	Description string
	cause       error
}

func (e *OAuthError) Error() string { return e.Code + ": " + e.Description }

// Unwrap gives the operator's side of the error.
func (e *OAuthError) Unwrap() error { return e.cause }

func oauthError(status int, code, description string) *OAuthError {
	return &OAuthError{Status: status, Code: code, Description: description}
}

func invalidRequest(description string) *OAuthError {
	return oauthError(400, "invalid_request", description)
}

func invalidGrant(description string) *OAuthError {
	return oauthError(400, "invalid_grant", description)
}

// refusal is how a call that is refused, but whose effects stay, leaves its
// transaction: fn notes the error and lets what it wrote be committed.
func (a *Authority) refusing(ctx context.Context, fn func(*txn) (*OAuthError, error)) error {
	var refused *OAuthError
	err := a.update(ctx, func(t *txn) (err error) {
		refused, err = fn(t)
		return err
	})
	if err == nil && refused != nil {
		return refused
	}
	return err
}

// builtIn are the clients that every authority knows.
func builtIn() []ClientMetadata {
	return []ClientMetadata{{
		ID: CLIClient, Name: "Command line (apes, vogt)", RedirectURIs: []string{"http://localhost:9876/callback"},
	}}
}

// CheckClients reports what is wrong with configured clients, as New does.
func CheckClients(configured []ClientMetadata) error {
	_, err := staticClients(configured)
	return err
}

// staticClients are the built-in clients and those of the configuration.
func staticClients(configured []ClientMetadata) (map[string]ClientMetadata, error) {
	all := map[string]ClientMetadata{}
	for _, c := range append(builtIn(), configured...) {
		if _, twice := all[c.ID]; twice {
			return nil, errors.New("client " + c.ID + " is configured twice, or is built in")
		}
		if err := checkClient(c, c.ID); err != nil {
			return nil, err
		}
		if c.Unpublished {
			return nil, errors.New("client " + c.ID + ": no redirect address")
		}
		for _, uri := range c.RedirectURIs {
			if !redirectable(uri) {
				return nil, errors.New("client " + c.ID + ": redirect address " + uri + ": want https, or http on this machine, without fragment and user")
			}
		}
		all[c.ID] = c
	}
	return all, nil
}

// checkClient refuses metadata that could not be shown or belongs to another ID.
func checkClient(c ClientMetadata, id string) error {
	switch {
	case c.ID != id || id == "":
		return errors.New("client " + id + ": its metadata is that of " + c.ID)
	case len(id) > 255 || !plainText(id) || strings.ContainsAny(id, " \"'<>\\"):
		return errors.New("client " + shorten(id, 100) + ": the ID cannot be used")
	case c.Unpublished && (c.Name != "" || len(c.RedirectURIs) > 0):
		return errors.New("client " + id + ": it has published something, and nothing")
	case len(c.RedirectURIs) == 0 && !c.Unpublished:
		return errors.New("client " + id + ": no redirect address")
	}
	return nil
}

// redirectable reports whether a person may be sent to the address with an
// answer: encrypted, or to this machine itself (RFC 8252, section 7.3).
func redirectable(uri string) bool {
	u, err := url.Parse(uri)
	if err != nil || u.Host == "" || u.User != nil || u.Fragment != "" || strings.HasSuffix(uri, "#") || u.Opaque != "" ||
		len(uri) > maxParameter || strings.ContainsFunc(uri, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '\\' }) {
		return false
	}
	return u.Scheme == "https" || u.Scheme == "http" && onThisMachine(u.Hostname())
}

func onThisMachine(host string) bool {
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

// native reports whether any program of the person's machine could be what the
// address leads to.
func native(uri string) bool {
	u, err := url.Parse(uri)
	return err == nil && u.Scheme == "http"
}

// client finds a client. fetch permits asking the ClientSource, which may ask
// the network.
func (a *Authority) client(ctx context.Context, id string, fetch bool) (ClientMetadata, error) {
	unknown := problem(400, "This client is not known", "client_id is missing, or names no client of this authority.",
		"The operator of the service registers it, or publishes its metadata under its name.").kind("invalid_manifest")
	if c, ok := a.clients[id]; ok {
		return c, nil
	}
	if !strings.Contains(id, ".") || a.clientSource == nil || !fetch || len(id) > 255 {
		return ClientMetadata{}, unknown
	}
	c, err := a.clientSource.Client(ctx, id)
	if err == nil {
		err = checkClient(c, id)
	} else if !errors.Is(err, ErrNoClient) {
		return ClientMetadata{}, problem(502, "The client's metadata could not be read", "Nothing was given to it.",
			"Try again later; the operator of the service can see why.").caused(err)
	}
	if err != nil {
		return ClientMetadata{}, unknown.caused(err)
	}
	if !plainText(c.Name) {
		c.Name = ""
	}
	c.Name = shorten(c.Name, 200)
	return c, nil
}

// scopesOf keeps what is understood, in one order and once.
func scopesOf(requested string) string {
	asked := strings.Fields(requested)
	var out []string
	for _, s := range []string{scopeOpenID, scopeEmail, scopeProfile, scopeOffline} {
		if slices.Contains(asked, s) {
			out = append(out, s)
		}
	}
	return strings.Join(out, " ")
}

func hasScope(scope, one string) bool { return slices.Contains(strings.Fields(scope), one) }

// within reports whether every scope of part is one of whole.
func within(part, whole string) bool {
	for _, s := range strings.Fields(part) {
		if !hasScope(whole, s) {
			return false
		}
	}
	return true
}

// hashOf is what is stored of a secret that was given out.
func hashOf(purpose, secret string) []byte {
	sum := sha256.Sum256([]byte(purpose + "\n" + secret))
	return sum[:]
}

// inStanding reads a principal, to whom something is to be given, as it is now.
// Whoever is switched off, removed, paused or of another generation gets
// nothing, nor does an agent whose owner is.
func inStanding(tx store.Tx, email string, generation uint64) (store.Principal, error) {
	refused := func(cause error) error {
		e := oauthError(403, "invalid_grant", "The account is switched off, paused or gone.")
		e.cause = cause
		return e
	}
	p, err := store.PrincipalByEmail(tx, email)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return p, err
	}
	if err != nil || !usable(p) || p.Paused || generation != 0 && p.Generation != generation {
		return p, refused(err)
	}
	if p.Owner != "" {
		owner, err := store.PrincipalByEmail(tx, p.Owner)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return p, err
		}
		if err != nil || !usable(owner) {
			return p, refused(err)
		}
	}
	return p, nil
}

// loginOf reads the bearer that something began with, "" for none. What began
// with a login ends with it.
func (t *txn) loginOf(jti string) (store.Token, error) {
	if jti == "" {
		return store.Token{}, nil
	}
	l, err := store.TokenByID(t, jti)
	if errors.Is(err, store.ErrNotFound) || err == nil && grant.Millis(l.Expires).Reached(t.now) {
		return l, invalidGrant("The login that this began with has ended.")
	}
	return l, err
}

// oauthRecord tells of what was given to a client, or taken from it.
type oauthRecord struct {
	Operation string `json:"operation"`
	By        string `json:"by"`
	Subject   string `json:"subject"`
	Client    string `json:"client"`
	Family    string `json:"family,omitempty"` // or what else names the authorization
	Redirect  string `json:"redirect_uri,omitempty"`
	Scope     string `json:"scope,omitempty"`
	Actor     string `json:"actor,omitempty"`      // who acts for the subject
	Delegated string `json:"delegation,omitempty"` // by which
	Token     string `json:"jti,omitempty"`
	Why       string `json:"why,omitempty"`
}

func (t *txn) recordOAuth(r oauthRecord) error {
	_, err := t.record(recordOAuth, "", r.Subject, r)
	return err
}

// endAuthorization ends a family and the tokens that came with it. What had
// ended before is not recorded again.
func (t *txn) endAuthorization(by, subject, client, id, why string) error {
	ended, err := store.EndFamily(t, id, int64(t.now))
	if err != nil || !ended {
		return err
	}
	_, err = t.record(recordOAuthEnd, "", subject, oauthRecord{
		Operation: "session.ended", By: by, Subject: subject, Client: client, Family: id, Why: why,
	})
	return err
}
