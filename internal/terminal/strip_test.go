package terminal

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestStripEscapes(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"plain", "a\tb\nä", "a\tb\nä"},
		{"colour", "\x1b[1;31mred\x1b[0m", "red"},
		{"private mode", "\x1b[?1049hx\x1b[?25l", "x"},
		{"with an intermediate byte", "\x1b[0 qx", "x"},
		{"8-bit CSI as a rune", "\u009b31mred", "red"},
		{"8-bit CSI as a byte", "\x9b31mred", "red"},
		{"title, ended by BEL", "\x1b]0;title\x07x", "x"},
		{"clipboard, ended by ST", "\x1b]52;c;cm0gLXJm\x1b\\x", "x"},
		{"hyperlink", "\x1b]8;;http://a.example\x1b\\b.example\x1b]8;;\x1b\\", "b.example"},
		{"8-bit OSC and ST", "\u009d0;title\u009cx", "x"},
		{"8-bit ST as a byte", "\x1b]0;ti\xc3\xa9tle\x9cx", "x"},
		{"a rune that contains the byte of ST", "\x1b]0;\u071ctitle\x07x", "x"},
		{"DCS, SOS, PM, APC", "\x1bPq\x1b\\\x1bXq\x1b\\\x1b^q\x1b\\\x1b_q\x1b\\x", "x"},
		{"character set", "\x1b(0lqk\x1b(B", "lqk"},
		{"save, reset", "\x1b7\x1bcx\x1b8", "x"},
		{"string without an end stays to be seen", "\x1b]0;rm -rf /", "0;rm -rf /"},
		{"string broken by a line", "\x1b]0;a\nb\x07", "0;a\nb"},
		{"string broken by an escape", "\x1b]0;a\x1b[31mb\x07", "0;ab"},
		{"CSI without an end", "\x1b[12", "12"},
		{"CSI broken", "\x1b[1\x1b[2Jx", "1x"},
		{"lone escapes", "\x1b", ""},
		{"two escapes", "\x1b\x1b[31mx", "x"},
		{"escape before a letter of another script", "\x1bäx", "äx"},
		{"carriage returns", "safe\rrm\r\n", "saferm\n"},
		{"backspace, delete, bell, zero", "a\b\x7f\a\x00b", "ab"},
		{"broken UTF-8", "a\xffb", "a\uFFFDb"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := StripEscapes(tt.in); got != tt.want {
				t.Errorf("StripEscapes(%q) = %q, want %q", tt.in, got, tt.want)
			}
		})
	}
}

func FuzzStripEscapes(f *testing.F) {
	for _, seed := range []string{"a", "\x1b[31mx", "\x1b]0;t\x07", "\x1bP1\x1b\\", "\u009b1m", "\x9d\xff\x9c", "\x1b\x1b"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := StripEscapes(s)
		if !utf8.ValidString(got) || strings.IndexFunc(got, isControl) >= 0 {
			t.Fatalf("StripEscapes(%q) = %q", s, got)
		}
		if again := StripEscapes(got); again != got {
			t.Fatalf("a second pass finds more: %q, then %q", got, again)
		}
	})
}

// Text made to be slow must not be: every byte is looked at a few times only.
func BenchmarkStripEscapes(b *testing.B) {
	for name, unit := range map[string]string{"open strings": "\x1b]", "8-bit": "\x9d", "colours": "\x1b[31mx"} {
		text := strings.Repeat(unit, 100_000)
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				StripEscapes(text)
			}
		})
	}
}
