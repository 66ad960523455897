package client

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"vogt/internal/api"
	"vogt/internal/client/clienttest"
	"vogt/internal/grant"
	"vogt/internal/sshkey"
	"vogt/internal/token"
)

const (
	ownerEmail = "owner@example.com"
	agentEmail = "bot-0011aabb+owner+example_com@localhost"
)

// newKey makes a key pair in a folder of its own.
func newKey(t *testing.T) (path string, public sshkey.Public) {
	t.Helper()
	pem, public, err := sshkey.Generate(rand.Reader, "test")
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "key")
	if err := sshkey.WriteNew(path, pem, public); err != nil {
		t.Fatal(err)
	}
	return path, public
}

// setUp starts an authority with an owner and an agent, and logs both in.
func setUp(t *testing.T) (a *clienttest.Authority, owner, agent *Client) {
	t.Helper()
	a = clienttest.New(t)
	home, memory := Home{Folder: t.TempDir()}, t.TempDir()
	ownerKey, ownerPublic := newKey(t)
	agentKey, agentPublic := newKey(t)
	a.AddPerson(ownerEmail, "", ownerPublic)
	a.AddPerson(agentEmail, ownerEmail, agentPublic)
	agentFile, err := home.Agent("bot")
	if err != nil {
		t.Fatal(err)
	}
	logIn := func(file File, email, key string) *Client {
		c, err := Contact(a.URL, file, Options{Memory: memory})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		if err := c.LogIn(context.Background(), email, key); err != nil {
			t.Fatal(err)
		}
		return c
	}
	return a, logIn(home.Default(), ownerEmail, ownerKey), logIn(agentFile, agentEmail, agentKey)
}

// reopen returns a client of the same identity as a new process has.
func reopen(t *testing.T, c *Client) *Client {
	t.Helper()
	again, err := Open(c.file, c.opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(again.Close)
	return again
}

func request(argv ...string) grant.Request {
	return grant.Request{Host: "h", Audience: "vogt", Type: grant.Once, Command: argv, Context: &grant.Context{Argv: argv}}
}

func wantKind(t *testing.T, err error, kind Kind) *Error {
	t.Helper()
	e, ok := errors.AsType[*Error](err)
	if !ok || e.Kind != kind {
		t.Fatalf("got %v, want kind %q", err, kind)
	}
	return e
}

func ask(t *testing.T, c *Client, argv ...string) api.Grant {
	t.Helper()
	g, err := c.Ask(context.Background(), request(argv...))
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestGrantFromAskToOutcome(t *testing.T) {
	a, _, agent := setUp(t)
	ctx := context.Background()
	g := ask(t, agent, "make", "test")
	if g.Status != grant.Pending || g.Requester != agentEmail {
		t.Fatalf("asked: %+v", g)
	}
	if again := ask(t, agent, "make", "test"); again.ID != g.ID {
		t.Errorf("an identical request became %s beside %s", again.ID, g.ID)
	}
	if _, err := agent.Redeem(ctx, g.ID, request("make", "test")); err == nil {
		t.Fatal("a pending grant was redeemed")
	}
	done := make(chan api.Grant)
	waiting := reopen(t, agent)
	go func() {
		g, err := waiting.Wait(ctx, g.ID, time.Minute)
		if err != nil {
			t.Error(err)
		}
		done <- g
	}()
	a.Settle(g.ID, grant.Approved, grant.Once)
	if got := <-done; got.Status != grant.Approved {
		t.Errorf("the wait ended with %q", got.Status)
	}
	use, err := agent.Redeem(ctx, g.ID, request("make", "test"))
	if err != nil {
		t.Fatal(err)
	}
	wantKind(t, second(agent.Redeem(ctx, g.ID, request("make", "test"))), Spent)
	if err := agent.Report(ctx, g.ID, api.Outcome{Use: use, ExitCode: 3}); err != nil {
		t.Fatal(err)
	}
	if got := a.Outcomes(); len(got) != 1 || got[0] != (api.Outcome{Use: use, ExitCode: 3}) {
		t.Errorf("reported %+v", got)
	}
}

func second[T any](_ T, err error) error { return err }

func TestWaitEnds(t *testing.T) {
	a, _, agent := setUp(t)
	for _, answer := range []grant.Status{grant.Denied, grant.Revoked, grant.Expired} {
		g := ask(t, agent, "x", string(answer))
		a.Settle(g.ID, answer, "")
		if got, err := agent.Wait(context.Background(), g.ID, time.Minute); err != nil || got.Status != answer {
			t.Errorf("%s: %q, %v", answer, got.Status, err)
		}
	}
	g := ask(t, agent, "x")
	if got, err := agent.Wait(context.Background(), g.ID, 0); err != nil || got.Status != grant.Pending {
		t.Errorf("one look: %q, %v", got.Status, err)
	}
	// The clock runs ahead of the wait, so that it ends without one.
	agent.opts.Now = func() func() time.Time {
		at := time.Now()
		return func() time.Time { at = at.Add(20 * time.Second); return at }
	}()
	if got, err := agent.Wait(context.Background(), g.ID, time.Second); err != nil || got.Status != grant.Pending {
		t.Errorf("nobody answered: %q, %v", got.Status, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := agent.Wait(ctx, g.ID, time.Minute); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}

// A restart of the authority in the middle of a wait is no answer.
func TestWaitOutlivesARestart(t *testing.T) {
	a, _, agent := setUp(t)
	g := ask(t, agent, "x")
	var away atomic.Int32
	away.Store(5)
	a.Before = func(w http.ResponseWriter, r *http.Request) bool {
		if away.Add(-1) < 0 {
			return false
		}
		panic(http.ErrAbortHandler)
	}
	var slept time.Duration
	agent.opts.Sleep = func(_ context.Context, d time.Duration) error {
		if slept += d; away.Load() == 0 {
			a.Settle(g.ID, grant.Approved, grant.Once)
		}
		return nil
	}
	got, err := agent.Wait(context.Background(), g.ID, time.Minute)
	if err != nil || got.Status != grant.Approved || slept == 0 {
		t.Errorf("%q, %v after %s", got.Status, err, slept)
	}
	away.Store(1 << 20)
	slept = 0
	e := wantKind(t, second(agent.Wait(context.Background(), g.ID, time.Hour)), Unreachable)
	if e.Where != a.URL || slept < outageLimit {
		t.Errorf("gave up after %s: %v", slept, e)
	}
}

func TestLists(t *testing.T) {
	_, owner, agent := setUp(t)
	const many = 130 // more than one page
	for i := range many {
		ask(t, agent, "x", fmt.Sprint(i))
	}
	ctx := context.Background()
	all, err := owner.Grants(ctx, Filter{})
	if err != nil || len(all) != many {
		t.Fatalf("%d grants, %v", len(all), err)
	}
	if got := all[0].Request.Command[1]; got != fmt.Sprint(many-1) {
		t.Errorf("the newest is %s", got)
	}
	if some, err := owner.Grants(ctx, Filter{Limit: 7}); err != nil || len(some) != 7 {
		t.Errorf("%d grants, %v", len(some), err)
	}
	if _, err := owner.Deny(ctx, all[3].ID, "no"); err != nil {
		t.Fatal(err)
	}
	if _, err := agent.Revoke(ctx, all[4].ID); err != nil {
		t.Fatal(err)
	}
	denied, err := owner.Grants(ctx, Filter{Status: grant.Denied})
	if err != nil || len(denied) != 1 || denied[0].ID != all[3].ID || denied[0].Note != "no" {
		t.Errorf("denied: %+v, %v", denied, err)
	}
	wantKind(t, second(owner.Deny(ctx, all[3].ID, "")), Decided)
	wantKind(t, second(owner.Grant(ctx, "nosuch")), Unknown)
}

func TestApproveBySignature(t *testing.T) {
	a, owner, agent := setUp(t)
	ctx := context.Background()
	key, err := sshkey.LoadPrivate(owner.Login().KeyPath, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, reach := range []Reach{{Type: grant.Once}, {Type: grant.Timed, End: time.Now().Unix() + 600}, {Type: grant.Always}} {
		g := ask(t, agent, "x", string(reach.Type))
		offer, err := owner.Offer(ctx, g, reach)
		if err != nil {
			t.Fatal(err)
		}
		signature, err := sshkey.Sign(key, sshkey.NamespaceDecision, []byte(offer.Digest.String()))
		if err != nil {
			t.Fatal(err)
		}
		decide := api.Decide{GrantType: reach.Type, ExpiresAt: reach.End, Digest: &offer.Digest, Signature: signature, Note: "fine"}
		got, err := owner.Approve(ctx, g.ID, decide)
		if err != nil || got.Status != grant.Approved || got.Strength != grant.Independent {
			t.Errorf("%s: %+v, %v", reach.Type, got, err)
		}
		if kept := a.Grant(g.ID); kept.Type != reach.Type || kept.ValidUntil.Seconds() != reach.End && reach.Type == grant.Timed {
			t.Errorf("%s became %s until %d", reach.Type, kept.Type, kept.ValidUntil)
		}
		if _, err := owner.Receipt(ctx, g.ID); err != nil {
			t.Error(err)
		}
	}
	g := ask(t, agent, "y")
	e := wantKind(t, second(owner.Approve(ctx, g.ID, api.Decide{GrantType: grant.Once})), Refused)
	if e.Hint == "" || strings.Contains(e.Detail, e.Hint) {
		t.Errorf("the hint %q is not apart from %q", e.Hint, e.Detail)
	}
}

// An offer that is not the statement of the grant shown must not be signed.
func TestOfferThatDoesNotFit(t *testing.T) {
	a, owner, agent := setUp(t)
	g := ask(t, agent, "echo", "harmless")
	tests := map[string]any{
		"argv": []any{"rm", "-rf", "/"}, "requester": "evil@example.com", "issuer": "http://127.0.0.1:1", "grant_id": "other",
		"purpose": "trust", "grant_type": "always", "host": "claimed:other", "run_as_name": "root", "reason": "ignore",
		"expiry": 99, "not_before": 1, "executable": map[string]any{"path": "/evil"}, "cwd": map[string]any{"path": "/evil"},
		"caller_uid": 0, "stdin": "null", "run_as_uid": 0, "interpreters": []any{map[string]any{"path": "/evil"}},
	}
	for field, value := range tests {
		t.Run(field, func(t *testing.T) {
			a.Lie = func(path string, _ http.Header, answer map[string]any) {
				if strings.HasSuffix(path, "/statement") {
					answer["statement"].(map[string]any)[field] = value
					answer["digest"] = digestOf(t, answer["statement"]) // so that only the content tells
				}
			}
			defer func() { a.Lie = nil }()
			wantKind(t, second(owner.Offer(context.Background(), g, Reach{Type: grant.Once})), Distrusted)
		})
	}
	a.Lie = func(path string, _ http.Header, answer map[string]any) {
		if strings.HasSuffix(path, "/statement") {
			answer["digest"] = strings.Repeat("0", 64)
		}
	}
	e := wantKind(t, second(owner.Offer(context.Background(), g, Reach{Type: grant.Once})), Distrusted)
	if !strings.Contains(e.Detail, "digest") {
		t.Error(e)
	}
}

func digestOf(t *testing.T, s any) string {
	t.Helper()
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var offer api.Offer
	if err := json.Unmarshal(b, &offer.Statement); err != nil {
		t.Fatal(err)
	}
	return offer.Statement.Digest().String()
}

// Every way in which an authority can answer wrongly on the way to an
// execution ends in an error, and never in a use.
func TestLyingAuthorityGetsNothingRun(t *testing.T) {
	forge := func(change func(*token.Grant)) func(*clienttest.Authority) {
		return func(a *clienttest.Authority) { a.Forge = change }
	}
	lie := func(suffix, field string, value any) func(*clienttest.Authority) {
		return func(a *clienttest.Authority) {
			a.Lie = func(path string, _ http.Header, answer map[string]any) {
				if strings.HasSuffix(path, suffix) {
					answer[field] = value
				}
			}
		}
	}
	tests := []struct {
		name string
		lie  func(*clienttest.Authority)
		kind Kind
	}{
		{"another command", forge(func(c *token.Grant) { c.Command = []string{"rm", "-rf", "/"} }), Distrusted},
		{"the same text in other words", forge(func(c *token.Grant) { c.Command = []string{"make test"} }), Distrusted},
		{"no command", forge(func(c *token.Grant) { c.Command, c.Context, c.CmdHash = nil, nil, "" }), Distrusted},
		{"another argv", forge(func(c *token.Grant) { c.Context = &grant.Context{Argv: []string{"rm"}} }), Distrusted},
		{"another argv_hash", forge(func(c *token.Grant) { c.Context = &grant.Context{ArgvHash: "SHA-256:00"} }), Distrusted},
		{"another cmd_hash", forge(func(c *token.Grant) { c.CmdHash = "00" }), Distrusted},
		{"another grant", forge(func(c *token.Grant) { c.GrantID = "other" }), Distrusted},
		{"another requester", forge(func(c *token.Grant) { c.Subject = ownerEmail }), Distrusted},
		{"another audience", forge(func(c *token.Grant) { c.Audience = "escapes" }), Distrusted},
		{"another host", forge(func(c *token.Grant) { c.Host = "elsewhere" }), Distrusted},
		{"another user", forge(func(c *token.Grant) { c.RunAs = "root" }), Distrusted},
		{"another issuer", forge(func(c *token.Grant) { c.Issuer = "http://127.0.0.1:1" }), Distrusted},
		{"a login token", forge(func(c *token.Grant) { c.Use = token.UseLogin }), Distrusted},
		{"an ended token", forge(func(c *token.Grant) { c.Expires = time.Now().Unix() - 1 }), Distrusted},
		{"an unpublished key", func(a *clienttest.Authority) {
			published := maps.Clone(a.Published)
			a.NewSigningKey()
			a.Published = published
		}, Distrusted},
		{"another key of the same name", func(a *clienttest.Authority) {
			id := a.Signing.ID
			a.NewSigningKey()
			a.Published = token.Keys{id: a.Published[a.Signing.ID]}
			a.Signing.ID = id
		}, KeyChanged},
		{"no token", lie("/token", "authz_jwt", ""), Distrusted},
		{"token of another form", lie("/token", "authz_jwt", 7), Malformed},
		{"consume without use", lie("/consume", "use_id", ""), Malformed},
		{"consume with another word", lie("/consume", "status", "approved"), Malformed},
		{"consume with an error beside success", lie("/consume", "error", "already_consumed"), Spent},
		{"receipt for another grant", lie("/consume", "receipt", map[string]any{"grant_id": "other"}), Distrusted},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a, _, agent := setUp(t)
			g := ask(t, agent, "make", "test")
			a.Settle(g.ID, grant.Approved, grant.Once)
			tt.lie(a)
			use, err := agent.Redeem(context.Background(), g.ID, request("make", "test"))
			e, ok := errors.AsType[*Error](err)
			if use != "" || !ok {
				t.Fatalf("use %q, %v", use, err)
			}
			if e.Kind != tt.kind {
				t.Errorf("got %v, want kind %q", err, tt.kind)
			}
		})
	}
}

// A rotated key is learned from the issuer, and stays known.
func TestKeyRotation(t *testing.T) {
	a, _, agent := setUp(t)
	for round := range 3 {
		a.NewSigningKey()
		g := ask(t, agent, "x", fmt.Sprint(round))
		a.Settle(g.ID, grant.Approved, grant.Once)
		if _, err := agent.Redeem(context.Background(), g.ID, request("x", fmt.Sprint(round))); err != nil {
			t.Fatal(err)
		}
	}
	keys, err := token.ParseJWKS(reopen(t, agent).Login().Keys)
	if err != nil || len(keys) != 4 {
		t.Errorf("%d keys are kept, %v", len(keys), err)
	}
}

func TestClockHint(t *testing.T) {
	a, _, agent := setUp(t)
	g := ask(t, agent, "x")
	a.Settle(g.ID, grant.Approved, grant.Once)
	now := time.Now
	agent.opts.Now = func() time.Time { return now().Add(20 * time.Minute) }
	e := wantKind(t, second(agent.Redeem(context.Background(), g.ID, request("x"))), Distrusted)
	if !strings.Contains(e.Hint, "20m0s ahead") {
		t.Errorf("the hint does not name the clock: %v", e)
	}
	var notices []Notice
	opts := agent.opts
	opts.Warn = func(n Notice) { notices = append(notices, n) }
	opts.Now = func() time.Time { return now().Add(-3 * time.Hour) }
	c, err := Contact(a.URL, agent.file, opts)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.LogIn(context.Background(), agentEmail, agent.Login().KeyPath); err != nil {
		t.Fatal(err)
	}
	if len(notices) != 1 || notices[0].Kind != ClockDiffers || !strings.Contains(notices[0].Detail, "behind") {
		t.Errorf("notices: %+v", notices)
	}
}

func TestRenewal(t *testing.T) {
	ctx := context.Background()
	t.Run("shortly before the end", func(t *testing.T) {
		a, _, agent := setUp(t)
		old := agent.Login().Token
		end := time.Unix(agent.Login().Expires, 0)
		agent.opts.Now = func() time.Time { return end.Add(-renewal) }
		a.Offset = time.Until(end.Add(-renewal))
		if _, err := agent.Me(ctx); err != nil {
			t.Fatal(err)
		}
		if agent.Login().Token == old || reopen(t, agent).Login().Token != agent.Login().Token {
			t.Error("the login was not renewed, or not written")
		}
	})
	t.Run("once when it is refused", func(t *testing.T) {
		a, _, agent := setUp(t)
		a.RevokeLogins()
		var logins atomic.Int32
		a.Before = func(_ http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == api.PathAuthenticate {
				logins.Add(1)
			}
			return false
		}
		if _, err := agent.Me(ctx); err != nil || logins.Load() != 1 {
			t.Errorf("%v after %d logins", err, logins.Load())
		}
		a.Before = func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == api.PathAuthenticate {
				logins.Add(1)
			}
			if r.URL.Path == api.PathWhoAmI {
				w.WriteHeader(http.StatusUnauthorized)
				return true
			}
			return false
		}
		wantKind(t, second(agent.Me(ctx)), NotLoggedIn)
		if logins.Load() != 2 {
			t.Errorf("%d logins, want one more", logins.Load())
		}
	})
	t.Run("by one of many processes", func(t *testing.T) {
		a, _, agent := setUp(t)
		a.RevokeLogins()
		var logins atomic.Int32
		a.Before = func(_ http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == api.PathAuthenticate {
				logins.Add(1)
			}
			return false
		}
		var all sync.WaitGroup
		for range 8 {
			c := reopen(t, agent)
			all.Go(func() {
				if _, err := c.Me(ctx); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if logins.Load() != 1 {
			t.Errorf("8 processes logged in %d times", logins.Load())
		}
	})
	t.Run("not without a key", func(t *testing.T) {
		a, owner, _ := setUp(t)
		login := owner.login
		login.KeyPath = ""
		if err := owner.file.Save(login); err != nil {
			t.Fatal(err)
		}
		a.RevokeLogins()
		wantKind(t, second(reopen(t, owner).Me(ctx)), NotLoggedIn)
	})
	t.Run("not as somebody else", func(t *testing.T) {
		a, owner, agent := setUp(t)
		a.RevokeLogins()
		if err := agent.file.Save(owner.login); err != nil {
			t.Fatal(err)
		}
		e := wantKind(t, second(agent.Me(ctx)), NotLoggedIn)
		if !strings.Contains(e.Detail, ownerEmail) {
			t.Error(e)
		}
	})
}

func TestLoginRefuses(t *testing.T) {
	ctx := context.Background()
	key, public := newKey(t)
	otherKey, _ := newKey(t)
	contact := func(t *testing.T, a *clienttest.Authority) *Client {
		c, err := Contact(a.URL, Home{Folder: t.TempDir()}.Default(), Options{Memory: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	tests := []struct {
		name string
		lie  func(*clienttest.Authority)
		key  string
		kind Kind
	}{
		{"wrong key", func(*clienttest.Authority) {}, otherKey, NotLoggedIn},
		{"no key", func(*clienttest.Authority) {}, "/nosuch/key", KeyLocked},
		{"another issuer", field(api.PathHealth, "issuer", "https://evil.example"), key, WrongIssuer},
		{"another log key in the answer", field(api.PathAuthenticate, "log_key", "evil+00000000+AAAA"), key, KeyChanged},
		{"somebody else", field(api.PathAuthenticate, "email", "evil@example.com"), key, Distrusted},
		{"neither person nor agent", field(api.PathAuthenticate, "act", map[string]any{"sub": "x"}), key, Malformed},
		{"no token", field(api.PathAuthenticate, "token", ""), key, Malformed},
		// A challenge that is something else in truth: the digest of a decision
		// has the same form, so what protects is that decisions are never signed
		// raw; anything of another form is not signed at all.
		{"a text as challenge", field(api.PathChallenge, "challenge", "sign this, please"), key, Distrusted},
		{"no keys", field(api.PathJWKS, "keys", []any{}), key, Malformed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := clienttest.New(t)
			a.AddPerson(ownerEmail, "", public)
			tt.lie(a)
			c := contact(t, a)
			wantKind(t, c.LogIn(ctx, ownerEmail, tt.key), tt.kind)
			if _, err := c.file.Load(); err == nil {
				t.Error("an identity was written")
			}
		})
	}
}

func field(path, name string, value any) func(*clienttest.Authority) {
	return func(a *clienttest.Authority) {
		a.Lie = func(p string, _ http.Header, answer map[string]any) {
			if p == path {
				answer[name] = value
			}
		}
	}
}

// The key of the log is pinned: for the identity, and for every identity that
// meets the same authority later.
func TestLogKeyIsPinned(t *testing.T) {
	a, owner, agent := setUp(t)
	a.NewLog()
	ctx := context.Background()
	a.RevokeLogins()
	e := wantKind(t, second(agent.Me(ctx)), KeyChanged)
	if !strings.Contains(e.Hint, agent.opts.Memory) {
		t.Errorf("the hint does not say what to do: %v", e)
	}
	fresh, err := Contact(a.URL, Home{Folder: t.TempDir()}.Default(), owner.opts)
	if err != nil {
		t.Fatal(err)
	}
	wantKind(t, fresh.LogIn(ctx, ownerEmail, owner.Login().KeyPath), KeyChanged)
}

func TestCheckpointsAreCompared(t *testing.T) {
	ctx := context.Background()
	t.Run("they go out and come back", func(t *testing.T) {
		a, _, agent := setUp(t)
		var sent []int64
		a.Before = func(_ http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == api.PathWhoAmI {
				sent = append(sent, clienttest.SeenCheckpoint(r))
			}
			return false
		}
		for range 3 {
			a.Write("test")
			if _, err := agent.Me(ctx); err != nil {
				t.Fatal(err)
			}
		}
		if want := []int64{-1, a.Size() - 2, a.Size() - 1}; !slices.Equal(sent, want) {
			t.Errorf("sent %v, want %v", sent, want)
		}
	})
	t.Run("a fork", func(t *testing.T) {
		a, owner, agent := setUp(t)
		a.Write("test")
		if _, err := agent.Me(ctx); err != nil {
			t.Fatal(err)
		}
		a.Restore(2)
		for range 9 {
			a.Write("another-history")
		}
		// Every identity of the home remembers the same.
		e := wantKind(t, second(owner.Me(ctx)), Forked)
		if len(e.Evidence) != 1 {
			t.Fatalf("evidence %q", e.Evidence)
		}
		if _, err := os.Stat(e.Evidence[0]); err != nil {
			t.Error(err)
		}
		wantKind(t, second(agent.Me(ctx)), Forked) // it does not go away
	})
	t.Run("a restore", func(t *testing.T) {
		a, owner, agent := setUp(t)
		for range 5 {
			a.Write("test")
		}
		if _, err := agent.Me(ctx); err != nil {
			t.Fatal(err)
		}
		was := a.Size()
		a.Restore(3)
		a.Write("epoch")
		wantKind(t, second(agent.Me(ctx)), Behind)
		before, now, err := owner.Accept(ctx)
		if err != nil || before != was || now != 4 {
			t.Fatalf("accepted %d instead of %d, %v", now, before, err)
		}
		if _, err := reopen(t, agent).Me(ctx); err != nil {
			t.Errorf("after it was accepted: %v", err)
		}
	})
	t.Run("none", func(t *testing.T) {
		a, _, agent := setUp(t)
		a.Lie = func(_ string, header http.Header, _ map[string]any) { header.Del(api.CheckpointHeader) }
		wantKind(t, second(agent.Me(ctx)), Distrusted)
	})
	t.Run("of another key", func(t *testing.T) {
		a, _, agent := setUp(t)
		a.NewLog()
		wantKind(t, second(agent.Me(ctx)), Distrusted)
	})
	t.Run("in the receipt", func(t *testing.T) {
		a, _, agent := setUp(t)
		g := ask(t, agent, "x")
		a.Settle(g.ID, grant.Approved, grant.Once)
		a.Lie = func(path string, _ http.Header, answer map[string]any) {
			if strings.HasSuffix(path, "/consume") {
				answer["receipt"].(map[string]any)["checkpoint"] = "forged"
			}
		}
		if use, err := agent.Redeem(ctx, g.ID, request("x")); use != "" || err == nil {
			t.Errorf("use %q, %v", use, err)
		}
	})
}

func TestVerifyLog(t *testing.T) {
	a, owner, _ := setUp(t)
	ctx := context.Background()
	if _, err := owner.Me(ctx); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		a.Write("test")
	}
	report, err := owner.VerifyLog(ctx)
	if err != nil || report.Size != a.Size() || len(report.Compared) != 2 {
		t.Fatalf("%+v, %v", report, err)
	}
	a.Falsify(7)
	if _, err := owner.VerifyLog(ctx); err == nil || !strings.Contains(err.Error(), "record 7") {
		t.Errorf("a falsified record: %v", err)
	}
}

func TestOutbox(t *testing.T) {
	a, _, agent := setUp(t)
	ctx := context.Background()
	g := ask(t, agent, "x")
	a.Settle(g.ID, grant.Approved, grant.Once)
	use, err := agent.Redeem(ctx, g.ID, request("x"))
	if err != nil {
		t.Fatal(err)
	}
	a.Before = func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	}
	if err := agent.Report(ctx, g.ID, api.Outcome{Use: use, ExitCode: 7}); err != nil {
		t.Fatalf("it was not kept: %v", err)
	}
	kept, err := agent.outbox.names()
	if err != nil || len(kept) != 1 {
		t.Fatalf("kept %q, %v", kept, err)
	}
	if len(a.Outcomes()) != 0 {
		t.Fatal("it arrived although the authority was away")
	}
	// Still away: it stays.
	second(reopen(t, agent).Me(ctx))
	a.Before = nil
	// What is no outcome does not hold the others up.
	if err := os.WriteFile(filepath.Join(agent.outbox.folder, "0.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := reopen(t, agent).Me(ctx); err != nil {
		t.Fatal(err)
	}
	if got := a.Outcomes(); len(got) != 1 || got[0].ExitCode != 7 {
		t.Errorf("reported %+v", got)
	}
	if kept, err := agent.outbox.names(); err != nil || len(kept) != 0 {
		t.Errorf("still kept %q, %v", kept, err)
	}
	// The same again is refused by the authority, and dropped.
	if err := agent.Report(ctx, g.ID, api.Outcome{Use: use}); err == nil {
		t.Error("a second report was taken")
	}
}

// A use is chosen by the authority and becomes a file's name.
func TestOutboxNames(t *testing.T) {
	folder := t.TempDir()
	o := outbox{folder: filepath.Join(folder, "outbox")}
	for _, use := range []string{"", "../evil", "/etc/evil", "a/b", ".hidden", "a\x00b", strings.Repeat("a", 101)} {
		if err := o.keep("g", api.Outcome{Use: use}); err == nil {
			t.Errorf("%q was kept", use)
		}
	}
	if entries, err := os.ReadDir(folder); err != nil || len(entries) > 1 {
		t.Errorf("%v, %v", entries, err)
	}
}

// Answers that no authority gives.
func TestHostileAnswers(t *testing.T) {
	tests := []struct {
		name   string
		answer func(w http.ResponseWriter, r *http.Request)
		kind   Kind
	}{
		{"redirect", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/steal", http.StatusTemporaryRedirect)
		}, Distrusted},
		{"no JSON", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "<html>hello") }, Malformed},
		{"nothing", func(http.ResponseWriter, *http.Request) {}, Malformed},
		{"huge", func(w http.ResponseWriter, _ *http.Request) {
			w.Write([]byte(`{"email":"`))
			chunk := []byte(strings.Repeat("a", 1<<20))
			for range maxAnswer>>20 + 1 {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
		}, Malformed},
		{"cut off", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			io.WriteString(w, "{")
		}, Unreachable},
		{"internal error", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }, Malformed},
		{"full", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(507) }, Unreachable},
		{"problem that is none", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(403)
			io.WriteString(w, "no")
		}, Refused},
		{"huge problem", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(403)
			io.WriteString(w, `{"title":"`+strings.Repeat("a", 1<<20)+`"}`)
		}, Refused},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a, _, agent := setUp(t)
			stolen := false
			a.Before = func(w http.ResponseWriter, r *http.Request) bool {
				stolen = stolen || r.URL.Path == "/steal"
				tt.answer(w, r)
				return true
			}
			e := wantKind(t, second(agent.Me(context.Background())), tt.kind)
			if len(e.Error()) > 2000 {
				t.Errorf("the message has %d bytes", len(e.Error()))
			}
			if stolen {
				t.Error("the redirect was followed")
			}
		})
	}
}

// A body that comes a byte at a time for ever ends with the exchange's limit.
func TestSlowAnswer(t *testing.T) {
	a, _, agent := setUp(t)
	release := make(chan struct{})
	defer close(release)
	a.Before = func(w http.ResponseWriter, r *http.Request) bool {
		io.WriteString(w, "{")
		http.NewResponseController(w).Flush()
		select {
		case <-release:
		case <-r.Context().Done():
		}
		return true
	}
	var p api.Principal
	_, err := agent.wire.send(context.Background(), call{method: http.MethodGet, path: api.PathWhoAmI, answer: &p, limit: 50 * time.Millisecond})
	e := wantKind(t, err, Unreachable)
	if !strings.Contains(e.Detail, "no answer within 50ms") {
		t.Error(e)
	}
}

func TestBusyAuthority(t *testing.T) {
	tests := []struct {
		name       string
		retryAfter []string // of the refusals in turn
		slept      []time.Duration
		kind       Kind // 0 for success
		fails      bool
	}{
		{"short wait", []string{"2"}, []time.Duration{2 * time.Second}, 0, false},
		{"twice", []string{"1", "3"}, []time.Duration{time.Second, 3 * time.Second}, 0, false},
		{"at once", []string{"0"}, []time.Duration{100 * time.Millisecond}, 0, false},
		{"for ever", []string{"1", "1", "1", "1"}, []time.Duration{time.Second, time.Second}, Busy, true},
		{"too long", []string{"30"}, nil, Busy, true},
		{"not said", []string{""}, nil, Busy, true},
		{"nonsense", []string{"-5"}, nil, Busy, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a, _, agent := setUp(t)
			refusals := slices.Clone(tt.retryAfter)
			a.Before = func(w http.ResponseWriter, _ *http.Request) bool {
				if len(refusals) == 0 {
					return false
				}
				if refusals[0] != "" {
					w.Header().Set("Retry-After", refusals[0])
				}
				refusals = refusals[1:]
				w.WriteHeader(http.StatusTooManyRequests)
				return true
			}
			var slept []time.Duration
			agent.wire.sleep = func(_ context.Context, d time.Duration) error {
				slept = append(slept, d)
				return nil
			}
			err := second(agent.Me(context.Background()))
			if !tt.fails && err != nil {
				t.Fatal(err)
			}
			if tt.fails {
				wantKind(t, err, tt.kind)
			}
			if !slices.Equal(slept, tt.slept) {
				t.Errorf("slept %v, want %v", slept, tt.slept)
			}
		})
	}
}

func TestClosedPort(t *testing.T) {
	a, _, agent := setUp(t)
	a.Stop()
	e := wantKind(t, second(agent.Me(context.Background())), Unreachable)
	if e.Where != a.URL || !strings.Contains(e.Error(), "refused") {
		t.Error(e)
	}
}

func TestAddresses(t *testing.T) {
	for address, want := range map[string]string{
		"http://127.0.0.1:8648":        "http://127.0.0.1:8648",
		"http://127.0.0.1:8648/":       "http://127.0.0.1:8648",
		"http://[::1]:8648":            "http://[::1]:8648",
		"http://LocalHost:1":           "http://localhost:1",
		"http://vogt.localhost":        "http://vogt.localhost",
		"https://Vogt.Example.com":     "https://vogt.example.com",
		"http://vogt.example.com":      "",
		"http://10.0.0.1:8648":         "",
		"http://localhost.example.com": "",
		"http://127.0.0.1.example.com": "",
		"ftp://127.0.0.1":              "",
		"127.0.0.1:8648":               "",
		"http://":                      "",
		"":                             "",
		"http://user@127.0.0.1":        "",
		"http://127.0.0.1/path":        "",
		"http://127.0.0.1?x=y":         "",
		"http://127.0.0.1#x":           "",
		"http://[::1":                  "",
		"http://127.0.0.1\n.evil":      "",
	} {
		u, err := parseAuthority(address)
		if want == "" {
			if err == nil {
				t.Errorf("%q was accepted as %s", address, u)
			}
			continue
		}
		if err != nil || u.String() != want {
			t.Errorf("%q became %v, %v", address, u, err)
		}
	}
}

// No variable leads the way to this machine's own authority elsewhere, and no
// name server is asked for it.
func TestLoopbackIsDirect(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	t.Setenv("ALL_PROXY", "http://127.0.0.1:1")
	a, _, agent := setUp(t)
	if _, err := agent.Me(context.Background()); err != nil {
		t.Error(err)
	}
	_, port, err := net.SplitHostPort(strings.TrimPrefix(a.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	w, err := newWire("http://no-such-name.localhost:"+port, sleep)
	if err != nil {
		t.Fatal(err)
	}
	var h api.Health
	if _, err := w.send(context.Background(), call{method: http.MethodGet, path: api.PathHealth, answer: &h}); err != nil || h.Issuer != a.URL {
		t.Errorf("%+v, %v", h, err)
	}
}

func TestLogOut(t *testing.T) {
	a, owner, agent := setUp(t)
	ctx := context.Background()
	raw := owner.Login().Token
	if err := owner.LogOut(ctx); err != nil {
		t.Fatal(err)
	}
	wantKind(t, second(owner.file.Load()), NotLoggedIn)
	if _, err := owner.wire.send(ctx, call{method: http.MethodGet, path: api.PathWhoAmI, bearer: raw}); err == nil {
		t.Error("the token still works")
	}
	a.Stop()
	if err := agent.LogOut(ctx); err == nil {
		t.Error("nothing says that the token still lives")
	}
	wantKind(t, second(agent.file.Load()), NotLoggedIn)
}

func TestLoginFile(t *testing.T) {
	file := Home{Folder: t.TempDir()}.Default()
	const text = `{"idp":"http://127.0.0.1:1","email":"a@b","refresh_token":"r","nested":{"x":[1,2]},"expires_at":5}`
	if err := os.WriteFile(file.Path(), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := file.Locked(context.Background(), func(l Login) (Login, error) {
		l.Token, l.Expires = "t", 0
		return l, nil
	})
	if err != nil || l.Token != "t" {
		t.Fatal(l, err)
	}
	var all map[string]any
	data, err := os.ReadFile(file.Path())
	if err != nil || json.Unmarshal(data, &all) != nil {
		t.Fatal(string(data), err)
	}
	want := map[string]any{"idp": "http://127.0.0.1:1", "email": "a@b", "refresh_token": "r", "nested": map[string]any{"x": []any{1.0, 2.0}}, "access_token": "t"}
	if !reflect.DeepEqual(all, want) {
		t.Errorf("the file holds %v, want %v", all, want)
	}
	if info, err := os.Stat(file.Path()); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if _, err := file.Locked(context.Background(), func(l Login) (Login, error) { return Login{}, errors.New("no") }); err == nil {
		t.Error("the error was lost")
	}
	if again, err := file.Load(); err != nil || again.Token != "t" {
		t.Errorf("a change that failed was written: %+v, %v", again, err)
	}
}

// The list of keys must be that of the fields, or a field would be kept twice.
func TestLoginKeys(t *testing.T) {
	var names []string
	typ := reflect.TypeFor[Login]()
	for i := range typ.NumField() {
		if tag := typ.Field(i).Tag.Get("json"); tag != "" {
			name, _, _ := strings.Cut(tag, ",")
			names = append(names, name)
		}
	}
	if !slices.Equal(names, loginKeys[:]) {
		t.Errorf("fields %q, keys %q", names, loginKeys)
	}
}

func TestDamagedLoginFiles(t *testing.T) {
	tests := map[string]struct {
		content string
		mode    os.FileMode
	}{
		"empty":        {"", 0o600},
		"cut off":      {`{"idp":"http://127.0.0.1:1","ema`, 0o600},
		"no JSON":      {"hello", 0o600},
		"list":         {"[]", 0o600},
		"null":         {"null", 0o600},
		"no identity":  {`{"idp":"http://127.0.0.1:1"}`, 0o600},
		"no authority": {`{"email":"a@b"}`, 0o600},
		"wrong type":   {`{"idp":"http://127.0.0.1:1","email":"a@b","expires_at":"soon"}`, 0o600},
		"huge":         {`{"idp":"http://127.0.0.1:1","email":"a@b","x":"` + strings.Repeat("a", maxLogin) + `"}`, 0o600},
		"open to all":  {`{"idp":"http://127.0.0.1:1","email":"a@b"}`, 0o644},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			file := Home{Folder: t.TempDir()}.Default()
			if err := os.WriteFile(file.Path(), []byte(tt.content), tt.mode); err != nil {
				t.Fatal(err)
			}
			_, err := Open(file, Options{Memory: t.TempDir()})
			e := wantKind(t, err, BadFile)
			if e.Where != file.Path() || !strings.Contains(e.Hint, "vogt login") {
				t.Errorf("the error does not name file and remedy: %v", e)
			}
		})
	}
	_, err := Open(Home{Folder: t.TempDir()}.Default(), Options{})
	wantKind(t, err, NotLoggedIn)
}

// A login mends a damaged file and keeps what other programs wrote into one
// that is not.
func TestLoginOverAnother(t *testing.T) {
	a, owner, _ := setUp(t)
	for _, content := range []string{"{", `{"idp":"http://127.0.0.1:1","email":"x@y","extra":1}`} {
		if err := os.WriteFile(owner.file.Path(), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := Contact(a.URL, owner.file, owner.opts)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.LogIn(context.Background(), ownerEmail, owner.Login().KeyPath); err != nil {
			t.Fatal(err)
		}
		l, err := owner.file.Load()
		if err != nil || l.Email != ownerEmail || strings.Contains(content, "extra") != (l.unknown["extra"] != nil) {
			t.Errorf("%+v, %v", l, err)
		}
	}
}

func FuzzLoginFile(f *testing.F) {
	f.Add([]byte(`{"idp":"x","email":"y","z":{"a":1}}`))
	f.Add([]byte(`{"idp":null,"jwks":[]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var l Login
		if json.Unmarshal(data, &l) != nil {
			return
		}
		out, err := json.Marshal(l)
		if err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		var again Login
		if err := json.Unmarshal(out, &again); err != nil {
			t.Fatalf("what was written cannot be read: %v", err)
		}
		if again.Email != l.Email || again.Token != l.Token || len(again.unknown) != len(l.unknown) {
			t.Fatalf("%s became %s", data, out)
		}
	})
}

func TestAgentNames(t *testing.T) {
	for _, name := range []string{"a", "bot", "a-1", "a23456789012345678901234"} {
		if err := CheckAgentName(name); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{"", "A", "1a", "-a", "a_b", "a.b", "../a", "a/b", "ä", "a ", "a234567890123456789012345"} {
		if CheckAgentName(name) == nil {
			t.Errorf("%q was accepted", name)
		}
	}
}

func TestTrust(t *testing.T) {
	a, owner, agent := setUp(t)
	ctx := context.Background()
	_, public := newKey(t)
	key, err := sshkey.LoadPrivate(owner.Login().KeyPath, nil)
	if err != nil {
		t.Fatal(err)
	}
	params := map[string]string{"name": "helper", "public_key": public.String()}
	change, err := owner.Prepare(ctx, api.TrustAgentAdd, params)
	if err != nil {
		t.Fatal(err)
	}
	done, err := confirm(t, owner, change, key)
	if err != nil || done.Enrolled == nil || done.Enrolled.Name != "helper" {
		t.Fatalf("%+v, %v", done, err)
	}
	agents, err := owner.Agents(ctx)
	if err != nil || len(agents) != 2 {
		t.Fatalf("%+v, %v", agents, err)
	}
	if err := owner.Pause(ctx, done.Enrolled.Email); err != nil {
		t.Fatal(err)
	}
	if p, err := owner.Agent(ctx, done.Enrolled.Email); err != nil || !p.Paused {
		t.Errorf("%+v, %v", p, err)
	}
	if err := owner.RemoveAgent(ctx, done.Enrolled.Email); err != nil {
		t.Fatal(err)
	}
	wantKind(t, second(owner.Agent(ctx, done.Enrolled.Email)), Unknown)

	t.Run("by the page", func(t *testing.T) {
		change, err := agent.Prepare(ctx, api.TrustAgentAdd, params)
		if err != nil {
			t.Fatal(err)
		}
		wantKind(t, second(agent.Statement(change)), Refused) // an agent is shown none
		if a.ConfirmAll(ownerEmail) != 1 {
			t.Fatal("nothing was there to confirm")
		}
		if done, err := agent.AwaitChange(ctx, change); err != nil || done.Enrolled == nil {
			t.Errorf("%+v, %v", done, err)
		}
	})
	t.Run("declined", func(t *testing.T) {
		change, err := owner.Prepare(ctx, api.TrustAgentResume, map[string]string{})
		if err != nil {
			t.Fatal(err)
		}
		a.DeclineAll()
		wantKind(t, second(owner.AwaitChange(ctx, change)), NotConfirmed)
	})
	t.Run("another change", func(t *testing.T) {
		for field, value := range map[string]any{"operation": "key.add", "params": map[string]any{"name": "evil"}, "id": ""} {
			a.Lie = func(path string, _ http.Header, answer map[string]any) {
				if path == api.PathTrust {
					answer[field] = value
				}
			}
			wantKind(t, second(owner.Prepare(ctx, api.TrustAgentAdd, params)), Distrusted)
		}
		for field, value := range map[string]any{"argv": []any{"key.add"}, "owner": "x@y", "purpose": "run", "grant_id": "x", "issuer": "x"} {
			a.Lie = func(path string, _ http.Header, answer map[string]any) {
				if path == api.PathTrust {
					answer["statement"].(map[string]any)[field] = value
					answer["digest"] = digestOf(t, answer["statement"])
				}
			}
			change, err := owner.Prepare(ctx, api.TrustAgentAdd, params)
			if err != nil {
				t.Fatal(err)
			}
			wantKind(t, second(confirm(t, owner, change, key)), Distrusted)
		}
		a.Lie = nil
	})
}

// confirm signs a change as a command does.
func confirm(t *testing.T, c *Client, change Change, key *sshkey.Private) (api.Trust, error) {
	t.Helper()
	s, err := c.Statement(change)
	if err != nil {
		return api.Trust{}, err
	}
	digest := s.Digest()
	signature, err := sshkey.Sign(key, sshkey.NamespaceDecision, []byte(digest.String()))
	if err != nil {
		t.Fatal(err)
	}
	return c.Confirm(context.Background(), change, digest, signature)
}

func TestDeviceLogin(t *testing.T) {
	a := clienttest.New(t)
	_, public := newKey(t)
	a.AddPerson(ownerEmail, "", public)
	ctx := context.Background()
	c, err := Contact(a.URL, Home{Folder: t.TempDir()}.Default(), Options{Memory: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	change, err := c.Prepare(ctx, api.TrustDevice, map[string]string{"name": "laptop"})
	if err != nil {
		t.Fatal(err)
	}
	a.ConfirmAll(ownerEmail)
	done, err := c.AwaitChange(ctx, change)
	if err != nil || done.Login == nil {
		t.Fatalf("%+v, %v", done, err)
	}
	if err := c.LogInWith(ctx, *done.Login); err != nil {
		t.Fatal(err)
	}
	if p, err := reopen(t, c).Me(ctx); err != nil || p.Email != ownerEmail {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestPanicAndRecords(t *testing.T) {
	a, owner, _ := setUp(t)
	ctx := context.Background()
	if got, err := owner.Panic(ctx, "why"); err != nil || got.Grants != 3 {
		t.Errorf("%+v, %v", got, err)
	}
	after := a.Size() - 2
	page, err := owner.Records(ctx, LogQuery{After: &after})
	if err != nil || len(page.Records) != 1 || page.Records[0].Type != "panic" {
		t.Errorf("%+v, %v", page, err)
	}
	before := a.Size()
	page, err = owner.Records(ctx, LogQuery{Before: &before, Limit: 2})
	if err != nil || len(page.Records) != 2 || page.Records[0].Index != before-1 {
		t.Errorf("%+v, %v", page, err)
	}
	var b strings.Builder
	if err := owner.Export(ctx, &b, false); err != nil || !strings.HasSuffix(b.String(), "}\n") {
		t.Errorf("%q, %v", b.String(), err)
	}
}
