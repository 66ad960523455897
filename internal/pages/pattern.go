package pages

import (
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
	line("agent", p.Agent)
	line("machine", p.Machine)
	line("audience", p.Audience)
	if p.Unseen {
		line("unseen", "*")
	}
	programs := p.Programs
	if len(programs) == 0 {
		programs = []string{"*"}
	}
	list("programs", programs)
	list("operations", p.Operations)
	var does []string
	for _, d := range p.Does {
		does = append(does, string(d))
	}
	list("does", does)
	if p.Box != nil {
		line("box", p.Box.Profile)
		line("workspace", p.Box.Workspace)
	} else {
		list("read", p.Read)
		list("write", p.Write)
	}
	list("hosts", p.Hosts)
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
	line("audience", p.Audience)
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
