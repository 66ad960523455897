package authority_test

import (
	"strings"
	"testing"
	"time"

	"vogt/internal/api"
	"vogt/internal/authority"
	"vogt/internal/authoritytest"
)

func TestConnectionsAreRecorded(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t, authoritytest.WithConfig(func(c *authority.Config) { c.Limits.Creations = 10 }))
	owner, other := s.Owner(), s.Person("other@example.com")
	agent, sibling := s.Agent(owner, "bot"), s.Agent(owner, "sibling")
	email := agent.Actor().Principal.Email
	const box = "0123456789abcdef"
	report := func(serial int64, host string) api.Connections {
		return api.Connections{Agent: email, Box: box, Serial: serial, Records: []api.Connection{{Host: host, Port: 443, Verdict: "allowed", Protocol: "connect"}}}
	}
	owner.Post(api.PathConnections, report(1, "a.example")).Want(200)
	if !s.HasRecord("connections", `"source":"observed"`, `"host":"a.example"`, `"agent":"`+email+`"`) {
		t.Errorf("recorded is %q", s.Recorded("connections"))
	}
	// Sent again, it is there once; the box itself cannot pass for the owner.
	owner.Post(api.PathConnections, report(1, "a.example")).Want(200)
	if n := len(s.Recorded("connections")); n != 1 {
		t.Errorf("%d records", n)
	}
	agent.Post(api.PathConnections, report(2, "b.example")).Want(200)
	if !s.HasRecord("connections", `"source":"claimed"`, `"host":"b.example"`) || s.HasRecord("connections", `"source":"observed"`, `"host":"b.example"`) {
		t.Errorf("recorded is %q", s.Recorded("connections"))
	}
	for name, from := range map[string]*authoritytest.Principal{"another person": other, "another agent": sibling} {
		if a := from.Post(api.PathConnections, report(3, "c.example")); a.Status != 404 {
			t.Errorf("%s: %d", name, a.Status)
		}
	}
	s.Stranger().Post(api.PathConnections, report(3, "c.example")).Problem(401)
	for name, change := range map[string]func(*api.Connections){
		"no box":       func(c *api.Connections) { c.Box = "" },
		"a long box":   func(c *api.Connections) { c.Box += "0" },
		"an odd box":   func(c *api.Connections) { c.Box = strings.Repeat("x", 16) },
		"no serial":    func(c *api.Connections) { c.Serial = 0 },
		"no records":   func(c *api.Connections) { c.Records = nil },
		"too many":     func(c *api.Connections) { c.Records = make([]api.Connection, api.MaxConnections+1) },
		"no verdict":   func(c *api.Connections) { c.Records[0].Verdict = "" },
		"another word": func(c *api.Connections) { c.Records[0].Verdict = "observed" },
	} {
		s.Clock.Advance(time.Second) // a rate of its own
		r := report(9, "d.example")
		change(&r)
		if a := owner.Post(api.PathConnections, r); a.Status != 400 {
			t.Errorf("%s: %d", name, a.Status)
		}
	}
	long := report(10, strings.Repeat("h", 5000))
	owner.Post(api.PathConnections, long).Want(200)
	if recorded := s.Recorded("connections"); len(recorded[len(recorded)-1]) > 1500 {
		t.Error("a long text is kept whole")
	}
	// Reports have a rate.
	limited := false
	for i := range 40 {
		limited = limited || owner.Post(api.PathConnections, report(int64(20+i), "e.example")).Status == 429
	}
	if !limited {
		t.Error("reports have no rate")
	}
}
