package store

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"vogt/internal/detail"
	"vogt/internal/grant"
)

const grantColumns = `id, version, epoch, nonce, status, type, requester, requester_key, generation, owner, approver,
	identity, risk, request, created, valid_until, decision, revoked, revoked_by, last_used, uses, joined, approvals, endorsed`

func scanGrant(r Row, g *grant.Grant) error {
	var request, decision, requester, endorsed string
	var identity []byte
	var risk int64
	err := notFound(r.Scan(&g.ID, &g.Version, &g.Epoch, &g.Nonce, &g.Status, &g.Type, &requester,
		&g.Requester.KeyID, &g.Requester.Generation, &g.Owner, &g.Approver,
		&identity, &risk, &request, &g.Created, &g.ValidUntil, &decision,
		&g.Revoked, &g.RevokedBy, &g.LastUsed, &g.Uses, &g.Joined, &g.Approvals, &endorsed))
	if err != nil {
		return err
	}
	g.Risk = detail.Risk(risk)
	if copy(g.Identity[:], identity) != len(g.Identity) {
		return fmt.Errorf("grant %s: stored identity has %d bytes: %w", g.ID, len(identity), ErrCorrupt)
	}
	if err := json.Unmarshal([]byte(request), &g.Request); err != nil {
		return fmt.Errorf("grant %s: stored request: %v: %w", g.ID, err, ErrCorrupt)
	}
	if g.Request.Requester != requester {
		return fmt.Errorf("grant %s: stored request names another requester: %w", g.ID, ErrCorrupt)
	}
	if endorsed != "" {
		g.Endorsed = new(grant.Endorsement)
		if err := json.Unmarshal([]byte(endorsed), g.Endorsed); err != nil {
			return fmt.Errorf("grant %s: stored endorsement: %v: %w", g.ID, err, ErrCorrupt)
		}
	}
	if decision != "" {
		g.Decision = new(grant.Decision)
		if err := json.Unmarshal([]byte(decision), g.Decision); err != nil {
			return fmt.Errorf("grant %s: stored decision: %v: %w", g.ID, err, ErrCorrupt)
		}
	}
	return nil
}

// GrantByID reads one grant as stored; see grant.As for its state now.
func GrantByID(tx Tx, id string) (g grant.Grant, err error) {
	return g, scanGrant(tx.QueryRow(`SELECT `+grantColumns+` FROM grants WHERE id = ?1`, id), &g)
}

// InsertGrant adds a grant that waits. reuseKey finds it again for an equal
// request; bytes is what it counts for in its owner's quota.
func InsertGrant(tx Tx, g grant.Grant, reuseKey []byte, bytes int) error {
	return InsertDecided(tx, g, reuseKey, bytes, NoRecord)
}

// InsertDecided adds a grant in whatever state it is in. record is the index of
// the log's record that holds its decision.
func InsertDecided(tx Tx, g grant.Grant, reuseKey []byte, bytes int, record int64) error {
	request, err := json.Marshal(g.Request)
	if err != nil {
		return err
	}
	decision, decided, err := encodeDecision(g)
	if err != nil {
		return err
	}
	_, err = tx.Exec(`INSERT INTO grants (id, version, epoch, nonce, status, type, requester, requester_key, generation,
		owner, approver, reuse_key, identity, risk, request, bytes, created, valid_until, decided, decision, record, approvals)
		VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,?18,?19,?20,?21,?22)`,
		g.ID, g.Version, g.Epoch, g.Nonce, string(g.Status), string(g.Type), g.Request.Requester, g.Requester.KeyID,
		g.Requester.Generation, g.Owner, g.Approver, reuseKey, g.Identity[:], int64(g.Risk), string(request), bytes,
		int64(g.Created), int64(g.ValidUntil), decided, decision, record, max(g.Approvals, 1))
	return err
}

// encodeDecision is a grant's decision as stored, and when it was made.
func encodeDecision(g grant.Grant) (text string, at int64, err error) {
	if g.Decision == nil {
		return "", 0, nil
	}
	b, err := json.Marshal(g.Decision)
	return string(b), int64(g.Decision.At), err
}

// NoRecord leaves a grant's decision record as it is.
const NoRecord = -1

// SwapGrant replaces the grant by its next state if nobody did so before:
// the stored version must be next.Version-1. The fence ties the write to the
// one signer. record is the index of the log record that holds the decision,
// or NoRecord. ErrConflict means that another swap came first.
func SwapGrant(tx Tx, next grant.Grant, record, fence int64) error {
	decision, decided, err := encodeDecision(next)
	if err != nil {
		return err
	}
	endorsed := ""
	if next.Endorsed != nil {
		b, err := json.Marshal(next.Endorsed)
		if err != nil {
			return err
		}
		endorsed = string(b)
	}
	return mustAffect(tx.Exec(`UPDATE grants SET endorsed=?14, version=?2, status=?3, type=?4, valid_until=?5, decided=?6, decision=?7,
		revoked=?8, revoked_by=?9, last_used=?10, uses=?11, record = CASE WHEN ?13 < 0 THEN record ELSE ?13 END
		WHERE id=?1 AND version=?2-1 AND (SELECT fence FROM lease) = ?12`,
		next.ID, next.Version, string(next.Status), string(next.Type), int64(next.ValidUntil), decided, decision,
		int64(next.Revoked), next.RevokedBy, int64(next.LastUsed), next.Uses, fence, record, endorsed))
}

// DecisionRecord reads the index of the decision's log record, -1 for none.
func DecisionRecord(tx Tx, id string) (index int64, err error) {
	return index, notFound(tx.QueryRow(`SELECT record FROM grants WHERE id = ?1`, id).Scan(&index))
}

// JoinGrant counts one more identical request.
func JoinGrant(tx Tx, id string) error {
	return mustAffect(tx.Exec(`UPDATE grants SET joined = joined + 1 WHERE id = ?1`, id))
}

// OpenGrants lists the pending and approved grants under a reuse key, newest
// first.
func OpenGrants(tx Tx, reuseKey []byte) ([]grant.Grant, error) {
	return collect(tx, scanGrant, `SELECT `+grantColumns+` FROM grants
		WHERE reuse_key = ?1 AND status IN ('pending','approved') ORDER BY created DESC LIMIT 20`, reuseKey)
}

// OpenGrantsOf lists every pending and approved grant of a requester.
func OpenGrantsOf(tx Tx, requester string) ([]grant.Grant, error) {
	return collect(tx, scanGrant, `SELECT `+grantColumns+` FROM grants
		WHERE requester = ?1 AND status IN ('pending','approved')`, requester)
}

// PendingOf lists an owner's requests that wait, oldest first, at most limit.
func PendingOf(tx Tx, owner string, limit int) ([]grant.Grant, error) {
	return collect(tx, scanGrant, `SELECT `+grantColumns+` FROM grants WHERE owner = ?1 AND status = 'pending' ORDER BY created, id LIMIT ?2`, owner, limit)
}

// ShortGrants lists what a new epoch and a panic end: pending requests and
// approved once-grants.
func ShortGrants(tx Tx) ([]grant.Grant, error) {
	return collect(tx, scanGrant, `SELECT `+grantColumns+` FROM grants
		WHERE status IN ('pending','approved') AND (status = 'pending' OR type = 'once')`)
}

// EndedGrants lists up to limit grants whose time has run out but whose row
// does not say so yet.
func EndedGrants(tx Tx, now, limit int64) ([]grant.Grant, error) {
	return collect(tx, scanGrant, `SELECT `+grantColumns+` FROM grants
		WHERE status IN ('pending','approved') AND valid_until > 0 AND valid_until <= ?1 LIMIT ?2`, now, limit)
}

// Usage is what waits for a person at the moment.
type Usage struct {
	Pending int64
	Bytes   int64
}

// UsageOf sums the pending requests of a requester and of its owner. Only
// pending ones count, so that it costs the same at any number of grants.
func UsageOf(tx Tx, requester, owner string) (own, all Usage, err error) {
	const sums = `SELECT COUNT(*), COALESCE(SUM(bytes), 0) FROM grants WHERE status = 'pending' AND `
	if err = tx.QueryRow(sums+`requester = ?1`, requester).Scan(&own.Pending, &own.Bytes); err != nil {
		return own, all, err
	}
	err = tx.QueryRow(sums+`owner = ?1`, owner).Scan(&all.Pending, &all.Bytes)
	return own, all, err
}

// Filter selects a page of grants.
type Filter struct {
	Viewer    string       // whose view: own, owned and to be approved
	Since     grant.Millis // when the viewer was enrolled; what is older is not the viewer's
	Agent     bool         // the viewer is an agent: own requests only
	Requester string       // "" for any
	Status    grant.Status // "" for any
	// Statuses are several, in the place of Status.
	Statuses []grant.Status
	Role     Role         // of the viewer in the grant; "" for any
	Before   grant.Millis // cursor: created and id of the last row seen
	BeforeID string
	Limit    int
	Now      grant.Millis
	OldFirst bool // oldest first, from the start; used for inboxes
}

// Role is what somebody is in a grant.
type Role string

// The roles. An approver is one beside the owner.
const (
	AsRequester Role = "requester"
	AsOwner     Role = "owner"
	AsApprover  Role = "approver"
)

// ListGrants returns a page, newest first, ordered by (created, id), so that
// rows with equal times are neither skipped nor repeated.
//
// It is put together from parts, one for each role and status, each of which
// walks an index of its own in the order of the page. So a page costs the same at
// any number of grants, whatever is asked for: no part reads rows that it leaves
// out, but for those whose time has run out and that housekeeping has not come to.
func ListGrants(tx Tx, f Filter) ([]grant.Grant, error) {
	if f.OldFirst && f.Since > f.Before {
		f.Before, f.BeforeID = f.Since, "" // every id follows
	} else if !f.OldFirst && f.Before == 0 {
		f.Before = 1 << 62
	}
	q := listing{args: []any{f.Viewer, int64(f.Before), f.BeforeID, f.Limit}}
	q.order, q.page, q.since = ` ORDER BY created DESC, id DESC LIMIT ?4`, ` AND (created, id) < (?2, ?3)`, q.arg(int64(f.Since))
	if f.OldFirst {
		q.order, q.page = ` ORDER BY created, id LIMIT ?4`, ` AND (created, id) > (?2, ?3)`
	}
	statuses := f.Statuses
	if len(statuses) == 0 {
		statuses = []grant.Status{f.Status}
	}
	for _, whose := range q.whose(f) {
		for _, status := range statuses {
			q.status(whose, status, int64(f.Now))
		}
	}
	if len(q.parts) == 0 {
		return nil, nil
	}
	// UNION drops the rows that two parts share.
	return collect(tx, scanGrant, strings.Join(q.parts, ` UNION `)+q.order, q.args...)
}

// listing is a list's query as it is put together.
type listing struct {
	args               []any
	page, order, since string
	parts              []string
}

func (q *listing) arg(v any) string {
	q.args = append(q.args, v)
	return "?" + strconv.Itoa(len(q.args))
}

// whose are the conditions of the filter's roles, each with an index that begins
// with its first column. ?1 is the viewer.
func (q *listing) whose(f Filter) []string {
	if f.Requester != "" && f.Requester != f.Viewer {
		if f.Agent || f.Role == AsRequester {
			return nil
		}
		whose := `requester = ` + q.arg(f.Requester)
		switch f.Role {
		case AsOwner:
			return []string{whose + ` AND owner = ?1`}
		case AsApprover:
			return []string{whose + ` AND approver = ?1 AND approver <> owner`}
		}
		return []string{whose + ` AND (owner = ?1 OR approver = ?1)`}
	}
	var out []string
	if f.Role == "" || f.Role == AsRequester {
		out = append(out, `requester = ?1`)
	}
	if f.Agent || f.Requester != "" {
		return out
	}
	if f.Role == "" || f.Role == AsOwner {
		out = append(out, `owner = ?1`)
	}
	if f.Role == "" || f.Role == AsApprover {
		out = append(out, `approver = ?1 AND approver <> owner`)
	}
	return out
}

// status adds the parts for one status as it is now: what has run out counts as
// expired before its row says so.
func (q *listing) status(whose string, status grant.Status, now int64) {
	switch status {
	case "":
		q.part(whose)
	case grant.Pending, grant.Approved:
		q.part(whose + ` AND status = ` + q.arg(string(status)) + ` AND (valid_until = 0 OR valid_until > ` + q.arg(now) + `)`)
	case grant.Expired:
		q.part(whose + ` AND status = 'expired'`)
		// Few, of everybody together: found by their end, not by whose they are.
		q.from(`(SELECT `+grantColumns+` FROM grants WHERE status IN ('pending','approved') AND valid_until > 0 AND valid_until <= `+
			q.arg(now)+` ORDER BY valid_until LIMIT 2000) AS ended`, whose)
	default:
		q.part(whose + ` AND status = ` + q.arg(string(status)))
	}
}

func (q *listing) part(where string) { q.from(`grants`, where) }

func (q *listing) from(table, where string) {
	// The newest come first, so what is too old is at the end of a page and can be
	// left out afterwards. Another bound inside would have SQLite take an index for
	// both bounds, and read all of one status to find those of another.
	q.parts = append(q.parts, `SELECT * FROM (SELECT `+grantColumns+` FROM `+table+` WHERE `+where+q.page+q.order+`) AS part WHERE created >= `+q.since)
}

// UseState is what decides, beside the grant itself, whether it may be used: who
// asked for it, and who answered in a person's name. What does not exist is zero.
type UseState struct {
	// Of the grant: the index of its decision's record, and all that can change
	// while that is the same.
	Record     int64
	Version    int64
	Status     grant.Status
	ValidUntil grant.Millis
	Revoked    grant.Millis
	RevokedBy  string
	LastUsed   grant.Millis
	Uses       int64

	Requester Principal // Email, Kind, Owner, Active, Paused, Removed and Generation
	Owner     Principal // of the requester; Email, Active and Removed
	KeyHolder string    // whose the key is
	// Standing is the standing grant that decided, Author who signed it: Email,
	// Active, Removed and Generation.
	Standing StandingState
	Author   Principal
}

// Of is g, which was read under the same decision, as it is now.
func (u *UseState) Of(g grant.Grant) grant.Grant {
	g.Version, g.Status, g.ValidUntil, g.Revoked, g.RevokedBy, g.LastUsed, g.Uses = u.Version, u.Status, u.ValidUntil, u.Revoked, u.RevokedBy, u.LastUsed, u.Uses
	return g
}

// UseStateOf reads all of it at once, since every use of every grant does. key
// and standing may be empty.
func UseStateOf(tx Tx, grantID, key, standing string) (u UseState, err error) {
	r, o, s, a := &u.Requester, &u.Owner, &u.Standing, &u.Author
	var off string // the pattern, where safe commands are off
	err = notFound(tx.QueryRow(`SELECT g.record, g.version, g.status, g.valid_until, g.revoked, g.revoked_by, g.last_used, g.uses,
		COALESCE(r.email, ''), COALESCE(r.kind, ''), COALESCE(r.owner, ''), COALESCE(r.active, 0), COALESCE(r.paused, 0), COALESCE(r.removed, 0), COALESCE(r.generation, 0),
		COALESCE(o.email, ''), COALESCE(o.active, 0), COALESCE(o.removed, 0), COALESCE(k.email, ''),
		COALESCE(s.author, ''), COALESCE(s.generation, 0), COALESCE(s.valid_until, 0), COALESCE(s.revoked, 0), COALESCE(s.paused, ''), COALESCE(s.uses, 0),
		CASE WHEN EXISTS (SELECT 1 FROM safe_off WHERE owner = s.author) THEN s.pattern ELSE '' END,
		COALESCE(a.email, ''), COALESCE(a.active, 0), COALESCE(a.removed, 0), COALESCE(a.generation, 0)
		FROM grants g LEFT JOIN principals r ON r.email = g.requester LEFT JOIN principals o ON o.email = r.owner
		LEFT JOIN principal_keys k ON k.key_id = ?2 LEFT JOIN standing_grants s ON s.id = ?3 LEFT JOIN principals a ON a.email = s.author
		WHERE g.id = ?1`, grantID, key, standing).
		Scan(&u.Record, &u.Version, &u.Status, &u.ValidUntil, &u.Revoked, &u.RevokedBy, &u.LastUsed, &u.Uses, &r.Email, &r.Kind, &r.Owner, &r.Active, &r.Paused, &r.Removed, &r.Generation, &o.Email, &o.Active, &o.Removed, &u.KeyHolder,
			&s.Author, &s.Generation, &s.Until, &s.Revoked, &s.Paused, &s.Uses, &off, &a.Email, &a.Active, &a.Removed, &a.Generation))
	if err != nil || off == "" {
		return u, err
	}
	var p grant.Pattern
	if err := json.Unmarshal([]byte(off), &p); err != nil {
		return u, fmt.Errorf("standing grant %s: stored pattern: %v: %w", standing, err, ErrCorrupt)
	}
	s.SafeOff = p.Class == grant.ClassSafe
	return u, nil
}

// UseGrant is [SwapGrant] for a use, which changes little of a grant.
func UseGrant(tx Tx, next grant.Grant, fence int64) error {
	return mustAffect(tx.Exec(`UPDATE grants SET version=?2, status=?3, last_used=?4, uses=?5
		WHERE id=?1 AND version=?2-1 AND (SELECT fence FROM lease) = ?6`,
		next.ID, next.Version, string(next.Status), int64(next.LastUsed), next.Uses, fence))
}

// DecidedGrant reads a grant, and the body of the log's record number index that
// holds its decision: nil where there is none, or where it was erased.
func DecidedGrant(tx Tx, id string) (g grant.Grant, index int64, body []byte, err error) {
	row := tx.QueryRow(`SELECT `+grantColumns+`, record, (SELECT body FROM log_records WHERE idx = record) FROM grants WHERE id = ?1`, id)
	err = scanGrant(wider{row, []any{&index, &body}}, &g)
	return g, index, body, err
}

// wider is a row with columns after those that a scan function knows.
type wider struct {
	Row
	more []any
}

func (w wider) Scan(dest ...any) error { return w.Row.Scan(append(dest, w.more...)...) }

// TrustRequest is a prepared change of trust.
type TrustRequest struct {
	ID        string
	Operation string
	Params    string // JSON object
	Asker     string
	Secret    []byte // SHA-256 of the asker's secret
	Nonce     string
	Status    string
	Confirmer string
	Result    string // JSON
	Created   int64
	Expires   int64
}

const trustColumns = `id, operation, params, asker, secret, nonce, status, confirmer, result, created, expires`

func scanTrust(r Row, t *TrustRequest) error {
	return notFound(r.Scan(&t.ID, &t.Operation, &t.Params, &t.Asker, &t.Secret, &t.Nonce, &t.Status, &t.Confirmer, &t.Result, &t.Created, &t.Expires))
}

// InsertTrust adds a prepared change.
func InsertTrust(tx Tx, t TrustRequest) error {
	_, err := tx.Exec(`INSERT INTO trust_requests (`+trustColumns+`) VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11)`,
		t.ID, t.Operation, t.Params, t.Asker, t.Secret, t.Nonce, t.Status, t.Confirmer, t.Result, t.Created, t.Expires)
	return err
}

// TrustByID reads a prepared change.
func TrustByID(tx Tx, id string) (t TrustRequest, err error) {
	return t, scanTrust(tx.QueryRow(`SELECT `+trustColumns+` FROM trust_requests WHERE id = ?1`, id), &t)
}

// PendingTrusts lists the prepared changes that wait, newest first.
func PendingTrusts(tx Tx, now int64) ([]TrustRequest, error) {
	return collect(tx, scanTrust, `SELECT `+trustColumns+` FROM trust_requests WHERE status = 'pending' AND expires > ?1 ORDER BY created DESC`, now)
}

// CountTrusts counts the prepared changes of one asker that wait.
func CountTrusts(tx Tx, asker string, now int64) (n int, err error) {
	err = tx.QueryRow(`SELECT COUNT(*) FROM trust_requests WHERE asker = ?1 AND status = 'pending' AND expires > ?2`, asker, now).Scan(&n)
	return n, err
}

// TrimTrusts forgets the unsettled changes of one asker but for the newest.
func TrimTrusts(tx Tx, asker string, keep int) error {
	_, err := tx.Exec(`DELETE FROM trust_requests WHERE asker = ?1 AND status = 'pending' AND (created, id) <=
		(SELECT created, id FROM trust_requests WHERE asker = ?1 AND status = 'pending' ORDER BY created DESC, id DESC LIMIT 1 OFFSET ?2)`, asker, keep)
	return err
}

// EndTrust settles a prepared change once.
func EndTrust(tx Tx, id, status, confirmer, result string, now int64) error {
	return mustAffect(tx.Exec(`UPDATE trust_requests SET status = ?2, confirmer = ?3, result = ?4
		WHERE id = ?1 AND status = 'pending' AND expires > ?5`, id, status, confirmer, result, now))
}

// TakeTrustResult returns the result of a confirmed change and wipes it, since
// it may hold a token.
func TakeTrustResult(tx Tx, id string) error {
	_, err := tx.Exec(`UPDATE trust_requests SET result = '' WHERE id = ?1`, id)
	return err
}

// CountPending counts what waits for a person who was enrolled at since.
func CountPending(tx Tx, viewer string, since, now grant.Millis) (n int, err error) {
	const waiting = ` FROM grants WHERE status = 'pending' AND (valid_until = 0 OR valid_until > ?2) AND created >= ?3 AND `
	err = tx.QueryRow(`SELECT COUNT(*) FROM (SELECT id`+waiting+`owner = ?1 UNION SELECT id`+waiting+`approver = ?1 AND approver <> owner) AS waiting`,
		viewer, int64(now), int64(since)).Scan(&n)
	return n, err
}

// CountGrants counts the newest grants of a requester, at most limit, by their
// state at now.
func CountGrants(tx Tx, requester string, limit int, now grant.Millis) (map[grant.Status]int64, error) {
	type row struct {
		status grant.Status
		n      int64
	}
	rows, err := collect(tx, func(r Row, c *row) error { return r.Scan(&c.status, &c.n) }, `SELECT s, COUNT(*) FROM (
		SELECT CASE WHEN status IN ('pending','approved') AND valid_until > 0 AND valid_until <= ?3 THEN 'expired' ELSE status END AS s
		FROM grants WHERE requester = ?1 ORDER BY created DESC, id DESC LIMIT ?2) AS newest GROUP BY s`, requester, limit, int64(now))
	out := make(map[grant.Status]int64, len(rows))
	for _, c := range rows {
		out[c.status] = c.n
	}
	return out, err
}
