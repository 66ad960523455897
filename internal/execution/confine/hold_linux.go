package confine

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// held are the places of missing protected names that a running box needs: while
// it runs, what stands for them stays (places). Each box has a file in the state
// folder of this user, with the paths in it, and keeps it locked; whichever
// workspace a box is about, the others see what it needs.
type held struct {
	dir  string
	gate *os.File // locked alone while places are made or removed
	list *os.File // of this box, or nil

	groups string // the folder of this box's control group, or empty
}

// hold keeps other boxes from making or removing places until place.
func hold() (_ *held, err error) {
	dir, err := stateDir()
	if err != nil {
		return nil, err
	}
	h := &held{dir: dir}
	if h.gate, err = openLock(filepath.Join(dir, "gate"), 0); err != nil {
		return nil, err
	}
	if err := flock(h.gate, unix.LOCK_EX); err != nil {
		h.gate.Close()
		return nil, fmt.Errorf("another box starts or ends, and holds %s: %w", filepath.Join(dir, "gate"), err)
	}
	return h, nil
}

// tidy removes what boxes have left that were killed, and makes the comparisons that
// they have left. The gate is locked.
func (h *held) tidy(profile *Profile) []Change {
	h.sweep()
	h.sweepGroups()
	h.sweepParent()
	return h.settle(profile)
}

// place makes what stands for missing names, and lets other boxes go on. Of the
// names that are there, those are kept as well that only stand for something:
// another box has made them. gits are the missing names that git reads in a
// repository, and store is a folder for what stands for names.
func (h *held) place(missing []string, gits map[string]bool, there []string, store string) error {
	defer unix.Flock(int(h.gate.Fd()), unix.LOCK_UN)
	kept := slices.Clone(missing)
	others, _ := h.lists()
	for _, name := range there {
		if others[name] {
			kept = append(kept, name)
		}
	}
	if len(kept) == 0 {
		return nil
	}
	f, err := openLock(filepath.Join(h.dir, rand.Text()+listEnding), unix.O_EXCL)
	if err != nil {
		return err
	}
	h.list = f
	if err := flock(f, unix.LOCK_EX); err != nil {
		return fmt.Errorf("keep the places of missing names: %w", err)
	}
	// Written first: what is made before it is known would stay for ever.
	if _, err := f.WriteString(strings.Join(kept, "\x00")); err != nil {
		return fmt.Errorf("keep the places of missing names: %w", err)
	}
	at := &places{dir: -1, store: store}
	defer at.close()
	for _, name := range missing {
		if err := at.make(name, kindOf(name, gits[name])); err != nil && !errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("keep the place of %s: %w", name, err)
		}
	}
	return nil
}

// release gives the places up, and removes those that no other box needs.
func (h *held) release() {
	defer h.gate.Close()
	locked := flock(h.gate, unix.LOCK_EX) == nil
	if h.list != nil {
		h.list.Close() // and so unlocked
	}
	if locked {
		h.sweep()
	}
}

// lists are the places that running boxes need, and the lists of those that have
// ended, by the names of their files. The gate is locked.
func (h *held) lists() (needed map[string]bool, ended map[string][]string) {
	needed, ended = map[string]bool{}, map[string][]string{}
	entries, err := os.ReadDir(h.dir)
	if err != nil {
		return needed, ended
	}
	for _, e := range entries {
		if filepath.Ext(e.Name()) != listEnding {
			continue
		}
		f, err := os.OpenFile(filepath.Join(h.dir, e.Name()), os.O_RDWR|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			continue
		}
		data, err := io.ReadAll(io.LimitReader(f, maxList))
		paths := strings.Split(string(data), "\x00")
		switch {
		case err != nil:
		case unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil:
			ended[f.Name()] = paths
		default:
			for _, p := range paths {
				needed[p] = true
			}
		}
		f.Close()
	}
	return needed, ended
}

// sweep removes the places that no running box needs, what lies in others first.
// The gate is locked.
func (h *held) sweep() {
	needed, ended := h.lists()
	var names []string
	for _, paths := range ended {
		names = append(names, paths...)
	}
	slices.Sort(names)
	at := &places{dir: -1}
	defer at.close()
	for _, name := range slices.Backward(slices.Compact(names)) {
		if name != "" && !needed[name] {
			_ = at.remove(name) // somebody put something there, if it fails
		}
	}
	for list := range ended {
		_ = os.Remove(list)
	}
}

// listEnding ends the names of the lists, and maxList bounds one, in bytes.
const (
	listEnding = ".box"
	maxList    = 16 << 20
)

func openLock(name string, flags int) (*os.File, error) {
	return os.OpenFile(name, os.O_RDWR|os.O_CREATE|flags|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
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
