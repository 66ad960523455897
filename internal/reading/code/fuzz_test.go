package code

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// seeds are texts that begin and end what the scanners treat specially.
var seeds = []string{
	"s/a/b/w f\n1,2{p;e id\n}", "{print > \"f\" ; \"x\" | getline y < \"z\"}", "a=f'{x!r:>{w}}' '''x''' \"\\N{DASH}\"",
	"`a${`b${c}`}` /[/]/g", "qw(a b) s{x}{y}e <<\"E\" @{[`id`]}\nE\n", "%w[a] <<~E #{`x`}\n E\n:sym ?x",
	"<?php <<<X\n{$a}\nX; ?>`x`<?= 1", "[==[x]==] --[[y]] \"\\z  a\"", "select $$a$$, E'\\'', [x] from t /* /* */; \\copy x to 'y'",
	".shell \"a\\\" b\" 'c'\n.once |x", "db.a.find({$where: 'x'})[0]()", "g/x/s/a/b\\\n!id\n.\n", "%s/a/\\=system('x')/|exe \"!id\"",
	"thread apply all pipe bt | x\npython\nend", "[!x]sa s#!y\n?", "\\(", "\"\\(eval(1))\"",
	"do shell script \"a\" & quoted form of x (* (* *) *) ¬\n -- x\nset c to \"y\"", "(shell-command (concat \"a\" x)) ; y\n'(?\" ?\\\" #'z)", "if {[exec a $b(c)]} \"x [spawn y] ${z}\" {*}$a; expect {a {file delete -- b}}",
	"x <- paste0('a', y); system2('a', c('b')); r\"--(x)--\" # z", "run(`a $b \"c\"`); #= x #= =# =# A' \"\"\"$(rm(\"a\"))\"\"\"", "~w(a b) |> System.cmd(\"a\", [\"b\"]); :os.cmd('a#{b}') ?\\n",
	"\"#{<<A} #{x}\n\nA\n", "print \"@{[<<A]}\"\n$x\nA\n", "<?php \"{$x[<<<A\n}\nA\n]}\";",
}

// FuzzRead checks what holds for every text: no panic, the same answer again,
// nothing complete in languages for general use, nothing complete that starts
// the unknown, and no path without its effect.
func FuzzRead(f *testing.F) {
	for lang := range langs {
		for _, s := range seeds {
			f.Add(uint8(lang), s)
		}
	}
	f.Fuzz(func(t *testing.T, lang uint8, text string) {
		l := Lang(lang % uint8(langs))
		got := Read(l, text)
		if again := Read(l, text); !reflect.DeepEqual(got, again) {
			t.Errorf("%s: %q gives %+v, then %+v", l, text, got, again)
		}
		if (l.General() || slices.ContainsFunc(got.Shell, open)) && got.Complete {
			t.Errorf("%s: %q is complete", l, text)
		}
		for _, list := range slices.Concat(got.Argv, [][]string{got.Reads, got.Writes, got.Deletes, got.Empties, got.Hosts}) {
			if slices.ContainsFunc(list, open) {
				t.Errorf("%s: %q gives what is not literal: %+v", l, text, got)
			}
		}
		if got.Complete && got.Starts {
			t.Errorf("%s: %q is complete and starts the unknown", l, text)
		}
		if (len(got.Writes)+len(got.Deletes)+len(got.Empties) > 0) && !got.Write || (len(got.Deletes)+len(got.Empties) > 0) && !got.Destroy || len(got.Hosts) > 0 && !got.Network {
			t.Errorf("%s: %q has a path or host without its effect: %+v", l, text, got)
		}
	})
}

// pieces are what the scanners treat specially, to be repeated.
var pieces = []string{
	"(", "[", "{", "<", "'", "\"", "`", "/", "\\", "$", "@", "%", "#", "#{", "${", "{{", "@{", "<<A\n", "<<~A", "<?", "/*", "--", "--[[", "[[",
	"[[:", "s/", "s/[", "s{", "m{", "q(", "y'", "f'{", "`${", "\"#{`", "\"@{[", "print ", "print>", "getline<", "|", "a=a+a\n", "a=\"x\"\n", "f(", "system ",
	"system(", "exec(\"", "open(", "require('fs').", "import a,", "from a import ", "x.", "a::", "e\\\n", "a\\\n", "{p;", "g/", "g/a/g/", "thread apply all ",
	"pipe ", "exe '", "silent ", "\\!", "\\a", "\\copy (", ".shell ", ".x\n", ";", "explain analyze update ", "select f(", "/*!", "$$", "$a$", "!", "[!", "?",
	"unless ", "->", ".split(", "Path(", "do shell script ", "set x to ", "(*", "¬", "(shell-command ", "?\\", "exec ", "expect {", "{*}", "r\"(", "a<-\"x\"\n", "system2(", "paste0(", "#=", "raw\"", "run(", "~s(", "~w[", ":os.", "|> ", "System.cmd(", "(concat \"a\"", "[exec ", "x=[1,\n", "subprocess.run(x)\n", "def f(", "\n", "\\\n", "%w[", "a ? b : ", "'\\", "os.system('a'+", "lit\"\"\"",
}

// TestRepetitions gives every scanner repetitions, which nest and which never
// end. BenchmarkRepetitions shows whether the time stays linear.
func TestRepetitions(t *testing.T) {
	for lang := Lang(1); lang < langs; lang++ {
		for _, p := range slices.Concat(pieces, seeds) {
			Read(lang, strings.Repeat(p, 2000/len(p)))
		}
	}
}

// TestMixtures gives every scanner texts of pieces that end anywhere.
func TestMixtures(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	parts := slices.Concat(pieces, seeds, []string{"\n", "\"", "'", "`", "}", ")", "]", "]}", "A\n", "\nA\n", "x", " ", "=", ";", ",", "\\", "/e", "<<`A`", "<<'A'", "?>", "\\("})
	text := mix(parts, 1, 16)
	for range 1500 {
		s := text(r)
		s = strings.ToValidUTF8(s[:r.IntN(len(s)+1)], "")
		for lang := Lang(1); lang < langs; lang++ {
			if got := Read(lang, s); lang.General() && got.Complete {
				t.Errorf("%s: %q is complete", lang, s)
			}
		}
	}
}

// BenchmarkRepetitions reads texts of two lengths; the throughput is the same
// where the time is linear.
func BenchmarkRepetitions(b *testing.B) {
	for lang := Lang(1); lang < langs; lang++ {
		for _, size := range []int{MaxText / 16, MaxText} {
			b.Run(fmt.Sprintf("%s/%d", lang, size), func(b *testing.B) {
				b.SetBytes(int64(size * len(pieces)))
				for b.Loop() {
					for _, p := range pieces {
						Read(lang, strings.Repeat(p, size/len(p)))
					}
				}
			})
		}
	}
}

func BenchmarkRead(b *testing.B) {
	for lang := Lang(1); lang < langs; lang++ {
		b.Run(lang.String(), func(b *testing.B) {
			for b.Loop() {
				Read(lang, seeds[int(lang)%len(seeds)])
			}
		})
	}
}
