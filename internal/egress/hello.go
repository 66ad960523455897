package egress

import (
	"encoding/binary"
	"errors"
	"io"
	"slices"

	"golang.org/x/crypto/cryptobyte"
)

// hello is what a TLS ClientHello shows before anything is encrypted.
type hello struct {
	name string // of the server; empty if the client names none
	ech  bool   // an encrypted ClientHello lies inside, or random bytes do
}

const (
	maxHello      = 16 << 10 // bytes of the message; today's have up to about 2000
	maxRecords    = 64       // over which it may be spread
	maxExtensions = 128

	recordHandshake  = 22
	typeClientHello  = 1
	extServerName    = 0
	extEncryptedName = 0xfe0d
)

var (
	errNotTLS    = errors.New("the bytes are no TLS ClientHello")
	errLongTLS   = errors.New("the ClientHello is too long or in too many pieces")
	errBrokenTLS = errors.New("the ClientHello is malformed or ambiguous")
)

// readHello reads a ClientHello and returns it with the bytes that it came in,
// which are all that was read. The message may be spread over records, and its
// records over any number of packets; it must end where a record ends, since
// nothing may follow it before the server's answer.
func readHello(r io.Reader) (hello, []byte, error) {
	raw := make([]byte, 0, 2048)
	var message []byte
	for range maxRecords {
		start := len(raw)
		raw = append(raw, make([]byte, 5)...)
		if _, err := io.ReadFull(r, raw[start:start+1]); err != nil {
			return hello{}, raw[:start], err
		}
		if raw[start] != recordHandshake {
			return hello{}, raw[:start+1], errNotTLS
		}
		if _, err := io.ReadFull(r, raw[start+1:]); err != nil {
			return hello{}, raw[:start+1], err
		}
		length := int(binary.BigEndian.Uint16(raw[start+3:]))
		switch {
		case raw[start+1] != 3 || raw[start+2] > 4:
			return hello{}, raw, errNotTLS
		case length == 0 || length > 16<<10:
			return hello{}, raw, errBrokenTLS
		case len(message)+length > maxHello:
			return hello{}, raw, errLongTLS
		}
		start = len(raw)
		raw = append(raw, make([]byte, length)...)
		if _, err := io.ReadFull(r, raw[start:]); err != nil {
			return hello{}, raw, err
		}
		message = append(message, raw[start:]...)
		if message[0] != typeClientHello {
			return hello{}, raw, errNotTLS
		}
		if len(message) < 4 {
			continue
		}
		want := 4 + (int(message[1])<<16 | int(message[2])<<8 | int(message[3]))
		switch {
		case want > maxHello:
			return hello{}, raw, errLongTLS
		case len(message) > want:
			return hello{}, raw, errBrokenTLS
		case len(message) == want:
			h, err := parseHello(message[4:])
			return h, raw, err
		}
	}
	return hello{}, raw, errLongTLS
}

// parseHello reads the body of a ClientHello, RFC 8446 section 4.1.2. Whatever
// two servers could read differently is an error.
func parseHello(body []byte) (hello, error) {
	var (
		h                              hello
		session, suites, methods, exts cryptobyte.String
	)
	s := cryptobyte.String(body)
	if !s.Skip(2+32) || !s.ReadUint8LengthPrefixed(&session) || len(session) > 32 ||
		!s.ReadUint16LengthPrefixed(&suites) || len(suites) == 0 || len(suites)%2 != 0 ||
		!s.ReadUint8LengthPrefixed(&methods) || len(methods) == 0 {
		return hello{}, errBrokenTLS
	}
	if s.Empty() {
		return h, nil // older than extensions
	}
	if !s.ReadUint16LengthPrefixed(&exts) || !s.Empty() {
		return hello{}, errBrokenTLS
	}
	var seen []uint16
	for !exts.Empty() {
		var kind uint16
		var data cryptobyte.String
		if !exts.ReadUint16(&kind) || !exts.ReadUint16LengthPrefixed(&data) || len(seen) == maxExtensions || slices.Contains(seen, kind) {
			return hello{}, errBrokenTLS
		}
		seen = append(seen, kind)
		switch kind {
		case extServerName:
			var ok bool
			if h.name, ok = serverName(data); !ok {
				return hello{}, errBrokenTLS
			}
		case extEncryptedName:
			h.ech = true
		}
	}
	return h, nil
}

// serverName reads the one host name of the extension, RFC 6066 section 3.
func serverName(data cryptobyte.String) (string, bool) {
	var list, name cryptobyte.String
	var kind uint8
	ok := data.ReadUint16LengthPrefixed(&list) && data.Empty() &&
		list.ReadUint8(&kind) && kind == 0 &&
		list.ReadUint16LengthPrefixed(&name) && list.Empty() && len(name) > 0
	return string(name), ok
}
