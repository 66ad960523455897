package code

import "strings"

// gdbScript reads commands of gdb, one a line.
type gdbScript struct {
	*Finding
	nest int
	sure bool
}

// readGdb reports whether all commands only show something.
func readGdb(f *Finding, text string, nest int) bool {
	g := gdbScript{Finding: f, nest: nest, sure: true}
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		line := strings.TrimSpace(lines[i])
		name, arg := gdbName(line)
		if arg == "" && (name == "python" || name == "py") {
			start := i + 1
			for i+1 < len(lines) && strings.TrimSpace(lines[i+1]) != "end" {
				i++
			}
			g.python(strings.Join(lines[start:i+1], "\n"))
			i++
			continue
		}
		g.command(name, arg)
	}
	return g.sure
}

// gdbName splits a command. A bang or a bar needs no blank behind it, and a
// slash begins the format of what is printed.
func gdbName(line string) (name, arg string) {
	n := 0
	for n < len(line) && (isWord(line[n]) || line[n] == '-' && n > 0) {
		n++
	}
	if n == 0 && line != "" {
		n = 1
	}
	return line[:n], strings.TrimSpace(line[n:])
}

func (g *gdbScript) python(text string) {
	g.sure = false
	g.merge(read(Python, text, g.nest+1))
}

func (g *gdbScript) command(name, arg string) {
	switch name {
	case "", "#", "bt", "backtrace", "where", "q", "quit", "show", "help", "h", "list", "l", "disassemble", "disas", "frame", "f", "up",
		"down", "ptype", "whatis", "thread", "echo", "set", "print", "p", "inspect", "output", "x", "info", "i":
		g.show(name, arg)
	case "shell", "she", "shel", "!":
		g.shellText(arg)
	case "make":
		g.sure = false
		g.shell(strings.TrimSpace("make " + arg))
	case "pipe", "|":
		g.pipe(arg)
	case "python", "py":
		g.python(arg)
	case "python-interactive", "pi":
		g.python(arg)
	case "source":
		g.sure = false
		g.reads(arg, arg != "" && arg[0] != '-')
	case "dump", "append", "save", "generate-core-file", "gcore", "tsave":
		g.sure = false
		g.file(name, arg)
	case "target", "tar":
		g.target(arg)
	case "run", "r", "start", "starti", "guile", "gu", "compile":
		g.Starts = true
	case "kill", "k", "detach":
		g.Destroy, g.sure = true, false
	case "load", "restore":
		g.Write, g.sure = true, false
	default:
		g.sure = false
		if len(name) > 1 && strings.HasPrefix("shell", name) {
			g.shellText(arg)
		}
	}
}

// shellText records a command; without one a shell waits for commands.
func (g *gdbScript) shellText(text string) {
	if text == "" {
		g.Starts = true
		return
	}
	g.shell(text)
}

// show judges commands that show something, unless their argument acts: an
// expression may call functions and assign.
func (g *gdbScript) show(name, arg string) {
	switch name {
	case "set":
		g.set(arg)
		return
	case "thread":
		if command, found := strings.CutPrefix(arg, "apply"); found {
			g.apply(command)
			return
		}
	case "echo", "#", "help", "h":
		return
	case "frame", "f":
		if command, found := strings.CutPrefix(arg, "apply"); found {
			g.apply(command)
			return
		}
	}
	switch name {
	case "print", "p", "inspect", "output", "x", "list", "l", "ptype", "whatis", "frame", "f", "up", "down", "disassemble", "disas", "info", "i":
		switch {
		case strings.Contains(arg, "$_shell"), strings.Contains(arg, "$_gdb_setting"):
			g.convenience(arg)
			return
		case strings.ContainsAny(arg, "(=|") || strings.Contains(arg, "++") || strings.Contains(arg, "--"):
			g.sure = false
		}
		return
	}
	g.sure = g.sure && !strings.ContainsAny(arg, "(=|")
}

// apply reads the command that is applied to threads or frames, behind their
// numbers and the options.
func (g *gdbScript) apply(text string) {
	for {
		text = strings.TrimLeft(text, " \t")
		word, rest, _ := strings.Cut(text, " ")
		if word != "all" && word != "level" && (word == "" || !isDigit(word[0]) && word[0] != '-' && word[0] != '$') {
			break
		}
		text = rest
	}
	switch name, arg := gdbName(text); name {
	case "bt", "backtrace", "where":
	case "", "thread", "frame", "f", "pipe", "|", "print", "p":
		g.sure = false
	default:
		g.sure = false
		g.command(name, arg)
	}
}

// convenience reads the function $_shell.
func (g *gdbScript) convenience(arg string) {
	g.sure = false
	_, rest, found := strings.Cut(arg, "$_shell")
	if !found {
		return
	}
	rest = strings.TrimLeft(rest, " (")
	if text, after, ok := vimString(rest); ok && strings.HasPrefix(after, ")") {
		g.shell(text)
		return
	}
	g.Starts = true
}

// set judges settings: those of the looks are known.
func (g *gdbScript) set(arg string) {
	setting, value := gdbName(arg)
	switch setting {
	case "pagination", "confirm", "height", "width", "verbose", "disassembly-flavor", "listsize", "style":
	case "print", "p":
	case "logging":
		g.sure = false
		g.Write = true
		if file, found := strings.CutPrefix(value, "file "); found {
			g.writes(strings.TrimSpace(file), true)
		}
	default:
		g.sure = false
	}
	if strings.ContainsAny(value, "(=") {
		g.sure = false
	}
}

// pipe reads `pipe command | shell text`, whose delimiter an option may change.
func (g *gdbScript) pipe(arg string) {
	g.sure = false
	command, text, found := strings.Cut(arg, "|")
	if !found || strings.HasPrefix(arg, "-d") {
		g.Starts = true
		return
	}
	g.shell(strings.TrimSpace(text))
	if name, rest := gdbName(strings.TrimSpace(command)); name != "pipe" && name != "|" {
		g.command(name, rest)
	}
}

// file judges commands that write a file.
func (g *gdbScript) file(name, arg string) {
	words := strings.Fields(arg)
	at := len(words) - 1
	if name == "dump" || name == "append" {
		// dump [format] memory|value FILE …
		for i, w := range words {
			if (w == "memory" || w == "value") && i+1 < len(words) {
				g.writes(words[i+1], true)
				return
			}
		}
		at = -1
	}
	if at < 0 {
		g.writes("", false)
		return
	}
	g.writes(words[at], true)
}

// target judges what is debugged: a host, a serial line, a program.
func (g *gdbScript) target(arg string) {
	g.sure = false
	kind, where := gdbName(arg)
	if kind != "remote" && kind != "extended-remote" && kind != "rem" {
		return
	}
	if command, found := strings.CutPrefix(where, "|"); found {
		g.shell(strings.TrimSpace(command))
		return
	}
	g.contacts(where, true)
}
