package authority_test

import (
	"encoding/json"
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
	"vogt/internal/store"
)

// TestSamePersonAnew: management removes a person and enrols the address again
// with a key of its own. Whatever way it takes, the new one has no part in what
// was before and decides nothing, now or later.
func TestSamePersonAnew(t *testing.T) {
	t.Parallel()
	anew := map[string]func(s *authoritytest.Server, email, line string){
		"a user, then a key": func(s *authoritytest.Server, email, line string) {
			s.Manager().Post("/api/admin/users", map[string]string{"email": email}).Want(200)
			s.Manager().Post(userPath(email)+"/ssh-keys", map[string]string{"publicKey": line}).Want(200)
		},
		"a user with a key": func(s *authoritytest.Server, email, line string) {
			s.Manager().Post("/api/admin/users", map[string]string{"email": email, "publicKey": line}).Want(200)
		},
		"enrolled with a key": func(s *authoritytest.Server, email, line string) {
			s.Manager().Post("/api/auth/enroll", map[string]string{"email": email, "publicKey": line}).Want(200)
		},
		"written otherwise": func(s *authoritytest.Server, email, line string) {
			s.Manager().Post("/api/agent/enroll", map[string]string{"email": strings.ToUpper(email), "publicKey": line}).Want(200)
		},
	}
	clocks := map[string]time.Duration{"at once": 0, "with the clock set back": -time.Hour, "later": time.Minute}
	for how, enrol := range anew {
		for when, move := range clocks {
			t.Run(how+" "+when, func(t *testing.T) {
				t.Parallel()
				c := newCast(t, authoritytest.WithBearer(detail.High), authoritytest.WithConfig(func(cfg *authority.Config) {
					cfg.PendingTTL, cfg.LoginTTL = 1000*time.Hour, 1000*time.Hour
				}))
				for _, p := range []*authoritytest.Principal{c.approver, c.owner} {
					tryAnew(t, c, p, move, enrol)
				}
			})
		}
	}
}

func tryAnew(t *testing.T, c *cast, p *authoritytest.Principal, move time.Duration, enrol func(s *authoritytest.Server, email, line string)) {
	t.Helper()
	decided := approved(c.owner, c.requester, grant.Always, "decided for "+p.Email)
	waiting := c.requester.Ask("waiting for " + p.Email)
	own := p.Ask("its own")
	tr, _ := c.s.Stranger().Prepare(api.TrustDevice, map[string]string{"name": "laptop"})
	d := p.Signed(waiting.ID, grant.Once, 0)

	c.s.Clock.Advance(move)
	c.s.Manager().Do("DELETE", userPath(p.Email), nil).Want(200)
	key := c.s.NewKey("x")
	enrol(c.s, p.Email, key.Line)
	impostor := &authoritytest.Principal{Client: authoritytest.Client{S: c.s}, Email: p.Email, Key: key}
	impostor.TryLogin(key).Problem(401)
	c.s.Clock.Advance(72*time.Hour - time.Second)
	impostor.TryLogin(key).Problem(401)
	if !c.s.HasRecord("trust", "key.added", p.Email, "dormant_until") {
		t.Error("the dormant key is not on record")
	}
	c.s.Clock.Advance(2 * time.Second)
	impostor.Login()

	for _, id := range []string{decided.ID, waiting.ID, own.ID} {
		var g api.Grant
		impostor.Get(authoritytest.GrantPath(id)).Into(&g)
		if g.Request != nil || g.Requester != "" {
			t.Errorf("the new %s reads %+v", p.Email, g)
		}
		for _, path := range []string{"statement", "receipt"} {
			impostor.Get(authoritytest.GrantPath(id, path)).Problem(404)
		}
		for _, verb := range []string{"deny", "revoke", "approve", "token"} {
			impostor.Post(authoritytest.GrantPath(id, verb), nil).Problem(404)
		}
		_, err := c.s.Authority.Card(ctx, impostor.Actor(), id)
		fails(t, "the card", err, 404)
	}
	var err error
	if d.Signature, err = key.SignDecision(*d.Digest); err != nil {
		t.Fatal(err)
	}
	impostor.Post(authoritytest.GrantPath(waiting.ID, "approve"), d).Problem(404)
	var list api.List
	impostor.Get(api.PathGrants).Into(&list)
	if len(list.Data) != 0 {
		t.Errorf("the new %s lists %+v", p.Email, list.Data)
	}
	for _, limit := range []int{1, 100} {
		if rows, total, err := c.s.Authority.Inbox(ctx, impostor.Actor(), limit); err != nil || len(rows)+total != 0 {
			t.Errorf("the new %s has %d of %d cards, %v", p.Email, len(rows), total, err)
		}
	}
	impostor.Get(trustPath(tr.ID)).Problem(404)

	// What it asks for itself it sees, and permits nothing.
	mine := impostor.Ask("its first")
	mine = impostor.Grant(mine.ID)
	if mine.Requester != p.Email {
		t.Errorf("the new %s does not see its own request: %+v", p.Email, mine)
	}
	impostor.Post(authoritytest.GrantPath(mine.ID, "approve"), impostor.Signed(mine.ID, grant.Once, 0)).Problem(403)
	impostor.Post(authoritytest.GrantPath(mine.ID, "approve"), nil).Problem(403)
	change, _ := impostor.Prepare(api.TrustKeyAdd, map[string]string{"public_key": c.s.NewKey("y").Line})
	impostor.Post(trustPath(change.ID, "confirm"), impostor.SignedChange(change.ID)).Problem(403)

	// What belonged to the old one stays cut off.
	if p == c.owner {
		for _, agent := range []*authoritytest.Principal{c.requester, c.sibling} {
			agent.Get(api.PathWhoAmI).Problem(401)
			agent.TryLogin(agent.Key).Problem(401)
		}
	}
}

// TestCountAnew: the count of what waits is not that of an earlier holder of
// the address.
func TestCountAnew(t *testing.T) {
	t.Parallel()
	c := newCast(t)
	for _, arg := range []string{"a", "b", "c"} {
		c.requester.Ask("ls", arg)
	}
	count := func(email string) (n int) {
		t.Helper()
		err := c.s.DB.View(ctx, func(tx store.Tx) error {
			p, err := store.PrincipalByEmail(tx, email)
			if err == nil {
				n, err = store.CountPending(tx, email, grant.Millis(p.Created), grant.At(c.s.Clock.Now()))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := count(c.approver.Email); n != 3 {
		t.Fatalf("the approver has %d cards, want 3", n)
	}
	c.s.Manager().Do("DELETE", userPath(c.approver.Email), nil).Want(200)
	c.s.Manager().Post("/api/admin/users", map[string]string{"email": c.approver.Email}).Want(200)
	if n := count(c.approver.Email); n != 0 {
		t.Errorf("the new approver has %d cards", n)
	}
}

// TestAgentAnew: an agent under an old name reads neither the grants nor the
// records of the one before.
func TestAgentAnew(t *testing.T) {
	t.Parallel()
	c := newCast(t)
	old := approved(c.owner, c.sibling, grant.Always, "secret-of-the-old-one")
	used := consume(t, c.sibling, old.ID)
	c.owner.Do("DELETE", agentPath(c.sibling), nil).Want(200)
	c.s.Clock.Advance(time.Second)
	fresh := c.s.Agent(c.owner, "sibling")
	fresh.Get(authoritytest.GrantPath(old.ID, "receipt")).Problem(404)
	fresh.Post(authoritytest.GrantPath(old.ID, "outcome"), api.Outcome{Use: used.Use}).Problem(404)
	if a := fresh.Get(api.PathAudit + "/records?limit=1000").Want(200); strings.Contains(string(a.Body), "secret-of-the-old-one") {
		t.Errorf("the new agent reads the old one's records: %s", a.Body)
	}
	var list api.List
	fresh.Get(api.PathGrants).Into(&list)
	if len(list.Data) != 0 {
		t.Errorf("the new agent lists %+v", list.Data)
	}
	if g := fresh.Ask("mine"); fresh.Grant(g.ID).Requester != fresh.Email {
		t.Error("the new agent does not see its own request")
	}
}

// TestLastDecider: somebody who can decide is always left.
func TestLastDecider(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t)
	owner := s.Owner()
	keep := func(when string) {
		t.Helper()
		s.T.Helper()
		p := s.Manager().Do("DELETE", userPath(owner.Email), nil).Problem(409)
		if !strings.Contains(p.Hint, "another person") {
			t.Errorf("%s: the hint is %q", when, p.Hint)
		}
		fails(t, when+": deactivating", s.Authority.Deactivate(ctx, manager(s), owner.Email), 409)
		fails(t, when+": deactivating oneself", s.Authority.Deactivate(ctx, owner.Actor(), owner.Email), 409)
	}
	keep("alone")
	s.Manager().Post("/api/admin/users", map[string]string{"email": "keyless@example.com"}).Want(200)
	keep("beside somebody without a key")
	weak := s.Person("weak@example.com")
	addByManagement(s, weak.Email, s.NewKey("second"))
	s.Manager().Do("DELETE", userPath(weak.Email), nil).Want(200)
	s.Manager().Post("/api/admin/users", map[string]string{"email": weak.Email, "publicKey": s.NewKey("third").Line}).Want(200)
	keep("beside somebody with a key for logging in")
	s.Agent(owner, "helper")
	keep("beside an agent")

	// Whoever cannot decide can go, and with another who can, the owner can.
	s.Manager().Do("DELETE", userPath(weak.Email), nil).Want(200)
	s.Person("second@example.com")
	s.Manager().Do("DELETE", userPath(owner.Email), nil).Want(200)
	fails(t, "removing the second, who is the last now", s.Authority.Remove(ctx, manager(s), "second@example.com"), 409)
}

// TestAddressesAreOne: an address is the same however it is written, and what
// was one kind of principal never becomes another.
func TestAddressesAreOne(t *testing.T) {
	t.Parallel()
	c := newCast(t)
	upper := strings.ToUpper(c.owner.Email)
	for _, path := range []string{"/api/admin/users", "/api/agent/enroll", "/api/auth/enroll"} {
		c.s.Manager().Post(path, map[string]string{"email": upper}).Problem(409)
	}
	// With other letters it logs in, reads and is managed all the same.
	again := &authoritytest.Principal{Client: authoritytest.Client{S: c.s}, Email: upper, Key: c.owner.Key}
	var login api.Login
	again.TryLogin(c.owner.Key).Into(&login)
	if login.Email != c.owner.Email {
		t.Errorf("logged in as %q, want %q", login.Email, c.owner.Email)
	}
	if k := addByManagement(c.s, upper, c.s.NewKey("x")); !k.LoginOnly {
		t.Error("a key for an address in capitals is added as for somebody new")
	}
	c.owner.Get(api.PathMyAgents + "/" + strings.ToUpper(c.sibling.Email)).Want(200)
	if g := c.sibling.Ask("ls"); len(listOf(t, c.owner, "?requester="+url.QueryEscape(strings.ToUpper(c.sibling.Email)))) != 1 {
		t.Errorf("the list does not find %s", g.ID)
	}
	c.owner.Change(api.TrustAgentRotate, map[string]string{"email": strings.ToUpper(c.sibling.Email), "public_key": c.s.NewKey("rotated").Line})
	// The Kelvin sign lowers to a k elsewhere; here it is no letter.
	c.s.Manager().Post("/api/admin/users", map[string]string{"email": "\u212Aelvin@example.com"}).Problem(400)

	mixed := "Mixed.Case@Example.com"
	c.s.Manager().Post("/api/admin/users", map[string]string{"email": mixed}).Want(200)
	var people struct{ Data []api.Principal }
	c.s.Manager().Get("/api/admin/users").Into(&people)
	if !slices.ContainsFunc(people.Data, func(p api.Principal) bool { return p.Email == strings.ToLower(mixed) }) {
		t.Errorf("the address is kept as it was written: %+v", people.Data)
	}
	if err := authoritytest.Start(t).Authority.CreateOwner(ctx, mixed, "", c.s.NewKey("owner").Line); err != nil {
		t.Fatal(err)
	}

	agent := c.sibling.Email
	c.owner.Do("DELETE", agentPath(c.sibling), nil).Want(200)
	for _, body := range []map[string]string{{"email": agent}, {"email": strings.ToUpper(agent), "type": "human"}} {
		c.s.Manager().Post("/api/admin/users", body).Problem(409)
	}
	c.s.Manager().Do("DELETE", userPath(c.stranger.Email), nil).Want(200)
	c.s.Manager().Post("/api/agent/enroll", map[string]string{"email": c.stranger.Email, "owner": c.owner.Email}).Problem(409)
	b, err := json.Marshal(map[string]string{"email": agent, "owner": upper})
	if err != nil {
		t.Fatal(err)
	}
	c.s.Manager().Post("/api/agent/enroll", b).Want(200)
}

func listOf(t *testing.T, p *authoritytest.Principal, query string) []api.Grant {
	t.Helper()
	var list api.List
	p.Get(api.PathGrants + query).Into(&list)
	return list.Data
}
