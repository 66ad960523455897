package httpapi

import (
	"net/http"

	"vogt/internal/api"
	"vogt/internal/grant"
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

func seedStanding(c *call) error {
	var in api.Seed
	if err := c.body(&in); err != nil {
		return err
	}
	out, err := c.s.Authority.SeedByBearer(c.Context(), c.actor, in.Delegates)
	if err != nil {
		return err
	}
	return c.ok(http.StatusOK, out)
}

func overview(c *call) error {
	all, err := c.s.Authority.Overview(c.Context(), c.actor, c.PathValue("email"))
	if err != nil {
		return err
	}
	out := make([]api.AgentOverview, 0, len(all))
	for _, a := range all {
		row := api.AgentOverview{
			Email: a.Agent.Email, DisplayName: a.Agent.Name, Active: a.Agent.Active && !a.Agent.Removed,
			Standing: a.Standing, Recent: []api.RecentGrant{}, GrantCounts: a.Counts,
		}
		for _, g := range a.Recent {
			recent := api.RecentGrant{Grant: c.s.grantView(g, true)}
			for _, s := range a.Standing {
				if s.ID == recent.Standing {
					recent.StandingReason, recent.SafeCommand = s.Reason, s.Pattern.Class == grant.ClassSafe
				}
			}
			row.Recent = append(row.Recent, recent)
		}
		out = append(out, row)
	}
	return c.ok(http.StatusOK, out)
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
