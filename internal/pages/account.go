package pages

import (
	"context"
	"encoding/json"
	"net/url"
	"strconv"
	"strings"
	"time"

	"vogt/internal/api"
	"vogt/internal/sshkey"
)

func (s *server) accountPage(v *visit) (*page, error) {
	a, err := s.backend.Accounts.Account(v.Context(), v.session)
	if err != nil {
		return nil, err
	}
	type signIn struct {
		SignIn
		Current bool
		Call    string
	}
	another, err := json.Marshal(prepareBody{api.TrustPasskeyAdd, map[string]string{}})
	if err != nil {
		return nil, err
	}
	data := struct {
		Passkeys, Keys []keyView
		SignIns        []signIn
		Sessions       []ServiceSession
		Consents       []ServiceConsent
		AddPasskey     string // body of the call that prepares another passkey
		PushKey        string
		Recovery       time.Time
		Away           bool
		Recoverable    bool // by mail
	}{
		PushKey: s.cfg.PushKey, Recovery: a.Recovery, Away: a.Away, Recoverable: s.cfg.Recovery,
		Passkeys: keysOf(a.Passkeys, "/p/passkeys/"), Keys: keysOf(a.Keys, "/p/keys/"), Sessions: a.Sessions, Consents: a.Consents, AddPasskey: string(another),
	}
	for _, in := range a.SignIns {
		data.SignIns = append(data.SignIns, signIn{in, in.ID == v.session.ID, "/p/sessions/" + url.PathEscape(in.ID) + "/revoke"})
	}
	return &page{view: "account", section: "account", title: v.must("account.title"), data: data}, nil
}

// keyView is a passkey or key with the address of the call that removes it.
type keyView struct {
	Key
	Call string
}

func keysOf(keys []Key, calls string) (out []keyView) {
	for _, k := range keys {
		out = append(out, keyView{k, calls + url.PathEscape(k.ID) + "/remove"})
	}
	return out
}

// keyError is a line that holds no usable public key. Its reason repeats
// nothing of the line, which may be anything.
type keyError struct{ cause error }

func (e *keyError) Error() string   { return e.cause.Error() }
func (e *keyError) Unwrap() []error { return []error{errBadKey, e.cause} }

// reason is the cause without the name of what was to be read.
func (e *keyError) reason() string { return strings.TrimPrefix(e.cause.Error(), "ssh public key: ") }

// keyAdd prepares another SSH key of the person. What follows shows and signs
// the line as it was understood.
func (s *server) keyAdd(c *call) (any, error) {
	var body struct {
		PublicKey string `json:"public_key"`
	}
	if err := c.decode(&body); err != nil {
		return nil, err
	}
	key, err := sshkey.ParsePublic(body.PublicKey)
	if err != nil {
		return nil, &keyError{err}
	}
	return s.prepare(c, prepareBody{api.TrustKeyAdd, map[string]string{"public_key": key.String()}})
}

// removal makes the handler of a call that removes one key or passkey.
func removal(remove func(context.Context, Session, string) error) func(*call) (any, error) {
	return func(c *call) (any, error) {
		if err := c.decode(&struct{}{}); err != nil {
			return nil, err
		}
		return nil, remove(c.Context(), c.session, c.PathValue("id"))
	}
}

func (s *server) sessionRevoke(c *call) (any, error) {
	if err := c.decode(&struct{}{}); err != nil {
		return nil, err
	}
	id := c.PathValue("id")
	if err := s.backend.Sessions.EndSession(c.Context(), c.session, id); err != nil {
		return nil, err
	}
	if id == c.session.ID {
		s.clearSession(c.w)
		return then{Location: "/login"}, nil
	}
	return nil, nil
}

// checkView is a line of what is in force.
type checkView struct {
	Key   string // of the catalog, after "health."
	State string // on, part, off
	Count int64
}

func (s *server) healthPage(v *visit) (*page, error) {
	protection, err := s.backend.Accounts.Protection(v.Context())
	if err != nil {
		return nil, err
	}
	account, err := s.backend.Accounts.Account(v.Context(), v.session)
	if err != nil {
		return nil, err
	}
	log, err := s.backend.Log.LogState(v.Context())
	if err != nil {
		return nil, err
	}
	var need, force []checkView
	for _, c := range checks(protection, len(account.Passkeys), log) {
		if c.State == "on" {
			force = append(force, c)
			continue
		}
		need = append(need, c)
	}
	return &page{view: "health", section: "health", title: v.must("health.title"), data: struct {
		Protection
		Need, Force []checkView
	}{protection, need, force}}, nil
}

// checks judges what is in force. A value that is not known is not in force.
func checks(p Protection, passkeys int, log LogState) []checkView {
	state := func(on, part bool) string {
		switch {
		case on:
			return "on"
		case part:
			return "part"
		}
		return "off"
	}
	enforcement := "enforce.advisory"
	switch p.Enforcement {
	case "os-user", "box", "box+executor":
		enforcement = "enforce." + p.Enforcement
	}
	bearer := "bearer.high"
	switch p.Bearer {
	case "none", "medium":
		bearer = "bearer." + p.Bearer
	}
	record := "record"
	if log.Broken {
		record = "record.broken"
	}
	return []checkView{
		{Key: "user." + strconv.FormatBool(p.OwnUser), State: state(p.OwnUser, false)},
		{Key: enforcement, State: state(p.Enforcement == "box+executor", p.Enforcement == "os-user" || p.Enforcement == "box")},
		{Key: bearer, State: state(p.Bearer == "none", p.Bearer == "medium")},
		{Key: record, State: state(!log.Broken, false), Count: log.Size},
		{Key: "passkeys", State: state(passkeys > 1, passkeys == 1), Count: int64(passkeys)},
		{Key: "reach." + strconv.FormatBool(p.Loopback), State: state(p.Loopback, true)},
	}
}
