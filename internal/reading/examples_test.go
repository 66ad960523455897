package reading

import (
	"slices"
	"strings"
	"testing"

	"vogt/internal/catalog"
)

// The examples of every entry that Vogt brings hold.
func TestExamples(t *testing.T) {
	c := catalog.New()
	rd := New(c)
	n := 0
	for _, name := range c.Names() {
		text, _ := catalog.Source(name)
		e, err := catalog.Parse("data/"+name, name, text, true)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, x := range e.Examples() {
			n++
			r := rd.Text(x.Text, Place{})
			if got := ExampleEffects(&r); !slices.Equal(got, x.Want) {
				t.Errorf("data/%s:%d: %s: %s, want %s; %v", name, x.Line, x.Text, strings.Join(got, " "), strings.Join(x.Want, " "), r.Problems)
			}
		}
	}
	if n < 5000 {
		t.Errorf("%d examples: too few to say anything", n)
	}
}
