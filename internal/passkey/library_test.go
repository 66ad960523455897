package passkey_test

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"testing"

	"github.com/go-webauthn/webauthn/protocol"

	"vogt/internal/passkey"
	"vogt/internal/passkey/passkeytest"
)

// libraryAccepts verifies a decision with the library's own code, which shares
// none with package assertion.
func libraryAccepts(digest [32]byte, credential passkey.Credential, response []byte) error {
	parsed, err := protocol.ParseCredentialRequestResponseBytes(response)
	if err != nil {
		return err
	}
	if string(parsed.RawID) != string(credential.ID) {
		return errors.New("another credential")
	}
	challenge := base64.RawURLEncoding.EncodeToString(digest[:])
	return parsed.Verify(challenge, rpID, "", []string{origin}, nil, nil, protocol.TopOriginExplicitVerificationMode, false, true, true, credential.PublicKey, protocol.SignaturePolicy{})
}

// agreesWithLibrary demands that whatever is accepted here, the library accepts
// too.
func agreesWithLibrary(t *testing.T, digest [32]byte, credential passkey.Credential, response []byte) {
	t.Helper()
	rp := newRP(t, func(c *passkey.Config) { c.Origins = []string{origin} })
	_, ours := rp.VerifyDecision(digest, []passkey.Credential{credential}, response)
	if ours == nil {
		if theirs := libraryAccepts(digest, credential, response); theirs != nil {
			t.Errorf("accepted what the library refuses: %v\n%s", theirs, response)
		}
	}
}

func TestLibraryAcceptsHonestDecisions(t *testing.T) {
	digest := sha256.Sum256([]byte("statement"))
	for _, algorithm := range []passkeytest.Algorithm{passkeytest.ES256, passkeytest.EdDSA, passkeytest.RS256} {
		rp, a := newRP(t), passkeytest.New(origin, rpID)
		a.Algorithm = algorithm
		credential := register(t, rp, a)
		options, err := rp.BeginDecision(digest, []passkey.Credential{credential})
		if err != nil {
			t.Fatal(err)
		}
		response, err := a.Get(options)
		if err != nil {
			t.Fatal(err)
		}
		if err := libraryAccepts(digest, credential, response); err != nil {
			t.Errorf("algorithm %d: %v", algorithm, err)
		}
		if _, err := rp.VerifyDecision(digest, []passkey.Credential{credential}, response); err != nil {
			t.Errorf("algorithm %d: %v", algorithm, err)
		}
	}
}

// FuzzResponses feeds changed responses to all three ceremonies.
func FuzzResponses(f *testing.F) {
	rp, a := newRP(f, func(c *passkey.Config) { c.Origins = []string{origin} }), passkeytest.New(origin, rpID)
	creation, registration, err := rp.BeginRegistration(pat, nil)
	if err != nil {
		f.Fatal(err)
	}
	created, err := a.Create(creation)
	if err != nil {
		f.Fatal(err)
	}
	credential, err := rp.FinishRegistration(pat, registration, created)
	if err != nil {
		f.Fatal(err)
	}
	request, login, err := rp.BeginLogin()
	if err != nil {
		f.Fatal(err)
	}
	loggedIn, err := a.Get(request)
	if err != nil {
		f.Fatal(err)
	}
	digest := sha256.Sum256([]byte("statement"))
	request, err = rp.BeginDecision(digest, []passkey.Credential{credential})
	if err != nil {
		f.Fatal(err)
	}
	decided, err := a.Get(request)
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range [][]byte{created, loggedIn, decided, nil, []byte("{}"), []byte(`{"id":"AA","rawId":"AA","type":"public-key","response":{}}`)} {
		f.Add(seed)
	}
	other := sha256.Sum256([]byte("never signed"))
	f.Fuzz(func(t *testing.T, response []byte) {
		if c, err := rp.FinishRegistration(pat, registration, response); err == nil && len(c.ID) == 0 {
			t.Errorf("registered a credential without id from %s", response)
		}
		if id, _, err := rp.FinishLogin(login, response, knows(credential)); err == nil && string(id) != string(pat.ID) {
			t.Errorf("logged in %q from %s", id, response)
		}
		if _, err := rp.VerifyDecision(other, []passkey.Credential{credential}, response); err == nil {
			t.Errorf("decided over what was never signed with %s", response)
		}
		if _, err := rp.VerifyDecision(digest, []passkey.Credential{credential}, response); err == nil {
			if err := libraryAccepts(digest, credential, response); err != nil {
				t.Errorf("accepted what the library refuses: %v\n%s", err, response)
			}
		}
	})
}

// FuzzSessions feeds changed sessions, which the caller should never do.
func FuzzSessions(f *testing.F) {
	rp, a := newRP(f), passkeytest.New(origin, rpID)
	credential := register(f, rp, a)
	request, login, err := rp.BeginLogin()
	if err != nil {
		f.Fatal(err)
	}
	response, err := a.Get(request)
	if err != nil {
		f.Fatal(err)
	}
	_, registration, err := rp.BeginRegistration(pat, nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(login)
	f.Add(registration)
	f.Add([]byte("{}"))
	f.Fuzz(func(t *testing.T, session []byte) {
		if _, err := rp.FinishRegistration(pat, session, response); err == nil {
			t.Errorf("an assertion registered a credential with session %s", session)
		}
		rp.FinishLogin(session, response, knows(credential))
	})
}
