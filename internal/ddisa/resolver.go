package ddisa

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"runtime"
	"time"

	"vogt/internal/fetch"
	"vogt/internal/inet"
)

// ResolverConfig is what a Resolver needs. The zero value asks the machine's resolver
// alone.
type ResolverConfig struct {
	// Native asks the machine's resolver; SystemTXT when nil.
	Native func(ctx context.Context, name string) ([]string, error)
	// Providers are asked by HTTPS, one after the other, when the machine's resolver
	// fails. None is asked when that says that there is no record.
	Providers []string
	// Fetch puts another network in the place of the internet. Its Origins are those
	// of Providers, and nothing else.
	Fetch fetch.Config
	// Fixed are records that whoever runs the program has written down: they are not
	// asked for. They alone may name http, on this machine.
	Fixed map[Domain]Record
	Now   func() time.Time // time.Now when nil
}

// nativeTime bounds how long the machine's resolver may take before others are asked.
const nativeTime = 4 * time.Second

// Resolver finds the records of domains. It may be used by several goroutines.
type Resolver struct {
	config ResolverConfig
	fetch  *fetch.Client
	known  *cache[Answer]
}

// NewResolver returns a resolver, or what is wrong with a provider.
func NewResolver(config ResolverConfig) (*Resolver, error) {
	if config.Native == nil {
		config.Native = SystemTXT
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	for _, address := range config.Providers {
		u, err := inet.ParseURL(address)
		if err != nil {
			return nil, fmt.Errorf("resolver %.200q: %w", address, err)
		}
		config.Fetch.Origins = append(config.Fetch.Origins, u.Origin.String())
	}
	client, err := fetch.New(config.Fetch)
	if err != nil {
		return nil, err
	}
	return &Resolver{config: config, fetch: client, known: newCache[Answer](config.Now)}, nil
}

// Where an Answer can come from, besides the address of a provider.
const (
	FromDNS   = "dns"
	FromFixed = "fixed"
)

// Answer is what a domain says.
type Answer struct {
	Domain     Domain
	Record     Record // the one that counts, if Found
	Found      bool
	Source     string      // FromDNS, FromFixed, or the address of a provider
	Candidates []Candidate // all texts at the name, the one that counts first
	Failed     []error     // of those that were asked before Source
}

// Lookup asks what a domain says. That it says nothing is an answer; an error means
// that nobody could tell.
func (r *Resolver) Lookup(ctx context.Context, domain Domain) (Answer, error) {
	if domain == (Domain{}) {
		return Answer{}, errors.New("there is no domain to look for")
	}
	if record, ok := r.config.Fixed[domain]; ok {
		return Answer{Domain: domain, Record: record, Found: true, Source: FromFixed}, nil
	}
	return r.known.get(ctx, domain.String(), func(ctx context.Context) (Answer, time.Duration, error) {
		a, err := r.ask(ctx, domain)
		if a.Found {
			return a, found, err
		}
		return a, absent, err
	})
}

// ask asks one resolver after the other.
func (r *Resolver) ask(ctx context.Context, domain Domain) (Answer, error) {
	a := Answer{Domain: domain, Source: FromDNS}
	texts, err := r.native(ctx, domain)
	for _, provider := range r.config.Providers {
		if err == nil || ctx.Err() != nil {
			break
		}
		a.Failed = append(a.Failed, err)
		a.Source = provider
		texts, err = overHTTPS(ctx, r.fetch, provider, domain.RecordName())
	}
	if err != nil {
		return Answer{}, &LookupError{Domain: domain, Causes: append(a.Failed, err)}
	}
	a.Record, a.Found, a.Candidates = choose(texts, false)
	return a, nil
}

func (r *Resolver) native(ctx context.Context, domain Domain) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, nativeTime)
	defer cancel()
	texts, err := r.config.Native(ctx, domain.RecordName())
	if e, ok := errors.AsType[*net.DNSError](err); ok && e.IsNotFound && !e.IsTemporary && !e.IsTimeout {
		return nil, nil
	}
	return texts, err
}

// LookupError says why nobody could tell what a domain says.
type LookupError struct {
	Domain Domain
	Causes []error // one of each resolver that was asked
}

func (e *LookupError) Error() string {
	return fmt.Sprintf("the record %s could not be asked for: %v", e.Domain.RecordName(), errors.Join(e.Causes...))
}

// Unwrap gives the causes.
func (e *LookupError) Unwrap() []error { return e.Causes }

// SystemTXT asks the machine's resolver for the TXT records at a name, as it stands.
// The strings of one record come joined.
func SystemTXT(ctx context.Context, name string) ([]string, error) {
	resolver := net.Resolver{PreferGo: runtime.GOOS == "linux"}
	return resolver.LookupTXT(ctx, name+".")
}

// MockVariable names the variable in which the records of tests stand.
const MockVariable = "DDISA_MOCK_RECORDS"

// ParseMock reads records of tests: JSON, {"example.com": {"idp": "https://…", "mode":
// "open"}}. They may name http on this machine.
func ParseMock(text string) (map[Domain]Record, error) {
	var all map[string]struct {
		IDP  string `json:"idp"`
		Mode string `json:"mode"`
	}
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		return nil, fmt.Errorf("%s is no JSON object of records: %w", MockVariable, err)
	}
	fixed := make(map[Domain]Record, len(all))
	for name, m := range all {
		domain, err := ParseDomain(name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", MockVariable, err)
		}
		record, err := NewRecord(m.IDP, m.Mode)
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", MockVariable, domain, err)
		}
		fixed[domain] = record
	}
	return fixed, nil
}

// NewRecord returns a record that somebody has written down outside of the DNS, where
// everything has to be right.
func NewRecord(idp, mode string) (Record, error) {
	if err := CheckIDP(idp, true); err != nil {
		return Record{}, fmt.Errorf("idp: %w", err)
	}
	r := Record{Priority: defaultPriority, IDP: idp}
	if mode != "" {
		if err := r.set("mode", mode, true); err != nil {
			return Record{}, err
		}
		if r.Mode == NoMode {
			return Record{}, errors.New(r.Ignored[0])
		}
	}
	return r, nil
}
