package code

import (
	"slices"
	"strings"
)

// dot reads a dot command of sqlite3 ("Command Line Shell For SQLite").
func (r *sqlReader) dot(line string) {
	args, ok := dotArgs(line[1:])
	if !ok {
		r.sure = false
	}
	if len(args) == 0 {
		return
	}
	name, args := args[0], args[1:]
	switch name {
	case "tables", "schema", "fullschema", "indexes", "indices", "databases", "dbinfo", "headers", "header", "mode", "separator",
		"nullvalue", "width", "timer", "stats", "show", "help", "echo", "bail", "changes", "eqp", "explain", "print", "prompt",
		"quit", "exit", "version", "vfslist", "vfsname", "limit", "timeout", "scanstats", "sha3sum", "dump", "lint", "expert", "crnl",
		"colseparator", "rowseparator", "binary":
		// These show something or change how it looks.
	case "shell", "system":
		r.dotShell(args)
	case "output", "once", "trace", "log":
		r.dotOutput(args)
	case "backup", "save", "clone":
		r.dotWrite(args)
	case "excel", "www", "edit":
		r.Starts = true
	case "import":
		r.Write = true
		r.dotInput(args, 0)
	case "read":
		r.sure = false
		r.dotInput(args, 0)
	case "open":
		r.dotOpen(args)
	case "restore":
		r.Write, r.Destroy = true, true
		r.dotInput(args, len(args)-1)
	case "archive", "ar":
		r.Write, r.sure = true, false
	default:
		r.sure = false
		r.dotPrefix(name, args)
	}
}

// dotPrefix reads a shortened command, as far as it may be a dangerous one.
func (r *sqlReader) dotPrefix(name string, args []string) {
	for _, full := range [...]string{"shell", "system"} {
		if strings.HasPrefix(full, name) {
			r.dotShell(args)
			return
		}
	}
	for _, full := range [...]string{"output", "once", "backup", "save", "import", "clone", "restore", "archive"} {
		if strings.HasPrefix(full, name) {
			r.Write = true
		}
	}
}

// dotShell joins the words as sqlite3 does: a word with a space gets quotes.
func (r *sqlReader) dotShell(args []string) {
	if len(args) == 0 {
		return // only prints its usage
	}
	var b strings.Builder
	for i, a := range args {
		if i > 0 {
			b.WriteByte(' ')
		}
		if strings.IndexByte(a, ' ') >= 0 {
			b.WriteString(`"` + a + `"`)
		} else {
			b.WriteString(a)
		}
	}
	r.shell(b.String())
}

func (r *sqlReader) dotOutput(args []string) {
	for _, a := range args {
		switch {
		case a == "-e" || a == "-x":
			r.Starts = true // opens an editor or a spreadsheet
		case strings.HasPrefix(a, "-"):
		case strings.HasPrefix(a, "|"):
			// The rest of the line is the command.
			r.dotPipe(args)
			return
		case a == "stdout" || a == "stderr" || a == "off" || a == "on":
		default:
			r.writes(a, true)
		}
	}
}

// dotPipe records the command behind a bar. With words behind it the versions
// differ on how they are joined.
func (r *sqlReader) dotPipe(args []string) {
	for i, a := range args {
		if strings.HasPrefix(a, "|") {
			r.interactive(strings.TrimSpace(strings.Join(args[i:], " ")[1:]))
			r.sure = r.sure && i == len(args)-1
			return
		}
	}
}

func (r *sqlReader) dotWrite(args []string) {
	r.Write = true
	if len(args) > 0 {
		r.writes(args[len(args)-1], true)
	}
}

// dotInput records the file or the command that is read.
func (r *sqlReader) dotInput(args []string, at int) {
	for at >= 0 && at < len(args) && strings.HasPrefix(args[at], "-") {
		r.sure = false // options, some of which take a value
		at++
	}
	if at < 0 || at >= len(args) {
		return
	}
	if command, found := strings.CutPrefix(args[at], "|"); found {
		r.interactive(command)
		return
	}
	r.reads(args[at], true)
}

// dotOpen reads .open, which makes a database that is missing, whatever the
// one before was opened for.
func (r *sqlReader) dotOpen(args []string) {
	fresh, shut := false, slices.ContainsFunc(args, func(a string) bool { return strings.TrimLeft(a, "-") == "readonly" && a[0] == '-' })
	for _, a := range args {
		switch strings.TrimLeft(a, "-") {
		case "new":
			fresh = true
		case "readonly", "nofollow", "append", "zip", "deserialize", "hexdb":
			r.sure = r.sure && a != "--append"
		default:
			switch {
			case strings.HasPrefix(a, "-"):
				r.sure = false
			case fresh:
				r.empties(a, true)
			case shut || a == ":memory:":
				r.reads(a, true)
			default:
				r.writes(a, true)
			}
		}
	}
}

// dotArgs splits the words of a dot command: single quotes are plain, double
// quotes have backslash escapes. It reports whether the quotes were closed.
func dotArgs(line string) ([]string, bool) {
	var args []string
	for i := 0; ; {
		for i < len(line) && isSpace(line[i]) {
			i++
		}
		if i == len(line) {
			return args, true
		}
		quote := line[i]
		if quote != '\'' && quote != '"' {
			start := i
			for i < len(line) && !isSpace(line[i]) {
				i++
			}
			args = append(args, line[start:i])
			continue
		}
		var b strings.Builder
		for i++; ; i++ {
			if i == len(line) {
				return append(args, b.String()), false
			}
			c := line[i]
			if c == quote {
				i++
				break
			}
			if c == '\\' && quote == '"' && i+1 < len(line) {
				i++
				c = unescape(line[i])
			}
			b.WriteByte(c)
		}
		args = append(args, b.String())
	}
}
