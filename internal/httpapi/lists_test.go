package httpapi_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"vogt/internal/api"
	"vogt/internal/authority"
	"vogt/internal/authoritytest"
	"vogt/internal/detail"
	"vogt/internal/grant"
)

// TestListSections: what a list holds by section, role, type and days, and that
// nothing whose time is over is among what holds (weaknesses 13 and 14).
func TestListSections(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t, authoritytest.WithBearer(detail.High), authoritytest.WithConfig(func(c *authority.Config) { c.PendingTTL = 20 * 24 * time.Hour }))
	owner, approver := s.Owner(), s.Person("approver@example.com")
	agent := s.ManagedAgent("bot", owner, approver)
	ids := map[string]string{}
	ask := func(name string) string { ids[name] = agent.Ask("cmd", name).ID; return ids[name] }
	login := func() { owner.Login(); approver.Login(); agent.Login() }
	old := ask("old")
	owner.Post(authoritytest.GrantPath(old, "deny"), nil).Want(200)
	s.Clock.Advance(10 * 24 * time.Hour)
	login()
	ask("pending")
	owner.Approve(ask("always"), grant.Always, 0)
	owner.Approve(ask("timed"), grant.Timed, s.Clock.Now().Add(time.Minute).Unix())
	owner.Approve(ask("once"), grant.Once, 0)
	owner.Post(authoritytest.GrantPath(ask("denied"), "deny"), nil).Want(200)
	owner.Post(authoritytest.GrantPath(ask("revoked"), "revoke"), nil).Want(200)
	s.Clock.Advance(2 * time.Minute) // the timed one is over, and nobody has written it down
	list := func(who *authoritytest.Principal, query string) (names []string) {
		var page api.List
		who.Get("/api/grants?limit=100&" + query).Into(&page)
		for _, g := range page.Data {
			for name, id := range ids {
				if id == g.ID {
					names = append(names, name)
				}
			}
			if g.Status == grant.Approved && g.ExpiresAt != 0 && g.ExpiresAt <= s.Clock.Now().Unix() {
				t.Errorf("%s: %s is over and shown as approved", query, g.ID)
			}
		}
		slices.Sort(names)
		return names
	}
	for _, test := range []struct {
		who   *authoritytest.Principal
		query string
		want  string
	}{
		{owner, "", "always denied old once pending revoked timed"},
		{owner, "section=active", "always once pending"},
		{owner, "section=history", "denied revoked timed"},
		{owner, "section=history&days=90", "denied old revoked timed"},
		{owner, "section=history&days=9999", "denied old revoked timed"},
		{owner, "section=history&days=-1", "denied revoked timed"},
		{owner, "days=1", "always denied once pending revoked timed"},
		{owner, "status=approved", "always once"},
		{owner, "status=expired", "timed"},
		{owner, "section=active&status=expired", ""},
		{owner, "role=requester", ""},
		{owner, "role=owner", "always denied old once pending revoked timed"},
		{owner, "role=approver&section=active", ""}, // where one answers beside the owner
		{approver, "role=owner", ""},
		{approver, "role=approver&section=active", "always once pending"},
		{approver, "section=active", "always once pending"},
		{agent, "role=requester&section=active", "always once pending"},
		{agent, "role=approver", ""},
		{agent, "role=owner", ""},
		{owner, "type=command&section=active", "always once pending"},
		{owner, "type=standing", ""},
		{owner, "type=delegation", ""},
		{owner, "requester=" + url.QueryEscape(agent.Email) + "&section=active", "always once pending"},
	} {
		if got := strings.Join(list(test.who, test.query), " "); got != test.want {
			t.Errorf("%s %q: %s, want %s", test.who.Name, test.query, got, test.want)
		}
	}
	for _, query := range []string{"section=all", "role=admin", "type=x", "days=x", "status=x", "limit=x", "cursor=x"} {
		owner.Get("/api/grants?" + query).Problem(400)
	}
	owner.Get("/api/grants?requester=ghost%40vm&section=active").Problem(403)
	// A page ends where the next begins, also in a section.
	var seen []string
	for cursor, n := "", 0; n < 10; n++ {
		var page api.List
		owner.Get("/api/grants?section=active&limit=1&cursor=" + cursor).Into(&page)
		for _, g := range page.Data {
			seen = append(seen, g.ID)
		}
		if page.Pagination.Cursor == nil {
			break
		}
		cursor = *page.Pagination.Cursor
	}
	if slices.Sort(seen); len(seen) != 3 || len(slices.Compact(seen)) != 3 {
		t.Errorf("page by page: %q", seen)
	}
}

// TestBatchIsIdempotent: a batch that is sent again succeeds again, for whoever may
// do it, and decides nothing anew.
func TestBatchIsIdempotent(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	stranger := s.Person("stranger@example.com")
	op := func(id, action string) map[string]any {
		return map[string]any{"operations": []map[string]string{{"id": id, "action": action}}}
	}
	for _, action := range []string{"approve", "deny", "revoke"} {
		g := s.agent.Ask("cmd", action)
		for range 2 {
			reads(t, s.owner.Post("/api/grants/batch", op(g.ID, action)).Want(200), "results.0.success bool", "results.0.id string", "results.0.status string")
		}
		stranger.Post("/api/grants/batch", op(g.ID, action)).Want(207)
		for _, other := range []string{"approve", "deny"} {
			if other != action {
				s.owner.Post("/api/grants/batch", op(g.ID, other)).Want(207)
			}
		}
	}
	g := s.agent.Ask("cmd", "mine")
	s.owner.Post(authoritytest.GrantPath(g.ID, "approve"), nil).Want(200)
	s.agent.Post("/api/grants/batch", op(g.ID, "approve")).Want(207)
}

// TestOverview: a person sees their own agents, and nobody else's.
func TestOverview(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	stranger := s.Person("stranger@example.com")
	s.owner.Post(api.PathStanding, wireStanding(s.agent.Email, nil)).Want(201)
	var g api.Grant
	s.agent.Post("/api/grants", shaped(s.agent.Email, "cat", "/home/p/a")).Into(&g)
	for i := range 25 {
		s.agent.Ask("cmd", fmt.Sprint(i))
	}
	path := api.PathUsers + "/" + url.PathEscape(s.owner.Email) + "/agents"
	v := reads(t, s.owner.Get(path), "0.email string", "0.display_name string", "0.standing_grants array", "0.recent_grants.19.id string", "0.grant_counts.pending number",
		"0.grant_counts.approved number", "0.recent_grants.0.decided_by_safe_command bool")
	if n, _ := at(v, "0.grant_counts.pending"); n != float64(25) {
		t.Errorf("pending: %v", n)
	}
	for _, c := range []*authoritytest.Client{&stranger.Client, &s.agent.Client, s.Manager()} {
		c.Get(path).Problem(403)
	}
	s.Stranger().Get(path).Problem(401)
	s.agent.Get(api.PathUsers + "/" + url.PathEscape(s.agent.Email) + "/agents").Problem(403)
	if a := stranger.Get(api.PathUsers + "/" + url.PathEscape(stranger.Email) + "/agents").Want(200); strings.TrimSpace(string(a.Body)) != "[]" {
		t.Errorf("a stranger's agents: %s", a.Body)
	}
}

// TestBulkSeed: the safe commands for agents that have none, by a login only where
// the switch admits it, and never for another's.
func TestBulkSeed(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	stranger := s.Person("stranger@example.com")
	path := api.PathStanding + "/bulk-seed"
	var list []api.Standing
	s.owner.Get(api.PathStanding).Into(&list)
	for _, st := range list {
		s.owner.Do("DELETE", api.PathStanding+"/"+st.ID, nil).Want(200)
	}
	if g := s.agent.Ask("date"); g.Status != grant.Pending {
		t.Fatalf("before: %+v", g)
	}
	body := api.Seed{Delegates: []string{s.agent.Email, "ghost@vm", s.owner.Email}}
	for _, c := range []*authoritytest.Client{&s.agent.Client, s.Manager()} {
		c.Post(path, body).Problem(403)
	}
	var out api.Seeded
	stranger.Post(path, body).Into(&out)
	for _, r := range out.Results {
		if r.Created+r.Skipped > 0 {
			t.Errorf("a stranger: %+v", r)
		}
	}
	s.owner.Post(path, body).Into(&out)
	if len(out.Results) != 3 || out.Results[0].Created != 14 || out.Results[1].Created+out.Results[2].Created != 0 {
		t.Errorf("seeded: %+v", out)
	}
	s.owner.Post(path, body).Into(&out)
	if out.Results[0].Created != 0 || out.Results[0].Skipped != 14 {
		t.Errorf("again: %+v", out)
	}
	if g := s.agent.Ask("date", "-u"); g.Status != grant.Approved || g.AutoKind != "standing" {
		t.Errorf("after: %+v", g)
	}
	for _, bad := range []api.Seed{{}, {Delegates: make([]string, 51)}} {
		s.owner.Post(path, bad).Problem(400)
	}
	weak := authoritytest.Start(t)
	owner := weak.Owner()
	owner.Post(path, api.Seed{Delegates: []string{weak.Agent(owner, "bot").Email}}).Problem(403)
}
