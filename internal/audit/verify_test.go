package audit

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/tlog"
)

// whole is a log of some hundred records, some of them erased, with what was
// signed about it.
type whole struct {
	*memLog
	a       authority
	head    Checkpoint
	against []Checkpoint
}

const wholeSize = 300

func newWhole(t testing.TB) whole {
	w := whole{a: newAuthority(t, "vogt/x/log", 1), memLog: newLog(t, 260)}
	for _, n := range []int{17, 18, 250} {
		erase(t, w.memLog, n)
	}
	extend(t, w.memLog, wholeSize)
	w.head = w.a.sign(t, w.memLog, wholeSize)
	w.against = []Checkpoint{w.a.sign(t, w.memLog, 200), w.a.sign(t, w.memLog, 120)}
	return w
}

// erase takes a record's content away and tells of it.
func erase(t testing.TB, l *memLog, n int) {
	t.Helper()
	l.records[n].Salt, l.records[n].Body = nil, nil
	next := testRecord(len(l.records))
	next.Type, next.Body = ErasureType, fmt.Appendf(nil, `{"index":%d,"by":"owner@example.com"}`, n)
	if _, err := Append(l, next); err != nil {
		t.Fatal(err)
	}
}

// rebuild makes all hashes anew from the leaves, as a thorough forger would.
func (l *memLog) rebuild(t testing.TB) {
	t.Helper()
	l.hashes = nil
	for i := range l.records {
		h, err := tlog.StoredHashesForRecordHash(int64(i), tlog.RecordHash(l.records[i].Leaf[:]), l)
		if err != nil {
			t.Fatal(err)
		}
		l.hashes = append(l.hashes, h...)
	}
}

// renumber gives every record the index of its place.
func (l *memLog) renumber() {
	for i := range l.records {
		l.records[i].Index = int64(i)
	}
}

// releaf makes the stored leaf of a record fit its content.
func (l *memLog) releaf(n int) {
	r := &l.records[n]
	r.Leaf = LeafOf(r.Type, r.Time, r.Salt, r.Body)
}

func node(level int, n int64) int64 { return tlog.StoredHashIndex(level, n) }

func TestVerify(t *testing.T) {
	w := newWhole(t)
	report, err := Verify(w, w.head.Text, w.a.key, w.against)
	if err != nil {
		t.Fatal(err)
	}
	if report.Size != wholeSize || report.Erased != 3 || report.Masked != 0 || report.Nodes != int64(len(w.hashes)) || len(report.Compared) != 3 {
		t.Errorf("report is %+v", report)
	}
	text := report.String()
	for _, want := range []string{"300 records of vogt/x/log fit", fmt.Sprintf("%d stored hashes", len(w.hashes)), "Erased: 3 records (17, 18, 250);",
		"a remembered checkpoint of 120 records", "a remembered checkpoint of 200 records", "the signed checkpoint of 300 records",
		"no witness: consistent with this machine's copies only"} {
		if !strings.Contains(text, want) {
			t.Errorf("the report lacks %q:\n%s", want, text)
		}
	}
	report.Witnesses = []string{"witness.example/w1"}
	if text := report.String(); strings.Contains(text, "no witness") || !strings.Contains(text, "Witnessed by: witness.example/w1") {
		t.Errorf("the report with a witness is:\n%s", text)
	}
}

func TestVerifyAtAllSizes(t *testing.T) {
	a := newAuthority(t, "vogt/x/log", 1)
	l := &memLog{}
	var against []Checkpoint
	for size := range 70 {
		extend(t, l, size)
		c := a.sign(t, l, int64(size))
		against = append(against, c)
		if _, err := Verify(l, c.Text, a.key, against); err != nil {
			t.Fatalf("%d records: %v", size, err)
		}
	}
}

func TestVerifyNamesWhatWasTamperedWith(t *testing.T) {
	tests := []struct {
		name   string
		tamper func(t *testing.T, w *whole)
		kind   Kind
		index  int64
		detail string
	}{
		{"body", func(_ *testing.T, w *whole) { w.records[57].Body = []byte(`{"n":58}`) }, Altered, 57, "changed"},
		{"type", func(_ *testing.T, w *whole) { w.records[57].Type = "denial" }, Altered, 57, "changed"},
		{"time", func(_ *testing.T, w *whole) { w.records[57].Time++ }, Altered, 57, "changed"},
		{"salt", func(_ *testing.T, w *whole) { w.records[57].Salt[3] ^= 1 }, Altered, 57, "changed"},
		{"salt cut", func(_ *testing.T, w *whole) { w.records[57].Salt = w.records[57].Salt[:8] }, Altered, 57, "8 bytes"},
		{"salt only erased", func(_ *testing.T, w *whole) { w.records[57].Salt = nil }, Altered, 57, "0 bytes"},
		{"body only erased", func(_ *testing.T, w *whole) { w.records[57].Body = nil }, Altered, 57, "changed"},
		{"two bodies", func(_ *testing.T, w *whole) { w.records[57].Time++; w.records[58].Time++ }, Altered, 57, "changed"},
		{"the first record", func(_ *testing.T, w *whole) { w.records[0].Time++ }, Altered, 0, "changed"},
		{"the last record", func(_ *testing.T, w *whole) { w.records[wholeSize-1].Time++ }, Altered, wholeSize - 1, "changed"},
		{"body and leaf", func(_ *testing.T, w *whole) { w.records[57].Time++; w.releaf(57) }, Altered, 57, "together with the leaf"},
		{"leaf of an erased record", func(_ *testing.T, w *whole) { w.records[17].Leaf[0] ^= 1 }, Altered, 17, "together with the leaf"},
		{"leaf", func(_ *testing.T, w *whole) { w.records[57].Leaf[0] ^= 1 }, LeafAltered, 57, "leaf"},
		{"leaf, and more later", func(_ *testing.T, w *whole) { w.records[57].Leaf[0] ^= 1; w.records[299].Time++ }, LeafAltered, 57, "leaf"},
		{"body, leaf and own hash", func(_ *testing.T, w *whole) {
			w.records[57].Time++
			w.releaf(57)
			w.hashes[node(0, 57)] = tlog.RecordHash(w.records[57].Leaf[:])
		}, Altered, 56, "records 56 to 57"},
		{"body, leaf and all hashes", func(t *testing.T, w *whole) {
			w.records[57].Time++
			w.releaf(57)
			w.rebuild(t)
		}, RootDiffers, 0, "records 0 to 119"},
		{"late body, leaf and all hashes", func(t *testing.T, w *whole) {
			w.records[157].Time++
			w.releaf(157)
			w.rebuild(t)
		}, RootDiffers, 120, "records 120 to 199"},
		{"later body, leaf and all hashes", func(t *testing.T, w *whole) {
			w.records[257].Time++
			w.releaf(257)
			w.rebuild(t)
		}, RootDiffers, 200, "records 200 to 299"},
		{"body, leaf, all hashes and signature", func(t *testing.T, w *whole) {
			w.records[157].Time++
			w.releaf(157)
			w.rebuild(t)
			w.head = w.a.sign(t, w.memLog, wholeSize)
		}, RootDiffers, 120, "two histories"},
		{"lowest node", func(_ *testing.T, w *whole) { w.hashes[node(0, 57)][0] ^= 1 }, NodeAltered, 57, "level 0"},
		{"inner node", func(_ *testing.T, w *whole) { w.hashes[node(3, 5)][0] ^= 1 }, NodeAltered, 47, "level 3"},
		{"top node", func(_ *testing.T, w *whole) { w.hashes[node(8, 0)][0] ^= 1 }, NodeAltered, 255, "level 8"},
		{"last node", func(_ *testing.T, w *whole) { w.hashes[len(w.hashes)-1][0] ^= 1 }, NodeAltered, 299, "level"},
		{"node before a record", func(_ *testing.T, w *whole) { w.hashes[node(0, 56)][0] ^= 1; w.records[57].Time++ }, Altered, 56, "hash"},
		{"record before a node", func(_ *testing.T, w *whole) { w.hashes[node(0, 58)][0] ^= 1; w.records[57].Time++ }, Altered, 57, "changed"},
		{"removed", func(_ *testing.T, w *whole) { w.records = slices.Delete(w.records, 57, 58) }, Missing, 57, "record 58 follows record 56"},
		{"first removed", func(_ *testing.T, w *whole) { w.records = w.records[1:] }, Missing, 0, "begins with record 1"},
		{"removed and renumbered", func(_ *testing.T, w *whole) {
			w.records = slices.Delete(w.records, 57, 58)
			w.renumber()
		}, Missing, 57, "appended as record 58"},
		{"last removed", func(_ *testing.T, w *whole) { w.records = w.records[:wholeSize-1] }, Missing, 299, "ends before it"},
		{"all removed", func(_ *testing.T, w *whole) { w.records = nil }, Missing, 0, "ends before it"},
		{"swapped", func(_ *testing.T, w *whole) {
			w.records[57], w.records[90] = w.records[90], w.records[57]
		}, Reordered, 57, "place 90"},
		{"swapped and renumbered", func(_ *testing.T, w *whole) {
			w.records[57], w.records[90] = w.records[90], w.records[57]
			w.renumber()
		}, Reordered, 57, "appended as record 90"},
		{"swapped, renumbered, and all hashes", func(t *testing.T, w *whole) {
			w.records[57], w.records[90] = w.records[90], w.records[57]
			w.renumber()
			w.rebuild(t)
		}, Reordered, 57, "exchanged with record 90"},
		{"neighbours swapped, renumbered, and all hashes", func(t *testing.T, w *whole) {
			w.records[157], w.records[158] = w.records[158], w.records[157]
			w.renumber()
			w.rebuild(t)
		}, Reordered, 157, "exchanged with record 158"},
		{"content swapped", func(_ *testing.T, w *whole) {
			a, b := w.records[57], w.records[90]
			w.records[57], w.records[90] = b, a
			w.renumber()
			w.records[57].Leaf, w.records[90].Leaf = a.Leaf, b.Leaf
		}, Reordered, 57, "exchanged with that of record 90"},
		{"emptied", func(_ *testing.T, w *whole) { w.records[57].Salt, w.records[57].Body = nil, nil }, ErasedUnauthorised, 57, "was emptied"},
		{"two emptied", func(_ *testing.T, w *whole) {
			for _, n := range []int{90, 57} {
				w.records[n].Salt, w.records[n].Body = nil, nil
			}
		}, ErasedUnauthorised, 57, "was emptied"},
		{"the record of an erasure emptied", func(_ *testing.T, w *whole) { w.records[260].Salt, w.records[260].Body = nil, nil }, ErasedUnauthorised, 17, "was emptied"},
		{"an erasure told of only by what was changed", func(_ *testing.T, w *whole) {
			w.records[57].Salt, w.records[57].Body = nil, nil
			w.records[90].Type, w.records[90].Body = ErasureType, []byte(`{"index":57}`)
		}, Altered, 90, "changed"},
		{"twice", func(_ *testing.T, w *whole) { w.records = slices.Insert(w.records, 58, w.records[57]) }, Reordered, 57, "stands after record 57"},
		{"put in and renumbered", func(_ *testing.T, w *whole) {
			w.records = slices.Insert(w.records, 57, testRecord(1000))
			w.releaf(57)
			w.renumber()
		}, Extra, 57, "put in"},
		{"added", func(t *testing.T, w *whole) { extend(t, w.memLog, wholeSize+2) }, Extra, wholeSize, "never signed"},
		{"set back and signed", func(t *testing.T, w *whole) {
			w.memLog = newLog(t, 150)
			w.head = w.a.sign(t, w.memLog, 150)
		}, Missing, 150, "remembered checkpoint of 200"},
		{"older checkpoint", func(t *testing.T, w *whole) { w.head = w.a.sign(t, w.memLog, 150) }, Extra, 200, "never signed"},
		{"older checkpoint than remembered", func(t *testing.T, w *whole) {
			w.against = append(w.against, w.head)
			w.head = w.a.sign(t, w.memLog, 150)
		}, Missing, 150, "set back"},
		{"another log's checkpoint", func(t *testing.T, w *whole) {
			b := newAuthority(t, "vogt/y/log", 1)
			w.head = b.sign(t, w.memLog, wholeSize)
		}, BadCheckpoint, -1, "no signature by vogt/x/log"},
		{"checkpoint by another key", func(t *testing.T, w *whole) {
			b := newAuthority(t, "vogt/x/log", 2)
			w.head = b.sign(t, w.memLog, wholeSize)
		}, BadCheckpoint, -1, "no signature"},
		{"checkpoint changed", func(_ *testing.T, w *whole) { w.head.Text = strings.Replace(w.head.Text, "300", "299", 1) }, BadCheckpoint, -1, "invalid signature"},
		{"another log remembered", func(_ *testing.T, w *whole) { w.against[0].Origin = "vogt/y/log" }, BadCheckpoint, -1, "vogt/y/log"},
	}
	original := newWhole(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := original
			w.memLog, w.against = original.clone(), slices.Clone(original.against)
			tt.tamper(t, &w)
			report, err := Verify(w, w.head.Text, w.a.key, w.against)
			m := (*Mismatch)(nil)
			if !errors.As(err, &m) {
				t.Fatalf("Verify = %+v, %v", report, err)
			}
			if m.Kind != tt.kind || m.Index != tt.index || !strings.Contains(m.Error(), tt.detail) {
				t.Errorf("got %s of %d: %v\nwant %s of %d with %q", m.Kind, m.Index, m, tt.kind, tt.index, tt.detail)
			}
		})
	}
}

func TestReportOfManyErasures(t *testing.T) {
	r := Report{Origin: "vogt/x/log", Size: 40, Erased: 12, ErasedAt: []int64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}}
	if text := r.String(); !strings.Contains(text, "(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, …)") {
		t.Errorf("the report is:\n%s", text)
	}
}

// Every single change of every part is found, in logs of many shapes.
func TestVerifyFindsEveryChange(t *testing.T) {
	a := newAuthority(t, "vogt/x/log", 1)
	for _, size := range []int{1, 2, 3, 7, 8, 13} {
		l := newLog(t, size)
		c := a.sign(t, l, int64(size))
		try := func(what string, i int, l *memLog) {
			m := (*Mismatch)(nil)
			if _, err := Verify(l, c.Text, a.key, nil); !errors.As(err, &m) {
				t.Errorf("%d records, %s %d changed: %v", size, what, i, err)
			} else if what != "hash" && m.Index != int64(i) {
				t.Errorf("%d records, %s %d changed: %v", size, what, i, err)
			}
		}
		for i := range l.records {
			for what, change := range map[string]func(*Record){
				"type": func(r *Record) { r.Type += "x" },
				"time": func(r *Record) { r.Time-- },
				"salt": func(r *Record) { r.Salt[0] ^= 0x80 },
				"body": func(r *Record) { r.Body[len(r.Body)-2] ^= 1 },
				"leaf": func(r *Record) { r.Leaf[31] ^= 1 },
			} {
				d := l.clone()
				change(&d.records[i])
				try(what, i, d)
			}
		}
		for i := range l.hashes {
			d := l.clone()
			d.hashes[i][5] ^= 4
			try("hash", i, d)
		}
	}
}

// sourceFunc is a Source with its own way of reading hashes.
type sourceFunc struct {
	*memLog
	read func([]int64) ([]tlog.Hash, error)
	err  error
}

func (s sourceFunc) ReadHashes(indexes []int64) ([]tlog.Hash, error) { return s.read(indexes) }
func (s sourceFunc) Records(yield func(Record) error) error {
	if err := s.memLog.Records(yield); err != nil {
		return err
	}
	return s.err
}

func TestVerifyUnreadableLog(t *testing.T) {
	w := newWhole(t)
	broken := errors.New("disk on fire")
	m := (*Mismatch)(nil)

	_, err := Verify(sourceFunc{w.memLog, w.memLog.ReadHashes, broken}, w.head.Text, w.a.key, nil)
	if !errors.Is(err, broken) || errors.As(err, &m) {
		t.Errorf("records unreadable: %v", err)
	}
	_, err = Verify(sourceFunc{w.memLog, func(indexes []int64) ([]tlog.Hash, error) {
		if slices.Contains(indexes, node(0, 57)) {
			return nil, broken
		}
		return w.memLog.ReadHashes(indexes)
	}, nil}, w.head.Text, w.a.key, nil)
	if !errors.Is(err, broken) || errors.As(err, &m) || !strings.Contains(err.Error(), "record 57") {
		t.Errorf("hash unreadable: %v", err)
	}
	_, err = Verify(sourceFunc{w.memLog, func([]int64) ([]tlog.Hash, error) { return nil, nil }, nil}, w.head.Text, w.a.key, nil)
	if err == nil || errors.As(err, &m) {
		t.Errorf("no hashes: %v", err)
	}
}

// An erasure counts only as later records tell of it.
func TestErasureMustBeTold(t *testing.T) {
	a := newAuthority(t, "vogt/x/log", 1)
	for _, tt := range []struct {
		name, typ, body string
		before, ok      bool
	}{
		{name: "told", typ: ErasureType, body: `{"index":5}`, ok: true},
		{name: "told with more words", typ: ErasureType, body: `{"by":"a","index":5,"why":"b"}`, ok: true},
		{name: "another index", typ: ErasureType, body: `{"index":4}`},
		{name: "no index", typ: ErasureType, body: `{"by":"a"}`},
		{name: "index null", typ: ErasureType, body: `{"index":null}`},
		{name: "index as text", typ: ErasureType, body: `{"index":"5"}`},
		{name: "another type", typ: "request", body: `{"index":5}`},
		{name: "told before", typ: ErasureType, body: `{"index":5}`, before: true},
	} {
		l := newLog(t, 3)
		tell := func() {
			r := testRecord(len(l.records))
			r.Type, r.Body = tt.typ, []byte(tt.body)
			if _, err := Append(l, r); err != nil {
				t.Fatal(err)
			}
		}
		if tt.before {
			tell()
		}
		extend(t, l, 8)
		if !tt.before {
			tell()
		}
		extend(t, l, 12)
		l.records[5].Salt, l.records[5].Body = nil, nil
		head := a.sign(t, l, 12)
		_, err := Verify(l, head.Text, a.key, nil)
		m, _ := errors.AsType[*Mismatch](err)
		if tt.ok && err != nil || !tt.ok && (m == nil || m.Kind != ErasedUnauthorised || m.Index != 5) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

// In a small log the pair is found even when all times are the same.
func TestExchangedWithoutTimes(t *testing.T) {
	a := newAuthority(t, "vogt/x/log", 1)
	l := &memLog{}
	for n := range 20 {
		r := testRecord(n)
		r.Time = 1
		if _, err := Append(l, r); err != nil {
			t.Fatal(err)
		}
	}
	head := a.sign(t, l, 20)
	l.records[3], l.records[11] = l.records[11], l.records[3]
	l.renumber()
	l.rebuild(t)
	_, err := Verify(l, head.Text, a.key, nil)
	if m, ok := errors.AsType[*Mismatch](err); !ok || m.Kind != Reordered || m.Index != 3 || !strings.Contains(m.Detail, "record 11") {
		t.Errorf("got %v", err)
	}
}
