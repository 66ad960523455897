package inet

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// Host is a DNS name or an IP address in the one form that is compared, shown,
// resolved and dialled: a name in lower-case ASCII without a final dot, or an
// address without a zone. Two Hosts are the same host exactly if they are equal.
// The zero value is no host.
type Host struct {
	name string
	addr netip.Addr
}

// String returns the name, or the address without brackets.
func (h Host) String() string {
	if h.addr.IsValid() {
		return h.addr.String()
	}
	return h.name
}

// Name returns the name of a host that is no address, else "".
func (h Host) Name() string { return h.name }

// Addr returns the address of a host that is no name, else the zero value.
func (h Host) Addr() netip.Addr { return h.addr }

// Bracketed returns the host as it stands before ":port".
func (h Host) Bracketed() string {
	if h.addr.Is6() {
		return "[" + h.String() + "]"
	}
	return h.String()
}

const (
	maxName  = 253  // bytes of a name in the DNS, RFC 1035 without the root's dot
	maxLabel = 63   // bytes between two dots
	maxInput = 1024 // bytes of a name before anything is mapped
)

// ParseHost reads a name or an address.
//
// Names in Unicode become punycode as in UTS 46; after that nothing but
// [a-z0-9.-] is accepted, so that no two programs can disagree about where a
// name ends. The underscore is refused with the rest: it belongs to records that
// nobody connects to, and public certificates may not contain it. A name whose
// last label looks like a number is an IPv4 address to some programs (127.1,
// 0x7f.1, 2130706433, 0177.0.0.1); only four decimal numbers without leading
// zeros are accepted, and an address is never the result of mapping Unicode.
func ParseHost(text string) (Host, error) {
	switch {
	case text == "":
		return Host{}, errors.New("the host is empty")
	case len(text) > maxInput:
		return Host{}, fmt.Errorf("the host has %d bytes; a name has at most %d", len(text), maxName)
	case strings.Contains(text, ":"):
		addr, err := netip.ParseAddr(text)
		if err != nil {
			return Host{}, errors.New("the host has a colon and is no IPv6 address")
		}
		return FromAddr(addr)
	}
	name, mapped, err := asciiName(text)
	if err != nil {
		return Host{}, err
	}
	name = strings.TrimSuffix(name, ".")
	if numberAtEnd(name) {
		addr, err := netip.ParseAddr(name)
		if err != nil || mapped {
			return Host{}, errors.New("the host is a number, or an IPv4 address in an unusual form; write four decimal numbers")
		}
		return FromAddr(addr)
	}
	if err := checkName(name); err != nil {
		return Host{}, err
	}
	return Host{name: name}, nil
}

// FromAddr returns the host of an address that a client or a rule names.
func FromAddr(addr netip.Addr) (Host, error) {
	switch {
	case !addr.IsValid():
		return Host{}, errors.New("the address is not valid")
	case addr.Zone() != "":
		return Host{}, errors.New("an address with a zone belongs to one machine's network card")
	case addr.Is4In6():
		return Host{}, errors.New("an IPv4 address is written as IPv4")
	}
	return Host{addr: addr}, nil
}

// asciiName lowers the case and maps Unicode to punycode. It tells whether
// anything but the case was changed.
func asciiName(text string) (name string, mapped bool, err error) {
	text = strings.ToLower(text)
	ascii, punycode := true, false
	for i := range len(text) {
		ascii = ascii && text[i] < utf8.RuneSelf
	}
	for label := range strings.SplitSeq(text, ".") {
		punycode = punycode || strings.HasPrefix(label, "xn--")
	}
	switch {
	case ascii && !punycode:
		return text, false, nil
	case !utf8.ValidString(text):
		return "", false, errors.New("the host is not valid UTF-8")
	}
	name, err = idna.Lookup.ToASCII(text)
	switch {
	case err != nil:
		return "", false, errors.New("the host is no internationalised domain name")
	case punycode && name != text:
		return "", false, errors.New("the host has a label in punycode that is not in its one valid form, or beside others in Unicode")
	}
	return name, !ascii, nil
}

// numberAtEnd follows the URL standard of WHATWG: a host that ends in a number
// is an IPv4 address, or invalid.
func numberAtEnd(name string) bool {
	last := name[strings.LastIndexByte(name, '.')+1:]
	if last == "" {
		return false
	}
	if strings.HasPrefix(last, "0x") {
		return strings.Trim(last[2:], "0123456789abcdef") == ""
	}
	return strings.Trim(last, "0123456789") == ""
}

func checkName(name string) error {
	if len(name) > maxName {
		return fmt.Errorf("the host has %d bytes; a name has at most %d", len(name), maxName)
	}
	for label := range strings.SplitSeq(name, ".") {
		switch {
		case label == "":
			return errors.New("the host has an empty label")
		case len(label) > maxLabel:
			return fmt.Errorf("a label of the host has %d bytes; it may have %d", len(label), maxLabel)
		case label[0] == '-' || label[len(label)-1] == '-':
			return errors.New("a label of the host begins or ends with a hyphen")
		}
		for i := range len(label) {
			if c := label[i]; c != '-' && (c < 'a' || c > 'z') && (c < '0' || c > '9') {
				return fmt.Errorf("the host contains the byte %#02x; a name has letters, digits, hyphens and dots", c)
			}
		}
	}
	return nil
}

// ParseAuthority reads "host:port" or "[address]:port". Without a port it is
// defaultPort, unless that is 0.
func ParseAuthority(text string, defaultPort uint16) (Host, uint16, error) {
	host, port := text, ""
	if rest, ok := strings.CutPrefix(text, "["); ok {
		var closed bool
		host, port, closed = strings.Cut(rest, "]")
		if !closed || !strings.Contains(host, ":") || port != "" && port[0] != ':' {
			return Host{}, 0, errors.New("the brackets do not hold an IPv6 address")
		}
	} else if colon := strings.IndexByte(text, ':'); colon >= 0 {
		host, port = text[:colon], text[colon:]
	}
	h, err := ParseHost(host)
	if err != nil {
		return Host{}, 0, err
	}
	if port == "" {
		if defaultPort == 0 {
			return Host{}, 0, errors.New("the port is missing")
		}
		return h, defaultPort, nil
	}
	number, err := ParsePort(port[1:])
	return h, number, err
}

// ParsePort accepts one spelling of each number from 1 to 65535.
func ParsePort(text string) (uint16, error) {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n == 0 || text[0] == '0' || text[0] == '+' {
		return 0, errors.New("the port is no number from 1 to 65535")
	}
	return uint16(n), nil
}
