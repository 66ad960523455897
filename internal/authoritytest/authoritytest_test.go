package authoritytest_test

import (
	"testing"

	"vogt/internal/authoritytest"
	"vogt/internal/grant"
)

// TestWholeLife runs one command through everything that exists: asked,
// approved by signature, used once, refused the second time.
func TestWholeLife(t *testing.T) {
	s := authoritytest.Start(t)
	owner := s.Owner()
	agent := s.Agent(owner, "helper")
	g := agent.Ask("uptime", "-p")
	owner.Approve(g.ID, grant.Once, 0)
	jwt := agent.Token(g.ID)
	s.Consume(g.ID, jwt).Want(200)
	if got := agent.Grant(g.ID).Status; got != grant.Used {
		t.Errorf("after its use the grant is %s", got)
	}
}
