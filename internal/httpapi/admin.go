package httpapi

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"vogt/internal/api"
	"vogt/internal/authority"
	"vogt/internal/store"
)

// adminRoutes are for whoever administers: with the management token at the
// issuer's host, or as a person with the admin role at the pages'.
func (s *server) adminRoutes() {
	pages := []string{"limit: how many, 100 at most", "cursor: pagination.cursor of the page before"}
	search := append(pages, "search: in address or name")
	for _, r := range []struct {
		pattern string
		fn      handler
		about   about
	}{
		{"GET /api/admin/users", adminUsers, about{says: "A page of people and agents, by address, and how many there are.", query: append(search, "type: human or agent"), gives: usersPage{}}},
		{"POST /api/admin/users", adminCreateUser, about{says: "Makes a person, or an agent of somebody.", takes: managedUser{}, gives: newUser{}}},
		{"DELETE /api/admin/users/{email}", adminDeleteUser, about{says: "Removes somebody and ends everything that they could use.", gives: done{}}},
		{"PUT /api/admin/users/{email}/admin", adminSetAdmin, about{says: "Gives or takes the admin role; for the management token.", takes: adminRole{}, gives: done{}}},
		{"GET /api/admin/users/{email}/credentials", adminCredentials, about{says: "Somebody's passkeys.", gives: []credentialView{}}},
		{"DELETE /api/admin/users/{email}/credentials/{id}", adminDeleteCredential, about{says: "Takes a passkey away.", gives: done{}}},
		{"GET /api/admin/users/{email}/ssh-keys", adminKeys, about{says: "Somebody's SSH keys.", gives: []api.Key{}}},
		{"POST /api/admin/users/{email}/ssh-keys", adminAddKey, about{says: "Adds a key; in an account that was used it sleeps, and never decides.", takes: newUserKey{}, gives: api.Key{}}},
		{"DELETE /api/admin/users/{email}/ssh-keys/{key}", adminDeleteKey, about{says: "Takes a key away.", gives: done{}}},
		{"GET /api/admin/sessions", adminSessions, about{says: "A page of the pages that people are signed in on.", query: pages, gives: sessionsPage{}}},
		{"DELETE /api/admin/sessions/{id}", adminEndSession, about{says: "Signs one of them out.", gives: done{}}},
		{"GET /api/admin/delegations", adminDelegations, about{says: "A page of everybody's delegations, newest first.", query: pages, gives: api.Delegations{}}},
		{"DELETE /api/admin/delegations/{id}", adminEndDelegation, about{says: "Takes a delegation back.", gives: api.Delegation{}}},
		{"GET /api/admin/agents", adminAgents, about{says: "A page of agents.", query: search, gives: usersPage{}}},
		{"POST /api/admin/agents", adminCreateAgent, about{says: "Makes an agent of somebody.", takes: managedUser{}, gives: api.Principal{}}},
		{"GET /api/admin/agents/{email}", adminAgent, about{says: "One of them.", gives: api.Principal{}}},
		{"PUT /api/admin/agents/{email}", adminChangeAgent, about{says: "Renames an agent or switches it off. Owner and approver stay.", takes: changedAgent{}, gives: api.Principal{}}},
		{"DELETE /api/admin/agents/{email}", adminDeleteAgent, about{says: "Removes an agent.", gives: done{}}},
		{"GET /api/admin/registration-urls", adminLinks, about{says: "A page of the registration links that wait, without their tokens.", query: pages, gives: linksPage{}}},
		{"POST /api/admin/registration-urls", adminMakeLink, about{says: "Makes a link for somebody's first passkey, good once.", takes: newLink{}, gives: madeLink{}}},
		{"DELETE /api/admin/registration-urls/{id}", adminTakeLink, about{says: "Takes a link back, by its id or its token.", gives: done{}}},
		{"GET " + api.PathAllowedClients, allowedClients, about{says: "Services that people of a domain may use.", query: []string{"domain: of people's addresses"}, gives: envelope[api.AllowedClient]{}}},
		{"POST " + api.PathAllowedClients, allowClient, about{says: "Allows one.", takes: api.AllowedClient{}, gives: done{}}},
		{"DELETE " + api.PathAllowedClients + "/{domain}/{client}", disallowClient, about{says: "Takes that back.", gives: done{}}},
	} {
		s.handle(r.pattern, func(c *call) error {
			if c.actor.Means != authority.Management {
				return &authority.Error{Status: 403, Kind: "forbidden", Title: "Invalid management token", Hint: "Administrators use the pages."}
			}
			return r.fn(c)
		}, r.about)
		s.onPages(r.pattern, func(c *call) error {
			if c.actor.Means == authority.Management {
				return r.fn(c)
			}
			if err := c.needSession(); err != nil {
				return err
			}
			var err error
			if c.actor, err = c.s.Authority.AsAdministrator(c.Context(), c.actor); err != nil {
				return err
			}
			return r.fn(c)
		}, r.about)
	}
}

// The bodies of these addresses.
type (
	adminRole struct {
		Admin *bool `json:"isAdmin"`
	}
	changedAgent struct {
		Name     *string `json:"name,omitempty"`
		Owner    *string `json:"owner,omitempty"`
		Approver *string `json:"approver,omitempty"`
		Active   *bool   `json:"isActive,omitempty"`
	}
	newLink struct {
		Email string `json:"email"`
		Name  string `json:"name,omitempty"`
		Hours *int   `json:"expiresInHours,omitempty"` // 24 if absent
	}
	usersPage    listed[userView]
	sessionsPage listed[sessionView]
	linksPage    listed[linkView]
	madeLink     struct {
		OK    bool   `json:"ok"`
		ID    string `json:"id"`
		Email string `json:"email"`
		Token string `json:"token"`
		URL   string `json:"registrationUrl"`
		Hours int    `json:"expiresInHours"`
	}
)

func adminDelegations(c *call) error {
	limit, _ := c.paged()
	return c.delegationPage(limit, func(f store.DelegationFilter) ([]api.Delegation, store.DelegationFilter, error) {
		return c.s.Authority.AllDelegations(c.Context(), c.actor, f)
	})
}

func adminEndDelegation(c *call) error {
	d, err := c.s.Authority.EndDelegation(c.Context(), c.actor, c.PathValue("id"))
	if err != nil {
		return err
	}
	return c.ok(http.StatusOK, d)
}

// paged reads limit and cursor.
func (c *call) paged() (limit int, after string) {
	q := c.URL.Query()
	limit, _ = strconv.Atoi(q.Get("limit"))
	if limit <= 0 || limit > largestPage {
		limit = largestPage
	}
	return limit, q.Get("cursor")
}

// listed is a page of a list with how many there are in all.
type listed[T any] struct {
	Data       []T            `json:"data"`
	Pagination api.Pagination `json:"pagination"`
	Total      int64          `json:"total"`
}

// cut cuts a list that was asked for with one more than fits.
func cut[T any](all []T, limit int, total int64, cursor func(T) string) listed[T] {
	out := listed[T]{Data: all, Total: total}
	if out.Data == nil {
		out.Data = []T{}
	}
	if len(all) > limit {
		out.Data = all[:limit]
		last := cursor(all[limit-1])
		out.Pagination = api.Pagination{Cursor: &last, HasMore: true}
	}
	return out
}

// userView is a principal as the wire shows it to administrators.
type userView struct {
	api.Principal
	Admin bool `json:"isAdmin"`
	Away  bool `json:"recoveryVacationMode"`
}

func (c *call) search(kind string) error {
	limit, after := c.paged()
	found, total, err := c.s.Authority.Search(c.Context(), c.actor, store.Search{
		Text: c.URL.Query().Get("search"), Kind: kind, After: after, Limit: limit + 1,
	})
	if err != nil {
		return err
	}
	var all []userView
	for _, f := range found {
		all = append(all, userView{principalView(f.Principal), f.Admin, f.Away})
	}
	return c.ok(http.StatusOK, cut(all, limit, total, func(u userView) string { return u.Email }))
}

// adminUsers lists people and agents, as the wire does.
func adminUsers(c *call) error { return c.search(c.URL.Query().Get("type")) }

func adminCreateUser(c *call) error {
	var in managedUser
	if err := c.body(&in); err != nil {
		return err
	}
	p, _, err := c.manage(in)
	if err != nil {
		return err
	}
	return c.ok(http.StatusOK, newUser{OK: true, Email: p.Email, Name: p.Name})
}

func adminDeleteUser(c *call) error { return deleteAgent(c) }

func adminSetAdmin(c *call) error {
	var in adminRole
	if err := c.body(&in); err != nil {
		return err
	}
	if in.Admin == nil {
		return &authority.Error{Status: 400, Title: "isAdmin is missing", Detail: "Send true or false."}
	}
	if err := c.s.Authority.SetAdmin(c.Context(), c.actor, c.PathValue("email"), *in.Admin); err != nil {
		return err
	}
	return c.ok(http.StatusOK, map[string]bool{"ok": true})
}

// credentialView is a passkey. Times are milliseconds, as the wire has it for
// WebAuthn records.
type credentialView struct {
	ID        string `json:"credentialId"`
	Name      string `json:"name"`
	CreatedAt int64  `json:"createdAt"`
	LastUsed  int64  `json:"lastUsedAt,omitempty"`
}

func credentialViews(passkeys []store.Passkey) []credentialView {
	out := []credentialView{}
	for _, p := range passkeys {
		out = append(out, credentialView{ID: p.ID, Name: p.Name, CreatedAt: p.Created, LastUsed: p.LastUsed})
	}
	return out
}

func adminCredentials(c *call) error {
	a, err := c.s.Authority.Account(c.Context(), c.actor, c.PathValue("email"))
	if err != nil {
		return err
	}
	return c.ok(http.StatusOK, credentialViews(a.Passkeys))
}

func adminDeleteCredential(c *call) error {
	if err := c.s.Authority.RemovePasskeyOf(c.Context(), c.actor, c.PathValue("email"), c.PathValue("id")); err != nil {
		return err
	}
	return c.ok(http.StatusOK, map[string]bool{"ok": true})
}

func keyViews(keys []store.Key) []api.Key {
	out := []api.Key{}
	for _, k := range keys {
		out = append(out, keyView(k))
	}
	return out
}

func adminKeys(c *call) error {
	a, err := c.s.Authority.Account(c.Context(), c.actor, c.PathValue("email"))
	if err != nil {
		return err
	}
	return c.ok(http.StatusOK, keyViews(a.Keys))
}

func adminAddKey(c *call) error {
	var in newUserKey
	if err := c.body(&in); err != nil {
		return err
	}
	k, err := c.s.Authority.ManageKey(c.Context(), c.actor, c.PathValue("email"), in.Name, in.PublicKey)
	if err != nil {
		return err
	}
	return c.ok(http.StatusOK, keyView(k))
}

func adminDeleteKey(c *call) error {
	if err := c.s.Authority.RemoveKey(c.Context(), c.actor, c.PathValue("email"), c.PathValue("key")); err != nil {
		return err
	}
	return c.ok(http.StatusOK, map[string]bool{"ok": true})
}

// sessionView is a signed-in page; times are milliseconds.
type sessionView struct {
	ID        string `json:"id"`
	Email     string `json:"userId"`
	Agent     string `json:"userAgent"`
	CreatedAt int64  `json:"createdAt"`
	ExpiresAt int64  `json:"expiresAt"`
}

func adminSessions(c *call) error {
	limit, after := c.paged()
	rows, total, err := c.s.Authority.AllSessions(c.Context(), c.actor, after, limit+1)
	if err != nil {
		return err
	}
	var all []sessionView
	for _, s := range rows {
		all = append(all, sessionView{ID: s.ID, Email: s.Email, Agent: s.Agent, CreatedAt: s.Created, ExpiresAt: s.Expires})
	}
	return c.ok(http.StatusOK, cut(all, limit, total, func(s sessionView) string { return s.ID }))
}

func adminEndSession(c *call) error {
	if err := c.s.Authority.EndSession(c.Context(), c.actor, c.PathValue("id")); err != nil {
		return err
	}
	return c.ok(http.StatusOK, map[string]bool{"ok": true})
}

func adminAgents(c *call) error { return c.search("agent") }

func adminCreateAgent(c *call) error {
	var in managedUser
	if err := c.body(&in); err != nil {
		return err
	}
	if in.Owner == "" || in.Type != "" && in.Type != "agent" {
		return &authority.Error{Status: 400, Title: "An agent has an owner", Detail: "owner is missing, or type is not agent."}
	}
	p, _, err := c.manage(in)
	if err != nil {
		return err
	}
	return c.ok(http.StatusOK, principalView(p))
}

// agentOnly refuses people at the addresses of agents.
func (c *call) agentOnly() (authority.Account, error) {
	a, err := c.s.Authority.Account(c.Context(), c.actor, c.PathValue("email"))
	if err == nil && a.Principal.Owner == "" {
		err = &authority.Error{Status: 404, Title: "There is no such agent", Detail: "The address is a person's."}
	}
	return a, err
}

func adminAgent(c *call) error {
	a, err := c.agentOnly()
	if err != nil {
		return err
	}
	return c.ok(http.StatusOK, accountView(a))
}

func adminChangeAgent(c *call) error {
	var in changedAgent
	if err := c.body(&in); err != nil {
		return err
	}
	change := authority.Change{Name: in.Name, Owner: in.Owner, Approver: in.Approver, Active: in.Active}
	if err := c.s.Authority.ChangeAgent(c.Context(), c.actor, c.PathValue("email"), change); err != nil {
		return err
	}
	return c.account(c.PathValue("email"))
}

func adminDeleteAgent(c *call) error {
	if _, err := c.agentOnly(); err != nil {
		return err
	}
	return deleteAgent(c)
}

// linkView is a registration link that waits. Its token is shown to whoever made
// it, once. Times are milliseconds.
type linkView struct {
	ID        string `json:"id"`
	Email     string `json:"email"`
	Name      string `json:"name"`
	CreatedBy string `json:"createdBy"`
	CreatedAt int64  `json:"createdAt"`
	ExpiresAt int64  `json:"expiresAt"`
}

func adminLinks(c *call) error {
	limit, after := c.paged()
	rows, total, err := c.s.Authority.Links(c.Context(), c.actor, after, limit+1)
	if err != nil {
		return err
	}
	var all []linkView
	for _, l := range rows {
		all = append(all, linkView{ID: l.ID, Email: l.Email, Name: l.Name, CreatedBy: l.By, CreatedAt: l.Created, ExpiresAt: l.Expires})
	}
	return c.ok(http.StatusOK, cut(all, limit, total, func(l linkView) string { return l.ID }))
}

func adminMakeLink(c *call) error {
	var in newLink
	if err := c.body(&in); err != nil {
		return err
	}
	hours := 24
	if in.Hours != nil {
		hours = *in.Hours
	}
	if hours < 1 || hours > 24*365 {
		return &authority.Error{Status: 400, Title: "The life of the link cannot be used", Detail: fmt.Sprintf("expiresInHours is %d.", hours)}
	}
	token, l, err := c.s.Authority.MakeLink(c.Context(), c.actor, in.Email, in.Name, time.Duration(hours)*time.Hour)
	if err != nil {
		return err
	}
	return c.ok(http.StatusOK, madeLink{OK: true, ID: l.ID, Email: l.Email, Token: token, URL: c.s.Authority.LinkURL(token), Hours: hours})
}

func adminTakeLink(c *call) error {
	if err := c.s.Authority.TakeLink(c.Context(), c.actor, c.PathValue("id")); err != nil {
		return err
	}
	return c.ok(http.StatusOK, map[string]bool{"ok": true})
}
