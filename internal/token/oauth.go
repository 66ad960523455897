package token

import (
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// The uses of tokens that are for others than this authority.
const (
	UseIdentity  = "identity"  // tells a client who somebody is
	UseDelegated = "delegated" // tells a service for whom somebody else acts
)

// Identity are the claims of an ID token, which is the access token of the
// user information as well (OpenID Connect Core 1.0, section 2). Its audience
// is a client, so it is no login here. Times are Unix seconds.
type Identity struct {
	Issuer   string `json:"iss"`
	Subject  string `json:"sub"`
	Audience string `json:"aud"` // the client's ID
	Act      string `json:"act"` // "human" or "agent"
	IssuedAt int64  `json:"iat"`
	Expires  int64  `json:"exp"`
	ID       string `json:"jti"`
	Use      string `json:"vogt_use"`
	Nonce    string `json:"nonce,omitempty"`
	AuthTime int64  `json:"auth_time,omitempty"`
	Email    string `json:"email,omitempty"`
	Name     string `json:"name,omitempty"`
	Approver string `json:"approver,omitempty"`
}

// Actor is the act claim of a delegated token (RFC 8693, section 4.1).
type Actor struct {
	Subject string `json:"sub"`
}

// Delegated are the claims of a token with which Act acts for Subject. Scope
// is never absent: without an entry it permits nothing.
type Delegated struct {
	Issuer     string   `json:"iss"`
	Subject    string   `json:"sub"`
	Audience   string   `json:"aud"`
	Act        Actor    `json:"act"`
	IssuedAt   int64    `json:"iat"`
	Expires    int64    `json:"exp"`
	ID         string   `json:"jti"`
	Use        string   `json:"vogt_use"`
	Nonce      string   `json:"nonce,omitempty"`
	AuthTime   int64    `json:"auth_time,omitempty"`
	Delegation string   `json:"delegation_grant"`
	Delegate   string   `json:"delegate"`
	Scope      []string `json:"scope"`
}

// VerifyIdentity checks an ID token of issuer for any client. Whether it was
// revoked is the caller's to find out.
func (k Keys) VerifyIdentity(raw, issuer string, now time.Time) (Identity, error) {
	var c Identity
	if err := k.verify(raw, &c); err != nil {
		return Identity{}, err
	}
	switch {
	case c.Use != UseIdentity || c.Audience == "" || c.Audience == CLIAudience:
		return Identity{}, fmt.Errorf("%w: not an ID token of a client", ErrInvalid)
	case c.Issuer != issuer:
		return Identity{}, fmt.Errorf("%w: issued by %q", ErrInvalid, c.Issuer)
	case c.Act != "human" && c.Act != "agent":
		return Identity{}, fmt.Errorf("%w: act is %q", ErrInvalid, c.Act)
	case c.Subject == "" || c.ID == "":
		return Identity{}, fmt.Errorf("%w: claims are missing", ErrInvalid)
	case now.Unix() >= c.Expires:
		return Identity{}, ErrExpired
	}
	return c, nil
}

// Assertion is a JWT with which a client proves who it is (RFC 7523, section
// 3). Only Claims of a verified one mean anything.
type Assertion struct {
	Claims AssertionClaims
	jws    *jose.JSONWebSignature
}

// AssertionClaims are the claims of an assertion. Times are Unix seconds, 0
// where the claim is absent.
type AssertionClaims struct {
	Issuer    string
	Subject   string
	Audience  []string
	ID        string
	Expires   int64
	IssuedAt  int64
	NotBefore int64
}

// maxAssertion bounds what strangers have parsed.
const maxAssertion = 16 << 10

// ParseAssertion reads an assertion without verifying it: its issuer tells
// whose keys could have signed it, and nothing else of it may be used before
// [Assertion.VerifiedBy].
func ParseAssertion(raw string) (*Assertion, error) {
	if len(raw) > maxAssertion {
		return nil, fmt.Errorf("%w: %d bytes long", ErrInvalid, len(raw))
	}
	jws, err := jose.ParseSignedCompact(raw, []jose.SignatureAlgorithm{jose.EdDSA})
	if err != nil {
		return nil, fmt.Errorf("%w: %v", ErrInvalid, err)
	}
	var c struct {
		Issuer    string          `json:"iss"`
		Subject   string          `json:"sub"`
		Audience  json.RawMessage `json:"aud"`
		ID        string          `json:"jti"`
		Expires   float64         `json:"exp"`
		IssuedAt  float64         `json:"iat"`
		NotBefore float64         `json:"nbf"`
	}
	if err := json.Unmarshal(jws.UnsafePayloadWithoutVerification(), &c); err != nil {
		return nil, fmt.Errorf("%w: %v", ErrInvalid, err)
	}
	a := &Assertion{jws: jws, Claims: AssertionClaims{Issuer: c.Issuer, Subject: c.Subject, ID: c.ID}}
	var one string
	if json.Unmarshal(c.Audience, &one) == nil {
		a.Claims.Audience = []string{one}
	} else if err := json.Unmarshal(c.Audience, &a.Claims.Audience); err != nil {
		return nil, fmt.Errorf("%w: the audience is neither text nor a list", ErrInvalid)
	}
	for _, t := range []struct {
		from float64
		to   *int64
	}{{c.Expires, &a.Claims.Expires}, {c.IssuedAt, &a.Claims.IssuedAt}, {c.NotBefore, &a.Claims.NotBefore}} {
		if !(t.from >= 0 && t.from < math.MaxInt32*1000.0) {
			return nil, fmt.Errorf("%w: a time is out of range", ErrInvalid)
		}
		*t.to = int64(t.from)
	}
	return a, nil
}

// VerifiedBy reports whether key signed the assertion.
func (a *Assertion) VerifiedBy(key ed25519.PublicKey) bool {
	_, err := a.jws.Verify(key)
	return err == nil
}
