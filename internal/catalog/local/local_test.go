package local

import (
	"errors"
	"strings"
	"testing"

	"vogt/internal/config"
)

// entry is an entry of a program with a body of its own.
func entry(name, body string) config.Named {
	return config.Named{Name: name, Path: Folder + "/" + name, Content: []byte("vogt-catalog 1\nprogram " + name + "\n" + body + "\n")}
}

const body = "about keeps notes\nparser getopt all-options\nform list : inert :"

// folder is a folder with these files.
func folder(t *testing.T, files ...config.Named) func(string, func(string) bool) ([]config.Named, error) {
	return func(path string, wanted func(string) bool) ([]config.Named, error) {
		if path != Folder {
			t.Errorf("entries are looked for in %s", path)
		}
		var out []config.Named
		for _, f := range files {
			if wanted(f.Name) {
				out = append(out, f)
			}
		}
		return out, nil
	}
}

func TestCatalog(t *testing.T) {
	c, left, err := load(folder(t, entry("notes", body), entry("jot", "same-as notes"), entry("lsx", "same-as ls")))
	if err != nil || len(left) > 0 || c.Entry("notes") == nil || c.Entry("jot") != c.Entry("notes") || c.Entry("lsx").Name != "ls" {
		t.Errorf("entries of the owner: %v, %v", err, left)
	}
}

// One bad file costs its own program, and nothing else.
func TestCatalogLeavesBadFilesOut(t *testing.T) {
	alien := entry("jot", body)
	alien.Name, alien.Path = "other", Folder+"/other"
	for name, tt := range map[string]struct {
		file   config.Named
		reason string
		own    bool
	}{
		"another's name":       {alien, Folder + "/other:2: ", false},
		"Vogt's own":           {entry("ls", body), Folder + "/ls: ls is in Vogt's own catalog", true},
		"Vogt's own, broken":   {entry("ls", "bogus"), Folder + "/ls: ls is in Vogt's own catalog", true},
		"not the format":       {config.Named{Name: "other", Path: Folder + "/other", Content: []byte("program other")}, Folder + "/other:1: ", false},
		"an unknown effect":    {entry("other", strings.Replace(body, "inert", "harmless", 1)), Folder + "/other:5: unknown effect", false},
		"a version":            {entry("python3.99", "bogus"), Folder + "/python3.99:3: ", false},
		"no file":              {config.Named{Name: "other", Path: Folder + "/other", Unusable: &config.UnusableError{Reason: "it is a folder"}}, "it is a folder", false},
		"a name of nothing":    {entry("other", "same-as nonesuch"), "same-as nonesuch, which is not in the catalog", false},
		"a name of itself":     {entry("other", "same-as other"), "same-as other, which", false},
		"what is left out too": {entry("other", "same-as broken"), "same-as broken, which", false},
	} {
		c, left, err := load(folder(t, entry("notes", body), entry("broken", "bogus"), tt.file))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		last := left[len(left)-1]
		if len(left) != 2 || !strings.Contains(last.Reason, tt.reason) || last.Path != tt.file.Path || last.Program != tt.file.Name || last.Own != tt.own {
			t.Errorf("%s: %+v", name, left)
		}
		if c.Entry("notes") == nil || c.Entry("ls") == nil || c.Entry("ls").Source == tt.file.Path {
			t.Errorf("%s: other programs are not what they were", name)
		}
		if known := c.Entry(tt.file.Name) != nil; known != tt.own {
			t.Errorf("%s: the program is known: %v", name, known)
		}
	}
}

// A file that others could have written ends it: nobody knows what else they
// did there.
func TestCatalogRefusesWhatOthersWrote(t *testing.T) {
	broken := errors.New("others can write it")
	c, _, err := load(func(string, func(string) bool) ([]config.Named, error) { return nil, broken })
	if !errors.Is(err, broken) || c != nil {
		t.Errorf("a folder that is not trusted: %v", err)
	}
}

func TestIsEntry(t *testing.T) {
	for _, name := range []string{"notes", "python3.12", "gcc-12", "a.out", "foo.exe", "readmeter", "x.b", "notes.txt", "#", "c++"} {
		if want := name != "#"; IsEntry(name) != want {
			t.Errorf("%q is an entry: %v", name, !want)
		}
	}
	for _, name := range []string{
		"README", "readme", "README.md", "README.txt", "LICENSE.md", "notes~", ".#notes", "#notes#", ".notes.swp", "notes.bak", "notes.orig", "notes.rej",
		"notes.dpkg-new", "notes.dpkg-old", "notes.dpkg-dist", "notes.rpmsave", "notes.rpmnew", ".", ".git", ".md", "",
	} {
		if IsEntry(name) {
			t.Errorf("%q counts as an entry", name)
		}
	}
}
