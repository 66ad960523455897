package confine

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// held is the share that a running box has in its workspace: while it runs, the
// empty folders that stand for missing protected names stay.
type held struct {
	gate *os.File // locked alone while folders are made or removed
	uses *os.File // locked together by every box of the workspace
}

// hold takes a share in the workspace, and keeps other boxes from making or
// removing folders in it until place.
func hold(workspace string) (_ *held, err error) {
	workspace, err = canonicalDir(workspace)
	if err != nil {
		return nil, err
	}
	dir, err := stateDir()
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(workspace))
	base := filepath.Join(dir, hex.EncodeToString(sum[:16]))
	h := &held{}
	defer func() {
		if err != nil {
			h.close()
		}
	}()
	if h.gate, err = os.OpenFile(base+".gate", os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600); err != nil {
		return nil, err
	}
	if h.uses, err = os.OpenFile(base+".uses", os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600); err != nil {
		return nil, err
	}
	if err := flock(h.gate, unix.LOCK_EX); err != nil {
		return nil, fmt.Errorf("another box of this workspace starts or ends, and holds %s: %w", h.gate.Name(), err)
	}
	if err := flock(h.uses, unix.LOCK_SH); err != nil {
		return nil, err
	}
	return h, nil
}

// place makes the folders that stand for missing names, and lets other boxes
// go on. What a box left that was killed is in the list too, and goes with the
// last box of the workspace.
func (h *held) place(missing []string) error {
	defer unix.Flock(int(h.gate.Fd()), unix.LOCK_UN)
	placed, err := h.list()
	if err != nil {
		return err
	}
	for _, name := range missing {
		if !slices.Contains(placed, name) {
			placed = append(placed, name)
		}
	}
	// Noted first: what is made before a note that is lost would stay for ever.
	if err := h.note(placed); err != nil {
		return err
	}
	for _, name := range missing {
		if err := os.Mkdir(name, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
			return fmt.Errorf("keep the place of %s: %w", name, err)
		}
	}
	return nil
}

// release gives the share up, and the last one removes the folders. Only empty
// folders can be removed that way.
func (h *held) release() {
	defer h.close()
	if flock(h.gate, unix.LOCK_EX) != nil {
		return
	}
	if unix.Flock(int(h.uses.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		return // another box runs
	}
	placed, err := h.list()
	if err != nil {
		return
	}
	// What is in another one goes first: a box that was killed has left the outer
	// folder, and the next one found it and made the inner.
	slices.Sort(placed)
	for _, name := range slices.Backward(placed) {
		_ = unix.Rmdir(name) // somebody put something there, if that fails
	}
	_ = h.note(nil)
}

func (h *held) close() {
	for _, f := range []*os.File{h.uses, h.gate} {
		if f != nil {
			f.Close()
		}
	}
}

func (h *held) list() ([]string, error) {
	if _, err := h.uses.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	data, err := io.ReadAll(h.uses)
	if err != nil || len(data) == 0 {
		return nil, err
	}
	var placed []string
	if err := json.Unmarshal(data, &placed); err != nil {
		return nil, fmt.Errorf("%s is broken (%w): remove it", h.uses.Name(), err)
	}
	return placed, nil
}

func (h *held) note(placed []string) error {
	data, err := json.Marshal(placed)
	if err != nil {
		return err
	}
	if err := h.uses.Truncate(0); err != nil {
		return err
	}
	_, err = h.uses.WriteAt(data, 0)
	return err
}

// lockLimit is how long a lock is waited for. Others have it for milliseconds.
const lockLimit = 20 * time.Second

func flock(f *os.File, how int) error {
	for end := time.Now().Add(lockLimit); ; time.Sleep(lockPause) {
		err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
		switch {
		case errors.Is(err, unix.EINTR):
		case !errors.Is(err, unix.EWOULDBLOCK) || time.Now().After(end):
			return err
		}
	}
}

// lockPause is how often it is tried: the kernel cannot wait for a limited time.
const lockPause = 2 * time.Millisecond

// stateDir is where the locks are, out of reach of every box.
func stateDir() (string, error) {
	base := os.Getenv("XDG_RUNTIME_DIR")
	if base == "" {
		base = fmt.Sprintf("/tmp/vogt-%d", os.Getuid())
		if err := os.Mkdir(base, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
			return "", err
		}
	}
	dir := filepath.Join(base, "vogt-boxes")
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return "", err
	}
	for _, name := range []string{base, dir} {
		var st unix.Stat_t
		if err := unix.Lstat(name, &st); err != nil {
			return "", err
		}
		if st.Mode&unix.S_IFMT != unix.S_IFDIR || int(st.Uid) != os.Getuid() || st.Mode&0o022 != 0 {
			return "", fmt.Errorf("%s does not belong to this user alone: remove it", name)
		}
	}
	return dir, nil
}
