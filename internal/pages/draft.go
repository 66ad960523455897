package pages

import (
	"encoding/json"
	"errors"
	"html/template"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"vogt/internal/api"
	"vogt/internal/detail"
	"vogt/internal/grant"
	"vogt/internal/reading"
)

// ownClass is the choice of a pattern that is put together by hand.
const ownClass = "own"

// What a form takes at most.
const (
	draftText   = 8 << 10 // bytes of one field
	draftReason = 300     // bytes, as the authority takes them
	draftMost   = 64      // entries of a list
)

// draft is a pattern that a person puts together: the fields of the form as they
// were typed. It lies in the address alone, so that going back loses nothing, and
// opening it changes nothing, whoever made the address.
type draft struct {
	Agent      string
	Class      string // of grant, or ownClass
	Folders    string // one a line
	Hosts      string // with commas or blanks between them, like what follows
	Programs   string
	Operations string
	Write      bool
	Delete     bool
	Connect    bool
	Risk       string // "medium" or "high"
	Days       string
	Reason     string
	Faults     map[string]template.HTML // what is wrong, by field
}

// draftFrom reads the fields of an address.
func draftFrom(q url.Values) *draft {
	d := &draft{
		Agent: q.Get("agent"), Class: q.Get("class"), Folders: q.Get("folders"), Hosts: q.Get("hosts"), Programs: q.Get("programs"), Operations: q.Get("operations"),
		Risk: q.Get("risk"), Days: q.Get("days"), Reason: strings.TrimSpace(q.Get("reason")),
		Write: q.Get("write") != "", Delete: q.Get("delete") != "", Connect: q.Get("connect") != "",
	}
	if d.Risk == "" {
		d.Risk = detail.Medium.String()
	}
	if d.Days == "" {
		d.Days = strconv.Itoa(grant.DefaultDays)
	}
	return d
}

// draftOf is the form for a pattern, where a form makes one like it.
func draftOf(p grant.Pattern) (d *draft, ok bool) {
	d = &draft{Agent: p.Agent, Class: string(p.Class), Folders: strings.Join(p.Folders(), "\n"), Hosts: strings.Join(p.Hosts, ", "),
		Risk: detail.Medium.String(), Days: strconv.Itoa(grant.DefaultDays)}
	if p.Class == "" {
		d.Class, d.Programs, d.Operations = ownClass, strings.Join(p.Programs, ", "), strings.Join(p.Operations, ", ")
		d.Write, d.Delete, d.Connect = slices.Contains(p.Does, grant.DeedWrite), slices.Contains(p.Does, grant.DeedDelete), slices.Contains(p.Does, grant.DeedConnect)
		if p.MaxRisk == detail.High {
			d.Risk = detail.High.String()
		}
	}
	// What the form has no field for it would lose without a word.
	made, err := d.pattern()
	if err != nil {
		return nil, false
	}
	want, err := json.Marshal(p)
	if err != nil {
		return nil, false
	}
	got, err := json.Marshal(made)
	return d, err == nil && string(got) == string(want)
}

// address is the form with this in it; show asks for its preview.
func (d *draft) address(show bool) string {
	q := url.Values{}
	for name, value := range map[string]string{
		"agent": d.Agent, "class": d.Class, "folders": d.Folders, "hosts": d.Hosts, "programs": d.Programs, "operations": d.Operations,
		"risk": d.Risk, "days": d.Days, "reason": d.Reason,
	} {
		if value != "" {
			q.Set(name, value)
		}
	}
	for name, yes := range map[string]bool{"write": d.Write, "delete": d.Delete, "connect": d.Connect, "show": show} {
		if yes {
			q.Set(name, "1")
		}
	}
	return address("/patterns/new", q)
}

// Form is the address of the form with this in it.
func (d *draft) Form() string { return d.address(false) }

// Fault is what is wrong with a field, "" for nothing.
func (d *draft) Fault(field string) template.HTML { return d.Faults[field] }

// folders are the lines of the field.
func (d *draft) folders() (out []string) {
	for line := range strings.Lines(d.Folders) {
		if line = strings.TrimSpace(line); line != "" {
			out = append(out, line)
		}
	}
	return out
}

// several are the words of a field in which commas or blanks stand between them.
func several(field string) []string {
	return strings.FieldsFunc(field, func(r rune) bool { return r == ',' || r == ' ' || r == '\n' || r == '\r' || r == '\t' })
}

// pattern is what the fields say. Fields that the class has none of count for nothing:
// the form does not show them.
func (d *draft) pattern() (grant.Pattern, error) {
	if d.Class != ownClass {
		folders, hosts := d.folders(), several(d.Hosts)
		if d.Class == string(grant.ClassInspect) {
			folders = nil
		}
		if d.Class != string(grant.ClassInstall) {
			hosts = nil
		}
		return grant.NewClass(grant.Class(d.Class), d.Agent, folders, hosts)
	}
	p := grant.Pattern{Agent: d.Agent, Programs: several(d.Programs), Operations: several(d.Operations), Does: []grant.Deed{grant.DeedRead}, MaxRisk: detail.Medium}
	for _, part := range []struct {
		yes  bool
		deed grant.Deed
	}{{d.Write, grant.DeedWrite}, {d.Delete, grant.DeedDelete}, {d.Connect, grant.DeedConnect}} {
		if part.yes {
			p.Does = append(p.Does, part.deed)
		}
	}
	if d.Connect {
		p.Hosts = several(d.Hosts)
	}
	var below []string
	for _, folder := range d.folders() {
		below = append(below, path.Join(folder, "**"))
	}
	if p.Read = below; d.Write || d.Delete {
		p.Read, p.Write = nil, below
	}
	if d.Risk == detail.High.String() {
		p.MaxRisk = detail.High
	}
	return p.Complete()
}

var (
	hostName    = regexp.MustCompile(`^(\*\.)?[a-z0-9]([a-z0-9.-]*[a-z0-9])?$`)
	programName = regexp.MustCompile(`^[^/*?\s,=]+$`)
)

// plainFolder reports whether a line names one folder, whole.
func plainFolder(folder string) bool {
	return strings.HasPrefix(folder, "/") && path.Clean(folder) != "/" && !strings.ContainsAny(folder, "*?[]{}\\") && !slices.Contains(strings.Split(folder, "/"), "..")
}

// check notes what is wrong at each field, and returns the pattern where nothing is.
func (d *draft) check(v *visit, agents []string) (p grant.Pattern, err error) {
	d.Faults = map[string]template.HTML{}
	fault := func(field, key string, args ...any) {
		text, e := v.text(key, args...)
		if d.Faults[field] != "" {
			return
		}
		if d.Faults[field] = text; e != nil && err == nil {
			err = e
		}
	}
	for field, text := range map[string]string{"agent": d.Agent, "folders": d.Folders, "hosts": d.Hosts, "programs": d.Programs, "operations": d.Operations, "days": d.Days} {
		if len(text) > draftText || !utf8.ValidString(text) {
			fault(field, "draft.fault.text")
		}
	}
	if !slices.Contains(agents, d.Agent) {
		fault("agent", "draft.fault.agent")
	}
	class := grant.Class(d.Class)
	if d.Class != ownClass && !slices.Contains(grant.Classes(), class) {
		fault("class", "draft.fault.class")
	}
	d.checkFolders(class, fault)
	d.checkHosts(class, fault)
	if d.Class == ownClass {
		for _, name := range several(d.Programs) {
			if !programName.MatchString(name) {
				fault("programs", "draft.fault.program", "name", shortened(name, pathShown))
			}
		}
		if d.Risk == detail.High.String() && d.Programs == "" && d.Operations == "" {
			fault("programs", "draft.fault.any")
		}
	}
	if days, e := strconv.Atoi(strings.TrimSpace(d.Days)); e != nil || days < 1 || days > grant.MaxDays {
		fault("days", "draft.fault.days", "most", grant.MaxDays)
	}
	if len(d.Reason) > draftReason || !utf8.ValidString(d.Reason) {
		fault("reason", "draft.fault.reason", "most", draftReason)
	}
	if len(d.Faults) > 0 || err != nil {
		return p, err
	}
	p, e := d.pattern()
	if e != nil {
		fault("all", "draft.fault.other", "why", e.Error())
	}
	return p, err
}

func (d *draft) checkFolders(class grant.Class, fault func(field, key string, args ...any)) {
	folders := d.folders()
	if class == grant.ClassInspect {
		return
	}
	if len(folders) > draftMost {
		fault("folders", "draft.fault.many", "most", draftMost)
	}
	for _, folder := range folders {
		if !plainFolder(folder) {
			fault("folders", "draft.fault.folder", "folder", shortened(folder, pathShown))
		}
	}
	switch {
	case class == grant.ClassSafe:
	case len(folders) > 1 && (class == grant.ClassBox || class == grant.ClassInstall):
		fault("folders", "draft.fault.one")
	case len(folders) == 0 && d.Class != "" && !(d.Class == ownClass && d.Connect && !d.Write && !d.Delete):
		fault("folders", "draft.fault.nofolder")
	}
}

func (d *draft) checkHosts(class grant.Class, fault func(field, key string, args ...any)) {
	if class != grant.ClassInstall && !(d.Class == ownClass && d.Connect) {
		return
	}
	hosts := several(d.Hosts)
	if len(hosts) == 0 {
		fault("hosts", "draft.fault.nohost")
	}
	if len(hosts) > draftMost {
		fault("hosts", "draft.fault.many", "most", draftMost)
	}
	for _, host := range hosts {
		if !hostName.MatchString(host) || class == grant.ClassInstall && strings.HasPrefix(host, "*") {
			fault("hosts", "draft.fault.host", "host", shortened(host, pathShown))
		}
	}
}

// choice is an agent, a group or all, to choose from.
type choice struct {
	Value string
	Whom  whom
}

// choices lists for whom a pattern may be.
func (s *server) choices(v *visit) (out []choice, names map[string]string, err error) {
	agents, names, err := s.agentsOf(v)
	if err != nil {
		return nil, nil, err
	}
	groups, err := s.backend.Groups.Groups(v.Context(), v.session)
	for _, a := range agents {
		out = append(out, choice{a.Email, whomOf(a.Email, names)})
	}
	for _, g := range groups {
		out = append(out, choice{grant.GroupPrefix + g.Name, whom{Kind: "group", Name: g.Name}})
	}
	return append(out, choice{"*", whom{Kind: "all"}}), names, err
}

// formView is the form of a new pattern.
type formView struct {
	*draft
	Choices []choice
	Classes []string
	Closed  bool // it began at a card, which was answered meanwhile
	Refused string
}

// newPatternPage shows the form, and its preview when it is asked for and nothing is
// wrong. It changes nothing: the preview's button prepares a change of trust.
func (s *server) newPatternPage(v *visit) (*page, error) {
	q := v.URL.Query()
	d := draftFrom(q)
	form := formView{draft: d, Classes: []string{}}
	for _, class := range grant.Classes() {
		form.Classes = append(form.Classes, string(class))
	}
	form.Classes = append(form.Classes, ownClass)
	if id := q.Get("card"); id != "" {
		card, err := s.backend.Cards.Card(v.Context(), v.session, id)
		if err != nil {
			return nil, err
		}
		form.Closed = card.Grant.As(grant.At(v.now)).Status != grant.Pending
		d.fill(card)
	}
	choices, names, err := s.choices(v)
	if err != nil {
		return nil, err
	}
	form.Choices = choices
	p := &page{view: "pattern-new", section: "patterns", back: "/patterns", title: v.must("draft.title"), data: &form}
	if q.Get("show") == "" {
		return p, nil
	}
	var known []string
	for _, c := range choices {
		known = append(known, c.Value)
	}
	pattern, err := d.check(v, known)
	if err != nil || len(d.Faults) > 0 {
		return p, err
	}
	preview, err := s.backend.Previews.PreviewStanding(v.Context(), v.session, pattern)
	if refused, ok := errors.AsType[*Refusal](err); ok {
		form.Refused = refused.Reason
		return p, nil
	}
	if err != nil {
		return nil, err
	}
	data, err := s.previewOf(v, d, preview, names)
	return &page{view: "pattern-preview", section: "patterns", back: d.Form(), title: v.must("preview.title"), data: data}, err
}

// fill suggests what a card tells: whose it is, where it is about, and what would
// start. The person edits it.
func (d *draft) fill(c Card) {
	if d.Agent == "" {
		d.Agent = c.Grant.Request.Requester
	}
	folder := ""
	if r := c.Grant.Request.Context; r != nil {
		folder = filePath(r.Cwd)
	}
	if at := pathOf(c.Statement.Cwd); at != nil {
		folder = *at
	}
	if d.Folders == "" && plainFolder(folder) {
		d.Folders = folder
	}
	if c.Reading == nil || d.Programs != "" || d.Class != "" {
		return
	}
	var programs, hosts []string
	for i, call := range c.Reading.Calls {
		if startsNothing(c.Reading.Calls, i) && programName.MatchString(call.Program) && !slices.Contains(programs, call.Program) {
			programs = append(programs, call.Program)
		}
		hosts = append(hosts, call.Hosts...)
	}
	slices.Sort(hosts)
	d.Programs, d.Hosts = strings.Join(programs, ", "), strings.Join(slices.Compact(hosts), ", ")
	d.Write, d.Delete, d.Connect = c.Reading.Effects.Has(detail.Writes), c.Reading.Effects.Has(detail.Destroys), c.Reading.Effects.Has(detail.Contacts)
}

// startsNothing reports whether no later call is started by this one.
func startsNothing(calls []*reading.Call, i int) bool {
	return i+1 == len(calls) || calls[i+1].Depth <= calls[i].Depth
}

// previewedView is a command of a preview.
type previewedView struct {
	Command string
	Count   int
	Why     template.HTML
}

// previewView is what a pattern would have covered, before it is signed.
type previewView struct {
	*draft
	api.StandingPreview
	Title     template.HTML
	For       whom
	Words     []template.HTML
	Out       template.HTML // what stays out, for a class
	Params    []paramView
	CoversAny []previewedView
	StaysOut  []previewedView
	Body      string // of the call that prepares the change of trust
}

func (s *server) previewOf(v *visit, d *draft, in api.StandingPreview, names map[string]string) (out *previewView, err error) {
	out = &previewView{draft: d, StandingPreview: in, For: whomOf(in.Pattern.Agent, names), Params: patternParams(in.Pattern)}
	if out.Title, err = titleOf(v, in.Pattern); err != nil {
		return out, err
	}
	if out.Words, err = wordsOf(v, in.Pattern); err != nil {
		return out, err
	}
	if in.Pattern.Class != "" {
		if out.Out, err = v.text("class." + string(in.Pattern.Class) + ".out"); err != nil {
			return out, err
		}
	}
	for _, part := range []struct {
		from []api.Previewed
		to   *[]previewedView
	}{{in.Covers, &out.CoversAny}, {in.StaysOut, &out.StaysOut}} {
		for _, row := range part.from {
			view := previewedView{Command: shortened(maskedText(row.Command), callShown), Count: row.Count}
			if row.Why != "" {
				if view.Why, err = s.missed(v, row.Why); err != nil {
					return out, err
				}
			}
			*part.to = append(*part.to, view)
		}
	}
	pattern, err := json.Marshal(in.Pattern)
	if err != nil {
		return out, err
	}
	params := map[string]string{"pattern": string(pattern), "days": strings.TrimSpace(d.Days)}
	if d.Reason != "" {
		params["reason"] = d.Reason
	}
	body, err := json.Marshal(prepareBody{api.TrustStandingAdd, params})
	out.Body = string(body)
	return out, err
}
