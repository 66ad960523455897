package store

// Code is an authorization code that was given out. Times are Unix
// milliseconds.
type Code struct {
	Hash        []byte // SHA-256 of the code
	ID          string // of the authorization; names what the code gives
	Client      string
	RedirectURI string
	Email       string // the subject
	Generation  uint64 // of the subject at the time
	Epoch       uint64
	Login       string // jti of the bearer that asked; "" for a page's session
	Delegated   string // JSON of what acts for the subject, "" if nobody does
	Scope       string // separated by single spaces
	Nonce       string
	Challenge   string // PKCE, S256
	AuthTime    int64
	Expires     int64
	Used        int64 // when it was first presented, 0 if never
	KeepUntil   int64 // a replay is recognised until then
}

const codeColumns = `hash, id, client, redirect_uri, email, generation, epoch, login, delegated, scope, nonce, challenge,
	auth_time, expires, used, keep_until`

func scanCode(r Row, c *Code) error {
	return notFound(r.Scan(&c.Hash, &c.ID, &c.Client, &c.RedirectURI, &c.Email, &c.Generation, &c.Epoch, &c.Login, &c.Delegated,
		&c.Scope, &c.Nonce, &c.Challenge, &c.AuthTime, &c.Expires, &c.Used, &c.KeepUntil))
}

// InsertCode adds a code.
func InsertCode(tx Tx, c Code) error {
	_, err := tx.Exec(`INSERT INTO oauth_codes (`+codeColumns+`) VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16)`,
		c.Hash, c.ID, c.Client, c.RedirectURI, c.Email, c.Generation, c.Epoch, c.Login, c.Delegated, c.Scope, c.Nonce, c.Challenge,
		c.AuthTime, c.Expires, c.Used, c.KeepUntil)
	return err
}

// SpendCode marks a code as presented and returns it as it was before. First
// reports whether nobody had presented it: of any number of callers one is
// first. An unknown code is ErrNotFound.
func SpendCode(tx Tx, hash []byte, now int64) (c Code, first bool, err error) {
	n, err := tx.Exec(`UPDATE oauth_codes SET used = ?2 WHERE hash = ?1 AND used = 0`, hash, now)
	if err != nil {
		return c, false, err
	}
	err = scanCode(tx.QueryRow(`SELECT `+codeColumns+` FROM oauth_codes WHERE hash = ?1`, hash), &c)
	return c, n == 1, err
}

// KeepCode keeps a spent code, to recognise its replay, at least until then.
func KeepCode(tx Tx, hash []byte, until int64) error {
	_, err := tx.Exec(`UPDATE oauth_codes SET keep_until = ?2 WHERE hash = ?1 AND keep_until < ?2`, hash, until)
	return err
}

// Family is a line of refresh tokens of which only the newest counts. Handle
// is the SHA-256 of the part that all its tokens share, Token that of the
// newest token.
type Family struct {
	ID         string
	Handle     []byte
	Token      []byte
	Client     string
	Email      string
	Generation uint64
	Epoch      uint64
	Login      string // jti of the bearer that it began with; it ends with it
	Scope      string
	AuthTime   int64
	Created    int64
	Used       int64
	Expires    int64
	Ended      int64 // when it was revoked, 0 if it was not
}

const familyColumns = `id, handle, token, client, email, generation, epoch, login, scope, auth_time, created, used, expires, ended`

func scanFamily(r Row, f *Family) error {
	return notFound(r.Scan(&f.ID, &f.Handle, &f.Token, &f.Client, &f.Email, &f.Generation, &f.Epoch, &f.Login, &f.Scope,
		&f.AuthTime, &f.Created, &f.Used, &f.Expires, &f.Ended))
}

// InsertFamily adds a family.
func InsertFamily(tx Tx, f Family) error {
	_, err := tx.Exec(`INSERT INTO oauth_families (`+familyColumns+`) VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14)`,
		f.ID, f.Handle, f.Token, f.Client, f.Email, f.Generation, f.Epoch, f.Login, f.Scope, f.AuthTime, f.Created, f.Used, f.Expires, f.Ended)
	return err
}

// FamilyByHandle reads the family that a refresh token belongs to.
func FamilyByHandle(tx Tx, handle []byte) (f Family, err error) {
	return f, scanFamily(tx.QueryRow(`SELECT `+familyColumns+` FROM oauth_families WHERE handle = ?1`, handle), &f)
}

// FamilyByID reads one family.
func FamilyByID(tx Tx, id string) (f Family, err error) {
	return f, scanFamily(tx.QueryRow(`SELECT `+familyColumns+` FROM oauth_families WHERE id = ?1`, id), &f)
}

// RotateFamily puts next in the place of the token was, if that still is the
// newest and the family lives; else ErrConflict.
func RotateFamily(tx Tx, id string, was, next []byte, now int64) error {
	return mustAffect(tx.Exec(`UPDATE oauth_families SET token = ?3, used = ?4
		WHERE id = ?1 AND token = ?2 AND ended = 0 AND expires > ?4`, id, was, next, now))
}

// Families lists the families of one principal that live, newest first, at most
// limit and those after the one of that time and ID (0 and "" for the first
// page).
func Families(tx Tx, email string, now, before int64, beforeID string, limit int) ([]Family, error) {
	if before == 0 {
		before, beforeID = 1<<62, ""
	}
	return collect(tx, scanFamily, `SELECT `+familyColumns+` FROM oauth_families
		WHERE email = ?1 AND ended = 0 AND expires > ?2 AND (created < ?3 OR created = ?3 AND id < ?4)
		ORDER BY created DESC, id DESC LIMIT ?5`, email, now, before, beforeID, limit)
}

// EndFamily ends a family and whatever else the authorization with that ID gave
// out, and reports whether anything of it was still in force.
func EndFamily(tx Tx, id string, now int64) (bool, error) {
	families, err := tx.Exec(`UPDATE oauth_families SET ended = ?2 WHERE id = ?1 AND ended = 0`, id, now)
	if err != nil {
		return false, err
	}
	tokens, err := tx.Exec(`DELETE FROM tokens WHERE origin = ?1 AND origin <> ''`, id)
	return families+tokens > 0, err
}

// EndOAuthOf ends the families and unused codes of one principal.
func EndOAuthOf(tx Tx, email string, now int64) error {
	return everyExec(tx, []string{
		`UPDATE oauth_families SET ended = ?2 WHERE email = ?1 AND ended = 0`,
		`UPDATE oauth_codes SET used = ?2 WHERE email = ?1 AND used = 0`,
	}, email, now)
}

// EndOAuthOfAgents ends the families and unused codes of every agent.
func EndOAuthOfAgents(tx Tx, now int64) error {
	return everyExec(tx, []string{
		`UPDATE oauth_families SET ended = ?1 WHERE ended = 0 AND email IN (SELECT email FROM principals WHERE kind = 'agent')`,
		`UPDATE oauth_codes SET used = ?1 WHERE used = 0 AND email IN (SELECT email FROM principals WHERE kind = 'agent')`,
	}, now)
}

func everyExec(tx Tx, queries []string, args ...any) error {
	for _, q := range queries {
		if _, err := tx.Exec(q, args...); err != nil {
			return err
		}
	}
	return nil
}

// Consent is a person's stored yes to a client.
type Consent struct {
	Email      string
	Client     string
	Generation uint64
	Name       string // what the client called itself
	Scope      string
	Created    int64
}

const consentColumns = `email, client, generation, name, scope, created`

func scanConsent(r Row, c *Consent) error {
	return notFound(r.Scan(&c.Email, &c.Client, &c.Generation, &c.Name, &c.Scope, &c.Created))
}

// ConsentOf reads the stored consent of a principal to a client.
func ConsentOf(tx Tx, email, client string) (c Consent, err error) {
	return c, scanConsent(tx.QueryRow(`SELECT `+consentColumns+` FROM oauth_consents WHERE email = ?1 AND client = ?2`, email, client), &c)
}

// Consents lists the stored consents of one generation of a principal, newest
// first.
func Consents(tx Tx, email string, generation uint64) ([]Consent, error) {
	return collect(tx, scanConsent, `SELECT `+consentColumns+` FROM oauth_consents WHERE email = ?1 AND generation = ?2
		ORDER BY created DESC, client`, email, generation)
}

// SetConsent stores a consent in the place of an earlier one.
func SetConsent(tx Tx, c Consent) error {
	_, err := tx.Exec(`INSERT INTO oauth_consents (`+consentColumns+`) VALUES (?1,?2,?3,?4,?5,?6)
		ON CONFLICT (email, client) DO UPDATE SET generation = excluded.generation, name = excluded.name,
		scope = excluded.scope, created = excluded.created`, c.Email, c.Client, c.Generation, c.Name, c.Scope, c.Created)
	return err
}

// DeleteConsent takes a consent back.
func DeleteConsent(tx Tx, email, client string) error {
	return mustAffect(tx.Exec(`DELETE FROM oauth_consents WHERE email = ?1 AND client = ?2`, email, client))
}

// FamiliesWith lists the IDs of the living families of a principal at a client.
func FamiliesWith(tx Tx, email, client string) ([]string, error) {
	return collect(tx, func(r Row, id *string) error { return r.Scan(id) },
		`SELECT id FROM oauth_families WHERE email = ?1 AND client = ?2 AND ended = 0`, email, client)
}

// AllowedClient is a client that the administrators of a domain allow.
type AllowedClient struct {
	Domain  string
	Client  string
	Created int64
}

// ClientAllowed reports whether the administrators of domain allow client.
func ClientAllowed(tx Tx, domain, client string) (bool, error) {
	var n int
	err := tx.QueryRow(`SELECT COUNT(*) FROM oauth_allowed WHERE domain = ?1 AND client = ?2`, domain, client).Scan(&n)
	return n > 0, err
}

// AllowedClients lists what the administrators of a domain allow ("" lists all).
func AllowedClients(tx Tx, domain string) ([]AllowedClient, error) {
	return collect(tx, func(r Row, a *AllowedClient) error { return r.Scan(&a.Domain, &a.Client, &a.Created) },
		`SELECT domain, client, created FROM oauth_allowed WHERE ?1 = '' OR domain = ?1 ORDER BY domain, client`, domain)
}

// AllowClient adds a client to a domain's list; it may be there already.
func AllowClient(tx Tx, a AllowedClient) error {
	_, err := tx.Exec(`INSERT INTO oauth_allowed (domain, client, created) VALUES (?1,?2,?3) ON CONFLICT (domain, client) DO NOTHING`,
		a.Domain, a.Client, a.Created)
	return err
}

// DisallowClient takes a client from a domain's list.
func DisallowClient(tx Tx, domain, client string) error {
	return mustAffect(tx.Exec(`DELETE FROM oauth_allowed WHERE domain = ?1 AND client = ?2`, domain, client))
}

// SpendAssertion notes that an assertion of that name was presented. The
// second time it is ErrConflict.
func SpendAssertion(tx Tx, email, jti string, expires int64) error {
	return mustAffect(tx.Exec(`INSERT INTO oauth_assertions (email, jti, expires) VALUES (?1,?2,?3)
		ON CONFLICT (email, jti) DO NOTHING`, email, jti, expires))
}

// TokenByID reads a token that has not been revoked.
func TokenByID(tx Tx, jti string) (t Token, err error) {
	err = notFound(tx.QueryRow(`SELECT jti, email, key_id, created, expires, origin FROM tokens WHERE jti = ?1`, jti).
		Scan(&t.ID, &t.Email, &t.KeyID, &t.Created, &t.Expires, &t.Origin))
	return t, err
}

// sweepOAuth deletes what can neither be used nor be recognised any more.
func sweepOAuth(tx Tx, now int64) error {
	return everyExec(tx, []string{
		`DELETE FROM oauth_codes WHERE keep_until <= ?1`,
		`DELETE FROM oauth_families WHERE expires <= ?1`,
		`DELETE FROM oauth_assertions WHERE expires <= ?1`,
	}, now)
}
