package inet

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// MaxURL is the longest address that is read, in bytes.
const MaxURL = 2000

// Origin is scheme, host and port. Two are the same exactly if they are equal.
type Origin struct {
	Scheme string // "https" or "http"
	Host   Host
	Port   uint16
}

// String returns the origin as it stands before a path; the port only where it is
// not the scheme's own.
func (o Origin) String() string {
	if o.Port == portOf(o.Scheme) {
		return o.Scheme + "://" + o.Host.Bracketed()
	}
	return fmt.Sprintf("%s://%s:%d", o.Scheme, o.Host.Bracketed(), o.Port)
}

func portOf(scheme string) uint16 {
	if scheme == "http" {
		return 80
	}
	return 443
}

// ParseOrigin reads an origin that stands in a configuration, such as
// "https://sp.example.com:8443".
func ParseOrigin(text string) (Origin, error) {
	p, err := ParseURL(text)
	switch {
	case err != nil:
		return Origin{}, fmt.Errorf("%.200q: %w", text, err)
	case p.Rest != "" && p.Rest != "/":
		return Origin{}, fmt.Errorf("%.200q is more than scheme, host and port", text)
	}
	return p.Origin, nil
}

// URL is a web address that has been read. What is sent is made from it, so that no
// second reader of the text can mean another host.
type URL struct {
	Origin
	Rest string // path and query
}

func (u URL) String() string { return u.Origin.String() + u.Rest }

// ParseURL reads a web address: http or https, without user, fragment, or anything in it
// that two programs could read differently.
func ParseURL(text string) (URL, error) {
	if len(text) > MaxURL {
		return URL{}, fmt.Errorf("the address has %d bytes, more than %d", len(text), MaxURL)
	}
	for i := range len(text) {
		if c := text[i]; c <= ' ' || c >= 0x7f || c == '\\' {
			return URL{}, fmt.Errorf("the address contains the byte %#02x; it is written in printable ASCII, without spaces and backslashes", c)
		}
	}
	u, err := url.Parse(text)
	if err != nil {
		return URL{}, errors.New("this is no address")
	}
	switch {
	case u.Scheme != "https" && u.Scheme != "http":
		return URL{}, errors.New("the address does not begin with https://")
	case u.Opaque != "" || u.Host == "":
		return URL{}, errors.New("the address has no host")
	case u.User != nil || strings.Contains(u.Host, "@"):
		return URL{}, errors.New("the address names a user")
	case strings.Contains(text, "#"):
		return URL{}, errors.New("the address has a fragment")
	}
	_, authority, _ := strings.Cut(text, "://")
	if end := strings.IndexAny(authority, "/?"); end >= 0 {
		authority = authority[:end]
	}
	if authority != u.Host {
		return URL{}, errors.New("the host is written in an unusual way")
	}
	host, port, err := ParseAuthority(authority, portOf(u.Scheme))
	if err != nil {
		return URL{}, err
	}
	rest := u.EscapedPath()
	if u.RawQuery != "" || u.ForceQuery {
		rest += "?" + u.RawQuery
	}
	return URL{Origin: Origin{Scheme: u.Scheme, Host: host, Port: port}, Rest: rest}, nil
}
