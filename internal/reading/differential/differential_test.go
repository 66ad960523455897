//go:build linux && (amd64 || arm64)

package differential

import (
	"cmp"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	defaultLines = 1500 // generated lines; VOGT_DIFFERENTIAL overrides
	shortLines   = 300
	maxShown     = 25 // faults of a class that are reduced and shown
)

// finding is a fault with the line that showed it.
type finding struct {
	fault
	where string
	line  string
	short string // reduced from line
}

// tally is what a run over many lines gave.
type tally struct {
	run, parse, complete, opaque, executes, readOnly, expired, events int
	samples, sampleComplete, sampleOpaque                             int
	findings                                                          []finding
	unclaimed                                                         []string // samples that are not claimed
}

// check runs every line and compares what happened with what read claims.
func (j *jail) check(t *testing.T, lines []sample, read reader) *tally {
	t.Helper()
	var (
		sum    tally
		group  sync.WaitGroup
		queue  = make(chan int)
		runs   = make([]run, len(lines))
		failed = make([]error, len(lines))
	)
	for range cap(j.idle) {
		group.Go(func() {
			for i := range queue {
				runs[i], failed[i] = j.run(lines[i].text)
			}
		})
	}
	for i := range lines {
		queue <- i
	}
	close(queue)
	group.Wait()
	for i, line := range lines {
		if failed[i] != nil {
			t.Error(failed[i])
			continue
		}
		sum.add(line, read.safely(line.text, workDir), runs[i])
	}
	slices.SortStableFunc(sum.findings, func(a, b finding) int {
		return cmp.Or(cmp.Compare(a.Class, b.Class), cmp.Compare(a.Key, b.Key), cmp.Compare(len(a.line), len(b.line)), cmp.Compare(a.line, b.line))
	})
	return &sum
}

func (sum *tally) add(line sample, c claim, r run) {
	sum.run++
	sum.events += len(r.Events)
	if r.TimedOut {
		sum.expired++
	}
	if r.Parses {
		sum.parse++
		if c.complete() {
			sum.complete++
		}
		if c.Opaque {
			sum.opaque++
		}
		if c.Executes {
			sum.executes++
		}
		if c.ReadOnly {
			sum.readOnly++
		}
		if line.where != "" && !line.blind {
			sum.samples++
			if c.ParseOK && !c.Opaque {
				sum.sampleComplete++
			} else {
				sum.unclaimed = append(sum.unclaimed, line.text)
			}
			if c.Opaque {
				sum.sampleOpaque++
			}
		}
	}
	for _, f := range compare(c, r) {
		sum.findings = append(sum.findings, finding{fault: f, where: line.where, line: line.text})
	}
}

// report logs the numbers and fails the test for each fault of the first class
// that is not known, with a short line that shows it.
func (j *jail) report(t *testing.T, sum *tally, read reader) {
	t.Helper()
	t.Logf("%d lines ran, %d parse, %d are claimed completely, %d opaque, %d executing, %d read-only; %d ran out of time; %d events",
		sum.run, sum.parse, sum.complete, sum.opaque, sum.executes, sum.readOnly, sum.expired, sum.events)
	counts := map[class]int{}
	excused := make([]int, len(known))
	var grave, slight []finding
	for _, f := range sum.findings {
		counts[f.Class]++
		switch i := slices.IndexFunc(known, func(k knownFault) bool { return k.is(f) }); {
		case i >= 0:
			excused[i]++
		case f.Class.second():
			slight = append(slight, f)
		default:
			grave = append(grave, f)
		}
	}
	for class := range classes {
		if counts[class] > 0 {
			t.Logf("%d faults of class %s", counts[class], class)
		}
	}
	for i, n := range excused {
		if n > 0 {
			t.Logf("%d of them are known: %s: %s", n, known[i].class, known[i].reason)
		}
	}
	for _, f := range j.shortest(grave, read) {
		t.Errorf("%s: %q\n  happened: %s\n  claimed: %s\n  in: %s %q", f.Class, f.short, f.Detail, read.safely(f.short, workDir), f.where, f.line)
	}
	if searching() {
		slight = j.shortest(slight, read)
	}
	for i, f := range slight {
		if i == maxShown/2 {
			t.Logf("and %d more that are about detail", len(slight)-i)
			break
		}
		t.Logf("%s: %q\n  happened: %s\n  claimed: %s", f.Class, cmp.Or(f.short, f.line), f.Detail, read.safely(cmp.Or(f.short, f.line), workDir))
	}
}

// searching tells whether somebody looks for faults and has time.
func searching() bool { return os.Getenv("VOGT_DIFFERENTIAL") != "" }

// knownFault is a fault that reading has and is known to have.
type knownFault struct {
	class  class
	key    string         // of the fault; empty for any
	line   *regexp.Regexp // what the line contains
	reason string
}

func (k knownFault) is(f finding) bool {
	return k.class == f.Class && (k.key == "" || k.key == f.Key) && k.line.MatchString(f.line)
}

// known are the faults that do not fail a test, each with the reason.
var known = []knownFault{
	{faultParse, "", regexp.MustCompile(`\bextglob\b`), "bash -n does not carry out shopt, which decides how later lines are parsed; such a text is opaque"},
	{faultParse, "", regexp.MustCompile(`coproc \S+ coproc`), "a coprocess of a coprocess is taken; such a text is opaque"},
	{faultParse, "", regexp.MustCompile(`\btime;;`), "time with nothing behind it is taken before ;;"},
}

// shortest reduces findings, those first whose key is new, and leaves out those
// that show nothing new. Of very many it takes some.
func (j *jail) shortest(findings []finding, read reader) []finding {
	var rest, shown []finding
	keys := map[string]bool{}
	for _, f := range findings {
		if key := fmt.Sprint(f.Class, f.Key); !keys[key] {
			keys[key] = true
			shown = append(shown, f)
		} else {
			rest = append(rest, f)
		}
	}
	each := map[class]int{}
	seen := map[class][]string{}
	var out []finding
	for _, f := range append(shown, rest...) {
		seenBefore := slices.ContainsFunc(seen[f.Class], func(short string) bool { return strings.Contains(f.line, short) })
		if seenBefore || each[f.Class] >= maxShown {
			continue
		}
		each[f.Class]++
		f.short = reduce(f.line, 400, func(line string) bool {
			result, err := j.run(line)
			return err == nil && slices.ContainsFunc(compare(read.safely(line, workDir), result), func(other fault) bool {
				return other.Class == f.Class && other.Key == f.Key
			})
		})
		if !slices.Contains(seen[f.Class], f.short) {
			seen[f.Class] = append(seen[f.Class], f.short)
			out = append(out, f)
		}
	}
	slices.SortStableFunc(out, func(a, b finding) int { return cmp.Compare(a.Class, b.Class) })
	return out
}

func (c claim) String() string {
	var flags []string
	for _, flag := range []struct {
		set  bool
		name string
	}{{c.ParseOK, "parse_ok"}, {c.ReadOnly, "read_only"}, {c.Inert, "inert"}, {c.Network, "network"}, {c.Writes, "writes"},
		{c.Destructive, "destructive"}, {c.Privilege, "privilege"}, {c.Executes, "executes"}, {c.Opaque, "opaque"}} {
		if flag.set {
			flags = append(flags, flag.name)
		}
	}
	return fmt.Sprintf("%q %s, writes %q, deletes %q, sinks %q", c.Programs, strings.Join(flags, " "), c.Writing, c.Deleting, c.Sinks)
}

// generated are lines of the grammar.
func generated(seed uint64, n int) []sample {
	g := newGrammar(seed)
	lines := make([]sample, n)
	for i := range lines {
		lines[i].text = g.line()
	}
	return lines
}

// amount is how many lines are generated.
func amount(t *testing.T) uint64 {
	if testing.Short() {
		return number(t, "VOGT_DIFFERENTIAL", shortLines)
	}
	return number(t, "VOGT_DIFFERENTIAL", defaultLines)
}

// number is what the environment says, or usual.
func number(t *testing.T, name string, usual uint64) uint64 {
	text := os.Getenv(name)
	if text == "" {
		return usual
	}
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil || n < 1 {
		t.Fatalf("%s is %q: give a number above 0", name, text)
	}
	return n
}

func workers() int { return max(2, min(8, runtime.NumCPU())) }

const (
	// minParse is the share of generated lines that bash must accept, in
	// percent, for the grammar to be worth anything.
	minParse = 90
	// minClaimed and maxOpaque are what a reader must reach with the samples,
	// in percent: who claims nothing is never wrong.
	minClaimed = 90
	maxOpaque  = 8
)

// Nothing happens in generated lines that reading does not claim.
func TestGenerated(t *testing.T) {
	j := newJail(t, workers())
	start := time.Now()
	sum := j.check(t, generated(number(t, "VOGT_DIFFERENTIAL_SEED", seed), int(amount(t))), readVogt())
	t.Logf("%d lines ran in %s", sum.run, time.Since(start).Round(time.Millisecond))
	j.report(t, sum, readVogt())
	if sum.parse*100 < sum.run*minParse {
		t.Errorf("bash accepts %d of %d generated lines, want %d %%", sum.parse, sum.run, minParse)
	}
}

// Nothing happens in the lines that use how bash evaluates, each of them once.
func TestHostile(t *testing.T) {
	j := newJail(t, workers())
	var all []sample
	g := newGrammar(seed)
	for _, kind := range g.hostile {
		all = append(all, sample{text: kind.write(g)})
	}
	for _, text := range g.tricks {
		all = append(all, sample{text: text})
	}
	if testing.Short() {
		all = slices.DeleteFunc(all, func(sample) bool { return g.rng.IntN(10) > 0 })
	}
	start := time.Now()
	sum := j.check(t, all, readVogt())
	t.Logf("%d lines ran in %s", sum.run, time.Since(start).Round(time.Millisecond))
	j.report(t, sum, readVogt())
}

// Nothing happens in written lines that reading does not claim, and it claims
// to know most of them.
func TestSamples(t *testing.T) {
	j := newJail(t, workers())
	start := time.Now()
	sum := j.check(t, samples(t), readVogt())
	t.Logf("%d lines ran in %s", sum.run, time.Since(start).Round(time.Millisecond))
	j.report(t, sum, readVogt())
	t.Logf("of %d samples that can be known, %d are claimed and %d opaque", sum.samples, sum.sampleComplete, sum.sampleOpaque)
	if sum.sampleComplete*100 < sum.samples*minClaimed || sum.sampleOpaque*100 >= sum.samples*maxOpaque {
		t.Errorf("%d of %d samples are claimed and %d opaque, want at least %d %% and less than %d %%; not claimed:\n%s", sum.sampleComplete,
			sum.samples, sum.sampleOpaque, minClaimed, maxOpaque, strings.Join(sum.unclaimed, "\n"))
	}
}
