// Package witness is a transparency-log witness: it cosigns a log's
// checkpoints as long as each extends the last that it cosigned, so that a log
// which shows different histories to different people finds no second
// signature for the second history.
//
// It owns the protocol of c2sp.org/tlog-witness (server and client), Ed25519
// cosignatures (c2sp.org/tlog-cosignature, "cosignature/v1") and the state that
// a witness must never lose. It leaves out which logs are watched, where the
// handler listens, and what a reader demands of a checkpoint without
// cosignatures. ML-DSA-44 cosignatures, the newer kind, are ignored where they
// occur and not made.
package witness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"vogt/internal/audit"
)

// Log is a log that the witness watches.
type Log struct {
	Origin string
	Keys   []string // verifier keys; a signature by one of them suffices
}

// State is the latest checkpoint cosigned of a log. The zero value stands for
// a log of which none has been.
type State struct {
	Size int64
	Root tlog.Hash
	Text string // signed note, as submitted
}

// Store keeps the states. A witness that forgets one can be made to cosign a
// second history.
type Store interface {
	// Latest returns the state of the log, the zero State if there is none.
	Latest(ctx context.Context, origin string) (State, error)
	// Advance replaces the state by next if it still has the size and root of
	// old, and reports whether it did. When it returns true, next survives a
	// power cut.
	Advance(ctx context.Context, origin string, old, next State) (bool, error)
}

// Config is what a witness consists of. All fields are needed.
type Config struct {
	Key   Key
	Logs  []Log
	Store Store
	Now   func() time.Time
	Log   *slog.Logger
}

// Handler serves POST /add-checkpoint; mount it behind http.StripPrefix if the
// submission prefix has a path. It authenticates nobody: what counts is the
// log's signature.
type Handler struct {
	cfg  Config
	logs map[string]note.Verifiers
	mux  *http.ServeMux
}

// New makes the handler.
func New(cfg Config) (*Handler, error) {
	if cfg.Key.private == nil || cfg.Store == nil || cfg.Now == nil || cfg.Log == nil {
		return nil, errors.New("witness: key, store, clock and logger are needed")
	}
	h := &Handler{cfg: cfg, logs: map[string]note.Verifiers{}, mux: http.NewServeMux()}
	for _, l := range cfg.Logs {
		if l.Origin == "" || len(l.Keys) == 0 || h.logs[l.Origin] != nil {
			return nil, fmt.Errorf("witness: log %q: it needs an origin that is listed once, and a key", l.Origin)
		}
		var keys []note.Verifier
		for _, k := range l.Keys {
			v, err := audit.NewVerifier(k)
			if err != nil {
				return nil, fmt.Errorf("witness: log %q: %w", l.Origin, err)
			}
			keys = append(keys, v)
		}
		h.logs[l.Origin] = note.VerifierList(keys...)
	}
	h.mux.HandleFunc("POST /add-checkpoint", h.addCheckpoint)
	return h, nil
}

func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.mux.ServeHTTP(w, r) }

// refusal is an answer other than 200.
type refusal struct {
	status int
	text   string
	size   int64 // for a conflict of sizes: the latest one
	sizes  bool
}

func (r *refusal) Error() string { return r.text }

func refuse(status int, format string, args ...any) error {
	return &refusal{status: status, text: fmt.Sprintf(format, args...)}
}

func (h *Handler) addCheckpoint(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
			http.Error(w, fmt.Sprintf("the request is longer than %d bytes", maxBody), http.StatusRequestEntityTooLarge)
		} else {
			http.Error(w, "the request could not be read", http.StatusBadRequest)
		}
		return
	}
	line, err := h.add(r.Context(), string(body))
	no := (*refusal)(nil)
	switch {
	case err == nil:
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		io.WriteString(w, line)
	case errors.As(err, &no) && no.sizes:
		w.Header().Set("Content-Type", "text/x.tlog.size")
		w.WriteHeader(no.status)
		io.WriteString(w, strconv.FormatInt(no.size, 10)+"\n")
	case errors.As(err, &no):
		http.Error(w, no.text, no.status)
	default:
		h.cfg.Log.Error("witness: a checkpoint could not be cosigned", "error", err)
		http.Error(w, "internal error; nothing was cosigned", http.StatusInternalServerError)
	}
}

// add does what the specification of add-checkpoint says, in its order.
func (h *Handler) add(ctx context.Context, body string) (line string, err error) {
	req, err := parseRequest(body)
	if err != nil {
		return "", refuse(http.StatusBadRequest, "bad request: %v", err)
	}
	next, noteText, origin, err := h.open(req.checkpoint)
	if err != nil {
		return "", err
	}
	if req.old > next.Size {
		return "", refuse(http.StatusBadRequest, "the old size %d is greater than that of the checkpoint, %d", req.old, next.Size)
	}
	latest, err := h.cfg.Store.Latest(ctx, origin)
	if err != nil {
		return "", err
	}
	if req.old != latest.Size {
		return "", &refusal{status: http.StatusConflict, sizes: true, size: latest.Size}
	}
	if err := h.judge(origin, latest, next, req.proof); err != nil {
		return "", err
	}
	swapped, err := h.cfg.Store.Advance(ctx, origin, latest, next)
	if err != nil {
		return "", err
	}
	if !swapped {
		// Somebody else was faster; the client needs a proof from there.
		if latest, err = h.cfg.Store.Latest(ctx, origin); err != nil {
			return "", err
		}
		return "", &refusal{status: http.StatusConflict, sizes: true, size: latest.Size}
	}
	return h.cfg.Key.cosign(noteText, h.cfg.Now())
}

// open reads the checkpoint and verifies the log's signature.
func (h *Handler) open(checkpoint string) (s State, noteText, origin string, err error) {
	split := strings.LastIndex(checkpoint, "\n\n")
	if split < 0 {
		return s, "", "", refuse(http.StatusBadRequest, "bad request: the checkpoint is not a signed note")
	}
	noteText = checkpoint[:split+1]
	head, _, err := audit.ParseTreeHead(noteText)
	if err != nil {
		return s, "", "", refuse(http.StatusBadRequest, "bad request: %v", err)
	}
	keys, known := h.logs[head.Origin]
	if !known {
		return s, "", "", refuse(http.StatusNotFound, "this witness does not watch the log %.200q", head.Origin)
	}
	if _, err := note.Open([]byte(checkpoint), keys); err != nil {
		return s, "", "", refuse(http.StatusForbidden, "the checkpoint has no valid signature of the log %.200q: %v", head.Origin, err)
	}
	return State{head.Size, head.Root, checkpoint}, noteText, head.Origin, nil
}

// judge refuses a checkpoint that does not extend the latest one.
func (h *Handler) judge(origin string, latest, next State, proof []string) error {
	if latest.Size == next.Size && latest.Text != "" && latest.Root != next.Root {
		h.cfg.Log.Error("witness: two checkpoints of one size with different roots were signed", "origin", origin, "cosigned", latest.Text, "submitted", next.Text)
		return refuse(http.StatusConflict, "another checkpoint of size %d has been cosigned", next.Size)
	}
	old := audit.Checkpoint{Size: latest.Size, Root: latest.Root}
	if latest.Text == "" {
		old.Root, _ = tlog.TreeHash(0, nil) // of an empty log; nothing is read
	}
	p := audit.Consistency{Old: old.Size, New: next.Size, Hashes: proof}
	if err := p.Verify(old, audit.Checkpoint{Size: next.Size, Root: next.Root}); err != nil {
		h.cfg.Log.Warn("witness: a signed checkpoint came without a valid proof", "origin", origin, "cosigned", latest.Text, "submitted", next.Text)
		return refuse(http.StatusUnprocessableEntity, "%v", err)
	}
	return nil
}
