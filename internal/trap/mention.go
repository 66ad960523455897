package trap

import (
	"sort"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// stretch is a part of a text, from its first byte to before its last.
type stretch struct{ from, to int }

// mentions are the stretches of a text in which a word only stands to be read:
// what a commit message, a search pattern, a here-document into a file or a
// comment says. They are ordered and apart from one another. Where it is not
// certain that nobody runs a piece of text, it is no mention.
type mentions []stretch

// holds tells whether a position lies in one of them.
func (m mentions) holds(at int) bool {
	i := sort.Search(len(m), func(i int) bool { return m[i].to > at })
	return i < len(m) && m[i].from <= at
}

// mentionsIn collects the mentions of a parsed text.
func mentionsIn(text string, file *syntax.File) mentions {
	r := reader{text: text}
	r.statements(file, false)
	if strings.Contains(text, "#") {
		r.comments()
	}
	sort.Slice(r.found, func(i, j int) bool { return r.found[i].from < r.found[j].from })
	return r.found
}

// reader walks a parsed text in search of mentions.
type reader struct {
	text  string
	base  int // where the text begins in the outermost one
	depth int // of text in text
	level int // of statements in statements
	found mentions
}

// comments parses the text once more, because a parse that others need seldom
// keeps them.
func (r *reader) comments() {
	file, err := syntax.NewParser(syntax.KeepComments(true)).Parse(strings.NewReader(r.text), "")
	if err != nil {
		return
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		if c, ok := n.(*syntax.Comment); ok {
			r.add(c)
		}
		return true
	})
}

func (r *reader) add(n syntax.Node) {
	r.found = append(r.found, stretch{r.base + int(n.Pos().Offset()), r.base + int(n.End().Offset())})
}

// statements goes through the statements below a node. runs tells that what
// they print is run.
func (r *reader) statements(node syntax.Node, runs bool) {
	if r.level == maxLevels {
		return
	}
	r.level++
	defer func() { r.level-- }()
	syntax.Walk(node, func(n syntax.Node) bool {
		if s, ok := n.(*syntax.Stmt); ok && n != node {
			r.statement(s, runs)
			return false
		}
		return true
	})
}

func (r *reader) statement(s *syntax.Stmt, runs bool) {
	if binary, ok := s.Cmd.(*syntax.BinaryCmd); ok && !isPipe(binary.Op) {
		r.statement(binary.X, runs)
		r.statement(binary.Y, runs)
		return
	}
	members := pipeline(s)
	for i := len(members) - 1; i >= 0; i-- {
		member := members[i]
		c, ok := callOf(member)
		data := ok && onlyReads(c)
		if !data || leaves(member, c) {
			if ok && isShell(c.name) {
				r.shell(c)
			}
			inside := runs
			if ok {
				inside = true // what a substitution prints is an argument of who knows what
			}
			r.statements(member, inside)
			runs = true
			continue
		}
		r.statements(member, runs)
		if runs {
			continue
		}
		for _, a := range c.args[1:] {
			r.literals(a.word)
		}
		for _, redirect := range member.Redirs {
			r.literals(redirect.Word)
			r.literals(redirect.Hdoc)
		}
	}
}

// literals adds the literal parts of a word.
func (r *reader) literals(w *syntax.Word) {
	if w == nil {
		return
	}
	for _, part := range flat(w) {
		switch part.(type) {
		case *syntax.Lit, *syntax.SglQuoted:
			r.add(part)
		}
	}
}

// shell follows the text of sh -c 'TEXT' where every byte stands for itself.
func (r *reader) shell(c call) {
	for i, a := range c.args[1:] {
		if !a.static || len(a.text) < 2 || a.text[0] != '-' || i+2 >= len(c.args) {
			return
		}
		if a.text[1] == '-' || a.text[len(a.text)-1] != 'c' {
			continue
		}
		inner := c.args[i+2]
		start := int(inner.word.Pos().Offset()) + 1
		end := start + len(inner.text)
		if !inner.static || r.depth >= maxDepth || len(inner.text) > maxNested || end > len(r.text) || r.text[start:end] != inner.text {
			return
		}
		file, err := syntax.NewParser().Parse(strings.NewReader(inner.text), "")
		if err != nil {
			return
		}
		sub := reader{text: inner.text, base: r.base + start, depth: r.depth + 1, found: r.found}
		sub.statements(file, false)
		if strings.Contains(inner.text, "#") {
			sub.comments()
		}
		r.found = sub.found
		return
	}
}

// leaves tells whether what a command prints also goes to a command that stands
// in one of its words.
func leaves(s *syntax.Stmt, c call) bool {
	words := make([]*syntax.Word, 0, len(c.args)+len(s.Redirs))
	for _, a := range c.args {
		words = append(words, a.word)
	}
	for _, redirect := range s.Redirs {
		words = append(words, redirect.Word)
	}
	for _, w := range words {
		if w == nil {
			continue
		}
		for _, part := range w.Parts {
			if p, ok := part.(*syntax.ProcSubst); ok && p.Op == syntax.CmdOut {
				return true
			}
		}
	}
	return false
}

// onlyReads tells whether a program runs nothing of what its arguments and its
// standard input say.
func onlyReads(c call) bool {
	switch c.name {
	case "echo", "printf", "cat", "tee", "head", "tail", "less", "more", "wc", "sort", "uniq", "cut", "tr", "nl", "tac", "fold", "fmt", "column", "base64",
		"grep", "egrep", "fgrep", "rg", "ag", "ack", "jq", "yq", "gh", "glab", "curl", "wget", "http", "psql", "mysql", "sqlite3",
		"man", "info", "tldr", "apropos", "whatis", "which", "whereis", "type", "pgrep", "read", "patch", "apply_patch", "diff", "cmp",
		"ls", "cd", "pushd", "mkdir", "touch", "rm", "rmdir", "cp", "mv", "ln", "stat", "file", "test", "[", "tree", "du", "chmod", "chown", "chgrp",
		"date", "basename", "dirname", "realpath", "readlink", "logger", "notify-send", "mail", "sha256sum", "md5sum",
		"apt", "apt-get", "apt-cache", "dnf", "yum", "apk", "brew", "pacman", "zypper", "pip", "pip3", "choco", "winget", "scoop", ":", "true":
	case "sed":
		// GNU sed's command e runs text, and the flag e of s does.
		return !c.has("-f", "--file") && !c.flag("f", "el")
	case "awk", "gawk", "mawk":
		for _, a := range c.args[1:] {
			if !a.static || strings.Contains(a.text, "system") || strings.Contains(a.text, "|") || strings.Contains(a.text, "-f") {
				return false
			}
		}
	case "find":
		if c.has("-exec", "-execdir", "-ok", "-okdir") {
			return false
		}
	case "fd":
		if c.flag("xX", "") || c.has("--exec", "--exec-batch") {
			return false
		}
	case "git":
		verb := gitVerb(c)
		switch verb.name {
		case "", "bisect", "submodule", "filter-branch", "difftool", "mergetool", "worktree":
			return false
		case "rebase":
			return !verb.flag("x", "s") && !hasPrefixed(verb, "--exec")
		}
		return len(verb.args) == len(c.args)-1 || !c.has("-c", "--config-env", "--exec-path")
	case "command": // with -v
	default:
		return false
	}
	return true
}
