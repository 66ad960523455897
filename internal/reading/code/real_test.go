package code

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// tool runs a real program on generated texts and sees which files appear. The
// program finds no other program, so that a text can do no more than what its
// shell has built in.
type tool struct {
	lang   Lang
	argv   []string // the text follows, or stands in for "TEXT"
	stdin  bool     // the text comes on standard input
	inputs map[string]string
	rounds int
	text   func(*rand.Rand) string
}

func (tl tool) test(t *testing.T) {
	program, err := exec.LookPath(tl.argv[0])
	if err != nil {
		t.Skipf("%s is not installed", tl.argv[0])
	}
	dir := t.TempDir()
	random := rand.New(rand.NewPCG(1, uint64(tl.lang)))
	seen, accepted, effects := map[string]bool{}, 0, 0
	for range tl.rounds {
		text := tl.text(random)
		if seen[text] {
			continue
		}
		seen[text] = true
		got := Read(tl.lang, text)
		// Each text has a directory: commands that it started may end late.
		dir := filepath.Join(dir, fmt.Sprint(len(seen)))
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		files, ok := tl.run(t, dir, program, text)
		if ok && got.Complete {
			accepted++
		}
		if len(files) > 0 {
			effects++
		}
		known := got.Writes
		for _, s := range got.Shell {
			if got.Complete && len(files) > 0 {
				made, _ := tl.start(t, dir, exec.Command("/bin/sh", "-c", s))
				known = append(known, made...)
			}
		}
		for _, f := range files {
			if got.Complete && !slices.Contains(known, f) {
				t.Errorf("%s %q made %q, which is not in the complete %+v", tl.argv[0], text, f, got)
			}
		}
	}
	t.Logf("%d texts, %d complete and accepted, %d made files", len(seen), accepted, effects)
	if accepted < len(seen)/20 || effects == 0 {
		t.Errorf("of %d texts %d were accepted and complete, and %d made files: that tests nothing", len(seen), accepted, effects)
	}
}

// run gives the files that appear, and whether the program took the text.
func (tl tool) run(t *testing.T, dir, program, text string) ([]string, bool) {
	t.Helper()
	for name, content := range tl.inputs {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	args := slices.Clone(tl.argv[1:])
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "TEXT", text)
	}
	cmd := exec.Command(program, args...)
	if tl.stdin {
		cmd.Stdin = strings.NewReader(text)
	}
	return tl.start(t, dir, cmd)
}

// start gives the files that a command makes in the directory, and whether it
// succeeded. The files are removed.
func (tl tool) start(t *testing.T, dir string, cmd *exec.Cmd) ([]string, bool) {
	t.Helper()
	cmd.Dir = dir
	cmd.Env = []string{"PATH=/nonexistent", "LC_ALL=C.UTF-8", "HOME=" + dir}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(5*time.Second, func() { _ = cmd.Process.Kill() }) // some texts never end
	err := cmd.Wait()
	timer.Stop()
	var files []string
	entries, readErr := os.ReadDir(dir)
	if readErr != nil {
		t.Fatal(readErr)
	}
	for _, e := range entries {
		if _, input := tl.inputs[e.Name()]; input {
			continue
		}
		files = append(files, e.Name())
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return files, err == nil
}

// mix strings pieces together.
func mix(pieces []string, least, most int) func(*rand.Rand) string {
	return func(r *rand.Rand) string {
		var b strings.Builder
		for range least + r.IntN(most-least+1) {
			b.WriteString(strings.ReplaceAll(pieces[r.IntN(len(pieces))], "#N", fmt.Sprint(r.IntN(9))))
		}
		return b.String()
	}
}

func TestSedAgainstReal(t *testing.T) {
	if out, err := exec.Command("sed", "--version").Output(); err != nil || !bytes.Contains(out, []byte("GNU")) {
		t.Skip("this sed is not GNU sed")
	}
	tool{
		lang: Sed, argv: []string{"sed", "-n", "-e", "TEXT", "in"}, inputs: map[string]string{"in": "a/b\n"}, rounds: 300,
		text: mix([]string{
			"s/a/b/", "s/[/]/x/", "s,a,b,", "s/a/", "s/[", "]", "[^/]", "/", "/", "w f#N", "w f#N\n", "w f#N", "\nw f#N\n", ";w f#N", "W f#N\n", "e >m#N\n", "e >m#N",
			"{", "}", ";", ";", "\n", "\n", "\\\n", "\\", "a", "a ", "i\\", "c\\\n", "y/ab/cd/", "y/a/", "1", "$", "1,", "1!", "!", "p", "p;", "n;", "#", "# ", "/a/", "/a/I", "\\,a,",
			"g", "e", "I", "m", ":x\n", ":x;", "b\n", "b;", "t}", "r in", "r in\n", "q", "l 1", "=", "[[:alpha:]]", "[a\\]", "[]a]", "[\\/]", "[\\n]", "\\/", "\\n", "x", "N", "z", "v\n", "F\n", "0~1", ",+1", "}\n",
		}, 1, 9),
	}.test(t)
}

func awkText(r *rand.Rand) string {
	terms := []string{
		"$1", "x", "\"s\"", "\"a\\\"b\"", "/b/", "/\"/", "/\\//", "(1 > 2)", "1", "a[1]", "a[x > 1]", "x++", "length", "length($0)", "substr($0, 1, 2)", "-1", "!x",
		"\">m#N\"", "(x)", "1 / 2", "x / y", "\"/\"", "\"#\"", "NF", "f(1)", "\">\"", "/[\"]/", "/>/", "$NF", "($1)(x)", "x ? 1 : 2", "x in a", "index(x, \"/\")", "split(x, b, /\"/)",
	}
	term := func() string { return terms[r.IntN(len(terms))] }
	statements := []string{
		"print T", "print T, T", "print T > \"f#N\"", "print > \"f#N\"", "print T T >> \"f#N\"", "print T,\n T > \"f#N\"", "print(T, T) > \"f#N\"", "print (T)(T) > \"f#N\"",
		"printf \"%s\", T > \"f#N\"", "print T > \"f#N\" \".x\"", "print T > (\"f#N\")", "print T > x", "print T | \">m#N\"", "print T | \"cat \" \">m#N\"", "\">m#N\" | getline", "\">m#N\" | getline x", "\"ec\" \">m#N\" | getline",
		"system(\">m#N\")", "system(\">m\" \"#N\")", "system((\">m#N\"))", "system( \">m#N\" )", "x = T", "x = T / T", "if (T) print T > \"f#N\"", "if (T) /\"/", "if (T) /x/; else system(\">m#N\")", "while (x++ < 2) print T > \"f#N\"",
		"getline x < \"in\"", "getline < \"in\"", "while ((getline x < \"in\") > 0) y = T", "x = \"a\" ; y = T", "# T\n", "x = T # \" /\n", "for (k in a) print k > \"f#N\"", "{ T; T }", "delete a", "do x++; while (x < 3)",
		"T > \"f#N\"", "T ? T : T", "print T \\\n > \"f#N\"", "print -T > \"f#N\"", "print !T > \"f#N\"", "print a[1] > \"f#N\"", "print T ? T : T > \"f#N\"", "print T > \"f#N\" ; T", "print T > \"/dev/stdout\"", "close(T)", "fflush()", "return T", "next", "exit T",
		"print T > T", "print T T > T T", "x = y = T > \"f#N\"", "printf(T) > \"f#N\"", "print > \"f\" \"#N\"", "{ print > \"f#N\" }", "if (x) { print } else print > \"f#N\"", "printf T, T | \">m#N\"",
		"ENVIRON[\"A\"] = T", "T | getline", "T T | getline x", "x = \">m#N\" | getline", "print T && \n T > \"f#N\"", "y = T; print y > \"f#N\"", "x ~ T", "x !~ T / T", "$T = T", "sub(/\\//, T)", "gsub(/\"/, T, x)", "print > \"-\"", "\n",
	}
	var b strings.Builder
	if r.IntN(3) == 0 {
		b.WriteString([]string{"/\"/ ", "NR > 0 ", "BEGIN ", "/a/, /b/ ", "END ", "x / 2 / 3 ", "!/[/]/ ", "1\n"}[r.IntN(8)])
	}
	b.WriteString("{ ")
	for range 1 + r.IntN(3) {
		s := statements[r.IntN(len(statements))]
		for strings.Contains(s, "T") {
			i := strings.IndexByte(s, 'T')
			s = s[:i] + term() + s[i+1:]
			if len(s) > 200 {
				s = strings.ReplaceAll(s, "T", "x")
			}
		}
		for strings.Contains(s, "#N") {
			s = strings.Replace(s, "#N", fmt.Sprint(r.IntN(9)), 1)
		}
		b.WriteString(s)
		b.WriteString([]string{"; ", "\n"}[r.IntN(2)])
	}
	b.WriteString("}")
	if r.IntN(2) == 0 {
		b.WriteString(" function f(p) { return p / 2 }")
	}
	return b.String()
}

func TestAwkAgainstReal(t *testing.T) {
	for _, name := range []string{"gawk", "mawk"} {
		t.Run(name, func(t *testing.T) {
			tool{lang: Awk, argv: []string{name, "TEXT", "in"}, inputs: map[string]string{"in": "a \"b\"\n"}, rounds: 200, text: awkText}.test(t)
		})
	}
}

func TestSQLiteAgainstReal(t *testing.T) {
	tool{
		lang: SQLite, argv: []string{"sqlite3", "-batch", ":memory:"}, stdin: true, inputs: map[string]string{}, rounds: 200,
		text: mix([]string{
			"select 1;\n", "select 1", ";", ";\n", "\n", "'", "''", "\"", "`", "[", "]", "--", "-- x\n", "/*", "*/", "/* x */", "\n.output f#N\n", "\n.once f#N\n", "\n.shell >m#N\n", ".shell >m#N\n", "\n.sys >m#N\n",
			"\n.shell \">m#N\"\n", "\n.once '|>m#N'\n", "\n.once |>m#N\n", " .shell >m#N\n", "\n.mode csv\n", "\n.headers on\n", "select writefile('f#N', 'x');", "attach 'f#N' as x#N;", "\nattach 'f#N' as x#N; create table x#N.t(a);\n", "create table t#N(a);",
			"(", ")", "select '", ".", ".print x\n", "\n.backup f#N\n", "\n.import '|>m#N' t\n", "vacuum into 'f#N';", "#", "\n# x\n", "\\", "select lower('x');", "\n/\n", "\ngo\n", "\n.log f#N\n", "\n.save f#N\n",
		}, 1, 7),
	}.test(t)
}

func TestEdAgainstReal(t *testing.T) {
	tool{
		lang: Ed, argv: []string{"ed", "-s", "in"}, stdin: true, inputs: map[string]string{"in": "one\ntwo\n"}, rounds: 200,
		text: mix([]string{
			"w f#N\n", "W f#N\n", "wq f#N\n", "! >m#N\n", "!>m#N\n", "r ! >m#N\n", "w ! >m#N\n", "e ! >m#N\n", "f f#N\n", "w\n", "a\n", "9a\n", "1i\n", "c\n", ".\n", ".\n", "x\n", "1p\n", ",p\n", "s/o/x/\n", "s/o/x\\\n", "/\n",
			"g/o/p\n", "g/o/w f#N\n", "g/o/s/o/x\\\\\n", "v/o/! >m#N\n", "g/[/]/p\n", "/o/\n", "?o?w f#N\n", "1,$d\n", "u\n", "q\n", "Q\n", "H\n", "# x\n", "\n", "1\n", "$\n", "kx\n", "'xp\n", "1m2\n", "1t.\n", "=\n", "n\n", "z1\n", "j\n", "g/o/a\\\n", "G/o/\n", "1,2", ",", "%", "/o/",
			"s/o/x\\\n", "s//x\\\n", "1s/q/z\\\n", "s/\\(/x\\\n", "e f#N\n", "E in\n", "r in\n", "r none\n", "f g#N\n", "kxy\n", "g/x/p\\\n", ";i\n", "0a\n", "p\\\n",
		}, 1, 7),
	}.test(t)
}

func TestDcAgainstReal(t *testing.T) {
	tool{
		lang: Dc, argv: []string{"dc", "-e", "TEXT"}, inputs: map[string]string{}, rounds: 300,
		text: mix([]string{"1", "2 ", "p", "n", "! >m#N\n", "!  >m#N", "[", "]", "x", "sa", "la", "la", "s!", "l!", "s#", "l#", "s[", "l[", "#", "\n", "\n", "1 1=", "1 2<", "1 2!<", "!", "=a", "<a", ":", ";", "S", "L", "d", "+", "33a", "k", "q"}, 1, 8),
	}.test(t)
}

func TestVimAgainstReal(t *testing.T) {
	tool{
		lang: Vim, argv: []string{"vim", "-u", "NONE", "-n", "-es", "-c", "TEXT", "-c", "qa!", "in"}, inputs: map[string]string{"in": "one\ntwo\n"}, rounds: 60,
		text: mix([]string{
			"w f#N", "w! f#N", "|w! f#N", "|w! f#N", "|", "|", "w !cat >m#N", "r in", "s/o/x/", "s/o/x", "s|o|x|", "s#o#x#", "g/o/w! f#N", "g/o|q/", "/o/", "1", "sil! ", "windo ", "noa ", "\"", " \" x ", "echo 'x'", "echo \"|\"",
			"d", "set nu", "up", "\\|", "wq f#N", "\nw! f#N", "p", "version", "marks", "'<", "1,2", "$", ":", "!>m#N", "r !>m#N", "e! in", ".w f#N", "sav f#N",
		}, 1, 4),
	}.test(t)
}
