package code

import (
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"
)

func TestZZTiny(t *testing.T) {
	d, _ := time.ParseDuration(os.Getenv("ZZ"))
	if d == 0 {
		t.Skip()
	}
	tiny := []string{"\"", "'", "`", "#{", "@{[", "{$", "${", "{", "}", "]}", ")", "(", "<<A", "<<~A", "<<<A", "<<'A'", "<<`A`", "\nA\n", "\nA;\n", "\n", "A", "x", "=", "<?php ", "?>", "s{", "s/", "/e", "/", "q(", "%w[", "%Q{", "\\", "$x", "@x", ";", ",", ".", " ", "f'", "'''", "r\"", "//", "/*", "*/", "--[[", "]]", "\\(", "%x(", "?a", ":a", "->", "m{", "tr/", "y", "__END__", "=pod\n", "\n=cut", "é", "1", "\t", "[", "do shell script ", "set x to ", "(*", "¬", "(shell-command ", "?\\", "exec ", "expect {", "{*}", "r\"(", "<-", "system2(", "paste0(", "#=", "=#", "raw\"", "run(", "~s(", "~w[", ":os.", "|> ", "System.cmd(", "\"#{<<A\n", "%s\" % ", ".format(", "sprintf(", "e\"", "system(", "`id`"}
	r := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 2))
	end := time.Now().Add(d)
	for time.Now().Before(end) && !t.Failed() {
		var b strings.Builder
		for range 1 + r.IntN(20) {
			b.WriteString(tiny[r.IntN(len(tiny))])
		}
		s := b.String()
		for _, lang := range []Lang{Python, Perl, Ruby, Node, PHP, Lua, Yq, Mongo, Awk, AppleScript, Elisp, Tcl, R, Julia, Elixir} {
			try(t, lang, s)
		}
	}
}
