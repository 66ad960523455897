package pages

import (
	"html/template"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

func catalogs(t *testing.T) map[string]*language {
	t.Helper()
	all := map[string]*language{}
	for _, tag := range languages {
		l, err := loadLanguage(files, tag)
		if err != nil {
			t.Fatal(err)
		}
		all[tag] = l
	}
	return all
}

var (
	placeholder = regexp.MustCompile(`\{(\w+)\}`)
	tags        = regexp.MustCompile(`<[^>]*>?`)
)

// TestCatalogsAgree holds every catalog to the first: the same keys, plurals
// in the same places, the same placeholders, and no markup but <b> and <code>.
func TestCatalogsAgree(t *testing.T) {
	all := catalogs(t)
	first := all[languages[0]]
	for tag, l := range all {
		for key, m := range l.messages {
			other, ok := first.messages[key]
			if !ok {
				t.Errorf("%s: %s is not in %s", tag, key, first.tag)
				continue
			}
			if m.other == "" && other.other != "" && key != "left.after" {
				t.Errorf("%s: %s is empty", tag, key)
			}
			if (m.one == "") != (other.one == "") || (m.zero == "") != (other.zero == "") {
				t.Errorf("%s: %s has other plural forms than in %s", tag, key, first.tag)
			}
			names := func(text string) []string {
				return slices.Sorted(maps.Keys(maps.Collect(func(yield func(string, bool) bool) {
					for _, n := range placeholder.FindAllStringSubmatch(text, -1) {
						yield(n[1], true)
					}
				})))
			}
			if got, want := names(m.other), names(other.other); !slices.Equal(got, want) {
				t.Errorf("%s: %s fills %v, in %s %v", tag, key, got, first.tag, want)
			}
			for _, form := range []string{m.zero, m.one, m.other} {
				for _, found := range tags.FindAllString(form, -1) {
					if !slices.Contains([]string{"<b>", "</b>", "<code>", "</code>"}, found) {
						t.Errorf("%s: %s holds %s", tag, key, found)
					}
				}
				if strings.Count(form, "<b>") != strings.Count(form, "</b>") || strings.Count(form, "<code>") != strings.Count(form, "</code>") {
					t.Errorf("%s: %s leaves an element open", tag, key)
				}
				if strings.ContainsAny(form, "!") && tag != "" {
					t.Errorf("%s: %s shouts", tag, key)
				}
				if strings.Contains(form, `"`) {
					t.Errorf("%s: %s has straight quotation marks", tag, key)
				}
			}
		}
		for key := range first.messages {
			if _, ok := l.messages[key]; !ok {
				t.Errorf("%s: %s is missing", tag, key)
			}
		}
	}
}

// TestWordsStandOnce: of two words under one key the first would be lost unseen.
func TestWordsStandOnce(t *testing.T) {
	key := regexp.MustCompile(`(?m)^ *"([^"]+)": `)
	files, err := filepath.Glob("messages/*.json")
	if err != nil || len(files) < 2 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for _, m := range key.FindAllSubmatch(text, -1) {
			if seen[string(m[1])] {
				t.Errorf("%s: %s stands twice", file, m[1])
			}
			seen[string(m[1])] = true
		}
		if len(seen) < 100 {
			t.Errorf("%s: only %d keys were found", file, len(seen))
		}
	}
}

// prefixes are the families whose keys are put together at run time.
var prefixes = []string{"risk.", "does.", "effect.", "field.", "fact.", "reach.", "allow.", "record.", "health.", "param.", "trust.", "strength.", "err.", "js.", "outcome.", "how.", "panic.", "register.", "activity.", "letter.", "consent.scope.", "denied.", "recover.", "missed.", "class.", "deed.", "pattern.risk.", "patterns.state.", "labels."}

// TestCatalogIsUsed looks for words that nothing shows, and for text in
// templates that is in no catalog.
func TestCatalogIsUsed(t *testing.T) {
	var source strings.Builder
	err := fs.WalkDir(files, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasPrefix(path, "messages/") {
			return err
		}
		b, err := fs.ReadFile(files, path)
		source.Write(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, code := range goSources(t) {
		source.WriteString(code)
	}
	text := source.String()
	for key := range catalogs(t)[languages[0]].messages {
		family := slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(key, p) })
		if !family && !strings.Contains(text, `"`+key+`"`) {
			t.Errorf("nothing shows %s", key)
		}
	}
	for word := range catalogs(t)[languages[0]].scriptWords() {
		if word != "lang" && !strings.Contains(text, "words."+word) && !strings.Contains(text, `words["`+word+`"]`) && !strings.Contains(text, `"js.`+word+`"`) {
			t.Errorf("the script never shows js.%s", word)
		}
	}
	// Words in templates come from the catalog: what is left without actions
	// and markup are names that are the same in every language.
	entries, err := files.ReadDir("templates")
	if err != nil {
		t.Fatal(err)
	}
	actions := regexp.MustCompile(`(?s)\{\{.*?\}\}`)
	elements := regexp.MustCompile(`(?s)<[^>]*>`)
	allowed := []string{"Vogt", "Esc", "j", "k", "English", "Deutsch", "vogt", "up", "agent", "add", "NAME", "grant", "inbox", "key", "passkey", "FILE", "pub"}
	for _, e := range entries {
		b, err := files.ReadFile("templates/" + e.Name())
		if err != nil {
			t.Fatal(err)
		}
		bare := elements.ReplaceAllString(actions.ReplaceAllString(string(b), " "), " ")
		for _, word := range regexp.MustCompile(`\pL+`).FindAllString(bare, -1) {
			if !slices.Contains(allowed, word) {
				t.Errorf("%s: %q is in no catalog", e.Name(), word)
			}
		}
	}
}

func TestCount(t *testing.T) {
	all := catalogs(t)
	for _, c := range []struct {
		tag, key string
		n        any
		want     template.HTML
	}{
		{"en", "inbox.waiting", 0, "Inbox"},
		{"en", "inbox.waiting", 1, "1 card waits for you"},
		{"en", "inbox.waiting", 2, "2 cards wait for you"},
		{"de", "inbox.waiting", 1, "1 Karte wartet"},
		{"de", "inbox.waiting", int64(18204), "18.204 Karten warten"},
		{"en", "chars.left", 18204, "18,204 characters more"},
	} {
		got, err := all[c.tag].count(c.key, c.n)
		if err != nil || got != c.want {
			t.Errorf("%s %s %v = %q, %v; want %q", c.tag, c.key, c.n, got, err, c.want)
		}
	}
	if _, err := all["en"].count("deny", 1); err == nil {
		t.Error("a message without plural was counted")
	}
	if _, err := all["en"].text("no.such.key"); err == nil {
		t.Error("a missing message has a text")
	}
	if _, err := all["en"].text("by.name"); err == nil {
		t.Error("a placeholder without a value was filled")
	}
}

func TestFillEscapes(t *testing.T) {
	l := catalogs(t)["en"]
	for _, c := range []struct {
		value any
		want  template.HTML
	}{
		{`<script>`, "by &lt;script&gt;"},
		{`{name}{by}`, "by {name}{by}"},
		{template.HTML(`<b>x</b>`), "by <b>x</b>"},
		{7, "by 7"},
	} {
		if got, err := l.text("by.name", "name", c.value); err != nil || got != c.want {
			t.Errorf("%v: %q, %v; want %q", c.value, got, err, c.want)
		}
	}
}

func TestPreferred(t *testing.T) {
	for header, want := range map[string]string{
		"":                               "en",
		"de":                             "de",
		"de-AT,en;q=0.8":                 "de",
		"en;q=0.8, de-CH ; q=0.9":        "de",
		"fr,de;q=0.1,en;q=0.05":          "de",
		"fr, *;q=0.1":                    "en",
		"de;q=0":                         "en",
		"de;q=NaN,en;q=0.1":              "en",
		"de;q=2":                         "en",
		"DE":                             "de",
		";;;,,,=":                        "en",
		"de" + strings.Repeat(",x", 999): "en",
	} {
		if got := preferred(header); got != want {
			t.Errorf("%.40q: %q, want %q", header, got, want)
		}
	}
}

func FuzzPreferred(f *testing.F) {
	f.Add("de-AT,en;q=0.8")
	f.Fuzz(func(t *testing.T, header string) {
		if got := preferred(header); !known(got) {
			t.Errorf("%q: unknown language %q", header, got)
		}
	})
}

func TestTimes(t *testing.T) {
	zone := time.FixedZone("", 3600)
	f := &formatter{language: catalogs(t)["de"], now: time.Date(2026, 11, 30, 14, 24, 0, 0, zone), zone: zone}
	for _, c := range []struct {
		at   time.Time
		want template.HTML
	}{
		{f.now.Add(-2 * time.Hour), `<time datetime="2026-11-30T12:24:00+01:00" data-f="clock">12:24</time>`},
		{f.now.Add(-24 * time.Hour), `<time datetime="2026-11-29T14:24:00+01:00" data-f="full">So. 29. November, 14:24</time>`},
		{time.Date(2025, 3, 1, 0, 5, 0, 0, time.UTC), `<time datetime="2025-03-01T01:05:00+01:00" data-f="full">Sa. 1. März 2025, 01:05</time>`},
	} {
		if got, err := f.moment(c.at); err != nil || got != c.want {
			t.Errorf("%s: %s, %v; want %s", c.at, got, err, c.want)
		}
	}
	for d, want := range map[time.Duration]template.HTML{
		-time.Second: "0 Sekunden", time.Second: "1 Sekunde", 119 * time.Second: "119 Sekunden", 3 * time.Minute: "3 Minuten",
		time.Hour: "1 Stunde", 90 * time.Minute: "90 Minuten", 8 * time.Hour: "8 Stunden", 72 * time.Hour: "3 Tage",
	} {
		if got, err := f.span(d); err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", d, got, err, want)
		}
	}
	created := f.now.Add(-15 * time.Minute)
	for left, want := range map[time.Duration]remaining{
		15 * time.Minute: {Text: "15 Min.", Dash: "22 44"},
		5 * time.Minute:  {Text: "5 Min.", Dash: "11 44"},
		61 * time.Second: {Text: "2 Min.", Dash: "2.8 44", Soon: true},
		9 * time.Second:  {Text: "9 s", Dash: "0.4 44", Soon: true},
		-time.Second:     {Text: "0 s", Dash: "0 44", Soon: true},
	} {
		got, err := f.remaining(created, f.now.Add(left))
		if err != nil || got.Text != want.Text || got.Dash != want.Dash || got.Soon != want.Soon {
			t.Errorf("%s: %+v, %v; want %+v", left, got, err, want)
		}
	}
}
