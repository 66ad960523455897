package authority_test

import (
	"bytes"
	"net/url"
	"strings"
	"testing"
	"time"

	"vogt/internal/api"
	"vogt/internal/authority"
	"vogt/internal/authoritytest"
	"vogt/internal/grant"
	"vogt/internal/passkey/passkeytest"
	"vogt/internal/store"
)

// world is an authority whose owner has a passkey and a signed-in page.
type world struct {
	t       *testing.T
	s       *authoritytest.Server
	browser *passkeytest.Authenticator
	cookie  string
	page    authority.Actor          // the signed-in page, whose calls are proven
	owner   *authoritytest.Principal // logs in by key once addKey was called
	agent   *authoritytest.Principal
}

var proofKey = []byte("a page's public key")

// setUp goes through the set-up link as a person does.
func setUp(t *testing.T, s *authoritytest.Server) (browser *passkeytest.Authenticator, cookie string) {
	t.Helper()
	browser = passkeytest.New(s.Pages, "vogt.localhost")
	token, _, err := s.Authority.StartSetup(ctx)
	if err != nil {
		t.Fatal(err)
	}
	digits, _, err := openSetup(s, token, "browser")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Authority.ConfirmSetup(digits); err != nil {
		t.Fatal(err)
	}
	options, id, err := s.Authority.SetupOptions(token, "browser", "Owner", authoritytest.OwnerEmail)
	if err != nil {
		t.Fatal(err)
	}
	response, err := browser.Create(options)
	if err != nil {
		t.Fatal(err)
	}
	if cookie, err = s.Authority.SetupVerify(ctx, authority.SetupAnswer{Token: token, Browser: "browser", Ceremony: id, Response: response, ProofKey: proofKey, Agent: "a browser"}); err != nil {
		t.Fatal(err)
	}
	return browser, cookie
}

func pageOf(t *testing.T, s *authoritytest.Server, cookie string) authority.Actor {
	t.Helper()
	a, err := s.Authority.AuthenticateSession(ctx, cookie)
	if err != nil {
		t.Fatal(err)
	}
	a.Proven = true
	return a
}

func withPasskey(t *testing.T, opts ...authoritytest.Option) *world {
	t.Helper()
	w := &world{t: t, s: authoritytest.Start(t, opts...)}
	w.browser, w.cookie = setUp(t, w.s)
	w.page = pageOf(t, w.s, w.cookie)
	w.owner = &authoritytest.Principal{Client: authoritytest.Client{S: w.s}, Email: authoritytest.OwnerEmail, Key: w.s.NewKey("owner")}

	w.agent = &authoritytest.Principal{Client: authoritytest.Client{S: w.s}, Name: "helper", Key: w.s.NewKey("helper"), Owner: w.owner}
	tr, secret := w.s.Stranger().Prepare(api.TrustAgentAdd, map[string]string{"name": "helper", "public_key": w.agent.Key.Line})
	w.confirm(tr.ID)
	done, err := w.s.Authority.Trust(ctx, authority.Actor{}, tr.ID, secret)
	if err != nil || done.Enrolled == nil {
		t.Fatalf("%+v, %v", done, err)
	}
	w.agent.Email = done.Enrolled.Email
	w.agent.Login()
	return w
}

// confirm confirms a prepared change on the page with the passkey.
func (w *world) confirm(id string) api.Trust {
	w.t.Helper()
	view, err := w.s.Authority.Trust(ctx, w.page, id, "")
	if err != nil {
		w.t.Fatal(err)
	}
	digest := view.Statement.Digest()
	options, err := w.s.Authority.DecisionOptions(ctx, w.page, digest)
	if err != nil {
		w.t.Fatal(err)
	}
	response, err := w.browser.Get(options)
	if err != nil {
		w.t.Fatal(err)
	}
	out, err := w.s.Authority.Confirm(ctx, w.page, id, digest, authority.Proof{Assertion: response})
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}

// addKey gives the owner an SSH key by a change of trust and logs it in.
func (w *world) addKey() {
	w.t.Helper()
	tr, _ := w.s.Stranger().Prepare(api.TrustKeyAdd, map[string]string{"public_key": w.owner.Key.Line})
	w.confirm(tr.ID)
	w.owner.Login()
}

func (w *world) approveByPasskey(t *testing.T, id string, kind grant.Type) error {
	t.Helper()
	offer, err := w.s.Authority.Offer(ctx, w.page, id, authority.Reach{Type: kind})
	if err != nil {
		t.Fatal(err)
	}
	digest := offer.Statement.Digest()
	options, err := w.s.Authority.DecisionOptions(ctx, w.page, digest)
	if err != nil {
		t.Fatal(err)
	}
	response, err := w.browser.Get(options)
	if err != nil {
		return err
	}
	_, err = w.s.Authority.Approve(ctx, w.page, id, authority.Answer{Reach: authority.Reach{Type: kind}, Digest: &digest, Proof: authority.Proof{Assertion: response}})
	return err
}

// login signs a page in with the passkey.
func (w *world) login() (string, error) {
	w.t.Helper()
	options, id, err := w.s.Authority.PasskeyLoginOptions()
	if err != nil {
		w.t.Fatal(err)
	}
	response, err := w.browser.Get(options)
	if err != nil {
		w.t.Fatal(err)
	}
	return w.s.Authority.PasskeyLogin(ctx, id, response, proofKey, "a browser")
}

// TestSetupLink: once, ten minutes, one browser, three tries.
func TestSetupLink(t *testing.T) {
	t.Parallel()
	t.Run("the whole way", func(t *testing.T) {
		t.Parallel()
		s := authoritytest.Start(t)
		if state, _ := s.Authority.Setup(); state != authority.SetupNone {
			t.Errorf("before: %s", state)
		}
		_, cookie := setUp(t, s)
		if state, email := s.Authority.Setup(); state != authority.SetupDone || email != authoritytest.OwnerEmail {
			t.Errorf("after: %s %s", state, email)
		}
		if !pageOf(t, s, cookie).Person() {
			t.Error("the page is not signed in as a person")
		}
		if !s.HasRecord("trust", "owner.create") || !s.HasRecord("trust", "passkey.added") || !s.HasRecord("login", "passkey") {
			t.Error("the set-up is not on record")
		}
		_, _, err := s.Authority.StartSetup(ctx)
		fails(t, "a second set-up", err, 409)
		if err := s.Authority.CreateOwner(ctx, "other@example.com", "", s.NewKey("x").Line); err == nil {
			t.Error("a second owner was made")
		}
	})
	start := func(t *testing.T) (*authoritytest.Server, string, string) {
		t.Helper()
		s := authoritytest.Start(t)
		token, _, err := s.Authority.StartSetup(ctx)
		if err != nil {
			t.Fatal(err)
		}
		digits, _, err := openSetup(s, token, "browser")
		if err != nil {
			t.Fatal(err)
		}
		return s, token, digits
	}
	t.Run("another browser", func(t *testing.T) {
		t.Parallel()
		s, token, digits := start(t)
		for _, browser := range []string{"other", ""} {
			got, _, err := openSetup(s, token, browser)
			fails(t, "opening it in another browser", err, 410)
			if got != "" {
				t.Errorf("another browser is shown %s", got)
			}
		}
		if again, _, err := openSetup(s, token, "browser"); err != nil || again != digits {
			t.Errorf("the first browser, reloaded: %s, %v", again, err)
		}
		if _, err := s.Authority.ConfirmSetup(digits); err != nil {
			t.Fatal(err)
		}
		_, _, err := s.Authority.SetupOptions(token, "other", "Owner", authoritytest.OwnerEmail)
		fails(t, "registering in another browser", err, 410)
	})
	t.Run("not confirmed", func(t *testing.T) {
		t.Parallel()
		s, token, _ := start(t)
		_, _, err := s.Authority.SetupOptions(token, "browser", "Owner", authoritytest.OwnerEmail)
		fails(t, "going on before the digits were typed", err, 403)
		_, err = s.Authority.SetupVerify(ctx, authority.SetupAnswer{Token: token, Browser: "browser", Ceremony: "id", ProofKey: proofKey})
		fails(t, "finishing before the digits were typed", err, 410)
	})
	t.Run("wrong digits", func(t *testing.T) {
		t.Parallel()
		s, token, digits := start(t)
		wrong := "0000"
		if digits == wrong {
			wrong = "0001"
		}
		for range 2 {
			_, err := s.Authority.ConfirmSetup(wrong)
			fails(t, "wrong digits", err, 403)
		}
		_, err := s.Authority.ConfirmSetup(wrong)
		fails(t, "wrong digits for the third time", err, 410)
		if _, err := s.Authority.ConfirmSetup(digits); err == nil {
			t.Error("after three wrong tries the right digits still count")
		}
		_, _, err = openSetup(s, token, "browser")
		fails(t, "the link after three wrong tries", err, 410)
	})
	t.Run("empty digits", func(t *testing.T) {
		t.Parallel()
		s, _, _ := start(t)
		_, err := s.Authority.ConfirmSetup("")
		fails(t, "empty digits", err, 403)
	})
	t.Run("before a page is open", func(t *testing.T) {
		t.Parallel()
		s := authoritytest.Start(t)
		_, err := s.Authority.ConfirmSetup("1234")
		fails(t, "without a link", err, 409)
		if _, _, err := s.Authority.StartSetup(ctx); err != nil {
			t.Fatal(err)
		}
		_, err = s.Authority.ConfirmSetup("1234")
		fails(t, "before the page was opened", err, 409)
		_, _, err = openSetup(s, "", "browser")
		fails(t, "an empty link", err, 410)
	})
	t.Run("after ten minutes", func(t *testing.T) {
		t.Parallel()
		s, token, digits := start(t)
		s.Clock.Advance(10*time.Minute - time.Millisecond)
		if _, _, err := openSetup(s, token, "browser"); err != nil {
			t.Errorf("just before the end: %v", err)
		}
		s.Clock.Advance(time.Millisecond)
		_, _, err := openSetup(s, token, "browser")
		fails(t, "at the end", err, 410)
		_, err = s.Authority.ConfirmSetup(digits)
		fails(t, "digits at the end", err, 409)
	})
	t.Run("a new link voids the old", func(t *testing.T) {
		t.Parallel()
		s, token, _ := start(t)
		if _, _, err := s.Authority.StartSetup(ctx); err != nil {
			t.Fatal(err)
		}
		_, _, err := openSetup(s, token, "browser")
		fails(t, "the old link", err, 410)
	})
	t.Run("two at once", func(t *testing.T) {
		t.Parallel()
		s, token, digits := start(t)
		if _, err := s.Authority.ConfirmSetup(digits); err != nil {
			t.Fatal(err)
		}
		browser := passkeytest.New(s.Pages, "vogt.localhost")
		options, id, err := s.Authority.SetupOptions(token, "browser", "Owner", authoritytest.OwnerEmail)
		if err != nil {
			t.Fatal(err)
		}
		response, err := browser.Create(options)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Authority.CreateOwner(ctx, "faster@example.com", "", s.NewKey("x").Line); err != nil {
			t.Fatal(err)
		}
		_, err = s.Authority.SetupVerify(ctx, authority.SetupAnswer{Token: token, Browser: "browser", Ceremony: id, Response: response, ProofKey: proofKey})
		fails(t, "a second owner through a link that was open", err, 409)
	})
}

// TestPasskeyDecides: the assertion is over the digest of what was shown and
// over nothing else.
func TestPasskeyDecides(t *testing.T) {
	t.Parallel()
	w := withPasskey(t)
	g := w.agent.Ask("vogt", "up")
	if err := w.approveByPasskey(t, g.ID, grant.Once); err != nil {
		t.Fatal(err)
	}
	var r api.Receipt
	w.agent.Get(authoritytest.GrantPath(g.ID, "receipt")).Into(&r)
	if r.Strength != grant.Passkey || !strings.Contains(string(r.Evidence), "credential") {
		t.Errorf("receipt %+v\n%s", r, r.Evidence)
	}

	// The same for another digest, for a login, and by somebody else's key.
	g = w.agent.Ask("vogt", "login")
	offer, err := w.s.Authority.Offer(ctx, w.page, g.ID, authority.Reach{Type: grant.Once})
	if err != nil {
		t.Fatal(err)
	}
	other, err := w.s.Authority.DecisionOptions(ctx, w.page, [32]byte{1})
	if err != nil {
		t.Fatal(err)
	}
	loginOptions, _, err := w.s.Authority.PasskeyLoginOptions()
	if err != nil {
		t.Fatal(err)
	}
	mine, err := w.s.Authority.DecisionOptions(ctx, w.page, offer.Digest)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		options []byte
		attack  passkeytest.Attack
	}{
		"over another digest":      {other, passkeytest.Attack{}},
		"made for a login":         {loginOptions, passkeytest.Attack{}},
		"by a foreign key":         {mine, passkeytest.Attack{ForeignKey: true}},
		"without verification":     {mine, passkeytest.Attack{NoUserVerification: true}},
		"from another origin":      {mine, passkeytest.Attack{Origin: "http://vogt.localhost:1"}},
		"of another type":          {mine, passkeytest.Attack{Type: "webauthn.create"}},
		"for another relying part": {mine, passkeytest.Attack{RPID: "assistant.localhost"}},
		"from inside a frame":      {mine, passkeytest.Attack{CrossOrigin: true}},
	} {
		w.browser.Attack = test.attack
		response, err := w.browser.Get(test.options)
		if err != nil {
			t.Fatal(err)
		}
		_, err = w.s.Authority.Approve(ctx, w.page, g.ID, authority.Answer{Reach: authority.Reach{Type: grant.Once}, Digest: &offer.Digest, Proof: authority.Proof{Assertion: response}})
		fails(t, "an assertion "+name, err, 403)
	}
	w.browser.Attack = passkeytest.Attack{}
	_, err = w.s.Authority.Approve(ctx, w.page, g.ID, authority.Answer{
		Reach: authority.Reach{Type: grant.Once}, Digest: &offer.Digest, Proof: authority.Proof{Assertion: []byte("{}"), Signature: "x"},
	})
	fails(t, "two proofs at once", err, 400)
	if got := w.agent.Grant(g.ID).Status; got != grant.Pending {
		t.Errorf("the grant is %s", got)
	}
}

// TestPasskeyLogin: it signs in, and it cancels what others had added.
func TestPasskeyLogin(t *testing.T) {
	t.Parallel()
	w := withPasskey(t)
	key := w.s.NewKey("foreign")
	keys := "/api/admin/users/" + url.PathEscape(authoritytest.OwnerEmail) + "/ssh-keys"
	var added api.Key
	w.s.Manager().Post(keys, map[string]string{"publicKey": key.Line}).Into(&added)
	if want := w.s.Clock.Now().Add(72 * time.Hour).Unix(); added.DormantUntil != want {
		t.Errorf("the key sleeps until %d, want %d", added.DormantUntil, want)
	}
	cookie, err := w.login()
	if err != nil {
		t.Fatal(err)
	}
	if a := pageOf(t, w.s, cookie); a.Principal.Email != authoritytest.OwnerEmail {
		t.Errorf("signed in as %+v", a)
	}
	var left []api.Key
	w.s.Manager().Get(keys).Into(&left)
	if len(left) != 0 {
		t.Errorf("the key survived the passkey login: %+v", left)
	}
	if !w.s.HasRecord("trust", "dormant.cancelled", authoritytest.OwnerEmail) {
		t.Error("that it was cancelled is not on record")
	}
	w.s.Clock.Advance(80 * time.Hour)
	foreign := &authoritytest.Principal{Client: authoritytest.Client{S: w.s}, Email: authoritytest.OwnerEmail}
	foreign.TryLogin(key).Problem(401)
}

// TestPasskeyCeremonies: each answer serves once and for what it was made.
func TestPasskeyCeremonies(t *testing.T) {
	t.Parallel()
	w := withPasskey(t)
	options, id, err := w.s.Authority.PasskeyLoginOptions()
	if err != nil {
		t.Fatal(err)
	}
	response, err := w.browser.Get(options)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.s.Authority.PasskeyLogin(ctx, "unknown", response, proofKey, ""); err == nil {
		t.Error("an unknown ceremony signs in")
	}
	if _, err := w.s.Authority.PasskeyLogin(ctx, id, response, proofKey, ""); err != nil {
		t.Fatal(err)
	}
	_, err = w.s.Authority.PasskeyLogin(ctx, id, response, proofKey, "")
	fails(t, "the same answer again", err, 410)

	// A registration link, once and for ten minutes.
	tr, secret := w.s.Stranger().Prepare(api.TrustPasskeyAdd, nil)
	confirmed := w.confirm(tr.ID)
	if asked, err := w.s.Authority.Trust(ctx, authority.Actor{}, tr.ID, secret); err != nil || asked.Link != "" || asked.Status != "confirmed" {
		t.Errorf("the asker, who talked the person into it, gets the link: %+v, %v", asked, err)
	}
	_, link, ok := strings.Cut(confirmed.Link, "token=")
	if !ok {
		t.Fatalf("%+v", confirmed)
	}
	if _, err := w.s.Authority.PasskeyLogin(ctx, link, response, proofKey, ""); err == nil {
		t.Error("a registration link signs in")
	}
	second := passkeytest.New(w.s.Pages, "vogt.localhost")
	opts, reg, err := w.s.Authority.RegisterOptions(ctx, link)
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = w.s.Authority.RegisterOptions(ctx, link)
	fails(t, "the link again", err, 410)
	made, err := second.Create(opts)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.s.Authority.RegisterVerify(ctx, reg, made, proofKey, ""); err != nil {
		t.Fatal(err)
	}
	_, err = w.s.Authority.RegisterVerify(ctx, reg, made, proofKey, "")
	fails(t, "registering twice", err, 410)
	account, err := w.s.Authority.Account(ctx, w.page, authoritytest.OwnerEmail)
	if err != nil || len(account.Passkeys) != 2 {
		t.Errorf("%d passkeys, %v", len(account.Passkeys), err)
	}
}

// TestSessions: they end by time, by signing out and with the account, and
// what is stored of them signs nobody in.
func TestSessions(t *testing.T) {
	t.Parallel()
	w := withPasskey(t)
	for _, cookie := range []string{"", w.page.Session.ID, strings.ToUpper(w.cookie), w.cookie[:63]} {
		_, err := w.s.Authority.AuthenticateSession(ctx, cookie)
		fails(t, "cookie "+cookie, err, 401)
	}
	err := w.s.DB.View(ctx, func(tx store.Tx) error {
		session, err := store.SessionByID(tx, w.page.Session.ID)
		if err == nil && (session.ID == w.cookie || bytes.Contains(session.ProofKey, []byte(w.cookie))) {
			t.Error("the cookie itself is stored")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}

	cookie, err := w.login()
	if err != nil {
		t.Fatal(err)
	}
	if err := w.s.Authority.SignOut(ctx, w.page, pageOf(t, w.s, cookie).Session.ID); err != nil {
		t.Fatal(err)
	}
	_, err = w.s.Authority.AuthenticateSession(ctx, cookie)
	fails(t, "after signing out", err, 401)
	fails(t, "signing out what is no session", w.s.Authority.SignOut(ctx, w.page, "gone"), 404)

	w.s.Clock.Advance(7*24*time.Hour - time.Millisecond)
	if _, err := w.s.Authority.AuthenticateSession(ctx, w.cookie); err != nil {
		t.Errorf("just before the end: %v", err)
	}
	w.s.Clock.Advance(time.Millisecond)
	_, err = w.s.Authority.AuthenticateSession(ctx, w.cookie)
	fails(t, "at the end", err, 401)
}

// openSetup opens the link and returns what the tests compare.
func openSetup(s *authoritytest.Server, token, browser string) (digits string, state authority.SetupState, err error) {
	view, err := s.Authority.OpenSetup(token, browser)
	return view.Digits, view.State, err
}
