// Package statement defines vogt-statement-v1: the one text of a request that
// is shown to a person, signed, logged and executed, and the digest of it.
//
// It owns the fields, their order and their encoding. It leaves out where the
// values come from and who may sign: a field that a door could not observe is
// absent, and absent differs from empty. The package is pure and imports the
// standard library only, so that an offline verifier can use it.
package statement

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
)

// Label separates these digests from every other use of SHA-256.
const Label = "vogt-statement-v1"

// Purpose says what a signature over the statement permits.
type Purpose string

// The purposes. A verifier accepts exactly the one it expects.
const (
	Run      Purpose = "run"
	Crossing Purpose = "crossing"
	Standing Purpose = "standing"
	Trust    Purpose = "trust"
	Login    Purpose = "login"
	// Connect permits a connection of a box; NetworkMode names host and port.
	Connect Purpose = "connect"
)

// Digest is the SHA-256 of label and encoded statement.
type Digest [sha256.Size]byte

// String returns lower-case hex.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// MarshalText writes lower-case hex.
func (d Digest) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads 64 lower-case hex digits.
func (d *Digest) UnmarshalText(b []byte) error {
	if len(b) != 2*len(d) {
		return fmt.Errorf("statement digest: want %d hex digits, got %d bytes", 2*len(d), len(b))
	}
	for _, c := range b {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return fmt.Errorf("statement digest: %q is not a lower-case hex digit", c)
		}
	}
	_, err := hex.Decode(d[:], b)
	return err
}

// ParseDigest reads 64 lower-case hex digits.
func ParseDigest(s string) (d Digest, err error) {
	err = d.UnmarshalText([]byte(s))
	return d, err
}

// File identifies a file that takes part in the action. Absent parts were not
// observed.
type File struct {
	Path   *string `json:"path,omitempty"`
	Device *uint64 `json:"device,omitempty"`
	Inode  *uint64 `json:"inode,omitempty"`
	SHA256 *string `json:"sha256,omitempty"` // lower-case hex
	Size   *uint64 `json:"size,omitempty"`   // bytes
}

// Statement lists the fields in the order of the encoding. A nil pointer or
// nil slice is absent ("not bound"); an empty slice is present and empty.
type Statement struct {
	Purpose      Purpose  `json:"purpose"`
	Issuer       string   `json:"issuer"`
	IssuerKeyID  *string  `json:"issuer_key_id,omitempty"`
	Epoch        uint64   `json:"epoch"`
	GrantID      string   `json:"grant_id"`
	Nonce        string   `json:"nonce"` // lower-case hex
	Requester    *string  `json:"requester,omitempty"`
	RequesterKey *string  `json:"requester_key,omitempty"`
	Generation   *uint64  `json:"generation,omitempty"`
	Owner        *string  `json:"owner,omitempty"`
	Host         *string  `json:"host,omitempty"` // fingerprint of the node's or broker's key
	CallerUID    *uint64  `json:"caller_uid,omitempty"`
	RunAsUID     *uint64  `json:"run_as_uid,omitempty"`
	RunAsName    *string  `json:"run_as_name,omitempty"`
	RunAsGroups  []string `json:"run_as_groups,omitzero"`
	GrantType    string   `json:"grant_type"`
	NotBefore    *uint64  `json:"not_before,omitempty"` // unix seconds
	Expiry       *uint64  `json:"expiry,omitempty"`     // unix seconds
	Uses         *uint64  `json:"uses,omitempty"`
	Executable   *File    `json:"executable,omitempty"`
	Interpreters []File   `json:"interpreters,omitzero"`
	Argv         []string `json:"argv,omitzero"`
	Cwd          *File    `json:"cwd,omitempty"`
	Environment  []string `json:"environment,omitzero"` // sorted name=value
	Umask        *uint64  `json:"umask,omitempty"`
	Limits       []string `json:"limits,omitzero"` // sorted name=value
	Stdin        *string  `json:"stdin,omitempty"` // "null", "live-tty" or "sha256:<hex>:<bytes>"
	Inputs       []File   `json:"inputs,omitzero"`
	Confinement  *string  `json:"confinement,omitempty"` // digest of the profile
	NetworkMode  *string  `json:"network_mode,omitempty"`
	Catalog      *string  `json:"catalog,omitempty"` // digest
	Reason       *string  `json:"reason,omitempty"`
	Hints        []string `json:"hints,omitzero"`
}

// Encode returns the bytes that are hashed: each field in order as one
// presence byte, a big-endian uint32 length and the value. Numbers are eight
// bytes big-endian; a list is a uint32 count followed by its elements, each
// with its length; a File is its own five fields in the same form.
func (s Statement) Encode() []byte {
	var e encoder
	e.text(string(s.Purpose))
	e.text(s.Issuer)
	e.optText(s.IssuerKeyID)
	e.optNumber(&s.Epoch)
	e.text(s.GrantID)
	e.text(s.Nonce)
	e.optText(s.Requester)
	e.optText(s.RequesterKey)
	e.optNumber(s.Generation)
	e.optText(s.Owner)
	e.optText(s.Host)
	e.optNumber(s.CallerUID)
	e.optNumber(s.RunAsUID)
	e.optText(s.RunAsName)
	e.list(s.RunAsGroups)
	e.text(s.GrantType)
	e.optNumber(s.NotBefore)
	e.optNumber(s.Expiry)
	e.optNumber(s.Uses)
	e.optFile(s.Executable)
	e.files(s.Interpreters)
	e.list(s.Argv)
	e.optFile(s.Cwd)
	e.list(s.Environment)
	e.optNumber(s.Umask)
	e.list(s.Limits)
	e.optText(s.Stdin)
	e.files(s.Inputs)
	e.optText(s.Confinement)
	e.optText(s.NetworkMode)
	e.optText(s.Catalog)
	e.optText(s.Reason)
	e.list(s.Hints)
	return e.b
}

// Digest is what a person's key signs.
func (s Statement) Digest() Digest {
	h := sha256.New()
	h.Write([]byte(Label))
	h.Write([]byte{0})
	h.Write(s.Encode())
	return Digest(h.Sum(nil))
}

// Identity is the digest of the statement without what differs between two
// askings of the same thing: grant id, nonce, issuer key, epoch, requester
// key, the chosen reach, and the words of the agent. Equal identities are the
// same action by the same principal.
func (s Statement) Identity() Digest {
	s.GrantID, s.Nonce, s.IssuerKeyID, s.Epoch, s.RequesterKey = "", "", nil, 0, nil
	s.GrantType, s.NotBefore, s.Expiry, s.Uses = "", nil, nil, nil
	s.Reason, s.Hints = nil, nil
	return s.Digest()
}

type encoder struct{ b []byte }

func (e *encoder) field(present bool, value []byte) {
	if !present {
		e.b = append(e.b, 0)
		e.b = binary.BigEndian.AppendUint32(e.b, 0)
		return
	}
	e.b = append(e.b, 1)
	e.b = appendSized(e.b, value)
}

func appendSized(b, value []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(len(value)))
	return append(b, value...)
}

func (e *encoder) text(s string) { e.field(true, []byte(s)) }

func (e *encoder) optText(s *string) {
	if s == nil {
		e.field(false, nil)
		return
	}
	e.text(*s)
}

func (e *encoder) optNumber(n *uint64) {
	if n == nil {
		e.field(false, nil)
		return
	}
	e.field(true, binary.BigEndian.AppendUint64(nil, *n))
}

func (e *encoder) list(items []string) {
	if items == nil {
		e.field(false, nil)
		return
	}
	v := binary.BigEndian.AppendUint32(nil, uint32(len(items)))
	for _, s := range items {
		v = appendSized(v, []byte(s))
	}
	e.field(true, v)
}

func (e *encoder) optFile(f *File) {
	if f == nil {
		e.field(false, nil)
		return
	}
	e.field(true, f.encode())
}

func (e *encoder) files(fs []File) {
	if fs == nil {
		e.field(false, nil)
		return
	}
	v := binary.BigEndian.AppendUint32(nil, uint32(len(fs)))
	for _, f := range fs {
		v = appendSized(v, f.encode())
	}
	e.field(true, v)
}

func (f File) encode() []byte {
	var e encoder
	e.optText(f.Path)
	e.optNumber(f.Device)
	e.optNumber(f.Inode)
	e.optText(f.SHA256)
	e.optNumber(f.Size)
	return e.b
}
