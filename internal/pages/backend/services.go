package backend

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"vogt/internal/authority"
	"vogt/internal/pages"
)

// service is translate for requests of services, whose errors have pages of
// their own.
func service(err error) error {
	var e *authority.Error
	if !errors.As(err, &e) {
		return err
	}
	as := map[string]error{
		"invalid_manifest": pages.ErrService, "invalid_redirect": pages.ErrRedirect, "invalid_request": pages.ErrAsked,
		"invalid_state": pages.ErrAsked, "invalid_pkce": pages.ErrAsked,
	}[e.Kind]
	if e.Status == 502 {
		as = pages.ErrAway
	}
	if as == nil {
		return translate(err)
	}
	return fmt.Errorf("%w: %w", as, err)
}

// Authorize implements pages.Services.
func (b *backend) Authorize(ctx context.Context, s pages.Session, query url.Values) (pages.Authorization, error) {
	var by authority.Actor
	if s.ID != "" {
		var err error
		if by, err = b.actor(ctx, s, false); err != nil {
			return pages.Authorization{}, err
		}
	}
	out, err := b.a.Authorize(ctx, by, query)
	return pages.Authorization{
		Location: out.Location, SignIn: out.SignIn, Hint: out.Hint, Again: out.Again, Ask: out.Ask, Denied: out.Denied,
	}, service(err)
}

// AuthorizeBridge implements pages.Services.
func (b *backend) AuthorizeBridge(ctx context.Context, s pages.Session, query url.Values) (pages.Authorization, error) {
	var by authority.Actor
	if s.ID != "" {
		var err error
		if by, err = b.actor(ctx, s, false); err != nil {
			return pages.Authorization{}, err
		}
	}
	out, err := b.a.AuthorizeBridge(ctx, by, query)
	return pages.Authorization{Location: out.Location, SignIn: out.SignIn, Again: out.Again, Ask: out.Ask}, service(err)
}

// Consent implements pages.Services.
func (b *backend) Consent(ctx context.Context, s pages.Session, id string) (pages.Question, error) {
	by, err := b.actor(ctx, s, false)
	if err != nil {
		return pages.Question{}, err
	}
	c, err := b.a.Consent(ctx, by, id)
	return pages.Question{
		ID: c.ID, Client: c.Client.ID, Name: c.Client.Name, URI: c.Client.URI, PolicyURI: c.Client.PolicyURI, RedirectURI: c.RedirectURI,
		Scopes: c.Scopes, Login: c.Login, Native: c.Native, Denied: string(c.Denied), Agreed: c.Agreed,
	}, service(err)
}

// AnswerConsent implements pages.Services.
func (b *backend) AnswerConsent(ctx context.Context, s pages.Session, id string, yes bool) (string, error) {
	by, err := b.actor(ctx, s, true)
	if err != nil {
		return "", err
	}
	to, err := b.a.AnswerConsent(ctx, by, id, yes)
	return to, service(err)
}

// EndService implements pages.Services.
func (b *backend) EndService(ctx context.Context, s pages.Session, id string) error {
	by, err := b.actor(ctx, s, true)
	if err != nil {
		return err
	}
	return translate(b.a.EndSessionOf(ctx, by, id))
}

// WithdrawConsent implements pages.Services.
func (b *backend) WithdrawConsent(ctx context.Context, s pages.Session, client string) error {
	by, err := b.actor(ctx, s, true)
	if err != nil {
		return err
	}
	return translate(b.a.WithdrawConsent(ctx, by, client))
}

// services fills in what the account page shows of services.
func (b *backend) services(ctx context.Context, by authority.Actor, out *pages.Account) error {
	families, _, err := b.a.Families(ctx, by, "", 0)
	if err != nil {
		return translate(err)
	}
	for _, f := range families {
		out.Sessions = append(out.Sessions, pages.ServiceSession{
			ID: f.ID, Client: f.Client, Created: time.UnixMilli(f.Created), Used: time.UnixMilli(f.Used), Expires: time.UnixMilli(f.Expires),
		})
	}
	consents, err := b.a.Consents(ctx, by)
	if err != nil {
		return translate(err)
	}
	for _, c := range consents {
		out.Consents = append(out.Consents, pages.ServiceConsent{Client: c.Client, Name: c.Name, Given: time.UnixMilli(c.Created)})
	}
	return nil
}
