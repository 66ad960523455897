package client

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"vogt/internal/api"
	"vogt/internal/grant"
	"vogt/internal/statement"
)

// Ask asks for a grant. What comes back may be an earlier one that the request
// joined or that covers it.
func (c *Client) Ask(ctx context.Context, req grant.Request) (api.Grant, error) {
	req.Requester = c.login.Email
	var g api.Grant
	if err := c.do(ctx, call{method: http.MethodPost, path: api.PathGrants, body: req, answer: &g}); err != nil {
		return g, err
	}
	return g, c.checkGrant(g)
}

func (c *Client) checkGrant(g api.Grant) error {
	if g.Status == "" {
		return &Error{Kind: Malformed, Where: c.wire.base, Detail: "the grant has no status"}
	}
	return c.checkID("grant", g.ID)
}

// How Wait deals with an authority that is away for a moment, as in a restart.
const (
	longPoll    = 50 * time.Second // below the interface's limit of 55 s
	firstPause  = 250 * time.Millisecond
	longPause   = 4 * time.Second
	outageLimit = 30 * time.Second
)

// Wait returns the grant when it is no longer pending, and as it is after limit
// at the latest; a limit of zero looks once. An authority that cannot be
// reached is given half a minute to come back.
func (c *Client) Wait(ctx context.Context, id string, limit time.Duration) (api.Grant, error) {
	end := c.opts.Now().Add(limit)
	var outage time.Duration
	pause := firstPause
	for {
		left := end.Sub(c.opts.Now())
		g, err := c.look(ctx, id, min(left, longPoll))
		if err == nil {
			if g.Status != grant.Pending || !c.opts.Now().Before(end) {
				return g, nil
			}
			outage, pause = 0, firstPause
			continue
		}
		e, ok := errors.AsType[*Error](err)
		if !ok || e.Kind != Unreachable && e.Kind != Busy || left <= 0 || outage >= outageLimit {
			return g, err
		}
		if err := c.opts.Sleep(ctx, pause); err != nil {
			return g, err
		}
		outage += pause
		pause = min(2*pause, longPause)
	}
}

// Grant reads one grant as it is now.
func (c *Client) Grant(ctx context.Context, id string) (api.Grant, error) {
	return c.look(ctx, id, 0)
}

// look reads a grant; with wait it returns when the grant leaves the pending
// state or, in whole seconds, after that time.
func (c *Client) look(ctx context.Context, id string, wait time.Duration) (api.Grant, error) {
	ex := call{method: http.MethodGet, path: api.PathGrants + "/" + escape(id)}
	if wait > 0 {
		ex.query = url.Values{"wait": {strconv.Itoa(int(math.Ceil(wait.Seconds())))}}
		ex.limit = exchangeLimit + wait
	}
	var g api.Grant
	ex.answer = &g
	if err := c.do(ctx, ex); err != nil {
		return g, err
	}
	if g.ID != id {
		return g, &Error{Kind: Distrusted, Where: c.wire.base, Detail: fmt.Sprintf("asked about grant %q, it answered about %.80q", id, g.ID)}
	}
	return g, c.checkGrant(g)
}

// Filter narrows a list of grants. The zero value is everything.
type Filter struct {
	Status    grant.Status
	Requester string
	Limit     int // 0 for all
}

// pageSize is how many grants are fetched at once.
const pageSize = 100

// Grants lists the grants that the caller may see, newest first.
func (c *Client) Grants(ctx context.Context, f Filter) ([]api.Grant, error) {
	query := url.Values{}
	if f.Status != "" {
		query.Set("status", string(f.Status))
	}
	if f.Requester != "" {
		query.Set("requester", f.Requester)
	}
	all := []api.Grant{}
	for {
		size := pageSize
		if f.Limit > 0 {
			size = min(size, f.Limit-len(all))
		}
		query.Set("limit", strconv.Itoa(size))
		var page api.List
		if err := c.do(ctx, call{method: http.MethodGet, path: api.PathGrants, query: query, answer: &page}); err != nil {
			return nil, err
		}
		for _, g := range page.Data {
			if err := c.checkGrant(g); err != nil {
				return nil, err
			}
		}
		all = append(all, page.Data...)
		if f.Limit > 0 && len(all) >= f.Limit {
			return all[:f.Limit], nil
		}
		if !page.Pagination.HasMore || page.Pagination.Cursor == nil || len(page.Data) == 0 {
			return all, nil
		}
		query.Set("cursor", *page.Pagination.Cursor)
	}
}

// Reach is how far an approval goes.
type Reach struct {
	Type grant.Type
	End  int64 // unix seconds, of a timed one
}

// Offer returns the statement that an approval of g with this reach signs,
// after a check that it is the statement of what g shows and that the digest
// is its digest.
func (c *Client) Offer(ctx context.Context, g api.Grant, reach Reach) (api.Offer, error) {
	query := url.Values{"grant_type": {string(reach.Type)}}
	if reach.End != 0 {
		query.Set("expires_at", strconv.FormatInt(reach.End, 10))
	}
	var offer api.Offer
	err := c.do(ctx, call{method: http.MethodGet, path: api.PathGrants + "/" + escape(g.ID) + "/statement", query: query, answer: &offer})
	if err != nil {
		return offer, err
	}
	if what := c.misstated(offer, g, reach); what != "" {
		return offer, &Error{Kind: Distrusted, Where: c.wire.base,
			Detail: "the statement to be signed is not that of the grant that was shown: " + what + " differs", Hint: "sign nothing; ask whoever runs the authority"}
	}
	return offer, nil
}

// misstated names the first part of an offer that contradicts the grant.
func (c *Client) misstated(offer api.Offer, g api.Grant, reach Reach) string {
	s := offer.Statement
	if g.Request == nil {
		return "request"
	}
	req := *g.Request
	purpose := statement.Run
	if req.RunAs != "" {
		purpose = statement.Crossing
	}
	if req.Connect != nil {
		purpose = statement.Connect
	}
	context := grant.Context{}
	if req.Context != nil {
		context = *req.Context
	}
	for _, part := range []struct {
		name string
		fits bool
	}{
		{"digest", s.Digest() == offer.Digest},
		{"purpose", s.Purpose == purpose},
		{"issuer", s.Issuer == c.wire.base},
		{"grant", s.GrantID == g.ID},
		{"command", slices.Equal(s.Argv, req.Command)},
		{"requester", s.Requester != nil && *s.Requester == g.Requester},
		{"host", s.Host != nil && *s.Host == "claimed:"+req.Host},
		{"run_as", s.RunAsUID == nil && s.RunAsGroups == nil && equalText(s.RunAsName, req.RunAs)},
		{"reason", equalText(s.Reason, req.Reason)},
		{"grant type", s.GrantType == string(reach.Type)},
		{"end", equalNumber(s.Expiry, reach.End) && s.NotBefore == nil},
		{"program", equalFile(s.Executable, context.File)},
		{"interpreter", equalFiles(s.Interpreters, context.Interpreters)},
		{"working directory", equalFile(s.Cwd, context.Cwd)},
		{"caller", equal(s.CallerUID, context.UID)},
		{"standard input", equal(s.Stdin, context.Stdin)},
		{"confinement", equal(s.Confinement, context.Confinement)},
		{"network", equal(s.NetworkMode, context.NetworkMode)},
		{"number of persons", slices.Equal(s.Limits, limitsOf(g))},
		{"connection", req.Connect == nil || s.Argv == nil && s.NetworkMode != nil && *s.NetworkMode == req.Connect.Network().Mode()},
	} {
		if !part.fits {
			return part.name
		}
	}
	return ""
}

// limitsOf is how a statement says how many persons must allow a grant.
func limitsOf(g api.Grant) []string {
	if g.Approvals < 2 {
		return nil
	}
	return []string{fmt.Sprintf("approvals=%d", g.Approvals)}
}

func equal[T comparable](a, b *T) bool {
	return (a == nil) == (b == nil) && (a == nil || *a == *b)
}

func equalText(a *string, b string) bool {
	if a == nil {
		return b == ""
	}
	return *a == b
}

func equalNumber(a *uint64, b int64) bool {
	if a == nil {
		return b == 0
	}
	return *a == uint64(b)
}

func equalFile(a, b *statement.File) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return equal(a.Path, b.Path) && equal(a.Device, b.Device) && equal(a.Inode, b.Inode) &&
		equal(a.SHA256, b.SHA256) && equal(a.Size, b.Size)
}

func equalFiles(a, b []statement.File) bool {
	return slices.EqualFunc(a, b, func(a, b statement.File) bool { return equalFile(&a, &b) })
}

// Approve sends a person's yes, with the signature that it needs. Where two persons
// must say it, the grant may still be pending afterwards, and names the first.
func (c *Client) Approve(ctx context.Context, id string, d api.Decide) (api.Grant, error) {
	var decided api.Decided
	err := c.do(ctx, call{method: http.MethodPost, path: api.PathGrants + "/" + escape(id) + "/approve", body: d, answer: &decided})
	if g := decided.Grant; err == nil && (g.Status != grant.Pending || g.Approvals < 2 || g.First != c.login.Email) {
		err = c.mustBe(g, id, grant.Approved)
	}
	return decided.Grant, err
}

// Deny sends a person's no; the login suffices.
func (c *Client) Deny(ctx context.Context, id, note string) (api.Grant, error) {
	return c.narrow(ctx, id, "deny", api.Decide{Note: note}, grant.Denied)
}

// Revoke takes a request or a permission back; the login suffices.
func (c *Client) Revoke(ctx context.Context, id string) (api.Grant, error) {
	return c.narrow(ctx, id, "revoke", nil, grant.Revoked)
}

func (c *Client) narrow(ctx context.Context, id, verb string, body any, want grant.Status) (api.Grant, error) {
	var g api.Grant
	err := c.do(ctx, call{method: http.MethodPost, path: api.PathGrants + "/" + escape(id) + "/" + verb, body: body, answer: &g})
	if err == nil {
		err = c.mustBe(g, id, want)
	}
	return g, err
}

func (c *Client) mustBe(g api.Grant, id string, want grant.Status) error {
	if g.ID != id || g.Status != want {
		return &Error{Kind: Distrusted, Where: c.wire.base, Detail: fmt.Sprintf("grant %q should be %s now, the answer says %.80q is %.20q", id, want, g.ID, g.Status)}
	}
	return nil
}

// Receipt returns the proof of the decision on a grant.
func (c *Client) Receipt(ctx context.Context, id string) (api.Receipt, error) {
	var r api.Receipt
	err := c.do(ctx, call{method: http.MethodGet, path: api.PathGrants + "/" + escape(id) + "/receipt", answer: &r})
	if err == nil && r.GrantID != id {
		err = &Error{Kind: Distrusted, Where: c.wire.base, Detail: fmt.Sprintf("asked for the receipt of grant %q, it sent that of %.80q", id, r.GrantID)}
	}
	return r, err
}

// Agents lists the agents of the person who is logged in.
func (c *Client) Agents(ctx context.Context) ([]api.Principal, error) {
	agents := []api.Principal{}
	err := c.do(ctx, call{method: http.MethodGet, path: api.PathMyAgents, answer: &agents})
	return agents, err
}

// Agent reads one agent.
func (c *Client) Agent(ctx context.Context, email string) (api.Principal, error) {
	var p api.Principal
	err := c.do(ctx, call{method: http.MethodGet, path: api.PathMyAgents + "/" + escape(email), answer: &p})
	return p, err
}

// Pause stops an agent: its requests are not taken and its permissions do not
// count until a person resumes it. The login suffices.
func (c *Client) Pause(ctx context.Context, email string) error {
	return c.do(ctx, call{method: http.MethodPatch, path: api.PathMyAgents + "/" + escape(email), body: map[string]bool{"paused": true}})
}

// RemoveAgent removes an agent for good.
func (c *Client) RemoveAgent(ctx context.Context, email string) error {
	return c.do(ctx, call{method: http.MethodDelete, path: api.PathMyAgents + "/" + escape(email)})
}

// Panic stops every agent of the person who is logged in.
func (c *Client) Panic(ctx context.Context, reason string) (api.PanicResult, error) {
	var result api.PanicResult
	err := c.do(ctx, call{method: http.MethodPost, path: api.PathPanic, body: api.Panic{Reason: reason}, answer: &result})
	return result, err
}

// ReportConnections sends what the proxy of a box has seen. A report that is sent
// again is recorded once.
func (c *Client) ReportConnections(ctx context.Context, report api.Connections) error {
	return c.do(ctx, call{method: http.MethodPost, path: api.PathConnections, body: report})
}

// Hopeless reports whether an error of the authority stays the same when the same
// thing is sent again.
func Hopeless(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && settled(e.Kind)
}
