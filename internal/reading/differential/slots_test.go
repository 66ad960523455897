//go:build linux && (amd64 || arm64)

package differential

import (
	_ "embed"
	"fmt"
	"hash/fnv"
	"strings"
	"testing"
	"time"
)

// slotsText holds places of the grammar, forms of a word and what runs a
// program, in three sections.
//
//go:embed testdata/slots.txt
var slotsText string

const (
	slotMark  = "◊"
	lineEnd   = "␤"
	extended  = "shopt -s extglob\n"
	slotShare = 12 // one of so many lines of three parts is read
	minReads  = 500
)

// slots are lines in which everything that bash expands somewhere stands
// everywhere: each of what runs a program in each place, and a share of them
// in each form of a word in each place.
func slots(t *testing.T) []string {
	t.Helper()
	sections := strings.Split(slotsText, "\n%% ")
	if len(sections) != 3 {
		t.Fatalf("slots.txt has %d sections, want 3", len(sections))
	}
	var parts [3][]string
	for i, section := range sections {
		for k, line := range strings.Split(section, "\n") {
			if line != "" && !strings.HasPrefix(line, "# ") && (i == 0 || k > 0) {
				parts[i] = append(parts[i], strings.ReplaceAll(line, lineEnd, "\n"))
			}
		}
	}
	seen := map[string]bool{}
	var all []string
	add := func(line string) {
		for _, line := range []string{line, extended + line} {
			if !seen[line] {
				seen[line] = true
				all = append(all, line)
			}
		}
	}
	for _, place := range parts[0] {
		for _, what := range parts[2] {
			add(strings.ReplaceAll(place, slotMark, what))
		}
		if !strings.Contains(place, slotMark) {
			continue
		}
		for _, form := range parts[1] {
			for _, what := range parts[2][:3] {
				line := strings.Replace(place, slotMark, strings.Replace(form, slotMark, what, 1), 1)
				sum := fnv.New32a()
				fmt.Fprint(sum, line)
				if sum.Sum32()%slotShare == 0 {
					add(strings.ReplaceAll(line, slotMark, "x"))
				}
			}
		}
	}
	return all
}

// Nothing happens in lines that reading takes for reads, whatever stands where
// something may be expanded.
func TestSlots(t *testing.T) {
	j := newJail(t, workers())
	read := readVogt()
	var all []sample
	lines := slots(t)
	for i, line := range lines {
		c := read.safely(line, workDir)
		if c.complete() && c.ReadOnly && (!testing.Short() || i%10 == 0) {
			all = append(all, sample{text: line})
		}
	}
	start := time.Now()
	sum := j.check(t, all, read)
	t.Logf("of %d lines %d are claimed to be reads and ran in %s", len(lines), sum.run, time.Since(start).Round(time.Millisecond))
	j.report(t, sum, read)
	if len(all) < minReads && !testing.Short() {
		t.Errorf("%d lines are claimed to be reads: the test has nothing to look at", len(all))
	}
}
