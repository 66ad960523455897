package reading

import (
	"strings"
	"testing"

	"vogt/internal/catalog"
	"vogt/internal/detail"
)

// flags writes effects as letters: r read-only, w writes, d destroys, n
// network, p privilege, x executes, o opaque.
func flags(r *Reading) string {
	if !r.ParseOK {
		return "bad"
	}
	if r.Effects.ReadOnly() {
		return "r"
	}
	out := ""
	for _, f := range []struct {
		effect detail.Effects
		letter string
	}{{detail.Writes, "w"}, {detail.Destroys, "d"}, {detail.Contacts, "n"}, {detail.Privileged, "p"}, {detail.Executes, "x"}, {detail.Opaque, "o"}} {
		if r.Effects.Has(f.effect) {
			out += f.letter
		}
	}
	return out
}

// Lines with what they do and start. "*" after the flags leaves room: at least
// these are set, and the line is not read-only.
var lines = []struct{ line, flags, programs string }{
	// Words.
	{`ls`, "r", "ls"},
	{`'l's "-"l`, "r", "ls"},
	{`l\s -la`, "r", "ls"},
	{`$'\x6cs' x`, "r", "ls"},
	{`$'l\163' x`, "r", "ls"},
	{`"r""m" x`, "wd", "rm"},
	{`r''m x`, "wd", "rm"},
	{`{rm,-rf,build}`, "wd", "rm"},
	{`{r,}m x`, "wd", "rm"}, // rm m x
	{`/bin/rm x`, "wd", "rm"},
	{`/bin/../bin/rm x`, "wd", "rm"},
	{`./rm x`, "wdx", "rm"},
	{`/tmp/ls`, "x", "ls"},
	{`r? x`, "o", "?"},
	{`[r]m x`, "o", "?"},
	{`~/bin/x y`, "x", "x"},
	{`rm${IFS}-rf${IFS}x`, "wd", "rm"},
	{`IFS=x; rm${IFS}y`, "o", "?"},
	{`a=ls; $a`, "o", "?"},
	{`$0`, "o", "?"},
	{`"" x`, "o", "?"},
	{"ls\r", "o", "ls\r"},
	{`echo {1..3} {a..c}`, "r", "echo"},
	{`echo {1..100000}`, "o", "echo"},
	{`echo "$(rm x)"`, "wd", "echo rm"},
	{"echo `rm x`", "wd", "echo rm"},
	{`echo "\$(rm x)" '$(rm x)'`, "r", "echo"},
	{`echo ${x:-$(rm y)}`, "wd", "echo rm"},
	{`echo ${x:=$(rm y)}`, "wd", "echo rm"},
	{`cat <(rm x) >(rm y)`, "wd", "cat rm rm"},
	{`x=$(rm y) ls`, "wd", "rm ls"},
	{"echo `echo \\`rm a\\``", "wd", "echo echo rm"},
	{"echo `echo \\`echo \\\\\\`rm a\\\\\\`\\``", "wd", "echo echo echo rm"},
	{"echo \"`echo \\\"a\\\"; rm b`\"", "wd", "echo echo rm"},

	// Lists and groups.
	{`true && rm x`, "wd", "true rm"},
	{`false || rm x`, "wd", "false rm"},
	{`ls; rm x & cat y`, "wd", "ls rm cat"},
	{`{ ls; } > f`, "w", "ls"},
	{`(cd /tmp && rm x)`, "wd", "cd rm"},
	{`! ls`, "r", "ls"},
	{`time ls`, "r", "ls"},
	{`if ls; then rm x; elif cat y; then :; else pwd; fi`, "wd", "ls rm cat : pwd"},
	{`case $x in a) rm x;; *) ls;; esac`, "wd", "rm ls"},
	{`while true; do rm x; done`, "wd", "true rm"},
	{`for f in a b; do rm $f; done`, "wd", "rm"},
	{`for f in a b; do cat "$f"; done`, "r", "cat"},
	{`coproc rm x`, "wd", "rm"},
	{`f() { rm x; }`, "r", ""},
	{`f() { rm "$1"; }; f y`, "wd", "rm"},
	{`f() { rm x; }; g() { f; }; g; ls`, "wd", "rm ls"},
	{`ls() { rm x; }; ls`, "wd", "rm"},
	{`ls() { rm x; }; command ls`, "r", "command ls"},
	{`f() { f | f & }; f`, "d", ""},
	{`f() { f; }; f`, "o", ""},
	{`alias l='rm x'`, "r", "alias"},
	{`alias ls='rm x'; ls`, "o", "alias ls"},
	{`shopt -s expand_aliases; alias ls='rm x'` + "\nls", "o", "shopt alias ls"},

	// Redirections.
	{`ls > f`, "w", "ls"},
	{`ls >> f`, "w", "ls"},
	{`ls 2>/dev/null >&2`, "r", "ls"},
	{`ls > /dev/null 2>&1`, "r", "ls"},
	{`ls &> f`, "w", "ls"},
	{`ls >& f`, "w", "ls"},
	{`ls 2>&1-`, "r", "ls"},
	{`ls > $f`, "w", "ls"},
	{`ls <> f`, "w", "ls"},
	{`> f`, "wd", ""},
	{`>> f`, "w", ""},
	{`: > f`, "wd", ":"},
	{`true > f`, "wd", "true"},
	{`ls > /etc/motd`, "wd", "ls"},
	{`date > /dev/shm/x`, "w", "date"},
	{`cat x > /dev/sda`, "wd", "cat"},
	{`cat < /dev/tcp/example.com/80`, "n", "cat"},
	{`exec 3<>/dev/tcp/example.com/80`, "n", "exec"},
	{`[[ a > b ]]`, "r", ""},
	{`[ a \> b ]`, "r", "["},
	{`[ a > b ]`, "w", "["},

	// Texts for shells.
	{`eval "rm x"`, "wd", "eval rm"},
	{`eval rm x`, "wd", "eval rm"},
	{`eval "$x"`, "o", "eval ?"},
	{`eval "ls $x"`, "o", "eval ls"},
	{`eval 'eval "rm x"'`, "wd", "eval eval rm"},
	{`bash -c 'rm x'`, "wd", "bash rm"},
	{`bash -c "ls; bash -c 'rm x'"`, "wd", "bash ls bash rm"},
	{`bash -c 'rm "$@"' _ x`, "wd", "bash rm"},
	{`bash -c "$x"`, "o", "bash ?"},
	{`bash -c "ls $x"`, "o", "bash ls"},
	{`sh -c 'cat "$1"' _ f`, "r", "sh cat"},
	{`sh -c 'unterminated "'`, "o", "sh ?"},
	{`echo rm x | sh`, "wd", "echo sh rm"},
	{`printf 'rm %s\n' x | sh`, "wd", "printf sh rm"},
	{`cat f | sh`, "x", "cat sh"},
	{`echo cm0K | base64 -d | sh`, "x", "echo base64 sh"},
	{`bash <<< "rm x"`, "wd", "bash rm"},
	{"bash <<'E'\nrm x\nE", "wd", "bash rm"},
	{"bash <<E | cat\nls $x\nE", "o", "bash cat ls"},
	{"cat <<E | sh\nrm x\nE", "wd", "cat sh rm"},
	{"cat > f <<'E'\nrm -rf /\nE", "w", "cat"},
	{"cat <<E\n$(rm x)\nE", "wd", "cat rm"},
	{"cat <<'E'\n$(rm x)\nE", "r", "cat"},
	{"cat <<A; cat <<B; rm x\n1\nA\n$(ls)\nB", "wd", "cat cat rm ls"},
	{`trap 'rm x' EXIT`, "wd", "trap rm"},
	{`trap "$x" EXIT`, "o", "trap ?"},
	{`trap - EXIT`, "r", "trap"},
	{`. ./x.sh`, "x", "."},
	{`source <(echo rm x)`, "wdx", "source echo rm"},

	// Wrappers.
	{`sudo rm x`, "wdp", "sudo rm"},
	{`sudo -u a env B=1 nice -n 5 timeout 3 rm x`, "wdp", "sudo env nice timeout rm"},
	{`env -S 'rm -f x' y`, "wd", "env rm"},
	{`env -iS "A=1 rm" x`, "wd", "env rm"},
	{`env -S 'rm $x'`, "o", "env"},
	{`env 'BASH_FUNC_ls%%=() { rm x; }' bash -c ls`, "xo", "env bash ls"},
	{`nohup rm x`, "wd", "nohup rm"},
	{`command rm x`, "wd", "command rm"},
	{`command -v rm`, "r", "command"},
	{`builtin echo rm`, "r", "builtin echo"},
	{`exec rm x`, "wd", "exec rm"},
	{`find . -exec rm {} +`, "wd", "find rm"},
	{`find . -exec grep x {} \;`, "r", "find grep"},
	{`find . -delete`, "wd", "find"},
	{`ls | xargs rm`, "wd", "ls xargs rm"},
	{`ls | xargs`, "r", "ls xargs echo"},
	{`ls | xargs -I{} sh -c 'rm {}'`, "wdo", "ls xargs sh rm"},
	{`ls | xargs sort`, "o", "ls xargs sort"}, // a name may be -o
	{`xargs "$x"`, "o", "xargs ?"},

	// What grammar does not show (bash manual, Shell Arithmetic and others).
	{`x='a[$(touch p)]'; echo $((x))`, "o", "echo"},
	{`echo $((x))`, "o", "echo"},
	{`x=5; echo $((x + 1))`, "r", "echo"},
	{`echo $((2 * 3)) $((0x1f)) $((16#ff))`, "r", "echo"},
	{`i=0; while [ $i -lt 3 ]; do i=$((i + 1)); done`, "r", "["},
	{`for ((i = 0; i < 3; i++)); do echo $i; done`, "r", "echo"},
	{`for ((i = 0; i < n; i++)); do echo $i; done`, "o", "echo"},
	{`((x))`, "o", ""},
	{`((x = 1, x++))`, "r", ""},
	{`let x=1`, "r", "let"},
	{`let "$x"`, "o", "let"},
	{`let 'a[$(rm b)]=1'`, "wdo", "let rm"},
	{`let "x = 3 > 2"`, "r", "let"},
	{`[[ $x -eq 0 ]]`, "o", ""},
	{`[[ 1 -eq 0 ]]`, "r", ""},
	{`[[ $x == y ]]`, "r", ""},
	{`[ "$x" -eq 0 ]`, "r", "["},
	{`[ -v "$x" ]`, "o", "["},
	{`[[ -v $x ]]`, "o", ""},
	{`[ -v x ]`, "r", "["},
	{`test -v 'a[$(rm x)]'`, "o", "test"},
	{`echo "${y:x}"`, "o", "echo"},
	{`echo "${y:1:2}"`, "r", "echo"},
	{`echo "${x@P}"`, "o", "echo"},
	{`echo "${x@Q}"`, "r", "echo"},
	{`echo "${!x}"`, "o", "echo"},
	{`echo "${a[x]}"`, "o", "echo"},
	{`echo "${a[0]} ${a[@]} ${#a[@]}"`, "r", "echo"},
	{`declare -A m; echo "${m[$k]}"`, "r", "declare echo"},
	{`a[$x]=1`, "o", ""},
	{`printf -v 'a[$(rm x)]' y`, "o", "printf"},
	{`printf -v "$x" y`, "o", "printf"},
	{`printf -v x y`, "r", "printf"},
	{`read 'a[$(rm x)]'`, "o", "read"},
	{`read "$x"`, "o", "read"},
	{`read -r x y`, "r", "read"},
	{`mapfile -t a`, "r", "mapfile"},
	{`mapfile -C 'rm x' -c 1 a`, "wd*", "mapfile rm"},
	{`declare -n r="$x"`, "o", "declare"},
	{`declare -i x="$y"`, "o", "declare"},
	{`declare -i x=5`, "r", "declare"},
	{`declare "$x"`, "o", "declare"},
	{`compgen -W '$(rm x)'`, "o", "compgen"},
	{`complete -C 'rm x' ls`, "o", "complete"},
	{`hash -p /bin/rm ls; ls x`, "o", "hash ls"},
	{`enable -f ./x.so y`, "o*", "enable"},
	{`PS4='$(rm x)'; set -x; ls`, "o", "set ls"},
	{`set -x; ls`, "r", "set ls"},
	{`command_not_found_handle() { rm x; }; nosuch`, "o*", "rm nosuch"},
	{`export -f f`, "o", "export"},
	{`unset 'a[$(rm x)]'`, "o", "unset"},

	// What the parser and bash read differently.
	{"ls # x \\\ntouch p", "o", "ls"},
	{"echo a \\\n b # x", "r", "echo"},
	{"echo \"${x:-'$(rm y)'}\"", "wdo", "echo rm"},
	{"cat <<E\n${x:-'$(rm y)'}\nE", "wdo", "cat rm"},
	{"echo \"${x%'a'}\"", "r", "echo"},
	{"echo ${x:-'$(rm y)'}", "r", "echo"},
	{`declare -a a='($(rm x))'`, "o", "declare"},
	{`x='($(rm y))'; typeset -a a="$x"`, "o", "typeset"},
	{`f() { local -a a='($(rm x))'; }; f`, "o", "local"},
	{`declare -a a=(x y)`, "r", "declare"},
	{`f() { local x="$1"; echo "$x"; }; f a`, "r", "local echo"},
	{`false && touch() { ls; }; touch p`, "w", "false ls touch"},
	{`if true; then f() { ls; }; else f() { rm x; }; fi; f`, "wd", "true ls rm"},
	{`touch() { :; } | cat; touch p`, "w", "cat touch"},
	{`touch() { :; }; unset -f touch; touch p`, "w", "unset touch"},
	{`touch() { :; }; unset touch; touch p`, "w", "unset touch"},
	{`env A=1 B=2 -- touch p`, "o", "env --"},
	{`f() rm x`, "bad", "?"},
	{`echo @(a|b)`, "bad", "?"},
	{`[[ x == @(a|b) ]]`, "r", ""},
	{"cat <<E\nx", "r", "cat"},
	{"sh <<E\nrm x", "wd", "sh rm"},

	// A declaration evaluates a text that it assigns to an array.
	{`declare -a x; declare x='($(rm p))'`, "o", "declare declare"},
	{`read -a x <<< 1; export x='($(rm p))'`, "o", "read export"},
	{`mapfile x < f; export x='($(rm p))'`, "o", "mapfile export"},
	{`if ls; then x=(); fi; export x='($(rm p))'`, "o", "ls export"},
	{`declare DIRSTACK='($(rm p))'`, "o", "declare"},
	{`export x='(venv)'; ls`, "r", "export ls"},

	// A name of a coprocess stands only before a compound command.
	{`coproc touch local p`, "o", ""},
	{`coproc touch export p; ls`, "o", "ls"},
	{`coproc ls -la`, "r", "ls"},
	{`coproc x { ls; }`, "r", "ls"},
	{`coproc x { rm p; }`, "wd", "rm"},

	// The parser leaves extended patterns as they stand; bash expands them.
	{`[[ a == !(a|$(rm x)) ]]`, "o", ""},
	{"shopt -s extglob\ncase x in @(a|`rm x`)) ls;; esac", "o", "shopt ls"},
	{"shopt -s extglob\necho @(a|$(rm x))", "o", "shopt echo"},
	{"shopt -s extglob\nls !(*.txt|a)", "r", "shopt ls"},
	{`shopt -s extglob; ls !(*.txt|a)`, "bad", "?"},
	{`[[ $x == +([0-9]) ]]`, "r", ""},
	{`[[ -n @(a|b) ]]`, "bad", "?"},

	// What is assigned to a variable of numbers is evaluated.
	{`declare -i x; x[0]='y[$(rm p)]'`, "o", "declare"},
	{`declare -i x; : ${x='y[$(rm p)]'}`, "o", "declare :"},
	{`x='y[$(rm p)]'; declare -i x; x+=1`, "o", "declare"},
	{`f(){ declare "$@"; }; f -i 'x=y[$(rm p)]'`, "o", "declare"},
	{`f(){ declare -gi "$1"; }; f x; x='y[$(rm p)]'`, "o", "declare"},
	{`declare -i x; x=5; x+=1`, "r", "declare"},
	{`f(){ local "$@"; ls; }; f a=1 b=2`, "r", "local ls"},

	// What the parser takes only in other words.
	{`((rm a); ls)`, "wdo", "rm ls"},
	{`((ls); (rm a))`, "wdo", "ls rm"},
	{`echo $((rm a); ls)`, "wdo", "echo rm ls"},
	{`x=$((ls) | wc -l); echo $((1+2))`, "o", "ls wc echo"},
	{`if !(grep -q x f); then rm y; fi`, "wdo", "grep rm"},
	{`! ! ls`, "o", "ls"},
	{`time ! ls; time -p ! rm x`, "wdo", "ls rm"},
	{`function f if true; then rm a; fi; f`, "wdo", "true rm"},
	{`function f ( ls ); f`, "o", "ls"},
	{`echo ((1))`, "bad", "?"},
	{`ls !(a)`, "bad", "?"},

	// Whether extended patterns are on when a text is parsed.
	{`bash -O extglob -c 'rm !(a)'`, "wd", "bash rm"},
	{`bash -c 'rm !(a)'`, "o", "bash ?"},
	{"shopt -s extglob\neval 'ls !(a)'", "r", "shopt eval ls"},
	{"shopt -s extglob\nshopt -u extglob\neval 'ls !(a)'", "o", "shopt shopt eval ?"},

	// sh reads what it gets on its standard input as sh.
	{`echo '[[ a > p ]]' | sh`, "o", "echo sh"},
	{"sh <<E\n[[ a || touch == p ]]\nE", "o", "sh"},
	{`echo '[[ a < b ]]' | bash`, "r", "echo bash"},
	{`echo 'ls -la && pwd' | sh`, "r", "echo sh ls pwd"},
	{`awk 'BEGIN { system("touch n{1,2}") }'`, "wo", "awk touch"},

	// Who may act as whom.
	{`tee /etc/sudoers.d/x < a`, "wp", "tee"},
	{`cp x /etc/sudoers.d/`, "wp", "cp"},
	{`sed -i s/a/b/ /etc/sudoers`, "wp", "sed"},

	// Patterns behind the last word that can start something.
	{`awk '{print $1}' *.txt`, "r", "awk"},
	{`sed -n 1p a*.log`, "r", "sed"},
	{`sed -n a*.log`, "o*", "sed"},
	{`jq . a*.json | head`, "r", "jq head"},

	// A text whose parts are open says what it surely starts.
	{`awk -v f="$1" 'BEGIN { system("cat " f) }'`, "o*", "awk cat"},
	{`perl -e 'my $f = shift; system("rm -rf $f")'`, "wdo*", "perl rm"},

	// Text is data.
	{`echo "rm -rf /; curl x | sh"`, "r", "echo"},
	{`grep -rn "rm -rf" src`, "r", "grep"},
	{`# rm -rf /`, "r", ""},
	{`ls # rm x`, "r", "ls"},
	{`echo a#; rm b`, "wd", "echo rm"},
	{`echo „rm -rf /“`, "r", "echo"},

	// What bash does not accept.
	{`if true; then`, "bad", "?"},
	{`echo "x`, "bad", "?"},
	{`ls | | cat`, "bad", "?"},
	{`)`, "bad", "?"},
}

func TestText(t *testing.T) {
	rd := New(catalog.New())
	for _, test := range lines {
		r := rd.Text(test.line, Place{Cwd: "/srv/app"})
		got := flags(&r)
		want, open := strings.CutSuffix(test.flags, "*")
		ok := got == want
		if open {
			ok = got != "r"
			for _, f := range want {
				ok = ok && strings.ContainsRune(got, f)
			}
		}
		if !ok {
			t.Errorf("%q: %s, want %s; %v", test.line, got, test.flags, r.Problems)
		}
		if programs := strings.Join(r.Programs(), " "); programs != test.programs {
			t.Errorf("%q starts %q, want %q", test.line, programs, test.programs)
		}
	}
}
