package authority

import (
	"context"
	"sync"

	"vogt/internal/coverage"
	"vogt/internal/flow"
	"vogt/internal/grant"
	"vogt/internal/store"
)

// maxKept bounds the patterns that are kept decoded, of all owners together: a
// few tens of megabytes. What is not kept is read again.
const maxKept = 20_000

// patterns keeps the patterns in force of those owners whose agents ask, decoded
// and indexed, since decoding two thousand takes far longer than deciding.
//
// Nothing is decided by what is kept. An entry counts only for the number that
// [store.StandingVersion] has in the transaction that asks, which no other state
// ever had: neither an update that failed after others saw it, nor one that
// shares a commit and has not ended, can be taken for it. And it only says which
// rows may cover a request; those are read again in that transaction, and
// they alone decide (txn.judgeStanding). A change that somebody forgets to give
// a number can thus make the authority ask, never allow.
type patterns struct {
	mu     sync.Mutex
	owners map[string]*ownerPatterns
	kept   int    // patterns, of all owners
	clock  uint64 // counts looks, for the age of entries
}

// ownerPatterns are one owner's. But for used they do not change.
type ownerPatterns struct {
	version    int64
	index      *coverage.Index
	generation map[*grant.Standing]uint64 // the owner's when each was signed
	used       uint64
}

func newPatterns() *patterns { return &patterns{owners: make(map[string]*ownerPatterns)} }

// of returns an owner's patterns as they stand in tx.
func (c *patterns) of(tx store.Tx, owner string) (*ownerPatterns, error) {
	version, err := store.StandingVersion(tx, owner)
	if err != nil {
		return nil, err
	}
	if o := c.get(owner, version); o != nil {
		return o, nil
	}
	rows, err := store.StandingInForce(tx, owner)
	if err != nil {
		return nil, err
	}
	o := &ownerPatterns{version: version, generation: make(map[*grant.Standing]uint64, len(rows))}
	all := make([]*grant.Standing, len(rows))
	for i := range rows {
		all[i] = &rows[i].Standing
		o.generation[all[i]] = rows[i].Generation
	}
	o.index = coverage.NewIndex(all)
	c.put(owner, o)
	return o, nil
}

func (c *patterns) get(owner string, version int64) *ownerPatterns {
	c.mu.Lock()
	defer c.mu.Unlock()
	o := c.owners[owner]
	if o == nil || o.version != version {
		return nil
	}
	c.clock++
	o.used = c.clock
	return o
}

func (c *patterns) put(owner string, o *ownerPatterns) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(owner)
	for c.kept+o.size() > maxKept && len(c.owners) > 0 {
		oldest := ""
		for name, other := range c.owners {
			if oldest == "" || other.used < c.owners[oldest].used {
				oldest = name
			}
		}
		c.drop(oldest)
	}
	c.clock++
	o.used = c.clock
	c.owners[owner] = o
	c.kept += o.size()
}

// forget has the next look read an owner's patterns again.
func (c *patterns) forget(owner string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(owner)
}

func (c *patterns) drop(owner string) {
	if o := c.owners[owner]; o != nil {
		c.kept -= o.size()
		delete(c.owners, owner)
	}
}

// size counts an owner without patterns, too: what is kept of that has a size.
func (o *ownerPatterns) size() int { return 1 + len(o.index.All()) }

// asker is an agent whose request may be covered, and where it asks from.
type asker struct {
	agent, owner store.Principal
	machine      string
	audience     string
	groups       []string // that the agent is in
	unsafe       bool     // the owner has switched the safe commands off
	programs     []string // of the request
}

// askerOf finds out whose patterns may cover a request; ok is false for nobody's.
func askerOf(tx store.Tx, p store.Principal, read flow.Reading, req grant.Request) (who asker, ok bool, err error) {
	if p.Kind != kindAgent || p.Owner == "" {
		return who, false, nil
	}
	owner, err := store.PrincipalByEmail(tx, p.Owner)
	if err != nil || !usable(owner) {
		return who, false, ignoreNotFound(err)
	}
	who = asker{agent: p, owner: owner, machine: req.Host, audience: req.Audience, programs: programs(read)}
	if who.unsafe, err = store.SafeOff(tx, p.Owner); err != nil {
		return who, false, err
	}
	if who.groups, err = store.GroupsOf(tx, p.Owner, p.Email); err != nil {
		return who, false, err
	}
	return who, len(who.programs) <= maxPrograms, nil
}

// concerns reports whether a pattern that was signed under that generation of
// its author is about the asker's request at all.
func (who *asker) concerns(s *grant.Standing, generation uint64) bool {
	switch {
	case generation != who.owner.Generation || !s.For(who.agent.Email, who.agent.Owner, who.groups, who.machine, who.audience):
		return false
	case who.unsafe && s.Pattern.Class == grant.ClassSafe:
		return false
	case s.Pattern.Agent == who.agent.Email && int64(s.Created) < who.agent.Created:
		return false // another agent had this address when the pattern was signed
	case len(s.Pattern.Programs) == 0:
		return true
	}
	for _, program := range who.programs {
		for _, named := range s.Pattern.Programs {
			if program == named {
				return true
			}
		}
	}
	return false
}

// candidates are the standing grants that may cover a request of this agent, as
// far as they are kept: they decide nothing.
func (who *asker) candidates(o *ownerPatterns, among []*grant.Standing) (out []*grant.Standing) {
	for _, s := range among {
		if who.concerns(s, o.generation[s]) {
			out = append(out, s)
		}
	}
	return out
}

// judgeStanding says what becomes of a request that nobody has answered before.
func (t *txn) judgeStanding(p store.Principal, g grant.Grant, read flow.Reading, asked flow.Verdict) (flow.Verdict, error) {
	// A pattern is one person's word.
	if asked.Outcome != flow.Ask || !read.Coverable() || g.TwoPersons() {
		return asked, nil
	}
	who, ok, err := askerOf(t, p, read, g.Request)
	if err != nil || !ok {
		return asked, err
	}
	where := flow.WhereOf(g.Request)
	if where.Labels, err = labelsOf(t, p.Email); err != nil {
		return asked, err
	}
	calls := read.Covered()
	judge := func(among []*grant.Standing) flow.Verdict {
		return flow.JudgeStanding(read, asked, among, where, t.now)
	}
	// Twice at most: what was just read cannot be out of date.
	for range 2 {
		kept, err := t.a.patterns.of(t, who.owner.Email)
		if err != nil {
			return asked, err
		}
		verdict := judge(who.candidates(kept, kept.index.For(calls, where)))
		if verdict.Outcome != flow.Allow {
			return verdict, nil
		}
		current := make([]*grant.Standing, 0, len(verdict.Standing))
		for _, s := range verdict.Standing {
			row, err := store.StandingByID(t, s.ID)
			if err != nil {
				return asked, err
			}
			if who.concerns(&row.Standing, row.Generation) {
				current = append(current, &row.Standing)
			}
		}
		if verdict = judge(current); verdict.Outcome == flow.Allow {
			return verdict, nil
		}
		// One of them has been used up since it was read.
		t.a.patterns.forget(who.owner.Email)
	}
	return asked, nil
}

// lapseStanding takes patterns whose time has run out from where requests look,
// a few at a time, so that nobody waits for all of them.
func (a *Authority) lapseStanding(ctx context.Context) error {
	const batch = 100
	for n := batch; n == batch; {
		err := a.update(ctx, func(t *txn) (err error) {
			n, err = store.LapseStanding(t, int64(t.now), batch)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
