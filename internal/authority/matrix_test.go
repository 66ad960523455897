package authority_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"vogt/internal/api"
	"vogt/internal/authority"
	"vogt/internal/authoritytest"
	"vogt/internal/grant"
)

// cast is everybody who could call.
type cast struct {
	s                           *authoritytest.Server
	owner, approver, stranger   *authoritytest.Principal // people
	requester, sibling, foreign *authoritytest.Principal // agents
	clients                     map[string]*authoritytest.Client
	keys                        map[string]*authoritytest.Principal
}

// newCast: requester's owner is owner, and approver answers for it too.
func newCast(t *testing.T, opts ...authoritytest.Option) *cast {
	t.Helper()
	opts = append(opts, authoritytest.WithConfig(func(c *authority.Config) { c.Limits.Pending = 1000 }))
	c := &cast{s: authoritytest.Start(t, opts...)}
	c.owner, c.approver, c.stranger = c.s.Owner(), c.s.Person("approver@example.com"), c.s.Person("stranger@example.com")
	c.requester = c.s.ManagedAgent("helper", c.owner, c.approver)
	c.sibling = c.s.Agent(c.owner, "sibling")
	c.foreign = c.s.Agent(c.stranger, "foreign")
	c.keys = map[string]*authoritytest.Principal{
		"owner": c.owner, "approver": c.approver, "stranger": c.stranger,
		"requester": c.requester, "sibling": c.sibling, "foreign agent": c.foreign,
	}
	c.clients = map[string]*authoritytest.Client{"management": c.s.Manager(), "anonymous": c.s.Stranger()}
	for name, p := range c.keys {
		c.clients[name] = &p.Client
	}
	return c
}

// signedBy is an approval of the grant with what owner was shown, signed by
// the caller's own key, or by the owner's key for callers without one.
func (c *cast) signedBy(t *testing.T, who, id string) api.Decide {
	t.Helper()
	d := c.owner.Signed(id, grant.Once, 0)
	if p := c.keys[who]; p != nil {
		var err error
		if d.Signature, err = p.Key.SignDecision(*d.Digest); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

// TestWhoMay tries every operation on a grant as everybody.
func TestWhoMay(t *testing.T) {
	t.Parallel()
	c := newCast(t)
	everybody := []string{"requester", "sibling", "owner", "approver", "stranger", "foreign agent", "management", "anonymous"}
	n := 0
	fresh := func() string { n++; return c.requester.Ask("cmd", fmt.Sprint(n)).ID }
	allowed := func() string { id := fresh(); c.owner.Approve(id, grant.Always, 0); return id }
	used := func() (id, use string) { id = allowed(); return id, consume(t, c.requester, id).Use }

	type call func(who string, cl *authoritytest.Client) authoritytest.Answer
	post := func(make func() string, verb string) call {
		return func(who string, cl *authoritytest.Client) authoritytest.Answer {
			return cl.Post(authoritytest.GrantPath(make(), verb), nil)
		}
	}
	tests := []struct {
		op   string
		do   call
		want [8]int // in the order of everybody
	}{
		{"statement", func(_ string, cl *authoritytest.Client) authoritytest.Answer {
			return cl.Get(authoritytest.GrantPath(fresh(), "statement"))
		}, [8]int{200, 404, 200, 200, 404, 404, 200, 401}},
		{"receipt", func(_ string, cl *authoritytest.Client) authoritytest.Answer {
			return cl.Get(authoritytest.GrantPath(allowed(), "receipt"))
		}, [8]int{200, 404, 200, 200, 404, 404, 200, 401}},
		{"approve by signature", func(who string, cl *authoritytest.Client) authoritytest.Answer {
			id := fresh()
			return cl.Post(authoritytest.GrantPath(id, "approve"), c.signedBy(t, who, id))
		}, [8]int{403, 404, 200, 200, 404, 404, 403, 401}},
		{"approve by token", post(fresh, "approve"), [8]int{403, 404, 403, 403, 404, 404, 403, 401}},
		{"deny", post(fresh, "deny"), [8]int{200, 404, 200, 200, 404, 404, 200, 401}},
		{"revoke a request", post(fresh, "revoke"), [8]int{200, 404, 200, 200, 404, 404, 200, 401}},
		{"revoke a permission", post(allowed, "revoke"), [8]int{200, 404, 200, 200, 404, 404, 200, 401}},
		{"token", post(allowed, "token"), [8]int{200, 404, 403, 403, 404, 404, 403, 401}},
		{"outcome", func(_ string, cl *authoritytest.Client) authoritytest.Answer {
			id, use := used()
			return cl.Post(authoritytest.GrantPath(id, "outcome"), api.Outcome{Use: use})
		}, [8]int{200, 404, 404, 404, 404, 404, 401, 401}},
		{"unknown grant", func(_ string, cl *authoritytest.Client) authoritytest.Answer {
			return cl.Post(authoritytest.GrantPath("00000000-0000-4000-8000-000000000000", "revoke"), nil)
		}, [8]int{404, 404, 404, 404, 404, 404, 404, 401}},
	}
	for _, test := range tests {
		for i, who := range everybody {
			a := test.do(who, c.clients[who])
			if a.Status != test.want[i] {
				t.Errorf("%s as %s: %d, want %d\n%s", test.op, who, a.Status, test.want[i], a.Body)
			}
			if a.Status >= 400 {
				a.Problem(a.Status)
			}
		}
	}
}

// TestWhoSees: reading a grant and listing.
func TestWhoSees(t *testing.T) {
	t.Parallel()
	c := newCast(t)
	g := c.requester.Ask("secret-program", "secret-argument")
	for who, full := range map[string]bool{
		"requester": true, "owner": true, "approver": true, "management": true,
		"sibling": false, "stranger": false, "foreign agent": false, "anonymous": false,
	} {
		a := c.clients[who].Get(authoritytest.GrantPath(g.ID)).Want(200)
		var fields map[string]json.RawMessage
		a.Into(&fields)
		if !full {
			delete(fields, "id")
			delete(fields, "status")
			if len(fields) != 0 || strings.Contains(string(a.Body), "secret") {
				t.Errorf("%s, who has no part in it, is shown %s", who, a.Body)
			}
			if a.Header.Get("ETag") != "" {
				t.Errorf("%s learns the version from the ETag", who)
			}
			// Nor does waiting tell more, or cost anything.
			c.clients[who].Get(authoritytest.GrantPath(g.ID) + "?wait=50").Want(200)
		} else if fields["request"] == nil || fields["requester"] == nil {
			t.Errorf("%s is shown %s", who, a.Body)
		}
		list := c.clients[who].Get(api.PathGrants)
		switch who {
		case "management", "anonymous":
			list.Problem(401)
		default:
			var page api.List
			list.Into(&page)
			has := slices.ContainsFunc(page.Data, func(o api.Grant) bool { return o.ID == g.ID })
			if has != full {
				t.Errorf("%s's list: %s", who, list.Body)
			}
		}
	}
	// Asking for somebody else's list by name is refused, known or not.
	for _, test := range []struct {
		who       string
		requester string
		want      int
	}{
		{"owner", c.requester.Email, 200}, {"approver", c.requester.Email, 200}, {"requester", c.requester.Email, 200},
		{"owner", c.owner.Email, 200}, {"stranger", c.requester.Email, 403}, {"sibling", c.requester.Email, 403},
		{"requester", c.owner.Email, 403}, {"owner", c.stranger.Email, 403}, {"owner", "nobody@example.com", 403},
		{"anonymous", c.requester.Email, 401},
	} {
		a := c.clients[test.who].Get(api.PathGrants + "?requester=" + url.QueryEscape(test.requester))
		if a.Status != test.want {
			t.Errorf("%s lists %s: %d %.500s", test.who, test.requester, a.Status, a.Body)
		}
	}
}

// TestWhoManages: what is done to agents.
func TestWhoManages(t *testing.T) {
	t.Parallel()
	c := newCast(t)
	email := url.PathEscape(c.requester.Email)
	everybody := []string{"requester", "sibling", "owner", "approver", "stranger", "foreign agent", "management", "anonymous"}
	tests := []struct {
		op, method, path string
		body             any
		want             [8]int
	}{
		{"list agents", "GET", api.PathMyAgents, nil, [8]int{401, 401, 200, 200, 200, 401, 200, 401}},
		{"read", "GET", api.PathMyAgents + "/" + email, nil, [8]int{200, 404, 200, 404, 404, 404, 200, 401}},
		{"pause", "PATCH", api.PathMyAgents + "/" + email, map[string]bool{"paused": true}, [8]int{403, 403, 200, 404, 404, 403, 200, 401}},
		{"resume", "PATCH", api.PathMyAgents + "/" + email, map[string]bool{"paused": false}, [8]int{403, 403, 403, 403, 403, 403, 403, 401}},
		{"activate", "PATCH", api.PathMyAgents + "/" + email, map[string]bool{"isActive": true}, [8]int{403, 403, 403, 403, 403, 403, 403, 401}},
		{"rotate", "PATCH", api.PathMyAgents + "/" + email, map[string]string{"publicKey": c.s.NewKey("x").Line}, [8]int{403, 403, 403, 403, 403, 403, 403, 401}},
		{"deactivate a stranger's", "PATCH", api.PathMyAgents + "/" + url.PathEscape(c.foreign.Email), map[string]bool{"isActive": false}, [8]int{403, 403, 404, 404, 0, 403, 0, 401}},
		{"remove a stranger's", "DELETE", api.PathMyAgents + "/" + url.PathEscape(c.foreign.Email), nil, [8]int{403, 403, 404, 404, 0, 403, 0, 401}},
		{"remove a person", "DELETE", api.PathMyAgents + "/" + url.PathEscape(c.owner.Email), nil, [8]int{403, 403, 400, 404, 404, 403, 0, 401}},
		{"enrol by token", "POST", api.PathEnroll, api.Enroll{Name: "x", PublicKey: c.s.NewKey("x").Line}, [8]int{403, 403, 403, 403, 403, 403, 403, 401}},
		{"export", "GET", api.PathAudit + "/export", nil, [8]int{403, 403, 200, 200, 200, 403, 200, 401}},
		{"records", "GET", api.PathAudit + "/records", nil, [8]int{200, 200, 200, 200, 200, 200, 200, 401}},
		{"panic", "POST", api.PathPanic, nil, [8]int{403, 403, 200, 200, 200, 403, 200, 401}},
	}
	for _, test := range tests {
		for i, who := range everybody {
			if test.want[i] == 0 {
				continue // it may, and would end the cast
			}
			a := c.clients[who].Do(test.method, test.path, test.body)
			if a.Status != test.want[i] {
				t.Errorf("%s as %s: %d, want %d\n%s", test.op, who, a.Status, test.want[i], a.Body)
			}
			// Pausing and panic stop the cast's logins; start it again.
			if test.op == "panic" && a.Status == 200 {
				for _, p := range []*authoritytest.Principal{c.requester, c.sibling, c.foreign} {
					p.Login()
				}
			}
		}
	}
}

// TestWhoReadsTheLog: a person is shown all of it, an agent what concerns
// itself.
func TestWhoReadsTheLog(t *testing.T) {
	t.Parallel()
	c := newCast(t)
	mine, theirs := c.requester.Ask("mine"), c.foreign.Ask("theirs")
	shows := func(who, id string) bool {
		var page api.AuditRecords
		c.clients[who].Get(api.PathAudit + "/records?limit=1000").Into(&page)
		return slices.ContainsFunc(page.Records, func(r api.AuditRecord) bool { return strings.Contains(string(r.Body), id) })
	}
	for _, test := range []struct {
		who          string
		mine, theirs bool
	}{
		{"requester", true, false}, {"sibling", false, false}, {"foreign agent", false, true},
		{"owner", true, true}, {"stranger", true, true}, {"management", true, true},
	} {
		if got := shows(test.who, mine.ID); got != test.mine {
			t.Errorf("%s reads of the requester's grant: %v", test.who, got)
		}
		if got := shows(test.who, theirs.ID); got != test.theirs {
			t.Errorf("%s reads of the stranger's grant: %v", test.who, got)
		}
	}
}
