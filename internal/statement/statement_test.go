package statement

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the encoding and digest of the golden vectors anew; only for a new version of the label")

// golden is one committed vector. Other implementations read these files.
type golden struct {
	Name      string    `json:"name"`
	Statement Statement `json:"statement"`
	Encoded   string    `json:"encoded"` // hex of Encode
	Digest    Digest    `json:"digest"`
}

func goldenFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) < 4 {
		t.Fatalf("golden vectors: found %d files, %v", len(files), err)
	}
	return files
}

func readGolden(t *testing.T, file string) golden {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var g golden
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&g); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return g
}

func TestGolden(t *testing.T) {
	for _, file := range goldenFiles(t) {
		g := readGolden(t, file)
		if *update {
			g.Encoded, g.Digest = hex.EncodeToString(g.Statement.Encode()), g.Statement.Digest()
			b, err := json.MarshalIndent(g, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, append(b, '\n'), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got := hex.EncodeToString(g.Statement.Encode()); got != g.Encoded {
			t.Errorf("%s: encoding\n%s\nwant\n%s", file, got, g.Encoded)
		}
		if got := g.Statement.Digest(); got != g.Digest {
			t.Errorf("%s: digest %s, want %s", file, got, g.Digest)
		}
		// The digest, from its definition alone.
		raw, err := hex.DecodeString(g.Encoded)
		if err != nil {
			t.Fatal(err)
		}
		if sum := sha256.Sum256(append([]byte("vogt-statement-v1\x00"), raw...)); sum != [32]byte(g.Digest) {
			t.Errorf("%s: SHA-256 over label and bytes is %x, want %s", file, sum, g.Digest)
		}
		if back := decode(t, raw); !reflect.DeepEqual(back, g.Statement) {
			t.Errorf("%s: the bytes read back as\n%+v\nwant\n%+v", file, back, g.Statement)
		}
	}
}

// walker is a decoder written from the specification, not from the encoder.
type walker struct {
	t *testing.T
	b []byte
}

func (w *walker) take(n int) []byte {
	if n < 0 || len(w.b) < n {
		w.t.Fatalf("the encoding ends early: %d bytes wanted, %d left", n, len(w.b))
	}
	v := w.b[:n]
	w.b = w.b[n:]
	return v
}

func (w *walker) length() int { return int(binary.BigEndian.Uint32(w.take(4))) }

func (w *walker) field() (value []byte, present bool) {
	presence := w.take(1)[0]
	value = w.take(w.length())
	switch {
	case presence == 0 && len(value) != 0:
		w.t.Fatal("an absent field has a value")
	case presence > 1:
		w.t.Fatalf("presence byte %d", presence)
	}
	return value, presence == 1
}

func (w *walker) text() *string {
	v, ok := w.field()
	if !ok {
		return nil
	}
	s := string(v)
	return &s
}

func (w *walker) number() *uint64 {
	v, ok := w.field()
	if !ok {
		return nil
	}
	if len(v) != 8 {
		w.t.Fatalf("a number of %d bytes", len(v))
	}
	n := binary.BigEndian.Uint64(v)
	return &n
}

func (w *walker) elements() [][]byte {
	v, ok := w.field()
	if !ok {
		return nil
	}
	in := walker{w.t, v}
	out := make([][]byte, in.length())
	for i := range out {
		out[i] = in.take(in.length())
	}
	in.end()
	return out
}

func (w *walker) end() {
	if len(w.b) != 0 {
		w.t.Fatalf("%d bytes follow the last field", len(w.b))
	}
}

func (w *walker) list() []string {
	elements := w.elements()
	if elements == nil {
		return nil
	}
	out := []string{}
	for _, e := range elements {
		out = append(out, string(e))
	}
	return out
}

func (w *walker) fileIn(b []byte) File {
	in := walker{w.t, b}
	f := File{Path: in.text(), Device: in.number(), Inode: in.number(), SHA256: in.text(), Size: in.number()}
	in.end()
	return f
}

func (w *walker) file() *File {
	v, ok := w.field()
	if !ok {
		return nil
	}
	f := w.fileIn(v)
	return &f
}

func (w *walker) files() []File {
	elements := w.elements()
	if elements == nil {
		return nil
	}
	out := []File{}
	for _, e := range elements {
		out = append(out, w.fileIn(e))
	}
	return out
}

func decode(t *testing.T, b []byte) Statement {
	t.Helper()
	w := &walker{t, b}
	must := func(s *string) string {
		if s == nil {
			t.Fatal("a field that every statement has is absent")
		}
		return *s
	}
	s := Statement{Purpose: Purpose(must(w.text())), Issuer: must(w.text()), IssuerKeyID: w.text()}
	epoch := w.number()
	if epoch == nil {
		t.Fatal("the epoch is absent")
	}
	s.Epoch, s.GrantID, s.Nonce = *epoch, must(w.text()), must(w.text())
	s.Requester, s.RequesterKey, s.Generation, s.Owner, s.Host = w.text(), w.text(), w.number(), w.text(), w.text()
	s.CallerUID, s.RunAsUID, s.RunAsName, s.RunAsGroups = w.number(), w.number(), w.text(), w.list()
	s.GrantType = must(w.text())
	s.NotBefore, s.Expiry, s.Uses = w.number(), w.number(), w.number()
	s.Executable, s.Interpreters, s.Argv, s.Cwd, s.Environment = w.file(), w.files(), w.list(), w.file(), w.list()
	s.Umask, s.Limits, s.Stdin, s.Inputs = w.number(), w.list(), w.text(), w.files()
	s.Confinement, s.NetworkMode, s.Catalog, s.Reason, s.Hints = w.text(), w.text(), w.text(), w.text(), w.list()
	w.end()
	return s
}

// values lists, for the type of a field, values that must all give different
// digests. The first is that of the zero Statement.
func values(t *testing.T, kind reflect.Type) []reflect.Value {
	t.Helper()
	text := func(s string) *string { return &s }
	number := func(n uint64) *uint64 { return &n }
	file := func(f File) *File { return &f }
	var list []any
	switch kind {
	case reflect.TypeFor[string]():
		list = []any{"", "a", "b", "a\x00", "aa"}
	case reflect.TypeFor[Purpose]():
		list = []any{Purpose(""), Run, Crossing, Standing, Trust, Login}
	case reflect.TypeFor[uint64]():
		list = []any{uint64(0), uint64(1), uint64(1 << 40)}
	case reflect.TypeFor[*string]():
		list = []any{(*string)(nil), text(""), text("a"), text("b")}
	case reflect.TypeFor[*uint64]():
		list = []any{(*uint64)(nil), number(0), number(1), number(1 << 63)}
	case reflect.TypeFor[[]string]():
		for _, l := range [][]string{nil, {}, {""}, {"", ""}, {"a b"}, {"a", "b"}, {"b", "a"}, {"ab"}, {"a", "", "b"}} {
			list = append(list, l)
		}
	case reflect.TypeFor[*File]():
		list = []any{(*File)(nil)}
		for _, f := range fileValues(t) {
			list = append(list, file(f))
		}
	case reflect.TypeFor[[]File]():
		list = []any{[]File(nil), []File{}, []File{{}, {}}}
		for _, f := range fileValues(t) {
			list = append(list, []File{f})
		}
	default:
		t.Fatalf("a field has the new type %v: say here which values of it differ", kind)
	}
	out := make([]reflect.Value, len(list))
	for i, v := range list {
		out[i] = reflect.ValueOf(v)
	}
	return out
}

// fileValues are the zero File and Files that differ from it in one part.
func fileValues(t *testing.T) []File {
	t.Helper()
	out := []File{{}}
	kind := reflect.TypeFor[File]()
	for i := range kind.NumField() {
		for _, v := range values(t, kind.Field(i).Type)[1:] {
			var f File
			reflect.ValueOf(&f).Elem().Field(i).Set(v)
			out = append(out, f)
		}
	}
	return out
}

// TestEveryFieldCounts changes each field alone, and each part of a File, over
// all values that its type tells apart. Reflection walks the fields, so one
// that is added and left out of the encoding fails here.
func TestEveryFieldCounts(t *testing.T) {
	kind := reflect.TypeFor[Statement]()
	seen := map[Digest]string{}
	for i := range kind.NumField() {
		f := kind.Field(i)
		for n, v := range values(t, f.Type) {
			if n == 0 && i > 0 {
				continue // the zero Statement again
			}
			var s Statement
			reflect.ValueOf(&s).Elem().Field(i).Set(v)
			what := fmt.Sprintf("%s, value %d", f.Name, n)
			if other, ok := seen[s.Digest()]; ok {
				t.Errorf("%s has the digest of %s", what, other)
			}
			seen[s.Digest()] = what
			if back := decode(t, s.Encode()); !reflect.DeepEqual(back, s) {
				t.Errorf("%s reads back as %+v", what, back)
			}
			// What was signed survives the trip over the wire, absent or empty.
			b, err := json.Marshal(s)
			if err != nil {
				t.Fatal(err)
			}
			var over Statement
			if err := json.Unmarshal(b, &over); err != nil || over.Digest() != s.Digest() {
				t.Errorf("%s: another digest after JSON (%v): %s", what, err, b)
			}
		}
	}
}

// TestIdentity: Identity ignores exactly what differs between two askings of
// the same thing, and nothing else.
func TestIdentity(t *testing.T) {
	ignored := []string{"IssuerKeyID", "Epoch", "GrantID", "Nonce", "RequesterKey", "GrantType", "NotBefore", "Expiry", "Uses", "Reason", "Hints"}
	kind := reflect.TypeFor[Statement]()
	for _, name := range ignored {
		if _, ok := kind.FieldByName(name); !ok {
			t.Errorf("there is no field %s any more", name)
		}
	}
	base := Statement{}.Identity()
	for i := range kind.NumField() {
		f := kind.Field(i)
		for n, v := range values(t, f.Type) {
			if n == 0 {
				continue
			}
			var s Statement
			reflect.ValueOf(&s).Elem().Field(i).Set(v)
			before := s.Digest()
			if same := s.Identity() == base; same != slices.Contains(ignored, f.Name) {
				t.Errorf("%s, value %d: same identity: %v", f.Name, n, same)
			}
			if s.Digest() != before {
				t.Errorf("Identity changed the statement's %s", f.Name)
			}
		}
	}
}

// Neighbouring fields must not be able to trade bytes.
func TestFieldsDoNotRunTogether(t *testing.T) {
	a := Statement{Purpose: "ab", Issuer: "c"}
	b := Statement{Purpose: "a", Issuer: "bc"}
	if a.Digest() == b.Digest() {
		t.Error("purpose and issuer run together")
	}
	x, y := "x", "y"
	if (Statement{Requester: &x, Owner: &y}).Digest() == (Statement{Requester: &y, Owner: &x}).Digest() {
		t.Error("requester and owner can be exchanged")
	}
	if (Statement{Argv: []string{"x"}}).Digest() == (Statement{Environment: []string{"x"}}).Digest() {
		t.Error("argv and environment can be exchanged")
	}
}

func TestParseDigest(t *testing.T) {
	good := strings.Repeat("0123456789abcdef", 4)
	d, err := ParseDigest(good)
	if err != nil || d.String() != good {
		t.Fatalf("ParseDigest = %s, %v", d, err)
	}
	for _, s := range []string{
		"", good[:63], good + "0", strings.ToUpper(good), good[:63] + "g", good[:63] + " ", " " + good[:63], "0x" + good[:62],
		good[:62] + "é", strings.Repeat("\x00", 64),
	} {
		if d, err := ParseDigest(s); err == nil {
			t.Errorf("ParseDigest(%q) = %s", s, d)
		}
	}
}

func FuzzParseDigest(f *testing.F) {
	f.Add("")
	f.Add(strings.Repeat("ab", 32))
	f.Add(strings.Repeat("AB", 32))
	f.Fuzz(func(t *testing.T, s string) {
		d, err := ParseDigest(s)
		if err == nil && d.String() != s {
			t.Errorf("%q was read as %s: one digest has two spellings", s, d)
		}
		if err != nil && len(s) == 64 && strings.Trim(s, "0123456789abcdef") == "" {
			t.Errorf("%q was refused: %v", s, err)
		}
	})
}
