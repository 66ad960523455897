package audit

import (
	"crypto/sha256"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/tlog"
)

// naiveRoot is the definition of RFC 6962 section 2.1 as it stands there.
func naiveRoot(leaves [][32]byte) tlog.Hash {
	switch n := len(leaves); n {
	case 0:
		return sha256.Sum256(nil)
	case 1:
		return sha256.Sum256(append([]byte{0}, leaves[0][:]...))
	default:
		k := 1
		for 2*k < n {
			k *= 2
		}
		left, right := naiveRoot(leaves[:k]), naiveRoot(leaves[k:])
		return sha256.Sum256(append(append([]byte{1}, left[:]...), right[:]...))
	}
}

const proofSizes = 130

func TestRootsAtAllSizes(t *testing.T) {
	a := newAuthority(t, "vogt/x/log", 1)
	l := newLog(t, proofSizes)
	var leaves [][32]byte
	for size := int64(0); size <= proofSizes; size++ {
		if c := a.sign(t, l, size); c.Root != naiveRoot(leaves) {
			t.Fatalf("the root at %d records is not that of RFC 6962", size)
		}
		if size < proofSizes {
			leaves = append(leaves, l.records[size].Leaf)
		}
	}
}

func checkpoints(t *testing.T, l *memLog) []Checkpoint {
	t.Helper()
	a := newAuthority(t, "vogt/x/log", 1)
	var all []Checkpoint
	for size := range int64(len(l.records) + 1) {
		all = append(all, a.sign(t, l, size))
	}
	return all
}

func TestInclusionAtAllSizes(t *testing.T) {
	l := newLog(t, proofSizes)
	cs := checkpoints(t, l)
	for size := int64(1); size <= proofSizes; size++ {
		for index := range size {
			p, err := ProveInclusion(index, size, l)
			if err != nil {
				t.Fatal(err)
			}
			leaf := l.records[index].Leaf
			if err := p.Verify(leaf, cs[size]); err != nil {
				t.Fatalf("record %d in %d: %v", index, size, err)
			}
			if other := l.records[(index+1)%proofSizes].Leaf; p.Verify(other, cs[size]) == nil {
				t.Fatalf("record %d in %d: the proof holds for another record", index, size)
			}
			p.Index = (index + 1) % size
			if size > 1 && p.Verify(leaf, cs[size]) == nil {
				t.Fatalf("record %d in %d: the proof holds at index %d", index, size, p.Index)
			}
		}
	}
}

func TestConsistencyAtAllSizes(t *testing.T) {
	l := newLog(t, proofSizes)
	cs := checkpoints(t, l)
	for new := range int64(proofSizes + 1) {
		for old := range new + 1 {
			p, err := ProveConsistency(old, new, l)
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Verify(cs[old], cs[new]); err != nil {
				t.Fatalf("from %d to %d: %v", old, new, err)
			}
			forged := cs[new]
			forged.Root[7] ^= 1
			if old > 0 && p.Verify(cs[old], forged) == nil {
				t.Fatalf("from %d to %d: the proof holds for another new root", old, new)
			}
			forged = cs[old]
			forged.Root[7] ^= 1
			if p.Verify(forged, cs[new]) == nil {
				t.Fatalf("from %d to %d: the proof holds for another old root", old, new)
			}
		}
	}
}

func TestProofsThatDoNotHold(t *testing.T) {
	l := newLog(t, 100)
	cs := checkpoints(t, l)
	leaf := l.records[37].Leaf
	inclusion, err := ProveInclusion(37, 90, l)
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Inclusion){
		"zero":           func(p *Inclusion) { *p = Inclusion{} },
		"size":           func(p *Inclusion) { p.Size++ },
		"negative index": func(p *Inclusion) { p.Index = -1 },
		"index":          func(p *Inclusion) { p.Index = 90 },
		"no leaf":        func(p *Inclusion) { p.Leaf = "" },
		"upper-case":     func(p *Inclusion) { p.Leaf = strings.ToUpper(p.Leaf) },
		"hash less":      func(p *Inclusion) { p.Hashes = p.Hashes[1:] },
		"hash more":      func(p *Inclusion) { p.Hashes = append(p.Hashes, p.Hashes[0]) },
		"hash twisted":   func(p *Inclusion) { p.Hashes[0], p.Hashes[1] = p.Hashes[1], p.Hashes[0] },
		"no hash":        func(p *Inclusion) { p.Hashes[2] = "" },
		"not base64":     func(p *Inclusion) { p.Hashes[2] = strings.Repeat("!", 44) },
		"spelled anew":   func(p *Inclusion) { p.Hashes[2] = looseBase64(p.Hashes[2]) },
		"many":           func(p *Inclusion) { p.Hashes = slices.Repeat(p.Hashes, 1000) },
	} {
		p := inclusion
		p.Hashes = slices.Clone(p.Hashes)
		change(&p)
		if p.Verify(leaf, cs[90]) == nil {
			t.Errorf("inclusion, %s: the proof holds", name)
		}
	}

	consistency, err := ProveConsistency(37, 90, l)
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Consistency){
		"zero":      func(p *Consistency) { *p = Consistency{} },
		"old":       func(p *Consistency) { p.Old++ },
		"new":       func(p *Consistency) { p.New++ },
		"swapped":   func(p *Consistency) { p.Old, p.New = p.New, p.Old },
		"empty":     func(p *Consistency) { p.Hashes = nil },
		"hash more": func(p *Consistency) { p.Hashes = append(p.Hashes, p.Hashes[0]) },
		"many":      func(p *Consistency) { p.Hashes = slices.Repeat(p.Hashes, 1000) },
		"malformed": func(p *Consistency) { p.Hashes[0] = "x" },
	} {
		p := consistency
		p.Hashes = slices.Clone(p.Hashes)
		change(&p)
		if p.Verify(cs[37], cs[90]) == nil {
			t.Errorf("consistency, %s: the proof holds", name)
		}
	}
	other := cs[90]
	other.Origin = "vogt/y/log"
	if consistency.Verify(cs[37], other) == nil {
		t.Error("the proof holds between two logs")
	}
	if (Consistency{}).Verify(Checkpoint{}, Checkpoint{}) == nil {
		t.Error("zero values prove something")
	}
	if (Inclusion{}).Verify([32]byte{}, Checkpoint{}) == nil {
		t.Error("zero values include something")
	}
}

// looseBase64 changes the bits at the end that a lax decoder ignores.
func looseBase64(s string) string {
	const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	i := strings.IndexByte(digits, s[42])
	return s[:42] + digits[i^1:i^1+1] + s[43:]
}

func TestProveRefuses(t *testing.T) {
	l := newLog(t, 5)
	for _, p := range [][2]int64{{-1, 5}, {5, 5}, {0, 0}, {0, 6}, {0, -1}, {1, maxSize + 1}} {
		if got, err := ProveInclusion(p[0], p[1], l); err == nil {
			t.Errorf("ProveInclusion(%d, %d) = %+v", p[0], p[1], got)
		}
	}
	for _, p := range [][2]int64{{-1, 5}, {4, 3}, {2, 6}, {1, maxSize + 1}} {
		if got, err := ProveConsistency(p[0], p[1], l); err == nil {
			t.Errorf("ProveConsistency(%d, %d) = %+v", p[0], p[1], got)
		}
	}
}

func TestProofsInJSON(t *testing.T) {
	l := newLog(t, 3)
	i, err := ProveInclusion(1, 3, l)
	if err != nil {
		t.Fatal(err)
	}
	c, err := ProveConsistency(2, 2, l)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		v    any
		keys []string
	}{{i, []string{`"index":1`, `"size":3`, `"leaf":"`, `"hashes":["`}}, {c, []string{`{"old":2,"new":2,"hashes":[]}`}}} {
		b, err := json.Marshal(tt.v)
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range tt.keys {
			if !strings.Contains(string(b), k) {
				t.Errorf("%s lacks %s", b, k)
			}
		}
	}
}
