package authority_test

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"vogt/internal/api"
	"vogt/internal/authority"
	"vogt/internal/authoritytest"
	"vogt/internal/grant"
)

func tooMany(t *testing.T, what string, a authoritytest.Answer) {
	t.Helper()
	a.Problem(429)
	if n, err := strconv.Atoi(a.Header.Get("Retry-After")); err != nil || n < 1 {
		t.Errorf("%s: Retry-After %q", what, a.Header.Get("Retry-After"))
	}
}

// TestPendingQuota: thirty requests wait at most; who exceeds that is refused,
// nobody else is, and what narrows goes on.
func TestPendingQuota(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t)
	owner := s.Owner()
	greedy, modest := s.Agent(owner, "greedy"), s.Agent(owner, "modest")
	always := approved(owner, greedy, grant.Always, "always")
	var ids []string
	for i := range 30 {
		ids = append(ids, greedy.Ask("cmd", strconv.Itoa(i)).ID)
	}
	tooMany(t, "the 31st", greedy.Post(api.PathGrants, authoritytest.Request("one", "more")))
	// What waits already is joined, and what is allowed is served.
	if got := greedy.Ask("cmd", "0"); got.ID != ids[0] {
		t.Errorf("joining at the limit: %+v", got)
	}
	if got := greedy.Ask("always"); got.ID != always.ID || consume(t, greedy, always.ID).Error != "" {
		t.Errorf("using what is allowed at the limit: %+v", got)
	}
	modest.Ask("cmd")
	owner.Ask("cmd")
	// Denying and revoking work and make room.
	owner.Post(authoritytest.GrantPath(ids[0], "deny"), nil).Want(200)
	greedy.Ask("a")
	tooMany(t, "after one was denied", greedy.Post(api.PathGrants, authoritytest.Request("b")))
	greedy.Post(authoritytest.GrantPath(ids[1], "revoke"), nil).Want(200)
	greedy.Ask("b")
	owner.Post(api.PathPanic, nil).Want(200)
}

// TestOwnerQuota: many agents of one owner count together; another owner's are
// not touched.
func TestOwnerQuota(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t, authoritytest.WithConfig(func(c *authority.Config) { c.Limits.Pending, c.Limits.OwnerFactor = 2, 3 }))
	owner, other := s.Owner(), s.Person("other@example.com")
	var agents []*authoritytest.Principal
	for i := range 4 {
		agents = append(agents, s.Agent(owner, fmt.Sprintf("a%d", i)))
	}
	foreign := s.Agent(other, "foreign")
	for i := range 3 {
		for j := range 2 {
			agents[i].Ask("cmd", strconv.Itoa(j))
		}
	}
	tooMany(t, "the fourth agent", agents[3].Post(api.PathGrants, authoritytest.Request("cmd")))
	foreign.Ask("cmd")
	owner.Post(authoritytest.GrantPath(agents[0].Ask("cmd", "0").ID, "deny"), nil).Want(200)
	agents[3].Ask("cmd")
}

// TestBytesQuota: what waits is bounded in bytes as well, and one request in
// itself.
func TestBytesQuota(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t, authoritytest.WithConfig(func(c *authority.Config) { c.Limits.Bytes >>= 5 }))
	owner := s.Owner()
	greedy, modest := s.Agent(owner, "greedy"), s.Agent(owner, "modest")
	big := func(i int) grant.Request {
		return authoritytest.Request("cmd", strconv.Itoa(i), strings.Repeat("x", 900<<5))
	}
	var last authoritytest.Answer
	n := 0
	for ; n < 20; n++ {
		if last = greedy.Post(api.PathGrants, big(n)); last.Status != 201 {
			break
		}
	}
	tooMany(t, "too many bytes", last)
	if n < 4 || n > 9 {
		t.Errorf("%d requests of a ninth of the limit waited", n)
	}
	modest.AskFor(big(0))
	greedy.Ask("small") // there is room for that

	// Text in other fields counts too.
	huge := authoritytest.Request("cmd")
	huge.Context = &grant.Context{AdapterID: strings.Repeat("x", 5<<20)}
	modest.Post(api.PathGrants, huge).Problem(413)
}

// TestRateQuota: ten a second, and a second later ten again.
func TestRateQuota(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t, authoritytest.WithConfig(func(c *authority.Config) {
		c.Limits = authority.DefaultConfig("", "").Limits
		c.Limits.Pending = 1000
	}))
	owner := s.Owner()
	fast, slow := s.Agent(owner, "fast"), s.Agent(owner, "slow")
	n := 0
	ask := func(p *authoritytest.Principal) authoritytest.Answer {
		n++
		return p.Post(api.PathGrants, authoritytest.Request("cmd", strconv.Itoa(n)))
	}
	for range 2 {
		for range 10 {
			ask(fast).Want(201)
		}
		tooMany(t, "the eleventh in a second", ask(fast))
		s.Clock.Advance(time.Second)
	}
	s.Clock.Advance(-time.Second)
	ask(slow).Want(201)
	id := slow.Ask("x").ID
	tooMany(t, "still", ask(fast))
	fast.Get(api.PathGrants).Want(200)
	owner.Post(authoritytest.GrantPath(id, "deny"), nil).Want(200)
	s.Clock.Advance(100 * time.Millisecond)
	ask(fast).Want(201)
	tooMany(t, "a tenth of a second brings one", ask(fast))
}

// TestOwnerRate: many agents share their owner's rate.
func TestOwnerRate(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t, authoritytest.WithConfig(func(c *authority.Config) {
		c.Limits.Creations, c.Limits.OwnerFactor = 2, 2
	}))
	owner, other := s.Owner(), s.Person("other@example.com")
	var agents []*authoritytest.Principal
	for i := range 3 {
		agents = append(agents, s.Agent(owner, fmt.Sprintf("a%d", i)))
		s.Clock.Advance(time.Second)
	}
	for _, a := range agents[:2] {
		for j := range 2 {
			a.Ask("cmd", strconv.Itoa(j))
		}
	}
	tooMany(t, "the owner's fifth", agents[2].Post(api.PathGrants, authoritytest.Request("cmd")))
	s.Agent(other, "foreign").Ask("cmd")
	s.Clock.Advance(time.Second)
	agents[2].Ask("cmd")
}

// TestRefusalsAreBounded: trying what one may not costs the log a line; who
// tries without end does not fill the disk with them.
func TestRefusalsAreBounded(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t, authoritytest.WithConfig(func(c *authority.Config) { c.Limits.Creations = 3 }))
	owner := s.Owner()
	agent := s.Agent(owner, "helper")
	g := agent.Ask("ls")
	used := approved(owner, agent, grant.Once, "pwd")
	jwt := agent.Token(used.ID)
	s.Consume(used.ID, jwt).Want(200)
	for name, try := range map[string]func() authoritytest.Answer{
		"approving":  func() authoritytest.Answer { return agent.Post(authoritytest.GrantPath(g.ID, "approve"), nil) },
		"consuming":  func() authoritytest.Answer { return s.Consume(used.ID, jwt) },
		"logging in": func() authoritytest.Answer { return agent.TryLogin(agent.Key) },
		"preparing changes": func() authoritytest.Answer {
			return agent.Post(api.PathTrust, api.TrustRequest{Operation: api.TrustDevice, Params: map[string]string{"name": "x"}, Secret: s.Secret()})
		},
	} {
		s.Clock.Advance(time.Minute)
		before := len(s.Records())
		for range 12 {
			if a := try(); a.Status >= 500 {
				t.Errorf("%s: %s", name, a.Body)
			}
		}
		if got := len(s.Records()) - before; got > 3 {
			t.Errorf("%s twelve times at once: %d records", name, got)
		}
	}
	owner.Post(authoritytest.GrantPath(g.ID, "deny"), nil).Want(200)
}

// TestWaitQuota: four calls of one principal wait at the same time.
func TestWaitQuota(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t)
	owner := s.Owner()
	agent, other := s.Agent(owner, "helper"), s.Agent(owner, "other")
	g, theirs := agent.Ask("ls"), other.Ask("ls")
	actor := agent.Actor()

	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			if _, _, err := s.Authority.Wait(ctx, actor, g.ID, time.Hour); err == nil {
				t.Error("a wait ended by itself")
			}
		})
	}
	for s.Authority.OpenWaits(agent.Email) < 4 {
		runtime.Gosched()
	}
	tooMany(t, "the fifth wait", agent.Get(authoritytest.GrantPath(g.ID)+"?wait=50"))
	agent.Get(authoritytest.GrantPath(g.ID)).Want(200) // reading is no waiting
	other.Get(authoritytest.GrantPath(theirs.ID) + "?wait=0").Want(200)
	owner.Post(authoritytest.GrantPath(theirs.ID, "revoke"), nil).Want(200)
	cancel()
	group.Wait()
	// The places are free again.
	owner.Post(authoritytest.GrantPath(g.ID, "deny"), nil).Want(200)
	agent.Get(authoritytest.GrantPath(g.ID) + "?wait=50").Want(200)
}

// TestWaitIsAnswered: the call returns with the answer, whatever it is.
func TestWaitIsAnswered(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t)
	owner := s.Owner()
	agent := s.Agent(owner, "helper")
	for name, test := range map[string]struct {
		do   func(id string)
		want grant.Status
	}{
		"approved": {func(id string) { owner.Approve(id, grant.Once, 0) }, grant.Approved},
		"denied":   {func(id string) { owner.Post(authoritytest.GrantPath(id, "deny"), nil).Want(200) }, grant.Denied},
		"revoked":  {func(id string) { owner.Post(authoritytest.GrantPath(id, "revoke"), nil).Want(200) }, grant.Revoked},
		"expired": {func(string) {
			s.Clock.Advance(48 * time.Hour)
			if err := s.Authority.Expire(ctx); err != nil {
				t.Error(err)
			}
			owner.Login()
			agent.Login()
		}, grant.Expired},
	} {
		g := agent.Ask("cmd", name)
		got := make(chan grant.Status)
		actor := agent.Actor()
		go func() {
			g, _, err := s.Authority.Wait(ctx, actor, g.ID, time.Hour)
			if err != nil {
				t.Error(err)
			}
			got <- g.Status
		}()
		test.do(g.ID)
		if status := <-got; status != test.want {
			t.Errorf("%s: the wait ended with %s", name, status)
		}
	}
}
