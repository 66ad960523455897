package reading

import (
	"strings"

	"vogt/internal/catalog"
	"vogt/internal/detail"
)

// Details are the calls as typed details, in the order of the text. A reading
// that is not known whole has an unknown detail of high risk among them.
func (r *Reading) Details() []detail.Detail {
	out := make([]detail.Detail, 0, len(r.Calls))
	for i := range r.Calls {
		out = append(out, r.Calls[i].Detail())
	}
	return out
}

// Detail is the call as a typed detail.
func (c *Call) Detail() detail.Command {
	d := detail.Command{Program: c.Program, Operation: c.Use.Operation(), Action: actionOf(c.Effects), Risk: c.Risk}
	if d.Program == "" {
		d.Program = "shell"
		d.Operation = "shell.redirect"
	}
	if len(c.Words) > 0 {
		d.Argv, _ = c.Argv()
	}
	if c.decides {
		d.Operation = DecideOperation
		return d
	}
	if d.Operation == "" || c.Effects.Has(detail.Opaque) {
		d.Operation = detail.GenericOperation
		if d.Argv != nil {
			return d // bound to the exact list
		}
	}
	d.Chain = c.chain()
	return d
}

// actionOf is the action that counts most among the effects.
func actionOf(e detail.Effects) detail.Action {
	switch {
	case e.Has(detail.Opaque | detail.Executes | detail.Door | detail.Privileged):
		return detail.ActionExec
	case e.Has(detail.Destroys):
		return detail.ActionDelete
	case e.Has(detail.Writes):
		return detail.ActionWrite
	case e.Has(detail.Contacts):
		return detail.ActionConnect
	}
	return detail.ActionRead
}

// chain is the resource chain from the roles of the words.
func (c *Call) chain() []detail.Resource {
	chain := []detail.Resource{}
	if c.text != "" {
		chain = append(chain, detail.Resource{Name: "text", Selector: map[string]string{"hash": detail.ArgvHash([]string{c.text})}})
	}
	for _, list := range []struct {
		name, key string
		values    []string
	}{{"read", "path", c.Paths.Reads}, {"write", "path", c.Paths.Writes}, {"delete", "path", c.Paths.Deletes}, {"host", "name", c.Hosts}} {
		for _, v := range list.values {
			if v != "" {
				chain = append(chain, detail.Resource{Name: list.name, Selector: map[string]string{list.key: v}})
			}
		}
	}
	for i := range c.Use.Values {
		v := &c.Use.Values[i]
		if v.Role != catalog.Thing || v.Word >= len(c.Words) {
			continue
		}
		text := pathText(c.Words[v.Word])
		if v.From > 0 && v.From < len(text) {
			text = text[v.From:]
		}
		if text != "" {
			chain = append(chain, detail.Resource{Name: v.Arg, Selector: map[string]string{"name": text}})
		}
	}
	return chain
}

// Shown is the call as a person reads it.
func (c *Call) Shown() string {
	if len(c.Words) == 0 {
		return ""
	}
	var b strings.Builder
	for i, w := range c.Words {
		if i > 0 {
			b.WriteByte(' ')
		}
		if w.Kind == catalog.Literal {
			b.WriteString(quote(w.Text))
		} else {
			b.WriteString(w.Shown())
		}
	}
	return b.String()
}

// ExampleEffects are the effects of a reading in the words of an example of
// the catalog, sorted.
func ExampleEffects(r *Reading) []string {
	var out []string
	for _, e := range []struct {
		effect detail.Effects
		word   string
	}{
		{detail.Destroys, "destroy"}, {detail.Executes, "exec"}, {detail.Contacts, "net"}, {detail.Opaque, "opaque"},
		{detail.Privileged, "priv"}, {detail.Writes, "write"},
	} {
		if r.Effects.Has(e.effect) {
			out = append(out, e.word)
		}
	}
	if out != nil {
		return out
	}
	neutral := false
	for i := range r.Calls {
		c := r.Calls[i]
		if c.Effects.Has(detail.Unsettled | detail.Door) {
			if !c.Use.Neutral {
				return []string{"read"}
			}
			neutral = true
		}
	}
	if neutral {
		return []string{"neutral"}
	}
	return []string{"inert"}
}
