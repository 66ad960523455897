package passkey_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"vogt/internal/passkey"
	"vogt/internal/passkey/assertion"
	"vogt/internal/passkey/passkeytest"
)

const (
	origin = "http://vogt.localhost:8648"
	rpID   = "vogt.localhost"
)

var pat = passkey.User{ID: []byte("user-handle-of-pat"), Name: "pat@example.org", DisplayName: "Pat"}

// clock is a clock that only the test moves.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

func newClock() *clock { return &clock{time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)} }

func newRP(t testing.TB, change ...func(*passkey.Config)) *passkey.RelyingParty {
	t.Helper()
	config := passkey.Config{RPID: rpID, RPName: "Vogt", Origins: []string{origin, "https://vogt.localhost:8650"}, Now: newClock().now}
	for _, c := range change {
		c(&config)
	}
	rp, err := passkey.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return rp
}

// register makes a passkey of pat.
func register(t testing.TB, rp *passkey.RelyingParty, a *passkeytest.Authenticator) passkey.Credential {
	t.Helper()
	options, session, err := rp.BeginRegistration(pat, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := a.Create(options)
	if err != nil {
		t.Fatal(err)
	}
	credential, err := rp.FinishRegistration(pat, session, response)
	if err != nil {
		t.Fatal(err)
	}
	return credential
}

// knows is a lookup that knows pat with these credentials.
func knows(credentials ...passkey.Credential) passkey.Lookup {
	return func(_, userHandle []byte) (passkey.User, []passkey.Credential, error) {
		if !bytes.Equal(userHandle, pat.ID) {
			return passkey.User{}, nil, nil
		}
		return pat, credentials, nil
	}
}

// wantCode fails unless err is a refusal of that code.
func wantCode(t *testing.T, err error, want passkey.Code) {
	t.Helper()
	var refusal *passkey.Error
	if !errors.As(err, &refusal) {
		t.Fatalf("got %v, want a refusal with code %q", err, want)
	}
	if refusal.Code != want {
		t.Errorf("refused with code %q (%v), want %q", refusal.Code, err, want)
	}
}

func TestCeremonies(t *testing.T) {
	digest := sha256.Sum256([]byte("statement"))
	for name, tc := range map[string]struct {
		algorithm passkeytest.Algorithm
		synced    bool
	}{
		"ES256":         {passkeytest.ES256, false},
		"ES256 synced":  {passkeytest.ES256, true},
		"EdDSA":         {passkeytest.EdDSA, false},
		"RS256":         {passkeytest.RS256, false},
		"browser's own": {0, true},
	} {
		t.Run(name, func(t *testing.T) {
			rp, a := newRP(t), passkeytest.New(origin, rpID)
			a.Algorithm, a.Synced = tc.algorithm, tc.synced
			credential := register(t, rp, a)
			if credential.BackupEligible != tc.synced || credential.BackupState != tc.synced || credential.SignCount != 0 || len(credential.AAGUID) != 16 || !slices.Equal(credential.Transports, []string{"internal"}) {
				t.Errorf("registered %+v", credential)
			}

			options, session, err := rp.BeginLogin()
			if err != nil {
				t.Fatal(err)
			}
			response, err := a.Get(options)
			if err != nil {
				t.Fatal(err)
			}
			userID, used, err := rp.FinishLogin(session, response, knows(credential))
			if err != nil || !bytes.Equal(userID, pat.ID) {
				t.Fatalf("logged in %q, %v", userID, err)
			}
			wantCount := uint32(1)
			if tc.synced {
				wantCount = 0
			}
			if used.SignCount != wantCount || used.CounterWarning || !bytes.Equal(used.ID, credential.ID) {
				t.Errorf("after the login %+v", used)
			}

			evidence := decide(t, rp, a, digest, used)
			if evidence.CounterWarning {
				t.Error("warned of an honest counter")
			}
			text, err := json.Marshal(evidence)
			if err != nil {
				t.Fatal(err)
			}
			var later passkey.Evidence
			if err := json.Unmarshal(text, &later); err != nil {
				t.Fatal(err)
			}
			if err := later.Verify(digest, rpID, []string{origin}); err != nil {
				t.Errorf("offline: %v", err)
			}
			stored, err := used.After(later)
			if err != nil || stored.CounterWarning || (!tc.synced && stored.SignCount != 2) {
				t.Errorf("after the decision %+v, %v", stored, err)
			}
		})
	}
}

// decide makes an honest decision.
func decide(t testing.TB, rp *passkey.RelyingParty, a *passkeytest.Authenticator, digest [32]byte, credentials ...passkey.Credential) passkey.Evidence {
	t.Helper()
	options, err := rp.BeginDecision(digest, credentials)
	if err != nil {
		t.Fatal(err)
	}
	response, err := a.Get(options)
	if err != nil {
		t.Fatal(err)
	}
	evidence, err := rp.VerifyDecision(digest, credentials, response)
	if err != nil {
		t.Fatal(err)
	}
	return evidence
}

func TestOptions(t *testing.T) {
	rp, a := newRP(t), passkeytest.New(origin, rpID)
	credential := register(t, rp, a)

	var creation struct {
		RP struct {
			ID, Name string
		}
		User      struct{ ID, Name, DisplayName string }
		Challenge string
		Timeout   int
		Params    []struct {
			Type string
			Alg  int
		} `json:"pubKeyCredParams"`
		Exclude []struct {
			ID         string
			Transports []string
		} `json:"excludeCredentials"`
		Selection struct {
			RequireResidentKey            bool
			ResidentKey, UserVerification string
		} `json:"authenticatorSelection"`
		Attestation string
	}
	options, _, err := rp.BeginRegistration(pat, []passkey.Credential{credential})
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(options, &creation); err != nil {
		t.Fatal(err)
	}
	if s := creation.Selection; s.UserVerification != "required" || s.ResidentKey != "required" || !s.RequireResidentKey || creation.Attestation != "none" {
		t.Errorf("%s", options)
	}
	if creation.RP.ID != rpID || creation.RP.Name != "Vogt" || creation.User.Name != pat.Name || creation.Timeout != 300000 || len(creation.Params) != 3 {
		t.Errorf("%s", options)
	}
	if len(creation.Exclude) != 1 || creation.Exclude[0].ID != base64.RawURLEncoding.EncodeToString(credential.ID) {
		t.Errorf("%s", options)
	}
	if _, err := a.Create(options); err == nil || !strings.Contains(err.Error(), "InvalidStateError") {
		t.Errorf("the excluded authenticator made another passkey: %v", err)
	}

	var request struct {
		Challenge, RPID, UserVerification string
		Timeout                           int
		AllowCredentials                  []struct{ ID, Type string }
	}
	options, _, err = rp.BeginLogin()
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(options, &request); err != nil {
		t.Fatal(err)
	}
	if request.UserVerification != "required" || request.RPID != rpID || request.Timeout != 300000 || request.AllowCredentials != nil || len(request.Challenge) != 43 {
		t.Errorf("%s", options)
	}

	digest := sha256.Sum256([]byte("statement"))
	options, err = rp.BeginDecision(digest, []passkey.Credential{credential})
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(options, &request); err != nil {
		t.Fatal(err)
	}
	if request.UserVerification != "required" || request.RPID != rpID || request.Timeout != 300000 || len(request.AllowCredentials) != 1 {
		t.Errorf("%s", options)
	}
	if request.Challenge != base64.RawURLEncoding.EncodeToString(digest[:]) {
		t.Errorf("the challenge %q is not the digest", request.Challenge)
	}
}

func TestChallengesDiffer(t *testing.T) {
	rp := newRP(t)
	seen := map[string]bool{}
	for range 50 {
		_, session, err := rp.BeginLogin()
		if err != nil {
			t.Fatal(err)
		}
		if seen[string(session)] {
			t.Fatal("the same session twice")
		}
		seen[string(session)] = true
	}
	rp = newRP(t, func(c *passkey.Config) { c.Rand = iotest.ErrReader(errors.New("dry")) })
	_, _, err := rp.BeginLogin()
	wantCode(t, err, passkey.Internal)
	_, _, err = rp.BeginRegistration(pat, nil)
	wantCode(t, err, passkey.Internal)
}

// attacks are lies about a ceremony, with the code that each must meet.
// "ceremony" stands for what is not the ceremony's type.
var attacks = map[string]struct {
	attack passkeytest.Attack
	code   passkey.Code
}{
	"foreign site":          {passkeytest.Attack{Origin: "http://evil.localhost:8648"}, passkey.WrongSite},
	"other port":            {passkeytest.Attack{Origin: "http://vogt.localhost:3000"}, passkey.WrongSite},
	"no port":               {passkeytest.Attack{Origin: "http://vogt.localhost"}, passkey.WrongSite},
	"other scheme":          {passkeytest.Attack{Origin: "https://vogt.localhost:8648"}, passkey.WrongSite},
	"subdomain":             {passkeytest.Attack{Origin: "http://x.vogt.localhost:8648"}, passkey.WrongSite},
	"path after the origin": {passkeytest.Attack{Origin: origin + "/"}, passkey.WrongSite},
	"capitals":              {passkeytest.Attack{Origin: "http://Vogt.localhost:8648"}, passkey.WrongSite},
	"user in the origin":    {passkeytest.Attack{Origin: "http://x@vogt.localhost:8648"}, passkey.WrongSite},
	"other relying party":   {passkeytest.Attack{RPID: "localhost"}, passkey.WrongSite},
	"cross origin":          {passkeytest.Attack{CrossOrigin: true}, passkey.WrongSite},
	"frame":                 {passkeytest.Attack{CrossOrigin: true, TopOrigin: "http://evil.localhost"}, passkey.WrongSite},
	"frame in our page":     {passkeytest.Attack{CrossOrigin: true, TopOrigin: origin}, passkey.WrongSite},
	"top origin only":       {passkeytest.Attack{TopOrigin: origin}, passkey.WrongSite},
	"crossOrigin as text":   {passkeytest.Attack{ClientData: replace(`"crossOrigin":false`, `"crossOrigin":"false"`)}, passkey.Malformed},
	"crossOrigin as null":   {passkeytest.Attack{ClientData: replace(`"crossOrigin":false`, `"crossOrigin":null`)}, passkey.WrongSite},
	"empty topOrigin":       {passkeytest.Attack{ClientData: replace(`"crossOrigin":false`, `"topOrigin":""`)}, passkey.WrongSite},
	"null topOrigin":        {passkeytest.Attack{ClientData: replace(`"crossOrigin":false`, `"topOrigin":null`)}, passkey.WrongSite},
	"nobody present":        {passkeytest.Attack{NoUserPresence: true}, passkey.NotVerified},
	"nobody verified":       {passkeytest.Attack{NoUserVerification: true}, passkey.NotVerified},
	"other challenge":       {passkeytest.Attack{Challenge: bytes.Repeat([]byte{1}, 32)}, passkey.WrongCeremony},
	"short challenge":       {passkeytest.Attack{Challenge: []byte{1}}, passkey.WrongCeremony},
	"padded challenge":      {passkeytest.Attack{ClientData: replace(`","origin"`, `=","origin"`)}, passkey.WrongCeremony},
	"made-up type":          {passkeytest.Attack{Type: "payment.get"}, passkey.WrongCeremony},
	"type with a blank":     {passkeytest.Attack{Type: "webauthn.get "}, passkey.WrongCeremony},
	"type in capitals":      {passkeytest.Attack{ClientData: replace(`"type"`, `"Type"`)}, passkey.WrongCeremony},
	"type twice":            {passkeytest.Attack{ClientData: replace(`{"type"`, `{"type":"webauthn.create","type"`)}, passkey.Malformed},
	"origin twice":          {passkeytest.Attack{ClientData: replace(`"origin"`, `"origin":"http://evil","origin"`)}, passkey.Malformed},
	"origin in two cases":   {passkeytest.Attack{ClientData: replace(`"origin":"http://vogt.localhost:8648"`, `"origin":"http://evil","Origin":"http://vogt.localhost:8648"`)}, passkey.WrongSite},
	"no origin":             {passkeytest.Attack{ClientData: replace(`"origin"`, `"oregano"`)}, passkey.WrongSite},
	"text after":            {passkeytest.Attack{ClientData: func(b []byte) []byte { return append(b, "{}"...) }}, passkey.Malformed},
	"bad UTF-8":             {passkeytest.Attack{ClientData: func(b []byte) []byte { return append(b[:len(b)-1], ",\"x\":\"\xff\"}"...) }}, passkey.Malformed},
	"no client data":        {passkeytest.Attack{ClientData: func([]byte) []byte { return nil }}, passkey.Malformed},
	"backed up, not fit":    {passkeytest.Attack{AuthenticatorData: flip(32, 0x10)}, passkey.Refused},
	"cut data":              {passkeytest.Attack{AuthenticatorData: func(b []byte) []byte { return b[:36] }}, passkey.Malformed},
	"longer data":           {passkeytest.Attack{AuthenticatorData: func(b []byte) []byte { return append(b, 0) }}, passkey.Malformed},
}

func replace(old, new string) func([]byte) []byte {
	return func(b []byte) []byte { return bytes.Replace(b, []byte(old), []byte(new), 1) }
}

func flip(at int, bits byte) func([]byte) []byte {
	return func(b []byte) []byte {
		b = bytes.Clone(b)
		b[at] ^= bits
		return b
	}
}

func TestRegistrationRefuses(t *testing.T) {
	attempt := func(t *testing.T, attack passkeytest.Attack) error {
		rp, a := newRP(t), passkeytest.New(origin, rpID)
		a.Attack = attack
		options, session, err := rp.BeginRegistration(pat, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := a.Create(options)
		if err != nil {
			t.Fatal(err)
		}
		credential, err := rp.FinishRegistration(pat, session, response)
		if credential.ID != nil {
			t.Error("a credential came back")
		}
		return err
	}
	for name, tc := range attacks {
		t.Run(name, func(t *testing.T) { wantCode(t, attempt(t, tc.attack), tc.code) })
	}
	t.Run("type of an assertion", func(t *testing.T) {
		wantCode(t, attempt(t, passkeytest.Attack{Type: "webauthn.get"}), passkey.WrongCeremony)
	})
	t.Run("no attested credential", func(t *testing.T) {
		wantCode(t, attempt(t, passkeytest.Attack{AuthenticatorData: func(b []byte) []byte {
			b = flip(32, 0x40)(b)
			return b[:37]
		}}), passkey.Malformed)
	})
	t.Run("another id in the data", func(t *testing.T) {
		wantCode(t, attempt(t, passkeytest.Attack{AuthenticatorData: flip(55, 1)}), passkey.Refused)
	})
	t.Run("a key off the curve", func(t *testing.T) {
		err := attempt(t, passkeytest.Attack{AuthenticatorData: func(b []byte) []byte { return flip(len(b)-1, 1)(b) }})
		wantCode(t, err, passkey.UnfitPasskey)
	})
	t.Run("an algorithm not asked for", func(t *testing.T) {
		// ES384 in the key, which options did not offer.
		err := attempt(t, passkeytest.Attack{AuthenticatorData: replace("\x03\x26\x20\x01", "\x03\x38\x22\x20\x02")})
		wantCode(t, err, passkey.Refused)
	})
}

func TestRegistrationSessions(t *testing.T) {
	c := newClock()
	rp, a := newRP(t, func(config *passkey.Config) { config.Now = c.now }), passkeytest.New(origin, rpID)
	options, session, err := rp.BeginRegistration(pat, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := a.Create(options)
	if err != nil {
		t.Fatal(err)
	}
	finish := func(user passkey.User, session []byte) error {
		_, err := rp.FinishRegistration(user, session, response)
		return err
	}
	other := pat
	other.ID = []byte("another")
	wantCode(t, finish(other, session), passkey.Refused)
	wantCode(t, finish(pat, nil), passkey.Internal)
	wantCode(t, finish(pat, []byte("{}")), passkey.WrongCeremony)
	_, login, err := rp.BeginLogin()
	if err != nil {
		t.Fatal(err)
	}
	wantCode(t, finish(pat, login), passkey.WrongCeremony)
	_, second, err := rp.BeginRegistration(pat, nil)
	if err != nil {
		t.Fatal(err)
	}
	wantCode(t, finish(pat, second), passkey.WrongCeremony) // replay
	twin := newRP(t, func(config *passkey.Config) {
		config.RPID, config.Origins = "crossing.localhost", []string{"http://crossing.localhost:8648"}
	})
	_, foreign, err := twin.BeginRegistration(pat, nil)
	if err != nil {
		t.Fatal(err)
	}
	wantCode(t, finish(pat, foreign), passkey.WrongCeremony)

	c.at = c.at.Add(passkey.Timeout)
	wantCode(t, finish(pat, session), passkey.Expired)
	c.at = c.at.Add(-time.Second)
	if err := finish(pat, session); err != nil {
		t.Errorf("a second before the end: %v", err)
	}
}

func TestLoginRefuses(t *testing.T) {
	rp, a := newRP(t), passkeytest.New(origin, rpID)
	credential := register(t, rp, a)
	attempt := func(t *testing.T, attack passkeytest.Attack, lookup passkey.Lookup) error {
		a.Attack = attack
		options, session, err := rp.BeginLogin()
		if err != nil {
			t.Fatal(err)
		}
		response, err := a.Get(options)
		if err != nil {
			t.Fatal(err)
		}
		userID, used, err := rp.FinishLogin(session, response, lookup)
		if err != nil && (userID != nil || used.ID != nil) {
			t.Error("a user came back")
		}
		return err
	}
	if err := attempt(t, passkeytest.Attack{}, knows(credential)); err != nil {
		t.Fatal(err)
	}
	for name, tc := range attacks {
		t.Run(name, func(t *testing.T) { wantCode(t, attempt(t, tc.attack, knows(credential)), tc.code) })
	}
	always := func(user passkey.User, credentials ...passkey.Credential) passkey.Lookup {
		return func(_, _ []byte) (passkey.User, []passkey.Credential, error) { return user, credentials, nil }
	}
	other := passkey.User{ID: []byte("somebody else"), Name: "x", DisplayName: "x"}
	changed := credential
	changed.BackupEligible = true
	strange := credential
	strange.PublicKey = register(t, rp, passkeytest.New(origin, rpID)).PublicKey
	for name, tc := range map[string]struct {
		attack passkeytest.Attack
		lookup passkey.Lookup
		code   passkey.Code
	}{
		"type of a registration":     {passkeytest.Attack{Type: "webauthn.create"}, knows(credential), passkey.WrongCeremony},
		"key of another passkey":     {passkeytest.Attack{ForeignKey: true}, knows(credential), passkey.Refused},
		"stored key is another":      {passkeytest.Attack{}, knows(strange), passkey.Refused},
		"changed signature":          {passkeytest.Attack{Signature: flip(20, 1)}, knows(credential), passkey.Refused},
		"no signature":               {passkeytest.Attack{Signature: func([]byte) []byte { return nil }}, knows(credential), passkey.Refused},
		"unknown user handle":        {passkeytest.Attack{UserHandle: []byte("eve")}, knows(credential), passkey.UnknownPasskey},
		"handle of another user":     {passkeytest.Attack{UserHandle: pat.ID}, always(other, credential), passkey.Refused},
		"no user handle":             {passkeytest.Attack{NoUserHandle: true}, always(pat, credential), passkey.Refused},
		"account without this key":   {passkeytest.Attack{}, always(pat), passkey.UnknownPasskey},
		"attested credential":        {passkeytest.Attack{AuthenticatorData: flip(32, 0x40)}, knows(credential), passkey.Malformed},
		"backup eligibility changed": {passkeytest.Attack{}, knows(changed), passkey.Refused},
	} {
		t.Run(name, func(t *testing.T) { wantCode(t, attempt(t, tc.attack, tc.lookup), tc.code) })
	}
	t.Run("lookup fails", func(t *testing.T) {
		down := errors.New("database down")
		err := attempt(t, passkeytest.Attack{}, func(_, _ []byte) (passkey.User, []passkey.Credential, error) {
			return passkey.User{}, nil, down
		})
		wantCode(t, err, passkey.Internal)
		if !errors.Is(err, down) {
			t.Errorf("%v does not lead to the lookup's error", err)
		}
	})
}

func TestLoginSessions(t *testing.T) {
	c := newClock()
	rp, a := newRP(t, func(config *passkey.Config) { config.Now = c.now }), passkeytest.New(origin, rpID)
	credential := register(t, rp, a)
	options, session, err := rp.BeginLogin()
	if err != nil {
		t.Fatal(err)
	}
	response, err := a.Get(options)
	if err != nil {
		t.Fatal(err)
	}
	finish := func(session []byte) error {
		_, _, err := rp.FinishLogin(session, response, knows(credential))
		return err
	}
	_, second, err := rp.BeginLogin()
	if err != nil {
		t.Fatal(err)
	}
	wantCode(t, finish(second), passkey.WrongCeremony) // replay
	_, registration, err := rp.BeginRegistration(pat, nil)
	if err != nil {
		t.Fatal(err)
	}
	wantCode(t, finish(registration), passkey.WrongCeremony)
	wantCode(t, finish([]byte("garbage")), passkey.Internal)
	wantCode(t, finish(bytes.Replace(session, []byte(`"userVerification":"required"`), []byte(`"userVerification":"discouraged"`), 1)), passkey.Internal)

	// A session of another relying party, with an answer to its very challenge
	// but made for ours.
	twin := newRP(t, func(config *passkey.Config) {
		config.RPID, config.Origins, config.Now = "crossing.localhost", []string{"http://crossing.localhost:8648"}, c.now
	})
	foreignOptions, foreign, err := twin.BeginLogin()
	if err != nil {
		t.Fatal(err)
	}
	answer, err := a.Get(bytes.Replace(foreignOptions, []byte("crossing.localhost"), []byte(rpID), 1))
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = rp.FinishLogin(foreign, answer, knows(credential))
	wantCode(t, err, passkey.WrongCeremony)

	// The session names its purpose, so that renaming it is what it takes.
	wantCode(t, finish(bytes.Replace(session, []byte(`"login"`), []byte(`"registration"`), 1)), passkey.WrongCeremony)

	c.at = c.at.Add(passkey.Timeout)
	wantCode(t, finish(session), passkey.Expired)
	c.at = c.at.Add(-time.Second)
	if err := finish(session); err != nil {
		t.Errorf("a second before the end: %v", err)
	}
}

func TestDecisionRefuses(t *testing.T) {
	rp, a := newRP(t), passkeytest.New(origin, rpID)
	credential := register(t, rp, a)
	digest, otherDigest := sha256.Sum256([]byte("apt update")), sha256.Sum256([]byte("bash -c evil"))
	attempt := func(t *testing.T, attack passkeytest.Attack, credentials ...passkey.Credential) error {
		a.Attack = attack
		options, err := rp.BeginDecision(digest, []passkey.Credential{credential})
		if err != nil {
			t.Fatal(err)
		}
		response, err := a.Get(options)
		if err != nil {
			t.Fatal(err)
		}
		agreesWithLibrary(t, digest, credential, response)
		evidence, err := rp.VerifyDecision(digest, credentials, response)
		if err != nil && evidence.Signature != nil {
			t.Error("evidence came back")
		}
		return err
	}
	if err := attempt(t, passkeytest.Attack{}, credential); err != nil {
		t.Fatal(err)
	}
	for name, tc := range attacks {
		t.Run(name, func(t *testing.T) { wantCode(t, attempt(t, tc.attack, credential), tc.code) })
	}
	changed := credential
	changed.BackupEligible = true
	strange := credential
	strange.PublicKey = register(t, rp, passkeytest.New(origin, rpID)).PublicKey
	nameless := credential
	nameless.ID = nil
	for name, tc := range map[string]struct {
		attack passkeytest.Attack
		stored []passkey.Credential
		code   passkey.Code
	}{
		"digest of another statement": {passkeytest.Attack{Challenge: otherDigest[:]}, []passkey.Credential{credential}, passkey.WrongCeremony},
		"type of a registration":      {passkeytest.Attack{Type: "webauthn.create"}, []passkey.Credential{credential}, passkey.WrongCeremony},
		"key of another passkey":      {passkeytest.Attack{ForeignKey: true}, []passkey.Credential{credential}, passkey.Refused},
		"stored key is another":       {passkeytest.Attack{}, []passkey.Credential{strange}, passkey.Refused},
		"changed signature":           {passkeytest.Attack{Signature: flip(20, 1)}, []passkey.Credential{credential}, passkey.Refused},
		"passkey of somebody else":    {passkeytest.Attack{}, []passkey.Credential{register(t, rp, passkeytest.New(origin, rpID))}, passkey.UnknownPasskey},
		"nobody may decide":           {passkeytest.Attack{}, nil, passkey.UnknownPasskey},
		"credential without name":     {passkeytest.Attack{}, []passkey.Credential{nameless}, passkey.UnknownPasskey},
		"backup eligibility changed":  {passkeytest.Attack{}, []passkey.Credential{changed}, passkey.Refused},
		"attested credential":         {passkeytest.Attack{AuthenticatorData: flip(32, 0x40)}, []passkey.Credential{credential}, passkey.Malformed},
	} {
		t.Run(name, func(t *testing.T) { wantCode(t, attempt(t, tc.attack, tc.stored...), tc.code) })
	}
}

func TestDecisionIsForOneStatement(t *testing.T) {
	rp, a := newRP(t), passkeytest.New(origin, rpID)
	credential := register(t, rp, a)
	digest := sha256.Sum256([]byte("statement"))
	options, err := rp.BeginDecision(digest, []passkey.Credential{credential})
	if err != nil {
		t.Fatal(err)
	}
	response, err := a.Get(options)
	if err != nil {
		t.Fatal(err)
	}
	other := digest
	other[31] ^= 1
	_, err = rp.VerifyDecision(other, []passkey.Credential{credential}, response)
	wantCode(t, err, passkey.WrongCeremony)
	_, err = rp.VerifyDecision([32]byte{}, []passkey.Credential{credential}, response)
	wantCode(t, err, passkey.WrongCeremony)

	// A decision is no login, and a login no decision.
	loginOptions, session, err := rp.BeginLogin()
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = rp.FinishLogin(session, response, knows(credential))
	wantCode(t, err, passkey.WrongCeremony)
	login, err := a.Get(loginOptions)
	if err != nil {
		t.Fatal(err)
	}
	_, err = rp.VerifyDecision(digest, []passkey.Credential{credential}, login)
	wantCode(t, err, passkey.WrongCeremony)

	// A relying party of its own keeps crossings apart even if a page presents
	// the digest as the challenge of a login.
	crossing := newRP(t, func(c *passkey.Config) {
		c.RPID, c.Origins = "crossing.localhost", []string{"http://crossing.localhost:8648"}
	})
	a.Attack.Challenge = digest[:]
	login, err = a.Get(loginOptions)
	if err != nil {
		t.Fatal(err)
	}
	_, err = crossing.VerifyDecision(digest, []passkey.Credential{credential}, login)
	wantCode(t, err, passkey.WrongSite)

	_, err = rp.BeginDecision([32]byte{}, []passkey.Credential{credential})
	wantCode(t, err, passkey.Internal)
	_, err = rp.BeginDecision(digest, nil)
	wantCode(t, err, passkey.NoPasskey)
}

func TestCounter(t *testing.T) {
	digest := sha256.Sum256([]byte("statement"))
	rp, a := newRP(t), passkeytest.New(origin, rpID)
	credential := register(t, rp, a)
	for _, tc := range []struct {
		stored, reported uint32
		warns            bool
		kept             uint32
	}{
		{0, 1, false, 1},
		{5, 6, false, 6},
		{5, 1 << 31, false, 1 << 31},
		{5, 5, true, 5},
		{5, 4, true, 5},
		{5, 1, true, 5},
	} {
		credential.SignCount = tc.stored
		a.SetCounter(tc.reported - 1)
		evidence := decide(t, rp, a, digest, credential)
		after, err := credential.After(evidence)
		if err != nil || evidence.CounterWarning != tc.warns || after.CounterWarning != tc.warns || after.SignCount != tc.kept {
			t.Errorf("%d then %d: evidence warns %v, kept %+v, %v", tc.stored, tc.reported, evidence.CounterWarning, after, err)
		}
		a.SetCounter(tc.reported - 1)
		options, session, err := rp.BeginLogin()
		if err != nil {
			t.Fatal(err)
		}
		response, err := a.Get(options)
		if err != nil {
			t.Fatal(err)
		}
		_, used, err := rp.FinishLogin(session, response, knows(credential))
		if err != nil || used.CounterWarning != tc.warns || used.SignCount != tc.kept {
			t.Errorf("login, %d then %d: %+v, %v", tc.stored, tc.reported, used, err)
		}
	}
	credential.SignCount = 7
	credential.CounterWarning = true
	a.SetCounter(7)
	if after, err := credential.After(decide(t, rp, a, digest, credential)); err != nil || after.CounterWarning {
		t.Errorf("the warning outlives an honest use: %+v, %v", after, err)
	}
	if _, err := credential.After(passkey.Evidence{}); err == nil {
		t.Error("evidence of nothing changed a credential")
	}
}

func TestCredentialJSON(t *testing.T) {
	full := passkey.Credential{
		ID: []byte{1, 2, 3}, PublicKey: []byte{4}, AAGUID: make([]byte, 16), SignCount: 9,
		BackupEligible: true, BackupState: true, CounterWarning: true, Transports: []string{"usb", "nfc"},
	}
	const want = `{"id":"AQID","publicKey":"BA==","aaguid":"AAAAAAAAAAAAAAAAAAAAAA==","signCount":9,"backupEligible":true,"backupState":true,"counterWarning":true,"transports":["usb","nfc"]}`
	got, err := json.Marshal(full)
	if err != nil || string(got) != want {
		t.Errorf("got %s, %v", got, err)
	}
	var again passkey.Credential
	if err := json.Unmarshal([]byte(want), &again); err != nil {
		t.Fatal(err)
	}
	if text, err := json.Marshal(again); err != nil || string(text) != want {
		t.Errorf("read and written: %s, %v", text, err)
	}
}

func TestTransportsAreFiltered(t *testing.T) {
	rp, a := newRP(t), passkeytest.New(origin, rpID)
	options, session, err := rp.BeginRegistration(pat, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := a.Create(options)
	if err != nil {
		t.Fatal(err)
	}
	response = bytes.Replace(response, []byte(`["internal"]`), []byte(`["usb","<script>","cable","usb","hybrid"]`), 1)
	credential, err := rp.FinishRegistration(pat, session, response)
	if err != nil || !slices.Equal(credential.Transports, []string{"usb", "hybrid"}) {
		t.Errorf("kept %q, %v", credential.Transports, err)
	}
}

func TestUnaskedExtensionsAndFormats(t *testing.T) {
	rp, a := newRP(t), passkeytest.New(origin, rpID)
	options, session, err := rp.BeginRegistration(pat, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := a.Create(options)
	if err != nil {
		t.Fatal(err)
	}
	chatty := bytes.Replace(response, []byte(`"clientExtensionResults":{}`), []byte(`"clientExtensionResults":{"credProps":{"rk":true},"appid":true}`), 1)
	if _, err := rp.FinishRegistration(pat, session, chatty); err != nil {
		t.Errorf("a password manager that reports credProps unasked: %v", err)
	}
	var parts struct {
		Response struct{ AttestationObject string }
	}
	if err := json.Unmarshal(response, &parts); err != nil {
		t.Fatal(err)
	}
	object, err := base64.RawURLEncoding.DecodeString(parts.Response.AttestationObject)
	if err != nil {
		t.Fatal(err)
	}
	tpm := bytes.Replace(object, []byte("\x63fmt\x64none"), []byte("\x63fmt\x63tpm"), 1)
	if bytes.Equal(tpm, object) {
		t.Fatal("the attestation object was not changed")
	}
	changed := bytes.Replace(response, []byte(parts.Response.AttestationObject), []byte(base64.RawURLEncoding.EncodeToString(tpm)), 1)
	_, err = rp.FinishRegistration(pat, session, changed)
	wantCode(t, err, passkey.Refused)
	if !strings.Contains(err.Error(), `format "tpm"`) {
		t.Errorf("refused for another reason: %v", err)
	}
}

func TestConfig(t *testing.T) {
	good := passkey.Config{RPID: rpID, RPName: "Vogt", Origins: []string{origin}}
	for name, change := range map[string]func(*passkey.Config){
		"https":                 func(c *passkey.Config) { c.Origins = []string{"https://vogt.localhost"} },
		"https, own port":       func(c *passkey.Config) { c.Origins = []string{"https://vogt.localhost:8443"} },
		"below the RP ID":       func(c *passkey.Config) { c.Origins = []string{"https://pages.vogt.localhost"} },
		"localhost":             func(c *passkey.Config) { c.RPID, c.Origins = "localhost", []string{"http://localhost:8648"} },
		"public name":           func(c *passkey.Config) { c.RPID, c.Origins = "vogt.example", []string{"https://vogt.example"} },
		"http, port of https":   func(c *passkey.Config) { c.Origins = []string{"http://vogt.localhost:443"} },
		"the system's own ways": func(c *passkey.Config) { c.Now, c.Rand = nil, nil },
	} {
		config := good
		change(&config)
		if _, err := passkey.New(config); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	origins := func(list ...string) func(*passkey.Config) {
		return func(c *passkey.Config) { c.Origins = list }
	}
	for name, change := range map[string]func(*passkey.Config){
		"nothing":             func(c *passkey.Config) { *c = passkey.Config{} },
		"no RP ID":            func(c *passkey.Config) { c.RPID = "" },
		"address as RP ID":    func(c *passkey.Config) { c.RPID, c.Origins = "127.0.0.1", []string{"http://127.0.0.1:8648"} },
		"RP ID with port":     func(c *passkey.Config) { c.RPID = rpID + ":8648" },
		"RP ID with scheme":   func(c *passkey.Config) { c.RPID = origin },
		"RP ID in capitals":   func(c *passkey.Config) { c.RPID = "Vogt.localhost" },
		"RP ID of one label":  func(c *passkey.Config) { c.RPID, c.Origins = "com", []string{"https://vogt.com"} },
		"no name":             func(c *passkey.Config) { c.RPName = "" },
		"no origin":           origins(),
		"empty origin":        origins(""),
		"one bad of two":      origins(origin, "*"),
		"foreign host":        origins("https://vogt.example"),
		"suffix without dot":  origins("https://evilvogt.localhost"),
		"host above":          origins("http://localhost:8648"),
		"path":                origins(origin + "/"),
		"query":               origins(origin + "?x"),
		"fragment":            origins(origin + "#x"),
		"user":                origins("http://pat@vogt.localhost:8648"),
		"capitals":            origins("http://VOGT.localhost:8648"),
		"capital scheme":      origins("HTTP://vogt.localhost:8648"),
		"port of the scheme":  origins("http://vogt.localhost:80"),
		"port of https":       origins("https://vogt.localhost:443"),
		"empty port":          origins("http://vogt.localhost:"),
		"port 0":              origins("http://vogt.localhost:0"),
		"zero before":         origins("http://vogt.localhost:08648"),
		"port too large":      origins("http://vogt.localhost:65536"),
		"address":             origins("http://127.0.0.1:8648"),
		"IPv6 address":        origins("http://[::1]:8648"),
		"no scheme":           origins("vogt.localhost:8648"),
		"other scheme":        origins("ftp://vogt.localhost"),
		"opaque":              origins("android:apk-key-hash:x"),
		"dot after the host":  origins("http://vogt.localhost.:8648"),
		"not ASCII":           origins("https://ä.vogt.localhost"),
		"http on public name": func(c *passkey.Config) { c.RPID, c.Origins = "vogt.example", []string{"http://vogt.example"} },
	} {
		config := good
		change(&config)
		if _, err := passkey.New(config); err == nil {
			t.Errorf("%s: accepted", name)
		} else if !strings.HasPrefix(err.Error(), "passkey: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	// New keeps its own copy of the list.
	list := []string{origin}
	rp, err := passkey.New(passkey.Config{RPID: rpID, RPName: "Vogt", Origins: list})
	if err != nil {
		t.Fatal(err)
	}
	list[0] = "http://vogt.localhost:3000"
	a := passkeytest.New(origin, rpID)
	register(t, rp, a)
}

func TestZeroRefuses(t *testing.T) {
	for name, rp := range map[string]*passkey.RelyingParty{"nil": nil, "zero": {}} {
		t.Run(name, func(t *testing.T) {
			_, _, err := rp.BeginRegistration(pat, nil)
			wantCode(t, err, passkey.Internal)
			_, err = rp.FinishRegistration(pat, nil, nil)
			wantCode(t, err, passkey.Internal)
			_, _, err = rp.BeginLogin()
			wantCode(t, err, passkey.Internal)
			_, _, err = rp.FinishLogin(nil, nil, knows())
			wantCode(t, err, passkey.Internal)
			_, err = rp.BeginDecision([32]byte{1}, []passkey.Credential{{}})
			wantCode(t, err, passkey.Internal)
			_, err = rp.VerifyDecision([32]byte{1}, nil, nil)
			wantCode(t, err, passkey.Internal)
		})
	}
	for name, user := range map[string]passkey.User{"no handle": {Name: "x", DisplayName: "x"}, "long handle": {ID: make([]byte, 65), Name: "x", DisplayName: "x"}} {
		if _, _, err := newRP(t).BeginRegistration(user, nil); err == nil {
			t.Errorf("%s: began", name)
		}
	}
}

func TestResponseSize(t *testing.T) {
	rp, a := newRP(t), passkeytest.New(origin, rpID)
	credential := register(t, rp, a)
	options, session, err := rp.BeginLogin()
	if err != nil {
		t.Fatal(err)
	}
	response, err := a.Get(options)
	if err != nil {
		t.Fatal(err)
	}
	padded := append(response, bytes.Repeat([]byte(" "), passkey.MaxResponse-len(response))...)
	if _, _, err := rp.FinishLogin(session, padded, knows(credential)); err != nil {
		t.Errorf("%d bytes: %v", len(padded), err)
	}
	_, _, err = rp.FinishLogin(session, append(padded, ' '), knows(credential))
	wantCode(t, err, passkey.Malformed)
}

func TestErrorsKeepSecretsFromPeople(t *testing.T) {
	codes := []passkey.Code{passkey.Malformed, passkey.Expired, passkey.WrongCeremony, passkey.WrongSite, passkey.NotVerified,
		passkey.UnknownPasskey, passkey.UnfitPasskey, passkey.NoPasskey, passkey.Refused, passkey.Internal}
	seen := map[string]passkey.Code{}
	for _, code := range codes {
		sentence := code.Sentence()
		if other, twice := seen[sentence]; twice || !strings.HasSuffix(sentence, ".") {
			t.Errorf("%q and %q both say %q", code, other, sentence)
		}
		seen[sentence] = code
	}
	if passkey.Code("").Sentence() != passkey.Internal.Sentence() {
		t.Error("the zero code is not internal")
	}

	rp, a := newRP(t), passkeytest.New(origin, rpID)
	a.Attack.Origin = "http://" + strings.Repeat("evil", 5000) + ".localhost"
	options, session, err := rp.BeginRegistration(pat, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := a.Create(options)
	if err != nil {
		t.Fatal(err)
	}
	_, err = rp.FinishRegistration(pat, session, response)
	var refusal *passkey.Error
	if !errors.As(err, &refusal) {
		t.Fatal(err)
	}
	if strings.Contains(refusal.Public(), "evil") || !strings.Contains(err.Error(), "evil") || len(err.Error()) > 1000 {
		t.Errorf("people read %q, logs %q", refusal.Public(), err)
	}
	var cause *assertion.Error
	if !errors.As(err, &cause) || cause.Reason != assertion.WrongOrigin {
		t.Errorf("%v does not lead to its cause", err)
	}
}
