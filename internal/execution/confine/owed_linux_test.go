package confine

import (
	"os"
	"path/filepath"
	"testing"
)

// TestOwed makes the comparison of a box whose starter was killed when the next
// box starts, and once.
func TestOwed(t *testing.T) {
	need(t, "git")
	b := newBox(t)
	b.outside(identity + "git init -q; git commit -q --allow-empty -m one; mkdir ../other")
	h, err := hold()
	if err != nil {
		t.Fatal(err)
	}
	s := &resolver{request: b.request, profile: b.request.Profile}
	s.request.Program, s.request.Argv = "/bin/true", []string{"true"}
	p, missing, err := s.resolve()
	if err != nil {
		t.Fatal(err)
	}
	if err := h.place(missing, s.gits, nil, ""); err != nil {
		t.Fatal(err)
	}
	before, err := look(append(s.watched, p.Guarded...), snapshot{})
	if err != nil {
		t.Fatal(err)
	}
	owed, err := h.owe(p, s, before)
	if err != nil {
		t.Fatal(err)
	}
	if _, out, err := b.run("true"); err != nil || len(out.Earlier) > 0 {
		t.Errorf("a box that still runs is taken for one that was killed: %v, %v", out.Earlier, err)
	}
	b.outside("git init -q n; printf " + monitor + " > n/.git/config; echo x > .git/commondir")
	// What a kill of the starter does: the kernel takes its locks back.
	owed.f.Close()
	h.list.Close()
	h.gate.Close()
	_, out, err := b.run("true")
	if err != nil || out.Code != 0 || len(out.Changed) > 0 {
		t.Errorf("the next box: %+v, %v", out, err)
	}
	var aside []string
	for _, c := range out.Earlier {
		if c.Aside != "" {
			aside = append(aside, filepath.Base(c.Path))
		}
	}
	if len(aside) != 2 {
		t.Errorf("put aside: %v of %v", aside, out.Earlier)
	}
	for _, name := range []string{"n/.git/config", ".git/commondir"} {
		if _, err := os.Lstat(filepath.Join(b.workspace, name)); err == nil {
			t.Errorf("%s is still there", name)
		}
	}
	if _, out, err := b.run("true"); err != nil || len(out.Earlier) > 0 {
		t.Errorf("it is made again: %v, %v", out.Earlier, err)
	}
}
