package authority

import (
	"context"
	"errors"
	"slices"

	"vogt/internal/api"
	"vogt/internal/store"
)

// manages reports whether the actor came as management or administrator; that
// it still may is txn.manages.
func (a Actor) manages() bool { return a.Means == Management || a.Means == Administrator }

// isAdmin reports whether p has the admin role, by configuration or because
// management gave it to this enrolment of the address.
func (a *Authority) isAdmin(tx store.Tx, p store.Principal) (bool, error) {
	if p.Kind != kindPerson || !usable(p) {
		return false, nil
	}
	if slices.Contains(a.cfg.Admins, p.Email) {
		return true, nil
	}
	return store.Admin(tx, p.Email, p.Generation)
}

// IsAdmin reports whether the actor is a person with the admin role.
func (a *Authority) IsAdmin(ctx context.Context, by Actor) (is bool, err error) {
	if !by.Person() {
		return false, nil
	}
	err = a.view(ctx, func(tx store.Tx) (err error) {
		is, err = a.isAdmin(tx, by.Principal)
		return err
	})
	return is, err
}

// AsAdministrator turns the signed-in page of a person with the admin role into
// an actor for the admin addresses, and for nothing else. A stored login is not
// enough: it may be read by whatever runs as its owner. Like management, an
// administrator takes away and adds accounts, and never decides.
func (a *Authority) AsAdministrator(ctx context.Context, by Actor) (Actor, error) {
	is := false
	if by.Means == Page {
		var err error
		if is, err = a.IsAdmin(ctx, by); err != nil {
			return Actor{}, err
		}
	}
	if !is {
		return Actor{}, errManagement()
	}
	by.Means = Administrator
	return by, nil
}

// manages checks, inside the transaction that acts on it, that the actor may
// administer: the role may have been taken away a moment ago.
func (t *txn) manages(by Actor) error {
	switch {
	case by.Means == Management:
		return nil
	case by.Means != Administrator:
		return errManagement()
	case !by.Proven:
		return problem(403, "This page cannot administer", "A cookie alone reads; a change needs the key that this browser made at sign-in.",
			"Sign in again on this browser.").kind("forbidden")
	}
	if err := t.still(by, proven{}); err != nil {
		return err
	}
	p, err := store.PrincipalByEmail(t, by.Principal.Email)
	if err != nil {
		return err
	}
	is, err := t.a.isAdmin(t, p)
	if err == nil && !is {
		err = errManagement()
	}
	return err
}

// SetAdmin gives or takes the admin role of a person. Only the management token
// does: administrators do not make others.
func (a *Authority) SetAdmin(ctx context.Context, by Actor, email string, admin bool) error {
	email = lower(email)
	if by.Means != Management {
		return problem(403, "Only management gives or takes this role", "", "Call with the management token.").kind("forbidden")
	}
	if !admin && slices.Contains(a.cfg.Admins, email) {
		return problem(409, "The role was given by configuration", email+" is named in the authority's configuration.",
			"Take the address out of \"admins\" in vogtd.toml and start the authority again.")
	}
	write := a.narrow
	if admin {
		write = a.update // what is kept for narrowing does not serve it
	}
	return write(ctx, func(t *txn) error {
		p, err := store.PrincipalByEmail(t, email)
		if err != nil || p.Removed {
			return errNoPrincipal().caused(err)
		}
		if p.Kind != kindPerson {
			return problem(400, "Only a person can have this role", email+" is an agent.", "")
		}
		operation := "admin.taken"
		if admin {
			operation = "admin.given"
			err = store.GiveAdmin(t, email, p.Generation, by.Name(), int64(t.now))
		} else {
			err = store.TakeAdmin(t, email)
		}
		if err != nil {
			return err
		}
		_, err = t.record(recordTrust, "", email, trustRecord{Operation: operation, By: by.Name(), Subject: email})
		return err
	})
}

func errNoPrincipal() *Error { return problem(404, "There is no such principal", "", "") }

// Listed is a principal as administrators see it.
type Listed struct {
	store.Principal
	Admin bool
	Away  bool // see [Authority.SetAway]
}

// Search lists principals for whoever administers, and counts all that it
// finds.
func (a *Authority) Search(ctx context.Context, by Actor, s store.Search) (page []Listed, total int64, err error) {
	if !by.manages() {
		return nil, 0, errManagement()
	}
	s.After = lower(s.After)
	err = a.view(ctx, func(tx store.Tx) error {
		found, n, err := store.SearchPrincipals(tx, s)
		if err != nil {
			return err
		}
		total = n
		for _, p := range found {
			l := Listed{Principal: p}
			if l.Admin, err = a.isAdmin(tx, p); err != nil {
				return err
			}
			if l.Away, err = store.Away(tx, p.Email); err != nil {
				return err
			}
			page = append(page, l)
		}
		return nil
	})
	return page, total, err
}

// AllSessions lists everybody's signed-in pages for whoever administers.
func (a *Authority) AllSessions(ctx context.Context, by Actor, after string, limit int) (page []store.Session, total int64, err error) {
	if !by.manages() {
		return nil, 0, errManagement()
	}
	err = a.view(ctx, func(tx store.Tx) (err error) {
		page, total, err = store.AllSessions(tx, int64(a.now()), after, limit)
		return err
	})
	return page, total, err
}

// EndSession ends anybody's session on behalf of whoever administers.
func (a *Authority) EndSession(ctx context.Context, by Actor, id string) error {
	return a.narrow(ctx, func(t *txn) error {
		if err := t.manages(by); err != nil {
			return err
		}
		s, err := store.SessionByID(t, id)
		if errors.Is(err, store.ErrNotFound) {
			return problem(404, "There is no such session", "", "")
		}
		if err != nil {
			return err
		}
		if err := store.DeleteSession(t, s.Email, id); err != nil {
			return err
		}
		_, err = t.record(recordLogout, "", s.Email, loginRecord{Email: s.Email, Means: "page"})
		return err
	})
}

// RemovePasskeyOf deletes a passkey of a person on behalf of whoever
// administers, but not the last thing that the person can decide with.
func (a *Authority) RemovePasskeyOf(ctx context.Context, by Actor, email, id string) error {
	email = lower(email)
	return a.narrow(ctx, func(t *txn) error {
		if err := t.manages(by); err != nil {
			return err
		}
		return t.removePasskey(by, email, id)
	})
}

// Change is what administrators may change of an agent. Nil leaves it.
type Change struct {
	Name, Owner, Approver *string
	Active                *bool
}

// ChangeAgent changes an agent on behalf of whoever administers. Who owns it and
// who answers for it stays: with another approver management would decide, by a
// detour.
func (a *Authority) ChangeAgent(ctx context.Context, by Actor, email string, c Change) error {
	email = lower(email)
	if c.Name != nil {
		if err := checkName(*c.Name); err != nil {
			return err
		}
	}
	return a.narrow(ctx, func(t *txn) error {
		if err := t.manages(by); err != nil {
			return err
		}
		p, err := store.PrincipalByEmail(t, email)
		if err != nil || p.Removed || p.Kind != kindAgent {
			return problem(404, "There is no such agent", "", "").caused(err)
		}
		if c.Owner != nil && lower(*c.Owner) != p.Owner || c.Approver != nil && lower(*c.Approver) != p.Approver {
			return problem(403, "An agent's owner and approver stay", "Whoever could change them could answer in their place.",
				"Remove the agent; its new owner enrols it: vogt agent add "+p.Name+".").kind("forbidden")
		}
		if c.Active != nil && *c.Active && !p.Active {
			return problem(403, "Only its owner switches an agent on", "It is a change of trust.", "Ask "+p.Owner+": vogt agent resume "+p.Name+".").kind("forbidden")
		}
		if c.Name != nil && *c.Name != p.Name {
			if err := store.RenamePrincipal(t, email, *c.Name); err != nil {
				return err
			}
			if _, err := t.record(recordTrust, "", email, trustRecord{Operation: "principal.renamed", By: by.Name(), Subject: email, Params: map[string]string{"name": *c.Name}}); err != nil {
				return err
			}
		}
		if c.Active == nil || *c.Active || !p.Active {
			return nil
		}
		if err := store.SetActive(t, email, false); err != nil {
			return err
		}
		return t.cutOff(by, email, "principal.deactivated")
	})
}

// AllDelegations lists a page of everybody's delegations for whoever administers,
// as Delegations does a party's.
func (a *Authority) AllDelegations(ctx context.Context, by Actor, f store.DelegationFilter) (out []api.Delegation, next store.DelegationFilter, err error) {
	if !by.manages() {
		return nil, f, errManagement()
	}
	return a.delegationPage(ctx, f, store.AllDelegations)
}

// EndDelegation takes a delegation back on behalf of whoever administers.
func (a *Authority) EndDelegation(ctx context.Context, by Actor, id string) (api.Delegation, error) {
	var d store.Delegation
	err := a.narrow(ctx, func(t *txn) (err error) {
		if err := t.manages(by); err != nil {
			return err
		}
		if d, err = store.DelegationByID(t, id); err != nil {
			if ignoreNotFound(err) == nil {
				return errNoDelegation()
			}
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
