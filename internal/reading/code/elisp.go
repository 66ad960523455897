package code

import "strings"

// stepElisp reads one token of Emacs Lisp.
func stepElisp(lx *lexer) {
	if lx.blank() {
		return
	}
	c := lx.text[lx.pos]
	switch {
	case c == ';':
		lx.skipLine()
	case c == '"':
		lx.quoted(1, quote{shut: c, kind: tokString})
	case c == '?' && lx.pos+1 < len(lx.text) && !isSpace(lx.at(1)):
		n := 2
		for lx.at(n-1) == '\\' && lx.pos+n < len(lx.text) {
			n++
			if c := lx.at(n - 1); (isLetter(c) || c == '^') && lx.at(n) == '-' {
				n++ // ?\C-x
			}
			if lx.at(n-2) == '\\' && lx.at(n-1) == '\\' {
				break
			}
		}
		for isWord(lx.at(n)) {
			n++
		}
		n = min(n, len(lx.text)-lx.pos)
		lx.add(token{kind: tokNumber, text: lx.text[lx.pos : lx.pos+n]})
		lx.pos += n
	case strings.IndexByte("()[]'`,#", c) >= 0:
		lx.op(1)
	default:
		n := 1
		for lx.pos+n < len(lx.text) && !isSpace(lx.at(n)) && strings.IndexByte("()[]\"';`,", lx.at(n)) < 0 {
			if lx.at(n) == '\\' {
				n++
			}
			n++
		}
		n = min(n, len(lx.text)-lx.pos)
		lx.add(token{kind: tokName, text: lx.text[lx.pos : lx.pos+n]})
		lx.pos += n
	}
}

// elisp is a script with the functions of Emacs.
type elisp struct{ *script }

func readElisp(f *Finding, text string, nest int) {
	l := elisp{newScript(f, Elisp, text, nest, stepElisp, "")}
	l.each(func(i int) {
		if l.toks[i].is("(") && l.toks[i+1].kind == tokName && !l.prev(i).is("'") {
			l.call(l.toks[i+1].text, l.forms(i))
		}
	})
}

// maxForms is how many arguments of a form are looked at.
const maxForms = 64

// forms gives the arguments of the form whose parenthesis is token i.
func (l elisp) forms(i int) []span {
	end := l.toks[i].mate
	if end < 0 {
		end = min(i+2+maxBare/4, len(l.toks)-4) // Emacs would not read it
	}
	var out []span
	for i += 2; i < end && len(out) < maxForms; i++ {
		if l.toks[i].kind == tokLine {
			continue
		}
		from := i
		for i < end && l.toks[i].kind == tokOp && strings.IndexByte("'`,#", l.toks[i].text[0]) >= 0 {
			i++
		}
		i = max(i, l.toks[i].mate)
		out = append(out, span{from, min(i+1, end)})
	}
	return out
}

// text gives the string that a form makes, with holes; exact reports that it
// has none.
func (l elisp) text(a span) (text string, exact bool) {
	t := l.toks[a.from]
	switch {
	case t.kind == tokString:
		l.budget -= len(t.text)
		return t.text, t.literal && l.budget >= 0
	case t.is("(") && l.toks[a.from+1].named("concat"):
		var b strings.Builder
		exact = true
		for _, part := range l.forms(a.from) {
			if p := l.toks[part.from]; p.kind == tokString && l.budget >= len(p.text) {
				l.budget -= len(p.text)
				b.WriteString(p.text)
				exact = exact && p.literal
			} else {
				b.WriteRune(Hole)
				exact = false
			}
		}
		return b.String(), exact
	case t.is("(") && l.toks[a.from+1].named("format"):
		if parts := l.forms(a.from); len(parts) > 0 && l.toks[parts[0].from].kind == tokString {
			format := l.toks[parts[0].from]
			l.budget -= len(format.text)
			return verbs(format.text), false
		}
	}
	return "", false
}

// value gives argument n, if it is a literal string.
func (l elisp) value(args []span, n int) (string, bool) {
	if n >= len(args) {
		return "", false
	}
	return l.text(args[n])
}

// command records argument n as text for a shell.
func (l elisp) command(args []span, n int) {
	switch text, exact := l.value(args, n); {
	case exact:
		l.shell(text)
	default:
		l.partly(text)
	}
}

// words records the program at n and the words from argument more on.
func (l elisp) words(args []span, n, more int) {
	program, ok := l.value(args, n)
	list := []string{program}
	for i := more; i < len(args) && ok; i++ {
		if l.toks[args[i].from].named("nil") {
			continue
		}
		var word string
		word, ok = l.value(args, i)
		list = append(list, word)
	}
	if !ok {
		l.Starts = true
		return
	}
	l.argv(list)
}

func (l elisp) call(name string, args []span) {
	switch name {
	case "shell-command", "shell-command-to-string", "async-shell-command", "call-process-shell-command", "process-file-shell-command", "compile", "eshell-command", "recompile":
		l.command(args, 0)
	case "shell-command-on-region", "start-process-shell-command", "start-file-process-shell-command":
		l.command(args, 2)
	case "call-process", "process-file":
		l.words(args, 0, 4)
	case "call-process-region":
		l.words(args, 2, 6)
	case "start-process", "start-file-process":
		l.words(args, 2, 3)
	case "process-lines", "process-lines-ignore-status":
		l.words(args, 0, 1)
	case "make-process", "make-term", "ansi-term", "term", "load-library", "module-load", "comint-send-string", "process-send-string":
		l.Starts = true
	case "read", "read-from-string":
		// What is read from a string is most likely evaluated.
		if text, ok := l.value(args, 0); ok {
			l.merge(read(Elisp, text, l.nest+1))
		}
	case "kill-process", "signal-process", "delete-process", "interrupt-process":
		l.Destroy = true
	default:
		l.file(name, args)
	}
}

func (l elisp) file(name string, args []span) {
	switch name {
	case "delete-file", "delete-directory", "move-file-to-trash", "dired-delete-file", "f-delete":
		l.deletes(l.value(args, 0))
	case "write-region", "append-to-file":
		l.writes(l.value(args, 2))
	case "write-file", "with-temp-file", "make-directory", "set-file-modes", "set-file-times", "make-empty-file", "set-visited-file-name":
		l.writes(l.value(args, 0))
	case "save-buffer", "save-some-buffers", "basic-save-buffer":
		l.writes("", false)
	case "copy-file", "rename-file", "copy-directory", "make-symbolic-link", "add-name-to-file":
		l.reads(l.value(args, 0))
		l.writes(l.value(args, 1))
	case "insert-file-contents", "insert-file", "find-file", "find-file-noselect", "load", "load-file":
		l.reads(l.value(args, 0))
	case "url-retrieve", "url-retrieve-synchronously", "url-insert-file-contents", "browse-url", "eww", "request":
		l.contacts(l.value(args, 0))
	case "url-copy-file":
		l.contacts(l.value(args, 0))
		l.writes(l.value(args, 1))
	case "open-network-stream":
		l.contacts(l.value(args, 2))
	case "make-network-process", "package-install", "package-refresh-contents", "package-vc-install", "smtpmail-send-it", "message-send":
		l.Network = true
	}
}
