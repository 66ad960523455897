package terminal

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Visible returns s as one line in which every character is what it seems to
// be. It is for text that a stranger wrote and a person will judge: commands,
// paths, host names, reasons.
//
// Written as <U+XXXX> are: control characters (line breaks too), invisible and
// formatting characters (among them every bidirectional control, Unicode
// Standard Annex 9), spaces other than U+0020, private and unassigned code
// points, signs and letters that look like ASCII ones, letters of a second
// script within a word, words made of nothing but another script's look-alikes,
// and combining marks that stand alone, strike through or pile up. A byte that
// is no UTF-8 is written as <0xXX>.
//
// Different texts have different results: a < that would begin such an escape
// is escaped itself. For the same reason Visible is applied once, at the end.
// The list of look-alikes is a selection, chosen for what shells, paths and
// host names are made of; Unicode knows thousands (Unicode Technical Standard
// 39), and most of them fall to the rule about mixed words.
func Visible(s string) string {
	if plainASCII(s) {
		return s
	}
	var b strings.Builder
	previous := rune(-1) // the one before s
	for s != "" {
		r, size := utf8.DecodeRuneInString(s)
		if end := wordEnd(s); end > 0 {
			writeWord(&b, s[:end], previous)
			previous, _ = utf8.DecodeLastRuneInString(s[:end])
			s = s[end:]
			continue
		}
		switch rest := s[size:]; {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, "<0x%02X>", s[0])
		case r == '<' && (strings.HasPrefix(rest, "U+") || strings.HasPrefix(rest, "0x")):
			escape(&b, r)
		case r == '\u2019' && unicode.IsLetter(previous) && wordEnd(rest) > 0: // an apostrophe, as in don’t
			b.WriteRune(r)
		case hidden(r) || looksASCII(r):
			escape(&b, r)
		default:
			b.WriteRune(r)
		}
		previous = r
		s = s[size:]
	}
	return b.String()
}

// plainASCII is the common case: printable ASCII without the begin of an escape.
func plainASCII(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' || s[i] == '<' {
			return false
		}
	}
	return true
}

func escape(b *strings.Builder, r rune) { fmt.Fprintf(b, "<U+%04X>", r) }

// wordEnd returns the length of the word with which s begins: letters, digits
// and their marks.
func wordEnd(s string) int {
	for i, r := range s {
		if r == utf8.RuneError || !unicode.In(r, unicode.L, unicode.N, unicode.M) {
			return i
		}
	}
	return len(s)
}

// writeWord writes one word; previous is the rune before it.
func writeWord(b *strings.Builder, word string, previous rune) {
	foreign := suspects(word)
	marks := 0
	for _, r := range word {
		bad := hidden(r) || looksASCII(r) || foreign(r)
		if unicode.Is(unicode.M, r) {
			marks++
			bad = bad || badMark(r, marks, previous)
			if r == emojiStyle && marks == 1 && unicode.Is(unicode.So, previous) {
				bad = false
			}
		} else {
			marks = 0
		}
		if bad {
			escape(b, r)
		} else {
			b.WriteRune(r)
		}
		previous = r
	}
}

// emojiStyle asks for the coloured form of the symbol before it.
const emojiStyle = '\uFE0F'

// badMark reports whether a combining mark, the nth in a row and the first of
// them after base, hides more than it adds. Living scripts use at most three
// on a letter.
func badMark(r rune, nth int, before rune) bool {
	switch {
	case nth == 1 && !unicode.In(before, unicode.L, unicode.N):
		return true // it would sit on whatever stands before
	case nth > 3, unicode.Is(unicode.Me, r):
		return true
	default:
		return 0x0334 <= r && r <= 0x0338 || 0x20D2 <= r && r <= 0x20E5 // overlays
	}
}

// hidden reports whether r shows nothing, or steers how other text is shown.
func hidden(r rune) bool {
	if r == ' ' {
		return false
	}
	return !unicode.IsGraphic(r) || // Cc, Cf, Co, Cs, Cn, Zl, Zp
		unicode.In(r, unicode.Zs, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) ||
		r == '\u2800' || // BRAILLE PATTERN BLANK
		r == '\U0001D159' // MUSICAL SYMBOL NULL NOTEHEAD
}

// likeSigns look like the ASCII punctuation of shells, paths and host names.
const likeSigns = "\u2010\u2011\u2012\u2013\u2015\u2212\u2043\u02D7\u058A\u05BE\u06D4\u1806\u2796" + // -
	"\u2018\u2019\u201A\u201B\u2032\u2035\u00B4\u02B9\u02BB\u02BC\u02BD\u02BE\u02C8\u02CA\u02CB\u055A\u055D\u05F3\u1FBD\u1FBF\u1FEF\u1FFD\u1FFE\uA78C" + // ' `
	"\u201C\u201D\u201E\u201F\u2033\u2036\u02BA\u02DD\u02EE\u05F4\u301D\u301E" + // "
	"\u2044\u2215\u29F8\u2571\u1735\u27CB" + // /
	"\u2216\u29F5\u29F9\u2572\u27CD" + // \
	"\u02D0\u02F8\u0589\u05C3\u2236\uA789" + // :
	"\u037E\u0387\u2024\uA4F8\uA4FA\uA4FB\uA4FD" + // ; . :
	"\u2223\u2758\u23D0\u2502\u2503\u01C0\u05C0" + // |
	"\u2039\u203A\u02C2\u02C3\u276E\u276F\u27E8\u27E9\u3008\u3009\u2329\u232A" + // < >
	"\u2217\u204E\u066D\u2731" + // *
	"\u02DC\u223C\u223D\u2053\u1FC0" + // ~
	"\u02C6\u2303\u02C4" + // ^
	"\u02CD\uA78A\u2E40\u30A0" + // _ =
	"\u01C3\u2D51\u066A\u2052\u266F\u2795\u16ED" + // ! ! % % # + +
	"\u2768\u2769\u276A\u276B\u2774\u2775\u2772\u2773\u3014\u3015" // ( ) { } [ ]

// likeLetters look like ASCII letters although they count as Latin themselves.
const likeLetters = "\u0131\u0237\u0251\u0261\u0269\u026A\u017F\uA731\u1D04\u1D0F\u1D1C\u1D20\u1D21\u1D22\uA7FE"

// looksASCII reports whether r looks like an ASCII character and has hardly
// another use where commands are shown.
func looksASCII(r rune) bool {
	switch {
	case r < 0x80:
		return false
	case 0xFF01 <= r && r <= 0xFF5E, // fullwidth forms
		0xFE50 <= r && r <= 0xFE6B,                        // small forms
		0x1D400 <= r && r <= 0x1D7FF,                      // mathematical letters and digits
		0x2160 <= r && r <= 0x217F,                        // Roman numerals
		0x1FBF0 <= r && r <= 0x1FBF9,                      // segmented digits
		0x2100 <= r && r <= 0x214F && unicode.IsLetter(r), // letterlike symbols
		0xA4D0 <= r && r <= 0xA4F7, r == 0x11FB0:          // Lisu, most of it Latin capitals
		return true
	}
	return strings.ContainsRune(likeSigns, r) || strings.ContainsRune(likeLetters, r)
}

// likeLatin are the letters of other scripts that pass for ASCII letters in
// usual fonts.
const likeLatin = "АВЕЅІЈКМНОРСТУХҮѴԌԚԜӀ" + "асԁеһіјӏорԛѕухѵԝьүԍ" + // Cyrillic
	"ΑΒΕΖΗΙΚΜΝΟΡΤΥΧϹͿ" + "αινορσυϲϳ" + // Greek
	"ԼՍՏՕ" + "օոսհցզյք" + // Armenian
	"ᎠᎡᎢᎥᎩᎪᎫᎬᎳᎷᎻᏀᏃᏎᏒᏔᏙᏚᏞᏟᏢᏦᏴ" + // Cherokee
	"ⲞⲟⲢⲣⲤⲥⲘⲚⲔⲒ" // Coptic

// suspects returns the test for those runes of word that must not be shown as
// they are because of the other runes in it.
func suspects(word string) func(rune) bool {
	if MixedScript(word) {
		latin := strings.ContainsFunc(word, func(r rune) bool { return unicode.Is(unicode.Latin, r) })
		digits := strings.ContainsAny(word, "0123456789")
		return func(r rune) bool {
			switch {
			case r < 0x80:
				return false
			case unicode.Is(unicode.Nd, r) && (latin || digits):
				return true
			case latin:
				return scriptOf(r) != nil && !unicode.Is(unicode.Latin, r)
			default:
				return scriptOf(r) != nil
			}
		}
	}
	// A word of one foreign script, each letter of which has a Latin double.
	letters := 0
	for _, r := range word {
		if !unicode.IsLetter(r) {
			continue
		}
		if !strings.ContainsRune(likeLatin, r) {
			return func(rune) bool { return false }
		}
		letters++
	}
	return func(r rune) bool { return letters > 0 && r >= 0x80 }
}

// MixedScript reports whether word mixes scripts, or digits of several scripts,
// in a way that no language does: the "Highly Restrictive" profile of Unicode
// Technical Standard 39, section 5.2. Latin beside the scripts of Chinese,
// Japanese or Korean is not mixed.
func MixedScript(word string) bool {
	var seen []*unicode.RangeTable
	asciiWord, asciiDigit, otherDigit := false, false, false
	for _, r := range word {
		switch {
		case '0' <= r && r <= '9':
			asciiDigit = true
			continue
		case r < utf8.RuneSelf && !unicode.IsLetter(r):
			continue
		case r < utf8.RuneSelf:
			asciiWord = true
		case unicode.Is(unicode.Nd, r):
			otherDigit = true
		}
		if script := scriptOf(r); script != nil && !slices.Contains(seen, script) {
			seen = append(seen, script)
		}
	}
	if otherDigit && (asciiDigit || asciiWord) {
		return true
	}
	if len(seen) < 2 {
		return false
	}
	within := func(allowed ...*unicode.RangeTable) bool {
		for _, script := range seen {
			if !slices.Contains(allowed, script) {
				return false
			}
		}
		return true
	}
	return !within(unicode.Latin, unicode.Han, unicode.Hiragana, unicode.Katakana) &&
		!within(unicode.Latin, unicode.Han, unicode.Bopomofo) &&
		!within(unicode.Latin, unicode.Han, unicode.Hangul)
}

// scriptOf returns the script of r, or nil for what all scripts share.
func scriptOf(r rune) *unicode.RangeTable {
	table := scripts()
	i := sort.Search(len(table), func(i int) bool { return table[i].last >= r })
	if i == len(table) || table[i].first > r {
		return nil
	}
	return table[i].script
}

type scriptRange struct {
	first, last rune
	script      *unicode.RangeTable
}

// scripts are the ranges of all scripts in order, without those that all share.
// The standard library has a table for each script and none from character to
// script; it is made when the first foreign letter is seen.
var scripts = sync.OnceValue(func() []scriptRange {
	var table []scriptRange
	add := func(script *unicode.RangeTable, first, last, stride rune) {
		if stride == 1 {
			table = append(table, scriptRange{first, last, script})
			return
		}
		for r := first; r <= last; r += stride {
			table = append(table, scriptRange{r, r, script})
		}
	}
	for _, script := range unicode.Scripts {
		if script == unicode.Common || script == unicode.Inherited {
			continue
		}
		for _, r := range script.R16 {
			add(script, rune(r.Lo), rune(r.Hi), rune(r.Stride))
		}
		for _, r := range script.R32 {
			add(script, rune(r.Lo), rune(r.Hi), rune(r.Stride))
		}
	}
	slices.SortFunc(table, func(a, b scriptRange) int { return int(a.first - b.first) })
	return table
})
