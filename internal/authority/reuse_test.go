package authority_test

import (
	"testing"
	"time"

	"vogt/internal/api"
	"vogt/internal/authoritytest"
	"vogt/internal/detail"
	"vogt/internal/grant"
	"vogt/internal/statement"
)

func pointer[T any](v T) *T { return &v }

// fullRequest is a request with every fact that a door can report.
func fullRequest() grant.Request {
	r := authoritytest.Request("git", "push")
	w := detail.Wire{
		Type: detail.WireCLI, CLI: "git", Operation: "push", Action: "exec", Display: "Push", Risk: "medium",
		Chain: []detail.Resource{{Name: "remote", Selector: map[string]string{"name": "origin"}}},
	}
	w.Permission = w.CanonicalPermission()
	r.Details = []detail.Wire{w}
	r.Context = &grant.Context{
		Argv: r.Command, AdapterID: "git", AdapterVer: "1", AdapterDig: "SHA-256:a", Executable: "/usr/bin/git",
		File: &statement.File{Path: pointer("/usr/bin/git"), SHA256: pointer("aa"), Inode: pointer(uint64(7)), Device: pointer(uint64(1)), Size: pointer(uint64(2))},
		Cwd:  &statement.File{Path: pointer("/src")}, UID: pointer(uint64(1000)), Stdin: pointer("null"),
		Interpreters: []statement.File{{Path: pointer("/bin/sh"), SHA256: pointer("bb")}},
	}
	return r
}

// differences are requests that are not the same action, however alike they
// look.
func differences() map[string]func(*grant.Request) {
	return map[string]func(*grant.Request){
		"another word":      func(r *grant.Request) { r.Command = []string{"git", "pull"}; r.Context.Argv = nil },
		"one word more":     func(r *grant.Request) { r.Command = []string{"git", "push", ""}; r.Context.Argv = nil },
		"words joined":      func(r *grant.Request) { r.Command = []string{"git push"}; r.Context.Argv = nil },
		"a path":            func(r *grant.Request) { r.Command = []string{"/usr/bin/git", "push"}; r.Context.Argv = nil },
		"cwd":               func(r *grant.Request) { r.Context.Cwd = &statement.File{Path: pointer("/other")} },
		"cwd unknown":       func(r *grant.Request) { r.Context.Cwd = nil },
		"cwd's inode":       func(r *grant.Request) { r.Context.Cwd.Inode = pointer(uint64(9)) },
		"executable digest": func(r *grant.Request) { r.Context.File.SHA256 = pointer("cc") },
		"executable path":   func(r *grant.Request) { r.Context.File.Path = pointer("/tmp/git") },
		"executable inode":  func(r *grant.Request) { r.Context.File.Inode = pointer(uint64(8)) },
		"executable device": func(r *grant.Request) { r.Context.File.Device = pointer(uint64(8)) },
		"executable size":   func(r *grant.Request) { r.Context.File.Size = pointer(uint64(8)) },
		"unknown file":      func(r *grant.Request) { r.Context.File = nil },
		"interpreter":       func(r *grant.Request) { r.Context.Interpreters[0].SHA256 = pointer("dd") },
		"no interpreter":    func(r *grant.Request) { r.Context.Interpreters = nil },
		"uid":               func(r *grant.Request) { r.Context.UID = pointer(uint64(0)) },
		"adapter digest":    func(r *grant.Request) { r.Context.AdapterDig = "SHA-256:b" },
		"no context":        func(r *grant.Request) { r.Context = nil },
		"host":              func(r *grant.Request) { r.Host = "other" },
		"audience":          func(r *grant.Request) { r.Audience = "claude-code" },
		"no details":        func(r *grant.Request) { r.Details = nil },
		"a link":            func(r *grant.Request) { r.Context.Links = map[string]string{"/src/a": "/etc/a"} },
		"details": func(r *grant.Request) {
			r.Details[0].Chain[0].Selector = map[string]string{"name": "upstream"}
			r.Details[0].Permission = r.Details[0].CanonicalPermission()
		},
		"another detail more": func(r *grant.Request) {
			r.Details = append(r.Details, detail.Wire{Type: detail.WireGrant, Action: "x"})
		},
	}
}

// likenesses are the same action, asked in other words.
func likenesses() map[string]func(*grant.Request) {
	return map[string]func(*grant.Request){
		"as it was":        func(*grant.Request) {},
		"another reason":   func(r *grant.Request) { r.Reason = "something else" },
		"a claimed sender": func(r *grant.Request) { r.Requester = "owner@example.com" },
		"a claimed hash":   func(r *grant.Request) { r.CmdHash = "0"; r.Context.ArgvHash = "SHA-256:0" },
		"a claimed risk":   func(r *grant.Request) { r.Details[0].Risk = "low" },
		"less reach":       func(r *grant.Request) { r.Type = grant.Once },
	}
}

// TestReuse: a lasting answer serves exactly the request that it was given
// for.
func TestReuse(t *testing.T) {
	t.Parallel()
	for _, kind := range []grant.Type{grant.Always, grant.Timed} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			c := newCast(t)
			req := fullRequest()
			req.Type = kind
			if kind == grant.Timed {
				req.Duration = 3600
			}
			g := c.sibling.AskFor(req)
			var end int64
			if kind == grant.Timed {
				end = c.s.Clock.Now().Add(time.Hour).Unix()
			}
			c.owner.Approve(g.ID, kind, end)

			for name, change := range likenesses() {
				again := fullRequest()
				change(&again)
				a := c.sibling.Post(api.PathGrants, again).Want(200)
				var got api.Grant
				a.Into(&got)
				if got.ID != g.ID || !got.Automatic || got.AutoKind != "reuse" || got.Status != grant.Approved {
					t.Errorf("%s: not served by the answer: %.600s", name, a.Body)
				}
			}
			for name, change := range differences() {
				again := fullRequest()
				change(&again)
				var got api.Grant
				c.sibling.Post(api.PathGrants, again).Into(&got)
				if got.ID == g.ID || got.Automatic || got.Status != grant.Pending {
					t.Errorf("another %s was served by the answer: %+v", name, got)
				}
			}
			// As another OS user, it is a crossing, and by another agent, or by
			// its owner, something else altogether.
			again := fullRequest()
			again.RunAs = "root"
			if got := c.sibling.AskFor(again); got.Automatic || got.Risk != "critical" {
				t.Errorf("as root: %+v", got)
			}
			for who, p := range map[string]*authoritytest.Principal{"another agent": c.requester, "the owner": c.owner} {
				if got := p.AskFor(fullRequest()); got.Automatic || got.ID == g.ID {
					t.Errorf("%s was served by the answer: %+v", who, got)
				}
			}
			if !c.s.HasRecord("request", g.ID, "allowed by an earlier answer") {
				t.Error("that it was served is not on record")
			}

			// It ends with the answer.
			if kind == grant.Timed {
				c.s.Clock.Set(time.Unix(end, 0).Add(-time.Millisecond))
				if got := c.sibling.AskFor(fullRequest()); !got.Automatic {
					t.Errorf("just before its end: %+v", got)
				}
				c.s.Clock.Set(time.Unix(end, 0))
			} else {
				c.owner.Post(authoritytest.GrantPath(g.ID, "revoke"), nil).Want(200)
			}
			if got := c.sibling.AskFor(fullRequest()); got.Automatic || got.ID == g.ID {
				t.Errorf("after its end: %+v", got)
			}
		})
	}
}

// TestOnceIsFoundUntilUsed: asking again for exactly what was answered finds
// the answer, and after its one use nothing.
func TestOnceIsFoundUntilUsed(t *testing.T) {
	t.Parallel()
	c := newCast(t)
	g := c.sibling.AskFor(fullRequest())
	c.owner.Approve(g.ID, grant.Once, 0)
	for name, change := range differences() {
		other := fullRequest()
		change(&other)
		if got := c.sibling.AskFor(other); got.ID == g.ID || got.Automatic {
			t.Errorf("another %s found the answer: %+v", name, got)
		}
	}
	if got := c.requester.AskFor(fullRequest()); got.ID == g.ID {
		t.Error("another agent found the answer")
	}
	again := c.sibling.AskFor(fullRequest())
	if again.ID != g.ID || again.Status != grant.Approved {
		t.Errorf("asking again: %+v", again)
	}
	if e := consume(t, c.sibling, g.ID).Error; e != "" {
		t.Fatal(e)
	}
	if got := c.sibling.AskFor(fullRequest()); got.ID == g.ID || got.Status != grant.Pending {
		t.Errorf("after its use: %+v", got)
	}
	// Nor is it found when its hour is over.
	late := c.sibling.AskFor(authoritytest.Request("late"))
	c.owner.Approve(late.ID, grant.Once, 0)
	c.s.Clock.Advance(time.Hour)
	if got := c.sibling.Ask("late"); got.ID == late.ID {
		t.Errorf("after its hour: %+v", got)
	}
}

// TestJoin: equal requests that wait are one card, however often and by how
// many calls they are asked.
func TestJoin(t *testing.T) {
	t.Parallel()
	c := newCast(t)
	first := c.sibling.AskFor(fullRequest())
	for name, change := range likenesses() {
		again := fullRequest()
		again.Type = grant.Once
		change(&again)
		a := c.sibling.Post(api.PathGrants, again).Want(200)
		var got api.Grant
		a.Into(&got)
		if got.ID != first.ID || got.Automatic {
			t.Errorf("%s did not join: %.500s", name, a.Body)
		}
	}
	if got := c.owner.Grant(first.ID).Joined; got != int64(len(likenesses())) {
		t.Errorf("%d joined, want %d", got, len(likenesses()))
	}
	for name, change := range differences() {
		again := fullRequest()
		change(&again)
		if got := c.sibling.AskFor(again); got.ID == first.ID {
			t.Errorf("another %s joined", name)
		}
	}
	// What asks for another reach is another card.
	longer := fullRequest()
	longer.Type, longer.Duration = grant.Timed, 60
	timed := c.sibling.AskFor(longer)
	longer.Duration = 61
	if other := c.sibling.AskFor(longer); timed.ID == first.ID || other.ID == timed.ID {
		t.Error("requests of different reach are one card")
	}
	// The person's answer to it is one answer.
	c.owner.Approve(first.ID, grant.Once, 0)
	jwt := c.sibling.Token(first.ID)
	for i, want := range []string{"", "already_consumed"} {
		if got := consumedError(c.s.Consume(first.ID, jwt)); got != want {
			t.Errorf("use %d of the joined requests: %q, want %q", i+1, got, want)
		}
	}
}
