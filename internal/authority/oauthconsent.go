package authority

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"

	"vogt/internal/store"
)

const purposeConsent = "oauth-consent"

// question is what a page asks, or tells, a person about a client. It lies in
// memory like other state of minutes, and belongs to one session.
type question struct {
	Request authorizeRequest `json:"request"`
	Denied  Denial           `json:"denied,omitempty"` // "" for a question
	Agreed  bool             `json:"agreed,omitempty"` // there is nothing to ask, only to prove
	Bridge  string           `json:"bridge,omitempty"` // the query of a service that wants to act at another, which is asked again
}

// pend keeps a question for its page.
func (a *Authority) pend(by Actor, q question) (string, error) {
	id, err := a.randomHex(32)
	if err != nil {
		return "", err
	}
	data, err := json.Marshal(q)
	if err != nil {
		return "", err
	}
	a.consents.start(id, ceremony{purpose: purposeConsent, subject: by.Session.ID, data: data, ends: a.clock().Add(consentLife)})
	return id, nil
}

// Consent is a question about a client as a page shows it.
type Consent struct {
	ID          string
	Client      ClientMetadata
	RedirectURI string
	Scopes      []string
	// Login tells that what the client gets is a login at this authority.
	Login bool
	// Native tells that any program on the person's machine could be the client.
	Native bool
	// Denied is why nothing is given, "" where the person decides.
	Denied Denial
	// Agreed tells that nothing is to be asked: the page proves itself and goes on.
	Agreed bool
}

func errNoQuestion() *Error {
	return problem(410, "This question is over", "It was answered, or nobody answered it in five minutes.", "Begin at the service again.")
}

// Consent reads a question that was put to this session.
func (a *Authority) Consent(ctx context.Context, by Actor, id string) (Consent, error) {
	c, ok := a.consents.look(id, purposeConsent, a.clock())
	if !ok {
		return Consent{}, errNoQuestion()
	}
	q, meta, err := a.question(ctx, by, c)
	if err != nil {
		return Consent{}, err
	}
	r := q.Request
	out := Consent{
		ID: id, Client: meta, RedirectURI: r.RedirectURI, Login: r.Client == CLIClient, Native: native(r.RedirectURI), Denied: q.Denied, Agreed: q.Agreed,
	}
	for _, s := range []string{scopeOpenID, scopeEmail, scopeProfile, scopeOffline} {
		if hasScope(r.Scope, s) {
			out.Scopes = append(out.Scopes, s)
		}
	}
	return out, nil
}

// question checks that a kept question is the actor's and that the client is
// still what it was.
func (a *Authority) question(ctx context.Context, by Actor, c ceremony) (question, ClientMetadata, error) {
	var q question
	if by.Means != Page || !by.Person() || c.subject != by.Session.ID {
		return q, ClientMetadata{}, errNoQuestion()
	}
	if err := json.Unmarshal(c.data, &q); err != nil {
		return q, ClientMetadata{}, err
	}
	meta, err := a.client(ctx, q.Request.Client, true)
	if err == nil && !meta.answeredAt(q.Request.RedirectURI) {
		err = errNoQuestion()
	}
	return q, meta, err
}

// AnswerConsent answers a question, once, and returns where to go. Saying yes
// needs the proof of the page's own key.
func (a *Authority) AnswerConsent(ctx context.Context, by Actor, id string, yes bool) (string, error) {
	if !by.Proven {
		return "", problem(403, "Only a signed-in person may do this", "", "").kind("forbidden")
	}
	c, ok := a.consents.look(id, purposeConsent, a.clock())
	if !ok {
		return "", errNoQuestion()
	}
	q, meta, err := a.question(ctx, by, c)
	if err != nil {
		return "", err
	}
	// Taken only by its own session, and by whoever is first.
	if _, ok := a.consents.take(id, purposeConsent, a.clock()); !ok {
		return "", errNoQuestion()
	}
	if !yes || q.Denied != "" {
		return a.refusedAt(q.Request, "access_denied", q.Denied.describe()), nil
	}
	if q.Bridge != "" {
		query, err := url.ParseQuery(q.Bridge)
		if err != nil {
			return "", err
		}
		out, err := a.AuthorizeBridge(ctx, by, query)
		return out.Location, err
	}
	// The policy may have changed while the person read.
	subject, err := a.subjectOf(ctx, by, q.Request)
	var no *OAuthError
	if errors.As(err, &no) {
		return "", inactiveUser().caused(err)
	}
	if err != nil {
		return "", err
	}
	verdict, reason, err := a.policy(ctx, by, subject, meta, q.Request)
	if err != nil {
		return "", err
	}
	if verdict == refused {
		return a.refusedAt(q.Request, "access_denied", reason.describe()), nil
	}
	if q.Agreed && verdict != allowed {
		return a.refusedAt(q.Request, "consent_required", "What was agreed to was withdrawn."), nil
	}
	return a.give(ctx, by, meta, q.Request, !q.Agreed)
}

// Consents lists the services that the actor has agreed to.
func (a *Authority) Consents(ctx context.Context, by Actor) (out []store.Consent, err error) {
	if !by.Known() {
		return nil, errUnauthenticated()
	}
	err = a.view(ctx, func(tx store.Tx) error {
		out, err = store.Consents(tx, by.Principal.Email, by.Principal.Generation)
		return err
	})
	return out, err
}

// WithdrawConsent takes back what the actor agreed to, and ends the sessions
// that the client has because of it.
func (a *Authority) WithdrawConsent(ctx context.Context, by Actor, client string) error {
	if err := mayEnd(by); err != nil {
		return err
	}
	email := by.Principal.Email
	return a.narrow(ctx, func(t *txn) error {
		if err := store.DeleteConsent(t, email, client); errors.Is(err, store.ErrConflict) {
			return problem(404, "There is no such consent", "", "")
		} else if err != nil {
			return err
		}
		families, err := store.FamiliesWith(t, email, client)
		if err != nil {
			return err
		}
		for _, id := range families {
			if err := t.endAuthorization(by.Name(), email, client, id, "the consent was withdrawn"); err != nil {
				return err
			}
		}
		return t.recordOAuth(oauthRecord{Operation: "consent.withdrawn", By: by.Name(), Subject: email, Client: client})
	})
}

// mayEnd admits whoever may end something of its own: a bearer, or a page that
// has proven the call.
func mayEnd(by Actor) error {
	if !by.Known() || by.Means == Page && !by.Proven {
		return errUnauthenticated()
	}
	return nil
}

// Families lists the sessions that clients hold for the actor, newest first; at
// most limit, after the one of that ID ("" for the first).
func (a *Authority) Families(ctx context.Context, by Actor, after string, limit int) (out []store.Family, more bool, err error) {
	if !by.Known() {
		return nil, false, errUnauthenticated()
	}
	if limit <= 0 || limit > maxFamilies {
		limit = maxFamilies
	}
	err = a.view(ctx, func(tx store.Tx) error {
		var before int64
		if after != "" {
			f, err := store.FamilyByID(tx, after)
			if err != nil || f.Email != by.Principal.Email {
				return problem(400, "There is no such place in the list", "cursor names no session of yours.", "Begin without it.").caused(err)
			}
			before = f.Created
		}
		out, err = store.Families(tx, by.Principal.Email, int64(a.now()), before, after, limit+1)
		return err
	})
	if more = len(out) > limit; more {
		out = out[:limit]
	}
	return out, more, err
}

// EndSessionOf ends a session that a client holds for the actor.
func (a *Authority) EndSessionOf(ctx context.Context, by Actor, id string) error {
	if err := mayEnd(by); err != nil {
		return err
	}
	return a.narrow(ctx, func(t *txn) error {
		f, err := store.FamilyByID(t, id)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		if err != nil || f.Email != by.Principal.Email || f.Ended != 0 {
			return problem(404, "There is no such session", "", "See yours at /api/me/sessions, or on the account page.")
		}
		return t.endAuthorization(by.Name(), f.Email, f.Client, f.ID, "ended by its person")
	})
}

// AllowClient and DisallowClient keep the list of services that a domain's
// administrators allow, on behalf of whoever administers.
func (a *Authority) AllowClient(ctx context.Context, by Actor, domain, client string) error {
	return a.changeAllowed(ctx, a.update, by, domain, client, "client.allowed", func(t *txn) error {
		return store.AllowClient(t, store.AllowedClient{Domain: lower(domain), Client: client, Created: int64(t.now)})
	})
}

// DisallowClient takes a service from a domain's list. Sessions that it has are
// not ended: their people do that.
func (a *Authority) DisallowClient(ctx context.Context, by Actor, domain, client string) error {
	return a.changeAllowed(ctx, a.narrow, by, domain, client, "client.disallowed", func(t *txn) error {
		err := store.DisallowClient(t, lower(domain), client)
		if errors.Is(err, store.ErrConflict) {
			return problem(404, "This service is not on the list", "", "")
		}
		return err
	})
}

func (a *Authority) changeAllowed(ctx context.Context, write func(context.Context, func(*txn) error) error, by Actor, domain, client, operation string, change func(*txn) error) error {
	if domain == "" || client == "" || len(domain) > 255 || len(client) > 255 || !plainText(domain) || !plainText(client) {
		return problem(400, "Domain or client cannot be used", "Give the mail domain and the client's ID.", "")
	}
	return write(ctx, func(t *txn) error {
		if err := t.manages(by); err != nil {
			return err
		}
		if err := change(t); err != nil {
			return err
		}
		return t.recordOAuth(oauthRecord{Operation: operation, By: by.Name(), Client: client, Why: lower(domain)})
	})
}

// AllowedClients lists what domains' administrators allow.
func (a *Authority) AllowedClients(ctx context.Context, by Actor, domain string) (out []store.AllowedClient, err error) {
	if !by.manages() {
		return nil, errManagement()
	}
	err = a.view(ctx, func(tx store.Tx) error {
		out, err = store.AllowedClients(tx, lower(domain))
		return err
	})
	return out, err
}
