package httpapi

import (
	"net/http"
	"slices"
	"strings"

	"vogt/internal/api"
	"vogt/internal/authority"
)

// preflighted are the addresses whose preflights (Fetch standard, 4.8) are
// answered: those that the wire names.
func preflighted(path string) bool {
	for _, prefix := range []string{"/api/auth/", "/api/agent/", api.PathGrants, "/api/delegations"} {
		if strings.HasPrefix(path, prefix) {
			return true
		}
	}
	return anyOrigin(path)
}

// crossOrigin decides on calls of foreign pages and reports whether the call
// goes on. Everybody may read what is well known and use what carries no cookie.
// Beyond that a page of another origin calls only if the operator named it: on the
// user's own machine every site that a browser opens could reach this interface.
func (s *server) crossOrigin(w http.ResponseWriter, r *http.Request) bool {
	h := w.Header()
	origin := r.Header.Get("Origin")
	open := anyOrigin(r.URL.Path)
	allowed := origin == "" || origin == s.issuerOrigin || slices.Contains(s.Origins, origin)
	if !open {
		h.Add("Vary", "Origin")
	}
	switch {
	case open:
		h.Set("Access-Control-Allow-Origin", "*")
		if strings.HasPrefix(r.URL.Path, "/.well-known/") {
			h.Set("Cache-Control", "public, max-age=3600")
		}
	case allowed && origin != "":
		// No cookie is read at this host, so none need be let through.
		h.Set("Access-Control-Allow-Origin", origin)
		h.Set("Access-Control-Expose-Headers", "Retry-After, X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, "+api.CheckpointHeader)
	}
	if r.Method == http.MethodOptions && origin != "" && preflighted(r.URL.Path) && (allowed || open) {
		h.Set("Access-Control-Allow-Methods", "GET, POST, PUT, PATCH, DELETE")
		h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, "+api.CheckpointHeader)
		h.Set("Access-Control-Max-Age", "600")
		w.WriteHeader(http.StatusNoContent)
		return false
	}
	if open || allowed {
		return true
	}
	writeProblem(w, &authority.Error{
		Status: http.StatusForbidden, Title: "Pages of other origins may not call this interface",
		Detail: "Programs call it without an Origin header.", Hint: "The operator names the origins of pages that may in allowed_origins, in vogtd.toml.",
	})
	return false
}
