package store

import (
	"database/sql"
	"errors"
)

// Principal is a person or an agent as stored.
type Principal struct {
	Email      string
	Kind       string // "human" or "agent"
	Name       string
	Owner      string // of an agent
	Approver   string // of an agent
	Active     bool
	Paused     bool
	Removed    bool
	Generation uint64 // counts enrolments and deactivations of this address
	Created    int64  // of this enrolment; later than anything of an earlier one
	LastLogin  int64
}

// ErrNotFound tells that no such row exists.
var ErrNotFound = errors.New("not found")

func notFound(err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return ErrNotFound
	}
	return err
}

const principalColumns = `email, kind, name, owner, approver, active, paused, removed, generation, created, last_login`

func scanPrincipal(r Row, p *Principal) error {
	return notFound(r.Scan(&p.Email, &p.Kind, &p.Name, &p.Owner, &p.Approver,
		&p.Active, &p.Paused, &p.Removed, &p.Generation, &p.Created, &p.LastLogin))
}

// PrincipalByEmail reads one principal, removed ones included.
func PrincipalByEmail(tx Tx, email string) (p Principal, err error) {
	return p, scanPrincipal(tx.QueryRow(`SELECT `+principalColumns+` FROM principals WHERE email = ?1`, email), &p)
}

// Principals lists those of one owner ("" lists everybody) who are not
// removed, oldest first.
func Principals(tx Tx, owner string) ([]Principal, error) {
	q, args := `SELECT `+principalColumns+` FROM principals WHERE removed = 0 ORDER BY created, email`, []any(nil)
	if owner != "" {
		q = `SELECT ` + principalColumns + ` FROM principals WHERE owner = ?1 AND removed = 0 ORDER BY created, email`
		args = []any{owner}
	}
	return collect(tx, scanPrincipal, q, args...)
}

// collect runs a query and scans every row.
func collect[T any](tx Tx, scan func(Row, *T) error, query string, args ...any) ([]T, error) {
	rows, err := tx.Query(query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []T
	for rows.Next() {
		var v T
		if err := scan(rows, &v); err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, rows.Err()
}

// HasPerson reports whether any person exists, removed or not: set-up is over
// for good once one did.
func HasPerson(tx Tx) (bool, error) {
	var n int
	err := tx.QueryRow(`SELECT COUNT(*) FROM (SELECT 1 FROM principals WHERE kind = 'human' LIMIT 1)`).Scan(&n)
	return n > 0, err
}

// InsertPrincipal adds p, or re-enrols a removed address of the same kind under
// the next generation, which p then carries. What names the address from before
// belongs to somebody else: p.Created becomes later than all of it, also when
// the clock was set back meanwhile, so that comparing times tells them apart.
func InsertPrincipal(tx Tx, p *Principal) error {
	old, err := PrincipalByEmail(tx, p.Email)
	switch {
	case err == nil && (!old.Removed || old.Kind != p.Kind):
		return ErrConflict
	case err == nil:
		var newest int64
		if err := tx.QueryRow(`SELECT COALESCE(MAX(created), 0) FROM (
			SELECT MAX(created) AS created FROM grants WHERE requester = ?1
			UNION ALL SELECT MAX(created) FROM grants WHERE owner = ?1
			UNION ALL SELECT MAX(created) FROM grants WHERE approver = ?1 AND approver <> owner
			UNION ALL SELECT MAX(created) FROM principals WHERE approver = ?1
			UNION ALL SELECT MAX(created) FROM delegations WHERE delegator = ?1
			UNION ALL SELECT MAX(created) FROM delegations WHERE delegate = ?1
			UNION ALL SELECT MAX(created) FROM deputies WHERE person = ?1
			UNION ALL SELECT MAX(created) FROM deputies WHERE deputy = ?1) AS earlier`, p.Email).Scan(&newest); err != nil {
			return err
		}
		p.Generation, p.Created = old.Generation+1, max(p.Created, newest+1, old.Created+1)
		n, err := tx.Exec(`UPDATE principals SET name=?2, owner=?3, approver=?4, active=1, paused=0, removed=0,
			generation=?5, created=?6, last_login=0 WHERE email=?1 AND removed=1`,
			p.Email, p.Name, p.Owner, p.Approver, p.Generation, p.Created)
		return mustAffect(n, err)
	case !errors.Is(err, ErrNotFound):
		return err
	}
	p.Generation = 1
	_, err = tx.Exec(`INSERT INTO principals (email, kind, name, owner, approver, created) VALUES (?1,?2,?3,?4,?5,?6)`,
		p.Email, p.Kind, p.Name, p.Owner, p.Approver, p.Created)
	return err
}

// Deciders counts the people other than email who can decide: in good standing,
// with a key that may do more than log in, or with a passkey that is awake.
func Deciders(tx Tx, email string, now int64) (n int, err error) {
	err = tx.QueryRow(`SELECT COUNT(*) FROM principals p WHERE kind = 'human' AND active = 1 AND removed = 0 AND email <> ?1
		AND (EXISTS (SELECT 1 FROM principal_keys k WHERE k.email = p.email AND k.weak = 0 AND k.dormant_until <= ?2)
		OR EXISTS (SELECT 1 FROM passkeys k WHERE k.email = p.email AND k.dormant_until <= ?2))`, email, now).Scan(&n)
	return n, err
}

// mustAffect turns a conditional update that found its condition gone into
// ErrConflict.
func mustAffect(n int64, err error) error {
	if err == nil && n == 0 {
		return ErrConflict
	}
	return err
}

// SetActive switches one principal on or off. Switching off starts a new
// generation, so that nothing issued before comes back with it.
func SetActive(tx Tx, email string, active bool) error {
	return mustAffect(tx.Exec(`UPDATE principals SET active = ?2, generation = generation + (CASE WHEN ?2 THEN 0 ELSE 1 END)
		WHERE email = ?1 AND removed = 0`, email, active))
}

// SetPaused pauses or resumes agents: one by email, or all of an owner.
func SetPaused(tx Tx, email, owner string, paused bool) (int64, error) {
	return tx.Exec(`UPDATE principals SET paused = ?3 WHERE kind = 'agent' AND removed = 0 AND paused <> ?3
		AND (email = ?1 OR (?1 = '' AND owner = ?2))`, email, owner, paused)
}

// PauseAll pauses every agent.
func PauseAll(tx Tx) (int64, error) {
	return tx.Exec(`UPDATE principals SET paused = 1 WHERE kind = 'agent' AND removed = 0 AND paused = 0`)
}

// RemovePrincipal marks a principal removed and deletes what it could log in
// with. The row stays, so that its address is never taken over silently.
func RemovePrincipal(tx Tx, email string) error {
	if err := mustAffect(tx.Exec(`UPDATE principals SET removed = 1, active = 0 WHERE email = ?1 AND removed = 0`, email)); err != nil {
		return err
	}
	for _, q := range []string{
		`DELETE FROM tokens WHERE email = ?1`,
		`DELETE FROM sessions WHERE email = ?1`,
		`DELETE FROM principal_keys WHERE email = ?1`,
		`DELETE FROM passkeys WHERE email = ?1`,
		`DELETE FROM agent_groups WHERE agent = ?1 OR owner = ?1`,
		`DELETE FROM agent_labels WHERE agent = ?1`,
		`DELETE FROM safe_off WHERE owner = ?1`,
		`DELETE FROM oauth_consents WHERE email = ?1`,
		`DELETE FROM bridges WHERE email = ?1`,
	} {
		if _, err := tx.Exec(q, email); err != nil {
			return err
		}
	}
	return DropAccount(tx, email)
}

// TouchLogin records the time of a login.
func TouchLogin(tx Tx, email string, at int64) error {
	_, err := tx.Exec(`UPDATE principals SET last_login = ?2 WHERE email = ?1`, email, at)
	return err
}

// Key is a public key of a principal.
type Key struct {
	ID           string // hex SHA-256 of the key blob
	Email        string
	Name         string
	PublicKey    string // authorized_keys form
	Source       string // how it came: "owner", "management", "trust"
	Created      int64
	DormantUntil int64 // not usable before
	Weak         bool  // may log in; never counts as a decision
}

const keyColumns = `key_id, email, name, public_key, source, created, dormant_until, weak`

func scanKey(r Row, k *Key) error {
	return notFound(r.Scan(&k.ID, &k.Email, &k.Name, &k.PublicKey, &k.Source, &k.Created, &k.DormantUntil, &k.Weak))
}

// Keys lists the keys of one principal, oldest first.
func Keys(tx Tx, email string) ([]Key, error) {
	return collect(tx, scanKey, `SELECT `+keyColumns+` FROM principal_keys WHERE email = ?1 ORDER BY created, key_id`, email)
}

// KeyByID reads one key.
func KeyByID(tx Tx, id string) (k Key, err error) {
	return k, scanKey(tx.QueryRow(`SELECT `+keyColumns+` FROM principal_keys WHERE key_id = ?1`, id), &k)
}

// InsertKey adds a key; a key belongs to one principal only.
func InsertKey(tx Tx, k Key) error {
	_, err := tx.Exec(`INSERT INTO principal_keys (`+keyColumns+`) VALUES (?1,?2,?3,?4,?5,?6,?7,?8)`,
		k.ID, k.Email, k.Name, k.PublicKey, k.Source, k.Created, k.DormantUntil, k.Weak)
	return err
}

// DeleteKey removes one key of a principal and the tokens it brought.
func DeleteKey(tx Tx, email, id string) error {
	if err := mustAffect(tx.Exec(`DELETE FROM principal_keys WHERE email = ?1 AND key_id = ?2`, email, id)); err != nil {
		return err
	}
	_, err := tx.Exec(`DELETE FROM tokens WHERE email = ?1 AND key_id = ?2`, email, id)
	return err
}

// CancelDormant deletes what waits for its dormancy to end and reports how
// many keys and passkeys that were.
func CancelDormant(tx Tx, email string, now int64) (int64, error) {
	keys, err := tx.Exec(`DELETE FROM principal_keys WHERE email = ?1 AND dormant_until > ?2`, email, now)
	if err != nil {
		return 0, err
	}
	passkeys, err := tx.Exec(`DELETE FROM passkeys WHERE email = ?1 AND dormant_until > ?2`, email, now)
	return keys + passkeys, err
}

// Passkey is a WebAuthn credential of a person.
type Passkey struct {
	ID           string // base64url credential id
	Email        string
	Name         string
	Credential   string // JSON of package passkey
	Created      int64
	LastUsed     int64
	DormantUntil int64
}

const passkeyColumns = `id, email, name, credential, created, last_used, dormant_until`

func scanPasskey(r Row, p *Passkey) error {
	return notFound(r.Scan(&p.ID, &p.Email, &p.Name, &p.Credential, &p.Created, &p.LastUsed, &p.DormantUntil))
}

// Passkeys lists the credentials of one person, oldest first.
func Passkeys(tx Tx, email string) ([]Passkey, error) {
	return collect(tx, scanPasskey, `SELECT `+passkeyColumns+` FROM passkeys WHERE email = ?1 ORDER BY created, id`, email)
}

// PasskeyByID reads one credential.
func PasskeyByID(tx Tx, id string) (p Passkey, err error) {
	return p, scanPasskey(tx.QueryRow(`SELECT `+passkeyColumns+` FROM passkeys WHERE id = ?1`, id), &p)
}

// InsertPasskey adds a credential.
func InsertPasskey(tx Tx, p Passkey) error {
	_, err := tx.Exec(`INSERT INTO passkeys (`+passkeyColumns+`) VALUES (?1,?2,?3,?4,?5,?6,?7)`,
		p.ID, p.Email, p.Name, p.Credential, p.Created, p.LastUsed, p.DormantUntil)
	return err
}

// UsePasskey stores a credential's new counter and time of use.
func UsePasskey(tx Tx, id, credential string, at int64) error {
	return mustAffect(tx.Exec(`UPDATE passkeys SET credential = ?2, last_used = ?3 WHERE id = ?1`, id, credential, at))
}

// DeletePasskey removes one credential of a person.
func DeletePasskey(tx Tx, email, id string) error {
	return mustAffect(tx.Exec(`DELETE FROM passkeys WHERE email = ?1 AND id = ?2`, email, id))
}

// Session is a signed-in page. ID is the hex SHA-256 of the cookie.
type Session struct {
	ID       string
	Email    string
	ProofKey []byte // SPKI of the page's non-extractable key
	Agent    string // browser's name, for the list of sessions
	Created  int64
	Expires  int64
}

const sessionColumns = `id, email, proof_key, agent, created, expires`

func scanSession(r Row, s *Session) error {
	return notFound(r.Scan(&s.ID, &s.Email, &s.ProofKey, &s.Agent, &s.Created, &s.Expires))
}

// SessionByID reads one session.
func SessionByID(tx Tx, id string) (s Session, err error) {
	return s, scanSession(tx.QueryRow(`SELECT `+sessionColumns+` FROM sessions WHERE id = ?1`, id), &s)
}

// Sessions lists the sessions of one person that have not ended.
func Sessions(tx Tx, email string, now int64) ([]Session, error) {
	return collect(tx, scanSession, `SELECT `+sessionColumns+` FROM sessions WHERE email = ?1 AND expires > ?2 ORDER BY created DESC`, email, now)
}

// InsertSession adds a session.
func InsertSession(tx Tx, s Session) error {
	_, err := tx.Exec(`INSERT INTO sessions (`+sessionColumns+`) VALUES (?1,?2,?3,?4,?5,?6)`,
		s.ID, s.Email, s.ProofKey, s.Agent, s.Created, s.Expires)
	return err
}

// DeleteSession ends one session of a person.
func DeleteSession(tx Tx, email, id string) error {
	return mustAffect(tx.Exec(`DELETE FROM sessions WHERE email = ?1 AND id = ?2`, email, id))
}

// Token is a token of a principal, for this authority or for a client, that has
// not been revoked.
type Token struct {
	ID      string // jti
	Email   string
	KeyID   string
	Created int64
	Expires int64
	Origin  string // the OAuth authorization that gave it, see oauth.go; "" for others
}

// InsertToken records an issued token.
func InsertToken(tx Tx, t Token) error {
	_, err := tx.Exec(`INSERT INTO tokens (jti, email, key_id, created, expires, origin) VALUES (?1,?2,?3,?4,?5,?6)`,
		t.ID, t.Email, t.KeyID, t.Created, t.Expires, t.Origin)
	return err
}

// TokenHolder reads the token, its holder, and whether the holder's owner (if
// any) is in good standing, in one query, which every authenticated call
// makes.
func TokenHolder(tx Tx, jti string) (t Token, p Principal, ownerActive bool, err error) {
	err = notFound(tx.QueryRow(`SELECT t.jti, t.key_id, t.expires, p.email, p.kind, p.name, p.owner, p.approver,
		p.active, p.paused, p.removed, p.generation, p.created, p.last_login,
		p.owner = '' OR COALESCE(o.active AND NOT o.removed, 0)
		FROM tokens t JOIN principals p ON p.email = t.email LEFT JOIN principals o ON o.email = p.owner
		WHERE t.jti = ?1`, jti).
		Scan(&t.ID, &t.KeyID, &t.Expires, &p.Email, &p.Kind, &p.Name, &p.Owner, &p.Approver,
			&p.Active, &p.Paused, &p.Removed, &p.Generation, &p.Created, &p.LastLogin, &ownerActive))
	t.Email = p.Email
	return t, p, ownerActive, err
}

// DeleteToken revokes one token.
func DeleteToken(tx Tx, jti string) error {
	_, err := tx.Exec(`DELETE FROM tokens WHERE jti = ?1`, jti)
	return err
}

// DeleteTokens revokes all tokens of a principal.
func DeleteTokens(tx Tx, email string) (int64, error) {
	return tx.Exec(`DELETE FROM tokens WHERE email = ?1`, email)
}

// DeleteAgentTokens revokes the tokens of every agent.
func DeleteAgentTokens(tx Tx) (int64, error) {
	return tx.Exec(`DELETE FROM tokens WHERE email IN (SELECT email FROM principals WHERE kind = 'agent')`)
}

// DeleteAllTokens revokes every login token.
func DeleteAllTokens(tx Tx) (int64, error) { return tx.Exec(`DELETE FROM tokens`) }

// SigningKey is an Ed25519 seed of the authority.
type SigningKey struct {
	KID     string
	Seed    []byte
	Created int64
	Retired int64 // signs nothing new from then on
	DropAt  int64 // verifies nothing from then on
}

// SigningKeys lists the keys, newest first.
func SigningKeys(tx Tx) ([]SigningKey, error) {
	return collect(tx, func(r Row, k *SigningKey) error {
		return r.Scan(&k.KID, &k.Seed, &k.Created, &k.Retired, &k.DropAt)
	}, `SELECT kid, seed, created, retired, drop_at FROM signing_keys ORDER BY created DESC, kid`)
}

// InsertSigningKey adds a key.
func InsertSigningKey(tx Tx, k SigningKey) error {
	_, err := tx.Exec(`INSERT INTO signing_keys (kid, seed, created, retired, drop_at) VALUES (?1,?2,?3,?4,?5)`,
		k.KID, k.Seed, k.Created, k.Retired, k.DropAt)
	return err
}

// RetireSigningKeys retires every key that still signs and sets the time at
// which it is dropped.
func RetireSigningKeys(tx Tx, at, dropAt int64) error {
	_, err := tx.Exec(`UPDATE signing_keys SET retired = ?1, drop_at = ?2 WHERE retired = 0`, at, dropAt)
	return err
}

// DropSigningKeys deletes retired keys whose time has come.
func DropSigningKeys(tx Tx, now int64) error {
	_, err := tx.Exec(`DELETE FROM signing_keys WHERE drop_at > 0 AND drop_at <= ?1`, now)
	return err
}

// Meta reads a value; a missing key is ErrNotFound.
func Meta(tx Tx, key string) (v string, err error) {
	return v, notFound(tx.QueryRow(`SELECT value FROM meta WHERE key = ?1`, key).Scan(&v))
}

// SetMeta writes a value.
func SetMeta(tx Tx, key, value string) error {
	_, err := tx.Exec(`INSERT INTO meta (key, value) VALUES (?1, ?2) ON CONFLICT (key) DO UPDATE SET value = excluded.value`, key, value)
	return err
}

// Sweep deletes what has run out: tokens, sessions, trust
// requests a day after their end.
func Sweep(tx Tx, now int64) error {
	const day = 24 * 60 * 60 * 1000
	for _, q := range []string{
		`DELETE FROM tokens WHERE expires <= ?1`,
		`DELETE FROM sessions WHERE expires <= ?1`,
	} {
		if _, err := tx.Exec(q, now); err != nil {
			return err
		}
	}
	if _, err := tx.Exec(`DELETE FROM standing_uses WHERE at <= ?1`, now-day); err != nil {
		return err
	}
	if _, err := tx.Exec(`DELETE FROM policy_uses WHERE at <= ?1`, now-day); err != nil {
		return err
	}
	if err := sweepOAuth(tx, now); err != nil {
		return err
	}
	if _, err := tx.Exec(`DELETE FROM trust_requests WHERE expires <= ?1`, now-day); err != nil {
		return err
	}
	return sweepAccounts(tx, now)
}
