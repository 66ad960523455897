package trap

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// ordinary are lines that agents write all day; no word of them plays a part
// in any trap.
var ordinary = []string{
	"ls -la",
	"git status",
	"git diff --stat HEAD~3",
	"git commit -m 'reading: a line ends where it ends'",
	"go test ./...",
	"go build ./cmd/vogt && go vet ./... 2>&1",
	"grep -rn 'func main' --include='*.go' .",
	"cat internal/reading/reading.go | head -60",
	"sed -n 1,120p internal/reading/reading.go",
	"npm run build",
	"mkdir -p a/b/c && cp x a/b/c/",
}

func TestTexts(t *testing.T) {
	seen := make(map[string]string)
	for _, key := range Keys() {
		english, german := Hint{Key: key}.Text(English), Hint{Key: key}.Text(German)
		for _, text := range []string{key, english, german, Source(key)} {
			if text == "" || strings.TrimSpace(text) != text || strings.Contains(text, "  ") || strings.Contains(text, "\n") || !utf8.ValidString(text) {
				t.Errorf("%s: %q", key, text)
			}
		}
		for _, text := range []string{english, german} {
			if len(text) > 300 || !strings.HasSuffix(text, ".") {
				t.Errorf("%s: a hint is one to three sentences: %q", key, text)
			}
			if other, taken := seen[text]; taken {
				t.Errorf("%s and %s say the same", key, other)
			}
			seen[text] = key
		}
		// An umlaut that is written as two letters.
		for _, word := range []string{"fuer", "ueber", "koenn", "waehl", "laeuf", "loesch", "Anfuehrung", "grueß"} {
			if strings.Contains(german, word) {
				t.Errorf("%s: %q holds %q", key, german, word)
			}
		}
	}
	if keys := Keys(); !slices.Equal(keys[:4], []string{"python-I", "pkill-f", "python3", "bash"}) {
		t.Errorf("the first keys are %q", keys[:4])
	}
}

func TestUnknown(t *testing.T) {
	if text := (Hint{Key: "nothing"}).Text(German); text != "" {
		t.Errorf("an unknown key has the text %q", text)
	}
	if source := Source(""); source != "" {
		t.Errorf("the empty key has the source %q", source)
	}
	known := Hint{Key: "bash"}
	if known.Text(Language(9)) != known.Text(English) {
		t.Error("an unknown language is not English")
	}
	var zero Language
	if zero != English {
		t.Error("the zero language is not English")
	}
}

func TestKeysIsACopy(t *testing.T) {
	keys := Keys()
	keys[0] = "changed"
	if Keys()[0] == "changed" {
		t.Error("a caller can change the list of keys")
	}
}

// A text that does not parse gets the kinds of text.go, and no others.
func TestWithoutParse(t *testing.T) {
	text := "rm -rf / tmp; pkill -f x; python3 y ("
	if got := keysOf(Hints(text, nil)); !slices.Equal(got, []string{"pkill-f", "python3"}) {
		t.Errorf("%q: %q", text, got)
	}
}

// Hints come in the order of the text, each key once, and each points at its
// beginning, also inside text that another shell parses.
func TestOrderAndOffsets(t *testing.T) {
	tests := []struct {
		text string
		want []string // key and what stands at the offset
	}{
		{`python3 x; rm -rf / tmp; pkill -f y`, []string{"python3 python3 x", "rm-space / tmp", "pkill-f pkill -f"}},
		{`chmod -R 777 a; sudo cd b; chmod -R 777 c`, []string{"chmod-777 chmod -R 777 a", "sudo-cd cd b"}},
		{`bash -c 'ls; sudo cd b'`, []string{"sudo-cd cd b"}},
		{`bash -c "ls; sudo cd b"`, []string{"sudo-cd cd b"}},
		{`ssh h 'sh -c "sudo cd b"'`, []string{"sudo-cd cd b"}},
		{`bash -c "ls \"\"; sudo cd b"`, []string{`sudo-cd "ls`}}, // inside, positions are not those of the text
		{`echo ä; sudo cd b`, []string{"sudo-cd cd b"}},
	}
	for _, test := range tests {
		hints := Hints(test.text, parse(t, test.text))
		ok := len(hints) == len(test.want)
		for i := 0; ok && i < len(hints); i++ {
			key, begin, _ := strings.Cut(test.want[i], " ")
			ok = hints[i].Key == key && strings.HasPrefix(test.text[hints[i].At:], begin)
		}
		if !ok {
			t.Errorf("%q: %+v, want %q", test.text, hints, test.want)
		}
	}
}

// Text inside text is followed three levels down, and no further.
func TestDepth(t *testing.T) {
	text := "sudo cd x"
	for level := range 6 {
		found := len(Hints(text, parse(t, text))) == 1
		if want := level <= maxDepth; found != want {
			t.Errorf("%d levels: found %v, want %v", level, found, want)
		}
		quoted, err := syntax.Quote(text, syntax.LangBash)
		if err != nil {
			t.Fatal(err)
		}
		text = "sh -c " + quoted
	}
}

// An ordinary line costs no allocation.
func TestOrdinaryLines(t *testing.T) {
	for _, line := range ordinary {
		file := parse(t, line)
		if hints := Hints(line, file); hints != nil {
			t.Errorf("%q: %+v", line, hints)
		}
		if allocations := testing.AllocsPerRun(10, func() { Hints(line, file) }); allocations != 0 {
			t.Errorf("%q: %v allocations", line, allocations)
		}
	}
}

// Texts that would show a quadratic step by taking minutes.
func hostile() map[string]string {
	const size = 100_000
	fill := func(piece string) string { return strings.Repeat(piece, size/len(piece)) }
	nest := func(open, inner, shut string, depth int) string {
		return strings.Repeat(open, depth) + inner + strings.Repeat(shut, depth)
	}
	return map[string]string{
		"python options":   fill("python -X python "),
		"python quotes":    fill(`python -W'x `),
		"pkill options":    fill("pkill -u "),
		"bash words":       "cmd /c " + fill("/bash "),
		"lists":            fill("make|tee a&&") + "ls",
		"groups":           nest("{ a|while read x;do n=1;done; ", ":", ";}", 1000),
		"substitutions":    nest("cmd $(", "python|x", ")", 3000),
		"assignments":      fill("a=1 ") + fill("$b "),
		"here-documents":   "cat " + strings.Repeat("<<a ", 3000) + "\n" + strings.Repeat("$x\na\n", 3000),
		"redirections":     "cat f " + fill("> f "),
		"inner text":       fill("sh -c 'rm $x';"),
		"find":             "find . " + fill("-exec rm ; "),
		"operands":         "rm -r " + fill("$x/y "),
		"tests":            fill("[ $x = y ];"),
		"loops":            nest("for f in $(", "ls", ");do :;done", 2000),
		"parameters":       "X=" + nest("${a:-", "b", "}", 3000),
		"pipes":            fill("ls|xargs echo|") + "ls",
		"commands in ssh":  fill("ssh h cd x;"),
		"mentions":         fill("echo python3;"),
		"live mentions":    fill("echo python3|x;"),
		"deep mentions":    nest("echo $(", "echo python3 #", "\n)", 3000),
		"piped mentions":   nest("echo $(echo $a|", "echo python3", ")", 3000),
		"shells":           fill("sh -c 'echo pkill -f x';"),
		"mention strings":  "echo " + fill("\"python3 $x\""),
		"comments":         fill("echo # python3\n"),
		"piped loops":      nest("a|while b;do n=1; ", "python3", ";done;echo $n", 1500),
		"loops in a row":   fill("a|while b;do n=1;done;echo $m;"),
		"if in loops":      nest("a|while b;do if c;then n=1; ", ":", ";fi;done", 1500),
		"find starts":      "find " + fill("$x/ ")[:50_000] + fill("-delete ")[:50_000],
		"find or":          "find . " + fill("-name a -o "),
		"test signs":       "[ " + fill("a ")[:50_000] + fill("> b ")[:50_000] + "]",
		"crontab strings":  "crontab " + fill("a ")[:50_000] + fill("<<< a ")[:48_000],
		"chains":           fill("cd a&&") + "ls;rm -r b",
		"chained cds":      fill("cd a||true;rm -r b;"),
		"braces":           "echo " + fill("{1..$n}"),
		"open braces":      "echo " + fill("{$a"),
		"rm variables":     "rm -r " + fill("$x/$y"),
		"fetched":          fill("X=$(curl x);eval $X;"),
		"started shells":   fill("curl x|ssh h sh|") + "ls",
		"xargs":            "ls|" + fill("xargs -n 1 rm|") + "ls",
		"modes":            "chmod -R " + fill("a-x,"),
		"heredoc lines":    "cat > x.sh <<E\n" + fill("$x `y` \\$\n") + "E",
		"one long word":    "rm " + fill("x"),
		"only white space": "rm" + fill(" "),
	}
}

func TestHostileTexts(t *testing.T) {
	for name, text := range hostile() {
		Hints(text, nil)
		file, err := syntax.NewParser().Parse(strings.NewReader(text), "")
		if err == nil {
			Hints(text, file)
		}
		t.Logf("%s: %d bytes, parse: %v", name, len(text), err)
	}
}

// FuzzHints looks for panics, for offsets outside of the text, for keys that
// nobody knows and for keys that come twice.
func FuzzHints(f *testing.F) {
	for _, test := range treeTests {
		for _, hit := range test.hits {
			f.Add(hit)
		}
		f.Add(test.healthy[0])
	}
	f.Add("python -I \\\r\n-X'utf8' \xff; pkill --full; cmd /c \"bash\"")
	f.Add("\\")
	keys := Keys()
	f.Fuzz(func(t *testing.T, text string) {
		check := func(hints []Hint) {
			seen := make(map[string]bool)
			last := 0
			for _, hint := range hints {
				if hint.At < last || hint.At >= len(text) || seen[hint.Key] || !slices.Contains(keys, hint.Key) {
					t.Errorf("%q: %+v", text, hints)
				}
				last, seen[hint.Key] = hint.At, true
			}
		}
		alone := Hints(text, nil)
		check(alone)
		file, err := syntax.NewParser().Parse(strings.NewReader(text), "")
		if err != nil {
			return
		}
		hints := Hints(text, file)
		check(hints)
		for _, hint := range hints {
			if slices.Contains(keys[:4], hint.Key) && !slices.Contains(keysOf(alone), hint.Key) {
				t.Errorf("%q: the parse adds %+v", text, hint)
			}
		}
		Hints("", file) // a tree of another text
	})
}

func BenchmarkOrdinary(b *testing.B) {
	for _, line := range ordinary {
		file, err := syntax.NewParser().Parse(strings.NewReader(line), "")
		if err != nil {
			b.Fatal(err)
		}
		b.Run(line, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Hints(line, file)
			}
		})
	}
}

func BenchmarkHits(b *testing.B) {
	for _, test := range treeTests {
		line := test.hits[0]
		file, err := syntax.NewParser().Parse(strings.NewReader(line), "")
		if err != nil {
			b.Fatal(err)
		}
		b.Run(test.key, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Hints(line, file)
			}
		})
	}
}

func BenchmarkHostile(b *testing.B) {
	for name, text := range hostile() {
		file, err := syntax.NewParser().Parse(strings.NewReader(text), "")
		if err != nil {
			file = nil
		}
		b.Run(fmt.Sprintf("%s parsed=%v", name, file != nil), func(b *testing.B) {
			for b.Loop() {
				Hints(text, file)
			}
		})
	}
}
