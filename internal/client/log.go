package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
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
	body, err := c.openExport(ctx)
	if err != nil {
		return err
	}
	defer body.Close()
	if masked {
		err = maskExport(w, body)
	} else {
		_, err = io.Copy(w, body)
	}
	if err != nil {
		return fmt.Errorf("export of %s: %w", c.wire.base, err)
	}
	return nil
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
	body, err := c.openExport(ctx)
	if err != nil {
		return audit.Report{}, err
	}
	defer body.Close()
	report, err := audit.VerifyExport(body, c.login.LogKey, against)
	if err != nil {
		return report, fmt.Errorf("%s: %w", c.wire.base, err)
	}
	return report, nil
}

// openExport opens the stream. It is no exchange of do: the whole log that
// follows is compared with what is remembered.
func (c *Client) openExport(ctx context.Context) (io.ReadCloser, error) {
	if err := c.renew(ctx, false); err != nil {
		return nil, err
	}
	ex := call{method: http.MethodGet, path: api.PathAudit + "/export", bearer: c.login.Token}
	ctx, cancel := context.WithCancelCause(ctx)
	s := &stream{cancel: cancel}
	s.watchdog = time.AfterFunc(idleLimit, func() { cancel(errIdle) })
	resp, err := c.wire.open(ctx, ex)
	if err != nil {
		s.stop()
		return nil, c.wire.lost(ctx, err, idleLimit)
	}
	s.body = resp.Body
	if resp.StatusCode != http.StatusOK {
		defer s.Close()
		return nil, c.wire.refused(resp)
	}
	return s, nil
}

var errIdle = errors.New("nothing came for " + idleLimit.String())

// stream is a body that fails when nothing comes any more.
type stream struct {
	body     io.ReadCloser
	watchdog *time.Timer
	cancel   context.CancelCauseFunc
}

func (s *stream) Read(p []byte) (int, error) {
	n, err := s.body.Read(p)
	s.watchdog.Reset(idleLimit)
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
