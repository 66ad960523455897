package client

import "fmt"

// Names that the authority chooses go into addresses, file names, and lines
// that people and agents read and run. So only their exact form is taken.

// isUUID reports whether s is a UUID in its text form (RFC 9562, section 4).
func isUUID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i, c := range []byte(s) {
		switch i {
		case 8, 13, 18, 23:
			if c != '-' {
				return false
			}
		default:
			if !isHex(c) {
				return false
			}
		}
	}
	return true
}

// isUse reports whether s can be the name of an execution: 32 hex digits.
func isUse(s string) bool {
	if len(s) != 32 {
		return false
	}
	for _, c := range []byte(s) {
		if !isHex(c) {
			return false
		}
	}
	return true
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

// checkID refuses an answer whose id is not a UUID.
func (c *Client) checkID(what, id string) error {
	if isUUID(id) {
		return nil
	}
	return &Error{Kind: Malformed, Where: c.wire.base, Detail: fmt.Sprintf("the id of a %s is not a UUID but %.80q", what, id)}
}
