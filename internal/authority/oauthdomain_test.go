package authority_test

import (
	"testing"

	"vogt/internal/authority"
)

// TestDomainBindsDelegates: what a domain forbids its people, nobody does in their
// place, and what was refused has spent nothing.
func TestDomainBindsDelegates(t *testing.T) {
	t.Parallel()
	o := newOAuth(t)
	id := delegate(t, o.owner, toPlans(o.agent)).ID
	for _, mode := range []authority.Mode{authority.ModeDeny, authority.ModeAdmin} {
		o.sources.set("example.com", mode)
		oauthError(t, o.credentials(o.assertion(o.agent, nil), "delegation_grant", id, "audience", plans), 400, "invalid_grant")
	}
	o.sources.set("example.com", authority.ModePerson)
	o.credentials(o.assertion(o.agent, nil), "delegation_grant", id, "audience", plans).Want(200)
}
