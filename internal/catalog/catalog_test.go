package catalog

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"vogt/internal/detail"
)

// A program's name leads to its entry: by itself, as a program of Windows,
// with a version at its end, and by the names that are no files.
func TestEntryNames(t *testing.T) {
	c := New()
	for name, want := range map[string]string{
		"git": "git", "git.exe": "git", "Git.EXE": "git", "GIT.exe": "git", "Git": "", "git.exe.exe": "git",
		"python3": "python3", "python": "python3", "python3.12": "python3", "python2": "python3", "python3.12.exe": "python3", "Python3.exe": "python3",
		"gcc-12": "gcc", "gcc": "gcc", "gcc-12.2": "gcc", "[": "test", "test": "test", ".": "source", "source": "source", ":": "true",
		"cat2": "", "git2": "", "": "", "7": "", "2.7": "", "-": "", "..": "", "/": "", "../data/git": "", "git/": "", "data/git": "", `a\b`: "",
		"git\x00": "", "*": "", "?": "", ".exe": "", "\xff": "", "ﬀ": "", strings.Repeat("a", 1<<16): "",
	} {
		for range 2 { // from the file, then remembered
			got := ""
			if e := c.Entry(name); e != nil {
				got = e.Name
			}
			if got != want {
				t.Errorf("%.40q is %q, want %q", name, got, want)
			}
		}
	}
}

// Owners add programs; what Vogt brings stays as it is, whatever they say.
func TestAdd(t *testing.T) {
	const text = "parser getopt\nform run : inert :"
	c := New()
	if c.Entry("vogt-notes") != nil {
		t.Fatal("there is such a program")
	}
	add := func(name, body string) error {
		return c.Add("/etc/vogt/catalog/"+name, name, Version+"\nprogram "+name+"\nabout is a program\n"+body+"\n")
	}
	if err := add("vogt-notes", text); err != nil {
		t.Fatal(err)
	}
	if e := c.Entry("vogt-notes"); e == nil || e.Source != "/etc/vogt/catalog/vogt-notes" {
		t.Errorf("after Add: %+v", e)
	}
	if names := c.Names(); !slices.Contains(names, "vogt-notes") || !slices.Contains(names, "git") || !slices.IsSorted(names) {
		t.Error("Names does not list the program, or is not sorted")
	}
	for _, name := range []string{"git", "python", "[", ":", "test"} {
		err := add(name, text)
		if want := "/etc/vogt/catalog/" + name + ": " + name + " is in Vogt's own catalog, which no file changes"; err == nil || err.Error() != want {
			t.Errorf("adding %s: got %v, want %s", name, err, want)
		}
	}
	before := c.Entry("vogt-notes")
	if err := add("vogt-bad", text+"\ncommand c\nbogus"); err == nil || withoutWords(err.Error()) != `/etc/vogt/catalog/vogt-bad:7: unknown statement "bogus"` {
		t.Errorf("a broken section: %v", err)
	}
	if err := c.Add("f", "vogt-a", Version+"\nprogram vogt-b\nabout b\n"+text); err == nil || err.Error() != `f:2: the file is named for "vogt-a", and the entry is about "vogt-b"` {
		t.Errorf("another name: %v", err)
	}
	if c.Entry("vogt-bad") != nil || c.Entry("vogt-a") != nil || c.Entry("vogt-notes") != before {
		t.Error("what is refused changed the catalog")
	}
}

// A program whose entry could not be read is unknown: it has neither the
// meaning of a relative nor one that was found before. What Vogt brings stays.
func TestWithhold(t *testing.T) {
	c := New()
	if c.Entry("python3.99") == nil || c.Entry("gcc-99") == nil {
		t.Fatal("versions of python and gcc are known")
	}
	for _, name := range []string{"python3.99", "gcc-99", "vogt-none", "ls", "[", ""} {
		c.Withhold(name)
	}
	for name, known := range map[string]bool{"python3.99": false, "python3.99.exe": false, "gcc-99": false, "vogt-none": false, "python3.98": true, "ls": true, "[": true, "": false} {
		if got := c.Entry(name) != nil; got != known {
			t.Errorf("%q is known: %v", name, got)
		}
	}
	if err := c.Add("f", "vogt-other", Version+"\nprogram vogt-other\nsame-as vogt-none\n"); err != nil || c.Entry("vogt-other") != nil || c.Alias("vogt-other") != "vogt-none" || c.Alias("ls") != "" {
		t.Errorf("another name of what is withheld: %v", err)
	}
}

func TestReplace(t *testing.T) {
	e, err := Parse("f", "ls", Version+"\nprogram ls\nabout is changed\nparser none\nform run : critical opaque :\n", true)
	if err != nil {
		t.Fatal(err)
	}
	c := New()
	if old := c.Entry("ls"); old == nil || old == e {
		t.Fatal("ls is not in the catalog")
	}
	c.Replace(e)
	if c.Entry("ls") != e || c.Entry("cat") == nil {
		t.Error("the entry is not in its place")
	}
}

func TestSource(t *testing.T) {
	if text, ok := Source("git"); !ok || !strings.HasPrefix(text, Version+"\nprogram git\n") {
		t.Errorf("git: %.40q, %v", text, ok)
	}
	if a, _ := Source("["); a == "" {
		t.Error("[ has no text")
	}
	for _, name := range []string{"", ".", "..", "../data/git", "/git", "no-such-program", "data", `..\git`, ".git"} {
		if text, ok := Source(name); name != "." && (ok || text != "") {
			t.Errorf("%q has a text", name)
		}
	}
}

// One catalog serves all requests at once: entries, their sections and what a
// call means are found by many, while an owner's entries come in.
func TestConcurrentUse(t *testing.T) {
	c := New()
	lines := []string{
		"git log -3", "git stash pop", "git remote add a b", "git push -f", "docker run -it a b", "docker compose up", "kubectl get pods",
		"tar tf a", "find . -name a -delete", "ip addr show", "python3 -c a", "npm run build", "env A=b ls", "ls -l", "no-such-program a",
	}
	want := make([]string, len(lines))
	alone := New()
	for i, line := range lines {
		if e := alone.Entry(strings.Fields(line)[0]); e != nil {
			want[i] = told(e, line)
		}
	}
	var all sync.WaitGroup
	start := make(chan struct{})
	for g := range 16 {
		all.Go(func() {
			<-start
			for k := range 4 * len(lines) {
				i := (g + k) % len(lines)
				e := c.Entry(strings.Fields(lines[i])[0])
				switch {
				case e == nil && want[i] != "", e != nil && want[i] == "":
					t.Errorf("%s: entry %v", lines[i], e)
				case e != nil:
					if got := told(e, lines[i]); got != want[i] {
						t.Errorf("%s: got %s, want %s", lines[i], got, want[i])
					}
				}
				c.Variable("LD_PRELOAD", "git")
				c.Matters("PAGER")
				c.Classify("/etc/cron.d/a", "/root")
				c.HostKind("github.com")
				if g%4 == 0 && k%8 == 0 {
					name := fmt.Sprintf("vogt-%d-%d", g, k)
					if err := c.Add(name, name, Version+"\nprogram "+name+"\nabout a\nparser none\nform run : inert :\n"); err != nil {
						t.Error(err)
					}
					if c.Entry(name) == nil || !slices.Contains(c.Names(), name) {
						t.Errorf("%s is not there after Add", name)
					}
				}
			}
		})
	}
	close(start)
	all.Wait()
}

// Names come from outside: the catalog remembers neither all nor long ones.
func TestEntryMemory(t *testing.T) {
	c := New()
	for i := range maxFound + 100 {
		c.Entry(fmt.Sprintf("no-such-%d", i))
	}
	if len(c.found) > maxFound {
		t.Errorf("%d names are remembered, want at most %d", len(c.found), maxFound)
	}
	if e := c.Entry("git"); e == nil || e != c.Entry("git.exe") && e.Name != c.Entry("git.exe").Name {
		t.Error("a full memory hides an entry")
	}
	c = New()
	size := 0
	for i := range 64 {
		c.Entry(strings.Repeat("x", 1<<16) + fmt.Sprint(i))
	}
	for name := range c.found {
		size += len(name)
	}
	if size > 1<<16 {
		t.Errorf("%d bytes of unknown names are remembered", size)
	}
}

// The zero values refuse, and say so.
func TestZeroUse(t *testing.T) {
	var u Use
	if u.Operation() != "" || u.Form() != "" || u.DashStdout() {
		t.Errorf("the zero use is %q %q %v", u.Operation(), u.Form(), u.DashStdout())
	}
	for _, name := range []string{"tee", "curl"} {
		u := New().Entry(name).Interpret(wordsOf(name))
		if want := strings.Contains(traitsOf(t, name), "dash-stdout"); u.DashStdout() != want {
			t.Errorf("%s: a dash is standard output: %v, want %v", name, u.DashStdout(), want)
		}
	}
	e, err := Parse("x", "x", entryOf("parser getopt\nform run : inert :"), true)
	if err != nil {
		t.Fatal(err)
	}
	u = Use{Effects: detail.Writes, Why: "left over", Values: []Value{{}}}
	e.InterpretTo(wordsOf("x"), &u)
	if u.Effects != 0 || u.Why != "" || u.Values != nil || u.WhyWord != -1 || u.Form() != "run" || u.Operation() != "x" {
		t.Errorf("a use that was there before shows: %+v", u)
	}
	if u := e.Interpret(nil); u.Effects != 0 || u.Form() != "run" {
		t.Errorf("no words: %+v", u)
	}
}

// traitsOf is the line of an entry that says how its words are read.
func traitsOf(t *testing.T, name string) string {
	t.Helper()
	text, ok := Source(name)
	if !ok {
		t.Fatalf("%s is not in the catalog", name)
	}
	_, text, _ = strings.Cut(text, "\nparser ")
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// A call's use is the caller's: the next call does not change it.
func TestUseIsKept(t *testing.T) {
	e := New().Entry("cp")
	first := e.Interpret(wordsOf("cp -t d a b c"))
	kept := slices.Clone(first.Values)
	for range 100 {
		e.Interpret(wordsOf("cp -v x y z w q"))
	}
	if !slices.Equal(first.Values, kept) || len(kept) != 4 {
		t.Errorf("the values became %v from %v", first.Values, kept)
	}
}

// How a word that is not literal shows, and what stands for what is not known.
func TestWords(t *testing.T) {
	for _, tt := range []struct {
		word            Word
		shown, template string
	}{
		{Word{}, "", ""},
		{Word{Text: "a b"}, "a b", "a b"},
		{Open(Partial, "a", "a$x", "a"+string(Hole), false), "a$x", "a" + string(Hole)},
		{Unknown(Many), "…", string(Hole)},
	} {
		if tt.word.Shown() != tt.shown || tt.word.Template() != tt.template {
			t.Errorf("%+v shows as %q and %q", tt.word, tt.word.Shown(), tt.word.Template())
		}
	}
	if w := Unknown(Partial); w.Kind != Partial || !w.Option || w.Text != "" {
		t.Errorf("an unknown word is %+v", w)
	}
}
