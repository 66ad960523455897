package passkey

import (
	"bytes"
	"encoding/json"
	"errors"

	"github.com/go-webauthn/webauthn/protocol"

	"vogt/internal/passkey/assertion"
)

// Evidence is the record of a decision, which verifies offline.
type Evidence = assertion.Evidence

// BeginDecision makes the options for navigator.credentials.get with which a
// person decides over the statement that has digest. The digest itself is the
// challenge, so there is no session: whoever holds the statement can verify
// the answer, now or years later. One of credentials must be used.
func (rp *RelyingParty) BeginDecision(digest [32]byte, credentials []Credential) (optionsJSON []byte, err error) {
	if rp == nil || rp.lib == nil {
		return nil, fail(Internal, errors.New("no relying party was configured"))
	}
	if digest == ([32]byte{}) {
		return nil, fail(Internal, errors.New("the all-zero digest stands for no statement"))
	}
	if len(credentials) == 0 {
		return nil, fail(NoPasskey, errors.New("no credentials to decide with"))
	}
	optionsJSON, err = json.Marshal(protocol.PublicKeyCredentialRequestOptions{
		Challenge:          digest[:],
		Timeout:            int(Timeout.Milliseconds()),
		RelyingPartyID:     rp.rpID,
		AllowedCredentials: descriptors(credentials),
		UserVerification:   protocol.VerificationRequired,
	})
	if err != nil {
		return nil, fail(Internal, err)
	}
	return optionsJSON, nil
}

// VerifyDecision checks the browser's answer, an AuthenticationResponseJSON,
// and returns the evidence that one of credentials decided over digest. Store
// [Credential.After] of that credential.
//
// The same answer verifies again and again: that the statement behind digest is
// decided once, and in time, is the caller's business.
func (rp *RelyingParty) VerifyDecision(digest [32]byte, credentials []Credential, responseJSON []byte) (Evidence, error) {
	if err := rp.checkResponse(responseJSON); err != nil {
		return Evidence{}, err
	}
	parsed, err := protocol.ParseCredentialRequestResponseBytes(responseJSON)
	if err != nil {
		return Evidence{}, fail(Malformed, err)
	}
	stored, ok := find(credentials, parsed.RawID)
	if !ok {
		return Evidence{}, fail(UnknownPasskey, errors.New("the credential is not one of those that may decide"))
	}
	raw := parsed.Raw.AssertionResponse
	evidence := Evidence{
		CredentialID:      bytes.Clone(stored.ID),
		PublicKey:         bytes.Clone(stored.PublicKey),
		AuthenticatorData: raw.AuthenticatorData,
		ClientDataJSON:    raw.ClientDataJSON,
		Signature:         raw.Signature,
	}
	if err := evidence.Verify(digest, rp.rpID, rp.origins); err != nil {
		return Evidence{}, fromAssertion(err)
	}
	data, err := evidence.Data()
	if err != nil {
		return Evidence{}, fromAssertion(err)
	}
	if data.BackupEligible() != stored.BackupEligible {
		return Evidence{}, fail(Refused, errors.New("the backup eligibility changed, which no credential's ever does"))
	}
	evidence.CounterWarning = stored.after(data).CounterWarning
	return evidence, nil
}
