package authority_test

import (
	"context"
	"net/url"
	"slices"
	"testing"
	"time"

	"vogt/internal/api"
	"vogt/internal/authoritytest"
	"vogt/internal/detail"
	"vogt/internal/grant"
)

func agentPath(p *authoritytest.Principal) string {
	return api.PathMyAgents + "/" + url.PathEscape(p.Email)
}

func userPath(email string) string { return "/api/admin/users/" + url.PathEscape(email) }

// TestTakesEffectAtOnce: whatever takes an agent's rights away does so for the
// very next call, with everything that the agent already holds in its hands.
func TestTakesEffectAtOnce(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		do func(c *cast)
		// What the login itself is answered, 200 where it goes on reading, and
		// whether a new login is refused as well.
		reads   int
		noLogin bool
	}{
		"deactivated": {func(c *cast) {
			c.owner.Do("PATCH", agentPath(c.requester), map[string]bool{"isActive": false}).Want(200)
		}, 401, true},
		"removed": {func(c *cast) { c.owner.Do("DELETE", agentPath(c.requester), nil).Want(200) }, 401, true},
		"removed by management": {func(c *cast) {
			c.s.Manager().Do("DELETE", userPath(c.requester.Email), nil).Want(200)
		}, 401, true},
		"paused":                   {func(c *cast) { c.owner.Do("PATCH", agentPath(c.requester), map[string]bool{"paused": true}).Want(200) }, 200, false},
		"panic":                    {func(c *cast) { c.owner.Post(api.PathPanic, api.Panic{Reason: "odd"}).Want(200) }, 401, false},
		"panic of somebody else":   {func(c *cast) { c.stranger.Post(api.PathPanic, nil).Want(200) }, 401, false},
		"owner deactivated":        {func(c *cast) { c.deactivate(c.owner.Email) }, 403, true},
		"owner removed":            {func(c *cast) { c.s.Manager().Do("DELETE", userPath(c.owner.Email), nil).Want(200) }, 0, true},
		"key rotated":              {func(c *cast) { c.rotate() }, 401, true},
		"key deleted by manager":   {func(c *cast) { c.s.Manager().Do("DELETE", keyPath(c.requester), nil).Want(200) }, 401, true},
		"key deleted, by its hash": {func(c *cast) { c.removeKey() }, 401, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCast(t)
			r := c.requester
			always, once := approved(c.owner, r, grant.Always, "always"), approved(c.owner, r, grant.Once, "once")
			pending := r.Ask("pending")
			use := consume(t, r, always.ID).Use
			tokens := map[string]string{always.ID: r.Token(always.ID), once.ID: r.Token(once.ID)}
			before := r.Bearer

			test.do(c)

			// The login.
			if a := r.Get(api.PathWhoAmI); test.reads != 0 && a.Status != test.reads || test.reads == 0 && a.Status/100 != 4 {
				t.Errorf("reading with the old login: %d, want %d\n%s", a.Status, test.reads, a.Body)
			}
			for what, a := range map[string]authoritytest.Answer{
				"create":       r.Post(api.PathGrants, authoritytest.Request("new")),
				"create again": r.Post(api.PathGrants, authoritytest.Request("always")),
				"token":        r.Post(authoritytest.GrantPath(always.ID, "token"), nil),
				"once token":   r.Post(authoritytest.GrantPath(once.ID, "token"), nil),
			} {
				if a.Status/100 == 2 {
					t.Errorf("%s with the old login: %d %.500s", what, a.Status, a.Body)
				}
			}
			// The grant tokens that it had fetched before.
			for id, jwt := range tokens {
				a := c.s.Consume(id, jwt)
				var out api.Consumed
				if a.Status/100 == 2 {
					a.Into(&out)
				}
				if a.Status/100 == 2 && out.Error == "" {
					t.Errorf("consuming with a grant token from before: %s", a.Body)
				}
			}
			if !test.noLogin {
				r.Login()
				r.Post(authoritytest.GrantPath(always.ID, "token"), nil).Problem(403) // paused
				r.Post(api.PathGrants, authoritytest.Request("new")).Problem(403)
				// What it may still do is narrow and report.
				if got := r.Grant(pending.ID).Status; got == grant.Pending {
					r.Post(authoritytest.GrantPath(pending.ID, "revoke"), nil).Want(200)
				}
				r.Post(authoritytest.GrantPath(always.ID, "outcome"), api.Outcome{Use: use}).Want(200)
			} else if a := r.TryLogin(r.Key); a.Status/100 != 4 {
				t.Errorf("a new login with the old key: %d %.500s", a.Status, a.Body)
			}
			if r.Bearer == before && test.reads == 401 {
				r.Get(authoritytest.GrantPath(always.ID)).Problem(401)
			}
		})
	}
}

func keyPath(p *authoritytest.Principal) string {
	return userPath(p.Email) + "/ssh-keys/" + string(p.Key.Private.Public().ID())
}

// deactivate switches a person off, as an operator does.
func (c *cast) deactivate(email string) {
	c.s.T.Helper()
	if err := c.s.Authority.Deactivate(context.Background(), c.manager(), email); err != nil {
		c.s.T.Fatal(err)
	}
}

func (c *cast) removeKey() {
	c.s.T.Helper()
	err := c.s.Authority.RemoveKey(ctx, c.owner.Actor(), c.requester.Email, string(c.requester.Key.Private.Public().ID()))
	if err != nil {
		c.s.T.Fatal(err)
	}
}

func (c *cast) rotate() {
	c.s.T.Helper()
	c.owner.Change(api.TrustAgentRotate, map[string]string{"email": c.requester.Email, "public_key": c.s.NewKey("new").Line})
}

// TestPanic counts what it stops, and leaves what a person may want to keep.
func TestPanic(t *testing.T) {
	t.Parallel()
	c := newCast(t)
	always := approved(c.owner, c.requester, grant.Always, "always")
	approved(c.owner, c.requester, grant.Once, "once")
	c.requester.Ask("pending")
	c.foreign.Ask("pending")
	var out api.PanicResult
	c.approver.Post(api.PathPanic, api.Panic{Reason: "odd"}).Into(&out)
	if out != (api.PanicResult{Agents: 3, Tokens: 3, Grants: 3}) {
		t.Errorf("panic stopped %+v", out)
	}
	if !c.s.HasRecord("panic", c.approver.Email, "odd", `"grants":3`) {
		t.Error("panic is not on record")
	}
	// A second one finds nothing more to stop, and people go on.
	c.approver.Post(api.PathPanic, nil).Into(&out)
	if out != (api.PanicResult{}) {
		t.Errorf("a second panic stopped %+v", out)
	}
	if got := c.owner.Grant(always.ID).Status; got != grant.Approved {
		t.Errorf("the always-grant is %s", got)
	}
	// It comes back by a change of trust only, and for one's own agents only.
	c.requester.Login()
	c.requester.Post(authoritytest.GrantPath(always.ID, "token"), nil).Problem(403)
	tr, _ := c.stranger.Prepare(api.TrustAgentResume, map[string]string{"email": c.requester.Email})
	c.stranger.Post(api.PathTrust+"/"+tr.ID+"/confirm", c.stranger.SignedChange(tr.ID)).Problem(404)
	c.stranger.Change(api.TrustAgentResume, nil) // all of the stranger's
	c.requester.Post(authoritytest.GrantPath(always.ID, "token"), nil).Problem(403)
	c.foreign.Login().Ask("resumed")
	c.owner.Change(api.TrustAgentResume, nil)
	c.requester.Token(always.ID)
	if got := c.requester.Ask("always"); !got.Automatic {
		t.Errorf("after the resume: %+v", got)
	}
}

// TestNextGeneration: an agent that is enrolled again under the same name
// inherits nothing.
func TestNextGeneration(t *testing.T) {
	t.Parallel()
	c := newCast(t)
	old := c.sibling
	always, once := approved(c.owner, old, grant.Always, "ls"), approved(c.owner, old, grant.Once, "pwd")
	pending := old.Ask("id")
	jwt := old.Token(always.ID)
	c.owner.Do("DELETE", agentPath(old), nil).Want(200)
	if old.Get(api.PathWhoAmI).Problem(401); c.owner.Get(agentPath(old)).Status != 404 {
		t.Error("the owner still finds the removed agent")
	}

	fresh := c.s.Agent(c.owner, "sibling")
	if fresh.Email != old.Email {
		t.Fatalf("the new agent is %s, the old was %s", fresh.Email, old.Email)
	}
	old.Get(api.PathWhoAmI).Problem(401)
	old.TryLogin(old.Key).Problem(401)
	for _, id := range []string{always.ID, once.ID, pending.ID} {
		if got := c.owner.Grant(id).Status; got != grant.Revoked {
			t.Errorf("a grant of the removed agent is %s", got)
		}
		fresh.Post(authoritytest.GrantPath(id, "token"), nil).Problem(404)
	}
	if a := c.s.Consume(always.ID, jwt); a.Status/100 == 2 && !slices.Contains([]string{`revoked`}, consumedError(a)) {
		t.Errorf("the old grant token: %d %.500s", a.Status, a.Body)
	}
	if g := fresh.Ask("ls"); g.Automatic || g.Status != grant.Pending || g.ID == always.ID {
		t.Errorf("the new agent inherits %+v", g)
	}
	if g := fresh.Ask("id"); g.ID == pending.ID {
		t.Error("the new agent joined the old one's request")
	}
}

func consumedError(a authoritytest.Answer) string {
	var out api.Consumed
	a.Into(&out)
	return out.Error
}

// TestDeactivatedComesBackEmpty: switching an agent on again gives it back
// neither logins nor permissions.
func TestDeactivatedComesBackEmpty(t *testing.T) {
	t.Parallel()
	c := newCast(t)
	always := approved(c.owner, c.requester, grant.Always, "ls")
	jwt := c.requester.Token(always.ID)
	c.deactivate(c.requester.Email)
	if err := c.s.Authority.Activate(ctx, c.manager(), c.requester.Email); err != nil {
		t.Fatal(err)
	}
	c.requester.Get(api.PathWhoAmI).Problem(401)
	if a := c.s.Consume(always.ID, jwt); a.Status/100 == 2 && consumedError(a) == "" {
		t.Errorf("the old grant token: %s", a.Body)
	}
	c.requester.Login()
	if g := c.requester.Ask("ls"); g.Automatic {
		t.Errorf("the old permission counts again: %+v", g)
	}
	for _, by := range []*authoritytest.Principal{c.owner, c.stranger} {
		fails(t, "activating as "+by.Email, c.s.Authority.Activate(ctx, by.Actor(), c.requester.Email), 403)
	}
}

// TestPersonSwitchedOff: a person who is deactivated or removed decides
// nothing more, on no way.
func TestPersonSwitchedOff(t *testing.T) {
	t.Parallel()
	for name, off := range map[string]func(w *world){
		"deactivated": func(w *world) {
			if err := w.s.Authority.Deactivate(ctx, manager(w.s), authoritytest.OwnerEmail); err != nil {
				w.t.Fatal(err)
			}
		},
		"removed": func(w *world) { w.s.Manager().Do("DELETE", userPath(authoritytest.OwnerEmail), nil).Want(200) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := withPasskey(t)
			w.addKey()
			g := w.agent.Ask("ls")
			signed := w.owner.Signed(g.ID, grant.Once, 0)
			tr, _ := w.owner.Prepare(api.TrustAgentAdd, map[string]string{"name": "x", "public_key": w.s.NewKey("x").Line})
			change := w.owner.SignedChange(tr.ID)
			w.s.Person("second@example.com") // the last person cannot be switched off
			off(w)
			w.owner.Get(api.PathWhoAmI).Problem(401)
			w.owner.Post(authoritytest.GrantPath(g.ID, "approve"), signed).Problem(401)
			w.owner.Post(api.PathTrust+"/"+tr.ID+"/confirm", change).Problem(401)
			_, err := w.s.Authority.AuthenticateSession(ctx, w.cookie)
			fails(t, "the page's session", err, 401)
			if a := w.owner.TryLogin(w.owner.Key); a.Status/100 != 4 {
				t.Errorf("a new login by key: %d %.500s", a.Status, a.Body)
			}
			if _, err := w.login(); err == nil {
				t.Error("a new login by passkey works")
			}
		})
	}
}

// TestKeyDeletedWhileDeciding: a signature by a key that is removed before the
// answer is stored does not count. (The actor was authenticated before.)
func TestKeyDeletedWhileDeciding(t *testing.T) {
	t.Parallel()
	w := withPasskey(t)
	w.addKey()
	g := w.agent.Ask("ls")
	d := w.owner.Signed(g.ID, grant.Once, 0)
	w.s.Manager().Do("DELETE", userPath(authoritytest.OwnerEmail)+"/ssh-keys/"+string(w.owner.Key.Private.Public().ID()), nil).Want(200)
	w.owner.Post(authoritytest.GrantPath(g.ID, "approve"), d).Problem(401)
	if got := w.agent.Grant(g.ID).Status; got != grant.Pending {
		t.Errorf("the grant is %s", got)
	}
}

// TestLogout: the token that was handed in, and no other.
func TestLogout(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t)
	owner := s.Owner()
	first := owner.Bearer
	owner.Login()
	second := owner.Bearer
	owner.Bearer = first
	owner.Post(api.PathLogout, nil).Want(200)
	owner.Get(api.PathWhoAmI).Problem(401)
	owner.Post(api.PathLogout, nil).Problem(401)
	owner.Bearer = second
	owner.Get(api.PathWhoAmI).Want(200)
	if !s.HasRecord("logout", owner.Email) {
		t.Error("the logout is not on record")
	}
}

// TestLoginExpires: at equality.
func TestLoginExpires(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t)
	owner := s.Owner()
	s.Clock.Advance(8*time.Hour - time.Second)
	owner.Get(api.PathWhoAmI).Want(200)
	s.Clock.Advance(time.Second)
	if p := owner.Get(api.PathWhoAmI).Problem(401); p.Type != "https://openape.org/errors/token_expired" {
		t.Errorf("%+v", p)
	}
}

// TestDeviceLogin: a login that a page confirmed has no key; it reads and
// narrows, and ends with the account.
func TestDeviceLogin(t *testing.T) {
	t.Parallel()
	w := withPasskey(t, authoritytest.WithBearer(detail.Unrated))
	tr, secret := w.s.Stranger().Prepare(api.TrustDevice, map[string]string{"name": "laptop"})
	w.confirm(tr.ID)
	var got api.Trust
	w.s.Stranger().Do("GET", api.PathTrust+"/"+tr.ID, nil, api.TrustSecretHeader, secret).Into(&got)
	if got.Login == nil || got.Login.Email != authoritytest.OwnerEmail || got.Login.Act != "human" || got.Login.LogKey != w.s.Authority.LogKey() {
		t.Fatalf("%+v", got)
	}
	device := &authoritytest.Client{S: w.s, Bearer: got.Login.Token}
	g := w.agent.Ask("ls")
	device.Post(authoritytest.GrantPath(g.ID, "approve"), nil).Problem(403)
	device.Post(authoritytest.GrantPath(g.ID, "deny"), nil).Want(200)
	w.s.Person("second@example.com") // the last person cannot be switched off
	if err := w.s.Authority.Deactivate(ctx, manager(w.s), authoritytest.OwnerEmail); err != nil {
		t.Fatal(err)
	}
	device.Get(api.PathWhoAmI).Problem(401)
}
