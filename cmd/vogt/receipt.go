package main

import (
	"errors"
	"io"

	"github.com/spf13/cobra"

	"vogt/cmd/vogt/messages"
	"vogt/internal/api"
	"vogt/internal/client"
	"vogt/internal/terminal"
)

func newGrantReceiptCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "receipt ID",
		Short: "Show who decided a request, and verify the proof of it",
		Long: `Fetch the receipt of a decision and verify it: that the digest is that of the
statement, that the log signed by the pinned key has the decision, and that the
person's evidence (a signature by an SSH key, a passkey, or a signed-in page)
is over that digest. What remains the authority's word is said.

Exits with 1 when something does not fit; the first such part is named.`,
		Args: cobra.ExactArgs(1),
		RunE: command(func(cmd *cobra.Command, args []string) error {
			c, err := e.openActing(cmd.Context())
			if err != nil {
				return err
			}
			defer c.Close()
			proof, err := c.VerifyReceipt(cmd.Context(), args[0])
			if m, ok := errors.AsType[*client.ReceiptError](err); ok {
				if e.json {
					answer := map[string]any{"ok": false, "part": m.Part, "detail": m.Detail, "receipt": proof.Receipt}
					if err := e.print(answer, nil); err != nil {
						return err
					}
				}
				text := e.text(messages.ReceiptMisfits, terminal.Visible(args[0])) + ": " + m.Error()
				return withCode(exitMismatch, errors.New(text))
			}
			if err != nil {
				return err
			}
			return e.print(receiptAnswer{true, proof.Answer, proof.Verified, proof.Trusted, proof.Receipt}, func(w io.Writer) error {
				return e.showProof(w, proof)
			})
		}),
	}
}

// receiptAnswer is what --json tells of a receipt that holds.
type receiptAnswer struct {
	OK       bool        `json:"ok"`
	Answer   string      `json:"answer"`
	Verified []string    `json:"verified"`
	Trusted  []string    `json:"trusted"`
	Receipt  api.Receipt `json:"receipt"`
}

// showProof writes a verified receipt. The names of the facts and the findings
// are the same in every language.
func (e *env) showProof(w io.Writer, p client.Proof) error {
	r := p.Receipt
	s := &sheet{w: w}
	s.fact("Grant", r.GrantID)
	s.argv("Command", r.Statement.Argv)
	s.fact("Answer", p.Answer)
	s.fact("By", r.DecidedBy)
	s.some("For", r.For)
	if f := r.First; f != nil {
		s.fact("First", f.DecidedBy+", "+moment(f.DecidedAt)+" ("+string(f.Strength)+")")
	}
	s.some("Decided", moment(r.DecidedAt))
	s.fact("Strength", string(r.Strength))
	s.some("Permission", r.Statement.GrantType)
	s.some("Until", endOf(r.Statement.Expiry))
	s.fact("Digest", r.Digest.String())
	s.list("Verified", p.Verified)
	s.list("Trusted", p.Trusted)
	return s.err
}
