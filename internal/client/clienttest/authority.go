// Package clienttest is an authority in miniature for tests of the client and
// of the commands: it keeps grants in the real state machine, issues real
// tokens, verifies real signatures and keeps a real log, all in memory.
//
// It owns the ways to lie that a test needs: a test can change any answer and
// any token before it is sent. It leaves out risk, pages, passkeys, quotas and
// everything else that the client cannot see.
package clienttest

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"vogt/internal/api"
	"vogt/internal/audit"
	"vogt/internal/grant"
	"vogt/internal/sshkey"
	"vogt/internal/statement"
	"vogt/internal/token"
)

// Authority is a running authority. The fields are to be set between calls.
type Authority struct {
	// URL is its address and issuer.
	URL string
	// Lie, when set, sees every answer that is a success and may change it, or
	// its header. The path tells which it is.
	Lie func(path string, header http.Header, answer map[string]any)
	// Forge, when set, may change a grant token's claims before it is signed.
	Forge func(*token.Grant)
	// Before, when set, sees every request first and reports whether it has
	// answered it.
	Before func(w http.ResponseWriter, r *http.Request) bool
	// Signing is the key of tokens. Published are the keys that the key set
	// names.
	Signing   token.Key
	Published token.Keys
	// Life is how long logins last.
	Life time.Duration
	// Offset is added to the clock.
	Offset time.Duration

	t      testing.TB
	server *httptest.Server

	mu       sync.Mutex
	changed  chan struct{}
	people   map[string]*person
	open     map[string]string // login challenges and whose they are
	grants   []*grant.Grant
	used     map[string]bool // uses whose outcome is awaited
	outcomes []api.Outcome
	trusts   map[string]*change
	revoked  map[string]bool // tokens
	epoch    uint64
	log      *memoryLog
	signer   note.Signer
	logKey   string
	serial   int
	decided  map[string]decision
}

type person struct {
	api.Principal
	keys []sshkey.Public
}

// decision is what was decided on a grant, and which record of the log tells so.
type decision struct {
	statement statement.Statement
	record    int64
}

type change struct {
	api.Trust
	secret string
	by     string
	nonce  string
}

// New starts an authority that ends with the test.
func New(t testing.TB) *Authority {
	t.Helper()
	a := &Authority{
		t: t, Life: 8 * time.Hour, changed: make(chan struct{}), people: map[string]*person{}, open: map[string]string{},
		used: map[string]bool{}, trusts: map[string]*change{}, revoked: map[string]bool{}, decided: map[string]decision{}, epoch: 1, log: &memoryLog{},
	}
	a.server = httptest.NewServer(a)
	t.Cleanup(func() {
		a.server.CloseClientConnections()
		a.server.Close()
	})
	a.URL = a.server.URL
	a.NewSigningKey()
	a.NewLog()
	return a
}

// Stop closes the port: the authority cannot be reached any more.
func (a *Authority) Stop() {
	a.server.CloseClientConnections()
	a.server.Close()
}

// NewSigningKey rotates the key of tokens; the old ones stay published.
func (a *Authority) NewSigningKey() {
	a.Signing = token.NewKey(random(32))
	if a.Published == nil {
		a.Published = token.Keys{}
	}
	a.Published[a.Signing.ID] = a.Signing.Private.Public().(ed25519Key)
}

// NewLog begins a log with a key of its own, as an authority that was set up
// anew does.
func (a *Authority) NewLog() {
	signer, key, err := audit.NewSigner(audit.Origin(a.URL), random(32))
	if err != nil {
		a.t.Fatal(err)
	}
	a.log, a.signer, a.logKey = &memoryLog{}, signer, key
	a.record("epoch", map[string]uint64{"epoch": a.epoch})
}

// Restore cuts the log back to size records, as a restored copy has, and writes
// another record in their place.
func (a *Authority) Restore(size int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	old := a.log
	a.log = &memoryLog{}
	for _, r := range old.records[:size] {
		if _, err := audit.Append(a.log, audit.Record{Type: r.Type, Time: r.Time, Salt: r.Salt, Body: r.Body}); err != nil {
			a.t.Fatal(err)
		}
	}
}

// Size is the number of records in the log.
func (a *Authority) Size() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return int64(len(a.log.records))
}

// Write adds a record to the log.
func (a *Authority) Write(kind string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.record(kind, map[string]string{"note": "written by a test"})
}

// Falsify changes a record of the log without its leaf.
func (a *Authority) Falsify(index int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.log.records[index].Body = []byte(`{"falsified":true}`)
}

// AddPerson registers a person, or an agent when owner is set.
func (a *Authority) AddPerson(email, owner string, key sshkey.Public) {
	a.mu.Lock()
	defer a.mu.Unlock()
	kind := "human"
	if owner != "" {
		kind = "agent"
	}
	name, _, _ := strings.Cut(email, "@")
	a.people[email] = &person{
		Principal: api.Principal{Email: email, Name: name, Owner: owner, Type: kind, Active: true},
		keys:      []sshkey.Public{key},
	}
}

// RevokeLogins makes every token that was issued so far invalid.
func (a *Authority) RevokeLogins() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.epoch++
}

// Grant returns a grant as it is now.
func (a *Authority) Grant(id string) grant.Grant {
	a.mu.Lock()
	defer a.mu.Unlock()
	g := a.find(id)
	if g == nil {
		a.t.Fatalf("there is no grant %q", id)
	}
	return g.As(a.now())
}

// Grants returns all grants in the order in which they were asked for.
func (a *Authority) Grants() []grant.Grant {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := make([]grant.Grant, len(a.grants))
	for i, g := range a.grants {
		all[i] = g.As(a.now())
	}
	return all
}

// Outcomes returns what was reported.
func (a *Authority) Outcomes() []api.Outcome {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]api.Outcome(nil), a.outcomes...)
}

// Settle answers a grant as its owner does on a page. A zero until is an hour
// for once and timed.
func (a *Authority) Settle(id string, answer grant.Status, kind grant.Type) {
	a.mu.Lock()
	defer a.mu.Unlock()
	g := a.find(id)
	d := grant.Decision{By: g.Owner, At: a.now(), Strength: grant.Click}
	var ev grant.Event
	switch answer {
	case grant.Approved:
		until := a.now() + grant.Millis(time.Hour.Milliseconds())
		if kind == grant.Always {
			until = 0
		}
		d.Digest = a.statement(g, kind, 0).Digest()
		ev = grant.Approve{Decision: d, Type: kind, Until: until}
	case grant.Denied:
		ev = grant.Deny{Decision: d}
	case grant.Revoked:
		ev = grant.Revoke{By: g.Owner, At: a.now()}
	case grant.Expired:
		ev = grant.Lapse{At: a.now()}
	case grant.Used:
		ev = grant.Consume{At: a.now()}
	default:
		a.t.Fatalf("a grant cannot be made %q", answer)
	}
	if err := a.apply(g, ev); err != nil {
		a.t.Fatal(err)
	}
}

// AwaitGrants waits until n grants have been asked for and returns them.
func (a *Authority) AwaitGrants(n int) []grant.Grant {
	a.t.Helper()
	limit := time.After(20 * time.Second)
	for {
		a.mu.Lock()
		changed := a.changed
		have := len(a.grants)
		a.mu.Unlock()
		if have >= n {
			return a.Grants()
		}
		select {
		case <-changed:
		case <-limit:
			a.t.Fatalf("%d grants were asked for, not %d", have, n)
		}
	}
}

// ConfirmAll confirms every prepared change as email, as a page does, and
// returns how many there were.
func (a *Authority) ConfirmAll(email string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := 0
	for _, c := range a.trusts {
		if c.Status == "pending" {
			a.makeChange(c, email)
			n++
		}
	}
	return n
}

// DeclineAll declines every prepared change.
func (a *Authority) DeclineAll() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, c := range a.trusts {
		if c.Status == "pending" {
			c.Status = "declined"
		}
	}
	a.announce()
}

// AwaitChanges waits until n changes of trust have been prepared.
func (a *Authority) AwaitChanges(n int) {
	a.t.Helper()
	limit := time.After(20 * time.Second)
	for {
		a.mu.Lock()
		changed, have := a.changed, len(a.trusts)
		a.mu.Unlock()
		if have >= n {
			return
		}
		select {
		case <-changed:
		case <-limit:
			a.t.Fatalf("%d changes were prepared, not %d", have, n)
		}
	}
}

func random(n int) []byte {
	b := make([]byte, n)
	rand.Read(b) // never fails (crypto/rand)
	return b
}

func (a *Authority) now() grant.Millis { return grant.At(time.Now().Add(a.Offset)) }

func (a *Authority) announce() {
	close(a.changed)
	a.changed = make(chan struct{})
}

func (a *Authority) find(id string) *grant.Grant {
	for _, g := range a.grants {
		if g.ID == id {
			return g
		}
	}
	return nil
}

func (a *Authority) apply(g *grant.Grant, ev grant.Event) error {
	next, err := g.Apply(ev)
	if err != nil {
		return err
	}
	*g = next
	a.record("grant", map[string]string{"grant": g.ID, "status": string(g.Status)})
	a.announce()
	return nil
}

// recordDecision writes the decision on g, an approval of s, as receipts prove it.
func (a *Authority) recordDecision(g *grant.Grant, s statement.Statement) {
	d := g.Decision
	at := int64(d.At)
	body, err := json.Marshal(map[string]any{
		"grant": g.ID, "by": d.By, "answer": "approved", "strength": d.Strength, "digest": d.Digest,
		"statement": s, "evidence": json.RawMessage(d.Evidence),
	})
	// In the form that an answer has after a test has lied in it: the leaf is
	// over the bytes.
	var members map[string]any
	if err == nil {
		err = json.Unmarshal(body, &members)
	}
	if err == nil {
		body, err = json.Marshal(members)
	}
	if err == nil {
		_, err = audit.Append(a.log, audit.Record{Type: "decision", Time: at, Salt: random(audit.SaltSize), Body: body})
	}
	if err != nil {
		a.t.Errorf("log: %v", err)
	}
	a.decided[g.ID] = decision{s, int64(len(a.log.records)) - 1}
}

// record appends to the log.
func (a *Authority) record(kind string, body any) {
	b, err := json.Marshal(body)
	if err == nil {
		_, err = audit.Append(a.log, audit.Record{Type: kind, Time: int64(a.now()), Salt: random(audit.SaltSize), Body: b})
	}
	if err != nil {
		a.t.Errorf("log: %v", err)
	}
}

func (a *Authority) checkpoint() string {
	text, err := audit.SignCheckpoint(int64(len(a.log.records)), a.log, a.signer)
	if err != nil {
		a.t.Errorf("checkpoint: %v", err)
	}
	return text
}

// memoryLog implements audit.Storage.
type memoryLog struct {
	records []audit.Record
	hashes  []tlog.Hash
}

func (l *memoryLog) Size() (int64, error) { return int64(len(l.records)), nil }

func (l *memoryLog) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	out := make([]tlog.Hash, len(indexes))
	for i, index := range indexes {
		if index < 0 || index >= int64(len(l.hashes)) {
			return nil, fmt.Errorf("no hash %d", index)
		}
		out[i] = l.hashes[index]
	}
	return out, nil
}

func (l *memoryLog) Put(rec audit.Record, first int64, hashes []tlog.Hash) error {
	if first != int64(len(l.hashes)) {
		return fmt.Errorf("hashes from %d, have %d", first, len(l.hashes))
	}
	l.records, l.hashes = append(l.records, rec), append(l.hashes, hashes...)
	return nil
}

// statement is what an approval signs.
func (a *Authority) statement(g *grant.Grant, kind grant.Type, end int64) statement.Statement {
	req := g.Request
	host := "claimed:" + req.Host
	s := statement.Statement{
		Purpose: statement.Run, Issuer: a.URL, Epoch: g.Epoch, GrantID: g.ID, Nonce: g.Nonce,
		Requester: &req.Requester, Owner: &g.Owner, Host: &host, GrantType: string(kind), Argv: req.Command,
	}
	if req.Connect != nil {
		s.Purpose = statement.Connect
	}
	if req.Reason != "" {
		s.Reason = &req.Reason
	}
	if end != 0 {
		n := uint64(end)
		s.Expiry = &n
	}
	if c := req.Context; c != nil {
		s.Executable, s.Interpreters, s.Cwd, s.CallerUID, s.Stdin = c.File, c.Interpreters, c.Cwd, c.UID, c.Stdin
		s.Confinement, s.NetworkMode = c.Confinement, c.NetworkMode
	}
	return s
}

func (a *Authority) view(g *grant.Grant) api.Grant {
	now := g.As(a.now())
	out := api.Grant{
		ID: g.ID, Type: "command", Requester: g.Request.Requester, Owner: g.Owner, Request: &now.Request,
		Status: now.Status, CreatedAt: g.Created.Seconds(), Risk: "medium", Uses: g.Uses, Joined: g.Joined,
	}
	if len(g.Request.Command) > 0 {
		out.Program = g.Request.Command[0]
	}
	if d := g.Decision; d != nil {
		out.DecidedAt, out.DecidedBy, out.Note, out.Strength, out.Digest = d.At.Seconds(), d.By, d.Note, d.Strength, d.Digest.String()
		// The approval's reach takes the place of what was asked for.
		now.Request.Type = g.Type
		if g.Type == grant.Timed {
			out.ExpiresAt = g.ValidUntil.Seconds()
		}
	}
	if now.Status == grant.Pending {
		out.ApproveURL = a.URL + "/grants/" + g.ID
	}
	return out
}

func (a *Authority) id() string {
	a.serial++
	sum := sha256.Sum256(fmt.Appendf(nil, "%d", a.serial))
	return fmt.Sprintf("%08x-0000-4000-8000-%s", a.serial, hex.EncodeToString(sum[:6]))
}

// ServeHTTP implements http.Handler.
func (a *Authority) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if a.Before != nil && a.Before(w, r) {
		return
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, 16<<20))
	if err != nil {
		return // the caller has gone
	}
	c := &request{a: a, r: r, body: body, path: strings.Split(strings.Trim(r.URL.Path, "/"), "/")}
	a.mu.Lock()
	defer a.mu.Unlock()
	var answer any
	problem := c.authenticate()
	header := http.Header{}
	if problem == nil {
		if c.caller != nil {
			header.Set(api.CheckpointHeader, base64.StdEncoding.EncodeToString([]byte(a.checkpoint())))
		}
		answer, problem = c.route()
	}
	if problem != nil {
		a.write(w, header, problem.Status, problem)
		return
	}
	if text, ok := answer.(string); ok {
		w.Header().Set("Content-Type", "text/plain")
		io.WriteString(w, text)
		return
	}
	status := http.StatusOK
	if a.Lie != nil {
		answer = a.lie(r.URL.Path, header, answer)
	}
	a.write(w, header, status, answer)
}

func (a *Authority) lie(path string, header http.Header, answer any) any {
	b, err := json.Marshal(answer)
	var m map[string]any
	if err != nil || json.Unmarshal(b, &m) != nil {
		return answer // a list; no test lies about those
	}
	a.Lie(path, header, m)
	return m
}

func (a *Authority) write(w http.ResponseWriter, header http.Header, status int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		a.t.Errorf("answer: %v", err)
	}
	for name, values := range header {
		w.Header()[name] = values
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(b)
}
