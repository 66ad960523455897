package sqlite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"vogt/internal/store"
)

// childVariable holds the JSON of a childConfig when the test binary is to be
// a writer that a test kills, instead of running tests.
const childVariable = "VOGT_STORE_TEST_CHILD"

// childConfig says what a writing child does.
type childConfig struct {
	Dir         string
	Synchronous string
	Checkpoint  int
	Ballast     int64
	Callers     int   // goroutines
	First       int64 // id of the first update
	Count       int64 // of updates in one opening
	Openings    int   // how often to open, write and close
	Stay        bool  // after the last opening exit without closing
}

func TestMain(m *testing.M) {
	text := os.Getenv(childVariable)
	if text == "" {
		os.Exit(m.Run())
	}
	var c childConfig
	err := json.Unmarshal([]byte(text), &c)
	if err == nil {
		err = c.run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "child:", err)
		os.Exit(1)
	}
}

// command makes the command that runs this binary as the child.
func (c childConfig) command(t *testing.T, wrapper ...string) *exec.Cmd {
	t.Helper()
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	args := append(wrapper, os.Args[0])
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(childEnvironment(), childVariable+"="+string(text))
	return cmd
}

// childEnvironment is this process's, but lets a child with the race detector
// end without the detector's wait of a second.
func childEnvironment() []string { return append(os.Environ(), "GORACE=atexit_sleep_ms=0") }

// pairSchema makes half an update visible: every update adds a row to both
// tables and counts itself.
func pairSchema() fs.FS {
	return fstest.MapFS{"00001_pair.sql": {Data: []byte(`-- +goose Up
CREATE TABLE one (id INTEGER PRIMARY KEY, body TEXT NOT NULL) STRICT;
CREATE TABLE two (id INTEGER PRIMARY KEY REFERENCES one (id), body TEXT NOT NULL) STRICT;
CREATE TABLE counter (n INTEGER NOT NULL) STRICT;
INSERT INTO counter (n) VALUES (0);
`)}}
}

// pairBody is long enough for a few updates to fill a page.
func pairBody(id int64) string { return strings.Repeat(fmt.Sprintf("body of %d. ", id), 80) }

func addPair(t store.Tx, id int64) error {
	body := pairBody(id)
	for _, query := range []string{
		`INSERT INTO one (id, body) VALUES (?1, ?2)`,
		`INSERT INTO two (id, body) VALUES (?1, ?2)`,
	} {
		if _, err := t.Exec(query, id, body); err != nil {
			return err
		}
	}
	_, err := t.Exec(`UPDATE counter SET n = n + 1`)
	return err
}

// run writes and reports every acknowledged update by one line, in one write.
func (c childConfig) run() error {
	for opening := range c.Openings {
		db, err := Open(context.Background(), Options{
			Dir: c.Dir, Migrations: pairSchema(), Ballast: c.Ballast, Readers: 1,
			synchronous: c.Synchronous, autocheckpoint: c.Checkpoint,
		})
		if err != nil {
			return err
		}
		errs := make([]error, c.Callers)
		var callers sync.WaitGroup
		for caller := range c.Callers {
			callers.Go(func() {
				for i := int64(caller); i < c.Count; i += int64(c.Callers) {
					id := c.First + int64(opening)*c.Count + i
					err := db.Update(context.Background(), func(t store.Tx) error { return addPair(t, id) })
					if err == nil {
						_, err = fmt.Fprintf(os.Stdout, "ack %d\n", id)
					}
					if err != nil {
						errs[caller] = err
						return
					}
				}
			})
		}
		callers.Wait()
		if err := errors.Join(errs...); err != nil {
			return err
		}
		if c.Stay && opening == c.Openings-1 {
			return nil
		}
		if err := db.Close(); err != nil {
			return err
		}
	}
	return nil
}

// errLost: an acknowledged update is missing.
var errLost = errors.New("acknowledged updates are lost")

// verifyPairs checks that the database in dir opens, is sound, holds every
// acknowledged update and no half of any, and takes another update.
func verifyPairs(dir string, acked []int64) error {
	ctx := context.Background()
	db, err := Open(ctx, Options{Dir: dir, Migrations: pairSchema(), Ballast: -1, Readers: 1})
	if err != nil {
		return err
	}
	defer db.Close()
	if err := db.Check(ctx); err != nil {
		return err
	}
	present := make(map[int64]bool)
	err = db.View(ctx, func(t store.Tx) error {
		var one, two, counted int64
		err := t.QueryRow(`SELECT (SELECT count(*) FROM one), (SELECT count(*) FROM two), (SELECT n FROM counter)`).Scan(&one, &two, &counted)
		if err != nil {
			return err
		}
		if one != two || one != counted {
			return fmt.Errorf("half an update: %d rows in one, %d in two, %d counted", one, two, counted)
		}
		rows, err := t.Query(`SELECT one.id, one.body, two.body FROM one JOIN two USING (id)`)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var id int64
			var first, second string
			if err := rows.Scan(&id, &first, &second); err != nil {
				return err
			}
			if first != second || first != pairBody(id) {
				return fmt.Errorf("update %d has another body than was written", id)
			}
			present[id] = true
		}
		return rows.Err()
	})
	if err != nil {
		return err
	}
	if missing := slices.DeleteFunc(slices.Clone(acked), func(id int64) bool { return present[id] }); len(missing) > 0 {
		return fmt.Errorf("%w: %d of %d, such as %d", errLost, len(missing), len(acked), missing[0])
	}
	return db.Update(ctx, func(t store.Tx) error { return addPair(t, -1) })
}
