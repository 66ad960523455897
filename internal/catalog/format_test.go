package catalog

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"vogt/internal/detail"
)

// entryOf is an entry of the program x. The first line of body is line 4.
func entryOf(body string) string {
	return Version + "\nprogram x\nabout is a program\n" + body + "\n"
}

// with is an entry with a parser; the first line of body is line 5.
func with(body string) string { return entryOf("parser getopt\n" + body) }

// What is wrong with a file is said with the file, the line and what is
// expected there: nobody else will tell its author.
func TestParseRefuses(t *testing.T) {
	long := strings.Repeat("x", 70)
	clipped := strings.Repeat("x", 60) + "…"
	for _, tt := range []struct{ text, want string }{
		// The head.
		{"", `f:1: the first line is "", want "vogt-catalog 1"`},
		{"program x\n", `f:1: the first line is "program x", want "vogt-catalog 1"`},
		{"vogt-catalog 2\nprogram x\n", `f:1: the first line is "vogt-catalog 2", want "vogt-catalog 1"`},
		{long, `f:1: the first line is "` + clipped + `", want "vogt-catalog 1"`},
		{"\ufeffvogt-catalog 1\nprogram x\n", `f:1: the first line is "\ufeffvogt-catalog 1", want "vogt-catalog 1"`},
		{"vogt-catalog 1\n", "f:1: `program NAME` is missing"},
		{"vogt-catalog 1\n\n# only this\n", "f:3: `program NAME` is missing"},
		{"vogt-catalog 1\nabout is x\n", "f:2: want `program NAME`, found \"about is x\""},
		{"vogt-catalog 1\nprogram\n", "f:2: want `program NAME`, found \"program\""},
		{"vogt-catalog 1\nprogram x y\n", "f:2: want `program NAME`, found \"program x y\""},
		{"vogt-catalog 1\nprogram x\ty\n", "f:2: want `program NAME`, found \"program x\\ty\""},
		{"vogt-catalog 1\nprogram ./x\n", "f:2: want `program NAME`, found \"program ./x\""},
		{"vogt-catalog 1\nprogram y\nparser getopt\nform a : inert :\n", `f:2: the file is named for "x", and the entry is about "y"`},
		{"vogt-catalog 1\nprogram x\nabout is x\n", "f:3: `parser` is missing: say how the program reads its words, see docs/catalog.md"},
		{"vogt-catalog 1\nprogram x\nparser getopt\nform a : inert :\n", "f:1: `about` is missing"},
		{"vogt-catalog 1\nprogram x\nabout " + strings.Repeat("a", maxLine) + "\n", "f:3: the line has 4102 bytes, the limit is 4096"},
		{with("form a : inert :\n# " + strings.Repeat("a", maxLine)), "f:6: the line has 4098 bytes, the limit is 4096"},
		{entryOf("-a"), `f:4: "-a" before ` + "`parser`"},
		{entryOf("form a : inert :"), `f:4: "form" before ` + "`parser`"},
		{entryOf("program x"), `f:4: "program" before ` + "`parser`"},
		{entryOf("setting a b : write"), `f:4: "setting" before ` + "`parser`"},
		{entryOf(long), `f:4: "` + clipped + `" before ` + "`parser`"},

		// same-as.
		{entryOf("same-as"), "f:4: `same-as NAME` is the only statement of its file"},
		{entryOf("same-as a b"), "f:4: `same-as NAME` is the only statement of its file"},
		{entryOf("same-as ../a"), "f:4: `same-as NAME` is the only statement of its file"},
		{with("same-as a"), "f:5: `same-as NAME` is the only statement of its file"},
		{entryOf("same-as a\nparser getopt"), "f:5: nothing follows `same-as`"},
		{entryOf("same-as a\nabout b"), "f:5: nothing follows `same-as`"},
		{entryOf("same-as a\nsame-as b"), "f:5: nothing follows `same-as`"},

		// parser.
		{entryOf("parser"), "f:4: `parser` names no preset"},
		{entryOf("parser gnu"), `f:4: unknown parser "gnu", see docs/catalog.md`},
		{entryOf("parser getopt bold"), `f:4: unknown trait "bold", see docs/catalog.md`},
		{with("parser getopt"), "f:5: a second `parser`"},
		{with("form a : inert :\ncommand c\nparser bold"), `f:7: unknown trait "bold", see docs/catalog.md`},
		{with("form a : inert :\ncommand c\nparser getopt"), `f:7: unknown trait "getopt", see docs/catalog.md`},

		// command and aka.
		{entryOf("command c"), "f:4: `command` before `parser`"},
		{with("command"), "f:5: `command` names no subcommand"},
		{with("command c\nform a : inert :\n\ncommand c"), `f:8: a second section for "c"`},
		{with("command c d\ncommand c  d"), `f:6: a second section for "c d"`},
		{with("command *\ncommand *"), `f:6: a second section for "*"`},
		{with("command c *\ncommand c *"), `f:6: a second section for "c *"`},
		{with("command c\naka d\ncommand d"), `f:7: a second section for "d"`},
		{entryOf("aka c"), "f:4: `aka` belongs to a command"},
		{with("aka c"), "f:5: `aka` belongs to a command"},
		{with("command *\naka c"), "f:6: `aka` belongs to a command"},
		{with("command c\naka"), "f:6: `aka` names nothing"},
		{with("command c\naka c"), `f:6: "c" is the name of another command`},
		{with("command c\ncommand d\naka e c"), `f:7: "c" is the name of another command`},
		{with("command c d\ncommand c e\naka d"), `f:7: "c d" is the name of another command`},
		{with("form a : inert :\ncommand c d"), `f:6: command c d: there is no section for "c", so it would never be found`},
		{with("form a : inert :\ncommand c\nlike d"), "f:6: `like d`: there is no such command"},
		{with("form a : inert :\ncommand c\nlike d  e"), "f:6: `like d e`: there is no such command"},

		// Statements of a section.
		{with("bogus"), `f:5: unknown statement "bogus"`},
		{with("form a : inert :\nprogram x"), `f:6: unknown statement "program"`},
		{with("form a : inert :\nvogt-catalog 1"), `f:6: unknown statement "vogt-catalog"`},
		{with("form a : inert :\n\n# c\ncommand c\n\n# c\nForm a : inert :"), `f:11: unknown statement "Form"`},
		{with(long), `f:5: unknown statement "` + clipped + `"`},
		{with("command c\nform a : inert :\nsetting g k : write"), "f:7: `setting` belongs before the first `command`"},

		// Options.
		{with("option"), "f:5: an option without a name"},
		{with("option [=text]"), "f:5: an option without a name"},
		{with("option [=text] [=text]"), "f:5: an option without a name"},
		{with("option !"), "f:5: an option without a name"},
		{with("-a =text =text"), "f:5: a second value of -a"},
		{with("-a =text [=text]"), "f:5: a second value of -a"},
		{with("-a =text -b"), `f:5: "-b" after the value`},
		{with("-a ! -b"), `f:5: "-b" after the value`},
		{with("-a\n-b -a"), "f:6: a second -a in this section"},
		{with("-a -a"), "f:5: a second -a in this section"},
		{entryOf("parser dos\n/S\n/s"), "f:6: a second /s in this section"},
		{with("-a =nothing"), `f:5: unknown role "nothing"`},
		{with("-a =" + long), `f:5: unknown role "` + clipped + `"`},
		{with("-a =@"), `f:5: unknown role "@"`},
		{with("-a =text,"), `f:5: unknown role ""`},
		{with("-a =;"), `f:5: unknown role ""`},
		{with("-a =..."), `f:5: unknown role ""`},
		{with("-a [=]"), `f:5: unknown role ""`},
		{with("-a [=text...]"), `f:5: unknown role "text..."`},
		{with("-a [=command;]"), `f:5: unknown role "command;"`},
		{with("-a [=text,text]"), "f:5: only a required value has two words"},
		{with("-a =text,text;"), "f:5: only a required value has two words"},
		{with("-a =text,text..."), "f:5: only a required value has two words"},
		{with("-a =code"), "f:5: role \"code\": `code`, `setting` and `file` have a name after a colon, the others have none"},
		{with("-a =code:"), "f:5: role \"code:\": `code`, `setting` and `file` have a name after a colon, the others have none"},
		{with("-a =setting"), "f:5: role \"setting\": `code`, `setting` and `file` have a name after a colon, the others have none"},
		{with("-a =read:x"), "f:5: role \"read:x\": `code`, `setting` and `file` have a name after a colon, the others have none"},
		{with("-a : bold"), `f:5: unknown effect "bold"`},
		{with("-a : write ; bold"), `f:5: unknown effect "bold"`},
		{with("-a : unrated"), `f:5: unknown effect "unrated"`},
		{with("-a =text : write if"), "f:5: want `EFFECTS if VALUE|VALUE`"},
		{with("-a =text : write if A B"), "f:5: want `EFFECTS if VALUE|VALUE`"},
		{with("-a =text : if A"), "f:5: want `EFFECTS if VALUE|VALUE`"},
		{with("-a =text : write unless"), "f:5: want `EFFECTS unless VALUE|VALUE`"},
		{with("-a =text : write unless A if B"), "f:5: want `EFFECTS unless VALUE|VALUE`"},
		{with("-a : stdin:nothing"), `f:5: unknown role "nothing"`},

		// Forms.
		{with("form"), "f:5: want `form NAME when CONDITION : EFFECTS : OPERANDS`"},
		{with("form a"), "f:5: want `form NAME when CONDITION : EFFECTS : OPERANDS`"},
		{with("form a : inert"), "f:5: want `form NAME when CONDITION : EFFECTS : OPERANDS`"},
		{with("form a: inert :"), "f:5: want `form NAME when CONDITION : EFFECTS : OPERANDS`"},
		{with("form : inert :"), "f:5: the form has no name"},
		{with("form a if -a : inert :"), `f:5: "if" after the form's name, want ` + "`when` or a colon"},
		{with("form a when : inert :"), "f:5: `when` has no condition"},
		{with("form a : :"), "f:5: no effect: say `inert`, `read` or what it does"},
		{with("form a : inert bold :"), `f:5: unknown effect "bold"`},
		{with("-a =text\nform a : write if A :"), "f:6: the effects of a form have no `if`: write `when`"},
		{with("form a : inert :\nform b : write :"), "f:6: the form before this one always holds, so this one never counts"},
		{with("form a : inert : nothing"), `f:5: unknown role "nothing"`},
		{with("form a : inert : ..."), `f:5: unknown role ""`},
		{with("form a : inert : read... write..."), "f:5: more than one operand is repeated"},
		{with("form a : inert : read+ read?  text+"), "f:5: more than one operand is repeated"},
		{with("form a : inert : code"), "f:5: role \"code\": `code`, `setting` and `file` have a name after a colon, the others have none"},
		{with("form a : inert : setting:g"), `f:5: form a: there are no settings "g"`},

		// Conditions.
		{with("form a when bold : inert :"), `f:5: unknown condition "bold"`},
		{with("form a when ! : inert :"), `f:5: unknown condition "!"`},
		{with("form a when operands : inert :"), `f:5: unknown condition "operands"`},
		{with("form a when operands x : inert :"), `f:5: operands "x": want N, N.. or N..M`},
		{with("form a when operands 1..x : inert :"), `f:5: operands "1..x": want N, N.. or N..M`},
		{with("form a when operands 2..1 : inert :"), `f:5: operands "2..1": want N, N.. or N..M`},
		{with("form a when operands ..1 : inert :"), `f:5: operands "..1": want N, N.. or N..M`},
		{with("form a when operands -1 : inert :"), `f:5: operands "-1": want N, N.. or N..M`},
		{with("form a when operands -2..-1 : inert :"), `f:5: operands "-2..-1": want N, N.. or N..M`},
		{with("form a when operand 0 is x : inert :"), `f:5: operand "0": want a number from 1`},
		{with("form a when operand 1 is a*b : inert :"), `f:5: pattern "a*b": a star stands at the beginning, at the end or at both`},
		{with("form a when operand 1 is x|*a*b : inert :"), `f:5: pattern "*a*b": a star stands at the beginning, at the end or at both`},
		{with("form a when operand x is x : inert :"), `f:5: operand "x": want a number from 1`},
		{with("form a when operand 1 is : inert :"), `f:5: unknown condition "operand"`},
		{with("-a\n-b\nform a when -a -b : inert :"), "f:7: want `and` between two conditions, found \"-b\""},
		{with("-a\n-b\nform a when -a or -b : inert :"), "f:7: want `and` between two conditions, found \"or\""},
		{with("-a\n-b\nform a when -a and : inert :"), "f:7: want `and` between two conditions, found \"and\""},
		{with("-a\nform a when -a is : inert :"), "f:6: want `and` between two conditions, found \"is\""},
		{with("-a\nform a when -b : inert :"), "f:6: form a: the condition names -b, which is no option here"},
		{with("-a\nform a when !-b : inert :"), "f:6: form a: the condition names -b, which is no option here"},
		{with("-a\nform a when -a|-b : inert :"), "f:6: form a: the condition names -b, which is no option here"},
		{with("-a\nform a when -b is x : inert :"), "f:6: form a: the condition names -b, which is no option here"},
		{with("form a : inert :\ncommand c\n-b\n\nform b when -a : inert :"), "f:9: form b: the condition names -a, which is no option here"},

		// Settings.
		{with("setting"), "f:5: want `setting GROUP KEY =ROLE : EFFECTS`"},
		{with("setting g"), "f:5: want `setting GROUP KEY =ROLE : EFFECTS`"},
		{with("setting g k text"), "f:5: want `setting GROUP KEY =ROLE : EFFECTS`"},
		{with("setting g k =text more"), "f:5: want `setting GROUP KEY =ROLE : EFFECTS`"},
		{with("setting g k"), "f:5: the setting says neither a role nor effects"},
		{with("setting g k =nothing"), `f:5: unknown role "nothing"`},
		{with("setting g k : bold"), `f:5: unknown effect "bold"`},
		{with("-c =setting:nope\nform a : inert :"), `f:5: -c: there are no settings "nope"`},

		// Examples.
		{with("form a : inert :\nexample"), "f:6: want `example WORDS => EFFECTS`"},
		{with("form a : inert :\nexample x"), "f:6: want `example WORDS => EFFECTS`"},
		{with("form a : inert :\nexample => inert"), "f:6: want `example WORDS => EFFECTS`"},
		{with("form a : inert :\nexample x=>inert"), "f:6: want `example WORDS => EFFECTS`"},
		{with("form a : inert :\nexample x =>"), "f:6: the example says no effect"},
		{with("form a : inert :\nexample x => bold"), `f:6: "bold" is no effect of an example`},
		{with("form a : inert :\nexample x => door"), `f:6: "door" is no effect of an example`},
		{with("form a : inert :\nexample x => write inert"), `f:6: "inert" stands alone in an example`},
		{with("form a : inert :\nexample x => read net"), `f:6: "read" stands alone in an example`},
		{with("form a : inert :\nexample x => neutral net"), `f:6: "neutral" stands alone in an example`},
		{with("example x\nform a : inert :\nbogus"), "f:5: want `example WORDS => EFFECTS`"},
	} {
		err := func() (err error) {
			defer func() {
				if r := recover(); r != nil {
					err = fmt.Errorf("panic: %v", r)
				}
			}()
			_, err = Parse("f", "x", tt.text, true)
			return err
		}()
		if err == nil {
			t.Errorf("accepted, want %s\n%s", tt.want, tt.text)
		} else if got := withoutWords(err.Error()); got != withoutWords(tt.want) {
			t.Errorf("got  %s\nwant %s\n%.300s", got, tt.want, tt.text)
		}
	}
}

// withoutWords cuts what a message lists that may stand in the place.
func withoutWords(message string) string {
	for _, list := range []string{", see docs/catalog.md", ", parsers are: ", ", traits are: ", ", roles are: ", ", effects are: ", ", which are: ", ": want an option, ", ": say first how "} {
		message, _, _ = strings.Cut(message, list)
	}
	return message
}

// A word that is none of the format's is answered with those that are, and
// each of those is taken.
func TestMessagesListTheWords(t *testing.T) {
	for _, tt := range []struct{ text, before, after string }{
		{entryOf("parser gnu"), "parsers are: ", "parser %\nform a : inert :"},
		{entryOf("parser getopt bold"), "traits are: ", "parser getopt %\nform a : inert :"},
		{with("form a : inert : nothing"), "roles are: ", "parser getopt\nsetting GROUP k : write\nform a : inert : %"},
		{with("form a : bold :"), "effects are: ", "parser getopt\nform a : % :"},
		{with("form a : inert :\nexample x => network"), "which are: ", "parser getopt\nform a : inert :\nexample x => %"},
	} {
		_, err := Parse("f", "x", tt.text, true)
		if err == nil {
			t.Fatalf("accepted: %s", tt.text)
		}
		_, list, ok := strings.Cut(err.Error(), tt.before)
		if words := strings.Split(strings.Replace(list, " and @KIND", ", @KIND", 1), ", "); !ok || len(words) < 9 {
			t.Errorf("%v lists %q", err, words)
		} else {
			for _, word := range words {
				word = strings.Replace(word, "stdin:ROLE", "stdin:read", 1)
				if _, err := Parse("f", "x", entryOf(strings.ReplaceAll(tt.after, "%", word)), true); err != nil {
					t.Errorf("%q is listed and refused: %v", word, err)
				}
			}
		}
	}
}

// Everything that is wrong in a file is said at once, and nothing that only
// follows from it.
func TestFaults(t *testing.T) {
	for _, tt := range []struct {
		text string
		want []string
	}{
		{with("form a : inert :"), nil},
		{with("-a =wirte\n-b : network\nform a when -a : bold :\nform b : inert :\nexample x => network\nexample y => inert"), []string{"f:5: ", "f:6: ", "f:7: ", "f:9: "}},
		{with("form a when -a : inert :\nform b when -b : inert :\nform c : inert :"), []string{"f:5: ", "f:6: "}},
		{with("-a =wirte\nform a when -a : inert :"), []string{"f:5: "}}, // -a is an option, if it could be read
		{entryOf("parser gnu\nform a : bold :"), []string{"f:4: "}},
		{entryOf("form a : inert :\nparser getopt\nform b : bold :"), []string{"f:4: ", "f:6: "}},
		{"", []string{"f:1: "}},
		{"# a shopping list\nmilk", []string{"f:1: "}},
		{with(strings.Repeat("bogus\n", 50)), slices.Repeat([]string{"f:"}, maxFaults)},
		{strings.Repeat("a", MaxEntry+1), []string{"f: the file has "}},
		{Version + "\nprogram y\nabout y\nparser none\nform a : inert :", []string{"f:2: the file is named for"}},
	} {
		got := Faults("f", "x", tt.text)
		ok := len(got) == len(tt.want)
		for i := range got {
			ok = ok && strings.HasPrefix(got[i].Error(), tt.want[i])
		}
		if !ok {
			t.Errorf("%.200s\ngot  %v\nwant %q", tt.text, got, tt.want)
		}
	}
}

func TestParseLimits(t *testing.T) {
	head := with("form a : inert :")
	full := head + strings.Repeat("\n", MaxEntry-len(head))
	if _, err := Parse("f", "x", full, true); err != nil {
		t.Errorf("an entry of %d bytes: %v", len(full), err)
	}
	_, err := Parse("f", "x", full+"\n", true)
	if want := "f: the file has 1048577 bytes, the limit is 1048576"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	line := "# " + strings.Repeat("a", maxLine-2)
	if _, err := Parse("f", "x", head+line+"\n", true); err != nil {
		t.Errorf("a line of %d bytes: %v", len(line), err)
	}
}

// Every statement once, as it should be.
func TestParse(t *testing.T) {
	e, err := Parse("f", "x", strings.ReplaceAll(`vogt-catalog 1
# a comment

  program x
about   is a program
origin help text of x 1.0, sha256 ab
neutral -c core.pager=cat
neutral --no-hooks
neutral-env A=1 B=
example x -v => inert
parser modern no-dashdash¶
	-v --verbose
-o [=write] : exec if a|b ; net unless c ; high
+x
/y
option if= =read
setting g core.* =shell : exec
example x "a b" => write exec write
form run : neutral stdin:read : text
command remote
aka rem r
like log
command remote add
aka new
form add : write net : url
command log
form log when operands 0.. : read : @branch...
command *
--all
command remote *
--deep
`, "¶", "\r"), true)
	if err != nil {
		t.Fatal(err)
	}
	if e.Name != "x" || e.About != "is a program" || e.Origin != "help text of x 1.0, sha256 ab" || e.Source != "f" || e.SameAs != "" {
		t.Errorf("the head is %q %q %q %q %q", e.Name, e.About, e.Origin, e.Source, e.SameAs)
	}
	if want := []string{"-c", "core.pager=cat", "--no-hooks"}; !slices.Equal(e.Neutral, want) {
		t.Errorf("neutral is %q, want %q", e.Neutral, want)
	}
	if want := []string{"A=1", "B="}; !slices.Equal(e.Settle, want) {
		t.Errorf("neutral-env is %q, want %q", e.Settle, want)
	}
	commands := e.Commands()
	slices.Sort(commands)
	if want := []string{"log", "remote", "remote add"}; !slices.Equal(commands, want) {
		t.Errorf("the commands are %q, want %q", commands, want)
	}
	want := []Example{{10, "x -v", []string{"inert"}}, {18, `x "a b"`, []string{"exec", "write"}}}
	got := e.Examples()
	if !slices.EqualFunc(got, want, func(a, b Example) bool {
		return a.Line == b.Line && a.Text == b.Text && slices.Equal(a.Want, b.Want)
	}) {
		t.Errorf("the examples are %+v, want %+v", got, want)
	}
	for call, want := range map[string]string{
		"x -v a":               "x : unsettled neutral stdin=read : text:a",
		"x -oa -- a":           "x : writes network executes opaque unsettled neutral stdin=read risk=high : -o write:a, text:a : the option is not in the catalog (--)",
		"x -oc":                "x : writes unsettled neutral stdin=read risk=high : -o write:c",
		"x remote --all":       "x.remote.log : unsettled : ",
		"x r new --deep u":     "x.remote.add.add : writes network : url:u",
		"x rem --deep add u":   "x.remote.add.add : writes network opaque : url:u : the option is not in the catalog (--deep)",
		"x remote add --all u": "x.remote.add.add : writes network : url:u",
		"x log --deep":         "x.log.log : opaque unsettled : : the option is not in the catalog (--deep)",
		"x +x /y if=z a":       "x : unsettled neutral stdin=read : if= read:z, text:a",
	} {
		want = strings.Join(strings.Fields(want), " ")
		if got := told(e, call); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", call, got, want)
		}
	}
}

func TestParseSameAs(t *testing.T) {
	e, err := Parse("f", "x", entryOf("same-as git"), true)
	if err != nil || e.SameAs != "git" {
		t.Fatalf("%+v, %v", e, err)
	}
	var c Catalog
	for name, text := range map[string]string{
		"vogt-one":   "same-as vogt-two",
		"vogt-two":   "parser getopt\nform a : inert :",
		"vogt-loop":  "same-as vogt-loop",
		"vogt-none":  "same-as vogt-nothing",
		"vogt-ls":    "same-as ls",
		"vogt-ver":   "parser getopt versioned\nform a : inert :",
		"vogt-as":    "same-as vogt-ver",
		"vogt-seven": "parser getopt\nform a : inert :",
	} {
		if err := c.Add("f", name, Version+"\nprogram "+name+"\nabout is a program\n"+text+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{
		"vogt-one": "vogt-two", "vogt-two": "vogt-two", "vogt-loop": "", "vogt-none": "", "vogt-ls": "ls", "vogt-nothing": "",
		"vogt-ver": "vogt-ver", "vogt-ver3": "vogt-ver", "vogt-ver-3.14": "vogt-ver", "vogt-as2": "vogt-ver",
		"vogt-ver-": "", "vogt-ver3a": "", "vogt-seven7": "",
	} {
		got := ""
		if e := c.Entry(name); e != nil {
			got = e.Name
		}
		if got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

// Read lazily, an entry is as good as its sections: a broken one makes the
// calls that need it opaque, and no others.
func TestParseLazily(t *testing.T) {
	text := with(`form a : inert :
command good
form g : inert :
command bad
bogus
form b : inert :
command twin
like bad
form t : inert :
command twice
like bad
command part
form p : inert :
command part sub
form s : inert :
command part *
--sub
bogus`)
	if _, err := Parse("f", "x", text, true); err == nil || withoutWords(err.Error()) != `f:9: unknown statement "bogus"` {
		t.Errorf("read whole: %v", err)
	}
	e, err := Parse("f", "x", text, false)
	if err != nil {
		t.Fatal(err)
	}
	const broken = "the catalog's entry is broken"
	for call, want := range map[string]string{
		"x": "", "x good": "", "x bad": broken, "x bad z": broken,
		"x twin": broken, "x twice": broken, "x part": "", "x part sub": broken, "x part sub --sub": broken,
	} {
		u := e.Interpret(wordsOf(call))
		if u.Why != want || u.Effects.Has(detail.Opaque) != (want != "") {
			t.Errorf("%s: %v because %q, want %q", call, u.Effects, u.Why, want)
		}
	}
	e, err = Parse("f", "x", with("bogus\nform a : inert :"), false)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := told(e, "x a"), "x : opaque : : "+broken; got != want {
		t.Errorf("a broken root: got %s, want %s", got, want)
	}
}

// What all sections share is read once, and each has its own besides.
func TestSections(t *testing.T) {
	readTable(t, []entryCalls{{
		"commands, other names, shared options and options of others", `parser modern
-r --root
form help when -r : inert :
command *
-g =text : net
command one
aka uno eins
-a : write
form has when -a : inert : text?
form run : read : text?
command two
like one
-b : destroy
command three
like one
form own when -a : exec :
form lacks when !-a : inert : text...
command four
command four five
-a : priv
form run : inert :
command four *
-s
`, []call{
			{"x -r", "x.help : none : "},
			{"x one", "x.one : unsettled : "},
			{"x uno -a z", "x.one.has : writes : text:z"},
			{"x eins -g v", "x.one : network unsettled : -g text:v"},
			{"x two -a -b", "x.two.has : writes destructive : "},
			{"x two z", "x.two : unsettled : text:z"},
			{"x three -a", "x.three.own : writes executes : "},
			{"x three a b", "x.three.lacks : none : text:a, text:b"},
			{"x three -b", "x.three.lacks : opaque : : the option is not in the catalog (-b)"},
			{"x -r one", "x.one : unsettled : "},
			{"x one -r", "x.one : opaque unsettled : : the option is not in the catalog (-r)"},
			{"x four", "x.four : opaque : : the command is not in the catalog"},
			{"x four five -a -s -g v", "x.four.five : network privilege : -g text:v"},
			{"x four -s five", "x.four.five : opaque : : the option is not in the catalog (-s)"},
			{"x one one", "x.one : unsettled : text:one"},
			{"x five", "x : opaque : : no form of the entry fits"},
			{"x", "x : opaque : : no form of the entry fits"},
		},
	}, {
		"no forms of its own", `parser modern
-v : net
-n =text
command one
form run : inert :
`, []call{
			{"x", "x : opaque unsettled : : no subcommand is given"},
			{"x -v", "x : network unsettled :"},
			{"x two", "x : opaque : : the command is not in the catalog (two)"},
			{"x -v two", "x : network opaque : : the command is not in the catalog (two)"},
			{"x -n a one", "x.one : none : -n text:a"},
			{"x -n one", "x : unsettled : -n text:one"},
			{"x -n <>", "x : unsettled : -n text:<>"},
			{"x -n <*>", "x : opaque unsettled : -n text:<*> : no subcommand is given"},
			{"x -n <*> one", "x.one : opaque risk=high : -n text:<*> : a word that is not literal may be an option"},
			{"x -z", "x : opaque unsettled : : the option is not in the catalog (-z)"},
		},
	}, {
		"a section's own parser", `parser getopt
-v
command one
parser stop
-a =text
form run : inert : text...
command two
form run : inert : text...
`, []call{
			{"x one a -b", "x.one : none : text:a, text:-b"},
			{"x two a -b", "x.two : opaque : text:a : the option is not in the catalog (-b)"},
			{"x -v one -a a", "x.one : none : -a text:a"},
		},
	}, {
		"forms of the program itself, when the first operand is no subcommand", `parser getopt
form show : inert : read?
command one
form run : write :
`, []call{
			{"x", "x.show : none : "},
			{"x a", "x.show : none : read:a"},
			{"x one", "x.one : writes : "},
			{"x -- one", "x.show : none : read:one"},
			{"x a one", "x.show : opaque : read:a : more operands than the catalog knows (one)"},
		},
	}})
}

func TestSetting(t *testing.T) {
	e, err := Parse("f", "x", with(`setting git alias.* =shell
setting git core.pager =program : exec
setting git Http.*.Proxy =host : net unless none|off
setting git gc.auto : write if 1|on*
setting git gc.auto =text : destroy
setting git gc.* : high
setting other core.pager =read
form a : inert : setting:git`), true)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ group, key, value, want string }{
		{"git", "alias.x", "y", "shell none unrated"},
		{"git", "ALIAS.X", "", "shell none unrated"},
		{"git", "core.pager", "less", "program executes unrated"},
		{"other", "core.pager", "less", "read none unrated"},
		{"git", "core.pagers", "less", "unknown"},
		{"git", "http.https://a.proxy", "b:1", "host network unrated"},
		{"git", "http.x.proxy", "none", "host none unrated"},
		{"git", "http.x.proxy", "None", "host network unrated"},
		{"git", "gc.auto", "1", "role? writes unrated"},
		{"git", "gc.auto", "on", "role? writes unrated"},
		{"git", "gc.auto", "only", "role? writes unrated"},
		{"git", "gc.auto", "0", "role? none unrated"},
		{"git", "gc.other", "0", "role? none high"},
		{"none", "core.pager", "less", "unknown"},
		{"", "", "", "unknown"},
	} {
		got := "unknown"
		if known, role, arg, effects, risk := e.Setting(tt.group, tt.key, tt.value); known {
			got = role.String() + arg + " " + effects.String() + " " + risk.String()
		}
		if got != tt.want {
			t.Errorf("%s %s=%s: got %s, want %s", tt.group, tt.key, tt.value, got, tt.want)
		}
	}
}

// Every role that the format has can be written, and is what it says.
func TestRoles(t *testing.T) {
	for r := NoRole; int(r) < len(roleNames); r++ {
		name := r.String()
		switch r {
		case NoRole:
			if _, err := (&parser{}).role(name); err == nil {
				t.Errorf("%q is a role", name)
			}
			continue
		case Code, Setting:
			name += ":a"
		case File:
			name += ":" + Attachments()[0]
		case Thing:
			name += "a"
		}
		got, err := (&parser{}).role(name)
		if err != nil || got.role != r || got.arg != strings.TrimLeft(name[len(r.String()):], ":") {
			t.Errorf("%q is %v %q, %v", name, got.role, got.arg, err)
		}
	}
	if got := Role(200).String(); got != "role?" {
		t.Errorf("an unknown role is %q", got)
	}
}

// What a role does by itself is never less than the word says.
func TestRoleEffects(t *testing.T) {
	for r, want := range map[Role]detail.Effects{
		Text: 0, Read: 0, Chdir: 0, Write: detail.Writes, RemoteWrite: detail.Writes,
		Delete: detail.Writes | detail.Destroys, Empty: detail.Writes | detail.Destroys, Device: detail.Writes | detail.Destroys,
		URL: detail.Contacts, Host: detail.Contacts, Script: detail.Executes, Config: detail.Executes, Plugin: detail.Executes,
	} {
		if got := r.Effects(); got != want {
			t.Errorf("%v does %v, want %v", r, got, want)
		}
	}
	for r := NoRole; int(r) < len(roleNames); r++ {
		want := slices.Contains([]Role{Command, Shell, RemoteCommand, RemoteShell, Program, Split, Script, Config, Plugin, Code, Setting}, r)
		if r.starts() != want {
			t.Errorf("%v starts something: %v, want %v", r, r.starts(), want)
		}
		if r.Effects().Has(detail.Executes) && !r.starts() {
			t.Errorf("%v executes and starts nothing", r)
		}
	}
}

// Each effect word is one effect, and each risk word the risk.
func TestEffectWords(t *testing.T) {
	for word, want := range map[string]clause{
		"inert": {}, "read": {effects: detail.Unsettled}, "neutral": {effects: detail.Unsettled, neutral: true},
		"write": {effects: detail.Writes}, "destroy": {effects: detail.Destroys}, "net": {effects: detail.Contacts},
		"priv": {effects: detail.Privileged}, "exec": {effects: detail.Executes}, "opaque": {effects: detail.Opaque},
		"door": {effects: detail.Door}, "secret": {effects: detail.Secrets},
		"low": {risk: detail.Low}, "medium": {risk: detail.Medium}, "high": {risk: detail.High}, "critical": {risk: detail.Critical},
		"high critical low": {risk: detail.Critical}, "read write": {effects: detail.Unsettled | detail.Writes},
		"stdin:code:sql": {stdin: roleSpec{Code, "sql"}}, "stdin:list": {stdin: roleSpec{List, ""}}, "stdin:@unit": {stdin: roleSpec{Thing, "unit"}},
	} {
		got, err := (&parser{}).clause(word)
		if err != nil || got.effects != want.effects || got.risk != want.risk || got.neutral != want.neutral || got.stdin != want.stdin {
			t.Errorf("%s is %+v, %v", word, got, err)
		}
	}
}
