package authority

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"vogt/internal/api"
	"vogt/internal/fault"
	"vogt/internal/grant"
	"vogt/internal/sshkey"
	"vogt/internal/statement"
	"vogt/internal/store"
)

const (
	trustLife = 10 * time.Minute
	// maxTrusts bounds what one principal can prepare.
	maxTrusts = 20
	// Strangers are many in one: those who want to log in, and whoever keeps
	// them from it. Of their changes the oldest makes room, so that a new one
	// is always taken, and lives for as long as a person needs: under a flood
	// that is strangersTrusts divided by what rates admits in a second.
	strangersTrusts = 4096
	strangersFactor = 10

	trustPending   = "pending"
	trustConfirmed = "confirmed"
	trustDeclined  = "declined"
	trustExpired   = "expired"
)

// trustParams names the parameters of each change of trust; all are required
// except those marked with a trailing "?".
func trustParams(operation string) ([]string, bool) {
	switch operation {
	case api.TrustAgentAdd:
		return []string{"name", "public_key", "safe?"}, true
	case api.TrustSafeOn:
		return []string{"email?", "safe?"}, true
	case api.TrustGroupSet:
		return []string{"name", "agents?"}, true
	case api.TrustLabelsEnd:
		return []string{"email"}, true
	case api.TrustAgentRotate:
		return []string{"email", "public_key"}, true
	case api.TrustAgentResume:
		return []string{"email?"}, true
	case api.TrustKeyAdd:
		return []string{"public_key"}, true
	case api.TrustPasskeyAdd:
		return nil, true
	case api.TrustDevice:
		return []string{"name"}, true
	case api.TrustStandingAdd:
		return []string{"pattern", "days?", "reason?"}, true
	case api.TrustStandingResume:
		return []string{"id"}, true
	case api.TrustPolicySet:
		return []string{"policy", "days?"}, true
	case api.TrustDeputyAdd:
		return []string{"deputy", "agents", "max_risk", "from?", "until", "reason?"}, true
	case api.TrustBridgeAdd:
		return []string{"client", "service", "scopes", "request?"}, true
	case api.TrustDelegationAdd:
		return []string{"delegate", "audience", "scopes?", "grant_type?", "duration?", "expires_at?"}, true
	}
	return nil, false
}

func checkTrust(req api.TrustRequest) error {
	bad := func(format string, args ...any) error {
		return problem(400, "The change cannot be prepared", fmt.Sprintf(format, args...), "")
	}
	names, ok := trustParams(req.Operation)
	if !ok {
		return bad("operation %q is unknown.", req.Operation)
	}
	known := map[string]bool{}
	for _, n := range names {
		optional := n[len(n)-1] == '?'
		n = n[:len(n)-btoi(optional)]
		known[n] = true
		if req.Params[n] == "" && !optional {
			return bad("parameter %q is missing.", n)
		}
	}
	for k, v := range req.Params {
		if !known[k] {
			return bad("parameter %q is unknown to %s.", k, req.Operation)
		}
		if len(v) > 1024 && k != "pattern" && k != "policy" && k != "agents" && k != "safe" && k != "request" {
			return bad("parameter %q is too long.", k)
		}
		// All of them are shown to the person and become part of what is signed.
		if !plainText(v) {
			return bad("parameter %q is not plain text: it holds control or formatting characters.", k)
		}
	}
	if email := req.Params["email"]; email != "" {
		if err := checkEmail(email); err != nil {
			return err
		}
	}
	if key, ok := req.Params["public_key"]; ok {
		if _, err := sshkey.ParsePublic(key); err != nil {
			return bad("public_key: %v.", err)
		}
	}
	if name, ok := req.Params["name"]; ok && req.Operation == api.TrustAgentAdd && !agentName.MatchString(name) {
		return bad("the agent's name %q: want a lower-case letter, then up to 23 letters, digits or hyphens.", name)
	} else if ok && checkName(name) != nil {
		return bad("name must be plain text of at most 200 bytes.")
	}
	switch req.Operation {
	case api.TrustAgentAdd, api.TrustSafeOn:
		_, one, err := safeFolders(req.Params["safe"])
		if err != nil || req.Operation == api.TrustSafeOn && one == safeOff {
			return bad("safe: %v.", err)
		}
		req.Params["safe"] = one // what is signed says it
	case api.TrustGroupSet:
		members, err := groupMembers(req.Params["agents"])
		if err != nil {
			return err
		}
		if err := grant.CheckGroup(req.Params["name"]); err != nil {
			return bad("%v.", err)
		}
		if len(members) > maxGroupSize {
			return bad("the group has %d agents, the limit is %d.", len(members), maxGroupSize)
		}
		req.Params["agents"] = strings.Join(members, ",")
	}
	if req.Operation == api.TrustStandingAdd {
		if err := standingParams(req.Params); err != nil {
			return err
		}
	}
	if req.Operation == api.TrustDeputyAdd {
		if err := deputyParams(req.Params); err != nil {
			return err
		}
	}
	if req.Operation == api.TrustPolicySet {
		if err := policyParams(req.Params); err != nil {
			return err
		}
	}
	if req.Operation == api.TrustDelegationAdd {
		if err := delegationParams(req.Params); err != nil {
			return err
		}
	}
	if req.Operation == api.TrustBridgeAdd {
		if err := bridgeParams(req.Params); err != nil {
			return err
		}
	}
	if b, err := hex.DecodeString(req.Secret); err != nil || len(b) != 32 {
		return bad("secret must be 64 hex digits.")
	}
	return nil
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Prepare takes a change of trust that a person is to confirm. Anybody may
// prepare one; it does nothing by itself.
func (a *Authority) Prepare(ctx context.Context, by Actor, req api.TrustRequest) (api.Trust, error) {
	if err := checkTrust(req); err != nil {
		return api.Trust{}, err
	}
	stranger := by.Name() == AnonymousName
	factor := 1.0
	if stranger {
		factor = strangersFactor
	}
	if !a.rates.tryMore("trust:"+by.Name(), factor, a.clock()) {
		return api.Trust{}, tooFast("Changes are prepared too often.")
	}
	if req.Params == nil {
		req.Params = map[string]string{}
	}
	params, err := json.Marshal(req.Params)
	if err != nil {
		return api.Trust{}, err
	}
	tr := store.TrustRequest{Operation: req.Operation, Params: string(params), Asker: by.Name(), Status: trustPending}
	if tr.ID, err = a.newID(); err != nil {
		return api.Trust{}, err
	}
	if tr.Nonce, err = a.randomHex(16); err != nil {
		return api.Trust{}, err
	}
	tr.Secret = secretHash(req.Secret)
	err = a.update(ctx, func(t *txn) error {
		if stranger {
			if err := store.TrimTrusts(t, tr.Asker, strangersTrusts-1); err != nil {
				return err
			}
		} else if n, err := store.CountTrusts(t, tr.Asker, int64(t.now)); err != nil {
			return err
		} else if n >= maxTrusts {
			e := problem(429, "Too many changes wait", fmt.Sprintf("%s has prepared %d changes that nobody has answered.", tr.Asker, n),
				"Confirm or decline them; after ten minutes they end by themselves.")
			e.Retry = 60
			return e
		}
		tr.Created, tr.Expires = int64(t.now), int64(t.now)+trustLife.Milliseconds()
		return store.InsertTrust(t, tr)
	})
	if err != nil {
		return api.Trust{}, err
	}
	return a.trustView(tr, by)
}

func secretHash(secret string) []byte {
	sum := sha256.Sum256([]byte("vogt-trust-secret\n" + secret))
	return sum[:]
}

// trustStatement is what confirming signs: operation and parameters as the
// argument list, the person who confirms as owner.
func (a *Authority) trustStatement(tr store.TrustRequest, params map[string]string, confirmer string) statement.Statement {
	one := uint64(1)
	s := statement.Statement{
		Purpose: statement.Trust, Issuer: a.cfg.Issuer, Epoch: a.Epoch(), GrantID: tr.ID, Nonce: tr.Nonce,
		Requester: &tr.Asker, Owner: &confirmer, GrantType: string(grant.Once), Uses: &one, Argv: []string{tr.Operation},
	}
	end := uint64(tr.Expires / 1000)
	s.Expiry = &end
	for _, k := range slices.Sorted(maps.Keys(params)) {
		s.Argv = append(s.Argv, k+"="+params[k])
	}
	return s
}

// trustView shows a prepared change; to a person with its statement.
func (a *Authority) trustView(tr store.TrustRequest, by Actor) (api.Trust, error) {
	out := api.Trust{
		ID: tr.ID, Operation: tr.Operation, Status: tr.Status, ExpiresAt: tr.Expires / 1000,
		ConfirmURL: a.cfg.PagesOrigin + "/trust/" + tr.ID,
	}
	if err := json.Unmarshal([]byte(tr.Params), &out.Params); err != nil {
		return out, fmt.Errorf("change %s: %v: %w", tr.ID, err, store.ErrCorrupt)
	}
	if out.Status == trustPending && grant.Millis(tr.Expires).Reached(a.now()) {
		out.Status = trustExpired
	}
	if by.Person() {
		s := a.trustStatement(tr, out.Params, by.Principal.Email)
		d := s.Digest()
		out.Statement, out.Digest = &s, &d
	}
	return out, nil
}

type trustResult struct {
	Enrolled   *api.Enrolled   `json:"enrolled,omitempty"`
	Login      *api.Login      `json:"login,omitempty"`
	Standing   *api.Standing   `json:"standing,omitempty"`
	Policy     *api.Policy     `json:"policy,omitempty"`
	Delegation *api.Delegation `json:"delegation,omitempty"`
	Deputy     *api.Deputy     `json:"deputy,omitempty"`
	// Link is for whoever confirmed and is stored nowhere: an asker who talked
	// somebody into confirming would get into the account with it.
	Link string `json:"-"`
	// made are the standing grants and the like that the change made.
	made []string
}

// Trust reads a prepared change: a person any that waits, its asker by the
// secret. The result is handed to the asker, once, except for a link, which
// only [Authority.Confirm] returns.
func (a *Authority) Trust(ctx context.Context, by Actor, id, secret string) (out api.Trust, err error) {
	var tr store.TrustRequest
	err = a.view(ctx, func(tx store.Tx) (err error) {
		tr, err = store.TrustByID(tx, id)
		return err
	})
	asker := secret != "" && subtle.ConstantTimeCompare(secretHash(secret), tr.Secret) == 1
	// A person who was enrolled after the change was prepared was not asked.
	asked := by.Person() && (by.Principal.Generation == 1 || by.Principal.Created <= tr.Created)
	if errors.Is(err, store.ErrNotFound) || err == nil && !asker && !asked {
		return out, errNoTrust()
	}
	if err != nil {
		return out, err
	}
	if out, err = a.trustView(tr, by); err != nil || !asker || tr.Result == "" {
		return out, err
	}
	var result trustResult
	err = a.update(ctx, func(t *txn) error {
		// Read again: of two askers at once only one gets a token.
		tr, err := store.TrustByID(t, id)
		if err != nil || tr.Result == "" {
			return err
		}
		if err := json.Unmarshal([]byte(tr.Result), &result); err != nil {
			return fmt.Errorf("change %s: %v: %w", id, err, store.ErrCorrupt)
		}
		if result.Login == nil {
			return nil
		}
		return store.TakeTrustResult(t, id)
	})
	out.Enrolled, out.Login, out.Standing, out.Policy, out.Delegation, out.Deputy = result.Enrolled, result.Login, result.Standing, result.Policy, result.Delegation, result.Deputy
	return out, err
}

func errNoTrust() *Error {
	return problem(404, "There is no such change", "It may have ended: a prepared change waits for ten minutes.", "Start again.")
}

// WaitTrust is Trust, which returns when the change is settled or the limit
// ends.
func (a *Authority) WaitTrust(ctx context.Context, by Actor, id, secret string, limit time.Duration) (api.Trust, error) {
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	for {
		changed := a.trusts.wait()
		out, err := a.Trust(ctx, by, id, secret)
		if err != nil || out.Status != trustPending || limit <= 0 {
			return out, err
		}
		select {
		case <-changed:
		case <-deadline.C:
			return out, nil
		case <-ctx.Done():
			return out, ctx.Err()
		}
	}
}

// Confirm makes a prepared change. It needs a passkey or an SSH signature over
// exactly the statement that was shown. What it returns is the confirmer's, and
// so it holds the link that the change may have made, this once.
func (a *Authority) Confirm(ctx context.Context, by Actor, id string, digest statement.Digest, p Proof) (api.Trust, error) {
	if !by.Person() {
		return api.Trust{}, problem(403, "Only a person changes trust", "", "Ask your owner.").kind("forbidden")
	}
	view, err := a.Trust(ctx, by, id, "")
	if err != nil {
		return view, err
	}
	if view.Status != trustPending {
		return view, errTrustOver(view.Status)
	}
	if err := checkedDigest(&digest, *view.Digest); err != nil {
		return view, err
	}
	proof, err := a.prove(ctx, by, digest, p)
	if err == nil && !proof.strength.AtLeast(grant.Passkey) {
		err = problem(403, "A change of trust needs a passkey or a signature", "Nothing was changed.",
			"Confirm on the page with a passkey, or sign with an SSH key.").kind("forbidden")
	}
	if err != nil {
		return view, a.refuse(ctx, by, "", "trust "+view.Operation, err)
	}
	var link string
	err = a.update(ctx, func(t *txn) (err error) {
		link, err = t.confirm(by, id, digest, proof)
		return err
	})
	if err != nil {
		return view, err
	}
	a.trusts.announce()
	out, err := a.Trust(ctx, by, id, "")
	out.Link = link
	return out, err
}

func errTrustOver(status string) *Error {
	if status == trustExpired {
		return problem(410, "Nobody confirmed in time", "Nothing was changed.", "Start again.")
	}
	return problem(409, "This change is settled already", "It is "+status+".", "")
}

// confirm returns the link of a change that makes one.
func (t *txn) confirm(by Actor, id string, digest statement.Digest, proof proven) (link string, err error) {
	if err := t.still(by, proof); err != nil {
		return "", err
	}
	tr, err := store.TrustByID(t, id)
	if err != nil {
		return "", errNoTrust().caused(err)
	}
	var params map[string]string
	if err := json.Unmarshal([]byte(tr.Params), &params); err != nil {
		return "", err
	}
	signed := t.a.trustStatement(tr, params, by.Principal.Email)
	if signed.Digest() != digest {
		return "", checkedDigest(&digest, signed.Digest())
	}
	statement, err := json.Marshal(signed)
	if err != nil {
		return "", err
	}
	result, subject, err := t.change(by.Principal, tr.Operation, params, proof.strength)
	if err != nil {
		return "", err
	}
	if len(result.made) > 0 {
		params["id"] = strings.Join(result.made, ",") // what is signed has no name before
	}
	if result.Policy != nil {
		params["id"] = result.Policy.ID
	}
	fault.Point("authority.confirm")
	encoded, err := json.Marshal(result)
	if err != nil {
		return "", err
	}
	if err := store.EndTrust(t, id, trustConfirmed, by.Principal.Email, string(encoded), int64(t.now)); errors.Is(err, store.ErrConflict) {
		return "", errTrustOver(trustExpired)
	} else if err != nil {
		return "", err
	}
	_, err = t.record(recordTrust, "", subject, trustRecord{
		Operation: tr.Operation, By: by.Principal.Email, Subject: subject, Params: params,
		Strength: proof.strength, Digest: &digest, Evidence: proof.evidence, Statement: statement,
	})
	if err != nil {
		return "", err
	}
	switch tr.Operation {
	case api.TrustStandingAdd, api.TrustStandingResume, api.TrustSafeOn, api.TrustGroupSet, api.TrustLabelsEnd:
		err = t.answerWaiting(by.Principal.Email)
	}
	return result.Link, err
}

// change makes one confirmed change and names whom it concerns.
func (t *txn) change(person store.Principal, operation string, params map[string]string, strength grant.Strength) (result trustResult, subject string, err error) {
	var key sshkey.Public
	if line, ok := params["public_key"]; ok {
		if key, err = sshkey.ParsePublic(line); err != nil {
			return result, "", problem(400, "The key cannot be used", err.Error(), "")
		}
	}
	subject, email := person.Email, lower(params["email"])
	switch operation {
	case api.TrustAgentAdd:
		enrolled, err := t.addAgent(person, params["name"], key, params["safe"], strength)
		result.Enrolled = &enrolled
		if enrolled.Safe != "" {
			result.made = []string{enrolled.Safe}
		}
		return result, enrolled.Email, err
	case api.TrustAgentRotate:
		return result, email, t.rotateAgent(person, email, key)
	case api.TrustAgentResume:
		if email != "" {
			if err := t.ownAgent(person, email); err != nil {
				return result, "", err
			}
			subject = email
			// An agent that was switched off comes back the same way; what it
			// held before stays revoked.
			if err := store.SetActive(t, email, true); err != nil {
				return result, "", err
			}
		}
		_, err = store.SetPaused(t, email, person.Email, false)
	case api.TrustKeyAdd:
		err = t.addKey(person.Email, newKey{Public: key, source: sourceTrust})
	case api.TrustPasskeyAdd:
		var token string
		if token, err = t.a.startRegistration(person.Email); err == nil {
			result.Link = t.a.cfg.PagesOrigin + "/register?token=" + token
		}
	case api.TrustDevice:
		var login api.Login
		if login, err = t.issue(person, "", "device"); err == nil {
			result.Login = &login
		}
	case api.TrustStandingAdd:
		var s store.Standing
		if s, err = t.addStanding(person, params, strength); err == nil {
			view := t.a.standingView(s)
			result.Standing, result.made = &view, []string{s.ID}
		}
		if s.Pattern.Agent != "*" && !strings.HasPrefix(s.Pattern.Agent, grant.GroupPrefix) {
			subject = s.Pattern.Agent
		}
	case api.TrustDeputyAdd:
		var d store.Deputy
		if d, err = t.addDeputy(person, params, strength); err == nil {
			view := t.a.deputyView(d)
			result.Deputy, result.made, subject = &view, []string{d.ID}, d.Deputy
		}
	case api.TrustDelegationAdd:
		var d store.Delegation
		if d, err = t.addDelegation(person, params, strength); err == nil {
			view := t.a.delegationView(d)
			result.Delegation, result.made, subject = &view, []string{d.ID}, d.Delegate
		}
	case api.TrustBridgeAdd:
		var b store.Bridge
		if b, result.Link, err = t.addBridge(person, params, strength); err == nil {
			result.made = []string{b.ID}
		}
	case api.TrustStandingResume:
		err = t.resumeStanding(person, params["id"])
	case api.TrustSafeOn:
		if email != "" {
			subject = email
		}
		result.made, err = t.safeOn(person, email, params["safe"], strength)
	case api.TrustGroupSet:
		err = t.setGroup(person, params["name"], params["agents"])
	case api.TrustLabelsEnd:
		if err = t.ownAgent(person, email); err == nil {
			subject, err = email, store.EndLabels(t, email)
		}
	case api.TrustPolicySet:
		var p store.Policy
		if p, err = t.setPolicy(person, params, strength); err == nil {
			result.Policy, subject = policyView(p), p.Policy.Agent
		}
	default:
		err = fmt.Errorf("operation %q has no change", operation)
	}
	return result, subject, err
}

func (t *txn) ownAgent(person store.Principal, email string) error {
	p, err := store.PrincipalByEmail(t, email)
	if err != nil || p.Removed || p.Owner != person.Email {
		return problem(404, "There is no such agent", "", "See yours: vogt agent list.").caused(err)
	}
	return nil
}

// rotateAgent saves the new key first and then drops the others with all
// logins that they brought, in one transaction.
func (t *txn) rotateAgent(person store.Principal, email string, key sshkey.Public) error {
	if err := t.ownAgent(person, email); err != nil {
		return err
	}
	old, err := store.Keys(t, email)
	if err != nil {
		return err
	}
	if err := t.addKey(email, newKey{Public: key, source: sourceTrust}); err != nil {
		return err
	}
	for _, k := range old {
		if err := store.DeleteKey(t, email, k.ID); err != nil {
			return err
		}
	}
	_, err = store.DeleteTokens(t, email)
	return err
}

// Decline ends a prepared change without making it.
func (a *Authority) Decline(ctx context.Context, by Actor, id, secret string) error {
	if by.Means == Page && !by.Proven {
		_, err := a.prove(ctx, by, statement.Digest{}, Proof{})
		return err
	}
	if _, err := a.Trust(ctx, by, id, secret); err != nil {
		return err
	}
	err := a.narrow(ctx, func(t *txn) error {
		if err := store.EndTrust(t, id, trustDeclined, by.Name(), "", int64(t.now)); errors.Is(err, store.ErrConflict) {
			return errTrustOver("settled or over")
		} else if err != nil {
			return err
		}
		_, err := t.record(recordRefusal, "", by.Principal.Email, refusalRecord{By: by.Name(), Tried: "trust", Why: "declined"})
		return err
	})
	if err == nil {
		a.trusts.announce()
	}
	return err
}
