package confine

import (
	"os"
	"path/filepath"
	"testing"
)

// TestMadeSettings has settings of agents that a box makes, where an empty folder
// in their place would keep the agents from working: they are put aside, and those
// that are there cannot be changed.
func TestMadeSettings(t *testing.T) {
	for _, name := range []string{"opencode.json", "opencode.jsonc", "crush.json", ".crush.json", ".aider.conf.yml", ".opencode/plugin/x.js", ".opencode/opencode.json"} {
		plant := "mkdir -p " + filepath.Dir(name) + "; echo planted > " + name
		b := newBox(t)
		b.outside(plant + "; rm " + name) // without a box it succeeds
		b.outside("rm -rf .opencode")
		_, out, err := b.run(plant)
		if _, there := os.Lstat(filepath.Join(b.workspace, name)); there == nil || err != nil || len(out.Changed) != 1 || out.Changed[0].Aside == "" {
			t.Errorf("%s was made: %+v, %v", name, out.Changed, err)
		}
		b.outside("rm -rf .opencode; mkdir -p " + filepath.Dir(name) + "; echo mine > " + name)
		b.run(plant)
		if got := b.outside("cat " + name); got != "mine\n" {
			t.Errorf("%s was changed to %q", name, got)
		}
	}
}
