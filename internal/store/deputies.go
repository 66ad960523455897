package store

import (
	"encoding/json"
	"fmt"
	"slices"

	"vogt/internal/detail"
	"vogt/internal/grant"
)

// Deputy is the appointment of somebody who answers requests in a person's place,
// within bounds. Both are named by address and generation.
type Deputy struct {
	ID          string
	Person      string // who is stood in for
	PersonGen   uint64
	Deputy      string
	DeputyGen   uint64
	Agents      []string // e-mail addresses, or "*" for all whom the person answers for
	MaxRisk     detail.Risk
	Reason      string
	Created     grant.Millis
	From, Until grant.Millis
	Strength    grant.Strength
	Record      int64 // of the log, that holds the signature
	Revoked     grant.Millis
	RevokedBy   string
	Answers     int64 // requests that were allowed under it
}

// Active reports whether the appointment holds at now.
func (d Deputy) Active(now grant.Millis) bool {
	return d.Revoked == 0 && d.From <= now && d.Until != 0 && !d.Until.Reached(now)
}

// Covers reports whether a request is within the bounds: of an agent that is named,
// for whom the person answers, of no more than the risk, and no crossing. A request of
// a person is nobody's but theirs.
func (d Deputy) Covers(g grant.Grant) bool {
	return (g.Owner == d.Person || g.Approver == d.Person) && g.Request.Requester != g.Owner && g.Request.Requester != d.Deputy &&
		(slices.Contains(d.Agents, "*") || slices.Contains(d.Agents, g.Request.Requester)) &&
		g.Request.RunAs == "" && g.Risk.Within(d.MaxRisk) && g.Risk.Within(detail.High)
}

const deputyColumns = `id, person, person_gen, deputy, deputy_gen, agents, max_risk, reason, created, valid_from, valid_until,
	strength, record, revoked, revoked_by, answers`

func scanDeputy(r Row, d *Deputy) error {
	var agents string
	var risk int64
	err := notFound(r.Scan(&d.ID, &d.Person, &d.PersonGen, &d.Deputy, &d.DeputyGen, &agents, &risk, &d.Reason, &d.Created, &d.From, &d.Until,
		&d.Strength, &d.Record, &d.Revoked, &d.RevokedBy, &d.Answers))
	if err != nil {
		return err
	}
	d.MaxRisk = detail.Risk(risk)
	if err := json.Unmarshal([]byte(agents), &d.Agents); err != nil {
		return fmt.Errorf("deputy %s: stored agents: %v: %w", d.ID, err, ErrCorrupt)
	}
	return nil
}

// InsertDeputy adds an appointment.
func InsertDeputy(tx Tx, d Deputy) error {
	agents, err := json.Marshal(d.Agents)
	if err != nil {
		return err
	}
	_, err = tx.Exec(`INSERT INTO deputies (id, person, person_gen, deputy, deputy_gen, agents, max_risk, reason, created, valid_from, valid_until,
		strength, record) VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13)`,
		d.ID, d.Person, d.PersonGen, d.Deputy, d.DeputyGen, string(agents), int64(d.MaxRisk), d.Reason, int64(d.Created), int64(d.From), int64(d.Until),
		string(d.Strength), d.Record)
	return err
}

// DeputyByID reads one appointment.
func DeputyByID(tx Tx, id string) (d Deputy, err error) {
	return d, scanDeputy(tx.QueryRow(`SELECT `+deputyColumns+` FROM deputies WHERE id = ?1`, id), &d)
}

// DeputiesOf lists the appointments that name a principal on either side and were
// made since it was enrolled, newest first.
func DeputiesOf(tx Tx, email string, since int64) ([]Deputy, error) {
	return collect(tx, scanDeputy, `SELECT `+deputyColumns+` FROM deputies WHERE (person = ?1 OR deputy = ?1) AND created >= ?2
		ORDER BY created DESC, id DESC`, email, since)
}

// DeputiesFor lists the appointments, of those that may still begin or hold, by which
// a principal stands in for others whose standing is what it was.
func DeputiesFor(tx Tx, deputy string, generation uint64, now int64) ([]Deputy, error) {
	return collect(tx, scanDeputy, `SELECT `+deputyColumns+` FROM deputies d WHERE deputy = ?1 AND deputy_gen = ?2 AND revoked = 0 AND valid_until > ?3
		AND EXISTS (SELECT 1 FROM principals p WHERE p.email = d.person AND p.generation = d.person_gen AND p.active = 1 AND p.removed = 0)
		ORDER BY created, id`, deputy, generation, now)
}

// OpenDeputies lists the appointments that name a principal and were not taken back.
func OpenDeputies(tx Tx, email string, now int64) ([]Deputy, error) {
	return collect(tx, scanDeputy, `SELECT `+deputyColumns+` FROM deputies WHERE (person = ?1 OR deputy = ?1) AND revoked = 0 AND valid_until > ?2`, email, now)
}

// EndDeputy takes an appointment back, once.
func EndDeputy(tx Tx, id, by string, now int64) error {
	return mustAffect(tx.Exec(`UPDATE deputies SET revoked = ?2, revoked_by = ?3 WHERE id = ?1 AND revoked = 0`, id, now, by))
}

// EndAllDeputies takes all appointments back.
func EndAllDeputies(tx Tx, by string, now int64) error {
	_, err := tx.Exec(`UPDATE deputies SET revoked = ?1, revoked_by = ?2 WHERE revoked = 0`, now, by)
	return err
}

// DeputyAnswered counts a yes under an appointment and remembers what it was to.
func DeputyAnswered(tx Tx, id, grantID string) error {
	if _, err := tx.Exec(`INSERT INTO deputy_answers (deputy, grant_id) VALUES (?1,?2) ON CONFLICT DO NOTHING`, id, grantID); err != nil {
		return err
	}
	return mustAffect(tx.Exec(`UPDATE deputies SET answers = answers + 1 WHERE id = ?1 AND revoked = 0`, id))
}

// DeputyGrants lists what was allowed under an appointment and may still be used.
func DeputyGrants(tx Tx, id string) ([]grant.Grant, error) {
	return collect(tx, scanGrant, `SELECT `+grantColumns+` FROM grants WHERE status = 'approved'
		AND id IN (SELECT grant_id FROM deputy_answers WHERE deputy = ?1)`, id)
}
