package passkey

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"strings"

	"github.com/go-webauthn/webauthn/protocol"

	"vogt/internal/passkey/assertion"
)

// Code is the kind of a failure, for pages that translate. The zero value
// counts as [Internal].
type Code string

const (
	Malformed      Code = "malformed"       // the browser's answer is unreadable
	Expired        Code = "expired"         // the session is older than Timeout
	WrongCeremony  Code = "wrong-ceremony"  // session or answer belong to another ceremony
	WrongSite      Code = "wrong-site"      // made on another page, or in a foreign frame
	NotVerified    Code = "not-verified"    // nobody was present, or nobody was verified
	UnknownPasskey Code = "unknown-passkey" // the credential is not registered here
	UnfitPasskey   Code = "unfit-passkey"   // a kind of key that cannot be used
	NoPasskey      Code = "no-passkey"      // the person has none to decide with
	Refused        Code = "refused"         // anything else that did not verify
	Internal       Code = "internal"        // our own fault or the caller's
)

// Sentence says in English what happened and what to do next, for the person
// at the browser. It gives nothing away.
func (c Code) Sentence() string {
	switch c {
	case Malformed:
		return "The browser's answer could not be read. Reload the page and try again."
	case Expired:
		return "That took longer than five minutes. Start again."
	case WrongCeremony:
		return "That answer belongs to another request. Reload the page and try again."
	case WrongSite:
		return "The passkey was used on another page than this one. Open this site by its own address and try again."
	case NotVerified:
		return "The passkey did not confirm that it was you. Try again and use your PIN, finger or face."
	case UnknownPasskey:
		return "This passkey is not known here. Choose another one, or register it first."
	case UnfitPasskey:
		return "This authenticator makes a kind of key that is not supported. Use another one."
	case NoPasskey:
		return "You have no passkey yet. Register one first."
	case Refused:
		return "The passkey's answer did not verify. Try again; if it happens again, use another passkey."
	}
	return "Something went wrong on the server. Try again; if it happens again, tell whoever runs it."
}

// Error is every error of a ceremony. Its text and what it wraps are for logs,
// and may repeat what the browser sent; people get the code's sentence.
type Error struct {
	Code  Code
	cause error
}

// Error returns code and cause, for logs.
func (e *Error) Error() string {
	text := "passkey: " + string(e.Code)
	if e.cause != nil {
		text += ": " + describe(e.cause)
	}
	return text
}

// Public returns the sentence for the person at the browser.
func (e *Error) Public() string { return e.Code.Sentence() }

// Unwrap returns the cause: the error of a [Lookup], an [assertion.Error], or
// one of the library's.
func (e *Error) Unwrap() error { return e.cause }

func fail(code Code, cause error) error { return &Error{code, cause} }

// fromAssertion turns a refusal by package assertion into one of ours.
func fromAssertion(err error) error {
	if err == nil {
		return nil
	}
	code := Refused
	var refusal *assertion.Error
	if errors.As(err, &refusal) {
		switch refusal.Reason {
		case assertion.Malformed:
			code = Malformed
		case assertion.WrongType, assertion.WrongChallenge:
			code = WrongCeremony
		case assertion.WrongOrigin, assertion.Embedded, assertion.WrongRP:
			code = WrongSite
		case assertion.NotPresent, assertion.NotVerified:
			code = NotVerified
		case assertion.UnsupportedKey:
			code = UnfitPasskey
		case assertion.BadSignature, assertion.ImpossibleBackup:
			code = Refused
		}
	}
	return fail(code, err)
}

// fromLibrary classifies the library's refusal of a registration by what the
// authenticator reported; the error itself says only for logs what failed.
func fromLibrary(err error, data protocol.AuthenticatorData, rpID string) error {
	hash := sha256.Sum256([]byte(rpID))
	switch {
	case !bytes.Equal(data.RPIDHash, hash[:]):
		return fail(WrongSite, err)
	case !data.Flags.HasUserPresent() || !data.Flags.HasUserVerified():
		return fail(NotVerified, err)
	}
	return fail(Refused, err)
}

// maxCause keeps what a browser sent from filling the log.
const maxCause = 400

// describe adds the library's second text, which Error leaves out.
func describe(err error) string {
	text := err.Error()
	var library *protocol.Error
	if errors.As(err, &library) && library.DevInfo != "" {
		text += " (" + library.DevInfo + ")"
	}
	text = strings.ToValidUTF8(text, "�")
	if len(text) > maxCause {
		text = strings.ToValidUTF8(text[:maxCause], "") + "…"
	}
	return text
}
