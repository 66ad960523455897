package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"vogt/cmd/vogt/messages"
	"vogt/internal/explain"
	"vogt/internal/reading"
	"vogt/internal/trap"
)

func newReadCommand(e *env) *cobra.Command {
	var lines bool
	var lang string
	cmd := &cobra.Command{
		Use:   "read [--jsonl] -- LINE | ARGUMENT…",
		Short: "Say what a command line would do, without running it",
		Long: `One argument is read as a line of bash, several as an argument list. Nothing is
run and no file of the line is opened. The answer shows every program that would
start, what is read, written, deleted and contacted, the risk and the reason for
it, and what cannot be known from the text.

With --jsonl each line of standard input is an object with "id", "command" and
"cwd"; each answer is an object on a line, in the same order. A line that cannot
be read is answered with an object with "error", and the exit code is then 64.

The tree is in the language of LC_ALL, LC_MESSAGES or LANG, and coloured unless
NO_COLOR is set. JSON is English, whatever the locale; --lang de asks for German.`,
		Example: `  vogt read -- 'find . -name "*.tmp" -print0 | xargs -0 rm -f'
  vogt read --json -- git push --force`,
		Args: cobra.ArbitraryArgs,
		RunE: command(func(cmd *cobra.Command, args []string) error {
			say, err := e.answerLanguage(lang, lines)
			if err != nil {
				return err
			}
			if lines && len(args) > 0 {
				return &usageError{text: e.text(messages.ReadLinesTakesNone)}
			}
			rd, err := e.reader()
			if err != nil {
				return err
			}
			if lines {
				return e.readLines(rd, say)
			}
			return e.readOne(rd, args, say)
		}),
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		return &usageError{text: e.text(messages.ReadDashes, err.Error())}
	})
	cmd.Flags().BoolVar(&lines, "jsonl", false, "read objects from standard input, one a line, and answer each on a line")
	cmd.Flags().StringVar(&lang, "lang", "", "the answer's `LANGUAGE`, en or de (default: the locale's; JSON is English)")
	return cmd
}

// answerLanguage is the language of an answer. Programs get English unless
// they ask for another one: what they read does not depend on the locale.
func (e *env) answerLanguage(flag string, lines bool) (trap.Language, error) {
	switch {
	case flag == "de", flag == "" && !lines && !e.json && e.lang == messages.German:
		return trap.German, nil
	case flag == "en", flag == "":
		return trap.English, nil
	}
	return trap.English, &usageError{text: e.text(messages.ReadLanguage, flag)}
}

// reader is the catalog that Vogt brings, with the entries of this machine's
// owner.
func (e *env) reader() (*reading.Reader, error) {
	c, err := e.catalog()
	if err != nil {
		return nil, err
	}
	return reading.New(c), nil
}

func (e *env) readOne(rd *reading.Reader, args []string, lang trap.Language) error {
	cwd, err := os.Getwd()
	if err != nil {
		cwd = ""
	}
	at := reading.Place{Cwd: cwd, Home: e.getenv("HOME")}
	var r reading.Reading
	text := ""
	switch len(args) {
	case 0:
		return &usageError{text: e.text(messages.ReadWhat)}
	case 1:
		if text = args[0]; strings.TrimSpace(text) == "" {
			return &usageError{text: e.text(messages.ReadEmpty)}
		}
		r = rd.Text(text, at)
	default:
		if r, err = rd.Argv(args, "", at); err != nil {
			return &usageError{text: err.Error()}
		}
		text = reading.Line(args)
	}
	hints := trap.Hints(text, r.File)
	if e.json {
		return e.print(explain.Of("", text, &r, hints, lang), nil)
	}
	return explain.Tree(e.stdout, text, &r, hints, explain.Style{
		German: lang == trap.German, Colour: e.colour(), Home: at.Home, Project: at.Cwd, Windows: runtime.GOOS == "windows",
	})
}

// lineLimit bounds one line of --jsonl.
const lineLimit = 16 << 20

// asked is one line of --jsonl.
type asked struct {
	ID      json.RawMessage `json:"id"`
	Command string          `json:"command"`
	Cwd     string          `json:"cwd"`
}

// lineAnswer is the answer to a line that could not be read.
type lineAnswer struct {
	ID    json.RawMessage `json:"id,omitempty"`
	Error lineError       `json:"error"`
}

type lineError struct {
	Line int    `json:"line"` // of standard input, from 1
	Text string `json:"text"`
}

// readLines answers line by line. One that cannot be read costs its own
// answer, and none of the others.
func (e *env) readLines(rd *reading.Reader, lang trap.Language) error {
	in := bufio.NewReaderSize(e.stdin, 64<<10)
	out := bufio.NewWriter(e.stdout)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	home, bad := e.getenv("HOME"), 0
	for n := 1; ; n++ {
		line, err := readLine(in)
		end := errors.Is(err, io.EOF)
		if err != nil && !end && !errors.Is(err, errLineLength) {
			return fmt.Errorf("line %d: %w", n, err)
		}
		if len(bytes.TrimSpace(line)) > 0 || err != nil && !end {
			var answer any
			a, wrong := parseAsked(line)
			if err != nil && !end {
				a, wrong = asked{}, err
			}
			if wrong != nil {
				bad++
				answer = lineAnswer{a.ID, lineError{n, wrong.Error()}}
			} else {
				r := rd.Text(a.Command, reading.Place{Cwd: a.Cwd, Home: home})
				answer = struct {
					ID json.RawMessage `json:"id,omitempty"`
					explain.Answer
				}{a.ID, explain.Of("", a.Command, &r, trap.Hints(a.Command, r.File), lang)}
			}
			if err := enc.Encode(answer); err != nil {
				return err
			}
			// Whoever asks line by line gets each answer at once.
			if in.Buffered() == 0 {
				if err := out.Flush(); err != nil {
					return err
				}
			}
		}
		if end {
			break
		}
	}
	if err := out.Flush(); err != nil {
		return err
	}
	if bad > 0 {
		return &usageError{text: e.text(messages.ReadBadLines, bad)}
	}
	return nil
}

// parseAsked reads one line of --jsonl. What it has of it when something is
// wrong holds the id, as far as it is one.
func parseAsked(line []byte) (asked, error) {
	var a asked
	var fields map[string]json.RawMessage
	if !json.Valid(line) {
		return a, errors.New("this is not valid JSON; want an object with \"id\", \"command\" and \"cwd\"")
	}
	if json.Unmarshal(line, &fields) != nil || fields == nil {
		return a, errors.New("this is no object; want one with \"id\", \"command\" and \"cwd\"")
	}
	a.ID = fields["id"]
	for _, field := range []struct {
		name   string
		to     *string
		needed bool
	}{{"command", &a.Command, true}, {"cwd", &a.Cwd, false}} {
		raw, ok := fields[field.name]
		switch {
		case !ok && field.needed:
			return a, fmt.Errorf("%q is missing", field.name)
		case ok && (string(raw) == "null" && field.needed || json.Unmarshal(raw, field.to) != nil):
			return a, fmt.Errorf("%q is no string", field.name)
		}
	}
	if a.Cwd != "" && !strings.HasPrefix(a.Cwd, "/") {
		return a, errors.New("\"cwd\" is no absolute path")
	}
	return a, nil
}

var errLineLength = fmt.Errorf("the line is longer than %d bytes", lineLimit)

// readLine returns the next line. Of one that is too long the rest is skipped.
func readLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	long := false
	for {
		part, err := in.ReadSlice('\n')
		if long = long || len(line)+len(part) > lineLimit; !long {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case long && (err == nil || errors.Is(err, io.EOF)):
			return nil, errLineLength
		default:
			return line, err
		}
	}
}

// colour reports whether standard output is a terminal that may be coloured
// (https://no-color.org).
func (e *env) colour() bool {
	if e.getenv("NO_COLOR") != "" || strings.EqualFold(e.getenv("TERM"), "dumb") {
		return false
	}
	info, err := e.stdout.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
