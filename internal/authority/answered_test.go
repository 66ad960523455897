package authority_test

import (
	"testing"

	"vogt/internal/api"
	"vogt/internal/authoritytest"
	"vogt/internal/grant"
)

// TestAskingAgainFindsTheAnswer: a once-answer that has not been used serves
// the same request when it is made again, exactly once.
func TestAskingAgainFindsTheAnswer(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t)
	owner := s.Owner()
	agent := s.Agent(owner, "bot")
	g := agent.Ask("make", "deploy")
	owner.Approve(g.ID, grant.Once, 0)

	var again api.Grant
	agent.Post(api.PathGrants, authoritytest.Request("make", "deploy")).Want(200).Into(&again)
	if again.ID != g.ID || again.Status != grant.Approved || !again.Automatic {
		t.Fatalf("asking again gave %s %s, want the approved %s", again.ID, again.Status, g.ID)
	}
	if other := agent.Ask("make", "deploy", "now"); other.ID == g.ID {
		t.Fatal("another command found the answer")
	}
	s.Consume(g.ID, agent.Token(g.ID)).Want(200)
	if third := agent.Ask("make", "deploy"); third.ID == g.ID || third.Status != grant.Pending {
		t.Fatalf("after its use the answer was found again: %s %s", third.ID, third.Status)
	}
}

// TestStdinIsNotBound: what a caller says of standard input stands in no
// statement, since nothing holds it when the command starts.
func TestStdinIsNotBound(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t)
	owner := s.Owner()
	agent := s.Agent(owner, "bot")
	req := authoritytest.Request("sh")
	null := "null"
	req.Context = &grant.Context{Argv: req.Command, Stdin: &null}
	g := agent.AskFor(req)
	var offer api.Offer
	owner.Get(authoritytest.GrantPath(g.ID, "statement")).Want(200).Into(&offer)
	if offer.Statement.Stdin != nil {
		t.Fatalf("the statement claims that standard input is %q", *offer.Statement.Stdin)
	}
}

// TestResumeActivates: an agent that its owner switched off comes back by a
// change of trust, with none of its old logins.
func TestResumeActivates(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t)
	owner := s.Owner()
	agent := s.Agent(owner, "bot")
	path := api.PathMyAgents + "/" + agent.Email
	owner.Do("PATCH", path, map[string]bool{"isActive": false}).Want(200)
	agent.Get(api.PathWhoAmI).Problem(401)
	owner.Do("PATCH", path, map[string]bool{"isActive": true}).Problem(403)
	s.Stranger().Do("PATCH", path, map[string]bool{"isActive": true}).Problem(401)
	owner.Change(api.TrustAgentResume, map[string]string{"email": agent.Email})
	agent.Get(api.PathWhoAmI).Problem(401)
	agent.Login().Get(api.PathWhoAmI).Want(200)
}

// TestManagementActivates: whom management switched off it switches on again,
// and the old logins stay revoked.
func TestManagementActivates(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t)
	s.Owner()
	person := s.Person("second@example.com")
	path := api.PathMyAgents + "/" + person.Email
	s.Manager().Do("PATCH", path, map[string]bool{"isActive": false}).Want(200)
	person.Get(api.PathWhoAmI).Problem(401)
	s.Manager().Do("PATCH", path, map[string]bool{"isActive": true}).Want(200)
	person.Get(api.PathWhoAmI).Problem(401)
	person.Login().Get(api.PathWhoAmI).Want(200)
}
