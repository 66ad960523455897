package store

import (
	"slices"
	"strings"

	"vogt/internal/grant"
)

// Bridge lets a service act at another one in a person's name, until it ends or is
// revoked.
type Bridge struct {
	ID         string
	Email      string
	Generation uint64
	Client     string // the service that acts
	Audience   string // the service at which
	Scopes     []string
	Created    grant.Millis
	Until      grant.Millis
	Strength   grant.Strength
	Revoked    grant.Millis // 0 while it is not
	RevokedBy  string
	Uses       int64
	LastUsed   grant.Millis
}

// Live reports whether the bridge holds at now.
func (l Bridge) Live(now grant.Millis) bool {
	return l.ID != "" && l.Revoked == 0 && !l.Until.Reached(now)
}

// Covers reports whether the bridge permits all of the scopes, of which there is one at
// least.
func (l Bridge) Covers(scopes []string) bool {
	return len(scopes) > 0 && !slices.ContainsFunc(scopes, func(s string) bool { return !slices.Contains(l.Scopes, s) })
}

const bridgeColumns = `id, email, generation, client, audience, scopes, created, valid_until, strength, revoked, revoked_by, uses, last_used`

func scanBridge(r Row, l *Bridge) error {
	var scopes string
	err := notFound(r.Scan(&l.ID, &l.Email, &l.Generation, &l.Client, &l.Audience, &scopes, &l.Created, &l.Until, &l.Strength, &l.Revoked, &l.RevokedBy, &l.Uses, &l.LastUsed))
	l.Scopes = strings.Fields(scopes)
	return err
}

// InsertBridge adds a bridge. Scopes are words.
func InsertBridge(tx Tx, l Bridge) error {
	_, err := tx.Exec(`INSERT INTO bridges (id, email, generation, client, audience, scopes, created, valid_until, strength) VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9)`,
		l.ID, l.Email, int64(l.Generation), l.Client, l.Audience, strings.Join(l.Scopes, " "), int64(l.Created), int64(l.Until), string(l.Strength))
	return err
}

// BridgeByID reads one bridge.
func BridgeByID(tx Tx, id string) (l Bridge, err error) {
	return l, scanBridge(tx.QueryRow(`SELECT `+bridgeColumns+` FROM bridges WHERE id = ?1`, id), &l)
}

// Bridges lists what a person's account of that generation holds, newest first; only what
// holds at now.
func Bridges(tx Tx, email string, generation uint64, now int64) ([]Bridge, error) {
	return collect(tx, scanBridge, `SELECT `+bridgeColumns+` FROM bridges WHERE email = ?1 AND generation = ?2 AND revoked = 0 AND valid_until > ?3
		ORDER BY created DESC, id DESC`, email, int64(generation), now)
}

// UseBridge counts a use of a bridge that holds; ErrConflict if it does not.
func UseBridge(tx Tx, id string, now int64) error {
	return mustAffect(tx.Exec(`UPDATE bridges SET uses = uses + 1, last_used = ?2 WHERE id = ?1 AND revoked = 0 AND valid_until > ?2`, id, now))
}

// EndBridge revokes a bridge that holds; ErrConflict if it does not.
func EndBridge(tx Tx, id, by string, now int64) error {
	return mustAffect(tx.Exec(`UPDATE bridges SET revoked = ?2, revoked_by = ?3 WHERE id = ?1 AND revoked = 0 AND valid_until > ?2`, id, now, by))
}
