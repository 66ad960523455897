package authority

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"vogt/internal/audit"
	"vogt/internal/grant"
	"vogt/internal/sshkey"
	"vogt/internal/statement"
	"vogt/internal/store"
)

// Card is a grant with all that its page shows.
type Card struct {
	Grant     grant.Grant
	Statement statement.Statement // that was answered, or that "once" would sign
	Agent     store.Principal
	Decider   store.Principal // zero while pending
	Revoker   store.Principal
	Outcome   *RunReport // of the last execution
	// Mandate is the appointment under which the reader would answer, nil for whoever
	// answers for themselves.
	Mandate *store.Deputy
	First   store.Principal // who was the first of two to allow it
}

// RunReport is how an execution ended, as the agent's machine reported it.
type RunReport struct {
	At       grant.Millis
	MS       int64
	ExitCode int
	Signal   string
	Error    string
}

// Card reads a grant for the person who answers it.
func (a *Authority) Card(ctx context.Context, by Actor, id string) (Card, error) {
	var c Card
	err := a.view(ctx, func(tx store.Tx) error {
		g, err := store.GrantByID(tx, id)
		if err != nil || !by.party(g, a.now()) {
			return errNoGrant(orNotFound(err))
		}
		c = Card{Grant: g.As(a.now()), Statement: a.statementOf(g, Reach{Type: grant.Once})}
		if c.Agent, err = store.PrincipalByEmail(tx, g.Request.Requester); err != nil {
			return err
		}
		if g.Decision != nil {
			index, err := store.DecisionRecord(tx, id)
			if err != nil {
				return err
			}
			if c.Statement, err = a.decidedStatement(tx, g, index); err != nil {
				return err
			}
			if c.Decider, err = named(tx, g.Decision.By); err != nil {
				return err
			}
		}
		_, c.Mandate, _ = by.decides(g, a.now())
		if g.Endorsed != nil {
			if c.First, err = named(tx, g.Endorsed.By); err != nil {
				return err
			}
		}
		if c.Revoker, err = named(tx, g.RevokedBy); err != nil {
			return err
		}
		c.Outcome, err = lastRun(tx, id)
		return err
	})
	return c, err
}

// named reads a principal that the log names, which may be none of ours.
func named(tx store.Tx, email string) (store.Principal, error) {
	if email == "" {
		return store.Principal{}, nil
	}
	p, err := store.PrincipalByEmail(tx, email)
	if ignoreNotFound(err) == nil && p.Email == "" {
		p.Email = email
	}
	return p, ignoreNotFound(err)
}

func lastRun(tx store.Tx, id string) (*RunReport, error) {
	rows, err := store.LogRecords(tx, store.LogFilter{Before: 1 << 62, GrantID: id, Type: recordOutcome, Limit: 1})
	if err != nil || len(rows) == 0 || rows[0].Body == nil {
		return nil, err
	}
	var o outcomeRecord
	if err := json.Unmarshal(rows[0].Body, &o); err != nil {
		return nil, fmt.Errorf("record %d: %v: %w", rows[0].Index, err, store.ErrCorrupt)
	}
	return &RunReport{At: grant.Millis(rows[0].Time), MS: o.MS, ExitCode: o.ExitCode, Signal: o.Signal, Error: o.Error}, nil
}

// Reaches are the answers that the page offers for g, narrowest first: once
// always offered, longer ones only where they are allowed at all.
//
// The second of two persons is offered what the first one allowed, and a deputy
// nothing that outlasts the appointment.
func (a *Authority) Reaches(g grant.Grant, mandate *store.Deputy) []Reach {
	if e := g.Endorsed; e != nil && g.Status == grant.Pending {
		return []Reach{{Type: e.Type, Until: e.Until}}
	}
	reaches := []Reach{{Type: grant.Once}}
	if !lasting(g) {
		return reaches
	}
	for _, r := range a.longer(g) {
		if mandate == nil || withinMandate(r, mandate) {
			reaches = append(reaches, r)
		}
	}
	return reaches
}

// longer are the answers for more than one execution.
func (a *Authority) longer(g grant.Grant) (reaches []Reach) {
	// Whole minutes, so that a page that is drawn again offers the same end.
	const minute = 60_000
	now := a.now() / minute * minute
	if g.Request.Connect != nil {
		// The box is bound, so that without an end it means: as long as that runs.
		reaches = append(reaches, Reach{Type: grant.Always})
		return append(reaches,
			Reach{Type: grant.Timed, Until: now + 61*minute},
			Reach{Type: grant.Timed, Until: now + 8*60*minute + minute})
	}
	return append(reaches,
		Reach{Type: grant.Timed, Until: now + 61*minute},
		Reach{Type: grant.Timed, Until: now + 8*60*minute + minute},
		Reach{Type: grant.Always})
}

// StatementOf is the statement that an approval of that reach would sign.
func (a *Authority) StatementOf(g grant.Grant, r Reach) statement.Statement {
	return a.statementOf(g, r)
}

// Inbox lists what waits for the person, oldest first, and counts all.
func (a *Authority) Inbox(ctx context.Context, by Actor, limit int) (rows []Card, total int, err error) {
	if !by.Person() {
		return nil, 0, errUnauthenticated()
	}
	err = a.view(ctx, func(tx store.Tx) error {
		f := store.Filter{
			Viewer: by.Principal.Email, Since: grant.Millis(by.Principal.Created), Status: grant.Pending,
			Limit: limit, OldFirst: true, Now: a.now(),
		}
		own, err := store.ListGrants(tx, f)
		if err != nil {
			return err
		}
		others, err := waitingFor(tx, by, f)
		if err != nil {
			return err
		}
		waiting := merged(f, own, others)
		for _, g := range waiting {
			agent, err := store.PrincipalByEmail(tx, g.Request.Requester)
			if err != nil {
				return err
			}
			rows = append(rows, Card{Grant: g, Agent: agent})
		}
		total = len(rows)
		if total == limit {
			total, err = store.CountPending(tx, f.Viewer, f.Since, f.Now)
			total += len(others)
		}
		return err
	})
	return rows, total, err
}

// Waiting counts the pending requests of one agent.
func (a *Authority) Waiting(ctx context.Context, agent string) (n int64, err error) {
	err = a.view(ctx, func(tx store.Tx) error {
		own, _, err := store.UsageOf(tx, agent, "")
		n = own.Pending
		return err
	})
	return n, err
}

// LogHead tells how long the log is and how far it is signed.
type LogHead struct {
	Size     int64
	Signed   int64     // records that the last checkpoint covers
	SignedAt time.Time // when that was signed; zero where none was since the start
}

// LogHead reads the head of the log as it stands.
func (a *Authority) LogHead(ctx context.Context) (out LogHead, err error) {
	err = a.view(ctx, func(tx store.Tx) (err error) {
		out.Size, err = store.LogSize(tx)
		return err
	})
	if h := a.head.Load(); h != nil {
		out.Signed, out.SignedAt = h.size, h.at
	}
	return out, err
}

// Entry is a record of the log with the principals that it names.
type Entry struct {
	audit.Record
	Party store.Principal // whom it concerns; zero for nobody
	By    store.Principal // who did it; zero for the authority itself
}

// Activity reads a page of the log for a person, newest first. Each principal
// is looked up once; one that does not exist has its address only, and the
// management token has [ManagementName] for one.
func (a *Authority) Activity(ctx context.Context, by Actor, f store.LogFilter) (out []Entry, err error) {
	if !by.Person() {
		return nil, errUnauthenticated()
	}
	err = a.view(ctx, func(tx store.Tx) error {
		rows, err := store.LogRecords(tx, f)
		known := map[string]store.Principal{}
		look := func(email string) (p store.Principal) {
			if p, seen := known[email]; seen || err != nil {
				return p
			}
			p, err = named(tx, email)
			known[email] = p
			return p
		}
		for _, r := range rows {
			e := Entry{Record: auditRecord(r), Party: look(r.Party)}
			if e.By = look(doer(r.Body)); err != nil {
				return err
			}
			out = append(out, e)
		}
		return err
	})
	return out, err
}

// doer is who did what a record's body tells of. An erased record tells
// nothing, and the source that a key came from is nobody.
func doer(body []byte) string {
	var told struct {
		By    string `json:"by"`
		Email string `json:"email"`
	}
	if len(body) > 0 && json.Unmarshal(body, &told) != nil {
		return ""
	}
	switch told.By {
	case "":
		return told.Email
	case sourceManagement:
		return ManagementName
	case sourceOwner, sourceTrust:
		return ""
	}
	return told.By
}

// NewSecret returns a fresh secret for a prepared change.
func (a *Authority) NewSecret() (string, error) { return a.randomHex(32) }

// Fingerprint is a stored key's SHA-256 as ssh-keygen(1) prints it.
func Fingerprint(k store.Key) string {
	public, err := sshkey.ParsePublic(k.PublicKey)
	if err != nil {
		return ""
	}
	return public.Fingerprint()
}
