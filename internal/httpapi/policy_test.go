package httpapi_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"vogt/internal/api"
	"vogt/internal/authoritytest"
	"vogt/internal/detail"
	"vogt/internal/grant"
)

func policyPath(agent, audience string) string {
	p := api.PathUsers + "/" + url.PathEscape(agent) + "/yolo-policy"
	if audience != "" {
		p += "?audience=" + url.QueryEscape(audience)
	}
	return p
}

// put is what a client sends to set a policy.
func put(mode string, allow, deny []string, threshold any, expires any) map[string]any {
	return map[string]any{"mode": mode, "allowPatterns": allow, "denyPatterns": deny, "denyRiskThreshold": threshold, "expiresAt": expires}
}

// TestPolicyAsTheClientDoes: show without a policy, set, show, use, clear.
func TestPolicyAsTheClientDoes(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	path := policyPath(s.agent.Email, "")
	flat := []string{"mode string", "allowPatterns array", "denyPatterns array"}
	reads(t, s.owner.Get(path), append(flat, "policy null", "denyRiskThreshold null", "expiresAt null")...)
	end := s.Clock.Now().Add(30 * 24 * time.Hour).Unix()
	reads(t, s.owner.Do("PUT", path, put("allow-list", []string{"echo *", "date"}, nil, nil, end)), append(flat, "policy object", "expiresAt number", "policy.mode string", "policy.allowPatterns array")...)
	v := reads(t, s.owner.Get(path), append(flat, "policy.agentEmail string", "policy.audience string", "policy.enabledBy string", "policy.enabledAt number", "policy.updatedAt number", "policy.denyRiskThreshold null")...)
	if got, _ := at(v, "policy.expiresAt"); got != float64(end) {
		t.Errorf("it ends at %v, want %d", got, end)
	}
	created := reads(t, s.agent.Post("/api/grants", shaped(s.agent.Email, "echo", "a", "b")), "id string", "status string", "approved_automatically bool", "auto_approval_kind string")
	if text(t, created, "status") != "approved" || text(t, created, "auto_approval_kind") != "yolo" {
		t.Fatalf("not approved: %v", created)
	}
	id := text(t, created, "id")
	used := s.Consume(id, s.agent.Token(id))
	reads(t, used, "status string", "receipt.decided_by_policy string", "receipt.policy_record number")
	if got := s.owner.Grant(id); got.AutoKind != "yolo" || got.DecidedBy != s.owner.Email || got.Request.Type != grant.Once || got.Strength != grant.Bearer {
		t.Errorf("the grant: %+v", got)
	}
	if !s.HasRecord("decision", id, `"policy":"`) || !s.HasRecord("request", id, "approved by a policy") || !s.HasRecord("trust", "policy.set", `"strength":"bearer"`) {
		t.Errorf("on record: %q", s.Recorded("decision"))
	}
	if v = reads(t, s.owner.Get(path), "policy.use_count number"); fmt.Sprint(v.(map[string]any)["use_count"]) != "1" {
		t.Errorf("uses: %v", v)
	}
	for _, argv := range [][]string{{"echo"}, {"touch", "/p/a"}, {"sh", "-c", "echo a; touch b"}, {"no-such"}} {
		var g api.Grant
		if s.agent.Post("/api/grants", shaped(s.agent.Email, argv...)).Into(&g); g.Status != grant.Pending || g.Automatic {
			t.Errorf("%q: %+v", argv, g)
		}
	}
	reads(t, s.owner.Do("DELETE", path, nil), "object")
	s.owner.Do("DELETE", path, nil).Problem(404)
	var g api.Grant
	if s.agent.Post("/api/grants", shaped(s.agent.Email, "date")).Into(&g); g.Status != grant.Pending {
		t.Errorf("after it was cleared: %+v", g)
	}
}

// TestPolicyIsAPermission: who may write one, how strongly, and what one may hold.
func TestPolicyIsAPermission(t *testing.T) {
	t.Parallel()
	good := put("deny-list", nil, []string{"rm *"}, nil, nil)
	mild := put("deny-list", nil, []string{"rm *"}, "high", nil)
	for _, test := range []struct {
		bearer     detail.Risk
		good, mild int
	}{{detail.Unrated, 403, 403}, {detail.Medium, 403, 200}, {detail.High, 200, 200}} {
		s := authoritytest.Start(t, authoritytest.WithBearer(test.bearer))
		owner, stranger := s.Owner(), s.Person("stranger@example.com")
		approver := s.Person("approver@example.com")
		agent := s.ManagedAgent("bot", owner, approver)
		path := policyPath(agent.Email, "")
		strangers := map[int]int{403: 403, 200: 404}[test.good]
		for name, got := range map[string][2]int{
			"up to high":         {owner.Do("PUT", path, good).Status, test.good},
			"below high":         {owner.Do("PUT", path, mild).Status, test.mild},
			"by the agent":       {agent.Do("PUT", path, mild).Status, 403},
			"by nobody":          {s.Stranger().Do("PUT", path, mild).Status, 401},
			"by management":      {s.Manager().Do("PUT", path, mild).Status, 403},
			"by a stranger":      {stranger.Do("PUT", path, good).Status, strangers},
			"by the approver":    {approver.Do("PUT", path, good).Status, strangers},
			"read by a stranger": {stranger.Get(path).Status, 404},
			"read by nobody":     {s.Stranger().Get(path).Status, 401},
			"read by the agent":  {agent.Get(path).Status, 200},
			"cleared by it":      {agent.Do("DELETE", path, nil).Status, map[int]int{403: 404, 200: 403}[test.mild]},
			"cleared by another": {stranger.Do("DELETE", path, nil).Status, 404},
			"for oneself":        {owner.Do("PUT", policyPath(owner.Email, ""), good).Status, strangers},
			"for a ghost":        {owner.Do("PUT", policyPath("ghost@vm", ""), good).Status, strangers},
		} {
			if got[0] != got[1] {
				t.Errorf("bearer_decisions %s: %s: %d, want %d", test.bearer, name, got[0], got[1])
			}
		}
	}
	s := newScene(t)
	path := policyPath(s.agent.Email, "")
	now := s.Clock.Now().Unix()
	many := make([]string, 65)
	for i := range many {
		many[i] = fmt.Sprint("x", i)
	}
	for name, body := range map[string]map[string]any{
		"an empty deny-list":           put("deny-list", []string{"date"}, nil, nil, nil),
		"an empty deny-list with risk": put("deny-list", nil, nil, "high", nil),
		"no mode":                      put("", nil, []string{"rm"}, nil, nil),
		"another mode":                 put("all", nil, []string{"rm"}, nil, nil),
		"an end that is past":          put("allow-list", []string{"date"}, nil, nil, now),
		"an end that is far":           put("allow-list", []string{"date"}, nil, nil, now+400*24*3600),
		"an end before time":           put("allow-list", []string{"date"}, nil, nil, -1),
		"an end past numbers":          put("allow-list", []string{"date"}, nil, nil, 1<<55),
		"an empty pattern":             put("allow-list", []string{" "}, nil, nil, nil),
		"a long pattern":               put("allow-list", []string{strings.Repeat("x", 201)}, nil, nil, nil),
		"many patterns":                put("allow-list", many, nil, nil, nil),
		"hidden characters":            put("allow-list", []string{"date\u202e"}, nil, nil, nil),
		"no such risk":                 put("allow-list", []string{"date"}, nil, "none", nil),
		"text for a list":              {"mode": "allow-list", "allowPatterns": "date"},
	} {
		if a := s.owner.Do("PUT", path, body); a.Status != 400 {
			t.Errorf("%s: %d %.300s", name, a.Status, a.Body)
		}
	}
	s.owner.Do("PUT", path, put("allow-list", nil, nil, nil, nil)).Want(200) // approves nothing
	var g api.Grant
	if s.agent.Post("/api/grants", shaped(s.agent.Email, "date")).Into(&g); g.Status != grant.Pending {
		t.Errorf("an empty allow-list approves: %+v", g)
	}
}

// TestPolicyIsLookedAtAgain: what a policy gave ends when the policy does, is
// changed, or its author may not act any more: at token and at consume.
func TestPolicyIsLookedAtAgain(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*scene){
		"changed": func(s *scene) {
			s.owner.Do("PUT", policyPath(s.agent.Email, ""), put("allow-list", []string{"date"}, nil, nil, nil)).Want(200)
		},
		"cleared":           func(s *scene) { s.owner.Do("DELETE", policyPath(s.agent.Email, ""), nil).Want(200) },
		"cleared by others": func(s *scene) { s.Manager().Do("DELETE", policyPath(s.agent.Email, ""), nil).Want(200) },
		"expired":           func(s *scene) { s.Clock.Advance(4 * time.Minute) },
		"owner deactivated": func(s *scene) {
			s.Manager().Do("DELETE", "/api/admin/users/"+url.PathEscape(s.owner.Email), nil).Want(200)
		},
		"agent switched off": func(s *scene) {
			s.owner.Do("PATCH", api.PathMyAgents+"/"+url.PathEscape(s.agent.Email), map[string]bool{"isActive": false}).Want(200)
		},
		"agent paused": func(s *scene) { s.owner.Post(api.PathPanic, nil) },
	} {
		s := newScene(t)
		end0 := s.Clock.Now().Add(3 * time.Minute).Unix()
		s.Person("second@example.com") // the owner is not the last person
		s.owner.Do("PUT", policyPath(s.agent.Email, ""), put("allow-list", []string{"date"}, nil, nil, end0)).Want(200)
		ask := func(argv ...string) (g api.Grant) {
			s.agent.Post("/api/grants", shaped(s.agent.Email, argv...)).Into(&g)
			return g
		}
		g := ask("date")
		jwt := s.agent.Token(g.ID)
		end(s)
		if a := s.agent.Post(authoritytest.GrantPath(g.ID, "token"), nil); a.Status/100 == 2 {
			t.Errorf("%s: a token: %s", name, a.Body)
		}
		if a := s.Consume(g.ID, jwt); a.Status/100 == 2 && !strings.Contains(string(a.Body), `"error"`) {
			t.Errorf("%s: consumed: %s", name, a.Body)
		}
		if a := s.agent.Post("/api/grants", shaped(s.agent.Email, "date")); name != "changed" && a.Status/100 == 2 && strings.Contains(string(a.Body), `"approved"`) {
			t.Errorf("%s: approved again: %s", name, a.Body)
		}
	}
}

// TestPolicyLimits: it is paused when used too much, and only writing it anew lets
// it approve again.
func TestPolicyLimits(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	path := policyPath(s.agent.Email, "")
	set := func() { s.owner.Do("PUT", path, put("allow-list", []string{"echo *"}, nil, nil, nil)).Want(200) }
	set()
	ask := func(i int) (g api.Grant) {
		s.agent.Post("/api/grants", shaped(s.agent.Email, "echo", fmt.Sprint(i))).Into(&g)
		return g
	}
	for i := range 60 {
		if g := ask(i); g.Status != grant.Approved {
			t.Fatalf("use %d: %+v", i, g)
		}
	}
	for i, wait := range []time.Duration{0, time.Hour} {
		s.Clock.Advance(wait)
		if g := ask(100 + i); g.Status != grant.Pending {
			t.Errorf("beyond the limit, after %s: %+v", wait, g)
		}
	}
	if v := reads(t, s.owner.Get(path), "paused string"); !strings.Contains(text(t, v, "paused"), "minute") || !s.HasRecord("trust", "policy.paused") {
		t.Errorf("it does not say why: %v", v)
	}
	set()
	if g := ask(200); g.Status != grant.Approved {
		t.Errorf("written anew: %+v", g)
	}
}

// TestPolicyOfAnAudience: the one for the request's audience decides, and what the
// one for any denies stays denied.
func TestPolicyOfAnAudience(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.owner.Do("PUT", policyPath(s.agent.Email, ""), put("allow-list", []string{"date"}, []string{"touch *"}, nil, nil)).Want(200)
	s.owner.Do("PUT", policyPath(s.agent.Email, "shapes"), put("allow-list", []string{"echo *", "touch *"}, nil, nil, nil)).Want(200)
	for _, test := range []struct {
		audience, command string
		want              grant.Status
	}{
		{"shapes", "echo a", grant.Approved}, {"shapes", "date", grant.Pending}, {"shapes", "touch /p/a", grant.Pending},
		{"other", "date", grant.Approved}, {"other", "echo a", grant.Pending}, {"ape-shell", "date", grant.Approved}, {"*", "date", grant.Approved},
	} {
		body := shaped(s.agent.Email, strings.Fields(test.command)...)
		body["audience"] = test.audience
		var g api.Grant
		if s.agent.Post("/api/grants", body).Into(&g); g.Status != test.want {
			t.Errorf("%s: %s: %s, want %s", test.audience, test.command, g.Status, test.want)
		}
	}
	if a := s.owner.Get(policyPath(s.agent.Email, "other")).Want(200); !strings.Contains(string(a.Body), `"policy":null`) {
		t.Errorf("no policy for this audience: %s", a.Body)
	}
}

// TestPolicySigned: a person's proof writes one without the switch, over exactly
// what is shown.
func TestPolicySigned(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t)
	owner, stranger := s.Owner(), s.Person("stranger@example.com")
	agent := s.Agent(owner, "bot")
	params := map[string]string{"policy": `{"agent":"` + agent.Email + `","audience":"*","mode":"deny-list","deny":["rm *"],"limits":{"per_minute":60,"deletes_per_hour":50}}`, "days": "90"}
	done := owner.Change(api.TrustPolicySet, params)
	if done.Policy == nil || done.Policy.By != owner.Email || done.Policy.Strength != grant.Independent {
		t.Fatalf("signed: %+v", done)
	}
	g := agent.Ask("date")
	if g.Status != grant.Approved || g.AutoKind != "yolo" || g.Strength != grant.Independent {
		t.Fatalf("not approved: %+v", g)
	}
	tr, _ := stranger.Prepare(api.TrustPolicySet, params)
	stranger.Post(api.PathTrust+"/"+tr.ID+"/confirm", stranger.SignedChange(tr.ID)).Problem(404)
	for _, bad := range []string{"", "{}", `{"agent":"*","mode":"allow-list"}`, `{"agent":"` + agent.Email + `","mode":"deny-list"}`, strings.Repeat(" ", 20<<10) + params["policy"], params["policy"] + "x", `{"agent":"a@b","mode":"allow-list","extra":1}`} {
		owner.Post(api.PathTrust, api.TrustRequest{Operation: api.TrustPolicySet, Params: map[string]string{"policy": bad}, Secret: strings.Repeat("0", 64)}).Problem(400)
	}
}
