package ddisa

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"vogt/internal/fetch"
	"vogt/internal/inet"
)

// Where a service publishes what it is, the second for those that came before the
// first had a name.
const (
	PathMetadata = "/.well-known/oauth-client-metadata"
	PathManifest = "/.well-known/sp-manifest.json"
)

const (
	maxName      = 200  // characters of a client's name
	maxAddress   = 2000 // bytes of an address in metadata
	maxRedirects = 50
	maxContacts  = 10
	maxID        = 255
)

// Client is what a service that calls itself by its domain says of itself (RFC 7591,
// section 2).
type Client struct {
	ID   string
	Name string
	// RedirectURIs are compared as text. They are https, or http on the person's own
	// machine.
	RedirectURIs []string
	URI          string
	LogoURI      string
	PolicyURI    string
	TermsURI     string
	JWKSURI      string
	Contacts     []string
	Domain       string // ddisa_domain, a claim of the service's
	// Source is where it lay; "" for a service that publishes nothing, which has no
	// name and no redirect address of which anybody knew that it is its own.
	Source string
}

// Published reports whether the service has said anything of itself.
func (c Client) Published() bool { return c.Source != "" }

// ErrNoClient tells that there is no client of that ID, or that what it publishes
// cannot be used.
var ErrNoClient = errors.New("no such client")

// ClientsConfig is what Clients need.
type ClientsConfig struct {
	// Strict wants every client to publish metadata under its standard address and
	// names, without a fault in it. Otherwise names and addresses that came before the
	// standard serve too, a wrong field is left out, and a client that publishes
	// nothing is one that has said nothing.
	Strict bool
	Fetch  fetch.Config
	Now    func() time.Time // time.Now when nil
}

// Clients finds what services say of themselves. It may be used by several
// goroutines.
type Clients struct {
	strict bool
	plain  []string // origins of this machine that may be asked without TLS
	fetch  *fetch.Client
	known  *cache[clientAnswer]

	catalogs *cache[catalogAnswer]
}

type clientAnswer struct {
	client Client
	err    error // wraps ErrNoClient
}

// NewClients returns Clients, or what is wrong with one of the origins.
func NewClients(config ClientsConfig) (*Clients, error) {
	if config.Now == nil {
		config.Now = time.Now
	}
	client, err := fetch.New(config.Fetch)
	if err != nil {
		return nil, err
	}
	c := &Clients{strict: config.Strict, fetch: client, known: newCache[clientAnswer](config.Now), catalogs: newCache[catalogAnswer](config.Now)}
	for _, o := range config.Fetch.Origins {
		if strings.HasPrefix(o, "http://") {
			c.plain = append(c.plain, strings.TrimSuffix(o, "/"))
		}
	}
	return c, nil
}

// Client finds the client of an ID, which is a domain in the one form that is
// compared: lower-case ASCII without a final dot. That there is none, or that what it
// publishes cannot be used, is ErrNoClient; any other error means that nobody can tell
// now.
func (c *Clients) Client(ctx context.Context, id string) (Client, error) {
	origin, err := c.origin(id)
	if err != nil {
		return Client{}, fmt.Errorf("%w: %w", ErrNoClient, err)
	}
	a, err := c.known.get(ctx, id, func(ctx context.Context) (clientAnswer, time.Duration, error) {
		client, err := c.read(ctx, id, origin)
		switch {
		case errors.Is(err, ErrNoClient):
			return clientAnswer{err: err}, absent, nil
		case err != nil:
			return clientAnswer{}, 0, err
		case !client.Published():
			return clientAnswer{client: client}, absent, nil
		}
		return clientAnswer{client: client}, found, nil
	})
	if err != nil {
		return Client{}, err
	}
	client := a.client
	client.RedirectURIs, client.Contacts = slices.Clone(client.RedirectURIs), slices.Clone(client.Contacts)
	return client, a.err
}

// origin returns where the metadata of an ID lies.
func (c *Clients) origin(id string) (string, error) {
	if len(id) > maxID {
		return "", fmt.Errorf("the ID has %d bytes, more than %d", len(id), maxID)
	}
	u, err := inet.ParseURL("https://" + id)
	if err != nil {
		return "", err
	}
	if u.Rest != "" || u.Origin.String() != "https://"+id {
		return "", errors.New("the ID is no domain in its one form: lower case, ASCII, without a final dot, path and the usual port")
	}
	if slices.Contains(c.plain, "http://"+id) {
		return "http://" + id, nil
	}
	if _, err := ParseDomain(u.Host.String()); err != nil {
		return "", err
	}
	return u.Origin.String(), nil
}

// read fetches what the client publishes.
func (c *Clients) read(ctx context.Context, id, origin string) (Client, error) {
	paths := []string{PathMetadata, PathManifest}
	if c.strict {
		paths = paths[:1]
	}
	var missing error
	for _, path := range paths {
		doc, err := c.fetch.Get(ctx, fetch.Request{URL: origin + path, Types: []string{"application/json"}})
		switch failure(err) {
		case nothing:
			missing = err
			continue
		case unusable:
			return Client{}, fmt.Errorf("%w: %w", ErrNoClient, err)
		case passing:
			return Client{}, err
		case none:
		}
		client, err := ParseClient(doc.Body, id, c.strict)
		if err != nil {
			return Client{}, fmt.Errorf("%w: %s: %w", ErrNoClient, doc.URL, err)
		}
		client.Source = doc.URL
		return client, nil
	}
	if c.strict {
		return Client{}, fmt.Errorf("%w: %w", ErrNoClient, missing)
	}
	return Client{ID: id}, nil
}

// severity is what a failed fetch says of a client.
type severity uint8

const (
	passing  severity = iota // nobody can tell now
	nothing                  // there is nothing at that address
	unusable                 // what is there cannot be used, or may not be reached
	none                     // it did not fail
)

func failure(err error) severity {
	if err == nil {
		return none
	}
	e, ok := errors.AsType[*fetch.Error](err)
	if !ok {
		return passing
	}
	switch e.Kind {
	case fetch.Status:
		if e.Status == http.StatusNotFound || e.Status == http.StatusGone {
			return nothing
		}
		if e.Status >= 500 || e.Status == http.StatusTooManyRequests || e.Status == http.StatusRequestTimeout {
			return passing
		}
		return unusable
	case fetch.WrongType: // many sites answer with their page, whatever they are asked for
		return nothing
	case fetch.BadAddress, fetch.Forbidden, fetch.TooLarge, fetch.Redirected:
		return unusable
	case fetch.Unresolved:
		if d, ok := errors.AsType[*net.DNSError](err); ok && d.IsNotFound && !d.IsTemporary && !d.IsTimeout {
			return unusable
		}
		return passing
	case fetch.Unreachable, fetch.TooSlow:
		return passing
	}
	return passing
}

// ParseClient reads the metadata of the client id.
func ParseClient(body []byte, id string, strict bool) (Client, error) {
	d := json.NewDecoder(bytes.NewReader(body))
	// Names of members are compared as they are, which decoding into a struct does not.
	var members map[string]json.RawMessage
	if err := d.Decode(&members); err != nil || members == nil || !utf8.Valid(body) {
		return Client{}, errors.New("it is no JSON object")
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return Client{}, errors.New("something follows the JSON object")
	}
	m := metadata{members: members, strict: strict}
	c := Client{
		ID:           m.text("client_id"),
		Name:         m.text("client_name", "name"),
		RedirectURIs: m.redirects(),
		URI:          m.address("client_uri"),
		LogoURI:      m.address("logo_uri"),
		PolicyURI:    m.address("policy_uri"),
		TermsURI:     m.address("tos_uri"),
		JWKSURI:      m.address("jwks_uri"),
		Contacts:     m.contacts(),
		Domain:       m.domain(),
	}
	switch {
	case c.ID != id:
		return Client{}, fmt.Errorf("it is the metadata of %.100q", c.ID)
	case m.err != nil:
		return Client{}, m.err
	case len(c.RedirectURIs) == 0:
		return Client{}, errors.New("redirect_uris has no address that could be used")
	case c.Name == "" && strict:
		return Client{}, errors.New("client_name is missing")
	}
	return c, nil
}

// metadata reads members one by one. In a strict one the first fault is kept; else
// what is wrong is as if it were not there.
type metadata struct {
	members map[string]json.RawMessage
	strict  bool
	err     error
}

func (m *metadata) wrong(name, why string) {
	if m.strict && m.err == nil {
		m.err = fmt.Errorf("%s %s", name, why)
	}
}

// member decodes the first of the names that is there into v. Only the first is of
// the standard.
func (m *metadata) member(v any, names ...string) bool {
	if m.strict {
		names = names[:1]
	}
	for _, name := range names {
		raw, ok := m.members[name]
		if !ok || string(raw) == "null" {
			continue
		}
		if err := json.Unmarshal(raw, v); err != nil {
			m.wrong(name, "is of another type")
			return false
		}
		return true
	}
	return false
}

// text is one line that can be shown.
func (m *metadata) text(names ...string) string {
	var text string
	if !m.member(&text, names...) {
		return ""
	}
	text = strings.TrimSpace(text)
	if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		m.wrong(names[0], "contains a character that cannot be shown")
		return ""
	}
	if runes := []rune(text); len(runes) > maxName {
		m.wrong(names[0], "is too long")
		return string(runes[:maxName])
	}
	return text
}

// address is an http or https address for people to open.
func (m *metadata) address(name string) string {
	var text string
	if !m.member(&text, name) {
		return ""
	}
	if _, err := inet.ParseURL(text); err != nil || len(text) > maxAddress {
		m.wrong(name, "is no web address")
		return ""
	}
	return text
}

func (m *metadata) redirects() []string {
	const name = "redirect_uris"
	var all, good []string
	if !m.member(&all, name) {
		return nil
	}
	if len(all) > maxRedirects {
		m.wrong(name, "has too many addresses")
		all = all[:maxRedirects]
	}
	for _, text := range all {
		u, err := inet.ParseURL(text)
		if err != nil || len(text) > maxAddress || u.Scheme != "https" && !onThisMachine(u.Host) {
			m.wrong(name, "has an address that is neither https nor on the person's own machine")
			continue
		}
		if !slices.Contains(good, text) {
			good = append(good, text)
		}
	}
	return good
}

// contacts is a list, or one text under the name that came before.
func (m *metadata) contacts() []string {
	var all, good []string
	if !m.member(&all, "contacts") {
		var one string
		if m.strict || !m.member(&one, "contact") {
			return nil
		}
		all = []string{one}
	}
	for _, text := range all {
		if len(good) < maxContacts && text != "" && len(text) <= maxName && !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
			good = append(good, text)
		}
	}
	return good
}

func (m *metadata) domain() string {
	var text string
	if !m.member(&text, "ddisa_domain") {
		return ""
	}
	d, err := ParseDomain(text)
	if err != nil {
		m.wrong("ddisa_domain", "is no domain")
	}
	return d.String()
}
