package authority_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"vogt/internal/api"
	"vogt/internal/authority"
	"vogt/internal/authoritytest"
	"vogt/internal/detail"
	"vogt/internal/grant"
)

func delegationPath(id string, verb ...string) string {
	return strings.Join(append([]string{api.PathDelegations, id}, verb...), "/")
}

// delegate has a person sign a delegation.
func delegate(t *testing.T, from *authoritytest.Principal, params map[string]string) api.Delegation {
	t.Helper()
	done := from.Change(api.TrustDelegationAdd, params)
	tr := done.Delegation
	if tr == nil || tr.ID == "" || tr.Status != grant.Approved {
		t.Fatalf("delegated: %+v", done)
	}
	return *tr
}

func toPlans(to *authoritytest.Principal) map[string]string {
	return map[string]string{"delegate": to.Email, "audience": "plans.example.com", "scopes": "plans:write plans:read plans:read"}
}

func use(s *authoritytest.Server, id, delegate, audience string) ([]string, error) {
	return s.Authority.UseDelegation(context.Background(), id, delegate, audience)
}

// status is that of the authority's error, 0 for none.
func status(t *testing.T, err error) int {
	t.Helper()
	var e *authority.Error
	switch {
	case err == nil:
		return 0
	case !errors.As(err, &e):
		t.Fatalf("an error that nobody may read: %v", err)
	}
	return e.Status
}

// TestDelegationLife: signed, listed by both, used once, and over.
func TestDelegationLife(t *testing.T) {
	t.Parallel()
	c := newCast(t)
	d := delegate(t, c.owner, toPlans(c.sibling))
	want := api.Delegation{
		ID: d.ID, Type: "delegation", Status: grant.Approved, Delegator: c.owner.Email, Delegate: c.sibling.Email, Audience: "plans.example.com",
		Scopes: []string{"plans:read", "plans:write"}, CreatedAt: d.CreatedAt, DecidedAt: d.CreatedAt, DecidedBy: c.owner.Email,
		ExpiresAt: c.s.Clock.Now().Add(7 * 24 * time.Hour).Unix(), Strength: grant.Independent, Record: d.Record,
		Request: api.DelegationRequest{
			Requester: c.owner.Email, Host: "plans.example.com", Audience: "plans.example.com", Type: grant.Once, Delegator: c.owner.Email,
			Delegate: c.sibling.Email, Scopes: []string{"plans:read", "plans:write"},
		},
	}
	if !reflect.DeepEqual(d, want) {
		t.Errorf("delegated\n%+v, want\n%+v", d, want)
	}
	if rec := c.s.Records()[d.Record]; rec.Type != "trust" || !strings.Contains(string(rec.Body), d.ID) || !strings.Contains(string(rec.Body), `"delegation.add"`) {
		t.Errorf("record %d is %s %s", d.Record, rec.Type, rec.Body)
	}
	for who, sees := range map[string]bool{"owner": true, "sibling": true, "approver": false, "stranger": false, "requester": false, "foreign agent": false} {
		for query, role := range map[string]string{"": "", "?role=delegator": "owner", "?role=delegate": "sibling"} {
			var page api.Delegations
			c.clients[who].Get(api.PathDelegations + query).Want(200).Into(&page)
			if listed := len(page.Data) == 1; listed != (sees && (role == "" || role == who)) {
				t.Errorf("%s%s lists %+v", who, query, page.Data)
			}
		}
		if a := c.clients[who].Get(delegationPath(d.ID)); (a.Status == 200) != sees || !sees && a.Status != 404 {
			t.Errorf("%s reads it: %d", who, a.Status)
		}
	}
	c.owner.Get(api.PathDelegations + "?role=x").Problem(400)
	c.s.Stranger().Get(api.PathDelegations).Problem(401)

	// What it is not for.
	for name, test := range map[string]struct {
		id, delegate, audience string
		want                   int
	}{
		"unknown":               {"00000000-0000-4000-8000-000000000000", c.sibling.Email, "plans.example.com", 404},
		"another delegate":      {d.ID, c.requester.Email, "plans.example.com", 404},
		"the delegator himself": {d.ID, c.owner.Email, "plans.example.com", 404},
		"nobody":                {d.ID, "", "plans.example.com", 404},
		"another audience":      {d.ID, c.sibling.Email, "other.example.com", 403},
		"a longer name":         {d.ID, c.sibling.Email, "plans.example.com.evil.example", 403},
		"another case":          {d.ID, c.sibling.Email, "Plans.example.com", 403},
		"any audience":          {d.ID, c.sibling.Email, "*", 403},
		"no audience":           {d.ID, c.sibling.Email, "", 403},
	} {
		if _, err := use(c.s, test.id, test.delegate, test.audience); status(t, err) != test.want {
			t.Errorf("%s: %v, want %d", name, err, test.want)
		}
	}
	scopes, err := use(c.s, d.ID, c.sibling.Email, "plans.example.com")
	if err != nil || !slices.Equal(scopes, d.Scopes) {
		t.Errorf("used: %q, %v", scopes, err)
	}
	if !c.s.HasRecord("delegation", d.ID, `"by":"`+c.sibling.Email, `"delegator":"`+c.owner.Email, "plans:write", `"n":1`) {
		t.Errorf("on record: %q", c.s.Recorded("delegation"))
	}
	if _, err := use(c.s, d.ID, c.sibling.Email, "plans.example.com"); status(t, err) != 410 {
		t.Errorf("used again: %v", err)
	}
	if n := len(c.s.Recorded("delegation")); n != 1 {
		t.Errorf("%d uses are on record", n)
	}
	var now api.Delegation
	c.sibling.Get(delegationPath(d.ID)).Want(200).Into(&now)
	if now.Status != grant.Used || now.Uses != 1 || now.UsedAt == 0 {
		t.Errorf("after its use: %+v", now)
	}
	// On the wire it is a grant, of which strangers learn the state.
	for _, who := range []string{"anonymous", "stranger", "foreign agent"} {
		if a := c.clients[who].Get(authoritytest.GrantPath(d.ID)).Want(200); strings.TrimSpace(string(a.Body)) != `{"id":"`+d.ID+`","status":"used"}` {
			t.Errorf("%s is told %s", who, a.Body)
		}
	}
	var as api.Grant
	c.owner.Get(authoritytest.GrantPath(d.ID)).Want(200).Into(&as)
	if as.Type != "delegation" || as.Request == nil || as.Request.Audience != d.Audience || as.DecidedBy != c.owner.Email {
		t.Errorf("its delegator reads as a grant: %+v", as)
	}
	// And none that could run a command.
	for _, verb := range []string{"approve", "token", "statement", "receipt", "revoke", "deny"} {
		if a := c.owner.Post(authoritytest.GrantPath(d.ID, verb), nil); a.Status != 404 && a.Status != 405 {
			t.Errorf("%s of a delegation as a grant: %d %s", verb, a.Status, a.Body)
		}
	}
}

// TestDelegationTerms: what may stand in one, and that a refused one leaves nothing.
func TestDelegationTerms(t *testing.T) {
	t.Parallel()
	c := newCast(t, authoritytest.WithBearer(detail.High))
	now := c.s.Clock.Now()
	far := now.Add(40 * 365 * 24 * time.Hour).UTC().Format(time.RFC3339)
	type m = map[string]any
	tests := []struct {
		name string
		body m
		want int
		ends int64 // of one that is taken
	}{
		{"as the client sends it", m{"grant_type": "always", "scopes": []string{"a", "b"}}, 201, 0},
		{"no type", m{}, 201, now.Unix() + 7*24*3600},
		{"once until", m{"grant_type": "once", "expires_at": "2099-01-01T00:00:00Z"}, 201, 4070908800},
		{"once for", m{"grant_type": "once", "duration": 60}, 201, now.Unix() + 60},
		{"always until", m{"grant_type": "always", "expires_at": now.Unix() + 5}, 201, now.Unix() + 5},
		{"timed, far", m{"grant_type": "timed", "duration": 2274878847}, 201, now.Unix() + 2274878847},
		{"timed until", m{"grant_type": "timed", "expires_at": far}, 201, now.Add(40 * 365 * 24 * time.Hour).Unix()},
		{"any audience", m{"audience": "*"}, 201, now.Unix() + 7*24*3600},
		{"timed without an end", m{"grant_type": "timed"}, 400, 0},
		{"timed for nothing", m{"grant_type": "timed", "duration": 0}, 400, 0},
		{"timed for less", m{"grant_type": "timed", "duration": -5}, 400, 0},
		{"timed for too long", m{"grant_type": "timed", "duration": int64(1) << 62}, 400, 0},
		{"two ends", m{"grant_type": "timed", "duration": 5, "expires_at": far}, 400, 0},
		{"over already", m{"expires_at": now.UTC().Format(time.RFC3339)}, 400, 0},
		{"no time", m{"expires_at": "tomorrow"}, 400, 0},
		{"no time either", m{"expires_at": []int{1}}, 400, 0},
		{"an unknown type", m{"grant_type": "standing"}, 400, 0},
		{"no audience", m{"audience": ""}, 400, 0},
		{"an audience of two words", m{"audience": "a b"}, 400, 0},
		{"an audience that turns", m{"audience": "a\u202eb"}, 400, 0},
		{"a long audience", m{"audience": strings.Repeat("a", 300)}, 400, 0},
		{"this authority's logins", m{"audience": "apes-cli"}, 400, 0},
		{"the same in capitals", m{"audience": "APES-CLI"}, 400, 0},
		{"this authority", m{"audience": c.s.URL}, 400, 0},
		{"its token address", m{"audience": c.s.URL + "/token"}, 400, 0},
		{"its pages", m{"audience": c.s.Pages}, 400, 0},
		{"nobody", m{"delegate": ""}, 400, 0},
		{"somebody unknown", m{"delegate": "nobody@example.com"}, 400, 0},
		{"no address", m{"delegate": "x y"}, 400, 0},
		{"oneself", m{"delegate": c.owner.Email}, 400, 0},
		{"oneself in capitals", m{"delegate": strings.ToUpper(c.owner.Email)}, 400, 0},
		{"an empty scope", m{"scopes": []string{""}}, 400, 0},
		{"two scopes in one", m{"scopes": []string{"a b"}}, 400, 0},
		{"a scope with a quote", m{"scopes": []string{`a"b`}}, 400, 0},
		{"too many scopes", m{"scopes": strings.Split(numbers(65), " ")}, 400, 0},
	}
	for _, test := range tests {
		body := m{"delegate": c.sibling.Email, "audience": "plans.example.com"}
		for k, v := range test.body {
			body[k] = v
		}
		before := len(c.s.Records())
		a := c.owner.Post(api.PathDelegations, body)
		if a.Status != test.want {
			t.Errorf("%s: %d, want %d: %s", test.name, a.Status, test.want, a.Body)
			continue
		}
		if test.want != 201 {
			a.Problem(test.want)
			if n := len(c.s.Records()); n != before {
				t.Errorf("%s: %d records were left", test.name, n-before)
			}
			continue
		}
		var d api.Delegation
		a.Into(&d)
		if d.ExpiresAt != test.ends || d.Strength != grant.Bearer {
			t.Errorf("%s: ends at %d, want %d; %s", test.name, d.ExpiresAt, test.ends, d.Strength)
		}
	}
	var page api.Delegations
	c.owner.Get(api.PathDelegations + "?limit=100").Into(&page)
	taken := 0
	for _, test := range tests {
		if test.want == 201 {
			taken++
		}
	}
	if len(page.Data) != taken {
		t.Errorf("%d delegations stand, %d were taken", len(page.Data), taken)
	}
	// Pages neither skip nor repeat, though all have one time.
	seen, cursor := map[string]bool{}, ""
	for {
		var page api.Delegations
		c.owner.Get(api.PathDelegations + "?limit=3" + cursor).Into(&page)
		for _, d := range page.Data {
			if seen[d.ID] {
				t.Errorf("%s is listed twice", d.ID)
			}
			seen[d.ID] = true
		}
		if page.Pagination.Cursor == nil {
			break
		}
		cursor = "&cursor=" + *page.Pagination.Cursor
	}
	if len(seen) != taken {
		t.Errorf("%d on the pages, want %d", len(seen), taken)
	}
}

func numbers(n int) string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprint("s", i))
	}
	return strings.Join(out, " ")
}

// TestWhoDelegates: a login delegates where the switch says high, and nobody but a
// person does.
func TestWhoDelegates(t *testing.T) {
	t.Parallel()
	for _, bearer := range []detail.Risk{detail.Unrated, detail.Medium, detail.High} {
		t.Run(bearer.String(), func(t *testing.T) {
			t.Parallel()
			c := newCast(t, authoritytest.WithBearer(bearer))
			for who, cl := range c.clients {
				to := c.approver.Email
				if who == "approver" {
					to = c.owner.Email
				}
				a := cl.Post(api.PathDelegations, map[string]any{"delegate": to, "audience": "plans.example.com"})
				want := 403
				person := who == "owner" || who == "approver" || who == "stranger"
				switch {
				case who == "anonymous":
					want = 401
				case person && bearer == detail.High:
					want = 201
				}
				if a.Status != want {
					t.Errorf("%s delegates by login: %d, want %d", who, a.Status, want)
				}
				p := c.keys[who]
				if p == nil || person {
					continue
				}
				// With an agent's key, a person's signature, or none, a change is not confirmed.
				tr, _ := p.Prepare(api.TrustDelegationAdd, toPlans(c.approver))
				c.owner.Get(trustPath(tr.ID)).Into(&tr)
				d := *tr.Digest
				own, err := p.Key.SignDecision(d)
				if err != nil {
					t.Fatal(err)
				}
				for _, signature := range []string{"", own} {
					p.Post(trustPath(tr.ID, "confirm"), api.ConfirmTrust{Digest: d, Signature: signature}).Problem(403)
				}
				p.Post(trustPath(tr.ID, "confirm"), c.owner.SignedChange(tr.ID)).Problem(403)
			}
		})
	}
}

// TestThousandDelegates: of a thousand parallel uses of a delegation for one, exactly
// one gets through.
func TestThousandDelegates(t *testing.T) {
	t.Parallel()
	c := newCast(t)
	d := delegate(t, c.owner, toPlans(c.sibling))
	var won, spent, other atomic.Int64
	together(1000, func(int) {
		_, err := use(c.s, d.ID, c.sibling.Email, "plans.example.com")
		var e *authority.Error
		switch {
		case err == nil:
			won.Add(1)
		case errors.As(err, &e) && e.Status == 410:
			spent.Add(1)
		default:
			other.Add(1)
		}
	})
	if won.Load() != 1 || spent.Load() != 999 || other.Load() != 0 {
		t.Errorf("%d got through, %d found it spent, %d something else", won.Load(), spent.Load(), other.Load())
	}
	if n := len(c.s.Recorded("delegation")); n != 1 {
		t.Errorf("%d uses are on record", n)
	}
}

// TestDelegationCutOff: whatever happens to those whom a delegation binds ends its
// use, at once.
func TestDelegationCutOff(t *testing.T) {
	t.Parallel()
	type scene struct {
		*cast
		d api.Delegation
	}
	patch := func(c *cast, p *authoritytest.Principal, body map[string]bool) {
		c.s.Manager().Do("PATCH", api.PathMyAgents+"/"+p.Email, body).Want(200)
	}
	tests := []struct {
		name  string
		do    func(s scene)
		ended grant.Status // as its delegator, or management, sees it then
		told  grant.Status // as services are told
	}{
		{"nothing", func(scene) {}, grant.Approved, grant.Approved},
		{"revoked", func(s scene) { s.stranger.Do("DELETE", delegationPath(s.d.ID), nil).Want(200) }, grant.Revoked, grant.Revoked},
		{"revoked by management", func(s scene) { s.s.Manager().Do("DELETE", delegationPath(s.d.ID), nil).Want(200) }, grant.Revoked, grant.Revoked},
		{"over", func(s scene) { s.s.Clock.Advance(time.Hour) }, grant.Expired, grant.Expired},
		{"a moment before", func(s scene) { s.s.Clock.Advance(time.Hour - time.Millisecond) }, grant.Approved, grant.Approved},
		{"the delegator is switched off", func(s scene) { patch(s.cast, s.stranger, map[string]bool{"isActive": false}) }, grant.Revoked, grant.Revoked},
		{"the delegator is switched off and on", func(s scene) {
			patch(s.cast, s.stranger, map[string]bool{"isActive": false})
			patch(s.cast, s.stranger, map[string]bool{"isActive": true})
		}, grant.Revoked, grant.Revoked},
		{"the delegator is removed", func(s scene) { s.s.Manager().Do("DELETE", "/api/admin/users/"+s.stranger.Email, nil).Want(200) }, grant.Revoked, grant.Revoked},
		{"the delegate is switched off", func(s scene) { patch(s.cast, s.sibling, map[string]bool{"isActive": false}) }, grant.Revoked, grant.Revoked},
		{"the delegate is removed", func(s scene) { s.owner.Do("DELETE", api.PathMyAgents+"/"+s.sibling.Email, nil).Want(200) }, grant.Revoked, grant.Revoked},
		{"the delegate is paused", func(s scene) {
			s.owner.Do("PATCH", api.PathMyAgents+"/"+s.sibling.Email, map[string]bool{"paused": true}).Want(200)
		}, grant.Approved, grant.Pending},
		{"panic", func(s scene) { s.owner.Post(api.PathPanic, nil).Want(200) }, grant.Approved, grant.Pending},
		{"the delegate's owner is switched off", func(s scene) { patch(s.cast, s.owner, map[string]bool{"isActive": false}) }, grant.Approved, grant.Pending},
		{"the delegate's owner is removed", func(s scene) { s.s.Manager().Do("DELETE", "/api/admin/users/"+s.owner.Email, nil).Want(200) }, grant.Revoked, grant.Revoked},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c := newCast(t)
			d := delegate(t, c.stranger, map[string]string{"delegate": c.sibling.Email, "audience": "*", "grant_type": "timed", "duration": "3600"})
			if _, err := use(c.s, d.ID, c.sibling.Email, "plans.example.com"); err != nil {
				t.Fatal(err)
			}
			test.do(scene{c, d})
			works := test.told == grant.Approved
			if _, err := use(c.s, d.ID, c.sibling.Email, "plans.example.com"); (err == nil) != works {
				t.Errorf("used: %v", err)
			}
			var valid api.DelegationValidity
			c.s.Stranger().Post(delegationPath(d.ID, "validate"), api.ValidateDelegation{Delegate: c.sibling.Email, Audience: "plans.example.com"}).Want(200).Into(&valid)
			if valid.Valid != works {
				t.Errorf("validated: %+v", valid)
			}
			var now api.Delegation
			c.s.Manager().Get(delegationPath(d.ID)).Want(200).Into(&now)
			if now.Status != test.ended {
				t.Errorf("it is %s, want %s", now.Status, test.ended)
			}
			var told api.Grant
			c.s.Stranger().Get(authoritytest.GrantPath(d.ID)).Want(200).Into(&told)
			if told.Status != test.told {
				t.Errorf("services are told that it is %s, want %s", told.Status, test.told)
			}
		})
	}
}

// TestDelegationAfterReenrolment: whoever is enrolled under an address later has no
// part in what it named before.
func TestDelegationAfterReenrolment(t *testing.T) {
	t.Parallel()
	c := newCast(t)
	d := delegate(t, c.stranger, map[string]string{"delegate": c.sibling.Email, "audience": "*", "grant_type": "always"})
	c.owner.Do("DELETE", api.PathMyAgents+"/"+c.sibling.Email, nil).Want(200)
	again := c.s.Agent(c.owner, "sibling")
	if again.Email != c.sibling.Email {
		t.Fatalf("enrolled anew as %s", again.Email)
	}
	if _, err := use(c.s, d.ID, again.Email, "plans.example.com"); err == nil {
		t.Error("the later holder of the address used it")
	}
	again.Get(delegationPath(d.ID)).Problem(404)
	var page api.Delegations
	again.Get(api.PathDelegations).Into(&page)
	if len(page.Data) != 0 {
		t.Errorf("the later holder lists %+v", page.Data)
	}
}

// TestRevokeDelegation: the delegator's login suffices, the delegate's does not.
func TestRevokeDelegation(t *testing.T) {
	t.Parallel()
	c := newCast(t)
	for who, want := range map[string]int{
		"owner": 200, "sibling": 403, "requester": 404, "approver": 404, "stranger": 404, "foreign agent": 404, "management": 200, "anonymous": 401,
	} {
		d := delegate(t, c.owner, toPlans(c.sibling))
		a := c.clients[who].Do("DELETE", delegationPath(d.ID), nil)
		if a.Status != want {
			t.Errorf("%s revokes: %d, want %d", who, a.Status, want)
		}
		if want != 200 {
			a.Problem(want)
			continue
		}
		a.Into(&d)
		if d.Status != grant.Revoked || !c.s.HasRecord("trust", "delegation.revoked", d.ID) {
			t.Errorf("%s revoked: %+v", who, d)
		}
		c.clients[who].Do("DELETE", delegationPath(d.ID), nil).Problem(409)
	}
}

// TestValidateTellsLittle: whoever is no party learns one bit, and only of a
// delegation whose identifier, delegate and audience it knows; nothing is spent.
func TestValidateTellsLittle(t *testing.T) {
	t.Parallel()
	c := newCast(t)
	d := delegate(t, c.owner, toPlans(c.sibling))
	right := api.ValidateDelegation{Delegate: c.sibling.Email, Audience: "plans.example.com"}
	wrong := api.ValidateDelegation{Delegate: c.sibling.Email, Audience: "other.example.com"}
	for who, cl := range c.clients {
		party := who == "owner" || who == "sibling" || who == "management"
		ask := func(id string, in api.ValidateDelegation) string {
			return strings.TrimSpace(string(cl.Post(delegationPath(id, "validate"), in).Want(200).Body))
		}
		yes, no := ask(d.ID, right), ask(d.ID, wrong)
		if !party && (yes != `{"valid":true}` || no != `{"valid":false}`) || party && (!strings.Contains(yes, "plans:write") || !strings.Contains(no, "another service")) {
			t.Errorf("%s is told %s and %s", who, yes, no)
		}
		if got := ask("00000000-0000-4000-8000-000000000000", right); got != `{"valid":false}` {
			t.Errorf("%s of an unknown one: %s", who, got)
		}
	}
	if _, err := use(c.s, d.ID, c.sibling.Email, "plans.example.com"); err != nil {
		t.Errorf("validating has spent it: %v", err)
	}
}

// TestDelegationsAfterRestore: whether one was revoked or used since the copy is not
// known, so that all of them end.
func TestDelegationsAfterRestore(t *testing.T) {
	t.Parallel()
	c := newCast(t)
	d := delegate(t, c.owner, map[string]string{"delegate": c.sibling.Email, "audience": "*", "grant_type": "always"})
	backup := c.s.Backup()
	c.owner.Do("DELETE", delegationPath(d.ID), nil).Want(200)
	text, err := c.s.Authority.LatestCheckpoint(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	c.s.Restore(backup)
	if began, err := c.s.Authority.NoteCheckpoint(context.Background(), text); err != nil || !began {
		t.Fatalf("a new epoch: %v, %v", began, err)
	}
	if _, err := use(c.s, d.ID, c.sibling.Email, "plans.example.com"); status(t, err) != 410 {
		t.Errorf("used after the restore: %v", err)
	}
}

// TestDelegatedTokenIsNoLogin: a token with a delegated actor, and whatever else is
// signed by this authority and is no login, opens none of its addresses, however much
// it looks like the delegator's login.
func TestDelegatedTokenIsNoLogin(t *testing.T) {
	t.Parallel()
	c := newCast(t, authoritytest.WithBearer(detail.High))
	d := delegate(t, c.owner, map[string]string{"delegate": c.sibling.Email, "audience": "*", "grant_type": "always"})
	login := claimsOf(t, c.owner.Bearer)
	delegated := func(change func(map[string]any)) string {
		claims := map[string]any{}
		for k, v := range login {
			claims[k] = v
		}
		claims["act"] = map[string]string{"sub": c.sibling.Email}
		claims["delegation_grant"], claims["scope"] = d.ID, []string{"*"}
		change(claims)
		raw, err := c.s.Authority.Sign(claims)
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	tokens := map[string]string{
		"the delegator's login with an actor": delegated(func(map[string]any) {}),
		"as /token issues them":               delegated(func(c map[string]any) { delete(c, "vogt_use"); c["aud"] = "plans.example.com" }),
		"for this authority": delegated(func(m map[string]any) {
			delete(m, "vogt_use")
			m["aud"] = c.s.URL
		}),
		"an assertion for the client": delegated(func(m map[string]any) { delete(m, "vogt_use") }),
		"a login's use, another audience": delegated(func(m map[string]any) {
			m["act"], m["aud"] = "human", "plans.example.com"
		}),
		"delegated, with the text human": delegated(func(m map[string]any) {
			m["act"] = "human"
			delete(m, "vogt_use")
		}),
		"two actors": delegated(func(m map[string]any) {
			m["act"] = []any{"human", map[string]string{"sub": c.sibling.Email}}
		}),
	}
	public := []string{"GET " + api.PathDiscovery, "GET " + api.PathJWKS}
	for name, raw := range tokens {
		cl := &authoritytest.Client{S: c.s, Bearer: raw}
		for _, route := range routes(t) {
			method, path, _ := strings.Cut(route, " ")
			if slices.Contains(public, route) {
				continue
			}
			path = regexp.MustCompile(`\{(id)\}`).ReplaceAllString(path, d.ID)
			path = regexp.MustCompile(`\{\w+\}`).ReplaceAllString(path, c.owner.Email)
			a := cl.Do(method, path, map[string]any{"delegate": c.approver.Email, "audience": "x"})
			if strings.HasPrefix(path, "/api/admin/") && a.Status == http.StatusForbidden && a.Problem(403).Title == "Invalid management token" {
				continue
			}
			if a.Status != http.StatusUnauthorized {
				t.Errorf("%s: %s answers %d %.200s", name, route, a.Status, a.Body)
			}
		}
	}
	// The login itself is one.
	c.owner.Get(api.PathWhoAmI).Want(200)
}

func claimsOf(t *testing.T, raw string) (claims map[string]any) {
	t.Helper()
	parts := strings.Split(raw, ".")
	if len(parts) != 3 {
		t.Fatal("no token")
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err == nil {
		err = json.Unmarshal(payload, &claims)
	}
	if err != nil {
		t.Fatal(err)
	}
	return claims
}

// routes are the interface's patterns, read from where they are written down.
func routes(t *testing.T) (out []string) {
	t.Helper()
	names := map[string]string{}
	files, err := filepath.Glob("../api/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if v, ok := n.(*ast.ValueSpec); ok && len(v.Values) == 1 {
				if lit, ok := v.Values[0].(*ast.BasicLit); ok && lit.Kind == token.STRING {
					names[v.Names[0].Name], _ = strconv.Unquote(lit.Value)
				}
			}
			return true
		})
	}
	var source []byte
	if files, err = filepath.Glob("../httpapi/*.go"); err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		source = append(source, regexp.MustCompile(`(?m)^\s*//.*$`).ReplaceAll(text, nil)...)
	}
	wired := regexp.MustCompile(`s\.(handle|signedIn)\(("[^,]*),`)
	for _, m := range wired.FindAllStringSubmatch(string(source), -1) {
		pattern := ""
		for part := range strings.SplitSeq(m[2], "+") {
			part = strings.TrimSpace(part)
			if name, ok := strings.CutPrefix(part, "api."); ok {
				if names[name] == "" {
					t.Fatalf("api.%s of routes.go is no address", name)
				}
				pattern += names[name]
				continue
			}
			text, err := strconv.Unquote(part)
			if err != nil {
				t.Fatalf("routes.go: %s", m[0])
			}
			pattern += text
		}
		out = append(out, pattern)
	}
	if n := strings.Count(string(source), "s.handle(\"") + strings.Count(string(source), "s.signedIn(\""); len(out) != n || n < 40 {
		t.Fatalf("%d of %d routes were understood", len(out), n)
	}
	return out
}
