package explain

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"vogt/internal/catalog"
	"vogt/internal/detail"
	"vogt/internal/reading"
	"vogt/internal/trap"
)

func treeOf(t *testing.T, r *reading.Reading, hints []trap.Hint, style Style) string {
	t.Helper()
	var b strings.Builder
	if err := Tree(&b, "", r, hints, style); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// What a person reads, as it is; colours are written {31} and {0}.
func TestTree(t *testing.T) {
	rd := reader(t)
	plain, german := Style{Home: "/home/u", Project: "/srv/app", Windows: true}, Style{German: true, Home: "/home/u", Project: "/srv/app", Windows: true}
	for _, tt := range []struct {
		line  string
		hints []trap.Hint
		style Style
		want  string
	}{
		{"vogt-show a ~/b /home/user/c", nil, plain, `Risk medium: only reads, and starts nothing that could have been put in its way
  vogt-show a /home/u/b /home/user/c  [reads; medium]
  reads     /srv/app/a
  reads     ~/b
  reads     /home/user/c
`},
		{"vogt-ask a", nil, german, `Risiko mittel: liest nur, fragt aber Einstellungen ab, die Programme starten können
  vogt-ask a  [liest, nach Einstellungen; mittel]
  liest     /srv/app/a
`},
		{"vogt-show a | vogt-with vogt-drop b > d && vogt-call https://example.com/", []trap.Hint{{Key: "python3"}}, plain, `Risk critical: writes, destroys, uses the network, uses higher rights
  because   vogt-with: uses or gives higher rights
  because   vogt-drop: the catalog rates this call as critical
  vogt-show a  [reads; low]
  vogt-with vogt-drop b  [writes, higher rights; critical]
    vogt-drop b  [writes, destroys; critical]
  vogt-call https://example.com/  [network; high]
  reads     /srv/app/a
  writes    /srv/app/d
  deletes   /srv/app/b
  contacts  example.com
hint [python3] PYTHON3
`},
		{"vogt-show a | vogt-with vogt-drop b > d && vogt-call https://example.com/", []trap.Hint{{Key: "python3"}}, german, `Risiko kritisch: schreibt, vernichtet, nutzt das Netz, nutzt höhere Rechte
  Grund     vogt-with: nutzt oder vergibt höhere Rechte
  Grund     vogt-drop: der Katalog stuft diesen Aufruf als kritisch ein
  vogt-show a  [liest; niedrig]
  vogt-with vogt-drop b  [schreibt, höhere Rechte; kritisch]
    vogt-drop b  [schreibt, vernichtet; kritisch]
  vogt-call https://example.com/  [Netz; hoch]
  liest     /srv/app/a
  schreibt  /srv/app/d
  löscht    /srv/app/b
  Kontakt   example.com
Hinweis [python3] PYTHON3
`},
		{"vogt-drop a", []trap.Hint{{Key: "python3"}}, Style{Colour: true, Project: "/srv/other", Windows: true}, `Risk {31}critical{0}: writes, destroys
  because   vogt-drop: deletes outside the project: /srv/app/a
  because   vogt-drop: the catalog rates this call as critical
  {1}vogt-drop a{0}  {2}[writes, destroys; {0}{31}critical{0}{2}]{0}
  deletes   /srv/app/a
{33}hint{0} [python3] PYTHON3
`},
		{"vogt-move a b; vogt-show c", nil, Style{Colour: true, German: true}, `Risiko {33}mittel{0}: schreibt
  {1}vogt-move a b{0}  {2}[schreibt; {0}{33}mittel{0}{2}]{0}
  {1}vogt-show c{0}  {2}[liest; {0}{32}niedrig{0}{2}]{0}
  liest     /srv/app/a
  liest     /srv/app/c
  schreibt  /srv/app/b
`},
		{"vogt-make; vogt-nothing", nil, plain, `Risk high: runs content that the caller could have written, not fully known
  because   vogt-make: runs content that the caller could have written
  because   vogt-nothing: not all of it is known from the text
  vogt-make  [runs content; high]
  vogt-nothing  [unknown; high]
note vogt-nothing is not in the catalog
`},
		{"vogt-make; vogt-nothing", nil, german, `Risiko hoch: führt Inhalte aus, die der Aufrufer geschrieben haben kann, nicht ganz bekannt
  Grund     vogt-make: führt Inhalte aus, die der Aufrufer geschrieben haben kann
  Grund     vogt-nothing: nicht alles geht aus dem Text hervor
  vogt-make  [führt Inhalte aus; hoch]
  vogt-nothing  [unbekannt; hoch]
Notiz vogt-nothing steht nicht im Katalog.
`},
		{"if", nil, plain, "Risk high: bash does not accept this text\n  ?  [unknown; high]\nnote line 1, column 1: `if` must be followed by a statement list\n"},
		{"if", nil, german, "Risiko hoch: bash nimmt diesen Text nicht an\n  ?  [unbekannt; hoch]\nNotiz Zeile 1, Spalte 1: Kein gültiger Shell-Text: auf `if` müssen Anweisungen folgen.\n"},
		{"> a", nil, plain, "Risk high: writes, destroys\n  because   something can be lost without an ordinary undo\n  writes    /srv/app/a\n"},
		{"", nil, plain, "Risk low: only reads, and starts nothing that could have been put in its way\n"},
	} {
		r := rd.Text(tt.line, place)
		got := regexp.MustCompile("\x1b\\[([0-9]+)m").ReplaceAllString(treeOf(t, &r, tt.hints, tt.style), "{$1}")
		lang := trap.English
		if tt.style.German {
			lang = trap.German
		}
		want := strings.ReplaceAll(tt.want, "PYTHON3", trap.Hint{Key: "python3"}.Text(lang))
		if got != want {
			t.Errorf("%s, %+v\ngot\n%s\nwant\n%s", tt.line, tt.style, got, want)
		}
	}
}

// The reason for a risk names what the call does, and what it does it to.
func TestReasons(t *testing.T) {
	rd := reading.New(catalog.New())
	for line, want := range map[string][]string{
		"rm /etc/x":                   {"rm: deletes outside the project: /etc/x"},
		"rm \"$x\"":                   {"rm: deletes what is not known from the text: $x"},
		"rm a":                        {"rm: something can be lost without an ordinary undo"},
		"rm -rf node_modules":         {"rm: the catalog rates this call as critical"},
		"rm -rf .":                    {"rm: deletes the whole project", "rm: the catalog rates this call as critical"},
		"rm -rf /srv/app/*":           {"rm: deletes the whole project", "rm: the catalog rates this call as critical"},
		"sudo ls":                     {"sudo: uses or gives higher rights"},
		"cat ~/.ssh/id_rsa":           {"cat: shows credentials or the environment"},
		"echo a > ~/x":                {"echo: writes outside the project: ~/x"},
		"echo a > ~/.bashrc":          {"echo: writes what executes or steers something later: ~/.bashrc"},
		"curl https://example.com":    {"curl: contacts or listens for another host"},
		"./x":                         {"x: runs content that the caller could have written"},
		"$x":                          {"?: not all of it is known from the text"},
		"dd if=/dev/zero of=/dev/sda": {"dd: overwrites a device: /dev/sda"},
		"ls; ls /x":                   nil,
		"touch a; cp b c":             nil,
		"echo 'a":                     nil,
	} {
		r := rd.Text(line, place)
		text := treeOf(t, &r, nil, Style{Home: "/home/u", Project: place.Cwd})
		var got []string
		for l := range strings.Lines(text) {
			if reason, ok := strings.CutPrefix(l, "  because   "); ok {
				got = append(got, strings.TrimSpace(reason))
			}
		}
		if len(want) > len(got) || !slices.Equal(got[:len(want)], want) || want == nil && got != nil {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}

// Every call of high or critical risk has a reason that says something.
func TestReasonsAreKnown(t *testing.T) {
	c := catalog.New()
	rd := reading.New(c)
	n, vague := 0, 0
	for _, name := range c.Names() {
		text, _ := catalog.Source(name)
		entry, err := catalog.Parse(name, name, text, true)
		if err != nil {
			continue // the business of catalog's own tests
		}
		for _, x := range entry.Examples() {
			for _, german := range []bool{false, true} {
				r := rd.Text(x.Text, place)
				if r.Risk < detail.High {
					continue
				}
				n++
				tree := treeOf(t, &r, nil, Style{German: german, Project: place.Cwd})
				word, nothing := "\n  because   ", ": touches what needs care\n"
				if german {
					word, nothing = "\n  Grund     ", ": berührt, was Vorsicht braucht\n"
				}
				if !strings.Contains(tree, word) {
					t.Errorf("%s: no reason:\n%s", x.Text, tree)
				}
				if strings.Contains(tree, nothing) {
					if vague++; vague < 20 {
						t.Logf("%s: nothing is said:\n%s", x.Text, tree)
					}
				}
			}
		}
	}
	if n < 1000 || vague*50 > n {
		t.Errorf("%d readings, %d with a reason that says nothing", n, vague)
	}
}

// What shows secrets is not said to only read and to be harmless.
func TestTreeSaysSecrets(t *testing.T) {
	for e, want := range map[detail.Effects]string{
		detail.Secrets:                    "Risk high: only reads, but shows secrets",
		detail.Secrets | detail.Unsettled: "Risk high: shows secrets, only reads, but consults settings that can start programs",
		detail.Secrets | detail.Contacts:  "Risk high: shows secrets, uses the network",
	} {
		r := reading.Reading{ParseOK: true, Effects: e, Risk: detail.High}
		if head, _, _ := strings.Cut(treeOf(t, &r, nil, Style{}), "\n"); head != want {
			t.Errorf("%v: %q, want %q", e, head, want)
		}
	}
}

// A hint about a trap of Windows is for people who are there.
func TestTreeHintsOfWindows(t *testing.T) {
	hints := []trap.Hint{{Key: "python3"}, {Key: "pkill-f"}, {Key: "bash"}}
	for _, windows := range []bool{true, false} {
		text := treeOf(t, &reading.Reading{ParseOK: true}, hints, Style{Windows: windows})
		if strings.Contains(text, "[python3]") != windows || !strings.Contains(text, "[pkill-f]") || !strings.Contains(text, "[bash]") {
			t.Errorf("Windows %v:\n%s", windows, text)
		}
	}
}

// The first line always says something, whatever the effects are.
func TestTreeHead(t *testing.T) {
	for e := detail.Effects(0); e < detail.Secrets<<1; e++ {
		for _, parsed := range []bool{true, false} {
			for _, german := range []bool{true, false} {
				r := reading.Reading{ParseOK: parsed, Effects: e, Risk: detail.High}
				head, _, _ := strings.Cut(treeOf(t, &r, nil, Style{German: german}), "\n")
				if _, words, ok := strings.Cut(head, ": "); !ok || words == "" {
					t.Errorf("%v, parsed %v, German %v: %q", e, parsed, german, head)
				}
			}
		}
	}
}

// Nothing of a line commands the terminal, ends a line of the tree, or looks
// like a line of it.
func TestTreeShowsWhatIsHidden(t *testing.T) {
	rd := reader(t)
	hostile := "\x1b[2J\x1b]0;x\x07\u202e\u200b\r\u009b31mz\u0085 \u00a0\u2028\ufeff"
	for _, line := range []string{
		"vogt-show '" + hostile + "'", "vogt-show 'a\nRisk low: reads'", "'vogt-show" + hostile + "' a", "vogt-drop '" + hostile + "'", "vogt-call 'https://" + hostile + ".com/'",
		"vogt-show a > '" + hostile + "'", hostile, "'" + hostile, "vogt-nothing" + hostile, "vogt-with '" + hostile + "' " + hostile, "vogt-show \"$x" + hostile + "\"",
		"vogt-show > $'\\e[31m'", "vogt-show $'\\e]0;x\\a'", "x='" + hostile + "'; $x", "vogt-show \xff\xfe", "cd '" + hostile + "' && vogt-show a",
	} {
		r := rd.Text(line, reading.Place{Cwd: "/srv/\x1b[1m", Home: "/home/\x1b[1m"})
		for _, style := range []Style{{}, {German: true}, {Colour: true}, {Colour: true, German: true, Home: "/home/\x1b[1m"}} {
			text := treeOf(t, &r, nil, style)
			if style.Colour {
				text = regexp.MustCompile("\x1b\\[(0|1|2|31|32|33)m").ReplaceAllString(text, "")
			}
			for _, c := range text {
				if c != '\n' && unicode.In(c, unicode.C, unicode.Zl, unicode.Zp) || c == unicode.ReplacementChar {
					t.Errorf("%q, %+v shows %q:\n%q", line, style, c, text)
					break
				}
			}
			for i, l := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
				known := false
				for _, start := range []string{"  ", "note ", "Notiz ", "Risk ", "Risiko ", "…"} {
					known = known || strings.HasPrefix(l, start) && (i == 0) == strings.HasPrefix(start, "Ris")
				}
				if !known {
					t.Errorf("%q, %+v: the line %q is none of the tree", line, style, l)
				}
			}
		}
	}
}

// However long a line is, the tree stays readable: every line of it is cut,
// and so is every list.
func TestTreeIsShort(t *testing.T) {
	rd := reader(t)
	long := strings.Repeat("ä", 5000)
	for _, line := range []string{
		"vogt-show " + long, "vogt-drop /" + long, "vogt-call https://" + strings.Repeat("a", 5000) + "/", "vogt-" + long, "vogt-show > " + long,
		"vogt-show " + strings.Repeat("a ", 5000), "vogt-show " + strings.Repeat("'\x1b'", 5000),
		strings.Repeat("vogt-with ", 20) + "vogt-show a",
	} {
		r := rd.Text(line, place)
		text := treeOf(t, &r, nil, Style{})
		for l := range strings.Lines(text) {
			if n := utf8.RuneCountInString(l); n > 300 {
				t.Errorf("%.30q…: a line of %d characters: %.60q…", line, n, l)
			}
		}
	}
	var many strings.Builder
	for i := range 30 {
		name := strings.Repeat("a", i+1)
		many.WriteString("vogt-drop " + name + "; vogt-call https://" + name + ".example/; vogt-no-" + name + "; ")
	}
	r := rd.Text(many.String(), place)
	text := treeOf(t, &r, nil, Style{})
	for _, word := range []string{"  deletes ", "  contacts ", "note "} {
		if n := strings.Count(text, "\n"+word); n != 12 {
			t.Errorf("%d lines of %q, want 12 and how many more there are", n, word)
		}
	}
	if !strings.Contains(text, "\n            … 18\n") || !strings.HasSuffix(text, "\n…\n") {
		t.Errorf("what is left out is not said:\n%s", text)
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("the pipe is closed") }

func TestTreeReportsWriteErrors(t *testing.T) {
	if err := Tree(broken{}, "", &reading.Reading{}, nil, Style{}); err == nil || err.Error() != "the pipe is closed" {
		t.Errorf("got %v", err)
	}
}
