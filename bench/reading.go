package main

import (
	"fmt"
	"runtime"
	"strings"
	"time"

	"mvdan.cc/sh/v3/syntax"

	"vogt/internal/catalog"
	"vogt/internal/reading"
)

// readLines are of the kinds that agents run all day.
var readLines = []struct{ name, line string }{
	{"a listing", "ls -la"},
	{"a pipe", "cat README.md | head -50"},
	{"git", "git status --short && git diff --stat HEAD~1"},
	{"a search", "rg -n 'func main' --glob '*.go' cmd internal"},
	{"find and xargs", "find . -name '*.go' -not -path './vendor/*' | xargs wc -l | sort -rn | head -20"},
	{"a loop", "for f in a b c; do echo \"== $f\"; sed -n '1,40p' \"src/$f.ts\"; done"},
	{"wrappers", "sudo env A=1 nice rm -rf /var/cache/x"},
	{"text in text", "bash -c \"cd /srv && for f in *.log; do gzip \\\"\\$f\\\"; done\""},
	{"a here-document", "cat > notes.md <<'EOF'\n# Notes\nrun rm -rf / never\nEOF"},
	{"substitutions", "x=$(git rev-parse --short HEAD); echo \"built $x on $(date +%F)\" >> build.log"},
	{"10 kB, one command", "echo " + strings.Repeat("word ", 2000)},
	{"40 kB, 1000 commands", strings.Repeat("cat file.txt | grep -n pattern; ls -la\n", 1000)},
	{"100 kB here-document", "cat <<'E'\n" + strings.Repeat("some line of text\n", 5500) + "E\n"},
}

// readingInProcess compares reading a line with parsing it alone, by the CPU
// time of many turns on one goroutine, collection of garbage included.
func (b *bench) readingInProcess() error {
	rd := reading.New(catalog.New())
	at := reading.Place{Cwd: "/srv/app", Home: "/home/u"}
	parser := syntax.NewParser()
	fmt.Printf("\n## Reading in process\n\nMedian CPU time of 9 rounds, entries read before; parse is mvdan.cc/sh alone, its parser reused.\n\n| line | parse µs | read µs | × parse | allocations | × parse |\n|---|---|---|---|---|---|\n")
	var sumParse, sumRead float64
	for _, l := range readLines {
		parse := func() {
			_, _ = parser.Parse(strings.NewReader(l.line), "") // the lines are accepted
		}
		read := func() { rd.Text(l.line, at) }
		p, pa := cost(parse)
		r, ra := cost(read)
		if len(l.line) < 1000 {
			sumParse, sumRead = sumParse+p, sumRead+r
		}
		fmt.Printf("| %s | %.1f | %.1f | %.1f | %d | %.1f |\n", l.name, p, r, r/p, ra, float64(ra)/float64(pa))
	}
	fmt.Printf("\nAll short lines together: %.1f µs to parse, %.1f µs to read, %.1f ×.\n", sumParse, sumRead, sumRead/sumParse)
	return nil
}

// cost is the median time of f in microseconds and its allocations.
func cost(f func()) (micros float64, allocations uint64) {
	f()
	turns := 1
	for start := processorTime(); processorTime()-start < 30*time.Millisecond; turns++ {
		f()
	}
	var times []time.Duration
	for range 9 {
		start := processorTime()
		for range turns {
			f()
		}
		times = append(times, (processorTime()-start)/time.Duration(turns))
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return float64(median(times).Nanoseconds()) / 1000, after.Mallocs - before.Mallocs
}
