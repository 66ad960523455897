package clienttest

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"vogt/internal/api"
	"vogt/internal/audit"
	"vogt/internal/detail"
	"vogt/internal/grant"
	"vogt/internal/sshkey"
	"vogt/internal/statement"
	"vogt/internal/token"
)

type ed25519Key = ed25519.PublicKey

// request is one request; the authority's lock is held.
type request struct {
	a      *Authority
	r      *http.Request
	body   []byte
	path   []string
	caller *person
	raw    string
}

func refuse(status int, kind, title string) *api.Problem {
	return &api.Problem{Type: "https://openape.org/errors/" + kind, Title: title, Status: status, Detail: title + ".", Hint: "Ask the test."}
}

// authenticate reads the bearer, except that of a consume.
func (c *request) authenticate() *api.Problem {
	raw, ok := strings.CutPrefix(c.r.Header.Get("Authorization"), "Bearer ")
	if c.raw = raw; !ok || c.path[len(c.path)-1] == "consume" {
		return nil
	}
	claims, err := c.a.Published.VerifyLogin(raw, c.a.URL, time.Now().Add(c.a.Offset))
	if err != nil || claims.Epoch != c.a.epoch || c.a.revoked[claims.ID] {
		return refuse(http.StatusUnauthorized, "token_expired", "The login is not valid")
	}
	c.caller = c.a.people[claims.Subject]
	return nil
}

func (c *request) json(v any) *api.Problem {
	if len(c.body) == 0 {
		return nil
	}
	if err := json.Unmarshal(c.body, v); err != nil {
		return refuse(http.StatusBadRequest, "invalid", "The body is not JSON")
	}
	return nil
}

func (c *request) route() (any, *api.Problem) {
	path := c.r.URL.Path
	switch {
	case path == api.PathHealth:
		return api.Health{Status: "ok", Issuer: c.a.URL, Epoch: c.a.epoch, Bearer: "none", Pages: c.a.URL, Time: int64(c.a.now()), LogKey: c.a.logKey, SetUp: true}, nil
	case path == api.PathJWKS:
		b, err := c.a.Published.JWKS()
		if err != nil {
			c.a.t.Error(err)
		}
		return json.RawMessage(b), nil
	case path == api.PathChallenge:
		return c.challenge()
	case path == api.PathAuthenticate:
		return c.login()
	case strings.HasPrefix(path, api.PathTrust):
		return c.trust()
	case len(c.path) == 4 && c.path[3] == "consume":
		return c.consume()
	case c.caller == nil:
		return nil, refuse(http.StatusUnauthorized, "unauthorized", "Not logged in")
	case path == api.PathLogout:
		claims, err := c.a.Published.VerifyLogin(c.raw, c.a.URL, time.Now().Add(c.a.Offset))
		if err != nil {
			return nil, refuse(http.StatusUnauthorized, "unauthorized", "Not logged in")
		}
		c.a.revoked[claims.ID] = true
		return struct{}{}, nil
	case path == api.PathWhoAmI:
		return c.caller.account(), nil
	case path == api.PathGrants:
		return c.grants()
	case strings.HasPrefix(path, api.PathGrants+"/"):
		return c.grant()
	case strings.HasPrefix(path, api.PathMyAgents):
		return c.agents()
	case path == api.PathPanic:
		for _, p := range c.a.people {
			p.Paused = p.Paused || p.Owner == c.caller.Email
		}
		c.a.record("panic", struct{}{})
		return api.PanicResult{Agents: 1, Tokens: 2, Grants: 3}, nil
	case strings.HasPrefix(path, api.PathAudit):
		return c.audit()
	}
	return nil, refuse(http.StatusNotFound, "not_found", "There is nothing at this address")
}

func (c *request) challenge() (any, *api.Problem) {
	var in api.ChallengeRequest
	if p := c.json(&in); p != nil {
		return nil, p
	}
	challenge := hex.EncodeToString(random(32))
	c.a.open[challenge] = in.ID
	return api.Challenge{Challenge: challenge}, nil
}

func (c *request) login() (any, *api.Problem) {
	var in api.Authenticate
	if p := c.json(&in); p != nil {
		return nil, p
	}
	who := c.a.open[in.Challenge]
	delete(c.a.open, in.Challenge)
	p := c.a.people[in.ID]
	if who != in.ID || p == nil {
		return nil, refuse(http.StatusUnauthorized, "unauthorized", "The login was refused")
	}
	if _, err := sshkey.VerifyLogin(in.Challenge, in.Signature, p.keys); err != nil {
		return nil, refuse(http.StatusUnauthorized, "unauthorized", "The login was refused")
	}
	return c.a.issue(p), nil
}

func (a *Authority) issue(p *person) api.Login {
	now := a.now().Seconds()
	raw, err := token.Sign(a.Signing, token.Login{
		Issuer: a.URL, Subject: p.Email, Audience: token.CLIAudience, Act: p.Type, IssuedAt: now,
		Expires: now + int64(a.Life/time.Second), ID: hex.EncodeToString(random(8)), Use: token.UseLogin, Epoch: a.epoch,
	})
	if err != nil {
		a.t.Error(err)
	}
	a.record("login", map[string]string{"email": p.Email})
	return api.Login{
		Token: raw, ID: p.Email, AgentID: p.Email, Email: p.Email, Name: p.Name, Act: p.Type,
		ExpiresIn: int64(a.Life / time.Second), Owner: p.Owner, LogKey: a.logKey,
	}
}

// account is the person with their keys.
func (p *person) account() api.Principal {
	out := p.Principal
	for _, k := range p.keys {
		out.Keys = append(out.Keys, api.Key{ID: string(k.ID()), PublicKey: k.String()})
	}
	return out
}

// party reports whether the caller may see the grant.
func (c *request) party(g *grant.Grant) bool {
	return c.caller.Email == g.Request.Requester || c.caller.Email == g.Owner
}

func (c *request) grants() (any, *api.Problem) {
	if c.r.Method == http.MethodPost {
		return c.ask()
	}
	q := c.r.URL.Query()
	limit, err := strconv.Atoi(q.Get("limit"))
	if err != nil || limit < 1 || limit > 100 {
		limit = 20
	}
	skip, _ := strconv.Atoi(q.Get("cursor")) // no cursor is 0
	list := api.List{Data: []api.Grant{}}
	for i := len(c.a.grants) - 1 - skip; i >= 0; i-- {
		v := c.a.view(c.a.grants[i])
		skip++
		if !c.party(c.a.grants[i]) || q.Get("status") != "" && q.Get("status") != string(v.Status) ||
			q.Get("requester") != "" && q.Get("requester") != v.Requester {
			continue
		}
		if list.Data = append(list.Data, v); len(list.Data) == limit && i > 0 {
			cursor := strconv.Itoa(skip)
			list.Pagination = api.Pagination{Cursor: &cursor, HasMore: true}
			break
		}
	}
	return list, nil
}

func (c *request) ask() (any, *api.Problem) {
	var req grant.Request
	if p := c.json(&req); p != nil {
		return nil, p
	}
	req.Requester = c.caller.Email
	req.CmdHash = detail.CmdHash(req.Command)
	if req.Context != nil && req.Connect == nil {
		req.Context.ArgvHash = detail.ArgvHash(req.Command)
	}
	if req.Connect != nil {
		req.Permissions = []string{req.Connect.Network().Permission()}
	}
	owner := c.caller.Owner
	if owner == "" {
		owner = c.caller.Email
	}
	g := &grant.Grant{
		ID: c.a.id(), Epoch: c.a.epoch, Nonce: hex.EncodeToString(random(16)), Request: req, Owner: owner,
		Status: grant.Pending, Type: req.Type, Created: c.a.now(), ValidUntil: c.a.now() + grant.Millis(time.Hour.Milliseconds()),
	}
	g.Identity = c.a.statement(g, req.Type, 0).Identity()
	for _, old := range c.a.grants {
		switch now := old.As(c.a.now()); {
		case now.Identity != g.Identity || now.Request.Requester != req.Requester:
		case now.Status == grant.Pending:
			old.Joined++
			return c.a.view(old), nil
		case now.Status == grant.Approved:
			v := c.a.view(old)
			v.Automatic, v.AutoKind = true, "reuse"
			return v, nil
		}
	}
	c.a.grants = append(c.a.grants, g)
	c.a.record("request", map[string]string{"grant": g.ID})
	c.a.announce()
	return c.a.view(g), nil
}

func (c *request) grant() (any, *api.Problem) {
	g := c.a.find(c.path[2])
	if g == nil {
		return nil, refuse(http.StatusNotFound, "grant_not_found", "There is no such grant")
	}
	if !c.party(g) {
		return api.Grant{ID: g.ID, Status: g.As(c.a.now()).Status}, nil
	}
	verb := ""
	if len(c.path) > 3 {
		verb = c.path[3]
	}
	switch verb {
	case "":
		return c.wait(g)
	case "statement":
		return c.offer(g)
	case "approve":
		return c.approve(g)
	case "deny", "revoke":
		return c.narrow(g, verb)
	case "token":
		return c.token(g)
	case "outcome":
		return c.outcome()
	case "receipt":
		if g.Decision == nil {
			return nil, refuse(http.StatusBadRequest, "grant_not_approved", "Nobody has decided this yet")
		}
		return c.a.receipt(g), nil
	}
	return nil, refuse(http.StatusNotFound, "not_found", "There is nothing at this address")
}

// wait gives the lock back while it waits.
func (c *request) wait(g *grant.Grant) (any, *api.Problem) {
	seconds, _ := strconv.Atoi(c.r.URL.Query().Get("wait")) // none is 0
	limit := time.NewTimer(time.Duration(seconds) * time.Second)
	defer limit.Stop()
	for g.As(c.a.now()).Status == grant.Pending && seconds > 0 {
		changed := c.a.changed
		c.a.mu.Unlock()
		select {
		case <-changed:
		case <-limit.C:
			seconds = 0
		case <-c.r.Context().Done():
			seconds = 0
		}
		c.a.mu.Lock()
	}
	return c.a.view(g), nil
}

func (c *request) offer(g *grant.Grant) (any, *api.Problem) {
	q := c.r.URL.Query()
	end, _ := strconv.ParseInt(q.Get("expires_at"), 10, 64) // none is 0
	s := c.a.statement(g, grant.Type(q.Get("grant_type")), end)
	return api.Offer{Statement: s, Digest: s.Digest(), Needs: grant.Click, Risk: "medium"}, nil
}

func (c *request) approve(g *grant.Grant) (any, *api.Problem) {
	var in api.Decide
	if p := c.json(&in); p != nil {
		return nil, p
	}
	s := c.a.statement(g, in.GrantType, in.ExpiresAt)
	digest := s.Digest()
	switch {
	case c.caller.Email != g.Owner || c.caller.Type != "human":
		return nil, refuse(http.StatusForbidden, "forbidden", "This is not yours to decide")
	case in.Signature == "":
		return nil, refuse(http.StatusForbidden, "forbidden", "A login alone permits nothing")
	case in.Digest == nil || *in.Digest != digest:
		return nil, refuse(http.StatusConflict, "digest", "The statement is another one")
	}
	key, err := sshkey.Verify(in.Signature, sshkey.NamespaceDecision, []byte(digest.String()), c.caller.keys)
	if err != nil {
		return nil, refuse(http.StatusForbidden, "forbidden", "The signature does not fit")
	}
	evidence, err := json.Marshal(map[string]string{"kind": "sshsig", "public_key": key.String(), "signature": in.Signature})
	if err != nil {
		c.a.t.Error(err)
	}
	until := grant.Millis(in.ExpiresAt * 1000)
	if in.GrantType == grant.Once {
		until = c.a.now() + grant.Millis(time.Hour.Milliseconds())
	}
	d := grant.Decision{By: c.caller.Email, At: c.a.now(), Strength: grant.Independent, Note: in.Note, Digest: digest, Evidence: evidence}
	if err := c.a.apply(g, grant.Approve{Type: in.GrantType, Until: until, Decision: d}); err != nil {
		return nil, refuse(http.StatusConflict, "grant_already_decided", "The grant is already decided")
	}
	c.a.recordDecision(g, s)
	return api.Decided{Grant: c.a.view(g)}, nil
}

func (c *request) narrow(g *grant.Grant, verb string) (any, *api.Problem) {
	var in api.Decide
	if p := c.json(&in); p != nil {
		return nil, p
	}
	var ev grant.Event = grant.Revoke{By: c.caller.Email, At: c.a.now()}
	if verb == "deny" {
		ev = grant.Deny{Decision: grant.Decision{By: c.caller.Email, At: c.a.now(), Strength: grant.Bearer, Note: in.Note}}
	}
	if err := c.a.apply(g, ev); err != nil {
		return nil, refuse(http.StatusConflict, "grant_already_decided", "The grant is already decided")
	}
	return c.a.view(g), nil
}

func (c *request) token(g *grant.Grant) (any, *api.Problem) {
	switch now := g.As(c.a.now()); {
	case c.caller.Email != g.Request.Requester:
		return nil, refuse(http.StatusForbidden, "forbidden", "Only the requester may use this grant")
	case now.Status == grant.Pending:
		return nil, refuse(http.StatusBadRequest, "grant_not_approved", "Nobody has answered yet")
	case now.Status == grant.Denied || now.Status == grant.Revoked:
		return nil, refuse(http.StatusForbidden, "grant_"+string(now.Status), "The grant was "+string(now.Status))
	case now.Status != grant.Approved:
		return nil, refuse(http.StatusGone, "grant_"+string(now.Status), "The grant is "+string(now.Status))
	}
	req, now := g.Request, c.a.now().Seconds()
	claims := token.Grant{
		Issuer: c.a.URL, Subject: req.Requester, Audience: req.Audience, Host: req.Host, IssuedAt: now, Expires: now + 300,
		ID: hex.EncodeToString(random(8)), GrantID: g.ID, GrantType: g.Type, Approval: g.Type, CmdHash: req.CmdHash,
		Permissions: req.Permissions, Command: req.Command, Context: req.Context, DecidedBy: g.Decision.By, RunAs: req.RunAs, Use: token.UseGrant, Epoch: c.a.epoch,
	}
	if c.a.Forge != nil {
		c.a.Forge(&claims)
	}
	raw, err := token.Sign(c.a.Signing, claims)
	if err != nil {
		c.a.t.Error(err)
	}
	return api.Token{AuthzJWT: raw, Grant: c.a.view(g)}, nil
}

func (c *request) consume() (any, *api.Problem) {
	claims, err := c.a.Published.VerifyGrant(c.raw, c.a.URL, time.Now().Add(c.a.Offset))
	if err != nil || claims.GrantID != c.path[2] {
		return nil, refuse(http.StatusUnauthorized, "invalid_authz_jwt", "The grant token is not valid")
	}
	g := c.a.find(claims.GrantID)
	if err := c.a.apply(g, grant.Consume{At: c.a.now()}); err != nil {
		return api.Consumed{Status: string(g.As(c.a.now()).Status), Error: "already_consumed"}, nil
	}
	use := hex.EncodeToString(random(16))
	c.a.used[use] = true
	receipt := c.a.receipt(g)
	return api.Consumed{Status: "consumed", Use: use, Receipt: &receipt}, nil
}

func (a *Authority) receipt(g *grant.Grant) api.Receipt {
	s := a.statement(g, g.Type, 0)
	r := api.Receipt{GrantID: g.ID, Statement: s, Digest: s.Digest(), DecidedBy: g.Decision.By, DecidedAt: g.Decision.At.Seconds(),
		Strength: g.Decision.Strength, Evidence: g.Decision.Evidence, Checkpoint: a.checkpoint()}
	if d, ok := a.decided[g.ID]; ok {
		r.Statement, r.Digest, r.Record = d.statement, d.statement.Digest(), d.record
		p, err := audit.ProveInclusion(d.record, int64(len(a.log.records)), a.log)
		if err == nil {
			r.Proof, err = json.Marshal(p)
		}
		if err != nil {
			a.t.Error(err)
		}
	}
	return r
}

func (c *request) outcome() (any, *api.Problem) {
	var in api.Outcome
	if p := c.json(&in); p != nil {
		return nil, p
	}
	if !c.a.used[in.Use] {
		return nil, refuse(http.StatusConflict, "unknown_use", "This execution is unknown or its end is recorded already")
	}
	delete(c.a.used, in.Use)
	c.a.outcomes = append(c.a.outcomes, in)
	c.a.record("outcome", map[string]string{"grant": c.path[2]})
	c.a.announce()
	return struct{}{}, nil
}

func (c *request) agents() (any, *api.Problem) {
	if len(c.path) == 2 {
		agents := []api.Principal{}
		for _, email := range slices.Sorted(maps.Keys(c.a.people)) {
			if p := c.a.people[email]; p.Owner == c.caller.Email {
				agents = append(agents, p.Principal)
			}
		}
		return agents, nil
	}
	email, err := url.PathUnescape(c.path[2])
	p := c.a.people[email]
	if err != nil || p == nil || p.Owner != c.caller.Email {
		return nil, refuse(http.StatusNotFound, "not_found", "There is no such agent")
	}
	switch c.r.Method {
	case http.MethodPatch:
		p.Paused = true
	case http.MethodDelete:
		delete(c.a.people, email)
	}
	return p.Principal, nil
}

func (c *request) trust() (any, *api.Problem) {
	if len(c.path) == 2 {
		return c.prepare()
	}
	ch := c.a.trusts[c.path[2]]
	if ch == nil {
		return nil, refuse(http.StatusNotFound, "not_found", "There is no such change")
	}
	if len(c.path) == 4 && c.path[3] == "confirm" {
		return c.confirm(ch)
	}
	if c.r.Header.Get(api.TrustSecretHeader) != ch.secret {
		return nil, refuse(http.StatusNotFound, "not_found", "There is no such change")
	}
	seconds, _ := strconv.Atoi(c.r.URL.Query().Get("wait")) // none is 0
	limit := time.NewTimer(time.Duration(seconds) * time.Second)
	defer limit.Stop()
	for ch.Status == "pending" && seconds > 0 {
		changed := c.a.changed
		c.a.mu.Unlock()
		select {
		case <-changed:
		case <-limit.C:
			seconds = 0
		case <-c.r.Context().Done():
			seconds = 0
		}
		c.a.mu.Lock()
	}
	return ch.Trust, nil
}

func (c *request) prepare() (any, *api.Problem) {
	var in api.TrustRequest
	if p := c.json(&in); p != nil {
		return nil, p
	}
	ch := &change{secret: in.Secret, nonce: hex.EncodeToString(random(16))}
	id := c.a.id()
	ch.Trust = api.Trust{
		ID: id, Operation: in.Operation, Params: in.Params, Status: "pending", ConfirmURL: c.a.URL + "/trust/" + id,
		ExpiresAt: c.a.now().Seconds() + 600,
	}
	c.a.trusts[id] = ch
	c.a.announce()
	out := ch.Trust
	if c.caller != nil && c.caller.Type == "human" {
		s := c.a.trustStatement(ch, c.caller.Email)
		d := s.Digest()
		out.Statement, out.Digest = &s, &d
	}
	return out, nil
}

func (a *Authority) trustStatement(ch *change, owner string) statement.Statement {
	s := statement.Statement{
		Purpose: statement.Trust, Issuer: a.URL, Epoch: a.epoch, GrantID: ch.ID, Nonce: ch.nonce, Owner: &owner,
		GrantType: string(grant.Once), Argv: []string{ch.Operation},
	}
	for _, key := range slices.Sorted(maps.Keys(ch.Params)) {
		s.Argv = append(s.Argv, key+"="+ch.Params[key])
	}
	return s
}

func (c *request) confirm(ch *change) (any, *api.Problem) {
	var in api.ConfirmTrust
	if p := c.json(&in); p != nil {
		return nil, p
	}
	if c.caller == nil || c.caller.Type != "human" {
		return nil, refuse(http.StatusForbidden, "forbidden", "Only a person changes trust")
	}
	digest := c.a.trustStatement(ch, c.caller.Email).Digest()
	if in.Digest != digest {
		return nil, refuse(http.StatusConflict, "digest", "The statement is another one")
	}
	if _, err := sshkey.Verify(in.Signature, sshkey.NamespaceDecision, []byte(digest.String()), c.caller.keys); err != nil {
		return nil, refuse(http.StatusForbidden, "forbidden", "The signature does not fit")
	}
	c.a.makeChange(ch, c.caller.Email)
	return ch.Trust, nil
}

// makeChange does what a confirmed change says.
func (a *Authority) makeChange(ch *change, by string) {
	ch.Status, ch.by = "confirmed", by
	key, _ := sshkey.ParsePublic(ch.Params["public_key"]) // the zero key for changes without
	switch ch.Operation {
	case api.TrustAgentAdd:
		email := ch.Params["name"] + "-0011aabb+agents@example.com"
		a.people[email] = &person{
			Principal: api.Principal{Email: email, Name: ch.Params["name"], Owner: by, Type: "agent", Active: true},
			keys:      []sshkey.Public{key},
		}
		ch.Enrolled = &api.Enrolled{Email: email, Name: ch.Params["name"], Owner: by, Approver: by, Status: "active"}
	case api.TrustAgentRotate:
		a.people[ch.Params["email"]].keys = []sshkey.Public{key}
	case api.TrustAgentResume:
		for _, p := range a.people {
			if p.Owner == by && (ch.Params["email"] == "" || ch.Params["email"] == p.Email) {
				p.Paused = false
			}
		}
	case api.TrustDevice:
		login := a.issue(a.people[by])
		ch.Login = &login
	}
	a.record("trust", map[string]string{"operation": ch.Operation})
	a.announce()
}

func (c *request) audit() (any, *api.Problem) {
	q := c.r.URL.Query()
	switch c.path[len(c.path)-1] {
	case "checkpoint":
		return c.a.checkpoint(), nil
	case "consistency":
		old, err1 := strconv.ParseInt(q.Get("old"), 10, 64)
		new, err2 := strconv.ParseInt(q.Get("new"), 10, 64)
		if err1 != nil || err2 != nil || old < 1 || old > new || new > int64(len(c.a.log.records)) {
			return nil, refuse(http.StatusBadRequest, "no_proof", "No such proof")
		}
		p, err := audit.ProveConsistency(old, new, c.a.log)
		if err != nil {
			c.a.t.Error(err)
		}
		return p, nil
	case "export":
		var b bytes.Buffer
		e := audit.NewExporter(&b)
		for _, r := range c.a.log.records {
			if err := e.Record(r, false); err != nil {
				c.a.t.Error(err)
			}
		}
		if err := e.Close(c.a.checkpoint()); err != nil {
			c.a.t.Error(err)
		}
		return b.String(), nil
	case "records":
		return c.records(q)
	}
	return nil, refuse(http.StatusNotFound, "not_found", "There is nothing at this address")
}

func (c *request) records(q url.Values) (any, *api.Problem) {
	after, err := strconv.ParseInt(q.Get("after"), 10, 64)
	if err != nil {
		after = -1
	}
	before, err := strconv.ParseInt(q.Get("before"), 10, 64)
	descending := err == nil
	limit, err := strconv.Atoi(q.Get("limit"))
	if err != nil || limit < 1 {
		limit = 100
	}
	page := api.AuditRecords{Records: []api.AuditRecord{}, Size: int64(len(c.a.log.records)), Checkpoint: c.a.checkpoint()}
	all := slices.Clone(c.a.log.records)
	if descending {
		slices.Reverse(all)
	}
	for _, r := range all {
		if len(page.Records) == limit {
			break
		}
		if descending && r.Index >= before || !descending && r.Index <= after ||
			q.Get("grant") != "" && !strings.Contains(string(r.Body), fmt.Sprintf("%q", q.Get("grant"))) {
			continue
		}
		page.Records = append(page.Records, api.AuditRecord{
			Index: r.Index, Type: r.Type, Time: r.Time, Body: r.Body, Leaf: hex.EncodeToString(r.Leaf[:]), Salt: hex.EncodeToString(r.Salt),
		})
	}
	return page, nil
}

// SeenCheckpoint is the size of the log in the checkpoint that a request
// carried, or -1.
func SeenCheckpoint(r *http.Request) int64 {
	text, err := base64.StdEncoding.DecodeString(r.Header.Get(api.CheckpointHeader))
	if err != nil || len(text) == 0 {
		return -1
	}
	lines := strings.SplitN(string(text), "\n", 3)
	if len(lines) < 3 {
		return -1
	}
	size, err := audit.ParseSize(lines[1])
	if err != nil {
		return -1
	}
	return size
}
