package store

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

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
	return TouchStanding(tx, s.ID)
}

// StandingVersion is a number that is another one after each change to what of
// an author's patterns is in force or paused: 0 before the first. Two states
// never have the same, even where a change between them was undone, so what was
// read under a number is what stands there while it does. Uses change nothing.
func StandingVersion(tx Tx, author string) (v int64, err error) {
	err = notFound(tx.QueryRow(`SELECT version FROM standing_versions WHERE author = ?1`, author).Scan(&v))
	if errors.Is(err, ErrNotFound) {
		return 0, nil
	}
	return v, err
}

// newVersion draws a number. Counting would come back to the same one when a
// transaction fails whose changes others of it have seen.
func newVersion() int64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return int64(binary.LittleEndian.Uint64(b[:])>>1) | 1
}

// TouchStanding gives the author of a standing grant a new version.
func TouchStanding(tx Tx, id string) error {
	_, err := tx.Exec(`INSERT INTO standing_versions (author, version) SELECT author, ?2 FROM standing_grants WHERE id = ?1
		ON CONFLICT (author) DO UPDATE SET version = excluded.version`, id, newVersion())
	return err
}

// StandingInForce lists an author's standing grants that may cover something,
// those that are paused included, oldest first.
func StandingInForce(tx Tx, author string) ([]Standing, error) {
	return collect(tx, scanStanding, `SELECT `+standingColumns+` FROM standing_grants
		WHERE id IN (SELECT standing FROM standing_programs WHERE author = ?1) AND revoked = 0 ORDER BY created, id`, author)
}

// StandingState is what decides whether something that a standing grant gave may
// still be used.
type StandingState struct {
	Author     string
	Generation uint64 // the author's when it was signed
	Until      grant.Millis
	Revoked    grant.Millis
	Paused     string
	Uses       int64
	SafeOff    bool // it is safe commands, and the author has switched them off
}

// StandingRecord is the index of the log's record that holds the signature.
func StandingRecord(tx Tx, id string) (index int64, err error) {
	return index, notFound(tx.QueryRow(`SELECT record FROM standing_grants WHERE id = ?1`, id).Scan(&index))
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
	return unlistStanding(tx, id)
}

// LapseStanding takes up to limit standing grants whose time has run out from
// where a request looks for them. Their rows stay. It reports how many it took.
func LapseStanding(tx Tx, now, limit int64) (n int, err error) {
	ended, err := collect(tx, func(r Row, id *string) error { return r.Scan(id) },
		`SELECT id FROM standing_grants WHERE lapsed = 0 AND revoked = 0 AND valid_until <= ?1 LIMIT ?2`, now, limit)
	if err != nil {
		return 0, err
	}
	for _, id := range ended {
		if _, err := tx.Exec(`UPDATE standing_grants SET lapsed = 1 WHERE id = ?1`, id); err != nil {
			return 0, err
		}
		if err := unlistStanding(tx, id); err != nil {
			return 0, err
		}
	}
	return len(ended), nil
}

// unlistStanding makes sure that no request finds a standing grant.
func unlistStanding(tx Tx, id string) error {
	if _, err := tx.Exec(`DELETE FROM standing_programs WHERE standing = ?1 AND author = (SELECT author FROM standing_grants WHERE id = ?1)`, id); err != nil {
		return err
	}
	return TouchStanding(tx, id)
}

// PauseStanding makes a standing grant cover nothing until somebody resumes it
// (why is then empty).
func PauseStanding(tx Tx, id, why string) error {
	if err := mustAffect(tx.Exec(`UPDATE standing_grants SET paused = ?2 WHERE id = ?1 AND revoked = 0`, id, why)); err != nil {
		return err
	}
	return TouchStanding(tx, id)
}

// PauseAllStanding makes all standing grants in force cover nothing until
// somebody resumes each.
func PauseAllStanding(tx Tx, why string) error {
	if _, err := tx.Exec(`UPDATE standing_grants SET paused = ?1 WHERE revoked = 0 AND paused = ''`, why); err != nil {
		return err
	}
	_, err := tx.Exec(`UPDATE standing_versions SET version = ?1`, newVersion())
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

// StandingUsesReach reports whether a standing grant has had at least so many
// uses since a time, or, of those, uses that delete.
func StandingUsesReach(tx Tx, id string, since, limit int64, deletes bool) (bool, error) {
	uses := `SELECT 1 FROM standing_uses WHERE standing = ?1 AND at > ?2 LIMIT ?3`
	if deletes {
		uses = `SELECT 1 FROM standing_uses WHERE standing = ?1 AND at > ?2 AND deletes = 1 LIMIT ?3`
	}
	var n int64
	err := tx.QueryRow(`SELECT COUNT(*) FROM (`+uses+`) AS counted`, id, since, limit).Scan(&n)
	return n >= limit, err
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
