package coverage

import (
	"testing"

	"vogt/internal/detail"
	"vogt/internal/grant"
	"vogt/internal/statement"
)

func identity(b byte) statement.Digest { return statement.Digest{b} }

func TestCheck(t *testing.T) {
	const now = 1000
	high := []detail.Detail{detail.Command{Program: "x", Risk: detail.High}}
	allowed := grant.Grant{ID: "g", Status: grant.Approved, Type: grant.Always, Identity: identity(1), Decision: &grant.Decision{}}
	with := func(change func(*grant.Grant)) grant.Grant {
		g := allowed
		change(&g)
		return g
	}
	tests := []struct {
		name    string
		details []detail.Detail
		grants  []grant.Grant
		covered bool
	}{
		{"always", high, []grant.Grant{allowed}, true},
		{"timed that lasts", high, []grant.Grant{with(func(g *grant.Grant) { g.Type, g.ValidUntil = grant.Timed, now+1 })}, true},
		{"timed at its end", high, []grant.Grant{with(func(g *grant.Grant) { g.Type, g.ValidUntil = grant.Timed, now })}, false},
		{"once", high, []grant.Grant{with(func(g *grant.Grant) { g.Type, g.ValidUntil = grant.Once, now+1 })}, false},
		{"no type", high, []grant.Grant{with(func(g *grant.Grant) { g.Type = "" })}, false},
		{"pending", high, []grant.Grant{with(func(g *grant.Grant) { g.Status = grant.Pending })}, false},
		{"revoked", high, []grant.Grant{with(func(g *grant.Grant) { g.Status = grant.Revoked })}, false},
		{"no decision", high, []grant.Grant{with(func(g *grant.Grant) { g.Decision = nil })}, false},
		{"other identity", high, []grant.Grant{with(func(g *grant.Grant) { g.Identity = identity(2) })}, false},
		{"no identity", high, []grant.Grant{with(func(g *grant.Grant) { g.Identity = statement.Digest{} })}, false},
		{"the second fits", high, []grant.Grant{with(func(g *grant.Grant) { g.Identity = identity(2) }), allowed}, true},
		{"none", high, nil, false},
		{"critical", []detail.Detail{detail.Command{Risk: detail.Critical}}, []grant.Grant{allowed}, false},
		{"a critical one among others", []detail.Detail{detail.Command{Risk: detail.Low}, detail.Crossing{}}, []grant.Grant{allowed}, false},
		{"an unrated one", []detail.Detail{detail.Command{}}, []grant.Grant{allowed}, false},
		{"no details", nil, []grant.Grant{allowed}, false},
	}
	for _, test := range tests {
		r := Check(identity(1), test.details, test.grants, now)
		if (r.Grant != nil) != test.covered || r.Reason == "" {
			t.Errorf("%s: %+v", test.name, r)
		}
		if r.Grant == nil && len(r.Missing) != len(test.details) {
			t.Errorf("%s: not covered, yet %d of %d details are missing", test.name, len(r.Missing), len(test.details))
		}
		if r.Grant != nil && (r.Grant.Identity != identity(1) || len(r.Missing) != 0) {
			t.Errorf("%s: covered by %+v, missing %v", test.name, r.Grant, r.Missing)
		}
	}
	if (Result{}).Grant != nil {
		t.Error("the zero result covers something")
	}
}
