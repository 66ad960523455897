package authority_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"vogt/internal/api"
	"vogt/internal/authoritytest"
	"vogt/internal/grant"
	"vogt/internal/statement"
)

// connection is a request for one from a box.
func connection(host string, port uint16, box string) grant.Request {
	r := authoritytest.Request()
	r.Command = nil
	r.Connect = &grant.Connect{Host: host, Port: port}
	r.Context = &grant.Context{Confinement: &box}
	return r
}

func TestConnectionIsBound(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t)
	owner := s.Owner()
	agent := s.Agent(owner, "bot")
	const box = "agent sha256:00 in /home/me/app, box 1"
	req := connection("app.example", 8443, box)
	lie := "connect other.example:1"
	req.Context.NetworkMode, req.Context.Executable, req.Permissions = &lie, "/usr/bin/curl", []string{"everything"}
	g := agent.AskFor(req)
	if g.Risk != "high" || g.Type != "connect" || !slices.Equal(g.Request.Permissions, []string{"network.host[name=app.example,port=8443]#connect"}) {
		t.Errorf("it became %+v, %+v", g, g.Request)
	}
	var offer api.Offer
	owner.Get(authoritytest.GrantPath(g.ID, "statement")).Want(200).Into(&offer)
	st := offer.Statement
	if st.Purpose != statement.Connect || st.Argv != nil || *st.NetworkMode != "connect app.example:8443" || *st.Confinement != box || st.Executable != nil {
		t.Errorf("what is signed is %+v", st)
	}
	// The same question of the same box joins; another host, port or box does not.
	if again := agent.AskFor(connection("app.example", 8443, box)); again.ID != g.ID {
		t.Error("the same connection made a second card")
	}
	for name, other := range map[string]grant.Request{
		"host": connection("b.example", 8443, box), "port": connection("app.example", 443, box),
		"box": connection("app.example", 8443, box+"2"),
	} {
		if asked := agent.AskFor(other); asked.ID == g.ID {
			t.Errorf("another %s joined the card", name)
		}
	}
	owner.Approve(g.ID, grant.Always, 0)
	if again := agent.AskFor(connection("app.example", 8443, box)); again.ID != g.ID || again.Status != grant.Approved {
		t.Errorf("the box asks again: %+v", again)
	}
	if other := agent.AskFor(connection("app.example", 8443, "another box")); other.Status != grant.Pending {
		t.Errorf("the permission holds for another box: %+v", other)
	}
	if got := s.Consume(g.ID, agent.Token(g.ID)); got.Status != 200 {
		t.Errorf("using it: %d", got.Status)
	}
	if !s.HasRecord("request", `"connect":"connect app.example:8443"`) {
		t.Error("the log does not name the connection")
	}
}

func TestConnectionThatNobodyIsAskedAbout(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t)
	agent := s.Agent(s.Owner(), "bot")
	for _, host := range []string{
		"127.0.0.1", "10.0.0.1", "192.168.0.1", "169.254.169.254", "0.0.0.0", "::1", "fe80::1", "fd00::1", "::ffff:1.2.3.4", "224.0.0.1",
		"localhost", "a.localhost", "router", "nas.local", "metadata.google.internal", "nas.home.arpa",
		"", ".", "a..example", "A.example", "a.example.", "a_b.example", "-a.example", "a.example\x00.b", "b\u00fccher.example", "127.1", "0x7f.1", "1.0x7f",
		"dns.google", "cloudflare-dns.com", strings.Repeat("a", 64) + ".example", strings.Repeat("a.", 127) + "example",
	} {
		if a := agent.Post(api.PathGrants, connection(host, 443, "box")); a.Status != 403 && a.Status != 400 {
			t.Errorf("%q: %d", host, a.Status)
		}
	}
	agent.Post(api.PathGrants, connection("a.example", 0, "box")).Problem(403)
	for name, change := range map[string]func(*grant.Request){
		"a command":    func(r *grant.Request) { r.Command = []string{"true"} },
		"another user": func(r *grant.Request) { r.RunAs = "root" },
		"no box":       func(r *grant.Request) { r.Context = nil },
		"an empty box": func(r *grant.Request) { empty := ""; r.Context.Confinement = &empty },
		"two lines":    func(r *grant.Request) { two := "a\nb"; r.Context.Confinement = &two },
		"a lasting":    func(r *grant.Request) { r.Type = grant.Always },
		"argv":         func(r *grant.Request) { r.Context.Argv = []string{"true"} },
	} {
		r := connection("a.example", 443, "box")
		change(&r)
		if a := agent.Post(api.PathGrants, r); a.Status != 400 {
			t.Errorf("with %s: %d", name, a.Status)
		}
	}
}

// Whoever held the connection may have been killed.
func TestConnectionWaitsShortly(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t)
	agent := s.Agent(s.Owner(), "bot")
	g := agent.AskFor(connection("a.example", 443, "box"))
	s.Clock.Advance(6 * time.Minute)
	if now := agent.Grant(g.ID); now.Status != grant.Expired {
		t.Errorf("it is %s", now.Status)
	}
}
