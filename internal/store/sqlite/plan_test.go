package sqlite

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"vogt/internal/grant"
	"vogt/internal/store"
)

// watched notes the statements that a typed query runs.
type watched struct {
	store.Tx
	run []string
}

func (w *watched) Query(query string, args ...any) (store.Rows, error) {
	w.run = append(w.run, query)
	return w.Tx.Query(query, args...)
}

func (w *watched) QueryRow(query string, args ...any) store.Row {
	w.run = append(w.run, query)
	return w.Tx.QueryRow(query, args...)
}

func (w *watched) Exec(query string, args ...any) (int64, error) {
	w.run = append(w.run, query)
	return w.Tx.Exec(query, args...)
}

// TestPlans: no query that a call makes reads more rows than it answers with,
// whatever is stored. Each names the indexes that it may use and the columns by
// which they are searched; a list's parts are in the order of the page already.
func TestPlans(t *testing.T) {
	db := open(t, Options{Dir: t.TempDir(), Migrations: store.Migrations()})
	list := func(f store.Filter) func(store.Tx) error {
		f.Viewer, f.Limit, f.Now = "me@example.com", 21, 1000
		return func(tx store.Tx) error { _, err := store.ListGrants(tx, f); return err }
	}
	log := func(f store.LogFilter) func(store.Tx) error {
		f.Limit = 20
		return func(tx store.Tx) error { _, err := store.LogRecords(tx, f); return err }
	}
	const (
		page       = ` AND (created,id)<(?,?))` // or > where the oldest come first
		requester  = `grants_requester (requester=?` + page
		owner      = `grants_owner (owner=?` + page
		approver   = `grants_approver (approver=?` + page
		requesterS = `grants_requester_status (requester=? AND status=?` + page
		ownerS     = `grants_owner_status (owner=? AND status=?` + page
		approverS  = `grants_approver_status (approver=? AND status=?` + page
		ends       = `grants_ends (valid_until>? AND valid_until<?)`
	)
	for _, test := range []struct {
		name string
		run  func(store.Tx) error
		want []string
	}{
		{"list", list(store.Filter{}), []string{requester, owner, approver}},
		{"list since", list(store.Filter{Since: 5}), []string{requester, owner, approver}},
		{"list pending since", list(store.Filter{Since: 5, Status: grant.Pending}), []string{requesterS, ownerS, approverS}},
		{"list expired since", list(store.Filter{Since: 5, Status: grant.Expired}), []string{requesterS, ownerS, approverS, ends}},
		{"list of one since", list(store.Filter{Since: 5, Requester: "bot@example.com", Status: grant.Used}), []string{requesterS}},
		{"a later page since", list(store.Filter{Since: 5, Before: 9, BeforeID: "x", Status: grant.Approved}), []string{requesterS, ownerS, approverS}},
		{"list, another page", list(store.Filter{Before: 5, BeforeID: "x"}), []string{requester, owner, approver}},
		{"list of an agent", list(store.Filter{Agent: true}), []string{requester}},
		{"list of an agent, approved", list(store.Filter{Agent: true, Status: grant.Approved}), []string{requesterS}},
		{"list approved", list(store.Filter{Status: grant.Approved}), []string{requesterS, ownerS, approverS}},
		{"list used", list(store.Filter{Status: grant.Used}), []string{requesterS, ownerS, approverS}},
		{"list expired", list(store.Filter{Status: grant.Expired}), []string{requesterS, ownerS, approverS, ends}},
		{"list active", list(store.Filter{Statuses: []grant.Status{grant.Pending, grant.Approved}}), []string{requesterS, ownerS, approverS}},
		{"list of one agent", list(store.Filter{Requester: "bot@example.com"}), []string{requester}},
		{"list of one agent, denied", list(store.Filter{Requester: "bot@example.com", Status: grant.Denied}), []string{requesterS}},
		{"list as approver", list(store.Filter{Role: store.AsApprover, Status: grant.Pending}), []string{approverS}},
		{"list as owner", list(store.Filter{Role: store.AsOwner}), []string{owner}},
		{"inbox", list(store.Filter{Status: grant.Pending, OldFirst: true, Since: 5}), []string{requesterS, ownerS, approverS}},
		{"log of a grant", log(store.LogFilter{Before: 1 << 62, GrantID: "g", Type: "outcome"}), []string{`log_records_grant (grant_id=? AND idx<?)`}},
		{"log of an agent", log(store.LogFilter{After: -1, Party: "bot@example.com", Since: 5}), []string{`log_records_party (party=? AND idx>?)`}},
		{"log", log(store.LogFilter{Before: 50}), []string{`INTEGER PRIMARY KEY (rowid<?)`}},
		{"ended", func(tx store.Tx) error { _, err := store.EndedGrants(tx, 5, 100); return err }, []string{ends}},
		{"short", func(tx store.Tx) error { _, err := store.ShortGrants(tx); return err }, nil},
		{"open of a requester", func(tx store.Tx) error { _, err := store.OpenGrantsOf(tx, "bot@example.com"); return err }, []string{`grants_requester_status (requester=? AND status=?)`}},
		{"waiting", func(tx store.Tx) error { _, err := store.CountPending(tx, "me@example.com", 5, 10); return err },
			[]string{`grants_owner_status (owner=? AND status=? AND created>?)`, `grants_approver_status (approver=? AND status=? AND created>?)`}},
		{"quota", func(tx store.Tx) error {
			_, _, err := store.UsageOf(tx, "bot@example.com", "me@example.com")
			return err
		},
			[]string{`grants_pending_requester (requester=?)`, `grants_pending_owner (owner=?)`}},
		{"derived", func(tx store.Tx) error { _, err := store.DerivedGrants(tx, "s"); return err },
			[]string{`sqlite_autoindex_grants_1 (id=?)`, `PRIMARY KEY (standing=?)`}},
		{"in force", func(tx store.Tx) error { _, err := store.StandingInForce(tx, "me@example.com"); return err },
			[]string{`PRIMARY KEY (id=?)`, `PRIMARY KEY (author=?)`}},
		{"uses in an hour", func(tx store.Tx) error { _, err := store.StandingUsesReach(tx, "s", 5, 60, true); return err },
			[]string{`standing_uses_deletes (standing=? AND deletes=? AND at>?)`}},
		{"lapsed patterns", func(tx store.Tx) error { _, err := store.LapseStanding(tx, 5, 10); return err }, []string{`standing_grants_ends (valid_until<?)`}},
		{"sweep", func(tx store.Tx) error { return store.Sweep(tx, 5) }, nil},
	} {
		plan := plans(t, db, test.run)
		var used []string
		for _, line := range plan {
			// The index for reuse holds open grants only.
			if scans.MatchString(line) && !strings.Contains(line, "USING INDEX grants_reuse") {
				t.Errorf("%s: %s\n%s", test.name, line, strings.Join(plan, "\n"))
			}
			if m := searches.FindStringSubmatch(line); m != nil {
				used = append(used, strings.ReplaceAll(m[1], "(created,id)>", "(created,id)<"))
			}
		}
		slices.Sort(used)
		slices.Sort(test.want)
		if used = slices.Compact(used); test.want != nil && !slices.Equal(used, test.want) {
			t.Errorf("%s: searches\n%s\nwant\n%s", test.name, strings.Join(used, "\n"), strings.Join(test.want, "\n"))
		}
	}
}

var (
	scans    = regexp.MustCompile(`^SCAN (grants|log_records|log_hashes|uses|standing\w*|tokens|trust_requests|principals)\b`)
	searches = regexp.MustCompile(`^SEARCH \w+ USING (?:COVERING )?(?:INDEX )?(.*)$`)
)

// plans are the lines of SQLite's plan for each statement that run makes.
func plans(t *testing.T, db *DB, run func(store.Tx) error) (out []string) {
	t.Helper()
	err := db.Update(t.Context(), func(tx store.Tx) error {
		w := &watched{Tx: tx}
		if err := run(w); err != nil {
			return err
		}
		for _, query := range w.run {
			args := make([]any, strings.Count(query, "?"))
			rows, err := tx.Query(`EXPLAIN QUERY PLAN `+query, args[:highest(query)]...)
			if err != nil {
				return fmt.Errorf("%s: %w", query, err)
			}
			for rows.Next() {
				var id, parent, unused int
				var line string
				if err := rows.Scan(&id, &parent, &unused, &line); err != nil {
					return err
				}
				out = append(out, line)
			}
			if err := rows.Close(); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// highest is the highest number of a placeholder in a query.
func highest(query string) (n int) {
	for _, m := range regexp.MustCompile(`\?(\d+)`).FindAllStringSubmatch(query, -1) {
		var v int
		_, _ = fmt.Sscan(m[1], &v)
		n = max(n, v)
	}
	return n
}
