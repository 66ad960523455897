package flow_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"vogt/internal/catalog"
	"vogt/internal/coverage"
	"vogt/internal/flow"
	"vogt/internal/grant"
	"vogt/internal/reading"
)

// TestExamplesOfTheManual reads the tables of docs/standing.md and does what they say.
func TestExamplesOfTheManual(t *testing.T) {
	text, err := os.ReadFile("../../docs/standing.md")
	if err != nil {
		t.Fatal(err)
	}
	title := regexp.MustCompile("^With `--class ([a-z]+)`(?: in `([^`]+)`)?")
	command := regexp.MustCompile("`([^`]+)`")
	rd := reading.New(catalog.New())
	var p grant.Pattern
	cwd, rows := "", 0
	for _, line := range strings.Split(string(text), "\n") {
		if m := title.FindStringSubmatch(line); m != nil {
			var folders []string
			cwd = "/home/me/app"
			if m[2] != "" {
				folders, cwd = []string{m[2]}, m[2]
			}
			if p, err = grant.NewClass(grant.Class(m[1]), "*", folders, nil); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			continue
		}
		if cwd == "" || !strings.HasPrefix(line, "| `") {
			if strings.HasPrefix(line, "## ") {
				cwd = ""
			}
			continue
		}
		cells, want := line[:strings.LastIndex(strings.TrimSuffix(line, "|"), "|")], strings.Contains(line, "| covered |")
		if !want && !strings.Contains(line, "| asks: ") {
			t.Errorf("the row %q says neither covered nor asks", line)
		}
		for _, m := range command.FindAllStringSubmatch(cells, -1) {
			rows++
			r := rd.Text(m[1], reading.Place{Cwd: cwd, Home: "/home/me"})
			read := flow.Reading{Reading: r, Details: r.Details(), Risk: r.Risk}
			var where coverage.Where
			if p.Box != nil {
				where = coverage.Where{Profile: p.Box.Profile, Workspace: cwd, Offline: true}
			}
			covered, why := read.Coverable(), "it is critical"
			for _, call := range read.Covered() {
				if strings.HasPrefix(m[1], "./") {
					call.Elsewhere = true // as the door reports it
				}
				if covered {
					covered, why = coverage.Covers(&p, &call, where)
				}
			}
			if covered != want {
				t.Errorf("%s: class %s covers it: %v (%s), the manual says %v", m[1], p.Class, covered, why, want)
			}
		}
	}
	if rows < 48 {
		t.Errorf("only %d examples were found", rows)
	}
}
