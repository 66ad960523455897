package mask

import (
	"math"
	"strings"
)

// formSpans finds secrets by their form.
func formSpans(s string) []span {
	spans := pemSpans(s)
	spans = append(spans, urlSpans(s)...)
	for i := 0; i < len(s); i++ {
		if i > 0 && isAlnum(s[i-1]) || !isAlnum(s[i]) {
			continue
		}
		if end := tokenEnd(s, i); end > i {
			spans = append(spans, span{i, end})
			i = end - 1
		}
	}
	return spans
}

// form is a kind of token with a known beginning.
type form struct {
	prefix string
	min    int  // length after the prefix
	mixed  bool // letters and digits must both occur
}

// forms lists beginnings as the issuers document them, most for the use of
// secret scanners.
func forms(first byte) []form {
	switch first {
	case 'A':
		return []form{{"AKIA", 12, false}, {"ASIA", 12, false}, {"AIza", 30, false}, {"AGE-SECRET-KEY-1", 20, false}}
	case 'S':
		return []form{{"SG.", 30, true}}
	case 'd':
		return []form{{"dop_v1_", 20, true}, {"dckr_pat_", 16, false}}
	case 'g':
		return []form{{"ghp_", 16, false}, {"gho_", 16, false}, {"ghu_", 16, false}, {"ghs_", 16, false}, {"ghr_", 16, false}, {"github_pat_", 16, false}, {"glpat-", 16, false}}
	case 'h':
		return []form{{"hf_", 24, false}, {"hvs.", 20, false}}
	case 'n':
		return []form{{"npm_", 24, false}}
	case 'p':
		return []form{{"pypi-", 30, true}}
	case 'r':
		return []form{{"rk_live_", 16, false}, {"rk_test_", 16, false}}
	case 's':
		return []form{{"sk-", 20, true}, {"sk_live_", 16, false}, {"sk_test_", 16, false}, {"shpat_", 20, true}}
	case 't':
		return []form{{"tskey-", 16, true}}
	case 'w':
		return []form{{"whsec_", 20, true}}
	case 'x':
		return []form{{"xoxa-", 8, true}, {"xoxb-", 8, true}, {"xoxc-", 8, true}, {"xoxd-", 8, true}, {"xoxe-", 8, true}, {"xoxo-", 8, true}, {"xoxp-", 8, true}, {"xoxr-", 8, true}, {"xoxs-", 8, true}, {"xapp-", 8, true}}
	case 'y':
		return []form{{"ya29.", 20, true}}
	}
	return nil
}

// tokenEnd is the end of the token that begins at i, or i if none does.
func tokenEnd(s string, i int) int {
	if strings.HasPrefix(s[i:], "eyJ") {
		return jwtEnd(s, i)
	}
	for _, f := range forms(s[i]) {
		if !strings.HasPrefix(s[i:], f.prefix) {
			continue
		}
		start := i + len(f.prefix)
		end := start
		for end < len(s) && (isAlnum(s[end]) || s[end] == '_' || s[end] == '-' || s[end] == '.') {
			end++
		}
		for end > start && s[end-1] == '.' {
			end-- // of the sentence
		}
		rest := s[start:end]
		if f.prefix == "sk-" && (strings.HasPrefix(rest, "ssh-") || strings.HasPrefix(rest, "ecdsa-")) {
			continue // types of SSH keys
		}
		if len(rest) >= f.min && (!f.mixed || hasLetterAndDigit(rest)) {
			return end
		}
	}
	return i
}

// jwtEnd is the end of a JWT (RFC 7519) or another base64url of a JSON object.
func jwtEnd(s string, i int) int {
	end, dots := i, 0
	for ; end < len(s); end++ {
		if s[end] == '.' {
			dots++
		} else if !isAlnum(s[end]) && s[end] != '_' && s[end] != '-' && s[end] != '=' {
			break
		}
	}
	for end > i && s[end-1] == '.' {
		end--
		dots--
	}
	if n := end - i; dots >= 1 && n >= 20 || n >= 40 {
		return end
	}
	return i
}

// maxPEM is more than any private key needs.
const maxPEM = 32 << 10

// pemSpans finds what lies between the lines of a PEM private key (RFC 7468).
func pemSpans(s string) []span {
	const begin, dashes = "-----BEGIN ", "-----"
	var spans []span
	for at := 0; ; {
		i := strings.Index(s[at:], begin)
		if i < 0 {
			return spans
		}
		at += i + len(begin)
		label, _, ok := strings.Cut(s[at:min(len(s), at+maxName)], dashes)
		if !ok || !strings.Contains(label, "PRIVATE KEY") {
			continue
		}
		from := at + len(label) + len(dashes)
		end := strings.Index(s[from:min(len(s), from+maxPEM)], "-----END ")
		to := from + end
		if end < 0 || strings.ContainsAny(s[from:to], ";|&$()<>`'\"") {
			to = base64Run(s, from)
		}
		if strings.Trim(s[from:to], " \t\r\n\\nr") != "" {
			spans = append(spans, span{from, to})
		}
		at = max(at, to)
	}
}

// base64Run is the end of a run of long base64 words, which may be separated
// by blanks and by line breaks that are written as \n. It is for keys that are
// cut off: what follows them must stay.
func base64Run(s string, from int) int {
	end := from
	for i := from; ; {
		for i < len(s) && (isSpace(s[i]) || s[i] == '\\') {
			if s[i] == '\\' && i+1 < len(s) {
				i++ // with the n of \n
			}
			i++
		}
		start := i
		for i < len(s) && (isAlnum(s[i]) || s[i] == '+' || s[i] == '/' || s[i] == '=') {
			i++
		}
		if i-start < 16 {
			return end
		}
		end = i
	}
}

// urlSpans finds passwords and tokens before the @ of a URL (RFC 3986 section
// 3.2.1).
func urlSpans(s string) []span {
	var spans []span
	word, lastAt := 0, -1 // end of the word that is looked at, and its last @
	for at := 0; ; {
		i := strings.Index(s[at:], "://")
		if i < 0 {
			return spans
		}
		from := at + i + len("://")
		if from > word {
			for word, lastAt = from, -1; word < len(s) && !isSpace(s[word]) && !isQuote(s[word]) && s[word] != '<' && s[word] != '>'; word++ {
				if s[word] == '@' {
					lastAt = word
				}
			}
		}
		end := from // of the authority
		if n := strings.IndexAny(s[from:word], "/?#\\"); n >= 0 {
			end += n
		} else {
			end = word
		}
		at = end
		to := from + strings.LastIndexByte(s[from:end], '@')
		if to < from {
			// A slash in a password is wrong but works in places. What is not a
			// port after the colon must be a password.
			_, port, ok := strings.Cut(s[from:end], ":")
			if !ok || strings.Trim(port, "0123456789") == "" || lastAt < from {
				continue
			}
			to, at = lastAt, lastAt
		}
		user, password, ok := strings.Cut(s[from:to], ":")
		switch {
		case ok && password != "" && !isExpansion(password):
			spans = append(spans, span{from + len(user) + 1, to})
		case !ok && isRandom(user):
			spans = append(spans, span{from, to})
		}
	}
}

func hasLetterAndDigit(s string) bool {
	letter, digit := false, false
	for i := range len(s) {
		letter = letter || isLetter(s[i])
		digit = digit || isDigit(s[i])
	}
	return letter && digit
}

// maxRandom is how much of a value isRandom needs to see.
const maxRandom = 1024

// isRandom reports whether v looks like hex or base64 of random bytes.
func isRandom(v string) bool {
	v = v[:min(len(v), maxRandom)]
	if len(v) < 20 || !hasLetterAndDigit(v) {
		return false
	}
	var seen [256]int
	hex := true
	for i := range len(v) {
		c := v[i]
		if !isAlnum(c) && strings.IndexByte("+/_=.-", c) < 0 {
			return false
		}
		hex = hex && (isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f')
		seen[c]++
	}
	bits := 0.0
	for _, n := range seen {
		if n > 0 {
			p := float64(n) / float64(len(v))
			bits -= p * math.Log2(p)
		}
	}
	if hex {
		return bits >= 2.5
	}
	return bits >= 3.5
}
