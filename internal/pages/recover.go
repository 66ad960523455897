package pages

import "errors"

// recoverView is the page of a recovery.
type recoverView struct {
	State string // open, wait or over
	Token string
	LinkView
}

// recoverPage shows a recovery to whoever holds its link: from when it works, a
// button that makes a passkey then, and one that says no at any time.
func (s *server) recoverPage(v *visit) (*page, error) {
	view := &recoverView{State: "over", Token: v.URL.Query().Get("token")}
	if view.Token != "" {
		found, err := s.backend.Recoveries.Recovery(v.Context(), view.Token)
		switch {
		case err == nil:
			view.State, view.LinkView = "open", found
		case errors.Is(err, ErrWaits):
			view.State, view.LinkView = "wait", found
		case !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrExpired) && !errors.Is(err, ErrUsed) && !errors.Is(err, ErrForbidden):
			return nil, err
		}
	}
	p := &page{view: "recover", title: v.must("recover.title"), data: view}
	if view.State == "over" {
		p.status = 410
	}
	return p, nil
}
