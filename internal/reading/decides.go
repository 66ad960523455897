package reading

import (
	"slices"
	"strings"
	"unicode"

	"vogt/internal/catalog"
	"vogt/internal/detail"
)

// DecideOperation marks a call of Vogt's own verbs that permit or trust.
const DecideOperation = "vogt.decide"

// decides reports whether the call is one of Vogt's own verbs that permit or
// trust something, by whatever path the program was named. A call of which not
// all is known counts when its words name one. It catches mistakes: what a
// script or a renamed copy does only shows when it calls the authority, where
// a login alone decides nothing.
func decides(c *Call, resolved string) bool {
	if len(c.Words) == 0 {
		return false
	}
	name := c.Words[0].Text
	if !strings.Contains(name, "vogt") && !strings.Contains(resolved, "vogt") && !unclear(c) && !ownName(name) {
		return false
	}
	words := make([]string, 0, len(c.Words))
	for _, w := range c.Words[1:] {
		words = append(words, templateOf(w))
	}
	if verb(anyBase(name), words) || verb(anyBase(resolved), words) {
		return true
	}
	if !unclear(c) {
		return false
	}
	fields := strings.FieldsFunc(strings.Join(words, " "), func(r rune) bool {
		return unicode.IsSpace(r) || strings.ContainsRune("\"'`$(){};&|<>=", r)
	})
	for i, word := range fields {
		if verb(anyBase(word), fields[i+1:]) {
			return true
		}
	}
	return false
}

// unclear reports whether nobody knows what the call's words mean.
func unclear(c *Call) bool {
	return c.Effects.Has(detail.Opaque) || c.Use.Entry == nil && c.Effects.Has(detail.Executes)
}

func ownName(name string) bool {
	switch anyBase(name) {
	case "vogt", "vogtd", "apes":
		return true
	}
	return false
}

// anyBase is the last element of a path of any system, as file systems that
// ignore case would find it.
func anyBase(path string) string {
	path = path[strings.LastIndexAny(path, `/\`)+1:]
	return strings.TrimSuffix(strings.ToLower(path), ".exe")
}

// verb reports whether the program is Vogt's and the words name something
// that permits or trusts.
func verb(program string, words []string) bool {
	switch program {
	case "vogtd":
		return !slices.Equal(words, []string{"--version"}) && !slices.Equal(words, []string{"version"})
	case "vogt", "apes":
	default:
		return false
	}
	return slices.ContainsFunc(words, func(w string) bool {
		switch w {
		case "approve", "confirm", "sign", "accept", "trust", "up", "serve", "resume", "add", "passkey", "rotate-key", "register",
			"register-user", "enroll", "spawn", "delegate", "allow", "set", "login":
			return true
		}
		return strings.ContainsRune(w, catalog.Hole)
	})
}
