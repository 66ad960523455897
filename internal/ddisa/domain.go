package ddisa

import (
	"errors"
	"fmt"
	"strings"

	"vogt/internal/inet"
)

// Domain is a mail domain in lower-case ASCII, without a final dot. The zero value is
// none.
type Domain struct{ name string }

func (d Domain) String() string { return d.name }

// maxOwner is the longest domain that still has room for "_ddisa." before it.
const maxOwner = 253 - len("_ddisa.")

// RecordName is where the domain's record lies in the DNS.
func (d Domain) RecordName() string { return "_ddisa." + d.name }

// ParseDomain reads a domain. Unicode becomes punycode (UTS 46); an address is none,
// nor is a name of one label, which only the machine's own network could know.
func ParseDomain(text string) (Domain, error) {
	h, err := inet.ParseHost(text)
	switch {
	case err != nil:
		return Domain{}, fmt.Errorf("%.100q is no domain: %w", text, err)
	case h.Addr().IsValid():
		return Domain{}, fmt.Errorf("%.100q is an address, not a domain", text)
	case !strings.Contains(h.Name(), "."):
		return Domain{}, fmt.Errorf("%.100q has one label only, so nobody can have a record for it", text)
	case len(h.Name()) > maxOwner:
		return Domain{}, fmt.Errorf("%.100q is too long to have a record", text)
	}
	return Domain{name: h.Name()}, nil
}

// DomainOf returns the domain of an e-mail address: what stands after its one @.
func DomainOf(email string) (Domain, error) {
	local, domain, _ := strings.Cut(email, "@")
	if local == "" || domain == "" || strings.Contains(domain, "@") {
		return Domain{}, errors.New("this is no e-mail address: it needs one @ with something on both sides")
	}
	return ParseDomain(domain)
}
