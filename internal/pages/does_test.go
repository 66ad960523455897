package pages

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"vogt/internal/audit/mask"
	"vogt/internal/detail"
	"vogt/internal/explain"
	"vogt/internal/reading"
	"vogt/internal/trap"
)

// outline writes a tree of calls in one line: what is started stands in
// brackets behind what starts it.
func outline(calls []*callView) string {
	var out []string
	for _, c := range calls {
		text := c.Text
		if c.Risk != "" {
			text += " !" + c.Risk
		}
		if len(c.Starts) > 0 {
			text += " [" + outline(c.Starts) + "]"
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}

func TestDoes(t *testing.T) {
	does := func(argv ...string) *doesView { return doesOf(read(t, argv...), argv, trap.English, false) }
	for _, c := range []struct {
		argv []string
		want string
	}{
		{[]string{"ls"}, "ls"},
		{[]string{"rm", "-rf", "a b"}, "rm -rf 'a b' !critical"},
		{[]string{"sudo", "rm", "x"}, "sudo rm x !critical [rm x !high]"},
		{[]string{"sh", "-c", "cat a; sudo cp b c; ls"}, "sh -c 'cat a; sudo cp b c; ls' [cat a, sudo cp b c !critical [cp b c !medium], ls]"},
		{[]string{"sh", "-c", "cat $HOME/*.txt"}, "sh -c 'cat $HOME/*.txt' [cat ~/*.txt !medium]"},
	} {
		d := does(c.argv...)
		if got := outline(d.Calls); got != c.want || d.MoreCalls != 0 {
			t.Errorf("%q: %s, and %d more, want %s", c.argv, got, d.MoreCalls, c.want)
		}
	}

	d := does("sh", "-c", "rm -rf /srv/x; cp a .git/hooks/pre-commit; curl https://u:p@api.example/v1; cat /etc/hosts")
	lists := map[string][]string{}
	for _, l := range d.Lists {
		lists[l.Key] = l.Values
	}
	for key, want := range map[string][]string{
		"reads": {"/home/mara/shop/a", "/etc/hosts"}, "writes": {"/home/mara/shop/.git/hooks/pre-commit"}, "deletes": {"/srv/x"}, "contacts": {"api.example"},
	} {
		if !slices.Equal(lists[key], want) {
			t.Errorf("%s: %q, want %q", key, lists[key], want)
		}
	}
	if !slices.Contains(lists["steers"], "/home/mara/shop/.git/hooks/pre-commit") {
		t.Errorf("steers: %q", lists["steers"])
	}
	var labels []string
	for _, e := range d.Effects {
		labels = append(labels, e.Key)
	}
	if !slices.Equal(labels, []string{"destroys", "network", "writes"}) {
		t.Errorf("the labels are %q", labels)
	}
	if d := does("sh", "-c", "echo (x"); len(d.Calls) != 1 || len(d.Calls[0].Starts) != 1 || !d.Calls[0].Starts[0].Unknown || d.Calls[0].Starts[0].Text != "" {
		t.Errorf("a text that is none is shown as %s", outline(d.Calls))
	}
	if d := doesOf(nil, []string{"ls"}, trap.English, false); !d.Unread || d.Calls != nil {
		t.Errorf("what cannot be read is shown as %+v", d)
	}
}

// TestEffects: every effect has a label, and what only reads says so.
func TestEffects(t *testing.T) {
	for _, c := range []struct {
		e    detail.Effects
		want string
	}{
		{0, "reads"},
		{detail.Secrets, "secrets reads"},
		{detail.Unsettled, "settings"},
		{detail.Door, "door"},
		{detail.Writes, "writes"},
		{detail.Writes | detail.Unsettled, "writes"},
		{detail.Opaque | detail.Privileged | detail.Destroys | detail.Executes | detail.Secrets | detail.Door | detail.Contacts | detail.Writes | detail.Unsettled,
			"opaque rights destroys executes secrets door network writes"},
	} {
		var keys []string
		for _, l := range effectsOf(c.e) {
			keys = append(keys, l.Key)
			for tag, lang := range catalogs(t) {
				if _, err := lang.text("effect." + l.Key); err != nil {
					t.Errorf("%s: %v", tag, err)
				}
			}
			icons, err := files.ReadFile("assets/icons.svg")
			if err != nil || !strings.Contains(string(icons), `<symbol id="`+l.Icon+`"`) {
				t.Errorf("%s has no picture %s", l.Key, l.Icon)
			}
		}
		if got := strings.Join(keys, " "); got != c.want {
			t.Errorf("%s: %q, want %q", c.e, got, c.want)
		}
	}
	for e := detail.Writes; e <= detail.Secrets; e <<= 1 {
		if len(effectsOf(e)) == 0 {
			t.Errorf("%s has no label", e)
		}
	}
}

// TestDoesMasks: what the command does not show is not in its reading either,
// wherever variables bring it; what would run or be touched always is.
func TestDoesMasks(t *testing.T) {
	const secret = "hunter2-Correct-Horse-41"
	for _, argv := range [][]string{
		{"curl", "--password", secret, "https://x.example/"},
		{"sudo", "curl", "--password", secret, "https://x.example/"},
		{"curl", "https://mara:" + secret + "@x.example/"},
		{"sh", "-c", "PASSWORD=" + secret + "; curl -H \"X-Say: $PASSWORD\" https://x.example/"},
		{"sh", "-c", "PASSWORD=" + secret + "; sh -c \"echo $PASSWORD\""},
		{"sh", "-c", "PASSWORD=" + secret + "; no-such-program-here --$PASSWORD"},
		{"sh", "-c", "PASSWORD=hunter2-Corr\\ect-Horse-41; curl -H \"X-Say: $PASSWORD\" https://x.example/"},
		{"sh", "-c", "export TOKEN=" + secret + "; ls -$TOKEN"},
	} {
		if command := commandOf(argv, true); command.Secrets == 0 {
			t.Errorf("%q: the command shows it all, so the test shows nothing", argv)
		}
		for _, whole := range []bool{false, true} {
			d := doesOf(read(t, argv...), argv, trap.English, whole)
			if text := fmt.Sprintf("%s %v %v", outline(d.Calls), d.Lists, d.Notes); strings.Contains(text, secret) || !strings.Contains(text, mask.Mark) {
				t.Errorf("%q is shown as %s", argv, text)
			}
		}
	}
	for _, c := range []struct {
		script string
		shown  []string
	}{
		{"PASSWORD=/srv/data; rm -rf $PASSWORD", []string{"[/srv/data]"}},                // among what is deleted
		{"PASSWORD=curl; curl x.example", []string{"curl x.example"}},                    // a program's name
		{"TOKEN=--no-preserve-root; rm $TOKEN /srv/x", []string{"--no-preserve-root"}},   // an option
		{"PASSWORD=`rm -rf /srv/x`; ls", []string{"PASSWORD=`rm -rf /srv/x`", "/srv/x"}}, // what runs
	} {
		argv := []string{"sh", "-c", c.script}
		d := doesOf(read(t, argv...), argv, trap.English, false)
		text := fmt.Sprintf("%s %v %v", outline(d.Calls), d.Lists, d.Notes)
		for _, s := range c.shown {
			if !strings.Contains(text, s) {
				t.Errorf("%q does not show %q: %s", c.script, s, text)
			}
		}
	}
}

func TestHiddenValues(t *testing.T) {
	for _, c := range []struct {
		text, masked string
		want         []string
	}{
		{"a=secret", "a=[masked]", []string{"secret"}},
		{"a=secret b=other", "a=[masked] b=[masked]", []string{"secret", "other"}},
		{"x ghp_1234567890 y", "x ghp_[masked] y", []string{"1234567890"}},
		{"secret", "[masked]", []string{"secret"}},
		{"p=abc", "p=[masked]", nil},    // too short to say anything
		{"p=-force", "p=[masked]", nil}, // would take effect as an option
		{"[masked]", "[masked]", []string{"[masked]"}},
		{"nothing alike", "else [masked]", nil},
		{"plain", "plain", nil},
	} {
		if got := hiddenValues(c.text, c.masked); !slices.Equal(got, c.want) {
			t.Errorf("%q as %q hides %q, want %q", c.text, c.masked, got, c.want)
		}
	}
}

// TestDoesIsLimited: however much would start, the view stays small, counts
// what it leaves out, and shows more on one page.
func TestDoesIsLimited(t *testing.T) {
	size := func(d *doesView) (n, calls int) {
		var walk func([]*callView)
		walk = func(list []*callView) {
			for _, c := range list {
				n, calls = n+len(c.Text), calls+1
				walk(c.Starts)
			}
		}
		walk(d.Calls)
		for _, l := range d.Lists {
			for _, v := range l.Values {
				n += len(v)
			}
		}
		for _, note := range d.Notes {
			n += len(note)
		}
		return n, calls
	}
	var many strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&many, "rm file-%04d\n", i)
	}
	long := strings.Repeat("é", 1<<18)
	for name, argv := range map[string][]string{
		"10,000 calls":       {"sh", "-c", many.String()},
		"a word of 512 kB":   {"rm", long},
		"words of 1 MB":      append([]string{"rm"}, slices.Repeat([]string{"some-file"}, 100_000)...),
		"a script of 512 kB": {"sh", "-c", "echo " + long},
		"a long variable":    {"sh", "-c", "X=" + strings.Repeat("y", 10_000) + "\n" + strings.Repeat("rm $X/a\n", 1000)},
		"a deep nest":        {"sh", "-c", strings.Repeat("sudo env nice ", 500) + "ls"},
		"many notes":         {"sh", "-c", strings.Repeat("no-such-program-here-\u202e-a; no-such-\u200b-b\n", 500)},
		"a long note":        {"sh", "-c", strings.Repeat("x", 100_000)},
		"secrets everywhere": {"sh", "-c", strings.Repeat("PASSWORD=hunter2-Correct-Horse ls\n", 3000)},
	} {
		r := read(t, argv...)
		for whole, most := range map[bool]int{false: 20_000, true: 3_000_000} {
			d := doesOf(r, argv, trap.English, whole)
			bytes, calls := size(d)
			if bytes > most {
				t.Errorf("%s, whole %t: %d bytes", name, whole, bytes)
			}
			if calls+d.MoreCalls != len(r.Calls) {
				t.Errorf("%s, whole %t: %d calls and %d more, of %d", name, whole, calls, d.MoreCalls, len(r.Calls))
			}
			lists := map[string]int{}
			for _, l := range d.Lists {
				lists[l.Key] = len(l.Values) + l.More
			}
			if lists["deletes"] != len(r.Paths.Deletes) {
				t.Errorf("%s, whole %t: %d files to delete, of %d", name, whole, lists["deletes"], len(r.Paths.Deletes))
			}
		}
	}
}

// TestNesting: a call stands in what started it, and not further in than a
// phone has room for.
func TestNesting(t *testing.T) {
	var calls []*reading.Call
	for _, depth := range []int{0, 1, 2, 1, 0, 2, 3, 2} {
		calls = append(calls, &reading.Call{Program: fmt.Sprint(depth), Depth: depth, Risk: detail.Low})
	}
	text := func(c *reading.Call) string { return c.Program }
	top, more := callsOf(calls, 100, text)
	if got := outline(top); got != "0 [1 [2], 1], 0 [2 [3], 2]" || more != 0 {
		t.Errorf("%s, %d more", got, more)
	}
	if top, more = callsOf(calls, 3, text); outline(top) != "0 [1 [2]]" || more != 5 {
		t.Errorf("three of them: %s, %d more", outline(top), more)
	}
	calls = nil
	for depth := range 100 {
		calls = append(calls, &reading.Call{Depth: depth})
	}
	top, _ = callsOf(calls, 1000, text)
	deepest := 0
	for ; len(top) > 0; top = top[0].Starts {
		deepest++
	}
	if deepest != nestMost+1 {
		t.Errorf("calls stand %d in each other, want %d", deepest, nestMost+1)
	}
}

// TestNotes: a note is in the page's language, with what it says of the command
// masked, and each once.
func TestNotes(t *testing.T) {
	hidden := strings.NewReplacer("hunter2", "•••")
	problems := []reading.Problem{
		{Key: "not-in-catalog", Text: "frob is not in the catalog"}, {Key: "not-in-catalog", Text: "frob is not in the catalog"},
		{Key: "not-in-catalog", Text: "hunter2 is not in the catalog"}, {Key: "not-in-catalog", Text: "three is not in the catalog"},
	}
	got, more := notesOf(problems, trap.German, hidden, 2)
	if want := []string{"frob steht nicht im Katalog.", "••• steht nicht im Katalog."}; !slices.Equal(got, want) || more != 1 {
		t.Errorf("%q, %d more", got, more)
	}
	if got, _ := notesOf(problems, trap.English, hidden, 9); len(got) != 3 || got[0] != "frob is not in the catalog" {
		t.Errorf("in English: %q", got)
	}
}

// TestNotesAreTranslated holds German to the kinds of problems that reading
// knows.
func TestNotesAreTranslated(t *testing.T) {
	names, err := filepath.Glob("../reading/*.go")
	if err != nil || len(names) == 0 {
		t.Fatal("no sources: ", err)
	}
	found := map[string]bool{}
	for _, name := range names {
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		for _, m := range regexp.MustCompile(`\.(?:problem|unknown|opaque|content)\([^"\n]*"([a-z0-9-]+)",`).FindAllSubmatch(source, -1) {
			found[string(m[1])] = true
		}
	}
	if len(found) < 20 {
		t.Errorf("only %d kinds of problems are found", len(found))
	}
	german := explain.Notes("de")
	for key := range found {
		if german[key] == "" {
			t.Errorf("%s has no German words", key)
		}
	}
	for key, text := range german {
		if strings.ContainsAny(text, "<>\"!") || !strings.HasSuffix(text, ".") {
			t.Errorf("%s: %s", key, text)
		}
	}
}

func TestTightScript(t *testing.T) {
	for in, want := range map[string]string{
		`const a = b ? "x : y" : c;`:            `const a=b?"x : y":c;`,
		`if (a && b) return - c + + d;`:         `if(a&&b)return - c + + d;`,
		"const s = `a = ${ b }`, t = 1;":        "const s=`a = ${ b }`, t = 1;",
		`x = y.replace(/ , /g, "") , z = 1;`:    `x=y.replace(/ , /g, "") , z = 1;`,
		`x = "a \" = b" , y = 1;`:               `x="a \" = b" , y = 1;`,
		`say("it's = so") , x = 'a = b' , y;`:   `say("it's = so"),x='a = b' , y;`,
		`for (const [k, v] of Object.keys(a))`:  `for(const[k,v]of Object.keys(a))`,
		`const f = async ({ a, b }) => a in b;`: `const f=async({a,b})=>a in b;`,
	} {
		if got := string(tightScript([]byte(in))); got != want {
			t.Errorf("%s becomes %s, want %s", in, got, want)
		}
	}
}
