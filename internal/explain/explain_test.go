package explain

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"vogt/internal/catalog"
	"vogt/internal/detail"
	"vogt/internal/reading"
	"vogt/internal/trap"
)

// place is where the lines of these tests would run.
var place = reading.Place{Cwd: "/srv/app", Home: "/home/u"}

// reader knows programs of its own, so that what other programs mean does not
// matter here.
func reader(t *testing.T) *reading.Reader {
	t.Helper()
	c := catalog.New()
	for name, body := range map[string]string{
		"vogt-show": "parser getopt\n-n =text\nform run : inert : read...",
		"vogt-ask":  "parser getopt\nform run : read : read...",
		"vogt-move": "parser getopt\n-f : high\nform run : write : read+ write",
		"vogt-drop": "parser getopt\nform run : destroy critical : delete...",
		"vogt-call": "parser getopt\nform run : net : url",
		"vogt-with": "parser getopt\nform run : priv : command...",
		"vogt-open": "parser getopt\nform run : door secret :",
		"vogt-make": "parser getopt\nform run : exec :",
	} {
		if err := c.Add(name, name, catalog.Version+"\nprogram "+name+"\nabout is a program\n"+body+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	return reading.New(c)
}

func TestEffectsOf(t *testing.T) {
	for _, tt := range []struct {
		effects detail.Effects
		parsed  bool
		want    Effects
	}{
		{0, true, Effects{ReadOnly: true, Inert: true}},
		{detail.Unsettled, true, Effects{ReadOnly: true}},
		{detail.Secrets, true, Effects{ReadOnly: true, Inert: true}},
		{detail.Writes, true, Effects{Writes: true}},
		{detail.Writes | detail.Destroys, true, Effects{Writes: true, Destructive: true}},
		{detail.Contacts, true, Effects{Network: true}},
		{detail.Privileged, true, Effects{Privilege: true}},
		{detail.Executes, true, Effects{Executes: true}},
		{detail.Opaque, true, Effects{Opaque: true}},
		{detail.Door, true, Effects{}},
		{0, false, Effects{Opaque: true}},
		{detail.Opaque, false, Effects{Opaque: true}},
		{detail.Writes, false, Effects{Opaque: true, Writes: true}},
	} {
		if got := EffectsOf(tt.effects, tt.parsed); got != tt.want {
			t.Errorf("%v, parsed %v: %+v, want %+v", tt.effects, tt.parsed, got, tt.want)
		}
	}
}

// The answer's shape is what programs rely on: names and order are compared
// as they are.
func TestAnswer(t *testing.T) {
	rd := reader(t)
	for _, tt := range []struct {
		id, line string
		hints    []trap.Hint
		lang     trap.Language
		want     string
	}{
		{"", "vogt-show -n 3 a.txt", nil, trap.English, `{
			"parse_ok":true,
			"programs":["vogt-show"],
			"effects":{"read_only":true,"inert":true,"network":false,"writes":false,"destructive":false,"privilege":false,"executes":false,"opaque":false},
			"risk":"low",
			"details":[{
				"type":"openape_cli","cli_id":"vogt-show","operation_id":"vogt-show",
				"resource_chain":[{"resource":"cli","selector":{"name":"vogt-show"}},{"resource":"read","selector":{"path":"/srv/app/a.txt"}}],
				"action":"read","permission":"vogt-show.cli[name=vogt-show].read[path=/srv/app/a.txt]#read","display":"vogt-show -n 3 a.txt","risk":"low"
			}],
			"paths":{"reads":["/srv/app/a.txt"],"writes":[],"deletes":[],"sinks":[]},
			"hosts":[],
			"hints":[],
			"problems":[]
		}`},
		{"7", "vogt-drop 'a\u200b' >~/.bashrc; vogt-call https://example.com/", []trap.Hint{{Key: "pkill-f", At: 3}, {Key: "python3"}}, trap.German, `{
			"id":"7",
			"parse_ok":true,
			"programs":["vogt-drop","vogt-call"],
			"effects":{"read_only":false,"inert":false,"network":true,"writes":true,"destructive":true,"privilege":false,"executes":false,"opaque":false},
			"risk":"critical",
			"details":[{
				"type":"openape_cli","cli_id":"vogt-drop","operation_id":"vogt-drop",
				"resource_chain":[{"resource":"cli","selector":{"name":"vogt-drop"}},{"resource":"write","selector":{"path":"/home/u/.bashrc"}},{"resource":"delete","selector":{"path":"/srv/app/aHIDDEN"}}],
				"action":"delete","permission":"vogt-drop.cli[name=vogt-drop].write[path=/home/u/.bashrc].delete[path=/srv/app/aHIDDEN]#delete","display":"vogt-drop 'aHIDDEN'","risk":"critical"
			},{
				"type":"openape_cli","cli_id":"vogt-call","operation_id":"vogt-call",
				"resource_chain":[{"resource":"cli","selector":{"name":"vogt-call"}},{"resource":"host","selector":{"name":"example.com"}}],
				"action":"connect","permission":"vogt-call.cli[name=vogt-call].host[name=example.com]#connect","display":"vogt-call https://example.com/","risk":"high"
			}],
			"paths":{"reads":[],"writes":["/home/u/.bashrc"],"deletes":["/srv/app/aHIDDEN"],"sinks":["/home/u/.bashrc"]},
			"hosts":["example.com"],
			"hints":[{"key":"pkill-f","text":"PKILL"},{"key":"python3","text":"PYTHON3"}],
			"problems":[{"offset":12,"text":"U+200B ist unsichtbar."}]
		}`},
	} {
		r := rd.Text(tt.line, place)
		var got, want bytes.Buffer
		enc := json.NewEncoder(&got)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(Of(tt.id, tt.line, &r, tt.hints, tt.lang)); err != nil {
			t.Fatal(err)
		}
		text := strings.NewReplacer("HIDDEN", "\u200b", "PKILL", trap.Hint{Key: "pkill-f"}.Text(tt.lang), "PYTHON3", trap.Hint{Key: "python3"}.Text(tt.lang)).Replace(tt.want)
		if err := json.Compact(&want, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if strings.TrimSpace(got.String()) != want.String() {
			t.Errorf("%s\ngot  %s\nwant %s", tt.line, got.String(), want.String())
		}
	}
}

// nulls calls found for every null in an answer, with its place.
func nulls(v any, at string, found func(string)) {
	switch v := v.(type) {
	case nil:
		found(at)
	case map[string]any:
		for key, x := range v {
			nulls(x, at+"."+key, found)
		}
	case []any:
		for i, x := range v {
			nulls(x, fmt.Sprintf("%s[%d]", at, i), found)
		}
	}
}

// Lists are there also when they are empty, whatever the text: programs in
// languages without a nil list would stumble.
func TestAnswerHasNoNull(t *testing.T) {
	rd := reader(t)
	readings := map[string]reading.Reading{"the zero reading": {}}
	for _, line := range []string{
		"", " ", "# nothing", "if", "vogt-show", "vogt-show *", "vogt-with $x", "nope", "> a", "$x", "x=1", "vogt-open | vogt-ask $(vogt-move a b)", "\x00", "\xff",
	} {
		readings[line] = rd.Text(line, reading.Place{})
	}
	for line, r := range readings {
		text, err := json.Marshal(Of("", line, &r, nil, trap.English))
		if err != nil {
			t.Fatal(err)
		}
		var v map[string]any
		if err := json.Unmarshal(text, &v); err != nil {
			t.Fatal(err)
		}
		nulls(v, "answer", func(at string) { t.Errorf("%q: %s is null", line, at) })
		for _, key := range []string{"programs", "details", "hosts", "hints", "problems"} {
			if _, ok := v[key].([]any); !ok {
				t.Errorf("%q: %s is %v, want a list", line, key, v[key])
			}
		}
	}
}

// What does not parse shows nothing that it does, and is never a read.
func TestAnswerDoesNotParse(t *testing.T) {
	rd := reader(t)
	for _, line := range []string{"if", "vogt-show (", "'", "\x00vogt-show", strings.Repeat("vogt-show ", reading.MaxText/10+1)} {
		r := rd.Text(line, place)
		a := Of("", line, &r, nil, trap.English)
		if a.ParseOK || a.Effects != (Effects{Opaque: true}) || len(a.Programs) != 1 || a.Programs[0] != "?" || a.Risk < detail.High || len(a.Problems) == 0 {
			t.Errorf("%.20q: %+v", line, a)
		}
	}
}
