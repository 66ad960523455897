package client

import (
	"errors"
	"fmt"
	"io"

	"vogt/internal/audit"
)

// ExportReport is what a verification of an export found.
type ExportReport struct {
	audit.Report
	// Beyond is the size of the remembered log when the export ends before it;
	// then it could be compared with its own checkpoint only. Else it is 0.
	Beyond int64
}

// VerifyFile verifies an export that was written earlier, without any exchange:
// against its own checkpoint, which the pinned key must have signed, and the
// remembered one, unless the export is older than that. An error that is an
// *audit.Mismatch names the first record that does not fit.
func (c *Client) VerifyFile(r io.ReadSeeker) (ExportReport, error) {
	m, err := c.memory()
	if err != nil {
		return ExportReport{}, err
	}
	last, known, err := m.Last()
	if err != nil {
		return ExportReport{}, &Error{Kind: BadFile, Where: c.seen.folderOf(c.wire.base), Err: err}
	}
	report, err := audit.VerifyExport(r, c.login.LogKey, nil)
	if early, ok := errors.AsType[*audit.EndedEarly](err); ok {
		return ExportReport{}, early.Mismatch(0)
	}
	if err != nil || !known {
		return ExportReport{Report: report}, err
	}
	if last.Size > report.Size {
		return ExportReport{Report: report, Beyond: last.Size}, nil
	}
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return ExportReport{}, fmt.Errorf("the export cannot be read twice: %w", err)
	}
	report, err = audit.VerifyExport(r, c.login.LogKey, []audit.Checkpoint{last})
	return ExportReport{Report: report}, err
}
