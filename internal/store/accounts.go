package store

import (
	"strings"
)

// Search selects principals for whoever administers them, in the order of
// their addresses.
type Search struct {
	Text  string // in the address or the name, in any letter case; "" finds all
	Kind  string // "human", "agent" or "" for both
	After string // the last address of the page before
	Limit int
}

func (s Search) where() (string, []any) {
	like := strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(strings.ToLower(s.Text))
	return ` FROM principals WHERE removed = 0 AND (?1 = '' OR kind = ?1)
		AND (?2 = '' OR LOWER(email) LIKE ?3 ESCAPE '\' OR LOWER(name) LIKE ?3 ESCAPE '\')`, []any{s.Kind, like, "%" + like + "%"}
}

// SearchPrincipals lists one page and counts all that the search finds.
func SearchPrincipals(tx Tx, s Search) (page []Principal, total int64, err error) {
	where, args := s.where()
	if err := tx.QueryRow(`SELECT COUNT(*)`+where, args...).Scan(&total); err != nil {
		return nil, 0, err
	}
	page, err = collect(tx, scanPrincipal, `SELECT `+principalColumns+where+` AND email > ?4 ORDER BY email LIMIT ?5`,
		append(args, s.After, s.Limit)...)
	return page, total, err
}

// RenamePrincipal changes what a principal is called.
func RenamePrincipal(tx Tx, email, name string) error {
	return mustAffect(tx.Exec(`UPDATE principals SET name = ?2 WHERE email = ?1 AND removed = 0`, email, name))
}

// Admin reports whether the role was given to this enrolment of the address:
// whoever gets the address later does not inherit it.
func Admin(tx Tx, email string, generation uint64) (bool, error) {
	var n int
	err := tx.QueryRow(`SELECT COUNT(*) FROM admins WHERE email = ?1 AND generation = ?2`, email, generation).Scan(&n)
	return n > 0, err
}

// GiveAdmin gives the role, or gives it anew to another enrolment.
func GiveAdmin(tx Tx, email string, generation uint64, by string, now int64) error {
	if err := TakeAdmin(tx, email); err != nil {
		return err
	}
	_, err := tx.Exec(`INSERT INTO admins (email, generation, given_by, created) VALUES (?1,?2,?3,?4)`, email, generation, by, now)
	return err
}

// TakeAdmin takes the role away, if somebody has it.
func TakeAdmin(tx Tx, email string) error {
	_, err := tx.Exec(`DELETE FROM admins WHERE email = ?1`, email)
	return err
}

// Link is an address that makes a first passkey, once. The token in it is not
// stored, only its hash.
type Link struct {
	ID      string
	Hash    string
	Email   string
	Name    string
	By      string // who made it
	Created int64
	Expires int64
	Used    int64
}

const linkColumns = `id, hash, email, name, given_by, created, expires, used`

func scanLink(r Row, l *Link) error {
	return notFound(r.Scan(&l.ID, &l.Hash, &l.Email, &l.Name, &l.By, &l.Created, &l.Expires, &l.Used))
}

// InsertLink adds a link.
func InsertLink(tx Tx, l Link) error {
	_, err := tx.Exec(`INSERT INTO account_links (`+linkColumns+`) VALUES (?1,?2,?3,?4,?5,?6,?7,?8)`,
		l.ID, l.Hash, l.Email, l.Name, l.By, l.Created, l.Expires, l.Used)
	return err
}

// LinkByHash finds a link.
func LinkByHash(tx Tx, hash string) (l Link, err error) {
	return l, scanLink(tx.QueryRow(`SELECT `+linkColumns+` FROM account_links WHERE hash = ?1`, hash), &l)
}

// Links lists a page of the links that may still be used, by id, and counts
// them all.
func Links(tx Tx, now int64, after string, limit int) (page []Link, total int64, err error) {
	if err := tx.QueryRow(`SELECT COUNT(*) FROM account_links WHERE used = 0 AND expires > ?1`, now).Scan(&total); err != nil {
		return nil, 0, err
	}
	page, err = collect(tx, scanLink, `SELECT `+linkColumns+` FROM account_links WHERE used = 0 AND expires > ?1 AND id > ?2
		ORDER BY id LIMIT ?3`, now, after, limit)
	return page, total, err
}

// CountLinks counts the links of an address that may still be used.
func CountLinks(tx Tx, email string, now int64) (n int, err error) {
	err = tx.QueryRow(`SELECT COUNT(*) FROM account_links WHERE email = ?1 AND used = 0 AND expires > ?2`, email, now).Scan(&n)
	return n, err
}

// SpendLink uses a link, once and in time.
func SpendLink(tx Tx, hash string, now int64) error {
	return mustAffect(tx.Exec(`UPDATE account_links SET used = ?2 WHERE hash = ?1 AND used = 0 AND expires > ?2`, hash, now))
}

// DeleteLink takes a link back that was not used.
func DeleteLink(tx Tx, id string) error {
	return mustAffect(tx.Exec(`DELETE FROM account_links WHERE id = ?1 AND used = 0`, id))
}

// DeleteLinks takes all links of an address back.
func DeleteLinks(tx Tx, email string) error {
	_, err := tx.Exec(`DELETE FROM account_links WHERE email = ?1`, email)
	return err
}

// How a recovery stands.
const (
	RecoveryPending   = "pending"
	RecoveryDone      = "done"
	RecoveryCancelled = "cancelled"
)

// Recovery is a request to get into an account without any of its credentials.
type Recovery struct {
	ID         string
	Hash       string // of the token in the mail
	Email      string
	Generation uint64
	Created    int64
	Ready      int64 // before that nobody gets in by it
	Expires    int64
	Status     string
	EndedBy    string
}

const recoveryColumns = `id, hash, email, generation, created, ready, expires, status, ended_by`

func scanRecovery(r Row, v *Recovery) error {
	return notFound(r.Scan(&v.ID, &v.Hash, &v.Email, &v.Generation, &v.Created, &v.Ready, &v.Expires, &v.Status, &v.EndedBy))
}

// InsertRecovery adds a recovery; an account has at most one that waits.
func InsertRecovery(tx Tx, v Recovery) error {
	_, err := tx.Exec(`INSERT INTO recoveries (`+recoveryColumns+`) VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9)`,
		v.ID, v.Hash, v.Email, v.Generation, v.Created, v.Ready, v.Expires, v.Status, v.EndedBy)
	return err
}

// RecoveryByHash finds a recovery by its token.
func RecoveryByHash(tx Tx, hash string) (v Recovery, err error) {
	return v, scanRecovery(tx.QueryRow(`SELECT `+recoveryColumns+` FROM recoveries WHERE hash = ?1`, hash), &v)
}

// OpenRecovery finds the recovery of an account that waits.
func OpenRecovery(tx Tx, email string) (v Recovery, err error) {
	return v, scanRecovery(tx.QueryRow(`SELECT `+recoveryColumns+` FROM recoveries WHERE email = ?1 AND status = 'pending'`, email), &v)
}

// EndRecovery ends a recovery that waits, once.
func EndRecovery(tx Tx, id, status, by string) error {
	return mustAffect(tx.Exec(`UPDATE recoveries SET status = ?2, ended_by = ?3 WHERE id = ?1 AND status = 'pending'`, id, status, by))
}

// CancelAllRecoveries ends everything that waits and voids every link: which of
// them were used or cancelled since a copy was made is not known.
func CancelAllRecoveries(tx Tx, why string) error {
	if _, err := tx.Exec(`UPDATE recoveries SET status = 'cancelled', ended_by = ?1 WHERE status = 'pending'`, why); err != nil {
		return err
	}
	_, err := tx.Exec(`DELETE FROM account_links WHERE used = 0`)
	return err
}

// Away reports whether a person has said that it is away.
func Away(tx Tx, email string) (bool, error) {
	var n int
	err := tx.QueryRow(`SELECT COUNT(*) FROM vacations WHERE email = ?1`, email).Scan(&n)
	return n > 0, err
}

// SetAway notes that a person is away, or is back.
func SetAway(tx Tx, email string, away bool, now int64) error {
	if _, err := tx.Exec(`DELETE FROM vacations WHERE email = ?1`, email); err != nil || !away {
		return err
	}
	_, err := tx.Exec(`INSERT INTO vacations (email, created) VALUES (?1,?2)`, email, now)
	return err
}

// Subscription is where a browser's push service takes messages for a person
// (RFC 8030). P256dh and Auth are the browser's keys (RFC 8291), base64url.
type Subscription struct {
	Endpoint string
	Email    string
	P256dh   string
	Auth     string
	Language string
	Created  int64
}

const subscriptionColumns = `endpoint, email, p256dh, auth, language, created`

func scanSubscription(r Row, s *Subscription) error {
	return notFound(r.Scan(&s.Endpoint, &s.Email, &s.P256dh, &s.Auth, &s.Language, &s.Created))
}

// PutSubscription adds a subscription or renews the person's own. One that is
// another's is ErrConflict.
func PutSubscription(tx Tx, s Subscription) error {
	if _, err := tx.Exec(`DELETE FROM push_subscriptions WHERE endpoint = ?1 AND email = ?2`, s.Endpoint, s.Email); err != nil {
		return err
	}
	_, err := tx.Exec(`INSERT INTO push_subscriptions (`+subscriptionColumns+`) VALUES (?1,?2,?3,?4,?5,?6)`,
		s.Endpoint, s.Email, s.P256dh, s.Auth, s.Language, s.Created)
	return err
}

// Subscriptions lists those of a person, oldest first.
func Subscriptions(tx Tx, email string) ([]Subscription, error) {
	return collect(tx, scanSubscription, `SELECT `+subscriptionColumns+` FROM push_subscriptions WHERE email = ?1 ORDER BY created, endpoint`, email)
}

// DeleteSubscription removes one of a person's subscriptions.
func DeleteSubscription(tx Tx, email, endpoint string) error {
	return mustAffect(tx.Exec(`DELETE FROM push_subscriptions WHERE email = ?1 AND endpoint = ?2`, email, endpoint))
}

// PushKey reads the key that signs to push services.
func PushKey(tx Tx) (private []byte, err error) {
	return private, notFound(tx.QueryRow(`SELECT private FROM push_keys ORDER BY created DESC, id LIMIT 1`).Scan(&private))
}

// InsertPushKey stores the key.
func InsertPushKey(tx Tx, id string, private []byte, now int64) error {
	_, err := tx.Exec(`INSERT INTO push_keys (id, private, created) VALUES (?1,?2,?3)`, id, private, now)
	return err
}

// DropAccount deletes what a principal has besides keys and logins: the role,
// links, recoveries, and where it is told of requests.
func DropAccount(tx Tx, email string) error {
	for _, q := range []string{
		`DELETE FROM admins WHERE email = ?1`,
		`DELETE FROM account_links WHERE email = ?1`,
		`UPDATE recoveries SET status = 'cancelled', ended_by = 'removed' WHERE email = ?1 AND status = 'pending'`,
		`DELETE FROM vacations WHERE email = ?1`,
		`DELETE FROM push_subscriptions WHERE email = ?1`,
	} {
		if _, err := tx.Exec(q, email); err != nil {
			return err
		}
	}
	return nil
}

// sweepAccounts deletes links and recoveries a month after their end.
func sweepAccounts(tx Tx, now int64) error {
	const month = 30 * 24 * 60 * 60 * 1000
	for _, q := range []string{
		`DELETE FROM account_links WHERE expires <= ?1`,
		`DELETE FROM recoveries WHERE expires <= ?1`,
	} {
		if _, err := tx.Exec(q, now-month); err != nil {
			return err
		}
	}
	return nil
}

// AllSessions lists a page of everybody's signed-in pages, by id, and counts
// them.
func AllSessions(tx Tx, now int64, after string, limit int) (page []Session, total int64, err error) {
	if err := tx.QueryRow(`SELECT COUNT(*) FROM sessions WHERE expires > ?1`, now).Scan(&total); err != nil {
		return nil, 0, err
	}
	page, err = collect(tx, scanSession, `SELECT `+sessionColumns+` FROM sessions WHERE expires > ?1 AND id > ?2 ORDER BY id LIMIT ?3`, now, after, limit)
	return page, total, err
}
