package audit

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/tlog"
)

// Source is a whole log as it is stored.
type Source interface {
	// Records calls yield for every record in the order of their indexes and
	// returns the first error of yield unchanged. It can be called again.
	Records(yield func(Record) error) error
	tlog.HashReader
}

// masker is a Source in which some records have a changed body, of which only
// the leaf can be checked. Export is one.
type masker interface{ Masked(index int64) bool }

// Report is the result of a verification without a mismatch.
type Report struct {
	Origin string
	Size   int64 // records verified
	Erased int64 // of these only the leaf is left; type and time are unproven
	// ErasedAt are their indexes. Each is named by a later record of type
	// ErasureType, or the log would not have fitted.
	ErasedAt []int64
	Masked   int64 // of these only the leaf was verified, not what is shown
	Nodes    int64 // stored hashes that were compared; none in an export
	// Compared names every signed statement that the log was compared with.
	Compared []string
	// Witnesses names who else signed the checkpoint. Verify knows no keys of
	// witnesses: who has verified their cosignatures fills it in.
	Witnesses []string
}

// String says in some lines what was found and what it is worth.
func (r Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s of %s fit.\n", count(r.Size, "record"), r.Origin)
	if r.Nodes > 0 {
		fmt.Fprintf(&b, "Recomputed: every leaf, %s, the root.\n", count(r.Nodes, "stored hash"))
	} else {
		b.WriteString("Recomputed: every leaf, the tree, the root.\n")
	}
	if r.Erased > 0 {
		fmt.Fprintf(&b, "Erased: %s (%s); only the leaf was verified, not the type and time shown.\n", count(r.Erased, "record"), some(r.ErasedAt))
	}
	if r.Masked > 0 {
		fmt.Fprintf(&b, "Masked: %s; only the leaf was verified, not what is shown.\n", count(r.Masked, "record"))
	}
	for _, c := range r.Compared {
		fmt.Fprintf(&b, "Compared with: %s.\n", c)
	}
	if len(r.Witnesses) == 0 {
		b.WriteString("no witness: consistent with this machine's copies only\n")
	} else {
		fmt.Fprintf(&b, "Witnessed by: %s.\n", strings.Join(r.Witnesses, ", "))
	}
	return b.String()
}

// some lists the first of many indexes.
func some(indexes []int64) string {
	const most = 10
	var b strings.Builder
	for i, n := range indexes {
		if i == most {
			b.WriteString(", …")
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(strconv.FormatInt(n, 10))
	}
	return b.String()
}

func count(n int64, what string) string {
	switch {
	case n == 1:
		return "1 " + what
	case strings.HasSuffix(what, "sh"):
		return fmt.Sprintf("%d %ses", n, what)
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Kind is how a log does not fit.
type Kind string

// The kinds of mismatch.
const (
	Altered       Kind = "altered"        // a record's type, time, salt or body is not what was appended
	LeafAltered   Kind = "leaf-altered"   // the record is right, the leaf stored beside it is not
	NodeAltered   Kind = "node-altered"   // the records are right, a stored hash of the tree is not
	Missing       Kind = "missing"        // a record was removed
	Reordered     Kind = "reordered"      // a record stands in another's place
	Extra         Kind = "extra"          // a record is there that was never signed
	RootDiffers   Kind = "root-differs"   // records and hashes fit each other, but not what was signed
	BadCheckpoint Kind = "bad-checkpoint" // the checkpoint itself is not a signed one of this log

	// ErasedUnauthorised is a record that was emptied, of which no later record
	// tells. The tree cannot tell it from one that was erased by right.
	ErasedUnauthorised Kind = "erased-unauthorised"
)

// ErasureType is the type of the records that tell of an erasure. The body names
// the record that was erased: {"index":N,…}. It counts only when it was appended
// after N, is still there, and fits its leaf.
const ErasureType = "erasure"

// erasureOf is the index that a record of type ErasureType names.
func erasureOf(r Record) (index int64, ok bool) {
	var body struct {
		Index *int64 `json:"index"`
	}
	if r.Type != ErasureType || json.Unmarshal(r.Body, &body) != nil || body.Index == nil {
		return 0, false
	}
	return *body.Index, *body.Index >= 0 && *body.Index < r.Index
}

// Mismatch names the first record that does not fit.
type Mismatch struct {
	Kind   Kind
	Index  int64 // of the record; -1 for a bad checkpoint
	Detail string
	cause  error
}

func (m *Mismatch) Error() string {
	if m.Kind == BadCheckpoint {
		return "audit: " + m.Detail
	}
	return fmt.Sprintf("audit: record %d: %s", m.Index, m.Detail)
}

func (m *Mismatch) Unwrap() error { return m.cause }

func badCheckpoint(err error) *Mismatch {
	return &Mismatch{Kind: BadCheckpoint, Index: -1, Detail: strings.TrimPrefix(err.Error(), "audit: "), cause: err}
}

// Verify streams the whole log, recomputes every leaf, every stored hash and
// the root, and compares them with what is stored, with the signed checkpoint
// and with every checkpoint in against, which are those from OpenCheckpoint
// that were remembered elsewhere. An error that is a *Mismatch tells what does
// not fit; any other means that the log could not be read.
func Verify(src Source, checkpointText, verifierKey string, against []Checkpoint) (Report, error) {
	c, err := OpenCheckpoint(checkpointText, verifierKey)
	if err != nil {
		return Report{}, badCheckpoint(err)
	}
	k, err := newChecker(c.Origin, against)
	if err != nil {
		return Report{}, err
	}
	k.stored = src
	k.addPoint(c, fmt.Sprintf("the signed checkpoint of %s", count(c.Size, "record")))
	mask, _ := src.(masker)
	err = src.Records(func(r Record) error {
		return k.record(r, mask != nil && mask.Masked(r.Index))
	})
	if err == nil {
		err = k.flush()
	}
	if err != nil && !errors.Is(err, errStop) {
		return Report{}, fmt.Errorf("audit: verifying %s: %w", c.Origin, err)
	}
	return k.result(src, c)
}

// errStop ends the stream after a mismatch beyond which nothing can be told.
var errStop = errors.New("stop")

// point is a signed statement about the log at one size.
type point struct {
	Checkpoint
	name string
}

// suspect is the first record of which something does not fit. Whether the
// record is wrong or what is stored about it is known only from the roots.
type suspect struct {
	index int64
	// why is set if the record does not give the leaf stored beside it. Else
	// the stored hash (level, n) differs from want.
	why   string
	bare  bool // the record is such that it gives no leaf at all
	level int
	n     int64
	want  tlog.Hash // the record's own hash, for level 0
}

// checker verifies a stream of records.
type checker struct {
	stored  tlog.HashReader // nil if there is only the records
	points  []point         // ascending by size, not yet reached
	limit   int64           // no record has been signed from here on
	next    int64           // index of the next record
	subtree []tlog.Hash     // roots of the complete subtrees of the records so far, largest first

	pending []int64     // stored-hash indexes yet to be compared
	want    []tlog.Hash // what they must be

	bare    map[int64]struct{} // erased records of which no record has told yet
	misfits []misfit           // the first records that do not give their leaf
	leaves  []timedLeaf        // of all records, as long as they are not too many
	crowded bool               // they were too many
	suspect *suspect
	stop    *Mismatch
	passed  int64  // size of the largest point that fitted
	failed  *point // the smallest one that did not
	before  int64  // size of the largest one that fitted before failed
	report  Report
}

func newChecker(origin string, against []Checkpoint) (*checker, error) {
	k := &checker{report: Report{Origin: origin}, bare: map[int64]struct{}{}}
	for _, c := range against {
		if c.Origin != origin {
			return nil, badCheckpoint(fmt.Errorf("a remembered checkpoint is of the log %q, not of %q", c.Origin, origin))
		}
		k.addPoint(c, fmt.Sprintf("a remembered checkpoint of %s", count(c.Size, "record")))
	}
	return k, nil
}

func (k *checker) addPoint(c Checkpoint, name string) {
	i, _ := slices.BinarySearchFunc(k.points, c.Size, func(p point, size int64) int {
		if p.Size <= size {
			return -1
		}
		return 1
	})
	k.points = slices.Insert(k.points, i, point{c, name})
	k.limit = max(k.limit, c.Size)
	k.reach()
}

// record takes the next record of the stream.
func (k *checker) record(r Record, masked bool) error {
	switch {
	case r.Index > k.next && k.next == 0:
		return k.end(Missing, 0, fmt.Sprintf("it is missing; the log begins with record %d", r.Index))
	case r.Index > k.next:
		return k.end(Missing, k.next, fmt.Sprintf("it is missing; record %d follows record %d", r.Index, k.next-1))
	case r.Index < k.next:
		return k.end(Reordered, r.Index, fmt.Sprintf("it stands after record %d", k.next-1))
	case r.Index >= k.limit && k.stored != nil:
		return k.end(Extra, r.Index, fmt.Sprintf("it was added after the checkpoint of %s and never signed", count(k.limit, "record")))
	}
	leaf, why := r.Leaf, ""
	switch {
	case masked:
		k.report.Masked++
	case r.Erased():
		k.report.Erased++
		k.report.ErasedAt = append(k.report.ErasedAt, r.Index)
		k.bare[r.Index] = struct{}{}
	case len(r.Salt) != SaltSize:
		why = fmt.Sprintf("its salt has %d bytes instead of %d", len(r.Salt), SaltSize)
	default:
		if leaf = LeafOf(r.Type, r.Time, r.Salt, r.Body); leaf != r.Leaf {
			why = "its type, time, salt or body was changed: they do not give its leaf"
			if len(k.misfits) < maxMisfits {
				k.misfits = append(k.misfits, misfit{index: r.Index, own: leaf, stored: r.Leaf})
			}
		} else if index, ok := erasureOf(r); ok {
			delete(k.bare, index)
		}
	}
	k.remember(timedLeaf{tlog.RecordHash(leaf[:]), r.Time})
	if why != "" && k.suspect == nil {
		// Earlier records come first, and their hashes may still wait.
		if err := k.flush(); err != nil {
			return err
		}
		if k.suspect == nil {
			k.suspect = &suspect{index: r.Index, why: why, bare: len(r.Salt) != SaltSize, want: tlog.RecordHash(leaf[:])}
		}
	}
	return k.grow(tlog.RecordHash(leaf[:]))
}

func (k *checker) end(kind Kind, index int64, detail string) error {
	if err := k.flush(); err != nil {
		return err
	}
	k.stop = &Mismatch{Kind: kind, Index: index, Detail: detail}
	return errStop
}

// grow adds a leaf's hash to the tree.
func (k *checker) grow(h tlog.Hash) error {
	index := tlog.StoredHashIndex(0, k.next)
	k.expect(index, h)
	for i := range bits.TrailingZeros64(uint64(k.next) + 1) {
		last := len(k.subtree) - 1
		h = tlog.NodeHash(k.subtree[last], h)
		k.subtree = k.subtree[:last]
		k.expect(index+1+int64(i), h)
	}
	k.subtree = append(k.subtree, h)
	k.next++
	k.reach()
	const batch = 512
	if len(k.pending) >= batch {
		return k.flush()
	}
	return nil
}

func (k *checker) expect(index int64, h tlog.Hash) {
	if k.stored != nil && k.suspect == nil {
		k.pending, k.want = append(k.pending, index), append(k.want, h)
	}
}

// flush compares the waiting hashes with the stored ones.
func (k *checker) flush() error {
	if len(k.pending) == 0 {
		return nil
	}
	pending, want := k.pending, k.want
	k.pending, k.want = pending[:0], want[:0]
	have, err := k.stored.ReadHashes(pending)
	if err == nil && len(have) != len(pending) {
		err = fmt.Errorf("the storage gave %d hashes instead of %d", len(have), len(pending))
	}
	if err != nil {
		return k.unreadable(pending, err)
	}
	for i, h := range have {
		if h == want[i] {
			k.report.Nodes++
			continue
		}
		level, n := tlog.SplitStoredHashIndex(pending[i])
		k.suspect = &suspect{index: lastOf(level, n), level: level, n: n, want: want[i]}
		break
	}
	return nil
}

// unreadable finds out which hash of a batch cannot be read.
func (k *checker) unreadable(indexes []int64, err error) error {
	for _, index := range indexes {
		if _, one := k.stored.ReadHashes([]int64{index}); one != nil {
			level, n := tlog.SplitStoredHashIndex(index)
			return fmt.Errorf("record %d: the stored hash %d cannot be read: %w", lastOf(level, n), index, one)
		}
	}
	return err
}

// lastOf is the record with which the hash (level, n) was stored.
func lastOf(level int, n int64) int64 { return (n+1)<<level - 1 }

// reach compares the root with what was signed for this size.
func (k *checker) reach() {
	for len(k.points) > 0 && k.points[0].Size == k.next {
		p := k.points[0]
		k.points = k.points[1:]
		if k.root() == p.Root {
			k.passed = p.Size
			k.report.Compared = append(k.report.Compared, p.name)
		} else if k.failed == nil {
			k.failed, k.before = &p, k.passed
		}
	}
}

func (k *checker) root() tlog.Hash {
	last := len(k.subtree) - 1
	if last < 0 {
		return emptyRoot()
	}
	h := k.subtree[last]
	for i := last - 1; i >= 0; i-- {
		h = tlog.NodeHash(k.subtree[i], h)
	}
	return h
}

// result names the first thing that does not fit, if any.
func (k *checker) result(src Source, c Checkpoint) (Report, error) {
	k.report.Size = k.next
	if m := k.mismatch(src, c); m != nil {
		return Report{}, m
	}
	return k.report, nil
}

func (k *checker) mismatch(src Source, c Checkpoint) *Mismatch {
	s, f := k.suspect, k.failed
	switch {
	case f != nil && (s == nil || f.Size <= s.index):
		return k.rewritten(*f)
	case s != nil && s.why != "":
		return k.classifyContent(*s)
	case s != nil:
		return k.classifyNode(src, *s)
	case k.stop != nil:
		return k.refine(src, *k.stop)
	case len(k.points) > 0:
		return &Mismatch{Kind: Missing, Index: k.next,
			Detail: fmt.Sprintf("it is missing: the log ends before it, but %s was signed", k.points[0].name)}
	case k.limit > c.Size:
		return &Mismatch{Kind: Missing, Index: c.Size,
			Detail: fmt.Sprintf("the signed checkpoint ends before it, but a remembered one has %s: the log was set back", count(k.limit, "record"))}
	}
	for _, index := range k.report.ErasedAt {
		if _, untold := k.bare[index]; untold {
			return &Mismatch{Kind: ErasedUnauthorised, Index: index,
				Detail: fmt.Sprintf("it was emptied, and no later record of type %q tells of that", ErasureType)}
		}
	}
	return nil
}

// rewritten is for records and hashes that fit each other, but not f.
func (k *checker) rewritten(f point) *Mismatch {
	m := &Mismatch{Kind: RootDiffers, Index: k.before, Detail: "the root differs from that of " + f.name}
	if i, j, ok := k.exchanged(f); ok {
		m.Kind, m.Index = Reordered, i
		m.Detail = fmt.Sprintf("it was exchanged with record %d: with the two in each other's place, the log fits %s", j, f.name)
	} else if last := f.Size - 1; last > k.before {
		m.Detail += fmt.Sprintf(": one of the records %d to %d was replaced together with the hashes stored for it", k.before, last)
	} else {
		m.Detail += ": it was replaced together with the hashes stored for it"
	}
	if k.passed >= f.Size {
		m.Detail += "; a checkpoint that fits them was signed as well, so two histories have been signed"
	}
	return m
}

// innocent reports whether a signed root covers the record as it is now.
func (k *checker) innocent(index int64) bool { return k.passed > index }

func (k *checker) classifyContent(s suspect) *Mismatch {
	right := !s.bare && k.innocent(s.index)
	if !s.bare && !right && k.stored != nil {
		h, err := k.stored.ReadHashes([]int64{tlog.StoredHashIndex(0, s.index)})
		right = err == nil && len(h) == 1 && h[0] == s.want
	}
	if right {
		return &Mismatch{Kind: LeafAltered, Index: s.index, Detail: "the leaf stored beside it was changed; the record itself is what was appended"}
	}
	if other, ok := k.contentOf(s.index); ok {
		return &Mismatch{Kind: Reordered, Index: s.index, Detail: fmt.Sprintf("its content was exchanged with that of record %d", other)}
	}
	return &Mismatch{Kind: Altered, Index: s.index, Detail: s.why}
}

func (k *checker) classifyNode(src Source, s suspect) *Mismatch {
	first := s.n << s.level
	switch {
	case k.innocent(s.index):
		return &Mismatch{Kind: NodeAltered, Index: s.index,
			Detail: fmt.Sprintf("the stored hash %d (level %d) was changed; the records are what was appended", tlog.StoredHashIndex(s.level, s.n), s.level)}
	case s.level > 0:
		return &Mismatch{Kind: Altered, Index: first,
			Detail: fmt.Sprintf("one of the records %d to %d was replaced together with its own hash, or the stored hash %d above them was changed", first, s.index, tlog.StoredHashIndex(s.level, s.n))}
	}
	// Whose hash does this record have, and where is the record of this hash?
	index := tlog.StoredHashIndex(0, s.index)
	stored, err := k.stored.ReadHashes([]int64{index})
	if err != nil || len(stored) != 1 {
		return &Mismatch{Kind: Altered, Index: s.index, Detail: "it does not fit its stored hash"}
	}
	owner, moved := k.findNode(s.want), findRecord(src, func(r Record) bool { return tlog.RecordHash(r.Leaf[:]) == stored[0] })
	m := &Mismatch{Index: s.index}
	switch {
	case owner >= 0 && moved >= 0:
		m.Kind, m.Detail = Reordered, fmt.Sprintf("it is what was appended as record %d; what was appended here is now record %d", owner, moved)
	case owner >= 0:
		m.Kind, m.Detail = Missing, fmt.Sprintf("it was removed; what is here now was appended as record %d", owner)
	case moved >= 0:
		m.Kind, m.Detail = Extra, fmt.Sprintf("it was put in and never signed; what was appended here is now record %d", moved)
	default:
		m.Kind, m.Detail = Altered, "it was replaced together with the leaf stored beside it: they do not give the stored hash"
	}
	return m
}

// findNode is the record that the tree has with this hash, or -1.
func (k *checker) findNode(h tlog.Hash) int64 {
	const batch = 512
	end := max(k.limit, k.next)
	for from := int64(0); from < end; from += batch {
		indexes := make([]int64, 0, batch)
		for n := from; n < min(from+batch, end); n++ {
			indexes = append(indexes, tlog.StoredHashIndex(0, n))
		}
		have, err := k.stored.ReadHashes(indexes)
		if err != nil {
			return -1 // fewer are stored than were signed
		}
		if i := slices.Index(have, h); i >= 0 {
			return from + int64(i)
		}
	}
	return -1
}

// findRecord is the position, counted from 0, of the first record that fits,
// or -1.
func findRecord(src Source, fits func(Record) bool) int64 {
	position := int64(-1)
	err := src.Records(func(r Record) error {
		if position++; fits(r) {
			return errStop
		}
		return nil
	})
	if errors.Is(err, errStop) {
		return position
	}
	return -1
}

// refine tells a record that is gone from one that stands elsewhere.
func (k *checker) refine(src Source, m Mismatch) *Mismatch {
	if m.Kind == Missing && src != nil {
		if at := findRecord(src, func(r Record) bool { return r.Index == m.Index }); at >= 0 {
			return &Mismatch{Kind: Reordered, Index: m.Index, Detail: fmt.Sprintf("it stands in place %d", at)}
		}
	}
	return &m
}
