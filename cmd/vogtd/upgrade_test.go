//go:build unix

package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"path/filepath"
	"testing"
	"time"

	"github.com/pressly/goose/v3"

	"vogt/internal/api"
	"vogt/internal/authoritytest"
	"vogt/internal/grant"
	"vogt/internal/store"
	"vogt/internal/store/sqlite"
	"vogt/internal/vogtdtest"
)

// schemaBefore is the schema of the version before the first that had anything but
// grants and standing grants. What belongs to later ones is lost on the way there.
const schemaBefore = 2

// TestUpgrade takes the data back to an old schema and starts on it: grants, tokens,
// logins, patterns and the log are as they were.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	d := vogtdtest.Start(t, vogtdtest.Options{})
	owner, bob := d.Owner(), d.API.Person("bob@example.com")
	agent := d.API.Agent(owner, "helper")
	second := d.API.ManagedAgent("second", owner, bob)
	pattern := func(program string) string {
		return owner.Change(api.TrustStandingAdd, map[string]string{
			"pattern": `{"agent":"*","programs":["` + program + `"],"does":["read"],"read":["/p/**"],"max_risk":"medium"}`,
		}).Standing.ID
	}
	kept, gone := pattern("cat"), pattern("head")
	owner.Do("DELETE", api.PathStanding+"/"+gone, nil).Want(200)
	covered := agent.AskFor(askFor("cat", "/p/a")).ID
	approved := func(person, agent *authoritytest.Principal, kind grant.Type, end int64, argv ...string) string {
		id := agent.Ask(argv...).ID
		person.Approve(id, kind, end)
		return id
	}
	tomorrow := time.Now().Add(24 * time.Hour).Unix()
	once := approved(owner, agent, grant.Once, 0, "uptime", "-1")
	spent := approved(owner, agent, grant.Once, 0, "uptime", "-2")
	timed := approved(bob, second, grant.Timed, tomorrow, "uptime", "-3")
	always := approved(owner, agent, grant.Always, 0, "uptime", "-4")
	tokens := map[string]string{once: agent.Token(once), spent: agent.Token(spent), timed: second.Token(timed), always: agent.Token(always)}
	d.API.Consume(spent, tokens[spent]).Want(200)
	d.API.Consume(always, tokens[always]).Want(200)
	pending, forBob := agent.Ask("uptime", "-5").ID, second.Ask("uptime", "-6").ID
	denied := agent.Ask("uptime", "-7").ID
	owner.Post(authoritytest.GrantPath(denied, "deny"), nil).Want(200)
	change, secret := owner.Prepare(api.TrustDevice, map[string]string{"name": "laptop"})
	before, records := allGrants(owner), d.Records()
	d.Stop()

	down(t, d.Home, schemaBefore)
	d.Restart()
	after := allGrants(owner)
	if len(after) != len(before) {
		t.Errorf("there are %d grants, not %d", len(after), len(before))
	}
	for id, g := range before {
		was, err1 := json.Marshal(g)
		is, err2 := json.Marshal(after[id])
		if err1 != nil || err2 != nil || !bytes.Equal(was, is) {
			t.Errorf("a grant was\n%s\nand is\n%s", was, is)
		}
	}
	if now := d.Records(); len(now) < len(records) || !bytes.Equal(now[len(records)-1].Body, records[len(records)-1].Body) {
		t.Errorf("of %d records are left %d", len(records), len(now))
	}
	for argv, want := range map[string]string{"cat": kept, "head": ""} {
		if g := agent.AskFor(askFor(argv, "/p/b")); g.Standing != want || (g.Status == grant.Approved) != (want != "") {
			t.Errorf("%s: %s by %q", argv, g.Status, g.Standing)
		}
	}
	for id, want := range map[string]string{once: "consumed", spent: "used", timed: "valid", always: "valid"} {
		var out api.Consumed
		if d.API.Consume(id, tokens[id]).Into(&out); out.Status != want {
			t.Errorf("a token of before gives %+v, want %s", out, want)
		}
	}
	d.API.Consume(covered, agent.Token(covered)).Want(200)
	owner.Approve(pending, grant.Once, 0)
	bob.Approve(forBob, grant.Once, 0)
	for id, p := range map[string]*authoritytest.Principal{pending: agent, forBob: second} {
		var out api.Consumed
		if d.API.Consume(id, p.Token(id)).Into(&out); out.Status != "consumed" {
			t.Errorf("what waited: %+v", out)
		}
	}
	agent.Post(authoritytest.GrantPath(denied, "token"), nil).Problem(403)
	owner.Post(api.PathTrust+"/"+change.ID+"/confirm", owner.SignedChange(change.ID), api.TrustSecretHeader, secret).Want(200)
	for _, p := range []*authoritytest.Principal{owner, bob, agent, second} {
		p.Login()
	}
	owner.Do("DELETE", api.PathStanding+"/"+kept, nil).Want(200)
	if g := agent.AskFor(askFor("cat", "/p/c")); g.Status != grant.Pending {
		t.Errorf("a pattern of before that was taken back covers: %+v", g)
	}
	agree(t, d, owner)
	if copies, err := filepath.Glob(filepath.Join(d.Data(), "vogt-before-v*.db")); err != nil || len(copies) != 1 {
		t.Errorf("the copies of before are %q (%v)", copies, err)
	}
}

// TestNewerSchema: a program that knows less than the data refuses them and leaves
// them as they are.
func TestNewerSchema(t *testing.T) {
	t.Parallel()
	d := vogtdtest.Start(t, vogtdtest.Options{})
	owner := d.Owner()
	d.Stop()
	execute(t, d.Home, `INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, 1)`)
	refused(t, vogtdtest.Refuse(t, vogtdtest.Options{Home: d.Home}), exitConfig, "newer version", "9999")
	execute(t, d.Home, `DELETE FROM goose_db_version WHERE version_id = 9999`)
	d.Restart()
	owner.Get(api.PathWhoAmI).Want(200)
}

// withData opens the database of a vogtd that does not run.
func withData(t *testing.T, home string, do func(db *sql.DB) error) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(home, "data", sqlite.FileName))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := do(db); err != nil {
		t.Fatal(err)
	}
}

func execute(t *testing.T, home, text string) {
	t.Helper()
	withData(t, home, func(db *sql.DB) error {
		_, err := db.ExecContext(context.Background(), text)
		return err
	})
}

func down(t *testing.T, home string, version int64) {
	t.Helper()
	withData(t, home, func(db *sql.DB) error {
		p, err := goose.NewProvider(goose.DialectSQLite3, db, store.Migrations(), goose.WithDisableGlobalRegistry(true))
		if err != nil {
			return err
		}
		_, err = p.DownTo(context.Background(), version)
		return err
	})
}
