package authority_test

import (
	"strings"
	"testing"
	"time"

	"vogt/internal/authority"
	"vogt/internal/authoritytest"
	"vogt/internal/passkey/passkeytest"
)

// TestRecoveryEndsLogins: whoever took somebody's devices is out of everything
// when the person is back in, logins at services included.
func TestRecoveryEndsLogins(t *testing.T) {
	t.Parallel()
	var letter authority.Letter
	o := &oauthScene{t: t, sources: publish()}
	o.Server = authoritytest.Start(t, append(withServices(o.sources), authoritytest.WithDeps(func(d *authority.Deps) {
		d.Mail = func(l authority.Letter) { letter = l }
	}), authoritytest.WithConfig(func(c *authority.Config) { c.LoginTTL = 1000 * time.Hour }))...)
	o.owner = o.Owner()
	atService := o.tokens(o.owner, plans, plansRedirect)
	ask := func() string {
		t.Helper()
		if err := o.Authority.RequestRecovery(strings.ToUpper(o.owner.Email)); err != nil {
			t.Fatal(err)
		}
		o.Authority.Errand(ctx)
		_, token, _ := strings.Cut(letter.Link, "?token=")
		return token
	}
	token := ask()
	if strings.Contains(strings.Join(o.Recorded("trust"), ""), token) {
		t.Error("the log holds the token")
	}
	o.Clock.Advance(7*24*time.Hour - time.Millisecond)
	if _, _, err := o.Authority.RecoverOptions(ctx, token); err == nil {
		t.Fatal("it begins too early")
	}
	o.Clock.Advance(time.Millisecond)
	options, id, err := o.Authority.RecoverOptions(ctx, token)
	if err != nil {
		t.Fatal(err)
	}
	browser := passkeytest.New(o.Pages, "vogt.localhost")
	response, err := browser.Create(options)
	if err != nil {
		t.Fatal(err)
	}
	// A clock that is set back between the two calls does not let it through.
	o.Clock.Advance(-time.Millisecond)
	if _, _, err := o.Authority.RecoverVerify(ctx, token, id, "", response, proofKey, "a browser"); err == nil {
		t.Fatal("it ends too early")
	}
	o.Clock.Advance(time.Millisecond)
	if options, id, err = o.Authority.RecoverOptions(ctx, token); err != nil {
		t.Fatal(err)
	}
	if response, err = browser.Create(options); err != nil {
		t.Fatal(err)
	}
	o.owner.Get("/api/me").Want(200)
	if _, _, err := o.Authority.RecoverVerify(ctx, token, id, "", response, proofKey, "a browser"); err != nil {
		t.Fatal(err)
	}
	o.owner.Get("/api/me").Problem(401)
	oauthError(t, o.refresh(atService.RefreshToken), 400, "invalid_grant")
	if a := o.userinfo(atService.AccessToken); a.Status == 200 {
		t.Errorf("the login at a service is still good: %s", a.Body)
	}
	if letter.Kind != authority.LetterRecovered || letter.To != o.owner.Email {
		t.Errorf("the last letter is %+v", letter)
	}
	// Nobody's address, an agent's and one that is switched off get no letter.
	letter = authority.Letter{}
	agent := o.Agent(o.owner.Login(), "bot")
	for _, email := range []string{"nobody@example.com", agent.Email} {
		if err := o.Authority.RequestRecovery(email); err != nil {
			t.Fatal(err)
		}
		o.Authority.Errand(ctx)
	}
	if letter.To != "" {
		t.Errorf("a letter went to %s", letter.To)
	}
}
