package client

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"syscall"
	"time"

	"vogt/internal/api"
	"vogt/internal/audit"
	"vogt/internal/audit/mask"
)

// LogQuery chooses records of the audit log. The zero value is the first page.
type LogQuery struct {
	After  *int64        // ascending from the record after this index
	Before *int64        // descending from the record before this index
	Grant  string        // of this grant only
	Limit  int           // 0 leaves it to the authority
	Wait   time.Duration // how long to wait for a first record
}

// Records reads a page of the audit log.
func (c *Client) Records(ctx context.Context, q LogQuery) (api.AuditRecords, error) {
	query := url.Values{}
	if q.After != nil {
		query.Set("after", strconv.FormatInt(*q.After, 10))
	}
	if q.Before != nil {
		query.Set("before", strconv.FormatInt(*q.Before, 10))
	}
	if q.Grant != "" {
		query.Set("grant", q.Grant)
	}
	if q.Limit > 0 {
		query.Set("limit", strconv.Itoa(q.Limit))
	}
	ex := call{method: http.MethodGet, path: api.PathAudit + "/records", query: query}
	if wait := min(q.Wait, longPoll); wait > 0 {
		query.Set("wait", strconv.Itoa(int(wait/time.Second)))
		ex.limit = exchangeLimit + wait
	}
	var page api.AuditRecords
	ex.answer = &page
	err := c.do(ctx, ex)
	return page, err
}

// idleLimit is how long a stream may give nothing.
const idleLimit = 30 * time.Second

// Export streams the whole log to w as JSON lines, as package audit writes and
// reads them. With masked, likely secrets are taken out; the records that this
// changed can then only be verified by their leaves.
func (c *Client) Export(ctx context.Context, w io.Writer, masked bool) error {
	body, _, err := c.openExport(ctx)
	if err != nil {
		return err
	}
	defer body.Close()
	out := &output{w: w}
	if masked {
		err = maskExport(out, body)
	} else {
		err = audit.CheckExport(io.TeeReader(body, out))
	}
	switch {
	case out.err != nil:
		return fmt.Errorf("export of %s: %w", c.wire.base, out.err)
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return fmt.Errorf("export of %s: %w", c.wire.base, err)
	}
	return nil
}

// output remembers why it could not be written, which reading would hide.
type output struct {
	w   io.Writer
	err error
}

func (o *output) Write(p []byte) (int, error) {
	n, err := o.w.Write(p)
	if err != nil {
		o.err = err
	}
	return n, err
}

// maskExport reads a whole export before it writes: only then is it known that
// it was not cut off.
func maskExport(w io.Writer, r io.Reader) error {
	export, checkpoint, err := audit.ReadExport(r)
	if err != nil {
		return err
	}
	out := audit.NewExporter(w)
	err = export.Records(func(rec audit.Record) error {
		changed := export.Masked(rec.Index)
		if !rec.Erased() {
			body, err := maskBody(rec.Body)
			if err != nil {
				return fmt.Errorf("record %d: %w", rec.Index, err)
			}
			changed = changed || !bytes.Equal(body, rec.Body)
			rec.Body = body
		}
		return out.Record(rec, changed)
	})
	if err != nil {
		return err
	}
	return out.Close(checkpoint)
}

// maskBody takes likely secrets out of a record's body. A body without any is
// returned as it is.
func maskBody(body []byte) ([]byte, error) {
	var value any
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		return nil, err
	}
	masked, changed := maskValue(value)
	if !changed {
		return body, nil
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(masked); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// maskValue masks every text in a JSON value. A list of nothing but texts is
// taken for an argument list, in which one argument can make a secret of the
// next.
func maskValue(value any) (masked any, changed bool) {
	switch v := value.(type) {
	case string:
		m := mask.Text(v)
		return m, m != v
	case map[string]any:
		for key, item := range v {
			m, c := maskValue(item)
			v[key], changed = m, changed || c
		}
	case []any:
		argv := make([]string, 0, len(v))
		for _, item := range v {
			if text, ok := item.(string); ok {
				argv = append(argv, text)
			}
		}
		if len(argv) == len(v) {
			for i, text := range mask.Argv(argv) {
				v[i], changed = text, changed || text != argv[i]
			}
			return v, changed
		}
		for i, item := range v {
			m, c := maskValue(item)
			v[i], changed = m, changed || c
		}
	}
	return value, changed
}

// VerifyLog fetches the whole log and verifies it against its signed
// checkpoint and the one remembered here. An error that is an *audit.Mismatch
// names the first record that does not fit.
func (c *Client) VerifyLog(ctx context.Context) (audit.Report, error) {
	m, err := c.memory()
	if err != nil {
		return audit.Report{}, err
	}
	// What is remembered is read first: the log can only have grown since.
	last, known, err := m.Last()
	if err != nil {
		return audit.Report{}, &Error{Kind: BadFile, Where: c.seen.folderOf(c.wire.base), Err: err}
	}
	var against []audit.Checkpoint
	if known {
		against = append(against, last)
	}
	var report audit.Report
	body, size, err := c.openExport(ctx)
	if err == nil {
		defer body.Close()
		report, err = audit.VerifyExport(body, c.login.LogKey, against)
	}
	if ctx.Err() != nil {
		return report, context.Cause(ctx)
	}
	if early, ok := errors.AsType[*audit.EndedEarly](err); ok {
		if known && size < last.Size {
			size = last.Size
		}
		return report, fmt.Errorf("%s: %w", c.wire.base, early.Mismatch(size))
	}
	if _, ours := errors.AsType[*Error](err); err != nil && !ours {
		err = fmt.Errorf("%s: %w", c.wire.base, err)
	}
	return report, err
}

// openExport opens the stream. It is no exchange of do: the whole log that
// follows is compared with what is remembered. Size is the number of records
// that the authority says it has, or 0.
func (c *Client) openExport(ctx context.Context) (body io.ReadCloser, size int64, err error) {
	if err := c.renew(ctx, false); err != nil {
		return nil, 0, err
	}
	ex := call{method: http.MethodGet, path: api.PathAudit + "/export", bearer: c.login.Token}
	ctx, cancel := context.WithCancelCause(ctx)
	s := &stream{ctx: ctx, cancel: cancel}
	s.watchdog = time.AfterFunc(idleLimit, func() { cancel(errIdle) })
	resp, err := c.wire.open(ctx, ex)
	if err != nil {
		lost := c.wire.lost(ctx, err, idleLimit)
		s.stop()
		// The authority was there and hung up.
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) {
			lost = &audit.EndedEarly{Err: errHungUp}
		}
		return nil, 0, lost
	}
	s.body = resp.Body
	if resp.StatusCode != http.StatusOK {
		defer s.Close()
		return nil, 0, c.wire.refused(resp)
	}
	if text, err := base64.StdEncoding.DecodeString(resp.Header.Get(api.CheckpointHeader)); err == nil {
		if head, err := audit.OpenCheckpoint(string(text), c.login.LogKey); err == nil {
			size = head.Size
		}
	}
	return s, size, nil
}

var errHungUp = errors.New("the authority closed the connection without an answer")

var errIdle = errors.New("nothing came for " + idleLimit.String())

// stream is a body that fails when nothing comes any more.
type stream struct {
	ctx      context.Context
	body     io.ReadCloser
	watchdog *time.Timer
	cancel   context.CancelCauseFunc
}

func (s *stream) Read(p []byte) (int, error) {
	n, err := s.body.Read(p)
	s.watchdog.Reset(idleLimit)
	if err != nil && err != io.EOF && s.ctx.Err() != nil {
		err = context.Cause(s.ctx) // says more than that the call was cancelled
	}
	return n, err
}

func (s *stream) Close() error {
	s.stop()
	return s.body.Close()
}

func (s *stream) stop() {
	s.watchdog.Stop()
	s.cancel(nil)
}
