package mask

import "strings"

// namedSpans finds values that follow their name: name=value, name: value,
// "name": "value" and the like, anywhere in a text.
func namedSpans(s string) []span {
	var spans []span
	for i := 0; i < len(s); i++ {
		var values []span
		switch s[i] {
		case '=', ':', ',':
			if n, ok := nameBefore(s, i); ok {
				values = n.values(s, i)
			}
		case ' ':
			// As in "token 5f4d…" or "Bearer 5f4d…": only what looks random.
			if n, ok := nameBefore(s, i); ok && !n.closed {
				if end := base64End(s, i+1); isRandom(s[i+1 : end]) {
					values = []span{{i + 1, end}}
				}
			}
		}
		spans = append(spans, values...)
		if len(values) > 0 {
			i = max(i, values[len(values)-1].to-1) // names within a secret are a part of it
		}
	}
	return spans
}

// named is a name before a separator.
type named struct {
	name   string
	class  class
	opened byte // the quote right before the name, if it is not closed right after it
	dashed bool // it is written as an option
	closed bool // it stands in quotes of its own
	spaced bool // blanks lie between the name and the separator
}

func nameBefore(s string, sep int) (n named, ok bool) {
	end := sep
	for end > 0 && (s[end-1] == ' ' || s[end-1] == '\t') && sep-end < 8 {
		end--
	}
	n.spaced = end < sep
	quote := byte(0)
	if end > 0 && (s[end-1] == '"' || s[end-1] == '\'') {
		quote = s[end-1]
		for end--; end > 0 && s[end-1] == '\\'; {
			end--
		}
	}
	start := end
	for start > 0 && end-start <= maxName && (isAlnum(s[start-1]) || strings.IndexByte("_-.", s[start-1]) >= 0) {
		start--
	}
	n.name = strings.TrimLeft(s[start:end], "-")
	n.dashed = n.name != s[start:end]
	if n.class = classify(n.name); n.class == plain {
		return n, false
	}
	if start > 0 && isQuote(s[start-1]) {
		if n.closed = s[start-1] == quote; !n.closed {
			n.opened = s[start-1]
		}
	}
	return n, true
}

// values finds the value after the separator at sep, or several in a cookie.
func (n named) values(s string, sep int) []span {
	from := sep + 1
	switch c := s[sep]; {
	case c == ',':
		// In a list, an option is followed by its value: "--token", "…".
		if !n.closed || !n.dashed {
			return nil
		}
	case from < len(s) && (s[from] == '=' || s[from] == ':' || s[from] == '~'):
		return nil // a comparison, an assignment of Go, a path of C++
	case c == '=' && from < len(s) && s[from] == '>':
		from++ // of Ruby and PHP
	}
	if s[sep] == '=' && from == sep+1 && !n.spaced && !n.closed && from < len(s) && isSpace(s[from]) {
		return nil // an empty variable before a command
	}
	for from < len(s) && (s[from] == ' ' || s[from] == '\t') {
		from++
	}
	switch n.class {
	case header:
		return n.schemeSpans(s, from)
	case cookie:
		if s[sep] != ':' {
			return nil
		}
		return cookieSpans(s, from)
	}
	if n.class == weak {
		// Names may follow each other without end, and none is secret.
		s = s[:min(len(s), from+maxRandom)]
	}
	v := n.value(s, sep, from)
	if !isSecret(n.class, n.name, s[v.from:v.to], false) {
		return nil
	}
	return []span{v}
}

// value is the value that begins at from.
func (n named) value(s string, sep, from int) span {
	open, slashes := from, 0
	for open < len(s) && s[open] == '\\' {
		open++
		slashes++
	}
	if open < len(s) && isQuote(s[open]) && s[open] != n.opened {
		if end := quoteEnd(s, open+1, s[open], slashes); end >= 0 {
			return span{open + 1, end}
		}
		from = open + 1
	}
	// A name right after a quote does not make all that is quoted its value:
	// it may be a script that begins with an assignment.
	return span{from, bareEnd(s, from, s[sep] == ':')}
}

// quoteEnd is where a quoted text that begins at from ends, before the first
// quote that is not more escaped than the opening one; -1 if no quote ends it
// on its line.
func quoteEnd(s string, from int, quote byte, slashes int) int {
	escapes := 0
	for i := from; i < len(s) && s[i] != '\n'; i++ {
		switch {
		case s[i] == '\\' && (quote != '\'' || slashes > 0):
			escapes++
			continue
		case s[i] == quote && escapes <= slashes:
			return i - escapes
		}
		escapes = 0
	}
	return -1
}

// bareEnd is where a value without quotes ends. inObject is for values after a
// colon, which a comma or bracket ends.
func bareEnd(s string, from int, inObject bool) int {
	i := from
	for ; i < len(s); i++ {
		c := s[i]
		switch {
		case isSpace(c), isQuote(c), isOperator(c):
			return i
		case c == ',' && (inObject || startsPair(s[i+1:])):
			return i
		case inObject && (c == '}' || c == ']') && !strings.HasSuffix(s[from:i+1], Mark):
			return i
		case c == '\\' && i+1 < len(s):
			if i++; isQuote(s[i]) {
				return i - 1 // the end of a quote within a quote
			}
		}
	}
	return i
}

// base64End is where the characters of hex and base64 end.
func base64End(s string, from int) int {
	i := from
	for i < len(s) && (isAlnum(s[i]) || strings.IndexByte("+/_=.-", s[i]) >= 0) {
		i++
	}
	for i > from && s[i-1] == '.' {
		i-- // of the sentence
	}
	return i
}

// startsPair reports whether s begins with name=.
func startsPair(s string) bool {
	i := 0
	for i < len(s) && (isAlnum(s[i]) || strings.IndexByte("_.-", s[i]) >= 0) {
		i++
	}
	return i > 0 && i < len(s) && s[i] == '='
}

// schemeSpans finds the secret of an authorization header after its scheme
// (RFC 9110 section 11.6.2).
func (n named) schemeSpans(s string, from int) []span {
	for from < len(s) && (isQuote(s[from]) && s[from] != n.opened || s[from] == '\\') {
		from++
	}
	end := bareEnd(s, from, false)
	switch strings.ToLower(s[from:end]) {
	case "basic", "bearer", "digest", "negotiate", "token", "apikey", "ssws", "dpop", "aws4-hmac-sha256":
		for from = end; from < len(s) && (s[from] == ' ' || s[from] == '\t' || s[from] == '\\'); {
			from++
		}
		end = bareEnd(s, from, false)
	}
	if isExpansion(s[from:end]) {
		return nil
	}
	return []span{{from, end}}
}

// cookieSpans finds the values of a cookie header (RFC 6265 section 4.2.1).
func cookieSpans(s string, from int) []span {
	var spans []span
	for {
		i := from
		for i < len(s) && (isAlnum(s[i]) || strings.IndexByte("_.-!#$%&'*+^|~", s[i]) >= 0) {
			i++
		}
		if i == from || i >= len(s) || s[i] != '=' {
			return spans
		}
		end := bareEnd(s, i+1, false)
		if !isExpansion(s[i+1 : end]) {
			spans = append(spans, span{i + 1, end})
		}
		if end+1 >= len(s) || s[end] != ';' || s[end+1] != ' ' {
			return spans
		}
		from = end + 2
	}
}
