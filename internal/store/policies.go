package store

import (
	"encoding/json"
	"fmt"

	"vogt/internal/grant"
)

// Policy is an auto-approval policy as stored. Generation is its author's when it
// was written.
type Policy struct {
	ID         string
	Policy     grant.Policy
	Author     string
	Generation uint64
	Created    grant.Millis
	Until      grant.Millis
	Strength   grant.Strength
	Record     int64 // of the log, that holds who wrote it and how strongly
	Ended      grant.Millis
	Paused     string // why it approves nothing at the moment
	Uses       int64
	LastUsed   grant.Millis
}

const policyColumns = `id, author, generation, policy, created, valid_until, strength, record, ended, paused, uses, last_used`

func scanPolicy(r Row, p *Policy) error {
	var policy string
	err := notFound(r.Scan(&p.ID, &p.Author, &p.Generation, &policy, &p.Created, &p.Until, &p.Strength, &p.Record, &p.Ended, &p.Paused, &p.Uses, &p.LastUsed))
	if err != nil {
		return err
	}
	if err := json.Unmarshal([]byte(policy), &p.Policy); err != nil {
		return fmt.Errorf("policy %s: stored policy: %v: %w", p.ID, err, ErrCorrupt)
	}
	return nil
}

// InsertPolicy puts a policy into force. ErrConflict means that another one for
// this agent and audience has not been ended.
func InsertPolicy(tx Tx, p Policy) error {
	encoded, err := json.Marshal(p.Policy)
	if err != nil {
		return err
	}
	_, err = tx.Exec(`INSERT INTO policies (id, agent, audience, author, generation, policy, created, valid_until, strength, record)
		VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10)`, p.ID, p.Policy.Agent, p.Policy.Audience, p.Author, p.Generation, string(encoded),
		int64(p.Created), int64(p.Until), string(p.Strength), p.Record)
	return err
}

// PolicyByID reads a policy, in force or not.
func PolicyByID(tx Tx, id string) (p Policy, err error) {
	return p, scanPolicy(tx.QueryRow(`SELECT `+policyColumns+` FROM policies WHERE id = ?1`, id), &p)
}

// PolicyFor reads the policy in force for exactly this agent and audience.
func PolicyFor(tx Tx, agent, audience string) (p Policy, err error) {
	return p, scanPolicy(tx.QueryRow(`SELECT `+policyColumns+` FROM policies WHERE agent = ?1 AND audience = ?2 AND ended = 0`, agent, audience), &p)
}

// PoliciesOf lists the policies in force for an agent, or by an author.
func PoliciesOf(tx Tx, email string) ([]Policy, error) {
	return collect(tx, scanPolicy, `SELECT `+policyColumns+` FROM policies WHERE ended = 0 AND (agent = ?1 OR author = ?1) ORDER BY agent, audience`, email)
}

// EndPolicy takes a policy out of force, once.
func EndPolicy(tx Tx, id, by string, now int64) error {
	return mustAffect(tx.Exec(`UPDATE policies SET ended = ?2, ended_by = ?3 WHERE id = ?1 AND ended = 0`, id, now, by))
}

// PausePolicy makes a policy approve nothing until it is written anew.
func PausePolicy(tx Tx, id, why string) error {
	return mustAffect(tx.Exec(`UPDATE policies SET paused = ?2 WHERE id = ?1 AND ended = 0`, id, why))
}

// PauseAllPolicies makes all policies in force approve nothing until each is
// written anew.
func PauseAllPolicies(tx Tx, why string) error {
	_, err := tx.Exec(`UPDATE policies SET paused = ?1 WHERE ended = 0 AND paused = ''`, why)
	return err
}

// UsePolicy counts a use.
func UsePolicy(tx Tx, id, grantID string, deletes bool, now int64) error {
	n := 0
	if deletes {
		n = 1
	}
	if _, err := tx.Exec(`INSERT INTO policy_uses (policy, at, grant_id, deletes) VALUES (?1,?2,?3,?4)`, id, now, grantID, n); err != nil {
		return err
	}
	return mustAffect(tx.Exec(`UPDATE policies SET uses = uses + 1, last_used = ?2 WHERE id = ?1 AND ended = 0`, id, now))
}

// PolicyUses counts the uses since a time, and those among them that delete.
func PolicyUses(tx Tx, id string, since int64) (all, deletes int64, err error) {
	err = tx.QueryRow(`SELECT COUNT(*), COALESCE(SUM(deletes), 0) FROM policy_uses WHERE policy = ?1 AND at > ?2`, id, since).Scan(&all, &deletes)
	return all, deletes, err
}

// PolicyGrants lists the grants that a policy gave and that may still be used.
func PolicyGrants(tx Tx, id string) ([]grant.Grant, error) {
	return collect(tx, scanGrant, `SELECT `+grantColumns+` FROM grants WHERE status = 'approved'
		AND id IN (SELECT grant_id FROM policy_uses WHERE policy = ?1)`, id)
}
