package authority

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"vogt/internal/api"
	"vogt/internal/audit"
	"vogt/internal/grant"
	"vogt/internal/statement"
	"vogt/internal/store"
)

// The kinds of records. Each has a body of its own below.
const (
	recordRequest  = "request"
	recordJoin     = "join"
	recordDecision = "decision"
	recordRevoke   = "revoke"
	// The first of two persons' yes.
	recordEndorse  = "endorsement"
	recordIntent   = "intent"
	recordOutcome  = "outcome"
	recordBox      = "connections"
	recordExpiry   = "expiry"
	recordRefusal  = "refusal"
	recordLogin    = "login"
	recordLogout   = "logout"
	recordTrust    = "trust"
	recordPanic    = "panic"
	recordEpoch    = "epoch"
	recordKey      = "signing-key"
	recordOAuth    = "oauth"
	recordOAuthEnd = "oauth-end"
	// The uses of delegations.
	recordDelegation = "delegation"
)

type requestRecord struct {
	Grant    string           `json:"grant"`
	By       string           `json:"by"`
	Owner    string           `json:"owner"`
	Host     string           `json:"host"`
	Audience string           `json:"audience"`
	Command  []string         `json:"command"`
	Connect  string           `json:"connect,omitempty"` // of a box, in the place of a command
	RunAs    string           `json:"run_as,omitempty"`
	Cwd      string           `json:"cwd,omitempty"`
	Reason   string           `json:"reason,omitempty"`
	Risk     string           `json:"risk"`
	Verdict  string           `json:"verdict"` // asked, or allowed by an earlier answer
	Identity statement.Digest `json:"identity"`
}

// boxRecord is what the proxy of a box has seen. Source says whose word it is.
type boxRecord struct {
	By      string           `json:"by"`
	Agent   string           `json:"agent"`
	Box     string           `json:"box"`
	Serial  int64            `json:"serial"`
	Source  string           `json:"source"` // observed or claimed
	Lost    int64            `json:"lost,omitempty"`
	Records []api.Connection `json:"connections"`
}

type decisionRecord struct {
	Grant       string           `json:"grant"`
	By          string           `json:"by"`
	Answer      string           `json:"answer"` // approved or denied
	Type        grant.Type       `json:"type,omitempty"`
	Until       grant.Millis     `json:"until,omitempty"`
	Strength    grant.Strength   `json:"strength"`
	Digest      statement.Digest `json:"digest"`
	Statement   json.RawMessage  `json:"statement"`
	Evidence    json.RawMessage  `json:"evidence,omitempty"`
	Note        string           `json:"note,omitempty"`
	Standing    []string         `json:"standing,omitempty"`     // the standing grants that decided in the person's name
	Policy      string           `json:"policy,omitempty"`       // the policy that did
	For         string           `json:"for,omitempty"`          // whom By stood in for
	Deputy      string           `json:"deputy,omitempty"`       // the appointment
	First       string           `json:"first,omitempty"`        // who was the first of two
	FirstRecord int64            `json:"first_record,omitempty"` // of the first one's yes
}

type intentRecord struct {
	Grant string `json:"grant"`
	By    string `json:"by"`
	Use   string `json:"use"`
	N     int64  `json:"n"` // which use of the grant this is, from 1
}

type outcomeRecord struct {
	Grant    string `json:"grant"`
	By       string `json:"by"`
	Use      string `json:"use"`
	ExitCode int    `json:"exit_code"`
	Signal   string `json:"signal,omitempty"`
	MS       int64  `json:"duration_ms"`
	Error    string `json:"error,omitempty"`
	Source   string `json:"source"` // "claimed": reported by the caller itself
}

type expiryRecord struct {
	Grant string `json:"grant"`
	Was   string `json:"was"`
	Why   string `json:"why"` // time or epoch
}

type refusalRecord struct {
	Grant string `json:"grant,omitempty"`
	By    string `json:"by"`
	Tried string `json:"tried"`
	Why   string `json:"why"`
}

type revokeRecord struct {
	Grant string `json:"grant"`
	By    string `json:"by"`
	Why   string `json:"why,omitempty"`
}

type loginRecord struct {
	Email string `json:"email"`
	Means string `json:"means"` // key, passkey, device
	Key   string `json:"key,omitempty"`
}

type trustRecord struct {
	Operation string            `json:"operation"`
	By        string            `json:"by"`
	Subject   string            `json:"subject"`
	Params    map[string]string `json:"params,omitempty"`
	Strength  grant.Strength    `json:"strength,omitempty"`
	Digest    *statement.Digest `json:"digest,omitempty"`
	Evidence  json.RawMessage   `json:"evidence,omitempty"`
	// Statement is what was signed, of a change that a person confirmed.
	Statement json.RawMessage `json:"statement,omitempty"`
	// DormantUntil is set for what takes effect only later, Unix ms.
	DormantUntil int64 `json:"dormant_until,omitempty"`
}

type panicRecord struct {
	By     string `json:"by"`
	Reason string `json:"reason,omitempty"`
	Agents int64  `json:"agents"`
	Tokens int64  `json:"tokens"`
	Grants int64  `json:"grants"`
}

type delegationRecord struct {
	Delegation string   `json:"delegation"`
	By         string   `json:"by"` // the delegate
	Delegator  string   `json:"delegator"`
	Audience   string   `json:"audience"`
	Scopes     []string `json:"scopes"`
	N          int64    `json:"n"` // which use this is, from 1
}

type epochRecord struct {
	Epoch  uint64 `json:"epoch"`
	Why    string `json:"why"`
	Size   int64  `json:"size"`             // of this log before this record
	Behind string `json:"behind,omitempty"` // the checkpoint that this log does not reach
}

type keyRecord struct {
	KID   string `json:"kid"`
	Event string `json:"event"` // new or retired
}

// record appends to the log inside the transaction: what it tells of is true
// exactly if the record is there. party is the principal whom it concerns.
func (t *txn) record(kind, grantID, party string, body any) (int64, error) {
	switch kind {
	case recordTrust, recordPanic, recordLogout, recordEpoch, recordKey, recordOAuthEnd:
		// Whoever changes trust says so in the log, so this is the one place
		// that every such change passes.
		t.OnCommit(func() { t.a.trustVersion.Add(1) })
	}
	b, err := json.Marshal(body)
	if err != nil {
		return 0, err
	}
	salt := make([]byte, 16)
	if _, err := io.ReadFull(t.a.random, salt); err != nil {
		return 0, fmt.Errorf("reading randomness: %w", err)
	}
	size, err := t.logSize()
	if err != nil {
		return 0, err
	}
	rec, err := audit.Append(&logStorage{Tx: t.Tx, grantID: grantID, party: party, size: &size},
		audit.Record{Type: kind, Time: int64(t.now), Salt: salt, Body: b})
	if err == nil {
		size++
		t.size = &size
	}
	return rec.Index, err
}

// logSize is the number of records, and so the index of the next one. Nobody
// else appends while an update runs, so it is read once.
func (t *txn) logSize() (int64, error) {
	if t.size != nil {
		return *t.size, nil
	}
	size, err := store.LogSize(t)
	if err == nil {
		t.size = &size
	}
	return size, err
}

// logStorage lends the tables of the log to package audit.
type logStorage struct {
	store.Tx
	grantID, party string
	size           *int64 // where it is known already
}

func (s *logStorage) Size() (int64, error) {
	if s.size != nil {
		return *s.size, nil
	}
	return store.LogSize(s)
}

func (s *logStorage) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	out := make([]tlog.Hash, len(indexes))
	for i, index := range indexes {
		h, err := store.LogHash(s, index)
		if errors.Is(err, store.ErrNotFound) {
			return nil, fmt.Errorf("log: node %d of the tree is missing: %w", index, store.ErrCorrupt)
		}
		if err != nil {
			return nil, fmt.Errorf("log: node %d: %w", index, err)
		}
		if copy(out[i][:], h) != len(out[i]) {
			return nil, fmt.Errorf("log: node %d has %d bytes: %w", index, len(h), store.ErrCorrupt)
		}
	}
	return out, nil
}

func (s *logStorage) Put(rec audit.Record, first int64, hashes []tlog.Hash) error {
	err := store.InsertLog(s, store.LogRecord{
		Index: rec.Index, Type: rec.Type, Time: rec.Time, Salt: rec.Salt, Body: rec.Body, Leaf: rec.Leaf[:], Party: s.party, Grant: s.grantID,
	})
	if err == nil {
		nodes := make([][]byte, len(hashes))
		for i := range hashes {
			nodes[i] = hashes[i][:]
		}
		err = store.InsertLogHashes(s, first, nodes)
	}
	if errors.Is(err, store.ErrConflict) {
		// One writer appends to the end: what stands there already has lost
		// what stood before it.
		return fmt.Errorf("log: what belongs to record %d is there already: %w", rec.Index, store.ErrCorrupt)
	}
	return err
}

// checkLog compares the ends of the log and of its tree: nothing can be
// appended to a log that has lost its last records.
func checkLog(tx store.Tx) error {
	size, err := store.LogSize(tx)
	if err != nil {
		return err
	}
	nodes, err := store.LogNodes(tx)
	if err != nil {
		return err
	}
	want := int64(0)
	if size > 0 {
		want = tlog.StoredHashCount(size)
	}
	switch {
	case nodes > want:
		return fmt.Errorf("the log is shorter than its tree: record %d is missing: %w", size, store.ErrCorrupt)
	case nodes < want:
		return fmt.Errorf("the log's tree is shorter than the log: node %d of %d is missing: %w", nodes, want, store.ErrCorrupt)
	case size > 0:
		_, err = tlog.TreeHash(size, &logStorage{Tx: tx})
	}
	return err
}

const (
	metaLogSeed = "log_seed" // base64 of the Ed25519 seed
	metaEpoch   = "epoch"
)

// openLog reads or creates the log's key and the epoch.
func (a *Authority) openLog(ctx context.Context) error {
	if err := a.db.View(ctx, checkLog); err != nil {
		return err
	}
	var seed []byte
	var epoch uint64
	// On a full disk, too, there must be an authority that revokes and pauses.
	err := a.narrow(ctx, func(t *txn) error {
		v, err := store.Meta(t, metaLogSeed)
		if errors.Is(err, store.ErrNotFound) {
			fresh := make([]byte, 32)
			if _, err := io.ReadFull(a.random, fresh); err != nil {
				return err
			}
			v = base64.StdEncoding.EncodeToString(fresh)
			err = store.SetMeta(t, metaLogSeed, v)
		}
		if err != nil {
			return err
		}
		if seed, err = base64.StdEncoding.DecodeString(v); err != nil || len(seed) != 32 {
			return fmt.Errorf("log key: stored seed is unreadable: %w", store.ErrCorrupt)
		}
		v, err = store.Meta(t, metaEpoch)
		if errors.Is(err, store.ErrNotFound) {
			epoch = 1
			return t.startEpoch(1, "first start", "")
		}
		if err != nil {
			return err
		}
		if epoch, err = strconv.ParseUint(v, 10, 64); err != nil {
			return fmt.Errorf("epoch: %v: %w", err, store.ErrCorrupt)
		}
		return nil
	})
	if err != nil {
		return err
	}
	a.epoch.Store(epoch)
	a.signer, a.verifier, err = audit.NewSigner(audit.Origin(a.cfg.Issuer), seed)
	return err
}

// startEpoch ends what must not outlive a restore and begins a new epoch:
// pending requests, approved once-grants and all logins.
func (t *txn) startEpoch(epoch uint64, why, behind string) error {
	size, err := store.LogSize(t)
	if err != nil {
		return err
	}
	if err := store.SetMeta(t, metaEpoch, strconv.FormatUint(epoch, 10)); err != nil {
		return err
	}
	if _, err := t.record(recordEpoch, "", "", epochRecord{Epoch: epoch, Why: why, Size: size, Behind: behind}); err != nil {
		return err
	}
	open, err := store.ShortGrants(t)
	if err != nil {
		return err
	}
	for _, g := range open {
		if err := t.lapse(g, "epoch"); err != nil {
			return err
		}
	}
	if epoch > 1 {
		// Which of them were revoked, paused or used up since the copy is not known.
		if err := store.PauseAllStanding(t, "the data was restored from an older copy"); err != nil {
			return err
		}
		// What agents have seen since is not known either, nor what they wrote.
		for _, label := range []string{labelSecret, labelForeign, wroteAll} {
			if err := store.LabelAll(t, label, int64(t.now)); err != nil {
				return err
			}
		}
		if err := store.CancelAllRecoveries(t, "restore"); err != nil {
			return err
		}
		if err := store.PauseAllPolicies(t, "the data was restored from an older copy"); err != nil {
			return err
		}
		if _, err := store.ExpireDelegations(t, ""); err != nil {
			return err
		}
		if err := store.EndAllDeputies(t, "epoch", int64(t.now)); err != nil {
			return err
		}
	}
	// Families and codes carry the epoch that they were given in.
	_, err = store.DeleteAllTokens(t)
	return err
}

// NoteCheckpoint looks at a checkpoint that somebody remembers. If this
// authority signed it and its log does not reach it, or went on otherwise, the
// data was older than what it once told the world: a new epoch begins. It
// reports whether it did.
func (a *Authority) NoteCheckpoint(ctx context.Context, text string) (bool, error) {
	if h := a.head.Load(); h != nil && h.text == text {
		return false, nil
	}
	seen, err := audit.OpenCheckpoint(text, a.verifier)
	if err != nil {
		return false, nil // not ours, so it proves nothing
	}
	var why string
	check := func(tx store.Tx) error {
		why = ""
		size, err := store.LogSize(tx)
		if err != nil || seen.Size == 0 {
			return err
		}
		if size < seen.Size {
			why = "the log is behind a checkpoint that was signed with its key"
			return nil
		}
		root, err := tlog.TreeHash(seen.Size, &logStorage{Tx: tx})
		if err == nil && root != seen.Root {
			why = "the log has other records than a checkpoint that was signed with its key"
		}
		return err
	}
	if err := a.view(ctx, check); err != nil || why == "" {
		return false, err
	}
	next := a.Epoch() + 1
	started := false
	err = a.update(ctx, func(t *txn) error {
		last, err := store.Meta(t, metaBehind)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		known, _ := strconv.ParseInt(last, 10, 64)
		if err := check(t); err != nil || why == "" || known >= seen.Size {
			return err
		}
		started = true
		t.OnCommit(func() { a.epoch.Store(next) })
		if err := store.SetMeta(t, metaBehind, strconv.FormatInt(seen.Size, 10)); err != nil {
			return err
		}
		return t.startEpoch(next, why, seen.Text)
	})
	if started && err == nil {
		a.log.Warn("the data is older than a checkpoint known elsewhere; a new epoch began", "epoch", next, "known_size", seen.Size)
	}
	return started && err == nil, err
}

// metaBehind remembers the largest checkpoint that a new epoch was begun for,
// so that the same one does not begin another.
const metaBehind = "behind"

// Checkpoint returns the signed head of the log, covering at least size
// records.
func (a *Authority) Checkpoint(ctx context.Context, size int64) (string, error) {
	if h := a.head.Load(); h != nil && h.size >= size {
		return h.text, nil
	}
	return a.freshCheckpoint(ctx)
}

func (a *Authority) freshCheckpoint(ctx context.Context) (string, error) {
	var h head
	err := a.view(ctx, func(tx store.Tx) (err error) {
		if h.size, err = store.LogSize(tx); err != nil {
			return err
		}
		if old := a.head.Load(); old != nil && old.size == h.size {
			h.text, h.at = old.text, old.at
			return nil
		}
		h.at = a.clock()
		h.text, err = audit.SignCheckpoint(h.size, &logStorage{Tx: tx}, a.signer)
		return err
	})
	if err != nil {
		return "", err
	}
	for {
		old := a.head.Load()
		if old != nil && old.size >= h.size || a.head.CompareAndSwap(old, &h) {
			return h.text, nil
		}
	}
}

// head is a signed checkpoint, the size that it covers, and when it was signed.
type head struct {
	size int64
	text string
	at   time.Time
}

// LatestCheckpoint signs the log as it is now.
func (a *Authority) LatestCheckpoint(ctx context.Context) (string, error) {
	return a.freshCheckpoint(ctx)
}

// Consistency proves that the log of size newer extends that of size older.
func (a *Authority) Consistency(ctx context.Context, older, newer int64) (p audit.Consistency, err error) {
	err = a.view(ctx, func(tx store.Tx) error {
		size, err := store.LogSize(tx)
		if err != nil {
			return err
		}
		if older < 1 || older > newer || newer > size {
			return problem(400, "No such proof", fmt.Sprintf("The log has %d records.", size), "Ask with 0 < old <= new <= size.")
		}
		p, err = audit.ProveConsistency(older, newer, &logStorage{Tx: tx})
		return err
	})
	return p, err
}

// Records reads a page of the log. A person sees all of it, as in an export,
// an agent what concerns itself.
func (a *Authority) Records(ctx context.Context, by Actor, f store.LogFilter) ([]audit.Record, int64, error) {
	if !by.Known() && by.Means != Management {
		return nil, 0, errUnauthenticated()
	}
	if by.Agent() {
		f.Party, f.Since = by.Principal.Email, by.Principal.Created
	}
	if f.Limit <= 0 || f.Limit > 1000 {
		f.Limit = 100
	}
	var out []audit.Record
	var size int64
	err := a.view(ctx, func(tx store.Tx) error {
		var err error
		if size, err = store.LogSize(tx); err != nil {
			return err
		}
		rows, err := store.LogRecords(tx, f)
		for _, r := range rows {
			out = append(out, auditRecord(r))
		}
		return err
	})
	return out, size, err
}

func auditRecord(r store.LogRecord) audit.Record {
	rec := audit.Record{Index: r.Index, Type: r.Type, Time: r.Time, Salt: r.Salt, Body: r.Body}
	copy(rec.Leaf[:], r.Leaf)
	return rec
}

// Export calls yield for every record up to the checkpoint that it returns.
// Only a person or the management token may take the whole log away.
func (a *Authority) Export(ctx context.Context, by Actor, yield func(audit.Record) error) (checkpoint string, err error) {
	if !by.Person() && by.Means != Management {
		return "", problem(403, "Only a person may export the log", "", "Log in as a person: vogt login.")
	}
	if checkpoint, err = a.freshCheckpoint(ctx); err != nil {
		return "", err
	}
	head, err := audit.OpenCheckpoint(checkpoint, a.verifier)
	if err != nil {
		return "", err
	}
	const page = 500
	for next := int64(0); next < head.Size; {
		var rows []store.LogRecord
		err := a.view(ctx, func(tx store.Tx) (err error) {
			rows, err = store.LogRecords(tx, store.LogFilter{After: next - 1, Limit: page})
			return err
		})
		if err != nil {
			return "", err
		}
		if len(rows) == 0 {
			return "", errMissing(next)
		}
		for _, r := range rows {
			if next == head.Size {
				break
			}
			if r.Index != next {
				return "", errMissing(next)
			}
			if err := yield(auditRecord(r)); err != nil {
				return "", err
			}
			next++
		}
	}
	return checkpoint, nil
}

func errMissing(index int64) *Error {
	return damaged(fmt.Errorf("record %d is missing from the log: %w", index, store.ErrCorrupt),
		fmt.Sprintf("record %d is missing from the log.", index))
}

// damaged tells whoever may read it what is wrong with the data.
func damaged(cause error, detail string) *Error {
	return problem(500, "The authority's data is damaged", detail,
		"The owner stops vogtd, keeps a copy of the data folder, and restores the last backup.").caused(cause)
}

// Receipt proves the decision on a grant to a party of it.
func (a *Authority) Receipt(ctx context.Context, by Actor, id string) (*api.Receipt, error) {
	var r *api.Receipt
	var index int64
	err := a.view(ctx, func(tx store.Tx) error {
		g, err := store.GrantByID(tx, id)
		if err != nil || !by.party(g, a.now()) {
			return errNoGrant(orNotFound(err))
		}
		if g.Decision == nil {
			return problem(400, "Nobody has decided this yet", "", "").kind("grant_not_approved")
		}
		if index, err = store.DecisionRecord(tx, id); err != nil {
			return err
		}
		r, err = a.receiptOf(tx, g, index)
		return err
	})
	if err != nil {
		return nil, err
	}
	if r.Checkpoint, err = a.Checkpoint(ctx, index+1); err != nil {
		return nil, err
	}
	head, err := audit.OpenCheckpoint(r.Checkpoint, a.verifier)
	if err != nil {
		return nil, err
	}
	err = a.view(ctx, func(tx store.Tx) error {
		p, err := audit.ProveInclusion(index, head.Size, &logStorage{Tx: tx})
		if err != nil {
			return err
		}
		r.Proof, err = json.Marshal(p)
		return err
	})
	return r, err
}

// receiptOf fills what is known without a proof.
func (a *Authority) receiptOf(tx store.Tx, g grant.Grant, index int64) (*api.Receipt, error) {
	s, err := a.decidedStatement(tx, g, index)
	if err != nil {
		return nil, err
	}
	return receiptWith(tx, g, index, s)
}

// receiptWith is receiptOf where the statement has been read already.
func receiptWith(tx store.Tx, g grant.Grant, index int64, s statement.Statement) (*api.Receipt, error) {
	d := g.Decision
	r := &api.Receipt{
		GrantID: g.ID, Statement: s, Digest: d.Digest, DecidedBy: d.By, DecidedAt: d.At.Seconds(),
		Strength: d.Strength, Evidence: d.Evidence, Record: index, Standing: d.Standing,
		For: d.For, Deputy: d.Deputy,
	}
	if e := g.Endorsed; e != nil && g.Status != grant.Denied {
		r.First = &api.Approval{
			DecidedBy: e.By, DecidedAt: e.At.Seconds(), Strength: e.Strength, Evidence: e.Evidence, Record: e.Record, For: e.For, Deputy: e.Deputy,
		}
	}
	if d.Standing != "" {
		var err error
		if r.StandingRecord, err = store.StandingRecord(tx, d.Standing); err != nil {
			return nil, err
		}
	}
	if d.Policy != "" {
		p, err := store.PolicyByID(tx, d.Policy)
		if err != nil {
			return nil, err
		}
		r.Policy, r.PolicyRecord = p.ID, p.Record
	}
	r.Binding = g.Request.Binding()
	return r, nil
}

// decidedStatement is the statement as the log's record of the decision holds
// it: rebuilding it later could differ once keys have been rotated.
func (a *Authority) decidedStatement(tx store.Tx, g grant.Grant, index int64) (s statement.Statement, err error) {
	body, err := store.LogBody(tx, index)
	if ignoreNotFound(err) != nil {
		return s, err
	}
	return statementIn(body, g, index)
}

// statementIn reads the statement out of the body of the record of g's decision.
func statementIn(record []byte, g grant.Grant, index int64) (s statement.Statement, err error) {
	if record == nil {
		return s, problem(410, "The record of this decision was erased", "", "")
	}
	var body decisionRecord
	if err := json.Unmarshal(record, &body); err != nil {
		return s, fmt.Errorf("record %d: %v: %w", index, err, store.ErrCorrupt)
	}
	if err := json.Unmarshal(body.Statement, &s); err != nil {
		return s, fmt.Errorf("record %d: %v: %w", index, err, store.ErrCorrupt)
	}
	if s.Digest() != g.Decision.Digest || !strings.EqualFold(body.Grant, g.ID) {
		return s, fmt.Errorf("record %d does not match the decision on grant %s: %w", index, g.ID, store.ErrCorrupt)
	}
	return s, nil
}
