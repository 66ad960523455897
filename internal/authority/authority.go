// Package authority is the service that decides over Vogt's data: who may ask,
// who may answer, what an answer permits, and that a permission is used once.
//
// It owns every rule about people, agents, grants, tokens and changes of
// trust, and writes each of them into the log in the same transaction. It
// leaves out how calls arrive (httpapi, pages), how bytes are stored (store),
// how the tree is built (audit) and what a command means (flow). It never
// executes anything.
package authority

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"sync/atomic"
	"time"

	"golang.org/x/mod/sumdb/note"

	"vogt/internal/catalog"
	"vogt/internal/detail"
	"vogt/internal/grant"
	"vogt/internal/passkey"
	"vogt/internal/reading"
	"vogt/internal/statement"
	"vogt/internal/store"
)

// Config is what an operator sets. New fills unset durations and limits with
// the defaults of DefaultConfig.
type Config struct {
	Issuer      string // address under which clients reach the authority, no trailing slash
	PagesOrigin string // scheme, host and port of the pages
	// Bearer is the highest risk that a person's stored token may permit;
	// Unrated, the zero value, permits none.
	Bearer detail.Risk
	// RequireSignature asks for a passkey or SSH signature from this risk
	// upwards; Unrated means from Critical.
	RequireSignature detail.Risk
	// SecondApprover asks for two different persons' yes from this risk upwards;
	// Unrated means never. SecondApproverAgents are the agents for which it is asked at
	// any risk.
	SecondApprover       detail.Risk
	SecondApproverAgents []string
	PendingTTL           time.Duration
	OnceTTL              time.Duration // from approval to use
	LoginTTL             time.Duration
	SessionTTL           time.Duration
	KeyLife              time.Duration // of a signing key before it is rotated
	Dormancy             time.Duration // of keys that did not come from the person
	Admins               []string      // people who have the admin role by configuration
	SelfRegistration     bool          // whoever can be reached by mail may make an account
	Limits               Limits
	Clients              []ClientMetadata // public OAuth clients besides the built-in one
	Allowed              []AllowedService // what domains' administrators allow besides the stored list
}

// Limits bound what one agent can occupy. An owner's agents together may hold
// OwnerFactor times as much.
type Limits struct {
	Pending     int64
	Bytes       int64   // of pending requests
	Creations   float64 // a second
	Waits       int
	OwnerFactor int64
}

// DefaultConfig returns the documented defaults for an issuer.
func DefaultConfig(issuer, pagesOrigin string) Config {
	return Config{
		Issuer: issuer, PagesOrigin: pagesOrigin,
		PendingTTL: 48 * time.Hour, OnceTTL: time.Hour, LoginTTL: 8 * time.Hour,
		SessionTTL: 7 * 24 * time.Hour, KeyLife: 90 * 24 * time.Hour, Dormancy: 72 * time.Hour,
		Limits: Limits{Pending: 30, Bytes: 8 << 20, Creations: 10, Waits: 4, OwnerFactor: 10},
	}
}

// Deps are the authority's surroundings. Clock and Random default to the
// system's; Pending, if set, is told of every request that waits for a person
// and must not block.
type Deps struct {
	DB      store.DB
	Clock   func() time.Time
	Random  io.Reader
	Log     *slog.Logger
	Pending func(grant.Grant)
	Reader  *reading.Reader // of requests; nil reads with the catalog that Vogt brings
	// Announce, if set, tells a person of something that others did to the
	// account, such as adding a key. It must not block.
	Announce func(email, text string)
	// Mail, if set, sends a letter. It must not block.
	Mail func(Letter)
	// Checkpointed, if set, is given the signed head of the log about once a
	// second while it grows, to be kept where a restored copy of the database
	// does not reach.
	Checkpointed func(text string)
	// Clients finds further OAuth clients, and Policies what mail domains decided
	// about them; nil knows none.
	Clients  ClientSource
	Policies PolicySource
	// Scopes tells what services let others do; nil lets nobody.
	Scopes ScopeSource
}

// Authority is safe for use by any number of goroutines.
type Authority struct {
	cfg      Config
	db       store.DB
	clock    func() time.Time
	random   io.Reader
	log      *slog.Logger
	pending  func(grant.Grant)
	announce func(email, text string)
	mail     func(Letter)
	errands  chan errand
	keep     func(string)
	passkeys *passkey.RelyingParty
	hub      *hub
	once     *ceremonies
	rates    *rates
	waits    *waits
	watches  *waits
	setup    setup
	trusts   signal
	logins   *logins
	patterns *patterns
	issued   *issued
	reader   *reading.Reader

	clients      map[string]ClientMetadata
	clientSource ClientSource
	policies     PolicySource
	scopes       ScopeSource
	consents     *ceremonies // questions of OAuth, apart from logins
	// trustVersion counts committed changes to who is trusted; see logins.
	trustVersion atomic.Uint64

	keys     atomic.Pointer[keyring]
	epoch    atomic.Uint64
	head     atomic.Pointer[head]
	scrubbed atomic.Int64 // records whose columns were compared, in this round
	damage   atomic.Pointer[string]
	signer   note.Signer
	verifier string // of the log, as clients pin it
}

// New opens the authority on a migrated database: it creates the log key, the
// first signing key and the first epoch where they are missing.
func New(ctx context.Context, cfg Config, deps Deps) (*Authority, error) {
	pages, err := url.Parse(cfg.PagesOrigin)
	if err != nil || pages.Host == "" {
		return nil, fmt.Errorf("pages origin %q is not an address", cfg.PagesOrigin)
	}
	clients, err := staticClients(cfg.Clients)
	if err != nil {
		return nil, err
	}
	rp, err := passkey.New(passkey.Config{RPID: pages.Hostname(), RPName: "Vogt", Origins: []string{cfg.PagesOrigin}, Now: deps.Clock, Rand: deps.Random})
	if err != nil {
		return nil, err
	}
	a := &Authority{
		cfg: cfg, db: deps.DB, clock: deps.Clock, random: deps.Random, log: deps.Log, pending: deps.Pending, announce: deps.Announce, keep: deps.Checkpointed,
		passkeys: rp, hub: newHub(), once: newCeremonies(), rates: newRates(cfg.Limits), waits: newWaits(cfg.Limits.Waits), watches: newWaits(maxWatches), logins: newLogins(), patterns: newPatterns(), issued: newIssued(),
		reader: deps.Reader, mail: deps.Mail, errands: make(chan errand, maxErrands),
		clients: clients, clientSource: deps.Clients, policies: deps.Policies, scopes: deps.Scopes, consents: newCeremonies(),
	}
	if a.reader == nil {
		a.reader = reading.New(catalog.New())
	}
	if a.clock == nil {
		a.clock = time.Now
	}
	if a.random == nil {
		a.random = rand.Reader
	}
	if a.log == nil {
		a.log = slog.New(slog.DiscardHandler)
	}
	if err := a.openLog(ctx); err != nil {
		return nil, err
	}
	if err := a.openKeys(ctx); err != nil {
		return nil, err
	}
	return a, nil
}

// Config returns what the authority was configured with.
func (a *Authority) Config() Config { return a.cfg }

// Epoch is the current epoch of the data, from 1.
func (a *Authority) Epoch() uint64 { return a.epoch.Load() }

// LogKey is the verifier key of the log in the form of package note.
func (a *Authority) LogKey() string { return a.verifier }

// Now is the authority's time.
func (a *Authority) Now() time.Time { return a.clock() }

func (a *Authority) now() grant.Millis { return grant.At(a.clock()) }

// Run keeps the data tidy until ctx ends: it writes expiries down, rotates
// signing keys and deletes what has run out.
func (a *Authority) Run(ctx context.Context) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var kept string
	for n := 0; ; {
		select {
		case <-ctx.Done():
			// What was acknowledged until now is what a restored copy must
			// be measured against.
			if _, err := a.publishHead(context.WithoutCancel(ctx), kept); err != nil {
				a.log.Warn("the last checkpoint could not be kept", "err", err)
			}
			return ctx.Err()
		case e := <-a.errands:
			a.runErrand(ctx, e)
			continue
		case <-tick.C:
		}
		err := a.expire(ctx)
		if err == nil {
			kept, err = a.publishHead(ctx, kept)
		}
		if err == nil && n%60 == 0 {
			err = a.tidy(ctx)
		}
		n++
		if err != nil && ctx.Err() == nil {
			a.log.Error("housekeeping failed; it is tried again", "err", err)
		}
	}
}

// expire writes down what has run out, so that lists, the log and waiting
// clients agree.
func (a *Authority) expire(ctx context.Context) error {
	const batch = 200
	var due int
	err := a.db.View(ctx, func(tx store.Tx) error {
		ended, err := store.EndedGrants(tx, int64(a.now()), 1)
		due = len(ended)
		return err
	})
	if err != nil || due == 0 {
		return err
	}
	// In pieces, so that nobody waits for all of them, and until none is left: what
	// ends faster than once a second must not pile up.
	for due = batch; due == batch && ctx.Err() == nil; {
		err := a.update(ctx, func(t *txn) error {
			ended, err := store.EndedGrants(t, int64(t.now), batch)
			due = len(ended)
			for i := 0; err == nil && i < due; i++ {
				err = t.lapse(ended[i], "time")
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// publishHead signs the log as it is now, unless a call has done so already, and
// has it kept if it differs from kept. It returns what is kept now.
func (a *Authority) publishHead(ctx context.Context, kept string) (string, error) {
	text, err := a.freshCheckpoint(ctx)
	if err != nil || text == kept {
		return kept, err
	}
	if a.keep != nil {
		a.keep(text)
	}
	return text, nil
}

func (a *Authority) tidy(ctx context.Context) error {
	a.once.sweep(a.clock())
	a.consents.sweep(a.clock())
	a.rates.sweep()
	if err := a.scrub(ctx); err != nil {
		return err
	}
	if err := a.update(ctx, func(t *txn) error { return store.Sweep(t, int64(t.now)) }); err != nil {
		return err
	}
	if err := a.lapseStanding(ctx); err != nil {
		return err
	}
	return a.rotateIfDue(ctx)
}

// txn is one update of the authority: a store transaction, its time, and what
// is told to others once it is durable.
type txn struct {
	store.Tx
	a    *Authority
	now  grant.Millis
	size *int64 // of the log, once it is known
}

// update runs fn in one durable transaction.
func (a *Authority) update(ctx context.Context, fn func(*txn) error) error {
	return a.wrap(a.db.Update(ctx, func(tx store.Tx) error {
		return fn(&txn{Tx: tx, a: a, now: a.now()})
	}))
}

// narrow is update for what must work on a full disk: deny, revoke, pause.
func (a *Authority) narrow(ctx context.Context, fn func(*txn) error) error {
	db, ok := a.db.(store.Reserved)
	if !ok {
		return a.update(ctx, fn)
	}
	return a.wrap(db.UpdateReserved(ctx, func(tx store.Tx) error {
		return fn(&txn{Tx: tx, a: a, now: a.now()})
	}))
}

func (a *Authority) view(ctx context.Context, fn func(store.Tx) error) error {
	return a.wrap(a.db.View(ctx, fn))
}

// wrap turns the store's errors into ones that a caller may read.
func (a *Authority) wrap(err error) error {
	var public *Error
	var oauth *OAuthError
	switch {
	case err == nil, errors.As(err, &public), errors.As(err, &oauth):
		return err
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, store.ErrFull):
		return problem(507, "The authority's disk is full", "Nothing was recorded, so nothing runs.",
			"Free space on the authority's disk. Deny, revoke and pause still work.").caused(err)
	case errors.Is(err, store.ErrConflict):
		return problem(409, "Somebody else was faster", "The data changed while the call ran; nothing was done.",
			"Read it again and decide anew.").caused(err)
	case errors.Is(err, store.ErrReadOnly), errors.Is(err, store.ErrLocked), errors.Is(err, store.ErrFenced),
		errors.Is(err, store.ErrClosed), errors.Is(err, store.ErrIO):
		return problem(503, "The authority cannot write its records", "Nothing was recorded, so nothing runs.",
			"The owner finds the cause with `vogt doctor` and in the authority's log file.").caused(err)
	}
	a.log.Error("internal error", "err", err)
	if errors.Is(err, store.ErrCorrupt) {
		return damaged(err, "Nothing was decided.")
	}
	return problem(500, "The authority failed", "Nothing was decided.", "The authority's log file has the cause.").caused(err)
}

// swap stores the next state of a grant and tells those who wait for it.
func (t *txn) swap(next grant.Grant) error { return t.swapDecided(next, store.NoRecord) }

// swapDecided is swap with the index of the record that holds the decision.
func (t *txn) swapDecided(next grant.Grant, record int64) error {
	if err := store.SwapGrant(t, next, record, t.a.db.Fence()); err != nil {
		return err
	}
	t.OnCommit(func() { t.a.hub.publish(next) })
	return nil
}

// lapse ends a grant whose time, or epoch, is over.
func (t *txn) lapse(g grant.Grant, why string) error {
	next, err := g.Apply(grant.Lapse{At: t.now})
	if err != nil {
		return err
	}
	if err := t.swap(next); err != nil {
		return err
	}
	_, err = t.record(recordExpiry, g.ID, g.Request.Requester, expiryRecord{Grant: g.ID, Was: string(g.Status), Why: why})
	return err
}

// randomHex returns n random bytes as lower-case hex.
func (a *Authority) randomHex(n int) (string, error) {
	b := make([]byte, n)
	if _, err := io.ReadFull(a.random, b); err != nil {
		return "", fmt.Errorf("reading randomness: %w", err)
	}
	return hex.EncodeToString(b), nil
}

// newID returns a UUID version 4 (RFC 9562).
func (a *Authority) newID() (string, error) {
	var b [16]byte
	if _, err := io.ReadFull(a.random, b[:]); err != nil {
		return "", fmt.Errorf("reading randomness: %w", err)
	}
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	h := hex.EncodeToString(b[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:], nil
}

// Error is an answer that the caller may read. The cause stays in the log.
type Error struct {
	Status int    // HTTP status
	Kind   string // last part of the problem type's URI, or ""
	Title  string
	Detail string
	Hint   string // who can change it and how
	Retry  int    // seconds, for 429
	cause  error
}

func (e *Error) Error() string {
	if e.Detail == "" {
		return e.Title
	}
	return e.Title + ": " + e.Detail
}

// Unwrap gives the operator's side of the error.
func (e *Error) Unwrap() error { return e.cause }

func (e *Error) caused(err error) *Error { e.cause = err; return e }

func (e *Error) kind(k string) *Error { e.Kind = k; return e }

func problem(status int, title, detail, hint string) *Error {
	return &Error{Status: status, Title: title, Detail: detail, Hint: hint}
}

// checkedDigest compares a digest from outside with the authority's own.
func checkedDigest(got *statement.Digest, want statement.Digest) error {
	if got == nil {
		return problem(400, "The digest of what was shown is missing", "",
			"Read the grant's statement, compute its digest and send it with the answer.")
	}
	if *got != want {
		return problem(409, "The request changed after you opened it", "Nothing was allowed.",
			"Open it again and decide on what it says now.").kind("statement_changed")
	}
	return nil
}
