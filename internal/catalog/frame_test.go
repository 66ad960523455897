package catalog

import (
	"fmt"
	"strings"
	"testing"

	"vogt/internal/detail"
)

// wordsOf are the words of a call. Blanks separate them; ” is an empty word,
// and _ inside a word a blank. What is not known at the end of a word is
// written <> (one word), <?> (a pattern) or <*> (any number of words).
func wordsOf(line string) []Word {
	fields := strings.Fields(line)
	words := make([]Word, len(fields))
	for i, text := range fields {
		text = strings.ReplaceAll(strings.ReplaceAll(text, "''", ""), "_", " ")
		words[i] = Word{Text: text}
		for mark, kind := range map[string]Kind{"<>": Partial, "<?>": Glob, "<*>": Many} {
			if known, ok := strings.CutSuffix(text, mark); ok {
				words[i] = Open(kind, known, text, known+string(Hole), kind == Many || known == "" || known[0] == '-')
			}
		}
	}
	return words
}

// told is what an entry makes of a call, in one line: the operation, the
// effects, the values with their roles, and why it is opaque.
func told(e *Entry, line string) string {
	words := wordsOf(line)
	u := e.Interpret(words)
	effects := u.Effects.String()
	if u.Neutral {
		effects += " neutral"
	}
	if u.Stdin != NoRole {
		effects += " stdin=" + u.Stdin.String()
		if u.StdinArg != "" {
			effects += ":" + u.StdinArg
		}
	}
	if u.Risk != detail.Unrated {
		effects += " risk=" + u.Risk.String()
	}
	values := make([]string, len(u.Values))
	for i, v := range u.Values {
		role := v.Role.String()
		switch {
		case v.Role == Thing:
			role += v.Arg
		case v.Arg != "":
			role += ":" + v.Arg
		}
		var shown []string
		for k := v.Word; k < v.End && k < len(words); k++ {
			text := words[k].Shown()
			if k == v.Word {
				text = text[min(v.From, len(text)):]
			}
			shown = append(shown, text)
		}
		values[i] = strings.TrimSpace(v.Option + " " + role + ":" + strings.Join(shown, "_"))
	}
	out := u.Operation() + " : " + effects + " : " + strings.Join(values, ", ")
	if u.Why != "" {
		out += " : " + u.Why
		if u.WhyWord >= 0 {
			out += fmt.Sprintf(" (%s)", words[u.WhyWord].Shown())
		}
	}
	return strings.Join(strings.Fields(out), " ")
}

type call struct{ line, want string }

type entryCalls struct {
	name  string
	body  string
	calls []call
}

// readTable reads calls against small entries of their own.
func readTable(t *testing.T, table []entryCalls) {
	t.Helper()
	for _, tt := range table {
		t.Run(tt.name, func(t *testing.T) {
			e, err := Parse("x", "x", entryOf(tt.body), true)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range tt.calls {
				want := strings.Join(strings.Fields(c.want), " ")
				if got := told(e, c.line); got != want {
					t.Errorf("%s\ngot  %s\nwant %s", c.line, got, want)
				}
			}
		})
	}
}

const unlisted = "the option is not in the catalog"

func TestPresets(t *testing.T) {
	const body = `-a --all : priv
-b
-o --output =write
-i --in-place [=text] : destroy
--also
-n =text,read
form run : inert : read...
`
	readTable(t, []entryCalls{
		{"getopt", "parser getopt\n" + body, []call{
			{"x", "x : none :"},
			{"x p q", "x : none : read:p, read:q"},
			{"x p -b q", "x : none : read:p, read:q"},
			{"x -ab p", "x : privilege : read:p"},
			{"x -bofile p", "x : writes : -o write:file, read:p"},
			{"x -bo file p", "x : writes : -o write:file, read:p"},
			{"x -o=file", "x : writes : -o write:=file"},
			{"x --output=file p", "x : writes : --output write:file, read:p"},
			{"x --output file p", "x : writes : --output write:file, read:p"},
			{"x --output= p", "x : writes : --output write:, read:p"},
			{"x --out=file", "x : writes : --out write:file"},
			{"x --out file", "x : writes : -o write:file"},
			{"x --outputs file", "x : opaque : read:file : " + unlisted + " (--outputs)"},
			{"x --al", "x : opaque : : " + unlisted + " (--al)"},
			{"x --all", "x : privilege :"},
			{"x --", "x : none :"},
			{"x -- -a --all -o", "x : none : read:-a, read:--all, read:-o"},
			{"x p -- -a", "x : none : read:p, read:-a"},
			{"x -- --", "x : none : read:--"},
			{"x -o -- -a", "x : writes privilege : -o write:--"},
			{"x -", "x : none : read:-"},
			{"x ''", "x : none : read:"},
			{"x -z p", "x : opaque : read:p : " + unlisted + " (-z)"},
			{"x -bz p", "x : opaque : read:p : " + unlisted + " (-bz)"},
			{"x -zo p", "x : opaque : read:p : " + unlisted + " (-zo)"},
			{"x -i.bak p", "x : destructive : -i text:.bak, read:p"},
			{"x -i p", "x : destructive : read:p"},
			{"x -ib p", "x : destructive : -i text:b, read:p"},
			{"x -bi p", "x : destructive : read:p"},
			{"x --in-place p", "x : destructive : read:p"},
			{"x --in-place=s p", "x : destructive : --in-place text:s, read:p"},
			{"x --in p", "x : destructive : read:p"},
			{"x -n v f p", "x : none : -n text:v, -n read:f, read:p"},
			{"x -o", "x : none :"},
			{"x --a", "x : opaque : : " + unlisted + " (--a)"},
			{"x --all=true", "x : privilege :"},
			{"x --all=false", "x : opaque : : " + unlisted + " (--all=false)"},
			{"x --a=true", "x : opaque : : " + unlisted + " (--a=true)"},
			{"x -a=true", "x : privilege opaque : : " + unlisted + " (-a=true)"},
			{"x -ß", "x : opaque : : " + unlisted + " (-ß)"},
			{"x --=", "x : opaque : : " + unlisted + " (--=)"},
			{"x +b /b", "x : none : read:+b, read:/b"},
			{"x -b -b", "x : none :"},
		}},
		{"argparse", "parser argparse\n" + body, []call{
			{"x p --out file -ab", "x : writes privilege : -o write:file, read:p"},
			{"x --al", "x : opaque : : " + unlisted + " (--al)"},
		}},
		{"posix", "parser posix\n" + body, []call{
			{"x -ab p -o f", "x : privilege : read:p, read:-o, read:f"},
			{"x p --all", "x : none : read:p, read:--all"},
			{"x --all -- p", "x : privilege : read:p"},
			{"x --out=f", "x : opaque : : " + unlisted + " (--out=f)"},
			{"x -of p", "x : writes : -o write:f, read:p"},
			{"x - -a", "x : none : read:-, read:-a"},
			{"x '' -a", "x : none : read:, read:-a"},
		}},
		{"modern", "parser modern\n" + body, []call{
			{"x p -ab --output=f", "x : writes privilege : --output write:f, read:p"},
			{"x -o=f", "x : writes : -o write:f"},
			{"x -bo=f", "x : writes : -o write:f"},
			{"x -o==f", "x : writes : -o write:=f"},
			{"x -of=g", "x : writes : -o write:f=g"},
			{"x -o= p", "x : writes : -o write:, read:p"},
			{"x -i=s", "x : destructive : -i text:s"},
			{"x --out=f", "x : opaque : : " + unlisted + " (--out=f)"},
			{"x --out f", "x : opaque : read:f : " + unlisted + " (--out)"},
			{"x --all=on p", "x : privilege : read:p"},
			{"x --all=1", "x : privilege :"},
			{"x --all=yes", "x : privilege :"},
			{"x --all=0", "x : opaque : : " + unlisted + " (--all=0)"},
			{"x --all=", "x : opaque : : " + unlisted + " (--all=)"},
			{"x --all=TRUE", "x : opaque : : " + unlisted + " (--all=TRUE)"},
		}},
		{"goflag", `parser goflag
-all : priv
-o =write
form run : inert : read...
`, []call{
			{"x -all p -o", "x : privilege : read:p, read:-o"},
			{"x --all", "x : privilege :"},
			{"x -all=true", "x : privilege :"},
			{"x --all=true", "x : privilege :"},
			{"x -all=false", "x : opaque : : " + unlisted + " (-all=false)"},
			{"x --all=false", "x : opaque : : " + unlisted + " (--all=false)"},
			{"x -o=f p", "x : writes : -o write:f, read:p"},
			{"x --o=f p", "x : writes : -o write:f, read:p"},
			{"x --o f p", "x : writes : -o write:f, read:p"},
			{"x -of", "x : opaque : : " + unlisted + " (-of)"},
			{"x -al", "x : opaque : : " + unlisted + " (-al)"},
			{"x --", "x : none :"},
			{"x -- -all", "x : none : read:-all"},
			{"x ---all", "x : opaque : : " + unlisted + " (---all)"},
		}},
		{"single", `parser single
-name =text
-delete : destroy
-o : write
option ( ) ,
-exec =command;
-printf =text,text
form run : inert : read...
`, []call{
			{"x p -name q -delete", "x : destructive : -name text:q, read:p"},
			{"x -delete p -o q", "x : writes destructive : read:p, read:q"},
			{"x -name=q", "x : none : -name text:q"},
			{"x -oo", "x : opaque : : " + unlisted + " (-oo)"},
			{"x -del", "x : opaque : : " + unlisted + " (-del)"},
			{"x -- -delete", "x : none : read:-delete"},
		}},
		{"dos", `parser dos
/S /E : destroy
/O =write
/T [=text]
-v
form has when /S : priv : read...
form run : inert : read...
`, []call{
			{"x /s p", "x.has : destructive privilege : read:p"},
			{"x /S", "x.has : destructive privilege :"},
			{"x p /e", "x.has : destructive privilege : read:p"},
			{"x /E", "x.has : destructive privilege :"},
			{"x /o:File", "x : writes : /o write:File"},
			{"x /O:File p", "x : writes : /o write:File, read:p"},
			{"x /o=f", "x : writes : /o write:f"},
			{"x /o f p", "x : writes : /o write:f, read:p"},
			{"x /t p", "x : none : read:p"},
			{"x /t:a:b p", "x : none : /t text:a:b, read:p"},
			{"x /z", "x : opaque : : " + unlisted + " (/z)"},
			{"x /tmp/p", "x : opaque : : " + unlisted + " (/tmp/p)"},
			{"x /", "x : none : read:/"},
			{"x -V", "x : none :"},
			{"x -z", "x : opaque : : " + unlisted + " (-z)"},
			{"x --", "x : opaque : : " + unlisted + " (--)"},
			{"x /s:true", "x.has : destructive privilege :"},
			{"x /s:x", "x : opaque : : " + unlisted + " (/s:x)"},
			{"x /o:ȺȺȺȺȺȺ p", "x : writes : /o write:ȺȺȺȺȺȺ, read:p"},
			{"x /o:\u212a\u212af p", "x : writes : /o write:\u212a\u212af, read:p"},
			{"x /o:\xff\xff\xfff p", "x : writes : /o write:\xff\xff\xfff, read:p"},
		}},
		{"powershell", `parser powershell
-Name -Title =text
-Recurse [=text]
-Force : destroy
-Filter =text
form has when -Recurse : priv : read...
form is when -Title is a : write : read...
form run : inert : read...
`, []call{
			{"x -Name v p", "x : none : -name text:v, read:p"},
			{"x -name:v p", "x : none : -name text:v, read:p"},
			{"x -NAME:V:W", "x : none : -name text:V:W"},
			{"x -name a", "x.is : writes : -name text:a"},
			{"x -title:a", "x.is : writes : -title text:a"},
			{"x -TIT a", "x.is : writes : -name text:a"},
			{"x p -recurse", "x.has : privilege : read:p"},
			{"x -r p", "x.has : privilege : read:p"},
			{"x -RECURSE:$false", "x.has : privilege : -recurse text:$false"},
			{"x -rec:$true", "x.has : privilege : -rec text:$true"},
			{"x -Fo", "x : destructive :"},
			{"x -f", "x : opaque : : " + unlisted + " (-f)"},
			{"x -fi v", "x : none : -filter text:v"},
			{"x -fx v", "x : opaque : read:v : " + unlisted + " (-fx)"},
			{"x -", "x : none : read:-"},
			{"x --", "x : opaque : : " + unlisted + " (--)"},
			{"x /r", "x : none : read:/r"},
			{"x -name:ȺȺȺȺȺȺ p", "x : none : -name text:ȺȺȺȺȺȺ, read:p"},
		}},
		{"none", `parser none
-a : write
form run : inert : text...
`, []call{
			{"x -a --b -- /c", "x : none : text:-a, text:--b, text:--, text:/c"},
			{"x", "x : none :"},
		}},
	})
}

func TestTraits(t *testing.T) {
	readTable(t, []entryCalls{
		{"abbreviations", "parser modern abbreviations\n--force : destroy\n--from =text\nform run : inert :", []call{
			{"x --forc", "x : destructive :"},
			{"x --fro=a", "x : none : --fro text:a"},
			{"x --f", "x : opaque : : " + unlisted + " (--f)"},
			{"x --fr", "x : none :"},
		}},
		{"no-abbreviations", "parser getopt no-abbreviations\n--force\nform run : inert :", []call{
			{"x --force", "x : none :"},
			{"x --forc", "x : opaque : : " + unlisted + " (--forc)"},
		}},
		{"anywhere", "parser posix anywhere\n-a : write\nform run : inert : text...", []call{
			{"x p -a", "x : writes : text:p"},
			{"x p -- -a", "x : none : text:p, text:-a"},
		}},
		{"stop", "parser getopt stop\n-a : write\nform run : inert : text...", []call{
			{"x -a p", "x : writes : text:p"},
			{"x p -a", "x : none : text:p, text:-a"},
		}},
		{"no-combined", "parser getopt no-combined\n-a\n-b\n-c =text\nform run : inert : text...", []call{
			{"x -a -b", "x : none :"},
			{"x -ab", "x : opaque : : " + unlisted + " (-ab)"},
			{"x -cv", "x : opaque : : " + unlisted + " (-cv)"},
			{"x -c v", "x : none : -c text:v"},
		}},
		{"no-dashdash", "parser getopt no-dashdash\n-a : write\nform run : inert : text...", []call{
			{"x -- -a", "x : writes opaque : : " + unlisted + " (--)"},
		}},
		{"no-dashdash, and -- is an option", "parser getopt no-dashdash\n-a : write\n--\nform run : inert : text...", []call{
			{"x -- -a", "x : writes :"},
		}},
		{"any-case", "parser getopt any-case\n-A --All : write\n--File =text\nform up when operand 1 is Start|st* : exec : text...\nform has when --ALL : priv : text...\nform run : inert : text...", []call{
			{"x -a", "x.has : writes privilege :"},
			{"x --aLL", "x.has : writes privilege :"},
			{"x --al", "x.has : writes privilege :"},
			{"x --FILE=Aa", "x : none : --file text:Aa"},
			{"x start", "x.up : executes : text:start"},
			{"x STARt", "x.up : executes : text:STARt"},
			{"x Stop", "x.up : executes : text:Stop"},
		}},
		{"any-case, and commands", "parser getopt any-case\nform run : inert : text...\ncommand add\n-A : write\nform run : inert : text...", []call{
			{"x ADD -a Z", "x.add : writes : text:Z"},
			{"x Add", "x.add : none :"},
		}},
		{"first-cluster", "parser getopt first-cluster\n-c : write\n-t\n-f =read\n-b =text\n-i [=text]\n-e !\n-p =text,read\n-o =write\nform make when -c : exec : read...\nform run : inert : read...", []call{
			{"x tf a b", "x : none : -f read:a, read:b"},
			{"x cfb a 3 b", "x.make : writes executes : -f read:a, -b text:3, read:b"},
			{"x cbf a 3 -t b", "x.make : writes executes : -b text:a, -f read:3, read:b"},
			{"x -tf a b", "x : none : -f read:a, read:b"},
			{"x tz a", "x : opaque : read:a : " + unlisted + " (tz)"},
			{"x to a", "x : writes : -o write:a"},
			{"x ti a", "x : none : read:a"},
			{"x f", "x : none :"},
			{"x t -- -c", "x : none : read:-c"},
			{"x te -c", "x.make : writes executes opaque : : the option takes more than one word (te)"},
			{"x tp a b c", "x : opaque : read:a, read:b, read:c : the option takes more than one word (tp)"},
			{"x -- tf", "x : none : read:tf"},
			{"x tf <> b", "x : none : -f read:<>, read:b"},
			{"x tf <*>", "x : opaque risk=high : -f read:<*> : a word that is not literal may be an option"},
			{"x tf a* b", "x : none : -f read:a*, read:b"},
			{"x tf a<?>", "x : opaque risk=high : -f read:a<?> : a word that is not literal may be an option"},
			{"x <> a", "x : opaque risk=high : read:<>, read:a : the letters of the first word are not literal (<>)"},
			{"x c<> a", "x : opaque : read:c<>, read:a : the letters of the first word are not literal (c<>)"},
			{"x t<*>", "x : opaque risk=high : read:t<*> : the letters of the first word are not literal (t<*>)"},
			{"x ''", "x : none : read:"},
			{"x", "x : none :"},
		}},
		{"dash-stdout", "parser getopt dash-stdout\n-o =write\n-e =empty\n-d =delete\n-r =remote-write\nform run : inert : read? write?", []call{
			{"x -o -", "x : none : -o write:-"},
			{"x -o- a -", "x : none : -o write:-, read:a, write:-"},
			{"x -e - -r -", "x : none : -e empty:-, -r remote-write:-"},
			{"x -d -", "x : writes destructive : -d delete:-"},
			{"x -o ./-", "x : writes : -o write:./-"},
			{"x -o -<>", "x : writes : -o write:-<>"},
		}},
		{"versioned", "parser getopt versioned\nform run : inert :", []call{{"x3.1", "x : none :"}}},
		{"short-commands", `parser getopt short-commands
command address
form run : inert :
command address show
form run : inert :
command address delete
form run : destroy :
command addrlabel
form run : write :
command link
aka lnk
form run : inert :
`, []call{
			{"x address", "x.address : none :"},
			{"x l", "x.link : none :"},
			{"x li", "x.link : none :"},
			{"x addr", "x : opaque : : the command is not in the catalog (addr)"},
			{"x addre s", "x.address.show : none :"},
			{"x addre d", "x.address.delete : destructive :"},
			{"x addre z", "x.address : opaque : : more operands than the catalog knows (z)"},
			{"x links", "x : opaque : : the command is not in the catalog (links)"},
			{"x ''", "x : opaque : : the command is not in the catalog ()"},
		}},
		{"without short-commands", "parser getopt\ncommand link\nform run : inert :", []call{
			{"x lin", "x : opaque : : the command is not in the catalog (lin)"},
		}},
	})
}

func TestOptionValues(t *testing.T) {
	readTable(t, []entryCalls{
		{"effects by value", `parser getopt
-X --request =text : write destroy if DELETE ; write unless GET|HEAD|DELETE ; high if x*
-i [=text] : net if y ; exec unless y|z
-p [=text] : net if y
-w =write : priv
form run : inert :
`, []call{
			{"x -X GET", "x : none : -X text:GET"},
			{"x -XDELETE", "x : writes destructive : -X text:DELETE"},
			{"x --request=POST", "x : writes : --request text:POST"},
			{"x --request POST -X GET", "x : writes : --request text:POST, -X text:GET"},
			{"x -X x", "x : writes risk=high : -X text:x"},
			{"x -Xxyz", "x : writes risk=high : -X text:xyz"},
			{"x -X get", "x : writes : -X text:get"},
			{"x -X", "x : writes destructive risk=high :"},
			{"x --request=", "x : writes : --request text:"},
			{"x -X <>", "x : writes destructive risk=high : -X text:<>"},
			{"x -X G<>", "x : writes destructive risk=high : -X text:G<>"},
			{"x -iy", "x : network : -i text:y"},
			{"x -iz", "x : none : -i text:z"},
			{"x -i", "x : network executes :"},
			{"x -p", "x : network :"},
			{"x -pz", "x : none : -p text:z"},
			{"x -w a", "x : writes privilege : -w write:a"},
			{"x -w-", "x : writes privilege : -w write:-"},
			{"x -w /dev/null", "x : privilege : -w write:/dev/null"},
			{"x -w /dev/<>", "x : writes privilege : -w write:/dev/<>"},
			{"x -w /dev/stdout", "x : privilege : -w write:/dev/stdout"},
			{"x -w /dev/sda", "x : writes privilege : -w write:/dev/sda"},
			{"x -w", "x : privilege :"},
		}},
		{"what a role does", `parser getopt
-a =delete
-b =empty
-c =device
-d =chdir
-e =url
-f =remote-write
-g =config
-h =plugin
-i =script
-j =@branch
-k =code:sed
-l =shell
form run : inert :
`, []call{
			{"x -a p", "x : writes destructive : -a delete:p"},
			{"x -a -", "x : writes destructive : -a delete:-"},
			{"x -b p", "x : writes destructive : -b empty:p"},
			{"x -b /dev/null", "x : none : -b empty:/dev/null"},
			{"x -c /dev/sda", "x : writes destructive : -c device:/dev/sda"},
			{"x -c /dev/null", "x : none : -c device:/dev/null"},
			{"x -d p", "x : none : -d chdir:p"},
			{"x -e u", "x : network : -e url:u"},
			{"x -f h:p", "x : writes : -f remote-write:h:p"},
			{"x -f -", "x : writes : -f remote-write:-"},
			{"x -g p", "x : executes : -g config:p"},
			{"x -h p", "x : executes : -h plugin:p"},
			{"x -i p", "x : executes : -i script:p"},
			{"x -j p", "x : none : -j @branch:p"},
			{"x -k p", "x : none : -k code:sed:p"},
			{"x -l p", "x : none : -l shell:p"},
		}},
		{"two words", "parser getopt\n--arg -A =text,read\nform run : inert : write?", []call{
			{"x --arg a b c", "x : writes : --arg text:a, --arg read:b, write:c"},
			{"x --arg a", "x : none : --arg text:a"},
			{"x --arg", "x : none :"},
			{"x --arg -- --", "x : none : --arg text:--, --arg read:--"},
		}},
		{"until a semicolon", `parser single
-exec =command;
-delete : destroy
-ok =command; : priv
form run : inert : read...
`, []call{
			{"x p -exec rm -f {} ; -delete", "x : destructive : -exec command:rm_-f_{}, read:p"},
			{"x -exec rm {} + -delete", "x : destructive : -exec command:rm_{}"},
			{"x -exec rm + -delete ;", "x : none : -exec command:rm_+_-delete"},
			{"x -exec rm {} -delete", "x : none : -exec command:rm_{}_-delete"},
			{"x -exec + ;", "x : none : -exec command:+"},
			{"x -exec ;", "x : none : -exec command:"},
			{"x -exec", "x : none : -exec command:"},
			{"x -exec a ; -ok b ; q", "x : privilege : -exec command:a, -ok command:b, read:q"},
			{"x -exec echo f<> ;", "x : none : -exec command:echo_f<>"},
			{"x -exec echo <> ;", "x : opaque : -exec command:echo_<> : the word may be the end of the command (<>)"},
			{"x -exec echo <> -delete ;", "x : opaque : -exec command:echo_<>_-delete : the word may be the end of the command (<>)"},
			{"x -exec echo {} <> -delete", "x : opaque : -exec command:echo_{}_<>_-delete : the word may be the end of the command (<>)"},
			{"x -exec echo <*> ;", "x : opaque : -exec command:echo_<*> : the word may be the end of the command (<*>)"},
			{"x -exec echo ;<> -delete ;", "x : opaque : -exec command:echo_;<>_-delete : the word may be the end of the command (;<>)"},
			{"x -exec echo {} +<> -delete ;", "x : opaque : -exec command:echo_{}_+<>_-delete : the word may be the end of the command (+<>)"},
			{"x -exec echo ./<> ;", "x : none : -exec command:echo_./<>"},
			{"x -exec echo a<*> ;", "x : opaque : -exec command:echo_a<*> : the word may be the end of the command (a<*>)"},
		}},
		{"until a semicolon alone", "parser single\n-execdir =command;;\n-delete : destroy\nform run : inert : read...", []call{
			{"x -execdir rm {} + -delete ;", "x : none : -execdir command:rm_{}_+_-delete"},
			{"x -execdir rm {} ; -delete", "x : destructive : -execdir command:rm_{}"},
			{"x -execdir echo <> -delete ;", "x : opaque : -execdir command:echo_<>_-delete : the word may be the end of the command (<>)"},
		}},
		{"all the rest", "parser getopt\n-c =code:python... : high\n-v : write\nform run : inert : text...", []call{
			{"x -c a -v b", "x : none risk=high : -c code:python:a_-v_b"},
			{"x -ca -v b", "x : none risk=high : -c code:python:a_-v_b"},
			{"x -vc a -- b", "x : writes risk=high : -c code:python:a_--_b"},
			{"x -c", "x : none risk=high :"},
			{"x p -c a", "x : none risk=high : -c code:python:a, text:p"},
		}},
		{"the end of the options", "parser getopt\n-c =code:python !\n-e !\n-v : write\nform run : inert : text...", []call{
			{"x -c a -v b", "x : none : -c code:python:a, text:-v, text:b"},
			{"x -ca -v", "x : none : -c code:python:a, text:-v"},
			{"x -v -c a", "x : writes : -c code:python:a"},
			{"x -e -v", "x : none : text:-v"},
			{"x -ev -v", "x : writes : text:-v"},
			{"x -e --", "x : none : text:--"},
		}},
		{"flags that have a value", "parser modern\n--dry-run\n--pretty [=text]\nform dry when --dry-run : inert :\nform run : write :", []call{
			{"x --dry-run", "x.dry : none :"},
			{"x --dry-run=true", "x.dry : none :"},
			{"x --dry-run=false", "x : writes opaque : : " + unlisted + " (--dry-run=false)"},
			{"x --dry-run=<>", "x : writes opaque : : " + unlisted + " (--dry-run=<>)"},
			{"x --dry-run=1<>", "x : writes opaque : : " + unlisted + " (--dry-run=1<>)"},
			{"x --dry-run false", "x.dry : opaque : : more operands than the catalog knows (false)"},
			{"x --pretty=false", "x : writes : --pretty text:false"},
		}},
		{"families", `parser getopt
-#
-f* =read
-W* : high
--with-* =text : write
--no-*
+* : net
option if= =read
option of= =write
-#x
form has when -f* : exec : text...
form of when of= is /dev/* : destroy : text...
form num when -# : priv : text...
form run : inert : text...
`, []call{
			{"x -20", "x.num : privilege :"},
			{"x -0", "x.num : privilege :"},
			{"x -2a", "x : opaque : : " + unlisted + " (-2a)"},
			{"x -<>", "x : opaque risk=high : text:-<> : the word may be any option (-<>)"},
			{"x -2<>", "x : opaque : : " + unlisted + " (-2<>)"},
			{"x -fab", "x.has : executes : -f* read:ab"},
			{"x -f ab", "x.has : executes : -f* read:, text:ab"},
			{"x -f<>", "x.has : executes : -f* read:<>"},
			{"x -Wall p", "x : none risk=high : text:p"},
			{"x --with-a=b", "x : writes : --with-* text:a=b"},
			{"x --no-x", "x : none :"},
			{"x --no", "x : opaque : : " + unlisted + " (--no)"},
			{"x +x", "x : network :"},
			{"x if=a of=b", "x : writes : if= read:a, of= write:b"},
			{"x of=/dev/null", "x.of : destructive : of= write:/dev/null"},
			{"x of=/dev/sda", "x.of : writes destructive : of= write:/dev/sda"},
			{"x of=<>", "x : writes opaque : of= write:<> : which form it is depends on a word that is not literal"},
			{"x if=", "x : none : if= read:"},
			{"x if a=b", "x : none : text:if, text:a=b"},
			{"x -- if=a", "x : none : text:if=a"},
			{"x -#x", "x : none :"},
		}},
		{"odd spellings", "parser getopt\noption --  up\n-? : net\n-\nform run : inert : text...", []call{
			{"x up", "x : none :"},
			{"x -?", "x : network :"},
			{"x -", "x : none :"},
			{"x a -- up", "x : none : text:a, text:up"},
		}},
	})
}

func TestConditions(t *testing.T) {
	readTable(t, []entryCalls{
		{"options", `parser getopt all-options
-d --delete
-v
-X =text
form both when -d and -v : destroy :
form del when --delete|-X : write :
form lacks when !-d|-v : read :
form run : priv :
`, []call{
			{"x -dv", "x.both : destructive :"},
			{"x --delete -v", "x.both : destructive :"},
			{"x --del", "x.del : writes :"},
			{"x -Xa", "x.del : writes : -X text:a"},
			{"x", "x.lacks : unsettled :"},
			{"x -v", "x : privilege :"},
		}},
		{"values of options", `parser getopt
-X --req =text
-p [=text]
form get when -X is GET|H* : inert :
form post when --req is POST : write :
form p when -p is a and -X is b : priv :
form none when !-X|-p : read :
form run : exec :
`, []call{
			{"x -X GET", "x.get : none : -X text:GET"},
			{"x --req=HEAD", "x.get : none : --req text:HEAD"},
			{"x --re=H", "x.get : none : --re text:H"},
			{"x -X POST", "x.post : writes : -X text:POST"},
			{"x -X get", "x : executes : -X text:get"},
			{"x -pa -Xb", "x.p : privilege : -p text:a, -X text:b"},
			{"x -pa", "x : executes : -p text:a"},
			{"x", "x.none : unsettled :"},
			{"x -X GET -X POST", "x : executes opaque : -X text:GET, -X text:POST : which form it is depends on a word that is not literal"},
			{"x -X POST -X POST", "x.post : writes : -X text:POST, -X text:POST"},
			{"x -X <>", "x : executes opaque : -X text:<> : which form it is depends on a word that is not literal"},
			{"x -p", "x : executes :"},
			{"x -X", "x : executes opaque : : which form it is depends on a word that is not literal"},
		}},
		{"how many operands", `parser getopt
form none when operands 0 : inert :
form two when operands 2 : write : text...
form few when operands 3..4 : net : text...
form many when operands 6.. : priv : text...
form run : exec : text...
`, []call{
			{"x", "x.none : none :"},
			{"x a", "x : executes : text:a"},
			{"x a b", "x.two : writes : text:a, text:b"},
			{"x a b c", "x.few : network : text:a, text:b, text:c"},
			{"x a b c -- d", "x.few : network : text:a, text:b, text:c, text:d"},
			{"x 1 2 3 4 5", "x : executes : text:1, text:2, text:3, text:4, text:5"},
			{"x 1 2 3 4 5 6 7", "x.many : privilege : text:1, text:2, text:3, text:4, text:5, text:6, text:7"},
			{"x -- <>", "x : executes : text:<>"},
			{"x -- a <>", "x.two : writes : text:a, text:<>"},
			{"x -- <?>", "x : executes opaque : text:<?> : which form it is depends on a word that is not literal"},
			{"x -- <*>", "x : executes opaque : text:<*> : which form it is depends on a word that is not literal"},
			{"x -- 1 2 3 4 5 6 <*>", "x.many : privilege : text:1, text:2, text:3, text:4, text:5, text:6, text:<*>"},
		}},
		{"an operand", `parser getopt
form up when operand 1 is start|re* : write : text text?
form deep when operand 2 is x : net : text text
form run : inert : text...
`, []call{
			{"x start", "x.up : writes : text:start"},
			{"x restart u", "x.up : writes : text:restart, text:u"},
			{"x stop", "x : none : text:stop"},
			{"x stop x", "x.deep : network : text:stop, text:x"},
			{"x", "x : none :"},
			{"x -- x", "x : none : text:x"},
			{"x -- <>", "x : opaque : text:<> : which form it is depends on a word that is not literal"},
			{"x -- s<>", "x : opaque : text:s<> : which form it is depends on a word that is not literal"},
			{"x -- q<>", "x : none : text:q<>"},
			{"x -- re<>", "x.up : writes : text:re<>"},
			{"x -- a <>", "x : opaque : text:a, text:<> : which form it is depends on a word that is not literal"},
			{"x -- <> x", "x.deep : network opaque : text:<>, text:x : which form it is depends on a word that is not literal"},
			{"x -- <*> start", "x : opaque : text:<*>, text:start : which form it is depends on a word that is not literal"},
			{"x -- a<?> x", "x : opaque : text:a<?>, text:x : which form it is depends on a word that is not literal"},
		}},
		{"the end of a value", "parser getopt\n-X =text : priv unless *-list|view-*\nform del when operand 1 is *-delete|delete-* : destroy : text...\nform get when -X is *-get : net : text...\nform run : inert : text...", []call{
			{"x disk-delete", "x.del : destructive : text:disk-delete"},
			{"x delete-disk", "x.del : destructive : text:delete-disk"},
			{"x -delete-", "x : opaque : : " + unlisted + " (-delete-)"},
			{"x delete", "x : none : text:delete"},
			{"x disk-deleted", "x : none : text:disk-deleted"},
			{"x -X a-get", "x.get : network privilege : -X text:a-get"},
			{"x -X a-list", "x : none : -X text:a-list"},
			{"x -X view-a", "x : none : -X text:view-a"},
			{"x -X list", "x : privilege : -X text:list"},
			{"x d<>", "x : opaque : text:d<> : which form it is depends on a word that is not literal"},
			{"x delete-<>", "x.del : destructive : text:delete-<>"},
			{"x -X a<>", "x : privilege opaque : -X text:a<> : which form it is depends on a word that is not literal"},
		}},
		{"no form fits", "parser getopt\n-a\nform a when -a : inert :\nform b when operands 1 : inert : text", []call{
			{"x", "x : opaque : : no form of the entry fits"},
			{"x b c", "x : opaque : : no form of the entry fits"},
			{"x -a", "x.a : none :"},
		}},
		{"any-case", "parser getopt any-case\nform up when operand 1 is Start : exec : text\nform run : inert : text", []call{
			{"x -- STA<>", "x : opaque : text:STA<> : which form it is depends on a word that is not literal"},
			{"x -- stop<>", "x : none : text:stop<>"},
		}},
	})
}

func TestOperands(t *testing.T) {
	readTable(t, []entryCalls{
		{"one after the other", "parser getopt\nform run : inert : text read write? delete?", []call{
			{"x", "x : none :"},
			{"x a", "x : none : text:a"},
			{"x a b", "x : none : text:a, read:b"},
			{"x a b c", "x : writes : text:a, read:b, write:c"},
			{"x a b c d", "x : writes destructive : text:a, read:b, write:c, delete:d"},
			{"x a b - d e", "x : writes destructive opaque : text:a, read:b, write:-, delete:d : more operands than the catalog knows (e)"},
		}},
		{"optional ones in front", "parser getopt\nform run : inert : text? read", []call{
			{"x a", "x : none : read:a"},
			{"x a b", "x : none : text:a, read:b"},
			{"x a b c", "x : opaque : text:a, read:b : more operands than the catalog knows (c)"},
		}},
		{"repeated, then a last one", "parser getopt\nform run : inert : read+ write", []call{
			{"x", "x : none :"},
			{"x a", "x : writes : write:a"},
			{"x a b", "x : writes : read:a, write:b"},
			{"x a b c", "x : writes : read:a, read:b, write:c"},
			{"x a -", "x : writes : read:a, write:-"},
			{"x a /dev/null", "x : none : read:a, write:/dev/null"},
			{"x -- a <>", "x : writes : read:a, write:<>"},
			{"x -- a <*>", "x : writes : read:a, write:<*>"},
			{"x -- <*> /dev/null", "x : writes : read:<*>, write:/dev/null"},
		}},
		{"one, then repeated", "parser getopt\nform run : inert : text delete...", []call{
			{"x a", "x : none : text:a"},
			{"x a b c", "x : writes destructive : text:a, delete:b, delete:c"},
			{"x -- <*>", "x : writes destructive : text:<*>"},
			{"x -- <>", "x : none : text:<>"},
		}},
		{"any number", "parser getopt\nform run : inert : @unit...", []call{
			{"x", "x : none :"},
			{"x a b", "x : none : @unit:a, @unit:b"},
			{"x -- <*> b", "x : none : @unit:<*>, @unit:b"},
		}},
		{"none", "parser getopt\nform run : inert :", []call{
			{"x a", "x : opaque : : more operands than the catalog knows (a)"},
			{"x -- <*>", "x : opaque : : more operands than the catalog knows (<*>)"},
		}},
		{"a command", "parser getopt\n-n =text\n-v : write\nform run : priv : text command...", []call{
			{"x 5 ls -v", "x : privilege : text:5, command:ls_-v"},
			{"x -v 5 ls -n", "x : writes privilege : text:5, command:ls_-n"},
			{"x 5", "x : privilege : text:5"},
			{"x 5 -- ls", "x : privilege : text:5, command:--_ls"},
			{"x -- 5 ls -- a", "x : privilege : text:5, command:ls_--_a"},
			{"x -- <> ls", "x : privilege : text:<>, command:ls"},
			{"x -- <*> ls", "x : privilege opaque : text:<*>, command:ls : the word may be none or several (<*>)"},
			{"x -- 5 <*> ls", "x : privilege opaque : text:5, command:<*>_ls : the word may be none or several (<*>)"},
			{"x -- 5 ls <*>", "x : privilege : text:5, command:ls_<*>"},
			{"x -n <*> 5 ls", "x : privilege opaque risk=high : -n text:<*>, text:5, command:ls : nobody knows where the command begins (<*>)"},
		}},
		{"a command, all options known", "parser getopt all-options\n-n =text\nform run : inert : command...", []call{
			{"x -n 1 ls a", "x : none : -n text:1, command:ls_a"},
			{"x -n <> ls", "x : none : -n text:<>, command:ls"},
			{"x -n<> ls", "x : opaque : -n text:<>, command:ls : nobody knows where the command begins (-n<>)"},
			{"x -n1<> ls", "x : none : -n text:1<>, command:ls"},
			{"x -n <*> ls", "x : opaque : -n text:<*>, command:ls : nobody knows where the command begins (<*>)"},
			{"x -n<*> ls", "x : opaque : -n text:<*>, command:ls : nobody knows where the command begins (-n<*>)"},
			{"x -n a<?> ls", "x : opaque : -n text:a<?>, command:ls : nobody knows where the command begins (a<?>)"},
		}},
		{"a command and options anywhere", "parser getopt anywhere\n-v : write\nform run : inert : command...", []call{
			{"x ls -v", "x : writes : command:ls_-v"},
		}},
		{"a command with assignments", "parser getopt\n-u =text\n-i\nform show when operands 0 : secret :\nform run : inert : assign... command...", []call{
			{"x", "x.show : secrets :"},
			{"x A=1", "x.show : secrets : assign:A=1"},
			{"x -i A=1 B= ls C=2", "x : none : assign:A=1, assign:B=, command:ls_C=2"},
			{"x A=1 -u b ls", "x : none : assign:A=1, command:-u_b_ls"},
			{"x =a ls", "x : none : command:=a_ls"},
			{"x a-b=c ls", "x : none : assign:a-b=c, command:ls"},
			{"x -- A=<> ls", "x : none : assign:A=<>, command:ls"},
			{"x -- A=<*> ls", "x : opaque secrets risk=high : assign:A=<*>, command:ls : nobody knows where the command begins (A=<*>)"},
			{"x -- <> ls", "x : none : command:<>_ls"},
		}},
		{"assignments in front of a subcommand", "parser getopt\n-v : write\nform run : inert : assign... command...\ncommand list\nform run : net :", []call{
			{"x list", "x.list : network :"},
			{"x A=1 list", "x : none : assign:A=1, command:list"},
			{"x A=1 ls -v", "x : none : assign:A=1, command:ls_-v"},
			{"x ls list", "x : none : command:ls_list"},
		}},
		{"shell text", "parser getopt\n-a : write\nform one when operands 1 : inert : shell\nform run : inert : shell...", []call{
			{"x ls_-a", "x.one : none : shell:ls -a"},
			{"x ls -a", "x : none : shell:ls_-a"},
		}},
		{"shell text behind something", "parser getopt\n-a : write\nform run : net : @host remote-shell...", []call{
			{"x h ls -a", "x : network : @host:h, remote-shell:ls_-a"},
			{"x -a h", "x : writes network : @host:h"},
			{"x h", "x : network : @host:h"},
		}},
		{"a command elsewhere", "parser getopt\n-a : write\nform run : net : @container remote-command...", []call{
			{"x c sh -a", "x : network : @container:c, remote-command:sh_-a"},
		}},
		{"program text of all words", "parser getopt\nform run : inert : code:jq...", []call{
			{"x .a .b", "x : none : code:jq:.a_.b"},
		}},
		{"settings", "parser getopt\nsetting g k : write\nform run : inert : setting:g...", []call{
			{"x k=v l=w", "x : none : setting:g:k=v, setting:g:l=w"},
		}},
		{"standard input", "parser getopt\n-c =code:sh\n-s : stdin:shell\nform text when -c : inert :\nform file when operands 1.. : exec : script text...\nform in : inert stdin:code:sh :", []call{
			{"x", "x.in : none stdin=code:sh :"},
			{"x -s a", "x.file : executes stdin=shell : script:a"},
			{"x -c a", "x.text : none : -c code:sh:a"},
		}},
		{"risk", "parser getopt\n-f : high\n-g : critical\nform run : medium write :", []call{
			{"x", "x : writes risk=medium :"},
			{"x -f", "x : writes risk=high :"},
			{"x -gf", "x : writes risk=critical :"},
		}},
	})
}

// A word that may be an option is no reason to ask only if the entry says that
// it knows every option, and none of them could matter.
func TestDoubt(t *testing.T) {
	const mayBeOption = " : a word that is not literal may be an option"
	readTable(t, []entryCalls{
		{"not every option is known", "parser getopt\n-a\nform run : inert : read...", []call{
			{"x <>", "x : opaque risk=high : read:<> : a word that is not literal may be an option"},
			{"x a <*>", "x : opaque risk=high : read:a, read:<*> : a word that is not literal may be an option"},
			{"x <?>", "x : opaque risk=high : read:<?> : a word that is not literal may be an option"},
			{"x a<>", "x : none : read:a<>"},
			{"x a<?>", "x : none : read:a<?>"},
			{"x a<*>", "x : opaque risk=high : read:a<*> : a word that is not literal may be an option"},
			{"x -- <>", "x : none : read:<>"},
			{"x -- <*>", "x : none : read:<*>"},
			{"x -<>", "x : opaque risk=high : read:-<> : the word may be any option (-<>)"},
			{"x --a<>", "x : opaque : : the word may be any option (--a<>)"},
			{"x -a<>", "x : opaque : : the word may be any option (-a<>)"},
		}},
		{"none matters", "parser getopt all-options\n-a\n-n =text\n--long =text\nform run : inert : read...", []call{
			{"x <>", "x : none : read:<>"},
			{"x <*>", "x : none : read:<*>"},
			{"x -n <*> a", "x : none : -n text:<*>, read:a"},
			{"x -a<>", "x : opaque : : the word may be any option (-a<>)"},
			{"x --long=<>", "x : none : --long text:<>"},
			{"x --long=<*>", "x : none : --long text:<*>"},
			{"x --lo=<>", "x : none : --lo text:<>"},
			{"x --lo<>", "x : opaque : : the word may be any option (--lo<>)"},
			{"x --other=<>", "x : opaque : : " + unlisted + " (--other=<>)"},
		}},
		{"an option matters by its effects", "parser getopt all-options\n-f : destroy\nform run : inert : read...", []call{
			{"x <>", "x : opaque : read:<>" + mayBeOption},
			{"x -f <>", "x : destructive : read:<>"},
			{"x a", "x : none : read:a"},
		}},
		{"an option matters by its value", "parser getopt all-options\n-o =write\nform run : inert : read...", []call{
			{"x <>", "x : opaque : read:<>" + mayBeOption},
			{"x -o a <>", "x : writes : -o write:a, read:<>"},
		}},
		{"an option matters by what it starts", "parser getopt all-options\n-e =shell\nform run : inert : read...", []call{
			{"x <>", "x : opaque : read:<>" + mayBeOption},
		}},
		{"a family matters", "parser getopt all-options\n-W* : exec\nform run : inert : read...", []call{
			{"x <>", "x : opaque : read:<>" + mayBeOption},
		}},
		{"the risk of an option", "parser getopt all-options\n-r : critical\nform run : destroy : delete...", []call{
			{"x a", "x : writes destructive : delete:a"},
			{"x <> a", "x : writes destructive risk=critical : delete:<>, delete:a"},
		}},
		{"what a form shows that perhaps holds", "parser getopt all-options\nform show when operands 0 : secret high :\nform run : inert : text...", []call{
			{"x a", "x : none : text:a"},
			{"x -- <*>", "x : secrets risk=high : text:<*>"},
		}},
		{"a consulted setting", "parser getopt all-options\n-e : read secret high\nform run : inert : read...", []call{
			{"x <>", "x : unsettled secrets risk=high : read:<>"},
		}},
		{"an option makes another form hold", "parser getopt all-options\n-w\nform other when -w : write : read...\nform run : inert : read...", []call{
			{"x <>", "x : opaque : read:<>" + mayBeOption},
			{"x -w <>", "x.other : writes : read:<>"},
		}},
		{"an option makes the form not hold", "parser getopt all-options\n-w\nform dry when !-w : inert : read...\nform run : write : read...", []call{
			{"x <>", "x.dry : opaque : read:<>" + mayBeOption},
			{"x -w <>", "x : writes : read:<>"},
		}},
		{"a second value makes the form not hold", "parser getopt all-options\n-X =text\nform get when -X is GET : inert : read...\nform run : write : read...", []call{
			{"x -X GET <>", "x.get : opaque : -X text:GET, read:<>" + mayBeOption},
			{"x -X GET a<>", "x.get : none : -X text:GET, read:a<>"},
		}},
		{"a value that is several words moves the operands", "parser getopt all-options\n-n =text\nform some when operands 1.. : inert : read...\nform none : write :", []call{
			{"x -n 1 a", "x.some : none : -n text:1, read:a"},
			{"x -n 1", "x.none : writes : -n text:1"},
			{"x -n <> a", "x.some : none : -n text:<>, read:a"},
			{"x -n <*> a", "x.none : writes opaque : -n text:<*> : more operands than the catalog knows (a)"},
			{"x -n <*> a b", "x.some : opaque : -n text:<*>, read:a, read:b" + mayBeOption},
		}},
		{"a value that is several words changes which operand is which", "parser getopt all-options\n-n =text\nform up when operand 1 is stop : write : text...\nform run : inert : text...", []call{
			{"x -n <> start", "x : none : -n text:<>, text:start"},
			{"x -n <*> start", "x : opaque : -n text:<*>, text:start : which form it is depends on a word that is not literal"},
		}},
		{"subcommands", "parser getopt all-options\n-g =text\nform run : inert :\ncommand a\nform run : inert : text...\ncommand a b\nform run : destroy :\ncommand c\nform run : inert : text...", []call{
			{"x <>", "x : opaque : : the subcommand is not literal (<>)"},
			{"x a<>", "x : opaque : : the subcommand is not literal (a<>)"},
			{"x -g <*>", "x : opaque : -g text:<*> : a word that is not literal may be a subcommand"},
			{"x -g <*> a", "x.a : opaque : -g text:<*> : a word that is not literal may be a subcommand"},
			{"x a <>", "x.a : opaque : text:<> : the subcommand is not literal (<>)"},
			{"x a b<>", "x.a : opaque : text:b<> : the subcommand is not literal (b<>)"},
			{"x a z<>", "x.a : none : text:z<>"},
			{"x a z <>", "x.a : none : text:z, text:<>"},
			{"x c <>", "x.c : none : text:<>"},
		}},
		{"stuck options of dos and powershell", "parser powershell all-options\n-Name =text\n-Go : write\nform run : inert : text...", []call{
			{"x -name:<>", "x : none : -name text:<>"},
			{"x -n<>", "x : opaque : : the word may be any option (-n<>)"},
			{"x <>", "x : opaque : text:<>" + mayBeOption},
		}},
		{"a file whose name begins a family", "parser single no-dashdash all-options\noption if= =read\noption of= =write\nform run : inert :", []call{
			{"x if=<>", "x : none : if= read:<>"},
			{"x of<>", "x : opaque : : the word may be any option (of<>)"},
			{"x <>", "x : opaque : : more operands than the catalog knows (<>)"},
		}},
	})
}

// What a shell hides may be nothing at all, the end of the options, or the
// value that swallows the word behind it.
func TestHidden(t *testing.T) {
	const mayBeOption = " : a word that is not literal may be an option"
	readTable(t, []entryCalls{
		{"an empty value takes the next word", "parser getopt all-options\n-n =text\n-i [=text]\n--name =text\nform run : inert : command...", []call{
			{"x -n<> ls rm", "x : opaque : -n text:<>, command:ls_rm : nobody knows where the command begins (-n<>)"},
			{"x -na<> ls rm", "x : none : -n text:a<>, command:ls_rm"},
			{"x -i<> ls rm", "x : none : -i text:<>, command:ls_rm"},
			{"x --name=<> ls rm", "x : none : --name text:<>, command:ls_rm"},
		}},
		{"an option that makes the form hold is swallowed", "parser getopt all-options\n-n =text\n-V\nform help when -V : inert : text...\nform run : write : text...", []call{
			{"x <> -V", "x.help : opaque : text:<>" + mayBeOption},
			{"x -n <*> -V", "x.help : opaque : -n text:<*>" + mayBeOption},
			{"x -n<> -V", "x.help : opaque : -n text:<>" + mayBeOption},
			{"x -V a<>", "x.help : none : text:a<>"},
		}},
		{"the end of the options makes an operand of it", "parser getopt all-options\n-V\nform help when -V : inert :\nform run : write : text...", []call{
			{"x -<> -V", "x.help : opaque : : the word may be any option (-<>)"},
		}},
		{"a long option of one dash", "parser getopt all-options anywhere\n-c =text\n-classpath =plugin\nform run : inert : text...", []call{
			{"x -classpath a", "x : executes : -classpath plugin:a"},
			{"x -classx a", "x : none : -c text:lassx, text:a"},
			{"x -class<> a", "x : opaque : text:a : the word may be any option (-class<>)"},
			{"x -clax<> a", "x : none : -c text:lax<>, text:a"},
		}},
		{"options that begin otherwise", "parser getopt all-options\n+r -R : write\n+* : exec\noption up : destroy\nform run : inert : text...", []call{
			{"x +r", "x : writes :"},
			{"x +<>", "x : executes opaque : : the word may be any option (+<>)"},
			{"x u<>", "x : opaque : text:u<> : the word may be any option (u<>)"},
			{"x a<>", "x : none : text:a<>"},
		}},
		{"options with a plus", "parser getopt all-options\n+r : write\nform run : inert : text...", []call{
			{"x +<>", "x : opaque : text:+<> : the word may be any option (+<>)"},
			{"x +<?>", "x : opaque : text:+<?> : the word may be any option (+<?>)"},
			{"x +x<>", "x : none : text:+x<>"},
		}},
		{"options with a slash", "parser dos all-options\n/r : write\nform run : inert : text...", []call{
			{"x /<>", "x : opaque : text:/<> : the word may be any option (/<>)"},
			{"x /r<>", "x : opaque : : the word may be any option (/r<>)"},
		}},
		{"an option is no operand", "parser getopt all-options\n-o\nform one when operands 1 : inert : read\nform two when -o : write : read...\nform run : net : read...", []call{
			{"x a", "x.one : none : read:a"},
			{"x a<>", "x.one : none : read:a<>"},
			{"x <>", "x.one : opaque : read:<>" + mayBeOption},
		}},
		{"a pattern may be several words", "parser single all-options\nform one when operands 1 : inert : read\nform two : inert : read code:sql...", []call{
			{"x a", "x.one : none : read:a"},
			{"x a b", "x.two : none : read:a, code:sql:b"},
			{"x a<?>", "x.two : opaque : read:a<?> : the word may be none or several (a<?>)"},
		}},
	})
}

// What is neutral is inert once the entry's neutral words are there: only if
// nothing else is consulted, and nothing opens a door.
func TestNeutral(t *testing.T) {
	readTable(t, []entryCalls{{"neutral", `neutral --no-pager
parser getopt
-r : read
-n : neutral
-d : door
-w : write
form read when -r : inert :
form run : neutral : text...
`, []call{
		{"x", "x : unsettled neutral :"},
		{"x -n", "x : unsettled neutral :"},
		{"x -r", "x.read : unsettled :"},
		{"x -rn", "x.read : unsettled :"},
		{"x -d", "x : unsettled door :"},
		{"x -w", "x : writes unsettled neutral :"},
	}}})
}
