package pages

import (
	"html/template"
	"time"

	"vogt/internal/grant"
)

// outcomeView is what a closed card says first.
type outcomeView struct {
	Answer    string // allowed, denied, nobody, withdrawn, revoked
	Icon      string
	Title     template.HTML
	At        time.Time
	Lines     []template.HTML
	Note      string
	Took      template.HTML
	Strength  template.HTML
	InForce   bool // the permission can still be used
	Revocable bool
}

func outcomeOf(v *visit, c Card) (outcomeView, error) {
	g := c.Grant
	o := outcomeView{}
	var texts []string // keys of the catalog
	key, who := "", c.Decider
	switch {
	case g.Status == grant.Denied:
		o.Answer, o.Icon, key, texts = "denied", "no", "outcome.denied", []string{"outcome.nothing", "outcome.denied.told"}
	case g.Status == grant.Revoked && g.Decision == nil && g.RevokedBy == g.Request.Requester:
		o.Answer, o.Icon, key, texts = "withdrawn", "info", "outcome.withdrawn", []string{"outcome.nothing", "outcome.neither"}
		o.At, who = g.Revoked.Time(), c.Agent
	case g.Status == grant.Revoked:
		o.Answer, o.Icon, key, texts = "denied", "no", "outcome.revoked", []string{"outcome.revoked.told"}
		o.At, who = g.Revoked.Time(), c.Revoker
	case g.Status == grant.Expired && g.Decision == nil:
		o.Answer, o.Icon, key, texts = "nobody", "clock", "outcome.nobody", []string{"outcome.nothing", "outcome.nobody.told"}
		o.At = g.ValidUntil.Time()
	case g.Status == grant.Expired && g.Uses == 0:
		o.Answer, o.Icon, key, texts = "nobody", "clock", "outcome.unused", []string{"outcome.nothing", "outcome.unused.told"}
		o.At = g.ValidUntil.Time()
	case g.Status == grant.Expired:
		o.Answer, o.Icon, key, texts = "nobody", "clock", "outcome.over", []string{"outcome.over.told"}
		o.At = g.ValidUntil.Time()
	case g.Status == grant.Used:
		o.Answer, o.Icon, key, texts = "allowed", "yes", "outcome.once", []string{"outcome.used.told"}
	case g.Status == grant.Approved && g.Type == grant.Once:
		o.Answer, o.Icon, key, texts = "allowed", "yes", "outcome.once", []string{"outcome.once.waits"}
		o.InForce = true
	case g.Status == grant.Approved && g.Type == grant.Timed:
		o.Answer, o.Icon, key, texts = "allowed", "yes", "outcome.timed", []string{"outcome.timed.told"}
		o.InForce = true
	case g.Status == grant.Approved && g.Type == grant.Always:
		o.Answer, o.Icon, key, texts = "allowed", "yes", "outcome.always", []string{"outcome.always.told"}
		o.InForce = true
	default:
		o.Answer, o.Icon, key = "nobody", "info", "outcome.unknown"
	}
	if g.Request.Connect != nil && key == "outcome.always" {
		key, texts = "outcome.task", []string{"outcome.task.told"}
	}
	o.Revocable = o.InForce
	if g.Decision != nil {
		o.Note = g.Decision.Note
		if o.At.IsZero() {
			o.At = g.Decision.At.Time()
		}
	}
	if err := o.describe(v, g); err != nil {
		return o, err
	}
	until, err := v.moment(g.ValidUntil.Time())
	if err != nil {
		return o, err
	}
	by, err := v.by(who)
	if err != nil {
		return o, err
	}
	if o.Title, err = v.text(key, "by", by, "who", marked(who.label(), false), "until", until); err != nil {
		return o, err
	}
	if c.For.Email != "" && g.Decision != nil {
		line, err := v.text("outcome.deputy", "name", marked(c.For.label(), false))
		if err != nil {
			return o, err
		}
		o.Lines = append(o.Lines, line)
	}
	if c.Endorser.Email != "" {
		line, err := v.text("outcome.second", "name", marked(c.Endorser.label(), false))
		if err != nil {
			return o, err
		}
		o.Lines = append(o.Lines, line)
	}
	for _, k := range texts {
		line, err := v.text(k, "until", until, "uses", v.number(g.Uses))
		if err != nil {
			return o, err
		}
		o.Lines = append(o.Lines, line)
	}
	return o, nil
}

// describe fills in how strongly and how quickly it was answered.
func (o *outcomeView) describe(v *visit, g grant.Grant) (err error) {
	if g.Decision == nil {
		return nil
	}
	if o.Took, err = v.span(g.Decision.At.Time().Sub(g.Created.Time())); err != nil {
		return err
	}
	key := "strength.unknown"
	switch g.Decision.Strength {
	case grant.Bearer, grant.Click, grant.Passkey, grant.Independent:
		key = "strength." + string(g.Decision.Strength)
	}
	o.Strength, err = v.text(key)
	return err
}

// by names who acted: "by you" or "by Jonas".
func (v *visit) by(p Person) (template.HTML, error) {
	if p.Email != "" && p.Email == v.session.Person.Email {
		return v.text("by.you")
	}
	if p.Email == "" && p.Name == "" {
		return v.text("by.authority")
	}
	return v.text("by.name", "name", marked(p.label(), false))
}
