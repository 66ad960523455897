package pages

import (
	"html/template"
	"strconv"
	"strings"

	"vogt/internal/detail"
	"vogt/internal/grant"
)

// patternParams are the parts of a pattern, each as a line of its own.
func patternParams(p grant.Pattern) (out []paramView) {
	line := func(name, value string) {
		if value != "" {
			out = append(out, paramView{Name: name, Value: value, Known: true})
		}
	}
	list := func(name string, values []string) { line(name, strings.Join(values, ", ")) }
	if p.Class != "" {
		out = append(out, paramView{Name: "class", Value: string(p.Class), Known: true, Word: "class." + string(p.Class)})
	}
	switch name, group := strings.CutPrefix(p.Agent, grant.GroupPrefix); {
	case group:
		line("group", name)
	case p.Agent == "*":
		out = append(out, paramView{Name: "agent", Value: p.Agent, Known: true, Word: "for.all"})
	default:
		line("agent", p.Agent)
	}
	line("machine", p.Machine)
	line("for_audience", p.Audience)
	if p.Unseen {
		line("unseen", "*")
	}
	programs := p.Programs
	if len(programs) == 0 && len(p.Files) == 0 {
		programs = []string{"*"}
	}
	list("programs", programs)
	for _, digest := range p.Files {
		line("files", digest)
	}
	list("operations", p.Operations)
	var does []string
	for _, d := range p.Does {
		does = append(does, string(d))
	}
	list("does", does)
	switch {
	case p.Box != nil && len(p.Hosts) > 0:
		line("box.net", p.Box.Profile)
		line("workspace", p.Box.Workspace)
		list("box.hosts", p.Hosts)
	case p.Box != nil:
		line("box", p.Box.Profile)
		line("workspace", p.Box.Workspace)
	default:
		list("hosts", p.Hosts)
	}
	list("read", p.Read)
	list("write", p.Write)
	line("max_risk", p.MaxRisk.String())
	line("per_minute", strconv.FormatInt(p.Limits.PerMinute, 10))
	line("deletes_per_hour", strconv.FormatInt(p.Limits.Deletes, 10))
	if p.Limits.Uses > 0 {
		line("max_uses", strconv.FormatInt(p.Limits.Uses, 10))
	}
	return out
}

// policyParams are the parts of an auto-approval policy, each as a line of its own.
func policyParams(p grant.Policy) (out []paramView) {
	line := func(name, value string) {
		if value != "" {
			out = append(out, paramView{Name: name, Value: value, Known: true})
		}
	}
	line("agent", p.Agent)
	line("for_audience", p.Audience)
	line("mode", string(p.Mode))
	for _, pattern := range p.Allow {
		line("allow", pattern)
	}
	for _, pattern := range p.Deny {
		line("deny", pattern)
	}
	if p.DenyRisk != detail.Unrated {
		line("deny_risk", p.DenyRisk.String())
	}
	line("per_minute", strconv.FormatInt(p.Limits.PerMinute, 10))
	line("deletes_per_hour", strconv.FormatInt(p.Limits.Deletes, 10))
	return out
}

// whom is for whom a pattern is: an agent, a group, or all.
type whom struct {
	Kind string // agent, group or all; of the catalog, after "for."
	Name string
}

// whomOf names the agent of a pattern; names are what people call agents, by address.
func whomOf(agent string, names map[string]string) whom {
	name, group := strings.CutPrefix(agent, grant.GroupPrefix)
	switch {
	case agent == "*":
		return whom{Kind: "all"}
	case group:
		return whom{Kind: "group", Name: name}
	case names[agent] != "":
		return whom{Kind: "agent", Name: names[agent]}
	}
	return whom{Kind: "agent", Name: agent}
}

// namedMost is how many programs, files or hosts a line names.
const namedMost = 6

// listed puts names into one line, and tells how many more there are.
func listed(v *visit, names []string) (template.HTML, error) {
	part := names[:min(len(names), namedMost)]
	var b strings.Builder
	for i, name := range part {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString("<code>")
		b.WriteString(string(marked(shortened(name, pathShown), false)))
		b.WriteString("</code>")
	}
	if len(names) == len(part) {
		return template.HTML(b.String()), nil
	}
	more, err := v.count("does.more", len(names)-len(part))
	return template.HTML(b.String() + ", " + string(more)), err
}

// titleOf is what people call a pattern: its class, or its programs.
func titleOf(v *visit, p grant.Pattern) (template.HTML, error) {
	switch {
	case p.Class != "":
		return v.text("class." + string(p.Class))
	case len(p.Files) > 0:
		return v.count("pattern.files", len(p.Files))
	case len(p.Operations) > 0:
		return listed(v, p.Operations)
	case len(p.Programs) > 0:
		return listed(v, p.Programs)
	}
	return v.text("pattern.any")
}

// wordsOf says in words what a pattern covers: for a class in a sentence, and then
// where.
func wordsOf(v *visit, p grant.Pattern) (out []template.HTML, err error) {
	say := func(text template.HTML, e error) {
		if err == nil {
			err = e
		}
		out = append(out, text)
	}
	some := func(key string, values []string) {
		if len(values) == 0 {
			return
		}
		names, e := listed(v, values)
		if e != nil {
			say("", e)
			return
		}
		say(v.text(key, "what", names))
	}
	if p.Class != "" {
		say(v.text("class." + string(p.Class) + ".covers"))
		if folders := p.Folders(); len(folders) > 0 {
			some("pattern.in", folders)
		} else if p.Class == grant.ClassSafe {
			say(v.text("pattern.nowhere"))
		}
	} else {
		if len(p.Operations) > 0 {
			some("pattern.programs", p.Programs)
		}
		if len(p.Files) == 0 {
			for _, d := range p.Does {
				say(v.text("deed." + string(d)))
			}
		}
		if p.Box != nil {
			say(v.text("pattern.box", "box", marked(shortened(p.Box.Profile, pathShown), false)))
			if p.Box.Workspace != "" {
				some("pattern.about", []string{p.Box.Workspace})
			}
		}
		some("pattern.reads", p.Read)
		some("pattern.writes", p.Write)
		if p.MaxRisk > 0 {
			say(v.text("pattern.risk." + riskName(p.MaxRisk)))
		}
	}
	some("pattern.hosts", p.Hosts)
	if p.Machine != "" {
		some("pattern.machine", []string{p.Machine})
	}
	if p.Audience != "" {
		some("pattern.audience", []string{p.Audience})
	}
	if p.Unseen {
		say(v.text("pattern.unseen"))
	}
	return out, err
}
