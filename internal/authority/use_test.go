package authority_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"vogt/internal/api"
	"vogt/internal/authority"
	"vogt/internal/authoritytest"
	"vogt/internal/grant"
)

// TestOutcomeNamesItsUse: an end is recorded once, for the use that it names and
// under its own grant. A name that was never given, or that leads to another
// record, ends nothing.
func TestOutcomeNamesItsUse(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t)
	owner := s.Owner()
	agent := s.Agent(owner, "helper")
	one, two := approved(owner, agent, grant.Always, "one"), approved(owner, agent, grant.Always, "two")
	first, second := consume(t, agent, one.ID), consume(t, agent, two.ID)
	again := consume(t, agent, one.ID)
	end := func(id, use string) int {
		return agent.Post(authoritytest.GrantPath(id, "outcome"), api.Outcome{Use: use}).Status
	}
	other := func(index int64) string { return fmt.Sprintf("%012x", index) + first.Use[12:] }
	last := int64(len(s.Records()) - 1)
	for name, use := range map[string]string{
		"none": "", "the second's": second.Use, "another random": first.Use[:12] + second.Use[12:], "another index": second.Use[:12] + first.Use[12:],
		"shorter": first.Use[:31], "longer": first.Use + "0", "upper case": strings.ToUpper(first.Use[:12]) + strings.ToUpper(first.Use[12:]) + "x",
		"no number": strings.Repeat("z", 32), "signed": "-" + first.Use[1:], "plus": "+" + first.Use[1:], "huge": "ffffffffffff" + first.Use[12:],
		"a request": other(0), "the decision": other(first.Receipt.Record), "the last": other(last), "beyond the last": other(last + 1),
	} {
		if got := end(one.ID, use); got != 409 {
			t.Errorf("%s: %q ends with %d", name, use, got)
		}
	}
	if n := len(s.Recorded("outcome")); n != 0 {
		t.Errorf("%d ends are on record", n)
	}
	for i, want := range []int{200, 409} {
		if got := end(one.ID, first.Use); got != want {
			t.Errorf("report %d of the first's end: %d", i+1, got)
		}
	}
	if got, want := [2]int{end(two.ID, second.Use), end(one.ID, again.Use)}, [2]int{200, 200}; got != want {
		t.Errorf("the other ends: %v", got)
	}
	if n := len(s.Recorded("outcome")); n != 3 {
		t.Errorf("%d ends are on record", n)
	}
}

// TestIssuedTokensAreCheckedAlike: a token that the authority remembers having
// signed counts as one whose signature it verifies: no longer, and nothing that is
// not equal to it to the last byte.
func TestIssuedTokensAreCheckedAlike(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]struct {
		before func(s *authoritytest.Server, jwt *string)
		want   string // "" for consumed
	}{
		"as issued":          {func(*authoritytest.Server, *string) {}, ""},
		"a moment before":    {func(s *authoritytest.Server, _ *string) { s.Clock.Advance(299 * time.Second) }, ""},
		"expired":            {func(s *authoritytest.Server, _ *string) { s.Clock.Advance(300 * time.Second) }, "401"},
		"after a restart":    {func(s *authoritytest.Server, _ *string) { s.Restart() }, ""},
		"its last byte":      {func(_ *authoritytest.Server, jwt *string) { *jwt = flip(*jwt, len(*jwt)-3) }, "401"},
		"a byte in between":  {func(_ *authoritytest.Server, jwt *string) { *jwt = flip(*jwt, len(*jwt)/2) }, "401"},
		"without signature":  {func(_ *authoritytest.Server, jwt *string) { *jwt = (*jwt)[:strings.LastIndexByte(*jwt, '.')+1] }, "401"},
		"with something on":  {func(_ *authoritytest.Server, jwt *string) { *jwt += "A" }, "401"},
		"other keys by then": {func(s *authoritytest.Server, _ *string) { rotate(t, s) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := authoritytest.Start(t, authoritytest.WithConfig(func(c *authority.Config) { c.KeyLife = 24 * time.Hour }))
			owner := s.Owner()
			agent := s.Agent(owner, "helper")
			g := approved(owner, agent, grant.Always, "deploy")
			jwt := agent.Token(g.ID)
			change.before(s, &jwt)
			a := s.Consume(g.ID, jwt)
			got := ""
			if a.Status != 200 {
				got = fmt.Sprint(a.Status)
			}
			if got != change.want {
				t.Errorf("%s: %d %s", name, a.Status, a.Body)
			}
		})
	}
}

func flip(s string, at int) string {
	b := []byte(s)
	b[at]++
	if b[at] > 'y' {
		b[at] = 'B'
	}
	return string(b)
}

// rotate has another key sign from now on.
func rotate(t *testing.T, s *authoritytest.Server) {
	t.Helper()
	if err := s.Authority.RotateKeys(t.Context()); err != nil {
		t.Fatal(err)
	}
}
