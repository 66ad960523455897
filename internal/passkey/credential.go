package passkey

import (
	"bytes"
	"slices"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/webauthn"

	"vogt/internal/passkey/assertion"
)

// Credential is what the server keeps of a passkey. It is public. Its JSON form
// is stable; bytes are standard base64.
type Credential struct {
	// ID is the credential's name, unique among all accounts, 1 to 1023 bytes.
	ID []byte `json:"id"`
	// PublicKey is a COSE_Key, see [assertion.CheckKey].
	PublicKey []byte `json:"publicKey"`
	// AAGUID names the authenticator's model, 16 bytes; all zero if unknown.
	// Nothing proves it, since no attestation is asked for.
	AAGUID []byte `json:"aaguid"`
	// SignCount is the highest signature counter seen; synced passkeys always
	// report 0.
	SignCount uint32 `json:"signCount"`
	// BackupEligible tells that the passkey may be synced between devices. It
	// never changes.
	BackupEligible bool `json:"backupEligible"`
	// BackupState tells that the passkey was synced when last used.
	BackupState bool `json:"backupState"`
	// CounterWarning tells that at its last use the counter had not grown,
	// which may mean a copied authenticator.
	CounterWarning bool `json:"counterWarning,omitempty"`
	// Transports are hints for the browser on how to reach the authenticator.
	Transports []string `json:"transports,omitempty"`
}

// After returns c as it must be stored once the decision in e was made with it:
// with the new counter and backup state, and with CounterWarning if the counter
// did not grow. It does not verify e, and fails only if e is unreadable.
func (c Credential) After(e Evidence) (Credential, error) {
	data, err := e.Data()
	if err != nil {
		return Credential{}, fromAssertion(err)
	}
	return c.after(data), nil
}

// after is the counter rule of WebAuthn Level 3, section 7.2: a counter that
// does not grow is a warning, unless it was never used at all. It is no
// refusal, because synced passkeys and some authenticators cannot count.
func (c Credential) after(data assertion.Data) Credential {
	c.BackupState = data.BackupState()
	c.CounterWarning = data.SignCount <= c.SignCount && (data.SignCount != 0 || c.SignCount != 0)
	c.SignCount = max(c.SignCount, data.SignCount)
	return c
}

func find(credentials []Credential, id []byte) (Credential, bool) {
	i := slices.IndexFunc(credentials, func(c Credential) bool { return bytes.Equal(c.ID, id) })
	if i < 0 {
		return Credential{}, false
	}
	return credentials[i], true
}

func fromLibraryCredential(made *webauthn.Credential) Credential {
	c := Credential{
		ID:             bytes.Clone(made.ID),
		PublicKey:      bytes.Clone(made.PublicKey),
		AAGUID:         bytes.Clone(made.Authenticator.AAGUID),
		SignCount:      made.Authenticator.SignCount,
		BackupEligible: made.Flags.BackupEligible,
		BackupState:    made.Flags.BackupState,
	}
	// The browser's word, unsigned: keep what is known, once.
	for _, transport := range made.Transport {
		switch transport {
		case protocol.USB, protocol.NFC, protocol.BLE, protocol.SmartCard, protocol.Hybrid, protocol.Internal:
			if !slices.Contains(c.Transports, string(transport)) {
				c.Transports = append(c.Transports, string(transport))
			}
		}
	}
	return c
}

func (c Credential) library() webauthn.Credential {
	// Every registration had a person present and verified.
	flags := protocol.FlagUserPresent | protocol.FlagUserVerified
	if c.BackupEligible {
		flags |= protocol.FlagBackupEligible
	}
	if c.BackupState {
		flags |= protocol.FlagBackupState
	}
	return webauthn.Credential{
		ID:            c.ID,
		PublicKey:     c.PublicKey,
		Transport:     c.libraryTransports(),
		Flags:         webauthn.NewCredentialFlags(flags),
		Authenticator: webauthn.Authenticator{AAGUID: c.AAGUID, SignCount: c.SignCount},
	}
}

func (c Credential) libraryTransports() []protocol.AuthenticatorTransport {
	var out []protocol.AuthenticatorTransport
	for _, transport := range c.Transports {
		out = append(out, protocol.AuthenticatorTransport(transport))
	}
	return out
}

func descriptors(credentials []Credential) []protocol.CredentialDescriptor {
	var out []protocol.CredentialDescriptor
	for _, c := range credentials {
		out = append(out, protocol.CredentialDescriptor{
			Type:         protocol.PublicKeyCredentialType,
			CredentialID: c.ID,
			Transport:    c.libraryTransports(),
		})
	}
	return out
}

// account is a user as the library wants it.
type account struct {
	user        User
	credentials []Credential
}

func (a account) WebAuthnID() []byte          { return a.user.ID }
func (a account) WebAuthnName() string        { return a.user.Name }
func (a account) WebAuthnDisplayName() string { return a.user.DisplayName }
func (a account) WebAuthnCredentials() []webauthn.Credential {
	var out []webauthn.Credential
	for _, c := range a.credentials {
		out = append(out, c.library())
	}
	return out
}
