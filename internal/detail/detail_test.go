package detail

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestRiskWithin(t *testing.T) {
	levels := []Risk{Unrated, Low, Medium, High, Critical, Critical + 1, 255}
	for _, r := range levels {
		for _, limit := range levels {
			rated := func(r Risk) bool { return r >= Low && r <= Critical }
			want := rated(r) && rated(limit) && r <= limit
			if got := r.Within(limit); got != want {
				t.Errorf("%s within %s: %v, want %v", r, limit, got, want)
			}
		}
	}
}

func TestRiskNames(t *testing.T) {
	for _, r := range []Risk{Low, Medium, High, Critical} {
		got, err := ParseRisk(r.String())
		if err != nil || got != r {
			t.Errorf("ParseRisk(%q) = %v, %v", r, got, err)
		}
	}
	for _, s := range []string{"", "unrated", "LOW", "low ", "risk(9)", "none"} {
		if r, err := ParseRisk(s); err == nil || r != Unrated {
			t.Errorf("ParseRisk(%q) = %v, %v; want an error and unrated", s, r, err)
		}
	}
}

func TestHighest(t *testing.T) {
	at := func(r Risk) Detail { return Command{Program: "x", Risk: r} }
	tests := []struct {
		name    string
		details []Detail
		want    Risk
	}{
		{"nothing", nil, Critical},
		{"one", []Detail{at(Low)}, Low},
		{"greatest", []Detail{at(Low), at(High), at(Medium)}, High},
		{"unrated among low", []Detail{at(Low), at(Unrated)}, Critical},
		{"unrated first", []Detail{at(Unrated), at(Low)}, Critical},
		{"a crossing is critical whatever runs", []Detail{Crossing{User: "root", Command: Command{Risk: Low}}}, Critical},
		{"path", []Detail{Path{Risk: Medium}}, Medium},
		{"network", []Detail{Network{Risk: High}}, High},
		{"tool", []Detail{Tool{Risk: Low}}, Low},
	}
	for _, test := range tests {
		if got := Highest(test.details); got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}

// The vectors are those that the wire's clients compute.
func TestHashVectors(t *testing.T) {
	argv := []string{"gh", "repo", "list", "openape"}
	if got, want := CmdHash(argv), "1c9a6c84be642af667ac5b3805615c29455f3c02dcc87272be50eb73fa33f197"; got != want {
		t.Errorf("CmdHash = %s, want %s", got, want)
	}
	if got, want := ArgvHash(argv), "SHA-256:60fbe06504d408b36b7ddc44714752e8ad58214ef5b1af4b4b9e44768ec4a758"; got != want {
		t.Errorf("ArgvHash = %s, want %s", got, want)
	}
	// An empty list is the array [].
	if got, want := ArgvHash(nil), "SHA-256:4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945"; got != want {
		t.Errorf("ArgvHash(nil) = %s, want %s", got, want)
	}
}

// CmdHash is ambiguous on the wire; ArgvHash must not be.
func TestArgvHashTellsWordsApart(t *testing.T) {
	if CmdHash([]string{"a b"}) != CmdHash([]string{"a", "b"}) {
		t.Error("cmd_hash is no longer that of the wire, which joins the words")
	}
	lists := [][]string{nil, {""}, {"", ""}, {"a b"}, {"a", "b"}, {`a","b`}, {`a\`, `b`}, {"a\x00b"}, {"a\nb"}}
	seen := map[string][]string{}
	for _, l := range lists {
		h := ArgvHash(l)
		if other, ok := seen[h]; ok {
			t.Errorf("%q and %q share a hash", l, other)
		}
		seen[h] = l
	}
}

func TestKeyOrder(t *testing.T) {
	keys := []string{"B", "a", "_x", "A", "b", "z1", "-k", "1"}
	slices.SortFunc(keys, compareKeys)
	if want := []string{"_x", "-k", "1", "a", "A", "b", "B", "z1"}; !slices.Equal(keys, want) {
		t.Errorf("sorted %q, want %q", keys, want)
	}
}

// Every character of ASCII has a weight of its own but for case, so the order
// is total and does not depend on the order in which a map is walked.
func TestKeyOrderIsTotal(t *testing.T) {
	var keys []string
	for c := byte(0x20); c < 0x7f; c++ {
		keys = append(keys, string(c), "a"+string(c), string(c)+"Z")
	}
	for _, a := range keys {
		for _, b := range keys {
			ab, ba := compareKeys(a, b), compareKeys(b, a)
			if ab != -ba || (ab == 0) != (a == b) {
				t.Fatalf("compare(%q, %q) = %d, reversed %d", a, b, ab, ba)
			}
		}
	}
	want := slices.Clone(keys)
	slices.SortFunc(want, compareKeys)
	for seed := range uint64(20) {
		got := slices.Clone(keys)
		rand.New(rand.NewPCG(seed, 1)).Shuffle(len(got), func(i, j int) { got[i], got[j] = got[j], got[i] })
		slices.SortFunc(got, compareKeys)
		if !slices.Equal(got, want) {
			t.Fatalf("seed %d: the order depends on where it starts", seed)
		}
	}
}

func TestPermission(t *testing.T) {
	tests := []struct {
		cli    string
		chain  []Resource
		action string
		want   string
	}{
		{"gh", []Resource{{Name: "owner", Selector: map[string]string{"login": "openape"}}, {Name: "repo"}}, "list", "gh.owner[login=openape].repo[*]#list"},
		{"x", []Resource{{Name: "r", Selector: map[string]string{"b": "2", "A": "1", "a": "0"}}}, "exec", "x.r[a=0,A=1,b=2]#exec"},
		{"x", []Resource{{Name: "r", Selector: map[string]string{"k": ""}}}, "exec", "x.r[*]#exec"},
		{"x", nil, "exec", "x#exec"},
	}
	for _, test := range tests {
		if got := Permission(test.cli, test.chain, test.action); got != test.want {
			t.Errorf("got %s, want %s", got, test.want)
		}
	}
}

// The canonical string is for display; two different details may share it. So
// the kinds themselves must differ where the strings do not.
func TestPermissionsOfKinds(t *testing.T) {
	command := Command{Program: "ls", Argv: []string{"ls"}, Action: ActionExec, Risk: High}
	tests := []struct {
		d    Detail
		want string
	}{
		{command, "ls.cli[name=ls].argv[hash=" + ArgvHash([]string{"ls"}) + "]#exec"},
		{Path{Path: "/a", Action: ActionRead}, "file.path[path=/a]#read"},
		{Network{Host: "example.com", Port: 443}, "network.host[name=example.com,port=443]#connect"},
		{Tool{Server: "s", Name: "n"}, "tool.server[name=s].tool[name=n]#call"},
		{Crossing{User: "root", Command: command}, "crossing.user[name=root].argv[hash=" + ArgvHash([]string{"ls"}) + "]#cross"},
	}
	for _, test := range tests {
		if got := test.d.Permission(); got != test.want {
			t.Errorf("%T: %s, want %s", test.d, got, test.want)
		}
	}
}

func validWire() Wire {
	w := Wire{
		Type: WireCLI, CLI: "date", Operation: "_generic.exec", Action: "exec", Display: "Execute: date", Risk: "high",
		Chain: []Resource{{Name: "cli", Selector: map[string]string{"name": "date"}}, {Name: "argv", Selector: map[string]string{"hash": ArgvHash([]string{"date"})}}},
	}
	w.Permission = w.CanonicalPermission()
	return w
}

func TestWireValidate(t *testing.T) {
	tests := []struct {
		name   string
		change func(*Wire)
		want   string // part of the error; "" for none
	}{
		{"as it is", func(*Wire) {}, ""},
		{"other type", func(w *Wire) { w.Type = "other" }, "type"},
		{"no type", func(w *Wire) { w.Type = "" }, "type"},
		{"no program", func(w *Wire) { w.CLI = "" }, "cli_id"},
		{"no operation", func(w *Wire) { w.Operation = "" }, "operation_id"},
		{"no action", func(w *Wire) { w.Action = "" }, "action"},
		{"no permission", func(w *Wire) { w.Permission = "" }, "permission"},
		{"no display", func(w *Wire) { w.Display = "" }, "display"},
		{"no risk", func(w *Wire) { w.Risk = "" }, "risk"},
		{"unknown risk", func(w *Wire) { w.Risk = "tiny" }, "risk"},
		{"no chain", func(w *Wire) { w.Chain = nil }, "resource_chain"},
		{"nameless link", func(w *Wire) { w.Chain[1].Name = "" }, "resource_chain[1]"},
		{"empty value", func(w *Wire) { w.Chain[0].Selector = map[string]string{"name": ""} }, "empty selector"},
		{"empty key", func(w *Wire) { w.Chain[0].Selector = map[string]string{"": "x"} }, "empty selector"},
		{"permission of something else", func(w *Wire) { w.Permission = "ls.cli[*]#exec" }, "not canonical"},
		{"selector without the permission", func(w *Wire) { w.Chain[0].Selector["name"] = "rm" }, "not canonical"},
	}
	for _, test := range tests {
		w := validWire()
		test.change(&w)
		err := w.Validate()
		switch {
		case test.want == "" && err != nil:
			t.Errorf("%s: %v", test.name, err)
		case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
			t.Errorf("%s: error %v, want one that names %q", test.name, err, test.want)
		}
	}
	if err := (Wire{Type: WireGrant, Action: "approve"}).Validate(); err != nil {
		t.Errorf("grant detail: %v", err)
	}
	if err := (Wire{Type: WireGrant}).Validate(); err == nil {
		t.Error("a grant detail without an action is accepted")
	}
}

// generated returns strings in which every character stands that JSON
// encoders treat differently.
func generated() []string {
	out := []string{
		"", "plain", "<>&", "a\"b\\c/d", "\u2028 \u2029", "\x7f\u0080\u009f", "\ufeff\ufffe\uffff", "é", "e\u0301",
		"\U0001F600", "\U00010000\U0010FFFF", "\ud7ff\ue000", "\ufffd", "\u200b\u202e\u061c", "日本語", "\t\n\r\b\f\v\x00\x1b\x1f",
	}
	for c := range rune(0x30) {
		out = append(out, string(c))
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		var b strings.Builder
		for range random.IntN(12) {
			for {
				r := rune(random.IntN(0x110000))
				if random.IntN(2) == 0 {
					r = rune(random.IntN(0x100))
				}
				if r < 0xd800 || r > 0xdfff {
					b.WriteRune(r)
					break
				}
			}
		}
		out = append(out, b.String())
	}
	return out
}

// TestJSONStringAgainstNode compares with the JavaScript engine that the wire's
// clients run in.
func TestJSONStringAgainstNode(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed, and it is what computes the hashes on the other side")
	}
	in := generated()
	// encoding/json escapes more than JavaScript, which reads it all the same.
	encoded, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "in.json")
	if err := os.WriteFile(file, encoded, 0o600); err != nil {
		t.Fatal(err)
	}
	const script = `
		const {createHash} = require("crypto");
		const list = JSON.parse(require("fs").readFileSync(process.argv[1], "utf8"));
		const hash = argv => "SHA-256:" + createHash("sha256").update(JSON.stringify(argv)).digest("hex");
		console.log(JSON.stringify({
			single: list.map(s => ({text: JSON.stringify(s), hash: hash([s])})),
			all: hash(list),
			keys: ["B","a","_x","A","b","z1","-k","1","k.1","k-1","k_1","K","kk"].sort((a, b) => a.localeCompare(b)),
		}));`
	out, err := exec.Command(node, "-e", script, file).Output()
	if err != nil {
		t.Fatal(err)
	}
	var want struct {
		Single []struct{ Text, Hash string }
		All    string
		Keys   []string
	}
	if err := json.Unmarshal(out, &want); err != nil {
		t.Fatal(err)
	}
	if len(want.Single) != len(in) {
		t.Fatalf("node answered for %d of %d strings", len(want.Single), len(in))
	}
	for i, s := range in {
		if got := string(appendJSONString(nil, s)); got != want.Single[i].Text {
			t.Errorf("%q: got %q, node writes %q", s, got, want.Single[i].Text)
		}
		if got := ArgvHash([]string{s}); got != want.Single[i].Hash {
			t.Errorf("%q: hash %s, node computes %s", s, got, want.Single[i].Hash)
		}
	}
	if got := ArgvHash(in); got != want.All {
		t.Errorf("the whole list: hash %s, node computes %s", got, want.All)
	}
	keys := slices.Clone(want.Keys)
	slices.SortFunc(keys, compareKeys)
	if !slices.Equal(keys, want.Keys) {
		t.Errorf("keys sorted %q, node sorts %q", keys, want.Keys)
	}
}

// FuzzJSONString proves without node that what is written reads back as the
// same text.
func FuzzJSONString(f *testing.F) {
	for _, s := range generated()[:20] {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		s = strings.ToValidUTF8(s, "")
		var back string
		if err := json.Unmarshal(appendJSONString(nil, s), &back); err != nil || back != s {
			t.Errorf("%q read back as %q, %v", s, back, err)
		}
	})
}

// TestWireRoundTrip: what a client sends comes back with the same
// names, since the client's own check reads them there.
func TestWireRoundTrip(t *testing.T) {
	w := validWire()
	w.Constraints, w.Approval, w.Reason, w.GrantID, w.Locations = &Constraints{ExactCommand: true}, "once", "r", "g", []string{"l"}
	b, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	var back Wire
	if err := json.Unmarshal(b, &back); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(w, back) {
		t.Errorf("%+v came back as %+v", w, back)
	}
	for _, name := range []string{"type", "cli_id", "operation_id", "resource_chain", "action", "permission", "display", "risk", "constraints"} {
		if !strings.Contains(string(b), `"`+name+`":`) {
			t.Errorf("the wire form has no %s: %s", name, b)
		}
	}
}
