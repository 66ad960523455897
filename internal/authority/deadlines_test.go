package authority_test

import (
	"testing"
	"time"

	"vogt/internal/api"
	"vogt/internal/authority"
	"vogt/internal/authoritytest"
	"vogt/internal/grant"
)

// grantOf asks, approves where kind is set, and returns the grant.
func (c *cast) grantOf(kind grant.Type) string {
	g := c.sibling.Ask("cmd", string(kind))
	switch kind {
	case grant.Timed:
		c.owner.Approve(g.ID, kind, c.s.Clock.Now().Add(10*time.Minute).Unix())
	case grant.Once, grant.Always:
		c.owner.Approve(g.ID, kind, 0)
	}
	return g.ID
}

// TestDeadlines: a request waits 48 hours, a once-answer is good for one hour,
// a timed one until its end; each ends at equality, written down or not.
func TestDeadlines(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		kind grant.Type // of the answer; "" for none
		life time.Duration
	}{
		"pending": {"", 48 * time.Hour}, "once": {grant.Once, time.Hour}, "timed": {grant.Timed, 10 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCast(t, authoritytest.WithConfig(func(cfg *authority.Config) { cfg.LoginTTL = 1000 * time.Hour }))
			open := grant.Approved
			if test.kind == "" {
				open = grant.Pending
			}
			id := c.grantOf(test.kind)
			if got := c.sibling.Grant(id); got.ValidUntil != c.s.Clock.Now().Add(test.life).Unix() {
				t.Errorf("it ends at %d, want in %v", got.ValidUntil, test.life)
			}
			c.s.Clock.Advance(test.life - time.Millisecond)
			if got := c.sibling.Grant(id).Status; got != open {
				t.Errorf("one millisecond before its end it is %s", got)
			}
			jwt := ""
			if test.kind != "" {
				jwt = c.sibling.Token(id)
			}
			signed := c.owner.Signed(id, grant.Once, 0)

			// Nobody has written anything down yet; it is over all the same.
			c.s.Clock.Advance(time.Millisecond)
			check := func(when string) {
				t.Helper()
				if got := c.sibling.Grant(id).Status; got != grant.Expired {
					t.Errorf("%s: it is %s", when, got)
				}
				for _, status := range []grant.Status{grant.Pending, grant.Approved, grant.Expired} {
					var page api.List
					c.sibling.Get(api.PathGrants + "?status=" + string(status)).Into(&page)
					if has := len(page.Data) == 1; has != (status == grant.Expired) {
						t.Errorf("%s: listed as %s: %v", when, status, has)
					}
				}
				for what, a := range map[string]authoritytest.Answer{
					"token":   c.sibling.Post(authoritytest.GrantPath(id, "token"), nil),
					"approve": c.owner.Post(authoritytest.GrantPath(id, "approve"), signed),
					"deny":    c.owner.Post(authoritytest.GrantPath(id, "deny"), nil),
					"revoke":  c.owner.Post(authoritytest.GrantPath(id, "revoke"), nil),
				} {
					if a.Status != 410 {
						t.Errorf("%s: %s: %d %.300s", when, what, a.Status, a.Body)
					}
				}
				if jwt != "" {
					if a := c.s.Consume(id, jwt); a.Status == 200 && consumedError(a) != "expired" {
						t.Errorf("%s: consuming: %.300s", when, a.Body)
					}
				}
			}
			check("before it is written down")
			if err := c.s.Authority.Expire(ctx); err != nil {
				t.Fatal(err)
			}
			if !c.s.HasRecord("expiry", id, `"why":"time"`, string(open)) {
				t.Errorf("the end is not on record: %q", c.s.Recorded("expiry"))
			}
			check("after it was written down")
			// It is written down once.
			n := len(c.s.Recorded("expiry"))
			if err := c.s.Authority.Expire(ctx); err != nil || len(c.s.Recorded("expiry")) != n {
				t.Errorf("a second round: %v, %d records", err, len(c.s.Recorded("expiry"))-n)
			}
		})
	}
}

// TestAlwaysHasNoEnd: until somebody revokes it.
func TestAlwaysHasNoEnd(t *testing.T) {
	t.Parallel()
	c := newCast(t)
	id := c.grantOf(grant.Always)
	c.s.Clock.Advance(10 * 365 * 24 * time.Hour)
	if err := c.s.Authority.Expire(ctx); err != nil {
		t.Fatal(err)
	}
	if e := consume(t, c.sibling.Login(), id).Error; e != "" {
		t.Error(e)
	}
}

// TestManyExpireAtOnce: more than one round holds.
func TestManyExpireAtOnce(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t, authoritytest.WithConfig(func(c *authority.Config) { c.Limits.Pending = 1000 }))
	owner := s.Owner()
	agent := s.Agent(owner, "helper").Actor()
	for i := range 250 {
		req := authoritytest.Request("cmd", string(rune('a'+i%26)), string(rune('a'+i/26)))
		if _, err := s.Authority.Create(ctx, agent, req); err != nil {
			t.Fatal(err)
		}
	}
	s.Clock.Advance(48 * time.Hour)
	for range 2 {
		if err := s.Authority.Expire(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(s.Recorded("expiry")); n != 250 {
		t.Errorf("%d of 250 were written down", n)
	}
}

// TestHousekeeping: the running authority does by itself what the tests above
// ask for.
func TestHousekeeping(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t, authoritytest.WithHousekeeping())
	owner := s.Owner()
	agent := s.Agent(owner, "helper")
	g := agent.Ask("ls")
	actor := agent.Actor()
	s.Clock.Advance(48 * time.Hour)
	got, _, err := s.Authority.Wait(ctx, actor, g.ID, time.Hour)
	if err != nil || got.Status != grant.Expired {
		t.Errorf("%s, %v", got.Status, err)
	}
}
