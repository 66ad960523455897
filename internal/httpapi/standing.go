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

func addStanding(c *call) error {
	var in api.StandingRequest
	if err := c.body(&in); err != nil {
		return err
	}
	out, err := c.s.Authority.AddStandingByBearer(c.Context(), c.actor, in)
	if err != nil {
		return err
	}
	return c.ok(http.StatusCreated, out)
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

func safeCommands(c *call) error {
	out, err := c.s.Authority.Safe(c.Context(), c.actor)
	if err != nil {
		return err
	}
	return c.ok(http.StatusOK, out)
}

// safeOff switches them off for the agent of the address, or for all.
func safeOff(c *call) error {
	if err := c.s.Authority.SafeOff(c.Context(), c.actor, c.PathValue("email")); err != nil {
		return err
	}
	return c.ok(http.StatusOK, map[string]bool{"ok": true})
}

func groups(c *call) error {
	out, err := c.s.Authority.Groups(c.Context(), c.actor)
	if err != nil {
		return err
	}
	return c.ok(http.StatusOK, out)
}

func leaveGroup(c *call) error {
	if err := c.s.Authority.DropMember(c.Context(), c.actor, c.PathValue("name"), c.PathValue("email")); err != nil {
		return err
	}
	return c.ok(http.StatusOK, map[string]bool{"ok": true})
}

func previewStanding(c *call) error {
	var in api.PreviewStanding
	if err := c.body(&in); err != nil {
		return err
	}
	out, err := c.s.Authority.PreviewStanding(c.Context(), c.actor, in)
	if err != nil {
		return err
	}
	return c.ok(http.StatusOK, out)
}

func suggestions(c *call) error {
	days, err := number(c, "days", 0)
	if err != nil {
		return err
	}
	out, err := c.s.Authority.Suggestions(c.Context(), c.actor, int(min(max(days, 0), 366)))
	if err != nil {
		return err
	}
	return c.ok(http.StatusOK, out)
}
