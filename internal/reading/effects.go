package reading

import (
	"path"
	"strconv"
	"strings"

	"vogt/internal/catalog"
	"vogt/internal/detail"
	"vogt/internal/reading/code"
)

// absolute makes a path absolute and clean as far as base is known.
func (w *walker) absolute(p, base string, s *scope) string {
	switch {
	case p == "":
		return p
	case strings.HasPrefix(p, "/"):
		return path.Clean(p)
	case p == "~" || strings.HasPrefix(p, "~/"):
		if s.home != "" {
			return path.Join(s.home, p[1:])
		}
		return "~" + strings.TrimSuffix(path.Clean("/"+p[1:]), "/")
	case strings.HasPrefix(p, "$"), strings.HasPrefix(p, "~"), strings.HasPrefix(p, "…"):
		return p
	case base == "":
		return path.Clean(p)
	case strings.HasPrefix(base, "~"):
		return "~" + strings.TrimSuffix(path.Clean("/"+base[1:]+"/"+p), "/")
	}
	return path.Join(base, p)
}

// path adds a file with its role.
func (r *reader) path(role catalog.Role, w catalog.Word) {
	if r.out.Remote {
		return // a path of another host
	}
	if w.Shown() == processShown {
		if role == catalog.Script {
			r.printedScript(w)
		}
		return
	}
	text := pathText(w)
	if writes := role == catalog.Write || role == catalog.Empty || role == catalog.Delete || role == catalog.Device; text == "" || text == "-" && (!writes || r.out.Use.DashStdout()) {
		if role == catalog.Script {
			r.content("open-input", "what runs comes from standard input")
		}
		return
	}
	if w.Kind == catalog.Literal && text[0] == '~' {
		text = "./" + text // a quoted tilde is a name
	}
	full := r.absolute(text, r.base, r.call.scope)
	if climbs(text) {
		r.out.Effects |= detail.Beyond
	}
	p := &r.out.Paths
	if strings.HasPrefix(full, "/inet") && r.out.Use.Entry != nil && r.out.Use.Entry.Name == "awk" {
		r.out.Effects |= detail.Contacts // gawk(1), special file names
	}
	if w.Kind == catalog.Literal && notFile(full) {
		return
	}
	p.open(w)
	switch role {
	case catalog.Read, catalog.Script, catalog.Config, catalog.Plugin:
		p.Reads = append(p.Reads, full)
	case catalog.Write:
		p.Writes = append(p.Writes, full)
		if device(full) {
			r.out.Effects |= detail.Destroys
		}
	case catalog.Empty, catalog.Device:
		p.Writes = append(p.Writes, full)
	case catalog.Delete:
		p.Deletes = append(p.Deletes, full)
	}
}

// climbs reports whether a path goes up. Where that leads is known only to the
// kernel: the folder that it goes up from may be a link.
func climbs(text string) bool {
	return text == ".." || strings.HasPrefix(text, "../") || strings.HasSuffix(text, "/..") || strings.Contains(text, "/../")
}

// open notes that a word which names a path is not literal.
func (p *Paths) open(w catalog.Word) {
	if w.Kind != catalog.Literal {
		p.Unknown = true
		p.anywhere = p.anywhere || strings.ContainsRune(w.Template(), catalog.Hole)
	}
}

// printedScript reads a script that a process substitution prints.
func (r *reader) printedScript(w catalog.Word) {
	n, err := strconv.Atoi(strings.TrimPrefix(w.Template(), string(catalog.Hole)))
	entry := r.out.Use.Entry.Name
	if err != nil || n >= len(r.printed) || r.printed[n].kind != literalInput || !isShell(entry) && entry != "source" {
		r.content("open-input", "what runs comes from a command")
		return
	}
	text := catalog.Word{Text: r.printed[n].text}
	if entry == "source" {
		r.sourced(text, r.printed[n].at)
		return
	}
	r.shellText(text, r.child(false), r.printed[n].at)
}

// host adds a host or the host of a URL.
func (r *reader) host(w catalog.Word) {
	text := pathText(w)
	if w.Kind == catalog.Literal && w.Text == "" {
		return
	}
	r.out.Hosts = append(r.out.Hosts, hostOf(text))
}

// hostOf is the host that a URL or a host with user, port and path names.
func hostOf(text string) string {
	if i := strings.Index(text, "://"); i >= 0 {
		text = text[i+3:]
	}
	// RFC 3986, 3.2: the authority ends at a slash, a question mark or a hash;
	// some clients end it at a backslash too.
	if i := strings.IndexAny(text, `/?#\`); i >= 0 {
		text = text[:i]
	}
	if i := strings.LastIndexByte(text, '@'); i >= 0 {
		text = text[i+1:]
	}
	if inner, ok := strings.CutPrefix(text, "["); ok { // an IPv6 address
		inner, _, _ = strings.Cut(inner, "]")
		return strings.ToLower(inner)
	}
	if i := strings.IndexByte(text, ':'); i > 0 && strings.Count(text, ":") == 1 {
		text = text[:i]
	}
	return strings.ToLower(text)
}

// remotePath adds host:path, a URL or a local path.
func (r *reader) remotePath(role catalog.Role, w catalog.Word) {
	text := templateOf(w)
	remote := strings.Contains(text, "://")
	if colon := strings.IndexByte(text, ':'); !remote && colon > 0 {
		slash := strings.IndexByte(text, '/')
		remote = (slash < 0 || slash > colon) && !strings.HasPrefix(text[colon:], `:\`) // C:\dir is a drive
	}
	switch {
	case strings.HasPrefix(text, "file://"):
		r.path(catalog.Read, wordOf(strings.TrimPrefix(text, "file://")))
	case strings.Contains(text, "ext::"):
		r.transport(text[strings.Index(text, "ext::")+len("ext::"):])
	case remote:
		r.out.Effects |= detail.Contacts
		r.out.Hosts = append(r.out.Hosts, hostOf(strings.TrimPrefix(strings.ReplaceAll(text, string(catalog.Hole), "…"), "git+")))
	case w.Kind != catalog.Literal && w.Option:
		r.unknown(-1, "host", "the word may name a host")
		if role == catalog.RemoteWrite {
			r.path(catalog.Write, w)
		}
	case role == catalog.RemoteRead && r.archiver():
		// The archive lies where the program started, whatever -C says.
		base := r.base
		r.base = r.call.scope.cwd
		switch r.out.Use.Form() {
		case "create", "change", "archive":
			r.path(catalog.Write, w)
		default:
			r.path(catalog.Read, w)
		}
		r.base = base
	case role == catalog.RemoteWrite:
		r.path(catalog.Write, w)
	case role == catalog.RemoteRead, strings.ContainsAny(text, "/.~"):
		r.path(catalog.Read, w)
	}
}

// transport reads the command of git's transport ext:: (git-remote-ext(1)).
func (r *reader) transport(text string) {
	r.content("transport", "the transport ext:: runs a command")
	var words []catalog.Word
	for _, f := range strings.Fields(strings.ReplaceAll(text, "% ", "\x00")) {
		f = strings.ReplaceAll(f, "\x00", " ")
		if strings.ContainsAny(f, "%"+string(catalog.Hole)) {
			words = append(words, catalog.Unknown(catalog.Partial))
			continue
		}
		words = append(words, catalog.Word{Text: f})
	}
	r.command(call{words: words, at: r.key, scope: r.child(false), external: true})
}

// archiver reports whether the call's -C changes the folder for the files in an
// archive and not for the archive.
func (r *reader) archiver() bool {
	switch r.out.Use.Entry.Name {
	case "tar", "bsdtar", "cpio", "pax":
		return true
	}
	return false
}

// code reads a program text of another language.
func (r *reader) code(language string, word catalog.Word, at int) {
	lang, ok := code.ParseLang(language)
	if !ok {
		r.foreignShell(language, word, at)
		return
	}
	f := code.Read(lang, templateOf(word))
	switch {
	case lang.General():
		r.content("code", "what the "+language+" text does is not fully known")
	case !f.Complete || word.Kind != catalog.Literal && !lang.Pure():
		r.unknown(-1, "code", "what the "+language+" text does is not fully known")
	}
	if f.Write {
		r.out.Effects |= detail.Writes
	}
	if f.Destroy {
		r.out.Effects |= detail.Destroys
	}
	if f.Network {
		r.out.Effects |= detail.Contacts
	}
	if f.Privilege {
		r.out.Effects |= detail.Privileged
	}
	for _, p := range f.Reads {
		r.path(catalog.Read, catalog.Word{Text: p})
	}
	for _, p := range f.Writes {
		if !catalog.NoFile(p) {
			r.out.Effects |= detail.Writes
			r.path(catalog.Write, catalog.Word{Text: p})
		}
	}
	for _, p := range f.Empties {
		r.out.Effects |= detail.Writes | detail.Destroys
		r.path(catalog.Empty, catalog.Word{Text: p})
	}
	for _, p := range f.Deletes {
		r.out.Effects |= detail.Writes | detail.Destroys
		r.path(catalog.Delete, catalog.Word{Text: p})
	}
	for _, h := range f.Hosts {
		r.out.Effects |= detail.Contacts
		r.host(catalog.Word{Text: h})
	}
	for _, text := range f.Shell {
		s := r.child(r.out.Remote)
		word := catalog.Word{Text: text}
		if strings.ContainsRune(text, code.Hole) {
			word = openWord(text)
		}
		r.shellText(word, s, at)
	}
	for _, argv := range f.Argv {
		words := make([]catalog.Word, len(argv))
		for i, a := range argv {
			words[i] = catalog.Word{Text: a}
		}
		r.command(call{words: words, at: at, scope: r.child(r.out.Remote), external: true})
	}
	if f.Starts {
		child := r.child(false)
		r.add(&Call{Program: "?", Effects: detail.Opaque, Risk: detail.High, Via: child.via, Depth: child.depth}, at)
	}
}

// rate gives a call its risk: the catalog's word, raised by what it does
// (the floors that no entry lowers).
func (w *walker) rate(c *Call, s *scope) {
	risk := max(detail.Low, c.Use.Risk)
	floor := func(when bool, level detail.Risk) {
		if when {
			risk = max(risk, level)
		}
	}
	e := c.Effects
	floor(!e.Inert(), detail.Medium)
	floor(e.Has(detail.Opaque|detail.Executes|detail.Contacts|detail.Destroys|detail.Door|detail.Secrets), detail.High)
	for _, host := range c.Hosts {
		if w.catalog.HostKind(host) == "multi-tenant" {
			w.problem(c.Offset, "shared-host", host+" is a host that many share: what is there may be anybody's")
		}
	}
	home := s.home
	for _, list := range [][]string{c.Paths.Reads, c.Paths.Writes, c.Paths.Deletes} {
		for _, p := range list {
			if !w.work(max(0, len(p)-128) / 8) {
				c.Risk = max(risk, detail.High)
				return // the whole text is opaque
			}
		}
	}
	for _, p := range c.Paths.Reads {
		switch class := w.catalog.Classify(p, home); {
		case class.Credential:
			c.Effects |= detail.Secrets
			risk = max(risk, detail.High)
		case !class.Documentation && !within(p, w.place.Cwd):
			risk = max(risk, detail.Medium)
		}
	}
	for i, list := range [2][]string{c.Paths.Writes, c.Paths.Deletes} {
		for _, p := range list {
			if i == 0 && sudoers(p) {
				c.Effects |= detail.Privileged
			}
			class := w.catalog.Classify(p, home)
			if class.Sink != "" {
				c.Paths.Sinks = append(c.Paths.Sinks, p)
				risk = max(risk, detail.High)
			}
			floor(!within(p, w.place.Cwd), detail.High)
			floor(class.Credential, detail.Critical)
		}
	}
	for _, p := range w.arrivals(c) {
		if sudoers(p) {
			c.Effects |= detail.Privileged
		}
		if class := w.catalog.Classify(p, home); class.Sink != "" {
			c.Paths.Sinks = append(c.Paths.Sinks, p)
			risk = max(risk, detail.High)
		}
	}
	for _, p := range c.Paths.Deletes {
		floor(irreplaceable(p, w.place.Cwd, home) || !within(p, w.place.Cwd), detail.Critical)
	}
	for _, p := range c.Paths.Writes {
		floor(device(p) && !notFile(p), detail.Critical)
	}
	floor(c.Effects.Has(detail.Privileged), detail.Critical)
	floor(c.Paths.Unknown && e.Has(detail.Writes), detail.High)
	floor(c.Paths.anywhere, detail.Medium)
	for i := range c.Words {
		if k := c.Words[i].Kind; k == catalog.Many || k == catalog.Partial && c.Words[i].Text == "" && c.Words[i].Option {
			c.Paths.Unknown = true
		}
	}
	if e.Has(detail.Writes) && len(c.Paths.Writes)+len(c.Paths.Deletes) == 0 {
		c.Paths.Unknown = true
	}
	c.Risk = risk
}

// sudoers reports whether a path says who may act as whom (sudoers(5)).
func sudoers(p string) bool {
	return p == "/etc/sudoers" || p == "/etc/sudoers.d" || strings.HasPrefix(p, "/etc/sudoers.d/")
}

// arrivals are the files that a copy leaves in a folder: what is written is
// named after what is read.
func (w *walker) arrivals(c *Call) []string {
	if c.Use.Entry == nil || len(c.Paths.Writes) == 0 || len(c.Paths.Reads)+len(c.Paths.Deletes) > 64 {
		return nil
	}
	switch c.Use.Entry.Name {
	case "cp", "mv", "ln", "install", "rsync", "scp":
	default:
		return nil
	}
	folder := c.Paths.Writes[len(c.Paths.Writes)-1]
	var out []string
	for _, p := range append(append(c.Paths.Reads[:len(c.Paths.Reads):len(c.Paths.Reads)], c.Paths.Deletes...), c.Paths.Writes[:len(c.Paths.Writes)-1]...) {
		out = append(out, path.Join(folder, path.Base(p)))
	}
	return out
}

// within reports whether an absolute path lies in a folder. A path that is
// not absolute lies in the working directory unless it climbs out of it.
func within(p, folder string) bool {
	if !strings.HasPrefix(p, "/") {
		return p != ".." && !strings.HasPrefix(p, "../") && !strings.HasPrefix(p, "~") && !strings.HasPrefix(p, "$") && !strings.HasPrefix(p, "…")
	}
	return folder != "" && (p == folder || strings.HasPrefix(p, strings.TrimSuffix(folder, "/")+"/"))
}

// irreplaceable reports whether deleting the path takes everything: a root, a
// home, the working directory or what contains it, a repository.
func irreplaceable(p, cwd, home string) bool {
	bare := strings.TrimSuffix(strings.TrimSuffix(p, "**"), "*")
	bare = strings.TrimSuffix(bare, "/")
	switch bare {
	case "", ".", "..", "~", "$HOME", home, cwd:
		return true
	}
	if path.Base(bare) == ".git" {
		return true
	}
	if strings.HasPrefix(bare, "/") && strings.Count(bare, "/") == 1 {
		return true // a folder at the top of the system
	}
	return cwd != "" && strings.HasPrefix(cwd, bare+"/")
}
