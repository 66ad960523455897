package authority_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"vogt/internal/api"
	"vogt/internal/authority"
	"vogt/internal/authoritytest"
	"vogt/internal/statement"
	"vogt/internal/store"
)

func trustPath(id string, verb ...string) string {
	return strings.Join(append([]string{api.PathTrust, id}, verb...), "/")
}

// asSecret reads a change as its asker does.
func asSecret(s *authoritytest.Server, id, secret string) authoritytest.Answer {
	return s.Stranger().Do("GET", trustPath(id), nil, api.TrustSecretHeader, secret)
}

// TestTrustOperations makes each change once, prepared by nobody in
// particular and confirmed by the owner's signature.
func TestTrustOperations(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t)
	owner := s.Owner()
	agent := s.Agent(owner, "helper")
	newKey, agentKey := s.NewKey("new"), s.NewKey("agent")
	change := func(operation string, params map[string]string) api.Trust {
		t.Helper()
		tr, secret := s.Stranger().Prepare(operation, params)
		if tr.Status != "pending" || tr.Statement != nil || tr.ConfirmURL != s.Pages+"/trust/"+tr.ID || tr.ExpiresAt != s.Clock.Now().Add(10*time.Minute).Unix() {
			t.Errorf("%s was prepared as %+v", operation, tr)
		}
		owner.Post(trustPath(tr.ID, "confirm"), owner.SignedChange(tr.ID)).Want(200)
		if !s.HasRecord("trust", operation, owner.Email, "independent", "sshsig") {
			t.Errorf("%s is not on record: %q", operation, s.Recorded("trust"))
		}
		var out api.Trust
		asSecret(s, tr.ID, secret).Into(&out)
		if out.Status != "confirmed" {
			t.Errorf("%s is %s", operation, out.Status)
		}
		return out
	}

	added := change(api.TrustAgentAdd, map[string]string{"name": "second", "public_key": agentKey.Line})
	if e := added.Enrolled; e == nil || e.Owner != owner.Email || e.Approver != owner.Email || e.Name != "second" || e.Status != "active" {
		t.Errorf("enrolled %+v", added.Enrolled)
	}
	second := &authoritytest.Principal{Client: authoritytest.Client{S: s}, Email: added.Enrolled.Email, Key: agentKey}
	second.Login()

	change(api.TrustAgentRotate, map[string]string{"email": agent.Email, "public_key": newKey.Line})
	agent.Get(api.PathWhoAmI).Problem(401)
	agent.TryLogin(agent.Key).Problem(401)
	agent.Key = newKey
	agent.Login()

	owner.Do("PATCH", agentPath(agent), map[string]bool{"paused": true}).Want(200)
	agent.Post(api.PathGrants, authoritytest.Request("x")).Problem(403)
	change(api.TrustAgentResume, map[string]string{"email": agent.Email})
	agent.Ask("x")

	another := s.NewKey("another")
	change(api.TrustKeyAdd, map[string]string{"public_key": another.Line})
	first := owner.Key
	owner.Key = another // which counts at once, and fully
	change(api.TrustKeyAdd, map[string]string{"public_key": s.NewKey("third").Line})
	owner.Key = first

	// A link into the account is for whoever confirmed, and not for the asker.
	if link := change(api.TrustPasskeyAdd, nil).Link; link != "" {
		t.Errorf("the asker gets the link %q", link)
	}
	tr, secret := owner.Prepare(api.TrustPasskeyAdd, nil)
	var confirmed api.Trust
	owner.Post(trustPath(tr.ID, "confirm"), owner.SignedChange(tr.ID), api.TrustSecretHeader, secret).Into(&confirmed)
	if !strings.HasPrefix(confirmed.Link, s.Pages+"/register?token=") {
		t.Errorf("the link is %q", confirmed.Link)
	}
	owner.Get(trustPath(tr.ID)).Into(&confirmed)
	if again := asSecret(s, tr.ID, secret); strings.Contains(string(again.Body), "register?token=") {
		t.Errorf("the link shows twice: %s", again.Body)
	}
	login := change(api.TrustDevice, map[string]string{"name": "laptop"}).Login
	if login == nil || login.Email != owner.Email {
		t.Fatalf("the login is %+v", login)
	}
	(&authoritytest.Client{S: s, Bearer: login.Token}).Get(api.PathWhoAmI).Want(200)
}

// TestTrustResult: only the asker gets it, and a token only once.
func TestTrustResult(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t)
	owner := s.Owner()
	agent := s.Agent(owner, "helper")
	tr, secret := s.Stranger().Prepare(api.TrustDevice, map[string]string{"name": "laptop"})
	asSecret(s, tr.ID, secret).Want(200)
	owner.Post(trustPath(tr.ID, "confirm"), owner.SignedChange(tr.ID)).Want(200)

	has := func(a authoritytest.Answer) bool { return strings.Contains(string(a.Body), `"token"`) }
	for name, a := range map[string]authoritytest.Answer{
		"the person who confirmed": owner.Get(trustPath(tr.ID)),
		"the person, wrong secret": owner.Do("GET", trustPath(tr.ID), nil, api.TrustSecretHeader, s.Secret()),
	} {
		if a.Want(200); has(a) {
			t.Errorf("%s gets the token", name)
		}
	}
	for name, a := range map[string]authoritytest.Answer{
		"a stranger":         s.Stranger().Get(trustPath(tr.ID)),
		"another secret":     asSecret(s, tr.ID, s.Secret()),
		"an empty secret":    asSecret(s, tr.ID, ""),
		"the secret's start": asSecret(s, tr.ID, secret[:63]),
		"an agent":           agent.Get(trustPath(tr.ID)),
		"management":         s.Manager().Get(trustPath(tr.ID)),
	} {
		if a.Problem(404); has(a) {
			t.Errorf("%s gets the token", name)
		}
	}
	if a := asSecret(s, tr.ID, secret).Want(200); !has(a) {
		t.Errorf("the asker gets %.300s", a.Body)
	}
	if a := asSecret(s, tr.ID, secret).Want(200); has(a) {
		t.Error("the asker gets the token twice")
	}

	// What is no secret may be read again.
	tr, secret = s.Stranger().Prepare(api.TrustAgentAdd, map[string]string{"name": "second", "public_key": s.NewKey("k").Line})
	owner.Post(trustPath(tr.ID, "confirm"), owner.SignedChange(tr.ID)).Want(200)
	for range 2 {
		if a := asSecret(s, tr.ID, secret).Want(200); !strings.Contains(string(a.Body), "enrolled") {
			t.Errorf("the asker gets %.300s", a.Body)
		}
	}
	// The log holds neither secrets nor tokens.
	for _, r := range s.Records() {
		if strings.Contains(string(r.Body), secret) || strings.Contains(string(r.Body), "eyJ") {
			t.Errorf("a record holds a secret: %s", r.Body)
		}
	}
}

// TestTrustNeedsProof: everything short of the person's proof over exactly
// this change is refused.
func TestTrustNeedsProof(t *testing.T) {
	t.Parallel()
	c := newCast(t)
	tr, secret := c.s.Stranger().Prepare(api.TrustAgentAdd, map[string]string{"name": "x", "public_key": c.s.NewKey("k").Line})
	other, _ := c.s.Stranger().Prepare(api.TrustAgentAdd, map[string]string{"name": "y", "public_key": c.s.NewKey("k").Line})
	good := c.owner.SignedChange(tr.ID)
	confirm := trustPath(tr.ID, "confirm")

	c.owner.Post(confirm, api.ConfirmTrust{Digest: good.Digest}).Problem(403)
	c.owner.Post(confirm, api.ConfirmTrust{Digest: good.Digest, Signature: "x"}).Problem(403)
	c.owner.Post(confirm, nil).Problem(409) // no digest at all is another digest
	c.owner.Post(confirm, c.owner.SignedChange(other.ID)).Problem(409)
	c.owner.Post(confirm, api.ConfirmTrust{Digest: statement.Digest{1}, Signature: good.Signature}).Problem(409)
	c.stranger.Post(confirm, good).Problem(409) // the owner's signature for another person
	stolen := c.stranger.SignedChange(tr.ID)
	stolen.Signature = good.Signature
	c.stranger.Post(confirm, stolen).Problem(403)
	for _, who := range []string{"requester", "sibling", "management", "anonymous"} {
		if a := c.clients[who].Post(confirm, good, api.TrustSecretHeader, secret); a.Status != 403 {
			t.Errorf("%s confirms: %d %.300s", who, a.Status, a.Body)
		}
	}
	// A decision over a grant is no change of trust, and the reverse.
	g := c.requester.Ask("ls")
	decision := c.owner.Signed(g.ID, "once", 0)
	c.owner.Post(confirm, api.ConfirmTrust{Digest: *decision.Digest, Signature: decision.Signature}).Problem(409)
	c.owner.Post(authoritytest.GrantPath(g.ID, "approve"), api.Decide{GrantType: "once", Digest: &good.Digest, Signature: good.Signature}).Problem(409)
	if !c.s.HasRecord("refusal", "trust agent.add", c.owner.Email) {
		t.Error("the refused tries are not on record")
	}
	var view api.Trust
	c.owner.Get(trustPath(tr.ID)).Into(&view)
	if view.Status != "pending" {
		t.Errorf("the change is %s", view.Status)
	}
	c.owner.Post(confirm, good).Want(200)
}

// TestTrustIsSettledOnce: confirmed twice, declined, or over.
func TestTrustIsSettledOnce(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t)
	owner := s.Owner()
	prepare := func() (string, string, api.ConfirmTrust) {
		tr, secret := s.Stranger().Prepare(api.TrustKeyAdd, map[string]string{"public_key": s.NewKey("k").Line})
		return tr.ID, secret, owner.SignedChange(tr.ID)
	}
	t.Run("confirmed twice", func(t *testing.T) {
		id, _, body := prepare()
		owner.Post(trustPath(id, "confirm"), body).Want(200)
		owner.Post(trustPath(id, "confirm"), body).Problem(409)
		owner.Post(trustPath(id, "decline"), nil).Problem(409)
	})
	t.Run("declined by the person", func(t *testing.T) {
		id, secret, body := prepare()
		owner.Post(trustPath(id, "decline"), nil).Want(200)
		owner.Post(trustPath(id, "confirm"), body).Problem(409)
		var out api.Trust
		if asSecret(s, id, secret).Into(&out); out.Status != "declined" {
			t.Errorf("the asker is told %s", out.Status)
		}
		if !s.HasRecord("refusal", "declined", owner.Email) {
			t.Error("the no is not on record")
		}
	})
	t.Run("withdrawn by the asker", func(t *testing.T) {
		id, secret, body := prepare()
		s.Stranger().Post(trustPath(id, "decline"), nil).Problem(404)
		s.Stranger().Post(trustPath(id, "decline"), nil, api.TrustSecretHeader, s.Secret()).Problem(404)
		s.Stranger().Post(trustPath(id, "decline"), nil, api.TrustSecretHeader, secret).Want(200)
		owner.Post(trustPath(id, "confirm"), body).Problem(409)
	})
	t.Run("over", func(t *testing.T) {
		id, secret, body := prepare()
		early, _, inTime := prepare()
		s.Clock.Advance(10*time.Minute - time.Millisecond)
		owner.Post(trustPath(early, "confirm"), inTime).Want(200)
		s.Clock.Advance(time.Millisecond)
		owner.Post(trustPath(id, "confirm"), body).Problem(410)
		owner.Post(trustPath(id, "decline"), nil).Problem(409)
		var out api.Trust
		if asSecret(s, id, secret).Into(&out); out.Status != "expired" {
			t.Errorf("the asker is told %s", out.Status)
		}
	})
	t.Run("unknown", func(t *testing.T) {
		owner.Get(trustPath("00000000-0000-4000-8000-000000000000")).Problem(404)
		owner.Post(trustPath("x", "confirm"), nil).Problem(404)
	})
}

// TestTrustForStrangers: a change concerns what belongs to whoever confirms
// it, and nothing else.
func TestTrustForStrangers(t *testing.T) {
	t.Parallel()
	c := newCast(t)
	for operation, params := range map[string]map[string]string{
		api.TrustAgentRotate: {"email": c.requester.Email, "public_key": c.s.NewKey("k").Line},
		api.TrustAgentResume: {"email": c.requester.Email},
	} {
		tr, _ := c.stranger.Prepare(operation, params)
		c.stranger.Post(trustPath(tr.ID, "confirm"), c.stranger.SignedChange(tr.ID)).Problem(404)
		// The approver answers for requests, not for the agent itself.
		tr, _ = c.approver.Prepare(operation, params)
		c.approver.Post(trustPath(tr.ID, "confirm"), c.approver.SignedChange(tr.ID)).Problem(404)
	}
	c.requester.Get(api.PathWhoAmI).Want(200)
	// A login that the stranger confirms is the stranger's.
	tr, secret := c.requester.Prepare(api.TrustDevice, map[string]string{"name": "x"})
	c.stranger.Post(trustPath(tr.ID, "confirm"), c.stranger.SignedChange(tr.ID)).Want(200)
	var out api.Trust
	asSecret(c.s, tr.ID, secret).Into(&out)
	if out.Login == nil || out.Login.Email != c.stranger.Email {
		t.Errorf("%+v", out.Login)
	}
}

// TestTrustRequestsThatMakeNoSense never wait for anybody.
func TestTrustRequestsThatMakeNoSense(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t)
	key := s.NewKey("k").Line
	good := func() api.TrustRequest {
		return api.TrustRequest{Operation: api.TrustAgentAdd, Params: map[string]string{"name": "x", "public_key": key}, Secret: s.Secret()}
	}
	for name, change := range map[string]func(*api.TrustRequest){
		"unknown operation": func(r *api.TrustRequest) { r.Operation = "owner.add" },
		"no operation":      func(r *api.TrustRequest) { r.Operation = "" },
		"missing parameter": func(r *api.TrustRequest) { delete(r.Params, "name") },
		"unknown parameter": func(r *api.TrustRequest) { r.Params["owner"] = "me@example.com" },
		"bad name":          func(r *api.TrustRequest) { r.Params["name"] = "X y" },
		"name with an escape": func(r *api.TrustRequest) {
			r.Operation, r.Params = api.TrustDevice, map[string]string{"name": "a\x1b[2J"}
		},
		"bad key": func(r *api.TrustRequest) { r.Params["public_key"] = "ssh-ed25519 AAAA" },
		"RSA key": func(r *api.TrustRequest) { r.Params["public_key"] = "ssh-rsa AAAA" },
		"long value": func(r *api.TrustRequest) {
			r.Operation, r.Params = api.TrustDevice, map[string]string{"name": strings.Repeat("x", 2000)}
		},
		"no secret":             func(r *api.TrustRequest) { r.Secret = "" },
		"short secret":          func(r *api.TrustRequest) { r.Secret = "1234" },
		"secret that is no hex": func(r *api.TrustRequest) { r.Secret = strings.Repeat("z", 64) },
	} {
		r := good()
		change(&r)
		if a := s.Stranger().Post(api.PathTrust, r); a.Status != 400 {
			t.Errorf("%s: %d %.300s", name, a.Status, a.Body)
		}
	}
	s.Stranger().Post(api.PathTrust, good()).Want(201)
}

// TestTrustQuota: twenty prepared changes of one principal wait; another is not
// touched, and they make room when they end.
func TestTrustQuota(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t)
	owner := s.Owner()
	agent := s.Agent(owner, "helper")
	ask := func(c *authoritytest.Client) authoritytest.Answer {
		return c.Post(api.PathTrust, api.TrustRequest{Operation: api.TrustDevice, Params: map[string]string{"name": "x"}, Secret: s.Secret()})
	}
	for range 20 {
		ask(&agent.Client).Want(201)
	}
	tooMany(t, "the 21st", ask(&agent.Client))
	ask(&owner.Client).Want(201)
	ask(s.Stranger()).Want(201)
	s.Clock.Advance(10 * time.Minute)
	ask(&agent.Client).Want(201)
}

// TestStrangersMakeRoom: whoever prepares changes without a login keeps nobody
// else from it: the oldest make room, and what is newer than a flood's reach
// stays.
func TestStrangersMakeRoom(t *testing.T) {
	t.Parallel()
	const room = 4096
	s := authoritytest.Start(t)
	owner := s.Owner()
	agent := s.Agent(owner, "helper")
	first, firstSecret := s.Stranger().Prepare(api.TrustDevice, map[string]string{"name": "first"})
	agents, _ := agent.Prepare(api.TrustDevice, map[string]string{"name": "agent's"})
	s.Clock.Advance(time.Millisecond)
	flood := func(n int) {
		t.Helper()
		err := s.DB.Update(ctx, func(tx store.Tx) error {
			now := s.Clock.Now().UnixMilli()
			for i := range n {
				err := store.InsertTrust(tx, store.TrustRequest{
					ID: fmt.Sprint("flood-", now, "-", i), Operation: api.TrustDevice, Params: "{}", Asker: authority.AnonymousName,
					Secret: []byte{1}, Nonce: "00", Status: "pending", Created: now, Expires: now + 600_000,
				})
				if err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		s.Clock.Advance(time.Millisecond)
	}
	flood(room - 2)
	mine, secret := s.Stranger().Prepare(api.TrustDevice, map[string]string{"name": "laptop"})
	asSecret(s, first.ID, firstSecret).Want(200) // there was room for all
	flood(0)
	next, nextSecret := s.Stranger().Prepare(api.TrustDevice, map[string]string{"name": "later"})
	asSecret(s, first.ID, firstSecret).Problem(404) // the oldest has made room
	flood(room - 2)
	last, lastSecret := s.Stranger().Prepare(api.TrustDevice, map[string]string{"name": "last"})
	asSecret(s, mine.ID, secret).Problem(404)
	for id, secret := range map[string]string{next.ID: nextSecret, last.ID: lastSecret} {
		asSecret(s, id, secret).Want(200)
	}
	owner.Get(trustPath(agents.ID)).Want(200)
	// The page can still log in with what was prepared last.
	owner.Post(trustPath(last.ID, "confirm"), owner.SignedChange(last.ID)).Want(200)
	// What is settled is not forgotten for what others prepare.
	flood(room)
	s.Stranger().Prepare(api.TrustDevice, map[string]string{"name": "x"})
	asSecret(s, last.ID, lastSecret).Want(200)
}

// TestTooManyChanges names whom it refuses.
func TestTooManyChanges(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t, authoritytest.WithConfig(func(c *authority.Config) { c.Limits.Creations = 5 }))
	owner := s.Owner()
	prepare := func(c *authoritytest.Client) authoritytest.Answer {
		return c.Post(api.PathTrust, api.TrustRequest{Operation: api.TrustDevice, Params: map[string]string{"name": "x"}, Secret: s.Secret()})
	}
	for who, c := range map[string]*authoritytest.Client{"the owner": &owner.Client, "a stranger": s.Stranger()} {
		var a authoritytest.Answer
		for range 200 {
			if a = prepare(c); a.Status != 201 {
				break
			}
		}
		if p := a.Problem(429); strings.Contains(p.Detail, "agent") || a.Header.Get("Retry-After") == "" {
			t.Errorf("%s is told %q", who, p.Detail)
		}
	}
	for range 4 {
		s.Clock.Advance(time.Second)
		for range 5 {
			prepare(&owner.Client)
		}
	}
	s.Clock.Advance(time.Second)
	if p := prepare(&owner.Client).Problem(429); !strings.Contains(p.Detail, owner.Email) {
		t.Errorf("the owner is told %q", p.Detail)
	}
}

// TestTrustParametersAreText: what a person signs can be read as it is.
func TestTrustParametersAreText(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t)
	key := s.NewKey("k").Line
	good := map[string]map[string]string{
		api.TrustAgentAdd:    {"name": "helper", "public_key": key},
		api.TrustAgentRotate: {"email": "a@example.com", "public_key": key},
		api.TrustAgentResume: {"email": "a@example.com"},
		api.TrustKeyAdd:      {"public_key": key},
		api.TrustDevice:      {"name": "laptop"},
	}
	for operation, params := range good {
		s.Stranger().Prepare(operation, params)
		for name := range params {
			for what, bad := range map[string]string{
				"line end": "\n", "escape": "\x1b[2J", "delete": "\x7f", "C1 control": "\u009b", "right-to-left override": "\u202e",
				"isolate": "\u2066", "zero width": "\u200b", "line separator": "\u2028", "tag": "\U000e0041",
			} {
				for _, value := range []string{params[name] + bad, bad + params[name], params[name] + bad + "x"} {
					changed := maps.Clone(params)
					changed[name] = value
					a := s.Stranger().Post(api.PathTrust, api.TrustRequest{Operation: operation, Params: changed, Secret: s.Secret()})
					if a.Status != 400 {
						t.Errorf("%s with a %s in %s: %d %.300s", operation, what, name, a.Status, a.Body)
					}
				}
			}
		}
	}
	for _, email := range []string{"x", "a b@example.com", "a@b@c", "a@example.com, b@example.com", "@", strings.Repeat("a", 400) + "@example.com"} {
		for _, operation := range []string{api.TrustAgentRotate, api.TrustAgentResume} {
			changed := maps.Clone(good[operation])
			changed["email"] = email
			a := s.Stranger().Post(api.PathTrust, api.TrustRequest{Operation: operation, Params: changed, Secret: s.Secret()})
			if a.Status != 400 {
				t.Errorf("%s for %q: %d %.300s", operation, email, a.Status, a.Body)
			}
		}
	}
	// The same holds for names that management gives.
	for _, name := range []string{"x\u202ey", "x\u009by", "x\u200by"} {
		s.Manager().Post("/api/admin/users", map[string]string{"email": "b@example.com", "name": name}).Problem(400)
	}
}

// TestWaitTrust: whoever waits is told at once.
func TestWaitTrust(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t)
	owner := s.Owner()
	for _, verb := range []string{"confirm", "decline"} {
		tr, secret := s.Stranger().Prepare(api.TrustKeyAdd, map[string]string{"public_key": s.NewKey("k").Line})
		got := make(chan api.Trust)
		go func() {
			out, err := s.Authority.WaitTrust(ctx, authority.Actor{}, tr.ID, secret, time.Hour)
			if err != nil {
				t.Error(err)
			}
			got <- out
		}()
		var body any
		if verb == "confirm" {
			body = owner.SignedChange(tr.ID)
		}
		owner.Post(trustPath(tr.ID, verb), body).Want(200)
		if out := <-got; out.Status == "pending" {
			t.Errorf("%s: the wait ended with %s", verb, out.Status)
		}
	}
}
