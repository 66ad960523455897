package httpapi

import (
	"net/http"

	"vogt/internal/api"
	"vogt/internal/authority"
	"vogt/internal/grant"
)

// The addresses of the auto-approval policy of an agent.

func getPolicy(c *call) error {
	audience := c.URL.Query().Get("audience")
	p, err := c.s.Authority.Policy(c.Context(), c.actor, c.PathValue("email"), audience)
	if err != nil {
		return err
	}
	return c.ok(http.StatusOK, policyAnswer(p, c.PathValue("email"), audience))
}

// policyAnswer has the policy's members flat and under "policy": clients read both.
func policyAnswer(p *api.Policy, agent, audience string) api.PolicyAnswer {
	if p != nil {
		return api.PolicyAnswer{Policy: *p, Whole: p}
	}
	if audience == "" {
		audience = "*"
	}
	return api.PolicyAnswer{Policy: api.Policy{Agent: agent, Audience: audience, Mode: grant.AllowList, Allow: []string{}, Deny: []string{}}}
}

func setPolicy(c *call) error {
	var in api.SetPolicy
	if err := c.body(&in); err != nil {
		return err
	}
	p := grant.Policy{
		Agent: c.PathValue("email"), Audience: either(c.URL.Query().Get("audience"), in.Audience), Mode: in.Mode, Allow: in.Allow, Deny: in.Deny,
	}
	if in.DenyRisk != "" {
		if err := p.DenyRisk.UnmarshalText([]byte(in.DenyRisk)); err != nil {
			return &authority.Error{Status: 400, Title: "The policy cannot be taken", Detail: "denyRiskThreshold: " + err.Error() + "."}
		}
	}
	if in.ExpiresAt < 0 || in.ExpiresAt > 1<<40 {
		return &authority.Error{Status: 400, Title: "expiresAt is not a time", Detail: "Want Unix seconds."}
	}
	out, err := c.s.Authority.SetPolicyByBearer(c.Context(), c.actor, p, grant.Millis(in.ExpiresAt*1000))
	if err != nil {
		return err
	}
	return c.ok(http.StatusOK, policyAnswer(out, p.Agent, p.Audience))
}

func clearPolicy(c *call) error {
	if err := c.s.Authority.ClearPolicy(c.Context(), c.actor, c.PathValue("email"), c.URL.Query().Get("audience")); err != nil {
		return err
	}
	return c.ok(http.StatusOK, map[string]bool{"ok": true})
}
