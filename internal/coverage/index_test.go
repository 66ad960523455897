package coverage

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"vogt/internal/detail"
	"vogt/internal/grant"
)

// TestIndexLeavesNothingOut compares with what looks at every pattern: the same
// ones decide, over calls and patterns of all kinds.
func TestIndexLeavesNothingOut(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	pick := func(list []string) string { return list[rnd.IntN(len(list))] }
	some := func(list []string) (out []string) {
		for range rnd.IntN(3) {
			out = append(out, pick(list))
		}
		return out
	}
	programs := []string{"cat", "git", "rm", "curl", "cd"}
	globs := []string{"/p/**", "/p/*", "/p/a", "/p/a/**", "/p/x*/b", "/p/**/b", "/x*/a", "/q/**", "/p", "/p/*.d/**"}
	paths := []string{"/p", "/p/a", "/p/a/b", "/p/xy/b", "/xx/a", "/q", "/q/a/b", "/", "/p/*", "/p/../q", "p/a", "", "/p/z.d/c", "/p//a"}
	boxes := []string{"", "", "build", "read"}
	deeds := []grant.Deed{grant.DeedRead, grant.DeedWrite, grant.DeedDelete, grant.DeedConnect, grant.DeedAny}
	effects := []detail.Effects{0, detail.Writes, detail.Destroys, detail.Writes | detail.Destroys, detail.Contacts, detail.Executes, detail.Opaque}
	risks := []detail.Risk{detail.Low, detail.Medium, detail.High}

	covered, narrowed := 0, 0
	for range 3000 {
		var all []*grant.Standing
		for n := range rnd.IntN(30) {
			p := grant.Pattern{
				Agent: "*", Programs: some(programs), Does: deeds[:1+rnd.IntN(len(deeds))], Read: some(globs), Write: some(globs),
				Hosts: some([]string{"a.example"}), MaxRisk: risks[rnd.IntN(len(risks))],
			}
			if rnd.IntN(4) == 0 {
				p.Operations = []string{pick(programs) + ".x"}
			}
			if box := pick(boxes); box != "" {
				p.Box = &grant.Box{Profile: box, Workspace: pick([]string{"", "/p/**"})}
			}
			all = append(all, &grant.Standing{ID: fmt.Sprint(n), Pattern: p, Until: grant.Millis(10 - rnd.IntN(10)/9*10)})
		}
		var calls []Call
		for range 1 + rnd.IntN(3) {
			program := pick(programs)
			c := Call{
				Effects: effects[rnd.IntN(len(effects))], Read: some(paths), Write: some(paths), Cwd: pick(paths),
				Literal: rnd.IntN(5) > 0, Carrier: rnd.IntN(4) == 0,
				Detail: detail.Command{Program: program, Operation: program + ".x", Risk: risks[rnd.IntN(len(risks))]},
			}
			if rnd.IntN(9) == 0 {
				c.Detail, c.Hosts = detail.Network{Host: "a.example"}, []string{"a.example"}
			}
			calls = append(calls, c)
		}
		w := Where{Profile: pick(boxes), Workspace: "/p/a", Offline: true}
		found := NewIndex(all).For(calls, w)
		if !slices.IsSortedFunc(found, func(a, b *grant.Standing) int { return slices.Index(all, a) - slices.Index(all, b) }) {
			t.Fatal("found in another order than they are tried in")
		}
		want, wantMissing := Standing(calls, w, all, 5)
		got, gotMissing := Standing(calls, w, found, 5)
		if !slices.Equal(got, want) || !slices.Equal(gotMissing, wantMissing) {
			t.Fatalf("of %d found %d: %v and missing %v, want %v and %v\ncalls %+v\nwhere %+v", len(all), len(found), got, gotMissing, want, wantMissing, calls, w)
		}
		if len(want) > 0 {
			covered++
		}
		if len(found) < len(all) {
			narrowed++
		}
	}
	if covered < 100 || narrowed < 1000 {
		t.Errorf("only %d were covered and %d narrowed: the comparison says little", covered, narrowed)
	}
}

// TestIndexIsShort: one call is compared with the patterns of its own folder or
// program, however many there are of others.
func TestIndexIsShort(t *testing.T) {
	const many = 2000
	cat := Call{Detail: detail.Command{Program: "cat"}, Read: []string{"/other/7/a"}, Cwd: "/p"}
	for _, test := range []struct {
		name string
		of   func(i int) grant.Pattern
		call Call
		want int
	}{
		{"any program, other folders", func(i int) grant.Pattern { return grant.Pattern{Read: []string{fmt.Sprintf("/other/%d/**", i)}} }, cat, 1},
		{"other programs, the same folder", func(i int) grant.Pattern {
			return grant.Pattern{Programs: []string{fmt.Sprint("p", i)}, Read: []string{"/other/**"}}
		}, cat, 0},
		{"other boxes", func(int) grant.Pattern { return grant.Pattern{Box: &grant.Box{Profile: "build"}} }, cat, 0},
		{"the working folder", func(i int) grant.Pattern { return grant.Pattern{Read: []string{fmt.Sprintf("/other/%d/**", i)}} },
			Call{Detail: detail.Command{Program: "ls"}, Cwd: "/other/3"}, 1},
	} {
		var all []*grant.Standing
		for i := range many {
			all = append(all, &grant.Standing{Pattern: test.of(i)})
		}
		if found := NewIndex(all).For([]Call{test.call}, Where{}); len(found) != test.want {
			t.Errorf("%s: %d found, want %d", test.name, len(found), test.want)
		}
	}
}
