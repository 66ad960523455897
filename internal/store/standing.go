package store

import (
	"encoding/json"
	"fmt"
	"strconv"

	"vogt/internal/grant"
)

// Standing is a standing grant as stored. Generation is its author's when it
// was signed.
type Standing struct {
	grant.Standing
	Generation uint64
	RevokedBy  string
}

const standingColumns = `id, author, generation, pattern, reason, created, valid_until, strength, record,
	revoked, revoked_by, paused, uses, last_used`

func scanStanding(r Row, s *Standing) error {
	var pattern string
	err := notFound(r.Scan(&s.ID, &s.Author, &s.Generation, &pattern, &s.Reason, &s.Created, &s.Until, &s.Strength, &s.Record,
		&s.Revoked, &s.RevokedBy, &s.Paused, &s.Uses, &s.LastUsed))
	if err != nil {
		return err
	}
	if err := json.Unmarshal([]byte(pattern), &s.Pattern); err != nil {
		return fmt.Errorf("standing grant %s: stored pattern: %v: %w", s.ID, err, ErrCorrupt)
	}
	return nil
}

// InsertStanding adds a standing grant and what finds it.
func InsertStanding(tx Tx, s Standing) error {
	pattern, err := json.Marshal(s.Pattern)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(`INSERT INTO standing_grants (id, author, generation, agent, pattern, reason, created, valid_until, strength, record)
		VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10)`, s.ID, s.Author, s.Generation, s.Pattern.Agent, string(pattern), s.Reason,
		int64(s.Created), int64(s.Until), string(s.Strength), s.Record); err != nil {
		return err
	}
	programs := s.Pattern.Programs
	if len(programs) == 0 {
		programs = []string{""}
	}
	for _, program := range programs {
		if _, err := tx.Exec(`INSERT INTO standing_programs (author, agent, program, standing) VALUES (?1,?2,?3,?4)`,
			s.Author, s.Pattern.Agent, program, s.ID); err != nil {
			return err
		}
	}
	return nil
}

// StandingByID reads one standing grant.
func StandingByID(tx Tx, id string) (s Standing, err error) {
	return s, scanStanding(tx.QueryRow(`SELECT `+standingColumns+` FROM standing_grants WHERE id = ?1`, id), &s)
}

// StandingOf lists an author's standing grants, newest first.
func StandingOf(tx Tx, author string) ([]Standing, error) {
	return collect(tx, scanStanding, `SELECT `+standingColumns+` FROM standing_grants WHERE author = ?1 ORDER BY created DESC, id DESC`, author)
}

// CountStanding counts an author's standing grants that are in force.
func CountStanding(tx Tx, author string) (n int, err error) {
	err = tx.QueryRow(`SELECT COUNT(DISTINCT standing) FROM standing_programs WHERE author = ?1`, author).Scan(&n)
	return n, err
}

// StandingFor lists what names this program for an agent, for a group that it is
// in, or for all of its owner's, oldest first. An empty program finds the patterns
// for any.
func StandingFor(tx Tx, author, agent string, groups []string, program string) ([]Standing, error) {
	const found = `SELECT standing FROM standing_programs WHERE author = ?1 AND program = ?3 AND agent = `
	query, args := found+`?2 UNION `+found+`'*'`, []any{author, agent, program}
	for i, g := range groups {
		query += ` UNION ` + found + `?` + strconv.Itoa(4+i)
		args = append(args, grant.GroupPrefix+g)
	}
	return collect(tx, scanStanding, `SELECT `+standingColumns+` FROM standing_grants WHERE id IN (`+query+`) ORDER BY created, id`, args...)
}

// SafeOf is the safe commands in force that name an agent.
func SafeOf(tx Tx, author, agent string) (out []Standing, err error) {
	named, err := StandingNaming(tx, author, agent)
	for _, s := range named {
		if s.Pattern.Class == grant.ClassSafe {
			out = append(out, s)
		}
	}
	return out, err
}

// EndStanding takes a standing grant back, once.
func EndStanding(tx Tx, id, by string, now int64) error {
	err := mustAffect(tx.Exec(`UPDATE standing_grants SET revoked = ?2, revoked_by = ?3 WHERE id = ?1 AND revoked = 0`, id, now, by))
	if err != nil {
		return err
	}
	_, err = tx.Exec(`DELETE FROM standing_programs WHERE standing = ?1 AND author = (SELECT author FROM standing_grants WHERE id = ?1)`, id)
	return err
}

// PauseStanding makes a standing grant cover nothing until somebody resumes it
// (why is then empty).
func PauseStanding(tx Tx, id, why string) error {
	return mustAffect(tx.Exec(`UPDATE standing_grants SET paused = ?2 WHERE id = ?1 AND revoked = 0`, id, why))
}

// PauseAllStanding makes all standing grants in force cover nothing until
// somebody resumes each.
func PauseAllStanding(tx Tx, why string) error {
	_, err := tx.Exec(`UPDATE standing_grants SET paused = ?1 WHERE revoked = 0 AND paused = ''`, why)
	return err
}

// UseStanding counts a use.
func UseStanding(tx Tx, id, grantID string, deletes bool, now int64) error {
	n := 0
	if deletes {
		n = 1
	}
	if _, err := tx.Exec(`INSERT INTO standing_uses (standing, at, grant_id, deletes) VALUES (?1,?2,?3,?4)`, id, now, grantID, n); err != nil {
		return err
	}
	return mustAffect(tx.Exec(`UPDATE standing_grants SET uses = uses + 1, last_used = ?2 WHERE id = ?1 AND revoked = 0`, id, now))
}

// StandingUses counts the uses since a time, and those among them that delete.
func StandingUses(tx Tx, id string, since int64) (all, deletes int64, err error) {
	err = tx.QueryRow(`SELECT COUNT(*), COALESCE(SUM(deletes), 0) FROM standing_uses WHERE standing = ?1 AND at > ?2`, id, since).Scan(&all, &deletes)
	return all, deletes, err
}

// DerivedGrants lists the grants that a standing grant gave and that may still
// be used.
func DerivedGrants(tx Tx, id string) ([]grant.Grant, error) {
	return collect(tx, scanGrant, `SELECT `+grantColumns+` FROM grants WHERE status = 'approved'
		AND id IN (SELECT grant_id FROM standing_uses WHERE standing = ?1)`, id)
}

// StandingNaming lists an author's standing grants in force that are for this
// agent by name.
func StandingNaming(tx Tx, author, agent string) ([]Standing, error) {
	return collect(tx, scanStanding, `SELECT `+standingColumns+` FROM standing_grants WHERE author = ?1 AND agent = ?2 AND revoked = 0`, author, agent)
}
