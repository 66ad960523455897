package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"vogt/cmd/vogt/messages"
	"vogt/internal/api"
	"vogt/internal/audit"
	"vogt/internal/audit/mask"
	"vogt/internal/client"
	"vogt/internal/reading"
	"vogt/internal/terminal"
)

func newAuditCommand(e *env) *cobra.Command {
	return newGroup("audit", "Read and verify the log of everything asked, decided and done",
		newAuditTailCommand(e), newAuditShowCommand(e), newAuditVerifyCommand(e), newAuditExportCommand(e),
		newAuditAcceptCommand(e), newAuditWitnessCommand(e),
	)
}

func newAuditTailCommand(e *env) *cobra.Command {
	var follow bool
	var count int
	cmd := &cobra.Command{
		Use:   "tail",
		Short: "Print the last records, a line each",
		Args:  cobra.NoArgs,
		RunE: command(func(cmd *cobra.Command, _ []string) error {
			if count < 1 {
				return &usageError{text: e.text(messages.BadCount)}
			}
			c, err := e.openActing(cmd.Context())
			if err != nil {
				return err
			}
			defer c.Close()
			return e.tail(cmd.Context(), c, count, follow)
		}),
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on with records as they come")
	cmd.Flags().IntVarP(&count, "lines", "n", 20, "how many")
	return cmd
}

// Following asks in turns: the authority may hold a question open, or answer
// at once that there is nothing.
const (
	followWait  = 25 * time.Second
	followPause = time.Second
)

func (e *env) tail(ctx context.Context, c *client.Client, count int, follow bool) error {
	before := int64(1) << 48   // above every index
	var rows []api.AuditRecord // newest first
	for len(rows) < count && before > 0 {
		page, err := c.Records(ctx, client.LogQuery{Before: &before, Limit: min(count-len(rows), 1000)})
		if err != nil {
			return err
		}
		if len(page.Records) == 0 {
			break
		}
		rows = append(rows, page.Records...)
		before = page.Records[len(page.Records)-1].Index
	}
	after := int64(-1)
	for i := len(rows) - 1; i >= 0; i-- {
		if err := e.printRecord(rows[i]); err != nil {
			return err
		}
		after = rows[i].Index
	}
	for follow {
		start := e.now()
		page, err := c.Records(ctx, client.LogQuery{After: &after, Wait: followWait})
		if err != nil {
			return err
		}
		for _, r := range page.Records {
			if err := e.printRecord(r); err != nil {
				return err
			}
			after = r.Index
		}
		if rest := followPause - e.now().Sub(start); len(page.Records) == 0 && rest > 0 {
			if err := pause(ctx, rest); err != nil {
				return err
			}
		}
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// printRecord writes a record as a line.
func (e *env) printRecord(r api.AuditRecord) error {
	return e.print(r, func(w io.Writer) error {
		at := time.UnixMilli(r.Time).Format("2006-01-02 15:04:05")
		_, err := fmt.Fprintf(w, "%6d  %s  %-12s %s\n", r.Index, at, terminal.Visible(r.Type), e.summary(r))
		return err
	})
}

// summary is what a line says about a record: the fields that most records
// have, then the rest. Likely secrets are masked.
func (e *env) summary(r api.AuditRecord) string {
	if len(r.Body) == 0 {
		return e.text(messages.Erased)
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(r.Body, &fields) != nil {
		return terminal.Visible(mask.Text(string(r.Body)))
	}
	var parts []string
	for _, name := range []string{"grant", "by", "email", "operation", "subject", "answer", "type", "verdict", "risk", "exit_code", "tried", "why", "command", "reason"} {
		raw, ok := fields[name]
		if !ok {
			continue
		}
		var argv []string
		var text string
		switch {
		case json.Unmarshal(raw, &argv) == nil:
			text = reading.Line(mask.Argv(argv))
		case json.Unmarshal(raw, &text) == nil:
			text = mask.Text(text)
		default:
			text = string(raw)
		}
		if text != "" {
			parts = append(parts, name+"="+terminal.Visible(text))
		}
	}
	return strings.Join(parts, " ")
}

func newAuditShowCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "show NUMBER|GRANT",
		Short: "Show a record, or all records about a grant, in full",
		Args:  cobra.ExactArgs(1),
		RunE: command(func(cmd *cobra.Command, args []string) error {
			c, err := e.openActing(cmd.Context())
			if err != nil {
				return err
			}
			defer c.Close()
			records, err := findRecords(cmd.Context(), c, args[0])
			if err != nil {
				return err
			}
			if len(records) == 0 {
				return &client.Error{Kind: client.Unknown, Detail: e.text(messages.NoRecord, terminal.Visible(args[0]))}
			}
			return e.print(records, func(w io.Writer) error {
				for _, r := range records {
					if err := e.showRecord(w, r); err != nil {
						return err
					}
				}
				return nil
			})
		}),
	}
}

// findRecords finds the record with an index, or those about a grant.
func findRecords(ctx context.Context, c *client.Client, what string) ([]api.AuditRecord, error) {
	q := client.LogQuery{Grant: what}
	index, err := strconv.ParseInt(what, 10, 64)
	if err == nil && index >= 0 {
		after := index - 1
		q = client.LogQuery{After: &after, Limit: 1}
	}
	var all []api.AuditRecord
	for {
		page, err := c.Records(ctx, q)
		if err != nil {
			return nil, err
		}
		if q.Grant == "" {
			if len(page.Records) > 0 && page.Records[0].Index == index {
				return page.Records[:1], nil
			}
			return nil, nil
		}
		all = append(all, page.Records...)
		if len(page.Records) == 0 {
			return all, nil
		}
		q.After = &page.Records[len(page.Records)-1].Index
	}
}

// showRecord writes a record with its whole body. Nothing is masked: whoever
// asks for one record wants to see it.
func (e *env) showRecord(w io.Writer, r api.AuditRecord) error {
	s := &sheet{w: w}
	s.fact("Record", strconv.FormatInt(r.Index, 10))
	s.fact("Type", r.Type)
	s.fact("Time", time.UnixMilli(r.Time).Format("2006-01-02 15:04:05.000 -0700"))
	s.fact("Leaf", r.Leaf)
	if s.err != nil {
		return s.err
	}
	if len(r.Body) == 0 {
		return line(e.text(messages.Erased))(w)
	}
	var b bytes.Buffer
	if err := json.Indent(&b, r.Body, "", "  "); err != nil {
		return err
	}
	for text := range strings.Lines(b.String()) {
		// The indentation is ours, everything after it may be a stranger's.
		body := strings.TrimLeft(strings.TrimSuffix(text, "\n"), " ")
		if _, err := fmt.Fprintf(w, "%*s%s\n", len(strings.TrimSuffix(text, "\n"))-len(body), "", terminal.Visible(body)); err != nil {
			return err
		}
	}
	return nil
}

func newAuditVerifyCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "verify [FILE]",
		Short: "Verify every record of the log, or of an export of it",
		Long: `Fetch the whole log, recompute it from its records, and compare it with the
signed checkpoint and with the one that this machine remembers. With FILE, do so
with an export that was written by "vogt audit export", without asking anybody.
Exits with 0 when everything fits and with 1 when it does not; the first record
that does not fit is named.`,
		Args: cobra.MaximumNArgs(1),
		RunE: command(func(cmd *cobra.Command, args []string) error {
			c, err := e.openOwner(cmd.Context())
			if err != nil {
				return err
			}
			defer c.Close()
			var report audit.Report
			if len(args) == 1 {
				report, err = e.verifyFile(c, args[0])
			} else {
				report, err = c.VerifyLog(cmd.Context())
			}
			if m, ok := errors.AsType[*audit.Mismatch](err); ok {
				if e.json {
					answer := map[string]any{"ok": false, "record": m.Index, "kind": m.Kind, "detail": m.Detail}
					if err := e.print(answer, nil); err != nil {
						return err
					}
				}
				return withCode(exitMismatch, errors.New(e.text(messages.LogMismatch, m.Error())))
			}
			if err != nil {
				return err
			}
			answer := map[string]any{
				"ok": true, "origin": report.Origin, "size": report.Size, "erased": report.Erased, "masked": report.Masked,
				"compared": report.Compared, "witnesses": report.Witnesses,
			}
			return e.print(answer, line(strings.TrimSuffix(report.String(), "\n")))
		}),
	}
}

// verifyFile verifies an export. What is no export does not fit, either.
func (e *env) verifyFile(c *client.Client, path string) (audit.Report, error) {
	f, err := os.Open(path)
	if err != nil {
		return audit.Report{}, withCode(exitConfig, err)
	}
	defer f.Close()
	found, err := c.VerifyFile(f)
	if found.Beyond > 0 {
		e.say(messages.ExportIsOlder, found.Size, found.Beyond)
	}
	_, mismatch := errors.AsType[*audit.Mismatch](err)
	_, ours := errors.AsType[*client.Error](err)
	if err != nil && !mismatch && !ours {
		err = withCode(exitMismatch, errors.New(e.text(messages.LogMismatch, err.Error())))
	}
	return found.Report, err
}

func newAuditExportCommand(e *env) *cobra.Command {
	var masked bool
	cmd := &cobra.Command{
		Use:   "export FILE|-",
		Short: "Write the whole log as JSON lines",
		Long: `Write the whole log as JSON lines to a new file, or with - to standard output.
The last line is the signed checkpoint. With --masked, likely secrets are taken
out; records that this changed keep their leaf, so that the log still verifies.`,
		Args: cobra.ExactArgs(1),
		RunE: command(func(cmd *cobra.Command, args []string) error {
			c, err := e.openOwner(cmd.Context())
			if err != nil {
				return err
			}
			defer c.Close()
			if args[0] == "-" {
				return c.Export(cmd.Context(), e.stdout, masked)
			}
			var lines lineCounter
			err = exportTo(args[0], func(w io.Writer) error { return c.Export(cmd.Context(), io.MultiWriter(w, &lines), masked) })
			if err != nil {
				return err
			}
			records := int(lines) - 1 // the last line is the checkpoint
			return e.print(map[string]any{"records": records, "file": args[0]},
				line(e.text(messages.Exported, records, terminal.Visible(args[0]))))
		}),
	}
	cmd.Flags().BoolVar(&masked, "masked", false, "take likely secrets out")
	return cmd
}

// exportTo writes a new file. One that could not be finished is not left
// behind, so that none can be taken for a whole log.
func exportTo(path string, write func(io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return withCode(exitUsage, err)
	}
	if err != nil {
		return withCode(exitConfig, err)
	}
	err = write(f)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}

// lineCounter counts the lines that are written to it.
type lineCounter int

func (c *lineCounter) Write(p []byte) (int, error) {
	*c += lineCounter(bytes.Count(p, []byte("\n")))
	return len(p), nil
}

func newAuditAcceptCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "accept",
		Short: "Accept the log as it is now, after a known restore",
		Long: `After the authority was restored from an older copy, its log does not continue
what this machine remembers, and vogt stops. If you know of the restore, this
accepts the log as it is now. What was remembered is kept as evidence. If you
do not know of it, do not accept: somebody may be hiding records.`,
		Args: cobra.NoArgs,
		RunE: command(func(cmd *cobra.Command, _ []string) error {
			c, err := e.openOwner(cmd.Context())
			if err != nil {
				return err
			}
			defer c.Close()
			if c.Login().Agent() {
				return &client.Error{Kind: client.Refused, Detail: e.text(messages.AgentsDoNotAccept)}
			}
			before, now, err := c.Accept(cmd.Context())
			if err != nil {
				return err
			}
			return e.print(map[string]int64{"before": before, "now": now}, line(e.text(messages.Accepted, now, before)))
		}),
	}
}

func newAuditWitnessCommand(e *env) *cobra.Command {
	var w witnessOptions
	cmd := &cobra.Command{
		Use:   "witness --listen ADDRESS --key FILE",
		Short: "Serve as a witness of logs (c2sp.org/tlog-witness)",
		Long: `Serve as a witness: cosign the checkpoints of logs as long as each continues the
last one, so that an authority which shows different logs to different people
finds no second signature. Run it on another machine than the authority. The
key file is made if it is missing; its verifier key is printed at the start.`,
		Args: cobra.NoArgs,
		RunE: command(func(cmd *cobra.Command, _ []string) error {
			if w.listen == "" || w.key == "" {
				return &usageError{text: e.text(messages.WitnessNeeds)}
			}
			paths, err := e.paths()
			if err != nil {
				return err
			}
			if w.state == "" {
				w.state = filepath.Join(paths.Data, "witness")
			}
			if len(w.logs) == 0 {
				l, err := home(paths).Default().Load()
				if err != nil {
					return err
				}
				w.logs = []string{l.LogKey}
			}
			return e.witness(cmd.Context(), w)
		}),
	}
	cmd.Flags().StringVar(&w.listen, "listen", "", "`ADDRESS` and port to serve HTTP at")
	cmd.Flags().StringVar(&w.key, "key", "", "the witness's key `FILE`")
	cmd.Flags().StringVar(&w.name, "name", "", "the witness's name, a URL without scheme, when the key is made (default: the address)")
	cmd.Flags().StringVar(&w.state, "state", "", "the `FOLDER` of what was cosigned; it must never be lost")
	cmd.Flags().StringArrayVar(&w.logs, "log", nil, "the verifier `KEY` of a log to watch; can be repeated (default: the log of your authority)")
	return cmd
}
