package pages_test

import (
	"regexp"
	"testing"

	"vogt/internal/detail"
	"vogt/internal/grant"
)

// TestFirstView counts what a browser loads for the inbox the first time, as
// it stands, before compression.
func TestFirstView(t *testing.T) {
	s := newSite(t, fixedClock().now)
	s.populate()
	for range 2 { // six cards in all
		s.authority.Ask(grant.Request{Requester: claude, Host: "nuc", Type: grant.Once, Command: []string{"git", "push", "origin", "feature/login"}}, detail.Medium)
	}
	s.signIn(mara)
	const most = 60_000
	for _, tongue := range []string{"en", "de"} {
		page := s.get("/?lang=" + tongue)
		want(t, page, 200)
		total := len(page.body)
		t.Logf("%s: page %d", tongue, len(page.body))
		seen := map[string]bool{}
		for _, m := range regexp.MustCompile(`/assets/[\w.-]+`).FindAllString(page.body, -1) {
			if seen[m] {
				continue
			}
			seen[m] = true
			a := s.get(m)
			want(t, a, 200)
			total += len(a.body)
			t.Logf("%s: %s %d", tongue, m, len(a.body))
		}
		if len(seen) != 4 {
			t.Errorf("%s: the page names %d assets, want style, script and two pictures", tongue, len(seen))
		}
		if total > most {
			t.Errorf("%s: the first view has %d bytes, want at most %d", tongue, total, most)
		}
		t.Logf("%s: %d bytes", tongue, total)
	}
}
