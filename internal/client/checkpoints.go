package client

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"vogt/internal/api"
	"vogt/internal/audit"
	"vogt/internal/config"
)

// checkpoints is what this OS user remembers of the logs of authorities: a
// folder for each authority, with the key that was pinned at the first login.
type checkpoints struct {
	folder string // of all authorities
	memory *audit.Memory
}

// folderOf is where the memory of an authority's log lies.
func (s *checkpoints) folderOf(authority string) string {
	host := authority
	if u, err := url.Parse(authority); err == nil {
		host = u.Host
	}
	safe := func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '.' || r == '-' {
			return r
		}
		return '_'
	}
	return filepath.Join(s.folder, "log", strings.Map(safe, strings.ToLower(host)))
}

// maxKey bounds a verifier key's file.
const maxKey = 4 << 10

// pinned returns the key that was pinned for an authority, or "".
func (s *checkpoints) pinned(authority string) (string, error) {
	data, err := os.ReadFile(s.keyFile(authority))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil || len(data) > maxKey {
		return "", &Error{Kind: BadFile, Where: s.keyFile(authority), Err: err, Hint: "it holds the key of the authority's log; remove it only if you know why it is damaged"}
	}
	return strings.TrimSpace(string(data)), nil
}

func (s *checkpoints) keyFile(authority string) string {
	return filepath.Join(s.folderOf(authority), "key")
}

// pin keeps the key of an authority's log.
func (s *checkpoints) pin(authority, key string) error {
	if err := os.MkdirAll(s.folderOf(authority), 0o700); err != nil {
		return fmt.Errorf("folder for remembered checkpoints: %w", err)
	}
	return config.WriteFile(s.keyFile(authority), []byte(key+"\n"), 0o600)
}

// open opens the memory of the authority's log, once.
func (c *Client) memory() (*audit.Memory, error) {
	if c.seen.memory != nil {
		return c.seen.memory, nil
	}
	if err := c.checkPin(); err != nil {
		return nil, err
	}
	m, err := audit.OpenMemory(c.seen.folderOf(c.wire.base), c.login.LogKey)
	if err != nil {
		return nil, &Error{Kind: BadFile, Where: c.file.path, Err: err, Hint: "log in again: vogt login"}
	}
	c.seen.memory = m
	return m, nil
}

// checkPin compares the key that lies beside the remembered checkpoints with the
// one in the login: two files that only this user writes, at one login. A login
// that is only being made has none yet.
func (c *Client) checkPin() error {
	pinned, err := c.seen.pinned(c.wire.base)
	if err != nil || pinned == "" || c.login.LogKey == "" || pinned == c.login.LogKey {
		return err
	}
	return &Error{Kind: BadFile, Where: c.seen.keyFile(c.wire.base),
		Detail: fmt.Sprintf("it pins another key of the log (%.120q) than %s (%.120q): one of the two files was changed by hand", pinned, c.file.path, c.login.LogKey),
		Hint:   "find out which key is the authority's, and by whom the other was put there; then correct that file"}
}

// remembered is the last checkpoint that was accepted, or "".
func (c *Client) remembered() (string, error) {
	m, err := c.memory()
	if err != nil {
		return "", err
	}
	last, _, err := m.Last()
	if err != nil {
		return "", &Error{Kind: BadFile, Where: c.seen.folderOf(c.wire.base), Err: err}
	}
	return last.Text, nil
}

// observe checks a checkpoint that the authority showed against the one that is
// remembered.
func (c *Client) observe(ctx context.Context, text string) error {
	m, err := c.memory()
	if err != nil {
		return err
	}
	return c.alarm(m.Observe(ctx, text, c.consistency))
}

// consistency fetches the proof that the log only grew. It is no exchange of
// its own: its answer is checked against checkpoints, not the other way round.
func (c *Client) consistency(ctx context.Context, old, new int64) (audit.Consistency, error) {
	var proof audit.Consistency
	_, err := c.wire.send(ctx, call{
		method: http.MethodGet,
		path:   api.PathAudit + "/consistency",
		query:  url.Values{"old": {strconv.FormatInt(old, 10)}, "new": {strconv.FormatInt(new, 10)}},
		bearer: c.login.Token,
		answer: &proof,
	})
	return proof, err
}

// alarm turns what the memory found into an error of this package.
func (c *Client) alarm(err error) error {
	if err == nil {
		return nil
	}
	if fork, ok := errors.AsType[*audit.ErrFork](err); ok {
		return &Error{Kind: Forked, Where: c.wire.base, Evidence: evidence(fork.Evidence),
			Detail: fmt.Sprintf("%d records were seen before, and the %d shown now do not fit them", fork.Remembered.Size, fork.Seen.Size)}
	}
	if behind, ok := errors.AsType[*audit.ErrBehind](err); ok {
		return &Error{Kind: Behind, Where: c.wire.base, Evidence: evidence(behind.Evidence),
			Detail: fmt.Sprintf("its log has %d records, but %d were seen before", behind.Seen.Size, behind.Remembered.Size)}
	}
	if _, ok := errors.AsType[*Error](err); ok {
		return err // fetching the proof failed
	}
	if local := c.localFault(err); local != nil {
		return local
	}
	return &Error{Kind: Distrusted, Where: c.wire.base, Err: err}
}

// localFault is the error for a file of this machine that cannot be read or
// written, as on a full disk. That says nothing about the authority.
func (c *Client) localFault(err error) error {
	path := ""
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		path = pe.Path
	} else if le, ok := errors.AsType[*os.LinkError](err); ok {
		path = le.New
	} else if _, ok := errors.AsType[syscall.Errno](err); ok {
		path = c.seen.folderOf(c.wire.base)
	} else {
		return nil
	}
	return &Error{Kind: BadFile, Where: path, Err: err, Hint: "look whether the disk is full and whether the folder may be written"}
}

func evidence(path string) []string {
	if path == "" {
		return nil
	}
	return []string{path}
}

// Accept takes the log as the authority shows it now, whatever was remembered:
// for a person who knows that the authority was restored. It returns the sizes
// before and now; what was remembered is kept as evidence.
func (c *Client) Accept(ctx context.Context) (before, now int64, err error) {
	m, err := c.memory()
	if err != nil {
		return 0, 0, err
	}
	if last, ok, err := m.Last(); err == nil && ok {
		before = last.Size
	}
	text, err := c.currentCheckpoint(ctx)
	if err != nil {
		return before, 0, err
	}
	seen, err := audit.OpenCheckpoint(text, c.login.LogKey)
	if err != nil {
		return before, 0, &Error{Kind: Distrusted, Where: c.wire.base, Err: err}
	}
	if err := m.Accept(text); err != nil {
		return before, 0, c.alarm(err)
	}
	return before, seen.Size, nil
}

// currentCheckpoint asks for the log's checkpoint without comparing it.
func (c *Client) currentCheckpoint(ctx context.Context) (string, error) {
	if err := c.renew(ctx, false); err != nil {
		return "", err
	}
	var text []byte
	_, err := c.wire.send(ctx, call{method: http.MethodGet, path: api.PathAudit + "/checkpoint", bearer: c.login.Token, answer: &text})
	return string(text), err
}
