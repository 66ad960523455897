package client

import (
	"context"
	"net/http"

	"vogt/internal/api"
)

// Standing lists the standing grants: a person's own, newest first, or those
// that are for an agent.
func (c *Client) Standing(ctx context.Context) ([]api.Standing, error) {
	list := []api.Standing{}
	err := c.do(ctx, call{method: http.MethodGet, path: api.PathStanding, answer: &list})
	return list, err
}

// RevokeStanding takes a standing grant back. The login suffices.
func (c *Client) RevokeStanding(ctx context.Context, id string) error {
	return c.do(ctx, call{method: http.MethodDelete, path: api.PathStanding + "/" + escape(id)})
}

// TestStanding says what standing grants would make of a request.
func (c *Client) TestStanding(ctx context.Context, in api.TestStanding) (api.StandingTest, error) {
	var out api.StandingTest
	err := c.do(ctx, call{method: http.MethodPost, path: api.PathStanding + "/test", body: in, answer: &out})
	return out, err
}
