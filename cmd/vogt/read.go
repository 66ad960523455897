package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"vogt/cmd/vogt/messages"
	"vogt/internal/explain"
	"vogt/internal/reading"
	"vogt/internal/trap"
)

func newReadCommand(e *env) *cobra.Command {
	var lines bool
	cmd := &cobra.Command{
		Use:   "read [--jsonl] -- LINE | ARGUMENT…",
		Short: "Say what a command line would do, without running it",
		Long: `One argument is read as a line of bash, several as an argument list. Nothing is
run and no file of the line is opened. The answer shows every program that would
start, what is read, written, deleted and contacted, the risk, and what cannot
be known from the text.

With --jsonl each line of standard input is an object with "id", "command" and
"cwd"; each answer is an object on a line, in the same order.`,
		Example: `  vogt read -- 'find . -name "*.tmp" -print0 | xargs -0 rm -f'
  vogt read --json -- git push --force`,
		Args: cobra.ArbitraryArgs,
		RunE: command(func(cmd *cobra.Command, args []string) error {
			rd, err := e.reader()
			if err != nil {
				return err
			}
			if lines {
				if len(args) > 0 {
					return &usageError{text: "--jsonl reads standard input and takes no line"}
				}
				return e.readLines(rd)
			}
			return e.readOne(rd, args)
		}),
	}
	cmd.Flags().BoolVar(&lines, "jsonl", false, "read objects from standard input, one a line, and answer each on a line")
	return cmd
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

func (e *env) hintLanguage() trap.Language {
	if e.lang == messages.German {
		return trap.German
	}
	return trap.English
}

func (e *env) readOne(rd *reading.Reader, args []string) error {
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
		text = args[0]
		r = rd.Text(text, at)
	default:
		if r, err = rd.Argv(args, "", at); err != nil {
			return &usageError{text: err.Error()}
		}
		text = reading.Line(args)
	}
	hints := trap.Hints(text, r.File)
	if e.json {
		return e.print(explain.Of("", &r, hints, e.hintLanguage()), nil)
	}
	return explain.Tree(e.stdout, text, &r, hints, explain.Style{German: e.lang == messages.German, Colour: e.colour(), Home: at.Home})
}

// lineLimit bounds one line of --jsonl.
const lineLimit = 16 << 20

func (e *env) readLines(rd *reading.Reader) error {
	in := bufio.NewReaderSize(e.stdin, 64<<10)
	out := bufio.NewWriter(e.stdout)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	home := e.getenv("HOME")
	for n := 1; ; n++ {
		line, err := readLine(in)
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("line %d: %w", n, err)
		}
		if len(bytes.TrimSpace(line)) > 0 {
			var asked struct {
				ID      json.RawMessage `json:"id"`
				Command *string         `json:"command"`
				Cwd     string          `json:"cwd"`
			}
			if bad := json.Unmarshal(line, &asked); bad != nil || asked.Command == nil {
				if bad == nil {
					bad = errors.New(`"command" is missing`)
				}
				return &usageError{text: fmt.Sprintf("line %d of standard input: want an object with \"id\", \"command\" and \"cwd\": %v", n, bad)}
			}
			r := rd.Text(*asked.Command, reading.Place{Cwd: asked.Cwd, Home: home})
			answer := explain.Of("", &r, trap.Hints(*asked.Command, r.File), e.hintLanguage())
			if err := enc.Encode(struct {
				ID json.RawMessage `json:"id,omitempty"`
				explain.Answer
			}{asked.ID, answer}); err != nil {
				return err
			}
			// Whoever asks line by line gets each answer at once.
			if in.Buffered() == 0 {
				if err := out.Flush(); err != nil {
					return err
				}
			}
		}
		if err != nil {
			return out.Flush()
		}
	}
}

func readLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > lineLimit {
			return nil, fmt.Errorf("longer than %d bytes", lineLimit)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
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
