package authority_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"vogt/internal/api"
	"vogt/internal/audit"
	"vogt/internal/authority"
	"vogt/internal/authoritytest"
	"vogt/internal/detail"
	"vogt/internal/grant"
	"vogt/internal/statement"
	"vogt/internal/store"
)

var ctx = context.Background()

// fails checks that err is one that the caller may read, with the status.
func fails(t *testing.T, what string, err error, status int) *authority.Error {
	t.Helper()
	var e *authority.Error
	if !errors.As(err, &e) || e.Status != status {
		t.Fatalf("%s: %v; want an error of status %d", what, err, status)
	}
	return e
}

// approved asks for a command and approves it.
func approved(owner, agent *authoritytest.Principal, kind grant.Type, argv ...string) api.Grant {
	g := agent.Ask(argv...)
	var end int64
	if kind == grant.Timed {
		end = agent.S.Clock.Now().Add(time.Hour).Unix()
	}
	return owner.Approve(g.ID, kind, end)
}

// consume fetches a token and spends it, and returns what came back.
func consume(t *testing.T, agent *authoritytest.Principal, id string) (out api.Consumed) {
	t.Helper()
	agent.S.Consume(id, agent.Token(id)).Want(200).Into(&out)
	return out
}

// TestLife follows one command from the request to its outcome and looks at
// everything that it leaves behind.
func TestLife(t *testing.T) {
	t.Parallel()
	var asked []grant.Grant
	s := authoritytest.Start(t, authoritytest.WithPending(func(g grant.Grant) { asked = append(asked, g) }))
	owner := s.Owner()
	agent := s.Agent(owner, "helper")

	req := authoritytest.Request("git", "push", "--force")
	req.Requester = owner.Email // a claim; the login says who asks
	g := agent.AskFor(req)
	if g.Status != grant.Pending || g.Requester != agent.Email || g.Request.Requester != agent.Email || g.Owner != owner.Email ||
		g.Risk != "high" || g.Program != "git" || g.ApproveURL != s.Pages+"/grants/"+g.ID ||
		g.ValidUntil != s.Clock.Now().Add(48*time.Hour).Unix() {
		t.Errorf("the request became %+v", g)
	}
	if len(asked) != 1 || asked[0].ID != g.ID {
		t.Errorf("a person was told of %d requests", len(asked))
	}

	s.Clock.Advance(time.Minute)
	body := owner.Signed(g.ID, grant.Once, 0)
	body.Note = "only today"
	var decided api.Decided
	owner.Post(authoritytest.GrantPath(g.ID, "approve"), body).Into(&decided)
	if d := decided.Grant; d.Status != grant.Approved || d.DecidedBy != owner.Email || d.Strength != grant.Independent || d.Note != "only today" ||
		d.DecidedAt != s.Clock.Now().Unix() || d.Digest != body.Digest.String() || decided.AuthzJWT != "" {
		t.Errorf("the answer became %+v", decided)
	}

	s.Clock.Advance(time.Minute)
	used := consume(t, agent, g.ID)
	if used.Status != "consumed" || used.Error != "" || used.Use == "" || used.Grant == nil || used.Grant.Status != grant.Used {
		t.Fatalf("the use gave %+v", used)
	}
	checkReceipt(t, s, used.Receipt, g.ID, *body.Digest)

	agent.Post(authoritytest.GrantPath(g.ID, "outcome"), api.Outcome{Use: used.Use, ExitCode: 3, DurationMS: 12}).Want(200)
	agent.Post(authoritytest.GrantPath(g.ID, "outcome"), api.Outcome{Use: used.Use}).Problem(409)
	agent.Post(authoritytest.GrantPath(g.ID, "outcome"), api.Outcome{Use: "invented"}).Problem(409)

	var receipt api.Receipt
	agent.Get(authoritytest.GrantPath(g.ID, "receipt")).Into(&receipt)
	checkReceipt(t, s, &receipt, g.ID, *body.Digest)
	var proof audit.Inclusion
	if err := json.Unmarshal(receipt.Proof, &proof); err != nil {
		t.Fatal(err)
	}
	head, err := audit.OpenCheckpoint(receipt.Checkpoint, s.Authority.LogKey())
	if err != nil {
		t.Fatal(err)
	}
	if err := proof.Verify(s.Records()[receipt.Record].Leaf, head); err != nil {
		t.Errorf("the receipt's proof: %v", err)
	}

	for _, want := range [][]string{
		{"request", g.ID, agent.Email, `"asked"`, `"risk":"high"`},
		{"decision", g.ID, owner.Email, `"approved"`, `"independent"`, body.Digest.String(), "sshsig"},
		{"intent", g.ID, agent.Email, used.Use},
		{"outcome", g.ID, `"exit_code":3`, `"claimed"`},
		{"login", agent.Email, `"key"`},
		{"trust", "agent.add", agent.Email, owner.Email},
	} {
		if !s.HasRecord(want[0], want[1:]...) {
			t.Errorf("no record %q; there are %q", want, s.Recorded(want[0]))
		}
	}
}

// checkReceipt checks what a receipt claims against its own statement.
func checkReceipt(t *testing.T, s *authoritytest.Server, r *api.Receipt, id string, digest statement.Digest) {
	t.Helper()
	if r == nil || r.GrantID != id || r.Digest != digest || r.Statement.Digest() != digest || r.Strength != grant.Independent || len(r.Evidence) == 0 {
		t.Fatalf("receipt %+v", r)
	}
	head, err := audit.OpenCheckpoint(r.Checkpoint, s.Authority.LogKey())
	if err != nil || head.Size <= r.Record {
		t.Errorf("the receipt's checkpoint covers %d records, the decision is record %d: %v", head.Size, r.Record, err)
	}
}

// TestOtherEnds: what else can become of a request, and what a client that
// goes on regardless is told.
func TestOtherEnds(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t)
	owner := s.Owner()
	agent := s.Agent(owner, "helper")

	pending := agent.Ask("a")
	agent.Post(authoritytest.GrantPath(pending.ID, "token"), nil).Problem(400)
	agent.Get(authoritytest.GrantPath(pending.ID, "receipt")).Problem(400)

	denied := agent.Ask("b")
	owner.Post(authoritytest.GrantPath(denied.ID, "deny"), api.Decide{Note: "not now"}).Want(200)
	if p := agent.Post(authoritytest.GrantPath(denied.ID, "token"), nil).Problem(403); !strings.Contains(p.Detail, "not now") {
		t.Errorf("the owner's words do not reach the agent: %+v", p)
	}
	if !s.HasRecord("decision", denied.ID, `"denied"`, owner.Email, "not now") {
		t.Error("the no is not on record")
	}

	revoked := approved(owner, agent, grant.Always, "c")
	jwt := agent.Token(revoked.ID)
	owner.Post(authoritytest.GrantPath(revoked.ID, "revoke"), nil).Want(200)
	var out api.Consumed
	s.Consume(revoked.ID, jwt).Want(200).Into(&out)
	if out.Error != "revoked" || out.Status != "revoked" || out.Use != "" || out.Receipt != nil {
		t.Errorf("consuming a revoked grant gave %+v", out)
	}
	if !s.HasRecord("revoke", revoked.ID, owner.Email) || !s.HasRecord("refusal", revoked.ID, "consume") {
		t.Error("the revocation or the refusal is not on record")
	}

	used := approved(owner, agent, grant.Once, "d")
	jwt = agent.Token(used.ID)
	s.Consume(used.ID, jwt).Want(200)
	s.Consume(used.ID, jwt).Want(200).Into(&out)
	if out.Error != "already_consumed" || out.Status != "used" {
		t.Errorf("consuming twice gave %+v", out)
	}

	always := approved(owner, agent, grant.Always, "e")
	for n := range int64(3) {
		if got := consume(t, agent, always.ID); got.Status != "valid" || got.Error != "" || got.Grant.Uses != n+1 {
			t.Errorf("use %d of an always-grant gave %+v", n+1, got)
		}
	}

	// What is settled stays settled, whoever tries.
	for _, id := range []string{denied.ID, revoked.ID, used.ID} {
		for _, verb := range []string{"deny", "revoke"} {
			if a := owner.Post(authoritytest.GrantPath(id, verb), nil); a.Status != 409 && a.Status != 410 {
				t.Errorf("%s of a settled grant: %d %.500s", verb, a.Status, a.Body)
			}
		}
	}
}

// TestRequestsThatMakeNoSense: none of them waits for a person.
func TestRequestsThatMakeNoSense(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t)
	owner := s.Owner()
	agent := s.Agent(owner, "helper")
	wire := detail.Wire{Type: detail.WireCLI, CLI: "ls", Operation: "o", Action: "exec", Display: "d", Risk: "low", Permission: "wrong", Chain: []detail.Resource{{Name: "x"}}}
	for name, change := range map[string]func(*grant.Request){
		"no host":                 func(r *grant.Request) { r.Host = "" },
		"no audience":             func(r *grant.Request) { r.Audience = "" },
		"unknown type":            func(r *grant.Request) { r.Type = "forever" },
		"negative duration":       func(r *grant.Request) { r.Type, r.Duration = grant.Timed, -1 },
		"duration without end":    func(r *grant.Request) { r.Type, r.Duration = grant.Timed, 1<<62 },
		"no command":              func(r *grant.Request) { r.Command = nil },
		"empty program":           func(r *grant.Request) { r.Command = []string{""} },
		"NUL":                     func(r *grant.Request) { r.Command = []string{"ls", "\x00"} },
		"line end in the host":    func(r *grant.Request) { r.Host = "box\nother" },
		"escape in the audience":  func(r *grant.Request) { r.Audience = "shapes\x1b[2J" },
		"line end in run_as":      func(r *grant.Request) { r.RunAs = "root\n" },
		"long host":               func(r *grant.Request) { r.Host = strings.Repeat("h", 256) },
		"two different commands":  func(r *grant.Request) { r.Context = &grant.Context{Argv: []string{"rm"}} },
		"permission not its own":  func(r *grant.Request) { r.Details = []detail.Wire{wire} },
		"too many details":        func(r *grant.Request) { r.Details = make([]detail.Wire, 65) },
		"argument list too large": func(r *grant.Request) { r.Command = []string{"ls", strings.Repeat("x", 1<<20)} },
	} {
		req := authoritytest.Request("ls")
		change(&req)
		if p := agent.Post(api.PathGrants, req).Problem(400); p.Detail == "" {
			t.Errorf("%s: %+v", name, p)
		}
	}
	if got := len(s.Recorded("request")); got != 0 {
		t.Errorf("%d nonsensical requests are on record", got)
	}
}

// TestReceiptOfErasedRecord: a receipt is read from the log; what was erased
// there cannot be proven any more, and says so.
func TestReceiptOfErasedRecord(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t)
	owner := s.Owner()
	agent := s.Agent(owner, "helper")
	g := approved(owner, agent, grant.Always, "ls")
	var index int64
	err := s.DB.Update(ctx, func(tx store.Tx) (err error) {
		if index, err = store.DecisionRecord(tx, g.ID); err == nil {
			_, err = tx.Exec(`UPDATE log_records SET salt = NULL, body = NULL WHERE idx = ?1`, index)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Authority.Record(ctx, audit.ErasureType, map[string]int64{"index": index}); err != nil {
		t.Fatal(err)
	}
	agent.Get(authoritytest.GrantPath(g.ID, "receipt")).Problem(410)
}
