// Package token signs and verifies the authority's JSON Web Tokens: login
// tokens, which say who calls, grant tokens, which let one execution start, and
// tokens that tell others who somebody is or acts for (RFC 7519, RFC 8037: EdDSA
// with Ed25519 only). It reads the assertions of clients (RFC 7523).
//
// It owns claims and the checks that need no database. It leaves out
// revocation and the state of grants, which the authority looks up at every
// use, and where keys are kept.
package token

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/go-jose/go-jose/v4"

	"vogt/internal/detail"
	"vogt/internal/grant"
)

// Uses keep one kind of token from passing as another.
const (
	UseLogin = "login"
	UseGrant = "grant"
)

// CLIAudience is the audience of login tokens.
const CLIAudience = "apes-cli"

// maxToken bounds what is parsed: a grant token carries the whole command.
const maxToken = 8 << 20

// Login are the claims of a login token. Times are Unix seconds.
type Login struct {
	Issuer     string `json:"iss"`
	Subject    string `json:"sub"`
	Audience   string `json:"aud"`
	Act        string `json:"act"` // "human" or "agent"
	IssuedAt   int64  `json:"iat"`
	Expires    int64  `json:"exp"`
	ID         string `json:"jti"`
	Use        string `json:"vogt_use"`
	Epoch      uint64 `json:"vogt_epoch"`
	Generation uint64 `json:"vogt_generation"`
	// What a login by authorization code carries besides, see Identity.
	Nonce    string `json:"nonce,omitempty"`
	AuthTime int64  `json:"auth_time,omitempty"`
	Email    string `json:"email,omitempty"`
	Name     string `json:"name,omitempty"`
}

// Grant are the claims of a grant token. Times are Unix seconds.
type Grant struct {
	Issuer      string         `json:"iss"`
	Subject     string         `json:"sub"`
	Audience    string         `json:"aud"`
	Host        string         `json:"target_host"`
	IssuedAt    int64          `json:"iat"`
	Expires     int64          `json:"exp"`
	ID          string         `json:"jti"`
	GrantID     string         `json:"grant_id"`
	GrantType   grant.Type     `json:"grant_type"`
	Approval    grant.Type     `json:"approval"`
	Permissions []string       `json:"permissions,omitempty"`
	Details     []detail.Wire  `json:"authorization_details,omitempty"`
	CmdHash     string         `json:"cmd_hash,omitempty"`
	Command     []string       `json:"command,omitempty"`
	Context     *grant.Context `json:"execution_context,omitempty"`
	DecidedBy   string         `json:"decided_by,omitempty"`
	RunAs       string         `json:"run_as,omitempty"`
	Use         string         `json:"vogt_use"`
	Epoch       uint64         `json:"vogt_epoch"`
	// Key is the key behind the login that asked for the token, if it had
	// one: without that key the token is worth nothing.
	Key string `json:"vogt_key,omitempty"`
}

// Key is a signing key and the identifier under which it is published.
type Key struct {
	ID      string
	Private ed25519.PrivateKey
}

// NewKey derives a key from its 32-byte seed. The identifier is the first 16
// hex digits of the public key's SHA-256, so that no two keys share one.
func NewKey(seed []byte) Key {
	private := ed25519.NewKeyFromSeed(seed)
	sum := sha256.Sum256(private.Public().(ed25519.PublicKey))
	return Key{ID: hex.EncodeToString(sum[:8]), Private: private}
}

// Sign returns the compact serialisation of claims under key.
func Sign(key Key, claims any) (string, error) {
	payload, err := json.Marshal(claims)
	if err != nil {
		return "", err
	}
	signer, err := jose.NewSigner(
		jose.SigningKey{Algorithm: jose.EdDSA, Key: jose.JSONWebKey{Key: key.Private, KeyID: key.ID}},
		(&jose.SignerOptions{}).WithType("JWT"))
	if err != nil {
		return "", err
	}
	jws, err := signer.Sign(payload)
	if err != nil {
		return "", err
	}
	return jws.CompactSerialize()
}

// Keys are public keys by identifier.
type Keys map[string]ed25519.PublicKey

// Errors that callers branch on.
var (
	ErrInvalid = errors.New("token is not valid")
	ErrExpired = errors.New("token has expired")
)

// verify checks the signature and decodes the claims. The key is chosen by
// the header's kid among all published keys; there is no fallback.
func (k Keys) verify(raw string, claims any) error {
	if len(raw) > maxToken {
		return fmt.Errorf("%w: %d bytes long", ErrInvalid, len(raw))
	}
	jws, err := jose.ParseSignedCompact(raw, []jose.SignatureAlgorithm{jose.EdDSA})
	if err != nil {
		return fmt.Errorf("%w: %v", ErrInvalid, err)
	}
	public, ok := k[jws.Signatures[0].Header.KeyID]
	if !ok {
		return fmt.Errorf("%w: signed with the unknown key %q", ErrInvalid, jws.Signatures[0].Header.KeyID)
	}
	payload, err := jws.Verify(public)
	if err != nil {
		return fmt.Errorf("%w: %v", ErrInvalid, err)
	}
	if err := json.Unmarshal(payload, claims); err != nil {
		return fmt.Errorf("%w: %v", ErrInvalid, err)
	}
	return nil
}

// VerifyLogin checks a login token of issuer.
func (k Keys) VerifyLogin(raw, issuer string, now time.Time) (Login, error) {
	var c Login
	if err := k.verify(raw, &c); err != nil {
		return Login{}, err
	}
	switch {
	case c.Use != UseLogin || c.Audience != CLIAudience:
		return Login{}, fmt.Errorf("%w: not a login token", ErrInvalid)
	case c.Issuer != issuer:
		return Login{}, fmt.Errorf("%w: issued by %q", ErrInvalid, c.Issuer)
	case c.Act != "human" && c.Act != "agent":
		return Login{}, fmt.Errorf("%w: act is %q", ErrInvalid, c.Act)
	case c.Subject == "" || c.ID == "":
		return Login{}, fmt.Errorf("%w: claims are missing", ErrInvalid)
	case now.Unix() >= c.Expires:
		return Login{}, ErrExpired
	}
	return c, nil
}

// VerifyGrant checks a grant token of issuer. Audience, subject and command
// are the caller's to compare.
func (k Keys) VerifyGrant(raw, issuer string, now time.Time) (Grant, error) {
	var c Grant
	if err := k.verify(raw, &c); err != nil {
		return Grant{}, err
	}
	switch {
	case c.Use != UseGrant:
		return Grant{}, fmt.Errorf("%w: not a grant token", ErrInvalid)
	case c.Issuer != issuer:
		return Grant{}, fmt.Errorf("%w: issued by %q", ErrInvalid, c.Issuer)
	case c.Subject == "" || c.GrantID == "" || c.ID == "" || !c.GrantType.Valid():
		return Grant{}, fmt.Errorf("%w: claims are missing", ErrInvalid)
	case now.Unix() >= c.Expires:
		return Grant{}, ErrExpired
	}
	return c, nil
}

// JWKS returns the keys as a JSON Web Key Set (RFC 7517).
func (k Keys) JWKS() ([]byte, error) {
	set := jose.JSONWebKeySet{Keys: []jose.JSONWebKey{}}
	for id, public := range k {
		set.Keys = append(set.Keys, jose.JSONWebKey{Key: public, KeyID: id, Algorithm: string(jose.EdDSA), Use: "sig"})
	}
	return json.Marshal(set)
}

// ParseJWKS reads a key set; entries that are not Ed25519 signing keys are
// left out.
func ParseJWKS(b []byte) (Keys, error) {
	var set jose.JSONWebKeySet
	if err := json.Unmarshal(b, &set); err != nil {
		return nil, fmt.Errorf("key set: %w", err)
	}
	keys := Keys{}
	for _, key := range set.Keys {
		public, ok := key.Key.(ed25519.PublicKey)
		if !ok || key.Use != "sig" && key.Use != "" {
			continue
		}
		keys[key.KeyID] = public
	}
	if len(keys) == 0 {
		return nil, errors.New("key set: no Ed25519 signing key in it")
	}
	return keys, nil
}
