package httpapi

import (
	"bufio"
	"encoding/json"
	"net/http"
	"strconv"

	"vogt/internal/api"
	"vogt/internal/audit"
	"vogt/internal/authority"
	"vogt/internal/store"
)

func health(c *call) error {
	cfg := c.s.Authority.Config()
	owner, err := c.s.Authority.HasOwner(c.Context())
	if err != nil {
		return err
	}
	status := "ok"
	if c.s.Authority.Damage() != "" {
		status = "damaged"
	}
	return c.ok(http.StatusOK, api.Health{
		Status: status, Version: c.s.Version, Issuer: cfg.Issuer, Epoch: c.s.Authority.Epoch(), Bearer: c.s.Bearer,
		Pages: cfg.PagesOrigin, Time: c.s.Authority.Now().UnixMilli(), LogKey: c.s.Authority.LogKey(), SetUp: owner,
	})
}

// either returns the first of two names for the same field.
func either(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func challenge(c *call) error {
	var in api.ChallengeRequest
	if err := c.body(&in); err != nil {
		return err
	}
	if err := c.s.admitLogin(c, either(in.ID, in.AgentID)); err != nil {
		return err
	}
	text, err := c.s.Authority.Challenge(c.Context(), either(in.ID, in.AgentID))
	if err != nil {
		return err
	}
	return c.ok(http.StatusOK, api.Challenge{Challenge: text})
}

func authenticate(c *call) error {
	var in api.Authenticate
	if err := c.body(&in); err != nil {
		return err
	}
	if err := c.s.admitLogin(c, either(in.ID, in.AgentID)); err != nil {
		return err
	}
	login, err := c.s.Authority.Login(c.Context(), either(in.ID, in.AgentID), in.Challenge, in.Signature)
	if err != nil {
		return err
	}
	c.s.loggedIn(c, either(in.ID, in.AgentID))
	return c.ok(http.StatusOK, login)
}

func logout(c *call) error {
	if err := c.s.Authority.Logout(c.Context(), c.actor); err != nil {
		return err
	}
	return c.ok(http.StatusOK, struct{}{})
}

func principalView(p store.Principal) api.Principal {
	return api.Principal{
		Email: p.Email, Name: p.Name, Owner: p.Owner, Approver: p.Approver, Type: p.Kind,
		Active: p.Active && !p.Removed, Paused: p.Paused, CreatedAt: p.Created / 1000, LastLogin: p.LastLogin,
	}
}

func keyView(k store.Key) api.Key {
	return api.Key{
		ID: k.ID, Name: k.Name, PublicKey: k.PublicKey, CreatedAt: k.Created / 1000, DormantUntil: k.DormantUntil / 1000,
		Source: k.Source, LoginOnly: k.Weak,
	}
}

func accountView(a authority.Account) api.Principal {
	p := principalView(a.Principal)
	for _, k := range a.Keys {
		p.Keys = append(p.Keys, keyView(k))
	}
	for _, l := range a.Labels {
		p.Labels = append(p.Labels, api.Label{Label: l.Label, Since: l.Since / 1000, GrantID: l.Grant})
	}
	return p
}

// whoAmI answers both what the wire says of a session and what our own client
// wants to know of an account.
func whoAmI(c *call) error {
	a, err := c.s.Authority.Account(c.Context(), c.actor, c.actor.Principal.Email)
	if err != nil {
		return err
	}
	admin, err := c.s.Authority.IsAdmin(c.Context(), c.actor)
	if err != nil {
		return err
	}
	return c.ok(http.StatusOK, me{accountView(a), admin})
}

// deleteMyKey takes a key of the caller's own away, which narrows: a login is
// enough.
func deleteMyKey(c *call) error {
	if err := c.s.Authority.RemoveKey(c.Context(), c.actor, c.actor.Principal.Email, c.PathValue("id")); err != nil {
		return err
	}
	return c.ok(http.StatusOK, map[string]bool{"ok": true})
}

func (c *call) account(email string) error {
	a, err := c.s.Authority.Account(c.Context(), c.actor, email)
	if err != nil {
		return err
	}
	return c.ok(http.StatusOK, accountView(a))
}

func enroll(c *call) error {
	var in api.Enroll
	if err := c.body(&in); err != nil {
		return err
	}
	out, err := c.s.Authority.EnrolByBearer(c.Context(), c.actor, in.Name, in.PublicKey)
	if err != nil {
		return err
	}
	return c.ok(http.StatusOK, out)
}

// managedUser is the body of the management token's enrolments.
type managedUser struct {
	Email     string `json:"email"`
	Name      string `json:"name"`
	PublicKey string `json:"publicKey"`
	Owner     string `json:"owner"`
	Approver  string `json:"approver"`
	Type      string `json:"type"`
	NoSafe    bool   `json:"no_safe_commands"`
}

func (c *call) manage(in managedUser) (store.Principal, api.Standing, error) {
	return c.s.Authority.ManageUser(c.Context(), c.actor, authority.ManagedUser{
		Email: in.Email, Name: in.Name, PublicKey: in.PublicKey, Owner: in.Owner, Approver: in.Approver, Kind: in.Type, NoSafe: in.NoSafe,
	})
}

func manageEnroll(c *call) error {
	var in managedUser
	if err := c.body(&in); err != nil {
		return err
	}
	p, safe, err := c.manage(in)
	if err != nil {
		return err
	}
	return c.ok(http.StatusOK, map[string]any{
		"email": p.Email, "name": p.Name, "owner": p.Owner, "approver": p.Approver, "type": p.Kind, "status": "active",
		"seeded_safe_commands": len(safe.Pattern.Programs),
	})
}

func myAgents(c *call) error {
	people, err := c.s.Authority.People(c.Context(), c.actor)
	if err != nil {
		return err
	}
	out := []api.Principal{}
	for _, p := range people {
		out = append(out, principalView(p))
	}
	return c.ok(http.StatusOK, out)
}

func oneAgent(c *call) error { return c.account(c.PathValue("email")) }

// patchAgent changes an agent. What narrows needs a login; a new key and
// switching on are changes of trust, which a stored login makes only under the
// bearer_decisions switch.
func patchAgent(c *call) error {
	var in struct {
		Active    *bool  `json:"isActive"`
		Paused    *bool  `json:"paused"`
		PublicKey string `json:"publicKey"`
	}
	if err := c.body(&in); err != nil {
		return err
	}
	email := c.PathValue("email")
	// Management switches people on again; an agent is its owner's to trust.
	if c.actor.Means == authority.Management && in.Active != nil && *in.Active && in.PublicKey == "" && in.Paused == nil {
		a, err := c.s.Authority.Account(c.Context(), c.actor, email)
		if err != nil {
			return err
		}
		if a.Principal.Owner == "" {
			if err := c.s.Authority.Activate(c.Context(), c.actor, email); err != nil {
				return err
			}
			return c.account(email)
		}
	}
	if in.Paused != nil && !*in.Paused {
		return &authority.Error{
			Status: 403, Kind: "forbidden", Title: "This is a change of trust",
			Detail: "Resuming an agent needs a proof made for it.", Hint: "Use: vogt resume NAME.",
		}
	}
	if in.PublicKey != "" || in.Active != nil && *in.Active {
		if err := c.s.Authority.TrustAgentByBearer(c.Context(), c.actor, email, in.PublicKey, in.Active != nil && *in.Active); err != nil {
			return err
		}
	}
	if in.Active != nil && !*in.Active {
		if err := c.s.Authority.Deactivate(c.Context(), c.actor, email); err != nil {
			return err
		}
	}
	if in.Paused != nil {
		if err := c.s.Authority.Pause(c.Context(), c.actor, email); err != nil {
			return err
		}
	}
	return c.account(email)
}

func deleteAgent(c *call) error {
	if err := c.s.Authority.Remove(c.Context(), c.actor, c.PathValue("email")); err != nil {
		return err
	}
	return c.ok(http.StatusOK, map[string]bool{"ok": true})
}

func prepareTrust(c *call) error {
	var in api.TrustRequest
	if err := c.body(&in); err != nil {
		return err
	}
	out, err := c.s.Authority.Prepare(c.Context(), c.actor, in)
	if err != nil {
		return err
	}
	return c.ok(http.StatusCreated, out)
}

func (c *call) trustSecret() string { return c.Request.Header.Get(api.TrustSecretHeader) }

func getTrust(c *call) error {
	limit, err := c.wait()
	if err != nil {
		return err
	}
	out, err := c.s.Authority.WaitTrust(c.Context(), c.actor, c.PathValue("id"), c.trustSecret(), limit)
	if err != nil {
		return err
	}
	return c.ok(http.StatusOK, out)
}

func confirmTrust(c *call) error {
	var in api.ConfirmTrust
	if err := c.body(&in); err != nil {
		return err
	}
	done, err := c.s.Authority.Confirm(c.Context(), c.actor, c.PathValue("id"), in.Digest, authority.Proof{Signature: in.Signature})
	if err != nil {
		return err
	}
	// The asker's own secret, if it came along, brings the result with it. A
	// link is for whoever confirmed, which is the caller.
	out, err := c.s.Authority.Trust(c.Context(), c.actor, c.PathValue("id"), c.trustSecret())
	if err != nil {
		return err
	}
	out.Link = done.Link
	return c.ok(http.StatusOK, out)
}

func declineTrust(c *call) error {
	if err := c.s.Authority.Decline(c.Context(), c.actor, c.PathValue("id"), c.trustSecret()); err != nil {
		return err
	}
	return c.ok(http.StatusOK, struct{}{})
}

func panicNow(c *call) error {
	var in api.Panic
	if err := c.body(&in); err != nil {
		return err
	}
	out, err := c.s.Authority.Panic(c.Context(), c.actor, in.Reason)
	if err != nil {
		return err
	}
	return c.ok(http.StatusOK, out)
}

func number(c *call, name string, missing int64) (int64, error) {
	v := c.URL.Query().Get(name)
	if v == "" {
		return missing, nil
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil {
		return 0, &authority.Error{Status: 400, Title: name + " is not a number", Detail: strconv.Quote(v) + "."}
	}
	return n, nil
}

func auditRecords(c *call) error {
	after, err := number(c, "after", -1)
	if err != nil {
		return err
	}
	before, err := number(c, "before", 0)
	if err != nil {
		return err
	}
	limit, err := number(c, "limit", 100)
	if err != nil {
		return err
	}
	q := c.URL.Query()
	rows, size, err := c.s.Authority.Records(c.Context(), c.actor, store.LogFilter{
		After: after, Before: before, Limit: int(limit), GrantID: q.Get("grant"), Type: q.Get("type"),
	})
	if err != nil {
		return err
	}
	out := api.AuditRecords{Records: []api.AuditRecord{}, Size: size}
	if out.Checkpoint, err = c.s.Authority.Checkpoint(c.Context(), size); err != nil {
		return err
	}
	for _, r := range rows {
		out.Records = append(out.Records, recordView(r))
	}
	return c.ok(http.StatusOK, out)
}

func auditCheckpoint(c *call) error {
	text, err := c.s.Authority.LatestCheckpoint(c.Context())
	if err != nil {
		return err
	}
	c.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = c.ResponseWriter.Write([]byte(text))
	return nil
}

func auditConsistency(c *call) error {
	older, err := number(c, "old", 0)
	if err != nil {
		return err
	}
	newer, err := number(c, "new", 0)
	if err != nil {
		return err
	}
	p, err := c.s.Authority.Consistency(c.Context(), older, newer)
	if err != nil {
		return err
	}
	return c.ok(http.StatusOK, p)
}

// auditExport streams the log in the export form of package audit. An error
// after the first line is the last one, and the answer breaks off after it:
// readers accept no end without a checkpoint.
func auditExport(c *call) error {
	if !c.actor.Person() && c.actor.Means != authority.Management {
		return &authority.Error{Status: 403, Kind: "forbidden", Title: "Only a person may export the log", Hint: "Log in as a person: vogt login."}
	}
	c.Header().Set("Content-Type", "application/jsonl")
	// The exporter writes into this buffer and makes none of its own.
	out := bufio.NewWriterSize(c.ResponseWriter, 64<<10)
	e := audit.NewExporter(out)
	begun := false
	checkpoint, err := c.s.Authority.Export(c.Context(), c.actor, func(r audit.Record) error {
		begun = true
		return e.Record(r, false)
	})
	if err == nil {
		err = e.Close(checkpoint)
	}
	if err == nil || !begun {
		return err
	}
	c.s.Log.Error("an export ended early", "err", err)
	last, err := json.Marshal(map[string]*api.Problem{"problem": c.s.problemFor(err)})
	if err == nil {
		_, _ = out.Write(append(last, '\n'))
		if out.Flush() == nil {
			_ = http.NewResponseController(c.ResponseWriter).Flush() // the reader may be gone
		}
	}
	panic(http.ErrAbortHandler)
}
