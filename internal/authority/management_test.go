package authority_test

import (
	"testing"
	"time"

	"vogt/internal/api"
	"vogt/internal/authority"
	"vogt/internal/authoritytest"
	"vogt/internal/detail"
	"vogt/internal/grant"
	"vogt/internal/statement"
)

func manager(s *authoritytest.Server) authority.Actor {
	s.T.Helper()
	a, ok := authority.AuthenticateManagement(authoritytest.ManagementToken, authoritytest.ManagementToken)
	if !ok {
		s.T.Fatal("the management token does not authenticate")
	}
	return a
}

func (c *cast) manager() authority.Actor { return manager(c.s) }

func TestManagementToken(t *testing.T) {
	for _, test := range []struct {
		bearer, token string
		ok            bool
	}{{"x", "x", true}, {"", "", false}, {"x", "", false}, {"", "x", false}, {"xx", "x", false}, {"X", "x", false}} {
		if a, ok := authority.AuthenticateManagement(test.bearer, test.token); ok != test.ok || ok != (a.Means == authority.Management) {
			t.Errorf("bearer %q, token %q: %v", test.bearer, test.token, ok)
		}
	}
	var zero authority.Actor
	if zero.Known() || zero.Person() || zero.Agent() {
		t.Error("the zero actor is somebody")
	}
}

// addByManagement adds a key to an account with the management token.
func addByManagement(s *authoritytest.Server, email string, key authoritytest.Key) (k api.Key) {
	s.T.Helper()
	s.Manager().Post(userPath(email)+"/ssh-keys", map[string]string{"publicKey": key.Line}).Into(&k)
	return k
}

// TestDormantKeys: what management adds to an account that has a key sleeps
// for three days, is announced on the record, and never decides.
func TestDormantKeys(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t, authoritytest.WithBearer(detail.High))
	owner := s.Owner()
	agent := s.Agent(owner, "helper")
	g := agent.Ask("ls")
	key := s.NewKey("foreign")
	added := addByManagement(s, owner.Email, key)
	if want := s.Clock.Now().Add(72 * time.Hour).Unix(); added.DormantUntil != want {
		t.Errorf("the key sleeps until %d, want %d", added.DormantUntil, want)
	}
	if !s.HasRecord("trust", "key.added", owner.Email, "management", "dormant_until") {
		t.Error("the key is not on record")
	}
	intruder := &authoritytest.Principal{Client: authoritytest.Client{S: s}, Email: owner.Email, Key: key}
	signed := owner.Signed(g.ID, grant.Once, 0)
	var err error
	if signed.Signature, err = key.SignDecision(*signed.Digest); err != nil {
		t.Fatal(err)
	}

	s.Clock.Advance(72*time.Hour - time.Millisecond)
	owner.Login()
	agent.Login()
	intruder.TryLogin(key).Problem(401)
	owner.Post(authoritytest.GrantPath(g.ID, "approve"), signed).Problem(410) // the request has ended meanwhile
	g = agent.Ask("ls")
	signed = owner.Signed(g.ID, grant.Once, 0)
	if signed.Signature, err = key.SignDecision(*signed.Digest); err != nil {
		t.Fatal(err)
	}
	owner.Post(authoritytest.GrantPath(g.ID, "approve"), signed).Problem(403)

	// Awake, it logs in, and still decides nothing: not by signature, not as a
	// bearer under the switch, not by a change of trust.
	s.Clock.Advance(time.Millisecond)
	intruder.Login()
	for name, body := range map[string]any{"by signature": signed, "as bearer": nil} {
		if a := intruder.Post(authoritytest.GrantPath(g.ID, "approve"), body); a.Status != 403 {
			t.Errorf("the awake key approves %s: %d %.500s", name, a.Status, a.Body)
		}
	}
	tr, _ := intruder.Prepare(api.TrustAgentAdd, map[string]string{"name": "mine", "public_key": s.NewKey("x").Line})
	intruder.Post(api.PathTrust+"/"+tr.ID+"/confirm", intruder.SignedChange(tr.ID)).Problem(403)
	if a := intruder.Post(api.PathEnroll, api.Enroll{Name: "mine", PublicKey: s.NewKey("x").Line}); a.Status != 403 {
		t.Errorf("the awake key enrols an agent: %d %.500s", a.Status, a.Body)
	}
	if got := owner.Grant(g.ID).Status; got != grant.Pending {
		t.Errorf("the grant is %s", got)
	}
}

// TestManagementNeverDecides tries the detours from the management token to a
// decision over an agent's request.
func TestManagementNeverDecides(t *testing.T) {
	t.Parallel()
	// tryAll logs in as the account with a key that management added, at once
	// and after the dormancy, and tries to answer.
	tryAll := func(t *testing.T, c *cast, email string, key authoritytest.Key, id string, digest statement.Digest) {
		t.Helper()
		sig, err := key.SignDecision(digest)
		if err != nil {
			t.Fatal(err)
		}
		p := &authoritytest.Principal{Client: authoritytest.Client{S: c.s}, Email: email, Key: key}
		for range 2 {
			var login api.Login
			if a := p.TryLogin(key); a.Status == 200 {
				a.Into(&login)
				p.Bearer = login.Token
				a = p.Post(authoritytest.GrantPath(id, "approve"), api.Decide{GrantType: grant.Once, Digest: &digest, Signature: sig})
				if a.Status/100 == 2 {
					t.Errorf("management decided: %s", a.Body)
				}
				a = p.Post(authoritytest.GrantPath(id, "approve"), nil)
				if a.Status/100 == 2 {
					t.Errorf("management decided as bearer: %s", a.Body)
				}
			}
			c.s.Clock.Advance(72 * time.Hour)
		}
	}
	fresh := func(t *testing.T) (*cast, string, statement.Digest) {
		t.Helper()
		c := newCast(t, authoritytest.WithBearer(detail.High), authoritytest.WithConfig(func(cfg *authority.Config) {
			cfg.PendingTTL, cfg.LoginTTL = 1000*time.Hour, 1000*time.Hour
		}))
		c.s.Clock.Advance(time.Hour)
		id := c.requester.Ask("ls").ID
		return c, id, *c.owner.Signed(id, grant.Once, 0).Digest
	}
	t.Run("by deleting the owner's key first", func(t *testing.T) {
		t.Parallel()
		c, id, digest := fresh(t)
		c.s.Manager().Do("DELETE", keyPath(c.owner), nil)
		key := c.s.NewKey("x")
		c.s.Manager().Post(userPath(c.owner.Email)+"/ssh-keys", map[string]string{"publicKey": key.Line})
		tryAll(t, c, c.owner.Email, key, id, digest)
	})
	t.Run("by adding one and deleting the others", func(t *testing.T) {
		t.Parallel()
		c, id, digest := fresh(t)
		key := c.s.NewKey("x")
		addByManagement(c.s, c.owner.Email, key)
		c.s.Manager().Do("DELETE", keyPath(c.owner), nil)
		second := c.s.NewKey("y")
		c.s.Manager().Post(userPath(c.owner.Email)+"/ssh-keys", map[string]string{"publicKey": second.Line})
		tryAll(t, c, c.owner.Email, second, id, digest)
		tryAll(t, c, c.owner.Email, key, id, digest)
	})
	t.Run("by an owner who never logged in", func(t *testing.T) {
		t.Parallel()
		s := authoritytest.Start(t)
		key := s.NewKey("owner")
		if err := s.Authority.CreateOwner(ctx, "quiet@example.com", "", key.Line); err != nil {
			t.Fatal(err)
		}
		s.Manager().Do("DELETE", userPath("quiet@example.com")+"/ssh-keys/"+string(key.Private.Public().ID()), nil).Problem(403)
	})
	for name, who := range map[string]func(*cast) *authoritytest.Principal{
		"by making the owner anew":    func(c *cast) *authoritytest.Principal { return c.owner },
		"by making the approver anew": func(c *cast) *authoritytest.Principal { return c.approver },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, id, digest := fresh(t)
			p := who(c)
			c.s.Clock.Advance(time.Second)
			c.s.Manager().Do("DELETE", userPath(p.Email), nil).Want(200)
			key := c.s.NewKey("x")
			c.s.Manager().Post("/api/admin/users", map[string]string{"email": p.Email, "name": "New"}).Want(200)
			addByManagement(c.s, p.Email, key)
			tryAll(t, c, p.Email, key, id, digest)
			// Nor over what the agent asks from then on, if it still can ask.
			if a := c.requester.TryLogin(c.requester.Key); a.Status == 200 {
				id := c.requester.Login().Ask("later").ID
				impostor := &authoritytest.Principal{Client: authoritytest.Client{S: c.s}, Email: p.Email, Key: key}
				impostor.Login()
				if a := impostor.Get(authoritytest.GrantPath(id, "statement")); a.Status != 404 {
					t.Errorf("the new %s has a part in the agent's requests: %d %.500s", p.Email, a.Status, a.Body)
				}
			}
			// What belonged to the old one is not handed on.
			fresh := &authoritytest.Principal{Client: authoritytest.Client{S: c.s}, Email: p.Email, Key: key}
			fresh.Login()
			var agents []api.Principal
			fresh.Get(api.PathMyAgents).Into(&agents)
			if len(agents) != 0 {
				t.Errorf("the new %s owns %+v", p.Email, agents)
			}
		})
	}
	t.Run("by taking over an agent", func(t *testing.T) {
		t.Parallel()
		c, _, _ := fresh(t)
		always := approved(c.owner, c.requester, grant.Always, "always")
		c.s.Manager().Do("DELETE", keyPath(c.requester), nil).Want(200)
		key := c.s.NewKey("x")
		added := addByManagement(c.s, c.requester.Email, key)
		if added.DormantUntil == 0 {
			t.Error("a key for an agent that had one is awake at once")
		}
		thief := &authoritytest.Principal{Client: authoritytest.Client{S: c.s}, Email: c.requester.Email, Key: key}
		if a := thief.TryLogin(key); a.Status == 200 {
			t.Errorf("management is the agent at once and may use %s", always.ID)
		}
	})
}

// TestManagedPeople: the rules for whom management may create.
func TestManagedPeople(t *testing.T) {
	t.Parallel()
	c := newCast(t)
	agent := authority.AgentEmail("x", c.owner.Email, c.s.URL)
	for name, body := range map[string]map[string]string{
		"no address":                {"email": "", "name": "x"},
		"no plain address":          {"email": `"a b"@example.com`},
		"two at signs":              {"email": "a@b@example.com"},
		"line end":                  {"email": "a@example.com\nx"},
		"control character in name": {"email": "a@example.com", "name": "x\x1b[2J"},
		"agent without owner":       {"email": agent, "type": "agent"},
		"person with owner":         {"email": agent, "type": "human", "owner": c.owner.Email},
		"unknown kind":              {"email": agent, "type": "root"},
		"owner who does not exist":  {"email": agent, "owner": "nobody@example.com"},
		"owner who is an agent":     {"email": agent, "owner": c.sibling.Email},
		"approver who is an agent":  {"email": agent, "owner": c.owner.Email, "approver": c.sibling.Email},
		"key that is none":          {"email": "a@example.com", "publicKey": "ssh-rsa AAAA"},
	} {
		a := c.s.Manager().Post("/api/agent/enroll", body)
		if a.Status != 400 {
			t.Errorf("%s: %d %.500s", name, a.Status, a.Body)
		}
	}
	c.s.Manager().Post("/api/agent/enroll", map[string]string{"email": c.owner.Email}).Problem(409)
	c.s.Manager().Post("/api/agent/enroll", map[string]string{"email": "a@example.com", "publicKey": c.owner.Key.Line}).Problem(409)
	if a := c.s.Manager().Get(userPath("a@example.com") + "/ssh-keys"); a.Status != 404 {
		t.Errorf("a failed enrolment left an account behind: %s", a.Body)
	}
	for _, p := range []*authoritytest.Principal{c.owner, c.requester} {
		p.Post("/api/agent/enroll", map[string]string{"email": "b@example.com"}).Problem(403)
		p.Post("/api/auth/enroll", map[string]string{"email": "b@example.com"}).Problem(403)
	}
}

// TestAgentEmail is the vector of the wire.
func TestAgentEmail(t *testing.T) {
	const want = "bot-b6c873db+patrick+example_com@127.0.0.1:8648"
	if got := authority.AgentEmail("bot", " Patrick@Example.com", "http://127.0.0.1:8648"); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
