package httpapi

import (
	"maps"
	"net/http"

	"vogt/internal/api"
	"vogt/internal/audit"
	"vogt/internal/authority"
	"vogt/internal/openapi"
)

// routes is the whole interface at a glance: each address once, with its handler
// and what GET /api/openapi.json says of it (see describe.go for how to add one).
func (s *server) routes() {
	static := func(pattern string, contentType string, body func() []byte, a about) {
		s.describe(pattern, false, []about{a})
		s.mux.HandleFunc(pattern, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", contentType)
			_, _ = w.Write(body())
		})
	}
	static("GET "+api.PathDiscovery, "application/json", func() []byte { return s.discovery },
		about{says: "What the authority is and offers (OpenID Connect Discovery 1.0, DDISA).", gives: map[string]any{}})
	static("GET "+api.PathJWKS, "application/json", s.Authority.JWKS, about{says: "The keys that verify its tokens (RFC 7517).", gives: keySet{}})
	s.handle("GET "+api.PathOpenAPI, openAPI, about{says: "This document (OpenAPI 3.1.0).", gives: map[string]any{}})

	s.handle("GET "+api.PathHealth, health, about{says: "How the authority is, who it is and what its time is.", gives: api.Health{}})
	s.handle("POST "+api.PathChallenge, challenge, about{says: "A challenge to log in with, by key.", takes: api.ChallengeRequest{}, gives: api.Challenge{}})
	s.handle("POST /api/agent/challenge", challenge, about{says: "A challenge to log in with, by key.", takes: api.ChallengeRequest{}, gives: api.Challenge{}})
	s.handle("POST "+api.PathAuthenticate, authenticate, about{says: "Logs in by the answer to a challenge.", takes: api.Authenticate{}, gives: api.Login{}})
	s.handle("POST /api/agent/authenticate", authenticate, about{says: "Logs in by the answer to a challenge.", takes: api.Authenticate{}, gives: api.Login{}})
	s.signedIn("POST "+api.PathLogout, logout, about{says: "Revokes the login that it carries.", gives: nothing{}})
	s.signedIn("GET "+api.PathWhoAmI, whoAmI, about{says: "The caller.", gives: me{}})
	s.signedIn("DELETE "+api.PathMyKeys+"/{id}", deleteMyKey, about{says: "Takes an SSH key of the caller's away.", gives: done{}})

	s.grantRoutes()
	s.peopleRoutes()
	s.trustRoutes()
	s.standingRoutes()
	s.logRoutes()
	s.delegationRoutes()
	s.adminRoutes()
	s.accountRoutes()
	s.pushRoutes()
	s.oauthRoutes()
	s.shapeRoutes()
	s.pageRoutes()
}

func (s *server) grantRoutes() {
	s.signedIn("GET "+api.PathGrants, listGrants, about{
		says: "A page of the grants that the caller may see, newest first.", gives: api.List{},
		query: []string{
			"status: pending, approved, denied, revoked, expired or used", "requester: e-mail address of the one who asked",
			"section: active or history", "days: of history, 1 to 90, 7 if absent", "role: of the caller: requester, owner or approver", "type: command, delegation or standing",
			"limit: 1 to 100, 20 if absent; more is taken for 100", "cursor: pagination.cursor of the page before",
		},
	})
	s.signedIn("POST "+api.PathGrants, createGrant, about{
		says:  "Asks for a grant. 201 makes one; 200 is one that exists, which an equal request waits for or which covers it.",
		takes: api.Create{}, status: http.StatusCreated, gives: api.Grant{}, also: []openapi.Answer{{Status: http.StatusOK, Body: api.Grant{}}},
	})
	s.signedIn("POST "+api.PathGrants+"/batch", batch, about{
		says:  "Approves, denies or revokes several, each by its own rules. 207 if one failed.",
		takes: api.Batch{}, gives: api.BatchResults{}, also: []openapi.Answer{{Status: http.StatusMultiStatus, Body: api.BatchResults{}}},
	})
	s.handle("POST "+api.PathGrants+"/verify", verify, about{says: "Whether a grant token holds; nothing is spent.", takes: api.Verify{}, gives: api.Verified{}})
	s.handle("GET "+api.PathGrants+"/{id}", getGrant, about{
		says: "One grant, or the delegation of that name. Who is no party to it sees its state only.", gives: api.Grant{},
		also:  []openapi.Answer{{Status: http.StatusOK, Body: api.Delegation{}}, {Status: http.StatusNotModified}},
		query: []string{"wait: seconds to wait for an answer, 55 at most"}, header: []string{"If-None-Match: the ETag of an earlier answer"},
	})
	s.signedIn("GET "+api.PathGrants+"/{id}/statement", getStatement, about{
		says: "The statement that an approval would sign.", gives: api.Offer{},
		query: []string{"grant_type: once, timed or always; once if absent", "expires_at: of timed, Unix seconds"},
	})
	s.signedIn("GET "+api.PathGrants+"/{id}/receipt", getReceipt, about{says: "Proof of the decision.", gives: api.Receipt{}})
	s.signedIn("POST "+api.PathGrants+"/{id}/approve", approve, about{says: "Approves.", takes: api.Decide{}, gives: api.Decided{}})
	s.signedIn("POST "+api.PathGrants+"/{id}/deny", deny, about{says: "Denies.", takes: api.Decide{}, gives: api.Grant{}})
	s.signedIn("POST "+api.PathGrants+"/{id}/revoke", revoke, about{says: "Takes a permission or a request back.", takes: api.Decide{}, gives: api.Grant{}})
	s.signedIn("POST "+api.PathGrants+"/{id}/token", grantToken, about{says: "A token with which the requester may use the grant.", gives: api.Token{}})
	s.handle("POST "+api.PathGrants+"/{id}/consume", consume, about{says: "Uses the grant whose token it carries. Only after that may anything start.", gives: api.Consumed{}})
	s.signedIn("POST "+api.PathGrants+"/{id}/outcome", outcome, about{says: "Tells how an execution ended.", takes: api.Outcome{}, gives: nothing{}})
	s.signedIn("GET "+api.PathEvents, events, about{says: "Server-sent events: the grants of the caller that changed.", gives: "", media: "text/event-stream"})
	s.signedIn("POST "+api.PathConnections, connections, about{says: "Tells what a box connected to.", takes: api.Connections{}, gives: nothing{}})
}

func (s *server) peopleRoutes() {
	s.signedIn("POST "+api.PathEnroll, enroll, about{says: "Enrols an agent, where stored logins may.", takes: api.Enroll{}, gives: api.Enrolled{}})
	s.handle("POST /api/agent/enroll", manageEnroll, about{says: "Enrols somebody; for the management token.", takes: managedUser{}, gives: managedAgent{}})
	s.handle("POST /api/auth/enroll", manageEnroll, about{says: "Enrols somebody; for the management token.", takes: managedUser{}, gives: managedAgent{}})
	s.signedIn("GET "+api.PathMyAgents, myAgents, about{says: "The caller's agents.", gives: []api.Principal{}})
	s.signedIn("GET "+api.PathMyAgents+"/{email}", oneAgent, about{says: "One of them.", gives: api.Principal{}})
	s.signedIn("PATCH "+api.PathMyAgents+"/{email}", patchAgent, about{says: "Switches an agent off, or pauses it.", takes: patchedAgent{}, gives: api.Principal{}})
	s.signedIn("DELETE "+api.PathMyAgents+"/{email}", deleteAgent, about{says: "Removes an agent.", gives: done{}})
}

func (s *server) trustRoutes() {
	s.handle("POST "+api.PathTrust, prepareTrust, about{says: "Prepares a change of trust, which a person's proof makes.", takes: api.TrustRequest{}, status: http.StatusCreated, gives: api.Trust{}})
	s.handle("GET "+api.PathTrust+"/{id}", getTrust, about{
		says: "One of those, for who asked and for who may confirm it.", gives: api.Trust{},
		query: []string{"wait: seconds to wait for an answer, 55 at most"}, header: []string{api.TrustSecretHeader + ": the secret of the one who asked"},
	})
	s.handle("POST "+api.PathTrust+"/{id}/confirm", confirmTrust, about{says: "Makes the change, by a signature.", takes: api.ConfirmTrust{}, gives: api.Trust{}, header: []string{api.TrustSecretHeader + ": the secret of the one who asked"}})
	s.handle("POST "+api.PathTrust+"/{id}/decline", declineTrust, about{says: "Drops the change.", gives: nothing{}, header: []string{api.TrustSecretHeader + ": the secret of the one who asked"}})
	s.signedIn("POST "+api.PathPanic, panicNow, about{says: "Stops all agents at once.", takes: api.Panic{}, gives: api.PanicResult{}})
}

func (s *server) standingRoutes() {
	s.signedIn("GET "+api.PathStanding, listStanding, about{says: "Standing grants: a person's own, an agent's those for it.", gives: []api.Standing{}})
	s.signedIn("POST "+api.PathStanding, addStanding, about{says: "Writes a pattern by a login, as far as logins may decide.", takes: api.StandingRequest{}, status: http.StatusCreated, gives: api.Standing{}})
	s.signedIn("POST "+api.PathStanding+"/bulk-seed", seedStanding, about{says: "Safe commands for agents that exist.", takes: api.Seed{}, gives: api.Seeded{}})
	s.signedIn("GET "+api.PathUsers+"/{email}/agents", overview, about{says: "A person's agents with their standing grants and latest requests.", gives: []api.AgentOverview{}})
	s.signedIn("POST "+api.PathStanding+"/test", testStanding, about{says: "What standing grants make of a request, without asking.", takes: api.TestStanding{}, gives: api.StandingTest{}})
	s.signedIn("POST "+api.PathStanding+"/preview", previewStanding, about{says: "What a pattern would have covered.", takes: api.PreviewStanding{}, gives: api.StandingPreview{}})
	s.signedIn("GET "+api.PathStanding+"/suggestions", suggestions, about{says: "Patterns that would have spared cards.", query: []string{"days: how far to look back"}, gives: []api.Suggestion{}})
	s.signedIn("DELETE "+api.PathStanding+"/{id}", revokeStanding, about{says: "Takes a standing grant back, and what it gave and nobody has used.", gives: done{}})
	s.signedIn("GET "+api.PathSafe, safeCommands, about{says: "The safe commands of the caller's agents.", gives: api.Safe{}})
	s.signedIn("DELETE "+api.PathSafe, safeOff, about{says: "Switches them off.", gives: done{}})
	s.signedIn("DELETE "+api.PathSafe+"/{email}", safeOff, about{says: "Switches them off for one agent.", gives: done{}})
	s.signedIn("GET "+api.PathGroups, groups, about{says: "The caller's groups of agents.", gives: []api.Group{}})
	s.signedIn("DELETE "+api.PathGroups+"/{name}/{email}", leaveGroup, about{says: "Takes an agent out of a group.", gives: done{}})
}

func (s *server) delegationRoutes() {
	s.signedIn("GET "+api.PathUsers+"/{email}/yolo-policy", getPolicy, about{says: "The auto-approval policy of an agent.", query: []string{"audience: what it is for; everything if absent"}, gives: api.PolicyAnswer{}})
	s.signedIn("PUT "+api.PathUsers+"/{email}/yolo-policy", setPolicy, about{says: "Writes one by a login, as far as logins may decide.", query: []string{"audience: what it is for; everything if absent"}, takes: api.SetPolicy{}, gives: api.PolicyAnswer{}})
	s.signedIn("DELETE "+api.PathUsers+"/{email}/yolo-policy", clearPolicy, about{says: "Clears it.", query: []string{"audience: what it is for; everything if absent"}, gives: done{}})
	s.signedIn("GET "+api.PathDelegations, listDelegations, about{
		says: "A page of delegations, newest first.", gives: api.Delegations{},
		query: []string{"role: delegator or delegate", "limit: 1 to 100, 20 if absent", "cursor: pagination.cursor of the page before"},
	})
	s.signedIn("POST "+api.PathDelegations, createDelegation, about{says: "Delegates by a login, as far as logins may decide.", takes: api.NewDelegation{}, status: http.StatusCreated, gives: api.Delegation{}})
	s.signedIn("GET "+api.PathDelegations+"/{id}", getDelegation, about{says: "One delegation.", gives: api.Delegation{}})
	s.signedIn("DELETE "+api.PathDelegations+"/{id}", revokeDelegation, about{says: "Takes it back.", gives: api.Delegation{}})
	s.handle("POST "+api.PathDelegations+"/{id}/validate", validateDelegation, about{says: "Whether it holds.", takes: api.ValidateDelegation{}, gives: api.DelegationValidity{}})
	s.signedIn("GET "+api.PathDeputies, listDeputies, about{says: "The deputies of the caller, and whose deputy it is.", gives: []api.Deputy{}})
	s.signedIn("DELETE "+api.PathDeputies+"/{id}", endDeputy, about{says: "Ends a deputy's mandate.", gives: done{}})
}

func (s *server) shapeRoutes() {
	s.handle("GET "+api.PathShapes, s.listShapes, about{says: "What the catalog knows.", gives: []api.Shape{}})
	s.handle("GET "+api.PathShapes+"/{cli}", getShape, about{says: "A program of the catalog.", gives: api.Shape{}})
	s.handle("POST "+api.PathShapes+"/resolve", resolveShape, about{
		says: "Reads an argument list as it would be read in a request.", takes: api.Resolve{}, gives: api.Resolved{},
	})
}

func (s *server) logRoutes() {
	s.signedIn("GET "+api.PathAudit+"/records", auditRecords, about{
		says: "A page of the log.", gives: api.AuditRecords{},
		query: []string{"after: index, exclusive, upwards", "before: the same, downwards", "limit: 1 to 1000, 100 if absent", "grant: id of the grant that they tell of", "type: of records"},
	})
	s.handle("GET "+api.PathAudit+"/checkpoint", auditCheckpoint, about{says: "The signed head of the log, as a note.", gives: "", media: "text/plain"})
	s.handle("GET "+api.PathAudit+"/consistency", auditConsistency, about{says: "Proof that the log only grew.", query: []string{"old: size", "new: size"}, gives: audit.Consistency{}})
	s.signedIn("GET "+api.PathAudit+"/export", auditExport, about{says: "The whole log, one JSON object a line.", gives: "", media: "application/jsonl"})
}

func (s *server) pageRoutes() {
	// Addresses that people open lead to the pages' host, where passkeys work
	// and where no cookie of another port's server is read.
	s.mux.HandleFunc("GET /{$}", s.toPages)
	for _, page := range []string{"setup", "login", "grants/", "grant-approval", "trust/", "enroll", "agents", "account", "activity", "register", "recover"} {
		s.mux.HandleFunc("GET /"+page, s.toPages)
	}
	s.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		writeProblem(w, &authority.Error{Status: 404, Title: "There is nothing at this address", Detail: r.Method + " " + r.URL.Path + "."})
	})
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
