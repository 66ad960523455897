package client

import (
	"context"
	"net/http"

	"vogt/internal/api"
)

// Deputies lists the appointments that the caller made or holds, newest first.
func (c *Client) Deputies(ctx context.Context) ([]api.Deputy, error) {
	list := []api.Deputy{}
	err := c.do(ctx, call{method: http.MethodGet, path: api.PathDeputies, answer: &list})
	return list, err
}

// EndDeputy ends an appointment. The login suffices.
func (c *Client) EndDeputy(ctx context.Context, id string) error {
	return c.do(ctx, call{method: http.MethodDelete, path: api.PathDeputies + "/" + escape(id)})
}
