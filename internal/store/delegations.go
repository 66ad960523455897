package store

import (
	"encoding/json"
	"fmt"

	"vogt/internal/grant"
)

// Delegation lets a principal be, at a service, in a person's place. Both are named
// by address and generation.
type Delegation struct {
	ID             string
	Status         grant.Status // as stored; see [Delegation.As]
	Type           grant.Type
	Delegator      string
	DelegatorGen   uint64
	Delegate       string
	DelegateGen    uint64
	Audience       string   // one service, or "*" for any but the authority itself
	Scopes         []string // sorted; none is nothing
	Duration       int64    // seconds, as it was asked for; 0 for none
	Created, Until grant.Millis
	Strength       grant.Strength
	Record         int64 // of the log, that holds the signature
	Revoked        grant.Millis
	RevokedBy      string
	Uses           int64
	LastUsed       grant.Millis
}

// As returns the delegation as it stands at now: one whose time has run out is
// expired, whether or not storage has been told.
func (d Delegation) As(now grant.Millis) Delegation {
	if !d.Status.Terminal() && d.Until.Reached(now) {
		d.Status = grant.Expired
	}
	return d
}

const delegationColumns = `id, status, type, delegator, delegator_gen, delegate, delegate_gen, audience, scopes, duration,
	created, valid_until, strength, record, revoked, revoked_by, uses, last_used`

func scanDelegation(r Row, d *Delegation) error {
	var scopes string
	err := notFound(r.Scan(&d.ID, &d.Status, &d.Type, &d.Delegator, &d.DelegatorGen, &d.Delegate, &d.DelegateGen, &d.Audience, &scopes, &d.Duration,
		&d.Created, &d.Until, &d.Strength, &d.Record, &d.Revoked, &d.RevokedBy, &d.Uses, &d.LastUsed))
	if err != nil {
		return err
	}
	if err := json.Unmarshal([]byte(scopes), &d.Scopes); err != nil {
		return fmt.Errorf("delegation %s: stored scopes: %v: %w", d.ID, err, ErrCorrupt)
	}
	return nil
}

// InsertDelegation adds a delegation.
func InsertDelegation(tx Tx, d Delegation) error {
	scopes, err := json.Marshal(d.Scopes)
	if err != nil {
		return err
	}
	_, err = tx.Exec(`INSERT INTO delegations (id, status, type, delegator, delegator_gen, delegate, delegate_gen, audience, scopes, duration,
		created, valid_until, strength, record) VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14)`,
		d.ID, string(d.Status), string(d.Type), d.Delegator, d.DelegatorGen, d.Delegate, d.DelegateGen, d.Audience, string(scopes), d.Duration,
		int64(d.Created), int64(d.Until), string(d.Strength), d.Record)
	return err
}

// DelegationByID reads one delegation.
func DelegationByID(tx Tx, id string) (d Delegation, err error) {
	return d, scanDelegation(tx.QueryRow(`SELECT `+delegationColumns+` FROM delegations WHERE id = ?1`, id), &d)
}

// DelegationFilter selects a page of delegations.
type DelegationFilter struct {
	Delegator, Delegate string       // at least one of them; both for either
	Since               grant.Millis // what is older is not the viewer's
	Before              grant.Millis // cursor: created and id of the last row seen
	BeforeID            string
	Limit               int
}

// Delegations returns a page, newest first.
func Delegations(tx Tx, f DelegationFilter) ([]Delegation, error) {
	if f.Before == 0 {
		f.Before = 1 << 62
	}
	part := func(column string, n int) string {
		return fmt.Sprintf(`SELECT * FROM (SELECT %s FROM delegations WHERE %s = ?%d AND created >= ?3
			AND (created, id) < (?4, ?5) ORDER BY created DESC, id DESC LIMIT ?6) AS %s`, delegationColumns, column, n, column+"_part")
	}
	return collect(tx, scanDelegation, part("delegator", 1)+` UNION `+part("delegate", 2)+` ORDER BY created DESC, id DESC LIMIT ?6`,
		f.Delegator, f.Delegate, int64(f.Since), int64(f.Before), f.BeforeID, f.Limit)
}

// AllDelegations returns a page of everybody's, newest first; only the cursor and
// the limit of the filter count.
func AllDelegations(tx Tx, f DelegationFilter) ([]Delegation, error) {
	if f.Before == 0 {
		f.Before = 1 << 62
	}
	return collect(tx, scanDelegation, `SELECT `+delegationColumns+` FROM delegations WHERE (created, id) < (?1, ?2) ORDER BY created DESC, id DESC LIMIT ?3`,
		int64(f.Before), f.BeforeID, f.Limit)
}

// CountDelegations counts those of a delegator that may still be used.
func CountDelegations(tx Tx, delegator string, now int64) (n int, err error) {
	err = tx.QueryRow(`SELECT COUNT(*) FROM delegations WHERE delegator = ?1 AND status = 'approved'
		AND (valid_until = 0 OR valid_until > ?2)`, delegator, now).Scan(&n)
	return n, err
}

// UseDelegation counts a use, and spends a delegation for one use by it, if it is
// the delegate's, for this audience, and may still be used; ErrConflict if not.
func UseDelegation(tx Tx, id, delegate, audience string, now int64) error {
	return mustAffect(tx.Exec(`UPDATE delegations SET uses = uses + 1, last_used = ?4, status = CASE WHEN type = 'once' THEN 'used' ELSE status END
		WHERE id = ?1 AND delegate = ?2 AND (audience = ?3 OR audience = '*') AND status = 'approved'
		AND (valid_until = 0 OR valid_until > ?4)`, id, delegate, audience, now))
}

// EndDelegation takes a delegation back that may still be used.
func EndDelegation(tx Tx, id, by string, now int64) error {
	return mustAffect(tx.Exec(`UPDATE delegations SET status = 'revoked', revoked = ?2, revoked_by = ?3
		WHERE id = ?1 AND status = 'approved' AND (valid_until = 0 OR valid_until > ?2)`, id, now, by))
}

// OpenDelegations lists those that name a principal and may still be used.
func OpenDelegations(tx Tx, email string, now int64) ([]Delegation, error) {
	return collect(tx, scanDelegation, `SELECT `+delegationColumns+` FROM delegations WHERE (delegator = ?1 OR delegate = ?1)
		AND status = 'approved' AND (valid_until = 0 OR valid_until > ?2)`, email, now)
}

// ExpireDelegations ends all that may still be used: of one type, or of any where
// kind is empty.
func ExpireDelegations(tx Tx, kind grant.Type) (int64, error) {
	return tx.Exec(`UPDATE delegations SET status = 'expired' WHERE status = 'approved' AND (?1 = '' OR type = ?1)`, string(kind))
}
