// Package passkey owns passkeys on the server: registering one, logging in with
// one, and deciding with one, each as a WebAuthn ceremony (W3C Web
// Authentication Level 3) of which this package makes the options for the
// browser and checks the browser's answer.
//
// It narrows what WebAuthn leaves open. A person must be present and verified,
// the passkey must be discoverable, no attestation is asked for, the page must
// have one of the configured origins byte for byte, and it must not sit in a
// frame of another origin. Authenticators sign no purpose, so what separates
// the ceremonies is the challenge: random and kept in a session for
// registration and login, the digest of the statement for a decision. A
// relying party whose pages may be compromised can still present a digest as a
// login; decisions that must resist that need credentials under an RP ID of
// their own, that is, a second [RelyingParty].
//
// The package leaves out storage: the caller keeps credentials and sessions,
// sees to it that a session is used once, and knows whose credential is whose.
// Verifying a recorded decision offline is in package assertion below, which
// needs no WebAuthn library.
package passkey

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/protocol/webauthncose"
	"github.com/go-webauthn/webauthn/webauthn"

	"vogt/internal/passkey/assertion"
)

const (
	// Timeout is how long a ceremony may take, for the browser and for a
	// session.
	Timeout = 5 * time.Minute

	// MaxResponse bounds the browser's answer, in bytes.
	MaxResponse = 64 << 10

	challengeSize = 32
)

// Config describes one relying party. RPID, RPName and Origins are required.
type Config struct {
	// RPID is the domain that the passkeys belong to, in lower case, such as
	// "vogt.localhost". It has no port: pages on other ports of the same host
	// can ask for the same passkeys, and only Origins keeps them out.
	RPID string
	// RPName is what authenticators show to the person.
	RPName string
	// Origins are the pages that may ask, as browsers write an origin: scheme,
	// host and, if it is not the scheme's own, port. The host must be RPID or
	// below it; http is for localhost and names below it only.
	Origins []string
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Rand makes challenges and must be safe for concurrent use; nil means
	// crypto/rand.
	Rand io.Reader
}

// RelyingParty runs the ceremonies. It is immutable and safe for concurrent
// use. The zero value refuses everything.
type RelyingParty struct {
	lib     *webauthn.WebAuthn
	rpID    string
	origins []string
	now     func() time.Time
	rand    io.Reader
}

// User is the account that a passkey belongs to. The authenticator stores all
// of it.
type User struct {
	// ID is the user handle, 1 to 64 bytes. It must stay the same and should
	// be random, since anyone who holds the authenticator can read it.
	ID []byte
	// Name tells accounts apart, such as a mail address.
	Name string
	// DisplayName is how the person is called.
	DisplayName string
}

// New checks config and makes a RelyingParty.
func New(config Config) (*RelyingParty, error) {
	if err := checkRPID(config.RPID); err != nil {
		return nil, fmt.Errorf("passkey: RP ID %q: %w", config.RPID, err)
	}
	if config.RPName == "" {
		return nil, errors.New("passkey: no RP name; authenticators show it to the person")
	}
	if len(config.Origins) == 0 {
		return nil, errors.New("passkey: no origins; name the pages that may ask for passkeys, such as http://vogt.localhost:8648")
	}
	for _, origin := range config.Origins {
		if err := checkOrigin(origin, config.RPID); err != nil {
			return nil, fmt.Errorf("passkey: origin %q: %w", origin, err)
		}
	}
	rp := &RelyingParty{rpID: config.RPID, origins: slices.Clone(config.Origins), now: config.Now, rand: config.Rand}
	if rp.now == nil {
		rp.now = time.Now
	}
	if rp.rand == nil {
		rp.rand = rand.Reader
	}
	lib, err := webauthn.New(&webauthn.Config{
		RPID:                  rp.rpID,
		RPDisplayName:         config.RPName,
		RPOrigins:             slices.Clone(config.Origins),
		AttestationPreference: protocol.PreferNoAttestation,
		AuthenticatorSelection: protocol.AuthenticatorSelection{
			RequireResidentKey: protocol.ResidentKeyRequired(),
			ResidentKey:        protocol.ResidentKeyRequirementRequired,
			UserVerification:   protocol.VerificationRequired,
		},
		// The library would read the system's clock; sessions carry our own
		// expiry instead.
		Timeouts: webauthn.TimeoutsConfig{
			Login:        webauthn.TimeoutConfig{Timeout: Timeout},
			Registration: webauthn.TimeoutConfig{Timeout: Timeout},
		},
		// Some password managers report extensions that nobody asked for. No
		// decision here depends on one, so that is no reason to turn a person
		// away.
		ExtensionsUnsolicitedOutputPolicy: protocol.UnsolicitedOutputPolicyIgnore,
	})
	if err != nil {
		return nil, fmt.Errorf("passkey: %w", err)
	}
	rp.lib = lib
	return rp, nil
}

func checkRPID(rpID string) error {
	if rpID != strings.ToLower(rpID) {
		return errors.New("write it in lower case")
	}
	if err := protocol.ValidateRPID(rpID); err != nil {
		return fmt.Errorf("%w; use a domain name such as vogt.localhost, without scheme and port", err)
	}
	return nil
}

// checkOrigin demands the one spelling that browsers use, because origins are
// compared as text.
func checkOrigin(origin, rpID string) error {
	u, err := url.Parse(origin)
	if err != nil {
		return errors.New("not a URL")
	}
	host, port := u.Hostname(), u.Port()
	if _, err := netip.ParseAddr(host); err == nil {
		return errors.New("an address cannot have passkeys; use a domain name such as vogt.localhost")
	}
	canonical := u.Scheme + "://" + host
	if port != "" {
		number, err := strconv.ParseUint(port, 10, 16)
		if err != nil || number == 0 {
			return errors.New("its port is not between 1 and 65535")
		}
		canonical += ":" + strconv.FormatUint(number, 10)
	}
	if origin != canonical || origin != strings.ToLower(origin) {
		return errors.New("write scheme, host and port only, in lower case, such as https://vogt.example or http://vogt.localhost:8648")
	}
	if err := protocol.ValidateRPID(host); err != nil {
		return err
	}
	if host != rpID && !strings.HasSuffix(host, "."+rpID) {
		return fmt.Errorf("its host is neither %q nor below it", rpID)
	}
	local := host == "localhost" || strings.HasSuffix(host, ".localhost")
	switch {
	case u.Scheme == "https" && port != "443":
		return nil
	case u.Scheme == "http" && port != "80" && local:
		return nil
	case u.Scheme == "http" && !local:
		return errors.New("browsers offer passkeys over http only on localhost and names below it; use https")
	case u.Scheme == "http" || u.Scheme == "https":
		return errors.New("leave out the port, it is the scheme's own; browsers do")
	default:
		return errors.New("the scheme must be https, or http on localhost")
	}
}

// purpose binds a session to one kind of ceremony.
type purpose string

const (
	forRegistration purpose = "registration"
	forLogin        purpose = "login"
)

// session is what a ceremony needs to remember between begin and finish.
type session struct {
	Purpose purpose              `json:"purpose"`
	Expires time.Time            `json:"expires"`
	Library webauthn.SessionData `json:"library"`
}

func (rp *RelyingParty) sealSession(p purpose, library *webauthn.SessionData) ([]byte, error) {
	blob, err := json.Marshal(session{Purpose: p, Expires: rp.now().Add(Timeout), Library: *library})
	if err != nil {
		return nil, fail(Internal, err)
	}
	return blob, nil
}

// openSession refuses a session of another purpose, of another relying party,
// and one that has expired.
func (rp *RelyingParty) openSession(p purpose, blob []byte) (webauthn.SessionData, error) {
	var s session
	decoder := json.NewDecoder(bytes.NewReader(blob))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&s); err != nil {
		return webauthn.SessionData{}, fail(Internal, fmt.Errorf("the session is unreadable: %w", err))
	}
	if s.Purpose != p {
		return webauthn.SessionData{}, fail(WrongCeremony, fmt.Errorf("a session for %q cannot finish a %s", s.Purpose, p))
	}
	if s.Library.RelyingPartyID != rp.rpID {
		return webauthn.SessionData{}, fail(WrongCeremony, fmt.Errorf("a session of relying party %q came to %q", s.Library.RelyingPartyID, rp.rpID))
	}
	if s.Library.UserVerification != protocol.VerificationRequired {
		return webauthn.SessionData{}, fail(Internal, errors.New("the session does not demand user verification"))
	}
	if !rp.now().Before(s.Expires) {
		return webauthn.SessionData{}, fail(Expired, fmt.Errorf("the session expired at %s", s.Expires.Format(time.RFC3339)))
	}
	return s.Library, nil
}

// begin draws a challenge, or refuses when rp is the zero value.
func (rp *RelyingParty) begin() ([]byte, error) {
	if rp == nil || rp.lib == nil {
		return nil, fail(Internal, errors.New("no relying party was configured"))
	}
	challenge := make([]byte, challengeSize)
	if _, err := io.ReadFull(rp.rand, challenge); err != nil {
		return nil, fail(Internal, fmt.Errorf("no randomness for a challenge: %w", err))
	}
	return challenge, nil
}

// checkResponse is what every finish starts with.
func (rp *RelyingParty) checkResponse(responseJSON []byte) error {
	if rp == nil || rp.lib == nil {
		return fail(Internal, errors.New("no relying party was configured"))
	}
	if len(responseJSON) > MaxResponse {
		return fail(Malformed, fmt.Errorf("the response has %d bytes, at most %d are read", len(responseJSON), MaxResponse))
	}
	return nil
}

// checkClientData applies our stricter reading before the library's own.
func (rp *RelyingParty) checkClientData(t assertion.Type, session webauthn.SessionData, raw []byte) error {
	challenge, err := base64.RawURLEncoding.DecodeString(session.Challenge)
	if err != nil || len(challenge) != challengeSize {
		return fail(Internal, errors.New("the session holds no challenge"))
	}
	want := assertion.ClientData{Type: t, Challenge: challenge, Origins: rp.origins}
	return fromAssertion(want.Check(raw))
}

// BeginRegistration makes the options for navigator.credentials.create, in the
// form that PublicKeyCredential.parseCreationOptionsFromJSON reads, and a
// session. exclude holds the person's passkeys so far, so that the same
// authenticator is not registered twice.
//
// The session is opaque. Keep it on the server for at most [Timeout], never
// hand it to the browser, and delete it before calling
// [RelyingParty.FinishRegistration], whatever the outcome: a session that can
// be used twice allows a response to be replayed.
func (rp *RelyingParty) BeginRegistration(user User, exclude []Credential) (optionsJSON, session []byte, err error) {
	challenge, err := rp.begin()
	if err != nil {
		return nil, nil, err
	}
	creation, data, err := rp.lib.BeginRegistration(account{user: user}, func(o *protocol.PublicKeyCredentialCreationOptions) error {
		o.Challenge = challenge
		o.CredentialExcludeList = descriptors(exclude)
		o.Parameters = []protocol.CredentialParameter{
			{Type: protocol.PublicKeyCredentialType, Algorithm: webauthncose.AlgES256},
			{Type: protocol.PublicKeyCredentialType, Algorithm: webauthncose.AlgEdDSA},
			{Type: protocol.PublicKeyCredentialType, Algorithm: webauthncose.AlgRS256}, // Windows Hello on older TPMs
		}
		return nil
	})
	if err != nil {
		return nil, nil, fail(Internal, err)
	}
	return rp.seal(forRegistration, creation.Response, data)
}

// seal encodes options and session.
func (rp *RelyingParty) seal(p purpose, options any, data *webauthn.SessionData) (optionsJSON, session []byte, err error) {
	optionsJSON, err = json.Marshal(options)
	if err != nil {
		return nil, nil, fail(Internal, err)
	}
	session, err = rp.sealSession(p, data)
	if err != nil {
		return nil, nil, err
	}
	return optionsJSON, session, nil
}

// FinishRegistration checks the browser's answer, a RegistrationResponseJSON,
// and returns the new credential. user must be the one of
// [RelyingParty.BeginRegistration]. The caller must refuse a credential whose
// ID is registered already, for this person or another.
func (rp *RelyingParty) FinishRegistration(user User, session, responseJSON []byte) (Credential, error) {
	if err := rp.checkResponse(responseJSON); err != nil {
		return Credential{}, err
	}
	data, err := rp.openSession(forRegistration, session)
	if err != nil {
		return Credential{}, err
	}
	parsed, err := protocol.ParseCredentialCreationResponseBytes(responseJSON)
	if err != nil {
		return Credential{}, fail(Malformed, err)
	}
	if err := rp.checkClientData(assertion.TypeCreate, data, parsed.Raw.AttestationResponse.ClientDataJSON); err != nil {
		return Credential{}, err
	}
	// No attestation was asked for. Browsers then send "none", or "packed" if
	// the key attests itself; other formats would only lead hostile input to
	// certificate and TPM parsers.
	switch format := parsed.Response.AttestationObject.Format; protocol.AttestationFormat(format) {
	case protocol.AttestationFormatNone, protocol.AttestationFormatPacked:
	default:
		return Credential{}, fail(Refused, fmt.Errorf("attestation of format %q, though none was asked for", format))
	}
	made, err := rp.lib.CreateCredential(account{user: user}, data, parsed)
	if err != nil {
		return Credential{}, fromLibrary(err, parsed.Response.AttestationObject.AuthData, rp.rpID)
	}
	if err := assertion.CheckKey(made.PublicKey); err != nil {
		return Credential{}, fromAssertion(err)
	}
	return fromLibraryCredential(made), nil
}

// BeginLogin makes the options for navigator.credentials.get, in the form that
// PublicKeyCredential.parseRequestOptionsFromJSON reads, and a session, to be
// kept and deleted as with [RelyingParty.BeginRegistration]. The browser lets
// the person choose among all passkeys of the relying party.
func (rp *RelyingParty) BeginLogin() (optionsJSON, session []byte, err error) {
	challenge, err := rp.begin()
	if err != nil {
		return nil, nil, err
	}
	request, data, err := rp.lib.BeginDiscoverableLogin(func(o *protocol.PublicKeyCredentialRequestOptions) error {
		o.Challenge = challenge
		return nil
	})
	if err != nil {
		return nil, nil, fail(Internal, err)
	}
	return rp.seal(forLogin, request.Response, data)
}

// Lookup finds the account of a user handle, with its passkeys. It returns no
// passkeys if there is no such account or if the account may not log in; an
// error means that looking itself failed. Both arguments are the browser's
// claim; whether they fit together is checked afterwards.
type Lookup func(credentialID, userHandle []byte) (User, []Credential, error)

// FinishLogin checks the browser's answer, an AuthenticationResponseJSON, and
// returns who logged in and the credential as it must now be stored: with the
// new counter and backup state, and with [Credential.CounterWarning] if the
// counter did not grow.
func (rp *RelyingParty) FinishLogin(session, responseJSON []byte, lookup Lookup) (userID []byte, used Credential, err error) {
	if err := rp.checkResponse(responseJSON); err != nil {
		return nil, Credential{}, err
	}
	data, err := rp.openSession(forLogin, session)
	if err != nil {
		return nil, Credential{}, err
	}
	parsed, err := protocol.ParseCredentialRequestResponseBytes(responseJSON)
	if err != nil {
		return nil, Credential{}, fail(Malformed, err)
	}
	if err := rp.checkClientData(assertion.TypeGet, data, parsed.Raw.AssertionResponse.ClientDataJSON); err != nil {
		return nil, Credential{}, err
	}
	signed, err := assertion.ParseData(parsed.Raw.AssertionResponse.AuthenticatorData)
	if err == nil {
		err = signed.Check(rp.rpID)
	}
	if err != nil {
		return nil, Credential{}, fromAssertion(err)
	}
	user, credentials, err := lookup(parsed.RawID, parsed.Response.UserHandle)
	if err != nil {
		return nil, Credential{}, fail(Internal, fmt.Errorf("looking up the account: %w", err))
	}
	stored, ok := find(credentials, parsed.RawID)
	if !ok {
		return nil, Credential{}, fail(UnknownPasskey, errors.New("no account with this user handle has this passkey"))
	}
	_, err = rp.lib.ValidateDiscoverableLogin(func([]byte, []byte) (webauthn.User, error) {
		return account{user, credentials}, nil
	}, data, parsed)
	if err != nil {
		return nil, Credential{}, fail(Refused, err)
	}
	return bytes.Clone(user.ID), stored.after(signed), nil
}
