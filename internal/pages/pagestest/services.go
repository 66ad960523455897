package pagestest

import (
	"context"
	"net/url"
	"slices"

	"vogt/internal/pages"
)

// services is what the authority knows of logins elsewhere.
type services struct {
	questions map[string]asked
	sessions  map[string][]pages.ServiceSession // by person
	consents  map[string][]pages.ServiceConsent
}

type asked struct {
	pages.Question
	session string
}

func newServices() services {
	return services{questions: map[string]asked{}, sessions: map[string][]pages.ServiceSession{}, consents: map[string][]pages.ServiceConsent{}}
}

// AddService gives email a session at a client, and a consent to it.
func (a *Authority) AddService(email string, s pages.ServiceSession, c pages.ServiceConsent) {
	defer a.lock()()
	a.services.sessions[email] = append(a.services.sessions[email], s)
	a.services.consents[email] = append(a.services.consents[email], c)
}

// Question puts a question to a signed-in person and returns its ID.
func (a *Authority) Question(email string, q pages.Question) string {
	defer a.lock()()
	for _, s := range a.sessions {
		if s.Person.Email == email && !s.ended {
			q.ID = random()
			a.services.questions[q.ID] = asked{q, s.ID}
		}
	}
	return q.ID
}

// Authorize implements pages.Services: every client that says where it is gets a
// question.
func (a *Authority) Authorize(_ context.Context, s pages.Session, query url.Values) (pages.Authorization, error) {
	defer a.lock()()
	to := query.Get("redirect_uri")
	switch {
	case query.Get("client_id") == "":
		return pages.Authorization{}, pages.ErrService
	case to == "":
		return pages.Authorization{}, pages.ErrRedirect
	case s.ID == "":
		return pages.Authorization{SignIn: true, Hint: query.Get("login_hint"), Again: query}, nil
	}
	id := random()
	a.services.questions[id] = asked{pages.Question{ID: id, Client: query.Get("client_id"), RedirectURI: to, Scopes: []string{"openid"}}, s.ID}
	return pages.Authorization{Ask: id}, nil
}

// AuthorizeBridge implements pages.Services: nothing is signed, so that there is a
// change of trust to confirm.
func (a *Authority) AuthorizeBridge(_ context.Context, s pages.Session, query url.Values) (pages.Authorization, error) {
	switch {
	case query.Get("client_id") == "":
		return pages.Authorization{}, pages.ErrService
	case s.ID == "":
		return pages.Authorization{SignIn: true, Again: query}, nil
	}
	return pages.Authorization{Location: "/trust/bridge"}, nil
}

// Consent implements pages.Services.
func (a *Authority) Consent(_ context.Context, s pages.Session, id string) (pages.Question, error) {
	defer a.lock()()
	return a.question(s, id)
}

func (a *Authority) question(s pages.Session, id string) (pages.Question, error) {
	q, ok := a.services.questions[id]
	if !ok || q.session != s.ID {
		return pages.Question{}, pages.ErrExpired
	}
	return q.Question, nil
}

// AnswerConsent implements pages.Services.
func (a *Authority) AnswerConsent(_ context.Context, s pages.Session, id string, yes bool) (string, error) {
	defer a.lock()()
	q, err := a.question(s, id)
	if err != nil {
		return "", err
	}
	delete(a.services.questions, id)
	if !yes || q.Denied != "" {
		return q.RedirectURI + "?error=access_denied", nil
	}
	a.services.consents[s.Person.Email] = append(a.services.consents[s.Person.Email], pages.ServiceConsent{Client: q.Client, Name: q.Name, Given: a.clock()})
	return q.RedirectURI + "?code=" + random(), nil
}

// EndService implements pages.Services.
func (a *Authority) EndService(_ context.Context, s pages.Session, id string) error {
	defer a.lock()()
	all := a.services.sessions[s.Person.Email]
	left := slices.DeleteFunc(slices.Clone(all), func(x pages.ServiceSession) bool { return x.ID == id })
	if len(left) == len(all) {
		return pages.ErrNotFound
	}
	a.services.sessions[s.Person.Email] = left
	return nil
}

// WithdrawConsent implements pages.Services.
func (a *Authority) WithdrawConsent(_ context.Context, s pages.Session, client string) error {
	defer a.lock()()
	all := a.services.consents[s.Person.Email]
	left := slices.DeleteFunc(slices.Clone(all), func(x pages.ServiceConsent) bool { return x.Client == client })
	if len(left) == len(all) {
		return pages.ErrNotFound
	}
	a.services.consents[s.Person.Email] = left
	return nil
}
