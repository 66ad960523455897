package code

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

func TestZZMin(t *testing.T) {
	if os.Getenv("ZZM") == "" {
		t.Skip()
	}
	for _, c := range []struct {
		l    Lang
		p, s string
	}{{Mongo, "", "~w[~w[[["}, {Elisp, "", "q("}, {AppleScript, "", "q(g/a/g/@{"}, {Perl, "", "[[--"}, {Lua, "", "/*!"}, {Awk, "", "`}\n E\n0('a',"}, {Elixir, "", "`${\n}\nA\n] <<~E e bt |"}, {Elixir, "", "x!r:>{:os.pawn y"}, {Elixir, "", "[<<<A\n\\"}, {Awk, "", "y] ${z$print "}, {Ruby, "", "system "}, {Ruby, "", "exec "}, {Ruby, "", "\\{*}.shell:os.cm"}, {Node, "", ":os.~s("}, {SQL, "", "<<A\n* (* *--[["}, {MySQL, "f(", "x!r:>{\"\n$x\nA'(?\" ?"}, {MySQL, "", " [x] fa ? b : g/x/s/('b'))"}, {Mongo, "", "{{"}, {Mongo, "", "~s(f("}, {Mongo, "", "d(\"a\",al(1))(*"}, {Yq, "", "1,2{p;"}, {Yq, "", "?"}, {Yq, "", "md('a#"}, {Perl, "", "b${c}`"}, {Lua, "", "[!\\#{a\\\n"}, {Postgres, "", "a=a+a\n"}, {Perl, "", "print \"@{[`id`]}\";"}, {Ruby, "", "\"#{`id`}\";"}} {
		var out []string
		for _, n := range []int{MaxText / 4, MaxText} {
			best := time.Hour
			s := c.p + strings.Repeat(c.s, (n-len(c.p))/len(c.s))
			for range 5 {
				at := time.Now()
				Read(c.l, s)
				best = min(best, time.Since(at))
			}
			out = append(out, fmt.Sprint(best))
		}
		fmt.Println(c.l, fmt.Sprintf("%q", c.s), out)
	}
}

func zzseed() uint64 { if os.Getenv("ZZSEED") != "" { return uint64(time.Now().UnixNano()) }; return 1 }
func zzmul() int { if os.Getenv("ZZSEED") != "" { return 8 }; return 1 }
