// Package audit is the tamper-evident log of everything that was asked,
// decided and done: a Merkle tree as in Go's checksum database.
//
// It owns how a record becomes a leaf and a leaf becomes part of the tree,
// signed checkpoints, inclusion and consistency proofs, the memory of the
// checkpoints that a client has seen, the verification of a whole log, and the
// export format. It leaves out where records and hashes lie (the consumer
// gives a Storage), what a record says (bodies are opaque JSON objects), and
// the time and randomness, which come in with the record.
//
// What it can prove: a log that was verified against a checkpoint remembered
// elsewhere has not been changed up to that checkpoint's size. What it cannot:
// whoever holds the signing key can write a new history for a reader who
// remembers nothing. That is what Memory and package witness are for.
//
// The tree is that of RFC 6962 section 2.1; the data of its leaf i is the
// 32-byte Record.Leaf. Hashes are stored in the order of
// golang.org/x/mod/sumdb/tlog (tlog.StoredHashIndex).
package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"golang.org/x/mod/sumdb/tlog"
)

// SaltSize is the length of a record's salt in bytes. The salt keeps a leaf
// from giving away a short body once the record has been erased.
const SaltSize = 16

// MaxType is the greatest length of a record's type in bytes.
const MaxType = 64

// maxSize bounds tree sizes that are read from outside. Nothing real comes
// near it, and above 1<<62 the arithmetic of package tlog overflows.
const maxSize = 1 << 48

// Record is one entry of the log. Salt and Body are nil together once the
// record has been erased; its leaf stays, so that proofs hold.
type Record struct {
	Index int64
	Type  string   // what Body is: 1 to MaxType of a-z, A-Z, 0-9, '.', '_', '-', ':', '/'
	Time  int64    // Unix milliseconds, part of the leaf
	Salt  []byte   // SaltSize random bytes
	Body  []byte   // a JSON object on one line
	Leaf  [32]byte // LeafOf the four above
}

// Erased reports whether only the leaf of the record is left.
func (r Record) Erased() bool { return len(r.Salt) == 0 && len(r.Body) == 0 }

// LeafOf is the leaf of a record: SHA-256 over
//
//	"vogt-leaf-v1\n" ‖ uint32 len(type) ‖ type ‖ int64 time ‖ salt ‖ uint32 len(body) ‖ body
//
// with big-endian integers. The salt has no length of its own, so one that is
// not SaltSize long yields the zero leaf, which belongs to no record.
func LeafOf(typ string, time int64, salt, body []byte) [32]byte {
	if len(salt) != SaltSize {
		return [32]byte{}
	}
	const label = "vogt-leaf-v1\n"
	head := make([]byte, 0, len(label)+4+len(typ)+8+SaltSize+4)
	head = append(head, label...)
	head = binary.BigEndian.AppendUint32(head, uint32(len(typ)))
	head = append(head, typ...)
	head = binary.BigEndian.AppendUint64(head, uint64(time))
	head = append(head, salt...)
	head = binary.BigEndian.AppendUint32(head, uint32(len(body)))
	h := sha256.New()
	h.Write(head)
	h.Write(body)
	var leaf [32]byte
	h.Sum(leaf[:0])
	return leaf
}

// Storage is where a log lies. Size and Put must be of one transaction: two
// writers that both see size n would write two records n.
type Storage interface {
	tlog.HashReader
	// Size is the number of records.
	Size() (int64, error)
	// Put stores rec as the last record and hashes under the consecutive
	// stored-hash indexes from firstIndex.
	Put(rec Record, firstIndex int64, hashes []tlog.Hash) error
}

// Append makes rec the next record of the log: it sets Index and Leaf, stores
// it and returns it. It reads one stored hash on average and at most log2 of
// the size.
func Append(s Storage, rec Record) (Record, error) {
	if err := checkContent(rec); err != nil {
		return Record{}, fmt.Errorf("audit: append: %w", err)
	}
	n, err := s.Size()
	if err != nil {
		return Record{}, fmt.Errorf("audit: append: size of the log: %w", err)
	}
	if n < 0 || n >= maxSize {
		return Record{}, fmt.Errorf("audit: append: the storage says that the log has %d records", n)
	}
	rec.Index = n
	rec.Leaf = LeafOf(rec.Type, rec.Time, rec.Salt, rec.Body)
	hashes, err := tlog.StoredHashesForRecordHash(n, tlog.RecordHash(rec.Leaf[:]), skipEmpty{s})
	if err != nil {
		return Record{}, fmt.Errorf("audit: append record %d: %w", n, err)
	}
	if err := s.Put(rec, tlog.StoredHashIndex(0, n), hashes); err != nil {
		return Record{}, fmt.Errorf("audit: append record %d: %w", n, err)
	}
	return rec, nil
}

// skipEmpty keeps reads of nothing away from the storage: every second append
// completes no subtree.
type skipEmpty struct{ tlog.HashReader }

func (s skipEmpty) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	if len(indexes) == 0 {
		return nil, nil
	}
	return s.HashReader.ReadHashes(indexes)
}

// checkContent refuses a record that could not be exported and verified again.
func checkContent(r Record) error {
	if err := checkType(r.Type); err != nil {
		return err
	}
	if len(r.Salt) != SaltSize {
		return fmt.Errorf("the salt has %d bytes instead of %d", len(r.Salt), SaltSize)
	}
	return checkBody(r.Body)
}

func checkType(t string) error {
	ok := t != "" && len(t) <= MaxType
	for _, c := range []byte(t) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case c == '.', c == '_', c == '-', c == ':', c == '/':
		default:
			ok = false
		}
	}
	if !ok {
		return fmt.Errorf("%.80q is not a record type: 1 to %d letters, digits and . _ - : / are", t, MaxType)
	}
	return nil
}

func checkBody(b []byte) error {
	switch {
	case len(b) > MaxLine/2:
		return fmt.Errorf("the body has %d bytes; at most %d can be exported", len(b), MaxLine/2)
	case len(b) == 0 || b[0] != '{' || bytes.ContainsAny(b, "\r\n") || !utf8.Valid(b) || !json.Valid(b):
		return fmt.Errorf("the body is not a JSON object on one line: %.80q", b)
	}
	return nil
}
