package explain

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"vogt/internal/catalog"
	"vogt/internal/reading"
	"vogt/internal/trap"
)

// What docs/reading.md shows is what `vogt read` prints in a folder of that
// name.
func TestReadingDocument(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "reading.md"))
	if err != nil {
		t.Fatal(err)
	}
	at := reading.Place{Cwd: "/home/you/app", Home: "/home/you"}
	rd := reading.New(catalog.New())
	blocks := regexp.MustCompile("(?s)```\n\\$ vogt read -- '([^\n]*)'\n(.*?)```\n").FindAllStringSubmatch(string(text), -1)
	for _, b := range blocks {
		r := rd.Text(b[1], at)
		if got := treeOf(t, &r, trap.Hints(b[1], r.File), Style{Home: at.Home, Project: at.Cwd}); got != b[2] {
			t.Errorf("%s\ngot\n%s\nwant\n%s", b[1], got, b[2])
		}
	}
	if len(blocks) == 0 {
		t.Error("no example was found")
	}
}
