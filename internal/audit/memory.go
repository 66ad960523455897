package audit

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	"vogt/internal/config"
)

// Memory is what one OS user's processes remember of one authority's log: the
// last checkpoint they accepted. It never goes back on its own, so an
// authority that shows two histories, or loses a part of the one it has shown,
// is caught. Its methods may be called from several goroutines and processes.
//
// The folder holds:
//
//	checkpoint   the checkpoint remembered, a signed note
//	lock         held while checkpoint is replaced
//	evidence/    pairs of checkpoints that contradict each other
type Memory struct {
	dir string
	key string

	mu   sync.Mutex
	last Checkpoint // as last read; spares verifying the same signature again
}

// ErrBehind tells that the authority showed a log that is shorter than the one
// remembered and did not prove that it still has the rest: it was restored
// from an older copy, or a part of the log was removed.
type ErrBehind struct {
	Remembered, Seen Checkpoint
	Evidence         string // file with both checkpoints; empty if it could not be kept
	cause            error
}

func (e *ErrBehind) Error() string {
	return fmt.Sprintf("audit: the log %s has %s, but %d were seen before: the authority was restored from an older copy, or records were removed (%v). "+
		"Ask who runs it. If the restore is known, a person can accept the log as it is now.%s",
		e.Seen.Origin, count(e.Seen.Size, "record"), e.Remembered.Size, e.cause, evidenceHint(e.Evidence))
}

func (e *ErrBehind) Unwrap() error { return e.cause }

// ErrFork tells that the authority signed two histories of which neither
// extends the other.
type ErrFork struct {
	Remembered, Seen Checkpoint
	Evidence         string // file with both checkpoints; empty if it could not be kept
	cause            error
}

func (e *ErrFork) Error() string {
	return fmt.Sprintf("audit: ALARM: two histories of the log %s were signed: the one with %s does not fit the one with %d that was seen before (%v). "+
		"Do not trust this authority's decisions until it is known why. If it was restored from an older copy, a person can accept the log as it is now.%s",
		e.Seen.Origin, count(e.Seen.Size, "record"), e.Remembered.Size, e.cause, evidenceHint(e.Evidence))
}

func (e *ErrFork) Unwrap() error { return e.cause }

func evidenceHint(path string) string {
	if path == "" {
		return ""
	}
	return " Both signed checkpoints are kept in " + path + "."
}

// OpenMemory opens the memory in dir, which it makes if it is missing. Each
// authority needs a folder of its own; verifierKey is the key of its log.
func OpenMemory(dir, verifierKey string) (*Memory, error) {
	if _, err := NewVerifier(verifierKey); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("audit: folder for remembered checkpoints: %w", err)
	}
	return &Memory{dir: dir, key: verifierKey}, nil
}

func (m *Memory) path() string { return filepath.Join(m.dir, "checkpoint") }

// Last is the checkpoint remembered. It reports false if there is none yet.
func (m *Memory) Last() (Checkpoint, bool, error) {
	if runtime.GOOS == "windows" {
		// There a file that is being read cannot be replaced.
		unlock, err := m.lock(context.Background())
		if err != nil {
			return Checkpoint{}, false, err
		}
		defer unlock()
	}
	return m.read()
}

func (m *Memory) read() (Checkpoint, bool, error) {
	b, err := os.ReadFile(m.path())
	if errors.Is(err, fs.ErrNotExist) {
		return Checkpoint{}, false, nil
	}
	if err != nil {
		return Checkpoint{}, false, fmt.Errorf("audit: remembered checkpoint: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.last.Text != "" && m.last.Text == string(b) {
		return m.last, true, nil
	}
	c, err := OpenCheckpoint(string(b), m.key)
	if err != nil {
		return Checkpoint{}, false, fmt.Errorf("audit: the remembered checkpoint in %s cannot be used: it is damaged, or the authority's key was changed. "+
			"Compare the log with another machine's memory, then accept the authority's present checkpoint or remove the file: %w", m.path(), err)
	}
	m.last = c
	return c, true, nil
}

// Observe takes a checkpoint that the authority showed. If it says more than
// the one remembered, fetch must get the proof from old to new records from
// the authority; then the new one is remembered. If it says less, which is
// usual when several processes ask at once, fetch must get the proof in the
// other direction, and nothing is remembered.
//
// Every error means that the checkpoint is not to be relied on. *ErrBehind and
// *ErrFork are alarms; with others nothing is known, because the text is no
// checkpoint of this log, the memory cannot be used or fetch failed.
func (m *Memory) Observe(ctx context.Context, text string, fetch func(ctx context.Context, old, new int64) (Consistency, error)) error {
	last, ok, err := m.Last()
	if err != nil || ok && last.Text == text {
		return err
	}
	seen, err := OpenCheckpoint(text, m.key)
	if err != nil {
		return err
	}
	for {
		advance, err := m.judge(ctx, last, seen, ok, fetch)
		if err != nil || !advance {
			return err
		}
		before := last
		if last, ok, err = m.replace(ctx, before, seen); err != nil {
			return err
		}
		if last.same(seen) {
			return nil
		}
		// Another process was faster. It can only have gone forward, so this
		// ends; what was proven against the earlier one is proven anew.
	}
}

// judge reports whether seen extends last, if there is one, and is to be
// remembered.
func (m *Memory) judge(ctx context.Context, last, seen Checkpoint, known bool, fetch func(ctx context.Context, old, new int64) (Consistency, error)) (advance bool, err error) {
	switch {
	case !known:
		return true, nil
	case last.same(seen):
		return false, nil
	case last.Size == seen.Size:
		return false, m.fork(last, seen, errors.New("the sizes are equal, the roots differ"))
	}
	old, new := last, seen
	if seen.Size < last.Size {
		old, new = seen, last
	}
	var proof Consistency
	if old.Size == 0 {
		proof.New = new.Size // everything extends an empty log
	} else {
		proof, err = fetch(ctx, old.Size, new.Size)
	}
	switch {
	case err != nil && (new.same(seen) || ctx.Err() != nil):
		return false, fmt.Errorf("audit: proof that the log with %d records extends the one with %d: %w", new.Size, old.Size, err)
	case err != nil:
		return false, m.behind(last, seen, err)
	}
	if err := proof.Verify(old, new); err != nil {
		return false, m.fork(last, seen, err)
	}
	return new.same(seen), nil
}

// replace remembers seen unless something else than before is remembered, and
// returns what is remembered now.
func (m *Memory) replace(ctx context.Context, before, seen Checkpoint) (Checkpoint, bool, error) {
	unlock, err := m.lock(ctx)
	if err != nil {
		return Checkpoint{}, false, err
	}
	defer unlock()
	now, ok, err := m.read()
	if err != nil {
		return Checkpoint{}, false, err
	}
	if ok && !now.same(before) {
		return now, true, nil
	}
	return seen, true, m.write(seen)
}

// write is called with the lock held. A crash leaves the old file or the new
// one. It does not wait for the disk, since this is on the path of every
// action; where a file system does not keep the order of writing and renaming,
// a power cut can leave an empty file, and that reads as damaged, not as a
// memory of nothing.
func (m *Memory) write(c Checkpoint) error {
	next := m.path() + ".new"
	err := os.WriteFile(next, []byte(c.Text), 0o600)
	if err == nil {
		err = os.Rename(next, m.path())
	}
	if err != nil {
		return fmt.Errorf("audit: remembering a checkpoint: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last = c
	return nil
}

func (m *Memory) lock(ctx context.Context) (unlock func(), err error) {
	l, err := config.AcquireLock(ctx, filepath.Join(m.dir, "lock"))
	if err != nil {
		return nil, fmt.Errorf("audit: remembered checkpoint: %w", err)
	}
	return l.Unlock, nil
}

// Accept remembers a checkpoint without a proof, for a person who confirms
// that the authority was restored. What was remembered before, readable or
// not, is kept as evidence.
func (m *Memory) Accept(text string) error {
	c, err := OpenCheckpoint(text, m.key)
	if err != nil {
		return err
	}
	unlock, err := m.lock(context.Background())
	if err != nil {
		return err
	}
	defer unlock()
	old, err := os.ReadFile(m.path())
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return fmt.Errorf("audit: remembered checkpoint: %w", err)
	case string(old) == text:
		return nil
	default:
		if _, err := m.keep("accepted", string(old), text); err != nil {
			return fmt.Errorf("audit: keeping the earlier checkpoint: %w", err)
		}
	}
	return m.write(c)
}

func (m *Memory) fork(last, seen Checkpoint, cause error) error {
	e := &ErrFork{Remembered: last, Seen: seen, cause: cause}
	var err error
	if e.Evidence, err = m.keep("fork", last.Text, seen.Text); err != nil {
		e.cause = errors.Join(cause, fmt.Errorf("the evidence could not be kept: %w", err))
	}
	return e
}

func (m *Memory) behind(last, seen Checkpoint, cause error) error {
	e := &ErrBehind{Remembered: last, Seen: seen, cause: cause}
	var err error
	if e.Evidence, err = m.keep("behind", last.Text, seen.Text); err != nil {
		e.cause = errors.Join(cause, fmt.Errorf("the evidence could not be kept: %w", err))
	}
	return e
}

// maxEvidence bounds what an authority that signs at random can make others
// store. The first pairs prove as much as the last.
const maxEvidence = 1000

// keep stores two checkpoints under a name made of both, so that the same
// alarm again does not store them again.
func (m *Memory) keep(what, remembered, seen string) (path string, err error) {
	dir := filepath.Join(m.dir, "evidence")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	text := "remembered:\n" + remembered + "\nshown by the authority:\n" + seen
	sum := sha256.Sum256([]byte(text))
	path = filepath.Join(dir, fmt.Sprintf("%s-%x.txt", what, sum[:8]))
	if _, err := os.Lstat(path); err == nil {
		return path, nil
	}
	names, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	if len(names) >= maxEvidence {
		return "", fmt.Errorf("%s already holds %d files", dir, len(names))
	}
	return path, config.WriteFile(path, []byte(text), 0o600)
}
