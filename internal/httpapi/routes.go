package httpapi

import (
	"maps"
	"net/http"

	"vogt/internal/api"
	"vogt/internal/authority"
)

// routes is the whole interface at a glance.
func (s *server) routes() {
	static := func(pattern string, contentType string, body func() []byte) {
		s.mux.HandleFunc(pattern, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", contentType)
			_, _ = w.Write(body())
		})
	}
	static("GET "+api.PathDiscovery, "application/json", func() []byte { return s.discovery })
	static("GET "+api.PathJWKS, "application/json", s.Authority.JWKS)

	s.handle("GET "+api.PathHealth, health)
	s.handle("POST "+api.PathChallenge, challenge)
	s.handle("POST /api/agent/challenge", challenge)
	s.handle("POST "+api.PathAuthenticate, authenticate)
	s.handle("POST /api/agent/authenticate", authenticate)
	s.signedIn("POST "+api.PathLogout, logout)
	s.signedIn("GET "+api.PathWhoAmI, whoAmI)
	s.signedIn("DELETE "+api.PathMyKeys+"/{id}", deleteMyKey)

	s.signedIn("GET "+api.PathGrants, listGrants)
	s.signedIn("POST "+api.PathGrants, createGrant)
	s.signedIn("POST "+api.PathGrants+"/batch", batch)
	s.handle("GET "+api.PathGrants+"/{id}", getGrant)
	s.signedIn("GET "+api.PathGrants+"/{id}/statement", getStatement)
	s.signedIn("GET "+api.PathGrants+"/{id}/receipt", getReceipt)
	s.signedIn("POST "+api.PathGrants+"/{id}/approve", approve)
	s.signedIn("POST "+api.PathGrants+"/{id}/deny", deny)
	s.signedIn("POST "+api.PathGrants+"/{id}/revoke", revoke)
	s.signedIn("POST "+api.PathGrants+"/{id}/token", grantToken)
	s.handle("POST "+api.PathGrants+"/{id}/consume", consume)
	s.signedIn("POST "+api.PathGrants+"/{id}/outcome", outcome)
	s.signedIn("GET "+api.PathEvents, events)
	s.signedIn("POST "+api.PathConnections, connections)

	s.signedIn("POST "+api.PathEnroll, enroll)
	s.handle("POST /api/agent/enroll", manageEnroll)
	s.handle("POST /api/auth/enroll", manageEnroll)
	s.signedIn("GET "+api.PathMyAgents, myAgents)
	s.signedIn("GET "+api.PathMyAgents+"/{email}", oneAgent)
	s.signedIn("PATCH "+api.PathMyAgents+"/{email}", patchAgent)
	s.signedIn("DELETE "+api.PathMyAgents+"/{email}", deleteAgent)

	s.adminRoutes()
	s.accountRoutes()
	s.pushRoutes()

	s.handle("POST "+api.PathTrust, prepareTrust)
	s.handle("GET "+api.PathTrust+"/{id}", getTrust)
	s.handle("POST "+api.PathTrust+"/{id}/confirm", confirmTrust)
	s.handle("POST "+api.PathTrust+"/{id}/decline", declineTrust)
	s.signedIn("POST "+api.PathPanic, panicNow)

	s.signedIn("GET "+api.PathStanding, listStanding)
	s.signedIn("POST "+api.PathStanding, addStanding)
	s.signedIn("POST "+api.PathStanding+"/test", testStanding)
	s.signedIn("POST "+api.PathStanding+"/preview", previewStanding)
	s.signedIn("GET "+api.PathStanding+"/suggestions", suggestions)
	s.signedIn("DELETE "+api.PathStanding+"/{id}", revokeStanding)
	s.signedIn("GET "+api.PathSafe, safeCommands)
	s.signedIn("DELETE "+api.PathSafe, safeOff)
	s.signedIn("DELETE "+api.PathSafe+"/{email}", safeOff)
	s.signedIn("GET "+api.PathGroups, groups)
	s.signedIn("DELETE "+api.PathGroups+"/{name}/{email}", leaveGroup)

	s.signedIn("GET "+api.PathUsers+"/{email}/yolo-policy", getPolicy)
	s.signedIn("PUT "+api.PathUsers+"/{email}/yolo-policy", setPolicy)
	s.signedIn("DELETE "+api.PathUsers+"/{email}/yolo-policy", clearPolicy)
	s.signedIn("GET "+api.PathDelegations, listDelegations)
	s.signedIn("POST "+api.PathDelegations, createDelegation)
	s.signedIn("GET "+api.PathDelegations+"/{id}", getDelegation)
	s.signedIn("DELETE "+api.PathDelegations+"/{id}", revokeDelegation)
	s.handle("POST "+api.PathDelegations+"/{id}/validate", validateDelegation)

	s.signedIn("GET "+api.PathAudit+"/records", auditRecords)
	s.handle("GET "+api.PathAudit+"/checkpoint", auditCheckpoint)
	s.handle("GET "+api.PathAudit+"/consistency", auditConsistency)
	s.signedIn("GET "+api.PathAudit+"/export", auditExport)

	s.oauthRoutes()

	// Addresses that people open lead to the pages' host, where passkeys work
	// and where no cookie of another port's server is read.
	s.mux.HandleFunc("GET /{$}", s.toPages)
	for _, page := range []string{"setup", "login", "grants/", "grant-approval", "trust/", "enroll", "agents", "account", "activity", "register", "recover"} {
		s.mux.HandleFunc("GET /"+page, s.toPages)
	}
	for _, mux := range []*http.ServeMux{s.mux, s.pagesMux} {
		mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
			writeProblem(w, &authority.Error{Status: 404, Title: "There is nothing at this address", Detail: r.Method + " " + r.URL.Path + "."})
		})
	}
}

func (s *server) toPages(w http.ResponseWriter, r *http.Request) {
	http.Redirect(w, r, s.pagesOrigin+r.URL.RequestURI(), http.StatusFound)
}

// discovery holds those members of the OpenID provider metadata (OpenID Connect
// Discovery 1.0) and of DDISA and OpenApe that this version serves. What it
// does not serve is left out, so that clients fall back instead of failing.
func discovery(issuer string) map[string]any {
	out := map[string]any{
		"issuer":   issuer,
		"jwks_uri": issuer + api.PathJWKS,

		"id_token_signing_alg_values_supported": []string{"EdDSA"},
		"subject_types_supported":               []string{"public"},
		"authorization_details_types_supported": []string{"openape_grant", "openape_cli"},

		"ddisa_version":                     "1.0",
		"ddisa_auth_methods_supported":      []string{"webauthn", "ed25519", "ssh-key"},
		"ddisa_auth_challenge_endpoint":     issuer + api.PathChallenge,
		"ddisa_auth_authenticate_endpoint":  issuer + api.PathAuthenticate,
		"ddisa_agent_challenge_endpoint":    issuer + "/api/agent/challenge",
		"ddisa_agent_authenticate_endpoint": issuer + "/api/agent/authenticate",

		"openape_grants_endpoint":            issuer + api.PathGrants,
		"openape_delegations_endpoint":       issuer + api.PathDelegations,
		"openape_grant_types_supported":      []string{"once", "timed", "always"},
		"openape_grant_categories_supported": []string{"command", "delegation"},
	}
	maps.Copy(out, oauthMetadata(issuer))
	return out
}
