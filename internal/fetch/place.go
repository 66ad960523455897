package fetch

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"vogt/internal/inet"
)

// maxURL is the longest address that is read, in bytes.
const maxURL = 2000

// origin is scheme, host and port. Two are the same exactly if they are equal.
type origin struct {
	scheme string // "https" or "http"
	host   inet.Host
	port   uint16
}

// String returns the origin as it stands before a path; the port only where it is
// not the scheme's own.
func (o origin) String() string {
	if o.port == portOf(o.scheme) {
		return o.scheme + "://" + o.host.Bracketed()
	}
	return fmt.Sprintf("%s://%s:%d", o.scheme, o.host.Bracketed(), o.port)
}

func portOf(scheme string) uint16 {
	if scheme == "http" {
		return 80
	}
	return 443
}

// parseOrigin reads an origin that stands in a configuration, such as
// "https://sp.example.com:8443".
func parseOrigin(text string) (origin, error) {
	p, err := parse(text)
	switch {
	case err != nil:
		return origin{}, fmt.Errorf("%.200q: %w", text, err)
	case p.rest != "" && p.rest != "/":
		return origin{}, fmt.Errorf("%.200q is more than scheme, host and port", text)
	}
	return p.origin, nil
}

// place is an address that has been read. What is sent is made from it, so that no
// second reader of the text can mean another host.
type place struct {
	origin
	rest string // path and query
}

func (p place) String() string { return p.origin.String() + p.rest }

// parse reads an address: http or https, without user, fragment, or anything in it
// that two programs could read differently.
func parse(text string) (place, error) {
	if len(text) > maxURL {
		return place{}, fmt.Errorf("the address has %d bytes, more than %d", len(text), maxURL)
	}
	for i := range len(text) {
		if c := text[i]; c <= ' ' || c >= 0x7f || c == '\\' {
			return place{}, fmt.Errorf("the address contains the byte %#02x; it is written in printable ASCII, without spaces and backslashes", c)
		}
	}
	u, err := url.Parse(text)
	if err != nil {
		return place{}, errors.New("this is no address")
	}
	switch {
	case u.Scheme != "https" && u.Scheme != "http":
		return place{}, errors.New("the address does not begin with https://")
	case u.Opaque != "" || u.Host == "":
		return place{}, errors.New("the address has no host")
	case u.User != nil || strings.Contains(u.Host, "@"):
		return place{}, errors.New("the address names a user")
	case strings.Contains(text, "#"):
		return place{}, errors.New("the address has a fragment")
	}
	_, authority, _ := strings.Cut(text, "://")
	if end := strings.IndexAny(authority, "/?"); end >= 0 {
		authority = authority[:end]
	}
	if authority != u.Host {
		return place{}, errors.New("the host is written in an unusual way")
	}
	host, port, err := inet.ParseAuthority(authority, portOf(u.Scheme))
	if err != nil {
		return place{}, err
	}
	rest := u.EscapedPath()
	if u.RawQuery != "" || u.ForceQuery {
		rest += "?" + u.RawQuery
	}
	return place{origin: origin{scheme: u.Scheme, host: host, port: port}, rest: rest}, nil
}
