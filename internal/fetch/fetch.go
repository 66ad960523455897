// Package fetch gets documents from addresses that strangers name: the metadata of
// a client that calls itself by its domain, the provider that a record in the DNS
// leads to, the answer of a resolver.
//
// Whoever names the address also wants to choose what this machine talks to, so each
// step that fails ends it:
//
//  1. The address is read into scheme, host, port and path, and what is sent is made
//     from these. https on port 443, to a host with a name, is what a stranger may
//     name; anything else has to stand in Config.Origins.
//  2. The name is resolved once. All its addresses must be public (inet.Classify), and
//     none this machine's own. The connection goes to one that was checked, and the
//     name is not looked at again, not for a redirect either.
//  3. A redirect is followed within the same origin only, and not for long.
//  4. The status must be 200, the media type one that was asked for, without an
//     encoding; headers, body and time are limited.
//
// Nothing of this machine goes along: no cookies, no credentials, no address that led
// here, and no proxy that the environment names, since behind one no address can be
// checked. It makes GET requests only, keeps no connection and no document, and
// understands nothing of what it gets.
package fetch

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"vogt/internal/inet"
)

// Config says what a Client may reach. The zero value reaches public hosts by https
// on port 443.
type Config struct {
	// Origins are scheme, host and port that whoever runs the program has written
	// down, such as "https://dns.quad9.net:5053". They may have any port, be an
	// address, and lie in this machine's or a private network; http is for those
	// that lie on this machine alone.
	Origins []string
	// Private lets every host lie in a private network. It is for a person's own
	// client, which is where it is, and never for what answers strangers.
	Private bool
	// Roots are the authorities of TLS; nil for the system's.
	Roots  *x509.CertPool
	Limits Limits

	Resolve func(ctx context.Context, name string) ([]netip.Addr, error)     // inet.SystemResolve when nil
	Dial    func(ctx context.Context, addr netip.AddrPort) (net.Conn, error) // inet.SystemDial when nil
	Own     func() ([]netip.Addr, error)                                     // inet.SystemAddresses when nil
}

// Limits bound one document. A field that is zero has its default.
type Limits struct {
	Time      time.Duration // for all of it; 10 s
	Dial      time.Duration // for one address; 3 s
	Header    int64         // bytes; 16 KiB
	Body      int64         // bytes; 64 KiB
	Redirects int           // 3; less than 0 for none
}

func (l Limits) withDefaults() Limits {
	for _, d := range []struct {
		value  *time.Duration
		preset time.Duration
	}{{&l.Time, 10 * time.Second}, {&l.Dial, 3 * time.Second}} {
		if *d.value == 0 {
			*d.value = d.preset
		}
	}
	if l.Header == 0 {
		l.Header = 16 << 10
	}
	if l.Body == 0 {
		l.Body = 64 << 10
	}
	if l.Redirects == 0 {
		l.Redirects = 3
	}
	return l
}

// maxAddresses is how many addresses of a host are tried.
const maxAddresses = 4

// userAgent is what servers are told of who asks.
const userAgent = "vogt"

// Client gets documents. It may be used by several goroutines.
type Client struct {
	config  Config
	origins []inet.Origin
}

// New returns a client, or what is wrong with one of the origins.
func New(config Config) (*Client, error) {
	c := &Client{config: config}
	c.config.Limits = config.Limits.withDefaults()
	if c.config.Resolve == nil {
		c.config.Resolve = inet.SystemResolve
	}
	if c.config.Dial == nil {
		c.config.Dial = inet.SystemDial
	}
	if c.config.Own == nil {
		c.config.Own = inet.SystemAddresses
	}
	for _, text := range config.Origins {
		o, err := inet.ParseOrigin(text)
		if err != nil {
			return nil, err
		}
		c.origins = append(c.origins, o)
	}
	return c, nil
}

// Request is what to get.
type Request struct {
	URL   string
	Types []string // media types that are accepted, in lower case; at least one
}

// Document is what was got.
type Document struct {
	URL  string // where it lay in the end
	Type string // media type, without parameters
	Body []byte
}

// Get gets a document. Errors are of type *Error.
func (c *Client) Get(ctx context.Context, r Request) (Document, error) {
	to, err := inet.ParseURL(r.URL)
	if err != nil {
		return Document{}, &Error{Kind: BadAddress, URL: r.URL, Err: err}
	}
	if err := c.permitted(to.Origin); err != nil {
		return Document{}, &Error{Kind: Forbidden, URL: to.String(), Err: err}
	}
	ctx, cancel := context.WithTimeout(ctx, c.config.Limits.Time)
	defer cancel()
	addrs, err := c.resolve(ctx, to.Origin)
	if err != nil {
		return Document{}, inTime(ctx, to, err)
	}
	transport := c.transport(addrs)
	defer transport.CloseIdleConnections()
	for hops := 0; ; hops++ {
		answer, err := send(ctx, transport, to, r.Types)
		if err != nil {
			return Document{}, inTime(ctx, to, err)
		}
		if !redirects(answer.StatusCode) {
			doc, err := c.read(answer, to, r.Types)
			return doc, inTime(ctx, to, err)
		}
		next, err := follow(answer, to)
		if err == nil && hops >= c.config.Limits.Redirects {
			err = errors.New("there are too many of them")
		}
		answer.Body.Close()
		if err != nil {
			return Document{}, &Error{Kind: Redirected, URL: to.String(), Err: err}
		}
		to = next
	}
}

// permitted says why an origin may not be named, or nil.
func (c *Client) permitted(o inet.Origin) error {
	switch {
	case slices.Contains(c.origins, o):
		return nil
	case o.Scheme != "https":
		return errors.New("only https is fetched")
	case o.Port != 443:
		return fmt.Errorf("only port 443 is fetched from, not %d", o.Port)
	case o.Host.Addr().IsValid():
		return errors.New("it names an address instead of a host")
	}
	return nil
}

// resolve returns the addresses to connect to, all of which were checked.
func (c *Client) resolve(ctx context.Context, o inet.Origin) ([]netip.AddrPort, error) {
	addrs := []netip.Addr{o.Host.Addr()}
	if !addrs[0].IsValid() {
		var err error
		if addrs, err = c.config.Resolve(ctx, o.Host.Name()); err != nil {
			return nil, &Error{Kind: Unresolved, URL: o.String(), Err: err}
		}
	}
	if len(addrs) == 0 {
		return nil, &Error{Kind: Unresolved, URL: o.String(), Err: errors.New("the name has no address")}
	}
	own, err := c.config.Own()
	if err != nil {
		return nil, &Error{Kind: Forbidden, URL: o.String(), Err: fmt.Errorf("this machine's own addresses are not known: %w", err)}
	}
	var to []netip.AddrPort
	for _, addr := range addrs {
		class := inet.Classify(addr)
		if class == inet.Public && slices.Contains(own, addr) {
			class = inet.Own
		}
		if !c.reaches(o, class) {
			return nil, &Error{Kind: Forbidden, URL: o.String(), Class: class, Err: fmt.Errorf("it leads to %s, a %s address", addr, class)}
		}
		to = append(to, netip.AddrPortFrom(addr, o.Port))
	}
	return to[:min(len(to), maxAddresses)], nil
}

// reaches reports whether an origin may lie at an address of the class.
func (c *Client) reaches(o inet.Origin, class inet.Class) bool {
	named := slices.Contains(c.origins, o)
	switch class {
	case inet.Public:
		return o.Scheme == "https"
	case inet.Loopback:
		return named
	case inet.Own:
		return named && o.Scheme == "https"
	case inet.Private, inet.Shared, inet.UniqueLocal:
		return (named || c.config.Private) && o.Scheme == "https"
	case inet.Unknown, inet.Benchmark, inet.Documentation, inet.LinkLocal, inet.Metadata, inet.Resolver,
		inet.Multicast, inet.Unspecified, inet.Transition, inet.Mapped, inet.Reserved:
		return false
	}
	return false
}

// transport connects to the addresses and nowhere else, whatever it is asked for.
func (c *Client) transport(addrs []netip.AddrPort) *http.Transport {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	return &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var failed error
			for _, addr := range addrs {
				conn, err := c.dial(ctx, addr)
				if err == nil {
					return conn, nil
				}
				failed = err
			}
			return nil, failed
		},
		TLSClientConfig:        &tls.Config{RootCAs: c.config.Roots, MinVersion: tls.VersionTLS12},
		MaxResponseHeaderBytes: c.config.Limits.Header,
		Protocols:              &protocols,
		DisableCompression:     true, // a small body could grow without bounds
		DisableKeepAlives:      true,
	}
}

func (c *Client) dial(ctx context.Context, addr netip.AddrPort) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, c.config.Limits.Dial)
	defer cancel()
	return c.config.Dial(ctx, addr)
}

// send makes one request. It follows nothing.
func send(ctx context.Context, transport *http.Transport, to inet.URL, types []string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, to.String(), nil)
	if err != nil {
		return nil, &Error{Kind: BadAddress, URL: to.String(), Err: err}
	}
	request.Header.Set("Accept", strings.Join(types, ", "))
	request.Header.Set("User-Agent", userAgent)
	answer, err := transport.RoundTrip(request)
	if err != nil {
		return nil, &Error{Kind: Unreachable, URL: to.String(), Err: err}
	}
	return answer, nil
}

func redirects(status int) bool {
	switch status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	}
	return false
}

// follow returns where a redirect leads, if that is in the same origin.
func follow(answer *http.Response, from inet.URL) (inet.URL, error) {
	location := answer.Header.Get("Location")
	switch {
	case location == "" || len(answer.Header.Values("Location")) != 1:
		return inet.URL{}, errors.New("it does not say where to")
	case strings.Contains(location, `\`): // some readers take it for a slash
		return inet.URL{}, errors.New("it leads to no address")
	}
	base, err := url.Parse(from.String())
	if err != nil {
		return inet.URL{}, err
	}
	ref, err := url.Parse(location)
	if err != nil {
		return inet.URL{}, errors.New("it leads to no address")
	}
	next, err := inet.ParseURL(base.ResolveReference(ref).String())
	if err != nil {
		return inet.URL{}, err
	}
	if next.Origin != from.Origin {
		return inet.URL{}, fmt.Errorf("it leads to another place, %s", next.Origin)
	}
	return next, nil
}

// read checks an answer and reads its body, which it closes.
func (c *Client) read(answer *http.Response, from inet.URL, types []string) (Document, error) {
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return Document{}, &Error{Kind: Status, URL: from.String(), Status: answer.StatusCode, Err: fmt.Errorf("it answers with status %d", answer.StatusCode)}
	}
	mediaType, err := typeOf(answer.Header, types)
	if err != nil {
		return Document{}, &Error{Kind: WrongType, URL: from.String(), Err: err}
	}
	most := c.config.Limits.Body
	if answer.ContentLength > most {
		return Document{}, &Error{Kind: TooLarge, URL: from.String(), Err: fmt.Errorf("it has %d bytes, more than %d", answer.ContentLength, most)}
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, most+1))
	switch {
	case err != nil:
		return Document{}, &Error{Kind: Unreachable, URL: from.String(), Err: err}
	case int64(len(body)) > most:
		return Document{}, &Error{Kind: TooLarge, URL: from.String(), Err: fmt.Errorf("it has more than %d bytes", most)}
	}
	return Document{URL: from.String(), Type: mediaType, Body: body}, nil
}

// typeOf returns the media type of an answer, if it is one of types.
func typeOf(header http.Header, types []string) (string, error) {
	if encoding := header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return "", fmt.Errorf("it is encoded as %.40q, which was not asked for", encoding)
	}
	mediaType, params, err := mime.ParseMediaType(header.Get("Content-Type"))
	if err != nil || len(header.Values("Content-Type")) != 1 {
		return "", errors.New("it does not say of which type it is")
	}
	if !slices.Contains(types, mediaType) {
		return "", fmt.Errorf("it is %.100q, not %s", mediaType, strings.Join(types, " or "))
	}
	if charset := params["charset"]; charset != "" && !strings.EqualFold(charset, "utf-8") && !strings.EqualFold(charset, "us-ascii") {
		return "", fmt.Errorf("it is written in %.40q, not in UTF-8", charset)
	}
	return mediaType, nil
}

// inTime says that an error is the end of the time, if it is.
func inTime(ctx context.Context, at inet.URL, err error) error {
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return &Error{Kind: TooSlow, URL: at.String(), Err: err}
	}
	return err
}
