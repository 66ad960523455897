package coverage

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"vogt/internal/detail"
)

func on(program string, action detail.Action, links ...string) detail.Command {
	d := detail.Command{Program: program, Operation: program + ".show", Action: action, Risk: detail.Medium, Chain: []detail.Resource{}}
	for _, l := range links {
		name, value, _ := strings.Cut(l, "=")
		key := "path"
		if name != "read" && name != "write" && name != "delete" {
			key = "name"
		}
		d.Chain = append(d.Chain, detail.Resource{Name: name, Selector: map[string]string{key: value}})
	}
	return d
}

func TestWidenings(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		d    detail.Command
		want string
	}{
		{on("cat", "read", "read=/home/p/a.txt"), "exact sibling-type=/home/p/*.txt directory=/home/p/* subtree=/home/p/**"},
		{on("cat", "read", "read=/home/p/a"), "exact directory=/home/p/* subtree=/home/p/**"},
		{on("cat", "read", "read=/home/p/.env"), "exact directory=/home/p/* subtree=/home/p/**"},
		{on("cat", "read", "read=/home/p/a", "read=/home/p/b"), "exact directory=/home/p/* subtree=/home/p/**"},
		{on("cat", "read", "read=/home/p/a", "read=/home/q/b"), "exact directory=/home/p/*,/home/q/* subtree=/home/p/**,/home/q/**"},
		{on("touch", "write", "write=/home/p/a"), "exact directory=/home/p/* subtree=/home/p/**"},
		{on("cat", "read", "read=/etc/passwd"), "exact"},
		{on("cat", "read", "read=/a"), "exact"},
		{on("cat", "read", "read=a"), "exact"},
		{on("cat", "read", "read=/home/p/*"), "exact"},
		{on("cat", "read", "read=/home/p/a", "read=/etc/passwd"), "exact"},
		{on("rm", "delete", "delete=/home/p/a"), "exact"},
		{on("date", "read"), "exact"},
	} {
		var got []string
		for _, w := range Widenings(test.d) {
			var globs []string
			for _, r := range w.Detail.Chain {
				globs = append(globs, r.Selector["path"])
			}
			if w.Scope == "exact" {
				got = append(got, "exact")
			} else {
				got = append(got, w.Scope+"="+strings.Join(globs, ","))
			}
			if w.Scope != "exact" && !strings.Contains(w.Label, globs[0]) {
				t.Errorf("the label %q does not say %s", w.Label, globs[0])
			}
		}
		if fmt.Sprint(strings.Join(got, " ")) != test.want {
			t.Errorf("%+v: %s, want %s", test.d.Chain, got, test.want)
		}
	}
}

func TestWidened(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		d    detail.Command
		want string // the pattern's lists, or the error
	}{
		{on("cat", "read", "read=/home/p/*"), "[cat] [cat.show] [read] [/home/p/*] []"},
		{on("cp", "write", "read=/home/p/a", "write=/home/q/**"), "[cp] [cp.show] [read write] [/home/p/a] [/home/q/**]"},
		{on("rm", "delete", "delete=/home/p/**"), "cannot permit delete"},
		{on("cat", "delete", "read=/home/p/**"), "cannot permit delete"},
		{on("cat", "read", "write=/home/p/**"), "cannot permit read"},
		{on("cat", "read", "read=/home/p/../**"), "names paths"},
		{on("curl", "connect", "host=example.com"), "names paths"},
		{on("gh", "read", "repo=a"), "names paths"},
		{on("date", "read"), "anywhere"},
	} {
		p, err := Widened(Widening{"directory", "x", test.d}.Wire())
		got := fmt.Sprint(p.Programs, p.Operations, p.Does, p.Read, p.Write)
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, test.want) {
			t.Errorf("%+v: %s, want %s", test.d.Chain, got, test.want)
		}
	}
}

func TestSimilar(t *testing.T) {
	t.Parallel()
	asked := []detail.Detail{on("cat", "read", "read=/p/a"), on("touch", "write", "write=/p/a"), detail.Network{Host: "x"}}
	for _, test := range []struct {
		permitted detail.Detail
		want      []int
	}{
		{on("cat", "read", "read=/p/b"), []int{0}},
		{on("cat", "read", "read=/p/a"), nil},
		{on("cat", "read", "read=/p/b", "read=/p/c"), nil},
		{on("cat", "write", "read=/p/b"), nil},
		{on("tac", "read", "read=/p/b"), nil},
		{on("touch", "write", "write=/q"), []int{1}},
		{detail.Network{Host: "y"}, nil},
		{detail.Command{Program: "cat", Operation: "cat.show", Action: "read"}, nil},
	} {
		if got := Similar(asked, []detail.Detail{test.permitted}); !slices.Equal(got, test.want) {
			t.Errorf("%+v: %v, want %v", test.permitted, got, test.want)
		}
	}
}
