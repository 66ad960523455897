package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"vogt/cmd/vogt/messages"
	"vogt/internal/api"
	"vogt/internal/catalog"
	"vogt/internal/flow"
	"vogt/internal/grant"
	"vogt/internal/statement"
	"vogt/internal/terminal"
)

// sheet writes facts, one a line, with their names in a column. Everything that
// comes from elsewhere is made visible.
type sheet struct {
	w   io.Writer
	err error
}

func (s *sheet) fact(name, value string) { s.shown(name, terminal.Visible(value)) }

// shown is fact for a value that is visible already.
func (s *sheet) shown(name, value string) {
	if s.err == nil {
		_, s.err = fmt.Fprintf(s.w, "%-12s %s\n", name+":", value)
	}
}

// some is fact for a value that may be missing and then is not shown.
func (s *sheet) some(name, value string) {
	if value != "" {
		s.fact(name, value)
	}
}

// argv shows an argument list an argument a line, each in quotes, so that no
// argument can pass for two or for none.
func (s *sheet) argv(name string, argv []string) {
	for i, arg := range argv {
		if s.err != nil {
			return
		}
		if i > 0 {
			name = ""
		} else {
			name += ":"
		}
		_, s.err = fmt.Fprintf(s.w, "%-12s [%d] %s\n", name, i, quoted(arg))
	}
}

// quoted shows a text in double quotes.
func quoted(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(terminal.Visible(text)) + `"`
}

// moment shows a time in Unix seconds in the person's zone.
func moment(at int64) string {
	if at == 0 {
		return ""
	}
	return time.Unix(at, 0).Format("2006-01-02 15:04:05 -0700")
}

// showGrant writes a grant in full. The names of the facts are the same in
// every language, like the labels of a waiting request.
func (e *env) showGrant(w io.Writer, g api.Grant) error {
	s := &sheet{w: w}
	s.fact("Grant", g.ID)
	s.fact("Status", string(g.Status))
	if g.Request == nil {
		return s.err // not a party: the state is all there is
	}
	s.some("Approve", g.ApproveURL)
	s.fact("Requester", g.Requester)
	s.some("Owner", g.Owner)
	s.some("Risk", g.Risk)
	s.argv("Command", g.Request.Command)
	e.covered(s, g)
	if to := g.Request.Connect; to != nil {
		s.fact("Connection", to.Network().Mode())
		if c := g.Request.Context; c != nil && c.Confinement != nil {
			s.fact("Box", *c.Confinement)
			if c.Executable != "" {
				s.fact("Program", e.text(messages.ClaimedProgram, c.Executable))
			}
		}
		return e.showAnswer(s, g)
	}
	s.some("Host", g.Request.Host)
	s.some("Run as", g.Request.RunAs)
	if c := g.Request.Context; c != nil {
		e.file(s, "Program", c.File)
		for _, f := range c.Interpreters {
			e.file(s, "Interpreter", &f)
		}
		e.file(s, "Folder", c.Cwd)
		e.input(s, c.Stdin)
		if c.Confinement != nil {
			s.fact("Box", *c.Confinement)
		}
		if c.NetworkMode != nil {
			s.fact("Network", *c.NetworkMode)
		}
	}
	return e.showAnswer(s, g)
}

// covered marks the calls that standing grants cover by now. The calls are named by
// what is read here; where that differs from what the authority read, by their place.
func (e *env) covered(s *sheet, g api.Grant) {
	if g.Hints == nil || len(g.Covered) == 0 {
		return
	}
	var names []string
	if rd, err := e.reader(); err == nil {
		if read, err := flow.Read(rd, *g.Request); err == nil && len(read.Covered()) == len(g.Covered) {
			for _, c := range read.Calls {
				names = append(names, c.Shown())
			}
		}
	}
	rest := 0
	for i, id := range g.Covered {
		name := "#" + strconv.Itoa(i+1)
		if i < len(names) {
			name = names[i]
		}
		label := ""
		if i == 0 {
			label = "Calls"
		}
		if id == "" {
			rest++
			s.call(label, e.text(messages.CallAsked, terminal.Visible(name)))
			continue
		}
		s.call(label, e.text(messages.CallCovered, terminal.Visible(name), terminal.Visible(id)))
	}
	s.shown("Asked for", e.text(messages.AskedForRest, rest, len(g.Covered)))
}

// call writes a line of a list whose first line alone has a name.
func (s *sheet) call(name, value string) {
	if name != "" {
		s.shown(name, value)
	} else if s.err == nil {
		_, s.err = fmt.Fprintf(s.w, "%-12s %s\n", "", value)
	}
}

// showAnswer writes why a grant was asked for, and what became of it.
func (e *env) showAnswer(s *sheet, g api.Grant) error {
	if g.Request.Reason != "" {
		s.shown("Reason", e.text(messages.ReasonOf, quoted(g.Request.Reason)))
	}
	kind := string(g.Request.Type)
	if g.Request.Duration > 0 && g.DecidedAt == 0 {
		kind += " " + formatDuration(time.Duration(g.Request.Duration)*time.Second)
	}
	s.some("Kind", kind)
	s.some("Asked", moment(g.CreatedAt))
	if g.Joined > 0 {
		s.fact("Repeated", strconv.FormatInt(g.Joined, 10))
	}
	if g.Approvals > 1 {
		s.fact("Persons", strconv.FormatInt(g.Approvals, 10)+" must allow it")
	}
	if g.First != "" {
		s.fact("First", g.First+", "+string(g.FirstType)+", "+moment(g.FirstAt))
	}
	s.some("Decided", moment(g.DecidedAt))
	s.some("By", g.DecidedBy)
	s.some("For", g.For)
	s.some("Strength", string(g.Strength))
	s.some("Note", g.Note)
	s.some("Until", moment(g.ValidUntil))
	if g.Uses > 0 {
		s.fact("Uses", strconv.FormatInt(g.Uses, 10))
	}
	s.some("Digest", g.Digest)
	return s.err
}

// file shows what is bound of a file. What is absent is said to be.
func (e *env) file(s *sheet, name string, f *statement.File) {
	if f == nil {
		s.fact(name, e.text(messages.NotBound))
		return
	}
	var parts []string
	if f.Path != nil {
		parts = append(parts, *f.Path)
	}
	if f.SHA256 != nil {
		parts = append(parts, "sha256:"+*f.SHA256)
	}
	if f.Size != nil {
		parts = append(parts, fmt.Sprintf("%d bytes", *f.Size))
	}
	if f.Device != nil && f.Inode != nil {
		parts = append(parts, fmt.Sprintf("device %d inode %d", *f.Device, *f.Inode))
	}
	s.fact(name, strings.Join(parts, ", "))
}

// input shows what is bound of standard input.
func (e *env) input(s *sheet, stdin *string) {
	if stdin == nil {
		s.fact("Input", e.text(messages.NotBound))
		return
	}
	s.fact("Input", *stdin)
}

// showStatement writes everything that a signature over st covers.
func (e *env) showStatement(w io.Writer, st statement.Statement, risk string) error {
	s := &sheet{w: w}
	text := func(name string, v *string) {
		if v != nil {
			s.fact(name, *v)
		}
	}
	number := func(name string, v *uint64) {
		if v != nil {
			s.fact(name, strconv.FormatUint(*v, 10))
		}
	}
	s.fact("Purpose", string(st.Purpose))
	if st.Purpose == statement.Trust {
		s.argv("Change", st.Argv)
		text("As", st.Owner)
		s.some("Until", endOf(st.Expiry))
		s.fact("Issuer", st.Issuer)
		return s.err
	}
	s.fact("Grant", st.GrantID)
	text("Requester", st.Requester)
	text("Owner", st.Owner)
	s.some("Risk", risk)
	if st.Purpose == statement.Connect {
		e.showConnection(s, st)
		return s.err
	}
	s.argv("Command", st.Argv)
	e.file(s, "Program", st.Executable)
	for _, f := range st.Interpreters {
		e.file(s, "Interpreter", &f)
	}
	text("Host", st.Host)
	e.file(s, "Folder", st.Cwd)
	text("Run as", st.RunAsName)
	number("Run as uid", st.RunAsUID)
	s.list("Groups", st.RunAsGroups)
	number("Caller uid", st.CallerUID)
	e.input(s, st.Stdin)
	if st.Environment != nil {
		s.list("Environment", st.Environment)
	} else {
		s.fact("Environment", e.text(messages.NotBound))
	}
	number("Umask", st.Umask)
	s.list("Limits", st.Limits)
	for _, f := range st.Inputs {
		e.file(s, "Reads", &f)
	}
	text("Confinement", st.Confinement)
	text("Network", st.NetworkMode)
	text("Catalog", st.Catalog)
	if st.Reason != nil {
		s.shown("Reason", e.text(messages.ReasonOf, quoted(*st.Reason)))
	}
	s.list("Hint", st.Hints)
	s.fact("Permission", st.GrantType)
	s.some("From", endOf(st.NotBefore))
	s.some("Until", endOf(st.Expiry))
	number("Uses", st.Uses)
	s.fact("Issuer", st.Issuer)
	return s.err
}

// showConnection writes what a signature covers that permits a connection of a box.
func (e *env) showConnection(s *sheet, st statement.Statement) {
	if st.NetworkMode != nil {
		s.fact("Connection", *st.NetworkMode)
		host, _, _ := strings.Cut(strings.TrimPrefix(*st.NetworkMode, "connect "), ":")
		s.fact("Host kind", e.text(hostKindText(catalog.New().HostKind(host))))
	}
	if st.Confinement != nil {
		s.fact("Box", *st.Confinement)
	}
	if st.Host != nil {
		s.fact("Host", *st.Host)
	}
	reach := st.GrantType
	if reach == string(grant.Always) {
		reach = e.text(messages.UntilBoxEnds)
	}
	s.fact("Permission", reach)
	s.some("From", endOf(st.NotBefore))
	s.some("Until", endOf(st.Expiry))
	if st.Uses != nil {
		s.fact("Uses", strconv.FormatUint(*st.Uses, 10))
	}
	s.fact("Issuer", st.Issuer)
}

// hostKindText says what is known of a host that a box would reach.
func hostKindText(kind string) messages.Key {
	if kind == "multi-tenant" {
		return messages.HostIsShared
	}
	return messages.HostIsUnknown
}

func (s *sheet) list(name string, items []string) {
	for _, item := range items {
		s.fact(name, item)
	}
}

func endOf(at *uint64) string {
	if at == nil {
		return ""
	}
	return moment(int64(*at))
}
