package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestVite builds a page in a box, with the packages of the project as npm puts
// them there.
func TestVite(t *testing.T) {
	if testing.Short() {
		t.Skip("it fetches packages")
	}
	if have := nodeVersion(); have < 18 {
		t.Skipf("it wants node 18, and this machine has %d", have)
	}
	from, err := npmPackage("vite@5.4.21")
	if err != nil {
		t.Skipf("npm does not bring vite: %v", err)
	}
	home := t.TempDir()
	project := filepath.Join(home, "project")
	err = filepath.WalkDir(from, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(from, name)
		if err != nil {
			return err
		}
		return place(name, filepath.Join(project, "node_modules", rel))
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"index.html":   `<!doctype html><div id="app"></div><script type="module" src="/main.ts"></script>`,
		"main.ts":      "import { word } from './word';\nimport './look.css';\ndocument.querySelector('#app')!.textContent = word();\n",
		"word.ts":      "export const word = (): string => 'built-in-a-box';\n",
		"look.css":     "#app { color: green }\n",
		"package.json": `{"name": "page", "private": true, "type": "module", "scripts": {"build": "vite build"}}`,
	} {
		if err := os.WriteFile(filepath.Join(project, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	n := &desk{t: t, home: home, project: project, vogt: program(t, "vogt")}
	n.run(project, n.vogt, "confine", "--", "npm", "run", "build")
	built, err := filepath.Glob(filepath.Join(project, "dist/assets/*.js"))
	if err != nil || len(built) != 1 {
		t.Fatalf("built: %v, %v", built, err)
	}
	data, err := os.ReadFile(built[0])
	if err != nil || !strings.Contains(string(data), "built-in-a-box") {
		t.Errorf("%v: %s", err, data)
	}
	// And it serves what it has built, to the box itself.
	n.run(project, n.vogt, "confine", "--", "bash", "-c", `npx vite preview --port 4173 >log 2>&1 & until curl -sf http://localhost:4173/ -o page; do kill -0 $! || exit 1; done; grep -q assets page`)
}
