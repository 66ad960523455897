package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"vogt/internal/authority"
	"vogt/internal/config"
	"vogt/internal/ddisa"
	"vogt/internal/fetch"
)

// services tells the authority what domains decided and what services are. The zero
// value asks nobody.
type services struct {
	resolver *ddisa.Resolver
	known    *ddisa.Clients
}

// newServices makes what the configuration wants for an authority at issuer.
func newServices(cfg config.DDISA, issuer string) (services, error) {
	fixed := make(map[ddisa.Domain]ddisa.Record, len(cfg.Records))
	for _, r := range cfg.Records {
		domain, err := ddisa.ParseDomain(r.Domain)
		if err != nil {
			return services{}, fmt.Errorf("ddisa.records: %w", err)
		}
		if fixed[domain], err = ddisa.NewRecord(r.IDP, r.Mode); err != nil {
			return services{}, fmt.Errorf("ddisa.records: %s: %w", domain, err)
		}
	}
	asking := ddisa.ResolverConfig{Providers: cfg.Providers, Fixed: fixed}
	if cfg.Lookup == "off" || cfg.Lookup == "auto" && !strings.HasPrefix(issuer, "https://") {
		// What stands in the configuration holds all the same.
		asking.Providers, asking.Native = nil, func(context.Context, string) ([]string, error) { return nil, nil }
		resolver, err := ddisa.NewResolver(asking)
		return services{resolver: resolver}, err
	}
	resolver, err := ddisa.NewResolver(asking)
	if err != nil {
		return services{}, fmt.Errorf("ddisa.providers: %w", err)
	}
	known, err := ddisa.NewClients(ddisa.ClientsConfig{Strict: cfg.Clients == "strict", Fetch: fetch.Config{Origins: cfg.Origins}})
	if err != nil {
		return services{}, fmt.Errorf("ddisa.origins: %w", err)
	}
	return services{resolver: resolver, known: known}, nil
}

// clients is nil where nobody is asked.
func (s services) clients() authority.ClientSource {
	if s.known == nil {
		return nil
	}
	return clientSource{s.known}
}

// scopes is nil where nobody is asked.
func (s services) scopes() authority.ScopeSource {
	if s.known == nil {
		return nil
	}
	return clientSource{s.known}
}

func (s services) policies() authority.PolicySource { return policySource{s.resolver} }

type clientSource struct{ known *ddisa.Clients }

func (s clientSource) Client(ctx context.Context, id string) (authority.ClientMetadata, error) {
	c, err := s.known.Client(ctx, id)
	switch {
	case errors.Is(err, ddisa.ErrNoClient):
		return authority.ClientMetadata{}, errors.Join(authority.ErrNoClient, err)
	case err != nil:
		return authority.ClientMetadata{}, err
	}
	return authority.ClientMetadata{
		ID: c.ID, Name: c.Name, RedirectURIs: c.RedirectURIs, URI: c.URI, LogoURI: c.LogoURI, PolicyURI: c.PolicyURI,
		TermsURI: c.TermsURI, Contacts: c.Contacts, Unpublished: !c.Published(),
	}, nil
}

// Scopes implements authority.ScopeSource.
func (s clientSource) Scopes(ctx context.Context, audience string) ([]authority.Scope, error) {
	known, err := s.known.Scopes(ctx, audience)
	if errors.Is(err, ddisa.ErrNoClient) {
		return nil, errors.Join(authority.ErrNoClient, err)
	}
	var out []authority.Scope
	for _, k := range known {
		out = append(out, authority.Scope{ID: k.ID, Description: k.Description})
	}
	return out, err
}

type policySource struct{ resolver *ddisa.Resolver }

// Mode tells what a domain decided. A name that can have no record decided nothing.
func (s policySource) Mode(ctx context.Context, domain string) (authority.Mode, error) {
	d, err := ddisa.ParseDomain(domain)
	if err != nil {
		return "", nil
	}
	answer, err := s.resolver.Lookup(ctx, d)
	if err != nil {
		return "", err
	}
	return authority.Mode(answer.Record.Mode), nil
}
