package client

import (
	"context"
	"net/http"
	"strconv"

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

// PreviewStanding says what a pattern would have covered.
func (c *Client) PreviewStanding(ctx context.Context, in api.PreviewStanding) (out api.StandingPreview, err error) {
	err = c.do(ctx, call{method: http.MethodPost, path: api.PathStanding + "/preview", body: in, answer: &out})
	return out, err
}

// Suggestions are patterns that would have spared cards of the last days.
func (c *Client) Suggestions(ctx context.Context, days int) (out []api.Suggestion, err error) {
	err = c.do(ctx, call{method: http.MethodGet, path: api.PathStanding + "/suggestions?days=" + strconv.Itoa(days), answer: &out})
	return out, err
}

// Safe tells what of the safe commands is in force.
func (c *Client) Safe(ctx context.Context) (out api.Safe, err error) {
	err = c.do(ctx, call{method: http.MethodGet, path: api.PathSafe, answer: &out})
	return out, err
}

// SafeOff switches them off, for one agent or, with "", for all. The login suffices.
func (c *Client) SafeOff(ctx context.Context, email string) error {
	path := api.PathSafe
	if email != "" {
		path += "/" + escape(email)
	}
	return c.do(ctx, call{method: http.MethodDelete, path: path})
}

// Groups lists the caller's groups of agents.
func (c *Client) Groups(ctx context.Context) (out []api.Group, err error) {
	err = c.do(ctx, call{method: http.MethodGet, path: api.PathGroups, answer: &out})
	return out, err
}

// LeaveGroup takes an agent out of a group. The login suffices.
func (c *Client) LeaveGroup(ctx context.Context, name, email string) error {
	return c.do(ctx, call{method: http.MethodDelete, path: api.PathGroups + "/" + escape(name) + "/" + escape(email)})
}
