package detail

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Resource is one link of a resource chain. A nil or empty selector means any.
type Resource struct {
	Name     string            `json:"resource"`
	Selector map[string]string `json:"selector,omitempty"`
}

// Wire is an authorization detail of type "openape_cli" as clients send it.
// What a client writes here is a claim: it is kept, returned and put into
// tokens, so that the client's own check works, and never decides anything.
type Wire struct {
	Type        string       `json:"type"`
	CLI         string       `json:"cli_id,omitempty"`
	Operation   string       `json:"operation_id,omitempty"`
	Chain       []Resource   `json:"resource_chain,omitempty"`
	Action      string       `json:"action"`
	Permission  string       `json:"permission,omitempty"`
	Display     string       `json:"display,omitempty"`
	Risk        string       `json:"risk,omitempty"`
	Constraints *Constraints `json:"constraints,omitempty"`
	Approval    string       `json:"approval,omitempty"`
	Reason      string       `json:"reason,omitempty"`
	GrantID     string       `json:"grant_id,omitempty"`
	Locations   []string     `json:"locations,omitempty"`
}

// Constraints narrow a wire detail further.
type Constraints struct {
	ExactCommand bool `json:"exact_command,omitempty"`
}

// The types of wire details.
const (
	WireCLI   = "openape_cli"
	WireGrant = "openape_grant"
)

// CanonicalPermission is the permission string that d stands for: computed for
// a CLI detail, the bare action for any other type.
func (d Wire) CanonicalPermission() string {
	if d.Type != WireCLI {
		return d.Action
	}
	return Permission(d.CLI, d.Chain, d.Action)
}

// Validate reports the first thing that makes d unusable on the wire.
func (d Wire) Validate() error {
	switch d.Type {
	case WireGrant:
		if d.Action == "" {
			return fmt.Errorf("authorization detail of type %s: action is missing", d.Type)
		}
		return nil
	case WireCLI:
	default:
		return fmt.Errorf("authorization detail of type %q: want %s or %s", d.Type, WireCLI, WireGrant)
	}
	for _, f := range []struct{ name, value string }{
		{"cli_id", d.CLI}, {"operation_id", d.Operation}, {"action", d.Action},
		{"permission", d.Permission}, {"display", d.Display}, {"risk", d.Risk},
	} {
		if f.value == "" {
			return fmt.Errorf("authorization detail: %s is missing", f.name)
		}
	}
	if _, err := ParseRisk(d.Risk); err != nil {
		return fmt.Errorf("authorization detail: %w", err)
	}
	if len(d.Chain) == 0 {
		return fmt.Errorf("authorization detail: resource_chain is empty")
	}
	for i, r := range d.Chain {
		if r.Name == "" {
			return fmt.Errorf("authorization detail: resource_chain[%d] has no resource", i)
		}
		for k, v := range r.Selector {
			if k == "" || v == "" {
				return fmt.Errorf("authorization detail: resource_chain[%d] has an empty selector", i)
			}
		}
	}
	if want := d.CanonicalPermission(); d.Permission != want {
		return fmt.Errorf("authorization detail: permission %q is not canonical, want %q", d.Permission, want)
	}
	return nil
}

// Permission builds the canonical string
// <cli>.<resource>[<k=v,…>|*].…#<action>. Selector keys are sorted as a
// JavaScript client sorts them; empty values are dropped.
func Permission(cli string, chain []Resource, action string) string {
	var b strings.Builder
	b.WriteString(cli)
	for _, r := range chain {
		b.WriteByte('.')
		b.WriteString(r.Name)
		keys := make([]string, 0, len(r.Selector))
		for k, v := range r.Selector {
			if v != "" {
				keys = append(keys, k)
			}
		}
		if len(keys) == 0 {
			b.WriteString("[*]")
			continue
		}
		slices.SortFunc(keys, compareKeys)
		b.WriteByte('[')
		for i, k := range keys {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(k)
			b.WriteByte('=')
			b.WriteString(r.Selector[k])
		}
		b.WriteByte(']')
	}
	b.WriteByte('#')
	b.WriteString(action)
	return b.String()
}

// escapedPermission is Permission with every separator inside a value
// percent-encoded, so that two different chains never share a string.
func escapedPermission(cli string, chain []Resource, action string) string {
	return Permission(escapeValue(cli), escapedChain(chain), escapeValue(action))
}

func escapedChain(chain []Resource) []Resource {
	out := make([]Resource, len(chain))
	for i, r := range chain {
		out[i] = Resource{Name: escapeValue(r.Name)}
		if len(r.Selector) > 0 {
			out[i].Selector = make(map[string]string, len(r.Selector))
			for k, v := range r.Selector {
				out[i].Selector[escapeValue(k)] = escapeValue(v)
			}
		}
	}
	return out
}

// escapeValue percent-encodes the separators of permission strings, the
// percent sign, the star of "any" and control characters.
func escapeValue(s string) string {
	if !strings.ContainsFunc(s, separates) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if c := s[i]; separates(rune(c)) {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// separates leaves the dot alone: names and values are told apart by brackets,
// and a program's name may have dots.
func separates(r rune) bool {
	return r < ' ' || r == 0x7f || strings.ContainsRune("%[],=#*", r)
}

// compareKeys orders selector keys as String.prototype.localeCompare does for
// ASCII: punctuation, digits, letters; letters without regard to case first,
// lower case before upper case on a tie.
func compareKeys(a, b string) int {
	for i := 0; i < len(a) && i < len(b); i++ {
		if c := cmp.Compare(primary(a[i]), primary(b[i])); c != 0 {
			return c
		}
	}
	if c := cmp.Compare(len(a), len(b)); c != 0 {
		return c
	}
	for i := 0; i < len(a); i++ {
		if a[i] != b[i] {
			// Same primary weight, so the two differ in case only.
			return cmp.Compare(b[i], a[i])
		}
	}
	return 0
}

// asciiPunctuation lists ASCII punctuation in the order of the root collation
// (CLDR); the position is the weight.
const asciiPunctuation = " _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$"

func primary(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return 100 + int(c-'0')
	case c >= 'a' && c <= 'z':
		return 200 + int(c-'a')
	case c >= 'A' && c <= 'Z':
		return 200 + int(c-'A')
	case c >= utf8.RuneSelf:
		return 300 + int(c)
	}
	return strings.IndexByte(asciiPunctuation, c)
}

// CmdHash is the bare lower-case hex SHA-256 of argv joined by one space. It
// is ambiguous by design of the wire (["a b"] equals ["a","b"]), so nothing
// here compares commands by it.
func CmdHash(argv []string) string {
	sum := sha256.Sum256([]byte(strings.Join(argv, " ")))
	return hex.EncodeToString(sum[:])
}

// ArgvHash is "SHA-256:" and the hex SHA-256 of argv as the compact JSON array
// that JavaScript's JSON.stringify writes (ECMA-262, QuoteJSONString).
func ArgvHash(argv []string) string {
	b := []byte{'['}
	for i, s := range argv {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendJSONString(b, s)
	}
	sum := sha256.Sum256(append(b, ']'))
	return "SHA-256:" + hex.EncodeToString(sum[:])
}

// appendJSONString quotes s as JSON.stringify does. encoding/json differs: it
// escapes <, >, & and always U+2028 and U+2029, which would change the hash.
func appendJSONString(b []byte, s string) []byte {
	const hexDigits = "0123456789abcdef"
	b = append(b, '"')
	for _, r := range s {
		switch r {
		case '"', '\\':
			b = append(b, '\\', byte(r))
		case '\b':
			b = append(b, '\\', 'b')
		case '\f':
			b = append(b, '\\', 'f')
		case '\n':
			b = append(b, '\\', 'n')
		case '\r':
			b = append(b, '\\', 'r')
		case '\t':
			b = append(b, '\\', 't')
		default:
			if r < 0x20 {
				b = append(b, '\\', 'u', '0', '0', hexDigits[r>>4], hexDigits[r&0xf])
				continue
			}
			b = utf8.AppendRune(b, r)
		}
	}
	return append(b, '"')
}
