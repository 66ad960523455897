package terminal

import (
	"strings"
	"unicode/utf8"
)

// StripEscapes returns s without what would command a terminal: escape
// sequences (ECMA-48: CSI, OSC, DCS, SOS, PM, APC, in their 7-bit and 8-bit
// forms) and control characters other than line feed and tab. A carriage return
// before a line feed goes too.
//
// It is for output of other programs that is shown in several lines. A sequence
// without an end loses only its first characters: its text would otherwise be
// hidden.
func StripEscapes(s string) string {
	if strings.IndexFunc(s, isControl) < 0 && utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for s != "" {
		r, size := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && size == 1 && s[0] < 0xA0: // an 8-bit control as a bare byte
			s = s[sequence(rune(s[0]), s[1:])+1:]
		case r == utf8.RuneError && size == 1:
			b.WriteRune(utf8.RuneError)
			s = s[1:]
		case isControl(r):
			s = s[size+sequence(r, s[size:]):]
		default:
			b.WriteString(s[:size])
			s = s[size:]
		}
	}
	return b.String()
}

func isControl(r rune) bool {
	return r < ' ' && r != '\n' && r != '\t' || 0x7F <= r && r <= 0x9F
}

const escapeCharacter = 0x1B

// sequence returns how many bytes of rest belong to the control r before it.
func sequence(r rune, rest string) int {
	if r == escapeCharacter {
		// Intermediate bytes, then a final one; 0x40 to 0x5F stand for the
		// 8-bit controls.
		n := span(rest, 0x20, 0x2F)
		switch {
		case n == len(rest) || rest[n] < 0x30 || rest[n] > 0x7E:
			return 0
		case n == 0 && 0x40 <= rest[0] && rest[0] <= 0x5F:
			return 1 + sequence(rune(rest[0])+0x40, rest[1:])
		default:
			return n + 1
		}
	}
	switch r {
	case 0x9B: // CSI: parameters, intermediates, a final byte
		n := span(rest, 0x30, 0x3F)
		n += span(rest[n:], 0x20, 0x2F)
		if n < len(rest) && 0x40 <= rest[n] && rest[n] <= 0x7E {
			return n + 1
		}
	case 0x90, 0x98, 0x9D, 0x9E, 0x9F: // DCS, SOS, OSC, PM, APC: a string, then its end
		return stringEnd(rest)
	}
	return 0
}

// stringEnd returns how long a control string is with its end, which is BEL or
// ST in one of its forms, or 0 if another control character comes first.
func stringEnd(s string) int {
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 {
			r = rune(s[i])
		}
		switch {
		case r == 0x07 || r == 0x9C:
			return i + size
		case r == escapeCharacter && strings.HasPrefix(s[i+1:], `\`):
			return i + 2
		case r < ' ' || isControl(r):
			return 0
		}
		i += size
	}
	return 0
}

// span returns how many bytes at the begin of s lie between low and high.
func span(s string, low, high byte) int {
	n := 0
	for n < len(s) && low <= s[n] && s[n] <= high {
		n++
	}
	return n
}
