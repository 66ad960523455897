package code

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// stringTest generates texts for a shell as a language writes them, and lets
// its interpreter say what they are. In the interpreter the variable x holds a
// hole, so that both must agree on every byte.
type stringTest struct {
	lang    Lang
	argv    []string
	prelude string // makes a function that prints what it is given in hexadecimal
	call    string // the call, with EXPR in it
	forms   []form
	join    string
}

// form is one way to write a string.
type form struct {
	open, shut string
	pieces     []string
}

func (st stringTest) expr(r *rand.Rand) string {
	one := func() string {
		f := st.forms[r.IntN(len(st.forms))]
		return f.open + mix(f.pieces, 0, 6)(r) + f.shut
	}
	first := st.forms[0]
	expr := first.open + "rm " + mix(first.pieces, 0, 5)(r) + first.shut
	for range r.IntN(3) {
		if st.join == "" {
			break
		}
		expr += " " + st.join + " " + one()
	}
	return expr
}

func TestStringsAgainstReal(t *testing.T) {
	common := []string{"a", " ", "%", "é", "/", "-", ";", "|", "\\n", "\\t", "\\\\", "\\\"", "\\'", "'", "(", "]"}
	plain := []string{"a", " ", "%", "é", "$", "#", "\\\\", "\\'", "\"", "{", "}", "`", "\\n", "\\a"}
	double := func(more ...string) []string { return append(append([]string(nil), common...), more...) }
	for _, st := range []stringTest{
		{Perl, []string{"perl", "-"}, "BEGIN { *CORE::GLOBAL::system = sub { print unpack('H*', $_[0]), \"\\n\" } } $x = \"\\xee\\x80\\x80\"; $h{a} = [$x];\n", "system(EXPR);\n", []form{
			{"\"", "\"", double("$x ", "${x}", "$h{a}[0]", "$h{a}->[0]", "@{[$x]}", "\\$x", "\\@a", "\\x41", "\\101", "#", "\\e", "\\x{42}")},
			{"'", "'", plain},
			{"qq{", "}", []string{"a", "{b}", "$x ", "\\}", "\"", "${x}"}},
			{"q(", ")", []string{"a", "(b)", "$x", "\\)", "\\n", "\\\\"}},
		}, "."},
		{Python, []string{"python3", "-"}, "import os\nx = '\\ue000'\nos.system = lambda s: print(s.encode().hex())\n", "os.system(EXPR)\n", []form{
			{"\"", "\"", double("\\x41", "\\101", "\\u0042", "{x}", "$", "\\q", "\\e", "\\a", "\\\n")},
			{"'", "'", []string{"a", " ", "\"", "\\'", "\\\\", "\\n", "{", "\\/"}},
			{"f'", "'", []string{"a", "{x}", "{x!s}", "{{", "}}", "{ x }", "{x:>1}", "\\n", "{\"\".join([x])}"}},
			{"r'", "'", []string{"a", "\\n", "\\'", "\\\\", "{x}"}},
			{"'''", "'''", []string{"a", "\n", "\"", "\\n", "b'c"}},
		}, "+"},
		{Ruby, []string{"ruby", "-"}, "$x = @x = x = \"\\ue000\"\ndef system(s); puts s.unpack1('H*'); end\n", "system(EXPR)\n", []form{
			{"\"", "\"", double("#{x}", "#$x ", "#@x ", "# ", "$", "\\x41", "\\101", "\\u0042", "\\u{43}", "\\e", "\\s", "\\b", "\\q", "#{\"#{x}\"}", "#{[x].join('}')}")},
			{"'", "'", plain},
			{"%q(", ")", []string{"a", "(b)", "#{x}", "\\)", "\\n"}},
			{"%Q[", "]", []string{"a", "[b]", "#{x}", "\\]", "\\n"}},
			{"%{", "}", []string{"a", "{b}", "#{x}", "\\}"}},
		}, "+"},
		{Node, []string{"node", "-"}, "const x = '\\ue000'; const c = require('child_process'); c.execSync = s => console.log(Buffer.from(s).toString('hex'))\n", "c.execSync(EXPR)\n", []form{
			{"\"", "\"", double("\\x41", "\\u0042", "\\u{43}", "${x}", "\\\n", "\\q", "\\a", "\\e", "\\v")},
			{"'", "'", []string{"a", " ", "\"", "\\'", "\\\\", "\\n", "${x}"}},
			{"`", "`", []string{"a", "${x}", "\n", "$ ", "{", "\\`", "\\${x}", "${`${x}`}", "${[x].map(x => { return x })}", "'", "\\n"}},
		}, "+"},
		{PHP, []string{"php"}, "<?php namespace t; $x = \"\\u{e000}\"; $a = [$x, 'k' => $x]; $o = new \\stdClass; $o->p = $x; function system($s) { echo bin2hex($s), \"\\n\"; }\n", "system(EXPR);\n", []form{
			{"\"", "\"", double("$x ", "{$x}", "$a[0]", "$a[k]", "{$a['k']}", "$o->p ", "{$o->p}", "\\$x", "$1", "\\x41", "\\101", "\\u{42}", "\\q", "\\a", "\\b", "\\e", "\\v", "#")},
			{"'", "'", plain},
		}, "."},
		{Lua, []string{"lua", "-"}, "x = '\\xee\\x80\\x80'; os.execute = function(s) print((s:gsub('.', function(c) return string.format('%02x', c:byte()) end))) end\n", "os.execute(EXPR)\n", []form{
			{"\"", "\"", double("\\x41", "\\z  ", "z", "\\65", "$x", "\\u{42}")},
			{"'", "'", []string{"a", "\"", "\\'", "\\n", "z"}},
			{"[[", "]]", []string{"a", "'", "\\n", "\n", "]b"}},
			{"[=[", "]=]", []string{"a", "]]", "x"}},
			{"x", "", []string{" "}},
		}, ".."},
		{Tcl, []string{"tclsh"}, "set x [encoding convertfrom utf-8 \\xee\\x80\\x80]; set a(k) $x; proc system {s} {puts [binary encode hex [encoding convertto utf-8 $s]]}\n", "system EXPR\n", []form{
			{"\"", "\"", []string{"a", " ", "$x ", "${x}", "$a(k)", "[set x]", "[join [list $x \"\"] \"\"]", "\\n", "\\$x", "\\[", "\\\"", "{", "]", "}", "#", "$ "}},
			{"{", "}", []string{"a", " ", "$x", "[b]", "\\n", "{c}", "\""}},
		}, ""},
	} {
		t.Run(st.lang.String(), st.test)
	}
}

func (st stringTest) test(t *testing.T) {
	program, err := exec.LookPath(st.argv[0])
	if err != nil {
		t.Skipf("%s is not installed", st.argv[0])
	}
	r := rand.New(rand.NewPCG(1, uint64(st.lang)))
	exprs := make([]string, 400)
	script := st.prelude
	for i := range exprs {
		exprs[i] = st.expr(r)
		script += strings.Replace(st.call, "EXPR", exprs[i], 1)
	}
	cmd := exec.Command(program, st.argv[1:]...)
	cmd.Dir = t.TempDir()
	cmd.Stdin = strings.NewReader(script)
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8")
	var messages strings.Builder
	cmd.Stderr = &messages
	out, err := cmd.Output()
	lines := strings.Fields(string(out))
	if err != nil || len(lines) != len(exprs) {
		t.Fatalf("%s: %v, %d answers to %d expressions: %.500s", st.argv[0], err, len(lines), len(exprs), messages.String())
	}
	holes := 0
	for i, expr := range exprs {
		want, err := hex.DecodeString(lines[i])
		if err != nil {
			t.Fatal(err)
		}
		text := st.prelude + strings.Replace(st.call, "EXPR", expr, 1)
		got := Read(st.lang, text)
		if open(string(want)) {
			holes++
		}
		if fmt.Sprint(got.Shell) != fmt.Sprint([]string{string(want)}) {
			t.Errorf("%s: %s is %q, read as %q (starts %v)", st.lang, expr, want, got.Shell, got.Starts)
		}
	}
	t.Logf("%d texts, %d with holes", len(exprs), holes)
	if holes < len(exprs)/10 && st.lang != Lua {
		t.Errorf("only %d texts had holes", holes)
	}
}
