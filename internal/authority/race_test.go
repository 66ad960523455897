package authority_test

import (
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"vogt/internal/api"
	"vogt/internal/authority"
	"vogt/internal/authoritytest"
	"vogt/internal/grant"
)

// together runs n calls at the same time.
func together(n int, call func(i int)) {
	var ready, done sync.WaitGroup
	start := make(chan struct{})
	ready.Add(n)
	for i := range n {
		done.Go(func() {
			ready.Done()
			<-start
			call(i)
		})
	}
	ready.Wait()
	close(start)
	done.Wait()
}

// TestThousandConsumers: of a thousand parallel consumers of one once-grant
// exactly one may start.
func TestThousandConsumers(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t)
	owner := s.Owner()
	agent := s.Agent(owner, "helper")
	g := approved(owner, agent, grant.Once, "deploy")
	tokens := make([]string, 5)
	for i := range tokens {
		tokens[i] = agent.Token(g.ID) // every token is as good as any
	}
	var consumed, refused, other atomic.Int64
	var uses sync.Map
	together(1000, func(i int) {
		var out api.Consumed
		a := s.Consume(g.ID, tokens[i%len(tokens)])
		if a.Status != http.StatusOK {
			other.Add(1)
			return
		}
		a.Into(&out)
		switch {
		case out.Error == "" && out.Status == "consumed":
			consumed.Add(1)
			uses.Store(out.Use, true)
		case out.Error == "already_consumed" && out.Status == "used":
			refused.Add(1)
		default:
			other.Add(1)
		}
	})
	if consumed.Load() != 1 || refused.Load() != 999 || other.Load() != 0 {
		t.Errorf("%d consumed, %d were refused, %d got something else", consumed.Load(), refused.Load(), other.Load())
	}
	if got := owner.Grant(g.ID); got.Uses != 1 || got.Status != grant.Used {
		t.Errorf("the grant: %d uses, %s", got.Uses, got.Status)
	}
	if n := len(s.Recorded("intent")); n != 1 {
		t.Errorf("%d intents are on record", n)
	}
}

// TestOneAnswerWins: approve, deny and revoke of the same grant at the same
// time. One comes first, and what follows applies to what it left.
func TestOneAnswerWins(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t)
	owner := s.Owner()
	agent := s.Agent(owner, "helper")
	ends := map[grant.Status]int{}
	for round := range 12 {
		g := agent.Ask("cmd", fmt.Sprint(round))
		signed := owner.Signed(g.ID, grant.Once, 0)
		var approvedN, deniedN, revokedN atomic.Int64
		together(9, func(i int) {
			verb, n, body := "approve", &approvedN, any(signed)
			switch i % 3 {
			case 1:
				verb, n, body = "deny", &deniedN, nil
			case 2:
				verb, n, body = "revoke", &revokedN, nil
			}
			if a := owner.Post(authoritytest.GrantPath(g.ID, verb), body); a.Status == 200 {
				n.Add(1)
			} else if a.Status != 409 {
				t.Errorf("%s: %d %.300s", verb, a.Status, a.Body)
			}
		})
		a, d, r := approvedN.Load(), deniedN.Load(), revokedN.Load()
		final := owner.Grant(g.ID).Status
		ends[final]++
		// A yes may be taken back at once; nothing else can follow anything.
		if a > 1 || d > 1 || r > 1 || d == 1 && a+r > 0 || a+d+r == 0 {
			t.Errorf("round %d: %d approved, %d denied, %d revoked", round, a, d, r)
		}
		if want := map[bool]grant.Status{true: grant.Denied, false: grant.Revoked}[d == 1]; final != want {
			t.Errorf("round %d: %d approved, %d denied, %d revoked, and the grant is %s", round, a, d, r, final)
		}
	}
	if n := len(s.Recorded("decision")) + len(s.Recorded("revoke")); n < 12 {
		t.Errorf("%v: only %d answers are on record", ends, n)
	}
}

// TestOneApproval: of many equal answers one is the decision.
func TestOneApproval(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t)
	owner := s.Owner()
	agent := s.Agent(owner, "helper")
	g := agent.Ask("ls")
	signed := owner.Signed(g.ID, grant.Once, 0)
	var won atomic.Int64
	together(20, func(int) {
		if a := owner.Post(authoritytest.GrantPath(g.ID, "approve"), signed); a.Status == 200 {
			won.Add(1)
		} else if a.Status != 409 {
			t.Errorf("%d %.300s", a.Status, a.Body)
		}
	})
	if won.Load() != 1 || len(s.Recorded("decision")) != 1 {
		t.Errorf("%d approvals, %d records", won.Load(), len(s.Recorded("decision")))
	}
}

// TestEqualRequestsAtOnce: one card, whatever the order.
func TestEqualRequestsAtOnce(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t)
	owner := s.Owner()
	agent := s.Agent(owner, "helper")
	var ids sync.Map
	var created atomic.Int64
	together(30, func(int) {
		var g api.Grant
		a := agent.Post(api.PathGrants, authoritytest.Request("ls"))
		if a.Into(&g); a.Status == 201 {
			created.Add(1)
		}
		ids.Store(g.ID, true)
	})
	n := 0
	ids.Range(func(any, any) bool { n++; return true })
	if n != 1 || created.Load() != 1 {
		t.Errorf("%d cards, %d created", n, created.Load())
	}
}

// TestQuotaAtOnce: many requests at the same time do not slip through.
func TestQuotaAtOnce(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t)
	owner := s.Owner()
	agent := s.Agent(owner, "helper")
	var created, refused atomic.Int64
	together(60, func(i int) {
		switch a := agent.Post(api.PathGrants, authoritytest.Request("cmd", fmt.Sprint(i))); a.Status {
		case 201:
			created.Add(1)
		case 429:
			refused.Add(1)
		default:
			t.Errorf("%d %.300s", a.Status, a.Body)
		}
	})
	if created.Load() != 30 || refused.Load() != 30 {
		t.Errorf("%d created, %d refused", created.Load(), refused.Load())
	}
}

// TestOneTimeThings: a challenge, a change's result and a confirmation each
// serve one of many.
func TestOneTimeThings(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t)
	owner := s.Owner()
	c := challenge(t, s, owner.Email)
	var logins atomic.Int64
	together(20, func(int) {
		if answer(t, s, owner.Email, c, owner.Key).Status == 200 {
			logins.Add(1)
		}
	})
	if logins.Load() != 1 {
		t.Errorf("one challenge logged in %d times", logins.Load())
	}

	tr, secret := s.Stranger().Prepare(api.TrustDevice, map[string]string{"name": "x"})
	body := owner.SignedChange(tr.ID)
	var confirmed, tokens atomic.Int64
	together(10, func(int) {
		if owner.Post(trustPath(tr.ID, "confirm"), body).Status == 200 {
			confirmed.Add(1)
		}
	})
	together(20, func(int) {
		var out api.Trust
		if asSecret(s, tr.ID, secret).Into(&out); out.Login != nil {
			tokens.Add(1)
		}
	})
	if confirmed.Load() != 1 || tokens.Load() != 1 {
		t.Errorf("one change was confirmed %d times and gave %d logins", confirmed.Load(), tokens.Load())
	}
}

// TestConsumeAgainstRevoke: whichever comes first, a use that was counted
// happened before the revocation.
func TestConsumeAgainstRevoke(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t)
	owner := s.Owner()
	agent := s.Agent(owner, "helper")
	for round := range 6 {
		g := approved(owner, agent, grant.Always, "cmd", fmt.Sprint(round))
		jwt := agent.Token(g.ID)
		var uses atomic.Int64
		together(9, func(i int) {
			if i == 4 {
				owner.Post(authoritytest.GrantPath(g.ID, "revoke"), nil).Want(200)
				return
			}
			if e := consumedError(s.Consume(g.ID, jwt)); e == "" {
				uses.Add(1)
			} else if e != "revoked" {
				t.Errorf("refused as %s", e)
			}
		})
		if got := owner.Grant(g.ID); got.Uses != uses.Load() || got.Status != grant.Revoked {
			t.Errorf("%d uses were allowed, %d counted, the grant is %s", uses.Load(), got.Uses, got.Status)
		}
	}
}

// TestEverythingAtOnce mixes all calls; the race detector and the log's
// verification at the end look on.
func TestEverythingAtOnce(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t, authoritytest.WithHousekeeping(), authoritytest.WithConfig(func(c *authority.Config) { c.Limits.Pending = 1000 }))
	owner := s.Owner()
	agents := []*authoritytest.Principal{s.Agent(owner, "one"), s.Agent(owner, "two")}
	together(24, func(i int) {
		agent := agents[i%2]
		g := agent.Ask("cmd", fmt.Sprint(i/4))
		switch i % 6 {
		case 0, 1:
			if a := owner.Post(authoritytest.GrantPath(g.ID, "approve"), owner.Signed(g.ID, grant.Once, 0)); a.Status == 200 {
				s.Consume(g.ID, agent.Token(g.ID)).Want(200)
			}
		case 2:
			owner.Post(authoritytest.GrantPath(g.ID, "deny"), nil)
		case 3:
			agent.Get(api.PathGrants).Want(200)
			owner.Get(api.PathAudit + "/records").Want(200)
		case 4:
			if err := s.Authority.RotateKeys(ctx); err != nil {
				t.Error(err)
			}
		case 5:
			owner.Get(api.PathAudit + "/export").Want(200)
		}
	})
}
