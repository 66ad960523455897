package authority

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"vogt/internal/api"
	"vogt/internal/detail"
	"vogt/internal/fault"
	"vogt/internal/grant"
	"vogt/internal/store"
	"vogt/internal/token"
)

const (
	// maxDelegations bounds what one person has in force.
	maxDelegations = 1000
	// onceDelegationTTL is how long one for a single use waits for it where nothing
	// else was said.
	onceDelegationTTL = 7 * 24 * 60 * 60 * 1000
	// maxDelegation is the longest that one with an end may last, in seconds. Clients
	// name years that are far away for "until I take it back".
	maxDelegation = 100 * 366 * 24 * 60 * 60
	maxScopes     = 64
	maxScope      = 128 // bytes
)

// errNoDelegation is said for delegations that do not exist, for those of others, and
// to a delegate that names another audience: each learns the same.
func errNoDelegation() *Error {
	return problem(404, "There is no such delegation", "", "See yours: vogt delegation list.").kind("grant_not_found")
}

// terms are what a delegation was asked for with.
type terms struct {
	delegate, audience string
	kind               grant.Type
	scopes             []string
	duration           int64        // seconds; 0 for none
	end                grant.Millis // 0 for none
}

// delegationParams checks the parameters of a delegation to be signed and puts them
// into their one form, which is what the person sees and signs.
func delegationParams(params map[string]string) error {
	w, err := readTerms(params)
	if err != nil {
		return err
	}
	params["delegate"], params["audience"], params["grant_type"] = w.delegate, w.audience, string(w.kind)
	delete(params, "scopes")
	if len(w.scopes) > 0 {
		params["scopes"] = strings.Join(w.scopes, " ")
	}
	delete(params, "duration")
	if w.duration > 0 {
		params["duration"] = strconv.FormatInt(w.duration, 10)
	}
	delete(params, "expires_at")
	if w.end != 0 {
		params["expires_at"] = w.end.Time().UTC().Format(time.RFC3339)
	}
	return nil
}

func readTerms(params map[string]string) (w terms, err error) {
	bad := func(format string, args ...any) (terms, error) {
		return w, problem(400, "The delegation cannot be taken", fmt.Sprintf(format, args...), "Correct it; vogt delegation add --help names what it may hold.")
	}
	w.delegate, w.audience, w.kind = lower(params["delegate"]), params["audience"], grant.Type(params["grant_type"])
	if err := checkEmail(w.delegate); err != nil {
		return w, err
	}
	if w.audience == "" || len(w.audience) > 255 || !plainText(w.audience) || strings.Contains(w.audience, " ") {
		return bad("audience %q: want the name of one service, of at most 255 bytes, or * for any.", shorten(w.audience, 100))
	}
	if w.kind == "" {
		w.kind = grant.Once
	}
	if !w.kind.Valid() {
		return w, problem(400, "Unknown grant type", fmt.Sprintf("grant_type %q: want once, timed or always.", shorten(string(w.kind), 40)), "").kind("invalid_grant_type")
	}
	w.scopes = strings.Fields(params["scopes"])
	slices.Sort(w.scopes)
	w.scopes = slices.Compact(w.scopes)
	if len(w.scopes) > maxScopes {
		return bad("it has %d scopes, the limit is %d.", len(w.scopes), maxScopes)
	}
	for _, s := range w.scopes {
		// RFC 6749, section 3.3.
		if len(s) > maxScope || strings.ContainsFunc(s, func(r rune) bool { return r < 0x21 || r > 0x7e || r == '"' || r == '\\' }) {
			return bad("scope %q: want at most %d printable ASCII characters without quotes and backslashes.", shorten(s, 100), maxScope)
		}
	}
	duration, ends := params["duration"], params["expires_at"]
	switch {
	case duration != "" && ends != "":
		return bad("duration and expires_at are two ends; send one.")
	case duration != "":
		if w.duration, err = strconv.ParseInt(duration, 10, 64); err != nil || w.duration < 1 || w.duration > maxDelegation {
			return bad("duration %q: want 1 to %d seconds.", shorten(duration, 40), int64(maxDelegation))
		}
	case ends != "":
		at, err := parseEnd(ends)
		if err != nil {
			return bad("expires_at %q: want a time such as 2030-01-31T12:00:00Z.", shorten(ends, 40))
		}
		// Whole seconds, as they are shown.
		w.end = grant.Millis(at.Unix() * 1000)
	case w.kind == grant.Timed:
		return w, problem(400, "The duration is missing", "A timed delegation needs duration, in seconds, or expires_at.", "").kind("missing_duration")
	}
	return w, nil
}

// parseEnd reads a time of RFC 3339 that can be written so again: in another zone
// the last hours of year 9999 are in the next.
func parseEnd(text string) (time.Time, error) {
	at, err := time.Parse(time.RFC3339, text)
	if err == nil && (at.Unix() <= 0 || at.UTC().Year() > 9999) {
		err = errors.New("it is out of range")
	}
	return at, err
}

// until is when a delegation that begins now ends, 0 for never.
func (w terms) until(now grant.Millis) (grant.Millis, error) {
	end := w.end
	switch {
	case w.duration != 0:
		end = now + grant.Millis(w.duration*1000)
	case end == 0 && w.kind == grant.Once:
		end = now + onceDelegationTTL
	}
	if end != 0 && (end.Reached(now) || end > now+maxDelegation*1000) {
		return 0, problem(400, "The end is out of range", "A delegation ends in the future, within a hundred years.", "")
	}
	return end, nil
}

// addDelegation puts a delegation into force. The record that holds the signature is
// the next one.
func (t *txn) addDelegation(person store.Principal, params map[string]string, strength grant.Strength) (d store.Delegation, err error) {
	w, err := readTerms(params)
	if err != nil {
		return d, err
	}
	if t.a.ownAudience(w.audience) {
		return d, problem(400, "Nobody stands in for you at this authority", fmt.Sprintf("%q is the authority itself, which takes no delegated login.", w.audience), "Name the service that the delegate is to use.")
	}
	if w.delegate == person.Email {
		return d, problem(400, "Nobody delegates to themselves", "The delegate is you.", "Name another person, or an agent.")
	}
	p, err := store.PrincipalByEmail(t, w.delegate)
	if ignoreNotFound(err) != nil {
		return d, err
	}
	if !usable(p) {
		return d, problem(400, "There is no such principal", fmt.Sprintf("%q is neither a person nor an agent in good standing here.", w.delegate), "A delegate is enrolled here first: that is how it proves who it is.")
	}
	n, err := store.CountDelegations(t, person.Email, int64(t.now))
	if err != nil {
		return d, err
	}
	if n >= maxDelegations {
		return d, problem(409, "Too many delegations", fmt.Sprintf("%d are in force.", n), "Revoke those that are no longer needed: vogt delegation list.")
	}
	d = store.Delegation{
		Status: grant.Approved, Type: w.kind, Delegator: person.Email, DelegatorGen: person.Generation, Delegate: p.Email, DelegateGen: p.Generation,
		Audience: w.audience, Scopes: w.scopes, Duration: w.duration, Strength: strength,
		// A clock that was set back must not make it older than those whom it binds.
		Created: max(t.now, grant.Millis(person.Created), grant.Millis(p.Created)),
	}
	if d.Until, err = w.until(t.now); err != nil {
		return d, err
	}
	if d.ID, err = t.a.newID(); err != nil {
		return d, err
	}
	if d.Record, err = store.LogSize(t); err != nil {
		return d, err
	}
	return d, store.InsertDelegation(t, d)
}

// ownAudience reports whether a token for this audience would be one for the
// authority itself, at which nobody is in anybody else's place.
// Services are named by their host as well as by an address, so its hosts are meant too.
func (a *Authority) ownAudience(audience string) bool {
	audience = strings.ToLower(audience)
	if _, host, ok := strings.Cut(audience, "://"); ok {
		audience = host
	}
	audience, _, _ = strings.Cut(audience, "/")
	audience, _, _ = strings.Cut(audience, "?")
	audience = strings.TrimSuffix(audience, ":443")
	audience = strings.TrimSuffix(audience, ".")
	for _, own := range []string{a.cfg.Issuer, a.cfg.PagesOrigin} {
		_, host, _ := strings.Cut(strings.ToLower(own), "://")
		if audience == strings.TrimSuffix(host, ":443") {
			return true
		}
	}
	return audience == token.CLIAudience
}

// DelegateByBearer is the wire's way to delegate, with nothing but a person's token.
// It lets somebody act in the person's name elsewhere, which is of high risk, so it
// works only where the bearer_decisions switch admits that.
func (a *Authority) DelegateByBearer(ctx context.Context, by Actor, params map[string]string) (api.Delegation, error) {
	if !by.Person() {
		return api.Delegation{}, a.refuse(ctx, by, "", api.TrustDelegationAdd,
			problem(403, "Only humans can create delegations", "An agent lets nobody stand in for anybody.", "Ask your owner: vogt delegation add.").kind("forbidden"))
	}
	if !detail.High.Within(a.cfg.Bearer) {
		return api.Delegation{}, a.refuse(ctx, by, "", api.TrustDelegationAdd,
			problem(403, "A login alone delegates nothing", "It is a change of trust and needs a proof made for it.",
				"Use `vogt delegation add`, or set the authority's bearer_decisions switch to high for clients that cannot sign.").kind("forbidden"))
	}
	if err := delegationParams(params); err != nil {
		return api.Delegation{}, err
	}
	if !a.rates.try("delegation:"+by.Name(), a.clock()) {
		return api.Delegation{}, tooFast("Delegations are made too often.")
	}
	var d store.Delegation
	err := a.update(ctx, func(t *txn) (err error) {
		if err := t.still(by, proven{strength: grant.Bearer}); err != nil {
			return err
		}
		if d, err = t.addDelegation(by.Principal, params, grant.Bearer); err != nil {
			return err
		}
		params["id"] = d.ID
		_, err = t.record(recordTrust, "", d.Delegate, trustRecord{Operation: api.TrustDelegationAdd, By: by.Name(), Subject: d.Delegate, Params: params, Strength: grant.Bearer})
		return err
	})
	return a.delegationView(d), err
}

// delegationView is a delegation as the interface shows it.
func (a *Authority) delegationView(d store.Delegation) api.Delegation {
	d = d.As(a.now())
	out := api.Delegation{
		ID: d.ID, Type: "delegation", Status: d.Status, Delegator: d.Delegator, Delegate: d.Delegate, Audience: d.Audience, Scopes: d.Scopes,
		CreatedAt: d.Created.Seconds(), DecidedAt: d.Created.Seconds(), DecidedBy: d.Delegator, ExpiresAt: d.Until.Seconds(),
		UsedAt: d.LastUsed.Seconds(), Uses: d.Uses, Strength: d.Strength, Record: d.Record,
		Request: api.DelegationRequest{
			Requester: d.Delegator, Host: d.Audience, Audience: d.Audience, Type: d.Type, Delegator: d.Delegator, Delegate: d.Delegate,
			Scopes: d.Scopes, Duration: d.Duration,
		},
	}
	if out.Scopes == nil {
		out.Scopes = []string{}
	}
	return out
}

// partyTo reports whether the actor may read all of a delegation. Whoever got an
// address later is somebody else, see [Actor.knew].
func (a Actor) partyTo(d store.Delegation) bool {
	if a.Means == Management {
		return true
	}
	e := a.Principal.Email
	return a.Known() && a.Principal.Created <= int64(d.Created) && (e == d.Delegator || e == d.Delegate)
}

// Delegations lists a page of those that the caller gave (role "delegator"), may use
// ("delegate"), or both (""). The filter's limit is one more than the page has: next
// is the filter for what follows the page before that row.
func (a *Authority) Delegations(ctx context.Context, by Actor, role string, f store.DelegationFilter) (out []api.Delegation, next store.DelegationFilter, err error) {
	if !by.Known() {
		return nil, f, errUnauthenticated()
	}
	switch role {
	case "":
		f.Delegator, f.Delegate = by.Principal.Email, by.Principal.Email
	case "delegator":
		f.Delegator = by.Principal.Email
	case "delegate":
		f.Delegate = by.Principal.Email
	default:
		return nil, f, problem(400, "Unknown role", fmt.Sprintf("role %q: want delegator or delegate.", shorten(role, 40)), "")
	}
	f.Since = grant.Millis(by.Principal.Created)
	return a.delegationPage(ctx, f, store.Delegations)
}

// delegationPage is a page of what list finds, and the filter that goes on behind all
// of it but the last row: who asks wants one more than is shown.
func (a *Authority) delegationPage(ctx context.Context, f store.DelegationFilter, list func(store.Tx, store.DelegationFilter) ([]store.Delegation, error)) (out []api.Delegation, next store.DelegationFilter, err error) {
	err = a.view(ctx, func(tx store.Tx) error {
		out, next = []api.Delegation{}, f
		rows, err := list(tx, f)
		for i, d := range rows {
			out = append(out, a.delegationView(d))
			if i < f.Limit-1 {
				next.Before, next.BeforeID = d.Created, d.ID
			}
		}
		return err
	})
	return out, next, err
}

// Delegation reads one for a party of it. To anybody else it does not exist.
func (a *Authority) Delegation(ctx context.Context, by Actor, id string) (api.Delegation, error) {
	var d store.Delegation
	err := a.view(ctx, func(tx store.Tx) (err error) {
		if d, err = store.DelegationByID(tx, id); ignoreNotFound(err) == nil && !by.partyTo(d) {
			return errNoDelegation()
		}
		return err
	})
	return a.delegationView(d), err
}

// DelegationStatus is what services without a login may ask about an identifier that
// a delegated token has shown them: whether it still holds. One that holds and whose
// people cannot use it now, because one of them is paused or switched off, is pending:
// a person has to do something first.
func (a *Authority) DelegationStatus(ctx context.Context, id string) (status grant.Status, err error) {
	err = a.view(ctx, func(tx store.Tx) error {
		d, err := store.DelegationByID(tx, id)
		if errors.Is(err, store.ErrNotFound) {
			status, err = a.bridgeStatus(tx, id)
			if err != nil {
				return errNoGrant(err)
			}
			return nil
		}
		if err != nil {
			return errNoGrant(err)
		}
		status = d.As(a.now()).Status
		if status == grant.Approved {
			var public *Error
			if err := delegationStill(tx, d); errors.As(err, &public) {
				status = grant.Pending
			} else if err != nil {
				return err
			}
		}
		return nil
	})
	return status, err
}

// RevokeDelegation takes a delegation back: the delegator's, to whom a login
// suffices, or management's. Whoever it is for is refused, and to others it does not
// exist.
func (a *Authority) RevokeDelegation(ctx context.Context, by Actor, id string) (api.Delegation, error) {
	var d store.Delegation
	err := a.narrow(ctx, func(t *txn) (err error) {
		if d, err = store.DelegationByID(t, id); err != nil || !by.partyTo(d) {
			if ignoreNotFound(err) != nil {
				return err
			}
			return errNoDelegation()
		}
		if by.Means != Management && by.Principal.Email != d.Delegator {
			return problem(403, "This is not yours to revoke", "Only "+d.Delegator+" can take it back.", "Ask them, or do not use it.").kind("forbidden")
		}
		if err := t.mayNarrow(by, d.Delegator); err != nil {
			return err
		}
		if err := t.endDelegation(by.Name(), d, "revoked"); err != nil {
			return err
		}
		d, err = store.DelegationByID(t, id)
		return err
	})
	return a.delegationView(d), err
}

func (t *txn) endDelegation(by string, d store.Delegation, why string) error {
	if err := store.EndDelegation(t, d.ID, by, int64(t.now)); errors.Is(err, store.ErrConflict) {
		return problem(409, "The delegation is over already", "It is "+string(d.As(t.now).Status)+".", "").kind("grant_already_decided")
	} else if err != nil {
		return err
	}
	fault.Point("authority.delegation")
	_, err := t.record(recordTrust, "", d.Delegate, trustRecord{
		Operation: "delegation.revoked", By: by, Subject: d.Delegate, Params: map[string]string{"id": d.ID, "delegator": d.Delegator, "why": why},
	})
	return err
}

// endDelegationsOf takes back what a principal gave, and what it was given.
func (t *txn) endDelegationsOf(by, email string) error {
	open, err := store.OpenDelegations(t, email, int64(t.now))
	if err != nil {
		return err
	}
	for _, d := range open {
		if err := t.endDelegation(by, d, "withdrawn with "+email); err != nil {
			return err
		}
	}
	return nil
}

// delegationStill checks that those whom a delegation binds are still who they were
// and may act: delegator, delegate, and the delegate's owner.
func delegationStill(tx store.Tx, d store.Delegation) error {
	for _, bound := range []struct {
		email string
		gen   uint64
	}{{d.Delegator, d.DelegatorGen}, {d.Delegate, d.DelegateGen}} {
		p, err := store.PrincipalByEmail(tx, bound.email)
		switch {
		case ignoreNotFound(err) != nil:
			return err
		case !usable(p) || p.Generation != bound.gen:
			return inactive(bound.email)
		case p.Paused:
			return paused(bound.email)
		case p.Owner == "":
			continue
		}
		owner, err := store.PrincipalByEmail(tx, p.Owner)
		if ignoreNotFound(err) != nil {
			return err
		}
		if !usable(owner) {
			return inactive(p.Owner)
		}
	}
	return nil
}

// usableDelegation says why this delegate may not use a delegation at this audience
// now. The rule stands once more in [store.UseDelegation], which decides.
func (a *Authority) usableDelegation(tx store.Tx, d store.Delegation, delegate, audience string, now grant.Millis) error {
	switch {
	case d.ID == "" || d.Delegate != delegate:
		return errNoDelegation()
	case audience == "" || audience == "*" || d.Audience != audience && d.Audience != "*" || a.ownAudience(audience):
		return problem(403, "The delegation is for another service", "", "Ask the delegator for one that names it.").kind("forbidden")
	}
	switch status := d.As(now).Status; status {
	case grant.Approved:
		return delegationStill(tx, d)
	case grant.Used:
		return problem(410, "The delegation is used", "It was for one use.", "Ask the delegator for another.").kind("grant_already_used")
	case grant.Revoked:
		return problem(403, "The delegation was revoked", "", "Ask the delegator.").kind("grant_revoked")
	default:
		return problem(410, "The delegation is over", "It is "+string(status)+".", "Ask the delegator for another.").kind("grant_expired")
	}
}

// useDelegation uses a delegation for one token: the delegate, which the caller has
// authenticated as itself, is at audience in the delegator's place, with the scopes
// that are returned and no others; none is nothing. One for a single use is spent by
// it, once, whoever else tries. The use is on record in the same transaction.
func useDelegation(t *txn, id, delegate, audience string) (store.Delegation, []string, error) {
	d, err := store.DelegationByID(t, id)
	if ignoreNotFound(err) != nil {
		return d, nil, err
	}
	if err := t.a.usableDelegation(t, d, delegate, audience, t.now); err != nil {
		return store.Delegation{}, nil, err
	}
	if err := store.UseDelegation(t, id, delegate, audience, int64(t.now)); err != nil {
		return store.Delegation{}, nil, err
	}
	fault.Point("authority.use-delegation")
	d.Uses++
	_, err = t.record(recordDelegation, "", d.Delegate, delegationRecord{
		Delegation: id, By: d.Delegate, Delegator: d.Delegator, Audience: audience, Scopes: d.Scopes, N: d.Uses,
	})
	return d, slices.Clone(d.Scopes), err
}

// ValidateDelegation says whether useDelegation would succeed now, and spends nothing.
// Why not, and what it holds, are told to its parties only.
func (a *Authority) ValidateDelegation(ctx context.Context, by Actor, id, delegate, audience string) (out api.DelegationValidity, err error) {
	err = a.view(ctx, func(tx store.Tx) error {
		d, err := store.DelegationByID(tx, id)
		if ignoreNotFound(err) != nil {
			return err
		}
		party := d.ID != "" && by.partyTo(d)
		var public *Error
		switch err := a.usableDelegation(tx, d, lower(delegate), audience, a.now()); {
		case errors.As(err, &public):
			out = api.DelegationValidity{}
			if party {
				out.Error = public.Error()
			}
			return nil
		case err != nil:
			return err
		}
		out = api.DelegationValidity{Valid: true}
		if party {
			view := a.delegationView(d)
			out.Delegation, out.Scopes = &view, view.Scopes
		}
		return nil
	})
	return out, err
}
