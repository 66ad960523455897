//go:build unix

package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"
	"testing"

	_ "modernc.org/sqlite" // the driver that reads a stopped vogtd's database

	"vogt/internal/api"
	"vogt/internal/audit"
	"vogt/internal/authoritytest"
	"vogt/internal/grant"
	"vogt/internal/store/sqlite"
	"vogt/internal/vogtdtest"
)

// entry is what the audit log alone says of one grant.
type entry struct {
	status grant.Status
	kind   grant.Type
	uses   int64
	ended  int64 // uses whose end is recorded
}

// ledger is the state of all grants as the audit log tells it. It is computed
// from the records and nothing else, so that it can be compared with what the
// database says.
type ledger struct {
	grants map[string]*entry
	uses   map[string]string // use to grant
	trusts map[string]int    // operation and subject
	panics int
}

// record is the union of the bodies that matter here.
type record struct {
	Grant     string     `json:"grant"`
	Verdict   string     `json:"verdict"`
	Answer    string     `json:"answer"`
	Type      grant.Type `json:"type"`
	Use       string     `json:"use"`
	N         int64      `json:"n"`
	Operation string     `json:"operation"`
	Subject   string     `json:"subject"`
	Was       string     `json:"was"`
	Why       string     `json:"why"`
	Epoch     uint64     `json:"epoch"`
}

func bodyOf(r audit.Record) (b record, err error) {
	if err := json.Unmarshal(r.Body, &b); err != nil {
		return b, fmt.Errorf("record %d (%s): %w", r.Index, r.Type, err)
	}
	return b, nil
}

// readLedger follows the log from its begin and fails the test at the first
// record that no sound authority could have written after those before it.
func readLedger(t testing.TB, records []audit.Record) *ledger {
	t.Helper()
	l := &ledger{grants: map[string]*entry{}, uses: map[string]string{}, trusts: map[string]int{}}
	for _, r := range records {
		b, err := bodyOf(r)
		if err == nil {
			err = l.apply(r.Type, b)
		}
		if err != nil {
			t.Fatalf("record %d, %s: %v: %s", r.Index, r.Type, err, r.Body)
		}
	}
	return l
}

func (l *ledger) apply(kind string, b record) error {
	e := l.grants[b.Grant]
	in := func(states ...grant.Status) error {
		for _, s := range states {
			if e != nil && e.status == s {
				return nil
			}
		}
		if e == nil {
			return fmt.Errorf("there is no such grant yet")
		}
		return fmt.Errorf("the grant is %s", e.status)
	}
	switch kind {
	case "request":
		switch b.Verdict {
		case "asked", "covered by a standing grant", "approved by a policy": // the latter's decisions follow
		default:
			return in(grant.Approved)
		}
		if e != nil {
			return fmt.Errorf("the grant exists")
		}
		l.grants[b.Grant] = &entry{status: grant.Pending}
	case "join":
		return in(grant.Pending)
	case "decision":
		if err := in(grant.Pending); err != nil {
			return err
		}
		e.status, e.kind = grant.Status(b.Answer), b.Type
	case "intent":
		if err := in(grant.Approved); err != nil {
			return err
		}
		if e.uses++; b.N != e.uses || l.uses[b.Use] != "" {
			return fmt.Errorf("it is use %d", e.uses)
		}
		l.uses[b.Use] = b.Grant
		if e.kind == grant.Once {
			e.status = grant.Used
		}
	case "outcome":
		if l.uses[b.Use] != b.Grant {
			return fmt.Errorf("nothing was started under this use")
		}
		e.ended++
	case "revoke":
		if err := in(grant.Pending, grant.Approved); err != nil {
			return err
		}
		e.status = grant.Revoked
	case "expiry":
		if err := in(grant.Pending, grant.Approved); err != nil {
			return err
		}
		e.status = grant.Expired
	case "trust":
		l.trusts[b.Operation+" "+b.Subject]++
	case "panic":
		l.panics++
	}
	return nil
}

// allGrants reads every grant that the person may see.
func allGrants(person *authoritytest.Principal) map[string]api.Grant {
	all := map[string]api.Grant{}
	for cursor := ""; ; {
		var page api.List
		person.Get(api.PathGrants + "?limit=100&cursor=" + url.QueryEscape(cursor)).Into(&page)
		for _, g := range page.Data {
			all[g.ID] = g
		}
		if !page.Pagination.HasMore {
			return all
		}
		cursor = *page.Pagination.Cursor
	}
}

// agree verifies the log and compares it with the grants of the one owner: no
// grant may be in a state that the log does not tell, nor the other way round.
func agree(t testing.TB, d *vogtdtest.Daemon, owner *authoritytest.Principal) (*ledger, map[string]api.Grant) {
	t.Helper()
	grants := allGrants(owner)
	l := readLedger(t, d.Records())
	for id, e := range l.grants {
		g, ok := grants[id]
		switch {
		case !ok:
			t.Errorf("grant %s is in the log but does not exist", id)
		case g.Status != e.status:
			t.Errorf("grant %s is %s, but by the log it is %s", id, g.Status, e.status)
		case g.Uses != e.uses:
			t.Errorf("grant %s was used %d times, but by the log %d times", id, g.Uses, e.uses)
		case e.kind == grant.Once && e.uses > 1:
			t.Errorf("grant %s permits one use and had %d", id, e.uses)
		}
	}
	for id := range grants {
		if l.grants[id] == nil {
			t.Errorf("grant %s exists, but the log does not know it", id)
		}
	}
	return l, grants
}

// query reads one number of the database of a vogtd that does not run.
func query(t testing.TB, home, text string) (n int) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(home, "data", sqlite.FileName)+"?mode=ro")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.QueryRowContext(context.Background(), text).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// settled stops vogtd and looks at what no call shows: as many intents have ended
// as the log has outcomes.
func settled(t testing.TB, d *vogtdtest.Daemon, l *ledger) {
	t.Helper()
	d.Stop()
	ended := 0
	for _, e := range l.grants {
		ended += int(e.ended)
	}
	if n := query(t, d.Home, `SELECT COUNT(*) FROM log_records WHERE type = 'intent'`); n != len(l.uses) {
		t.Errorf("there are %d intents, but the log tells of %d", n, len(l.uses))
	}
	if n := query(t, d.Home, `SELECT COUNT(*) FROM log_records WHERE ended <> 0`); n != ended {
		t.Errorf("%d uses have ended, but the log has %d outcomes", n, ended)
	}
	if n := query(t, d.Home, `SELECT COALESCE(SUM(uses), 0) FROM grants`); n != len(l.uses) {
		t.Errorf("the grants count %d uses, but the log has %d intents", n, len(l.uses))
	}
}
