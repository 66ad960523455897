// Package running knows which boxes of an agent run, and stops them, lets them go
// on and ends them.
//
// It owns the record that whoever starts a box for an agent leaves in the agent's
// state, the mark that the agent is paused, and what is done to the processes. A
// box is entered under the lock under which the agent is paused, so that each is
// either stopped or not started. It leaves out the state of the agent at the
// authority, and processes of other users, which are osuser's.
//
// A record names a process by its number, the moment at which it began, and the
// boot of the machine. It is compared with what the kernel says after a descriptor
// of the process was opened, so that no signal goes to another that has got the
// number since.
package running

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"vogt/internal/config"
	"vogt/internal/execution/confine/plan"
)

// ErrPaused is returned for a box of an agent that is paused on this machine.
var ErrPaused = errors.New("the agent is paused on this machine")

// Agent is an agent's state on this machine: a folder that no box of the agent can
// see.
type Agent struct{ Folder string }

// record is one box that runs.
type record struct {
	Process int        `json:"process"` // the first one of the box
	Begun   uint64     `json:"begun"`   // in ticks since the boot
	Boot    string     `json:"boot"`
	Level   plan.Level `json:"level"`
	Starter int        `json:"starter"` // for people who look
	Killed  bool       `json:"killed,omitempty"`

	path string // of the file
}

const (
	lockName   = "boxes.lock"
	pausedName = "paused"
	boxesName  = "boxes"
)

// lockTime is how long another may do something to the boxes of the agent, beyond
// the end of the caller's own context.
const lockTime = 10 * time.Second

// lock excludes others who enter, pause or resume.
func (a Agent) lock(ctx context.Context) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Join(a.Folder, boxesName), 0o700); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, lockTime)
	defer cancel()
	l, err := config.AcquireLock(ctx, filepath.Join(a.Folder, lockName))
	if err != nil {
		return nil, fmt.Errorf("somebody else is at the boxes of the agent: %w", err)
	}
	return l.Unlock, nil
}

// Enter records that a box of the agent has begun with a process. It returns
// ErrPaused if the agent is paused; the box must not go on then. The function that
// is returned forgets the box, and reports whether Kill was called for it.
func (a Agent) Enter(ctx context.Context, pid int, level plan.Level) (leave func() (killed bool), err error) {
	unlock, err := a.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if paused, err := a.Paused(); err != nil || paused {
		return nil, errors.Join(err, pausedError(paused))
	}
	r, err := recordOf(pid)
	if err != nil {
		return nil, err
	}
	r.Level, r.Starter = level, os.Getpid()
	data, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	name := filepath.Join(a.Folder, boxesName, strconv.Itoa(pid)+".json")
	if err := config.WriteFile(name, data, 0o600); err != nil {
		return nil, err
	}
	return func() bool {
		r, err := read(name)
		os.Remove(name)
		return err == nil && r.Killed
	}, nil
}

func pausedError(paused bool) error {
	if paused {
		return ErrPaused
	}
	return nil
}

// Paused reports whether the agent is paused on this machine.
func (a Agent) Paused() (bool, error) {
	_, err := os.Lstat(filepath.Join(a.Folder, pausedName))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// Pause stops what runs in the boxes of the agent and lets no other begin. It
// returns how many boxes were stopped, and tries until ctx ends. What it could not
// stop is in the error; that no other box begins holds all the same.
func (a Agent) Pause(ctx context.Context) (int, error) {
	unlock, err := a.lock(ctx)
	if err != nil {
		return 0, err
	}
	defer unlock()
	if err := config.WriteFile(filepath.Join(a.Folder, pausedName), nil, 0o600); err != nil {
		return 0, err
	}
	return a.each(func(r record) (bool, error) { return r.stop(ctx) })
}

// Resume lets the boxes of the agent go on, and others begin.
func (a Agent) Resume(ctx context.Context) (int, error) {
	unlock, err := a.lock(ctx)
	if err != nil {
		return 0, err
	}
	defer unlock()
	if err := os.Remove(filepath.Join(a.Folder, pausedName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	return a.each(func(r record) (bool, error) { return r.proceed(ctx) })
}

// Kill ends the boxes of the agent, stopped or not. Others may begin, unless the
// agent is paused.
func (a Agent) Kill(ctx context.Context) (int, error) {
	unlock, err := a.lock(ctx)
	if err != nil {
		return 0, err
	}
	defer unlock()
	return a.each(func(r record) (bool, error) {
		// Before it ends: its starter looks at once. A record that cannot be marked costs
		// only a line there.
		marked := r
		marked.Killed = true
		if data, err := json.Marshal(marked); err == nil {
			_ = config.WriteFile(r.path, data, 0o600)
		}
		return r.kill(ctx)
	})
}

// each does something to every box that runs, and forgets those that do not.
func (a Agent) each(do func(record) (bool, error)) (n int, err error) {
	folder := filepath.Join(a.Folder, boxesName)
	entries, err := os.ReadDir(folder)
	if err != nil {
		return 0, err
	}
	var failed []error
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ".json") {
			continue // one that is being written
		}
		r, err := read(filepath.Join(folder, entry.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue // it has ended
		}
		if err != nil {
			failed = append(failed, err)
			continue
		}
		there, err := do(r)
		switch {
		case err != nil:
			failed = append(failed, fmt.Errorf("the box of process %d: %w", r.Process, err))
		case there:
			n++
		default:
			os.Remove(r.path) // its starter was killed; if this fails, it is tried again
		}
	}
	return n, errors.Join(failed...)
}

func read(path string) (record, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return record{}, err
	}
	r := record{path: path}
	if err := json.Unmarshal(data, &r); err != nil || r.Process <= 1 {
		return r, fmt.Errorf("%s is no record of a box; end the box by hand and delete the file (%v)", path, err)
	}
	return r, nil
}
