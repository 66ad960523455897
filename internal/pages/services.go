package pages

import (
	"context"
	"encoding/json"
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"time"
)

// Authorization is what comes next for a browser that a service has sent here.
type Authorization struct {
	Location string // of the service, checked; "" where a page comes first
	// SignIn asks for a login, of Hint if that is not "", after which the browser
	// comes back with the query Again.
	SignIn bool
	Hint   string
	Again  url.Values
	Ask    string // ID of a question that the person, or for what was agreed to the page, answers
	Denied string // ID of a refusal that the person is told of
}

// Question is what a service asks for, or why it gets nothing.
type Question struct {
	ID          string
	Client      string // the service's ID; Name, URI and the others are its own words
	Name        string
	URI         string
	PolicyURI   string
	RedirectURI string
	Scopes      []string
	Login       bool   // it would be logged in here as the person
	Native      bool   // any program of the person's machine could be the service
	Denied      string // "", or domain, list, delegator, login
	Agreed      bool   // nothing is asked: the page shows that it has the session's key, and goes on
}

// Services lets people log in elsewhere with their account here (OAuth 2, OpenID
// Connect). AnswerConsent, EndService and WithdrawConsent are called only after
// the session's key has proven the call.
type Services interface {
	// Authorize is asked with the zero Session by who is not signed in.
	Authorize(ctx context.Context, s Session, query url.Values) (Authorization, error)
	// AuthorizeBridge is the same for a service that wants to act at another one; its
	// Location may be a page here, with the change of trust to confirm first.
	AuthorizeBridge(ctx context.Context, s Session, query url.Values) (Authorization, error)
	Consent(ctx context.Context, s Session, id string) (Question, error)
	// AnswerConsent answers at most once and returns the service's address.
	AnswerConsent(ctx context.Context, s Session, id string, yes bool) (location string, err error)
	EndService(ctx context.Context, s Session, id string) error
	WithdrawConsent(ctx context.Context, s Session, client string) error
}

// ServiceSession is what a service holds for the person.
type ServiceSession struct {
	ID      string
	Client  string
	Created time.Time
	Used    time.Time
	Expires time.Time
}

// Label is what the service is called.
func (s ServiceSession) Label() template.HTML { return marked(s.Client, false) }

// Call is the address that ends it.
func (s ServiceSession) Call() string { return "/p/services/" + url.PathEscape(s.ID) + "/end" }

// ServiceConsent is what the person has agreed to.
type ServiceConsent struct {
	Client string
	Name   string
	Given  time.Time
}

// Label is what the service is called, by itself and for certain.
func (c ServiceConsent) Label() template.HTML {
	if c.Name == "" {
		return marked(c.Client, false)
	}
	return marked(c.Name+" ("+c.Client+")", false)
}

// Call is the address that takes it back.
func (c ServiceConsent) Call() string { return "/p/consents/" + url.PathEscape(c.Client) + "/withdraw" }

// authorize sends a browser on: to the service, to the sign-in, or to a
// question. Only a browser's window may come here, not a picture, a frame or a
// page that is fetched ahead of its time.
func (s *server) authorize(w http.ResponseWriter, r *http.Request) {
	s.sendOn(w, r, s.backend.Services.Authorize)
}

// authorizeBridge is authorize for a service that wants to act at another one.
func (s *server) authorizeBridge(w http.ResponseWriter, r *http.Request) {
	s.sendOn(w, r, s.backend.Services.AuthorizeBridge)
}

type authorizing func(context.Context, Session, url.Values) (Authorization, error)

func (s *server) sendOn(w http.ResponseWriter, r *http.Request, ask authorizing) {
	v, err := s.visit(w, r)
	var to string
	if err == nil {
		to, err = s.whereTo(v, ask)
	}
	if err == nil {
		http.Redirect(w, r, to, http.StatusFound)
		return
	}
	if err := s.render(v, s.errorPage(v, err)); err != nil {
		s.cfg.Logger.Error("pages: rendering", "page", "error", "error", err)
		http.Error(w, "Internal error. The authority's log says more.", http.StatusInternalServerError)
	}
}

func (s *server) whereTo(v *visit, ask authorizing) (string, error) {
	dest := v.Header.Get("Sec-Fetch-Dest")
	if v.Method != http.MethodGet || dest != "" && dest != "document" || v.Header.Get("Sec-Purpose") != "" || v.Header.Get("Purpose") == "prefetch" {
		return "", errOrigin
	}
	query, err := url.ParseQuery(v.URL.RawQuery)
	if err != nil {
		return "", errors.Join(ErrAsked, err)
	}
	out, err := ask(v.Context(), v.session, query)
	switch {
	case err != nil:
		return "", err
	case out.Location != "":
		return out.Location, nil
	case out.SignIn:
		sign := url.Values{"returnTo": {v.URL.Path + "?" + out.Again.Encode()}}
		if out.Hint != "" {
			sign.Set("login_hint", out.Hint)
		}
		return "/login?" + sign.Encode(), nil
	case out.Ask != "":
		return "/consent?request=" + url.QueryEscape(out.Ask), nil
	case out.Denied != "":
		return "/denied?request=" + url.QueryEscape(out.Denied), nil
	}
	return "", errors.New("the backend says nothing")
}

func (s *server) question(v *visit) (Question, error) {
	q, err := s.backend.Services.Consent(v.Context(), v.session, v.URL.Query().Get("request"))
	return q, err
}

// questionView is a question with what the page says of it.
type questionView struct {
	Question
	Call, Page string
}

// Host is where the person is sent to afterwards.
func (q questionView) Host() string {
	u, err := url.Parse(q.RedirectURI)
	if err != nil {
		return q.RedirectURI
	}
	return u.Host
}

// Link is an address that the service names, if it can be followed safely.
func (q questionView) Link(address string) string {
	if u, err := url.Parse(address); err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil {
		return ""
	}
	return address
}

func (s *server) consentPage(v *visit) (*page, error) {
	q, err := s.question(v)
	if err == nil && q.Denied != "" {
		err = goTo("/denied?request=" + url.QueryEscape(q.ID))
	}
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(consentBody{CSRF: q.ID, Action: "approve"})
	return &page{view: "consent", section: "account", title: v.must("consent.title"), data: struct {
		questionView
		Body string // of the yes to what was agreed to
	}{questionView{q, "/api/authorize/consent", "/consent?request=" + url.QueryEscape(q.ID)}, string(body)}}, err
}

func (s *server) deniedPage(v *visit) (*page, error) {
	q, err := s.question(v)
	if err == nil && q.Denied == "" {
		err = goTo("/consent?request=" + url.QueryEscape(q.ID))
	}
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(consentBody{CSRF: q.ID})
	return &page{view: "denied", section: "account", title: v.must("denied.title"), data: struct {
		questionView
		Body string
	}{questionView{q, "/api/authorize/denied", "/denied"}, string(body)}}, err
}

// read frames a GET whose answer is JSON for the pages' own script.
func (s *server) read(handler func(*visit) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v, err := s.visit(w, r)
		var answer any
		switch site := r.Header.Get("Sec-Fetch-Site"); {
		case err != nil:
		case site != "" && site != "same-origin":
			err = errOrigin
		case !v.signedIn():
			err = ErrNoSession
		default:
			answer, err = handler(v)
		}
		if err != nil {
			s.problem(v, err)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			s.cfg.Logger.Info("pages: writing an answer", "path", r.URL.Path, "error", err)
		}
	}
}

// consentAsked is a question as DDISA pages read it. The token that names it is
// good in this session only, and an answer needs the page's click besides.
func (s *server) consentAsked(v *visit) (any, error) {
	q, err := s.question(v)
	if err != nil {
		return nil, err
	}
	return map[string]any{
		"csrfToken": q.ID, "clientId": q.Client, "redirectUri": q.RedirectURI, "verified": true, "scopes": q.Scopes,
		"metadata": map[string]any{"client_id": q.Client, "client_name": q.Name, "client_uri": q.URI, "policy_uri": q.PolicyURI},
	}, nil
}

func (s *server) deniedAsked(v *visit) (any, error) {
	q, err := s.question(v)
	if err != nil {
		return nil, err
	}
	return map[string]any{"csrfToken": q.ID, "clientId": q.Client, "reason": q.Denied}, nil
}

// consentBody is the answer to a question.
type consentBody struct {
	CSRF   string `json:"csrfToken"`
	Action string `json:"action,omitempty"` // approve or cancel
}

func (s *server) consentAnswer(c *call) (any, error) {
	var body consentBody
	if err := c.decode(&body); err != nil {
		return nil, err
	}
	if body.Action != "approve" && body.Action != "cancel" {
		return nil, ErrInvalid
	}
	return s.answerConsent(c, body.CSRF, body.Action == "approve")
}

func (s *server) deniedAnswer(c *call) (any, error) {
	var body consentBody
	if err := c.decode(&body); err != nil {
		return nil, err
	}
	return s.answerConsent(c, body.CSRF, false)
}

func (s *server) answerConsent(c *call, id string, yes bool) (any, error) {
	location, err := s.backend.Services.AnswerConsent(c.Context(), c.session, id, yes)
	return then{Location: location}, err
}
