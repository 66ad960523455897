package witness

import (
	"context"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	"golang.org/x/mod/sumdb/note"

	"vogt/internal/audit"
)

// Conflict is the answer of a witness whose latest checkpoint has another size
// than the proof starts from. Size says where a new proof must start.
type Conflict struct{ Size int64 }

func (c *Conflict) Error() string {
	return fmt.Sprintf("witness: it needs a proof from its latest checkpoint, of %d records", c.Size)
}

// Submit asks the witness under the submission prefix url to cosign a
// checkpoint that proof leads to; proof.Old is 0 for the first. It returns
// the lines that the witness adds to the checkpoint's text. They are only known
// to be signature lines: Cosignatures verifies them on the whole text.
func Submit(ctx context.Context, client *http.Client, url string, proof audit.Consistency, checkpoint string) (cosignatures string, err error) {
	req := request{old: proof.Old, proof: proof.Hashes, checkpoint: checkpoint}
	body := req.encode()
	if _, err := parseRequest(body); err != nil {
		return "", fmt.Errorf("witness: nothing was sent: %w", err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(url, "/")+"/add-checkpoint", strings.NewReader(body))
	if err != nil {
		return "", fmt.Errorf("witness: %w", err)
	}
	r.Header.Set("Content-Type", "text/plain; charset=utf-8")
	resp, err := client.Do(r)
	if err != nil {
		return "", fmt.Errorf("witness: %w", err)
	}
	defer resp.Body.Close()
	const most = 64 << 10
	b, err := io.ReadAll(io.LimitReader(resp.Body, most+1))
	if err != nil {
		return "", fmt.Errorf("witness: answer of %s: %w", url, err)
	}
	if len(b) > most {
		return "", fmt.Errorf("witness: the answer of %s is longer than %d bytes", url, most)
	}
	switch resp.StatusCode {
	case http.StatusOK:
		return checkLines(checkpoint, string(b))
	case http.StatusConflict:
		if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind == "text/x.tlog.size" {
			size, err := audit.ParseSize(strings.TrimSuffix(string(b), "\n"))
			if err != nil {
				return "", fmt.Errorf("witness: answer of %s: %w", url, err)
			}
			return "", &Conflict{size}
		}
	}
	return "", fmt.Errorf("witness: %s answered %s: %.300q", url, resp.Status, strings.TrimSpace(string(b)))
}

// checkLines refuses an answer that would change the checkpoint's meaning.
func checkLines(checkpoint, lines string) (string, error) {
	head, _, _ := strings.Cut(checkpoint, "\n\n")
	n, err := note.Open([]byte(head+"\n\n"+lines), nil)
	if unverified, ok := err.(*note.UnverifiedNoteError); ok {
		n, err = unverified.Note, nil
	}
	if err != nil || n.Text != head+"\n" {
		return "", fmt.Errorf("witness: the answer does not consist of signature lines: %.300q", lines)
	}
	return lines, nil
}
