package authority

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"vogt/internal/api"
	"vogt/internal/detail"
	"vogt/internal/fault"
	"vogt/internal/grant"
	"vogt/internal/store"
)

const (
	maxDeputies = 50 // of one person, in force or to come
	// maxDeputyTerm is how long after its signature an appointment may end: whoever
	// is away for longer signs another.
	maxDeputyTerm = 92 * 24 * time.Hour
)

func errNoDeputy() *Error {
	return problem(404, "There is no such deputy", "", "See yours: vogt deputy list.")
}

// mandate are the bounds that a deputy was asked for with.
type mandate struct {
	deputy      string
	agents      []string
	risk        detail.Risk
	from, until grant.Millis // from is 0 for at once
}

// deputyParams checks the parameters of an appointment to be signed and puts them into
// their one form, which is what the person sees and signs.
func deputyParams(params map[string]string) error {
	m, err := readMandate(params)
	if err != nil {
		return err
	}
	params["deputy"], params["agents"], params["max_risk"] = m.deputy, strings.Join(m.agents, ","), m.risk.String()
	params["until"] = m.until.Time().UTC().Format(time.RFC3339)
	delete(params, "from")
	if m.from != 0 {
		params["from"] = m.from.Time().UTC().Format(time.RFC3339)
	}
	return nil
}

func readMandate(params map[string]string) (m mandate, err error) {
	bad := func(format string, args ...any) (mandate, error) {
		return m, problem(400, "The deputy cannot be taken", fmt.Sprintf(format, args...), "Correct it; vogt deputy add --help names the bounds.")
	}
	m.deputy = lower(params["deputy"])
	if err := checkEmail(m.deputy); err != nil {
		return m, err
	}
	for agent := range strings.SplitSeq(params["agents"], ",") {
		if agent = lower(strings.TrimSpace(agent)); agent != "*" {
			if err := checkEmail(agent); err != nil {
				return m, err
			}
		}
		m.agents = append(m.agents, agent)
	}
	slices.Sort(m.agents)
	m.agents = slices.Compact(m.agents)
	if len(m.agents) > 1 && m.agents[0] == "*" {
		return bad("agents names all of them, and some.")
	}
	if m.risk, err = detail.ParseRisk(params["max_risk"]); err != nil || !m.risk.Within(detail.High) {
		return bad("max_risk %q: want low, medium or high; what is critical waits for the person.", shorten(params["max_risk"], 40))
	}
	for _, end := range []struct {
		name string
		at   *grant.Millis
	}{{"from", &m.from}, {"until", &m.until}} {
		text := params[end.name]
		if text == "" && end.name == "from" {
			continue
		}
		at, err := parseEnd(text)
		if err != nil {
			return bad("%s %q: want a time such as 2030-01-31T12:00:00Z.", end.name, shorten(text, 40))
		}
		*end.at = grant.Millis(at.Unix() * 1000)
	}
	return m, nil
}

// addDeputy puts an appointment into force. The record that holds the signature is the
// next one.
func (t *txn) addDeputy(person store.Principal, params map[string]string, strength grant.Strength) (d store.Deputy, err error) {
	bad := func(title, format string, args ...any) (store.Deputy, error) {
		return d, problem(400, title, fmt.Sprintf(format, args...), "")
	}
	m, err := readMandate(params)
	if err != nil {
		return d, err
	}
	if m.deputy == person.Email {
		return bad("Nobody is their own deputy", "The deputy is you.")
	}
	p, err := store.PrincipalByEmail(t, m.deputy)
	if ignoreNotFound(err) != nil {
		return d, err
	}
	if !usable(p) || p.Kind != kindPerson {
		return bad("There is no such person", "%q cannot answer for you: it is no person in good standing here.", m.deputy)
	}
	for _, email := range m.agents {
		if email == "*" {
			continue
		}
		a, err := store.PrincipalByEmail(t, email)
		if ignoreNotFound(err) != nil {
			return d, err
		}
		if a.Kind != kindAgent || a.Removed || a.Owner != person.Email && a.Approver != person.Email {
			return d, problem(404, "There is no such agent", fmt.Sprintf("%q is none that you answer for.", email), "See yours: vogt agent list.")
		}
	}
	from := max(t.now, m.from)
	if m.until <= from || m.until > t.now+grant.Millis(maxDeputyTerm.Milliseconds()) {
		return bad("The time of the deputy is out of range", "It ends after its begin, and within %d days from now.", int(maxDeputyTerm.Hours()/24))
	}
	open, err := store.OpenDeputies(t, person.Email, int64(t.now))
	if err != nil {
		return d, err
	}
	if len(open) >= maxDeputies {
		return d, problem(409, "Too many deputies", fmt.Sprintf("%d appointments are in force or to come.", len(open)), "End those that are no longer needed: vogt deputy list.")
	}
	d = store.Deputy{
		Person: person.Email, PersonGen: person.Generation, Deputy: p.Email, DeputyGen: p.Generation, Agents: m.agents, MaxRisk: m.risk,
		Reason: params["reason"], Created: max(t.now, grant.Millis(person.Created), grant.Millis(p.Created)), From: from, Until: m.until, Strength: strength,
	}
	if d.ID, err = t.a.newID(); err != nil {
		return d, err
	}
	if d.Record, err = store.LogSize(t); err != nil {
		return d, err
	}
	return d, store.InsertDeputy(t, d)
}

// deputyView is an appointment as the interface shows it.
func (a *Authority) deputyView(d store.Deputy) api.Deputy {
	now := a.now()
	state := "in-force"
	switch {
	case d.Revoked != 0:
		state = "revoked"
	case d.Until.Reached(now):
		state = "over"
	case d.From > now:
		state = "to-come"
	}
	return api.Deputy{
		ID: d.ID, Status: state, Person: d.Person, Deputy: d.Deputy, Agents: d.Agents, MaxRisk: d.MaxRisk.String(), Reason: d.Reason,
		CreatedAt: d.Created.Seconds(), From: d.From.Seconds(), Until: d.Until.Seconds(), Strength: d.Strength, Record: d.Record, Answers: d.Answers,
	}
}

// Deputies lists the appointments that the caller made or holds.
func (a *Authority) Deputies(ctx context.Context, by Actor) (out []api.Deputy, err error) {
	if !by.Person() {
		return nil, problem(403, "Only people have deputies", "", "").kind("forbidden")
	}
	err = a.view(ctx, func(tx store.Tx) error {
		out = []api.Deputy{}
		rows, err := store.DeputiesOf(tx, by.Principal.Email, by.Principal.Created)
		for _, d := range rows {
			out = append(out, a.deputyView(d))
		}
		return err
	})
	return out, err
}

// EndDeputy ends an appointment, and what was allowed under it and nobody has used
// yet. The login of the person suffices, and of the deputy, who may resign.
func (a *Authority) EndDeputy(ctx context.Context, by Actor, id string) error {
	return a.narrow(ctx, func(t *txn) error {
		d, err := store.DeputyByID(t, id)
		if ignoreNotFound(err) != nil {
			return err
		}
		e, mine := by.Principal.Email, by.Means == Management
		mine = mine || by.Person() && by.Principal.Created <= int64(d.Created) && (e == d.Person || e == d.Deputy)
		if d.ID == "" || !mine {
			return errNoDeputy()
		}
		if by.Means != Management {
			if err := t.mayNarrow(by, e); err != nil {
				return err
			}
		}
		return t.endDeputy(by.Name(), d, "revoked")
	})
}

func (t *txn) endDeputy(by string, d store.Deputy, why string) error {
	if err := store.EndDeputy(t, d.ID, by, int64(t.now)); errors.Is(err, store.ErrConflict) {
		return problem(409, "The deputy was ended already", "", "")
	} else if err != nil {
		return err
	}
	fault.Point("authority.deputy")
	allowed, err := store.DeputyGrants(t, d.ID)
	if err != nil {
		return err
	}
	for _, g := range allowed {
		next, err := g.Apply(grant.Revoke{By: by, At: t.now})
		if err != nil {
			continue // its time has run out; it is written down as expired
		}
		if err := t.revoke(next, "the deputy "+d.ID+" was "+why); err != nil {
			return err
		}
	}
	_, err = t.record(recordTrust, "", d.Deputy, trustRecord{
		Operation: "deputy.ended", By: by, Subject: d.Deputy, Params: map[string]string{"id": d.ID, "person": d.Person, "why": why},
	})
	return err
}

// endDeputiesOf ends the appointments that name a principal.
func (t *txn) endDeputiesOf(by, email string) error {
	open, err := store.OpenDeputies(t, email, int64(t.now))
	if err != nil {
		return err
	}
	for _, d := range open {
		if err := t.endDeputy(by, d, "withdrawn with "+email); err != nil {
			return err
		}
	}
	return nil
}

// standsIn is the appointment under which the actor, who does not answer for g
// itself, may answer for it at now; nil for none. The appointments were read with the
// actor; whoever writes reads them again with [txn.deputyStill].
func (a Actor) standsIn(g grant.Grant, now grant.Millis) *store.Deputy {
	if !a.Person() || !a.knew(g) || g.Request.Requester == a.Principal.Email {
		return nil
	}
	for i := range a.Deputies {
		if d := &a.Deputies[i]; d.Active(now) && d.Deputy == a.Principal.Email && d.Covers(g) {
			return d
		}
	}
	return nil
}

// deputyStill checks, inside the transaction that acts on it, that an appointment
// holds, covers g, and is of who they were.
func (t *txn) deputyStill(id, deputy string, g grant.Grant) (store.Deputy, error) {
	over := func() *Error {
		return problem(403, "You do not answer for this any more", "The appointment as deputy has ended, or does not cover it.", "Ask the person for whom you stood in.").kind("forbidden")
	}
	d, err := store.DeputyByID(t, id)
	if err != nil {
		return d, over().caused(err)
	}
	if d.Deputy != deputy || !d.Active(t.now) || !d.Covers(g) {
		return d, over()
	}
	for _, bound := range []struct {
		email string
		gen   uint64
	}{{d.Person, d.PersonGen}, {d.Deputy, d.DeputyGen}} {
		p, err := store.PrincipalByEmail(t, bound.email)
		if err != nil || !usable(p) || p.Kind != kindPerson || p.Generation != bound.gen || p.Created > int64(g.Created) {
			return d, over().caused(err)
		}
	}
	return d, nil
}

// waitingFor lists the pending requests that the actor may answer as a deputy, in the
// order of f and at most as many as it says.
func waitingFor(tx store.Tx, by Actor, f store.Filter) ([]grant.Grant, error) {
	var out []grant.Grant
	for _, d := range by.Deputies {
		if !d.Active(f.Now) {
			continue
		}
		page := f
		page.Viewer, page.Status, page.Agent, page.Since = d.Person, grant.Pending, false, grant.Millis(by.Principal.Created)
		for found := 0; found < f.Limit; {
			rows, err := store.ListGrants(tx, page)
			if err != nil {
				return nil, err
			}
			for _, g := range rows {
				page.Before, page.BeforeID = g.Created, g.ID
				if _, own, _ := by.decides(g, f.Now); own == nil || own.ID != d.ID {
					continue
				}
				if found++; !slices.ContainsFunc(out, func(o grant.Grant) bool { return o.ID == g.ID }) {
					out = append(out, g)
				}
			}
			if len(rows) < f.Limit {
				break
			}
		}
	}
	return out, nil
}

// merged are rows of two lists in the order of f, at most as many as it says.
func merged(f store.Filter, rows, more []grant.Grant) []grant.Grant {
	if len(more) == 0 {
		return rows
	}
	rows = append(rows, more...)
	slices.SortFunc(rows, func(a, b grant.Grant) int {
		order := strings.Compare(a.ID, b.ID)
		if a.Created != b.Created {
			order = 1
			if a.Created < b.Created {
				order = -1
			}
		}
		if !f.OldFirst {
			order = -order
		}
		return order
	})
	rows = slices.CompactFunc(rows, func(a, b grant.Grant) bool { return a.ID == b.ID })
	return rows[:min(len(rows), f.Limit)]
}
