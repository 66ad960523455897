package explain

import (
	"errors"
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

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
	plain, german := Style{Home: "/home/u"}, Style{German: true, Home: "/home/u"}
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
		{"vogt-drop a", []trap.Hint{{Key: "python3"}}, Style{Colour: true}, `Risk {31}critical{0}: writes, destroys
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
  vogt-make  [runs content; high]
  vogt-nothing  [unknown; high]
note vogt-nothing is not in the catalog
`},
		{"vogt-make; vogt-nothing", nil, german, `Risiko hoch: führt Inhalte aus, die der Aufrufer geschrieben haben kann, nicht ganz bekannt
  vogt-make  [führt Inhalte aus; hoch]
  vogt-nothing  [unbekannt; hoch]
Notiz Das Programm steht nicht im Katalog.
`},
		{"if", nil, plain, "Risk high: bash does not accept this text\n  ?  [unknown; high]\nnote `if` must be followed by a statement list\n"},
		{"if", nil, german, "Risiko hoch: bash nimmt diesen Text nicht an\n  ?  [unbekannt; hoch]\nNotiz Der Text ist kein gültiger Shell-Text.\n"},
		{"> a", nil, plain, "Risk high: writes, destroys\n  writes    /srv/app/a\n"},
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
