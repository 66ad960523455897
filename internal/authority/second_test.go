package authority_test

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"vogt/internal/api"
	"vogt/internal/authority"
	"vogt/internal/authoritytest"
	"vogt/internal/detail"
	"vogt/internal/grant"
)

// twoFrom has two persons allow what is of that risk or more.
func twoFrom(r detail.Risk) authoritytest.Option {
	return authoritytest.WithConfig(func(c *authority.Config) { c.SecondApprover = r })
}

// push is a request of high risk.
func push(n string) []string { return []string{"git", "push", "origin", n} }

// TestTwoPersons: the grant waits until both have allowed the same, and statement,
// receipt and log say so.
func TestTwoPersons(t *testing.T) {
	t.Parallel()
	c := newCast(t, twoFrom(detail.High))
	g := c.requester.Ask(push("a")...)
	if g.Risk != "high" || g.Approvals != 2 || g.Status != grant.Pending {
		t.Fatalf("asked: %+v", g)
	}
	first := c.owner.Approve(g.ID, grant.Once, 0)
	if first.Status != grant.Pending || first.First != c.owner.Email || first.FirstType != grant.Once || first.DecidedBy != "" {
		t.Fatalf("after the first: %+v", first)
	}
	c.requester.Post(authoritytest.GrantPath(g.ID, "token"), nil).Problem(400)
	if _, err := use(c.s, g.ID, c.requester.Email, "x"); err == nil {
		t.Error("it is a delegation")
	}
	second := c.approver.Approve(g.ID, grant.Once, 0)
	if second.Status != grant.Approved || second.First != c.owner.Email || second.DecidedBy != c.approver.Email {
		t.Fatalf("after the second: %+v", second)
	}
	used := consume(t, c.requester, g.ID)
	r := used.Receipt
	if r == nil || r.First == nil || r.First.DecidedBy != c.owner.Email || r.DecidedBy != c.approver.Email || !slices.Equal(r.Statement.Limits, []string{"approvals=2"}) {
		t.Fatalf("the receipt: %+v", r)
	}
	rec := c.s.Records()[r.First.Record]
	var body struct {
		By, Answer string
		Digest     string
		Evidence   json.RawMessage
	}
	if err := json.Unmarshal(rec.Body, &body); err != nil || rec.Type != "endorsement" || body.By != c.owner.Email || body.Digest != r.Digest.String() || len(body.Evidence) == 0 {
		t.Errorf("record %d: %s %s", r.First.Record, rec.Type, rec.Body)
	}
	if !c.s.HasRecord("decision", g.ID, `"by":"`+c.approver.Email, `"first":"`+c.owner.Email) {
		t.Errorf("on record: %q", c.s.Recorded("decision"))
	}
	// What is of less risk needs one.
	if g := c.requester.Ask("cat", "/etc/hostname"); g.Approvals != 0 {
		t.Errorf("a reading: %+v", g)
	}
}

// TestTwoPersonsByAgent: the rule can name agents.
func TestTwoPersonsByAgent(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t, authoritytest.WithConfig(func(c *authority.Config) {
		c.SecondApproverAgents = []string{authority.AgentEmail("helper", authoritytest.OwnerEmail, c.Issuer)}
	}))
	owner, other := s.Owner(), s.Person("other@example.com")
	helper, free := s.ManagedAgent("helper", owner, other), s.ManagedAgent("free", owner, other)
	if g := free.Ask("ls"); g.Approvals != 0 || owner.Approve(g.ID, grant.Once, 0).Status != grant.Approved {
		t.Error("the rule is for another agent")
	}
	g := helper.Ask("ls")
	if got := other.Approve(g.ID, grant.Once, 0); got.Status != grant.Pending {
		t.Errorf("after one: %+v", got)
	}
	if got := owner.Approve(g.ID, grant.Once, 0); got.Status != grant.Approved {
		t.Errorf("after two: %+v", got)
	}
}

// TestNotTwoPersons: every way in which one person could be two.
func TestNotTwoPersons(t *testing.T) {
	t.Parallel()
	until := func(c *cast) string { return c.s.Clock.Now().Add(24 * time.Hour).UTC().Format(time.RFC3339) }
	deputise := func(c *cast, person, deputy *authoritytest.Principal) api.Deputy {
		done := person.Change(api.TrustDeputyAdd, map[string]string{"deputy": deputy.Email, "agents": "*", "max_risk": "high", "until": until(c)})
		return *done.Deputy
	}
	approve := func(c *cast, p *authoritytest.Principal, id string) int {
		return p.Post(authoritytest.GrantPath(id, "approve"), p.Signed(id, grant.Once, 0)).Status
	}
	tests := []struct {
		name string
		do   func(c *cast, id string) int
		want int
	}{
		{"the same again", func(c *cast, id string) int { return approve(c, c.owner, id) }, 403},
		{"the same after a restart", func(c *cast, id string) int { c.s.Restart(); return approve(c, c.owner, id) }, 403},
		{"the same by batch", func(c *cast, id string) int {
			c.owner.Post("/api/grants/batch", api.Batch{Operations: []api.Operation{{ID: id, Action: "approve"}}}).Want(207)
			return 403
		}, 403},
		{"a deputy of the first", func(c *cast, id string) int { deputise(c, c.owner, c.stranger); return approve(c, c.stranger, id) }, 403},
		{"the first as deputy of the other", func(c *cast, id string) int { deputise(c, c.approver, c.owner); return approve(c, c.owner, id) }, 403},
		{"the agent", func(c *cast, id string) int {
			d := c.owner.Signed(id, grant.Once, 0)
			return c.requester.Post(authoritytest.GrantPath(id, "approve"), d).Status
		}, 403},
		{"the agent with the other's digest", func(c *cast, id string) int {
			return c.requester.Post(authoritytest.GrantPath(id, "approve"), c.signedBy(t, "requester", id)).Status
		}, 403},
		{"a stranger", func(c *cast, id string) int {
			return c.stranger.Post(authoritytest.GrantPath(id, "approve"), c.signedBy(t, "stranger", id)).Status
		}, 404},
		{"management", func(c *cast, id string) int {
			return c.s.Manager().Post(authoritytest.GrantPath(id, "approve"), nil).Status
		}, 403},
		{"the other by login alone", func(c *cast, id string) int {
			return c.approver.Post(authoritytest.GrantPath(id, "approve"), nil).Status
		}, 403},
		{"the other, for always", func(c *cast, id string) int {
			return c.approver.Post(authoritytest.GrantPath(id, "approve"), c.approver.Signed(id, grant.Always, 0)).Status
		}, 409},
		{"too late", func(c *cast, id string) int {
			d := c.approver.Signed(id, grant.Once, 0)
			c.s.Clock.Advance(49 * time.Hour)
			c.approver.Login()
			return c.approver.Post(authoritytest.GrantPath(id, "approve"), d).Status
		}, 410},
		{"after a denial", func(c *cast, id string) int {
			d := c.approver.Signed(id, grant.Once, 0)
			c.owner.Post(authoritytest.GrantPath(id, "deny"), nil).Want(200)
			return c.approver.Post(authoritytest.GrantPath(id, "approve"), d).Status
		}, 409},
		{"the other", func(c *cast, id string) int { return approve(c, c.approver, id) }, 200},
		{"a deputy of the other", func(c *cast, id string) int { deputise(c, c.approver, c.stranger); return approve(c, c.stranger, id) }, 200},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			// Also where a login alone permits.
			c := newCast(t, twoFrom(detail.High), authoritytest.WithBearer(detail.High))
			g := c.requester.Ask(push("a")...)
			c.owner.Approve(g.ID, grant.Once, 0)
			if got := test.do(c, g.ID); got != test.want {
				t.Errorf("%d, want %d", got, test.want)
			}
			var now api.Grant
			c.s.Manager().Get(authoritytest.GrantPath(g.ID)).Into(&now)
			if (now.Status == grant.Approved) != (test.want == 200) {
				t.Errorf("it is %s", now.Status)
			}
			if test.want == 403 && !c.s.HasRecord("refusal", g.ID) && !strings.Contains(test.name, "batch") {
				t.Error("the refusal is not on record")
			}
		})
	}
}

// TestFirstYesEnds: when the first person may not decide any more, the second's yes
// is the first.
func TestFirstYesEnds(t *testing.T) {
	t.Parallel()
	c := newCast(t, twoFrom(detail.High))
	g := c.requester.Ask(push("a")...)
	c.approver.Approve(g.ID, grant.Once, 0)
	c.s.Manager().Do("DELETE", "/api/admin/users/"+url.PathEscape(c.approver.Email), nil).Want(200)
	if got := c.owner.Approve(g.ID, grant.Once, 0); got.Status != grant.Pending || got.First != c.owner.Email {
		t.Errorf("after the owner's yes: %+v", got)
	}
}

// TestPatternsAreOnePersonsWord: a standing grant covers nothing that two must allow,
// neither when it is asked nor when the pattern is signed while it waits.
func TestPatternsAreOnePersonsWord(t *testing.T) {
	t.Parallel()
	c := newCast(t, twoFrom(detail.Low))
	sign(t, c.owner, catIn(c.requester.Email))
	waits := c.requester.AskFor(inProject("cat", "a"))
	if waits.Status != grant.Pending || waits.Approvals != 2 {
		t.Errorf("covered: %+v", waits)
	}
	c.owner.Approve(waits.ID, grant.Once, 0)
	sign(t, c.owner, catIn("*"))
	if got := c.owner.Grant(waits.ID); got.Status != grant.Pending {
		t.Errorf("the owner's pattern was the second person: %+v", got)
	}
}

// TestNobodyToBeSecond: where one person is all there is, it is said at once.
func TestNobodyToBeSecond(t *testing.T) {
	t.Parallel()
	c := newCast(t, twoFrom(detail.High))
	c.sibling.Post(api.PathGrants, authoritytest.Request(push("a")...)).Problem(403)
	c.owner.Post(api.PathGrants, authoritytest.Request(push("a")...)).Problem(403)
	if g := c.sibling.Ask("cat", "/etc/hostname"); g.Status != grant.Pending {
		t.Errorf("a reading: %+v", g)
	}
}

// TestRuleForWhatWasAllowed: what one person allowed before the rule was written
// permits nothing under it, and is asked again.
func TestRuleForWhatWasAllowed(t *testing.T) {
	t.Parallel()
	var from detail.Risk
	c := newCast(t, authoritytest.WithConfig(func(c *authority.Config) { c.SecondApprover = from }))
	allowed, waits := c.requester.Ask(push("a")...), c.requester.Ask(push("b")...)
	c.owner.Approve(allowed.ID, grant.Always, 0)
	jwt := c.requester.Token(allowed.ID)
	from = detail.High
	c.s.Restart()
	c.requester.Post(authoritytest.GrantPath(allowed.ID, "token"), nil).Problem(403)
	c.s.Consume(allowed.ID, jwt).Problem(403)
	c.owner.Post(authoritytest.GrantPath(waits.ID, "approve"), c.owner.Signed(waits.ID, grant.Once, 0)).Problem(403)
	if again := c.requester.Ask(push("a")...); again.ID == allowed.ID || again.Approvals != 2 || again.Status != grant.Pending {
		t.Errorf("asked again: %+v", again)
	}
}

// TestSecondRaces: both at once, many times, is two yeses and no more.
func TestSecondRaces(t *testing.T) {
	t.Parallel()
	c := newCast(t, twoFrom(detail.High))
	for range 5 {
		g := c.requester.Ask(push("a")...)
		owner, approver := c.owner.Signed(g.ID, grant.Once, 0), c.approver.Signed(g.ID, grant.Once, 0)
		var pending, approved, other atomic.Int64
		together(12, func(i int) {
			p, d := c.owner, owner
			if i%2 == 1 {
				p, d = c.approver, approver
			}
			a := p.Post(authoritytest.GrantPath(g.ID, "approve"), d)
			var out api.Decided
			switch {
			case a.Status != 200:
				other.Add(1)
			default:
				a.Into(&out)
				if out.Grant.Status == grant.Pending {
					pending.Add(1)
				} else {
					approved.Add(1)
				}
			}
		})
		if pending.Load() != 1 || approved.Load() != 1 || other.Load() != 10 {
			t.Errorf("%d were the first, %d the second, %d refused", pending.Load(), approved.Load(), other.Load())
		}
		consume(t, c.requester, g.ID)
	}
}
