package authority_test

import (
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"vogt/internal/api"
	"vogt/internal/authority"
	"vogt/internal/authoritytest"
	"vogt/internal/detail"
	"vogt/internal/grant"
	"vogt/internal/sshkey"
	"vogt/internal/statement"
)

// crossing asks for a command as root.
func crossing(agent *authoritytest.Principal, args ...string) api.Grant {
	req := authoritytest.Request(append([]string{"systemctl", "restart", "x"}, args...)...)
	req.RunAs = "root"
	return agent.AskFor(req)
}

// TestBearerDecisions: what a person's stored token may permit, under every
// value of the switch.
func TestBearerDecisions(t *testing.T) {
	t.Parallel()
	for _, limit := range []detail.Risk{detail.Unrated, detail.Low, detail.Medium, detail.High, detail.Critical} {
		t.Run(limit.String(), func(t *testing.T) {
			t.Parallel()
			s := authoritytest.Start(t, authoritytest.WithBearer(limit))
			owner := s.Owner()
			agent := s.Agent(owner, "helper")
			for name, test := range map[string]struct {
				g  api.Grant
				ok bool
			}{
				"low risk":    {agent.Ask("ls"), limit >= detail.Low},
				"medium risk": {agent.Ask("touch", "x"), limit >= detail.Medium},
				"high risk":   {agent.Ask("sh", "x.sh"), limit >= detail.High},
				"critical":    {agent.Ask("vogt", "grant", "approve", "x"), false},
				"crossing":    {crossing(agent), false},
			} {
				for _, body := range []any{nil, api.Decide{}, api.Decide{GrantType: grant.Once}} {
					a := owner.Post(authoritytest.GrantPath(test.g.ID, "approve"), body)
					if !test.ok {
						a.Problem(403)
						if !s.HasRecord("refusal", test.g.ID, owner.Email, "approve") {
							t.Errorf("%s: the refusal is not on record", name)
						}
						continue
					}
					var out api.Decided
					a.Into(&out)
					if out.Grant.Strength != grant.Bearer || out.Grant.Status != grant.Approved {
						t.Errorf("%s: %+v", name, out.Grant)
					}
					break
				}
			}
			// Enrolling is a change of trust, which only the switch admits.
			a := owner.Post(api.PathEnroll, api.Enroll{Name: "second", PublicKey: s.NewKey("k").Line})
			if want := 200; limit == detail.Unrated {
				a.Problem(403)
			} else {
				a.Want(want)
			}
			agent.Post(api.PathEnroll, api.Enroll{Name: "third", PublicKey: s.NewKey("k").Line}).Problem(403)
		})
	}
}

// TestBearerReach: under the switch a person may answer further or less far
// than was asked, and an answer without words is what was asked.
func TestBearerReach(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t, authoritytest.WithBearer(detail.High))
	owner := s.Owner()
	agent := s.Agent(owner, "helper")
	s.Clock.Advance(700 * time.Millisecond) // a statement's end has whole seconds
	ask := func(n int, kind grant.Type, duration int64) string {
		req := authoritytest.Request("cmd", fmt.Sprint(n))
		req.Type, req.Duration = kind, duration
		return agent.AskFor(req).ID
	}
	now := s.Clock.Now().Unix()
	for n, test := range []struct {
		asked    grant.Type
		duration int64
		body     any
		want     grant.Type
		ends     int64
	}{
		{grant.Once, 0, nil, grant.Once, 0},
		{grant.Timed, 60, nil, grant.Timed, now + 60},
		{grant.Timed, 60, map[string]any{}, grant.Timed, now + 60},
		{grant.Always, 0, nil, grant.Always, 0},
		{grant.Once, 0, map[string]any{"grant_type": "timed", "duration": 9}, grant.Timed, now + 9},
		{grant.Timed, 60, map[string]any{"grant_type": "once"}, grant.Once, 0},
		{grant.Timed, 60, map[string]any{"duration": 5}, grant.Timed, now + 5},
		{grant.Always, 0, map[string]any{"grant_type": "timed", "expires_at": now + 7}, grant.Timed, now + 7},
	} {
		id := ask(n, test.asked, test.duration)
		var out api.Decided
		owner.Post(authoritytest.GrantPath(id, "approve"), test.body).Into(&out)
		if out.Grant.Request.Type != test.want || out.Grant.ExpiresAt != test.ends {
			t.Errorf("asked %s/%d, answered %v: type %s until %d, want %s until %d", test.asked, test.duration, test.body,
				out.Grant.Request.Type, out.Grant.ExpiresAt, test.want, test.ends)
		}
		if test.ends != 0 {
			// What was decided is what holds, to the second.
			if r := receipt(owner, id); r.Statement.Expiry == nil || int64(*r.Statement.Expiry) != test.ends {
				t.Errorf("the statement ends at %v, the permission at %d", r.Statement.Expiry, test.ends)
			}
		}
	}
	id := ask(100, grant.Once, 0)
	for _, body := range []any{
		map[string]any{"grant_type": "timed"}, map[string]any{"grant_type": "timed", "duration": -1},
		map[string]any{"grant_type": "timed", "duration": int64(1) << 62}, map[string]any{"grant_type": "timed", "expires_at": now},
		map[string]any{"grant_type": "timed", "expires_at": int64(1) << 61}, map[string]any{"grant_type": "once", "expires_at": now + 9},
		map[string]any{"grant_type": "always", "expires_at": now + 9}, map[string]any{"grant_type": "standing"},
		map[string]any{"grant_type": "timed", "duration": 367 * 24 * 3600},
	} {
		owner.Post(authoritytest.GrantPath(id, "approve"), body).Problem(400)
	}
}

func receipt(p *authoritytest.Principal, id string) (r api.Receipt) {
	p.Get(authoritytest.GrantPath(id, "receipt")).Into(&r)
	return r
}

// TestTimedEndsWithTheStatement: the second that the statement names is the
// one at which the permission ends.
func TestTimedEndsWithTheStatement(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t, authoritytest.WithBearer(detail.High))
	owner := s.Owner()
	agent := s.Agent(owner, "helper")
	s.Clock.Advance(900 * time.Millisecond)
	g := agent.Ask("ls")
	var out api.Decided
	owner.Post(authoritytest.GrantPath(g.ID, "approve"), map[string]any{"grant_type": "timed", "duration": 10}).Into(&out)
	s.Clock.Set(time.Unix(out.Grant.ExpiresAt, 0))
	agent.Post(authoritytest.GrantPath(g.ID, "token"), nil).Problem(410)
}

// TestNeeds: what each request needs at least.
func TestNeeds(t *testing.T) {
	t.Parallel()
	requests := []grant.Grant{
		{}, {Risk: detail.Low}, {Risk: detail.High}, {Risk: detail.Critical},
		{Risk: detail.Critical, Request: grant.Request{RunAs: "root"}},
	}
	for signature, want := range map[detail.Risk][5]grant.Strength{ // require_signature
		detail.Unrated: {grant.Passkey, grant.Click, grant.Click, grant.Passkey, grant.Independent},
		detail.High:    {grant.Passkey, grant.Click, grant.Passkey, grant.Passkey, grant.Independent},
		detail.Low:     {grant.Passkey, grant.Passkey, grant.Passkey, grant.Passkey, grant.Independent},
	} {
		s := authoritytest.Start(t, authoritytest.WithConfig(func(c *authority.Config) { c.RequireSignature = signature }))
		for i, g := range requests {
			if got := s.Authority.Needs(g); got != want[i] {
				t.Errorf("risk %s as %q with require_signature %s: needs %s, want %s", g.Risk, g.Request.RunAs, signature, got, want[i])
			}
		}
	}
}

// TestClickIsNotEnough: a signed-in page that only clicks, or only has its
// cookie, and requests that need more.
func TestClickIsNotEnough(t *testing.T) {
	t.Parallel()
	w := withPasskey(t)
	answer := func(g api.Grant, proven bool) error {
		page := w.page
		page.Proven = proven
		offer, err := w.s.Authority.Offer(ctx, page, g.ID, authority.Reach{Type: grant.Once})
		if err != nil {
			t.Fatal(err)
		}
		digest := offer.Statement.Digest()
		_, err = w.s.Authority.Approve(ctx, page, g.ID, authority.Answer{Reach: authority.Reach{Type: grant.Once}, Digest: &digest})
		return err
	}
	g := w.agent.Ask("ls")
	fails(t, "a cookie without the page's own key", answer(g, false), 403)
	if err := answer(g, true); err != nil {
		t.Errorf("a click on high risk: %v", err)
	}
	fails(t, "a click on critical risk", answer(w.agent.Ask("vogt", "up"), true), 403)
	fails(t, "a click on a crossing", answer(crossing(w.agent), true), 403)

	// Nor does a cookie alone deny, revoke or stop.
	page := w.page
	page.Proven = false
	g = w.agent.Ask("touch", "x")
	_, err := w.s.Authority.Deny(ctx, page, g.ID, "")
	fails(t, "deny", err, 403)
	_, err = w.s.Authority.Revoke(ctx, page, g.ID, "")
	fails(t, "revoke", err, 403)
	_, err = w.s.Authority.Panic(ctx, page, "")
	fails(t, "panic", err, 403)
	fails(t, "deactivate", w.s.Authority.Deactivate(ctx, page, w.agent.Email), 403)
	fails(t, "remove", w.s.Authority.Remove(ctx, page, w.agent.Email), 403)
	fails(t, "pause", w.s.Authority.Pause(ctx, page, w.agent.Email), 403)
	tr, _ := w.s.Stranger().Prepare(api.TrustDevice, map[string]string{"name": "x"})
	fails(t, "decline", w.s.Authority.Decline(ctx, page, tr.ID, ""), 403)
	if got := w.agent.Grant(g.ID).Status; got != grant.Pending {
		t.Errorf("a cookie alone moved the grant to %s", got)
	}
}

// TestCriticalNeedsMore: an SSH signature and a passkey serve where a click
// does not, and a crossing takes the signature only.
func TestCriticalNeedsMore(t *testing.T) {
	t.Parallel()
	w := withPasskey(t)
	w.addKey()
	for name, g := range map[string]api.Grant{"critical": w.agent.Ask("vogt", "up"), "crossing": crossing(w.agent)} {
		err := w.approveByPasskey(t, g.ID, grant.Once)
		if name == "crossing" {
			fails(t, "a passkey for a crossing", err, 403)
			w.owner.Approve(g.ID, grant.Once, 0)
		} else if err != nil {
			t.Errorf("a passkey for critical risk: %v", err)
		}
	}
	// Neither lasts, however strong the answer.
	for _, g := range []api.Grant{w.agent.Ask("vogt", "login"), crossing(w.agent, "another")} {
		for _, kind := range []grant.Type{grant.Always, grant.Timed} {
			var end int64
			if kind == grant.Timed {
				end = w.s.Clock.Now().Add(time.Hour).Unix()
			}
			w.owner.Post(authoritytest.GrantPath(g.ID, "approve"), w.owner.Signed(g.ID, kind, end)).Problem(403)
		}
	}
}

// TestLoginSignatureDecidesNothing: a hostile server can make a client sign
// any 64 hex digits as a login, so a signature of that kind over the very
// digest must be worth nothing here (attack on the oracle).
func TestLoginSignatureDecidesNothing(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t)
	owner := s.Owner()
	agent := s.Agent(owner, "helper")
	g := agent.Ask("ls")
	good := owner.Signed(g.ID, grant.Once, 0)
	raw, err := sshkey.SignLogin(owner.Key.Private, good.Digest.String())
	if err != nil {
		t.Fatal(err)
	}
	rawBytes, err := base64.StdEncoding.DecodeString(raw)
	if err != nil {
		t.Fatal(err)
	}
	in := func(ns sshkey.Namespace, message string) string {
		sig, err := sshkey.Sign(owner.Key.Private, ns, []byte(message))
		if err != nil {
			t.Fatal(err)
		}
		return sig
	}
	agentSigned, err := agent.Key.SignDecision(*good.Digest)
	if err != nil {
		t.Fatal(err)
	}
	for name, sig := range map[string]string{
		"raw login signature":       raw,
		"the same as hex":           fmt.Sprintf("%x", rawBytes),
		"login namespace":           in(sshkey.NamespaceLogin, good.Digest.String()),
		"decision over the bytes":   in(sshkey.NamespaceDecision, string(good.Digest[:])),
		"decision with a line end":  in(sshkey.NamespaceDecision, good.Digest.String()+"\n"),
		"decision over other words": in(sshkey.NamespaceDecision, statement.Digest{1}.String()),
		"signed by the agent":       agentSigned,
		"nonsense":                  "x",
	} {
		d := good
		d.Signature = sig
		a := owner.Post(authoritytest.GrantPath(g.ID, "approve"), d)
		if a.Status != 403 {
			t.Errorf("%s: %d %.500s", name, a.Status, a.Body)
		}
	}
	if got := owner.Grant(g.ID).Status; got != grant.Pending {
		t.Fatalf("the grant is %s", got)
	}
	owner.Post(authoritytest.GrantPath(g.ID, "approve"), good).Want(200)
}

// A decision's signature is made for one grant; it serves no other, and no
// second time.
func TestSignatureServesOnce(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t)
	owner := s.Owner()
	agent := s.Agent(owner, "helper")
	first, second := agent.Ask("ls"), agent.Ask("rm", "-rf", "x")
	d := owner.Signed(first.ID, grant.Once, 0)
	owner.Post(authoritytest.GrantPath(second.ID, "approve"), d).Problem(409)
	owner.Post(authoritytest.GrantPath(first.ID, "approve"), d).Want(200)
	owner.Post(authoritytest.GrantPath(first.ID, "approve"), d).Problem(409)
	// Nor does it serve for the same command asked again.
	consume(t, agent, first.ID)
	again := agent.Ask("ls")
	owner.Post(authoritytest.GrantPath(again.ID, "approve"), d).Problem(409)
}

// TestDigestMustFit: what was shown and what is answered must be one thing.
func TestDigestMustFit(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t, authoritytest.WithBearer(detail.High))
	owner := s.Owner()
	agent := s.Agent(owner, "helper")
	g := agent.Ask("ls")
	good := owner.Signed(g.ID, grant.Once, 0)
	end := s.Clock.Now().Add(time.Hour).Unix()
	timed := owner.Signed(g.ID, grant.Timed, end)
	path := authoritytest.GrantPath(g.ID, "approve")
	for name, change := range map[string]func() api.Decide{
		"another digest": func() api.Decide { d := good; d.Digest = &statement.Digest{1}; return d },
		"wider than signed": func() api.Decide {
			d := good
			d.GrantType = grant.Always
			return d
		},
		"timed instead of once": func() api.Decide { d := good; d.GrantType, d.ExpiresAt = grant.Timed, end; return d },
		"longer than signed":    func() api.Decide { d := timed; d.ExpiresAt += 3600; return d },
		"once instead of timed": func() api.Decide { d := timed; d.GrantType, d.ExpiresAt = grant.Once, 0; return d },
		// Also where no signature would be needed: a digest that is there counts.
		"bearer with another digest": func() api.Decide { return api.Decide{GrantType: grant.Once, Digest: &statement.Digest{}} },
	} {
		if p := owner.Post(path, change()).Problem(409); p.Type != "https://openape.org/errors/statement_changed" {
			t.Errorf("%s: %+v", name, p)
		}
	}
	d := good
	d.Digest = nil
	owner.Post(path, d).Problem(400) // a signature over something that is not named
	if got := owner.Grant(g.ID).Status; got != grant.Pending {
		t.Fatalf("the grant is %s", got)
	}
	owner.Post(path, timed).Want(200)
}

// A signing key that is rotated between showing and answering changes the
// statement; the answer to the old one is refused, not bent.
func TestStatementChanges(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t)
	owner := s.Owner()
	agent := s.Agent(owner, "helper")
	g := agent.Ask("ls")
	d := owner.Signed(g.ID, grant.Once, 0)
	if err := s.Authority.RotateKeys(ctx); err != nil {
		t.Fatal(err)
	}
	owner.Post(authoritytest.GrantPath(g.ID, "approve"), d).Problem(409)
	owner.Approve(g.ID, grant.Once, 0)
}

// TestWithSSHKeygen: the signature that people make with OpenSSH's own tool
// is accepted, in the namespace of decisions and in no other.
func TestWithSSHKeygen(t *testing.T) {
	t.Parallel()
	keygen, err := exec.LookPath("ssh-keygen")
	if err != nil {
		t.Skip("ssh-keygen is not installed")
	}
	s := authoritytest.Start(t)
	owner := s.Owner()
	agent := s.Agent(owner, "helper")
	g := agent.Ask("ls")
	d := owner.Signed(g.ID, grant.Once, 0)
	for _, namespace := range []string{"file", "git", "openape", "vogt-decision-v2", "vogt-decision-v1"} {
		file := filepath.Join(t.TempDir(), "digest")
		if err := os.WriteFile(file, []byte(d.Digest.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command(keygen, "-Y", "sign", "-n", namespace, "-f", owner.Key.Path, file).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		sig, err := os.ReadFile(file + ".sig")
		if err != nil {
			t.Fatal(err)
		}
		d.Signature = string(sig)
		want := 403
		if namespace == "vogt-decision-v1" {
			want = 200
		}
		if a := owner.Post(authoritytest.GrantPath(g.ID, "approve"), d); a.Status != want {
			t.Errorf("namespace %s: %d, want %d\n%s", namespace, a.Status, want, a.Body)
		}
	}
}

// TestApeShell: its client runs whatever it likes under a lasting grant, so it
// gets none, whatever it asks for.
func TestApeShell(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t)
	owner := s.Owner()
	agent := s.Agent(owner, "helper")
	req := authoritytest.Request("bash", "-c", "ls")
	req.Audience, req.Type = "ape-shell", grant.Always
	g := agent.AskFor(req)
	if g.Request.Type != grant.Once {
		t.Errorf("it was taken as %s", g.Request.Type)
	}
	owner.Post(authoritytest.GrantPath(g.ID, "approve"), owner.Signed(g.ID, grant.Always, 0)).Problem(403)
}
