package audit

import (
	"math/bits"

	"golang.org/x/mod/sumdb/tlog"
)

// Two records in each other's place are the one forgery of which both ends can
// be named from the records and the root alone.

const (
	// maxMisfits is how many records that do not give their leaf are compared
	// with each other.
	maxMisfits = 64
	// maxLeaves is how many leaves are kept for the search.
	maxLeaves = 1 << 20
	// maxTried is the size of a log in which every pair is tried.
	maxTried = 128
)

// misfit is a record that does not give the leaf stored beside it.
type misfit struct {
	index       int64
	own, stored [32]byte // leaves
}

// contentOf is the record that has the content of record index and whose own
// content is there.
func (k *checker) contentOf(index int64) (other int64, ok bool) {
	for _, a := range k.misfits {
		for _, b := range k.misfits {
			if a.index == index && b.index != index && a.own == b.stored && b.own == a.stored {
				return b.index, true
			}
		}
	}
	return 0, false
}

// timedLeaf is the hash of a leaf, and the time of its record.
type timedLeaf struct {
	hash tlog.Hash
	time int64
}

func (k *checker) remember(l timedLeaf) {
	if len(k.leaves) == maxLeaves {
		k.leaves, k.crowded = nil, true
	}
	if !k.crowded {
		k.leaves = append(k.leaves, l)
	}
}

// exchanged finds the two records that have to change places for the log to fit
// f, if that is all that is wrong.
func (k *checker) exchanged(f point) (i, j int64, ok bool) {
	if k.crowded || f.Size > int64(len(k.leaves)) {
		return 0, 0, false
	}
	leaves := k.leaves[:f.Size]
	fits := func(a, b int64) bool {
		leaves[a], leaves[b] = leaves[b], leaves[a]
		defer func() { leaves[a], leaves[b] = leaves[b], leaves[a] }()
		return rootOf(leaves) == f.Root
	}
	// Times only grow, so the two are where they first and last fall.
	first, last := int64(-1), int64(-1)
	for n := int64(1); n < f.Size; n++ {
		if leaves[n].time < leaves[n-1].time {
			if last = n; first < 0 {
				first = n - 1
			}
		}
	}
	if first >= 0 && fits(first, last) {
		return first, last, true
	}
	if f.Size > maxTried {
		return 0, 0, false
	}
	for a := k.before; a < f.Size; a++ {
		for b := a + 1; b < f.Size; b++ {
			if fits(a, b) {
				return a, b, true
			}
		}
	}
	return 0, 0, false
}

// rootOf is the root of a tree with these leaves.
func rootOf(leaves []timedLeaf) tlog.Hash {
	if len(leaves) == 0 {
		return emptyRoot()
	}
	var subtree []tlog.Hash
	for n, l := range leaves {
		h := l.hash
		for range bits.TrailingZeros64(uint64(n) + 1) {
			h = tlog.NodeHash(subtree[len(subtree)-1], h)
			subtree = subtree[:len(subtree)-1]
		}
		subtree = append(subtree, h)
	}
	h := subtree[len(subtree)-1]
	for i := len(subtree) - 2; i >= 0; i-- {
		h = tlog.NodeHash(subtree[i], h)
	}
	return h
}
