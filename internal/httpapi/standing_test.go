package httpapi_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"vogt/internal/api"
	"vogt/internal/authoritytest"
	"vogt/internal/detail"
	"vogt/internal/grant"
)

// wireStanding is the body with which a client asks for a standing grant.
func wireStanding(delegate string, change map[string]any) map[string]any {
	body := map[string]any{
		"delegate": delegate, "audience": "shapes", "cli_id": "cat", "action": "read", "max_risk": "low", "grant_type": "always", "reason": "read home",
		"resource_chain_template": []any{map[string]any{"resource": "filesystem", "selector": map[string]string{"path": "/home/p/**"}}},
	}
	for k, v := range change {
		body[k] = v
		if v == nil {
			delete(body, k)
		}
	}
	return body
}

func link(resource, key, value string) []any {
	return []any{map[string]any{"resource": resource, "selector": map[string]string{key: value}}}
}

// TestStandingOfTheWire: what a client writes becomes a pattern that is never
// wider; what a pattern cannot say is refused with words that say so.
func TestStandingOfTheWire(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	for name, test := range map[string]struct {
		change map[string]any
		status int
		words  string // of a refusal, or what the pattern must hold
	}{
		"as it is":            {nil, 201, `"programs":["cat"],"does":["read"],"read":["/home/p/**"],"max_risk":"medium"`},
		"the audience holds":  {nil, 201, `"audience":"shapes"`},
		"one machine":         {map[string]any{"target_host": "vm"}, 201, `"machine":"vm"`},
		"any machine":         {map[string]any{"target_host": "*"}, 201, `"audience":"shapes"`},
		"any action":          {map[string]any{"action": nil, "max_risk": "medium"}, 201, `"does":["delete","read","write"],"write":["/home/p/**"],"max_risk":"medium"`},
		"no risk is medium":   {map[string]any{"max_risk": nil}, 201, `"max_risk":"medium"`},
		"timed":               {map[string]any{"grant_type": "timed", "duration": 3600}, 201, `"duration":3600`},
		"a star in one name":  {map[string]any{"resource_chain_template": link("file", "path", "/tmp/*.log")}, 201, `"read":["/tmp/*.log"]`},
		"once":                {map[string]any{"grant_type": "once"}, 400, "more than once"},
		"timed for no time":   {map[string]any{"grant_type": "timed"}, 400, "duration"},
		"timed backwards":     {map[string]any{"grant_type": "timed", "duration": -5}, 400, "duration"},
		"timed for ever":      {map[string]any{"grant_type": "timed", "duration": 1 << 40}, 400, "duration"},
		"always with an end":  {map[string]any{"duration": 5}, 400, "timed"},
		"any resource":        {map[string]any{"resource_chain_template": []any{}}, 400, "name one path"},
		"no chain":            {map[string]any{"resource_chain_template": nil}, 400, "name one path"},
		"no selector":         {map[string]any{"resource_chain_template": []any{map[string]any{"resource": "filesystem"}}}, 400, "name one path"},
		"a model account":     {map[string]any{"resource_chain_template": link("llm-account", "account", "x")}, 400, "nothing that the authority finds in a command"},
		"an argument list":    {map[string]any{"resource_chain_template": link("argv", "hash", "SHA-256:x")}, 400, "nothing that the authority finds in a command"},
		"up and out":          {map[string]any{"resource_chain_template": link("filesystem", "path", "/home/p/../../etc/shadow")}, 400, "leads through .."},
		"the whole machine":   {map[string]any{"resource_chain_template": link("filesystem", "path", "/**")}, 400, "whole machine"},
		"a star for all":      {map[string]any{"resource_chain_template": link("filesystem", "path", "*")}, 400, "absolute"},
		"a relative path":     {map[string]any{"resource_chain_template": link("filesystem", "path", "p/**")}, 400, "absolute"},
		"two links":           {map[string]any{"resource_chain_template": append(link("filesystem", "path", "/home/p/**"), link("filesystem", "path", "/a")...)}, 400, "name one path"},
		"writes alone":        {map[string]any{"action": "write"}, 400, "leave action out"},
		"deletes alone":       {map[string]any{"action": "delete", "cli_id": "rm"}, 400, "leave action out"},
		"exec":                {map[string]any{"action": "exec"}, 400, "leave action out"},
		"critical":            {map[string]any{"max_risk": "critical"}, 400, "critical"},
		"no such risk":        {map[string]any{"max_risk": "none"}, 400, "max_risk"},
		"an unknown program":  {map[string]any{"cli_id": "no-such-program"}, 400, "catalog"},
		"a path as program":   {map[string]any{"cli_id": "/bin/cat"}, 400, "catalog"},
		"any program to high": {map[string]any{"cli_id": nil, "max_risk": "high"}, 400, "medium"},
		"no audience":         {map[string]any{"audience": nil}, 400, "audience"},
		"any audience":        {map[string]any{"audience": "*"}, 400, "audience"},
		"no delegate":         {map[string]any{"delegate": nil}, 400, "agent"},
		"hidden characters":   {map[string]any{"resource_chain_template": link("filesystem", "path", "/home/\u202ep/**")}, 400, "not seen"},
		"nobody's agent":      {map[string]any{"delegate": "ghost@vm"}, 404, "no such agent"},
	} {
		a := s.owner.Post(api.PathStanding, wireStanding(s.agent.Email, test.change))
		if a.Status != test.status || !strings.Contains(string(a.Body), test.words) {
			t.Errorf("%s: %d, want %d and %q\n%.600s", name, a.Status, test.status, test.words, a.Body)
		}
		if test.status != 201 {
			a.Problem(test.status)
		}
	}
}

// TestStandingOfTheWireDecides: an unmodified client is covered by it, within it,
// and by nothing else.
func TestStandingOfTheWireDecides(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	created := reads(t, s.owner.Post(api.PathStanding, wireStanding(s.agent.Email, nil)),
		"id string", "status string", "type string", "request.delegate string", "request.audience string", "request.resource_chain_template array", "decided_by string", "created_at number")
	id := text(t, created, "id")
	ask := func(change func(map[string]any), argv ...string) api.Grant {
		body := shaped(s.agent.Email, argv...)
		if change != nil {
			change(body)
		}
		var g api.Grant
		s.agent.Post("/api/grants", body).Into(&g)
		return g
	}
	set := func(key string, value any) func(map[string]any) { return func(m map[string]any) { m[key] = value } }
	if g := ask(nil, "cat", "/home/p/a"); g.Status != grant.Approved || g.Standing != id || g.AutoKind != "standing" || g.DecidedBy != s.owner.Email {
		t.Fatalf("not covered: %+v", g)
	}
	for name, g := range map[string]api.Grant{
		"another file":         ask(nil, "cat", "/etc/passwd"),
		"out of it":            ask(nil, "cat", "/home/p/../q/a"),
		"relative":             ask(nil, "cat", "a"),
		"another program":      ask(nil, "tac", "/home/p/a"),
		"a credential":         ask(nil, "cat", "/home/p/.ssh/id_ed25519"),
		"a line":               ask(nil, "sh", "-c", "cat /home/p/a; rm -rf /home/p"),
		"another audience":     ask(set("audience", "escapes"), "cat", "/home/p/b"),
		"the shell's audience": ask(set("audience", "ape-shell"), "cat", "/home/p/b"),
		"as root":              ask(set("run_as", "root"), "cat", "/home/p/b"),
		"a program of its own": ask(func(m map[string]any) { m["execution_context"].(map[string]any)["resolved_executable"] = "/home/p/cat" }, "cat", "/home/p/c"),
		"a link that leads away": ask(func(m map[string]any) {
			m["execution_context"].(map[string]any)["links"] = map[string]string{"/home/p/d": "/etc/shadow"}
		}, "cat", "/home/p/d"),
	} {
		if g.Status != grant.Pending || g.Automatic || g.Standing != "" {
			t.Errorf("%s: %+v", name, g)
		}
	}
	reads(t, s.owner.Get(api.PathStanding), "array", "0.id string", "0.status string", "0.request.delegate string", "0.request.audience string", "0.request.resource_chain_template array", "0.use_count number")
	// The pattern never comes with the grants, nor is it one (weaknesses 6, 18).
	for _, who := range []*authoritytest.Principal{s.owner, s.agent} {
		if a := who.Get("/api/grants?limit=100").Want(200); strings.Contains(string(a.Body), `"id":"`+id+`"`) {
			t.Errorf("the list of grants holds the pattern: %.300s", a.Body)
		}
		who.Post("/api/grants/"+id+"/token", nil).Problem(404)
		who.Post("/api/grants/"+id+"/approve", nil).Problem(404)
	}
	// What it gave ends with it.
	unused := ask(nil, "cat", "/home/p/unused")
	reads(t, s.owner.Do("DELETE", api.PathStanding+"/"+id, nil), "object")
	s.agent.Post("/api/grants/"+unused.ID+"/token", nil).Problem(403)
	if g := ask(nil, "cat", "/home/p/z"); g.Status != grant.Pending {
		t.Errorf("covered by a pattern that was revoked: %+v", g)
	}
}

// TestStandingByLoginAlone: it permits, so the switch decides, agents never, and
// nobody for another's agent (weakness 2).
func TestStandingByLoginAlone(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		bearer detail.Risk
		low    int
		high   int
	}{{detail.Unrated, 403, 403}, {detail.Medium, 201, 403}, {detail.High, 201, 201}} {
		s := authoritytest.Start(t, authoritytest.WithBearer(test.bearer))
		owner, stranger := s.Owner(), s.Person("stranger@example.com")
		agent := s.Agent(owner, "bot")
		low, high := wireStanding(agent.Email, nil), wireStanding(agent.Email, map[string]any{"max_risk": "high"})
		for name, got := range map[string][2]int{
			"low":               {owner.Post(api.PathStanding, low).Status, test.low},
			"high":              {owner.Post(api.PathStanding, high).Status, test.high},
			"by the agent":      {agent.Post(api.PathStanding, low).Status, 403},
			"without a login":   {s.Stranger().Post(api.PathStanding, low).Status, 401},
			"by management":     {s.Manager().Post(api.PathStanding, low).Status, 403},
			"by another person": {stranger.Post(api.PathStanding, low).Status, map[bool]int{true: 403, false: 404}[test.low == 403]},
		} {
			if got[0] != got[1] {
				t.Errorf("bearer_decisions %s: %s: %d, want %d", test.bearer, name, got[0], got[1])
			}
		}
		if test.low == 403 {
			if p := owner.Post(api.PathStanding, low).Problem(403); !strings.Contains(p.Detail, "vogt standing add") {
				t.Errorf("the way to sign is missing: %q", p.Detail)
			}
		}
		if test.high == 201 && !s.HasRecord("trust", "standing.add", `"strength":"bearer"`, owner.Email) {
			t.Errorf("no record tells how weakly it was given: %q", s.Recorded("trust"))
		}
	}
}

// TestStandingOfTheWireEnds: timed ends when it says, always after 90 days.
func TestStandingOfTheWireEnds(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change map[string]any
		life   time.Duration
	}{
		"timed":  {map[string]any{"grant_type": "timed", "duration": 90}, 90 * time.Second},
		"always": {nil, 90 * 24 * time.Hour},
	} {
		s := newScene(t)
		s.owner.Post(api.PathStanding, wireStanding(s.agent.Email, test.change)).Want(201)
		ask := func(n int) (g api.Grant) {
			s.agent.Post("/api/grants", shaped(s.agent.Email, "cat", fmt.Sprint("/home/p/", n))).Into(&g)
			return g
		}
		s.Clock.Advance(test.life - time.Second)
		s.owner.Login()
		s.agent.Login()
		last := ask(1)
		s.Clock.Advance(time.Second)
		if last.Status != grant.Approved {
			t.Errorf("%s: not covered a second before the end: %+v", name, last)
		}
		if g := ask(2); g.Status != grant.Pending {
			t.Errorf("%s: covered at the end: %+v", name, g)
		}
		s.agent.Post("/api/grants/"+last.ID+"/token", nil).Problem(403)
	}
}
