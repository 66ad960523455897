package client

import (
	"fmt"
	"net/http"
	"strings"

	"vogt/internal/api"
)

// Kind tells what went wrong, so that callers can say what to do next. The
// zero value is an answer that makes no sense.
type Kind uint8

// The kinds.
const (
	Malformed    Kind = iota // the authority's answer cannot be understood
	Unreachable              // no answer, or it is shutting down or full
	NotLoggedIn              // no identity here, or it is not accepted any more
	Refused                  // the authority says no
	Unknown                  // no such grant, agent or page
	Decided                  // somebody decided before
	Spent                    // used, expired or otherwise over
	Invalid                  // the request is at fault
	Busy                     // too many requests, and waiting did not help
	WrongIssuer              // the authority calls itself otherwise
	Distrusted               // the answer is not what was asked for: nothing may run
	KeyChanged               // the key of log or tokens is not the pinned one
	Forked                   // the authority shows different logs to different callers
	Behind                   // its log is shorter than it was: restored, or cut
	BadFile                  // a file of this home folder is damaged
	KeyLocked                // the key has a passphrase, and nobody can be asked
	NotConfirmed             // a change of trust was declined or ran out
)

// Error is a failed exchange or an unusable file.
type Error struct {
	Kind Kind
	// Where is the authority's address, or the file that is damaged.
	Where string
	// Detail says what happened, in words of the authority or the system.
	Detail string
	// Hint says who can change it and how; it may be empty.
	Hint string
	// Status is the HTTP status, or 0.
	Status int
	// Evidence are files that hold the proof of a fork.
	Evidence []string
	Err      error
}

var kindTexts = [...]string{
	Malformed:    "the answer of the authority makes no sense",
	Unreachable:  "the authority cannot be reached",
	NotLoggedIn:  "not logged in",
	Refused:      "refused",
	Unknown:      "not found",
	Decided:      "already decided",
	Spent:        "no longer valid",
	Invalid:      "the request is not valid",
	Busy:         "too many requests",
	WrongIssuer:  "the authority calls itself otherwise",
	Distrusted:   "the authority's answer does not hold",
	KeyChanged:   "the authority's key changed",
	Forked:       "the authority shows different logs to different callers",
	Behind:       "the authority was restored from an older copy, or its log was cut",
	BadFile:      "the file cannot be used",
	KeyLocked:    "the key cannot be used",
	NotConfirmed: "not confirmed",
}

// String returns the kind in English words.
func (k Kind) String() string { return kindTexts[k] }

// Error implements error.
func (e *Error) Error() string {
	var b strings.Builder
	if e.Where != "" {
		b.WriteString(e.Where + ": ")
	}
	b.WriteString(e.Kind.String())
	if e.Detail != "" {
		b.WriteString(": " + e.Detail)
	}
	if e.Err != nil {
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	if e.Hint != "" {
		b.WriteString(" (" + e.Hint + ")")
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// kindOf reads the statuses to which the interface gives a meaning.
func kindOf(status int) Kind {
	switch status {
	case http.StatusUnauthorized:
		return NotLoggedIn
	case http.StatusForbidden:
		return Refused
	case http.StatusNotFound:
		return Unknown
	case http.StatusConflict:
		return Decided
	case http.StatusGone:
		return Spent
	case http.StatusTooManyRequests:
		return Busy
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout, http.StatusInsufficientStorage:
		return Unreachable
	}
	if status >= 400 && status < 500 {
		return Invalid
	}
	return Malformed
}

// problemError is the error for a problem document (RFC 9457).
func problemError(where string, status int, p api.Problem) *Error {
	detail := p.Detail
	// Some clients print the detail alone, so the authority repeats the hint
	// there, and the title when there is nothing to add to it.
	if p.Hint != "" {
		detail = strings.TrimSpace(strings.TrimSuffix(detail, p.Hint))
	}
	switch {
	case detail == "":
		detail = p.Title
	case p.Title != "" && !strings.HasPrefix(detail, p.Title):
		detail = p.Title + ": " + detail
	}
	if detail == "" {
		detail = http.StatusText(status)
	}
	return &Error{Kind: kindOf(status), Where: where, Detail: detail, Hint: p.Hint, Status: status}
}
