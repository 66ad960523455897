// Package assertion owns the record of one passkey decision, and its
// verification with nothing but that record: a WebAuthn assertion whose
// challenge is the digest of a statement.
//
// It needs only the standard library, so that a client that audits and a broker
// that runs as root can verify without linking a WebAuthn library. It leaves
// out ceremonies, sessions and registration, which belong to the package above
// it, and the question whose credential it is: the record carries its own
// public key, so whoever relies on it compares [Evidence.CredentialID] and
// [Evidence.PublicKey] with what was pinned for a person before.
//
// The rules are those of WebAuthn Level 3, section 7.2, narrowed: user presence
// and user verification are demanded, frames of other origins are refused, and
// origins are compared byte for byte.
package assertion

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"
)

// Reason says why an assertion was refused. The zero value is no reason.
type Reason string

const (
	Malformed        Reason = "malformed"         // incomplete, or not the format that WebAuthn prescribes
	WrongType        Reason = "wrong-type"        // made for another ceremony
	WrongChallenge   Reason = "wrong-challenge"   // made for another statement or session
	WrongOrigin      Reason = "wrong-origin"      // made on another page
	Embedded         Reason = "embedded"          // made in a frame of another origin
	WrongRP          Reason = "wrong-rp"          // made for another relying party ID
	NotPresent       Reason = "not-present"       // nobody touched the authenticator
	NotVerified      Reason = "not-verified"      // no PIN, finger or face was checked
	BadSignature     Reason = "bad-signature"     // not signed by the credential's key
	UnsupportedKey   Reason = "unsupported-key"   // not one of the three kinds of key
	ImpossibleBackup Reason = "impossible-backup" // backed up, yet not fit for backup
)

// Error is a refusal. Its text is for logs: it may repeat what the browser sent.
type Error struct {
	Reason Reason
	detail string
}

func (e *Error) Error() string { return "passkey assertion: " + string(e.Reason) + ": " + e.detail }

func refuse(reason Reason, format string, args ...any) error {
	return &Error{reason, fmt.Sprintf(format, args...)}
}

// Evidence is everything that is needed to verify a decision again: the
// credential and the assertion that it made. Its JSON form is stable; bytes are
// standard base64. The zero value verifies nothing.
type Evidence struct {
	// CredentialID is the credential's name, 1 to 1023 bytes.
	CredentialID []byte `json:"credentialId"`
	// PublicKey is the credential's COSE_Key, see [CheckKey].
	PublicKey []byte `json:"publicKey"`
	// AuthenticatorData, ClientDataJSON and Signature are the assertion,
	// exactly as the browser handed it over.
	AuthenticatorData []byte `json:"authenticatorData"`
	ClientDataJSON    []byte `json:"clientDataJSON"`
	Signature         []byte `json:"signature"`
	// CounterWarning tells that the signature counter had not grown when the
	// decision was made, which may mean a copied authenticator. It is a remark
	// by who recorded the evidence; [Evidence.Verify] cannot check it.
	CounterWarning bool `json:"counterWarning,omitempty"`
}

// Verify checks that the credential in e signed digest, on a page of one of
// origins ("https://host" or with a port that is not the scheme's own), for the
// relying party rpID, with a person present and verified. Each refusal is an
// [*Error].
//
// The same evidence verifies as often as one likes. That a decision counts once
// must follow from the statement, which holds a nonce.
func (e Evidence) Verify(digest [32]byte, rpID string, origins []string) error {
	if digest == ([32]byte{}) {
		return refuse(WrongChallenge, "the all-zero digest stands for no statement")
	}
	if len(e.CredentialID) == 0 || rpID == "" {
		return refuse(Malformed, "no credential id or no relying party id")
	}
	want := ClientData{Type: TypeGet, Challenge: digest[:], Origins: origins}
	if err := want.Check(e.ClientDataJSON); err != nil {
		return err
	}
	data, err := ParseData(e.AuthenticatorData)
	if err != nil {
		return err
	}
	if err := data.Check(rpID); err != nil {
		return err
	}
	clientHash := sha256.Sum256(e.ClientDataJSON)
	return verifySignature(e.PublicKey, slices.Concat(e.AuthenticatorData, clientHash[:]), e.Signature)
}

// Data parses the signed authenticator data, from which a policy can read
// whether the passkey is synced between devices, and the signature counter.
func (e Evidence) Data() (Data, error) { return ParseData(e.AuthenticatorData) }

// Type is the ceremony that client data belongs to.
type Type string

const (
	TypeCreate Type = "webauthn.create"
	TypeGet    Type = "webauthn.get"
)

// ClientData says what the browser must have recorded about a ceremony.
type ClientData struct {
	Type      Type
	Challenge []byte
	Origins   []string // exact, as the browser serialises an origin
}

// Check compares raw client data (WebAuthn Level 3, section 5.8.1) with want.
// It reads more strictly than encoding/json into a struct does: member names
// count with their case, and no member may come twice. Members that it does
// not know are ignored, as the specification asks.
func (want ClientData) Check(clientDataJSON []byte) error {
	members, err := parseObject(clientDataJSON)
	if err != nil {
		return refuse(Malformed, "client data: %v", err)
	}
	if got, ok := members.text("type"); !ok || got != string(want.Type) || got == "" {
		return refuse(WrongType, "client data is of type %q, not %q", got, want.Type)
	}
	got, ok := members.text("challenge")
	if !ok || len(want.Challenge) == 0 || got != base64.RawURLEncoding.EncodeToString(want.Challenge) {
		return refuse(WrongChallenge, "client data has challenge %q", got)
	}
	if got, ok := members.text("origin"); !ok || got == "" || !slices.Contains(want.Origins, got) {
		return refuse(WrongOrigin, "client data has origin %q, not one of %q", got, want.Origins)
	}
	if raw, ok := members["crossOrigin"]; ok && string(raw) != "false" {
		return refuse(Embedded, "crossOrigin is %s", raw)
	}
	if raw, ok := members["topOrigin"]; ok {
		return refuse(Embedded, "topOrigin is %s", raw)
	}
	return nil
}

// object holds the members of a JSON object, undecoded.
type object map[string]json.RawMessage

// text returns a member that is a JSON string.
func (o object) text(name string) (string, bool) {
	raw := o[name]
	if len(raw) == 0 || raw[0] != '"' {
		return "", false
	}
	var s string
	err := json.Unmarshal(raw, &s)
	return s, err == nil
}

func parseObject(data []byte) (object, error) {
	if !utf8.Valid(data) {
		return nil, errors.New("not UTF-8")
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	if token, err := decoder.Token(); err != nil || token != json.Delim('{') {
		return nil, errors.New("not a JSON object")
	}
	members := object{}
	for decoder.More() {
		token, err := decoder.Token()
		if err != nil {
			return nil, err
		}
		name, ok := token.(string)
		if !ok {
			return nil, errors.New("a member without name")
		}
		if _, twice := members[name]; twice {
			return nil, fmt.Errorf("member %q comes twice", name)
		}
		var raw json.RawMessage
		if err := decoder.Decode(&raw); err != nil {
			return nil, err
		}
		members[name] = raw
	}
	if _, err := decoder.Token(); err != nil {
		return nil, err
	}
	if len(bytes.TrimSpace(data[decoder.InputOffset():])) > 0 {
		return nil, errors.New("text after the JSON object")
	}
	return members, nil
}

// Bits of the flags byte (WebAuthn Level 3, section 6.1).
const (
	flagUserPresent    = 1 << 0
	flagUserVerified   = 1 << 2
	flagBackupEligible = 1 << 3
	flagBackupState    = 1 << 4
	flagAttested       = 1 << 6
	flagExtensions     = 1 << 7
)

// dataLength is that of authenticator data without attested credential and
// extensions: hash, flags, counter.
const dataLength = 32 + 1 + 4

// Data is the authenticator data of an assertion.
type Data struct {
	RPIDHash [32]byte
	// SignCount is the signature counter; synced passkeys always report 0.
	SignCount uint32
	flags     byte
}

// ParseData reads the authenticator data of an assertion. Attested credential
// data, which belongs to registrations only, is refused. Extension outputs are
// covered by the signature but not read, because none is ever asked for.
func ParseData(raw []byte) (Data, error) {
	if len(raw) < dataLength {
		return Data{}, refuse(Malformed, "authenticator data has %d bytes, at least %d are needed", len(raw), dataLength)
	}
	d := Data{flags: raw[32], SignCount: binary.BigEndian.Uint32(raw[33:dataLength])}
	copy(d.RPIDHash[:], raw)
	if d.flags&flagAttested != 0 {
		return Data{}, refuse(Malformed, "authenticator data of an assertion holds an attested credential")
	}
	if hasMore := len(raw) > dataLength; hasMore != (d.flags&flagExtensions != 0) {
		return Data{}, refuse(Malformed, "authenticator data has %d bytes, its flags are %#x", len(raw), d.flags)
	}
	return d, nil
}

// UserPresent reports that somebody touched the authenticator.
func (d Data) UserPresent() bool { return d.flags&flagUserPresent != 0 }

// UserVerified reports that the authenticator checked a PIN, finger or face.
func (d Data) UserVerified() bool { return d.flags&flagUserVerified != 0 }

// BackupEligible reports that the credential may be synced between devices. It
// never changes in the life of a credential.
func (d Data) BackupEligible() bool { return d.flags&flagBackupEligible != 0 }

// BackupState reports that the credential is synced now.
func (d Data) BackupState() bool { return d.flags&flagBackupState != 0 }

// Check demands that d was made for rpID, with a person present and verified,
// and that its backup flags are possible.
func (d Data) Check(rpID string) error {
	switch {
	case d.RPIDHash != sha256.Sum256([]byte(rpID)):
		return refuse(WrongRP, "made for a relying party other than %q", rpID)
	case !d.UserPresent():
		return refuse(NotPresent, "flags are %#x", d.flags)
	case !d.UserVerified():
		return refuse(NotVerified, "flags are %#x", d.flags)
	case d.BackupState() && !d.BackupEligible():
		return refuse(ImpossibleBackup, "flags are %#x", d.flags)
	}
	return nil
}
