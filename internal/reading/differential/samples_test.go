package differential

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// sample is a line that somebody wrote down.
type sample struct {
	where string
	text  string
	blind bool // nobody can know from the text what it does; left out of the shares
}

// samples are the lines of testdata/lines.txt, and those of the corpus that
// VOGT_READ_CORPUS names.
func samples(t *testing.T) []sample {
	t.Helper()
	data, err := os.ReadFile("testdata/lines.txt")
	if err != nil {
		t.Fatal(err)
	}
	all := lines("lines.txt", string(data))
	if name := os.Getenv("VOGT_READ_CORPUS"); name != "" {
		all = append(all, corpus(t, name)...)
	}
	return all
}

// lines reads a file of testdata: "# " begins a comment, "## " a section, ␤
// stands for a line's end within a line. What is in sections whose name begins
// with "blind" cannot be known from the text.
func lines(name, text string) []sample {
	var all []sample
	blind := false
	for i, line := range strings.Split(text, "\n") {
		switch {
		case strings.HasPrefix(line, "## "):
			blind = strings.HasPrefix(line, "## blind")
		case line == "", strings.HasPrefix(line, "# "):
		default:
			all = append(all, sample{fmt.Sprintf("%s:%d", name, i+1), strings.ReplaceAll(line, "␤", "\n"), blind})
		}
	}
	return all
}

// corpus reads a file with one JSON object a line. What programs in other
// languages do cannot be known; their ids begin with "interp".
func corpus(t *testing.T, name string) []sample {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []sample
	scanner := bufio.NewScanner(f)
	scanner.Buffer(nil, 16<<20)
	for n := 1; scanner.Scan(); n++ {
		var row struct{ ID, Command string }
		if err := json.Unmarshal(scanner.Bytes(), &row); err != nil {
			t.Fatalf("%s:%d: %v", name, n, err)
		}
		if strings.ContainsRune(row.Command, 0) {
			t.Logf("%s has a NUL byte, which no argument can hold: not run", row.ID)
			continue
		}
		all = append(all, sample{row.ID, row.Command, strings.HasPrefix(row.ID, "interp")})
	}
	if err := scanner.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

var wordPattern = regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_.+-]*`)

// shellWords are read by the shell itself and are left without a file, as is the
// name that stands for a program that is not there.
var shellWords = strings.Fields(`if then else elif fi for while until do done case esac in function select time coproc
	cd export eval exec exit set unset shift trap read declare local source alias return break continue let type wait
	command builtin mapfile readarray getopts hash umask ulimit nosuch`)

// words are the names in the lines that could turn out to be programs.
func words(lines []sample) []string {
	var all []string
	for _, line := range lines {
		all = append(all, wordPattern.FindAllString(line.text, -1)...)
	}
	slices.Sort(all)
	all = slices.Compact(all)
	return slices.DeleteFunc(all, func(word string) bool {
		return slices.Contains(shellWords, word) || len(word) > 40
	})
}
