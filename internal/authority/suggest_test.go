package authority_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"vogt/internal/api"
	"vogt/internal/authoritytest"
	"vogt/internal/grant"
)

func preview(owner *authoritytest.Principal, p grant.Pattern) (out api.StandingPreview) {
	owner.S.T.Helper()
	p, err := p.Complete()
	if err != nil {
		owner.S.T.Fatal(err)
	}
	owner.Post(api.PathStanding+"/preview", api.PreviewStanding{Pattern: p}).Want(200).Into(&out)
	return out
}

func previewed(list []api.Previewed, command string) *api.Previewed {
	i := slices.IndexFunc(list, func(p api.Previewed) bool { return p.Command == command })
	if i < 0 {
		return nil
	}
	return &list[i]
}

// TestPreview: what a pattern would have covered of what was asked, and where it ends.
func TestPreview(t *testing.T) {
	t.Parallel()
	c := newCast(t)
	for range 3 {
		consume(t, c.sibling, c.owner.Approve(c.sibling.AskFor(inProject("cat", "a")).ID, grant.Once, 0).ID)
	}
	c.sibling.AskFor(inProject("cat", "/etc/passwd"))
	c.foreign.AskFor(inProject("cat", "a"))
	got := preview(c.owner, catIn("*"))
	if got.Requests != 4 || got.Covered != 3 || got.Cards != 3 {
		t.Errorf("counted: %+v", got)
	}
	if p := previewed(got.Covers, "cat a"); p == nil || p.Count != 3 {
		t.Errorf("covers %+v", got.Covers)
	}
	if p := previewed(got.StaysOut, "cat /etc/passwd"); p == nil || !strings.Contains(p.Why, "/etc/passwd would be read") {
		t.Errorf("stays out: %+v", got.StaysOut)
	}
	if p := previewed(got.StaysOut, "cat .env"); p == nil || p.Count != 0 {
		t.Errorf("examples that stay out: %+v", got.StaysOut)
	}
	for _, class := range grant.Classes() {
		var folders, hosts []string
		if class != grant.ClassInspect {
			folders = []string{"/home/me/app"}
		}
		if class == grant.ClassInstall {
			hosts = []string{"mirror.example"}
		}
		p, err := grant.NewClass(class, "*", folders, hosts)
		if err != nil {
			t.Fatal(err)
		}
		got := preview(c.owner, p)
		if len(got.Covers) == 0 || len(got.StaysOut) == 0 {
			t.Errorf("%s: covers %+v, stays out %+v", class, got.Covers, got.StaysOut)
		}
		for _, never := range []string{"sudo true", "find . -delete"} {
			if previewed(got.Covers, never) != nil && (never == "sudo true" || class == grant.ClassSafe) {
				t.Errorf("%s covers %s", class, never)
			}
		}
	}
	whole, err := catIn("*").Complete()
	if err != nil {
		t.Fatal(err)
	}
	c.sibling.Post(api.PathStanding+"/preview", api.PreviewStanding{Pattern: whole}).Problem(403)
	c.sibling.Get(api.PathStanding + "/suggestions").Problem(403)
	c.owner.Post(api.PathStanding+"/preview", api.PreviewStanding{}).Problem(400)
	if got := preview(c.stranger, catIn("*")); got.Requests != 1 || got.Cards != 0 {
		t.Errorf("a stranger sees %+v", got)
	}
}

// TestSuggestions: patterns that fit what was allowed, and nothing that was denied.
func TestSuggestions(t *testing.T) {
	t.Parallel()
	c := newCast(t)
	suggest := func() (out []api.Suggestion) {
		c.owner.Get(api.PathStanding + "/suggestions?days=30").Want(200).Into(&out)
		return out
	}
	allow := func(argv ...string) {
		r := inProject(argv...)
		*r.Context.Cwd.Path = "/home/me/app"
		consume(t, c.sibling, c.owner.Approve(c.sibling.AskFor(r).ID, grant.Once, 0).ID)
	}
	if got := suggest(); len(got) != 0 {
		t.Fatalf("of nothing: %+v", got)
	}
	for i := range 5 {
		allow("cat", fmt.Sprint("file", i))
	}
	allow("touch", "x")
	got := suggest()
	if len(got) != 1 || got[0].Cards != 5 || got[0].Pattern.Agent != c.sibling.Email || !slices.Equal(got[0].Pattern.Read, []string{"/home/me/app/**"}) ||
		!slices.Equal(got[0].Pattern.Programs, []string{"cat"}) || len(got[0].Examples) != 5 {
		t.Fatalf("of five reads: %+v", got)
	}
	if again := suggest(); again[0].Key != got[0].Key {
		t.Errorf("the same history gives %s and %s", got[0].Key, again[0].Key)
	}
	// What was denied is covered by no suggestion.
	r := inProject("cat", "file-private")
	*r.Context.Cwd.Path = "/home/me/app"
	denied := c.sibling.AskFor(r)
	c.owner.Post(api.PathGrants+"/"+denied.ID+"/deny", nil).Want(200)
	if with := suggest(); len(with) != 0 {
		t.Errorf("with a denial among them: %+v", with)
	}
	// What is signed is suggested no more.
	for i := range 4 {
		allow("mkdir", fmt.Sprint("d", i))
	}
	with := suggest()
	if len(with) != 1 || !slices.Contains(with[0].Pattern.Does, grant.DeedWrite) {
		t.Fatalf("of four folders: %+v", with)
	}
	for i := range 3 {
		allow("head", "-n", fmt.Sprint(i), "/etc/hostname")
	}
	if with = suggest(); len(with) != 2 || !slices.Equal(with[1].Pattern.Read, []string{"/etc/hostname"}) || !slices.Equal(with[1].Pattern.Programs, []string{"head"}) {
		t.Fatalf("of a file of the system: %+v", with)
	}
	sign(t, c.owner, with[1].Pattern)
	sign(t, c.owner, with[0].Pattern)
	if left := suggest(); len(left) != 0 {
		t.Errorf("signed, and suggested again: %+v", left)
	}
}

// TestPoliciesSuggestNothing: what a policy approved made no card, and is no person's
// word for a pattern.
func TestPoliciesSuggestNothing(t *testing.T) {
	t.Parallel()
	c := newCast(t)
	c.owner.Change(api.TrustPolicySet, map[string]string{"policy": `{"agent":"` + c.sibling.Email + `","mode":"allow-list","allow":["cat *"]}`, "days": "90"})
	for range 4 {
		g := c.sibling.AskFor(inProject("cat", "a"))
		if g.Status != grant.Approved || g.Policy == "" {
			t.Fatalf("not by the policy: %+v", g)
		}
		consume(t, c.sibling, g.ID)
	}
	var list []api.Suggestion
	c.owner.Get(api.PathStanding + "/suggestions").Want(200).Into(&list)
	if len(list) != 0 {
		t.Errorf("suggested from a policy's approvals: %+v", list)
	}
	if got := preview(c.owner, catIn("*")); got.Cards != 0 || got.Covered != 4 {
		t.Errorf("counted as cards: %+v", got)
	}
}
