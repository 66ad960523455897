// Command gotest reads what `go test -json` writes, one run or several one
// after the other, and prints what `go test` would have printed, so that people
// and programs that know its lines can read on. At the end it lists every
// skipped test with its reason and counts all of them.
//
// It fails if a test failed and, when the environment says CI=true, if a test
// was skipped for something that .ci/run could have installed. It leaves out
// running the tests: .ci/test does that.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
)

func main() {
	os.Exit(Run(os.Stdin, os.Stdout, os.Getenv("CI") == "true"))
}

// event is a line of `go test -json` (go doc test2json) or, with ImportPath, of
// `go build -json` (go help buildjson).
type event struct {
	Action     string
	Package    string
	ImportPath string
	Test       string
	Output     string
}

type testName struct{ pkg, test string }

type skip struct {
	testName
	reason string
}

// summary is what is known of all runs so far.
type summary struct {
	out            io.Writer
	lines          map[testName][]string // of tests that have not ended
	failures       []string              // of the package that runs, in order
	passed, failed int
	skips          []skip
	broken         bool // a package failed
}

// Run copies the events of in to out and returns the exit code.
func Run(in io.Reader, out io.Writer, ci bool) int {
	s := &summary{out: out, lines: make(map[testName][]string)}
	scanner := bufio.NewScanner(in)
	scanner.Buffer(nil, 64<<20)
	for scanner.Scan() {
		var e event
		if line := scanner.Bytes(); json.Unmarshal(line, &e) == nil && e.Action != "" {
			s.add(e)
		} else {
			fmt.Fprintf(out, "%s\n", line) // not from the tests: `go` itself complains
		}
	}
	if err := scanner.Err(); err != nil {
		fmt.Fprintln(out, "gotest: reading the events:", err)
		s.broken = true
	}
	return s.close(ci)
}

func (s *summary) add(e event) {
	name := testName{e.Package, e.Test}
	switch {
	case e.Action == "build-output":
		io.WriteString(s.out, e.Output)
	case e.Action == "build-fail":
		s.broken = true
	case e.Test == "":
		s.addPackage(e)
	case e.Action == "output":
		s.lines[name] = append(s.lines[name], e.Output)
	case e.Action == "pass":
		s.passed++
		delete(s.lines, name)
	case e.Action == "fail":
		s.failed++
		s.failures = append(s.failures, s.story(name)...)
		delete(s.lines, name)
	case e.Action == "skip":
		s.skips = append(s.skips, skip{name, reason(s.story(name))})
		delete(s.lines, name)
	}
}

// addPackage handles events of a package as a whole.
func (s *summary) addPackage(e event) {
	switch e.Action {
	case "output":
		if text := strings.TrimSpace(e.Output); text == "PASS" || text == "" || strings.HasPrefix(text, "testing: warning: no tests to run") {
			return
		}
		if strings.HasPrefix(e.Output, "FAIL") || strings.HasPrefix(e.Output, "ok  ") {
			s.tell(e.Package)
		}
		io.WriteString(s.out, e.Output)
	case "fail":
		s.broken = true
		s.tell(e.Package)
	}
}

// tell prints what the failed tests of a package said, and what those said that
// never ended because their process did.
func (s *summary) tell(pkg string) {
	for _, line := range s.failures {
		io.WriteString(s.out, line)
	}
	s.failures = nil
	for name := range s.lines {
		if name.pkg == pkg {
			for _, line := range s.story(name) {
				io.WriteString(s.out, line)
			}
			delete(s.lines, name)
		}
	}
}

// story returns the lines of a test without those that only -v prints.
func (s *summary) story(name testName) []string {
	var story []string
	for _, line := range s.lines[name] {
		if !strings.HasPrefix(strings.TrimSpace(line), "=== ") {
			story = append(story, line)
		}
	}
	return story
}

var location = regexp.MustCompile(`^\s*\S+\.go:\d+: `)

// reason returns what a skipped test said.
func reason(story []string) string {
	var said []string
	for _, line := range story {
		if !strings.HasPrefix(strings.TrimSpace(line), "--- ") {
			said = append(said, strings.TrimSpace(location.ReplaceAllString(line, "")))
		}
	}
	if len(said) == 0 {
		return "no reason given"
	}
	return strings.Join(said, " ")
}

// installable recognises a skip for something that .ci/run installs, or ought
// to. A test says so by the words of its reason.
var installable = regexp.MustCompile(`(?i)\bapt(-get)? install\b|\bnot installed\b`)

// close prints the end and returns the exit code.
func (s *summary) close(ci bool) int {
	var missing int
	if len(s.skips) > 0 {
		fmt.Fprintln(s.out, "\nSkipped tests:")
	}
	for _, k := range s.skips {
		mark := ""
		if installable.MatchString(k.reason) {
			mark = " (installable)"
			missing++
		}
		fmt.Fprintf(s.out, "  %s %s: %s%s\n", k.pkg, k.test, k.reason, mark)
	}
	fmt.Fprintf(s.out, "\nTests with their subtests: %d passed, %d failed, %d skipped, %d of those for something that can be installed.\n", s.passed, s.failed, len(s.skips), missing)
	switch {
	case s.failed > 0 || s.broken:
		return 1
	case ci && missing > 0:
		fmt.Fprintln(s.out, "A test was skipped for something installable: add it to .ci/run.")
		return 1
	case s.passed == 0:
		fmt.Fprintln(s.out, "No test ran.")
		return 1
	default:
		return 0
	}
}
