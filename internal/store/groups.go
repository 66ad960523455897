package store

// Member is an agent in a group of its owner's.
type Member struct {
	Group, Agent string
	Since        int64
}

func scanMember(r Row, m *Member) error { return r.Scan(&m.Group, &m.Agent, &m.Since) }

// Groups lists an owner's groups with their agents, by name.
func Groups(tx Tx, owner string) ([]Member, error) {
	return collect(tx, scanMember, `SELECT name, agent, since FROM agent_groups WHERE owner = ?1 ORDER BY name, agent`, owner)
}

// GroupsOf lists the names of the groups of this owner that an agent is in.
func GroupsOf(tx Tx, owner, agent string) ([]string, error) {
	return collect(tx, func(r Row, name *string) error { return r.Scan(name) },
		`SELECT name FROM agent_groups WHERE agent = ?1 AND owner = ?2 ORDER BY name`, agent, owner)
}

// AddMember puts an agent into a group; one that is in it stays.
func AddMember(tx Tx, owner, group, agent string, now int64) error {
	_, err := tx.Exec(`INSERT INTO agent_groups (owner, name, agent, since) VALUES (?1,?2,?3,?4) ON CONFLICT DO NOTHING`, owner, group, agent, now)
	return err
}

// DropMember takes an agent out of a group.
func DropMember(tx Tx, owner, group, agent string) error {
	return mustAffect(tx.Exec(`DELETE FROM agent_groups WHERE owner = ?1 AND name = ?2 AND agent = ?3`, owner, group, agent))
}

// LeaveGroups takes an agent out of all groups.
func LeaveGroups(tx Tx, agent string) error {
	_, err := tx.Exec(`DELETE FROM agent_groups WHERE agent = ?1`, agent)
	return err
}

// SafeOff reports whether an owner has switched the safe commands off.
func SafeOff(tx Tx, owner string) (off bool, err error) {
	err = tx.QueryRow(`SELECT EXISTS (SELECT 1 FROM safe_off WHERE owner = ?1)`, owner).Scan(&off)
	return off, err
}

// SwitchSafe switches the safe commands of an owner's agents.
func SwitchSafe(tx Tx, owner string, off bool, now int64) error {
	query, args := `DELETE FROM safe_off WHERE owner = ?1`, []any{owner}
	if off {
		query, args = `INSERT INTO safe_off (owner, since) VALUES (?1,?2) ON CONFLICT DO NOTHING`, append(args, now)
	}
	_, err := tx.Exec(query, args...)
	return err
}

// Label is what an agent has seen or done, and the grant under which.
type Label struct {
	Label string
	Since int64
	Grant string
}

// Labels lists an agent's labels, by name.
func Labels(tx Tx, agent string) ([]Label, error) {
	return collect(tx, func(r Row, l *Label) error { return r.Scan(&l.Label, &l.Since, &l.Grant) },
		`SELECT label, since, grant_id FROM agent_labels WHERE agent = ?1 ORDER BY label`, agent)
}

// AddLabel gives an agent a label that it may have already.
func AddLabel(tx Tx, agent, label, grantID string, now int64) error {
	_, err := tx.Exec(`INSERT INTO agent_labels (agent, label, since, grant_id) VALUES (?1,?2,?3,?4) ON CONFLICT DO NOTHING`, agent, label, now, grantID)
	return err
}

// LabelAll gives every agent a label that it may have already.
func LabelAll(tx Tx, label string, now int64) error {
	_, err := tx.Exec(`INSERT INTO agent_labels (agent, label, since, grant_id)
		SELECT email, ?1, ?2, '' FROM principals WHERE kind = 'agent' AND removed = 0 ON CONFLICT DO NOTHING`, label, now)
	return err
}

// EndLabels takes all labels from an agent.
func EndLabels(tx Tx, agent string) error {
	_, err := tx.Exec(`DELETE FROM agent_labels WHERE agent = ?1`, agent)
	return err
}
