package audit

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
)

// exported is a log as an export: record 2 erased, record 4 masked.
func exported(t testing.TB, size int) (text string, a authority, against []Checkpoint) {
	t.Helper()
	a = newAuthority(t, "vogt/x/log", 1)
	l := newLog(t, 3)
	told := testRecord(3)
	told.Type, told.Body = ErasureType, []byte(`{"index":2}`)
	if _, err := Append(l, told); err != nil {
		t.Fatal(err)
	}
	extend(t, l, size)
	head := a.sign(t, l, int64(size))
	against = []Checkpoint{a.sign(t, l, int64(size/2))}
	var b bytes.Buffer
	e := NewExporter(&b)
	for _, r := range l.records {
		if r.Index == 2 {
			r.Salt, r.Body = nil, nil
		}
		if r.Index == 4 {
			r.Body = []byte(`{"n":"[masked]"}`)
		}
		if err := e.Record(r, r.Index == 4); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Close(head.Text); err != nil {
		t.Fatal(err)
	}
	return b.String(), a, against
}

func TestExportForm(t *testing.T) {
	text, _, _ := exported(t, 5)
	lines := strings.SplitAfter(text, "\n")
	if len(lines) != 7 || lines[6] != "" {
		t.Fatalf("the export has %d lines", len(lines)-1)
	}
	for i, want := range map[int]string{
		0: `{"index":0,"type":"request","time":1700000000000,"salt":"00000000000000000000000000000000","leaf":"`,
		1: `"body":{"n":1,"text":"<&>"}}`,
		2: `","erased":true}`,
		4: `","masked":true,"body":{"n":"[masked]"}}`,
		5: `{"checkpoint":"vogt/x/log\n5\n`,
	} {
		if !strings.Contains(lines[i], want) {
			t.Errorf("line %d lacks %s: %s", i, want, lines[i])
		}
	}
	for _, i := range []int{2, 4} {
		if strings.Contains(lines[i], "salt") {
			t.Errorf("line %d has a salt: %s", i, lines[i])
		}
	}
}

func TestVerifyExport(t *testing.T) {
	text, a, against := exported(t, 100)
	report, err := VerifyExport(strings.NewReader(text), a.key, against)
	if err != nil {
		t.Fatal(err)
	}
	if report.Size != 100 || report.Erased != 1 || report.Masked != 1 || len(report.Compared) != 2 || report.Nodes != 0 {
		t.Errorf("report is %+v", report)
	}
	for _, want := range []string{"100 records", "Erased: 1 record (2);", "Masked: 1 record;", "not what is shown"} {
		if !strings.Contains(report.String(), want) {
			t.Errorf("the report lacks %q:\n%s", want, report)
		}
	}

	e, checkpoint, err := ReadExport(iotest{strings.NewReader(text)})
	if err != nil {
		t.Fatal(err)
	}
	again, err := Verify(e, checkpoint, a.key, against)
	if err != nil {
		t.Fatal(err)
	}
	if again.Size != 100 || again.Erased != 1 || again.Masked != 1 || !e.Masked(4) || e.Masked(5) || e.Masked(-1) || e.Masked(100) {
		t.Errorf("report of the export in memory is %+v", again)
	}
	p, err := ProveInclusion(7, 100, e)
	if err != nil {
		t.Fatal(err)
	}
	c, err := OpenCheckpoint(checkpoint, a.key)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Verify(e.records[7].Leaf, c); err != nil {
		t.Errorf("proof made from the export: %v", err)
	}
}

// iotest gives one byte at a time.
type iotest struct{ r io.Reader }

func (o iotest) Read(p []byte) (int, error) { return o.r.Read(p[:min(1, len(p))]) }

func TestEmptyExport(t *testing.T) {
	a := newAuthority(t, "vogt/x/log", 1)
	var b bytes.Buffer
	if err := NewExporter(&b).Close(a.sign(t, &memLog{}, 0).Text); err != nil {
		t.Fatal(err)
	}
	if report, err := VerifyExport(&b, a.key, nil); err != nil || report.Size != 0 {
		t.Errorf("VerifyExport = %+v, %v", report, err)
	}
}

func TestVerifyExportNamesWhatWasTamperedWith(t *testing.T) {
	original, a, against := exported(t, 100)
	l := newLog(t, 100)
	line := func(s string, n int) string { return strings.SplitAfter(s, "\n")[n] }
	leafOf := func(n int) string {
		_, rest, _ := strings.Cut(line(original, n), `"leaf":"`)
		return rest[:64]
	}
	tests := []struct {
		name   string
		tamper func(string) string
		kind   Kind // empty for an export that cannot be read
		index  int64
		detail string
	}{
		{"body", func(s string) string { return strings.Replace(s, `{"n":57,`, `{"n":58,`, 1) }, Altered, 57, "changed"},
		{"time", func(s string) string { return strings.Replace(s, `"time":1700000000057`, `"time":1700000000058`, 1) }, Altered, 57, "changed"},
		{"type", func(s string) string {
			return strings.Replace(s, `"index":57,"type":"request"`, `"index":57,"type":"refusal"`, 1)
		}, Altered, 57, "changed"},
		{"salt", func(s string) string { return strings.Replace(s, `"salt":"3900`, `"salt":"3901`, 1) }, Altered, 57, "changed"},
		{"leaf", func(s string) string { return strings.Replace(s, leafOf(57), leafOf(58), 1) }, LeafAltered, 57, "leaf"},
		{"body and leaf", func(s string) string {
			r := l.records[57]
			r.Body = []byte(`{}`)
			r.Leaf = LeafOf(r.Type, r.Time, r.Salt, r.Body)
			return strings.Replace(s, line(s, 57), string(exportLine{Record: r}.append(nil)), 1)
		}, RootDiffers, 50, "records 50 to 99"},
		{"leaf of the erased", func(s string) string { return strings.Replace(s, leafOf(2), leafOf(3), 1) }, RootDiffers, 0, "records 0 to 49"},
		{"leaf of the masked", func(s string) string { return strings.Replace(s, leafOf(4), leafOf(3), 1) }, RootDiffers, 0, "records 0 to 49"},
		{"removed", func(s string) string { return strings.Replace(s, line(s, 57), "", 1) }, Missing, 57, "missing"},
		{"swapped", func(s string) string {
			return strings.Replace(s, line(s, 57)+line(s, 58), line(s, 58)+line(s, 57), 1)
		}, Missing, 57, "record 58 follows"},
		{"twice", func(s string) string { return strings.Replace(s, line(s, 57), line(s, 57)+line(s, 57), 1) }, Reordered, 57, "after record 57"},
		{"last removed", func(s string) string { return strings.Replace(s, line(s, 99), "", 1) }, Missing, 99, "ends before"},
		{"added", func(s string) string {
			r := testRecord(100)
			r.Index, r.Leaf = 100, LeafOf(r.Type, r.Time, r.Salt, r.Body)
			return strings.Replace(s, line(s, 99), line(s, 99)+string(exportLine{Record: r}.append(nil)), 1)
		}, Extra, 100, "never signed"},
		{"checkpoint", func(s string) string { return strings.Replace(s, `vogt/x/log\n100\n`, `vogt/x/log\n101\n`, 1) }, BadCheckpoint, -1, "signature"},

		{"no checkpoint", func(s string) string { return strings.Replace(s, line(s, 100), "", 1) }, "", 0, "cut off"},
		{"cut in a line", func(s string) string { return s[:5000] }, "", 0, "cut off"},
		{"empty", func(string) string { return "" }, "", 0, "cut off"},
		{"more after the checkpoint", func(s string) string { return s + "\n" }, "", 0, "not the last line"},
		{"empty line", func(s string) string { return strings.Replace(s, line(s, 5), "\n"+line(s, 5), 1) }, "", 0, "line 6"},
		{"not JSON", func(s string) string { return "x\n" + s }, "", 0, "line 1"},
		{"two bodies", func(s string) string {
			return strings.Replace(s, `"body":{"n":57,`, `"body":{},"body":{"n":57,`, 1)
		}, "", 0, "line 58"},
		{"a body in capitals", func(s string) string {
			return strings.Replace(s, `"body":{"n":57,`, `"Body":{},"body":{"n":57,`, 1)
		}, "", 0, "line 58"},
		{"an unknown field", func(s string) string { return strings.Replace(s, `{"index":57,`, `{"note":1,"index":57,`, 1) }, "", 0, "line 58"},
		{"a space", func(s string) string { return strings.Replace(s, `{"index":57,`, `{ "index":57,`, 1) }, "", 0, "line 58"},
		{"a leaf in capitals", func(s string) string { return strings.Replace(s, leafOf(57), strings.ToUpper(leafOf(57)), 1) }, "", 0, "line 58"},
		{"a short leaf", func(s string) string { return strings.Replace(s, leafOf(57), leafOf(57)[:62], 1) }, "", 0, "line 58"},
		{"erased and a body", func(s string) string {
			return strings.Replace(s, `,"erased":true}`, `,"erased":true,"body":{}}`, 1)
		}, "", 0, "line 3"},
		{"body null", func(s string) string { return strings.Replace(s, `{"n":57,"text":"<&>"}`, `null`, 1) }, "", 0, "line 58"},
		{"a short salt", func(s string) string { return strings.Replace(s, `"salt":"3900`, `"salt":"`, 1) }, "", 0, "line 58"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tampered := tt.tamper(original)
			if tampered == original {
				t.Fatal("nothing was changed")
			}
			report, err := VerifyExport(strings.NewReader(tampered), a.key, against)
			m := (*Mismatch)(nil)
			switch {
			case err == nil || !strings.Contains(err.Error(), tt.detail):
				t.Errorf("VerifyExport = %+v, %v; want %q", report, err, tt.detail)
			case tt.kind == "" && errors.As(err, &m):
				t.Errorf("got a mismatch: %v", err)
			case tt.kind != "" && (!errors.As(err, &m) || m.Kind != tt.kind || m.Index != tt.index):
				t.Errorf("got %v, want %s of %d", err, tt.kind, tt.index)
			}
			if _, _, err := ReadExport(strings.NewReader(tampered)); tt.kind == "" && err == nil {
				t.Error("ReadExport accepts it")
			}
		})
	}
}

func TestExporterRefuses(t *testing.T) {
	l := newLog(t, 3)
	a := newAuthority(t, "vogt/x/log", 1)
	e := NewExporter(io.Discard)
	if err := e.Record(l.records[1], false); err == nil {
		t.Error("it begins with record 1")
	}
	for name, change := range map[string]func(*Record){
		"body with a line break": func(r *Record) { r.Body = []byte("{\n}") },
		"body that is no JSON":   func(r *Record) { r.Body = []byte("x") },
		"type with a quote":      func(r *Record) { r.Type = `"` },
		"half erased":            func(r *Record) { r.Salt = nil },
	} {
		r := l.records[0]
		change(&r)
		if err := e.Record(r, false); err == nil || !strings.Contains(err.Error(), "record 0") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := e.Record(l.records[0], false); err != nil {
		t.Fatal(err)
	}
	if err := e.Record(l.records[0], false); err == nil {
		t.Error("record 0 comes twice")
	}
	if err := e.Close(a.sign(t, l, 3).Text); err == nil {
		t.Error("it was closed with a checkpoint of more records")
	}
	if err := e.Close("x"); err == nil {
		t.Error("it was closed with no checkpoint")
	}
	broken := errors.New("disk full")
	e = NewExporter(failingWriter{broken})
	if err := errors.Join(e.Record(l.records[0], false), e.Close(a.sign(t, l, 1).Text)); !errors.Is(err, broken) {
		t.Errorf("on a broken writer: %v", err)
	}
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }

func TestExportLineLimit(t *testing.T) {
	text, _, _ := exported(t, 5)
	all := func(exportLine) error { return nil }
	const mib = 1 << 20
	_, err := readExport(io.MultiReader(strings.NewReader(text[:strings.IndexByte(text, '\n')+1]), endlessLine{}), mib, all)
	if err == nil || !strings.Contains(err.Error(), "line 2: it is longer than 1 MiB") {
		t.Errorf("a line that does not end: %v", err)
	}
	longest := 0
	for _, line := range strings.SplitAfter(text, "\n") {
		longest = max(longest, len(line))
	}
	if _, err := readExport(strings.NewReader(text), longest, all); err != nil {
		t.Errorf("lines up to the limit: %v", err)
	}
	if _, err := readExport(strings.NewReader(text), longest-1, all); err == nil {
		t.Error("a line above the limit was read")
	}
}

// endlessLine is a reader that never gives a line break.
type endlessLine struct{}

func (endlessLine) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func FuzzExport(f *testing.F) {
	text, a, against := exported(f, 7)
	f.Add([]byte(text))
	for _, l := range strings.SplitAfter(text, "\n") {
		f.Add([]byte(l))
	}
	f.Add([]byte(`{"index":0,"type":"a","time":-1,"salt":"00000000000000000000000000000000","leaf":"` + strings.Repeat("0", 64) + `","body":{"a":"\u003c<"}}` + "\n" + `{"checkpoint":""}` + "\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		e, checkpoint, err := ReadExport(bytes.NewReader(data))
		if err == nil {
			var b []byte
			for _, l := range e.records {
				b = l.append(b)
			}
			if b = appendCheckpoint(b, checkpoint); !bytes.Equal(b, data) {
				t.Errorf("%q is read like %q", data, b)
			}
		}
		if _, err := VerifyExport(bytes.NewReader(data), a.key, against); err == nil && string(data) != text && !onlyUnprovenDiffers(string(data), text) {
			t.Errorf("verified: %q", data)
		}
	})
}

// onlyUnprovenDiffers reports whether two exports differ only in what no
// verified leaf covers: the masked record, the erased one, and signatures of
// others on the checkpoint.
func onlyUnprovenDiffers(a, b string) bool {
	x, y := strings.SplitAfter(a, "\n"), strings.SplitAfter(b, "\n")
	if len(x) != len(y) {
		return false
	}
	for i := range x {
		if x[i] != y[i] && i != 2 && i != 4 && i != len(x)-2 {
			return false
		}
	}
	return true
}

// An export that ends early is told apart from one that is wrong: how far it
// came, and what the authority said.
func TestExportThatEndsEarly(t *testing.T) {
	text, a, against := exported(t, 100)
	lines := strings.SplitAfter(text, "\n")
	whole := strings.Join(lines[:58], "")
	const problem = `{"problem":{"type":"about:blank","title":"The authority is stopping","status":503,"detail":"Try again.","hint":"later"}}` + "\n"
	cut := errors.New("connection reset")
	for _, tt := range []struct {
		name    string
		in      io.Reader
		records int64
		want    string
		problem bool
		cause   error
	}{
		{"between lines", strings.NewReader(whole), 58, "after 58 records", false, nil},
		{"within a line", strings.NewReader(whole + lines[58][:20]), 58, "after 58 records", false, nil},
		{"nothing", strings.NewReader(""), 0, "after 0 records", false, nil},
		{"broken off", io.MultiReader(strings.NewReader(whole), failing{cut}), 58, "connection reset", false, cut},
		{"with a problem", strings.NewReader(whole + problem), 58, "could not go on: \"Try again.\"", true, nil},
		{"only a problem", strings.NewReader(problem), 0, "could not go on", true, nil},
	} {
		_, err := VerifyExport(tt.in, a.key, against)
		e, ok := errors.AsType[*EndedEarly](err)
		if !ok || e.Records != tt.records || !strings.Contains(err.Error(), tt.want) || (e.Problem != nil) != tt.problem || tt.cause != nil && !errors.Is(err, tt.cause) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	// It ends the export: nothing that follows is believed.
	if _, err := VerifyExport(strings.NewReader(problem+text), a.key, against); err == nil {
		t.Error("an export went on after its problem")
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
