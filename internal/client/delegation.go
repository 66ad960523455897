package client

import (
	"context"
	"net/http"
	"net/url"

	"vogt/internal/api"
)

// Delegations lists the delegations that the caller gave or may use, newest first;
// role is "delegator", "delegate" or "" for both.
func (c *Client) Delegations(ctx context.Context, role string) ([]api.Delegation, error) {
	out := []api.Delegation{}
	query := url.Values{"limit": {"100"}}
	if role != "" {
		query.Set("role", role)
	}
	for {
		var page api.Delegations
		if err := c.do(ctx, call{method: http.MethodGet, path: api.PathDelegations, query: query, answer: &page}); err != nil {
			return nil, err
		}
		out = append(out, page.Data...)
		if page.Pagination.Cursor == nil || len(page.Data) == 0 {
			return out, nil
		}
		query.Set("cursor", *page.Pagination.Cursor)
	}
}

// RevokeDelegation takes a delegation back. The login suffices.
func (c *Client) RevokeDelegation(ctx context.Context, id string) (d api.Delegation, err error) {
	err = c.do(ctx, call{method: http.MethodDelete, path: api.PathDelegations + "/" + escape(id), answer: &d})
	return d, err
}

// ValidateDelegation says whether the delegate might use a delegation now, and spends
// nothing.
func (c *Client) ValidateDelegation(ctx context.Context, id string, in api.ValidateDelegation) (out api.DelegationValidity, err error) {
	err = c.do(ctx, call{method: http.MethodPost, path: api.PathDelegations + "/" + escape(id) + "/validate", body: in, answer: &out})
	return out, err
}
