package httpapi_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"vogt/internal/api"
	"vogt/internal/authority"
	"vogt/internal/authoritytest"
	"vogt/internal/grant"
	"vogt/internal/httpapi"
)

func noPages(*authority.Authority) (h httpHandler) { return authoritytest.NoPages() }

// TestAdminRoutes: who may call the admin addresses, at which host, by what.
func TestAdminRoutes(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t, authoritytest.WithPages(noPages))
	owner := s.Owner()
	agent := s.Agent(owner, "helper")
	plain, admin := s.Register("plain@example.com"), s.Register("admin@example.com")
	manager := s.Manager()
	setAdmin := func(c *authoritytest.Client, is bool) authoritytest.Answer {
		return c.Do("PUT", "/api/admin/users/admin%40example.com/admin", map[string]bool{"isAdmin": is})
	}
	setAdmin(manager, true).Want(200)
	const users = "/api/admin/users"
	for name, test := range map[string]struct {
		call func() authoritytest.Answer
		want int
	}{
		"management":                 {func() authoritytest.Answer { return manager.Get(users) }, 200},
		"nobody":                     {func() authoritytest.Answer { return s.Stranger().Get(users) }, 403},
		"an owner's login":           {func() authoritytest.Answer { return owner.Get(users) }, 403},
		"an agent's login":           {func() authoritytest.Answer { return agent.Get(users) }, 403},
		"a page of somebody":         {func() authoritytest.Answer { return plain.Do("GET", users, nil) }, 403},
		"a page of nobody":           {func() authoritytest.Answer { return s.NewPage().Do("GET", users, nil) }, 401},
		"a page of an administrator": {func() authoritytest.Answer { return admin.Do("GET", users, nil) }, 200},
		"that page beside a login": {func() authoritytest.Answer {
			return admin.Do("GET", users, nil, "Authorization", "Bearer "+owner.Bearer)
		}, 403},
		"that page beside no login": {func() authoritytest.Answer { return admin.Do("GET", users, nil, "Authorization", "Bearer x") }, 403},
		"that page beside management": {func() authoritytest.Answer {
			return admin.Do("GET", users, nil, "Authorization", "Bearer "+manager.Bearer)
		}, 403},
		"its cookie at the other host": {func() authoritytest.Answer {
			return s.Stranger().Do("GET", users, nil, "Cookie", "vogt_session="+admin.Cookie)
		}, 403},
		"that page from another origin": {func() authoritytest.Answer { return admin.Do("GET", users, nil, "Origin", "https://evil.example") }, 403},
		"that page from another site":   {func() authoritytest.Answer { return admin.Do("GET", users, nil, "Sec-Fetch-Site", "cross-site") }, 403},
	} {
		if a := test.call(); a.Status != test.want {
			t.Errorf("%s: %d, want %d: %.300s", name, a.Status, test.want, a.Body)
		}
	}

	// What changes something takes the session's own key, made for this call.
	make := func(p *authoritytest.Page, headers ...string) authoritytest.Answer {
		return p.Do("POST", users, map[string]string{"email": "new@example.com"}, headers...)
	}
	thief := *admin
	thief.Unsigned = true
	make(&thief).Problem(403)
	thief.Unsigned, thief.Key = false, []byte("another key")
	make(&thief).Problem(403)
	make(admin, "Origin", "https://evil.example").Problem(403)
	make(admin, "Origin", "").Problem(403)
	make(plain).Problem(403)
	make(admin).Want(200)
	if !s.HasRecord("trust", "principal.create", "admin@example.com", "new@example.com") {
		t.Error("the log does not name the administrator")
	}
	// A click for one method is none for another.
	admin.Do("DELETE", users+"/new%40example.com", nil, httpapi.ClickHeader, clickOf(admin, users+"/new%40example.com")).Problem(403)

	// The role makes no roles, decides nothing, and ends with its giver's word.
	admin.Do("PUT", users+"/plain%40example.com/admin", map[string]bool{"isAdmin": true}).Problem(403)
	setAdmin(&owner.Client, true).Problem(403)
	manager.Do("PUT", users+"/"+url.PathEscape(agent.Email)+"/admin", map[string]bool{"isAdmin": true}).Problem(400)
	g := agent.Ask("ls")
	for _, verb := range []string{"approve", "deny", "revoke"} {
		if a := admin.Do("POST", authoritytest.GrantPath(g.ID, verb), nil); a.Status/100 == 2 {
			t.Errorf("an administrator may %s: %s", verb, a.Body)
		}
	}
	setAdmin(manager, false).Want(200)
	make(admin).Problem(403)

	// It ends when the person is switched off, and does not come back with her.
	setAdmin(manager, true).Want(200)
	for _, on := range []bool{false, true} {
		manager.Do("PATCH", api.PathMyAgents+"/admin%40example.com", map[string]bool{"isActive": on}).Want(200)
	}
	admin.SignIn().Want(200)
	make(admin).Problem(403)

	// Nor does whoever gets the address later have it.
	setAdmin(manager, true).Want(200)
	manager.Do("DELETE", users+"/admin%40example.com", nil).Want(200)
	if a := admin.Do("GET", users, nil); a.Status != 401 {
		t.Errorf("a removed administrator: %d", a.Status)
	}
	manager.Post(users, map[string]string{"email": "admin@example.com"}).Want(200)
	var list struct {
		Data []struct {
			Email   string
			IsAdmin bool
		}
	}
	manager.Get(users + "?search=admin%40").Into(&list)
	if len(list.Data) != 1 || list.Data[0].IsAdmin {
		t.Errorf("the new one: %+v", list)
	}
}

// TestManagementDecidesNothingByLinks tries the detours from a registration link
// to somebody's account.
func TestManagementDecidesNothingByLinks(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t, authoritytest.WithPages(noPages))
	owner := s.Owner()
	agent := s.Agent(owner, "helper")
	taken := s.Register("taken@example.com")
	make := func(email string) authoritytest.Answer {
		return s.Manager().Post("/api/admin/registration-urls", map[string]any{"email": email})
	}
	make(owner.Email).Problem(409)         // has a key
	make("OWNER@example.com").Problem(409) // the same
	make("taken@example.com").Problem(409) // has a passkey
	make(agent.Email).Problem(409)         // is none
	make("not an address").Problem(400)
	// A link that waits does not survive that the account gets a key meanwhile.
	var link struct{ Token, RegistrationURL, ID string }
	make("late@example.com").Into(&link)
	late := s.Person("late@example.com")
	page := s.NewPage()
	page.Create("/api/webauthn/register/options", "/api/webauthn/register/verify", map[string]any{"token": link.Token}).Problem(409)
	// Not even between its two calls.
	make("between@example.com").Into(&link)
	var c authoritytest.Ceremony
	page.Do("POST", "/api/webauthn/register/options", map[string]any{"token": link.Token}).Into(&c)
	between := s.Person("between@example.com")
	response, err := page.Browser.Create(c.Options)
	if err != nil {
		t.Fatal(err)
	}
	page.Do("POST", "/api/webauthn/register/verify", map[string]any{"challengeToken": c.Token, "response": jsonRaw(response)}).Problem(409)
	// Removing somebody and starting anew is none either.
	s.Manager().Do("DELETE", "/api/admin/users/taken%40example.com", nil).Want(200)
	make("taken@example.com").Problem(409)
	if a := taken.Do("GET", "/api/me", nil); a.Status != 401 {
		t.Errorf("a removed person's page: %d", a.Status)
	}
	_, _ = late, between
}

// TestRegistrationURL is the life of a link: once, in time, for one address.
func TestRegistrationURL(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t, authoritytest.WithPages(noPages))
	manager := s.Manager()
	var link struct {
		OK                         bool
		ID, Token, RegistrationURL string
		ExpiresInHours             int
	}
	a := manager.Post("/api/admin/registration-urls", map[string]any{"email": "Mara@example.com", "name": "Mara"}).Into(&link)
	if !link.OK || link.ExpiresInHours != 24 || link.RegistrationURL != s.Pages+"/register?token="+link.Token || len(link.Token) != 64 {
		t.Fatalf("%s", a.Body)
	}
	if strings.Contains(string(manager.Get("/api/admin/registration-urls").Body), link.Token) {
		t.Error("the list shows the token")
	}
	page := s.NewPage()
	options := func(token string) authoritytest.Answer {
		return page.Do("POST", "/api/webauthn/register/options", map[string]any{"token": token})
	}
	options("x").Problem(404)
	options("").Problem(404)
	// Looking, and a dialogue that was cancelled, cost nothing; the address binds.
	options(link.Token).Want(200)
	s.Clock.Advance(24*time.Hour - time.Millisecond)
	a = page.Create("/api/webauthn/register/options", "/api/webauthn/register/verify", map[string]any{"token": link.Token, "email": "other@example.com", "deviceName": "phone"})
	var who struct {
		OK          bool
		Email, Name string
	}
	if a.Into(&who); !who.OK || who.Email != "mara@example.com" || who.Name != "Mara" {
		t.Errorf("%s", a.Body)
	}
	var creds []struct{ CredentialID, Name string }
	if page.Do("GET", "/api/webauthn/credentials", nil).Into(&creds); len(creds) != 1 || creds[0].Name != "phone" {
		t.Errorf("%+v", creds)
	}
	second := s.NewPage()
	second.Create("/api/webauthn/register/options", "/api/webauthn/register/verify", map[string]any{"token": link.Token}).Problem(410)

	// Too late, also between the two calls, and taken back.
	manager.Post("/api/admin/registration-urls", map[string]any{"email": "slow@example.com", "expiresInHours": 1}).Into(&link)
	s.Clock.Advance(time.Hour - time.Millisecond)
	var c authoritytest.Ceremony
	options(link.Token).Into(&c)
	response, err := page.Browser.Create(c.Options)
	if err != nil {
		t.Fatal(err)
	}
	s.Clock.Advance(time.Millisecond)
	page.Do("POST", "/api/webauthn/register/verify", map[string]any{"challengeToken": c.Token, "response": jsonRaw(response)}).Problem(410)
	manager.Post("/api/admin/registration-urls", map[string]any{"email": "b@example.com", "expiresInHours": 1}).Into(&link)
	s.Clock.Advance(time.Hour)
	options(link.Token).Problem(404)
	for _, byToken := range []bool{false, true} {
		manager.Post("/api/admin/registration-urls", map[string]any{"email": "c@example.com"}).Into(&link)
		name := link.ID
		if byToken {
			name = link.Token
		}
		manager.Do("DELETE", "/api/admin/registration-urls/"+name, nil).Want(200)
		options(link.Token).Problem(404)
		manager.Do("DELETE", "/api/admin/registration-urls/"+name, nil).Problem(404)
	}
	for _, hours := range []any{0, -1, 100000, 1e9} {
		manager.Post("/api/admin/registration-urls", map[string]any{"email": "d@example.com", "expiresInHours": hours}).Problem(400)
	}
	if b := string(s.Records()[0].Body); strings.Contains(b, link.Token) {
		t.Error("the log holds a token")
	}
}

// TestLinkRace: of many who use one link at once, one gets in.
func TestLinkRace(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t, authoritytest.WithPages(noPages))
	var link struct{ Token string }
	s.Manager().Post("/api/admin/registration-urls", map[string]any{"email": "a@example.com"}).Into(&link)
	const many = 16
	got := runMany(many, func(int) int {
		return s.NewPage().Create("/api/webauthn/register/options", "/api/webauthn/register/verify", map[string]any{"token": link.Token}).Status
	})
	won := 0
	for _, status := range got {
		if status == 200 {
			won++
		} else if status != 409 && status != 410 {
			t.Errorf("one got %d", status)
		}
	}
	if won != 1 {
		t.Errorf("%d got in: %v", won, got)
	}
}

// TestUserList: limit, cursor and search do what they say, and the total is that
// of what was searched for.
func TestUserList(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t)
	manager := s.Manager()
	for _, email := range []string{"c@example.com", "a@example.com", "b%b@example.com", "d_d@example.org", "b@example.com"} {
		manager.Post("/api/admin/users", map[string]string{"email": email, "name": "Name of " + email[:1]}).Want(200)
	}
	type list struct {
		Data []struct {
			Email, Name string
			IsActive    bool
		}
		Pagination api.Pagination
		Total      int64
	}
	var seen []string
	path := "/api/admin/users?limit=2"
	for range 9 {
		var l list
		manager.Get(path).Into(&l)
		if l.Total != 5 {
			t.Errorf("total %d", l.Total)
		}
		for _, u := range l.Data {
			seen = append(seen, u.Email)
		}
		if !l.Pagination.HasMore {
			break
		}
		path = "/api/admin/users?limit=2&cursor=" + url.QueryEscape(*l.Pagination.Cursor)
	}
	if got := strings.Join(seen, " "); got != "a@example.com b%b@example.com b@example.com c@example.com d_d@example.org" {
		t.Errorf("%s", got)
	}
	for search, want := range map[string]int64{"EXAMPLE.ORG": 1, "name of": 5, "%": 1, "_": 1, `\`: 0, "'": 0, "b@": 2, "zzz": 0} {
		var l list
		manager.Get("/api/admin/users?limit=1&search=" + url.QueryEscape(search)).Into(&l)
		if l.Total != want || int64(len(l.Data)) != min(want, 1) || l.Pagination.HasMore != (want > 1) {
			t.Errorf("%q: %+v, want %d", search, l, want)
		}
	}
}

// TestNothingIsLeft: whoever is removed has nothing that still works.
func TestNothingIsLeft(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t, authoritytest.WithPages(noPages), authoritytest.WithAPI(func(c *httpapi.Config) {
		c.Push = httpapi.Push{Public: "x", Hosts: []string{"push.example"}}
	}))
	s.Owner()
	mara := s.Person("mara@example.com")
	agent := s.Agent(mara, "helper")
	g := agent.Ask("ls")
	mara.Approve(g.ID, grant.Once, 0)
	jwt := agent.Token(g.ID)
	waiting := agent.Ask("uptime")
	// A page of hers, with everything that hangs on it.
	page := s.NewPage()
	link := mara.Change(api.TrustPasskeyAdd, map[string]string{}).Link
	page.Create("/api/webauthn/register/options", "/api/webauthn/register/verify", map[string]any{"token": authority.LinkToken(link)}).Want(200)
	s.Manager().Do("PUT", "/api/admin/users/mara%40example.com/admin", map[string]bool{"isAdmin": true}).Want(200)
	page.Do("POST", "/api/push/subscribe", subscription("https://push.example/mara")).Want(201)
	page.Do("GET", "/api/admin/users", nil).Want(200)

	s.Manager().Do("DELETE", "/api/admin/users/mara%40example.com", nil).Want(200)

	for name, a := range map[string]authoritytest.Answer{
		"the login":         mara.Get("/api/me"),
		"the page":          page.Do("GET", "/api/me", nil),
		"the page as admin": page.Do("GET", "/api/admin/users", nil),
		"the key":           mara.TryLogin(mara.Key),
		"the passkey":       page.SignIn(),
		"the agent's login": agent.Get("/api/me"),
		"the agent's key":   agent.TryLogin(agent.Key),
		"the agent's token": agent.Post(authoritytest.GrantPath(g.ID, "token"), nil),
	} {
		if a.Status/100 == 2 {
			t.Errorf("%s still works: %.200s", name, a.Body)
		}
	}
	if a := s.Consume(g.ID, jwt); a.Status == 200 && !strings.Contains(string(a.Body), `"error"`) {
		t.Errorf("a grant token is still good: %s", a.Body)
	}
	for _, id := range []string{g.ID, waiting.ID} {
		var got api.Grant
		s.Manager().Get(authoritytest.GrantPath(id)).Into(&got)
		if got.Status != grant.Revoked {
			t.Errorf("grant %s is %s", id, got.Status)
		}
	}
	left, err := s.Authority.Subscriptions(t.Context(), "mara@example.com")
	if err != nil || len(left) != 0 {
		t.Errorf("subscriptions are left: %v %v", left, err)
	}
	// Nor does it come back with the address.
	s.Manager().Post("/api/admin/users", map[string]string{"email": "mara@example.com"}).Want(200)
	if left, err = s.Authority.Subscriptions(t.Context(), "mara@example.com"); err != nil || len(left) != 0 {
		t.Errorf("subscriptions came back: %v %v", left, err)
	}
	if a := page.SignIn(); a.Status == 200 {
		t.Errorf("the passkey came back: %s", a.Body)
	}
}

// TestAdminAgents: what administrators may do to agents, and what not.
func TestAdminAgents(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t)
	owner := s.Owner()
	other := s.Person("other@example.com")
	agent := s.Agent(owner, "helper")
	manager := s.Manager()
	path := "/api/admin/agents/" + url.PathEscape(agent.Email)
	put := func(body map[string]any) authoritytest.Answer { return manager.Do("PUT", path, body) }
	put(map[string]any{"owner": other.Email}).Problem(403)
	put(map[string]any{"approver": other.Email}).Problem(403)
	put(map[string]any{"name": "x\x1b[2J"}).Problem(400)
	put(map[string]any{"name": "tidy", "owner": owner.Email, "approver": owner.Email, "isActive": true}).Want(200)
	var list struct {
		Data  []api.Principal
		Total int
	}
	manager.Get("/api/admin/agents").Into(&list)
	if list.Total != 1 || list.Data[0].Name != "tidy" || list.Data[0].Email != agent.Email {
		t.Errorf("%+v", list)
	}
	manager.Get("/api/admin/agents/" + url.PathEscape(owner.Email)).Problem(404)
	manager.Do("DELETE", "/api/admin/agents/"+url.PathEscape(owner.Email), nil).Problem(404)
	put(map[string]any{"isActive": false}).Want(200)
	if a := agent.Get("/api/me"); a.Status/100 == 2 {
		t.Error("a deactivated agent is still there")
	}
	put(map[string]any{"isActive": true}).Problem(403)
	manager.Post("/api/admin/agents", map[string]string{"email": "p@example.com"}).Problem(400)
	manager.Do("DELETE", path, nil).Want(200)
	manager.Get(path).Problem(404)
}

// TestAdminDelegations: all of them are listed for whoever administers, page by
// page, and can be ended.
func TestAdminDelegations(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t, authoritytest.WithPages(noPages))
	owner := s.Owner()
	mara := s.Person("mara@example.com")
	for _, from := range []*authoritytest.Principal{owner, mara, owner} {
		to := mara
		if from == mara {
			to = owner
		}
		from.Change(api.TrustDelegationAdd, map[string]string{"delegate": to.Email, "audience": "plans.example", "grant_type": "always", "scopes": "read"})
		s.Clock.Advance(time.Second)
	}
	manager := s.Manager()
	var seen []string
	path := "/api/admin/delegations?limit=2"
	for range 3 {
		var l api.Delegations
		manager.Get(path).Into(&l)
		for _, d := range l.Data {
			seen = append(seen, d.ID)
		}
		if !l.Pagination.HasMore {
			break
		}
		path = "/api/admin/delegations?limit=2&cursor=" + url.QueryEscape(*l.Pagination.Cursor)
	}
	if len(seen) != 3 {
		t.Fatalf("%v", seen)
	}
	plain := s.Register("plain@example.com")
	plain.Do("GET", "/api/admin/delegations", nil).Problem(403)
	plain.Do("DELETE", "/api/admin/delegations/"+seen[0], nil).Problem(403)
	manager.Do("DELETE", "/api/admin/delegations/"+seen[0], nil).Want(200)
	manager.Do("DELETE", "/api/admin/delegations/none", nil).Problem(404)
	var d api.Delegation
	owner.Get("/api/delegations/" + seen[0]).Into(&d)
	if d.Status != grant.Revoked {
		t.Errorf("it is %s", d.Status)
	}
}
