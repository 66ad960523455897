package authority_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"vogt/internal/api"
	"vogt/internal/authority"
	"vogt/internal/authoritytest"
	"vogt/internal/store"
	"vogt/internal/store/sqlite"
)

// change runs one statement on the database behind the authority's back.
func change(t *testing.T, db store.DB, query string, args ...any) {
	t.Helper()
	err := db.Update(ctx, func(tx store.Tx) error {
		n, err := tx.Exec(query, args...)
		if err == nil && n == 0 {
			err = fmt.Errorf("%s changed nothing", query)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestShortLog: a log that has lost its end does not start, and says which
// record is missing.
func TestShortLog(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		damage []string
		want   string
	}{
		"untouched":               {nil, ""},
		"the last record":         {[]string{`DELETE FROM log_records WHERE idx = 1`}, "record 1 is missing"},
		"all records":             {[]string{`DELETE FROM log_records`}, "record 0 is missing"},
		"the last node":           {[]string{`DELETE FROM log_hashes WHERE idx = (SELECT MAX(idx) FROM log_hashes)`}, "node 2 of 3 is missing"},
		"the tree":                {[]string{`DELETE FROM log_hashes`}, "node 0 of 3 is missing"},
		"a node within":           {[]string{`UPDATE log_hashes SET hash = x'00' WHERE idx = 2`}, "node 2"},
		"a node that is not last": {[]string{`INSERT INTO log_hashes (idx, hash) VALUES (7, x'00')`}, "record 2 is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, err := sqlite.Open(ctx, sqlite.Options{Dir: t.TempDir(), Migrations: store.Migrations(), Ballast: -1})
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			open := func() error {
				_, err := authority.New(ctx, authority.DefaultConfig("http://127.0.0.1:1", "http://vogt.localhost:1"), authority.Deps{DB: db})
				return err
			}
			if err := open(); err != nil {
				t.Fatal(err)
			}
			for _, query := range test.damage {
				change(t, db, query)
			}
			switch err := open(); {
			case test.want == "":
				if err != nil {
					t.Errorf("an untouched log: %v", err)
				}
			case !errors.Is(err, store.ErrCorrupt) || !strings.Contains(err.Error(), test.want):
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

// TestMisfiled: what makes a record findable is compared with what the record
// says, also after a restart, and a change is told to whoever asks for health.
func TestMisfiled(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ damage, repair, want string }{
		"hidden from its grant":    {`UPDATE log_records SET grant_id = '' WHERE type = 'request'`, `UPDATE log_records SET grant_id = (SELECT id FROM grants) WHERE type = 'request'`, "filed under"},
		"filed under another":      {`UPDATE log_records SET grant_id = 'other' WHERE type = 'decision'`, `UPDATE log_records SET grant_id = (SELECT id FROM grants) WHERE type = 'decision'`, "other"},
		"hidden from its agent":    {`UPDATE log_records SET party = 'nobody@example.com' WHERE type = 'request'`, `UPDATE log_records SET party = (SELECT requester FROM grants) WHERE type = 'request'`, "nobody@example.com"},
		"another body":             {`UPDATE log_records SET time = time + 1 WHERE idx = 3`, `UPDATE log_records SET time = time - 1 WHERE idx = 3`, "record 3 is not what was recorded"},
		"a record within is gone":  {`UPDATE log_records SET idx = -5 WHERE idx = 4`, `UPDATE log_records SET idx = 4 WHERE idx = -5`, "record 4 is missing"},
		"shown to somebody else":   {`UPDATE log_records SET grant_id = 'x' WHERE type = 'login'`, `UPDATE log_records SET grant_id = '' WHERE type = 'login'`, "filed under"},
		"a change of trust hidden": {`UPDATE log_records SET party = '' WHERE type = 'trust'`, "", "filed under"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := authoritytest.Start(t)
			owner := s.Owner()
			agent := s.Agent(owner, "helper")
			agent.Ask("ls")
			approved(owner, agent, "once", "ls")
			status := func() string {
				t.Helper()
				var h api.Health
				s.Stranger().Get(api.PathHealth).Into(&h)
				return h.Status
			}
			tidy := func() {
				t.Helper()
				if err := s.Authority.Tidy(ctx); err != nil {
					t.Fatal(err)
				}
			}
			tidy()
			if got := status(); got != "ok" {
				t.Fatalf("a log that nobody touched is %q: %s", got, s.Authority.Damage())
			}
			change(t, s.DB, test.damage)
			tidy()
			if got := status(); got != "damaged" || !strings.Contains(s.Authority.Damage(), test.want) {
				t.Errorf("health is %q, %q", got, s.Authority.Damage())
			}
			s.Restart()
			if tidy(); s.Authority.Damage() == "" {
				t.Error("it is not found after a restart")
			}
			if test.repair != "" {
				change(t, s.DB, test.repair)
			}
		})
	}
}

// TestExportOfBrokenLog: whoever exports a log that lacks a record learns which
// one, and still does not take what there is for the whole.
func TestExportOfBrokenLog(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t)
	owner := s.Owner()
	agent := s.Agent(owner, "helper")
	for i := range 5 {
		agent.Ask("ls", fmt.Sprint(i))
	}
	for _, missing := range []int{1, 9} {
		change(t, s.DB, `UPDATE log_records SET idx = -5 WHERE idx = ?1`, missing)
		a, err := owner.Try("GET", api.PathAudit+"/export", nil)
		if err == nil {
			t.Errorf("without record %d the export ends as a whole one does", missing)
		}
		if a.Status != http.StatusOK {
			t.Fatalf("without record %d: %d %s", missing, a.Status, a.Body)
		}
		lines := strings.SplitAfter(strings.TrimSuffix(string(a.Body), "\n"), "\n")
		var last struct{ Problem api.Problem }
		if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil || len(lines) != missing+1 {
			t.Fatalf("without record %d: %d lines, %v, the last is %q", missing, len(lines), err, lines[len(lines)-1])
		}
		p := last.Problem
		if !strings.HasPrefix(p.Detail, fmt.Sprintf("record %d is missing", missing)) || p.Status != 500 || p.Hint == "" {
			t.Errorf("without record %d: %+v", missing, p)
		}
		change(t, s.DB, `UPDATE log_records SET idx = ?1 WHERE idx = -5`, missing)
	}
	change(t, s.DB, `UPDATE log_records SET idx = -5 WHERE idx = 0`)
	if p := owner.Get(api.PathAudit + "/export").Problem(500); !strings.HasPrefix(p.Detail, "record 0 is missing") {
		t.Errorf("without the first record: %+v", p)
	}
	change(t, s.DB, `UPDATE log_records SET idx = 0 WHERE idx = -5`)
	owner.Get(api.PathAudit + "/export").Want(200)
}

// TestLostEnd: a log that loses its end while it is written to says that it is
// damaged, not that somebody else was faster.
func TestLostEnd(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t)
	owner := s.Owner()
	last := len(s.Records()) - 1
	change(t, s.DB, `UPDATE log_records SET idx = -5 WHERE idx = ?1`, last)
	if p := owner.Post(api.PathGrants, authoritytest.Request("ls")).Problem(500); !strings.Contains(p.Title, "damaged") {
		t.Errorf("%+v", p)
	}
	change(t, s.DB, `UPDATE log_records SET idx = ?1 WHERE idx = -5`, last)
}
