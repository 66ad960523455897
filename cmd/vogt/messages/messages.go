// Package messages is the catalog of what vogt says to people, in English and
// German.
//
// It owns the texts and the choice of the language. It leaves out what is the
// same in every language: labels that programs read (Grant:, Approve:, Status:,
// Execute:, Confirm:), names of facts, help texts, and what the authority and
// the system say.
package messages

import (
	"fmt"
	"strings"

	"vogt/internal/client"
	"vogt/internal/execution"
	"vogt/internal/execution/confine"
)

// Lang is a language. The zero value is English.
type Lang uint8

// The languages.
const (
	English Lang = iota
	German
)

// Choose picks the language as POSIX does for messages: the first of LC_ALL,
// LC_MESSAGES and LANG that is set decides.
func Choose(getenv func(string) string) Lang {
	for _, name := range []string{"LC_ALL", "LC_MESSAGES", "LANG"} {
		if value := getenv(name); value != "" {
			language, _, _ := strings.Cut(value, "_")
			language, _, _ = strings.Cut(language, ".")
			if strings.EqualFold(language, "de") {
				return German
			}
			return English
		}
	}
	return English
}

// Text is the message in the language, with its arguments as in fmt.Sprintf.
func (l Lang) Text(key Key, args ...any) string {
	return fmt.Sprintf(catalog[key][l], args...)
}

// Key names a message.
type Key uint16

// ForKind is the message for a kind of client error.
func ForKind(k client.Kind) Key { return KindMalformed + Key(k) }

// ForWide is the message for a folder that cannot be a workspace.
func ForWide(w confine.Wide) Key { return WideSystem + Key(w) }

// ForExecution is the message for a kind of execution error.
func ForExecution(k execution.Kind) Key { return RunUnexecutable + Key(k) }
