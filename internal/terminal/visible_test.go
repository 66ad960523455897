package terminal

import (
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestVisible(t *testing.T) {
	tests := []struct{ name, in, want string }{
		// What must stay as it is.
		{"empty", "", ""},
		{"command", `git commit -m "it's done" && ls *.go | wc -l > ~/n`, `git commit -m "it's done" && ls *.go | wc -l > ~/n`},
		{"redirections", "cat <in >out 2>&1 <<<x", "cat <in >out 2>&1 <<<x"},
		{"German", "Prüfung für Größe, 5 € – nein", "Prüfung für Größe, 5 € <U+2013> nein"},
		{"decomposed accents, as macOS writes file names", "u\u0308ber/e\u0301te\u0301", "u\u0308ber/e\u0301te\u0301"},
		{"Russian", "Удалить файлы проекта", "Удалить файлы проекта"},
		{"Greek", "διαγραφή αρχείων και φακέλων", "διαγραφή αρχείων και φακέλων"},
		{"Chinese and Latin in one word", "删除git缓存", "删除git缓存"},
		{"Japanese and Latin in one word", "ファイルをzipする", "ファイルをzipする"},
		{"Korean", "파일삭제now", "파일삭제now"},
		{"Thai with marks", "ที่นี่", "ที่นี่"},
		{"Hindi", "हिन्दी", "हिन्दी"},
		{"Arabic", "حذف الملفات", "حذف الملفات"},
		{"apostrophe in a word", "don\u2019t", "don\u2019t"},
		{"em dash and ellipsis", "done — almost…", "done — almost…"},
		{"emoji with its style", "⚠\uFE0F careful", "⚠\uFE0F careful"},

		// Control and line characters.
		{"line break", "ls\nrm -rf /", "ls<U+000A>rm -rf /"},
		{"carriage return that overwrites", "rm -rf /\rls", "rm -rf /<U+000D>ls"},
		{"tab and backspace", "a\tb\bc", "a<U+0009>b<U+0008>c"},
		{"escape sequence", "\x1b[2Jls", "<U+001B>[2Jls"},
		{"C1 control", "a\u009b2J", "a<U+009B>2J"},
		{"line separator", "a\u2028b\u2029c\u0085d", "a<U+2028>b<U+2029>c<U+0085>d"},
		{"zero byte", "a\x00b", "a<U+0000>b"},
		{"broken UTF-8", "a\xffb\xc3", "a<0xFF>b<0xC3>"},
		{"surrogate as bytes", "\xed\xa0\x80", "<0xED><0xA0><0x80>"},
		{"overlong slash", "\xc0\xaf", "<0xC0><0xAF>"},
		{"the replacement character itself", "a\uFFFDb", "a\uFFFDb"},

		// Invisible and bidirectional.
		{"override", "a\u202egpj.exe", "a<U+202E>gpj.exe"},
		{"isolates", "\u2066x\u2069", "<U+2066>x<U+2069>"},
		{"Arabic letter mark", "a\u061cb", "a<U+061C>b"},
		{"zero width space and joiner", "rm\u200b -rf\u200d", "rm<U+200B> -rf<U+200D>"},
		{"soft hyphen", "pass\u00adwd", "pass<U+00AD>wd"},
		{"byte order mark", "\ufeffls", "<U+FEFF>ls"},
		{"tag characters", "ls\U000E0072\U000E006D", "ls<U+E0072><U+E006D>"},
		{"no-break space", "rm\u00a0x", "rm<U+00A0>x"},
		{"ideographic space", "rm\u3000x", "rm<U+3000>x"},
		{"Hangul filler", "a\u3164b", "a<U+3164>b"},
		{"braille blank", "a\u2800b", "a<U+2800>b"},
		{"private use", "a\ue000b", "a<U+E000>b"},
		{"unassigned", "a\U000E0F00b", "a<U+E0F00>b"},
		{"variation selector in a word", "ls\uFE0F", "ls<U+FE0F>"},
		{"grapheme joiner", "l\u034fs", "l<U+034F>s"},

		// Marks.
		{"mark at the begin", "\u0301a", "<U+0301>a"},
		{"mark on a slash", "a/\u0338b", "a/<U+0338>b"},
		{"mark on a space", "a \u0308b", "a <U+0308>b"},
		{"piled up", "a\u0300\u0301\u0302\u0303\u0304", "a\u0300\u0301\u0302<U+0303><U+0304>"},
		{"struck through", "a\u0336b\u0336", "a<U+0336>b<U+0336>"},
		{"enclosing", "a\u20dd", "a<U+20DD>"},
		{"style twice", "⚠\uFE0F\uFE0F", "⚠\uFE0F<U+FE0F>"},

		// Look-alikes.
		{"mixed word", "gіt push", "g<U+0456>t push"},
		{"mixed host", "gооgle.com", "g<U+043E><U+043E>gle.com"},
		{"whole word of doubles", "сору x", "<U+0441><U+043E><U+0440><U+0443> x"},
		{"Greek doubles", "ορ", "<U+03BF><U+03C1>"},
		{"Cherokee", "ᎠᎪ", "<U+13A0><U+13AA>"},
		{"Lisu", "ꓡꓢ", "<U+A4E1><U+A4E2>"},
		{"Greek and Cyrillic", "αж", "<U+03B1><U+0436>"},
		{"accent stays, foreign letter goes", "naïvе", "naïv<U+0435>"},
		{"mark on a foreign letter", "nе\u0301e", "n<U+0435>\u0301e"},
		{"fullwidth", "ｒｍ　／", "<U+FF52><U+FF4D><U+3000><U+FF0F>"},
		{"mathematical", "𝗋m", "<U+1D5CB>m"},
		{"letterlike and Roman", "ℓs ⅿv", "<U+2113>s <U+217F>v"},
		{"dotless i", "gıt", "g<U+0131>t"},
		{"long s", "ſudo", "<U+017F>udo"},
		{"en dash as option", "rm –rf", "rm <U+2013>rf"},
		{"minus sign", "rm −rf", "rm <U+2212>rf"},
		{"quotes that do not quote", "echo “a; rm x”", "echo <U+201C>a; rm x<U+201D>"},
		{"apostrophe at a word's edge", "echo ’a’", "echo <U+2019>a<U+2019>"},
		{"slashes", "a∕b⁄c", "a<U+2215>b<U+2044>c"},
		{"Greek question mark", "ls;\u037e", "ls;<U+037E>"},
		{"click letter as pipe", "a ǀ sh", "a <U+01C0> sh"},
		{"digits of two scripts", "1\u09ea", "1<U+09EA>"},
		{"foreign digits of two scripts", "\u0de7\u09e7", "<U+0DE7><U+09E7>"},
		{"foreign digits alone", "\u0967\u0968", "\u0967\u0968"},
		{"Arabic digits in a Latin word", "a\u0665", "a<U+0665>"},

		// The escapes themselves cannot be forged.
		{"written escape", "<U+202E>", "<U+003C>U+202E>"},
		{"written byte", "<0xFF>", "<U+003C>0xFF>"},
		{"begin of one", "<U+", "<U+003C>U+"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := Visible(tt.in); got != tt.want {
				t.Errorf("Visible(%+q)\n got %+q\nwant %+q", tt.in, got, tt.want)
			}
		})
	}
}

func TestMixedScript(t *testing.T) {
	tests := []struct {
		word string
		want bool
	}{
		{"", false}, {"git", false}, {"git2", false}, {"größe", false}, {"файл", false}, {"файл1", false},
		{"gіt", true}, {"αж", true}, {"kΩ", true}, {"5µs", false}, {"µs", false}, {"日本語text", false}, {"かなカナ漢字", false},
		{"한글漢字a", false}, {"한글かな", true}, {"ㄅ漢a", false}, {"ㄅかな", true}, {"漢字ж", true},
		{"1\u0661", true}, {"\u0661\u0662", false}, {"a\u0661", true}, {"ب\u0661", false}, {"e\u0301", false}, {"е\u0301", false},
	}
	for _, tt := range tests {
		if got := MixedScript(tt.word); got != tt.want {
			t.Errorf("MixedScript(%+q) = %v, want %v", tt.word, got, tt.want)
		}
	}
}

// The tables are typed by hand; a letter in the wrong one would be invisible to
// whoever reads them.
func TestTablesOfLookalikes(t *testing.T) {
	for _, r := range likeLatin {
		if script := scriptOf(r); script == nil || script == unicode.Latin || !unicode.IsLetter(r) {
			t.Errorf("likeLatin has %U, which is no foreign letter", r)
		}
	}
	for _, r := range likeLetters {
		if !unicode.Is(unicode.Latin, r) || r < 0x80 {
			t.Errorf("likeLetters has %U, which is no Latin letter outside of ASCII", r)
		}
	}
	seen := make(map[rune]bool)
	for _, r := range likeSigns + likeLetters + likeLatin {
		if r < 0x80 || seen[r] {
			t.Errorf("%U is ASCII or listed twice", r)
		}
		seen[r] = true
	}
}

// scriptOf must agree with the standard library's tables everywhere.
func TestScriptOf(t *testing.T) {
	for name, script := range unicode.Scripts {
		if script == unicode.Common || script == unicode.Inherited {
			script = nil
		}
		for _, r := range unicode.Scripts[name].R16 {
			if got := scriptOf(rune(r.Hi)); got != script {
				t.Errorf("%U is not in %s", r.Hi, name)
			}
		}
		for _, r := range unicode.Scripts[name].R32 {
			if got := scriptOf(rune(r.Lo)); got != script {
				t.Errorf("%U is not in %s", r.Lo, name)
			}
		}
	}
	for _, r := range []rune{-1, 0, 0x0378, unicode.MaxRune, unicode.MaxRune + 1} {
		if scriptOf(r) != nil {
			t.Errorf("%X has a script", r)
		}
	}
}

// unvisible undoes Visible: every text must be recoverable from what is shown.
func unvisible(t *testing.T, shown string) string {
	var b strings.Builder
	for shown != "" {
		for kind, width := range map[string]int{"<U+": 32, "<0x": 8} {
			rest, is := strings.CutPrefix(shown, kind)
			if !is {
				continue
			}
			digits, after, closed := strings.Cut(rest, ">")
			code, err := strconv.ParseUint(digits, 16, width)
			if !closed || err != nil {
				t.Fatalf("a broken escape: %q", shown)
			}
			if width == 8 {
				b.WriteByte(byte(code))
			} else {
				b.WriteRune(rune(code))
			}
			shown = after
		}
		if shown != "" && !strings.HasPrefix(shown, "<U+") && !strings.HasPrefix(shown, "<0x") {
			_, size := utf8.DecodeRuneInString(shown)
			b.WriteString(shown[:size])
			shown = shown[size:]
		}
	}
	return b.String()
}

func FuzzVisible(f *testing.F) {
	for _, seed := range []string{"", "ls -l", "a\u202eb", "gіt", "сору", "\x1b]8;;x\x07", "<U+202E>", "\xff\xc3(", "⚠\uFE0F", "a\u0300\u0301\u0302\u0303", "don\u2019t", "1\u09ea"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		shown := Visible(s)
		if !utf8.ValidString(shown) {
			t.Fatalf("not UTF-8: %q", shown)
		}
		for i, r := range shown {
			if hidden(r) && r != emojiStyle || looksASCII(r) && r != '\u2019' {
				t.Fatalf("%U is left at %d in %+q", r, i, shown)
			}
		}
		for _, word := range strings.FieldsFunc(shown, func(r rune) bool { return !unicode.In(r, unicode.L, unicode.N, unicode.M) }) {
			if MixedScript(word) {
				t.Fatalf("the mixed word %+q is left in %+q", word, shown)
			}
		}
		if back := unvisible(t, shown); back != s {
			t.Fatalf("%+q is shown as %+q, which means %+q", s, shown, back)
		}
	})
}

func BenchmarkVisible(b *testing.B) {
	for name, text := range map[string]string{
		"command": "git -C /home/a/project commit --message 'a change' -- file.go",
		"Russian": strings.Repeat("Удалить файлы проекта ", 50),
		"attack":  strings.Repeat("gіtαжᎠ", 200),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				Visible(text)
			}
		})
	}
}
