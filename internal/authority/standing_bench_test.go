package authority_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"

	"vogt/internal/authority"
	"vogt/internal/authoritytest"
	"vogt/internal/grant"
	"vogt/internal/store"
)

// BenchmarkCreateStanding asks for what one pattern covers, beside patterns of
// other people, and beside as many of the same person as one may sign: for other
// programs, for other agents, and for any program in other folders. "changed"
// has one of them paused and resumed before each request, so that all are read again.
func BenchmarkCreateStanding(b *testing.B) {
	for _, test := range []struct {
		name         string
		others, same int
		any, changed bool
	}{
		{name: "others=0"}, {name: "others=1000", others: 1000}, {name: "others=100000", others: 100_000},
		{name: "own=1900", same: 1900}, {name: "own=1900 any program", same: 1900, any: true},
		{name: "own=1900 any program changed", same: 1900, any: true, changed: true},
	} {
		b.Run(test.name, func(b *testing.B) {
			s := authoritytest.Start(b, authoritytest.WithConfig(func(c *authority.Config) { c.Limits.Creations = 1e9 }))
			owner := s.Owner()
			agent := s.Agent(owner, "helper")
			fill(b, s, owner.Email, test.others, test.same, test.any)
			actor := agent.Actor()
			if _, err := s.Authority.Create(context.Background(), actor, inProject("cat", "first")); err != nil {
				b.Fatal(err)
			}
			b.ResetTimer()
			for i := range b.N {
				if test.changed {
					b.StopTimer()
					if err := s.DB.Update(context.Background(), func(tx store.Tx) error { return store.PauseStanding(tx, "s1", strconv.Itoa(i)) }); err != nil {
						b.Fatal(err)
					}
					b.StartTimer()
				}
				made, err := s.Authority.Create(context.Background(), actor, inProject("cat", strconv.Itoa(i)))
				if err != nil || made.Grant.Status != grant.Approved {
					b.Fatalf("%+v, %v", made.Grant.Status, err)
				}
			}
		})
	}
}

// fill puts patterns into the data, one of which covers cat in /p.
func fill(b *testing.B, s *authoritytest.Server, owner string, others, same int, any bool) {
	b.Helper()
	now := grant.Millis(s.Clock.Now().UnixMilli())
	const batch = 5000
	for from := 0; from <= others+same; from += batch {
		err := s.DB.Update(context.Background(), func(tx store.Tx) error {
			for i := from; i < min(from+batch, others+same+1); i++ {
				p, author := catIn("*"), owner
				switch {
				case i == others+same:
				case i < others:
					author = fmt.Sprintf("p%d@example.com", i/50)
				case any:
					p.Programs, p.Read = nil, []string{fmt.Sprintf("/other/%d/**", i)}
				case i%2 == 1:
					p.Agent = fmt.Sprintf("a%d@example.com", i)
				default:
					p.Programs = []string{fmt.Sprintf("program%d", i)}
				}
				p.Limits.PerMinute = 10_000
				p, err := p.Complete()
				if err != nil {
					return err
				}
				if i == others+same {
					p.Limits.PerMinute = 1 << 40 // the clock stands still
				}
				err = store.InsertStanding(tx, store.Standing{Generation: 1, Standing: grant.Standing{
					ID: fmt.Sprintf("s%d", i), Author: author, Pattern: p, Created: now, Until: now + 1<<40, Strength: grant.Independent,
				}})
				if err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}
