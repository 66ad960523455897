package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"vogt/internal/api"
	"vogt/internal/config"
)

// outbox is a folder of outcomes that the authority has not heard yet, a file
// each, so that processes need no lock: a report that is sent twice is refused
// the second time.
type outbox struct{ folder string }

// Limits of the outbox.
const (
	maxKept      = 1000     // files; more would mean that nobody ever sends
	maxSent      = 50       // files at one contact
	maxKeptBytes = 64 << 10 // of a file
	flushLimit   = time.Second * 5
)

// kept is the content of a file.
type kept struct {
	Grant   string      `json:"grant"`
	Outcome api.Outcome `json:"outcome"`
}

// keep stores an outcome.
func (o outbox) keep(id string, outcome api.Outcome) error {
	if !plainName(outcome.Use) {
		return fmt.Errorf("outbox: the use %.80q cannot name a file", outcome.Use)
	}
	if err := os.MkdirAll(o.folder, 0o700); err != nil {
		return fmt.Errorf("outbox: %w", err)
	}
	names, err := o.names()
	if err != nil {
		return err
	}
	if len(names) >= maxKept {
		return fmt.Errorf("outbox: %s holds %d outcomes that were never sent; look why the authority refuses them, and remove them", o.folder, len(names))
	}
	data, err := json.Marshal(kept{Grant: id, Outcome: outcome})
	if err != nil {
		return fmt.Errorf("outbox: %w", err)
	}
	return config.WriteFile(filepath.Join(o.folder, outcome.Use+".json"), data, 0o600)
}

// plainName reports whether s, which the authority chose, can be a file's name
// without leading elsewhere.
func plainName(s string) bool {
	return s != "" && len(s) <= 100 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == ""
}

func (o outbox) names() ([]string, error) {
	entries, err := os.ReadDir(o.folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("outbox: %w", err)
	}
	var names []string
	for _, e := range entries {
		if e.Type().IsRegular() && strings.HasSuffix(e.Name(), ".json") && !strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// flush sends what was kept, once for each client, after its first successful
// exchange. What cannot be sent now stays; what the authority will never take,
// and what is no outcome, goes.
func (c *Client) flush(ctx context.Context) {
	if c.flushed {
		return
	}
	c.flushed = true
	names, err := c.outbox.names()
	if err != nil || len(names) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, flushLimit)
	defer cancel()
	for _, name := range names[:min(len(names), maxSent)] {
		path := filepath.Join(c.outbox.folder, name)
		k, err := readKept(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue // another process was faster
		}
		if err == nil {
			err = c.report(ctx, k.Grant, k.Outcome)
			if e, ok := errors.AsType[*Error](err); err != nil && !(ok && settled(e.Kind)) {
				return
			}
		}
		os.Remove(path)
	}
}

func readKept(path string) (k kept, err error) {
	info, err := os.Lstat(path)
	if err != nil {
		return k, err
	}
	if info.Size() > maxKeptBytes {
		return k, errors.New("outbox: too large")
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return k, err
	}
	return k, json.Unmarshal(data, &k)
}
