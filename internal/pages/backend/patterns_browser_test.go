package backend_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"vogt/internal/api"
	"vogt/internal/authority"
	"vogt/internal/grant"
	"vogt/internal/pages/browsertest"
	"vogt/internal/statement"
)

// in is a request in a folder.
func in(folder string, argv ...string) grant.Request {
	return grant.Request{Host: "nuc", Audience: "vogt", Type: grant.Once, Command: argv, Reason: "for a test", Context: &grant.Context{Cwd: &statement.File{Path: &folder}}}
}

// signClass is a class of commands, signed on a phone: from the card that made the
// person write it, by the form and its preview, to the passkey. The card is answered
// with it, and the next one is none.
func signClass(t *testing.T, b *person) {
	b.Phone(false)
	card := b.agent.AskFor(in("/home/mara/shop", "cat", "a.txt"))
	if card.Status != grant.Pending {
		t.Fatalf("without a pattern the request is %s", card.Status)
	}
	mixed := b.agent.AskFor(in("/home/mara/shop", "sh", "-c", "cat a.txt; touch c.txt"))
	b.Visit("/grants/" + card.ID)
	b.Wait(browsertest.Armed)
	b.Click("a[href^='/patterns/new']")
	b.Wait(`location.pathname === "/patterns/new" && document.querySelector("#folders").value === "/home/mara/shop" && document.querySelector("#agent").value === "` + b.agent.Email + `"`)
	b.Check("new pattern on a phone")
	b.Wait(`!document.querySelector("#programs").checkVisibility()`)
	// Something is wrong first: what was typed stays.
	b.Click("[value=safe]")
	b.Run(chromedp.SetValue("#days", "1000"))
	b.Click("[name=show]")
	b.Wait(b.Has("A number of days, 1 to 366.") + ` && document.querySelector("#folders").value === "/home/mara/shop" && document.querySelector("[value=safe]").checked`)
	b.Check("faults on a phone")
	b.Run(chromedp.SetValue("#days", "30"))
	b.Click("[name=show]")
	b.Wait(b.Has("Would run without a card") + ` && [...document.querySelectorAll("#covers code")].some(e => e.innerText === "cat a.txt")`)
	b.Wait(`[...document.querySelectorAll("#stays code")].some(e => e.innerText === "find . -delete")`)
	b.Check("preview on a phone")
	b.Wait(`document.querySelector("[data-post='/p/trust']:not([disabled])")`)
	b.Click("[data-post='/p/trust']")
	b.Wait(`location.pathname.startsWith("/trust/") && ` + b.Has("Permit a class of commands to") + ` && ` + b.Has("Look around") + ` && ` + b.Has("/home/mara/shop/**"))
	b.Wait(browsertest.Armed)
	b.Check("signing on a phone")
	b.Click(".btn-allow")
	b.Wait(`document.querySelector("#outcome")?.innerText === "Confirmed by you"`)
	if g := b.agent.Grant(card.ID); g.Status != grant.Approved || g.Standing == "" {
		t.Errorf("the card is %s, by the pattern %q", g.Status, g.Standing)
	}
	next := b.agent.AskFor(in("/home/mara/shop", "grep", "-rn", "x", "."))
	if next.AutoKind != "standing" {
		t.Errorf("the next one is %s by %q", next.Status, next.AutoKind)
	}
	// What is covered of the other card is marked, and the rest is asked.
	b.Visit("/grants/" + mixed.ID)
	b.Wait(b.Has("1 of 2 calls is covered by your patterns by now.") + ` && document.querySelector(".calls .claim").innerText.includes("covered by Look around")`)
	b.Check("a card with covered calls on a phone")
	b.Visit("/patterns")
	b.Wait(b.Has("Look around") + ` && ` + b.Has("used 2 times"))
	b.Check("patterns on a phone")

	// Another tab is first: that is said, and nothing is lost.
	b.Wait(`document.querySelector("[data-post$='/revoke']:not([disabled])")`)
	revokeElsewhere(t, b)
	b.Click("[data-post$='/revoke']")
	b.Wait(b.Has("It was revoked already, elsewhere.") + ` && ` + b.Has("No pattern is in force"))
	if g := b.agent.AskFor(in("/home/mara/shop", "head", "a.txt")); g.Status != grant.Pending {
		t.Errorf("after the revocation a request is %s", g.Status)
	}
	b.Visit("/patterns?over=1")
	b.Wait(b.Has("Look around") + ` && ` + b.Has("revoked"))

	// A rule that only the change itself meets is said in the authority's words.
	change, _ := b.s.Stranger().Prepare(api.TrustGroupSet, map[string]string{"name": "builders", "agents": "nobody@x.example"})
	b.Visit(strings.TrimPrefix(change.ConfirmURL, b.s.Pages))
	b.Wait(b.Has("Make the group builders these agents"))
	b.Wait(browsertest.Armed)
	b.Click(".btn-allow")
	b.Wait(b.Has("A rule is against it. Nothing was changed. There is no such agent."))

	// Safe commands on, by the page, and off in one touch.
	b.Visit("/patterns/safe?for=" + url.QueryEscape(b.agent.Email))
	b.Run(chromedp.SetValue("#folders", "/home/mara/shop"))
	b.Click("[name=show]")
	b.Wait(`document.querySelector("[data-body*='safe.on']:not([disabled])")`)
	b.Check("safe commands on a phone")
	b.Click("[data-body*='safe.on']")
	b.Wait(`location.pathname.startsWith("/trust/") && ` + b.Has("look around by safe commands"))
	b.Wait(browsertest.Armed)
	b.Click(".btn-allow")
	b.Wait(`document.querySelector("#outcome")?.innerText === "Confirmed by you"`)
	if g := b.agent.AskFor(in("/home/mara/shop", "tail", "a.txt")); g.AutoKind != "standing" {
		t.Errorf("with the safe commands on a request is %s", g.Status)
	}
	b.Visit("/patterns/safe")
	b.Wait(`document.querySelector("#safe [data-post]:not([disabled])")`)
	b.Click("#safe [data-post]")
	b.Wait(`!document.querySelector("#safe [data-post]") && ` + b.Has("Switch on"))
	if g := b.agent.AskFor(in("/home/mara/shop", "wc", "a.txt")); g.Status != grant.Pending {
		t.Errorf("with the safe commands off a request is %s", g.Status)
	}
	b.Viewport(1440, 900, false)
}

// revokeElsewhere takes the agent's patterns back, as another device does.
func revokeElsewhere(t *testing.T, b *person) {
	t.Helper()
	var all []api.Standing
	b.agent.Get(api.PathStanding).Want(200).Into(&all)
	management, ok := authority.AuthenticateManagement("x", "x")
	if len(all) == 0 || !ok {
		t.Fatalf("%d patterns to revoke", len(all))
	}
	for _, s := range all {
		if err := b.s.Authority.RevokeStanding(t.Context(), management, s.ID); err != nil {
			t.Fatal(err)
		}
	}
}
