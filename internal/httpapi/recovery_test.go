package httpapi_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"vogt/internal/api"
	"vogt/internal/authority"
	"vogt/internal/authoritytest"
	"vogt/internal/detail"
	"vogt/internal/grant"
)

// postbox is an authority that sends letters, and where they arrive.
type postbox struct {
	*authoritytest.Server
	t       *testing.T
	letters chan authority.Letter
	told    chan string
}

func withMail(t *testing.T, opts ...authoritytest.Option) *postbox {
	t.Helper()
	b := &postbox{t: t, letters: make(chan authority.Letter, 100), told: make(chan string, 100)}
	b.Server = authoritytest.Start(t, append(opts, authoritytest.WithPages(noPages), authoritytest.WithHousekeeping(),
		authoritytest.WithDeps(func(d *authority.Deps) {
			d.Mail = func(l authority.Letter) { b.letters <- l }
			d.Announce = func(email, text string) { b.told <- email + ": " + text }
		}))...)
	return b
}

// letter waits for the next one.
func (b *postbox) letter() authority.Letter {
	b.t.Helper()
	select {
	case l := <-b.letters:
		return l
	case <-time.After(30 * time.Second):
		b.t.Fatal("no letter came")
	}
	panic("unreachable")
}

func (b *postbox) request(email string) authoritytest.Answer {
	return b.Stranger().Post("/api/recovery/request", map[string]string{"email": email})
}

// recovery asks for one and returns the token that the mailbox gets.
func (b *postbox) recovery(email string) string {
	b.t.Helper()
	b.request(email).Want(200)
	l := b.letter()
	if l.To != email || l.Kind != authority.LetterRecovery {
		b.t.Fatalf("the letter is %+v", l)
	}
	_, token, _ := strings.Cut(l.Link, "?token=")
	return token
}

// recover tries to get in with what the mailbox holds.
func recoverBy(p *authoritytest.Page, token string) authoritytest.Answer {
	return p.Create("/api/recovery/options", "/api/recovery/verify", map[string]any{"token": token})
}

// TestRecovery: the wait, to the millisecond, and what is left afterwards.
func TestRecovery(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		quiet time.Duration // since the last sign-in
		away  bool
		want  time.Duration
	}{
		"active":                {time.Hour, false, 7 * 24 * time.Hour},
		"active, almost":        {30*24*time.Hour - time.Millisecond, false, 7 * 24 * time.Hour},
		"dormant":               {30 * 24 * time.Hour, false, 72 * time.Hour},
		"away":                  {time.Hour, true, 14 * 24 * time.Hour},
		"away and long dormant": {60 * 24 * time.Hour, true, 14 * 24 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := withMail(t)
			mara := b.Register("mara@example.com")
			mara.Do("PUT", "/api/account/vacation", map[string]bool{"recoveryVacationMode": test.away}).Want(200)
			b.Clock.Advance(test.quiet)
			token := b.recovery("mara@example.com")
			select {
			case text := <-b.told:
				if !strings.HasPrefix(text, "mara@example.com: ") || strings.Contains(text, token) {
					t.Errorf("she is told %q", text)
				}
			case <-time.After(30 * time.Second):
				t.Error("she was not told")
			}
			thief := b.NewPage()
			early := func() {
				t.Helper()
				a := recoverBy(thief, token)
				a.Problem(425)
				if s, err := strconv.Atoi(a.Header.Get("Retry-After")); err != nil || s <= 0 {
					t.Errorf("Retry-After %q", a.Header.Get("Retry-After"))
				}
			}
			early()
			b.Clock.Advance(test.want / 2)
			// Asking again neither shortens nor restarts the wait.
			b.request("mara@example.com").Want(200)
			early()
			b.Clock.Advance(test.want - test.want/2 - time.Millisecond)
			early()
			b.Clock.Advance(time.Millisecond)
			var who struct{ Email string }
			if recoverBy(thief, token).Into(&who); who.Email != "mara@example.com" {
				t.Errorf("it opened the account of %q", who.Email)
			}
			recoverBy(thief, token).Problem(410)
			// The browser that was signed in is not any more.
			if a := mara.Do("GET", "/api/me", nil); a.Status != 401 {
				t.Errorf("an older page: %d", a.Status)
			}
			if l := b.letter(); l.Kind != authority.LetterRecovered {
				t.Errorf("the next letter is %+v: a second recovery began", l)
			}
			if !b.HasRecord("trust", "recovery.requested", "mara@example.com") || !b.HasRecord("trust", "recovery.done") {
				t.Error("it is not on record")
			}
			for _, r := range b.Records() {
				if strings.Contains(string(r.Body), token) {
					t.Error("the log holds the token")
				}
			}
		})
	}
}

// TestRecoveryIsCancelled: whoever still holds a passkey or a key of the account
// ends a recovery by using it, and a mailbox owner gets nothing.
func TestRecoveryIsCancelled(t *testing.T) {
	t.Parallel()
	const week = 7 * 24 * time.Hour
	for name, cancel := range map[string]func(b *postbox, mara *authoritytest.Page, key *authoritytest.Principal, token string){
		"signing in with the passkey": func(_ *postbox, mara *authoritytest.Page, _ *authoritytest.Principal, _ string) {
			mara.SignIn().Want(200)
		},
		"logging in with a key": func(_ *postbox, _ *authoritytest.Page, key *authoritytest.Principal, _ string) { key.Login() },
		"no, from the mail": func(b *postbox, _ *authoritytest.Page, _ *authoritytest.Principal, token string) {
			b.Stranger().Post("/api/recovery/cancel", map[string]string{"token": token}).Want(200)
		},
		"no, on the page": func(_ *postbox, mara *authoritytest.Page, _ *authoritytest.Principal, _ string) {
			mara.Do("POST", "/api/recovery/cancel", map[string]string{}).Want(200)
		},
		"being switched off": func(b *postbox, _ *authoritytest.Page, _ *authoritytest.Principal, _ string) {
			b.Manager().Do("PATCH", api.PathMyAgents+"/mara%40example.com", map[string]bool{"isActive": false}).Want(200)
		},
		"being switched off and on": func(b *postbox, _ *authoritytest.Page, _ *authoritytest.Principal, _ string) {
			for _, on := range []bool{false, true} {
				b.Manager().Do("PATCH", api.PathMyAgents+"/mara%40example.com", map[string]bool{"isActive": on}).Want(200)
			}
		},
		"being removed": func(b *postbox, _ *authoritytest.Page, _ *authoritytest.Principal, _ string) {
			b.Manager().Do("DELETE", "/api/admin/users/mara%40example.com", nil).Want(200)
			b.Manager().Post("/api/admin/users", map[string]string{"email": "mara@example.com"}).Want(200)
		},
		"time": func(b *postbox, _ *authoritytest.Page, _ *authoritytest.Principal, _ string) {
			b.Clock.Advance(72 * time.Hour)
		},
		"a restore": func(b *postbox, _ *authoritytest.Page, _ *authoritytest.Principal, _ string) {
			backup := b.Backup()
			b.Person("later@example.com")
			ahead, err := b.Authority.LatestCheckpoint(b.t.Context())
			if err != nil {
				b.t.Fatal(err)
			}
			b.Restore(backup)
			if changed, err := b.Authority.NoteCheckpoint(b.t.Context(), ahead); err != nil || !changed {
				b.t.Fatalf("no new epoch: %v", err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := withMail(t, authoritytest.WithConfig(func(c *authority.Config) { c.SessionTTL = 1000 * time.Hour }))
			key := b.Person("mara@example.com")
			mara := b.NewPage()
			link := key.Change(api.TrustPasskeyAdd, map[string]string{}).Link
			mara.Create("/api/webauthn/register/options", "/api/webauthn/register/verify", map[string]any{"token": authority.LinkToken(link)}).Want(200)
			b.Register("other@example.com")
			token := b.recovery("mara@example.com")
			b.Clock.Advance(week) // it may be used now, if nobody says no
			cancel(b, mara, key, token)
			thief := b.NewPage()
			if a := recoverBy(thief, token); a.Status == 200 {
				t.Fatalf("the mailbox got in: %s", a.Body)
			}
			b.Clock.Advance(week)
			if a := recoverBy(thief, token); a.Status == 200 {
				t.Fatalf("the mailbox got in later: %s", a.Body)
			}
		})
	}
}

// TestRecoveryRace: the person says no between the two calls of the passkey, and
// of many who finish at once one gets in.
func TestRecoveryRace(t *testing.T) {
	t.Parallel()
	b := withMail(t)
	mara := b.Register("mara@example.com")
	token := b.recovery("mara@example.com")
	b.Clock.Advance(7 * 24 * time.Hour)
	thief := b.NewPage()
	var c authoritytest.Ceremony
	thief.Do("POST", "/api/recovery/options", map[string]any{"token": token}).Into(&c)
	response, err := thief.Browser.Create(c.Options)
	if err != nil {
		t.Fatal(err)
	}
	mara.SignIn().Want(200)
	thief.Do("POST", "/api/recovery/verify", map[string]any{"token": token, "challengeToken": c.Token, "response": jsonRaw(response)}).Problem(410)

	token = b.recovery("mara@example.com")
	recoverBy(thief, token).Problem(425) // the wait begins anew
	b.Clock.Advance(7 * 24 * time.Hour)
	won := 0
	for _, status := range runMany(12, func(int) int { return recoverBy(b.NewPage(), token).Status }) {
		if status == 200 {
			won++
		}
	}
	if won != 1 {
		t.Errorf("%d got in", won)
	}
	// One recovery's ceremony is no other's.
	b.Register("other@example.com")
	tokens := []string{b.recoveryAfter("mara@example.com"), b.recoveryAfter("other@example.com")}
	b.Clock.Advance(7 * 24 * time.Hour)
	thief.Do("POST", "/api/recovery/options", map[string]any{"token": tokens[1]}).Into(&c)
	if response, err = thief.Browser.Create(c.Options); err != nil {
		t.Fatal(err)
	}
	if a := thief.Do("POST", "/api/recovery/verify", map[string]any{"token": tokens[0], "challengeToken": c.Token, "response": jsonRaw(response)}); a.Status == 200 {
		t.Errorf("another's ceremony opened the account: %s", a.Body)
	}
	// Nor is it one for a link.
	if a := thief.Do("POST", "/api/webauthn/register/verify", map[string]any{"challengeToken": c.Token, "response": jsonRaw(response)}); a.Status == 200 {
		t.Errorf("a recovery's ceremony registered: %s", a.Body)
	}
}

// recoveryAfter is recovery after letters that are of no interest.
func (b *postbox) recoveryAfter(email string) string {
	b.t.Helper()
	b.request(email).Want(200)
	for {
		if l := b.letter(); l.Kind == authority.LetterRecovery {
			_, token, _ := strings.Cut(l.Link, "?token=")
			return token
		}
	}
}

// TestStolenSession: what a cookie, or a stored login, can do to a recovery.
func TestStolenSession(t *testing.T) {
	t.Parallel()
	b := withMail(t, authoritytest.WithBearer(detail.High))
	mara := b.Register("mara@example.com")
	thief := *mara
	thief.Unsigned = true
	mara.Do("PUT", "/api/account/vacation", map[string]bool{"recoveryVacationMode": true}).Want(200)
	thief.Do("PUT", "/api/account/vacation", map[string]bool{"recoveryVacationMode": false}).Problem(403)
	b.recovery("mara@example.com")
	thief.Do("POST", "/api/recovery/cancel", map[string]string{}).Problem(403)
	var state struct{ Pending, RecoveryVacationMode bool }
	if mara.Do("GET", "/api/account/recovery", nil).Into(&state); !state.Pending || !state.RecoveryVacationMode {
		t.Errorf("%+v", state)
	}
	for _, call := range [][2]string{
		{"POST", "/api/webauthn/credentials/add/options"}, {"POST", "/api/account/add-device-link"}, {"POST", "/api/session/ssh-keys"},
		{"POST", "/api/push/subscribe"}, {"DELETE", "/api/push/subscribe"},
	} {
		thief.Do(call[0], call[1], map[string]string{}).Problem(403)
	}
	// Also the page itself adds nothing to the account without a passkey's word.
	p := mara.Do("POST", "/api/session/ssh-keys", map[string]string{"publicKey": b.NewKey("x").Line}).Problem(403)
	if !strings.Contains(p.Detail, "/trust/") {
		t.Errorf("it does not say where: %+v", p)
	}
	mara.Do("POST", "/api/webauthn/credentials/add/options", map[string]string{}).Problem(403)
	var creds []struct{ CredentialID string }
	mara.Do("GET", "/api/webauthn/credentials", nil).Into(&creds)
	last := "/api/webauthn/credentials/" + creds[0].CredentialID
	thief.Do("DELETE", last, nil).Problem(403)
	mara.Do("DELETE", last, nil).Problem(400)
}

// TestAddDevice: another passkey takes an assertion over what is changed.
func TestAddDevice(t *testing.T) {
	t.Parallel()
	b := withMail(t)
	mara := b.Register("mara@example.com")
	var first struct {
		ID      string
		Digest  string
		Options authoritytest.RawJSON
	}
	mara.Do("POST", "/api/account/add-device-link", map[string]string{}).Want(202).Into(&first)
	mara.Do("POST", "/api/account/add-device-link", map[string]any{"id": first.ID, "digest": first.Digest}).Problem(400)
	assertion, err := mara.Browser.Get(first.Options)
	if err != nil {
		t.Fatal(err)
	}
	stranger := b.Register("other@example.com")
	if a := stranger.Do("POST", "/api/account/add-device-link", map[string]any{"id": first.ID, "digest": first.Digest, "assertion": jsonRaw(assertion)}); a.Status == 200 {
		t.Errorf("another person confirmed it: %s", a.Body)
	}
	var link struct {
		OK        bool
		URL       string
		ExpiresIn int
	}
	mara.Do("POST", "/api/account/add-device-link", map[string]any{"id": first.ID, "digest": first.Digest, "assertion": jsonRaw(assertion)}).Into(&link)
	if !link.OK || link.ExpiresIn != 600 {
		t.Errorf("%+v", link)
	}
	token := map[string]any{"token": authority.LinkToken(link.URL), "deviceName": "phone"}
	stranger.Create("/api/webauthn/credentials/add/options", "/api/webauthn/credentials/add/verify", token).Problem(403)
	device := *mara
	device.Browser = b.NewPage().Browser
	var added struct{ CredentialID string }
	device.Create("/api/webauthn/credentials/add/options", "/api/webauthn/credentials/add/verify", token).Into(&added)
	device.SignIn().Want(200)
	device.Do("DELETE", "/api/webauthn/credentials/"+added.CredentialID, nil).Want(200)
}

// TestSelfRegistration: one answer for every address, and letters to the free
// ones only.
func TestSelfRegistration(t *testing.T) {
	t.Parallel()
	register := func(b *postbox, email string) authoritytest.Answer {
		return b.Stranger().Post("/api/register", map[string]string{"email": email})
	}
	t.Run("closed", func(t *testing.T) {
		t.Parallel()
		s := authoritytest.Start(t)
		for _, path := range []string{"/api/register", "/api/recovery/request"} {
			if p := s.Stranger().Post(path, map[string]string{"email": "a@example.com"}).Problem(503); !strings.Contains(p.Hint, "mail.command") {
				t.Errorf("%+v", p)
			}
		}
		register(withMail(t), "a@example.com").Problem(403)
	})
	b := withMail(t, authoritytest.WithConfig(func(c *authority.Config) { c.SelfRegistration = true }))
	owner := b.Owner()
	agent := b.Agent(owner, "helper")
	mara := b.Register("mara@example.com")
	free := register(b, "new@example.com").Want(200)
	for _, taken := range []string{owner.Email, agent.Email, "mara@example.com"} {
		a := register(b, taken).Want(200)
		if string(a.Body) != string(free.Body) {
			t.Errorf("%s is answered %s, a free address %s", taken, a.Body, free.Body)
		}
	}
	register(b, "no address").Problem(400)
	for range 5 { // three letters are enough
		register(b, "new@example.com").Want(200)
	}
	register(b, "last@example.com").Want(200)
	var to []string
	var token string
	for len(to) == 0 || to[len(to)-1] != "last@example.com" {
		l := b.letter()
		if to = append(to, l.To); l.To == "new@example.com" {
			_, token, _ = strings.Cut(l.Link, "?token=")
		}
	}
	if got := strings.Join(to, " "); got != "new@example.com new@example.com new@example.com last@example.com" {
		t.Errorf("letters went to %s", got)
	}
	b.NewPage().Create("/api/webauthn/register/options", "/api/webauthn/register/verify", map[string]any{"token": token}).Want(200)
	_ = mara
	// An unknown address is answered like a known one in recovery, too.
	if a, c := b.request("nobody@example.com").Want(200), b.request("mara@example.com").Want(200); string(a.Body) != string(c.Body) {
		t.Errorf("%s is not %s", a.Body, c.Body)
	}
	if got := agent.Ask("ls").Status; got != grant.Pending {
		t.Errorf("%s", got)
	}
}
