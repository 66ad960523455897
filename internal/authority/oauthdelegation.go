package authority

import (
	"errors"

	"vogt/internal/grant"
	"vogt/internal/store"
)

// delegated is what a delegation permits its delegate.
type delegated struct {
	ID        string   `json:"id"`
	Delegator string   `json:"delegator"`
	Delegate  string   `json:"delegate"`
	Scopes    []string `json:"scopes"` // none permits nothing
	Until     int64    `json:"until"`  // Unix ms that no token may outlive, 0 for none
}

// delegation looks whether by may be in somebody's place at audience under that
// delegation; with use it also uses it, which spends one that is good once. It
// is the one place where tokens meet delegations. Why one cannot be used is told
// to its delegate alone; for anybody else there is none.
func (t *txn) delegation(by store.Principal, id, audience string, use bool) (delegated, error) {
	var d store.Delegation
	var err error
	if use {
		d, _, err = useDelegation(t, id, by.Email, audience)
	} else if d, err = store.DelegationByID(t, id); ignoreNotFound(err) == nil {
		err = t.a.usableDelegation(t, d, by.Email, audience, t.now)
	}
	var no *Error
	if errors.As(err, &no) && no.Status < 500 {
		return delegated{}, withCause(invalidGrant(no.Title+"."), no)
	}
	return delegated{ID: d.ID, Delegator: d.Delegator, Delegate: by.Email, Scopes: d.Scopes, Until: int64(d.Until)}, err
}

// delegationHolds looks at a delegation that was used for a code: it may have been
// taken back, or its people switched off, before the code is redeemed.
func (t *txn) delegationHolds(id string) error {
	d, err := store.DelegationByID(t, id)
	if err == nil && d.As(t.now).Status == grant.Revoked {
		return invalidGrant("The delegation was revoked.")
	}
	if err == nil {
		err = delegationStill(t, d)
	}
	var no *Error
	if errors.As(err, &no) && no.Status < 500 {
		e := withCause(invalidGrant(no.Title+"."), no)
		e.Status = 403
		return e
	}
	return err
}
