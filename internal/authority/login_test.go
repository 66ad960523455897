package authority_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"vogt/internal/api"
	"vogt/internal/authoritytest"
	"vogt/internal/sshkey"
)

func challenge(t *testing.T, s *authoritytest.Server, id string) string {
	t.Helper()
	var c api.Challenge
	s.Stranger().Post(api.PathChallenge, api.ChallengeRequest{ID: id}).Into(&c)
	return c.Challenge
}

func answer(t *testing.T, s *authoritytest.Server, id, challenge string, key authoritytest.Key) authoritytest.Answer {
	t.Helper()
	sig, err := sshkey.SignLogin(key.Private, challenge)
	if err != nil {
		t.Fatal(err)
	}
	return s.Stranger().Post(api.PathAuthenticate, api.Authenticate{ID: id, Challenge: challenge, Signature: sig})
}

// TestChallengeServesOnce: also when the answer was wrong.
func TestChallengeServesOnce(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t)
	owner := s.Owner()
	c := challenge(t, s, owner.Email)
	answer(t, s, owner.Email, c, owner.Key).Want(200)
	answer(t, s, owner.Email, c, owner.Key).Problem(401)

	for name, spoil := range map[string]func(c string){
		"a wrong key":      func(c string) { answer(t, s, owner.Email, c, s.NewKey("x")).Problem(401) },
		"another identity": func(c string) { answer(t, s, "other@example.com", c, owner.Key).Problem(401) },
		"no identity":      func(c string) { answer(t, s, "", c, owner.Key).Problem(401) },
		"a broken signture": func(c string) {
			s.Stranger().Post(api.PathAuthenticate, api.Authenticate{ID: owner.Email, Challenge: c, Signature: "x"}).Problem(401)
		},
	} {
		c := challenge(t, s, owner.Email)
		spoil(c)
		if a := answer(t, s, owner.Email, c, owner.Key); a.Status != 401 {
			t.Errorf("after %s the challenge still serves: %d", name, a.Status)
		}
	}
	// Anybody's own invention, and one that has run out.
	answer(t, s, owner.Email, strings.Repeat("ab", 32), owner.Key).Problem(401)
	c = challenge(t, s, owner.Email)
	s.Clock.Advance(time.Minute - time.Nanosecond)
	answer(t, s, owner.Email, c, owner.Key).Want(200)
	c = challenge(t, s, owner.Email)
	s.Clock.Advance(time.Minute)
	answer(t, s, owner.Email, c, owner.Key).Problem(401)
}

// TestChallengesAreBound: one that was made for one principal logs in no
// other, even with that other's own key.
func TestChallengesAreBound(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t)
	owner := s.Owner()
	agent := s.Agent(owner, "helper")
	c := challenge(t, s, agent.Email)
	answer(t, s, owner.Email, c, owner.Key).Problem(401)
	// A key logs in whom it belongs to, and nobody else.
	answer(t, s, owner.Email, challenge(t, s, owner.Email), agent.Key).Problem(401)
	answer(t, s, agent.Email, challenge(t, s, agent.Email), owner.Key).Problem(401)
}

// TestIdentitiesStayUnknown: neither step tells whether somebody exists, or is
// switched off, to whoever does not hold the key.
func TestIdentitiesStayUnknown(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t)
	owner := s.Owner()
	agent := s.Agent(owner, "helper")
	off := s.Agent(owner, "off")
	owner.Do("PATCH", agentPath(off), map[string]bool{"isActive": false}).Want(200)
	stranger := s.NewKey("stranger")
	shape := func(a authoritytest.Answer) string {
		var fields map[string]any
		if err := json.Unmarshal(a.Body, &fields); err != nil {
			t.Fatal(err)
		}
		if c, ok := fields["challenge"].(string); ok {
			fields["challenge"] = fmt.Sprintf("%d characters of hex: %v", len(c), strings.Trim(c, "0123456789abcdef") == "")
		}
		b, err := json.Marshal(fields)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(a.Status, " ", string(b))
	}
	first, second := map[string]string{}, map[string]string{}
	for _, id := range []string{owner.Email, agent.Email, off.Email, "nobody@example.com", "not an address", strings.Repeat("x", 320)} {
		first[shape(s.Stranger().Post(api.PathChallenge, api.ChallengeRequest{ID: id}))] = id
		second[shape(answer(t, s, id, challenge(t, s, id), stranger))] = id
	}
	if len(first) != 1 || len(second) != 1 {
		t.Errorf("the answers differ:\n%v\n%v", first, second)
	}
	// With the right key it is told.
	answer(t, s, off.Email, challenge(t, s, off.Email), off.Key).Problem(403)

	s.Stranger().Post(api.PathChallenge, api.ChallengeRequest{}).Problem(400)
	s.Stranger().Post(api.PathChallenge, api.ChallengeRequest{ID: strings.Repeat("x", 321)}).Problem(400)
}

// TestChallengeFlood: strangers can start as many logins as they like; what
// they occupy is bounded, and people still get in.
func TestChallengeFlood(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t)
	owner := s.Owner()
	for range 4200 {
		if _, err := s.Authority.Challenge(ctx, "nobody@example.com"); err != nil {
			t.Fatal(err)
		}
	}
	if n := s.Authority.Ceremonies(); n > 4096 {
		t.Errorf("%d ceremonies are kept", n)
	}
	owner.Login()
	s.Clock.Advance(time.Hour)
	if err := s.Authority.Tidy(ctx); err != nil {
		t.Fatal(err)
	}
	if n := s.Authority.Ceremonies(); n != 0 {
		t.Errorf("%d ceremonies outlive their time", n)
	}
}

// TestLoginBySSHSIG: an armoured signature in the login namespace is a login,
// one in the decisions' namespace is not.
func TestLoginBySSHSIG(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t)
	owner := s.Owner()
	for ns, want := range map[sshkey.Namespace]int{sshkey.NamespaceLogin: 200, sshkey.NamespaceDecision: 401} {
		c := challenge(t, s, owner.Email)
		sig, err := sshkey.Sign(owner.Key.Private, ns, []byte(c))
		if err != nil {
			t.Fatal(err)
		}
		s.Stranger().Post(api.PathAuthenticate, api.Authenticate{ID: owner.Email, Challenge: c, Signature: sig}).Want(want)
	}
}

// TestEveryKeyLogsIn: a principal may have several.
func TestEveryKeyLogsIn(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t)
	owner := s.Owner()
	second := s.NewKey("second")
	owner.Change(api.TrustKeyAdd, map[string]string{"public_key": second.Line})
	for _, key := range []authoritytest.Key{owner.Key, second} {
		owner.TryLogin(key).Want(200)
	}
	if !s.HasRecord("login", owner.Email, string(second.Private.Public().ID())) {
		t.Error("which key logged in is not on record")
	}
	// A key belongs to one principal only.
	tr, _ := owner.Prepare(api.TrustAgentAdd, map[string]string{"name": "thief", "public_key": second.Line})
	owner.Post(api.PathTrust+"/"+tr.ID+"/confirm", owner.SignedChange(tr.ID)).Problem(409)
}
