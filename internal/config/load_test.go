package config

import (
	"strings"
	"testing"
	"time"
)

type sample struct {
	Name  string            `toml:"name"`
	Count int               `toml:"count"`
	Small int8              `toml:"small"`
	On    bool              `toml:"on"`
	Wait  time.Duration     `toml:"wait"`
	List  []string          `toml:"list"`
	Free  map[string]string `toml:"free"`
	Inner struct {
		Deep struct {
			Level float64 `toml:"level"`
		} `toml:"deep"`
	} `toml:"inner"`
	Rules []struct {
		Program string `toml:"program"`
	} `toml:"rule"`
	Hosts map[string]struct {
		Port uint16 `toml:"port"`
	} `toml:"host"`
	Loud   upper `toml:"loud"`
	Hidden string
}

// upper reads itself.
type upper struct{ text string }

func (u *upper) UnmarshalText(b []byte) error {
	u.text = strings.ToUpper(string(b))
	if strings.Contains(u.text, "!") {
		return errTooLoud{}
	}
	return nil
}

type errTooLoud struct{}

func (errTooLoud) Error() string { return "too loud" }

func TestDecode(t *testing.T) {
	const text = `
name = "n"
count = -3
small = 127
on = true
wait = "1m30s"
list = ["a", "b"]
loud = "hi"
free = { any = "thing", "or this" = "x" }
inner.deep.level = 1.5
[[rule]]
program = "git"
[[rule]]
program = "make"
[host.a]
port = 1
[host."b.c"]
port = 2
`
	var got sample
	if err := decode("x.toml", []byte(text), &got); err != nil {
		t.Fatal(err)
	}
	if got.Name != "n" || got.Count != -3 || got.Small != 127 || !got.On || got.Wait != 90*time.Second ||
		strings.Join(got.List, ",") != "a,b" || got.Free["or this"] != "x" || got.Inner.Deep.Level != 1.5 ||
		len(got.Rules) != 2 || got.Rules[1].Program != "make" || got.Hosts["b.c"].Port != 2 || got.Hosts["a"].Port != 1 || got.Loud.text != "HI" {
		t.Errorf("got %+v", got)
	}
}

func TestDecodeErrors(t *testing.T) {
	const known = "; known here: name, count, small, on, wait, list, free, inner, rule, host, loud"
	tests := []struct{ name, text, want string }{
		{"unknown key", "count = 1\n\nnmae = 1", `x.toml:3: unknown key "nmae"` + known},
		{"other letter case", "Name = \"a\"", `x.toml:1: unknown key "Name"` + known},
		{"a field's Go name is no key", "Hidden = \"a\"", `x.toml:1: unknown key "Hidden"` + known},
		{"unknown table", "[count2]\n[nowhere]", `x.toml:1: unknown key "count2"` + known + "\nconfig: x.toml:2: unknown key \"nowhere\"" + known},
		{"unknown key in a table", "[inner]\n\n[inner.deep]\nlevle = 1", `x.toml:4: unknown key "inner.deep.levle"; known here: level`},
		{"unknown dotted key", "name = \"\"\ninner.deep.levle = 1", `x.toml:2: unknown key "inner.deep.levle"; known here: level`},
		{"unknown key in a list of tables", "[[rule]]\nprogramm = \"x\"", `x.toml:2: unknown key "rule.programm"; known here: program`},
		{"unknown key in a table of tables", "[host.a]\nprot = 1", `x.toml:2: unknown key "host.a.prot"; known here: port`},
		{"key twice", "name = \"a\"\nname = \"b\"", `x.toml:2: Key 'name' has already been defined.`},
		{"table twice", "[inner]\n[inner]", `x.toml:2: Key 'inner' has already been defined.`},
		{"syntax", "name = \"a\"\ncount = ", `x.toml:2: unexpected EOF; expected value`},
		{"string for a number", "name = \"\"\ncount = \"1\"", `x.toml:2: key "count" must be a whole number`},
		{"number for a string", "name = 1", `x.toml:1: key "name" must be a string`},
		{"word for a bool", "on = \"yes\"", `x.toml:1: key "on" must be true or false`},
		{"string for a list", "list = \"a\"", `x.toml:1: key "list" must be a list of strings`},
		{"mixed list", "list = [\"a\", 1]", `x.toml:1: key "list" must be a list of strings`},
		{"value for a table", "inner = 1", `x.toml:1: key "inner" must be a table`},
		{"value for a list of tables", "rule = 1", `x.toml:1: key "rule" must be a list of tables`},
		{"list of values for a list of tables", "rule = [1]", `x.toml:1: key "rule" must be a table`},
		{"value for a table of tables", "host = 1", `x.toml:1: key "host" must be a table of tables`},
		{"value for a table of values", "free = 1", `x.toml:1: key "free" must be a table`},
		{"text for a number in depth", "[inner.deep]\nlevel = \"high\"", `x.toml:2: key "inner.deep.level" must be a number`},
		{"out of range", "small = 200", `x.toml:1: key "small": 200 is out of range for int8`},
		{"negative port", "[host.a]\nport = -1", `x.toml:2: key "host.a.port": -1 is out of range for uint16`},
		{"duration without unit", "wait = \"90\"", `x.toml:1: key "wait": "90" is not a duration such as "90s", "15m" or "48h"`},
		{"duration as nanoseconds", "wait = 90", `x.toml:1: key "wait" must be a duration such as "90s"`},
		{"a type's own words", "loud = \"hi!\"", `x.toml:1: key "loud": too loud`},
		{"all at once, in order", "zzz = 1\ncount = \"\"\n[inner]\naaa = 1",
			`x.toml:1: unknown key "zzz"` + known + "\n" + `config: x.toml:2: key "count" must be a whole number` + "\n" + `config: x.toml:4: unknown key "inner.aaa"; known here: deep`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := decode("x.toml", []byte(tt.text), new(sample))
			if err == nil {
				t.Fatal("no error")
			}
			if got := err.Error(); !strings.HasPrefix(got, "config: "+tt.want) {
				t.Errorf("got  %s\nwant config: %s", got, tt.want)
			}
		})
	}
}

// A list of a higher layer replaces that of the lower one and must not write
// into it: the lower one may be a default that others hold.
func TestDecodeOntoReplacesLists(t *testing.T) {
	base := sample{List: []string{"a", "b", "c"}, Free: map[string]string{"old": "1"}}
	held, heldMap := base.List, base.Free
	if err := decode("x.toml", []byte(`list = ["z"]`+"\nfree = {new = \"2\"}"), &base); err != nil {
		t.Fatal(err)
	}
	if len(base.List) != 1 || base.List[0] != "z" || len(base.Free) != 1 {
		t.Errorf("got %v and %v", base.List, base.Free)
	}
	if held[0] != "a" || len(heldMap) != 1 || heldMap["old"] != "1" {
		t.Errorf("the lower layer was changed: %v, %v", held, heldMap)
	}
}

func FuzzDecode(f *testing.F) {
	for _, seed := range []string{"", "name = \"a\"", "[host.a]\nport = 1", "[[rule]]\nprogram=\"x\"", "a.b.c = [1, {x=2}]", "wait = \"1h\"", "\"\" = 1", "free = {a = {b = 1}}"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var v sample
		if err := decode("x.toml", []byte(text), &v); err != nil && !strings.HasPrefix(err.Error(), "config: x.toml:") {
			t.Errorf("an error without file: %v", err)
		}
	})
}
