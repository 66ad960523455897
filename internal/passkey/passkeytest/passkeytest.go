// Package passkeytest owns an authenticator and its browser in software, for
// the tests of every package that deals with passkeys. It answers WebAuthn
// options as an honest browser does, and, when told so, as an attacker would.
//
// It is test support only and leaves out everything that a test does not need:
// user interface, extensions, attestation.
package passkeytest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/fxamacker/cbor/v2"
)

// Algorithm is a COSE algorithm identifier.
type Algorithm int

const (
	ES256 Algorithm = -7
	EdDSA Algorithm = -8
	RS256 Algorithm = -257
)

// Authenticator holds passkeys and acts as a browser on one page. Make one with
// [New]; change its fields between calls. It is not safe for concurrent use.
type Authenticator struct {
	// Origin is the page's origin, RPID the relying party that the page may
	// speak for.
	Origin, RPID string
	// Algorithm is that of passkeys made from now on; zero means the first of
	// the options' list.
	Algorithm Algorithm
	// Synced makes passkeys, from now on, that are synced between devices:
	// their counter stays 0.
	Synced bool
	// Attack says where to depart from honesty; its zero value is honest.
	Attack Attack

	passkeys []*passkey
}

// Attack holds lies, each independent of the others. An empty field is no lie.
type Attack struct {
	Origin             string // in the client data
	RPID               string // in the authenticator data
	Challenge          []byte // in the client data
	Type               string // in the client data
	CrossOrigin        bool
	TopOrigin          string
	NoUserPresence     bool
	NoUserVerification bool
	ForeignKey         bool   // sign with a key of another passkey
	UserHandle         []byte // in an assertion
	NoUserHandle       bool   // leave it out of an assertion

	// ClientData and AuthenticatorData change the finished bytes before they
	// are signed.
	ClientData, AuthenticatorData func([]byte) []byte
	// Signature changes the finished signature of an assertion.
	Signature func([]byte) []byte
}

// passkey is one credential with its private key.
type passkey struct {
	id, userHandle []byte
	rpID           string
	algorithm      Algorithm
	signer         crypto.Signer
	synced         bool
	counter        uint32
}

// New returns an authenticator without passkeys, in a browser on a page of
// origin, which may speak for rpID.
func New(origin, rpID string) *Authenticator {
	return &Authenticator{Origin: origin, RPID: rpID}
}

// bytes64 is base64url without padding, as the JSON forms of WebAuthn use it.
type bytes64 []byte

func (b bytes64) MarshalJSON() ([]byte, error) {
	return json.Marshal(base64.RawURLEncoding.EncodeToString(b))
}

func (b *bytes64) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return err
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	*b = raw
	return err
}

type descriptor struct {
	Type string  `json:"type"`
	ID   bytes64 `json:"id"`
}

// creationOptions is the part of PublicKeyCredentialCreationOptionsJSON that
// matters here.
type creationOptions struct {
	RP struct {
		ID string `json:"id"`
	} `json:"rp"`
	User struct {
		ID          bytes64 `json:"id"`
		Name        string  `json:"name"`
		DisplayName string  `json:"displayName"`
	} `json:"user"`
	Challenge  bytes64 `json:"challenge"`
	Parameters []struct {
		Type      string    `json:"type"`
		Algorithm Algorithm `json:"alg"`
	} `json:"pubKeyCredParams"`
	Exclude []descriptor `json:"excludeCredentials"`
}

// requestOptions is the part of PublicKeyCredentialRequestOptionsJSON that
// matters here.
type requestOptions struct {
	RPID      string       `json:"rpId"`
	Challenge bytes64      `json:"challenge"`
	Allow     []descriptor `json:"allowCredentials"`
}

type response struct {
	ID         bytes64        `json:"id"`
	RawID      bytes64        `json:"rawId"`
	Type       string         `json:"type"`
	Attachment string         `json:"authenticatorAttachment"`
	Extensions map[string]any `json:"clientExtensionResults"`
	Response   any            `json:"response"`
}

type attestationResponse struct {
	ClientDataJSON    bytes64   `json:"clientDataJSON"`
	AttestationObject bytes64   `json:"attestationObject"`
	AuthenticatorData bytes64   `json:"authenticatorData"`
	PublicKey         bytes64   `json:"publicKey"`
	Algorithm         Algorithm `json:"publicKeyAlgorithm"`
	Transports        []string  `json:"transports"`
}

type assertionResponse struct {
	ClientDataJSON    bytes64 `json:"clientDataJSON"`
	AuthenticatorData bytes64 `json:"authenticatorData"`
	Signature         bytes64 `json:"signature"`
	UserHandle        bytes64 `json:"userHandle,omitempty"`
}

// Create makes a passkey, as navigator.credentials.create does, from a
// PublicKeyCredentialCreationOptionsJSON, and returns a
// RegistrationResponseJSON. It fails as a browser does for a foreign relying
// party, an excluded passkey or an algorithm that is not on the list.
func (a *Authenticator) Create(optionsJSON []byte) (responseJSON []byte, err error) {
	var options creationOptions
	if err := json.Unmarshal(optionsJSON, &options); err != nil {
		return nil, fmt.Errorf("passkeytest: creation options: %w", err)
	}
	if options.RP.ID != a.RPID {
		return nil, fmt.Errorf("passkeytest: SecurityError: the page may not speak for %q", options.RP.ID)
	}
	if len(options.User.ID) == 0 || options.User.Name == "" || options.User.DisplayName == "" || len(options.Challenge) < 16 || len(options.Parameters) == 0 {
		return nil, errors.New("passkeytest: TypeError: user, challenge or parameters are missing")
	}
	if slices.ContainsFunc(options.Exclude, func(d descriptor) bool { return a.find(d.ID) != nil }) {
		return nil, errors.New("passkeytest: InvalidStateError: a passkey is registered already")
	}
	algorithm := a.Algorithm
	if algorithm == 0 {
		algorithm = options.Parameters[0].Algorithm
	}
	made, err := newPasskey(algorithm)
	if err != nil {
		return nil, err
	}
	offered := false
	for _, p := range options.Parameters {
		offered = offered || p.Algorithm == algorithm
	}
	if !offered {
		return nil, fmt.Errorf("passkeytest: NotSupportedError: algorithm %d is not offered", algorithm)
	}
	made.rpID, made.userHandle, made.synced = options.RP.ID, options.User.ID, a.Synced

	cose, spki, err := made.publicKey()
	if err != nil {
		return nil, err
	}
	attested := slices.Concat([]byte("vogt-passkeytest"), binary.BigEndian.AppendUint16(nil, uint16(len(made.id))), made.id, cose)
	authData := a.authenticatorData(made, flagAttested, attested)
	object, err := encode(map[string]any{"fmt": "none", "attStmt": map[string]any{}, "authData": authData})
	if err != nil {
		return nil, err
	}
	a.passkeys = append(a.passkeys, made)
	return json.Marshal(response{
		ID: made.id, RawID: made.id, Type: "public-key", Attachment: "platform", Extensions: map[string]any{},
		Response: attestationResponse{
			ClientDataJSON:    a.clientData("webauthn.create", options.Challenge),
			AttestationObject: object,
			AuthenticatorData: authData,
			PublicKey:         spki,
			Algorithm:         algorithm,
			Transports:        []string{"internal"},
		},
	})
}

// Get uses a passkey, as navigator.credentials.get does, from a
// PublicKeyCredentialRequestOptionsJSON, and returns an
// AuthenticationResponseJSON. Among several passkeys that fit it takes the
// newest. It fails as a browser does if none fits.
func (a *Authenticator) Get(optionsJSON []byte) (responseJSON []byte, err error) {
	var options requestOptions
	if err := json.Unmarshal(optionsJSON, &options); err != nil {
		return nil, fmt.Errorf("passkeytest: request options: %w", err)
	}
	if options.RPID != a.RPID {
		return nil, fmt.Errorf("passkeytest: SecurityError: the page may not speak for %q", options.RPID)
	}
	var used *passkey
	for _, p := range a.passkeys {
		allowed := len(options.Allow) == 0 || slices.ContainsFunc(options.Allow, func(d descriptor) bool { return string(d.ID) == string(p.id) })
		if allowed && p.rpID == options.RPID {
			used = p
		}
	}
	if used == nil {
		return nil, errors.New("passkeytest: NotAllowedError: no passkey fits")
	}
	if !used.synced {
		used.counter++
	}
	signer := used
	if a.Attack.ForeignKey {
		if signer, err = newPasskey(used.algorithm); err != nil {
			return nil, err
		}
	}
	clientData := a.clientData("webauthn.get", options.Challenge)
	authData := a.authenticatorData(used, 0, nil)
	hash := sha256.Sum256(clientData)
	signature, err := signer.sign(slices.Concat(authData, hash[:]))
	if err != nil {
		return nil, err
	}
	if a.Attack.Signature != nil {
		signature = a.Attack.Signature(signature)
	}
	userHandle := used.userHandle
	if a.Attack.UserHandle != nil {
		userHandle = a.Attack.UserHandle
	}
	if a.Attack.NoUserHandle {
		userHandle = nil
	}
	return json.Marshal(response{
		ID: used.id, RawID: used.id, Type: "public-key", Attachment: "platform", Extensions: map[string]any{},
		Response: assertionResponse{ClientDataJSON: clientData, AuthenticatorData: authData, Signature: signature, UserHandle: userHandle},
	})
}

// SetCounter sets the signature counter of every passkey, as a copy made
// earlier would have it; the next use reports one more.
func (a *Authenticator) SetCounter(n uint32) {
	for _, p := range a.passkeys {
		p.counter = n
	}
}

// Forget deletes every passkey.
func (a *Authenticator) Forget() { a.passkeys = nil }

func (a *Authenticator) find(id []byte) *passkey {
	for _, p := range a.passkeys {
		if string(p.id) == string(id) {
			return p
		}
	}
	return nil
}

// clientData serialises the client data as browsers do (WebAuthn Level 3,
// section 5.8.1.1).
func (a *Authenticator) clientData(ceremony string, challenge []byte) []byte {
	data := struct {
		Type        string  `json:"type"`
		Challenge   bytes64 `json:"challenge"`
		Origin      string  `json:"origin"`
		CrossOrigin bool    `json:"crossOrigin"`
		TopOrigin   string  `json:"topOrigin,omitempty"`
	}{ceremony, challenge, a.Origin, a.Attack.CrossOrigin, a.Attack.TopOrigin}
	if a.Attack.Type != "" {
		data.Type = a.Attack.Type
	}
	if a.Attack.Challenge != nil {
		data.Challenge = a.Attack.Challenge
	}
	if a.Attack.Origin != "" {
		data.Origin = a.Attack.Origin
	}
	raw, err := json.Marshal(data)
	if err != nil {
		panic(err) // strings, bytes and a bool always encode
	}
	if a.Attack.ClientData != nil {
		raw = a.Attack.ClientData(raw)
	}
	return raw
}

// Bits of the flags byte (WebAuthn Level 3, section 6.1).
const (
	flagUserPresent    = 1 << 0
	flagUserVerified   = 1 << 2
	flagBackupEligible = 1 << 3
	flagBackupState    = 1 << 4
	flagAttested       = 1 << 6
)

func (a *Authenticator) authenticatorData(p *passkey, flags byte, attested []byte) []byte {
	if !a.Attack.NoUserPresence {
		flags |= flagUserPresent
	}
	if !a.Attack.NoUserVerification {
		flags |= flagUserVerified
	}
	if p.synced {
		flags |= flagBackupEligible | flagBackupState
	}
	rpID := p.rpID
	if a.Attack.RPID != "" {
		rpID = a.Attack.RPID
	}
	hash := sha256.Sum256([]byte(rpID))
	data := append(hash[:], flags)
	data = binary.BigEndian.AppendUint32(data, p.counter)
	data = append(data, attested...)
	if a.Attack.AuthenticatorData != nil {
		data = a.Attack.AuthenticatorData(data)
	}
	return data
}

func newPasskey(algorithm Algorithm) (*passkey, error) {
	p := &passkey{algorithm: algorithm, id: make([]byte, 32)}
	if _, err := rand.Read(p.id); err != nil {
		return nil, err
	}
	var err error
	switch algorithm {
	case ES256:
		p.signer, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case EdDSA:
		_, p.signer, err = ed25519.GenerateKey(rand.Reader)
	case RS256:
		p.signer, err = rsa.GenerateKey(rand.Reader, 2048)
	default:
		return nil, fmt.Errorf("passkeytest: algorithm %d is unknown", algorithm)
	}
	if err != nil {
		return nil, fmt.Errorf("passkeytest: %w", err)
	}
	return p, nil
}

func (p *passkey) sign(data []byte) ([]byte, error) {
	if p.algorithm == EdDSA {
		return p.signer.Sign(rand.Reader, data, crypto.Hash(0))
	}
	digest := sha256.Sum256(data)
	return p.signer.Sign(rand.Reader, digest[:], crypto.SHA256)
}

// publicKey returns the key as COSE_Key (RFC 9052, section 7; RFC 8230, section
// 4) and as SubjectPublicKeyInfo.
func (p *passkey) publicKey() (cose, spki []byte, err error) {
	var members map[int]any
	switch key := p.signer.Public().(type) {
	case *ecdsa.PublicKey:
		point, err := key.Bytes() // 4, x, y
		if err != nil {
			return nil, nil, err
		}
		members = map[int]any{1: 2, 3: int(ES256), -1: 1, -2: point[1:33], -3: point[33:]}
	case ed25519.PublicKey:
		members = map[int]any{1: 1, 3: int(EdDSA), -1: 6, -2: []byte(key)}
	case *rsa.PublicKey:
		members = map[int]any{1: 3, 3: int(RS256), -1: key.N.Bytes(), -2: []byte{1, 0, 1}}
	}
	if cose, err = encode(members); err != nil {
		return nil, nil, err
	}
	spki, err = x509.MarshalPKIXPublicKey(p.signer.Public())
	return cose, spki, err
}

// encode writes the canonical CBOR of CTAP2.
func encode(v any) ([]byte, error) {
	mode, err := cbor.CTAP2EncOptions().EncMode()
	if err != nil {
		return nil, err
	}
	return mode.Marshal(v)
}
