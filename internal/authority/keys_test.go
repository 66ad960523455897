package authority_test

import (
	"strings"
	"testing"
	"time"

	"vogt/internal/api"
	"vogt/internal/authority"
	"vogt/internal/authoritytest"
	"vogt/internal/grant"
	"vogt/internal/token"
)

func published(t *testing.T, s *authoritytest.Server) token.Keys {
	t.Helper()
	keys, err := token.ParseJWKS(s.Stranger().Get(api.PathJWKS).Want(200).Body)
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// TestSigningKeyRotation: a new key signs, the old one verifies until the
// longest token that it signed has run out, and not a moment longer.
func TestSigningKeyRotation(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t)
	first := published(t, s)
	if len(first) != 1 {
		t.Fatalf("a fresh authority publishes %d keys", len(first))
	}
	owner := s.Owner()
	agent := s.Agent(owner, "helper")
	g := approved(owner, agent, grant.Once, "ls")
	jwt := agent.Token(g.ID)
	old := owner.Bearer

	if err := s.Authority.RotateKeys(ctx); err != nil {
		t.Fatal(err)
	}
	both := published(t, s)
	if len(both) != 2 {
		t.Fatalf("after a rotation %d keys are published", len(both))
	}
	// Old tokens of both kinds go on; new ones come from the new key.
	owner.Get(api.PathWhoAmI).Want(200)
	if out := consumedError(s.Consume(g.ID, jwt)); out != "" {
		t.Errorf("a grant token of the retired key: %s", out)
	}
	if _, err := first.VerifyLogin(owner.Login().Bearer, s.URL, s.Clock.Now()); err == nil {
		t.Error("the retired key signed a new login")
	}
	if _, err := both.VerifyLogin(owner.Bearer, s.URL, s.Clock.Now()); err != nil {
		t.Errorf("the new login: %v", err)
	}

	// The old login ends by its own time, the key a minute after.
	s.Clock.Advance(8*time.Hour - time.Second)
	if _, err := s.Authority.Authenticate(ctx, old); err != nil {
		t.Errorf("the old login, just before its end: %v", err)
	}
	if err := s.Authority.Tidy(ctx); err != nil {
		t.Fatal(err)
	}
	if n := len(published(t, s)); n != 2 {
		t.Errorf("while its tokens live the retired key is gone: %d keys", n)
	}
	s.Clock.Advance(time.Minute + time.Second)
	if err := s.Authority.Tidy(ctx); err != nil {
		t.Fatal(err)
	}
	last := published(t, s)
	if len(last) != 1 {
		t.Errorf("%d keys are published in the end", len(last))
	}
	for id := range first {
		if last[id] != nil {
			t.Error("the retired key is still published")
		}
	}
	// Even with a clock that went back, what it signed verifies no more.
	s.Clock.Advance(-time.Hour)
	if _, err := last.VerifyLogin(old, s.URL, s.Clock.Now()); err == nil {
		t.Error("a dropped key verifies")
	}
	if got := len(s.Recorded("signing-key")); got != 2 {
		t.Errorf("%d records of signing keys", got)
	}
}

// TestRotationWhenDue: by itself, after the key's life, and it survives a
// restart with the same keys.
func TestRotationWhenDue(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t, authoritytest.WithConfig(func(c *authority.Config) { c.KeyLife = 24 * time.Hour }))
	before := string(s.Authority.JWKS())
	for _, step := range []struct {
		after   time.Duration
		rotates bool
	}{{0, false}, {24*time.Hour - time.Millisecond, false}, {time.Millisecond, true}} {
		s.Clock.Advance(step.after)
		if err := s.Authority.Tidy(ctx); err != nil {
			t.Fatal(err)
		}
		if got := string(s.Authority.JWKS()) != before; got != step.rotates {
			t.Errorf("after another %v it rotated: %v", step.after, got)
		}
	}
	now := published(t, s)
	owner := s.Owner()
	s.Restart()
	again := published(t, s)
	for id := range now {
		if again[id] == nil {
			t.Errorf("key %s is gone after the restart", id)
		}
	}
	owner.Get(api.PathWhoAmI).Want(200)
}

// TestSeedsStayInside: no seed of a key ever appears in an answer or a
// record.
func TestSeedsStayInside(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t)
	owner := s.Owner()
	export := owner.Get(api.PathAudit + "/export").Want(200)
	for _, text := range []string{string(s.Authority.JWKS()), string(export.Body), s.Authority.LogKey()} {
		if strings.Contains(text, `"d"`) || strings.Contains(text, "PRIVATE") {
			t.Errorf("a private key shows: %.200s", text)
		}
	}
}

// TestForeignTokens: tokens of another authority, also of one with the same
// address on other data, are refused; so is each kind in the other's place.
func TestForeignTokens(t *testing.T) {
	t.Parallel()
	s, other := authoritytest.Start(t), authoritytest.Start(t)
	owner := s.Owner()
	agent := s.Agent(owner, "helper")
	foreign := other.Owner()
	g := approved(owner, agent, grant.Always, "ls")
	theirAgent := other.Agent(foreign, "helper")
	theirs := theirAgent.Token(approved(foreign, theirAgent, grant.Always, "ls").ID)
	jwt := agent.Token(g.ID)
	second := approved(owner, agent, grant.Always, "pwd")

	(&authoritytest.Client{S: s, Bearer: foreign.Bearer}).Get(api.PathWhoAmI).Problem(401)
	(&authoritytest.Client{S: s, Bearer: jwt}).Get(api.PathWhoAmI).Problem(401)
	(&authoritytest.Client{S: s, Bearer: jwt}).Post(api.PathGrants, authoritytest.Request("x")).Problem(401)
	for name, a := range map[string]authoritytest.Answer{
		"a login token":        s.Consume(g.ID, agent.Bearer),
		"the owner's login":    s.Consume(g.ID, owner.Bearer),
		"the management token": s.Consume(g.ID, authoritytest.ManagementToken),
		"another authority's":  s.Consume(g.ID, theirs),
		"none at all":          s.Stranger().Post(authoritytest.GrantPath(g.ID, "consume"), nil),
		"an empty one":         s.Stranger().Post(authoritytest.GrantPath(g.ID, "consume"), nil, "Authorization", "Bearer "),
	} {
		if a.Status != 401 {
			t.Errorf("consuming with %s: %d %.300s", name, a.Status, a.Body)
		}
	}
	s.Consume(second.ID, jwt).Problem(400) // a token for another grant
	s.Consume("00000000-0000-4000-8000-000000000000", jwt).Problem(400)
	if got := owner.Grant(g.ID).Uses + owner.Grant(second.ID).Uses; got != 0 {
		t.Errorf("%d uses were counted", got)
	}
}

// TestGrantTokenExpires: five minutes, at equality, and never past the grant.
func TestGrantTokenExpires(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t)
	owner := s.Owner()
	agent := s.Agent(owner, "helper")
	always := approved(owner, agent, grant.Always, "ls")
	jwt := agent.Token(always.ID)
	s.Clock.Advance(5*time.Minute - time.Second)
	if e := consumedError(s.Consume(always.ID, jwt)); e != "" {
		t.Errorf("just before its end: %s", e)
	}
	s.Clock.Advance(time.Second)
	s.Consume(always.ID, jwt).Problem(401)

	g := agent.Ask("pwd")
	end := s.Clock.Now().Add(10 * time.Second)
	owner.Approve(g.ID, grant.Timed, end.Unix())
	claims, err := published(t, s).VerifyGrant(agent.Token(g.ID), s.URL, s.Clock.Now())
	if err != nil || claims.Expires > end.Unix()+1 {
		t.Errorf("the token outlives the permission: %d, %v", claims.Expires-end.Unix(), err)
	}
}

// TestGrantTokenClaims: what unmodified clients check before they run.
func TestGrantTokenClaims(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t)
	owner := s.Owner()
	agent := s.Agent(owner, "helper")
	req := authoritytest.Request("ls", "a b", "<&>")
	req.Context = &grant.Context{Argv: req.Command, ArgvHash: "SHA-256:wrong", AdapterID: "ls", AdapterDig: "synthetic"}
	g := agent.AskFor(req)
	owner.Approve(g.ID, grant.Once, 0)
	claims, err := published(t, s).VerifyGrant(agent.Token(g.ID), s.URL, s.Clock.Now())
	if err != nil {
		t.Fatal(err)
	}
	if claims.Issuer != s.URL || claims.Subject != agent.Email || claims.Audience != "shapes" || claims.Host != "box" || claims.GrantID != g.ID ||
		claims.GrantType != grant.Once || claims.Approval != grant.Once || claims.DecidedBy != owner.Email || claims.Use != token.UseGrant ||
		strings.Join(claims.Command, "|") != "ls|a b|<&>" || claims.CmdHash != g.Request.CmdHash {
		t.Errorf("%+v", claims)
	}
	// The hash is the authority's own, whatever the client sent.
	if c := claims.Context; c == nil || !strings.HasPrefix(c.ArgvHash, "SHA-256:") || c.ArgvHash == "SHA-256:wrong" || c.AdapterDig != "synthetic" || c.Executable != "ls" {
		t.Errorf("context %+v", claims.Context)
	}
	if again, err := published(t, s).VerifyGrant(agent.Token(g.ID), s.URL, s.Clock.Now()); err != nil || again.ID == claims.ID {
		t.Errorf("two tokens share the identifier %s, %v", again.ID, err)
	}
}
