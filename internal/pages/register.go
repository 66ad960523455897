package pages

import "errors"

// registerView is the page of a registration link.
type registerView struct {
	State string // open, used, over or late
	Token string
	LinkView
	Other bool // somebody else than Person is signed in here
}

// registerPage shows a registration link. Programs look at addresses before
// people do, so opening it spends nothing; its button does. A browser whose
// dialogue took too long is sent here with "late".
func (s *server) registerPage(v *visit) (*page, error) {
	query := v.URL.Query()
	view := &registerView{State: "over", Token: query.Get("token")}
	switch {
	case query.Has("late"):
		view.State = "late"
	case view.Token != "":
		link, err := s.backend.Links.Link(v.Context(), view.Token)
		switch {
		case errors.Is(err, ErrUsed):
			view.State = "used"
		case errors.Is(err, ErrExpired):
		case err != nil:
			return nil, err
		case link.Expires.After(v.now):
			view.State, view.LinkView = "open", link
			view.Other = v.signedIn() && v.session.Person.Email != link.Person.Email
		}
	}
	p := &page{view: "register", title: v.must("register.title"), data: view}
	if view.State != "open" {
		p.status = 410
	}
	return p, nil
}

func (s *server) registerOptions(c *call) (any, error) {
	var body struct {
		Token string `json:"token"`
	}
	if err := c.decode(&body); err != nil {
		return nil, err
	}
	if body.Token == "" {
		return nil, ErrExpired
	}
	return s.backend.Links.BeginRegister(c.Context(), body.Token)
}

func (s *server) registerVerify(c *call) (any, error) {
	p, err := c.newPasskey()
	if err != nil {
		return nil, err
	}
	in, err := s.backend.Links.FinishRegister(c.Context(), p)
	if err != nil {
		return nil, err
	}
	// The new session takes the place of the one that this browser had, whose
	// cookie and key it replaces.
	if c.signedIn() {
		if err := s.backend.Sessions.EndSession(c.Context(), c.session, c.session.ID); err != nil {
			s.cfg.Logger.Info("pages: the session before a registration stays", "error", err)
		}
	}
	s.setSession(c.w, in)
	return sessionAnswer{in.Session.ID}, nil
}
