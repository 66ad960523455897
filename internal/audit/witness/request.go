package witness

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/tlog"

	"vogt/internal/audit"
)

// maxBody bounds a request: 63 proof lines and a checkpoint with dozens of
// signatures of the largest kind.
const maxBody = 160 << 10

// maxProof is the number of proof lines that a client may send.
const maxProof = 63

// request is the body of add-checkpoint.
type request struct {
	old        int64
	proof      []string // base64 of hashes, checked
	checkpoint string   // signed note
}

// parseRequest reads the old size line, the proof lines, the empty line and
// the checkpoint. Each line but those of the checkpoint has one spelling.
func parseRequest(body string) (request, error) {
	var r request
	line, rest, ok := strings.Cut(body, "\n")
	size, isOld := strings.CutPrefix(line, "old ")
	if !ok || !isOld {
		return request{}, errors.New("the first line is not \"old SIZE\"")
	}
	var err error
	if r.old, err = audit.ParseSize(size); err != nil {
		return request{}, fmt.Errorf("old size: %w", err)
	}
	for {
		if line, rest, ok = strings.Cut(rest, "\n"); !ok {
			return request{}, errors.New("no empty line ends the proof")
		}
		if line == "" {
			break
		}
		raw, err := base64.StdEncoding.Strict().DecodeString(line)
		if err != nil || len(raw) != tlog.HashSize || strings.ContainsRune(line, '\r') {
			return request{}, fmt.Errorf("proof line %d is not the base64 of a hash", len(r.proof)+1)
		}
		if r.proof = append(r.proof, line); len(r.proof) > maxProof {
			return request{}, fmt.Errorf("more than %d proof lines", maxProof)
		}
	}
	if rest == "" {
		return request{}, errors.New("no checkpoint follows the proof")
	}
	r.checkpoint = rest
	return r, nil
}

// encode is the inverse of parseRequest.
func (r request) encode() string {
	var b strings.Builder
	b.WriteString("old " + strconv.FormatInt(r.old, 10) + "\n")
	for _, h := range r.proof {
		b.WriteString(h + "\n")
	}
	b.WriteString("\n" + r.checkpoint)
	return b.String()
}
