package confine

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// held are the places of missing protected names that a running box needs: while
// it runs, the empty folders that stand for them stay. Each place has a file of
// its own in the state folder of this user, with its path in it, locked together
// by every box that needs the place, whichever workspace it is about.
type held struct {
	dir    string
	gate   *os.File            // locked alone while folders are made or removed
	places map[string]*os.File // by path
}

// hold keeps other boxes from making or removing places until place, and removes
// those that boxes have left which were killed.
func hold() (_ *held, err error) {
	dir, err := stateDir()
	if err != nil {
		return nil, err
	}
	h := &held{dir: dir, places: map[string]*os.File{}}
	if h.gate, err = openLock(filepath.Join(dir, "gate")); err != nil {
		return nil, err
	}
	if err := flock(h.gate, unix.LOCK_EX); err != nil {
		h.gate.Close()
		return nil, fmt.Errorf("another box starts or ends, and holds %s: %w", filepath.Join(dir, "gate"), err)
	}
	h.sweep()
	return h, nil
}

// place makes the folders that stand for missing names, and lets other boxes go
// on. Of the names that are there, those are kept as well that only stand for
// something: another box has made them.
func (h *held) place(missing, there []string) error {
	defer unix.Flock(int(h.gate.Fd()), unix.LOCK_UN)
	for _, name := range there {
		f, err := os.OpenFile(h.file(name), os.O_RDWR|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		h.places[name] = f
		if err := flock(f, unix.LOCK_SH); err != nil {
			return fmt.Errorf("keep the place of %s: %w", name, err)
		}
	}
	for _, name := range missing {
		if f := h.places[name]; f != nil {
			continue
		}
		f, err := openLock(h.file(name))
		if err != nil {
			return err
		}
		h.places[name] = f
		if err := flock(f, unix.LOCK_SH); err != nil {
			return fmt.Errorf("keep the place of %s: %w", name, err)
		}
		// Written first: what is made before it is known would stay for ever.
		if _, err := f.WriteAt([]byte(name), 0); err != nil {
			return fmt.Errorf("keep the place of %s: %w", name, err)
		}
		if err := beneath(name, func(dir int, base string) error { return unix.Mkdirat(dir, base, 0o755) }); err != nil && !errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("keep the place of %s: %w", name, err)
		}
	}
	return nil
}

// release gives the places up, and removes those that no other box needs. Only
// empty folders can be removed that way.
func (h *held) release() {
	defer h.gate.Close()
	locked := flock(h.gate, unix.LOCK_EX) == nil
	for _, f := range h.places {
		f.Close() // and so unlocked
	}
	if locked {
		h.sweep()
	}
}

// sweep removes the places that nobody holds, what lies in others first. The
// gate is locked.
func (h *held) sweep() {
	entries, err := os.ReadDir(h.dir)
	if err != nil {
		return
	}
	left := map[string]*os.File{}
	for _, e := range entries {
		if filepath.Ext(e.Name()) != placeEnding {
			continue
		}
		f, err := openLock(filepath.Join(h.dir, e.Name()))
		if err != nil {
			continue
		}
		name, err := io.ReadAll(io.LimitReader(f, 1<<16))
		if err != nil || unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil || h.file(string(name)) != f.Name() {
			f.Close() // a box needs it, or it is none of ours
			continue
		}
		left[string(name)] = f
	}
	names := make([]string, 0, len(left))
	for name := range left {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range slices.Backward(names) {
		err := beneath(name, func(dir int, base string) error { return unix.Unlinkat(dir, base, unix.AT_REMOVEDIR) })
		if err == nil || !errors.Is(err, unix.ENOTEMPTY) || !places(names, name) {
			_ = os.Remove(left[name].Name()) // somebody put something there, if the folder stays
		}
		left[name].Close()
	}
}

// places reports whether one of the places lies in another one.
func places(names []string, outer string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return within(n, outer) })
}

// placeEnding ends the names of the files of places.
const placeEnding = ".place"

func (h *held) file(name string) string {
	sum := sha256.Sum256([]byte(name))
	return filepath.Join(h.dir, hex.EncodeToString(sum[:16])+placeEnding)
}

func openLock(name string) (*os.File, error) {
	return os.OpenFile(name, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
}

// beneath does something in the folder of a path, of which no part may be a link:
// a box that runs may have swapped one.
func beneath(name string, do func(dir int, base string) error) error {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS}
	dir, err := unix.Openat2(unix.AT_FDCWD, filepath.Dir(name), &how)
	if err != nil {
		return &os.PathError{Op: "open", Path: filepath.Dir(name), Err: err}
	}
	defer unix.Close(dir)
	return do(dir, filepath.Base(name))
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

// stateDir is where the locks are, out of reach of every box. It does not follow
// the environment: boxes that were started from elsewhere need the same places.
func stateDir() (string, error) {
	base := fmt.Sprintf("/run/user/%d", os.Getuid())
	var st unix.Stat_t
	if err := unix.Lstat(base, &st); err != nil || int(st.Uid) != os.Getuid() {
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
