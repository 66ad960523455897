package catalog

import (
	"testing"
)

// Every entry that Vogt brings holds to the format, whole.
func TestData(t *testing.T) {
	for _, name := range New().Names() {
		t.Run(name, func(t *testing.T) {
			text, ok := Source(name)
			if !ok {
				t.Fatal("no such file")
			}
			e, err := Parse("data/"+name, name, text, true)
			if err != nil {
				t.Fatal(err)
			}
			if e.SameAs != "" {
				if New().Entry(name) == nil {
					t.Errorf("same-as %s: there is no such entry", e.SameAs)
				}
				return
			}
			if len(e.Examples()) < 2 {
				t.Errorf("%d examples, want at least 2", len(e.Examples()))
			}
		})
	}
}
