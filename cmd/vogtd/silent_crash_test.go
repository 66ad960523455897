//go:build unix

package main

import (
	"fmt"
	"net/url"
	"syscall"
	"testing"
	"time"

	"vogt/internal/api"
	"vogt/internal/authoritytest"
	"vogt/internal/grant"
	"vogt/internal/vogtdtest"
)

// silentScene is an authority in which much was given beforehand: each way to use
// it, and each way to take it back, is one call.
type silentScene struct {
	home, issuer                     string
	owner, agent                     *authoritytest.Principal
	standing, deputy, lasting, once  string
	byStanding, byPolicy, byDeputy   string // grants that they gave, unused
	refresh                          string
	policyPath, safePath, standingAt string
}

const plansService = "plans.example.com"

func prepareSilent(t *testing.T) *silentScene {
	t.Helper()
	d := vogtdtest.Start(t, vogtdtest.Options{Serve: true, Config: roomy})
	s := &silentScene{home: d.Home, issuer: d.API.URL, owner: d.Owner()}
	bob := d.API.Person("bob@example.com")
	s.agent = d.API.Agent(s.owner, "helper")
	s.standing = s.owner.Change(api.TrustStandingAdd, map[string]string{
		"pattern": `{"agent":"*","programs":["cat"],"does":["read"],"read":["/p/**"],"max_risk":"medium"}`,
	}).Standing.ID
	s.owner.Change(api.TrustPolicySet, map[string]string{
		"policy": `{"agent":"` + s.agent.Email + `","audience":"*","mode":"allow-list","allow":["touch *"]}`,
	})
	s.owner.Change(api.TrustSafeOn, map[string]string{"email": s.agent.Email, "safe": `["/q"]`})
	s.deputy = s.owner.Change(api.TrustDeputyAdd, map[string]string{
		"deputy": bob.Email, "agents": "*", "max_risk": "high", "until": time.Now().Add(24 * time.Hour).UTC().Format(time.RFC3339),
	}).Deputy.ID
	delegate := func(kind string) string {
		return s.owner.Change(api.TrustDelegationAdd, map[string]string{"delegate": s.agent.Email, "audience": plansService, "grant_type": kind}).Delegation.ID
	}
	s.lasting, s.once = delegate("always"), delegate("once")
	s.byStanding, s.byPolicy = s.agent.AskFor(askFor("cat", "/p/a")).ID, s.agent.AskFor(askFor("touch", "/p/a")).ID
	for id, want := range map[string]string{s.byStanding: "standing", s.byPolicy: "yolo"} {
		if g := s.owner.Grant(id); g.Status != grant.Approved || g.AutoKind != want {
			t.Fatalf("%+v, want it approved by %s", g, want)
		}
	}
	s.byDeputy = s.agent.Ask("uptime").ID
	bob.Approve(s.byDeputy, grant.Once, 0)
	s.refresh = session(s.owner).RefreshToken
	s.policyPath = api.PathUsers + "/" + url.PathEscape(s.agent.Email) + "/yolo-policy"
	s.safePath = api.PathSafe + "/" + url.PathEscape(s.agent.Email)
	s.standingAt = api.PathStanding + "/" + s.standing
	d.Stop()
	return s
}

// silentLife is one copy of it.
type silentLife struct {
	*silentScene
	t            *testing.T
	d            *vogtdtest.Daemon
	owner, agent *authoritytest.Principal
}

func (l *silentLife) as(p *authoritytest.Principal) *authoritytest.Principal {
	q := *p
	q.S = l.d.API
	return &q
}

func (l *silentLife) is(id string, want grant.Status) bool { return l.owner.Grant(id).Status == want }

// silentStep is one call, and what there is once it has been made: all of it or
// nothing. Point is the authority's own on its way.
type silentStep struct {
	name, point string
	do          func(l *silentLife) (authoritytest.Answer, error)
	done        func(l *silentLife) []bool // must be all true or all false
}

func silentSteps(t *testing.T) []silentStep {
	ask := func(argv ...string) func(l *silentLife) (authoritytest.Answer, error) {
		return func(l *silentLife) (authoritytest.Answer, error) {
			return l.agent.Try("POST", api.PathGrants, askFor(argv...))
		}
	}
	made := func(argv ...string) func(l *silentLife) []bool {
		return func(l *silentLife) []bool {
			for _, g := range allGrants(l.owner) {
				if fmt.Sprint(g.Request.Command) == fmt.Sprint(argv) {
					return []bool{true, g.Status == grant.Approved}
				}
			}
			return []bool{false}
		}
	}
	drop := func(path func(l *silentLife) string) func(l *silentLife) (authoritytest.Answer, error) {
		return func(l *silentLife) (authoritytest.Answer, error) { return l.owner.Try("DELETE", path(l), nil) }
	}
	delegation := func(l *silentLife, id string) (d api.Delegation) {
		l.owner.Get(api.PathDelegations + "/" + id).Into(&d)
		return d
	}
	return []silentStep{
		{"a call that a pattern covers", "authority.use-standing", ask("cat", "/p/b"), made("cat", "/p/b")},
		{"a call that a policy approves", "authority.use-standing", ask("touch", "/p/b"), made("touch", "/p/b")},
		{"the end of a pattern", "authority.standing", drop(func(l *silentLife) string { return l.standingAt }), func(l *silentLife) []bool {
			var all []api.Standing
			l.owner.Get(api.PathStanding).Into(&all)
			for _, s := range all {
				if s.ID == l.standing {
					return []bool{s.Status == grant.Revoked, l.is(l.byStanding, grant.Revoked)}
				}
			}
			return nil
		}},
		{"the end of a policy", "authority.revoke", drop(func(l *silentLife) string { return l.policyPath }), func(l *silentLife) []bool {
			var p struct{ Policy *api.Policy }
			l.owner.Get(l.policyPath).Into(&p)
			return []bool{p.Policy == nil, l.is(l.byPolicy, grant.Revoked)}
		}},
		{"the end of a deputy", "authority.deputy", drop(func(l *silentLife) string { return api.PathDeputies + "/" + l.deputy }), func(l *silentLife) []bool {
			var all []api.Deputy
			l.owner.Get(api.PathDeputies).Into(&all)
			return []bool{len(all) == 1 && all[0].Status == "revoked", l.is(l.byDeputy, grant.Revoked)}
		}},
		{"the end of a delegation", "authority.delegation", drop(func(l *silentLife) string { return api.PathDelegations + "/" + l.lasting }), func(l *silentLife) []bool {
			return []bool{delegation(l, l.lasting).Status == grant.Revoked}
		}},
		{"the use of a delegation", "authority.use-delegation", func(l *silentLife) (authoritytest.Answer, error) {
			proof, err := assertion(signKey(t, l.agent), l.agent.Email, l.d.API.URL)
			if err != nil {
				l.t.Fatal(err)
			}
			return actFor(l.d.API, proof, l.once, plansService)
		}, func(l *silentLife) []bool {
			d := delegation(l, l.once)
			records := 0
			for _, r := range l.d.Records() {
				if r.Type == "delegation" {
					records++
				}
			}
			return []bool{d.Uses == 1, d.Status == grant.Used, records == 1}
		}},
		{"safe commands off", "", drop(func(l *silentLife) string { return l.safePath }), func(l *silentLife) []bool {
			var s api.Safe
			l.owner.Get(api.PathSafe).Into(&s)
			return []bool{len(s.Agents) == 1 && !s.Agents[0].On}
		}},
		{"a renewal", "", func(l *silentLife) (authoritytest.Answer, error) {
			return tryForm(l.d.API, api.PathToken, "grant_type", "refresh_token", "refresh_token", l.refresh)
		}, nil},
	}
}

// TestCrashWithoutCards kills the worker on the way of each call that uses or takes
// back what was given beforehand. It is done or it is not, with all that belongs to
// it; what the store had is there; and once more it is done no second time.
func TestCrashWithoutCards(t *testing.T) {
	t.Parallel()
	s := prepareSilent(t)
	for _, st := range silentSteps(t) {
		// The first update of a life is vogtd's own at its start.
		for _, c := range []struct {
			point   string
			hit     int
			durable bool
		}{{st.point, 1, false}, {"store.before-commit", 2, false}, {"store.after-commit", 2, true}, {"store.before-answer", 2, true}} {
			if c.point == "" {
				continue
			}
			t.Run(st.name+" "+c.point, func(t *testing.T) {
				t.Parallel()
				for range 5 {
					if silentCrash(t, s, st, fmt.Sprintf("%s:%d", c.point, c.hit), c.durable) || t.Failed() {
						return
					}
				}
				t.Error("in none of 5 lives did the worker die where it was meant to")
			})
		}
	}
}

// silentCrash lives once, dies and looks. It reports whether death came where it
// was meant to come: housekeeping may take the hit.
func silentCrash(t *testing.T, s *silentScene, st silentStep, fault string, durable bool) bool {
	home := vogtdtest.NewHome(t)
	copyHome(t, s.home, home)
	l := &silentLife{silentScene: s, t: t}
	l.d = vogtdtest.Start(t, vogtdtest.Options{Home: home, Serve: true, Args: []string{"--issuer", s.issuer}, Fault: fault})
	if l.d.API == nil {
		t.Fatal("it died before it answered")
	}
	l.owner, l.agent = l.as(s.owner), l.as(s.agent)
	a, err := st.do(l)
	answered := err == nil
	if answered && a.Status/100 != 2 {
		t.Fatalf("%s: %d %s", st.name, a.Status, a.Body)
	}
	if status, ok := l.d.Wait().Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
		t.Fatalf("the worker did not die at the fault point: %v", l.d.Wait())
	}
	l.d.Restart()
	l.owner, l.agent = l.as(s.owner), l.as(s.agent)
	var done bool
	if st.done != nil {
		parts := st.done(l)
		for _, part := range parts {
			if part != parts[0] {
				t.Fatalf("it is done by half: %v", parts)
			}
		}
		if done = len(parts) > 0 && parts[0]; answered && !done {
			t.Fatal("it was answered and is lost")
		}
	}
	again, err := st.do(l)
	if err != nil {
		t.Fatal(err)
	}
	switch good := again.Status/100 == 2; {
	case st.done == nil: // what was spent is refused
		done = !good
		if answered && good {
			t.Error("what was spent is good again")
		}
	case st.name == "the use of a delegation" && good == done:
		t.Errorf("used before the crash: %v; afterwards: %d %s", done, again.Status, again.Body)
	case !done && !good:
		t.Errorf("once more: %d %s", again.Status, again.Body)
	}
	if st.done != nil {
		for i, part := range st.done(l) {
			if !part {
				t.Errorf("part %d of it is not there in the end", i)
			}
		}
	}
	log, _ := agree(t, l.d, l.owner)
	settled(t, l.d, log)
	return !answered && done == durable
}
