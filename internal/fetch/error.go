package fetch

import (
	"fmt"

	"vogt/internal/inet"
)

// Kind is why there is no document.
type Kind uint8

// The kinds. The zero value is an address that cannot be read.
const (
	BadAddress  Kind = iota
	Forbidden        // the address, or where it leads, may not be reached
	Unresolved       // the name is not known, or could not be asked for
	Unreachable      // no connection, no TLS, or no HTTP
	TooSlow          // it took longer than it may
	TooLarge         // it has more bytes than it may
	Redirected       // it lies elsewhere
	Status           // the answer is not 200
	WrongType        // it is no document of the kind that was asked for
)

func (k Kind) String() string {
	switch k {
	case BadAddress:
		return "the address cannot be used"
	case Forbidden:
		return "the address may not be fetched from"
	case Unresolved:
		return "the name could not be resolved"
	case Unreachable:
		return "no answer could be had"
	case TooSlow:
		return "the answer took too long"
	case TooLarge:
		return "the answer is too large"
	case Redirected:
		return "the redirect is not followed"
	case Status:
		return "there is no document"
	case WrongType:
		return "the document is of another type"
	}
	return "it failed"
}

// Error says why a document could not be got.
type Error struct {
	Kind   Kind
	URL    string
	Status int        // of HTTP, for kind Status
	Class  inet.Class // of the address, for kind Forbidden; Unknown where it was not that
	Err    error
}

func (e *Error) Error() string { return fmt.Sprintf("%.300s: %s: %v", e.URL, e.Kind, e.Err) }

func (e *Error) Unwrap() error { return e.Err }
