package httpapi

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"vogt/internal/api"
	"vogt/internal/authority"
	"vogt/internal/openapi"
	"vogt/internal/statement"
)

// accountRoutes are what people do with their own accounts from a browser: on
// the pages' host, which is where passkeys belong and cookies go.
func (s *server) accountRoutes() {
	// Neither needs to know who asks, and neither tells anything.
	for _, wire := range []func(string, handler, ...about){s.handle, s.onPages} {
		wire("POST /api/register", selfRegister, about{says: "Asks for a registration link by mail. The answer is the same for every address.", takes: address{}, gives: done{}})
		wire("POST /api/recovery/request", requestRecovery, about{says: "Asks for a recovery by mail. The answer is the same for every address.", takes: address{}, gives: done{}})
		wire("POST /api/recovery/cancel", cancelRecovery, about{says: "Ends a recovery, by its token or as the person whose it is.", takes: linkToken{}, gives: done{}})
	}
	s.onPages("POST /api/recovery/options", recoverOptions, about{says: "Begins a passkey for an account that is recovered; 425 while it waits.", takes: linkToken{}, gives: ceremonyAnswer{}})
	s.onPages("POST /api/recovery/verify", recoverVerify, about{says: "Finishes it and signs in.", takes: passkeyAnswer{}, gives: signedInAs{}})

	s.onPages("POST /api/webauthn/register/options", registerOptions, about{says: "Begins a passkey by a link.", takes: linkToken{}, gives: ceremonyAnswer{}})
	s.onPages("POST /api/webauthn/register/verify", registerVerify, about{says: "Finishes it and signs in.", takes: passkeyAnswer{}, gives: signedInAs{}})
	s.onPages("POST /api/webauthn/login/options", loginOptions, about{says: "Begins signing in with a passkey.", takes: address{}, gives: ceremonyAnswer{}})
	s.onPages("POST /api/webauthn/login/verify", loginVerify, about{says: "Finishes it.", takes: passkeyAnswer{}, gives: signedInAs{}})
	s.bySession("POST /api/webauthn/credentials/add/options", addOptions, about{says: "Begins another passkey, by the link that a confirmed change gives.", takes: linkToken{}, gives: ceremonyAnswer{}})
	s.bySession("POST /api/webauthn/credentials/add/verify", addVerify, about{says: "Finishes it.", takes: passkeyAnswer{}, gives: addedPasskey{}})
	s.bySession("GET /api/webauthn/credentials", myCredentials, about{says: "The person's passkeys.", gives: []credentialView{}})
	s.bySession("DELETE /api/webauthn/credentials/{id}", deleteMyCredential, about{says: "Takes one away; 400 for the last.", gives: done{}})
	s.bySession("POST /api/account/add-device-link", addDeviceLink, about{
		says: "Makes a link for another device: the first call prepares it, the second brings a passkey's assertion.", takes: deviceAnswer{}, gives: deviceLink{},
		also: []openapi.Answer{{Status: http.StatusAccepted, Body: deviceQuestion{}}},
	})

	s.bySession("GET "+api.PathWhoAmI, whoAmI, about{says: "The person.", gives: me{}})
	for _, path := range []string{"/api/logout", "/api/session/logout"} {
		s.onPages("POST "+path, signOut, about{says: "Signs out.", gives: done{}})
	}
	s.bySession("GET /api/session/ssh-keys", mySSHKeys, about{says: "The person's SSH keys.", gives: []api.Key{}})
	s.bySession("POST /api/session/ssh-keys", addMySSHKey, about{says: "Prepares another key; the refusal says where it is confirmed.", takes: newUserKey{}, gives: done{}})
	s.bySession("DELETE /api/session/ssh-keys/{id}", deleteMyKey, about{says: "Takes a key away.", gives: done{}})
	s.bySession("GET /api/account/recovery", myRecovery, about{says: "Whether a recovery of the account waits. Times are milliseconds.", gives: recoveryState{}})
	s.bySession("PUT /api/account/vacation", setVacation, about{says: "Says that the person is away, or back.", takes: vacation{}, gives: done{}})
	s.bySession("POST /api/account/vacation", setVacation, about{says: "Says that the person is away, or back.", takes: vacation{}, gives: done{}})

	s.bySession("GET "+api.PathMyAgents, myAgents)
	s.bySession("GET "+api.PathMyAgents+"/{email}", oneAgent)
	s.bySession("PATCH "+api.PathMyAgents+"/{email}", patchAgent)
	s.bySession("DELETE "+api.PathMyAgents+"/{email}", deleteAgent)
}

// The bodies of these addresses.
type (
	address struct {
		Email string `json:"email"`
	}
	linkToken struct {
		Token string `json:"token"`
	}
	signedInAs struct {
		OK      bool   `json:"ok"`
		Email   string `json:"email"`
		Name    string `json:"name"`
		Session string `json:"session"` // what the pages call it; not its cookie
	}
	addedPasskey struct {
		OK bool   `json:"ok"`
		ID string `json:"credentialId"`
	}
	deviceAnswer struct {
		ID        string           `json:"id"`
		Digest    statement.Digest `json:"digest"`
		Assertion json.RawMessage  `json:"assertion"`
	}
	deviceQuestion struct {
		OK         bool                 `json:"ok"`
		ID         string               `json:"id"`
		Digest     *statement.Digest    `json:"digest"`
		Statement  *statement.Statement `json:"statement"`
		Options    json.RawMessage      `json:"options"`
		ConfirmURL string               `json:"confirmUrl"`
	}
	deviceLink struct {
		OK        bool   `json:"ok"`
		URL       string `json:"url"`
		ExpiresIn int    `json:"expiresIn"` // seconds
	}
	recoveryState struct {
		Pending     bool  `json:"pending"`
		Away        bool  `json:"recoveryVacationMode"`
		RequestedAt int64 `json:"requestedAt,omitempty"`
		ReadyAt     int64 `json:"readyAt,omitempty"`
	}
	vacation struct {
		Away *bool `json:"recoveryVacationMode"`
	}
	me struct {
		api.Principal
		IsAdmin bool `json:"isAdmin"`
	}
)

func ok(c *call) error { return c.ok(http.StatusOK, map[string]bool{"ok": true}) }

func selfRegister(c *call) error {
	var in address
	if err := c.body(&in); err != nil {
		return err
	}
	if err := c.s.Authority.SelfRegister(in.Email); err != nil {
		return err
	}
	return ok(c)
}

func requestRecovery(c *call) error {
	var in address
	if err := c.body(&in); err != nil {
		return err
	}
	if err := c.s.Authority.RequestRecovery(in.Email); err != nil {
		return err
	}
	return ok(c)
}

func cancelRecovery(c *call) error {
	var in linkToken
	if err := c.body(&in); err != nil {
		return err
	}
	if err := c.s.Authority.CancelRecovery(c.Context(), c.actor, in.Token); err != nil {
		return err
	}
	return ok(c)
}

// ceremonyAnswer is what a browser's passkey call begins with.
type ceremonyAnswer struct {
	Options json.RawMessage `json:"options"`
	Token   string          `json:"challengeToken"`
}

func (c *call) ceremony(options []byte, id string, err error) error {
	if err != nil {
		return err
	}
	return c.ok(http.StatusOK, ceremonyAnswer{options, id})
}

// missing turns a link that cannot be used into the 404 that the wire has for
// one that is not known; one that was used stays 410, which tells its owner.
func missing(err error) error {
	var e *authority.Error
	if errors.As(err, &e) && e.Status == http.StatusGone && e.Kind == "" {
		gone := *e
		gone.Status = http.StatusNotFound
		return &gone
	}
	return err
}

// passkeyAnswer is how a browser's passkey call ends.
type passkeyAnswer struct {
	Token     string          `json:"token"` // of the link or the recovery
	Challenge string          `json:"challengeToken"`
	Response  json.RawMessage `json:"response"`
	Device    string          `json:"deviceName"`
	// ProofKey is the key that the session signs with, standard base64 of SPKI.
	// Clients of the wire have none; their session reads.
	ProofKey string `json:"proofKey"`
}

func (c *call) passkeyAnswer() (in passkeyAnswer, key []byte, err error) {
	if err := c.body(&in); err != nil {
		return in, nil, err
	}
	key, err = base64.StdEncoding.DecodeString(in.ProofKey)
	if err != nil || len(key) > 512 || in.Challenge == "" || len(in.Response) == 0 {
		return in, nil, &authority.Error{Status: 400, Title: "The passkey's answer is incomplete", Detail: "challengeToken and response are needed; proofKey is base64."}
	}
	return in, key, nil
}

func registerOptions(c *call) error {
	var in linkToken
	if err := c.body(&in); err != nil {
		return err
	}
	options, id, err := c.s.Authority.RegisterOptions(c.Context(), in.Token)
	return c.ceremony(options, id, missing(err))
}

// signedIn gives the browser its session. session is what the pages call it.
func (c *call) signedIn(cookie string) error {
	a, err := c.setSession(cookie)
	if err != nil {
		return err
	}
	return c.ok(http.StatusOK, signedInAs{OK: true, Email: a.Principal.Email, Name: a.Principal.Name, Session: a.Session.ID})
}

func registerVerify(c *call) error {
	in, key, err := c.passkeyAnswer()
	if err != nil {
		return err
	}
	cookie, _, err := c.s.Authority.RegisterOnWire(c.Context(), in.Challenge, in.Device, in.Response, key, c.UserAgent())
	if err != nil {
		return err
	}
	return c.signedIn(cookie)
}

// loginOptions answers alike for every address and for none: the browser offers
// whatever passkeys it has for these pages.
func loginOptions(c *call) error {
	options, id, err := c.s.Authority.PasskeyLoginOptions()
	return c.ceremony(options, id, err)
}

func loginVerify(c *call) error {
	in, key, err := c.passkeyAnswer()
	if err != nil {
		return err
	}
	cookie, err := c.s.Authority.PasskeyLoginOnWire(c.Context(), in.Challenge, in.Response, key, c.UserAgent())
	if err != nil {
		return err
	}
	return c.signedIn(cookie)
}

func recoverOptions(c *call) error {
	var in linkToken
	if err := c.body(&in); err != nil {
		return err
	}
	options, id, err := c.s.Authority.RecoverOptions(c.Context(), in.Token)
	return c.ceremony(options, id, err)
}

func recoverVerify(c *call) error {
	in, key, err := c.passkeyAnswer()
	if err != nil {
		return err
	}
	cookie, _, err := c.s.Authority.RecoverVerify(c.Context(), in.Token, in.Challenge, in.Device, in.Response, key, c.UserAgent())
	if err != nil {
		return err
	}
	return c.signedIn(cookie)
}

// addOptions begins another passkey of a person who is signed in. That is a
// change of trust, so it takes the link that confirming one gives.
func addOptions(c *call) error {
	var in linkToken
	if err := c.body(&in); err != nil {
		return err
	}
	if in.Token == "" {
		return c.trustNeeded(api.TrustPasskeyAdd, map[string]string{})
	}
	// Looked at before it is spent: another person's link is not ours to spend.
	person, _, err := c.s.Authority.RegisterLink(c.Context(), in.Token)
	if err != nil {
		return missing(err)
	}
	if person.Email != c.actor.Principal.Email {
		return &authority.Error{Status: 403, Kind: "forbidden", Title: "This link is another account's", Detail: "Nothing was spent.", Hint: "Open it in a browser that is signed out."}
	}
	options, id, err := c.s.Authority.RegisterOptions(c.Context(), in.Token)
	return c.ceremony(options, id, missing(err))
}

func addVerify(c *call) error {
	in, _, err := c.passkeyAnswer()
	if err != nil {
		return err
	}
	id, err := c.s.Authority.AddPasskey(c.Context(), c.actor, in.Challenge, in.Device, in.Response)
	if err != nil {
		return err
	}
	return c.ok(http.StatusOK, addedPasskey{OK: true, ID: id})
}

func myCredentials(c *call) error {
	a, err := c.s.Authority.Account(c.Context(), c.actor, c.actor.Principal.Email)
	if err != nil {
		return err
	}
	return c.ok(http.StatusOK, credentialViews(a.Passkeys))
}

// deleteMyCredential answers 400 for the last one, as the wire has it.
func deleteMyCredential(c *call) error {
	err := c.s.Authority.RemovePasskey(c.Context(), c.actor, c.PathValue("id"))
	var e *authority.Error
	if errors.As(err, &e) && e.Kind == "last_way" {
		last := *e
		last.Status = http.StatusBadRequest
		return &last
	}
	if err != nil {
		return err
	}
	return ok(c)
}

// prepare prepares a change of trust for the person who is signed in.
func (c *call) prepare(operation string, params map[string]string) (api.Trust, error) {
	secret, err := c.s.Authority.NewSecret()
	if err != nil {
		return api.Trust{}, err
	}
	return c.s.Authority.Prepare(c.Context(), c.actor, api.TrustRequest{Operation: operation, Params: params, Secret: secret})
}

// trustNeeded answers what only a passkey or a signature may do: the change is
// prepared, and the answer says where it is confirmed.
func (c *call) trustNeeded(operation string, params map[string]string) error {
	change, err := c.prepare(operation, params)
	if err != nil {
		return err
	}
	return &authority.Error{
		Status: 403, Kind: "confirmation_needed", Title: "This is a change of trust", Detail: "It needs a passkey or a signature made for it.",
		Hint: "Confirm it at " + change.ConfirmURL + ".",
	}
}

// addDeviceLink makes a link for another device. Whoever opens it gets into the
// account, so it takes a passkey's assertion over the change's statement: the
// first call prepares the change and gives what the browser needs for it, the
// second brings the assertion and gets the link, this once.
func addDeviceLink(c *call) error {
	var in deviceAnswer
	if err := c.body(&in); err != nil {
		return err
	}
	if in.ID == "" {
		change, err := c.prepare(api.TrustPasskeyAdd, map[string]string{})
		if err != nil {
			return err
		}
		options, err := c.s.Authority.DecisionOptions(c.Context(), c.actor, *change.Digest)
		if err != nil {
			return err
		}
		return c.ok(http.StatusAccepted, deviceQuestion{
			ID: change.ID, Digest: change.Digest, Statement: change.Statement, Options: options, ConfirmURL: change.ConfirmURL,
		})
	}
	if len(in.Assertion) == 0 {
		return &authority.Error{Status: 400, Title: "The assertion is missing", Detail: "Answer the options of the first call with a passkey."}
	}
	done, err := c.s.Authority.Confirm(c.Context(), c.actor, in.ID, in.Digest, authority.Proof{Assertion: in.Assertion})
	if err != nil {
		return err
	}
	_, ends, err := c.s.Authority.RegisterLink(c.Context(), authority.LinkToken(done.Link))
	if err != nil {
		return err
	}
	return c.ok(http.StatusOK, deviceLink{OK: true, URL: done.Link, ExpiresIn: int(ends.Sub(c.s.Authority.Now()) / time.Second)})
}

// signOut ends the session of the browser that calls. It needs no click, like
// the pages' own button.
func signOut(c *call) error {
	if c.actor.Means != authority.Page {
		return c.needSession()
	}
	if err := c.s.Authority.SignOut(c.Context(), c.actor, c.actor.Session.ID); err != nil {
		return err
	}
	c.cookie("", time.Time{})
	return ok(c)
}

func mySSHKeys(c *call) error {
	a, err := c.s.Authority.Account(c.Context(), c.actor, c.actor.Principal.Email)
	if err != nil {
		return err
	}
	return c.ok(http.StatusOK, keyViews(a.Keys))
}

func addMySSHKey(c *call) error {
	var in newUserKey
	if err := c.body(&in); err != nil {
		return err
	}
	return c.trustNeeded(api.TrustKeyAdd, map[string]string{"public_key": in.PublicKey})
}

// myRecovery tells of a recovery of the caller's account that waits. Times are
// milliseconds.
func myRecovery(c *call) error {
	asked, ready, err := c.s.Authority.Recovery(c.Context(), c.actor)
	if err != nil {
		return err
	}
	away, err := c.s.Authority.Away(c.Context(), c.actor)
	if err != nil {
		return err
	}
	out := recoveryState{Pending: !ready.IsZero(), Away: away}
	if out.Pending {
		out.RequestedAt, out.ReadyAt = asked.UnixMilli(), ready.UnixMilli()
	}
	return c.ok(http.StatusOK, out)
}

func setVacation(c *call) error {
	var in vacation
	if err := c.body(&in); err != nil {
		return err
	}
	if in.Away == nil {
		return &authority.Error{Status: 400, Title: "recoveryVacationMode is missing", Detail: "Send true or false."}
	}
	if err := c.s.Authority.SetAway(c.Context(), c.actor, *in.Away); err != nil {
		return err
	}
	return ok(c)
}
