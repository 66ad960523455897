package authority_test

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"vogt/internal/api"
	"vogt/internal/authoritytest"
	"vogt/internal/detail"
	"vogt/internal/grant"
)

// TestNobodyElseApproves tries every way to a permission as everybody who is neither
// owner nor approver of the agent, nor a deputy within bounds, with nothing, with a
// signature of their own, and with one that the owner made. Whatever is answered, the
// request waits afterwards, and so does the same one asked anew. The switch for logins
// is at its widest.
func TestNobodyElseApproves(t *testing.T) {
	t.Parallel()
	type actor struct {
		name string
		cl   *authoritytest.Client
		key  *authoritytest.Principal // nil for whoever has none
	}
	type way struct {
		name string
		try  func(c *cast, by actor, id string)
	}
	decides := func(c *cast, by actor, id string) (out []api.Decide) {
		owned := c.owner.Signed(id, grant.Once, 0)
		out = append(out, api.Decide{}, api.Decide{GrantType: grant.Always}, owned)
		if by.key != nil {
			own := owned
			own.Signature, _ = by.key.Key.SignDecision(*owned.Digest)
			out = append(out, own)
		}
		return out
	}
	trust := func(operation string, params func(c *cast, by actor) map[string]string) way {
		return way{operation, func(c *cast, by actor, _ string) {
			secret := c.s.Secret()
			var tr api.Trust
			a := by.cl.Post(api.PathTrust, api.TrustRequest{Operation: operation, Params: params(c, by), Secret: secret})
			if a.Status != 201 {
				return
			}
			a.Into(&tr)
			c.owner.Get(trustPath(tr.ID)).Into(&tr)
			own := ""
			if by.key != nil {
				own, _ = by.key.Key.SignDecision(*tr.Digest)
				// What a person confirms is about that person: it is shown another statement.
				var mine api.Trust
				if a := by.cl.Get(trustPath(tr.ID)); a.Status == 200 {
					if a.Into(&mine); mine.Digest != nil {
						signature, _ := by.key.Key.SignDecision(*mine.Digest)
						by.cl.Post(trustPath(tr.ID, "confirm"), api.ConfirmTrust{Digest: *mine.Digest, Signature: signature})
					}
				}
			}
			for _, signature := range []string{"", own} {
				by.cl.Post(trustPath(tr.ID, "confirm"), api.ConfirmTrust{Digest: *tr.Digest, Signature: signature})
			}
			by.cl.Do("GET", trustPath(tr.ID), nil, api.TrustSecretHeader, secret)
		}}
	}
	tomorrow := func(c *cast) string { return c.s.Clock.Now().Add(24 * time.Hour).UTC().Format(time.RFC3339) }
	policy := func(c *cast) string {
		return `{"agent":"` + c.requester.Email + `","audience":"*","mode":"deny-list","deny":["rm *"],"limits":{"per_minute":60,"deletes_per_hour":50}}`
	}
	ways := []way{
		{"single", func(c *cast, by actor, id string) {
			for _, d := range decides(c, by, id) {
				by.cl.Post(authoritytest.GrantPath(id, "approve"), d)
			}
			by.cl.Post(authoritytest.GrantPath(id, "approve"), nil)
		}},
		{"batch", func(c *cast, by actor, id string) {
			for _, kind := range []grant.Type{"", grant.Once, grant.Always} {
				by.cl.Post("/api/grants/batch", api.Batch{Operations: []api.Operation{{ID: id, Action: "approve", GrantType: kind}}})
			}
		}},
		{"widening and extension", func(c *cast, by actor, id string) {
			earlier := c.requester.Ask("git", "push", "earlier")
			c.owner.Approve(earlier.ID, grant.Always, 0)
			for _, body := range []map[string]any{
				{"grant_type": "always", "widened_details": []map[string]any{{"type": detail.WireCLI, "cli_id": "git", "operation_id": "git.push", "action": "write", "permission": "git", "display": "x", "risk": "low", "resource_chain": []any{map[string]any{"resource": "any"}}}}},
				{"extend_mode": "widen", "extend_grant_ids": []string{earlier.ID}},
				{"extend_mode": "merge", "extend_grant_ids": []string{earlier.ID}, "grant_type": "always"},
			} {
				by.cl.Post(authoritytest.GrantPath(id, "approve"), body)
				by.cl.Post(authoritytest.GrantPath(earlier.ID, "approve"), body)
			}
			c.owner.Post(authoritytest.GrantPath(earlier.ID, "revoke"), nil).Want(200)
		}},
		{"delegation by login", func(c *cast, by actor, id string) {
			for _, to := range []string{c.requester.Email, c.sibling.Email, c.stranger.Email} {
				for _, at := range []string{"*", "apes-cli", "shapes"} {
					by.cl.Post(api.PathDelegations, map[string]any{"delegate": to, "delegator": c.owner.Email, "audience": at, "grant_type": "always"})
				}
			}
		}},
		{"standing grants of the wire", func(c *cast, by actor, id string) {
			body := map[string]any{
				"delegate": c.requester.Email, "audience": "shapes", "cli_id": "cat", "action": "read", "max_risk": "low", "grant_type": "always", "reason": "x",
				"resource_chain_template": []any{map[string]any{"resource": "filesystem", "selector": map[string]string{"path": "/home/p/**"}}},
			}
			by.cl.Post(api.PathStanding, body)
			by.cl.Post(api.PathStanding+"/bulk-seed", map[string]any{"delegate": c.requester.Email, "delegates": []string{c.requester.Email}})
		}},
		{"policy of the wire", func(c *cast, by actor, id string) {
			for _, email := range []string{c.requester.Email, c.owner.Email} {
				by.cl.Do("PUT", "/api/users/"+url.PathEscape(email)+"/yolo-policy", map[string]any{"mode": "deny-list", "denyPatterns": []string{"rm *"}, "allowPatterns": []string{"*"}})
			}
		}},
		{"enrolment", func(c *cast, by actor, id string) {
			by.cl.Post(api.PathEnroll, api.Enroll{Name: "another", PublicKey: c.s.NewKey("x").Line})
		}},
		{"another's request", func(c *cast, by actor, id string) {
			r := authoritytest.Request(push("a")...)
			r.Requester = c.requester.Email
			by.cl.Post(api.PathGrants, r)
		}},
		trust(api.TrustDelegationAdd, func(c *cast, by actor) map[string]string {
			return map[string]string{"delegate": c.requester.Email, "audience": "*", "grant_type": "always"}
		}),
		trust(api.TrustDeputyAdd, func(c *cast, by actor) map[string]string {
			return map[string]string{"deputy": c.approver.Email, "agents": "*", "max_risk": "high", "until": tomorrow(c)}
		}),
		trust(api.TrustDeputyAdd, func(c *cast, by actor) map[string]string {
			return map[string]string{"deputy": c.stranger.Email, "agents": c.requester.Email, "max_risk": "high", "until": tomorrow(c)}
		}),
		trust(api.TrustStandingAdd, func(c *cast, by actor) map[string]string {
			p := grant.Pattern{Agent: "*", Does: []grant.Deed{grant.DeedConnect, grant.DeedWrite}, Programs: []string{"git"}, Write: []string{"/home/**"}, Hosts: []string{"example.com"}}
			p, _ = p.Complete()
			b, _ := json.Marshal(p)
			return map[string]string{"pattern": string(b)}
		}),
		trust(api.TrustPolicySet, func(c *cast, by actor) map[string]string { return map[string]string{"policy": policy(c)} }),
		trust(api.TrustKeyAdd, func(c *cast, by actor) map[string]string {
			return map[string]string{"public_key": c.s.NewKey("x").Line}
		}),
		trust(api.TrustAgentRotate, func(c *cast, by actor) map[string]string {
			return map[string]string{"email": c.requester.Email, "public_key": c.s.NewKey("x").Line}
		}),
	}
	// The ways lead somewhere: for the owner each of them changes something.
	t.Run("owner", func(t *testing.T) {
		t.Parallel()
		c := newCast(t, authoritytest.WithBearer(detail.High))
		for _, w := range ways {
			g := c.requester.Ask("git", "push", w.name)
			before := len(c.s.Recorded("trust")) + len(c.s.Recorded("decision")) + len(c.s.Recorded("join")) + len(c.s.Recorded("request"))
			w.try(c, actor{"owner", &c.owner.Client, c.owner}, g.ID)
			if after := len(c.s.Recorded("trust")) + len(c.s.Recorded("decision")) + len(c.s.Recorded("join")) + len(c.s.Recorded("request")); after == before {
				t.Errorf("%s changed nothing, so it tries nothing", w.name)
			}
		}
	})
	for _, who := range []string{"requester", "sibling", "foreign agent", "stranger", "deputy of another agent", "deputy of less risk", "deputy to come", "former deputy", "management", "anonymous", "delegated"} {
		t.Run(who, func(t *testing.T) {
			t.Parallel()
			c := newCast(t, authoritytest.WithBearer(detail.High))
			by := actor{name: who}
			if p := c.keys[who]; p != nil {
				by.cl, by.key = &p.Client, p
			} else {
				by.cl = c.clients[who]
			}
			bounds := map[string]string{"agents": c.requester.Email}
			switch who {
			case "deputy of another agent":
				bounds["agents"] = c.sibling.Email
			case "deputy of less risk":
				bounds["max_risk"] = "medium"
			case "deputy to come":
				bounds["from"] = c.s.Clock.Now().Add(time.Hour).UTC().Format(time.RFC3339)
			}
			if strings.Contains(who, "deputy") {
				d := stands(t, c, bounds)
				if who == "former deputy" {
					c.owner.Do("DELETE", api.PathDeputies+"/"+d.ID, nil).Want(200)
				}
				by.cl, by.key = &c.stranger.Client, c.stranger
			}
			if who == "delegated" {
				d := delegate(t, c.owner, map[string]string{"delegate": c.requester.Email, "audience": "*", "grant_type": "always"})
				claims := claimsOf(t, c.owner.Bearer)
				claims["act"], claims["delegation_grant"] = map[string]string{"sub": c.requester.Email}, d.ID
				raw, err := c.s.Authority.Sign(claims)
				if err != nil {
					t.Fatal(err)
				}
				by.cl, by.key = &authoritytest.Client{S: c.s, Bearer: raw}, c.requester
			}
			for _, w := range ways {
				g := c.requester.Ask(push("a")...)
				w.try(c, by, g.ID)
				if got := c.owner.Grant(g.ID); got.Status != grant.Pending || got.DecidedBy != "" || got.First != "" {
					t.Errorf("%s: %s by %s", w.name, got.Status, got.DecidedBy)
					continue
				}
				// Nothing that would permit it came into being on the way.
				c.owner.Post(authoritytest.GrantPath(g.ID, "deny"), nil).Want(200)
				again := c.requester.Ask(push("a")...)
				if again.ID == g.ID || again.Status != grant.Pending || again.Automatic {
					t.Errorf("%s: asked anew it is %+v", w.name, again)
				}
				c.requester.Post(authoritytest.GrantPath(again.ID, "token"), nil).Problem(400)
			}
			// What was recorded of permissions is the owner's and the approver's.
			for _, body := range c.s.Recorded("decision") {
				var d struct{ By, Answer string }
				if err := json.Unmarshal([]byte(body), &d); err != nil || d.Answer != "denied" && !slices.Contains([]string{c.owner.Email, c.approver.Email}, d.By) {
					t.Errorf("on record: %s", body)
				}
			}
			// The control: those who may, can.
			g := c.requester.Ask(push("a")...)
			if got := c.owner.Approve(g.ID, grant.Once, 0); got.Status != grant.Approved {
				t.Errorf("the owner's yes: %+v", got)
			}
		})
	}
}
