package local

import (
	"errors"
	"strings"
	"testing"

	"vogt/internal/config"
)

const entry = "vogt-catalog 1\nprogram notes\nabout keeps notes\nparser getopt all-options\nform list : inert :\n"

func TestCatalog(t *testing.T) {
	files := func(list ...config.Named) func(string) ([]config.Named, error) {
		return func(folder string) ([]config.Named, error) {
			if folder != Folder {
				t.Errorf("entries are looked for in %s", folder)
			}
			return list, nil
		}
	}
	c, err := load(files(config.Named{Name: "notes", Path: Folder + "/notes", Content: []byte(entry)}))
	if err != nil || c.Entry("notes") == nil || c.Entry("ls") == nil {
		t.Errorf("an entry of the owner: %v", err)
	}
	for name, file := range map[string]config.Named{
		"another's name":    {Name: "other", Path: "p", Content: []byte(entry)},
		"Vogt's own":        {Name: "ls", Path: "p", Content: []byte(strings.Replace(entry, "notes\nabout", "ls\nabout", 1))},
		"not the format":    {Name: "notes", Path: "p", Content: []byte("program notes")},
		"an unknown effect": {Name: "notes", Path: "p", Content: []byte(strings.Replace(entry, "inert", "harmless", 1))},
	} {
		if _, err := load(files(file)); err == nil || !strings.Contains(err.Error(), "p") {
			t.Errorf("%s: %v", name, err)
		}
	}
	broken := errors.New("others can write it")
	if _, err := load(func(string) ([]config.Named, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Errorf("a folder that is not trusted: %v", err)
	}
}
