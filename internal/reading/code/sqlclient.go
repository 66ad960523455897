package code

import "strings"

// backslash reads a command of psql or mysql.
func (r *sqlReader) backslash() {
	rest := r.text[r.pos:]
	if r.lang == SQLite || len(rest) < 2 {
		r.sure = false
		r.pos++
		return
	}
	switch {
	case rest[1] == '!':
		r.pos += 2
		r.interactive(strings.TrimSpace(r.line()))
	case r.lang == MySQL:
		r.mysqlCommand(rest[1])
	case rest[1] == ';' || rest[1] == '\\':
		r.sure = r.sure && r.lang == Postgres
		r.pos += 2
		if rest[1] == ';' {
			r.finish()
		}
	default:
		r.psqlCommand(rest)
	}
}

// interactive records the command of a shell escape; without one a shell waits
// for commands.
func (r *sqlReader) interactive(command string) {
	if command == "" {
		r.Starts = true
		return
	}
	r.shell(command)
}

// mysqlCommand reads a command of the mysql client, which is one letter.
func (r *sqlReader) mysqlCommand(name byte) {
	r.pos += 2
	switch name {
	case 'g', 'G':
		r.finish()
	case 'h', '?', 's', 't', 'n', 'p', 'W', 'w', 'x', 'q', 'N':
	case '.':
		r.reads(r.argument(), true)
		r.sure = false
	case 'T':
		r.writes(r.argument(), true)
	case 'P':
		if command := r.argument(); command != "" {
			r.shell(command)
		}
	case 'e':
		r.Starts = true
	default:
		r.sure = false
	}
}

// argument takes the rest of the line as one argument.
func (r *sqlReader) argument() string {
	return strings.TrimRight(strings.TrimSpace(r.line()), "; \t")
}

// clientWord reads a line that begins with a command word of the mysql client.
// It reports whether there was one.
func (r *sqlReader) clientWord() bool {
	rest := r.text[r.pos:]
	n := 0
	for n < len(rest) && n < 32 && isLetter(rest[n]) {
		n++
	}
	if n < len(rest) && !isSpace(rest[n]) && rest[n] != ';' {
		return false
	}
	word := strings.ToLower(rest[:n])
	switch word {
	case "system", "source", "tee", "pager", "edit", "delimiter", "connect", "status", "exit", "quit", "nopager", "notee", "rehash":
	default:
		return false
	}
	r.pos += n
	arg := r.argument()
	switch word {
	case "system":
		r.interactive(arg)
	case "source":
		r.reads(arg, true)
		r.sure = false
	case "tee":
		r.writes(arg, true)
	case "pager":
		if arg != "" {
			r.shell(arg)
		}
	case "edit":
		r.Starts = true
	case "connect":
		r.Network, r.sure = true, false
	case "delimiter":
		r.sure = false
	}
	return true
}

// psqlCommand reads a command of psql. Its arguments end at the next backslash
// or with the line.
func (r *sqlReader) psqlCommand(rest string) {
	n := 1
	for n < len(rest) && !isSpace(rest[n]) && rest[n] != '\\' {
		n++
	}
	name := rest[1:n]
	r.pos += n
	var args string
	if name == "copy" || strings.HasPrefix(strings.TrimLeft(r.text[r.pos:min(r.pos+64, len(r.text))], " \t"), "|") {
		args = r.line()
	} else {
		end := strings.IndexAny(r.text[r.pos:], "\\\n")
		if end < 0 {
			end = len(r.text) - r.pos
		}
		args = r.text[r.pos : r.pos+end]
		r.pos += end
		if strings.HasPrefix(r.text[r.pos:], "\\") && strings.ContainsAny(args, "'\"`") {
			r.sure = false // the backslash may be quoted
		}
	}
	args = strings.TrimSpace(args)
	if r.lang == SQL {
		switch name {
		case "g", "gx", "x", "timing", "q", "copy", "o", "w", "i":
		default:
			r.sure = false // means something else to the mysql client
		}
	}
	r.expansions(name, args)
	r.psqlEffect(name, args)
}

// expansions looks at what psql puts in the place of parts of arguments: the
// output of commands in backquotes, and variables.
func (r *sqlReader) expansions(name, args string) {
	echo := name == "echo" || name == "qecho" || name == "warn"
	before, after, found := strings.Cut(args, "`")
	for found {
		var command string
		command, after, found = strings.Cut(after, "`")
		if !found {
			r.Starts = true
			return
		}
		r.shell(command)
		r.sure = r.sure && echo
		_, after, found = strings.Cut(after, "`")
	}
	if i := strings.IndexByte(before, ':'); i >= 0 && !echo {
		r.sure = false
	}
}

// psqlEffect judges a command of psql.
func (r *sqlReader) psqlEffect(name, args string) {
	word, _, _ := strings.Cut(args, " ")
	switch name {
	case "g", "gx":
		r.finish()
		r.target(args)
	case "gdesc", "crosstabview", "watch":
		r.finish()
	case "o", "out", "w", "write", "s":
		r.target(args)
	case "copy":
		r.clientCopy(args)
	case "i", "ir", "include", "include_relative":
		r.reads(args, true)
		r.sure = false
	case "lo_import":
		r.reads(word, true)
		r.Write = true
	case "lo_export":
		_, file, _ := strings.Cut(args, " ")
		r.writes(strings.TrimSpace(file), true)
	case "lo_unlink":
		r.Write, r.Destroy = true, true
	case "c", "connect":
		r.Network, r.sure = true, false
	case "password":
		r.Write, r.Privilege = true, true
	case "e", "edit", "ef", "ev":
		r.Starts = true
	case "set":
		switch word {
		case "ON_ERROR_STOP", "ON_ERROR_ROLLBACK", "AUTOCOMMIT", "ECHO", "ECHO_HIDDEN", "QUIET", "VERBOSITY", "FETCH_COUNT", "SHOW_CONTEXT":
		default:
			r.sure = false
		}
	case "l", "l+", "list", "list+", "z", "sf", "sf+", "sv", "sv+", "conninfo", "timing", "x", "a", "t", "H", "pset", "f", "C",
		"encoding", "q", "h", "help", "?", "copyright", "r", "p", "errverbose", "echo", "qecho", "warn", "lo_list":
	default:
		if !describes(name) {
			r.sure = false
		}
	}
}

// describes reports whether a command of psql is of the family \d.
func describes(name string) bool {
	if name == "" || name[0] != 'd' {
		return false
	}
	for i := 1; i < len(name); i++ {
		if !isLetter(name[i]) && name[i] != '+' {
			return false
		}
	}
	return len(name) <= 6
}

// target judges where psql sends output: nowhere else, a file or a command.
func (r *sqlReader) target(args string) {
	switch {
	case args == "":
	case args[0] == '|':
		r.interactive(strings.TrimSpace(args[1:]))
	case args[0] == '(' || strings.ContainsAny(args, " '\"`:"):
		r.Write, r.sure = true, false
	default:
		r.writes(args, true)
	}
}

// clientCopy reads psql's \copy, whose files are those of the client and may
// stand without quotes.
func (r *sqlReader) clientCopy(args string) {
	sub := sqlReader{Finding: r.Finding, lang: r.lang, text: args, sure: true}
	sub.add(sqlToken{kind: sqlWord, text: "copy"})
	for sub.pos < len(sub.text) {
		switch c := sub.text[sub.pos]; {
		case isSpace(c):
			sub.pos++
		case c == '\\' || c == ';':
			sub.sure = false
			sub.pos++
		case c == '/' || c == '.' || c == '~':
			start := sub.pos
			for sub.pos < len(sub.text) && !isSpace(sub.text[sub.pos]) {
				sub.pos++
			}
			sub.add(sqlToken{kind: sqlString, text: sub.text[start:sub.pos]})
		default:
			sub.token(c)
		}
	}
	if len(sub.open) > 0 {
		sub.sure = false
	} else {
		sub.copyTable(sub.stmt)
	}
	r.sure = r.sure && sub.sure
}
