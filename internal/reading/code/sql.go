package code

import "strings"

// sqlKind is the kind of an SQL token.
type sqlKind uint8

const (
	sqlWord   sqlKind = iota // a keyword or an unquoted name, in lower case
	sqlQuoted                // a quoted name; for MySQL double quotes make strings
	sqlString
	sqlPunct
)

type sqlToken struct {
	kind sqlKind
	text string
	mate int // for parentheses: the token that closes or opens this one
}

// sqlReader splits a script into statements and hands each to statement. The
// commands of the clients (backslash and dot commands) are read on the way.
type sqlReader struct {
	*Finding
	lang Lang
	text string
	pos  int
	nest int
	sure bool
	stmt []sqlToken
	open []int // parentheses of stmt that are open
}

// readSQL reports whether the whole script was understood.
func readSQL(f *Finding, lang Lang, text string, nest int) bool {
	r := sqlReader{Finding: f, lang: lang, text: text, nest: nest, sure: true}
	fresh := true // nothing but blanks on this line so far
	for r.pos < len(r.text) {
		c := r.text[r.pos]
		switch {
		case c == '\n':
			r.pos++
			fresh = true
			continue
		case isSpace(c):
			r.pos++
			continue
		case fresh && c == '.' && lang == SQLite:
			// Only a command where no statement is open.
			r.sure = r.sure && len(r.stmt) == 0
			r.dot(r.line())
			continue
		case fresh && c == '#' && lang == SQLite && len(r.stmt) == 0 && (r.pos == 0 || r.text[r.pos-1] == '\n'):
			r.line()
			continue
		case fresh && (lang == SQLite || lang == SQL) && r.batchEnd():
			r.sure = false
			r.finish()
			continue
		case fresh && len(r.stmt) == 0 && (lang == MySQL || lang == SQL) && r.clientWord():
			continue
		}
		fresh = false
		r.token(c)
	}
	r.finish()
	return r.sure
}

// batchEnd takes a line that ends a batch for sqlite3 and sqlcmd: a statement
// may end there.
func (r *sqlReader) batchEnd() bool {
	line, _, _ := strings.Cut(r.text[r.pos:min(r.pos+64, len(r.text))], "\n")
	line = strings.TrimSpace(line)
	if line != "/" && !strings.EqualFold(line, "go") {
		return false
	}
	r.pos += len(line)
	return true
}

// line takes the rest of the line.
func (r *sqlReader) line() string {
	start := r.pos
	if end := strings.IndexByte(r.text[start:], '\n'); end >= 0 {
		r.pos = start + end
	} else {
		r.pos = len(r.text)
	}
	return strings.TrimSuffix(r.text[start:r.pos], "\r")
}

// finish ends the statement.
func (r *sqlReader) finish() {
	if len(r.open) > 0 {
		r.sure = false
	}
	if len(r.stmt) > 0 {
		r.statement(r.stmt)
	}
	r.stmt, r.open = r.stmt[:0], r.open[:0]
}

func (r *sqlReader) add(t sqlToken) {
	t.mate = -1
	if t.kind == sqlPunct {
		switch t.text {
		case "(":
			r.open = append(r.open, len(r.stmt))
		case ")":
			if len(r.open) == 0 {
				r.sure = false
				break
			}
			last := r.open[len(r.open)-1]
			r.open = r.open[:len(r.open)-1]
			t.mate, r.stmt[last].mate = last, len(r.stmt)
		}
	}
	r.stmt = append(r.stmt, t)
}

// token reads one token that begins with c.
func (r *sqlReader) token(c byte) {
	rest := r.text[r.pos:]
	switch {
	case strings.HasPrefix(rest, "--"):
		// MySQL wants a blank after the dashes, others do not.
		if len(rest) > 2 && !isSpace(rest[2]) && (r.lang == MySQL || r.lang == SQL) {
			// Before a control character it is a comment for MySQL only.
			r.sure = r.sure && r.lang == MySQL && rest[2] > ' ' && rest[2] != 0x7f
			r.punct(2)
			return
		}
		r.line()
	case c == '#' && r.lang == MySQL:
		r.line()
	case strings.HasPrefix(rest, "/*"):
		r.comment(rest)
	case c == '\'' || c == '"' || c == '`':
		r.quoted(c, false)
	case c == '[' && r.lang == SQLite:
		end := strings.IndexByte(rest, ']')
		if end < 0 {
			r.sure = false
			r.pos = len(r.text)
			return
		}
		r.add(sqlToken{kind: sqlQuoted, text: rest[1:end]})
		r.pos += end + 1
	case c == '$' && r.lang == Postgres && r.dollar(rest):
	case c == '\\':
		r.backslash()
	case isWord(c):
		r.word(rest)
	case c == ';':
		r.sure = r.sure && len(r.open) == 0
		r.pos++
		r.finish()
	case c == ':':
		r.colon(rest)
	default:
		if strings.IndexByte("()*,.+-/%<>=!|&^~", c) < 0 {
			// Brackets, @, #, $, ?, { and the like: not every dialect agrees.
			r.sure = r.sure && r.lang != SQL && strings.IndexByte("[]@?$#", c) >= 0
		}
		r.punct(1)
	}
}

func (r *sqlReader) punct(n int) {
	r.add(sqlToken{kind: sqlPunct, text: r.text[r.pos : r.pos+n]})
	r.pos += n
}

// colon reads a cast or a parameter. psql puts the text of a variable in the
// place of :name.
func (r *sqlReader) colon(rest string) {
	if strings.HasPrefix(rest, "::") {
		r.punct(2)
		return
	}
	if r.lang != SQLite && (len(rest) < 2 || !isDigit(rest[1])) {
		r.sure = r.sure && len(rest) > 1 && rest[1] == '='
	}
	r.punct(1)
}

// comment skips a comment. PostgreSQL nests them; MySQL executes what stands
// behind an exclamation mark.
func (r *sqlReader) comment(rest string) {
	if (r.lang == MySQL || r.lang == SQL) && (strings.HasPrefix(rest, "/*!") || strings.HasPrefix(rest, "/*M!")) {
		r.sure = false
		r.pos += 2
		return
	}
	depth := 1
	for i := 2; i+1 < len(rest); i++ {
		switch rest[i : i+2] {
		case "/*":
			if r.lang == SQL {
				r.sure = false
			}
			if r.lang == Postgres {
				depth++
				i++
			}
		case "*/":
			i++
			if depth--; depth == 0 {
				r.pos += i + 1
				return
			}
		}
	}
	r.sure = false
	r.pos = len(r.text)
}

// dollar reads a string in dollar quotes, if one stands here.
func (r *sqlReader) dollar(rest string) bool {
	n := 1
	for n < len(rest) && isWord(rest[n]) && !(n == 1 && isDigit(rest[n])) {
		n++
	}
	if n == len(rest) || rest[n] != '$' {
		return false
	}
	tag := rest[:n+1]
	end := strings.Index(rest[len(tag):], tag)
	if end < 0 {
		r.sure = false
		r.pos = len(r.text)
		return true
	}
	r.add(sqlToken{kind: sqlString, text: rest[len(tag) : len(tag)+end]})
	r.pos += 2*len(tag) + end
	return true
}

// quoted reads a string or a quoted name. escapes: a backslash escapes, as in
// the E strings of PostgreSQL.
func (r *sqlReader) quoted(quote byte, escapes bool) {
	kind := sqlString
	if quote == '`' || quote == '"' {
		kind = sqlQuoted
	}
	if quote == '`' && r.lang == Postgres {
		r.sure = false
	}
	if quote != '`' && r.lang == MySQL {
		escapes = true
	}
	var b strings.Builder
	for i := r.pos + 1; i < len(r.text); i++ {
		c := r.text[i]
		switch {
		case c == '\\' && escapes && i+1 < len(r.text):
			i++
			b.WriteByte(unescape(r.text[i]))
		case c == '\\' && r.lang == SQL && i+1 < len(r.text) && (r.text[i+1] == quote || r.text[i+1] == '\\'):
			r.sure = false // the dialects end the string in different places
			b.WriteByte(c)
		case c == quote && i+1 < len(r.text) && r.text[i+1] == quote:
			i++
			b.WriteByte(c)
		case c == quote:
			r.pos = i + 1
			r.add(sqlToken{kind: kind, text: b.String()})
			return
		default:
			b.WriteByte(c)
		}
	}
	r.sure = false
	r.pos = len(r.text)
	r.add(sqlToken{kind: kind, text: b.String()})
}

// unescape gives the byte that a backslash makes of c in most languages.
func unescape(c byte) byte {
	switch c {
	case 'a':
		return '\a'
	case 'b':
		return '\b'
	case 'e':
		return 0x1b
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	case 'v':
		return '\v'
	}
	return c
}

// word reads a keyword, a name or a number. A prefix of a string is no word.
func (r *sqlReader) word(rest string) {
	n := 1
	for n < len(rest) && (isWord(rest[n]) || rest[n] == '$' || rest[n] == '.' && isDigit(rest[0])) {
		n++
	}
	word := strings.ToLower(rest[:n])
	if n < len(rest) && rest[n] == '\'' {
		switch {
		case word == "e" && r.lang == Postgres, word == "n", word == "x", word == "b":
			r.pos += n
			r.quoted('\'', word == "e")
			return
		case word == "e" || word == "u":
			r.sure = false
		}
	}
	// PostgreSQL folds only ASCII where MySQL compares more loosely: a keyword
	// in other letters is none, but which dialect knows that?
	for i := range len(word) {
		if word[i] >= 0x80 && r.lang == SQL {
			r.sure = false
			break
		}
	}
	r.add(sqlToken{kind: sqlWord, text: word})
	r.pos += n
}
