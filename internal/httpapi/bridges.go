package httpapi

import (
	"net/http"

	"vogt/internal/api"
	"vogt/internal/authority"
)

// bridgeToken is called by services, which have no login here: what they send is the
// code, and the verifier that proves it theirs.
func bridgeToken(c *call) error {
	var in api.BridgeToken
	if err := c.body(&in); err != nil {
		return err
	}
	out, err := c.s.Authority.BridgeToken(c.Context(), in)
	if err != nil {
		return err
	}
	c.Header().Set("Cache-Control", "no-store")
	return c.ok(http.StatusOK, out)
}

func scopeCatalog(c *call) error {
	out, err := c.s.Authority.ScopeCatalog(c.Context(), c.actor, c.URL.Query().Get("audience"))
	if err != nil {
		return err
	}
	return c.ok(http.StatusOK, out)
}

func bridges(c *call) error {
	all, err := c.s.Authority.Bridges(c.Context(), c.actor)
	if err != nil {
		return err
	}
	return c.ok(http.StatusOK, envelope[api.Bridge]{Data: all})
}

func endBridge(c *call) error {
	if err := c.s.Authority.EndBridge(c.Context(), c.actor, c.PathValue("id")); err != nil {
		return err
	}
	return c.ok(http.StatusOK, map[string]bool{"ok": true})
}

// grantBridge refuses what the reference lets a session do with a click.
func grantBridge(*call) error {
	return &authority.Error{Status: 403, Title: "A click lets no service act at another", Detail: "It is a change of trust, which is signed on its page.",
		Hint: "Open " + api.PathAuthorizeBridge + " in a browser and confirm with a passkey."}
}
