package audit

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/tlog"
)

// MaxLine is the greatest length of a line of an export in bytes.
const MaxLine = 64 << 20

// Exporter writes a whole log as JSON lines:
//
//	{"index":0,"type":"…","time":…,"salt":"hex","leaf":"hex","body":{…}}
//	{"index":1,"type":"…","time":…,"leaf":"hex","erased":true}
//	{"index":2,"type":"…","time":…,"leaf":"hex","masked":true,"body":{…}}
//	{"checkpoint":"…"}
//
// An authority that cannot go on says so in a last line {"problem":{…}}, an RFC
// 9457 problem document, instead of the checkpoint; readers return an
// *EndedEarly.
//
// A body is written byte for byte, since the leaf is over its bytes. A masked
// record has no salt: with it, what was masked could be guessed and checked.
type Exporter struct {
	w    *bufio.Writer
	next int64
	line []byte
}

// NewExporter writes to w, which stays open.
func NewExporter(w io.Writer) *Exporter {
	return &Exporter{w: bufio.NewWriterSize(w, 64<<10)}
}

// Record writes the next record, beginning with index 0. masked says that the
// body is not the one that was appended, but one with secrets taken out.
func (e *Exporter) Record(rec Record, masked bool) error {
	if rec.Index != e.next {
		return fmt.Errorf("audit: export: record %d comes where record %d must be; verify the log to see what is wrong", rec.Index, e.next)
	}
	l := exportLine{Record: rec, masked: masked}
	if err := l.check(); err != nil {
		return fmt.Errorf("audit: export record %d: %w; verify the log to see what is wrong", rec.Index, err)
	}
	e.line = l.append(e.line[:0])
	if len(e.line) > MaxLine {
		return fmt.Errorf("audit: export record %d: its line has %d bytes, at most %d are readable", rec.Index, len(e.line), MaxLine)
	}
	if _, err := e.w.Write(e.line); err != nil {
		return fmt.Errorf("audit: export: %w", err)
	}
	e.next++
	return nil
}

// Close writes the checkpoint, which must be of exactly the records written.
func (e *Exporter) Close(checkpointText string) error {
	head, _, _ := strings.Cut(checkpointText, "\n\n")
	c, _, err := ParseTreeHead(head + "\n")
	if err != nil {
		return fmt.Errorf("audit: export: %w", err)
	}
	if c.Size != e.next {
		return fmt.Errorf("audit: export: %s written, but the checkpoint is of %d", count(e.next, "record"), c.Size)
	}
	e.w.Write(appendCheckpoint(nil, checkpointText)) // an error stays until Flush
	if err := e.w.Flush(); err != nil {
		return fmt.Errorf("audit: export: %w", err)
	}
	return nil
}

// exportLine is a record in an export.
type exportLine struct {
	Record
	masked bool
}

func (l exportLine) check() error {
	if err := checkType(l.Type); err != nil {
		return err
	}
	switch {
	case l.Index < 0 || l.Index >= maxSize:
		return fmt.Errorf("it cannot have the index %d", l.Index)
	case l.masked:
		return checkBody(l.Body)
	case l.Erased():
		return nil
	}
	return checkContent(l.Record)
}

// append writes the only form that is read again: one spelling of each record
// means that no two readers can see two different ones.
func (l exportLine) append(b []byte) []byte {
	b = append(b, `{"index":`...)
	b = strconv.AppendInt(b, l.Index, 10)
	b = append(b, `,"type":"`...)
	b = append(b, l.Type...) // checkType lets nothing pass that needs quoting
	b = append(b, `","time":`...)
	b = strconv.AppendInt(b, l.Time, 10)
	if !l.masked && !l.Erased() {
		b = append(b, `,"salt":"`...)
		b = hex.AppendEncode(b, l.Salt)
		b = append(b, '"')
	}
	b = append(b, `,"leaf":"`...)
	b = hex.AppendEncode(b, l.Leaf[:])
	b = append(b, '"')
	switch {
	case l.masked:
		b = append(b, `,"masked":true,"body":`...)
		b = append(b, l.Body...)
	case l.Erased():
		b = append(b, `,"erased":true`...)
	default:
		b = append(b, `,"body":`...)
		b = append(b, l.Body...)
	}
	return append(b, "}\n"...)
}

func appendCheckpoint(b []byte, text string) []byte {
	quoted, err := json.Marshal(text)
	if err != nil {
		panic(err) // a string can always be marshalled
	}
	b = append(b, `{"checkpoint":`...)
	b = append(b, quoted...)
	return append(b, "}\n"...)
}

// Problem is what an authority says when it cannot finish an export.
type Problem struct {
	Title  string `json:"title"`
	Detail string `json:"detail"`
	Hint   string `json:"hint"`
	Status int    `json:"status"`
}

// EndedEarly is an export without its end: nothing in it is proven, however far
// it came.
type EndedEarly struct {
	Records int64    // whole records that were read
	Problem *Problem // what the authority said about it; nil when nothing
	Err     error    // why reading failed; nil when the export just ended
}

func (e *EndedEarly) Error() string {
	text := fmt.Sprintf("audit: export: it ends after %s without a checkpoint", count(e.Records, "record"))
	switch {
	case e.Problem != nil:
		return text + ": the authority could not go on: " + e.Problem.text()
	case e.Err != nil:
		return fmt.Sprintf("%s: it was cut off: %v", text, e.Err)
	}
	return text + ": it was cut off"
}

func (e *EndedEarly) Unwrap() error { return e.Err }

// Mismatch is the verdict on a log of size records whose export ended early. A
// size of zero is unknown.
func (e *EndedEarly) Mismatch(size int64) *Mismatch {
	m := &Mismatch{Kind: Missing, Index: e.Records, cause: e}
	switch {
	case size > e.Records:
		m.Detail = fmt.Sprintf("it is missing: the export ended after %d of %s", e.Records, count(size, "record"))
	case size > 0:
		m.Detail = fmt.Sprintf("the export ended after %s, before the checkpoint that must follow", count(e.Records, "record"))
	default:
		m.Detail = fmt.Sprintf("it or the checkpoint is missing: the export ended after %s", count(e.Records, "record"))
	}
	switch {
	case e.Problem != nil:
		m.Detail += "; the authority says: " + e.Problem.text()
	case e.Err != nil:
		m.Detail += ": " + e.Err.Error()
	}
	return m
}

// text is the detail, which stands alone, or what there is of the rest, in
// quotes: they are words of a stranger.
func (p Problem) text() string {
	switch {
	case p.Detail != "":
		return fmt.Sprintf("%.500q", p.Detail)
	case p.Title != "":
		return fmt.Sprintf("%.500q", p.Title)
	}
	return fmt.Sprintf("status %d", p.Status)
}

// parseProblem reads the last line of an export that could not be finished.
func parseProblem(line []byte) *Problem {
	var v struct {
		Problem *Problem `json:"problem"`
	}
	if !bytes.HasPrefix(line, []byte(`{"problem":`)) || json.Unmarshal(line, &v) != nil {
		return nil
	}
	return v.Problem
}

// parseLine reads one line with its newline: a record, or the checkpoint.
func parseLine(line []byte) (rec exportLine, checkpoint *string, err error) {
	var v struct {
		Index      int64           `json:"index"`
		Type       string          `json:"type"`
		Time       int64           `json:"time"`
		Salt       string          `json:"salt"`
		Leaf       string          `json:"leaf"`
		Erased     bool            `json:"erased"`
		Masked     bool            `json:"masked"`
		Body       json.RawMessage `json:"body"`
		Checkpoint *string         `json:"checkpoint"`
	}
	if err := json.Unmarshal(line, &v); err != nil {
		return exportLine{}, nil, fmt.Errorf("it is not a JSON object of an export: %v", err)
	}
	var again []byte
	if v.Checkpoint != nil {
		again = appendCheckpoint(nil, *v.Checkpoint)
	} else {
		leaf, err := hex.DecodeString(v.Leaf)
		if err != nil || len(leaf) != len(rec.Leaf) {
			return exportLine{}, nil, fmt.Errorf("the leaf %.80q is not 32 bytes in hex", v.Leaf)
		}
		rec = exportLine{Record{Index: v.Index, Type: v.Type, Time: v.Time, Leaf: [32]byte(leaf)}, v.Masked}
		if !v.Erased {
			rec.Body = v.Body
		}
		if !v.Erased && !v.Masked {
			if rec.Salt, err = hex.DecodeString(v.Salt); err != nil {
				return exportLine{}, nil, fmt.Errorf("the salt %.80q is not hex", v.Salt)
			}
		}
		if err := rec.check(); err != nil {
			return exportLine{}, nil, err
		}
		again = rec.append(nil)
	}
	if !bytes.Equal(again, line) {
		return exportLine{}, nil, errors.New("it is not spelled as an exporter spells it; keep the file as it was written")
	}
	return rec, v.Checkpoint, nil
}

// readExport calls yield for every record and returns the checkpoint. No line
// may be longer than limit.
func readExport(r io.Reader, limit int, yield func(exportLine) error) (string, error) {
	lines := bufio.NewReaderSize(r, 64<<10)
	var buf []byte
	for n := 1; ; n++ {
		line, err := readLine(lines, buf[:0], limit)
		early := &EndedEarly{Records: int64(n - 1)}
		switch {
		case errors.Is(err, errTooLong):
			return "", fmt.Errorf("audit: export: line %d: it is longer than %d MiB", n, limit>>20)
		case err == io.EOF:
			return "", early
		case err != nil:
			early.Err = err
			return "", early
		}
		if early.Problem = parseProblem(line); early.Problem != nil {
			return "", early
		}
		rec, checkpoint, err := parseLine(line)
		if err != nil {
			return "", fmt.Errorf("audit: export: line %d: %w", n, err)
		}
		if checkpoint != nil {
			if _, err := lines.ReadByte(); err != io.EOF {
				return "", fmt.Errorf("audit: export: line %d: the checkpoint is not the last line", n)
			}
			return *checkpoint, nil
		}
		if err := yield(rec); err != nil {
			return "", err
		}
		buf = line
	}
}

var errTooLong = errors.New("line too long")

// readLine appends a line with its newline to buf.
func readLine(r *bufio.Reader, buf []byte, limit int) ([]byte, error) {
	for {
		part, err := r.ReadSlice('\n')
		if len(buf)+len(part) > limit {
			return nil, errTooLong
		}
		buf = append(buf, part...)
		if err != bufio.ErrBufferFull {
			return buf, err
		}
	}
}

// Export is an export held in memory; VerifyExport needs only one line of it
// at a time. It is a Source for Verify.
type Export struct {
	records []exportLine
	hashes  []tlog.Hash // as stored, recomputed from the leaves
}

// ReadExport reads an export and returns the checkpoint's text with it. It
// verifies the form only.
func ReadExport(r io.Reader) (*Export, string, error) {
	e := &Export{}
	text, err := readExport(r, MaxLine, func(l exportLine) error {
		hashes, err := tlog.StoredHashesForRecordHash(int64(len(e.records)), tlog.RecordHash(l.Leaf[:]), e)
		if err != nil {
			return err
		}
		e.records, e.hashes = append(e.records, l), append(e.hashes, hashes...)
		return nil
	})
	if err != nil {
		return nil, "", err
	}
	return e, text, nil
}

// Records calls yield for every record. A masked one has no salt and the body
// that is shown.
func (e *Export) Records(yield func(Record) error) error {
	for _, l := range e.records {
		if err := yield(l.Record); err != nil {
			return err
		}
	}
	return nil
}

// Masked reports whether the record's body is not the one that was appended.
func (e *Export) Masked(index int64) bool {
	return 0 <= index && index < int64(len(e.records)) && e.records[index].masked
}

// ReadHashes implements tlog.HashReader.
func (e *Export) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	out := make([]tlog.Hash, len(indexes))
	for i, index := range indexes {
		if index < 0 || index >= int64(len(e.hashes)) {
			return nil, fmt.Errorf("audit: the export has no hash %d", index)
		}
		out[i] = e.hashes[index]
	}
	return out, nil
}

// CheckExport reads an export to its end and verifies the form only.
func CheckExport(r io.Reader) error {
	_, err := readExport(r, MaxLine, func(exportLine) error { return nil })
	return err
}

// VerifyExport is Verify for an export: it reads it once, holds one record at
// a time and recomputes the tree from the leaves.
func VerifyExport(r io.Reader, verifierKey string, against []Checkpoint) (Report, error) {
	v, err := NewVerifier(verifierKey)
	if err != nil {
		return Report{}, err
	}
	k, err := newChecker(v.Name(), against)
	if err != nil {
		return Report{}, err
	}
	text, err := readExport(r, MaxLine, func(l exportLine) error {
		if k.stop != nil {
			return nil // what follows is only read for the checkpoint
		}
		if err := k.record(l.Record, l.masked); err != nil && !errors.Is(err, errStop) {
			return err
		}
		return nil
	})
	if err != nil {
		return Report{}, err
	}
	c, err := OpenCheckpoint(text, verifierKey)
	if err != nil {
		return Report{}, badCheckpoint(err)
	}
	if c.Size < k.next && k.stop == nil {
		k.stop = &Mismatch{Kind: Extra, Index: c.Size,
			Detail: fmt.Sprintf("it was added after the checkpoint of %s and never signed", count(c.Size, "record"))}
	} else {
		k.addPoint(c, fmt.Sprintf("the signed checkpoint of %s", count(c.Size, "record")))
	}
	return k.result(nil, c)
}
