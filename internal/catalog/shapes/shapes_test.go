package shapes

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"vogt/internal/catalog"
	"vogt/internal/reading"
)

const example = `schema = "openape-shapes/v1"
[cli]
id = "tracker"
executable = "tracker"
version = "1.2"
[[operation]]
id = "issue.list"
command = ["issue", "list"]
display = "List issues"
action = "list"
risk = "low"
resource_chain = ["issue:*"]
[[operation]]
id = "issue.close"
command = ["issue", "close"]
positionals = ["number"]
required_options = ["reason"]
display = "Close issue {number}"
action = "update"
risk = "medium"
resource_chain = ["issue:number={number}"]
[[operation]]
id = "issue.purge"
command = ["issue"]
positionals = ["=purge", "number"]
display = "Purge"
action = "delete"
risk = "critical"
resource_chain = ["issue:number={number}"]
`

func TestEntry(t *testing.T) {
	name, text, err := Entry([]byte(example))
	if err != nil {
		t.Fatal(err)
	}
	if name != "tracker" || !strings.Contains(text, Digest([]byte(example))) {
		t.Errorf("entry %s lacks the digest:\n%s", name, text)
	}
	c := catalog.New()
	if err := c.Add("tracker", name, text); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	rd := reading.New(c)
	for line, want := range map[string][]string{
		"tracker issue list":                     {"net"},
		"tracker issue close 7 --reason done":    {"net", "write"},
		"tracker issue close 7 --reason=done":    {"net", "write"},
		"tracker issue purge 7":                  {"destroy", "net", "write"},
		"tracker issue list --web":               {"net", "opaque"}, // an option that the adapter does not name
		"tracker issue list extra":               {"opaque"},
		"tracker issue close 7":                  {"opaque"},
		"tracker":                                {"opaque"},
		"tracker wiki":                           {"opaque"},
		"tracker issue close 7 --reason x --all": {"net", "opaque", "write"},
	} {
		r := rd.Text(line, reading.Place{})
		if got := reading.ExampleEffects(&r); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v\n%s", line, got, want, text)
		}
	}
}

// What is imported brings a test for each operation, and each holds.
func TestEntryHasExamples(t *testing.T) {
	shadowed := example + "[[operation]]\nid = \"issue.also\"\ncommand = [\"issue\", \"list\"]\naction = \"delete\"\n"
	name, text, err := Entry([]byte(shadowed))
	if err != nil {
		t.Fatal(err)
	}
	entry, err := catalog.Parse("x", name, text, true)
	if err != nil {
		t.Fatal(err)
	}
	c := catalog.New()
	if err := c.Add("x", name, text); err != nil {
		t.Fatal(err)
	}
	rd := reading.New(c)
	for _, x := range entry.Examples() {
		r := rd.Text(x.Text, reading.Place{})
		if got := reading.ExampleEffects(&r); !slices.Equal(got, x.Want) {
			t.Errorf("%s: %v, want %v", x.Text, got, x.Want)
		}
	}
	if n := len(entry.Examples()); n != 3 || !strings.Contains(text, "\n# no example of issue.also: ") {
		t.Errorf("%d examples:\n%s", n, text)
	}
	if strings.Contains(text, " \n") || strings.Contains(text, " low") {
		t.Errorf("trailing blanks, or a risk that says nothing:\n%s", text)
	}
}

// The adapter of docs/catalog.md becomes the entry that is shown there, and
// the document's first entry holds.
func TestCatalogDocument(t *testing.T) {
	doc, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "catalog.md"))
	if err != nil {
		t.Fatal(err)
	}
	between := func(begin, end string) string {
		_, rest, ok := strings.Cut(string(doc), begin)
		text, _, ok2 := strings.Cut(rest, end)
		if !ok || !ok2 {
			t.Fatalf("no text between %q and %q", begin, end)
		}
		return text
	}
	adapter := between("```toml\n", "```")
	want := strings.Replace(between("$ cat tracker\n", "$ "), "DIGEST", Digest([]byte(adapter)), 1)
	if name, got, err := Entry([]byte(adapter)); name != "tracker" || got != want || err != nil {
		t.Errorf("got\n%s\nwant\n%s%v", got, want, err)
	}
	notes := between("$ cat notes\n", "\n$ ")
	c := catalog.New()
	entry, err := catalog.Parse("notes", "notes", notes, true)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Add("notes", "notes", notes); err != nil {
		t.Fatal(err)
	}
	for _, x := range entry.Examples() {
		r := reading.New(c).Text(x.Text, reading.Place{})
		if got := reading.ExampleEffects(&r); !slices.Equal(got, x.Want) {
			t.Errorf("%s: %v, want %v", x.Text, got, x.Want)
		}
	}
	if n := len(entry.Examples()); !strings.Contains(string(doc), fmt.Sprintf("notes: %d examples hold\n", n)) {
		t.Errorf("%d examples, and the document has another number", n)
	}
	// Every word of the format is in the document.
	_, err = catalog.Parse("x", "x", strings.Replace(notes, "program notes", "program x", 1)+"\n-y =nosuchrole\n", true)
	_, roles, _ := strings.Cut(err.Error(), "roles are: ")
	for _, role := range strings.Split(strings.Replace(roles, " and @KIND", ", @KIND", 1), ", ") {
		if !strings.Contains(string(doc), "`"+role+"`") {
			t.Errorf("the role %s is not in the document", role)
		}
	}
	for _, lang := range []string{"sed", "postgres", "elixir", "powershell", "cmd"} {
		if !strings.Contains(string(doc), "`"+lang+"`") {
			t.Errorf("the language %s is not in the document", lang)
		}
	}
}

func TestEntryRefuses(t *testing.T) {
	for name, change := range map[string][2]string{
		"another schema":    {"openape-shapes/v1", "openape-shapes/v2"},
		"no TOML":           {"[cli]", "[cli"},
		"an unknown key":    {`id = "tracker"`, "id = \"tracker\"\nhook = \"x\""},
		"a path":            {`executable = "tracker"`, `executable = "../tracker"`},
		"a second line":     {`id = "issue.list"`, `id = "issue.list\nform x : inert :"`},
		"an unknown risk":   {`risk = "medium"`, `risk = "tiny"`},
		"an odd option":     {`["reason"]`, `["reason : inert"]`},
		"an odd positional": {`["number"]`, `["number..."]`},
		"no operation":      {"[[operation]]", "[[operations]]"},
	} {
		text := strings.ReplaceAll(example, change[0], change[1])
		if text == example {
			t.Fatalf("%s: nothing changed", name)
		}
		if _, entry, err := Entry([]byte(text)); err == nil {
			t.Errorf("%s is accepted:\n%s", name, entry)
		}
	}
}

func FuzzEntry(f *testing.F) {
	f.Add(example)
	f.Fuzz(func(t *testing.T, text string) {
		name, entry, err := Entry([]byte(text))
		if err == nil {
			if _, err := catalog.Parse("x", name, entry, true); err != nil {
				t.Errorf("%v\n%s", err, entry)
			}
		}
	})
}
