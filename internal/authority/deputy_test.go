package authority_test

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"vogt/internal/api"
	"vogt/internal/authoritytest"
	"vogt/internal/detail"
	"vogt/internal/grant"
)

// stands has owner appoint stranger, within bounds that change may move.
func stands(t *testing.T, c *cast, change map[string]string) api.Deputy {
	t.Helper()
	params := map[string]string{
		"deputy": c.stranger.Email, "agents": "*", "max_risk": "high", "until": c.s.Clock.Now().Add(24 * time.Hour).UTC().Format(time.RFC3339), "reason": "holidays",
	}
	for k, v := range change {
		params[k] = v
	}
	done := c.owner.Change(api.TrustDeputyAdd, params)
	if done.Deputy == nil {
		t.Fatalf("appointed: %+v", done)
	}
	return *done.Deputy
}

// TestDeputyAnswers: within the bounds, and shown as what it is.
func TestDeputyAnswers(t *testing.T) {
	t.Parallel()
	c := newCast(t)
	g := c.sibling.Ask("mkdir", "/p/x")
	c.stranger.Get(authoritytest.GrantPath(g.ID, "statement")).Problem(404)
	d := stands(t, c, nil)
	if d.Status != "in-force" || d.Person != c.owner.Email || d.Strength != grant.Independent {
		t.Errorf("appointed: %+v", d)
	}
	var page api.List
	c.stranger.Get(api.PathGrants + "?status=pending").Into(&page)
	if len(page.Data) != 1 || page.Data[0].ID != g.ID {
		t.Errorf("the deputy's inbox: %+v", page.Data)
	}
	cards, total, err := c.s.Authority.Inbox(context.Background(), c.stranger.Actor(), 10)
	if err != nil || total != 1 || cards[0].Grant.ID != g.ID {
		t.Errorf("the deputy's page: %d %+v, %v", total, cards, err)
	}
	card, err := c.s.Authority.Card(context.Background(), c.stranger.Actor(), g.ID)
	if err != nil || card.Mandate == nil || card.Mandate.Person != c.owner.Email {
		t.Errorf("the deputy's card: %+v, %v", card.Mandate, err)
	}
	got := c.stranger.Approve(g.ID, grant.Once, 0)
	if got.Status != grant.Approved || got.DecidedBy != c.stranger.Email || got.For != c.owner.Email {
		t.Fatalf("allowed: %+v", got)
	}
	r := consume(t, c.sibling, g.ID).Receipt
	if r.DecidedBy != c.stranger.Email || r.For != c.owner.Email || r.Deputy != d.ID {
		t.Errorf("the receipt: %+v", r)
	}
	if !c.s.HasRecord("decision", g.ID, `"by":"`+c.stranger.Email, `"for":"`+c.owner.Email, `"deputy":"`+d.ID) || !c.s.HasRecord("trust", "deputy.add", d.ID, "holidays") {
		t.Errorf("on record: %q", c.s.Recorded("decision"))
	}
	// A no, too.
	no := c.sibling.Ask("mkdir", "/p/y")
	c.stranger.Post(authoritytest.GrantPath(no.ID, "deny"), nil).Want(200)
	if !c.s.HasRecord("decision", no.ID, "denied", `"for":"`+c.owner.Email) {
		t.Errorf("on record: %q", c.s.Recorded("decision"))
	}
	// What was answered by others is not the deputy's to see.
	theirs := c.sibling.Ask("mkdir", "/p/z")
	c.owner.Approve(theirs.ID, grant.Once, 0)
	c.stranger.Get(authoritytest.GrantPath(theirs.ID, "receipt")).Problem(404)
	c.stranger.Post(authoritytest.GrantPath(theirs.ID, "revoke"), nil).Problem(404)
}

// TestDeputyBounds: what an appointment does not cover, and who does not hold it.
func TestDeputyBounds(t *testing.T) {
	t.Parallel()
	c := newCast(t)
	hour := func(n int) string {
		return c.s.Clock.Now().Add(time.Duration(n) * time.Hour).UTC().Format(time.RFC3339)
	}
	tests := []struct {
		name   string
		bounds map[string]string
		who    string
		ask    func() api.Grant
		reach  grant.Type
		ends   int64
		want   int
	}{
		{"covered", nil, "stranger", func() api.Grant { return c.sibling.Ask(push("a")...) }, grant.Once, 0, 200},
		{"by name", map[string]string{"agents": c.sibling.Email}, "stranger", func() api.Grant { return c.sibling.Ask(push("b")...) }, grant.Once, 0, 200},
		{"for a time", nil, "stranger", func() api.Grant { return c.sibling.Ask(push("c")...) }, grant.Timed, c.s.Clock.Now().Add(24 * time.Hour).Unix(), 200},
		{"for longer than the appointment", nil, "stranger", func() api.Grant { return c.sibling.Ask(push("d")...) }, grant.Timed, c.s.Clock.Now().Add(25 * time.Hour).Unix(), 403},
		{"for always", nil, "stranger", func() api.Grant { return c.sibling.Ask(push("e")...) }, grant.Always, 0, 403},
		{"another agent", map[string]string{"agents": c.requester.Email}, "stranger", func() api.Grant { return c.sibling.Ask(push("f")...) }, grant.Once, 0, 404},
		{"too much risk", map[string]string{"max_risk": "medium"}, "stranger", func() api.Grant { return c.sibling.Ask(push("g")...) }, grant.Once, 0, 404},
		{"critical", nil, "stranger", func() api.Grant { return c.sibling.Ask("rm", "-rf", "/srv") }, grant.Once, 0, 404},
		{"a crossing", nil, "stranger", func() api.Grant { return crossing(c.sibling) }, grant.Once, 0, 404},
		{"a deciding verb", nil, "stranger", func() api.Grant { return c.sibling.Ask("vogt", "grant", "approve", "x") }, grant.Once, 0, 404},
		{"the person's own request", nil, "stranger", func() api.Grant { return c.owner.Ask(push("h")...) }, grant.Once, 0, 404},
		{"an agent of somebody else", nil, "approver", func() api.Grant { return c.foreign.Ask(push("i")...) }, grant.Once, 0, 404},
		{"not yet", map[string]string{"from": hour(1)}, "stranger", func() api.Grant { return c.sibling.Ask(push("j")...) }, grant.Once, 0, 404},
		{"another person", nil, "approver", func() api.Grant { return c.sibling.Ask(push("k")...) }, grant.Once, 0, 404},
		{"the agent itself", nil, "sibling", func() api.Grant { return c.sibling.Ask(push("l")...) }, grant.Once, 0, 403},
		{"the deputy's agent", nil, "foreign agent", func() api.Grant { return c.sibling.Ask(push("m")...) }, grant.Once, 0, 404},
	}
	for _, test := range tests {
		d := stands(t, c, test.bounds)
		g := test.ask()
		var signed api.Decide
		asker := c.owner
		if g.Owner != c.owner.Email {
			asker = c.stranger
		}
		signed = asker.Signed(g.ID, test.reach, test.ends)
		var err error
		if signed.Signature, err = c.keys[test.who].Key.SignDecision(*signed.Digest); err != nil {
			t.Fatal(err)
		}
		a := c.clients[test.who].Post(authoritytest.GrantPath(g.ID, "approve"), signed)
		if a.Status != test.want {
			t.Errorf("%s: %d, want %d: %s", test.name, a.Status, test.want, a.Body)
		}
		if got := asker.Grant(g.ID); (got.Status == grant.Approved) != (test.want == 200) {
			t.Errorf("%s: it is %s", test.name, got.Status)
		}
		c.owner.Do("DELETE", api.PathDeputies+"/"+d.ID, nil).Want(200)
	}
}

// TestDeputyEnds: after the end nothing of it holds, whoever made it end.
func TestDeputyEnds(t *testing.T) {
	t.Parallel()
	remove := func(c *cast, p *authoritytest.Principal) {
		c.s.Manager().Do("DELETE", "/api/admin/users/"+url.PathEscape(p.Email), nil).Want(200)
	}
	off := func(c *cast, p *authoritytest.Principal) {
		c.s.Manager().Do("PATCH", api.PathMyAgents+"/"+p.Email, map[string]bool{"isActive": false}).Want(200)
	}
	on := func(c *cast, p *authoritytest.Principal) {
		c.s.Manager().Do("PATCH", api.PathMyAgents+"/"+p.Email, map[string]bool{"isActive": true}).Want(200)
	}
	for name, end := range map[string]func(c *cast, d api.Deputy){
		"ended by the person":       func(c *cast, d api.Deputy) { c.owner.Do("DELETE", api.PathDeputies+"/"+d.ID, nil).Want(200) },
		"resigned":                  func(c *cast, d api.Deputy) { c.stranger.Do("DELETE", api.PathDeputies+"/"+d.ID, nil).Want(200) },
		"its time is over":          func(c *cast, d api.Deputy) { c.s.Clock.Advance(25 * time.Hour) },
		"the deputy is removed":     func(c *cast, d api.Deputy) { remove(c, c.stranger) },
		"the deputy is off":         func(c *cast, d api.Deputy) { off(c, c.stranger) },
		"the deputy was off":        func(c *cast, d api.Deputy) { off(c, c.stranger); on(c, c.stranger) },
		"the person is off":         func(c *cast, d api.Deputy) { off(c, c.owner) },
		"the person was off":        func(c *cast, d api.Deputy) { off(c, c.owner); on(c, c.owner) },
		"the agents are the others": func(c *cast, d api.Deputy) { remove(c, c.owner) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCast(t)
			d := stands(t, c, nil)
			// The requester is also answered for by approver, and stays when owner goes.
			waits, allowed := c.sibling.Ask(push("a")...), c.sibling.Ask(push("b")...)
			signed := c.stranger.Signed(waits.ID, grant.Once, 0)
			c.stranger.Approve(allowed.ID, grant.Timed, c.s.Clock.Now().Add(time.Hour).Unix())
			jwt := c.sibling.Token(allowed.ID)
			end(c, d)
			c.stranger.TryLogin(c.stranger.Key) // an old login must not be what refuses
			if again := c.stranger.TryLogin(c.stranger.Key); again.Status == 200 {
				c.stranger.Login()
			}
			if a := c.stranger.Post(authoritytest.GrantPath(waits.ID, "approve"), signed); a.Status == 200 {
				t.Errorf("allowed after the end: %s", a.Body)
			}
			if a := c.s.Consume(allowed.ID, jwt); a.Status == 200 && consumedError(a) == "" {
				t.Errorf("what was allowed under it permits after the end: %s", a.Body)
			}
			c.s.Manager().Get(authoritytest.GrantPath(waits.ID)).Into(&waits)
			if waits.Status == grant.Approved {
				t.Error("it is approved")
			}
		})
	}
}

// TestWhoAppoints: a person for themselves, by a signature, and nobody else; and what
// an appointment may hold.
func TestWhoAppoints(t *testing.T) {
	t.Parallel()
	c := newCast(t, authoritytest.WithBearer(detail.High))
	at := func(d time.Duration) string { return c.s.Clock.Now().Add(d).UTC().Format(time.RFC3339) }
	day := 24 * time.Hour
	for name, change := range map[string]map[string]string{
		"oneself":               {"deputy": c.owner.Email},
		"an agent":              {"deputy": c.foreign.Email},
		"one's own agent":       {"deputy": c.sibling.Email},
		"nobody":                {"deputy": "nobody@example.com"},
		"an agent of another":   {"agents": c.foreign.Email},
		"a person's requests":   {"agents": c.owner.Email},
		"over before its begin": {"from": at(2 * day), "until": at(day)},
		"in the past":           {"until": at(0)},
		"for too long":          {"until": at(93 * day)},
	} {
		params := map[string]string{"deputy": c.stranger.Email, "agents": "*", "max_risk": "high", "until": at(day)}
		for k, v := range change {
			params[k] = v
		}
		tr, _ := c.owner.Prepare(api.TrustDeputyAdd, params)
		if a := c.owner.Post(trustPath(tr.ID, "confirm"), c.owner.SignedChange(tr.ID)); a.Status != 400 && a.Status != 404 {
			t.Errorf("%s: %d %s", name, a.Status, a.Body)
		}
	}
	for name, change := range map[string]map[string]string{
		"critical": {"max_risk": "critical"}, "any risk": {"max_risk": "unrated"}, "no risk": {"max_risk": ""}, "no end": {"until": ""},
		"no time": {"until": "soon"}, "no agents": {"agents": ""}, "all and some": {"agents": "*,a@b"}, "a pattern": {"agents": "a*"},
	} {
		params := map[string]string{"deputy": c.stranger.Email, "agents": "*", "max_risk": "high", "until": at(day)}
		for k, v := range change {
			params[k] = v
		}
		if a := c.owner.Post(api.PathTrust, api.TrustRequest{Operation: api.TrustDeputyAdd, Params: params, Secret: c.s.Secret()}); a.Status != 400 {
			t.Errorf("%s: %d %s", name, a.Status, a.Body)
		}
	}
	// Whoever confirms it appoints for themselves only.
	params := map[string]string{"deputy": c.foreign.Owner.Email, "agents": "*", "max_risk": "high", "until": at(day)}
	tr, _ := c.sibling.Prepare(api.TrustDeputyAdd, params)
	c.sibling.Post(trustPath(tr.ID, "confirm"), c.owner.SignedChange(tr.ID)).Problem(403)
	c.approver.Post(trustPath(tr.ID, "confirm"), c.approver.SignedChange(tr.ID)).Want(200)
	g := c.sibling.Ask(push("a")...)
	c.stranger.Post(authoritytest.GrantPath(g.ID, "approve"), c.signedBy(t, "stranger", g.ID)).Problem(404)
	for who, want := range map[string]int{"sibling": 403, "requester": 403, "foreign agent": 403, "management": 403, "anonymous": 401} {
		if a := c.clients[who].Get(api.PathDeputies); a.Status != want {
			t.Errorf("%s lists deputies: %d", who, a.Status)
		}
	}
	d := stands(t, c, nil)
	for who, want := range map[string]int{"sibling": 404, "requester": 404, "foreign agent": 404, "approver": 404, "anonymous": 401} {
		if a := c.clients[who].Do("DELETE", api.PathDeputies+"/"+d.ID, nil); a.Status != want {
			t.Errorf("%s ends it: %d, want %d", who, a.Status, want)
		}
	}
}

// TestDeputyChangesNoTrust: a deputy is one for requests. What it signs of trust is its
// own, and a login alone permits nothing in another's place.
func TestDeputyChangesNoTrust(t *testing.T) {
	t.Parallel()
	c := newCast(t, authoritytest.WithBearer(detail.High))
	stands(t, c, nil)
	for operation, params := range map[string]map[string]string{
		api.TrustAgentRotate: {"email": c.sibling.Email, "public_key": c.s.NewKey("x").Line},
		api.TrustAgentResume: {"email": c.sibling.Email},
		api.TrustStandingAdd: standingParams(t, catIn(c.sibling.Email)),
		api.TrustDeputyAdd:   {"deputy": c.approver.Email, "agents": c.sibling.Email, "max_risk": "high", "until": c.s.Clock.Now().Add(time.Hour).UTC().Format(time.RFC3339)},
	} {
		tr, _ := c.stranger.Prepare(operation, params)
		c.stranger.Post(trustPath(tr.ID, "confirm"), c.stranger.SignedChange(tr.ID)).Problem(404)
	}
	// "All my agents" of the deputy's deputy are the deputy's.
	c.stranger.Change(api.TrustDeputyAdd, map[string]string{"deputy": c.approver.Email, "agents": "*", "max_risk": "high", "until": c.s.Clock.Now().Add(time.Hour).UTC().Format(time.RFC3339)})
	g := c.sibling.Ask(push("a")...)
	c.approver.Post(authoritytest.GrantPath(g.ID, "approve"), c.signedBy(t, "approver", g.ID)).Problem(404)
	for _, body := range []any{nil, api.Decide{}, api.Decide{GrantType: grant.Once}} {
		c.stranger.Post(authoritytest.GrantPath(g.ID, "approve"), body).Problem(403)
	}
	c.stranger.Do("PATCH", api.PathMyAgents+"/"+c.sibling.Email, map[string]bool{"paused": true}).Problem(404)
	c.stranger.Do("DELETE", api.PathMyAgents+"/"+c.sibling.Email, nil).Problem(404)
}

// TestDeputyInboxPages: the deputy's list has pages like any other.
func TestDeputyInboxPages(t *testing.T) {
	t.Parallel()
	c := newCast(t)
	stands(t, c, map[string]string{"agents": c.sibling.Email})
	want := map[string]bool{}
	for i := range 7 {
		want[c.sibling.Ask("mkdir", fmt.Sprint("/p/", i)).ID] = true
		want[c.foreign.Ask("mkdir", fmt.Sprint("/p/", i)).ID] = true // the stranger's own
		c.sibling.Ask("rm", "-rf", fmt.Sprint("/srv/", i))
		c.requester.Ask("mkdir", fmt.Sprint("/p/", i))
	}
	got, cursor := map[string]bool{}, ""
	for range 20 {
		var page api.List
		c.stranger.Get(api.PathGrants + "?status=pending&limit=4" + cursor).Into(&page)
		for _, g := range page.Data {
			if got[g.ID] {
				t.Errorf("%s is listed twice", g.ID)
			}
			got[g.ID] = true
		}
		if page.Pagination.Cursor == nil {
			break
		}
		cursor = "&cursor=" + *page.Pagination.Cursor
	}
	if len(got) != len(want) {
		t.Errorf("%d are listed, want %d", len(got), len(want))
	}
	for id := range got {
		if !want[id] {
			t.Errorf("%s is not the stranger's to see", id)
		}
	}
	if a := c.stranger.Get(api.PathGrants + "?status=approved"); strings.Contains(string(a.Body), c.sibling.Email) {
		t.Errorf("what was answered is listed: %s", a.Body)
	}
}
