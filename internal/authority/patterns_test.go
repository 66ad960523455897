package authority_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"vogt/internal/api"
	"vogt/internal/authority"
	"vogt/internal/authoritytest"
	"vogt/internal/grant"
	"vogt/internal/store"
)

// kept are the patterns of the owner that a request made in tx would look at.
func kept(t *testing.T, a *authority.Authority, tx store.Tx, owner string) []string {
	t.Helper()
	ids, err := a.KeptPatterns(tx, owner)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(ids)
	return ids
}

func catPattern(t *testing.T, s *authoritytest.Server, id, author string) store.Standing {
	t.Helper()
	p, err := catIn("*").Complete()
	if err != nil {
		t.Fatal(err)
	}
	now := grant.At(s.Clock.Now())
	return store.Standing{Generation: 1, Standing: grant.Standing{ID: id, Author: author, Pattern: p, Created: now, Until: now + 1<<40, Strength: grant.Independent}}
}

// TestKeptPatternsFollowTheData: what is kept is what stands in the very
// transaction that looks, whatever other updates of the same commit have done,
// undone or seen before.
func TestKeptPatternsFollowTheData(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t)
	owner := s.Owner().Email
	undone := errors.New("undone")
	const unseen = "nobody looks before the next step"
	step := func(name string, fail error, change func(tx store.Tx) error, inside, after string) {
		t.Helper()
		err := s.DB.Update(t.Context(), func(tx store.Tx) error {
			if err := change(tx); err != nil {
				return err
			}
			if got := strings.Join(kept(t, s.Authority, tx, owner), " "); got != inside {
				t.Errorf("%s: inside of the update %q is kept, want %q", name, got, inside)
			}
			return fail
		})
		if !errors.Is(err, fail) {
			t.Fatalf("%s: %v", name, err)
		}
		if after == unseen {
			return
		}
		err = s.DB.View(t.Context(), func(tx store.Tx) error {
			if got := strings.Join(kept(t, s.Authority, tx, owner), " "); got != after {
				t.Errorf("%s: after it %q is kept, want %q", name, got, after)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	insert := func(id string) func(store.Tx) error {
		return func(tx store.Tx) error { return store.InsertStanding(tx, catPattern(t, s, id, owner)) }
	}
	end := func(id string) func(store.Tx) error {
		return func(tx store.Tx) error { return store.EndStanding(tx, id, owner, 1) }
	}
	nothing := func(store.Tx) error { return nil }
	step("nothing yet", nil, nothing, "", "")
	step("one that is undone", undone, insert("a"), "a", unseen)
	step("another in its place", nil, insert("b"), "b", "b")
	step("an end that is undone", undone, end("b"), "", unseen)
	step("another end that is undone", undone, func(tx store.Tx) error { return errors.Join(insert("c")(tx), end("b")(tx)) }, "c", "b")
	step("a pause", nil, func(tx store.Tx) error { return store.PauseStanding(tx, "b", "too fast") }, "b (too fast)", "b (too fast)")
	step("a resume that is undone", undone, func(tx store.Tx) error { return store.PauseStanding(tx, "b", "") }, "b", "b (too fast)")
	step("a resume", nil, func(tx store.Tx) error { return store.PauseStanding(tx, "b", "") }, "b", "b")
	step("all paused", nil, func(tx store.Tx) error { return store.PauseAllStanding(tx, "restored") }, "b (restored)", "b (restored)")
	step("of somebody else", nil, func(tx store.Tx) error {
		return store.InsertStanding(tx, catPattern(t, s, "d", "other@example.com"))
	}, "b (restored)", "b (restored)")
	step("its time", nil, func(tx store.Tx) error { _, err := store.LapseStanding(tx, 1<<62, 10); return err }, "", "")
}

// TestUpdatesThatShareACommit: updates that run one after the other in one
// transaction, some of which fail, never show each other a state that is none.
func TestUpdatesThatShareACommit(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t)
	owner := s.Owner().Email
	undone := errors.New("undone")
	if err := s.DB.Update(t.Context(), func(tx store.Tx) error { return store.InsertStanding(tx, catPattern(t, s, "base", owner)) }); err != nil {
		t.Fatal(err)
	}
	together(64, func(i int) {
		id := "s" + strconv.Itoa(i)
		fail := []error{nil, undone}[i%2]
		err := s.DB.Update(context.Background(), func(tx store.Tx) error {
			before, err := s.Authority.KeptPatterns(tx, owner)
			if err != nil {
				return err
			}
			if err := store.InsertStanding(tx, catPattern(t, s, id, owner)); err != nil {
				return err
			}
			inside, err := s.Authority.KeptPatterns(tx, owner)
			if err != nil {
				return err
			}
			stored, err := store.StandingInForce(tx, owner)
			if err != nil {
				return err
			}
			if len(stored) != len(inside) || len(inside) != len(before)+1 || !slices.Contains(inside, id) {
				t.Errorf("%s: kept %d before and %d inside, %d are stored", id, len(before), len(inside), len(stored))
			}
			for _, other := range inside {
				if n, err := strconv.Atoi(strings.TrimPrefix(other, "s")); err == nil && n%2 == 1 && other != id {
					t.Errorf("%s was undone and is seen by %s", other, id)
				}
			}
			return fail
		})
		if !errors.Is(err, fail) {
			t.Error(err)
		}
	})
}

// TestRowsDecide: where what is kept is wrong, because somebody changed the data
// and forgot to say so, a request asks. It is never allowed by what was.
func TestRowsDecide(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]string{
		"revoked":            `UPDATE standing_grants SET revoked = 1`,
		"paused":             `UPDATE standing_grants SET paused = 'x'`,
		"over":               `UPDATE standing_grants SET valid_until = 1`,
		"of another pattern": `UPDATE standing_grants SET pattern = REPLACE(pattern, '/p/**', '/q/**')`,
		"of another program": `UPDATE standing_grants SET pattern = REPLACE(pattern, '"cat"', '"tac"')`,
		"of another agent":   `UPDATE standing_grants SET pattern = REPLACE(pattern, '"*"', '"x@example.com"')`,
		"of another author":  `UPDATE standing_grants SET author = 'stranger@example.com'`,
		"signed before":      `UPDATE standing_grants SET generation = generation + 1`,
	} {
		c := newCast(t)
		s := sign(t, c.owner, catIn("*"))
		if g := c.sibling.AskFor(inProject("cat", "a")); g.Standing != s.ID {
			t.Fatalf("%s: before: %+v", name, g)
		}
		err := c.s.DB.Update(t.Context(), func(tx store.Tx) error { _, err := tx.Exec(change); return err })
		if err != nil {
			t.Fatal(err)
		}
		if g := c.sibling.AskFor(inProject("cat", "b")); g.Status != grant.Pending || g.Standing != "" {
			t.Errorf("%s behind the cache's back: %+v", name, g)
		}
	}
}

// TestUsedUpWhileKept: uses are not what changes a version, and count all the
// same; what stands behind the one that is used up covers then.
func TestUsedUpWhileKept(t *testing.T) {
	t.Parallel()
	c := newCast(t)
	p := catIn("*")
	p.Limits.Uses = 2
	first := sign(t, c.owner, p)
	second := sign(t, c.owner, p)
	var by []string
	for i := range 5 {
		by = append(by, c.sibling.AskFor(inProject("cat", strconv.Itoa(i))).Standing)
	}
	if want := []string{first.ID, first.ID, second.ID, second.ID, ""}; !slices.Equal(by, want) {
		// Both were signed at the same instant; the order of equals is by name.
		if want := []string{second.ID, second.ID, first.ID, first.ID, ""}; !slices.Equal(by, want) {
			t.Errorf("decided by %v", by)
		}
	}
}

// TestNothingKeptOutlives: after each of these has been answered, no request is
// covered any more, although a moment before one was; and what is still unused
// of what it gave cannot be used.
func TestNothingKeptOutlives(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(t *testing.T, c *cast, s api.Standing){
		"revoked": func(t *testing.T, c *cast, s api.Standing) {
			c.owner.Do("DELETE", api.PathStanding+"/"+s.ID, nil).Want(200)
		},
		"over": func(t *testing.T, c *cast, s api.Standing) { c.s.Clock.Advance(91 * 24 * time.Hour) },
		"its author is off": func(t *testing.T, c *cast, s api.Standing) {
			if err := c.s.Authority.Deactivate(t.Context(), authority.Actor{Means: authority.Management}, c.owner.Email); err != nil {
				t.Fatal(err)
			}
		},
		"restored": func(t *testing.T, c *cast, s api.Standing) {
			backup := c.s.Backup()
			c.owner.Do("DELETE", api.PathStanding+"/"+s.ID, nil).Want(200)
			seen := latest(t, c.s)
			c.s.Restore(backup)
			if begun, err := c.s.Authority.NoteCheckpoint(t.Context(), seen); err != nil || !begun {
				t.Fatal(begun, err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCast(t)
			s := sign(t, c.owner, catIn("*"))
			g := c.sibling.AskFor(inProject("cat", "a"))
			if g.Standing != s.ID {
				t.Fatalf("before: %+v", g)
			}
			jwt := c.sibling.Token(g.ID)
			change(t, c, s)
			if a := c.s.Consume(g.ID, jwt); a.Status == 200 && consumedError(a) == "" {
				t.Error("what it gave was used afterwards")
			}
			var again api.Grant
			if a := c.sibling.TryLogin(c.sibling.Key); a.Status == 200 {
				again = c.sibling.Login().AskFor(inProject("cat", "b"))
			}
			if again.Standing != "" || again.Status == grant.Approved {
				t.Errorf("after: %+v", again)
			}
		})
	}
}

// TestAnsweredLateAndRevoked: what waited for hours before a pattern answered it
// ends with the pattern, too.
func TestAnsweredLateAndRevoked(t *testing.T) {
	t.Parallel()
	c := newCast(t)
	g := c.sibling.AskFor(inProject("cat", "a"))
	c.s.Clock.Advance(5 * time.Hour)
	s := sign(t, c.owner, catIn("*"))
	if got := c.owner.Grant(g.ID); got.Standing != s.ID || got.Status != grant.Approved {
		t.Fatalf("answered by the pattern: %+v", got)
	}
	c.owner.Do("DELETE", api.PathStanding+"/"+s.ID, nil).Want(200)
	if got := c.owner.Grant(g.ID); got.Status != grant.Revoked {
		t.Errorf("after the pattern was revoked: %s", got.Status)
	}
}

// TestRevokedWhileAsked: requests race a revocation. Once it is answered, nothing
// is covered and nothing that was covered before can be used.
func TestRevokedWhileAsked(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t, authoritytest.WithConfig(func(c *authority.Config) { c.Limits.Creations, c.Limits.Pending = 1e9, 1000 }))
	owner := s.Owner()
	agent := s.Agent(owner, "helper")
	for round := range 8 {
		signed := sign(t, owner, catIn("*"))
		var revoked atomic.Bool
		var late atomic.Int64
		ids, actor := make([]string, 32), agent.Actor()
		together(33, func(i int) {
			if i == 32 {
				owner.Do("DELETE", api.PathStanding+"/"+signed.ID, nil).Want(200)
				revoked.Store(true)
				return
			}
			after := revoked.Load()
			made, err := s.Authority.Create(context.Background(), actor, inProject("cat", fmt.Sprint(round, ".", i)))
			if err != nil {
				t.Error(err)
				return
			}
			ids[i] = made.Grant.ID
			if after && made.Standing {
				late.Add(1)
			}
		})
		if late.Load() > 0 {
			t.Errorf("%d requests were covered after the revocation was answered", late.Load())
		}
		for _, id := range ids {
			if g := agent.Grant(id); g.Status == grant.Approved {
				t.Errorf("what the pattern gave is %s after its revocation", g.Status)
			}
		}
	}
}
