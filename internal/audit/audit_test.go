package audit

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// memLog is a Storage and Source in memory. Its fields can be tampered with.
type memLog struct {
	records []Record
	hashes  []tlog.Hash
	reads   atomic.Int64 // hashes read
	calls   atomic.Int64 // of ReadHashes
}

func (l *memLog) Size() (int64, error) { return int64(len(l.records)), nil }

func (l *memLog) Put(rec Record, first int64, hashes []tlog.Hash) error {
	if first != int64(len(l.hashes)) || rec.Index != int64(len(l.records)) {
		return fmt.Errorf("record %d with hashes from %d does not follow", rec.Index, first)
	}
	l.records, l.hashes = append(l.records, rec), append(l.hashes, hashes...)
	return nil
}

func (l *memLog) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	l.calls.Add(1)
	l.reads.Add(int64(len(indexes)))
	out := make([]tlog.Hash, len(indexes))
	for i, index := range indexes {
		if index < 0 || index >= int64(len(l.hashes)) {
			return nil, errNoHash
		}
		out[i] = l.hashes[index]
	}
	return out, nil
}

var errNoHash = errors.New("no such hash")

func (l *memLog) Records(yield func(Record) error) error {
	for _, r := range l.records {
		if err := yield(r); err != nil {
			return err
		}
	}
	return nil
}

func (l *memLog) clone() *memLog {
	c := &memLog{hashes: slices.Clone(l.hashes)}
	for _, r := range l.records {
		r.Salt, r.Body = bytes.Clone(r.Salt), bytes.Clone(r.Body)
		c.records = append(c.records, r)
	}
	return c
}

// testRecord is a record whose content depends on n alone.
func testRecord(n int) Record {
	salt := bytes.Repeat([]byte{byte(n), byte(n >> 8)}, SaltSize/2)
	return Record{Type: "request", Time: 1_700_000_000_000 + int64(n), Salt: salt, Body: fmt.Appendf(nil, `{"n":%d,"text":"<&>"}`, n)}
}

func newLog(t testing.TB, size int) *memLog {
	t.Helper()
	l := &memLog{}
	extend(t, l, size)
	return l
}

func extend(t testing.TB, l *memLog, size int) {
	t.Helper()
	for n := len(l.records); n < size; n++ {
		if _, err := Append(l, testRecord(n)); err != nil {
			t.Fatal(err)
		}
	}
}

// authority is a log's key.
type authority struct {
	signer note.Signer
	key    string
}

func newAuthority(t testing.TB, origin string, seed byte) authority {
	t.Helper()
	s, key, err := NewSigner(origin, bytes.Repeat([]byte{seed}, 32))
	if err != nil {
		t.Fatal(err)
	}
	return authority{s, key}
}

func (a authority) sign(t testing.TB, l *memLog, size int64) Checkpoint {
	t.Helper()
	text, err := SignCheckpoint(size, l, a.signer)
	if err != nil {
		t.Fatal(err)
	}
	c, err := OpenCheckpoint(text, a.key)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// The values were computed apart from this code, by the formula in LeafOf's
// comment.
func TestLeafOfGolden(t *testing.T) {
	count := func(from byte) (salt []byte) {
		for i := range byte(SaltSize) {
			salt = append(salt, from+i)
		}
		return salt
	}
	tests := []struct {
		typ  string
		time int64
		salt []byte
		body string
		want string
	}{
		{"request", 1700000000123, count(0), `{"grant":"g1"}`, "56677aad24777a251fa36e54c864afec3acc061d2e2a91f9f439fc8ab1510c7c"},
		{"a", 0, make([]byte, 16), `{}`, "811c0aea7abfe59ba398fe9aec88ff8ca6869d1c6eff30cd04794920a31a1aa0"},
		{"x", -1, bytes.Repeat([]byte{0xff}, 16), `{"text":"häß — \n"}`, "2263514e57747af814cc6919507b294a449b882fb03255589c578dcf69149982"},
		{"decision", 1 << 40, count(16), `{"a":"` + strings.Repeat("b", 1000) + `"}`, "0081e60c793fed4fe94678b4ebb7238a15fd3a9492fde13fddfc11c78d26ddc2"},
	}
	for _, tt := range tests {
		leaf := LeafOf(tt.typ, tt.time, tt.salt, []byte(tt.body))
		if got := hex.EncodeToString(leaf[:]); got != tt.want {
			t.Errorf("LeafOf(%q, %d, %x, %.20q) = %s, want %s", tt.typ, tt.time, tt.salt, tt.body, got, tt.want)
		}
	}
}

func TestLeafOfDependsOnEveryPart(t *testing.T) {
	r := testRecord(1)
	base := LeafOf(r.Type, r.Time, r.Salt, r.Body)
	salt := bytes.Clone(r.Salt)
	salt[15] ^= 1
	for name, leaf := range map[string][32]byte{
		"type":              LeafOf(r.Type+"x", r.Time, r.Salt, r.Body),
		"time":              LeafOf(r.Type, r.Time+1, r.Salt, r.Body),
		"salt":              LeafOf(r.Type, r.Time, salt, r.Body),
		"body":              LeafOf(r.Type, r.Time, r.Salt, append(bytes.Clone(r.Body), ' ')),
		"border type, time": LeafOf(r.Type+"\x00", r.Time>>8, r.Salt, r.Body),
	} {
		if leaf == base {
			t.Errorf("another %s gives the same leaf", name)
		}
	}
	for _, n := range []int{0, 15, 17, 32} {
		if LeafOf(r.Type, r.Time, make([]byte, n), r.Body) != [32]byte{} {
			t.Errorf("a salt of %d bytes gives a leaf", n)
		}
	}
}

func TestAppend(t *testing.T) {
	const size = 1 << 10
	l := newLog(t, size)
	if n := l.reads.Load(); n > size {
		t.Errorf("%d appends read %d hashes, more than one each on average", size, n)
	}
	if n := l.calls.Load(); n > size/2 {
		t.Errorf("%d appends called ReadHashes %d times: half of them need nothing", size, n)
	}
	for i, r := range l.records {
		if r.Index != int64(i) || r.Leaf != LeafOf(r.Type, r.Time, r.Salt, r.Body) {
			t.Fatalf("record %d is %+v", i, r)
		}
	}
	if n := int64(len(l.hashes)); n != tlog.StoredHashCount(size) {
		t.Errorf("%d hashes are stored, want %d", n, tlog.StoredHashCount(size))
	}
}

func TestAppendRefuses(t *testing.T) {
	for name, change := range map[string]func(*Record){
		"no type":         func(r *Record) { r.Type = "" },
		"long type":       func(r *Record) { r.Type = strings.Repeat("a", MaxType+1) },
		"type with quote": func(r *Record) { r.Type = `a"b` },
		"no salt":         func(r *Record) { r.Salt = nil },
		"short salt":      func(r *Record) { r.Salt = r.Salt[1:] },
		"no body":         func(r *Record) { r.Body = nil },
		"array":           func(r *Record) { r.Body = []byte(`[1]`) },
		"two objects":     func(r *Record) { r.Body = []byte(`{}{}`) },
		"leading space":   func(r *Record) { r.Body = []byte(` {}`) },
		"line break":      func(r *Record) { r.Body = []byte("{\n}") },
		"carriage return": func(r *Record) { r.Body = []byte("{\r}") },
		"not UTF-8":       func(r *Record) { r.Body = []byte("{\"a\":\"\xff\"}") },
		"huge body":       func(r *Record) { r.Body = append([]byte(`{"a":"`), make([]byte, MaxLine/2)...) },
	} {
		t.Run(name, func(t *testing.T) {
			l := newLog(t, 3)
			r := testRecord(3)
			change(&r)
			if _, err := Append(l, r); err == nil {
				t.Error("it was appended")
			}
			if len(l.records) != 3 || len(l.hashes) != 4 {
				t.Error("the storage was changed")
			}
		})
	}
}

type brokenStorage struct {
	*memLog
	size       int64
	sizeErr    error
	putErr     error
	hashesLess bool
}

func (b brokenStorage) Size() (int64, error) { return b.size, b.sizeErr }
func (b brokenStorage) Put(Record, int64, []tlog.Hash) error {
	return b.putErr
}
func (b brokenStorage) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	h, err := b.memLog.ReadHashes(indexes)
	if b.hashesLess && len(h) > 0 {
		h = h[1:]
	}
	return h, err
}

func TestAppendOnBrokenStorage(t *testing.T) {
	broken := errors.New("disk on fire")
	for name, s := range map[string]brokenStorage{
		"size":         {sizeErr: broken},
		"negative":     {size: -1},
		"hash missing": {size: 99},
		"hashes less":  {size: 1, hashesLess: true},
		"put":          {size: 2, putErr: broken},
	} {
		t.Run(name, func(t *testing.T) {
			s.memLog = newLog(t, 2)
			if r, err := Append(s, testRecord(9)); err == nil {
				t.Errorf("Append = %+v", r)
			}
		})
	}
}
