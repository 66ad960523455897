package audit

import (
	"encoding/hex"
	"errors"
	"fmt"

	"golang.org/x/mod/sumdb/tlog"
)

// Inclusion proves that a log of Size records has a certain record at Index
// (RFC 6962 section 2.1.1).
type Inclusion struct {
	Index int64 `json:"index"`
	Size  int64 `json:"size"`
	// Leaf is the hash from which the way to the root begins, in hex: the
	// tree's hash SHA-256(0x00 ‖ Record.Leaf) of the record, not Record.Leaf.
	Leaf   string   `json:"leaf"`
	Hashes []string `json:"hashes"` // base64, from the leaf upwards
}

// Consistency proves that the log of New records begins with the Old records
// of an earlier one (RFC 6962 section 2.1.2).
type Consistency struct {
	Old    int64    `json:"old"`
	New    int64    `json:"new"`
	Hashes []string `json:"hashes"` // base64
}

// maxProof is what a consistency proof can have at most; an inclusion proof
// is shorter.
const maxProof = 63

// ProveInclusion makes the proof for the record at index in the log of the
// given size.
func ProveInclusion(index, size int64, r tlog.HashReader) (Inclusion, error) {
	if index < 0 || index >= size || size > maxSize {
		return Inclusion{}, fmt.Errorf("audit: a log of %d records has no record %d", size, index)
	}
	leaf, err := r.ReadHashes([]int64{tlog.StoredHashIndex(0, index)})
	if err == nil && len(leaf) != 1 {
		err = fmt.Errorf("the storage gave %d hashes instead of one", len(leaf))
	}
	if err != nil {
		return Inclusion{}, fmt.Errorf("audit: hash of record %d: %w", index, err)
	}
	proof, err := tlog.ProveRecord(size, index, skipEmpty{r})
	if err != nil {
		return Inclusion{}, fmt.Errorf("audit: proof of record %d in %d: %w", index, size, err)
	}
	return Inclusion{Index: index, Size: size, Leaf: hex.EncodeToString(leaf[0][:]), Hashes: encodeHashes(proof)}, nil
}

// Verify checks that the log of checkpoint c has the record with this leaf
// (as from LeafOf) at Index.
func (i Inclusion) Verify(leaf [32]byte, c Checkpoint) error {
	if i.Size != c.Size {
		return fmt.Errorf("audit: the proof is for a log of %d records, the checkpoint for %d", i.Size, c.Size)
	}
	if i.Index < 0 || i.Index >= i.Size || i.Size > maxSize {
		return fmt.Errorf("audit: a log of %d records has no record %d", i.Size, i.Index)
	}
	start := tlog.RecordHash(leaf[:])
	if i.Leaf != hex.EncodeToString(start[:]) {
		return fmt.Errorf("audit: the proof for record %d is for another record than the given one", i.Index)
	}
	proof, err := decodeHashes(i.Hashes)
	if err != nil {
		return fmt.Errorf("audit: proof for record %d: %w", i.Index, err)
	}
	if err := tlog.CheckRecord(proof, i.Size, c.Root, i.Index, start); err != nil {
		return fmt.Errorf("audit: the proof for record %d does not lead to the root of the log at %d records", i.Index, c.Size)
	}
	return nil
}

// ProveConsistency makes the proof between two sizes of one log. From 0 and
// between equal sizes it is empty.
func ProveConsistency(old, new int64, r tlog.HashReader) (Consistency, error) {
	if old < 0 || old > new || new > maxSize {
		return Consistency{}, fmt.Errorf("audit: no proof leads from %d records to %d", old, new)
	}
	p := Consistency{Old: old, New: new, Hashes: []string{}}
	if old == 0 {
		return p, nil
	}
	proof, err := tlog.ProveTree(new, old, r)
	if err != nil {
		return Consistency{}, fmt.Errorf("audit: proof from %d records to %d: %w", old, new, err)
	}
	p.Hashes = encodeHashes(tlog.RecordProof(proof))
	return p, nil
}

// Verify checks that the log of checkpoint new extends that of checkpoint old.
func (p Consistency) Verify(old, new Checkpoint) error {
	switch {
	case p.Old != old.Size || p.New != new.Size:
		return fmt.Errorf("audit: the proof leads from %d records to %d, the checkpoints from %d to %d", p.Old, p.New, old.Size, new.Size)
	case old.Origin != new.Origin:
		return fmt.Errorf("audit: the checkpoints are of two logs: %q and %q", old.Origin, new.Origin)
	case p.Old < 0 || p.Old > p.New || p.New > maxSize:
		return fmt.Errorf("audit: no proof leads from %d records to %d", p.Old, p.New)
	}
	proof, err := decodeHashes(p.Hashes)
	if err != nil {
		return fmt.Errorf("audit: proof from %d records to %d: %w", p.Old, p.New, err)
	}
	if p.Old == 0 {
		// Everything extends an empty log, so there is nothing to prove.
		if len(proof) != 0 || old.Root != emptyRoot() || p.New == 0 && new.Root != old.Root {
			return errors.New("audit: the proof from an empty log is not empty, or its root is wrong")
		}
		return nil
	}
	if err := tlog.CheckTree(tlog.TreeProof(proof), p.New, new.Root, p.Old, old.Root); err != nil {
		return fmt.Errorf("audit: the log at %d records is not a continuation of the log at %d records", p.New, p.Old)
	}
	return nil
}

func encodeHashes(hashes []tlog.Hash) []string {
	out := make([]string, len(hashes))
	for i, h := range hashes {
		out[i] = h.String()
	}
	return out
}

func decodeHashes(texts []string) ([]tlog.Hash, error) {
	if len(texts) > maxProof {
		return nil, fmt.Errorf("it has %d hashes; at most %d can be needed", len(texts), maxProof)
	}
	out := make([]tlog.Hash, len(texts))
	for i, s := range texts {
		var err error
		if out[i], err = parseHash(s); err != nil {
			return nil, err
		}
	}
	return out, nil
}
