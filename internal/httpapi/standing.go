package httpapi

import (
	"net/http"

	"vogt/internal/api"
)

func listStanding(c *call) error {
	all, err := c.s.Authority.Standing(c.Context(), c.actor)
	if err != nil {
		return err
	}
	return c.ok(http.StatusOK, all)
}

func testStanding(c *call) error {
	var in api.TestStanding
	if err := c.body(&in); err != nil {
		return err
	}
	out, err := c.s.Authority.TestStanding(c.Context(), c.actor, in.Agent, in.Request)
	if err != nil {
		return err
	}
	return c.ok(http.StatusOK, out)
}

func revokeStanding(c *call) error {
	if err := c.s.Authority.RevokeStanding(c.Context(), c.actor, c.PathValue("id")); err != nil {
		return err
	}
	return c.ok(http.StatusOK, map[string]bool{"ok": true})
}
