package client

import (
	"context"
	"net/http"
	"net/url"

	"vogt/internal/api"
)

func policyPath(agent, audience string) string {
	return api.PathUsers + "/" + escape(agent) + "/yolo-policy?audience=" + url.QueryEscape(audience)
}

// Policy reads the auto-approval policy of an agent for an audience, "*" being any.
// Whole is nil where there is none.
func (c *Client) Policy(ctx context.Context, agent, audience string) (out api.PolicyAnswer, err error) {
	return out, c.do(ctx, call{method: http.MethodGet, path: policyPath(agent, audience), answer: &out})
}

// ClearPolicy takes a policy out of force. The login suffices.
func (c *Client) ClearPolicy(ctx context.Context, agent, audience string) error {
	return c.do(ctx, call{method: http.MethodDelete, path: policyPath(agent, audience)})
}
