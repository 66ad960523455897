package reading

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"vogt/internal/catalog"
	"vogt/internal/detail"
)

// redirections are what the redirections of one statement do.
type redirections struct {
	effects detail.Effects
	paths   Paths
	hosts   []string
	stdin   source
	output  bool     // standard output goes elsewhere
	emptied []string // files that `>` truncates
}

func (w *walker) redirections(list []*syntax.Redirect, s *scope) *redirections {
	r := &redirections{stdin: source{at: -1}}
	for _, rd := range list {
		if rd.N != nil && strings.ContainsAny(rd.N.Value, "[{") {
			name := strings.Trim(rd.N.Value, "{}")
			if strings.Contains(name, "[") {
				w.opaque(s.at(rd.Pos()), "subscript", "a subscript is evaluated as arithmetic")
			}
			s.set(name, value{known: number})
			if name == "IFS" || name == "PS4" || w.catalog.Matters(name) {
				w.opaque(s.at(rd.Pos()), "variable", "the redirection sets "+name)
			}
		}
		w.redirect(rd, s, r)
	}
	return r
}

func (w *walker) redirect(rd *syntax.Redirect, s *scope, r *redirections) {
	switch rd.Op {
	case syntax.RdrOut, syntax.AppOut, syntax.RdrClob, syntax.DplOut:
		r.output = r.output || rd.N == nil || rd.N.Value == "1"
	case syntax.RdrAll, syntax.AppAll:
		r.output = true
	}
	input := rd.N == nil || strings.Trim(rd.N.Value, "0") == ""
	switch rd.Op {
	case syntax.WordHdoc, syntax.RdrAll, syntax.AppAll:
		w.bashOnly(s, s.at(rd.Pos()))
	}
	switch rd.Op {
	case syntax.Hdoc, syntax.DashHdoc:
		text := w.hereDocument(rd, s)
		if strings.ContainsRune(text, catalog.Hole) {
			r.effects |= detail.Beyond // as a word would not be literal
		}
		if input {
			at := -1
			if rd.Hdoc != nil {
				at = s.at(rd.Hdoc.Pos())
			}
			r.stdin = source{kind: literalInput, text: text, at: at}
		}
		return
	case syntax.WordHdoc:
		word := w.single(rd.Word, s)
		if word.Kind != catalog.Literal {
			r.effects |= detail.Beyond
		}
		if input {
			r.stdin = source{kind: literalInput, text: templateOf(word) + "\n", at: -1}
		}
		return
	}
	word := w.single(rd.Word, s)
	switch rd.Op {
	case syntax.DplIn, syntax.DplOut:
		if descriptor(word.Text) && (word.Kind == catalog.Literal || word.Shown() == "") {
			if input && (rd.Op == syntax.DplIn || rd.N != nil) {
				r.stdin = source{kind: unknownInput, at: -1}
			}
			return
		}
		if rd.Op == syntax.DplIn {
			return // a variable that names a descriptor
		}
		if word.Kind != catalog.Literal && word.Text == "" && rd.N != nil && rd.N.Value != "1" {
			return // N>&$fd
		}
	case syntax.RdrIn, syntax.RdrInOut:
		if input {
			r.stdin = source{kind: fileInput, at: -1}
		}
	}
	w.redirectPath(rd, word, s, r)
}

// descriptor reports whether a target of >& is a descriptor: N, N- or -.
func descriptor(text string) bool {
	return text == "-" || text != "" && strings.Trim(strings.TrimSuffix(text, "-"), "0123456789") == "" && strings.TrimSuffix(text, "-") != ""
}

// redirectPath adds the file that a redirection opens.
func (w *walker) redirectPath(rd *syntax.Redirect, word catalog.Word, s *scope, r *redirections) {
	if strings.HasPrefix(word.Shown(), processShown) {
		return
	}
	shown := pathText(word)
	if _, rest, ok := networkPath(word.Text); ok {
		r.effects |= detail.Contacts
		host, _, _ := strings.Cut(rest, "/")
		if host != "" && word.Kind == catalog.Literal || strings.Contains(rest, "/") {
			r.hosts = append(r.hosts, host)
		}
		return
	}
	if word.Kind == catalog.Literal && strings.HasPrefix(shown, "~") {
		shown = "./" + shown // a quoted tilde is a name
	}
	full := w.absolute(shown, s.cwd, s)
	if climbs(shown) {
		r.effects |= detail.Beyond
	}
	r.paths.open(word)
	switch rd.Op {
	case syntax.RdrIn:
		r.paths.Reads = append(r.paths.Reads, full)
		return
	case syntax.RdrInOut:
		r.effects |= detail.Writes
		r.paths.Reads = append(r.paths.Reads, full)
		r.paths.Writes = append(r.paths.Writes, full)
		return
	}
	if word.Kind == catalog.Literal && notFile(full) {
		return
	}
	r.effects |= detail.Writes
	r.paths.Writes = append(r.paths.Writes, full)
	appends := rd.Op == syntax.AppOut || rd.Op == syntax.AppAll
	if !appends {
		r.emptied = append(r.emptied, full)
	}
	if !appends && strings.HasPrefix(full, "/etc/") || device(full) {
		r.effects |= detail.Destroys
	}
	if sudoers(full) {
		r.effects |= detail.Privileged
	}
}

// device reports whether a path names a device. Files below /dev/shm and
// /dev/mqueue are ordinary.
func device(p string) bool {
	return strings.HasPrefix(p, "/dev/") && !strings.HasPrefix(p, "/dev/shm/") && !strings.HasPrefix(p, "/dev/mqueue/")
}

// networkPath recognises bash's /dev/tcp/HOST/PORT and /dev/udp.
func networkPath(text string) (device, rest string, ok bool) {
	for _, p := range []string{"/dev/tcp/", "/dev/udp/"} {
		if rest, ok = strings.CutPrefix(text, p); ok {
			return p, rest, true
		}
	}
	return "", "", false
}

// notFile reports whether an absolute path is the null device, the terminal or
// a descriptor.
func notFile(p string) bool {
	return catalog.NoFile(p) || strings.HasPrefix(p, "/dev/fd/") || strings.HasPrefix(p, "/proc/self/fd/") || p == "/dev/full" || p == "/dev/zero" || p == "/dev/stdin"
}

// bare is a statement of redirections, or those of a group.
func (w *walker) bare(r *redirections, s *scope, at int) {
	if r == nil || r.effects == 0 && len(r.paths.Reads) == 0 && len(r.hosts) == 0 {
		return
	}
	c := &Call{Effects: r.effects, Paths: r.paths, Hosts: r.hosts, Remote: s.remote, Depth: s.depth, Via: s.via, Cwd: s.cwd, Adrift: s.adrift, Fell: s.fell}
	w.rate(c, s)
	w.add(c, at)
}

// hereDocument returns the text of a here-document, with holes for what is
// expanded and not known.
func (w *walker) hereDocument(rd *syntax.Redirect, s *scope) string {
	if rd.Hdoc == nil {
		return ""
	}
	quoted := false
	for _, p := range rd.Word.Parts {
		switch p := p.(type) {
		case *syntax.Lit:
			quoted = quoted || strings.Contains(p.Value, "\\")
		case *syntax.SglQuoted, *syntax.DblQuoted:
			quoted = true
		default:
			w.opaque(s.at(rd.Pos()), "delimiter", "the end of the here-document is not known")
		}
	}
	var b strings.Builder
	for _, part := range rd.Hdoc.Parts {
		lit, ok := part.(*syntax.Lit)
		switch {
		case ok && quoted:
			b.WriteString(lit.Value)
		case ok:
			b.WriteString(unescapeHere(lit.Value))
		default:
			var e expanded
			w.one(&syntax.Word{Parts: []syntax.WordPart{&syntax.DblQuoted{Left: part.Pos(), Right: part.End(), Parts: []syntax.WordPart{part}}}}, s, &e, true)
			if len(e.words) > 0 {
				b.WriteString(templateOf(e.words[0]))
			}
		}
	}
	if rd.Op == syntax.DashHdoc {
		return withoutTabs(b.String())
	}
	return b.String()
}

// withoutTabs takes the tabs off the beginning of each line, as <<- does.
func withoutTabs(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimLeft(lines[i], "\t")
	}
	return strings.Join(lines, "\n")
}

// unescapeHere resolves backslashes as in a here-document: a quote stays.
func unescapeHere(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			switch s[i+1] {
			case '$', '`', '\\':
				i++
			case '\n':
				i++
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// templateOf is the whole text of a word, with holes.
func templateOf(w catalog.Word) string { return w.Template() }

// pathText is a word as a path that a person reads.
func pathText(w catalog.Word) string { return w.Shown() }
