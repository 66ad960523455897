package code

import "strings"

// vimScript reads Ex commands of vim. Vim's commands can do anything, and what
// a command does depends on much that no text shows; so only a few are known.
type vimScript struct {
	*Finding
	nest int
	sure bool
}

// readVim reports whether all commands are known ones.
func readVim(f *Finding, text string, nest int) bool {
	v := vimScript{Finding: f, nest: nest, sure: true}
	for line := range strings.Lines(text) {
		v.line(strings.TrimSpace(line))
	}
	return v.sure
}

// line reads the commands of one line, which bars separate.
func (v *vimScript) line(line string) {
	for line != "" {
		command := strings.TrimLeft(line, ": \t|")
		name, bang, arg := vimName(command)
		if vimTakesBar(name, bang, arg) {
			v.command(name, bang, arg)
			return
		}
		i := 0
		for i < len(arg) && (arg[i] != '|' || i > 0 && arg[i-1] == '\\') {
			i++
		}
		v.command(name, bang, strings.TrimSpace(arg[:i]))
		if i == len(arg) {
			return
		}
		line = arg[i+1:]
	}
}

// vimName splits a command behind its range.
func vimName(command string) (name string, bang bool, arg string) {
	i := 0
	for i < len(command) {
		c := command[i]
		switch {
		case c == '/' || c == '?':
			n := edReplacement(command[i+1:], c)
			i += 1 + n
			continue
		case c == '\'':
			i += 2
			continue
		case strings.IndexByte("%.$,;+-0123456789 \t:", c) >= 0:
			i++
			continue
		}
		break
	}
	command = command[min(i, len(command)):]
	n := 0
	for n < len(command) && isLetter(command[n]) {
		n++
	}
	if n == 0 && command != "" {
		n = 1 // ! & < > = @ #
	}
	name, arg = command[:n], command[n:]
	if strings.HasPrefix(arg, "!") {
		bang, arg = true, arg[1:]
	}
	return name, bang, strings.TrimSpace(arg)
}

// vimTakesBar reports whether a bar is part of the argument (":help :bar").
func vimTakesBar(name string, bang bool, arg string) bool {
	switch name {
	case "r", "read":
		return bang || strings.HasPrefix(arg, "!")
	case "w", "write":
		return strings.HasPrefix(arg, "!")
	case "!", "g", "global", "v", "vglobal", "argdo", "bufdo", "windo", "tabdo", "cdo", "cfdo", "ldo", "lfdo",
		"normal", "norm", "python", "py", "python3", "py3", "pythonx", "pyx", "lua", "perl", "ruby", "term", "terminal", "au", "autocmd", "s", "substitute":
		return true
	}
	return false
}

func (v *vimScript) command(name string, bang bool, arg string) {
	switch name {
	case "":
	case "q", "quit", "qa", "qall", "quita", "quitall", "cq", "cquit", "noh", "nohlsearch", "echo", "echom", "echomsg", "version", "ve", "p", "print", "nu", "number", "d", "delete", "ju", "jumps", "marks", "reg", "registers", "ls", "files", "buffers", "u", "undo", "red", "redo":
		if name == "echo" || name == "echom" || name == "echomsg" {
			v.expression(arg)
		}
		v.sure = v.sure && !strings.ContainsAny(arg, "(=`")
	case "set", "se", "setlocal", "setl":
		v.sure = v.sure && vimOptions(arg)
	case "w", "write", "wq", "x", "xit", "wa", "wall", "wqa", "wqall", "xa", "xall", "up", "update", "sav", "saveas", "exi", "exit":
		v.write(arg, bang)
	case "!":
		if bang {
			v.Starts = true // the command before is part of it
			return
		}
		v.shellText(arg)
	case "r", "read":
		if bang || strings.HasPrefix(arg, "!") {
			v.shellText(strings.TrimPrefix(arg, "!"))
			return
		}
		v.sure = false
		v.reads(arg, arg != "" && !strings.ContainsAny(arg, "%#`*? +"))
	case "e", "edit", "so", "source", "vie", "view", "sp", "split", "vs", "vsplit", "tabe", "tabedit", "n", "next":
		v.sure = false
		v.reads(arg, arg != "" && !strings.ContainsAny(arg, "%#`*? +"))
	case "sh", "shell":
		v.Starts = true
	case "term", "terminal":
		v.sure = false
		v.shellText(strings.TrimPrefix(arg, "++close "))
	case "s", "substitute":
		v.substitute(arg)
	case "g", "global", "v", "vglobal":
		v.global(arg)
	case "argdo", "bufdo", "windo", "tabdo", "cdo", "cfdo", "sil", "silent", "verb", "verbose", "noa", "noautocmd", "keepj", "keepjumps", "keepp", "keeppatterns":
		v.sure = v.sure && vimKnownDo(name)
		if name == "verb" || name == "verbose" {
			v.sure = false
			arg = strings.TrimLeft(arg, "0123456789 ")
		}
		v.inner(arg)
	case "python", "py", "python3", "py3", "pythonx", "pyx":
		v.other(Python, arg)
	case "lua":
		v.other(Lua, arg)
	case "perl":
		v.other(Perl, arg)
	case "ruby":
		v.other(Ruby, arg)
	case "exe", "execute":
		v.sure = false
		if text, rest, ok := vimString(arg); ok && rest == "" {
			v.inner(text)
		} else {
			v.Starts = true
		}
	case "redi", "redir":
		v.sure = false
		if file, found := strings.CutPrefix(strings.TrimLeft(arg, "!"), ">"); found {
			v.writes(strings.TrimLeft(file, "> !"), true)
		}
	default:
		v.sure = false
		v.expression(arg)
		if i := strings.Index(arg, ":!"); i >= 0 && (name == "norm" || name == "normal") {
			v.Starts = true
		}
	}
}

// substitute reads s/pattern/text/flags. The text may be an expression, which
// may call functions; a bar behind the flags begins another command.
func (v *vimScript) substitute(arg string) {
	if arg == "" || isWord(arg[0]) || strings.IndexByte("&\\|\"", arg[0]) >= 0 {
		v.sure = false
		v.expression(arg)
		if _, more, found := strings.Cut(arg, "|"); found {
			v.inner(more)
		}
		return
	}
	rest := arg[1+edReplacement(arg[1:], arg[0]):]
	text := rest[:edReplacement(rest, arg[0])]
	rest = rest[len(text):]
	if strings.HasPrefix(text, `\=`) {
		v.sure = false
		v.expression(text)
	}
	flags, more, _ := strings.Cut(rest, "|")
	v.sure = v.sure && strings.Trim(flags, "&cegiInp#lr 0123456789") == ""
	v.inner(more)
}

func vimKnownDo(name string) bool {
	switch name {
	case "windo", "tabdo", "sil", "silent", "keepj", "keepjumps", "keepp", "keeppatterns", "noa", "noautocmd":
		return true
	}
	return false
}

// inner reads a command that stands behind another one.
func (v *vimScript) inner(text string) {
	if v.nest >= maxNest {
		v.sure, v.Starts = false, true
		return
	}
	v.nest++
	v.line(text)
	v.nest--
}

// other reads code of another language.
func (v *vimScript) other(lang Lang, text string) {
	v.sure = false
	v.merge(read(lang, text, v.nest+1))
}

// write judges the commands that write the buffer.
func (v *vimScript) write(arg string, bang bool) {
	if command, found := strings.CutPrefix(arg, "!"); found || bang && strings.HasPrefix(arg, "!") {
		v.shellText(command)
		return
	}
	append := strings.TrimLeft(strings.TrimPrefix(arg, ">>"), " ")
	literal := append != "" && !strings.ContainsAny(append, "%#`*?+|$~\\<{[\"\x16")
	v.writes(append, literal)
	v.sure = v.sure && (literal || append == "")
}

// shellText records a command. Percent and number signs stand for file names.
func (v *vimScript) shellText(text string) {
	text = strings.TrimSpace(text)
	switch {
	case text == "" || strings.ContainsAny(text, "%#!<"):
		v.Starts = true
		if text != "" && !strings.ContainsAny(text, "%#!") {
			v.shell(text)
		}
	default:
		v.shell(text)
	}
}

// vimOptions reports whether options are set that only change the looks.
func vimOptions(arg string) bool {
	for _, option := range strings.Fields(arg) {
		name, _, _ := strings.Cut(option, "=")
		name = strings.TrimSuffix(strings.TrimPrefix(name, "no"), "?")
		switch name {
		case "number", "nu", "relativenumber", "rnu", "hlsearch", "hls", "ignorecase", "ic", "smartcase", "scs", "wrap", "list", "ruler",
			"ru", "compatible", "cp", "expandtab", "et", "tabstop", "ts", "shiftwidth", "sw", "more", "swapfile", "swf", "readonly", "ro",
			"modeline", "ml", "incsearch", "is", "paste", "ff", "fileformat", "eol", "fixeol", "bomb":
		default:
			return false
		}
	}
	return true
}

// global reads g/pattern/command.
func (v *vimScript) global(arg string) {
	if arg == "" || isWord(arg[0]) || strings.IndexByte("\\|\"", arg[0]) >= 0 {
		v.sure = false
		return
	}
	n := edReplacement(arg[1:], arg[0])
	command := arg[1+n:]
	if command != "" {
		v.inner(command)
	}
}

// expression looks for the functions that act, with literal arguments.
func (v *vimScript) expression(text string) {
	for rest := text; ; {
		i := strings.IndexByte(rest, '(')
		if i < 0 {
			return
		}
		start := i
		for start > 0 && (isWord(rest[start-1]) || rest[start-1] == '#') {
			start--
		}
		name := rest[start:i]
		rest = rest[i+1:]
		arg, after, ok := vimString(rest)
		ok = ok && (strings.HasPrefix(after, ")") || strings.HasPrefix(after, ","))
		switch name {
		case "system", "systemlist", "term_start", "job_start", "termopen", "jobstart":
			if ok {
				v.shell(arg)
			} else {
				v.Starts = true
			}
		case "delete":
			v.deletes(arg, ok)
		case "writefile", "rename", "mkdir", "setfperm":
			v.writes("", false)
		case "readfile":
			v.reads(arg, ok)
		case "execute":
			if ok {
				v.inner(arg)
			} else {
				v.Starts = true
			}
		case "libcall", "libcallnr", "py3eval", "pyeval", "luaeval", "perleval", "rubyeval", "feedkeys":
			v.Starts = true
		case "":
			continue
		}
		if name != "" {
			v.sure = false
		}
	}
}

// vimString reads a string at the beginning of a text.
func vimString(text string) (value, rest string, ok bool) {
	text = strings.TrimLeft(text, " ")
	if text == "" || text[0] != '\'' && text[0] != '"' {
		return "", text, false
	}
	var b strings.Builder
	for i := 1; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && text[0] == '"' && i+1 < len(text):
			i++
			if text[i] == '<' || isDigit(text[i]) || text[i] == 'x' || text[i] == 'u' || text[i] == 'U' {
				return "", text, false
			}
			b.WriteByte(unescape(text[i]))
		case c == text[0] && c == '\'' && i+1 < len(text) && text[i+1] == c:
			i++
			b.WriteByte(c)
		case c == text[0]:
			return b.String(), strings.TrimLeft(text[i+1:], " "), true
		default:
			b.WriteByte(c)
		}
	}
	return "", text, false
}
