package pages

import (
	"net/url"
	"strconv"
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
	data := struct {
		Account
		SignIns []signIn
	}{Account: a}
	for _, in := range a.SignIns {
		data.SignIns = append(data.SignIns, signIn{in, in.ID == v.session.ID, "/p/sessions/" + url.PathEscape(in.ID) + "/revoke"})
	}
	return &page{view: "account", section: "account", title: v.must("account.title"), data: data}, nil
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
