package httpapi

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"vogt/internal/api"
	"vogt/internal/authority"
	"vogt/internal/detail"
	"vogt/internal/grant"
	"vogt/internal/reading"
	"vogt/internal/store"
)

// GrantView is a grant as the interface shows it to a party; to anybody else
// it is the state and nothing more.
func (s *server) grantView(g grant.Grant, party bool) api.Grant {
	out := api.Grant{ID: g.ID, Status: g.Status}
	if !party {
		return out
	}
	out.Type, out.Requester, out.Owner, out.Request = "command", g.Request.Requester, g.Owner, &g.Request
	out.CreatedAt, out.Risk, out.Uses, out.Joined = g.Created.Seconds(), g.Risk.String(), g.Uses, g.Joined
	out.Binding = g.Request.Binding()
	if !g.Status.Terminal() {
		out.ValidUntil = g.ValidUntil.Seconds()
	}
	if reading.CheckArgv(g.Request.Command) == nil {
		out.Program = reading.Base(g.Request.Command[0])
	}
	if g.Request.Connect != nil {
		out.Type = "connect"
	}
	if g.TwoPersons() {
		out.Approvals = g.Approvals
	}
	if e := g.Endorsed; e != nil {
		out.First, out.FirstAt, out.FirstType, out.FirstEnds = e.By, e.At.Seconds(), e.Type, e.Until.Seconds()
	}
	if d := g.Decision; d != nil {
		out.For = d.For
		out.DecidedAt, out.DecidedBy, out.Note, out.Strength = d.At.Seconds(), d.By, d.Note, d.Strength
		out.Digest, out.Standing = d.Digest.String(), d.Standing
		if d.Standing != "" {
			out.AutoKind = "standing"
		}
		if out.Policy = d.Policy; d.Policy != "" {
			out.AutoKind = "yolo"
		}
		// The approval's reach takes the place of what was asked for, as
		// clients read it there.
		req := g.Request
		req.Type = g.Type
		out.Request = &req
	}
	if g.Type == grant.Timed && g.Decision != nil {
		out.ExpiresAt = g.ValidUntil.Seconds()
	}
	if g.Status == grant.Used {
		out.UsedAt = g.LastUsed.Seconds()
	}
	if g.Status == grant.Pending {
		out.ApproveURL = s.pagesOrigin + "/grants/" + g.ID
	}
	return out
}

func createGrant(c *call) error {
	var req api.Create
	if err := c.body(&req); err != nil {
		return err
	}
	created, err := c.s.Authority.Create(c.Context(), c.actor, req)
	if err != nil {
		return err
	}
	out := c.s.grantView(created.Grant, true)
	status := http.StatusOK
	if created.New {
		status = http.StatusCreated
	}
	if created.Reused {
		out.Automatic, out.AutoKind = true, "reuse"
	}
	out.Automatic = out.Automatic || created.Standing || created.Policy
	return c.ok(status, out)
}

const (
	defaultPage = 20
	largestPage = 100
	longestWait = 55 * time.Second
)

func listGrants(c *call) error {
	q := c.URL.Query()
	f := store.Filter{Requester: q.Get("requester"), Status: grant.Status(q.Get("status"))}
	switch f.Status {
	case "", grant.Pending, grant.Approved, grant.Denied, grant.Revoked, grant.Expired, grant.Used:
	default:
		return &authority.Error{Status: 400, Title: "Unknown status", Detail: fmt.Sprintf("status %q: want pending, approved, denied, revoked, expired or used.", f.Status)}
	}
	var err error
	if f.Limit, err = c.limit(); err != nil {
		return err
	}
	if err := readCursor(q.Get("cursor"), &f); err != nil {
		return err
	}
	other, err := c.section(&f)
	if err != nil {
		return err
	}
	if other {
		return c.ok(http.StatusOK, api.List{Data: []api.Grant{}})
	}
	f.Limit++
	rows, err := c.s.Authority.List(c.Context(), c.actor, f)
	if err != nil {
		return err
	}
	out := api.List{Data: []api.Grant{}}
	if len(rows) == f.Limit {
		rows = rows[:f.Limit-1]
		cursor := writeCursor(rows[len(rows)-1].Created, rows[len(rows)-1].ID)
		out.Pagination = api.Pagination{Cursor: &cursor, HasMore: true}
	}
	for _, g := range rows {
		out.Data = append(out.Data, c.s.grantView(g, true))
	}
	return c.ok(http.StatusOK, out)
}

// section reads what parts of the list are wanted. other says that the type is of
// what is never among grants: standing grants and delegations have lists of their own.
func (c *call) section(f *store.Filter) (other bool, err error) {
	q := c.URL.Query()
	bad := func(name, want string) error {
		return &authority.Error{Status: 400, Title: "Unknown " + name, Detail: fmt.Sprintf("%s %q: want %s.", name, q.Get(name), want)}
	}
	section := q.Get("section")
	switch section {
	case "":
	case "active":
		f.Statuses = []grant.Status{grant.Pending, grant.Approved}
	case "history":
		f.Statuses = []grant.Status{grant.Denied, grant.Revoked, grant.Expired, grant.Used}
	default:
		return false, bad("section", "active or history")
	}
	if section != "" && f.Status != "" {
		if other = !slices.Contains(f.Statuses, f.Status); other {
			return other, nil
		}
		f.Statuses = nil
	}
	switch f.Role = store.Role(q.Get("role")); f.Role {
	case "", store.AsRequester, store.AsOwner, store.AsApprover:
	default:
		return false, bad("role", "requester, owner or approver")
	}
	days := 0
	if section == "history" {
		days = 7
	}
	if v := q.Get("days"); v != "" {
		if days, err = strconv.Atoi(v); err != nil {
			return false, bad("days", "1 to 90")
		}
		days = min(max(days, 1), 90)
	}
	if days > 0 {
		f.Since = grant.At(c.s.Authority.Now().AddDate(0, 0, -days))
	}
	switch q.Get("type") {
	case "", "command", "connect":
		return false, nil
	case "standing", "delegation":
		return true, nil
	}
	return false, bad("type", "command, standing or delegation")
}

// A cursor names the last row seen by time and id, so that rows of the same
// instant are neither skipped nor repeated.
func writeCursor(created grant.Millis, id string) string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%d.%s", created, id))
}

func readCursor(s string, f *store.Filter) (err error) {
	f.Before, f.BeforeID, err = parseCursor(s)
	return err
}

// limit is how many rows a page may have.
func (c *call) limit() (int, error) {
	v := c.URL.Query().Get("limit")
	if v == "" {
		return defaultPage, nil
	}
	n, err := strconv.Atoi(v)
	if err != nil {
		return 0, &authority.Error{Status: 400, Title: "The limit is not a number", Detail: fmt.Sprintf("limit %q.", v)}
	}
	return min(max(n, 1), largestPage), nil // clients ask for more; it is clamped
}

func parseCursor(s string) (before grant.Millis, beforeID string, err error) {
	if s == "" {
		return 0, "", nil
	}
	b, err := base64.RawURLEncoding.DecodeString(s)
	at, id, ok := strings.Cut(string(b), ".")
	n, perr := strconv.ParseInt(at, 10, 64)
	if err != nil || !ok || perr != nil || n <= 0 {
		return 0, "", &authority.Error{Status: 400, Title: "The cursor is not one of ours", Detail: "Send back what pagination.cursor held, unchanged."}
	}
	return grant.Millis(n), id, nil
}

func (c *call) wait() (time.Duration, error) {
	v := c.URL.Query().Get("wait")
	if v == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 0 {
		return 0, &authority.Error{Status: 400, Title: "The wait is not a number of seconds", Detail: fmt.Sprintf("wait %q.", v)}
	}
	return min(time.Duration(n)*time.Second, longestWait), nil
}

func getGrant(c *call) error {
	limit, err := c.wait()
	if err != nil {
		return err
	}
	g, party, err := c.s.Authority.Wait(c.Context(), c.actor, c.PathValue("id"), limit)
	if isNotFound(err) {
		return c.delegationAsGrant(err)
	}
	if err != nil {
		return err
	}
	if limit > 0 {
		// The login may have been revoked while the call waited.
		if err := c.authenticate(); err != nil {
			return err
		}
	}
	view := c.s.grantView(g, party)
	if view.Hints, err = c.hints(g); err != nil {
		return err
	}
	if party {
		tag, err := tagOf(g, view.Hints)
		if err != nil {
			return err
		}
		c.Header().Set("ETag", tag)
		if c.Request.Header.Get("If-None-Match") == tag {
			c.WriteHeader(http.StatusNotModified)
			return nil
		}
	}
	return c.ok(http.StatusOK, view)
}

// tagOf changes with everything that is shown of a grant: hints follow other grants,
// patterns and policies.
func tagOf(g grant.Grant, hints *api.Hints) (string, error) {
	tag := fmt.Sprintf("%d.%s", g.Version, g.Status)
	if hints != nil {
		b, err := json.Marshal(hints)
		if err != nil {
			return "", err
		}
		sum := sha256.Sum256(b)
		tag += "." + base64.RawURLEncoding.EncodeToString(sum[:9])
	}
	return `W/"` + tag + `"`, nil
}

// hints are for who may decide about a request that waits, nil for anybody else.
func (c *call) hints(g grant.Grant) (*api.Hints, error) {
	h, err := c.s.Authority.Hints(c.Context(), c.actor, g)
	if err != nil || h == nil {
		return nil, err
	}
	out := &api.Hints{Suggestions: h.Suggestions, Diagnostics: h.Diagnostics}
	if len(h.Similar) > 0 {
		out.Similar = &api.SimilarGrants{Widened: []detail.Wire{}, Merged: h.Merged}
		for _, s := range h.Similar {
			out.Similar.Grants = append(out.Similar.Grants, api.SimilarGrant{Grant: c.s.grantView(s.Grant, true), Indices: s.Indices})
		}
	}
	covered, err := c.s.Authority.Covered(c.Context(), c.actor, g.ID)
	if err != nil {
		return nil, err
	}
	if strings.Join(covered, "") != "" {
		out.Covered = covered
	}
	return out, nil
}

// reach reads grant_type and expires_at as the caller was shown them.
func reach(kind grant.Type, expiresAt int64) authority.Reach {
	return authority.Reach{Type: kind, Until: grant.Millis(expiresAt * 1000)}
}

func getStatement(c *call) error {
	q := c.URL.Query()
	kind := grant.Type(q.Get("grant_type"))
	if kind == "" {
		kind = grant.Once
	}
	var until int64
	if v := q.Get("expires_at"); v != "" {
		var err error
		if until, err = strconv.ParseInt(v, 10, 64); err != nil || until < 0 || until > 1<<40 {
			return &authority.Error{Status: 400, Title: "expires_at is not a time", Detail: "Want Unix seconds."}
		}
	}
	offer, err := c.s.Authority.Offer(c.Context(), c.actor, c.PathValue("id"), reach(kind, until))
	if err != nil {
		return err
	}
	return c.ok(http.StatusOK, offer)
}

func getReceipt(c *call) error {
	r, err := c.s.Authority.Receipt(c.Context(), c.actor, c.PathValue("id"))
	if err != nil {
		return err
	}
	return c.ok(http.StatusOK, r)
}

func approve(c *call) error {
	var d api.Decide
	if err := c.body(&d); err != nil {
		return err
	}
	if len(d.Widened)+len(d.Extended) > 0 || d.ExtendMode != "" {
		return c.widen(c.PathValue("id"), d)
	}
	g, err := c.approve(c.PathValue("id"), d)
	if err != nil {
		return err
	}
	out := api.Decided{Grant: c.s.grantView(g, true)}
	if g.Request.Requester == c.actor.Principal.Email && g.Status == grant.Approved {
		if out.AuthzJWT, _, err = c.s.Authority.Token(c.Context(), c.actor, g.ID); err != nil {
			return err
		}
	}
	return c.ok(http.StatusOK, out)
}

// widen permits more than what is asked, as the caller has chosen it.
func (c *call) widen(id string, d api.Decide) error {
	r := reach(d.GrantType, d.ExpiresAt)
	switch {
	case r.Type == "":
		r.Type = grant.Once
	case r.Type == grant.Timed && r.Until == 0 && d.Duration > 0:
		r.Until = grant.At(c.s.Authority.Now()) + grant.Millis(d.Duration*1000)
	}
	g, made, err := c.s.Authority.ApproveWidened(c.Context(), c.actor, id, authority.Widen{
		Details: d.Widened, Mode: d.ExtendMode, Old: d.Extended, Reach: r, Note: d.Note,
	})
	if err != nil {
		return err
	}
	return c.ok(http.StatusOK, api.Decided{Grant: c.s.grantView(g, true), Standing: made})
}

// approve answers with what the caller named, and where it named nothing with
// what was asked for: an answer never reaches further than that.
func (c *call) approve(id string, d api.Decide) (grant.Grant, error) {
	g, party, err := c.s.Authority.Get(c.Context(), c.actor, id)
	if err != nil {
		return g, err
	}
	if d.GrantType == "" {
		d.GrantType = grant.Once
		if party && d.Digest == nil {
			d.GrantType = g.Request.Type
			if d.Duration == 0 && d.GrantType == grant.Timed {
				d.Duration = g.Request.Duration
			}
		}
	}
	if d.Duration != 0 && d.GrantType != grant.Timed {
		// Taken for something else it would permit longer than the caller meant.
		return g, &authority.Error{Status: 400, Title: "Only a timed approval has a duration", Detail: "duration stands without grant_type timed."}
	}
	r := reach(d.GrantType, d.ExpiresAt)
	if r.Type == grant.Timed && r.Until == 0 && d.Duration > 0 && d.Digest == nil {
		r.Until = grant.At(c.s.Authority.Now()) + grant.Millis(d.Duration*1000)
	}
	return c.s.Authority.Approve(c.Context(), c.actor, id, authority.Answer{
		Reach: r, Digest: d.Digest, Note: d.Note, Proof: authority.Proof{Signature: d.Signature},
	})
}

func deny(c *call) error {
	var d api.Decide
	if err := c.body(&d); err != nil {
		return err
	}
	g, err := c.s.Authority.Deny(c.Context(), c.actor, c.PathValue("id"), d.Note)
	if err != nil {
		return err
	}
	return c.ok(http.StatusOK, c.s.grantView(g, true))
}

func revoke(c *call) error {
	var d api.Decide
	if err := c.body(&d); err != nil {
		return err
	}
	g, err := c.s.Authority.Revoke(c.Context(), c.actor, c.PathValue("id"), d.Note)
	if err != nil {
		return err
	}
	return c.ok(http.StatusOK, c.s.grantView(g, true))
}

func grantToken(c *call) error {
	raw, g, err := c.s.Authority.Token(c.Context(), c.actor, c.PathValue("id"))
	if err != nil {
		return err
	}
	return c.ok(http.StatusOK, api.Token{AuthzJWT: raw, Grant: c.s.grantView(g, true)})
}

func consume(c *call) error {
	raw, ok := bearer(c.Request)
	if !ok {
		return &authority.Error{Status: 401, Kind: "invalid_authz_jwt", Title: "The grant token is missing", Detail: "Send it as bearer."}
	}
	used, err := c.s.Authority.Consume(c.Context(), raw, c.PathValue("id"))
	var public *authority.Error
	if errors.As(err, &public) && public.Status == http.StatusUnauthorized {
		return c.s.failedBearer(c.Request, err)
	}
	if err != nil {
		return err
	}
	if used.Refused != "" {
		return c.ok(http.StatusOK, api.Consumed{Status: string(used.Grant.Status), Error: used.Refused})
	}
	out := api.Consumed{Status: "valid", Use: used.Use, Receipt: used.Receipt}
	if used.Grant.Type == grant.Once {
		out.Status = "consumed"
	}
	view := c.s.grantView(used.Grant, true)
	out.Grant = &view
	return c.ok(http.StatusOK, out)
}

func verify(c *call) error {
	var in api.Verify
	if err := c.body(&in); err != nil {
		return err
	}
	id, status, err := c.s.Authority.Verify(c.Context(), in.Token)
	if err != nil {
		return err
	}
	if id == "" {
		return c.ok(http.StatusOK, api.Verified{Error: "invalid_authz_jwt"})
	}
	return c.ok(http.StatusOK, api.Verified{Valid: true, Grant: &api.Grant{ID: id, Status: status}})
}

func outcome(c *call) error {
	var o api.Outcome
	if err := c.body(&o); err != nil {
		return err
	}
	if err := c.s.Authority.Outcome(c.Context(), c.actor, c.PathValue("id"), o); err != nil {
		return err
	}
	return c.ok(http.StatusOK, struct{}{})
}

func connections(c *call) error {
	var in api.Connections
	if err := c.body(&in); err != nil {
		return err
	}
	if err := c.s.Authority.Connections(c.Context(), c.actor, in); err != nil {
		return err
	}
	return c.ok(http.StatusOK, struct{}{})
}

const maxBatch = 200

// batch runs each operation under the same rules as its own address. Equal
// operations, which one client sends for one id, are one.
func batch(c *call) error {
	var in api.Batch
	if err := c.body(&in); err != nil {
		return err
	}
	if len(in.Operations) == 0 || len(in.Operations) > maxBatch {
		return &authority.Error{Status: 400, Title: "The batch is empty or too large", Detail: fmt.Sprintf("It has %d operations, want 1 to %d.", len(in.Operations), maxBatch)}
	}
	out := api.BatchResults{Results: make([]api.BatchResult, len(in.Operations))}
	status := http.StatusOK
	done := map[api.Operation]api.BatchResult{}
	for i, op := range in.Operations {
		result, seen := done[op]
		if !seen {
			result = c.operate(op)
			done[op] = result
		}
		if !result.Success {
			status = http.StatusMultiStatus
		}
		out.Results[i] = result
	}
	return c.ok(status, out)
}

func (c *call) operate(op api.Operation) api.BatchResult {
	var g grant.Grant
	var err error
	switch op.Action {
	case "approve":
		g, err = c.approve(op.ID, api.Decide{GrantType: op.GrantType, Duration: op.Duration})
	case "deny":
		g, err = c.s.Authority.Deny(c.Context(), c.actor, op.ID, "")
	case "revoke":
		g, err = c.s.Authority.Revoke(c.Context(), c.actor, op.ID, "")
	default:
		err = &authority.Error{Status: 400, Title: "Unknown action", Detail: fmt.Sprintf("action %q: want approve, deny or revoke.", op.Action)}
	}
	if err != nil && c.alreadySo(op, err) {
		g, err = grant.Grant{Status: becomes(op.Action)}, nil
	}
	if err != nil {
		return api.BatchResult{ID: op.ID, Error: c.s.problemFor(err)}
	}
	return api.BatchResult{ID: op.ID, Status: g.Status, Success: true}
}

// becomes is the state that an action leads to.
func becomes(action string) grant.Status {
	switch action {
	case "approve":
		return grant.Approved
	case "deny":
		return grant.Denied
	case "revoke":
		return grant.Revoked
	}
	return ""
}

// alreadySo reports whether an operation was refused only because it is done
// already, so that a batch that is sent again succeeds as it did. Whoever may not
// decide is refused before it matters what was decided.
func (c *call) alreadySo(op api.Operation, err error) bool {
	var e *authority.Error
	if !errors.As(err, &e) || e.Kind != "grant_already_decided" {
		return false
	}
	g, party, err := c.s.Authority.Get(c.Context(), c.actor, op.ID)
	return err == nil && party && g.Status == becomes(op.Action)
}

func (s *server) problemFor(err error) *api.Problem {
	var e *authority.Error
	if !errors.As(err, &e) {
		s.Log.Error("a part of a call failed", "err", err)
		e = &authority.Error{Status: 500, Title: "The authority failed"}
	}
	p := problemOf(e)
	return &p
}

// events streams the changes of the grants that the caller may see
// (server-sent events, WHATWG HTML section 9.2).
func events(c *call) error {
	sub, err := c.s.Authority.Watch(c.actor)
	if err != nil {
		return err
	}
	defer sub.Close()
	h := c.Header()
	h.Set("Content-Type", "text/event-stream")
	rc := http.NewResponseController(c.ResponseWriter)
	c.WriteHeader(http.StatusOK)
	if _, err := fmt.Fprint(c.ResponseWriter, ": connected\n\n"); err != nil || rc.Flush() != nil {
		return nil
	}
	beat := time.NewTicker(20 * time.Second)
	defer beat.Stop()
	for {
		line := ": still here\n\n"
		var g grant.Grant
		select {
		case <-c.Context().Done():
			return nil
		case <-beat.C:
		case g = <-sub.C:
		}
		// The login may have been revoked since the last line.
		raw, _ := bearer(c.Request)
		if _, err := c.s.Authority.Authenticate(c.Context(), raw); err != nil {
			return nil
		}
		if g.ID != "" {
			b, err := json.Marshal(struct {
				ID     string       `json:"id"`
				Status grant.Status `json:"status"`
			}{g.ID, g.Status})
			if err != nil {
				return nil
			}
			line = "event: grant\ndata: " + string(b) + "\n\n"
			if sub.Lost() {
				line = "event: resync\ndata: {}\n\n" + line
			}
		}
		if _, err := fmt.Fprint(c.ResponseWriter, line); err != nil || rc.Flush() != nil {
			return nil
		}
	}
}
