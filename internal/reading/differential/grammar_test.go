package differential

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	_ "embed"
)

var (
	//go:embed testdata/attacks.txt
	attackLines string
	//go:embed testdata/programs.txt
	programLines string
)

// attacks are the lines of two files, about the shell and about programs.
func attacks() []string {
	var texts []string
	for _, s := range slices.Concat(lines("attacks.txt", attackLines), lines("programs.txt", programLines)) {
		texts = append(texts, s.text)
	}
	return texts
}

// grammar writes command lines. The same seed gives the same lines.
type grammar struct {
	rng   *rand.Rand
	depth int            // how deep the production being written is nested
	made  map[string]int // how often each production was used

	hostile []production
	tricks  []string
}

func newGrammar(from uint64) *grammar {
	return &grammar{rng: rand.New(rand.NewPCG(from, 20260101)), made: map[string]int{}, hostile: hostile(), tricks: slices.Concat(tricks(), attacks())}
}

// production is one way to write something, with its share.
type production struct {
	name   string
	weight int
	deep   bool // it contains what it is an instance of
	write  func(*grammar) string
}

// pick writes one of the productions. Where it is deep, only those that end.
func (g *grammar) pick(all []production) string {
	total := 0
	for _, p := range all {
		if !p.deep || g.depth < maxDepth {
			total += p.weight
		}
	}
	n := g.rng.IntN(total)
	for _, p := range all {
		if p.deep && g.depth >= maxDepth {
			continue
		}
		if n -= p.weight; n < 0 {
			g.made[p.name]++
			g.depth++
			defer func() { g.depth-- }()
			return p.write(g)
		}
	}
	panic("weights do not add up")
}

const (
	maxDepth = 5
	seed     = 1 // of the lines that every run has
)

func (g *grammar) one(options ...string) string { return options[g.rng.IntN(len(options))] }

func (g *grammar) chance(percent int) bool { return g.rng.IntN(100) < percent }

func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// doubleQuote quotes so that nothing is expanded before the inner shell.
func doubleQuote(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, `$`, `\$`, "`", "\\`").Replace(text) + `"`
}

// line is a whole command line.
func (g *grammar) line() string {
	statements := []string{}
	if g.chance(12) {
		statements = append(statements, g.pick(preludes()))
	}
	for range 1 + g.rng.IntN(2) {
		statements = append(statements, g.statement())
	}
	text := strings.Join(statements, g.one("; ", "\n", "; ", ";"))
	switch {
	case g.chance(3):
		g.made["comment"]++
		text += " # rm -rf x; $(touch c)"
	case g.chance(2):
		g.made["continued"]++
		text = strings.Replace(text, " ", " \\\n", 1)
	case g.chance(2):
		g.made["broken"]++
		if n := len(text); n > 2 {
			at := g.rng.IntN(n)
			text = text[:at] + g.one("", "(", ")", "'", "\"", ";;", "&", "|", "$(", "{", "fi") + text[at:]
		}
	case g.chance(1):
		g.made["blanks"]++
		text = strings.ReplaceAll(text, " ", g.one("  ", " \t"))
	}
	return text
}

func (g *grammar) statement() string { return g.pick(statementKinds()) }

// list is statements in a row, as a compound command has them.
func (g *grammar) list() string {
	text := g.statement()
	for g.chance(25) {
		text += g.one("; ", " && ", " || ", "\n", " & ") + g.statement()
	}
	return text
}

func statementKinds() []production {
	return []production{
		{"simple", 40, false, (*grammar).simple},
		{"redirected", 14, false, func(g *grammar) string { return g.simple() + " " + g.redirection() }},
		{"assigned", 4, false, func(g *grammar) string { return g.assignment() + " " + g.simple() }},
		{"assignment", 4, false, func(g *grammar) string { return g.assignment() + "; " + g.simple() }},
		{"hostile", 8, false, func(g *grammar) string { return g.pick(g.hostile) }},
		{"trick", 6, false, func(g *grammar) string { return g.one(g.tricks...) }},
		{"pipe", 10, true, func(g *grammar) string {
			text := g.simple() + g.one(" | ", " | ", " |& ") + g.pick(filters())
			if g.chance(20) {
				text += " | " + g.pick(filters())
			}
			return text
		}},
		{"and-or", 8, true, func(g *grammar) string { return g.statement() + g.one(" && ", " || ") + g.statement() }},
		{"group", 3, true, func(g *grammar) string { return "{ " + g.list() + "; }" + g.maybeRedirection() }},
		{"subshell", 3, true, func(g *grammar) string { return "(" + g.list() + ")" + g.maybeRedirection() }},
		{"negated", 1, true, func(g *grammar) string { return "! " + g.simple() }},
		{"time", 2, true, func(g *grammar) string { return g.one("time ", "time -p ", "time -- ") + g.simple() }},
		{"background", 2, true, func(g *grammar) string { return g.simple() + " & wait" }},
		{"if", 4, true, func(g *grammar) string {
			text := "if " + g.condition() + "; then " + g.list() + "; "
			if g.chance(20) {
				text += "elif " + g.condition() + "; then " + g.list() + "; "
			}
			if g.chance(40) {
				text += "else " + g.list() + "; "
			}
			return text + "fi" + g.maybeRedirection()
		}},
		{"for", 4, true, func(g *grammar) string {
			head := "for v in " + g.words(1, 3)
			if g.depth < maxDepth && g.chance(15) {
				head = g.one("for ((i=0; i<2; i++))", "for ((i=$(echo 0); i<1; i++))", "for v")
			}
			return head + "; do " + g.list() + "; done" + g.maybeRedirection()
		}},
		{"while", 3, true, func(g *grammar) string {
			return g.one(
				"while read -r v; do "+g.list()+"; done < "+g.file(),
				g.simple()+" | while read -r v w; do "+g.list()+"; done",
				"while "+g.condition()+"; do "+g.list()+"; break; done",
				"until "+g.condition()+"; do "+g.list()+"; break; done",
				"while :; do "+g.simple()+"; break; done",
				"select v in a b; do "+g.simple()+"; break; done < /dev/null")
		}},
		{"case", 3, true, func(g *grammar) string {
			return "case " + g.word() + " in " + g.one("a", "*.txt", "[ab]*", "'x y'", g.word()) + g.one(") ", "|b) ") + g.list() +
				g.one(";; ", ";& ", ";;& ") + "*) " + g.simple() + ";; esac"
		}},
		{"function", 4, true, func(g *grammar) string {
			name := g.one("f", "ls", "go", "g_1", "cat", "my-fn")
			body := g.one("{ "+g.list()+"; }", "( "+g.list()+" )", "{ \"$@\"; }", "{ $1; }", "{ command "+g.simple()+"; }")
			call := g.one(name, name+" "+g.words(1, 2), name+" "+g.simple(), ":")
			return g.one(name+"() ", "function "+name+" ", name+" () ") + body + "; " + call
		}},
		{"conditional", 3, true, func(g *grammar) string { return g.condition() + g.one(" && ", " || ") + g.simple() }},
		{"eval", 4, true, func(g *grammar) string {
			return "eval " + g.one(g.simple(), quote(g.simple()), doubleQuote(g.simple()), quote(g.list()), g.word(), `"$`+g.variable()+`"`)
		}},
		{"nested shell", 6, true, func(g *grammar) string {
			return g.one("bash", "sh", "bash", "dash", "/bin/sh", "bash --norc", "env bash") + g.one(" -c ", " -c ", " -ec ", " -xc ", " -c -- ") +
				g.one(quote(g.list()), doubleQuote(g.simple()), quote(g.list())+" x "+g.words(1, 2), quote(`"$@"`)+" x "+g.simple(),
					quote("$0")+" "+g.simple())
		}},
		{"fed shell", 4, true, func(g *grammar) string {
			shell := g.one("sh", "bash", "bash -s", "bash -s -- x", "/bin/bash")
			return g.one(
				"{ "+shell+" <<"+g.one("E", "'E'", "\\E", "\"E\"")+"\n"+g.list()+"\nE\n}",
				"("+shell+" <<-E\n\t"+g.simple()+"\n\tE\n)",
				shell+" <<< "+quote(g.simple()),
				"echo "+quote(g.simple())+" | "+shell,
				"printf '%s\\n' "+quote(g.simple())+" | "+shell,
				shell+" <(echo "+quote(g.simple())+")",
				g.one(".", "source")+" <(echo "+quote(g.simple())+")",
				g.one(".", "source", "bash", "sh")+" "+g.one("./lib.sh", "lib.sh", "./script.sh", "cmds.txt", "/dev/stdin"),
				"cat "+g.file()+" | "+shell,
				shell+" < "+g.file())
		}},
		{"wrapper", 10, true, func(g *grammar) string { return g.pick(wrappers()) }},
		{"here-document", 4, true, func(g *grammar) string {
			return "{ " + g.one("cat", "sort", "tee "+g.fresh(), "grep a", "xargs "+g.simple()) + " " + g.one("<<E", "<<'E'", "<<\"E\"", "<<-E", "0<<E") + "\n" +
				g.one("plain text", "$("+g.simple()+")", "`"+g.simple()+"`", "${x:-$("+g.simple()+")}", "$((1+1)) \\$(touch no)", "rm -rf x", "") + "\nE\n}"
		}},
		{"here-string", 2, true, func(g *grammar) string {
			return g.one("cat", "grep x", "xargs", "read v", "tr a b") + " <<< " + g.word()
		}},
		{"trap", 2, true, func(g *grammar) string {
			return "trap " + g.one(quote(g.simple()), doubleQuote(g.simple()), "-p", "-- "+quote(g.simple())) + " " + g.one("EXIT", "0", "DEBUG", "ERR", "RETURN", "INT") + "; " + g.simple()
		}},
		{"coproc", 1, true, func(g *grammar) string {
			return "coproc " + g.one("", "C ") + g.one("{ "+g.list()+"; }", g.simple()) + "; wait"
		}},
		{"alias", 2, true, func(g *grammar) string {
			name := g.one("a", "ls", "cat", "l")
			return g.one("shopt -s expand_aliases; ", "shopt -s expand_aliases\n", "") + "alias " + name + "=" + quote(g.simple()) + g.one("; ", "\n") + g.one(name, name+" x", "eval "+name, "\\"+name)
		}},
		{"array", 2, true, func(g *grammar) string {
			return g.one("a=(", "declare -a a=(", "a+=(", "declare -A a=([k]=") + g.simple() + "); " +
				g.one(`"${a[@]}"`, `${a[*]}`, `${a[0]}`, `echo "${a[@]}"`, `echo ${#a[@]} ${!a[@]}`, `"${a[@]:0:2}"`, `eval "${a[@]}"`)
		}},
	}
}

func (g *grammar) maybeRedirection() string {
	if g.chance(15) {
		return " " + g.redirection()
	}
	return ""
}

// preludes change what follows.
func preludes() []production {
	set := func(name, text string) production {
		return production{"prelude " + name, 1, false, func(*grammar) string { return text }}
	}
	return []production{
		{"prelude variable", 6, false, func(g *grammar) string { return g.variable() + "=" + g.word() }},
		{"prelude program", 4, false, func(g *grammar) string { return g.variable() + "=" + g.one("touch", "rm", "ls", "echo", "cat") }},
		set("set -e", "set -e"), set("set -eu", "set -euo pipefail"), set("noglob", "set -f"), set("noclobber", "set -C"),
		set("positional", "set -- touch p q"), set("extglob", "shopt -s extglob nullglob"), set("globstar", "shopt -s globstar"),
		set("IFS", "IFS=,"), set("posix", "set -o posix"), set("cd", "cd src"), set("cd away", "cd /tmp && cd -"), set("pushd", "pushd build"),
		set("umask", "umask 077"), set("export", "export X=1"), set("keyword", "set -k"), set("noexec", "set -n"), set("lastpipe", "shopt -s lastpipe"),
		set("exec", "exec 2>/dev/null"), set("exec out", "exec >o.txt"), set("exec fd", "exec 3>o3"), set("ulimit", "ulimit -c 0"),
		set("unset", "unset -f ls; unalias -a"), set("xtrace", "set -x"), set("readonly", "readonly R=1"), set("enable", "enable -n echo test"),
	}
}

// hostile are lines whose harm comes from how bash evaluates.
func hostile() []production {
	var all []production
	for _, text := range []string{
		`x='a[$(‹›)]'; echo $((x))`, `x='a[$(‹›)]'; ((x))`, `x='a[$(‹›)]'; let x+1`, `x='a[$(‹›)]'; [[ $x -eq 0 ]]`, `x='a[$(‹›)]'; [[ x -gt 1 ]]`,
		`x='a[$(‹›)]'; declare -i y=x`, `x='a[$(‹›)]'; y=abc; echo ${y:x}`, `x='a[$(‹›)]'; echo ${y[x]}`, `x='a[$(‹›)]'; y[x]=1`,
		`x='a[$(‹›)]'; [ -v "$x" ]`, `x='a[$(‹›)]'; test -v "$x"`, `x='a[$(‹›)]'; [[ -v $x ]]`, `x='a[$(‹›)]'; printf -v "$x" 1`, `x='a[$(‹›)]'; read "$x" <<< 1`,
		`x='a[$(‹›)]'; unset "$x"`, `x='a[$(‹›)]'; declare -n r=$x; r=1`, `x='a[$(‹›)]'; declare -n r=$x; echo $r`, `x='a[$(‹›)]'; echo ${!x}`, `x='a[$(‹›)]'; for ((i=x;0;)); do :; done`,
		`x='a[$(‹›)]'; wait -n -p "$x"`, `x='a[$(‹›)]'; mapfile -t "$x" <<< 1`, `x='a[$(‹›)]'; getopts a "$x" -a`, `x='a[$(‹›)]'; declare "$x"=1`, `x='a[$(‹›)]'; export "$x"`,
		`x='a[$(‹›)]'; s=$((1+x))`, `x='a[$(‹›)]'; echo $[x]`, `x='a[$(‹›)]'; echo ${a:0:x}`, `x='a[$(‹›)]'; local=1; f() { local -i z=$x; }; f`, `x='a[$(‹›)]'; typeset -i z; z=$x`,
		`x='a[$(‹›)]'; (( y = x ? 1 : 2 ))`, `x='a[$(‹›)]'; echo {1..$x}`, `x='a[$(‹›)]'; return $x`, `x='a[$(‹›)]'; exit $x`, `x='a[$(‹›)]'; shift $x`, `x='a[$(‹›)]'; test "$x" -eq 1`,
		`read x < evil.txt; echo $((x))`, `x=$(cat evil.txt); [[ $x -eq 1 ]]`, `read -r n < evil.txt; ((n++))`, `mapfile -t l < evil.txt; echo $((l[0]))`, `while read n; do echo $((n)); done < evil.txt`,
		`x='$(‹›)'; echo ${x@P}`, `x='$(‹›)'; echo "${x@P}"`, `PS4='$(‹›)'; set -x; :`, `PS4='$(‹›) ' bash -xc :`, `export PS4='$(‹›)'; bash -x -c true`, `x='‹›'; $x`, `x='‹›'; eval $x`, `x='‹›'; "$x"`,
		`x='‹›'; bash -c "$x"`, `x='‹›'; sh <<< "$x"`, `export x='‹›'; bash -c 'eval "$x"'`, `mapfile -C '‹› #' -c 1 l < a.txt`, `readarray -C "touch" -c 1 l < a.txt`,
		`hash -p /usr/bin/touch ls; ls p`, `hash -p ./script.sh cat; cat a.txt`, `command_not_found_handle() { ‹›; }; nosuch`, `command_not_found_handle() { "$@"; touch p; }; nosuch x`,
		`BASH_ENV=lib.sh bash -c :`, `BASH_ENV=./lib.sh sh -c :`, `ENV=lib.sh sh -ic :`, `export BASH_ENV=lib.sh; bash -c true`, `BASH_ENV='$(‹›)' bash -c :`, `env BASH_ENV=lib.sh bash -c :`,
		`PATH=.:$PATH; script.sh`, `PATH=. script.sh`, `PATH=/tmp/proj:$PATH ls`, `cp script.sh ls; PATH=.:$PATH; ls`, `export PATH=$PWD:$PATH; script.sh`, `env PATH=. script.sh`, `PATH=; ls`, `unset PATH; ls`,
		`f() { ‹›; }; export -f f; bash -c f`, `ls() { ‹›; }; export -f ls; bash -c 'ls'`, `env 'BASH_FUNC_ls%%=() { ‹›; }' bash -c ls`, `export 'BASH_FUNC_echo%%=() { ‹›; }'; bash -c 'echo hi'`,
		`cd() { ‹›; }; cd src`, `echo() { ‹›; }; echo hi`, `test() { ‹›; }; test -f a.txt`, `builtin() { ‹›; }; builtin echo x`, `unset() { ‹›; }; unset x`, `function [ { ‹›; }; [ -f a.txt ]`, `exit() { ‹›; }; exit`,
		`trap '‹›' DEBUG; :`, `trap '‹›' ERR; false`, `trap '‹›' EXIT`, `trap '‹›' USR1; kill -USR1 $$`, `trap "$x ‹›" 0`, `(trap '‹›' EXIT)`, `f() { trap '‹›' RETURN; }; f`,
		`PROMPT_COMMAND='‹›'; :`, `PROMPT_COMMAND='‹›' bash -ic :`, `compgen -W '$(‹›)'`, `compgen -C '‹›'`, `compgen -F f; f() { ‹›; }`, `complete -C '‹›' x; compgen -o default x`, `complete -W '$(‹›)' x`,
		`alias x='‹›'; eval x`, `shopt -s expand_aliases; alias x='‹›'; eval x`, "shopt -s expand_aliases\nalias ls='‹›'\nls", "alias ls='‹›'\nls", `BASH_ALIASES[x]='‹›'; shopt -s expand_aliases; eval x`, `bash -O expand_aliases -c $'alias x="‹›"\nx'`,
		`enable -f ./x.so y`, `exec -a ls touch p`, `exec -c touch p`, `builtin eval '‹›'`, `command eval '‹›'`, `builtin . ./lib.sh`, `command -p touch p`, `command -v touch`, `command -V ‹›`, `type ‹›`, `builtin command ‹›`,
		`${x:=touch} p`, `${x-touch p}`, `${x:+touch} p; x=1; ${x:+touch p}`, `: ${x:=$(‹›)}`, `: ${x:?$(‹›)}`, `echo ${x:-$(‹›)}`, `echo ${x/a/$(‹›)}`, `x=ab; echo ${x/b/$(‹›)}`, `echo ${x%%$(‹›)}`, `echo ${x#$(‹›)}`, `echo "${x^^$(‹›)}"`,
		`y=x; x='‹›'; ${!y}`, `echo ${!BASH*}`, `echo "${a[$(‹›)]}"`, `a[$(‹›)]=1`, `declare a[$(‹›)]=1`, `declare -A h; h[$(‹›)]=1`, `declare -A h; k='$(‹›)'; h[$k]=1`, `declare -A h; k='x$(‹›)'; ((h[$k]++))`, `declare -A h; k=']; ‹›'; echo $((h[$k]))`,
		`echo $(( $(‹›) ))`, `echo $((1 + $(echo 1)))`, `echo $(( a[$(‹›)0] ))`, `(( $(‹›) ))`, `let 'a[$(‹›)]=1'`, `let "x=$(echo 1)"`, `[[ $(‹›) ]]`, `[[ -n $(‹›) && a == b ]]`, `[[ a =~ $(‹›) ]]`, `[[ 'a[$(‹›)]' -eq 0 ]]`, `[ $(‹›) ]`, `test -n "$(‹›)"`,
		`printf '%d\n' 'a[$(‹›)]'`, `printf -v 'a[$(‹›)]' x`, `read 'a[$(‹›)]' <<< 1`, `unset 'a[$(‹›)]'`, `[ -v 'a[$(‹›)]' ]`, `declare -i n='a[$(‹›)]'`, `declare -n r='a[$(‹›)]'; r=1`, `export 'a[$(‹›)]=1'`, `local 'a[$(‹›)]=1'`, `readonly 'a[$(‹›)]=1'`, `getopts x 'a[$(‹›)]' -x`, `mapfile 'a[$(‹›)]' <<< x`, `wait -p 'a[$(‹›)]' -n`, `test -v 'a[$(‹›)]'`, `[[ -v 'a[$(‹›)]' ]]`, `[ 'a[$(‹›)]' -eq 1 ]`, `read -a 'a[$(‹›)]' <<< x`,
		`declare -a 'a=($(‹›))'`, `declare 'a=($(‹›))'`, `declare -A 'a=([x]=$(‹›))'`, `x='($(‹›))'; declare -a a="$x"`, `typeset -a a='($(‹›))'`, `export a='($(‹›))'`, `f() { local -a a='($(‹›))'; }; f`, `x='a=($(‹›))'; declare -a "$x"`,
		`‹› <(‹›)`, `cat <(‹›)`, `cat < <(‹›)`, `echo x > >(‹›)`, `echo x | tee >(‹›)`, `: > >(‹›)`, `diff <(‹›) <(cat a.txt)`, `exec 3< <(‹›); cat <&3`, `x=<(‹›)`, `echo "<(touch no)"`,
		"echo `‹›`", "echo \"`‹›`\"", "echo `echo \\`‹›\\``", `echo $(‹›)`, `echo "$(‹›)"`, `echo '$(touch no)'`, `echo \$(touch no)`, `echo "\$(touch no)"`, `echo $'$(touch no)'`, `echo $"$(‹›)"`, `echo ${x:-'$(touch no)'}`, `echo "${x:-'$(‹›)'}"`, `: "$(echo "$(‹›)")"`, `echo $(<a.txt)`, `x=$(<cmds.txt); $x`, `eval "$(<cmds.txt)"`, `eval $(cat a.txt)`, `$(cat cmds.txt)`, `$(echo ‹›)`, "`cat cmds.txt`", `"$(cat cmds.txt)"`,
		`{touch,p}`, `{‹›,}`, `t{ou,xx}ch p`, `to''uch p`, `t\ouch p`, `$'\x74ouch' p`, `$'\164ouch' p`, `$'to\u0075ch' p`, `"to"'uc'h p`, `tou$()ch p`, `t${x}ouch p`, `/usr/bin/t?uch p`, `/usr/bin/touc[h] p`, `/bin/tou* p`, `./scr*.sh`, `$(echo t)ouch p`, `$BASH -c '‹›'`, `${SHELL} -c '‹›'`, `$0 -c '‹›'`, `~/../bin/touch p`, `touch$IFS'p'`, `touch${IFS}p`, `X=touch; ${X} p`, `X="touch p"; $X`, `a=tou b=ch; $a$b p`, `_=touch; $_ p`, `: touch; $_ p`, `set -- touch p; "$@"`, `set touch p; $*`, `set -- p; touch $1`, `a=(touch p); ${a[@]}`, `x=h; touc$x p`, `echo touch p; !!`, `BASH_CMDS[ls]=/usr/bin/touch; ls p`, `history -s ‹›; fc -s`,
		`IFS=x; c=touchxp; $c`, `‹›;`, `;‹›`, `‹› &&`, `‹›||:`, `:||‹›`, `:&&‹›`, `true; ‹›`, `: # ‹›`, `: #`, `‹› #x`, `echo a#; ‹›`, `echo 'a' # '; ‹›`, "echo x \\\n; ‹›", "to\\\nuch p", "echo x # \\\n‹›", "#\n‹›", "echo a\r\n‹›", "ca\u00e9 x; ‹›", "echo\u00a0x; ‹›", "\t‹›", "echo \"a\nb\"; ‹›", "cat <<A <<B\n$(‹›)\nA\nx\nB", "cat <<'A'\n$(touch no)\nA\n‹›", "cat <<A\n\\$(touch no)\nA", "cat <<\"A B\"\n$(touch no)\nA B\n‹›", "cat <<A\nunfinished $(‹›)", "cat <<A; ‹›\nx\nA", "f() { cat <<A\n$(‹›)\nA\n}; f",
		`git -c core.fsmonitor=./script.sh status`, `git -c alias.x='!‹›' x`, `git -c core.pager='touch p' -p log`, `git -c diff.external=./script.sh diff`, `GIT_EXTERNAL_DIFF=./script.sh git diff`, `GIT_PAGER='touch p' git -p log`, `git --exec-path=. status`, `git --git-dir=x status`, `git grep -Otouch a`, `git diff --ext-diff`, `git show --textconv v1:a.txt`, `git ls-remote ext::'touch% p'`, `git clone ext::'sh% -c% touch% p' d`, `git fetch ext::./script.sh`, `GIT_SSH_COMMAND='touch p' git fetch ssh://h/x`, `git rebase -x '‹›' HEAD~0`, `git bisect run touch p`, `git submodule foreach '‹›'`, `git st`, `git config alias.z '!‹›'; git z`, `EDITOR='touch p' git commit --allow-empty`, `GIT_EDITOR='touch p #' git commit --allow-empty`, `git -c core.hooksPath=. commit --allow-empty -m x`, `git difftool -y -x 'touch p' HEAD`, `git filter-branch --tree-filter '‹›' HEAD`, `git -C src status`, `git --no-pager -c core.fsmonitor= status`, `GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=core.fsmonitor GIT_CONFIG_VALUE_0=./script.sh git status`, `git interpret-trailers --trailer seen:x a.txt`, `git log --format=%G?`, `git archive HEAD`, `git -c gpg.program=./script.sh verify-tag v1`, `git var GIT_EDITOR`, `git help status`, `git upload-pack .`, `git send-pack . main`, `git cat-file --textconv HEAD:a.txt`, `git cat-file --filters HEAD:a.txt`, `git blame a.txt`, `git check-attr -a a.txt`, `git hash-object a.txt`, `git hash-object -w a.txt`, `git stash show -p`, `git diff --no-ext-diff --no-textconv`, `git difftool`, `git mergetool`,
		`sed '1e touch p' a.txt`, `sed -e 'e touch p' a.txt`, `sed 's/a/touch p/e' a.txt`, `sed 'w p' a.txt`, `sed -n 's/a/b/w p' a.txt`, `sed --expression='1w p' a.txt`, `sed -f cmds.txt a.txt`, `sed -ni.bak p a.txt`, `sed '$!N;w p' a.txt`, `sed --sandbox 'w p' a.txt`, `sed -s 'W p' a.txt`,
		`awk 'BEGIN{system("touch p")}'`, `awk '{print > "p"}' a.txt`, `awk '{print | "touch p"}' a.txt`, `awk 'BEGIN{"touch p" | getline}'`, `awk -f cmds.txt`, `awk '{ print >> "p" }' a.txt`, `awk '$1 > 2' a.txt`, `awk '{print ($1 > 2)}' a.txt`, `awk 'BEGIN { c = "touch p"; system(c) }'`, `awk -v c='touch p' 'BEGIN { system(c) }'`, `gawk -i inplace '{print}' a.txt`, `gawk '@load "filefuncs"; BEGIN{}'`, `awk 'BEGIN { printf "x" > "/dev/stderr" }'`, `gawk 'BEGIN { "/inet/tcp/0/1.2.3.4/80" |& getline }'`,
		`find . -name '*.txt' -exec touch p \;`, `find . -maxdepth 1 -execdir touch {}x +`, `find . -ok touch p \;`, `find . -fprint p`, `find . -fls p`, `find empty -delete`, `find . -exec sh -c '‹›' \; -quit`, `find . -name a.txt -exec sh -c 'touch "$1"x' _ {} \;`, `find . -maxdepth 1 -type f -exec {} \;`, `find . -fprintf p %p`, `find -files0-from a.txt`,
		`xargs touch < names.txt`, `cat cmds.txt | xargs -I% sh -c %`, `echo p | xargs touch`, `xargs -a names.txt -n1 touch`, `cat cmds.txt | xargs`, `cat cmds.txt | xargs env`, `echo 'touch p' | xargs -I{} bash -c '{}'`, `printf 'a\0' | xargs -0 -I{} touch {}`, `xargs -a cmds.txt nice`, `ls | xargs -P2 -L1 echo`, `xargs --arg-file=cmds.txt time`, `echo x | xargs -t -- touch`, `cat cmds.txt | xargs -n2 command`,
		`env -S'touch p'`, `env -S 'bash -c "touch p"'`, `env -vS 'touch p'`, `env --split-string='touch p'`, `env -i touch p`, `env - touch p`, `env -u X touch p`, `env -C src touch p`, `env -iS'touch ${X}p'`, `env X=1 Y=2 -- touch p`, `env -a ls touch p`, `env env env touch p`, `env -S 'X=1 touch' p`, `env '-S touch\_p'`, `env --chdir=src touch p`, `env LD_PRELOAD=./x.so ls`, `LD_PRELOAD=./x.so ls`, `LD_LIBRARY_PATH=. cat a.txt`, `PAGER='touch p' man ls`, `LESSOPEN='|touch p' less a.txt`,
		`sort -o p a.txt`, `sort -op a.txt`, `sort --output=p a.txt`, `sort --compress-program=touch -S1b a.txt a.txt a.txt`, `sort --files0-from=a.txt`, `tee p < a.txt`, `uniq a.txt p`, `split -l1 a.txt`, `split --filter='touch p' a.txt`, `xxd a.txt p`, `xxd -r - p < a.txt`, `cut -d, -f1 a.txt > p`, `base64 a.txt`, `tail -n1 a.txt`, `date -s 2020-01-01`, `tsort a.txt`, `diff -u a.txt b.txt`, `diff --to-file=a.txt b.txt`, `grep -r --include='*.py' import .`, `grep -f evil.txt a.txt`, `ls --color=auto`, `stat -c %s a.txt`, `timeout 5 touch p`, `timeout --foreground -k1 5 touch p`, `timeout -s KILL 5 sh -c 'touch p'`, `nice touch p`, `nice -n5 touch p`, `nice -5 touch p`, `nice -n 5 -- touch p`, `nohup touch p`, `setsid -w touch p`, `setsid -f touch p`, `stdbuf -oL touch p`, `stdbuf -o L -e0 touch p`, `ionice -c 3 touch p`, `taskset 1 touch p`, `taskset -c 0 touch p`, `chrt -o 0 touch p`, `flock p touch q`, `flock p -c 'touch q'`, `flock -n 9 9>p`, `expand -t4 a.txt`, `mktemp`, `mktemp -u`, `mktemp -p src`, `mkfifo p`, `install -m 755 a.txt p`, `truncate -s0 a.txt`, `cp /dev/null a.txt`, `ln -sf a.txt p`, `mv -t src a.txt`, `cp -t src a.txt b.txt`, `cp -r src p`, `mkdir -p p/q`, `rmdir empty`, `unlink a.txt`, `chmod -x script.sh`, `touch -r a.txt b.txt`, `expr 1 + 1`, `test -w a.txt`, `printenv`, `seq 3`, `time touch p`, `time -p touch p`, `! touch p`, `coproc touch p`, `coproc X { touch p; }; wait`, `wait; touch p`, `busybox touch p`, `script -c 'touch p' /dev/null`, `watch -n1 touch p`,
		`pushd /tmp >/dev/null && touch p && popd`, `cd src && touch p`, `cd src; touch ../p`, `(cd src; touch p); touch q`, `cd "$HOME" && touch p`, `cd; touch p`, `cd - ; touch p`, `CDPATH=src; cd empty`, `cd ~ && > p`, `OLDPWD=src; cd -; touch p`, `HOME=src; cd; touch p`, `HOME=src; touch ~/p`, `touch ~+/p ~-/q`, `cd src && { cd ..; touch p; }`, `cd nosuch; touch p`, `cd src || exit; touch p`, `cd build & touch p`, `cd src | touch p`,
	} {
		all = append(all, production{"hostile " + text, 1, false, func(g *grammar) string {
			return strings.ReplaceAll(text, "‹›", g.one("touch p", "touch p", "touch p", "rm -rf build", "> q", "ls", "touch p >&2"))
		}})
	}
	return all
}

// wrappers are programs that start another one.
func wrappers() []production {
	var all []production
	for _, text := range []string{
		"env ‹›", "env A=1 ‹›", "env -i ‹›", "env -u A ‹›", "env -S «»", "nice ‹›", "nice -n 5 ‹›", "timeout 5 ‹›", "timeout -k 1 5s ‹›", "nohup ‹›",
		"setsid ‹›", "stdbuf -oL ‹›", "command ‹›", "command -p ‹›", "command -- ‹›", "exec ‹›", "exec -a x ‹›", "builtin ‹›", "\\‹›", "ionice -c3 ‹›", "chrt -o 0 ‹›", "taskset -c 0 ‹›",
		"xargs ‹› < FILE", "echo a | xargs ‹›", "echo a | xargs -I{} ‹› {}", "ls | xargs -n1 ‹›", "xargs -a FILE -- ‹›", "xargs sh -c «» < FILE", "find . -maxdepth 1 -exec ‹› {} \\;", "find . -maxdepth 1 -exec ‹› {} +",
		"find src -type f -exec sh -c «» \\;", "find . -maxdepth 1 -name '*.txt' -execdir ‹› \\;", "sudo ‹›", "sudo -u x ‹›", "doas ‹›", "ssh host «»", "ssh host ‹›", "flock l ‹›", "flock l -c «»", "time ‹›", "env nice timeout 3 ‹›", "env -- ‹›",
		"su -c «»", "watch «»", "script -c «»", "parallel ‹› ::: a", "busybox sh -c «»", "docker exec c ‹›", "docker run --rm i sh -c «»", "kubectl exec p -- ‹›", "strace -f ‹›", "chroot . ‹›", "nsenter -t 1 -m ‹›", "systemd-run ‹›", "bash -c «»", "sh -c «»", "python3 -c «»", "perl -e «»",
	} {
		all = append(all, production{"wrapper " + text, 1, false, func(g *grammar) string {
			command := g.simple()
			if g.depth < maxDepth && g.chance(15) {
				command = g.pick(wrappers())
			}
			text := strings.ReplaceAll(text, "FILE", g.file())
			if strings.Contains(text, "«»") {
				return strings.ReplaceAll(text, "«»", g.one(quote(command), doubleQuote(command)))
			}
			return strings.ReplaceAll(text, "‹›", command)
		}})
	}
	return all
}

// filters stand behind a pipe.
func filters() []production {
	var all []production
	for _, text := range []string{"cat", "sort", "sort -u", "head -n 2", "tail -1", "grep -v x", "wc -l", "tr a-z A-Z", "cut -d' ' -f1", "uniq -c", "sed s/a/b/", "awk '{print $1}'",
		"tee NEW", "tee -a NEW", "xargs", "xargs echo", "xargs touch", "sh", "bash", "while read -r l; do echo \"$l\"; done", "{ read x; echo $x; }", "(cat)", "less", "python3", "jq .", "base64", "od -c", "sort -o NEW", "dd of=NEW", "read v"} {
		all = append(all, production{"filter", 1, false, func(g *grammar) string { return strings.ReplaceAll(text, "NEW", g.fresh()) }})
	}
	return all
}

// simple is a program with arguments.
func (g *grammar) simple() string {
	text := g.one(commands()...)
	for _, place := range []struct {
		mark string
		fill func() string
	}{
		{"FILE", g.file}, {"NEW", g.fresh}, {"DIR", g.folder}, {"WORD", g.word}, {"VAR", g.variable},
	} {
		for strings.Contains(text, place.mark) {
			text = strings.Replace(text, place.mark, place.fill(), 1)
		}
	}
	if g.chance(8) {
		program, rest, _ := strings.Cut(text, " ")
		text = strings.TrimSpace(g.disguised(program) + " " + rest)
	}
	return text
}

// disguised writes a program's name in another way.
func (g *grammar) disguised(name string) string {
	g.made["disguise"]++
	if len(name) < 2 || strings.ContainsAny(name, `'"\$[`) {
		return name
	}
	head, tail := name[:1], name[1:]
	return g.one(
		"'"+name+"'", `"`+name+`"`, `\`+name, head+`\`+tail, head+"''"+tail, head+`""`+tail, "'"+head+"'"+tail, "$'"+name+"'",
		fmt.Sprintf(`$'\x%02x%s'`, head[0], tail), fmt.Sprintf(`$'\%03o%s'`, head[0], tail), "/usr/bin/"+name, "/bin/"+name, "/tmp/bin/"+name,
		"$(echo "+name+")", "${nosuch:-"+name+"}", "{"+name+",--}", "x="+name+"; $x", head+"${nosuch}"+tail, head+"$()"+tail, "/bin/../usr/bin/"+name,
		"`echo "+name+"`", "\""+head+"\""+tail, "command "+name, head+"\\\n"+tail)
}

// commands are what agents run, with places to fill.
func commands() []string {
	return []string{
		"ls", "ls -la DIR", "ls WORD", "cat FILE", "cat FILE WORD", "cat -n -- FILE", "head -n 3 FILE", "head -c 5 FILE", "tail -n 2 FILE", "wc -l FILE", "sort FILE", "sort -u -o NEW FILE", "sort -k2 FILE WORD", "uniq FILE", "uniq FILE NEW",
		"cut -d, -f1 FILE", "tr a b", "paste FILE FILE", "comm FILE FILE", "diff FILE FILE", "cmp FILE FILE", "nl FILE", "tac FILE", "rev FILE", "od -c FILE", "base64 FILE", "sha256sum FILE", "md5sum -c FILE", "stat FILE", "du -sh DIR", "basename WORD", "dirname WORD", "realpath FILE",
		"grep -n WORD FILE", "grep -rn WORD DIR", "grep -E 'a|b' FILE", "grep -l x -r .", "sed -n 1,3p FILE", "sed s/a/b/g FILE", "sed -i s/a/b/ FILE", "sed -i.bak -e 1d FILE", "sed -n '/x/w NEW' FILE", "sed -E 's/(a)/\\1/' FILE", "awk '{print $1}' FILE", "awk -F, 'NR>1{print $2}' FILE", "awk '{print > \"NEW\"}' FILE", "awk 'BEGIN{system(\"touch NEW\")}'",
		"find DIR -name '*.txt'", "find DIR -type f -print0", "find DIR -maxdepth 1 -newer FILE", "find DIR -name x -delete", "find DIR -fprint NEW", "find DIR -exec cat {} +", "find . -maxdepth 1 -name WORD",
		"echo WORD", "echo -n WORD WORD", "echo -e 'a\\tb'", "printf '%s\\n' WORD", "printf WORD", "printf -v VAR %s WORD", "printf '%d' WORD", "true", "false", ":", ": WORD", "pwd", "date", "id", "whoami", "uname -a", "env", "printenv PATH", "seq 3", "expr 1 + 2", "sleep 0", "test -f FILE", "test WORD = WORD", "[ -d DIR ]", "[ WORD = x ]", "[ -n WORD -a -f FILE ]",
		"touch NEW", "touch NEW NEW", "touch -c NEW", "touch -- WORD", "mkdir NEW", "mkdir -p NEW/sub", "rmdir NEW", "rmdir empty", "cp FILE NEW", "cp -r DIR NEW", "cp -a FILE DIR", "mv FILE NEW", "mv -f FILE DIR", "ln -s FILE NEW", "ln -sfn DIR NEW", "ln FILE NEW", "chmod +x FILE", "chmod 600 FILE", "chmod -R u+w DIR", "truncate -s 0 FILE", "install -D FILE NEW", "tee NEW", "tee -a FILE", "mktemp", "mktemp -d", "unlink FILE", "split -l 1 FILE NEW", "mkfifo NEW",
		"rm FILE", "rm -rf DIR", "rm -f -- WORD", "dd if=FILE of=NEW", "shred -u FILE", "kill -0 $$", "kill -l", "pkill -f WORD", "killall x", "systemctl restart x", "chown user FILE",
		"git status", "git status --short", "git log --oneline -5", "git log -p -1", "git diff", "git diff --stat", "git diff HEAD -- FILE", "git show HEAD", "git show HEAD:a.txt", "git branch", "git branch -a", "git branch NEW", "git branch -D feature", "git tag", "git tag -l", "git remote -v", "git rev-parse HEAD", "git ls-files", "git blame FILE", "git grep -n WORD", "git add FILE", "git add -A", "git commit -m WORD", "git commit -am x", "git checkout -b NEW", "git checkout -- FILE", "git checkout feature", "git switch feature", "git restore FILE", "git reset --hard", "git reset HEAD FILE", "git clean -fd", "git stash", "git stash list", "git stash drop", "git push", "git push --force origin main", "git fetch", "git pull", "git merge feature", "git rebase main", "git config --get user.name", "git config user.name x", "git init NEW", "git clone . NEW", "git mv a.txt NEW", "git rm FILE", "git describe --tags", "git shortlog -sn HEAD", "git cat-file -p HEAD", "git reflog", "git worktree list", "git worktree add NEW", "git --no-pager diff", "git -C src log -1", "git rev-list --count HEAD", "git for-each-ref", "git ls-tree HEAD", "git archive -o NEW HEAD", "git apply FILE", "git format-patch -1", "git fsck", "git gc", "git notes list", "git bisect log", "git merge-base main feature", "git name-rev HEAD", "git check-ignore FILE", "git update-ref refs/heads/NEW HEAD", "git symbolic-ref HEAD", "git count-objects -v", "git diff --output=NEW", "git log --output=NEW", "git submodule status", "git cherry-pick feature", "git revert HEAD",
		"curl -fsSL https://example.com", "curl -o NEW https://example.com", "wget -q https://example.com/WORD", "ssh host ls", "scp FILE host:", "rsync -a DIR host:", "nc -z host 80", "ping -c1 host", "npm test", "npm install", "npx tsc", "pip install x", "python3 FILE", "python3 -m pytest", "python3 -c 'print(1)'", "node -e 1", "go test ./...", "go build", "cargo build", "make", "make -n", "docker ps", "kubectl get pods", "jq . FILE", "tar czf NEW DIR", "tar xf FILE", "unzip FILE", "gzip FILE", "less FILE", "man ls", "vim FILE", "ps aux", "which ls", "file FILE", "tree", "./script.sh", "./nosuch", "nosuch WORD", "bash script.sh", "sh ./script.sh WORD", ". ./lib.sh", "source lib.sh",
		"cd DIR", "cd -", "cd WORD", "pushd DIR", "popd", "dirs", "export VAR=WORD", "export VAR", "declare VAR=WORD", "declare -i VAR=WORD", "declare -r VAR=1", "declare -p", "declare -x VAR", "typeset VAR", "readonly VAR=1", "unset VAR", "unset -f f", "local VAR", "set", "set -- WORD WORD", "set +x", "shift", "shopt -s nullglob", "alias", "unalias -a", "type ls", "command -v ls", "hash", "hash -r", "ulimit -a", "umask", "times", "jobs", "wait", "trap", "let VAR=1+2", "let VAR++", "((VAR+=1))", "((1 > 2))", "[[ -f FILE ]]", "[[ WORD == a* ]]", "[[ WORD =~ ^a ]]", "[[ $VAR -eq 1 ]]", "[[ -v VAR ]]", "read VAR", "read -r VAR < FILE", "read -a VAR <<< WORD", "mapfile -t VAR < FILE", "getopts ab VAR", "eval", "exec", "exit", "exit 0", "return", "break", "help cd", "history", "compgen -b", "bind -p", "enable", "caller", "logout", "suspend -f", "disown", "fg", "builtin echo WORD", "VAR=WORD", "VAR+=WORD", "VAR[0]=WORD", "VAR=(WORD WORD)",
	}
}

func (g *grammar) file() string {
	return g.one("a.txt", "b.txt", "README.md", "data.csv", "names.txt", "evil.txt", "cmds.txt", "'file with space.txt'", "file\\ with\\ space.txt", "src/app.py", "./a.txt", "current", "/tmp/proj/a.txt", "\"$HOME/.bashrc\"", "~/.bashrc", "/etc/passwd", ".env", "*.txt", "logs/app.log", "untracked.txt", ".git/config", "nosuch.txt", "$PWD/a.txt", "-")
}

func (g *grammar) fresh() string {
	return g.one("n1", "n2", "out.txt", "src/n3", "./n4", "/tmp/n5", "'n 6'", "~/n7", "n8", "o.log", "/etc/n9", "$TMPDIR/n10", "../n11", "build/n12", ".git/hooks/pre-commit", "n{13,14}", "\"n15\"")
}

func (g *grammar) folder() string {
	return g.one(".", "src", "build", "logs", "./src/", "/tmp", "empty", "..", "\"$PWD\"", "~", "/etc/ssl/private", "nosuch", "src build", "-- src")
}

func (g *grammar) variable() string {
	return g.one("x", "y", "v", "X", "n", "HOME", "PATH", "arr", "_a")
}

func (g *grammar) words(low, high int) string {
	var list []string
	for range low + g.rng.IntN(high-low+1) {
		list = append(list, g.word())
	}
	return strings.Join(list, " ")
}

func (g *grammar) word() string { return g.pick(wordKinds()) }

func wordKinds() []production {
	return []production{
		{"literal", 30, false, func(g *grammar) string {
			return g.one("a", "b", "x1", "foo", "a.txt", "src", "-n", "--flag", "key=value", "1", "42", "n.n", "%s", "@", "+", "a,b", "/tmp/proj/b.txt", "Größe", "'", "]")
		}},
		{"single", 8, false, func(g *grammar) string {
			return g.one("'a b'", "''", "'$(touch no)'", "'`touch no`'", "'*'", "'a;b'", "'x\ny'", "'\\'", "'a[$(touch p)]'")
		}},
		{"double", 8, true, func(g *grammar) string {
			return `"` + g.one("a b", "", g.expansion(), "x "+g.expansion()+" y", "\\$x", "it's", "a\\\\b", "a!b") + `"`
		}},
		{"ansi-c", 4, false, func(g *grammar) string {
			return g.one(`$'a\nb'`, `$'\x61'`, `$'it\'s'`, `$'\u00e9'`, `$'\t'`, `$'\0'`, `$'a\cAb'`, `$'\e[0m'`, `$'$(touch no)'`, `$"x"`)
		}},
		{"escaped", 4, false, func(g *grammar) string {
			return g.one(`a\ b`, `\*`, `\$x`, `\;`, `\'`, `\"`, "\\`", `a\&b`, `\#`, `\~`)
		}},
		{"pieces", 4, false, func(g *grammar) string { return g.one(`a""b`, `a''b`, `"a"'b'c`, `x"$x"y`, `'a'$'b'`, `a"b c"d`) }},
		{"brace", 3, false, func(g *grammar) string {
			return g.one("{a,b}", "{1..3}", "n{1,2}.txt", "{a,{b,c}}", "{a..c}", "{1..6..2}", "a{,b}", "{a}", "{a,b", `{"x y",z}`, "{$x,b}", "{$(echo 1),2}")
		}},
		{"glob", 4, false, func(g *grammar) string {
			return g.one("*", "*.txt", "a?txt", "[ab].txt", "src/*", "**/*.py", "[!a]*", "./*.md", "*nosuch*", ".*", "[[:alpha:]]*", "@(a|b).txt")
		}},
		{"tilde", 2, false, func(g *grammar) string { return g.one("~", "~/n", "~root", "~+", "~-", "a~", "x=~/a", "~nobody/x") }},
		{"expansion", 24, true, (*grammar).expansion},
		{"process substitution", 3, true, func(g *grammar) string { return g.one("<(", "<(", ">(") + g.simple() + ")" }},
	}
}

// expansion is what begins with $ or a backquote.
func (g *grammar) expansion() string { return g.pick(expansionKinds()) }

func expansionKinds() []production {
	return []production{
		{"variable", 12, false, func(g *grammar) string {
			return "$" + g.one("x", "HOME", "PWD", "1", "@", "*", "#", "?", "$", "!", "-", "0", "_", "UID", "RANDOM", "nosuch", "IFS", "BASH_VERSION")
		}},
		{"braced variable", 3, false, func(g *grammar) string { return "${" + g.variable() + "}" }},
		{"parameter", 10, false, func(g *grammar) string {
			return g.one("${x:-d}", "${x-d}", "${x:=d}", "${x=d}", "${x:+d}", "${x+d}", "${#x}", "${x#a}", "${x##*/}", "${x%.txt}", "${x%%.*}", "${x/a/b}", "${x//a/b}", "${x/#a/b}", "${x/%a/b}", "${x:1}", "${x:1:2}", "${x: -1}", "${x^}", "${x^^}", "${x,}", "${x,,}", "${x@Q}", "${x@P}", "${x@U}", "${x@A}", "${x@a}", "${x@E}", "${!x}", "${!x*}", "${!x@}", "${x[0]}", "${x[@]}", "${x[*]}", "${#x[@]}", "${!x[@]}", "${x[@]:1:1}", "${x[-1]}", "${@:1}", "${*: -1}", "${#}", "${x:?gone}", "${1:-$2}")
		}},
		{"parameter with command", 4, true, func(g *grammar) string {
			return "${" + g.variable() + g.one(":-", "-", ":=", ":+", "#", "%", "/a/", ":?", "//x/") + g.substitution() + "}"
		}},
		{"arithmetic", 5, false, func(g *grammar) string {
			return g.one("$((1+2))", "$((x))", "$((x+1))", "$((x++))", "$((2**3))", "$((1<2?3:4))", "$[1+1]", "$((x=5))", "$((16#ff))", "$(( 'a' ))", "$((${#x}+1))", "$((RANDOM%2))", "$((a[0]))", "$(($x*2))", "$((y,z=1))")
		}},
		{"substitution", 8, true, (*grammar).substitution},
	}
}

func (g *grammar) substitution() string {
	if g.chance(20) {
		if inner := g.simple(); !strings.ContainsAny(inner, "`\\") {
			g.made["backquote"]++
			return "`" + inner + "`"
		}
	}
	if g.depth < maxDepth && g.chance(15) {
		return "$(" + g.statement() + "\n)"
	}
	return "$(" + g.simple() + ")"
}

func (g *grammar) assignment() string {
	return g.variable() + g.one("=", "=", "=", "+=", "[0]=") + g.one(g.word(), g.word(), "'a[$(touch p)]'", "touch", "")
}

// redirection is one redirection, or two.
func (g *grammar) redirection() string {
	text := g.one(">", ">", ">>", ">|", "2>", "&>", "&>>", ">&", "1>", "<>") + g.one("", " ") + g.fresh()
	switch g.rng.IntN(12) {
	case 0, 1:
		text = g.one("2>/dev/null", ">/dev/null", "&>/dev/null", "2>&1", ">&2", "</dev/null", "<&-", ">&-", "2>&-", "3>&1", "> /dev/stderr", "> /dev/stdout", "> /dev/fd/2", "> /dev/tty")
	case 2:
		text = "< " + g.file()
	case 3:
		text = g.one("> ", ">> ", "< ") + g.word()
	case 4:
		text = g.one("3< ", "{fd}> ", "{fd}< ", "3>> ", "9<> ") + g.fresh()
	case 5:
		text = g.one("> >(", "< <(", "2> >(") + g.simple() + ")"
	case 6:
		text = g.one("> /dev/tcp/127.0.0.1/80", "< /dev/udp/1.2.3.4/53", "<> /dev/tcp/host/80", "> /etc/passwd", "> /dev/sda", ">> ~/.bashrc", "> .git/config", "> /proc/self/comm")
	}
	g.made["redirection"]++
	if g.chance(20) {
		text += " " + g.one("2>&1", "2>/dev/null", "< a.txt", "3>n")
	}
	return text
}

func (g *grammar) condition() string {
	return g.one("true", "false", "[ -f "+g.file()+" ]", "[[ -n "+g.word()+" ]]", "test -d "+g.folder(), "((1))", "[[ $x == y* && -e a.txt ]]", "! grep -q a a.txt", "[ \"$x\" = y ]", "[[ $x -lt 3 ]]", "grep -q a "+g.file(), "command -v ls >/dev/null", "[[ a < b ]]", "[[ "+g.word()+" =~ a.*b ]]", "(( x > 1 ))", "[ -z \"$("+g.simple()+")\" ]")
}
