package httpapi

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"vogt/internal/api"
	"vogt/internal/authority"
	"vogt/internal/grant"
	"vogt/internal/store"
)

func createDelegation(c *call) error {
	var in api.NewDelegation
	if err := c.body(&in); err != nil {
		return err
	}
	params := map[string]string{"delegate": in.Delegate, "audience": in.Audience, "grant_type": string(in.GrantType)}
	for _, scope := range in.Scopes {
		if strings.ContainsAny(scope, " \t\r\n") || scope == "" {
			return &authority.Error{Status: 400, Title: "The delegation cannot be taken", Detail: "A scope is one word."}
		}
	}
	params["scopes"] = strings.Join(in.Scopes, " ")
	if in.Duration != 0 {
		params["duration"] = strconv.FormatInt(in.Duration, 10)
	}
	switch at := in.ExpiresAt.(type) {
	case nil:
	case string:
		params["expires_at"] = at
	case float64:
		if at != float64(int64(at)) || at <= 0 || at > 1<<40 {
			return &authority.Error{Status: 400, Title: "expires_at is not a time", Detail: "Want RFC 3339, or Unix seconds."}
		}
		params["expires_at"] = time.Unix(int64(at), 0).UTC().Format(time.RFC3339)
	default:
		return &authority.Error{Status: 400, Title: "expires_at is not a time", Detail: "Want RFC 3339, or Unix seconds."}
	}
	d, err := c.s.Authority.DelegateByBearer(c.Context(), c.actor, params)
	if err != nil {
		return err
	}
	return c.ok(http.StatusCreated, d)
}

func listDelegations(c *call) error {
	q := c.URL.Query()
	limit, err := c.limit()
	if err != nil {
		return err
	}
	return c.delegationPage(limit, func(f store.DelegationFilter) ([]api.Delegation, store.DelegationFilter, error) {
		return c.s.Authority.Delegations(c.Context(), c.actor, q.Get("role"), f)
	})
}

// delegationPage answers with a page of at most limit, from the call's cursor on.
func (c *call) delegationPage(limit int, list func(store.DelegationFilter) ([]api.Delegation, store.DelegationFilter, error)) error {
	f := store.DelegationFilter{Limit: limit + 1}
	var err error
	if f.Before, f.BeforeID, err = parseCursor(c.URL.Query().Get("cursor")); err != nil {
		return err
	}
	var out api.Delegations
	var next store.DelegationFilter
	if out.Data, next, err = list(f); err != nil {
		return err
	}
	if len(out.Data) > limit {
		out.Data = out.Data[:limit]
		cursor := writeCursor(next.Before, next.BeforeID)
		out.Pagination = api.Pagination{Cursor: &cursor, HasMore: true}
	}
	return c.ok(http.StatusOK, out)
}

func getDelegation(c *call) error {
	d, err := c.s.Authority.Delegation(c.Context(), c.actor, c.PathValue("id"))
	if err != nil {
		return err
	}
	return c.ok(http.StatusOK, d)
}

func revokeDelegation(c *call) error {
	d, err := c.s.Authority.RevokeDelegation(c.Context(), c.actor, c.PathValue("id"))
	if err != nil {
		return err
	}
	return c.ok(http.StatusOK, d)
}

func validateDelegation(c *call) error {
	var in api.ValidateDelegation
	if err := c.body(&in); err != nil {
		return err
	}
	out, err := c.s.Authority.ValidateDelegation(c.Context(), c.actor, c.PathValue("id"), in.Delegate, in.Audience)
	if err != nil {
		return err
	}
	return c.ok(http.StatusOK, out)
}

func isNotFound(err error) bool {
	var e *authority.Error
	return errors.As(err, &e) && e.Status == http.StatusNotFound
}

// delegationAsGrant answers a reading of a grant that does not exist with the
// delegation of that identifier: on the wire one is a grant. Services that were shown a
// delegated token ask so, without a login, whether it still holds.
func (c *call) delegationAsGrant(none error) error {
	id := c.PathValue("id")
	if d, err := c.s.Authority.Delegation(c.Context(), c.actor, id); !isNotFound(err) {
		if err != nil {
			return err
		}
		return c.ok(http.StatusOK, api.Grant{
			ID: d.ID, Type: d.Type, Status: d.Status, Requester: d.Delegator, CreatedAt: d.CreatedAt, DecidedAt: d.DecidedAt, DecidedBy: d.DecidedBy,
			ExpiresAt: d.ExpiresAt, Uses: d.Uses, Strength: d.Strength,
			Request: &grant.Request{Requester: d.Delegator, Host: d.Audience, Audience: d.Audience, Type: d.Request.Type, Duration: d.Request.Duration},
		})
	}
	status, err := c.s.Authority.DelegationStatus(c.Context(), id)
	if isNotFound(err) {
		return none
	}
	if err != nil {
		return fmt.Errorf("delegation: %w", err)
	}
	return c.ok(http.StatusOK, api.Grant{ID: id, Status: status})
}

func listDeputies(c *call) error {
	all, err := c.s.Authority.Deputies(c.Context(), c.actor)
	if err != nil {
		return err
	}
	return c.ok(http.StatusOK, all)
}

func endDeputy(c *call) error {
	if err := c.s.Authority.EndDeputy(c.Context(), c.actor, c.PathValue("id")); err != nil {
		return err
	}
	return c.ok(http.StatusOK, map[string]bool{"ok": true})
}
